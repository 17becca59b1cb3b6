"""Which samples train and which test, and the sufficient statistics of both where these make folds cheaper."""

from __future__ import annotations

import numbers
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import accumulate
from operator import add
from typing import Any

import numpy as np
from sklearn.model_selection import KFold, StratifiedKFold

from .._checks import rectangular_array
from .._typing import FloatArray, IndexArray
from ..designs import SufficientStatistics, as_design
from ..losses import resolve_loss
from ..model import Model
from ..norm.kernels import EPS
from ..problem import problem_of_statistics
from ..solvers import Solver
from ..solvers.continuation import compression_pays

# Folds by default, where there are so many samples (of each class).
_DEFAULT_FOLDS = 5


@dataclass(frozen=True, eq=False)
class Fold:
    """Indices of the samples of positive weight that a model is fitted to, and of those it is scored on."""

    train: IndexArray
    test: IndexArray


def make_folds(cv: Any, X: Any, y: Any, classes: Any, sample_weight: FloatArray, params: dict[str, Any]) -> list[Fold]:
    """Folds of the samples of positive weight; ``params`` are for a splitter, and no others take any."""
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
        remedy = "choose by an information criterion, for example selection='bic', which needs none"
        if classes is not None:
            counts = np.array([np.count_nonzero(labels == label) for label in classes])
            rarest = int(np.argmin(counts))
            whose, least = f"y: class {classes[rarest : rarest + 1].tolist()[0]!r}", int(counts[rarest])
            remedy = "merge or remove the class, or leave classes apart, for example by cv=KFold(5, shuffle=True)"
        needed = 2 if cv is None else int(cv)
        if least < needed:
            raise ValueError(
                f"{whose} has {least} sample{'s' if least != 1 else ''} of positive weight, but {needed} folds need at "
                f"least {needed}. Use fewer folds, or {remedy}."
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
            what = f"the {name} samples of split {i} of cv"
            indices = rectangular_array(what, part)
            if indices.dtype == bool and indices.shape == (n_samples,):
                indices = np.flatnonzero(indices)
            if indices.size == 0:
                indices = np.zeros(0, dtype=np.intp)
            if indices.ndim != 1 or indices.dtype.kind not in "iu":
                found = f"an array of shape {indices.shape} and dtype {indices.dtype}"
                raise ValueError(f"{what} must be indices or a mask, got {found}.")
            if len(indices) and (indices.min() < -n_samples or indices.max() >= n_samples):
                raise ValueError(
                    f"{what} run from {indices.min()} to {indices.max()}, but there are {n_samples} samples. The "
                    "splits must have been made for the X and y of this fit."
                )
            parts.append(np.asarray(indices[sample_weight[indices] > 0.0] % n_samples, dtype=np.intp))
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
        """Statistics of what each fold trains on; None where rounding has swallowed those of some fold.

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
    setting = getattr(solver, "compress", False)
    wanted = compression_pays(model.problem, n_solves) if setting == "auto" else bool(setting)
    if not wanted or not model.problem.is_compressible or len(model.unpenalized) or n < (len(folds) + 1) * d:
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


def with_statistics(model: Model, total: SufficientStatistics, standardize: bool) -> Model:
    """The same model with its statistics."""
    small = problem_of_statistics(total, fit_intercept=model.problem.fit_intercept, standardized=standardize)
    small.design.passes = model.problem.design.passes  # one count for both
    return model.with_statistics(small)
