"""Targets and sample weights: their checks, and the totals that no solver changes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ._checks import as_float_array, check_finite
from ._kernels import CONSTANT_RTOL
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


def check_targets(Y: Any, n_samples: int) -> FloatArray:
    """Targets as a finite matrix with one row per sample."""
    array = as_float_array("Y", Y, ndim=(1, 2))
    if len(array) != n_samples:
        raise ValueError(
            f"X and Y must have one row per sample: X has {n_samples} rows, Y has {len(array)} (shape {array.shape})."
        )
    check_finite("Y", array, remedy="Remove the samples without a target.")
    if array.size == 0:
        raise ValueError(f"Y is empty: its shape is {array.shape}; at least one column is needed.")
    return array if array.ndim == 2 else array[:, None]


def check_sample_weight(sample_weight: Any, n_samples: int) -> FloatArray:
    """Finite, non-negative weights, not all zero, one per sample; ones by default."""
    if sample_weight is None:
        return np.ones(n_samples)
    weight = as_float_array("sample_weight", sample_weight, ndim=(1,))
    if len(weight) != n_samples:
        raise ValueError(
            f"sample_weight must have one entry per sample: X has {n_samples} rows, "
            f"sample_weight has length {len(weight)}."
        )
    check_finite("sample_weight", weight, remedy="Every sample weight must be a finite number.")
    if weight.min() < 0:
        i = int(np.argmin(weight))
        raise ValueError(f"sample_weight must be non-negative, but sample_weight[{i}] is {weight[i]!r}.")
    if weight.max() == 0:
        raise ValueError("sample_weight is all zero: at least one sample must have a positive weight.")
    return weight


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
    varies = spread > CONSTANT_RTOL * np.abs(center)
    return design.map(partial(np.multiply, varies.astype(np.float64)), Y), center


def _constant_predictor_value(loss: Loss, intercept: FloatArray, Y: FloatArray, w: FloatArray) -> float:
    return loss.value(np.broadcast_to(intercept, Y.shape), Y, w)
