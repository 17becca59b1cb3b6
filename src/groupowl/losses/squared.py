"""Squared loss: multi-task regression."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .._kernels import EPS
from .._typing import FloatArray

_SMALLEST = np.finfo(np.float64).tiny


@dataclass(frozen=True)
class SquaredLoss:
    """``F(Z) = 1/2 sum_i w_i ||y_i - z_i||^2``."""

    name: ClassVar[str] = "squared"
    curvature: ClassVar[float] = 1.0
    centers_targets: ClassVar[bool] = True
    is_quadratic: ClassVar[bool] = True
    has_classes: ClassVar[bool] = False

    def check_targets(self, Y: FloatArray) -> FloatArray:
        """Any finite targets will do."""
        return Y

    def value(self, Z: FloatArray, Y: FloatArray, w: FloatArray) -> float:
        """``F(Z)``."""
        residual = Y - Z
        return 0.5 * float(np.add.reduce(w * residual * residual, axis=None))

    def dual_point(self, Z: FloatArray, Y: FloatArray, w: FloatArray) -> FloatArray:
        """``theta_i = w_i (y_i - z_i)``."""
        return w * (Y - Z)

    def value_and_dual_point(self, Z: FloatArray, Y: FloatArray, w: FloatArray) -> tuple[float, FloatArray]:
        """Value and dual point from one residual."""
        residual = Y - Z
        theta = w * residual
        return 0.5 * float(np.sum(theta * residual)), theta

    def dual_value(self, theta: FloatArray, Y: FloatArray, w: FloatArray) -> float:
        """``<theta, Y> - 1/2 sum_i ||theta_i||^2 / w_i``."""
        product, square = self.ray_totals(theta, Y, w)
        return float(product - 0.5 * square)

    def ray_totals(self, theta: FloatArray, Y: FloatArray, w: FloatArray) -> FloatArray:
        """``<theta, Y>`` and ``sum_i ||theta_i||^2 / w_i``."""
        product, square = np.add.reduce(theta * Y, axis=None), np.add.reduce(theta * theta / w, axis=None)
        return np.array([product, square])

    def ray_scale(self, totals: FloatArray, limit: float) -> float:
        """Maximiser of the dual value ``s <theta, Y> - s^2/2 ||theta||^2`` over ``|s| <= limit``."""
        product, square = totals.tolist()
        return min(max(product / square, -limit), limit) if square > 0.0 else 1.0

    def balance_totals(self, theta: FloatArray, Y: FloatArray, w: FloatArray) -> FloatArray:
        """Column sums of ``theta`` and the total weight."""
        return np.stack([theta.sum(axis=0), np.full(theta.shape[1], w.sum())])

    def balance(self, theta: FloatArray, Y: FloatArray, w: FloatArray, totals: FloatArray) -> FloatArray:
        """Take the weighted mean residual off: the exact effect of the optimal intercept."""
        return theta - w * (totals[0] / totals[1])

    def curvatures(self, theta: FloatArray, Y: FloatArray, w: FloatArray) -> FloatArray:
        """``w_i``, the same everywhere."""
        return w

    def moved_along_tangent(self, theta: FloatArray, Y: FloatArray, w: FloatArray, move: FloatArray) -> FloatArray:
        """``theta - w move``: the dual point is linear in the predictor."""
        return theta - w * move

    def change(self, theta: FloatArray, Y: FloatArray, w: FloatArray, move: FloatArray) -> float:
        """``<move, w move / 2 - theta>``."""
        return float(np.sum(move * (0.5 * w * move - theta)))

    def curvature_along(self, theta: FloatArray, Y: FloatArray, w: FloatArray, E: FloatArray) -> FloatArray:
        """``E^T diag(w) E`` for every task."""
        shared: FloatArray = E.T @ (w * E)
        return np.asarray(np.kron(shared, np.eye(Y.shape[1])), dtype=np.float64)

    def null_intercept(self, target_means: FloatArray) -> FloatArray:
        """The weighted means themselves."""
        return target_means

    def canonical(self, B: FloatArray) -> FloatArray:
        """The loss has no redundancy: ``B`` itself."""
        return B

    def cancelling_size(self, Z: FloatArray, w: FloatArray) -> float:
        """Zero: the value is a sum of squares."""
        return 0.0

    def score(self, Z: FloatArray, Y: FloatArray, w: FloatArray) -> float:
        """Minus the mean squared error over samples and tasks; the weights sum to 1."""
        return -float(np.sum(w * (Y - Z) ** 2)) / Y.shape[1]

    def deviance(self, loss: float, n_samples: float, n_tasks: int, null_loss: float) -> float:
        """Minus twice the log-likelihood at a loss per unit of sample weight.

        Errors are normal with one variance for all tasks, estimated from the residuals. What rounding leaves of a
        perfect fit counts as its variance.
        """
        variance = 2.0 * max(loss, EPS * null_loss, _SMALLEST) / n_tasks
        return float(n_samples * n_tasks * (np.log(2.0 * np.pi * variance) + 1.0))

    def parameters_per_feature(self, n_tasks: int) -> int:
        """One coefficient for each task."""
        return n_tasks
