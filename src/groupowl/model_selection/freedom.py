"""Degrees of freedom of penalized fits: how much the predictors follow the targets.

Near a solution the fit moves on the manifold of its pattern: a cluster has one radius, and each of its rows turns
freely. Along it the objective is smooth with the curvature ``M + K``: ``M`` is that of the loss, ``K`` that of the
penalty, which holds a row of length r back from turning with the stiffness ``g / r``, where g is the part of the
weights that it pays. The trace of the derivative of the predictors in the targets is

    df = tr(M (M + K)^-1) = dim - tr(K (M + K)^-1)

(docs/mathematics/freedom.rst). With one task it is the number of clusters.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._typing import FloatArray, IndexArray
from ..norm.kernels import TINY, cluster_labels, row_norms
from ..problem import Problem

# Largest dense system; beyond it the trace is estimated from so many random directions, by conjugate gradients.
_LARGEST_SYSTEM = 2500
_DIRECTIONS = 32
_GRADIENTS = 200
_CG_RTOL = 1e-4


def degrees_of_freedom(problem: Problem, B: FloatArray) -> float:
    """Those of a solution, with intercept and unpenalized columns.

    Parameters
    ----------
    problem : Problem
    B : ndarray
        Coefficients of the problem; its own weights do not matter.
    """
    n_parameters = problem.loss.parameters_per_feature(problem.samples.n_tasks)
    # Directions of the unpenalized block that are no rows of B, because they are projected out.
    n_projected = 0 if problem.unpenalized.n_rows else problem.unpenalized.rank + problem.fit_intercept
    manifold = Manifold.at(problem, B)
    free = manifold.dimension(n_parameters) + n_parameters * n_projected
    rows_are_units = problem.penalty.rows_are_units
    if n_parameters == 1 and rows_are_units:
        return float(free)
    by_rows = problem.loss.is_quadratic and rows_are_units
    if (len(manifold.B) if by_rows else manifold.B.size) > _LARGEST_SYSTEM:
        return free - manifold.estimated_hold()
    return free - (manifold.hold_by_rows() if by_rows else manifold.hold())


@dataclass(frozen=True, eq=False)
class Manifold:
    """The coefficients near some that have the same pattern.

    Attributes
    ----------
    problem : Problem
        The problem on the non-zero units.
    B : ndarray of shape (r, q)
        Rows of non-zero units, then those of the unpenalized block.
    directions : ndarray of shape (r, q)
        Of the units, zero for the block.
    stiffness : ndarray of shape (r,)
        Of the rows of units against turning.
    clusters : ndarray of int of shape (n_units,)
        Which cluster a unit is in, from 0.
    """

    problem: Problem
    B: FloatArray
    directions: FloatArray
    stiffness: FloatArray
    clusters: IndexArray

    @classmethod
    def at(cls, problem: Problem, B: FloatArray) -> Manifold:
        """The manifold of some coefficients."""
        labels = cluster_labels(problem.penalty.norms(B[: problem.n_rows]))
        units = np.flatnonzero(labels)
        small = problem.restrict(units)
        B, spread, m = B[problem.row_index(units)], small.penalty.spread, small.n_rows
        norms = row_norms(B)
        norms[:m] = spread(small.penalty.norms(B[:m]))
        directions = np.zeros_like(B)
        directions[:m] = B[:m] / norms[:m, None]
        forces = np.einsum("jk,jk->j", small.descent(small.predictor(B)), directions)
        forces[:m] = spread(small.penalty.sums(forces[:m]))
        clusters = np.unique(labels[units], return_inverse=True)[1]
        return cls(small, B, directions, np.maximum(forces, 0.0) / np.maximum(norms, TINY), clusters)

    @property
    def n_clusters(self) -> int:
        """Units that the penalty holds share so many norms."""
        return int(self.clusters.max(initial=-1)) + 1

    def dimension(self, n_parameters: int) -> int:
        """A radius for each cluster, and the directions of each unit."""
        return self.n_clusters - len(self.clusters) + len(self.B) * n_parameters

    # tr(K (M + K)^-1) ---------------------------------------------------------------------------------

    def hold_by_rows(self) -> float:
        """For a loss whose tasks share one Gram matrix: by systems of one unknown for each row.

        With the stiffness in all directions, ``N = (G + S) (x) I``, rows move as if there were one task. What is too
        much, that of radii, is a correction of one force for each row: ``(M + K)^-1 = N^-1 + N^-1 R H R^T N^-1``, where
        R holds the directions, and ``H`` gives the forces along them that keep clusters together and radii free.
        """
        s, D, m = self.stiffness, self.directions, len(self.clusters)
        P = _inverse(self.problem.gram(np.arange(m)) + np.diag(s))
        angles = D @ D.T
        S = P * angles
        first = np.unique(self.clusters, return_index=True)[1][self.clusters]
        others = np.flatnonzero(first != np.arange(m))
        radii = np.eye(self.n_clusters)[self.clusters]
        holding = np.eye(m)[:, others] - np.eye(m)[:, first[others]]  # forces within clusters, which sum to zero
        system = np.hstack([radii - S @ (s[:, None] * radii), -S @ holding])
        H = np.hstack([s[:, None] * radii, holding]) @ _inverse(system)
        stiff = (P @ (s[:, None] * P)) * angles
        whole = D.shape[1] * float(s @ np.diag(P)) - float(s @ np.diag(S))
        return whole + float(np.sum(H * stiff.T)) - float(s @ np.diag(S @ H @ S))

    def hold(self) -> float:
        """By the curvature of the loss in all coefficients, as one matrix."""
        problem, (r, q) = self.problem, self.B.shape
        Z, design = problem.predictor(self.B), problem.design
        E = problem.predictor(np.eye(r), of_tasks=False)  # the columns, and those of the block
        M = design.reduce(problem.loss.curvature_along, Z, *problem.samples.handles, E)
        identity = np.eye(r * q).reshape(r * q, r, q)
        T = self.projected(identity).reshape(r * q, r * q)
        K = self.held(self.projected(identity)).reshape(r * q, r * q)
        system = T @ M @ T + K + np.trace(M) / max(r * q, 1) * (np.eye(r * q) - T)  # which moves nothing off it
        return float(np.sum(_inverse(system) * K.T))

    def estimated_hold(self) -> float:
        """The mean of ``z^T K (M + K)^-1 z`` over random directions ``z`` (Hutchinson), which has that trace."""
        rng, total = np.random.default_rng(0), 0.0
        for _ in range(_DIRECTIONS):
            z = self.projected(rng.standard_normal(self.B.shape))
            total += float(np.vdot(self.held(z), self._solved(z)))
        return total / _DIRECTIONS

    def _solved(self, right: FloatArray) -> FloatArray:
        """``(M + K)^-1 right`` by conjugate gradients."""
        x = np.zeros_like(right)
        residual = direction = right
        square = goal = float(np.vdot(right, right))
        for _ in range(_GRADIENTS):
            image = self.projected(self.curved(direction)) + self.held(direction)
            step = square / max(float(np.vdot(direction, image)), TINY)
            x = x + step * direction
            residual = residual - step * image
            before, square = square, float(np.vdot(residual, residual))
            if square <= _CG_RTOL**2 * goal:
                break
            direction = residual + (square / before) * direction
        return x

    def curved(self, move: FloatArray) -> FloatArray:
        """``M`` times a move."""
        problem = self.problem
        Z = problem.predictor(self.B)
        return problem.evaluate(
            problem.design.map(problem.loss.curved, Z, *problem.samples.handles, problem.predictor(move))
        )[0]

    def held(self, moves: FloatArray) -> FloatArray:
        """``K`` times moves along the manifold."""
        along = np.zeros(moves.shape[:-1])
        along[..., : self.problem.n_rows] = self._of_rows(self.along(moves))
        return self.stiffness[:, None] * (moves - along[..., None] * self.directions)

    def along(self, moves: FloatArray) -> FloatArray:
        """How much moves change the norm of each unit."""
        m, penalty = self.problem.n_rows, self.problem.penalty
        of_rows = np.sum(self.directions * moves, axis=-1)[..., :m]
        if penalty.rows_are_units:
            return np.asarray(of_rows)
        return np.asarray(of_rows @ np.eye(penalty.n_units)[penalty.units])

    def _of_rows(self, of_units: FloatArray) -> FloatArray:
        """One value per row from one per unit, along the last axis."""
        units = self.problem.penalty.units
        return of_units if units is None else of_units[..., units]

    def projected(self, moves: FloatArray) -> FloatArray:
        """The nearest moves along the manifold: radii of a cluster move together, and what no loss sees does not."""
        moves = self.problem.loss.canonical(moves.reshape(-1, moves.shape[-1])).reshape(moves.shape).copy()
        m = self.problem.n_rows
        along = self.along(moves)
        together = np.eye(self.n_clusters)[self.clusters] / np.maximum(np.bincount(self.clusters), 1)
        change = self._of_rows(along @ together @ np.eye(self.n_clusters)[:, self.clusters] - along)
        moves[..., :m, :] += change[..., None] * self.directions[:m]
        return moves


def _inverse(matrix: FloatArray) -> FloatArray:
    """The inverse, or the pseudoinverse of a singular matrix."""
    try:
        return np.asarray(np.linalg.inv(matrix), dtype=np.float64)
    except np.linalg.LinAlgError:
        return np.asarray(np.linalg.pinv(matrix), dtype=np.float64)
