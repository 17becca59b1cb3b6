"""The kernels of the Group OWL norm for few units, as plain loops.

An array function costs as much as a dozen units of a loop, whatever the number of units, and each kernel needs a dozen
of them. What is computed is what :mod:`groupowl.norm.kernels` says of the function of the same name.
"""

from __future__ import annotations

import math
from itertools import accumulate
from operator import mul, sub, truediv

import numpy as np

from .._typing import FloatArray, IndexArray

EPS = float(np.finfo(np.float64).eps)

#: Up to so many units loops are faster: of most kernels, and of the prox, which needs fewer calls.
FEW = 40
FEW_TO_SHRINK = 12
#: And up to so many when some of them must be pooled.
FEW_TO_POOL = 60


def owl_value(norms: FloatArray, lam: FloatArray) -> float:
    """``sum_i lam_i norm_[i]``."""
    return sum(map(mul, sorted(norms.tolist(), reverse=True), lam[: len(norms)].tolist()))


def owl_gauge(norms: FloatArray, lam: FloatArray) -> float:
    """``max_k (sum of the k largest norms) / (lam_1 + ... + lam_k)``.

    Rounding of the sums decides where to look; the ratios there come from exact sums.
    """
    falling, weights = sorted(norms.tolist(), reverse=True), lam[: len(norms)].tolist()
    whole = sum(falling)
    if whole == 0.0:
        return 0.0
    if weights[0] == 0.0 or not math.isfinite(whole / weights[0]):
        return math.inf
    ratios = list(map(truediv, accumulate(falling), accumulate(weights)))
    nearly = max(ratios) * (1.0 - 4.0 * EPS * len(ratios))
    return max(math.fsum(falling[:k]) / math.fsum(weights[:k]) for k, ratio in enumerate(ratios, 1) if ratio >= nearly)


def prox_and_value(norms: FloatArray, lam: FloatArray, step: float) -> tuple[FloatArray, float]:
    """Norms after the proximal map of ``step`` times the OWL norm, and the OWL norm there."""
    lengths, weights = norms.tolist(), lam[: len(norms)].tolist()
    order = sorted(range(len(lengths)), key=lengths.__getitem__, reverse=True)
    values = pooled([lengths[j] - step * weight for j, weight in zip(order, weights, strict=True)])
    shrunk, penalty = [0.0] * len(lengths), 0.0
    for j, value, weight in zip(order, values, weights, strict=True):
        if not value > 0.0:
            break
        shrunk[j] = value
        penalty += value * weight
    return np.array(shrunk), penalty


def pooled(values: list[float]) -> list[float]:
    """The falling sequence nearest to the values: what rises is replaced by the means of blocks."""
    means: list[float] = []
    sizes: list[int] = []
    for value in values:
        mean, size = value, 1
        while means and means[-1] < mean:
            before, more = means.pop(), sizes.pop()
            size += more
            mean = before + (mean - before) * ((size - more) / size)
        means.append(mean)
        sizes.append(size)
    return [mean for mean, size in zip(means, sizes, strict=True) for _ in range(size)]


def kkt_rows(values: FloatArray, lam: FloatArray) -> IndexArray:
    """The largest values up to the last maximizer of ``sum_{i<=k} (value_i - lam_i)``, as indices, ascending."""
    unsorted, weights = values.tolist(), lam[: len(values)].tolist()
    order = sorted(range(len(unsorted)), key=unsorted.__getitem__, reverse=True)
    falling = [unsorted[j] for j in order]
    m = max((i for i, value in enumerate(falling) if not value < weights[i]), default=-1) + 1
    kept = last_argmax_cut(falling[:m], weights[:m])
    return np.array(sorted(order[:kept]), dtype=np.intp)


def last_argmax_cut(upper: list[float], lam: list[float]) -> int:
    """Last ``k`` in ``0..m`` that maximizes ``sum_{i<=k} (upper_i - lam_i)`` up to rounding."""
    m = len(upper)
    excess = [0.0, *accumulate(map(sub, upper, lam))]
    if not math.isfinite(excess[-1]):
        return m
    sizes = [0.0, *map(sum, zip(accumulate(upper), accumulate(lam), strict=True))]
    top = max(excess)
    return max(k for k in range(m + 1) if excess[k] >= top - EPS * m * sizes[k])


def cluster_labels(norms: FloatArray, rtol: float) -> IndexArray:
    """Numbers of the groups of equal non-zero norms, from 1 by falling norm; 0 for zero norms."""
    lengths, labels, label, last = norms.tolist(), [0] * len(norms), 0, math.inf
    for j in sorted(range(len(lengths)), key=lengths.__getitem__, reverse=True):
        if lengths[j] == 0.0:
            break
        label += label == 0 or lengths[j] < last * (1.0 - rtol)
        labels[j], last = label, lengths[j]
    return np.array(labels, dtype=np.intp)
