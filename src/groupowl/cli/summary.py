"""What a run prints: a page for people, an object for programs, or nothing."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.table import Table as RichTable
from rich.text import Text

from .._text import printable
from ..estimators.fit_summary import unequal_norms_text
from .messages import print_paths, say
from .options import TalkOptions
from .outcome import Outcome
from .progress import PlainConsole

_SHOWN = 12
_FACTS = ("File", "Samples", "Features", "Targets", "Weights", "Alpha", "Selected features", "Objective", "Seconds")


def print_outcome(outcome: Outcome, written: list[Path], talk: TalkOptions) -> None:
    """Print what the options ask for on stdout."""
    if talk.json:
        print_json(describe(outcome, written))
    elif not talk.quiet:
        _print_page(outcome, written)


def print_json(value: dict[str, Any]) -> None:
    """One object on one line; what JSON has no number for is null."""
    say(json.dumps(_plain(value), allow_nan=False).replace("\x7f", "\\u007f"))  # the one control that JSON leaves


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(item) for item in value]
    if isinstance(value, np.ndarray | np.generic):
        return _plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return str(value) if isinstance(value, Path) else value


def describe(outcome: Outcome, written: list[Path]) -> dict[str, Any]:
    """The outcome as plain values."""
    table, estimator, result = outcome.table, outcome.estimator, outcome.estimator.solve_result_
    norms = np.linalg.norm(np.atleast_2d(estimator.coef_).astype(np.float64), axis=0)
    return {
        "command": outcome.command,
        "file": table.source,
        "task": table.task,
        "n_samples": table.n_samples,
        "n_features": table.n_features,
        "targets": table.target_names,
        "classes": table.classes,
        "weights": outcome.weights_name,
        "alpha": estimator.alpha_,
        "objective": result.primal,
        "gap": result.gap,
        "converged": outcome.converged,
        "n_selected": len(outcome.selected),
        "selected": [
            {"feature": table.feature_names[j], "cluster": estimator.clusters_[j], "norm": norms[j]}
            for j in outcome.selected
        ],
        "scores": {name: {"model": pair[0], "null_model": pair[1]} for name, pair in outcome.scores.items()},
        "notes": outcome.notes,
        "seconds": outcome.seconds,
        "written": written,
    }


def _print_page(outcome: Outcome, written: list[Path]) -> None:
    console = PlainConsole()
    console.print(Text(outcome.title, style="bold"))
    facts = RichTable.grid(padding=(0, 2))
    for name in _FACTS:
        facts.add_row(Text(name), Text(outcome.facts[name]))
    console.print(facts)
    console.print(_score_table(outcome))
    console.print(_feature_table(outcome))
    unequal = unequal_norms_text(outcome.estimator)
    for note in [*([unequal] if unequal else []), *outcome.notes]:
        console.print(Text(f"Note: {note}"))
    if not written:
        console.print(Text("Nothing was written; --out DIR keeps the model, its tables and its report."))
    print_paths(written)


def _score_table(outcome: Outcome) -> RichTable:
    table = RichTable(box=SIMPLE_HEAD)
    table.add_column("score")
    for heading in ("model", "null model"):
        table.add_column(heading, justify="right")
    for name, (model, null) in outcome.scores.items():
        table.add_row(Text(name), f"{model:.4g}", f"{null:.4g}")
    return table


def _feature_table(outcome: Outcome) -> RichTable | Text:
    estimator, names = outcome.estimator, outcome.table.feature_names
    selected = outcome.selected
    if len(selected) == 0:
        rest = "None explains the targets, at any alpha." if outcome.is_hopeless else "A smaller alpha selects some."
        return Text(f"No feature is selected. {rest}\n")
    norms = np.linalg.norm(np.atleast_2d(estimator.coef_).astype(np.float64), axis=0)
    table = RichTable(box=SIMPLE_HEAD)
    table.add_column("selected feature")
    table.add_column("cluster", justify="right")
    table.add_column("norm", justify="right")
    for j in selected[:_SHOWN]:
        cluster = "-" if j in estimator.unpenalized_ else str(estimator.clusters_[j])
        table.add_row(Text(printable(names[j]), overflow="ellipsis", no_wrap=True), cluster, f"{norms[j]:.4g}")
    if len(selected) > _SHOWN:
        table.add_row(f"... {len(selected) - _SHOWN} more", "", "")
    return table
