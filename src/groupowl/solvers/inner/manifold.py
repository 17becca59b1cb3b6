"""Quasi-Newton steps among coefficients with a fixed pattern: the same non-zero rows, the same clusters.

Once gradient steps have found the pattern, the objective is smooth along it: a row of its own pays its weight times its
norm, rows of a cluster share one radius. L-BFGS learns the curvature there, which gradient steps never do.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._kernels import EPS, cluster_labels, unit_norms
from ..._typing import FloatArray, IndexArray
from .descent import Goal, Iterate
from .oracles import ColumnsOracle, Oracle, Point, penalty_of

# Pairs of steps and gradients that L-BFGS remembers.
_MEMORY = 30
# Iterations between two computations of the inner gap.
_CHECK_EVERY = 10
# A metric for the first guess may have so many rows per task; what keeps it invertible, relative to its diagonal.
_METRIC_ROWS = 40
_METRIC_DAMPING = 1e-6
# Armijo's constant, and the most cuts of a step.
_DECREASE = 1e-4
_MOST_CUTS = 20
# A row that shrinks below this fraction of its norm at the start is about to leave the pattern.
_COLLAPSE = 1e-3
# Clusters per non-zero row from which on rows count as untied.
_MOSTLY = 0.9


class _Pattern:
    """Coordinates of the coefficients with one pattern, scaled by the norms of their columns.

    A vector of coordinates holds one matrix entry for each row that is not zero or not penalised, then one radius for
    each cluster of several rows; for the rows of such a cluster the matrix gives directions only.
    """

    def __init__(self, B: FloatArray, lam: FloatArray, scales: FloatArray) -> None:
        norms = unit_norms(B[: len(lam)])
        labels = cluster_labels(norms)
        support = np.flatnonzero(norms)
        self.shape = B.shape
        self.n_penalised = len(support)
        self.rows: IndexArray = np.concatenate([support, np.arange(len(lam), len(B))])
        self.scales = scales[self.rows, None]
        order = support[np.argsort(labels[support], kind="stable")]
        weights = np.empty(len(lam))
        weights[order] = lam[: len(order)]
        self.cluster = labels[support] - 1
        sizes = np.bincount(self.cluster)
        totals = np.bincount(self.cluster, weights=weights[support], minlength=len(sizes))
        self.tied = np.flatnonzero(sizes > 1)  # clusters with a radius of their own
        self.weight = totals[self.cluster] / sizes[self.cluster]
        radius_of = np.full(len(sizes), -1)
        radius_of[self.tied] = np.arange(len(self.tied))
        self.radius_index = radius_of[self.cluster]  # -1 for rows of their own
        self.tied_rows = np.flatnonzero(self.radius_index >= 0)
        self.tied_weight = totals[self.tied]
        self.size = len(self.rows) * B.shape[1]
        first = norms[support]
        self.radius_scale = np.array([self.scales[self.cluster_rows(c), 0].mean() for c in range(len(self.tied))])
        radii = np.array([first[self.cluster_rows(c)].mean() for c in range(len(self.tied))])
        self.start = np.concatenate([(B[self.rows] / self.scales).ravel(), radii / self.radius_scale])
        self.smallest = _COLLAPSE * first

    def cluster_rows(self, number: int) -> IndexArray:
        """Rows of a tied cluster, as positions in the support."""
        return np.flatnonzero(self.radius_index == number)

    def coefficients(self, x: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Rows of the coefficients, unit directions of the penalised ones, and the norms that the matrix gives."""
        rows = x[: self.size].reshape(len(self.rows), -1) * self.scales
        norms = unit_norms(rows[: self.n_penalised])
        directions = rows[: self.n_penalised] / np.maximum(norms, np.finfo(np.float64).tiny)[:, None]
        if len(self.tied_rows):
            radii = x[self.size :] * self.radius_scale
            rows[self.tied_rows] = directions[self.tied_rows] * radii[self.radius_index[self.tied_rows], None]
        return rows, directions, norms

    def spread(self, rows: FloatArray) -> FloatArray:
        """All coefficients."""
        B = np.zeros(self.shape)
        B[self.rows] = rows
        return B

    def penalty(self, x: FloatArray, norms: FloatArray) -> float:
        """Penalty with the weights that the pattern assigns: exact as long as the order of the clusters stands."""
        own = self.radius_index < 0
        radii = x[self.size :] * self.radius_scale
        return float(self.weight[own] @ norms[own] + self.tied_weight @ radii)

    def gradient(self, x: FloatArray, descent: FloatArray, directions: FloatArray, norms: FloatArray) -> FloatArray:
        """Gradient of loss plus penalty in the coordinates, from the descent direction of the loss."""
        G = -descent[self.rows]
        penalised = G[: self.n_penalised]
        radial: Any = np.zeros(len(self.tied))
        tied = self.tied_rows
        own = np.flatnonzero(self.radius_index < 0)
        if len(tied):
            index, along = self.radius_index[tied], np.einsum("jk,jk->j", penalised[tied], directions[tied])
            radial = np.bincount(index, weights=along, minlength=len(self.tied)) + self.tied_weight
            radii = x[self.size :] * self.radius_scale
            across = penalised[tied] - along[:, None] * directions[tied]
            penalised[tied] = across * (radii[index] / norms[tied])[:, None]
        penalised[own] += self.weight[own, None] * directions[own]
        return np.concatenate([(G * self.scales).ravel(), radial * self.radius_scale])


