"""From data as users give them to a problem, and the smallest penalty that selects nothing."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np

from .._checks import check_targets, truth_value
from .._typing import FloatArray, Handle, IndexArray
from ..designs import (
    Design,
    SufficientStatistics,
    as_design,
    check_entries,
    project_out,
    scale_columns,
    standardize,
)
from ..designs.base import check_overflow, check_underflow
from ..designs.dense import CompressedDesign, GramCache
from ..designs.mixed import orthonormalized
from ..designs.observed import TaskGramCache, norms_of_tasks, pooled_weights, standardize_tasks
from ..inputs import feature_names, penalty_options
from ..losses import Loss, check_offset, resolve_loss, with_offset
from ..norm import PLAIN, GroupOWL, PenaltyOptions
from ..norm.kernels import LARGEST_PRODUCT, SMALLEST_NORM
from ..weights import check_sequence, resolve_weights
from .bounds import UnitNorms
from .problem import Problem
from .samples import Samples, adopt_samples, center_errors
from .unpenalized import Unpenalized, fit_unpenalized

#: Stands for weights that are not known yet.
LATER = object()
# Options of the penalty by default.
_NOTHING_ASKED: dict[str, Any] = {
    "feature_groups": None,
    "group_scale": "size",
    "penalty_factor": None,
    "ridge": 0.0,
    "positive": False,
}


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
    options: PenaltyOptions = PLAIN,
    offset: Any = None,
    offset_size: float = 0.0,
) -> Problem:
    """Check the data and build the problem; :data:`LATER` weights follow by :meth:`Problem.with_lam`.

    Sample weights are scaled to ``total_weight`` if that is given. ``lam`` has a weight for each unit, but for columns
    whose factor of the penalty is zero: they are zero in the problem, where the smallest weight is repeated for them.
    ``offset_size`` is the largest offset that was taken off the targets before.
    """
    resolved = resolve_loss(loss)
    fit_intercept = truth_value("fit_intercept", fit_intercept)
    has_norms_of_tasks = _weighs_entries(Y, sample_weight)
    design = as_design(X, is_looked_at=not has_norms_of_tasks)
    _check_blocks(resolved, design, fit_intercept)
    n_given = 0 if unpenalized is None else len(unpenalized)
    unpenalized = options.with_unpenalized(unpenalized)
    n_units = options.n_units(design.n_features, unpenalized)
    per = "feature" if options.feature_groups is None else "group of features"
    lam = _all_weights(lam, n_units, len(unpenalized) - n_given, per=per)
    if design.known_statistics is not None:
        _check_statistics(resolved, Y, sample_weight, unpenalized, offset)
        return problem_of_statistics(
            design.known_statistics,
            fit_intercept=fit_intercept,
            standardized=standardized,
            total_weight=design.known_statistics.total_weight if total_weight is None else total_weight,
            options=options,
        ).with_lam(lam)
    if offset is not None:
        resolved, Y, offset_size = _with_offset(design, resolved, Y, offset)
    reason = resolved.needs_whole_samples
    whole = f"loss={resolved.name!r} needs all targets of a sample, because {reason}" if reason else ""
    design, Y, w = design.adopt(Y, sample_weight, resolved.check_targets, total_weight, whole, resolved.targets)
    _check_signs(resolved, options, unpenalized)
    penalty = options.penalty(lam, unpenalized)
    try:
        return problem_of_samples(
            design, resolved, Y, w, penalty, fit_intercept, standardized, unpenalized, options, offset_size
        )
    except ValueError:
        if has_norms_of_tasks:  # NaN in X has been seen by its norms only, as columns that are too large
            check_entries(X)
        raise


def _weighs_entries(Y: Any, sample_weight: Any) -> bool:
    """Whether weights are known to differ between tasks: by themselves, or because targets are missing."""
    is_plain = isinstance(Y, np.ndarray) and Y.dtype == np.float64
    return np.ndim(sample_weight) == 2 or (is_plain and bool(np.isnan(Y).any()))


def _all_weights(lam: Any, n_units: int, n_free: int, *, per: str) -> FloatArray:
    """Weights of all units, from those of all but some that pay nothing, or ones for weights that follow."""
    if lam is LATER:
        return np.ones(n_units)
    lam = check_sequence("lam", lam, n_units - n_free, per=per)
    return np.concatenate([lam, np.full(n_free, lam[-1])]) if n_free else lam


def options_of(X: Any, **asked: Any) -> tuple[Any, PenaltyOptions]:
    """X, as a design where options are asked for, and the options of the penalty that users ask for."""
    if all(_is_default(asked[name], default) for name, default in _NOTHING_ASKED.items()):
        return X, PLAIN
    design = as_design(X)
    options = penalty_options(design.n_features, feature_names(X) or design.feature_names, **asked)
    return X if options.is_plain else design, options


def _is_default(value: Any, default: Any) -> bool:
    return value is default or (isinstance(value, int | float | str) and bool(value == default))


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
    options: PenaltyOptions = PLAIN,
    offset_size: float = 0.0,
) -> Problem:
    """The problem of samples of positive weight, all of which was checked but how large numbers are."""
    center = fit_intercept or loss.ignores_constants
    rescaled = options.scaled if options.scales_columns else None
    has_entry_weights = design.patterns is not None
    loss = loss.per_entry() if has_entry_weights else loss
    standardizing = standardize_tasks if has_entry_weights else standardize
    if rescaled and not (center or standardized or options.depends_on_data):
        factors = rescaled(np.ones(design.n_features), np.ones(design.n_features))
        if unpenalized is not None:
            factors[unpenalized] = 1.0
        design = scale_columns(design, factors)
    else:
        design = standardizing(design, w, center=center, scale=standardized, unscaled=unpenalized, rescaled=rescaled)
    basis = None
    if unpenalized is not None and len(unpenalized):
        design = project_out(design, unpenalized, design.map(pooled_weights, w) if has_entry_weights else w)
        basis = design.basis
    groups, scales = options.orthonormal_groups(np.zeros(0, dtype=np.intp) if unpenalized is None else unpenalized)
    if groups and has_entry_weights:
        raise ValueError(
            "group_scale='orthonormal' needs the same samples in all tasks, and targets are missing or sample_weight "
            "differs between tasks. Use group_scale='frobenius'."
        )
    if groups:
        design = orthonormalized(design, groups, scales, w, float(design.reduce(np.sum, w)))
    center = fit_intercept and loss.centers_targets
    samples = adopt_samples(design, loss, Y, w, center=center, offset_size=offset_size)
    block = fit_unpenalized(design, loss, samples, fit_intercept, basis)
    task_norms = None
    if has_entry_weights:
        task_norms, whole_norms = norms_of_tasks(design, w, center=fit_intercept)
        norms = task_norms.max(axis=1)
        gram_cache: GramCache = TaskGramCache(design, w)
    else:
        norms = whole_norms = design.column_norms(w)
        gram_cache = GramCache(design, w)
    _check_magnitude(design, norms, block)
    if not loss.is_quadratic and (fit_intercept or (basis is not None and basis.rank > 0)):
        # As long as the longest column: the block is then never what limits the step or slows the solver down.
        block = replace(block, scale=float(norms.max()) or 1.0)
    rounding_norms = design.rounding_norms(whole_norms, samples.total_weight)
    return Problem(
        design,
        loss,
        block.samples,
        penalty,
        block,
        norms,
        rounding_norms=rounding_norms,
        gram_cache=gram_cache,
        unit_bounds=_unit_bounds(design, w, penalty, norms, rounding_norms),
        task_norms=task_norms,
    )


def _unit_bounds(design: Design, w: Handle, penalty: GroupOWL, *norms: Any) -> UnitNorms | None:
    return None if penalty.rows_are_units else UnitNorms(design, w, penalty, *norms)


@np.errstate(all="ignore")
def with_targets(problem: Problem, Y: Handle) -> Problem:
    """The same without unpenalized columns and with other targets; what is known of X and of the weights stays."""
    design, loss, constant = problem.design, problem.loss, problem.fit_intercept
    samples = adopt_samples(design, loss, Y, problem.samples.w, center=constant and loss.centers_targets)
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


def _with_offset(design: Design, loss: Loss, Y: Any, offset: Any) -> tuple[Loss, FloatArray, float]:
    """The loss with an offset, its targets, and the size of what was taken off them."""
    if design.is_distributed:
        from ..designs import row_chunks, rows_like

        Y = row_chunks("Y", Y)[0]
        Y = Y[:, None] if Y.ndim == 1 else Y
        values = check_offset(np.asarray(offset), loss, Y.shape)
        loss, Y, size = with_offset(loss, Y, None if values is None else rows_like(values, Y))
        return loss, Y.rechunk({1: -1}), size
    Y = check_targets(Y, design.n_samples, may_miss=not loss.needs_whole_samples)
    values = check_offset(offset, loss, Y.shape, Y)
    return with_offset(loss, Y if np.isnan(Y).any() else loss.check_targets(Y), values)


def _check_signs(loss: Loss, options: PenaltyOptions, unpenalized: IndexArray) -> None:
    """Refuse signs of coefficients that a loss, or columns without penalty, cannot have."""
    if options.signs is None:
        return
    if loss.parameters_per_feature(2) < 2:
        raise ValueError(
            f"positive: loss={loss.name!r} has a coefficient for each class, of which only differences count: their "
            "signs mean nothing. Two classes are one column with loss='logistic', whose coefficients have signs."
        )
    free = unpenalized[options.signs[unpenalized] != 0.0]
    if len(free) and not abs(options.signs.sum()) == len(options.signs):  # those of all columns mean the penalized ones
        raise ValueError(
            f"positive asks for a sign of column {free[0]}, which is not penalized: such columns are free. Leave it "
            "out of positive, or penalize it a little by penalty_factor."
        )


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
            "fit_intercept=False. Columns of X are centered anyway."
        )


def warn_of_lost_samples(problem: Problem) -> None:
    """Warn the caller's caller that samples without any observed target are left out; not of those of weight zero."""
    n_lost, n_samples = problem.design.left_out
    if n_lost:
        has, is_ = ("has", "is") if n_lost == 1 else ("have", "are")
        warnings.warn(
            f"{n_lost} of {n_samples} samples {has} no observed target and {is_} left out. "
            "Those that are removed before, or have sample_weight 0, are left out without a warning.",
            UserWarning,
            stacklevel=3,
        )


