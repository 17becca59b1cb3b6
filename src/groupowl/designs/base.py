"""What the rest of the package asks of a design: the owner of X and of everything in sample space."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import starmap
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from scipy.linalg import qr, solve_triangular

from .._checks import check_sample_weight, check_targets, check_tasks, check_weights_of, entry_weights
from .._typing import BoolArray, FloatArray, Handle, IndexArray
from ..norm.kernels import (
    EPS,
    LARGEST_NORM,
    LONGEST_SUM_OF_SAMPLES,
    SMALLEST_NORM,
    divide_rows,
    matrix_product,
    merged_means,
    nonzero_rows,
    two_sum,
    vector_product,
)
from .factors import CompressedData, compress_blocks
from .statistics import SufficientStatistics, statistics_of_parts

if TYPE_CHECKING:
    from .observed import Patterns, TaskMoments
    from .sparse import Columns

#: A sum over samples: a function and the sample-space arrays that it takes.
Sum = tuple[Any, ...]


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

    def norms(self) -> FloatArray:
        """``sqrt(sum_i w_i x_ij^2)`` of each column."""
        return np.sqrt(self.squares + self.total_weight * (self.mean + self.rest) ** 2)

    @classmethod
    def about(cls, total_weight: float, mean: FloatArray, rest: FloatArray, squares: FloatArray) -> ColumnMoments:
        """Moments from squares about a rounded mean, which a column with a large offset is far from."""
        # Never zero where squares are not: that is for constant columns.
        return cls(total_weight, mean, rest, np.maximum(squares - total_weight * rest * rest, EPS**2 * squares))

    @classmethod
    def side_by_side(cls, parts: Sequence[ColumnMoments]) -> ColumnMoments:
        """Moments of the columns of all parts, one after the other, which are of the same samples."""
        names = ("mean", "rest", "squares")
        joined = (np.concatenate([getattr(part, name) for part in parts]) for name in names)
        return cls(parts[0].total_weight, *joined)


# Arrays of several solutions have no more entries: some ten of them are in use at once.
_WIDE_ENTRIES = 1 << 22


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
    #: Whether the Gram matrix of X as it was given says all about these columns.
    has_statistics: bool = True
    #: Whether functions of sample-space arrays see all samples at once.
    is_one_block: bool = False
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
    #: Standard deviations of the columns of X, 1 where they do not vary, where columns are standardized.
    deviation: FloatArray | None = None
    #: Which targets of which samples were observed, where weights differ between tasks.
    patterns: Patterns | None = None
    #: Samples of positive weight that were left out because none of their targets was observed, and all there were.
    left_out: tuple[int, int] = (0, 0)
    #: What columns are like in each task, where that is so and it is known.
    task_moments: TaskMoments | None = None
    _known_moments: tuple[Handle, ColumnMoments] | None = None

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

    def predictor(self, B: FloatArray, offset: FloatArray | None = None) -> Handle:
        """The same for coefficients of all tasks, with any numbers where no target was observed."""
        return self.matmul(B, offset)

    def rmatmul(self, T: Handle) -> FloatArray:
        """``X^T T`` in double precision. A design has this or :meth:`evaluate`; each is made of the other."""
        return self.evaluate(T)[0]

    # Sample space -----------------------------------------------------------------------------------

    # As they are here they serve designs whose sample-space arrays are in this process.

    def samples(self, values: Any) -> Handle:
        """Adopt an array with one row per sample: in this process it is its own handle."""
        return np.asarray(values, dtype=np.float64)

    def map(self, function: Callable[..., FloatArray], *samples: Handle) -> Handle:
        """Apply a row-wise function of arrays."""
        return function(*samples)

    def reduce(self, function: Callable[..., Any], *samples: Handle) -> Any:
        """Sum over blocks of rows of a function of arrays."""
        return function(*samples)

    def select(self, samples: Handle, rows: IndexArray) -> Handle:
        """The given rows of a sample-space array, for use with ``self.rows(rows)``."""
        return samples[rows]

    def reduce_all(self, *sums: Sum) -> list[Any]:
        """Several sums over samples, in one visit where the samples are far away."""
        return list(starmap(self.reduce, sums))

    def evaluate(self, T: Handle, *sums: Sum) -> tuple[FloatArray, list[Any]]:
        """``X^T T`` and sums over samples, all at once where that saves a journey to the samples."""
        return self.rmatmul(T), self.reduce_all(*sums)

    def adopt(
        self,
        Y: Any,
        sample_weight: Any,
        check: Any,
        total_weight: float | None = None,
        whole: str = "",
        targets: Any = np.asarray,
    ) -> tuple[Any, Any, Any]:
        """Check targets and weights, and return them as (n, n_tasks) with the design of these samples.

        Weights are (n, 1), or (n, n_tasks) where they differ between tasks: there they may be zero, and so they are
        where targets were not observed (NaN). Samples of weight zero are not there. ``check`` refuses targets that the
        loss cannot use; ``whole`` is its reason, if it has one, to need all of them, and ``targets`` are those of Y,
        which may have something else beside them. Weights are scaled so that their
        sums over samples, or the mean of these over tasks, are ``total_weight`` if that is given.
        """
        remedy = f"Remove the samples without a target{f': {whole}' if whole else ''}."
        Y = check_targets(Y, self.n_samples, may_miss=not whole, remedy=remedy)
        check_weights_of(whole, sample_weight)
        weight = check_sample_weight(sample_weight, self.n_samples, n_tasks=0 if whole else targets(Y).shape[1])
        Y, w = entry_weights(Y, weight, targets(Y).shape[1])
        check_tasks(w > 0.0)
        Y = check(Y)
        if total_weight is not None:
            sums = w.sum() if w.shape[1] == 1 else w.sum() / w.shape[1]
            w = total_weight * (w / sums)  # a factor could overflow
        present = np.flatnonzero(w.any(axis=1))
        design: Design = self
        if len(present) < self.n_samples:
            n_wanted = int(np.count_nonzero(weight.any(axis=1) if weight.ndim == 2 else weight))
            design, Y, w = self.rows(present), Y[present], w[present]
            design.left_out = n_wanted - len(present), self.n_samples
        if w.shape[1] > 1:
            from .observed import ObservedDesign, find_patterns  # which is made of designs

            design = ObservedDesign(design, find_patterns(w))
        return design, design.samples(Y), design.samples(w)

    def widest(self) -> int:
        """Columns that sample-space arrays may have where several solutions are looked at together; 1 at least."""
        return max(_WIDE_ENTRIES // max(self.n_samples, 1), 1)

    def gather(self, samples: Handle) -> FloatArray:
        """A sample-space array in this process; only for designs that :meth:`brought_near` brings there."""
        raise NotImplementedError(f"{type(self).__name__} does not gather sample-space arrays")

    def exported(self, samples: Handle, width: int) -> Any:
        """A sample-space array, of so many columns, as users get it."""
        return samples

    def orthonormal(self, U: Handle, w: Handle) -> tuple[Handle, FloatArray]:
        """``Q = U A`` with ``Q^T diag(w) Q = I`` that spans the columns of ``U``, and ``A``."""
        mixing: Any = 1.0
        for _ in range(2):  # the second round removes what rounding left
            step = _whitening(np.vstack(self.reduce(_triangle, U, w)), rounding_rtol(self.n_samples))
            U = self.map(partial(np.dot, b=step), U)
            mixing = np.dot(mixing, step)
        return U, mixing

    # Columns and rows -------------------------------------------------------------------------------

    def column_norms(self, w: Handle) -> FloatArray:
        """``sqrt(sum_i w_i x_ij^2)`` for each column."""
        return self.moments(w).norms()

    def moments(self, w: Handle) -> ColumnMoments:
        """Moments of the columns; those for the last weights are kept."""
        if self._known_moments is None or self._known_moments[0] is not w:
            self._known_moments = w, self.compute_moments(w)
        return self._known_moments[1]

    def compute_moments(self, w: Handle) -> ColumnMoments:
        """The same without a memory: means are exact for constant columns, up to one rounding."""
        raise NotImplementedError(f"{type(self).__name__} does not compute means of columns")

    def compute_task_moments(self, w: Handle) -> TaskMoments:
        """Moments of the columns in each task, where weights differ between tasks."""
        raise NotImplementedError(f"{type(self).__name__} does not compute moments of tasks")

    def squared_products(self, H: Handle, center: FloatArray | None = None) -> FloatArray:
        """``sum_i h_ik (x_ij - center_j)^2``, of shape (n_features, n_tasks), or a little more, for ``h >= 0``.

        As it is here, a pass for each task.
        """
        found = []
        for k in range(len(self.reduce(np.add.reduce, H))):
            weights = self.map(partial(_column, k=k), H)
            if center is None:
                found.append(self.column_norms(weights) ** 2)
                continue
            moments = self.compute_moments(weights)
            found.append(moments.squares + moments.total_weight * (moments.mean - center + moments.rest) ** 2)
        return np.column_stack(found)

    def task_sums(self, w: Handle, center: FloatArray | None = None) -> tuple[FloatArray, FloatArray]:
        """``sum_i w_ik (x_ij - center_j)`` and the same of squares, of shape (n_features, n_tasks)."""
        sums = self.rmatmul(w)
        if center is not None:
            sums = sums - np.outer(center, self.reduce(np.add.reduce, w))
        return sums, self.squared_products(w, center)

    def ranges(self) -> tuple[FloatArray, FloatArray]:
        """Smallest and largest entry of each column, or what bounds them: as it is here, the norms."""
        norms = self.column_norms(self.samples(np.ones((self.n_samples, 1))))
        return -norms, norms

    @abstractmethod
    def restrict(self, columns: IndexArray) -> Design:
        """A design of its own with a copy of these columns."""

    @abstractmethod
    def rows(self, rows: IndexArray) -> Design:
        """A design of its own with a copy of these rows."""

    def span(self, rows: slice) -> Design:
        """The same for rows that follow each other, without a copy where possible."""
        return self.rows(np.arange(*rows.indices(self.n_samples)))

    def compressed_patterns(self, Y: Handle, w: Handle, *, center: bool) -> Any:
        """Few samples of each pattern of observed targets with the same squared loss; None where there are none."""
        return None

    def shuffled(self, rng: np.random.Generator) -> IndexArray:
        """All rows in an order that is as good as random for :meth:`rows`, and cheap to read."""
        return rng.permutation(self.n_samples)

    @abstractmethod
    def gram(self, left: IndexArray, right: IndexArray, w: Handle) -> FloatArray:
        """``X_left^T diag(w) X_right``."""

    def gram_and_sums(self, left: IndexArray, right: IndexArray, w: Handle) -> tuple[Any, ...]:
        """The same with the weighted sums of the columns ``left`` and ``right``, and the sum of the weights."""
        left_sums = self.restrict(left).rmatmul(w)[:, 0]
        right_sums = left_sums if right is left else self.restrict(right).rmatmul(w)[:, 0]
        return self.gram(left, right, w), left_sums, right_sums, float(self.reduce(np.sum, w))

    def columns(self, columns: IndexArray) -> Columns | None:
        """Copies of some columns as local arrays, or None where samples live elsewhere or copies do not fit."""
        return None

    def brought_near(self, columns: IndexArray, n_tasks: int) -> Design | None:
        """Copy some columns into this process, if that costs less than solving where they are."""
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

        ``on_basis`` are those of the basis of unpenalized columns, for a design that projects it out. Without it ``B``
        may be that of several solutions, along a first axis.
        """
        if self.mean is None or self.inverse_scale is None:
            return B, np.zeros(B.shape[-1])
        B_scaled = B * self.inverse_scale[:, None]
        return B_scaled, -vector_product(self.mean, B_scaled)

    def own_coefficients(self, B: FloatArray) -> FloatArray:
        """Coefficients of this design's columns, from those for X as it was given; zero for columns that are zero."""
        return B if self.inverse_scale is None else divide_rows(B, self.inverse_scale)

    @cached_property
    def penalty_scale(self) -> FloatArray | None:
        """Factors that bring coefficients of the given X to the scale of the penalty.

        None where nothing was scaled. Columns that are not scaled because they do not vary have 1.
        """
        scale = self._own_scale()
        if scale is None or (self.deviation is None and np.all(scale == 1.0)):
            return None
        scale.flags.writeable = False  # results share it
        return scale

    def _own_scale(self) -> FloatArray | None:
        inverse = self.inverse_scale
        return None if inverse is None else np.divide(1.0, inverse, out=np.ones(len(inverse)), where=inverse > 0.0)

    def zero_columns(self, norms: FloatArray) -> BoolArray:
        """Columns of X as it was given that are zero here, by the norms of this design's columns."""
        return norms == 0.0

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

    is_one_block = True
    #: Whether rows ("C") or columns ("F") are contiguous.
    _order = "F"

    def __init__(self, X: Any, passes: PassCounter | None = None, unit: float | None = None) -> None:
        self.X = X
        self.shape = (X.shape[0], X.shape[1])
        self.dtype = X.dtype
        self.passes = PassCounter() if passes is None else passes
        self.unit = 1.0 / X.shape[1] if unit is None else unit

    def blocks(self, X: Any = None) -> Iterator[tuple[slice, slice, Any]]:
        """Pieces of X, or of columns of it, in double precision, with their rows and columns."""
        raise NotImplementedError(f"{type(self).__name__} has no pieces of its own")

    def gathered(self, support: IndexArray) -> Any:
        """Copy a few columns if products with the copy are faster than with all of X; otherwise None."""
        raise NotImplementedError(f"{type(self).__name__} gathers no columns")

    def product(self, X: Any, B: FloatArray) -> FloatArray:
        """``X B`` of a piece of X, or of columns of it, in double precision."""
        return matrix_product(X, B)

    def transposed_product(self, X: Any, T: FloatArray) -> FloatArray:
        """``X^T T`` of a piece of X in double precision."""
        if self._order == "F":
            return matrix_product(X.T, T, LONGEST_SUM_OF_SAMPLES)
        # The same product; by rows, BLAS is up to twice as fast with the small factor first.
        return matrix_product(T.T, X, LONGEST_SUM_OF_SAMPLES).T

    def matmul(self, B: FloatArray, offset: FloatArray | None = None) -> Handle:
        """``X B + 1 offset^T``, over the columns with a non-zero row of ``B`` when they are few."""
        support = np.flatnonzero(nonzero_rows(B))
        few = self.gathered(support)
        X, B = (self.X, B) if few is None else (few, B[support])
        self.charge(X.shape[1])
        if X.dtype == np.float64:
            Z = self.product(X, B)
        else:
            pieces = ((rows, self.product(block, B[columns])) for rows, columns, block in self.blocks(X))
            Z = sum_of_pieces(pieces, (X.shape[0], B.shape[1]))
        return Z if offset is None else Z + offset

    def rmatmul(self, T: Handle) -> FloatArray:
        """``X^T T``."""
        self.charge(self.n_features)
        return self.transposed(T)

    def transposed(self, T: Handle) -> FloatArray:
        """The same where it is not counted as a pass."""
        if self.X.dtype == np.float64:
            return self.transposed_product(self.X, T)
        pieces = ((columns, self.transposed_product(block, T[rows])) for rows, columns, block in self.blocks())
        return sum_of_pieces(pieces, (self.n_features, T.shape[1]))

    def bands(self) -> Iterator[tuple[slice, Any]]:
        """Whole rows of X, as many as are in memory at a time, and which they are; all of them are a pass."""
        self.charge(self.n_features)
        yield slice(None), self.X

    def compressed(self, Y: Handle, w: Handle, *, exact: bool, center: bool = False) -> CompressedData | None:
        """Few samples with the same squared loss."""
        samples = ((X, Y[rows], w[rows, 0]) for rows, X in self.bands())
        return compress_blocks(samples, center) if exact else SufficientStatistics.from_blocks(samples).compress(center)

    def restrict(self, columns: IndexArray) -> Self:
        """Copy columns."""
        return type(self)(self.X[:, columns], self.passes, self.unit)

    def rows(self, rows: IndexArray) -> Design:
        """Copy rows."""
        return type(self)(self.X[rows], self.passes, self.unit * len(rows) / self.n_samples)

    def gram(self, left: IndexArray, right: IndexArray, w: Handle) -> FloatArray:
        chosen: Any = self.columns(left)
        return chosen.gram(w) if right is left else chosen.gram(w, self.columns(right))

    def statistics_of_parts(self, Y: Handle, w: Handle, parts: IndexArray, n_parts: int) -> list[SufficientStatistics]:
        """One pass, whatever the number of parts."""
        return statistics_of_parts(((X, Y[rows], w[rows, 0], parts[rows]) for rows, X in self.bands()), n_parts)