def is_mostly_untied(B: FloatArray, lam: FloatArray) -> bool:
    """Whether few rows share their norm with another: clusters that form and dissolve spoil what L-BFGS learns."""
    norms = unit_norms(B[: len(lam)])
    labels = cluster_labels(norms)
    return bool(labels.max(initial=0) >= _MOSTLY * np.count_nonzero(norms))


class _Secants:
    """What L-BFGS knows of the curvature: its last steps with the changes of the gradient along them.

    Written out here because SciPy's brings a second BLAS into the loop, whose threads and NumPy's then wait for each
    other: with two threads a step took twice as long as with one.

    Parameters
    ----------
    metric : ndarray of shape (n_rows, n_rows) or None
        First guess at the inverse Hessian, the same for every task; a multiple of the identity by default.
    """

    def __init__(self, metric: FloatArray | None) -> None:
        self.metric = metric
        self.pairs: deque[tuple[FloatArray, FloatArray, float]] = deque(maxlen=_MEMORY)

    def add(self, step: FloatArray, change: FloatArray) -> None:
        """Remember a step along which the objective curves upwards."""
        product = float(step @ change)
        if product > EPS * float(change @ change):
            self.pairs.append((step, change, product))

    def direction(self, gradient: FloatArray) -> FloatArray:
        """Quasi-Newton direction of descent (the two-loop recursion)."""
        direction = -gradient
        factors = []
        for step, change, product in reversed(self.pairs):
            factor = float(step @ direction) / product
            direction -= factor * change
            factors.append(factor)
        direction = self._first_guess(direction)
        if self.pairs:
            _, change, product = self.pairs[-1]
            direction *= product / float(change @ self._first_guess(change))
        for (step, change, product), factor in zip(self.pairs, reversed(factors), strict=True):
            direction += (factor - float(change @ direction) / product) * step
        return direction

    def _first_guess(self, v: FloatArray) -> FloatArray:
        return v if self.metric is None else (self.metric @ v.reshape(len(self.metric), -1)).ravel()


