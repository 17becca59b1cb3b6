"""Parquet files: one column per feature, with names."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from ..._typing import IndexArray
from .base import Block, FileState, Storage, merged_cuts, stacked

# Rows are decoded so many bytes at a time.
_BATCH_BYTES = 1 << 20
# What pandas calls an index that it had to store.
_INDEX_PREFIX = "__index_level_"


class ParquetTable(Storage):
    """The columns of a Parquet file, all numeric; missing values become NaN."""

    reads_whole_runs = True

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
        height = self.rows_within(max_bytes)
        start = 0
        with self.opened() as file:
            for batch in file.iter_batches(batch_size=height, columns=names, use_threads=False):
                rows = slice(start, start + batch.num_rows)
                self.count(batch.num_rows * len(names) * self.raw.itemsize)
                yield Block(rows, slice(0, len(names)), self._matrix(batch, names))
                start = rows.stop

    def read(self, source: Any, rows: slice, columns: IndexArray | None) -> Any:
        """Rows of the groups that hold them, which are decoded in small batches: groups may be large."""
        names = self._names(columns)
        first, last = np.searchsorted(self.groups, [rows.start, rows.stop - 1], side="right") - 1
        groups = list(range(first, last + 1))
        pieces, start = [], int(self.groups[first])
        height = self.rows_within(_BATCH_BYTES)
        for batch in source.iter_batches(batch_size=height, row_groups=groups, columns=names, use_threads=False):
            self.count(batch.num_rows * len(names) * self.raw.itemsize)
            left, right = max(rows.start - start, 0), min(rows.stop - start, batch.num_rows)
            if left < right:
                pieces.append(self._matrix(batch.slice(left, right - left), names))
            start += batch.num_rows
        return stacked(pieces, len(names), self)

    def runs(self, max_bytes: int) -> IndexArray:
        """Groups of rows, small ones together and large ones in parts."""
        most = self.rows_within(max_bytes)
        cuts = [np.arange(start, stop, most) for start, stop in pairwise(self.groups)]
        return merged_cuts(np.concatenate([*cuts, self.groups[-1:]]), most)

    def _names(self, columns: IndexArray | None) -> list[str]:
        names = self.feature_names or []
        return names if columns is None else [names[j] for j in columns]

    def _matrix(self, batch: Any, names: list[str]) -> Any:
        matrix = np.empty((batch.num_rows, len(names)), dtype=self.dtype, order="F")
        for j, name in enumerate(names):
            matrix[:, j] = batch.column(name).to_numpy(zero_copy_only=False)
        return matrix


def _import_arrow(path: Path) -> Any:
    try:
        import pyarrow
        import pyarrow.parquet
    except ModuleNotFoundError as error:
        raise ImportError(f"{path} needs pyarrow, which is not installed: pip install groupowl[io].") from error
    return pyarrow
