"""Means and centered second moments of samples, with bounds on their rounding errors; sets of samples add up."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields, replace
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import solve_triangular

from .._checks import checked_path
from .._files import fresh_file
from .._progress import follow_pass
from .._typing import BoolArray, FloatArray, IndexArray
from ..norm.kernels import EPS, LARGEST_NORM, LARGEST_PRODUCT, SMALLEST_NORM, exceeds_rounding, merged_means, two_sum
from .factors import NO_SAMPLES, OVERFLOW, CompressedData, is_sparse, sample_pieces

# Rows of one product: few, because sums of equal terms lose digits in proportion to their length, but enough for the
# product to cost more than merging its result. The columns of sparse data have shorter sums.
_DENSE_ROWS, _SPARSE_ROWS = 1 << 10, 1 << 15

# Sums of as many parts are merged at a time: more of them in memory at once with a smaller number, more error with a
# larger one.
_MERGE_BASE = 8

_FORMAT = "groupowl sufficient statistics 1"

# Errors below this, relative to a variance, leave its column reliable.
_RELIABLE = 1e-6


@dataclass(frozen=True, eq=False)
class SufficientStatistics:
    """Weighted means and centered second moments of (X, Y), with a bound on their rounding errors.

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
        Norms of the numbers really added: centered columns for dense data, columns as they are for sparse data,
        and after a subtraction those of the larger set.
    error : float
        Rounding error relative to the sizes: ``|gram_jk - exact| <= error * x_size_j * x_size_k``, likewise for
        ``xy`` and ``yy``, and ``sqrt(W) |mean_j - exact| <= error * x_size_j`` before the mean is rounded.

    Examples
    --------
    >>> import numpy as np
    >>> import groupowl as go
    >>> X, Y = np.array([[1.0, 0.0], [3.0, 1.0], [5.0, 5.0]]), np.array([1.0, 2.0, 3.0])
    >>> whole = go.SufficientStatistics.from_arrays(X, Y)
    >>> fold = go.SufficientStatistics.from_arrays(X[2:], Y[2:])
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
        return PairwiseSum(statistics_of_samples("", X, Y, sample_weight)).total()

    @classmethod
    def from_blocks(cls, blocks: Iterable[tuple[Any, ...]]) -> SufficientStatistics:
        """Statistics of samples that come in blocks ``(X, Y)`` or ``(X, Y, sample_weight)``, each read once."""
        return PairwiseSum(_statistics_of_blocks(blocks)).total()

    @classmethod
    def from_dask(cls, X: Any, Y: Any, sample_weight: Any = None) -> SufficientStatistics:
        """Statistics of Dask arrays or data frames in chunks of rows: one pass on the workers, added up there.

        Parameters
        ----------
        X : dask.array.Array or dask.dataframe.DataFrame of shape (n_samples, n_features)
            Dense or sparse blocks.
        Y : the same of shape (n_samples,) or (n_samples, n_tasks), or a local array
        sample_weight : the same of shape (n_samples,), default=None

        Returns
        -------
        SufficientStatistics
        """
        from .dask.dask_design import DaskDesign

        whole = "sufficient statistics are those of whole samples"
        design, Y, w = DaskDesign(X).adopt(Y, sample_weight, np.asarray, whole=whole)
        return design.statistics_of_parts(Y, w, None, 1)[0]

    def save(self, path: Any) -> None:
        """Write to a file ``.npz``, which appears only when it is complete.

        Parameters
        ----------
        path : str or path
            The suffix ``.npz`` is added where it is missing.
        """
        target = _with_suffix(path)
        content: dict[str, Any] = {field.name: np.asarray(getattr(self, field.name)) for field in fields(self)}
        with fresh_file(target) as file:
            np.savez(file, format=np.asarray(_FORMAT), **content)

    @classmethod
    def load(cls, path: Any) -> SufficientStatistics:
        """Read what :meth:`save` wrote.

        Parameters
        ----------
        path : str or path

        Returns
        -------
        SufficientStatistics
        """
        source = _with_suffix(path)
        if not source.exists():
            raise FileNotFoundError(f"{source} does not exist.")
        try:
            with source.open("rb") as file, np.load(file, allow_pickle=False) as stored:
                content = {name: stored[name] for name in stored.files}
            if str(content.pop("format")) != _FORMAT or set(content) != {field.name for field in fields(cls)}:
                raise ValueError("it holds something else")
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
            what = f"{source} is not a complete file of SufficientStatistics ({error})"
            raise ValueError(f"{what}. Write it again with save().") from error
        numbers = {"n_samples": int, "total_weight": float, "error": float}
        return cls(**{name: numbers[name](value) if name in numbers else value for name, value in content.items()})

    def __repr__(self) -> str:
        size = f"{self.n_samples} samples, {self.n_features} features, {self.n_tasks} tasks"
        return f"SufficientStatistics({size}, total weight {self.total_weight:g})"

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
        large, small = (self, other) if self.total_weight >= other.total_weight else (other, self)
        return large._combine(small, 1)

    def __sub__(self, other: SufficientStatistics) -> SufficientStatistics:
        return self._combine(other, -1) if isinstance(other, SufficientStatistics) else NotImplemented

    @np.errstate(all="ignore")  # what overflows is refused at the end
    def _combine(self, other: SufficientStatistics, sign: int) -> SufficientStatistics:
        """Add (``sign`` 1) or take off (-1) other samples: the update of Chan, Golub and LeVeque, and its inverse."""
        if self.xy.shape != other.xy.shape:
            one = f"{self.n_features} features and {self.n_tasks} tasks"
            another = f"{other.n_features} and {other.n_tasks}"
            raise ValueError(f"statistics must have the same columns: one has {one}, the other {another}.")
        total = self.total_weight + sign * other.total_weight
        n_samples = self.n_samples + sign * other.n_samples
        if n_samples <= 0 or total <= 0:
            part, whole = (f"{each.n_samples} samples of weight {each.total_weight:g}" for each in (other, self))
            what = "at least one sample and a positive weight must be left"
            raise ValueError(f"cannot take {part} off {whole}: {what}.")
        share = sign * other.total_weight / total
        x_mean, x_rest, dx = merged_means(self.x_mean, self.x_rest, other.x_mean, other.x_rest, share)
        y_mean, y_rest, dy = merged_means(self.y_mean, self.y_rest, other.y_mean, other.y_rest, share)
        root = math.sqrt(abs(share) * self.total_weight)
        dx, dy = root * dx, root * dy
        x_size, y_size = self.x_size, self.y_size
        if sign > 0:
            x_size, y_size = np.hypot(np.hypot(x_size, other.x_size), dx), np.hypot(np.hypot(y_size, other.y_size), dy)
            error = max(self.error, other.error) + 4 * EPS
        else:
            # The means differ by little where almost nothing is left, and their errors are blown up.
            growth = self.total_weight / total
            error = (self.error + other.error) * (1 + 2 * math.sqrt(growth)) + 16 * EPS * growth
        gram = self.gram + sign * (other.gram + np.outer(dx, dx))
        xy = self.xy + sign * (other.xy + np.outer(dx, dy))
        yy = self.yy + sign * (other.yy + dy * dy)
        means = x_mean, y_mean, x_rest, y_rest
        return SufficientStatistics(n_samples, total, *means, gram, xy, yy, x_size, y_size, error)._clipped()

    def _clipped(self) -> SufficientStatistics:
        """Sums of squares that rounding made negative become 0; larger negative ones are refused."""
        diagonal = np.diagonal(self.gram)
        if (diagonal < -2 * self.error * self.x_size**2).any() or (self.yy < -2 * self.error * self.y_size**2).any():
            raise ValueError("the subtracted statistics are not those of a part of the samples: squares would be < 0.")
        if not np.isfinite(diagonal.sum() + self.yy.sum() + self.total_weight):
            raise ValueError(OVERFLOW)
        np.fill_diagonal(self.gram, np.maximum(diagonal, 0.0))
        return replace(self, yy=np.maximum(self.yy, 0.0))

    def restrict(self, columns: Any) -> SufficientStatistics:
        """Statistics of some columns of X, given by indices or a mask."""
        wanted = np.asarray(columns)
        try:
            chosen = np.arange(self.n_features)[wanted if wanted.size else slice(0)]
            if chosen.ndim != 1:
                raise IndexError(f"they have shape {wanted.shape}, but must be 1-dimensional")
        except IndexError as error:
            expected = f"indices below {self.n_features}, or a mask of this length"
            raise IndexError(f"columns must be {expected}, got {columns!r}: {error}.") from error
        parts = {name: getattr(self, name)[chosen] for name in ("x_mean", "x_rest", "xy", "x_size")}
        return replace(self, gram=self.gram[np.ix_(chosen, chosen)], **parts)

    def varying(self) -> tuple[BoolArray, BoolArray]:
        """Mask of the columns of X and Y that may vary: by more than rounding, or by what rounding hides."""
        squares, means = np.append(np.diagonal(self.gram), self.yy), np.append(self.x_mean, self.y_mean)
        errors = self.error * np.append(self.x_size, self.y_size) ** 2
        varies = exceeds_rounding(np.sqrt(np.maximum(squares, errors) / self.total_weight), means)
        return varies[: self.n_features], varies[self.n_features :]

    def is_reliable(self) -> bool:
        """Whether rounding errors are small beside the variance of every column."""
        errors = self.error * np.append(self.x_size, self.y_size) ** 2
        return bool(np.all(errors <= _RELIABLE * np.append(np.diagonal(self.gram), self.yy)))

    def check_magnitude(self, center: bool) -> None:
        """Refuse columns whose squares, about the means or about zero, leave the range of floating-point numbers."""
        root = math.sqrt(self.total_weight)
        x_size, y_size = self.x_size / root, self.y_size / root
        if not center:
            x_size, y_size = np.hypot(x_size, self.x_mean), np.hypot(y_size, self.y_mean)
        if x_size.max() > LARGEST_NORM or y_size.max() * max(float(x_size.max()), 1.0) > LARGEST_PRODUCT:
            raise ValueError(OVERFLOW)
        smallest = SMALLEST_NORM * max(1.0, 1.0 / root)  # with the weights, and without them
        small = np.flatnonzero((x_size > 0.0) & (x_size < smallest))
        if len(small) or 0.0 < float(y_size.max()) < smallest:
            what = f"Column {small[0]} of X" if len(small) else "Y"
            remedy = "Rescale X or Y, or sample_weight, before the statistics are made."
            raise ValueError(f"{what} is so small that its squares underflow in the SufficientStatistics. {remedy}")

    def deviations(self) -> tuple[FloatArray, float]:
        """Standard deviation of each column of X, and a bound on their relative errors where columns vary.

        Refuses columns whose deviation is lost in rounding: it is the scale of the penalty in a standardized model.
        """
        squares = np.diagonal(self.gram)
        errors = np.where(self.varying()[0], self.error * self.x_size**2, 0.0)
        unknown = np.flatnonzero(errors > _RELIABLE * squares)
        if len(unknown):
            j = int(unknown[0])
            raise ValueError(
                f"standardize=True needs the standard deviation of every column, but {len(unknown)} of X are not known "
                f"from these statistics, the first is column {j}: rounding errors of {errors[j]:.2g} beside a sum of "
                f"squares of {squares[j]:.2g}. Fit the samples themselves, add statistics of parts instead of "
                "subtracting them, take a large offset off sparse columns, or standardize the columns yourself."
            )
        relative = np.divide(errors, squares, out=np.zeros_like(errors), where=squares > 0.0)
        return np.sqrt(squares / self.total_weight), float(relative.max(initial=0.0))

    @np.errstate(all="ignore")  # what overflows is refused at the end
    def moments(self, center: bool = True) -> SufficientStatistics:
        """The same about the means, or about zero, instead of the means, for a model without intercept.

        About the means, columns that vary by rounding only are exact zeros.
        """
        if center:
            x_varies, y_varies = self.varying()
            gram, xy = self.gram * np.outer(x_varies, x_varies), self.xy * np.outer(x_varies, y_varies)
            sizes: dict[str, Any] = {"x_size": self.x_size * x_varies, "y_size": self.y_size * y_varies}
            return replace(self, gram=gram, xy=xy, yy=self.yy * y_varies, **sizes)
        root = math.sqrt(self.total_weight)
        x, y = root * self.x_mean, root * self.y_mean
        gram, xy, yy = self.gram + np.outer(x, x), self.xy + np.outer(x, y), self.yy + y * y
        sizes = {"x_size": np.hypot(self.x_size, x), "y_size": np.hypot(self.y_size, y)}
        zeros: dict[str, Any] = {name: 0.0 * getattr(self, name) for name in ("x_mean", "y_mean", "x_rest", "y_rest")}
        # The errors of the means now count once more, times the means.
        return replace(self, gram=gram, xy=xy, yy=yy, error=2 * self.error + 4 * EPS, **sizes, **zeros)._clipped()

    def compress(self, center: bool = True, columns: Any = None) -> CompressedData:
        """A problem of ``n_features + 1`` samples with the same squared loss, by Cholesky factorization.

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
            factorization adds to the diagonal so that dependent columns do not stop it.
        """
        moments = (self if columns is None else self.restrict(columns)).moments(center)
        R, T, jitter = factorize(moments)
        error = moments.error + jitter + (moments.n_features + 8) * EPS
        return CompressedData(R, T, moments.x_size, moments.y_size, moments.x_mean, moments.y_mean, error)


