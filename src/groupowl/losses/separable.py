"""Losses that are sums over samples and tasks: a new one is a few functions of single entries."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

import numpy as np

from .._typing import FloatArray
from ..norm.kernels import EPS, over_weights
from .base import Loss, tasks_apart

# Rounding leaves means this far outside their range, relative to the targets and to 1.
_RANGE_RTOL = 64 * EPS
# Entries that were observed are taken out of the others where they are no more than this share.
_FEW = 0.5
# Means are lost that predict less than this fraction of the targets.
_VANISHING = 1e-100


def observed_entries(values: FloatArray, Y: FloatArray, w: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Entries of positive weight alone, for sums over them, where they are few of all."""
    if w.shape[-1] == 1 or np.count_nonzero(w) > _FEW * w.size:
        return values, Y, w
    chosen = w > 0.0
    return values[chosen], Y[chosen], w[chosen]


class SeparableLoss(Loss):
    """``f_i(z) = sum_k cost(z_k, y_k)`` whose derivative is ``mean(z) - y``, as for exponential families.

    The dual point is ``theta = w (y - p)`` with ``p`` the mean of the model. All that a dual point says, it says by the
    means ``p = y - theta / w``, which lie between ``lowest`` and ``highest``.
    """

    #: Range of the means.
    lowest: ClassVar[float]
    highest: ClassVar[float]

    @abstractmethod
    def cost(self, Z: FloatArray, Y: FloatArray) -> FloatArray:
        """``f(z)`` of each entry."""

    @abstractmethod
    def mean(self, Z: FloatArray) -> FloatArray:
        """Mean of the model at each predictor."""

    @abstractmethod
    def variance(self, P: FloatArray) -> FloatArray:
        """Second derivative of the cost where the mean is ``P``."""

    @abstractmethod
    def dual_cost(self, P: FloatArray, Y: FloatArray) -> FloatArray:
        """``-f*(p - y)`` of each entry, for means in their range."""

    def means(self, theta: FloatArray, Y: FloatArray, w: FloatArray) -> FloatArray:
        """Means of the model at a dual point, put into their range."""
        return np.clip(Y - over_weights(theta, w), self.lowest, self.highest)

    def predicted(self, Z: FloatArray) -> FloatArray:
        return self.mean(Z)

    def spread(self, theta: FloatArray, raw: FloatArray, Y: FloatArray, w: FloatArray) -> FloatArray:
        """``(variance(p) + variance(p')) / 2 + |p - p'| / 4`` of the means at the two points."""
        P, P_raw = self.means(theta, Y, w), self.means(raw, Y, w)
        return 0.5 * (self.variance(P) + self.variance(P_raw)) + 0.25 * np.abs(P - P_raw)

    def value(self, Z: FloatArray, Y: FloatArray, w: FloatArray) -> float:
        Z, Y, w = observed_entries(Z, Y, w)
        return float(np.add.reduce(w * self.cost(Z, Y), axis=None))

    def dual_point(self, Z: FloatArray, Y: FloatArray, w: FloatArray) -> FloatArray:
        return w * (Y - self.mean(Z))

    def dual_value(self, theta: FloatArray, Y: FloatArray, w: FloatArray) -> float:
        theta, Y, w = observed_entries(theta, Y, w)
        raw, P = Y - over_weights(theta, w), self.means(theta, Y, w)
        if not np.all(np.abs(raw - P) <= _RANGE_RTOL * (1.0 + np.abs(Y))):
            return -np.inf
        return float(np.add.reduce(w * self.dual_cost(P, Y), axis=None))

    def balance_totals(self, theta: FloatArray, Y: FloatArray, w: FloatArray) -> FloatArray:
        """Of each task: what the model predicts in all, what there is, and the weights."""
        weights = np.broadcast_to(w, Y.shape).sum(axis=0)
        return np.stack([(w * Y - theta).sum(axis=0), (w * Y).sum(axis=0), weights])

    def balance(self, theta: FloatArray, Y: FloatArray, w: FloatArray, totals: FloatArray) -> FloatArray:
        """Move the means of each task towards an end of their range until they add up to the targets.

        Towards the lowest where they are too large; where too small, towards the highest, or away from the lowest
        where there is no highest. Means so small that rounding is all that is left of them become those of the targets.
        """
        predicted, wanted, weights = totals
        P = self.means(theta, Y, w)
        too_small = predicted < wanted
        end = np.where(too_small & np.isfinite(self.highest), self.highest, self.lowest)
        distance = predicted - weights * end
        factor = (wanted - weights * end) / np.where(distance == 0.0, 1.0, distance)
        moved = np.where(np.abs(distance) > _VANISHING * wanted, end + factor * (P - end), wanted / weights)
        return np.where(predicted == wanted, theta, w * (Y - moved))

    def curvatures(self, theta: FloatArray, Y: FloatArray, w: FloatArray) -> FloatArray:
        slopes = np.broadcast_to(w, Y.shape) * self.variance(self.means(theta, Y, w))
        return slopes.mean(axis=1, keepdims=True)

    def curved(self, Z: FloatArray, Y: FloatArray, w: FloatArray, move: FloatArray) -> FloatArray:
        return w * self.variance(self.mean(Z)) * move

    def curvature_along(self, Z: FloatArray, Y: FloatArray, w: FloatArray, E: FloatArray) -> FloatArray:
        return tasks_apart(w * self.variance(self.mean(Z)), E)
