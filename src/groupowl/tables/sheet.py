"""Sheets: the columns of a file by name, before anyone has said what they are for, and their values, checked.

A sheet answers the same questions whatever the file: is a column numbers, is it categories, its numbers, its labels,
and where in the file a cell is. Readers make sheets; :mod:`groupowl.tables.builder` makes tables of them.
"""

from __future__ import annotations

import numbers
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._text import counted, listed
from .._typing import FloatArray, IndexArray
from ..designs import Design, MemmapDesign
from .names import NumberedNames, check_names, own_names
from .table import TableError, rows_of

_NUMBER = re.compile(r"\s*[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?|0x[\da-f]+|inf(inity)?|nan)\s*", re.ASCII | re.IGNORECASE)
_THOUSANDS = re.compile(r"(?<=\d)[\s_'\N{RIGHT SINGLE QUOTATION MARK}](?=\d)")
_SPELLING = "Numbers have a decimal point, a plain minus and nothing between thousands."
# Its square is about the largest double.
_LARGEST = np.sqrt(np.finfo(np.float64).max)


@dataclass(frozen=True, eq=False, kw_only=True)
class Sheet:
    """Columns of a file: a matrix, and pyarrow columns beside it.

    Attributes
    ----------
    source : str
        The file, for messages.
    names : NumberedNames
        Of the columns, all different.
    n_rows : int
    X : ndarray, csr_array, MemmapDesign or None
        Its columns are the first ones of the sheet; None for CSV and Parquet files, which have no matrix.
    columns : mapping of int to pyarrow.ChunkedArray
        Columns after those of X, and those of text, which have no meaning in X, by position.
    index : tuple of str or None
        Names of the rows, where the file has them apart from its columns.
    suggested_targets : tuple of int
        Columns that the format itself says are targets.
    categorical : frozenset of int
        Columns of numbers that are categories all the same.
    zeros_left_out : bool
        Whether columns of zeros at the end may be missing from the file.
    names_its_columns : bool
        Whether the file itself has a name for each column, so that one that is missing moves no other.
    separator : str or None
        What stands between the cells of a text, whose first line has the names.
    is_transposed : bool
        Whether rows of the sheet are columns of the file.
    notes : tuple of str
        Sentences about what the file holds besides its columns, and what was not read.
    """

    source: str
    names: NumberedNames
    n_rows: int
    X: Any = None
    columns: Mapping[int, Any] = field(default_factory=dict)
    index: tuple[str, ...] | None = None
    suggested_targets: tuple[int, ...] = ()
    categorical: frozenset[int] = frozenset()
    zeros_left_out: bool = False
    names_its_columns: bool = False
    separator: str | None = None
    is_transposed: bool = False
    notes: tuple[str, ...] = ()

    @property
    def auxiliary(self) -> range:
        """Columns that are never features unless a role is given to them: arrays beside the X of an archive."""
        return range(len(self.names) if self.X is None else self.X.shape[1], len(self.names))

    @cached_property
    def texts(self) -> frozenset[int]:
        """Columns in which some cell is neither a number nor empty; truth values are numbers."""
        return frozenset(j for j, column in self.columns.items() if not _holds_numbers(column.type))

    def check_not_empty(self) -> None:
        """Refuse a file without rows or columns."""
        if self.n_rows == 0 or not self.names:
            what = "has no rows below its header" if self.names else "has no columns"
            raise TableError(f"{self.source} {what}. Give a file with samples.")

    def is_number(self, j: int) -> bool:
        """Whether all cells of a column are numbers or empty."""
        return j not in self.texts

    def is_category(self, j: int) -> bool:
        """Whether a column is text, truth values or declared categories."""
        is_truth = j in self.columns and str(self.columns[j].type) == "bool"
        return j in self.texts or j in self.categorical or is_truth

    def matrix(self, columns: Sequence[int] | IndexArray) -> Any:
        """Columns of numbers as an array, or as the file has them: sparse, on disk; NaN where a cell is empty."""
        wanted = np.asarray(columns, dtype=np.intp)
        is_inside = wanted < (0 if self.X is None else self.X.shape[1])
        if is_inside.all():
            return self._part_of_matrix(wanted)
        others = wanted[~is_inside].tolist()
        beside = np.empty((self.n_rows, len(others)), order="F")
        for k, j in enumerate(others):
            beside[:, k] = self.columns[j].cast("float64", safe=False).to_numpy()
        if not is_inside.any():
            return beside
        part = self._part_of_matrix(wanted[is_inside])
        if isinstance(part, Design):
            names = listed([self.names[j] for j in others])
            raise TableError(f"{self.source} is read from disk while it is fitted: {names} cannot join its features.")
        both: list[Any] = [part, beside]
        joined = sp.hstack(both, format="csr") if sp.issparse(part) else np.hstack(both)
        return joined[:, np.argsort(np.argsort(~is_inside, kind="stable"))]

    def _part_of_matrix(self, columns: IndexArray) -> Any:
        if isinstance(self.X, MemmapDesign):
            return self.X.selected(columns, self.names)
        return self.X if np.array_equal(columns, np.arange(self.X.shape[1])) else self.X[:, columns]

    def dense(self, columns: Sequence[int] | IndexArray) -> FloatArray:
        """The same as an array of doubles, for a few columns."""
        values = self.matrix(columns)
        if isinstance(values, MemmapDesign):
            return values.in_memory()
        return np.asarray(values.toarray() if hasattr(values, "toarray") else values, dtype=np.float64)

    def labels(self, j: int) -> list[Any]:
        """Cells of a column as they are: text, whole numbers, fractions, truth values; None where a cell is empty."""
        cells = self.columns[j].to_pylist() if j in self.columns else self.dense([j])[:, 0].tolist()
        return [_plain(cell) for cell in cells]

    def place(self, i: int, j: int) -> str:
        """Where in the file a cell is, in words."""
        if self.is_transposed:
            sample = self.index[i] if self.index else i + 1
            return f"row {j + 1} (below the header, feature {self.names[j]!r}) of column {sample!r}"
        below = "" if self.separator is None else " (below the header)"  # rows and lines have different numbers
        # names of rows are a column of the file too
        number = "" if self.index is not None and self.X is None else f" (column {j + 1})"
        return f"row {i + 1}{below} of column {self.names[j]!r}{number}"

    def removing_gaps(self) -> str | None:
        """A line of pandas for a file of text, where some samples are left; for pandas a question mark is no gap."""
        import pyarrow as pa

        if self.separator is None:
            return None
        if pa.table({str(j): column for j, column in self.columns.items()}).drop_null().num_rows == 0:
            return None
        separator = "" if self.separator == "," else f", sep={self.separator!r}"
        index, written = ("", ", index=False") if self.index is None else (", index_col=0", "")
        read = f"pandas.read_csv({self.source!r}{separator}{index}, na_values='?')"
        return f"{read}.dropna().to_csv('clean.csv'{written})"

    def apart_from(self, other: Sheet) -> Sheet:
        """The same sheet with names for unnamed columns (y1, y2, ...) that no column of the other has."""
        names = replace(self.names, stem="y", first=1)
        while any(name in other.names or name in names.others for name in replace(names, others=())):
            names = replace(names, stem=names.stem + "_")
        return replace(self, names=names)

    def transposed(self) -> Sheet:
        """The same with rows and columns exchanged: the first column names the features, the header the samples."""
        if self.X is not None:
            raise TableError(
                f"{self.source}: --transpose is for CSV, TSV and Parquet files whose first column names the features. "
                "Files of this format have samples in rows; leave it out."
            )
        if len(self.names) < 2:
            raise TableError(f"{self.source} has one column: --transpose needs feature names and samples beside them.")
        first = 1 if self.index is None else 0  # a nameless first column is the index
        features = [_text(cell) for cell in self.labels(0)] if self.index is None else list(self.index)
        if "" in features:
            row = features.index("") + 1
            raise TableError(f"{self.source}: the first column names the features, but row {row} is empty there.")
        names = own_names(features)
        check_names(self.source, names, "feature")
        X, texts = self._exchanged(range(first, len(self.names)))
        return Sheet(
            source=self.source,
            names=names,
            n_rows=len(X),
            X=X,
            columns=texts,
            index=self.names[first:],
            names_its_columns=True,
            is_transposed=True,
        )

    def _exchanged(self, samples: range) -> tuple[FloatArray, dict[int, Any]]:
        """Numbers of some columns as rows, and the cells of those rows of the file in which some are text."""
        import pandas
        import pyarrow as pa

        X = np.empty((len(samples), self.n_rows))
        has_text = np.zeros(self.n_rows, dtype=bool)
        for i, j in enumerate(samples):
            if self.is_number(j):
                X[i] = self.matrix([j])[:, 0]
                continue
            cells = np.array(self.labels(j), dtype=object)
            X[i] = pandas.to_numeric(cells, errors="coerce").astype(float)
            has_text |= np.isnan(X[i]) & pandas.notna(cells)
        rows = np.flatnonzero(has_text).tolist()
        columns = [self.labels(j) for j in samples] if rows else []
        texts = {i: [None if column[i] is None else _text(column[i]) for column in columns] for i in rows}
        return X, {i: pa.array(cells) for i, cells in texts.items()}


