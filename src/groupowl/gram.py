"""Moments of (X, Y): all that a squared-loss problem needs to know of its samples.

Statistics of disjoint samples add up and can be taken off again; :meth:`SufficientStatistics.compress` and
:func:`compress_qr` turn many samples into at most ``n_features + n_tasks`` that have the same squared loss.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from ._checks import as_float_array, check_finite, count_message, numeric_array
from ._kernels import CONSTANT_RTOL, EPS
from ._typing import FloatArray, IndexArray

# Rows of one product: few, because sums of equal terms lose digits in proportion to their length, but enough for the
# product to cost more than merging its result. The columns of sparse data have shorter sums.
_DENSE_ROWS, _SPARSE_ROWS = 1 << 10, 1 << 15
_QR_ENTRIES = 1 << 18

_NO_SAMPLES = "there is no sample of positive weight: at least one is needed."
_OVERFLOW = "X, Y or sample_weight is so large that sums of squares overflow. Rescale them."


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
        What was taken off X and Y: the intercept is ``y_mean - x_mean B``. Zeros without centring.
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


@dataclass(frozen=True, eq=False)
class SufficientStatistics:
    """Weighted means and centred second moments of (X, Y), with a bound on their rounding errors.

    ``a + b`` are the statistics of both sets of samples, ``a - b`` those of ``a`` without its part ``b``.

    Attributes
    ----------
    n_samples : int
        Samples of positive weight.
    total_weight : float
        ``W = sum_i w_i``.
    x_mean, y_mean : ndarray of shape (n_features,) and (n_tasks,)
        Weighted means, rounded.
    x_rest, y_rest : ndarray of shape (n_features,) and (n_tasks,)
        What rounding took off the means, so that a large offset does not spoil a merge.
    gram : ndarray of shape (n_features, n_features)
        ``sum_i w_i (x_i - x_mean)(x_i - x_mean)^T``.
    xy : ndarray of shape (n_features, n_tasks)
        ``sum_i w_i (x_i - x_mean)(y_i - y_mean)^T``.
    yy : ndarray of shape (n_tasks,)
        ``sum_i w_i (y_ik - y_mean_k)^2``.
    x_size, y_size : ndarray of shape (n_features,) and (n_tasks,)
        Norms of the numbers really added: centred columns for dense data, columns as they are for sparse data,
        and after a subtraction those of the larger set.
    error : float
        Rounding error relative to the sizes: ``|gram_jk - exact| <= error * x_size_j * x_size_k``, likewise for
        ``xy`` and ``yy``, and ``sqrt(W) |mean_j - exact| <= error * x_size_j`` before the mean is rounded.

    Examples
    --------
    >>> import numpy as np
    >>> import groupowl as go
    >>> X, Y = np.array([[1.0, 0.0], [3.0, 1.0], [5.0, 5.0]]), np.array([1.0, 2.0, 3.0])
    >>> whole, fold = go.SufficientStatistics.from_arrays(X, Y), go.SufficientStatistics.from_arrays(X[2:], Y[2:])
    >>> (whole - fold).gram
    array([[2. , 1. ],
           [1. , 0.5]])
    """

    n_samples: int
    total_weight: float
    x_mean: FloatArray
    y_mean: FloatArray
    x_rest: FloatArray
    y_rest: FloatArray
    gram: FloatArray
    xy: FloatArray
    yy: FloatArray
    x_size: FloatArray
    y_size: FloatArray
    error: float

    @classmethod
    def from_arrays(cls, X: Any, Y: Any, sample_weight: Any = None) -> SufficientStatistics:
        """Statistics of a dense or sparse X (n_samples, n_features) and Y (n_samples,) or (n_samples, n_tasks)."""
        return _merge_pairwise(_statistics_of_samples("", X, Y, sample_weight))

    @classmethod
    def from_blocks(cls, blocks: Iterable[tuple[Any, ...]]) -> SufficientStatistics:
        """Statistics of samples that come in blocks ``(X, Y)`` or ``(X, Y, sample_weight)``, each read once."""
        return _merge_pairwise(_statistics_of_blocks(blocks))

    @property
    def n_features(self) -> int:
        """Number of columns of X."""
        return len(self.x_mean)

    @property
    def n_tasks(self) -> int:
        """Number of columns of Y."""
        return len(self.y_mean)

    def __add__(self, other: SufficientStatistics) -> SufficientStatistics:
        if not isinstance(other, SufficientStatistics):
            return NotImplemented
        self._check_same_columns(other)
        large, small = (self, other) if self.total_weight >= other.total_weight else (other, self)
        total = large.total_weight + small.total_weight
        n_samples = large.n_samples + small.n_samples
        return large._combine(small, 1, total, n_samples, max(large.error, small.error) + 4 * EPS)

    def __sub__(self, other: SufficientStatistics) -> SufficientStatistics:
        if not isinstance(other, SufficientStatistics):
            return NotImplemented
        self._check_same_columns(other)
        total = self.total_weight - other.total_weight
        n_samples = self.n_samples - other.n_samples
        if n_samples <= 0 or total <= 0:
            raise ValueError(
                f"cannot take {other.n_samples} samples of weight {other.total_weight:g} off {self.n_samples} samples "
                f"of weight {self.total_weight:g}: at least one sample and a positive weight must be left."
            )
        # The means differ by little where almost nothing is left, and their errors are blown up.
        growth = self.total_weight / total
        error = (self.error + other.error) * (1 + 2 * math.sqrt(growth)) + 16 * EPS * growth
        return self._combine(other, -1, total, n_samples, error)

    @np.errstate(all="ignore")  # what overflows is refused at the end
    def _combine(
        self, other: SufficientStatistics, sign: int, total: float, n_samples: int, error: float
    ) -> SufficientStatistics:
        """Add (``sign`` 1) or take off (-1) other samples: the update of Chan, Golub and LeVeque, and its inverse."""
        dx = (other.x_mean - self.x_mean) + (other.x_rest - self.x_rest)
        dy = (other.y_mean - self.y_mean) + (other.y_rest - self.y_rest)
        share = sign * other.total_weight / total
        x_mean, x_rest = _two_sum(self.x_mean, self.x_rest + share * dx)
        y_mean, y_rest = _two_sum(self.y_mean, self.y_rest + share * dy)
        root = math.sqrt(abs(share) * self.total_weight)
        dx, dy = root * dx, root * dy
        grow = sign > 0
        combined = SufficientStatistics(
            n_samples, total, x_mean, y_mean, x_rest, y_rest,
            gram=self.gram + sign * (other.gram + np.outer(dx, dx)),
            xy=self.xy + sign * (other.xy + np.outer(dx, dy)),
            yy=self.yy + sign * (other.yy + dy * dy),
            x_size=np.sqrt(self.x_size**2 + other.x_size**2 + dx * dx) if grow else self.x_size,
            y_size=np.sqrt(self.y_size**2 + other.y_size**2 + dy * dy) if grow else self.y_size,
            error=error,
        )  # fmt: skip
        return combined._clipped()

    def _clipped(self) -> SufficientStatistics:
        """Sums of squares that rounding made negative become 0; larger negative ones are refused."""
        diagonal = np.diagonal(self.gram)
        if (diagonal < -2 * self.error * self.x_size**2).any() or (self.yy < -2 * self.error * self.y_size**2).any():
            raise ValueError("the subtracted statistics are not those of a part of the samples: squares would be < 0.")
        if not np.isfinite(diagonal.sum() + self.yy.sum() + self.total_weight):
            raise ValueError(_OVERFLOW)
        np.fill_diagonal(self.gram, np.maximum(diagonal, 0.0))
        return replace(self, yy=np.maximum(self.yy, 0.0))

    def _check_same_columns(self, other: SufficientStatistics) -> None:
        if self.xy.shape != other.xy.shape:
            raise ValueError(
                f"statistics must have the same columns: one has {self.n_features} features and {self.n_tasks} tasks, "
                f"the other {other.n_features} and {other.n_tasks}."
            )

    def restrict(self, columns: Any) -> SufficientStatistics:
        """Statistics of some columns of X, given by indices or a mask."""
        chosen: IndexArray = np.arange(self.n_features)[np.asarray(columns) if len(columns) else slice(0)]
        return replace(
            self,
            x_mean=self.x_mean[chosen],
            x_rest=self.x_rest[chosen],
            gram=self.gram[np.ix_(chosen, chosen)],
            xy=self.xy[chosen],
            x_size=self.x_size[chosen],
        )

    def moments(self, center: bool = True) -> Moments:
        """Second moments about the means, or about zero for a model without intercept.

        About the means, columns that vary by rounding only are exact zeros.
        """
        if center:
            x_varies = _varies(np.diagonal(self.gram), self.x_mean, self.total_weight)
            y_varies = _varies(self.yy, self.y_mean, self.total_weight)
            gram = self.gram if x_varies.all() else self.gram * np.outer(x_varies, x_varies)
            xy, yy = self.xy * np.outer(x_varies, y_varies), self.yy * y_varies
            return Moments(gram, xy, yy, self.x_size * x_varies, self.y_size * y_varies, self.error)
        root = math.sqrt(self.total_weight)
        x, y = root * self.x_mean, root * self.y_mean
        gram, xy, yy = self.gram + np.outer(x, x), self.xy + np.outer(x, y), self.yy + y * y
        # The errors of the means now count once more, times the means.
        error = 2 * self.error + 4 * EPS
        return Moments(gram, xy, yy, np.hypot(self.x_size, x), np.hypot(self.y_size, y), error)

    def compress(self, center: bool = True, columns: Any = None) -> CompressedData:
        """A problem of ``n_features + 1`` samples with the same squared loss, by Cholesky factorisation.

        Parameters
        ----------
        center : bool, default=True
            Whether the model has an intercept.
        columns : sequence of int or bool, default=None
            Columns of X to keep; all by default.

        Returns
        -------
        CompressedData
            Its ``error`` bounds what the statistics lost by rounding, and the multiple of ``x_size ** 2`` that the
            factorisation adds to the diagonal so that dependent columns do not stop it.
        """
        statistics = self if columns is None else self.restrict(columns)
        moments = statistics.moments(center)
        R, T, jitter = _factorize(moments)
        gram = moments.gram + np.diag(jitter * moments.x_size**2)
        x_mean, y_mean = (statistics.x_mean, self.y_mean) if center else (0 * statistics.x_mean, 0 * self.y_mean)
        error = moments.error + jitter + (len(gram) + 8) * EPS
        sizes = moments.x_size, moments.y_size
        return CompressedData(R, T, gram, *sizes, x_mean, y_mean, self.total_weight, self.n_samples, error)


@np.errstate(all="ignore")  # what overflows is refused at the end
def compress_qr(X: Any, Y: Any, sample_weight: Any = None, center: bool = True) -> CompressedData:
    """A problem of ``n_features + n_tasks`` samples with the same squared loss, by QR factorisation.

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
    samples = _check_samples("", X, Y, sample_weight)
    n_features, w = samples.X.shape[1], samples.w
    n_present, total = int(np.count_nonzero(w)), math.fsum(w)
    if n_present == 0:
        raise ValueError(_NO_SAMPLES)
    means = _joint_means(samples, total) if center else np.zeros(n_features + samples.Y.shape[1])
    factor = _triangular_factor(samples, means, center)
    sizes = np.linalg.norm(factor, axis=0)
    if not np.isfinite(total + np.sum(sizes**2)):
        raise ValueError(_OVERFLOW)
    if center:
        varies = _varies(sizes**2, means, total)
        factor, sizes = factor * varies, sizes * varies
    R, T = (np.ascontiguousarray(part) for part in np.split(factor, [n_features], axis=1))
    x_size, y_size = np.split(sizes, [n_features])
    x_mean, y_mean = np.split(means, [n_features])
    return CompressedData(R, T, R.T @ R, x_size, y_size, x_mean, y_mean, total, n_present, error=0.0)


