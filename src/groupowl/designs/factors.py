"""A few samples that stand for many: by Cholesky factorization of moments, or by QR factorization of the data."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.linalg import solve_triangular

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
from ..norm.kernels import EPS, exceeds_rounding

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
    X = sp.csr_array(sparse_array(f"X{where}", X)) if sp.issparse(X) else numeric_array(f"X{where}", X)
    check_data_shape(X.shape, where, needs_samples=False)
    Y, w = check_targets(given, X.shape[0], where), check_sample_weight(weight, X.shape[0], where)
    n_rows = height(X, Y)
    for start in range(0, len(w), n_rows):
        rows = slice(start, start + n_rows)
        piece = X[rows].astype(np.float64, copy=False)
        with np.errstate(all="ignore"):
            is_suspect = not np.isfinite(piece.sum())  # or so large that its sum overflows
        if is_suspect:
            check_finite(f"X{where}", piece, remedy=IMPUTE)
        present = np.flatnonzero(w[rows])
        if len(present) == len(w[rows]):
            yield piece, Y[rows], w[rows]
        elif len(present):
            yield piece[present], Y[rows][present], w[rows][present]


class Moments(NamedTuple):
    """Second moments about the mean or about zero, and how exact they are.

    ``|gram_jk - exact| <= error * x_size_j * x_size_k``, and likewise for ``xy`` (``x_size_j * y_size_k``) and
    ``yy`` (``y_size_k ** 2``). A diagonal entry below ``error * x_size_j ** 2`` cannot be told from zero.
    """

    gram: FloatArray
    xy: FloatArray
    yy: FloatArray
    x_size: FloatArray
    y_size: FloatArray
    error: float


@dataclass(frozen=True, eq=False)
class CompressedData:
    """A small problem with the squared loss of a large one: ``||T - R B||^2 = sum_i w_i ||y_i - x_i B||^2``.

    Attributes
    ----------
    R, T : ndarray of shape (n_rows, n_features) and (n_rows, n_tasks)
        Data of the small problem, without intercept and sample weights.
    gram : ndarray of shape (n_features, n_features)
        ``R^T R`` up to its rounding.
    x_size, y_size : ndarray of shape (n_features,) and (n_tasks,)
        Sizes that ``error`` refers to, as for :class:`Moments`.
    x_mean, y_mean : ndarray of shape (n_features,) and (n_tasks,)
        What was taken off X and Y: the intercept is ``y_mean - x_mean B``. Zeros without centering.
    total_weight : float
    n_samples : int
        Samples of positive weight.
    error : float
        ``R^T R``, ``R^T T`` and the squared norms of the columns of ``T`` are exact up to ``error`` times the sizes.
        0 when made by :func:`compress_qr`, whose error is of another kind: ``(R, T)`` is exact for data whose
        columns differ from the given ones by a few roundings of their norms, as for any product with X itself.
    """

    R: FloatArray
    T: FloatArray
    gram: FloatArray
    x_size: FloatArray
    y_size: FloatArray
    x_mean: FloatArray
    y_mean: FloatArray
    total_weight: float
    n_samples: int
    error: float

    def scaled(self, factors: FloatArray) -> CompressedData:
        """The same for columns of X times a factor each."""
        gram = factors[:, None] * self.gram * factors
        return replace(self, R=self.R * factors, gram=gram, x_size=self.x_size * factors, x_mean=self.x_mean * factors)

    def weighted(self, factor: float) -> CompressedData:
        """The same with all sample weights times a factor."""
        scaled = {name: math.sqrt(factor) * getattr(self, name) for name in ("R", "T", "x_size", "y_size")}
        return replace(self, gram=factor * self.gram, total_weight=factor * self.total_weight, **scaled)


# Cholesky ---------------------------------------------------------------------------------------------


def factorize(moments: Moments) -> tuple[FloatArray, FloatArray, float]:
    """R and T with one row more than columns of R, and the jitter that the factorization needed.

    Columns are scaled by their sizes, so that the entries of the matrix have errors of at most ``error``, and a
    jitter of ``(n_features + 1) * error`` is always enough. Columns of size 0 stay exact zeros.
    """
    d = len(moments.gram)
    x_scale, y_scale = (np.where(size > 0, size, 1.0) for size in (moments.x_size, moments.y_size))
    A, C = moments.gram / x_scale / x_scale[:, None], moments.xy / x_scale[:, None] / y_scale
    yy = moments.yy / y_scale**2
    diagonal = np.diagonal(A).copy()
    for jitter in 4 * EPS * np.r_[1.0, (d + 1) * 100.0 ** np.arange(6)]:
        np.fill_diagonal(A, diagonal + jitter)
        try:
            L: FloatArray = np.asarray(np.linalg.cholesky(A), dtype=np.float64)
        except np.linalg.LinAlgError:
            continue
        S = solve_triangular(L, C, lower=True)
        rest = yy - np.einsum("jk,jk->k", S, S)
        if rest.min() < -jitter:  # X explains more of Y than there is
            continue
        R = np.vstack([L.T * moments.x_size, np.zeros(d)])
        T = np.vstack([S, np.sqrt(np.maximum(rest, 0.0))]) * y_scale
        return R, T, float(jitter)
    raise ValueError(
        "gram, xy and yy of the statistics are not those of any samples: their matrix has negative eigenvalues."
    )


# QR ---------------------------------------------------------------------------------------------------


@np.errstate(all="ignore")  # what overflows is refused at the end
def compress_qr(X: Any, Y: Any, sample_weight: Any = None, center: bool = True) -> CompressedData:
    """A problem of ``n_features + n_tasks`` samples with the same squared loss, by QR factorization.

    Slower than :meth:`SufficientStatistics.compress` and as exact as X itself: nothing is squared, so nearly
    dependent columns keep their digits. Sparse X is made dense some rows at a time.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
    Y : array-like of shape (n_samples,) or (n_samples, n_tasks)
    sample_weight : array-like of shape (n_samples,), default=None
        Non-negative weights of the samples.
    center : bool, default=True
        Whether the model has an intercept.

    Returns
    -------
    CompressedData
        ``R`` is upper triangular, and the last ``n_tasks`` rows of ``T`` are what X cannot explain of Y.
    """
    return compress_blocks(lambda: [(X, Y, sample_weight)], center)


@np.errstate(all="ignore")  # what overflows is refused at the end
def compress_blocks(blocks: Callable[[], Iterable[tuple[Any, ...]]], center: bool = True) -> CompressedData:
    """The same for samples that come in blocks ``(X, Y, sample_weight)``, read once, and once before if centered."""
    means: Any = 0.0
    if center:
        first: Any = None
        sums: Any = 0.0
        totals = []
        for values, w, _ in _joint_pieces(blocks()):
            first = values[0] if first is None else first  # sums about it: exact for constant columns
            sums = sums + w @ (values - first)
            totals.append(math.fsum(w))
        means = first + sums / math.fsum(totals)
    factor: Any = None
    weights = []
    for values, w, width in _joint_pieces(blocks()):
        weights.append(w)
        n_features = width
        root = np.sqrt(w)[:, None]
        # The constant comes first, and what follows is made orthogonal to it: centered, whatever the means round to.
        rows = np.hstack([root, root * (values - means)]) if center else root * values
        factor = np.asarray(np.linalg.qr(rows if factor is None else np.vstack([factor, rows]), mode="r"))
    square = np.zeros((factor.shape[1] - center,) * 2)
    square[: len(factor) - center] = factor[center:, center:]
    w = np.concatenate(weights)
    total, sizes = math.fsum(w), np.linalg.norm(square, axis=0)
    if not np.isfinite(total + np.sum(sizes**2)):
        raise ValueError(OVERFLOW)
    if center:
        varies = exceeds_rounding(sizes / math.sqrt(total), means)
        square, sizes = square * varies, sizes * varies
    R, T = (np.ascontiguousarray(part) for part in np.split(square, [n_features], axis=1))
    x_size, y_size = np.split(sizes, [n_features])
    x_mean, y_mean = np.split(means + np.zeros(len(sizes)), [n_features])
    return CompressedData(R, T, R.T @ R, x_size, y_size, x_mean, y_mean, total, len(w), error=0.0)


def _joint_pieces(blocks: Iterable[tuple[Any, ...]]) -> Iterator[tuple[FloatArray, FloatArray, int]]:
    """Dense pieces of [X, Y] with their weights, and the columns of X.

    They are tall enough for a QR factorization not to repeat much work.
    """

    def height(X: Any, Y: FloatArray) -> int:
        width = X.shape[1] + Y.shape[1]
        return max(4 * width, _QR_ENTRIES // width)

    n_samples = 0
    for block in blocks:
        for X, Y, w in sample_pieces("", block, height):
            n_samples += len(w)
            yield np.hstack([X.toarray() if is_sparse(X) else X, Y]), w, X.shape[1]
    if n_samples == 0:
        raise ValueError(NO_SAMPLES)
