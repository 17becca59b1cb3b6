"""Weight sequences of the OWL norm: non-increasing, first weight 1.

The largest row of ``B`` pays the first weight. Estimators and paths multiply a sequence by ``alpha``;
:func:`oscar_lam` gives the weights of the paper with their strength applied.

Where a sequence is asked for by name, or by a function, the number of samples that :func:`gaussian` and
:func:`chi_gauss` (or the function) get is that of the rows of X whose sample weight is positive. Rows are counted,
their weights are not added up: a sample of weight 2 counts once, the same sample twice counts twice.
"""

from __future__ import annotations

import inspect
import math
import numbers
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import chdtri, ndtri

from ._checks import (
    LARGEST_FACTOR,
    as_float_array,
    finite_number,
    lookup,
    nonnegative_weights,
    number_in,
    positive_integer,
)
from ._typing import FloatArray

__all__ = ["bh", "chi", "chi_gauss", "constant", "gaussian", "levels", "linear", "oscar"]

#: Names of the sequences whose purpose is to control the false discovery rate; "bh" is taken for its shape, too.
PROMISING = ("chi", "chi_gauss", "gaussian")


def _ranks(n_features: int) -> FloatArray:
    return np.arange(1, positive_integer("n_features", n_features) + 1, dtype=np.float64)


def oscar(n_features: int, *, ratio: float = 1.0) -> FloatArray:
    """OSCAR weights: they decrease linearly from 1 to about ``1/(1 + ratio)``.

    The i-th weight is ``1 + ratio (d - i)/d``, divided by the first.

    Parameters
    ----------
    n_features : int
        Number of features d.
    ratio : float, default=1.0
        ``d alpha_2 / alpha_1`` in the paper's parametrization; 1 is the paper's setting, 0 is constant.

    Returns
    -------
    ndarray of shape (n_features,)

    Examples
    --------
    >>> import groupowl as go
    >>> go.weights.oscar(4).round(3).tolist()
    [1.0, 0.857, 0.714, 0.571]
    """
    slope = finite_number("ratio", ratio, at_least=0.0)
    weights = 1.0 + slope * (n_features - _ranks(n_features)) / n_features
    return weights / weights[0]


def linear(n_features: int) -> FloatArray:
    """Linearly falling weights ``(d - i + 1)/d``, from 1 to 1/d.

    Examples
    --------
    >>> import groupowl as go
    >>> go.weights.linear(4).tolist()
    [1.0, 0.75, 0.5, 0.25]
    """
    return (n_features - _ranks(n_features) + 1.0) / n_features


def constant(n_features: int) -> FloatArray:
    """Weights that are all 1: the multi-task lasso (L2,1 norm).

    Examples
    --------
    >>> import groupowl as go
    >>> go.weights.constant(3).tolist()
    [1.0, 1.0, 1.0]
    """
    return np.ones_like(_ranks(n_features))


def levels(n_features: int, counts: Any, ratios: Any) -> FloatArray:
    """Weights with two or more levels: 1 for the rows with the largest norms, lower values for the rows after them.

    With two or three levels, SLOPE predicts nearly as well as with the best of all sequences (Zhang and Bu 2021), and
    there are few such sequences to choose from. ``weights="levels"`` in a CV estimator chooses among nine: their upper
    levels have 2, 10 or 30 % of the features, and their lower weights are 0.9 and 0.7. Lower weights predicted worse in
    our experiments.

    Parameters
    ----------
    n_features : int
        Number of features d.
    counts : int or array-like of int
        How many weights each level has, except for the last one, which has the rest.
    ratios : float or array-like of float
        Weights of the second and the following levels, from 1 downwards to 0.

    Returns
    -------
    ndarray of shape (n_features,)

    References
    ----------
    Zhang, Bu: Efficient designs of SLOPE penalty sequences in finite dimension, AISTATS 2021.

    Examples
    --------
    >>> import groupowl as go
    >>> go.weights.levels(6, 2, 0.5).tolist()
    [1.0, 1.0, 0.5, 0.5, 0.5, 0.5]
    >>> go.weights.levels(6, [1, 2], [0.5, 0.2]).tolist()
    [1.0, 0.5, 0.5, 0.2, 0.2, 0.2]
    """
    d = positive_integer("n_features", n_features)
    sizes = [positive_integer("counts", count, minimum=0) for count in _listed(counts)]
    heights = [number_in("ratios", ratio, "[0, 1]") for ratio in _listed(ratios)]
    if not sizes or len(sizes) != len(heights):
        raise ValueError(
            f"counts and ratios must have one entry for each level but one, got counts={counts!r} and "
            f"ratios={ratios!r}: levels(n_features, 10, 0.5) has two levels."
        )
    if sum(sizes) > d or sizes[0] == 0:
        raise ValueError(f"counts must be positive and add up to at most n_features = {d}, got {counts!r}.")
    if any(np.diff([1.0, *heights]) > 0.0):
        raise ValueError(f"ratios must not rise, got {ratios!r}.")
    return np.repeat([1.0, *heights], [*sizes, d - sum(sizes)])


