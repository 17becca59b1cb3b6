"""The Group OWL penalty ``J(B) = sum_i lam_i ||B_[i]||``: the owner of units, and all that it says about a matrix.

A *unit* is what the penalty counts as one: a row of ``B``, or several rows, wherever they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self, TypeVar, cast

import numpy as np

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
    units : array-like of int of shape (n_rows,), default=None
        The unit of each row of ``B``, from 0; by default every row is a unit.
    ridge : float, default=0.0
        Adds ``ridge/2 ||B||_F^2``.
    signs : array-like of shape (n_rows,), default=None
        1 where all entries of a row must not be negative, -1 where they must not be positive, 0 where they may be
        anything. What is outside of these cones K has an infinite penalty.

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
    units: IndexArray | None = None
    ridge: float = 0.0
    signs: FloatArray | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "lam", check_sequence("lam", self.lam, int(np.size(self.lam))))
        if self.units is not None:
            units = np.asarray(self.units, dtype=np.intp)
            if units.ndim != 1 or not _are_numbers(units, len(self.lam)):
                raise ValueError(
                    f"units must have the numbers 0 to {len(self.lam) - 1}, one per weight, each at least once."
                )
            object.__setattr__(self, "units", units)
        if not 0.0 <= self.ridge < np.inf:
            raise ValueError(f"ridge must be a finite number that is not negative, got {self.ridge!r}.")
        if self.signs is not None:
            signs = np.asarray(self.signs, dtype=np.float64)
            if signs.shape != (self.n_rows,) or not np.isin(signs, (-1.0, 0.0, 1.0)).all():
                raise ValueError(f"signs must be 1, -1 or 0 for each of {self.n_rows} rows.")
            object.__setattr__(self, "signs", signs)

    def with_lam(self, lam: FloatArray) -> Self:
        """The same units with other weights, which are not checked again."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__, lam=lam)
        return other

    def restrict(self, units: IndexArray) -> Self:
        """The penalty of some units, ascending; those left out are zero and take the smallest weights with them."""
        other = self.with_lam(self.lam[: len(units)])
        if self.units is not None:
            numbers = np.cumsum(_mask(units, self.n_units)) - 1
            object.__setattr__(other, "units", numbers[self.units[self.rows(units)]])
        if self.signs is not None:
            object.__setattr__(other, "signs", self.signs[self.rows(units)])
        return other

    def without_ridge(self) -> Self:
        """The same without the ridge."""
        if self.ridge == 0.0:
            return self
        other = self.with_lam(self.lam)
        object.__setattr__(other, "ridge", 0.0)
        return other

    @property
    def is_norm(self) -> bool:
        """Whether the penalty is the norm alone, without ridge or signs."""
        return self.ridge == 0.0 and self.signs is None

    @property
    def n_units(self) -> int:
        """Number of units."""
        return len(self.lam)

    @property
    def n_rows(self) -> int:
        """Number of rows of ``B`` that are penalized: columns of X."""
        return len(self.lam if self.units is None else self.units)

    @property
    def rows_are_units(self) -> bool:
        """Whether every row is a unit of its own."""
        return self.units is None

    @property
    def unit_starts(self) -> IndexArray | None:
        """Where units begin, and the number of rows; None where the rows of a unit do not follow each other."""
        if self.units is None:
            return np.arange(self.n_rows + 1)
        steps = np.diff(self.units, prepend=-1, append=self.n_units)
        return np.flatnonzero(steps) if np.all(steps >= 0) else None

    def rows(self, units: IndexArray) -> IndexArray:
        """Rows of ``B``, which are columns of X, that form these units, ascending where the units are."""
        if self.units is None:
            return units
        return np.flatnonzero(_mask(units, self.n_units)[self.units])

    def norms(self, B: FloatArray) -> FloatArray:
        """Norm of each unit of ``B``."""
        norms = row_norms(B)
        return norms if self.units is None else np.sqrt(self.sums(norms * norms))

    def sums(self, values: FloatArray) -> FloatArray:
        """For each unit, the sum of the values of its rows, one each or one for each task."""
        if self.units is None:
            return values
        if values.ndim == 1:
            return np.bincount(self.units, values, minlength=self.n_units).astype(np.float64, copy=False)
        return np.stack([self.sums(column) for column in values.T], axis=1)

    def lengths(self, values: FloatArray) -> FloatArray:
        """For each unit, the root of the sum of the squares of one non-negative value per row."""
        return values if self.units is None else self.norms(values[:, None])

    def nonzero(self, B: FloatArray) -> BoolArray:
        """Which units of ``B`` are not zero."""
        rows = nonzero_rows(B)
        return rows if self.units is None else _mask(self.units[rows], self.n_units)

    def of_units(self, rows: BoolArray) -> BoolArray:
        """Which units have all of their rows among these."""
        return rows if self.units is None else ~_mask(self.units[~rows], self.n_units)

    def spread(self, values: AnyArray) -> AnyArray:
        """One value per row from one per unit."""
        return values if self.units is None else cast(AnyArray, values[self.units])

    def value(self, B: FloatArray) -> float:
        """``J(B)``: the norms of the units sorted downwards, times the weights; with the ridge, infinite outside K."""
        if self.signs is not None and np.any(self.signs[:, None] * B < 0.0):
            return np.inf
        value = owl_value(self.norms(B), self.lam)
        return value + self.ridge_value(B) if self.ridge > 0.0 else value

    def ridge_value(self, B: FloatArray) -> float:
        """``ridge/2 ||B||_F^2``."""
        return 0.5 * self.ridge * float(np.add.reduce(B * B, axis=None))

    def projected(self, V: FloatArray) -> FloatArray:
        """The nearest point of the cones K: entries of a wrong sign become zero."""
        return V if self.signs is None else np.where(self.signs[:, None] * V < 0.0, 0.0, V)

    def correlations(self, C: FloatArray) -> FloatArray:
        """Norm of each unit of ``X^T theta``, which optimality compares with the weights: of its projection onto K."""
        return self.norms(self.projected(C))

    def conjugate(self, C: FloatArray) -> tuple[float, FloatArray]:
        """``sup_B <C, B> - J(B) - ridge/2 ||B||^2`` over K, for a positive ridge, and the ``B`` where it is.

        It is ``||prox_J(P_K C)||^2 / (2 ridge)``, because J is homogeneous: half the squared distance from the dual
        ball, over the ridge.
        """
        B = self.without_ridge().prox(C) / self.ridge
        return self.ridge_value(B), B

    def gauge(self, norms: FloatArray) -> float:
        """The dual norm of anything with these norms of its units."""
        return owl_gauge(norms, self.lam)

    def dual_norm(self, C: FloatArray) -> float:
        """``max_k (sum of the k largest norms of units) / (lam_1 + ... + lam_k)``; J's dual norm, on K."""
        return owl_gauge(self.correlations(C), self.lam)

    def prox(self, V: FloatArray, step: float = 1.0) -> FloatArray:
        """Minimizer over ``P`` of ``||P - V||^2 / 2 + step J(P)``; its zero rows are exact.

        A ridge shrinks point and step before, and the nearest point of K stands for one outside.
        """
        V = self.projected(V)
        if self.ridge > 0.0:
            shrinking = 1.0 / (1.0 + step * self.ridge)
            V, step = shrinking * V, shrinking * step
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
        if self.signs is not None:
            V[self.signs[:, None] * V < 0.0] = 0.0
        if self.ridge > 0.0:
            shrinking = 1.0 / (1.0 + step * self.ridge)
            V *= shrinking
            step *= shrinking
        norms = self.norms(V)
        factors, value = prox_and_value(norms, self.lam, step)
        factors /= np.maximum(norms, TINY)
        V *= self.spread(factors)[:, None]
        return value + self.ridge_value(V) if self.ridge > 0.0 else value

    def candidates(self, norms: FloatArray) -> IndexArray:
        """Units that could be non-zero if these were the norms of the units of ``X^T theta*``, ascending."""
        return kkt_rows(norms, self.lam)

    def clusters(self, B: FloatArray) -> IndexArray:
        """Label of each row: units of equal norm share one, 1 for the largest norm, 0 for rows that are zero."""
        labels = cluster_labels(self.norms(B))
        return labels if self.units is None else np.where(nonzero_rows(B), labels[self.units], 0)


def _are_numbers(units: IndexArray, count: int) -> bool:
    """Whether these are the numbers below a count, each at least once."""
    in_range = len(units) > 0 and units.min() >= 0 and units.max() < count
    return bool(in_range and np.bincount(units, minlength=count).all())


def _mask(indices: IndexArray, size: int) -> BoolArray:
    mask = np.zeros(size, dtype=bool)
    mask[indices] = True
    return mask
