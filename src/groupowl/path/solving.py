"""Many strengths of one penalty on the same data, each solve starting from the last."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._checks import as_generator, finite_number, finite_vector, positive_integer
from ..problem import LATER, build_problem
from ..screening import resolve_rule
from ..solvers import (
    Callback,
    Sequence,
    SolveResult,
    check_callback,
    resolve_solver,
    warn_unless_converged,
)
from ..weights import resolve_weights
from .continuation import StopRequest, short_of_tolerance, warm_started


def solve_path(
    X: Any,
    Y: Any,
    weights: Any,
    *,
    strengths: Any,
    loss: Any = "squared",
    fit_intercept: bool = False,
    sample_weight: Any = None,
    solver: Any = "auto",
    screening: str = "safe",
    tol: float = 1e-6,
    max_iter: int = 10_000,
    random_state: Any = None,
    callback: Callback | None = None,
) -> list[SolveResult]:
    """Solve with ``lam = strength * weights`` for each strength, from the largest down, warm-started.

    Parameters are those of :func:`groupowl.solve`, in its scaling: the loss is a sum over samples. Coefficients,
    residuals, the Gram matrix of working sets and, for squared loss with more samples than features, the sufficient
    statistics carry over from one strength to the next. A callback that returns True ends the path there; strengths
    that fall short of ``tol`` are named in one ConvergenceWarning.
    """
    check_callback(callback)
    resolved, rule = resolve_solver(solver), resolve_rule(screening)
    tol, max_iter = finite_number("tol", tol, above=0.0), positive_integer("max_iter", max_iter)
    problem = build_problem(X, Y, LATER, loss=loss, fit_intercept=fit_intercept, sample_weight=sample_weight)
    shape = resolve_weights(
        weights, n_features=problem.n_rows, n_tasks=problem.targets.n_tasks, n_samples=problem.design.n_samples
    )
    remedy = "Strengths are positive numbers, largest first, for example lam_max(...) * np.geomspace(1, 0.01, 100)."
    factors = finite_vector("strengths", strengths, np.size(strengths), remedy=remedy)
    if len(factors) == 0 or factors.min() <= 0.0 or np.any(np.diff(factors) > 0):
        raise ValueError(f"strengths must be positive and must not increase, got {strengths!r}. {remedy}")
    sequence = Sequence(problem, resolved, problem.null_coefficients(), tol=tol, n_solves=len(factors))
    settings = {"rule": rule, "max_iter": max_iter, "rng": as_generator(random_state)}
    solved = warm_started(sequence, shape, factors, StopRequest(callback), **settings)
    results = [result for _, result in solved]
    if short := short_of_tolerance(results, len(factors), "strengths"):
        warn_unless_converged(short[0], tol * problem.null_loss, tol, max_iter, prefix=short[1])
    return results
