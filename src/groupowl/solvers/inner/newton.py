"""Newton steps for squared loss: single ones along the pattern, and a proximal point method that finds the pattern.

Both are for penalties whose units are rows. :func:`pattern_step` takes non-zero rows and clusters as they are. Each
outer step of :class:`ProximalNewton` minimizes the objective plus ``||B - center||^2 / (2 sigma)``. Its dual is a
smooth convex function ``psi`` of one matrix U; a Newton step for it changes one radius per cluster of equal norms and
one direction per non-zero row. Rows and clusters come from a prox with a long step, so that many of them change at
once, which gradient steps cannot do on nearly collinear columns or where there are more non-zero rows than samples.

The linear system has as many unknowns as there are non-zero coefficients, yet it takes matrices of one row per
*non-zero row* only: all tasks share the Gram matrix, and what differs between them, that rows move freely along their
own direction, is a correction of one unknown per row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.optimize import isotonic_regression

from ..._typing import FloatArray, IndexArray
from ...norm.kernels import EPS, TINY, cluster_starts, row_norms
from ...problem.spectrum import power_estimate
from .oracles import STEP_OVERHEAD, GramOracle, Point

#: Largest linear system that a Newton step solves.
LARGEST_SYSTEM = 2500

_OUTER_STEPS = 200
_NEWTON_STEPS = 30
_HALVINGS = 20
_MOST_FAILURES = 6
_DAMPING_RISE = 10.0
# So few Newton steps mean that less damping can be afforded.
_EASY_STEPS = 6
# Norms that the prox has just made equal differ by rounding only; those on their way to it by more.
_TIE_RTOL = 1e-12
# A step along the pattern that makes rows longer than the longest times this comes from a near singular system.
_LONGEST_STEP = 10.0
# How often clusters that passed each other in a step along the pattern are merged, and the others solved for again.
_MERGES = 2
# Least correlation of a row, as a fraction of its weight, that counts in the curvature of the penalty.
_LEAST_CORRELATION = 0.1
# sigma = 1 / damping; damping starts at this fraction of the largest curvature, and falls to the floor.
_FIRST_DAMPING = 1e-3
_FLOOR = 1e-8
_LOWEST_FLOOR = 1e-12


class Pattern(NamedTuple):
    """Non-zero rows by falling norm, their directions, and where clusters of equal norms begin."""

    rows: IndexArray
    norms: FloatArray
    directions: FloatArray
    starts: IndexArray
    sizes: IndexArray  # rows in each cluster


def pattern_of(B: FloatArray) -> Pattern:
    """The pattern of some coefficients."""
    norms = row_norms(B)
    rows = np.flatnonzero(norms)
    rows = rows[np.argsort(-norms[rows], kind="stable")]
    norms = norms[rows]
    starts = cluster_starts(norms, _TIE_RTOL)
    return Pattern(rows, norms, B[rows] / norms[:, None], starts, np.diff(np.append(starts, len(rows))))


def newton_cost(pattern: Pattern) -> float:
    """Operations of a Newton step at coefficients of this pattern, as long as those of a gradient step take.

    Infinity where the system is too large.
    """
    q = pattern.directions.shape[1]
    size = len(pattern.starts if q == 1 else pattern.rows)
    if not 0 < size <= LARGEST_SYSTEM:
        return np.inf
    return (1.0 if q == 1 else 1.7) * size**3 + 10.0 * size**2 + 10.0 * STEP_OVERHEAD


# Along the pattern --------------------------------------------------------------------------------------


def pattern_step(oracle: GramOracle, point: Point, pattern: Pattern) -> Point | None:
    """A Newton step for the non-zero rows and clusters as they are; None where it does not help.

    Clusters whose radius would become negative become zero. With one task the step ends at the minimizer for what then
    remains, with clusters that would pass each other as one.
    """
    step = _cluster_minimum if point.B.shape[1] == 1 else _turned_rows
    rows = step(oracle, point, pattern)
    if not row_norms(rows).max() < _LONGEST_STEP * pattern.norms[0]:
        return None
    B = np.zeros_like(point.B)
    B[pattern.rows] = rows
    trial = oracle.moved(point, B)
    if not trial.objective < point.objective:
        return None
    trial.gap = oracle.gap(trial)
    return trial


def _cluster_minimum(oracle: GramOracle, point: Point, pattern: Pattern) -> FloatArray:
    """Non-zero rows of one task at the minimizer over the radii of their clusters, each at its weights.

    Radii that come out negative are taken for zero, clusters that passed each other for one, and the others are solved
    for again, a few times. Among equal weights the order does not matter.
    """
    rows, norms, directions, starts, sizes = pattern
    lam = oracle.penalty.lam[: len(rows)]
    ordered = lam[0] != lam[-1]
    K = oracle.cluster_gram(rows, directions, starts)
    excess = directions[:, 0] * point.descent[rows, 0] - lam
    right = K @ norms[starts] + np.add.reduceat(excess, starts)
    merged = np.eye(len(starts))  # which clusters of the pattern each unknown stands for
    radii = possible = _solve_system(K, right)
    for merges_left in reversed(range(_MERGES + 1)):
        if ordered and np.count_nonzero(radii[1:] > radii[:-1]):
            possible = isotonic_regression(radii, weights=merged @ sizes, increasing=False).x
        possible = np.maximum(possible, 0.0)
        kept = np.flatnonzero(possible)
        if merges_left == 0 or len(kept) == 0 or np.array_equal(possible, radii):
            break
        heads = cluster_starts(possible[kept], 0.0) if ordered else np.arange(len(kept))
        K = np.add.reduceat(np.add.reduceat(K[np.ix_(kept, kept)], heads, axis=0), heads, axis=1)
        merged = np.add.reduceat(merged[kept], heads, axis=0)
        radii = possible = _solve_system(K, merged @ right)
    return np.repeat(possible @ merged, sizes)[:, None] * directions


def _turned_rows(oracle: GramOracle, point: Point, pattern: Pattern) -> FloatArray:
    """Non-zero rows of several tasks after a Newton step for their radii and directions.

    The step is for the loss plus ``sum_i lam_i norm_i`` with the order of norms fixed. Rows of a cluster share its
    weights. Across its direction a row is as stiff as its own part of them, which at the optimum is the length of its
    descent direction.
    """
    rows, norms, directions, starts, sizes = pattern
    descent = point.descent[rows]
    shares = np.repeat(np.add.reduceat(oracle.penalty.lam[: len(rows)], starts) / sizes, sizes)
    correlations = np.einsum("jk,jk->j", directions, descent)
    stiffness = np.maximum(correlations, _LEAST_CORRELATION * shares) / norms
    gradient = shares[:, None] * directions - descent
    step = _newton_step(oracle.inverse(rows, stiffness), pattern, stiffness, gradient, float(stiffness.mean()))
    radii = norms[starts] + np.einsum("jk,jk->j", directions, step)[starts]
    turned = point.B[rows] + step
    lengths = np.maximum(row_norms(turned), TINY)
    return turned * (np.repeat(np.maximum(radii, 0.0), sizes) / lengths)[:, None]


def _newton_step(
    inverse: FloatArray, pattern: Pattern, softness: FloatArray, gradient: FloatArray, scale: float
) -> FloatArray:
    """Minimize ``1/2 <e, M e> - 1/2 sum_j softness_j rho_j^2 + <gradient, e>`` over equal radii in clusters.

    ``M`` is the inverse of ``inverse``, and ``rho_j = <directions_j, e_j>`` the change of radius, along which a row is
    softer than across. The forces ``eta = softness * rho + nu``, with ``nu`` the forces that keep a cluster together,
    are those along the directions; given them, ``e = inverse (-gradient + directions * eta)`` task by task, and so
    ``rho = free + S eta`` with one small matrix S. Unknowns of the system are the radii of the clusters, then ``nu``
    (less its first entry in each cluster) in units of ``scale``.
    """
    directions, starts, sizes = pattern.directions, pattern.starts, pattern.sizes
    m = len(directions)
    unforced = -(inverse @ gradient)
    free = np.einsum("jk,jk->j", directions, unforced)
    S = inverse * (directions @ directions.T)
    K = S * -softness
    K[np.diag_indices(m)] += 1.0
    if len(starts) == m:
        radii = _solve_system(K, free)
        return unforced + inverse @ (directions * (softness * radii)[:, None])
    first = np.repeat(starts, sizes)
    others = np.flatnonzero(first != np.arange(m))
    holding = (S[:, first[others]] - S[:, others]) * scale
    x = _solve_system(np.hstack([np.add.reduceat(K, starts, axis=1), holding]), free)
    radii, nu = np.repeat(x[: len(starts)], sizes), scale * x[len(starts) :]
    eta = softness * radii
    eta[others] += nu
    np.subtract.at(eta, first[others], nu)
    return unforced + inverse @ (directions * eta[:, None])


def _solve_system(K: FloatArray, right: FloatArray) -> FloatArray:
    """Solution of ``K x = right``, or zeros, which are no direction of descent, where there is none."""
    try:
        solution = np.asarray(np.linalg.solve(K, right), dtype=np.float64)
    except np.linalg.LinAlgError:
        return np.zeros_like(right)
    return solution if np.isfinite(solution).all() else np.zeros_like(right)


# Proximal point method ----------------------------------------------------------------------------------


def newton_direction(oracle: GramOracle, B: FloatArray, V: FloatArray, image: FloatArray, damping: float) -> FloatArray:
    """``e`` with ``e + M G (E + e) / damping = 0``, M the derivative of ``B = prox_{J / damping}(V)``, ``image = G E``.

    It is zero but on non-zero rows, and keeps rows of a cluster at equal norms to first order.
    """
    direction, pattern = np.zeros_like(B), pattern_of(B)
    rows, norms, directions, starts, sizes = pattern
    if B.shape[1] > 1 and len(rows):
        stiffness = damping * row_norms(V[rows]) / norms
        inverse = oracle.inverse(rows, stiffness)
        direction[rows] = _newton_step(inverse, pattern, stiffness - damping, image[rows], damping)
    elif len(rows):  # rows move along their own direction only
        K = oracle.cluster_gram(rows, directions, starts)
        K[np.diag_indices(len(K))] += damping * sizes
        radii = _solve_system(K, -np.add.reduceat((directions * image[rows])[:, 0], starts))
        direction[rows] = np.repeat(radii, sizes)[:, None] * directions
    return direction


@dataclass(eq=False)
class ProximalNewton:
    """The proximal point method on one working set; :meth:`run` is all that others need."""

    oracle: GramOracle
    goal: float

    def run(self, point: Point, max_steps: int) -> tuple[Point, int]:
        """Newton steps until the gap meets the goal or nothing helps any more: the best point, and the steps."""
        self.best, self.steps_left = point, max_steps
        self.scale = 2.0 * point.loss + abs(float(np.vdot(point.descent, point.B)))  # that of the targets, squared
        center = point
        start = np.random.default_rng(0).standard_normal((len(point.B), 1))
        curvature = power_estimate(self.oracle.image, start, steps=8) or 1.0
        damping, floor, failures = _FIRST_DAMPING * curvature, _FLOOR, 0
        gaps = [point.gap]
        for _ in range(_OUTER_STEPS):
            point, newton_steps, failed = self._proximal_point(center, damping)
            if self._done():
                break
            gaps.append(self.best.gap)
            if failed:  # start again from where this step started, with more damping
                failures += 1
                if failures > _MOST_FAILURES:
                    break
                damping *= _DAMPING_RISE
                floor = damping / curvature
                continue
            center, failures = point, 0
            at_floor = damping <= floor * curvature * 1.0001
            if at_floor and len(gaps) > 4 and gaps[-1] > 0.3 * gaps[-5]:
                if floor <= _LOWEST_FLOOR:
                    break
                floor = max(floor / 10.0, _LOWEST_FLOOR)
            if newton_steps <= _EASY_STEPS:
                damping = max(damping / 10.0, floor * curvature)
        return self.best, max_steps - self.steps_left

    def _done(self) -> bool:
        return self.best.gap <= self.goal or self.steps_left <= 0

    def _proximal_point(self, center: Point, damping: float) -> tuple[Point, int, bool]:
        """Minimize the objective plus ``damping/2 ||B - center||^2``; the point, the steps, whether it failed."""
        oracle = self.oracle
        u, Gu = np.zeros_like(center.B), np.zeros_like(center.B)  # U = center + u
        psi, _, B, V, norm = self._dual_value(u, Gu, center, damping)
        previous, lazy = np.inf, 0
        point = center
        for step in range(1, _NEWTON_STEPS + 1):
            b = B - center.B
            loss, samples = oracle.trial(B, b, center.loss, center.descent)
            Gb = oracle.change(samples, center.descent)
            point = Point(B, loss, norm, center.descent - Gb)
            point.gap = oracle.gap(point)
            self.best = point if point.gap < self.best.gap else self.best
            self.steps_left -= 1
            E, image = b - u, Gb - Gu
            square = float(np.vdot(E, image))
            near = square <= 0.01 * damping * float(np.vdot(b, b)) or square < 1e-28 * self.scale
            if near or self._done():
                return point, step, False
            if square < 1e-11 * self.scale:
                lazy = lazy + 1 if square > 0.5 * previous else 0
                if lazy >= 4:
                    return point, step, True
            previous = square
            move = E + newton_direction(oracle, B, V, image, damping)
            slope = -float(np.vdot(image, move))
            if not slope < 0.0:
                move, slope = E, -square
            move_image = oracle.image(move)
            t = 1.0
            for _ in range(_HALVINGS):
                trial_u, trial_Gu = u + t * move, Gu + t * move_image
                trial_psi, noise, trial_B, trial_V, norm = self._dual_value(trial_u, trial_Gu, center, damping)
                if trial_psi <= psi + 1e-4 * t * slope + noise:
                    break
                t *= 0.5
            else:
                return point, step, True
            u, Gu, psi = trial_u, trial_Gu, trial_psi
            B, V = trial_B, trial_V
        return point, _NEWTON_STEPS, True

    def _dual_value(
        self, u: FloatArray, Gu: FloatArray, center: Point, damping: float
    ) -> tuple[float, float, FloatArray, FloatArray, float]:
        """``psi(center + u)`` less its value for u = b = 0, its rounding error; the prox B, its argument, its penalty.

        In terms of ``b = B - center`` nothing large cancels but the penalties.
        """
        V = center.B + (center.descent - Gu) / damping
        B = V.copy()
        norm = self.oracle.penalty.shrink(B, 1.0 / damping)
        b = B - center.B
        gain = float(np.vdot(center.descent, b))
        cross = float(np.vdot(Gu, b))
        psi = 0.5 * float(np.vdot(u, Gu)) - cross + gain - norm - 0.5 * damping * float(np.vdot(b, b))
        return psi, 16 * EPS * (abs(gain) + abs(cross) + norm), B, V, norm
