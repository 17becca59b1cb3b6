"""The unpenalized block: the intercept and the unpenalized columns, as one orthonormal basis E of sample space.

Where the loss is a quadratic, the block is projected out of X and Y, and nothing of it is left for solvers. Else it has
rows of coefficients of its own below the penalized ones, and the dual problem asks for ``E^T theta = 0``. Newton steps
on the coefficients of E bring the dual point there from the primal side; a last step along the curvature makes the
product zero up to rounding, without leaving the domain of the conjugate, because it is so short.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, TypeVar

import numpy as np

from .._typing import FloatArray, Handle
from ..designs.base import Design, products
from ..designs.sparse import Columns
from ..designs.wrapped import Basis
from ..losses import Loss
from ..norm.kernels import EPS, TINY, exceeds_rounding, inverse_weighted_square, row_norms
from .samples import Samples, check_underflow, weighted_squares

_MOST_STEPS = 1000
_MOST_HALVINGS = 40
# A step must bring this much of the decrease that it promises.
_DECREASE = 1e-4
# Newton decrement, squared and relative to the loss of all samples, at which the last step is short enough.
_SHORT = 1e-14
# What is left of ``E^T theta``, relative to the norm of theta, that is no more than rounding.
_IMBALANCE = 1e-11
# Where the minimum is reached no predictor moves by more than this in another step; towards one at infinity they do.
_SETTLED = 1e-3
# Ridge relative to the largest curvature. Flat directions, of which the tasks of a softmax have one each, do not move.
_FLAT_RTOL = 1e-12
# Unpenalized columns that leave less than this of the loss separate the classes.
_SEPARATED = 1e-8

State = TypeVar("State")


def damped_newton(
    state: State,
    newton_step: Callable[[State], tuple[FloatArray, float, float] | None],
    change: Callable[[State, FloatArray], float],
    moved: Callable[[State, FloatArray], State],
    most_steps: int,
) -> State:
    """Newton's method; each step is halved until it brings a part of the decrease that it promises.

    ``newton_step`` gives a step, its decrement squared and the part of it to try first, or None at the end; ``change``
    is that of the objective by a step from a state, ``moved`` the state after it.
    """
    for _ in range(most_steps):
        found = newton_step(state)
        if found is None:
            break
        step, decrement, part = found
        for _ in range(_MOST_HALVINGS):
            if change(state, part * step) <= -_DECREASE * part * decrement:
                break
            part *= 0.5
        else:
            break
        state = moved(state, part * step)
    return state


@dataclass(frozen=True, eq=False)
class Unpenalized:
    """Unpenalized block of a problem (intercept and columns), and the null model fitted with it.

    Attributes
    ----------
    space : Design
        Owner of sample space.
    loss : Loss
    samples : Samples
    constant : bool
        Whether an intercept is fitted: the last column of E is then the constant ``1 / sqrt(total weight)``.
    basis : Basis or None
        Orthonormal basis of the unpenalized columns of X, the other columns of E; its rank is 0 where they are zeros.
    scale : float
        Factor of E for the rows of coefficients that carry the block; 0 where the loss allows to project it out.
    in_samples : bool
        False where few rows stand for the samples: from them the block is gone.
    center : ndarray of shape (rank, n_tasks)
        Coefficients, on the basis, of what was taken off the targets.
    null : ndarray of shape (rank + constant, n_tasks)
        Coefficients of E in the model without features, for the targets as they are.
    null_loss : float
        Loss of the model without features.
    has_minimum : bool
        False where the coefficients of the block have no finite optimum.
    null_is_known : bool
        Whether the model without features has a closed form. False where it was searched for: sums that cancel hide how
        far the loss still falls, and only a dual value can tell.
    """

    space: Design
    loss: Loss
    samples: Samples
    constant: bool
    basis: Basis | None
    center: FloatArray
    null: FloatArray
    null_loss: float
    scale: float = 0.0
    in_samples: bool = True
    has_minimum: bool = True
    null_is_known: bool = True

    #: Columns of the basis.
    rank: int = field(init=False)
    #: Rows of coefficients that carry the block.
    n_rows: int = field(init=False)
    #: The entries of the constant column of E.
    constant_value: float = field(init=False)

    def __post_init__(self) -> None:
        rank = 0 if self.basis is None else self.basis.rank
        n_rows = rank + self.constant if self.scale > 0.0 else 0
        vars(self).update(rank=rank, n_rows=n_rows, constant_value=1.0 / math.sqrt(self.samples.total_weight))

    def null_rows(self) -> FloatArray:
        """Rows of coefficients of the model without features."""
        return self.null / self.scale if self.scale > 0.0 else self.null[:0]

    # Products ---------------------------------------------------------------------------------------

    def intercept(self, rows: FloatArray) -> FloatArray:
        """What the rows of the block add to every predictor, where they carry the intercept."""
        if not (self.constant and self.scale > 0.0):
            return np.zeros(self.samples.n_tasks)
        return self.scale * self.constant_value * rows[-1]

    def with_intercept(self, rows: FloatArray, intercept: FloatArray) -> FloatArray:
        """The rows with another intercept, where they carry one."""
        if not (self.constant and self.scale > 0.0):
            return rows
        return np.vstack([rows[:-1], intercept / (self.scale * self.constant_value)])

    def on_basis(self, rows: FloatArray) -> FloatArray:
        """Coefficients of the basis, those of what was taken off the targets included."""
        return self.center + self.scale * rows[: self.rank] if self.scale > 0.0 else self.center

    def plus_basis(self, Z: Handle, rows: FloatArray) -> Handle:
        """A predictor with the part of the basis added."""
        if self.basis is None or self.rank == 0 or self.scale == 0.0:
            return Z
        return self.space.map(partial(_plus_move, self.scale * rows[: self.rank]), Z, self.basis.Q)

    def reach(self, rows: FloatArray) -> float:
        """Bound on the weighted norm of the block's predictor before cancellation."""
        return self.scale * float(row_norms(rows).sum())

    def appended(self, columns: Columns) -> Columns:
        """Local columns with those of the block after them."""
        if self.scale == 0.0:
            return columns
        if self.basis is not None and self.rank > 0:
            columns = columns.with_columns(self.scale * self.basis.Q)
        return columns.with_constant(self.scale * self.constant_value) if self.constant else columns

    @cached_property
    def E(self) -> Handle:
        """The whole basis, a sample-space handle."""
        if self.basis is None or self.rank == 0:
            return self.space.map(partial(_constant_column, value=self.constant_value), self.samples.w)
        if not self.constant:
            return self.basis.Q
        return self.space.map(partial(_with_constant, value=self.constant_value), self.basis.Q)

    # Balance ----------------------------------------------------------------------------------------

    def balanced(self, theta: Handle, Z: Handle) -> tuple[Handle, Handle]:
        """A dual point near ``theta``, that of the predictor ``Z``, with ``E^T theta = 0`` up to rounding.

        And its own predictor, where the loss is not additive: then it is nothing but the dual point of a predictor.
        """
        if self.rank == 0:
            return self._without_mean(theta), Z
        Z = self.minimized(Z)[0]
        if self.loss.is_additive:
            theta = self._corrected(self._dual_point(Z), Z, times=3)  # the later ones remove what rounding left
        else:
            Z = self.space.map(partial(_plus_move, self.last_step(Z)), Z, self.E)
            theta = self._dual_point(Z)
        square = float(self.space.reduce(inverse_weighted_square, theta, self.samples.w))
        if self.imbalance(theta) <= _IMBALANCE * math.sqrt(square):
            return theta, Z
        return self.space.map(np.zeros_like, theta), Z  # feasible, and proves little

    def nearly_balanced(self, theta: Handle, Z: Handle) -> Handle:
        """The same to first order, for a fraction of the price: an estimate for inner solves, not a proof."""
        return self._without_mean(theta) if self.rank == 0 else self._corrected(theta, Z, times=1)

    def _without_mean(self, theta: Handle) -> Handle:
        """The loss balances a dual point exactly where the block is the constant alone."""
        if not (self.constant and self.in_samples):
            return theta
        totals = self.space.reduce(self.loss.balance_totals, theta, *self.samples.handles)
        return self.space.map(partial(self.loss.balance, totals=totals), theta, *self.samples.handles)

    def imbalance(self, theta: Handle) -> float:
        """``||E^T theta||``: where it is not zero the dual value has an error, in proportion to the coefficients.

        Zero by construction where the block is the constant alone.
        """
        return 0.0 if self.rank == 0 else float(np.linalg.norm(self.space.reduce(products, self.E, theta)))

    def _corrected(self, theta: Handle, Z: Handle, times: int) -> Handle:
        """Steps along the tangent at ``Z``."""
        curvature = self._curvature(Z)
        for _ in range(times):
            step, _ = self._newton_step(theta, curvature)
            theta = self.space.map(partial(_along_tangent, self.loss, step), theta, Z, *self.samples.handles, self.E)
        return theta

    # Newton's method on the coefficients of E -------------------------------------------------------

    def minimized(self, Z: Handle) -> tuple[Handle, FloatArray]:
        """The predictor where the loss is smallest along E, from ``Z``, and the coefficients of E that lead there.

        The predictor is the state: a dual point forgets probabilities below rounding, and steps from it could never
        raise them again.
        """
        space, handles, E = self.space, self.samples.handles, self.E

        def newton_step(state: tuple[Handle, FloatArray]) -> tuple[FloatArray, float, float] | None:
            step, decrement = self._newton_step(self._dual_point(state[0]), self._curvature(state[0]))
            if not decrement > self._short:
                return None
            if self.loss.is_quadratic:  # a whole step is exact
                return step, decrement, 1.0
            longest = float(space.reduce(partial(_longest_move, step=step), E))
            return step, decrement, min(1.0, self.loss.longest_move / max(longest, TINY))

        def change(state: tuple[Handle, FloatArray], step: FloatArray) -> float:
            return float(space.reduce(partial(_change, self.loss, step), state[0], *handles, E))

        def moved(state: tuple[Handle, FloatArray], step: FloatArray) -> tuple[Handle, FloatArray]:
            return space.map(partial(_plus_move, step), state[0], E), state[1] + step

        start = Z, np.zeros((self.rank + self.constant, self.samples.n_tasks))
        return damped_newton(start, newton_step, change, moved, _MOST_STEPS)

    def polished(self, rows: FloatArray, Z: Handle) -> FloatArray:
        """Rows of the block where the loss is smallest, to the last digits; ``Z`` is the predictor with ``rows``."""
        Z, moved = self.minimized(Z)
        return rows + (moved + self.last_step(Z)) / self.scale

    def last_step(self, Z: Handle) -> FloatArray:
        """From where :meth:`minimized` ends: there a whole step squares the error, which the loss no longer shows."""
        step, decrement = self._newton_step(self._dual_point(Z), self._curvature(Z))
        return step if decrement <= self._short else np.zeros_like(step)

    def is_settled(self, Z: Handle) -> bool:
        """Whether ``Z``, from :meth:`minimized`, is at a minimum: if that is at infinity, steps do not get shorter.

        Along a direction in which the loss falls for ever it falls exponentially, and a Newton step on such a function
        has always the same length.
        """
        step, decrement = self._newton_step(self._dual_point(Z), self._curvature(Z))
        longest = self.space.reduce(partial(_longest_move, step=step), self.E)
        return bool(np.isfinite(decrement) and longest <= _SETTLED * math.sqrt(self.loss.unit))

    @property
    def _short(self) -> float:
        """Decrement, squared, of a step that is short enough to be the last."""
        return _SHORT * self.samples.total_weight * self.loss.unit

    def _dual_point(self, Z: Handle) -> Handle:
        return self.space.map(self.loss.dual_point, Z, *self.samples.handles)

    def _curvature(self, Z: Handle) -> FloatArray:
        """Second derivatives along E, with a ridge that makes flat directions harmless."""
        H: FloatArray = self.space.reduce(self.loss.curvature_along, Z, *self.samples.handles, self.E)
        H[np.diag_indices(len(H))] += _FLAT_RTOL * float(np.diagonal(H).max(initial=0.0)) or 1.0
        return H

    def _newton_step(self, theta: Handle, curvature: FloatArray) -> tuple[FloatArray, float]:
        """Coefficients of E of the Newton step, and its decrement squared."""
        gradient = self.space.reduce(products, self.E, theta)
        if not np.isfinite(curvature.sum() + gradient.sum()):  # the coefficients overflow: there is no step
            return np.zeros_like(gradient), np.nan
        step = np.linalg.solve(curvature, gradient.ravel()).reshape(gradient.shape)
        step = self.loss.canonical(step)  # rounding in flat directions, blown up
        return step, float(np.vdot(step, gradient))