def _listed(values: Any) -> list[Any]:
    if isinstance(values, str) or not hasattr(values, "__iter__"):
        return [values]
    return list(values)


@dataclass(frozen=True)
class LevelShares:
    """:func:`levels` by shares of the features, for any number of them."""

    shares: tuple[float, ...]
    ratios: tuple[float, ...]

    def __call__(self, n_features: int) -> FloatArray:
        ends = [min(math.ceil(share * n_features), n_features) for share in self.shares]
        return levels(n_features, np.diff([0, *ends]).tolist(), self.ratios)

    def __str__(self) -> str:
        upper = ", ".join(f"{share:.0%}" for share in self.shares)
        lower = ", ".join(f"{ratio:g}" for ratio in self.ratios)
        return f"levels ({upper}; {lower})"


#: What "levels" stands for: the upper levels end at these shares of the features.
LEVELS = (
    *(LevelShares((share,), (ratio,)) for share in (0.02, 0.1, 0.3) for ratio in (0.9, 0.7)),
    *(LevelShares(shares, (0.9, 0.7)) for shares in ((0.02, 0.1), (0.02, 0.3), (0.1, 0.3))),
)


def bh(n_features: int, *, fdr: float = 0.1) -> FloatArray:
    """Benjamini-Hochberg (SLOPE) weights: normal quantiles at level ``1 - i fdr/(2 d)``.

    They are a shape, steep at the beginning, which groups rows with the largest norms. That they control false
    discoveries is a theorem for one task, orthogonal columns and an alpha that is not chosen from the data. By name
    they promise nothing, and nothing is checked. :func:`chi` and :func:`chi_gauss` are the sequences for that.

    Parameters
    ----------
    n_features : int
        Number of features d.
    fdr : float, default=0.1
        Level of the quantiles, strictly between 0 and 1; the smaller, the less steep.

    Returns
    -------
    ndarray of shape (n_features,)

    Examples
    --------
    >>> import groupowl as go
    >>> go.weights.bh(4).round(3).tolist()
    [1.0, 0.874, 0.794, 0.734]
    """
    return _scaled(_normal_quantiles(n_features, fdr))


def _normal_quantiles(n_features: int, fdr: float) -> FloatArray:
    level = number_in("fdr", fdr, "(0, 1)")
    return -ndtri(_ranks(n_features) * level / (2 * n_features))


