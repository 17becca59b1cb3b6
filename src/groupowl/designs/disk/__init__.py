"""Matrices on disk, all read in pieces of bounded size, never through a memory map; and how sources become storages."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np

from .base import INSIDE, RowBlocks, Storage
from .formats import NpzFile, ParquetTable, open_hdf5_dataset, open_inside, open_memmap, open_npy, open_zarr_array
from .matrix_folder import MatrixFolder

#: Files that hold one matrix, alone or as a block of rows in a folder.
_BLOCKS = {".npy": open_npy, ".npz": NpzFile, ".parquet": ParquetTable}
_HDF5 = (".h5", ".hdf5", ".hdf")
#: Text, which ``groupowl convert`` makes a matrix of.
_TEXT = {".csv", ".tsv", ".tab", ".txt"}
_OPEN_OBJECTS = {"h5py": open_hdf5_dataset, "zarr": open_zarr_array}


def is_stored(X: Any) -> bool:
    """Whether X is a path, or an object whose numbers are on disk: a memory map, an HDF5 dataset, a Zarr array."""
    return isinstance(X, str | os.PathLike | np.memmap) or type(X).__module__.partition(".")[0] in _OPEN_OBJECTS


def open_storage(source: Any) -> Storage:
    """The storage behind a path or an object; refuses what has no rows."""
    if isinstance(source, Storage):
        storage = source
    elif isinstance(source, np.memmap):
        storage = open_memmap(source)
    elif isinstance(source, str | os.PathLike):
        storage = _open_path(os.fspath(source))
    elif is_stored(source) and hasattr(source, "chunks"):
        storage = _OPEN_OBJECTS[type(source).__module__.partition(".")[0]](source)
    else:
        advice = " It is in memory already: pass it as it is." if isinstance(source, np.ndarray) else ""
        expected = "a path, a memory map, an HDF5 dataset or a Zarr array"
        raise TypeError(f"source, a matrix on disk, must be {expected}, got {type(source).__name__}.{advice}")
    if storage.shape[0] == 0:
        raise ValueError(f"{storage.label} has no rows: its shape is {storage.shape}.")
    return storage


def _open_path(text: str) -> Storage:
    place, _, inside = text.partition(INSIDE)
    path = Path(place)
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist.")
    suffix = path.suffix.lower()
    if suffix in _HDF5:
        return open_inside("h5py", path, inside)
    if suffix == ".zarr" or (path / "zarr.json").exists() or (path / ".zarray").exists():
        return open_inside("zarr", path, inside)
    if inside:
        raise ValueError(f"{text!r} names an array inside a file, which only HDF5 files and Zarr stores have.")
    files = [path]
    if path.is_dir():  # all its files; names with . or _ in front are left
        files = sorted((file for file in path.iterdir() if file.name[0] not in "._"), key=natural_order)
    known = ", ".join(_BLOCKS)
    if not files:
        raise ValueError(f"{path} is an empty folder: it must hold blocks of rows ({known}).")
    for file in files:
        if file.suffix.lower() not in _BLOCKS or not file.is_file():
            others = "Move it elsewhere." if path.is_dir() else f"Or give {', '.join(_HDF5)}, .zarr or a folder."
            if all(map(_is_text, files)):
                others = _conversion(path / f"*{file.suffix}" if path.is_dir() else path)
            raise ValueError(f"{file} is no matrix or block of rows: their files end in {known}. {others}")
    parts = [_BLOCKS[file.suffix.lower()](file) for file in files]
    if not path.is_dir():
        return parts[0]
    known_names = MatrixFolder.read(path)
    return RowBlocks(str(path), parts, None if known_names is None else known_names.columns)


def _is_text(file: Path) -> bool:
    return not _TEXT.isdisjoint(map(str.lower, file.suffixes[-2:]))  # the last may be that of compression


def _conversion(files: Path) -> str:
    """The command that makes a matrix on disk of text."""
    command = f"groupowl convert {shlex.quote(str(files))} --targets COLUMNS --out FOLDER"
    return f"Write text as a matrix on disk, and give that folder: {command}"


def natural_order(file: Path) -> list[tuple[int, str]]:
    """2 before 10."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", file.name)]
