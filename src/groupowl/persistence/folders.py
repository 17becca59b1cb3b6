"""A folder with a tree and its arrays, written whole or not at all."""

from __future__ import annotations

import json
import os
import shutil
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, BinaryIO
from uuid import uuid4

import numpy as np

from ..designs.storage.npz import read_archive

#: Goes up whenever earlier versions cannot read what is written.
FORMAT_VERSION = 1

_KIND = "groupowl model"
_TREE, _ARRAYS = "model.json", "arrays.npz"


def write_folder(folder: Path, content: Any, arrays: dict[str, Any]) -> Path:
    """Write a tree and its arrays; replaces a folder of this kind."""
    target = folder.resolve()
    _check_target(target, folder)
    with fresh_folder(target) as fresh:
        envelope = {"kind": _KIND, "format_version": FORMAT_VERSION, "groupowl_version": _version(), "content": content}
        np.savez_compressed(fresh / _ARRAYS, **arrays)
        (fresh / _TREE).write_text(json.dumps(envelope, indent=1, allow_nan=False) + "\n", encoding="utf-8")
    return folder


@contextmanager
def fresh_folder(target: Path) -> Iterator[Path]:
    """A new folder beside ``target`` that takes its name at the end; after an error nothing of it is left."""
    target.parent.mkdir(parents=True, exist_ok=True)
    fresh = _beside(target)
    try:
        fresh.mkdir()
        yield fresh
        _flush(fresh)
        _put_in_place(fresh, target)
    except BaseException:
        shutil.rmtree(fresh, ignore_errors=True)
        raise


def read_folder(folder: Path) -> tuple[Any, dict[str, Any]]:
    """The tree and the arrays of a folder."""
    envelope = _read_envelope(folder)
    found = envelope["format_version"]
    if type(found) is not int or found < 1:
        raise ValueError(
            f"{str(folder)!r} is damaged: {_TREE} says that it has the format {found!r}, which does not exist; formats "
            f"are numbers from 1 to {FORMAT_VERSION}. Save again."
        )
    if found > FORMAT_VERSION:
        raise ValueError(
            f"{str(folder)!r} was written by groupowl {envelope.get('groupowl_version')} in format {found}; this "
            f"version reads formats up to {FORMAT_VERSION}. Update groupowl."
        )
    try:
        return envelope["content"], _read_arrays(folder / _ARRAYS)
    except Exception as error:  # a damaged archive makes zipfile, zlib and NumPy raise almost anything
        raise ValueError(
            f"{str(folder)!r} is damaged: {_ARRAYS} cannot be read ({type(error).__name__}: {error}). Save again."
        ) from error


def _read_arrays(path: Path) -> dict[str, Any]:
    with _open_file(path) as file:
        if not zipfile.is_zipfile(file):  # which NumPy would take for something else
            raise ValueError("it is no zip archive, or cut off")
    return read_archive(path)


def _read_envelope(folder: Path) -> dict[str, Any]:
    """What :data:`model.json` holds, or an error that says why there is nothing to read."""
    if not folder.exists():
        raise FileNotFoundError(f"There is no folder {str(folder)!r}.")
    if not folder.is_dir():
        raise ValueError(
            f"{str(folder)!r} is a file, but load reads {_TREE} and {_ARRAYS} together. Give it the folder that save "
            "has written."
        )
    if not os.path.lexists(folder / _TREE):
        raise ValueError(
            f"{str(folder)!r} is no folder that groupowl's save has written: it has no {_TREE}. Give it one that has."
        )
    try:
        with _open_file(folder / _TREE) as file:
            envelope = json.loads(file.read().decode("utf-8"), parse_constant=_refuse_constant)
    except RecursionError:
        raise ValueError(f"{str(folder)!r} is damaged: {_TREE} is nested too deeply. Save again.") from None
    except (OSError, ValueError) as error:
        raise ValueError(f"{str(folder)!r} is damaged: {_TREE} cannot be read ({error}). Save again.") from error
    if not _is_ours(envelope):
        raise ValueError(
            f"{str(folder)!r} is no folder that groupowl's save has written: its {_TREE} is not ours. Give it one that "
            "is."
        )
    return dict(envelope)


def _open_file(path: Path) -> BinaryIO:
    """Open a file; what is none could be waited for without end."""
    if not path.is_file():
        raise OSError("it is no file" if os.path.lexists(path) else "it is missing")
    return path.open("rb")


def _refuse_constant(text: str) -> None:
    raise ValueError(f"it has the number {text}, which JSON does not have")


def _is_ours(envelope: Any) -> bool:
    is_ours = isinstance(envelope, dict) and envelope.get("kind") == _KIND
    return is_ours and {"format_version", "content"} <= envelope.keys()


def _holds_envelope(folder: Path) -> bool:
    """Whether a folder has a :data:`model.json` that save has written."""
    try:
        return _is_ours(json.loads((folder / _TREE).read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return False


def _check_target(target: Path, given: Path) -> None:
    """Refuse to replace what save has not written."""
    if not target.exists():
        return
    if not target.is_dir():
        raise FileExistsError(f"{str(given)!r} is a file; save writes a folder. Give another name.")
    names = {path.name for path in target.iterdir()}
    others = sorted(names - {_TREE, _ARRAYS})
    if names and (others or not _holds_envelope(target)):
        found = f", for example {others[0]!r}" if others else ""
        raise FileExistsError(
            f"{str(given)!r} holds other files than those of a saved model{found}; they would be lost. "
            "Give the name of a new folder."
        )


def _put_in_place(fresh: Path, target: Path) -> None:
    """Rename the new folder to its name; an old one steps aside first, and comes back if that fails."""
    if not target.exists():
        os.rename(fresh, target)
        return
    old = _beside(target)
    os.rename(target, old)
    try:
        os.rename(fresh, target)
    except BaseException:
        os.rename(old, target)
        raise
    shutil.rmtree(old, ignore_errors=True)


def _beside(target: Path) -> Path:
    return target.with_name(f".{target.name}.{uuid4().hex[:12]}.part")


def _flush(folder: Path) -> None:
    """Make sure that the files are on the disk before the folder gets its name."""
    for path in folder.rglob("*"):
        if path.is_file():
            with path.open("rb+") as file:
                os.fsync(file.fileno())


def _version() -> str:
    try:
        return version("groupowl")
    except PackageNotFoundError:  # run from its source without being installed
        return "unknown"
