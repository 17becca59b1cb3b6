"""Sheets: the columns of a file by name, before anyone has said what they are for, and their values, checked.

A sheet answers the same questions whatever the file: is a column numbers, is it categories, its numbers, its labels,
and where in the file a cell is. Readers make sheets; :mod:`groupowl.tables.loader` makes tables of them.
"""

from __future__ import annotations

import difflib
import numbers
import re
import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cache, cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from .._text import counted, listed
from .._typing import FloatArray, IndexArray
from ..designs import Design
from .table import Dialect, NumberedNames, TableError

Positions = Sequence[int] | IndexArray

_NUMBER = re.compile(r"\s*[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?|0x[\da-f]+|inf(inity)?|nan)\s*", re.ASCII | re.IGNORECASE)
_POSITION = re.compile(r"[+-]?\d+")
_SPELLING = "Numbers have a decimal point, a plain minus and nothing between thousands. "
_DATE = r"\d{4}-\d\d?-\d\d?.*|\d{1,2}[./]\d{1,2}[./]\d{2,4}"
_GAP = r"\.|[-*/]+|n\.?[ad]\.?|none|nil|missing|unknown|not available"
_IF_SO = "if that is how numbers are written. "
_DECIMAL_COMMA = f"Use --decimal , {_IF_SO}"
_EITHER = "Use --thousands , (or --decimal , if fractions follow the comma). "
_WITH_COMMA = r"[+-]?\d*,\d+(e[+-]?\d+)?"
# Numbers with other marks for fractions or thousands, and what to type about them; no thousands begin with 0.
_MARKS = {
    r"[+-]?\d{1,3}(\.\d{3})+(,\d*)?": f"Use --decimal , --thousands . {_IF_SO}",
    r"[+-]?[1-9]\d{0,2}(,\d{3})+(\.\d*)?": _EITHER,
    _WITH_COMMA: _DECIMAL_COMMA,
}
# Cells that are numbers, or gaps, to somebody else, and what to do about them.
_SPELLINGS = {
    _GAP: "Use --na {cell} if that is a missing value. ",
    _DATE: "Dates are not numbers: count days instead, or leave them out. ",
    **_MARKS,
    r"[+-]?\d{1,3}([\s']\d{3})+([.,]\d*)?": "Use --thousands with what stands between the digits, in quotation marks. ",
    r"[\u2010-\u2015\u2212]\s*[\d.,]+": "Write negative numbers with a plain minus (-). ",
    r"[^\w.,+-]?\s*[+-]?[\d.,]+\s*[^\w.,]?": "Write numbers without units. ",
}


class Part(NamedTuple):
    """A role of numeric columns: its name, remedies for text and gaps in them, and whether gaps are allowed."""

    name: str
    encode: str
    fill: str
    may_miss: bool = False


FEATURES = Part(
    "feature",
    "Encode it as a number, use --categories if it has levels, --id-column if it names the samples, or leave columns "
    "out with --drop.",
    "Use --missing mean or median to fill them in, --missing drop to leave those samples out, or --drop to leave "
    "columns out.",
)
NEW_FEATURES = Part(
    "feature",
    "Encode it as a number.",
    "Use --missing drop to leave those samples out, or fit the model with --missing mean or median.",
)
TARGETS = Part(
    "target",
    "Correct it; if it is a class, use --task classification, and no other target in --targets; with --loss cox, "
    "--event CELL says which cell of such a column is an event.",
    "",
    may_miss=True,
)
CLASSES = Part(
    "target",
    "",
    "A sample without a class says nothing: remove those samples, or quote a word such as NA where it is a label.",
)
CATEGORIES = Part(
    "category",
    "",
    "Use --missing drop to leave those samples out, --missing mean or median to give them the most frequent level, or "
    "give what is missing a level of its own.",
)
GROUPS = Part("--groups", "", "Give every sample a group.")
STRATA = Part("--strata", "", "Give every sample a stratum.")
OFFSETS = Part("offset", "Offsets are numbers.", "Every sample needs an offset; 0 adds nothing.")
EXPOSURES = Part("exposure", "Exposures are numbers.", "Every sample needs an exposure; 1 changes nothing.")
WEIGHTS = Part("weight", "Weights are numbers.", "Every sample needs a weight; 0 leaves it out.")
#: Text of which so large a share are numbers is numbers with a slip, unless somebody says that it has levels.
MOSTLY_NUMBERS = 0.9
# Its square is about the largest double.
_SHOWN_CELLS = 5  # in a message
_LARGEST = np.sqrt(np.finfo(np.float64).max)


