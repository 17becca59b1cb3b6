"""What a design asks of a matrix on disk, for whole matrices, some of their rows, and matrices below each other."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from hashlib import blake2b
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from ..._checks import check_data_shape
from ..._typing import IndexArray
from .memory import too_many_columns

# Gaps between wanted rows up to this size are read too: one long read beats two short ones.
_GAP_BYTES = 1 << 14
# Where rows are compressed together, up to so many bytes are read at once to find some of them.
_RUN_BYTES = 1 << 22
# Of a stored entry of a sparse matrix beside its value, at most.
_INDEX_BYTES = 8


class Block(NamedTuple):
    """A piece of a matrix: where it is, and a dense array or CSR array that the next piece may overwrite."""

    rows: slice
    columns: slice  # positions among the columns asked for
    matrix: Any


@dataclass(frozen=True)
class FileState:
    """Sizes and times of change of a file, or of all files in a folder, when it was opened first."""

    path: Path
    is_folder: bool
    n_files: int
    size: int
    digest: bytes

    @classmethod
    def of(cls, path: Path) -> FileState:
        """The state now; of a million files no more is kept than of one."""
        is_folder = path.is_dir()
        digest = blake2b(digest_size=16)
        n_files = size = 0
        for file in _files_in(path) if is_folder else [path]:
            found = os.stat(file)
            digest.update(f"{file}\0{found.st_size}\0{found.st_mtime_ns}\0".encode(errors="surrogateescape"))
            n_files += 1
            size += found.st_size
        return cls(path, is_folder, n_files, size, digest.digest())

    def check(self) -> None:
        """Refuse a file or folder in which something was written since it was opened first."""
        try:
            now = FileState.of(self.path)
        except OSError as error:
            raise RuntimeError(
                f"{self.path} was there when it was opened, and can no longer be read: {error}."
            ) from error
        if now == self:
            return
        change = "was modified while it was in use"
        if now.n_files != self.n_files:
            change += f": from {self.n_files} to {now.n_files} files"
        elif now.size != self.size and not self.is_folder:
            change = f"changed size while it was in use: from {self.size} to {now.size} bytes"
        raise RuntimeError(f"{self.path} {change}. Fit again once nothing writes to it.")


def _files_in(path: Path) -> Iterator[str]:
    for folder, folders, names in os.walk(path):
        folders.sort()
        for name in sorted(names):
            yield os.path.join(folder, name)


@dataclass
class ByteCounter:
    """Counts the bytes that were read."""

    total: int = 0


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
    n_stored : int, default=None
        Stored entries of a sparse matrix, whose pieces are CSR arrays.
    """

    #: Whether reading a few rows takes as long as reading all that are compressed together with them.
    reads_whole_runs: bool = False
    #: Whether columns, not rows, are contiguous, so that single rows are slow to read.
    by_columns: bool = False

    def __init__(
        self,
        label: str,
        shape: tuple[int, ...],
        raw: Any,
        feature_names: list[str] | None = None,
        n_stored: int | None = None,
    ) -> None:
        check_data_shape(shape, f" in {label}", needs_samples=False)
        if trouble := too_many_columns(int(shape[1])):
            raise ValueError(f"{label} has the shape {tuple(map(int, shape))}: {trouble}.")
        self.label = label
        self.shape = (int(shape[0]), int(shape[1]))
        self.raw = np.dtype(raw)
        if self.raw.kind not in "fiub":
            raise TypeError(f"{label} must hold real numbers, got dtype {self.raw}. Write it as float32 or float64.")
        self.dtype = np.dtype(np.float32 if self.raw == np.float32 else np.float64)
        self.feature_names = feature_names
        self.is_sparse = n_stored is not None
        self.n_stored = self.shape[0] * self.shape[1] if n_stored is None else n_stored
        self.counter = ByteCounter()

    @property
    def bytes_read(self) -> int:
        """Bytes read so far."""
        return self.counter.total

    @property
    def nbytes(self) -> int:
        """Bytes that a pass over the whole matrix reads."""
        return self.n_stored * (self.raw.itemsize + _INDEX_BYTES * self.is_sparse)

    @property
    def memory_bytes(self) -> int:
        """Bytes of the whole matrix in memory."""
        return self.n_stored * (self.dtype.itemsize + _INDEX_BYTES * self.is_sparse)

    @property
    def column_bytes(self) -> float:
        """Bytes of a column in memory, on average."""
        return self.memory_bytes / self.shape[1]

    @property
    def density(self) -> float:
        """Fraction of entries that are stored."""
        return self.n_stored / max(self.shape[0] * self.shape[1], 1)

    @property
    def entry_bytes(self) -> int:
        """Bytes that an entry, stored or not, takes in memory while it is read."""
        if self.is_sparse:  # and taken apart into indices and values
            return max(1, int(5 * self.density * (self.dtype.itemsize + _INDEX_BYTES)))
        return self.raw.itemsize + (self.dtype.itemsize if self.dtype != self.raw else 0)

    @property
    def least_bytes(self) -> int:
        """Bytes of the smallest piece that can be read."""
        return self.shape[1] * self.entry_bytes

    # Reading ----------------------------------------------------------------------------------------

    @abstractmethod
    def opened(self) -> AbstractContextManager[Any]:
        """Open for reading; what :meth:`read` takes. Refuses files that have changed since they were found."""

    @abstractmethod
    def read(self, source: Any, rows: slice, columns: IndexArray | None) -> Any:
        """Some rows of all or the given columns, from an opened storage; the next read may overwrite them."""

    def rows_within(self, max_bytes: int) -> int:
        """Rows of a band of at most so many bytes, at least one."""
        return int(max(1, max_bytes // max(self.shape[1] * self.entry_bytes, 1)))

    def cuts(self, max_bytes: int) -> IndexArray:
        """Where rows are cut into bands of at most so many bytes, from 0 to the number of rows."""
        return np.append(np.arange(0, self.shape[0], self.rows_within(max_bytes)), self.shape[0])

    def runs(self, max_bytes: int) -> IndexArray:
        """Where rows are cut into runs that are best read together when single rows are wanted."""
        return self.cuts(max_bytes)

    def bands(self, max_bytes: int, columns: IndexArray | None = None) -> Iterator[Block]:
        """All or the given columns, some rows at a time."""
        width = self.shape[1] if columns is None else len(columns)
        with self.opened() as source:
            for start, stop in pairwise(self.cuts(max_bytes)):
                rows = slice(int(start), int(stop))
                yield Block(rows, slice(0, width), self.read(source, rows, columns))

    def block_shape(self, max_bytes: int, n_columns: int) -> tuple[int, int] | None:
        """Rows and columns of pieces that are read well, where these are not bands of rows."""
        return None

    def blocks(self, max_bytes: int, columns: IndexArray | None = None) -> Iterator[Block]:
        """All or the given columns in the order of storage: bands of rows, or columns, or parts of them."""
        wanted = np.arange(self.shape[1]) if columns is None else columns
        shape = self.block_shape(max_bytes, len(wanted))
        if shape is None:
            yield from self.bands(max_bytes, columns)
            return
        n, (height, width) = self.shape[0], shape
        with self.opened() as source:
            for left, right in pairwise([*range(0, len(wanted), width), len(wanted)]):
                for start, stop in pairwise([*range(0, n, height), n]):
                    rows, part = slice(start, stop), slice(left, right)
                    yield Block(rows, part, self.read(source, rows, wanted[part]))

    def read_rows(self, rows: slice, columns: IndexArray | None = None) -> Any:
        """Some consecutive rows."""
        with self.opened() as source:
            return self.read(source, rows, columns)

    def take_rows(self, rows: IndexArray, columns: IndexArray | None = None) -> Any:
        """Any rows in any order, read in runs."""
        wanted, inverse = np.unique(rows, return_inverse=True)
        if self.reads_whole_runs:
            breaks = np.diff(np.searchsorted(self.runs(_RUN_BYTES), wanted, side="right")) > 0
        else:
            breaks = np.diff(wanted) > max(1, _GAP_BYTES // (self.shape[1] * self.raw.itemsize))
        pieces = []
        with self.opened() as source:
            for run in np.split(wanted, np.flatnonzero(breaks) + 1) if len(wanted) else ():
                piece = self.read(source, slice(int(run[0]), int(run[-1]) + 1), columns)
                pieces.append(piece[run - run[0]])
        whole = self.stacked(pieces, columns)
        return whole if np.array_equal(inverse, np.arange(len(wanted))) else whole[inverse]

    def read_columns(self, columns: IndexArray, max_bytes: int) -> Any:
        """Some columns of all rows: an array stored by columns, or a CSR array."""
        if self.is_sparse:
            return self.stacked([block.matrix for block in self.bands(max_bytes, columns)], columns)
        At = np.empty((len(columns), self.shape[0]), dtype=self.dtype)
        for rows, part, matrix in self.blocks(max_bytes, columns):
            At[part, rows] = matrix.T
        return At.T

    def stacked(self, pieces: list[Any], columns: IndexArray | None = None) -> Any:
        """Pieces below each other, which may be none."""
        if len(pieces) == 1:
            return pieces[0]
        if not pieces:
            nothing = np.empty((0, self.shape[1] if columns is None else len(columns)), dtype=self.dtype)
            return sp.csr_array(nothing) if self.is_sparse else nothing
        return sp.vstack(pieces, format="csr") if self.is_sparse else np.concatenate(pieces)

    def count(self, n_bytes: int) -> None:
        """Note that so many bytes were read."""
        self.counter.total += int(n_bytes)

    def place(self, rows: slice) -> str:
        """Names some rows in messages."""
        return f"rows {rows.start} to {rows.stop - 1} of {self.label}"


class ChosenRows(Storage):
    """Some rows of another storage, in any order."""

    def __init__(self, base: Storage, rows: IndexArray) -> None:
        n_stored = round(base.density * len(rows) * base.shape[1]) if base.is_sparse else None
        super().__init__(base.label, (len(rows), base.shape[1]), base.raw, base.feature_names, n_stored)
        self.base = base
        self.chosen = rows
        self.by_columns = base.by_columns
        self.counter = base.counter

    @property
    def entry_bytes(self) -> int:
        """What is read, and a copy of the rows that are chosen."""
        return self.base.entry_bytes + self.dtype.itemsize

    @property
    def least_bytes(self) -> int:
        return self.base.least_bytes

    def opened(self) -> AbstractContextManager[Any]:
        """Nothing to open: the base does when it is read."""
        return nullcontext()

    def read(self, source: Any, rows: slice, columns: IndexArray | None) -> Any:
        return self.base.take_rows(self.chosen[rows], columns)

    def place(self, rows: slice) -> str:
        """As the base calls them."""
        chosen = self.chosen[rows]
        return self.base.place(slice(int(chosen.min()), int(chosen.max()) + 1))


class RowBlocks(Storage):
    """Storages below each other: all with the same columns."""

    def __init__(self, label: str, parts: Sequence[Storage]) -> None:
        first = parts[0]
        for part in parts:
            _check_columns(first, part)
        self.parts = parts
        self.starts = np.cumsum([0, *(part.shape[0] for part in parts)])
        shape = (int(self.starts[-1]), first.shape[1])
        raw = np.result_type(*(part.dtype for part in parts))
        n_stored = sum(part.n_stored for part in parts) if first.is_sparse else None
        super().__init__(label, shape, raw, first.feature_names, n_stored)
        self.reads_whole_runs = any(part.reads_whole_runs for part in parts)
        for part in parts:
            part.counter = self.counter

    @property
    def nbytes(self) -> int:
        return sum(part.nbytes for part in self.parts)

    @property
    def entry_bytes(self) -> int:
        """The largest of the parts, and a copy where precision differs."""
        return max(part.entry_bytes + (self.dtype.itemsize if part.dtype != self.dtype else 0) for part in self.parts)

    @property
    def least_bytes(self) -> int:
        return max(part.least_bytes for part in self.parts)

    @contextmanager
    def opened(self) -> Iterator[_OpenPart]:
        with ExitStack() as stack:
            yield _OpenPart(self.parts, stack)

    def cuts(self, max_bytes: int) -> IndexArray:
        return self._joined([part.cuts(max_bytes) for part in self.parts])

    def runs(self, max_bytes: int) -> IndexArray:
        return self._joined([part.runs(max_bytes) for part in self.parts])

    def _joined(self, cuts: list[IndexArray]) -> IndexArray:
        return np.unique(np.concatenate([start + own for start, own in zip(self.starts[:-1], cuts, strict=True)]))

    def read(self, source: _OpenPart, rows: slice, columns: IndexArray | None) -> Any:
        pieces = []
        for number in self._numbers(rows):
            part, start = self.parts[number], int(self.starts[number])
            own = slice(max(rows.start - start, 0), min(rows.stop - start, part.shape[0]))
            pieces.append(part.read(source.open(number), own, columns).astype(self.dtype, copy=False))
        return self.stacked(pieces, columns)

    def _numbers(self, rows: slice) -> list[int]:
        """Parts that hold some of the rows."""
        overlaps = (self.starts[:-1] < rows.stop) & (self.starts[1:] > rows.start) & (np.diff(self.starts) > 0)
        return [int(number) for number in np.flatnonzero(overlaps)]

    def place(self, rows: slice) -> str:
        """By the file and its own rows."""
        numbers = self._numbers(rows)
        if len(numbers) != 1:
            return super().place(rows)
        part, start = self.parts[numbers[0]], int(self.starts[numbers[0]])
        return part.place(slice(rows.start - start, rows.stop - start))


class _OpenPart:
    """The one part that is open, of several that are read one after the other."""

    def __init__(self, parts: Sequence[Storage], stack: ExitStack) -> None:
        self.parts = parts
        self.stack = stack
        self.number = -1

    def open(self, number: int) -> Any:
        if number != self.number:
            self.stack.close()
            self.source = self.stack.enter_context(self.parts[number].opened())
            self.number = number
        return self.source


def _check_columns(first: Storage, part: Storage) -> None:
    if part.shape[1] != first.shape[1]:
        raise ValueError(
            f"all blocks must have the same columns: {first.label} has {first.shape[1]}, {part.label} has "
            f"{part.shape[1]}."
        )
    if part.is_sparse != first.is_sparse:
        dense, sparse = (part, first) if first.is_sparse else (first, part)
        raise ValueError(
            f"blocks must be all dense or all sparse: {dense.label} is dense, {sparse.label} is sparse. "
            "Convert one kind into the other."
        )
    names = part.feature_names
    if names != first.feature_names and names is not None and first.feature_names is not None:
        j = next(j for j, (a, b) in enumerate(zip(names, first.feature_names, strict=True)) if a != b)
        raise ValueError(
            f"all blocks must have the same columns in the same order: column {j} is {first.feature_names[j]!r} in "
            f"{first.label} and {names[j]!r} in {part.label}."
        )


def merged_cuts(cuts: IndexArray, most: int) -> IndexArray:
    """Fewer cuts, so that pieces have as many rows as possible up to ``most``; none is cut further."""
    kept = [int(cuts[0])]
    for before, cut in pairwise(cuts[1:]):
        if cut - kept[-1] > most:
            kept.append(int(before))
    return np.array([*kept, int(cuts[-1])])
