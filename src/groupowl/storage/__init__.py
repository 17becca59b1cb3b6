"""Estimators and results on disk: text for structure, arrays for numbers, no code.

A folder has a tree and its arrays, and is written whole or not at all.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from .._checks import checked_path
from .._files import fresh_folder, standing
from ..designs.disk.formats import read_archive
from ..versions import installed_version
from .codec import ESTIMATORS, STORABLE, Damage, belongs_to, check_object, decode, encode, in_one_column, with_scale

__all__ = ["load", "save"]

#: Goes up whenever earlier versions cannot read what is written.
#: 2: results have the scale that the penalty saw.
FORMAT_VERSION = 2

_KIND = "groupowl model"
_TREE, _ARRAYS = "model.json", "arrays.npz"
# What a damaged tree makes Python, NumPy and the constructors of objects raise.
_DAMAGES = (AttributeError, LookupError, OverflowError, RecursionError, TypeError, ValueError)


def save(obj: Any, folder: Any) -> Path:
    """Write an estimator or a result to a folder: ``model.json`` and ``arrays.npz``.

    The folder can be read by :func:`load` on any machine, and by this version of groupowl and all later ones. Loading
    it runs no code from it, unlike a pickle. It is written whole or not at all: to another name first, then renamed.

    Parameters
    ----------
    obj : estimator, PathResult, SolveResult or History
        What to write. Of an estimator, all parameters and fitted attributes; of a solve everything but ``theta``,
        which needs the data. Requests of metadata routing are not written.
    folder : str or Path
        Where to; made with its parents. A folder that :func:`save` has written is replaced, any other that is not
        empty is refused.

    Returns
    -------
    Path
        The folder.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import groupowl as go
    >>> data = go.datasets.make_correlated_groups(30, 20, 2, random_state=0)
    >>> path = go.group_owl_path(data.X, data.Y, alphas=5)
    >>> with tempfile.TemporaryDirectory() as parent:
    ...     again = go.load(go.save(path, Path(parent) / "path"))
    >>> bool((again.coefs == path.coefs).all())
    True
    """
    if not belongs_to(obj, STORABLE):
        kind = obj.__name__ + ", a class" if isinstance(obj, type) else type(obj).__name__
        raise TypeError(f"obj: save writes {', '.join(STORABLE)}, got {kind}. Give it one of those.")
    target = checked_path("folder", folder)
    arrays: dict[str, Any] = {}
    content = encode(obj, arrays, type(obj).__name__)
    return write_folder(target, content, arrays)


def load(folder: Any) -> Any:
    """Read an estimator or a result that :func:`save` has written.

    Parameters
    ----------
    folder : str or Path
        A folder that :func:`save` has written. One of a newer format is refused.

    Returns
    -------
    estimator, PathResult, SolveResult or History
        What was saved, with equal parameters, attributes and predictions.

    Raises
    ------
    ValueError
        If the folder is not one of :func:`save`, is of a newer format, or is damaged: everything in it is checked, so
        that what can be loaded can predict.

    Examples
    --------
    >>> import tempfile
    >>> import groupowl as go
    >>> data = go.datasets.make_correlated_groups(60, 30, 2, n_informative=3, random_state=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = go.save(go.GroupOWLRegressor(0.5).fit(data.X, data.Y), f"{folder}/model")
    ...     model = go.load(f"{folder}/model")
    >>> model.predict(data.X).shape
    (60, 2)
    """
    content, arrays = read_settled(checked_path("folder", folder), read_folder)
    try:
        unused = dict(arrays)  # each array has one place in the tree
        obj = decode(content, unused)
        if unused:
            raise Damage(f"it has the array {min(unused)!r}, which nothing in it names")
        if not belongs_to(obj, STORABLE):
            raise Damage(f"it holds a {type(obj).__name__}, and save writes {', '.join(STORABLE)}")
        check_object(obj, {}, type(obj).__name__)
        if belongs_to(obj, ESTIMATORS):
            in_one_column(obj)
            with_scale(obj)
    except _DAMAGES as error:
        reason = str(error) if isinstance(error, Damage) else f"{type(error).__name__}: {error}".rstrip(".")
        raise ValueError(f"{str(folder)!r} is damaged: {reason}. Save the model again.") from error
    return obj


# Folders ----------------------------------------------------------------------------------------------


def write_folder(folder: Path, content: Any, arrays: dict[str, Any]) -> Path:
    """Write a tree and its arrays; replaces a folder of this kind."""
    target = Path(os.path.realpath(folder))
    _check_target(target, folder)
    version = installed_version("groupowl")
    envelope = {"kind": _KIND, "format_version": FORMAT_VERSION, "groupowl_version": version, "content": content}
    with fresh_folder(target) as fresh:
        np.savez_compressed(fresh / _ARRAYS, **arrays)
        (fresh / _TREE).write_text(json.dumps(envelope, indent=1, allow_nan=False) + "\n", encoding="utf-8")
    return folder


def _check_target(target: Path, given: Path) -> None:
    """Refuse to replace what save has not written."""
    if not target.exists():
        return
    if not target.is_dir():
        raise FileExistsError(f"{str(given)!r} is a file; save writes a folder. Give another name.")
    names = {path.name for path in target.iterdir()}
    others = sorted(names - {_TREE, _ARRAYS})
    with suppress(ValueError):
        if not names or (not others and _read_envelope(target)):
            return
    found = f", for example {others[0]!r}" if others else ""
    what = f"holds other files than those of a saved model{found}; they would be lost"
    raise FileExistsError(f"{str(given)!r} {what}. Give the name of a new folder.")


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
        else:
            if _state(standing(folder)) == before:
                return found


def _state(folder: Path) -> tuple[int, int] | None:
    """What tells a folder from the one that takes its place."""
    with suppress(OSError):
        found = folder.stat()
        return found.st_ino, found.st_mtime_ns
    return None


def read_folder(folder: Path) -> tuple[Any, dict[str, Any]]:
    """The tree and the arrays of a folder that nobody replaces meanwhile."""
    envelope = _read_envelope(folder)
    found = envelope["format_version"]
    if type(found) is not int or found < 1:
        what = f"{_TREE} says that it has the format {found!r}, which does not exist"
        raise ValueError(f"{str(folder)!r} is damaged: {what}. Save again.")
    if found > FORMAT_VERSION:
        what = f"was written by groupowl {envelope.get('groupowl_version')} in format {found}"
        remedy = f"this version reads formats up to {FORMAT_VERSION}. Update groupowl."
        raise ValueError(f"{str(folder)!r} {what}; {remedy}")
    return envelope["content"], _read_file(folder, _ARRAYS, read_archive)


def _read_envelope(folder: Path) -> dict[str, Any]:
    """What :data:`model.json` holds, or an error that says why there is nothing to read."""
    if not folder.exists():
        raise FileNotFoundError(f"There is no folder {str(folder)!r}.")
    if not folder.is_dir():
        what = f"is a file, but load reads {_TREE} and {_ARRAYS} together"
        raise ValueError(f"{str(folder)!r} {what}. Give it the folder that save has written.")
    is_there = os.path.lexists(folder / _TREE)
    envelope = _read_file(folder, _TREE, _read_tree) if is_there else {}
    is_ours = isinstance(envelope, dict) and envelope.get("kind") == _KIND
    if not is_ours or not {"format_version", "content"} <= envelope.keys():
        why = f"its {_TREE} is not ours" if is_there else f"it has no {_TREE}"
        raise ValueError(f"{str(folder)!r} is no folder that groupowl's save has written: {why}. Give it one that is.")
    return dict(envelope)


def _read_file(folder: Path, name: str, read: Callable[[Path], Any]) -> Any:
    """What ``read`` finds in a file, and not in a pipe, for which one could wait without end."""
    path = folder / name
    try:
        if not path.is_file():
            raise OSError("it is no file" if os.path.lexists(path) else "it is missing")
        return read(path)
    except Exception as error:  # of damaged files, json, zipfile, zlib and NumPy raise almost anything
        reason = f"{name} cannot be read ({type(error).__name__}: {error})"
        raise ValueError(f"{str(folder)!r} is damaged: {reason}. Save again.") from error


def _read_tree(path: Path) -> Any:
    def refuse(constant: str) -> None:
        raise ValueError(f"it has the number {constant}, which JSON does not have")

    return json.loads(path.read_text(encoding="utf-8"), parse_constant=refuse)
