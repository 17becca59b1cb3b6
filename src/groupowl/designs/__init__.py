"""Designs: the owners of X and of sample space. Data enter through :func:`as_design` only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .._checks import IMPUTE, check_data_shape, check_finite, numeric_array, sparse_array
from .._lazy import attributes
from .base import ColumnMoments, Design, LocalDesign, is_dask
from .dense import DenseColumns, DenseDesign
from .factors import is_sparse
from .sparse import SparseDesign
from .statistics import SufficientStatistics
from .wrapped import ProjectedDesign, StandardizedDesign, WrappedDesign, project_out, scale_columns, standardize

if TYPE_CHECKING:
    from .dask.blocks import row_chunks
    from .dask.dask_design import DaskDesign, encode_labels_of_blocks, mean_weights, row_wise, rows_like
    from .disk.memmap_design import MemmapDesign

__all__ = [
    "ColumnMoments",
    "DaskDesign",
    "DenseColumns",
    "DenseDesign",
    "Design",
    "LocalDesign",
    "MemmapDesign",
    "ProjectedDesign",
    "SparseDesign",
    "StandardizedDesign",
    "SufficientStatistics",
    "WrappedDesign",
    "as_design",
    "check_entries",
    "encode_labels_of_blocks",
    "far_design",
    "is_summary",
    "mean_weights",
    "open_matrix",
    "project_out",
    "row_chunks",
    "row_wise",
    "rows_like",
    "scale_columns",
    "standardize",
]


# Data elsewhere than in memory have modules that are imported when such data come.
_HOMES = ("disk.memmap_design", "dask.dask_design")

if not TYPE_CHECKING:
    __getattr__, __dir__ = attributes(__name__, dict.fromkeys(_HOMES, __all__))

# Matrices on disk smaller than this part of max_memory are read into memory.
_SMALL_SHARE = 8


def as_design(X: Any, *, is_looked_at: bool = True) -> Design:
    """The design of any supported matrix, checked.

    X is a design itself, a sparse matrix, an array, or a matrix on disk: a path, a memory map, an HDF5 dataset or a
    Zarr array. The last are read into memory, or looked at through their map, if they are small. Whoever makes norms of
    the columns anyway, which show NaN, does not need a look at each entry of an array: :func:`check_entries`.
    """
    design = far_design(X)
    if design is not None:
        return design
    if is_sparse(X):
        check_data_shape(X.shape)
        storage = sparse_array("X", X)
        check_finite("X", storage, remedy=IMPUTE)
        return SparseDesign(storage)
    array = numeric_array("X", X)
    check_data_shape(array.shape)
    design = DenseDesign(array)
    with np.errstate(all="ignore"):
        if is_looked_at and not np.isfinite(design.squares.sum()):  # or squares overflow
            check_entries(X)
    return design


def check_entries(X: Any) -> None:
    """Refuse an array, or a data frame, with NaN or infinite entries."""
    if far_design(X) is None and not is_sparse(X):
        check_finite("X", numeric_array("X", X), remedy=IMPUTE, names=getattr(X, "columns", None))


def is_summary(X: Any) -> bool:
    """Whether X is the statistics of samples, which know the targets too, in place of the samples."""
    return isinstance(X, SufficientStatistics)


def far_design(X: Any) -> Design | None:
    """The design of data on disk, on a cluster, of statistics, or a design itself; None for data in memory.

    Matrices on disk that are small are read into memory, and small memory maps are as good as there.
    """
    if type(X) is np.ndarray or is_sparse(X):  # most data are: nothing is imported for them
        return None
    if isinstance(X, Design):
        return X
    if isinstance(X, SufficientStatistics):
        design = DenseDesign(np.zeros((0, X.n_features)), unit=0.0)
        design.shape = (X.n_samples, X.n_features)
        design.known_statistics = X
        return design
    from .disk import is_stored
    from .disk.formats import is_flat
    from .disk.memmap_design import MemmapDesign
    from .disk.memory import default_max_memory

    if is_dask(X):
        from .dask.dask_design import DaskDesign

        return DaskDesign(X)
    if isinstance(X, np.memmap):  # which joblib hands to its workers: usually small
        small = X.nbytes * _SMALL_SHARE <= default_max_memory()
        return None if small or X.ndim != 2 or not is_flat(X) else MemmapDesign(X)
    return open_matrix(X) if is_stored(X) else None


def open_matrix(source: Any, max_memory: Any = None) -> Design:
    """The design of a matrix on disk: in memory if it takes less than an eighth of ``max_memory`` there.

    See :class:`MemmapDesign` for what the source may be. The design has ``feature_names`` where the source has names.
    """
    from .disk import open_storage
    from .disk.memmap_design import MemmapDesign
    from .disk.memory import parse_memory

    storage = open_storage(source)
    if storage.memory_bytes * _SMALL_SHARE > parse_memory(max_memory):
        return MemmapDesign(storage, max_memory)
    try:
        design = as_design(storage.read_rows(slice(0, storage.shape[0])))
    except ValueError as error:
        raise ValueError(f"{storage.label}: {error}") from error
    design.feature_names = storage.feature_names
    return design
