"""Selection with error control from a file: ``groupowl select``."""

from __future__ import annotations

import io
import json
import os
import platform
import shlex
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from .. import __version__, _files
from .._resume import ABOUT_PAIRS
from .._text import counted, listed
from ..designs import Design
from ..inference import KnockoffSelector, StabilitySelector
from ..inference.base import FeatureSelector
from ..tables import Table
from . import commands
from .commands import SelectOptions, command
from .messages import Failure, printing, writing
from .model_commands import NOT_CONVERGED, as_typed, check_resume, data_of, make_estimator, read_table
from .run_folder import PICTURE, REPORT, RUN, SELECTION, check_out, csv_text
from .terminal import Stages, print_json, print_selection

_KIND = "groupowl selection"
_FORMAT_VERSION = 1
# Facts on screen, and names of targets that are listed.
_FACTS = ("File", "Samples", "Features", "Targets", "Model", "Method", "Selected", "Seconds")
_LISTED = 8
_CAPTIONS = {
    "draws": "Each draw of knockoffs gives e-values to the features that it selects; their means are compared.",
    "knockoffs": "Bars to the right are in favor of features, bars to the left in favor of their knockoffs, which tell "
    "how many false features lie beyond the threshold.",
    "stability": "How often halves of the samples have selected a feature; those beyond the threshold are selected.",
}
# What each option of a method is for the selector.
_PARAMETERS = {
    "knockoffs": {"fdr": "fdr", "sampler": "sampler", "draws": "n_repeats"},
    "stability": {"max_false": "max_false", "pairs": "n_pairs"},
}
# Roles of columns in other commands, and what is different without them.
_UNKNOWN = {
    "groups": "samples then count as independent of each other",
}
_KINDS: dict[str, Any] = {"knockoffs": KnockoffSelector, "stability": StabilitySelector}


@command(example="groupowl select train.csv --targets y1,y2 --fdr 0.1 --out selection")
def select(options: SelectOptions) -> None:
    """Select features of a file so that few of them are false, with a bound that is promised.

    Knockoffs bound the expected share of false features among the selected ones (--fdr), stability selection their
    expected number (--max-false). Writes a table, a picture and a report, which says what is promised and what is
    assumed, to a new folder.
    """
    check_out(options.out, force=options.force)
    _check(options)
    stages, started = Stages(options.quiet), time.perf_counter()
    table, reading = read_table(options, stages)
    with data_of(table):
        table, _ = table.filled(reading.missing)
    selector = _make_selector(table, options)
    with stages.stage(f"Selecting from {table.n_samples} x {table.n_features}"):
        warned, converged = _fit(selector, table, verbose=not options.quiet)
    if (note := as_typed(getattr(selector, "note_", ""))) and note not in warned:
        warned.append(note)
    found = _Selection(options, table, selector, (*table.notes, *warned), time.perf_counter() - started)
    with stages.stage("Writing"):
        written = _write(found, options.out, force=options.force)
    with printing(f"{options.out} was written" if written else "nothing was written"):
        _print(found, written, options)
    if not converged:
        kept = "What there is was written. " if written else ""
        remedy = "Raise --max-iter or --tol."
        raise Failure(f"not converged: some fits fell short of --tol (see the notes). {kept}{remedy}", NOT_CONVERGED)


def _check(options: SelectOptions) -> None:
    """Refuse options that say nothing here, before any file is read."""
    if options.resume is not None and options.method != "stability":
        raise Failure(f"--resume {options.resume} is for --method stability. Leave it out.", 2)
    check_resume(options, ABOUT_PAIRS)
    for name, consequence in _UNKNOWN.items():
        if (column := getattr(options, name)) is not None:
            # Without any option the column would be a feature.
            remedy = f"Use --drop {shlex.quote(column)} in its place, so that the column is no feature; {consequence}."
            raise Failure(f"--{name} {column}: select knows no {name}. {remedy}", 2)
    for method, names in _PARAMETERS.items():
        for name in names:
            if method != options.method and getattr(options, name) is not None:
                instead = ", ".join(f"--{other.replace('_', '-')}" for other in _PARAMETERS[options.method])
                given = f"--{name.replace('_', '-')} is for --method {method}, and the method is {options.method}"
                raise Failure(f"{given}. Leave it out; that has {instead}.", 2)


def _make_selector(table: Table, options: SelectOptions) -> FeatureSelector:
    """A selector with the options that were given, and an estimator for the targets."""
    given = {}
    for name, parameter in _PARAMETERS[options.method].items():
        if getattr(options, name) is not None:
            given[parameter] = getattr(options, name)
    if options.resume is not None:
        given["resume"] = options.resume
    estimator = make_estimator(table, options).set_params(random_state=None, resume=None)
    selector: FeatureSelector = _KINDS[options.method](
        estimator=estimator, n_jobs=options.jobs, random_state=options.seed, **given
    )
    return selector


def _fit(selector: FeatureSelector, table: Table, *, verbose: bool) -> tuple[list[str], bool]:
    """Fit; returns what it has warned of, and whether all fits converged."""
    if isinstance(table.X, Design):
        raise Failure(f"{table.source} is read from the disk as it is needed, but select needs it in memory. Use CSV.")
    X = table.X
    if isinstance(X, np.ndarray):
        import pandas

        X = pandas.DataFrame(X, columns=list(table.feature_names), copy=False)
    selector.set_params(verbose=int(verbose))
    with data_of(table), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        selector.fit(X, table.target_frame, sample_weight=table.sample_weight, offset=table.offset)
    selector.set_params(verbose=0, **({"resume": None} if hasattr(selector, "resume") else {}))
    notes = dict.fromkeys(as_typed(" ".join(str(item.message).split())) for item in caught)
    return list(notes), not any(issubclass(item.category, ConvergenceWarning) for item in caught)


