"""What the command line says, and where it may write.

All that commands print goes through this module: names in files may hold anything, and control characters of theirs
must not reach a terminal.
"""

from __future__ import annotations

import sys
import tempfile
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

from rich.console import Console, ConsoleOptions
from rich.segment import Segment

from .._text import printable


class Failure(Exception):
    """Ends a command with one line on stderr and an exit code."""

    def __init__(self, message: str, code: int = 1) -> None:
        super().__init__(message)
        self.code = code


def say(words: object, end: str = "\n") -> None:
    """Lines on stdout."""
    print(printable(words, keep="\n"), end=end)


def tell(message: str) -> None:
    """One line on stderr."""
    print(printable(f"groupowl: {' '.join(message.split())}"), file=sys.stderr)


def tell_traceback() -> None:
    """Where the error that is being handled was raised, on stderr."""
    print(printable(traceback.format_exc(), keep="\n"), end="", file=sys.stderr)


class PlainConsole(Console):
    """Tables and styles on stdout, or on stderr; text in them is shown as it is, control characters spelled."""

    def render(self, renderable: Any, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """What is printed, piece by piece; styles and cursor movements are Rich's own."""
        for piece in super().render(renderable, options):
            yield piece if piece.control else Segment(printable(piece.text, keep="\n"), piece.style)


def fail(message: str, code: int = 1) -> NoReturn:
    """One line on stderr, and the end."""
    tell(message)
    raise SystemExit(code)


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """What goes wrong while ``path`` is written is one clear line."""
    try:
        yield
    except OSError as error:
        raise Failure(f"cannot write to {path}: {error.strerror or error}") from error


def make_folder(folder: Path) -> None:
    """Make the folder and try to write to it, before hours of work end with nowhere to put the answer."""
    with writing(folder):
        if folder.exists() and not folder.is_dir():
            raise Failure(f"cannot write to {folder}: it is a file, not a folder")
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()


def print_paths(paths: list[Path]) -> None:
    """One path per line, never folded, so that it can be copied and piped."""
    for path in paths:
        say(path)


def duration(seconds: float) -> str:
    """Seconds, minutes or hours in words."""
    if seconds < 90:
        return f"{seconds:.0f} seconds"
    return f"{seconds / 60:.0f} minutes" if seconds < 5400 else f"{seconds / 3600:.1f} hours"
