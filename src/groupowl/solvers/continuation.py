"""Solves that follow each other on the same data: one, or many alphas, each starting from the last."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from .. import kernel
from .._typing import FloatArray
from ..designs import Design
from ..norm.kernels import nonzero_rows, owl_gauge
from ..problem import Certificate, Problem, Residual
from .driver import Run
from .settings import SolverSettings
from .solve_result import SolveResult

# Below this tolerance the rounding of a Gram matrix may forbid a proof, and a QR factorization is worth its price.
_GRAM_TOLERANCE = 1e-8
# A product with all of X is so many times slower, per operation, than the Gram matrix of X; a solve needs a few.
_PASSES_PER_SOLVE = 6.0
_PASS_SLOWDOWN = 4.0
# Larger Gram matrices are never made unasked.
_MOST_FEATURES = 5000
# Weights this close to those that select nothing, relatively, are left to the data.
_NULL_RTOL = 1e-6
# What the kernel is asked for relative to the gap that is to be proved: its estimate is not the proof.
_KERNEL_GOAL = 0.3
# Entries of X up to which it is asked. Its last look at all columns and the certificate are the same product twice: for
# larger X, in solves that end after a round or two, that is what takes time.
_MOST_ENTRIES = 2**21
# Rows that its working set may have at first, or as many as there are samples.
_FEW_ROWS = 200


def compression_pays(problem: Problem, n_solves: int = 1) -> bool:
    """Whether making the statistics costs less than the products with X that so many solves would need.

    A Gram matrix takes ``n d^2`` operations, a product with X ``2 n d q``.
    """
    saved = 2.0 * problem.samples.n_tasks * _PASS_SLOWDOWN * _PASSES_PER_SOLVE * n_solves
    return problem.is_compressible and problem.n_rows <= min(saved, _MOST_FEATURES)


class Continuation:
    """What carries over from one solve to the next.

    Coefficients, their residual, the Gram matrix of working sets and, where they pay, the sufficient statistics.

    Parameters
    ----------
    problem : Problem
        The data; its weights may be those of the first solve.
    settings : SolverSettings
        Of every solve.
    B : ndarray
        Coefficients to start from.
    n_solves : int
        Solves to come, which decides whether statistics pay.
    residual : Residual, default=None
        That of ``B``, if it is known.
    small : Problem, default=None
        A smaller problem that stands for the data, if it is known already.
    """

    def __init__(
        self,
        problem: Problem,
        settings: SolverSettings,
        B: FloatArray,
        *,
        n_solves: int = 1,
        residual: Residual | None = None,
        small: Problem | None = None,
    ) -> None:
        self.problem = problem
        self.settings = settings
        self.exact = settings.tol < _GRAM_TOLERANCE
        # Statistics that are known already serve, unless their rounding might forbid the proof asked for.
        self.small = problem if small is None or self.exact else small
        self.B = B
        self.residual = residual
        self.certificate: Certificate | None = None  # of the last solve
        self.source: Problem | None = problem  # that the residual belongs to
        self.line = Extrapolation(scale_of(problem))
        self._null: tuple[Problem, FloatArray] | None = None
        self._kernel: tuple[Design, kernel.KernelData | None] | None = None
        self.passes_before: float | None = problem.design.passes.total  # of the first solve: it pays for what follows
        self.expect(n_solves)

    def expect(self, n_solves: int) -> None:
        """Make the sufficient statistics, if they pay for so many solves to come and are not there."""
        wanted = getattr(self.settings.solver, "compress", False)
        if wanted == "auto":
            wanted = compression_pays(self.problem, n_solves)
        if wanted and self.small is self.problem and self.problem.is_compressible:
            self.small = self.problem.compressed(exact=self.exact) or self.problem

    def solve(
        self, weights: FloatArray, alpha: float = 1.0, *, alpha_index: int = 0, dtype: Any = np.float64
    ) -> SolveResult:
        """Solve with ``lam = alpha * weights``, on the statistics where they keep the accuracy asked for.

        ``dtype`` is the precision of the coefficients that users get.
        """
        lam = alpha * weights
        public = {"alpha_index": alpha_index, "dtype": dtype}
        guess = self.line.at(alpha)
        chosen = self.small.with_lam(lam)
        # Where rounding decides whether these weights select anything, the data themselves must tell.
        if self.small is not self.problem and owl_gauge(self._null_correlations(), lam) <= 1.0 + _NULL_RTOL:
            chosen = self.problem.with_lam(lam)
        result = self._run(chosen, guess, **public)
        assert self.certificate is not None
        falls_short = self.certificate.gap > chosen.goal(self.settings.tol)
        if result.status in ("precision", "stalled") and falls_short and chosen.product_error > 0.0:
            # The Gram matrix is what is not exact enough, and not the coefficients as users get them.
            self.small = self.problem.compressed(exact=True) or self.problem
            more = self._run(self.small.with_lam(lam), None, **public)
            result = replace(
                more,
                n_iter=result.n_iter + more.n_iter,
                n_passes=result.n_passes + more.n_passes,
                seconds=result.seconds + more.seconds,
            )
        self.line.add(alpha, self.B)
        return result

    def _propose(self, chosen: Problem) -> tuple[FloatArray, int] | None:
        """What the compiled kernel proposes for a problem, and its steps; None where it is not asked.

        Nothing of it is believed: the run certifies the coefficients, and goes on where they fall short.
        """
        settings = self.settings
        is_watched = settings.callback is not None and getattr(settings.callback, "sees_rounds", True)
        if is_watched or not getattr(settings.solver, "uses_kernel", False):
            return None
        if self._kernel is None or self._kernel[0] is not chosen.design:
            self._kernel = chosen.design, kernel_data(chosen)
        data, block, n = self._kernel[1], chosen.unpenalized, chosen.n_rows
        if data is None or not chosen.loss_scale > 0.0:
            return None
        B, steps = self.B, 0
        for capacity in (max(_FEW_ROWS, chosen.design.n_samples), None):  # most solves need little memory
            proposal = kernel.solve(
                data,
                chosen.lam,
                _KERNEL_GOAL * chosen.goal(settings.tol),
                max_steps=settings.max_iter - steps,
                capacity=capacity,
                B_init=B[:n],
                intercept_init=block.intercept(B[n:]) if block.n_rows else None,
                interrupted=_never,
            )
            chosen.design.charge(float(proposal.passes[0]) * chosen.design.n_features)
            steps += int(proposal.steps[0])
            B = chosen.null_coefficients()
            B[proposal.row] = proposal.values
            B[n:] = block.with_intercept(B[n:], proposal.intercept[0])
            if proposal.status[0] != kernel.NO_ROOM or steps >= settings.max_iter:
                break
        # From where nothing is selected, or from a start that is optimal, the solver takes a step, as it always does.
        return (B, steps) if steps and len(proposal.row) else None

    @contextmanager
    def aside(self, B: FloatArray) -> Iterator[None]:
        """Solves from other coefficients; afterwards the continuation goes on as if they had not been."""
        kept = self.B, self.residual, self.certificate, self.source, self.line
        self.B, self.residual, self.line = B, None, Extrapolation(scale_of(self.problem))
        try:
            yield
        finally:
            self.B, self.residual, self.certificate, self.source, self.line = kept

    def _null_correlations(self) -> FloatArray:
        """Those of the model without features, the same for all weights."""
        if self._null is None or self._null[0] is not self.small:
            self._null = self.small, self.small.residual(self.small.null_coefficients()).correlations
        return self._null[1]

    def _run(self, chosen: Problem, guess: FloatArray | None, **public: Any) -> SolveResult:
        origin = chosen if chosen.design is self.problem.design else self.problem.with_lam(chosen.lam)
        run = Run(chosen, self.settings, origin=origin, passes_before=self.passes_before, **public)
        self.passes_before = None
        proposed = self._propose(chosen)
        if proposed is None:
            known = self.residual if self.source is not None and self.source.design is chosen.design else None
            result = run.solve(self.B, residual=known, guess=guess)
        else:
            result = run.solve(*proposed)
        assert run.answer is not None
        self.B, _, self.certificate = run.answer
        self.source = chosen
        self.residual = self.certificate.residual
        return result


def kernel_data(problem: Problem) -> kernel.KernelData | None:
    """The data as the compiled kernel takes them, or None where it cannot."""
    design, block, samples = problem.design, problem.unpenalized, problem.samples
    is_small = design.density * design.n_samples * design.n_features <= _MOST_ENTRIES
    data = design.plain_data() if is_small else None
    if data is None or block.rank or not problem.loss.compiled or not kernel.is_available():
        return None
    sizes = problem.penalty.sizes
    return kernel.KernelData(
        data.X,
        samples.Y,
        problem.loss.compiled,
        mean=data.mean,
        scale=data.scale,
        sample_weight=samples.w[:, 0],
        fit_intercept=block.n_rows > 0,
        unit_starts=None if sizes is None else np.concatenate([[0], np.cumsum(sizes)]),
    )


def scale_of(problem: Problem) -> Callable[[float], float]:
    """The function of alpha in which solutions move nearly along lines while their pattern stays.

    For squared loss and one task it is alpha itself, and the lines are exact. Predictors of classes grow with
    the logarithm of what is left of the penalty.
    """
    return float if problem.loss.is_quadratic else math.log


def _never() -> bool:
    """Python handles signals when the kernel asks, which is all that is wanted of it."""
    return False


class Extrapolation:
    """The line through the last two solutions: nearer to the next one than either, while the same rows are non-zero.

    ``scale`` turns an alpha into the coordinate along the line.
    """

    def __init__(self, scale: Callable[[float], float] = float) -> None:
        self.scale = scale
        self.points: list[tuple[float, FloatArray]] = []

    def add(self, alpha: float, B: FloatArray) -> None:
        """Remember a solution."""
        self.points = [*self.points[-1:], (self.scale(alpha), B)]

    def at(self, alpha: float) -> FloatArray | None:
        """Guess for the next alpha, zero where the last solution is; rows that would turn round become zero."""
        if len(self.points) < 2 or self.points[0][0] == self.points[1][0]:
            return None
        (before, B_before), (last, B) = self.points
        rows = np.flatnonzero(nonzero_rows(B))
        guess = np.zeros_like(B)
        moved = B[rows] + (self.scale(alpha) - last) / (last - before) * (B[rows] - B_before[rows])
        moved[np.einsum("jk,jk->j", moved, B[rows]) <= 0.0] = 0.0
        guess[rows] = moved
        return guess
