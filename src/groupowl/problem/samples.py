"""What belongs to the samples: targets and weights, with the totals that no solver changes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from .._typing import BoolArray, FloatArray, Handle
from ..designs import Design
from ..losses import Loss
from ..norm.kernels import EPS, SMALLEST_NORM, exceeds_rounding


@dataclass(frozen=True, eq=False)
class Samples:
    """Targets and sample weights, as handles of the design, and what they add up to.

    Attributes
    ----------
    Y : handle of shape (n_samples, n_tasks)
        Targets, less what the unpenalized block of a quadratic loss explains of them.
    w : handle
        Weights, positive; they broadcast to the shape of the targets.
    n_tasks : int
    count : int
        Samples of positive weight, however few rows stand for them.
    total_weight : float
        Sum of the weights; where they differ between tasks, the largest sum of a task.
    means : ndarray of shape (n_tasks,)
        Weighted means of the targets as they were given.
    center : ndarray of shape (n_tasks,)
        What was taken off the targets: the means, or zeros.
    center_error : float
        Weighted norm of what the rounding of the means, of constant targets, or of offsets taken off, leaves out.
    hides_variation : bool
        Whether targets that vary by no more than rounding count as constant.
    norm : float
        ``sqrt(sum_i w_i ||y_i||^2)``, or more where errors of what was taken off are larger: rounding scales with it.
    floor : float
        Greatest lower bound of the loss over all predictors.
    offset_norm : float
        Weighted norm of the offset that was taken off the targets, and of what it left; the rounding is still there.
    """

    Y: Handle
    w: Handle
    n_tasks: int
    count: int
    total_weight: float
    means: FloatArray
    center: FloatArray
    center_error: float = 0.0
    hides_variation: bool = False
    norm: float = 0.0
    floor: float = 0.0
    offset_norm: float = 0.0

    @property
    def handles(self) -> tuple[Handle, Handle]:
        """Targets and weights, in the order in which a loss takes them."""
        return self.Y, self.w


def task_weights(w: FloatArray) -> Any:
    """Sum of the weights, for each task where they differ between tasks: a sum over samples."""
    return w.sum() if w.shape[1] == 1 else w.sum(axis=0)


def weighted_sums(Y: FloatArray, w: FloatArray) -> FloatArray:
    """``sum_i w_i y_i``, a sum over samples for use with a design."""
    return (w * Y).sum(axis=0)


def weighted_squares(Y: FloatArray, w: FloatArray) -> FloatArray:
    """``sum_i w_i y_i^2``, the same for squares."""
    return (w * Y * Y).sum(axis=0)


def adopt_samples(
    design: Design, loss: Loss, Y: Handle, w: Handle, *, center: bool, offset_size: float = 0.0
) -> Samples:
    """Targets and weights with their sums; ``center`` takes the weighted means off the targets."""
    total, sums = design.reduce_all((task_weights, w), (partial(_target_sums, loss), Y, w))
    means, nothing = sums / total, np.zeros(len(sums))
    samples = Samples(Y, w, len(sums), design.n_samples, float(np.max(total)), means, nothing)
    if offset_size > 0.0:  # differences have the rounding of their own size, which centering would hide
        size = float(np.sqrt(design.reduce(weighted_squares, Y, w).sum()))
        offset_norm = float(np.hypot(size, offset_size * np.sqrt(len(sums) * np.max(total))))
        samples = replace(samples, offset_norm=offset_norm, center_error=EPS * size)
    return _centered(design, samples, total) if center else samples


def _target_sums(loss: Loss, Y: FloatArray, w: FloatArray) -> FloatArray:
    return weighted_sums(loss.targets(Y), w)


def _entries_that_count(Y: FloatArray, w: FloatArray) -> int:
    """How many targets of positive weight are not zero; missing ones have no weight."""
    return int(np.count_nonzero(Y * (w > 0.0)))


def check_underflow(design: Design, squares: FloatArray, Y: Handle, w: Handle) -> None:
    """Refuse targets whose entries are so small that their squares vanish."""
    if squares.sum() < SMALLEST_NORM**2 and design.reduce(_entries_that_count, Y, w):
        raise ValueError(
            "Y is so small, or sample_weight is, that the squares of the targets underflow. Rescale them, for example "
            "to a standard deviation of 1."
        )


def _centered(design: Design, samples: Samples, total: Any) -> Samples:
    """Targets less their weighted means; columns that vary by no more than rounding become exact zeros.

    ``total`` is the sum of the weights, of all tasks or of each.
    """
    Y, w = samples.handles
    Y = design.map(partial(np.add, -samples.means), Y)
    left = design.reduce(weighted_sums, Y, w) / total  # what rounding left of a large offset
    Y = design.map(partial(np.add, -left), Y)
    squares = design.reduce(weighted_squares, Y, w)
    center = samples.means + left
    if np.abs(center).max() < SMALLEST_NORM / EPS:
        check_underflow(design, squares, Y, w)
    varies = exceeds_rounding(np.sqrt(squares / total), center)
    error, hides_variation = center_errors(squares, center, varies, total)
    Y = design.map(partial(np.multiply, varies.astype(np.float64)), Y)
    error += samples.center_error
    return replace(samples, Y=Y, center=center, center_error=error, hides_variation=hides_variation)


def center_errors(squares: FloatArray, center: FloatArray, varies: BoolArray, total: Any) -> tuple[float, bool]:
    """Weighted norm of what targets lose by being centered, and whether that is variation which counts as rounding.

    ``squares`` are those of the centered targets.
    """
    lost = np.where(varies, 0.0, np.sqrt(squares)) + np.sqrt(total) * EPS * np.abs(center) * (squares > 0.0)
    return float(np.linalg.norm(lost)), bool(np.any(~varies & (squares > 0.0)))
