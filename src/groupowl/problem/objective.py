"""The primal side of a problem: data, loss and weights, and the products that solvers ask for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

import numpy as np

from .._kernels import EPS, column_sums, nonzero_rows, owl_value, prox_units, sum_with_products, unit_norms
from .._typing import FloatArray, Handle, IndexArray
from ..designs import Columns, Design, GramCache, Sum, products
from ..losses import Loss
from ..targets import Targets, weighted_sums
from .certificate import Certificate, Published, Residual
from .spectrum import lanczos_estimate, power_estimate

# What changes the objective by less than this, relatively, is a hundred millionth of its last digit.
_NEGLIGIBLE = 1e-8 * EPS


@dataclass(frozen=True, eq=False)
class Objective:
    """Loss and penalty as functions of the coefficients; see the package's docstring.

    Attributes
    ----------
    design : Design
        X, centred implicitly when an intercept is fitted.
    loss : Loss
    targets : Targets
    lam : ndarray of shape (n_rows,)
        Weights of the rows that are left, the largest ones.
    norms : ndarray of shape (n_rows,)
        ``a_j = sqrt(sum_i w_i x_ij^2)`` of the (centred) columns: how far a correlation can move.
    rounding_norms : ndarray of shape (n_rows,)
        The same for the numbers that are really multiplied; larger where centring cancels.
    fit_intercept : bool
    intercept_scale : float
        Constant of the column that carries the intercept; 0 when there is no such column.
    gram_cache : GramCache
        Gram matrix of the columns that working sets have asked for.
    rows_of_origin : ndarray of int or None
        Columns of the cache's design that this problem has, where it has only some.
    free_scale : float
        Factor of the basis of the unpenalised columns where it has coefficients of its own; 0 where there is no such
        basis, or the loss allows to project it out.
    product_error : float
        Error of the products between columns, and of columns with Y, relative to ``rounding_norms`` and the norm of Y;
        0 where they are computed from the data, not so where a Gram matrix stands for them.
    scale_error : float
        Relative error of the scales of standardized columns, where statistics stand for the data. It changes the
        penalty of a row by as much: the objective, the minimum, and each correlation, by no more than this part.
    """

    design: Design
    loss: Loss
    targets: Targets
    lam: FloatArray
    norms: FloatArray
    rounding_norms: FloatArray
    fit_intercept: bool
    intercept_scale: float
    gram_cache: GramCache
    rows_of_origin: IndexArray | None = None
    product_error: float = 0.0
    scale_error: float = 0.0
    free_scale: float = 0.0

    # Shape ------------------------------------------------------------------------------------------

    @property
    def n_rows(self) -> int:
        """Number of penalised rows of ``B``."""
        return len(self.lam)

    @property
    def n_free(self) -> int:
        """Number of unpenalised rows below them: those of the basis, then the intercept."""
        return self.n_free_rows + int(self.intercept_scale > 0)

    @property
    def n_free_rows(self) -> int:
        """Unpenalised rows without the intercept."""
        return self.design.n_free_directions if self.free_scale > 0 else 0

    def _free_rows(self, B: FloatArray) -> FloatArray:
        """Coefficients of the basis of the unpenalised columns."""
        return self.free_scale * B[self.n_rows : self.n_rows + self.n_free_rows]

    @property
    def null_loss(self) -> float:
        """Loss of the model without features; tolerances are relative to it."""
        return self.targets.null_loss

    def null_coefficients(self) -> FloatArray:
        """Coefficients of the model without features."""
        B = np.zeros((self.n_rows + self.n_free, self.targets.n_tasks))
        if self.n_free_rows:
            B[self.n_rows : self.n_rows + self.n_free_rows] = self.targets.null_free / self.free_scale
        if self.intercept_scale:
            B[-1] = self.targets.null_intercept / self.intercept_scale
        return B

    def row_index(self, keep: IndexArray) -> IndexArray:
        """Rows of a coefficient matrix that stay when the penalised rows ``keep`` stay."""
        return np.concatenate([keep, np.arange(self.n_rows, self.n_rows + self.n_free)])

    def restrict(self, keep: IndexArray) -> Self:
        """The same on the rows ``keep``; rows that are zero take the smallest weights with them."""
        return self._on(self.design.restrict(keep), keep)

    def _on(self, design: Design, keep: IndexArray) -> Self:
        return replace(
            self,
            design=design,
            lam=self.lam[: len(keep)],
            norms=self.norms[keep],
            rounding_norms=self.rounding_norms[keep],
            rows_of_origin=keep if self.rows_of_origin is None else self.rows_of_origin[keep],
        )

    def with_lam(self, lam: FloatArray) -> Self:
        """The same data with other weights; what was computed from the data stays."""
        other = object.__new__(type(self))  # a path makes one per alpha: setting twelve fields again takes long
        other.__dict__.update(self.__dict__, lam=lam)
        return other

    # Input scale ------------------------------------------------------------------------------------

    def from_input(self, B: FloatArray, intercept: FloatArray | None) -> FloatArray:
        """Coefficients for this problem from ``B`` and intercept on the scale of X as it was given."""
        coefficients = self.null_coefficients()
        coefficients[: self.n_rows], free = self.design.own_coefficients(B)
        if self.n_free_rows:
            coefficients[self.n_rows : self.n_rows + self.n_free_rows] = free / self.free_scale
        if intercept is None:
            return coefficients
        terms = np.stack([intercept, -self.targets.center])
        return self.with_intercept(coefficients, self._plus_centers(terms, B, 1.0)[0])

    def _on_basis(self, coefficients: FloatArray) -> FloatArray:
        """Coefficients of the basis, those of what was taken off the targets included."""
        return (
            self.targets.free_center + self._free_rows(coefficients) if self.n_free_rows else self.targets.free_center
        )

    def with_intercept(self, coefficients: FloatArray, intercept: FloatArray) -> FloatArray:
        """The same rows with another intercept for the centred columns, where the problem carries one."""
        if self.intercept_scale:
            coefficients = np.vstack([coefficients[:-1], intercept / self.intercept_scale])
        return coefficients

    def intercept_excess(self, coefficients: FloatArray, intercept: FloatArray | None) -> tuple[float, float]:
        """What a given intercept adds to the objective where the problem takes the optimal one, and its rounding."""
        if intercept is None or self.n_free or not self.fit_intercept:
            return 0.0, 0.0
        total = self.targets.total_weight
        distance = float(np.linalg.norm(intercept - self.to_input(coefficients)[1]))
        reach = self.reach(coefficients) / np.sqrt(total)
        size = float(np.linalg.norm(intercept) + np.linalg.norm(self.targets.center)) + reach
        excess = 0.5 * self.loss.curvature * total * distance**2
        return excess, 64 * EPS * excess + 8 * EPS * self.loss.curvature * total * size * (distance + EPS * size)

    def published(self, coefficients: FloatArray, certificate: Certificate, dtype: Any = np.float64) -> Published:
        """Coefficients as users get them, in their precision, and what rounding them does to the objective.

        The intercept and the coefficients of unpenalized columns follow from the penalized ones after those were
        rounded.
        """
        B = _in_precision(self._input_rows(coefficients), dtype)
        intercept, left = self._rounded_intercept(coefficients, B)
        residual, curvature = certificate.residual, self.loss.curvature
        if residual is None:  # coefficients that overflow, of which nothing is proved
            return Published(B, intercept, 0.0, 0.0)
        change, moved = self._change_by_rounding(coefficients, B, residual)
        distance, doubt = self._unpenalized_distance(coefficients, B, intercept, left)
        farthest = moved + distance + doubt
        if self.n_free and certificate.gap == 0.0:  # the null model, a minimum along the block
            excess, rounding = change, 0.5 * self._null_curvature(residual) * farthest**2
        elif self.n_free:  # along the block the loss falls no faster than balancing says
            excess, rounding = change, residual.balancing * farthest + 0.5 * curvature * farthest**2
        else:  # the problem has the best coefficients of the block, from where the loss rises as a parabola
            excess = change + 0.5 * curvature * distance**2
            rounding = 0.5 * curvature * moved**2 + curvature * doubt * (distance + doubt)
        if abs(excess) + rounding <= _NEGLIGIBLE * certificate.primal:
            return Published(B, intercept, 0.0, 0.0)
        return Published(B, intercept, excess, rounding)

    def _null_curvature(self, residual: Residual) -> float:
        """Twice the curvature near a constant predictor, per unit of weight: hardly any where there is one class."""
        Y, w = self.targets.Y, self.targets.w
        means = self.design.reduce(np.sum, self.design.map(self.loss.curvatures, residual.theta, Y, w))
        return min(self.loss.curvature, 2.0 * self.targets.n_tasks * float(means) / self.targets.total_weight)

    def _change_by_rounding(self, coefficients: FloatArray, B: FloatArray, residual: Residual) -> tuple[float, float]:
        """First-order change of the objective by rounded penalized coefficients, and how far predictors move."""
        if B.dtype == np.float64:
            return 0.0, 0.0  # certificates allow for it
        rows = coefficients[: self.n_rows]
        rounded = self.design.own_coefficients(B.astype(np.float64))[0]
        moves = rounded - rows
        moved = float(self.norms @ unit_norms(moves))
        penalty = self.penalty_value(rounded) - self.penalty_value(rows)
        return penalty - float(np.sum(residual.products * moves)), moved

    def _unpenalized_distance(
        self, coefficients: FloatArray, B: FloatArray, intercept: FloatArray, left: FloatArray
    ) -> tuple[float, float]:
        """Weighted norm by which predictors differ through the rounding of unpenalized coefficients, and its error.

        ``left`` is what rounding took off the intercept.
        """
        whole = B.astype(np.float64, copy=False)
        root = float(np.sqrt(self.targets.total_weight))
        distance = doubt = 0.0
        if self.design.n_free_directions:
            on_basis = self.design.own_coefficients(whole)[1]
            distance += float(np.linalg.norm(on_basis - self._on_basis(coefficients)))
            doubt += 8 * EPS * self.design.basis_reach(whole)
        if self.fit_intercept:
            distance += root * float(np.linalg.norm(left))
            doubt += self.targets.center_error + root * EPS * float(np.linalg.norm(self._constant(coefficients)))
            if (centers := self.design.column_centers) is not None:  # means, rounded once
                doubt += root * EPS * float(np.abs(centers) @ unit_norms(whole))
            doubt += 8 * EPS * float(self.norms @ unit_norms(coefficients[: self.n_rows]))
            doubt += self.product_error * (self.targets.norm + self.reach(coefficients))
        if self.n_free and len(intercept) == 2:  # users get the difference of two classes, rounded once more
            differences = self.design.own_coefficients(whole)[0].sum(axis=1)
            unit = float(np.finfo(B.dtype).eps)
            doubt += float(self.norms @ np.abs(differences)) + root * unit * float(np.linalg.norm(intercept))
        return distance, float(doubt)

    def adopt_predictor(self, Z: Handle) -> tuple[Handle, FloatArray]:
        """A predictor ``X B + b0`` from outside as this problem has it, and its weighted mean."""
        mean = self.design.reduce(weighted_sums, Z, self.targets.w) / self.targets.total_weight
        if self.fit_intercept and not self.n_free:
            Z = self.design.map(partial(np.add, -mean), Z)
        return Z, mean

    def to_input(self, coefficients: FloatArray) -> tuple[FloatArray, FloatArray]:
        """``B`` and intercept on the scale of X as it was given."""
        B, shift = self.design.input_coefficients(coefficients[: self.n_rows], self._on_basis(coefficients))
        if not self.fit_intercept:
            return B, np.zeros(self.targets.n_tasks)
        return B, self.targets.center + self._constant(coefficients) + shift

    def _input_rows(self, coefficients: FloatArray) -> FloatArray:
        return self.design.input_coefficients(coefficients[: self.n_rows], self._on_basis(coefficients))[0]

    def _rounded_intercept(self, coefficients: FloatArray, B: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Intercept for ``B``, in its precision, and what rounding took off."""
        if not self.fit_intercept:
            return np.zeros(self.targets.n_tasks, dtype=B.dtype), np.zeros(self.targets.n_tasks)
        terms = np.stack([self.targets.center, self._constant(coefficients)])
        intercept, left = self._plus_centers(terms, B.astype(np.float64, copy=False), -1.0, B.dtype)
        if not np.isfinite(intercept).all():
            _in_precision(self.to_input(coefficients)[1], B.dtype)
        return intercept, left

    def _plus_centers(
        self, terms: FloatArray, B: FloatArray, sign: float, dtype: Any = np.float64
    ) -> tuple[FloatArray, FloatArray]:
        """Sum of the terms and of what was taken off the columns, times ``sign`` and ``B``; and what rounding took."""
        centers = self.design.column_centers
        rows = np.zeros(0, dtype=np.intp) if centers is None else np.flatnonzero(nonzero_rows(B))
        taken_off = np.zeros(0) if centers is None else sign * centers[rows]
        return sum_with_products(terms, taken_off, B[rows], dtype)

    def _constant(self, coefficients: FloatArray) -> FloatArray:
        """Intercept of the centered columns, where the problem carries one."""
        return self.intercept_scale * coefficients[-1] if self.intercept_scale else np.zeros(self.targets.n_tasks)

    # Objective --------------------------------------------------------------------------------------

    def predictor(self, B: FloatArray) -> Handle:
        """``Z = X B + b0``, one product over the non-zero rows."""
        offset = self.intercept_scale * B[-1] if self.intercept_scale else None
        Z = self.design.matmul(B[: self.n_rows], offset)
        if not self.n_free_rows:
            return Z
        return self.design.map(partial(_plus_product, coefficients=self._free_rows(B)), Z, self.design.free_basis)

    def reach(self, B: FloatArray) -> float:
        """Bound on the weighted norm of ``X B + b0``, whatever cancels: rounding errors are in proportion to it."""
        reach = float(self.rounding_norms @ unit_norms(B[: self.n_rows]))
        if self.intercept_scale:
            reach += self.intercept_scale * float(np.linalg.norm(B[-1])) * np.sqrt(self.targets.total_weight)
        if self.n_free_rows:
            reach += float(unit_norms(self._free_rows(B)).sum())
        return reach

    def loss_value(self, Z: Handle) -> float:
        """``F(Z)``."""
        return float(self.design.reduce(self.loss.value, Z, self.targets.Y, self.targets.w))

    def penalty_value(self, B: FloatArray) -> float:
        """``J(B)``."""
        return owl_value(unit_norms(B[: self.n_rows]), self.lam)

    def dual_point(self, Z: Handle) -> Handle:
        """``theta = -grad F(Z)`` as it is: neither balanced nor feasible."""
        return self.design.map(self.loss.dual_point, Z, self.targets.Y, self.targets.w)

    def descent(self, Z: Handle) -> FloatArray:
        """Minus the gradient of the loss in the coefficients, one product."""
        return self._correlate(self.dual_point(Z))

    def loss_and_descent(self, Z: Handle) -> tuple[float, FloatArray]:
        """``F(Z)`` and minus its gradient in the coefficients, at once."""
        theta = self.dual_point(Z)
        C, (loss,) = self._evaluate(theta, (self.loss.value, Z, self.targets.Y, self.targets.w))
        return float(loss), C

    def batch_descent_change(self, rows: IndexArray, B: FloatArray, theta: Handle) -> FloatArray:
        """Unbiased estimate of the change of the descent direction from ``theta`` to ``B``, out of some samples.

        ``(n / l) sum_{i in rows} x_i (theta_i(B) - theta_i)^T``, whose mean over all batches of l samples is the
        difference of the full directions.
        """
        design, targets = self.design.rows(rows), self.targets
        Y, w = self.design.select(targets.Y, rows), self.design.select(targets.w, rows)
        batch = replace(self, design=design, targets=replace(targets, Y=Y, w=w))
        change = design.map(np.subtract, batch.dual_point(batch.predictor(B)), self.design.select(theta, rows))
        return (self.design.n_samples / len(rows)) * batch._correlate(change)

    def prox(self, V: FloatArray, step: float) -> FloatArray:
        """Proximal map of ``step J``; the unpenalised block stays as it is."""
        P = V.copy()
        P[: self.n_rows] = prox_units(V[: self.n_rows], step * self.lam)
        return P

    def _correlate(self, theta: Handle) -> FloatArray:
        return self._evaluate(theta)[0]

    def _evaluate(self, theta: Handle, *sums: Sum) -> tuple[FloatArray, list[Any]]:
        """Products of all columns with ``theta``, those of the unpenalised block last, and sums over samples."""
        free: list[tuple[float, Sum]] = []
        if self.n_free_rows:
            free.append((self.free_scale, (products, self.design.free_basis, theta)))
        if self.intercept_scale:
            free.append((self.intercept_scale, (column_sums, theta)))
        C, found = self.design.evaluate(theta, *(part for _, part in free), *sums)
        if free:
            C = np.vstack([C, *(scale * part for (scale, _), part in zip(free, found, strict=False))])
        return C, found[len(free) :]

    # Working sets ------------------------------------------------------------------------------------

    def gram(self, rows: IndexArray) -> FloatArray:
        """``X_rows^T diag(w) X_rows``, from the cache as far as it is known."""
        return self.gram_cache.block(rows if self.rows_of_origin is None else self.rows_of_origin[rows])

    def columns(self, rows: IndexArray) -> Columns | None:
        """Columns of these rows and of the unpenalised block as local arrays, where samples are local."""
        columns = self.design.columns(rows)
        if columns is not None and self.n_free_rows:
            columns = columns.with_columns(self.free_scale * self.design.free_basis)
        return columns.with_constant(self.intercept_scale) if columns is not None and self.intercept_scale else columns

    def brought_near(self, rows: IndexArray) -> Self | None:
        """The problem on these rows in this process, where samples are far and moving the columns is cheaper."""
        design = self.design.brought_near(rows, self.targets.n_tasks)
        if design is None:
            return None
        Y, w = (self.design.gather(samples) for samples in (self.targets.Y, self.targets.w))
        return replace(self._on(design, rows), targets=replace(self.targets, Y=Y, w=w))

    # Curvature --------------------------------------------------------------------------------------

    def curvature_gram(self, Z: Handle, rows: IndexArray) -> FloatArray | None:
        """``X_rows^T diag(h) X_rows`` with ``h`` the mean curvature over the tasks of each sample at a predictor.

        Rows may be those of the unpenalised block. None where there is no curvature left.
        """
        design, Y, w = self.design, self.targets.Y, self.targets.w
        h = design.map(self.loss.curvatures, self.dual_point(Z), Y, w)
        if not 0.0 < float(design.reduce(np.sum, h)) < np.inf:
            return None
        penalised, free = rows[rows < self.n_rows], rows[rows >= self.n_rows] - self.n_rows
        M = design.gram(penalised, penalised, h)
        if len(free) == 0:
            return M
        E = design.map(partial(_free_columns, scales=self._free_scales()), w, *self._free_handles())
        weighted = design.map(np.multiply, E, h)
        cross, (corner,) = design.evaluate(weighted, (products, E, weighted))
        right = cross[np.ix_(penalised, free)]
        return np.block([[M, right], [right.T, corner[np.ix_(free, free)]]])

    def _free_handles(self) -> tuple[Handle, ...]:
        return (self.design.free_basis,) if self.n_free_rows else ()

    def _free_scales(self) -> tuple[float, float]:
        return self.free_scale if self.n_free_rows else 0.0, self.intercept_scale

    def move_curvature(self, Z_from: Handle, Z_to: Handle, move: FloatArray) -> float:
        """``ell ||sqrt(w) (Z_to - Z_from)||^2 / ||move||^2``: curvature the loss can have along a move."""
        square = float(np.sum(move * move))
        distance = self.design.reduce(_weighted_distance, Z_from, Z_to, self.targets.w)
        return self.loss.curvature * distance / square if square > 0 else 0.0

    def lipschitz(self) -> float:
        """Lanczos estimate of ``ell ||diag(w)^(1/2) X||_2^2``, a few per cent from above as a rule.

        The intercept's column is orthogonal to the centred ones, so the norm is the larger of the two.
        """
        column = max(self.intercept_scale**2 * self.targets.total_weight, self.free_scale**2)
        longest = max(float(self.norms.max(initial=0.0)) ** 2, column)
        if self.n_rows < 3 or longest == 0.0:
            return self.loss.curvature * max(float(np.sum(self.norms**2)), column)
        estimate = lanczos_estimate(self._normal_product, self.n_rows)
        if estimate <= 0.0:
            return self.loss.curvature * float(np.sum(self.norms**2))  # Frobenius norm: always enough
        return self.loss.curvature * max(1.02 * estimate, longest)

    def batch_lipschitz(self, batch_size: int) -> float:
        """Expected smoothness of the loss over batches of samples drawn without replacement.

        Between the constant of a single sample (n times the largest) and that of all samples, which a few power
        iterations estimate: whoever steps by a batch adapts the step anyway.
        """
        n, size = self.design.n_samples, min(batch_size, self.design.n_samples)
        longest = float(self.norms.max(initial=0.0)) ** 2
        estimate = power_estimate(self._normal_product, self.norms) if longest > 0.0 else 0.0
        whole = self.loss.curvature * max(longest, estimate)
        if size == n:
            return whole
        w = self.targets.w
        row = self.design.largest_row(w, self.intercept_scale**2) + self.free_scale**2 * self.design.largest_basis_row(
            w
        )
        single = n * self.loss.curvature * row
        return (n * (size - 1) * whole + (n - size) * single) / (size * (n - 1))

    def _normal_product(self, v: FloatArray) -> FloatArray:
        Z = self.design.matmul(v.reshape(-1, 1))
        return self.design.rmatmul(self.design.map(np.multiply, Z, self.targets.w))[:, 0]


def _in_precision(values: FloatArray, dtype: Any) -> FloatArray:
    """Coefficients in the precision that users get."""
    rounded = values.astype(dtype, copy=False)
    if np.isfinite(rounded).all() or not np.isfinite(values).all():
        return rounded
    raise ValueError(
        f"X is in single precision, and so are the coefficients, but they go up to {np.abs(values).max():.3g}, more "
        "than single precision holds. Give X in double precision (float64), or rescale y."
    )


def _free_columns(w: FloatArray, *basis: FloatArray, scales: tuple[float, float]) -> FloatArray:
    """Columns of the unpenalised block: the basis where there is one, and the constant."""
    parts = [scales[0] * Q for Q in basis]
    if scales[1]:
        parts.append(np.full_like(w, scales[1]))
    return np.hstack(parts)


def _plus_product(Z: FloatArray, Q: FloatArray, coefficients: FloatArray) -> FloatArray:
    return Z + Q @ coefficients


def _weighted_distance(Z: FloatArray, Z_other: FloatArray, w: FloatArray) -> float:
    difference = Z_other - Z
    return float(np.sum(w * difference * difference))
