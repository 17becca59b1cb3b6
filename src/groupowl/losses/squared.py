"""Squared loss: multi-task regression."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from .._typing import FloatArray
from ..norm.kernels import TINY, inverse_weighted_square
from .base import Loss, tasks_apart


@dataclass(frozen=True)
class SquaredLoss(Loss):
    """``F(Z) = 1/2 sum_i w_i ||y_i - z_i||^2``.

    Where predictors have an axis between samples and tasks, for several coefficients, each of them has its own sums.
    """

    name: ClassVar[str] = "squared"
    curvature: ClassVar[float] = 1.0
    is_quadratic: ClassVar[bool] = True
    has_fixed_curvature: ClassVar[bool] = True
    centers_targets: ClassVar[bool] = True
    longest_move: ClassVar[float] = np.inf
    is_of_residuals: ClassVar[bool] = True
    is_known_by_moments: ClassVar[bool] = True
    compiled: ClassVar[str] = "squared"
    measure: ClassVar[str] = "mean squared error"
    score_name: ClassVar[str] = "neg_mean_squared_error"

    def check_targets(self, Y: FloatArray) -> FloatArray:
        """Any finite targets will do."""
        return Y

    def value(self, Z: FloatArray, Y: FloatArray, w: FloatArray) -> float:
        residual = Y - Z
        return 0.5 * np.add.reduce(w * residual * residual, axis=(0, -1))

    def dual_point(self, Z: FloatArray, Y: FloatArray, w: FloatArray) -> FloatArray:
        """``theta_i = w_i (y_i - z_i)``."""
        return w * (Y - Z)

    def dual_value(self, theta: FloatArray, Y: FloatArray, w: FloatArray) -> float:
        """``<theta, Y> - 1/2 sum_i ||theta_i||^2 / w_i``."""
        product, square = self.ray_totals(theta, Y, w)
        return float(product - 0.5 * square)

    def ray_totals(self, theta: FloatArray, Y: FloatArray, w: FloatArray, Z: FloatArray | None = None) -> FloatArray:
        """``<theta, Y>`` and ``sum_i ||theta_i||^2 / w_i``."""
        return np.array([np.add.reduce(theta * Y, axis=(0, -1)), inverse_weighted_square(theta, w)])

    def ray_scale(self, totals: FloatArray, limit: float) -> float:
        """Maximizer of the dual value ``s <theta, Y> - s^2/2 ||theta||^2`` over ``|s| <= limit``."""
        product, square = totals.tolist()
        return min(max(product / square, -limit), limit) if square > 0.0 else 1.0

    def balance_totals(self, theta: FloatArray, Y: FloatArray, w: FloatArray) -> FloatArray:
        """Column sums of ``theta`` and the total weight."""
        return np.stack([theta.sum(axis=0), np.broadcast_to(w, theta.shape).sum(axis=0)])

    def balance(self, theta: FloatArray, Y: FloatArray, w: FloatArray, totals: FloatArray) -> FloatArray:
        """Take the weighted mean residual off: the exact effect of the optimal intercept."""
        return theta - w * (totals[0] / totals[1])

    def curvatures(self, theta: FloatArray, Y: FloatArray, w: FloatArray) -> FloatArray:
        """``w_i``, the same everywhere, or its mean over tasks."""
        return w if w.shape[-1] == 1 else w.mean(axis=1, keepdims=True)

    def curved(self, Z: FloatArray, Y: FloatArray, w: FloatArray, move: FloatArray) -> FloatArray:
        """``w move``: the dual point is linear in the predictor."""
        return w * move

    def change(self, Z: FloatArray, Y: FloatArray, w: FloatArray, move: FloatArray) -> float:
        """``sum_i w_i <move_i, move_i / 2 - (y_i - z_i)>``."""
        return float(np.sum(w * move * (0.5 * move - (Y - Z))))

    def curvature_along(self, Z: FloatArray, Y: FloatArray, w: FloatArray, E: FloatArray) -> FloatArray:
        """``E^T diag(w) E`` for every task."""
        if w.shape[-1] > 1:
            return tasks_apart(w, E)
        shared: FloatArray = E.T @ (w * E)
        return np.asarray(np.kron(shared, np.eye(Y.shape[1])), dtype=np.float64)

    def null_intercept(self, target_means: FloatArray) -> FloatArray:
        """The weighted means themselves."""
        return target_means

    def floor(self, Y: FloatArray, w: FloatArray) -> float:
        return 0.0

    def cancelling_size(self, Z: FloatArray, w: FloatArray) -> float:
        """Zero: the value is a sum of squares."""
        zeros: Any = np.zeros(Z.shape[1:-1])  # one for each of several
        return zeros

    def score(self, Z: FloatArray, Y: FloatArray, w: FloatArray) -> float:
        """Minus the mean squared error."""
        return -2.0 * self.value(Z, Y, w) / Y.shape[-1]

    def errors(self, Z: FloatArray, Y: FloatArray) -> FloatArray:
        return np.square(Y - Z)

    def minus_twice_log_likelihood(self, loss: float, least: float, n_samples: float, n_tasks: int) -> float:
        """Normal errors of one variance for all tasks, estimated from the residuals."""
        variance = 2.0 * max(loss, least, TINY) / n_tasks
        return float(n_samples * n_tasks * (np.log(2.0 * np.pi * variance) + 1.0))

    def per_entry(self) -> Loss:
        return EntrywiseSquaredLoss()


class EntrywiseSquaredLoss(SquaredLoss):
    """The same where weights differ between tasks: no Gram matrix serves all tasks, and no mean centers a column.

    The intercept has coefficients of its own, as with the losses that are no quadratics.
    """

    is_quadratic: ClassVar[bool] = False


LOSS = SquaredLoss()
