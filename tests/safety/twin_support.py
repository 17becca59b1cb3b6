"""The compiled certificate beside its definition: whatever a test or a campaign solves in one call is proved twice."""

from collections import Counter
from dataclasses import replace
from functools import wraps

import numpy as np

from groupowl import kernel
from groupowl.norm.kernels import EPS, inverse_weighted_square, row_norms
from groupowl.problem import build_problem, published
from groupowl.solvers import continuation

compiled_fit, compiled_solve = kernel.whole_fit, kernel.solve
#: How often the compiled kernel has answered, by the function that was asked.
answers: Counter[str] = Counter()


def compared_fit(X, Y, lam, *, fit_intercept, tol, loss="squared", **how):
    """The compiled fit, after a comparison of all that it proves with the certificate in NumPy."""
    found = compiled_fit(X, Y, lam, fit_intercept=fit_intercept, tol=tol, loss=loss, **how)
    if found is not None:
        with np.errstate(all="ignore"):
            complaint = difference(found, X, Y, lam, fit_intercept, tol, loss)
        assert not complaint, f"the compiled certificate differs from its definition: {complaint}"
        answers["whole fit"] += 1
    return found


@wraps(compiled_solve)
def counted_solve(*arguments, **how):
    """The compiled solver; that it was asked is counted."""
    found = compiled_solve(*arguments, **how)
    answers["solve"] += 1
    return found


def compare_all():
    """From now on, in this process."""
    kernel.whole_fit, continuation.twin_looks = compared_fit, compared_looks
    kernel.solve = counted_solve


def difference(found, X, Y, lam, fit_intercept, tol, loss):
    """What is not as the definition has it; nothing that it refuses may be fitted."""
    problem = build_problem(X, Y, lam, loss=loss, fit_intercept=fit_intercept)
    B = problem.from_input(found.B, found.intercept if fit_intercept else None)
    expected = problem.certify(B)
    known, slack = expected.residual, 16.0 * EPS * np.sqrt(len(X))
    correlations = row_norms(problem.design.rmatmul(found.theta))
    totals = problem.loss.ray_totals(found.theta, *problem.samples.handles)
    norm = np.sqrt(inverse_weighted_square(found.theta, problem.samples.w))
    own = replace(known, theta=found.theta, correlations=found.correlations, norm=found.theta_norm, totals=totals)
    if not problem.loss.is_quadratic:
        block = problem.unpenalized
        left = block.constant_value * np.linalg.norm(found.theta.sum(axis=0)) if block.n_rows else 0.0
        own = replace(own, balancing=found.balancing, imbalance=left)
    definition = problem._certificate_at(B, own, found.primal)
    public = published(problem, B, definition)
    size = problem.curvature_at(B) * known.reach + norm  # of what rounding is of
    pairs = {
        "norms": (found.norms, problem.norms, 1e-12 * problem.norms),
        "rounding_norms": (found.rounding_norms, problem.rounding_norms, 1e-12 * problem.rounding_norms),
        "theta": (np.linalg.norm(found.theta - known.theta), 0.0, 4.0 * slack * size),
        "correlations": (found.correlations, correlations, slack * norm * problem.rounding_norms),
        "theta_norm": (found.theta_norm, norm, 1e-12 * norm),
        "intercept": (found.intercept, public.intercept, 1e-12 * (np.abs(public.intercept).max() + np.abs(Y).max())),
        "primal": (found.primal, expected.primal, expected.rounding),
        "gap": (found.gap + found.rounding, public.gap(definition), 1e-9 * definition.gap + definition.rounding),
        "goal": (min(found.gap, problem.goal(tol)), found.gap, 1e-12 * found.gap),
    }
    if not problem.loss.is_quadratic:
        raw = known.theta if known.raw is None else known.raw
        distance, balancing = np.linalg.norm(definition.theta - raw), np.linalg.norm(known.theta - raw)
        squares = problem.design.squared_products(problem.loss.spread(definition.theta, raw, *problem.samples.handles))
        pairs |= {
            "distance": (found.distance, distance, 4.0 * slack * size),
            "balancing": (found.balancing, balancing, 4.0 * slack * size),
            "squares": (found.squares, squares, 1e-9 * squares + 1e-12 * problem.rounding_norms[:, None] ** 2),
            "largest": (found.largest, problem.gram_cache.largest, 1e-12 * problem.rounding_norms),
        }
    for name, (one, other, room) in pairs.items():
        if not np.all((one == other) | (np.abs(one - other) <= room)):  # both may be infinite
            return f"{name} {one} and {other}"
    return "a column counts as constant" if len(problem.design.treated_as_constant) else ""


def _length(theta, w):
    """Weighted norm, of numbers too whose squares overflow: those of means at predictors of several hundred."""
    largest = max(np.abs(theta).max(initial=0.0), np.finfo(float).tiny)
    return largest * np.sqrt(inverse_weighted_square(theta / largest, w))


def look_difference(problem, B, residual, certificate):
    """What is not as the definition has it.

    The residual is compared, up to rounding; the certificate with what the definition makes of this residual: dual
    points that differ by rounding may prove gaps that differ by more. That nothing is selected is left to NumPy.
    """
    if certificate is None or not B[: problem.n_rows].any():
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
    raw, expected_raw = ((one.theta if one.raw is None else one.raw) for one in (residual, known))
    block = problem.unpenalized
    imbalance = block.constant_value * np.linalg.norm(residual.theta.sum(axis=0)) if block.n_rows else 0.0
    balancing = np.sqrt(inverse_weighted_square(residual.theta - raw, w))
    size = problem.curvature_at(B) * reach + norm  # of what rounding is of
    root = np.sqrt(problem.samples.total_weight * problem.samples.n_tasks)
    pairs = {
        "theta": (distance, 0.0, 4.0 * slack * size),
        "theta before it was balanced": (_length(raw - expected_raw, w), 0.0, slack * size),
        "balancing": (residual.balancing, balancing, 1e-12 * balancing),
        "imbalance": (residual.imbalance, imbalance, slack * norm),
        # A sum over |z|, whose predictors have the rounding of all that cancels in them (by Cauchy and Schwarz).
        "cancelling": (residual.cancelling, known.cancelling, 1e-9 * known.cancelling + slack * root * reach),
        "products": (row_norms(residual.products - products), 0.0, slack * norm * problem.rounding_norms),
        "correlations": (residual.correlations, correlations, 1e-12 * correlations),
        "norm": (residual.norm, norm, 1e-12 * norm),
        "totals": (
            residual.totals,
            problem.loss.ray_totals(residual.theta, Y, w),
            slack * norm * (problem.samples.norm + norm),
        ),
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
        if not np.all((one == other) | (np.abs(one - other) <= room)):  # both may be infinite
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
