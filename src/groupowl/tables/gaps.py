"""Missing cells of features: how many there are, samples without any, and what is filled in for them.

Features are an array, a csr_array, a data frame where there are categories, or a design on disk, which is read in
bands of rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.impute import SimpleImputer

from .._typing import BoolArray, FloatArray, IndexArray
from ..designs import Design
from ..designs.factors import is_sparse

#: What may become of samples with missing features; see :class:`groupowl.tables.Reading`.
DROP, MEAN, MEDIAN = "drop", "mean", "median"


def gap_counts(X: Any) -> IndexArray:
    """Number of missing values of each feature."""
    if hasattr(X, "isna"):
        return np.asarray(X.isna().sum(axis=0))
    return np.sum([_per_column(part) for _, part in _bands(X)], axis=0, dtype=np.intp)


def complete_rows(X: Any) -> BoolArray:
    """Which samples have all features."""
    if hasattr(X, "isna"):
        return ~X.isna().to_numpy().any(axis=1)
    is_complete = np.ones(X.shape[0], dtype=bool)
    for rows, part in _bands(X):
        is_gap = np.isnan(part.data if is_sparse(part) else part)
        if is_sparse(part):
            is_complete[rows.start + sp.coo_array(part).row[is_gap]] = False
        else:
            is_complete[rows] = ~is_gap.any(axis=1)
    return is_complete


def fills_of(X: Any, how: str) -> list[Any]:
    """Means or medians of the features over the samples that have them; of categories the most frequent level."""
    if hasattr(X, "isna"):
        return [_frame_fill(X.iloc[:, j], how) for j in range(X.shape[1])]
    if isinstance(X, Design):
        if how == MEAN:
            return _band_means(X).tolist()
        if X.is_on_disk:
            return _column_medians(X)
        rows: Any = X  # of a matrix on disk, so few that they are in memory
        X = rows.X
    # a column may have no value left in the samples of the fit: zeros, which have no effect
    return SimpleImputer(strategy=how, keep_empty_features=True).fit(X).statistics_.tolist()


def filled(X: Any, fills: Sequence[Any]) -> Any:
    """Features with these values in place of missing ones; NaN among them changes nothing."""
    if hasattr(X, "isna"):
        columns = {name: X[name].where(X[name].notna(), fill) for name, fill in zip(X.columns, fills, strict=True)}
        return X.assign(**columns)
    values = np.asarray(fills, dtype=np.float64)
    if isinstance(X, Design):
        design: Any = X
        return design.filled(values)
    is_gap = np.isnan(X.data if is_sparse(X) else X)
    if not is_gap.any():
        return X
    if is_sparse(X):
        data = np.where(is_gap, values[X.indices], X.data).astype(X.dtype)
        return sp.csr_array((data, X.indices, X.indptr), shape=X.shape)
    return np.where(is_gap, values, X).astype(X.dtype, copy=False)


def _bands(X: Any) -> Iterator[tuple[slice, Any]]:
    if isinstance(X, Design):
        design: Any = X
        yield from design.bands()
    else:
        yield slice(0, X.shape[0]), X


def _per_column(part: Any) -> IndexArray:
    if is_sparse(part):
        return np.bincount(part.indices[np.isnan(part.data)], minlength=part.shape[1])
    return np.isnan(part).sum(axis=0)


def _band_means(X: Any) -> FloatArray:
    """Means of columns that have values, from one pass; gaps in sparse data are stored, zeros need not be."""
    sums: FloatArray = np.zeros(X.shape[1])
    gaps: FloatArray = np.zeros(X.shape[1])
    for _, part in X.bands():
        if is_sparse(part):
            sums += np.bincount(part.indices, np.nan_to_num(part.data), minlength=part.shape[1])
        else:
            sums += np.nansum(part, axis=0, dtype=np.float64)
        gaps += _per_column(part)
    return sums / np.maximum(X.shape[0] - gaps, 1.0)


def _column_medians(X: Any) -> list[float]:
    """Medians of columns that have values, from whole columns: of some at a time, each time in a pass."""
    medians = []
    for columns in X.whole_columns():
        for column in columns.T:
            present = column[~np.isnan(column)]
            medians.append(float(np.median(present)) if len(present) else 0.0)
    return medians


def _frame_fill(column: Any, how: str) -> Any:
    present = column[column.notna()]
    if column.dtype == object:  # a category
        return Counter(present.tolist()).most_common(1)[0][0] if len(present) else ""
    return float(getattr(present, how)()) if len(present) else 0.0
