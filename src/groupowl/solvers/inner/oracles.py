"""Three ways to evaluate the loss on a working set: by its Gram matrix, by its columns, by the problem itself.

The descent methods see one interface. The loss and its descent direction (minus the gradient) are functions of the
coefficients of the working set, penalised rows first; where samples live is the oracle's business.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np

from ..._typing import FloatArray, Handle, IndexArray
from ...designs import Columns
from ...losses import Loss, SquaredLoss
from ...norm.kernels import owl_gauge, owl_value, row_norms
from ...problem import Problem
from .metrics import Metric, ProblemMetric, SampledMetric

#: Floating-point operations that take as long as the fixed cost of a gradient step.
STEP_OVERHEAD = 5e5
# The same for the loss of one entry of the predictor.
_LOSS_COST = 100.0


class Point:
    """Coefficients, the loss there and, once completed, the descent direction; ``samples`` is the oracle's own."""

    __slots__ = ("B", "descent", "loss", "samples")

    def __init__(self, B: FloatArray, loss: float, descent: FloatArray | None, samples: Handle = None) -> None:
        self.B = B
        self.loss = loss
        self.descent = descent
        self.samples = samples


class Oracle(Protocol):
    """The loss on a working set."""

    def start(self, B: FloatArray) -> Point:
        """Complete point at ``B``."""
        ...

    def trial(self, point: Point, B: FloatArray, move: FloatArray) -> Point:
        """Point at ``B = point.B + move`` with its loss; :meth:`complete` adds the descent direction."""
        ...

    def complete(self, point: Point) -> FloatArray:
        """Descent direction at the point, computed where it is missing."""
        ...

    def curvature(self, point: Point, move: FloatArray) -> float:
        """Bound on the curvature of the loss along a move."""
        ...

    def gap(self, point: Point, penalty: float, lam: FloatArray) -> float:
        """Duality gap of the problem on the working set, without the care for rounding of a certificate."""
        ...

    def step_cost(self, n_tasks: int) -> float:
        """Floating-point operations of a gradient step."""
        ...

    def scales(self) -> FloatArray:
        """Inverse norms of the columns, one per row of the coefficients."""
        ...


class CurvedOracle(Oracle, Protocol):
    """A loss whose curvature changes from point to point."""

    def metric(self) -> Metric:
        """The curvature of the loss on this working set."""
        ...


class QuadraticOracle(Oracle, Protocol):
    """Squared loss on a working set: the loss is a quadratic with the matrix ``G = X_W^T diag(w) X_W``."""

    @property
    def target_square(self) -> float:
        """Size of the targets, squared."""
        ...

    def image(self, move: FloatArray) -> FloatArray:
        """``G move``."""
        ...

    def displaced(self, point: Point, B: FloatArray, move: FloatArray) -> tuple[Point, FloatArray]:
        """Complete point at ``B = point.B + move``, and ``G move``, which is accurate even where it is tiny."""
        ...

    def inverse(self, rows: IndexArray, diagonal: FloatArray) -> FloatArray:
        """Inverse of the block of G at these rows plus a diagonal."""
        ...

    def cluster_gram(self, rows: IndexArray, signs: FloatArray, starts: IndexArray) -> FloatArray:
        """Gram matrix of signed sums of columns; the columns of a sum follow each other from its start."""
        ...


