"""Numbers for the scripts of the page, as JSON that cannot end the element it stands in."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from .._typing import FloatArray, IndexArray
from ..plotting import CrossValidationDisplay
from ..plotting.style import shortened_names
from .subject import Along, Subject

_DIGITS = 6
# Norms in one file, about ten bytes each: the strongest rows come first where a path has more.
_MOST_NORMS = 400_000
# Lines of the path with a colour and a name in the legend.
N_NAMED = 6
# Longer names lose their middle in the legend.
_LONGEST_LABEL = 40
# More lines hide the mean.
_MOST_FOLDS = 20
# What could end the element, or the line in an old browser.
_UNSAFE = {ord(sign): f"\\u{ord(sign):04x}" for sign in "<>&\u2028\u2029"}


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
