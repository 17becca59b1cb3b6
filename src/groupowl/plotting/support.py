"""Numbers and names for pictures, from whatever holds them: estimators, paths, results of solves."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._typing import FloatArray, IndexArray
from ..norm.kernels import falling_order
from ..solvers import SolveResult


@dataclass(frozen=True, eq=False)
class Selection:
    """The non-zero rows of coefficients: by cluster, the unpenalized ones (cluster 0) first, then by falling norm."""

    features: IndexArray
    names: list[str]
    rows: FloatArray  # (n_selected, n_targets)
    clusters: IndexArray
    tasks: list[str]

    @property
    def norms(self) -> FloatArray:
        """Norms of the rows."""
        return np.linalg.norm(self.rows, axis=1)


def selection_of_estimator(estimator: Any, feature_names: Any, task_names: Any) -> Selection:
    """What a fitted estimator selected."""
    clusters = np.asarray(fitted_attribute(estimator, "clusters_", "Use an estimator of groupowl."))
    rows = np.atleast_2d(estimator.coef_).T.astype(np.float64)
    features = np.flatnonzero(rows.any(axis=1))
    names = feature_names if feature_names is not None else getattr(estimator, "feature_names_in_", None)
    tasks = getattr(estimator, "classes_", getattr(estimator, "target_names_", None))
    if task_names is not None:
        tasks = task_names
    elif tasks is not None:
        tasks = tasks[-rows.shape[1] :]  # two classes share a column, which is that of the second
    return _sorted_selection(len(rows), features, rows[features], clusters[features], names, tasks)


def selection_of_result(result: Any, feature_names: Any, task_names: Any) -> Selection:
    """What a solve or one point of a path selected."""
    if isinstance(result, SolveResult):
        features = result.support
        rows, clusters, count = result.B[features], result.clusters[features], len(result.B)
    elif hasattr(result, "support") and hasattr(result, "rows"):
        features, rows, clusters = (np.asarray(value) for value in (result.support, result.rows, result.clusters))
        count = int(features.max(initial=-1)) + 1 if feature_names is None else len(feature_names)
    else:
        raise TypeError(
            f"result must be a SolveResult or a point of a path (path[i]), got {type(result).__name__}. "
            "Use from_estimator for estimators."
        )
    return _sorted_selection(count, features, rows, clusters, feature_names, task_names)


def _sorted_selection(
    n_features: int, features: IndexArray, rows: FloatArray, clusters: IndexArray, feature_names: Any, task_names: Any
) -> Selection:
    order = falling_order(np.linalg.norm(rows, axis=1))
    order = order[np.argsort(clusters[order], kind="stable")]
    names = names_of(features[order], feature_names, n_features)
    if task_names is None:
        task_names = ["y"] if rows.shape[1] == 1 else [f"task {k}" for k in range(rows.shape[1])]
    tasks = _checked_names("task_names", task_names, rows.shape[1])
    return Selection(features[order], names, rows[order], clusters[order], [str(name) for name in tasks])


def names_of(features: IndexArray, names: Any, n_features: int) -> list[str]:
    """Names of some features; where there are no names, x0, x1, ... like scikit-learn's."""
    if names is None:
        return [f"x{j}" for j in features.tolist()]
    listed = _checked_names("feature_names", names, n_features)
    return [str(listed[j]) for j in features.tolist()]


def _checked_names(argument: str, names: Any, count: int) -> Sequence[Any]:
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise TypeError(f"{argument} must be a list of names, got {names!r}.")
    listed = names if isinstance(names, Sequence) else list(names)
    if len(listed) != count:
        raise ValueError(f"{argument} must have one name for each of the {count}, got {len(listed)} names.")
    return listed


def public_rows(path: Any, point: Any) -> FloatArray:
    """Non-zero rows at a point of a path; two classes become one difference, as in ``coef_``."""
    is_binary = path.classes is not None and len(path.classes) == 2
    return point.rows[:, 1:] - point.rows[:, :1] if is_binary else point.rows


def fitted_attribute(estimator: Any, attribute: str, remedy: str) -> Any:
    """An attribute that only some estimators have after ``fit``; the message says which."""
    if isinstance(estimator, type) or not hasattr(estimator, "fit"):
        raise TypeError(f"estimator must be a fitted estimator, got {estimator!r} of type {type(estimator).__name__}.")
    check_is_fitted(estimator)
    if not hasattr(estimator, attribute):
        raise TypeError(f"estimator: {type(estimator).__name__} has no {attribute}. {remedy}")
    return getattr(estimator, attribute)
