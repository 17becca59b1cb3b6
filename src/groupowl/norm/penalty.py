"""The Group OWL penalty ``J(B) = sum_i lam_i ||B_[i]||``: the owner of units, and all that it says about a matrix.

A *unit* is what the penalty counts as one: a row of ``B``, or several rows that follow each other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self, TypeVar, cast

import numpy as np

from .._checks import LARGEST_FACTOR, finite_matrix, finite_number
from .._typing import BoolArray, FloatArray, IndexArray
from ..weights import check_sequence
from .kernels import (
    TINY,
    cluster_labels,
    kkt_rows,
    nonzero_rows,
    owl_gauge,
    owl_value,
    prox_and_value,
    repeated_test,
    row_norms,
)

AnyArray = TypeVar("AnyArray", bound=np.ndarray[Any, Any])


@dataclass(frozen=True, eq=False)
class GroupOWL:
    """Group OWL penalty with weights ``lam`` (non-increasing, non-negative, one per unit).

    Parameters
    ----------
    lam : array-like of shape (n_units,)
        Weights; the unit with the largest norm pays the first.
    sizes : array-like of int of shape (n_units,), default=None
        Rows of ``B`` in each unit, in their order; by default every row is a unit.

    Examples
    --------
    >>> import numpy as np
    >>> import groupowl as go
    >>> penalty = go.GroupOWL([2.0, 1.0])
    >>> B = np.array([[0.0, 1.0], [3.0, 4.0]])
    >>> penalty.value(B), penalty.dual_norm(B)
    (11.0, 2.5)
    """

    lam: FloatArray
    sizes: IndexArray | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "lam", check_sequence("lam", self.lam, int(np.size(self.lam))))
        if self.sizes is not None:
            sizes = np.asarray(self.sizes, dtype=np.intp)
            if sizes.shape != self.lam.shape or sizes.min() < 1:
                raise ValueError(f"sizes must have a positive number of rows for each of {len(self.lam)} units.")
            object.__setattr__(self, "sizes", sizes)

    def with_lam(self, lam: FloatArray) -> Self:
        """The same units with other weights, which are not checked again."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__, lam=lam)
        return other

    def restrict(self, units: IndexArray) -> Self:
        """The penalty of some of the units; those left out are zero and take the smallest weights with them."""
        other = self.with_lam(self.lam[: len(units)])
        if self.sizes is not None:
            object.__setattr__(other, "sizes", self.sizes[units])
        return other

    @property
    def n_units(self) -> int:
        """Number of units."""
        return len(self.lam)

    @property
    def n_rows(self) -> int:
        """Number of rows of ``B`` that are penalized: columns of X."""
        return len(self.lam) if self.sizes is None else int(self.sizes.sum())

    def rows(self, units: IndexArray) -> IndexArray:
        """Rows of ``B``, which are columns of X, that form these units, in the order of the units."""
        if self.sizes is None:
            return units
        ends = np.cumsum(self.sizes)
        return np.concatenate([np.arange(ends[k] - self.sizes[k], ends[k]) for k in units] or [units])

    def norms(self, B: FloatArray) -> FloatArray:
        """Norm of each unit of ``B``."""
        norms = row_norms(B)
        if self.sizes is None:
            return norms
        starts = np.cumsum(self.sizes) - self.sizes
        return np.sqrt(np.add.reduceat(norms * norms, starts))

    def lengths(self, values: FloatArray) -> FloatArray:
        """For each unit, the root of the sum of the squares of one non-negative value per row."""
        return values if self.sizes is None else self.norms(values[:, None])

    def nonzero(self, B: FloatArray) -> BoolArray:
        """Which units of ``B`` are not zero."""
        rows = nonzero_rows(B)
        return rows if self.sizes is None else np.logical_or.reduceat(rows, np.cumsum(self.sizes) - self.sizes)

    def of_units(self, rows: BoolArray) -> BoolArray:
        """Which units have all of their rows among these."""
        return rows if self.sizes is None else np.logical_and.reduceat(rows, np.cumsum(self.sizes) - self.sizes)

    def spread(self, values: AnyArray) -> AnyArray:
        """One value per row from one per unit."""
        return values if self.sizes is None else cast(AnyArray, np.repeat(values, self.sizes))

    def value(self, B: FloatArray) -> float:
        """``J(B)``: the norms of the units sorted downwards, times the weights."""
        return owl_value(self.norms(B), self.lam)

    def gauge(self, norms: FloatArray) -> float:
        """The dual norm of anything with these norms of its units."""
        return owl_gauge(norms, self.lam)

    def dual_norm(self, C: FloatArray) -> float:
        """``max_k (sum of the k largest norms of units) / (lam_1 + ... + lam_k)``; J's dual norm."""
        return owl_gauge(self.norms(C), self.lam)

    def prox(self, V: FloatArray, step: float = 1.0) -> FloatArray:
        """Minimizer over ``P`` of ``||P - V||^2 / 2 + step J(P)``; its zero rows are exact."""
        norms = self.norms(V)
        if not np.isfinite(norms.sum()):  # a diverged point stays one: zeros would look like an answer
            return np.full_like(V, np.nan)
        lam = step * self.lam
        units = repeated_test(norms, lam)  # a unit below its own weight in the order cannot be selected
        factors = np.zeros_like(norms)
        factors[units] = prox_and_value(norms[units], lam, 1.0)[0] / np.maximum(norms[units], TINY)
        P = np.zeros_like(V)
        rows = np.flatnonzero(self.spread(factors))
        P[rows] = V[rows] * self.spread(factors)[rows, None]
        return P

    def shrink(self, V: FloatArray, step: float) -> float:
        """The same in the memory of ``V``, and ``J`` there, for steps of solvers: overflow is not looked for."""
        norms = self.norms(V)
        factors, value = prox_and_value(norms, self.lam, step)
        factors /= np.maximum(norms, TINY)
        V *= self.spread(factors)[:, None]
        return value

    def candidates(self, norms: FloatArray) -> IndexArray:
        """Units that could be non-zero if these were the norms of the units of ``X^T theta*``, ascending."""
        return kkt_rows(norms, self.lam)

    def clusters(self, B: FloatArray) -> IndexArray:
        """Label of each row: units of equal norm share one, 1 for the largest norm, 0 for units that are zero."""
        return self.spread(cluster_labels(self.norms(B)))