# Small matrices ---------------------------------------------------------------------------------------


def _varies(squares: FloatArray, mean: FloatArray, total: float) -> Any:
    """Columns that vary by more than rounding, from their centred squares: elsewhere they count as constant."""
    return np.sqrt(squares / total) > CONSTANT_RTOL * np.abs(mean)


def _two_sum(a: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray]:
    """``a + b`` rounded, and exactly what rounding took off (Knuth)."""
    rounded = a + b
    second = rounded - a
    return rounded, (a - (rounded - second)) + (b - second)


def _factorize(moments: Moments) -> tuple[FloatArray, FloatArray, float]:
    """R and T with one row more than columns of R, and the jitter that the factorisation needed.

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
    raise ValueError("the statistics are not those of any samples: their matrix of moments has negative eigenvalues.")


def _forward_substitution(L: FloatArray, C: FloatArray, width: int = 64) -> FloatArray:
    """``L^-1 C`` for lower triangular ``L``, block by block."""
    S = np.empty_like(C)
    for start in range(0, len(L), width):
        rows = slice(start, start + width)
        S[rows] = np.linalg.solve(L[rows, rows], C[rows] - L[rows, :start] @ S[:start])
    return S


# Statistics of a few samples --------------------------------------------------------------------------


@np.errstate(all="ignore")  # what overflows is refused at the end
def _block_statistics(X: Any, Y: FloatArray, w: FloatArray) -> SufficientStatistics:
    """Statistics of few samples from products about a point near the means, corrected for its distance to them."""
    total, root = math.fsum(w), np.sqrt(w)
    V: Any
    x_center, V = _about_zero(X, root) if _is_sparse(X) else _about_mean(X, root, total)
    y_center, U = _about_mean(Y, root, total)
    gram = (V.T @ V).toarray() if _is_sparse(V) else V.T @ V
    tasks = np.ascontiguousarray(U.T)  # NumPy adds up pairwise along the last axis only
    x_squares, y_squares = np.diagonal(gram), np.sum(tasks * tasks, axis=1)
    dx, dy = V.T @ root / math.sqrt(total), np.sum(tasks * root, axis=1) / math.sqrt(total)
    n_terms = int(np.bincount(V.indices).max(initial=0)) if _is_sparse(V) else len(w)
    x_mean, x_rest = _two_sum(x_center, dx / math.sqrt(total))
    y_mean, y_rest = _two_sum(y_center, dy / math.sqrt(total))
    return SufficientStatistics(
        len(w), total, x_mean, y_mean, x_rest, y_rest,
        gram=gram - np.outer(dx, dx),
        xy=V.T @ U - np.outer(dx, dy),
        yy=y_squares - dy * dy,
        x_size=np.sqrt(x_squares),
        y_size=np.sqrt(y_squares),
        error=EPS * (16 + 0.5 * n_terms),  # half of EPS for each addition
    )._clipped()  # fmt: skip


def _about_mean(X: FloatArray, root: FloatArray, total: float) -> tuple[FloatArray, FloatArray]:
    """Rounded means, and the weighted columns about them; a constant column becomes exact zeros."""
    mean = X[0] + root**2 @ (X - X[0]) / total
    return mean, root[:, None] * (X - mean)


def _about_zero(X: Any, root: FloatArray) -> tuple[FloatArray, Any]:
    """Weighted columns of a sparse matrix as they are, but constant ones about their value: exact zeros."""
    high, low = (extreme.toarray().ravel() for extreme in (X.max(axis=0), X.min(axis=0)))
    constant = high == low
    V = sp.diags_array(root) @ X @ sp.diags_array((~constant).astype(np.float64))
    V.eliminate_zeros()
    return np.where(constant, high, 0.0), V


def _merge_pairwise(parts: Iterable[SufficientStatistics]) -> SufficientStatistics:
    """Sum of all parts, like a binary counter: errors and memory grow with the logarithm of their number."""
    stack: list[tuple[int, SufficientStatistics]] = []
    for part in parts:
        rank = 0
        while stack and stack[-1][0] == rank:
            part = stack.pop()[1] + part
            rank += 1
        stack.append((rank, part))
    if not stack:
        raise ValueError(_NO_SAMPLES)
    return reduce(SufficientStatistics.__add__, [part for _, part in reversed(stack)])


# Blocks of checked samples ----------------------------------------------------------------------------


class _Samples(NamedTuple):
    """Checked shapes and weights; ``where`` names the block in messages."""

    X: Any  # ndarray or CSR array of any real dtype
    Y: FloatArray
    w: FloatArray
    where: str

    def pieces(self, n_rows: int) -> Iterator[tuple[Any, FloatArray, FloatArray]]:
        """Finite blocks of at most so many samples of positive weight, in double precision."""
        for start in range(0, len(self.w), n_rows):
            rows = slice(start, start + n_rows)
            X, Y = (part[rows].astype(np.float64, copy=False) for part in (self.X, self.Y))
            _check_finite_block(f"X{self.where}", X, "Remove those rows or columns, or fill them in first.")
            _check_finite_block(f"Y{self.where}", Y, "Remove the samples without a target.")
            w = self.w[rows]
            present = np.flatnonzero(w)
            if len(present) == len(w):
                yield X, Y, w
            elif len(present):
                yield X[present], Y[present], w[present]


def _statistics_of_samples(where: str, *block: Any) -> Iterator[SufficientStatistics]:
    samples = _check_samples(where, *block)
    for piece in samples.pieces(_SPARSE_ROWS if _is_sparse(samples.X) else _DENSE_ROWS):
        yield _block_statistics(*piece)


def _statistics_of_blocks(blocks: Iterable[tuple[Any, ...]]) -> Iterator[SufficientStatistics]:
    for number, block in enumerate(blocks):
        if not isinstance(block, tuple | list) or len(block) not in (2, 3):
            raise TypeError(f"block {number} must be (X, Y) or (X, Y, sample_weight), got {type(block).__name__}.")
        yield from _statistics_of_samples(f" of block {number}", *block)


def _joint_pieces(samples: _Samples) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Dense blocks of [X, Y] and their weights, tall enough for a QR factorisation not to repeat much work."""
    width = samples.X.shape[1] + samples.Y.shape[1]
    for X, Y, w in samples.pieces(max(4 * width, _QR_ENTRIES // width)):
        yield np.hstack([X.toarray() if _is_sparse(X) else X, Y]), w


def _joint_means(samples: _Samples, total: float) -> FloatArray:
    """Means of [X, Y], summed about the first sample: exact for constant columns."""
    first: Any = None
    sums: Any = 0.0
    for block, w in _joint_pieces(samples):
        first = block[0] if first is None else first
        sums = sums + w @ (block - first)
    return first + sums / total


def _triangular_factor(samples: _Samples, shift: FloatArray, center: bool) -> FloatArray:
    """Square R of the QR factorisation of the weighted [X, Y] less ``shift``, orthogonal to the constant if centred."""
    factor = np.zeros((0, center + len(shift)))
    for block, w in _joint_pieces(samples):
        root = np.sqrt(w)[:, None]
        # The constant comes first, and what follows is made orthogonal to it: centred, whatever the shift rounds to.
        rows = [root, root * (block - shift)] if center else [root * (block - shift)]
        factor = np.asarray(np.linalg.qr(np.vstack([factor, np.hstack(rows)]), mode="r"))
    square = np.zeros((len(shift), len(shift)))
    square[: len(factor) - center] = factor[center:, center:]
    return square


# Checks -----------------------------------------------------------------------------------------------


def _check_samples(where: str, X: Any, Y: Any, sample_weight: Any = None) -> _Samples:
    """Shapes and weights of one block; entries are checked when they are read."""
    X = _sparse_rows(X) if _is_sparse(X) else numeric_array(f"X{where}", X)
    if X.ndim != 2 or X.shape[1] == 0:
        raise ValueError(f"X{where} must have shape (n_samples, n_features), got {X.shape}.")
    Y = numeric_array(f"Y{where}", Y)
    Y = Y[:, None] if Y.ndim == 1 else Y
    if Y.ndim != 2 or Y.shape[1] == 0 or len(Y) != X.shape[0]:
        raise ValueError(f"Y{where} must have one row for each of the {X.shape[0]} samples of X, got shape {Y.shape}.")
    if sample_weight is None:
        return _Samples(X, Y, np.ones(len(Y)), where)
    w = as_float_array(f"sample_weight{where}", sample_weight, ndim=(1,))
    if len(w) != len(Y):
        raise ValueError(f"sample_weight{where} must have one entry per sample: {len(Y)}, got {len(w)}.")
    check_finite(f"sample_weight{where}", w, remedy="Every sample weight must be a finite number.")
    if w.min(initial=0.0) < 0:
        i = int(np.argmin(w))
        raise ValueError(f"sample_weight{where} must be non-negative, but sample_weight[{i}] is {w[i]!r}.")
    return _Samples(X, Y, w, where)


def _sparse_rows(X: Any) -> Any:
    """A sparse matrix by rows with one entry per place."""
    if X.dtype.kind not in "fiub":
        raise TypeError(f"X must hold real numbers, got a sparse matrix of dtype {X.dtype}.")
    rows = sp.csr_array(X)
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    return rows


def _is_sparse(X: Any) -> bool:
    return bool(sp.issparse(X))


def _check_finite_block(argument: str, block: Any, remedy: str) -> None:
    """Refuse NaN and infinity; one sum tells, unless it overflows."""
    with np.errstate(all="ignore"):
        if np.isfinite(block.sum()):
            return
    if not _is_sparse(block):
        return check_finite(argument, block, remedy=remedy)
    bad = np.bincount(block.indices[~np.isfinite(block.data)], minlength=block.shape[1])
    if bad.any():
        raise ValueError(count_message(argument, bad, remedy))