@dataclass(frozen=True, eq=False)
class Sheet:
    """Columns of a file: a matrix, and pyarrow columns beside it.

    Attributes
    ----------
    source : str
        The file, for messages.
    names : NumberedNames
        Of the columns; all different, and none of them empty.
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
    separator : str or None
        What stands between the cells of a text.
    dialect : Dialect
        How numbers are written in columns of text.
    is_transposed : bool
        Whether rows of the sheet are columns of the file.
    notes : tuple of str
        Sentences about what the file holds besides its columns, and what was not read.
    """

    source: str
    names: NumberedNames
    X: Any = None
    columns: Mapping[int, Any] = field(default_factory=dict)
    index: tuple[str, ...] | None = None
    suggested_targets: tuple[int, ...] = ()
    categorical: frozenset[int] = frozenset()
    zeros_left_out: bool = False
    separator: str | None = None
    dialect: Dialect = field(default_factory=Dialect)
    is_transposed: bool = False
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        what = "feature" if self.is_transposed else "column"
        names, counts = self.names, Counter(self.names.others)
        twice = sorted(name for name, count in counts.items() if count > 1 or names.find(name) < names.n_numbered)
        if twice:
            repeated = f"{counted(len(twice), f'{what} name')} more than once: {listed(twice)}"
            is_sample = self.separator is not None and all(map(is_number, twice))
            hint = " Use --no-header if the first line is a sample." if is_sample else ""
            raise TableError(f"{self.source} has {repeated}. Give every one a name of its own.{hint}")
        if "" in counts:
            raise TableError(f"{self.source}: {what} {names.index('') + 1} has no name. Give it one.")

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.X.shape[0]) if self.X is not None else len(next(iter(self.columns.values()), ()))

    @property
    def auxiliary(self) -> range:
        """Columns that are never features unless a role is given to them: arrays beside the X of an archive."""
        return range(len(self.names) if self.X is None else self.X.shape[1], len(self.names))

    @cached_property
    def texts(self) -> frozenset[int]:
        """Columns in which some cell is neither a number nor empty; truth values are numbers."""
        return frozenset(j for j, column in self.columns.items() if not _holds_numbers(column.type))

    def is_category(self, j: int) -> bool:
        """Whether a column is text, truth values or declared categories."""
        is_truth = j in self.columns and str(self.columns[j].type) == "bool"
        return j in self.texts or j in self.categorical or is_truth

    def holds_fractions(self, j: int) -> bool:
        """Whether a column of text has fractions, which no labels have, or mostly numbers with other marks."""
        cells = [str(cell).strip() for cell in self.labels(j) if cell is not None]
        if any(map(self._is_fraction, cells)):
            return True
        return any(map(self._other_mark, cells)) and self.number_share(j) >= MOSTLY_NUMBERS

    def _is_fraction(self, cell: str) -> bool:
        """Whether a cell is a number with a decimal point, or with the decimal mark of the file."""
        mark = self.dialect.decimal
        return ("." in cell and is_number(cell)) or (mark in cell and self.dialect.plain(cell) is not None)

    def number_share(self, j: int) -> float:
        """Share of the cells of a column that are numbers, however written, among those that are not empty."""
        cells = [cell for cell in self.labels(j) if cell is not None]
        found = sum(is_number(self._as_number(cell)) or bool(self._other_mark(str(cell).strip())) for cell in cells)
        return found / max(len(cells), 1)

    def matrix(self, columns: Positions) -> Any:
        """Columns of numbers as an array, or as the file has them: sparse, on disk; NaN where a cell is empty."""
        wanted = np.asarray(columns, dtype=np.intp)
        width = 0 if self.X is None else self.X.shape[1]
        is_inside = wanted < width
        inside, others = wanted[is_inside], wanted[~is_inside].tolist()
        part: Any = self.X if len(inside) or not others else None
        if getattr(part, "is_on_disk", False):
            if others:
                names = listed([self.names[j] for j in others])
                raise TableError(f"{self.source}: {names} is beside the matrix on disk and cannot be a feature of it.")
            part = part.selected(inside, self.names)
        elif part is not None and not np.array_equal(inside, np.arange(width)):
            part = part[:, inside]
        if not others:
            return part
        beside = np.empty((self.n_rows, len(others)), order="F")
        for k, j in enumerate(others):
            is_double = str(self.columns[j].type) == "double"  # as most are: a cast costs more than a copy
            column = self.columns[j] if is_double else self.columns[j].cast("float64", safe=False)
            beside[:, k] = column.to_numpy()
        if len(inside) == 0:
            return beside
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
        """Cells of a column: text, whole numbers, fractions, truth values, dates as text; None where one is empty."""
        cells = self.columns[j].to_pylist() if j in self.columns else self.dense([j])[:, 0].tolist()
        return [_plain(cell) for cell in cells]

    def ids(self, column: int | None) -> tuple[str, ...] | None:
        """Names of the samples: of a column, or of the rows themselves."""
        return self.index if column is None else tuple(_text(cell) or "" for cell in self.labels(column))

    def place(self, i: int, j: int) -> str:
        """Where in the file a cell is, in words."""
        if self.is_transposed:
            sample = self.index[i] if self.index else i + 1
            return f"row {j + 1} (below the header, feature {self.names[j]!r}) of column {sample!r}"
        has_header = self.separator is not None and self.names.n_numbered == 0
        below = " (below the header)" if has_header else ""  # rows and lines have different numbers
        # names of rows are a column of the file too
        number = "" if self.index is not None and self.X is None else f" (column {j + 1})"
        return f"row {i + 1}{below} of column {self.names[j]!r}{number}"

    def apart_from(self, other: Sheet) -> Sheet:
        """The same sheet with names for unnamed columns (y1, y2, ...) that no column of the other has."""
        names = replace(self.names, stem="y", first=1)
        while any(name in other.names or name in names.others for name in replace(names, others=())):
            names = replace(names, stem=names.stem + "_")
        return replace(self, names=names)

    def transposed(self) -> Sheet:
        """The same with rows and columns exchanged: the first column names the features, the header the samples."""
        import pandas
        import pyarrow as pa

        if self.X is not None:
            remedy = "Files of this format have samples in rows; leave it out."
            raise TableError(f"{self.source}: --transpose is for CSV, TSV and Parquet files. {remedy}")
        if len(self.names) < 2:
            raise TableError(f"{self.source} has one column: --transpose needs feature names and samples beside them.")
        first = 1 if self.index is None else 0  # a nameless first column is the index
        names = self.ids(0) if self.index is None else self.index
        samples = range(first, len(self.names))
        columns = {j: self.labels(j) if self.is_category(j) else self.matrix([j])[:, 0] for j in samples}
        cells = pandas.DataFrame(columns)
        plain = cells if self.dialect.is_usual else cells.map(self._as_number)
        numbers = plain.apply(pandas.to_numeric, errors="coerce")
        has_text = (numbers.isna() & cells.notna()).any(axis=1)
        texts = {j: pa.array([_text(_plain(cell)) for cell in cells.loc[j]]) for j in np.flatnonzero(has_text).tolist()}
        X = np.ascontiguousarray(numbers.to_numpy(np.float64).T)
        features = NumberedNames(others=names or ())
        return Sheet(self.source, features, X, texts, index=self.names[first:], is_transposed=True)

    def _as_number(self, cell: Any) -> Any:
        """A cell of text as numbers are written in Python, None if it is none in this file; others as they are."""
        return cell if self.dialect.is_usual or not isinstance(cell, str) else self.dialect.plain(cell)

    # Columns as users name them -------------------------------------------------------------------------

    def find_columns(self, option: str, given: Iterable[str]) -> list[int]:
        """Positions of columns, in the order in which they are named, each once.

        Parameters
        ----------
        option : str
            What the user calls them, for messages.
        given : iterable of str
            Names, positions (1 is the first column, -1 the last) or patterns (``gene*``), separated by commas. What is
            the name of a column is that column, whatever else it could mean.
        """
        found: dict[int, None] = {}
        for text in given:
            for part in [text] if text in self.names else map(str.strip, text.split(",")):
                found |= dict.fromkeys(self._matches(option, part))
        return list(found)

    def find_column(self, option: str, given: str) -> int:
        """Position of the one column that is named."""
        found = self.find_columns(option, [given])
        if len(found) != 1:
            shown = listed(self.names[j] for j in found)
            raise TableError(f"{option}: {given!r} names {len(found)} columns of {self.source}: {shown}. Name one.")
        return found[0]

    def _matches(self, option: str, part: str) -> Sequence[int]:
        """Positions of what one word names: a name, a position, or a pattern."""
        names, count = self.names, len(self.names)
        if part in names:
            return [names.index(part)]
        if _POSITION.fullmatch(part):
            number = int(part)
            if number == 0 or not -count <= number <= count:
                what = f"{option} has the position {number}, but {self.source} has {counted(count, 'column')}"
                raise TableError(f"{what}. Positions count from 1; -1 is the last column.")
            return [number - 1 if number > 0 else count + number]
        if found := [j for j, name in enumerate(names) if fnmatchcase(name, part)]:
            return found
        close = difflib.get_close_matches(part, names.others, n=3, cutoff=0.7)  # numbers are all alike
        hint = f"Did you mean {' or '.join(repr(name) for name in close)}?" if close else f"Columns: {listed(names)}."
        if count == 1 and self.separator is not None:
            marks = re.findall(r"[^\w.]", names[0])
            mark = "space" if marks[:1] == [" "] else shlex.quote(marks[0]) if marks else "MARK"
            hint = f"It has one column, {names[0]!r}: give --sep {mark} if that is what separates its cells."
        raise TableError(f"{option}: {self.source} has no column {part!r}. {hint}")

    # Values as a fit needs them -------------------------------------------------------------------------

    def numbers(
        self, columns: Positions, part: Part = NEW_FEATURES, rows: IndexArray | None = None, *, is_small: bool = False
    ) -> Any:
        """Convert columns to numbers; errors name row and column. Gaps become NaN where they are allowed.

        Parameters
        ----------
        columns : sequence of int
            Their positions.
        part : Part
            What they are.
        rows : ndarray of int, default=None
            Rows that count; all by default.
        is_small : bool, default=False
            Whether they become an array of doubles, whatever they are in the file.
        """
        if texts := [int(j) for j in columns if j in self.texts] if self.texts else []:
            raise TableError(self._no_number(texts, part))
        X = self.dense(columns) if is_small else self.matrix(columns)
        if rows is not None and not np.array_equal(rows, np.arange(self.n_rows)):
            X = X.rows(rows) if isinstance(X, Design) else X[rows]
        if not isinstance(X, Design):  # a matrix on disk is checked in the first pass over it
            self._check_values(columns, X, part)
        return X

    def events_and_times(self, targets: Sequence[int], event: str, rows: IndexArray | None = None) -> FloatArray:
        """Pairs of targets: 1 where the first has the cell that stands for an event and 0 elsewhere; and times."""
        chosen = np.arange(self.n_rows) if rows is None else rows
        found = np.empty((len(chosen), len(targets)))
        found[:, 1::2] = self.numbers(targets[1::2], TARGETS, rows, is_small=True)
        for k, j in enumerate(targets[::2]):
            cells = self.labels(j)
            is_event = [np.nan if cells[i] is None else float(_is_written(cells[i], event)) for i in chosen.tolist()]
            if 1.0 not in is_event:
                others = listed(sorted({str(cell) for cell in cells if cell is not None}), shown=_SHOWN_CELLS)
                what = f"--event {event}: no cell of column {self.names[j]!r} is that; it has {others}"
                raise TableError(f"{self.source}: {what}. Give the one that stands for an event.")
            found[:, 2 * k] = is_event
        return found

    def class_labels(self, targets: Sequence[int], rows: IndexArray) -> Any:
        """One label per sample, all of one kind."""
        if len(targets) != 1:
            names = listed(self.names[j] for j in targets)
            raise TableError(f"classification takes one target, but --targets has {len(targets)}: {names}.")
        labels = self._full_labels(targets[0], CLASSES, rows.tolist())
        if fractions := [label for label in labels if isinstance(label, float)]:
            what = f"target {self.names[targets[0]]!r} has fractions such as {fractions[0]!r}, which are no classes"
            raise TableError(f"{self.source}: {what}. Use --task regression.")
        return np.array(labels)

    def check_classes(self, j: int, labels: Any) -> None:
        """Refuse a target of text that nobody has called classes, if most samples would have a class of their own."""
        n_classes = len(np.unique(labels))
        if n_classes <= max(2, len(labels) / 2):
            return
        if self.number_share(j) >= MOSTLY_NUMBERS:
            raise TableError(self._no_number([j], TARGETS))
        what = f"target {self.names[j]!r} is text with {n_classes} different labels in {counted(len(labels), 'sample')}"
        unit = "Write numbers without units. " if re.match(r"\W*\d", str(labels[0])) else ""
        remedy = f"{unit}Use --task classification if these are classes, or name another target in --targets."
        raise TableError(f"{self.source}: {what}, such as {str(labels[0])!r}. {remedy}")

    def groups(self, j: int) -> Any:
        """The group of each sample, as text."""
        return np.array([str(cell) for cell in self._full_labels(j, GROUPS, range(self.n_rows))])

    def frame(self, columns: Sequence[int], numbers: Any, categories: Mapping[int, list[Any]]) -> Any:
        """A data frame of columns: categories as text, all others as numbers."""
        import pandas

        kept = [j for j in columns if j not in categories]
        frame = pandas.DataFrame(numbers, columns=[self.names[j] for j in kept], copy=False)
        cells = {self.names[j]: pandas.Series(cells, dtype=object) for j, cells in categories.items()}
        return pandas.concat([frame, pandas.DataFrame(cells)], axis=1)[[self.names[j] for j in columns]]

    def levels(self, j: int, rows: IndexArray, *, may_miss: bool = False) -> list[Any]:
        """The level of each sample; None where it is missing and may be."""
        if may_miss:
            cells = self.labels(j)
            return [cells[i] for i in rows.tolist()]
        return self._full_labels(j, CATEGORIES, rows.tolist())

    def _full_labels(self, j: int, part: Part, rows: Sequence[int]) -> list[Any]:
        """Cells of a column in some rows, none of them empty."""
        cells = self.labels(j)
        if missing := [i + 1 for i in rows if cells[i] is None]:
            what = f"{counted(len(missing), 'missing value')} (row {listed(missing)})"
            raise TableError(f"{self.source}: {part.name} {self.names[j]!r} has {what}. {part.fill}")
        return [cells[i] for i in rows]

    def strata(self, j: int) -> Any:
        """The stratum of each sample, as text."""
        return np.array([str(cell) for cell in self._full_labels(j, STRATA, range(self.n_rows))])

    def offsets(self, j: int) -> FloatArray:
        """What is added to the predictor of each sample."""
        offsets: FloatArray = self.numbers([j], OFFSETS, is_small=True)[:, 0]
        return offsets

    def log_exposures(self, j: int) -> FloatArray:
        """The logarithm of the exposure of each sample, which must be positive."""
        exposures: FloatArray = self.numbers([j], EXPOSURES, is_small=True)[:, 0]
        i = int(np.argmin(exposures))
        if not exposures[i] > 0.0:
            where = f"--exposure: {self.source}: {self.place(i, j)}"
            raise TableError(
                f"{where} has the exposure {exposures[i]:g}, which has no logarithm. Leave the sample out."
            )
        return np.log(exposures)

    def weights(self, j: int) -> FloatArray:
        """The weight of each sample: a number, not negative, and not zero for all."""
        weights = self.numbers([j], WEIGHTS, is_small=True)[:, 0]
        i = int(np.argmin(weights))
        if weights[i] < 0.0 or not weights.any():
            where = f"--sample-weight: {self.source}: {self.place(i, j)}"
            raise TableError(f"{where} has the weight {weights[i]:g}. Weights are not below 0, and not all of them 0.")
        return weights

    def _no_number(self, columns: Sequence[int], part: Part) -> str:
        """A message about columns of text, and the first cell of them that is no number."""
        j = columns[0]
        wrong = self._first_wrong(j)
        cells = ((i, cell) for i, cell in enumerate(self.labels(j)) if cell is not None)
        i, cell = wrong or next(cells, (0, None))
        shown = f"{cell[:40]}..." if isinstance(cell, str) and len(cell) > 43 else cell
        kind = "which is not a number" if wrong else "which is stored as text"
        more = f"; nor are cells of {listed(self.names[k] for k in columns[1:])}" if len(columns) > 1 else ""
        hint = self._hints(columns)
        what = f"{'an' if part.name[0] in 'aeo' else 'a'} {part.name} is {shown!r}"
        return f"{self.source}: {what} in {self.place(i, j)}, {kind}{more}. {hint}{part.encode}"

    def _first_wrong(self, j: int) -> tuple[int, Any] | None:
        """The first cell of a column of text that is no number, and its row."""
        cells = ((i, _plain(cell.as_py())) for i, cell in enumerate(self.columns[j]))
        return next((pair for pair in cells if pair[1] is not None and not is_number(self._as_number(pair[1]))), None)

    def _hints(self, columns: Sequence[int]) -> str:
        """What to type for the first column of text, and for others in which numbers are written with other marks."""
        wrong = [self._first_wrong(j) for j in columns]
        cells = ["" if pair is None else str(pair[1]).strip() for pair in wrong]
        marks = [self._other_mark(cell) for cell in cells]
        if _EITHER in marks and (_DECIMAL_COMMA in marks or any(map(self._has_decimal_comma, columns))):
            pairs = zip(marks, cells, strict=True)
            marks = [_DECIMAL_COMMA if mark and re.fullmatch(_WITH_COMMA, cell) else mark for mark, cell in pairs]
        hint, others = marks[0] or _spelling(cells[0]), dict[str, list[str]]()
        for j, mark in zip(columns[1:], marks[1:], strict=True):
            if mark not in ("", hint):
                others.setdefault(mark, []).append(self.names[j])
        return hint + "".join(f"For {listed(names)}: {mark[0].lower()}{mark[1:]}" for mark, names in others.items())

    def _has_decimal_comma(self, j: int) -> bool:
        """Whether some cell of a column can only be a number with a decimal comma, not one with thousands."""
        return any(self._other_mark(str(cell).strip()) == _DECIMAL_COMMA for cell in self.labels(j))

    def _other_mark(self, cell: str) -> str:
        """What to type for a cell that is a number with other marks for fractions or thousands; else nothing."""
        if self.dialect.decimal != "." and "." in cell and is_number(cell):
            return f"Use --decimal . {'--thousands , ' if self.dialect.thousands == '.' else ''}{_IF_SO}"
        return next((hint for pattern, hint in _MARKS.items() if re.fullmatch(pattern, cell, re.IGNORECASE)), "")

    def _check_values(self, columns: Positions, values: Any, part: Part) -> None:
        """Refuse empty and infinite cells, and features whose sum of squares is more than a double holds."""
        is_sparse = sp.issparse(values)
        cells = values.data if is_sparse else values
        if part.may_miss and np.isnan(cells).any():
            cells = np.nan_to_num(cells, nan=0.0, posinf=np.inf, neginf=-np.inf)
            values = sp.csr_array((cells, values.indices, values.indptr), shape=values.shape) if is_sparse else cells
        largest = float(max(-cells.min(initial=0.0), cells.max(initial=0.0)))
        bound = _LARGEST / np.sqrt(values.shape[0]) if part.name == "feature" else np.inf
        if largest < bound:
            return
        kinds = {"missing": np.isnan(cells), "infinite": np.isinf(cells), "large": abs(cells) == largest}
        kind, bad = next((kind, bad) for kind, bad in kinds.items() if bad.any())
        counts = np.bincount(values.indices[bad] if is_sparse else np.nonzero(bad)[1], minlength=values.shape[1])
        found = np.flatnonzero(counts).tolist()
        if kind == "large":
            what = f"column {self.names[columns[found[0]]]!r} has values as large as {largest:.3g}"
            raise TableError(f"{self.source}: {what}, the squares of which overflow. Measure it in larger units.")
        shown = listed([f"{self.names[columns[k]]!r} ({counts[k]})" for k in found], quoted=False)
        where = f"{counted(int(counts.sum()), f'{kind} value')} in {counted(len(found), f'{part.name} column')}"
        remedy = part.fill if kind == "missing" else "Correct them, or leave columns out with --drop."
        raise TableError(f"{self.source} has {where}: {shown}. {remedy}")


