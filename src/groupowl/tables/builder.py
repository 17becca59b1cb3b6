"""From sheets to a table: which columns play which part, how rows are joined, and what is left out."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from .._typing import FloatArray, IndexArray
from .columns import find_column, find_columns
from .errors import MissingTargetsError, TableError, counted, listed
from .joining import Match, match_order, match_rows
from .names import chosen_names
from .sheet import Sheet
from .table import CLASSIFICATION, REGRESSION, Roles, Table
from .values import (
    check_complete,
    class_labels,
    group_values,
    has_fractions,
    no_number,
    numbers_of,
    sample_ids,
    sample_weights,
)

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


class _Builder:
    """Positions of all columns by what they are for, found once."""

    def __init__(self, sheet: Sheet, roles: Roles, targets_sheet: Sheet | None) -> None:
        self.sheet, self.roles = sheet, roles
        self.other = None if targets_sheet is None else targets_sheet.apart_from(sheet)
        left_id, right_id = roles.id_columns
        if targets_sheet is None and left_id != right_id:
            raise TableError(
                f"--id-column {roles.id_column} is for two files, but there is no --targets-from. Give it, or one name."
            )
        self.id = self._own_id(sheet, left_id, may_be_index=targets_sheet is not None)
        self.other_id = None if self.other is None else self._own_id(self.other, right_id, may_be_index=True)
        self.groups = self._one("--groups", roles.groups)
        self.weight = self._one("--sample-weight", roles.sample_weight)
        self.drop = find_columns("--drop", roles.drop, sheet.names, sheet.source)
        self.targets = self._targets()
        self.unpenalized = find_columns("--unpenalized", roles.unpenalized, sheet.names, sheet.source)
        self.copies = self._copies()
        self._check_roles()
        self.features = self._features()

    @property
    def target_sheet(self) -> Sheet:
        """Where the targets are."""
        return self.sheet if self.other is None else self.other

    def table(self) -> Table:
        """All parts, checked."""
        sheet, match = self.sheet, self._match()
        X = numbers_of(sheet, self.features, can_drop=True, rows=None if match is None else match.left)
        if X.shape[0] < 2:
            where = sheet.source if self.other is None else f"{sheet.source} joined with {self.other.source}"
            raise TableError(f"{where} has one sample only. A fit needs at least two.")
        self._check_copies(match)
        task, y, target_notes = self._target_values(match)
        ids = self._ids()
        ignored = [sheet.names[j] for j in (*self.drop, *self._unused())]
        table = Table(
            source=sheet.source,
            X=X,
            feature_names=chosen_names(sheet.names, self.features),
            y=y,
            target_names=tuple(self.target_sheet.names[j] for j in self.targets),
            task=task,
            ids=ids,
            groups=None if self.groups is None else group_values(*self.groups),
            sample_weight=None if self.weight is None else sample_weights(*self.weight),
            unpenalized=tuple(sheet.names[j] for j in self.unpenalized),
            ignored=tuple(ignored),
            match=match,
            notes=(*target_notes, *self._notes(match)),
            first_index=sheet.first_index,
        )
        return self._joined(table, match)

    # Columns ----------------------------------------------------------------------------------------

    def _own_id(self, sheet: Sheet, name: str | None, *, may_be_index: bool) -> int | None:
        """Position of the id column; None where ids are the index of the sheet, or there are none."""
        if name is None or (may_be_index and sheet.index is not None and name not in sheet.positions):
            return None
        return find_column("--id-column", name, sheet.names, sheet.source)

    def _one(self, option: str, name: str | None) -> tuple[str, Sheet, int] | None:
        """The sheet and position of a column that may be in either."""
        if name is None:
            return None
        if self.other is not None and name not in self.sheet.positions and name in self.other.positions:
            return option, self.other, self.other.positions[name]
        return option, self.sheet, find_column(option, name, self.sheet.names, self.sheet.source)

    def _targets(self) -> list[int]:
        sheet = self.target_sheet
        if self.roles.targets:
            return find_columns("--targets", self.roles.targets, sheet.names, sheet.source)
        if self.other is not None:
            left_out = self._taken(sheet) | set(self._roles_in_both())
            return [j for j in sheet.suggested_targets or range(len(sheet.names)) if j not in left_out]
        if not sheet.suggested_targets:
            raise MissingTargetsError(
                f"which columns of {sheet.source} are targets? Name them with --targets (columns: "
                f"{listed(sheet.names)}), or give a file that holds them with --targets-from."
            )
        return list(sheet.suggested_targets)

    def _taken(self, sheet: Sheet) -> set[int]:
        """Columns of a sheet that are ids, groups or weights."""
        taken = {item[2] for item in (self.groups, self.weight) if item is not None and item[1] is sheet}
        ids = self.id if sheet is self.sheet else self.other_id
        return taken if ids is None else taken | {ids}

    def _roles_in_both(self) -> list[int]:
        """Columns of the targets' file with the name of the groups or weights that the data have themselves."""
        if self.other is None or self.roles.targets:
            return []
        named = [self.sheet.names[item[2]] for item in (self.groups, self.weight) if item and item[1] is self.sheet]
        return [self.other.positions[name] for name in named if name in self.other.positions]

    def _copies(self) -> list[int]:
        """Columns of the data that have the name of a target in the other file; unnamed ones have none."""
        if self.other is None:
            return []
        sheet = self.sheet
        others = {*self.drop, *self._taken(sheet), *sheet.auxiliary}
        found = [sheet.positions[name] for name in self._target_names() if name in sheet.positions]
        return [j for j in found if j not in others and j not in sheet.unnamed]

    def _check_copies(self, match: Match | None) -> None:
        """Refuse a column of the data that has the name of a target and other values: nobody knows what it is."""
        sheet, other = self.sheet, self.other
        if match is None or other is None:
            return
        for j in self.copies:
            name = sheet.names[j]
            left, right = sheet.labels(j), other.labels(other.positions[name])
            n_different = sum(left[i] != right[k] for i, k in zip(match.left, match.right, strict=True))
            if n_different:
                raise TableError(
                    f"{name!r} is a column of {sheet.source} and a target in {other.source}, with different values in "
                    f"{counted(n_different, 'sample')}. If both are the target, use --drop {shlex.quote(name)}; if the "
                    "first is a feature, rename it."
                )

    def _check_roles(self) -> None:
        """Refuse columns that are two things at once."""
        if not self.targets:
            raise TableError(f"{self.target_sheet.source} has no column that could be a target. Check --id-column.")
        others = {"--drop": self.drop, "--unpenalized": self.unpenalized} if self.other is None else {}
        named = {"--targets": set(self.targets), **{option: set(found) for option, found in others.items()}}
        taken = self._taken(self.target_sheet)
        for option, found in {**named, "--groups, --sample-weight or --id-column": taken}.items():
            if option != "--targets" and (both := named["--targets"] & found):
                names = listed(self.target_sheet.names[j] for j in sorted(both))
                raise TableError(f"{names} in --targets is also in {option}. A column is one thing only.")
        if both := set(self.unpenalized) & {*self.drop, *self.copies, *self._taken(self.sheet)}:
            names = listed(self.sheet.names[j] for j in sorted(both))
            raise TableError(f"{names} in --unpenalized is no feature: another option uses it or leaves it out.")

    def _features(self) -> IndexArray:
        sheet = self.sheet
        out = set(self.drop) | self._taken(sheet) | (set(self.targets) if self.other is None else set())
        out |= sheet.auxiliary - set(self.unpenalized)
        out |= set(self.copies)  # targets that are in the data too would explain themselves
        features = self._without(out)
        if len(features) == 0:
            raise TableError(f"{sheet.source} has no column left that is a feature. Check --targets and --drop.")
        if len(self.unpenalized) == len(features):
            raise TableError(f"--unpenalized has all {len(features)} features: at least one must be penalised.")
        return features

    def _without(self, columns: Iterable[int]) -> IndexArray:
        """All columns of the features' file but some."""
        is_left = np.ones(len(self.sheet.names), dtype=bool)
        is_left[list(columns)] = False
        return np.flatnonzero(is_left)

    def _target_names(self) -> list[str]:
        return [self.target_sheet.names[j] for j in self.targets]

    def _unused(self) -> list[int]:
        """Columns of the features' file that play no part and were not dropped by the user."""
        known = {*self.drop, *self._taken(self.sheet), *(self.targets if self.other is None else [])}
        unused: list[int] = np.setdiff1d(self._without(known), self.features, assume_unique=True).tolist()
        return unused

    # Rows -------------------------------------------------------------------------------------------

    def _ids(self) -> tuple[str, ...] | None:
        return sample_ids(self.sheet, self.id)

    def _match(self) -> Match | None:
        if self.other is None:
            return None
        sources = self.sheet.source, self.other.source
        left, right = self._ids(), sample_ids(self.other, self.other_id)
        wanted = self.roles.id_column is not None or self.sheet.index is not None
        if not wanted or left is None or right is None:
            if self.roles.id_column is not None:
                missing = sources[0] if left is None else sources[1]
                raise TableError(f"--id-column: {missing} has no ids. Name a column that is in both files.")
            return match_order(self.sheet.n_rows, self.other.n_rows, sources)
        return match_rows(left, right, sources)

    def _joined(self, table: Table, match: Match | None) -> Table:
        """Ids, groups and weights of the rows that have a partner; features and targets are those already."""
        if match is None:
            return table
        other = self.other
        groups, weight = table.groups, table.sample_weight
        if self.groups is not None:
            groups = groups[match.right if self.groups[1] is other else match.left]
        if self.weight is not None and weight is not None:
            weight = weight[match.right if self.weight[1] is other else match.left]
        return replace(
            table,
            ids=None if table.ids is None else tuple(table.ids[i] for i in match.left),
            groups=groups,
            sample_weight=weight,
        )

    # Targets ----------------------------------------------------------------------------------------

    def _target_values(self, match: Match | None) -> tuple[str, Any, list[str]]:
        """The task, targets or labels in the order of the data, and notes about them."""
        sheet, task = self.target_sheet, self._task()
        rows = slice(None) if match is None else match.right
        if task == CLASSIFICATION:
            return task, class_labels(sheet, self.targets, rows), []
        for j in self.targets:
            if not sheet.is_number(j):
                raise TableError(no_number(sheet, j, "target", "Use --task classification if it is a class."))
        Y = sheet.dense(self.targets)[rows]
        check_complete(sheet, self.targets, Y, "target", "Remove the samples without a target.")
        return task, Y, self._target_notes(Y)

    def _task(self) -> str:
        if self.roles.task != "auto":
            return self.roles.task
        sheet, targets = self.target_sheet, self.targets
        if len(targets) == 1:
            is_text = not sheet.is_number(targets[0])
            if is_text and has_fractions(sheet.labels(targets[0])):
                remedy = "Correct it, or use --task classification if all of them are labels of classes."
                raise TableError(no_number(sheet, targets[0], "target", remedy))
            return CLASSIFICATION if sheet.is_category(targets[0]) else REGRESSION
        texts = [j for j in targets if not sheet.is_number(j)]
        if texts:
            raise TableError(
                no_number(
                    sheet,
                    texts[0],
                    "target",
                    f"A class must be the only target, but there are {len(targets)}: choose them with --targets.",
                )
            )
        return REGRESSION

    def _target_notes(self, Y: FloatArray) -> list[str]:
        """What looks odd about targets that are numbers."""
        constant = [name for name, column in zip(self._target_names(), Y.T, strict=True) if np.all(column == column[0])]
        if constant:
            verb = "has" if len(constant) == 1 else "have"
            return [f"Target {listed(constant)} {verb} one value in all samples: there is nothing to explain."]
        few = self._few_values_note(Y)
        return [] if few is None else [few]

    def _few_values_note(self, Y: FloatArray) -> str | None:
        if self.roles.task != "auto" or Y.shape[1] > 1:
            return None
        values = np.unique(Y)
        if len(values) > _FEW_VALUES or np.any(values != np.round(values)) or len(values) > len(Y) // 2:
            return None
        name = self.target_sheet.names[self.targets[0]]
        return (
            f"Target {name!r} has {counted(len(values), 'different value')}, all whole numbers, and is fitted as a "
            "number; if they are classes, use --task classification."
        )

    def _notes(self, match: Match | None) -> list[str]:
        notes = []
        if self.sheet.index is not None and self.id is None and self.other is None:
            notes.append(f"Rows of {self.sheet.source} have names of their own, which are taken as the samples' ids.")
        if match is not None and self.other is not None:
            notes += _match_notes(match, self.sheet, self.other)
        return notes + self._left_out_notes()

    def _left_out_notes(self) -> list[str]:
        """A line for everything that is in the files and in no part of the table, but for what the user has dropped."""
        sheet, other = self.sheet, self.other
        beside = [sheet.names[j] for j in self._unused() if j not in self.copies]
        copies = [sheet.names[j] for j in self.copies]
        notes = [f"Not used: {listed(beside, shown=10)} of {sheet.source}, beside its features."] if beside else []
        if other is None:
            return [*notes, *sheet.notes]
        if copies:
            shown = listed(copies, shown=10)
            notes.append(f"Left out of the features: {shown} of {sheet.source}, as {other.source} has them as targets.")
        used = {*self.targets, *self._taken(other), *self._roles_in_both()}
        if unused := [other.names[j] for j in range(len(other.names)) if j not in used]:
            notes.append(f"Not used: {listed(unused, shown=10)} of {other.source}, beside its targets.")
        if roles := self._roles_in_both():
            shown = listed(other.names[j] for j in roles)
            notes.append(f"Left out of the targets: {shown} of {other.source}, as those of {sheet.source} are used.")
        return [*notes, *sheet.notes, *other.notes]


def _match_notes(match: Match, left: Sheet, right: Sheet) -> list[str]:
    if match.in_order:
        return [f"Samples of {left.source} and {right.source} are joined in the order of their rows."]
    notes = []
    for ids, here, there in ((match.only_left, left, right), (match.only_right, right, left)):
        if ids:
            verb = "is" if len(ids) == 1 else "are"
            shown = listed(ids, shown=10)
            notes.append(f"{counted(len(ids), 'id')} of {here.source} {verb} not in {there.source}, left out: {shown}.")
    return notes
