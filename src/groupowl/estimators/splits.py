"""Folds from the parameter ``cv`` of the estimators."""

from __future__ import annotations

import numbers
from collections.abc import Iterable
from typing import Any

import numpy as np
from sklearn.model_selection import KFold, StratifiedKFold

from .._typing import FloatArray
from ..model_selection import Fold, check_folds

# Folds by default, where there are so many samples (of each class).
_DEFAULT_FOLDS = 5


def make_folds(cv: Any, X: Any, y: Any, classes: Any, sample_weight: FloatArray, params: dict[str, Any]) -> list[Fold]:
    """Folds of the samples of positive weight; ``params`` are for a splitter, and no others take any."""
    if params.get("groups") is not None and not hasattr(cv, "split"):
        raise ValueError(
            f"groups were given, but cv={cv!r} does not keep groups together. "
            "Use a splitter that does, for example cv=sklearn.model_selection.GroupKFold()."
        )
    if cv is None or isinstance(cv, numbers.Integral):
        return check_folds(_default_splits(cv, y, classes, sample_weight), sample_weight)
    if hasattr(cv, "split") and not isinstance(cv, str | bytes | type):
        return check_folds(cv.split(X, y, **params), sample_weight)
    if isinstance(cv, Iterable) and not isinstance(cv, str | bytes):
        return check_folds(cv, sample_weight)
    raise TypeError(
        "cv must be None, a number of folds, a splitter with a method split, or an iterable of (train, test) indices; "
        f"got {cv!r} of type {type(cv).__name__}."
    )


def _default_splits(cv: Any, y: Any, classes: Any, sample_weight: FloatArray) -> list[Any]:
    """Consecutive folds of the samples of positive weight, so that weight zero is the same as no sample."""
    present = np.flatnonzero(sample_weight)
    labels = None if classes is None else y[present]
    n_folds = _check_count(cv, len(present), classes, labels)
    splitter = KFold(n_folds) if classes is None else StratifiedKFold(n_folds)
    return [(present[train], present[test]) for train, test in splitter.split(np.zeros((len(present), 1)), labels)]


def _check_count(cv: Any, n_samples: int, classes: Any, labels: Any) -> int:
    """The number of folds asked for, if every fold can test a sample (of each class)."""
    if cv is not None and (isinstance(cv, bool) or cv < 2):
        raise ValueError(f"cv must be at least 2 folds, got {cv!r}.")
    if n_samples < 2:
        raise ValueError(
            f"X: cross-validation needs at least 2 samples of positive weight, got n_samples = {n_samples}. "
            "An information criterion, for example selection='bic', needs no folds."
        )
    wanted = _DEFAULT_FOLDS if cv is None else int(cv)
    if classes is None:
        if cv is not None and wanted > n_samples:
            raise ValueError(
                f"cv={cv} folds need at least as many samples of positive weight, got {n_samples}. Use fewer folds."
            )
        return min(wanted, n_samples)
    counts = np.array([np.count_nonzero(labels == label) for label in classes])
    rarest = int(np.argmin(counts))
    least, most = int(counts[rarest]), wanted if cv is not None else 2
    if least < most:
        name = classes[rarest : rarest + 1].tolist()[0]
        raise ValueError(
            f"y: class {name!r} has {least} sample{'s' if least != 1 else ''} of positive weight, but {most} folds "
            f"need at least {most} of every class. Use fewer folds, merge or remove the class, or give a splitter that "
            "leaves classes apart, for example cv=KFold(5, shuffle=True)."
        )
    return min(wanted, least)