def factorize(moments: SufficientStatistics) -> tuple[FloatArray, FloatArray, float]:
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
    what = "gram, xy and yy of the statistics are not those of any samples"
    raise ValueError(f"{what}: their matrix has negative eigenvalues.")


# Statistics of a few samples --------------------------------------------------------------------------


@np.errstate(all="ignore")  # what overflows is refused at the end
def _block_statistics(X: Any, Y: FloatArray, w: FloatArray) -> SufficientStatistics:
    """Statistics of few samples from products about a point near the means, corrected for its distance to them."""
    total, root = math.fsum(w), np.sqrt(w)
    V: Any
    if is_sparse(X):  # as it is, but constant columns about their value: exact zeros
        high, low = (extreme.toarray().ravel() for extreme in (X.max(axis=0), X.min(axis=0)))
        x_center = np.where(high == low, high, 0.0)
        V = sp.diags_array(root) @ X @ sp.diags_array((high != low).astype(np.float64))
        V.eliminate_zeros()
    else:
        x_center, V = _about_mean(X, root, total)
    y_center, U = _about_mean(Y, root, total)
    gram = (V.T @ V).toarray() if is_sparse(V) else V.T @ V
    tasks = np.ascontiguousarray(U.T)  # NumPy adds up pairwise along the last axis only
    x_squares, y_squares = np.diagonal(gram), np.sum(tasks * tasks, axis=1)
    dx, dy = V.T @ root / math.sqrt(total), np.sum(tasks * root, axis=1) / math.sqrt(total)
    n_terms = int(np.bincount(V.indices).max(initial=0)) if is_sparse(V) else len(w)
    x_mean, x_rest = two_sum(x_center, dx / math.sqrt(total))
    y_mean, y_rest = two_sum(y_center, dy / math.sqrt(total))
    products = gram - np.outer(dx, dx), V.T @ U - np.outer(dx, dy), y_squares - dy * dy
    sizes = _sizes(x_squares, V), _sizes(y_squares, U)
    error = EPS * (16 + 0.5 * n_terms)  # half of EPS for each addition
    means = x_mean, y_mean, x_rest, y_rest
    return SufficientStatistics(len(w), total, *means, *products, *sizes, error)._clipped()


