"""What the rest of the package asks of a design: the owner of X and of everything in sample space."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import starmap
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.linalg import qr, solve_triangular

from .._checks import check_targets, positive_sample_weight
from .._typing import FloatArray, Handle, IndexArray
from ..norm.kernels import EPS, LARGEST_NORM, SMALLEST_NORM, divide_rows, merged_means
from .factors import CompressedData, compress_qr
from .statistics import SufficientStatistics, statistics_of_parts

if TYPE_CHECKING:
    from .sparse import Columns

#: A sum over samples: a function and the sample-space arrays that it takes.
Sum = tuple[Any, ...]


# Directions whose squared length is below this, in a Gram matrix of columns of norm 1, are rounding.
_RANK_RTOL = 1e-13
# Rounds of orthonormalization: the first finds the directions, the others remove what rounding left.
_ORTHONORMAL_ROUNDS = 3


@dataclass
class PassCounter:
    """Counts products with X in units of one product with all columns and rows of the original data."""

    total: float = 0.0


class PlainData(NamedTuple):
    """X as an array or a CSC matrix; column j of the design is ``(x_j - mean_j) / scale_j``, None for 0 and 1."""

    X: Any
    mean: FloatArray | None = None
    scale: FloatArray | None = None


@dataclass(frozen=True, eq=False)
class ColumnMoments:
    """Means and centered squares of the columns of some samples; ``a + b`` are those of both sets of samples.

    Attributes
    ----------
    total_weight : float
        ``W = sum_i w_i``; 0 where there are no samples.
    mean : ndarray of shape (n_features,)
        Weighted means, rounded. A column that is constant in every block has exactly its value as mean, and squares
        of exactly zero, where each block delivers them so.
    rest : ndarray of shape (n_features,)
        What rounding took off the means, so that merging many blocks does not add up its errors.
    squares : ndarray of shape (n_features,)
        ``sum_i w_i (x_ij - mean_j)^2``.
    """

    total_weight: float
    mean: FloatArray
    rest: FloatArray
    squares: FloatArray

    def __add__(self, other: ColumnMoments) -> ColumnMoments:
        large, small = (self, other) if self.total_weight >= other.total_weight else (other, self)
        if small.total_weight == 0.0:
            return large
        total = large.total_weight + small.total_weight
        share = small.total_weight / total
        mean, rest, distance = merged_means(large.mean, large.rest, small.mean, small.rest, share)
        squares = large.squares + small.squares + share * large.total_weight * distance * distance
        return ColumnMoments(total, mean, rest, squares)

    def weighted(self, factor: float) -> ColumnMoments:
        """The same for weights times a factor."""
        return ColumnMoments(factor * self.total_weight, self.mean, self.rest, factor * self.squares)

    def restrict(self, columns: IndexArray) -> ColumnMoments:
        """Moments of some columns."""
        return ColumnMoments(self.total_weight, self.mean[columns], self.rest[columns], self.squares[columns])

    def norms(self, center: FloatArray | None = None) -> FloatArray:
        """``sqrt(sum_i w_i (x_ij - center_j)^2)`` of each column; ``center`` is 0 by default."""
        distance = (self.mean if center is None else self.mean - center) + self.rest
        return np.sqrt(self.squares + self.total_weight * distance * distance)

    @classmethod
    def side_by_side(cls, parts: Sequence[ColumnMoments]) -> ColumnMoments:
        """Moments of the columns of all parts, one after the other, which are of the same samples."""
        mean, rest, squares = (
            np.concatenate([getattr(part, name) for part in parts]) for name in ("mean", "rest", "squares")
        )
        return cls(parts[0].total_weight, mean, rest, squares)


class Design(ABC):
    """A matrix X (n_samples, n_features) with the products that solvers need.

    *Feature space* arrays (coefficients, gradients, norms) are ndarrays. *Sample space* arrays (targets,
    predictors, dual points) are handles that only the design may open: other code passes functions of
    plain arrays to :meth:`map` and :meth:`reduce`. Such a function sees some rows at a time.
    """

    shape: tuple[int, int]
    dtype: np.dtype[Any]
    passes: PassCounter
    #: What one column counts: 1 / (columns of the original data), times the fraction of rows.
    unit: float
    #: Columns that became zeros because they vary by no more than rounding: they count as constant, proved or not.
    treated_as_constant: IndexArray = np.zeros(0, dtype=np.intp)
    #: Whether samples are on a cluster: targets come as collections of Dask.
    is_distributed: bool = False
    #: Whether X is read from disk in every product.
    is_on_disk: bool = False
    #: Sufficient statistics of the samples, which know the targets too, where there are no samples.
    known_statistics: SufficientStatistics | None = None
    #: Names of the columns, where their source has them.
    feature_names: list[str] | None = None
    #: Work of a product relative to one with a dense matrix of this shape.
    density: float = 1.0
    #: Whether the design keeps the columns it was asked for, so that others should not.
    keeps_columns: bool = False
    #: What a sum over samples costs besides its operations, in operations: a journey to where the samples are.
    journey: float = 0.0
    #: What was taken off each column of X as it was given, and by what it was multiplied then; None means nothing.
    mean: FloatArray | None = None
    inverse_scale: FloatArray | None = None

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return self.shape[0]

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return self.shape[1]

    # Between the spaces -----------------------------------------------------------------------------

    @abstractmethod
    def matmul(self, B: FloatArray, offset: FloatArray | None = None) -> Handle:
        """``X B + 1 offset^T`` in double precision; zero rows of ``B`` need not be visited."""

    def rmatmul(self, T: Handle) -> FloatArray:
        """``X^T T`` in double precision. A design has this or :meth:`evaluate`; each is made of the other."""
        return self.evaluate(T)[0]

    # Sample space -----------------------------------------------------------------------------------

    # As they are here they serve designs whose sample-space arrays are in this process.

    def samples(self, values: Any) -> Handle:
        """Adopt an array with one row per sample: in this process it is its own handle."""
        return np.asarray(values, dtype=np.float64)

    def map(self, function: Callable[..., FloatArray], *samples: Handle, **totals: Any) -> Handle:
        """Apply a row-wise function of arrays; ``totals`` are further arguments that :meth:`total` gave."""
        return function(*samples, **totals)

    def reduce(self, function: Callable[..., Any], *samples: Handle) -> Any:
        """Sum over blocks of rows of a function of arrays."""
        return function(*samples)

    def select(self, samples: Handle, rows: IndexArray) -> Handle:
        """The given rows of a sample-space array, for use with ``self.rows(rows)``."""
        return samples[rows]

    def reduce_all(self, *sums: Sum) -> list[Any]:
        """Several such sums, at once where that saves a journey to the samples."""
        return list(starmap(self.reduce, sums))

    def total(self, function: Callable[..., Any], *samples: Handle) -> Any:
        """The same for use by :meth:`map` only: where samples live elsewhere, it stays there."""
        return self.reduce(function, *samples)

    def evaluate(self, T: Handle, *sums: Sum) -> tuple[FloatArray, list[Any]]:
        """``X^T T`` and sums over samples, all at once where that saves a journey to the samples."""
        return self.rmatmul(T), self.reduce_all(*sums)

    def adopt(self, Y: Any, sample_weight: Any, check: Any, total_weight: float | None = None) -> tuple[Any, Any, Any]:
        """Targets (n, n_tasks) and weights (n, 1) as users give them, checked, with the design of these samples.

        Samples of weight zero are not there. ``check`` refuses targets that the loss cannot use. Weights are scaled to
        ``total_weight`` if that is given.
        """
        Y = check(check_targets(Y, self.n_samples))
        weight = positive_sample_weight(sample_weight, self.n_samples)
        present = np.flatnonzero(weight)
        if total_weight is not None:
            weight = total_weight * (weight / weight.sum())  # a factor could overflow
        if len(present) == self.n_samples:
            return self, self.samples(Y), self.samples(weight[:, None])
        design = self.rows(present)
        return design, design.samples(Y[present]), design.samples(weight[present, None])

    def gather(self, samples: Handle) -> FloatArray:
        """A sample-space array in this process; only for designs that :meth:`brought_near` brings there."""
        raise NotImplementedError(f"{type(self).__name__} does not gather sample-space arrays")

    def exported(self, samples: Handle, width: int) -> Any:
        """A sample-space array, of so many columns, as users get it."""
        return samples

    def orthonormal(self, U: Handle, w: Handle) -> tuple[Handle, FloatArray]:
        """``Q = U A`` with ``Q^T diag(w) Q = I`` that spans the columns of ``U``, and ``A``.

        By their Gram matrix, which cannot see directions shorter than the root of the precision.
        """
        basis = U
        mixing: Any = 1.0
        for _ in range(_ORTHONORMAL_ROUNDS):
            mixing = np.dot(mixing, _whitening(self.reduce(products, basis, self.map(np.multiply, basis, w))))
            basis = self.map(partial(np.dot, b=mixing), U)
        return basis, mixing

    # Columns and rows -------------------------------------------------------------------------------

    def column_means(self, w: Handle) -> FloatArray:
        """Weighted mean of each column; exact for constant columns up to one rounding."""
        return self.moments(w).mean

    def column_norms(self, w: Handle, center: FloatArray | None = None) -> FloatArray:
        """``sqrt(sum_i w_i (x_ij - center_j)^2)`` for each column."""
        return self.moments(w).norms(center)

    def moments(self, w: Handle) -> ColumnMoments:
        """Moments of the columns. A design has this or the two methods before; each is made of the other."""
        nothing = np.zeros(self.n_features)
        if self.n_samples == 0:
            return ColumnMoments(0.0, nothing, nothing, nothing)
        mean = self.column_means(w)
        return ColumnMoments(float(self.reduce(np.sum, w)), mean, nothing, self.column_norms(w, mean) ** 2)

    @abstractmethod
    def restrict(self, columns: IndexArray) -> Design:
        """A design of its own with a copy of these columns."""

    @abstractmethod
    def rows(self, rows: IndexArray) -> Design:
        """A design of its own with a copy of these rows."""

    def shuffled(self, rng: np.random.Generator) -> IndexArray:
        """All rows in an order that is as good as random for :meth:`rows`, and cheap to read."""
        return rng.permutation(self.n_samples)

    @abstractmethod
    def largest_row(self, w: Handle, constant: float = 0.0, mean: Any = None, scale: Any = None) -> float:
        """``max_i w_i (constant + ||(x_i - mean) * scale||^2)``; mean 0 and scale 1 by default."""

    @abstractmethod
    def gram(self, left: IndexArray, right: IndexArray, w: Handle) -> FloatArray:
        """``X_left^T diag(w) X_right``."""

    def gram_and_sums(self, left: IndexArray, right: IndexArray, w: Handle) -> tuple[Any, ...]:
        """The same with the weighted sums of the columns ``left`` and ``right``, and the sum of the weights."""
        total = float(self.reduce(np.sum, w))
        left_sums = total * self.restrict(left).column_means(w)
        right_sums = left_sums if right is left else total * self.restrict(right).column_means(w)
        return self.gram(left, right, w), left_sums, right_sums, total

    def columns(self, columns: IndexArray) -> Columns | None:
        """Copies of some columns as local arrays, or None where samples live elsewhere or copies do not fit."""
        return None

    def brought_near(self, columns: IndexArray, n_tasks: int) -> Design | None:
        """Some columns as a design in this process, where moving them there costs less than solving where they are."""
        return None

    def compressed(self, Y: Handle, w: Handle, *, exact: bool, center: bool = False) -> CompressedData | None:
        """Few samples with the same squared loss for targets ``Y``, in one pass; None where that is not to be had.

        By QR factorization if ``exact``, else through the Gram matrix.
        """
        return None

    def statistics_of_parts(self, Y: Handle, w: Handle, parts: Any, n_parts: int) -> list[SufficientStatistics]:
        """Sufficient statistics of disjoint parts of the samples, in one pass; samples of a negative part have none."""
        raise NotImplementedError(f"{type(self).__name__} has no statistics of its own")

    def input_coefficients(self, B: FloatArray, on_basis: FloatArray | None = None) -> tuple[FloatArray, FloatArray]:
        """Coefficients for X as it was given, and what to add to the intercept.

        ``on_basis`` are those of the basis of unpenalized columns, for a design that projects it out.
        """
        if self.mean is None or self.inverse_scale is None:
            return B, np.zeros(B.shape[1])
        B_scaled = B * self.inverse_scale[:, None]
        return B_scaled, -(self.mean @ B_scaled)

    def own_coefficients(self, B: FloatArray) -> FloatArray:
        """Coefficients of this design's columns, from those for X as it was given; zero for columns that are zero."""
        return B if self.inverse_scale is None else divide_rows(B, self.inverse_scale)

    @property
    def column_centers(self) -> FloatArray | None:
        """What was taken off each column of X as it was given; None where nothing was."""
        return None if self.mean is None or not self.mean.any() else self.mean

    def basis_coefficients(self, B: FloatArray) -> tuple[FloatArray, float]:
        """What ``X B``, for X as it was given, has in the span of the basis that is projected out, as coefficients.

        And a bound on it, whatever cancels.
        """
        return np.zeros((0, B.shape[1])), 0.0

    def rounding_norms(self, norms: FloatArray, total_weight: float) -> FloatArray:
        """Column norms of the numbers that products really add up, given the norms of the columns."""
        return norms

    def plain_data(self) -> PlainData | None:
        """The data as plain arrays, for the compiled kernel; None where they are elsewhere or would have to be made."""
        return None

    def charge(self, columns: float) -> None:
        """Count a product with this many columns."""
        self.passes.total += columns * self.unit


