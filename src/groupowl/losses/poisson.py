"""Poisson loss: counts and rates, whose means are exponentials of the predictor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import xlogy

from .._typing import FloatArray
from .base import Loss
from .separable import SeparableLoss

# Beyond this predictor the mean overflows soon; a step that goes there is refused like any that raises the loss.
_LARGEST_PREDICTOR = 500.0
# A task without a single count has its intercept at minus infinity; this stands in for its mean.
_TINY_MEAN = 1e-300
# The same in folds, whose other samples may have counts: the deviance from such a mean is large, but finite.
_UNSEEN = float(np.log(1e-3))


@dataclass(frozen=True)
class PoissonLoss(SeparableLoss):
    """``F(Z) = sum_ik w_ik [exp(z_ik) - y_ik z_ik]`` for counts or rates ``y_ik >= 0``.

    The second derivative is the mean, which has no bound: no ball around a dual point is known to contain the optimum.
    """

    name: ClassVar[str] = "poisson"
    compiled: ClassVar[str] = "poisson"
    curvature: ClassVar[float] = np.inf
    variance_power: ClassVar[float] = 1.0
    bend: ClassVar[float | None] = 1.0
    measure: ClassVar[str] = "mean Poisson deviance"
    score_name: ClassVar[str] = "neg_mean_poisson_deviance"
    lowest: ClassVar[float] = 0.0
    highest: ClassVar[float] = np.inf

    def check_targets(self, Y: FloatArray) -> FloatArray:
        if Y.min(initial=0.0) < 0.0:
            raise ValueError(
                f"loss='poisson' needs counts or rates, Y >= 0, but the smallest entry of Y is {Y.min():g}. "
                "Remove such samples, or use loss='squared' or loss='huber' for numbers of either sign."
            )
        return Y

    def determined(self, target_means: FloatArray) -> FloatArray:
        """Tasks without a single count."""
        return np.where(target_means > 0.0, np.nan, _UNSEEN)

    def check_means(self, target_means: FloatArray) -> None:
        if not target_means.all():
            raise ValueError(
                f"loss='poisson': column {int(np.argmin(target_means))} of Y is 0 for every sample of positive weight, "
                "so that its intercept has no finite optimum. Leave the column out."
            )

    def cost(self, Z: FloatArray, Y: FloatArray) -> FloatArray:
        return np.where(Z > _LARGEST_PREDICTOR, np.inf, self.mean(Z) - Y * Z)

    def value(self, Z: FloatArray, Y: FloatArray, w: FloatArray) -> float:
        if w.shape[-1] > 1:  # predictors of targets that are missing may be as large as they like
            Z = np.where(w > 0.0, Z, 0.0)
        return super().value(Z, Y, w)

    def mean(self, Z: FloatArray) -> FloatArray:
        return np.asarray(np.exp(np.minimum(Z, _LARGEST_PREDICTOR)))

    def variance(self, P: FloatArray) -> FloatArray:
        return P

    def dual_cost(self, P: FloatArray, Y: FloatArray) -> FloatArray:
        return np.asarray(P - xlogy(P, P))

    def change(self, Z: FloatArray, Y: FloatArray, w: FloatArray, move: FloatArray) -> float:
        return float(np.sum(w * (self.mean(Z) * np.expm1(move) - Y * move)))

    def null_intercept(self, target_means: FloatArray) -> FloatArray:
        return np.asarray(np.log(np.maximum(target_means, _TINY_MEAN)))

    def score(self, Z: FloatArray, Y: FloatArray, w: FloatArray) -> float:
        """Minus the mean deviance, over samples and tasks."""
        return -self.deviance(Z, Y, w) / Y.shape[1]

    def errors(self, Z: FloatArray, Y: FloatArray) -> FloatArray:
        return 2.0 * (self.cost(Z, Y) - self.dual_cost(Y, Y))

    def minus_twice_log_likelihood(self, loss: float, least: float, n_samples: float, n_tasks: int) -> float:
        return 2.0 * n_samples * loss  # up to the factorials, which no model changes

    def cancelling_size(self, Z: FloatArray, w: FloatArray) -> float:
        """The mean multiplies the error of the predictor, and cancels with ``y z``."""
        return float(np.sum(w * (self.mean(Z) + np.abs(Z)) * (1.0 + np.abs(Z))))

    def curvature_near(self, Z: FloatArray, Y: FloatArray, w: FloatArray) -> float:
        return float(np.exp(1.0 + Z.max(initial=-np.inf, where=np.broadcast_to(w > 0.0, Z.shape))))


LOSS: Loss = PoissonLoss()