def fit_unpenalized(design: Design, loss: Loss, samples: Samples, constant: bool, basis: Basis | None) -> Unpenalized:
    """The block with the model that has nothing else; a quadratic loss has it projected out of the targets."""
    rank = 0 if basis is None else basis.rank
    intercept, is_known, is_best = np.zeros(samples.n_tasks), rank == 0, rank == 0
    if constant and not loss.is_quadratic:
        means = samples.means - samples.center
        if samples.center.any():
            means = np.zeros(samples.n_tasks)  # what is left of them is rounding
        loss.check_means(means)
        intercept = loss.null_intercept_of(means, lambda total: design.reduce(total, *samples.handles))
        if np.isnan(intercept).any():
            start, is_known = loss.first_constant(means), False
            is_best = is_best and start is None
            if start is None:
                start = best_constant(loss, means, lambda total: design.reduce(total, *samples.handles))
                if loss.is_of_residuals:  # targets far from zero would cost certificates and the constant their digits
                    samples = _without_constant(design, samples, start)
                    nothing = np.zeros(samples.n_tasks)
                    start = best_constant(loss, nothing, lambda total: design.reduce(total, *samples.handles))
            intercept = start
    samples, null_loss = _with_totals(design, loss, samples, intercept)
    block = Unpenalized(
        design, loss, samples, constant, basis, np.zeros((rank, samples.n_tasks)),
        np.zeros((rank + constant, samples.n_tasks)), null_loss,
        null_is_known=is_known,
    )  # fmt: skip
    if constant:
        block.null[-1] = intercept / block.constant_value
    if is_best:  # nothing but a constant
        return block
    if basis is not None and loss.is_quadratic:
        return _projected(block, basis)
    return _with_null_model(block)