@cache
def _holds_numbers(kind: Any) -> bool:
    """Whether columns of a pyarrow type are numbers; types are few, columns may be many."""
    from pyarrow import types

    tests = (types.is_integer, types.is_floating, types.is_decimal, types.is_boolean, types.is_null)
    return any(test(kind) for test in tests)


def _plain(cell: Any) -> Any:
    """A cell as Python has it: numbers whole where they are, dates and the like as text, None for nothing."""
    if isinstance(cell, float):
        if cell != cell:
            return None
        return int(cell) if cell.is_integer() else cell
    return cell if isinstance(cell, str | bool | int | None) else str(cell)


def _text(cell: Any) -> str:
    """A cell as text; nothing for an empty one."""
    return "" if cell is None else str(cell).strip()


# Values as a fit needs them -----------------------------------------------------------------------------


def numbers_of(
    sheet: Sheet, features: Sequence[int] | IndexArray, *, can_drop: bool = False, rows: IndexArray | None = None
) -> Any:
    """Columns as numbers without gaps; what is wrong is said with row and column.

    Parameters
    ----------
    sheet : Sheet
    features : sequence of int
        Positions of the columns.
    can_drop : bool, default=False
        Whether the user may leave columns out.
    rows : ndarray of int, default=None
        Rows that count; all by default.
    """
    texts = [int(j) for j in features if j in sheet.texts] if sheet.texts else []
    if texts:
        raise TableError(_texts_among_features(sheet, texts, can_drop))
    X = sheet.matrix(features)
    if rows is not None and not np.array_equal(rows, np.arange(sheet.n_rows)):
        X = rows_of(X, rows)
    if not isinstance(X, Design):  # a matrix on disk is checked in the first pass over it
        drop = ", or leave columns out with --drop" if can_drop else ""
        check_complete(sheet, features, X, "feature", f"Fill them in, remove those samples{drop}.")
        _check_sizes(sheet, features, X)
    return X


