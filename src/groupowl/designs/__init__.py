"""Designs: the owners of X and of sample space. Data enter through :func:`as_design` only."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from .._checks import count_message, numeric_array
from .base import Design, LocalDesign, PassCounter, WrappedDesign
from .columns import Columns, DenseColumns, GramCache, SparseColumns
from .compressed import CompressedDesign
from .dense import DenseDesign, dense_storage
from .sparse import SparseDesign, sparse_storage
from .standardized import StandardizedDesign, standardize

__all__ = [
    "Columns",
    "CompressedDesign",
    "DenseColumns",
    "DenseDesign",
    "Design",
    "GramCache",
    "LocalDesign",
    "PassCounter",
    "SparseColumns",
    "SparseDesign",
    "StandardizedDesign",
    "WrappedDesign",
    "as_design",
    "standardize",
]

_IMPUTE = (
    "Remove those rows or columns, or fill them in before the fit, for example "
    "make_pipeline(SimpleImputer(), model) with sklearn.impute.SimpleImputer."
)


def as_design(X: Any) -> Design:
    """The design of any supported matrix, checked: a design itself, a sparse matrix or an array."""
    if isinstance(X, Design):
        return X
    if sp.issparse(X):
        return _sparse_design(X)
    return _dense_design(X)


def _check_shape(shape: tuple[int, ...]) -> None:
    if len(shape) != 2:
        hint = " Use X.reshape(-1, 1) for a single feature." if len(shape) == 1 else ""
        raise ValueError(f"X must be 2-dimensional (n_samples, n_features), got shape {shape}.{hint}")
    if 0 in shape:
        raise ValueError(f"X is empty: its shape is {shape}; at least one sample and one feature are needed.")


def _dense_design(X: Any) -> DenseDesign:
    array = numeric_array("X", X)
    _check_shape(array.shape)
    design = DenseDesign(dense_storage(array))
    with np.errstate(all="ignore"):
        suspects = np.flatnonzero(~np.isfinite(design.column_squares()))  # or so large that their squares overflow
    bad = np.zeros(array.shape[1], dtype=np.intp)
    bad[suspects] = [np.count_nonzero(~np.isfinite(array[:, j])) for j in suspects]
    if bad.any():
        raise ValueError(count_message("X", bad, _IMPUTE, getattr(X, "columns", None)))
    return design


def _sparse_design(X: Any) -> SparseDesign:
    _check_shape(X.shape)
    if X.dtype.kind not in "fiub":
        raise TypeError(f"X must hold real numbers, got a sparse matrix of dtype {X.dtype}.")
    storage = sparse_storage(X)
    finite = np.isfinite(storage.data)
    if not finite.all():
        bad = storage.tocoo().col[~finite]
        raise ValueError(count_message("X", np.bincount(bad, minlength=X.shape[1]), _IMPUTE))
    return SparseDesign(storage)