def best_constant(loss: Loss, start: FloatArray, add_up: Callable[[Any], FloatArray]) -> FloatArray:
    """The constant predictor of each task with the smallest loss: Newton's method between bounds that close in.

    Where the loss is made of parabolas and lines, as Huber's, the last step is exact. ``add_up`` sums a function of
    targets and weights over all samples.
    """
    b, low, high = start.copy(), np.full(len(start), -np.inf), np.full(len(start), np.inf)
    width = np.full(len(start), math.sqrt(loss.unit))
    for _ in range(_MOST_STEPS):
        descent, curvature = add_up(partial(_constant_slopes, loss, b))
        low, high = np.where(descent >= 0.0, b, low), np.where(descent <= 0.0, b, high)
        with np.errstate(all="ignore"):
            newton, middle = b + descent / curvature, 0.5 * (low + high)
            beyond = b + np.sign(descent) * width
        is_inside = (newton > low) & (newton < high)  # false for what is not a number
        trial = np.where(is_inside, newton, np.where(np.isfinite(middle), middle, beyond))
        width = np.where(is_inside, width, 2.0 * width)
        is_last = np.all((descent == 0.0) | (np.abs(trial - b) <= EPS * np.abs(b)))
        b = np.where(descent == 0.0, b, trial)  # the last step, too: the mean of equal targets may miss them
        if is_last:
            break
    return b


