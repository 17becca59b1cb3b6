"""Estimators and results on disk: text for structure, arrays for numbers, no code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .._checks import checked_path
from .codec import STORABLE, Damage, belongs_to, check_object, decode, encode
from .folders import read_folder, write_folder

__all__ = ["load", "save"]

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
    """Read what :func:`save` has written.

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
    content, arrays = read_folder(checked_path("folder", folder))
    try:
        unused = dict(arrays)  # each array has one place in the tree
        obj = decode(content, unused)
        if unused:
            raise Damage(f"it has the array {min(unused)!r}, which nothing in it names")
        if not belongs_to(obj, STORABLE):
            raise Damage(f"it holds a {type(obj).__name__}, and save writes {', '.join(STORABLE)}")
        check_object(obj, {}, type(obj).__name__)
    except _DAMAGES as error:
        reason = str(error) if isinstance(error, Damage) else f"{type(error).__name__}: {error}".rstrip(".")
        raise ValueError(f"{str(folder)!r} is damaged: {reason}. Save the model again.") from error
    return obj
