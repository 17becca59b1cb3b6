"""Objects as JSON trees whose arrays are stored beside them.

None, truth values, integers, finite floats, text, lists, and dictionaries with text for keys are themselves. Everything
else is a dictionary with the key ``"$"``, which says what it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .classes import (
    ESTIMATORS,
    RECORDS,
    RESULTS,
    SPLITTERS,
    belongs_to,
    constructor_arguments,
    fitted_attributes,
    is_fitted_name,
    public_fields,
)
from .schema import Damage

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


def is_storable(obj: Any) -> bool:
    """Whether an object can be saved by itself."""
    return belongs_to(obj, ESTIMATORS) or belongs_to(obj, RESULTS)


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
        if value is None or type(value) in (bool, int, str):
            return value
        if type(value) is float:
            return value if math.isfinite(value) else {_TAG: "float", "value": repr(value)}
        if isinstance(value, np.ndarray | np.generic):
            return self._encode_array(value, place)
        if type(value) in (list, tuple):
            items = [self.encode(item, f"{place}[{i}]") for i, item in enumerate(value)]
            return items if type(value) is list else {_TAG: "tuple", "items": items}
        if type(value) is dict:
            return self._encode_dict(value, place)
        return self._encode_object(value, place)

    def _encode_array(self, value: Any, place: str) -> Any:
        array = np.asarray(value)
        if array.dtype.kind == "O":
            items = [self.encode(item, f"{place}[{i}]") for i, item in enumerate(array.ravel().tolist())]
            return {_TAG: "objects", "shape": list(array.shape), "items": items}
        if array.dtype.kind not in _PLAIN_KINDS:
            raise self._refusal(value, place)
        name = f"array_{len(self.arrays)}"
        self.arrays[name] = array
        return {_TAG: "scalar" if isinstance(value, np.generic) else "array", "name": name}

    def _encode_dict(self, value: dict[Any, Any], place: str) -> Any:
        if all(type(key) is str for key in value) and _TAG not in value:
            return self._encode_named(value, place)
        pairs = [[self.encode(key, place), self.encode(item, f"{place}[{key!r}]")] for key, item in value.items()]
        return {_TAG: "dict", "pairs": pairs}

    def _encode_named(self, values: dict[str, Any], place: str = "") -> dict[str, Any]:
        return {name: self.encode(item, f"{place}.{name}" if place else name) for name, item in values.items()}

    def _encode_object(self, value: Any, place: str) -> Any:
        name = type(value).__name__
        if belongs_to(value, ESTIMATORS):
            params = self._encode_named(value.get_params(deep=False), place)
            fitted = self._encode_named(fitted_attributes(value), place)
            return {_TAG: "estimator", "class": name, "params": params, "fitted": fitted}
        if belongs_to(value, RECORDS):
            return {_TAG: "record", "class": name, "fields": self._encode_named(public_fields(value), place)}
        if belongs_to(value, SPLITTERS):
            return {_TAG: "splitter", "class": name, "args": self._encode_named(constructor_arguments(value), place)}
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
        self.used: set[str] = set()
        self._makers: dict[str, Callable[[dict[str, Any]], Any]] = {
            "float": lambda node: _SPECIAL[node["value"]],
            "tuple": lambda node: tuple(self._decode(node["items"])),
            "dict": lambda node: {self._decode(key): self._decode(item) for key, item in node["pairs"]},
            "array": lambda node: self._array(node["name"]),
            "scalar": self._decode_scalar,
            "objects": self._decode_objects,
            "estimator": self._decode_estimator,
            "record": lambda node: RECORDS[node["class"]](**self._decode_named(node["fields"])),
            "splitter": lambda node: SPLITTERS[node["class"]](**self._decode_named(node["args"])),
        }

    def decode(self, node: Any) -> Any:
        """The value of a whole tree, or an error that says how it is damaged."""
        try:
            value = self._decode(node)
        except RecursionError:
            raise Damage("its tree is nested too deeply") from None
        except Damage:
            raise
        except (KeyError, IndexError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise Damage(f"{type(error).__name__} {error}") from error
        if unused := sorted(self.arrays.keys() - self.used):
            raise Damage(f"it has the array {unused[0]!r}, which nothing in it names")
        return value

    def _decode(self, node: Any) -> Any:
        if isinstance(node, list):
            return [self._decode(item) for item in node]
        if not isinstance(node, dict):
            return node
        return self._makers[node[_TAG]](node) if _TAG in node else self._decode_named(node)

    def _decode_named(self, node: dict[str, Any]) -> dict[str, Any]:
        return {name: self._decode(item) for name, item in node.items()}

    def _array(self, name: str) -> Any:
        if name not in self.arrays:
            raise Damage(f"its array {name!r} is missing")
        self.used.add(name)
        array = self.arrays[name]
        if array.dtype.kind not in _PLAIN_KINDS:
            raise Damage(f"its array {name!r} has the dtype {array.dtype}, which is never saved")
        return array

    def _decode_scalar(self, node: dict[str, Any]) -> Any:
        array = self._array(node["name"])
        if array.ndim:
            raise Damage(f"its number {node['name']!r} is an array of shape {array.shape}")
        return array[()]

    def _decode_objects(self, node: dict[str, Any]) -> Any:
        array = np.empty(len(node["items"]), dtype=object)
        array[:] = self._decode(node["items"])
        return array.reshape(node["shape"])

    def _decode_estimator(self, node: dict[str, Any]) -> Any:
        estimator = ESTIMATORS[node["class"]](**self._decode_named(node["params"]))
        fitted = self._decode_named(node["fitted"])
        for name in fitted:
            if not is_fitted_name(name) or hasattr(type(estimator), name):
                raise Damage(f"{node['class']}.{name} is nothing that a fit leaves behind")
        vars(estimator).update(fitted)
        return estimator
