"""Weighted means and centered squares of columns, block by block: what one pass can tell of X alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .._typing import FloatArray, IndexArray
from ..norm.kernels import merged_means
from .base import LocalDesign


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


def block_moments(design: LocalDesign, w: FloatArray) -> ColumnMoments:
    """Moments of one block of samples with weights ``w`` of shape (n_samples, 1)."""
    nothing = np.zeros(design.n_features)
    if design.n_samples == 0:
        return ColumnMoments(0.0, nothing, nothing, nothing)
    mean = design.column_means(w)
    return ColumnMoments(float(w.sum()), mean, nothing, design.column_norms(w, mean) ** 2)
