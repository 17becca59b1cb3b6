"""Samples as users give them, checked and read some rows at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from .._checks import (
    IMPUTE,
    check_data_shape,
    check_finite,
    check_sample_weight,
    check_targets,
    numeric_array,
    sparse_array,
)
from .._typing import FloatArray

NO_SAMPLES = "there is no sample of positive weight (X is empty, or sample_weight is zero): at least one is needed."
OVERFLOW = "X, Y or sample_weight is so large that sums of squares overflow. Rescale them."


class Samples(NamedTuple):
    """Checked samples, but for the entries of X, which are checked when they are read."""

    X: Any  # ndarray of any real dtype, or CSR array
    Y: FloatArray
    w: FloatArray
    where: str  # names the samples in messages

    def pieces(self, n_rows: int) -> Iterator[tuple[Any, FloatArray, FloatArray]]:
        """Finite blocks of at most so many samples of positive weight, in double precision."""
        for start in range(0, len(self.w), n_rows):
            rows = slice(start, start + n_rows)
            X, Y, w = self.X[rows].astype(np.float64, copy=False), self.Y[rows], self.w[rows]
            with np.errstate(all="ignore"):
                is_suspect = not np.isfinite(X.sum())  # or so large that its sum overflows
            if is_suspect:
                check_finite(f"X{self.where}", X, remedy=IMPUTE)
            present = np.flatnonzero(w)
            if len(present) == len(w):
                yield X, Y, w
            elif len(present):
                yield X[present], Y[present], w[present]


def check_samples(where: str, X: Any, Y: Any, sample_weight: Any = None) -> Samples:
    """Samples with one row of X, Y and weights each; there may be none, and all weights may be zero."""
    X = sp.csr_array(sparse_array(f"X{where}", X)) if is_sparse(X) else numeric_array(f"X{where}", X)
    check_data_shape(X.shape, where, needs_samples=False)
    n_samples = X.shape[0]
    return Samples(X, check_targets(Y, n_samples, where), check_sample_weight(sample_weight, n_samples, where), where)


def is_sparse(X: Any) -> bool:
    """Whether X is a sparse matrix or array of SciPy."""
    return bool(sp.issparse(X))