def _texts_among_features(sheet: Sheet, texts: list[int], can_drop: bool) -> str:
    """A message about the first of some columns that are no numbers; names of samples have an option of their own."""
    more = f" ({counted(len(texts) - 1, 'more column')} like it)" if len(texts) > 1 else ""
    drop = f", or leave columns out with --drop: {listed(sheet.names[j] for j in texts)}" if can_drop else ""
    remedy = f"Encode it as a number{drop}."
    cells = sheet.labels(texts[0])
    are_words = all(isinstance(cell, str) and not is_number(_usual_spelling(cell)) for cell in cells)
    if can_drop and are_words and len(set(cells)) == len(cells):
        option = f"--id-column {shlex.quote(sheet.names[texts[0]])}"
        remedy = f"If it names the samples, use {option}; if not, encode it as a number{drop}."
    return no_number(sheet, texts[0], "feature", remedy, more)


def sample_ids(sheet: Sheet, column: int | None) -> tuple[str, ...] | None:
    """Names of the samples: of a column, or of the rows themselves."""
    return sheet.index if column is None else tuple(_text(cell) for cell in sheet.labels(column))


def class_labels(sheet: Sheet, targets: Sequence[int], rows: Any = slice(None)) -> Any:
    """One label per sample, all of one kind."""
    if len(targets) != 1:
        names = listed(sheet.names[j] for j in targets)
        raise TableError(f"classification takes one target, but --targets has {len(targets)}: {names}.")
    cells, name = sheet.labels(targets[0]), sheet.names[targets[0]]
    chosen = np.arange(sheet.n_rows)[rows].tolist()
    if missing := [i + 1 for i in chosen if cells[i] is None]:
        raise TableError(
            f"{sheet.source}: target {name!r} has {counted(len(missing), 'missing value')} "
            f"(row {listed(missing)}). Remove those samples, or quote a label that looks like a gap."
        )
    labels = [cells[i] for i in chosen]
    if fractions := [label for label in labels if isinstance(label, float)]:
        raise TableError(
            f"{sheet.source}: target {name!r} has fractions such as {fractions[0]!r}, which are no classes. "
            "Use --task regression."
        )
    values = np.array(labels)
    if len(np.unique(values)) < 2:
        raise TableError(f"{sheet.source}: target {name!r} has one class only, {labels[0]!r}. Two or more are needed.")
    return values


def group_values(option: str, sheet: Sheet, j: int) -> Any:
    """The group of each sample, as text."""
    cells = sheet.labels(j)
    if missing := [i + 1 for i, cell in enumerate(cells) if cell is None]:
        raise TableError(
            f"{option}: column {sheet.names[j]!r} of {sheet.source} has {counted(len(missing), 'missing value')} "
            f"(row {listed(missing)}). Give every sample a group."
        )
    return np.array([str(cell) for cell in cells])


