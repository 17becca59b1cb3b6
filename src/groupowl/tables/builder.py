"""From sheets to a table: which columns play which part, how rows are joined, and what is left out."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from .._text import counted, listed
from .._typing import FloatArray, IndexArray
from .names import find_column, find_columns
from .sheet import Sheet, is_number
from .table import CLASSIFICATION, REGRESSION, Match, MissingTargetsError, Roles, Table, TableError

# A number with so few different values may well stand for classes.
_FEW_VALUES = 10


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
    return _Builder(sheet, roles, targets_sheet).table()


class _Column(NamedTuple):
    """A column that may be in either sheet, with the option that names it."""

    option: str
    sheet: Sheet
    position: int


class _Builder:
    """Positions of all columns by what they are for, found once."""

    def __init__(self, sheet: Sheet, roles: Roles, targets_sheet: Sheet | None) -> None:
        self.sheet = sheet
        self.roles = roles
        self.other = None if targets_sheet is None else targets_sheet.apart_from(sheet)
        self.target_sheet = self.other or sheet
        left, right = roles.id_columns
        if self.other is None and left != right:
            raise TableError(
                f"--id-column {roles.id_column} is for two files, but there is no --targets-from. Give it, or one name."
            )
        self.id = self._id_column(sheet, left)
        self.other_id = None if self.other is None else self._id_column(self.other, right)
        self.groups = self._column("--groups", roles.groups)
        self.weight = self._column("--sample-weight", roles.sample_weight)
        self.drop = find_columns("--drop", roles.drop, sheet.names, sheet.source)
        self.targets = self._targets()
        self.target_names = tuple(self.target_sheet.names[j] for j in self.targets)
        self.unpenalized = find_columns("--unpenalized", roles.unpenalized, sheet.names, sheet.source)
        self.copies = self._copies()
        self._check_roles()
        self.features, self.unused = self._features()
        self.match = self._match()

    def table(self) -> Table:
        """All parts, checked."""
        sheet, match = self.sheet, self.match
        X = sheet.numbers(self.features, can_drop=True, rows=None if match is None else match.left)
        if X.shape[0] < 2:
            where = sheet.source if self.other is None else f"{sheet.source} joined with {self.other.source}"
            raise TableError(f"{where} has one sample only. A fit needs at least two.")
        self._check_copies()
        task, y = self._targets_of_task()
        target_notes = self._target_notes(y) if task == REGRESSION else ()
        ids = sheet.ids(self.id)
        return Table(
            source=sheet.source,
            X=X,
            feature_names=sheet.names.chosen(self.features),
            y=y,
            target_names=self.target_names,
            task=task,
            ids=ids if ids is None or match is None else tuple(ids[i] for i in match.left),
            groups=self._of_samples(Sheet.groups, self.groups),
            sample_weight=self._of_samples(Sheet.weights, self.weight),
            unpenalized=tuple(sheet.names[j] for j in self.unpenalized),
            ignored=tuple(sheet.names[j] for j in (*self.drop, *self.unused)),
            match=match,
            notes=(*target_notes, *self._match_notes(), *self._left_out_notes()),
            first_index=sheet.names.first,
        )

    # Columns ----------------------------------------------------------------------------------------

    def _id_column(self, sheet: Sheet, name: str | None) -> int | None:
        """Position of the id column; None where ids are the index of one of two sheets, or there are none."""
        if name is None or (self.other is not None and sheet.index is not None and name not in sheet.names):
            return None
        return find_column("--id-column", name, sheet.names, sheet.source)

    def _column(self, option: str, name: str | None) -> _Column | None:
        if name is None:
            return None
        if self.other is not None and name not in self.sheet.names and name in self.other.names:
            return _Column(option, self.other, self.other.names.index(name))
        return _Column(option, self.sheet, find_column(option, name, self.sheet.names, self.sheet.source))

    def _targets(self) -> list[int]:
        sheet = self.target_sheet
        if self.roles.targets:
            return find_columns("--targets", self.roles.targets, sheet.names, sheet.source)
        if self.other is not None:
            left_out = self._taken(sheet) | set(self._roles_in_both)
            return [j for j in sheet.suggested_targets or range(len(sheet.names)) if j not in left_out]
        if not sheet.suggested_targets:
            raise MissingTargetsError(
                f"which columns of {sheet.source} are targets? Name them with --targets (columns: "
                f"{listed(sheet.names)}), or give a file that holds them with --targets-from."
            )
        return list(sheet.suggested_targets)

    def _taken(self, sheet: Sheet) -> set[int]:
        """Columns of a sheet that are ids, groups or weights."""
        taken = {column.position for column in (self.groups, self.weight) if column and column.sheet is sheet}
        ids = self.id if sheet is self.sheet else self.other_id
        return taken if ids is None else taken | {ids}

    @cached_property
    def _roles_in_both(self) -> list[int]:
        """Columns of the targets' file with the name of the groups or weights that the data have themselves."""
        if self.other is None or self.roles.targets:
            return []
        own = [column for column in (self.groups, self.weight) if column and column.sheet is self.sheet]
        found = [self.other.names.find(self.sheet.names[column.position]) for column in own]
        return [j for j in found if j >= 0]

    def _copies(self) -> list[int]:
        """Columns of the data that have the name of a target in the other file; unnamed ones have none."""
        if self.other is None:
            return []
        names = self.sheet.names
        others = {*self.drop, *self._taken(self.sheet), *self.sheet.auxiliary}
        found = [names.find(name) for name in self.target_names]
        return [j for j in found if j >= names.n_numbered and j not in others]

    def _check_copies(self) -> None:
        """Refuse a column of the data that has the name of a target and other values: nobody knows what it is."""
        sheet, other, match = self.sheet, self.other, self.match
        if match is None or other is None:
            return
        for j in self.copies:
            name = sheet.names[j]
            left, right = sheet.labels(j), other.labels(other.names.index(name))
            n_different = sum(left[i] != right[k] for i, k in zip(match.left, match.right, strict=True))
            if n_different:
                raise TableError(
                    f"{name!r} is a column of {sheet.source} and a target in {other.source}, with different values in "
                    f"{counted(n_different, 'sample')}. If both are the target, use --drop {shlex.quote(name)}; if the "
                    "first is a feature, rename it."
                )

    def _check_roles(self) -> None:
        """Refuse columns that are two things at once."""
        sheet, target_sheet = self.sheet, self.target_sheet
        if not self.targets:
            raise TableError(f"{target_sheet.source} has no column that could be a target. Check --id-column.")
        used = {"--drop": self.drop, "--unpenalized": self.unpenalized} if self.other is None else {}
        for option, found in {**used, "--groups, --sample-weight or --id-column": self._taken(target_sheet)}.items():
            if both := set(self.targets) & set(found):
                names = listed(target_sheet.names[j] for j in sorted(both))
                raise TableError(f"{names} in --targets is also in {option}. A column is one thing only.")
        if both := set(self.unpenalized) & {*self.drop, *self.copies, *self._taken(sheet)}:
            names = listed(sheet.names[j] for j in sorted(both))
            raise TableError(f"{names} in --unpenalized is no feature: another option uses it or leaves it out.")

    def _features(self) -> tuple[IndexArray, list[int]]:
        """Columns that are features, and those that play no part although nobody has dropped them."""
        sheet = self.sheet
        known = {*self.drop, *self._taken(sheet), *(self.targets if self.other is None else [])}
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

    # Rows -------------------------------------------------------------------------------------------

    def _match(self) -> Match | None:
        """Rows with equal ids; all rows in the order of the files where there are none."""
        sheet, other = self.sheet, self.other
        if other is None:
            return None
        left, right = sheet.ids(self.id), other.ids(self.other_id)
        has_id_column = self.roles.id_column is not None
        if left is not None and right is not None and (has_id_column or sheet.index is not None):
            return _match_ids(left, right, sheet.source, other.source)
        if has_id_column:
            missing = sheet.source if left is None else other.source
            raise TableError(f"--id-column: {missing} has no ids. Name a column that is in both files.")
        if sheet.n_rows != other.n_rows:
            raise TableError(
                f"{sheet.source} has {counted(sheet.n_rows, 'sample')}, but {other.source} has {other.n_rows}. Without "
                "--id-column they are joined in order; name the column that has the ids of the samples in both."
            )
        rows = np.arange(sheet.n_rows)
        return Match(rows, rows, in_order=True)

    def _of_samples(self, values_of: Any, column: _Column | None) -> Any:
        """Groups or weights of the rows that have a partner."""
        if column is None:
            return None
        values = values_of(column.sheet, column.option, column.position)
        if self.match is None:
            return values
        return values[self.match.left if column.sheet is self.sheet else self.match.right]

    # Targets ----------------------------------------------------------------------------------------

    def _targets_of_task(self) -> tuple[str, Any]:
        """The task, and targets or labels in the order of the data."""
        sheet, targets, task = self.target_sheet, self.targets, self.roles.task
        texts = [j for j in targets if not sheet.is_number(j)]
        remedy = "Use --task classification if it is a class."
        if task == "auto":
            is_class = len(targets) == 1 and sheet.is_category(targets[0])
            if len(targets) > 1:
                remedy = f"A class must be the only target, but there are {len(targets)}: choose them with --targets."
            elif texts and any(_is_fraction(cell) for cell in sheet.labels(targets[0])):
                remedy = "Correct it, or use --task classification if all of them are labels of classes."
                is_class = False
            task = CLASSIFICATION if is_class else REGRESSION
        rows = slice(None) if self.match is None else self.match.right
        if task == CLASSIFICATION:
            return task, sheet.class_labels(targets, rows)
        if texts:
            raise TableError(sheet.no_number(texts[0], "target", remedy))
        Y = sheet.dense(targets)[rows]
        sheet.check_complete(targets, Y, "target", "Remove the samples without a target.")
        return task, Y

    # Notes ------------------------------------------------------------------------------------------

    def _target_notes(self, Y: FloatArray) -> Iterator[str]:
        """What looks odd about targets that are numbers."""
        constant = [name for name, column in zip(self.target_names, Y.T, strict=True) if np.all(column == column[0])]
        if constant:
            verb = "has" if len(constant) == 1 else "have"
            yield f"Target {listed(constant)} {verb} one value in all samples: there is nothing to explain."
        elif self.roles.task == "auto" and Y.shape[1] == 1:
            values = np.unique(Y)
            if len(values) <= min(_FEW_VALUES, len(Y) // 2) and np.array_equal(values, np.round(values)):
                what = f"Target {self.target_names[0]!r} has {counted(len(values), 'different value')}"
                remedy = "if they are classes, use --task classification."
                yield f"{what}, all whole numbers, and is fitted as a number; {remedy}"

    def _match_notes(self) -> Iterator[str]:
        """How rows of two files were joined, and where ids come from."""
        left, right, match = self.sheet, self.other, self.match
        if match is None or right is None:
            if left.index is not None and self.id is None:
                yield f"Rows of {left.source} have names of their own, which are taken as the samples' ids."
            return
        if match.in_order:
            yield f"Samples of {left.source} and {right.source} are joined in the order of their rows."
        for ids, here, there in ((match.only_left, left, right), (match.only_right, right, left)):
            if ids:
                verb = "is" if len(ids) == 1 else "are"
                what = f"{counted(len(ids), 'id')} of {here.source} {verb} not in {there.source}"
                yield f"{what}, left out: {listed(ids, shown=10)}."

    def _left_out_notes(self) -> Iterator[str]:
        """A line for everything that is in the files and in no part of the table, but for what the user has dropped."""
        sheet, other = self.sheet, self.other
        if beside := [sheet.names[j] for j in self.unused if j not in self.copies]:
            yield f"Not used: {listed(beside, shown=10)} of {sheet.source}, beside its features."
        if other is not None:
            if self.copies:
                copies = listed([sheet.names[j] for j in self.copies], shown=10)
                yield f"Left out of the features: {copies} of {sheet.source}, as {other.source} has them as targets."
            used = {*self.targets, *self._taken(other), *self._roles_in_both}
            if left := [other.names[j] for j in range(len(other.names)) if j not in used]:
                yield f"Not used: {listed(left, shown=10)} of {other.source}, beside its targets."
            if self._roles_in_both:
                roles = listed(other.names[j] for j in self._roles_in_both)
                yield f"Left out of the targets: {roles} of {other.source}, as those of {sheet.source} are used."
        yield from sheet.notes
        yield from other.notes if other is not None else ()


def _is_fraction(cell: Any) -> bool:
    """Whether a cell of text is a number with decimals, as no label is."""
    return isinstance(cell, str) and "." in cell and is_number(cell)


def _match_ids(left: Sequence[str], right: Sequence[str], source: str, other: str) -> Match:
    """Rows with equal ids; ids that occur twice, and files without a common one, are refused."""
    rows_of_left = _rows_of_ids(left, source)
    rows_of_right = _rows_of_ids(right, other)
    common = [name for name in left if name in rows_of_right]
    if not common:
        raise TableError(
            f"no id of {source} is in {other}: the first has {listed(left, shown=3)}, the second "
            f"{listed(right, shown=3)}. Check --id-column, or --transpose if samples are columns."
        )
    return Match(
        np.array([rows_of_left[name] for name in common]),
        np.array([rows_of_right[name] for name in common]),
        tuple(name for name in left if name not in rows_of_right),
        tuple(name for name in right if name not in rows_of_left),
    )


def _rows_of_ids(ids: Sequence[str], source: str) -> dict[str, int]:
    if empty := [i + 1 for i, name in enumerate(ids) if not name]:
        raise TableError(
            f"{source}: {counted(len(empty), 'sample')} without an id (row {listed(empty)}). Give every sample one."
        )
    rows: dict[str, int] = {}
    twice = dict.fromkeys(name for i, name in enumerate(ids) if rows.setdefault(name, i) != i)
    if twice:
        raise TableError(
            f"{source}: {counted(len(twice), 'id')} more than once: {listed(twice)}. "
            "Give every sample an id of its own."
        )
    return rows
