"""The page as a whole: text, style and scripts in one file; ``assets/page.html`` has the words."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
import shlex
from collections.abc import Iterable
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from .._files import write_file
from .._text import counted, listed, printable, significant
from .._typing import FloatArray, IndexArray
from ..estimators.fit_summary import (
    AS_CONSTANT,
    AS_EXPLAINED,
    NOT_PROVED,
    PROVED_ZERO,
    SELECTED,
    null_choice_text,
    ties_text,
)
from ..model_selection import CRITERIA
from ..model_selection.scores import as_score, verdicts
from ..plotting.coefficients import Selection
from ..plotting.style import CHOSEN, COLORS, shortened_names
from ..versions import installed_versions
from .contents import ReportContents, Subject, shown_name
from .python_code import python_code

# In the order in which they are joined: the first has what the others share.
_SCRIPTS = ("shared.js", "plot.js", "path.js", "choice.js", "table.js", "start.js")
# Rows of tables.
_MOST_CLUSTERS = 40
_MOST_GAPS = 8
#: In place of a number where there is none.
NOTHING = "\N{EN DASH}"

_SHOWN_DIGITS = 4  # significant ones
_LARGEST, _SMALLEST = 1e6, 1e-4  # numbers outside are written with an exponent

# Width and height of survival curves, in units of the picture, and numbers along the axis of times.
_CURVES = (640.0, 260.0)
_LEAST_TICKS = 4

# For scripts: significant digits.
_DIGITS = 6
#: Rows that are written as HTML, and that scripts show until they are asked for all.
SHOWN_ROWS = 200
# Norms in one file, about ten bytes each: the strongest rows come first where a path has more.
_MOST_NORMS = 400_000
# Features in the picture at the beginning, and in its sentence; more targets have no cells in it.
_MOST_BARS, _MOST_LEADERS, _MOST_CELLS = 12, 3, 10
# Lines of the path with a color and a name in the legend.
N_NAMED = 6
# Longer names lose their middle in the legend.
_LONGEST_LABEL = 40
# More lines hide the mean.
_MOST_FOLDS = 20
# What could end the element, or the line in an old browser.
_UNSAFE = {ord(sign): f"\\u{ord(sign):04x}" for sign in "<>&\u2028\u2029"}


_WHY_LEFT_OUT = {
    AS_CONSTANT: "These columns vary by no more than the rounding of their numbers; if that is real, take the offset "
    "off.",
    AS_EXPLAINED: "The unpenalized columns explain all of these columns but rounding.",
}


def write_report(path: Any, contents: ReportContents) -> None:
    """Write a report as one HTML file, whole or not at all.

    Parameters
    ----------
    path : str or Path
        File to write; one that is there is replaced. Its folder must exist.
    contents : ReportContents
        What the report is about.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import groupowl as go
    >>> from groupowl.report import ReportContents, write_report
    >>> data = go.datasets.make_correlated_groups(30, 5, 2, n_informative=2, random_state=0)
    >>> model = go.GroupOWLRegressorCV(alphas=10, cv=3).fit(data.X, data.Y)
    >>> contents = ReportContents(
    ...     title="Five features",
    ...     command=("groupowl", "cv", "train.csv"),
    ...     facts={"Samples": "30"},
    ...     estimator=model,
    ...     path=model.path_,
    ...     feature_names=["a", "b", "c", "d", "e"],
    ...     target_names=["u", "v"],
    ...     scores={},
    ...     notes=(),
    ... )
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_report(Path(folder) / "report.html", contents)
    ...     print((Path(folder) / "report.html").read_text(encoding="utf-8")[:15])
    <!doctype html>
    """
    if not isinstance(contents, ReportContents):
        raise TypeError(f"contents must be ReportContents, got {type(contents).__name__}.")
    target = Path(path)
    if target.is_dir():
        remedy = "Add a name such as report.html."
        raise IsADirectoryError(f"path must name a file, but {str(path)!r} is a folder. {remedy}")
    page = render_report(contents).encode("utf-8", "replace")  # names may have halves of characters
    write_file(target, page)


def render_report(contents: ReportContents) -> str:
    """The page as text.

    Parameters
    ----------
    contents : ReportContents
        What the report is about.

    Returns
    -------
    str
        HTML that refers to nothing outside itself.
    """
    page = template("page.html")
    subject = Subject(contents)
    columns, chosen = _feature_columns(subject), subject.selection
    data: dict[str, Any] = {"path": _path_data(subject), "choice": _choice_data(subject), "table": None}
    if chosen.names:
        data["table"] = {"shown": SHOWN_ROWS, "features": chosen.features.tolist(), "names": chosen.names}
        wanted = ("kind", "whole", "values", "scaled")
        data["table"]["columns"] = [{name: column[name] for name in wanted} for column in columns]
    script = "(() => {\n'use strict';\n" + "\n".join(_asset(name) for name in _SCRIPTS) + "})();"
    digest = base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")
    return page.render(
        vars(contents) | vars(subject),
        contents=contents,
        criteria=CRITERIA,
        proof=_proof(subject),
        clusters=_clusters(subject),
        strongest=_strongest(subject),
        null_choice=null_choice_text(contents.estimator),
        code=None if contents.estimator is None else python_code(contents.estimator),
        fit_call=_fit_call(contents),
        curves=_survival_curves(contents),
        scored={name: as_score(score) for name, score in contents.scores.items()},
        loud=verdicts(contents.scores),
        columns=columns,
        shown_rows=SHOWN_ROWS,
        nothing=NOTHING,
        command=shlex.join(map(str, contents.command)),
        versions=versions_text(),
        # What browsers may load for the page: nothing; and run: this script alone, whatever names may smuggle in.
        policy=f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-{digest}'",
        style=style_sheet(),
        data=json.dumps(data, separators=(",", ":"), allow_nan=False).translate(_UNSAFE),
        script=script,
    )


def _fit_call(contents: ReportContents) -> str:
    """The call that makes the same fit, with all that it took of each sample."""
    given = {"Sample weights": "sample_weight=weights", "Groups": "groups=groups", "Strata": "strata=strata"}
    more = [argument for fact, argument in given.items() if contents.facts.get(fact)]
    if getattr(contents.estimator, "has_offset_", False):
        names = {"Offset": "offset", "Exposure": "log(exposure)"}
        added = " + ".join(name for fact, name in names.items() if contents.facts.get(fact))
        more.append(f"offset={added or 'offset'}")
    return f"model.fit({', '.join(['X', 'y', *more])})"


def template(name: str) -> Any:
    """A page to be filled in; every text that goes in is escaped, and its control characters are spelled."""
    try:
        from jinja2 import Environment, StrictUndefined
        from markupsafe import Markup
    except ModuleNotFoundError as error:
        raise ImportError('a report needs jinja2, which is not installed; run: pip install "groupowl[cli]"') from error

    def shown(value: Any) -> Any:
        return value if isinstance(value, Markup) else printable(value, keep="\n\t\u2028\u2029")

    page = Environment(autoescape=True, finalize=shown, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    page.filters |= {"number": number, "cell": cell, "shown": shown_name}
    return page.from_string(_asset(name))


def style_sheet() -> str:
    """The style of all pages, with the colors of pictures."""
    lines = [color for color in COLORS if color != CHOSEN["color"]]  # that of a choice is for nothing else
    variables = "".join(f"--line{i}:{color};" for i, color in enumerate(lines))
    return f":root{{{variables}--chosen:{CHOSEN['color']};}}\n" + _asset("style.css")


def versions_text() -> str:
    """What a page was made with."""
    known = {name: found for name, found in installed_versions().items() if found != "not installed"}
    return ", ".join(f"{name} {found}" for name, found in known.items())


def _asset(name: str) -> str:
    return files(__package__).joinpath("assets", name).read_text(encoding="utf-8")


def _proof(subject: Subject) -> dict[str, Any] | None:
    """What is proved of the features, by the states that they are in; None where only a path was fitted."""
    certificate = subject.certificate
    if certificate is None:
        return None
    names = {
        state: [shown_name(subject.names[j]) for j in np.flatnonzero(certificate.states == state).tolist()]
        for state in (NOT_PROVED, *_WHY_LEFT_OUT)
    }
    gaps = certificate.gaps[np.isfinite(certificate.gaps)]
    reached = np.unique(gaps)[::-1]
    shown = np.unique(np.linspace(0, len(reached) - 1, min(_MOST_GAPS, len(reached))).round().astype(int))
    zero_groups = [] if certificate.groups is None else certificate.groups[certificate.states == PROVED_ZERO].tolist()
    return {
        "has_gap": certificate.gap > np.finfo(np.float64).eps * abs(certificate.objective),
        "n_zero": certificate.counts[PROVED_ZERO],
        "zero_groups": [shown_name(group) for group in dict.fromkeys(zero_groups)],
        "n_selected": certificate.counts[SELECTED],
        "gaps": [(float(gap), int(np.count_nonzero(gaps >= gap))) for gap in reached[shown]],
        "not_proved": names[NOT_PROVED],
        "left_out": {state: (why, names[state]) for state, why in _WHY_LEFT_OUT.items() if names[state]},
    }


def _clusters(subject: Subject) -> dict[str, Any] | None:
    """Clusters of more than one feature, with the norms of their features or groups; None without clusters."""
    chosen, norms = subject.selection, subject.selection.norms
    if subject.n_clusters == 0:
        return None
    all_rows = np.split(np.arange(len(norms)), 1 + np.flatnonzero(np.diff(chosen.clusters)))
    all_rows = [rows for rows in all_rows if chosen.clusters[rows[0]] > 0]  # without the unpenalized features
    units = [_units(chosen, rows) for rows in all_rows]
    n_several = sum(len(names) > 1 for names, _ in units)
    shown = [
        {
            "number": int(chosen.clusters[rows[0]]),
            "names": names,
            "norms": (sizes.min(), sizes.max()),
            "mean": sizes.mean(),
        }
        for rows, (names, sizes) in zip(all_rows, units, strict=True)
        if len(rows) > 1
    ]
    counts: dict[str, Any] = {"n_several": n_several, "n_single": len(units) - n_several, "n_shown": len(shown)}
    count = counted(len(units), "feature" if chosen.groups is None else "group")
    counts["nothing_tied"] = ties_text(count, len(units), subject.n_clusters, subject.weights, can_tie=subject.can_tie)
    return counts | {"shown": shown[:_MOST_CLUSTERS]}


def _units(chosen: Selection, rows: Any) -> tuple[list[str], FloatArray]:
    """Features of a cluster, or its groups with their members, and the norms of each."""
    norms = chosen.norms
    if chosen.groups is None:
        return [chosen.names[k] for k in rows], norms[rows]
    members: dict[str, list[int]] = {}
    for k in rows.tolist():
        members.setdefault(chosen.groups[k], []).append(k)
    names = []
    for group, inside in members.items():
        own = [chosen.names[k].removesuffix(f" ({group})").removeprefix(f"{group}=") for k in inside]
        name = shown_name(group)
        names.append(chosen.names[inside[0]] if own[0] == name else f"{name} ({listed(own, quoted=False)})")
    return names, np.array([np.linalg.norm(norms[inside]) for inside in members.values()])


def _survival_curves(contents: ReportContents) -> list[dict[str, Any]]:
    """Survival by predicted risk, for each target: lines and ticks of a picture, and the rows of a table."""
    found = []
    width, height = _CURVES
    for name, display in zip(contents.columns, contents.survival, strict=False):
        last = float(display.groups[0].times[-1])
        step = 10.0 ** np.floor(np.log10(last))
        step *= next(share for share in (1.0, 0.5, 0.2, 0.1) if last / (share * step) >= _LEAST_TICKS)
        ticks = [(float(f"{k * step:.6g}"), k * step / last * width) for k in range(int(last / step) + 1)]
        groups = []
        for group in display.groups:
            x, heights = group.times / last * width, (height * (1.0 - group.observed), height * (1.0 - group.predicted))
            lines = [_staircase(x, y) for y in heights]
            groups.append({"group": group, "observed": lines[0], "predicted": lines[1], "medians": group.medians})
        found.append({"name": shown_name(name), "concordance": display.concordance, "ticks": ticks, "groups": groups})
    return found


def _staircase(x: FloatArray, y: FloatArray) -> str:
    """A line that keeps its height until the next point, as SVG has it."""
    return f"M{x[0]:.1f},{y[0]:.1f}" + "".join(f"H{a:.1f}V{b:.1f}" for a, b in zip(x[1:], y[1:], strict=True))


# Numbers for readers ------------------------------------------------------------------------------------


def number(value: float, digits: int = _SHOWN_DIGITS) -> str:
    """A number with so many significant digits, plain where it is neither huge nor tiny."""
    if not np.isfinite(value):
        return "not defined" if np.isnan(value) else str(value)
    size = abs(float(value)) or 1.0
    if not _SMALLEST <= size < _LARGEST:
        return np.format_float_scientific(value, digits - 1, unique=False, trim="-", exp_digits=1)
    decimals = max(digits - 1 - int(np.floor(np.log10(size))), 0)
    return np.format_float_positional(value, decimals, unique=False, trim="-")


def cell(value: float, *, whole: bool = False) -> str:
    """A number of a table: a count, or four significant digits."""
    if not np.isfinite(value):
        return NOTHING
    return f"{value:.0f}" if whole else re.sub(r"e([+-])0", r"e\1", significant(value))  # exponents as scripts write


def _feature_columns(subject: Subject) -> list[dict[str, Any]]:
    """The table of the features in the model: all columns but the names."""
    chosen, n_folds, display = subject.selection, subject.n_folds, subject.display
    what = "features" if chosen.groups is None else "groups"
    equal = f"{what} of one cluster have equal norms, as the penalty sees them; 1 has the largest"
    columns = [_column("Cluster", equal, "cluster", chosen.clusters, whole=True), *_size_columns(subject)]
    if n_folds:
        meaning = f"in how many of the {n_folds} folds the feature was selected at this alpha"
        counts = subject.fold_counts[chosen.features]
        columns.append(_column(f"Folds (of {n_folds})", meaning, "number", counts, whole=True))
    if display is not None:
        entries = np.full(len(subject.names), np.nan)
        entries[display.features] = display.alphas[np.argmax(display.norms > 0.0, axis=0)]
        meaning = "largest alpha of the path that selects the feature"
        columns.append(_column("Enters at", meaning, "number", entries[chosen.features]))
    intercepts = [None] * len(chosen.tasks) if subject.intercept is None else subject.intercept
    for k, (name, intercept) in enumerate(zip(chosen.tasks, intercepts, strict=True)):
        label = "Coefficient" if len(chosen.tasks) == 1 else name
        column = _column(label, f"coefficient: {name}", "coefficient", chosen.rows[:, k])
        if subject.has_two_scales:
            column["scaled"] = rounded(chosen.scaled_rows[:, k])
        columns.append(column | {"intercept": intercept})
    return columns


def _size_columns(subject: Subject) -> list[dict[str, Any]]:
    """How large features are: their norms, or coefficients of one target, as the penalty sees them and as they are."""
    chosen, over = subject.selection, "norm of the feature's coefficients, over all targets"
    if chosen.scale is None:
        return [_column("Norm", over, "number", chosen.norms)]
    if len(chosen.tasks) == 1:
        return [_column("Scaled", f"coefficient, {subject.scale_words}", "number", chosen.scaled_rows[:, 0])]
    return [
        _column("Scaled norm", f"{over}, {subject.scale_words}", "number", chosen.norms),
        _column("Norm", f"{over}, per unit of the feature", "number", np.linalg.norm(chosen.rows, axis=1)),
    ]


def _column(label: str, meaning: str, kind: str, values: Any, *, whole: bool = False) -> dict[str, Any]:
    """A column with its heading, what it means, its numbers, and the first of them as text.

    A feature that is not penalized has no cluster.
    """
    known = np.array(rounded(values), dtype=np.float64)  # the digits that scripts see, so that both write the same
    cells = [cell(value, whole=whole) for value in known[:SHOWN_ROWS]]
    if kind == "cluster":
        cells = [NOTHING if text == "0" else text for text in cells]
    column = {"label": label, "meaning": meaning, "kind": kind, "whole": whole, "intercept": None, "scaled": None}
    return column | {"values": rounded(known), "cells": cells}


# What matters -------------------------------------------------------------------------------------------


def _strongest(subject: Subject) -> dict[str, Any] | None:
    """The strongest features, for the first sentence and the first picture; None where nothing is selected."""
    chosen = subject.selection
    if not chosen.names:
        return None
    sizes, penalized = chosen.scaled_rows, chosen.norms[chosen.clusters > 0]
    largest = float(penalized.max(initial=0.0)) or float(chosen.norms.max(initial=0.0)) or 1.0
    has_both_signs = sizes.shape[1] == 1 and bool((sizes[:_MOST_BARS] < 0.0).any())
    counts = subject.fold_counts[chosen.features] if subject.n_folds else None
    bars = []
    for k in range(min(_MOST_BARS, len(sizes))):
        value = float(sizes[k, 0]) if sizes.shape[1] == 1 else float(chosen.norms[k])
        share = min(abs(value) / largest, 1.0) * (50.0 if has_both_signs else 100.0)
        left = 50.0 * has_both_signs - share * (value < 0.0)
        entries = [] if sizes.shape[1] == 1 or sizes.shape[1] > _MOST_CELLS else [(v, v / largest) for v in sizes[k]]
        bars.append(
            {
                "name": chosen.names[k],
                "cluster": int(chosen.clusters[k]),
                "value": value,
                "left": left,
                "width": share,
                "folds": None if counts is None else int(counts[k]),
                "entries": [(value, min(abs(part), 1.0) ** 0.75, value < 0.0) for value, part in entries],
            }
        )
    n_inside = len(penalized) or len(sizes)
    units = chosen.names if chosen.groups is None else chosen.groups
    own = range(len(units)) if chosen.groups is None else sorted(np.unique(units, return_index=True)[1])
    n_leaders, are_tied = _leading([int(chosen.clusters[k]) for k in own], is_relaxed=subject.is_relaxed)
    return {
        "bars": bars,
        "n_more": len(sizes) - len(bars),
        "leaders": [shown_name(units[k]) for k in own[:n_leaders]],
        "has_others": len(own) > n_leaders,
        "equal": ("size" if sizes.shape[1] == 1 and chosen.groups is None else "norm") if are_tied else "",
        "stable": None if counts is None else _stability_text(counts[:n_inside], subject.n_folds),
        "has_both_signs": has_both_signs,
        "tasks": chosen.tasks if bars[0]["entries"] else [],
    }


def _leading(clusters: list[int], *, is_relaxed: bool) -> tuple[int, bool]:
    """How many features, or groups, of these clusters the first sentence is about, and whether all of them are tied.

    As many whole clusters as there are names for, or the first: nothing sets apart some features of a cluster, but
    sizes in a relaxed fit.
    """
    if is_relaxed:
        return min(_MOST_LEADERS, len(clusters)), False
    ends = [k for k in range(1, len(clusters)) if clusters[k] != clusters[k - 1] or clusters[k] == 0] + [len(clusters)]
    n_leaders = max((k for k in ends if k <= _MOST_LEADERS), default=ends[0])
    return n_leaders, n_leaders > 1 and n_leaders == ends[0]


def _stability_text(counts: IndexArray, n_folds: int) -> str:
    """In how many folds the features of the model were selected, in one sentence."""
    n_always, n_features = int(np.count_nonzero(counts == n_folds)), len(counts)
    if n_features == 1:
        return f"It was selected in {counts[0]} of {n_folds} folds."
    who = "All of them" if n_always == n_features else f"{n_always or 'None'} of the {n_features}"
    rare = int(np.count_nonzero(2 * counts < n_folds))
    rest = f", {rare} in fewer than half" if rare else ""
    return f"{who} {'was' if n_always == 1 else 'were'} selected in each of the {n_folds} folds{rest}."


# Data for scripts ---------------------------------------------------------------------------------------


def rounded(values: Iterable[float]) -> list[float | None]:
    """Numbers with six significant digits; None for what is no number."""
    return [float(f"{value:.{_DIGITS}g}") if math.isfinite(value) else None for value in values]


def _path_data(subject: Subject) -> dict[str, Any] | None:
    """The path for plot and slider; None where there is none."""
    display = subject.display
    if display is None:
        return None
    path, norms, clusters = subject.points, display.norms, np.zeros(display.norms.shape, dtype=np.intp)
    values, (low, high) = display.values, display.limits
    for i, point in enumerate(path):
        clusters[i, np.searchsorted(display.features, point.support)] = point.clusters
    # Rows that fit into the file: those of the fit, then the largest, in the order of the columns of X.
    is_out = ~np.isin(display.features, subject.selection.features)
    order = np.lexsort((-norms.max(axis=0, initial=0.0), is_out))
    sizes = np.cumsum(np.count_nonzero(norms, axis=0)[order])
    kept = np.sort(order[: int(np.searchsorted(sizes, _MOST_NORMS, side="right"))])
    position = {int(k): i for i, k in enumerate(kept)}
    rows = []
    for k in kept:  # where a row begins to be non-zero, and its values and clusters from there to where it ends to be
        there = np.flatnonzero(norms[:, k])
        span = slice(there[0], there[-1] + 1)
        rows.append([int(there[0]), rounded(values[span, k]), clusters[span, k].tolist()])
    named = [[int(k) for k in lines if int(k) in position] for lines in display.strongest_first()]
    legend = [lines for lines in named if lines][:N_NAMED]
    return {
        "alphas": rounded(display.alphas),
        "start": subject.nearest,
        "chosen": None if display.alpha is None else rounded([display.alpha])[0],
        "selected": path.n_selected.tolist(),
        "clusters": [int(point.clusters.max(initial=0)) for point in path],
        "tied": [bool(path.n_units(point) > point.clusters.max(initial=0)) for point in path],
        "label": ("scaled " if display.is_scaled else "") + ("norm" if display.coefficients is None else "coefficient"),
        "what": "norm" if display.coefficients is None else "coefficient",
        "low": rounded([low])[0],
        "high": rounded([high])[0],
        "deviance": rounded(path.deviance_ratio),
        "gaps": rounded(path.dual_gaps),
        "statuses": path.statuses.tolist(),
        "features": display.features[kept].tolist(),
        "names": [display.feature_names[k] for k in kept],
        "free": [position[int(k)] for k in np.flatnonzero(display.unpenalized) if int(k) in position],
        "rows": rows,
        "legend": [[position[k] for k in lines] for lines in legend],
        "labels": shortened_names([display.feature_names[lines[0]] for lines in legend], _LONGEST_LABEL),
        "omitted": len(display.features) - len(kept),
    }


def _choice_data(subject: Subject) -> dict[str, Any] | None:
    """What alpha was chosen by, for its plot; None where it was given."""
    choice = subject.choice
    if choice is None:
        return None
    band, folds = choice.one_se_band, choice.scores
    if folds is None or folds.shape[1] > _MOST_FOLDS:
        folds = np.empty((0, 0))
    return {
        "alphas": rounded(choice.alphas),
        "chosen": rounded([choice.alpha])[0],
        "label": choice.label,
        "lowerIsBetter": choice.lower_is_better,
        "values": rounded(choice.values),
        "errors": None if choice.std_errors is None else rounded(choice.std_errors),
        "band": None if band is None or not np.isfinite(band).all() else rounded(band),
        "folds": [rounded(scores) for scores in folds.T],
        "selected": None if choice.n_selected is None else choice.n_selected.tolist(),
    }
