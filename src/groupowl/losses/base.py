"""What the rest of the package asks of a loss."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from .._typing import BoolArray, FloatArray

#: Size of a predictor that stands for certainty: its probability is exactly 0 or 1, in single precision too.
CERTAIN = 1e30


class Loss(ABC):
    """A smooth loss ``F(Z) = sum_i w_i f_i(z_i)`` of the linear predictor; it never sees X.

    ``Z``, ``Y`` and ``theta`` are blocks of rows, shape (n, n_tasks); ``w`` is positive and broadcasts to that shape.
    Weights of single entries may be zero, where a target is missing: then Y is any number that the loss can use.
    Every method that returns a number or totals is a sum over samples, so that a design may call it block by block and
    add up; a loss that is no such sum says so (:attr:`is_additive`) and sees all samples at once. One sign everywhere:
    ``theta = -grad F(Z)``. Other code asks for these properties, never for the name.
    """

    name: ClassVar[str]
    #: Lipschitz constant of each grad f_i, the inverse of which is the strong convexity of the conjugates. Infinity
    #: where there is none; such a loss has a :attr:`bend` and :meth:`curvature_near`.
    curvature: ClassVar[float]
    #: Whether the second derivatives are 1 everywhere: the loss is a quadratic, Gram matrices and sufficient statistics
    #: stand for the samples, and centering X and Y removes the intercept.
    is_quadratic: ClassVar[bool] = False
    #: Whether targets and predictors count by their differences alone: then an offset is taken off the targets.
    is_of_residuals: ClassVar[bool] = False
    #: Whether the second moments of X and of the targets say all about it, those of each task.
    is_known_by_moments: ClassVar[bool] = False
    #: Whether the loss is a sum over samples; else all of them must be in one block.
    is_additive: ClassVar[bool] = True
    #: Whether a constant added to the predictors of a task changes nothing: then there is no intercept, and columns are
    #: centered without one.
    ignores_constants: ClassVar[bool] = False
    #: Whether the second derivatives are w, the same everywhere, though weights may differ between tasks.
    has_fixed_curvature: ClassVar[bool] = False
    #: Whether targets may be centered where there is an intercept: the best constant predictor is then zero.
    centers_targets: ClassVar[bool] = False
    #: Why a sample must have all of its targets, and one weight for them, after "because"; empty for sums over tasks.
    needs_whole_samples: ClassVar[str] = ""
    #: Name in the compiled kernel's table of losses; empty where it has none, and NumPy does the work. It is never
    #: inherited: what a subclass changes, the kernel does not know.
    compiled: ClassVar[str] = ""
    #: No predictor moves further in one Newton step. Where samples are far from the boundary there is hardly any
    #: curvature, and a full step can jump to where there is none at all, with a smaller loss but no way back.
    longest_move: ClassVar[float] = 8.0
    #: Power of its mean that the variance of a target is proportional to: 0 for errors of one size.
    variance_power: ClassVar[float] = 0.0
    #: Field delta of losses that have one, in standard deviations of normal errors; 0 for all others.
    delta_in_deviations: ClassVar[float] = 0.0
    #: Constant beta of the local bound, for losses that are Kullback-Leibler divergences; None: there is no such bound.
    bend: ClassVar[float | None] = None
    #: What targets are: "numbers", "labels" of 0 and 1 in columns, "classes", which exclude each other, or "times".
    target: ClassVar[str] = "numbers"
    #: What :meth:`score` is minus, in words, and its name in scikit-learn, empty where it has none.
    measure: ClassVar[str] = "mean loss"
    score_name: ClassVar[str] = ""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.compiled = vars(cls).get("compiled", "")

    @abstractmethod
    def check_targets(self, Y: FloatArray) -> FloatArray:
        """Targets the loss can use, or a ValueError that says what is wrong with them; row by row."""

    def determined(self, target_means: FloatArray) -> FloatArray:
        """Predictors of tasks whose targets, by their means, leave nothing to fit; NaN for all other tasks."""
        return np.full(len(target_means), np.nan)

    def check_means(self, target_means: FloatArray) -> None:  # noqa: B027  # most losses have nothing to refuse
        """Refuse targets, by their weighted means, for which no intercept is optimal."""

    def targets(self, Y: FloatArray) -> FloatArray:
        """The targets without what travels beside them, such as offsets: shape (n, n_tasks)."""
        return Y

    def of_tasks(self, Y: FloatArray, tasks: BoolArray) -> FloatArray:
        """The targets of some tasks, with what travels beside them."""
        return Y[:, tasks]

    def shifted(self, Z: FloatArray, Y: FloatArray) -> FloatArray:
        """Predictors with what is added to them, such as offsets."""
        return Z

    def observed(self, Y: FloatArray) -> FloatArray:
        """Targets as numbers: a dual point is w times these less what the model expects of them."""
        return Y

    def per_entry(self) -> Loss:
        """The loss for weights that differ between tasks: without the shortcuts for those that do not."""
        return self

    def sizes(self, Y: FloatArray) -> FloatArray:
        """Sizes of targets and of what travels beside them: rounding errors are in proportion to them."""
        return self.observed(Y)

    @property
    def unit(self) -> float:
        """Size of predictors squared, where they have one: changes of the loss are compared with it."""
        return 1.0

    def predicted(self, Z: FloatArray) -> FloatArray:
        """Targets that the model expects, on their own scale."""
        return Z

    # Value and conjugate ----------------------------------------------------------------------------

    @abstractmethod
    def value(self, Z: FloatArray, Y: FloatArray, w: FloatArray) -> float:
        """``F(Z)``."""

    @abstractmethod
    def dual_point(self, Z: FloatArray, Y: FloatArray, w: FloatArray) -> FloatArray:
        """``theta = -grad F(Z)``; ``X^T theta`` is minus the gradient in ``B``."""

    def value_and_dual_point(self, Z: FloatArray, Y: FloatArray, w: FloatArray) -> tuple[float, FloatArray]:
        """Both at once, for the price of one where that is possible; may overwrite ``Z``."""
        return self.value(Z, Y, w), self.dual_point(Z, Y, w)

    @abstractmethod
    def dual_value(self, theta: FloatArray, Y: FloatArray, w: FloatArray) -> float:
        """``-F*(-theta)``, minus infinity outside the domain of the conjugate, which is convex and contains 0."""

    def floor(self, Y: FloatArray, w: FloatArray) -> float:
        """Greatest lower bound of the loss over all predictors."""
        return self.dual_value(np.zeros_like(Y), Y, w)

    def deviance(self, Z: FloatArray, Y: FloatArray, w: FloatArray) -> float:
        """Twice what the loss exceeds its floor by."""
        return 2.0 * (self.value(Z, Y, w) - self.floor(Y, w))

    def score(self, Z: FloatArray, Y: FloatArray, w: FloatArray) -> float:
        """How well ``Z`` predicts, larger is better; a mean where the weights of all samples sum to 1."""
        return -self.value(Z, Y, w)

    def errors(self, Z: FloatArray, Y: FloatArray) -> FloatArray:
        """What :meth:`score` is minus the weighted mean of, for each sample and task."""
        raise NotImplementedError(f"loss={self.name!r} is no sum over samples and tasks")

    def minus_twice_log_likelihood(self, loss: float, least: float, n_samples: float, n_tasks: int) -> float:
        """Of models with this loss per unit of sample weight, up to a constant, for information criteria.

        ``least`` is the loss that rounding leaves of a perfect fit. Losses refuse unless they are likelihoods.
        """
        raise ValueError(
            f"loss={self.name!r} is no likelihood, so that information criteria mean nothing for it. "
            "Choose alpha by cross-validation."
        )

    @property
    def is_likelihood(self) -> bool:
        """Whether information criteria mean something for it."""
        try:
            self.minus_twice_log_likelihood(1.0, 1.0, 2.0, 1)
        except ValueError:
            return False
        return True

    def parameters_per_feature(self, n_tasks: int) -> int:
        """Parameters that a feature has in a model without penalty."""
        return n_tasks

    # Feasible points --------------------------------------------------------------------------------

    def ray_totals(self, theta: FloatArray, Y: FloatArray, w: FloatArray, Z: FloatArray | None = None) -> FloatArray:
        """What :meth:`ray_scale` and :meth:`ray_value` know of the ray through ``theta``: sums over samples.

        ``Z`` is the predictor that ``theta`` is the dual point of; callers may leave it out for additive losses.
        """
        return np.zeros(0)

    def ray_scale(self, totals: FloatArray, limit: float) -> float:
        """Factor ``s``, ``|s| <= limit``, such that ``s theta`` is in the domain with a large dual value.

        Between 0 and a point of the domain all points are in the domain: by default the one closest to ``theta``.
        """
        return min(1.0, limit)

    def ray_value(self, theta: FloatArray, Y: FloatArray, w: FloatArray, scale: float, totals: FloatArray) -> float:
        """Dual value at ``theta``, which is ``scale`` times the point that ``totals`` are of."""
        return self.dual_value(theta, Y, w)

    @abstractmethod
    def balance_totals(self, theta: FloatArray, Y: FloatArray, w: FloatArray) -> FloatArray:
        """Sums over samples that :meth:`balance` needs, one column per task."""

    @abstractmethod
    def balance(self, theta: FloatArray, Y: FloatArray, w: FloatArray, totals: FloatArray) -> FloatArray:
        """A point near ``theta`` in the same domain whose columns sum to zero over all samples."""

    # Curvature --------------------------------------------------------------------------------------

    @abstractmethod
    def curvatures(self, theta: FloatArray, Y: FloatArray, w: FloatArray) -> FloatArray:
        """Mean over tasks of the second derivatives of ``w_i f_i``, shape (n, 1), where the dual point is ``theta``.

        Of a loss that is not additive, a diagonal above them.
        """

    @abstractmethod
    def curved(self, Z: FloatArray, Y: FloatArray, w: FloatArray, move: FloatArray) -> FloatArray:
        """Second derivatives at ``Z`` times a move: what the dual point loses by this move, to first order."""

    @abstractmethod
    def curvature_along(self, Z: FloatArray, Y: FloatArray, w: FloatArray, E: FloatArray) -> FloatArray:
        """The same in coefficients of the columns of ``E``, shape (r n_tasks, r n_tasks), tasks fastest."""

    def change(self, Z: FloatArray, Y: FloatArray, w: FloatArray, move: FloatArray) -> float:
        """``F(Z + move) - F(Z)``, as exact as possible where the move is short."""
        return self.value(Z + move, Y, w) - self.value(Z, Y, w)

    def spread(self, theta: FloatArray, raw: FloatArray, Y: FloatArray, w: FloatArray) -> FloatArray:
        """Variances H (n, n_tasks) of the local bound, where there is a :attr:`bend`.

        ``theta`` is a point of the domain, ``raw`` the dual point of a predictor, m their midpoint. If the divergences
        of the first from some point t, and of t from the second, add up to at most G, then ``||x^T (t - m)||`` is at
        most ``b/4 + sqrt(b^2/16 + G V)``, where ``b = bend G max_i |x_i|`` and V is the largest
        ``sum_i w_i H_ik x_i^2`` of a task.
        """
        raise NotImplementedError(f"loss={self.name!r} has no local bound")

    def curvature_near(self, Z: FloatArray, Y: FloatArray, w: FloatArray) -> float:
        """Bound on the second derivatives of each f_i where predictors differ from ``Z`` by at most 1."""
        return self.curvature

    # The rest ---------------------------------------------------------------------------------------

    @abstractmethod
    def null_intercept(self, target_means: FloatArray) -> FloatArray:
        """Intercept of the model without features, from the weighted means of the targets; NaN if they do not tell."""

    def null_intercept_of(self, target_means: FloatArray, add_up: Callable[[Any], FloatArray]) -> FloatArray:
        """The same with other sums over samples where the means do not tell; NaN where it must be searched for.

        ``add_up`` sums a function of targets and weights.
        """
        return self.null_intercept(target_means)

    def first_constant(self, target_means: FloatArray) -> FloatArray | None:
        """Where Newton's method for that intercept starts, for all tasks together; None: it is one of each task."""
        return None

    def canonical(self, B: FloatArray) -> FloatArray:
        """Coefficients with the same loss and no larger row norms."""
        return B

    @abstractmethod
    def cancelling_size(self, Z: FloatArray, w: FloatArray) -> float:
        """Size of the terms that cancel inside ``value``; rounding errors are in proportion to it."""


def tasks_apart(slopes: FloatArray, E: FloatArray) -> FloatArray:
    """Second derivatives in coefficients of E where tasks do not meet: a block ``E^T diag(slopes) E`` for each."""
    r, q = E.shape[1], slopes.shape[1]
    H = np.zeros((r, q, r, q))
    for k in range(q):
        H[:, k, :, k] = E.T @ (slopes[:, k : k + 1] * E)
    return H.reshape(r * q, r * q)
