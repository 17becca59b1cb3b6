"""The problem on a working set as inner solvers see it: arrays in, arrays and numbers out.

An oracle has the penalty and one of five ways to evaluate the loss: the Gram matrix of the working set, or one for each
task where weights differ between tasks; its columns for squared loss; its columns for other losses; or the problem
itself where samples are elsewhere. Penalized rows of the coefficients come first.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._typing import FloatArray, Handle, IndexArray
from ...designs.base import products
from ...designs.sparse import Columns
from ...losses import SquaredLoss
from ...norm import GroupOWL
from ...problem import Problem, Residual

#: Floating-point operations that take as long as the fixed cost of a gradient step.
STEP_OVERHEAD = 5e5
# The same for the loss of one entry of the predictor.
_LOSS_COST = 100.0
# Ridge relative to the largest curvature of the unpenalized block: directions that are flat in a task do not move.
_FLAT_RTOL = 1e-12
# Samples behind a metric: at least so many, and so many times the number of columns.
_LEAST_SAMPLES = 2000
_SAMPLES_PER_COLUMN = 8
# Entries of the targets that were observed are taken out of the others where they are no more than this share.
_FEW = 0.5
# Its diagonal is at least this part of what all samples gave when some were drawn.
_LEAST_SHARE = 0.5


@dataclass(eq=False, slots=True)
class Point:
    """Coefficients and what is known there; ``samples`` is the oracle's own."""

    B: FloatArray
    loss: float
    norm: float  # J(B)
    descent: FloatArray  # minus the gradient of the loss
    samples: Handle = None
    gap: float = np.inf  # duality gap on the working set, where it was computed

    @property
    def objective(self) -> float:
        """Objective on the working set."""
        return self.loss + self.norm


@dataclass(frozen=True)
class Goal:
    """When an inner solve may stop: at the gap ``tight``; at ``loose`` once ``free_steps`` were taken.

    Steps that cost less than a round of the outer loop are taken anyway: they may save one.
    """

    tight: float
    loose: float
    free_steps: int = 0

    def met(self, gap: float, steps: int) -> bool:
        """Whether this gap after so many steps is good enough."""
        return gap <= self.tight or (gap <= self.loose and steps >= self.free_steps)


class Oracle(ABC):
    """Loss and penalty on a working set.

    Attributes
    ----------
    penalty : GroupOWL
    n_penalized : int
        Rows of the coefficients that are penalized.
    ridge : float
        That of the penalty; the loss has it here, as if ``sqrt(ridge) I`` were below the columns.
    step_cost : float
        Floating-point operations of a gradient step.
    base : Point
        Where a solve starts.
    has_metric : bool
        Whether the curvature of the loss changes from point to point: then there are :meth:`metric` and its cost.
    """

    base: Point
    has_metric = False

    def __init__(self, penalty: GroupOWL, step_cost: float) -> None:
        self.penalty = penalty.without_ridge()  # which is a part of the loss here
        self.ridge = penalty.ridge
        self.n_penalized = penalty.n_rows
        self.step_cost = step_cost

    @abstractmethod
    def trial(self, B: FloatArray, move: FloatArray, loss: float, descent: FloatArray) -> tuple[float, Handle]:
        """Loss at ``B``, a move away from where loss and descent direction are known; and what is known of samples."""

    @abstractmethod
    def change(self, samples: Handle, descent: FloatArray) -> FloatArray:
        """Descent direction before the move of a trial less the one after it."""

    @abstractmethod
    def gap(self, point: Point) -> float:
        """Duality gap on the working set, without the care for rounding of a certificate."""

    @abstractmethod
    def curvature(self, point: Point, move: FloatArray) -> float:
        """Bound on the curvature of the loss along a move."""

    def metric(self, point: Point, rows: IndexArray) -> FloatArray | None:
        """``X_W^T diag(h) X_W`` at some rows, to be overwritten; ``h`` is the mean curvature of a sample over tasks.

        None where no sample has any curvature left.
        """
        return None

    def metric_cost(self, size: int) -> float:
        """Floating-point operations of a metric of so many rows; there is none by default."""
        return np.inf

    def completed(self, B: FloatArray) -> FloatArray:
        """Coefficients with the rows that the oracle does not have."""
        return B

    def ridge_value(self, B: FloatArray) -> float:
        """``ridge/2 ||B||_F^2`` of the penalized rows."""
        if self.ridge == 0.0:
            return 0.0
        rows = B[: self.n_penalized]
        return 0.5 * self.ridge * float(np.vdot(rows, rows))

    def less_ridge(self, descent: FloatArray, B: FloatArray) -> FloatArray:
        """Minus the gradient of the loss with the ridge, from that without, in its memory."""
        if self.ridge > 0.0:
            descent[: self.n_penalized] -= self.ridge * B[: self.n_penalized]
        return descent

    def moved(self, point: Point, B: FloatArray) -> Point:
        """The point at ``B``, from another one."""
        loss, samples = self.trial(B, B - point.B, point.loss, point.descent)
        descent = point.descent - self.change(samples, point.descent)
        return Point(B, loss, self.penalty.value(B[: self.n_penalized]), descent, samples)


