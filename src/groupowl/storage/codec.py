"""Objects as JSON trees whose arrays are stored beside them.

None, truth values, integers, finite floats, text, lists, and dictionaries with text for keys are themselves. Everything
else is a dictionary with the key ``"$"``, which says what it is. Objects of classes that are not listed here are
neither written nor made when reading.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
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


class Encoder:
    """Makes trees, and collects arrays by name.

    Parameters
    ----------
    what : str
        What is being saved, for messages.
    """

    def __init__(self, what: str) -> None:
        self.what = what
        self.arrays: dict[str, Any] = {}

    def encode(self, value: Any, place: str = "") -> Any:
        """The tree of a value; ``place`` is where in the whole it stands."""
        kind = type(value)
        if value is None or kind in (bool, int, str):
            return value
        if kind is float:
            return value if math.isfinite(value) else {_TAG: "float", "value": repr(value)}
        if kind is list:
            return self._encode_items(value, place)
        if kind is tuple:
            return {_TAG: "tuple", "items": self._encode_items(value, place)}
        if kind is dict:
            return self._encode_dict(value, place)
        if isinstance(value, np.ndarray | np.generic):
            return self._encode_array(value, place)
        return self._encode_object(value, place)

    def _encode_items(self, values: Sequence[Any], place: str) -> list[Any]:
        return [self.encode(item, f"{place}[{i}]") for i, item in enumerate(values)]

    def _encode_named(self, values: dict[str, Any], place: str) -> dict[str, Any]:
        return {name: self.encode(item, f"{place}.{name}" if place else name) for name, item in values.items()}

    def _encode_dict(self, value: dict[Any, Any], place: str) -> Any:
        if all(type(key) is str for key in value) and _TAG not in value:
            return self._encode_named(value, place)
        pairs = [[self.encode(key, place), self.encode(item, f"{place}[{key!r}]")] for key, item in value.items()]
        return {_TAG: "dict", "pairs": pairs}

    def _encode_array(self, value: Any, place: str) -> Any:
        array = np.asarray(value)
        if array.dtype.kind == "O":
            items = self._encode_items(array.ravel().tolist(), place)
            return {_TAG: "objects", "shape": list(array.shape), "items": items}
        if array.dtype.kind not in _PLAIN_KINDS:
            raise self._refusal(value, place)
        name = f"array_{len(self.arrays)}"
        self.arrays[name] = array
        return {_TAG: "scalar" if isinstance(value, np.generic) else "array", "name": name}

    def _encode_object(self, value: Any, place: str) -> Any:
        name = type(value).__name__
        if belongs_to(value, ESTIMATORS):
            params = self._encode_named(value.get_params(deep=False), place)
            fitted = self._encode_named(fitted_attributes(value), place)
            return {_TAG: "estimator", "class": name, "params": params, "fitted": fitted}
        if belongs_to(value, RECORDS):
            return {_TAG: "record", "class": name, "fields": self._encode_named(public_fields(value), place)}
        if belongs_to(value, SPLITTERS):
            known = vars(value) | vars(value).get("cvargs", {})  # where a repeated splitter keeps some arguments
            args = {name: known[name] for name in inspect.signature(type(value)).parameters if name in known}
            return {_TAG: "splitter", "class": name, "args": self._encode_named(args, place)}
        raise self._refusal(value, place)

    def _refusal(self, value: Any, place: str) -> TypeError:
        argument = place.partition("[")[0].partition(".")[0]
        shown = f"the {type(value).__name__} {getattr(value, '__name__', '')}".rstrip()
        return TypeError(f"{self.what} cannot be saved: {place} is {shown}. {_REMEDIES.get(argument, _OTHER_REMEDY)}")


class Decoder:
    """Makes objects from trees.

    Parameters
    ----------
    arrays : dict
        Arrays by name.
    """

    def __init__(self, arrays: dict[str, Any]) -> None:
        self.arrays = arrays
        self._makers: dict[str, Callable[[dict[str, Any]], Any]] = {
            "float": lambda node: _SPECIAL[node["value"]],
            "tuple": lambda node: tuple(self._decode(node["items"])),
            "dict": lambda node: {self._decode(key): self._decode(item) for key, item in node["pairs"]},
            "array": self._take_array,
            "scalar": lambda node: self._take_array(node)[()],
            "objects": self._decode_objects,
            "estimator": self._decode_estimator,
            "record": lambda node: RECORDS[node["class"]](**self._decode(node["fields"])),
            "splitter": lambda node: SPLITTERS[node["class"]](**self._decode(node["args"])),
        }

    def decode(self, node: Any) -> Any:
        """The value of a whole tree; one that is damaged raises almost anything."""
        self._unused = dict(self.arrays)  # each array has one place in the tree
        value = self._decode(node)
        if self._unused:
            raise Damage(f"it has the array {min(self._unused)!r}, which nothing in it names")
        return value

    def _decode(self, node: Any) -> Any:
        if isinstance(node, list):
            return [self._decode(item) for item in node]
        if not isinstance(node, dict):
            return node
        if _TAG in node:
            return self._makers[node[_TAG]](node)
        return {name: self._decode(item) for name, item in node.items()}

    def _take_array(self, node: dict[str, Any]) -> Any:
        name = node["name"]
        if name not in self._unused:
            raise Damage(f"its array {name!r} is missing")
        array = self._unused.pop(name)
        if array.dtype.kind not in _PLAIN_KINDS:
            raise Damage(f"its array {name!r} has the dtype {array.dtype}, which is never saved")
        if node[_TAG] == "scalar" and array.ndim:
            raise Damage(f"its number {name!r} is an array of shape {array.shape}")
        return array

    def _decode_objects(self, node: dict[str, Any]) -> Any:
        array = np.empty(len(node["items"]), dtype=object)
        array[:] = self._decode(node["items"])
        return array.reshape(node["shape"])

    def _decode_estimator(self, node: dict[str, Any]) -> Any:
        estimator = ESTIMATORS[node["class"]](**self._decode(node["params"]))
        fitted = self._decode(node["fitted"])
        for name in fitted:
            if not is_fitted_name(name) or hasattr(type(estimator), name):
                raise Damage(f"{node['class']}.{name} is nothing that a fit leaves behind")
        vars(estimator).update(fitted)
        return estimator
