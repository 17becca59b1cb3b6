"""The dual side of a problem: feasible points, the gap they prove, and bounds on the dual optimum."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np

from .._kernels import EPS, inverse_weighted_square, owl_gauge, unit_norms
from .._typing import FloatArray, Handle
from ..balancing import Block
from .certificate import Certificate, Residual
from .objective import Objective


@dataclass(frozen=True, eq=False)
class Problem(Objective):
    """One instance of the model: its objective and the certificates for it. Changing something makes a new one."""

    def certify(
        self,
        B: FloatArray,
        Z: Handle | None = None,
        best: Certificate | None = None,
        *,
        cancelled: float = 0.0,
        residual: Residual | None = None,
    ) -> Certificate:
        """Certificate for coefficients ``B``; ``best`` is kept if its dual is larger.

        ``Z`` saves a product, ``residual``, known from other weights, saves two. ``cancelled`` is the weighted norm of
        a constant that was taken off ``Z``: its rounding is still there.
        """
        residual = self.residual(B, Z, cancelled) if residual is None else residual
        primal = residual.loss + self.penalty_value(B)
        found = self._certificate_at(B, residual, primal) if math.isfinite(primal) else None
        if found is None or not math.isfinite(found.gap + float(np.add.reduce(found.correlations))):
            return replace(best or self._zero_certificate(), primal=primal, gap=np.inf, residual=None)
        if best is None or best.dual < found.dual or found.gap == 0.0:
            return found
        rounding = best.product_error + self._rounding(residual, primal, best.dual, best.theta_norm)
        gap = max(primal - best.dual, 0.0) + rounding
        point = best.theta, best.correlations, best.theta_norm
        return Certificate(*point, primal, best.dual, gap, rounding, best.product_error, residual)

    def line_bend(self, one: Certificate, other: Certificate, ratio: float) -> float:
        """What gaps on the line between two solutions of different strengths can have beyond the line between theirs.

        For squared loss, lam ``a_0 * weights`` here, ``a_1 = ratio * a_0`` at the other end, and all else in between
        on lines as well: with the share s of the other end the gap is at most
        ``(1 - s) gap_0 + s gap_1 + s (1 - s) bend``, where

            bend = (a_0 - a_1) (J_1 - J_0) - 1/2 ||Z_1 - Z_0||^2 - 1/2 ||theta_1 - theta_0||^2

        because the two parts of the gap without penalty are exact quadratics, the norm J is convex, and dual points
        that are feasible at their ends are so in between. Infinity where nothing is known.
        """
        start, end = one.residual, other.residual
        if self.loss.name != "squared" or start is None or end is None:
            return math.inf
        costs = one.primal - start.loss, (other.primal - end.loss) / ratio  # a_0 J_0 and a_0 J_1
        moved = self._distance(start.theta, end.theta) + self._distance(one.theta, other.theta)
        reach = start.reach + end.reach
        rounding = (64 * EPS + self.product_error) * reach * reach + 64 * EPS * (one.primal + other.primal / ratio)
        return (1.0 - ratio) * (costs[1] - costs[0]) - 0.5 * moved + rounding

    def _distance(self, theta: Handle, theta_other: Handle) -> float:
        return float(self.design.reduce(_squared_distance, theta, theta_other, self.targets.w))

    def residual(self, B: FloatArray, Z: Handle | None = None, cancelled: float = 0.0) -> Residual:
        """What ``B`` leaves unexplained, two products or with ``Z`` one."""
        Y, w = self.targets.Y, self.targets.w
        Z = self.predictor(B) if Z is None else Z
        raw = self.dual_point(Z)
        theta = self._balanced(raw, Z)
        C, (square, totals, loss, cancelling, *balancing) = self.design.evaluate(
            theta,
            (inverse_weighted_square, theta, w),
            (self.loss.ray_totals, theta, Y, w),
            (self.loss.value, Z, Y, w),
            (self.loss.cancelling_size, Z, w),
            *([(_squared_distance, raw, theta, w)] if self.n_free else []),
        )
        reach = self.targets.norm + cancelled + self.reach(B)
        pulls = unit_norms(C)
        if self.product_error > 0.0:  # upper bounds where products are not exact
            pulls = (1.0 + self.scale_error) * (pulls + self.product_error * reach * self.rounding_norms)
        return Residual(
            theta=theta,
            products=C,
            is_gradient=not self.n_free,  # balancing by the mean does not move products with centered columns
            pulls=pulls,
            norm=math.sqrt(square),
            totals=totals,
            loss=float(loss),
            reach=reach,
            cancelling=float(cancelling),
            imbalance=self._free_block.imbalance(theta) if self.design.n_free_directions else 0.0,
            balancing=math.sqrt(sum(balancing)),
        )

    def _certificate_at(self, B: FloatArray, residual: Residual, primal: float) -> Certificate:
        """Certificate from the residual, scaled into the dual ball."""
        gauge = owl_gauge(residual.pulls + self._cancellation(residual.norm), self.lam)
        scale = self.loss.ray_scale(residual.totals, 1.0 / gauge if gauge > 0 else np.inf)
        theta = self.design.map(partial(np.multiply, scale), residual.theta)
        correlations, theta_norm = abs(scale) * residual.pulls, abs(scale) * residual.norm
        if gauge <= 1.0 and not self.design.n_free_directions and self._is_null(B):
            # The gradient at the null model lies in the dual ball: optimal, and no difference to round. That the null
            # model is one is known in closed form; with unpenalized columns it comes from a minimization, which may
            # have failed, and only a dual value can tell.
            return Certificate(theta, correlations, theta_norm, primal, primal, 0.0, 0.0, residual=residual)
        dual = float(self.design.reduce(self.loss.dual_value, theta, self.targets.Y, self.targets.w))
        # <theta, Y> and ||theta||^2 for theta = s (Y - X B), each with the error of its products; and what is left of
        # the products with the unpenalized block, times its coefficients.
        product_error = self.product_error * (abs(scale) + 0.5 * scale * scale) * residual.reach * residual.reach
        product_error += abs(scale) * residual.imbalance * residual.reach
        rounding = product_error + self._rounding(residual, primal, dual, theta_norm)
        gap = max(primal - dual, 0.0) + rounding
        return Certificate(theta, correlations, theta_norm, primal, dual, gap, rounding, product_error, residual)

    def _cancellation(self, theta_norm: float) -> FloatArray:
        """Errors of the correlations where centring cancels: without this a scaled point may not be feasible."""
        return self._slack(theta_norm) * (self.rounding_norms - self.norms)

    def _slack(self, theta_norm: float) -> float:
        """Rounding error of a product with ``theta`` relative to ``rounding_norms``."""
        return 8 * EPS * math.sqrt(self.design.n_samples) * theta_norm

    def _balanced(self, theta: Handle, Z: Handle) -> Handle:
        """A dual point near ``theta``, that of ``Z``, and orthogonal to the constant and the unpenalized columns."""
        if self.design.n_free_directions:
            return self._free_block.balanced(Z)
        return self._without_mean(theta)

    def _without_mean(self, theta: Handle) -> Handle:
        """The same where there are no unpenalized columns."""
        if not (self.fit_intercept and self.design.rows_are_samples):
            return theta
        Y, w = self.targets.Y, self.targets.w
        totals = self.design.total(self.loss.balance_totals, theta, Y, w)
        return self.design.map(self.loss.balance, theta, Y, w, totals=totals)

    def nearly_balanced(self, theta: Handle) -> Handle:
        """The same, cheaper and less exact where there are unpenalized columns."""
        return self._free_block.nearly_balanced(theta) if self.design.n_free_directions else self._without_mean(theta)

    def with_best_free_rows(self, B: FloatArray) -> FloatArray:
        """The same penalised rows with the unpenalised ones where the loss is smallest."""
        moved = self._free_block.best_move(self.predictor(B))
        B, end = B.copy(), self.n_rows + self.n_free_rows
        B[self.n_rows : end] += moved[: self.n_free_rows] / self.free_scale
        if self.intercept_scale:
            B[end:] += self._free_block.constant_value * moved[self.n_free_rows :] / self.intercept_scale
        return B

    @cached_property
    def _free_block(self) -> Block:
        targets = self.targets
        return Block(self.design, self.loss, targets.Y, targets.w, targets.total_weight, self.fit_intercept)

    def _zero_certificate(self) -> Certificate:
        """For coefficients that overflow: zero is feasible, and nothing is proved."""
        zero = self.design.map(np.zeros_like, self.targets.Y)
        dual = float(self.design.reduce(self.loss.dual_value, zero, self.targets.Y, self.targets.w))
        return Certificate(zero, np.zeros(self.n_rows), 0.0, np.inf, dual, gap=np.inf, rounding=0.0)

    def _is_null(self, B: FloatArray) -> bool:
        return not B[: self.n_rows].any() and np.array_equal(B, self.null_coefficients())

    def _rounding(self, residual: Residual, primal: float, dual: float, theta_norm: float) -> float:
        """Bound on the error of ``primal - dual``: from the sums, from errors of Z and Y, from large Z.

        The two change with Z and Y as fast as the norms of the gradient at Z and of the dual point say, which may
        come from elsewhere and be far smaller.
        """
        sums = (64 * EPS + self.scale_error) * (abs(primal) + abs(dual))
        slope = theta_norm + residual.norm
        products = 0.5 * self.product_error * residual.reach * residual.reach
        return float(sums + products + 8 * EPS * (slope * residual.reach + residual.cancelling))

    def upper_bounds(self, certificate: Certificate) -> FloatArray:
        """``u_j >= ||x_j^T theta*||`` for every row: the correlation plus how far it can still move.

        The dual optimum lies within ``sqrt(2 ell gap)`` of the certificate's point (ell: the curvature of the
        loss), so a correlation moves by at most that times the norm of its column.
        """
        radius = math.sqrt(2.0 * self.loss.curvature * certificate.gap)
        slack = self._slack(certificate.theta_norm)
        return certificate.correlations + radius * self.norms + slack * self.rounding_norms

    def lam_max(self, weights: FloatArray, residual: Residual | None = None) -> float:
        """Smallest factor of ``weights`` at which no feature is selected; ``residual`` is that of the null model."""
        residual = self.residual(self.null_coefficients()) if residual is None else residual
        correlations = residual.pulls + self._cancellation(residual.norm)
        factor = owl_gauge(correlations, weights)
        # Rounding, of lam = factor * weights and of the products, must not leave the gauge above 1.
        for _ in range(64):
            if factor == 0.0 or owl_gauge(correlations, factor * weights) <= 1.0 - 64 * EPS:
                break
            factor *= 1.0 + 32 * EPS
        return factor


def _squared_distance(theta: FloatArray, theta_other: FloatArray, w: FloatArray) -> float:
    """``sum_i ||theta_i - theta'_i||^2 / w_i``, a sum over samples."""
    return inverse_weighted_square(theta - theta_other, w)
