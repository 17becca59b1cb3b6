"""Array functions behind the Group OWL norm; they know neither data nor solvers.

All that concern the norm take the norms of its units: which rows of ``B`` form a unit is the penalty's business.
``lam`` is always non-increasing and as long as the number of units.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.optimize import isotonic_regression

from .._typing import BoolArray, FloatArray, IndexArray

EPS = float(np.finfo(np.float64).eps)
#: Smallest normal number: what to divide by in place of zero.
TINY = float(np.finfo(np.float64).tiny)
#: Squares of smaller norms, and what rounding leaves of them, are not numbers of full precision any more; products of
#: columns with larger norms overflow.
SMALLEST_NORM = 1e-140
LARGEST_NORM = 1e140
#: Squares of larger products overflow.
LARGEST_PRODUCT = 1e152
_LONG_EPS = np.finfo(np.longdouble).eps
#: Terms of products that are added up in one go, whatever BLAS makes of them; longer sums are added up in pieces. Of
#: sums over samples, for which more is allowed, the second number.
LONGEST_SUM = 128
LONGEST_SUM_OF_SAMPLES = 1024

#: A column whose spread is this small against its mean varies by rounding only.
CONSTANT_RTOL = 64 * EPS

#: Norms that differ by less than this, relatively, are one cluster: the prox makes them equal up to rounding.
CLUSTER_RTOL = 1e-9

# Rounds of the repeated test before sorting what is left; each round is one comparison per unit.
_THRESHOLD_ROUNDS = 8


def row_norms(B: FloatArray) -> FloatArray:
    """Euclidean norm of each row of ``B``."""
    if B.shape[1] == 1:
        return np.abs(B[:, 0])
    return np.sqrt(np.einsum("jk,jk->j", B, B))


def nonzero_rows(B: FloatArray) -> BoolArray:
    """Which rows of ``B`` are not zero; several times faster than ``B.any(axis=1)`` where few are."""
    mask = np.zeros(len(B), dtype=bool)
    mask[(B != 0.0).ravel().nonzero()[0] // B.shape[1]] = True  # truth values are searched much faster than B
    return mask


def divide_rows(B: FloatArray, factors: FloatArray) -> FloatArray:
    """Rows of ``B`` over a factor each, zero where that is zero."""
    return np.divide(B, factors[:, None], out=np.zeros(B.shape), where=factors[:, None] > 0)


def over_weights(theta: FloatArray, w: FloatArray) -> FloatArray:
    """``theta / w``; where weights differ between tasks they may be zero, theta is zero there too, and so is this."""
    if w.shape[-1] == 1:
        return theta / w
    return np.divide(theta, w, out=np.zeros(theta.shape), where=w > 0.0)


def inverse_weighted_square(theta: FloatArray, w: FloatArray) -> float:
    """``sum_i ||theta_i||^2 / w_i``, a sum over samples."""
    return np.add.reduce(over_weights(theta * theta, w), axis=(0, -1))


def two_sum(a: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray]:
    """``a + b`` rounded, and exactly what rounding took off (Knuth)."""
    rounded = a + b
    second = rounded - a
    return rounded, (a - (rounded - second)) + (b - second)


def matrix_product(X: Any, B: FloatArray, longest: int = LONGEST_SUM) -> FloatArray:
    """``X B`` of a dense X, sums of more terms than ``longest`` in halves.

    A running sum of thousands of equal terms loses more digits than certificates allow for.
    """
    if len(B) <= longest:
        return X @ B
    half = len(B) // 2
    return matrix_product(X[:, :half], B[:half], longest) + matrix_product(X[:, half:], B[half:], longest)


def vector_product(a: FloatArray, B: FloatArray) -> FloatArray:
    """``a^T B``, or of several B along a first axis, sums of many terms in pieces as above."""
    while len(a) > LONGEST_SUM:
        *several, size, width = B.shape
        whole = size // LONGEST_SUM * LONGEST_SUM
        pieces = B[..., :whole, :].reshape(*several, -1, LONGEST_SUM, width)
        sums = (a[:whole].reshape(-1, 1, LONGEST_SUM) @ pieces)[..., 0, :]
        B = np.concatenate([sums, np.expand_dims(a[whole:] @ B[..., whole:, :], -2)], axis=-2)
        a = np.ones(B.shape[-2])
    return a @ B


def merged_means(
    mean: FloatArray, rest: FloatArray, other_mean: FloatArray, other_rest: FloatArray, share: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Means of two sets of samples together, what rounding took off them, and the distance between those of the sets.

    ``share`` is the other set's part of the weight; a negative one takes it off. This is the update of Chan, Golub and
    LeVeque: squares about the new means are those of both sets about their own, and what the means differ by.
    """
    distance = (other_mean - mean) + (other_rest - rest)
    mean, rest = two_sum(mean, rest + share * distance)
    return mean, rest, distance


