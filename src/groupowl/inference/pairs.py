"""Features side by side with their knockoffs, and by how much a fit to both prefers the features.

All that is computed here treats a feature and its knockoff alike: weights, scales, alpha and the covariance of the
tasks are functions of ``[X X~]`` and Y that stay the same when the two are exchanged.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.stats import chi2

from .._typing import BoolArray, FloatArray, IndexArray
from ..estimators.base import FitData, GroupOWLBase
from ..model import Model, relaxed_coefficients
from ..norm import PenaltyOptions
from ..norm.kernels import nonzero_rows
from ..norm.options import numbered_by_first
from ..solvers import SolveResult

# Share of the units of noise that are above alpha: at most, and so many for each sample.
_MOST_NOISE = 0.2
_NOISE_PER_SAMPLE = 0.4
# Rounds in which alpha and the residuals are fitted to each other, and when they agree.
_MOST_ROUNDS = 8
_AGREE_RTOL = 0.02
# Share of the samples that the degrees of freedom of the residuals do not fall below.
_LEAST_FREEDOM = 0.1
# Samples for each task whose residuals give a covariance.
_SAMPLES_PER_TASK = 5
# Smallest eigenvalue of correlations between errors that is more than rounding.
_SINGULAR = 1e-8
# Alphas of a path, and the smallest relative to that at which noise is selected.
_N_ALPHAS = 60
_PATH_END = 0.5


@dataclass(frozen=True, eq=False)
class Units:
    """What is selected or not: columns, or groups of them.

    Attributes
    ----------
    columns : ndarray of int
        Columns that are judged, ascending; others are unpenalized.
    unit : ndarray of int of shape (len(columns),)
        The unit of each of them, from 0 up.
    """

    columns: IndexArray
    unit: IndexArray

    @classmethod
    def of(cls, data: FitData) -> Units:
        """The units of the penalty, without those that pay none."""
        columns = np.setdiff1d(np.arange(data.n_features), data.fitting.unpenalized)
        groups = data.fitting.options.units(data.fitting.unpenalized)
        return cls(columns, numbered_by_first(columns if groups is None else groups[columns]))

    @property
    def count(self) -> int:
        """Number of units."""
        return int(self.unit.max(initial=-1)) + 1

    def by_unit(self, values: FloatArray) -> FloatArray:
        """One value for each unit of values that columns of a unit share."""
        found = np.zeros(self.count)
        found[self.unit] = values
        return found

    def by_feature(self, values: FloatArray, n_features: int) -> FloatArray:
        """A value for each feature from values of units; NaN for features that are not judged."""
        found = np.full(n_features, np.nan)
        found[self.columns] = values[self.unit]
        return found


@dataclass(frozen=True, eq=False)
class Pairs:
    """``[X X~]`` with the members of each pair in random order.

    A solver that prefers the first of two equal columns, or stops short of the optimum, treats members by their place;
    as chance decides the place, it favors neither features nor knockoffs. So the law that knockoffs need, that signs of
    null statistics are fair coins, holds for the numbers that were computed, not only for exact solutions.

    Attributes
    ----------
    X : ndarray of shape (n_samples, n_features)
        First members, and unpenalized columns.
    other : ndarray of shape (n_samples, n_judged)
        Second members of judged columns.
    units : Units
    is_swapped : ndarray of bool of shape (n_units,)
        Whether the knockoff is the first member.
    """

    X: FloatArray
    other: FloatArray
    units: Units
    is_swapped: BoolArray

    @classmethod
    def of(cls, X: FloatArray, knockoffs: FloatArray, units: Units, rng: np.random.Generator) -> Pairs:
        """Put each pair in an order that a coin decides; ``knockoffs`` has a column for each of X."""
        is_swapped = rng.random(units.count) < 0.5
        swapped = units.columns[is_swapped[units.unit]]
        first, second = X.copy(), knockoffs.copy()
        first[:, swapped], second[:, swapped] = knockoffs[:, swapped], X[:, swapped]
        return cls(first, second[:, units.columns], units, is_swapped)

    def signed(self, W: FloatArray) -> FloatArray:
        """Statistics in favor of features from those in favor of first members."""
        return np.where(self.is_swapped, -W, W) + 0.0  # no negative zeros

    def fit_data(self, data: FitData, prototype: GroupOWLBase) -> FitData:
        """The data of a fit to all columns, with options of the penalty for both members of pairs."""
        columns = self.units.columns
        X = np.concatenate([self.X, self.other], axis=1)
        fitting = replace(data.fitting, options=_doubled(data.fitting.options, columns))
        doubled = replace(data, X=X, n_features=X.shape[1], fitting=fitting)
        return prototype._adapted(prototype._completed(doubled))


def _doubled(options: PenaltyOptions, columns: IndexArray) -> PenaltyOptions:
    """Options of the penalty for columns of X and, after these, knockoffs of some of them."""

    def twice(values: Any) -> Any:
        return None if values is None else np.concatenate([values, values[columns]])

    more: dict[str, Any] = {"penalty_factor": twice(options.penalty_factor), "signs": twice(options.signs)}
    groups = options.feature_groups
    if groups is not None:
        labels = np.concatenate([groups, len(options.group_names) + groups[columns]])
        numbers = numbered_by_first(labels)
        old = np.empty(numbers.max() + 1, dtype=np.intp)
        old[numbers] = labels
        names = (*options.group_names, *(f"{name} (knockoff)" for name in options.group_names))
        more |= {"feature_groups": numbers, "group_names": tuple(names[k] for k in old)}
        if not isinstance(options.group_scale, str):
            more["group_scale"] = tuple((2 * options.group_scale)[k] for k in old)
    return replace(options, **more)


# Fits to pairs ----------------------------------------------------------------------------------------------


class PairFits:
    """Fits to pairs, at an alpha that noise decides.

    Parameters
    ----------
    data : FitData
        Of :meth:`Pairs.fit_data`.
    prototype : GroupOWLBase
        Whose weights are used.
    units : Units
    whitener : ndarray of shape (n_tasks, n_tasks), default=None
        What targets are multiplied with so that errors of tasks are uncorrelated.
    """

    def __init__(
        self, data: FitData, prototype: GroupOWLBase, units: Units, whitener: FloatArray | None = None
    ) -> None:
        self.data = data if whitener is None else replace(data, Y=data.Y @ whitener)
        self.units = units
        self.model: Model = data.fitting.model(data.X, self.data.Y, prototype.weights, data.sample_weight)
        self.solves = self.model.continuation(data.fitting.settings, n_solves=_MOST_ROUNDS)
        self.short: SolveResult | None = None  # a solve that fell short of the tolerance

    def solve(self, alpha: float) -> SolveResult:
        """The fit at one alpha; coefficients are those of ``solves.B``."""
        result = self.solves.solve(self.model.sequence_weights, alpha)
        if not result.converged:
            self.short = result
        return result

    def norms(self) -> tuple[FloatArray, FloatArray]:
        """Norms of the first and of the second member of each unit, in the scale that the penalty sees."""
        problem, columns = self.model.problem, self.units.columns
        norms = problem.penalty.spread(problem.penalty.norms(self.solves.B[: problem.n_rows]))
        return self.units.by_unit(norms[columns]), self.units.by_unit(norms[problem.n_rows - len(columns) :])

    def noise_alpha(self, n_selected: int) -> float:
        """What most units without effect stay below, if residuals are those of the last solve.

        The product of an independent column with the residuals has a covariance of its variance times their Gram
        matrix; the norm of normal numbers with this covariance is about that of a scaled chi distribution.
        """
        problem = self.model.problem
        theta = np.asarray(problem.dual_point(problem.predictor(self.solves.B)))
        n_samples = len(theta)
        lost = n_samples / max(n_samples - n_selected, _LEAST_FREEDOM * n_samples)
        values = np.clip(np.linalg.eigvalsh(theta.T @ theta), 0.0, None)
        total, squares = float(values.sum()), float(np.sum(values**2))
        if total == 0.0:
            return 0.0
        n_units = problem.penalty.n_units
        above = min(_MOST_NOISE, _NOISE_PER_SAMPLE * n_samples / n_units)
        variance = lost * float(np.mean(problem.norms**2)) * squares / total
        quantile = variance * chi2.isf(above, problem.n_rows / n_units * total**2 / squares)
        return float(np.sqrt(quantile) / np.mean(self.model.sequence_weights))

    def settle(self) -> float:
        """Solve at the alpha that noise of the size of its own residuals stays below: from above, until both agree."""
        alpha = min(self.model.alpha_max, self.noise_alpha(0)) or 1.0
        for _ in range(_MOST_ROUNDS):
            result = self.solve(alpha)
            smaller = self.noise_alpha(len(result.support))
            if smaller >= (1.0 - _AGREE_RTOL) * alpha or smaller == 0.0:
                break
            alpha = smaller
        return alpha

    def whitener(self) -> FloatArray | None:
        """What makes errors of tasks uncorrelated and of deviation 1; None where too little is known of them.

        From the residuals of least squares on what the last solve has selected.
        """
        problem, Y = self.model.problem, self.data.Y
        selected = np.flatnonzero(nonzero_rows(self.solves.B[: problem.n_rows]))
        left = len(Y) - len(selected) - 1 - len(self.model.unpenalized)
        if left < max(_SAMPLES_PER_TASK * Y.shape[1], len(Y) // 2):
            return None
        B, intercept = relaxed_coefficients(self.model, selected)[:2]
        return whitening(Y, Y - self.data.X @ B - intercept, self.data.sample_weight)


def whitening(Y: FloatArray, residuals: FloatArray, sample_weight: FloatArray | None) -> FloatArray | None:
    """An inverse root of the covariance of residuals; None where it is singular, or nothing but rounding."""
    w = np.ones(len(residuals)) if sample_weight is None else sample_weight
    covariance = residuals.T @ (w[:, None] * residuals) / w.sum()
    size = np.sqrt(np.diag(covariance))
    if np.any(size <= _SINGULAR * np.abs(Y).max(axis=0)):
        return None
    correlations = covariance / np.outer(size, size)
    values, vectors = np.linalg.eigh(correlations)
    if values[0] < _SINGULAR:
        return None
    return (vectors / np.sqrt(values)) @ vectors.T / size[:, None]


# Statistics -------------------------------------------------------------------------------------------------


def coefficient_statistic(fits: PairFits, alpha: Any = "auto") -> FloatArray:
    """``||B_j|| - ||B~_j||`` of one fit; at the alpha of :meth:`PairFits.settle` unless one is given."""
    if isinstance(alpha, str):
        fits.settle()
    else:
        fits.solve(fits.model.resolve_alpha(alpha))
    first, second = fits.norms()
    return first - second


def path_statistic(fits: PairFits, alpha: Any = "auto") -> FloatArray:
    """``max(a_j, a~_j) sign(a_j - a~_j)`` with the alphas at which the two enter the path, relative to the largest.

    Alphas are on a grid; those that enter at the same place are ordered by their norms there. The path ends at half of
    the alpha that noise stays below, or at the one that is given.
    """
    last = _PATH_END * fits.settle() if isinstance(alpha, str) else fits.model.resolve_alpha(alpha)
    top = fits.model.alpha_max
    entries = np.zeros((2, fits.units.count))
    if last >= top:
        return entries[0]
    grid = np.geomspace(1.0, last / top, _N_ALPHAS)
    fits.solves = fits.model.continuation(fits.data.fitting.settings, n_solves=len(grid))
    for before, here in pairwise(grid):
        fits.solve(here * top)
        norms = np.stack(fits.norms())
        is_new = (norms > 0.0) & (entries == 0.0)
        if is_new.any():
            share = norms[is_new] / norms[is_new].max()
            entries[is_new] = here + share * (before - here)
    return np.sign(entries[0] - entries[1]) * entries.max(axis=0)


STATISTICS = {"coefficients": coefficient_statistic, "path": path_statistic}
