"""A few samples that stand for many, and their QR factorization, which makes them from the data."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from .. import _checks as checks
from .._progress import follow_pass
from .._typing import FloatArray
from ..norm.kernels import exceeds_rounding

is_sparse: Callable[[Any], bool] = sp.issparse

# Entries of a block of [X, Y] that is factorized at a time.
_QR_ENTRIES = 1 << 18


NO_SAMPLES = "there is no sample of positive weight (X is empty, or sample_weight is zero): at least one is needed."
OVERFLOW = "X, Y or sample_weight is so large that sums of squares overflow. Rescale them."


def sample_pieces(where: str, block: Sequence[Any], height: Callable[[Any, FloatArray], int]) -> Iterator[Any]:
    """Finite pieces, in double precision, of the samples of positive weight of a block ``(X, Y, sample_weight)``.

    There may be none. ``where`` names the samples in messages, ``height`` says how many may be in a piece.
    """
    X, given, weight = (*block, None)[:3]
    X = sp.csr_array(checks.sparse_array(f"X{where}", X)) if sp.issparse(X) else checks.numeric_array(f"X{where}", X)
    checks.check_data_shape(X.shape, where, needs_samples=False)
    Y = checks.check_targets(given, X.shape[0], where, remedy=f"Remove the samples without a target. {checks.ENTRIES}")
    w = checks.check_sample_weight(weight, X.shape[0], where, needs_weight=False)
    n_rows = height(X, Y)
    for start in follow_pass(range(0, len(w), n_rows), lambda start: min(n_rows, len(w) - start) / len(w)):
        rows = slice(start, start + n_rows)
        checks.check_finite(f"X{where}", X[rows], remedy=checks.IMPUTE)
        present = start + np.flatnonzero(w[rows])
        if len(present):
            yield X[present].astype(np.float64, copy=False), Y[present], w[present]


@dataclass(frozen=True, eq=False)
class CompressedData:
    """A small problem with the squared loss of a large one: ``||T - R B||^2 = sum_i w_i ||y_i - x_i B||^2``.

    Attributes
    ----------
    R, T : ndarray of shape (n_rows, n_features) and (n_rows, n_tasks)
        Data of the small problem, without intercept and sample weights.
    x_size, y_size : ndarray of shape (n_features,) and (n_tasks,)
        Norms of the numbers really added, to which ``error`` refers.
    x_mean, y_mean : ndarray of shape (n_features,) and (n_tasks,)
        What was taken off X and Y: the intercept is ``y_mean - x_mean B``. Zeros without centering.
    error : float
        ``R^T R``, ``R^T T`` and the squared norms of the columns of ``T`` are exact up to ``error`` times the sizes.
        0 when made by :func:`compress_blocks`, whose error is of another kind: ``(R, T)`` is exact for data whose
        columns differ from the given ones by a few roundings of their sizes, as for any product with X itself.
    """

    R: FloatArray
    T: FloatArray
    x_size: FloatArray
    y_size: FloatArray
    x_mean: FloatArray
    y_mean: FloatArray
    error: float = 0.0

    def scaled(self, factors: FloatArray) -> CompressedData:
        """The same for columns of X, less their means, times a factor each."""
        return replace(self, R=self.R * factors, x_size=self.x_size * factors)

    def weighted(self, factor: float) -> CompressedData:
        """The same with all sample weights times a factor."""
        names = ("R", "T", "x_size", "y_size")
        return replace(self, **{name: math.sqrt(factor) * getattr(self, name) for name in names})


@np.errstate(all="ignore")  # what overflows is refused at the end
def compress_blocks(blocks: Iterable[tuple[Any, ...]], center: bool = True) -> CompressedData:
    """A problem of ``n_features + n_tasks`` samples with the same squared loss, by QR factorization.

    Slower than :meth:`SufficientStatistics.compress` and as exact as X itself: nothing is squared, so nearly
    dependent columns keep their digits. Sparse X is made dense some rows at a time.

    Parameters
    ----------
    blocks : iterable of tuple
        Samples as ``(X, Y)`` or ``(X, Y, sample_weight)``, each read once.
    center : bool, default=True
        Whether the model has an intercept.

    Returns
    -------
    CompressedData
        ``R`` is upper triangular, and the last ``n_tasks`` rows of ``T`` are what X cannot explain of Y.
    """
    factor: Any = None
    origin: Any = 0.0
    for values, w, width in _joint_pieces(blocks):
        root = np.sqrt(w)[:, None]
        if factor is None:
            n_features = width
            factor = np.zeros((0, values.shape[1] + center))
            if center:  # about the means of the first samples, which a constant column has exactly
                origin = values[0] + w @ (values - values[0]) / math.fsum(w)
        # The constant comes first, and what follows is made orthogonal to it: centered, whatever the origin.
        rows = np.hstack([root, root * (values - origin)]) if center else root * values
        factor = np.asarray(np.linalg.qr(np.vstack([factor, rows]), mode="r"))
    if factor is None:
        raise ValueError(NO_SAMPLES)
    square = np.zeros((factor.shape[1] - center,) * 2)
    square[: len(factor) - center] = factor[center:, center:]
    sizes, means = np.linalg.norm(factor[:, center:], axis=0), np.zeros(len(square))
    if not np.isfinite(np.sum(sizes**2) + np.sum(factor[:1, :1] ** 2)):
        raise ValueError(OVERFLOW)
    if center:
        means = origin + factor[0, 1:] / factor[0, 0]
        varies = exceeds_rounding(np.linalg.norm(square, axis=0) / abs(factor[0, 0]), means)
        square, sizes = square * varies, sizes * varies
    R, T = (np.ascontiguousarray(part) for part in np.split(square, [n_features], axis=1))
    x_size, y_size, x_mean, y_mean = (part for both in (sizes, means) for part in np.split(both, [n_features]))
    return CompressedData(R, T, x_size, y_size, x_mean, y_mean)


def _joint_pieces(blocks: Iterable[tuple[Any, ...]]) -> Iterator[tuple[FloatArray, FloatArray, int]]:
    """Dense pieces of [X, Y] with their weights, and the columns of X.

    They are tall enough for a QR factorization not to repeat much work.
    """

    def height(X: Any, Y: FloatArray) -> int:
        width = X.shape[1] + Y.shape[1]
        return max(4 * width, _QR_ENTRIES // width)

    for block in blocks:
        for X, Y, w in sample_pieces("", block, height):
            yield np.hstack([X.toarray() if is_sparse(X) else X, Y]), w, X.shape[1]
