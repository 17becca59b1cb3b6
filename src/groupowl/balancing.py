"""The unpenalised block of a loss: dual points orthogonal to it, and the model that has nothing else.

The dual problem asks for ``E^T theta = 0`` with E a basis of the unpenalised columns and the constant. Newton steps on
the coefficients of E bring the dual point there from the primal side; a last step along the curvature makes the
product zero exactly, without leaving the domain of the conjugate, because it is so short.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from ._kernels import inverse_weighted_square
from ._typing import FloatArray, Handle
from .designs import Design, products
from .losses import Loss

_MOST_STEPS = 100
_MOST_HALVINGS = 40
# A step must bring this much of the decrease that it promises.
_DECREASE = 1e-4
# Newton decrement, squared and relative to the loss of all samples, at which the last step is short enough.
_SHORT = 1e-14
# What is left of ``E^T theta``, relative to the norm of theta, that is no more than rounding.
_IMBALANCE = 1e-11
# The same below which one correction is enough for inner solves.
_NEAR = 1e-4
# Where the minimum is reached no predictor moves by more than this in another step; towards one at infinity they do.
_SETTLED = 1e-3
# Ridge relative to the largest curvature. Flat directions, of which the tasks of a softmax have one each, do not move.
_FLAT_RTOL = 1e-12


class Block:
    """The basis E of the unpenalised block of one problem, and the steps along it.

    Parameters
    ----------
    design : Design
        Owner of sample space, with a basis of unpenalised columns.
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

    def balanced(self, theta: Handle) -> Handle:
        """A dual point near ``theta`` with ``E^T theta = 0`` up to rounding."""
        theta, _ = self.minimised(theta)
        theta = self._corrected(theta, self._curvature(theta), times=3)  # the later ones remove what rounding left
        left = float(np.linalg.norm(self.design.reduce(products, self.basis, theta)))
        norm = float(np.sqrt(self.design.reduce(inverse_weighted_square, theta, self.w)))
        if left <= _IMBALANCE * norm:
            return theta
        return self.design.map(np.zeros_like, theta)  # feasible, and proves little

    def nearly_balanced(self, theta: Handle) -> Handle:
        """The same to first order where ``theta`` is near already, for a fraction of the price."""
        curvature = self._curvature(theta)
        if self._newton_step(theta, curvature)[1] > _NEAR * self.total_weight:
            return self.balanced(theta)
        return self._corrected(theta, curvature, times=1)

    def _corrected(self, theta: Handle, curvature: FloatArray, times: int) -> Handle:
        """Steps along the tangent."""
        for _ in range(times):
            step, _ = self._newton_step(theta, curvature)
            theta = self.design.map(partial(_along_tangent, self.loss, step), theta, self.Y, self.w, self.basis)
        return theta

    def minimised(self, theta: Handle) -> tuple[Handle, FloatArray]:
        """Dual point where the loss is smallest along E, from that at any predictor, and the coefficients of E."""
        q = self.design.reduce(_sum_of_rows, theta).shape[0]
        moved = np.zeros((self.design.n_free_directions + self._has_constant, q))
        for _ in range(_MOST_STEPS):
            step, decrement = self._newton_step(theta, self._curvature(theta))
            if not decrement > _SHORT * self.total_weight:
                break
            factor = self._step_length(theta, step, decrement)
            if factor == 0.0:
                break
            moved = moved + factor * step
            theta = self.design.map(partial(_moved, self.loss, factor * step), theta, self.Y, self.w, self.basis)
        return theta, moved

    def best_move(self, theta: Handle) -> FloatArray:
        """Coefficients of E that lead from any predictor to where the loss is smallest along E, to the last digits."""
        theta, moved = self.minimised(theta)
        step, decrement = self._newton_step(theta, self._curvature(theta))
        # So near, a whole step squares the error, while the change of the loss is too small to be measured.
        return moved + step if decrement <= _SHORT * self.total_weight else moved

    def is_settled(self, theta: Handle) -> bool:
        """Whether ``theta``, from :meth:`minimised`, is at a minimum: if that is at infinity, steps do not get shorter.

        Along a direction in which the loss falls for ever it falls exponentially, and a Newton step on such a function
        has always the same length.
        """
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
        for _ in range(_MOST_HALVINGS):
            change = self.design.reduce(partial(_change, self.loss, factor * step), theta, self.Y, self.w, self.basis)
            if change <= -_DECREASE * factor * decrement:
                return factor
            factor *= 0.5
        return 0.0


# Functions of some rows, which may be elsewhere: they take nothing along but the loss and a step.


def _moved(loss: Loss, step: FloatArray, theta: FloatArray, Y: FloatArray, w: FloatArray, E: FloatArray) -> FloatArray:
    return loss.moved(theta, Y, w, E @ step)


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
