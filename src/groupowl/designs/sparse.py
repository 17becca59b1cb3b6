"""SciPy sparse matrices, compressed by rows or by columns; never made dense."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._kernels import nonzero_rows
from .._typing import FloatArray, Handle, IndexArray
from .base import LocalDesign, PassCounter
from .columns import SPARSE_SLOWDOWN, DenseColumns, SparseColumns

# Stored entries converted to double precision at a time when the data are single precision.
_BLOCK_ENTRIES = 1 << 20
# Columns this full are faster as dense arrays.
_DENSE_FRACTION = 0.1


class SparseDesign(LocalDesign):
    """A CSR or CSC array of shape (n_samples, n_features), single or double precision."""

    def __init__(self, X: Any, passes: PassCounter | None = None, unit: float | None = None) -> None:
        super().__init__(X, passes, unit)
        self._by_columns = X.format == "csc"
        self._transpose = X.T  # the same entries; made once, which takes longer than a product with few of them

    def _blocks(self) -> Iterator[tuple[slice, slice, Any]]:
        """Pieces of X along its compressed axis, in double precision, with their rows and columns."""
        n, d = self.shape
        length = d if self._by_columns else n
        pieces = 1 + self.X.nnz // _BLOCK_ENTRIES
        stride = max(1, -(-length // pieces))
        for start in range(0, length, stride):
            piece = slice(start, min(start + stride, length))
            rows, columns = (slice(0, n), piece) if self._by_columns else (piece, slice(0, d))
            yield rows, columns, self.X[rows, columns].astype(np.float64, copy=False)

    def matmul(self, B: FloatArray, offset: FloatArray | None = None) -> Handle:
        """``X B + 1 offset^T``; by columns, over those with a non-zero row of ``B``."""
        if self._by_columns:
            support = np.flatnonzero(nonzero_rows(B))
            self.charge(len(support))
            Z = np.zeros((self.n_samples, B.shape[1]))
            for columns in np.array_split(support, 1 + self.X.nnz // _BLOCK_ENTRIES):
                Z += self.X[:, columns].astype(np.float64, copy=False) @ B[columns]
        else:
            self.charge(self.n_features)
            Z = self._row_product(B)
        return Z if offset is None else Z + offset

    def _row_product(self, B: FloatArray) -> FloatArray:
        if self.X.dtype == np.float64:
            return self.X @ B
        Z = np.empty((self.n_samples, B.shape[1]))
        for rows, _, block in self._blocks():
            Z[rows] = block @ B
        return Z

    def rmatmul(self, T: Handle) -> FloatArray:
        """``X^T T``."""
        self.charge(self.n_features)
        if self.X.dtype == np.float64:
            return self._transpose @ T
        C = np.zeros((self.n_features, T.shape[1]))
        for rows, columns, block in self._blocks():
            C[columns] += block.T @ T[rows]
        return C

    def _entries(self) -> tuple[IndexArray, IndexArray, FloatArray]:
        """Row, column and value of every stored entry, in double precision."""
        compressed = np.repeat(np.arange(len(self.X.indptr) - 1), np.diff(self.X.indptr))
        rows, columns = (self.X.indices, compressed) if self._by_columns else (compressed, self.X.indices)
        return rows, columns, self.X.data.astype(np.float64, copy=False)

    def _column_sums(self, columns: IndexArray, values: FloatArray) -> FloatArray:
        return np.bincount(columns, weights=values, minlength=self.n_features).astype(np.float64, copy=False)

    def _missing_weight(self, columns: IndexArray, weights: FloatArray, total: float) -> FloatArray:
        """Weight of the entries of each column that are not stored; exactly zero for a full column."""
        stored = np.bincount(columns, minlength=self.n_features)
        missing = np.maximum(total - self._column_sums(columns, weights), 0.0)
        return np.where(stored == self.n_samples, 0.0, missing)

    def column_means(self, w: Handle) -> FloatArray:
        """Weighted means, refined once so that they are exact up to one rounding."""
        rows, columns, values = self._entries()
        weights, total = w[rows, 0], w.sum()
        means = self._column_sums(columns, weights * values) / total
        missing = self._missing_weight(columns, weights, total)
        correction = self._column_sums(columns, weights * (values - means[columns])) - missing * means
        return means + correction / total

    def column_norms(self, w: Handle, center: FloatArray | None = None) -> FloatArray:
        """Weighted norms about ``center``; entries that are not stored count as zeros."""
        rows, columns, values = self._entries()
        weights = w[rows, 0]
        if center is None:
            return np.sqrt(self._column_sums(columns, weights * values * values))
        differences = values - center[columns]
        missing = self._missing_weight(columns, weights, w.sum())
        squares = self._column_sums(columns, weights * differences * differences) + missing * center * center
        return np.sqrt(squares)

    def restrict(self, columns: IndexArray) -> SparseDesign:
        """Copy columns."""
        return SparseDesign(self.X[:, columns], self.passes, self.unit)

    def rows(self, rows: IndexArray) -> SparseDesign:
        """Copy rows."""
        return SparseDesign(self.X[rows], self.passes, self.unit * len(rows) / self.n_samples)

    def row_squares(self, mean: FloatArray | None = None, scale: FloatArray | None = None) -> FloatArray:
        """Squared norms of the rows, after centring and scaling; entries that are not stored count as zeros."""
        rows, columns, values = self._entries()
        mean = np.zeros(self.n_features) if mean is None else mean
        scale = np.ones(self.n_features) if scale is None else scale
        # A row of zeros has the norm of the mean; each stored entry changes one term of it.
        changes = scale[columns] ** 2 * values * (values - 2.0 * mean[columns])
        squares = float(np.sum((mean * scale) ** 2)) + np.bincount(rows, weights=changes, minlength=self.n_samples)
        return np.maximum(squares, 0.0)

    @property
    def density(self) -> float:
        """Stored entries, each of which takes longer than one of a dense matrix."""
        return min(1.0, SPARSE_SLOWDOWN * self.X.nnz / (self.n_samples * self.n_features))

    def columns(self, columns: IndexArray) -> DenseColumns | SparseColumns:
        """Copy columns, as dense arrays where they are mostly full."""
        At = sp.csr_array(self.X[:, columns].T).astype(np.float64, copy=False)
        if At.nnz >= _DENSE_FRACTION * At.shape[0] * At.shape[1]:
            return DenseColumns(At.toarray(), self.passes, self.unit)
        return SparseColumns(At, self.passes, self.unit)

    def gram(self, left: IndexArray, right: IndexArray, w: Handle) -> FloatArray:
        """``X_left^T diag(w) X_right``, a small dense block."""
        chosen = self._sparse_columns(left)
        return chosen.gram(chosen if right is left else self._sparse_columns(right), w)

    def _sparse_columns(self, columns: IndexArray) -> SparseColumns:
        return SparseColumns(sp.csr_array(self.X[:, columns].T).astype(np.float64), self.passes, self.unit)
