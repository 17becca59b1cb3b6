"""A loss without a bound on its curvature: counts, with the Poisson likelihood.

``f_i(z) = sum_k exp(z_k) - y_k z_k``. The second derivative is the mean ``mu = exp(z)``, which is unbounded, so there
is no ball around a dual point that is known to contain the optimum. The duality gap still bounds the distance: with
the means mu of the dual point, mu' of the predictor and mu* of the optimum,
``sum_i w_i [KL(mu_i || mu*_i) + KL(mu*_i || mu'_i)] <= gap``. This is all that the local bound needs: ``bend = 1``, and
the variances, which the base class takes from :meth:`variance`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import xlogy

from groupowl.losses.separable import SeparableLoss

# Beyond this predictor the mean overflows soon; a step that goes there is refused like any that raises the loss.
_LARGEST_PREDICTOR = 500.0


@dataclass(frozen=True)
class PoissonLoss(SeparableLoss):
    """Log-linear models of counts."""

    name: ClassVar[str] = "poisson"
    curvature: ClassVar[float] = np.inf
    bend: ClassVar[float | None] = 1.0
    lowest: ClassVar[float] = 0.0
    highest: ClassVar[float] = np.inf

    def check_targets(self, Y):
        if Y.min() < 0.0:
            raise ValueError(f"loss='poisson' needs counts, Y >= 0, but the smallest entry of Y is {Y.min():g}.")
        if not (Y.sum(axis=0) > 0.0).all():
            raise ValueError("loss='poisson' needs a positive count in every column of Y; leave the others out.")
        return Y

    def cost(self, Z, Y):
        return np.where(Z > _LARGEST_PREDICTOR, np.inf, np.exp(np.minimum(Z, _LARGEST_PREDICTOR)) - Y * Z)

    def mean(self, Z):
        return np.exp(np.minimum(Z, _LARGEST_PREDICTOR))

    def variance(self, P):
        return P

    def dual_cost(self, P, Y):
        return P - xlogy(P, P)

    def change(self, Z, Y, w, move):
        return float(np.sum(w * (self.mean(Z) * np.expm1(move) - Y * move)))

    def null_intercept(self, target_means):
        return np.log(target_means)

    def minus_twice_log_likelihood(self, loss, least, n_samples, n_tasks):
        return 2.0 * n_samples * loss  # up to the factorials, which no model changes

    def cancelling_size(self, Z, w):
        return float(np.sum(w * (self.mean(Z) + np.abs(Z)) * (1.0 + np.abs(Z))))

    def curvature_near(self, Z):
        return float(np.exp(1.0 + Z.max(initial=-np.inf)))


LOSS = PoissonLoss()
