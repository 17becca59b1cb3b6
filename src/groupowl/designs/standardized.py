"""Centering and scaling of columns without forming the result, so that sparse data stay sparse."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from .._typing import FloatArray, Handle, IndexArray
from ..norm.kernels import EPS, SMALLEST_NORM, column_sums, divide_rows, exceeds_rounding
from .base import Design, PlainData, Sum, WrappedDesign, check_underflow
from .columns import Columns, center_products
from .factors import CompressedData

# Means that are rounded by more than this part of the deviation would change it in its last digits.
_MEAN_RTOL = 1e-8


class StandardizedDesign(WrappedDesign):
    """``(X - 1 mean^T) diag(inverse_scale)``; ``inverse_scale`` is 0 for columns without variation."""

    def __init__(
        self, base: Design, mean: FloatArray, inverse_scale: FloatArray, treated_as_constant: IndexArray | None = None
    ) -> None:
        if treated_as_constant is not None:
            self.treated_as_constant = treated_as_constant
        self.base = base
        self.mean = mean
        self.inverse_scale = inverse_scale
        self.shape = base.shape
        self.dtype = base.dtype
        self.passes = base.passes
        self.unit = base.unit

    def matmul(self, B: FloatArray, offset: FloatArray | None = None) -> Handle:
        """``X B`` of the base, less the part of the means."""
        B_scaled, shift = self.input_coefficients(B)
        return self.base.matmul(B_scaled, shift if offset is None else offset + shift)

    def rmatmul(self, T: Handle) -> FloatArray:
        """``X^T T`` of the base, less the means times the column sums of ``T``."""
        return self.evaluate(T)[0]

    def evaluate(self, T: Handle, *sums: Sum) -> tuple[FloatArray, list[Any]]:
        """``X^T T`` as :meth:`rmatmul`, with the column sums that it needs among the other sums."""
        C, (columns, *others) = self.base.evaluate(T, (column_sums, T), *sums)
        return self.inverse_scale[:, None] * (C - np.outer(self.mean, columns)), others

    def column_means(self, w: Handle) -> FloatArray:
        """Weighted mean of each standardized column."""
        return self.inverse_scale * (self.base.column_means(w) - self.mean)

    def column_norms(self, w: Handle, center: FloatArray | None = None) -> FloatArray:
        """Weighted norm of each standardized column about ``center``."""
        if center is None:
            return self.inverse_scale * self.base.column_norms(w, self.mean)
        varies = self.inverse_scale > 0
        norms = self.inverse_scale * self.base.column_norms(
            w, self.mean + center / np.where(varies, self.inverse_scale, 1.0)
        )
        # A column without variation is zero here, whatever the base holds.
        return np.where(varies, norms, np.abs(center) * np.sqrt(float(self.base.reduce(np.sum, w))))

    def restrict(self, columns: IndexArray) -> StandardizedDesign:
        """Copy columns of the base, with their means and scales."""
        base = self.base.restrict(columns)
        return StandardizedDesign(base, self.mean[columns], self.inverse_scale[columns])

    def plain_data(self) -> PlainData | None:
        """X of the base with the means and scales; an infinite scale makes a column zero."""
        base = self.base.plain_data()
        if base is None:
            return None
        with np.errstate(divide="ignore"):
            return PlainData(base.X, self.mean, 1.0 / self.inverse_scale)

    def rows(self, rows: IndexArray) -> StandardizedDesign:
        """Copy rows of the base; means and scales stay those of all rows."""
        return StandardizedDesign(self.base.rows(rows), self.mean, self.inverse_scale)

    def largest_row(
        self, w: Handle, constant: float = 0.0, mean: FloatArray | None = None, scale: FloatArray | None = None
    ) -> float:
        """Largest weighted squared norm of a standardized row."""
        if mean is not None or scale is not None:
            raise ValueError("a standardized design takes no further mean or scale: standardize its base once.")
        return self.base.largest_row(w, constant, self.mean, self.inverse_scale)

    def columns(self, columns: IndexArray) -> Columns | None:
        """Columns of the base, centered and scaled."""
        base = self.base.columns(columns)
        return None if base is None else base.standardized(self.mean[columns], self.inverse_scale[columns])

    def brought_near(self, columns: IndexArray, n_tasks: int) -> Design | None:
        """Columns of the base, with their means and scales."""
        base = self.base.brought_near(columns, n_tasks)
        return None if base is None else StandardizedDesign(base, self.mean[columns], self.inverse_scale[columns])

    def gram(self, left: IndexArray, right: IndexArray, w: Handle) -> FloatArray:
        """``X_left^T diag(w) X_right`` with means and scales applied."""
        left_columns = None if self.keeps_columns else self.columns(left)
        right_columns = left_columns if right is left or left_columns is None else self.columns(right)
        if type(left_columns) is type(right_columns) and left_columns is not None:
            return left_columns.gram(right_columns, w)
        raw, left_sums, right_sums, total = self.base.gram_and_sums(left, right, w)
        centered = center_products(raw, self.mean[left], left_sums, self.mean[right], right_sums, total)
        return self.inverse_scale[left, None] * centered * self.inverse_scale[right]

    def compressed(self, Y: Handle, w: Handle, *, exact: bool, center: bool = False) -> CompressedData | None:
        """Compressed data of the base, centered where there are means and scaled; the means are those for ``w``."""
        data = self.base.compressed(Y, w, exact=exact, center=center or bool(self.mean.any()))
        return None if data is None else data.scaled(self.inverse_scale)

    def input_coefficients(self, B: FloatArray, on_basis: FloatArray | None = None) -> tuple[FloatArray, FloatArray]:
        """Coefficients for the base's columns, and the shift that the means cause."""
        B_scaled = B * self.inverse_scale[:, None]
        return B_scaled, -(self.mean @ B_scaled)

    @cached_property
    def column_centers(self) -> FloatArray | None:
        """The means, where columns are centered."""
        return self.mean if self.mean.any() else None

    def own_coefficients(self, B: FloatArray) -> FloatArray:
        """Coefficients of the scaled columns, zero for those without variation."""
        return divide_rows(B, self.inverse_scale)

    def rounding_norms(self, norms: FloatArray, total_weight: float) -> FloatArray:
        """Norms before the means are taken off: products cancel that much."""
        return np.sqrt(norms**2 + total_weight * (self.inverse_scale * self.mean) ** 2)


