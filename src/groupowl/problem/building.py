"""From data as users give them to a problem."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._checks import truth_value
from .._kernels import LARGEST_PRODUCT, SMALLEST_NORM
from .._typing import FloatArray, IndexArray
from ..designs import Design, GramCache, as_design, check_overflow, check_underflow, project_out, standardize
from ..losses import resolve_loss
from ..targets import Targets, summarise_targets
from ..weights import check_sequence
from .duality import Problem

#: Stands for weights that are not known yet.
LATER = object()


@np.errstate(all="ignore")  # what overflows is refused below, not warned about
def build_problem(
    X: Any,
    Y: Any,
    lam: Any,
    *,
    loss: Any = "squared",
    fit_intercept: bool = False,
    sample_weight: Any = None,
    standardized: bool = False,
    unpenalized: IndexArray | None = None,
    total_weight: float | None = None,
) -> Problem:
    """Check data as users give them and make the problem; :data:`LATER` weights follow by :meth:`Problem.with_lam`.

    Sample weights are scaled to ``total_weight`` if that is given.
    """
    resolved = resolve_loss(loss)
    fit_intercept = truth_value("fit_intercept", fit_intercept)
    design = as_design(X)
    lam = np.ones(design.n_features) if lam is LATER else check_sequence("lam", lam, design.n_features)
    design, Y, w = design.adopt(Y, sample_weight, resolved.check_targets, total_weight)
    design = standardize(design, w, center=fit_intercept, scale=standardized, unscaled=unpenalized)
    if unpenalized is not None:
        design = project_out(design, unpenalized, w)
    targets = summarise_targets(design, resolved, Y, w, fit_intercept)
    norms = design.column_norms(w)
    _check_magnitude(design, norms, targets)
    free_scale = intercept_scale = 0.0
    if not resolved.centers_targets:
        # As long as the longest column: they are then never what limits the step or slows the solver down.
        longest = float(norms.max()) or 1.0
        free_scale = longest if design.n_free_directions else 0.0
        intercept_scale = longest / np.sqrt(targets.total_weight) if fit_intercept else 0.0
    return Problem(
        design,
        resolved,
        targets,
        lam,
        norms,
        rounding_norms=design.rounding_norms(norms, targets.total_weight),
        fit_intercept=fit_intercept,
        intercept_scale=intercept_scale,
        gram_cache=GramCache(design, w),
        free_scale=free_scale,
    )


def _check_magnitude(design: Design, norms: FloatArray, targets: Targets) -> None:
    """Refuse data whose squares leave the range of floating-point numbers: nothing could be proved about them."""
    check_overflow(norms)
    if not np.isfinite(targets.norm + targets.null_loss + targets.total_weight):
        raise ValueError("The targets (y or Y) or sample_weight are so large that the loss overflows. Rescale them.")
    check_underflow(design, np.flatnonzero(norms < SMALLEST_NORM))
    check_products(norms, targets)


def check_products(norms: FloatArray, targets: Targets) -> None:
    """Refuse columns and targets whose products leave the range of floating-point numbers."""
    product = float(norms.max()) * targets.norm
    if product != 0.0 and not SMALLEST_NORM <= product <= LARGEST_PRODUCT:
        size, event = ("small", "underflow") if product < 1.0 else ("large", "overflow")
        raise ValueError(
            f"X and Y are so {size} that their products {event}: columns of X have norms up to {norms.max():g}, Y has "
            f"{targets.norm:g}. Rescale them, or the sample weights."
        )