def gaussian(n_features: int, n_samples: int, *, fdr: float = 0.1) -> FloatArray:
    """BH weights corrected for the noise of a random Gaussian design, flat after their minimum.

    ``g_i = bh_i sqrt(1 + sum_{j<i} g_j^2 / (n - i))``, the correction of the SLOPE paper; once the
    sequence would rise, it stays at its minimum. It is for one task: the norm of several normal variables is larger
    than the absolute value of one, and :func:`chi_gauss` knows how much. By name it is refused for several tasks.

    Parameters
    ----------
    n_features : int
        Number of features d.
    n_samples : int
        Number of samples n. By the name "gaussian", estimators and paths count the rows of X with a positive sample
        weight.
    fdr : float, default=0.1
        Target false discovery rate, strictly between 0 and 1.

    Returns
    -------
    ndarray of shape (n_features,)

    Examples
    --------
    >>> import groupowl as go
    >>> go.weights.gaussian(4, n_samples=50).round(3).tolist()
    [1.0, 0.919, 0.869, 0.832]
    """
    quantiles = _normal_quantiles(n_features, fdr)
    return _scaled(_corrected(quantiles, positive_integer("n_samples", n_samples), n_tasks=1))


def _corrected(
    quantiles: FloatArray, n_samples: int, n_tasks: int, *, size: float = 1.0, factor: float = 1.0
) -> FloatArray:
    """Quantiles made larger by the noise of units that were selected before, flat after their minimum.

    ``size`` columns and the penalty factor ``factor`` are those of each unit.
    """
    corrected = quantiles.copy()
    sum_of_squares = 0.0
    for i in range(1, len(corrected)):
        sum_of_squares += (factor * corrected[i - 1]) ** 2
        n_left = n_samples - size * i - 1.0
        if n_left > 0.0:
            corrected[i] *= np.sqrt(1.0 + sum_of_squares / (n_tasks * n_left))
        if n_left <= 0.0 or corrected[i] > corrected[i - 1]:
            corrected[i:] = corrected[i - 1]
            break
    return corrected


def chi(n_features: int, n_tasks: int, *, fdr: float = 0.1, group_sizes: Any = None) -> FloatArray:
    """Chi quantiles with ``n_tasks`` degrees of freedom at level ``1 - i fdr/d``, for row norms.

    Groups of columns with orthonormal columns have ``size * n_tasks`` degrees of freedom. Groups of unequal size need a
    scale each that makes their quantiles comparable, :func:`chi_factors`; the sequence for groups so scaled is
    ``max_g quantile_g(1 - i fdr/m) / factor_g``, which controls the false discovery rate where groups are orthogonal.

    Parameters
    ----------
    n_features : int
        Number of features d.
    n_tasks : int
        Number of tasks q: the norm of q standard normals has this distribution.
    fdr : float, default=0.1
        Target false discovery rate, strictly between 0 and 1.
    group_sizes : array-like of int of shape (n_features,), default=None
        Where the units of the penalty are groups: how many columns each has, or their rank.

    Returns
    -------
    ndarray of shape (n_features,)

    Examples
    --------
    >>> import groupowl as go
    >>> go.weights.chi(4, n_tasks=3).round(3).tolist()
    [1.0, 0.914, 0.859, 0.818]
    >>> go.weights.chi(4, n_tasks=1, group_sizes=[1, 1, 3, 3]).round(3).tolist()
    [1.0, 0.874, 0.794, 0.734]
    """
    return _scaled(_chi_quantiles(n_features, n_tasks, fdr, group_sizes))


def _chi_quantiles(n_features: int, n_tasks: int, fdr: float, group_sizes: Any) -> FloatArray:
    q = positive_integer("n_tasks", n_tasks)
    level = number_in("fdr", fdr, "(0, 1)")
    tails = _ranks(n_features) * level / n_features
    if group_sizes is None:
        return np.sqrt(chdtri(q, tails))
    sizes = _checked_sizes(group_sizes)
    if len(sizes) != n_features:
        raise ValueError(f"group_sizes must have one size for each of {n_features} groups, got {len(sizes)}.")
    kinds, factors = np.unique(sizes), chi_factors(np.unique(sizes), q, fdr=level, n_groups=n_features)
    return np.max(np.sqrt(chdtri(kinds[:, None] * q, tails)) / factors[:, None], axis=0)


