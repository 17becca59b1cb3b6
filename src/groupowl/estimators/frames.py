"""Coefficients as data frames."""

from __future__ import annotations

from typing import Any

import numpy as np

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
    return frame.iloc[strongest_first(estimator)].reset_index(drop=True)


def coefficient_norms(coef: Any) -> FloatArray:
    """Norm of each feature's coefficients, in double precision; a row of ``coef`` is a target."""
    return np.sqrt(np.sum(np.square(coef, dtype=np.float64), axis=0))


def strongest_first(estimator: Any) -> IndexArray:
    """All features as the penalty ranks them: by cluster, then unpenalised ones in the model, then those that are zero.

    Equals keep the order of the columns. Norms of ``coef_`` would not do: the penalty may have seen another scale.
    """
    clusters = estimator.clusters_
    after_all_clusters = clusters.max(initial=0) + 1
    rank = np.where(clusters > 0, clusters, after_all_clusters)
    rank[~estimator.get_support()] = after_all_clusters + 1
    return np.argsort(rank, kind="stable")
