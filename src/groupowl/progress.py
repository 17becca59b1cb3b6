"""Progress that a person can read: what ``verbose`` prints, as a callback like any other."""

from __future__ import annotations

import sys
import time
from typing import Any, TextIO

from ._checks import positive_integer
from .solvers import Progress

# Seconds between two updates: of a line that is rewritten in place, and of lines that stay.
_REWRITE_EVERY = 0.2
_WRITE_EVERY = 1.0


class ProgressLine:
    """A callback that prints how far a solve or a path has come.

    Parameters
    ----------
    verbose : int
        1 rewrites one line on a terminal, and elsewhere prints a line now and then. 2 and more print a line for every
        certificate.
    goal : float
        Gap at which each solve ends.
    what : str, default=""
        What is being fitted, the beginning of every line.
    stream : text stream, default=None
        Where to print; standard error by default.
    n_alphas : int, default=1
        Solves to come.
    """

    def __init__(
        self, verbose: int, *, goal: float, what: str = "", stream: TextIO | None = None, n_alphas: int = 1
    ) -> None:
        level = 1 if verbose is True else positive_integer("verbose", verbose, minimum=0)
        self.goal = goal
        self.what = what
        self.stream = sys.stderr if stream is None else stream
        self.n_alphas = n_alphas
        self.is_terminal = level == 1 and bool(getattr(self.stream, "isatty", lambda: False)())
        self.pause = 0.0
        if level == 1:
            self.pause = _REWRITE_EVERY if self.is_terminal else _WRITE_EVERY
        self._started = self._written = time.perf_counter()
        self._pending: str | None = None
        self._width = 0  # of the line on the terminal that the next one overwrites

    def __call__(self, progress: Progress) -> Any:
        """Print the certificate, unless the last line is too recent."""
        where = f"alpha {progress.alpha_index + 1} of {self.n_alphas}, " if self.n_alphas > 1 else ""
        self._pending = (
            f"{self.what + ': ' if self.what else ''}{where}{progress.n_nonzero} selected, gap {progress.gap:.1e} "
            f"(goal {self.goal:.1e}), {time.perf_counter() - self._started:.1f} s"
        )
        if time.perf_counter() - self._written >= self.pause:
            self._write()
        is_last = progress.alpha_index >= self.n_alphas - 1
        if is_last and progress.iteration > 0 and progress.gap <= self.goal:
            self.close()

    def close(self) -> None:
        """Print what is still to be printed and end the line."""
        if self._pending is not None:
            self._write()
        if self._width:
            self._width = 0
            print(file=self.stream, flush=True)

    def _write(self) -> None:
        text = self._pending or ""
        if self.is_terminal:
            print("\r" + text.ljust(self._width), end="", file=self.stream, flush=True)
            self._width = len(text)
        else:
            print(text, file=self.stream, flush=True)
        self._pending = None
        self._written = time.perf_counter()
