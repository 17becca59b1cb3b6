"""Objects as JSON trees whose arrays are stored beside them.

None, truth values, integers, finite floats, text, lists, and dictionaries with text for keys are themselves. Everything
else is a dictionary with the key ``"$"``, which says what it is. Objects of classes that are not listed here are
neither written nor made when reading.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterable
from dataclasses import fields
from typing import Any

import numpy as np
from sklearn import model_selection

from .. import estimators
from ..path import PathPoint, PathResult
from ..solvers import APGD, SPGD, History, SolveResult, WorkingSet

#: Estimators by name; their parameters and fitted attributes are stored.
ESTIMATORS: dict[str, Any] = {
    name: item for name in estimators.__all__ if hasattr(item := getattr(estimators, name), "fit")
}
_RESULTS: dict[str, Any] = {item.__name__: item for item in (PathResult, SolveResult, History)}
#: What can be saved by itself.
STORABLE = ESTIMATORS | _RESULTS
#: Dataclasses whose fields are stored: results, and what occurs in them and in parameters.
RECORDS = _RESULTS | {item.__name__: item for item in (PathPoint, WorkingSet, APGD, SPGD)}
#: Splitters of scikit-learn by name; the arguments of their constructors are stored.
SPLITTERS: dict[str, Any] = {
    name: item
    for name, item in vars(model_selection).items()
    if name in model_selection.__all__ and hasattr(item, "get_n_splits") and not name.startswith("Base")
}

_TAG = "$"
# Kinds of arrays that are stored as they are: numbers, truth values, text, bytes and dates.
_PLAIN_KINDS = "biufcUSMm"
# Floats that JSON does not have, by their text.
_SPECIAL = {repr(value): value for value in (math.nan, math.inf, -math.inf)}

_REMEDIES = {
    "weights": "Use set_params(weights=estimator.weights_), the sequence itself.",
    "scoring": "Use the name of a scorer.",
    "cv": "Use a number of folds, a splitter of scikit-learn, or a list of (train, test) indices.",
    "random_state": "Use an integer.",
    "solver": "Use a name, or a solver of groupowl.",
}
_OTHER_REMEDY = "Only plain values, arrays and objects of groupowl can be saved."


class Damage(ValueError):
    """What is wrong with something that was read, and where."""


def belongs_to(obj: Any, classes: dict[str, Any]) -> bool:
    """Whether an object is exactly of one of the classes: a subclass may have state that nobody would store."""
    return classes.get(type(obj).__name__) is type(obj)


def is_fitted_name(name: str) -> bool:
    """Whether an attribute of this name is what a fit has left."""
    return (name.endswith("_") and not name.startswith("_")) or name.startswith("_fit")


def fitted_attributes(estimator: Any) -> dict[str, Any]:
    """What a fit has left on an estimator."""
    return {name: value for name, value in vars(estimator).items() if is_fitted_name(name)}


def public_fields(record: Any) -> dict[str, Any]:
    """Fields of a dataclass; those that begin with an underscore hold functions and have a default."""
    names = [item.name for item in fields(record) if not item.name.startswith("_")]
    return {name: getattr(record, name) for name in names}


def encode(value: Any, arrays: dict[str, Any], what: str, place: str = "") -> Any:
    """The tree of a value.

    Parameters
    ----------
    value : object
    arrays : dict
        Where its arrays are put, by name.
    what : str
        What is being saved, for messages.
    place : str
        Where in the whole the value stands.
    """

    def encode_items(items: Iterable[Any]) -> list[Any]:
        return [encode(item, arrays, what, f"{place}[{i}]") for i, item in enumerate(items)]

    def encode_named(items: dict[str, Any]) -> dict[str, Any]:
        return {name: encode(item, arrays, what, f"{place}.{name}" if place else name) for name, item in items.items()}

    kind, name = type(value), type(value).__name__
    if value is None or kind in (bool, int, str):
        return value
    if kind is float:
        return value if math.isfinite(value) else {_TAG: "float", "value": repr(value)}
    if kind is list:
        return encode_items(value)
    if kind is tuple:
        return {_TAG: "tuple", "items": encode_items(value)}
    if kind is dict:
        if all(type(key) is str for key in value) and _TAG not in value:
            return encode_named(value)
        keys, items = encode_items(value), [encode(value[key], arrays, what, f"{place}[{key!r}]") for key in value]
        return {_TAG: "dict", "pairs": [list(pair) for pair in zip(keys, items, strict=True)]}
    if isinstance(value, np.ndarray | np.generic) and value.dtype.kind in _PLAIN_KINDS + "O":
        if value.dtype.kind == "O":
            return {_TAG: "objects", "shape": list(value.shape), "items": encode_items(np.ravel(value).tolist())}
        key = f"array_{len(arrays)}"
        arrays[key] = np.asarray(value)
        return {_TAG: "scalar" if isinstance(value, np.generic) else "array", "name": key}
    if belongs_to(value, ESTIMATORS):
        params, fitted = encode_named(value.get_params(deep=False)), encode_named(fitted_attributes(value))
        return {_TAG: "estimator", "class": name, "params": params, "fitted": fitted}
    if belongs_to(value, RECORDS):
        return {_TAG: "record", "class": name, "fields": encode_named(public_fields(value))}
    if belongs_to(value, SPLITTERS):
        known = vars(value) | vars(value).get("cvargs", {})  # where a repeated splitter keeps some arguments
        args = {name: known[name] for name in inspect.signature(kind).parameters if name in known}
        return {_TAG: "splitter", "class": name, "args": encode_named(args)}
    argument = place.partition("[")[0].partition(".")[0]
    shown = f"the {name} {getattr(value, '__name__', '')}".rstrip()
    raise TypeError(f"{what} cannot be saved: {place} is {shown}. {_REMEDIES.get(argument, _OTHER_REMEDY)}")


def decode(node: Any, arrays: dict[str, Any]) -> Any:
    """The value of a tree, for which its arrays are taken out of those given; a damaged one raises almost anything."""
    if isinstance(node, list):
        return [decode(item, arrays) for item in node]
    if not isinstance(node, dict):
        return node
    parts = {name: decode(item, arrays) for name, item in node.items()}
    if _TAG not in parts:
        return parts
    kind = parts[_TAG]
    if kind == "float":
        return _SPECIAL[parts["value"]]
    if kind == "tuple":
        return tuple(parts["items"])
    if kind == "dict":
        return dict(parts["pairs"])
    if kind == "objects":
        array = np.empty(len(parts["items"]), dtype=object)
        array[:] = parts["items"]
        return array.reshape(parts["shape"])
    if kind in ("array", "scalar"):
        name = parts["name"]
        if name not in arrays:
            raise Damage(f"its array {name!r} is missing")
        array = arrays.pop(name)
        if array.dtype.kind not in _PLAIN_KINDS or (kind == "scalar" and array.ndim):
            shown = f"shape {array.shape} and the dtype {array.dtype}"
            raise Damage(f"its {kind} {name!r} has the {shown}, which is never saved")
        return array if kind == "array" else array[()]
    if kind in ("record", "splitter"):
        classes, key = (RECORDS, "fields") if kind == "record" else (SPLITTERS, "args")
        return classes[parts["class"]](**parts[key])
    if kind != "estimator":
        raise Damage(f"it has a {kind!r}, which is never saved")
    estimator = ESTIMATORS[parts["class"]](**parts["params"])
    for name in parts["fitted"]:
        if not is_fitted_name(name) or hasattr(type(estimator), name):
            raise Damage(f"{parts['class']}.{name} is nothing that a fit leaves behind")
    vars(estimator).update(parts["fitted"])
    return estimator
