"""From files to a table: which columns play which part, how rows are joined, and what is left out.

Also from a file to the features of new samples, in the order of a model.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._text import counted, listed
from .._typing import IndexArray
from ..designs import Design
from .names import TableError, find_column, find_columns
from .readers import read_sheet
from .sheet import Sheet, is_number
from .table import CLASSIFICATION, REGRESSION, Features, Match, MissingTargetsError, Reading, Roles, Table

# A number with so few different values may well stand for classes.
_FEW_VALUES = 10
_COUNTED = re.compile(r"(\D*)\d+")


def load_table(path: str | Path, reading: Reading) -> Table:
    """Read the file of the features, and that of the targets if there is one, and check everything."""
    sheet = _read(path, reading)
    other = None
    if reading.targets_from is not None:
        other = read_sheet(reading.targets_from, text_columns=reading.roles.id_columns[1:])
    return make_table(sheet, reading.roles, other)


def _read(path: str | Path, reading: Reading) -> Sheet:
    ids = reading.roles.id_columns[:1]
    return read_sheet(
        path, format=reading.format, transpose=reading.transpose, text_columns=ids, first_index=reading.first_index
    )


def make_table(sheet: Sheet, roles: Roles, targets_sheet: Sheet | None = None) -> Table:
    """The table of a sheet, or of two that are joined.

    Parameters
    ----------
    sheet : Sheet
        Features, and whatever is not in the other sheet.
    roles : Roles
        What columns are for. Groups and sample weights may be in either sheet.
    targets_sheet : Sheet, default=None
        Targets in a file of their own.

    Returns
    -------
    Table

    Raises
    ------
    TableError
        If a column is not there, has the wrong kind of cells, or misses some; if ids do not match.
    """
    columns = _Columns(sheet, roles, targets_sheet)
    match, where = None, sheet.source
    if columns.other is not None:
        match, where = _match(columns), f"{sheet.source} joined with {columns.other.source}"
        _check_copies(columns, match)
    X = sheet.numbers(columns.features, can_drop=True, rows=None if match is None else match.left)
    if X.shape[0] < 2:
        raise TableError(f"{where} has one sample only. A fit needs at least two.")
    task, y = _targets(columns, slice(None) if match is None else match.right)
    beside = {}
    for option, (home, j) in columns.beside.items():
        values = home.groups(option, j) if option == "--groups" else home.weights(option, j)
        if match is not None:
            values = values[match.left if home is sheet else match.right]
        beside[option] = values
    ids = sheet.ids(columns.id)
    return Table(
        source=sheet.source,
        X=X,
        feature_names=sheet.names.chosen(columns.features),
        y=y,
        target_names=columns.target_names,
        task=task,
        ids=ids if ids is None or match is None else tuple(ids[i] for i in match.left),
        groups=beside.get("--groups"),
        sample_weight=beside.get("--sample-weight"),
        unpenalized=tuple(sheet.names[j] for j in columns.unpenalized),
        ignored=tuple(sheet.names[j] for j in (*columns.drop, *columns.unused)),
        match=match,
        notes=(*_target_notes(columns, task, y), *_notes(columns, match)),
        first_index=sheet.names.first,
    )


class _Columns:
    """Positions of all columns by what they are for, checked.

    Attributes
    ----------
    other : Sheet or None
        The sheet of the targets, if it is another one.
    beside : dict
        Sheet and position of the columns of groups and weights, by option.
    repeated : list of int
        Columns of the other sheet with the name of groups or weights that the data have themselves.
    copies : list of int
        Columns of the data that have the name of a target in the other sheet; unnamed ones have none.
    unused : list of int
        Columns of the data that play no part although nobody has dropped them.
    """

    def __init__(self, sheet: Sheet, roles: Roles, targets_sheet: Sheet | None) -> None:
        self.sheet, self.roles = sheet, roles
        self.other = other = None if targets_sheet is None else targets_sheet.apart_from(sheet)
        self.target_sheet = other or sheet
        left, right = roles.id_columns
        if other is None and left != right:
            raise TableError(
                f"--id-column {roles.id_column} is for two files, but there is no --targets-from. Give it, or one name."
            )
        self.id = self._id_column(sheet, left)
        self.other_id = None if other is None else self._id_column(other, right)
        self.beside: dict[str, tuple[Sheet, int]] = {}
        for option, name in (("--groups", roles.groups), ("--sample-weight", roles.sample_weight)):
            if name is not None:
                home = other if other is not None and name not in sheet.names and name in other.names else sheet
                self.beside[option] = home, find_column(option, name, home.names, home.source)
        self.drop = find_columns("--drop", roles.drop, sheet.names, sheet.source)
        self.repeated: list[int] = []
        if other is not None and not roles.targets:
            own = [other.names.find(sheet.names[j]) for home, j in self.beside.values() if home is sheet]
            self.repeated = [j for j in own if j >= 0]
        self.targets = self._targets()
        self.target_names = tuple(self.target_sheet.names[j] for j in self.targets)
        self.unpenalized = find_columns("--unpenalized", roles.unpenalized, sheet.names, sheet.source)
        self.copies: list[int] = []
        if other is not None:
            others = {*self.drop, *self.taken(sheet), *sheet.auxiliary}
            found = [sheet.names.find(name) for name in self.target_names]
            self.copies = [j for j in found if j >= sheet.names.n_numbered and j not in others]
        self.features, self.unused = self._features()

    def _id_column(self, sheet: Sheet, name: str | None) -> int | None:
        """Position of the id column; None where ids are the index of one of two sheets, or there are none."""
        if name is None or (self.other is not None and sheet.index is not None and name not in sheet.names):
            return None
        return find_column("--id-column", name, sheet.names, sheet.source)

    def taken(self, sheet: Sheet) -> set[int]:
        """Columns of a sheet that are ids, groups or weights."""
        ids = self.id if sheet is self.sheet else self.other_id
        taken = {j for home, j in self.beside.values() if home is sheet}
        return taken if ids is None else taken | {ids}

    def _targets(self) -> list[int]:
        sheet = self.target_sheet
        if self.roles.targets:
            return find_columns("--targets", self.roles.targets, sheet.names, sheet.source)
        if self.other is not None:
            left_out = {*self.taken(sheet), *self.repeated}
            return [j for j in sheet.suggested_targets or range(len(sheet.names)) if j not in left_out]
        if not sheet.suggested_targets:
            raise MissingTargetsError(
                f"which columns of {sheet.source} are targets? Name them with --targets (columns: "
                f"{listed(sheet.names)}), or give a file that holds them with --targets-from."
            )
        return list(sheet.suggested_targets)

    def _features(self) -> tuple[IndexArray, list[int]]:
        """Columns that are features, and those that are nothing; a column that is two things at once is refused."""
        sheet, target_sheet = self.sheet, self.target_sheet
        if not self.targets:
            raise TableError(f"{target_sheet.source} has no column that could be a target. Check --id-column.")
        used = {"--drop": self.drop, "--unpenalized": self.unpenalized} if self.other is None else {}
        for option, found in {**used, "--groups, --sample-weight or --id-column": self.taken(target_sheet)}.items():
            if both := set(self.targets) & set(found):
                names = listed(target_sheet.names[j] for j in sorted(both))
                raise TableError(f"{names} in --targets is also in {option}. A column is one thing only.")
        known = {*self.drop, *self.taken(sheet)}
        if both := set(self.unpenalized) & {*known, *self.copies}:
            names = listed(sheet.names[j] for j in sorted(both))
            raise TableError(f"{names} in --unpenalized is no feature: another option uses it or leaves it out.")
        if self.other is None:
            known |= set(self.targets)
        # targets that are in the data too would explain themselves
        unused = {*sheet.auxiliary, *self.copies} - set(self.unpenalized) - known
        is_feature = np.ones(len(sheet.names), dtype=bool)
        is_feature[[*known, *unused]] = False
        features = np.flatnonzero(is_feature)
        if len(features) == 0:
            raise TableError(f"{sheet.source} has no column left that is a feature. Check --targets and --drop.")
        if len(self.unpenalized) == len(features):
            raise TableError(f"--unpenalized has all {len(features)} features: at least one must be penalized.")
        return features, sorted(unused)


# Rows ---------------------------------------------------------------------------------------------------


def _match(columns: _Columns) -> Match:
    """Rows of two sheets with equal ids; all rows in the order of the files where there are none."""
    sheet, other, id_column = columns.sheet, columns.target_sheet, columns.roles.id_column
    left, right = sheet.ids(columns.id), other.ids(columns.other_id)
    if left is None or right is None or (id_column is None and sheet.index is None):
        if id_column is not None:
            missing = sheet.source if left is None else other.source
            raise TableError(f"--id-column: {missing} has no ids. Name a column that is in both files.")
        if sheet.n_rows != other.n_rows:
            raise TableError(
                f"{sheet.source} has {counted(sheet.n_rows, 'sample')}, but {other.source} has {other.n_rows}. Without "
                "--id-column they are joined in order; name the column that has the ids of the samples in both."
            )
        rows = np.arange(sheet.n_rows)
        return Match(rows, rows, in_order=True)
    rows_of_left, rows_of_right = _rows_of_ids(left, sheet.source), _rows_of_ids(right, other.source)
    common = [name for name in left if name in rows_of_right]
    if not common:
        raise TableError(
            f"no id of {sheet.source} is in {other.source}: the first has {listed(left, shown=3)}, the second "
            f"{listed(right, shown=3)}. Check --id-column, or --transpose if samples are columns."
        )
    return Match(
        np.array([rows_of_left[name] for name in common]),
        np.array([rows_of_right[name] for name in common]),
        tuple(name for name in left if name not in rows_of_right),
        tuple(name for name in right if name not in rows_of_left),
    )


def _check_copies(columns: _Columns, match: Match) -> None:
    """Refuse a column of the data that has the name of a target and other values: nobody knows what it is."""
    sheet, other = columns.sheet, columns.target_sheet
    for name in [sheet.names[j] for j in columns.copies]:
        left, right = (home.labels(home.names.index(name)) for home in (sheet, other))
        n_different = sum(left[i] != right[k] for i, k in zip(match.left, match.right, strict=True))
        if n_different:
            raise TableError(
                f"{name!r} is a column of {sheet.source} and a target in {other.source}, with different values in "
                f"{counted(n_different, 'sample')}. If both are the target, use --drop {shlex.quote(name)}; if the "
                "first is a feature, rename it."
            )


def _rows_of_ids(ids: Sequence[str], source: str) -> dict[str, int]:
    """The row of each id; empty ids, and those that occur twice, are refused."""
    if empty := [i + 1 for i, name in enumerate(ids) if not name]:
        what = f"{counted(len(empty), 'sample')} without an id (row {listed(empty)})"
        raise TableError(f"{source}: {what}. Give every sample one.")
    rows: dict[str, int] = {}
    if twice := dict.fromkeys(name for i, name in enumerate(ids) if rows.setdefault(name, i) != i):
        what = f"{counted(len(twice), 'id')} more than once: {listed(twice)}"
        raise TableError(f"{source}: {what}. Give every sample an id of its own.")
    return rows


# Targets ------------------------------------------------------------------------------------------------


def _targets(columns: _Columns, rows: Any) -> tuple[str, Any]:
    """The task, and targets or labels in the order of the data."""
    sheet, targets, task = columns.target_sheet, columns.targets, columns.roles.task
    texts = [j for j in targets if j in sheet.texts]
    remedy = "Use --task classification if it is a class."
    if task == "auto":
        is_class = len(targets) == 1 and sheet.is_category(targets[0])
        if len(targets) > 1:
            remedy = f"A class must be the only target, but there are {len(targets)}: choose them with --targets."
        elif texts and any(
            isinstance(cell, str) and "." in cell and is_number(cell) for cell in sheet.labels(texts[0])
        ):
            remedy = "Correct it, or use --task classification if all of them are labels of classes."
            is_class = False  # no label is a number with decimals
        task = CLASSIFICATION if is_class else REGRESSION
    if task == CLASSIFICATION:
        return task, sheet.class_labels(targets, rows)
    if texts:
        raise TableError(sheet.no_number(texts[0], "target", remedy))
    Y = sheet.dense(targets)[rows]
    sheet.check_values(targets, Y, "target", "Remove the samples without a target.")
    return task, Y


def _target_notes(columns: _Columns, task: str, Y: Any) -> Iterator[str]:
    """What looks odd about targets that are numbers."""
    if task == CLASSIFICATION:
        return
    constant = [name for name, column in zip(columns.target_names, Y.T, strict=True) if np.all(column == column[0])]
    if constant:
        verb = "has" if len(constant) == 1 else "have"
        yield f"Target {listed(constant)} {verb} one value in all samples: there is nothing to explain."
    elif columns.roles.task == "auto" and Y.shape[1] == 1:
        values = np.unique(Y)
        if len(values) <= min(_FEW_VALUES, len(Y) // 2) and np.array_equal(values, np.round(values)):
            what = (
                f"Target {columns.target_names[0]!r} has {counted(len(values), 'different value')}, all whole numbers,"
            )
            yield f"{what} and is fitted as a number; if they are classes, use --task classification."


def _notes(columns: _Columns, match: Match | None) -> Iterator[str]:
    """How rows of two files were joined, and what is in no part of the table, but for what the user has dropped."""
    sheet, other = columns.sheet, columns.other

    def named(home: Sheet, positions: Collection[int]) -> str:
        return f"{listed([home.names[j] for j in positions], shown=10)} of {home.source}"

    if other is None and sheet.index is not None and columns.id is None:
        yield f"Rows of {sheet.source} have names of their own, which are taken as the samples' ids."
    if match is not None and other is not None:
        if match.in_order:
            yield f"Samples of {sheet.source} and {other.source} are joined in the order of their rows."
        for ids, here, there in ((match.only_left, sheet, other), (match.only_right, other, sheet)):
            if ids:
                verb = "is" if len(ids) == 1 else "are"
                what = f"{counted(len(ids), 'id')} of {here.source} {verb} not in {there.source}"
                yield f"{what}, left out: {listed(ids, shown=10)}."
    if beside := [j for j in columns.unused if j not in columns.copies]:
        yield f"Not used: {named(sheet, beside)}, beside its features."
    if other is not None:
        if columns.copies:
            yield f"Left out of the features: {named(sheet, columns.copies)}, as {other.source} has them as targets."
        used = {*columns.targets, *columns.taken(other), *columns.repeated}
        if left := [j for j in range(len(other.names)) if j not in used]:
            yield f"Not used: {named(other, left)}, beside its targets."
        if columns.repeated:
            yield f"Left out of the targets: {named(other, columns.repeated)}, as those of {sheet.source} are used."
    yield from sheet.notes
    yield from other.notes if other is not None else ()


# New samples --------------------------------------------------------------------------------------------


def load_features(
    path: str | Path,
    reading: Reading,
    names: Sequence[str],
    known: Sequence[str] = (),
    *,
    needed: Collection[str] | None = None,
    needs_ids: bool = False,
) -> Features:
    """Read the columns that a model needs, by name.

    Parameters
    ----------
    path : str or Path
    reading : Reading
        As for the fit; targets, groups and weights need not be there.
    names : sequence of str
        Features of the model.
    known : sequence of str
        Other columns of the fit, which are not worth a mention.
    needed : collection of str, default=None
        Features that a file which names its columns must have; all by default.
    needs_ids : bool, default=False
        Whether to refuse a file without the column of ids.
    """
    left = reading.roles.id_columns[0]
    sheet = _read(path, reading)
    positions = sheet.names.positions_of(names)
    is_there = positions >= 0
    missing = () if sheet.zeros_left_out else tuple(names[k] for k in np.flatnonzero(~is_there).tolist())
    if missing:
        _check_missing(sheet, missing, names, needed)
    column = None
    if left is not None and (left in sheet.names or (needs_ids and sheet.index is None)):
        column = find_column("--id-column", left, sheet.names, sheet.source)
    id_name = None if column is None else sheet.names[column]
    is_extra = np.ones(len(sheet.names), dtype=bool)
    is_extra[positions[is_there]] = False
    is_extra[sheet.auxiliary.start :] = False
    found = (sheet.names[j] for j in np.flatnonzero(is_extra).tolist())
    others = {*known, id_name}
    extra = tuple(name for name in found if name not in others)
    X = sheet.numbers(positions[is_there])
    if not is_there.all():  # zeros stand in for what the file leaves out
        shape, places = (X.shape[0], len(positions)), np.flatnonzero(is_there)
        if isinstance(X, np.ndarray):
            part, X = X, np.zeros(shape, dtype=X.dtype, order="F")
            X[:, places] = part
        else:
            X = sp.csr_array((X.data, places[X.indices], X.indptr), shape=shape)
    return Features(X, sheet.ids(column), extra, id_name, missing)


def _check_missing(sheet: Sheet, missing: Sequence[str], names: Sequence[str], needed: Collection[str] | None) -> None:
    """Refuse a file without needed features, without any, or where columns may have taken each other's places.

    Names that count columns, as "0", "V1" or "x12" do, may have gone to others when a column was left out.
    """
    stems = {match and match[1] for match in map(_COUNTED.fullmatch, names)}
    are_counted = len(stems) == 1 and None not in stems
    are_names = not (are_counted or sheet.names.n_numbered or isinstance(sheet.X, Design))
    refused = missing
    if are_names and needed is not None and len(missing) < len(names):
        refused = [name for name in missing if name in set(needed)]
    if refused:
        also = ", and here names are numbers of columns: features that were not selected are needed too"
        raise TableError(
            f"{sheet.source} lacks {counted(len(refused), 'column')} of the model's {len(names)} features: "
            f"{listed(refused, shown=10)}. Columns are matched by name{'' if are_names else also}."
        )
