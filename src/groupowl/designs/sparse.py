"""SciPy sparse matrices, compressed by rows or by columns, and copies of their columns; never made dense."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp

from .._typing import FloatArray, Handle, IndexArray
from ..norm.kernels import nonzero_rows
from .base import LocalDesign, PassCounter, PlainData, center_products
from .dense import DenseColumns

#: A stored entry of a sparse matrix takes as long as this many of a dense one.
SPARSE_SLOWDOWN = 5.0
# Stored entries converted to double precision at a time when the data are single precision.
_BLOCK_ENTRIES = 1 << 20
# Columns this full are faster as dense arrays.
_DENSE_FRACTION = 0.1
# A matrix by rows with no more stored entries is copied by columns when columns are needed: at most 120 megabytes.
_COPIED_ENTRIES = 10_000_000
# Below this fraction of non-zero rows of B their columns are gathered.
_GATHER_FRACTION = 0.1


class SparseDesign(LocalDesign):
    """A CSR or CSC array of shape (n_samples, n_features), single or double precision."""

    def __init__(self, X: Any, passes: PassCounter | None = None, unit: float | None = None) -> None:
        super().__init__(X, passes, unit)
        self._by_columns = X.format == "csc"
        self.density = min(1.0, SPARSE_SLOWDOWN * X.nnz / max(X.shape[0] * X.shape[1], 1))
        self._transpose = X.T  # the same entries; made once, which takes longer than a product with few of them

    @cached_property
    def _columns_first(self) -> Any:
        """X by columns where it is so or small enough for a copy: single columns of rows are a pass over X."""
        return self.X.tocsc() if not self._by_columns and self.X.nnz <= _COPIED_ENTRIES else self.X

    def _blocks(self) -> Iterator[tuple[slice, slice, Any]]:
        """Pieces of X along its compressed axis, in double precision, with their rows and columns."""
        n, d = self.shape
        if self.X.dtype == np.float64:
            yield slice(0, n), slice(0, d), self.X
            return
        length = d if self._by_columns else n
        pieces = 1 + self.X.nnz // _BLOCK_ENTRIES
        stride = max(1, -(-length // pieces))
        for start in range(0, length, stride):
            piece = slice(start, min(start + stride, length))
            rows, columns = (slice(0, n), piece) if self._by_columns else (piece, slice(0, d))
            yield rows, columns, self.X[rows, columns].astype(np.float64, copy=False)

    def matmul(self, B: FloatArray, offset: FloatArray | None = None) -> Handle:
        """``X B + 1 offset^T``; by columns, or where they are few, over those with a non-zero row of ``B``."""
        support = np.flatnonzero(nonzero_rows(B))
        few = len(support) <= _GATHER_FRACTION * self.n_features
        if len(support) == 0:
            Z = np.zeros((self.n_samples, B.shape[1]))
        elif self._by_columns or (few and self._columns_first.format == "csc"):
            self.charge(len(support))
            Z = np.zeros((self.n_samples, B.shape[1]))
            for columns in np.array_split(support, 1 + self.X.nnz // _BLOCK_ENTRIES):
                Z += self._columns_first[:, columns].astype(np.float64, copy=False) @ B[columns]
        else:
            self.charge(self.n_features)
            Z = np.empty((self.n_samples, B.shape[1]))
            for rows, _, block in self._blocks():
                Z[rows] = block @ B
        return Z if offset is None else Z + offset

    def plain_data(self) -> PlainData | None:
        """X by columns, unless a copy would be large."""
        return PlainData(self._columns_first) if self._columns_first.format == "csc" else None

    def rmatmul(self, T: Handle) -> FloatArray:
        """``X^T T``."""
        self.charge(self.n_features)
        if self.X.dtype == np.float64:
            return self._transpose @ T
        C = np.zeros((self.n_features, T.shape[1]))
        for rows, columns, block in self._blocks():
            C[columns] += block.T @ T[rows]
        return C

    def _spread(self, values: FloatArray) -> FloatArray:
        """A value per column, for each stored entry."""
        return np.repeat(values, np.diff(self.X.indptr)) if self._by_columns else values[self.X.indices]

    def _like(self, values: FloatArray) -> Any:
        """A matrix with other values in the place of the stored ones."""
        return type(self.X)((values, self.X.indices, self.X.indptr), shape=self.shape)

    def _column_sums(self, values: FloatArray, w: FloatArray) -> FloatArray:
        """Weighted sums of values in the place of the stored ones."""
        sums: FloatArray = self._like(values).T @ w[:, 0]
        return sums

    def _missing_weight(self, w: FloatArray) -> FloatArray:
        """Weight of the entries of each column that are not stored; exactly zero for a full column."""
        indptr, indices = self.X.indptr, self.X.indices
        stored = np.diff(indptr) if self._by_columns else np.bincount(indices, minlength=self.n_features)
        missing = np.maximum(w.sum() - self._column_sums(np.ones(self.X.nnz), w), 0.0)
        return np.where(stored == self.n_samples, 0.0, missing)

    def column_means(self, w: Handle) -> FloatArray:
        """Weighted means, refined once so that they are exact up to one rounding."""
        values, total = self.X.data.astype(np.float64, copy=False), w.sum()
        means = self._column_sums(values, w) / total
        correction = self._column_sums(values - self._spread(means), w) - self._missing_weight(w) * means
        return means + correction / total

    def column_norms(self, w: Handle, center: FloatArray | None = None) -> FloatArray:
        """Weighted norms about ``center``; entries that are not stored count as zeros."""
        values = self.X.data.astype(np.float64, copy=False)
        if center is None:
            return np.sqrt(self._column_sums(values * values, w))
        differences = values - self._spread(center)
        squares = self._column_sums(differences * differences, w) + self._missing_weight(w) * center * center
        return np.sqrt(squares)

    def restrict(self, columns: IndexArray) -> SparseDesign:
        """Copy columns."""
        return SparseDesign(self.X[:, columns], self.passes, self.unit)

    def rows(self, rows: IndexArray) -> SparseDesign:
        """Copy rows."""
        return SparseDesign(self.X[rows], self.passes, self.unit * len(rows) / self.n_samples)

    def row_squares(self, mean: FloatArray | None = None, scale: FloatArray | None = None) -> FloatArray:
        """Squared norms of the rows, after centering and scaling; entries that are not stored count as zeros."""
        mean = np.zeros(self.n_features) if mean is None else mean
        scale = np.ones(self.n_features) if scale is None else scale
        # A row of zeros has the norm of the mean; each stored entry changes one term of it.
        values = self.X.data.astype(np.float64, copy=False)
        changes = self._spread(scale) ** 2 * values * (values - 2.0 * self._spread(mean))
        squares = float(np.sum((mean * scale) ** 2)) + self._like(changes) @ np.ones(self.n_features)
        return np.maximum(squares, 0.0)

    def columns(self, columns: IndexArray) -> DenseColumns | SparseColumns:
        """Copy columns, as dense arrays where they are mostly full."""
        At = self._transposed(columns)
        if At.nnz >= _DENSE_FRACTION * At.shape[0] * At.shape[1]:
            return DenseColumns(At.toarray(), self.passes, self.unit)
        return SparseColumns(At, self.passes, self.unit)

    def gram(self, left: IndexArray, right: IndexArray, w: Handle) -> FloatArray:
        """``X_left^T diag(w) X_right``, a small dense block of a product of sparse columns."""
        chosen = SparseColumns(self._transposed(left), self.passes, self.unit)
        other = chosen if right is left else SparseColumns(self._transposed(right), self.passes, self.unit)
        return chosen.gram(other, w)

    def _transposed(self, columns: IndexArray) -> Any:
        return sp.csr_array(self._columns_first[:, columns].T).astype(np.float64, copy=False)


class SparseColumns:
    """Columns as the rows of a CSR array, centered and scaled implicitly; a positive ``constant`` is a last column.

    See :class:`~groupowl.designs.DenseColumns` for what the methods do.
    """

    At: Any
    unit: float
    mean: FloatArray
    inverse_scale: FloatArray
    constant: float

    def __init__(self, At: Any, passes: PassCounter, unit: float) -> None:
        self.passes = passes
        self._set(At=At, unit=unit, mean=np.zeros(At.shape[0]), inverse_scale=np.ones(At.shape[0]), constant=0.0)

    def _set(self, **values: Any) -> SparseColumns:
        self.__dict__.update(values)
        size, nnz = self.At.shape[0], self.At.nnz
        self._A = self.At.T  # the same entries
        self.n_columns = size + (self.constant > 0.0)
        # Two operations per stored entry, slower than those of a dense matrix; the centering of a dense Gram matrix.
        self.work = 2.0 * SPARSE_SLOWDOWN * nnz
        self.gram_work = self.work * nnz / self.At.shape[1] + 4.0 * size**2
        return self

    def _charge(self) -> None:
        self.passes.total += self.At.shape[0] * self.unit

    def predict(self, B: FloatArray) -> FloatArray:
        """``A B``."""
        self._charge()
        rows = self.At.shape[0]
        scaled = B[:rows] * self.inverse_scale[:, None]
        Z = np.asfortranarray(self._A @ scaled)
        Z += self.constant * B[rows:].sum(axis=0) - self.mean @ scaled
        return Z

    def correlate(self, theta: FloatArray) -> FloatArray:
        """``A^T theta``."""
        self._charge()
        sums = theta.sum(axis=0)
        C = self.inverse_scale[:, None] * (self.At @ theta - np.outer(self.mean, sums))
        return np.vstack([C, self.constant * sums]) if self.constant else C

    def gram(self, other: Any, w: FloatArray) -> FloatArray:
        """``A^T diag(w) A_other``, a small dense block."""
        self._charge()
        if other is not self:
            other._charge()
        At = self.At
        weighted = type(At)((At.data * w[At.indices, 0], At.indices, At.indptr), shape=At.shape)
        raw = (weighted @ other._A).toarray()
        if not (self.mean.any() or other.mean.any() or self.constant or other.constant):
            raw *= self.inverse_scale[:, None] * other.inverse_scale
            return raw
        total = float(w.sum())
        left, right = self.At @ w[:, 0], other.At @ w[:, 0]
        centered = center_products(raw, self.mean, left, other.mean, right, total)
        products: FloatArray = self.inverse_scale[:, None] * centered * other.inverse_scale
        with_left = self.constant * other.inverse_scale * (right - total * other.mean)
        if other.constant:
            with_right = other.constant * self.inverse_scale * (left - total * self.mean)
            products = np.column_stack([products, with_right])
            with_left = np.append(with_left, total * self.constant * other.constant)
        return np.vstack([products, with_left]) if self.constant else products

    def sampled(self, samples: IndexArray) -> SparseColumns:
        """A copy, with the means and scales of all samples."""
        return copy(self)._set(At=self.At[:, samples], unit=self.unit * len(samples) / self.At.shape[1])

    def chosen(self, columns: IndexArray) -> SparseColumns:
        """A copy, with the constant column if that is chosen."""
        rows = columns[columns < self.At.shape[0]]
        constant = self.constant if len(rows) < len(columns) else 0.0
        scale = self.inverse_scale[rows]
        return copy(self)._set(At=self.At[rows], mean=self.mean[rows], inverse_scale=scale, constant=constant)

    def norms(self, w: FloatArray) -> FloatArray:
        """Weighted norms, about the means."""
        squares = self.At.multiply(self.At) @ w[:, 0]
        centered = squares - self.mean * (2.0 * (self.At @ w[:, 0]) - self.mean * float(w.sum()))
        norms = self.inverse_scale * np.sqrt(np.maximum(centered, 0.0))
        return np.append(norms, self.constant * np.sqrt(w.sum())) if self.constant else norms

    def dense(self, chosen: IndexArray) -> FloatArray:
        """Made dense, with means and scales applied."""
        rows = chosen[chosen < self.At.shape[0]]
        dense = (self.At[rows].toarray() - self.mean[rows, None]) * self.inverse_scale[rows, None]
        constants = np.full((len(chosen) - len(rows), self.At.shape[1]), self.constant)
        return np.concatenate([dense, constants])

    def standardized(self, mean: FloatArray, inverse_scale: FloatArray) -> SparseColumns:
        """Means and scales are remembered, not applied."""
        return copy(self)._set(mean=mean, inverse_scale=inverse_scale)

    def with_constant(self, value: float) -> SparseColumns:
        """Remember the constant."""
        return copy(self)._set(constant=value)

    def with_columns(self, more: FloatArray) -> DenseColumns:
        """Made dense."""
        return DenseColumns(self.dense(np.arange(self.n_columns)), self.passes, self.unit).with_columns(more)


#: Copies of columns of either kind.
Columns: TypeAlias = DenseColumns | SparseColumns
