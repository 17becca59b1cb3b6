"""Dense arrays in memory: data in row or column order, single or double precision, or few rows that stand for many."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np

from .._typing import FloatArray, Handle, IndexArray
from ..norm.kernels import divide_rows, nonzero_rows
from .base import LocalDesign, PassCounter, PlainData
from .columns import DenseColumns
from .factors import CompressedData
from .statistics import SufficientStatistics

# Entries converted to double precision at a time: one megabyte, which stays in cache.
_BLOCK_ENTRIES = 1 << 17
# Rows or columns so long that fewer than the first number fit are cut, so that the second number does: products of
# single lines are slow.
_LEAST_LINES, _LINES = 4, 16
# Below this fraction of non-zero rows of B, gathering their columns beats reading all of X.
_GATHER_FRACTION = {"C": 0.1, "F": 0.4}

# Rows whose columns are gathered at once; of more rows than that, so many at a time.
_GATHER_AT_ONCE = 2048
_GATHER_ROWS = 256


class DenseDesign(LocalDesign):
    """An ndarray of shape (n_samples, n_features), never copied as a whole.

    A float32 array is converted block by block inside each product, so that sums run in double precision.
    """

    def __init__(self, X: FloatArray, passes: PassCounter | None = None, unit: float | None = None) -> None:
        super().__init__(X, passes, unit)
        self._squares: FloatArray | None = None
        self._order = "F" if X.flags.f_contiguous and not X.flags.c_contiguous else "C"

    def blocks(self, X: FloatArray | None = None) -> Iterator[tuple[slice, slice, FloatArray]]:
        """Pieces of X in the order of storage, in double precision, with their rows and columns."""
        X = self.X if X is None else X
        n, d = X.shape
        by_rows = self._order == "C"
        length, width = (n, d) if by_rows else (d, n)
        span = max(1, width if _LEAST_LINES * width <= _BLOCK_ENTRIES else _BLOCK_ENTRIES // _LINES)
        stride = max(1, _BLOCK_ENTRIES // span)
        for start in range(0, length, stride):
            piece = slice(start, min(start + stride, length))
            for first in range(0, width, span):
                across = slice(first, min(first + span, width))
                rows, columns = (piece, across) if by_rows else (across, piece)
                yield rows, columns, X[rows, columns].astype(np.float64, copy=False)

    def matmul(self, B: FloatArray, offset: FloatArray | None = None) -> Handle:
        """``X B + 1 offset^T``, over the columns with a non-zero row of ``B`` when they are few."""
        X = self.X
        support = np.flatnonzero(nonzero_rows(B))
        if len(support) <= _GATHER_FRACTION[self._order] * self.n_features:
            X, B = X[:, support], B[support]
        self.charge(X.shape[1])
        Z = self._product(X, B)
        return Z if offset is None else Z + offset

    def _product(self, X: FloatArray, B: FloatArray) -> FloatArray:
        if X.dtype == np.float64:
            return X @ B
        Z = np.zeros((X.shape[0], B.shape[1]))
        for rows, columns, block in self.blocks(X):
            Z[rows] += block @ B[columns]
        return Z

    def rmatmul(self, T: Handle) -> FloatArray:
        """``X^T T``."""
        self.charge(self.n_features)
        if self.X.dtype == np.float64:
            # The same product; by rows, BLAS is up to twice as fast with the small factor first.
            return (T.T @ self.X).T if self._order == "C" else self.X.T @ T
        C = np.zeros((self.n_features, T.shape[1]))
        for rows, columns, block in self.blocks():
            C[columns] += block.T @ T[rows]
        return C

    def column_means(self, w: Handle) -> FloatArray:
        """Weighted means, about the first row: a constant column has exactly its value as mean."""
        shift = self.X[0].astype(np.float64)
        sums = np.zeros(self.n_features)
        for rows, columns, block in self.blocks():
            sums[columns] += w[rows, 0] @ (block - shift[columns])
        return shift + sums / w.sum()

    def column_norms(self, w: Handle, center: FloatArray | None = None) -> FloatArray:
        """Weighted norms about ``center``, from the differences themselves: no cancellation."""
        uniform = float(w[0, 0]) if w.min() == w.max() else None
        if center is None and uniform is not None:
            return np.sqrt(uniform * self.column_squares())
        squares = np.zeros(self.n_features)
        for rows, columns, block in self.blocks():
            centered = block if center is None else block - center[columns]
            weighted = centered if uniform is not None else w[rows] * centered
            squares[columns] += np.einsum("ij,ij->j", weighted, centered)
        return np.sqrt(squares if uniform is None else uniform * squares)

    def column_squares(self) -> FloatArray:
        """``sum_i x_ij^2``, read once; what is not finite in a column shows here."""
        if self._squares is None:
            squares = np.zeros(self.n_features)
            for _, columns, block in self.blocks():
                squares[columns] += np.einsum("ij,ij->j", block, block)
            self._squares = squares
        return self._squares

    def restrict(self, columns: IndexArray) -> DenseDesign:
        """Copy columns, in the order of storage of X."""
        copy = self.X.T[columns].T if self._order == "F" else np.take(self.X, columns, axis=1)
        return DenseDesign(copy, self.passes, self.unit)

    def rows(self, rows: IndexArray) -> DenseDesign:
        """Copy rows."""
        return DenseDesign(self.X[rows], self.passes, self.unit * len(rows) / self.n_samples)

    def row_squares(self, mean: FloatArray | None = None, scale: FloatArray | None = None) -> FloatArray:
        """Squared norms of the rows, after centering and scaling."""
        squares = np.zeros(self.n_samples)
        for rows, columns, block in self.blocks():
            centered = block if mean is None else block - mean[columns]
            scaled = centered if scale is None else centered * scale[columns]
            squares[rows] += np.einsum("ij,ij->i", scaled, scaled)
        return squares

    def columns(self, columns: IndexArray) -> DenseColumns:
        """Copy columns; all of them in order are not copied where X is stored by columns in double precision."""
        if self._order == "F":
            everything = len(columns) == self.n_features and np.array_equal(columns, np.arange(self.n_features))
            At = self.X.T if everything else self.X.T[columns]
        else:
            At = _transposed_columns(self.X, columns)
        return DenseColumns(np.ascontiguousarray(At, dtype=np.float64), self.passes, self.unit)

    def plain_data(self) -> PlainData:
        """X itself."""
        return PlainData(self.X)

    def gram(self, left: IndexArray, right: IndexArray, w: Handle) -> FloatArray:
        """``X_left^T diag(w) X_right`` in double precision."""
        chosen = self.columns(left)
        return chosen.gram(chosen if right is left else self.columns(right), w)


class CompressedDesign(DenseDesign):
    """The small matrix R of :class:`~groupowl.designs.CompressedData`; products with it are no passes over the data.

    ``factors`` are those by which columns were multiplied, if there is no other design that remembers them.
    """

    def __init__(
        self, R: FloatArray, gram: FloatArray, x_mean: FloatArray, factors: FloatArray, passes: PassCounter
    ) -> None:
        super().__init__(R, passes, unit=0.0)
        self.known_gram = gram
        self.x_mean = x_mean
        self.factors = factors

    @classmethod
    def of(
        cls, data: CompressedData, passes: PassCounter | None = None, factors: FloatArray | None = None
    ) -> CompressedDesign:
        """Design of compressed data; ``passes`` is that of the data they were made from."""
        factors = np.ones(len(data.gram)) if factors is None else factors
        return cls(data.R, data.gram, data.x_mean, factors, PassCounter() if passes is None else passes)

    def restrict(self, columns: IndexArray) -> CompressedDesign:
        """Copy columns, and the part of the Gram matrix that belongs to them."""
        gram = self.known_gram[np.ix_(columns, columns)]
        return CompressedDesign(self.X[:, columns], gram, self.x_mean[columns], self.factors[columns], self.passes)

    def compressed(self, Y: Handle, w: Handle, *, exact: bool, center: bool = False) -> None:
        """Nothing is to be gained: what rounding took when R was made is lost."""
        return

    def input_coefficients(self, B: FloatArray, on_basis: FloatArray | None = None) -> tuple[FloatArray, FloatArray]:
        """Coefficients for the columns as they were given, and the shift that their means cause."""
        return self.factors[:, None] * B, -(self.x_mean @ B)

    @cached_property
    def column_centers(self) -> FloatArray | None:
        """The means of the columns as they were given."""
        return divide_rows(self.x_mean[:, None], self.factors)[:, 0] if self.x_mean.any() else None

    def own_coefficients(self, B: FloatArray) -> FloatArray:
        """Coefficients of the scaled columns, zero for those without variation."""
        return divide_rows(B, self.factors)

    def gram(self, left: IndexArray, right: IndexArray, w: Handle) -> FloatArray:
        """Known already; the samples have weight 1."""
        return self.known_gram[np.ix_(left, right)]


class StatisticsDesign(DenseDesign):
    """Samples that are known by their :class:`SufficientStatistics` only: they know the targets and the weights too.

    A problem of them is made from the statistics; how columns are centered is part of making it.
    """

    def __init__(self, statistics: SufficientStatistics) -> None:
        super().__init__(np.zeros((0, statistics.n_features)), unit=0.0)
        self.known_statistics = statistics
        self.shape = (statistics.n_samples, statistics.n_features)


def _transposed_columns(X: FloatArray, columns: IndexArray) -> FloatArray:
    """Columns of an array stored by rows, as rows; long ones in pieces whose transposition stays in cache."""
    n = len(X)
    if n <= _GATHER_AT_ONCE:
        return np.asarray(X.T[columns])
    At = np.empty((len(columns), n))
    for start in range(0, n, _GATHER_ROWS):
        piece = slice(start, start + _GATHER_ROWS)
        At[:, piece] = X[piece].take(columns, axis=1).T
    return At


def dense_storage(X: Any) -> FloatArray:
    """An ndarray as a design keeps it: float32 and float64 as they are, other numbers as float64."""
    return X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)
