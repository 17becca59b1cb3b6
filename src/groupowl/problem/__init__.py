"""The Group OWL problem: its objective, its dual, and the certificates that join them.

    P(B, b0) = sum_i w_i f_i(x_i^T B + b0) + sum_j lam_j ||B_[j],:||_2

Solvers see one matrix of *coefficients*: the penalised rows of ``B`` first, then the unpenalised block (the
intercept, where the loss does not allow to remove it by centring). They never see samples: sample-space
arrays are handles of the design.
"""

from __future__ import annotations

from .building import LATER, build_problem, check_products
from .certificate import Certificate, Published, Residual
from .duality import Problem

__all__ = ["LATER", "Certificate", "Problem", "Published", "Residual", "build_problem", "check_products"]