def stacked_sheets(sheets: Sequence[Sheet]) -> Sheet:
    """Rows of several sheets below each other, which have the same columns in any order."""
    first = sheets[0]
    source = f"{first.source} ... {sheets[-1].source} ({len(sheets)} files)"
    columns: dict[int, list[Any]] = {j: [] for j in range(len(first.names))}
    for sheet in sheets:
        lacks = [name for name in first.names if name not in sheet.names]
        has = [name for name in sheet.names if name not in first.names]
        if lacks or has:
            parts = [f"lacks {listed(lacks)}" if lacks else "", f"has also {listed(has)}" if has else ""]
            remedy = "Leave it out, or give all files the same columns."
            what = f"{sheet.source} does not have the columns of {first.source}: it {' and '.join(filter(None, parts))}"
            raise TableError(f"{what}. {remedy}")
        for j, name in enumerate(first.names):
            columns[j].append(sheet.columns[sheet.names.index(name)])
    indexes = [sheet.index for sheet in sheets if sheet.index is not None]
    return replace(
        first,
        source=source,
        columns={j: _stacked(parts) for j, parts in columns.items()},
        index=tuple(name for index in indexes for name in index) if len(indexes) == len(sheets) else None,
        categorical=frozenset.union(*(sheet.categorical for sheet in sheets)),
        notes=tuple(dict.fromkeys(note for sheet in sheets for note in sheet.notes)),
    )


