"""What a terminal shows: progress on stderr while a command works, and what it has found on stdout."""

from __future__ import annotations

import io
import json
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console, ConsoleOptions
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from .._text import printable
from ..estimators.fit_summary import feature_rows, null_choice_text, scale_text
from ..model_selection.scores import Confusion, Score, verdicts
from ..report.page import number
from .commands import TalkOptions
from .evaluation import Evaluation
from .messages import print_paths, say
from .outcome import Outcome

# Seconds before the first line, and between lines: rewritten in place on a terminal, one below the other elsewhere.
_PATIENCE = 2.0
_REWRITE_EVERY = 0.2
_WRITE_EVERY = 10.0

# Features of a model that are shown, targets with scores of their own, classes in a matrix, and facts.
_SHOWN = 12
_SHOWN_TARGETS = 10
_SHOWN_CLASSES = 8
_FACTS = (
    "File",
    "Samples",
    "Features",
    "Targets",
    "Missing targets",
    "Weights",
    "Alpha",
    "Selected features",
    "Objective",
    "Seconds",
)


class PlainConsole(Console):
    """Tables and styles on stdout, or on stderr; text in them is shown as it is, control characters spelled."""

    def render(self, renderable: Any, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """What is printed, piece by piece; styles and cursor movements are Rich's own."""
        for piece in super().render(renderable, options):
            yield piece if piece.control else Segment(printable(piece.text, keep="\n"), piece.style)

    def on_broken_pipe(self) -> None:
        """Leave it to whoever prints; Rich would end the process, with the exit code of an error."""
        raise BrokenPipeError


# Progress -----------------------------------------------------------------------------------------------


@contextmanager
def progress_bar(quiet: bool) -> Iterator[Callable[..., None]]:
    """A hook ``(done, total, description)`` that moves a bar on stderr; the bar is gone at the end.

    A fourth argument says beside it how long the rest is likely to take.
    """
    words, rest = TextColumn("{task.description}", markup=False), TextColumn("{task.fields[left]}")
    columns = (SpinnerColumn(), words, BarColumn(20), MofNCompleteColumn(), TimeElapsedColumn(), rest)
    with Progress(*columns, console=PlainConsole(stderr=True), transient=True, disable=quiet) as bar:
        task = bar.add_task("Starting", total=None, left="")

        def show(done: int, total: int, description: str, left: str = "") -> None:
            bar.update(task, completed=done, total=total, description=description, left=left, refresh=True)

        yield show


@dataclass
class StageBar:
    """How far a stage has come: what a line of progress moves in place of writing lines with a clock of their own."""

    text: str = ""
    share: float | None = None

    def show(self, text: str, share: float | None) -> None:
        """Remember it for the next line of the stage."""
        self.text, self.share = text, share

    def close(self) -> None:
        """Nothing is left to be done: the stage ends by itself."""


class Stages(io.TextIOBase):
    """Says which part of the work is being done, how far it is, and for how long, once it takes over two seconds.

    Not Rich's status line, which writes nothing where stderr is a file, as in the log of a batch job. While a part is
    done this is what stderr is: lines of progress move ``bar``, and the last line written by anything else becomes the
    text beside it.

    Parameters
    ----------
    quiet : bool
        Whether to say nothing at all.
    stream : text stream, default=None
        Where to; standard error by default.
    patience : float, default=2.0
        Seconds before the first line.
    """

    def __init__(self, quiet: bool, stream: TextIO | None = None, *, patience: float = _PATIENCE) -> None:
        self.quiet = quiet
        self.stream = sys.stderr if stream is None else stream
        self.patience = patience
        self.is_terminal = bool(getattr(self.stream, "isatty", lambda: False)())
        self.bar = StageBar()
        self.width = 0  # of the line to be written over

    @contextmanager
    def stage(self, words: str) -> Iterator[None]:
        """A part of the work."""
        if self.quiet:
            yield
            return
        self.bar = StageBar()
        over = threading.Event()
        thread = threading.Thread(target=self._run, args=(words, over), daemon=True)
        thread.start()
        try:
            with redirect_stderr(self):
                yield
        finally:
            over.set()
            thread.join()
            if self.width:  # leave an empty line behind on a terminal
                self._put("\r" + " " * self.width + "\r")
                self.width = 0

    def isatty(self) -> bool:
        """Whether lines are rewritten: what is written here is shown as often as that."""
        return self.is_terminal

    def write(self, text: str) -> int:
        """Remember the last line that says something."""
        lines = [line.strip() for line in text.replace("\r", "\n").splitlines() if line.strip()]
        if lines:
            self.bar.text = lines[-1]
        return len(text)

    def _run(self, words: str, over: threading.Event) -> None:
        """Show how far the stage is, and its time, until it is over."""
        started, pause = time.monotonic(), self.patience
        while not over.wait(pause):
            line = printable(self._line(words, time.monotonic() - started))
            if self.is_terminal:
                columns = PlainConsole(file=self.stream).width - 1
                self._put("\r" + line[:columns].ljust(self.width))
                self.width = min(len(line), columns)
                pause = _REWRITE_EVERY
            else:
                self._put(line + "\n")
                pause = _WRITE_EVERY

    def _line(self, words: str, seconds: float) -> str:
        share = "" if self.bar.share is None else f", {100 * self.bar.share:.0f} %"
        text = f": {self.bar.text}" if self.bar.text else ""
        return f"{words}{share}, {seconds:.0f} s{text}"

    def _put(self, text: str) -> None:
        self.stream.write(text)
        self.stream.flush()


# What was found -----------------------------------------------------------------------------------------


def print_json(value: dict[str, Any]) -> None:
    """One object on one line; what JSON has no number for is null."""
    plain = json.loads(json.dumps(value, default=_plain), parse_constant=lambda constant: None)
    say(json.dumps(plain).replace("\x7f", "\\u007f"))  # the one control that JSON leaves


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    return list(value) if isinstance(value, Sequence) else str(value)


def print_outcome(outcome: Outcome, written: list[Path], talk: TalkOptions) -> None:
    """Print what the options ask for on stdout: a page for people, an object for programs, or nothing."""
    if talk.json:
        print_json(outcome.described() | {"written": written})
    if talk.json or talk.quiet:
        return
    console, estimator, facts = PlainConsole(), outcome.estimator, outcome.facts
    _print_facts(console, outcome.title, {name: facts[name] for name in _FACTS if name in facts})
    print_scores(console, outcome.scores, outcome.confusion)
    _print_choices(console, outcome)
    shown, n_words = outcome.features[:_SHOWN], 2 if hasattr(estimator, "feature_groups_") else 1
    headings, *rows = feature_rows(estimator, shown)
    features = plain_table(["selected feature", *headings[1:n_words]], headings[n_words:])
    for j, (_, *cells) in zip(shown, rows, strict=True):
        words = [printable(outcome.names[j]), *cells[: n_words - 1]]  # sparse data have names of their own
        features.add_row(*(Text(word, overflow="ellipsis", no_wrap=True) for word in words), *cells[n_words - 1 :])
    if len(outcome.features) > _SHOWN:
        features.add_row(f"... {len(outcome.features) - _SHOWN} more", *("" for _ in headings[1:]))
    rest = null_choice_text(estimator) or "A smaller alpha selects some."
    rest = "None explains the targets, at any alpha." if outcome.is_hopeless else rest
    console.print(features if shown else Text(f"No feature is selected. {rest}\n"))
    loud = verdicts(outcome.scores)
    for note in loud:
        console.print(Text(f"WARNING: {note}", style="bold red"))
    for note in filter(None, [scale_text(estimator), *outcome.notes]):
        if note not in loud:
            console.print(Text(f"Note: {note}"))
    if not written:
        console.print(Text("Nothing was written; --out DIR keeps the model, its tables and its report."))
    print_paths(written)


def print_evaluation(evaluation: Evaluation, *, on_stderr: bool = False) -> None:
    """Scores of new samples, and what must be said of them."""
    console = PlainConsole(stderr=on_stderr)
    print_scores(console, evaluation.scores, evaluation.confusion)
    for note in verdicts(evaluation.scores):
        console.print(Text(f"WARNING: {note}", style="bold red"))
    for note in evaluation.notes:
        console.print(Text(f"Note: {note}"))


def print_scores(console: Console, scores: Mapping[str, Score], confusion: Sequence[Confusion]) -> None:
    """Scores beside those of the null model, for all targets and for each, and which classes are confused."""
    if not scores:
        return
    table = plain_table(["score"], ["model", "std. error", "null model"])
    for name, score in scores.items():
        table.add_row(Text(printable(name)), *_score_cells(score))
        for target, own in list(score.targets.items())[:_SHOWN_TARGETS]:
            table.add_row(Text(f"  {printable(target)}", overflow="ellipsis", no_wrap=True), *_score_cells(own))
        if len(score.targets) > _SHOWN_TARGETS:
            table.add_row(f"  ... {len(score.targets) - _SHOWN_TARGETS} more", "", "", "")
    console.print(table)
    if len(confusion) == 1 and not confusion[0].target:
        console.print(_confusion_table(confusion[0]))
    elif confusion:
        console.print(_label_table(confusion))


def _score_cells(score: Score) -> list[str]:
    return [_shown(score.model), _shown(score.std_error, 2), _shown(score.null)]


def _shown(value: float, digits: int = 4) -> str:
    return "-" if np.isnan(value) else number(value, digits)


def _confusion_table(confusion: Confusion) -> Table:
    """Samples of each class, and what they are taken for; of many classes only the most frequent mistake."""
    labels = [printable(label) for label in confusion.labels]
    if len(labels) > _SHOWN_CLASSES:
        table = plain_table(["class", "mostly taken for"], ["of them", "samples", "right"])
        wrong = confusion.matrix * (1.0 - np.eye(len(labels)))
        for k, label in enumerate(labels):
            j = int(wrong[k].argmax())
            mistake = (labels[j], f"{wrong[k, j]:g}") if wrong[k, j] > 0.0 else ("", "")
            table.add_row(Text(label), Text(mistake[0]), mistake[1], *_class_cells(confusion, k))
        return table
    table = plain_table(["true class"], [*(f"as {label}" for label in labels), "samples", "right"])
    for k, label in enumerate(labels):
        cells = [f"{count:g}" for count in confusion.matrix[k].tolist()]
        table.add_row(Text(label), *cells, *_class_cells(confusion, k))
    return table


def _class_cells(confusion: Confusion, k: int) -> tuple[str, str]:
    recall = confusion.recalls[k]
    return f"{confusion.counts[k]:g}", "-" if np.isnan(recall) else f"{100 * recall:.0f} %"


def _label_table(confusion: Sequence[Confusion]) -> Table:
    """Labels that do not exclude each other: how many samples have them, are said to have them, and both."""
    table = plain_table(["label"], ["samples", "have it", "predicted", "both"])
    for own in confusion[:_SHOWN_TARGETS]:
        matrix = own.matrix
        cells = (matrix.sum(), own.counts[1], own.predicted[1], matrix[1, 1])
        table.add_row(Text(printable(own.target)), *(f"{count:g}" for count in cells))
    if len(confusion) > _SHOWN_TARGETS:
        table.add_row(f"... {len(confusion) - _SHOWN_TARGETS} more", "", "", "", "")
    return table


def _print_choices(console: Console, outcome: Outcome) -> None:
    """What alpha and weights were chosen from."""
    if candidates := outcome.candidates:
        measure, is_error = outcome.measure
        better = "lower" if is_error else "higher"
        table = plain_table(["choice", f"({better} is better)"], ["alpha", measure, "std. error"])
        for own in candidates:
            error = "-" if own["std_error"] is None else _shown(own["std_error"], 2)
            chosen = "chosen" if own["chosen"] else ""
            table.add_row(Text(printable(own["name"])), chosen, f"{own['alpha']:.6g}", _shown(own["score"]), error)
        console.print(table)
    if choices := outcome.choices:
        table = plain_table(["criterion", ""], ["alpha", "selected features"])
        for own in choices:
            chosen = "saved" if own["chosen"] else f"--selection {own['criterion']}"
            table.add_row(own["criterion"], chosen, f"{own['alpha']:.6g}", str(own["n_selected"]))
        console.print(table)


def print_selection(title: str, facts: dict[str, str], frame: Any, notes: Sequence[str], written: list[Path]) -> None:
    """A page about a selection: ``frame`` has features, whether they are selected, and what by, strongest first."""
    console, chosen = PlainConsole(), frame[frame["selected"]]
    _print_facts(console, title, facts)
    score = next(name for name in frame.columns if name not in ("feature", "selected"))
    features = plain_table(["selected feature"], [score.replace("_", " ")])
    for name, value in zip(chosen["feature"][:_SHOWN], chosen[score][:_SHOWN], strict=True):
        features.add_row(Text(printable(name), overflow="ellipsis", no_wrap=True), f"{value:.4g}")
    if len(chosen) > _SHOWN:
        features.add_row(f"... {len(chosen) - _SHOWN} more", "")
    console.print(features if len(chosen) else Text("No feature is selected.\n"))
    for note in notes:
        console.print(Text(f"Note: {note}"))
    if not written:
        console.print(Text("Nothing was written; --out DIR keeps the table, a picture and a report."))
    print_paths(written)


def _print_facts(console: Console, title: str, facts: dict[str, str]) -> None:
    console.print(Text(title, style="bold"))
    grid = Table.grid(padding=(0, 2))
    for name, value in facts.items():
        grid.add_row(Text(name), Text(value))
    console.print(grid)


def plain_table(words: Sequence[str], numbers: Sequence[str], **settings: Any) -> Table:
    """A table with columns of words, then of numbers, by their headings."""
    table = Table(box=SIMPLE_HEAD, **settings)
    for heading in (*words, *numbers):
        table.add_column(heading, justify="left" if heading in words else "right")
    return table
