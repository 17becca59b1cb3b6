"""Many strengths of one penalty on the same data, each solve starting from the last."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._checks import finite_number, finite_vector, positive_integer
from ._kernels import nonzero_rows
from ._typing import FloatArray
from .compression import compress, is_nearly_null, needs_exactness
from .problem import LATER, Problem, build_problem
from .screening import resolve_rule
from .solvers import Callback, Run, Solver, SolveResult, as_generator, resolve_solver, wants_compression
from .weights import resolve_weights


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
    statistics carry over from one strength to the next.
    """
    resolved, rule = resolve_solver(solver), resolve_rule(screening)
    tol, max_iter = finite_number("tol", tol, above=0.0), positive_integer("max_iter", max_iter)
    problem = build_problem(X, Y, LATER, loss=loss, fit_intercept=fit_intercept, sample_weight=sample_weight)
    sequence = resolve_weights(
        weights, n_features=problem.n_rows, n_tasks=problem.targets.n_tasks, n_samples=problem.design.n_samples
    )
    remedy = "Strengths are positive numbers, largest first, for example lam_max(...) * np.geomspace(1, 0.01, 100)."
    factors = finite_vector("strengths", strengths, np.size(strengths), remedy=remedy)
    if len(factors) == 0 or factors.min() <= 0.0 or np.any(np.diff(factors) > 0):
        raise ValueError(f"strengths must be positive and must not increase, got {strengths!r}. {remedy}")
    tracer = _Tracer(problem, resolved, tol, len(factors))
    settings = {"rule": rule, "max_iter": max_iter, "callback": callback, "rng": as_generator(random_state)}
    return [tracer.solve(factor, sequence, alpha_index=i, **settings) for i, factor in enumerate(factors)]


class _Tracer:
    """What carries over from one strength to the next."""

    def __init__(self, problem: Problem, solver: Solver, tol: float, n_solves: int) -> None:
        self.problem = self.small = problem
        self.solver = solver
        self.tol = tol
        self.passes_before: float | None = problem.design.passes.total  # of the first solve: it pays for what follows
        if wants_compression(problem, solver, n_solves):
            self.small = compress(problem, exact=needs_exactness(tol)) or problem
        self.B = problem.null_coefficients()
        self.residual: Any = None
        self.source: Problem | None = None  # the problem that the residual belongs to
        self.line = _Extrapolation()

    def solve(self, strength: float, weights: FloatArray, **settings: Any) -> SolveResult:
        """The next strength."""
        lam = strength * weights
        guess = self.line.at(strength)
        chosen = self.small.with_lam(lam)
        if chosen.design is not self.problem.design and is_nearly_null(chosen):
            chosen = self.problem.with_lam(lam)
        result = self._run(chosen, guess, **settings)
        if result.status == "precision" and chosen.product_error > 0.0:  # the Gram matrix is not exact enough
            self.small = compress(self.problem, exact=True) or self.problem
            result = self._run(self.small.with_lam(lam), None, **settings)
        self.line.add(strength, self.B)
        return result

    def _run(self, chosen: Problem, guess: FloatArray | None, **settings: Any) -> SolveResult:
        origin = self.problem.with_lam(chosen.lam)
        run = Run(chosen, self.solver, tol=self.tol, origin=origin, passes_before=self.passes_before, **settings)
        self.passes_before = None
        known = self.residual if self.source is not None and self.source.design is chosen.design else None
        result = run.solve(self.B, residual=known, guess=guess)
        self.B, self.residual, self.source = run.answer.B, run.answer.residual, chosen
        return result


class _Extrapolation:
    """The line through the last two solutions: nearer to the next one than either, while the same rows are non-zero."""

    def __init__(self) -> None:
        self.points: list[tuple[float, FloatArray]] = []

    def add(self, strength: float, B: FloatArray) -> None:
        """Remember a solution."""
        self.points = [*self.points[-1:], (strength, B)]

    def at(self, strength: float) -> FloatArray | None:
        """Guess for the next strength, zero where the last solution is; rows that would turn round become zero."""
        if len(self.points) < 2 or self.points[0][0] == self.points[1][0]:
            return None
        (before, B_before), (last, B) = self.points
        rows = np.flatnonzero(nonzero_rows(B))
        guess = np.zeros_like(B)
        moved = B[rows] + (strength - last) / (last - before) * (B[rows] - B_before[rows])
        moved[np.einsum("jk,jk->j", moved, B[rows]) <= 0.0] = 0.0
        guess[rows] = moved
        return guess
