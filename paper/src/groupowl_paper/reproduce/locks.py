"""One call at a time may work on a folder of results."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:  # not on Windows, where nothing is locked
    fcntl = None


class BusyError(Exception):
    """Another call works on the folder."""


class Lock:
    """A file that one process at a time can hold; the system lets go of it when the process ends, however it does.

    Parameters
    ----------
    folder : Path
        Made if needed.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / ".lock"

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Hold the lock, or raise :class:`BusyError`; the file is gone afterwards."""
        if fcntl is None:
            yield
            return
        self._path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            self._take(descriptor)
            try:
                yield
            finally:
                self._path.unlink(missing_ok=True)
        finally:
            os.close(descriptor)

    def _take(self, descriptor: int) -> None:
        """Take the file, which must still be the one that has this name."""
        assert fcntl is not None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            is_current = os.stat(self._path).st_ino == os.fstat(descriptor).st_ino
        except (BlockingIOError, FileNotFoundError):
            is_current = False
        if not is_current:
            raise BusyError(
                f"another call is working on --out {str(self._path.parent)!r}: wait until it has ended, or give "
                f"another --out."
            )
