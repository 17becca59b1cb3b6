"""Numbers of the page: as text for readers, and as JSON, which cannot end its element, for the scripts."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from decimal import ROUND_HALF_UP, Decimal, localcontext
from typing import Any

import numpy as np

from .._typing import FloatArray, IndexArray
from ..plotting import CrossValidationDisplay
from ..plotting.style import shortened_names
from .contents import Along, Subject

#: In place of a number where there is none.
NOTHING = "\N{EN DASH}"

_SHOWN_DIGITS = 4  # significant ones, of the largest number in a column
_LARGEST, _SMALLEST = 1e6, 1e-4  # numbers outside are written with an exponent
_MOST_DECIMALS = 7

# For scripts.
_DIGITS = 6
#: Rows that are written as HTML, and that scripts show until they are asked for all.
SHOWN_ROWS = 200
# Norms in one file, about ten bytes each: the strongest rows come first where a path has more.
_MOST_NORMS = 400_000
# Lines of the path with a color and a name in the legend.
N_NAMED = 6
# Longer names lose their middle in the legend.
_LONGEST_LABEL = 40
# More lines hide the mean.
_MOST_FOLDS = 20
# What could end the element, or the line in an old browser.
_UNSAFE = {ord(sign): f"\\u{ord(sign):04x}" for sign in "<>&\u2028\u2029"}


# For readers --------------------------------------------------------------------------------------------


def number(value: float, digits: int = _SHOWN_DIGITS) -> str:
    """A number with so many significant digits, plain where it is neither huge nor tiny."""
    if not np.isfinite(value):
        return "not defined" if np.isnan(value) else str(value)
    size = abs(float(value))
    if size == 0.0:
        return "0"
    if not _SMALLEST <= size < _LARGEST:
        return re.sub(r"\.?0*e", "e", _written(value, f".{digits - 1}e"))
    decimals = max(digits - 1 - int(np.floor(np.log10(size))), 0)
    written = _written(value, f".{decimals}f")
    return written.rstrip("0").rstrip(".") if "." in written else written


def decimals_of(values: FloatArray) -> int:
    """Decimals for a column of numbers, the same for all; -1 where they need exponents."""
    largest = float(np.abs(values[np.isfinite(values)]).max(initial=0.0))
    if largest == 0.0:
        return 0
    if not 10.0 * _SMALLEST <= largest < _LARGEST:
        return -1
    return int(np.clip(_SHOWN_DIGITS - 1 - np.floor(np.log10(largest)), 0, _MOST_DECIMALS))


def fixed(value: float, decimals: int) -> str:
    """A number of a column; what would look like zero and is not is written with an exponent."""
    if not np.isfinite(value):
        return NOTHING
    if value == 0.0:
        return "0"
    if decimals < 0 or abs(value) < 0.5 * 10.0**-decimals:
        return _written(value, f".{1 if decimals >= 0 else _SHOWN_DIGITS - 1}e")
    return _written(value, f".{decimals}f")


def _written(value: float, form: str) -> str:
    """As scripts write it: a number half way between two is rounded up, and exponents have no leading zeros."""
    with localcontext(rounding=ROUND_HALF_UP):
        return format(Decimal(float(value)), form)


@dataclass(frozen=True, eq=False)
class Column:
    """A column of the table of features: its heading, what it means, and its numbers.

    ``kind`` is "cluster", "number" or "coefficient"; ``decimals`` is as in :func:`fixed`; ``intercept`` stands below
    coefficients.
    """

    label: str
    meaning: str
    kind: str
    values: FloatArray
    decimals: int
    intercept: float | None = None

    def cell(self, row: int) -> str:
        """One number as text; a feature that is not penalized has no cluster."""
        value = float(self.values[row])
        return NOTHING if self.kind == "cluster" and value == 0.0 else fixed(value, self.decimals)


def feature_columns(subject: Subject) -> list[Column]:
    """The features in the model: all columns but the names."""
    chosen, n_folds = subject.selection, subject.n_folds
    equal = "features of one cluster have equal norms; 1 has the largest"
    columns = [
        Column("Cluster", equal, "cluster", chosen.clusters.astype(np.float64), 0),
        _numbers("Norm", "of the feature's coefficients, over all targets", "number", chosen.norms),
    ]
    if subject.fold_counts is not None:
        meaning = f"in how many of the {n_folds} folds the feature was selected at this alpha"
        columns.append(Column(f"Folds (of {n_folds})", meaning, "number", subject.fold_counts.astype(np.float64), 0))
    if subject.along is not None:
        entries = subject.along.entry_alphas(chosen.features)
        columns.append(_numbers("Enters at", "largest alpha of the path that selects the feature", "number", entries))
    for k, name in enumerate(chosen.tasks):
        label = "Coefficient" if len(chosen.tasks) == 1 else name
        intercept = None if subject.intercept is None else float(subject.intercept[k])
        columns.append(_numbers(label, f"coefficient: {name}", "coefficient", chosen.rows[:, k], intercept))
    return columns


def _numbers(label: str, meaning: str, kind: str, values: FloatArray, intercept: float | None = None) -> Column:
    known = np.array(rounded(values), dtype=np.float64)  # the digits that scripts see, so that both write the same
    return Column(label, meaning, kind, known, decimals_of(known), intercept)


# For scripts --------------------------------------------------------------------------------------------


def as_json(value: Any) -> str:
    """JSON for a ``script`` element: signs that mean something in HTML are escaped."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False).translate(_UNSAFE)