def chi_gauss(
    n_features: int, n_tasks: int, n_samples: int, *, fdr: float = 0.1, group_sizes: Any = None
) -> FloatArray:
    """Chi quantiles corrected for the noise of a random Gaussian design, flat after their minimum.

    ``g_i = chi_i sqrt(1 + sum_{j<i} g_j^2 / (q (n - i)))``: what a column without an effect has in common with those
    that are selected adds to its noise, in each of q tasks alike. Once the sequence would rise, it stays at its
    minimum. With one task this is :func:`gaussian`.

    Parameters
    ----------
    n_features : int
        Number of features d.
    n_tasks : int
        Number of tasks q.
    n_samples : int
        Number of samples n. By the name "chi_gauss", estimators and paths count the rows of X with a positive sample
        weight.
    fdr : float, default=0.1
        Target false discovery rate, strictly between 0 and 1.
    group_sizes : array-like of int of shape (n_features,), default=None
        Where the units of the penalty are groups: how many columns each has, or their rank. As for :func:`chi`, groups
        of unequal size need :func:`chi_factors`; selected ones count with their average size.

    Returns
    -------
    ndarray of shape (n_features,)

    Notes
    -----
    The false discovery rate is near ``fdr`` where columns are independent, noise is normal and has the same deviation
    in all tasks, and alpha is the first quantile times that deviation (over the root of n, for standardized columns):
    :class:`~groupowl.inference.SlopeSelector` estimates the noise and does all of it. Nothing is controlled where
    columns are correlated, or alpha is chosen by cross-validation.

    Examples
    --------
    >>> import groupowl as go
    >>> go.weights.chi_gauss(4, n_tasks=3, n_samples=50).round(3).tolist()
    [1.0, 0.944, 0.912, 0.89]
    """
    quantiles = _chi_quantiles(n_features, n_tasks, fdr, group_sizes)
    n = positive_integer("n_samples", n_samples)
    if group_sizes is None:
        return _scaled(_corrected(quantiles, n, n_tasks))
    sizes = _checked_sizes(group_sizes)
    factors = chi_factors(sizes, n_tasks, fdr=fdr)
    mean_factor = float(np.sqrt(np.mean(factors**2)))
    return _scaled(_corrected(quantiles, n, n_tasks, size=float(sizes.mean()), factor=mean_factor))


def first_quantile(n_features: int, n_tasks: int, fdr: float) -> float:
    """What :func:`chi` and :func:`chi_gauss` divide by: the largest weight for noise of deviation 1."""
    return float(_chi_quantiles(n_features, n_tasks, fdr, None)[0])


def chi_factors(group_sizes: Any, n_tasks: int, *, fdr: float = 0.1, n_groups: int | None = None) -> FloatArray:
    """Penalty factors for groups of unequal size, so that all are equally likely to be selected falsely.

    The factors are chi quantiles at ``1 - 10 fdr/m``.

    They belong to :func:`chi` with ``group_sizes``, as ``penalty_factor`` of the columns of each group, where the
    columns of a group are orthonormal: ``group_scale="orthonormal"`` makes them so, with deviation 1.

    Parameters
    ----------
    group_sizes : array-like of int of shape (n_groups,)
        Number of columns of each group, or their rank.
    n_tasks : int
        Number of tasks.
    fdr : float, default=0.1
        Target false discovery rate, strictly between 0 and 1.
    n_groups : int, default=None
        Number m of groups, where ``group_sizes`` are not those of all.

    Returns
    -------
    ndarray of shape (n_groups,)
        Factors of the penalty of each group.

    Examples
    --------
    >>> import groupowl as go
    >>> go.weights.chi_factors([1, 3, 10], n_tasks=1, n_groups=300).round(3).tolist()
    [2.935, 3.702, 5.13]
    """
    sizes, q = _checked_sizes(group_sizes), positive_integer("n_tasks", n_tasks)
    m = positive_integer("n_groups", len(sizes) if n_groups is None else n_groups)
    tail = min(10.0 * number_in("fdr", fdr, "(0, 1)") / m, 0.5)  # with few groups the median
    return np.sqrt(chdtri(sizes * q, tail))


