"""Folders that keep what long work has finished, so that the same call goes on where it was interrupted.

A folder belongs to one piece of work: what that depends on is written down, and other work is refused. Every file is
whole or not there, and a file that cannot be read is as good as one that is missing.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
import zlib
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from ._checks import checked_path
from ._files import write_file
from ._text import listed

#: What work depends on, by name: text, or numbers that may differ by rounding.
Facts = Mapping[str, str | list[float]]

# Numbers that say the same of the same data, on another machine too.
_RTOL = 1e-6
_ATOL = 1e-9
#: The file of the facts, which tells such a folder from others; and that of a stability selection.
ABOUT = "resume.json"
ABOUT_PAIRS = "stability.json"
_UNREADABLE = (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error)


class ResumeFolder:
    """Arrays of finished parts of some work, a file for each.

    Parameters
    ----------
    folder : str or Path
        Made where it is not there.
    facts : dict
        What the work depends on: a folder with other facts is refused.
    about : str, default="resume.json"
        The file of the facts.
    holds : str, default="parts"
        What the files are, for messages.
    remedy : callable, default=None
        What else can be done about facts that differ, from their names and those of the folder; "" for nothing.
    """

    def __init__(
        self,
        folder: Any,
        facts: Facts,
        *,
        about: str = ABOUT,
        holds: str = "parts",
        remedy: Callable[[list[str], Facts], str] | None = None,
    ) -> None:
        self.folder = check_folder(folder, about)
        path = self.folder / about
        if path.exists():
            stored = _read_facts(path)
            different = [name for name in sorted(facts.keys() | stored.keys()) if not _agree(facts, stored, name)]
            if different:
                more = "" if remedy is None else remedy(different, stored)
                what = f"has {holds} of another run, which differs in {', '.join(different)}"
                raise ValueError(f"resume: {self.folder} {what}. Give another folder, or remove that one{more}.")
            facts = stored
        else:
            self.folder.mkdir(parents=True, exist_ok=True)
            write_file(path, json.dumps(facts, indent=1, sort_keys=True))
        #: In every file: it is from this work.
        self.mark = hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()

    def read(self, name: str) -> dict[str, Any] | None:
        """The arrays of a part that is there and whole, or None."""
        try:
            content = io.BytesIO((self.folder / f"{name}.npz").read_bytes())  # of a damaged file NumPy stays open
            with np.load(content, allow_pickle=False) as stored:
                arrays = dict(stored)
        except _UNREADABLE:
            return None
        return arrays if str(arrays.pop("mark", "")) == self.mark else None

    def write(self, name: str, **arrays: Any) -> None:
        """Keep a part."""
        content = io.BytesIO()
        marked: dict[str, Any] = {"mark": np.array(self.mark)} | arrays
        np.savez_compressed(content, **marked)
        write_file(self.folder / f"{name}.npz", content.getvalue())


def check_folder(folder: Any, about: str = ABOUT) -> Path:
    """The path of a folder for such work; what is neither new, nor empty, nor such a folder is refused."""
    path: Path = checked_path("resume", folder)
    if path.exists() and not path.is_dir():
        raise ValueError(f"resume: {path} is a file. Give the name of a folder.")
    if path.exists() and not (path / about).exists():
        others = sorted(file.name for file in path.iterdir() if not file.name.startswith("."))  # as cut off writes are
        if others:
            what = f"{path} has other files ({listed(others)}), and nothing that such work has kept"
            raise ValueError(f"resume: {what}. Give the name of a new folder.")
    return path


def has_parts(folder: Path) -> bool:
    """Whether a folder has anything that was finished."""
    return any(folder.glob("*.npz"))


def _read_facts(path: Path) -> dict[str, Any]:
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError) as error:
        raise ValueError(f"resume: {path} cannot be read ({error}). Give another folder, or remove it.") from error


def _agree(facts: Facts, stored: Facts, name: str) -> bool:
    """Whether a fact is the same; numbers up to rounding, relative to the largest of them."""
    ours, theirs = facts.get(name), stored.get(name)
    if not isinstance(ours, list) or not isinstance(theirs, list):
        return ours == theirs
    size = max(map(abs, ours), default=0.0)
    return len(ours) == len(theirs) and bool(np.allclose(theirs, ours, rtol=_RTOL, atol=_ATOL * size))


# What work depends on -------------------------------------------------------------------------------------


def fingerprint(*values: Any) -> str:
    """A digest of arrays, sparse matrices and numbers, by their types, shapes and bytes."""
    digest = hashlib.sha256()
    for value in values:
        parts: tuple[Any, ...] = (value,)
        if sp.issparse(value):
            matrix: Any = value
            parts = (matrix.data, matrix.indices, matrix.indptr)
        digest.update(repr(getattr(value, "shape", None)).encode())
        for part in parts:
            array = np.ascontiguousarray(part)
            digest.update(f"{array.dtype.str}{array.shape}".encode())
            digest.update(repr(array.tolist()).encode() if array.dtype.hasobject else array.tobytes())
    return digest.hexdigest()


def described(value: Any) -> str:
    """A parameter as text that is the same in another process."""
    if isinstance(value, np.ndarray) or sp.issparse(value):
        return fingerprint(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(described, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key!r}: {described(item)}' for key, item in value.items())}}}"
    if is_dataclass(value) and not isinstance(value, type):
        parts = [f"{item.name}={described(getattr(value, item.name))}" for item in fields(value)]
        return f"{type(value).__name__}({', '.join(parts)})"
    if hasattr(value, "__qualname__"):
        return f"{value.__module__}.{value.__qualname__}"
    return repr(value)
