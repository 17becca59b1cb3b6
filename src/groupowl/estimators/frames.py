"""Coefficients as data frames."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._kernels import CLUSTER_RTOL, falling_order
from .._typing import FloatArray, IndexArray
from ..inputs import coefficient_columns, import_pandas


def coefficient_frame(estimator: Any, *, sort: bool) -> Any:
    """Data frame with a row for each feature of a fitted estimator."""
    pandas = import_pandas("coef_frame()")
    coef = np.atleast_2d(estimator.coef_)
    named = getattr(estimator, "classes_", getattr(estimator, "target_names_", None))
    columns = dict(zip(coefficient_columns(len(coef), named), coef, strict=True))
    frame = pandas.DataFrame(
        {
            "feature": estimator._feature_labels(),
            "cluster": estimator.clusters_,
            "norm": coefficient_norms(coef),
            "state": estimator._states()[0],
            **columns,
        }
    )
    if not sort:
        return frame
    return frame.iloc[strongest_first(coef)].reset_index(drop=True)


def coefficient_norms(coef: Any) -> FloatArray:
    """Norm of each feature's coefficients, in double precision; a row of ``coef`` is a target."""
    return np.sqrt(np.sum(np.square(coef, dtype=np.float64), axis=0))


def strongest_first(coef: Any) -> IndexArray:
    """Features by falling norm; those whose norms are equal, in the precision of ``coef``, in their order."""
    return falling_order(coefficient_norms(coef), max(CLUSTER_RTOL, 4.0 * float(np.finfo(coef.dtype).eps)))
