"""What all views of one matrix on disk share: how much of it may be in memory, and what is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..._checks import IMPUTE, count_message
from ..._typing import FloatArray, IndexArray
from ...norm.kernels import EPS
from ..base import ColumnMoments, LocalDesign, PassCounter
from ..dense import DenseDesign
from ..sparse import SparseDesign
from .base import Storage, merged_cuts
from .memory import format_bytes

# A pass reads pieces of this part of max_memory, at most so many bytes.
_BUFFER_SHARE = 16
_LARGEST_BUFFER = 1 << 23
# Arrays of one number per sample and task that a fit has at its worst moment.
_SAMPLE_ARRAYS = 10
# What libraries take for themselves once they are used.
_OVERHEAD = 16_000_000
# Gram matrices are made from bands of this part of the buffer, of which there are copies in double precision.
_GRAM_SHARE = 4
# Weights for which the moments of the columns are kept.
_KEPT_MOMENTS = 2
# A selection of rows is read into memory if it takes no more than this part of what is left there.
_BATCH_SHARE = 4
# Samples that are drawn from so many runs of rows come from whole runs, read at once.
_FEW_RUNS = 2
# Rows of kept columns that are gathered at a time: so many that a product with them costs more than its call.
_GATHER_BYTES = 1 << 20


class Store:
    """What all views of one matrix on disk share: the storage, the memory it may use, and what is kept of it.

    Views use the columns ``used``, all by default, and only those must be finite; messages name them by ``names``.
    """

    def __init__(
        self,
        storage: Storage,
        max_memory: int,
        used: IndexArray | None = None,
        names: Sequence[str] | None = None,
    ) -> None:
        self.storage = storage
        self.max_memory = max_memory
        self.used = used
        self.names = storage.feature_names if names is None else names
        self.buffer = max(1, min(max_memory // _BUFFER_SHARE, _LARGEST_BUFFER))
        self.n_tasks = 1
        self.forget()
        if storage.least_bytes > max_memory // 4:
            raise ValueError(
                f"max_memory={format_bytes(max_memory)} is too small for {storage.label}: the smallest piece that can "
                f"be read takes {format_bytes(storage.least_bytes)}, and more than a quarter is not left for it. "
                "Raise max_memory, or write the data in smaller pieces."
            )

    def forget(self) -> None:
        """Give up all that is kept."""
        self.clear()
        self.moments: list[tuple[FloatArray, ColumnMoments]] = []
        self.held: tuple[int, Any] | None = None

    def clear(self) -> None:
        """Give up the columns that are kept, in arrays of all rows, one for each time that columns were read."""
        self.matrices: list[Any] = []  # in the precision they have on disk
        self.owner = np.full(self.storage.shape[1], -1, dtype=np.intp)  # which matrix has the column
        self.position = np.zeros(self.storage.shape[1], dtype=np.intp)  # and where

    def __getstate__(self) -> dict[str, Any]:
        kept = ("matrices", "owner", "position", "moments", "held")
        return {name: value for name, value in self.__dict__.items() if name not in kept}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.forget()

    # Memory -----------------------------------------------------------------------------------------

    def reserve(self, n_tasks: int) -> None:
        """Set memory aside for sample space, or refuse where there is not enough of it."""
        self.n_tasks = max(self.n_tasks, n_tasks)
        if self.sample_bytes > self.max_memory:
            raise ValueError(
                f"max_memory={format_bytes(self.max_memory)} is too small: targets, predictors and dual points of "
                f"{self.storage.shape[0]} samples and {self.n_tasks} tasks take about "
                f"{format_bytes(self.sample_bytes)}, whatever is left of X on disk. Raise max_memory."
            )

    @property
    def sample_bytes(self) -> int:
        """Memory for sample space."""
        return _SAMPLE_ARRAYS * 8 * self.storage.shape[0] * self.n_tasks

    @property
    def available(self) -> int:
        """Memory for columns or statistics."""
        piece = max(self.buffer, self.storage.least_bytes)
        return max(self.max_memory - 2 * piece - self.sample_bytes - _OVERHEAD, 0)

    @property
    def batch_bytes(self) -> int:
        """Memory for a selection of rows."""
        return max(self.buffer, self.available // _BATCH_SHARE)

    @property
    def kept_bytes(self) -> int:
        """Memory of the columns that are kept."""
        arrays = [(m.data, m.indices, m.indptr) if self.storage.is_sparse else (m,) for m in self.matrices]
        return sum(int(array.nbytes) for parts in arrays for array in parts)

    # Columns ----------------------------------------------------------------------------------------

    def keep(self, columns: IndexArray, extra: int = 0) -> bool:
        """Have these columns in memory, with ``extra`` bytes to spare; False where they do not fit.

        Others go where there is no room for both.
        """
        wanted = np.unique(columns)
        new = wanted[self.owner[wanted] < 0]
        room, column_bytes = self.available - extra, self.storage.memory_bytes / self.storage.shape[1]
        if self.kept_bytes + len(new) * column_bytes > room:
            if len(wanted) * column_bytes > room:
                return False
            self.clear()
            new = wanted
        if len(new):
            matrix = self.storage.read_columns(new, self.buffer)
            self.owner[new] = len(self.matrices)
            self.position[new] = np.arange(len(new))
            self.matrices.append(matrix)
        return True

    def gather(self, rows: slice, columns: IndexArray) -> Any:
        """Some rows of columns that are kept: an array stored by columns, or a CSR array."""
        owners = self.owner[columns]
        places = [np.flatnonzero(owners == number) for number in np.unique(owners)]
        if self.storage.is_sparse:
            pieces = [sp.csr_array((rows.stop - rows.start, 0), dtype=self.storage.dtype)]
            for here in places:
                pieces.append(self.matrices[owners[here[0]]][rows][:, self.position[columns[here]]])
            whole = sp.hstack(pieces, format="csr")
            return whole[:, np.argsort(np.concatenate(places))] if len(places) > 1 else whole
        At = np.empty((len(columns), rows.stop - rows.start), dtype=self.storage.dtype)
        for here in places:
            At[here] = self.matrices[owners[here[0]]].T[self.position[columns[here]], rows]
        return At.T

    # Reading ----------------------------------------------------------------------------------------

    def blocks(self, columns: IndexArray | None, *, kept: bool) -> Iterator[tuple[slice, slice, LocalDesign]]:
        """Pieces in the order of storage as designs of their own; some rows at a time if the columns are kept."""
        if not kept or columns is None:
            for rows, part, matrix in self.storage.blocks(self.buffer, columns):
                yield rows, part, as_local(matrix)
            return
        n, width = self.storage.shape[0], len(columns) * self.storage.dtype.itemsize
        step = max(1, min(self.buffer, _GATHER_BYTES) // max(width, 1))
        for start in range(0, n, step):
            rows = slice(start, min(start + step, n))
            yield rows, slice(0, len(columns)), as_local(self.gather(rows, columns))

    def bands(self, columns: IndexArray, *, kept: bool) -> Iterator[tuple[slice, LocalDesign]]:
        """Bands of rows for Gram matrices, as designs of their own."""
        if kept:
            yield from ((rows, block) for rows, _, block in self.blocks(columns, kept=True))
            return
        for rows, _, matrix in self.storage.bands(self.buffer // _GRAM_SHARE, columns):
            yield rows, as_local(matrix)

    def moments_for(self, w: FloatArray) -> ColumnMoments:
        """Means and squares of all columns, in one pass that also looks for what is not finite.

        The same weights, or multiples of them, take no second pass.
        """
        parts: dict[int, ColumnMoments] = {}
        with np.errstate(all="ignore"):  # what overflows is refused by whoever uses it
            for known, moments in self.moments:
                factor = float(w[0, 0] / known[0, 0])
                if known is w or np.all(np.abs(w - factor * known) <= 4 * EPS * w):
                    return moments if known is w else moments.weighted(factor)
            for rows, columns, block in self.blocks(None, kept=False):
                found = block.moments(w[rows])
                if not np.isfinite(found.squares.sum()):  # or so large that squares overflow
                    self._check_finite(rows, columns, block.X)
                parts[columns.start] = parts[columns.start] + found if columns.start in parts else found
        moments = ColumnMoments.side_by_side([parts[start] for start in sorted(parts)])
        self.moments = [*self.moments[1 - _KEPT_MOMENTS :], (w, moments)]
        return moments

    def _check_finite(self, rows: slice, columns: slice, matrix: Any) -> None:
        bad = np.zeros(self.storage.shape[1], dtype=np.intp)
        if self.storage.is_sparse:
            bad[columns] = np.bincount(matrix.indices[~np.isfinite(matrix.data)], minlength=matrix.shape[1])
        else:
            bad[columns] = np.count_nonzero(~np.isfinite(matrix), axis=0)
        if self.used is not None:
            bad[np.setdiff1d(np.arange(len(bad)), self.used)] = 0
        if bad.any():
            raise ValueError(count_message(f"X ({self.storage.place(rows)})", bad, IMPUTE, self.names))

    @cached_property
    def runs(self) -> IndexArray:
        """Where rows are cut into runs that are read together."""
        return merged_cuts(self.storage.runs(self.buffer), self.storage.rows_within(self.buffer))

    def take_rows(self, rows: IndexArray) -> Any:
        """Some rows; where they come from few runs of rows, these are read whole, and the last one is kept."""
        cuts = self.runs
        numbers = np.searchsorted(cuts, rows, side="right") - 1
        wanted = np.unique(numbers)
        if len(wanted) > _FEW_RUNS:
            self.held = None
            return self.storage.take_rows(rows)
        known = -1 if self.held is None else self.held[0]
        pieces, places = [], []
        for number in sorted(wanted.tolist(), key=lambda number: number != known):  # the one that is there comes first
            if self.held is None or self.held[0] != number:
                self.held = None  # gone before the next one comes
                self.held = (number, self.storage.read_rows(slice(int(cuts[number]), int(cuts[number + 1]))))
            here = np.flatnonzero(numbers == number)
            pieces.append(self.held[1][rows[here] - cuts[number]])
            places.append(here)
        whole = self.storage.stacked(pieces)
        return whole if len(pieces) == 1 else whole[np.argsort(np.concatenate(places))]


def as_local(matrix: Any, passes: PassCounter | None = None, unit: float = 0.0) -> LocalDesign:
    """The design of a matrix in memory; by itself it counts no products."""
    return SparseDesign(matrix, passes, unit) if sp.issparse(matrix) else DenseDesign(matrix, passes, unit)