def _without_constant(design: Design, samples: Samples, constant: FloatArray) -> Samples:
    """The samples with a constant taken off the targets."""
    return replace(samples, Y=design.map(partial(np.add, -constant), samples.Y), center=samples.center + constant)


def _with_totals(
    design: Design, loss: Loss, samples: Samples, intercept: FloatArray, on_basis: float = 0.0
) -> tuple[Samples, float]:
    """Samples with their norm and floor, ``on_basis`` that of what was taken off; and the loss of a constant."""
    value = partial(_constant_predictor_value, loss, intercept)
    null_loss, floor, squares = design.reduce_all(
        (value, *samples.handles), (loss.floor, *samples.handles), (partial(_squares, loss), *samples.handles)
    )
    if on_basis == 0.0:
        check_underflow(design, squares, *samples.handles)
    norm = float(np.hypot(np.sqrt(squares.sum()), np.hypot(on_basis, samples.offset_norm)))
    return replace(samples, norm=norm, floor=float(floor)), float(null_loss)


def _projected(block: Unpenalized, basis: Basis) -> Unpenalized:
    """The block of a quadratic loss: the targets are what the unpenalized columns do not explain of them."""
    space, (Y, w) = block.space, block.samples.handles
    before = np.sqrt(space.reduce(weighted_squares, Y, w))
    coefficients = block.center
    for _ in range(2):  # the second round removes what rounding left
        found = space.reduce(products, basis.Q, space.map(np.multiply, Y, w))
        Y = space.map(partial(_plus_move, -found), Y, basis.Q)
        coefficients = coefficients + found
    left = np.sqrt(space.reduce(weighted_squares, Y, w))
    Y = space.map(partial(np.multiply, exceeds_rounding(left, before).astype(np.float64)), Y)
    size = basis.condition * float(np.linalg.norm(coefficients))
    intercept = np.zeros(block.samples.n_tasks)
    samples, null_loss = _with_totals(space, block.loss, replace(block.samples, Y=Y), intercept, size)
    return replace(block, samples=samples, center=coefficients, null_loss=null_loss)


