"""Coefficients as data frames."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..inputs import coefficient_columns, import_pandas


def coefficient_frame(estimator: Any, *, sort: bool) -> Any:
    """Data frame with a row for each feature of a fitted estimator."""
    pandas = import_pandas("coef_frame()")
    coef = np.atleast_2d(estimator.coef_)
    named = getattr(estimator, "classes_", getattr(estimator, "target_names_", None))
    columns = dict(zip(coefficient_columns(len(coef), named), coef, strict=True))
    norms = np.sqrt(np.sum(np.square(coef, dtype=np.float64), axis=0))
    frame = pandas.DataFrame(
        {
            "feature": estimator._feature_labels(),
            "cluster": estimator.clusters_,
            "norm": norms,
            "state": estimator._states()[0],
            **columns,
        }
    )
    if not sort:
        return frame
    return frame.iloc[np.argsort(-norms, kind="stable")].reset_index(drop=True)
