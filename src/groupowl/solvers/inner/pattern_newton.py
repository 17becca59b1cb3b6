"""Newton steps among coefficients with a fixed pattern, for losses whose Hessian is affordable.

The unknowns are those of :mod:`~groupowl.solvers.inner.newton`: one radius per cluster of equal norms, ``n_tasks - 1``
directions per non-zero row, and the unpenalised rows. A proximal step after each Newton step lets rows come and go.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import isotonic_regression

from ..._kernels import unit_norms
from ..._typing import FloatArray, IndexArray
from .descent import Goal, Iterate, barzilai_borwein
from .newton import cluster_starts, solve_system, system_cost, tangents
from .oracles import ColumnsOracle, Oracle, penalty_of

#: Largest number of operations that a Hessian may take, and of unknowns.
MOST_OPERATIONS = 2e9
MOST_UNKNOWNS = 1500

_FIRST_DAMPING = 1e-8
_DAMPING_RISE = 30.0
_TRIES = 6
_STEPS = 8
_STEP_LENGTHS = (1.0, 0.3, 0.09)


class _Frame:
    """An orthonormal basis for each row that may move, and how clusters tie their radii together."""

    def __init__(self, B: FloatArray, lam: FloatArray) -> None:
        norms = unit_norms(B[: len(lam)])
        support = np.flatnonzero(norms)
        self.order: IndexArray = support[np.argsort(-norms[support], kind="stable")]
        self.free: IndexArray = np.arange(len(lam), len(B))
        self.norms = norms[self.order]
        self.starts = cluster_starts(self.norms, rtol=1e-9)
        self.sizes = np.diff(np.append(self.starts, len(self.order)))
        self.weights = np.add.reduceat(lam[: len(self.order)], self.starts) if len(self.order) else np.zeros(0)
        self.directions = B[self.order] / self.norms[:, None]
        self.tangents = tangents(self.directions)

    @property
    def rows(self) -> IndexArray:
        """Rows that may move: penalised ones by falling norm, then the others."""
        return np.concatenate([self.order, self.free])

    def size(self, n_tasks: int) -> int:
        """Number of unknowns."""
        return len(self.starts) + len(self.order) * (n_tasks - 1) + len(self.free) * n_tasks

    def project(self, M: FloatArray) -> FloatArray:
        """Components of matrices (rows, n_tasks, ...) along the unknowns."""
        penalised, free = M[: len(self.order)], M[len(self.order) :]
        radial = np.add.reduceat(np.einsum("jk,jk...->j...", self.directions, penalised), self.starts, axis=0)
        across = np.einsum("jtk,jk...->jt...", self.tangents, penalised)
        shape = M.shape[2:]
        return np.concatenate([radial, across.reshape(-1, *shape), free.reshape(-1, *shape)])

    def move(self, B: FloatArray, x: FloatArray, t: float) -> FloatArray:
        """Coefficients after a step of length ``t``; radii that cross are merged, none becomes negative."""
        clusters, q = len(self.starts), B.shape[1]
        radii = self.norms[self.starts] + t * x[:clusters]
        if np.any(radii[1:] > radii[:-1]):
            radii = isotonic_regression(radii, weights=self.sizes, increasing=False).x
        radii = np.repeat(np.maximum(radii, 0.0), self.sizes)
        across = x[clusters : clusters + len(self.order) * (q - 1)].reshape(len(self.order), q - 1)
        turned = self.directions + t * np.einsum("jt,jtk->jk", across, self.tangents) / self.norms[:, None]
        moved = B.copy()
        moved[self.order] = turned * (radii / unit_norms(turned))[:, None]
        moved[self.free] += t * x[clusters + len(self.order) * (q - 1) :].reshape(-1, q)
        return moved


def pattern_newton_cost(oracle: Oracle, iterate: Iterate, lam: FloatArray, rank: int) -> float:
    """Operations of a Newton step along the pattern of the iterate; infinity where it is too large or near singular."""
    if not isinstance(oracle, ColumnsOracle):
        return np.inf
    frame = _Frame(iterate.point.B, lam)
    n, q = oracle.Y.shape
    size = frame.size(q)
    hessian = n * float(size) ** 2
    if not 0 < len(frame.order) < rank or size > MOST_UNKNOWNS or hessian > MOST_OPERATIONS:
        return np.inf
    return hessian + system_cost(size)


def pattern_newton(oracle: Oracle, iterate: Iterate, lam: FloatArray, *, goal: Goal, max_steps: int) -> Iterate:
    """Newton steps along the pattern, each followed by proximal steps, as long as they halve the gap."""
    assert isinstance(oracle, ColumnsOracle)
    damping = _FIRST_DAMPING
    for _ in range(_STEPS):
        if iterate.steps >= max_steps:
            break
        before = iterate.gap
        moved, damping = _newton_step(oracle, iterate, lam, damping)
        if not moved:
            break
        iterate.steps += 1
        iterate.recent.clear()
        iterate = barzilai_borwein(oracle, iterate, lam, goal=goal, max_steps=2, min_steps=0)
        if goal.met(iterate.gap, iterate.steps) or iterate.exhausted or iterate.gap > 0.5 * before:
            break
    return iterate


def _newton_step(oracle: ColumnsOracle, iterate: Iterate, lam: FloatArray, damping: float) -> tuple[bool, float]:
    """Move the iterate by one damped Newton step that lowers the objective; whether that worked, and the damping."""
    point = iterate.point
    B = point.B
    frame = _Frame(B, lam)
    if len(frame.order) == 0:
        return False, damping
    rows = frame.rows
    gradient = -oracle.complete(point)[rows]
    slope = frame.project(gradient)
    slope[: len(frame.starts)] += frame.weights
    K = _hessian(oracle, point.samples, frame)
    pull = np.maximum(-np.einsum("jk,jk->j", gradient[: len(frame.order)], frame.directions), 0.0) / frame.norms
    clusters, q = len(frame.starts), B.shape[1]
    tangential = slice(clusters, clusters + len(frame.order) * (q - 1))
    diagonal = np.zeros(len(K))
    diagonal[tangential] = np.repeat(pull, q - 1)
    K[np.diag_indices(len(K))] += diagonal
    scale = float(np.diagonal(K).max())
    for _ in range(_TRIES):
        damped = K.copy()
        damped[np.diag_indices(len(K))] += damping * scale
        x = solve_system(damped, -slope)
        expected = float(slope @ x)
        for t in _STEP_LENGTHS if expected < 0.0 else ():
            moved = frame.move(B, x, t)
            trial = oracle.trial(point, moved, moved - B)
            penalty = penalty_of(moved, lam)
            if trial.loss + penalty <= iterate.objective + 1e-4 * t * expected:
                oracle.complete(trial)
                iterate.point, iterate.penalty = trial, penalty
                return True, max(damping / 10.0 if t == 1.0 else damping, 1e-12)
        damping *= _DAMPING_RISE
    return False, damping


def _hessian(oracle: ColumnsOracle, theta: FloatArray, frame: _Frame) -> FloatArray:
    """Hessian of the loss in the unknowns of the frame."""
    blocks = oracle.loss.hessian(theta, oracle.Y, oracle.w)  # (n_samples, n_tasks, n_tasks)
    A = oracle.columns.dense(frame.rows)
    m, q = len(A), blocks.shape[1]
    H = np.empty((m, q, m, q))
    for k in range(q):
        for other in range(k, q):
            H[:, k, :, other] = (A * blocks[:, k, other]) @ A.T
            if other > k:
                H[:, other, :, k] = H[:, k, :, other].T
    half = frame.project(H.reshape(m, q, m * q)).reshape(-1, m, q)
    return frame.project(half.transpose(1, 2, 0))