def _stacked(parts: Sequence[Any]) -> Any:
    """Pieces of a column below each other: numbers if all are, else text."""
    import pyarrow as pa

    tables = [pa.table({"": part}) for part in parts]
    if not all(_holds_numbers(part.type) for part in parts):
        tables = [table.cast(pa.schema({"": pa.string()})) for table in tables]
    elif not all(pa.types.is_boolean(part.type) for part in parts):
        tables = [table.cast(pa.schema({"": pa.float64()}), safe=False) for table in tables]
    return pa.concat_tables(tables).column(0)


def _spelling(cell: str) -> str:
    """What to type for a cell that is a number to somebody else."""
    known = [hint for pattern, hint in _SPELLINGS.items() if re.fullmatch(pattern, cell, re.IGNORECASE)]
    return known[0].replace("{cell}", shlex.quote(cell)) if known else _SPELLING if re.match(r"\W*\d", cell) else ""


@cache
def _holds_numbers(kind: Any) -> bool:
    """Whether columns of a pyarrow type are numbers; types are few, columns may be many."""
    from pyarrow import types

    tests = (types.is_integer, types.is_floating, types.is_decimal, types.is_boolean, types.is_null)
    return any(test(kind) for test in tests)


def _plain(cell: Any) -> Any:
    """A cell as Python has it: numbers whole where they are, dates and the like as text, None for nothing."""
    if isinstance(cell, float):
        whole = int(cell) if cell.is_integer() else cell
        return whole if cell == cell else None
    return cell if isinstance(cell, str | bool | int | None) else str(cell)


def _text(cell: Any) -> str | None:
    """A cell as text; None for an empty one."""
    return None if cell is None else str(cell).strip()


def _is_written(cell: Any, wanted: str) -> bool:
    """Whether a cell is what somebody has typed: the same text, or the same number."""
    if is_number(cell) and is_number(wanted):
        return bool(float(cell) == float(wanted))
    return str(cell).strip().lower() == wanted.strip().lower() if isinstance(cell, bool) else str(cell) == wanted


def is_number(cell: Any) -> bool:
    """Whether a reader of columns takes a cell for a number; Python would take more."""
    if isinstance(cell, str):
        return _NUMBER.fullmatch(cell) is not None
    return isinstance(cell, numbers.Real) and not isinstance(cell, bool)
