"""Objects as JSON trees whose arrays are stored beside them.

None, truth values, integers, finite floats, text, lists, and dictionaries with text for keys are themselves. Everything
else is a dictionary with the key ``"$"``, which says what it is. Objects of classes that are not listed here are
neither written nor made when reading.
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any, cast

import numpy as np
from sklearn import model_selection

from .. import estimators
from .._text import counted
from ..categories import Categories, coefficient_names
from ..inputs import exclusive_classes
from ..path import PathPoint, PathResult
from ..path.path_result import REASONS
from ..solvers import APGD, SPGD, History, SolveResult, WorkingSet
from ..solvers.solve_result import AS_EXPLAINED, STATUSES


def _classes(module: Any, method: str) -> dict[str, Any]:
    """Public classes of a module with a method, by name, but for those that others are based on."""
    found = {name: vars(module).get(name) for name in module.__all__ if not name.startswith("Base")}
    return {name: item for name, item in found.items() if hasattr(item, method)}


#: Estimators by name; their parameters and fitted attributes are stored.
ESTIMATORS = _classes(estimators, "fit")
_RESULTS: dict[str, Any] = {item.__name__: item for item in (PathResult, SolveResult, History)}
#: What can be saved by itself.
STORABLE = ESTIMATORS | _RESULTS
#: Dataclasses whose fields are stored: results, and what occurs in them and in parameters.
RECORDS = _RESULTS | {item.__name__: item for item in (PathPoint, WorkingSet, APGD, SPGD)}
#: Splitters of scikit-learn by name; the arguments of their constructors are stored.
SPLITTERS = _classes(model_selection, "get_n_splits")
# Kinds of objects, their classes, and the key under which the arguments of their constructors are stored.
_OBJECTS = {"estimator": (ESTIMATORS, "params"), "record": (RECORDS, "fields"), "splitter": (SPLITTERS, "args")}

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
    "loss": "Use the name of a loss.",
    "solver": "Use a name, or a solver of groupowl.",
}
# Parameters that are about one call of fit, and nothing of the model.
_OF_CALLS = ("callback", "resume")
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


def _made_on_access(kind: type) -> list[str]:
    """Fitted attributes of a class of estimators that are made when they are read for the first time."""
    return [
        name
        for parent in kind.__mro__
        for name, value in vars(parent).items()
        if isinstance(value, cached_property) and is_fitted_name(name)
    ]


def constructor_arguments(obj: Any) -> dict[str, Any]:
    """What the constructor of an object has taken, but for what is about one call of ``fit``.

    Names that begin with an underscore hold functions.
    """
    names = [name for name in inspect.signature(type(obj)).parameters if not name.startswith("_")]
    names = [name for name in names if name not in _OF_CALLS]
    others = getattr(obj, "cvargs", {})  # where a repeated splitter keeps some arguments
    return {name: others[name] if name in others else getattr(obj, name) for name in names}


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

    def encode_part(item: Any, step: str) -> Any:
        return encode(item, arrays, what, f"{place}{step}" if place else step.removeprefix("."))

    def encode_items(items: Iterable[Any]) -> list[Any]:
        return [encode_part(item, f"[{i}]") for i, item in enumerate(items)]

    def encode_named(items: dict[str, Any]) -> dict[str, Any]:
        return {name: encode_part(item, f".{name}") for name, item in items.items()}

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
        pairs = [[encode_part(key, f"[{key!r}]"), encode_part(item, f"[{key!r}]")] for key, item in value.items()]
        return {_TAG: "dict", "pairs": pairs}
    if isinstance(value, np.ndarray | np.generic) and value.dtype.kind in _PLAIN_KINDS + "O":
        if value.dtype.kind == "O":
            return {_TAG: "objects", "shape": list(value.shape), "items": encode_items(np.ravel(value).tolist())}
        key = f"array_{len(arrays)}"
        arrays[key] = np.asarray(value)
        return {_TAG: "scalar" if isinstance(value, np.generic) else "array", "name": key}
    for tag, (classes, key) in _OBJECTS.items():
        if belongs_to(value, classes):
            tree = {_TAG: tag, "class": name, key: encode_named(constructor_arguments(value))}
            if tag != "estimator":
                return tree
            for attribute in _made_on_access(kind):
                getattr(value, attribute, None)
            return tree | {"fitted": encode_named(fitted_attributes(value))}
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
    if kind not in _OBJECTS:
        raise Damage(f"it has a {kind!r}, which is never saved")
    classes, key = _OBJECTS[kind]
    obj = classes[parts["class"]](**parts[key])
    fitted = parts["fitted"] if kind == "estimator" else {}
    for name, value in fitted.items():
        if not is_fitted_name(name) or (hasattr(type(obj), name) and name not in _made_on_access(type(obj))):
            raise Damage(f"{parts['class']}.{name} is nothing that a fit leaves behind")
        if value is not None:  # which no fit leaves behind either
            setattr(obj, name, value)
    return obj


# What a saved object must hold ----------------------------------------------------------------------------
# A table has the names of fields by what they must be: a kind, and for an array the letters of its shape. The letters
# mean d features, q tasks, c classes, t rows of ``coef_``, p penalized and u unpenalized features (g penalized groups
# of them), n alphas, f folds, h rows of a history. The first field with a letter says how many there are, and all
# others must agree; ``= d`` is one that says it itself, and ``*`` means several of a kind. A field whose name ends with
# ``?`` may be missing or None.

_ESTIMATOR = {
    "= d": "n_features_in_",
    "number t d": "coef_ penalized_coef_?",
    "number d": "penalty_factor_?",
    "number t": "intercept_ penalized_intercept_? delta_?",
    "positive": "alpha_",
    "number p": "weights_",
    "index u": "unpenalized_",
    "count d": "clusters_",
    "real": "dual_gap_ screened_fraction_",
    "count": "n_iter_",
    "SolveResult": "solve_result_",
    "names d": "feature_names_in_? feature_groups_?",
    "names t": "target_names_?",
    "number b": "baseline_times_? baseline_hazard_?",
    "count b": "baseline_endpoint_? baseline_stratum_?",
}
_SEARCH = {
    "number": "eps",
    "number n": "alphas_",
    "position": "best_index_",
    "PathResult": "path_",
    "dict*": "search_results_",
    "real n f": "score_path_?",
    "real n": "mean_score_path_? std_error_path_? criterion_path_?",
    "real": "best_score_?",
    "count d": "selection_frequency_?",
}
_OF_THE_BEST = ("eps", "path_", "search_results_")
_RECORDS = {
    # What was found for one of the sequences of weights: named as that of the best one, without the underscores.
    "dict": {"number p": "weights"}
    | {spec: re.sub(r"_(?!\w)", "", names) for spec, names in _SEARCH.items() if names not in _OF_THE_BEST},
    "History": {"count h": "iteration n_active n_nonzero", "real h": "seconds passes primal dual gap"},
    "SolveResult": {
        "number d q": "B",
        "number q": "intercept",
        "real": "primal dual gap n_passes seconds",
        "History": "history",
        "index a": "active",
        "moment d": "screened_at",
        "count d": "clusters",
        "count": "n_iter",
        "status": "status",
        "positive d": "scale?",
    },
    "PathPoint": {
        "number": "alpha",
        "index k": "support",
        "number k q": "rows",
        "number q": "intercept",
        "count k": "clusters",
        "real": "primal gap loss deviance_ratio n_passes seconds",
        "count": "n_iter n_selected",
        "status": "status",
        "positive k": "scale?",
    },
    "PathResult": {
        "= d": "n_features",
        "number p": "weights",
        "index u": "unpenalized",
        "PathPoint*": "points",
        "text": "loss",
        "truth": "fit_intercept has_offset?",
        "real": "alpha_max null_loss",
        "reason": "stopped_because",
        "names d": "feature_names? feature_groups?",
        "labels c": "classes?",
        "names q": "target_names?",
    },
}
# Letters whose meaning ends with the object; all others mean the same in an object and in those that it holds.
_OWN = ("a", "k", "n")
_MEANINGS = {"d": "features", "q": "tasks", "t": "targets", "n": "alphas", "p": "weights", "u": "unpenalized features"}
_SCALARS = (str, int, float, np.generic)


def _are_labels(values: Any, sizes: Mapping[str, int]) -> bool:
    items = values.tolist()
    return None not in items and len(items) > 1 and len(set(items)) == len(items) and all(x == x for x in items)


def _are_between(values: Any, least: int, end: int) -> bool:
    return bool(values.size == 0 or (values.min() >= least and values.max() < end))


# Kinds of values: those of their dtype, what must hold for all entries, and both in words.
_KINDS: dict[str, tuple[str, Any, str]] = {
    "number": ("f", lambda values, sizes: np.isfinite(values).all(), "finite numbers"),
    "real": ("f", lambda values, sizes: True, "real numbers"),
    "positive": ("f", lambda values, sizes: np.all((values > 0.0) & (values < np.inf)), "positive numbers"),
    "count": ("iu", lambda values, sizes: _are_between(values, 0, 2**63), "counts"),
    "position": ("iu", lambda values, sizes: _are_between(values, 0, sizes["n"]), "the number of an alpha"),
    "index": ("iu", lambda values, sizes: _are_between(values, 0, sizes["d"]), "numbers of features"),
    "moment": (
        "iu",
        lambda values, sizes: _are_between(values, AS_EXPLAINED, sizes["h"]),
        "rows of the history, or -1",
    ),
    "text": ("U", lambda values, sizes: True, "text"),
    "truth": ("b", lambda values, sizes: True, "True or False"),
    "status": ("U", lambda values, sizes: str(values) in STATUSES, f"one of {', '.join(STATUSES)}"),
    "reason": ("U", lambda values, sizes: str(values) in REASONS, f"one of {', '.join(REASONS)}"),
    "names": ("OU", lambda values, sizes: all(isinstance(name, str) for name in values.tolist()), "names"),
    "labels": ("OUSbiufMm", _are_labels, "different labels, none of them missing"),
}
_KINDS["="] = _KINDS["count"]


def check_object(obj: Any, outside: dict[str, int], place: str) -> None:
    """Refuse an object that lacks something, or whose parts do not belong together.

    Parameters
    ----------
    obj : estimator, record or dict
        What was read.
    outside : dict
        Sizes by letter of what holds it; those that the object tells are added.
    place : str
        Where in the whole it stands, for messages.
    """
    sizes = {letter: size for letter, size in outside.items() if letter not in _OWN}
    if belongs_to(obj, ESTIMATORS):
        _check_estimator(obj, sizes, place)
    else:
        values = obj if isinstance(obj, dict) else constructor_arguments(obj)
        sizes |= _penalized_groups(values.get("feature_groups"), values.get("unpenalized"))
        if values.get("categories") is not None:
            _check_levels_of_path(values, place)
        _check_fields(_RECORDS[type(obj).__name__], values, sizes, place)
        alphas = [point.alpha for point in values.get("points", ())]
        if alphas != sorted(alphas, reverse=True):
            raise Damage(f"{place}.points have alphas that do not decrease")
    if "c" in sizes and sizes["c"] not in (sizes["q"], sizes["q"] + (sizes["q"] == 1)):  # two share a task
        raise Damage(f"{place} has {sizes['c']} classes, which do not belong to {counted(sizes['q'], 'task')}")
    if sizes.get("h") == 0:
        raise Damage(f"{place} has no rows")
    if "p" in sizes and "g" not in sizes and sizes["p"] + sizes["u"] != sizes["d"]:
        weights = f"{sizes['p']} weights and {sizes['u']} unpenalized features"
        raise Damage(f"{place} has {weights}, together not its {sizes['d']} features")
    if "p" in sizes and sizes.get("g", sizes["p"]) != sizes["p"]:
        raise Damage(f"{place} has {sizes['p']} weights, but {counted(sizes['g'], 'penalized group')}")
    outside |= {letter: size for letter, size in sizes.items() if letter not in _OWN}


def _penalized_groups(groups: Any, unpenalized: Any) -> dict[str, int]:
    """The number of groups of features that are penalized, under its letter, where there are groups."""
    if not isinstance(groups, np.ndarray) or not isinstance(unpenalized, np.ndarray):
        return {}
    chosen = np.ones(groups.shape, dtype=bool)
    chosen[unpenalized[unpenalized < len(groups)]] = False
    return {"g": len(np.unique(groups[chosen]))}


def _check_estimator(estimator: Any, sizes: dict[str, int], place: str) -> None:
    fitted = fitted_attributes(estimator)
    if not fitted:
        return
    if getattr(fitted.get("coef_"), "ndim", 2) == 1:  # of a target without dimensions of its own
        flat = ("coef_", "intercept_", "penalized_coef_", "penalized_intercept_")
        numbers = np.ndarray | np.floating | float
        fitted |= {name: np.array([fitted[name]]) for name in flat if isinstance(fitted.get(name), numbers)}
    estimator._fitting()  # which checks the parameters
    if "categories_" in fitted:
        fitted |= _checked_categories(fitted, place)
    sizes |= _penalized_groups(fitted.get("feature_groups_"), fitted.get("unpenalized_"))
    _check_fields(_ESTIMATOR, fitted, sizes, place)
    if hasattr(type(estimator), "predict_proba"):
        _check_fields({"labels c": "classes_", "truth": "multilabel_?"}, fitted, sizes, place)
    if hasattr(estimator, "alphas"):
        _check_fields(_SEARCH, {"eps": estimator.eps} | fitted, sizes, place)
    rows = sizes["q"]
    if exclusive_classes(fitted) is not None and sizes["c"] == 2:  # which share a row
        rows = 1
    if sizes["t"] != rows:
        raise Damage(f"{place}.coef_ has {sizes['t']} rows, but {rows} belong to the {sizes['q']} tasks of the fit")


def _checked_categories(fitted: dict[str, Any], place: str) -> dict[str, Any]:
    """Number and names of the columns that features and their categories become, to be compared with coefficients."""
    _check_fields({"= given": "n_features_in_", "names given": "feature_names_in_"}, fitted, {}, place)
    levels: Any = fitted["categories_"]
    if not (_are_levels(levels) and set(levels) <= set(fitted["feature_names_in_"].tolist())):
        raise Damage(f"{place}.categories_ must hold the levels of some features, got {_shown(levels)}")
    names = coefficient_names(fitted)
    return {"n_features_in_": len(names), "feature_names_in_": names}


def _check_levels_of_path(values: Mapping[str, Any], place: str) -> None:
    """Refuse categories whose levels are not the features of a path."""
    levels, names = values["categories"], cast(Any, values.get("feature_names"))
    is_good = _are_levels(levels) and names is not None
    coding = Categories.behind(names.tolist(), levels) if is_good else None
    if coding is None or coding.coded_names != names.tolist() or not set(levels) <= set(coding.names):
        raise Damage(f"{place}.categories must hold the levels that features were made of, got {_shown(levels)}")


def _are_levels(levels: Any) -> bool:
    """Whether these are different levels of each of some columns."""
    if not (isinstance(levels, dict) and levels and all(isinstance(known, list) for known in levels.values())):
        return False
    are_texts = all(isinstance(level, str) for known in levels.values() for level in known)
    return are_texts and all(0 < len(set(known)) == len(known) for known in levels.values())


def in_one_column(estimator: Any) -> None:
    """Coefficients of two classes as their difference, where an earlier version has stored a column for each."""
    classes, result = exclusive_classes(vars(estimator)), getattr(estimator, "solve_result_", None)
    if classes is None or result is None or len(classes) != 2 or len(result.intercept) == 1:
        return
    estimator.solve_result_ = replace(result, B=np.diff(result.B), intercept=np.diff(result.intercept))
    if (path := getattr(estimator, "path_", None)) is not None:
        points = (replace(point, rows=np.diff(point.rows), intercept=np.diff(point.intercept)) for point in path.points)
        estimator.path_ = replace(path, points=tuple(points), loss="logistic")


def with_scale(estimator: Any) -> None:
    """Give the results of a fit the scale that its penalty saw, where they have none and the parameters tell it.

    Earlier versions have not stored it. The scale of standardized columns, and of groups that are scaled by what is in
    them, is lost.
    """
    result = getattr(estimator, "solve_result_", None)
    if result is None or result.scale is not None or estimator.standardize or hasattr(estimator, "categories_"):
        return
    options = estimator._options(estimator.n_features_in_, getattr(estimator, "feature_names_in_", None))
    options = replace(options, penalty_factor=getattr(estimator, "penalty_factor_", options.penalty_factor))
    if not options.scales_columns or options.depends_on_data:
        return
    ones = np.ones(len(result.B))
    factors = options.scaled(ones, ones)
    factors[estimator.unpenalized_] = 1.0
    scale = np.divide(1.0, factors, out=ones, where=factors > 0.0)
    estimator.solve_result_ = replace(result, scale=scale)
    if (path := getattr(estimator, "path_", None)) is not None:
        points = (replace(point, scale=scale[point.support]) for point in path.points)
        estimator.path_ = replace(path, points=tuple(points))


def _check_fields(table: Mapping[str, str], values: Mapping[str, Any], sizes: dict[str, int], place: str) -> None:
    for spec, names in table.items():
        for name in names.replace("?", "").split():
            if values.get(name) is not None:
                _check_value(spec, values[name], sizes, f"{place}.{name}")
            elif f"{name}?" not in names.split():
                raise Damage(f"{place}.{name} is missing")


def _check_value(spec: str, value: Any, sizes: dict[str, int], place: str) -> None:
    """Check a list of objects, an object, an array, or a single value, which no letters follow."""
    kind, *letters = spec.split()
    if kind.endswith("*"):
        if not isinstance(value, list | tuple) or not value:
            raise Damage(f"{place} must be a list, got {_shown(value)}")
        for i, item in enumerate(value):
            _check_value(kind[:-1], item, sizes, f"{place}[{i}]")
        return
    if kind in _RECORDS:
        if type(value).__name__ != kind:
            raise Damage(f"{place} must be a {kind}, got {_shown(value)}")
        check_object(value, sizes, place)
        return
    dtypes, is_good, words = _KINDS[kind]
    dimensions = len(letters) if kind != "=" else 0
    values = np.asarray(value) if isinstance(value, np.ndarray if dimensions else _SCALARS) else np.array(None)
    if dimensions == 0 and values.dtype.kind in "iu" and dtypes == "f":  # a number of Python without a fraction
        values = values.astype(float)
    if values.ndim != dimensions or values.dtype.kind not in dtypes or not is_good(values, sizes):
        shape = f" in {counted(dimensions, 'dimension')}" if dimensions else ""
        raise Damage(f"{place} must hold {words}{shape}, got {_shown(value)}")
    for letter, size in zip(letters, (int(value),) if kind == "=" else values.shape, strict=True):
        if sizes.setdefault(letter, size) != size:
            where = f"{place} of shape {values.shape}" if dimensions else place
            raise Damage(f"{where} has {size} {_MEANINGS.get(letter, 'entries')}, other parts have {sizes[letter]}")


def _shown(value: Any) -> str:
    is_array = isinstance(value, np.ndarray)
    return f"an array of shape {value.shape} and dtype {value.dtype}" if is_array else repr(value)[:80]