def _sizes(squares: FloatArray, V: Any) -> FloatArray:
    """Norms of columns; those whose squares vanish have at least the size of an entry, so that they can be refused."""
    sizes = np.sqrt(squares)
    small = np.flatnonzero(sizes < SMALLEST_NORM)
    if len(small):
        largest = abs(V[:, small]).max(axis=0)
        sizes[small] = np.maximum(sizes[small], largest.toarray().ravel() if is_sparse(V) else largest)
    return sizes


def _about_mean(X: FloatArray, root: FloatArray, total: float) -> tuple[FloatArray, FloatArray]:
    """Rounded means, and the weighted columns about them; a constant column becomes exact zeros."""
    mean = X[0] + root**2 @ (X - X[0]) / total
    return mean, root[:, None] * (X - mean)


class PairwiseSum:
    """Sum of statistics, like a counter to a small base: errors and memory grow with the logarithm of their number."""

    def __init__(self, parts: Iterable[SufficientStatistics] = ()) -> None:
        self.stack: list[tuple[int, int, SufficientStatistics]] = []  # rank, how many parts of that rank, their sum
        for part in parts:
            self.add(part)

    def add(self, part: SufficientStatistics) -> None:
        """Add one more."""
        rank, count = 0, 1
        while self.stack and self.stack[-1][0] == rank:
            _, others, sum_of_others = self.stack.pop()
            part, count = sum_of_others + part, others + 1
            if count < _MERGE_BASE:
                break
            rank, count = rank + 1, 1
        self.stack.append((rank, count, part))

    def total(self) -> SufficientStatistics:
        """The sum of all."""
        if not self.stack:
            raise ValueError(NO_SAMPLES)
        return reduce(SufficientStatistics.__add__, [part for _, _, part in reversed(self.stack)])


