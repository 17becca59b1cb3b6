"""Columns of a matrix on disk that were read and are kept in memory, in the precision they have there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..._typing import IndexArray
from .base import Block, Storage

# Rows that are gathered at a time: so many that a product with them costs more than its call.
_GATHER_BYTES = 1 << 20


class ColumnCache:
    """Columns by number, as arrays of all rows, one for each time that columns were read."""

    def __init__(self, storage: Storage) -> None:
        self.storage = storage
        self.clear()

    def clear(self) -> None:
        """Forget everything."""
        self.matrices: list[Any] = []
        self.owner = np.full(self.storage.shape[1], -1, dtype=np.intp)  # which matrix has the column
        self.position = np.zeros(self.storage.shape[1], dtype=np.intp)  # and where

    @property
    def nbytes(self) -> int:
        """Memory in use."""
        return sum(self._nbytes(matrix) for matrix in self.matrices)

    def _nbytes(self, matrix: Any) -> int:
        arrays = (matrix.data, matrix.indices, matrix.indptr) if self.storage.is_sparse else (matrix,)
        return sum(int(array.nbytes) for array in arrays)

    def has(self, columns: IndexArray) -> bool:
        """Whether all these columns are there."""
        return bool(np.all(self.owner[columns] >= 0))

    def keep(self, columns: IndexArray, max_bytes: int, buffer: int) -> bool:
        """Have these columns, at most so many bytes in all; others go where there is no room for both."""
        each = self.storage.column_bytes
        new = np.unique(columns[self.owner[columns] < 0])
        if self.nbytes + len(new) * each > max_bytes:
            if len(np.unique(columns)) * each > max_bytes:
                return False
            self.clear()
            new = np.unique(columns)
        if len(new):
            matrix = self.storage.read_columns(new, buffer)
            self.owner[new] = len(self.matrices)
            self.position[new] = np.arange(len(new))
            self.matrices.append(matrix)
        return True

    def gather(self, rows: slice, columns: IndexArray) -> Any:
        """Some rows of these columns: an array stored by columns, or a CSR array."""
        if self.storage.is_sparse:
            return self._gather_sparse(rows, columns)
        At = np.empty((len(columns), rows.stop - rows.start), dtype=self.storage.dtype)
        for matrix, here, positions in self._found(columns):
            At[here] = matrix.T[positions, rows]
        return At.T

    def _gather_sparse(self, rows: slice, columns: IndexArray) -> Any:
        found = list(self._found(columns))
        if not found:
            return sp.csr_array((rows.stop - rows.start, 0), dtype=self.storage.dtype)
        whole = sp.hstack([matrix[rows][:, positions] for matrix, _, positions in found], format="csr")
        return whole if len(found) == 1 else whole[:, np.argsort(np.concatenate([here for _, here, _ in found]))]

    def _found(self, columns: IndexArray) -> Iterator[tuple[Any, IndexArray, IndexArray]]:
        """Matrices that have some of the columns, which of them, and where."""
        owners = self.owner[columns]
        for number in np.unique(owners):
            here = np.flatnonzero(owners == number)
            yield self.matrices[number], here, self.position[columns[here]]

    def bands(self, max_bytes: int, columns: IndexArray) -> Iterator[Block]:
        """These columns, some rows at a time."""
        width = len(columns) * self.storage.dtype.itemsize
        step = max(1, min(max_bytes, _GATHER_BYTES) // max(width, 1))
        for start in range(0, self.storage.shape[0], step):
            rows = slice(start, min(start + step, self.storage.shape[0]))
            yield Block(rows, slice(0, len(columns)), self.gather(rows, columns))

    #: Kept columns have no order of their own.
    blocks = bands
