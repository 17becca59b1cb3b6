"""Columns of categories as groups of indicators, a column of 0 and 1 for each level."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from ._checks import IMPUTE, check_finite, column_names, lookup, numeric_array, repeated_columns
from ._text import counted, listed
from ._typing import FloatArray, IndexArray
from .inputs import resolve_columns
from .norm.options import PenaltyOptions, numbered_by_first

#: What becomes of levels that a fit has not seen.
UNSEEN = ("error", "zero")

# How the types of columns with text or categories begin, in pandas (also by way of pyarrow) and in polars.
_TEXT_TYPES = ("category", "categorical", "dictionary", "enum", "large_string", "object", "str", "utf8")
# Indicators are sparse where entries that are stored are less than this share.
_SPARSE_SHARE = 0.1


@dataclass(frozen=True, eq=False)
class Categories:
    """Which columns of a frame are categories, their levels, and the columns that the frame becomes.

    Indicators stand where the column stands, in the order of the levels, and are called ``column=level``. All levels
    have one, none is left out as a reference: the norm of a group chooses coefficients that sum to zero by itself.

    Attributes
    ----------
    names : tuple of str
        Columns of the frame.
    levels : dict of str to list of str
        Levels of the columns that are categories, as text.
    """

    names: tuple[str, ...]
    levels: Mapping[str, list[str]]

    @classmethod
    def behind(cls, coded: Sequence[str], levels: Mapping[str, list[str]]) -> Categories:
        """Those of the frame that has become columns of these names, no two of which are the same."""
        firsts = {f"{name}={known[0]}": name for name, known in levels.items()}
        names: list[str] = []
        position = 0
        while position < len(coded):
            names.append(firsts.get(coded[position], coded[position]))
            position += len(levels.get(names[-1], [0]))
        return cls(tuple(names), levels)

    @cached_property
    def source(self) -> IndexArray:
        """The column of the frame that each column comes from."""
        return np.repeat(np.arange(len(self.names)), [len(self.levels.get(name, [0])) for name in self.names])

    @property
    def coded_names(self) -> list[str]:
        """What the columns are called."""
        coded = []
        for name in self.names:
            coded += [f"{name}={level}" for level in self.levels[name]] if name in self.levels else [name]
        return coded

    def columns_of(self, chosen: IndexArray) -> IndexArray:
        """Columns that some columns of the frame become."""
        return np.flatnonzero(np.isin(self.source, chosen))

    def widened(self, options: PenaltyOptions, group_scale: str) -> PenaltyOptions:
        """Options for columns of the frame as options for what they become: indicators of a column form a group.

        Its scale is "frobenius" where groups are scaled by "size", which would not know that levels are rare.
        """
        source, groups, names = self.source, options.feature_groups, options.group_names
        if groups is None:
            groups, names = np.arange(len(self.names)), self.names
        sizes = np.bincount(groups)
        of_category = "frobenius" if group_scale == "size" else group_scale
        factor, signs = options.penalty_factor, options.signs
        return replace(
            options,
            feature_groups=numbered_by_first(groups[source]),
            group_names=names,
            group_scale=tuple(of_category if size == 1 else group_scale for size in sizes.tolist()),
            penalty_factor=None if factor is None else factor[source],
            signs=None if signs is None else signs[source],
        )

    def matrix(self, X: Any, *, unseen: str = "error") -> Any:
        """The frame as a matrix, of finite numbers."""
        return self.encoded(X, _numbers, unseen=unseen)

    def encoded(self, X: Any, convert: Callable[[Any], Any], *, unseen: str = "error") -> Any:
        """The frame as a matrix of its columns of numbers, which ``convert`` makes, and indicators.

        Levels that are not known, and cells without one, are an error or, with ``unseen="zero"``, zeros throughout.
        """
        others = [name for name in self.names if name not in self.levels]
        numbers = convert(X[others]) if others else np.zeros((len(X), 0))
        starts = np.searchsorted(self.source, np.arange(len(self.names)))
        rows, columns = [], []
        for j, name in enumerate(self.names):
            if name in self.levels:
                codes = self._codes(X, name, unseen)
                known = np.flatnonzero(codes >= 0)
                rows.append(known)
                columns.append(starts[j] + codes[known])
        places = (np.concatenate(rows), np.concatenate(columns))
        shape = (len(X), len(self.source))
        where = starts[[j for j, name in enumerate(self.names) if name not in self.levels]]
        if sp.issparse(numbers) or len(self.names) < _SPARSE_SHARE * len(self.source):
            return _sparse_matrix(numbers, where, places, shape)
        matrix = np.zeros(shape, dtype=numbers.dtype)
        matrix[:, where] = numbers
        matrix[places] = 1.0
        return matrix

    def _codes(self, X: Any, name: str, unseen: str) -> IndexArray:
        """The position of the level of each sample, -1 where it is not known."""
        levels = self.levels[name]
        position = {level: k for k, level in enumerate(levels)}
        texts = _texts(X[name])
        codes = np.array([-1 if text is None else position.get(text, -1) for text in texts], dtype=np.intp)
        if unseen == "error" and (codes < 0).any():
            unknown = dict.fromkeys("(missing)" if text is None else text for text in texts if text not in position)
            raise ValueError(
                f"X: column {name!r} has levels that the fit has not seen, in "
                f"{counted(int(np.sum(codes < 0)), 'sample')}: {listed(list(unknown), shown=10)}. Those of the fit are "
                f"{listed(levels, shown=10)}. Correct them, or use unseen='zero' to predict as if the column had no "
                "effect there."
            )
        return codes


def _sparse_matrix(numbers: Any, where: IndexArray, places: tuple[IndexArray, IndexArray], shape: Any) -> Any:
    """The matrix of numbers in some columns and ones in some places, without its zeros."""
    part = sp.coo_array(numbers)
    rows, columns = part.coords
    entries = np.concatenate([part.data, np.ones(len(places[0]), dtype=part.dtype)])
    both = (np.concatenate([rows, places[0]]), np.concatenate([where[columns], places[1]]))
    return sp.csr_array((entries, both), shape=shape)


# From arguments and data ---------------------------------------------------------------------------------


def find_categories(X: Any, categories: Any) -> Categories | None:
    """Categories of a frame as users ask for them; None where there are none.

    ``categories`` are names or indices of columns, or "auto" for all columns of text or of a categorical type.
    """
    if categories is None:
        return None
    names = column_names(X)
    is_near = hasattr(X, "__len__") and not hasattr(X, "compute")  # and not on a cluster
    if names is None or not is_near or not all(isinstance(name, str) for name in names):
        raise TypeError(
            f"categories={categories!r} needs X as a data frame of pandas or polars in memory, with text for names of "
            f"columns, got {type(X).__name__}."
        )
    if repeated := repeated_columns(names):
        raise ValueError(f"X has several columns of the name {names[repeated[0]]!r}: names must be unique.")
    if isinstance(categories, str) and categories == "auto" and "auto" not in names:
        chosen = [j for j, name in enumerate(names) if str(X[name].dtype).lower().startswith(_TEXT_TYPES)]
    else:
        chosen = resolve_columns("categories", categories, len(names), names, may_be_all=True).tolist()
    levels = {names[j]: _levels(X[names[j]], names[j]) for j in chosen}
    if not levels:
        return None
    found = Categories(tuple(names), levels)
    coded = found.coded_names
    if repeated := repeated_columns(coded):
        raise ValueError(
            f"categories: {coded[repeated[0]]!r} would be the name of {len(repeated)} columns. Rename a column of X, "
            "or a level."
        )
    return found


def fitted_categories(fitted: Mapping[str, Any]) -> Categories | None:
    """Categories that fitted attributes tell of."""
    levels = fitted.get("categories_")
    return None if levels is None else Categories(tuple(fitted["feature_names_in_"]), levels)


def coefficient_names(fitted: Mapping[str, Any]) -> Any:
    """Names of the columns that coefficients belong to: those of X, and of the levels of categories; or None."""
    known = fitted_categories(fitted)
    return fitted.get("feature_names_in_") if known is None else np.array(known.coded_names, dtype=object)


def encoded_frame(X: Any, categories: Any) -> tuple[Any, Categories | None]:
    """Data with their categories encoded, where these are asked for, and what they are."""
    found = find_categories(X, categories)
    return (X, None) if found is None else (found.matrix(X), found)


def _numbers(frame: Any) -> FloatArray:
    """A frame of numbers as an array of finite ones."""
    values = numeric_array("X", frame)
    check_finite("X", values, remedy=IMPUTE, names=column_names(frame))
    return values


def check_unseen(unseen: Any) -> None:
    """Check ``unseen``, the treatment of levels that the fit has not seen."""
    lookup("unseen", unseen, dict.fromkeys(UNSEEN))


def _levels(column: Any, name: str) -> list[str]:
    """Levels that occur, as text: in the order that a categorical type declares, else sorted."""
    texts = _texts(column)
    missing = [i for i, text in enumerate(texts) if text is None]
    if missing or not texts:
        found = f"{counted(len(missing), 'missing value')} (row {listed(missing)})" if texts else "no samples"
        raise ValueError(
            f"X: column {name!r}, a category, has {found}. Remove those samples, or give what is missing a level of "
            "its own, such as 'missing'."
        )
    declared: Any = getattr(column.dtype, "categories", None)
    if hasattr(declared, "to_list"):  # of pandas, or an Enum of polars
        occurring = set(texts)
        return [text for text in dict.fromkeys(map(str, map(_text, declared.to_list()))) if text in occurring]
    cells: dict[Any, Any] = dict(zip(texts, column.to_list(), strict=True))
    try:
        return sorted(cells, key=lambda text: cells[text])
    except TypeError:  # cells of different kinds
        return sorted(cells)


def _texts(column: Any) -> list[str | None]:
    """Cells of a column as text, None where there is nothing."""
    return [_text(cell) for cell in column.to_list()]


def _text(cell: Any) -> str | None:
    """A level as text; a number without a fraction is the same whatever its type is."""
    if cell is None or type(cell).__name__ in ("NAType", "NaTType"):
        return None
    if isinstance(cell, float):
        if cell != cell:
            return None
        return str(int(cell)) if cell.is_integer() else str(cell)
    return str(cell)
