"""The Group OWL problem: its objective, its dual, and the certificate that joins them.

    P(B, b0) = sum_i w_i f_i(x_i^T B + b0) + sum_j lam_j ||B_[j],:||_2

Solvers see one matrix of *coefficients*: the penalised rows of ``B`` first, then the unpenalised block (the
intercept, where the loss does not allow to remove it by centring). They never see samples: sample-space
arrays are handles of the design.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy.sparse.linalg import ArpackError, ArpackNoConvergence, LinearOperator, eigsh

from ._kernels import EPS, column_sums, owl_gauge, owl_value, prox_units, unit_norms
from ._typing import FloatArray, Handle, IndexArray
from .designs import Columns, Design, GramCache, as_design, standardize
from .losses import Loss, resolve_loss
from .targets import Targets, check_sample_weight, check_targets, summarise_targets, weighted_sums
from .weights import check_sequence, resolve_weights


@dataclass(frozen=True, eq=False)
class Residual:
    """What coefficients leave unexplained: all of a certificate that does not depend on the weights.

    Attributes
    ----------
    theta : handle
        Minus the gradient of the loss in the predictor, balanced where there is an intercept.
    descent : ndarray of shape (n_rows, n_tasks) or None
        ``X^T theta`` where it is also minus the gradient in the coefficients; None where balancing came between.
    pulls : ndarray of shape (n_rows,)
        Row norms of ``X^T theta``, which the optimality conditions compare with the weights.
    norm : float
        ``sqrt(sum_i ||theta_i||^2 / w_i)``.
    totals : ndarray
        The loss's totals of theta.
    loss : float
        Value of the loss.
    reach : float
        Bound on the norms of the targets and of the predictor together, whatever cancels in it.
    cancelling : float
        Size of terms that cancel inside the loss.
    """

    theta: Handle
    descent: FloatArray | None
    pulls: FloatArray
    norm: float
    totals: FloatArray
    loss: float
    reach: float
    cancelling: float

    def restrict(self, keep: IndexArray) -> Residual:
        """The same for some rows."""
        descent = None if self.descent is None else self.descent[keep]
        return replace(self, descent=descent, pulls=self.pulls[keep])


@dataclass(frozen=True, eq=False)
class Certificate:
    """A dual feasible point and the duality gap it proves for one matrix of coefficients.

    Attributes
    ----------
    theta : handle
        Feasible dual point in sample space, balanced where there is an intercept.
    correlations : ndarray of shape (n_rows,)
        Row norms of ``X^T theta``.
    theta_norm : float
        ``sqrt(sum_i ||theta_i||^2 / w_i)``.
    primal, dual : float
        Objective at the coefficients and dual value at ``theta``.
    gap : float
        Proved bound on ``primal - minimum``: the difference of the two plus ``rounding``.
    rounding : float
        Bound on the rounding error of the difference.
    product_error : float
        The part of it that is an error of ``dual`` where a Gram matrix stands for the data.
    residual : Residual or None
        Of the coefficients themselves; None where they overflow. ``theta`` may come from other coefficients.
    """

    theta: Handle
    correlations: FloatArray
    theta_norm: float
    primal: float
    dual: float
    gap: float
    rounding: float
    product_error: float = 0.0
    residual: Residual | None = None

    def restrict(self, keep: IndexArray) -> Certificate:
        """The same certificate for the problem without the other rows, where it remains valid."""
        residual = None if self.residual is None else self.residual.restrict(keep)
        return replace(self, correlations=self.correlations[keep], residual=residual)


@dataclass(frozen=True, eq=False)
class Problem:
    """One instance of the model; see the module's docstring. Changing something makes a new one.

    Attributes
    ----------
    design : Design
        X, centred implicitly when an intercept is fitted.
    loss : Loss
    targets : Targets
    lam : ndarray of shape (n_rows,)
        Weights of the rows that are left, the largest ones.
    norms : ndarray of shape (n_rows,)
        ``a_j = sqrt(sum_i w_i x_ij^2)`` of the (centred) columns: how far a correlation can move.
    rounding_norms : ndarray of shape (n_rows,)
        The same for the numbers that are really multiplied; larger where centring cancels.
    fit_intercept : bool
    intercept_scale : float
        Constant of the column that carries the intercept; 0 when there is no such column.
    gram_cache : GramCache
        Gram matrix of the columns that working sets have asked for.
    rows_of_origin : ndarray of int or None
        Columns of the cache's design that this problem has, where it has only some.
    product_error : float
        Error of the products between columns, and of columns with Y, relative to ``rounding_norms`` and the norm of Y;
        0 where they are computed from the data, not so where a Gram matrix stands for them.
    """

    design: Design
    loss: Loss
    targets: Targets
    lam: FloatArray
    norms: FloatArray
    rounding_norms: FloatArray
    fit_intercept: bool
    intercept_scale: float
    gram_cache: GramCache
    rows_of_origin: IndexArray | None = None
    product_error: float = 0.0

    # Shape ------------------------------------------------------------------------------------------

    @property
    def n_rows(self) -> int:
        """Number of penalised rows of ``B``."""
        return len(self.lam)

    @property
    def n_free(self) -> int:
        """Number of unpenalised rows below them."""
        return int(self.intercept_scale > 0)

    @property
    def null_loss(self) -> float:
        """Loss of the model without features; tolerances are relative to it."""
        return self.targets.null_loss

    def null_coefficients(self) -> FloatArray:
        """Coefficients of the model without features."""
        B = np.zeros((self.n_rows + self.n_free, self.targets.n_tasks))
        if self.n_free:
            B[-1] = self.targets.null_intercept / self.intercept_scale
        return B

    def row_index(self, keep: IndexArray) -> IndexArray:
        """Rows of a coefficient matrix that stay when the penalised rows ``keep`` stay."""
        return np.concatenate([keep, np.arange(self.n_rows, self.n_rows + self.n_free)])

    def restrict(self, keep: IndexArray) -> Problem:
        """The problem on the rows ``keep``; rows that are zero take the smallest weights with them."""
        return replace(
            self,
            design=self.design.restrict(keep),
            lam=self.lam[: len(keep)],
            norms=self.norms[keep],
            rounding_norms=self.rounding_norms[keep],
            rows_of_origin=keep if self.rows_of_origin is None else self.rows_of_origin[keep],
        )

    def with_lam(self, lam: FloatArray) -> Problem:
        """The same data with other weights."""
        return replace(self, lam=lam)

    # Input scale ------------------------------------------------------------------------------------

    def from_input(self, B: FloatArray, intercept: FloatArray | None) -> FloatArray:
        """Coefficients for this problem from ``B`` and intercept on the scale of X as it was given."""
        scale = self.design.input_coefficients(np.ones((self.n_rows, 1)))[0]
        coefficients = self.null_coefficients()
        coefficients[: self.n_rows] = np.divide(B, scale, out=np.zeros(B.shape), where=scale > 0)
        if intercept is None:
            return coefficients
        return self.with_intercept(
            coefficients, intercept - self.design.input_coefficients(coefficients[: self.n_rows])[1]
        )

    def with_intercept(self, coefficients: FloatArray, intercept: FloatArray) -> FloatArray:
        """The same rows with another intercept for the centred columns, where the problem carries one."""
        if self.n_free:
            coefficients = np.vstack([coefficients[: self.n_rows], intercept / self.intercept_scale])
        return coefficients

    def intercept_excess(self, coefficients: FloatArray, intercept: FloatArray | None) -> tuple[float, float]:
        """What a given intercept adds to the objective where the problem takes the optimal one, and its rounding."""
        if intercept is None or self.n_free or not self.fit_intercept:
            return 0.0, 0.0
        total = self.targets.total_weight
        distance = float(np.linalg.norm(intercept - self.to_input(coefficients)[1]))
        reach = float(self.rounding_norms @ unit_norms(coefficients[: self.n_rows])) / np.sqrt(total)
        size = float(np.linalg.norm(intercept) + np.linalg.norm(self.targets.center)) + reach
        excess = 0.5 * self.loss.curvature * total * distance**2
        return excess, 64 * EPS * excess + 8 * EPS * self.loss.curvature * total * size * (distance + EPS * size)

    def adopt_predictor(self, Z: Handle) -> tuple[Handle, FloatArray]:
        """A predictor ``X B + b0`` from outside as this problem has it, and its weighted mean."""
        mean = self.design.reduce(weighted_sums, Z, self.targets.w) / self.targets.total_weight
        if self.fit_intercept and not self.n_free:
            Z = self.design.map(partial(np.add, -mean), Z)
        return Z, mean

    def to_input(self, coefficients: FloatArray) -> tuple[FloatArray, FloatArray]:
        """``B`` and intercept on the scale of X as it was given."""
        B, shift = self.design.input_coefficients(coefficients[: self.n_rows])
        if not self.fit_intercept:
            return B, np.zeros(self.targets.n_tasks)
        free = self.intercept_scale * coefficients[self.n_rows :].sum(axis=0)
        return B, self.targets.center + free + shift

    # Objective --------------------------------------------------------------------------------------

    def predictor(self, B: FloatArray) -> Handle:
        """``Z = X B + b0``, one product over the non-zero rows."""
        offset = self.intercept_scale * B[-1] if self.n_free else None
        return self.design.matmul(B[: self.n_rows], offset)

    def loss_value(self, Z: Handle) -> float:
        """``F(Z)``."""
        return float(self.design.reduce(self.loss.value, Z, self.targets.Y, self.targets.w))

    def penalty_value(self, B: FloatArray) -> float:
        """``J(B)``."""
        return owl_value(unit_norms(B[: self.n_rows]), self.lam)

    def dual_point(self, Z: Handle) -> Handle:
        """``theta = -grad F(Z)`` as it is: neither balanced nor feasible."""
        return self.design.map(self.loss.dual_point, Z, self.targets.Y, self.targets.w)

    def descent(self, Z: Handle) -> FloatArray:
        """Minus the gradient of the loss in the coefficients, one product."""
        return self._correlate(self.dual_point(Z))

    def batch_descent_change(self, rows: IndexArray, B: FloatArray, theta: Handle) -> FloatArray:
        """Unbiased estimate of the change of the descent direction from ``theta`` to ``B``, out of some samples.

        ``(n / l) sum_{i in rows} x_i (theta_i(B) - theta_i)^T``, whose mean over all batches of l samples is the
        difference of the full directions.
        """
        design, targets = self.design.rows(rows), self.targets
        Y, w = self.design.select(targets.Y, rows), self.design.select(targets.w, rows)
        batch = replace(self, design=design, targets=replace(targets, Y=Y, w=w))
        change = design.map(np.subtract, batch.dual_point(batch.predictor(B)), self.design.select(theta, rows))
        return (self.design.n_samples / len(rows)) * batch._correlate(change)

    def prox(self, V: FloatArray, step: float) -> FloatArray:
        """Proximal map of ``step J``; the unpenalised block stays as it is."""
        P = V.copy()
        P[: self.n_rows] = prox_units(V[: self.n_rows], step * self.lam)
        return P

    def _correlate(self, theta: Handle) -> FloatArray:
        C = self.design.rmatmul(theta)
        if not self.n_free:
            return C
        sums = self.design.reduce(column_sums, theta)
        return np.vstack([C, self.intercept_scale * sums])

    # Working sets ------------------------------------------------------------------------------------

    def gram(self, rows: IndexArray) -> FloatArray:
        """``X_rows^T diag(w) X_rows``, from the cache as far as it is known."""
        return self.gram_cache.block(rows if self.rows_of_origin is None else self.rows_of_origin[rows])

    def columns(self, rows: IndexArray) -> Columns | None:
        """Columns of these rows and of the unpenalised block as local arrays, where samples are local."""
        columns = self.design.columns(rows)
        return columns.with_constant(self.intercept_scale) if columns is not None and self.n_free else columns

    # Curvature --------------------------------------------------------------------------------------

    def move_curvature(self, Z_from: Handle, Z_to: Handle, move: FloatArray) -> float:
        """``ell ||sqrt(w) (Z_to - Z_from)||^2 / ||move||^2``: curvature the loss can have along a move."""
        square = float(np.sum(move * move))
        distance = self.design.reduce(_weighted_distance, Z_from, Z_to, self.targets.w)
        return self.loss.curvature * distance / square if square > 0 else 0.0

    def lipschitz(self) -> float:
        """Lanczos estimate of ``ell ||diag(w)^(1/2) X||_2^2``, a few per cent from above as a rule.

        The intercept's column is orthogonal to the centred ones, so the norm is the larger of the two.
        """
        column = self.intercept_scale**2 * self.targets.total_weight
        longest = max(float(self.norms.max(initial=0.0)) ** 2, column)
        if self.n_rows < 3 or longest == 0.0:
            return self.loss.curvature * max(float(np.sum(self.norms**2)), column)
        size = self.n_rows
        operator = LinearOperator((size, size), matvec=self._normal_product, dtype=np.float64)
        start = np.random.default_rng(0).standard_normal(size)
        try:
            largest = eigsh(operator, k=1, ncv=min(size, 8), tol=0.02, v0=start, maxiter=10, return_eigenvectors=False)
            estimate = float(largest[0])
        except ArpackNoConvergence as error:
            estimate = float(max(error.eigenvalues, default=0.0))
        except ArpackError:
            estimate = 0.0
        if estimate <= 0.0:
            return self.loss.curvature * float(np.sum(self.norms**2))  # Frobenius norm: always enough
        return self.loss.curvature * max(1.02 * estimate, longest)

    def batch_lipschitz(self, batch_size: int) -> float:
        """Expected smoothness of the loss over batches of samples drawn without replacement.

        Between the constant of a single sample (n times the largest) and that of all samples, which a few power
        iterations estimate: whoever steps by a batch adapts the step anyway.
        """
        n, size = self.design.n_samples, min(batch_size, self.design.n_samples)
        whole = self.loss.curvature * self._power_estimate()
        if size == n:
            return whole
        single = n * self.loss.curvature * self.design.largest_row(self.targets.w, self.intercept_scale**2)
        return (n * (size - 1) * whole + (n - size) * single) / (size * (n - 1))

    def _power_estimate(self, steps: int = 3) -> float:
        """``||diag(w)^(1/2) X||_2^2`` from below, by a few power iterations."""
        v, estimate = self.norms, float(self.norms.max(initial=0.0)) ** 2
        for _ in range(steps if estimate > 0.0 else 0):
            v = v / np.linalg.norm(v)
            image = self._normal_product(v)
            estimate, v = max(estimate, float(np.linalg.norm(image))), image
            if not image.any():
                break
        return estimate

    def _normal_product(self, v: FloatArray) -> FloatArray:
        Z = self.design.matmul(v.reshape(-1, 1))
        return self.design.rmatmul(self.design.map(np.multiply, Z, self.targets.w))[:, 0]

    # Duality ----------------------------------------------------------------------------------------

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
        found = self._certificate_at(B, residual, primal) if np.isfinite(primal) else None
        if found is None or not np.isfinite(found.gap + found.correlations.sum()):
            return replace(best or self._zero_certificate(), primal=primal, gap=np.inf, residual=None)
        if best is None or best.dual < found.dual or found.gap == 0.0:
            return found
        rounding = best.product_error + self._rounding(residual, primal, best.dual, best.theta_norm)
        gap = max(primal - best.dual, 0.0) + rounding
        return replace(best, primal=primal, gap=gap, rounding=rounding, residual=residual)

    def residual(self, B: FloatArray, Z: Handle | None = None, cancelled: float = 0.0) -> Residual:
        """What ``B`` leaves unexplained, two products or with ``Z`` one."""
        Y, w = self.targets.Y, self.targets.w
        Z = self.predictor(B) if Z is None else Z
        theta = self._balanced(self.dual_point(Z))
        C = self.design.rmatmul(theta)
        reach = self.targets.norm + cancelled + self._reach(B)
        pulls = unit_norms(C)
        if self.product_error > 0.0:  # upper bounds where products are not exact
            pulls = pulls + self.product_error * reach * self.rounding_norms
        return Residual(
            theta=theta,
            descent=None if self.n_free else C,  # balancing by the mean does not move products with centred columns
            pulls=pulls,
            norm=float(np.sqrt(self.design.reduce(_inverse_weighted_square, theta, w))),
            totals=self.design.reduce(self.loss.ray_totals, theta, Y, w),
            loss=self.loss_value(Z),
            reach=reach,
            cancelling=float(self.design.reduce(self.loss.cancelling_size, Z, w)),
        )

    def _certificate_at(self, B: FloatArray, residual: Residual, primal: float) -> Certificate:
        """Certificate from the residual, scaled into the dual ball."""
        gauge = owl_gauge(residual.pulls + self._cancellation(residual.norm), self.lam)
        scale = self.loss.ray_scale(residual.totals, 1.0 / gauge if gauge > 0 else np.inf)
        theta = self.design.map(partial(np.multiply, scale), residual.theta)
        correlations, theta_norm = abs(scale) * residual.pulls, abs(scale) * residual.norm
        if gauge <= 1.0 and self._is_null(B):
            # The gradient at the null model lies in the dual ball: optimal, and no difference to round.
            return Certificate(theta, correlations, theta_norm, primal, primal, 0.0, 0.0, residual=residual)
        dual = float(self.design.reduce(self.loss.dual_value, theta, self.targets.Y, self.targets.w))
        # <theta, Y> and ||theta||^2 for theta = s (Y - X B), each with the error of its products.
        product_error = self.product_error * (abs(scale) + 0.5 * scale * scale) * residual.reach * residual.reach
        rounding = product_error + self._rounding(residual, primal, dual, theta_norm)
        gap = max(primal - dual, 0.0) + rounding
        return Certificate(theta, correlations, theta_norm, primal, dual, gap, rounding, product_error, residual)

    def _cancellation(self, theta_norm: float) -> FloatArray:
        """Errors of the correlations where centring cancels: without this a scaled point may not be feasible."""
        slack = 8 * EPS * np.sqrt(self.design.n_samples) * theta_norm
        return slack * (self.rounding_norms - self.norms)

    def _balanced(self, theta: Handle) -> Handle:
        if not self.fit_intercept:
            return theta
        Y, w = self.targets.Y, self.targets.w
        totals = self.design.reduce(self.loss.balance_totals, theta, Y, w)
        return self.design.map(partial(self.loss.balance, totals=totals), theta, Y, w)

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
        sums = 64 * EPS * (abs(primal) + abs(dual))
        slope = theta_norm + residual.norm
        products = 0.5 * self.product_error * residual.reach * residual.reach
        return float(sums + products + 8 * EPS * (slope * residual.reach + residual.cancelling))

    def _reach(self, B: FloatArray) -> float:
        """Bound on the weighted norm of ``X B + b0``, whatever cancels: rounding errors are in proportion to it."""
        reach = float(self.rounding_norms @ unit_norms(B[: self.n_rows]))
        if self.n_free:
            reach += self.intercept_scale * float(np.linalg.norm(B[-1])) * np.sqrt(self.targets.total_weight)
        return reach

    def upper_bounds(self, certificate: Certificate) -> FloatArray:
        """``u_j >= ||x_j^T theta*||`` for every row: the correlation plus how far it can still move.

        The dual optimum lies within ``sqrt(2 ell gap)`` of the certificate's point (ell: the curvature of the
        loss), so a correlation moves by at most that times the norm of its column.
        """
        radius = np.sqrt(2.0 * self.loss.curvature * certificate.gap)
        slack = 8 * EPS * np.sqrt(self.design.n_samples) * certificate.theta_norm
        return certificate.correlations + radius * self.norms + slack * self.rounding_norms

    def lam_max(self, weights: FloatArray) -> float:
        """Smallest factor of ``weights`` at which no feature is selected."""
        residual = self.residual(self.null_coefficients())
        correlations = residual.pulls + self._cancellation(residual.norm)
        factor = owl_gauge(correlations, weights)
        # Rounding, of lam = factor * weights and of the products, must not leave the gauge above 1.
        for _ in range(64):
            if factor == 0.0 or owl_gauge(correlations, factor * weights) <= 1.0 - 64 * EPS:
                break
            factor *= 1.0 + 32 * EPS
        return factor


def _weighted_distance(Z: FloatArray, Z_other: FloatArray, w: FloatArray) -> float:
    difference = Z_other - Z
    return float(np.sum(w * difference * difference))


def _inverse_weighted_square(theta: FloatArray, w: FloatArray) -> float:
    return float(np.sum(theta * theta / w))


# Building a problem ----------------------------------------------------------------------------------


#: Stands for weights that are not known yet.
LATER = object()


@np.errstate(all="ignore")  # what overflows is refused below, not warned about
def build_problem(
    X: Any,
    Y: Any,
    lam: Any,
    *,
    loss: Any = "squared",
    fit_intercept: bool = False,
    sample_weight: Any = None,
    standardized: bool = False,
) -> Problem:
    """Check data as users give them and make the problem; :data:`LATER` weights follow by :meth:`Problem.with_lam`."""
    resolved = resolve_loss(loss)
    if not isinstance(fit_intercept, bool | np.bool_):
        raise TypeError(f"fit_intercept must be True or False, got {fit_intercept!r}.")
    design = as_design(X)
    Y = resolved.check_targets(check_targets(Y, design.n_samples))
    weight = check_sample_weight(sample_weight, design.n_samples)
    lam = np.ones(design.n_features) if lam is LATER else check_sequence("lam", lam, design.n_features)
    present = np.flatnonzero(weight)
    if len(present) < design.n_samples:  # samples of weight zero are not there
        design, Y, weight = design.rows(present), Y[present], weight[present]
    w = design.samples(weight[:, None])
    design = standardize(design, w, center=fit_intercept, scale=standardized)
    targets = summarise_targets(design, resolved, design.samples(Y), w, fit_intercept)
    norms = design.column_norms(w)
    _check_magnitude(norms, targets)
    intercept_scale = 0.0
    if fit_intercept and not resolved.centers_targets:
        # As long as the longest column: it is then never what limits the step or slows the solver down.
        intercept_scale = (float(norms.max()) or 1.0) / np.sqrt(targets.total_weight)
    rounding_norms = design.rounding_norms(norms, targets.total_weight)
    cache = GramCache(design, w)
    return Problem(design, resolved, targets, lam, norms, rounding_norms, fit_intercept, intercept_scale, cache)


def _check_magnitude(norms: FloatArray, targets: Targets) -> None:
    """Refuse data whose squares leave the range of floating-point numbers: nothing could be proved about them."""
    too_large = np.flatnonzero(~np.isfinite(norms))
    if len(too_large):
        raise ValueError(
            f"X has {len(too_large)} columns so large that their squared norm overflows, the first is column "
            f"{too_large[0]}. Rescale them, or the sample weights."
        )
    if not np.isfinite(targets.norm + targets.null_loss + targets.total_weight):
        raise ValueError("Y or sample_weight is so large that the loss overflows. Rescale them.")


@np.errstate(all="ignore")
def lam_max(
    X: Any,
    Y: Any,
    weights: Any,
    *,
    loss: Any = "squared",
    fit_intercept: bool = False,
    sample_weight: Any = None,
) -> float:
    """Smallest strength at which no feature is selected: ``solve(X, Y, lam_max * weights)`` is zero.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
        Data.
    Y : array-like of shape (n_samples,) or (n_samples, n_tasks)
        Targets; one-hot rows or class probabilities for ``loss="multinomial"``.
    weights : array-like of shape (n_features,), str or callable
        Weight sequence, or the name of one.
    loss : {"squared", "multinomial"} or Loss, default="squared"
        Loss, summed over samples.
    fit_intercept : bool, default=False
        Whether the model has an unpenalised intercept.
    sample_weight : array-like of shape (n_samples,), default=None
        Non-negative weights of the samples.

    Returns
    -------
    float
        The dual norm, for these weights, of the gradient of the loss at the model without features.

    Examples
    --------
    >>> import groupowl as go
    >>> round(go.lam_max([[1.0, 0.0], [0.0, 1.0]], [3.0, 1.0], [1.0, 0.5]), 6)
    3.0
    """
    problem = build_problem(X, Y, LATER, loss=loss, fit_intercept=fit_intercept, sample_weight=sample_weight)
    sequence = resolve_weights(
        weights,
        n_features=problem.n_rows,
        n_tasks=problem.targets.n_tasks,
        n_samples=problem.design.n_samples,
    )
    return problem.lam_max(sequence)
