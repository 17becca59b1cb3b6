"""Squared-loss problems with more samples than features, reduced to their sufficient statistics in one pass."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ._kernels import owl_gauge
from ._typing import FloatArray
from .designs import CompressedDesign, GramCache
from .gram import SufficientStatistics
from .losses import resolve_loss
from .problem import LATER, Problem, build_problem, check_products
from .targets import Targets, center_errors
from .weights import check_sequence, resolve_weights

# Below this tolerance the rounding of a Gram matrix may forbid a proof, and a QR factorisation is worth its price.
_GRAM_TOLERANCE = 1e-8
# A product with all of X is so many times slower, per operation, than the Gram matrix of X; a solve needs a few.
_PASSES_PER_SOLVE = 6.0
_PASS_SLOWDOWN = 4.0
# Larger Gram matrices are never made unasked.
_MOST_FEATURES = 5000
# Weights this close to those that select nothing, relatively, are left to the data.
_NULL_RTOL = 1e-6


def is_compressible(problem: Problem) -> bool:
    """Whether the problem has sufficient statistics that are smaller than its data."""
    n, d = problem.design.shape
    return problem.loss.name == "squared" and n > d


def compression_pays(problem: Problem, n_solves: int = 1) -> bool:
    """Whether making the statistics costs less than the products with X that so many solves would need.

    A Gram matrix takes ``n d^2`` operations, a product with X ``2 n d q``.
    """
    d, q = problem.n_rows, problem.targets.n_tasks
    saved = 2.0 * q * _PASS_SLOWDOWN * _PASSES_PER_SOLVE * n_solves
    return is_compressible(problem) and d <= min(saved, _MOST_FEATURES)


def compress(problem: Problem, *, exact: bool) -> Problem | None:
    """The same problem on at most ``n_features + n_tasks`` samples, or None where the design cannot deliver it.

    ``exact`` asks for a QR factorisation, as exact as the data themselves; else the Gram matrix is factorised, and
    certificates allow for its rounding.
    """
    targets, source = problem.targets, problem.design
    data = source.compressed(targets.Y, targets.w, exact=exact)
    if data is None:
        return None
    design = CompressedDesign.of(data, source.passes)
    w = np.ones((design.n_samples, 1))
    return replace(
        problem,
        design=design,
        targets=replace(targets, Y=data.T, w=w),
        rounding_norms=np.maximum(data.x_size, problem.norms),
        product_error=data.error,
        gram_cache=GramCache(design, w),
    )


def build_problem_of_data(X: Any, Y: Any, lam: Any, *, total_weight: float | None = None, **settings: Any) -> Problem:
    """The problem of data as :func:`~groupowl.problem.build_problem` makes it, or of their sufficient statistics."""
    if not isinstance(X, SufficientStatistics):
        return build_problem(X, Y, lam, total_weight=total_weight, **settings)
    if Y is not None or settings.get("sample_weight") is not None:
        given = "the targets, y or Y," if Y is not None else "sample_weight"
        raise ValueError(
            f"X is SufficientStatistics, which know targets and weights already: leave {given} out (None)."
        )
    if resolve_loss(settings.get("loss", "squared")).name != "squared":
        raise ValueError("SufficientStatistics serve loss='squared' only: other losses need the samples themselves.")
    if (unpenalized := settings.get("unpenalized")) is not None and len(unpenalized):
        raise ValueError("unpenalized columns need the samples themselves, not SufficientStatistics.")
    problem = problem_of_statistics(
        X,
        fit_intercept=settings.get("fit_intercept", False),
        standardized=settings.get("standardized", False),
        total_weight=X.total_weight if total_weight is None else total_weight,
    )
    return problem if lam is LATER else problem.with_lam(check_sequence("lam", lam, problem.n_rows))


def n_samples_of(X: Any, problem: Problem) -> int:
    """Samples behind a problem, however few rows stand for them."""
    return X.n_samples if isinstance(X, SufficientStatistics) else problem.design.n_samples


@np.errstate(all="ignore")
def lam_max(
    X: Any,
    Y: Any,
    weights: Any,
    *,
    loss: Any = "squared",
    fit_intercept: bool = False,
    sample_weight: Any = None,
) -> float:
    """Smallest strength at which no feature is selected: ``solve(X, Y, lam_max * weights)`` is zero.

    Parameters
    ----------
    X : array-like, sparse matrix, data frame, design or SufficientStatistics
        Data, as :func:`groupowl.solve` takes them, or what is known of them.
    Y : array-like of shape (n_samples,) or (n_samples, n_tasks), or None
        Targets; one-hot rows or class probabilities for ``loss="multinomial"``. None for statistics, which know them.
    weights : array-like of shape (n_features,), str or callable
        Weight sequence, or the name of one.
    loss : {"squared", "multinomial"} or Loss, default="squared"
        Loss, summed over samples.
    fit_intercept : bool, default=False
        Whether the model has an unpenalised intercept.
    sample_weight : array-like of shape (n_samples,), default=None
        Non-negative weights of the samples.

    Returns
    -------
    float
        The dual norm, for these weights, of the gradient of the loss at the model without features.

    Examples
    --------
    >>> import groupowl as go
    >>> round(go.lam_max([[1.0, 0.0], [0.0, 1.0]], [3.0, 1.0], [1.0, 0.5]), 6)
    3.0
    """
    problem = build_problem_of_data(X, Y, LATER, loss=loss, fit_intercept=fit_intercept, sample_weight=sample_weight)
    sequence = resolve_weights(
        weights,
        n_features=problem.n_rows,
        n_tasks=problem.targets.n_tasks,
        n_samples=n_samples_of(X, problem),
    )
    return problem.lam_max(sequence)


def problem_of_statistics(
    statistics: SufficientStatistics, *, fit_intercept: bool, standardized: bool = False, total_weight: float = 1.0
) -> Problem:
    """The squared-loss problem of samples that are known by their statistics only, with weights of this sum.

    Its OWL weights follow by :meth:`~groupowl.problem.Problem.with_lam`. Certificates allow for the rounding of the
    statistics.
    """
    statistics.check_magnitude(fit_intercept)
    data = statistics.compress(fit_intercept).weighted(total_weight / statistics.total_weight)
    factors = np.ones(statistics.n_features)
    scale_error = 0.0
    if fit_intercept or standardized:
        factors = statistics.varying()[0].astype(np.float64)
    if standardized:
        deviation, scale_error = statistics.deviations()
        factors = np.divide(factors, deviation, out=np.zeros_like(factors), where=factors > 0.0)
    data = data.scaled(factors)
    design = CompressedDesign.of(data, factors=factors)
    design.treated_as_constant = np.flatnonzero((factors == 0.0) & (np.diagonal(statistics.gram) > 0.0))
    w = np.ones((design.n_samples, 1))
    square = float(np.sum(data.T * data.T))
    nothing = np.zeros(statistics.n_tasks)
    # What is known of the variation of the targets, with its error, in weights of the sum asked for.
    squares = (statistics.yy + statistics.error * statistics.y_size**2) * (total_weight / statistics.total_weight)
    errors = center_errors(squares, data.y_mean, statistics.varying()[1] | (not fit_intercept), total_weight)
    targets = Targets(
        data.T,
        w,
        total_weight,
        norm=float(np.linalg.norm(data.y_size)),
        center=data.y_mean,
        null_intercept=nothing,
        null_loss=0.5 * square,
        free_center=np.zeros((0, statistics.n_tasks)),
        null_free=np.zeros((0, statistics.n_tasks)),
        center_error=errors[0],
        hides_variation=errors[1],
    )
    norms = (1.0 + scale_error) * design.column_norms(w)
    check_products(norms, targets)
    return Problem(
        design,
        resolve_loss("squared"),
        targets,
        lam=np.ones(len(norms)),
        norms=norms,
        rounding_norms=np.maximum(data.x_size, norms),
        fit_intercept=fit_intercept,
        intercept_scale=0.0,
        gram_cache=GramCache(design, w),
        product_error=data.error,
        scale_error=scale_error,
    )


def needs_exactness(tol: float) -> bool:
    """Whether a proof to this relative tolerance may fail by the rounding of a Gram matrix."""
    return tol < _GRAM_TOLERANCE


def is_nearly_null(null_pulls: FloatArray, lam: FloatArray) -> bool:
    """Whether rounding decides if these weights select anything: then the data themselves must tell.

    ``null_pulls`` are those of the model without features.
    """
    return owl_gauge(null_pulls, lam) <= 1.0 + _NULL_RTOL
