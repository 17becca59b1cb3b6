"""A few samples that stand for many: by Cholesky factorization of moments, or by QR factorization of the data."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
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
from ..norm.kernels import EPS, exceeds_rounding

# Entries of a block of [X, Y] that is factorized at a time.
_QR_ENTRIES = 1 << 18


NO_SAMPLES = "there is no sample of positive weight (X is empty, or sample_weight is zero): at least one is needed."
OVERFLOW = "X, Y or sample_weight is so large that sums of squares overflow. Rescale them."


class SampleRows(NamedTuple):
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


def check_samples(where: str, X: Any, Y: Any, sample_weight: Any = None) -> SampleRows:
    """Samples with one row of X, Y and weights each; there may be none, and all weights may be zero."""
    X = sp.csr_array(sparse_array(f"X{where}", X)) if is_sparse(X) else numeric_array(f"X{where}", X)
    check_data_shape(X.shape, where, needs_samples=False)
    n_samples = X.shape[0]
    Y, w = check_targets(Y, n_samples, where), check_sample_weight(sample_weight, n_samples, where)
    return SampleRows(X, Y, w, where)


def is_sparse(X: Any) -> bool:
    """Whether X is a sparse matrix or array of SciPy."""
    return bool(sp.issparse(X))


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
        root = math.sqrt(factor)
        return replace(
            self,
            R=root * self.R,
            T=root * self.T,
            gram=factor * self.gram,
            x_size=root * self.x_size,
            y_size=root * self.y_size,
            total_weight=factor * self.total_weight,
        )


# Cholesky ---------------------------------------------------------------------------------------------


def factorize(moments: Moments) -> tuple[FloatArray, FloatArray, float]:
    """R and T with one row more than columns of R, and the jitter that the factorization needed.

    Columns are scaled by their sizes, so that the entries of the matrix have errors of at most ``error``, and a
    jitter of ``(n_features + 1) * error`` is always enough. Columns of size 0 stay exact zeros.
    """
    d, q = moments.xy.shape
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
        S = _forward_substitution(L, C)
        rest = yy - np.einsum("jk,jk->k", S, S)
        if rest.min() < -jitter:  # X explains more of Y than there is
            continue
        R, T = np.zeros((d + 1, d)), np.zeros((d + 1, q))
        R[:d], T[:d], T[d] = L.T * moments.x_size, S * y_scale, np.sqrt(np.maximum(rest, 0.0)) * y_scale
        return R, T, float(jitter)
    raise ValueError(
        "gram, xy and yy of the statistics are not those of any samples: their matrix has negative eigenvalues."
    )


def _forward_substitution(L: FloatArray, C: FloatArray, width: int = 64) -> FloatArray:
    """``L^-1 C`` for lower triangular ``L``, block by block."""
    S = np.empty_like(C)
    for start in range(0, len(L), width):
        rows = slice(start, start + width)
        S[rows] = np.linalg.solve(L[rows, rows], C[rows] - L[rows, :start] @ S[:start])
    return S


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
    means = _joint_means(_joint_pieces(blocks())) if center else None
    factor, weights, n_features = _triangular_factor(_joint_pieces(blocks()), means)
    total, sizes = math.fsum(weights), np.linalg.norm(factor, axis=0)
    if not np.isfinite(total + np.sum(sizes**2)):
        raise ValueError(OVERFLOW)
    if means is None:
        means = np.zeros(len(sizes))
    else:
        varies = exceeds_rounding(sizes / math.sqrt(total), means)
        factor, sizes = factor * varies, sizes * varies
    R, T = (np.ascontiguousarray(part) for part in np.split(factor, [n_features], axis=1))
    x_size, y_size = np.split(sizes, [n_features])
    x_mean, y_mean = np.split(means, [n_features])
    return CompressedData(R, T, R.T @ R, x_size, y_size, x_mean, y_mean, total, len(weights), error=0.0)


class _Piece(NamedTuple):
    values: FloatArray  # [X, Y], dense
    w: FloatArray
    n_features: int


def _joint_pieces(blocks: Iterable[tuple[Any, ...]]) -> Iterator[_Piece]:
    """Dense pieces of [X, Y], tall enough for a QR factorization not to repeat much work."""
    n_samples = 0
    for block in blocks:
        samples = check_samples("", *block)
        n_features = samples.X.shape[1]
        width = n_features + samples.Y.shape[1]
        for X, Y, w in samples.pieces(max(4 * width, _QR_ENTRIES // width)):
            n_samples += len(w)
            yield _Piece(np.hstack([X.toarray() if is_sparse(X) else X, Y]), w, n_features)
    if n_samples == 0:
        raise ValueError(NO_SAMPLES)


def _joint_means(pieces: Iterable[_Piece]) -> FloatArray:
    """Means of [X, Y], summed about the first sample: exact for constant columns."""
    first: Any = None
    sums: Any = 0.0
    totals: list[float] = []
    for values, w, _ in pieces:
        first = values[0] if first is None else first
        sums = sums + w @ (values - first)
        totals.append(math.fsum(w))
    return first + sums / math.fsum(totals)


def _triangular_factor(pieces: Iterable[_Piece], means: FloatArray | None) -> tuple[FloatArray, FloatArray, int]:
    """Square R of the QR factorization of the weighted [X, Y], centered if there are means; weights; columns of X."""
    factor: Any = None
    weights: list[FloatArray] = []
    center, n_features = means is not None, 0
    for values, w, width in pieces:
        weights.append(w)
        n_features = width
        root = np.sqrt(w)[:, None]
        # The constant comes first, and what follows is made orthogonal to it: centered, whatever the means round to.
        rows = root * values if means is None else np.hstack([root, root * (values - means)])
        factor = np.asarray(np.linalg.qr(rows if factor is None else np.vstack([factor, rows]), mode="r"))
    square = np.zeros((factor.shape[1] - center,) * 2)
    square[: len(factor) - center] = factor[center:, center:]
    return square, np.concatenate(weights), n_features