class LocalDesign(Design):
    """A design whose X and sample-space arrays are in this process."""

    def __init__(self, X: Any, passes: PassCounter | None = None, unit: float | None = None) -> None:
        self.X = X
        self.shape = (X.shape[0], X.shape[1])
        self.dtype = X.dtype
        self.passes = PassCounter() if passes is None else passes
        self.unit = 1.0 / X.shape[1] if unit is None else unit

    def compressed(self, Y: Handle, w: Handle, *, exact: bool, center: bool = False) -> CompressedData | None:
        """Few samples with the same squared loss."""
        self.charge(self.n_features)
        if exact:
            return compress_qr(self.X, Y, w[:, 0], center=center)
        return SufficientStatistics.from_arrays(self.X, Y, w[:, 0]).compress(center)

    def gram(self, left: IndexArray, right: IndexArray, w: Handle) -> FloatArray:
        chosen: Any = self.columns(left)
        return chosen.gram(chosen if right is left else self.columns(right), w)

    @abstractmethod
    def row_squares(self, mean: FloatArray | None = None, scale: FloatArray | None = None) -> FloatArray:
        """``||(x_i - mean) * scale||^2`` of each row; a sum over columns."""

    def largest_row(self, w: Handle, constant: float = 0.0, mean: Any = None, scale: Any = None) -> float:
        return float(np.max(w[:, 0] * (constant + self.row_squares(mean, scale))))

    def statistics_of_parts(self, Y: Handle, w: Handle, parts: IndexArray, n_parts: int) -> list[SufficientStatistics]:
        """Of all samples at once."""
        self.charge(self.n_features)
        return statistics_of_parts([(self.X, Y, w[:, 0], parts)], n_parts)

    def orthonormal(self, U: Handle, w: Handle) -> tuple[Handle, FloatArray]:
        """By a QR factorization with pivoting, which sees all directions that are more than rounding."""
        root = np.sqrt(w)
        size = np.linalg.norm(root * U, axis=0)
        scaled = root * U / np.where(size > 0.0, size, 1.0)
        Q, R, order = qr(scaled, mode="economic", pivoting=True)
        diagonal = np.abs(np.diagonal(R))
        rank = int(np.count_nonzero(diagonal > rounding_rtol(len(U)) * diagonal.max(initial=0.0)))
        mixing = np.zeros((len(size), rank))
        mixing[order[:rank]] = solve_triangular(R[:rank, :rank], np.eye(rank)) / size[order[:rank], None]
        return Q[:, :rank] / root, mixing


