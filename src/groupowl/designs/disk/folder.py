"""A folder of files with some rows each."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np

from ..._typing import IndexArray
from .base import Block, Storage, merged_cuts, stacked


class RowBlocks(Storage):
    """Storages below each other: all with the same columns."""

    def __init__(self, label: str, parts: Sequence[Storage]) -> None:
        first = parts[0]
        for part in parts:
            _check_columns(first, part)
        single = all(part.dtype == np.float32 for part in parts)
        self.parts = parts
        self.starts = np.cumsum([0, *(part.shape[0] for part in parts)])
        shape = (int(self.starts[-1]), first.shape[1])
        super().__init__(label, shape, np.float32 if single else np.float64, first.feature_names)
        self.is_sparse = first.is_sparse

    @property
    def nbytes(self) -> int:
        """Of all parts."""
        return sum(part.nbytes for part in self.parts)

    @property
    def entry_bytes(self) -> int:
        """The largest of the parts, and a copy where precision differs."""
        return max(part.entry_bytes + (self.dtype.itemsize if part.dtype != self.dtype else 0) for part in self.parts)

    @property
    def least_bytes(self) -> int:
        """The largest of the parts."""
        return max(part.least_bytes for part in self.parts)

    @property
    def density(self) -> float:
        """Of all parts together."""
        rows = max(self.shape[0], 1)
        return sum(part.density * part.shape[0] for part in self.parts) / rows

    @property
    def column_bytes(self) -> float:
        """Of all parts together."""
        return sum(part.column_bytes for part in self.parts)

    def opened(self) -> AbstractContextManager[Any]:
        """Parts are opened when they are read."""
        return nullcontext()

    def cuts(self, max_bytes: int) -> IndexArray:
        """Those of the parts."""
        return self._joined([part.cuts(max_bytes) for part in self.parts])

    def runs(self, max_bytes: int) -> IndexArray:
        """Those of the parts, small ones together."""
        return merged_cuts(self._joined([part.runs(max_bytes) for part in self.parts]), self.rows_within(max_bytes))

    def _joined(self, cuts: list[IndexArray]) -> IndexArray:
        return np.unique(np.concatenate([start + own for start, own in zip(self.starts[:-1], cuts, strict=True)]))

    def bands(self, max_bytes: int, columns: IndexArray | None = None) -> Iterator[Block]:
        """Those of the parts, one after the other; parts that are stored by columns are read by rows, too."""
        for start, part in zip(self.starts[:-1], self.parts, strict=True):
            for rows, chosen, matrix in self._counted(part, part.bands(max_bytes, columns)):
                shifted = slice(int(rows.start + start), int(rows.stop + start))
                yield Block(shifted, chosen, matrix.astype(self.dtype, copy=False))

    def _counted(self, part: Storage, blocks: Iterator[Block]) -> Iterator[Block]:
        before = part.bytes_read
        for block in blocks:
            self.count(part.bytes_read - before)
            before = part.bytes_read
            yield block

    def read(self, source: Any, rows: slice, columns: IndexArray | None) -> Any:
        """From the parts that hold the rows."""
        pieces = []
        for number in self._numbers(rows):
            part, start = self.parts[number], int(self.starts[number])
            own = slice(max(rows.start - start, 0), min(rows.stop - start, part.shape[0]))
            before = part.bytes_read
            pieces.append(part.read_rows(own, columns).astype(self.dtype, copy=False))
            self.count(part.bytes_read - before)
        return stacked(pieces, self.shape[1] if columns is None else len(columns), self)

    def ascending_rows(self, rows: IndexArray, columns: IndexArray | None) -> list[Any]:
        """From the parts, each in its own way."""
        pieces: list[Any] = []
        for number in self._numbers(slice(int(rows[0]), int(rows[-1]) + 1)):
            part, (start, stop) = self.parts[number], self.starts[number : number + 2]
            own = rows[(rows >= start) & (rows < stop)] - start
            if len(own):
                before = part.bytes_read
                pieces.extend(piece.astype(self.dtype, copy=False) for piece in part.ascending_rows(own, columns))
                self.count(part.bytes_read - before)
        return pieces

    def _numbers(self, rows: slice) -> list[int]:
        """Parts that hold some of the rows."""
        overlaps = (self.starts[:-1] < rows.stop) & (self.starts[1:] > rows.start)
        return [int(number) for number in np.flatnonzero(overlaps)]

    def place(self, rows: slice) -> str:
        """By the file and its own rows."""
        numbers = self._numbers(rows)
        if len(numbers) != 1:
            return super().place(rows)
        part, start = self.parts[numbers[0]], int(self.starts[numbers[0]])
        return part.place(slice(rows.start - start, rows.stop - start))


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


def open_folder(path: Path, openers: Mapping[str, Callable[[Path], Storage]]) -> Storage:
    """All files of a folder, in the natural order of their names: 2 before 10. Names with . or _ in front are left."""
    files = sorted((file for file in path.iterdir() if file.name[0] not in "._"), key=lambda file: _natural(file.name))
    known = ", ".join(openers)
    if not files:
        raise ValueError(f"{path} is an empty folder: it must hold blocks of rows ({known}).")
    for file in files:
        if file.suffix.lower() not in openers or not file.is_file():
            raise ValueError(
                f"{path} holds {file.name!r}, which is no block of rows: those end in {known}. Move it elsewhere."
            )
    return RowBlocks(str(path), [openers[file.suffix.lower()](file) for file in files])


def _natural(name: str) -> list[tuple[int, int, str]]:
    """Key that sorts numbers inside names by their value."""
    return [(0, int(piece), "") if piece.isdigit() else (1, 0, piece) for piece in re.split(r"(\d+)", name)]
