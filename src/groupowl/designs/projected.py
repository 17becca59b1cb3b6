"""Unpenalized columns: an orthonormal basis of them, and the other columns with that basis projected out."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from .._typing import BoolArray, FloatArray, Handle, IndexArray
from ..norm.kernels import SMALLEST_NORM, row_norms
from .base import Design, Sum, WrappedDesign, check_overflow, check_underflow, rounding_rtol
from .columns import Columns, DenseColumns
from .factors import CompressedData

# Columns of which less than this is left by the projection are looked at again, one by one.
_SUSPECT = 1e-5
# Working sets of sparse data are made dense up to so many entries (a gigabyte); larger ones stay with the design.
_MOST_ENTRIES = 1 << 27

NO_COLUMNS: IndexArray = np.zeros(0, dtype=np.intp)


@dataclass(frozen=True, eq=False)
class Basis:
    """Orthonormal basis of the unpenalized columns.

    Attributes
    ----------
    Q : handle of shape (n_samples, rank)
        ``Q = X_U mixing`` with ``Q^T diag(w) Q = I``.
    w : handle
        The weights in which it is orthonormal.
    columns : ndarray of int
        Columns U.
    mixing : ndarray of shape (n_columns, rank)
    condition : float
        Error of the basis relative to that of the columns.
    explained : ndarray of int
        Columns that became zeros because the basis explains all of them but rounding.
    """

    Q: Handle
    w: Handle
    columns: IndexArray
    mixing: FloatArray
    condition: float = 1.0
    explained: IndexArray = field(default_factory=lambda: NO_COLUMNS)

    @property
    def rank(self) -> int:
        """Columns of Q."""
        return self.mixing.shape[1]


class ProjectedDesign(WrappedDesign):
    """``X - Q L`` with ``L = Q^T diag(w) X``: what the span of the unpenalized columns does not explain of X.

    The unpenalized columns themselves become exact zeros. Nothing is formed but the basis, so that sparse data stay
    sparse.

    Parameters
    ----------
    base : Design
        X, centered where there is an intercept: the basis is then orthogonal to the constant.
    basis : Basis
        Its columns are those of this design; empty where it was restricted to some of its columns.
    loadings : ndarray of shape (rank, n_features)
        L, with that of the unpenalized columns.
    vanishing : ndarray of bool of shape (n_features,)
        Columns in the span of Q, unpenalized or not.
    """

    def __init__(self, base: Design, basis: Basis, loadings: FloatArray, vanishing: BoolArray) -> None:
        self.base = base
        self.basis = basis
        self.loadings = loadings
        self.vanishing = vanishing
        self.shape, self.dtype = base.shape, base.dtype
        self.passes, self.unit = base.passes, base.unit
        self.treated_as_constant = base.treated_as_constant

    @cached_property
    def _kept(self) -> FloatArray:
        return (~self.vanishing).astype(np.float64)[:, None]

    def matmul(self, B: FloatArray, offset: FloatArray | None = None) -> Handle:
        """``X B`` of the base, less its part in the span of the basis."""
        B = B * self._kept
        product = partial(_minus_product, coefficients=self.loadings @ B)
        return self.base.map(product, self.base.matmul(B, offset), self.basis.Q)

    def rmatmul(self, T: Handle) -> FloatArray:
        """``X^T T`` of the base, less the loadings times ``Q^T T``."""
        return self.evaluate(T)[0]

    def evaluate(self, T: Handle, *sums: Sum) -> tuple[FloatArray, list[Any]]:
        """``X^T T`` as :meth:`rmatmul`, with ``Q^T T`` among the other sums."""
        C, (explained, *others) = self.base.evaluate(T, (products, self.basis.Q, T), *sums)
        return self._kept * (C - self.loadings.T @ explained), others

    def column_means(self, w: Handle) -> FloatArray:
        """Weighted mean of each column."""
        total = float(self.base.reduce(np.sum, w))
        return self.rmatmul(w)[:, 0] / total

    def column_norms(self, w: Handle, center: FloatArray | None = None) -> FloatArray:
        """Weighted norms, by Pythagoras where that does not cancel, about ``center``."""
        whole = self.base.column_norms(w)
        squares = whole**2 - self._explained_squares(w)
        suspects = np.flatnonzero((squares < _SUSPECT * whole**2) & ~self.vanishing)
        if len(suspects):
            squares[suspects] = self._exact_squares(suspects, w)
        squares = np.where(self.vanishing, 0.0, np.maximum(squares, 0.0))
        if center is not None:
            total = float(self.base.reduce(np.sum, w))
            squares = np.maximum(squares + center * total * (center - 2.0 * self.column_means(w)), 0.0)
        return np.sqrt(squares)

    def _explained_squares(self, w: Handle) -> FloatArray:
        """What the projection takes off the squared norms, in the weights of the basis or in others."""
        L = self.loadings
        if w is self.basis.w:
            return np.einsum("rj,rj->j", L, L)
        weighted = self.base.map(np.multiply, self.basis.Q, w)
        cross, (square,) = self.base.evaluate(weighted, (products, self.basis.Q, weighted))
        return np.einsum("rj,jr->j", L, 2.0 * cross) - np.einsum("rj,rj->j", L, square @ L)

    def _exact_squares(self, columns: IndexArray, w: Handle) -> FloatArray:
        identity = np.eye(len(columns))
        product = partial(_minus_product, coefficients=self.loadings[:, columns])
        rest = self.base.map(product, self.base.restrict(columns).matmul(identity), self.basis.Q)
        return self.base.reduce(_weighted_squares, rest, w)

    def restrict(self, columns: IndexArray) -> ProjectedDesign:
        """Copy columns of the base; the basis stays."""
        return self._restricted(self.base.restrict(columns), columns, self.basis.Q)

    def brought_near(self, columns: IndexArray, n_tasks: int) -> Design | None:
        """Columns of the base, and the basis."""
        base = self.base.brought_near(columns, n_tasks)
        return None if base is None else self._restricted(base, columns, self.base.gather(self.basis.Q))

    def _restricted(self, base: Design, columns: IndexArray, Q: Handle) -> ProjectedDesign:
        w = self.basis.w if Q is self.basis.Q else None
        basis = replace(self.basis, Q=Q, w=w, columns=NO_COLUMNS)  # only the whole design knows where they are
        return ProjectedDesign(base, basis, self.loadings[:, columns], self.vanishing[columns])

    def rows(self, rows: IndexArray) -> ProjectedDesign:
        """Copy rows of the base and of the basis."""
        basis = replace(self.basis, Q=self.base.select(self.basis.Q, rows), w=None)
        return ProjectedDesign(self.base.rows(rows), basis, self.loadings, self.vanishing)

    def largest_row(
        self, w: Handle, constant: float = 0.0, mean: FloatArray | None = None, scale: FloatArray | None = None
    ) -> float:
        """A bound on the largest weighted squared norm of a row, from those of the base and of the basis."""
        if mean is not None or scale is not None:
            raise ValueError("a projected design takes no mean or scale: standardize its base.")
        spread = float(np.linalg.norm(self.loadings, 2)) ** 2 if self.loadings.size else 0.0
        return 2.0 * (self.base.largest_row(w, constant) + spread * largest_square(self.base, self.basis.Q, w))

    def columns(self, columns: IndexArray) -> Columns | None:
        """Dense copies, with the basis projected out."""
        if self.density < 1.0 and len(columns) * self.n_samples > _MOST_ENTRIES:
            return None
        base = self.base.columns(columns)
        if base is None:
            return None
        At = base.dense(np.arange(len(columns)))
        At -= self.loadings[:, columns].T @ np.asarray(self.basis.Q).T
        At[self.vanishing[columns]] = 0.0
        return DenseColumns(At, self.passes, self.unit)

    def gram(self, left: IndexArray, right: IndexArray, w: Handle) -> FloatArray:
        """Products of the base less those of the loadings, where the basis is orthonormal; else all four products."""
        raw, L_left, L_right = self.base.gram(left, right, w), self.loadings[:, left], self.loadings[:, right]
        if w is self.basis.w:
            raw = raw - L_left.T @ L_right
        else:
            weighted = self.base.map(np.multiply, self.basis.Q, w)
            loadings, (square,) = self.base.evaluate(weighted, (products, self.basis.Q, weighted))
            raw = raw - L_left.T @ loadings[right].T - loadings[left] @ L_right + L_left.T @ square @ L_right
        return self._kept[left] * raw * self._kept[right].T

    def compressed(self, Y: Handle, w: Handle, *, exact: bool, center: bool = False) -> CompressedData | None:
        """Compressed data of the base, by QR, with the unpenalized columns projected out of the few samples."""
        data = self.base.compressed(Y, w, exact=True, center=center)
        if data is None:
            return None
        Q = data.R[:, self.basis.columns] @ self.basis.mixing
        R = (data.R - Q @ (Q.T @ data.R)) * self._kept.T
        R -= Q @ (Q.T @ R)
        return replace(data, R=R, gram=R.T @ R, x_size=data.x_size * self._kept[:, 0])

    def input_coefficients(self, B: FloatArray, on_basis: FloatArray | None = None) -> tuple[FloatArray, FloatArray]:
        """Coefficients for the base's columns; ``on_basis`` are those of the basis."""
        B = B * self._kept
        own = -(self.loadings @ B) if on_basis is None else on_basis - self.loadings @ B
        B[self.basis.columns] = self.basis.mixing @ own
        return self.base.input_coefficients(B)

    @property
    def column_centers(self) -> FloatArray | None:
        """As the base has them."""
        return self.base.column_centers

    def own_coefficients(self, B: FloatArray) -> FloatArray:
        """Coefficients of the projected columns."""
        return self.base.own_coefficients(B) * self._kept

    def basis_coefficients(self, B: FloatArray) -> tuple[FloatArray, float]:
        """What ``X B`` has in the span of the basis, as coefficients, and a bound on it whatever cancels."""
        whole = self.base.own_coefficients(B)
        return self.loadings @ whole, float(row_norms(self.loadings.T) @ row_norms(whole))

    def rounding_norms(self, norms: FloatArray, total_weight: float) -> FloatArray:
        """Norms before the projection: products cancel that much."""
        explained = self.basis.condition**2 * np.einsum("rj,rj->j", self.loadings, self.loadings)
        whole = np.sqrt(norms**2 + explained)
        return np.where(self.vanishing, 0.0, self.base.rounding_norms(whole, total_weight))