def _with_null_model(block: Unpenalized) -> Unpenalized:
    """The block with the null model that Newton's method finds from the best constant."""
    space, samples = block.space, block.samples
    Z, moved = block.minimized(space.map(partial(_predict, coefficients=block.null), block.E))
    null = block.null + moved + block.last_step(Z)
    has_minimum = block.is_settled(Z)
    Z = space.map(partial(_predict, coefficients=null), block.E)
    null_loss = float(space.reduce(block.loss.value, Z, *samples.handles))
    lowest, has_classes = min(samples.floor, 0.0), block.loss.target in ("labels", "classes")
    if has_classes and block.rank and null_loss - lowest <= _SEPARATED * (block.null_loss - lowest):
        raise ValueError(
            "unpenalized columns tell the classes apart without an error, so that their coefficients have no "
            "finite optimum. Penalize them, or leave out those that encode the labels."
        )
    return replace(block, null=null, null_loss=null_loss, has_minimum=has_minimum)


# Functions of some rows, which may be elsewhere: they take nothing along but the loss and a step.


def _squares(loss: Loss, Y: FloatArray, w: FloatArray) -> FloatArray:
    return weighted_squares(loss.sizes(Y), w)


def _constant_slopes(loss: Loss, intercept: FloatArray, Y: FloatArray, w: FloatArray) -> FloatArray:
    """Minus the slope of the loss of a constant predictor in each task, and its second derivative."""
    Z = np.broadcast_to(intercept, (len(Y), len(intercept)))
    curvature = loss.curvature_along(Z, Y, w, np.ones((len(Y), 1)))
    return np.stack([loss.dual_point(Z, Y, w).sum(axis=0), np.diagonal(curvature)])


def _plus_move(step: FloatArray, Z: FloatArray, E: FloatArray) -> FloatArray:
    return Z + E @ step


def _longest_move(E: FloatArray, step: FloatArray) -> float:
    """Largest change of a predictor in some rows: added up over blocks it is still a bound."""
    return float(np.abs(E @ step).max(initial=0.0))


def _along_tangent(
    loss: Loss, step: FloatArray, theta: FloatArray, Z: FloatArray, Y: FloatArray, w: FloatArray, E: FloatArray
) -> FloatArray:
    return theta - loss.curved(Z, Y, w, E @ step)


def _change(loss: Loss, step: FloatArray, Z: FloatArray, Y: FloatArray, w: FloatArray, E: FloatArray) -> float:
    return loss.change(Z, Y, w, E @ step)


def _constant_column(w: FloatArray, value: float) -> FloatArray:
    return np.full((len(w), 1), value)


def _with_constant(Q: FloatArray, value: float) -> FloatArray:
    return np.hstack([Q, np.full((len(Q), 1), value)])


def _predict(E: FloatArray, coefficients: FloatArray) -> FloatArray:
    return E @ coefficients


def _constant_predictor_value(loss: Loss, intercept: FloatArray, Y: FloatArray, w: FloatArray) -> float:
    return loss.value(np.broadcast_to(intercept, (len(Y), len(intercept))), Y, w)
