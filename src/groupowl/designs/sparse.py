"""SciPy sparse matrices, compressed by rows or by columns, and copies of their columns; never made dense."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp

from .._typing import FloatArray, Handle, IndexArray
from ..norm.kernels import EPS, LONGEST_SUM, LONGEST_SUM_OF_SAMPLES
from .base import ColumnMoments, Design, LocalDesign, PassCounter, PlainData, sum_of_pieces
from .dense import DenseColumns

#: A stored entry of a sparse matrix takes as long as this many of a dense one.
SPARSE_SLOWDOWN = 5.0
# Stored entries converted to double precision at a time when the data are single precision.
_BLOCK_ENTRIES = 1 << 20
# Entries whose rows are counted at a time.
_COUNTED_ENTRIES = 1 << 17
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

    @cached_property
    def _columns_first(self) -> Any:
        """X by columns where it is so or small enough for a copy: single columns of rows are a pass over X."""
        return self.X.tocsc() if not self._by_columns and self.X.nnz <= _COPIED_ENTRIES else self.X

    def blocks(self, X: Any = None) -> Iterator[tuple[slice, slice, Any]]:
        """Along the compressed axis; columns that are gathered are in double precision already."""
        n, d = self.shape
        length = d if self._by_columns else n
        pieces = 1 + self.X.nnz // _BLOCK_ENTRIES
        stride = max(1, -(-length // pieces))
        for start in range(0, length, stride):
            piece = slice(start, min(start + stride, length))
            rows, columns = (slice(0, n), piece) if self._by_columns else (piece, slice(0, d))
            yield rows, columns, self.X[rows, columns].astype(np.float64, copy=False)

    def gathered(self, support: IndexArray) -> Any:
        few = len(support) <= _GATHER_FRACTION * self.n_features
        is_faster = few and (len(support) == 0 or self._columns_first.format == "csc")
        return self._columns_first[:, support].astype(np.float64, copy=False) if is_faster else None

    @cached_property
    def _multiply(self) -> Multiplication:
        return Multiplication(self.X, LONGEST_SUM)

    @cached_property
    def _multiply_transposed(self) -> Multiplication:
        return Multiplication(self.X.T, LONGEST_SUM_OF_SAMPLES)

    def product(self, X: Any, B: FloatArray) -> FloatArray:
        multiply = self._multiply if X is self.X else Multiplication(X, LONGEST_SUM)
        return multiply(B)

    def transposed_product(self, X: Any, T: FloatArray) -> FloatArray:
        multiply = self._multiply_transposed if X is self.X else Multiplication(X.T, LONGEST_SUM_OF_SAMPLES)
        return multiply(T)

    def plain_data(self) -> PlainData | None:
        """X by columns, unless a copy would be large."""
        return PlainData(self._columns_first) if self._columns_first.format == "csc" else None

    def _spread(self, values: FloatArray) -> FloatArray:
        """A value per column, for each stored entry."""
        return np.repeat(values, np.diff(self.X.indptr)) if self._by_columns else values[self.X.indices]

    def _products(self, values: FloatArray, T: FloatArray) -> FloatArray:
        """Products of columns with values in the place of the stored ones."""
        matrix = type(self.X)((values, self.X.indices, self.X.indptr), shape=self.shape)
        found: FloatArray = matrix.T @ T
        return found

    def _column_sums(self, values: FloatArray, w: FloatArray) -> FloatArray:
        """Weighted sums of values in the place of the stored ones."""
        return self._products(values, w[:, 0])

    def _missing_weight(self, w: FloatArray) -> FloatArray:
        """Weight of the entries of each column that are not stored; exactly zero for a full column."""
        stored = self._column_sums(np.ones(self.X.nnz), np.ones_like(w))
        missing = np.maximum(w.sum() - self._column_sums(np.ones(self.X.nnz), w), 0.0)
        return np.where(stored == self.n_samples, 0.0, missing)

    def compute_moments(self, w: Handle) -> ColumnMoments:
        """With means that are refined once, so that they are exact up to one rounding."""
        values, missing = self.X.data.astype(np.float64, copy=False), self._missing_weight(w)
        total = float(w.sum()) or 1.0
        mean, rest = self._column_sums(values, w) / total, np.zeros(self.n_features)
        for _ in range(2):
            mean = mean + rest
            differences = values - self._spread(mean)
            rest = (self._column_sums(differences, w) - missing * mean) / total
        squares = self._column_sums(differences * differences, w) + missing * mean * mean
        return ColumnMoments.about(total, mean, rest, squares)

    def column_norms(self, w: Handle) -> FloatArray:
        """From the squares alone, one product."""
        values = self.X.data.astype(np.float64, copy=False)
        return np.sqrt(self._column_sums(values * values, w))

    def squared_products(self, H: Handle, center: FloatArray | None = None) -> FloatArray:
        """In one pass over the stored entries; those that are not stored have the squares of the centers."""
        self.charge(self.n_features)
        values = self.X.data.astype(np.float64, copy=False)
        if center is None:
            return self._products(values * values, H)
        sums, differences = H.sum(axis=0), values - self._spread(center)
        missing = np.maximum(sums - self._products(np.ones(self.X.nnz), H), 0.0)
        missing += 8 * EPS * np.sqrt(self.n_samples) * sums  # what rounding may have taken off
        return self._products(differences * differences, H) + (center * center)[:, None] * missing

    def ranges(self) -> tuple[FloatArray, FloatArray]:
        """Zeros count where entries are not stored."""
        lowest, highest = (
            part.toarray().ravel().astype(np.float64) for part in (self.X.min(axis=0), self.X.max(axis=0))
        )
        return lowest, highest

    def columns(self, columns: IndexArray) -> DenseColumns | SparseColumns:
        """Copy columns, as dense arrays where they are mostly full."""
        chosen = self._chosen(columns)
        if chosen.nnz >= _DENSE_FRACTION * chosen.shape[0] * chosen.shape[1]:
            return DenseColumns(chosen.T.toarray(), self.passes, self.unit)
        return SparseColumns(SparseDesign(chosen, self.passes, self.unit))

    def gram(self, left: IndexArray, right: IndexArray, w: Handle) -> FloatArray:
        """``X_left^T diag(w) X_right``, a small dense block of a product of sparse columns."""
        self.charge(len(left) if right is left else len(left) + len(right))
        chosen = self._chosen(left)
        other = chosen if right is left else self._chosen(right)
        weighted = type(chosen)((chosen.data * w[chosen.indices, 0], chosen.indices, chosen.indptr), shape=chosen.shape)
        return np.asarray((weighted.T @ other).toarray())

    def _chosen(self, columns: IndexArray) -> Any:
        return sp.csc_array(self._columns_first[:, columns]).astype(np.float64, copy=False)


class Multiplication:
    """Products with a CSR or CSC array that add up at most ``longest`` stored entries of a row in one go.

    Entries of a long row of a CSR array are taken for those of several rows, whose sums are added up in the same way. A
    CSC array is cut between columns. The pieces are views.
    """

    def __init__(self, X: Any, longest: int) -> None:
        self.X, self.n_rows = X, X.shape[0]
        self.cuts = [0, X.shape[1]]
        self.sums: Multiplication | None = None
        self.pieces = []
        if X.format == "csc":
            self.cuts = _column_cuts(X, longest, *self.cuts)
            self.pieces = [_some_columns(X, first, last) for first, last in pairwise(self.cuts)]
        elif np.diff(X.indptr).max(initial=0) > longest:
            self._cut_rows(longest)

    def _cut_rows(self, longest: int) -> None:
        X = self.X
        lengths = np.diff(X.indptr)
        counts = -(-lengths // longest)
        ends = np.cumsum(counts)
        number = np.arange(ends[-1]) - np.repeat(ends - counts, counts)  # of a piece, within its row
        starts = np.append(np.repeat(X.indptr[:-1], counts) + longest * number, X.nnz)
        self.X = sp.csr_array((X.data, X.indices, starts), shape=(ends[-1], X.shape[1]))
        places = np.ones(ends[-1]), np.arange(ends[-1]), np.append(0, ends)
        self.sums = Multiplication(sp.csr_array(places, shape=(len(counts), ends[-1])), longest)

    def __call__(self, B: FloatArray) -> FloatArray:
        if self.sums is not None:
            return self.sums(self.X @ B)
        if len(self.pieces) <= 1:
            return self.X @ B
        cut = zip(self.pieces, pairwise(self.cuts), strict=True)
        found = ((slice(None), piece @ B[first:last]) for piece, (first, last) in cut)
        return sum_of_pieces(found, (self.n_rows, B.shape[1]))


def _some_columns(X: Any, first: int, last: int) -> Any:
    """Columns of a CSC array that follow each other, a view."""
    starts = X.indptr[first : last + 1]
    entries = slice(starts[0], starts[-1])
    return sp.csc_array((X.data[entries], X.indices[entries], starts - starts[0]), shape=(X.shape[0], last - first))


def _column_cuts(X: Any, longest: int, first: int, last: int) -> list[int]:
    """Columns at which a CSC array is cut, so that no row has many stored entries between two of them."""
    if last - first <= longest or _longest_row(X, first, last) <= longest:
        return [first, last]
    middle = (first + last) // 2
    return [*_column_cuts(X, longest, first, middle), *_column_cuts(X, longest, middle, last)[1:]]


def _longest_row(X: Any, first: int, last: int) -> int:
    """Stored entries that the longest row of a CSC array has in some columns; counted in pieces, which are copied."""
    counts, rows = np.zeros(X.shape[0], dtype=np.intp), X.indices[X.indptr[first] : X.indptr[last]]
    at_once = max(_COUNTED_ENTRIES, len(counts))
    for start in range(0, len(rows), at_once):
        counts += np.bincount(rows[start : start + at_once], minlength=len(counts))
    return int(counts.max(initial=0))


class SparseColumns:
    """Columns of a sparse design, of nothing else; a positive ``constant`` is a last column.

    See :class:`~groupowl.designs.DenseColumns` for what the methods do.
    """

    def __init__(self, design: Design, constant: float = 0.0) -> None:
        self.design = design
        self.constant = constant
        n_samples, size = design.shape
        self.n_columns = size + (constant > 0.0)
        self.work = 2.0 * design.density * n_samples * size
        # Every stored entry times those of its row, and the centering of a dense matrix.
        self.gram_work = self.work * design.density / SPARSE_SLOWDOWN * size + 4.0 * size**2

    def predict(self, B: FloatArray) -> FloatArray:
        """``A B``."""
        rows, last = np.split(B, [self.design.n_features])
        return np.asfortranarray(self.design.matmul(rows, self.constant * last.sum(axis=0)))

    def correlate(self, theta: FloatArray) -> FloatArray:
        """``A^T theta``."""
        C = self.design.rmatmul(theta)
        return np.vstack([C, self.constant * theta.sum(axis=0)]) if self.constant else C

    def gram(self, w: FloatArray) -> FloatArray:
        """``A^T diag(w) A``, a small dense block."""
        columns = np.arange(self.design.n_features)
        G = self.design.gram(columns, columns, w)
        if not self.constant:
            return G
        cross = self.constant * self.design.rmatmul(w)
        return np.block([[G, cross], [cross.T, self.constant**2 * w.sum()]])

    def sampled(self, samples: IndexArray) -> SparseColumns:
        """A copy, with the means and scales of all samples."""
        return SparseColumns(self.design.rows(samples), self.constant)

    def chosen(self, columns: IndexArray) -> SparseColumns:
        """A copy, with the constant column if that is chosen."""
        rows = columns[columns < self.design.n_features]
        return SparseColumns(self.design.restrict(rows), self.constant if len(rows) < len(columns) else 0.0)

    def norms(self, w: FloatArray) -> FloatArray:
        """Weighted norms, about the means."""
        norms = self.design.column_norms(w)
        return np.append(norms, self.constant * np.sqrt(w.sum())) if self.constant else norms

    def dense(self, chosen: IndexArray) -> FloatArray:
        """Made dense, with means and scales applied."""
        rows = chosen[chosen < self.design.n_features]
        data = self.design.restrict(rows).plain_data()
        assert data is not None  # stored by columns
        At = data.X.T.toarray()
        if data.mean is not None and data.scale is not None:
            At = (At - data.mean[:, None]) / data.scale[:, None]
        return np.concatenate([At, np.full((len(chosen) - len(rows), At.shape[1]), self.constant)])

    def with_constant(self, value: float) -> SparseColumns:
        """Remember the constant."""
        return SparseColumns(self.design, value)

    def with_columns(self, more: FloatArray) -> DenseColumns:
        """Made dense."""
        At = self.dense(np.arange(self.n_columns))
        return DenseColumns(At, self.design.passes, self.design.unit).with_columns(more)


#: Copies of columns of either kind.
Columns: TypeAlias = DenseColumns | SparseColumns
