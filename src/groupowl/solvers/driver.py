"""The one loop around every solver: certify, record, stop, screen, step.

A solver is a step and knows nothing of screening; screening knows nothing of solvers. That is what keeps a
new solver from forgetting it, and what makes histories comparable.
"""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from .._typing import FloatArray, IndexArray
from ..problem import Certificate, Problem, Published, Residual, published
from ..screening import ScreenedProblem
from .settings import Round, SolverSettings
from .solve_result import AS_CONSTANT, AS_EXPLAINED, NEVER, History, HistoryRow, Progress, SolveResult, Status

_PROGRESS_RTOL = 1e-3


class SteppingSolver:
    """A solver of equal steps, certified every few of them."""

    #: Rows proved zero leave the problem once they are a quarter: every later step is cheaper.
    shrink_fraction = 0.75
    shrink_after = 0
    #: Certificates without any progress after which a solve counts as stalled.
    patience = 50

    @property
    def steps_between_certificates(self) -> int:
        """Steps that :meth:`advance` takes."""
        return 1

    def step_once(self, problem: Problem, state: Any, certificate: Certificate) -> Any:
        """State after one more step."""
        raise NotImplementedError

    def advance(self, problem: Problem, state: Any, task: Round) -> tuple[Any, int]:
        """Steps up to the next certificate."""
        steps = min(self.steps_between_certificates, task.max_steps)
        for _ in range(steps):
            state = self.step_once(problem, state, task.certificate)
        return state, steps


@dataclass(frozen=True, eq=False)
class _Incumbent:
    """The best answer so far: coefficients of the rows that were alive, and their certificate."""

    B: FloatArray
    alive: IndexArray
    certificate: Certificate


@dataclass(frozen=True, eq=False)
class Answer:
    """Coefficients of the full problem that a solve ended with, and what is proved about them."""

    B: FloatArray
    certificate: Certificate