def sum_of_pieces(pieces: Iterable[tuple[slice, FloatArray]], shape: tuple[int, int]) -> FloatArray:
    """Sum of pieces of some rows each, however many they are, with what rounding takes off on the way."""
    total, rest = np.zeros(shape), np.zeros(shape)
    for rows, piece in pieces:
        total[rows], lost = two_sum(total[rows], piece)
        rest[rows] += lost
    rest[~np.isfinite(rest)] = 0.0  # what overflows is what it is
    total += rest
    return total


def is_dask(values: Any) -> bool:
    """Whether this is a collection of Dask."""
    return hasattr(values, "__dask_graph__") and type(values).__module__.startswith(("dask.", "dask_expr."))


def check_overflow(norms: FloatArray) -> None:
    """Refuse columns whose squared norms leave the range of floating-point numbers, by their norms."""
    too_large = np.flatnonzero(~(norms <= LARGEST_NORM))
    if len(too_large):
        what = f"X has {len(too_large)} columns so large that their squared norm overflows"
        raise ValueError(f"{what}, the first is column {too_large[0]}. Rescale them, or the sample weights.")


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
                what = f"X has columns so small that their squared norm underflows, the first is column {columns[0]}"
                raise ValueError(f"{what}. Rescale them, for example to a standard deviation of 1.")
    design.passes.total = counted  # as norms and means, this belongs to building a problem


