"""Values of columns as a fit needs them: numbers, labels, groups, weights; what is wrong is said with its place."""

from __future__ import annotations

import numbers
import re
import shlex
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._typing import FloatArray, IndexArray
from ..designs import Design
from .errors import TableError, counted, listed
from .sheet import Sheet

_SHOWN_COLUMNS = 5
_NUMBER = re.compile(r"\s*[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?|0x[\da-f]+|inf(inity)?|nan)\s*", re.ASCII | re.IGNORECASE)
_THOUSANDS = re.compile(r"(?<=\d)[\s_'\N{RIGHT SINGLE QUOTATION MARK}](?=\d)")
_SPELLING = "Numbers have a decimal point, a plain minus and nothing between thousands."
# Its square is about the largest double.
_LARGEST = np.sqrt(np.finfo(np.float64).max)


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
    texts = sheet.no_numbers(np.asarray(features, dtype=np.intp))
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
    names = listed((sheet.names[j] for j in texts), shown=_SHOWN_COLUMNS)
    drop = f", or leave columns out with --drop: {names}" if can_drop else ""
    remedy = f"Encode it as a number{drop}."
    if can_drop and _may_name_samples(sheet, texts[0]):
        option = f"--id-column {shlex.quote(sheet.names[texts[0]])}"
        remedy = f"If it names the samples, use {option}; if not, encode it as a number{drop}."
    return no_number(sheet, texts[0], "feature", remedy, more)


def _may_name_samples(sheet: Sheet, j: int) -> bool:
    """Whether every cell is text, and another one."""
    cells = sheet.labels(j)
    are_words = all(isinstance(cell, str) and not is_number(_usual_spelling(cell)) for cell in cells)
    return are_words and len(set(cells)) == len(cells)


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


def group_values(option: str, sheet: Sheet, j: int) -> Any:
    """The group of each sample, as text."""
    values = sheet.labels(j)
    missing = [i + 1 for i, value in enumerate(values) if value is None]
    if missing:
        raise TableError(
            f"{option}: column {sheet.names[j]!r} of {sheet.source} has {counted(len(missing), 'missing value')} "
            f"(row {listed(missing)}). Give every sample a group."
        )
    return np.array([str(value) for value in values])


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


def rows_of(X: Any, rows: IndexArray) -> Any:
    """Some samples of a matrix or a design."""
    return X.rows(rows) if isinstance(X, Design) else X[rows]


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


def has_fractions(cells: Iterable[Any]) -> bool:
    """Whether some cells of text are numbers with decimals, as no labels are."""
    return any(isinstance(cell, str) and "." in cell and is_number(cell) for cell in cells)


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
    shown = ", ".join(f"{sheet.names[columns[k]]!r} ({counts[k]})" for k in found[:_SHOWN_COLUMNS])
    more = f" and {len(found) - _SHOWN_COLUMNS} more" if len(found) > _SHOWN_COLUMNS else ""
    line = sheet.removing_gaps() if kind == "missing" else None
    example = "" if line is None else f" In Python, {line} removes the samples."
    raise TableError(
        f"{sheet.source} has {counted(int(counts.sum()), f'{kind} value')} in {counted(len(found), f'{what} column')}: "
        f"{shown}{more}. {remedy}{example}"
    )
