"""From files to a table: which columns play which part, how rows are joined, and what is left out.

Also from a file to the features of new samples, in the order of a model.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._text import counted, listed
from .._typing import BoolArray, FloatArray, IndexArray
from ..designs import Design
from ..designs.factors import is_sparse
from .gaps import DROP, complete_rows, filled, gap_counts
from .readers import find_files, read_sheet, read_sheets
from .sheet import FEATURES, MOSTLY_NUMBERS, NEW_FEATURES, TARGETS, Part, Sheet
from .table import CLASSIFICATION, REGRESSION, Features, Match, MissingTargetsError, Reading, Roles, Table, TableError

# A number with so few different values may well stand for classes.
_FEW_VALUES = 10
_SLIPS = FEATURES._replace(
    encode=f"{FEATURES.encode} --categories auto takes no column that is mostly numbers; --categories NAME takes it "
    "as it is."
)
#: A factor for each feature from a first fit, in place of given ones.
ADAPTIVE = "adaptive"
_COUNTED = re.compile(r"(\D*)\d+")


def load_table(path: str | Path | Sequence[str | Path], reading: Reading, *, max_memory: str | None = None) -> Table:
    """Read the file of the features, and that of the targets if there is one, and check everything.

    Parameters
    ----------
    path : str, Path or sequence
        The file of the features, and of whatever is not in the other one; a pattern, or several files with some rows
        each.
    reading : Reading
        What columns are for. Groups and sample weights may be in either file.
    max_memory : str, default=None
        What work with a matrix on disk may add to the memory of the process, as :class:`groupowl.MemmapDesign` has it.

    Returns
    -------
    Table

    Raises
    ------
    TableError
        If a column is not there, has the wrong kind of cells, or misses some; if ids do not match.
    """
    sheet = other = _read(path, reading, max_memory)
    if reading.targets_from is not None:
        dialect = replace(reading.dialect, sheet=None)  # which is one of the other workbook
        found = read_sheet(reading.targets_from, text_columns=reading.roles.id_columns[1:], dialect=dialect)
        other = found.apart_from(sheet)
    columns = _Columns(sheet, other, reading.roles)
    match = _match(columns)
    _check_copies(columns, match)
    X = _feature_values(columns, match.left, may_miss=reading.missing is not None)
    if X.shape[0] < 2:
        raise TableError(f"{sheet.source} has one sample only. A fit needs at least two.")
    task, y = _target_values(columns, match.right)
    values: dict[str, Any] = {}
    checks = {"--groups": Sheet.groups, "--sample-weight": Sheet.weights, "--strata": Sheet.strata, **_ADDED}
    for option, check in checks.items():
        if option in columns.used:
            home, j = columns.used[option]
            values[option] = check(home, j)[match.left if home is sheet else match.right]
    ids = sheet.ids(columns.id)
    table = Table(
        source=sheet.source,
        X=X,
        feature_names=sheet.names.chosen(columns.features),
        y=y,
        target_names=columns.target_names,
        task=task,
        ids=None if ids is None else tuple(ids[i] for i in match.left),
        groups=values.get("--groups"),
        sample_weight=values.get("--sample-weight"),
        strata=values.get("--strata"),
        offset=_sum([values[option] for option in _ADDED if option in values]),
        unpenalized=tuple(sheet.names[j] for j in columns.unpenalized),
        feature_groups=columns.feature_groups,
        penalty_factor=columns.penalty_factor,
        positive=tuple(sheet.names[j] for j in columns.positive),
        categories=tuple(sheet.names[j] for j in columns.categories),
        ignored=tuple(sheet.names[j] for j in (*columns.drop, *columns.beside, *columns.copies)),
        match=match,
        notes=(*(_target_notes(columns, y) if task == REGRESSION else ()), *_notes(columns, match)),
        first_index=sheet.names.first,
    )
    return table if reading.missing is None else _without_gaps(table, drops=reading.missing == DROP)


def _without_gaps(table: Table, *, drops: bool) -> Table:
    """Refuse features without any value and, with ``drops``, leave out samples with missing features."""
    counts = gap_counts(table.X)
    names = [table.feature_names[j] for j in np.flatnonzero(counts == table.n_samples).tolist()]
    if names:
        what = f"{table.source}: no sample has a value of {listed(names, shown=10)}"
        raise TableError(f"{what}. Leave columns out with --drop {shlex.quote(','.join(names[:10]))}.")
    if not (drops and counts.any()):
        return table
    is_complete = complete_rows(table.X)
    n_without = table.n_samples - int(np.count_nonzero(is_complete))
    most = np.argsort(-counts, kind="stable")[: np.count_nonzero(counts)].tolist()
    where = listed([f"{table.feature_names[j]!r} ({counts[j]})" for j in most], quoted=False)
    if table.n_samples - n_without < 2:
        what = f"{table.source}: --missing drop leaves {counted(table.n_samples - n_without, 'sample')} of"
        remedy = "Use --missing mean or median, or leave the columns with the most gaps out with --drop."
        raise TableError(f"{what} {table.n_samples}: others miss values of {where}. {remedy}")
    verb, them = ("has", "is") if n_without == 1 else ("have", "are")
    note = f"{counted(n_without, 'sample')} of {table.n_samples} {verb} missing features and {them} left out: {where}."
    return replace(table.rows(np.flatnonzero(is_complete)), notes=(*table.notes, note))


def _feature_values(columns: _Columns, rows: IndexArray, *, may_miss: bool) -> Any:
    """Features as the file has them, or as a data frame where there are categories."""
    sheet, categories = columns.sheet, columns.categories
    part = FEATURES._replace(may_miss=may_miss)
    if not categories:
        return sheet.numbers(columns.features, part, rows)
    others = np.setdiff1d(columns.features, categories)
    numbers = sheet.numbers(others, part, rows) if len(others) else np.zeros((len(rows), 0))
    if not isinstance(numbers, np.ndarray):
        raise TableError(
            f"--categories: {sheet.source} is sparse or on disk, and categories need a table in memory. Use a CSV or "
            "Parquet file."
        )
    cells = {j: sheet.levels(j, rows, may_miss=may_miss) for j in categories}
    return sheet.frame(columns.features.tolist(), numbers, cells)


# Columns that are added to predictors, and what they add.
_ADDED: dict[str, Any] = {"--offset": Sheet.offsets, "--exposure": Sheet.log_exposures}


def _sum(parts: list[FloatArray]) -> FloatArray | None:
    return np.sum(parts, axis=0) if parts else None


def _read(path: str | Path | Sequence[str | Path], reading: Reading, max_memory: str | None) -> Sheet:
    ids = reading.roles.id_columns[:1]
    return read_sheets(
        find_files([path] if isinstance(path, str | Path) else path),
        format=reading.format,
        transpose=reading.transpose,
        text_columns=ids,
        first_index=reading.first_index,
        dialect=reading.dialect,
        max_memory=max_memory,
    )


class _Columns:
    """Columns of the data and of the sheet of the targets by what they are for, checked; both may be one sheet.

    Attributes
    ----------
    used : dict
        Sheet and position of the columns of ids, groups, weights and strata.
    repeated : list of int
        Columns of the other sheet with the name of groups, weights or strata that the data have themselves.
    copies : list of int
        Columns of the data that have the name of a target in the other sheet; unnamed ones have none.
    beside : list of int
        Columns of the data beside the features that play no part although nobody has dropped them.
    features : ndarray of int
    """

    def __init__(self, sheet: Sheet, other: Sheet, roles: Roles) -> None:
        self.sheet, self.other, self.roles = sheet, other, roles
        left, right = roles.id_columns
        if other is sheet and left != right:
            given = f"--id-column {roles.id_column} is for two files"
            raise TableError(f"{given}, but there is no --targets-from. Give it, or one name.")
        self.used: dict[str, tuple[Sheet, int]] = {}
        for key, home, name in (("id", sheet, left), ("other id", other, right)):
            # the names of rows are ids too, of one of two sheets
            if name is not None and (other is sheet or home.index is None or name in home.names):
                self.used[key] = home, home.find_column("--id-column", name)
        self.id, self.other_id = (self.used.get(key, (None, None))[1] for key in ("id", "other id"))
        for option, name in roles.of_samples.items():
            if name is not None:
                home = other if name not in sheet.names and name in other.names else sheet
                self.used[option] = home, home.find_column(option, name)
        self.drop = sheet.find_columns("--drop", roles.drop)
        self.unpenalized = sheet.find_columns("--unpenalized", roles.unpenalized)
        positive = sheet.find_columns("--positive", roles.positive)
        own = [sheet.names[j] for key, (home, j) in self.used.items() if key.startswith("--") and home is sheet]
        self.repeated = [] if other is sheet or roles.targets else other.names.found(own)
        self.targets = self._targets()
        self.target_names = tuple(other.names[j] for j in self.targets)
        others = {*self.drop, *self.taken(sheet), *sheet.auxiliary}
        copies = [] if other is sheet else sheet.names.found(self.target_names)
        self.copies = [j for j in copies if j >= sheet.names.n_numbered and j not in others]
        self._check_parts()
        known = {*self.drop, *self.taken(sheet), *self.copies, *(self.targets if other is sheet else ())}
        self.beside = sorted({*sheet.auxiliary} - known - {*self.unpenalized})
        is_feature = np.ones(len(sheet.names), dtype=bool)
        is_feature[[*known, *self.beside]] = False
        self.features = np.flatnonzero(is_feature)
        self.positive = [j for j in positive if is_feature[j] and j not in self.unpenalized]
        if positive and not self.positive:
            raise TableError(f"--positive {','.join(roles.positive)} has no feature with a penalty in {sheet.source}.")
        if len(self.features) <= len(self.unpenalized):
            what = "has no column left that is a feature with a penalty"
            raise TableError(f"{sheet.source} {what}. Check --targets, --drop and --unpenalized.")
        self.categories = self._categories()
        self.feature_groups = self._feature_groups()
        self.penalty_factor = self._penalty_factor()

    def _categories(self) -> list[int]:
        """Features whose cells are levels."""
        sheet, given = self.sheet, self.roles.categories
        if given == ("auto",) and "auto" not in sheet.names:
            found = [j for j in self.features.tolist() if sheet.is_category(j)]
            self._check_automatic([j for j in found if j in sheet.texts and j not in sheet.categorical])
            return found
        names = [name for text in given for name in self._feature_names("--categories", text)]
        return sorted({sheet.names.index(name) for name in names})

    def _check_automatic(self, texts: Sequence[int]) -> None:
        """Refuse automatic categories that are probably mistakes: numbers with typing errors, and names of samples."""
        sheet = self.sheet
        if slips := [j for j in texts if sheet.number_share(j) >= MOSTLY_NUMBERS]:
            sheet.numbers(slips, _SLIPS)
        for j in texts:
            n_levels, name = len({*sheet.labels(j)} - {None}), shlex.quote(sheet.names[j])
            if n_levels > sheet.n_rows / 2:
                what = f"{sheet.names[j]!r} has {n_levels} levels in {counted(sheet.n_rows, 'sample')}"
                remedy = f"Use --id-column {name} if it names the samples, --drop {name} to leave it out, or"
                raise TableError(
                    f"--categories auto: column {what} of {sheet.source}. {remedy} --categories {name},... to take "
                    "those columns that you name."
                )

    def _feature_groups(self) -> dict[str, list[str]]:
        """Names of the features of each group."""
        groups: dict[str, list[str]] = {}
        for text in self.roles.feature_groups:
            name, sign, given = text.partition("=")
            if not (sign and name.strip() and given.strip()):
                raise TableError(f"--feature-groups {text}: give a name and columns, for example stage=T,N,M.")
            groups.setdefault(name.strip(), []).extend(self._feature_names("--feature-groups", given))
        return groups

    def _penalty_factor(self) -> dict[str, float]:
        """Factors of the penalty by names of features."""
        factors: dict[str, float] = {}
        if self.roles.penalty_factor == (ADAPTIVE,):
            return factors
        for text in self.roles.penalty_factor:
            given, sign, number = text.rpartition("=")
            try:
                factor = float(number) if sign and given.strip() else -1.0
            except ValueError:
                factor = -1.0
            if not factor >= 0.0:
                what = "give columns and a number that is not negative, for example age,sex=0 or 'gene*=2'"
                raise TableError(f"--penalty-factor {text}: {what}, or adaptive alone. inf leaves columns out.")
            factors |= dict.fromkeys(self._feature_names("--penalty-factor", given), factor)
        return factors

    def _feature_names(self, option: str, given: str) -> list[str]:
        """Names of columns that must be features; a pattern means those of its columns that are."""
        found = self.sheet.find_columns(option, [given])
        inside = [j for j in found if j in set(self.features.tolist())]
        if not inside or (len(inside) < len(found) and "*" not in given):
            outside = listed([self.sheet.names[j] for j in found if j not in inside])
            raise TableError(f"{option}: {outside} in {given!r} is no feature. Check --targets and --drop.")
        return [self.sheet.names[j] for j in inside]

    def taken(self, sheet: Sheet) -> set[int]:
        """Columns of a sheet that are ids, groups, weights or strata."""
        return {j for home, j in self.used.values() if home is sheet}

    def _targets(self) -> list[int]:
        sheet = self.other
        if self.roles.targets:
            return sheet.find_columns("--targets", self.roles.targets)
        if sheet is self.sheet and not sheet.suggested_targets:
            columns = f"columns: {listed(sheet.names)}"
            remedy = f"Name them with --targets ({columns}), or give their file with --targets-from."
            raise MissingTargetsError(f"which columns of {sheet.source} are targets? {remedy}")
        left_out = {*self.taken(sheet), *self.repeated}
        targets = [j for j in sheet.suggested_targets or range(len(sheet.names)) if j not in left_out]
        if not targets:
            raise TableError(f"{sheet.source} has no column left for a target. Check --id-column, or use --targets.")
        return targets

    def _check_parts(self) -> None:
        """Refuse a column with two roles; a feature that copies a target would explain it."""
        sheet = self.sheet
        parts = {
            "--targets": {(self.other, j) for j in self.targets} | {(sheet, j) for j in self.copies},
            "--unpenalized": {(sheet, j) for j in self.unpenalized},
            "--drop, --groups, --sample-weight, --strata, --offset, --exposure or --id-column": {
                *((sheet, j) for j in self.drop),
                *self.used.values(),
            },
        }
        for (option, columns), (another, others) in combinations(parts.items(), 2):
            if both := columns & others:
                names = listed(sorted(home.names[j] for home, j in both))
                raise TableError(f"{names} in {option} is also in {another}. A column is one thing only.")


# Rows ---------------------------------------------------------------------------------------------------


def _match(columns: _Columns) -> Match:
    """Rows of two sheets with equal ids; all rows in the order of the files where there are none."""
    import pandas

    sheet, other = columns.sheet, columns.other
    left, right = sheet.ids(columns.id), other.ids(columns.other_id)
    if other is sheet or left is None or right is None:
        if sheet.n_rows != other.n_rows:
            what = f"{sheet.source} has {counted(sheet.n_rows, 'sample')}, but {other.source} has {other.n_rows}"
            remedy = "name the column that has the ids of the samples in both."
            raise TableError(f"{what}. Without --id-column they are joined in order; {remedy}")
        rows = np.arange(sheet.n_rows)
        return Match(rows, rows, in_order=True)
    first, second = pandas.Index(left, dtype=object), pandas.Index(right, dtype=object)
    for ids, source in ((first, sheet.source), (second, other.source)):
        if len(empty := np.flatnonzero(ids == "") + 1):
            what = f"{counted(len(empty), 'sample')} without an id (row {listed(empty.tolist())})"
            raise TableError(f"{source}: {what}. Give every sample one.")
        if len(twice := ids[ids.duplicated()].unique()):
            what = f"{counted(len(twice), 'id')} more than once: {listed(list(twice))}"
            raise TableError(f"{source}: {what}. Give every sample an id of its own.")
    rows = second.get_indexer(first)
    is_common = rows >= 0
    if not is_common.any():
        shown = f"the first has {listed(left, shown=3)}, the second {listed(right, shown=3)}"
        remedy = "Check --id-column, or --transpose if samples are columns."
        raise TableError(f"no id of {sheet.source} is in {other.source}: {shown}. {remedy}")
    only_right = tuple(second[~second.isin(first)])
    return Match(np.flatnonzero(is_common), rows[is_common], tuple(first[~is_common]), only_right)


def _check_copies(columns: _Columns, match: Match) -> None:
    """Refuse a column of the data that has the name of a target, but other values."""
    sheet, other = columns.sheet, columns.other
    for j in columns.copies:
        name = sheet.names[j]
        left, right = sheet.labels(j), other.labels(other.names.index(name))
        n_different = sum(left[i] != right[k] for i, k in zip(match.left, match.right, strict=True))
        if n_different:
            what = f"{name!r} is a column of {sheet.source} and a target in {other.source}, with different values in"
            remedy = f"If both are the target, use --drop {shlex.quote(name)}; if the first is a feature, rename it."
            raise TableError(f"{what} {counted(n_different, 'sample')}. {remedy}")


# Targets ------------------------------------------------------------------------------------------------


def _target_values(columns: _Columns, rows: IndexArray) -> tuple[str, Any]:
    """The task, and targets or labels in the order of the data."""
    sheet, targets, task = columns.other, columns.targets, columns.roles.task
    j = targets[0]
    is_plain_text = j in sheet.texts and j not in sheet.categorical
    if task == "auto" and columns.roles.event is not None:
        task = REGRESSION
    if task == "auto":
        is_class = len(targets) == 1 and sheet.is_category(j) and not (j in sheet.texts and sheet.holds_fractions(j))
        task = CLASSIFICATION if is_class else REGRESSION
    if task == REGRESSION:
        return task, _numbers_of_targets(sheet, targets, columns.roles, rows)
    labels = sheet.class_labels(targets, rows)
    if columns.roles.task == "auto" and is_plain_text:
        sheet.check_classes(j, labels)
    return task, labels


def _numbers_of_targets(sheet: Sheet, targets: Sequence[int], roles: Roles, rows: IndexArray | None = None) -> Any:
    """Targets that are numbers, or pairs of events, by the cell that stands for one, and times."""
    if roles.event is None:
        return sheet.numbers(targets, TARGETS, rows, is_small=True)
    if len(targets) % 2:
        raise TableError(f"--event is for pairs of targets, --targets EVENT,TIME; {len(targets)} given.")
    return sheet.events_and_times(targets, roles.event, rows)


def _target_notes(columns: _Columns, Y: FloatArray) -> Iterator[str]:
    """What looks odd about targets that are numbers."""
    observed = [column[~np.isnan(column)] for column in Y.T]
    constant = [name for name, own in zip(columns.target_names, observed, strict=True) if np.all(own == own[:1])]
    if constant:
        verb = "has" if len(constant) == 1 else "have"
        yield f"Target {listed(constant)} {verb} one value in all samples: there is nothing to explain."
    elif columns.roles.task == "auto" and Y.shape[1] == 1:
        values = np.unique(observed[0])
        if len(values) <= min(_FEW_VALUES, len(observed[0]) // 2) and np.array_equal(values, np.round(values)):
            what = f"Target {columns.target_names[0]!r} has {counted(len(values), 'different value')}"
            remedy = "if they are classes, use --task classification."
            yield f"{what}, all whole numbers, and is fitted as a number; {remedy}"


def _notes(columns: _Columns, match: Match) -> Iterator[str]:
    """How rows of two files were joined, and what is in no part of the table, but for what the user has dropped."""
    sheet, other = columns.sheet, columns.other
    used = {*columns.targets, *columns.taken(other), *columns.repeated}
    sides = [(sheet, other, match.only_left, columns.beside, columns.copies)]
    if other is not sheet:
        left = [j for j in range(len(other.names)) if j not in used]
        sides.append((other, sheet, match.only_right, left, columns.repeated))
        if match.in_order:
            yield f"Samples of {sheet.source} and {other.source} are joined in the order of their rows."
    elif sheet.index is not None and columns.id is None:
        yield f"Rows of {sheet.source} have names of their own, which are taken as the samples' ids."
    for home, there, ids, unused, repeated in sides:
        if ids:
            verb = "is" if len(ids) == 1 else "are"
            what = f"{counted(len(ids), 'id')} of {home.source} {verb} not in {there.source}"
            yield f"{what}, left out: {listed(ids, shown=10)}."
        for positions, why in ((unused, ""), (repeated, f", as {there.source} has them too")):
            if positions:
                yield f"Not used: {listed([home.names[j] for j in positions], shown=10)} of {home.source}{why}."
        yield from home.notes


# New samples --------------------------------------------------------------------------------------------


def load_features(
    path: str | Path | Sequence[str | Path],
    reading: Reading,
    names: Sequence[str],
    known: Sequence[str] = (),
    *,
    needed: Collection[str] | None = None,
    needs_ids: bool = False,
    categories: Mapping[str, list[str]] = MappingProxyType({}),
    fills: Sequence[Any] | None = None,
    targets: Sequence[str] = (),
    task: str = REGRESSION,
    has_times: bool = False,
    max_memory: str | None = None,
) -> Features:
    """Read the columns that a model needs, by name.

    Parameters
    ----------
    path : str, Path or sequence
        As for :func:`load_table`.
    reading : Reading
        As for the fit; targets, groups, weights and strata need not be there, but offset and exposure must.
    names : sequence of str
        Features of the model.
    known : sequence of str
        Other columns of the fit, which are not worth a mention.
    needed : collection of str, default=None
        Features that a file which names its columns must have, and whose cells are read; all by default.
    needs_ids : bool, default=False
        Whether to refuse a file without the column of ids.
    categories : mapping of str to list of str
        Levels of those features that are categories.
    fills : sequence, default=None
        What stands in for missing cells of each feature; without it, ``reading.missing`` says whether samples with
        gaps are left out or refused.
    targets : sequence of str
        Columns with targets, which need not be there.
    task : {"regression", "classification"}
    has_times : bool, default=False
        Whether targets are pairs of events and times.
    max_memory : str, default=None
        As for :func:`load_table`.
    """
    left = reading.roles.id_columns[0]
    sheet = _read(path, reading, max_memory)
    positions = sheet.names.positions_of(names)
    is_there = positions >= 0
    missing = tuple(names[k] for k in np.flatnonzero(~is_there).tolist())
    if sheet.zeros_left_out:  # columns of zeros at the end, which have numbers for names
        missing = tuple(name for name in missing if not name.isdecimal())
    if missing:
        _check_missing(sheet, missing, names, needed)
    column = None
    if left is not None and (left in sheet.names or (needs_ids and sheet.index is None)):
        column = sheet.find_column("--id-column", left)
    id_name = None if column is None else sheet.names[column]
    is_extra = np.ones(len(sheet.names), dtype=bool)
    is_extra[positions[is_there]] = False
    is_extra[sheet.auxiliary.start :] = False
    others = {*known, id_name}
    extra = tuple(name for j in np.flatnonzero(is_extra) if (name := sheet.names[j]) not in others)
    added = []
    for option, name in reading.roles.added.items():
        if name is not None:
            added.append(_ADDED[option](sheet, sheet.find_column(option, name)))
    is_used = is_there if needed is None else is_there & _is_in(names, needed)
    values = _NewValues(sheet, names, positions, is_used, may_miss=fills is not None or reading.missing == DROP)
    X = values.frame(categories) if categories else values.matrix()
    if fills is not None:
        X = filled(X, fills)
    found = Features(X, sheet.ids(column), extra, id_name, missing, _sum(added))
    found = found.complete() if reading.missing == DROP else found
    return found if not targets else _with_known(found, sheet, reading.roles, targets, task, has_times)


def _with_known(
    features: Features, sheet: Sheet, roles: Roles, targets: Sequence[str], task: str, has_times: bool
) -> Features:
    """Add the targets that are in the file, for scores; errors in them never stop predictions."""
    there = [name for name in targets if name in sheet.names]
    if len(there) < len(targets):
        lacks = f"the file lacks {listed([name for name in targets if name not in there])}"
        return replace(features, notes=(f"Targets are not scored: {lacks}.",)) if there else features
    try:
        table, rows = _known(features, sheet, roles, targets, task, has_times)
    except ValueError as error:
        return replace(features, notes=(f"Targets are not scored: {error}",))
    return features if len(rows) == 0 else replace(features, known=table, known_rows=rows)


def _known(
    features: Features, sheet: Sheet, roles: Roles, targets: Sequence[str], task: str, has_times: bool
) -> tuple[Table, IndexArray]:
    """Samples with targets, and which of those that are predicted they are."""
    columns = [sheet.names.index(name) for name in targets]
    predicted = np.arange(sheet.n_rows) if features.rows is None else features.rows  # of the file
    if task == CLASSIFICATION:
        cells = sheet.labels(columns[0])
        rows = np.array([k for k, i in enumerate(predicted.tolist()) if cells[i] is not None], dtype=np.intp)
        y: Any = np.array([cells[i] for i in predicted[rows].tolist()])
    else:
        y = _numbers_of_targets(sheet, columns, roles)[predicted]
        rows = np.flatnonzero((~np.isnan(y)).all(axis=1) if has_times else (~np.isnan(y)).any(axis=1))
        y = y[rows]
        if len(rows) and (empty := np.isnan(y).all(axis=0)).any():
            raise TableError(
                f"{listed([targets[k] for k in np.flatnonzero(empty).tolist()])} is empty in {sheet.source}."
            )
    others: dict[str, Any] = {}
    for name, read in (("sample_weight", Sheet.weights), ("strata", Sheet.strata)):
        column = getattr(roles, name)
        if column is not None and column in sheet.names:
            others[name] = read(sheet, sheet.names.index(column))[predicted[rows]]
    offset = None if features.offset is None else features.offset[rows]
    table = Table(sheet.source, y, (), y, tuple(targets), task, offset=offset, **others)
    return (table.with_times() if has_times and len(rows) else table), rows


def _is_in(names: Sequence[str], chosen: Collection[str]) -> BoolArray:
    wanted = set(chosen)
    return np.fromiter((name in wanted for name in names), dtype=bool, count=len(names))


@dataclass(frozen=True, eq=False)
class _NewValues:
    """Features of new samples in the order of a model; of columns that are not used, or not there, zeros stand in.

    What is in columns that are not used never matters.
    """

    sheet: Sheet
    names: Sequence[str]
    positions: IndexArray
    is_used: BoolArray
    may_miss: bool

    @property
    def part(self) -> Part:
        """What the columns are, for messages."""
        return NEW_FEATURES._replace(may_miss=self.may_miss)

    def matrix(self) -> Any:
        """All features, as the file has them: an array, sparse, on disk."""
        if isinstance(self.sheet.X, Design):  # has all columns
            design: Any = self.sheet.numbers(self.positions, self.part)
            self._check_gaps()
            return design.filled(np.where(self.is_used, np.nan, 0.0))
        values: Any = self.sheet.numbers(self.positions[self.is_used], self.part)
        if self.is_used.all():
            return values
        if is_sparse(values):
            return values @ sp.eye_array(len(self.names), dtype=values.dtype, format="csr")[self.is_used]
        X = np.zeros((self.sheet.n_rows, len(self.names)), dtype=np.float64 if values is None else values.dtype)
        X[:, self.is_used] = values
        return X

    def _check_gaps(self) -> None:
        """Refuse gaps of used columns on disk, where they may not be; nobody else would look for them."""
        used = self.positions[self.is_used]
        if self.may_miss or len(used) == 0:
            return
        counts = gap_counts(self.sheet.numbers(used, self.part))
        names = [f"{self.sheet.names[used[k]]!r} ({counts[k]})" for k in np.flatnonzero(counts).tolist()]
        if names:
            what = f"{self.sheet.source} has missing values of {listed(names, quoted=False)}"
            raise TableError(f"{what}. {self.part.fill}")

    def frame(self, categories: Mapping[str, list[str]]) -> Any:
        """All features by name; any level stands in for that of a category."""
        used = {self.names[k]: int(self.positions[k]) for k in np.flatnonzero(self.is_used).tolist()}
        sheet, inside = self.sheet, [j for name, j in used.items() if name not in categories]
        numbers = sheet.numbers(inside, self.part, is_small=True) if inside else np.zeros((sheet.n_rows, 0))
        cells = {j: sheet.labels(j) for name, j in used.items() if name in categories}
        frame = sheet.frame(list(used.values()), numbers, cells)
        absent = {name: categories[name][0] if name in categories else 0.0 for name in self.names if name not in used}
        return frame.assign(**absent)[list(self.names)]


def _check_missing(sheet: Sheet, missing: Sequence[str], names: Sequence[str], needed: Collection[str] | None) -> None:
    """Refuse a file without needed features, without any, or where columns may have taken each other's places.

    Names that count columns, as "0", "V1" or "x12" do, may have gone to others when a column was left out.
    """
    stems = {match and match[1] for match in map(_COUNTED.fullmatch, names)}
    are_counted = len(stems) == 1 and None not in stems
    are_names = not (are_counted or sheet.names.n_numbered or isinstance(sheet.X, Design))
    refused = missing
    if are_names and needed is not None and len(missing) < len(names):
        wanted = set(needed)
        refused = [name for name in missing if name in wanted]
    if refused:
        counting = ", and here names are numbers of columns: features that were not selected are needed too"
        what = f"{counted(len(refused), 'column')} of the model's {len(names)} features: {listed(refused, shown=10)}"
        raise TableError(f"{sheet.source} lacks {what}. Columns are matched by name{'' if are_names else counting}.")
