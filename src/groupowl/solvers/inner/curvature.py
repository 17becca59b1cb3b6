"""Proximal Newton steps for losses whose curvature changes, by quadratic models with one curvature per sample.

The model about a point is ``-<descent, D> + sigma/2 <D, M D>`` with ``M = X_W^T diag(h) X_W``, where ``h_i`` is the
mean curvature over the tasks of sample i. All tasks share M, so that the model is a squared-loss problem in Gram form
under the same penalty, clusters and all, and minimising it takes no more passes over the samples. M knows what makes
gradient steps slow, that columns are correlated; ``sigma`` makes up for what it does not know, how tasks differ, by
the Barzilai-Borwein curvature of the last step, measured in M. A Hessian with all tasks would have the square of their
number times as many entries, for few steps less.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ..._typing import FloatArray, IndexArray
from ...norm.kernels import EPS, TINY, kkt_rows, nonzero_rows, row_norms
from .descent import Goal, Iterate
from .newton import LARGEST_SYSTEM
from .oracles import STEP_OVERHEAD, CurvedOracle, GramOracle, Oracle, Point, penalty_of


class ModelSolver(Protocol):
    """How a model is minimised."""

    def __call__(
        self,
        oracle: Oracle,
        B: FloatArray,
        lam: FloatArray,
        *,
        goal: Goal,
        max_steps: int,
        newton_limit: float,
    ) -> Iterate:
        """Minimise loss plus penalty to the goal."""
        ...


# M plus this times its diagonal is safely positive.
_RIDGE = 1e-10
# Accuracy of a model's minimum relative to its gap at the start, and to that of the problem.
_MODEL_RTOL = 0.1
# What minimising a model may cost at ordinary effort, in steps on the loss itself, within limits.
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


def _model_step_cost(size: int, n_tasks: int) -> float:
    return 2.0 * size**2 * n_tasks + STEP_OVERHEAD


@dataclass(frozen=True, eq=False)
class _Model:
    """The model at a point for ``sigma = 1``, with its unpenalised rows where they are best for the others."""

    M: FloatArray
    descent: FloatArray
    square: float  # <descent, M^-1 descent>: twice the loss of the squared-loss problem that the model is
    free_move: FloatArray  # of the unpenalised rows, if the others stay
    free_response: FloatArray  # of the unpenalised rows to a move of the others
    free_gain: float  # decrease of the model by the unpenalised rows alone

    @classmethod
    def about(cls, M: FloatArray, descent: FloatArray, n_penalised: int) -> _Model:
        """The first ``n_penalised`` rows stay, the others are eliminated."""
        k = n_penalised
        right = np.hstack([M[k:, :k], descent[k:]])
        solved = np.linalg.solve(M[k:, k:], right) if len(right) else right
        response, move = np.split(np.asarray(solved, dtype=np.float64), [k], axis=1)
        reduced = M[:k, :k] - M[:k, k:] @ response
        pull = descent[:k] - M[:k, k:] @ move
        square = float(np.vdot(pull, np.linalg.solve(reduced, pull)))
        return cls(reduced, pull, square, move, response, 0.5 * float(np.vdot(descent[k:], move)))

    def oracle(self, sigma: float, B: FloatArray) -> GramOracle:
        """The model about ``B`` as a squared loss."""
        square = self.square / sigma
        return GramOracle(sigma * self.M, B, self.descent, 0.5 * square, square + float(np.vdot(self.descent, B)))

    def change(self, sigma: float, move: FloatArray) -> float:
        """Change of the model's loss by a move of the penalised rows and what the others make of it."""
        curved = 0.5 * sigma * float(np.vdot(move, self.M @ move))
        return curved - float(np.vdot(self.descent, move)) - self.free_gain / sigma

    def free_change(self, sigma: float, change: FloatArray) -> FloatArray:
        """Of the unpenalised rows, given that of the penalised ones."""
        return self.free_move / sigma - self.free_response @ change


