"""Multinomial logistic loss: classification with all classes in the softmax."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import entr, softmax

from .._typing import FloatArray
from ..norm.kernels import EPS
from .base import CERTAIN, Loss

# Rounding leaves probabilities this far outside the simplex. A point outside by delta claims a bound that may be wrong
# by ``2 delta sum_i w_i max_k |z_ik|``; certificates allow for a few units of rounding of that sum: no more may pass.
_SIMPLEX_ATOL = 64 * EPS
# Class probabilities given by users may carry single-precision rounding.
_TARGET_ATOL = 1e-5
# A class without samples has its intercept at minus infinity; this stands in for its frequency.
_TINY_FREQUENCY = 1e-300
# Losses below this, per unit of weight, come from odds near 1, whose logarithms need all digits of what exceeds 1.
_SMALL_LOSS = 1e-3


@dataclass(frozen=True)
class MultinomialLoss(Loss):
    """``F(Z) = sum_i w_i [log sum_k exp(z_ik) - <y_i, z_i>]`` for one-hot or probability targets ``y_i``."""

    name: ClassVar[str] = "multinomial"
    compiled: ClassVar[str] = "multinomial"
    curvature: ClassVar[float] = 0.5  # largest eigenvalue of diag(p) - p p^T, by Gershgorin
    bend: ClassVar[float | None] = math.sqrt(2.0)
    target: ClassVar[str] = "classes"
    needs_whole_samples: ClassVar[str] = "its classes exclude each other, so that a sample has all of them or none"
    measure: ClassVar[str] = "log-loss"
    score_name: ClassVar[str] = "neg_log_loss"

    def check_targets(self, Y: FloatArray) -> FloatArray:
        """Rows must be probabilities over at least two classes; they are normalized exactly."""
        advice = (
            "Give Y as one-hot rows or class probabilities, shape (n_samples, n_classes); "
            "labels become one-hot with (labels[:, None] == np.unique(labels)).astype(float)."
        )
        if Y.shape[1] < 2:
            raise ValueError(f"loss='multinomial' needs at least two columns in Y, got shape {Y.shape}. {advice}")
        if Y.min() < 0.0:
            raise ValueError(f"loss='multinomial' needs Y >= 0, but its smallest entry is {Y.min():g}. {advice}")
        sums = Y.sum(axis=1)
        worst = int(np.argmax(np.abs(sums - 1.0)))
        if abs(sums[worst] - 1.0) > _TARGET_ATOL:
            raise ValueError(
                f"loss='multinomial' needs rows of Y that sum to 1, but row {worst} sums to {sums[worst]:g}. {advice}"
            )
        return Y / sums[:, None]

    def determined(self, target_means: FloatArray) -> FloatArray:
        """Classes that do not occur have probability zero, which leaves no choice where there is but one."""
        occurs = target_means > 0.0
        return np.where(occurs, np.nan if np.count_nonzero(occurs) > 1 else 0.0, -CERTAIN)

    def value(self, Z: FloatArray, Y: FloatArray, w: FloatArray) -> float:
        """``F(Z)``, as a sum of non-negative terms so that large predictors do not cancel."""
        return self.value_and_dual_point(np.array(Z), Y, w)[0]

    def dual_point(self, Z: FloatArray, Y: FloatArray, w: FloatArray) -> FloatArray:
        """``theta_i = w_i (y_i - softmax(z_i))``."""
        return w * (Y - softmax(Z, axis=1))

    def value_and_dual_point(self, Z: FloatArray, Y: FloatArray, w: FloatArray) -> tuple[float, FloatArray]:
        """Value and dual point from one evaluation of the exponentials, in the memory of ``Z``."""
        Z -= np.maximum.reduce(Z, axis=1, keepdims=True)
        products = np.add.reduce(Y * Z, axis=1, keepdims=True)
        np.exp(Z, out=Z)
        sums = np.add.reduce(Z, axis=1, keepdims=True)
        value = _value(Z, sums, -products, w)
        Z /= sums
        np.subtract(Y, Z, out=Z)
        Z *= w
        return value, Z

    def dual_value(self, theta: FloatArray, Y: FloatArray, w: FloatArray) -> float:
        """Weighted entropy of ``p_i = y_i - theta_i / w_i``, minus infinity off the simplex."""
        P = Y - theta / w
        excess = np.abs(np.add.reduce(P, axis=1) - 1.0)
        if P.min(initial=0.0) < -_SIMPLEX_ATOL or excess.max(initial=0.0) > _SIMPLEX_ATOL:
            return -np.inf
        return float(np.add.reduce(w * entr(np.maximum(P, 0.0)), axis=None))

    def balance_totals(self, theta: FloatArray, Y: FloatArray, w: FloatArray) -> FloatArray:
        """Weighted class totals of the model's probabilities and of the targets."""
        return np.stack([np.add.reduce(w * Y - theta, axis=0), np.add.reduce(w * Y, axis=0)])

    def balance(self, theta: FloatArray, Y: FloatArray, w: FloatArray, totals: FloatArray) -> FloatArray:
        """Move probability from classes predicted too often to those predicted too rarely.

        Transport rounding: columns with too large a total shrink to their target; what each sample loses
        there goes to the other classes in proportion to their deficits. Probabilities stay probabilities.
        """
        predicted, wanted = totals
        deficits = np.maximum(wanted - predicted, 0.0)
        if deficits.sum() == 0.0:
            return theta
        kept = np.where(predicted > wanted, wanted / np.where(predicted > 0, predicted, 1.0), 1.0)
        P = np.maximum(Y - theta / w, 0.0)
        removed = P * (1.0 - kept)
        received = np.add.reduce(removed, axis=1, keepdims=True) * (deficits / deficits.sum())
        return theta + w * (removed - received)

    def curvatures(self, theta: FloatArray, Y: FloatArray, w: FloatArray) -> FloatArray:
        """``w_i`` times the mean of ``p_ik (1 - p_ik)``, the diagonal of ``diag(p_i) - p_i p_i^T``."""
        P = Y - theta / w
        means: FloatArray = w * np.maximum(P * (1.0 - P), 0.0).mean(axis=1, keepdims=True)
        return means

    def curved(self, Z: FloatArray, Y: FloatArray, w: FloatArray, move: FloatArray) -> FloatArray:
        """``w (diag(p) - p p^T) move``: taken off, it leaves probabilities in the simplex while moves are short."""
        P = softmax(Z, axis=1)
        return np.asarray(w * P * (move - np.sum(P * move, axis=1, keepdims=True)))

    def change(self, Z: FloatArray, Y: FloatArray, w: FloatArray, move: FloatArray) -> float:
        """``sum_i w_i [log sum_k p_ik exp(move_ik) - <y_i, move_i>]``."""
        P = softmax(Z, axis=1)
        below_top = move.max(axis=1, keepdims=True) - move
        logs = np.log(np.maximum(np.sum(P * np.exp(-below_top), axis=1, keepdims=True), _TINY_FREQUENCY))
        return float(np.sum(w * (logs + np.add.reduce(Y * below_top, axis=1, keepdims=True))))

    def curvature_along(self, Z: FloatArray, Y: FloatArray, w: FloatArray, E: FloatArray) -> FloatArray:
        """``sum_i w_i e_i e_i^T`` times ``diag(p_i) - p_i p_i^T``."""
        P = softmax(Z, axis=1)
        (n, q), r = P.shape, E.shape[1]
        weighted = (E[:, :, None] * (np.sqrt(w) * P)[:, None, :]).reshape(n, r * q)
        H: FloatArray = -(weighted.T @ weighted)
        blocks = H.reshape(r, q, r, q)
        for k in range(q):
            blocks[:, k, :, k] += E.T @ (w * P[:, k : k + 1] * E)
        return H

    def spread(self, theta: FloatArray, raw: FloatArray, Y: FloatArray, w: FloatArray) -> FloatArray:
        """A diagonal above ``diag(r) - r r^T / sum(r)`` for ``r = (p + p') / 2 + |p - p'| / 4``.

        It is r itself, unless one class has more than half of r: then ``2 m r`` with m its share, and for this class
        ``2 m (1 - m) sum(r)``.
        """
        P, P_raw = (np.maximum(Y - point / w, 0.0) for point in (theta, raw))
        R = 0.5 * (P + P_raw) + 0.25 * np.abs(P - P_raw)
        totals, top = np.add.reduce(R, axis=1, keepdims=True), R.argmax(axis=1, keepdims=True)
        largest = np.take_along_axis(R, top, axis=1)
        share = np.maximum(largest / totals, 0.5)
        H = 2.0 * share * R
        np.put_along_axis(H, top, 0.0, axis=1)
        others = np.add.reduce(H, axis=1, keepdims=True)  # 2 m (1 - m) sum(r)
        np.put_along_axis(H, top, np.minimum(largest, others), axis=1)
        return H

    def null_intercept(self, target_means: FloatArray) -> FloatArray:
        """Logarithms of the class frequencies, with mean zero; finite for a class that never occurs."""
        logs = np.log(np.maximum(target_means, _TINY_FREQUENCY))
        return logs - logs.mean()

    def score(self, Z: FloatArray, Y: FloatArray, w: FloatArray) -> float:
        """Minus the mean log-loss, probabilities clipped as scikit-learn clips them."""
        return float(np.sum(w * Y * np.log(np.clip(softmax(Z, axis=1), EPS, 1.0 - EPS))))

    def minus_twice_log_likelihood(self, loss: float, least: float, n_samples: float, n_tasks: int) -> float:
        """The loss is a likelihood itself."""
        return 2.0 * n_samples * loss

    def parameters_per_feature(self, n_tasks: int) -> int:
        """One less than classes: the softmax does not see a constant."""
        return n_tasks - 1

    def canonical(self, B: FloatArray) -> FloatArray:
        """Rows with mean zero: the softmax does not see the mean, the norm does."""
        return B - B.mean(axis=1, keepdims=True)

    def cancelling_size(self, Z: FloatArray, w: FloatArray) -> float:
        """``sum_i w_i max_k |z_ik|``: differences of predictors carry their rounding."""
        return float(np.sum(w * np.abs(Z).max(axis=1, keepdims=True)))


def _value(odds: FloatArray, sums: FloatArray, below_top: FloatArray, w: FloatArray) -> float:
    """``sum_i w_i [log(sum of odds) + distance of the target's predictor from the top]``; the largest odds are 1."""
    value = float(np.add.reduce(w * (np.log(sums) + below_top), axis=None))
    if value > _SMALL_LOSS * float(np.add.reduce(w, axis=None)):
        return value
    others = odds.copy()
    np.put_along_axis(others, odds.argmax(axis=1, keepdims=True), 0.0, axis=1)
    return float(np.sum(w * (np.log1p(others.sum(axis=1, keepdims=True)) + below_top)))


LOSS = MultinomialLoss()