def is_dask(values: Any) -> bool:
    """Whether this is a collection of Dask."""
    return hasattr(values, "__dask_graph__") and type(values).__module__.startswith(("dask.", "dask_expr."))


def check_overflow(norms: FloatArray) -> None:
    """Refuse columns whose squared norms leave the range of floating-point numbers, by their norms."""
    too_large = np.flatnonzero(~(norms <= LARGEST_NORM))
    if len(too_large):
        raise ValueError(
            f"X has {len(too_large)} columns so large that their squared norm overflows, the first is column "
            f"{too_large[0]}. Rescale them, or the sample weights."
        )


def check_underflow(design: Design, suspects: IndexArray, *, constant_is_zero: bool = False) -> None:
    """Refuse columns whose entries are so small that their squares vanish; ``suspects`` may be zeros as well.

    Products are linear and do not vanish: those of several columns at once tell whether any entry is not zero.
    """
    counted = design.passes.total
    groups = [suspects] if len(suspects) else []
    while groups:
        columns = groups.pop()
        # Large factors with which no column cancels another.
        factors = np.random.default_rng(0).uniform(1.0, 2.0, (len(columns), 1)) / SMALLEST_NORM
        Z = design.restrict(columns).matmul(factors)
        size = design.reduce(_sum_of_sizes, Z)
        if size > 0.0 and len(columns) > 1:
            groups += np.array_split(columns, 2)[::-1]
        elif size > 0.0:
            mean = float(design.reduce(np.sum, Z)) / design.n_samples
            varies = design.reduce(partial(_sum_of_sizes, center=mean), Z) > 64 * EPS * size
            if varies or not constant_is_zero:
                raise ValueError(
                    f"X has columns so small that their squared norm underflows, the first is column {columns[0]}. "
                    "Rescale them, for example to a standard deviation of 1."
                )
    design.passes.total = counted  # as norms and means, this belongs to building a problem


