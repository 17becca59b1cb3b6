"""Tables: features, targets and what belongs to them, ready for a fit; what columns are for, and their names.

A million names that a file only numbers take no memory.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass, field, replace
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from .._checks import take_rows
from .._text import counted, listed
from .._typing import FloatArray, IndexArray
from ..designs import Design
from ..designs.disk.base import INSIDE
from ..losses import survival_targets
from .gaps import DROP, complete_rows, filled, fills_of, gap_counts

REGRESSION, CLASSIFICATION = "regression", "classification"
TASKS = ("auto", REGRESSION, CLASSIFICATION)

#: Suffixes of workbooks; ``file.xlsx::name`` is a sheet of one.
WORKBOOKS = (".xlsx", ".xlsm")

_LONGEST_NUMBER = 19  # digits that are read of a name


class TableError(ValueError):
    """One sentence that names the file and the problem, and one that says what to do."""


class MissingTargetsError(TableError):
    """Nobody has said which columns are targets, and the format of the file does not."""


@dataclass(frozen=True)
class Roles:
    """What the columns of a file are for, as users say it; see :meth:`groupowl.tables.sheet.Sheet.find_columns`.

    Attributes
    ----------
    targets : tuple of str
        Columns to explain; empty for those that the format itself names, or all of another file.
    drop : tuple of str
        Columns to leave out.
    unpenalized : tuple of str
        Features without penalty.
    feature_groups : tuple of str
        Groups of features, as ``name=columns``.
    penalty_factor : tuple of str
        Factors of the penalty, as ``columns=number``.
    categories : tuple of str
        Features whose cells are levels; "auto" for all that are text.
    groups, sample_weight, strata : str or None
        Columns with the group, the weight and the stratum of each sample.
    event : str or None
        The cell that stands for an event, where targets are pairs of events and times; 1 and True by default.
    offset, exposure : str or None
        Columns with numbers that are added to the predictor of each sample, or whose logarithms are.
    positive : tuple of str
        Features whose coefficients must not be negative.
    id_column : str or None
        Column with the names of samples; ``left=right`` where it has another name in the file of targets.
    task : {"auto", "regression", "classification"}
    """

    targets: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    unpenalized: tuple[str, ...] = ()
    feature_groups: tuple[str, ...] = ()
    penalty_factor: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    groups: str | None = None
    sample_weight: str | None = None
    strata: str | None = None
    event: str | None = None
    offset: str | None = None
    exposure: str | None = None
    positive: tuple[str, ...] = ()
    id_column: str | None = None
    task: str = "auto"

    @property
    def of_samples(self) -> dict[str, str | None]:
        """Columns that say something about each sample, by their options."""
        return {
            "--groups": self.groups,
            "--sample-weight": self.sample_weight,
            "--strata": self.strata,
            **self.added,
        }

    @property
    def added(self) -> dict[str, str | None]:
        """Those of them that predictions need, too."""
        return {"--offset": self.offset, "--exposure": self.exposure}

    @property
    def id_columns(self) -> tuple[str | None, str | None]:
        """Names of the id column in the file of features and in that of targets."""
        if self.id_column is None:
            return None, None
        left, _, right = self.id_column.partition("=")
        return left, right or left


@dataclass(frozen=True)
class Dialect:
    """How the cells of text files and workbooks are written; other formats say it themselves.

    Attributes
    ----------
    sep : str or None
        What stands between cells: one character, a space for any number of spaces and tabs. None is what the first
        line has: a comma, else a semicolon, else a tab.
    decimal : str
        What stands before the fractions of numbers.
    thousands : str or None
        What may stand between the thousands of numbers; a space stands for any kind of space.
    encoding : str or None
        Of text; UTF-8 by default.
    na : tuple of str
        Cells that are missing values, beside those that always are.
    header : bool
        Whether the first line has the names of the columns; they are numbered otherwise.
    sheet : str or None
        Name or number of the sheet of a workbook; the first by default.
    """

    sep: str | None = None
    decimal: str = "."
    thousands: str | None = None
    encoding: str | None = None
    na: tuple[str, ...] = ()
    header: bool = True
    sheet: str | None = None

    def __post_init__(self) -> None:
        given = {"--sep": self.sep, "--decimal": self.decimal, "--thousands": self.thousands}
        for (option, mark), (another, other) in combinations(given.items(), 2):
            is_space = mark == other == " "  # in quotation marks, which keep cells together
            if mark is not None and mark == other and not is_space:
                raise TableError(f"{option} and {another} are both {mark!r}. Give two different characters.")

    def of_file(self, path: str | Path) -> Dialect:
        """The same for another file, which has no such sheet if it is no workbook."""
        is_workbook = str(path).partition(INSIDE)[0].lower().endswith(WORKBOOKS)
        return self if is_workbook else replace(self, sheet=None)

    @property
    def is_usual(self) -> bool:
        """Whether numbers have a decimal point and nothing between thousands."""
        return self.decimal == "." and self.thousands is None

    def plain(self, cell: str) -> str | None:
        """A number with a decimal point and nothing between thousands; None for a cell that is none here."""
        if re.fullmatch(self.number, cell, re.ASCII) is None:
            return None
        found = re.sub(self.gap, "", cell) if self.thousands else cell
        return found.strip().replace(self.decimal, ".")

    @property
    def gap(self) -> str:
        """Regular expression of what may stand between thousands."""
        return "[ \u00a0\u2009\u202f]" if self.thousands == " " else re.escape(self.thousands or "")

    @property
    def number(self) -> str:
        """Regular expression of cells that are numbers."""
        whole = rf"(?:\d{{1,3}}(?:{self.gap}\d{{3}})+|\d+)" if self.thousands else r"\d+"
        mark = re.escape(self.decimal)
        return rf"\s*[+-]?(?:{whole}(?:{mark}\d*)?|{mark}\d+)(?:[eE][+-]?\d+)?\s*"


@dataclass(frozen=True)
class Reading:
    """How files are read, whatever their names.

    Attributes
    ----------
    roles : Roles
        What columns are for.
    format : str or None
        Name of a format, whatever the suffix.
    transpose : bool
        Whether rows of the file are features.
    targets_from : str or None
        Path of the file with the targets, if it is another one.
    first_index : int or None
        Number of the first column in a LIBSVM file.
    dialect : Dialect
        How cells are written.
    missing : str or None
        What becomes of features that are missing: "drop" leaves their samples out, "mean" and "median" fill them in.
        They are refused by default.
    """

    roles: Roles = field(default_factory=Roles)
    format: str | None = None
    transpose: bool = False
    targets_from: str | None = None
    first_index: int | None = None
    dialect: Dialect = field(default_factory=Dialect)
    missing: str | None = None


@dataclass(frozen=True, eq=False)
class Match:
    """Rows of two files that belong together.

    Attributes
    ----------
    left, right : ndarray of int
        Rows of the data and of the targets, in the order of the data.
    only_left, only_right : tuple of str
        Ids that are in one of the files only.
    in_order : bool
        Whether rows belong together by their order, for lack of ids.
    """

    left: IndexArray
    right: IndexArray
    only_left: tuple[str, ...] = ()
    only_right: tuple[str, ...] = ()
    in_order: bool = False


@dataclass(frozen=True, eq=False)
class Table:
    """Data of a fit.

    Attributes
    ----------
    source : str
        The file of the features.
    X : ndarray or csr_array of shape (n_samples, n_features)
        A data frame where there are categories.
    feature_names : sequence of str
    y : ndarray of shape (n_samples, n_targets) or (n_samples,)
        Targets, NaN where they are missing, or one label per sample for classification.
    target_names : tuple of str
    task : {"regression", "classification"}
    ids : tuple of str or None
        Names of the samples.
    groups : ndarray or None
        Group of each sample.
    sample_weight : ndarray or None
    strata : ndarray or None
        Stratum of each sample, where targets are times.
    offset : ndarray or None
        What is added to the predictor of each sample.
    unpenalized : tuple of str
        Names of features without penalty.
    feature_groups : dict
        Names of the features of each group.
    penalty_factor : dict
        Factors of the penalty by names of features.
    positive : tuple of str
        Names of features whose coefficients must not be negative.
    categories : tuple of str
        Names of features whose cells are levels, as text.
    ignored : tuple of str
        Columns that are not used.
    match : Match or None
        How the rows of two files were joined.
    notes : tuple of str
        Sentences that the user should read.
    first_index : int
        Number that the file itself gives to its first column.
    has_times : bool
        Whether targets are times until events, negative where the event was not seen.
    """

    source: str
    X: Any
    feature_names: Sequence[str]
    y: Any
    target_names: tuple[str, ...]
    task: str
    ids: tuple[str, ...] | None = None
    groups: Any = None
    sample_weight: FloatArray | None = None
    strata: Any = None
    offset: FloatArray | None = None
    unpenalized: tuple[str, ...] = ()
    feature_groups: dict[str, list[str]] = field(default_factory=dict)
    penalty_factor: dict[str, float] = field(default_factory=dict)
    positive: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    match: Match | None = None
    notes: tuple[str, ...] = ()
    first_index: int = 1
    has_times: bool = False

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        return int(self.X.shape[0])

    @property
    def n_features(self) -> int:
        """Number of features."""
        return int(self.X.shape[1])

    def without_categories(self) -> Table:
        """The same with the features that are numbers."""
        if not self.categories:
            return self
        names = [name for name in self.feature_names if name not in self.categories]
        unpenalized = tuple(name for name in self.unpenalized if name in names)
        return replace(self, X=self.X[names].to_numpy(), feature_names=names, unpenalized=unpenalized, categories=())

    @property
    def is_classification(self) -> bool:
        """Whether the target is a class."""
        return self.task == CLASSIFICATION

    @property
    def classes(self) -> list[Any]:
        """Labels that occur, sorted; empty for a regression."""
        return np.unique(self.y).tolist() if self.is_classification else []

    @property
    def target_frame(self) -> Any:
        """Targets with names, labels, or pairs of events and times."""
        if self.is_classification:
            return self.y
        if self.has_times:
            return self._survival_array()
        import pandas

        return pandas.DataFrame(self.y, columns=list(self.target_names), copy=False)

    def _survival_array(self) -> Any:
        """Events and times, with strata where there are, as the estimators take them."""
        fields: list[Any] = [("event", bool), ("time", float)]
        if self.strata is not None:
            fields.append(("stratum", self.strata.dtype))
        pairs = np.empty(self.y.shape, dtype=fields)
        pairs["event"], pairs["time"] = self.y > 0.0, np.abs(self.y)
        if self.strata is not None:
            pairs["stratum"] = self.strata[:, None]
        return pairs[:, 0] if pairs.shape[1] == 1 else pairs

    @property
    def numbers(self) -> FloatArray:
        """Targets as losses take them, (n_samples, n_targets); not for classes."""
        if self.has_times:
            return survival_targets(self.y > 0.0, np.abs(self.y), self.strata)
        return np.asarray(self.y, dtype=np.float64).reshape(self.n_samples, -1)

    @property
    def missing(self) -> dict[str, int]:
        """Number of missing values of each target that has any."""
        if self.is_classification or self.has_times:
            return {}
        counts = np.isnan(self.numbers).sum(axis=0).tolist()
        return {name: count for name, count in zip(self.target_names, counts, strict=True) if count}

    def with_targets(self) -> Table:
        """The table without samples that have no target at all, with a note if there are any."""
        if not self.missing:
            return self
        has_some = ~np.isnan(self.numbers).all(axis=1)
        n_without = self.n_samples - int(np.count_nonzero(has_some))
        if n_without == self.n_samples:
            raise TableError(f"{self.source}: no sample has a target. Check --targets and the join of the files.")
        if n_without == 0:
            return self
        verb, them = ("has", "is") if n_without == 1 else ("have", "are")
        note = f"{counted(n_without, 'sample')} of {self.n_samples} {verb} no target and {them} left out."
        return replace(self.rows(np.flatnonzero(has_some)), notes=(*self.notes, note))

    def with_times(self) -> Table:
        """The same table with pairs of event and time columns as survival targets, named after the times."""
        if self.is_classification or len(self.target_names) % 2:
            found = f"{len(self.target_names)} given" if not self.is_classification else "the one given has classes"
            raise ValueError(
                f"--loss cox needs pairs of targets, --targets EVENT,TIME with events of 0 and 1; {found}."
            )
        event, time = self.y[:, ::2], self.y[:, 1::2]
        if gaps := self.missing:
            found = listed([f"{name} ({count})" for name, count in gaps.items()], quoted=False)
            raise ValueError(
                f"missing values in {found}: a Cox model compares each sample with all that are at risk, and needs its "
                "event and its time. Remove those samples."
            )
        survival_targets(event, time)  # which refuses what is wrong
        ignored = (*self.ignored, *self.target_names[::2])
        y = np.where(event == 1.0, time, -time)
        return replace(self, y=y, target_names=self.target_names[1::2], ignored=ignored, has_times=True)

    def filled(self, how: str | None, rows: IndexArray | None = None) -> tuple[Table, list[Any] | None]:
        """The table with missing features filled by means or medians of some rows (with a note), and the fills."""
        if how is None or how == DROP:
            return self, None
        fills = fills_of(self.X if rows is None else self.rows(rows).X, how)
        counts = gap_counts(self.X)
        if not counts.any():
            return self, fills
        most = np.argsort(-counts, kind="stable")[: np.count_nonzero(counts)].tolist()
        where = listed([f"{self.feature_names[j]!r} ({counts[j]})" for j in most], quoted=False)
        level = ", of categories with the most frequent level" if self.categories else ""
        what = f"{counted(int(counts.sum()), 'missing value')} of features {'is' if counts.sum() == 1 else 'are'}"
        note = f"{what} filled with the {how} of the column{level}: {where}."
        return replace(self.with_fills(fills), notes=(*self.notes, note)), fills

    def with_fills(self, fills: Sequence[Any]) -> Table:
        """The same with these values for missing features."""
        return replace(self, X=filled(self.X, fills))

    def rows(self, chosen: IndexArray) -> Table:
        """Some of the samples."""
        X = self.X.rows(chosen) if isinstance(self.X, Design) else take_rows(self.X, chosen)
        ids = None if self.ids is None else tuple(self.ids[i] for i in chosen)
        parts: dict[str, Any] = {}
        for name in ("groups", "sample_weight", "strata", "offset"):
            given = getattr(self, name)
            parts[name] = None if given is None else given[chosen]
        return replace(self, X=X, y=self.y[chosen], ids=ids, **parts)


@dataclass(frozen=True, eq=False)
class Features:
    """Features of new samples, in the order of a model.

    Attributes
    ----------
    X : ndarray or csr_array
        A data frame where the model has categories.
    ids : tuple of str or None
    extra : sequence of str
        Columns of the file that the model does not know.
    id_name : str or None
        Name of the column with the ids; None where the rows themselves have names, or none.
    absent : sequence of str
        Features that are not needed and not in the file; zeros stand in for them.
    offset : ndarray or None
        What is added to the predictor of each sample.
    rows : ndarray of int or None
        Rows of the file, where some are left out.
    n_left_out : int
        How many are.
    known : Table or None
        The samples whose targets are in the file, with these.
    known_rows : ndarray of int or None
        Which samples these are.
    notes : tuple of str
        Why targets that are in the file cannot be used.
    """

    X: Any
    ids: tuple[str, ...] | None
    extra: Sequence[str]
    id_name: str | None = None
    absent: Sequence[str] = ()
    offset: FloatArray | None = None
    rows: IndexArray | None = None
    n_left_out: int = 0
    known: Table | None = None
    known_rows: IndexArray | None = None
    notes: tuple[str, ...] = ()

    def complete(self) -> Features:
        """The same without samples that lack some feature."""
        is_complete = complete_rows(self.X)
        if is_complete.all():
            return self
        rows = np.flatnonzero(is_complete)
        if len(rows) == 0:
            raise TableError(
                "no sample has all features that the model has selected. Fill them in, or fit it with --missing mean."
            )
        X = self.X.rows(rows) if isinstance(self.X, Design) else take_rows(self.X, rows)
        ids = None if self.ids is None else tuple(self.ids[i] for i in rows)
        offset, n_left_out = None if self.offset is None else self.offset[rows], len(is_complete) - len(rows)
        return replace(self, X=X, ids=ids, offset=offset, rows=rows, n_left_out=n_left_out)


# Names of columns ---------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class NumberedNames(Sequence[str]):
    """``x1, x2, ...`` for so many columns, then some that have names of their own.

    Attributes
    ----------
    stem : str
        What stands before the number.
    first : int
        Number of the first column.
    n_numbered : int
        Columns that are numbered.
    others : tuple of str
        Names of the columns after those.
    """

    stem: str = ""
    first: int = 1
    n_numbered: int = 0
    others: tuple[str, ...] = ()

    def __len__(self) -> int:
        return self.n_numbered + len(self.others)

    def __getitem__(self, position: Any) -> Any:
        if isinstance(position, slice):
            return tuple(self[j] for j in range(*position.indices(len(self))))
        j = range(len(self))[position]
        return f"{self.stem}{self.first + j}" if j < self.n_numbered else self.others[j - self.n_numbered]

    def __iter__(self) -> Iterator[str]:
        yield from (f"{self.stem}{number}" for number in range(self.first, self.first + self.n_numbered))
        yield from self.others

    def __contains__(self, name: object) -> bool:
        return self.find(name) >= 0

    def __eq__(self, other: object) -> bool:
        if isinstance(other, NumberedNames) and astuple(self) == astuple(other):
            return True
        return isinstance(other, Sequence) and len(self) == len(other) and all(map(operator.eq, self, other))

    def index(self, name: Any, *bounds: Any) -> int:
        """Position of a name, which must be there."""
        if name not in self:
            raise ValueError(f"{name!r} is no column")
        return self.find(name)

    def find(self, name: object) -> int:
        """Position of a name, or -1."""
        digits = str(name).removeprefix(self.stem)
        is_numbered = len(digits) <= _LONGEST_NUMBER and digits.isdecimal()
        j = int(digits) - self.first if is_numbered else -1
        return j if 0 <= j < self.n_numbered and self[j] == name else self._positions.get(name, -1)

    def found(self, names: Iterable[str]) -> list[int]:
        """Positions of those of some names that are there."""
        return [j for j in map(self.find, names) if j >= 0]

    @cached_property
    def _positions(self) -> dict[object, int]:
        return {name: j for j, name in enumerate(self.others, start=self.n_numbered)}

    def chosen(self, positions: IndexArray) -> Sequence[str]:
        """Names of some columns; the first so many of numbered ones are numbered again."""
        n = len(positions)
        if 0 < n <= self.n_numbered and positions[0] == 0 and positions[-1] == n - 1:
            return NumberedNames(self.stem, self.first, n)
        return tuple(self[j] for j in positions.tolist())

    def positions_of(self, names: Sequence[str]) -> IndexArray:
        """Positions of some names, -1 for those that are not there."""
        is_alike = isinstance(names, NumberedNames) and astuple(names) == (self.stem, self.first, len(names), ())
        if is_alike and self.n_numbered:  # in which case nobody needs to look for each of them
            positions = np.arange(len(names))
            return np.where(positions < self.n_numbered, positions, -1)
        return np.array([self.find(name) for name in names], dtype=np.intp)
