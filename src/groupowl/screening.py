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
from ._typing import FloatArray, IndexArray
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