def _sum_of_sizes(Z: FloatArray, center: float = 0.0) -> float:
    return float(np.abs(Z - center).sum())


def center_products(raw: Any, left_mean: Any, left_sums: Any, right_mean: Any, right_sums: Any, total: float) -> Any:
    """Weighted products of columns less their means, from those as they are and the weighted sums; in place."""
    raw -= np.outer(left_mean, right_sums) + np.outer(left_sums - total * left_mean, right_mean)
    return raw


def rounding_rtol(n_samples: int) -> float:
    """What is left of a column by projections, relative to its norm, and nothing but rounding."""
    return 64.0 * EPS * float(np.sqrt(n_samples))


def _whitening(G: FloatArray) -> FloatArray:
    """``A`` with ``A^T G A = I`` on the directions that are not rounding."""
    size = np.sqrt(np.maximum(np.diagonal(G), 0.0))
    inverse = np.divide(1.0, size, out=np.zeros_like(size), where=size > EPS * size.max(initial=0.0))
    values, vectors = np.linalg.eigh(inverse[:, None] * G * inverse)
    kept = values > _RANK_RTOL * len(G)
    return inverse[:, None] * vectors[:, kept] / np.sqrt(values[kept])


def products(left: FloatArray, right: FloatArray) -> FloatArray:
    """``left^T right``, a sum over samples."""
    return left.T @ right
