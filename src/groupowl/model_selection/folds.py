"""Which samples train and which test, the sufficient statistics of both where these make folds cheaper, and scores."""

from __future__ import annotations

import inspect
import numbers
from collections.abc import Callable, Iterable
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property, partial, reduce
from itertools import accumulate
from operator import add
from typing import Any, NamedTuple

import numpy as np
from sklearn import get_config
from sklearn.metrics import get_scorer
from sklearn.model_selection import KFold, StratifiedKFold

from .._checks import entry_weights, list_columns, sample_indices, take_rows
from .._typing import FloatArray, IndexArray
from ..designs import Design, SufficientStatistics, as_design
from ..losses import Loss, resolve_loss
from ..model import Model
from ..norm.kernels import EPS
from ..path import Solution
from ..problem import problem_of_statistics
from ..solvers import Solver
from ..solvers.continuation import wants_statistics

# Folds by default, where there are so many samples (of each class).
_DEFAULT_FOLDS = 5
# How the first argument of a metric is called.
_TARGET_NAMES = ("y_true", "y", "labels_true")


class Fold(NamedTuple):
    """Indices of the samples of positive weight that a model is fitted to, and of those it is scored on."""

    train: IndexArray
    test: IndexArray


def criteria_serve(fitting: Any) -> bool:
    """Whether an information criterion can choose alpha: it needs a likelihood, and degrees of freedom."""
    options = fitting.options
    has_freedom = fitting.relaxed or (options.ridge == 0.0 and options.signs is None)
    return resolve_loss(fitting.loss).is_likelihood and has_freedom


def make_folds(
    cv: Any,
    X: Any,
    y: Any,
    classes: Any,
    sample_weight: FloatArray,
    params: dict[str, Any],
    *,
    has_criteria: bool = True,
) -> list[Fold]:
    """Folds of the samples of positive weight; ``params`` are for a splitter, and no others take any.

    ``has_criteria`` says whether messages may advise an information criterion.
    """
    if params.get("groups") is not None and not hasattr(cv, "split"):
        raise ValueError(
            f"groups were given, but cv={cv!r} does not keep groups together. "
            "Use a splitter that does, for example cv=sklearn.model_selection.GroupKFold()."
        )
    if cv is None or isinstance(cv, numbers.Integral):
        present = np.flatnonzero(sample_weight)  # so that weight zero is the same as no sample
        labels = None if classes is None else y[present]
        if cv is not None and int(cv) < 2:  # True is 1
            raise ValueError(f"cv must be at least 2 folds, got {cv!r}.")
        whose, least = f"X (n_samples = {len(present)})", len(present)
        remedy = ", or choose by an information criterion, for example selection='bic', which needs none"
        remedy = remedy if has_criteria else ""
        if classes is not None:
            counts = np.array([np.count_nonzero(labels == label) for label in classes])
            rarest = int(np.argmin(counts))
            whose, least = f"y: class {classes[rarest : rarest + 1].tolist()[0]!r}", int(counts[rarest])
            remedy = ", or merge or remove the class, or leave classes apart, for example by cv=KFold(5, shuffle=True)"
        needed = 2 if cv is None else int(cv)
        if least < needed:
            raise ValueError(
                f"cv={cv}: {whose} has {least} sample{'s' if least != 1 else ''} of positive weight, but {needed} "
                f"folds need at least {needed}. Use fewer folds{remedy}."
            )
        n_folds = min(_DEFAULT_FOLDS if cv is None else int(cv), least)
        splitter = KFold(n_folds) if classes is None else StratifiedKFold(n_folds)
        splits = list(splitter.split(np.zeros((len(present), 1)), labels))
        for i, (train, test) in enumerate(splits):
            splits[i] = (present[train], present[test])
        return check_folds(splits, sample_weight)
    if hasattr(cv, "split") and not isinstance(cv, str | bytes | type):
        return check_folds(cv.split(X, y, **params), sample_weight)
    if isinstance(cv, Iterable) and not isinstance(cv, str | bytes):
        return check_folds(cv, sample_weight)
    raise TypeError(
        "cv must be None, a number of folds, a splitter with a method split, or an iterable of (train, test) indices; "
        f"got {cv!r} of type {type(cv).__name__}."
    )


