"""What the rest of the package asks of a loss."""

from __future__ import annotations

from typing import ClassVar, Protocol, runtime_checkable

from .._typing import FloatArray


@runtime_checkable
class Loss(Protocol):
    """A smooth loss ``F(Z) = sum_i w_i f_i(z_i)`` of the linear predictor; it never sees X.

    ``Z``, ``Y`` and ``theta`` are blocks of rows, shape (n, n_tasks); ``w`` is (n, 1), positive. Every method
    that returns a number or totals is a sum over samples, so that a design may call it block by block and
    add up. One sign everywhere: ``theta = -grad F(Z)``.
    """

    name: ClassVar[str]
    #: Lipschitz constant of each grad f_i; the conjugates are 1/curvature strongly convex.
    curvature: ClassVar[float]
    #: The optimal intercept is a weighted mean, so centring X and Y removes it from the problem.
    centers_targets: ClassVar[bool]

    def check_targets(self, Y: FloatArray) -> FloatArray:
        """Targets the loss can use, or a ValueError that says what is wrong with them."""
        ...

    def value(self, Z: FloatArray, Y: FloatArray, w: FloatArray) -> float:
        """``F(Z)``."""
        ...

    def dual_point(self, Z: FloatArray, Y: FloatArray, w: FloatArray) -> FloatArray:
        """``theta = -grad F(Z)``; ``X^T theta`` is minus the gradient in ``B``."""
        ...

    def value_and_dual_point(self, Z: FloatArray, Y: FloatArray, w: FloatArray) -> tuple[float, FloatArray]:
        """Both at once, for the price of one; may overwrite ``Z``."""
        ...

    def dual_value(self, theta: FloatArray, Y: FloatArray, w: FloatArray) -> float:
        """``-F*(-theta)``, minus infinity outside the domain of the conjugate."""
        ...

    def ray_totals(self, theta: FloatArray, Y: FloatArray, w: FloatArray) -> FloatArray:
        """Sums from which :meth:`ray_scale` chooses a point on the ray through ``theta``."""
        ...

    def ray_scale(self, totals: FloatArray, limit: float) -> float:
        """Factor ``s``, ``|s| <= limit``, such that ``s theta`` is in the domain with a large dual value."""
        ...

    def balance_totals(self, theta: FloatArray, Y: FloatArray, w: FloatArray) -> FloatArray:
        """Sums over samples that :meth:`balance` needs, shape (2, n_tasks)."""
        ...

    def balance(self, theta: FloatArray, Y: FloatArray, w: FloatArray, totals: FloatArray) -> FloatArray:
        """A point near ``theta`` in the same domain whose columns sum to zero over all samples."""
        ...

    def curvatures(self, theta: FloatArray, Y: FloatArray, w: FloatArray) -> FloatArray:
        """Mean over tasks of the second derivatives of ``w_i f_i``, shape (n, 1), where the dual point is ``theta``."""
        ...

    def moved_along_tangent(self, theta: FloatArray, Y: FloatArray, w: FloatArray, move: FloatArray) -> FloatArray:
        """The same to first order: linear in ``move``."""
        ...

    def change(self, theta: FloatArray, Y: FloatArray, w: FloatArray, move: FloatArray) -> float:
        """Change of the value when the predictor moves away from where the dual point is ``theta``."""
        ...

    def curvature_along(self, theta: FloatArray, Y: FloatArray, w: FloatArray, E: FloatArray) -> FloatArray:
        """Second derivatives in coefficients of the columns of ``E``, shape (r n_tasks, r n_tasks), tasks fastest."""
        ...

    def null_intercept(self, target_means: FloatArray) -> FloatArray:
        """Intercept of the model without features, from the weighted means of the targets."""
        ...

    def canonical(self, B: FloatArray) -> FloatArray:
        """Coefficients with the same loss and no larger row norms."""
        ...

    def cancelling_size(self, Z: FloatArray, w: FloatArray) -> float:
        """Size of the terms that cancel inside ``value``; rounding errors are in proportion to it."""
        ...
