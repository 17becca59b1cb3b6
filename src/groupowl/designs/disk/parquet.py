"""Parquet files: one column per feature, with names."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from ..._typing import IndexArray
from .base import FileState, Storage, merged_cuts

# Bytes that are decoded at a time.
_READ_BYTES = 1 << 22
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
        except (self.arrow.ArrowException, OSError) as error:
            raise ValueError(
                f"{path} is no Parquet file that can be read: {_words(error)}. Write or copy it again."
            ) from error
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
        """The largest group of rows."""
        return int(np.diff(self.groups).max(initial=0)) * self.shape[1] * self.raw.itemsize

    def cuts(self, max_bytes: int) -> IndexArray:
        """Groups of rows, small ones together."""
        return merged_cuts(np.unique(self.groups), self.rows_within(max_bytes))

    @contextmanager
    def opened(self) -> Iterator[Any]:
        """The file."""
        self.state.check()
        with self._named(), self.arrow.parquet.ParquetFile(self.path, memory_map=False, pre_buffer=False) as file:
            yield file

    @contextmanager
    def _named(self) -> Iterator[None]:
        """Errors of Arrow with the name of the file, which they lack."""
        try:
            yield
        except (self.arrow.ArrowException, OSError) as error:
            raise RuntimeError(f"{self.label} cannot be read: {_words(error)}. Write or copy it again.") from error

    def read(self, source: Any, rows: slice, columns: IndexArray | None) -> Any:
        """Rows of the groups that hold them."""
        names = self._names(columns)
        matrix = np.empty((rows.stop - rows.start, len(names)), dtype=self.dtype, order="F")
        first, last = np.searchsorted(self.groups, [rows.start, rows.stop - 1], side="right") - 1
        for number in range(first, last + 1):
            start, stop = (int(cut) - rows.start for cut in self.groups[number : number + 2])
            inside = slice(max(-start, 0), min(stop, len(matrix)) - start)
            target = matrix[max(start, 0) : stop]
            for part, table in self._tables(source, number, names):
                for name, column in zip(names[part], target[:, part].T, strict=True):
                    column[:] = table.column(name).to_numpy()[inside]
        return matrix

    def _tables(self, source: Any, number: int, names: list[str]) -> Iterator[tuple[slice, Any]]:
        """Some columns of a group of rows at a time: Arrow takes several times the memory of what it reads."""
        height = int(self.groups[number + 1] - self.groups[number])
        width = max(1, _READ_BYTES // max(height * self.raw.itemsize, 1))
        for left in range(0, len(names), width):
            part = slice(left, left + width)
            yield part, source.read_row_group(number, columns=names[part], use_threads=False)
            self.count(height * len(names[part]) * self.raw.itemsize)

    def _names(self, columns: IndexArray | None) -> list[str]:
        names = self.feature_names or []
        return names if columns is None else [names[j] for j in columns]


def _words(error: Exception) -> str:
    """What Arrow says, in one line."""
    return " ".join(str(error).split()).rstrip(".")


def _import_arrow(path: Path) -> Any:
    try:
        import pyarrow
        import pyarrow.parquet
    except ModuleNotFoundError as error:
        raise ImportError(f"{path} needs pyarrow, which is not installed: pip install groupowl[io].") from error
    return pyarrow