# Sufficient statistics ----------------------------------------------------------------------------------


def _check_statistics(loss: Loss, Y: Any, sample_weight: Any, unpenalized: IndexArray | None, offset: Any) -> None:
    """Refuse what statistics know already, or cannot serve."""
    if offset is not None:
        raise ValueError("X is SufficientStatistics: take the offset off the targets before they are made.")
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
    statistics: SufficientStatistics,
    *,
    fit_intercept: bool,
    standardized: bool = False,
    total_weight: float = 1.0,
    options: PenaltyOptions = PLAIN,
) -> Problem:
    """The squared-loss problem of samples that are known by their statistics only, with weights of this sum.

    Its OWL weights follow by :meth:`~groupowl.problem.Problem.with_lam`. Certificates allow for the rounding of the
    statistics.
    """
    if options.orthonormal_groups(np.zeros(0, dtype=np.intp))[0]:
        raise ValueError("group_scale='orthonormal' needs the samples themselves, not SufficientStatistics.")
    statistics.check_magnitude(fit_intercept)
    data = statistics.compress(fit_intercept).weighted(total_weight / statistics.total_weight)
    factors = np.ones(statistics.n_features)
    scale_error = 0.0
    if fit_intercept or standardized:
        factors = statistics.varying()[0].astype(np.float64)
    deviation = np.ones_like(factors)
    if standardized or options.scales_columns:
        deviation, scale_error = statistics.deviations()
    if standardized:
        factors = np.divide(factors, deviation, out=np.zeros_like(factors), where=factors > 0.0)
    is_constant = factors == 0.0
    if options.scales_columns:
        factors = options.scaled(factors, deviation)
    data = data.scaled(factors)
    design = CompressedDesign(data.R, unit=0.0)
    design.mean, design.inverse_scale = data.x_mean, factors
    design.deviation = deviation if standardized else None
    design.treated_as_constant = np.flatnonzero(is_constant & (np.diagonal(statistics.gram) > 0.0))
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
    alone = np.zeros(0, dtype=np.intp)  # no column is without penalty
    penalty = options.penalty(np.ones(options.n_units(len(norms), alone)), alone)
    rounding_norms = np.maximum(data.x_size, norms)
    return Problem(
        design,
        loss,
        samples,
        penalty,
        block,
        norms,
        rounding_norms=rounding_norms,
        gram_cache=GramCache(design, w),
        product_error=data.error,
        scale_error=scale_error,
        unit_bounds=None
        if penalty.rows_are_units
        else UnitNorms(design, w, penalty, norms, rounding_norms, data.error),
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
    feature_groups: Any = None,
    group_scale: str = "size",
    penalty_factor: Any = None,
    offset: Any = None,
    ridge: float = 0.0,
    positive: Any = False,
) -> float:
    """Smallest alpha at which no feature is selected: ``solve(X, Y, lam_max * weights)`` is zero.

    Parameters
    ----------
    X : array-like, sparse matrix, data frame, design or SufficientStatistics
        Data, as :func:`groupowl.solve` takes them, or what is known of them.
    Y : array-like of shape (n_samples,) or (n_samples, n_tasks), or None
        Targets, NaN where they were not observed; one-hot rows or class probabilities for ``loss="multinomial"``. None
        for statistics, which know them.
    weights : array-like of shape (n_features,), str or callable
        Weight sequence, or the name of one.
    loss : {"squared", "multinomial", "logistic", "poisson", "huber", "cox"} or Loss, default="squared"
        Loss, summed over samples.
    fit_intercept : bool, default=False
        Whether the model has an unpenalized intercept.
    sample_weight : array-like of shape (n_samples,) or (n_samples, n_tasks), default=None
        Non-negative weights of the samples, or of each of their targets.
    feature_groups, group_scale, penalty_factor : optional
        Groups and scales of columns as for :func:`groupowl.solve`; ``weights`` then has one weight per group.
    offset : array-like of shape (n_samples,) or (n_samples, n_tasks), default=None
        Numbers that are added to the predictors, with a coefficient of one.
    ridge, positive : optional
        As for :func:`groupowl.solve`; a ridge changes nothing here.

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
    X, options = options_of(
        X,
        feature_groups=feature_groups,
        group_scale=group_scale,
        penalty_factor=penalty_factor,
        ridge=ridge,
        positive=positive,
    )
    problem = build_problem(
        X,
        Y,
        LATER,
        loss=loss,
        fit_intercept=fit_intercept,
        sample_weight=sample_weight,
        options=options,
        offset=offset,
    )
    n_free = 0 if problem.unpenalized.basis is None else len(problem.unpenalized.basis.columns)
    sequence = resolve_weights(
        weights,
        n_features=problem.penalty.n_units - n_free,
        n_tasks=problem.samples.n_tasks,
        n_samples=problem.samples.count,
        n_directions=problem.loss.parameters_per_feature(problem.samples.n_tasks),
        per="feature" if options.feature_groups is None else "group of features",
    )
    return problem.lam_max(np.concatenate([sequence, np.full(n_free, sequence[-1])]))
