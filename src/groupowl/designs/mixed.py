"""A design that mixes the columns of groups, so that they become orthonormal, without forming them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._typing import BoolArray, FloatArray, Handle, IndexArray
from .base import Design, Sum
from .dense import DenseColumns
from .sparse import Columns
from .wrapped import WrappedDesign

# Directions of a group, of columns scaled to norm 1, whose variance is a smaller part of the largest are left out.
_RANK_RTOL = 1e-10
# Orthonormal columns are dense: larger groups of sparse data would not be sparse any more.
_MOST_SPARSE = 20


class MixedDesign(WrappedDesign):
    """``X A`` with a sparse matrix A that mixes columns within groups.

    Parameters
    ----------
    base : Design
        X.
    mixing : sparse array of shape (base.n_features, n_features)
        A.
    unmixing : sparse array of shape (n_features, base.n_features)
        What makes coefficients of ``X A`` from those of X; only the whole design has them.
    base_norms : ndarray of shape (base.n_features,)
        Weighted norms of the columns of X.
    """

    has_statistics = False

    def __init__(self, base: Design, mixing: Any, unmixing: Any, base_norms: FloatArray) -> None:
        super().__init__(base)
        self.mixing, self.unmixing, self.base_norms = mixing, unmixing, base_norms
        self.shape = (base.n_samples, mixing.shape[1])

    def matmul(self, B: FloatArray, offset: FloatArray | None = None) -> Handle:
        return self.base.matmul(self.mixing @ B, offset)

    def evaluate(self, T: Handle, *sums: Sum) -> tuple[FloatArray, list[Any]]:
        C, others = self.base.evaluate(T, *sums)
        return self.mixing.T @ C, others

    def column_norms(self, w: Handle) -> FloatArray:
        """Weighted norms of the columns: of mixed columns from their products, of all others from the base."""
        mixed = np.flatnonzero(np.diff(self.mixing.indptr) != 1)
        sources, columns = self._sources(mixed)
        norms = np.asarray(abs(self.mixing).T @ self.base.column_norms(w))
        if len(mixed):
            Z = self.base.restrict(sources).matmul(columns.toarray())
            norms[mixed] = np.sqrt(self.reduce(_weighted_squares, Z, w))
        return norms

    def _sources(self, columns: IndexArray) -> tuple[IndexArray, Any]:
        """Columns of the base that these ones are made of, and how."""
        part = self.mixing[:, columns]
        sources = np.unique(part.indices).astype(np.intp)
        return sources, part[sources]

    def restrict(self, columns: IndexArray) -> Design:
        sources, part = self._sources(columns)
        return MixedDesign(self.base.restrict(sources), part, None, self.base_norms[sources])

    def brought_near(self, columns: IndexArray, n_tasks: int) -> Design | None:
        return None

    def rows(self, rows: IndexArray) -> Design:
        return MixedDesign(self.base.rows(rows), self.mixing, self.unmixing, self.base_norms)

    def columns(self, columns: IndexArray) -> Columns | None:
        """Dense copies."""
        sources, part = self._sources(columns)
        base = self.base.columns(sources)
        if base is None:
            return None
        return DenseColumns(part.T @ base.dense(np.arange(len(sources))), self.passes, self.unit)

    def gram_by_base(self, left: IndexArray, right: IndexArray, w: Handle) -> FloatArray:
        (of_left, A), (of_right, B) = self._sources(left), self._sources(right)
        return np.asarray(A.T @ (self.base.gram(of_left, of_right, w) @ B))

    def compressed(self, Y: Handle, w: Handle, *, exact: bool, center: bool = False) -> None:
        return None

    def plain_data(self) -> None:
        return None

    def input_coefficients(self, B: FloatArray, on_basis: FloatArray | None = None) -> tuple[FloatArray, FloatArray]:
        rows = self.mixing @ np.moveaxis(B, -2, 0).reshape(B.shape[-2], -1)  # sparse matrices multiply two axes only
        stacked = rows.reshape(-1, *B.shape[:-2], B.shape[-1])
        return self.base.input_coefficients(np.moveaxis(stacked, 0, -2), on_basis)

    def own_coefficients(self, B: FloatArray) -> FloatArray:
        return np.asarray(self.unmixing @ self.base.own_coefficients(B))

    def _own_scale(self) -> FloatArray | None:
        """Mixed columns have no coefficients of their own: theirs are per standard deviation, times the factor."""
        scale, lengths = self.base._own_scale(), np.sqrt(np.asarray(self.unmixing.power(2).sum(axis=0)))
        lengths[lengths == 0.0] = 1.0
        return lengths if scale is None else scale * lengths

    def zero_columns(self, norms: FloatArray) -> BoolArray:
        return self.base.zero_columns(self.base_norms)

    def basis_coefficients(self, B: FloatArray) -> tuple[FloatArray, float]:
        return self.base.basis_coefficients(B)

    def rounding_norms(self, norms: FloatArray, total_weight: float) -> FloatArray:
        """Norms of the terms before cancellation, which are large for nearly collinear columns of a group."""
        whole = self.base.rounding_norms(self.base_norms, total_weight)
        return np.maximum(norms, abs(self.mixing).T @ whole)


def orthonormalized(
    design: Design, groups: Iterable[IndexArray], scales: FloatArray, w: Handle, total_weight: float
) -> MixedDesign:
    """Wrap ``design`` so that these groups of columns have uncorrelated columns of deviation 1, over their scale.

    Only the directions that are more than rounding are left of each group, first; columns that are too many become
    zeros.
    """
    _check_near(design)
    d = design.n_features
    alone = np.ones(d)
    blocks: list[tuple[IndexArray, FloatArray, FloatArray]] = []
    for columns, scale in zip(groups, scales, strict=True):
        if design.density < 1.0 and len(columns) > _MOST_SPARSE:
            raise ValueError(
                f"group_scale='orthonormal' makes columns dense, and a group of sparse X has {len(columns)} of them; "
                f"up to {_MOST_SPARSE} are served. Use group_scale='frobenius', or X as a dense array."
            )
        alone[columns] = 0.0
        blocks.append((columns, *_whitened(design.gram(columns, columns, w), total_weight, float(scale))))
    shape, kept = (d, d), np.flatnonzero(alone)
    return MixedDesign(
        design,
        _block_matrix([(columns, A) for columns, A, _ in blocks], kept, shape),
        _block_matrix([(columns, inverse) for columns, _, inverse in blocks], kept, shape),
        design.column_norms(w),
    )


def _check_near(design: Design) -> None:
    if not design.is_one_block or design.keeps_columns:
        raise ValueError(
            "group_scale='orthonormal' needs X in memory, as an array or a sparse matrix. Use 'size' or 'frobenius' "
            "for data on disk or on a cluster."
        )


def _whitened(G: FloatArray, total_weight: float, scale: float) -> tuple[FloatArray, FloatArray]:
    """``A`` with ``A^T G A = (total_weight / scale^2) I`` on the directions of G, then zeros; and its inverse there."""
    p = len(G)
    A, inverse = np.zeros((p, p)), np.zeros((p, p))
    size = np.sqrt(np.diagonal(G))
    if not size.any() or not np.isfinite(scale):
        return A, inverse
    inverse_size = np.divide(1.0, size, out=np.zeros(p), where=size > 0.0)
    variances, V = np.linalg.eigh(inverse_size[:, None] * G * inverse_size)
    kept = np.flatnonzero(variances > _RANK_RTOL * variances[-1])[::-1]
    factor = np.sqrt(total_weight) / scale
    A[:, : len(kept)] = inverse_size[:, None] * V[:, kept] * (factor / np.sqrt(variances[kept]))
    inverse[: len(kept)] = (V[:, kept] * (np.sqrt(variances[kept]) / factor)).T * size
    return A, inverse


def _block_matrix(blocks: list[tuple[IndexArray, FloatArray]], alone: IndexArray, shape: tuple[int, int]) -> Any:
    """A sparse matrix with these blocks, and ones for the columns that are alone."""
    rows, columns, entries = [alone], [alone], [np.ones(len(alone))]
    for members, block in blocks:
        rows.append(np.repeat(members, len(members)))
        columns.append(np.tile(members, len(members)))
        entries.append(block.ravel())
    where = np.concatenate(rows), np.concatenate(columns)
    return sp.csc_array((np.concatenate(entries), where), shape=shape)


def _weighted_squares(Z: FloatArray, w: FloatArray) -> FloatArray:
    return (w * Z * Z).sum(axis=0)
