"""What workers do with a block of rows, each a function of local arrays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..._checks import IMPUTE, check_finite, check_sample_weight, check_targets, sparse_array
from ..._typing import FloatArray, IndexArray
from ...gram import SufficientStatistics
from ..base import LocalDesign
from ..dense import DenseDesign, dense_storage
from ..moments import ColumnMoments, block_moments
from ..sparse import SparseDesign


@dataclass(frozen=True)
class Place:
    """Where a block is among the chunks of X, and how many rows it has."""

    number: int
    size: int


def local_design(block: Any) -> LocalDesign:
    """The design of one block; sparse arrays of other packages become SciPy's."""
    block = block.to_scipy_sparse() if hasattr(block, "to_scipy_sparse") else block
    if sp.issparse(block):
        return SparseDesign(sparse_array("X", block), unit=0.0)
    return DenseDesign(dense_storage(np.asarray(block)), unit=0.0)


def block_rows(block: Any, mask: Any) -> Any:
    """Rows where the mask is true."""
    chosen: Any = local_design(block)
    return block if mask.all() else chosen.rows(np.flatnonzero(mask)).X


def block_columns(block: Any, columns: IndexArray) -> Any:
    """Some columns."""
    restricted: Any = local_design(block).restrict(columns)
    return restricted.X


def block_product(block: Any, support: IndexArray, rows: FloatArray, offset: FloatArray) -> FloatArray:
    """``X B + 1 offset^T`` from the non-zero rows of ``B``."""
    return np.asfortranarray(local_design(block).restrict(support).matmul(rows, offset))  # as checked_targets says


def constant_rows(place: Place, row: FloatArray) -> FloatArray:
    """The same row for every sample."""
    return np.asfortranarray(np.tile(row, (place.size, 1)))


def block_correlations(block: Any, T: FloatArray) -> FloatArray:
    """``X^T T``."""
    return local_design(block).rmatmul(T)


def block_gram(block: Any, w: FloatArray, left: IndexArray, right: IndexArray | None) -> tuple[Any, ...]:
    """Products of columns, and sums to centre them with; ``right`` is ``left`` if None."""
    return local_design(block).gram_and_sums(left, left if right is None else right, w)


def block_largest_row(block: Any, w: FloatArray, **arguments: Any) -> list[float]:
    """Largest norm of a row, in a list: sums of these are lists of all blocks."""
    return [local_design(block).largest_row(w, **arguments)]


def block_work(block: Any) -> float:
    """Operations of a product with the block."""
    design = local_design(block)
    size = float(design.n_samples * design.n_features)
    return design.density * size if size else 0.0


def checked_moments(block: Any, w: FloatArray, place: Place, n_features: int) -> ColumnMoments:
    """Moments of the columns of a block that has its shape and only finite entries."""
    if np.shape(block) != (len(w), n_features):
        raise ValueError(
            f"block {place.number} of X has shape {np.shape(block)}, but its chunks say {(place.size, n_features)}. "
            "Give Dask the right chunks, for example by map_blocks(..., chunks=), or let X.compute_chunk_sizes() find "
            "them."
        )
    moments = block_moments(local_design(block), w)
    if not np.isfinite(moments.squares.sum()):
        check_finite(f"X in block {place.number}", local_design(block).X, remedy=IMPUTE)
    return moments


def block_statistics(block: Any, Y: FloatArray, w: FloatArray) -> SufficientStatistics:
    """Sufficient statistics."""
    return SufficientStatistics.from_arrays(local_design(block).X, Y, w[:, 0])


@dataclass(frozen=True)
class _Parts:
    """Statistics of parts of the samples, None where a part has none so far."""

    content: list[Any]

    def __add__(self, other: _Parts) -> _Parts:
        pairs = zip(self.content, other.content, strict=True)
        return _Parts([b if a is None else a if b is None else a + b for a, b in pairs])


def block_statistics_of_parts(block: Any, Y: FloatArray, w: FloatArray, labels: Any, n_parts: int) -> _Parts:
    """Sufficient statistics of each part, by the labels of the samples."""
    X, found = local_design(block).X, []
    for part in range(n_parts):
        rows = np.flatnonzero(labels[:, 0] == part)
        found.append(SufficientStatistics.from_arrays(X[rows], Y[rows], w[rows, 0]) if len(rows) else None)
    return _Parts(found)


def checked_targets(block: Any, place: Place, check: Callable[[FloatArray], FloatArray]) -> FloatArray:
    """Targets that pass the checks of the loss; messages name the block."""
    where = f" in block {place.number}"
    Y = check_targets(block, place.size, where)
    try:
        return np.asfortranarray(check(Y))  # by tasks: sums over tasks are then sums of long vectors
    except ValueError as error:
        raise ValueError(f"{error} (Y{where})") from error


def checked_weights(block: Any, place: Place) -> FloatArray:
    """Sample weights as a column; messages name the block."""
    return check_sample_weight(block, place.size, f" in block {place.number}")[:, None]


def unit_weights(Y: FloatArray) -> FloatArray:
    """One for every sample."""
    return np.ones((len(Y), 1))


def scaled(values: FloatArray, factor: float) -> FloatArray:
    """Values times a factor."""
    return factor * values


def in_double_precision(values: Any) -> FloatArray:
    """The same numbers as float64."""
    return np.asarray(values, dtype=np.float64)


def is_present(w: FloatArray) -> Any:
    """Which samples have a positive weight."""
    return w[:, 0] > 0.0


def count_present(w: FloatArray) -> list[int]:
    """Samples of positive weight, in a list."""
    return [int(np.count_nonzero(w))]


def widths(values: FloatArray) -> list[int]:
    """Number of columns, in a list."""
    return [values.shape[1]]


def masked(block: Any, mask: Any) -> Any:
    """Rows of an array where the mask is true."""
    return block if mask.all() else block[np.flatnonzero(mask)]
