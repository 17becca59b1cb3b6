"""Progress on stderr, for whatever takes longer than two seconds."""

from __future__ import annotations

import io
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, redirect_stderr
from typing import Any, TextIO

from rich.console import Console, ConsoleOptions
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.segment import Segment

from .._text import printable
from .messages import duration

# Seconds before the first line, and between lines: rewritten in place on a terminal, one below the other elsewhere.
_PATIENCE = 2.0
_REWRITE_EVERY = 0.2
_WRITE_EVERY = 10.0


class PlainConsole(Console):
    """Tables and styles on stdout, or on stderr; text in them is shown as it is, control characters spelled."""

    def render(self, renderable: Any, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """What is printed, piece by piece; styles and cursor movements are Rich's own."""
        for piece in super().render(renderable, options):
            yield piece if piece.control else Segment(printable(piece.text, keep="\n"), piece.style)


@contextmanager
def progress_bar(quiet: bool) -> Iterator[Callable[..., None]]:
    """A hook ``(done, total, description)`` that moves a bar on stderr; the bar is gone at the end.

    A fourth argument, seconds, says beside it how long the rest is likely to take.
    """
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), BarColumn(20), MofNCompleteColumn())
    left = TextColumn("{task.fields[left]}")
    with Progress(
        *columns, TimeElapsedColumn(), left, console=PlainConsole(stderr=True), transient=True, disable=quiet
    ) as bar:
        task = bar.add_task("Starting", total=None, left="")

        def show(done: int, total: int, description: str, seconds: float | None = None) -> None:
            words = "" if seconds is None else f"about {duration(seconds)} left"
            bar.update(task, completed=done, total=total, description=description, left=words, refresh=True)

        yield show


class Stages:
    """Says which part of the work is being done, and for how long, once a part takes longer than two seconds.

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

    @contextmanager
    def stage(self, words: str) -> Iterator[None]:
        """A part of the work; what is printed to stderr in the meantime becomes the detail of the line."""
        if self.quiet:
            yield
            return
        ticker = _Ticker(words, self)
        thread = threading.Thread(target=ticker.run, daemon=True)
        thread.start()
        try:
            with redirect_stderr(ticker):
                yield
        finally:
            ticker.stop.set()
            thread.join()
            ticker.clear()


class _Ticker(io.TextIOBase):
    """Writes the line again and again; as a stream, it takes the last line written to it as detail."""

    def __init__(self, words: str, stages: Stages) -> None:
        self.words, self.stages = words, stages
        self.stop = threading.Event()
        self.detail = ""
        self.width = 0

    def write(self, text: str) -> int:
        """Remember the last line that says something."""
        lines = [line.strip() for line in text.replace("\r", "\n").splitlines() if line.strip()]
        if lines:
            self.detail = lines[-1]
        return len(text)

    def run(self) -> None:
        """Show the time until the stage is over."""
        started, pause = time.monotonic(), self.stages.patience
        while not self.stop.wait(pause):
            detail = f": {self.detail}" if self.detail else ""
            self._show(f"{self.words}, {time.monotonic() - started:.0f} s{detail}")
            pause = _REWRITE_EVERY if self.stages.is_terminal else _WRITE_EVERY

    def _show(self, text: str) -> None:
        text = printable(text)
        if self.stages.is_terminal:
            columns = PlainConsole(file=self.stages.stream).width - 1
            self._put("\r" + text[:columns].ljust(self.width))
            self.width = min(len(text), columns)
        else:
            self._put(text + "\n")

    def clear(self) -> None:
        """Leave an empty line behind on a terminal."""
        if self.width:
            self._put("\r" + " " * self.width + "\r")

    def _put(self, text: str) -> None:
        self.stages.stream.write(text)
        self.stages.stream.flush()
