"""The compiled certificate beside its definition: whatever a test or a campaign solves in one call is proved twice."""

import numpy as np

from groupowl import kernel
from groupowl.norm.kernels import EPS
from groupowl.problem import build_problem, published
from groupowl.solvers import continuation

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
    kernel.fit_squared, continuation.twin_looks = compared_fit, compared_looks


def difference(found, X, Y, lam, fit_intercept, tol):
    """What is not as the definition has it; nothing that it refuses may be fitted."""
    problem = build_problem(X, Y, lam, fit_intercept=fit_intercept)
    certificate = problem.certify(found.B)
    public = published(problem, found.B, certificate)
    residual = certificate.residual
    pairs = {
        "norms": (found.norms, problem.norms, 1e-12 * problem.norms),
        "rounding_norms": (found.rounding_norms, problem.rounding_norms, 1e-12 * problem.norms),
        "theta": (found.theta, residual.theta, 1e-12 * residual.reach),
        "correlations": (found.correlations, residual.correlations, 1e-12 * residual.reach * problem.rounding_norms),
        "theta_norm": (found.theta_norm, residual.norm, 1e-12 * residual.reach),
        "intercept": (found.intercept, public.intercept, 1e-12 * (np.abs(public.intercept).max() + np.abs(Y).max())),
        "primal": (found.primal, certificate.primal, certificate.rounding),
        "gap": (found.gap, public.gap(certificate), gap_room(certificate)),
    }
    for name, (one, other, room) in pairs.items():
        if not np.all(np.abs(one - other) <= room):
            return f"{name} {one} and {other}"
    if not found.gap <= problem.goal(tol) * (1.0 + 1e-12):
        return f"gap {found.gap} above {problem.goal(tol)}"
    if not np.array_equal(problem.design.treated_as_constant, []):
        return "a column counts as constant"
    return ""


compiled_looks = continuation.twin_looks


def compared_looks(problem, data, lams, stack):
    """Compiled certificates of several coefficients, after a comparison of each with the definition."""
    looks = compiled_looks(problem, data, lams, stack)
    counted = problem.design.passes.total
    for lam, B, (residual, certificate) in zip(lams, stack, [] if looks is None else looks, strict=looks is not None):
        with np.errstate(all="ignore"):
            complaint = look_difference(problem.with_lam(lam), B, residual, certificate)
        assert not complaint, f"the compiled certificate differs from its definition: {complaint}"
    problem.design.passes.total = counted  # comparing is not solving
    return looks


def moved(residual):
    """How far the rounding of a predictor moves its dual point, relatively."""
    return 16.0 * EPS * residual.reach / residual.norm if residual.norm > 0.0 else 0.0


def gap_room(certificate):
    """What may be between two gaps: both have errors, and dual points are not quite the same."""
    return 2.0 * certificate.rounding + moved(certificate.residual) * (abs(certificate.primal) + abs(certificate.dual))


def look_difference(problem, B, residual, certificate):
    """What is not as the definition has it; that nothing is selected is left to NumPy."""
    if not B.any():
        return ""
    expected = problem.certify(B)
    if certificate is None or not np.isfinite(expected.gap):
        return "" if certificate is None and not np.isfinite(expected.gap) else "one of them proves nothing"
    known = expected.residual
    share = 1e-6 + moved(known)
    bound = 1e-12 * known.reach * problem.rounding_norms
    lengths = problem.penalty.lengths(bound)
    pairs = {
        "theta": (certificate.theta, expected.theta, 1e-12 * known.reach),
        "correlations": (certificate.correlations, expected.correlations, lengths),
        "products": (residual.products, known.products, bound[:, None]),
        "theta_norm": (certificate.theta_norm, expected.theta_norm, 1e-12 * known.reach),
        "primal": (certificate.primal, expected.primal, expected.rounding),
        "gap": (certificate.gap, expected.gap, gap_room(expected)),
        "rounding": (certificate.rounding, expected.rounding, share * expected.rounding),
        "product_error": (certificate.product_error, expected.product_error, share * expected.product_error),
        "loss": (residual.loss, known.loss, expected.rounding),
        "reach": (residual.reach, known.reach, 1e-12 * known.reach),
        "norm": (residual.norm, known.norm, 1e-12 * known.reach),
        "totals": (residual.totals, known.totals, 1e-11 * known.reach**2),
    }
    for name, (one, other, room) in pairs.items():
        if not np.all(np.abs(one - other) <= room):
            return f"{name} {one} and {other}"
    return ""
