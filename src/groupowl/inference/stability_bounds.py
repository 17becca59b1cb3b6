"""Bounds of stability selection on the expected number of false selections, and what they allow.

A base selector returns a set of at most ``n_selected`` of ``n_units`` units from half of the samples. It is run on both
halves of ``n_pairs`` random splits; a unit is selected when the share of the ``2 n_pairs`` halves that return it is at
least a threshold above 1/2. With ``theta = n_selected / n_units``, the bounds are on the expected number of selected
units that the base selector returns with probability at most ``theta``, which is what picking at random would do.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from .._checks import lookup
from .._typing import FloatArray

#: Power of ``2 frequency - 1`` that is integrated along the path.
POWER = 3
#: The path is integrated to where the integral of the bound reaches this.
CUTOFF = 0.05
# Concavity that is assumed of the law of simultaneous selections in both halves, and of selections in halves.
_CONCAVITY_OF_PAIRS, _CONCAVITY_OF_HALVES = -0.5, -0.25
_BISECTIONS = 80
_GOLDEN_STEPS = 60
_GRID = 33
_GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0
# Shapes from all mass at zero to a uniform law.
_STEEPEST, _FLATTEST = 1e-12, 1e8


def worst_case_bound(n_units: int, n_selected: float, count: int, n_pairs: int) -> float:
    """``theta q / (2 tau - 1)`` for ``q = n_selected`` and the threshold ``tau = count / (2 n_pairs)``.

    Shah and Samworth (2013), Theorem 1 and the remark after it. Infinite up to a threshold of 1/2.
    """
    excess = count / n_pairs - 1.0
    if excess <= 0.0:
        return math.inf
    return n_selected**2 / n_units / excess


def r_concave_bound(n_units: int, n_selected: float, count: int, n_pairs: int) -> float:
    """``d min{D(theta^2, 2 tau - 1, B, -1/2), D(theta, tau, 2 B, -1/4)}``: Shah and Samworth (2013), equation (8).

    It assumes that the numbers of pairs, and of halves, that return one of these units have laws whose powers with
    these exponents are convex; the worst-case bound assumes nothing, and is taken where it is smaller.
    """
    theta = n_selected / n_units
    in_pairs = largest_tail(theta**2 * n_pairs, count - n_pairs, n_pairs, _CONCAVITY_OF_PAIRS)
    in_halves = largest_tail(theta * 2 * n_pairs, count, 2 * n_pairs, _CONCAVITY_OF_HALVES)
    concave = n_units * min(in_pairs, in_halves)
    return min(concave, worst_case_bound(n_units, n_selected, count, n_pairs))


_BOUNDS: dict[str, Callable[[int, float, int, int], float]] = {
    "r-concave": r_concave_bound,
    "worst-case": worst_case_bound,
}
#: Names of the bounds.
BOUNDS = tuple(_BOUNDS)


def false_selections(bound: Any, n_units: int, n_selected: float, count: int, n_pairs: int) -> float:
    """The bound of a name, for units that at least ``count`` of the halves return."""
    function = lookup("bound", bound, _BOUNDS)
    return min(function(n_units, n_selected, count, n_pairs), float(n_units))


def smallest_count(bound: Any, n_units: int, n_selected: int, n_pairs: int, max_false: float) -> int | None:
    """Fewest halves that a unit needs for the bound to be at most ``max_false``; None where all are too few."""
    first, last = n_pairs + 1, 2 * n_pairs
    if false_selections(bound, n_units, n_selected, last, n_pairs) > max_false:
        return None
    while first < last:  # the bounds fall with the count
        middle = (first + last) // 2
        if false_selections(bound, n_units, n_selected, middle, n_pairs) <= max_false:
            last = middle
        else:
            first = middle + 1
    return last


def largest_size(bound: Any, n_units: int, count: int, n_pairs: int, max_false: float) -> int:
    """Most units that the base selector may return for the bound to be at most ``max_false``; 0 where 1 is too many."""
    first, last = 0, n_units
    while first < last:  # the bounds rise with the size
        middle = (first + last + 1) // 2
        if false_selections(bound, n_units, middle, count, n_pairs) <= max_false:
            first = middle
        else:
            last = middle - 1
    return first


# Laws with a convex power ---------------------------------------------------------------------------------


@lru_cache(maxsize=4096)
def largest_tail(mean: float, count: int, n: int, concavity: float) -> float:
    """Largest ``P(X >= count)`` of laws on 0..n with this mean at most, whose power ``concavity < 0`` is convex.

    The extremal laws are ``f(i) ~ (a + i)^(1 / concavity)`` on 0..k, with what is left of the mass at k + 1 and the
    mean given; ``a`` and ``k`` are searched. 1 is returned up to twice the mean, where other laws are extremal.
    """
    if count <= math.ceil(2.0 * mean):
        return 1.0
    if mean == 0.0:
        return 0.0
    exponent = -1.0 / concavity
    tops = np.arange(count, n + 1)
    shapes = np.log(_shapes_of_mean(mean, tops, exponent))
    whole = _tails(shapes, tops, mean, count, exponent)  # laws that end at their k: nothing is left for k + 1
    ends = np.arange(count - 1, n)
    flat = np.log(_FLATTEST * (n + 1.0))
    upper = np.concatenate([[flat], shapes[:-1]])
    between = _largest_between(shapes, upper, ends, mean, count, exponent)
    return float(min(max(whole.max(), between.max(initial=0.0)), 1.0))


def _shapes_of_mean(mean: float, tops: Any, exponent: float) -> FloatArray:
    """For each k the ``a`` for which the law ``~ (a + i)^-exponent`` on 0..k has the mean, by bisection of its log."""
    low = np.full(len(tops), math.log(_STEEPEST))
    high = np.full(len(tops), math.log(_FLATTEST * (tops.max() + 1.0)))
    places = np.arange(tops.max() + 1)
    within = places <= tops[:, None]
    for _ in range(_BISECTIONS):
        middle = 0.5 * (low + high)
        masses = _masses(middle, places, exponent) * within
        is_large = masses @ places >= mean * masses.sum(axis=1)
        high = np.where(is_large, middle, high)
        low = np.where(is_large, low, middle)
    return np.exp(high)


def _largest_between(low: Any, high: Any, ends: Any, mean: float, count: int, exponent: float) -> FloatArray:
    """Largest tail over shapes in an interval for each k: the best of a grid, then golden sections around it."""
    steps = np.linspace(0.0, 1.0, _GRID)
    values = np.stack([_tails(low + step * (high - low), ends, mean, count, exponent) for step in steps])
    best = values.argmax(axis=0)
    width = high - low
    left, right = low + steps[np.maximum(best - 1, 0)] * width, low + steps[np.minimum(best + 1, _GRID - 1)] * width
    found = values.max(axis=0)
    for _ in range(_GOLDEN_STEPS):
        one, other = right - _GOLDEN * (right - left), left + _GOLDEN * (right - left)
        at_one = _tails(one, ends, mean, count, exponent)
        at_other = _tails(other, ends, mean, count, exponent)
        found = np.maximum(found, np.maximum(at_one, at_other))
        left, right = np.where(at_one < at_other, one, left), np.where(at_one < at_other, right, other)
    return found


def _tails(log_shapes: Any, ends: Any, mean: float, count: int, exponent: float) -> FloatArray:
    """``P(X >= count)`` of laws with a shape on 0..k, whose mass at k + 1 gives them the mean."""
    places = np.arange(ends.max() + 1)
    masses = _masses(log_shapes, places, exponent)
    distance = np.maximum(ends[:, None] + 1 - places, 0)  # from k + 1, of places up to k
    scale = (ends + 1.0 - mean) / (masses * distance).sum(axis=1)
    tails: FloatArray = 1.0 - scale * masses[:, :count].sum(axis=1)
    return tails


def _masses(log_shapes: Any, places: Any, exponent: float) -> FloatArray:
    """``(1 + i / a)^-exponent``, a row for each shape."""
    shapes = np.exp(log_shapes)[:, None]
    masses: FloatArray = (shapes / (shapes + places)) ** exponent
    return masses


# Integrated paths -----------------------------------------------------------------------------------------


def integrand(n_units: int, n_selected: Any, n_pairs: int) -> FloatArray:
    """``d E[(S_1 + ... + S_B)^3] / B^3`` for ``P(S_1 = ... = S_m = 1) = theta^(2 m)``: the bound at one alpha.

    ``S_b`` says whether both halves of pair b return a unit, and ``theta = n_selected / n_units``.
    """
    chance = (np.asarray(n_selected, dtype=float) / n_units) ** 2
    B = float(n_pairs)
    moment: FloatArray = (chance + 3.0 * (B - 1.0) * chance**2 + (B - 1.0) * (B - 2.0) * chance**3) / B**2
    return n_units * moment


def integrated_scores(frequencies: FloatArray, measure: FloatArray) -> FloatArray:
    """Integral of ``max(2 frequency - 1, 0)^3`` over alphas, for frequencies of shape (n_features, n_alphas)."""
    scores: FloatArray = np.maximum(2.0 * frequencies - 1.0, 0.0) ** POWER @ measure
    return scores


def measure_of(alphas: FloatArray, values: FloatArray) -> FloatArray:
    """Weights of falling alphas, uniform on the logarithmic scale, zero after the integral of ``values`` is too large.

    All alphas together would have weight 1.
    """
    if len(alphas) == 1:
        return np.ones(1)
    steps = np.abs(np.gradient(np.log(alphas)))
    weights = steps / steps.sum()
    weights[np.cumsum(weights * values) > CUTOFF] = 0.0
    return weights