class QuadraticOracle(Oracle):
    """Squared loss as a quadratic about coefficients whose residual is known: trials tell the image of a move."""

    def change(self, samples: Handle, descent: FloatArray) -> FloatArray:
        return samples

    def gap(self, point: Point) -> float:
        """With the residual scaled to the best feasible point on its ray."""
        gauge = self.penalty.dual_norm(point.descent)
        square = 2.0 * point.loss
        product = square + float(np.vdot(point.descent, point.B))  # of the residual and Y
        scale = SquaredLoss().ray_scale(np.array([product, square]), 1.0 / gauge if gauge > 0 else np.inf)
        if self.penalty.signs is not None:  # dual points may not be turned round
            scale = max(scale, 0.0)
        return point.objective - scale * (product - 0.5 * scale * square)

    def curvature(self, point: Point, move: FloatArray) -> float:
        square = float(np.vdot(move, move))
        along, _ = self.trial(move, move, 0.0, np.zeros_like(move))  # half of <move, G move>
        return 2.0 * along / square if square > 0 else 0.0


class TaskGramOracle(QuadraticOracle):
    """Squared loss with weights that differ between tasks, through a Gram matrix for each task.

    The unpenalized block is where it is best for the other rows: what it explains is taken off the matrices.

    Parameters
    ----------
    problem : Problem
    rows : ndarray of int
        Rows of the working set.
    penalty : GroupOWL
    B : ndarray of shape (len(rows) + n_block, n_tasks)
        Coefficients whose residual is known, those of the block last.
    residual : Residual
    """

    has_metric = True

    def __init__(
        self, problem: Problem, rows: IndexArray, penalty: GroupOWL, B: FloatArray, residual: Residual
    ) -> None:
        size, q = len(rows), B.shape[1]
        super().__init__(penalty, 2.0 * size * size * q + STEP_OVERHEAD)
        self.G = problem.gram(rows)
        self.block, self.response = B[size:], np.zeros((q, len(B) - size, size))
        if problem.unpenalized.n_rows:
            self._eliminate(problem, rows, residual)
        if self.ridge > 0.0:
            self.G = self.G + self.ridge * np.eye(size)
        penalized = np.ascontiguousarray(B[:size])
        # Products and norm are those of the balanced residual, which the best coefficients of the block leave.
        loss = 0.5 * residual.norm**2 + self.ridge_value(penalized)
        descent = self.less_ridge(residual.products[rows], penalized)
        self.base = Point(penalized, loss, self.penalty.value(penalized), descent)

    def _eliminate(self, problem: Problem, rows: IndexArray, residual: Residual) -> None:
        """Take the block to its optimum, and learn how that responds to the other rows."""
        block = problem.unpenalized
        cross, corner = problem.block_products(rows)
        ridge = _FLAT_RTOL * np.einsum("krr->kr", corner).max(axis=1)
        ridge[ridge == 0.0] = 1.0  # a task whose samples have nothing but zeros in the block
        corner = corner + ridge[:, None, None] * np.eye(corner.shape[1])
        gradient = block.scale * problem.design.reduce(products, block.E, residual.raw)
        right = np.concatenate([cross.transpose(0, 2, 1), gradient.T[:, :, None]], axis=2)
        solved = np.linalg.solve(corner, right)
        self.response, move = solved[:, :, :-1], solved[:, :, -1]
        self.G = self.G - cross @ self.response
        self.block = self.block + move.T

    def completed(self, B: FloatArray) -> FloatArray:
        moved = np.einsum("krj,jk->rk", self.response, B - self.base.B)
        return np.concatenate([B, self.block - moved])

    def trial(self, B: FloatArray, move: FloatArray, loss: float, descent: FloatArray) -> tuple[float, Handle]:
        image = (self.G @ move.T[:, :, None])[:, :, 0].T
        return loss + 0.5 * float(np.sum(move * image)) - float(np.vdot(descent, move)), image

    def metric(self, point: Point, rows: IndexArray) -> FloatArray:
        """The mean of the matrices of all tasks, without the ridge."""
        M = np.asarray(self.G[:, rows[:, None], rows].mean(axis=0))
        M[np.diag_indices(len(M))] -= self.ridge
        return M

    def metric_cost(self, size: int) -> float:
        return float(len(self.G) * size**2)