def rounded(values: Iterable[float]) -> list[float | int | None]:
    """Numbers with six significant digits, whole ones without decimals; None for what is no number."""
    return [_rounded(float(value)) for value in values]


def _rounded(value: float) -> float | int | None:
    if not math.isfinite(value):
        return None
    short = float(f"{value:.{_DIGITS}g}")
    return int(short) if short.is_integer() and abs(short) < 1e15 else short


def path_payload(subject: Subject) -> dict[str, Any] | None:
    """The path for plot and slider; None where there is none."""
    along = subject.along
    if along is None:
        return None
    kept = _kept_rows(along, subject.selection.features)
    position = {int(k): i for i, k in enumerate(kept)}
    path, display = along.path, along.display
    groups = display.strongest_first() or replace(display, alpha=None).strongest_first()  # nothing may be chosen
    legend = [[int(k) for k in lines if int(k) in position] for lines in groups]
    legend = [lines for lines in legend if lines][:N_NAMED]
    return {
        "alphas": rounded(display.alphas),
        "start": along.nearest,
        "chosen": None if display.alpha is None else _rounded(display.alpha),
        "selected": path.n_selected.tolist(),
        "clusters": [int(point.clusters.max(initial=0)) for point in path],
        "deviance": rounded(path.deviance_ratio),
        "gaps": rounded(path.dual_gaps),
        "statuses": path.statuses.tolist(),
        "features": display.features[kept].tolist(),
        "names": [display.feature_names[k] for k in kept],
        "free": [position[int(k)] for k in np.flatnonzero(display.unpenalized) if int(k) in position],
        "rows": [_row(display.norms[:, k], along.clusters[:, k]) for k in kept],
        "legend": [[position[k] for k in lines] for lines in legend],
        "labels": shortened_names([display.feature_names[lines[0]] for lines in legend], _LONGEST_LABEL),
        "omitted": len(display.features) - len(kept),
    }


def _row(norms: FloatArray, clusters: IndexArray) -> list[Any]:
    """Where a row begins to be non-zero, and its norms and clusters from there to where it ends to be."""
    there = np.flatnonzero(norms)
    span = slice(there[0], there[-1] + 1)
    return [int(there[0]), rounded(norms[span]), clusters[span].tolist()]


def _kept_rows(along: Along, selected: IndexArray) -> IndexArray:
    """Rows that fit into the file: those of the fit, then the largest, in the order of the columns of X."""
    norms = along.display.norms
    is_out = ~np.isin(along.display.features, selected)
    order = np.lexsort((-norms.max(axis=0, initial=0.0), is_out))
    sizes = np.cumsum(np.count_nonzero(norms, axis=0)[order])
    return np.sort(order[: int(np.searchsorted(sizes, _MOST_NORMS, side="right"))])


def feature_payload(subject: Subject, columns: list[Column]) -> dict[str, Any] | None:
    """The features in the model; None where there is none."""
    if not subject.selection.names:
        return None
    return {
        "shown": SHOWN_ROWS,
        "features": subject.selection.features.tolist(),
        "names": subject.selection.names,
        "columns": [
            {"kind": column.kind, "decimals": column.decimals, "values": rounded(column.values)} for column in columns
        ],
    }


def choice_payload(choice: CrossValidationDisplay | None) -> dict[str, Any] | None:
    """What alpha was chosen by, for its plot; None where it was given."""
    if choice is None:
        return None
    folds: Any = [] if choice.scores is None or choice.scores.shape[1] > _MOST_FOLDS else choice.scores.T
    band = choice.one_se_band
    return {
        "alphas": rounded(choice.alphas),
        "chosen": _rounded(choice.alpha),
        "label": choice.label,
        "values": rounded(choice.values),
        "errors": None if choice.std_errors is None else rounded(choice.std_errors),
        "band": None if band is None or not np.isfinite(band).all() else rounded(band),
        "folds": [rounded(scores) for scores in folds],
        "selected": None if choice.n_selected is None else choice.n_selected.tolist(),
    }
