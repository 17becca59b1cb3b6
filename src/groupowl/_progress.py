"""Progress of long work: a line on standard error, or a bar in a notebook, with the share that is done.

A public call that is to tell how far it is opens a line with :func:`progress_line`; whatever works for it, in the same
thread, finds the line with :func:`current_line`, and passes over large data tell it their share with
:func:`follow_pass`.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from contextvars import ContextVar
from importlib.util import find_spec
from typing import Any, TypeVar

from ._checks import positive_integer

Piece = TypeVar("Piece")

# Seconds between two updates: of a line that is rewritten in place, and of lines that stay.
_REWRITE_EVERY = 0.2
_WRITE_EVERY = 1.0
_WRITE_PASS_EVERY = 10.0


#: The share from which on a percentage would say 100.
_NEARLY_ALL = 0.995


class ProgressLine:
    """Says how far some work has come.

    Parameters
    ----------
    verbose : int, default=0
        0 is silent. 1 rewrites one line on a terminal, moves a bar in a notebook that has one (tqdm or rich, with
        ipywidgets), and elsewhere prints a line now and then. 2 and more print a line for every :meth:`show`.
    what : str, default=""
        What is being done, for lines before there is more to say.

    Lines go to standard error. Where that has a ``bar``, as in the command line, the bar is moved instead, as in a
    notebook: a bar has its own clock, and a title that need not be repeated.
    """

    def __init__(self, verbose: int = 0, what: str = "") -> None:
        self.level = int(verbose) if isinstance(verbose, bool) else positive_integer("verbose", verbose, minimum=0)
        self.what = what
        self.stream = sys.stderr
        in_notebook = self.level == 1 and _is_in_notebook()
        is_terminal = self.level == 1 and bool(getattr(self.stream, "isatty", bool)())
        self.bar = _notebook_bar() if in_notebook else getattr(self.stream, "bar", None)
        self.is_rewritten = in_notebook or is_terminal or self.bar is not None
        self.pause = 0.0
        if self.level == 1:
            self.pause = _REWRITE_EVERY if self.is_rewritten else _WRITE_EVERY
        self.started = self._written = time.perf_counter()
        self._text = ""
        self._is_shown = True
        self._share: float | None = None
        self._pass: float | None = None
        self._span = self._part = (0.0, 1.0)
        self.pass_span = (0.0, 1.0)  # begin and length of what is being read, in a pass that is followed already
        self._width = 0  # of the line that the next one overwrites

    @property
    def seconds(self) -> float:
        """Since the work has begun."""
        return time.perf_counter() - self.started

    def stretch(self, begin: float, end: float) -> None:
        """Shares that follow are those of a part of the work: from 0 at ``begin`` to 1 at ``end``."""
        first, last = self._part
        self._span = (first + min(begin, 1.0) * (last - first), first + min(end, 1.0) * (last - first))

    @contextmanager
    def part(self, begin: float, end: float) -> Iterator[None]:
        """Work whose shares, and stretches, are those of a part of all."""
        self._part = (begin, end)
        self.stretch(0.0, 1.0)
        try:
            yield
        finally:
            self._part = (0.0, 1.0)

    def begin(self) -> None:
        """Nothing is done yet; said at once, so that the first line has a percentage however long the data take."""
        self._share = 0.0
        if self.bar is not None:
            self.bar.show("preparing the data", 0.0)

    def show(self, text: str, share: float | None = None) -> None:
        """Say something, unless the last line is too recent: then with the next one, or at the end."""
        self._text, self._is_shown, self._pass = text, self.level == 0, None
        if share is not None:
            begin, end = self._span
            self._share = begin + share * (end - begin)
        self._write_if_due()

    def show_pass(self, share: float | None) -> None:
        """Say how much of a pass over the data is done; None where it has ended."""
        self._pass = share
        if share is not None:
            self._text = self._text or f"{self.what}: reading the data"
            self._write_if_due()

    def end(self) -> None:
        """Print what is still to be printed and end the line: what follows has a line of its own."""
        if not self._is_shown:
            self._pass = None
            self._write()
        if self._width:
            self._width = 0
            print(file=self.stream, flush=True)
        self._text = ""

    def close(self) -> None:
        """End the line for good, however the work has ended."""
        self.end()
        if self.bar is not None:
            self.bar.close()

    def _write_if_due(self) -> None:
        pause = self.pause
        if self._pass is not None and not self.is_rewritten:
            pause = _WRITE_PASS_EVERY
        if self.level and time.perf_counter() - self._written >= pause:
            self._write()

    def _write(self) -> None:
        text = self._text if self._pass is None else f"{self._text}, {100 * self._pass:.0f} % of a pass"
        # What is read when all fits are done, for scores and proofs, was not counted: nobody should wait for 100 %.
        share = None if self._pass is not None and (self._share or 0.0) >= _NEARLY_ALL else self._share
        percent = "" if share is None else f"{100 * share:3.0f} % "
        line = f"{percent}{text}, {self.seconds:.1f} s"
        if self.bar is not None:
            self.bar.show(text.removeprefix(self.what).lstrip(",: "), share)
        elif self.is_rewritten:
            line = line[: _columns(self.stream)]  # a longer one would take two lines, of which one stays
            print("\r" + line.ljust(self._width), end="", file=self.stream, flush=True)
            self._width = len(line)
        else:
            print(line, file=self.stream, flush=True)
        self._is_shown = True
        self._written = time.perf_counter()


class CountedLine:
    """How many of many pieces of work are done, and how long the rest is likely to take.

    Parameters
    ----------
    what : str
        What is being done, the beginning of the line.
    pieces : str
        What the pieces are called.
    is_on : bool
        Whether anything is printed.
    """

    def __init__(self, what: str, pieces: str, is_on: bool) -> None:
        self.what, self.pieces = what, pieces
        self.line = ProgressLine(int(is_on), what)
        self.begin(0, 0)

    def begin(self, n_pieces: int, n_done: int) -> None:
        """So many pieces are to be done, and so many are already."""
        self.n_pieces, self.n_done, self.n_before = n_pieces, n_done, n_done

    def advance(self) -> None:
        """One more piece is done."""
        self.n_done += 1
        left = self.line.seconds * (self.n_pieces - self.n_done) / (self.n_done - self.n_before)
        text = f"{self.what}: {self.n_done} of {self.n_pieces} {self.pieces}, about {left:.0f} s to go"
        self.line.show(text, self.n_done / self.n_pieces)

    def close(self) -> None:
        """End the line, however the work has ended."""
        self.line.close()


def _columns(stream: Any) -> int | None:
    """Characters that a line of a terminal has room for; None where that is not known."""
    with suppress(AttributeError, OSError, ValueError):
        return os.get_terminal_size(stream.fileno()).columns - 1
    return None


# The line of the call in progress -------------------------------------------------------------------------

_current: ContextVar[ProgressLine | None] = ContextVar("progress_line", default=None)
_SILENCE: AbstractContextManager[None] = nullcontext()


def current_line() -> ProgressLine | None:
    """The line of the public call that this thread works for, if it has one."""
    return _current.get()


def progress_line(verbose: Any, what: str) -> AbstractContextManager[ProgressLine | None]:
    """A line for a public call, which is closed when that ends; a call within another one has the line of that."""
    if verbose is False or (type(verbose) is int and verbose == 0):  # as most calls, some of which take microseconds
        return _SILENCE
    return _opened(verbose, what)


@contextmanager
def _opened(verbose: Any, what: str) -> Iterator[ProgressLine | None]:
    if (outer := _current.get()) is not None:
        yield outer
        return
    line = ProgressLine(verbose, what)
    token = _current.set(line)
    try:
        line.begin()
        yield line
    finally:
        _current.reset(token)
        line.close()


def follow_pass(pieces: Iterable[Piece], share_of: Callable[[Piece], float]) -> Iterable[Piece]:
    """The pieces of a pass over the data, each of which is some share of it; the line of the call says how many.

    A pass over a piece of another pass is a part of that.
    """
    line = _current.get()
    return pieces if line is None else _followed(line, pieces, share_of)


def _followed(line: ProgressLine, pieces: Iterable[Piece], share_of: Callable[[Piece], float]) -> Iterator[Piece]:
    outer = begin, length = line.pass_span
    done = 0.0
    try:
        for piece in pieces:
            share = share_of(piece)
            line.pass_span = (begin + length * done, length * share)
            yield piece
            done += share
            line.show_pass(min(begin + length * done, 1.0))
    finally:
        line.pass_span = outer
    if outer == (0.0, 1.0):
        line.show_pass(None)


# Notebooks ------------------------------------------------------------------------------------------------


def _is_in_notebook() -> bool:
    """Whether the process is the kernel of a notebook, whose streams are no terminals but can rewrite a line."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return type(shell).__name__ == "ZMQInteractiveShell"


