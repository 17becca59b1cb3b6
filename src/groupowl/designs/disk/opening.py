"""From what users have, a path or an object, to a storage."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from .base import Storage
from .containers import INSIDE, open_hdf5, open_hdf5_dataset, open_zarr, open_zarr_array
from .folder import open_folder
from .npy import open_memmap, open_npy
from .npz import NpzFile
from .parquet import ParquetTable

#: Files that hold one matrix, alone or as a block of rows in a folder.
_BLOCKS = {".npy": open_npy, ".npz": NpzFile, ".parquet": ParquetTable}
_HDF5 = (".h5", ".hdf5", ".hdf")


def is_stored(X: Any) -> bool:
    """Whether X is a path, or an object whose numbers are on disk: a memory map, an HDF5 dataset, a Zarr array."""
    return isinstance(X, str | os.PathLike | np.memmap) or _library(X) in ("h5py", "zarr")


def open_storage(source: Any) -> Storage:
    """The storage behind a path or an object; refuses what has no rows."""
    storage = _open(source)
    if storage.shape[0] == 0:
        raise ValueError(f"{storage.label} has no rows: its shape is {storage.shape}.")
    return storage


def _open(source: Any) -> Storage:
    if isinstance(source, Storage):
        return source
    if isinstance(source, np.memmap):
        return open_memmap(source)
    if isinstance(source, str | os.PathLike):
        return _open_path(os.fspath(source))
    if _library(source) in ("h5py", "zarr") and hasattr(source, "chunks"):
        return {"h5py": open_hdf5_dataset, "zarr": open_zarr_array}[_library(source)](source)
    advice = " It is in memory already: pass it as it is." if isinstance(source, np.ndarray) else ""
    raise TypeError(
        "source, a matrix on disk, must be a path, a memory map, an HDF5 dataset or a Zarr array, got "
        f"{type(source).__name__}.{advice}"
    )


def _open_path(text: str) -> Storage:
    place, _, inside = text.partition(INSIDE)
    path = Path(place)
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist.")
    suffix = path.suffix.lower()
    if suffix in _HDF5:
        return open_hdf5(path, inside)
    if suffix == ".zarr" or (path / "zarr.json").exists() or (path / ".zarray").exists():
        return open_zarr(path, inside)
    if inside:
        raise ValueError(f"{text!r} names an array inside a file, which only HDF5 files and Zarr stores have.")
    if path.is_dir():
        return open_folder(path, _BLOCKS)
    if suffix not in _BLOCKS:
        known = ", ".join([*_BLOCKS, *_HDF5, ".zarr"])
        raise ValueError(f"{path} has the unknown extension {suffix!r}. Known: {known}, or a folder of row blocks.")
    return _BLOCKS[suffix](path)


def _library(X: Any) -> str:
    return type(X).__module__.partition(".")[0]