class Run:
    """One solve in progress."""

    def __init__(
        self,
        problem: Problem,
        settings: SolverSettings,
        *,
        alpha_index: int = 0,
        origin: Problem | None = None,
        passes_before: float | None = None,
        dtype: Any = np.float64,
    ) -> None:
        self.dtype = dtype  # of the coefficients that users get
        self.origin = problem if origin is None else origin  # the problem as given, where this one stands for it
        self.screened = ScreenedProblem(problem, settings.rule)
        self.full = problem
        self.settings = settings
        self.solver = settings.solver
        self.goal = problem.goal(settings.tol)
        self.alpha_index = alpha_index
        self.n_iter = 0
        self.rows: list[HistoryRow] = []
        self.screened_at = np.full(problem.penalty.n_units, NEVER, dtype=np.intp)  # of each unit
        self.incumbent: _Incumbent | None = None
        self.final: tuple[FloatArray, Certificate] | None = None  # of the full problem
        self._last_published: tuple[FloatArray, Published] | None = None  # the answer and its public form
        self._rounded_away = False  # whether rounding the coefficients for users takes what the goal allows
        self._retry_gap = np.inf  # gap below which the full problem is certified (again)
        self._still = (np.inf, np.inf, 0)  # best primal, best gap, certificates since either improved
        self._passes_before = problem.design.passes.total if passes_before is None else passes_before
        self._started = time.perf_counter()

    def solve(self, B: FloatArray, residual: Residual | None = None, guess: FloatArray | None = None) -> SolveResult:
        """Run from the coefficients ``B``, whose residual may be known, until there is a reason to stop.

        The non-zero rows of a ``guess`` at the solution must be among those of ``B``.
        """
        with np.errstate(all="ignore"):  # non-finite values are looked for, not warned about
            self.state = self.solver.start(self.full, self._without_zero_columns(B), self.settings.rng)
            status = self._certify(residual)
            if status is None and not self.latest.primal <= self.full.null_loss:  # worse than no features at all
                self.state = self.solver.start(self.full, self.full.null_coefficients(), self.settings.rng)
                status, guess = self._certify(), None
            while status is None:
                self._screen()
                status, guess = self._certify(self._advance(guess)), None
            return self._result(status)

    @property
    def latest(self) -> Certificate:
        """The latest certificate, for the rows that are alive."""
        assert self.screened.certificate is not None
        return self.screened.certificate

    def _advance(self, guess: FloatArray | None) -> Residual | None:
        """Steps up to the next certificate; the residual where they end, if it is known."""
        if self.n_iter == 0 and self.latest.gap == 0.0:  # no features are best: a step would not move them
            self.n_iter = 1
            return self.latest.residual
        self.state, steps = self.solver.advance(self.screened.current, self.state, self._round(guess))
        self.n_iter += steps
        return None

    def _round(self, guess: FloatArray | None) -> Round:
        left = self.settings.max_iter - self.n_iter
        if self.n_iter == 0 and self.latest.gap <= self.goal:
            left = 1  # optimal from the start: one prox step, so that clusters are those of a prox
        if guess is not None and len(guess) != len(self.state.B):  # rows have left already
            guess = None
        return Round(self.latest, self.screened.candidates, self.goal, left, guess)

    # Screening --------------------------------------------------------------------------------------

    def _without_zero_columns(self, B: FloatArray) -> FloatArray:
        B = B.copy() if self.full.loss_scale > 0.0 else self.full.null_coefficients()  # which is then the answer
        B[: self.full.n_rows][self.full.norms == 0] = 0.0
        if self.screened.rule is not None:
            self.screened_at[self.screened.drop_zero_columns()] = 0
        return B

    def _screen(self) -> None:
        """Note the rows that the certificate proves to be zero; hand the solver a smaller problem if it pays."""
        if self.n_iter < self.solver.screen_after:
            return
        self.screened_at[self.screened.test()] = len(self.rows) - 1
        if len(self.rows) <= self.solver.shrink_after:
            return
        rows = self.screened.shrink(self.solver.shrink_fraction)
        if rows is not None:
            self.state = self.solver.restrict(self.screened.current, self.state, rows)

    # Certificates -----------------------------------------------------------------------------------

    def _certify(self, residual: Residual | None = None) -> Status | None:
        """Certify the current coefficients, record them, and say why to stop, if so."""
        certificate = self.screened.certify(self.state.B, self.state.Z, residual=residual)
        self._record(certificate)
        status, callback = self._stop_reason(certificate), self.settings.callback
        stopped_by_user = callback is not None and bool(callback(self._progress()))
        return Status.CALLBACK if stopped_by_user and status is None else status

    def _record(self, certificate: Certificate) -> None:
        current = self.screened.current
        nonzero = int(np.count_nonzero(current.penalty.nonzero(self.state.B[: current.n_rows])))
        passes = self.full.design.passes.total - self._passes_before
        seconds = time.perf_counter() - self._started
        values = (certificate.primal, certificate.dual, certificate.gap)
        self.rows.append(HistoryRow(self.n_iter, seconds, passes, *values, len(self.screened.candidates), nonzero))
        if self.incumbent is None or certificate.gap < self.incumbent.certificate.gap:
            self.incumbent = _Incumbent(self.state.B, self.screened.alive, certificate)

    def _progress(self) -> Progress:
        B, alive = self.state.B, self.screened.alive
        return Progress(
            **asdict(self.rows[-1]),
            alpha_index=self.alpha_index,
            _coefficients=lambda: self.origin.to_input(self.screened.spread(B, alive)),
        )

    # Stopping ---------------------------------------------------------------------------------------

    def _stop_reason(self, certificate: Certificate) -> Status | None:
        if self.n_iter and self._proved():
            return Status.CONVERGED
        if not np.isfinite(certificate.primal):
            return Status.STALLED
        if self._rounded_away:
            return Status.PRECISION
        if self.n_iter and certificate.gap > self.goal and self._limited_by_rounding(certificate):
            return Status.PRECISION
        if self._stands_still(certificate):
            return Status.STALLED
        return Status.MAX_ITER if self.n_iter >= self.settings.max_iter else None

    def _proved(self) -> bool:
        """Whether the gap of the full problem meets the goal; costs a pass only when it may."""
        assert self.incumbent is not None
        gap = self.incumbent.certificate.gap
        if gap > min(self.goal, self._retry_gap):
            return False
        self.final = self._full_answer()
        self._retry_gap = 0.3 * gap  # if the rows removed spoil the dual point, go on for a while
        certificate = self.final[1]
        if certificate.gap > self.goal or self.goal == 0.0:
            return certificate.gap <= self.goal
        public = self._published(*self.final)
        self._rounded_away = public.excess + public.rounding > 0.5 * self.goal
        return public.gap(certificate) <= self.goal

    def _published(self, B: FloatArray, certificate: Certificate) -> Published:
        if self._last_published is None or self._last_published[0] is not B:
            self._last_published = B, published(self.origin, B, certificate, self.dtype)
        return self._last_published[1]

    def _limited_by_rounding(self, certificate: Certificate) -> bool:
        return certificate.gap - certificate.rounding <= self.goal < 2.0 * certificate.rounding

    def _stands_still(self, certificate: Certificate) -> bool:
        primal, gap, count = self._still
        improved = certificate.primal < primal - 1e-14 * abs(primal) or certificate.gap < (1 - _PROGRESS_RTOL) * gap
        count = 0 if improved else count + 1
        self._still = (min(primal, certificate.primal), min(gap, certificate.gap), count)
        return count >= self.solver.patience

    # The answer -------------------------------------------------------------------------------------

    def _full_answer(self) -> tuple[FloatArray, Certificate]:
        """Coefficients of the full problem and their certificate there, over all rows."""
        assert self.incumbent is not None
        found = self.incumbent
        B = self.screened.spread(found.B, found.alive)
        penalty = self.full.penalty
        proved_zero = penalty.rows(np.flatnonzero(self.screened_at >= 0))
        if len(found.alive) == penalty.n_units and not B[proved_zero].any():
            return B, found.certificate
        B[proved_zero] = 0.0
        return B, self.full.certify(B)

    def _with_polished_block(self, B: FloatArray, certificate: Certificate) -> tuple[FloatArray, Certificate]:
        """Unpenalized coefficients to machine precision: inner solves stop as soon as the gap allows."""
        block = self.full.unpenalized
        if not (block.rank and block.n_rows) or not np.isfinite(certificate.primal):
            return B, certificate
        rows, others = np.split(B, [self.full.n_rows])
        better = np.concatenate([rows, block.polished(others, self.full.predictor(B))])
        found = self.full.certify(better, best=certificate)
        return (better, found) if found.gap <= max(certificate.gap, self.goal) else (B, certificate)

    def _after_last_test(self, B: FloatArray, certificate: Certificate) -> tuple[FloatArray, Certificate]:
        """Test the rows with the certificate of the answer itself; dropping them never raises its objective."""
        units = self.screened.test_full(certificate)
        self.screened_at[units] = len(self.rows) - 1
        proved = self.full.penalty.rows(units)
        if not B[proved].any():
            return B, certificate
        B = B.copy()
        B[proved] = 0.0
        return B, self.full.certify(B, best=certificate)

    def _result(self, status: Status) -> SolveResult:
        proved = self.final if status is Status.CONVERGED else None
        B, certificate = proved or self._full_answer()
        B, certificate = self._with_polished_block(B, certificate)
        B, certificate = self._after_last_test(B, certificate)
        self.answer = Answer(B, certificate)
        public = self._published(B, certificate)
        gap = public.gap(certificate)
        if status is Status.CONVERGED and gap > self.goal > 0.0:  # by rounding, after the last rows were tested
            status = Status.PRECISION
        elif status is not Status.CALLBACK and gap <= self.goal:  # the last polish has done it
            status = Status.CONVERGED
        self.screened_at = self.full.penalty.spread(self.screened_at)  # of each row from here on
        self._mark_unproved()
        return SolveResult(
            B=public.B,
            intercept=public.intercept,
            primal=certificate.primal + public.excess,
            dual=certificate.dual,
            gap=gap,
            active=np.flatnonzero(self.screened_at < 0),
            screened_at=self.screened_at,
            clusters=self.full.penalty.clusters(B[: self.full.n_rows]),
            n_iter=self.n_iter,
            n_passes=self.full.design.passes.total - self._passes_before,
            status=status.value,
            seconds=time.perf_counter() - self._started,
            history=History.from_rows(self.rows),
            _theta=lambda: self._exported_theta(B, certificate),
        )

    def _mark_unproved(self) -> None:
        """Take back what looks proved of rows that are zero for another reason."""
        origin = self.origin
        self.screened_at[origin.unpenalized.columns] = NEVER  # removed because they are unpenalized, not zero
        if origin.samples.hides_variation:  # of which the rows that explain it are not known
            self.screened_at[:] = NEVER
        if origin.unpenalized.basis is not None:
            self.screened_at[origin.unpenalized.basis.explained] = AS_EXPLAINED
        self.screened_at[origin.design.treated_as_constant] = AS_CONSTANT

    def _exported_theta(self, B: FloatArray, certificate: Certificate) -> Any:
        theta = certificate.theta if self.origin is self.full else self.origin.certify(B).theta
        return self.origin.design.exported(theta, self.origin.samples.n_tasks)
