"""Quasi-Newton steps among coefficients with a fixed pattern: the same non-zero rows, the same clusters.

Once gradient steps have found the pattern, the objective is smooth along it: a row of its own pays its weight times its
norm, rows of a cluster share one radius. L-BFGS learns the curvature there, which gradient steps never do.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
from scipy.optimize import minimize

from ..._kernels import cluster_labels, unit_norms
from ..._typing import FloatArray, IndexArray
from .descent import Goal, Iterate
from .oracles import Oracle, penalty_of

# Pairs of steps and gradients that L-BFGS remembers.
_MEMORY = 30
# Iterations between two computations of the inner gap.
_CHECK_EVERY = 10
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


class _Goal(Exception):
    """Raised inside L-BFGS when there is no reason to go on."""


def is_mostly_untied(B: FloatArray, lam: FloatArray) -> bool:
    """Whether few rows share their norm with another: clusters that form and dissolve spoil what L-BFGS learns."""
    norms = unit_norms(B[: len(lam)])
    labels = cluster_labels(norms)
    return bool(labels.max(initial=0) >= _MOSTLY * np.count_nonzero(norms))


def polish(oracle: Oracle, iterate: Iterate, lam: FloatArray, *, goal: Goal, max_steps: int) -> Iterate:
    """Minimise along the pattern of the iterate; the better of the result and the iterate, by objective."""
    pattern = _Pattern(iterate.point.B, lam, oracle.scales())
    found = _Search(oracle, pattern, iterate, lam, goal, max_steps)
    options: Any = {"maxcor": _MEMORY, "maxiter": max_steps, "maxfun": max_steps, "ftol": 0.0, "gtol": 0.0}
    search: Any = found
    with suppress(_Goal):
        minimize(
            search.evaluate,
            pattern.start,
            jac=True,
            method="L-BFGS-B",
            callback=search.after_iteration,
            options=options,
        )
    return found.best()


class _Search:
    """One run of L-BFGS: evaluations, and when to stop."""

    def __init__(
        self, oracle: Oracle, pattern: _Pattern, iterate: Iterate, lam: FloatArray, goal: Goal, max_steps: int
    ) -> None:
        self.oracle = oracle
        self.pattern = pattern
        self.iterate = iterate
        self.lam = lam
        self.goal = goal
        self.steps_left = max_steps
        self.evaluations = 0
        self.iterations = 0
        self.latest: Any = None  # x, point and norms of the last evaluation
        self.accepted: Any = None

    def evaluate(self, x: FloatArray) -> tuple[float, FloatArray]:
        """Objective along the pattern and its gradient."""
        if self.evaluations >= self.steps_left:
            raise _Goal
        self.evaluations += 1
        rows, directions, norms = self.pattern.coefficients(x)
        B = self.pattern.spread(rows)
        base = self.iterate.point
        point = self.oracle.trial(base, B, B - base.B)
        descent = self.oracle.complete(point)
        self.latest = (x.copy(), point, norms)
        value = point.loss + self.pattern.penalty(x, norms)
        return value, self.pattern.gradient(x, descent, directions, norms)

    def after_iteration(self, x: FloatArray) -> None:
        """Stop at the goal, or where a row is about to leave the pattern."""
        self.iterations += 1
        if not np.array_equal(x, self.latest[0]):
            return
        self.accepted = self.latest[1]
        rows, _, _ = self.pattern.coefficients(x)
        if np.any(unit_norms(rows[: self.pattern.n_penalised]) < self.pattern.smallest):
            raise _Goal
        if self.iterations % _CHECK_EVERY == 0:
            gap = self.oracle.gap(self.accepted, penalty_of(self.accepted.B, self.lam), self.lam)
            if self.goal.met(gap, self.iterate.steps + self.evaluations):
                raise _Goal

    def best(self) -> Iterate:
        """The last iterate accepted, where it is better than the one to start with."""
        steps = self.iterate.steps + self.evaluations
        self.iterate.steps = steps
        if self.accepted is None:
            return self.iterate
        penalty = penalty_of(self.accepted.B, self.lam)
        if not self.accepted.loss + penalty <= self.iterate.objective:
            return self.iterate
        gap = self.oracle.gap(self.accepted, penalty, self.lam)
        return Iterate(self.accepted, penalty, self.iterate.lipschitz, gap, steps)
