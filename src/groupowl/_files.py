"""Files and folders that are whole or not there: made under another name beside their own, then renamed.

What a killed process has left behind under such a name is removed by whoever writes there next.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import re
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO
from zlib import crc32

#: Ends the names of what is being written, and of folders that have stepped aside for a new one.
PART, OLD = ".part", ".old"

# Who writes is in the name: the machine, because numbers of processes mean nothing on another one, and the process.
_HOST = f"{crc32(platform.node().encode()):08x}"
_OWNER = re.compile(r"(?:([0-9a-f]{8})-(\d+)-)?[0-9a-f]{12}(?:\.part|\.old)")
# Nobody writes for longer than this, in seconds.
_LONGEST_WRITE = 86_400.0

_AT_FDCWD, _RENAME_EXCHANGE = -100, 2


# Files --------------------------------------------------------------------------------------------------


@contextmanager
def fresh_file(path: Path) -> Iterator[BinaryIO]:
    """A file to write to that takes the name ``path`` at the end; after an error nothing of it is left.

    A symbolic link stays, and what it points to is replaced. A device or a pipe is written to directly.
    """
    if is_stream(path):
        with path.open("wb") as file:
            yield file
        return
    target = Path(os.path.realpath(path))
    if target.is_symlink():
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
    fresh = beside(target)
    try:
        with fresh.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(fresh, target)
    finally:
        fresh.unlink(missing_ok=True)
    clear_abandoned(target)


def write_file(path: Path, content: str | bytes) -> None:
    """Write a file as :func:`fresh_file` does; text as UTF-8."""
    with fresh_file(path) as file:
        file.write(content if isinstance(content, bytes) else content.encode("utf-8"))


def is_stream(path: Path) -> bool:
    """Whether there is a pipe or a device like a terminal, which can be written to and not replaced."""
    with suppress(OSError):
        return path.is_fifo() or path.is_char_device()
    return False


# Folders ------------------------------------------------------------------------------------------------


@contextmanager
def fresh_folder(target: Path) -> Iterator[Path]:
    """A new folder beside ``target`` that takes its name at the end; after an error nothing of it is left."""
    target.parent.mkdir(parents=True, exist_ok=True)
    fresh = beside(target)
    try:
        fresh.mkdir()
        yield fresh
        _flush(fresh)
        _put_in_place(fresh, target)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)  # after an exchange, the earlier folder
    clear_abandoned(target)


def standing(folder: Path) -> Path:
    """The folder, or where it has stepped aside while it is replaced, should that have been cut short."""
    target = Path(os.path.realpath(folder))
    if not target.exists() and target.parent.is_dir():
        aside = [path for path, _ in _leftovers(target) if path.name.endswith(OLD)]
        return max(aside, key=lambda path: path.stat().st_mtime, default=folder)
    return folder


def _flush(folder: Path) -> None:
    """Make sure that the files are on the disk before the folder gets its name."""
    for path in folder.rglob("*"):
        if path.is_file():
            with path.open("rb+") as file:
                os.fsync(file.fileno())


def _put_in_place(fresh: Path, target: Path) -> None:
    """Give the new folder its name; an earlier one changes places with it, so that the name is never free."""
    try:
        os.rename(fresh, target)  # which replaces an empty folder at most
    except OSError:
        if not target.is_dir():
            raise
        if not _exchange(fresh, target):
            old = beside(target, OLD)  # in two steps, between which :func:`standing` finds the earlier folder
            try:
                os.rename(target, old)
                os.rename(fresh, target)
            except BaseException:
                if not target.exists():
                    os.rename(old, target)
                raise
            shutil.rmtree(old, ignore_errors=True)


def _exchange(one: Path, other: Path) -> bool:
    """Exchange two names in one step; False where the system or its file system cannot."""
    library: Any = ctypes.CDLL(None) if sys.platform in ("linux", "darwin") else None
    names = os.fsencode(one), os.fsencode(other)
    if hasattr(library, "renameat2"):
        return bool(library.renameat2(_AT_FDCWD, names[0], _AT_FDCWD, names[1], _RENAME_EXCHANGE) == 0)
    if hasattr(library, "renamex_np"):
        return bool(library.renamex_np(*names, _RENAME_EXCHANGE) == 0)
    return False


# Names --------------------------------------------------------------------------------------------------


def beside(target: Path, ending: str = PART) -> Path:
    """An unused hidden name beside the target, which names the process that writes there."""
    return target.with_name(f".{target.name}.{_HOST}-{os.getpid()}-{os.urandom(6).hex()}{ending}")


def clear_abandoned(target: Path) -> None:
    """Remove what killed processes have left beside the target; what others write just now stays."""
    with suppress(OSError):
        for path, name in _leftovers(target):
            host, process = name.groups()
            is_gone = host == _HOST and os.name == "posix" and not _is_running(int(process))
            if is_gone or time.time() - path.stat().st_mtime > _LONGEST_WRITE:
                shutil.rmtree(path) if path.is_dir() else path.unlink()


def _leftovers(target: Path) -> Iterator[tuple[Path, re.Match[str]]]:
    """Everything beside the target with a name that :func:`beside` gives, and the part of it that tells whose it is."""
    start = f".{target.name}."
    for name in os.listdir(target.parent):
        found = _OWNER.fullmatch(name.removeprefix(start)) if name.startswith(start) else None
        if found is not None:
            yield target.parent / name, found


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (OSError, OverflowError) as error:
        return not isinstance(error, ProcessLookupError)
    return True