def _metric(oracle: Oracle, pattern: _Pattern, iterate: Iterate) -> FloatArray | None:
    """Inverse of ``X^T diag(mean curvature) X`` plus the mean curvature of the penalty, in the pattern's coordinates.

    It leaves out what couples the tasks, and knows how the columns are correlated. None where rows share a radius, and
    where it would cost as much as many gradient steps.
    """
    q = pattern.shape[1]
    if len(pattern.tied) or not isinstance(oracle, ColumnsOracle) or len(pattern.rows) > _METRIC_ROWS * q:
        return None
    blocks = oracle.loss.hessian(iterate.point.samples, oracle.Y, oracle.w)
    A = oracle.columns.dense(pattern.rows) * pattern.scales
    H = (A * (np.trace(blocks, axis1=1, axis2=2) / q)) @ A.T
    norms = unit_norms(iterate.point.B[pattern.rows[: pattern.n_penalised]])
    bend = np.zeros(len(H))
    bend[: pattern.n_penalised] = pattern.weight / norms * (q - 1) / q
    H[np.diag_indices(len(H))] += bend * pattern.scales[:, 0] ** 2 + _METRIC_DAMPING * H.diagonal().max()
    try:
        return np.asarray(np.linalg.inv(H), dtype=np.float64)
    except np.linalg.LinAlgError:
        return None


@dataclass(frozen=True, eq=False)
class _Place:
    """Coordinates with the objective along the pattern, its gradient there, and the point of the oracle."""

    x: FloatArray
    value: float
    gradient: FloatArray
    norms: FloatArray
    point: Point


def polish(oracle: Oracle, iterate: Iterate, lam: FloatArray, *, goal: Goal, max_steps: int) -> Iterate:
    """Minimise along the pattern of the iterate by L-BFGS; the better of the result and the iterate, by objective."""
    pattern = _Pattern(iterate.point.B, lam, oracle.scales())
    place = _evaluate(oracle, pattern, iterate.point, pattern.start)
    secants, last, iterations = _Secants(_metric(oracle, pattern, iterate)), iterate.steps + max_steps, 0
    iterate.steps += 1
    while iterate.steps < last:
        direction = secants.direction(place.gradient)
        found, evaluations = _line_search(oracle, pattern, iterate.point, place, direction, last - iterate.steps)
        iterate.steps += evaluations
        if found is None:
            break
        secants.add(found.x - place.x, found.gradient - place.gradient)
        place, iterations = found, iterations + 1
        if np.any(place.norms < pattern.smallest):  # a row is about to leave the pattern
            break
        if iterations % _CHECK_EVERY == 0:
            gap = oracle.gap(place.point, penalty_of(place.point.B, lam), lam)
            if goal.met(gap, iterate.steps):
                break
    penalty = penalty_of(place.point.B, lam)
    if not place.point.loss + penalty <= iterate.objective:
        return iterate
    gap = oracle.gap(place.point, penalty, lam)
    return Iterate(place.point, penalty, iterate.lipschitz, gap, iterate.steps)


def _evaluate(oracle: Oracle, pattern: _Pattern, base: Point, x: FloatArray) -> _Place:
    rows, directions, norms = pattern.coefficients(x)
    B = pattern.spread(rows)
    point = oracle.trial(base, B, B - base.B)
    gradient = pattern.gradient(x, oracle.complete(point), directions, norms)
    return _Place(x, point.loss + pattern.penalty(x, norms), gradient, norms, point)


def _line_search(
    oracle: Oracle, pattern: _Pattern, base: Point, place: _Place, direction: FloatArray, max_evaluations: int
) -> tuple[_Place | None, int]:
    """First place along the direction that is low enough (Armijo), and the evaluations it took."""
    slope = float(place.gradient @ direction)
    if not slope < 0.0:
        return None, 0
    t = 1.0
    for evaluation in range(1, min(max_evaluations, _MOST_CUTS) + 1):
        found = _evaluate(oracle, pattern, base, place.x + t * direction)
        if found.value <= place.value + _DECREASE * t * slope:
            return found, evaluation
        curved = 2.0 * (found.value - place.value - t * slope)  # of the parabola through what is known
        t = min(0.5 * t, max(0.1 * t, -slope * t * t / curved)) if np.isfinite(curved) else 0.1 * t
    return None, min(max_evaluations, _MOST_CUTS)
