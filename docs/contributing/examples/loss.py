"""A loss of one's own: several yes-or-no targets at once, each with a logistic loss.

``f_i(z) = sum_k log(1 + exp(z_k)) - y_k z_k``, with the features shared by all targets. The dual point is
``theta_i = w_i (y_i - p_i)`` with ``p = 1 / (1 + exp(-z))``, and the dual value is the sum of the entropies of p.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import entr, expit, logit

# Rounding may leave probabilities this far outside [0, 1].
_ATOL = 64 * np.finfo(np.float64).eps
# A target without a single yes, or no, has its intercept at infinity; this stands in for its frequency.
_TINY = 1e-300


@dataclass(frozen=True)
class MultiLabelLoss:
    """Every method is a function of some rows of ``Z``, ``Y`` and ``w``, and what it adds up is a sum over them."""

    name: ClassVar[str] = "multi-label"
    curvature: ClassVar[float] = 0.25  # p (1 - p) is never larger
    centers_targets: ClassVar[bool] = False  # the best intercept is not a mean

    def check_targets(self, Y):
        if Y.min() < 0.0 or Y.max() > 1.0:
            raise ValueError(f"Y must lie between 0 and 1, but has entries from {Y.min():g} to {Y.max():g}.")
        return Y

    # Value and conjugate ----------------------------------------------------------------------------

    def value(self, Z, Y, w):
        return float(np.sum(w * (np.logaddexp(0.0, Z) - Y * Z)))

    def dual_point(self, Z, Y, w):
        return w * (Y - expit(Z))

    def value_and_dual_point(self, Z, Y, w):
        return self.value(Z, Y, w), self.dual_point(Z, Y, w)

    def dual_value(self, theta, Y, w):
        P = Y - theta / w
        if P.min(initial=0.0) < -_ATOL or P.max(initial=1.0) > 1.0 + _ATOL:
            return -np.inf
        P = np.clip(P, 0.0, 1.0)
        return float(np.sum(w * (entr(P) + entr(1.0 - P))))

    # Feasible points --------------------------------------------------------------------------------

    def ray_totals(self, theta, Y, w):
        return np.zeros(0)

    def ray_scale(self, totals, limit):
        return min(1.0, limit)  # the domain is convex and contains 0

    def balance_totals(self, theta, Y, w):
        """Of each target: yeses that the model predicts, those that there are, and all weights."""
        predicted, wanted = np.sum(w * Y - theta, axis=0), np.sum(w * Y, axis=0)
        return np.stack([predicted, wanted, np.full(len(wanted), w.sum())])

    def balance(self, theta, Y, w, totals):
        """Shrink p where there are too many yeses, 1 - p where there are too few."""
        predicted, wanted, weight = totals
        P = np.clip(Y - theta / w, 0.0, 1.0)
        too_many = wanted / np.where(predicted > 0.0, predicted, 1.0)
        too_few = (weight - wanted) / np.where(predicted < weight, weight - predicted, 1.0)
        balanced = np.where(predicted > wanted, P * too_many, 1.0 - (1.0 - P) * too_few)
        return np.where(predicted == wanted, theta, w * (Y - balanced))

    # Curvature, as functions of the dual point -----------------------------------------------------

    def curvatures(self, theta, Y, w):
        return w * _slopes(theta, Y, w).mean(axis=1, keepdims=True)

    def moved_along_tangent(self, theta, Y, w, move):
        return theta - w * _slopes(theta, Y, w) * move

    def change(self, theta, Y, w, move):
        P = np.clip(Y - theta / w, _TINY, 1.0)
        return float(np.sum(w * (np.logaddexp(np.log(P) + move, np.log1p(-np.minimum(P, 1.0 - _ATOL))) - Y * move)))

    def curvature_along(self, theta, Y, w, E):
        """Targets do not meet: one block ``E^T diag(w p (1 - p)) E`` for each, entries of one target q apart."""
        slopes, r, q = w * _slopes(theta, Y, w), E.shape[1], Y.shape[1]
        H = np.zeros((r, q, r, q))
        for k in range(q):
            H[:, k, :, k] = E.T @ (slopes[:, k : k + 1] * E)
        return H.reshape(r * q, r * q)

    # The rest ---------------------------------------------------------------------------------------

    def null_intercept(self, target_means):
        return logit(np.clip(target_means, _TINY, 1.0 - _ATOL))

    def canonical(self, B):
        return B  # no two matrices have the same loss

    def cancelling_size(self, Z, w):
        return float(np.sum(w * np.abs(Z)))  # value subtracts Y Z from something as large


def _slopes(theta, Y, w):
    P = np.clip(Y - theta / w, 0.0, 1.0)
    return P * (1.0 - P)
