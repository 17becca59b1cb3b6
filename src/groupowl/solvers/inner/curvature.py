"""Proximal Newton steps for losses whose curvature changes, by quadratic models with one curvature per sample.

The model about a point is ``-<descent, D> + sigma/2 <D, M D>`` with ``M = X_W^T diag(h) X_W``, where ``h_i`` is the
mean curvature over the tasks of sample i. All tasks share M, so that the model is a squared-loss problem in Gram form
under the same penalty, clusters and all, and minimising it takes no more passes over the samples. M knows what makes
gradient steps slow, that columns are correlated; ``sigma`` makes up for what it does not know, how tasks differ, by
the Barzilai-Borwein curvature of the last step, measured in M. A Hessian with all tasks would have the square of their
number times as many entries, for few steps less.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..._kernels import EPS, kkt_rows, nonzero_rows, unit_norms
from ..._typing import FloatArray, IndexArray
from .descent import Goal, Iterate
from .newton import LARGEST_SYSTEM
from .oracles import STEP_OVERHEAD, ColumnsOracle, GramOracle, Oracle, Point, penalty_of

#: How a model is minimised: ``solve(oracle, B, lam, goal=, max_steps=, newton_limit=)``.
ModelSolver = Callable[..., Iterate]

# Samples behind M: at least so many, and so many times the number of columns.
_LEAST_SAMPLES = 2000
_SAMPLES_PER_COLUMN = 8
# M plus this times its mean diagonal is safely positive.
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


def curvature_cost(oracle: Oracle, B: FloatArray) -> float:
    """Operations of one step from these coefficients; infinity where it cannot be done."""
    size = int(np.count_nonzero(nonzero_rows(B)))
    if not isinstance(oracle, ColumnsOracle) or not 0 < size <= LARGEST_SYSTEM:
        return np.inf
    share = min(1.0, _sample_count(size) / len(oracle.Y))
    metric = share * oracle.columns.gram_work * (size / oracle.columns.n_columns) ** 2 + size**3
    return metric + _LIKELY_MODEL_STEPS * _model_step_cost(size, B.shape[1]) + oracle.step_cost(B.shape[1])


def _sample_count(size: int) -> int:
    return max(_LEAST_SAMPLES, _SAMPLES_PER_COLUMN * size)


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
    """The method of this module on one working set; :meth:`run` is all that others need.

    Models have the non-zero rows, and those that could be non-zero by the optimality conditions.
    """

    def __init__(
        self, oracle: ColumnsOracle, lam: FloatArray, goal: Goal, solve: ModelSolver, effort: float = 1.0
    ) -> None:
        self.oracle = oracle
        self.lam = lam
        self.goal = goal
        self.solve = solve
        self.n_tasks = oracle.Y.shape[1]
        self.allowance = effort * oracle.step_cost(self.n_tasks)
        self.samples = np.arange(len(oracle.Y))
        self.columns = oracle.columns

    def run(self, iterate: Iterate, max_steps: int) -> Iterate:
        """Steps from the iterate until the gap on the working set meets the goal or nothing helps any more."""
        self._draw_samples(int(np.count_nonzero(nonzero_rows(iterate.point.B))))
        sigma, reference, since = 1.0, iterate.gap, 0
        for step in range(1, max_steps + 1):
            rows = self._rows(iterate.point)
            M = self._metric(iterate.point, rows) if 0 < len(rows) <= LARGEST_SYSTEM else None
            if M is None or (end := self._step(iterate, rows, M, sigma)) is None:
                break
            sigma = self._next_sigma(rows, M, iterate.point, end.point, sigma)
            iterate = end
            if self.goal.met(iterate.gap, iterate.steps):
                break
            if iterate.gap <= 0.5 * reference:
                reference, since = iterate.gap, step
            elif step - since >= _HALVING_STEPS:
                break
        return iterate

    def _draw_samples(self, size: int) -> None:
        """Samples for M, all where there are few; the same in every step."""
        n, count = len(self.samples), _sample_count(size)
        if count < n:
            self.samples = np.sort(np.random.default_rng(0).choice(n, count, replace=False))
            self.columns = self.oracle.columns.sampled(self.samples)

    def _rows(self, point: Point) -> IndexArray:
        """Rows of the model, unpenalised ones last."""
        k = len(self.lam)
        candidates = nonzero_rows(point.B)
        candidates[k:] = True
        candidates[kkt_rows(unit_norms(self.oracle.complete(point)[:k]), self.lam)] = True
        return np.flatnonzero(candidates)

    def _metric(self, point: Point, rows: IndexArray) -> FloatArray | None:
        """M at a point; None where no sample has any curvature left."""
        oracle, samples = self.oracle, self.samples
        h = oracle.loss.curvatures(point.samples[samples], oracle.Y[samples], oracle.w[samples])
        columns = self.columns if len(rows) == len(point.B) else self.columns.chosen(rows)
        M = columns.gram(columns, h * (len(oracle.Y) / len(samples)))
        size = float(np.trace(M)) / len(M)
        if not 0.0 < size < np.inf:
            return None
        M[np.diag_indices(len(M))] += _RIDGE * size
        return M

    def _step(self, iterate: Iterate, rows: IndexArray, M: FloatArray, sigma: float) -> Iterate | None:
        """The minimum of a model that promises no more than it holds; None where there is none."""
        oracle, point = self.oracle, iterate.point
        k = int(np.searchsorted(rows, len(self.lam)))  # penalised rows of the model
        start, noise = point.B[rows[:k]], 4 * EPS * abs(iterate.objective)
        try:
            model = _Model.about(M, oracle.complete(point)[rows], k)
        except np.linalg.LinAlgError:
            return None
        for _ in range(_MOST_DOUBLINGS):
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
            sigma *= 2.0
        return None

    def _minimum(self, model: GramOracle, start: FloatArray, iterate: Iterate) -> Iterate:
        lam = self.lam[: len(start)]
        accuracy = _MODEL_RTOL * min(iterate.gap, model.gap(model.base, iterate.penalty, lam))
        steps = _MODEL_WORK * self.allowance / _model_step_cost(len(start), self.n_tasks)
        return self.solve(
            model,
            start,
            lam,
            goal=Goal(accuracy, accuracy),
            max_steps=int(np.clip(steps, *_MODEL_STEPS)),
            newton_limit=_NEWTON_WORK * self.allowance,
        )

    def _next_sigma(self, rows: IndexArray, M: FloatArray, start: Point, end: Point, sigma: float) -> float:
        """Curvature of the loss along the last step, relative to that of the model."""
        move = (end.B - start.B)[rows]
        change = (self.oracle.complete(start) - self.oracle.complete(end))[rows]
        modelled = float(np.vdot(move, M @ move))
        measured = float(np.vdot(move, change)) / modelled if modelled > 0.0 else sigma
        return float(np.clip(measured, *_SIGMA_RANGE))
