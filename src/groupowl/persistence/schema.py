"""What a saved object must hold: one table of fields, their kinds and shapes, for the check of all that is read.

A shape is written in letters: d features, q tasks or classes, t rows of ``coef_``, p penalized and u unpenalized
features, n alphas, h rows of a history. The first field with a letter says what it is, and all others must agree.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from ..path.path_result import REASONS
from ..solvers.result import STATUSES
from .classes import ESTIMATORS, RECORDS, belongs_to, fitted_attributes, public_fields

_NUMBERS = (int, float, np.integer, np.floating)


class Field(NamedTuple):
    """A field: its kind, the letters of its shape, and whether it may be missing or None."""

    kind: str
    shape: str = ""
    is_optional: bool = False


_REAL = Field("real")
_COUNT = Field("count")
_TEXT = Field("text")

_HISTORY = {
    **dict.fromkeys(("iteration", "n_active", "n_nonzero"), Field("count", "h")),
    **dict.fromkeys(("seconds", "passes", "primal", "dual", "gap"), Field("real", "h")),
}
_SOLVE = {
    "B": Field("number", "d q"),
    "intercept": Field("number", "q"),
    **dict.fromkeys(("primal", "dual", "gap", "n_passes", "seconds"), _REAL),
    "history": Field("History"),
    "active": Field("index", "a"),
    "screened_at": Field("moment", "d"),
    "clusters": Field("count", "d"),
    "n_iter": _COUNT,
    "status": Field("status"),
}
_POINT = {
    "alpha": Field("number"),
    "support": Field("index", "k"),
    "rows": Field("number", "k q"),
    "intercept": Field("number", "q"),
    "clusters": Field("count", "k"),
    **dict.fromkeys(("primal", "gap", "loss", "deviance_ratio", "n_passes", "seconds"), _REAL),
    "n_iter": _COUNT,
    "status": Field("status"),
    "n_selected": _COUNT,
}
_PATH = {
    "n_features": Field("size", "d"),
    "weights": Field("number", "p"),
    "unpenalized": Field("index", "u"),
    "points": Field("points", "n"),
    "loss": _TEXT,
    "fit_intercept": Field("truth"),
    "alpha_max": _REAL,
    "null_loss": _REAL,
    "stopped_because": Field("reason"),
    "feature_names": Field("names", "d", is_optional=True),
    "classes": Field("labels", "q", is_optional=True),
    "target_names": Field("names", "q", is_optional=True),
}
_ESTIMATOR = {
    "n_features_in_": Field("size", "d"),
    "coef_": Field("number", "t d"),
    "intercept_": Field("number", "t"),
    "alpha_": Field("positive"),
    "weights_": Field("number", "p"),
    "unpenalized_": Field("index", "u"),
    "clusters_": Field("count", "d"),
    "dual_gap_": _REAL,
    "n_iter_": _COUNT,
    "screened_fraction_": _REAL,
    "solve_result_": Field("SolveResult"),
    "feature_names_in_": Field("names", "d", is_optional=True),
    "target_names_": Field("names", "t", is_optional=True),
    "penalized_coef_": Field("number", "t d", is_optional=True),
    "penalized_intercept_": Field("number", "t", is_optional=True),
}
_CLASSIFIER = {"classes_": Field("labels", "q")}
_SEARCH = {
    "alphas_": Field("number", "n"),
    "best_index_": Field("size", "i"),
    "path_": Field("PathResult"),
    "search_results_": Field("searches"),
    "score_path_": Field("real", "n f", is_optional=True),
    "mean_score_path_": Field("real", "n", is_optional=True),
    "std_error_path_": Field("real", "n", is_optional=True),
    "criterion_path_": Field("real", "n", is_optional=True),
    "best_score_": Field("real", is_optional=True),
    "selection_frequency_": Field("count", "d", is_optional=True),
}
#: One of the weight sequences that were searched; each has its own alphas.
_SEARCHED = {
    "weights": Field("number", "p"),
    "alphas": Field("number", "m"),
    "best_index": _COUNT,
    **{
        name.removesuffix("_"): field._replace(shape=field.shape.replace("n", "m"))
        for name, field in _SEARCH.items()
        if field.is_optional
    },
}
_PARAMS = {"eps": Field("number")}
_SCHEMAS = {"History": _HISTORY, "SolveResult": _SOLVE, "PathPoint": _POINT, "PathResult": _PATH}
#: Letters that mean the same in an object and in those that it holds.
_SHARED = ("d", "q", "h")


class Damage(ValueError):
    """What is wrong with something that was read, and where."""


def check_object(obj: Any) -> None:
    """Refuse an object that lacks something, or whose parts do not belong together."""
    _check(obj, {}, type(obj).__name__)


def _check(obj: Any, outside: dict[str, int], place: str) -> None:
    sizes = {letter: size for letter, size in outside.items() if letter in _SHARED}
    if belongs_to(obj, ESTIMATORS):
        _check_estimator(obj, sizes, place)
    elif type(obj).__name__ in _SCHEMAS and belongs_to(obj, RECORDS):
        _check_fields(_SCHEMAS[type(obj).__name__], public_fields(obj), sizes, place)
        if sizes.get("h") == 0:
            raise Damage(f"{place} has no rows")
        _check_penalized(sizes, place)
    outside |= {letter: size for letter, size in sizes.items() if letter in _SHARED}


def _check_estimator(estimator: Any, sizes: dict[str, int], place: str) -> None:
    fitted = fitted_attributes(estimator)
    if not fitted:
        return
    schema: dict[str, Field] = dict(_ESTIMATOR)
    if hasattr(type(estimator), "predict_proba"):
        schema |= _CLASSIFIER
    if "alphas_" in fitted or "alphas" in estimator.get_params(deep=False):
        schema |= _SEARCH
    if getattr(fitted.get("coef_"), "ndim", 2) == 1:  # of a target without dimensions of its own
        flat = {"coef_": "d", "intercept_": "", "penalized_coef_": "d", "penalized_intercept_": ""}
        schema |= {name: schema[name]._replace(shape=shape) for name, shape in flat.items()}
        sizes |= {"t": 1}
    nothing = [name for name in schema if name in fitted and fitted[name] is None]
    if nothing:
        raise Damage(f"{place}.{nothing[0]} is missing")
    params = estimator.get_params(deep=False)
    _check_fields({name: field for name, field in _PARAMS.items() if name in params}, params, sizes, place)
    try:
        estimator._settings()
    except (TypeError, ValueError) as error:
        raise Damage(f"a parameter of {place} is wrong: {str(error).rstrip('.')}") from error
    _check_fields(schema, fitted, sizes, place)
    _check_penalized(sizes, place)
    tasks = sizes["q"] if sizes["q"] != 2 or "classes_" not in fitted else 1  # two classes share a row
    if sizes["t"] != tasks:
        raise Damage(f"{place}.coef_ has {sizes['t']} rows, but {tasks} belong to the {sizes['q']} tasks of the fit")
    if sizes.get("i", 0) >= sizes.get("n", 1):
        raise Damage(f"{place}.best_index_ is {sizes['i']}, but there are {sizes['n']} alphas")


def _check_penalized(sizes: Mapping[str, int], place: str) -> None:
    if "p" in sizes and sizes["p"] + sizes["u"] != sizes["d"]:
        raise Damage(
            f"{place} has {sizes['p']} weights and {sizes['u']} unpenalized features, together not its {sizes['d']} "
            "features"
        )


def _check_fields(schema: Mapping[str, Field], values: Mapping[str, Any], sizes: dict[str, int], place: str) -> None:
    for name, field in schema.items():
        value = values.get(name)
        if value is None:
            if not field.is_optional:
                raise Damage(f"{place}.{name} is missing")
            continue
        _check_value(field, value, sizes, f"{place}.{name}")


def _check_value(field: Field, value: Any, sizes: dict[str, int], place: str) -> None:
    kind = field.kind
    if kind in _SCHEMAS:
        if type(value).__name__ != kind:
            raise Damage(f"{place} is a {type(value).__name__}, not a {kind}")
        _check(value, sizes, place)
    elif kind == "points":
        _check_points(field, value, sizes, place)
    elif kind == "searches":
        _check_searches(value, sizes, place)
    elif kind == "reason":
        _check_word(value, REASONS, place)
    elif kind == "status":
        _check_word(value, STATUSES, place)
    elif kind == "size":
        if not _is_integer(value) or value < 0:
            raise Damage(f"{place} is {_shown(value)}, not a number of things")
        _bind(field.shape, int(value), sizes, place)
    elif kind in _PLAIN_TYPES:
        if not isinstance(value, _PLAIN_TYPES[kind]):
            raise Damage(f"{place} is {_shown(value)}, not {kind}")
    elif field.shape:
        _check_array(field, value, sizes, place)
    else:
        _check_scalar(kind, value, place)


_PLAIN_TYPES: dict[str, Any] = {"text": str, "truth": bool | np.bool_}


def _check_word(value: Any, words: Iterable[str], place: str) -> None:
    if not isinstance(value, str) or value not in words:
        raise Damage(f"{place} is {_shown(value)}, not one of {', '.join(words)}")


def _check_searches(value: Any, sizes: dict[str, int], place: str) -> None:
    if not isinstance(value, list):
        raise Damage(f"{place} is {_shown(value)}, not a list")
    for i, found in enumerate(value):
        if not isinstance(found, dict):
            raise Damage(f"{place}[{i}] is {_shown(found)}, not a dictionary")
        if unknown := sorted(set(found) - set(_SEARCHED)):
            raise Damage(f"{place}[{i}] has {unknown[0]!r}, which nothing reads")
        own: dict[str, int] = {letter: sizes[letter] for letter in ("d", "p", "f") if letter in sizes}
        _check_fields(_SEARCHED, found, own, f"{place}[{i}]")
        if found["best_index"] >= own["m"]:
            raise Damage(f"{place}[{i}].best_index is {found['best_index']}, but there are {own['m']} alphas")


def _check_points(field: Field, value: Any, sizes: dict[str, int], place: str) -> None:
    if not isinstance(value, tuple) or not value:
        raise Damage(f"{place} is {_shown(value)}, not a tuple of points")
    for i, point in enumerate(value):
        if type(point).__name__ != "PathPoint":
            raise Damage(f"{place}[{i}] is a {type(point).__name__}, not a PathPoint")
        _check(point, sizes, f"{place}[{i}]")
        if i and not point.alpha <= value[i - 1].alpha:
            raise Damage(f"{place}[{i}] has the alpha {point.alpha!r}, larger than the one before it")
    _bind(field.shape, len(value), sizes, place)


def _check_scalar(kind: str, value: Any, place: str) -> None:
    is_number = isinstance(value, _NUMBERS) and not isinstance(value, bool)
    if not is_number or (isinstance(value, int) and abs(value) >= 2**63):  # which no array holds
        raise Damage(f"{place} is {_shown(value)}, not a number")
    if kind == "number" and not np.isfinite(value):
        raise Damage(f"{place} is {_shown(value)}, not a finite number")
    if kind == "positive" and not 0.0 < value < np.inf:
        raise Damage(f"{place} is {_shown(value)}, not a positive number")
    if kind == "count" and (not _is_integer(value) or value < 0):
        raise Damage(f"{place} is {_shown(value)}, not a count")


def _is_integer(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _check_array(field: Field, value: Any, sizes: dict[str, int], place: str) -> None:
    """Shape first, then what the entries must be."""
    letters = field.shape.split()
    if not isinstance(value, np.ndarray):
        raise Damage(f"{place} is {_shown(value)}, not an array")
    if value.ndim != len(letters):
        raise Damage(f"{place} has shape {value.shape}, but {len(letters)} dimensions are needed")
    for axis, letter in enumerate(letters):
        _bind(letter, value.shape[axis], sizes, f"{place} of shape {value.shape}")
    kinds, is_good, what = _ENTRIES[field.kind]
    if value.dtype.kind not in kinds or not is_good(value, sizes):
        raise Damage(f"{place} must hold {what}, got an array of dtype {value.dtype} that does not")


def _bind(letter: str, size: int, sizes: dict[str, int], place: str) -> None:
    if sizes.setdefault(letter, size) != size:
        raise Damage(f"{place} has {size} {_MEANINGS.get(letter, 'entries')}, other parts have {sizes[letter]}")


_MEANINGS = {"d": "features", "q": "tasks", "t": "targets", "n": "alphas", "p": "weights", "u": "unpenalized features"}


def _are_labels(values: Any, sizes: Mapping[str, int]) -> bool:
    items = values.tolist()
    return None not in items and len(items) > 1 and len(set(items)) == len(items) and all(x == x for x in items)


#: Kinds of dtype of an array, what must hold for its entries, and how it is called.
_ENTRIES: dict[str, Any] = {
    "number": ("f", lambda values, sizes: np.isfinite(values).all(), "finite numbers"),
    "real": ("f", lambda values, sizes: True, "real numbers"),
    "moment": (
        "iu",
        lambda values, sizes: values.min(initial=-1) >= -1 and values.max(initial=-1) < sizes["h"],
        "numbers of rows of the history, or -1",
    ),
    "count": ("iu", lambda values, sizes: values.min(initial=0) >= 0, "counts"),
    "index": (
        "iu",
        lambda values, sizes: values.min(initial=0) >= 0 and values.max(initial=-1) < sizes["d"],
        "numbers of features",
    ),
    "names": ("OU", lambda values, sizes: all(isinstance(name, str) for name in values.tolist()), "names"),
    "labels": ("OUSbiufMm", _are_labels, "different labels, none of them missing"),
}


def _shown(value: Any) -> str:
    text = repr(value)
    return f"{text[:40]}..." if len(text) > 43 else text
