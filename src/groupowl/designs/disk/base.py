"""What a design asks of a matrix on disk, for whole matrices, some of their rows, and matrices below each other."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from ..._checks import REAL_KINDS, check_data_shape
from ..._progress import follow_pass
from ..._typing import FloatArray, IndexArray
from ..base import PassCounter
from ..factors import is_sparse
from .memory import too_many_columns

#: Separates the path of a file from the name of an array inside.
INSIDE = "::"
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


class FileState:
    """Number, sizes and times of change of a file, or of all files in a folder, when it was opened first."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.known = self._now()

    def _now(self) -> tuple[int, int, int]:
        """Sums over the files, which need no more memory for a million files than for one."""
        n_files = size = times = 0
        inside = (os.path.join(folder, name) for folder, _, names in os.walk(self.path) for name in names)
        for file in [str(self.path)] if self.path.is_file() else inside:
            found = os.stat(file)
            n_files += 1
            size += found.st_size
            times += found.st_mtime_ns
        return n_files, size, times

    def check(self) -> None:
        """Refuse a file or folder in which something was written since it was opened first."""
        now = self._now()
        if now != self.known:
            before, after = (f"{size} bytes in {n_files} files" for n_files, size, _ in (self.known, now))
            what = f"{self.path} was modified while it was in use: it had {before}, and now has {after}"
            raise RuntimeError(f"{what}, or another time of change. Fit again once nothing writes to it.")


