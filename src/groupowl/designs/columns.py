"""Some columns of a design as local arrays, in the layout that inner solvers want: one long vector per column.

Predictors and dual points are Fortran-ordered here, so that sums over the few tasks are sums of long vectors.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from .._typing import FloatArray, IndexArray
from .base import PassCounter

#: A stored entry of a sparse matrix takes as long as this many of a dense one.
SPARSE_SLOWDOWN = 5.0
# A Gram matrix that grows keeps copies of its columns up to this fraction of all, or so many entries.
_MOST_COPIES = 0.125
_FEW_ENTRIES = 1 << 19  # 4 megabytes


class Columns(Protocol):
    """Columns ``A`` of shape (n_samples, n_columns) with the products that inner solvers need."""

    @property
    def n_columns(self) -> int:
        """Number of columns."""

    @property
    def work(self) -> float:
        """Floating-point operations of a product with one vector, as long as those of a dense one take."""

    def predict(self, B: FloatArray) -> FloatArray:
        """``A B``, Fortran-ordered."""

    def correlate(self, theta: FloatArray) -> FloatArray:
        """``A^T theta``."""

    def gram(self, other: Any, w: FloatArray) -> FloatArray:
        """``A^T diag(w) A_other``."""

    @property
    def gram_work(self) -> float:
        """Floating-point operations of the Gram matrix of all columns, in the same unit as :attr:`work`."""

    def sampled(self, samples: IndexArray) -> Columns:
        """The columns at some of the samples."""

    def chosen(self, columns: IndexArray) -> Columns:
        """Some of the columns, ascending."""

    def norms(self, w: FloatArray) -> FloatArray:
        """``sqrt(sum_i w_i a_ij^2)`` of each column."""

    def dense(self, chosen: IndexArray) -> FloatArray:
        """Some of the columns as the rows of an array, shape (len(chosen), n_samples)."""

    def standardized(self, mean: FloatArray, inverse_scale: FloatArray) -> Columns:
        """The columns less their means, times a factor each."""

    def with_constant(self, value: float) -> Columns:
        """One more column, constant."""

    def with_columns(self, more: FloatArray) -> Columns:
        """The columns of an array (n_samples, n_more) after these."""


class DenseColumns:
    """Columns as the rows of a contiguous array ``At`` of shape (n_columns, n_samples)."""

    def __init__(self, At: FloatArray, passes: PassCounter, unit: float) -> None:
        self.At = At
        self.passes = passes
        self.unit = unit

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return len(self.At)

    @property
    def work(self) -> float:
        """Two operations per entry."""
        return 2.0 * self.At.size

    def _charge(self) -> None:
        self.passes.total += len(self.At) * self.unit

    def predict(self, B: FloatArray) -> FloatArray:
        """``A B``."""
        self._charge()
        return (B.T @ self.At).T

    def correlate(self, theta: FloatArray) -> FloatArray:
        """``A^T theta``."""
        self._charge()
        return self.At @ theta

    def gram(self, other: DenseColumns, w: FloatArray) -> FloatArray:
        """``A^T diag(w) A_other``."""
        self._charge()
        weights = w[:, 0]
        if other is self:  # a matrix times its own transpose takes half the time
            root = self.At if np.all(weights == 1.0) else self.At * np.sqrt(weights)
            return root @ root.T
        other._charge()
        return (self.At * weights) @ other.At.T

    @property
    def gram_work(self) -> float:
        """Half of a product of two matrices."""
        return float(len(self.At)) * self.At.size

    def sampled(self, samples: IndexArray) -> DenseColumns:
        """A copy."""
        return DenseColumns(self.At[:, samples], self.passes, self.unit * len(samples) / self.At.shape[1])

    def chosen(self, columns: IndexArray) -> DenseColumns:
        """A copy."""
        return DenseColumns(self.At[columns], self.passes, self.unit)

    def norms(self, w: FloatArray) -> FloatArray:
        """Weighted norms."""
        root = np.sqrt(w[:, 0])
        return np.array([np.linalg.norm(column * root) for column in self.At])

    def dense(self, chosen: IndexArray) -> FloatArray:
        """Copies."""
        return self.At[chosen]

    def standardized(self, mean: FloatArray, inverse_scale: FloatArray) -> DenseColumns:
        """Centered and scaled as they are."""
        At = self.At - mean[:, None]
        At *= inverse_scale[:, None]
        return DenseColumns(At, self.passes, self.unit)

    def with_constant(self, value: float) -> DenseColumns:
        """One more row of ``At``."""
        return self.with_columns(np.full((self.At.shape[1], 1), value))

    def with_columns(self, more: FloatArray) -> DenseColumns:
        """More rows of ``At``."""
        return DenseColumns(np.concatenate([self.At, more.T]), self.passes, self.unit)


class SparseColumns:
    """Columns as the rows of a CSR array, centered and scaled implicitly; a positive ``constant`` is a last column."""

    def __init__(
        self,
        At: Any,
        passes: PassCounter,
        unit: float,
        mean: FloatArray | None = None,
        inverse_scale: FloatArray | None = None,
        constant: float = 0.0,
    ) -> None:
        self.At = At
        self._A = At.T  # the same entries
        self.passes = passes
        self.unit = unit
        self.mean = np.zeros(At.shape[0]) if mean is None else mean
        self.inverse_scale = np.ones(At.shape[0]) if inverse_scale is None else inverse_scale
        self.constant = constant

    @property
    def n_columns(self) -> int:
        """Number of columns, the constant one included."""
        return int(self.At.shape[0]) + (self.constant > 0.0)

    @property
    def work(self) -> float:
        """Two operations per stored entry, slower than those of a dense matrix."""
        return 2.0 * SPARSE_SLOWDOWN * self.At.nnz

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

    def gram(self, other: SparseColumns, w: FloatArray) -> FloatArray:
        """``A^T diag(w) A_other``, a small dense block."""
        self._charge()
        if other is not self:
            other._charge()
        raw = (self._weighted(w) @ other._A).toarray()
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

    def _weighted(self, w: FloatArray) -> Any:
        """``A^T diag(w)``, sparse."""
        At = self.At
        return type(At)((At.data * w[At.indices, 0], At.indices, At.indptr), shape=At.shape)

    @property
    def gram_work(self) -> float:
        """A product of two sparse matrices, and the centering of a dense one."""
        size = self.At.shape[0]
        return 2.0 * SPARSE_SLOWDOWN * self.At.nnz**2 / self.At.shape[1] + 4.0 * size**2

    def sampled(self, samples: IndexArray) -> SparseColumns:
        """A copy, with the means and scales of all samples."""
        unit = self.unit * len(samples) / self.At.shape[1]
        return SparseColumns(self.At[:, samples], self.passes, unit, self.mean, self.inverse_scale, self.constant)

    def chosen(self, columns: IndexArray) -> SparseColumns:
        """A copy, with the constant column if that is chosen."""
        rows = columns[columns < self.At.shape[0]]
        constant = self.constant if len(rows) < len(columns) else 0.0
        return SparseColumns(self.At[rows], self.passes, self.unit, self.mean[rows], self.inverse_scale[rows], constant)

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
        return SparseColumns(self.At, self.passes, self.unit, mean, inverse_scale, self.constant)

    def with_constant(self, value: float) -> SparseColumns:
        """Remember the constant."""
        return SparseColumns(self.At, self.passes, self.unit, self.mean, self.inverse_scale, value)

    def with_columns(self, more: FloatArray) -> DenseColumns:
        """Made dense."""
        return DenseColumns(self.dense(np.arange(self.n_columns)), self.passes, self.unit).with_columns(more)


def center_products(
    raw: FloatArray,
    left_mean: FloatArray,
    left_sums: FloatArray,
    right_mean: FloatArray,
    right_sums: FloatArray,
    total: float,
) -> FloatArray:
    """Weighted products of columns less their means, from those as they are and the weighted sums; in place."""
    raw -= np.outer(left_mean, right_sums) + np.outer(left_sums - total * left_mean, right_mean)
    return raw


class GramCache:
    """Gram matrix of all columns ever asked for; only what is new is computed.

    The same cache serves every round of a working set, every weight sequence on a path, and problems restricted to
    some of the columns.
    """

    def __init__(self, design: Any, w: Any) -> None:
        self.design = design
        self.w = w
        self.position = np.full(design.n_features, -1, dtype=np.intp)
        self.known = np.zeros(0, dtype=np.intp)
        self.storage = np.empty((0, 0))
        self.copies: list[DenseColumns] | None = []  # of the known columns, while they are few

    def block(self, columns: Any) -> FloatArray:
        """``X_c^T diag(w) X_c`` for these columns, a copy."""
        new = columns[self.position[columns] < 0]
        if len(new):
            self._grow(new)
        positions = self.position[columns]
        return self.storage[np.ix_(positions, positions)]

    def _grow(self, new: Any) -> None:
        old, size = len(self.known), len(self.known) + len(new)
        known = np.concatenate([self.known, new])
        rows = self._products(new, known)
        if size > len(self.storage):
            larger = np.empty((max(size, 2 * old),) * 2)
            larger[:old, :old] = self.storage[:old, :old]
            self.storage = larger
        self.storage[old:size, :size] = rows
        self.storage[:old, old:size] = rows[:, :old].T
        self.known = known
        self.position[new] = np.arange(old, size)

    def _products(self, new: Any, known: Any) -> FloatArray:
        """Products of new columns with all known ones, from copies as long as those are dense and few."""
        design = self.design
        few = len(known) <= max(_MOST_COPIES * design.n_features, _FEW_ENTRIES / design.n_samples)
        if self.copies is not None and few and not design.keeps_columns:
            columns = design.columns(new)
            if isinstance(columns, DenseColumns):
                self.copies.append(columns)
                return np.hstack([columns.gram(block, self.w) for block in self.copies])
        self.copies = None
        return design.gram(new, new if len(new) == len(known) else known, self.w)
