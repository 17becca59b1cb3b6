"""What the command line says, and where it may write.

All that commands print goes through this module: names in files may hold anything, and control characters of theirs
must not reach a terminal.
"""

from __future__ import annotations

import io
import os
import sys
import tempfile
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

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
    """One line on stderr; where nobody can read it, the work goes on."""
    with suppress(OSError):
        print(printable(f"groupowl: {' '.join(message.split())}"), file=sys.stderr)


def tell_traceback() -> None:
    """Where the error that is being handled was raised, on stderr."""
    with suppress(OSError):
        print(printable(traceback.format_exc(), keep="\n"), end="", file=sys.stderr)


def prepare_streams() -> None:
    """Replace missing streams, and make all streams escape characters that they cannot show."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by whoever has started us
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115  # as long as the process
        stream = getattr(sys, name)
        # Of the lenient ways, that of UTF-8 for file names stays: it shows them as they are.
        if isinstance(stream, io.TextIOWrapper) and (stream.errors == "strict" or stream.encoding.lower() != "utf-8"):
            stream.reconfigure(errors="backslashreplace")


@contextmanager
def printing(kept: str = "nothing was written") -> Iterator[None]:
    """Print all of stdout; if that fails, say so in one line, with what is ``kept`` all the same.

    Where whoever reads our output has seen enough, the rest is printed nowhere, and the command goes on.
    """
    try:
        yield
        sys.stdout.flush()
    except KeyboardInterrupt:  # while whoever reads our output takes their time
        raise Failure(f"stopped; {kept}.", 130) from None
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or what is left would fail again at the end
        if isinstance(error, BrokenPipeError):
            return
        raise Failure(f"cannot write to standard output: {error.strerror or error}; {kept}.") from error


def is_standard_output(path: Path) -> bool:
    """Whether a path leads to where we print: ``/dev/stdout``, or a file that the shell has opened for us."""
    try:
        return os.path.samestat(path.stat(), os.fstat(sys.stdout.fileno()))
    except OSError:  # there is no such file, or no such stream
        return False


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
