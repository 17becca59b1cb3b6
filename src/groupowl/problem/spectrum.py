"""Largest eigenvalues of positive semi-definite matrices that are known by their products only."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.sparse.linalg import ArpackError, ArpackNoConvergence, LinearOperator, eigsh

from .._typing import FloatArray


def lanczos_estimate(product: Callable[[FloatArray], FloatArray], size: int) -> float:
    """Largest eigenvalue to a few per cent, from below; 0 where the iteration fails."""
    operator = LinearOperator((size, size), matvec=product, dtype=np.float64)
    start = np.random.default_rng(0).standard_normal(size)
    try:
        largest = eigsh(operator, k=1, ncv=min(size, 8), tol=0.02, v0=start, maxiter=10, return_eigenvectors=False)
    except ArpackNoConvergence as error:
        return float(max(error.eigenvalues, default=0.0))
    except ArpackError:
        return 0.0
    return float(largest[0])


def power_estimate(product: Callable[[FloatArray], FloatArray], start: FloatArray, steps: int = 3) -> float:
    """Largest eigenvalue from below, by a few power iterations from a vector that is not zero."""
    v, estimate = start, 0.0
    for _ in range(steps):
        image = product(v / np.linalg.norm(v))
        estimate, v = max(estimate, float(np.linalg.norm(image))), image
        if not image.any():
            break
    return estimate
