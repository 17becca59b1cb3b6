"""Dense arrays in memory: data by rows or columns, in single or double precision, and copies of their columns.

Also few rows that stand for many, and the Gram matrix of the columns that working sets ask for.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any, Self

import numpy as np

from .._typing import FloatArray, Handle, IndexArray
from .base import ColumnMoments, Design, LocalDesign, PassCounter, PlainData

# Entries converted to double precision at a time: one megabyte, which stays in cache.
_BLOCK_ENTRIES = 1 << 17
# Rows or columns so long that fewer than the first number fit are cut, so that the second number does: products of
# single lines are slow.
_LEAST_LINES, _LINES = 4, 16
# Below this fraction of non-zero rows of B, gathering their columns beats reading all of X.
_GATHER_FRACTION = {"C": 0.25, "F": 0.4}
# Rows whose columns are gathered at a time.
_GATHER_ROWS = 256


# Where squares about the mean are at least this part of all squares, their difference has nearly all digits.
_LEAST_VARIATION = 0.5
# With more columns than this part where it is not so, these are not copied.
_MOST_OTHERS = 0.25


class DenseDesign(LocalDesign):
    """An ndarray of shape (n_samples, n_features), never copied as a whole.

    A float32 array is converted block by block inside each product, so that sums run in double precision.
    """

    def __init__(self, X: FloatArray, passes: PassCounter | None = None, unit: float | None = None) -> None:
        # Single and double precision as they are, other numbers in double precision.
        super().__init__(X if X.dtype in (np.float32, np.float64) else X.astype(np.float64), passes, unit)
        self._order = "F" if X.flags.f_contiguous and not X.flags.c_contiguous else "C"

    def blocks(self, X: FloatArray | None = None) -> Iterator[tuple[slice, slice, FloatArray]]:
        """In the order of storage."""
        X = self.X if X is None else X
        n, d = X.shape
        by_rows = self._order == "C"
        length, width = (n, d) if by_rows else (d, n)
        span = max(1, width if _LEAST_LINES * width <= _BLOCK_ENTRIES else _BLOCK_ENTRIES // _LINES)
        stride = max(1, _BLOCK_ENTRIES // span)
        for start in range(0, length, stride):
            for first in range(0, width, span):
                piece, across = slice(start, start + stride), slice(first, first + span)
                rows, columns = (piece, across) if by_rows else (across, piece)
                yield rows, columns, X[rows, columns].astype(np.float64, copy=False)

    def gathered(self, support: IndexArray) -> FloatArray | None:
        is_faster = len(support) <= _GATHER_FRACTION[self._order] * self.n_features
        if not is_faster:
            return None
        # Of a slice it would make a whole copy first.
        return self.X.take(support, axis=1) if self.X.flags.c_contiguous else self.X[:, support]

    def compute_moments(self, w: Handle) -> ColumnMoments:
        """From one product and the squares of the columns, for equal weights and columns whose means do not cancel."""
        if not 0.0 < w.min() == w.max():
            return self._moments_in_two_passes(w)
        total, squares = float(w.sum()), float(w[0, 0]) * self.squares
        mean = self.transposed(w)[:, 0] / total
        centered = squares - total * mean * mean
        others = np.flatnonzero(~(centered >= _LEAST_VARIATION * squares))  # those that are not finite among them
        if len(others) > _MOST_OTHERS * self.n_features:
            return self._moments_in_two_passes(w)
        rest = np.zeros_like(mean)
        if len(others):
            exact = self.restrict(others)._moments_in_two_passes(w)
            mean[others], rest[others], centered[others] = exact.mean, exact.rest, exact.squares
        return ColumnMoments(total, mean, rest, centered)

    def _moments_in_two_passes(self, w: Handle) -> ColumnMoments:
        """About the first row, then about the means: a constant column has exactly its value as mean."""
        first, total = self.X[0].astype(np.float64), float(w.sum()) or 1.0
        sums, rest, squares = np.zeros((3, self.n_features))
        for rows, columns, block in self.blocks():
            sums[columns] += w[rows, 0] @ (block - first[columns])
        mean = first + sums / total
        for rows, columns, block in self.blocks():
            centered = block - mean[columns]
            rest[columns] += w[rows, 0] @ centered
            squares[columns] += w[rows, 0] @ centered**2
        return ColumnMoments.about(total, mean, rest / total, squares)

    @cached_property
    def squares(self) -> FloatArray:
        """Sums of squares of the columns, computed once; NaN and infinite entries show here."""
        squares = np.zeros(self.n_features)
        for _, columns, block in self.blocks():
            squares[columns] += np.einsum("ij,ij->j", block, block)
        return squares

    def column_norms(self, w: Handle) -> FloatArray:
        """From the squares alone, which takes less than moments do."""
        if w.min() == w.max():
            return np.sqrt(float(w[0, 0]) * self.squares)
        squares = np.zeros(self.n_features)
        for rows, columns, block in self.blocks():
            squares[columns] += w[rows, 0] @ block**2
        return np.sqrt(squares)

    def squared_products(self, H: Handle, center: FloatArray | None = None) -> FloatArray:
        """In one pass, of squares that are made some rows or columns at a time."""
        self.charge(self.n_features)
        squares = np.zeros((self.n_features, H.shape[1]))
        for rows, columns, block in self.blocks():
            moved = block if center is None else block - center[columns]
            squares[columns] += (moved * moved).T @ H[rows]
        return squares

    def task_sums(self, w: Handle, center: FloatArray | None = None) -> tuple[FloatArray, FloatArray]:
        """In one pass."""
        self.charge(self.n_features)
        about = np.zeros(self.n_features) if center is None else center
        sums, squares = np.zeros((2, w.shape[1], self.n_features))
        for rows, columns, block in self.blocks():
            centered = block - about[columns]
            sums[:, columns] += w[rows].T @ centered
            centered *= centered
            squares[:, columns] += w[rows].T @ centered
        return sums.T, squares.T

    def ranges(self) -> tuple[FloatArray, FloatArray]:
        return self.X.min(axis=0).astype(np.float64), self.X.max(axis=0).astype(np.float64)

    def span(self, rows: slice) -> Design:
        """A view of rows that are contiguous."""
        if self._order == "F":
            return super().span(rows)
        part = self.X[rows]
        return type(self)(part, self.passes, self.unit * len(part) / self.n_samples)

    def restrict(self, columns: IndexArray) -> Self:
        """Copy columns, in the order of storage of X."""
        copy = self.X.T[columns].T if self._order == "F" else np.take(self.X, columns, axis=1)
        return type(self)(copy, self.passes, self.unit)

    def columns(self, columns: IndexArray) -> DenseColumns:
        """Copy columns."""
        if self._order == "F":
            At = self.X.T[columns].astype(np.float64, copy=False)
        else:
            At = np.empty((len(columns), self.n_samples))
            for start in range(0, self.n_samples, _GATHER_ROWS):  # pieces whose transposition stays in cache
                piece = slice(start, start + _GATHER_ROWS)
                At[:, piece] = self.X[piece].take(columns, axis=1).T
        return DenseColumns(At, self.passes, self.unit)

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

    def gram(self, w: FloatArray, other: DenseColumns | None = None) -> FloatArray:
        """``A^T diag(w) A_other``; the others are these by default."""
        self.passes.total += self.n_columns * self.unit
        if other is None:  # a matrix times its own transpose takes half the time
            root = self.At * np.sqrt(w[:, 0])
            return root @ root.T
        self.passes.total += other.n_columns * other.unit
        return (self.At * w[:, 0]) @ other.At.T

    def sampled(self, samples: Any) -> DenseColumns:
        """The columns at some of the samples, by indices or a slice."""
        part = self.At[:, samples]
        return DenseColumns(part, self.passes, self.unit * part.shape[1] / self.At.shape[1])

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
    """Cache of Gram matrix entries, computed when first needed, and of the largest entry of each column.

    The same cache serves every round of a working set, every weight sequence on a path, and problems restricted to
    some of the columns.
    """

    def __init__(self, design: Design, w: Handle) -> None:
        self.design = design
        self.w = w
        self.position = np.full(design.n_features, -1, dtype=np.intp)
        self.known = np.zeros(0, dtype=np.intp)
        self.matrix = np.empty((0, 0))
        #: Products of all columns, and of the unpenalized block, with that block, where they were asked for.
        self.of_block: tuple[FloatArray, FloatArray] | None = None

    @cached_property
    def largest(self) -> FloatArray:
        """``max_i |x_ij|`` of every column, or more, found once."""
        lowest, highest = self.design.ranges()
        return np.maximum(-lowest, highest)

    def block(self, columns: IndexArray) -> FloatArray:
        """``X_c^T diag(w) X_c`` for these columns, a copy."""
        new = columns[self.position[columns] < 0]
        if len(new):
            old, known = len(self.known), np.concatenate([self.known, new])
            rows = self.products(new, known if old else new)
            self.matrix = np.block([[self.matrix, rows[..., :old].swapaxes(-1, -2)], [rows]]) if old else rows
            self.known = known
            self.position[new] = np.arange(old, len(known))
        positions = self.position[columns]
        return self.matrix[..., positions[:, None], positions]

    def products(self, left: IndexArray, right: IndexArray) -> FloatArray:
        """``X_left^T diag(w) X_right``."""
        return self.design.gram(left, right, self.w)


class CompressedDesign(DenseDesign):
    """The small matrix R of :class:`~groupowl.designs.factors.CompressedData`; products with it are no passes."""

    def restrict(self, columns: IndexArray) -> Self:
        """Copy columns, and what is known of them."""
        part = super().restrict(columns)
        if self.mean is not None and self.inverse_scale is not None:
            part.mean, part.inverse_scale = self.mean[columns], self.inverse_scale[columns]
        return part

    def compressed(self, Y: Handle, w: Handle, *, exact: bool, center: bool = False) -> None:
        """Nothing is to be gained: what rounding took when R was made is lost."""
        return