def _rows_and_penalty(argument: str, B: Any, lam: Any) -> tuple[FloatArray, GroupOWL]:
    rows = finite_matrix(argument, B, remedy="Every entry must be a finite number.")
    if np.abs(rows).max(initial=0.0) > LARGEST_FACTOR:
        raise ValueError(f"{argument} has entries above {LARGEST_FACTOR:g}, whose squares overflow; rescale it.")
    penalty = GroupOWL(lam)
    if len(penalty.lam) != len(rows):
        raise ValueError(
            f"lam must have one weight per row of {argument}: {argument} has {len(rows)} rows, lam has length "
            f"{len(penalty.lam)}."
        )
    return rows, penalty


@np.errstate(all="ignore")
def owl_norm(B: Any, lam: Any) -> float:
    """Group OWL norm ``sum_i lam_i ||B_[i],:||_2``.

    Parameters
    ----------
    B : array-like of shape (n_features, n_tasks) or (n_features,)
        Coefficients; a 1-D array is one task (the OWL, or SLOPE, norm).
    lam : array-like of shape (n_features,)
        Non-increasing, non-negative weights, not all zero.

    Returns
    -------
    float

    Examples
    --------
    >>> import groupowl as go
    >>> go.owl_norm([[3.0, 4.0], [0.0, 1.0]], [2.0, 1.0])
    11.0
    """
    rows, penalty = _rows_and_penalty("B", B, lam)
    return penalty.value(rows)


@np.errstate(all="ignore")
def owl_dual_norm(C: Any, lam: Any) -> float:
    """Dual norm ``max_k (sum of the k largest ||C_j||) / (lam_1 + ... + lam_k)``.

    Parameters
    ----------
    C : array-like of shape (n_features, n_tasks) or (n_features,)
        Correlations, usually ``X^T theta``; ``theta`` is dual feasible where the result is at most 1.
    lam : array-like of shape (n_features,)
        Non-increasing, non-negative weights, not all zero.

    Returns
    -------
    float

    Examples
    --------
    >>> import groupowl as go
    >>> go.owl_dual_norm([[3.0, 4.0], [0.0, 1.0]], [2.0, 1.0])
    2.5
    """
    rows, penalty = _rows_and_penalty("C", C, lam)
    return penalty.dual_norm(rows)


@np.errstate(all="ignore")
def owl_prox(V: Any, lam: Any, *, step: float = 1.0) -> FloatArray:
    """Proximal map of the Group OWL norm: minimizer of ``||P - V||^2 / 2 + step J(P)``.

    Parameters
    ----------
    V : array-like of shape (n_features, n_tasks) or (n_features,)
        Point to map.
    lam : array-like of shape (n_features,)
        Non-increasing, non-negative weights, not all zero.
    step : float, default=1.0
        Factor of the norm.

    Returns
    -------
    ndarray of the shape of V
        Zero rows are exactly zero.

    Examples
    --------
    >>> import groupowl as go
    >>> go.owl_prox([5.0, 4.5, 0.5], [2.0, 1.0, 1.0])
    array([3.25, 3.25, 0.  ])
    """
    rows, penalty = _rows_and_penalty("V", V, lam)
    P = penalty.prox(rows, finite_number("step", step, above=0.0))
    return P if np.ndim(V) == 2 else P[:, 0]
