"""The Group OWL problem: its objective, its dual, and the certificates that join them.

    P(B, b0) = sum_i w_i f_i(x_i^T B + b0) + sum_j lam_j ||B_[j],:||_2

Solvers see one matrix of *coefficients*: the penalized rows of ``B`` first, then the unpenalized block
(intercept and unpenalized columns, where the loss does not allow to project them out). They never see samples:
sample-space arrays are handles of the design.
"""

from __future__ import annotations

from .bounds import Balls, Correlations
from .build import (
    LATER,
    build_problem,
    compressed_together,
    lam_max,
    options_of,
    problem_of_samples,
    problem_of_statistics,
    warn_of_lost_samples,
    with_targets,
)
from .certificate import Certificate, Residual
from .problem import Problem
from .public import Published, all_published, intercept_excess, published
from .samples import Samples
from .unpenalized import Unpenalized, best_constant, damped_newton

__all__ = [
    "LATER",
    "Balls",
    "Certificate",
    "Correlations",
    "Problem",
    "Published",
    "Residual",
    "Samples",
    "Unpenalized",
    "all_published",
    "best_constant",
    "build_problem",
    "compressed_together",
    "damped_newton",
    "intercept_excess",
    "lam_max",
    "options_of",
    "problem_of_samples",
    "problem_of_statistics",
    "published",
    "warn_of_lost_samples",
    "with_targets",
]
