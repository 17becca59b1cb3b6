"""The compiled certificate beside its definition: whatever a test or a campaign solves in one call is proved twice."""

import numpy as np

from groupowl import kernel
from groupowl.problem import build_problem, published

compiled_fit = kernel.fit_squared


def compared_fit(X, Y, lam, *, fit_intercept, tol, **how):
    """The compiled fit, after a comparison of all that it proves with the certificate in NumPy."""
    found = compiled_fit(X, Y, lam, fit_intercept=fit_intercept, tol=tol, **how)
    if found is not None:
        with np.errstate(all="ignore"):
            complaint = difference(found, X, Y, lam, fit_intercept, tol)
        assert not complaint, f"the compiled certificate differs from its definition: {complaint}"
    return found


def compare_all():
    """From now on, in this process."""
    kernel.fit_squared = compared_fit


def difference(found, X, Y, lam, fit_intercept, tol):
    """What is not as the definition has it; nothing that it refuses may be fitted."""
    problem = build_problem(X, Y, lam, fit_intercept=fit_intercept)
    certificate = problem.certify(found.B)
    public = published(problem, found.B, certificate)
    size, residual = problem.samples.norm, certificate.residual
    pairs = {
        "norms": (found.norms, problem.norms, 1e-12 * problem.norms),
        "rounding_norms": (found.rounding_norms, problem.rounding_norms, 1e-12 * problem.norms),
        "theta": (found.theta, residual.theta, 1e-12 * residual.reach),
        "correlations": (found.correlations, residual.correlations, 1e-12 * residual.reach * problem.rounding_norms),
        "theta_norm": (found.theta_norm, residual.norm, 1e-12 * residual.reach),
        "intercept": (found.intercept, public.intercept, 1e-12 * (np.abs(public.intercept).max() + np.abs(Y).max())),
        "primal": (found.primal, certificate.primal, 1e-12 * certificate.primal),
        "gap": (found.gap, public.gap(certificate), 1e-9 * certificate.gap + 1e-13 * size * size),
    }
    for name, (one, other, room) in pairs.items():
        if not np.all(np.abs(one - other) <= room):
            return f"{name} {one} and {other}"
    if not found.gap <= problem.goal(tol) * (1.0 + 1e-12):
        return f"gap {found.gap} above {problem.goal(tol)}"
    if not np.array_equal(problem.design.treated_as_constant, []):
        return "a column counts as constant"
    return ""