class GramOracle:
    """Squared loss through ``G = X_W^T diag(w) X_W``, as a quadratic about coefficients whose residual is known.

    Errors of G are in proportion to the distance from those coefficients, so that they vanish as the outer loop
    converges.

    Parameters
    ----------
    G : ndarray of shape (n_rows, n_rows)
    B, descent, loss : the known coefficients, minus the gradient there, and the loss
    target_product : ``<residual, Y>`` there
    """

    def __init__(self, G: FloatArray, B: FloatArray, descent: FloatArray, loss: float, target_product: float) -> None:
        self.G = G
        self.base = Point(B, loss, descent)
        self.target_correlations = descent + G @ B  # X_W^T diag(w) Y
        self.target_product = target_product
        self.target_square = abs(target_product) + 2.0 * loss

    def start(self, B: FloatArray) -> Point:
        """The known point moved to ``B``."""
        return self.base if B is self.base.B else self.trial(self.base, B, B - self.base.B)

    def trial(self, point: Point, B: FloatArray, move: FloatArray) -> Point:
        """One product with G gives the loss and the descent direction."""
        return self.displaced(point, B, move)[0]

    def displaced(self, point: Point, B: FloatArray, move: FloatArray) -> tuple[Point, FloatArray]:
        """The quadratic about the point."""
        assert point.descent is not None
        image = self.G @ move
        change = 0.5 * np.vdot(move, image) - np.vdot(point.descent, move)
        return Point(B, point.loss + float(change), point.descent - image), image

    def image(self, move: FloatArray) -> FloatArray:
        """``G move``."""
        return self.G @ move

    def inverse(self, rows: IndexArray, diagonal: FloatArray) -> FloatArray:
        """Directly."""
        return _inverse_of_sum(self.G[np.ix_(rows, rows)], diagonal)

    def cluster_gram(self, rows: IndexArray, signs: FloatArray, starts: IndexArray) -> FloatArray:
        """Sums over blocks of G."""
        block = self.G[np.ix_(rows, rows)] * (signs @ signs.T)
        return np.add.reduceat(np.add.reduceat(block, starts, axis=0), starts, axis=1)

    def complete(self, point: Point) -> FloatArray:
        """Known already."""
        assert point.descent is not None
        return point.descent

    def curvature(self, point: Point, move: FloatArray) -> float:
        """Exact."""
        square = float(np.vdot(move, move))
        return float(np.vdot(move, self.G @ move)) / square if square > 0 else 0.0

    def gap(self, point: Point, penalty: float, lam: FloatArray) -> float:
        """Gap with the residual scaled to the best feasible point on its ray."""
        gauge = owl_gauge(row_norms(self.complete(point)), lam)
        product = self.target_product - float(np.vdot(self.target_correlations, point.B - self.base.B))
        square = 2.0 * point.loss
        scale = SquaredLoss().ray_scale(np.array([product, square]), 1.0 / gauge if gauge > 0 else np.inf)
        return point.loss + penalty - scale * (product - 0.5 * scale * square)

    def scales(self) -> FloatArray:
        """From the diagonal of G."""
        return _inverse(np.sqrt(np.maximum(np.diagonal(self.G), 0.0)))

    def step_cost(self, n_tasks: int) -> float:
        """One product with G."""
        return 2.0 * len(self.G) ** 2 * n_tasks + STEP_OVERHEAD


class ColumnsOracle:
    """Any loss through the columns of the working set as local arrays, value and gradient from one evaluation."""

    def __init__(
        self, columns: Columns, loss: Loss, Y: FloatArray, w: FloatArray, balance: Callable[[Handle], Handle] | None
    ) -> None:
        self.columns = columns
        self.loss = loss
        self.Y = np.asfortranarray(Y)  # by tasks: sums over tasks are then sums of long vectors
        self.w = w
        self.balance = balance  # makes dual points orthogonal to the unpenalised columns, if there are any

    def start(self, B: FloatArray) -> Point:
        """Evaluate at ``B``."""
        point = self.trial(None, B, None)
        point.descent = self.complete(point)
        return point

    def trial(self, point: Point | None, B: FloatArray, move: FloatArray | None) -> Point:
        """One product for the predictor; value and dual point share their exponentials."""
        value, theta = self.loss.value_and_dual_point(self.columns.predict(B), self.Y, self.w)
        return Point(B, value, None, theta)

    def complete(self, point: Point) -> FloatArray:
        """One product for the gradient."""
        if point.descent is None:
            point.descent = self.columns.correlate(point.samples)
        return point.descent

    def curvature(self, point: Point, move: FloatArray) -> float:
        """``ell ||sqrt(w) X move||^2 / ||move||^2``, or an estimate at the point where there is no such bound."""
        square, weights = float(np.vdot(move, move)), self.loss.curvature * self.w
        if not np.isfinite(self.loss.curvature):
            weights = self.Y.shape[1] * self.loss.curvatures(point.samples, self.Y, self.w)
        image = self.columns.predict(move)
        return float(np.sum(weights * image * image)) / square if square > 0 else 0.0

    def gap(self, point: Point, penalty: float, lam: FloatArray) -> float:
        """Gap from the dual point, balanced where there is an intercept and scaled into the dual ball."""
        theta, Y, w, C = point.samples, self.Y, self.w, self.complete(point)
        if self.balance is not None:
            theta = self.balance(theta)
            C = self.columns.correlate(theta)
        gauge = owl_gauge(row_norms(C[: len(lam)]), lam)
        totals = self.loss.ray_totals(theta, Y, w)
        scale = self.loss.ray_scale(totals, 1.0 / gauge if gauge > 0 else np.inf)
        return point.loss + penalty - self.loss.dual_value(scale * theta, Y, w)

    @property
    def target_square(self) -> float:
        """Size of the targets, squared."""
        return float(np.sum(self.w * self.Y * self.Y))

    def image(self, move: FloatArray) -> FloatArray:
        """``X_W^T diag(w) X_W move``, two products."""
        return self.columns.correlate(self.w * self.columns.predict(move))

    def displaced(self, point: Point, B: FloatArray, move: FloatArray) -> tuple[Point, FloatArray]:
        """Squared loss: the dual point changes by the move's predictor."""
        shift = self.w * self.columns.predict(move)
        image = self.columns.correlate(shift)
        descent = self.complete(point)
        change = 0.5 * np.vdot(move, image) - np.vdot(descent, move)
        return Point(B, point.loss + float(change), descent - image, point.samples - shift), image

    def inverse(self, rows: IndexArray, diagonal: FloatArray) -> FloatArray:
        """Through a matrix of the samples where those are fewer (Woodbury)."""
        A = self.columns.dense(rows) * np.sqrt(self.w[:, 0])
        if len(rows) <= A.shape[1]:
            return _inverse_of_sum(A @ A.T, diagonal)
        root = np.sqrt(diagonal)
        A /= root[:, None]
        M = A.T @ A  # a product with its own transpose takes half the time
        M[np.diag_indices(len(M))] += 1.0
        try:
            A = A @ np.linalg.inv(np.linalg.cholesky(M)).T / root[:, None]
        except np.linalg.LinAlgError:  # not finite
            return np.zeros((len(rows), len(rows)))
        result = A @ A.T
        np.negative(result, out=result)
        result[np.diag_indices(len(rows))] += 1.0 / diagonal
        return result

    def cluster_gram(self, rows: IndexArray, signs: FloatArray, starts: IndexArray) -> FloatArray:
        """Of the summed columns."""
        sums = np.add.reduceat(self.columns.dense(rows) * signs, starts, axis=0) * np.sqrt(self.w[:, 0])
        return sums @ sums.T

    def scales(self) -> FloatArray:
        """From the columns."""
        return _inverse(self.columns.norms(self.w))

    def step_cost(self, n_tasks: int) -> float:
        """Two products with the columns, and the loss."""
        return (2.0 * self.columns.work + _LOSS_COST * len(self.Y)) * n_tasks + STEP_OVERHEAD

    def metric(self) -> Metric:
        """From some of the samples."""
        return SampledMetric(self)


