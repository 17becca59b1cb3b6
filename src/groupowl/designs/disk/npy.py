"""Formats of NumPy: arrays contiguous in a file, ``.npy`` or what a memory map shows, and ``.npz`` archives."""

from __future__ import annotations

import math
import mmap
import os
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..._checks import sparse_array
from ..._typing import IndexArray
from .base import FileState, Storage
from .memory import check_fits, check_sparse_shape, format_bytes

_HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
_ZIP_ERRORS = (zipfile.BadZipFile, OSError, EOFError, zlib.error)


def read_header(path: Path, file: Any) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, whether by columns, and dtype of an array in the format of NumPy; the file is then at its first entry."""
    try:
        return _HEADERS[np.lib.format.read_magic(file)](file)
    except (ValueError, KeyError) as error:
        raise ValueError(
            f"{path} has no array that NumPy could read: {error}. Write it again with numpy.save."
        ) from error


# Contiguous arrays ----------------------------------------------------------------------------------------


class FlatFile(Storage):
    """A contiguous array in a file, by rows or by columns, that begins after ``offset`` bytes."""

    reads_single_rows = True

    def __init__(self, path: Path, offset: int, shape: tuple[int, ...], raw: Any, by_columns: bool) -> None:
        super().__init__(str(path), shape, raw)
        self.path = path
        self.offset = offset
        self.by_columns = by_columns
        if by_columns:
            self.least_bytes = self.entry_bytes
        self.state = FileState(path)
        self._check_size(path.stat().st_size)

    def _check_size(self, found: int) -> None:
        needed = self.offset + self.nbytes
        if found < needed:
            raise ValueError(
                f"{self.label} is truncated: its data need {needed} bytes ({format_bytes(needed)}), the file has "
                f"{found}. Write or copy it again."
            )

    @contextmanager
    def open(self) -> Iterator[Any]:
        """The file with a buffer that all reads share."""
        with self.path.open("rb") as file:
            yield SimpleNamespace(file=file, buffer=np.empty(0, dtype=self.raw))

    def read(self, source: Any, rows: slice, columns: IndexArray | None) -> Any:
        """By rows, all columns are read, and some are taken; by columns, only those asked for are read."""
        n, d = self.shape
        height = rows.stop - rows.start
        if self.by_columns:
            wanted = np.arange(d) if columns is None else columns
            # What is contiguous: neighboring columns where all rows are wanted.
            breaks = np.flatnonzero(np.diff(wanted) != 1) + 1 if height == n else np.arange(1, len(wanted))
            spans = [(int(run[0]) * n + rows.start, len(run) * height) for run in np.split(wanted, breaks)]
            matrix = self._filled(source, spans).reshape(len(wanted), height).T
        else:
            matrix = self._filled(source, [(rows.start * d, height * d)]).reshape(height, d)
            matrix = matrix if columns is None else matrix.take(columns, axis=1)
        return matrix.astype(self.dtype, copy=False)

    def _filled(self, source: Any, spans: list[tuple[int, int]]) -> Any:
        """Entries of all spans, each given by its start and length, one after the other in the buffer."""
        total = sum(length for _, length in spans)
        if len(source.buffer) < total:
            source.buffer = np.empty(total, dtype=self.raw)
        filled = 0
        for start, length in spans:
            source.file.seek(self.offset + start * self.raw.itemsize)
            n_bytes = source.file.readinto(source.buffer[filled : filled + length])
            if n_bytes < length * self.raw.itemsize:
                self._check_size(os.fstat(source.file.fileno()).st_size)
            self.counter.total += n_bytes
            filled += length
        return source.buffer[:total]

    def block_shape(self, max_bytes: int, n_columns: int) -> tuple[int, int] | None:
        """By columns: some of them at a time, long ones in pieces."""
        if not self.by_columns:
            return None
        height = max(1, min(self.shape[0], max_bytes // self.entry_bytes))
        return height, max(1, max_bytes // (self.entry_bytes * self.shape[0]))


def open_npy(path: Path) -> FlatFile:
    """The array of a ``.npy`` file."""
    with open(path, "rb") as file:
        shape, by_columns, raw = read_header(path, file)
        offset = file.tell()
    return FlatFile(path, offset, shape, raw, by_columns and len(shape) == 2 and min(shape) > 1)


def open_memmap(array: Any) -> FlatFile:
    """The part of a file that a memory map shows, if it is contiguous there."""
    if not is_flat(array):
        raise ValueError(
            f"X is a memory map that cannot be read from its file (shape {array.shape}, strides {array.strides}, mode "
            f"{array.mode!r}): it has no file if it was computed from a map, changes in mode 'c' are not in the file, "
            "and a part must be contiguous there. Pass whole rows of a row-major map or whole columns of a "
            "column-major one, opened with mode 'r', or a path; or save it with numpy.save."
        )
    whole = array
    while not isinstance(whole, mmap.mmap):
        whole = whole.base
    address = np.frombuffer(whole, dtype=np.uint8).__array_interface__["data"][0]
    start = array.offset - array.offset % mmap.ALLOCATIONGRANULARITY  # of the map in its file, as NumPy chooses it
    offset = start + array.__array_interface__["data"][0] - address
    return FlatFile(Path(array.filename), offset, array.shape, array.dtype, not array.flags.c_contiguous)


def is_flat(array: Any) -> bool:
    """Whether a memory map is one piece of its file, with all changes."""
    has_file = getattr(array, "_mmap", None) is not None and array.filename is not None
    return has_file and array.mode != "c" and (array.flags.c_contiguous or array.flags.f_contiguous)


# Archives -------------------------------------------------------------------------------------------------


class NpzFile(Storage):
    """The one matrix in a ``.npz`` file, dense, or sparse as SciPy writes it; read as a whole, so best small."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.state = FileState(path)
        n_stored = None
        try:
            headers = archive_headers(path)
            if {"format", "shape", "data"} <= set(headers):
                with np.load(path) as file:
                    shape = tuple(int(size) for size in file["shape"])
                check_sparse_shape(str(path), shape)
                n_stored, raw = math.prod(headers["data"][0]), headers["data"][1]
            else:
                if len(headers) != 1:
                    listed = ", ".join(repr(name) for name in headers) or "none"
                    raise ValueError(
                        f"{path} must hold one array or one sparse matrix of SciPy, but it has these arrays: {listed}."
                    )
                ((self.name, (shape, raw)),) = headers.items()
        except (*_ZIP_ERRORS, KeyError) as error:
            raise ValueError(f"{path} is no .npz file that can be read: {error}. Write or copy it again.") from error
        super().__init__(str(path), shape, raw, n_stored=n_stored)
        self.least_bytes = 2 * self.nbytes  # all of it, and a copy while it is converted

    def cuts(self, max_bytes: int) -> IndexArray:
        """None: the file is read as a whole anyway."""
        return np.unique([0, self.shape[0]])

    @contextmanager
    def open(self) -> Iterator[Any]:
        """The matrix."""
        try:
            if self.is_sparse:
                matrix: Any = sp.csr_array(sparse_array("X", sp.load_npz(self.path)))
            else:
                with np.load(self.path) as file:
                    matrix = file[self.name]
        except (*_ZIP_ERRORS, ValueError) as error:
            raise RuntimeError(f"{self.label} cannot be read: {error}. Write or copy it again.") from error
        self.counter.total += self.nbytes
        yield matrix.astype(self.dtype, copy=False)


def read_archive(path: Path) -> dict[str, Any]:
    """All arrays of a ``.npz`` file by name; pickles are refused, and more than the memory holds before it is read."""
    archive_headers(path)
    with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
        return dict(archive)


def archive_headers(path: Path) -> dict[str, tuple[tuple[int, ...], np.dtype[Any]]]:
    """Shape and dtype of every array in the file, without reading them; refuses what they cannot be."""
    found = {}
    n_bytes = 0
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            name = member.filename.removesuffix(".npy")
            with archive.open(member) as file:
                shape, _, raw = read_header(path, file)
                claimed, stored = math.prod(shape) * raw.itemsize, member.file_size - file.tell()
            if claimed != stored and not raw.hasobject:  # pickles, which NumPy refuses
                raise ValueError(
                    f"{path} is damaged: its array {name!r} should have {claimed} bytes by its shape, but has "
                    f"{stored}. Write or copy it again."
                )
            found[name] = (shape, raw)
            n_bytes += claimed
    check_fits(f"{path}, unpacked,", n_bytes)
    return found