def sum_with_products(
    terms: FloatArray, a: FloatArray, B: FloatArray, dtype: Any = np.float64
) -> tuple[FloatArray, FloatArray]:
    """``sum_i terms_i + a^T B`` for each column, rounded once at the end, whatever cancels; and what that took off.

    Dekker's products, whose rounding errors are numbers of their own, and a sum without error.
    """
    products = a[:, None] * B
    (a_high, a_low), (B_high, B_low) = _halves(a[:, None]), _halves(B)
    errors = ((a_high * B_high - products) + a_high * B_low + a_low * B_high) + a_low * B_low
    columns = np.concatenate([terms, products, errors]).T
    if not np.isfinite(columns).all():
        rounded = columns.sum(axis=1).astype(dtype)
        return rounded, np.zeros(len(columns))
    rounded = np.array(list(map(math.fsum, columns.tolist()))).astype(dtype)
    left = np.column_stack([columns, -rounded]).tolist()
    return rounded, np.array(list(map(math.fsum, left)))


def sums_with_products(
    terms: FloatArray, solve: IndexArray, a: FloatArray, B: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The same for several sums at once: ``terms + sum_j a_j B_j`` over the rows j of each, and what rounding took off.

    Products are cut where their high parts add up without error, whatever cancels, and the low parts, with the errors
    of the products, lose no more than 1e-24 of the largest one.
    """
    order = np.argsort(np.concatenate([np.arange(len(terms)), solve]), kind="stable")
    products = a[:, None] * B
    (a_high, a_low), (B_high, B_low) = _halves(a[:, None]), _halves(B)
    errors = ((a_high * B_high - products) + a_high * B_low + a_low * B_high) + a_low * B_low
    values = np.concatenate([terms, products])[order]
    low = np.concatenate([np.zeros(terms.shape), errors])[order]
    counts = 1 + np.bincount(solve, minlength=len(terms))
    starts = np.cumsum(counts) - counts
    _, exponents = np.frexp(counts[:, None] * np.maximum.reduceat(np.abs(values), starts))
    cut = np.repeat(np.ldexp(1.0, exponents + 1), counts, axis=0)
    high = (cut + values) - cut
    rounded, rest = two_sum(np.add.reduceat(high, starts), np.add.reduceat(low + (values - high), starts))
    return rounded, rest


def _halves(values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Two numbers of half the digits each that add up to the value (Veltkamp)."""
    shifted = 134217729.0 * values  # 2^27 + 1
    high = shifted - (shifted - values)
    return high, values - high


def exceeds_rounding(spread: FloatArray, mean: FloatArray) -> BoolArray:
    """Columns that vary by more than rounding, by their standard deviations; all others count as constant."""
    return spread > CONSTANT_RTOL * np.abs(mean)


def repeated_test(values: FloatArray, lam: FloatArray) -> IndexArray:
    """Indices that survive "drop j if ``values_j < lam_|A|``" repeated until A is stable, ascending.

    In closed form the survivors are the ``max{k : k-th largest value >= lam_k}`` largest values. Equal
    values are kept or dropped together, because ``lam`` does not increase.
    """
    alive = np.arange(len(values))
    for _ in range(_THRESHOLD_ROUNDS):
        if len(alive) == 0:
            return alive
        keep = ~(values[alive] < lam[len(alive) - 1])  # a value that is not a number proves nothing
        if keep.all():
            return alive
        alive = alive[keep]
    order = np.argsort(-values[alive], kind="stable")
    passing = np.flatnonzero(~(values[alive[order]] < lam[: len(alive)]))
    size = passing[-1] + 1 if len(passing) else 0
    return np.sort(alive[order[:size]])


def owl_value(norms: FloatArray, lam: FloatArray) -> float:
    """``sum_i lam_i norm_[i]``: the largest norm pays the largest weight."""
    positive = -np.sort(-norms[norms > 0])
    return float(np.add.reduce(positive * lam[: len(positive)]))  # in pieces, unlike a product


def owl_gauge(norms: FloatArray, lam: FloatArray) -> float:
    """Dual norm: ``max_k (sum of the k largest norms) / (lam_1 + ... + lam_k)``."""
    largest = float(np.maximum.reduce(norms, initial=0.0))
    if largest == 0.0:
        return 0.0
    if lam[0] == 0.0 or not math.isfinite(largest / lam[0]):
        return np.inf
    if lam[0] == lam[len(norms) - 1]:  # no mean is above the largest norm
        return float(largest / lam[0])
    # Where the ratio is largest, the last norm summed is at least the ratio times its weight, so units
    # that fail this test against a lower bound of the ratio cannot matter and need no sorting.
    candidates = norms[repeated_test(norms, (largest / lam[0]) * (1.0 - 64 * EPS) * lam)]
    # Too small a gauge would make an infeasible point pass for a feasible one, so long sums are added up in extended
    # precision where there is one, and rounded up by what their error can be.
    falling = -candidates
    falling.sort()
    sums = np.add.accumulate(falling, dtype=np.longdouble)
    ratios = sums / np.add.accumulate(lam[: len(sums)], dtype=np.longdouble)
    ratios *= 1.0 + 2.0 * _LONG_EPS * np.arange(len(ratios))
    return -float(np.minimum.reduce(ratios))


def prox_and_value(norms: FloatArray, lam: FloatArray, step: float) -> tuple[FloatArray, float]:
    """Norms after the proximal map of ``step`` times the OWL norm, and the OWL norm there; the zeros are exact.

    Sorted downwards, ``norm_[i] - step lam_i`` is pooled to a non-increasing sequence; what is positive of it remains.
    """
    if len(norms) == 0 or lam[0] == lam[len(norms) - 1]:  # equal weights: the order does not matter
        shrunk = np.maximum(norms - step * lam[0], 0.0) if len(norms) else norms
        return shrunk, float(lam[0] * np.add.reduce(shrunk)) if len(norms) else 0.0
    order = (-norms).argsort(kind="stable")
    lam = lam[: len(order)]
    values = norms[order] - step * lam
    positive = (values > 0.0).nonzero()[0]
    shrunk = np.zeros(len(order))
    if len(positive) == 0:
        return shrunk, 0.0
    size = int(positive[-1]) + 1  # what comes after the last positive one becomes zero, pooled or not
    values, order = values[:size], order[:size]
    if np.count_nonzero(values[1:] > values[:-1]):  # pooling costs a call; most steps do not need it
        values = isotonic_regression(values, increasing=False).x
    values = np.maximum(values, 0.0)
    shrunk[order] = values
    return shrunk, float(np.dot(values, lam[:size]))


def last_argmax_cut(upper: FloatArray, lam: FloatArray) -> int:
    """Last ``k`` in ``0..m`` that maximizes ``sum_{i<=k} (upper_i - lam_i)``, ``upper`` sorted downwards.

    Rounding errors of the partial sums grow with their length, so a later sum within that error of the
    maximum counts as a maximum: the cut may keep a unit too many, never one too few.
    """
    m = len(upper)
    excess, size = np.zeros(m + 1), np.zeros(m + 1)
    np.add.accumulate(upper - lam, out=excess[1:])
    if not math.isfinite(excess[-1]):  # nothing is known, so nothing is cut
        return m
    np.add.accumulate(upper, out=size[1:])
    size[1:] += np.add.accumulate(lam)
    return int((excess >= excess.max() - EPS * m * size).nonzero()[0][-1])


def kkt_rows(values: FloatArray, lam: FloatArray) -> IndexArray:
    """Units that could be non-zero if ``values`` were the correlations at the optimum, ascending.

    The largest values up to the last maximizer of ``sum_{i<=k} (value_i - lam_i)``: those after it do not pay for the
    weights they would take. All of them survive the repeated test, so that is where to look.
    """
    candidates = repeated_test(values, lam)
    if len(candidates) == 0 or values[candidates].min() >= lam[0]:  # every one pays for any weight: nothing to sort
        return candidates
    order = candidates[np.argsort(-values[candidates], kind="stable")]
    return np.sort(order[: last_argmax_cut(values[order], lam[: len(order)])])


def cluster_starts(falling: FloatArray, rtol: float = CLUSTER_RTOL) -> IndexArray:
    """Where a new group of equal norms begins among falling ones."""
    if len(falling) == 0:
        return np.zeros(0, dtype=np.intp)
    falls = falling[1:] < falling[:-1] * (1.0 - rtol)
    return np.concatenate([[0], 1 + np.flatnonzero(falls)])


def falling_order(norms: FloatArray) -> IndexArray:
    """Indices by falling norm; norms that are equal up to rounding keep their order, on every machine."""
    labels = cluster_labels(norms)
    labels[labels == 0] = len(labels) + 1  # zeros come last
    return np.argsort(labels, kind="stable")


def cluster_labels(norms: FloatArray, rtol: float = CLUSTER_RTOL) -> IndexArray:
    """Number the groups of equal non-zero norms from 1 by falling norm; 0 for zero norms."""
    labels = np.zeros(len(norms), dtype=np.intp)
    support = np.flatnonzero(norms)
    if len(support) == 0:
        return labels
    order = support[np.argsort(-norms[support], kind="stable")]
    begins = np.zeros(len(order), dtype=np.intp)
    begins[cluster_starts(norms[order], rtol)] = 1
    labels[order] = np.cumsum(begins)
    return labels
