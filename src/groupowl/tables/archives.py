"""NumPy archives: arrays by name, a sparse matrix in pieces."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from zipfile import is_zipfile

import numpy as np
import scipy.sparse as sp

from .._checks import sparse_array
from ..designs.disk.memory import check_sparse_shape
from ..designs.disk.npy import read_archive

CSR_PIECES = ("data", "indices", "indptr", "shape")


def archive_arrays(path: Path) -> dict[str, Any]:
    """All arrays of an archive; pickles are refused."""
    if not is_zipfile(path):  # of which NumPy would say that it holds pickles
        raise ValueError("it is no archive.")
    return read_archive(path)


def has_matrix(arrays: dict[str, Any]) -> bool:
    """Whether there is an X among the arrays, or the pieces of a sparse one."""
    return "X" in arrays or all(piece in arrays for piece in CSR_PIECES)


def archive_matrix(arrays: dict[str, Any]) -> Any:
    """X, or the sparse matrix that the pieces make."""
    if not all(piece in arrays for piece in CSR_PIECES):
        return arrays["X"]
    data, indices, indptr, shape = (arrays[piece] for piece in CSR_PIECES)
    if shape.shape != (2,) or shape.dtype.kind not in "iu":
        raise ValueError(f"shape must be two integers, but it is {shape.tolist()!r}")
    for name, pieces in (("indices", indices), ("indptr", indptr)):
        if pieces.dtype.kind not in "iu":
            raise ValueError(f"{name} must be integers, but their type is {pieces.dtype}")
    check_sparse_shape("X", tuple(shape.tolist()))
    kind = sp.csc_array if _text(arrays.get("format")) == "csc" else sp.csr_array
    return sp.csr_array(sparse_array("X", kind((data, indices, indptr), shape=tuple(shape.tolist()))))


def _text(value: Any) -> str | None:
    """SciPy stores the name of the format as bytes."""
    if value is None:
        return None
    item = value.item() if np.ndim(value) == 0 else None
    return item.decode() if isinstance(item, bytes) else str(item)
