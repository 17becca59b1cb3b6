"""The unpenalized block of a loss: dual points orthogonal to it, and the model that has nothing else.

The dual problem asks for ``E^T theta = 0`` with E a basis of the unpenalized columns and the constant. Newton steps on
the coefficients of E bring the dual point there from the primal side; a last step along the curvature makes the
product zero up to rounding, without leaving the domain of the conjugate, because it is so short.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from ._kernels import inverse_weighted_square
from ._typing import FloatArray, Handle
from .designs import Design, products
from .losses import Loss

_MOST_STEPS = 1000
_MOST_HALVINGS = 40
# A step must bring this much of the decrease that it promises.
_DECREASE = 1e-4
# No predictor moves further in one step. Where samples are far from the boundary there is hardly any curvature, and a
# full Newton step can jump to where there is none at all, with a smaller loss but no way back.
_LONGEST_MOVE = 8.0
# Newton decrement, squared and relative to the loss of all samples, at which the last step is short enough.
_SHORT = 1e-14
# What is left of ``E^T theta``, relative to the norm of theta, that is no more than rounding.
_IMBALANCE = 1e-11
# Where the minimum is reached no predictor moves by more than this in another step; towards one at infinity they do.
_SETTLED = 1e-3
# Ridge relative to the largest curvature. Flat directions, of which the tasks of a softmax have one each, do not move.
_FLAT_RTOL = 1e-12


class Block:
    """The basis E of the unpenalized block of one problem, and the steps along it.

    Parameters
    ----------
    design : Design
        Owner of sample space, with a basis of unpenalized columns.
    loss : Loss
    Y, w : handles
        Targets and weights.
    total_weight : float
    constant : bool
        Whether the constant is one of the columns of E, the last one.
    """

    def __init__(self, design: Design, loss: Loss, Y: Handle, w: Handle, total_weight: float, constant: bool) -> None:
        self.design, self.loss, self.Y, self.w = design, loss, Y, w
        self.total_weight = total_weight
        self.constant_value = 1.0 / np.sqrt(total_weight)
        self.basis = design.free_basis
        if constant:
            self.basis = design.map(partial(_with_constant, value=self.constant_value), design.free_basis)

    def balanced(self, Z: Handle) -> Handle:
        """A dual point near that of the predictor ``Z`` with ``E^T theta = 0`` up to rounding."""
        theta = self.design.map(self.loss.dual_point, self.minimized(Z)[0], self.Y, self.w)
        theta = self._corrected(theta, times=3)  # the later ones remove what rounding left
        if self.imbalance(theta) <= _IMBALANCE * self._norm(theta):
            return theta
        return self.design.map(np.zeros_like, theta)  # feasible, and proves little

    def imbalance(self, theta: Handle) -> float:
        """``||E^T theta||``: where it is not zero the dual value has an error, in proportion to the coefficients."""
        return float(np.linalg.norm(self.design.reduce(products, self.basis, theta)))

    def _norm(self, theta: Handle) -> float:
        return float(np.sqrt(self.design.reduce(inverse_weighted_square, theta, self.w)))

    def nearly_balanced(self, theta: Handle) -> Handle:
        """The same to first order, for a fraction of the price: an estimate for inner solves, not a proof."""
        return self._corrected(theta, times=1)

    def _corrected(self, theta: Handle, times: int) -> Handle:
        """Steps along the tangent."""
        curvature = self._curvature(theta)
        for _ in range(times):
            step, _ = self._newton_step(theta, curvature)
            theta = self.design.map(partial(_along_tangent, self.loss, step), theta, self.Y, self.w, self.basis)
        return theta

    def minimized(self, Z: Handle) -> tuple[Handle, FloatArray]:
        """The predictor where the loss is smallest along E, from ``Z``, and the coefficients of E that lead there.

        The predictor is the state: a dual point forgets probabilities below rounding, and steps from it could never
        raise them again.
        """
        q = self.design.reduce(_sum_of_rows, self.Y).shape[0]
        moved = np.zeros((self.design.n_free_directions + self._has_constant, q))
        for _ in range(_MOST_STEPS):
            theta = self.design.map(self.loss.dual_point, Z, self.Y, self.w)
            step, decrement = self._newton_step(theta, self._curvature(theta))
            if not decrement > _SHORT * self.total_weight:
                break
            factor = self._step_length(theta, step, decrement)
            if factor == 0.0:
                break
            moved = moved + factor * step
            Z = self.design.map(partial(_plus_move, factor * step), Z, self.basis)
        return Z, moved

    def best_move(self, Z: Handle) -> FloatArray:
        """Coefficients of E that lead from ``Z`` to where the loss is smallest along E, to the last digits."""
        Z, moved = self.minimized(Z)
        theta = self.design.map(self.loss.dual_point, Z, self.Y, self.w)
        step, decrement = self._newton_step(theta, self._curvature(theta))
        # So near, a whole step squares the error, while the change of the loss is too small to be measured.
        return moved + step if decrement <= _SHORT * self.total_weight else moved

    def is_settled(self, Z: Handle) -> bool:
        """Whether ``Z``, from :meth:`minimized`, is at a minimum: if that is at infinity, steps do not get shorter.

        Along a direction in which the loss falls for ever it falls exponentially, and a Newton step on such a function
        has always the same length.
        """
        theta = self.design.map(self.loss.dual_point, Z, self.Y, self.w)
        step, decrement = self._newton_step(theta, self._curvature(theta))
        return bool(np.isfinite(decrement) and self.design.reduce(partial(_n_moving, step=step), self.basis) == 0)

    @property
    def _has_constant(self) -> int:
        return int(self.basis is not self.design.free_basis)

    def _curvature(self, theta: Handle) -> FloatArray:
        """Second derivatives along E, with a ridge that makes flat directions harmless."""
        H: FloatArray = self.design.reduce(self.loss.curvature_along, theta, self.Y, self.w, self.basis)
        H[np.diag_indices(len(H))] += _FLAT_RTOL * float(np.diagonal(H).max(initial=0.0)) or 1.0
        return H

    def _newton_step(self, theta: Handle, curvature: FloatArray) -> tuple[FloatArray, float]:
        """Coefficients of E of the Newton step, and its decrement squared."""
        gradient = self.design.reduce(products, self.basis, theta)
        if not np.isfinite(curvature.sum() + gradient.sum()):  # the coefficients overflow: there is no step
            return np.zeros_like(gradient), np.nan
        step = np.linalg.solve(curvature, gradient.ravel()).reshape(gradient.shape)
        step = self.loss.canonical(step)  # rounding in flat directions, blown up
        return step, float(np.vdot(step, gradient))

    def _step_length(self, theta: Handle, step: FloatArray, decrement: float) -> float:
        factor = 1.0
        if not self.loss.centers_targets:  # else a quadratic, on which a whole step is exact
            longest = float(self.design.reduce(partial(_longest_move, step=step), self.basis))
            factor = _LONGEST_MOVE / max(longest, _LONGEST_MOVE)
        for _ in range(_MOST_HALVINGS):
            change = self.design.reduce(partial(_change, self.loss, factor * step), theta, self.Y, self.w, self.basis)
            if change <= -_DECREASE * factor * decrement:
                return factor
            factor *= 0.5
        return 0.0


# Functions of some rows, which may be elsewhere: they take nothing along but the loss and a step.


def _plus_move(step: FloatArray, Z: FloatArray, E: FloatArray) -> FloatArray:
    return Z + E @ step


def _longest_move(E: FloatArray, step: FloatArray) -> float:
    """Largest change of a predictor in some rows: added up over blocks it is still a bound."""
    return float(np.abs(E @ step).max(initial=0.0))


def _along_tangent(
    loss: Loss, step: FloatArray, theta: FloatArray, Y: FloatArray, w: FloatArray, E: FloatArray
) -> FloatArray:
    return loss.moved_along_tangent(theta, Y, w, E @ step)


def _change(loss: Loss, step: FloatArray, theta: FloatArray, Y: FloatArray, w: FloatArray, E: FloatArray) -> float:
    return loss.change(theta, Y, w, E @ step)


def _with_constant(Q: FloatArray, value: float) -> FloatArray:
    return np.hstack([Q, np.full((len(Q), 1), value)])


def _n_moving(E: FloatArray, step: FloatArray) -> int:
    """Predictors that a step changes."""
    return int(np.count_nonzero(np.abs(E @ step) > _SETTLED))


def _sum_of_rows(theta: FloatArray) -> FloatArray:
    return theta.sum(axis=0)
