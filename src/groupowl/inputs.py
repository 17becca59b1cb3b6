"""Data as users of paths and estimators give them: names of features, labels of classes, unpenalized columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from ._checks import rectangular_array, refuse_mask
from ._text import listed
from ._typing import FloatArray, IndexArray


def feature_names(X: Any) -> list[str] | None:
    """Names of the columns of a pandas or polars frame or of a design, where they are text; None for anything else."""
    names = getattr(X, "columns", None)
    if callable(names):  # of a design
        names = getattr(X, "feature_names", None)
    if names is None or not all(isinstance(name, str) for name in names):
        return None
    return list(names)


def coefficient_columns(n_columns: int, names: Any = None) -> list[str]:
    """Names of the columns of a frame of coefficients: ``coef``, or ``coef_<target or class>`` where there are more."""
    if n_columns == 1:
        return ["coef"]
    return [f"coef_{name}" for name in (range(n_columns) if names is None else names)]


def import_pandas(what: str) -> Any:
    """The pandas module, or an error that says what needs it."""
    try:
        import pandas
    except ModuleNotFoundError as error:
        raise ImportError(f"{what} needs pandas, which is not installed: pip install pandas.") from error
    return pandas


def exclusive_classes(fitted: Mapping[str, Any]) -> Any:
    """Labels of the classes that fitted attributes are about, if a sample has exactly one of them; else None."""
    return None if fitted.get("multilabel_", False) else fitted.get("classes_")


def task_names(fitted: Mapping[str, Any]) -> Any:
    """What the targets, labels or classes of fitted attributes are called, or None."""
    return fitted.get("target_names_", fitted.get("classes_"))


def plain_labels(y: Any) -> Any:
    """Labels as a flat array; objects that are all integers, or all truth values, become an array of these."""
    labels = rectangular_array("y", y)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.dtype.kind != "O" or labels.ndim != 1:
        return labels
    are_truth = [isinstance(label, bool | np.bool_) for label in labels]
    are_whole = not any(are_truth) and all(isinstance(label, int | np.integer) for label in labels)
    # integers are objects again where they are too large
    return np.array(labels.tolist()) if are_whole or all(are_truth) else labels


def encode_labels(y: Any, sample_weight: FloatArray | None = None) -> tuple[Any, FloatArray]:
    """Classes, sorted, and one-hot targets for labels of any kind.

    A class whose samples all have weight zero is not there.
    """
    labels = check_labels(y)
    classes = classes_of(distinct_labels(labels if sample_weight is None else labels[sample_weight > 0]))
    return classes, one_hot(labels, classes)


def label_indicators(y: Any) -> FloatArray:
    """Columns of 0 and 1 that say which labels a sample has, as numbers."""
    is_other = ~((y == 0) | (y == 1))
    if y.ndim != 2 or is_other.any():
        found = f"it has {y[is_other][:1].tolist()[0]!r}" if is_other.any() else f"its shape is {y.shape}"
        raise ValueError(
            f"y must be one label per sample, or a matrix of 0 and 1 with a column for each label, but {found}. "
            "MultiLabelBinarizer of scikit-learn makes such a matrix from lists of labels."
        )
    return np.asarray(y, dtype=np.float64)


def check_labels(y: Any) -> Any:
    """One label per sample, none of them missing."""
    labels = plain_labels(y)
    if labels.ndim != 1:
        raise ValueError(f"y must be one label per sample, got an array of shape {labels.shape}.")
    if np.iscomplexobj(labels) or (labels.dtype.kind == "O" and any(map(np.iscomplexobj, labels))):
        what = f"y must hold labels of classes, got complex numbers such as {labels[:1].tolist()[0]!r}"
        raise ValueError(f"{what}. Complex data not supported: use integers or text.")
    n_missing = sum(label is None or label != label for label in labels) if labels.dtype.kind in "Of" else 0
    if n_missing:
        raise ValueError(f"y has {n_missing} missing labels (None or NaN). Remove the samples without a label.")
    return labels


def distinct_labels(labels: Any) -> Any:
    """The labels that occur, sorted."""
    try:
        return np.unique(labels)
    except TypeError as error:
        kinds = ", ".join(sorted({type(label).__name__ for label in labels}))
        remedy = "Use one kind, for example y.astype(str)."
        raise TypeError(f"y mixes labels of different kinds ({kinds}). {remedy}") from error


def classes_of(labels: Any) -> Any:
    """The distinct labels of all samples, if they are at least two."""
    if len(labels) < 2:
        what = f"y has one class only, {labels[:1].tolist()}: classification needs at least two classes"
        raise ValueError(f"{what}. Check the labels, or the samples of positive weight.")
    return labels


def one_hot(labels: Any, classes: Any) -> FloatArray:
    """A column for each class; samples of weight zero whose class is not there have any class."""
    Y = (labels[:, None] == classes).astype(np.float64)
    Y[~Y.any(axis=1), 0] = 1.0
    return Y


def resolve_columns(argument: str, columns: Any, n_features: int, names: Iterable[str] | None) -> IndexArray:
    """Sorted indices of columns that were given by name, by index or as a mask; None means none."""
    if columns is None:
        return np.zeros(0, dtype=np.intp)
    refuse_mask(argument, columns)
    given: list[Any] = list(columns) if isinstance(columns, Iterable) and not isinstance(columns, str) else [columns]
    if given and all(isinstance(item, bool | np.bool_) for item in given):
        if len(given) != n_features:
            raise ValueError(f"{argument} as a mask must have one entry per feature: {n_features}, got {len(given)}.")
        given = list(np.flatnonzero(given))
    known = None if names is None else list(names)
    found = sorted({_column_index(argument, item, n_features, known) for item in given})
    if n_features and len(found) == n_features:
        raise ValueError(f"{argument} has all {n_features} features: at least one must be penalized.")
    return np.array(found, dtype=np.intp)


def _column_index(argument: str, item: Any, n_features: int, known: list[str] | None) -> int:
    if not isinstance(item, str):
        if isinstance(item, bool) or not isinstance(item, int | np.integer):
            given = f"{item!r} of type {type(item).__name__}"
            raise TypeError(f"{argument} must hold names or indices of columns, got {given}.")
        if not -n_features <= item < n_features:
            raise ValueError(f"{argument} has the index {item!r}, but X has {n_features} columns.")
        return int(item) % n_features
    what = f"{argument} has the name {item!r}"
    if known is None:
        raise ValueError(f"{what}, but X has no column names. Give X as a data frame, or an index.")
    found = [j for j, name in enumerate(known) if name == item]
    if not found:
        raise ValueError(f"{what}, which is no column of X. Columns: {listed(known)}.")
    if len(found) > 1:
        remedy = "Rename them, or give the index of the one that is meant."
        raise ValueError(f"{what}, which {len(found)} columns of X have: {found}. {remedy}")
    return found[0]