def check_folds(splits: Iterable[Any], sample_weight: FloatArray) -> list[Fold]:
    """Folds from pairs of indices or masks; samples of weight zero, and folds that test no others, are not there."""
    folds, n_samples = [], len(sample_weight)
    for i, split in enumerate(splits):
        try:
            train, test = split
        except (TypeError, ValueError) as error:
            raise ValueError(f"cv must yield pairs (train, test) of indices, but split {i} is {split!r}.") from error
        parts = []
        for name, part in (("train", train), ("test", test)):
            remedy = "The splits must have been made for the X and y of this fit."
            indices = sample_indices(f"the {name} part of split {i} of cv", part, n_samples, remedy)
            parts.append(indices[sample_weight[indices] > 0.0])
        if len(parts[0]) == 0:
            raise ValueError(
                f"split {i} of cv has no training samples of positive weight. Use fewer folds, or a splitter that "
                "keeps samples of positive weight in every training set."
            )
        if len(parts[1]):
            folds.append(Fold(*parts))
    if not folds:
        raise ValueError(
            "cv yields no samples to score: at least one split needs a test sample of positive weight. "
            "If cv is a generator, it may be used up; give a list of splits instead."
        )
    return folds


def check_training_tasks(number: int, data: Any, loss: Loss, weight: FloatArray, fold: Fold) -> None:
    """Refuse a fold whose training samples have no observed target, or no event, of some task."""
    Y = data.Y[fold.train]
    w = entry_weights(Y, weight[fold.train], data.n_targets)[1]
    has_times = loss.target == "times"
    counts = (loss.observed(Y) > 0.0) & (w > 0.0) if has_times else np.broadcast_to(w > 0.0, (len(w), data.n_targets))
    empty = np.flatnonzero(~counts.any(axis=0)).tolist()
    if empty:
        names = data.labels.get("target_names_")
        which = f" in {list_columns(empty, None if names is None else list(names))} of y"
        what = f"event{which if data.n_targets > 1 else ''}" if has_times else f"observed target{which}"
        raise ValueError(
            f"the training samples of split {number} of cv have no {what}. Use more folds, "
            "shuffled ones as cv=KFold(5, shuffle=True), or a splitter that keeps some of them in every training set."
        )


def are_complements(folds: Iterable[Fold], n_samples: int) -> bool:
    """Whether each fold trains on exactly those of so many samples that it does not test."""
    pairs = [np.concatenate([fold.train, fold.test]) for fold in folds]
    return all(len(both) == n_samples == len(np.unique(both)) for both in pairs)


def are_partition(folds: list[Fold], n_samples: int) -> bool:
    """Whether each of so many samples is tested exactly once."""
    tested = np.concatenate([fold.test for fold in folds])
    return len(tested) == n_samples == len(np.unique(tested))


# Squared loss with many samples: one pass makes the statistics of every fold, and no fold needs the data again.


@dataclass(frozen=True, eq=False)
class FoldStatistics:
    """Statistics of all samples, and of the test samples of each fold.

    Attributes
    ----------
    total : SufficientStatistics
    parts : list of SufficientStatistics
        Of the test samples of each fold.
    is_partition : bool
        Whether every sample is in exactly one part.
    """

    total: SufficientStatistics
    parts: list[SufficientStatistics]
    is_partition: bool = True

    @cached_property
    def trainings(self) -> list[SufficientStatistics] | None:
        """Statistics of the training set of each fold; None if those of some fold are lost in rounding.

        Adding the other parts loses nothing, so that is done where every sample is in one part, with three additions
        a part.
        """
        if self.is_partition:
            before = list(accumulate(self.parts[:-1]))
            after = list(accumulate(reversed(self.parts[1:])))[::-1]
            return [after[0], *map(add, before[:-1], after[1:]), before[-1]]
        total = self.total.total_weight
        if not all(total - part.total_weight > EPS * total for part in self.parts):
            return None
        return [self.total - part for part in self.parts]

    def are_reliable(self) -> bool:
        """Whether rounding has left enough of what each fold trains on."""
        return self.trainings is not None and all(training.is_reliable() for training in self.trainings)