class GramOracle(QuadraticOracle):
    """Squared loss through ``G = X_W^T diag(w) X_W``, as a quadratic about coefficients whose residual is known.

    Errors of G are in proportion to the distance from those coefficients, so that they vanish as the outer loop
    converges.

    Parameters
    ----------
    G : ndarray of shape (n_rows, n_rows)
    penalty : GroupOWL
    B, descent, loss : the known coefficients, minus the gradient there, and the loss, all without the ridge
    """

    def __init__(self, G: FloatArray, penalty: GroupOWL, B: FloatArray, descent: FloatArray, loss: float) -> None:
        super().__init__(penalty, 2.0 * B.size * len(B) + STEP_OVERHEAD)
        self.G = G
        if self.ridge > 0.0:
            loss, descent = loss + penalty.ridge_value(B), descent - self.ridge * B
            if len(G):
                self.G = G.copy()
                self.G[np.diag_indices(len(G))] += self.ridge
        self.base = Point(B, loss, self.penalty.value(B), descent)

    def trial(self, B: FloatArray, move: FloatArray, loss: float, descent: FloatArray) -> tuple[float, Handle]:
        image = self.G @ move
        return loss + 0.5 * float(np.vdot(move, image)) - float(np.vdot(descent, move)), image

    def image(self, move: FloatArray) -> FloatArray:
        """``G move``."""
        _, samples = self.trial(move, move, 0.0, move)
        return self.change(samples, move)

    def submatrix(self, rows: IndexArray) -> FloatArray:
        """A copy of G at these rows."""
        return self.G[np.ix_(rows, rows)]

    def inverse(self, rows: IndexArray, diagonal: FloatArray) -> FloatArray:
        """Inverse of G at these rows plus a diagonal; zeros where there is none."""
        M = self.submatrix(rows)
        M[np.diag_indices(len(M))] += diagonal
        try:
            return np.asarray(np.linalg.inv(M), dtype=np.float64)
        except np.linalg.LinAlgError:
            return np.zeros_like(M)

    def cluster_gram(self, rows: IndexArray, signs: FloatArray, starts: IndexArray) -> FloatArray:
        """Gram matrix of signed sums of columns; the columns of a sum follow each other from its start."""
        signed = self.submatrix(rows) * (signs @ signs.T)
        return np.add.reduceat(np.add.reduceat(signed, starts, axis=0), starts, axis=1)


class FactoredGramOracle(GramOracle):
    """The same for working sets so wide that products with their columns are cheaper than with G."""

    def __init__(self, columns: Columns, penalty: GroupOWL, B: FloatArray, Y: FloatArray, w: FloatArray) -> None:
        self.columns = columns
        self.w = w
        residual = Y - columns.predict(B)
        theta = w * residual
        nothing = np.zeros((0, 0))
        super().__init__(nothing, penalty, B, columns.correlate(theta), 0.5 * float(np.sum(theta * residual)))
        self.step_cost = 2.0 * columns.work * B.shape[1] + STEP_OVERHEAD

    def trial(self, B: FloatArray, move: FloatArray, loss: float, descent: FloatArray) -> tuple[float, Handle]:
        """One product; another one for :meth:`change`."""
        shift = self.columns.predict(move)
        weighted = self.w * shift
        along = float(np.sum(shift * weighted))
        if self.ridge > 0.0:
            along += self.ridge * float(np.vdot(move, move))
        return loss + 0.5 * along - float(np.vdot(descent, move)), (weighted, move)

    def change(self, samples: Handle, descent: FloatArray) -> FloatArray:
        weighted, move = samples
        change = self.columns.correlate(weighted)
        return change + self.ridge * move if self.ridge > 0.0 else change

    def submatrix(self, rows: IndexArray) -> FloatArray:
        A = self.columns.dense(rows) * np.sqrt(self.w[:, 0])
        M: FloatArray = A @ A.T
        M[np.diag_indices(len(M))] += self.ridge
        return M

    def inverse(self, rows: IndexArray, diagonal: FloatArray) -> FloatArray:
        """Through a matrix of the samples where those are fewer (Woodbury)."""
        if len(rows) <= len(self.w):
            return super().inverse(rows, diagonal)
        A = self.columns.dense(rows) * np.sqrt(self.w[:, 0])
        diagonal = diagonal + self.ridge
        root = np.sqrt(diagonal)
        A /= root[:, None]
        M = A.T @ A  # a product with its own transpose takes half the time
        M[np.diag_indices(len(M))] += 1.0
        try:
            A = A @ np.linalg.inv(np.linalg.cholesky(M)).T / root[:, None]
        except np.linalg.LinAlgError:  # not finite
            return np.zeros((len(rows), len(rows)))
        result = np.diag(1.0 / diagonal)
        result -= A @ A.T
        return result

    def cluster_gram(self, rows: IndexArray, signs: FloatArray, starts: IndexArray) -> FloatArray:
        sums = np.add.reduceat(self.columns.dense(rows) * signs, starts, axis=0) * np.sqrt(self.w[:, 0])
        K: FloatArray = sums @ sums.T
        K[np.diag_indices(len(K))] += self.ridge * np.add.reduceat(signs[:, 0] ** 2, starts)
        return K


