"""A folder with a tree and its arrays, written whole or not at all."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from .._files import fresh_folder, standing
from ..designs.disk.npy import read_archive

#: Goes up whenever earlier versions cannot read what is written.
FORMAT_VERSION = 1

_KIND = "groupowl model"
_TREE, _ARRAYS = "model.json", "arrays.npz"


def write_folder(folder: Path, content: Any, arrays: dict[str, Any]) -> Path:
    """Write a tree and its arrays; replaces a folder of this kind."""
    target = Path(os.path.realpath(folder))
    _check_target(target, folder)
    with fresh_folder(target) as fresh:
        envelope = {"kind": _KIND, "format_version": FORMAT_VERSION, "groupowl_version": _version(), "content": content}
        np.savez_compressed(fresh / _ARRAYS, **arrays)
        (fresh / _TREE).write_text(json.dumps(envelope, indent=1, allow_nan=False) + "\n", encoding="utf-8")
    return folder


def read_settled(folder: Path, read: Callable[[Path], Any]) -> Any:
    """What ``read`` finds in a folder, all of it written by one save, though another may replace it meanwhile."""
    while True:
        place = standing(folder)
        before = _state(place)
        try:
            found = read(place)
        except Exception:  # which may well come from half of one save and half of the next
            if _state(standing(folder)) == before:
                raise
            continue
        if _state(standing(folder)) == before:
            return found


def _state(folder: Path) -> tuple[int, int] | None:
    """What tells a folder from the one that takes its place."""
    try:
        found = folder.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns


def read_folder(folder: Path) -> tuple[Any, dict[str, Any]]:
    """The tree and the arrays of a folder."""
    tree, arrays = read_settled(folder, _read_folder)
    return tree, arrays


def _read_folder(folder: Path) -> tuple[Any, dict[str, Any]]:
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


def _version() -> str:
    try:
        return version("groupowl")
    except PackageNotFoundError:  # run from its source without being installed
        return "unknown"
