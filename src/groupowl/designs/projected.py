"""Unpenalised columns: an orthonormal basis of them, and the other columns with that basis projected out."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from .._kernels import SMALLEST_NORM, unit_norms
from .._typing import BoolArray, FloatArray, Handle, IndexArray
from ..gram import CompressedData
from .base import Design, Sum, WrappedDesign, check_overflow, check_underflow, rounding_rtol
from .columns import Columns, DenseColumns

# Columns of which less than this is left by the projection are looked at again, one by one.
_SUSPECT = 1e-5
# Working sets of sparse data are made dense up to so many entries (a gigabyte); larger ones stay with the design.
_MOST_ENTRIES = 1 << 27


class ProjectedDesign(WrappedDesign):
    """``X - Q L`` with ``L = Q^T diag(w) X``: what the span of the unpenalised columns does not explain of X.

    The unpenalised columns themselves become exact zeros. Nothing is formed but the basis, so that sparse data stay
    sparse.

    Parameters
    ----------
    base : Design
        X, centred where there is an intercept: the basis is then orthogonal to the constant.
    basis : handle of shape (n_samples, rank)
        Q with ``Q^T diag(w) Q = I``.
    mixing : ndarray of shape (n_unpenalised, rank)
        ``Q = X_U mixing``.
    loadings : ndarray of shape (rank, n_features)
        L, with that of the unpenalised columns.
    vanishing : ndarray of bool of shape (n_features,)
        Columns in the span of Q, unpenalised or not.
    unpenalised : ndarray of int
        Columns U.
    condition : float
        Error of the basis relative to that of the unpenalised columns.
    weights : handle of shape (n_samples, 1)
        The weights w in which the basis is orthonormal.
    """

    def __init__(
        self,
        base: Design,
        basis: Handle,
        mixing: FloatArray,
        loadings: FloatArray,
        vanishing: BoolArray,
        unpenalised: IndexArray,
        condition: float = 1.0,
        weights: Handle = None,
    ) -> None:
        self.base = base
        self.weights = weights
        self.free_basis = basis
        self.mixing = mixing
        self.loadings = loadings
        self.vanishing = vanishing
        self.free_columns = unpenalised
        self.free_condition = condition
        self.shape, self.dtype = base.shape, base.dtype
        self.passes, self.unit = base.passes, base.unit
        self.treated_as_constant = base.treated_as_constant
        explained = np.flatnonzero(vanishing & (loadings != 0.0).any(axis=0))
        # Unpenalized columns that are not part of the basis are explained by the others.
        self.treated_as_explained = np.setdiff1d(explained, unpenalised[mixing.any(axis=1)] if len(unpenalised) else [])

    @property
    def n_free_directions(self) -> int:
        """Columns of the basis."""
        return len(self.loadings)

    @cached_property
    def _kept(self) -> FloatArray:
        return (~self.vanishing).astype(np.float64)[:, None]

    def matmul(self, B: FloatArray, offset: FloatArray | None = None) -> Handle:
        """``X B`` of the base, less its part in the span of the basis."""
        B = B * self._kept
        product = partial(_minus_product, coefficients=self.loadings @ B)
        return self.base.map(product, self.base.matmul(B, offset), self.free_basis)

    def rmatmul(self, T: Handle) -> FloatArray:
        """``X^T T`` of the base, less the loadings times ``Q^T T``."""
        return self.evaluate(T)[0]

    def evaluate(self, T: Handle, *sums: Sum) -> tuple[FloatArray, list[Any]]:
        """``X^T T`` as :meth:`rmatmul`, with ``Q^T T`` among the other sums."""
        C, (explained, *others) = self.base.evaluate(T, (products, self.free_basis, T), *sums)
        return self._kept * (C - self.loadings.T @ explained), others

    def column_means(self, w: Handle) -> FloatArray:
        """Weighted mean of each column."""
        total = float(self.base.reduce(np.sum, w))
        return self.rmatmul(w)[:, 0] / total

    def column_norms(self, w: Handle, center: FloatArray | None = None) -> FloatArray:
        """Weighted norms, by Pythagoras where that does not cancel, about ``center``."""
        whole = self.base.column_norms(w)
        squares = whole**2 - np.einsum("rj,rj->j", self.loadings, self.loadings)
        suspects = np.flatnonzero((squares < _SUSPECT * whole**2) & ~self.vanishing)
        if len(suspects):
            squares[suspects] = self._exact_squares(suspects, w)
        squares = np.where(self.vanishing, 0.0, np.maximum(squares, 0.0))
        if center is not None:
            total = float(self.base.reduce(np.sum, w))
            squares = np.maximum(squares + center * total * (center - 2.0 * self.column_means(w)), 0.0)
        return np.sqrt(squares)

    def _exact_squares(self, columns: IndexArray, w: Handle) -> FloatArray:
        identity = np.eye(len(columns))
        product = partial(_minus_product, coefficients=self.loadings[:, columns])
        rest = self.base.map(product, self.base.restrict(columns).matmul(identity), self.free_basis)
        return self.base.reduce(_weighted_squares, rest, w)

    def restrict(self, columns: IndexArray) -> ProjectedDesign:
        """Copy columns of the base; the basis stays."""
        return self._restricted(self.base.restrict(columns), columns, self.free_basis)

    def brought_near(self, columns: IndexArray, n_tasks: int) -> Design | None:
        """Columns of the base, and the basis."""
        base = self.base.brought_near(columns, n_tasks)
        return None if base is None else self._restricted(base, columns, self.base.gather(self.free_basis))

    def _restricted(self, base: Design, columns: IndexArray, basis: Handle) -> ProjectedDesign:
        left = np.zeros(0, dtype=np.intp)  # only the whole design knows where the unpenalised columns are
        loadings, gone = self.loadings[:, columns], self.vanishing[columns]
        weights = self.weights if basis is self.free_basis else None
        return ProjectedDesign(base, basis, self.mixing, loadings, gone, left, self.free_condition, weights)

    def rows(self, rows: IndexArray) -> ProjectedDesign:
        """Copy rows of the base and of the basis."""
        basis = self.base.select(self.free_basis, rows)
        parts = self.mixing, self.loadings, self.vanishing, self.free_columns, self.free_condition
        return ProjectedDesign(self.base.rows(rows), basis, *parts)

    def largest_row(
        self, w: Handle, constant: float = 0.0, mean: FloatArray | None = None, scale: FloatArray | None = None
    ) -> float:
        """A bound on the largest weighted squared norm of a row, from those of the base and of the basis."""
        if mean is not None or scale is not None:
            raise ValueError("a projected design takes no mean or scale: standardise its base.")
        spread = float(np.linalg.norm(self.loadings, 2)) ** 2 if self.loadings.size else 0.0
        return 2.0 * (self.base.largest_row(w, constant) + spread * self.largest_basis_row(w))

    def largest_basis_row(self, w: Handle) -> float:
        """Largest weighted squared norm of a row of the basis; blocks of rows may count for more."""
        return float(self.base.reduce(_largest_square, self.free_basis, w))

    def columns(self, columns: IndexArray) -> Columns | None:
        """Dense copies, with the basis projected out."""
        if self.density < 1.0 and len(columns) * self.n_samples > _MOST_ENTRIES:
            return None
        base = self.base.columns(columns)
        if base is None:
            return None
        At = base.dense(np.arange(len(columns)))
        At -= self.loadings[:, columns].T @ np.asarray(self.free_basis).T
        At[self.vanishing[columns]] = 0.0
        return DenseColumns(At, self.passes, self.unit)

    def gram(self, left: IndexArray, right: IndexArray, w: Handle) -> FloatArray:
        """Products of the base less those of the loadings, where the basis is orthonormal; else all four products."""
        raw, L_left, L_right = self.base.gram(left, right, w), self.loadings[:, left], self.loadings[:, right]
        if w is self.weights:
            raw = raw - L_left.T @ L_right
        else:
            weighted = self.base.map(np.multiply, self.free_basis, w)
            loadings, (square,) = self.base.evaluate(weighted, (products, self.free_basis, weighted))
            raw = raw - L_left.T @ loadings[right].T - loadings[left] @ L_right + L_left.T @ square @ L_right
        return self._kept[left] * raw * self._kept[right].T

    def compressed(self, Y: Handle, w: Handle, *, exact: bool, center: bool = False) -> CompressedData | None:
        """Compressed data of the base, by QR, with the unpenalised columns projected out of the few samples."""
        data = self.base.compressed(Y, w, exact=True, center=center)
        if data is None:
            return None
        Q = data.R[:, self.free_columns] @ self.mixing
        R = (data.R - Q @ (Q.T @ data.R)) * self._kept.T
        R -= Q @ (Q.T @ R)
        return replace(data, R=R, gram=R.T @ R, x_size=data.x_size * self._kept[:, 0])

    def input_coefficients(self, B: FloatArray, free: FloatArray | None = None) -> tuple[FloatArray, FloatArray]:
        """Coefficients for the base's columns; ``free`` are those of the basis."""
        B = B * self._kept
        own = -(self.loadings @ B) if free is None else free - self.loadings @ B
        B[self.free_columns] = self.mixing @ own
        return self.base.input_coefficients(B)

    @property
    def column_centers(self) -> FloatArray | None:
        """As the base has them."""
        return self.base.column_centers

    def basis_reach(self, B: FloatArray) -> float:
        """What the columns explain of the span of the basis, whatever cancels."""
        whole, _ = self.base.own_coefficients(B)
        return float(unit_norms(self.loadings.T) @ unit_norms(whole))

    def own_coefficients(self, B: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Coefficients of the projected columns and of the basis."""
        whole, _ = self.base.own_coefficients(B)
        return whole * self._kept, self.loadings @ whole

    def rounding_norms(self, norms: FloatArray, total_weight: float) -> FloatArray:
        """Norms before the projection: products cancel that much."""
        explained = self.free_condition**2 * np.einsum("rj,rj->j", self.loadings, self.loadings)
        whole = np.sqrt(norms**2 + explained)
        return np.where(self.vanishing, 0.0, self.base.rounding_norms(whole, total_weight))


def project_out(design: Design, columns: IndexArray, w: Handle) -> Design:
    """Wrap ``design`` so that these columns are unpenalised; as it is where there are none."""
    if len(columns) == 0:
        return design
    whole = design.column_norms(w)
    check_overflow(whole)
    check_underflow(design, columns[whole[columns] < SMALLEST_NORM])
    basis, mixing = design.orthonormal(design.restrict(columns).matmul(np.eye(len(columns))), w)
    loadings = design.rmatmul(design.map(np.multiply, basis, w)).T
    vanishing = np.zeros(design.n_features, dtype=bool)
    vanishing[columns] = True
    # How far errors of the unpenalised columns, relative to their norms, can turn the basis.
    condition = float(np.linalg.norm(whole[columns, None] * mixing, 2)) if mixing.size else 1.0
    projected = ProjectedDesign(design, basis, mixing, loadings, vanishing, columns, condition, w)
    left = projected.column_norms(w)
    vanishing = vanishing | (left <= rounding_rtol(design.n_samples) * whole)
    return ProjectedDesign(design, basis, mixing, loadings, vanishing, columns, condition, w)


def products(left: FloatArray, right: FloatArray) -> FloatArray:
    """``left^T right``, a sum over samples."""
    return left.T @ right


def _minus_product(Z: FloatArray, Q: FloatArray, coefficients: FloatArray) -> FloatArray:
    return Z - Q @ coefficients


def _weighted_squares(U: FloatArray, w: FloatArray) -> FloatArray:
    return (w * U * U).sum(axis=0)


def _largest_square(Q: FloatArray, w: FloatArray) -> float:
    """Largest ``w_i ||q_i||^2`` of some rows: added up over blocks it is still a bound."""
    return float(np.max(w[:, 0] * np.einsum("ir,ir->i", Q, Q), initial=0.0))
