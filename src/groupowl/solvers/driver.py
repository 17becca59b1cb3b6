"""The one loop around every solver: certify, record, stop, screen, step.

A solver is a step and knows nothing of screening; screening knows nothing of solvers. That is what keeps a
new solver from forgetting it, and what makes histories comparable.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import asdict
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np

from .._typing import FloatArray, IndexArray
from ..problem import Certificate, Problem, Published, Residual, published
from ..screening import ScreenedProblem
from .settings import Round, SolverSettings
from .solve_result import NEVER, History, HistoryRow, Progress, SolveResult, Status, solve_result

_PROGRESS_RTOL = 1e-3


class SteppingSolver:
    """A solver of equal steps, certified every few of them."""

    #: Rows proved zero leave the problem once they are a quarter: every later step is cheaper.
    shrink_fraction = 0.75
    shrink_after = 0
    #: Whether steps visit all rows that are left, so that proving more of them zero on the way pays for a product.
    visits_all_rows = True
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


class Answer(NamedTuple):
    """Coefficients, the units whose rows they have, and what is proved about them."""

    B: FloatArray
    units: IndexArray
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
        self.incumbent: Answer | None = None  # the one of the smallest gap
        self.answer: Answer | None = None  # the incumbent on the full problem
        self._last_published: tuple[FloatArray, Published] | None = None  # the answer and its public form
        self._rounded_away = False  # whether rounding the coefficients for users takes what the goal allows
        self._retry_gap = np.inf  # gap below which the full problem is certified (again)
        self._still = (np.inf, np.inf, 0)  # best primal, best gap, certificates since either improved
        self._passes_before = problem.design.passes.total if passes_before is None else passes_before
        self._started = time.perf_counter()

    def solve(
        self, B: FloatArray, steps: int = 0, *, residual: Residual | None = None, guess: FloatArray | None = None
    ) -> SolveResult:
        """Run from the coefficients ``B``, which took some steps to find, until there is a reason to stop.

        The non-zero rows of a ``guess`` at the solution must be among those of ``B``.
        """
        full, rng = self.full, self.settings.rng
        self.n_iter = steps
        with np.errstate(all="ignore"):  # non-finite values are looked for, not warned about
            B = B.copy() if full.loss_scale > 0.0 else full.null_coefficients()  # which is then the answer
            B[: full.n_rows][full.norms == 0] = 0.0
            if self.screened.rule is not None:
                self.screened_at[self.screened.drop_zero_columns()] = 0
            self.state = self.solver.start(full, B, rng)
            status = self._certify(residual)
            is_worse = not self.rows[-1].primal <= full.null_loss  # than no features at all
            if is_worse and (status is None or steps):
                self.n_iter = 0
                self.state = self.solver.start(full, full.null_coefficients(), rng)
                status, guess = self._certify(), None
            while status is None:
                self._screen()
                status, guess = self._certify(self._advance(guess)), None
            return self._result(status)

    def _advance(self, guess: FloatArray | None) -> Residual | None:
        """Steps up to the next certificate; the residual where they end, if it is known."""
        latest, left = self.screened.certificate, self.settings.max_iter - self.n_iter
        assert latest is not None
        if self.n_iter == 0 and latest.gap == 0.0:  # no features are best: a step would not move them
            self.n_iter = 1
            return latest.residual
        if self.n_iter == 0 and latest.gap <= self.goal:
            left = 1  # optimal from the start: one prox step, so that clusters are those of a prox
        if guess is not None and len(guess) != len(self.state.B):  # rows have left already
            guess = None
        task = Round(latest, self.screened.candidates, self.goal, left, guess)
        self.state, steps = self.solver.advance(self.screened.current, self.state, task)
        self.n_iter += steps
        return None

    def _screen(self) -> None:
        """Note the rows that the certificate proves to be zero; hand the solver a smaller problem if it pays."""
        if self.n_iter < self.solver.screen_after:
            return
        self.screened_at[self.screened.test(local=self.solver.visits_all_rows)] = len(self.rows) - 1
        if len(self.rows) <= self.solver.shrink_after:
            return
        rows = self.screened.shrink(self.solver.shrink_fraction)
        if rows is not None:
            self.state = self.solver.restrict(self.screened.current, self.state, rows)

    def _certify(self, residual: Residual | None = None) -> Status | None:
        """Certify the current coefficients, record them, and say why to stop, if so."""
        if self.settings.interrupted is not None:
            self.settings.interrupted()
        B, units, current = self.state.B, self.screened.alive, self.screened.current
        certificate = self.screened.certify(B, self.state.Z, residual=residual)
        nonzero = int(np.count_nonzero(current.penalty.nonzero(B[: current.n_rows])))
        passes = self.full.design.passes.total - self._passes_before
        seconds = time.perf_counter() - self._started
        values = (certificate.primal, certificate.dual, certificate.gap)
        self.rows.append(HistoryRow(self.n_iter, seconds, passes, *values, len(self.screened.candidates), nonzero))
        if self.incumbent is None or certificate.gap < self.incumbent.certificate.gap:
            self.incumbent = Answer(B, units, certificate)
        status, callback = self._stop_reason(certificate, self.incumbent), self.settings.callback
        if callback is None:
            return status
        progress = Progress(
            **asdict(self.rows[-1]),
            alpha_index=self.alpha_index,
            _coefficients=lambda: self.origin.to_input(self.screened.spread(B, units)),
        )
        return Status.CALLBACK if callback(progress) and status is None else status

    def _stop_reason(self, certificate: Certificate, incumbent: Answer) -> Status | None:
        if self.n_iter and self._proved(incumbent):
            return Status.CONVERGED
        if not np.isfinite(certificate.primal):
            return Status.STALLED
        limited = certificate.gap - certificate.rounding <= self.goal < 2.0 * certificate.rounding
        if self._rounded_away or (self.n_iter and certificate.gap > self.goal and limited):
            return Status.PRECISION
        primal, gap, count = self._still
        improved = certificate.primal < primal - 1e-14 * abs(primal) or certificate.gap < (1 - _PROGRESS_RTOL) * gap
        count = 0 if improved else count + 1
        self._still = (min(primal, certificate.primal), min(gap, certificate.gap), count)
        if count >= self.solver.patience:
            return Status.STALLED
        return Status.MAX_ITER if self.n_iter >= self.settings.max_iter else None

    def _proved(self, incumbent: Answer) -> bool:
        """Whether the gap of the full problem meets the goal; costs a pass only when it may.

        Where there is nothing to explain, and so no goal, the gap may be rounding.
        """
        gap = incumbent.certificate.gap
        if gap > min(self.goal or 2.0 * incumbent.certificate.rounding, self._retry_gap):
            return False
        self.answer = self._on_full_problem(incumbent)
        self._retry_gap = 0.3 * gap  # if the rows removed spoil the dual point, go on for a while
        certificate = self.answer.certificate
        if certificate.gap > self.goal or self.goal == 0.0:
            return certificate.gap <= (self.goal or 2.0 * certificate.rounding)
        public = self._published(self.answer)
        self._rounded_away = public.excess + public.rounding > 0.5 * self.goal
        return public.gap(certificate) <= self.goal

    def _published(self, answer: Answer) -> Published:
        if self._last_published is None or self._last_published[0] is not answer.B:
            self._last_published = answer.B, published(self.origin, answer.B, answer.certificate, self.dtype)
        return self._last_published[1]

    # The answer -------------------------------------------------------------------------------------

    def best_coefficients(self) -> FloatArray:
        """Coefficients of the smallest gap so far, of the whole problem, should the solve be interrupted."""
        assert self.incumbent is not None
        return self.screened.spread(self.incumbent.B, self.incumbent.units)

    def _on_full_problem(self, found: Answer) -> Answer:
        """An answer with all rows, and its certificate for all of them."""
        B = self.screened.spread(found.B, found.units)
        penalty = self.full.penalty
        proved_zero = penalty.rows(np.flatnonzero(self.screened_at >= 0))
        if len(found.units) == penalty.n_units and not B[proved_zero].any():
            return found._replace(B=B)
        B[proved_zero] = 0.0
        return Answer(B, np.arange(penalty.n_units), self.full.certify(B))

    def _with_polished_block(self, answer: Answer) -> Answer:
        """Unpenalized coefficients to machine precision: inner solves stop as soon as the gap allows."""
        (B, _, certificate), block = answer, self.full.unpenalized
        if not (block.rank and block.n_rows) or not np.isfinite(certificate.primal):
            return answer
        rows, others = np.split(B, [self.full.n_rows])
        better = np.concatenate([rows, block.polished(others, self.full.predictor(B))])
        found = self.full.certify(better, best=certificate)
        improved = found.gap <= max(certificate.gap, self.goal)
        return answer._replace(B=better, certificate=found) if improved else answer

    def _after_last_test(self, answer: Answer) -> Answer:
        """Test the rows with the certificate of the answer itself; dropping them hardly ever raises its objective.

        Never where the bounds are those of balls. If some are local and it is too much, the rows stay as they are.
        """
        units = self.screened.test_full(answer.certificate)
        proved = self.full.penalty.rows(units)
        B = answer.B.copy()
        B[proved] = 0.0
        if answer.B[proved].any():
            found = self.full.certify(B, best=answer.certificate)
            if found.gap > max(answer.certificate.gap, self.goal):
                units = units[~self.full.penalty.nonzero(answer.B[: self.full.n_rows])[units]]
            else:
                answer = answer._replace(B=B, certificate=found)
        self.screened_at[units] = len(self.rows) - 1
        return answer

    def _result(self, status: Status) -> SolveResult:
        assert self.incumbent is not None
        answer = self.answer if status is Status.CONVERGED else None
        answer = answer or self._on_full_problem(self.incumbent)
        answer = self._with_polished_block(answer)
        screened_at: Callable[[], IndexArray] = partial(getattr, self, "screened_at")
        if math.isfinite(self.full.loss.curvature):
            answer = self._after_last_test(answer)
        elif self.screened.rule is not None:
            screened_at = cache(partial(_tested, self.screened, answer, self.screened_at, len(self.rows) - 1))
        self.answer = answer
        public = self._published(answer)
        gap = public.gap(answer.certificate)
        if status is Status.CONVERGED and gap > self.goal > 0.0:  # by rounding, after the last rows were tested
            status = Status.PRECISION
        elif status is not Status.CALLBACK and gap <= self.goal:  # the last polish has done it
            status = Status.CONVERGED
        return solve_result(
            self.origin,
            self.full,
            answer.B,
            answer.certificate,
            public,
            status,
            self.n_iter,
            self.full.design.passes.total - self._passes_before,
            time.perf_counter() - self._started,
            screened_at=screened_at,
            history=lambda: History.from_rows(self.rows),
        )


@np.errstate(all="ignore")
def _tested(screened: ScreenedProblem, answer: Answer, screened_at: IndexArray, last: int) -> IndexArray:
    """When each unit was proved zero, after a test with the last certificate by local bounds alone.

    These take two passes over the data, and so are made when somebody asks. Rows that are not zero stay as they are.
    """
    penalty, found = screened.full.penalty, screened_at.copy()
    found[screened.test_full(answer.certificate)] = last
    found[penalty.nonzero(answer.B[: screened.full.n_rows]) & (screened_at < 0)] = NEVER
    return found
