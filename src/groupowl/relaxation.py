"""Coefficients of the selected features without the penalty: the relaxed fit."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from scipy.linalg import eigh
from scipy.sparse.linalg import LinearOperator, cg

from ._kernels import EPS
from ._typing import FloatArray, IndexArray
from .designs import Columns
from .model import Model
from .problem import Problem

# Ridge of the multinomial fit, relative to the mean curvature of the null model.
_RIDGE = 1e-6
# The ridge decides where a tenth of it moves the predictors by more than this, relatively.
_DECIDES_RTOL = 1e-2
# More entries than this are not copied to a dense matrix; the Gram matrix of the columns does, less exactly.
_MOST_ENTRIES = 1 << 24
_NEWTON_STEPS = 100
# Ridge relative to the largest curvature; directions that are flat do not move.
_FLAT_RTOL = 1e-12
_MOST_HALVINGS = 40
# Larger Newton systems are not formed, nor those that cost more operations; conjugate gradients do.
_LARGEST_SYSTEM = 2000
_MOST_WORK = 4e9
# Squared Newton decrement, relative to the loss, at which the minimum is reached.
_DECREMENT_RTOL = 1e-15


def relaxed_coefficients(
    model: Model, support: IndexArray, *, judge: bool = True
) -> tuple[FloatArray, FloatArray, bool]:
    """Fit the features of the support without penalty.

    Squared loss: least squares, of minimum norm where columns are collinear. Multinomial: Newton's method with a ridge
    of 1e-6 of the mean curvature, because separated classes have no finite solution.

    Parameters
    ----------
    model : Model
        Data and loss.
    support : ndarray of int
        Features to fit; unpenalised ones are always fitted.
    judge : bool, default=True
        Whether to find out if the ridge decides, which takes another fit.

    Returns
    -------
    B : ndarray of shape (n_features, n_targets)
        Coefficients on the scale of the input.
    intercept : ndarray of shape (n_targets,)
        Zeros where the model has none.
    ridge_decides : bool
        Whether the coefficients depend on the ridge: without it there is no finite solution, or hardly one.
    """
    problem = model.problem
    rows = np.setdiff1d(support, model.unpenalized)
    with np.errstate(all="ignore"):
        if problem.loss.name == "squared":
            coefficients = problem.null_coefficients()
            if len(rows):
                coefficients[rows] = _least_squares(problem, rows)
            return *problem.to_input(coefficients), False
        coefficients, ridge_decides = _RidgedFit(problem, rows).solve(judge)
        return *problem.to_input(coefficients), ridge_decides


def _least_squares(problem: Problem, rows: IndexArray) -> FloatArray:
    """Minimum-norm least squares on the columns of some rows."""
    columns = problem.columns(rows)
    if columns is None or problem.design.n_samples * len(rows) > _MOST_ENTRIES:
        pulls = problem.descent(problem.predictor(problem.null_coefficients()))[rows]
        return _minimum_norm_solution(problem.gram(rows), pulls)
    root = np.sqrt(problem.targets.w)
    A = columns.dense(np.arange(len(rows))).T * root
    solution: FloatArray = np.linalg.lstsq(A, root * problem.targets.Y, rcond=None)[0]
    return solution


def _minimum_norm_solution(G: FloatArray, C: FloatArray) -> FloatArray:
    values, vectors = eigh(G)
    present = values > len(G) * EPS * values[-1]
    chosen = vectors[:, present]
    solution: FloatArray = chosen @ ((chosen.T @ C) / values[present, None])
    return solution


class _RidgedFit:
    """Multinomial loss plus a small ridge on some rows; the unpenalised block pays none."""

    def __init__(self, problem: Problem, rows: IndexArray) -> None:
        columns = problem.columns(rows)
        if columns is None:
            raise NotImplementedError("relaxed=True needs the samples in this process. Fit with relaxed=False.")
        self.problem = problem
        self.rows = problem.row_index(rows)
        self.columns: Columns = columns
        self.Y, self.w = problem.targets.Y, problem.targets.w
        self.is_ridged = np.arange(len(self.rows)) < len(rows)

    def solve(self, judge: bool) -> tuple[FloatArray, bool]:
        """Coefficients of the whole problem, and whether the ridge decides them, if that is to be judged."""
        coefficients = self.problem.null_coefficients()
        if len(self.rows) == self.problem.n_free:
            return coefficients, False
        start = coefficients[self.rows]
        ridge = _RIDGE * self._mean_curvature(start)
        V = self._minimum(start, ridge)
        coefficients[self.rows] = V
        if not judge:
            return coefficients, False
        freer = self._minimum(V, 0.1 * ridge)
        moved = np.linalg.norm(self.columns.predict(freer - V))
        return coefficients, bool(moved > _DECIDES_RTOL * np.linalg.norm(self.columns.predict(V)))

    def _mean_curvature(self, V: FloatArray) -> float:
        return float(np.mean(self._diagonal(self._dual_point(V))[self.is_ridged]))

    def _dual_point(self, V: FloatArray) -> FloatArray:
        theta: FloatArray = self.problem.loss.dual_point(self.columns.predict(V), self.Y, self.w)
        return theta

    def _diagonal(self, theta: FloatArray) -> FloatArray:
        """Second derivative along each row, mean over tasks."""
        return self.columns.norms(self.problem.loss.curvatures(theta, self.Y, self.w)) ** 2

    def _value(self, V: FloatArray, ridge: FloatArray) -> float:
        loss = self.problem.loss.value(self.columns.predict(V), self.Y, self.w)
        return loss + 0.5 * float(np.sum(ridge * V * V))

    def _minimum(self, V: FloatArray, ridge_size: float) -> FloatArray:
        ridge = np.where(self.is_ridged, ridge_size, 0.0)[:, None]
        value = self._value(V, ridge)
        for _ in range(_NEWTON_STEPS):
            theta = self._dual_point(V)
            descent = self.columns.correlate(theta) - ridge * V
            move = self._newton_direction(theta, descent, ridge)
            decrease = float(np.vdot(descent, move))
            if not decrease > _DECREMENT_RTOL * value:
                break
            V, value, improved = self._step(V, value, move, decrease, ridge)
            if not improved:
                break
        return self.problem.loss.canonical(V)

    def _step(
        self, V: FloatArray, value: float, move: FloatArray, decrease: float, ridge: FloatArray
    ) -> tuple[FloatArray, float, bool]:
        """The longest step, by halving, that keeps a part of what the direction promises."""
        length = 1.0
        for _ in range(_MOST_HALVINGS):
            trial = V + length * move
            trial_value = self._value(trial, ridge)
            if trial_value <= value - 1e-4 * length * decrease:
                return trial, trial_value, True
            length *= 0.5
        return V, value, False

    def _newton_direction(self, theta: FloatArray, descent: FloatArray, ridge: FloatArray) -> FloatArray:
        size = descent.size
        if size <= _LARGEST_SYSTEM and float(size) ** 2 * len(self.Y) <= _MOST_WORK:
            return self._direct_solution(theta, descent, ridge)
        return self._iterative_solution(theta, descent, ridge)

    @cached_property
    def _dense(self) -> FloatArray:
        return np.ascontiguousarray(self.columns.dense(np.arange(len(self.rows))).T)

    def _direct_solution(self, theta: FloatArray, descent: FloatArray, ridge: FloatArray) -> FloatArray:
        """From the Hessian itself, with a trace of a ridge in its flat directions."""
        H = self.problem.loss.curvature_along(theta, self.Y, self.w, self._dense)
        shift = np.repeat(ridge[:, 0], descent.shape[1]) + _FLAT_RTOL * float(np.diagonal(H).max(initial=0.0))
        H[np.diag_indices(len(H))] += np.where(shift > 0.0, shift, 1.0)
        solution = np.asarray(np.linalg.solve(H, descent.ravel()), dtype=np.float64)
        return self.problem.loss.canonical(solution.reshape(descent.shape))

    def _iterative_solution(self, theta: FloatArray, descent: FloatArray, ridge: FloatArray) -> FloatArray:
        """Conjugate gradients: the softmax does not see the mean over classes, so the Hessian is singular."""
        loss, shape = self.problem.loss, descent.shape

        def product(v: FloatArray) -> FloatArray:
            D = v.reshape(shape)
            change = theta - loss.moved_along_tangent(theta, self.Y, self.w, self.columns.predict(D))
            return (self.columns.correlate(change) + ridge * D).ravel()

        diagonal = np.repeat(self._diagonal(theta)[:, None] + ridge, shape[1], axis=1).ravel()
        diagonal[diagonal == 0.0] = 1.0
        size = len(diagonal)
        hessian = LinearOperator((size, size), matvec=product, dtype=np.float64)
        scaling = LinearOperator((size, size), matvec=lambda v: v / diagonal, dtype=np.float64)
        move, _ = cg(hessian, descent.ravel(), rtol=1e-6, maxiter=10 * size, M=scaling)
        solution: FloatArray = move.reshape(shape)
        return solution
