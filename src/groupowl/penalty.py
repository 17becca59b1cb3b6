"""The Group OWL penalty ``J(B) = sum_i lam_i ||B_[i],:||_2`` and what it says about a matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ._checks import LARGEST_FACTOR, finite_matrix, finite_number
from ._kernels import cluster_labels, owl_gauge, owl_value, prox_units, unit_norms
from ._typing import FloatArray, IndexArray
from .weights import check_sequence


@dataclass(frozen=True, eq=False)
class GroupOWL:
    """Group OWL penalty with weights ``lam`` (non-increasing, non-negative, one per row of ``B``).

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

    def __post_init__(self) -> None:
        object.__setattr__(self, "lam", check_sequence("lam", self.lam, int(np.size(self.lam))))

    def value(self, B: FloatArray) -> float:
        """``J(B)``: the row norms sorted downwards, times the weights."""
        return owl_value(unit_norms(B), self.lam)

    def dual_norm(self, C: FloatArray) -> float:
        """``max_k (sum of the k largest row norms) / (lam_1 + ... + lam_k)``; J's dual norm."""
        return owl_gauge(unit_norms(C), self.lam)

    def prox(self, V: FloatArray, step: float = 1.0) -> FloatArray:
        """Minimiser over ``P`` of ``||P - V||^2 / 2 + step J(P)``; its zero rows are exact."""
        return prox_units(V, step * self.lam)

    def clusters(self, B: FloatArray) -> IndexArray:
        """Label of each row: rows of equal norm share one, 1 for the largest norm, 0 for zero rows."""
        return cluster_labels(unit_norms(B))


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
    """Proximal map of the Group OWL norm: minimiser of ``||P - V||^2 / 2 + step J(P)``.

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
