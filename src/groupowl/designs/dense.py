"""Dense arrays in memory: data by rows or columns, in single or double precision, and copies of their columns.

Also few rows that stand for many, and the Gram matrix of the columns that working sets ask for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from .._typing import FloatArray, Handle, IndexArray
from ..norm.kernels import divide_rows, nonzero_rows
from .base import Design, LocalDesign, PassCounter, PlainData
from .factors import CompressedData

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
# A Gram matrix that grows keeps copies of its columns up to this fraction of all, or so many entries.
_MOST_COPIES = 0.125
_FEW_ENTRIES = 1 << 19  # 4 megabytes


class DenseDesign(LocalDesign):
    """An ndarray of shape (n_samples, n_features), never copied as a whole.

    A float32 array is converted block by block inside each product, so that sums run in double precision.
    """

    def __init__(self, X: FloatArray, passes: PassCounter | None = None, unit: float | None = None) -> None:
        # Single and double precision as they are, other numbers in double precision.
        super().__init__(X if X.dtype in (np.float32, np.float64) else X.astype(np.float64), passes, unit)
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
        if X.dtype == np.float64:
            Z = X @ B
        else:
            Z = np.zeros((X.shape[0], B.shape[1]))
            for rows, columns, block in self.blocks(X):
                Z[rows] += block @ B[columns]
        return Z if offset is None else Z + offset

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
        is_plain = center is None and uniform is not None
        squares = self._squares if is_plain else None  # read once; what is not finite in a column shows here
        if squares is None:
            squares = np.zeros(self.n_features)
            for rows, columns, block in self.blocks():
                centered = block if center is None else block - center[columns]
                weighted = centered if uniform is not None else w[rows] * centered
                squares[columns] += np.einsum("ij,ij->j", weighted, centered)
            self._squares = squares if is_plain else self._squares
        return np.sqrt(squares if uniform is None else uniform * squares)

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
        elif self.n_samples <= _GATHER_AT_ONCE:
            At = self.X.T[columns]
        else:
            At = np.empty((len(columns), self.n_samples))
            for start in range(0, self.n_samples, _GATHER_ROWS):  # pieces whose transposition stays in cache
                piece = slice(start, start + _GATHER_ROWS)
                At[:, piece] = self.X[piece].take(columns, axis=1).T
        return DenseColumns(np.ascontiguousarray(At, dtype=np.float64), self.passes, self.unit)

    def plain_data(self) -> PlainData:
        """X itself."""
        return PlainData(self.X)


class DenseColumns:
    """Columns ``A`` in the layout that inner solvers want: as the rows of a contiguous array ``At``.

    Predictors and dual points are Fortran-ordered here, so that sums over the few tasks are sums of long vectors.
    """

    def __init__(self, At: FloatArray, passes: PassCounter, unit: float) -> None:
        self.At = At
        self.passes = passes
        self.unit = unit
        self.n_columns = len(At)
        #: Floating-point operations of a product with one vector, as long as those of a dense matrix take.
        self.work = 2.0 * At.size
        #: The same for the Gram matrix of all columns: half of a product of two matrices.
        self.gram_work = float(len(At)) * At.size

    def predict(self, B: FloatArray) -> FloatArray:
        """``A B``, Fortran-ordered."""
        self.passes.total += self.n_columns * self.unit
        return (B.T @ self.At).T

    def correlate(self, theta: FloatArray) -> FloatArray:
        """``A^T theta``."""
        self.passes.total += self.n_columns * self.unit
        return self.At @ theta

    def gram(self, other: Any, w: FloatArray) -> FloatArray:
        """``A^T diag(w) A_other``."""
        self.passes.total += self.n_columns * self.unit
        weights = w[:, 0]
        if other is self:  # a matrix times its own transpose takes half the time
            root = self.At if np.all(weights == 1.0) else self.At * np.sqrt(weights)
            return root @ root.T
        self.passes.total += other.n_columns * other.unit
        return (self.At * weights) @ other.At.T

    def sampled(self, samples: IndexArray) -> DenseColumns:
        """The columns at some of the samples."""
        return DenseColumns(self.At[:, samples], self.passes, self.unit * len(samples) / self.At.shape[1])

    def chosen(self, columns: IndexArray) -> DenseColumns:
        """Some of the columns, ascending."""
        return DenseColumns(self.At[columns], self.passes, self.unit)

    def norms(self, w: FloatArray) -> FloatArray:
        """``sqrt(sum_i w_i a_ij^2)`` of each column."""
        root = np.sqrt(w[:, 0])
        return np.array([np.linalg.norm(column * root) for column in self.At])

    def dense(self, chosen: IndexArray) -> FloatArray:
        """Some of the columns as the rows of an array, shape (len(chosen), n_samples)."""
        return self.At[chosen]

    def standardized(self, mean: FloatArray, inverse_scale: FloatArray) -> DenseColumns:
        """The columns less their means, times a factor each."""
        At = self.At - mean[:, None]
        At *= inverse_scale[:, None]
        return DenseColumns(At, self.passes, self.unit)

    def with_columns(self, more: FloatArray) -> DenseColumns:
        """The columns of an array (n_samples, n_more) after these."""
        return DenseColumns(np.concatenate([self.At, more.T]), self.passes, self.unit)

    def with_constant(self, value: float) -> DenseColumns:
        """One more column, constant."""
        return self.with_columns(np.full((self.At.shape[1], 1), value))


class GramCache:
    """Gram matrix of all columns ever asked for; only what is new is computed.

    The same cache serves every round of a working set, every weight sequence on a path, and problems restricted to
    some of the columns.
    """

    def __init__(self, design: Design, w: Handle) -> None:
        self.design = design
        self.w = w
        self.position = np.full(design.n_features, -1, dtype=np.intp)
        self.known = np.zeros(0, dtype=np.intp)
        self.storage = np.empty((0, 0))
        self.copies: list[DenseColumns] | None = []  # of the known columns, while they are few

    def block(self, columns: IndexArray) -> FloatArray:
        """``X_c^T diag(w) X_c`` for these columns, a copy."""
        new = columns[self.position[columns] < 0]
        if len(new):
            known = np.concatenate([self.known, new])
            old, size = len(self.known), len(known)
            if size > len(self.storage):
                larger = np.empty((max(size, 2 * old),) * 2)
                larger[:old, :old] = self.storage[:old, :old]
                self.storage = larger
            rows = self.storage[old:size, :size]
            design = self.design
            few = size <= max(_MOST_COPIES * design.n_features, _FEW_ENTRIES / design.n_samples)
            # From copies as long as those are dense and few.
            copy = design.columns(new) if self.copies is not None and few and not design.keeps_columns else None
            if self.copies is not None and isinstance(copy, DenseColumns):
                self.copies.append(copy)
                np.concatenate([copy.gram(other, self.w) for other in self.copies], axis=1, out=rows)
            else:
                self.copies = None
                rows[:] = design.gram(new, new if old == 0 else known, self.w)
            self.storage[:old, old:size] = rows[:, :old].T
            self.known = known
            self.position[new] = np.arange(old, size)
        positions = self.position[columns]
        return self.storage[np.ix_(positions, positions)]


class CompressedDesign(DenseDesign):
    """The small matrix R of :class:`~groupowl.designs.CompressedData`; products with it are no passes over the data.

    ``passes`` is that of the data it was made from. ``factors`` are those by which columns were multiplied, if there
    is no other design that remembers them.
    """

    def __init__(self, data: CompressedData, passes: PassCounter | None = None, factors: Any = None) -> None:
        super().__init__(data.R, passes, unit=0.0)
        self.data = data
        self.factors: FloatArray = np.ones(self.n_features) if factors is None else factors
        self.inverse_scale = self.factors
        self.mean = divide_rows(data.x_mean[:, None], self.factors)[:, 0]

    def restrict(self, columns: IndexArray) -> CompressedDesign:
        """Copy columns, and the part of the Gram matrix that belongs to them."""
        gram = self.data.gram[np.ix_(columns, columns)]
        data = replace(self.data, R=self.X[:, columns], gram=gram, x_mean=self.data.x_mean[columns])
        return CompressedDesign(data, self.passes, self.factors[columns])

    def compressed(self, Y: Handle, w: Handle, *, exact: bool, center: bool = False) -> None:
        """Nothing is to be gained: what rounding took when R was made is lost."""
        return

    def gram(self, left: IndexArray, right: IndexArray, w: Handle) -> FloatArray:
        """Known already; the samples have weight 1."""
        return self.data.gram[np.ix_(left, right)]
