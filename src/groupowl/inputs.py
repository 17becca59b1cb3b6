"""Data as users give them: names of features, labels of classes, unpenalized columns, groups of columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from ._checks import (
    as_float_array,
    check_data_shape,
    check_length,
    column_names,
    finite_number,
    lookup,
    numeric_array,
    rectangular_array,
    refuse_mask,
    truth_value,
)
from ._text import listed
from ._typing import FloatArray, IndexArray
from .norm.options import GROUP_SCALES, PLAIN, PenaltyOptions, numbered_by_first


def feature_names(X: Any) -> list[str] | None:
    """Names of the columns of a pandas or polars frame or of a design, where they are text; None for anything else."""
    names = getattr(X, "columns", None)
    if callable(names):  # of a design
        names = getattr(X, "feature_names", None)
    if names is None or not all(isinstance(name, str) for name in names):
        return None
    return list(names)


def names_in_groups(names: Any, groups: Any) -> list[str]:
    """Names of features, with that of their group where it has several: ``T (stage)``; levels of a category say it."""
    sizes = Counter(map(str, groups))
    shown = []
    for name, group in zip(map(str, names), map(str, groups), strict=True):
        says_it = sizes[group] == 1 or name.startswith(f"{group}=")
        shown.append(name if says_it else f"{name} ({group})")
    return shown


def coefficient_columns(n_columns: int, names: Any = None, kind: str = "coef") -> list[str]:
    """Names of the columns of a frame of coefficients: ``coef``, or ``coef_<target or class>`` where there are more.

    ``kind`` takes the place of ``coef``: ``scaled`` for those on the scale of the penalty.
    """
    if n_columns == 1:
        return [kind]
    return [f"{kind}_{name}" for name in (range(n_columns) if names is None else names)]


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
    is_other = ~((y == 0) | (y == 1) | (y != y))  # NaN, the only one that differs from itself, was not observed
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
        raise ValueError(
            f"y has {n_missing} missing labels (None or NaN). Remove the samples without a label: with classes that "
            "exclude each other they say nothing. Label indicators may have gaps."
        )
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


def resolve_columns(
    argument: str, columns: Any, n_features: int, names: Iterable[str] | None, *, may_be_all: bool = False
) -> IndexArray:
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
    if n_features and len(found) == n_features and not may_be_all:
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


# What is asked of the penalty ------------------------------------------------------------------------------


def _checked_ridge(ridge: Any) -> float:
    if isinstance(ridge, list | tuple | np.ndarray) and np.ndim(ridge) == 1:
        raise ValueError(
            f"ridge={ridge!r} is a list to choose from, which needs an estimator with CV at the end of its name, for "
            "example GroupOWLRegressorCV. Give one number."
        )
    return finite_number("ridge", ridge, at_least=0.0)


def penalty_options(
    n_features: int,
    names: Iterable[str] | None,
    *,
    feature_groups: Any = None,
    group_scale: Any = "size",
    penalty_factor: Any = None,
    ridge: Any = 0.0,
    positive: Any = False,
) -> PenaltyOptions:
    """Penalty options from user arguments; groups of one column and factors of 1 count as none."""
    is_plain = feature_groups is None and penalty_factor is None and type(ridge) is float and ridge == 0.0
    if is_plain and positive is False and group_scale == "size":  # what nearly everybody asks for
        return PLAIN
    known = None if names is None else list(names)
    penalty_factor, positive = _by_names(penalty_factor, known), _by_names(positive, known)
    lookup("group_scale", group_scale, dict.fromkeys(GROUP_SCALES))
    options = PenaltyOptions(
        penalty_factor=None if penalty_factor is None else _resolve_factor(penalty_factor, n_features, known),
        ridge=_checked_ridge(ridge),
        signs=_resolve_signs(positive, n_features, known),
    )
    if feature_groups is not None:
        groups, group_names = _resolve_groups(feature_groups, n_features, known)
        if len(group_names) < n_features:
            options = replace(options, feature_groups=groups, group_names=group_names, group_scale=group_scale)
    return PLAIN if options.is_plain else options


def _by_names(given: Any, known: list[str] | None) -> Any:
    """A series of pandas whose index has names as a dict, where columns have names; anything else as it is."""
    if known is None or not hasattr(given, "iloc") or not all(isinstance(name, str) for name in given.index):
        return given
    return dict(zip(given.index, given, strict=True))


def _resolve_signs(given: Any, n_features: int, known: list[str] | None) -> FloatArray | None:
    """The sign that coefficients of each column must have, 0 for any; None where no column has one."""
    if given is None or isinstance(given, bool | np.bool_):
        return np.ones(n_features) if given else None
    signs = np.zeros(n_features)
    items = given if isinstance(given, Mapping) else _as_list(given)
    if isinstance(items, list) and (all(isinstance(item, str) for item in items) or _are_indices(items, n_features)):
        items = dict.fromkeys(items, 1.0)
    if isinstance(items, Mapping):
        for item, sign in items.items():
            signs[_column_index("positive", item, n_features, known)] = sign
    else:
        signs = as_float_array("positive", items, ndim=(1,)).astype(np.float64)
    if len(signs) != n_features or not np.isin(signs, (-1.0, 0.0, 1.0)).all():
        raise ValueError(
            f"positive must be True, names or indices of columns, or a sign for each of the {n_features} columns of X: "
            f"1 for not negative, -1 for not positive, 0 for any; names or indices with signs, for example "
            f"{{'age': -1}}, leave all others free. Got {given!r}."
        )
    return signs if signs.any() else None


def _are_indices(items: list[Any], n_features: int) -> bool:
    """Whether whole numbers are indices of columns, each once, and not signs of all columns."""
    if not items or not all(isinstance(item, int | np.integer) and not isinstance(item, bool) for item in items):
        return False
    are_signs = len(items) == n_features and all(abs(item) <= 1 for item in items)
    return not are_signs and min(items) >= 0 and len(set(items)) == len(items)


def _resolve_groups(given: Any, n_features: int, known: list[str] | None) -> tuple[IndexArray, tuple[str, ...]]:
    """The group of each column, and the names of groups; columns that are not named are groups of one."""
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise TypeError(
            f"feature_groups must be a label per column, or lists of names or indices, got {given!r} of type "
            f"{type(given).__name__}."
        )
    if isinstance(given, np.ndarray) and given.shape == (n_features,) and given.dtype.kind in "iu":
        groups = numbered_by_first(given)  # numbers only: in a tenth of the time
        first = np.flatnonzero(np.diff(np.maximum.accumulate(groups), prepend=-1))
        return groups, tuple(map(str, given[first].tolist()))
    labels_by_name = _by_names(given, known)
    if labels_by_name is not given:
        labels: list[Any] = [None] * n_features
        for name, label in labels_by_name.items():
            labels[_column_index("feature_groups", name, n_features, known)] = label
        return _labelled_groups(labels, known)
    if isinstance(given, Mapping):
        members = {str(name): _as_list(columns) for name, columns in given.items()}
    else:
        items = list(given)
        is_list = [isinstance(item, Iterable) and not isinstance(item, str) for item in items]
        if items and all(is_list):
            members = {f"group {k}": list(item) for k, item in enumerate(items, start=1)}
        elif any(is_list) or len(items) != n_features:
            raise ValueError(
                f"feature_groups must have a label for each of the {n_features} columns of X, got {len(items)}; or be "
                "lists of names or indices, one for each group, for example [['a', 'b'], ['c', 'd']]."
            )
        else:
            return _labelled_groups(items, known)
    numbers = np.arange(n_features)
    owner: dict[int, str] = {}
    for name, columns in members.items():
        found = [_column_index("feature_groups", item, n_features, known) for item in columns]
        for j in found:
            if j in owner:
                column = repr(known[j]) if known is not None else j
                where = "twice" if owner[j] == name else f"and in {owner[j]!r}"
                raise ValueError(
                    f"feature_groups has the column {column} in the group {name!r} {where}: leave one out."
                )
            owner[j] = name
        numbers[found] = min(found, default=0)
    groups = numbered_by_first(numbers)
    first = np.unique(groups, return_index=True)[1]
    return groups, _different([owner.get(int(j)) or _column_name(int(j), known) for j in first])


def _labelled_groups(labels: list[Any], known: list[str] | None) -> tuple[IndexArray, tuple[str, ...]]:
    """The same from a label per column; columns without one, None or NaN, are alone."""
    groups = np.empty(len(labels), dtype=np.intp)
    numbers: dict[str | int, int] = {}
    for j, label in enumerate(labels):
        key = j if label is None or label != label else str(label)
        groups[j] = numbers.setdefault(key, len(numbers))
    return groups, _different([key if isinstance(key, str) else _column_name(key, known) for key in numbers])


def _column_name(j: int, known: list[str] | None) -> str:
    return f"column {j}" if known is None else known[j]


def _different(names: list[str]) -> tuple[str, ...]:
    """Names of groups, refused where a group has the name of a column outside of it."""
    if len(set(names)) < len(names):
        repeated = next(name for name in names if names.count(name) > 1)
        raise ValueError(
            f"feature_groups has a group {repeated!r}, which is the name of a column outside of it: rename it."
        )
    return tuple(names)


def _as_list(columns: Any) -> list[Any]:
    return list(columns) if isinstance(columns, Iterable) and not isinstance(columns, str) else [columns]


def _resolve_factor(given: Any, n_features: int, known: list[str] | None) -> FloatArray | None:
    """A factor for each column, or None where all are 1."""
    if isinstance(given, Mapping):
        factor = np.ones(n_features)
        for item, value in given.items():
            factor[_column_index("penalty_factor", item, n_features, known)] = value
    elif isinstance(given, str):
        raise ValueError(f"penalty_factor must be numbers here, got {given!r}: estimators take 'adaptive'.")
    else:
        factor = as_float_array("penalty_factor", given, ndim=(1,)).copy()
    if len(factor) != n_features:
        raise ValueError(
            f"penalty_factor must have one factor for each of the {n_features} columns of X, got {len(factor)}. Names "
            "with factors, for example {'age': 0.0}, leave all others at 1."
        )
    wrong = np.flatnonzero(~(factor >= 0.0))
    if len(wrong):
        raise ValueError(
            f"penalty_factor must not be negative or NaN, got {factor[wrong[0]]:g} for column {wrong[0]}. 0 means no "
            "penalty, infinity leaves a column out."
        )
    if not np.any((factor > 0.0) & (factor < np.inf)):
        raise ValueError("penalty_factor is 0 or infinite for all columns: at least one must be penalized.")
    return None if np.all(factor == 1.0) else factor


# Own samples for each task -----------------------------------------------------------------------------------


def stack_tasks(Xs: Iterable[Any], ys: Iterable[Any], *, balance: bool = False) -> tuple[Any, ...]:
    """Combine tasks with separate samples (studies, populations, subjects) into one problem.

    The samples of all tasks are stacked, and each has a target for its own task only; the others are NaN, which means
    "not observed". A feature is then selected for all tasks or for none, although no sample is shared. Products take
    no longer than those of the separate tasks.

    Parameters
    ----------
    Xs : list of array-like, sparse matrix or data frame
        Data of each task, all with the same columns.
    ys : list of array-like of shape (n_samples of the task,)
        Targets of each task; NaN where they were not observed.
    balance : bool, default=False
        Whether tasks count the same, however many samples they have: then there is a third result, the weights.

    Returns
    -------
    X : ndarray, sparse array or data frame
        All samples, those of the first task first.
    Y : ndarray of shape (n_samples, n_tasks)
        Their targets.
    sample_weight : ndarray of shape (n_samples,)
        With ``balance=True`` only: weights with the same sum in every task, 1 on average.

    Examples
    --------
    >>> import numpy as np
    >>> import groupowl as go
    >>> X, Y = go.stack_tasks([np.ones((2, 3)), np.zeros((1, 3))], [[1.0, 2.0], [3.0]])
    >>> X.shape, Y.tolist()
    ((3, 3), [[1.0, nan], [2.0, nan], [nan, 3.0]])
    """
    truth_value("balance", balance)
    if isinstance(Xs, Mapping) or isinstance(ys, Mapping):
        raise TypeError("Xs and ys must be lists with an entry per task, got a dict. Use list(Xs.values()).")
    Xs, ys = list(Xs), list(ys)
    if len(Xs) == 0 or len(Xs) != len(ys):
        raise ValueError(f"Xs and ys must have one entry per task, got {len(Xs)} and {len(ys)}.")
    targets = []
    for k, (X, y) in enumerate(zip(Xs, ys, strict=True)):
        values = as_float_array(f"ys[{k}]", y, ndim=(1, 2))
        if values.ndim == 2 and values.shape[1] != 1:
            raise ValueError(
                f"ys[{k}] must be the targets of one task, got shape {values.shape}. Give a list entry each."
            )
        check_data_shape(np.shape(X), f"s[{k}]")
        check_length(f"ys[{k}]", values.shape, np.shape(X)[0])
        targets.append(values.ravel())
    X = _stacked(Xs)
    sizes = np.array([len(values) for values in targets])
    Y = np.full((sizes.sum(), len(sizes)), np.nan)
    Y[np.arange(len(Y)), np.repeat(np.arange(len(sizes)), sizes)] = np.concatenate(targets)
    if not balance:
        return X, Y
    counts = (~np.isnan(Y)).sum(axis=0)
    if not counts.all():
        raise ValueError(f"ys[{int(np.argmin(counts))}] has no observed target. Leave the task out.")
    return X, Y, np.repeat(counts.sum() / (len(counts) * counts), sizes)


def _difference(k: int, own: list[Any] | None, first: list[Any] | None) -> str:
    """Message that says how the columns of a task differ from those of the first, and what to do."""
    if own is None or first is None:
        return f"only one of Xs[0] and Xs[{k}] has names of columns. Give data frames for all, or for none."
    if other := [name for name in own if name not in first]:
        remedy = "Keep those that all tasks have, in one order."
        return f"those of Xs[{k}] have other names than Xs[0]: {listed(other)}. {remedy}"
    return f"those of Xs[{k}] have another order than Xs[0]. Use Xs[{k}][list(Xs[0].columns)]."


def _stacked(Xs: list[Any]) -> Any:
    """The data of all tasks below each other: a data frame, a sparse array or an array, as they are."""
    widths = [np.shape(X)[1] for X in Xs]
    if len(set(widths)) > 1:
        remedy = "Keep those that all tasks have."
        raise ValueError(f"Xs must have the same columns for all tasks, got {widths} columns. {remedy}")
    names = [column_names(X) for X in Xs]
    if any(own != names[0] for own in names):
        k = next(k for k, own in enumerate(names) if own != names[0])
        raise ValueError(f"Xs must have the same columns for all tasks, but {_difference(k, names[k], names[0])}")
    if any(map(sp.issparse, Xs)):
        return sp.vstack([sp.csr_array(X) for X in Xs], format="csr")
    if names[0] is None:
        return np.concatenate([numeric_array(f"Xs[{k}]", X) for k, X in enumerate(Xs)])
    if hasattr(Xs[0], "iloc"):
        return import_pandas("stack_tasks with data frames").concat(Xs, ignore_index=True)
    stacked = Xs[0]
    for X in Xs[1:]:
        stacked = stacked.vstack(X)  # of polars
    return stacked
