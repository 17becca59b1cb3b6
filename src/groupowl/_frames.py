"""Columns of data frames, and of arrays of objects: what in them is no number, in words."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import Any

import numpy as np

from ._text import listed

_LONGEST_ENTRY = 40

_TEXT, _DATES = "text", "dates"
_REMEDIES = {
    _TEXT: "Encode text or categories as numbers first (for example with sklearn.preprocessing.OneHotEncoder).",
    _DATES: "Turn dates into numbers first, for example the days since the first of them.",
}
_OTHER_REMEDY = "Every entry must be a number: take those columns out, or convert them first."


def column_names(X: Any) -> list[Any] | None:
    """Names of the columns of a pandas or polars frame, of whatever kind; None for anything else."""
    names = getattr(X, "columns", None)
    return None if names is None or not hasattr(X, "dtypes") else list(names)


def repeated_name(names: list[Any]) -> tuple[Any, list[int]] | None:
    """The first name that several columns have, and these columns."""
    if len(set(names)) == len(names):
        return None
    name = next(name for j, name in enumerate(names) if name in names[:j])
    return name, [j for j, other in enumerate(names) if other == name]


def take_rows(X: Any, rows: Any) -> Any:
    """Some rows of an array, a sparse matrix or a frame, as the same kind of thing."""
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]


def list_columns(columns: Sequence[int], names: list[Any] | None) -> str:
    """Some columns by name, or index, in words."""
    labels = columns if names is None else [names[j] for j in columns]
    return f"column{'s' if len(columns) > 1 else ''} {listed(labels)}"


def complain_of_dates(argument: str, X: Any) -> str | None:
    """What to say of a frame or an array that has dates, which NumPy would take for numbers; None if there are none."""
    if getattr(getattr(X, "dtype", None), "kind", "") in ("M", "m"):
        return f"{argument} must hold real numbers, got dtype {X.dtype}. {_REMEDIES[_DATES]}"
    names = column_names(X)
    columns = []
    for j, dtype in enumerate([] if names is None else X.dtypes):
        is_temporal = getattr(dtype, "is_temporal", bool)  # of polars; dtypes of pandas have a kind
        if getattr(dtype, "kind", "") in ("M", "m") or is_temporal():
            columns.append(j)
    return _sentence(argument, columns, names, _DATES, str(list(X.dtypes)[columns[0]])) if columns else None


def complain_of_entries(argument: str, X: Any) -> str | None:
    """What to say of columns with entries that cannot be converted to numbers; None if there are none."""
    names = column_names(X)
    if names is None and not (isinstance(X, np.ndarray) and X.ndim == 2):
        return None
    found: dict[str, list[int]] = {}
    example = ""
    for j in range(X.shape[1]):
        values = np.asarray(X.iloc[:, j] if hasattr(X, "iloc") else X[:, j])  # several columns may have one name
        for i, entry in enumerate([] if values.dtype.kind in "fiubc" else values):
            try:
                float(entry)
            except (TypeError, ValueError):
                plain = entry.item() if isinstance(entry, np.str_ | np.bytes_) else entry
                shown = repr(plain)
                shown = shown if len(shown) <= _LONGEST_ENTRY else f"{shown[:_LONGEST_ENTRY]}..."
                found.setdefault(_kind(plain), []).append(j)
                example = example or f"{shown} in row {i}"
                break
    kind = next(iter(found), "")  # of the first column, as the example is
    return _sentence(argument, found[kind], names, kind, example) if kind else None


def _kind(entry: Any) -> str:
    if isinstance(entry, str | bytes):
        return _TEXT
    dates = (datetime.date, datetime.time, datetime.timedelta, np.datetime64, np.timedelta64)
    if isinstance(entry, dates) or type(entry).__name__ == "Period":
        return _DATES
    return f"entries of type {type(entry).__name__}"


def _sentence(argument: str, columns: list[int], names: list[Any] | None, kind: str, example: str) -> str:
    has = "have" if len(columns) > 1 else "has"
    remedy = _REMEDIES.get(kind, _OTHER_REMEDY)
    return f"{argument} must hold real numbers, but {list_columns(columns, names)} {has} {kind} ({example}). {remedy}"
