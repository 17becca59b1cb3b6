"""Sheets: the columns of a file by name, before anyone has said what they are for.

A sheet answers the same questions whatever the file: is a column numbers, is it categories, its numbers, its labels,
and where in the file a cell is. Readers make sheets; :mod:`groupowl.tables.builder` makes tables of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._typing import FloatArray, IndexArray
from ..designs import Design, MemmapDesign
from .errors import TableError, counted, listed
from .names import NumberedNames, positions_of


@dataclass(frozen=True, eq=False, kw_only=True)
class Sheet(ABC):
    """Columns of a file.

    Attributes
    ----------
    source : str
        The file, for messages.
    names : sequence of str
        Of the columns, all different; those that the file only numbers are made when they are asked for.
    n_rows : int
    index : tuple of str or None
        Names of the rows, where the file has them apart from its columns.
    suggested_targets : tuple of int
        Columns that the format itself says are targets.
    auxiliary : frozenset of int
        Columns that are never features unless a role is given to them: arrays beside the X of an archive.
    zeros_left_out : bool
        Whether columns of zeros at the end may be missing from the file.
    first_index : int
        Number that the file itself gives to its first column; 1 but for some LIBSVM files.
    names_its_columns : bool
        Whether the file itself has a name for each column, so that one that is missing moves no other.
    notes : tuple of str
        Sentences about what the file holds besides its columns, and what was not read.
    """

    source: str
    names: Sequence[str]
    n_rows: int
    index: tuple[str, ...] | None = None
    suggested_targets: tuple[int, ...] = ()
    auxiliary: frozenset[int] = frozenset()
    zeros_left_out: bool = False
    first_index: int = 1
    names_its_columns: bool = False
    notes: tuple[str, ...] = ()

    @property
    def unnamed(self) -> range:
        """Columns whose names only count them: the file has none."""
        return range(self.names.n_numbered if isinstance(self.names, NumberedNames) else 0)

    @cached_property
    def positions(self) -> Mapping[str, int]:
        """Positions of the columns by name."""
        return positions_of(self.names)

    @abstractmethod
    def is_number(self, j: int) -> bool:
        """Whether all cells of a column are numbers or empty."""

    def no_numbers(self, columns: IndexArray) -> list[int]:
        """Those of some columns that are not :meth:`is_number`."""
        return [j for j in columns.tolist() if not self.is_number(j)]

    @abstractmethod
    def is_category(self, j: int) -> bool:
        """Whether a column is text, truth values or declared categories."""

    @abstractmethod
    def matrix(self, columns: Sequence[int] | IndexArray) -> Any:
        """Columns of numbers as an array, or a csr_array where the file is sparse; NaN where a cell is empty."""

    def dense(self, columns: Sequence[int] | IndexArray) -> FloatArray:
        """The same as an array of doubles, for a few columns."""
        values = self.matrix(columns)
        if isinstance(values, MemmapDesign):
            return values.in_memory()
        return np.asarray(values.toarray() if hasattr(values, "toarray") else values, dtype=np.float64)

    def apart_from(self, other: Sheet) -> Sheet:
        """The same sheet with names for unnamed columns (y1, y2, ...) that no column of the other has."""
        if not isinstance(self.names, NumberedNames):
            return self
        stem = "y"
        while any(f"{stem}{j + 1}" in names for j in self.unnamed for names in (other.positions, self.names.others)):
            stem += "_"
        names = NumberedNames(stem, 1, self.names.n_numbered, self.names.others)
        return replace(self, names=names)

    @abstractmethod
    def labels(self, j: int) -> list[Any]:
        """Cells of a column as they are: text, whole numbers, fractions, truth values; None where a cell is empty."""

    def place(self, i: int, j: int) -> str:
        """Where in the file a cell is, in words."""
        return f"row {i + 1} of column {self.names[j]!r} (column {j + 1})"

    def removing_gaps(self) -> str | None:
        """A line of pandas that leaves out samples with missing values; None where there is no short one."""
        return None

    def transposed(self) -> Sheet:
        """The same with rows and columns exchanged, where the format allows it."""
        raise TableError(
            f"{self.source}: --transpose is for CSV, TSV and Parquet files whose first column names the features. "
            "Files of this format have samples in rows; leave it out."
        )

    def check_not_empty(self) -> None:
        """Refuse a file without rows or columns."""
        if self.n_rows == 0 or not self.names:
            what = "has no rows below its header" if self.names else "has no columns"
            raise TableError(f"{self.source} {what}. Give a file with samples.")


def check_names(source: str, names: Sequence[str], what: str = "column") -> None:
    """Refuse names that occur twice, and empty ones."""
    if isinstance(names, NumberedNames):  # which differ: only those that they meet count
        numbered = replace(names, others=())
        names = [*names.others, *(name for name in names.others if name in numbered)]
    seen: set[str] = set()
    twice = sorted({name for name in names if name in seen or seen.add(name)})  # type: ignore[func-returns-value]
    if twice:
        raise TableError(
            f"{source} has {counted(len(twice), f'{what} name')} more than once: {listed(twice)}. "
            "Give every one a name of its own."
        )
    if "" in seen:
        place = list(names).index("") + 1
        raise TableError(f"{source}: {what} {place} has no name. Give it one.")


@dataclass(frozen=True, eq=False, kw_only=True)
class ArrowSheet(Sheet):
    """Columns of a pyarrow table, as CSV and Parquet files are read.

    Attributes
    ----------
    table : pyarrow.Table
        The columns in order.
    categorical : frozenset of str
        Columns of numbers that are categories all the same.
    separator : str or None
        What stands between the cells of a text, whose first line has the names; None for a file that is no text.
    """

    table: Any
    names_its_columns: bool = True
    categorical: frozenset[str] = frozenset()
    separator: str | None = None

    def place(self, i: int, j: int) -> str:
        """Where in the file a cell is, in words."""
        below = "" if self.separator is None else " (below the header)"  # rows and lines have different numbers
        number = f" (column {j + 1})" if self.index is None else ""  # names of rows are a column of the file too
        return f"row {i + 1}{below} of column {self.names[j]!r}{number}"

    def is_number(self, j: int) -> bool:
        """Whether the type is one of numbers; truth values count, and so does a column without any value."""
        return bool(self._numbers[j])

    @cached_property
    def _numbers(self) -> Any:
        """Whether each column is one of numbers; types are few, columns may be many."""
        import pyarrow as pa

        tests = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_boolean, pa.types.is_null)
        kinds = self.table.schema.types
        known = {kind: any(test(kind) for test in tests) for kind in set(kinds)}
        return [known[kind] for kind in kinds]

    def is_category(self, j: int) -> bool:
        """Whether the type is text or truth values, or the file says that numbers are categories."""
        import pyarrow as pa

        is_truth = pa.types.is_boolean(self.table.schema.field(j).type)
        return not self.is_number(j) or is_truth or self.names[j] in self.categorical

    def matrix(self, columns: Sequence[int] | IndexArray) -> FloatArray:
        """Columns as a Fortran-ordered array."""
        import pyarrow as pa

        values = np.empty((self.n_rows, len(columns)), order="F")
        for k, j in enumerate(columns):
            column = self.table.column(int(j))
            if column.type != pa.float64():
                column = column.cast(pa.float64(), safe=False)
            values[:, k] = column.to_numpy()
        return values

    def labels(self, j: int) -> list[Any]:
        """Cells as Python values; dates and the like as text."""
        import pyarrow as pa

        values = self.table.column(j).to_pylist()
        if pa.types.is_floating(self.table.schema.field(j).type):
            return [None if value is None else _plain(value) for value in values]
        return [value if isinstance(value, str | bool | int | None) else str(value) for value in values]

    def removing_gaps(self) -> str | None:
        """A line of pandas for a file of text, where some samples are left; for pandas a question mark is no gap."""
        if self.separator is None or self.table.drop_null().num_rows == 0:
            return None
        separator = "" if self.separator == "," else f", sep={self.separator!r}"
        index, written = ("", ", index=False") if self.index is None else (", index_col=0", "")
        read = f"pandas.read_csv({self.source!r}{separator}{index}, na_values='?')"
        return f"{read}.dropna().to_csv('clean.csv'{written})"

    def transposed(self) -> Sheet:
        """Features in rows: the first column names them, the header names the samples."""
        if len(self.names) < 2:
            raise TableError(f"{self.source} has one column: --transpose needs feature names and samples beside them.")
        if self.index is None:
            features, first = [_text(value) for value in self.labels(0)], 1
        else:  # a nameless first column
            features, first = list(self.index), 0
        empty = [i + 1 for i, name in enumerate(features) if not name]
        if empty:
            raise TableError(f"{self.source}: the first column names the features, but row {empty[0]} is empty there.")
        check_names(self.source, features, "feature")
        samples = range(first, len(self.names))
        X, texts = _exchanged(self, samples)
        return TransposedSheet(
            source=self.source,
            names=tuple(features),
            n_rows=len(samples),
            index=tuple(self.names[first:]),
            X=X,
            texts=texts,
        )


def _exchanged(sheet: ArrowSheet, samples: range) -> tuple[FloatArray, dict[int, list[Any]]]:
    """Samples in rows, and the columns (rows of the file) in which some cell is no number."""
    numeric = [j for j in samples if sheet.is_number(j)]
    X = np.full((len(samples), sheet.n_rows), np.nan)
    X[[j - samples.start for j in numeric]] = sheet.matrix(numeric).T
    mixed = [j for j in samples if not sheet.is_number(j)]
    if not mixed:
        return X, {}
    import pandas

    has_text = np.zeros(sheet.n_rows, dtype=bool)
    for j in mixed:
        cells = np.array(sheet.labels(j), dtype=object)
        X[j - samples.start] = numbers = pandas.to_numeric(cells, errors="coerce").astype(float)
        has_text |= np.isnan(numbers) & np.array([cell is not None for cell in cells])
    rows = np.flatnonzero(has_text)
    cells_of = {j: sheet.labels(j) for j in samples}
    return X, {int(i): [cells_of[j][i] for j in samples] for i in rows}


@dataclass(frozen=True, eq=False, kw_only=True)
class MatrixSheet(Sheet):
    """A matrix, and columns that are not part of it.

    Attributes
    ----------
    X : ndarray or csr_array
        Its columns are the first ones of the sheet.
    texts : mapping of int to list
        Cells of columns that are no numbers; in X such a column has no meaning.
    extras : mapping of int to ndarray
        Numbers of the columns after those of X.
    categorical : frozenset of int
        Columns of numbers that are categories all the same.
    """

    X: Any
    texts: Mapping[int, list[Any]] = field(default_factory=dict)
    extras: Mapping[int, Any] = field(default_factory=dict)
    categorical: frozenset[int] = frozenset()

    def is_number(self, j: int) -> bool:
        """Whether the column is in X, or one of numbers beside it."""
        return j not in self.texts

    def is_category(self, j: int) -> bool:
        """Whether the column is text, or declared to be categories."""
        return j in self.texts or j in self.categorical

    def matrix(self, columns: Sequence[int] | IndexArray) -> Any:
        """Columns of X, or of the numbers beside it."""
        width = self.X.shape[1]
        wanted = np.asarray(columns, dtype=np.intp)
        inside = wanted[wanted < width]
        part = self._part_of_matrix(inside)
        if len(inside) == len(wanted):
            return part
        others = wanted[wanted >= width].tolist()
        beside = np.column_stack([np.asarray(self.extras[j], dtype=np.float64) for j in others])
        if len(inside) == 0:
            return beside
        if isinstance(part, Design):
            names = listed([self.names[j] for j in others])
            raise TableError(f"{self.source} is read from disk while it is fitted: {names} cannot join its features.")
        both: list[Any] = [part, beside]
        stack = sp.hstack(both, format="csr") if sp.issparse(part) else np.hstack(both)
        order = np.concatenate([inside, np.asarray(others, dtype=np.intp)])
        return stack[:, np.argsort(order)[np.searchsorted(np.sort(order), wanted)]]

    def no_numbers(self, columns: IndexArray) -> list[int]:
        """Columns of text, which are few."""
        return [j for j in sorted(self.texts) if j in columns]

    def _part_of_matrix(self, columns: IndexArray) -> Any:
        if isinstance(self.X, MemmapDesign):
            return self.X.selected(columns, self.names)
        return self.X if np.array_equal(columns, np.arange(self.X.shape[1])) else self.X[:, columns]

    def labels(self, j: int) -> list[Any]:
        """Text as it is, numbers as whole ones where they are."""
        if j in self.texts:
            return list(self.texts[j])
        return [_plain(value) for value in self.dense([j])[:, 0].tolist()]


@dataclass(frozen=True, eq=False, kw_only=True)
class TransposedSheet(MatrixSheet):
    """A sheet whose rows are columns of the file."""

    names_its_columns: bool = True

    def place(self, i: int, j: int) -> str:
        """Where in the file a cell is, in words."""
        sample = self.index[i] if self.index else i + 1
        return f"row {j + 1} (below the header, feature {self.names[j]!r}) of column {sample!r}"

    def labels(self, j: int) -> list[Any]:
        """Cells of a row of the file; numbers in a row with text are text, as the file has them."""
        if j not in self.texts:
            return super().labels(j)
        return [None if cell is None else _text(cell) for cell in self.texts[j]]


def _plain(value: Any) -> Any:
    """A number as Python has it: whole where it is, None for NaN."""
    if isinstance(value, float):
        if value != value:
            return None
        return int(value) if value.is_integer() else value
    return value


def _text(value: Any) -> str:
    """A cell as text; whole numbers without a fraction, nothing for an empty cell."""
    return "" if value is None else str(_plain(value)).strip()