def sample_weights(option: str, sheet: Sheet, j: int) -> FloatArray:
    """The weight of each sample: a number, not negative, and not zero for all."""
    if not sheet.is_number(j):
        raise TableError(no_number(sheet, j, "weight", "Weights are numbers."))
    weights = sheet.dense([j])
    check_complete(sheet, [j], weights, "weight", "Every sample needs a weight; 0 leaves it out.")
    if weights.min() < 0.0:
        i = int(np.argmin(weights))
        raise TableError(
            f"{sheet.source}: {sheet.place(i, j)} has the weight {weights[i, 0]:g}. Weights are not below 0."
        )
    if not weights.any():
        raise TableError(f"{option}: all weights in {sheet.names[j]!r} are zero. At least one must be positive.")
    return weights[:, 0]


def no_number(sheet: Sheet, j: int, what: str, remedy: str, more: str = "") -> str:
    """A message about the first cell that is no number."""
    cells = [(i, cell) for i, cell in enumerate(sheet.labels(j)) if cell is not None]
    i, cell = next(((i, cell) for i, cell in cells if not is_number(cell)), (-1, None))
    if i < 0:
        i, cell = cells[0] if cells else (0, None)
        return f"{sheet.source}: {what} with {cell!r} in {sheet.place(i, j)} is stored as text{more}. {remedy}"
    hint = f" {_SPELLING}" if isinstance(cell, str) and is_number(_usual_spelling(cell)) else ""
    shown = f"{cell[:40]}..." if isinstance(cell, str) and len(cell) > 43 else cell
    return f"{sheet.source}: {what} with {shown!r} in {sheet.place(i, j)}, which is no number{more}.{hint} {remedy}"


def _usual_spelling(cell: str) -> str:
    """A number with a decimal comma, separators of thousands or a typographic minus as the others write it."""
    digits = _THOUSANDS.sub("", cell).replace("\N{MINUS SIGN}", "-")
    *groups, last = re.split(r"[.,]", digits)
    return f"{''.join(groups)}.{last}" if groups else digits


def is_number(cell: Any) -> bool:
    """Whether a reader of columns takes a cell for a number; Python would take more."""
    if isinstance(cell, str):
        return _NUMBER.fullmatch(cell) is not None
    return isinstance(cell, numbers.Real) and not isinstance(cell, bool)


def _check_sizes(sheet: Sheet, columns: Sequence[int] | IndexArray, X: Any) -> None:
    """Refuse a column whose sum of squares is more than a double holds."""
    is_sparse = sp.issparse(X)
    cells = X.data if is_sparse else X
    largest = max(abs(float(cells.min(initial=0.0))), abs(float(cells.max(initial=0.0))))
    if largest < _LARGEST / np.sqrt(X.shape[0]):
        return
    sizes = abs(X).max(axis=0)
    k = int(np.argmax(sizes.toarray() if is_sparse else sizes))
    raise TableError(
        f"{sheet.source}: column {sheet.names[columns[k]]!r} has values as large as {largest:.3g}, the squares of "
        "which overflow. Measure it in larger units."
    )


def check_complete(sheet: Sheet, columns: Sequence[int] | IndexArray, values: Any, what: str, remedy: str) -> None:
    """Refuse empty and infinite cells, with their number and their columns."""
    is_sparse = sp.issparse(values)
    cells = values.data if is_sparse else values
    with np.errstate(all="ignore"):
        if np.isfinite(np.sum(cells, dtype=np.float64)):
            return
    if np.isfinite(cells).all():
        return
    kind = "missing" if np.isnan(cells).any() else "infinite"
    bad = np.isnan(cells) if kind == "missing" else np.isinf(cells)
    columns_of_cells = sp.csr_array(values).indices[bad] if is_sparse else np.nonzero(bad)[1]
    counts = np.bincount(columns_of_cells, minlength=values.shape[1])
    found = np.flatnonzero(counts)
    shown = ", ".join(f"{sheet.names[columns[k]]!r} ({counts[k]})" for k in found[:5])
    more = f" and {len(found) - 5} more" if len(found) > 5 else ""
    line = sheet.removing_gaps() if kind == "missing" else None
    example = "" if line is None else f" In Python, {line} removes the samples."
    raise TableError(
        f"{sheet.source} has {counted(int(counts.sum()), f'{kind} value')} in {counted(len(found), f'{what} column')}: "
        f"{shown}{more}. {remedy}{example}"
    )
