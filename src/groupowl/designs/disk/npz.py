"""``.npz`` files with one matrix: dense, or sparse as SciPy writes it. Read as a whole, so best as small blocks."""

from __future__ import annotations

import math
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..._checks import sparse_array
from ..._typing import IndexArray
from .base import FileState, Storage
from .memory import check_fits, check_sparse_shape
from .npy import read_header

_INDEX_BYTES = 8  # of a stored entry beside its value, at most


class NpzFile(Storage):
    """The one matrix in a ``.npz`` file."""

    reads_whole_runs = True

    def __init__(self, path: Path) -> None:
        self.path = path
        self.state = FileState.of(path)
        try:
            headers = archive_headers(path)
            self.is_sparse = {"format", "shape", "data"} <= set(headers)
            if self.is_sparse:
                with np.load(path) as file:
                    shape = tuple(int(size) for size in file["shape"])
                check_sparse_shape(str(path), shape)
                raw = headers["data"][1]
                self.n_stored = math.prod(headers["data"][0])
            else:
                self.name, (shape, raw) = _only_array(path, headers)
                self.n_stored = math.prod(shape)
        except (zipfile.BadZipFile, OSError, KeyError, EOFError, zlib.error) as error:
            raise ValueError(f"{path} is no .npz file that can be read: {error}. Write or copy it again.") from error
        super().__init__(str(path), shape, raw)

    @property
    def nbytes(self) -> int:
        """Bytes of the matrix in memory as it is stored."""
        return self.n_stored * (self.raw.itemsize + (_INDEX_BYTES if self.is_sparse else 0))

    @property
    def least_bytes(self) -> int:
        """All of it, and a copy while it is converted."""
        return 2 * self.nbytes

    @property
    def entry_bytes(self) -> int:
        """Of an entry, stored or not, on average; sparse blocks are taken apart into indices and values."""
        if not self.is_sparse:
            return super().entry_bytes
        return max(1, int(5 * self.density * (self.dtype.itemsize + _INDEX_BYTES)))

    @property
    def density(self) -> float:
        """Fraction of entries that are stored."""
        return self.n_stored / max(self.shape[0] * self.shape[1], 1)

    @property
    def column_bytes(self) -> float:
        """Bytes of a column in memory, on average."""
        if not self.is_sparse:
            return super().column_bytes
        return self.density * self.shape[0] * (self.dtype.itemsize + _INDEX_BYTES)

    def runs(self, max_bytes: int) -> IndexArray:
        """One: the file is read as a whole anyway."""
        return np.array([0, self.shape[0]])

    @contextmanager
    def opened(self) -> Iterator[Any]:
        """The matrix."""
        self.state.check()
        try:
            matrix = self._load()
        except (zipfile.BadZipFile, OSError, ValueError, EOFError, zlib.error) as error:
            raise RuntimeError(f"{self.label} cannot be read: {error}. Write or copy it again.") from error
        self.count(self.nbytes)
        yield matrix

    def _load(self) -> Any:
        if not self.is_sparse:
            with np.load(self.path) as file:
                return file[self.name].astype(self.dtype, copy=False)
        return sp.csr_array(sparse_array("X", sp.load_npz(self.path))).astype(self.dtype, copy=False)

    def read(self, source: Any, rows: slice, columns: IndexArray | None) -> Any:
        """Rows of the matrix."""
        return source[rows] if columns is None else source[rows][:, columns]


def read_archive(path: Path) -> dict[str, Any]:
    """All arrays of a ``.npz`` file by name; pickles are refused, and more than the memory holds before it is read."""
    archive_headers(path)
    with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
        return dict(archive)


def archive_headers(path: Path) -> dict[str, tuple[tuple[int, ...], np.dtype[Any]]]:
    """Shape and dtype of every array in the file, without reading them; refuses what they cannot be."""
    found = {}
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            name = member.filename.removesuffix(".npy")
            with archive.open(member) as file:
                shape, _, raw = read_header(path, file)
                if not raw.hasobject:  # pickles, which NumPy refuses
                    _check_size(path, name, math.prod(shape) * raw.itemsize, member.file_size - file.tell())
            found[name] = (shape, raw)
    check_fits(f"{path}, unpacked,", sum(math.prod(shape) * raw.itemsize for shape, raw in found.values()))
    return found


def _check_size(path: Path, name: str, claimed: int, stored: int) -> None:
    if claimed != stored:
        raise ValueError(
            f"{path} is damaged: its array {name!r} should have {claimed} bytes by its shape, but has {stored}. Write "
            "or copy it again."
        )


def _only_array(path: Path, headers: dict[str, Any]) -> tuple[str, Any]:
    if len(headers) != 1:
        listed = ", ".join(repr(name) for name in headers) or "none"
        raise ValueError(
            f"{path} must hold one array or one sparse matrix of SciPy, but it has these arrays: {listed}."
        )
    return next(iter(headers.items()))