class ColumnsOracle(Oracle):
    """Other losses through the columns of the working set as local arrays, value and gradient from one evaluation.

    The columns of the problem's unpenalized block come last.
    """

    has_metric = True

    def __init__(self, columns: Columns, penalty: GroupOWL, B: FloatArray, problem: Problem) -> None:
        Y, self.w = problem.samples.handles
        work = 2.0 * columns.work + _LOSS_COST * len(Y)
        super().__init__(penalty, work * B.shape[1] + STEP_OVERHEAD)
        self.columns = columns
        self.Y = np.asfortranarray(Y)  # by tasks: sums over tasks are then sums of long vectors
        self.loss = problem.loss
        self.unpenalized = problem.unpenalized
        self.drawn_for = 0  # columns for which samples of the metric were drawn
        self._choose_entries()
        self.base = self.moved(Point(B, 0.0, 0.0, np.zeros_like(B)), B)

    def trial(self, B: FloatArray, move: FloatArray, loss: float, descent: FloatArray) -> tuple[float, Handle]:
        """One product for the predictor; value and dual point share their exponentials."""
        Z = self.columns.predict(B)
        if self.entries is None:
            value, theta = self.loss.value_and_dual_point(Z, self.Y, self.w)
            return value + self.ridge_value(B), (theta, B)
        value, observed = self.loss.value_and_dual_point(self._observed(Z), *self.observed_samples)
        theta = np.zeros(Z.T.shape)
        theta.ravel()[self.entries] = observed[:, 0]
        return value + self.ridge_value(B), (theta.T, B)

    def _choose_entries(self) -> None:
        """Where few targets were observed, only these are looked at: positions among all, task after task."""
        self.entries: Any = None
        if self.w.shape[1] > 1 and self.w.shape == self.Y.shape and np.count_nonzero(self.w) <= _FEW * self.w.size:
            self.entries = np.flatnonzero(self.w.T)
            self.observed_samples = self._observed(self.Y), self._observed(self.w)

    def _observed(self, values: FloatArray) -> FloatArray:
        """A sample-space array at the entries that were observed, as a column."""
        return np.ravel(values.T)[self.entries, None]

    def change(self, samples: Handle, descent: FloatArray) -> FloatArray:
        theta, B = samples
        return descent - self.less_ridge(self.columns.correlate(theta), B)

    def gap(self, point: Point) -> float:
        """From the dual point, balanced where there is an intercept and scaled into the dual ball."""
        (theta, B), Y, w, C = point.samples, self.Y, self.w, point.descent
        is_needed = self.unpenalized.rank > 0 or not self.loss.is_additive
        Z = self.columns.predict(point.B) if is_needed else None
        if self.unpenalized.n_rows:
            theta = self.unpenalized.nearly_balanced(theta, Z)
            C = self.less_ridge(self.columns.correlate(theta), B)
        if self.entries is not None:
            theta, (Y, w), Z = self._observed(theta), self.observed_samples, None if Z is None else self._observed(Z)
        gauge = self.penalty.dual_norm(C[: self.n_penalized])
        totals = self.loss.ray_totals(theta, Y, w, Z)
        scale = self.loss.ray_scale(totals, 1.0 / gauge if gauge > 0 else np.inf)
        if self.penalty.signs is not None:  # dual points may not be turned round
            scale = max(scale, 0.0)
        dual = self.loss.ray_value(scale * theta, Y, w, scale, totals) - scale * scale * self.ridge_value(B)
        return point.objective - dual

    def curvature(self, point: Point, move: FloatArray) -> float:
        """``ell ||sqrt(w) X move||^2 / ||move||^2``, or an estimate at the point where there is no such bound."""
        square, image = float(np.vdot(move, move)), self.columns.predict(move)
        weights = self.loss.curvature * self.w
        if not np.isfinite(self.loss.curvature):
            weights = move.shape[1] * self.loss.curvatures(point.samples[0], self.Y, self.w)
        return float(np.sum(weights * image * image)) / square + self.ridge if square > 0 else 0.0

    def metric(self, point: Point, rows: IndexArray) -> FloatArray | None:
        """From a sample of the samples, by curvature, where there are many; drawn anew when the rows have doubled.

        The diagonal is at least what all of them would give, or nearly: no column is taken for flat because its entries
        were not drawn.
        """
        h = self.loss.curvatures(point.samples[0], self.Y, self.w)
        total = float(h.sum())
        if not 0.0 < total < np.inf:
            return None
        if len(rows) > 2 * self.drawn_for:
            self._draw_samples(h, len(rows))
        columns = self.drawn if len(rows) == len(point.B) else self.drawn.chosen(rows)
        M = columns.gram(h[self.samples] * self.factors)
        M[np.diag_indices(len(M))] = np.maximum(np.diagonal(M), total * self.least[rows])
        return M

    def metric_cost(self, size: int) -> float:
        share = min(1.0, _sample_count(size) / len(self.Y))
        return share * self.columns.gram_work * (size / self.columns.n_columns) ** 2

    def _draw_samples(self, h: FloatArray, size: int) -> None:
        """Samples of large curvature first, and the inverse of their chances; all where there are few."""
        n, count = len(h), _sample_count(size)
        self.drawn_for = size
        self.samples: Any = slice(None)
        self.factors: Any = 1.0
        self.drawn = self.columns
        self.least = np.zeros(self.columns.n_columns)
        if count < n:
            chances = np.minimum(1.0, 0.5 * count * (h / h.sum() + 1.0 / n))
            self.samples = np.flatnonzero(np.random.default_rng(0).random(n) < chances[:, 0])
            self.factors = 1.0 / chances[self.samples]
            self.drawn = self.columns.sampled(self.samples)
            self.least = _LEAST_SHARE * self.columns.norms(h) ** 2 / float(h.sum())


