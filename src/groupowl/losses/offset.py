"""Offsets: numbers that are added to the predictors of samples, with a coefficient of one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._checks import as_float_array, check_finite, check_length
from .._typing import BoolArray, FloatArray
from .base import Loss

# What a loss says of itself that an offset does not change.
_SHARED = (
    "name",
    "curvature",
    "is_additive",
    "ignores_constants",
    "longest_move",
    "variance_power",
    "bend",
    "target",
    "needs_whole_samples",
    "measure",
    "score_name",
)


@dataclass(frozen=True)
class WithOffset(Loss):
    """``F(Z) = F_base(Z + O)``: targets have the offsets O beside them, ``(Y, O)`` of shape (n, 2 n_tasks).

    The dual value loses ``<theta, O>``; all else is that of the base at the shifted predictor.

    Parameters
    ----------
    base : Loss
        The loss without offset; one that is not :attr:`~Loss.is_of_residuals`, which needs no more than other targets.
    """

    base: Loss

    def __post_init__(self) -> None:
        vars(self).update({name: getattr(self.base, name) for name in _SHARED})

    def targets(self, Y: FloatArray) -> FloatArray:
        return Y[:, : Y.shape[1] // 2]

    def of_tasks(self, Y: FloatArray, tasks: BoolArray) -> FloatArray:
        return np.hstack([self.targets(Y)[:, tasks], self.offsets(Y)[:, tasks]])

    def offsets(self, Y: FloatArray) -> FloatArray:
        """What is added to the predictors."""
        return Y[:, Y.shape[1] // 2 :]

    def shifted(self, Z: FloatArray, Y: FloatArray) -> FloatArray:
        return Z + self.offsets(Y)

    def check_targets(self, Y: FloatArray) -> FloatArray:
        return np.hstack([self.base.check_targets(self.targets(Y)), self.offsets(Y)])

    def determined(self, target_means: FloatArray) -> FloatArray:
        return self.base.determined(target_means)

    def check_means(self, target_means: FloatArray) -> None:
        self.base.check_means(target_means)

    def observed(self, Y: FloatArray) -> FloatArray:
        return self.base.observed(self.targets(Y))

    def sizes(self, Y: FloatArray) -> FloatArray:
        return np.hypot(self.base.sizes(self.targets(Y)), self.offsets(Y))

    @property
    def unit(self) -> float:
        return self.base.unit

    def predicted(self, Z: FloatArray) -> FloatArray:
        """Of a predictor that has its offset already."""
        return self.base.predicted(Z)

    # Value and conjugate ----------------------------------------------------------------------------

    def value(self, Z: FloatArray, Y: FloatArray, w: FloatArray) -> float:
        return self.base.value(self.shifted(Z, Y), self.targets(Y), w)

    def dual_point(self, Z: FloatArray, Y: FloatArray, w: FloatArray) -> FloatArray:
        return self.base.dual_point(self.shifted(Z, Y), self.targets(Y), w)

    def value_and_dual_point(self, Z: FloatArray, Y: FloatArray, w: FloatArray) -> tuple[float, FloatArray]:
        return self.base.value_and_dual_point(self.shifted(Z, Y), self.targets(Y), w)

    def dual_value(self, theta: FloatArray, Y: FloatArray, w: FloatArray) -> float:
        """``-F*(-theta) = -F_base*(-theta) - <theta, O>``."""
        return self.base.dual_value(theta, self.targets(Y), w) - self._product(theta, Y)

    def _product(self, theta: FloatArray, Y: FloatArray) -> float:
        return float(np.add.reduce(theta * self.offsets(Y), axis=None))

    def floor(self, Y: FloatArray, w: FloatArray) -> float:
        return self.base.floor(self.targets(Y), w)

    def deviance(self, Z: FloatArray, Y: FloatArray, w: FloatArray) -> float:
        return self.base.deviance(self.shifted(Z, Y), self.targets(Y), w)

    def score(self, Z: FloatArray, Y: FloatArray, w: FloatArray) -> float:
        return self.base.score(self.shifted(Z, Y), self.targets(Y), w)

    def minus_twice_log_likelihood(self, loss: float, least: float, n_samples: float, n_tasks: int) -> float:
        return self.base.minus_twice_log_likelihood(loss, least, n_samples, n_tasks)

    def parameters_per_feature(self, n_tasks: int) -> int:
        return self.base.parameters_per_feature(n_tasks)

    # Feasible points --------------------------------------------------------------------------------

    def ray_totals(self, theta: FloatArray, Y: FloatArray, w: FloatArray, Z: FloatArray | None = None) -> FloatArray:
        shifted = None if Z is None else self.shifted(Z, Y)
        return self.base.ray_totals(theta, self.targets(Y), w, shifted)

    def ray_scale(self, totals: FloatArray, limit: float) -> float:
        return self.base.ray_scale(totals, limit)

    def ray_value(self, theta: FloatArray, Y: FloatArray, w: FloatArray, scale: float, totals: FloatArray) -> float:
        return self.base.ray_value(theta, self.targets(Y), w, scale, totals) - self._product(theta, Y)

    def balance_totals(self, theta: FloatArray, Y: FloatArray, w: FloatArray) -> FloatArray:
        return self.base.balance_totals(theta, self.targets(Y), w)

    def balance(self, theta: FloatArray, Y: FloatArray, w: FloatArray, totals: FloatArray) -> FloatArray:
        """That of the base: the domain of the conjugate does not know of offsets."""
        return self.base.balance(theta, self.targets(Y), w, totals)

    # Curvature --------------------------------------------------------------------------------------

    def curvatures(self, theta: FloatArray, Y: FloatArray, w: FloatArray) -> FloatArray:
        return self.base.curvatures(theta, self.targets(Y), w)

    def curved(self, Z: FloatArray, Y: FloatArray, w: FloatArray, move: FloatArray) -> FloatArray:
        return self.base.curved(self.shifted(Z, Y), self.targets(Y), w, move)

    def curvature_along(self, Z: FloatArray, Y: FloatArray, w: FloatArray, E: FloatArray) -> FloatArray:
        return self.base.curvature_along(self.shifted(Z, Y), self.targets(Y), w, E)

    def change(self, Z: FloatArray, Y: FloatArray, w: FloatArray, move: FloatArray) -> float:
        return self.base.change(self.shifted(Z, Y), self.targets(Y), w, move)

    def spread(self, theta: FloatArray, raw: FloatArray, Y: FloatArray, w: FloatArray) -> FloatArray:
        return self.base.spread(theta, raw, self.targets(Y), w)

    def curvature_near(self, Z: FloatArray, Y: FloatArray, w: FloatArray) -> float:
        return self.base.curvature_near(self.shifted(Z, Y), self.targets(Y), w)

    # The rest ---------------------------------------------------------------------------------------

    def null_intercept(self, target_means: FloatArray) -> FloatArray:
        """The means of the targets do not tell."""
        return np.full(len(target_means), np.nan)

    def first_constant(self, target_means: FloatArray) -> FloatArray | None:
        return np.nan_to_num(self.base.null_intercept(target_means))

    def canonical(self, B: FloatArray) -> FloatArray:
        return self.base.canonical(B)

    def cancelling_size(self, Z: FloatArray, w: FloatArray) -> float:
        return self.base.cancelling_size(Z, w)


def with_offset(loss: Loss, Y: Any, offset: Any) -> tuple[Loss, Any, float]:
    """The loss, and its targets, of predictors to which offsets are added; as they are where there are none.

    Both are arrays, here or of Dask. And the size of what was taken off the targets: its rounding stays in them.
    """
    if offset is None:
        return loss, Y, 0.0
    if loss.is_of_residuals:
        return loss, Y - offset, float(np.abs(offset).max())
    return WithOffset(loss), np.hstack([Y, offset]), 0.0


def nonzero_offset(offset: Any, Y: Any) -> Any:
    """The offset of some targets as it is given, or None where it is zero: that takes the same way as none."""
    if offset is None:
        return None
    values = as_float_array("offset", offset, ndim=(0, 1, 2))
    if values.ndim and Y is not None:
        check_length("offset", values.shape, len(Y))
    return offset if values.any() else None


def check_offset(offset: Any, loss: Loss, shape: tuple[int, int], Y: Any = None) -> FloatArray | None:
    """Offsets (n_samples, n_tasks) as users give them: a number, one for each sample or one for each entry.

    None where all are zero, so that they take the same way as no offset. They may be NaN where a target of ``Y`` was
    not observed; one for a sample, where none of its targets was.
    """
    if offset is None:
        return None
    values = as_float_array("offset", offset, ndim=(0, 1, 2))
    if Y is not None and values.ndim and len(values) == len(Y) and np.isnan(values).any():
        missing = np.isnan(Y)
        if values.ndim == 1 or values.shape[1] == 1:
            missing = missing.all(axis=1).reshape(values.shape)
        if missing.shape == values.shape:
            values = np.where(missing & np.isnan(values), 0.0, values)
    check_finite("offset", values, remedy="Every offset of an observed target must be a finite number.")
    if values.ndim:
        check_length("offset", values.shape, shape[0])
    if values.ndim == 2 and values.shape[1] not in (1, shape[1]):
        raise ValueError(f"offset must have shape ({shape[0]},) or {shape}, one for each target, got {values.shape}.")
    if not values.any():
        return None
    if loss.target == "classes" and (values.ndim < 2 or values.shape[1] == 1):
        raise ValueError(
            f"offset of shape {values.shape} adds the same to all classes, which changes no probability. Give one for "
            f"each of the {shape[1]} classes, shape {shape}."
        )
    values = values[:, None] if values.ndim == 1 else values
    return np.array(np.broadcast_to(values, shape))