def statistics_of_parts(blocks: Iterable[tuple[Any, Any, Any, IndexArray]], n_parts: int) -> list[SufficientStatistics]:
    """Statistics of disjoint parts of the samples, in one pass over blocks ``(X, Y, w, part of each sample)``.

    Samples of a negative part belong to none.
    """
    sums = [PairwiseSum() for _ in range(n_parts)]
    for X, Y, w, parts in blocks:
        present = np.unique(parts[(parts >= 0) & (w > 0.0)])
        shares = {part: float(np.mean(parts == part)) for part in present.tolist()}
        for part in follow_pass(shares, shares.__getitem__):
            rows = np.flatnonzero(parts == part)
            sums[part].add(SufficientStatistics.from_arrays(X[rows], Y[rows], w[rows]))
    return [found.total() for found in sums]


def statistics_of_samples(where: str, *block: Any) -> Iterator[SufficientStatistics]:
    """Statistics of a few samples at a time of a block ``(X, Y, sample_weight)``, which ``where`` names in messages."""
    for piece in sample_pieces(where, block, lambda X, _: _SPARSE_ROWS if is_sparse(X) else _DENSE_ROWS):
        yield _block_statistics(*piece)


def _statistics_of_blocks(blocks: Iterable[tuple[Any, ...]]) -> Iterator[SufficientStatistics]:
    expected = "(X, Y) or (X, Y, sample_weight)"
    if not isinstance(blocks, Iterable):
        raise TypeError(f"blocks must be an iterable of {expected}, got {blocks!r} of type {type(blocks).__name__}.")
    for number, block in enumerate(blocks):
        if not isinstance(block, tuple | list) or len(block) not in (2, 3):
            raise TypeError(f"blocks must hold {expected}, but block {number} is of type {type(block).__name__}.")
        yield from statistics_of_samples(f" of block {number}", *block)


def _with_suffix(path: Any) -> Path:
    path = checked_path("path", path)
    return path if path.suffix == ".npz" else path.with_name(path.name + ".npz")
