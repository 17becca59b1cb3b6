"""Small problems in one call of the compiled kernel, with its own twin of the certificate.

Only what is ordinary comes this way: plain arrays in memory, of the usual size, solved from zero by the default solver.
All else, and whatever the kernel does not prove, goes the long way, which knows what to say about it.
"""

from __future__ import annotations

import time
from functools import cache, partial
from typing import Any, cast

import numpy as np

from .. import kernel
from .._typing import FloatArray, IndexArray
from ..losses import Loss, resolve_loss
from ..norm import GroupOWL
from ..problem import Balls, Correlations
from ..weights import are_ordinary
from .continuation import KERNEL_GOAL
from .settings import SolverSettings
from .solve_result import NEVER, History, HistoryRow, SolveResult, Status

# Entries of X: for more of them the rest of a solve hardly counts.
_MOST_ENTRIES = 2**18


def lean_solve(
    X: Any, Y: Any, lam: Any, settings: SolverSettings, *, loss: Any, fit_intercept: Any, weight: float = 1.0
) -> SolveResult | None:
    """The solve with this weight of every sample, or None where the long way is needed."""
    is_small = _is_plain(X, 2) and _is_plain(Y, 1, 2) and 0 < X.size <= _MOST_ENTRIES and len(X) == len(Y) and Y.size
    if (
        not is_small
        or len(X) > kernel.MOST_CERTIFIED_SAMPLES
        or not _is_plain(lam, 1)
        or len(lam) != X.shape[1]
        or not are_ordinary(lam)
    ):
        return None
    loss, solver = resolve_loss(loss), cast(Any, settings.solver)
    is_default = getattr(solver, "uses_kernel", False) and solver.compress is not True and settings.callback is None
    if not (is_default and loss.compiled and not loss.needs_whole_samples and isinstance(fit_intercept, bool)):
        return None
    Y = Y.reshape(len(Y), -1)
    if not kernel.is_available() or not _can_use(loss, Y, fit_intercept=fit_intercept):
        return None
    lam, started = lam.copy(), time.perf_counter()  # what is made on access needs it as it is now
    fit = kernel.whole_fit(
        X,
        Y,
        lam if weight == 1.0 else lam / weight,
        loss=loss.compiled,
        fit_intercept=fit_intercept,
        tol=settings.tol,
        part=KERNEL_GOAL,
        max_steps=settings.max_iter,
    )
    return None if fit is None else _result(fit, loss, lam, settings, weight, time.perf_counter() - started)


def _is_plain(values: Any, *ndim: int) -> bool:
    return type(values) is np.ndarray and values.dtype == np.float64 and values.ndim in ndim


def _can_use(loss: Loss, Y: FloatArray, *, fit_intercept: bool) -> bool:
    """Whether these are targets of this loss; else the long way says what is wrong with them."""
    if loss.is_quadratic:
        return True
    try:
        loss.check_targets(Y)
        if fit_intercept:
            loss.check_means(np.add.reduce(Y) / len(Y))
    except ValueError:
        return False
    return True


def _result(
    fit: kernel.Fit, loss: Loss, lam: FloatArray, settings: SolverSettings, weight: float, seconds: float
) -> SolveResult:
    """What users get of a fit; the parts that few read are made when they are read."""
    values = weight * fit.primal, weight * fit.dual, weight * (fit.gap + fit.rounding)
    screened_at = cache(partial(_screened_at, fit, loss, lam, settings, weight))

    def history() -> History:
        n_nonzero = int(np.count_nonzero(fit.B.any(axis=1)))
        row = HistoryRow(fit.steps, seconds, fit.passes, *values, len(lam), n_nonzero)
        return History.from_rows([row])

    return SolveResult(
        B=fit.B,
        intercept=fit.intercept,
        primal=values[0],
        dual=values[1],
        gap=values[2],
        active=lambda: np.flatnonzero(screened_at() < 0),
        screened_at=screened_at,
        clusters=lambda: GroupOWL(lam).clusters(fit.B),
        n_iter=fit.steps,
        n_passes=fit.passes,
        status=Status.CONVERGED.value,
        seconds=seconds,
        history=history,
        _theta=lambda: weight * fit.scale * fit.theta,
    )


def _screened_at(fit: kernel.Fit, loss: Loss, lam: FloatArray, settings: SolverSettings, weight: float) -> IndexArray:
    """For each row 0 where the certificate proves that it is zero, and it is zero."""
    if settings.rule is None:
        return np.full(len(lam), NEVER)
    rule, root, scale, norm = settings.rule, np.sqrt(weight), abs(fit.scale), np.sqrt(weight) * fit.theta_norm
    balls = Balls(
        gap=weight * fit.gap,
        curvature=loss.curvature,
        theta_norm=scale * norm,
        residual_norm=norm,
        distance=abs(1.0 - fit.scale) * norm if loss.is_quadratic else root * fit.distance,
        balancing=root * fit.balancing,
        reach=root * fit.reach,
    )
    correlations = weight * fit.correlations
    norms = Correlations(scale * correlations, correlations, root * fit.norms, root * fit.rounding_norms)
    upper = np.full(len(lam), np.inf)
    if np.isfinite(loss.curvature):
        upper = balls.upper_bounds(norms, len(fit.theta), two_sided=rule.two_sided)
    if loss.bend is not None and (rule.two_sided or not np.isfinite(loss.curvature)):  # they are there already
        local = balls.local_bounds(norms, weight * fit.squares.max(axis=1), fit.largest, loss.bend, len(fit.theta))
        upper = np.minimum(upper, local)
    screened_at = np.zeros(len(lam), dtype=np.intp)
    screened_at[rule.kept(upper, lam)] = NEVER
    screened_at[fit.B.any(axis=1)] = NEVER
    return screened_at
