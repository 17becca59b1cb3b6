"""The problem: data, loss and penalty; products for solvers, certificates, and bounds on the dual optimum."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Self

import numpy as np
from scipy.special import chdtri

from .._typing import FloatArray, Handle, IndexArray
from ..designs.base import Design, Sum, products
from ..designs.dense import CompressedDesign, GramCache
from ..designs.factors import CompressedData
from ..designs.observed import ObservedDesign, TaskGramCache, find_patterns
from ..designs.sparse import Columns
from ..losses import Loss
from ..norm import GroupOWL
from ..norm.kernels import EPS, inverse_weighted_square, over_weights, owl_gauge, row_norms, sum_with_products
from .bounds import Balls, Correlations, Products, UnitNorms, product_slack, squared_distance
from .certificate import Certificate, Residual
from .samples import Samples, weighted_squares, weighted_sums
from .spectrum import lanczos_estimate, power_estimate
from .unpenalized import Unpenalized

# Random products of each row that its norm is estimated from.
_PROBES = 16

# Sums of the columns of a balanced dual point are rounding, relative to its norm and that of the targets.
_BALANCED_RTOL = 1e-11


@dataclass(frozen=True, eq=False)
class Problem:
    """One instance of the model. Changing something makes a new one; see the package's docstring.

    Attributes
    ----------
    design : Design
        X, centered implicitly when an intercept is fitted, without what the unpenalized columns explain.
    loss : Loss
    samples : Samples
        Targets and weights.
    penalty : GroupOWL
        Its weights are those of the units that are left, the largest ones.
    unpenalized : Unpenalized
        Intercept and unpenalized columns.
    norms : ndarray of shape (n_rows,)
        ``a_j = sqrt(sum_i w_i x_ij^2)`` of the (centered) columns: how far a correlation can move.
    rounding_norms : ndarray of shape (n_rows,)
        The same for the numbers that are really multiplied; larger where centering cancels.
    gram_cache : GramCache
        Gram matrix of the columns that working sets have asked for.
    rows_of_origin : ndarray of int or None
        Columns of the cache's design that this problem has, where it has only some.
    product_error : float
        Error of the products between columns, and of columns with Y, relative to ``rounding_norms`` and the norm of Y;
        0 where they are computed from the data, not so where a Gram matrix stands for them.
    scale_error : float
        Relative error of the scales of standardized columns, where statistics stand for the data. It changes the
        penalty of a row by as much: the objective, the minimum, and each correlation, by no more than this part.
    unit_bounds : UnitNorms or None
        ``||diag(w)^(1/2) X_g||_2`` of the columns of each unit, or more: how far the correlation of a unit can move.
        None where rows are units, which have their ``norms``.
    units_of_origin : ndarray of int or None
        Units of these bounds that this problem has, where it has only some.
    task_norms : ndarray of shape (n_rows, n_tasks) or None
        ``a_jk = sqrt(sum_i w_ik x_ij^2)``, where weights differ between tasks; ``norms`` are the largest of each row.
    """

    design: Design
    loss: Loss
    samples: Samples
    penalty: GroupOWL
    unpenalized: Unpenalized
    norms: FloatArray
    rounding_norms: FloatArray
    gram_cache: GramCache
    rows_of_origin: IndexArray | None = None
    product_error: float = 0.0
    scale_error: float = 0.0
    unit_bounds: UnitNorms | None = None
    units_of_origin: IndexArray | None = None
    task_norms: FloatArray | None = None

    #: Whether the unpenalized block has a constant.
    fit_intercept: bool = field(init=False)
    #: Number of penalized rows of ``B``.
    n_rows: int = field(init=False)
    #: Number of rows of coefficients: the penalized ones, then those of the unpenalized block.
    n_coefficients: int = field(init=False)
    #: Loss of the model without features.
    null_loss: float = field(init=False)
    #: What tolerances and deviances are relative to: the null loss less the floor, zero where rounding is all of it.
    loss_scale: float = field(init=False)

    def __post_init__(self) -> None:
        block, floor = self.unpenalized, self.samples.floor
        scale = block.null_loss - floor
        vars(self).update(
            fit_intercept=block.constant,
            n_rows=len(self.norms),
            n_coefficients=len(self.norms) + block.n_rows,
            null_loss=block.null_loss,
            loss_scale=scale if scale > 64 * EPS * (abs(block.null_loss) + abs(floor)) else 0.0,
        )

    # Shape ------------------------------------------------------------------------------------------

    @property
    def lam(self) -> FloatArray:
        """Weights of the penalty."""
        return self.penalty.lam

    def goal(self, tol: float) -> float:
        """The gap at which a solve to this relative tolerance ends."""
        return tol * self.loss_scale

    def explained(self, loss: float) -> float:
        """Share of the deviance of the null model that a model with this loss explains; 1 if there is none."""
        scale = self.loss_scale
        return min((self.null_loss - loss) / scale, 1.0) if scale > 0.0 else 1.0  # rounding is not explained

    def null_coefficients(self) -> FloatArray:
        """Coefficients of the model without features."""
        return np.concatenate([np.zeros((self.n_rows, self.samples.n_tasks)), self.unpenalized.null_rows()])

    def row_index(self, units: IndexArray) -> IndexArray:
        """Rows of a coefficient matrix that stay when these units of the penalty stay."""
        return np.concatenate([self.penalty.rows(units), np.arange(self.n_rows, self.n_coefficients)])

    def restrict(self, units: IndexArray) -> Self:
        """The same on these units; those that are zero take the smallest weights with them."""
        return self._on(self.design.restrict(self.penalty.rows(units)), units)

    def _on(self, design: Design, units: IndexArray) -> Self:
        rows = self.penalty.rows(units)
        return replace(
            self,
            design=design,
            penalty=self.penalty.restrict(units),
            norms=self.norms[rows],
            rounding_norms=self.rounding_norms[rows],
            rows_of_origin=rows if self.rows_of_origin is None else self.rows_of_origin[rows],
            units_of_origin=units if self.units_of_origin is None else self.units_of_origin[units],
            task_norms=None if self.task_norms is None else self.task_norms[rows],
        )

    def _carried(self, design: Design, carry: Callable[[Handle], Handle]) -> Self:
        """The problem with its samples in the space of another design, to which a function carries handles."""
        Y, w = map(carry, self.samples.handles)
        samples = replace(self.samples, Y=Y, w=w)
        basis = self.unpenalized.basis
        if basis is not None:
            basis = replace(basis, Q=carry(basis.Q))
        block = replace(self.unpenalized, space=design, samples=samples, basis=basis)
        return replace(self, design=design, samples=samples, unpenalized=block)

    def with_lam(self, lam: FloatArray) -> Self:
        """The same data with other weights; what was computed from the data stays."""
        other = object.__new__(type(self))  # which takes a tenth of the time of replace, and paths do it a lot
        vars(other).update(vars(self), penalty=self.penalty.with_lam(lam))
        return other

    @property
    def is_compressible(self) -> bool:
        """Whether the problem has sufficient statistics that are smaller than its data."""
        is_tall = self.design.n_samples > self.design.n_features
        return self.loss.is_quadratic and is_tall and self.design.has_statistics

    def compressed(self, *, exact: bool) -> Self | None:
        """The same problem on at most ``n_features + n_tasks`` samples, or None where the design cannot deliver it.

        ``exact`` asks for a QR factorization, as exact as the data themselves; else the Gram matrix is factorized, and
        certificates allow for its rounding.
        """
        data = self.design.compressed(*self.samples.handles, exact=exact)
        return None if data is None else self.on_compressed(data)

    def on_compressed(self, data: CompressedData) -> Self:
        """The same problem on few samples that are known to stand for its own."""
        design = CompressedDesign(data.R, self.design.passes, unit=0.0)
        w = np.ones((design.n_samples, 1))
        samples = replace(self.samples, Y=data.T, w=w)
        return replace(
            self,
            design=design,
            samples=samples,
            unpenalized=replace(self.unpenalized, space=design, samples=samples, basis=None, in_samples=False),
            rounding_norms=np.maximum(data.x_size, self.norms),
            product_error=data.error,
            gram_cache=GramCache(design, w),
        )

    @property
    def has_moments_of_patterns(self) -> bool:
        """Whether moments of the samples of each pattern of observed targets may stand for them."""
        patterns = self.design.patterns
        return self.loss.is_known_by_moments and patterns is not None and self.unpenalized.rank == 0

    def compressed_by_pattern(self) -> Self | None:
        """The same problem on few samples of each pattern, or None where they are not fewer by much.

        Certificates allow for the rounding of the moments: of products that are centered in each task, which takes
        three of them.
        """
        data = self.design.compressed_patterns(*self.samples.handles, center=self.fit_intercept)
        if data is None:
            return None
        design = ObservedDesign(CompressedDesign(data.X, self.design.passes, unit=0.0), find_patterns(data.w))
        samples = replace(self.samples, Y=data.Y, w=data.w)
        return replace(
            self,
            design=design,
            samples=samples,
            unpenalized=replace(self.unpenalized, space=design, samples=samples),
            rounding_norms=np.maximum(self.rounding_norms, np.sqrt(data.sizes.max(axis=0))),
            product_error=4.0 * data.error,
            gram_cache=TaskGramCache(design, data.w),
        )

    # Input scale ------------------------------------------------------------------------------------

    def from_input(self, B: FloatArray, intercept: FloatArray | None) -> FloatArray:
        """Coefficients for this problem from ``B`` and intercept on the scale of X as it was given."""
        rows = self.unpenalized.null_rows()
        if self.unpenalized.n_rows and self.unpenalized.rank:
            rows[: self.unpenalized.rank] = self.design.basis_coefficients(B)[0] / self.unpenalized.scale
        if intercept is not None:
            terms = np.stack([intercept, -self.samples.center])
            rows = self.unpenalized.with_intercept(rows, self.plus_centers(terms, B, 1.0)[0])
        return np.concatenate([self.design.own_coefficients(B), rows])

    def start_from(self, B: FloatArray, intercept: FloatArray | None) -> FloatArray:
        """Coefficients as a starting point: with the signs asked for, and of minimal norm among equivalent ones."""
        coefficients = self.loss.canonical(self.from_input(B, intercept))
        if self.penalty.signs is not None:
            coefficients[: self.n_rows] = self.penalty.projected(coefficients[: self.n_rows])
        return coefficients

    def to_input(self, coefficients: FloatArray) -> tuple[FloatArray, FloatArray]:
        """``B`` and intercept on the scale of X as it was given."""
        rows, block = coefficients[: self.n_rows], coefficients[self.n_rows :]
        B, shift = self.design.input_coefficients(rows, self.unpenalized.on_basis(block))
        if not self.fit_intercept:
            return B, np.zeros(self.samples.n_tasks)
        return B, self.samples.center + self.unpenalized.intercept(block) + shift

    def all_to_input(self, stack: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The same of several coefficients, of shape (n_several, n_coefficients, n_tasks)."""
        if self.n_coefficients == self.n_rows and not self.unpenalized.rank:
            B, shift = self.design.input_coefficients(stack)
            intercept = self.samples.center + shift if self.fit_intercept else np.zeros(self.samples.n_tasks)
            return B, np.broadcast_to(intercept, (len(B), self.samples.n_tasks))
        every = list(map(self.to_input, stack))
        return np.stack([B for B, _ in every]), np.stack([intercept for _, intercept in every])

    def plus_centers(
        self, terms: FloatArray, B: FloatArray, sign: float, dtype: Any = np.float64
    ) -> tuple[FloatArray, FloatArray]:
        """Sum of the terms and of what was taken off the columns, times ``sign`` and ``B``; and what rounding took."""
        centers = self.design.mean
        if centers is None:
            return sum_with_products(terms, np.zeros(0), B[:0], dtype)
        rows = np.flatnonzero(B.any(axis=1))
        return sum_with_products(terms, sign * centers[rows], B[rows], dtype)

    def adopt_predictor(self, Z: Handle) -> tuple[Handle, FloatArray, FloatArray]:
        """A predictor ``X B + b0`` from outside as this problem has it, its weighted mean, and what was taken off."""
        mean = self.design.reduce(weighted_sums, Z, self.samples.w) / self.samples.total_weight
        if not self.fit_intercept:
            return Z, mean, np.zeros_like(mean)
        taken = self.samples.center if self.unpenalized.n_rows else mean
        return self.design.map(partial(np.add, -taken), Z), mean - taken, taken

    # Objective --------------------------------------------------------------------------------------

    def predictor(self, B: FloatArray, *, of_tasks: bool = True) -> Handle:
        """``Z = X B + b0``, one product over the non-zero rows; any numbers where no target of a task was observed."""
        block, rows = self.unpenalized, B[self.n_rows :]
        offset = block.intercept(rows) if block.constant and len(rows) else None
        product = self.design.predictor if of_tasks else self.design.matmul
        return block.plus_basis(product(B[: self.n_rows], offset), rows)

    def reach(self, B: FloatArray) -> float:
        """Bound on the size of ``X B + b0`` before cancellation, to which rounding errors are proportional."""
        reach = float(self.rounding_norms @ row_norms(B[: self.n_rows]))
        return reach + self.unpenalized.reach(B[self.n_rows :]) if len(B) > self.n_rows else reach

    @property
    def predictor_norms(self) -> FloatArray:
        """Bounds on the weighted norms of the columns that predictors are made of, about their own centers."""
        return self.norms if self.design.patterns is None else self.rounding_norms

    def loss_value(self, Z: Handle) -> float:
        """``F(Z)``."""
        return float(self.design.reduce(self.loss.value, Z, *self.samples.handles))

    def penalty_value(self, B: FloatArray) -> float:
        """``J(B)``."""
        return self.penalty.value(B[: self.n_rows])

    def dual_point(self, Z: Handle) -> Handle:
        """``theta = -grad F(Z)`` as it is: neither balanced nor feasible."""
        return self.design.map(self.loss.dual_point, Z, *self.samples.handles)

    def descent(self, Z: Handle) -> FloatArray:
        """Minus the gradient of the loss in the coefficients, one product."""
        return self.evaluate(self.dual_point(Z))[0]

    def batch_descent_change(self, rows: IndexArray, B: FloatArray, theta: Handle) -> FloatArray:
        """Unbiased estimate of the change of the descent direction from ``theta`` to ``B``, out of some samples.

        ``(n / l) sum_{i in rows} x_i (theta_i(B) - theta_i)^T``, whose mean over all batches of l samples is the
        difference of the full directions.
        """
        space, design = self.design, self.design.rows(rows)
        batch = self._carried(design, partial(space.select, rows=rows))
        change = design.map(np.subtract, batch.dual_point(batch.predictor(B)), space.select(theta, rows))
        return (space.n_samples / len(rows)) * batch.evaluate(change)[0]

    def prox(self, V: FloatArray, step: float) -> FloatArray:
        """Proximal map of ``step J``; the unpenalized block stays as it is."""
        P = V.copy()
        P[: self.n_rows] = self.penalty.prox(V[: self.n_rows], step)
        return P

    def evaluate(self, theta: Handle, *sums: Sum) -> tuple[FloatArray, list[Any]]:
        """Products of all columns with ``theta``, those of the unpenalized block last, and sums over samples."""
        block = self.unpenalized
        if not block.n_rows:
            return self.design.evaluate(theta, *sums)
        C, (own, *found) = self.design.evaluate(theta, (products, block.E, theta), *sums)
        return np.vstack([C, block.scale * own]), found

    # Certificates -----------------------------------------------------------------------------------

    def certify(
        self,
        B: FloatArray,
        Z: Handle | None = None,
        best: Certificate | None = None,
        *,
        cancelled: float = 0.0,
        residual: Residual | None = None,
    ) -> Certificate:
        """Certificate for coefficients ``B``; ``best`` is kept if its dual is larger.

        ``Z`` saves a product, ``residual``, known from other weights, saves two. ``cancelled`` is the weighted norm of
        a constant that was taken off ``Z``: its rounding is still there.
        """
        residual = self.residual(B, Z, cancelled) if residual is None else residual
        primal = residual.loss + self.penalty_value(B)
        found = self._certificate_at(B, residual, primal) if math.isfinite(primal) else None
        if found is None or not math.isfinite(found.gap + float(np.add.reduce(found.correlations))):
            if best is None:  # coefficients that overflow: zero is feasible, and nothing is proved
                zero = self.design.map(partial(_zeros, self.loss), self.samples.Y)
                best = Certificate(zero, np.zeros(self.penalty.n_units), 0.0, primal, self.samples.floor, np.inf, 0.0)
            return replace(best, primal=primal, gap=np.inf, residual=None)
        if best is None or best.dual < found.dual or found.gap == 0.0:
            return found
        rounding = best.product_error + self._rounding(residual, primal, best.dual, best.theta_norm)
        gap = max(primal - best.dual, 0.0) + rounding
        point = best.theta, best.correlations, best.theta_norm
        return Certificate(*point, primal, best.dual, gap, rounding, best.product_error, residual, best.products)

    def residual(self, B: FloatArray, Z: Handle | None = None, cancelled: float = 0.0) -> Residual:
        """What ``B`` leaves unexplained, two products or with ``Z`` one."""
        Z = self.predictor(B) if Z is None else Z
        raw, theta, sums = self._unexplained(Z)
        C, found = self.design.evaluate(theta, *sums)
        residual = self._residual(B, theta, C, found, cancelled)
        return replace(residual, raw=raw) if self.unpenalized.n_rows else residual

    @property
    def may_share_products(self) -> bool:
        """Whether :meth:`residuals` serves."""
        is_here = not self.design.is_distributed and self.design.patterns is None
        return self.loss.is_quadratic and is_here and not (self.unpenalized.n_rows or self.unpenalized.rank)

    def residuals(self, stack: FloatArray) -> list[Residual]:
        """The same of several coefficients, of shape (n_several, n_rows, n_tasks), in two products with X in all.

        For quadratic losses, samples in this process, and no unpenalized columns. In sample space the several are an
        axis between samples and tasks, in the memory of one after the other: sums are those of each alone.
        """
        m, n_rows, q = stack.shape
        B = stack.transpose(1, 0, 2).reshape(n_rows, m * q)
        Z = np.ascontiguousarray(self.design.matmul(B).reshape(-1, m, q).transpose(1, 0, 2)).transpose(1, 0, 2)
        _, theta, sums = self._carried(self.design, partial(np.expand_dims, axis=1))._unexplained(Z)
        C = self.design.rmatmul(theta.reshape(-1, m * q)).reshape(n_rows, m, q)
        found = map(partial(np.moveaxis, source=-1, destination=0), self.design.reduce_all(*sums))
        residuals = []
        for k, of_one in enumerate(zip(*found, strict=True)):
            residuals.append(self._residual(stack[k], theta[:, k], np.ascontiguousarray(C[:, k]), of_one))
        return residuals

    def _unexplained(self, Z: Handle) -> tuple[Handle, Handle, list[Sum]]:
        """Dual point of a predictor, the same balanced, and the sums over samples that a residual has."""
        (Y, w), block = self.samples.handles, self.unpenalized
        raw = self.dual_point(Z)
        theta, at = block.balanced(raw, Z)
        sums: list[Sum] = [
            (inverse_weighted_square, theta, w),
            (self.loss.ray_totals, theta, Y, w, at),
            (self.loss.value, Z, Y, w),
            (partial(_cancelling_size, self.loss), Z, Y, w),
        ]
        if block.n_rows:
            sums += [(squared_distance, raw, theta, w), (np.add.reduce, theta)]
        return raw, theta, sums

    def _residual(
        self, B: FloatArray, theta: Handle, C: FloatArray, found: Iterable[Any], cancelled: float = 0.0
    ) -> Residual:
        square, totals, loss, cancelling, *of_block = found
        block = self.unpenalized
        reach = self.samples.norm + cancelled + self.reach(B)
        correlations = self.penalty.correlations(C)
        if self.product_error > 0.0:  # upper bounds where products are not exact
            error = self.product_error * reach * self.penalty.lengths(self.rounding_norms)
            correlations = (1.0 + self.scale_error) * (correlations + error)
        return Residual(
            theta=theta,
            products=C,
            descent=None if block.n_rows else C,  # balancing by the mean does not move products with centered columns
            correlations=correlations,
            norm=math.sqrt(square),
            totals=totals,
            loss=float(loss),
            reach=reach,
            cancelling=float(cancelling),
            imbalance=block.imbalance(theta) if block.rank or not of_block else self._imbalance(of_block[1], square),
            balancing=math.sqrt(of_block[0]) if of_block else 0.0,
        )

    def _imbalance(self, column_sums: FloatArray, square: float) -> float:
        """Rounding error left by balancing a dual point; infinite if balancing failed, so that nothing is proved."""
        if not self.fit_intercept:
            return 0.0
        left = self.unpenalized.constant_value * float(np.linalg.norm(column_sums))
        return left if left <= _BALANCED_RTOL * (math.sqrt(square) + self.samples.norm) else math.inf

    def _certificate_at(self, B: FloatArray, residual: Residual, primal: float) -> Certificate:
        """Certificate from the residual, scaled into the dual ball."""
        gauge = self.penalty.gauge(residual.correlations + self._cancellation(residual.norm))
        scale = self.feasible_scale(residual.totals, gauge)
        may_be_null = gauge <= 1.0 and self.unpenalized.null_is_known and not B[: self.n_rows].any()
        if may_be_null and np.array_equal(B, self.null_coefficients()):
            # The gradient at the null model lies in the dual ball: optimal, and no difference to round. That holds for
            # one in closed form; one that was searched for may have been missed, and only a dual value can tell.
            theta = self.design.map(partial(np.multiply, scale), residual.theta)
            correlations, theta_norm = abs(scale) * residual.correlations, abs(scale) * residual.norm
            products = self._kept_products(scale, residual)
            return Certificate(theta, correlations, theta_norm, primal, primal, 0.0, 0.0, 0.0, residual, products)
        if self.penalty.ridge == 0.0:
            return self._certificate_on_ray(scale, residual, primal)
        # With a ridge every point of the domain is feasible: the residual as it is, best near the optimum; or scaled as
        # for columns with sqrt(ridge) I below them, which has the larger value where the ridge is small.
        augmented = self.penalty.dual_norm(residual.products - self.penalty.ridge * B[: self.n_rows])
        scales = {1.0, self.feasible_scale(residual.totals, augmented)}
        found = [self._certificate_on_ray(scale, residual, primal) for scale in sorted(scales)]
        return max(found, key=lambda certificate: certificate.dual - certificate.product_error)

    def feasible_scale(self, totals: FloatArray, gauge: float) -> float:
        """Factor of a dual point of this gauge that takes it into the dual ball, with a large dual value.

        Not a negative one where signs are asked for: what is feasible on one side of zero is not so on the other.
        """
        scale = self.loss.ray_scale(totals, 1.0 / gauge if gauge > 0 else np.inf)
        return scale if self.penalty.signs is None else max(scale, 0.0)

    def _certificate_on_ray(self, scale: float, residual: Residual, primal: float) -> Certificate:
        """Certificate from a multiple of the residual, in the dual ball or, with a ridge, anywhere in the domain."""
        theta = self.design.map(partial(np.multiply, scale), residual.theta)
        correlations, theta_norm = abs(scale) * residual.correlations, abs(scale) * residual.norm
        value = partial(self.loss.ray_value, scale=scale, totals=residual.totals)
        dual = float(self.design.reduce(value, theta, *self.samples.handles))
        # <theta, Y> and ||theta||^2 for theta = s (Y - X B), each with the error of its products; and what is left of
        # the products with the unpenalized block, times its coefficients.
        product_error = self.product_error * (abs(scale) + 0.5 * scale * scale) * residual.reach * residual.reach
        if residual.imbalance > 0.0 and scale != 0.0:
            product_error += abs(scale) * residual.imbalance * residual.reach
        if self.penalty.ridge > 0.0:
            conjugate, error = self._conjugate(scale, residual)
            dual -= conjugate
            product_error += error
        rounding = product_error + self._rounding(residual, primal, dual, theta_norm)
        gap = max(primal - dual, 0.0) + rounding
        products = self._kept_products(scale, residual)
        return Certificate(
            theta, correlations, theta_norm, primal, dual, gap, rounding, product_error, residual, products
        )

    def _kept_products(self, scale: float, residual: Residual) -> FloatArray | None:
        """Products of a multiple of a residual, where bounds will ask for more than their norms."""
        return None if self.task_norms is None else scale * residual.products

    def _conjugate(self, scale: float, residual: Residual) -> tuple[float, float]:
        """The conjugate of a penalty with a ridge at a multiple of the products of a residual, and its error.

        Errors of the products count by where the conjugate is attained, and by their squares over the ridge.
        """
        C = scale * residual.products
        value, at = self.penalty.conjugate(C)
        relative = product_slack(residual.norm, self.design.n_samples) + self.product_error * residual.reach
        errors = abs(scale) * relative * self.rounding_norms + self.scale_error * row_norms(C)
        moved = float(row_norms(at) @ errors) + 0.5 * float(errors @ errors) / self.penalty.ridge
        return value, 64 * EPS * value + moved

    def _cancellation(self, theta_norm: float) -> FloatArray:
        """Errors of the correlations where centering cancels: without this a scaled point may not be feasible."""
        lengths = self.penalty.lengths(self.rounding_norms - self.norms)
        return product_slack(theta_norm, self.design.n_samples) * lengths

    def _rounding(self, residual: Residual, primal: float, dual: float, theta_norm: float) -> float:
        """Bound on the error of ``primal - dual``: from the sums, from errors of Z and Y, from large Z.

        The two change with Z and Y as fast as the norms of the gradient at Z and of the dual point say, which may
        come from elsewhere and be far smaller.
        """
        sums = (64 * EPS + self.scale_error) * (abs(primal) + abs(dual))
        slope = theta_norm + residual.norm
        errors = 0.5 * self.product_error * residual.reach * residual.reach
        if self.penalty.ridge > 0.0:  # scales count twice in the ridge, and no more than the penalty in all
            sums += self.scale_error * abs(primal - residual.loss)
        return float(sums + errors + 8 * EPS * (slope * residual.reach + residual.cancelling))

    # Bounds -----------------------------------------------------------------------------------------

    @property
    def unit_norms(self) -> FloatArray | None:
        """Spectral norms of the columns of each unit, or None where rows are units."""
        return None if self.unit_bounds is None else self.unit_bounds.exact(self._origin)

    @property
    def _origin(self) -> IndexArray:
        return np.arange(self.penalty.n_units) if self.units_of_origin is None else self.units_of_origin

    def upper_bounds(
        self, certificate: Certificate, *, two_sided: bool = True, columns: FloatArray | None = None
    ) -> FloatArray:
        """``u_j >= ||x_j^T theta*||`` for every unit: the norm at the center of a ball, and how far it can still move.

        The dual optimum lies within ``sqrt(2 ell gap)`` of the certificate's point (ell: the curvature of the loss),
        so a correlation moves by at most that times the norm of its column, or of its columns together. The optimum
        also lies within ``sqrt(ell gap - e^2 / 4)`` of the midpoint between this point and the residual of the
        coefficients, e apart: that ball is inside the other. ``two_sided=False`` takes the first alone, as the paper
        does. A loss without such a curvature has local bounds alone. Where weights differ between tasks, a correlation
        moves by another length in each, and bounds are those of ellipsoids. ``columns`` are norms of the units' columns
        that stand for theirs.
        """
        if not math.isfinite(self.loss.curvature):
            return self.local_bounds(certificate)
        if not math.isfinite(certificate.gap):
            return np.full(self.penalty.n_units, np.inf)
        two_sided = two_sided and certificate.residual is not None
        balls = self._balls(certificate, two_sided)
        norms = self._correlations(certificate, columns)
        upper = balls.upper_bounds(norms, self.design.n_samples, two_sided=two_sided)
        if self.task_norms is None or certificate.products is None or self.product_error > 0.0:
            return upper
        others = certificate.products if certificate.residual is None else certificate.residual.products
        known = Products(certificate.products, others, self.task_norms, self.penalty)
        sharper = balls.ellipsoids(known, norms.rounding, self.design.n_samples, two_sided=two_sided)
        return np.minimum(upper, sharper)

    def kept(
        self,
        certificate: Certificate,
        rule: Callable[[FloatArray], IndexArray],
        candidates: IndexArray,
        *,
        two_sided: bool,
        refine: bool,
    ) -> tuple[IndexArray, FloatArray]:
        """What a rule keeps of the upper bounds of some units, and the bounds; with norms of units where they decide.

        The larger the bounds, the more a rule keeps. Units that it keeps with the least norms that all can have stay
        whatever theirs are; those that it drops with the largest go.
        """
        bounds = self.unit_bounds
        if bounds is None or not math.isfinite(self.loss.curvature):
            upper = self.upper_bounds(certificate, two_sided=two_sided)[candidates]
            return rule(upper), upper
        origin = self._origin

        def bounded(columns: FloatArray) -> FloatArray:
            return self.upper_bounds(certificate, two_sided=two_sided, columns=columns[origin])[candidates]

        upper = bounded(bounds.bounds)
        kept = rule(upper)
        if not refine:
            return kept, upper
        undecided = np.setdiff1d(kept, rule(bounded(bounds.least)), assume_unique=True)
        if bounds.is_open[origin[candidates[undecided]]].any():
            bounds.refine(origin[candidates[undecided]])
            upper = bounded(bounds.bounds)
            kept = rule(upper)
        return kept, upper

    def local_bounds(self, certificate: Certificate, *, estimated: bool = False) -> FloatArray:
        """The same from the curvature between dual point and residual, for a product with squares of X.

        Infinite where nothing is known; smaller than the others where the loss is flat, as with rare classes, and the
        gap is small. An estimate takes no product: it supposes that columns know nothing of the curvature, and have no
        outliers.
        """
        residual, bend = certificate.residual, self.loss.bend
        if residual is None or bend is None or not math.isfinite(certificate.gap):
            return np.full(self.penalty.n_units, np.inf)
        n_samples, total, lengths = self.design.n_samples, self.samples.total_weight, self.penalty.lengths
        points = certificate.theta, residual.theta if residual.raw is None else residual.raw
        H = self.design.map(partial(_weighted_spread, self.loss), *points, *self.samples.handles)
        if estimated:
            largest = self.norms / math.sqrt(total)
            share = self.design.reduce(np.add.reduce, H) / total
            squares = (self.norms**2)[:, None] * share.max()
        else:
            rows, largest = self.rows_of_origin, self.gram_cache.largest
            largest = largest if rows is None else largest[rows]
            squares = self.design.squared_products(H)
        known = None if self.unit_bounds is None else self.unit_bounds.bounds[self._origin]
        norms = self._correlations(certificate, known)
        if self.task_norms is not None:  # squares are about the centers of the design, not about those of each task
            norms = norms._replace(columns=np.maximum(norms.columns, norms.rounding))
        # Of a unit: the largest norm that its part of a sample can have, and the sum of the squares of its columns.
        of_units = self.penalty.sums(squares).max(axis=1), lengths(largest)
        return self._balls(certificate, True).local_bounds(norms, *of_units, bend, n_samples)

    def lower_bounds(self, certificate: Certificate) -> FloatArray:
        """``l_j <= ||x_j^T theta*||`` for every unit, from the same balls; 0 where nothing is known."""
        is_exact = math.isfinite(self.loss.curvature) and self.product_error == 0.0 == self.scale_error
        if not (is_exact and math.isfinite(certificate.gap)) or certificate.residual is None:
            return np.zeros(self.penalty.n_units)
        return self._balls(certificate, True).lower_bounds(self._correlations(certificate), self.design.n_samples)

    def _balls(self, certificate: Certificate, two_sided: bool) -> Balls:
        """Balls that contain the dual optimum; two take a sum over samples."""
        gap, ell, residual = certificate.gap, self.loss.curvature, certificate.residual
        if residual is None or not two_sided:
            return Balls(gap, ell, certificate.theta_norm, 0.0, 0.0, 0.0, 0.0)
        raw = residual.theta if residual.raw is None else residual.raw
        square = float(self.design.reduce(squared_distance, certificate.theta, raw, self.samples.w))
        # Dual points and residuals are combinations of targets and columns, of which Gram matrices know the products.
        error = 4.0 * certificate.product_error + 2.0 * self.product_error * residual.reach * residual.reach
        distances = math.sqrt(square), residual.balancing, residual.reach, error
        return Balls(gap, ell, certificate.theta_norm, residual.norm, *distances)

    def _correlations(self, certificate: Certificate, columns: FloatArray | None = None) -> Correlations:
        """Correlations of a certificate and of its residual, with the norms of the columns, or what stands for them."""
        own, residual, lengths = certificate.correlations, certificate.residual, self.penalty.lengths
        others = own if residual is None else residual.correlations
        norms = self.unit_norms if columns is None else columns
        return Correlations(own, others, lengths(self.norms) if norms is None else norms, lengths(self.rounding_norms))

    def pulls(self, B: FloatArray, residual: Residual) -> FloatArray:
        """Correlations as the optimality conditions of the norm alone have them, where ``B`` is near the optimum."""
        if self.penalty.ridge == 0.0:
            return residual.correlations
        return self.penalty.correlations(residual.products - self.penalty.ridge * B[: self.n_rows])

    def lam_max(self, weights: FloatArray, residual: Residual | None = None) -> float:
        """Smallest factor of ``weights`` at which no feature is selected; ``residual`` is that of the null model."""
        residual = self.residual(self.null_coefficients()) if residual is None else residual
        if not residual.correlations.any():  # no column has a correlation of its sign: rounding is no reason to select
            return 0.0
        correlations = residual.correlations + self._cancellation(residual.norm)
        factor = owl_gauge(correlations, weights)
        # Rounding, of lam = factor * weights and of the products, must not leave the gauge above 1.
        for _ in range(64):
            if factor == 0.0 or owl_gauge(correlations, factor * weights) <= 1.0 - 64 * EPS:
                break
            factor *= 1.0 + 32 * EPS
        return factor

    def interpolation_excess(self, one: Certificate, other: Certificate, ratio: float) -> float:
        """Bound on what the gap of an interpolated solution has beyond the interpolated gap, four times at most.

        For a quadratic loss, lam ``a_0 * weights`` here, ``a_1 = ratio * a_0`` at the other end, and all else in
        between on lines as well: with the share s of the other end the gap is at most
        ``(1 - s) gap_0 + s gap_1 + s (1 - s) excess``, where

            excess = (a_0 - a_1) (J_1 - J_0) - 1/2 ||Z_1 - Z_0||^2 - 1/2 ||theta_1 - theta_0||^2

        because the two parts of the gap without penalty are exact quadratics, the norm J is convex, and dual points
        that are feasible at their ends are so in between. Infinity where nothing is known.
        """
        start, end = one.residual, other.residual
        if not self.loss.is_quadratic or self.penalty.ridge > 0.0 or start is None or end is None:
            return math.inf
        first, last = one.primal - start.loss, (other.primal - end.loss) / ratio  # a_0 J_0 and a_0 J_1
        moved = 0.0
        for ends in ((start.theta, end.theta), (one.theta, other.theta)):
            difference = self.design.map(np.subtract, *ends)
            moved += float(self.design.reduce(inverse_weighted_square, difference, self.samples.w))
        reach = start.reach + end.reach
        rounding = (64 * EPS + self.product_error) * reach * reach + 64 * EPS * (one.primal + other.primal / ratio)
        return (1.0 - ratio) * (last - first) - 0.5 * moved + rounding

    # Working sets ------------------------------------------------------------------------------------

    def gram(self, rows: IndexArray) -> FloatArray:
        """``X_rows^T diag(w) X_rows``, from the cache as far as it is known; one for each task where weights differ."""
        return self.gram_cache.block(rows if self.rows_of_origin is None else self.rows_of_origin[rows])

    def block_products(self, rows: IndexArray) -> tuple[FloatArray, FloatArray]:
        """``X_rows^T diag(w_k) E`` and ``E^T diag(w_k) E`` of each task k, E scaled; for weights of entries.

        Shapes (n_tasks, len(rows), n_block) and (n_tasks, n_block, n_block).
        """
        cache, block, q = self.gram_cache, self.unpenalized, self.samples.n_tasks
        known = cache.design.task_moments if block.rank == 0 else None
        if cache.of_block is None and known is not None:  # nothing but a constant
            value = block.scale * block.constant_value
            cache.of_block = value * known.sums.T[:, :, None], value**2 * known.totals[:, None, None]
        if cache.of_block is None:
            weighted = self.design.map(_times_each_task, block.E, self.samples.w)
            C, (square,) = cache.design.evaluate(weighted, (products, block.E, weighted))
            shaped = [M.reshape(len(M), q, block.n_rows) for M in (block.scale * C, block.scale**2 * square)]
            found = [M.transpose(1, 0, 2) for M in shaped]
            cache.of_block = found[0], found[1]
        cross, corner = cache.of_block
        return cross[:, rows if self.rows_of_origin is None else self.rows_of_origin[rows]], corner

    def columns(self, rows: IndexArray) -> Columns | None:
        """Columns of these rows and of the unpenalized block as local arrays, where samples are local."""
        columns = self.design.columns(rows)
        return None if columns is None else self.unpenalized.appended(columns)

    def brought_near(self, units: IndexArray) -> Self | None:
        """The problem on these units in this process, where samples are far and moving the columns is cheaper."""
        design = self.design.brought_near(self.penalty.rows(units), self.samples.n_tasks)
        return None if design is None else self._on(design, units)._carried(design, self.design.gather)

    # Curvature --------------------------------------------------------------------------------------

    def curvature_gram(self, Z: Handle, rows: IndexArray) -> FloatArray | None:
        """``X_rows^T diag(h) X_rows`` with ``h`` the mean curvature over the tasks of each sample at a predictor.

        Rows may be those of the unpenalized block. None where there is no curvature left.
        """
        design, block = self.design, self.unpenalized
        h = design.map(self.loss.curvatures, self.dual_point(Z), *self.samples.handles)
        if not 0.0 < float(design.reduce(np.sum, h)) < np.inf:
            return None
        penalized, others = rows[rows < self.n_rows], rows[rows >= self.n_rows] - self.n_rows
        M = design.gram(penalized, penalized, h)
        if len(others) == 0:
            return M
        weighted = design.map(np.multiply, block.E, h)
        cross, (corner,) = design.evaluate(weighted, (products, block.E, weighted))
        right = block.scale * cross[np.ix_(penalized, others)]
        return np.block([[M, right], [right.T, block.scale**2 * corner[np.ix_(others, others)]]])

    def curvature_at(self, B: FloatArray | None = None, Z: Handle | None = None) -> float:
        """Curvature of the loss, or a local bound near the coefficients if there is no global one.

        By default those of the model without features.
        """
        if math.isfinite(self.loss.curvature):
            return self.loss.curvature
        if Z is None:
            Z = self.predictor(self.null_coefficients() if B is None else B)
        return float(self.design.reduce(self.loss.curvature_near, Z, *self.samples.handles))

    def move_curvature(self, Z_from: Handle, Z_to: Handle, move: FloatArray) -> float:
        """``ell ||sqrt(w) (Z_to - Z_from)||^2 / ||move||^2``: curvature the loss can have along a move."""
        square = float(np.sum(move * move))
        change = self.design.map(np.subtract, Z_to, Z_from)
        distance = float(self.design.reduce(weighted_squares, change, self.samples.w).sum())
        return self.curvature_at(Z=Z_from) * distance / square if square > 0 else 0.0

    def lipschitz(self) -> float:
        """Lanczos estimate of ``ell ||diag(w)^(1/2) X||_2^2``, a few per cent from above as a rule.

        The columns of the unpenalized block are orthogonal to the others, so the norm is the larger of the two.
        """
        squares = self.norms**2
        largest = float(squares.sum())  # Frobenius norm: always enough
        if self.n_rows > 2 and largest > 0.0:
            estimate = lanczos_estimate(self._normal_product, self.n_rows)
            largest = max(1.02 * estimate, float(squares.max())) if estimate > 0.0 else largest
        if self.design.patterns is not None:  # they are not, where each task has its own means
            return self.curvature_at() * (largest + self.unpenalized.scale**2)
        return self.curvature_at() * max(largest, self.unpenalized.scale**2)

    def batch_lipschitz(self, batch_size: int) -> float:
        """Expected smoothness of the loss over batches of samples drawn without replacement.

        Between the constant of a single sample (n times the largest) and that of all samples, which a few power
        iterations estimate: whoever steps by a batch adapts the step anyway.
        """
        block, curvature, v = self.unpenalized, self.curvature_at(), self.norms
        n, size = self.design.n_samples, min(batch_size, self.design.n_samples)
        whole = float(v.max(initial=0.0)) ** 2
        if whole > 0.0:
            whole = max(whole, power_estimate(self._normal_product, v))
        if size == n:
            return curvature * whole
        row = self._largest_row()
        if block.n_rows:
            row += block.scale**2 * float(self.design.reduce(_largest_square, block.E, self.samples.w))
        return curvature * (n * (size - 1) * whole + (n - size) * n * row) / (size * (n - 1))

    def _largest_row(self) -> float:
        """Estimate of ``max_i w_i ||x_i||^2`` from products with random signs.

        Each row is off by a chi-squared number over its degrees of freedom, and the largest by about the largest of n.
        """
        signs = np.random.default_rng(0).choice([-1.0, 1.0], (self.n_rows, _PROBES))
        largest = self.design.reduce(_largest_square, self.design.matmul(signs), self.samples.w)
        return float(largest / chdtri(_PROBES, 1.0 / self.design.n_samples))

    def _normal_product(self, v: FloatArray) -> FloatArray:
        Z = self.design.matmul(v.reshape(-1, 1))
        return self.design.rmatmul(self.design.map(_times_weight, Z, self.samples.w))[:, 0]