def standardize(design: Design, w: Handle, *, center: bool, scale: bool, unscaled: IndexArray | None = None) -> Design:
    """Wrap ``design`` so that its columns have weighted mean 0 (``center``) and deviation 1 (``scale``).

    The deviation is about the mean (ddof 0) whether or not columns are centered. Columns without variation
    become exact zeros when they are centered or scaled, but for those ``unscaled``, which are centered at most.
    """
    if not (center or scale):
        return design
    mean = design.column_means(w)
    deviation = column_deviations(design, w, mean)
    suspects = np.flatnonzero((deviation < SMALLEST_NORM) & (np.abs(mean) < SMALLEST_NORM / EPS))
    check_underflow(design, suspects, constant_is_zero=True)
    varies = exceeds_rounding(deviation, mean)
    inverse_scale = np.where(varies, 1.0, 0.0)
    if scale:
        inverse_scale[varies] = 1.0 / deviation[varies]
    if unscaled is not None:
        inverse_scale[unscaled] = varies[unscaled] if center else 1.0
    lost = np.flatnonzero((inverse_scale == 0.0) & (deviation > 0.0))
    return StandardizedDesign(design, mean if center else np.zeros_like(mean), inverse_scale, lost)


def column_deviations(design: Design, w: Handle, mean: FloatArray) -> FloatArray:
    """Weighted standard deviation of each column; ``mean`` is rounded, and may be far from the true mean beside it."""
    total = float(design.reduce(np.sum, w))
    deviation = design.column_norms(w, mean) / np.sqrt(total)
    far = np.flatnonzero((EPS * np.abs(mean) > _MEAN_RTOL * deviation) & (deviation > 0.0) & np.isfinite(deviation))
    if len(far):
        # Squares about another point tell how far the rounded mean is from the true one, and that is taken off again.
        center = mean[far] + np.maximum(deviation[far], 8 * EPS * np.abs(mean[far]))
        step = center - mean[far]
        squares = design.restrict(far).column_norms(w, center) ** 2 / total
        error = (squares - deviation[far] ** 2) / (2.0 * step) - 0.5 * step
        corrected = np.sqrt(np.maximum(deviation[far] ** 2 - error**2, 0.0))
        deviation[far] = np.maximum(corrected, EPS * deviation[far])  # never zero: that is for constant columns
    return deviation
