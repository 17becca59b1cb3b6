"""What stays in memory of a matrix on disk between passes over it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from ..._typing import FloatArray, IndexArray
from ..base import ColumnMoments
from .base import Block, Storage, merged_cuts, stacked

# Rows that come from so few runs of rows are taken out of whole runs.
_FEW_RUNS = 2
# Rows of kept columns that are gathered at a time: so many that a product with them costs more than its call.
_GATHER_BYTES = 1 << 20


class Cache:
    """Moments of the columns, the columns of working sets, and the rows around those that were asked for last.

    Designs of the same storage share it. In another process it is empty again.

    Parameters
    ----------
    storage : Storage
    max_bytes : int
        Of a piece that is read at once.

    Attributes
    ----------
    moments : tuple of ndarray and ColumnMoments, or None
        Sample weights, and the moments of all columns for them.
    columns : ndarray
        Columns that are here, ascending.
    matrix : ndarray or csr_array, or None
        All rows of them, in the precision that they have on disk.
    nbytes : float
        Memory of the matrix.
    """

    def __init__(self, storage: Storage, max_bytes: int) -> None:
        self.storage = storage
        self.max_bytes = max_bytes
        self.moments: tuple[FloatArray, ColumnMoments] | None = None
        self.runs: dict[int, Any] = {}  # of rows, by number
        self.clear()

    def __reduce__(self) -> Any:
        return Cache, (self.storage, self.max_bytes)

    # Columns ----------------------------------------------------------------------------------------

    def clear(self) -> None:
        """Give up the columns."""
        self.columns: IndexArray = np.zeros(0, dtype=np.intp)
        self.matrix: Any = None
        self.nbytes = 0.0

    def keep(self, columns: IndexArray, room: float) -> bool:
        """Have these columns here, beside others if both fit into so many bytes; False where they alone do not fit.

        Where some are missing, all are read: that is one pass, as for those that are missing.
        """
        column_bytes = self.storage.memory_bytes / self.storage.shape[1]
        wanted = np.unique(columns)
        new = np.setdiff1d(wanted, self.columns, assume_unique=True)
        fits_beside = self.nbytes + len(new) * column_bytes <= room
        if not fits_beside and len(wanted) * column_bytes > room:
            return False
        if len(new) or not fits_beside:
            together = np.union1d(wanted, self.columns) if fits_beside else wanted
            self.clear()  # before others take its place
            self.matrix = self.storage.read_columns(together, self.max_bytes)
            self.columns = together
            self.nbytes = self.matrix.size * self.storage.memory_bytes / max(self.storage.n_stored, 1)
        return True

    def blocks(self, columns: IndexArray) -> Iterator[Block]:
        """Columns that are here, some rows at a time."""
        n_samples, places = self.storage.shape[0], np.searchsorted(self.columns, columns)
        row_bytes = len(columns) * self.storage.dtype.itemsize
        step = max(1, min(self.max_bytes, _GATHER_BYTES) // row_bytes)
        for start in range(0, n_samples, step):
            rows = slice(start, min(start + step, n_samples))
            yield Block(rows, slice(0, len(columns)), self.matrix[rows][:, places])

    # Rows -------------------------------------------------------------------------------------------

    @cached_property
    def cuts(self) -> IndexArray:
        """Where rows are cut into runs that are read together."""
        return merged_cuts(self.storage.cuts(self.max_bytes), self.storage.rows_within(self.max_bytes))

    def shuffled(self, rng: np.random.Generator) -> IndexArray:
        """Runs of rows in random order, the rows of each run shuffled: what follows each other is read together."""
        runs = [np.arange(start, stop) for start, stop in pairwise(self.cuts)]
        return np.concatenate([rng.permutation(runs[number]) for number in rng.permutation(len(runs))])

    def take_rows(self, rows: IndexArray) -> Any:
        """Some rows; where they come from few runs of rows, these are read whole, and stay for the next time."""
        numbers = np.searchsorted(self.cuts, rows, side="right") - 1
        wanted = np.unique(numbers).tolist()
        if len(wanted) > _FEW_RUNS:
            return self.storage.take_rows(rows)
        self.runs = {number: run for number, run in self.runs.items() if number in wanted}
        pieces = []
        for number in wanted:
            if number not in self.runs:
                start, stop = self.cuts[number : number + 2].tolist()
                self.runs[number] = self.storage.read_rows(slice(start, stop))
            pieces.append(self.runs[number][rows[numbers == number] - self.cuts[number]])
        order = np.argsort(numbers, kind="stable")
        return stacked(pieces)[np.argsort(order)]
