"""Logistic loss: labels that are there or not, one or many of them for each sample."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import entr, expit, logit

from .._typing import FloatArray
from ..norm.kernels import EPS
from .base import CERTAIN, Loss
from .separable import SeparableLoss

# A label that all samples have, or none, has its intercept at infinity; this stands in for its frequency.
_TINY_FREQUENCY = 1e-300
# Of more frequent labels the log-odds come from sums of their own.
_LARGEST_FREQUENCY = 0.99


@dataclass(frozen=True)
class LogisticLoss(SeparableLoss):
    """``F(Z) = sum_ik w_ik [log(1 + exp(z_ik)) - y_ik z_ik]`` for labels or probabilities ``y_ik``."""

    name: ClassVar[str] = "logistic"
    compiled: ClassVar[str] = "logistic"
    curvature: ClassVar[float] = 0.25  # p (1 - p) is never larger
    bend: ClassVar[float | None] = 1.0
    target: ClassVar[str] = "labels"
    measure: ClassVar[str] = "log-loss"
    score_name: ClassVar[str] = "neg_log_loss"
    lowest: ClassVar[float] = 0.0
    highest: ClassVar[float] = 1.0

    def check_targets(self, Y: FloatArray) -> FloatArray:
        worst = Y.flat[int(np.argmax(np.abs(Y - 0.5)))]
        if not 0.0 <= worst <= 1.0:
            raise ValueError(
                f"loss='logistic' needs labels of 0 or 1, or probabilities, in Y, but it has the entry {worst:g}. "
                "Give 1 where a label is there and 0 where not, for example (labels == 'yes').astype(float)."
            )
        return Y

    def determined(self, target_means: FloatArray) -> FloatArray:
        """Labels that all samples have, or none."""
        certain = np.where(target_means > 0.5, CERTAIN, -CERTAIN)
        is_constant = np.minimum(target_means, 1.0 - target_means) <= 4.0 * EPS * (target_means > 0.5)
        return np.where(is_constant, certain, np.nan)

    def check_means(self, target_means: FloatArray) -> None:
        constant = np.flatnonzero(~np.isnan(self.determined(target_means)))
        if len(constant):
            k = int(constant[0])
            raise ValueError(
                f"loss='logistic': column {k} of the labels is {round(float(target_means[k]))} for every sample of "
                "positive weight, so that its intercept has no finite optimum. Leave the column out."
            )

    def cost(self, Z: FloatArray, Y: FloatArray) -> FloatArray:
        return _cost(Z, np.exp(-np.abs(Z)), Y)

    def mean(self, Z: FloatArray) -> FloatArray:
        return np.asarray(expit(Z))

    def value_and_dual_point(self, Z: FloatArray, Y: FloatArray, w: FloatArray) -> tuple[float, FloatArray]:
        """Both from one evaluation of the exponentials."""
        odds = np.exp(-np.abs(Z))
        return float(np.add.reduce(w * _cost(Z, odds, Y), axis=None)), w * _residual(Z, odds, Y)

    def dual_point(self, Z: FloatArray, Y: FloatArray, w: FloatArray) -> FloatArray:
        return w * _residual(Z, np.exp(-np.abs(Z)), Y)

    def variance(self, P: FloatArray) -> FloatArray:
        return P * (1.0 - P)

    def dual_cost(self, P: FloatArray, Y: FloatArray) -> FloatArray:
        """The entropy of the means."""
        return np.asarray(entr(P) + entr(1.0 - P))

    def change(self, Z: FloatArray, Y: FloatArray, w: FloatArray, move: FloatArray) -> float:
        """``sum w [log(1 - p + p exp(move)) - y move]``, by exponentials that do not overflow."""
        up = move > 0.0
        shrunken = expit(np.where(up, -Z, Z)) * np.expm1(-np.abs(move))
        logs = np.log1p(np.maximum(shrunken, EPS - 1.0))
        return float(np.sum(w * (np.where(up, 1.0 - Y, -Y) * move + logs)))

    def null_intercept(self, target_means: FloatArray) -> FloatArray:
        """Log-odds; NaN for labels that nearly all samples have: their mean has lost the digits of the others."""
        logs = logit(np.clip(target_means, _TINY_FREQUENCY, 1.0 - EPS))
        return np.where(target_means > _LARGEST_FREQUENCY, np.nan, logs)

    def null_intercept_of(self, target_means: FloatArray, add_up: Callable[[Any], FloatArray]) -> FloatArray:
        logs = self.null_intercept(target_means)
        if not np.isnan(logs).any():
            return logs
        there, absent = add_up(_presence_and_absence)
        return np.where(np.isnan(logs), np.log(there / absent), logs)

    def score(self, Z: FloatArray, Y: FloatArray, w: FloatArray) -> float:
        """Minus the log-loss, the mean over labels, with probabilities clipped as scikit-learn clips them."""
        return -float(np.sum(w * self.errors(Z, Y))) / Y.shape[1]

    def errors(self, Z: FloatArray, Y: FloatArray) -> FloatArray:
        P = np.clip(expit(Z), EPS, 1.0 - EPS)
        return np.asarray(-(Y * np.log(P) + (1.0 - Y) * np.log1p(-P)))

    def minus_twice_log_likelihood(self, loss: float, least: float, n_samples: float, n_tasks: int) -> float:
        return 2.0 * n_samples * loss

    def cancelling_size(self, Z: FloatArray, w: FloatArray) -> float:
        """``sum w (1 + |z|)``: predictors carry their rounding into the loss."""
        return float(np.sum(w * (1.0 + np.abs(Z))))


def _presence_and_absence(Y: FloatArray, w: FloatArray) -> FloatArray:
    """Weights of each label where it is there, and where it is not: both with all their digits."""
    return np.stack([(w * Y).sum(axis=0), (w * (1.0 - Y)).sum(axis=0)])


def _cost(Z: FloatArray, odds: FloatArray, Y: FloatArray) -> FloatArray:
    """``log(1 + exp(z)) - y z`` as a sum of terms that are not negative; ``odds`` are ``exp(-|z|)``."""
    return np.log1p(odds) + np.abs(Z) * np.where(Z > 0.0, 1.0 - Y, Y)


def _residual(Z: FloatArray, odds: FloatArray, Y: FloatArray) -> FloatArray:
    """``y - p`` with all digits where both are near 1."""
    rest = odds / (1.0 + odds)
    return np.where(Z > 0.0, (Y - 1.0) + rest, Y - rest)


LOSS: Loss = LogisticLoss()