def project_out(design: Design, columns: IndexArray, w: Handle) -> ProjectedDesign:
    """Wrap ``design`` so that these columns are unpenalized."""
    whole = design.column_norms(w)
    check_overflow(whole)
    check_underflow(design, columns[whole[columns] < SMALLEST_NORM])
    Q, mixing = design.orthonormal(design.restrict(columns).matmul(np.eye(len(columns))), w)
    loadings = design.rmatmul(design.map(np.multiply, Q, w)).T
    vanishing = np.zeros(design.n_features, dtype=bool)
    vanishing[columns] = True
    # How far errors of the unpenalized columns, relative to their norms, can turn the basis.
    condition = float(np.linalg.norm(whole[columns, None] * mixing, 2)) if mixing.size else 1.0
    basis = Basis(Q, w, columns, mixing, condition)
    left = ProjectedDesign(design, basis, loadings, vanishing).column_norms(w)
    vanishing |= left <= rounding_rtol(design.n_samples) * whole
    explained = np.flatnonzero(vanishing & (loadings != 0.0).any(axis=0))
    # Unpenalized columns that are not part of the basis are explained by the others.
    explained = np.setdiff1d(explained, columns[mixing.any(axis=1)])
    return ProjectedDesign(design, replace(basis, explained=explained), loadings, vanishing)


def products(left: FloatArray, right: FloatArray) -> FloatArray:
    """``left^T right``, a sum over samples."""
    return left.T @ right


def _minus_product(Z: FloatArray, Q: FloatArray, coefficients: FloatArray) -> FloatArray:
    return Z - Q @ coefficients


def _weighted_squares(U: FloatArray, w: FloatArray) -> FloatArray:
    return (w * U * U).sum(axis=0)


def largest_square(space: Design, Q: Handle, w: Handle) -> float:
    """Largest ``w_i ||q_i||^2`` of the rows of Q; blocks of rows may count for more."""
    return float(space.reduce(_largest_square, Q, w))


def _largest_square(Q: FloatArray, w: FloatArray) -> float:
    """Largest ``w_i ||q_i||^2`` of some rows: added up over blocks it is still a bound."""
    return float(np.max(w.max(axis=1) * np.einsum("ir,ir->i", Q, Q), initial=0.0))