def _notebook_bar() -> Any:
    """A bar of tqdm, or of rich, where the notebook can show it; else None, and a line of text serves."""
    if find_spec("ipywidgets") is None:
        return None
    for kind in (_TqdmBar, _RichBar):
        with suppress(ImportError):
            return kind()
    return None


class _TqdmBar:
    """A bar of tqdm in a notebook."""

    def __init__(self) -> None:
        from tqdm.notebook import tqdm

        # The text comes last: before the bar it would move the bar whenever it changes.
        self.bar: Any = tqdm(total=100, bar_format="{percentage:3.0f} %{bar}{elapsed}, {desc}", leave=True)

    def show(self, text: str, share: float | None) -> None:
        """Move the bar."""
        self.bar.n = 0 if share is None else round(100 * share)
        self.bar.set_description_str(text, refresh=True)

    def close(self) -> None:
        """Leave the bar as it is."""
        self.bar.close()


class _RichBar:
    """A bar of rich in a notebook."""

    def __init__(self) -> None:
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

        words = TextColumn("{task.description}", markup=False)
        self.bar = Progress(words, BarColumn(20), TaskProgressColumn(), TimeElapsedColumn())
        self.task = self.bar.add_task("", total=None)
        self.bar.start()

    def show(self, text: str, share: float | None) -> None:
        """Move the bar."""
        total = None if share is None else 100
        self.bar.update(self.task, description=text, completed=round(100 * (share or 0.0)), total=total)

    def close(self) -> None:
        """Leave the bar as it is."""
        self.bar.stop()
