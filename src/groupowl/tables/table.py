"""Tables: features, targets and what belongs to them, checked and ready for a fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._typing import FloatArray, IndexArray
from ..designs import Design
from .columns import find_column, find_columns
from .errors import MissingTargetsError, TableError, counted, listed
from .joining import Match, match_order, match_rows
from .sheets import Sheet

REGRESSION, CLASSIFICATION = "regression", "classification"
TASKS = ("auto", REGRESSION, CLASSIFICATION)

# A number with so few different values may well stand for classes.
_FEW_VALUES = 10
_SHOWN_COLUMNS = 5
# Its square is about the largest double.
_LARGEST = np.sqrt(np.finfo(np.float64).max)


@dataclass(frozen=True)
class Roles:
    """What the columns of a file are for, as users say it; see :func:`groupowl.tables.columns.find_columns`.

    Attributes
    ----------
    targets : tuple of str
        Columns to explain; empty for those that the format itself names, or all of another file.
    drop : tuple of str
        Columns to leave out.
    unpenalized : tuple of str
        Features without penalty.
    groups, sample_weight : str or None
        Columns with the group and the weight of each sample.
    id_column : str or None
        Column with the names of samples; ``left=right`` where it has another name in the file of targets.
    task : {"auto", "regression", "classification"}
    """

    targets: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    unpenalized: tuple[str, ...] = ()
    groups: str | None = None
    sample_weight: str | None = None
    id_column: str | None = None
    task: str = "auto"

    @property
    def id_columns(self) -> tuple[str | None, str | None]:
        """Names of the id column in the file of features and in that of targets."""
        if self.id_column is None:
            return None, None
        left, _, right = self.id_column.partition("=")
        return left, right or left


@dataclass(frozen=True, eq=False)
class Table:
    """Data of a fit.

    Attributes
    ----------
    source : str
        The file of the features.
    X : ndarray or csr_array of shape (n_samples, n_features)
    feature_names : tuple of str
    y : ndarray of shape (n_samples, n_targets) or (n_samples,)
        Targets, or one label per sample for classification.
    target_names : tuple of str
    task : {"regression", "classification"}
    ids : tuple of str or None
        Names of the samples.
    groups : ndarray or None
        Group of each sample.
    sample_weight : ndarray or None
    unpenalized : tuple of str
        Names of features without penalty.
    ignored : tuple of str
        Columns that are not used.
    match : Match or None
        How the rows of two files were joined.
    notes : tuple of str
        Sentences that the user should read.
    first_index : int
        Number that the file itself gives to its first column.
    """

    source: str
    X: Any
    feature_names: tuple[str, ...]
    y: Any
    target_names: tuple[str, ...]
    task: str
    ids: tuple[str, ...] | None = None
    groups: Any = None
    sample_weight: FloatArray | None = None
    unpenalized: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    match: Match | None = None
    notes: tuple[str, ...] = ()
    first_index: int = 1

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        return int(self.X.shape[0])

    @property
    def n_features(self) -> int:
        """Number of features."""
        return int(self.X.shape[1])

    @property
    def is_classification(self) -> bool:
        """Whether the target is a class."""
        return self.task == CLASSIFICATION

    @property
    def classes(self) -> list[Any]:
        """Labels that occur, sorted; empty for a regression."""
        return np.unique(self.y).tolist() if self.is_classification else []

    @property
    def frame(self) -> Any:
        """X with names, as estimators take it; a sparse X has none."""
        if not isinstance(self.X, np.ndarray):
            return self.X
        import pandas

        return pandas.DataFrame(self.X, columns=list(self.feature_names), copy=False)

    @property
    def target_frame(self) -> Any:
        """Targets with names, or labels."""
        if self.is_classification:
            return self.y
        import pandas

        return pandas.DataFrame(self.y, columns=list(self.target_names), copy=False)

    def rows(self, chosen: IndexArray) -> Table:
        """Some of the samples."""
        return replace(
            self,
            X=_samples(self.X, chosen),
            y=self.y[chosen],
            ids=None if self.ids is None else tuple(self.ids[i] for i in chosen),
            groups=None if self.groups is None else self.groups[chosen],
            sample_weight=None if self.sample_weight is None else self.sample_weight[chosen],
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
    return _Builder(sheet, roles, targets_sheet).table()


class _Builder:
    """Positions of all columns by what they are for, found once."""

    def __init__(self, sheet: Sheet, roles: Roles, targets_sheet: Sheet | None) -> None:
        self.sheet, self.roles, self.other = sheet, roles, targets_sheet
        left_id, right_id = roles.id_columns
        self.id = self._own_id(sheet, left_id, may_be_index=targets_sheet is not None)
        self.other_id = None if targets_sheet is None else self._own_id(targets_sheet, right_id, may_be_index=True)
        self.groups = self._one("--groups", roles.groups)
        self.weight = self._one("--sample-weight", roles.sample_weight)
        self.drop = find_columns("--drop", roles.drop, sheet.names, sheet.source)
        self.targets = self._targets()
        self.unpenalized = find_columns("--unpenalized", roles.unpenalized, sheet.names, sheet.source)
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
        task, y, target_notes = self._target_values(match)
        ids = self._ids()
        ignored = [sheet.names[j] for j in (*self.drop, *self._unused())]
        table = Table(
            source=sheet.source,
            X=X,
            feature_names=tuple(sheet.names[j] for j in self.features),
            y=y,
            target_names=tuple(self.target_sheet.names[j] for j in self.targets),
            task=task,
            ids=ids,
            groups=None if self.groups is None else _group_values(*self.groups),
            sample_weight=None if self.weight is None else _weights(*self.weight),
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
            return [j for j in range(len(sheet.names)) if j not in self._taken(sheet)]
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
        if both := set(self.unpenalized) & (set(self.drop) | self._taken(self.sheet)):
            names = listed(self.sheet.names[j] for j in sorted(both))
            raise TableError(f"{names} in --unpenalized is no feature: another option uses it or leaves it out.")

    def _features(self) -> list[int]:
        sheet = self.sheet
        out = set(self.drop) | self._taken(sheet) | (set(self.targets) if self.other is None else set())
        out |= sheet.auxiliary - set(self.unpenalized)
        if self.other is not None:  # targets that are in the data too would explain themselves
            out |= {sheet.positions[name] for name in self._target_names() if name in sheet.positions}
        features = [j for j in range(len(sheet.names)) if j not in out]
        if not features:
            raise TableError(f"{sheet.source} has no column left that is a feature. Check --targets and --drop.")
        if len(self.unpenalized) == len(features):
            raise TableError(f"--unpenalized has all {len(features)} features: at least one must be penalised.")
        return features

    def _target_names(self) -> list[str]:
        return [self.target_sheet.names[j] for j in self.targets]

    def _unused(self) -> list[int]:
        """Columns of the features' file that play no part and were not dropped by the user."""
        known = {*self.features, *self.drop, *self._taken(self.sheet), *(self.targets if self.other is None else [])}
        return [j for j in range(len(self.sheet.names)) if j not in known]

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
                raise TableError(_no_number(sheet, j, "target", "Use --task classification if it is a class."))
        Y = sheet.dense(self.targets)[rows]
        _check_complete(sheet, self.targets, Y, "target", "Remove the samples without a target.")
        return task, Y, self._target_notes(Y)

    def _task(self) -> str:
        if self.roles.task != "auto":
            return self.roles.task
        sheet, targets = self.target_sheet, self.targets
        if len(targets) == 1:
            return CLASSIFICATION if sheet.is_category(targets[0]) else REGRESSION
        texts = [j for j in targets if not sheet.is_number(j)]
        if texts:
            raise TableError(
                _no_number(
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
        return notes


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


# Values -------------------------------------------------------------------------------------------------


def numbers_of(sheet: Sheet, features: Sequence[int], *, can_drop: bool = False, rows: IndexArray | None = None) -> Any:
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
    texts = [j for j in features if not sheet.is_number(j)]
    if texts:
        more = f" ({counted(len(texts) - 1, 'more column')} like it)" if len(texts) > 1 else ""
        names = listed((sheet.names[j] for j in texts), shown=_SHOWN_COLUMNS)
        drop = f", or leave columns out with --drop: {names}" if can_drop else ""
        raise TableError(_no_number(sheet, texts[0], "feature", f"Encode it as a number{drop}.", more))
    X = sheet.matrix(features)
    if rows is not None and not np.array_equal(rows, np.arange(sheet.n_rows)):
        X = _samples(X, rows)
    if not isinstance(X, Design):  # a matrix on disk is checked in the first pass over it
        drop = ", or leave columns out with --drop" if can_drop else ""
        _check_complete(sheet, features, X, "feature", f"Fill them in, remove those samples{drop}.")
        _check_sizes(sheet, features, X)
    return X


def sample_ids(sheet: Sheet, column: int | None) -> tuple[str, ...] | None:
    """Names of the samples: of a column, or of the rows themselves."""
    if column is None:
        return sheet.index
    return tuple("" if value is None else str(value).strip() for value in sheet.labels(column))


def class_labels(sheet: Sheet, targets: Sequence[int], rows: Any = slice(None)) -> Any:
    """One label per sample, all of one kind."""
    if len(targets) != 1:
        names = listed(sheet.names[j] for j in targets)
        raise TableError(f"classification takes one target, but --targets has {len(targets)}: {names}.")
    j = targets[0]
    labels = np.array([*sheet.labels(j), None], dtype=object)[:-1][rows]  # None keeps text from becoming characters
    numbers = np.arange(1, sheet.n_rows + 1)[rows]
    missing = [int(number) for number, label in zip(numbers, labels, strict=True) if label is None]
    if missing:
        raise TableError(
            f"{sheet.source}: target {sheet.names[j]!r} has {counted(len(missing), 'missing value')} "
            f"(row {listed(missing)}). Remove those samples, or quote a label that looks like a gap."
        )
    if any(isinstance(label, float) for label in labels):
        first = next(label for label in labels if isinstance(label, float))
        raise TableError(
            f"{sheet.source}: target {sheet.names[j]!r} has fractions such as {first!r}, which are no classes. "
            "Use --task regression."
        )
    values = np.array(labels.tolist())
    if len(np.unique(values)) < 2:
        raise TableError(
            f"{sheet.source}: target {sheet.names[j]!r} has one class only, {labels[0]!r}. Two or more are needed."
        )
    return values


def _group_values(option: str, sheet: Sheet, j: int) -> Any:
    values = sheet.labels(j)
    missing = [i + 1 for i, value in enumerate(values) if value is None]
    if missing:
        raise TableError(
            f"{option}: column {sheet.names[j]!r} of {sheet.source} has {counted(len(missing), 'missing value')} "
            f"(row {listed(missing)}). Give every sample a group."
        )
    return np.array([str(value) for value in values])


def _weights(option: str, sheet: Sheet, j: int) -> FloatArray:
    if not sheet.is_number(j):
        raise TableError(_no_number(sheet, j, "weight", "Weights are numbers."))
    weights = sheet.dense([j])
    _check_complete(sheet, [j], weights, "weight", "Every sample needs a weight; 0 leaves it out.")
    if weights.min() < 0.0:
        i = int(np.argmin(weights))
        raise TableError(
            f"{sheet.source}: {sheet.place(i, j)} has the weight {weights[i, 0]:g}. Weights are not below 0."
        )
    if not weights.any():
        raise TableError(f"{option}: all weights in {sheet.names[j]!r} are zero. At least one must be positive.")
    return weights[:, 0]


def _no_number(sheet: Sheet, j: int, what: str, remedy: str, more: str = "") -> str:
    """A message about the first cell that is no number."""
    i, cell = next(
        ((i, cell) for i, cell in enumerate(sheet.labels(j)) if cell is not None and not _is_number(cell)),
        (0, sheet.labels(j)[0]),
    )
    hint = " Numbers have a decimal point." if isinstance(cell, str) and _is_number(cell.replace(",", ".")) else ""
    shown = f"{cell[:40]}..." if isinstance(cell, str) and len(cell) > 43 else cell
    return f"{sheet.source}: {what} with {shown!r} in {sheet.place(i, j)}, which is no number{more}.{hint} {remedy}"


def _samples(X: Any, rows: IndexArray) -> Any:
    return X.rows(rows) if isinstance(X, Design) else X[rows]


def _is_number(cell: Any) -> bool:
    try:
        float(cell)
    except (TypeError, ValueError):
        return False
    return not isinstance(cell, bool)


def _check_sizes(sheet: Sheet, columns: Sequence[int], X: Any) -> None:
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


def _check_complete(sheet: Sheet, columns: Sequence[int], values: Any, what: str, remedy: str) -> None:
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
    shown = ", ".join(f"{sheet.names[columns[k]]!r} ({counts[k]})" for k in found[:_SHOWN_COLUMNS])
    more = f" and {len(found) - _SHOWN_COLUMNS} more" if len(found) > _SHOWN_COLUMNS else ""
    raise TableError(
        f"{sheet.source} has {counted(int(counts.sum()), f'{kind} value')} in {counted(len(found), f'{what} column')}: "
        f"{shown}{more}. {remedy}"
    )