def _times_weight(Z: FloatArray, w: FloatArray) -> FloatArray:
    """A column times the weights of samples, the largest where they differ between tasks."""
    return Z * (w if w.shape[1] == 1 else w.max(axis=1, keepdims=True))


def _times_each_task(E: FloatArray, w: FloatArray) -> FloatArray:
    """Columns of ``E`` times the weights of each task, the columns fastest."""
    return (w[:, :, None] * E[:, None, :]).reshape(len(E), -1)


def _largest_square(Z: FloatArray, w: FloatArray) -> float:
    """Largest ``w_i ||z_i||^2`` of some rows: added up over blocks it is still a bound."""
    return float(np.max(w.max(axis=1) * np.einsum("ik,ik->i", Z, Z), initial=0.0))


def _zeros(loss: Loss, Y: FloatArray) -> FloatArray:
    return np.zeros_like(loss.targets(Y))


def _cancelling_size(loss: Loss, Z: FloatArray, Y: FloatArray, w: FloatArray) -> float:
    """Size of the terms that cancel inside the loss, at the predictors with all that is added to them."""
    return loss.cancelling_size(loss.shifted(Z, Y), w)


def _weighted_spread(loss: Loss, theta: FloatArray, raw: FloatArray, Y: FloatArray, w: FloatArray) -> FloatArray:
    """Variances of the local bound times the weights, with room for the rounding of the means at the two points."""
    sizes = np.abs(loss.observed(Y)) + over_weights(np.abs(theta) + np.abs(raw), w)
    return w * (loss.spread(theta, raw, Y, w) + 4 * EPS * sizes)
