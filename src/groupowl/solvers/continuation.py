"""Solves that follow each other on the same data: one, or many alphas, each starting from the last."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from itertools import count, islice, takewhile
from typing import Any, NamedTuple, cast

import numpy as np

from .. import kernel
from .._typing import FloatArray, IndexArray
from ..designs import Design
from ..norm.kernels import nonzero_rows, owl_gauge
from ..problem import Certificate, Problem, Published, Residual, all_published, published
from ..screening import Rule, safe_rows
from .driver import Run
from .settings import SolverSettings
from .solve_result import NEVER, History, HistoryRow, OnAccess, Progress, SolveResult, Status, solve_result

#: Below this tolerance the rounding of a Gram matrix may forbid a proof, and a QR factorization is worth its price.
GRAM_TOLERANCE = 1e-8
# A product with all of X is so many times slower, per operation, than the Gram matrix of X; a solve needs a few.
_PASSES_PER_SOLVE = 6.0
_PASS_SLOWDOWN = 4.0
# Larger Gram matrices are never made unasked.
_MOST_FEATURES = 5000
# Weights this close to those that select nothing, relatively, are left to the data.
_NULL_RTOL = 1e-6
# What the kernel is asked for relative to the gap that is to be proved: its estimate is not the proof. On paths, where
# steps are what takes time, it is asked for less.
KERNEL_GOAL = 0.1
_PATH_GOAL = 0.9
# Entries of X, for each task, up to which it is asked, and at most. But for quadratic losses, its last look at all
# columns and the certificate are one product twice: with few tasks and large X that is what takes time.
_ENTRIES_PER_TASK, _MOST_ENTRIES = 2**23, 2**26
# Predictors up to which it computes their exponentials, one by one, in less time than NumPy in vectors.
_MOST_EXPONENTIALS = 2**14
# Rows that its working sets may have at first, or as many as there are samples; all rows where there are no more.
_FEW_ROWS, _ALL_ROWS = 200, 1000
# Multiplications with all of X up to which the compiled certificate takes less time than NumPy's calls.
_MOST_PRODUCTS = 2**18
# It goes on after a certificate that fell short while each gap is less than this part of the one before.
_GOOD_RETURN = 0.9
# Alphas for which it is asked at once, and coefficients that they may have together: a path may end early.
_MOST_PROPOSALS = 50
# The same where solutions are kept as soon as they are there: an interrupt costs what one call was to find.
_MOST_KEPT_PROPOSALS = 5
_MOST_COEFFICIENTS = 2**22


def compression_pays(problem: Problem, n_solves: int = 1) -> bool:
    """Whether making the statistics costs less than the products with X that so many solves would need.

    A Gram matrix takes ``n d^2`` operations, a product with X ``2 n d q``.
    """
    return problem.is_compressible and problem.n_rows <= _most_rows(problem, n_solves)


def _most_rows(problem: Problem, n_solves: int) -> float:
    return min(2.0 * problem.samples.n_tasks * _PASS_SLOWDOWN * _PASSES_PER_SOLVE * n_solves, _MOST_FEATURES)


def wants_statistics(problem: Problem, solver: Any, n_solves: int) -> bool:
    """Whether a solver wants the statistics of a problem that has them, for so many solves."""
    setting = getattr(solver, "compress", False)
    return compression_pays(problem, n_solves) if setting == "auto" else setting and problem.is_compressible


def wants_patterns(problem: Problem, settings: SolverSettings, n_solves: int) -> bool:
    """The same for moments of the samples of each pattern of observed targets."""
    setting = getattr(settings.solver, "compress", False)
    pays = setting is True or (setting == "auto" and problem.n_rows <= _most_rows(problem, n_solves))
    return pays and problem.has_moments_of_patterns


class Looks(Sequence[Any]):
    """Residuals and certificates of several coefficient matrices, computed by the compiled certificate.

    ``looks[k]`` are the residual and the certificate, made on access; the certificate is None where there is none.

    Attributes
    ----------
    losses, primals, duals, gaps : list of float
    """

    def __init__(self, found: kernel.Certified, problem: Problem) -> None:
        self.found = found
        self.is_quadratic = problem.loss.is_quadratic
        self.exact: dict[int, Residual] = {}  # which have another residual, and no certificate yet
        self.losses, self.primals, self.duals, self.gaps = found.numbers[:, :4].T.tolist()

    def __len__(self) -> int:
        return len(self.gaps)

    def __getitem__(self, k: Any) -> Any:
        if isinstance(k, slice):
            return [self[i] for i in range(*k.indices(len(self)))]
        if k in self.exact:
            return self.exact[k], None
        k = range(len(self))[k]
        theta, C, correlations = self.found.theta[k], self.found.products[k], self.found.correlations[k]
        numbers = self.found.numbers[k].tolist()
        loss, primal, dual, gap, rounding, _, scale, product, square, norm, reach, dual_error, *balance = numbers
        raw = None if self.found.raw is None else self.found.raw[k]
        totals = np.array([product, square] if self.is_quadratic else [])
        descent = C if raw is None else None
        cancelling, imbalance, balancing = balance
        residual = Residual(
            theta, C, descent, correlations, norm, totals, loss, reach, cancelling, imbalance, balancing, raw
        )
        if not math.isfinite(gap):
            return residual, None
        size, proved = abs(scale), (primal, dual, gap, rounding, dual_error, residual)
        return residual, Certificate(scale * theta, size * correlations, size * norm, *proved)


@dataclass(frozen=True, eq=False)
class Batch:
    """Coefficients that one call of the compiled kernel proposes for falling alphas, and what is known of them.

    Attributes
    ----------
    problem, origin : Problem
        What was solved, and the problem as it was given.
    stack : ndarray of shape (n_proposals, n_rows, n_tasks)
    looks : sequence
        Residual and certificate of each, which is None where it has not been made.
    """

    problem: Problem
    origin: Problem
    stack: FloatArray
    looks: Sequence[tuple[Residual, Certificate | None]]

    @cached_property
    def published(self) -> list[Published] | None:
        """Coefficients as users get them, where the compiled twin has looked at them."""
        if not isinstance(self.looks, Looks):
            return None
        return all_published(self.origin, self.stack, np.array(self.looks.primals), self.looks.found.numbers[:, -1])


class Proposal(NamedTuple):
    """One of a batch, and what it took."""

    batch: Batch
    place: int
    steps: int
    passes: float
    seconds: float

    @property
    def B(self) -> FloatArray:
        """Coefficients of the problem."""
        B: FloatArray = self.batch.stack[self.place]
        return B

    def certified(self, problem: Problem) -> Certificate:
        """The certificate for the problem with the weights that it was proposed for."""
        residual, certificate = self.batch.looks[self.place]
        return problem.certify(self.B, residual=residual) if certificate is None else certificate


class Known(NamedTuple):
    """Coefficients of a problem that an earlier run has found, and what they took: the rows that are not zero."""

    rows: IndexArray
    values: FloatArray
    steps: int
    passes: float
    seconds: float


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

    Attributes
    ----------
    B : ndarray
        Coefficients of the last solve.
    certificate, source, residual
        Their certificate, the problem it is for, and what they leave unexplained.
    loss : float or None
        Theirs, where it is known.
    """

    certificate: OnAccess[Certificate | None] = OnAccess()
    source: OnAccess[Problem | None] = OnAccess()
    residual: OnAccess[Residual | None] = OnAccess()

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
        self.exact = settings.tol < GRAM_TOLERANCE
        # Statistics that are known already serve, unless their rounding might forbid the proof asked for.
        self.small = problem if small is None or self.exact else small
        self.B = B
        self.residual = residual
        self.certificate = None
        self.source = problem
        self.loss: float | None = None
        self.line = Extrapolation(scale_of(problem))
        self.least_loss = -math.inf  # what follows a solution with it will not be asked for
        self._null: tuple[Problem, FloatArray] | None = None
        self._kernel: tuple[Design, kernel.KernelData | None] | None = None
        self._capacity: int | None = None  # of its working sets
        if problem.n_rows > _ALL_ROWS:
            most = max(_FEW_ROWS, problem.design.n_samples)  # or so many units, which are larger
            self._capacity = most * -(-problem.n_rows // problem.penalty.n_units)
        self.passes_before: float | None = problem.design.passes.total  # of the first solve: it pays for what follows
        self.expect(n_solves)

    def expect(self, n_solves: int) -> None:
        """Compute the sufficient statistics, if they pay off over the coming solves and are not known yet."""
        if self.small is self.problem and wants_statistics(self.problem, self.settings.solver, n_solves):
            self.small = self.problem.compressed(exact=self.exact) or self.problem
        elif self.small is self.problem and not self.exact and wants_patterns(self.problem, self.settings, n_solves):
            self.small = self.problem.compressed_by_pattern() or self.problem

    def solve(self, weights: FloatArray, alpha: float = 1.0, *, dtype: Any = np.float64) -> SolveResult:
        """Solve with ``lam = alpha * weights``; ``dtype`` is the precision of the coefficients that users get."""
        return next(self.solve_all(weights, [alpha], dtype=dtype))

    def solve_all(
        self,
        weights: FloatArray,
        alphas: Sequence[float],
        *,
        dtype: Any = np.float64,
        known: Callable[[int], Known | None] | None = None,
    ) -> Iterator[SolveResult]:
        """The same for each of falling alphas; when a result comes, the continuation is at its solution.

        The compiled kernel, where it may be asked, proposes coefficients for many alphas in one call, and all of them
        are certified in two products with X. Nothing else of it is believed: where a proposal falls short, and where
        there is none, the solver goes on. What is ``known`` of an alpha, by its position, is proposed in the same way.
        """
        for i, (alpha, proposal) in enumerate(zip(alphas, self.proposals(weights, alphas, known), strict=True)):
            lam, public = alpha * weights, {"alpha_index": i, "dtype": dtype}
            result = None
            if proposal is not None:
                result = self._accept_known(lam, proposal, dtype) or self._accept(lam, proposal, **public)
            if result is None:
                result = self._solve(lam, alpha, proposal, **public)
            self.passes_before = None
            yield result

    def proposals(
        self, weights: FloatArray, alphas: Sequence[float], known: Callable[[int], Known | None] | None = None
    ) -> Iterator[Proposal | None]:
        """Known or proposed (compiled kernel) coefficients for decreasing alphas; None where the kernel is not used.

        Many are made at once, from where the continuation is then.
        """
        most = max(1, min(_MOST_PROPOSALS, _MOST_COEFFICIENTS // max(self.B.size, 1)))
        size = most if known is None else min(most, _MOST_KEPT_PROPOSALS)
        start = 0
        while start < len(alphas):
            found: Sequence[Proposal | None] = ()
            if known is not None:
                found = self._known_proposals(weights, alphas[start : start + most], map(known, count(start)))
            found = found or self._propose(weights, alphas[start : start + size])
            yield from found
            start += len(found)

    def _known_proposals(
        self, weights: FloatArray, alphas: Sequence[float], known: Iterator[Known | None]
    ) -> list[Proposal]:
        """Known coefficients for the leading alphas, up to the first that is unknown."""
        most = 1 if self.kernel_data() is None else len(alphas)  # without it, all that one takes is taken for each
        found = [item for item in takewhile(lambda item: item is not None, islice(known, most)) if item is not None]
        if not found:
            return []
        stack = np.zeros((len(found), *self.B.shape))
        for B, item in zip(stack, found, strict=True):
            B[item.rows] = item.values
        looks = self.looks(np.multiply.outer(alphas[: len(found)], weights), stack)
        batch = Batch(self.small, self.problem, stack, looks)
        return [Proposal(batch, k, item.steps, item.passes, item.seconds) for k, item in enumerate(found)]

    def _solve(self, lam: FloatArray, alpha: float, proposal: Proposal | None, **public: Any) -> SolveResult:
        """Solve on the statistics where they keep the accuracy asked for."""
        chosen = self.small.with_lam(lam)
        if self._is_null(lam):
            chosen = self.problem.with_lam(lam)
        result = self._run(chosen, self.line.at(alpha), proposal, **public)
        assert self.certificate is not None
        falls_short = self.certificate.gap > chosen.goal(self.settings.tol)
        if result.status in ("precision", "stalled") and falls_short and chosen.product_error > 0.0:
            # The Gram matrix is what is not exact enough, and not the coefficients as users get them.
            exact = self.problem.compressed(exact=True) if self.problem.is_compressible else None
            self.small = exact or self.problem
            more = self._run(self.small.with_lam(lam), None, None, **public)
            result = replace(
                more,
                n_iter=result.n_iter + more.n_iter,
                n_passes=result.n_passes + more.n_passes,
                seconds=result.seconds + more.seconds,
            )
        self.line.add(alpha, self.B)
        return result

    def _is_null(self, lam: FloatArray) -> bool:
        """Whether statistics stand for the data, and their rounding decides if these weights select anything."""
        return self.small is not self.problem and owl_gauge(self._null_correlations(), lam) <= 1.0 + _NULL_RTOL

    def kernel_data(self) -> kernel.KernelData | None:
        """The data as the compiled kernel takes them, or None where it is not asked, or cannot."""
        problem = self.small
        if not may_ask_kernel(self.settings):
            return None
        if self._kernel is None or self._kernel[0] is not problem.design:
            self._kernel = problem.design, compiled_data(problem)
        return self._kernel[1]

    def _propose(self, weights: FloatArray, alphas: Sequence[float]) -> Sequence[Proposal | None]:
        """Proposals for the first of some alphas, at least one, with what they leave unexplained.

        From a start that is optimal the solver takes a step, as it always does.
        """
        problem, data = self.small, self.kernel_data()
        if data is None or self._is_null(alphas[0] * weights):
            return [None]
        if len(alphas) == 1 and problem.loss.needs_whole_samples:
            return [None]  # NumPy has Newton steps for them, and ends far more exactly in hardly more time
        block = problem.unpenalized
        started, passes = time.perf_counter(), problem.design.passes
        begun = passes.total
        start: dict[str, Any] = {
            "B_init": self.B[: problem.n_rows],
            "intercept_init": block.intercept(self.B[problem.n_rows :]) if block.n_rows else None,
        }
        unchecked = len(alphas) == 1 and problem.loss.is_quadratic and not _is_small(problem)
        found = self._asked(data, weights, alphas, unchecked=unchecked, **start)
        if found.n_run == 0:
            return [None]
        if unchecked:
            found, looks = self._checked(found, data, weights, alphas[0])
            stack = found.stack()
        else:
            stack = _with_intercepts(problem, found)
            looks = self.looks(np.multiply.outer(alphas[: len(stack)], weights), stack)
        selects = np.diff(found.first[: found.n_run + 1]).tolist()
        costs = found.passes[: found.n_run] * (problem.design.n_features * problem.design.unit)
        costs += (passes.total - begun) / found.n_run
        passes.total += float(costs.sum()) - (passes.total - begun)
        if self.passes_before is not None:  # the first solve pays for what came before it
            costs[0] += begun - self.passes_before
        seconds = (time.perf_counter() - started) / found.n_run
        batch = Batch(problem, self.problem, stack, looks)
        proposals: list[Proposal | None] = []
        for k, (steps, cost, n_rows) in enumerate(zip(found.steps.tolist(), costs.tolist(), selects, strict=False)):
            proposals.append(Proposal(batch, k, steps, cost, seconds) if steps or not n_rows else None)
        return proposals

    def _asked(
        self, data: kernel.KernelData, weights: FloatArray, alphas: Sequence[float], steps: int = 0, **start: Any
    ) -> kernel.Proposals:
        """What the kernel finds from some start, after so many steps."""
        part = KERNEL_GOAL if len(alphas) == 1 else _PATH_GOAL
        for capacity in (self._capacity, None):
            found = kernel.solve(
                data,
                weights,
                part * self.small.goal(self.settings.tol),
                alphas=np.array(alphas),
                least_loss=self.least_loss,
                max_steps=max(self.settings.max_iter - steps, 0),
                capacity=capacity,
                interrupted=self.settings.interrupted,
                rescue=self._rescue,
                **start,
            )
            if found.status[max(found.n_run, 1) - 1] != kernel.NO_ROOM:
                break
            self._capacity = None  # most need little memory, and those that follow will need more
        return found

    @np.errstate(all="ignore")
    def _checked(
        self, found: kernel.Proposals, data: kernel.KernelData, weights: FloatArray, alpha: float
    ) -> tuple[kernel.Proposals, Sequence[tuple[Residual, Certificate | None]]]:
        """One solve that ended without a last look at all of X, once its certificate has met the goal, and this.

        The certificate is that look. Where it falls short, the kernel goes on with the products that it has made.
        """
        problem = self.small.with_lam(alpha * weights)
        goal, gap = problem.goal(self.settings.tol), np.inf
        while True:
            B = found.stack()[0]
            residual = self.looks(problem.lam[None], B[None])[0][0]
            certificate = problem.certify(B, residual=residual)
            is_final = found.status[0] != kernel.CONVERGED or residual.descent is None or not B.any()
            if is_final or certificate.gap <= goal or not certificate.gap <= _GOOD_RETURN * gap:
                return found, [(residual, certificate)]
            start = {"B_init": B, "products_init": residual.descent, "unchecked": True}
            more = self._asked(data, weights, [alpha], int(found.steps[0]), **start)
            if more.n_run == 0:
                return found, [(residual, certificate)]
            more.steps[0] += found.steps[0]
            more.passes[0] += found.passes[0]
            found, gap = more, certificate.gap

    def _rescue(self, found: kernel.Proposals) -> None:
        """Go to the last coefficients that the kernel has found before it was interrupted."""
        if found.n_run:
            self.B = _with_intercepts(self.small, found)[-1]

    @np.errstate(all="ignore")  # what is not finite proves nothing
    def looks(self, lams: FloatArray, stack: FloatArray) -> Sequence[tuple[Residual, Certificate | None]]:
        """Residuals of several coefficient matrices, with certificates if the compiled kernel computes them."""
        problem, data = self.small, self.kernel_data()
        looks = None if data is None else twin_looks(problem, data, lams, stack)
        if looks is None:
            shared = len(stack) > 1 and problem.may_share_products
            residuals = problem.residuals(stack) if shared else map(problem.residual, stack)
            return [(residual, None) for residual in residuals]
        nothing = ~stack[:, : problem.n_rows].any(axis=(1, 2))
        for k in np.flatnonzero(nothing).tolist():  # that nothing is best must be known exactly
            looks.exact[k] = problem.residual(stack[k])
        return looks

    def _accept_known(self, lam: FloatArray, proposal: Proposal, dtype: Any) -> SolveResult | None:
        """What is proposed, where its gap is known and meets the goal; all that few read is made on access."""
        batch, k = proposal.batch, proposal.place
        if batch.published is None or dtype != np.float64 or self.settings.callback is not None:
            return None
        looks, public = cast(Looks, batch.looks), batch.published[k]
        gap = max(looks.gaps[k] + public.excess, 0.0) + public.rounding
        if k in looks.exact or not gap <= batch.problem.goal(self.settings.tol):
            return None
        rule, costs = self.settings.rule, (max(proposal.steps, 1), proposal.passes, proposal.seconds)

        @cache
        def details() -> tuple[Problem, Certificate, SolveResult]:
            problem, certificate = batch.problem.with_lam(lam), looks[k][1]
            origin = problem if batch.problem is batch.origin else batch.origin.with_lam(lam)
            return problem, certificate, _accepted(origin, problem, proposal.B, certificate, public, rule, costs)

        self.B, self.loss = proposal.B, looks.losses[k]
        self.source, self.certificate = lambda: details()[0], lambda: details()[1]
        self.residual = lambda: details()[1].residual
        return SolveResult(
            B=public.B,
            intercept=public.intercept,
            primal=looks.primals[k] + public.excess,
            dual=looks.duals[k],
            gap=gap,
            n_iter=costs[0],
            n_passes=costs[1],
            status=Status.CONVERGED.value,
            seconds=costs[2],
            active=lambda: details()[2].active,
            screened_at=lambda: details()[2].screened_at,
            clusters=lambda: details()[2].clusters,
            history=lambda: details()[2].history,
            _theta=lambda: details()[2].theta,
            scale=batch.origin.design.penalty_scale,
        )

    def _accept(self, lam: FloatArray, proposal: Proposal, alpha_index: int, dtype: Any) -> SolveResult | None:
        """What is proposed, if its certificate meets the goal; nothing selected must be the proved answer."""
        solved, B, rule = proposal.batch.problem, proposal.B, self.settings.rule
        problem = solved.with_lam(lam)
        origin = problem if solved is self.problem else self.problem.with_lam(lam)
        goal = problem.goal(self.settings.tol)
        with np.errstate(all="ignore"):
            certificate = proposal.certified(problem)
            if not certificate.gap <= goal or (certificate.gap > 0.0 and not B[: problem.n_rows].any()):
                return None
            public = published(origin, B, certificate, dtype)
        if not public.gap(certificate) <= goal:
            return None
        self._arrive(B, problem, certificate)
        costs = max(proposal.steps, 1), proposal.passes, proposal.seconds
        result = _accepted(origin, problem, B, certificate, public, rule, costs)
        if self.settings.callback is not None:
            row = vars(result.history[0])
            self.settings.callback(Progress(**row, alpha_index=alpha_index, _coefficients=partial(origin.to_input, B)))
        return result

    def _arrive(self, B: FloatArray, source: Problem, certificate: Certificate) -> None:
        """The next solve starts from here."""
        self.B, self.source, self.certificate, self.residual = B, source, certificate, certificate.residual
        self.loss = None if certificate.residual is None else certificate.residual.loss

    @contextmanager
    def aside(self, B: FloatArray) -> Iterator[None]:
        """Solves from other coefficients; afterwards the continuation goes on as if they had not been."""
        kept = {name: vars(self)[name] for name in ("B", "residual", "certificate", "source", "loss", "line")}
        self.B, self.residual, self.line = B, None, Extrapolation(scale_of(self.problem))
        try:
            yield
        finally:
            vars(self).update(kept)  # what is made on access as well

    def _null_correlations(self) -> FloatArray:
        """Those of the model without features, the same for all weights."""
        if self._null is None or self._null[0] is not self.small:
            self._null = self.small, self.small.residual(self.small.null_coefficients()).correlations
        return self._null[1]

    def _run(self, chosen: Problem, guess: FloatArray | None, proposal: Proposal | None, **public: Any) -> SolveResult:
        origin = chosen if chosen.design is self.problem.design else self.problem.with_lam(chosen.lam)
        before = self.passes_before
        self.passes_before = None
        start, steps = self.B, 0
        residual = self.residual if self.source is not None and self.source.design is chosen.design else None
        if proposal is not None and chosen.design is proposal.batch.problem.design:
            before = chosen.design.passes.total - proposal.passes
            start, steps, guess = proposal.B, proposal.steps, None
            residual = proposal.batch.looks[proposal.place][0]
        run = Run(chosen, self.settings, origin=origin, passes_before=before, **public)
        try:
            result = run.solve(start, steps, residual=residual, guess=guess)
        except BaseException:
            self.B = start if run.incumbent is None else run.best_coefficients()
            raise
        assert run.answer is not None
        B, _, certificate = run.answer
        self._arrive(B, chosen, certificate)
        return result


def _is_small(problem: Problem) -> bool:
    """Whether calls of NumPy take more time than the products with all of X that they make."""
    n_samples, n_features = problem.design.shape
    return n_samples * n_features * problem.samples.n_tasks <= _MOST_PRODUCTS


def _suits_twin(problem: Problem, data: kernel.KernelData) -> bool:
    """Whether the compiled certificate serves, and takes less time than NumPy's calls."""
    return data.is_dense and _is_small(problem) and problem.design.n_samples <= kernel.MOST_CERTIFIED_SAMPLES


def twin_looks(problem: Problem, data: kernel.KernelData, lams: FloatArray, stack: FloatArray) -> Looks | None:
    """Residuals and certificates of several coefficients by the compiled twin, or None where NumPy takes less time."""
    design, samples = problem.design, problem.samples
    if not _suits_twin(problem, data):
        return None
    block, n_rows = problem.unpenalized, problem.n_rows
    constants = np.stack([block.intercept(B[n_rows:]) for B in stack]) if block.n_rows else None
    found = kernel.certify(
        data,
        lams,
        stack[:, :n_rows],
        constants,
        norms=problem.norms,
        rounding_norms=problem.rounding_norms,
        y_norm=samples.norm,
        is_balanced=problem.fit_intercept and problem.unpenalized.in_samples,
        product_error=problem.product_error,
        scale_error=problem.scale_error,
    )
    design.charge(len(stack) * design.n_features + float(found.n_rows))
    return Looks(found, problem)


def _with_intercepts(problem: Problem, found: kernel.Proposals) -> FloatArray:
    """Coefficients of all solves that were run, intercepts included where they are coefficients.

    Where nothing is selected, they are those of the model without features to the last digit.
    """
    stack, block = found.stack(), problem.unpenalized
    if not block.n_rows:
        return stack
    null, selects = block.null_rows(), np.any(stack, axis=(1, 2)).tolist()
    intercepts = found.intercept[: found.n_run]
    rows = [block.with_intercept(null, b) if any_row else null for b, any_row in zip(intercepts, selects, strict=True)]
    return np.concatenate([stack, np.stack(rows)], axis=1)


def _accepted(
    origin: Problem,
    problem: Problem,
    B: FloatArray,
    certificate: Certificate,
    public: Published,
    rule: Rule | None,
    costs: tuple[int, float, float],
) -> SolveResult:
    """The result of coefficients whose certificate meets the goal; steps, passes and seconds are what they cost."""

    def history() -> History:
        steps, passes, seconds = costs
        values = certificate.primal, certificate.dual, certificate.gap
        n_active = len(_candidates(problem, rule))  # as they are when the certificate is made
        n_nonzero = int(problem.penalty.nonzero(B[: problem.n_rows]).sum())
        return History.from_rows([HistoryRow(steps, seconds, passes, *values, n_active, n_nonzero)])

    return solve_result(
        origin,
        problem,
        B,
        certificate,
        public,
        Status.CONVERGED,
        *costs,
        screened_at=cache(partial(_screened_at, problem, B, certificate, rule)),  # asked for active rows, too
        history=history,
    )


def _candidates(problem: Problem, rule: Rule | None) -> IndexArray:
    """Units that a rule may prove to be zero or not: columns of zeros never help, and have been dropped by then."""
    if rule is None:
        return np.arange(problem.penalty.n_units)
    return np.flatnonzero(problem.penalty.lengths(problem.norms) > 0)


def _screened_at(problem: Problem, B: FloatArray, certificate: Certificate, rule: Rule | None) -> IndexArray:
    """For each unit 0 where a certificate proves that it is zero, and it is zero in ``B``."""
    penalty = problem.penalty
    if rule is None:
        return np.full(penalty.n_units, NEVER)
    screened_at = np.zeros(penalty.n_units, dtype=np.intp)
    screened_at[safe_rows(problem, certificate, _candidates(problem, rule), rule)] = NEVER
    screened_at[penalty.nonzero(B[: problem.n_rows])] = NEVER
    return screened_at


def may_ask_kernel(settings: SolverSettings) -> bool:
    """Whether the solver leaves solves to the compiled kernel, and nobody watches them."""
    is_watched = settings.callback is not None and getattr(settings.callback, "sees_rounds", True)
    return not is_watched and getattr(settings.solver, "uses_kernel", False)


def compiled_data(problem: Problem) -> kernel.KernelData | None:
    """The data of a problem as the compiled kernel takes them, or None where it cannot."""
    design, samples, penalty = problem.design, problem.samples, problem.penalty
    data = design.plain_data() if _is_asked_about(problem) and kernel.is_available() else None
    if data is None or problem.unpenalized.rank or not problem.loss.compiled or not problem.loss_scale > 0.0:
        return None
    if penalty.unit_starts is None or not penalty.is_norm:  # it knows units of neighboring rows, no ridge and no signs
        return None
    if samples.w.shape[1] > 1:
        return None
    return kernel.KernelData(
        data.X,
        samples.Y,
        problem.loss.compiled,
        mean=data.mean,
        scale=data.scale,
        sample_weight=samples.w[:, 0],
        fit_intercept=problem.unpenalized.n_rows > 0,
        unit_starts=None if penalty.rows_are_units else penalty.unit_starts,
    )


def _is_asked_about(problem: Problem) -> bool:
    """Whether the kernel takes less time than NumPy for data of this size."""
    design, n_tasks = problem.design, problem.samples.n_tasks
    n_entries = design.density * design.n_samples * design.n_features
    if problem.loss.is_quadratic:
        return n_entries <= _MOST_ENTRIES
    is_fast = design.n_samples * n_tasks <= _MOST_EXPONENTIALS
    return is_fast and n_entries <= min(_ENTRIES_PER_TASK * n_tasks, _MOST_ENTRIES)


def scale_of(problem: Problem) -> Callable[[float], float]:
    """The function of alpha in which solutions move nearly along lines while their pattern stays.

    For squared loss and one task it is alpha itself, and the lines are exact. Predictors of classes grow with
    the logarithm of what is left of the penalty.
    """
    return float if problem.loss.is_quadratic else math.log


class Extrapolation:
    """Linear extrapolation of the last two solutions, a better start than either while the support stays the same.

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
