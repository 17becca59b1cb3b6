"""Small problems in one call of the compiled kernel, with its own twin of the certificate.

Only what is ordinary comes this way: plain arrays in memory, of the usual size, solved from zero by the default solver.
All else, and whatever the kernel does not prove, goes the long way, which knows what to say about it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cached_property, partial
from typing import Any, cast

import numpy as np

from .. import kernel
from .._typing import FloatArray, IndexArray
from ..losses import Loss, resolve_loss
from ..norm.kernels import cluster_labels, row_norms
from ..problem import Balls, Correlations
from ..screening import Rule
from ..weights import are_ordinary
from .continuation import KERNEL_GOAL
from .settings import SolverSettings
from .solve_result import NEVER, History, HistoryRow, SolveResult, Status

# Entries of X: for more of them the rest of a solve hardly counts.
_MOST_ENTRIES = 2**18
_NOTHING = np.zeros((0, 0))


def lean_solve(
    X: Any,
    Y: Any,
    lam: Any,
    settings: SolverSettings,
    *,
    loss: Any,
    fit_intercept: Any,
    weight: float = 1.0,
    drops_theta: bool = False,
) -> SolveResult | None:
    """The solve with this weight of every sample, or None where the long way is needed.

    Without theta the result holds nothing that grows with the number of samples.
    """
    if not _is_small(X, Y) or not _is_plain(lam, 1) or len(lam) != X.shape[1] or not are_ordinary(lam):
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
    if fit is None:
        return None
    facts = _Facts(fit, loss, lam, settings.rule, weight, time.perf_counter() - started, len(X))
    return facts.result(fit.B, None if drops_theta else partial(_scaled_theta, fit.theta, weight * fit.scale))


def _scaled_theta(theta: FloatArray, scale: float) -> FloatArray:
    return scale * theta


def _is_small(X: Any, Y: Any) -> bool:
    if not (_is_plain(X, 2) and _is_plain(Y, 1, 2) and len(X) == len(Y)):
        return False
    return 0 < X.size <= _MOST_ENTRIES and Y.size > 0 and len(X) <= kernel.MOST_CERTIFIED_SAMPLES


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


class _Facts:
    """What users get of a fit; the parts that few read are made when they are read."""

    def __init__(
        self,
        fit: kernel.Fit,
        loss: Loss,
        lam: FloatArray,
        rule: Rule | None,
        weight: float,
        seconds: float,
        n_samples: int,
    ) -> None:
        self.fit = fit._replace(B=fit.B.copy(), theta=_NOTHING)  # as they are now, and not for nothing
        self.loss, self.lam, self.rule, self.weight = loss, lam, rule, weight
        self.seconds, self.n_samples = seconds, n_samples

    def result(self, B: FloatArray, theta: Callable[[], FloatArray] | None) -> SolveResult:
        fit, weight = self.fit, self.weight
        return SolveResult(
            B=B,
            intercept=fit.intercept,
            primal=weight * fit.primal,
            dual=weight * fit.dual,
            gap=weight * (fit.gap + fit.rounding),
            active=self.active,
            screened_at=lambda: self.screened_at,
            clusters=self.clusters,
            n_iter=fit.steps,
            n_passes=fit.passes,
            status=Status.CONVERGED.value,
            seconds=self.seconds,
            history=self.history,
            _theta=theta,
        )

    def active(self) -> IndexArray:
        return np.flatnonzero(self.screened_at < 0)

    def clusters(self) -> IndexArray:
        return cluster_labels(row_norms(self.fit.B))

    def history(self) -> History:
        fit, n_nonzero = self.fit, int(np.count_nonzero(self.fit.B.any(axis=1)))
        values = self.weight * fit.primal, self.weight * fit.dual, self.weight * (fit.gap + fit.rounding)
        row = HistoryRow(fit.steps, self.seconds, fit.passes, *values, len(self.lam), n_nonzero)
        return History.from_rows([row])

    @cached_property
    def screened_at(self) -> IndexArray:
        """For each row 0 where the certificate proves that it is zero, and it is zero."""
        fit, lam, weight, rule = self.fit, self.lam, self.weight, self.rule
        if rule is None:
            return np.full(len(lam), NEVER)
        root, scale, norm = np.sqrt(weight), abs(fit.scale), np.sqrt(weight) * fit.theta_norm
        balls = Balls(
            gap=weight * fit.gap,
            curvature=self.loss.curvature,
            theta_norm=scale * norm,
            residual_norm=norm,
            distance=abs(1.0 - fit.scale) * norm if self.loss.is_quadratic else root * fit.distance,
            balancing=root * fit.balancing,
            reach=root * fit.reach,
        )
        correlations = weight * fit.correlations
        norms = Correlations(scale * correlations, correlations, root * fit.norms, root * fit.rounding_norms)
        upper = np.full(len(lam), np.inf)
        if np.isfinite(self.loss.curvature):
            upper = balls.upper_bounds(norms, self.n_samples, two_sided=rule.two_sided)
        bend = self.loss.bend
        if bend is not None and (rule.two_sided or not np.isfinite(self.loss.curvature)):  # they are there already
            local = balls.local_bounds(norms, weight * fit.squares.max(axis=1), fit.largest, bend, self.n_samples)
            upper = np.minimum(upper, local)
        screened_at = np.zeros(len(lam), dtype=np.intp)
        screened_at[rule.kept(upper, lam)] = NEVER
        screened_at[fit.B.any(axis=1)] = NEVER
        return screened_at