def _checked_sizes(group_sizes: Any) -> FloatArray:
    sizes = as_float_array("group_sizes", group_sizes, ndim=(1,))
    if len(sizes) == 0 or not np.all((sizes >= 1.0) & (sizes == np.round(sizes))):
        raise ValueError(f"group_sizes must be positive whole numbers, got {group_sizes!r}.")
    return sizes


def _scaled(weights: FloatArray) -> FloatArray:
    # The first weight is 1, so alpha is what the largest row pays per unit of norm.
    return weights / weights[0]


def oscar_lam(n_features: int, alpha_1: float, alpha_2: float) -> FloatArray:
    """OSCAR weights in the paper's parametrization, ``lam_i = alpha_1 + alpha_2 (d - i)``, unscaled.

    Parameters
    ----------
    n_features : int
        Number of features d.
    alpha_1, alpha_2 : float
        Non-negative, not both zero; the paper uses ``alpha_2 = alpha_1 / d``.

    Returns
    -------
    ndarray of shape (n_features,)

    Examples
    --------
    >>> import groupowl as go
    >>> go.oscar_lam(3, 1.0, 0.5)
    array([2. , 1.5, 1. ])
    """
    level = finite_number("alpha_1", alpha_1, at_least=0.0)
    slope = finite_number("alpha_2", alpha_2, at_least=0.0)
    if level == slope == 0.0:
        raise ValueError("alpha_1 and alpha_2 must not both be zero: the penalty would vanish.")
    return level + slope * (n_features - _ranks(n_features))


# By name: the function, and what it takes beside the number of features.
_NAMED: dict[str, tuple[Callable[..., FloatArray], tuple[str, ...]]] = {
    "oscar": (oscar, ()),
    "linear": (linear, ()),
    "constant": (constant, ()),
    "lasso": (constant, ()),  # what it is elsewhere: the (multi-task) lasso
    "bh": (bh, ()),
    "gaussian": (gaussian, ("n_samples",)),
    "chi": (chi, ("n_tasks",)),
    "chi_gauss": (chi_gauss, ("n_tasks", "n_samples")),
}


def resolve_weights(
    spec: Any,
    *,
    n_features: int,
    n_tasks: int,
    n_samples: int,
    n_directions: int | None = None,
    per: str = "feature",
) -> FloatArray:
    """Weights from a name, an array (used as it is) or ``f(n_features, n_tasks=, n_samples=)``.

    ``n_directions`` is the dimension of a row of ``B``: that of tasks by default, one less for classes. Messages speak
    of weights ``per`` this.
    """
    sizes = {"n_tasks": n_tasks, "n_samples": n_samples}
    if callable(spec):
        spec = spec(n_features, **_accepted(spec, sizes))
    if isinstance(spec, str):
        if spec == "levels":
            raise ValueError(
                f"weights='levels' stands for {len(LEVELS)} sequences to choose from, which needs an estimator with CV "
                "at the end of its name, for example GroupOWLRegressorCV. For one of them give "
                "go.weights.levels(n_features, counts, ratios)."
            )
        named, more = lookup("weights", spec, _NAMED)
        if named is gaussian and (n_tasks if n_directions is None else n_directions) > 1:
            raise ValueError(
                f"weights='gaussian' is for one task, and there are {n_tasks}: norms of several coefficients are "
                "larger than normal quantiles allow for, and too many false features would be selected. "
                "Use weights='chi_gauss', which is the same for several tasks."
            )
        return named(n_features, *map(sizes.__getitem__, more))
    if is_list_of_sequences(spec) and spec:
        first = repr(spec[0]) if isinstance(spec[0], str) else f"an entry of type {type(spec[0]).__name__}"
        raise TypeError(
            f"weights must be one weight sequence here, got a list of {len(spec)} that begins with {first}. "
            "A list to choose from needs the estimators with CV at the end: GroupOWLRegressorCV, GroupOWLClassifierCV."
        )
    return check_sequence("weights", spec, n_features, per=per)


