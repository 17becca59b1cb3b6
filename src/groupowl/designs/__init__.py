"""Designs: the owners of X and of sample space. Data enter through :func:`as_design` only."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from .._checks import IMPUTE, check_data_shape, check_finite, count_message, numeric_array, sparse_array
from .base import Design, LocalDesign, PassCounter, Sum, WrappedDesign
from .columns import Columns, DenseColumns, GramCache, SparseColumns
from .compressed import CompressedDesign
from .dense import DenseDesign, dense_storage
from .distributed import DaskDesign, is_dask
from .projected import ProjectedDesign, products, project_out
from .sparse import SparseDesign
from .standardized import StandardizedDesign, standardize

__all__ = [
    "Columns",
    "CompressedDesign",
    "DaskDesign",
    "DenseColumns",
    "DenseDesign",
    "Design",
    "GramCache",
    "LocalDesign",
    "PassCounter",
    "ProjectedDesign",
    "SparseColumns",
    "SparseDesign",
    "StandardizedDesign",
    "Sum",
    "WrappedDesign",
    "as_design",
    "is_dask",
    "products",
    "project_out",
    "standardize",
]


def as_design(X: Any) -> Design:
    """The design of any supported matrix, checked: a design itself, a sparse matrix or an array."""
    if isinstance(X, Design):
        return X
    if is_dask(X):
        return DaskDesign(X)
    if sp.issparse(X):
        return _sparse_design(X)
    return _dense_design(X)


def _dense_design(X: Any) -> DenseDesign:
    array = numeric_array("X", X)
    check_data_shape(array.shape)
    design = DenseDesign(dense_storage(array))
    with np.errstate(all="ignore"):
        suspects = np.flatnonzero(~np.isfinite(design.column_squares()))  # or so large that their squares overflow
    bad = np.zeros(array.shape[1], dtype=np.intp)
    bad[suspects] = [np.count_nonzero(~np.isfinite(array[:, j])) for j in suspects]
    if bad.any():
        raise ValueError(count_message("X", bad, IMPUTE, getattr(X, "columns", None)))
    return design


def _sparse_design(X: Any) -> SparseDesign:
    check_data_shape(X.shape)
    storage = sparse_array("X", X)
    check_finite("X", storage, remedy=IMPUTE)
    return SparseDesign(storage)
