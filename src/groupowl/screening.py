"""Safe screening: from a certificate to rows of ``B`` that are zero in every solution.

Both rules see one upper bound ``u_j >= ||x_j^T theta*||`` per row, padded for rounding by the problem, and
the weights of the rows still alive. What they drop may be removed for good, with the smallest weights; the
reduced problem has the same minimum and the same dual optimum.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from ._checks import lookup
from ._kernels import last_argmax_cut, repeated_test
from ._typing import FloatArray, Handle, IndexArray
from .problem import Certificate, Problem

#: Positions that may be non-zero at the optimum, ascending, from upper bounds and weights.
Rule: TypeAlias = Callable[[FloatArray, FloatArray], IndexArray]


def paper_rule(upper: FloatArray, lam: FloatArray) -> IndexArray:
    """Rows kept by the paper's rule: drop row j if ``u_j < lam_|A|``, until A no longer changes."""
    return repeated_test(upper, lam)


def extended_rule(upper: FloatArray, lam: FloatArray) -> IndexArray:
    """Rows kept by the extended rule: the largest ``u`` up to the last maximiser of a partial sum.

    With ``u`` sorted downwards, let k be the last maximiser of ``sum_{i<=k} (u_i - lam_i)``. The rows after it
    cannot pay for the weights they would take: if t of them were non-zero, optimality would ask for
    correlations that sum to at least ``lam_{k+1} + ... + lam_{k+t}``, and their bounds sum to less. The rule
    keeps a subset of what the paper's rule keeps, so it starts from there.
    """
    candidates = repeated_test(upper, lam)
    order = candidates[np.argsort(-upper[candidates], kind="stable")]
    return np.sort(order[: last_argmax_cut(upper[order], lam[: len(order)])])


#: Screening rules by their public name; "none" keeps every row.
RULES: dict[str, Rule | None] = {"safe": extended_rule, "paper": paper_rule, "none": None}


def resolve_rule(screening: object) -> Rule | None:
    """The rule of a public name, or None where nothing is to be screened."""
    return lookup("screening", screening, RULES)


def safe_rows(problem: Problem, certificate: Certificate, candidates: IndexArray, rule: Rule) -> IndexArray:
    """Those of the rows ``candidates`` that the rule cannot prove to be zero, ascending.

    The other rows of the problem are known to be zero already, so the candidates share the largest weights.
    """
    upper = problem.upper_bounds(certificate)[candidates]
    return candidates[rule(upper, problem.lam[: len(candidates)])]


# A test pays once the gap, and with it the radius, has fallen since the last one.
_GAP_FALL_FOR_TEST = 0.95
# Rows proved zero leave the current problem once they are this many: each time copies the columns that stay.
_SHRINK_FRACTION = 0.75


class ScreenedProblem:
    """A problem that loses rows as they are proved zero; who solves it and how does not matter.

    Attributes
    ----------
    full : Problem
        The problem as it was.
    current : Problem
        The problem on the rows ``alive``; certificates refer to it and are valid for the full one.
    alive : ndarray of int
        Rows of the full problem that the current one has.
    active : ndarray of int
        Those of them that are not proved zero.
    certificate : Certificate or None
        The latest one, with the best dual point so far.
    """

    def __init__(self, problem: Problem, rule: Rule | None) -> None:
        self.full = self.current = problem
        self.rule = rule
        self.alive = np.arange(problem.n_rows)
        self.certificate: Certificate | None = None
        self._candidates = self.alive  # positions among the rows alive
        self._tested_gap = np.inf

    @property
    def active(self) -> IndexArray:
        """Rows of the full problem that are not proved zero, ascending."""
        return self.alive[self._candidates]

    @property
    def n_active(self) -> int:
        """Number of rows that are not proved zero."""
        return len(self._candidates)

    def certify(self, B: FloatArray, Z: Handle | None = None) -> Certificate:
        """Certificate for coefficients of the current problem."""
        self.certificate = self.current.certify(B, Z, best=self.certificate)
        return self.certificate

    def drop_zero_columns(self) -> IndexArray:
        """Rows of zero columns, which never help and are zero in some solution whatever their weight."""
        return self._keep(np.flatnonzero(self.current.norms > 0))

    def test(self) -> IndexArray:
        """Rows of the full problem that the latest certificate newly proves to be zero."""
        certificate = self.certificate
        if self.rule is None or certificate is None or not certificate.gap <= _GAP_FALL_FOR_TEST * self._tested_gap:
            return np.zeros(0, dtype=np.intp)
        self._tested_gap = certificate.gap
        return self._keep(safe_rows(self.current, certificate, self._candidates, self.rule))

    def test_full(self, certificate: Certificate) -> IndexArray:
        """Rows that a certificate of the full problem newly proves to be zero; ends the use of this object."""
        if self.rule is None:
            return np.zeros(0, dtype=np.intp)
        return np.setdiff1d(self.active, safe_rows(self.full, certificate, self.active, self.rule), assume_unique=True)

    def _keep(self, candidates: IndexArray) -> IndexArray:
        proved = self.alive[np.setdiff1d(self._candidates, candidates, assume_unique=True)]
        self._candidates = candidates
        return proved

    def shrink(self) -> IndexArray | None:
        """Leave the rows proved zero out of the current problem if they are many.

        Returns the rows that coefficients of the current problem keep, or None where nothing changed.
        """
        keep, problem = self._candidates, self.current
        if problem.n_rows == 0 or len(keep) > _SHRINK_FRACTION * problem.n_rows:
            return None
        self.current, self.alive = problem.restrict(keep), self.alive[keep]
        self._candidates = np.arange(len(keep))
        if self.certificate is not None:
            self.certificate = self.certificate.restrict(keep)
        return problem.row_index(keep)

    def spread(self, B: FloatArray, alive: IndexArray | None = None) -> FloatArray:
        """Coefficients of the full problem from those of the rows ``alive`` (by default, the current ones)."""
        spread = np.zeros((self.full.n_rows + self.full.n_free, B.shape[1]))
        spread[self.full.row_index(self.alive if alive is None else alive)] = B
        return spread
