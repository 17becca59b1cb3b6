"""Targets and sample weights with the totals that no solver changes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from ._kernels import exceeds_rounding
from ._typing import FloatArray, Handle
from .designs import Design
from .losses import Loss


@dataclass(frozen=True, eq=False)
class Targets:
    """Targets and sample weights with the totals that do not change when rows of ``B`` are removed."""

    Y: Handle  # centred where the loss removes its intercept that way
    w: Handle  # (n, 1), positive
    total_weight: float
    norm: float  # sqrt(sum_i w_i ||y_i||^2)
    center: FloatArray  # what was taken off Y
    null_intercept: FloatArray  # of the model without features, for Y as it is here
    null_loss: float

    @property
    def n_tasks(self) -> int:
        """Number of columns of Y."""
        return len(self.center)


def weighted_sums(Y: FloatArray, w: FloatArray) -> FloatArray:
    """``sum_i w_i y_i``, a sum over samples for use with a design."""
    return (w * Y).sum(axis=0)


def _weighted_squares(Y: FloatArray, w: FloatArray) -> FloatArray:
    return (w * Y * Y).sum(axis=0)


def summarise_targets(design: Design, loss: Loss, Y: Handle, w: Handle, fit_intercept: bool) -> Targets:
    """Centre the targets where the loss removes its intercept that way, and fit the model without features."""
    total = float(design.reduce(np.sum, w))
    n_tasks = len(design.reduce(weighted_sums, Y, w))
    center, null_intercept = np.zeros(n_tasks), np.zeros(n_tasks)
    if fit_intercept and loss.centers_targets:
        Y, center = _center_targets(design, Y, w, total)
    elif fit_intercept:
        null_intercept = loss.null_intercept(design.reduce(weighted_sums, Y, w) / total)
    norm = float(np.sqrt(design.reduce(_weighted_squares, Y, w).sum()))
    null_loss = float(design.reduce(partial(_constant_predictor_value, loss, null_intercept), Y, w))
    return Targets(Y, w, total, norm, center, null_intercept, null_loss)


def _center_targets(design: Design, Y: Handle, w: Handle, total: float) -> tuple[Handle, FloatArray]:
    """Targets less their weighted means, and the means; constant columns become exact zeros."""
    center = np.zeros(design.reduce(weighted_sums, Y, w).shape)
    for _ in range(2):  # the second round removes what rounding left of a large offset
        mean = design.reduce(weighted_sums, Y, w) / total
        Y = design.map(partial(np.add, -mean), Y)
        center = center + mean
    spread = np.sqrt(design.reduce(_weighted_squares, Y, w) / total)
    varies = exceeds_rounding(spread, center).astype(np.float64)
    return design.map(partial(np.multiply, varies), Y), center


def _constant_predictor_value(loss: Loss, intercept: FloatArray, Y: FloatArray, w: FloatArray) -> float:
    return loss.value(np.broadcast_to(intercept, Y.shape), Y, w)
