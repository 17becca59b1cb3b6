"""Targets and sample weights with the totals that no solver changes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from ._kernels import EPS, SMALLEST_NORM, exceeds_rounding
from ._typing import BoolArray, FloatArray, Handle
from .balancing import Block
from .designs import Design, products
from .losses import Loss

# Unpenalised columns that leave less than this of the loss separate the classes.
_SEPARATED = 1e-8


@dataclass(frozen=True, eq=False)
class Targets:
    """Targets and sample weights with the totals that do not change when rows of ``B`` are removed."""

    Y: Handle  # centred where the loss removes its intercept that way
    w: Handle  # (n, 1), positive
    total_weight: float
    #: ``sqrt(sum_i w_i ||y_i||^2)``, or more where errors of what was taken off are larger: rounding scales with it.
    norm: float
    center: FloatArray  # what was taken off Y
    null_intercept: FloatArray  # of the model without features, for Y as it is here
    null_loss: float
    free_center: FloatArray  # coefficients, on the basis of the unpenalised columns, of what was taken off Y
    null_free: FloatArray  # and of the model without features, for Y as it is here
    center_error: float = 0.0  # weighted norm of what the rounding of the centers, or of constant targets, leaves out
    hides_variation: bool = False  # True where targets vary by no more than rounding and count as constant
    has_minimum: bool = True  # False where the coefficients of the unpenalised columns have no finite optimum

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
    """Centre and project the targets where the loss removes its unpenalised block so, and fit the model without more.

    The basis of unpenalised columns is the design's.
    """
    total, sums = design.reduce_all((np.sum, w), (weighted_sums, Y, w))
    total, n_tasks = float(total), len(sums)
    center, null_intercept = np.zeros(n_tasks), np.zeros(n_tasks)
    free_center = null_free = np.zeros((design.n_free_directions, n_tasks))
    has_minimum = True
    center_error, hides_variation = 0.0, False
    if fit_intercept and loss.centers_targets:
        Y, center, center_error, hides_variation = _center_targets(design, Y, w, total)
    elif fit_intercept:
        null_intercept = loss.null_intercept(sums / total)
    constant_value = partial(_constant_predictor_value, loss, null_intercept)
    constant_loss, squares = design.reduce_all((constant_value, Y, w), (_weighted_squares, Y, w))
    _check_underflow(design, Y, squares)
    null_loss = constant_loss = float(constant_loss)
    if design.n_free_directions and loss.centers_targets:
        Y, free_center = _project_targets(design, Y, w)
        null_loss, squares = design.reduce_all((constant_value, Y, w), (_weighted_squares, Y, w))
    elif design.n_free_directions:
        block = Block(design, loss, Y, w, total, fit_intercept)
        Z, moved = block.minimized(design.map(partial(_constant_predictor, null_intercept), Y))
        has_minimum = block.is_settled(Z)
        null_free = moved[: design.n_free_directions]
        if fit_intercept:
            null_intercept = null_intercept + block.constant_value * moved[-1]
        value = partial(_block_predictor_value, loss, null_intercept, null_free)
        null_loss = float(design.reduce(value, Y, w, design.free_basis))
        if null_loss <= _SEPARATED * constant_loss:
            raise ValueError(
                "unpenalized columns tell the classes apart without an error, so that their coefficients have no "
                "finite optimum. Penalise them, or leave out those that encode the labels."
            )
    norm = float(np.hypot(np.sqrt(squares.sum()), design.free_condition * np.linalg.norm(free_center)))
    null = null_intercept, float(null_loss), free_center, null_free
    return Targets(Y, w, total, norm, center, *null, center_error, hides_variation, has_minimum)


def _check_underflow(design: Design, Y: Handle, squares: FloatArray) -> None:
    """Refuse targets whose entries are so small that their squares vanish."""
    if squares.sum() < SMALLEST_NORM**2 and design.reduce(np.count_nonzero, Y):
        raise ValueError(
            "Y is so small, or sample_weight is, that the squares of the targets underflow. Rescale them, for example "
            "to a standard deviation of 1."
        )


def _project_targets(design: Design, Y: Handle, w: Handle) -> tuple[Handle, FloatArray]:
    """What the unpenalised columns do not explain of the targets, and the coefficients of what they do."""
    before = np.sqrt(design.reduce(_weighted_squares, Y, w))
    coefficients: FloatArray = np.zeros((design.n_free_directions, len(before)))
    for _ in range(2):  # the second round removes what rounding left
        found = design.reduce(products, design.free_basis, design.map(np.multiply, Y, w))
        Y = design.map(partial(_minus_product, coefficients=found), Y, design.free_basis)
        coefficients = coefficients + found
    left = np.sqrt(design.reduce(_weighted_squares, Y, w))
    varies = exceeds_rounding(left, before).astype(np.float64)
    return design.map(partial(np.multiply, varies), Y), coefficients


def _center_targets(design: Design, Y: Handle, w: Handle, total: float) -> tuple[Handle, FloatArray, float, bool]:
    """Targets less their weighted means, the means, the error of both, and whether that hides variation.

    Columns that vary by no more than rounding become exact zeros.
    """
    means = []
    for _ in range(2):  # the second round removes what rounding left of a large offset
        mean = (partial(_weighted_means, total=total), Y, w)
        means.append(mean)
        Y = design.map(_shifted, Y, mean=design.total(*mean))
    first, second, squares = design.reduce_all(*means, (_weighted_squares, Y, w))
    center = first + second
    if np.abs(center).max() < SMALLEST_NORM / EPS:
        _check_underflow(design, Y, squares)
    varies = exceeds_rounding(np.sqrt(squares / total), center)
    error, hides_variation = center_errors(squares, center, varies, total)
    return design.map(partial(np.multiply, varies.astype(np.float64)), Y), center, error, hides_variation


def center_errors(squares: FloatArray, center: FloatArray, varies: BoolArray, total: float) -> tuple[float, bool]:
    """Weighted norm of what targets lose by being centered, and whether that is variation which counts as rounding.

    ``squares`` are those of the centered targets.
    """
    lost = np.where(varies, 0.0, np.sqrt(squares)) + np.sqrt(total) * EPS * np.abs(center) * (squares > 0.0)
    return float(np.linalg.norm(lost)), bool(np.any(~varies & (squares > 0.0)))


def _weighted_means(Y: FloatArray, w: FloatArray, total: float) -> FloatArray:
    return weighted_sums(Y, w) / total


def _shifted(Y: FloatArray, mean: FloatArray) -> FloatArray:
    return Y - mean


def _minus_product(Y: FloatArray, Q: FloatArray, coefficients: FloatArray) -> FloatArray:
    return Y - Q @ coefficients


def _constant_predictor(intercept: FloatArray, Y: FloatArray) -> FloatArray:
    return np.broadcast_to(intercept, Y.shape)


def _block_predictor_value(
    loss: Loss, intercept: FloatArray, free: FloatArray, Y: FloatArray, w: FloatArray, Q: FloatArray
) -> float:
    return loss.value(Q @ free + intercept, Y, w)


def _constant_predictor_value(loss: Loss, intercept: FloatArray, Y: FloatArray, w: FloatArray) -> float:
    return loss.value(np.broadcast_to(intercept, Y.shape), Y, w)
