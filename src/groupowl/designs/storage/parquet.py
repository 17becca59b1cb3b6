"""Parquet files: one column per feature, with names."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from ..._typing import IndexArray
from .base import Block, FileState, Storage

# What pandas calls an index that it had to store.
_INDEX_PREFIX = "__index_level_"


class ParquetTable(Storage):
    """The columns of a Parquet file, all numeric; missing values become NaN."""

    by_columns = False

    def __init__(self, path: Path) -> None:
        self.path = path
        self.state = FileState.of(path)
        self.arrow = _import_arrow(path)
        try:
            with self.arrow.parquet.ParquetFile(path) as file:
                schema, metadata = file.schema_arrow, file.metadata
                self.groups = np.cumsum(
                    [0, *(metadata.row_group(number).num_rows for number in range(metadata.num_row_groups))]
                )
        except (self.arrow.ArrowInvalid, OSError) as error:
            raise ValueError(f"{path} is no Parquet file that can be read: {error}. Write or copy it again.") from error
        fields = [field for field in schema if not field.name.startswith(_INDEX_PREFIX)]
        names = [field.name for field in fields]
        super().__init__(str(path), (int(self.groups[-1]), len(names)), self._raw(fields), names)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "arrow"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, arrow=_import_arrow(state["path"]))

    def _raw(self, fields: list[Any]) -> Any:
        """float32 if all columns are, else float64."""
        types = self.arrow.types
        for field in fields:
            numeric = types.is_floating(field.type) or types.is_integer(field.type) or types.is_boolean(field.type)
            if not numeric:
                raise TypeError(
                    f"{self.path} must hold numbers, but column {field.name!r} is of type {field.type}. "
                    "Encode text or categories as numbers first, or drop the column."
                )
        return np.float32 if all(types.is_float32(field.type) for field in fields) else np.float64

    @property
    def least_bytes(self) -> int:
        """The largest group of rows, of which a column is read as a whole, and a copy."""
        return 2 * int(np.diff(self.groups).max(initial=0)) * self.raw.itemsize

    @property
    def entry_bytes(self) -> int:
        """As Arrow has it, and as an array."""
        return 2 * self.raw.itemsize

    @contextmanager
    def opened(self) -> Iterator[Any]:
        """The file."""
        self.state.check()
        with self.arrow.parquet.ParquetFile(self.path, memory_map=False, pre_buffer=False) as file:
            yield file

    def bands(self, max_bytes: int, columns: IndexArray | None = None) -> Iterator[Block]:
        """Batches of rows, in order, decoded once."""
        names = self._names(columns)
        height = int(max(1, max_bytes // (self.shape[1] * self.entry_bytes)))
        start = 0
        with self.opened() as file:
            for batch in file.iter_batches(batch_size=height, columns=names, use_threads=False):
                rows = slice(start, start + batch.num_rows)
                yield Block(rows, slice(0, len(names)), self._matrix(batch, names))
                start = rows.stop

    def read(self, source: Any, rows: slice, columns: IndexArray | None) -> Any:
        """Rows of the groups that hold them."""
        names = self._names(columns)
        first, last = np.searchsorted(self.groups, [rows.start, rows.stop - 1], side="right") - 1
        table = source.read_row_groups(list(range(first, last + 1)), columns=names, use_threads=False)
        offset = int(rows.start - self.groups[first])
        return self._matrix(table.slice(offset, rows.stop - rows.start), names)

    def runs(self, max_bytes: int) -> IndexArray:
        """The groups of rows."""
        return np.unique(self.groups)

    def _names(self, columns: IndexArray | None) -> list[str]:
        names = self.feature_names or []
        return names if columns is None else [names[j] for j in columns]

    def _matrix(self, table: Any, names: list[str]) -> Any:
        matrix = np.empty((table.num_rows, len(names)), dtype=self.dtype, order="F")
        for j, name in enumerate(names):
            matrix[:, j] = table.column(name).to_numpy(**self._whole(table))
        self.count(matrix.size * self.raw.itemsize)
        return matrix

    def _whole(self, table: Any) -> dict[str, bool]:
        """Arrays, unlike columns of tables, ask for a copy where there are missing values."""
        return {"zero_copy_only": False} if isinstance(table, self.arrow.RecordBatch) else {}


def _import_arrow(path: Path) -> Any:
    try:
        import pyarrow
        import pyarrow.parquet
    except ModuleNotFoundError as error:
        raise ImportError(f"{path} needs pyarrow, which is not installed: pip install groupowl[io].") from error
    return pyarrow
