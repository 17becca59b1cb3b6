"""The compiled certificate beside its definition: whatever a test or a campaign solves in one call is proved twice."""

import numpy as np

from groupowl import kernel
from groupowl.norm.kernels import EPS, inverse_weighted_square, row_norms
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


def gap_room(certificate):
    """What may be between two gaps: both have errors, and the rounding of predictors moves dual points."""
    residual = certificate.residual
    moved = 16.0 * EPS * residual.reach / residual.norm if residual.norm > 0.0 else 0.0
    return 2.0 * certificate.rounding + moved * (abs(certificate.primal) + abs(certificate.dual))


def look_difference(problem, B, residual, certificate):
    """What is not as the definition has it.

    The residual is compared, up to rounding; the certificate with what the definition makes of this residual: dual
    points that differ by rounding may prove gaps that differ by more. That nothing is selected is left to NumPy.
    """
    if certificate is None or not B.any():
        return ""
    expected = problem.certify(B)
    if not np.isfinite(expected.gap):
        return "the definition proves nothing"
    known, (Y, w) = expected.residual, problem.samples.handles
    slack = 16.0 * EPS * np.sqrt(problem.design.n_samples)
    distance = np.sqrt(inverse_weighted_square(residual.theta - known.theta, w))
    products, penalty = problem.design.rmatmul(residual.theta), problem.penalty
    correlations, reach = penalty.norms(residual.products), known.reach
    if problem.product_error > 0.0:
        error = problem.product_error * reach * penalty.lengths(problem.rounding_norms)
        correlations = (1.0 + problem.scale_error) * (correlations + error)
    norm = np.sqrt(inverse_weighted_square(residual.theta, w))
    pairs = {
        "theta": (distance, 0.0, 4.0 * slack * reach),
        "products": (row_norms(residual.products - products), 0.0, slack * norm * problem.rounding_norms),
        "correlations": (residual.correlations, correlations, 1e-12 * correlations),
        "norm": (residual.norm, norm, 1e-12 * norm),
        "totals": (residual.totals, problem.loss.ray_totals(residual.theta, Y, w), slack * norm * problem.samples.norm),
        "loss": (residual.loss, known.loss, expected.rounding),
        "reach": (residual.reach, reach, 1e-12 * reach),
    }
    definition = problem._certificate_at(B, residual, certificate.primal)
    room = 1e-9 * definition.gap + definition.rounding
    pairs |= {
        "primal": (certificate.primal, expected.primal, expected.rounding),
        "dual": (certificate.dual, definition.dual, definition.rounding),
        "gap": (certificate.gap, definition.gap, room),
        "rounding": (certificate.rounding, definition.rounding, 1e-9 * definition.rounding),
        "product_error": (certificate.product_error, definition.product_error, 1e-9 * definition.product_error),
        "theta_norm": (certificate.theta_norm, definition.theta_norm, 1e-9 * definition.theta_norm),
        "correlations of the dual point": (
            certificate.correlations, definition.correlations, 1e-9 * definition.correlations,
        ),
        "dual point": (certificate.theta, definition.theta, 1e-9 * np.abs(definition.theta)),
    }  # fmt: skip
    for name, (one, other, room) in pairs.items():
        if not np.all(np.abs(one - other) <= room):
            return f"{name} {one} and {other}"
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
