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
from ..designs import Design
from .names import NumberedNames, check_names, own_names
from .table import TableError, rows_of

Positions = Sequence[int] | IndexArray

_NUMBER = re.compile(r"\s*[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?|0x[\da-f]+|inf(inity)?|nan)\s*", re.ASCII | re.IGNORECASE)
_THOUSANDS = re.compile(r"(?<=\d)[\s_'\N{RIGHT SINGLE QUOTATION MARK}](?=\d)")
_SPELLING = "Numbers have a decimal point, a plain minus and nothing between thousands."
# Its square is about the largest double.
_LARGEST = np.sqrt(np.finfo(np.float64).max)


@dataclass(frozen=True, eq=False)
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

    def is_number(self, j: int) -> bool:
        """Whether all cells of a column are numbers or empty."""
        return j not in self.texts

    def is_category(self, j: int) -> bool:
        """Whether a column is text, truth values or declared categories."""
        is_truth = j in self.columns and str(self.columns[j].type) == "bool"
        return j in self.texts or j in self.categorical or is_truth

    def matrix(self, columns: Positions) -> Any:
        """Columns of numbers as an array, or as the file has them: sparse, on disk; NaN where a cell is empty."""
        wanted = np.asarray(columns, dtype=np.intp)
        width = 0 if self.X is None else self.X.shape[1]
        is_inside = wanted < width
        inside, others = wanted[is_inside], wanted[~is_inside].tolist()
        part = self.X
        if getattr(part, "is_on_disk", False):
            part = part.selected(inside, self.names)
        elif part is not None and not np.array_equal(inside, np.arange(width)):
            part = part[:, inside]
        if not others:
            return part
        beside = np.empty((self.n_rows, len(others)), order="F")
        for k, j in enumerate(others):
            column = self.columns[j]
            is_double = str(column.type) == "double"  # as most are: a cast costs more than a copy
            beside[:, k] = (column if is_double else column.cast("float64", safe=False)).to_numpy()
        if len(inside) == 0:
            return beside
        if isinstance(part, Design):
            names = listed(self.names[j] for j in others)
            raise TableError(f"{self.source} is read from disk while it is fitted: {names} cannot join its features.")
        both: list[Any] = [part, beside]
        joined = sp.hstack(both, format="csr") if sp.issparse(part) else np.hstack(both)
        return joined[:, np.argsort(np.argsort(~is_inside, kind="stable"))]

    def dense(self, columns: Positions) -> FloatArray:
        """The same as an array of doubles, for a few columns."""
        values = self.matrix(columns)
        if getattr(values, "is_on_disk", False):
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
        features = self.index or tuple(_text(cell) for cell in self.labels(0))
        if "" in features:
            row = features.index("") + 1
            raise TableError(f"{self.source}: the first column names the features, but row {row} is empty there.")
        names = own_names(features)
        check_names(self.source, names, "feature")
        samples = range(1 if self.index is None else 0, len(self.names))  # a nameless first column is the index
        X, texts = self._exchanged(samples)
        index = self.names[samples.start :]
        return Sheet(
            self.source, names, len(X), X=X, columns=texts, index=index, names_its_columns=True, is_transposed=True
        )

    def _exchanged(self, samples: range) -> tuple[FloatArray, dict[int, Any]]:
        """Numbers of some columns as rows, and the cells of those rows of the file in which some are text."""
        if self.texts.isdisjoint(samples):
            return np.ascontiguousarray(self.matrix(samples).T), {}
        import pandas
        import pyarrow as pa

        cells = np.array([self.labels(j) for j in samples], dtype=object)
        X = np.array([pandas.to_numeric(row, errors="coerce") for row in cells], dtype=np.float64)
        has_text = np.any(np.isnan(X) & pandas.notna(cells), axis=0)
        texts = {j: [None if cell is None else _text(cell) for cell in cells[:, j]] for j in np.flatnonzero(has_text)}
        return X, {int(j): pa.array(column) for j, column in texts.items()}

    # Values as a fit needs them -------------------------------------------------------------------------

    def numbers(self, features: Positions, *, can_drop: bool = False, rows: IndexArray | None = None) -> Any:
        """Columns as numbers without gaps; what is wrong is said with row and column.

        Parameters
        ----------
        features : sequence of int
            Positions of the columns.
        can_drop : bool, default=False
            Whether the user may leave columns out.
        rows : ndarray of int, default=None
            Rows that count; all by default.
        """
        texts = [int(j) for j in features if j in self.texts] if self.texts else []
        if texts:
            raise TableError(self._texts_among_features(texts, can_drop))
        X = self.matrix(features)
        if rows is not None and not np.array_equal(rows, np.arange(self.n_rows)):
            X = rows_of(X, rows)
        if not isinstance(X, Design):  # a matrix on disk is checked in the first pass over it
            drop = ", or leave columns out with --drop" if can_drop else ""
            self.check_complete(features, X, "feature", f"Fill them in, remove those samples{drop}.")
            self._check_sizes(features, X)
        return X

    def _texts_among_features(self, texts: list[int], can_drop: bool) -> str:
        """A message about the first of some columns that are no numbers; one that names the samples has an option."""
        more = f" ({counted(len(texts) - 1, 'more column')} like it)" if len(texts) > 1 else ""
        drop = f", or leave columns out with --drop: {listed(self.names[j] for j in texts)}" if can_drop else ""
        remedy = f"Encode it as a number{drop}."
        cells = self.labels(texts[0])
        are_words = all(isinstance(cell, str) and not is_number(_usual_spelling(cell)) for cell in cells)
        if can_drop and are_words and len(set(cells)) == len(cells):
            option = f"--id-column {shlex.quote(self.names[texts[0]])}"
            remedy = f"If it names the samples, use {option}; if not, encode it as a number{drop}."
        return self.no_number(texts[0], "feature", remedy, more)

    def ids(self, column: int | None) -> tuple[str, ...] | None:
        """Names of the samples: of a column, or of the rows themselves."""
        return self.index if column is None else tuple(_text(cell) for cell in self.labels(column))

    def class_labels(self, targets: Sequence[int], rows: Any = slice(None)) -> Any:
        """One label per sample, all of one kind."""
        if len(targets) != 1:
            names = listed(self.names[j] for j in targets)
            raise TableError(f"classification takes one target, but --targets has {len(targets)}: {names}.")
        what = f"{self.source}: target {self.names[targets[0]]!r}"
        remedy = "Remove those samples, or quote a label that looks like a gap."
        labels = self._full_labels(targets[0], rows, what, remedy)
        if fractions := [repr(label) for label in labels if isinstance(label, float)]:
            raise TableError(
                f"{what} has fractions such as {fractions[0]}, which are no classes. Use --task regression."
            )
        values = np.array(labels)
        if len(np.unique(values)) < 2:
            raise TableError(f"{what} has one class only, {labels[0]!r}. Two or more are needed.")
        return values

    def groups(self, option: str, j: int) -> Any:
        """The group of each sample, as text."""
        what = f"{option}: column {self.names[j]!r} of {self.source}"
        return np.array([str(cell) for cell in self._full_labels(j, slice(None), what, "Give every sample a group.")])

    def _full_labels(self, j: int, rows: Any, what: str, remedy: str) -> list[Any]:
        """Cells of a column in some rows, none of them empty."""
        cells = self.labels(j)
        chosen = np.arange(self.n_rows)[rows].tolist()
        if missing := [i + 1 for i in chosen if cells[i] is None]:
            raise TableError(f"{what} has {counted(len(missing), 'missing value')} (row {listed(missing)}). {remedy}")
        return [cells[i] for i in chosen]

    def weights(self, option: str, j: int) -> FloatArray:
        """The weight of each sample: a number, not negative, and not zero for all."""
        if not self.is_number(j):
            raise TableError(self.no_number(j, "weight", "Weights are numbers."))
        weights = self.dense([j])
        self.check_complete([j], weights, "weight", "Every sample needs a weight; 0 leaves it out.")
        if weights.min() < 0.0:
            i = int(np.argmin(weights))
            raise TableError(
                f"{self.source}: {self.place(i, j)} has the weight {weights[i, 0]:g}. Weights are not below 0."
            )
        if not weights.any():
            raise TableError(f"{option}: all weights in {self.names[j]!r} are zero. At least one must be positive.")
        return weights[:, 0]

    def no_number(self, j: int, what: str, remedy: str, more: str = "") -> str:
        """A message about the first cell that is no number."""
        cells = [(i, cell) for i, cell in enumerate(self.labels(j)) if cell is not None]
        i, cell = next(((i, cell) for i, cell in cells if not is_number(cell)), (-1, None))
        if i < 0:
            i, cell = cells[0] if cells else (0, None)
            return f"{self.source}: {what} with {cell!r} in {self.place(i, j)} is stored as text{more}. {remedy}"
        hint = f" {_SPELLING}" if isinstance(cell, str) and is_number(_usual_spelling(cell)) else ""
        shown = f"{cell[:40]}..." if isinstance(cell, str) and len(cell) > 43 else cell
        return f"{self.source}: {what} with {shown!r} in {self.place(i, j)}, which is no number{more}.{hint} {remedy}"

    def _check_sizes(self, columns: Positions, X: Any) -> None:
        """Refuse a column whose sum of squares is more than a double holds."""
        is_sparse = sp.issparse(X)
        cells = X.data if is_sparse else X
        largest = max(-float(cells.min(initial=0.0)), float(cells.max(initial=0.0)))
        if largest < _LARGEST / np.sqrt(X.shape[0]):
            return
        sizes = abs(X).max(axis=0)
        name = self.names[columns[int(np.argmax(sizes.toarray() if is_sparse else sizes))]]
        raise TableError(
            f"{self.source}: column {name!r} has values as large as {largest:.3g}, the squares of which overflow. "
            "Measure it in larger units."
        )

    def check_complete(self, columns: Positions, values: Any, what: str, remedy: str) -> None:
        """Refuse empty and infinite cells, with their number and their columns."""
        is_sparse = sp.issparse(values)
        cells = values.data if is_sparse else values
        extremes = cells.min(initial=0.0), cells.max(initial=0.0)
        if np.isfinite(extremes).all():
            return
        kind, is_bad = ("missing", np.isnan) if np.isnan(extremes).any() else ("infinite", np.isinf)
        bad = is_bad(cells)
        counts = np.bincount(values.indices[bad] if is_sparse else np.nonzero(bad)[1], minlength=values.shape[1])
        found = np.flatnonzero(counts)
        shown = listed([f"{self.names[columns[k]]!r} ({counts[k]})" for k in found.tolist()], quoted=False)
        line = self.removing_gaps() if kind == "missing" else None
        example = "" if line is None else f" In Python, {line} removes the samples."
        where = f"{counted(int(counts.sum()), f'{kind} value')} in {counted(len(found), f'{what} column')}"
        raise TableError(f"{self.source} has {where}: {shown}. {remedy}{example}")


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
