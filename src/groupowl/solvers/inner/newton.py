"""Newton steps for squared loss: single ones along the pattern, and a proximal point method that finds the pattern.

:func:`pattern_step` takes non-zero rows and clusters as they are. Each outer step of :class:`ProximalNewton` minimises
the objective plus ``||B - center||^2 / (2 sigma)``. Its dual is a smooth convex function ``psi`` of one matrix U; a
Newton step for it changes one radius per cluster of equal norms and one direction per non-zero row. Rows and clusters
come from a prox with a long step, so that many of them change at once, which gradient steps cannot do on nearly
collinear columns or where there are more non-zero rows than samples.

The linear system has as many unknowns as there are non-zero coefficients, yet it takes matrices of one row per
*non-zero row* only: all tasks share the Gram matrix, and what differs between them, that rows move freely along their
own direction, is a correction of one unknown per row.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import isotonic_regression

from ..._typing import FloatArray, IndexArray
from ...norm.kernels import EPS, TINY, cluster_starts, prox_and_value, row_norms
from .descent import Iterate
from .oracles import STEP_OVERHEAD, Point, QuadraticOracle, penalty_of

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
# Least pull on a row, as a fraction of its weight, that counts in the curvature of the penalty.
_LEAST_PULL = 0.1
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
    norms = row_norms(V)
    shrunk, penalty = prox_and_value(norms, lam, 1.0 / damping)
    rows = np.flatnonzero(shrunk)
    rows = rows[np.argsort(-shrunk[rows], kind="stable")]
    factors = shrunk / np.maximum(norms, TINY)
    return _ProxPoint(V * factors[:, None], penalty, norms, shrunk, rows, V)


def newton_cost(B: FloatArray) -> float:
    """Operations of a Newton step at these coefficients, as long as those of a gradient step take.

    Infinity where the system is too large.
    """
    norms = row_norms(B)
    falling = -np.sort(-norms[norms > 0])
    q = B.shape[1]
    size = len(cluster_starts(falling, _TIE_RTOL)) if q == 1 else len(falling)
    if not 0 < size <= LARGEST_SYSTEM:
        return np.inf
    return (1.0 if q == 1 else 1.7) * size**3 + 10.0 * size**2 + 10.0 * STEP_OVERHEAD


def newton_direction(oracle: QuadraticOracle, prox: _ProxPoint, image: FloatArray, damping: float) -> FloatArray:
    """``e`` on the non-zero rows with ``e + M G (E + e) / damping = 0``, M the derivative of the prox.

    ``image`` is ``G E`` on those rows; ``e`` keeps rows of a cluster at equal norms to first order.
    """
    rows = prox.rows
    directions = prox.V[rows] / prox.V_norms[rows, None]
    starts = cluster_starts(prox.B_norms[rows], _TIE_RTOL)
    if directions.shape[1] == 1:  # rows move along their own direction only
        return _radial_direction(oracle, rows, directions, starts, image, damping)
    stiffness = damping * prox.V_norms[rows] / prox.B_norms[rows]
    softness = stiffness - damping
    return _general_direction(oracle.inverse(rows, stiffness), directions, starts, softness, image, damping)


def _radial_direction(
    oracle: QuadraticOracle,
    rows: IndexArray,
    directions: FloatArray,
    starts: IndexArray,
    image: FloatArray,
    damping: float,
) -> FloatArray:
    """One unknown per cluster."""
    sizes = _sizes(starts, len(rows))
    K = oracle.cluster_gram(rows, directions, starts)
    K[np.diag_indices(len(K))] += damping * sizes
    radii = _solve_system(K, -np.add.reduceat(np.einsum("jk,jk->j", directions, image), starts))
    return np.repeat(radii, sizes)[:, None] * directions


def _general_direction(
    inverse: FloatArray,
    directions: FloatArray,
    starts: IndexArray,
    softness: FloatArray,
    image: FloatArray,
    scale: float,
) -> FloatArray:
    """Minimise ``1/2 <e, (G + stiffness) e> - 1/2 sum_j softness_j rho_j^2 + <image, e>`` over equal radii in clusters.

    ``rho_j = <directions_j, e_j>`` is the change of radius, along which a row is softer than across. The forces
    ``eta = softness * rho + nu``, with ``nu`` the forces that keep a cluster together, are those along the directions;
    given them, ``e = inverse (-image + directions * eta)`` task by task, and so ``rho = free + S eta`` with one small
    matrix S. Unknowns of the system are the radii of the clusters, then ``nu`` (less its first entry in each cluster)
    in units of ``scale``.
    """
    m = len(directions)
    unforced = -(inverse @ image)
    free = np.einsum("jk,jk->j", directions, unforced)
    S = inverse * (directions @ directions.T)
    K = S * -softness
    K[np.diag_indices(m)] += 1.0
    if len(starts) == m:
        radii = _solve_system(K, free)
        return unforced + inverse @ (directions * (softness * radii)[:, None])
    sizes = _sizes(starts, m)
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


@dataclass(frozen=True, eq=False)
class _Pattern:
    """Non-zero rows by falling norm, their directions, and where clusters of equal norms begin."""

    rows: IndexArray
    norms: FloatArray
    directions: FloatArray
    starts: IndexArray

    @classmethod
    def of(cls, B: FloatArray) -> _Pattern:
        """The pattern of some coefficients."""
        norms = row_norms(B)
        rows = np.flatnonzero(norms)
        rows = rows[np.argsort(-norms[rows], kind="stable")]
        norms = norms[rows]
        return cls(rows, norms, B[rows] / norms[:, None], cluster_starts(norms, _TIE_RTOL))

    @property
    def sizes(self) -> IndexArray:
        """Rows in each cluster."""
        return _sizes(self.starts, len(self.rows))


def pattern_step(oracle: QuadraticOracle, iterate: Iterate, lam: FloatArray) -> Iterate | None:
    """A Newton step for the non-zero rows and clusters as they are; None where it does not help.

    Clusters whose radius would become negative become zero. With one task the step ends at the minimiser for what then
    remains, with clusters that would pass each other as one.
    """
    point, pattern = iterate.point, _Pattern.of(iterate.point.B)
    if len(pattern.rows) == 0:
        return None
    one_task = point.B.shape[1] == 1
    moved = (_cluster_minimum if one_task else _turned_rows)(oracle, point, pattern, lam)
    if not row_norms(moved).max() < _LONGEST_STEP * pattern.norms[0]:
        return None
    B = np.zeros_like(point.B)
    B[pattern.rows] = moved
    trial, penalty = oracle.trial(point, B, B - point.B), penalty_of(B, lam)
    if not trial.loss + penalty < iterate.objective:
        return None
    gap = oracle.gap(trial, penalty, lam)
    return Iterate(trial, penalty, iterate.lipschitz, gap, iterate.steps + 1, largest=iterate.largest)


def _cluster_minimum(oracle: QuadraticOracle, point: Point, pattern: _Pattern, lam: FloatArray) -> FloatArray:
    """Non-zero rows of one task at the minimiser over the radii of their clusters, each at its weights.

    Radii that come out negative are taken for zero, clusters that passed each other for one, and the others are solved
    for again, a few times. Among equal weights the order does not matter.
    """
    rows, directions, starts = pattern.rows, pattern.directions, pattern.starts
    ordered = lam[0] != lam[len(rows) - 1]
    K, sizes = oracle.cluster_gram(rows, directions, starts), pattern.sizes
    pulls = directions[:, 0] * oracle.complete(point)[rows, 0] - lam[: len(rows)]
    right = K @ pattern.norms[starts] + np.add.reduceat(pulls, starts)
    place, weights = np.arange(len(starts)), sizes  # entry of radii for each cluster of the pattern, or -1; its rows
    radii = _solve_system(K, right)
    for _ in range(_MERGES):
        pooled = _falling(radii, weights) if ordered else radii
        kept = np.flatnonzero(pooled > 0.0)
        if pooled is radii and len(kept) == len(radii):
            break
        heads = cluster_starts(pooled[kept], 0.0) if ordered else np.arange(len(kept))
        if len(heads) == 0:
            return np.zeros_like(directions)
        number = np.full(len(radii), -1)
        number[kept] = np.searchsorted(heads, np.arange(len(kept)), side="right") - 1
        place = np.where(place < 0, -1, number[place])
        K = np.add.reduceat(np.add.reduceat(K[np.ix_(kept, kept)], heads, axis=0), heads, axis=1)
        right, weights = np.add.reduceat(right[kept], heads), np.add.reduceat(weights[kept], heads)
        radii = _solve_system(K, right)
    radii = np.maximum(_falling(radii, weights) if ordered else radii, 0.0)
    return np.repeat(np.append(radii, 0.0)[place], sizes)[:, None] * directions


def _falling(radii: FloatArray, weights: IndexArray) -> FloatArray:
    """The radii themselves if they fall, else the nearest ones that do."""
    if not np.count_nonzero(radii[1:] > radii[:-1]):
        return radii
    return np.asarray(isotonic_regression(radii, weights=weights, increasing=False).x, dtype=np.float64)


def _turned_rows(oracle: QuadraticOracle, point: Point, pattern: _Pattern, lam: FloatArray) -> FloatArray:
    """Non-zero rows of several tasks after a Newton step for their radii and directions."""
    rows, directions, starts, sizes = pattern.rows, pattern.directions, pattern.starts, pattern.sizes
    step = _pattern_direction(oracle, point, pattern, lam)
    radii = pattern.norms[starts] + np.einsum("jk,jk->j", directions, step)[starts]
    turned = point.B[rows] + step
    lengths = np.maximum(row_norms(turned), TINY)
    return turned * (np.repeat(np.maximum(radii, 0.0), sizes) / lengths)[:, None]


def _pattern_direction(oracle: QuadraticOracle, point: Point, pattern: _Pattern, lam: FloatArray) -> FloatArray:
    """Newton direction on the non-zero rows for the loss plus ``sum_i lam_i norm_i`` with the order of norms fixed.

    Rows of a cluster share its weights. Across its direction a row is as stiff as its own part of them, which at the
    optimum is the length of its descent direction.
    """
    rows, directions, starts, sizes = pattern.rows, pattern.directions, pattern.starts, pattern.sizes
    descent = oracle.complete(point)[rows]
    shares = np.repeat(np.add.reduceat(lam[: len(rows)], starts) / sizes, sizes)
    image = shares[:, None] * directions - descent
    pulls = np.einsum("jk,jk->j", directions, descent)
    stiffness = np.maximum(pulls, _LEAST_PULL * shares) / pattern.norms
    inverse = oracle.inverse(rows, stiffness)
    return _general_direction(inverse, directions, starts, stiffness, image, float(stiffness.mean()))


def _sizes(starts: IndexArray, n_rows: int) -> IndexArray:
    """Rows in each cluster."""
    return np.diff(np.append(starts, n_rows))


class ProximalNewton:
    """The method of this module on one working set; :meth:`run` is all that others need."""

    def __init__(self, oracle: QuadraticOracle, lam: FloatArray, goal: float) -> None:
        self.oracle = oracle
        self.lam = lam
        self.goal = goal
        self.scale = oracle.target_square

    def run(self, iterate: Iterate, max_steps: int) -> Iterate:
        """Newton steps from the iterate until the gap on the working set meets the goal or nothing helps any more."""
        self.best, self.steps_left = iterate, max_steps
        center = iterate.point
        self.curvature = _largest_curvature(self.oracle)
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
            center, failures = point, 0
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
            point, Gb = self.oracle.displaced(center, prox.B, b)
            self._note(point, prox.penalty)
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
            move[rows] += newton_direction(self.oracle, prox, image[rows], damping)
        slope = -float(np.vdot(image, move))
        if not slope < 0.0:
            move, slope = E, -float(np.vdot(E, image))
        return move, slope, self.oracle.image(move)

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

    def _note(self, point: Point, penalty: float) -> None:
        """Remember the point if its gap is the smallest so far."""
        gap = self.oracle.gap(point, penalty, self.lam)
        self.best.steps += 1
        self.steps_left -= 1
        if gap < self.best.gap:
            self.best = Iterate(point, penalty, self.best.lipschitz, gap, self.best.steps)


def _largest_curvature(oracle: QuadraticOracle, steps: int = 8) -> float:
    """Largest eigenvalue of ``G``, by a few power iterations from its diagonal."""
    v = 1.0 / oracle.scales()[:, None]
    value = 0.0
    for _ in range(steps):
        norm = float(np.linalg.norm(v))
        if norm == 0.0:
            break
        image = oracle.image(v / norm)
        value, v = float(np.linalg.norm(image)), image
    return value or 1.0
