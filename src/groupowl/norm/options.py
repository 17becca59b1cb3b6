"""How the penalty sees the columns of X: which of them form a unit, and how they are scaled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._text import listed
from .._typing import BoolArray, FloatArray, IndexArray
from .penalty import GroupOWL

#: Ways to scale groups of two columns or more; groups of one stay as they are.
GROUP_SCALES = ("size", "none", "frobenius", "orthonormal")


@dataclass(frozen=True, eq=False)
class PenaltyOptions:
    """Checked options of the penalty other than its weights, for each column of X.

    Groups, scales and factors are a change of the columns: the penalty stays a Group OWL norm of the coefficients of
    the scaled columns, and coefficients are published on the scale of X as it was given.

    Attributes
    ----------
    feature_groups : ndarray of int of shape (n_features,) or None
        The group of each column, numbered by their first columns; None where every column is one.
    group_names : tuple of str
        What the groups are called; empty without groups.
    group_scale : {"size", "none", "frobenius", "orthonormal"} or tuple of these
        How the columns of a group of two or more are scaled, or one for each group. "size" divides by the root of their
        number, "frobenius" by the root of the sum of their variances (and not each by its own deviation);
        "orthonormal" takes uncorrelated combinations of deviation 1 in their place.
    penalty_factor : ndarray of shape (n_features,) or None
        Columns are divided by it; 0 is not penalized, infinity is left out. None means all ones.
    ridge : float
        ``ridge/2 ||B||_F^2`` is added, of the coefficients that the penalty sees.
    signs : ndarray of shape (n_features,) or None
        1 for columns whose coefficients must not be negative, -1 where not positive, 0 for all others.
    """

    feature_groups: IndexArray | None = None
    group_names: tuple[str, ...] = ()
    group_scale: str | tuple[str, ...] = "size"
    penalty_factor: FloatArray | None = None
    ridge: float = 0.0
    signs: FloatArray | None = None

    @property
    def groups_of_columns(self) -> Any:
        """The name of the group of each column; None without groups."""
        return None if self.feature_groups is None else np.array(self.group_names)[self.feature_groups]

    @property
    def scales_columns(self) -> bool:
        """Whether columns are changed at all."""
        return self.feature_groups is not None or self.penalty_factor is not None

    @property
    def depends_on_data(self) -> bool:
        """Whether how columns are scaled depends on what is in them."""
        how = {self.group_scale} if isinstance(self.group_scale, str) else set(self.group_scale)
        return self.feature_groups is not None and not how <= {"size", "none"}

    @property
    def is_plain(self) -> bool:
        """Whether nothing was asked for."""
        return not self.scales_columns and self.ridge == 0.0 and self.signs is None

    def with_unpenalized(self, columns: IndexArray | None) -> IndexArray:
        """Columns without penalty: these, and those whose factor is zero."""
        known = np.zeros(0, dtype=np.intp) if columns is None else columns
        if self.penalty_factor is None:
            return known
        return np.union1d(known, np.flatnonzero(self.penalty_factor == 0.0)).astype(np.intp)

    def restrict(self, columns: IndexArray) -> PenaltyOptions:
        """Options for a subset of the columns (ascending); groups keep the members that are in it."""
        groups, names, how = self.feature_groups, self.group_names, self.group_scale
        if groups is not None:
            groups = groups[columns]
            kept = groups[np.sort(np.unique(groups, return_index=True)[1])]
            names = tuple(names[k] for k in kept)
            how = how if isinstance(how, str) else tuple(how[k] for k in kept)
            groups = numbered_by_first(groups)
        factor, signs = (None if values is None else values[columns] for values in (self.penalty_factor, self.signs))
        return PenaltyOptions(groups, names, how, factor, self.ridge, signs)

    def units(self, unpenalized: IndexArray) -> IndexArray | None:
        """The unit of each column, where columns without penalty are alone; None where all are."""
        groups = self.feature_groups
        if groups is None:
            return None
        if len(unpenalized) == 0:
            return groups
        self._check_unpenalized(groups, unpenalized)
        labels = groups.copy()
        labels[unpenalized] = len(groups) + unpenalized
        return numbered_by_first(labels)

    def _check_unpenalized(self, groups: IndexArray, unpenalized: IndexArray) -> None:
        """Refuse groups of which some columns are penalized and some are not."""
        sizes = np.bincount(groups)
        free = np.bincount(groups[unpenalized], minlength=len(sizes))
        mixed = np.flatnonzero((free > 0) & (free < sizes))
        if len(mixed):
            names = listed([self.group_names[k] for k in mixed])
            raise ValueError(
                f"feature_groups: only some columns of the group {names} are unpenalized. A group is penalized as a "
                "whole, or not at all: give the unpenalized columns a group of their own."
            )

    def penalty(self, lam: FloatArray, unpenalized: IndexArray) -> GroupOWL:
        """The penalty with these weights of all units."""
        signs = self.signs
        if signs is not None and len(unpenalized):
            signs = signs.copy()
            signs[unpenalized] = 0.0  # which are zero in the problem
        return GroupOWL(lam, self.units(unpenalized), self.ridge, signs)

    def n_units(self, n_features: int, unpenalized: IndexArray) -> int:
        """Number of units, those of columns without penalty included."""
        units = self.units(unpenalized)
        return n_features if units is None else int(units.max()) + 1

    def scaled(self, inverse_scale: FloatArray, deviation: FloatArray) -> FloatArray:
        """Column factors with penalty factors and group scales applied, given the factors of standardization."""
        factors = inverse_scale.copy()
        groups, is_mixed = self.feature_groups, np.zeros(len(factors), dtype=bool)
        if groups is not None:
            sizes, is_mixed = np.bincount(groups), self._scaled_by("orthonormal")
            by_size = self._scaled_by("size")
            factors[by_size] /= np.sqrt(sizes[groups[by_size]])
            whole = np.sqrt(np.bincount(groups, deviation**2))[groups]
            by_norm = self._scaled_by("frobenius") & (factors > 0.0) & (whole > 0.0)
            factors[by_norm] = 1.0 / whole[by_norm]
        if self.penalty_factor is not None:
            penalized = (self.penalty_factor > 0.0) & ~is_mixed  # which would undo it
            factors[penalized] /= self.penalty_factor[penalized]
        return factors

    def _scaled_by(self, name: str) -> BoolArray:
        """Columns of groups of two or more that are scaled in this way."""
        groups = self.feature_groups
        assert groups is not None
        sizes = np.bincount(groups)
        how = np.full(len(sizes), self.group_scale) if isinstance(self.group_scale, str) else self.group_scale
        return ((sizes > 1) & (np.asarray(how) == name))[groups]

    def orthonormal_groups(self, unpenalized: IndexArray) -> tuple[list[IndexArray], FloatArray]:
        """Columns of the groups that are made orthonormal, and the factor of the penalty of each."""
        groups = self.feature_groups
        if groups is None or not (chosen := self._scaled_by("orthonormal")).any():
            return [], np.ones(0)
        chosen[unpenalized] = False
        members = [np.flatnonzero(groups == k) for k in np.unique(groups[chosen])]
        factor = np.ones(len(groups)) if self.penalty_factor is None else self.penalty_factor
        if self.signs is not None and self.signs[chosen].any():
            raise ValueError(
                "positive constrains single columns, which group_scale='orthonormal' does not know. Use 'size', 'none' "
                "or 'frobenius', or leave the columns of groups out of positive."
            )
        for columns in members:
            if np.any(factor[columns] != factor[columns[0]]):
                name = self.group_names[groups[columns[0]]]
                raise ValueError(
                    f"penalty_factor must be the same for all columns of the group {name!r}: group_scale='orthonormal' "
                    "does not know single columns."
                )
        return members, np.array([factor[columns[0]] for columns in members])


#: Nothing was asked for.
PLAIN = PenaltyOptions()


def numbered_by_first(labels: IndexArray) -> IndexArray:
    """The same labels numbered from 0 in the order in which they come."""
    if np.all(labels[1:] >= labels[:-1]):  # which saves the sorting
        return np.cumsum(np.concatenate([np.zeros(min(1, len(labels)), dtype=np.intp), labels[1:] != labels[:-1]]))
    _, first, numbers = np.unique(labels, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.intp)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[numbers]