def statistics_pay(model: Model, solver: Solver, folds: list[Fold], n_solves: int) -> bool:
    """Whether folds are best made from statistics.

    The solver must want statistics, each fold must train on all that it does not test, and the statistics of all folds
    together must not be larger than the data.
    """
    n, d = model.problem.design.shape
    is_wanted = wants_statistics(model.problem, solver, n_solves)
    if not is_wanted or len(model.unpenalized) or n < (len(folds) + 1) * d:
        return False
    return min(len(fold.train) for fold in folds) > d and are_complements(folds, n)


def fold_statistics(X: Any, Y: FloatArray, sample_weight: FloatArray, folds: list[Fold]) -> FoldStatistics:
    """Statistics in one pass over the data where every sample is tested once, in one more per fold where not."""
    design, Y, w = as_design(X).adopt(Y, sample_weight, resolve_loss("squared").check_targets)
    n_present = int(np.count_nonzero(sample_weight))
    place = np.cumsum(sample_weight != 0.0) - 1  # among the samples of positive weight
    if are_partition(folds, n_present):
        labels = np.empty(n_present, dtype=np.intp)
        for number, fold in enumerate(folds):
            labels[place[fold.test]] = number
        parts = design.statistics_of_parts(Y, w, labels, len(folds))
        return FoldStatistics(reduce(add, parts), parts)
    total = design.statistics_of_parts(Y, w, np.zeros(n_present, dtype=np.intp), 1)[0]
    parts = []
    for fold in folds:
        labels = np.full(n_present, -1, dtype=np.intp)  # which is no part
        labels[place[fold.test]] = 0
        parts += design.statistics_of_parts(Y, w, labels, 1)
    return FoldStatistics(total, parts, is_partition=False)


def chosen_statistics(search: Any, folds: list[Fold]) -> FoldStatistics | None:
    """Statistics of all folds, or None where they do not pay or are not reliable; on a cluster they must do."""
    data, fitting, weight = search.data, search.fitting, search.weight
    if search.parts:
        return FoldStatistics(data.X, search.parts)
    if data.is_distributed:
        if not are_complements(folds, int(np.count_nonzero(weight))):
            raise ValueError(
                "cv must train each fold on all samples that it does not test, as KFold does: on a Dask cluster the "
                "statistics of what is left are those of all samples less those of the fold."
            )
    elif fitting.relaxed or not statistics_pay(search.models[0], fitting.settings.solver, folds, len(search.grids[0])):
        return None  # a relaxed fit needs columns that rounding has not touched
    # Only ratios of weights count, and products of the largest may overflow.
    statistics = fold_statistics(data.X, data.Y, weight / weight.max(), folds)
    if statistics.are_reliable():
        return statistics
    if data.is_distributed:
        raise ValueError(
            "the statistics of some folds are lost in the rounding of those of all samples: the sizes of the samples "
            "are too different. Rescale X and y, shuffle the samples, or use data in memory."
        )
    return None


def with_statistics(model: Model, total: SufficientStatistics, standardize: bool) -> Model:
    """The same model, solved from its sufficient statistics; what is known of it is kept."""
    small = problem_of_statistics(
        total, fit_intercept=model.problem.fit_intercept, standardized=standardize, options=model.options
    )
    small.design.passes = model.problem.design.passes  # one count for both
    if model.problem.samples.offset_norm > 0.0:  # of which the statistics know nothing
        norm = max(small.samples.norm, model.problem.samples.norm)
        small = replace(small, samples=replace(small.samples, norm=norm))
    same = copy(model)
    vars(same)["small"] = small
    return same


# Scores of the samples that a fold tests -------------------------------------------------------------------

# Coefficients, or predictors, of solutions that are scored together.
_SCORED_AT_ONCE = 2**20

#: Scores for solutions, at these alphas, with this weight sequence, on some test samples; higher is better.
Score = Callable[[list[Solution], FloatArray, FloatArray], FloatArray]