class ProblemOracle(Oracle):
    """Any loss on any design: products and sample space stay with the restricted problem.

    The samples of a point are the predictor and the descent direction.
    """

    def __init__(self, problem: Problem, B: FloatArray) -> None:
        work = columns_cost(problem, problem.n_rows) * problem.samples.n_tasks
        super().__init__(problem.penalty, work + STEP_OVERHEAD + problem.design.journey)
        self.problem = problem
        self.has_metric = not problem.loss.is_quadratic
        self.base = self.moved(Point(B, 0.0, 0.0, np.zeros_like(B)), B)

    def trial(self, B: FloatArray, move: FloatArray, loss: float, descent: FloatArray) -> tuple[float, Handle]:
        """Value and gradient at once: where samples are far, the journey is what costs."""
        problem, Z = self.problem, self.problem.predictor(B)
        value = (problem.loss.value, Z, *problem.samples.handles)
        direction, (found,) = problem.evaluate(problem.dual_point(Z), value)
        return float(found) + self.ridge_value(B), (Z, self.less_ridge(direction, B))

    def change(self, samples: Handle, descent: FloatArray) -> FloatArray:
        return descent - samples[1]

    def gap(self, point: Point) -> float:
        return self.problem.certify(point.B, point.samples[0]).gap

    def curvature(self, point: Point, move: FloatArray) -> float:
        Z = point.samples[0]
        moved = self.problem.design.map(np.add, Z, self.problem.predictor(move))
        return self.problem.move_curvature(Z, moved, move) + self.ridge

    def metric(self, point: Point, rows: IndexArray) -> FloatArray | None:
        return self.problem.curvature_gram(point.samples[0], rows)

    def metric_cost(self, size: int) -> float:
        """A Gram matrix, and the journey."""
        design = self.problem.design
        return 2.0 * design.density * design.n_samples * size**2 + 2.0 * design.journey


def columns_cost(problem: Problem, n_columns: int) -> float:
    """Operations per task of the loss and its gradient through so many columns of the problem's design."""
    design = problem.design
    return (4.0 * n_columns * design.density + _LOSS_COST) * design.n_samples


def _sample_count(size: int) -> int:
    return max(_LEAST_SAMPLES, _SAMPLES_PER_COLUMN * size)
