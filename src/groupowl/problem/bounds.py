"""Where the dual optimum can be, and so how large correlations can be there; all with room for rounding."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from .._typing import FloatArray, Handle
from ..designs.base import Design
from ..norm import GroupOWL
from ..norm.kernels import EPS, inverse_weighted_square

# Operations for the Gram matrices of all units, beyond which nothing is made of them.
_MOST_WORK = 2e10


class Balls(NamedTuple):
    """Two balls with the dual optimum: one about a dual point, one about the midpoint between it and a residual.

    Norms are weighted, ``sqrt(sum_i ||.||^2 / w_i)``.

    Attributes
    ----------
    gap, curvature : float
        The duality gap of coefficients and dual point, and the curvature of the loss.
    theta_norm, residual_norm : float
        Norms of the dual point and of the residual of the coefficients.
    distance : float
        From the dual point to the residual as it is, before it was balanced.
    balancing : float
        From the residual as it is to the balanced one, whose correlations are known.
    reach : float
        Bound on the norms of targets and predictor, whatever cancels: rounding errors are in proportion to it.
    square_error : float
        Error of the square of the distance, where products are not exact.
    """

    gap: float
    curvature: float
    theta_norm: float
    residual_norm: float
    distance: float
    balancing: float
    reach: float
    square_error: float = 0.0

    @property
    def radius(self) -> float:
        """``sqrt(2 ell gap)``, that of the ball about the dual point."""
        return math.sqrt(2.0 * self.curvature * self.gap)

    @property
    def error(self) -> float:
        """Rounding error of the residual, for the predictor that was computed."""
        return 8 * EPS * (self.reach + self.residual_norm)

    @property
    def two_sided_gap(self) -> float:
        """The gap with an error of the predictor, which the dual optimum multiplies."""
        farthest = self.radius if math.isfinite(self.curvature) else self.residual_norm
        return self.gap + 8 * EPS * self.reach * (self.theta_norm + farthest)

    @property
    def midpoint_radius(self) -> float:
        """``sqrt(ell gap - e^2 / 4)``, with the distance e as small as it can be."""
        nearest = max(self.distance - self.error, 0.0)
        square = max(nearest * nearest - self.square_error, 0.0)
        return math.sqrt(max(self.curvature * self.two_sided_gap - 0.25 * square, 0.0))

    def upper_bounds(self, norms: Correlations, n_samples: int, *, two_sided: bool) -> FloatArray:
        """Bounds on correlations at the dual optimum: the smaller of both balls, or that about the dual point alone."""
        slack = product_slack(self.theta_norm, n_samples) * norms.rounding
        upper = norms.of_theta + self.radius * norms.columns + slack
        if not two_sided:
            return upper
        center, slack = self.center(norms, n_samples)
        return np.minimum(upper, center + self.midpoint_radius * norms.columns + slack)

    def center(self, norms: Correlations, n_samples: int) -> tuple[FloatArray, FloatArray]:
        """Bounds on correlations at the midpoint, and the rounding errors of their products."""
        center = 0.5 * (norms.of_theta + norms.of_residual + (self.balancing + self.error) * norms.columns)
        return center, product_slack(max(self.theta_norm, self.residual_norm), n_samples) * norms.rounding

    def lower_bounds(self, norms: Correlations, n_samples: int) -> FloatArray:
        """How small they can be at least, where products are exact."""
        moves = min(self.radius, self.midpoint_radius + 0.5 * (self.distance + self.error))
        slack = product_slack(self.theta_norm, n_samples) * norms.rounding
        return np.maximum(norms.of_theta - moves * norms.columns - slack, 0.0)


class Correlations(NamedTuple):
    """One number per unit: norms of products with the dual point and with the balanced residual, and of columns.

    ``rounding`` are the norms of what products really add up.
    """

    of_theta: FloatArray
    of_residual: FloatArray
    columns: FloatArray
    rounding: FloatArray


def unit_norms(
    design: Design,
    w: Handle,
    penalty: GroupOWL,
    norms: FloatArray,
    rounding_norms: FloatArray,
    product_error: float = 0.0,
) -> FloatArray | None:
    """Bounds on the spectral norms of the columns of each unit, ``||diag(w)^(1/2) X_g||_2``; None where rows are units.

    They are the roots of the largest eigenvalues of Gram matrices, with room for rounding: never an estimate from
    below. Where Gram matrices would cost too much, or each task has its own, Frobenius norms stand for them, which are
    larger.
    """
    if penalty.units is None:
        return None
    bounds, sizes = penalty.lengths(norms), np.bincount(penalty.units)
    is_near = design.is_one_block and not design.keeps_columns
    if design.patterns is not None or not is_near or design.n_samples * float(np.sum(sizes**2)) > _MOST_WORK:
        return bounds
    rounding = penalty.lengths(rounding_norms) ** 2
    for k in np.flatnonzero((sizes > 1) & (bounds > 0.0)):
        rows = penalty.rows(np.array([k]))
        largest = float(np.linalg.eigvalsh(design.gram(rows, rows, w))[-1])
        error = 4 * EPS * sizes[k] * largest + (8 * EPS * np.sqrt(design.n_samples) + product_error) * rounding[k]
        bounds[k] = min(bounds[k], math.sqrt(largest + error))
    return bounds


def product_slack(theta_norm: float, n_samples: int) -> float:
    """Rounding error of a product with ``theta`` relative to the norms of what it adds up."""
    return 8 * EPS * math.sqrt(n_samples) * theta_norm


def squared_distance(one: FloatArray, other: FloatArray, w: FloatArray) -> float:
    """``sum_i ||one_i - other_i||^2 / w_i``, a sum over samples."""
    return inverse_weighted_square(one - other, w)