def is_list_of_sequences(spec: Any) -> bool:
    """Whether this is a list of sequences, to choose from, and not one sequence as a list of numbers."""
    return isinstance(spec, list | tuple) and not (spec and isinstance(spec[0], numbers.Real))


def sequences_of(spec: Any) -> list[Any]:
    """All sequences that an estimator is to choose from, each by a name, an array or a function."""
    found: list[Any] = []
    for item in spec if is_list_of_sequences(spec) else [spec]:
        found.extend(LEVELS if isinstance(item, str) and item == "levels" else [item])
    return found


def sequence_names(spec: Any) -> list[str]:
    """What to call each of :func:`sequences_of`: names, or what kind of thing it is and its number."""
    names = []
    for i, item in enumerate(sequences_of(spec), start=1):
        if isinstance(item, str | LevelShares):
            names.append(str(item))
        else:
            names.append(f"{'function' if callable(item) else 'array'} {i}")
    return names


def _accepted(function: Any, arguments: dict[str, int]) -> dict[str, int]:
    """Those of the arguments that a function takes by name; all where it does not say."""
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):  # built-in functions may have no signature
        return arguments
    if any(item.kind is item.VAR_KEYWORD for item in parameters.values()):
        return arguments
    return {name: value for name, value in arguments.items() if name in parameters}


def check_sequence(argument: str, values: Any, n_features: int, *, per: str = "feature") -> FloatArray:
    """``values`` as OWL weights: finite, non-negative, non-increasing, not all zero, one per feature.

    The largest is at most 1e150 times the smallest that is positive, and their sum is finite: beyond, some would
    vanish, and nothing could be proved.
    """
    if type(values) is np.ndarray and values.shape == (n_features,) and are_ordinary(values):
        return values
    if isinstance(values, numbers.Real):
        raise ValueError(
            f"{argument} must be 1-dimensional, one weight per feature, got the number {float(values)!r}. "
            f"Use a sequence, for example {float(values)!r} * go.weights.oscar(n_features)."
        )
    sequence = nonnegative_weights(argument, values, n_features, per=per)
    if n_features == 0:
        raise ValueError(f"{argument} is empty: at least one weight is needed.")
    rises = np.flatnonzero(np.diff(sequence) > 0)
    if len(rises):
        j = int(rises[0])
        raise ValueError(
            f"{argument} must be non-increasing, but {argument}[{j + 1}] = {float(sequence[j + 1])!r} exceeds "
            f"{argument}[{j}] = {float(sequence[j])!r}; sort it downwards, for example np.sort({argument})[::-1]."
        )
    if sequence[0] == 0:
        raise ValueError(
            f"{argument} is all zero: without a penalty there is nothing to certify. Use a positive first "
            f"weight, or an unpenalized model."
        )
    check_strengths(argument, sequence[sequence > 0.0])
    return sequence


def are_ordinary(values: FloatArray) -> bool:
    """Whether an array holds weights that need no closer look: falling, positive, and far from all limits."""
    if values.dtype != np.float64 or len(values) == 0 or not 1e-70 < values[-1] <= values[0] < 1e70:
        return False
    return bool((values[1:] <= values[:-1]).all())


def check_strengths(argument: str, strengths: FloatArray) -> None:
    """Refuse what rows pay per unit of norm, where it is something, if sums overflow or smaller ones vanish."""
    largest, smallest = float(strengths.max()), float(strengths.min())
    with np.errstate(over="ignore"):
        total = strengths.sum()
    if not np.isfinite(total):
        raise ValueError(f"{argument} is so large that its sum overflows: its largest entry is {largest!r}.")
    if smallest < np.finfo(np.float64).tiny:
        raise ValueError(f"{argument} is so small that it vanishes: its smallest positive entry is {smallest!r}.")
    if smallest < largest / LARGEST_FACTOR:
        raise ValueError(
            f"{argument} has positive entries from {largest!r} down to {smallest!r}: beside the largest the smallest "
            f"vanish. Make those that are less than 1/{LARGEST_FACTOR:g} of the largest zero."
        )
