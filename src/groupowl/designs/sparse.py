"""SciPy sparse matrices, compressed by rows or by columns; never made dense."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._typing import FloatArray, Handle, IndexArray
from ..norm.kernels import nonzero_rows
from .base import LocalDesign, PassCounter, PlainData
from .columns import SPARSE_SLOWDOWN, DenseColumns, SparseColumns

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
        self._transpose = X.T  # the same entries; made once, which takes longer than a product with few of them

    @cached_property
    def _columns_first(self) -> Any:
        """X by columns where it is so or small enough for a copy: single columns of rows are a pass over X."""
        return self.X.tocsc() if not self._by_columns and self.X.nnz <= _COPIED_ENTRIES else self.X

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
            Z = self._row_product(B)
        return Z if offset is None else Z + offset

    def _row_product(self, B: FloatArray) -> FloatArray:
        if self.X.dtype == np.float64:
            return self.X @ B
        Z = np.empty((self.n_samples, B.shape[1]))
        for rows, _, block in self._blocks():
            Z[rows] = block @ B
        return Z

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

    @property
    def _values(self) -> FloatArray:
        """Stored entries in double precision."""
        return np.asarray(self.X.data, dtype=np.float64)

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
        values, total = self._values, w.sum()
        means = self._column_sums(values, w) / total
        correction = self._column_sums(values - self._spread(means), w) - self._missing_weight(w) * means
        return means + correction / total

    def column_norms(self, w: Handle, center: FloatArray | None = None) -> FloatArray:
        """Weighted norms about ``center``; entries that are not stored count as zeros."""
        values = self._values
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
        values = self._values
        changes = self._spread(scale) ** 2 * values * (values - 2.0 * self._spread(mean))
        squares = float(np.sum((mean * scale) ** 2)) + self._like(changes) @ np.ones(self.n_features)
        return np.maximum(squares, 0.0)

    @property
    def density(self) -> float:
        """Stored entries, each of which takes longer than one of a dense matrix."""
        return min(1.0, SPARSE_SLOWDOWN * self.X.nnz / max(self.n_samples * self.n_features, 1))

    def columns(self, columns: IndexArray) -> DenseColumns | SparseColumns:
        """Copy columns, as dense arrays where they are mostly full."""
        At = sp.csr_array(self._columns_first[:, columns].T).astype(np.float64, copy=False)
        if At.nnz >= _DENSE_FRACTION * At.shape[0] * At.shape[1]:
            return DenseColumns(At.toarray(), self.passes, self.unit)
        return SparseColumns(At, self.passes, self.unit)

    def gram(self, left: IndexArray, right: IndexArray, w: Handle) -> FloatArray:
        """``X_left^T diag(w) X_right``, a small dense block."""
        chosen = self._sparse_columns(left)
        return chosen.gram(chosen if right is left else self._sparse_columns(right), w)

    def _sparse_columns(self, columns: IndexArray) -> SparseColumns:
        return SparseColumns(sp.csr_array(self._columns_first[:, columns].T).astype(np.float64), self.passes, self.unit)