@dataclass(frozen=True, eq=False)
class LossScore:
    """The score of the loss itself on some samples; the design is that of all samples.

    Of a loss that is no sum over samples, what these add to the score of those that the model was fitted to (Verweij
    and van Houwelingen 1993). The metrics of scikit-learn give the same numbers, but need the samples in memory and
    take 2 to 100 times as long.
    """

    loss: Any
    design: Design
    Y: FloatArray
    sample_weight: FloatArray
    fold: Fold

    @np.errstate(all="ignore")  # a score that overflows is infinite
    def __call__(self, solutions: list[Solution], alphas: FloatArray, weights: FloatArray) -> FloatArray:
        """Score by one product with the test samples for as many solutions as some memory takes."""
        loss = resolve_loss(self.loss)
        known = self.fold.train[:0] if loss.is_additive else self.fold.train
        rows = np.concatenate([known, self.fold.test])
        design = self.design.rows(rows)
        n_tasks = loss.targets(self.Y[:1]).shape[1]
        Y, weight = entry_weights(self.Y[rows], self.sample_weight[rows], n_tasks)
        weight = weight / (weight[len(known) :].sum() / weight.shape[1])
        Y, w = design.samples(Y), design.samples(weight)
        size = max(1, _SCORED_AT_ONCE // (max(design.n_features, design.n_samples) * n_tasks))
        scores = []
        for i in range(0, len(solutions), size):
            B, intercepts = side_by_side(solutions[i : i + size], design.n_features)
            Z = design.matmul(B, intercepts)
            scores.append(design.reduce(partial(_scores, loss, len(known)), Z, Y, w))
        return np.concatenate(scores)


def side_by_side(solutions: list[Solution], n_features: int) -> tuple[FloatArray, FloatArray]:
    """Coefficients of several solutions as one matrix, the columns of one after those of the other; and intercepts."""
    intercepts = np.stack([solution.intercept for solution in solutions])
    n_solutions, n_columns = intercepts.shape
    B = np.zeros((n_features, n_solutions, n_columns))
    which = np.repeat(np.arange(n_solutions), [len(solution.support) for solution in solutions])
    features = np.concatenate([solution.support for solution in solutions])
    B[features, which] = np.concatenate([solution.rows for solution in solutions])
    return B.reshape(n_features, -1), intercepts.ravel()


def _scores(loss: Loss, n_known: int, Z: FloatArray, Y: FloatArray, w: FloatArray) -> FloatArray:
    """The score of each of several predictors, side by side in ``Z``, less that of the first ``n_known`` samples."""
    if loss.is_quadratic:  # which has sums for each of several
        return np.asarray(loss.score(Z.reshape(len(Z), -1, Y.shape[1]), Y[:, None], w[:, None]))
    parts = np.hsplit(Z, Z.shape[1] // loss.targets(Y).shape[1])
    scores = np.array([loss.score(part, Y, w) for part in parts])
    if n_known:
        scores -= [loss.score(part[:n_known], Y[:n_known], w[:n_known]) for part in parts]
    return scores


@dataclass(frozen=True, eq=False)
class StatisticsScore:
    """Minus the mean squared error of samples that are known by their statistics."""

    part: SufficientStatistics

    @np.errstate(all="ignore")  # a score that overflows is infinite
    def __call__(self, solutions: list[Solution], alphas: FloatArray, weights: FloatArray) -> FloatArray:
        """Score without a look at the data."""
        return -np.array([mean_squared_error(self.part, solution) for solution in solutions])


def mean_squared_error(part: SufficientStatistics, solution: Solution) -> float:
    """``sum_i w_i ||y_i - b0 - x_i B||^2 / (W q)``: a part about the means, and one for the distance of the means."""
    chosen, B = solution.support, solution.rows
    explained = 2.0 * part.xy[chosen] - part.gram[np.ix_(chosen, chosen)] @ B
    about_means = np.maximum(part.yy - np.einsum("jk,jk->k", explained, B), 0.0) / part.total_weight
    shift = part.y_mean - solution.intercept - part.x_mean[chosen] @ B
    return float(np.mean(about_means + shift**2))


def scorer_scores(
    scorer: Any,
    estimator: Any,
    data: Any,
    X: Any,
    y: Any,
    params: dict[str, Any],
    rows: IndexArray,
    solutions: list[Solution],
    alphas: FloatArray,
    weights: FloatArray,
) -> FloatArray:
    """What a scorer of scikit-learn, or of users, says of each solution.

    Parameters
    ----------
    scorer : callable
        ``scorer(estimator, X, y, **params)``.
    estimator : GroupOWLBase
        Of one alpha; each solution is given to the scorer as a fitted copy of it, without certificates.
    data : FitData
        All samples.
    X : array, sparse matrix, data frame or Design
        The same samples as scorers get them, with names where there are names.
    y : ndarray
        Targets or labels of all samples.
    params : dict
        Of the scorer, for all samples; those with one entry per sample are cut to the test samples.
    rows : ndarray of int
        The test samples.
    solutions, alphas, weights : list and ndarray
        Solutions, fitted at these alphas with this weight sequence.
    """
    X, y, n = X.rows(rows) if isinstance(X, Design) else take_rows(X, rows), y[rows], data.n_samples
    own = {name: np.ndim(value) >= 1 and len(value) == n for name, value in params.items()}
    params = {name: np.asarray(value)[rows] if own[name] else value for name, value in params.items()}
    scores = []
    for solution, alpha in zip(solutions, alphas.tolist(), strict=True):
        fitted = copy(estimator).set_params(alpha=alpha, weights=weights)
        vars(fitted).update(data.labels, alpha_=alpha, weights_=weights, unpenalized_=data.fitting.unpenalized)
        B = solution.coef(data.n_features)
        fitted.coef_, fitted.intercept_ = fitted._public_coefficients(B, solution.intercept, data)
        try:
            value = scorer(fitted, X, y, **params)
        except (TypeError, ValueError) as error:
            kind = TypeError if isinstance(error, TypeError) else ValueError
            raise kind(
                f"scoring={scorer!r} failed on a fold with {len(rows)} test samples: {str(error).rstrip('.')}. "
                "Choose another scoring, a scorer(estimator, X, y), or folds that have all classes."
            ) from error
        if hasattr(value, "item"):  # arrays of one number
            with suppress(ValueError):
                value = value.item()
        if not isinstance(value, numbers.Real):
            raise ValueError(f"scoring must return a number, got {value!r} of type {type(value).__name__}.")
        scores.append(float(value))
    return np.array(scores)


def resolve_scorer(scoring: Any, own: str = "") -> Any:
    """A scorer from its name or itself; None for the score of the loss, whose name is ``own``.

    The loss of a model also knows what to do with classes that a fold does not have.
    """
    is_own = isinstance(scoring, str) and scoring == own
    if scoring is None or (is_own and not get_config()["enable_metadata_routing"]):
        return None
    if isinstance(scoring, str):
        try:
            return get_scorer(scoring)
        except ValueError as error:
            raise ValueError(f"scoring={scoring!r}: {error}") from error
    if not callable(scoring):
        raise TypeError(
            "scoring must be None, the name of a scorer or a callable scorer(estimator, X, y), "
            f"got {scoring!r} of type {type(scoring).__name__}."
        )
    parameters = _parameters(scoring)
    if parameters and parameters[0].name in _TARGET_NAMES:
        name = getattr(scoring, "__name__", repr(scoring))
        raise ValueError(
            f"scoring={name} is a function of targets and predictions, but scoring must be callable as "
            f"scorer(estimator, X, y). Use sklearn.metrics.make_scorer({name}), or the name of a scorer."
        )
    return scoring


def takes_sample_weight(scorer: Any) -> bool:
    """Whether a scorer can be called with sample weights."""
    return any(item.name == "sample_weight" or item.kind is item.VAR_KEYWORD for item in _parameters(scorer))


def _parameters(function: Any) -> list[inspect.Parameter]:
    try:
        return list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # built-in functions may have no signature
        return []
