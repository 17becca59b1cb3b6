"""Opening files, compressed or not, and the suffix that says their format."""

from __future__ import annotations

import bz2
import gzip
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, cast

#: Suffixes of compressed files, and what opens them.
COMPRESSIONS: dict[str, Callable[[Path], Any]] = {".gz": gzip.open, ".bz2": bz2.open}


def format_suffix(path: Path) -> str:
    """The suffix in lower case that says the format, not the compression."""
    name = Path(path.name.lower())
    return (name.with_suffix("") if name.suffix in COMPRESSIONS else name).suffix


def is_compressed(path: Path) -> bool:
    """Whether a file's name says that it is compressed."""
    return path.suffix.lower() in COMPRESSIONS


def open_bytes(path: Path) -> BinaryIO:
    """The bytes of a file, unpacked."""
    opener = COMPRESSIONS.get(path.suffix.lower())
    return path.open("rb") if opener is None else cast(BinaryIO, opener(path))


def open_text(path: Path, *, errors: str = "strict") -> io.TextIOWrapper:
    """The text of a file, unpacked; UTF-8, with or without a byte order mark."""
    return io.TextIOWrapper(open_bytes(path), encoding="utf-8-sig", errors=errors, newline="")