class CurvatureNewton:
    """The method of this module on one working set; :meth:`price` and :meth:`run` are all that others need.

    Models have the non-zero rows, and those that could be non-zero by the optimality conditions.
    """

    def __init__(
        self,
        oracle: CurvedOracle,
        lam: FloatArray,
        goal: Goal,
        solve: ModelSolver,
        n_tasks: int,
        effort: float = 1.0,
    ) -> None:
        self.oracle = oracle
        self.lam = lam
        self.goal = goal
        self.solve = solve
        self.n_tasks = n_tasks
        self.metric = oracle.metric()
        self.allowance = effort * oracle.step_cost(n_tasks)
        self.work_left = np.inf

    def price(self, point: Point) -> float:
        """Operations of a step from this point; infinity where the model would be too large."""
        size = len(self._rows(point))
        if not 0 < size <= LARGEST_SYSTEM:
            return np.inf
        metric = self.metric.work(size) + size**3
        steps = _LIKELY_MODEL_STEPS * _model_step_cost(size, self.n_tasks)
        return metric + steps + self.oracle.step_cost(self.n_tasks)

    def run(self, iterate: Iterate, max_steps: int, work: float = np.inf) -> Iterate:
        """Steps from the iterate until the gap on the working set meets the goal or nothing helps any more.

        The gap must halve within ``work`` operations spent on models, and within some steps.
        """
        best, sigma, reference, since = iterate, 1.0, iterate.gap, 0
        self.work_left = work
        for step in range(1, max_steps + 1):
            rows = self._rows(iterate.point)
            M = self._metric(iterate.point, rows) if 0 < len(rows) <= LARGEST_SYSTEM else None
            if M is None or (end := self._step(iterate, rows, M, sigma)) is None:
                break
            sigma = self._next_sigma(rows, M, iterate.point, end.point, sigma)
            iterate = end
            best = iterate if iterate.gap <= best.gap else best
            if self.goal.met(iterate.gap, iterate.steps):
                break
            if iterate.gap <= 0.5 * reference:
                reference, since, self.work_left = iterate.gap, step, work
            elif step - since >= _HALVING_STEPS:
                break
        if iterate.gap <= _WORSE * best.gap:
            return iterate
        best.steps = iterate.steps
        return best

    def _rows(self, point: Point) -> IndexArray:
        """Rows of the model, unpenalised ones last."""
        k = len(self.lam)
        candidates = nonzero_rows(point.B)
        candidates[k:] = True
        candidates[kkt_rows(row_norms(self.oracle.complete(point)[:k]), self.lam)] = True
        return np.flatnonzero(candidates)

    def _metric(self, point: Point, rows: IndexArray) -> FloatArray | None:
        """M at a point, safely positive; None where no sample has any curvature left."""
        M = self.metric.at(point, rows)
        if M is None:
            return None
        diagonal = np.diagonal(M)
        if not 0.0 < (size := float(diagonal.mean())) < np.inf:
            return None
        M[np.diag_indices(len(M))] = (1.0 + _RIDGE) * diagonal + EPS * size
        return M

    def _step(self, iterate: Iterate, rows: IndexArray, M: FloatArray, sigma: float) -> Iterate | None:
        """The minimum of a model that promises no more than it holds; None where there is none."""
        oracle, point = self.oracle, iterate.point
        k = int(np.searchsorted(rows, len(self.lam)))  # penalised rows of the model
        start, noise = point.B[rows[:k]], 4 * EPS * abs(iterate.objective)
        descent = oracle.complete(point)[rows]
        try:
            model = _Model.about(M, descent, k)
        except np.linalg.LinAlgError:
            return None
        for _ in range(_MOST_DOUBLINGS):
            if not EPS * model.square / sigma < _MODEL_RTOL * iterate.gap or self.work_left <= 0.0:
                return None  # its gap would be rounding
            end = self._minimum(model.oracle(sigma, start), start, iterate)
            change = end.point.B - start
            promise = model.change(sigma, change) + end.penalty - iterate.penalty
            if not promise < noise:
                return None
            B = point.B.copy()
            B[rows[:k]] = end.point.B  # not by adding the change: zeros and ties to the last bit
            B[rows[k:]] += model.free_change(sigma, change)
            trial, penalty = oracle.trial(point, B, B - point.B), penalty_of(B, self.lam)
            if trial.loss + penalty - iterate.objective <= _DECREASE * promise + noise:
                gap = oracle.gap(trial, penalty, self.lam)
                return Iterate(trial, penalty, iterate.lipschitz, gap, iterate.steps + 1, largest=iterate.largest)
            move = B[rows] - point.B[rows]
            rise = trial.loss - point.loss + float(np.vdot(descent, move))  # half the curvature along the move
            curvature = 2.0 * rise / max(float(np.vdot(move, M @ move)), TINY)
            sigma = max(2.0 * sigma, curvature if np.isfinite(curvature) else 100.0 * sigma)
        return None

    def _minimum(self, model: GramOracle, start: FloatArray, iterate: Iterate) -> Iterate:
        lam = self.lam[: len(start)]
        accuracy = _MODEL_RTOL * min(iterate.gap, model.gap(model.base, iterate.penalty, lam))
        steps = _MODEL_WORK * self.allowance / _model_step_cost(len(start), self.n_tasks)
        end = self.solve(
            model,
            start,
            lam,
            goal=Goal(accuracy, accuracy),
            max_steps=int(np.clip(steps, *_MODEL_STEPS)),
            newton_limit=_NEWTON_WORK * self.allowance,
        )
        self.work_left -= end.work
        return end

    def _next_sigma(self, rows: IndexArray, M: FloatArray, start: Point, end: Point, sigma: float) -> float:
        """Curvature of the loss along the last step, relative to that of the model."""
        move = (end.B - start.B)[rows]
        change = (self.oracle.complete(start) - self.oracle.complete(end))[rows]
        modelled = float(np.vdot(move, M @ move))
        measured = float(np.vdot(move, change)) / modelled if modelled > 0.0 else sigma
        return float(np.clip(measured, *_SIGMA_RANGE))
