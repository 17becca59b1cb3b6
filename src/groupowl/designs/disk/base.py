"""What a design asks of a matrix on disk."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from hashlib import blake2b
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from ..._checks import check_data_shape
from ..._typing import IndexArray
from .memory import format_bytes, too_many_columns

# Gaps between wanted rows up to this size are read too: one long read beats two short ones.
_GAP_BYTES = 1 << 14
# Where rows are compressed together, up to so many bytes are read at once to find some of them.
_RUN_BYTES = 1 << 22
_FIT_AGAIN = "Fit again once nothing writes to it."


class Block(NamedTuple):
    """A piece of a matrix: where it is, and a dense array or CSR array that the next piece may overwrite."""

    rows: slice
    columns: slice  # positions among the columns asked for
    matrix: Any


@dataclass(frozen=True)
class FileState:
    """Size and time of change of a file when it was opened first."""

    path: Path
    size: int
    modified: int

    @classmethod
    def of(cls, path: Path) -> FileState:
        """The state now."""
        found = os.stat(path)
        return cls(path, found.st_size, found.st_mtime_ns)

    def check(self) -> None:
        """Refuse a file that is no longer the one that was opened first."""
        try:
            now = FileState.of(self.path)
        except OSError as error:
            raise RuntimeError(
                f"{self.path} was there when it was opened, and can no longer be read: {error}."
            ) from error
        if now.size != self.size:
            raise RuntimeError(
                f"{self.path} changed size while it was in use: from {self.size} to {now.size} bytes. {_FIT_AGAIN}"
            )
        if now.modified != self.modified:
            raise RuntimeError(f"{self.path} was modified while it was in use. {_FIT_AGAIN}")


@dataclass(frozen=True)
class FolderState:
    """Names, sizes and times of change of all files in a folder when it was opened first."""

    path: Path
    n_files: int
    digest: bytes

    @classmethod
    def of(cls, path: Path) -> FolderState:
        """The state now; of a million files no more is kept than of one."""
        digest = blake2b(digest_size=16)
        n_files = 0
        for folder, folders, names in os.walk(path):
            folders.sort()
            for name in sorted(names):
                found = os.stat(os.path.join(folder, name))
                place = os.path.relpath(folder, path)
                digest.update(
                    f"{place}/{name}\0{found.st_size}\0{found.st_mtime_ns}\0".encode(errors="surrogateescape")
                )
                n_files += 1
        return cls(path, n_files, digest.digest())

    def check(self) -> None:
        """Refuse a folder in which something was written since it was opened first."""
        try:
            now = FolderState.of(self.path)
        except OSError as error:  # a file that went away while it was looked at
            raise RuntimeError(f"{self.path} was modified while it was in use: {error}. {_FIT_AGAIN}") from error
        if now != self:
            files = f": from {self.n_files} to {now.n_files} files" if now.n_files != self.n_files else ""
            raise RuntimeError(f"{self.path} was modified while it was in use{files}. {_FIT_AGAIN}")


class Storage(ABC):
    """A matrix (n_samples, n_features) that is read in pieces.

    Parameters
    ----------
    label : str
        Names the matrix in messages.
    shape : tuple of int
    raw : dtype
        Of the numbers on disk; single precision is delivered as it is, all other numbers in double precision.
    feature_names : list of str, default=None
        Names of the columns, where the storage has them.
    """

    #: Whether pieces are CSR arrays.
    is_sparse: bool = False
    #: Whether reading a few rows takes as long as reading all that are compressed together with them.
    reads_whole_runs: bool = False
    #: Whether columns, not rows, are contiguous, so that single rows are slow to read.
    by_columns: bool = False

    def __init__(self, label: str, shape: tuple[int, ...], raw: Any, feature_names: list[str] | None = None) -> None:
        check_data_shape(shape, f" in {label}", needs_samples=False)
        if trouble := too_many_columns(int(shape[1])):
            raise ValueError(f"{label} has the shape {tuple(map(int, shape))}: {trouble}.")
        self.label = label
        self.shape = (int(shape[0]), int(shape[1]))
        self.raw = np.dtype(raw)
        self.dtype = delivered_dtype(self.raw, label)
        self.feature_names = feature_names
        self.bytes_read = 0

    @property
    def nbytes(self) -> int:
        """Bytes that a pass over the whole matrix reads."""
        return self.shape[0] * self.shape[1] * self.raw.itemsize

    @property
    def entry_bytes(self) -> int:
        """Bytes that an entry of a dense piece takes in memory while it is read."""
        return self.raw.itemsize + (self.dtype.itemsize if self.dtype != self.raw else 0)

    @property
    def least_bytes(self) -> int:
        """Bytes of the smallest piece that can be read."""
        return self.shape[1] * self.entry_bytes

    @property
    def density(self) -> float:
        """Fraction of entries that are stored."""
        return 1.0

    @property
    def column_bytes(self) -> float:
        """Bytes of a column in memory, on average."""
        return float(self.shape[0] * self.dtype.itemsize)

    # Reading ----------------------------------------------------------------------------------------

    @abstractmethod
    def opened(self) -> AbstractContextManager[Any]:
        """Open for reading; what :meth:`read` takes. Refuses files that have changed since they were found."""

    @abstractmethod
    def read(self, source: Any, rows: slice, columns: IndexArray | None) -> Any:
        """Some rows of all or the given columns, from an opened storage; the next read may overwrite them."""

    def cuts(self, max_bytes: int) -> IndexArray:
        """Where rows are cut into bands of at most so many bytes, from 0 to the number of rows."""
        step = self.rows_within(max_bytes)
        return np.append(np.arange(0, self.shape[0], step), self.shape[0])

    def rows_within(self, max_bytes: int) -> int:
        """Rows of a band of at most so many bytes, at least one."""
        return int(max(1, max_bytes // max(self.shape[1] * self.entry_bytes, 1)))

    def runs(self, max_bytes: int) -> IndexArray:
        """Where rows are cut into runs that are best read together when single rows are wanted."""
        return self.cuts(max_bytes)

    def bands(self, max_bytes: int, columns: IndexArray | None = None) -> Iterator[Block]:
        """All or the given columns, some rows at a time."""
        width = self.shape[1] if columns is None else len(columns)
        with self.opened() as source:
            for start, stop in pairwise(self.cuts(max_bytes)):
                yield Block(slice(start, stop), slice(0, width), self.read(source, slice(start, stop), columns))

    def blocks(self, max_bytes: int, columns: IndexArray | None = None) -> Iterator[Block]:
        """All or the given columns in the order of storage: bands of rows, or columns, or parts of them."""
        return self.bands(max_bytes, columns)

    def read_rows(self, rows: slice, columns: IndexArray | None = None) -> Any:
        """Some consecutive rows."""
        with self.opened() as source:
            return self.read(source, rows, columns)

    def take_rows(self, rows: IndexArray, columns: IndexArray | None = None) -> Any:
        """Any rows in any order, read in runs."""
        wanted, inverse = np.unique(rows, return_inverse=True)
        pieces = self.ascending_rows(wanted, columns) if len(wanted) else []
        whole = stacked(pieces, self.shape[1] if columns is None else len(columns), self)
        return whole if np.array_equal(inverse, np.arange(len(wanted))) else whole[inverse]

    def ascending_rows(self, rows: IndexArray, columns: IndexArray | None) -> list[Any]:
        """Rows in ascending order, at least one, in pieces: one for each read."""
        if self.reads_whole_runs:
            breaks = np.diff(np.searchsorted(self.runs(_RUN_BYTES), rows, side="right")) > 0
        else:
            breaks = np.diff(rows) > max(1, _GAP_BYTES // max(self.shape[1] * self.raw.itemsize, 1))
        pieces = []
        with self.opened() as source:
            for run in np.split(rows, np.flatnonzero(breaks) + 1):
                piece = self.read(source, slice(int(run[0]), int(run[-1]) + 1), columns)
                pieces.append(piece[run - run[0]])
        return pieces

    def read_columns(self, columns: IndexArray, max_bytes: int) -> Any:
        """Some columns of all rows: an array stored by columns, or a CSR array."""
        if self.is_sparse:
            pieces = [block.matrix for block in self.bands(max_bytes, columns)]
            return stacked(pieces, len(columns), self)
        At = np.empty((len(columns), self.shape[0]), dtype=self.dtype)
        for rows, part, matrix in self.blocks(max_bytes, columns):
            At[part, rows] = matrix.T
        return At.T

    def count(self, n_bytes: int) -> None:
        """Note that so many bytes were read."""
        self.bytes_read += int(n_bytes)

    def place(self, rows: slice) -> str:
        """Names some rows in messages."""
        return f"rows {rows.start} to {rows.stop - 1} of {self.label}"


class ChosenRows(Storage):
    """Some rows of another storage, in any order."""

    def __init__(self, base: Storage, rows: IndexArray) -> None:
        super().__init__(base.label, (len(rows), base.shape[1]), base.raw, base.feature_names)
        self.base = base
        self.chosen = rows
        self.is_sparse, self.by_columns, self.dtype = base.is_sparse, base.by_columns, base.dtype

    @property
    def density(self) -> float:
        """That of all rows."""
        return self.base.density

    @property
    def entry_bytes(self) -> int:
        """What is read, and a copy of the rows that are chosen."""
        return self.base.entry_bytes + self.dtype.itemsize

    @property
    def column_bytes(self) -> float:
        """A part of those of all rows."""
        return self.base.column_bytes * self.shape[0] / max(self.base.shape[0], 1)

    @property
    def least_bytes(self) -> int:
        """That of the base."""
        return self.base.least_bytes

    def opened(self) -> AbstractContextManager[Any]:
        """Nothing to open: the base does when it is read."""
        return _Nothing()

    def read(self, source: Any, rows: slice, columns: IndexArray | None) -> Any:
        """Rows of the base, which counts the bytes."""
        before = self.base.bytes_read
        matrix = self.base.take_rows(self.chosen[rows], columns)
        self.count(self.base.bytes_read - before)
        return matrix

    def place(self, rows: slice) -> str:
        """As the base calls them."""
        chosen = self.chosen[rows]
        return self.base.place(slice(int(chosen.min()), int(chosen.max()) + 1))


class _Nothing(AbstractContextManager[None]):
    def __exit__(self, *error: object) -> None:
        return None


def merged_cuts(cuts: IndexArray, most: int) -> IndexArray:
    """Fewer cuts, so that pieces have as many rows as possible up to ``most``; none is cut further."""
    kept = [int(cuts[0])]
    for before, cut in pairwise(cuts[1:]):
        if cut - kept[-1] > most:
            kept.append(int(before))
    return np.array([*kept, int(cuts[-1])])


def stacked(pieces: list[Any], width: int, storage: Storage) -> Any:
    """Pieces below each other, which may be none."""
    if len(pieces) == 1:
        return pieces[0]
    if storage.is_sparse:
        return sp.vstack(pieces, format="csr") if pieces else sp.csr_array((0, width), dtype=storage.dtype)
    return np.concatenate(pieces) if pieces else np.empty((0, width), dtype=storage.dtype)


def delivered_dtype(raw: np.dtype[Any], label: str) -> np.dtype[Any]:
    """float32 for float32, float64 for all other real numbers; anything else is refused."""
    if raw.kind not in "fiub":
        raise TypeError(f"{label} must hold real numbers, got dtype {raw}. Write it as float32 or float64.")
    return np.dtype(np.float32 if raw == np.float32 else np.float64)


def truncated(label: str, needed: int, found: int) -> ValueError:
    """The error for a file that ends too early."""
    return ValueError(
        f"{label} is truncated: its data need {needed} bytes ({format_bytes(needed)}), the file has {found}. "
        "Write or copy it again."
    )