def _sum_of_sizes(Z: FloatArray, center: float = 0.0) -> float:
    return float(np.abs(Z - center).sum())


def rounding_rtol(n_samples: int) -> float:
    """Relative norm below which what projections leave of a column is rounding error."""
    return 64.0 * EPS * float(np.sqrt(n_samples))


def _triangle(U: FloatArray, w: FloatArray) -> list[FloatArray]:
    """R of the QR factorization of some rows, in a list: sums of these are lists of all blocks."""
    return [np.asarray(np.linalg.qr(np.sqrt(w) * U, mode="r"))]


def _whitening(R: FloatArray, rtol: float) -> FloatArray:
    """Matrix ``A`` for which ``R A`` has orthonormal columns, without directions that are rounding error."""
    size = np.linalg.norm(R, axis=0)
    scaled, order = qr(R / np.where(size > 0.0, size, 1.0), mode="r", pivoting=True)
    diagonal = np.abs(np.diagonal(scaled))
    rank = int(np.count_nonzero(diagonal > rtol * diagonal.max(initial=0.0)))
    mixing = np.zeros((len(size), rank))
    mixing[order[:rank]] = solve_triangular(scaled[:rank, :rank], np.eye(rank)) / size[order[:rank], None]
    return mixing


def _column(values: FloatArray, k: int) -> FloatArray:
    return np.ascontiguousarray(values[:, k : k + 1])


def products(left: FloatArray, right: FloatArray) -> FloatArray:
    """``left^T right``, a sum over samples."""
    return left.T @ right
