"""Proximal point method with semismooth Newton steps, for squared loss in Gram form on badly conditioned data.

Each outer step minimises the objective plus ``||B - center||^2 / (2 sigma)``. Its dual is a smooth convex function
``psi`` of one matrix U; a Newton step for it needs one linear system whose unknowns are a change of radius per
cluster of equal norms and a change of direction per non-zero row. Rows and clusters come from a prox with a long
step, so that many of them change at once, which gradient steps cannot do on nearly collinear columns.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..._kernels import EPS, prox_and_value, unit_norms
from ..._typing import FloatArray, IndexArray
from .descent import Iterate
from .oracles import STEP_OVERHEAD, GramOracle, Point

#: Largest linear system that a Newton step solves.
LARGEST_SYSTEM = 2500

_OUTER_STEPS = 60
_NEWTON_STEPS = 30
_HALVINGS = 20
_MOST_FAILURES = 6
_DAMPING_RISE = 10.0
# So few Newton steps mean that less damping can be afforded.
_EASY_STEPS = 6
_CLUSTER_RTOL = 1e-12
# sigma = 1 / damping; damping starts at this fraction of the largest curvature, and falls to the floor.
_FIRST_DAMPING = 1e-3
_FLOOR = 1e-8
_LOWEST_FLOOR = 1e-12


@dataclass(eq=False)
class _ProxPoint:
    """``B = prox_{J / damping}(V)`` with what a derivative of it needs."""

    B: FloatArray
    penalty: float
    V_norms: FloatArray
    B_norms: FloatArray
    rows: IndexArray  # non-zero rows by falling norm
    V: FloatArray


def _prox(V: FloatArray, damping: float, lam: FloatArray) -> _ProxPoint:
    norms = unit_norms(V)
    shrunk, penalty = prox_and_value(norms, lam, 1.0 / damping)
    rows = np.flatnonzero(shrunk)
    rows = rows[np.argsort(-shrunk[rows], kind="stable")]
    factors = shrunk / np.maximum(norms, np.finfo(np.float64).tiny)
    return _ProxPoint(V * factors[:, None], penalty, norms, shrunk, rows, V)


def system_size(B_norms: FloatArray, n_tasks: int) -> int:
    """Unknowns of a Newton step at these row norms: one per cluster and ``n_tasks - 1`` per non-zero row."""
    positive = -np.sort(-B_norms[B_norms > 0])
    return len(cluster_starts(positive)) + len(positive) * (n_tasks - 1)


def system_cost(size: int) -> float:
    """Floating-point operations of a Newton step with so many unknowns, line search included."""
    return 0.7 * size**3 + 10.0 * size**2 + 10.0 * STEP_OVERHEAD


def cluster_starts(falling: FloatArray, rtol: float = _CLUSTER_RTOL) -> IndexArray:
    """Where a new cluster begins among falling norms."""
    if len(falling) == 0:
        return np.zeros(0, dtype=np.intp)
    falls = falling[1:] < falling[:-1] * (1.0 - rtol)
    return np.concatenate([[0], 1 + np.flatnonzero(falls)])


def tangents(directions: FloatArray) -> FloatArray:
    """For each unit row v, the last columns of the Householder reflection that maps e_1 to +-v: (rows, q - 1, q)."""
    q = directions.shape[1]
    reflector = directions.copy()
    reflector[:, 0] += np.where(directions[:, 0] >= 0, 1.0, -1.0)
    reflector /= unit_norms(reflector)[:, None]
    return np.eye(q)[None, 1:, :] - 2.0 * reflector[:, 1:, None] * reflector[:, None, :]


def newton_direction(G: FloatArray, prox: _ProxPoint, residual_image: FloatArray, damping: float) -> FloatArray:
    """``e`` on the non-zero rows with ``e + M G (E + e) / damping = 0``, M the derivative of the prox.

    ``residual_image`` is ``G E`` on those rows; ``e`` keeps rows of a cluster at equal norms to first order.
    """
    rows = prox.rows
    q = prox.V.shape[1]
    block = G[np.ix_(rows, rows)]
    v, s = prox.V_norms[rows], prox.B_norms[rows]
    directions = prox.V[rows] / v[:, None]
    starts = cluster_starts(s)
    sizes = np.diff(np.append(starts, len(rows)))
    radial = np.add.reduceat(np.add.reduceat(block * (directions @ directions.T), starts, axis=0), starts, axis=1)
    clusters = len(starts)
    dimension = clusters + len(rows) * (q - 1)
    K = np.empty((dimension, dimension))
    K[:clusters, :clusters] = radial
    right = np.empty(dimension)
    right[:clusters] = -np.add.reduceat(np.einsum("jk,jk->j", directions, residual_image), starts)
    diagonal = np.empty(dimension)
    diagonal[:clusters] = damping * sizes
    across = tangents(directions)
    if q > 1:
        flat = across.reshape(-1, q)
        spread = np.repeat(block, q - 1, axis=1)
        mixed = np.add.reduceat(spread * (directions @ flat.T), starts, axis=0)
        K[:clusters, clusters:] = mixed
        K[clusters:, :clusters] = mixed.T
        K[clusters:, clusters:] = np.repeat(spread, q - 1, axis=0) * (flat @ flat.T)
        right[clusters:] = -np.einsum("jtk,jk->jt", across, residual_image).ravel()
        diagonal[clusters:] = np.repeat(damping * v / s, q - 1)
    K[np.arange(dimension), np.arange(dimension)] += diagonal
    solution = solve_system(K, right)
    change = np.repeat(solution[:clusters], sizes)[:, None] * directions
    if q > 1:
        change += np.einsum("jt,jtk->jk", solution[clusters:].reshape(len(rows), q - 1), across)
    return change


def solve_system(K: FloatArray, right: FloatArray) -> FloatArray:
    """Solution of ``K x = right``, or zeros, which are no direction of descent, where there is none."""
    try:
        solution = np.asarray(np.linalg.solve(K, right), dtype=np.float64)
    except np.linalg.LinAlgError:
        return np.zeros_like(right)
    return solution if np.isfinite(solution).all() else np.zeros_like(right)


class ProximalNewton:
    """The method of this module on one working set; :meth:`run` is all that others need."""

    def __init__(self, oracle: GramOracle, lam: FloatArray, goal: float, largest_curvature: float) -> None:
        self.oracle = oracle
        self.G = oracle.G
        self.lam = lam
        self.goal = goal
        self.curvature = largest_curvature
        self.scale = abs(oracle.target_product) + 2.0 * oracle.base.loss  # size of the targets, squared

    def run(self, iterate: Iterate, max_steps: int) -> Iterate:
        """Newton steps from the iterate until the gap on the working set meets the goal or nothing helps any more."""
        self.best, self.steps_left = iterate, max_steps
        center = iterate.point
        damping, floor, failures = _FIRST_DAMPING * self.curvature, _FLOOR, 0
        gaps = [iterate.gap]
        for _ in range(_OUTER_STEPS):
            point, newton_steps, failed = self._proximal_point(center, damping)
            if self.best.gap <= self.goal or self.steps_left <= 0:
                break
            gaps.append(self.best.gap)
            if failed:  # start again from where this step started, with more damping
                failures += 1
                if failures > _MOST_FAILURES:
                    break
                damping *= _DAMPING_RISE
                floor = damping / self.curvature
                continue
            center = point
            at_floor = damping <= floor * self.curvature * 1.0001
            if at_floor and len(gaps) > 4 and gaps[-1] > 0.3 * gaps[-5]:
                if floor <= _LOWEST_FLOOR:
                    break
                floor = max(floor / 10.0, _LOWEST_FLOOR)
            if newton_steps <= _EASY_STEPS:
                damping = max(damping / 10.0, floor * self.curvature)
        return self.best

    def _proximal_point(self, center: Point, damping: float) -> tuple[Point, int, bool]:
        """Minimise the objective plus ``damping/2 ||B - center||^2``; the point, the steps, whether it failed."""
        u, Gu = np.zeros_like(center.B), np.zeros_like(center.B)  # U = center + u
        psi, noise, prox = self._dual_value(u, Gu, center, damping)
        previous, lazy = np.inf, 0
        point = center
        for step in range(1, _NEWTON_STEPS + 1):
            b = prox.B - center.B
            Gb = self.G @ b
            point = self._note(prox, center, b, Gb)
            if self.best.gap <= self.goal or self.steps_left <= 0:
                return point, step, False
            E, image = b - u, Gb - Gu
            square = float(np.vdot(E, image))
            if square <= 0.01 * damping * float(np.vdot(b, b)) or square < 1e-28 * self.scale:
                return point, step, False
            if square < 1e-11 * self.scale:
                lazy = lazy + 1 if square > 0.5 * previous else 0
                if lazy >= 4:
                    return point, step, True
            previous = square
            self.steps_left -= 1
            move, slope, move_image = self._direction(prox, E, image, damping)
            t = 1.0
            for _ in range(_HALVINGS):
                trial_u, trial_Gu = u + t * move, Gu + t * move_image
                trial_psi, noise, trial = self._dual_value(trial_u, trial_Gu, center, damping)
                if trial_psi <= psi + 1e-4 * t * slope + noise:
                    break
                t *= 0.5
            else:
                return point, step, True
            u, Gu, psi, prox = trial_u, trial_Gu, trial_psi, trial
        return point, _NEWTON_STEPS, True

    def _direction(
        self, prox: _ProxPoint, E: FloatArray, image: FloatArray, damping: float
    ) -> tuple[FloatArray, float, FloatArray]:
        move = E.copy()
        rows = prox.rows
        if len(rows):
            move[rows] += newton_direction(self.G, prox, image[rows], damping)
        slope = -float(np.vdot(image, move))
        if not slope < 0.0:
            move, slope = E, -float(np.vdot(E, image))
        return move, slope, self.G @ move

    def _dual_value(
        self, u: FloatArray, Gu: FloatArray, center: Point, damping: float
    ) -> tuple[float, float, _ProxPoint]:
        """``psi(center + u)`` less its value for u = b = 0, its rounding error, and the prox behind it.

        In terms of ``b = B - center`` nothing large cancels but the penalties.
        """
        assert center.descent is not None
        prox = _prox(center.B + (center.descent - Gu) / damping, damping, self.lam)
        b = prox.B - center.B
        gain = float(np.vdot(center.descent, b))
        cross = float(np.vdot(Gu, b))
        psi = 0.5 * float(np.vdot(u, Gu)) - cross + gain - prox.penalty - 0.5 * damping * float(np.vdot(b, b))
        return psi, 16 * EPS * (abs(gain) + abs(cross) + prox.penalty), prox

    def _note(self, prox: _ProxPoint, center: Point, b: FloatArray, Gb: FloatArray) -> Point:
        """The point of the prox, remembered if its gap is the smallest so far."""
        assert center.descent is not None
        descent = center.descent - Gb
        point = Point(prox.B, center.loss - 0.5 * float(np.vdot(center.descent + descent, b)), descent)
        gap = self.oracle.gap(point, prox.penalty, self.lam)
        self.best.steps += 1
        if gap < self.best.gap:
            self.best = Iterate(point, prox.penalty, self.best.lipschitz, gap, self.best.steps)
        return point
