"""Arrays that are contiguous in a file: ``.npy`` files and whatever else a memory map shows."""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from contextlib import contextmanager
from io import FileIO
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from ..._typing import IndexArray
from .base import Block, FileState, Storage, truncated

_HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}


class FlatFile(Storage):
    """A contiguous array in a file, by rows or by columns.

    Parameters
    ----------
    path : Path
    offset : int
        Bytes before the first entry.
    shape : tuple of int
    raw : dtype
    by_columns : bool
    """

    def __init__(self, path: Path, offset: int, shape: tuple[int, ...], raw: Any, by_columns: bool) -> None:
        super().__init__(str(path), shape, raw)
        self.path = path
        self.offset = offset
        self.by_columns = by_columns
        self.state = FileState.of(path)
        if self.state.size < offset + self.nbytes:
            raise truncated(self.label, offset + self.nbytes, self.state.size)

    @property
    def least_bytes(self) -> int:
        """A row; of columns, single entries."""
        return self.entry_bytes if self.by_columns else super().least_bytes

    @contextmanager
    def opened(self) -> Iterator[_Reader]:
        """The file with a buffer that all reads share."""
        self.state.check()
        with open(self.path, "rb", buffering=0) as file:
            yield _Reader(self, file)

    def read(self, source: _Reader, rows: slice, columns: IndexArray | None) -> Any:
        """Rows into the buffer, from which columns are taken; by columns, only those asked for are read."""
        n, d = self.shape
        height = rows.stop - rows.start
        if not self.by_columns:
            matrix = source.fill([(rows.start * d, height * d)]).reshape(height, d)
            return self._converted(matrix if columns is None else matrix.take(columns, axis=1))
        wanted = np.arange(d) if columns is None else columns
        return self._converted(source.fill(_column_spans(wanted, n, rows)).reshape(len(wanted), height).T)

    def blocks(self, max_bytes: int, columns: IndexArray | None = None) -> Iterator[Block]:
        """By columns: some of them at a time, long ones in pieces."""
        if not self.by_columns:
            yield from self.bands(max_bytes, columns)
            return
        wanted = np.arange(self.shape[1]) if columns is None else columns
        height = max(1, min(self.shape[0], max_bytes // self.entry_bytes))
        width = max(1, max_bytes // max(self.entry_bytes * self.shape[0], 1))
        with self.opened() as source:
            for left in range(0, len(wanted), width):
                part = slice(left, min(left + width, len(wanted)))
                for start, stop in pairwise([*range(0, self.shape[0], height), self.shape[0]]):
                    rows = slice(start, stop)
                    yield Block(rows, part, self.read(source, rows, wanted[part]))

    def _converted(self, matrix: Any) -> Any:
        return matrix.astype(self.dtype, copy=False)


def _column_spans(columns: IndexArray, n: int, rows: slice) -> list[tuple[int, int]]:
    """Start and length, in entries, of what is contiguous: neighbouring columns where all rows are wanted."""
    height = rows.stop - rows.start
    runs = np.split(columns, np.flatnonzero(np.diff(columns) != 1) + 1) if height == n else columns[:, None]
    return [(int(run[0]) * n + rows.start, len(run) * height) for run in runs if len(run)]


class _Reader:
    """An open file and the one buffer that is filled again and again."""

    def __init__(self, storage: FlatFile, file: FileIO) -> None:
        self.storage = storage
        self.file = file
        self.buffer = np.empty(0, dtype=storage.raw)

    def fill(self, spans: list[tuple[int, int]]) -> Any:
        """Entries of all spans, one after the other."""
        total = sum(length for _, length in spans)
        if len(self.buffer) < total:
            self.buffer = np.empty(total, dtype=self.storage.raw)
        filled = 0
        for start, length in spans:
            self._read(start, self.buffer[filled : filled + length])
            filled += length
        self.storage.count(total * self.storage.raw.itemsize)
        return self.buffer[:total]

    def _read(self, start: int, target: Any) -> None:
        position = self.storage.offset + start * self.storage.raw.itemsize
        view = memoryview(target.view(np.uint8))
        self.file.seek(position)
        done = 0
        while done < len(view):  # a read may deliver less than asked for
            count = self.file.readinto(view[done:])
            if not count:
                raise truncated(self.storage.label, position + len(view), position + done)
            done += count


def read_header(path: Path, file: Any) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, whether by columns, and dtype of an array in the format of NumPy; the file is then at its first entry."""
    try:
        return _HEADERS[np.lib.format.read_magic(file)](file)
    except (ValueError, KeyError) as error:
        raise ValueError(
            f"{path} has no array that NumPy could read: {error}. Write it again with numpy.save."
        ) from error


def open_npy(path: Path) -> FlatFile:
    """The array of a ``.npy`` file."""
    with open(path, "rb") as file:
        shape, by_columns, raw = read_header(path, file)
        offset = file.tell()
    return FlatFile(path, offset, shape, raw, by_columns and len(shape) == 2 and min(shape) > 1)


def open_memmap(array: Any) -> FlatFile:
    """The part of a file that a memory map shows, if it is contiguous there."""
    trouble = why_not_flat(array)
    if trouble is not None:
        raise ValueError(trouble)
    whole = array
    while not isinstance(whole, mmap.mmap):
        whole = whole.base
    address = np.frombuffer(whole, dtype=np.uint8).__array_interface__["data"][0]
    start = array.offset - array.offset % mmap.ALLOCATIONGRANULARITY  # of the map in its file, as NumPy chooses it
    offset = start + array.__array_interface__["data"][0] - address
    return FlatFile(Path(array.filename), offset, array.shape, array.dtype, not array.flags.c_contiguous)


def why_not_flat(array: Any) -> str | None:
    """Why a memory map cannot be read from its file, and what to do; None if it can."""
    if getattr(array, "_mmap", None) is None or array.filename is None:
        return "X is a memory map without a file: it was computed from one. Pass the map itself, or a path."
    if array.mode == "c":
        return (
            "X is a memory map in mode 'c', whose changes are not in the file. Open it with mode 'r', or save the "
            "changes with numpy.save."
        )
    if not (array.flags.c_contiguous or array.flags.f_contiguous):
        return (
            f"X is a part of a memory map that is not contiguous in its file (shape {array.shape}, strides "
            f"{array.strides}). Pass whole rows of a row-major map or whole columns of a column-major one, or save "
            "the part with numpy.save."
        )
    return None
