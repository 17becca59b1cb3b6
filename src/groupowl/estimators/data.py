"""Data of a fit: as users give them, and after all checks."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import validate_data

from .._checks import IMPUTE, check_finite, count_message, rectangular_array
from .._frames import column_names, complain_of_dates, complain_of_entries, list_columns, repeated_name
from .._typing import FloatArray, IndexArray

_MATRIX_CHECKS: dict[str, Any] = {"accept_sparse": ("csr", "csc"), "dtype": [np.float64, np.float32]}


@dataclass(frozen=True, eq=False)
class FitData:
    """Data of a fit after all checks.

    Attributes
    ----------
    X : ndarray or sparse matrix of shape (n_samples, n_features)
        float32 or float64.
    Y : ndarray of shape (n_samples, n_targets)
        Targets; one-hot rows for classes.
    sample_weight : ndarray of shape (n_samples,) or None
        With the weights of classes multiplied in.
    names : ndarray of str or None
        Names of the features, where they have names.
    unpenalized : ndarray of int
        Columns that are not penalised.
    classes : ndarray or None
        Labels that the columns of Y stand for.
    is_flat : bool
        Whether y was one-dimensional.
    target_names : ndarray of str or None
        Names of the columns of y, where it was a frame.
    """

    X: Any
    Y: FloatArray
    sample_weight: FloatArray | None
    names: Any
    unpenalized: IndexArray
    classes: Any
    is_flat: bool
    target_names: Any

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        return int(self.X.shape[0])

    @property
    def n_features(self) -> int:
        """Number of features."""
        return int(self.X.shape[1])

    @property
    def dtype(self) -> Any:
        """Precision of the fitted coefficients."""
        return self.X.dtype


def checked_matrix(estimator: Any, X: Any, *, reset: bool) -> tuple[Any, Any]:
    """X as an array or sparse matrix of finite floats, and its names; the estimator stays as it is.

    With ``reset=False`` features must be those of the fit.
    """
    _check_kind(X)
    scratch = copy(estimator)  # validation writes n_features_in_ and feature_names_in_ before all checks are done
    try:
        checked = validate_data(scratch, X, reset=reset, ensure_all_finite=False, **_MATRIX_CHECKS)
    except (TypeError, ValueError) as error:
        complaint = complain_of_entries("X", X if column_names(X) is not None else np.asarray(X))
        if complaint is None:
            raise
        if isinstance(error, TypeError):
            raise TypeError(f"{complaint} ({error})") from error
        raise ValueError(complaint) from error
    names = getattr(scratch, "feature_names_in_", None)
    _check_finite_columns(checked, names)
    return checked, names


def _check_kind(X: Any) -> None:
    """Refuse what scikit-learn converts to something else, or refuses without saying what to do."""
    if X is None:
        raise TypeError("X is None. Give the data as an array of shape (n_samples, n_features).")
    if isinstance(X, list | tuple):
        X = rectangular_array("X", X)
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
