"""From data as users give them to a problem, and the smallest penalty that selects nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from .._checks import truth_value
from .._typing import FloatArray, Handle, IndexArray
from ..designs import Design, SufficientStatistics, as_design, project_out, standardize
from ..designs.base import check_overflow, check_underflow
from ..designs.dense import CompressedDesign, GramCache
from ..losses import Loss, resolve_loss
from ..norm import GroupOWL
from ..norm.kernels import LARGEST_PRODUCT, SMALLEST_NORM
from ..weights import check_sequence, resolve_weights
from .problem import Problem
from .samples import Samples, adopt_samples, center_errors
from .unpenalized import Unpenalized, fit_unpenalized

#: Stands for weights that are not known yet.
LATER = object()


@np.errstate(all="ignore")  # what overflows is refused below, not warned about
def build_problem(
    X: Any,
    Y: Any,
    lam: Any,
    *,
    loss: Any = "squared",
    fit_intercept: bool = False,
    sample_weight: Any = None,
    standardized: bool = False,
    unpenalized: IndexArray | None = None,
    total_weight: float | None = None,
) -> Problem:
    """Check data as users give them and make the problem; :data:`LATER` weights follow by :meth:`Problem.with_lam`.

    Sample weights are scaled to ``total_weight`` if that is given.
    """
    resolved = resolve_loss(loss)
    fit_intercept = truth_value("fit_intercept", fit_intercept)
    design = as_design(X)
    _check_blocks(resolved, design, fit_intercept)
    lam = np.ones(design.n_features) if lam is LATER else check_sequence("lam", lam, design.n_features)
    if design.known_statistics is not None:
        _check_statistics(resolved, Y, sample_weight, unpenalized)
        return problem_of_statistics(
            design.known_statistics,
            fit_intercept=fit_intercept,
            standardized=standardized,
            total_weight=design.known_statistics.total_weight if total_weight is None else total_weight,
        ).with_lam(lam)
    design, Y, w = design.adopt(Y, sample_weight, resolved.check_targets, total_weight)
    penalty = GroupOWL(lam)
    return problem_of_samples(design, resolved, Y, w, penalty, fit_intercept, standardized, unpenalized)


@np.errstate(all="ignore")
def problem_of_samples(
    design: Design,
    loss: Loss,
    Y: Handle,
    w: Handle,
    penalty: GroupOWL,
    fit_intercept: bool,
    standardized: bool = False,
    unpenalized: IndexArray | None = None,
) -> Problem:
    """The problem of samples of positive weight, all of which was checked but how large numbers are."""
    center = fit_intercept or loss.ignores_constants
    design = standardize(design, w, center=center, scale=standardized, unscaled=unpenalized)
    basis = None
    if unpenalized is not None and len(unpenalized):
        design = project_out(design, unpenalized, w)
        basis = design.basis
    samples = adopt_samples(design, Y, w, center=fit_intercept and loss.is_quadratic)
    block = fit_unpenalized(design, loss, samples, fit_intercept, basis)
    norms = design.column_norms(w)
    _check_magnitude(design, norms, block)
    if not loss.is_quadratic and (fit_intercept or (basis is not None and basis.rank > 0)):
        # As long as the longest column: the block is then never what limits the step or slows the solver down.
        block = replace(block, scale=float(norms.max()) or 1.0)
    return Problem(
        design,
        loss,
        block.samples,
        penalty,
        block,
        norms,
        rounding_norms=design.rounding_norms(norms, samples.total_weight),
        gram_cache=GramCache(design, w),
    )


@np.errstate(all="ignore")
def with_targets(problem: Problem, Y: Handle) -> Problem:
    """The same without unpenalized columns and with other targets; what is known of X and of the weights stays."""
    design, loss, constant = problem.design, problem.loss, problem.fit_intercept
    samples = adopt_samples(design, Y, problem.samples.w, center=constant and loss.is_quadratic)
    block = fit_unpenalized(design, loss, samples, constant, None)
    _check_magnitude(design, problem.norms, block)
    return replace(problem, samples=block.samples, unpenalized=replace(block, scale=problem.unpenalized.scale))


def compressed_together(problems: list[Problem]) -> list[Problem]:
    """Problems that differ in their targets alone, on few samples each that share one Gram matrix.

    For designs in this process; the problems as they are where the design cannot deliver it.
    """
    design, samples = problems[0].design, problems[0].samples
    data = design.compressed(np.hstack([problem.samples.Y for problem in problems]), samples.w, exact=False)
    if data is None:
        return problems
    parts = np.split(data.T, np.cumsum([problem.samples.n_tasks for problem in problems])[:-1], axis=1)
    pairs = zip(problems, parts, strict=True)
    return [problem.on_compressed(replace(data, T=np.ascontiguousarray(T))) for problem, T in pairs]


def _check_magnitude(design: Design, norms: FloatArray, block: Unpenalized) -> None:
    """Refuse data whose squares leave the range of floating-point numbers: nothing could be proved about them."""
    check_overflow(norms)
    if not np.isfinite(block.samples.norm + block.null_loss + block.samples.total_weight):
        raise ValueError("The targets (y or Y) or sample_weight are so large that the loss overflows. Rescale them.")
    check_underflow(design, np.flatnonzero(norms < SMALLEST_NORM))
    _check_products(norms, block.samples)


def _check_products(norms: FloatArray, samples: Samples) -> None:
    """Refuse columns and targets whose products leave the range of floating-point numbers."""
    product = float(norms.max()) * samples.norm
    if product != 0.0 and not SMALLEST_NORM <= product <= LARGEST_PRODUCT:
        size, event = ("small", "underflow") if product < 1.0 else ("large", "overflow")
        raise ValueError(
            f"X and Y are so {size} that their products {event}: columns of X have norms up to {norms.max():g}, Y has "
            f"{samples.norm:g}. Rescale them, or the sample weights."
        )


def _check_blocks(loss: Loss, design: Design, fit_intercept: bool) -> None:
    """Refuse data and models that a loss which is no sum over samples, or ignores constants, cannot serve."""
    if not (loss.is_additive or design.is_one_block):
        raise ValueError(
            f"loss={loss.name!r} compares samples with each other and needs all of them in this process. Give X as an "
            "array, a sparse matrix or a file; X.compute() makes an array of a collection of Dask."
        )
    if loss.ignores_constants and fit_intercept:
        raise ValueError(
            f"loss={loss.name!r} does not change with a constant, so that there is no intercept: use "
            "fit_intercept=False. Columns of X are centered all the same."
        )


# Sufficient statistics ----------------------------------------------------------------------------------


def _check_statistics(loss: Loss, Y: Any, sample_weight: Any, unpenalized: IndexArray | None) -> None:
    """Refuse what statistics know already, or cannot serve."""
    if Y is not None or sample_weight is not None:
        given = "the targets, y or Y," if Y is not None else "sample_weight"
        raise ValueError(
            f"X is SufficientStatistics, which know targets and weights already: leave {given} out (None)."
        )
    if not loss.is_quadratic:
        raise ValueError("SufficientStatistics serve loss='squared' only: other losses need the samples themselves.")
    if unpenalized is not None and len(unpenalized):
        raise ValueError("unpenalized columns need the samples themselves, not SufficientStatistics.")


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
    design = CompressedDesign(data.R, unit=0.0)
    design.mean, design.inverse_scale = data.x_mean, factors
    design.treated_as_constant = np.flatnonzero((factors == 0.0) & (np.diagonal(statistics.gram) > 0.0))
    # What is known of the variation of the targets, with its error, in weights of the sum asked for.
    squares = (statistics.yy + statistics.error * statistics.y_size**2) * (total_weight / statistics.total_weight)
    errors = center_errors(squares, data.y_mean, statistics.varying()[1] | (not fit_intercept), total_weight)
    w = np.ones((design.n_samples, 1))
    q = statistics.n_tasks
    norm = float(np.linalg.norm(data.y_size))
    samples = Samples(
        data.T, w, q, statistics.n_samples, total_weight, statistics.y_mean, data.y_mean, *errors, norm=norm
    )
    loss = resolve_loss("squared")
    null_loss = 0.5 * float(np.sum(data.T * data.T))
    nothing = np.zeros((0, q))
    null = np.zeros((int(fit_intercept), q))
    block = Unpenalized(design, loss, samples, fit_intercept, None, nothing, null, null_loss, in_samples=False)
    norms = (1.0 + scale_error) * design.column_norms(w)
    _check_products(norms, samples)
    return Problem(
        design,
        loss,
        samples,
        GroupOWL(np.ones(len(norms))),
        block,
        norms,
        rounding_norms=np.maximum(data.x_size, norms),
        gram_cache=GramCache(design, w),
        product_error=data.error,
        scale_error=scale_error,
    )


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
    """Smallest alpha at which no feature is selected: ``solve(X, Y, lam_max * weights)`` is zero.

    Parameters
    ----------
    X : array-like, sparse matrix, data frame, design or SufficientStatistics
        Data, as :func:`groupowl.solve` takes them, or what is known of them.
    Y : array-like of shape (n_samples,) or (n_samples, n_tasks), or None
        Targets; one-hot rows or class probabilities for ``loss="multinomial"``. None for statistics, which know them.
    weights : array-like of shape (n_features,), str or callable
        Weight sequence, or the name of one.
    loss : {"squared", "multinomial", "logistic", "poisson", "huber", "cox"} or Loss, default="squared"
        Loss, summed over samples.
    fit_intercept : bool, default=False
        Whether the model has an unpenalized intercept.
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
    problem = build_problem(X, Y, LATER, loss=loss, fit_intercept=fit_intercept, sample_weight=sample_weight)
    sequence = resolve_weights(
        weights,
        n_features=problem.n_rows,
        n_tasks=problem.samples.n_tasks,
        n_samples=problem.samples.count,
    )
    return problem.lam_max(sequence)