@dataclass(frozen=True, eq=False)
class _Selection:
    """What was selected, and everything that is said about it."""

    options: SelectOptions
    table: Table
    selector: Any
    notes: tuple[str, ...]
    seconds: float

    @property
    def title(self) -> str:
        return f"Selected features: {self.table.source}"

    @property
    def caption(self) -> str:
        """What the picture shows."""
        return _CAPTIONS["draws" if (self.options.draws or 1) > 1 else self.options.method]

    @property
    def frame(self) -> Any:
        """All features, the strongest first, by the names of the file."""
        frame = self.selector.to_frame(sort=True)
        if not hasattr(self.selector, "feature_names_in_"):  # sparse data have names of their own
            names = self.table.feature_names
            frame = frame.assign(feature=[names[j] for j in frame["feature"].tolist()])
        return frame

    @property
    def facts(self) -> dict[str, str]:
        """What was done, in words."""
        table, selector, options = self.table, self.selector, self.options
        goal = listed(table.classes or table.target_names, shown=_LISTED, quoted=False)
        if table.is_classification:
            goal = f"{table.target_names[0]}, {len(table.classes)} classes: {goal}"
        how = {name: getattr(selector, parameter) for name, parameter in _PARAMETERS[options.method].items()}
        shown = ", ".join(f"--{name.replace('_', '-')} {value}" for name, value in how.items())
        return {
            "File": table.source,
            "Samples": str(table.n_samples),
            "Features": str(table.n_features),
            "Targets": goal,
            "Model": selector.model_,
            "Method": f"{options.method} ({shown})",
            "Threshold": f"{selector.threshold_:.4g}" if np.isfinite(selector.threshold_) else "none holds the promise",
            "Selected": counted(int(np.count_nonzero(selector.support_)), "feature"),
            "Weights": str(options.weights),
            "Standardized": "yes" if options.standardize else "no",
            **{name.capitalize(): column for name in ("offset", "exposure") if (column := getattr(options, name))},
            "Seed": str(options.seed),
            "Seconds": f"{self.seconds:.1f}",
            "Versions": f"groupowl {__version__}, Python {platform.python_version()}",
        }

    def described(self) -> dict[str, Any]:
        """The selection as plain values, for programs."""
        promise, assumption = self.selector._promise()
        rows = self.frame.to_dict("records")
        return {
            "command": "select",
            "method": self.options.method,
            "file": self.table.source,
            **{name: getattr(self.table, name) for name in ("task", "n_samples", "n_features")},
            "targets": self.table.target_names,
            "model": self.selector.model_,
            "promise": promise,
            "assumption": assumption,
            "threshold": self.selector.threshold_,
            "n_selected": int(np.count_nonzero(self.selector.support_)),
            "selected": [row for row in rows if row["selected"]],
            "notes": self.notes,
            "seconds": self.seconds,
        }

    def picture(self) -> bytes:
        """The display of the method as SVG."""
        import matplotlib as mpl
        from matplotlib.figure import Figure

        from ..plotting import KnockoffDisplay, StabilityDisplay

        n_rows = min(int(np.count_nonzero(np.nan_to_num(self.selector.scores_))), 30)
        figure = Figure(figsize=(6.4, 1.6 + 0.22 * max(n_rows, 4)), layout="constrained")
        ax = figure.subplots()
        if self.options.method == "knockoffs":
            KnockoffDisplay.from_estimator(self.selector, feature_names=list(self.table.feature_names), ax=ax)
        else:
            StabilityDisplay.from_estimator(self.selector, ax=ax, kind="frequencies")
        drawn = io.BytesIO()
        with mpl.rc_context({"svg.hashsalt": "groupowl"}):  # the same picture for the same numbers
            figure.savefig(drawn, format="svg", metadata={"Date": None})
        return drawn.getvalue()


def _write(found: _Selection, out: Path | None, *, force: bool) -> list[Path]:
    """Table, picture, record and report, all of them or none."""
    if out is None:
        return []
    from ..report import SelectionContents, write_selection_report

    check_out(out, force=force)  # again: hours may have passed
    typed = ("groupowl", *commands.arguments.get())
    promise, assumption = found.selector._promise()
    frame, picture = found.frame, found.picture()
    record = {"kind": _KIND, "format_version": _FORMAT_VERSION, "groupowl_version": __version__, "command": typed}
    record |= {"facts": found.facts, "promise": promise, "assumption": assumption, "notes": found.notes}
    with writing(out), _files.fresh_folder(Path(os.path.realpath(out))) as folder:
        rows = zip(*(frame[name].tolist() for name in frame.columns), strict=True)
        (folder / SELECTION).write_text(csv_text([frame.columns, *rows]), encoding="utf-8", newline="")
        (folder / PICTURE).write_bytes(picture)
        (folder / RUN).write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
        contents = SelectionContents(
            title=found.title,
            command=typed,
            facts=found.facts,
            selector=found.selector,
            promise=promise,
            assumption=assumption,
            frame=frame,
            picture=picture,
            caption=found.caption,
            notes=found.notes,
        )
        write_selection_report(folder / REPORT, contents)
    return [out / name for name in (SELECTION, PICTURE, REPORT, RUN)]


def _print(found: _Selection, written: list[Path], options: SelectOptions) -> None:
    """A page for people, an object for programs, or nothing."""
    if options.json:
        print_json(found.described() | {"written": written})
    elif not options.quiet:
        promise, assumption = found.selector._promise()
        facts = {name: found.facts[name] for name in _FACTS} | {"Promise": promise, "Assumes": assumption}
        print_selection(found.title, facts, found.frame, found.notes, written)