class Storage:
    """A matrix (n_samples, n_features) that is read in pieces.

    A kind of storage says how it is opened (:meth:`open`), how some rows are read then (:meth:`read`), and into which
    bands of rows (:meth:`cuts`) or other pieces (:meth:`block_shape`) a pass is best cut.

    Parameters
    ----------
    label : str
        Names the matrix in messages.
    shape : tuple of int
    raw : dtype
        Of the numbers on disk; single precision is delivered as it is, all other numbers in double precision.
    names : list of str, default=None
        Names of the columns, where the storage has them.
    n_stored : int, default=None
        Stored entries of a sparse matrix, whose pieces are CSR arrays.
    """

    #: Whether single rows can be read, not only all that are compressed together.
    reads_single_rows: bool = False
    #: Whether columns, not rows, are contiguous, so that single rows are slow to read.
    by_columns: bool = False
    #: Of the files behind it; None where there are none, or others look after them.
    state: FileState | None = None

    def __init__(self, label: str, shape: Any, raw: Any, names: Any = None, n_stored: int | None = None) -> None:
        check_data_shape(shape, f" in {label}", needs_samples=False)
        if trouble := too_many_columns(int(shape[1])):
            raise ValueError(f"{label} has the shape {tuple(map(int, shape))}: {trouble}.")
        self.label = label
        self.shape = (int(shape[0]), int(shape[1]))
        self.raw = np.dtype(raw)
        if self.raw.kind not in REAL_KINDS:
            raise TypeError(f"{label} must hold real numbers, got dtype {self.raw}. Write it as float32 or float64.")
        self.dtype = np.dtype(np.float32 if self.raw == np.float32 else np.float64)
        self.feature_names: list[str] | None = names
        self.is_sparse = n_stored is not None
        self.n_stored = self.shape[0] * self.shape[1] if n_stored is None else n_stored
        self.density = self.n_stored / max(self.shape[0] * self.shape[1], 1)
        #: Bytes read so far.
        self.counter = PassCounter()
        index_bytes = _INDEX_BYTES * self.is_sparse
        #: Bytes that a pass over the whole matrix reads, and bytes of it in memory.
        self.nbytes = self.n_stored * (self.raw.itemsize + index_bytes)
        self.memory_bytes = self.n_stored * (self.dtype.itemsize + index_bytes)
        #: Bytes that an entry, stored or not, takes in memory while it is read.
        self.entry_bytes = self.raw.itemsize + (self.dtype.itemsize if self.dtype != self.raw else 0)
        if self.is_sparse:  # and taken apart into indices and values
            self.entry_bytes = max(1, int(5 * self.density * (self.dtype.itemsize + _INDEX_BYTES)))
        #: Bytes of the smallest piece that can be read.
        self.least_bytes = self.shape[1] * self.entry_bytes

    # What kinds of storages differ in ---------------------------------------------------------------

    def open(self) -> AbstractContextManager[Any]:
        """What :meth:`read` takes."""
        return nullcontext()

    def read(self, source: Any, rows: slice, columns: IndexArray | None) -> Any:
        """Some rows of all or the given columns; where nothing else is said, from a matrix in memory."""
        return source[rows] if columns is None else source[rows][:, columns]

    def rows_within(self, max_bytes: int) -> int:
        """Number of rows, at least one, that fit into ``max_bytes``."""
        return int(max(1, max_bytes // max(self.shape[1] * self.entry_bytes, 1)))

    def cuts(self, max_bytes: int) -> IndexArray:
        """Row numbers, from 0 to the last, at which to cut X into bands of about ``max_bytes``."""
        return _cuts(self.shape[0], self.rows_within(max_bytes))

    def block_shape(self, max_bytes: int, n_columns: int) -> tuple[int, int] | None:
        """Rows and columns of pieces that are read well, where these are not bands of rows."""
        return None

    def place(self, rows: slice) -> str:
        """Names some rows in messages."""
        return f"rows {rows.start} to {rows.stop - 1} of {self.label}"

    # Reading ----------------------------------------------------------------------------------------

    def opened(self) -> AbstractContextManager[Any]:
        """Open for reading; refuses files that have changed since they were found."""
        if self.state is not None:
            self.state.check()
        return self.open()

    def blocks(self, max_bytes: int, columns: IndexArray | None = None, *, whole_rows: bool = False) -> Iterator[Block]:
        """All or the given columns in the order of storage: bands of rows, or columns, or parts of them."""
        if columns is not None and np.array_equal(columns, np.arange(self.shape[1])):
            columns = None
        n_columns = self.shape[1] if columns is None else len(columns)
        row_cuts, column_cuts = self.cuts(max_bytes), np.array([0, n_columns])
        shape = None if whole_rows else self.block_shape(max_bytes, n_columns)
        if shape is not None:
            row_cuts, column_cuts = _cuts(self.shape[0], shape[0]), _cuts(n_columns, shape[1])
            columns = np.arange(n_columns) if columns is None else columns
        with self.opened() as source:
            for left, right in pairwise(column_cuts.tolist()):
                wanted = None if columns is None else columns[left:right]
                for start, stop in pairwise(row_cuts.tolist()):
                    rows = slice(start, stop)
                    yield Block(rows, slice(left, right), self.read(source, rows, wanted))

    def read_rows(self, rows: slice, columns: IndexArray | None = None) -> Any:
        """Some consecutive rows."""
        with self.opened() as source:
            return self.read(source, rows, columns)

    def take_rows(self, rows: IndexArray, columns: IndexArray | None = None) -> Any:
        """Any rows in any order, read in runs."""
        wanted, inverse = np.unique(rows, return_inverse=True)
        wanted = wanted if len(wanted) else np.zeros(1, dtype=np.intp)  # a row that is not returned
        if self.reads_single_rows:
            breaks = np.diff(wanted) > max(1, _GAP_BYTES // (self.shape[1] * self.raw.itemsize))
        else:
            breaks = np.diff(np.searchsorted(self.cuts(_RUN_BYTES), wanted, side="right")) > 0
        pieces = []
        with self.opened() as source:
            for run in np.split(wanted, np.flatnonzero(breaks) + 1):
                piece = self.read(source, slice(int(run[0]), int(run[-1]) + 1), columns)
                pieces.append(piece[run - run[0]])
        whole = stacked(pieces)
        return whole if np.array_equal(inverse, np.arange(len(wanted))) else whole[inverse]

    def read_columns(self, columns: IndexArray, max_bytes: int) -> Any:
        """Some columns of all rows: an array stored by columns, or a CSR array."""
        blocks = followed(self, self.blocks(max_bytes, columns), len(columns))
        if self.is_sparse:
            return stacked([block.matrix for block in blocks])
        At = np.empty((len(columns), self.shape[0]), dtype=self.dtype)
        for rows, part, matrix in blocks:
            At[part, rows] = matrix.T
        return At.T


def followed(storage: Storage, blocks: Iterable[Block], n_columns: int) -> Iterable[Block]:
    """Blocks of so many columns of a storage; progress says which share of them has been read."""
    n_entries = max(storage.shape[0] * n_columns, 1)

    def share(block: Block) -> float:
        rows, columns = block.rows, block.columns
        return (rows.stop - rows.start) * (columns.stop - columns.start) / n_entries

    return follow_pass(blocks, share)


class ChosenRows(Storage):
    """Some rows of another storage, in any order."""

    def __init__(self, base: Storage, rows: IndexArray) -> None:
        n_stored = round(base.density * len(rows) * base.shape[1]) if base.is_sparse else None
        super().__init__(base.label, (len(rows), base.shape[1]), base.raw, base.feature_names, n_stored)
        self.base = base
        self.chosen = rows
        self.by_columns = base.by_columns
        self.reads_single_rows = base.reads_single_rows
        self.counter = base.counter
        self.entry_bytes = base.entry_bytes + self.dtype.itemsize  # what is read, and a copy of what is chosen
        self.least_bytes = base.least_bytes

    def read(self, source: Any, rows: slice, columns: IndexArray | None) -> Any:
        return self.base.take_rows(self.chosen[rows], columns)

    def place(self, rows: slice) -> str:
        """As the base calls them."""
        chosen = self.chosen[rows]
        return self.base.place(slice(int(chosen.min()), int(chosen.max()) + 1))


class FilledStorage(Storage):
    """Another storage with a number for each column in place of NaN."""

    def __init__(self, base: Storage, fills: FloatArray) -> None:
        n_stored = base.n_stored if base.is_sparse else None
        super().__init__(base.label, base.shape, base.raw, base.feature_names, n_stored)
        self.base = base
        self.fills = fills
        for name in ("by_columns", "reads_single_rows", "state", "counter", "nbytes", "entry_bytes", "least_bytes"):
            setattr(self, name, getattr(base, name))

    def open(self) -> AbstractContextManager[Any]:
        return self.base.open()

    def cuts(self, max_bytes: int) -> IndexArray:
        return self.base.cuts(max_bytes)

    def block_shape(self, max_bytes: int, n_columns: int) -> tuple[int, int] | None:
        return self.base.block_shape(max_bytes, n_columns)

    def place(self, rows: slice) -> str:
        return self.base.place(rows)

    def read(self, source: Any, rows: slice, columns: IndexArray | None) -> Any:
        fills = self.fills if columns is None else self.fills[columns]
        return _filled(self.base.read(source, rows, columns), fills)

    def blocks(self, max_bytes: int, columns: IndexArray | None = None, *, whole_rows: bool = False) -> Iterator[Block]:
        """Those of the base, filled."""
        fills = self.fills if columns is None else self.fills[columns]
        for rows, across, matrix in self.base.blocks(max_bytes, columns, whole_rows=whole_rows):
            yield Block(rows, across, _filled(matrix, fills[across]))


def _filled(matrix: Any, fills: FloatArray) -> Any:
    """A matrix with numbers of its columns in place of NaN."""
    if is_sparse(matrix):
        data = np.where(np.isnan(matrix.data), fills[matrix.indices], matrix.data).astype(matrix.dtype, copy=False)
        return sp.csr_array((data, matrix.indices, matrix.indptr), shape=matrix.shape)
    is_gap = np.isnan(matrix)
    return np.where(is_gap, fills, matrix).astype(matrix.dtype, copy=False) if is_gap.any() else matrix


class RowBlocks(Storage):
    """Storages below each other: all with the same columns."""

    def __init__(self, label: str, parts: Sequence[Storage], names: list[str] | None = None) -> None:
        first = parts[0]
        for part in parts:
            _check_columns(first, part)
        if names is not None and len(names) != first.shape[1]:
            raise ValueError(f"{label} has {first.shape[1]} columns, but {len(names)} names of them. Make it again.")
        self.parts = parts
        self.starts = np.cumsum([0, *(part.shape[0] for part in parts)])
        raw = np.result_type(*(part.dtype for part in parts))
        n_stored = sum(part.n_stored for part in parts) if first.is_sparse else None
        super().__init__(label, (self.starts[-1], first.shape[1]), raw, names or first.feature_names, n_stored)
        self.reads_single_rows = all(part.reads_single_rows for part in parts)
        self.nbytes = sum(part.nbytes for part in parts)
        self.entry_bytes = max(part.entry_bytes for part in parts)
        self.least_bytes = max(part.least_bytes for part in parts)
        for part in parts:
            part.counter = self.counter

    def cuts(self, max_bytes: int) -> IndexArray:
        cuts = [start + part.cuts(max_bytes) for start, part in zip(self.starts[:-1], self.parts, strict=True)]
        return np.unique(np.concatenate(cuts))

    def blocks(self, max_bytes: int, columns: IndexArray | None = None, *, whole_rows: bool = False) -> Iterator[Block]:
        """Bands of the parts, each of which is open while it is read."""
        for start, part in zip(self.starts.tolist(), self.parts, strict=False):
            for rows, across, matrix in part.blocks(max_bytes, columns, whole_rows=True):
                here = slice(start + rows.start, start + rows.stop)
                yield Block(here, across, matrix.astype(self.dtype, copy=False))

    def read(self, source: Any, rows: slice, columns: IndexArray | None) -> Any:
        return stacked([part.read_rows(own, columns).astype(self.dtype, copy=False) for part, own in self._parts(rows)])

    def _parts(self, rows: slice) -> list[tuple[Storage, slice]]:
        """Parts that hold some of the rows, and their own rows."""
        found = []
        first, last = np.searchsorted(self.starts, [rows.start + 1, rows.stop]).tolist()
        for part, start in zip(self.parts[first - 1 : last], self.starts[first - 1 : last].tolist(), strict=True):
            own = slice(max(rows.start - start, 0), min(rows.stop - start, part.shape[0]))
            if own.start < own.stop:
                found.append((part, own))
        return found

    def place(self, rows: slice) -> str:
        """By the file and its own rows."""
        parts = self._parts(rows)
        return parts[0][0].place(parts[0][1]) if len(parts) == 1 else super().place(rows)


def _check_columns(first: Storage, part: Storage) -> None:
    kinds = [f"{each.shape[1]} {'sparse' if each.is_sparse else 'dense'} columns" for each in (first, part)]
    if kinds[0] != kinds[1]:
        found = f"{first.label} has {kinds[0]}, {part.label} has {kinds[1]}"
        raise ValueError(f"all blocks must have the same columns, and be all dense or all sparse: {found}.")
    for j, (name, other) in enumerate(zip(first.feature_names or (), part.feature_names or (), strict=False)):
        if name != other:
            found = f"column {j} is {name!r} in {first.label} and {other!r} in {part.label}"
            raise ValueError(f"all blocks must have the same columns in the same order: {found}.")


def stacked(pieces: list[Any]) -> Any:
    """Pieces below each other, at least one."""
    if len(pieces) == 1:
        return pieces[0]
    return sp.vstack(pieces, format="csr") if sp.issparse(pieces[0]) else np.concatenate(pieces)


def _cuts(length: int, step: int) -> IndexArray:
    return np.append(np.arange(0, length, step), length)


def merged_cuts(cuts: IndexArray, most: int) -> IndexArray:
    """Fewer cuts, so that pieces have as many rows as possible up to ``most``; none is cut further."""
    kept = [int(cuts[0])]
    for before, cut in pairwise(cuts[1:]):
        if cut - kept[-1] > most:
            kept.append(int(before))
    return np.array([*kept, int(cuts[-1])])
