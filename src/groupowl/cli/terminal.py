"""What a terminal shows: progress on stderr while a command works, and what it has found on stdout."""

from __future__ import annotations

import io
import json
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr
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
from ..estimators.fit_summary import feature_rows, scale_text
from .commands import TalkOptions
from .messages import print_paths, say
from .outcome import Outcome

# Seconds before the first line, and between lines: rewritten in place on a terminal, one below the other elsewhere.
_PATIENCE = 2.0
_REWRITE_EVERY = 0.2
_WRITE_EVERY = 10.0

# Features of a model that are shown, and facts about it.
_SHOWN = 12
_FACTS = (
    "File",
    "Samples",
    "Features",
    "Targets",
    "Missing targets",
    "Weights",
    "Scores of weights",
    "Scores of choices",
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


class Stages(io.TextIOBase):
    """Says which part of the work is being done, and for how long, once a part takes longer than two seconds.

    Not Rich's status line, which writes nothing where stderr is a file, as in the log of a batch job. While a part is
    done this is what stderr is: the last line written to it becomes the detail of the line.

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
        self.detail = ""
        self.width = 0  # of the line to be written over

    @contextmanager
    def stage(self, words: str) -> Iterator[None]:
        """A part of the work."""
        if self.quiet:
            yield
            return
        self.detail = ""
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
            self.detail = lines[-1]
        return len(text)

    def _run(self, words: str, over: threading.Event) -> None:
        """Show the time until the stage is over."""
        started, pause = time.monotonic(), self.patience
        while not over.wait(pause):
            detail = f": {self.detail}" if self.detail else ""
            line = printable(f"{words}, {time.monotonic() - started:.0f} s{detail}")
            if self.is_terminal:
                columns = PlainConsole(file=self.stream).width - 1
                self._put("\r" + line[:columns].ljust(self.width))
                self.width = min(len(line), columns)
                pause = _REWRITE_EVERY
            else:
                self._put(line + "\n")
                pause = _WRITE_EVERY

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
    scores = plain_table(["score"], ["model", "null model"])
    for name, (model, null) in outcome.scores.items():
        scores.add_row(Text(name), f"{model:.4g}", f"{null:.4g}")
    console.print(scores)
    shown, n_words = outcome.features[:_SHOWN], 2 if hasattr(estimator, "feature_groups_") else 1
    headings, *rows = feature_rows(estimator, shown)
    features = plain_table(["selected feature", *headings[1:n_words]], headings[n_words:])
    for j, (_, *cells) in zip(shown, rows, strict=True):
        words = [printable(outcome.names[j]), *cells[: n_words - 1]]  # sparse data have names of their own
        features.add_row(*(Text(word, overflow="ellipsis", no_wrap=True) for word in words), *cells[n_words - 1 :])
    if len(outcome.features) > _SHOWN:
        features.add_row(f"... {len(outcome.features) - _SHOWN} more", *("" for _ in headings[1:]))
    rest = "None explains the targets, at any alpha." if outcome.is_hopeless else "A smaller alpha selects some."
    console.print(features if shown else Text(f"No feature is selected. {rest}\n"))
    for note in filter(None, [scale_text(estimator), *outcome.notes]):
        console.print(Text(f"Note: {note}"))
    if not written:
        console.print(Text("Nothing was written; --out DIR keeps the model, its tables and its report."))
    print_paths(written)


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
