"""Data of a fit: as users give them, and after all checks."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import validate_data

from .._checks import IMPUTE, check_finite, checked_sparse, count_message, rectangular_array, refuse_mask
from .._frames import column_names, complain_of_dates, complain_of_entries, list_columns, repeated_name
from .._text import printable
from .._typing import IndexArray
from ..designs import SufficientStatistics, far_design
from ..inputs import resolve_columns

_MATRIX_CHECKS: dict[str, Any] = {"accept_sparse": ("csr", "csc"), "dtype": [np.float64, np.float32]}


@dataclass(frozen=True, eq=False)
class FitData:
    """Data of a fit after all checks.

    Attributes
    ----------
    X : ndarray, sparse matrix or Design of shape (n_samples, n_features), or SufficientStatistics
        float32 or float64.
    Y : ndarray or dask.array of shape (n_samples, n_targets), or None
        Targets; one-hot rows for classes. Statistics have theirs.
    n_samples, n_features, n_targets : int
        Sizes of X and Y, or of the data behind statistics.
    sample_weight : ndarray or dask.array of shape (n_samples,), or None
        With the weights of classes multiplied in.
    unpenalized : ndarray of int
        Columns that are not penalized.
    is_flat : bool
        Whether y was one-dimensional.
    dtype : dtype
        Precision of the fitted coefficients, whatever a design keeps its entries in.
    names : ndarray of str or None
        Names of the features, where they have names.
    target_names : ndarray of str or None
        Names of the columns of y, where it was a frame.
    classes : ndarray or None
        Labels that the columns of Y stand for.
    is_summarized, is_distributed : bool
        Whether the samples are known by their statistics only, or are on a cluster.
    """

    X: Any
    Y: Any
    n_samples: int
    n_features: int
    n_targets: int
    sample_weight: Any
    unpenalized: IndexArray
    is_flat: bool
    dtype: Any
    names: Any = None
    target_names: Any = None
    classes: Any = None
    is_summarized: bool = False
    is_distributed: bool = False

    def labels(self) -> dict[str, Any]:
        """Fitted attributes that say what features and targets are called."""
        labels: dict[str, Any] = {"n_features_in_": self.n_features}
        if self.names is not None:
            labels["feature_names_in_"] = self.names
        if self.target_names is not None:
            labels["target_names_"] = self.target_names
        if self.classes is not None:
            labels["classes_"] = self.classes
        return labels


def checked_matrix(estimator: Any, X: Any, *, reset: bool) -> tuple[Any, Any]:
    """X as an array or sparse matrix of finite floats, and its names; the estimator stays as it is.

    Data on disk or on a cluster become designs. With ``reset=False`` features must be those of the fit.
    """
    if (design := far_design(X)) is not None:
        names = None if design.feature_names is None else np.asarray(design.feature_names, dtype=object)
        if not reset:
            check_same_features(estimator, design.n_features, names)
        return design, names
    _check_kind(X)
    X = checked_sparse("X", X) if sp.issparse(X) else X  # before scikit-learn converts it
    scratch = copy(estimator)  # validation writes n_features_in_ and feature_names_in_ before all checks are done
    try:
        checked = validate_data(scratch, X, reset=reset, ensure_all_finite=False, **_MATRIX_CHECKS)
    except (TypeError, ValueError) as error:
        complaint = complain_of_entries("X", X if column_names(X) is not None else np.asarray(X))
        reason = printable(error, keep="\n")  # scikit-learn lists names as they are
        if isinstance(error, TypeError):
            raise TypeError(f"X: {reason}" if complaint is None else f"{complaint} ({reason})") from None
        raise ValueError(complaint or f"X: {reason}") from None
    names = getattr(scratch, "feature_names_in_", None)
    _check_finite_columns(checked, names)
    return checked, names


def check_same_features(estimator: Any, n_features: int, names: Any) -> None:
    """Refuse features that are not those of the fit, as scikit-learn does for arrays and frames."""
    kind = type(estimator).__name__
    if n_features != estimator.n_features_in_:
        raise ValueError(
            f"X has {n_features} features, but {kind} is expecting {estimator.n_features_in_} features as input."
        )
    fitted = getattr(estimator, "feature_names_in_", None)
    if names is None or fitted is None or np.array_equal(names, fitted):
        return
    unseen = [repr(name) for name in names if name not in set(fitted)]
    what = f"it has {', '.join(unseen[:5])}, which the fit did not see" if unseen else "they are in another order"
    raise ValueError(f"The feature names of X should match those that {kind} was fitted with, but {what}.")


def summarized_data(estimator: Any, X: SufficientStatistics, y: Any, sample_weight: Any, *, reset: bool) -> FitData:
    """Statistics as the data of a fit; one target is taken as a one-dimensional y."""
    for name, value in (("y", y), ("sample_weight", sample_weight)):
        if value is not None:
            raise ValueError(f"SufficientStatistics know targets and weights already: leave {name} out.")
    if not reset:
        check_same_features(estimator, X.n_features, None)
    unpenalized = resolve_columns("unpenalized", estimator.unpenalized, X.n_features, None)
    sizes = (X.n_samples, X.n_features, X.n_tasks)
    return FitData(X, None, *sizes, None, unpenalized, X.n_tasks == 1, np.dtype(np.float64), is_summarized=True)


def _check_kind(X: Any) -> None:
    """Refuse what scikit-learn converts to something else, or refuses without saying what to do."""
    if X is None:
        raise TypeError("X is None. Give the data as an array of shape (n_samples, n_features).")
    refuse_mask("X", X)
    if isinstance(X, list | tuple):
        X = rectangular_array("X", X)
    dtype = getattr(X, "dtype", None)
    if getattr(dtype, "kind", "") == "c":
        raise ValueError(f"X must hold real numbers, got dtype {dtype}. Complex data not supported.")
    if dates := complain_of_dates("X", X):
        raise TypeError(dates)
    names = column_names(X)
    if names is not None and (repeated := repeated_name(names)) is not None:
        name, columns = repeated
        raise ValueError(
            f"X has {len(columns)} columns of the name {name!r}, {list_columns(columns, None)}, and names must be "
            "unique. Rename them, or give the data without names, for example X.to_numpy()."
        )


def _check_finite_columns(X: Any, names: Any) -> None:
    with np.errstate(all="ignore"):
        entries: Any = X
        total = np.sum(entries.data if sp.issparse(X) else entries, dtype=np.float64)
    if np.isfinite(total):
        return
    if names is None or sp.issparse(X):
        check_finite("X", X, remedy=IMPUTE)
    elif (bad := np.count_nonzero(~np.isfinite(X), axis=0)).any():
        raise ValueError(count_message("X", bad, IMPUTE, names))


def target_array(y: Any, n_samples: int) -> Any:
    """Targets or labels as an array with one row per sample."""
    if sp.issparse(y):
        raise TypeError("y must be a dense array, got a sparse matrix; use y.toarray().")
    values = rectangular_array("y", y)
    if values.ndim == 0:
        raise ValueError(f"y must have one entry per sample, got {y!r}.")
    if len(values) != n_samples:
        raise ValueError(f"X and y must have one row per sample: X has {n_samples} rows, y has {len(values)}.")
    return values
