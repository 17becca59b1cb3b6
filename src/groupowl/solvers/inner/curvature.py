"""Proximal Newton steps for losses whose curvature changes, by quadratic models with one curvature per sample.

The model about a point is ``-<descent, D> + sigma/2 <D, M D>`` with ``M = X_W^T diag(h) X_W``, where ``h_i`` is the
mean curvature over the tasks of sample i. All tasks share M, so that the model is a squared-loss problem in Gram form
under the same penalty, clusters and all, and minimizing it takes no more passes over the samples. M knows what makes
gradient steps slow, that columns are correlated; ``sigma`` makes up for what it does not know, how tasks differ, by
the Barzilai-Borwein curvature of the last step, measured in M. A Hessian with all tasks would have the square of their
number times as many entries, for few steps less.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._typing import FloatArray, IndexArray
from ...norm import GroupOWL
from ...norm.kernels import EPS, TINY
from .newton import LARGEST_SYSTEM
from .oracles import STEP_OVERHEAD, Goal, GramOracle, Oracle, Point

# M plus this times its diagonal is safely positive.
_RIDGE = 1e-10
# Accuracy of a model's minimum relative to its gap at the start, and to that of the problem.
_MODEL_RTOL = 0.1
# What minimizing a model may cost at ordinary effort, in steps on the loss itself, within limits.
_MODEL_WORK = 50.0
_MODEL_STEPS = 50, 300
_LIKELY_MODEL_STEPS = 40
# And what one Newton step for a model may cost.
_NEWTON_WORK = 15.0
# A step must bring this much of the decrease that the model promised, or sigma doubles.
_DECREASE = 1e-4
_MOST_DOUBLINGS = 12
_SIGMA_RANGE = 0.05, 50.0
# Steps in which the gap must halve.
_HALVING_STEPS = 12
# An end whose gap is so many times that of the best point is not taken.
_WORSE = 2.0


def eliminated(M: FloatArray, descent: FloatArray, n_penalized: int) -> tuple[FloatArray, ...]:
    """The model of the penalized rows, which come first, for ``sigma = 1`` with the others where they are best.

    Its matrix and descent direction; how the others move if those stay, and how they respond to their moves.
    """
    k = n_penalized
    right = np.hstack([M[k:, :k], descent[k:]])
    solved = np.linalg.solve(M[k:, k:], right) if len(right) else right
    response, move = np.split(np.asarray(solved, dtype=np.float64), [k], axis=1)
    return M[:k, :k] - M[:k, k:] @ response, descent[:k] - M[:k, k:] @ move, move, response


@dataclass(eq=False)
class CurvatureNewton:
    """The method of this module on one working set; :meth:`price` and :meth:`run` are all that others need.

    Models have the non-zero units, and those that could be non-zero by the optimality conditions. ``solve`` minimizes
    them: :func:`groupowl.solvers.inner.minimize`.
    """

    oracle: Oracle
    goal: Goal
    solve: Callable[..., Any]
    effort: float = 1.0  # what minimizing a model may cost relative to the ordinary
    work_left: float = np.inf

    def price(self, point: Point) -> float:
        """Operations of a step from this point; infinity where the model would be too large."""
        rows, _ = self._rows(point)
        size = len(rows)
        if not 0 < size <= LARGEST_SYSTEM:
            return np.inf
        steps = _LIKELY_MODEL_STEPS * (2.0 * size**2 * point.B.shape[1] + STEP_OVERHEAD)
        return self.oracle.metric_cost(size) + size**3 + steps + self.oracle.step_cost

    def run(self, point: Point, steps: int, max_steps: int, work: float = np.inf) -> tuple[Point, int]:
        """Steps until the gap meets the goal or nothing helps any more: where they end, and how many.

        The gap must halve within ``work`` operations spent on models, and within some steps. ``steps`` were taken
        before, and there may be ``max_steps`` in all.
        """
        best, sigma, reference, since = point, 1.0, point.gap, 0
        taken = 0
        self.work_left = work
        while steps + taken < max_steps and not self.goal.met(point.gap, steps + taken):
            rows, penalty = self._rows(point)
            M = self._metric(point, rows) if 0 < len(rows) <= LARGEST_SYSTEM else None
            if M is None or (end := self._step(point, rows, penalty, M, sigma)) is None:
                break
            point, sigma = end
            taken += 1
            best = point if point.gap <= best.gap else best
            if point.gap <= 0.5 * reference:
                reference, since, self.work_left = point.gap, taken, work
            elif taken - since >= _HALVING_STEPS:
                break
        return (point if point.gap <= _WORSE * best.gap else best), taken

    def _rows(self, point: Point) -> tuple[IndexArray, GroupOWL]:
        """Rows of the model, unpenalized ones last, and the penalty of the others."""
        penalty, k = self.oracle.penalty, self.oracle.n_penalized
        candidates = penalty.norms(point.B[:k]) > 0.0
        candidates[penalty.candidates(penalty.correlations(point.descent[:k]))] = True
        units = np.flatnonzero(candidates)
        return np.concatenate([penalty.rows(units), np.arange(k, len(point.B))]), penalty.restrict(units)

    def _metric(self, point: Point, rows: IndexArray) -> FloatArray | None:
        """M at a point, safely positive; None where no sample has any curvature left."""
        M = self.oracle.metric(point, rows)
        if M is None:
            return None
        M[np.diag_indices(len(M))] += self.oracle.ridge * (rows < self.oracle.n_penalized)
        diagonal = np.diagonal(M)
        if not 0.0 < (size := float(diagonal.mean())) < np.inf:
            return None
        M[np.diag_indices(len(M))] = (1.0 + _RIDGE) * diagonal + EPS * size
        return M

    def _step(
        self, point: Point, rows: IndexArray, penalty: GroupOWL, M: FloatArray, sigma: float
    ) -> tuple[Point, float] | None:
        """The minimum of a model that promises no more than it holds, and the next sigma; None where there is none.

        That is the curvature of the loss along the step, relative to the one of the model.
        """
        oracle, k = self.oracle, penalty.n_rows
        start, noise = point.B[rows[:k]], 4 * EPS * abs(point.objective)
        descent = point.descent[rows]
        try:
            reduced, direction, others_move, response = eliminated(M, descent, k)
            square = float(np.vdot(direction, np.linalg.solve(reduced, direction)))
        except np.linalg.LinAlgError:
            return None
        for _ in range(_MOST_DOUBLINGS):
            loss = 0.5 * square / sigma  # of the squared-loss problem that the model is
            if not 2.0 * EPS * loss < _MODEL_RTOL * point.gap or self.work_left <= 0.0:
                return None  # its gap would be rounding
            end = self._minimum(GramOracle(sigma * reduced, penalty, start, direction, loss), point.gap)
            B = point.B.copy()
            B[rows[:k]] = end.B  # not by adding the change: zeros and ties to the last bit
            B[rows[k:]] += others_move / sigma - response @ (end.B - start)
            move = B[rows] - point.B[rows]
            slope, curved = float(np.vdot(descent, move)), float(np.vdot(move, M @ move))
            promise = 0.5 * sigma * curved - slope + end.norm - point.norm
            if not promise < noise:
                return None
            trial = oracle.moved(point, B)
            if trial.objective - point.objective <= _DECREASE * promise + noise:
                trial.gap = oracle.gap(trial)
                change = descent - trial.descent[rows]
                measured = float(np.vdot(move, change)) / curved if curved > 0.0 else sigma
                return trial, float(np.clip(measured, *_SIGMA_RANGE))
            curvature = 2.0 * (trial.loss - point.loss + slope) / max(curved, TINY)
            sigma = max(2.0 * sigma, curvature if np.isfinite(curvature) else 100.0 * sigma)
        return None

    def _minimum(self, model: GramOracle, gap: float) -> Any:
        """Minimize a model to a part of its gap, and of that of the problem."""
        accuracy = _MODEL_RTOL * min(gap, model.gap(model.base))
        allowance = self.effort * self.oracle.step_cost
        max_steps = int(np.clip(_MODEL_WORK * allowance / model.step_cost, *_MODEL_STEPS))
        end = self.solve(model, Goal(accuracy, accuracy), max_steps, newton_limit=_NEWTON_WORK * allowance)
        self.work_left -= end.work
        return end.point
