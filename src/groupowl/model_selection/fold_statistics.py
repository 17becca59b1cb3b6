"""Squared loss with many samples: one pass makes the statistics of every fold, and no fold needs the data again."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, reduce
from itertools import accumulate
from operator import add
from typing import Any

import numpy as np

from .._kernels import EPS
from .._typing import FloatArray
from ..compression import compression_pays, is_compressible, needs_exactness, problem_of_statistics
from ..designs import as_design
from ..gram import SufficientStatistics
from ..model import Model
from ..problem import Problem, Residual
from ..solvers import Sequence, Solver
from .folds import Fold, are_complements, are_partition


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

        Adding the other parts loses nothing, so that is done where every sample is in one part.
        """
        if self.is_partition:
            return _sums_of_others(self.parts)
        if not all(self._leaves_weight(part) for part in self.parts):
            return None
        return [self.total - part for part in self.parts]

    def are_reliable(self) -> bool:
        """Whether rounding has left enough of what each fold trains on."""
        return self.trainings is not None and all(training.is_reliable() for training in self.trainings)

    def _leaves_weight(self, part: SufficientStatistics) -> bool:
        """False where the weight of the test samples swallows that of all others."""
        return self.total.total_weight - part.total_weight > EPS * self.total.total_weight


def _sums_of_others(parts: list[SufficientStatistics]) -> list[SufficientStatistics]:
    """For each part the sum of all others, with three additions a part."""
    before = list(accumulate(parts[:-1]))
    after = list(accumulate(reversed(parts[1:])))[::-1]
    between = [first + second for first, second in zip(before[:-1], after[1:], strict=True)]
    return [after[0], *between, before[-1]]


def statistics_pay(model: Model, solver: Solver, folds: list[Fold], n_solves: int) -> bool:
    """Whether folds are best made from statistics.

    The solver must want statistics, each fold must train on all that it does not test, and the statistics of all folds
    together must not be larger than the data.
    """
    n, d = model.problem.design.shape
    setting = getattr(solver, "compress", False)
    wanted = compression_pays(model.problem, n_solves) if setting == "auto" else bool(setting)
    if not wanted or not is_compressible(model.problem) or len(model.unpenalized) or n < (len(folds) + 1) * d:
        return False
    return min(len(fold.train) for fold in folds) > d and are_complements(folds, n)


def fold_statistics(X: Any, Y: FloatArray, sample_weight: FloatArray, folds: list[Fold]) -> FoldStatistics:
    """Statistics in one pass over the data where every sample is tested once, in one more per fold where not."""
    design, Y, w = as_design(X).adopt(Y, sample_weight, _as_it_is)
    present = np.flatnonzero(sample_weight)
    place = np.full(len(sample_weight), -1, dtype=np.intp)
    place[present] = np.arange(len(present))
    tests = [place[fold.test] for fold in folds]
    if are_partition(folds, len(present)):
        labels = np.empty(len(present), dtype=np.intp)
        for number, rows in enumerate(tests):
            labels[rows] = number
        parts = design.statistics_of_parts(Y, w, labels, len(folds))
        return FoldStatistics(reduce(add, parts), parts)
    total = design.statistics_of_parts(Y, w, np.zeros(len(present), dtype=np.intp), 1)[0]
    chosen = [_is_in(rows, len(present)) for rows in tests]
    parts = [design.statistics_of_parts(Y, w, each, 1)[0] for each in chosen]
    return FoldStatistics(total, parts, is_partition=False)


def _is_in(rows: Any, size: int) -> Any:
    """0 for these rows, -1 for all others."""
    labels = np.full(size, -1, dtype=np.intp)
    labels[rows] = 0
    return labels


def _as_it_is(Y: FloatArray) -> FloatArray:
    return Y


@dataclass(frozen=True, eq=False)
class ModelWithStatistics(Model):
    """A model whose sufficient statistics are known, so that no solve has to make them.

    Attributes
    ----------
    small : Problem
        The same problem on statistics.
    plain : Model
        The same model without them.
    """

    small: Problem
    plain: Model

    @cached_property
    def alpha_max(self) -> float:
        """Smallest alpha that selects nothing."""
        return self.plain.alpha_max

    @property
    def known_residual(self) -> Residual | None:
        """That of the plain model."""
        return self.plain.known_residual

    def sequence(self, solver: Solver, *, tol: float, n_solves: int = 1, start: FloatArray | None = None) -> Sequence:
        """Solves on the statistics; where their rounding may forbid the proof asked for, the solver decides."""
        if needs_exactness(tol):
            return super().sequence(solver, tol=tol, n_solves=n_solves, start=start)
        content: Any = solver
        sequence = super().sequence(replace(content, compress=False), tol=tol, n_solves=n_solves, start=start)
        sequence.adopt_statistics(self.small)
        return sequence


def with_statistics(model: Model, total: SufficientStatistics, standardize: bool) -> ModelWithStatistics:
    """The same model with its statistics."""
    small = problem_of_statistics(total, fit_intercept=model.problem.fit_intercept, standardized=standardize)
    small.design.passes = model.problem.design.passes  # one count for both
    return ModelWithStatistics(model.problem, model.weights, model.unpenalized, small, model)
