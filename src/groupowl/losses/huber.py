"""Huber loss: regression in which outliers count by their distance, not by its square."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from .._checks import as_float_array
from .._typing import FloatArray
from ..norm.kernels import EPS, over_weights
from .base import Loss, tasks_apart

# With this many standard deviations the loss is 95 % as efficient as least squares where all errors are normal.
_DELTA = 1.345
# Rounding leaves dual points this far outside their range, relatively.
_RANGE_RTOL = 64 * EPS
# Residuals this close to delta count as beyond it where second derivatives are asked for: short steps along the tangent
# must not leave the range of the dual points.
_EDGE_RTOL = 1e-5


@dataclass(frozen=True, eq=False)
class HuberLoss(Loss):
    """``F(Z) = sum_ik w_ik h(y_ik - z_ik)``, ``h(r) = r^2 / 2`` up to ``|r| = delta_k``, a straight line beyond.

    Parameters
    ----------
    delta : float or array-like of shape (n_tasks,), default=1.345
        Residual from which on a sample counts as an outlier, for all tasks or for each.
    """

    delta: Any = _DELTA

    name: ClassVar[str] = "huber"
    curvature: ClassVar[float] = 1.0
    is_of_residuals: ClassVar[bool] = True
    longest_move: ClassVar[float] = np.inf
    measure: ClassVar[str] = "mean Huber loss"
    delta_in_deviations: ClassVar[float] = _DELTA

    def __post_init__(self) -> None:
        delta = as_float_array("delta", self.delta, ndim=(0, 1))
        if delta.size == 0 or not (np.isfinite(delta).all() and delta.min() > 0.0):
            raise ValueError(f"delta must be positive and finite, for all targets or one for each, got {self.delta!r}.")
        object.__setattr__(self, "delta", delta)

    @property
    def unit(self) -> float:
        return float(self.delta.min()) ** 2

    def check_targets(self, Y: FloatArray) -> FloatArray:
        if self.delta.ndim and self.delta.shape != Y.shape[1:]:
            what = f"delta has {len(self.delta)} entries, but there are {Y.shape[1]} targets"
            raise ValueError(f"{what}. Give one number for all of them, or one for each.")
        return Y

    def value(self, Z: FloatArray, Y: FloatArray, w: FloatArray) -> float:
        return float(np.add.reduce(w * self.errors(Z, Y), axis=None))

    def errors(self, Z: FloatArray, Y: FloatArray) -> FloatArray:
        size = np.abs(Y - Z)
        inner = np.minimum(size, self.delta)
        return inner * (size - 0.5 * inner)

    def dual_point(self, Z: FloatArray, Y: FloatArray, w: FloatArray) -> FloatArray:
        """``theta = w clip(y - z, -delta, delta)``."""
        return w * np.clip(Y - Z, -self.delta, self.delta)

    def dual_value(self, theta: FloatArray, Y: FloatArray, w: FloatArray) -> float:
        """``<theta, Y> - 1/2 sum theta^2 / w``, minus infinity where ``|theta| > w delta``."""
        if not np.all(np.abs(theta) <= (1.0 + _RANGE_RTOL) * w * self.delta):
            return -np.inf
        return float(np.add.reduce(theta * (Y - 0.5 * over_weights(theta, w)), axis=None))

    def floor(self, Y: FloatArray, w: FloatArray) -> float:
        return 0.0

    def balance_totals(self, theta: FloatArray, Y: FloatArray, w: FloatArray) -> FloatArray:
        """Column sums of ``theta``, and of how far it could go."""
        return np.stack([theta.sum(axis=0), (np.broadcast_to(w, theta.shape) * self.delta).sum(axis=0)])

    def balance(self, theta: FloatArray, Y: FloatArray, w: FloatArray, totals: FloatArray) -> FloatArray:
        """Move all entries of a column towards the end of their range that takes the sum to zero."""
        sums, largest = totals
        end = -np.sign(sums) * w * self.delta
        return theta + (np.abs(sums) / (np.abs(sums) + largest)) * (end - theta)

    def _is_inner(self, theta: FloatArray, w: FloatArray) -> Any:
        """Where the loss is a parabola: elsewhere its second derivative is zero."""
        return np.abs(theta) < (1.0 - _EDGE_RTOL) * w * self.delta

    def curvatures(self, theta: FloatArray, Y: FloatArray, w: FloatArray) -> FloatArray:
        return (w * self._is_inner(theta, w)).mean(axis=1, keepdims=True)

    def curved(self, Z: FloatArray, Y: FloatArray, w: FloatArray, move: FloatArray) -> FloatArray:
        return w * self._is_inner(self.dual_point(Z, Y, w), w) * move

    def curvature_along(self, Z: FloatArray, Y: FloatArray, w: FloatArray, E: FloatArray) -> FloatArray:
        return tasks_apart(w * self._is_inner(self.dual_point(Z, Y, w), w), E)

    def change(self, Z: FloatArray, Y: FloatArray, w: FloatArray, move: FloatArray) -> float:
        """The mean slope of each entry times its move, exact for parts in which the loss is a parabola or a line."""
        before, after = Y - Z, Y - Z - move
        inner, inner_after = (np.clip(r, -self.delta, self.delta) for r in (before, after))
        is_short = (inner == before) & (inner_after == after)
        slopes = 0.5 * (inner + inner_after)
        whole = np.abs(inner_after) * (np.abs(after) - 0.5 * np.abs(inner_after))
        whole -= np.abs(inner) * (np.abs(before) - 0.5 * np.abs(inner))
        return float(np.sum(w * np.where(is_short | (inner == inner_after), -slopes * move, whole)))

    def null_intercept(self, target_means: FloatArray) -> FloatArray:
        return np.full(len(target_means), np.nan)

    def score(self, Z: FloatArray, Y: FloatArray, w: FloatArray) -> float:
        """Minus the mean loss, over samples and tasks."""
        return -self.value(Z, Y, w) / Y.shape[1]

    def cancelling_size(self, Z: FloatArray, w: FloatArray) -> float:
        """Zero: the value is a sum of terms that are not negative."""
        return 0.0


LOSS: Loss = HuberLoss()
