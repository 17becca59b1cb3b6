"""The classes that may be stored: an object of any other class is neither written nor made when reading."""

from __future__ import annotations

import inspect
from dataclasses import fields
from typing import Any

from sklearn import model_selection
from sklearn.base import BaseEstimator

from .. import estimators
from ..path import PathPoint, PathResult
from ..solvers import APGD, SPGD, History, SolveResult, WorkingSet

#: Estimators by name; their parameters and fitted attributes are stored.
ESTIMATORS: dict[str, Any] = {
    name: item
    for name, item in vars(estimators).items()
    if name in estimators.__all__ and isinstance(item, type) and issubclass(item, BaseEstimator)
}
#: Results by name; their fields are stored.
RESULTS: dict[str, Any] = {item.__name__: item for item in (PathResult, SolveResult, History)}
#: Further frozen dataclasses that occur inside of those.
RECORDS: dict[str, Any] = RESULTS | {item.__name__: item for item in (PathPoint, WorkingSet, APGD, SPGD)}

_SPLITTER_NAMES = (
    "GroupKFold",
    "GroupShuffleSplit",
    "KFold",
    "LeaveOneGroupOut",
    "LeaveOneOut",
    "LeavePGroupsOut",
    "LeavePOut",
    "PredefinedSplit",
    "RepeatedKFold",
    "RepeatedStratifiedKFold",
    "ShuffleSplit",
    "StratifiedGroupKFold",
    "StratifiedKFold",
    "StratifiedShuffleSplit",
    "TimeSeriesSplit",
)
#: Splitters of scikit-learn by name; the arguments of their constructors are stored.
SPLITTERS: dict[str, Any] = {name: getattr(model_selection, name) for name in _SPLITTER_NAMES}


def belongs_to(obj: Any, classes: dict[str, Any]) -> bool:
    """Whether an object is exactly of one of the classes: a subclass may have state that nobody would store."""
    return classes.get(type(obj).__name__) is type(obj)


def storable_names() -> str:
    """What :func:`groupowl.save` takes, for messages."""
    return ", ".join([*ESTIMATORS, *RESULTS])


def fitted_attributes(estimator: Any) -> dict[str, Any]:
    """What a fit has left on an estimator."""
    return {name: value for name, value in vars(estimator).items() if is_fitted_name(name)}


def is_fitted_name(name: str) -> bool:
    """Whether an attribute of this name is what a fit has left."""
    return (name.endswith("_") and not name.startswith("_")) or name.startswith("_fit")


def public_fields(record: Any) -> dict[str, Any]:
    """Fields of a dataclass; those that begin with an underscore hold functions and have a default."""
    names = [item.name for item in fields(record) if not item.name.startswith("_")]
    return {name: getattr(record, name) for name in names}


def constructor_arguments(splitter: Any) -> dict[str, Any]:
    """Arguments that make an equal splitter; a repeated one keeps some of them in a dictionary."""
    known = vars(splitter) | vars(splitter).get("cvargs", {})
    return {name: known[name] for name in inspect.signature(type(splitter)).parameters if name in known}
