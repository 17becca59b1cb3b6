"""What is proved about coefficients: values that :class:`~groupowl.problem.Problem` makes and screening reads."""

from __future__ import annotations

from dataclasses import dataclass, replace

from .._typing import FloatArray, Handle, IndexArray


@dataclass(frozen=True, eq=False)
class Residual:
    """Residual of coefficients with all parts of a certificate that do not depend on the weights.

    Attributes
    ----------
    theta : handle
        Minus the gradient of the loss in the predictor, balanced where there is an intercept.
    products : ndarray of shape (n_rows, n_tasks)
        ``X^T theta``.
    descent : ndarray of shape (n_rows, n_tasks) or None
        Minus the gradient in the coefficients: the products, but None where balancing came between.
    correlations : ndarray of shape (n_units,)
        Unit norms of ``X^T theta``, which the optimality conditions compare with the weights.
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
    imbalance : float
        Norm of the products of theta with the unpenalized block, which should be zero.
    balancing : float
        Weighted norm of what balancing changed, where the problem has coefficients for the unpenalized block.
    raw : handle or None
        Minus the gradient before it was balanced; None where balancing changes no more than rounding.
    """

    theta: Handle
    products: FloatArray
    descent: FloatArray | None
    correlations: FloatArray
    norm: float
    totals: FloatArray
    loss: float
    reach: float
    cancelling: float
    imbalance: float = 0.0
    balancing: float = 0.0
    raw: Handle | None = None

    def restrict(self, units: IndexArray, rows: IndexArray) -> Residual:
        """The same for some units, which have these rows."""
        descent = None if self.descent is None else self.descent[rows]
        return replace(self, products=self.products[rows], descent=descent, correlations=self.correlations[units])


@dataclass(frozen=True, eq=False)
class Certificate:
    """A dual feasible point and the duality gap it proves for one matrix of coefficients.

    Attributes
    ----------
    theta : handle
        Feasible dual point in sample space, balanced where there is an intercept.
    correlations : ndarray of shape (n_units,)
        Unit norms of ``X^T theta``.
    theta_norm : float
        ``sqrt(sum_i ||theta_i||^2 / w_i)``.
    primal, dual : float
        Objective at the coefficients and dual value at ``theta``.
    gap : float
        Proved bound on ``primal - minimum``: the difference of the two plus ``rounding``.
    rounding : float
        Bound on the rounding error of the difference.
    product_error : float
        The part of it that is an error of ``dual``: where a Gram matrix stands for the data, or products with the
        unpenalized block are not quite zero.
    residual : Residual or None
        Of the coefficients themselves; None where they overflow. ``theta`` may come from other coefficients.
    products : ndarray of shape (n_rows, n_tasks) or None
        ``X^T theta``, where weights differ between tasks, whose bounds need it.
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
    products: FloatArray | None = None

    def restrict(self, units: IndexArray, rows: IndexArray) -> Certificate:
        """The same certificate for the problem on these units, which have these rows, where it remains valid."""
        residual = None if self.residual is None else self.residual.restrict(units, rows)
        products = None if self.products is None else self.products[rows]
        return replace(self, correlations=self.correlations[units], residual=residual, products=products)
