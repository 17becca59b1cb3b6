"""Where the dual optimum can be, and so how large correlations can be there; all with room for rounding."""

from __future__ import annotations

import math
from functools import cached_property
from typing import NamedTuple

import numpy as np

from .._typing import FloatArray, Handle, IndexArray
from ..designs.base import Design
from ..designs.dense import DenseColumns
from ..norm import GroupOWL
from ..norm.kernels import EPS, inverse_weighted_square, row_norms

# Operations for the Gram matrices of all units, beyond which nothing is made of them.
_MOST_WORK = 2e10
# Entries of the columns whose Gram matrices are made at a time.
_AT_ONCE = 1 << 17


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

    def local_bounds(
        self, norms: Correlations, squares: FloatArray, largest: FloatArray, bend: float, n_samples: int
    ) -> FloatArray:
        """Bounds by the curvature between dual point and residual.

        ``squares`` are the largest sums of a task of variances times squares of the columns, as they were added up;
        ``largest`` the largest norms that the part of a sample can have.
        """
        squares = (1.0 + 8 * EPS * math.sqrt(n_samples)) * squares
        linear = 0.25 * bend * self.two_sided_gap * largest
        moves = linear + np.sqrt(linear * linear + self.two_sided_gap * squares)
        center, slack = self.center(norms, n_samples)
        return center + moves + slack

    def ellipsoids(self, products: Products, rounding: FloatArray, n_samples: int, *, two_sided: bool) -> FloatArray:
        """The same bounds where a correlation moves by another length in each task: sharper than those of the balls."""
        upper = products.moved(products.of_theta, self.radius) + product_slack(self.theta_norm, n_samples) * rounding
        if not two_sided:
            return upper
        radius = self.midpoint_radius + 0.5 * (self.balancing + self.error)
        slack = product_slack(max(self.theta_norm, self.residual_norm), n_samples) * rounding
        center = 0.5 * (products.of_theta + products.of_residual)
        return np.minimum(upper, products.moved(center, radius) + slack)

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


class Products(NamedTuple):
    """Products themselves, with the dual point and with the balanced residual, and the norms of columns in each task.

    All of shape (n_rows, n_tasks); for weights that differ between tasks. A row of ``X^T theta`` that moves with a dual
    point within a ball stays in an ellipsoid whose axes are the norms of the tasks.
    """

    of_theta: FloatArray
    of_residual: FloatArray
    norms: FloatArray
    penalty: GroupOWL

    def moved(self, C: FloatArray, radius: float) -> FloatArray:
        """``sqrt(||C||^2 + 2 rho ||(sum_j a_jk |C_jk|)_k|| + rho^2 max_k sum_j a_jk^2)`` of each unit of some products.

        Entry k of row j moves by ``a_jk r_k`` at most, and the squares of the ``r_k`` add up to ``rho^2``.
        """
        C, penalty = np.abs(self.penalty.projected(C)), self.penalty
        squares = penalty.norms(C) ** 2
        along = row_norms(penalty.sums(self.norms * C))
        farthest = penalty.sums(self.norms * self.norms).max(axis=1)
        return (1.0 + 8 * EPS) * np.sqrt(squares + 2.0 * radius * along + radius * radius * farthest)


class UnitNorms:
    """Bounds on the spectral norms of the columns of each unit, ``||diag(w)^(1/2) X_g||_2``, made when they are needed.

    They are the roots of the largest eigenvalues of Gram matrices, with room for rounding: never an estimate from
    below. Until these are asked for, and where they would cost too much, or each task has its own, Frobenius norms
    stand for them, which are larger.

    Parameters
    ----------
    design, w, penalty : Design, handle, GroupOWL
        Columns, weights of samples, and the units of the columns.
    norms, rounding_norms : ndarray of shape (n_rows,)
        Norms of the columns, and of what products really add up.
    product_error : float, default=0.0
        Relative error of products, where they are not computed from the data.
    """

    def __init__(
        self,
        design: Design,
        w: Handle,
        penalty: GroupOWL,
        norms: FloatArray,
        rounding_norms: FloatArray,
        product_error: float = 0.0,
    ) -> None:
        assert penalty.units is not None
        self.design, self.w = design, w
        self.sizes = np.bincount(penalty.units)
        self.units = penalty.units
        self.frobenius = penalty.lengths(norms)
        self.rounding = (8 * EPS * np.sqrt(design.n_samples) + product_error) * penalty.lengths(rounding_norms) ** 2
        #: What is known so far.
        self.bounds = self.frobenius.copy()
        is_near = design.is_one_block and not design.keeps_columns and design.patterns is None
        is_cheap = design.n_samples * float(np.sum(self.sizes**2)) <= _MOST_WORK
        self.is_open = (self.sizes > 1) & (self.frobenius > 0.0) & is_near & is_cheap

    @cached_property
    def members(self) -> IndexArray:
        """Rows, unit after unit."""
        return np.argsort(self.units, kind="stable")

    @property
    def least(self) -> FloatArray:
        """How small the norms can be, at least."""
        return np.where(self.is_open, self.frobenius / np.sqrt(self.sizes), self.bounds)

    def refine(self, units: IndexArray) -> None:
        """Find the spectral norms of these units."""
        ends, todo = np.cumsum(self.sizes), units[self.is_open[units]]
        for size in np.unique(self.sizes[todo]):
            same = todo[self.sizes[todo] == size]
            at_once = max(1, _AT_ONCE // int(size * self.design.n_samples))
            for some in np.array_split(same, -(-len(same) // at_once)):
                rows = self.members[(ends[some] - size)[:, None] + np.arange(size)]
                largest = np.maximum(np.linalg.eigvalsh(self._grams(rows))[:, -1], 0.0)
                found = np.sqrt(largest * (1.0 + 4 * EPS * size) + self.rounding[some])
                self.bounds[some] = np.minimum(self.bounds[some], found)
        self.is_open[todo] = False

    def _grams(self, rows: IndexArray) -> FloatArray:
        """Gram matrices of units of one size, whose columns are the rows of an array."""
        columns = self.design.columns(rows.ravel()) if rows.shape[0] > 1 else None
        if not isinstance(columns, DenseColumns):
            return np.stack([self.design.gram(own, own, self.w) for own in rows])
        A = columns.At.reshape(*rows.shape, -1)
        return np.asarray((A * self.w[:, 0]) @ A.transpose(0, 2, 1))

    def exact(self, units: IndexArray) -> FloatArray:
        """The bounds of these units, spectral norms where they can be had."""
        self.refine(units)
        return self.bounds[units]


def product_slack(theta_norm: float, n_samples: int) -> float:
    """Rounding error of a product with ``theta`` relative to the norms of what it adds up."""
    return 8 * EPS * math.sqrt(n_samples) * theta_norm


def squared_distance(one: FloatArray, other: FloatArray, w: FloatArray) -> float:
    """``sum_i ||one_i - other_i||^2 / w_i``, a sum over samples."""
    return inverse_weighted_square(one - other, w)