class ProblemOracle:
    """Any loss on any design: products and sample space stay with the restricted problem."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem

    def start(self, B: FloatArray) -> Point:
        """Evaluate at ``B``."""
        return self.trial(None, B, None)

    def trial(self, point: Point | None, B: FloatArray, move: FloatArray | None) -> Point:
        """Value and gradient at once: where samples are far, the journey is what costs."""
        Z = self.problem.predictor(B)
        return Point(B, *self.problem.loss_and_descent(Z), Z)

    def complete(self, point: Point) -> FloatArray:
        """Known already."""
        assert point.descent is not None
        return point.descent

    def curvature(self, point: Point, move: FloatArray) -> float:
        """``ell ||sqrt(w) X move||^2 / ||move||^2``."""
        Z = point.samples
        moved = self.problem.design.map(np.add, Z, self.problem.predictor(move))
        return self.problem.move_curvature(Z, moved, move)

    def gap(self, point: Point, penalty: float, lam: FloatArray) -> float:
        """Gap of the restricted problem's certificate."""
        return self.problem.certify(point.B, point.samples).gap

    def scales(self) -> FloatArray:
        """From the norms that the problem knows."""
        problem = self.problem
        block = problem.unpenalized
        return _inverse(np.concatenate([problem.norms, np.full(block.n_rows, block.scale)]))

    def step_cost(self, n_tasks: int) -> float:
        """Two products with the columns, the loss, and the journey."""
        return columns_cost(self.problem, self.problem.n_rows) * n_tasks + STEP_OVERHEAD + self.problem.design.journey

    def metric(self) -> Metric:
        """By the problem's design."""
        return ProblemMetric(self.problem)


def as_quadratic(oracle: Oracle) -> QuadraticOracle | None:
    """The oracle itself if its loss is a quadratic and every row is penalised."""
    if isinstance(oracle, GramOracle):
        return oracle
    if isinstance(oracle, ColumnsOracle) and oracle.loss.is_quadratic and oracle.balance is None:
        return oracle
    return None


def _inverse_of_sum(G: FloatArray, diagonal: FloatArray) -> FloatArray:
    """``(G + diag(diagonal))^-1``, zeros where there is none; ``G`` is overwritten."""
    G[np.diag_indices(len(G))] += diagonal
    try:
        return np.asarray(np.linalg.inv(G), dtype=np.float64)
    except np.linalg.LinAlgError:
        return np.zeros_like(G)


def as_curved(oracle: Oracle) -> CurvedOracle | None:
    """The oracle itself if the curvature of its loss changes."""
    loss = oracle.loss if isinstance(oracle, ColumnsOracle) else None
    if isinstance(oracle, ProblemOracle):
        loss = oracle.problem.loss
    return None if loss is None or loss.is_quadratic else oracle  # type: ignore[return-value]


def columns_cost(problem: Problem, n_columns: int) -> float:
    """Operations per task of the loss and its gradient through so many columns of the problem's design."""
    design = problem.design
    return (4.0 * n_columns * design.density + _LOSS_COST) * design.n_samples


def penalty_of(B: FloatArray, lam: FloatArray) -> float:
    """``J`` of the penalised rows, which come first."""
    return owl_value(row_norms(B[: len(lam)]), lam)


def _inverse(norms: FloatArray) -> FloatArray:
    return 1.0 / np.where(norms > 0.0, norms, 1.0)
