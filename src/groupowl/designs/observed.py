"""Samples of which not every target was observed: products take the entries that there are, pattern by pattern.

A pattern is a set of tasks whose targets some samples have, and others not. Where patterns are few, the samples of one
are multiplied together: own samples for each task, stacked, cost as much as if they were apart.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial, reduce
from operator import add
from typing import Any

import numpy as np
from scipy.linalg import helmert

from .._typing import BoolArray, FloatArray, Handle, IndexArray
from ..norm.kernels import EPS, nonzero_rows
from .base import ColumnMoments, Design, Sum, rounding_rtol
from .dense import DenseColumns, GramCache
from .factors import CompressedData
from .sparse import Columns
from .wrapped import WrappedDesign, with_deviations

# More patterns than this, or than one for so many samples, are no use: products with few rows each are slow.
_MOST_PATTERNS = 64
_LEAST_SAMPLES = 8
# Copying the samples of each pattern pays where no more than this share of the targets was observed.
_SMALL_SHARE = 0.5
# Multiplications that take as long as the fixed cost of a product.
_PRODUCT_OVERHEAD = 2e5
# Samples of each pattern are replaced by few where there are so many times fewer.
_LEAST_SAVED = 2
# Squares about a mean of which less than this is left are computed again, for so many columns at a time.
_SUSPECT = 1e-5
_AT_ONCE = 256


@dataclass(frozen=True, eq=False)
class Pattern:
    """Samples of which the same targets were observed.

    Attributes
    ----------
    rows : slice or ndarray of int
        The samples; a slice where they follow each other.
    tasks : ndarray of int
        Whose targets were observed.
    is_even : bool
        Whether each of the samples has one weight for all of these.
    """

    rows: Any
    tasks: IndexArray
    is_even: bool

    @property
    def entries(self) -> tuple[Any, IndexArray]:
        """Index of the entries of a sample-space array that were observed."""
        return (self.rows if isinstance(self.rows, slice) else self.rows[:, None]), self.tasks


@dataclass(frozen=True, eq=False)
class Patterns:
    """Which targets of which samples were observed.

    Attributes
    ----------
    missing : ndarray of bool of shape (n_samples, n_tasks), or None
        None where samples are elsewhere: weights that are zero say it there.
    groups : tuple of Pattern
        All patterns, where they are few, and more than one; else none.
    """

    missing: BoolArray | None
    groups: tuple[Pattern, ...] = ()

    @cached_property
    def are_apart(self) -> bool:
        """Whether products with the samples of each pattern cost less than products with all of them.

        Where samples of a pattern do not follow each other they are copied.
        """
        follow = all(isinstance(group.rows, slice) for group in self.groups)
        return len(self.groups) > 0 and (follow or self._observed <= _SMALL_SHARE)

    @property
    def share(self) -> float:
        """Share of the products of samples and tasks that are computed."""
        return self._observed if self.are_apart else 1.0

    @property
    def _observed(self) -> float:
        """Share of the targets that were observed, where that is known."""
        return 1.0 if self.missing is None else 1.0 - float(self.missing.mean())

    def cover(self, T: FloatArray) -> bool:
        """Whether an array is zero wherever a target is missing."""
        missing = self.missing
        return missing is not None and T.shape == missing.shape and not T[missing].any()


#: Those of samples on a cluster, where each product is with all of them.
FAR_PATTERNS = Patterns(None)


@dataclass(frozen=True, eq=False)
class TaskMoments:
    """Sums and squares of the columns of X in each task, with its own weights.

    Attributes
    ----------
    totals : ndarray of shape (n_tasks,)
        Sums of the weights.
    center : ndarray of shape (n_features,)
        About what sums and squares are.
    sums, squares : ndarray of shape (n_features, n_tasks)
        ``sum_i w_ik (x_ij - center_j)`` and the same of squares.
    about_means : ndarray of shape (n_features, n_tasks)
        Squares about the mean of the task.
    """

    totals: FloatArray
    center: FloatArray
    sums: FloatArray
    squares: FloatArray
    about_means: FloatArray

    def standardized(self, mean: FloatArray, inverse_scale: FloatArray) -> TaskMoments:
        """Those of the columns less a mean, times a factor, about zero."""
        shift, factor = (self.center - mean)[:, None], inverse_scale[:, None]
        sums = self.sums + shift * self.totals
        squares = self.squares + 2.0 * shift * self.sums + shift * shift * self.totals
        zero = np.zeros_like(self.center)
        return TaskMoments(self.totals, zero, factor * sums, factor**2 * squares, factor**2 * self.about_means)

    def norms(self, n_samples: int, *, center: bool) -> tuple[FloatArray, FloatArray]:
        """Weighted norms of the columns in each task, about its mean or not, and the largest about the center.

        With room for rounding: how far correlations can move must not be less.
        """
        whole = self.squares.max(axis=1)
        own = self.about_means if center else self.squares
        return np.sqrt(own + (8 * EPS * np.sqrt(n_samples) * whole)[:, None]), np.sqrt(whole)


def norms_of_tasks(design: Design, w: Handle, *, center: bool) -> tuple[FloatArray, FloatArray]:
    """Norms as :meth:`TaskMoments.norms` has them; without centers, squares alone serve."""
    moments = design.task_moments
    if moments is None and not center:
        squares = design.squared_products(w)
        return np.sqrt((1.0 + 8 * EPS * np.sqrt(design.n_samples)) * squares), np.sqrt(squares.max(axis=1))
    moments = moments or moments_of_tasks(design, w)
    return moments.norms(design.n_samples, center=center)


def moments_of_tasks(design: Design, w: Handle, center: FloatArray | None = None) -> TaskMoments:
    """Moments about a center, or zero, from one pass; where most of the squares cancels, again from the columns."""
    sums, squares = design.task_sums(w, center)
    center = np.zeros(design.n_features) if center is None else center
    totals = design.reduce(np.add.reduce, w)
    about_means = squares - sums * sums / totals
    largest = squares.max(axis=1)
    is_lost = about_means.max(axis=1) < _SUSPECT * largest
    is_lost |= largest < _SUSPECT * center * center * totals.max()  # squares of sparse columns are those and a little
    lost = np.flatnonzero(is_lost)
    for some in np.array_split(lost, -(-len(lost) // _AT_ONCE)) if len(lost) else ():
        columns = design.restrict(some).matmul(np.eye(len(some)), -center[some])
        about_means[some] = design.reduce(partial(_squares_about, means=sums[some] / totals), columns, w)
        squares[some] = design.reduce(partial(_squares_about, means=np.zeros((len(some), len(totals)))), columns, w)
    return TaskMoments(totals, center, sums, squares, np.maximum(about_means, 0.0))


def _distinct(values: FloatArray) -> FloatArray:
    """One column where all are the same, else all of them."""
    return np.ascontiguousarray(values[:, :1] if np.all(values == values[:, :1]) else values)


def _squares_about(columns: FloatArray, w: FloatArray, means: FloatArray) -> FloatArray:
    """``sum_i w_ik (x_ij - mean_jk)^2``, shape (n_columns, n_tasks)."""
    return np.stack([v @ (columns - mean) ** 2 for mean, v in zip(means.T, w.T, strict=True)], axis=1)


def pooled_weights(w: FloatArray) -> FloatArray:
    """Weights of samples, as a column, that are the sums of those of their targets."""
    return w.sum(axis=1, keepdims=True)


def standardize_tasks(
    design: Design,
    w: Handle,
    *,
    center: bool,
    scale: bool,
    unscaled: IndexArray | None = None,
    rescaled: Callable[[FloatArray, FloatArray], FloatArray] | None = None,
) -> Design:
    """Wrap ``design`` as :func:`~groupowl.designs.standardize` does, with one mean and one deviation for all tasks.

    Deviations are about the means of the tasks: what differs between tasks alone is explained by their intercepts.
    """
    if not (center or scale or rescaled):
        return design
    moments = design.compute_task_moments(w)
    total = float(moments.totals.sum())
    within, whole = moments.about_means.sum(axis=1), moments.squares.sum(axis=1)
    within[within <= rounding_rtol(design.n_samples) ** 2 * whole] = 0.0
    deviation = np.sqrt(within / total)
    size = np.hypot(moments.center, np.sqrt(whole / total))  # the mean may be zero where those of tasks are not
    how: dict[str, Any] = {"center": center, "scale": scale, "unscaled": unscaled, "rescaled": rescaled, "size": size}
    wrapped = with_deviations(design, moments.center, deviation, **how)
    wrapped.task_moments = moments.standardized(wrapped.mean, wrapped.inverse_scale)
    return wrapped


def _kinds_of_rows(flags: BoolArray) -> tuple[int, IndexArray]:
    """How many different rows there are, and the number of each row among them."""
    packed = np.packbits(flags, axis=1)
    words = np.zeros((len(packed), -(-packed.shape[1] // 8) * 8), dtype=np.uint8)
    words[:, : packed.shape[1]] = packed
    kinds, of_row = 1, np.zeros(len(flags), dtype=np.intp)
    for word in words.view(np.uint64).T:  # numbers are sorted much faster than rows
        values, number = np.unique(word, return_inverse=True)
        both, of_row = np.unique(of_row * len(values) + number, return_inverse=True)
        kinds = len(both)
    return kinds, of_row


def find_patterns(w: FloatArray) -> Patterns:
    """Patterns of weights (n_samples, n_tasks) that are zero where a target is missing."""
    missing = w == 0.0
    kinds, of_sample = _kinds_of_rows(missing)
    if not 1 < kinds <= min(_MOST_PATTERNS, len(w) // _LEAST_SAMPLES):
        return Patterns(missing)
    groups = []
    for kind in range(kinds):
        rows = np.flatnonzero(of_sample == kind)
        tasks = np.flatnonzero(~missing[rows[0]])
        weights = w[rows[:, None], tasks]
        follow = rows[-1] - rows[0] + 1 == len(rows)
        where = slice(int(rows[0]), int(rows[-1]) + 1) if follow else rows
        groups.append(Pattern(where, tasks, bool(np.all(weights == weights[:, :1]))))
    return Patterns(missing, tuple(groups))


@dataclass(frozen=True, eq=False)
class PatternSamples:
    """Few samples that stand for many: each pattern has some, with the same moments as its own.

    The constant of these samples is 1 as that of the others, so that an intercept, and means of tasks, are the same.

    Attributes
    ----------
    means, spread : ndarray of shape (n_rows, n_features)
        Columns of X: the mean of the pattern, and what is about it.
    Y, w : ndarray of shape (n_rows, n_tasks)
        Targets and weights, zero where they are missing.
    sizes : ndarray of shape (n_tasks, n_features)
        Squared norms, in each task, of the numbers that were really added.
    error : float
        Of the moments, relative to sizes.
    """

    means: FloatArray
    spread: FloatArray
    Y: FloatArray
    w: FloatArray
    sizes: FloatArray
    error: float

    def standardized(self, mean: FloatArray, inverse_scale: FloatArray) -> PatternSamples:
        """The same for columns less a mean, times a factor."""
        means, spread = inverse_scale * (self.means - mean), inverse_scale * self.spread
        return PatternSamples(means, spread, self.Y, self.w, inverse_scale**2 * self.sizes, self.error)

    @property
    def X(self) -> FloatArray:
        """The columns."""
        return self.means + self.spread


class ObservedDesign(WrappedDesign):
    """X of samples whose weights differ between tasks.

    Parameters
    ----------
    base : Design
        X.
    patterns : Patterns
        Of the weights of its samples.
    """

    patterns: Patterns

    def __init__(self, base: Design, patterns: Patterns) -> None:
        super().__init__(base)
        self.patterns = patterns
        self.density = base.density * patterns.share

    @cached_property
    def parts(self) -> list[tuple[Pattern, Design]]:
        """The samples of each pattern: views where they follow each other, else copies, made once."""
        parts = []
        for pattern in self.patterns.groups if self.patterns.are_apart and not self.base.is_on_disk else ():
            rows = pattern.rows
            parts.append((pattern, self.base.span(rows) if isinstance(rows, slice) else self.base.rows(rows)))
        return parts

    def matmul(self, B: FloatArray, offset: FloatArray | None = None) -> Handle:
        return self.base.matmul(B, offset)

    def predictor(self, B: FloatArray, offset: FloatArray | None = None) -> Handle:
        """Pattern by pattern, but where coefficients are so few that all tasks of all samples take no longer."""
        work = self.n_samples * np.count_nonzero(nonzero_rows(B)) * B.shape[1] if self.parts else 0
        if work <= _PRODUCT_OVERHEAD * len(self.parts):
            return self.base.matmul(B, offset)
        Z = np.zeros((self.n_samples, B.shape[1]))
        for pattern, part in self.parts:
            own = None if offset is None else offset[pattern.tasks]
            Z[pattern.entries] = part.matmul(np.ascontiguousarray(B[:, pattern.tasks]), own)
        return Z

    def rmatmul(self, T: Handle) -> FloatArray:
        """From the entries that were observed, where all others are zero."""
        if not (self.parts and self.patterns.cover(T)):
            return self.base.rmatmul(T)
        C = np.zeros((T.shape[1], self.n_features))
        for pattern, part in self.parts:
            C[pattern.tasks] += part.rmatmul(np.ascontiguousarray(T[pattern.entries])).T
        return np.ascontiguousarray(C.T)

    def evaluate(self, T: Handle, *sums: Sum) -> tuple[FloatArray, list[Any]]:
        return super().evaluate(T, *sums) if self.parts else self.base.evaluate(T, *sums)

    def compute_moments(self, w: Handle) -> ColumnMoments:
        return self.base.moments(w)

    def compute_task_moments(self, w: Handle) -> TaskMoments:
        """Moments of the columns in each task about those of all tasks together."""
        if not self.parts or not all(pattern.is_even for pattern, _ in self.parts):
            return moments_of_tasks(self.base, w, self._center(w))
        found = [part.compute_moments(w[pattern.entries][:, :1]) for pattern, part in self.parts]
        tasks = [pattern.tasks for pattern, _ in self.parts]
        center = reduce(add, [own.weighted(len(of)) for own, of in zip(found, tasks, strict=True)]).mean
        merged = []
        for k in range(w.shape[1]):
            merged.append(reduce(add, [own for own, of in zip(found, tasks, strict=True) if k in of]))
        totals = np.array([own.total_weight for own in merged])
        distance = np.column_stack([(own.mean - center) + own.rest for own in merged])
        about_means = np.column_stack([own.squares for own in merged])
        return TaskMoments(totals, center, totals * distance, about_means + totals * distance * distance, about_means)

    def _center(self, w: Handle) -> FloatArray:
        """Means of the columns over the entries of all tasks."""
        if self.is_distributed:  # where this is the first that is seen of X, and looked for what is not finite
            mean = self.base.moments(self.map(pooled_weights, w)).mean
            self.density = self.base.density
            return mean
        pooled = pooled_weights(w)
        return self.base.rmatmul(pooled)[:, 0] / pooled.sum()

    def task_sums(self, w: Handle, center: FloatArray | None = None) -> tuple[FloatArray, FloatArray]:
        return super().task_sums(w, center) if self.patterns.groups else self.base.task_sums(w, center)

    def squared_products(self, H: Handle, center: FloatArray | None = None) -> FloatArray:
        """Once for all tasks of a pattern where its samples have the same number in each of them."""
        groups = self.patterns.groups
        if not (groups and self.patterns.cover(H)):
            return self.base.squared_products(H, center)
        own = [_distinct(H[pattern.entries]) for pattern in groups]
        if not self.parts and sum(values.shape[1] for values in own) >= H.shape[1]:
            return self.base.squared_products(H, center)
        squares = np.zeros((H.shape[1], self.n_features))
        if self.parts:
            for (pattern, part), values in zip(self.parts, own, strict=True):
                squares[pattern.tasks] += part.squared_products(values, center).T
            return squares.T
        together = np.zeros((len(H), sum(values.shape[1] for values in own)))
        first = 0
        for pattern, values in zip(groups, own, strict=True):
            together[pattern.rows, first : first + values.shape[1]] = values
            first += values.shape[1]
        first, found = 0, self.base.squared_products(together, center).T
        for pattern, values in zip(groups, own, strict=True):
            squares[pattern.tasks] += found[first : first + values.shape[1]]
            first += values.shape[1]
        return squares.T

    def compressed_patterns(self, Y: Handle, w: Handle, *, center: bool) -> PatternSamples | None:
        """From the moments of each pattern, whose samples have one weight each; not where that saves little."""
        groups, n_rows = self.patterns.groups, self.n_features + 2
        is_near = self.base.is_one_block and not self.base.is_on_disk
        if not (groups and is_near and all(pattern.is_even for pattern in groups)):
            return None
        if self.n_samples < _LEAST_SAVED * len(groups) * n_rows:
            return None
        found, error = [], 0.0
        sizes = np.zeros((w.shape[1], self.n_features))
        for pattern in groups:
            rows, entries = pattern.rows, pattern.entries
            part = self.base.span(rows) if isinstance(rows, slice) else self.base.rows(rows)
            data = part.compressed(Y[entries], w[entries][:, :1], exact=False, center=center)
            if data is None:
                return None
            total = float(w[entries][:, 0].sum())
            found.append(_spread_out(data, total, pattern.tasks, w.shape[1], center=center))
            sizes[pattern.tasks] += data.x_size**2
            error = max(error, data.error)
        means, spread, Y, w = map(np.concatenate, zip(*found, strict=True))
        return PatternSamples(means, spread, Y, w, sizes, error)

    def ranges(self) -> tuple[FloatArray, FloatArray]:
        return self.base.ranges()

    def on(self, base: Design, columns: IndexArray) -> ObservedDesign:
        return ObservedDesign(base, self.patterns)

    def rows(self, rows: IndexArray) -> ObservedDesign:
        """Copy rows; those of one pattern are few, and no longer multiplied together."""
        part, missing = self.base.rows(rows), self.patterns.missing
        return ObservedDesign(part, Patterns(None if missing is None else missing[rows]))

    def columns(self, columns: IndexArray) -> Columns | None:
        return self.base.columns(columns)

    def gram_by_base(self, left: IndexArray, right: IndexArray, w: Handle) -> FloatArray:
        return self.base.gram(left, right, w)

    def gram_and_sums(self, left: IndexArray, right: IndexArray, w: Handle) -> tuple[Any, ...]:
        return self.base.gram_and_sums(left, right, w)


def _spread_out(
    data: CompressedData, total: float, tasks: IndexArray, n_tasks: int, *, center: bool
) -> tuple[FloatArray, ...]:
    """Means, spread, targets and weights of samples with the moments of compressed data.

    Centered data are spread over one sample more, all of the same weight, by a matrix with orthonormal columns whose
    columns add up to zero: means and moments about them are those asked for.
    """
    R, T, weight = data.R, data.T, 1.0
    if center:
        n_rows = len(R) + 1
        weight = total / n_rows
        H = helmert(n_rows).T / np.sqrt(weight)
        R, T = H @ R, data.y_mean + H @ T
    Y, w = np.zeros((len(R), n_tasks)), np.zeros((len(R), n_tasks))
    Y[:, tasks], w[:, tasks] = T, weight
    return np.tile(data.x_mean, (len(R), 1)), R, Y, w


class TaskGramCache(GramCache):
    """Gram matrices of the tasks, each with its own weights: blocks are (n_tasks, n_columns, n_columns).

    Samples of one pattern and with one weight each add to the matrices of all their tasks at once.
    """

    def products(self, left: IndexArray, right: IndexArray) -> FloatArray:
        chosen = self.design.columns(left)
        other = None if right is left else self.design.columns(right)
        if not isinstance(chosen, DenseColumns) or not (other is None or isinstance(other, DenseColumns)):
            return np.stack([self.design.gram(left, right, self.w[:, [k]]) for k in range(self.w.shape[1])])
        found = np.zeros((self.w.shape[1], len(left), len(right)))
        for rows, tasks, weights in self._pieces():
            own = chosen.sampled(rows)
            found[tasks] += own.gram(weights, None if other is None else other.sampled(rows))
        return found

    def _pieces(self) -> Any:
        """Samples with one weight each for some tasks, the tasks, and the weights."""
        patterns = self.design.patterns
        for pattern in patterns.groups if patterns is not None else ():
            w = self.w[pattern.entries]
            if pattern.is_even:
                yield pattern.rows, pattern.tasks, w[:, :1]
                continue
            for k, task in enumerate(pattern.tasks):
                yield pattern.rows, [task], w[:, [k]]
        if patterns is None or not patterns.groups:
            for task in range(self.w.shape[1]):
                rows = np.flatnonzero(self.w[:, task])
                yield rows, [task], self.w[rows, task : task + 1]
