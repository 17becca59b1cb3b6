"""A loss of one's own: several yes-or-no targets at once, each with a logistic loss.

``f_i(z) = sum_k log(1 + exp(z_k)) - y_k z_k``, with the features shared by all targets. The dual point is
``theta_i = w_i (y_i - p_i)`` with ``p = 1 / (1 + exp(-z))``, and the dual value is the sum of the entropies of p.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import entr, expit, logit

from groupowl.losses.separable import SeparableLoss

# A target without a single yes, or no, has its intercept at infinity; this stands in for its frequency.
_TINY = 1e-300


@dataclass(frozen=True)
class MultiLabelLoss(SeparableLoss):
    """A sum over samples and targets, so a few functions of single entries are all there is to write."""

    name: ClassVar[str] = "multi-label"
    curvature: ClassVar[float] = 0.25  # p (1 - p) is never larger
    lowest: ClassVar[float] = 0.0
    highest: ClassVar[float] = 1.0

    def check_targets(self, Y):
        if Y.min() < 0.0 or Y.max() > 1.0:
            raise ValueError(f"Y must lie between 0 and 1, but has entries from {Y.min():g} to {Y.max():g}.")
        return Y

    def cost(self, Z, Y):
        return np.logaddexp(0.0, Z) - Y * Z

    def mean(self, Z):
        return expit(Z)

    def variance(self, P):
        return P * (1.0 - P)

    def dual_cost(self, P, Y):
        return entr(P) + entr(1.0 - P)

    def null_intercept(self, target_means):
        return logit(np.clip(target_means, _TINY, 1.0 - np.finfo(np.float64).eps))

    def cancelling_size(self, Z, w):
        return float(np.sum(w * np.abs(Z)))  # cost subtracts Y Z from something as large


LOSS = MultiLabelLoss()
