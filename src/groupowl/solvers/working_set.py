"""The default solver: a small working set of rows, solved again and again, certified on the whole problem.

Products with all of X happen once per round, for the certificate. Everything else lives on the rows that violate the
optimality conditions or carry coefficients. Which weight a row pays is decided on the working set, because rows that
are zero take the smallest weights.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._checks import positive_integer
from .._typing import FloatArray, Handle, IndexArray
from ..problem import Problem
from .apgd import APGD
from .inner import minimize
from .inner.oracles import (
    ColumnsOracle,
    FactoredGramOracle,
    Goal,
    GramOracle,
    Oracle,
    ProblemOracle,
    TaskGramOracle,
    columns_cost,
)
from .settings import Round

# Accuracy of an inner solve relative to the gap at its start, and the finest one when rounds make little headway.
_INNER_RTOL = 0.1
_FINEST_RTOL = 1e-3
# A round that leaves more than this of the gap asks for finer inner solves.
_POOR_ROUND = 0.7
# Violators beyond the capacity that join all the same where they are the last: cheaper than another round.
_LAST_ONES = 0.5
# A working set with more than this of the candidates may as well be all of them.
_MOST_CANDIDATES = 0.6
# Rounds in which the gap must halve, or the working set becomes all candidates: then the method cannot cycle.
_HALVING_ROUNDS = 5
# Accelerated steps where gradient steps on the working set have not halved its gap for long.
_ACCELERATED_STEPS = 500
# Candidates of so few rows are all members: choosing among them would cost more than it saves.
_FEW_CANDIDATES = 40
# Floating-point operations that take as long as the fixed cost of a round.
_ROUND_OVERHEAD = 2e7
# Entries of the Gram matrices of all tasks together, at most: a gigabyte.
_MOST_GRAM_ENTRIES = 1 << 27


@dataclass(frozen=True, eq=False)
class _State:
    B: FloatArray
    Z: Handle | None
    members: Any  # boolean mask: rows in the working set, units as a whole
    capacity: int  # violators that may join in one round
    relative: float = _INNER_RTOL
    last_gap: float = np.inf
    halved_gap: float = np.inf  # gap when it was last found to have halved
    rounds_since: int = 0
    inner_gap: float = np.inf  # gap on the working set after the last inner solve
    cut: bool = False  # more rows violate the conditions than could join
    lipschitz: float = 0.0  # curvature of the last step of an inner solve, where the working set has not changed


@dataclass(frozen=True)
class WorkingSet:
    """Default solver: working sets, with Barzilai-Borwein and Newton steps inside.

    Parameters
    ----------
    first_size : int or None, default=None
        Rows, or groups of them, that may join the working set in the first round, or half as many again where that
        makes all of them; later rounds adapt it. By default one in a hundred, at least 50 and at most 150; of groups,
        that over the root of the mean number of their rows.
    screen_after : int, default=0
        Steps before the first screening test.
    compress : "auto" or bool, default="auto"
        Whether to reduce squared-loss problems with more samples than features to their sufficient statistics first:
        one pass over the data, whatever follows. "auto" does so where the Gram matrix costs less than the products
        with X that it saves: with few features per task, and on paths.

    Examples
    --------
    >>> import groupowl as go
    >>> data = go.datasets.make_correlated_groups(60, 200, 3, random_state=0)
    >>> lam = 0.3 * go.lam_max(data.X, data.Y, "oscar") * go.weights.oscar(200)
    >>> result = go.solve(data.X, data.Y, lam, solver=go.WorkingSet())
    >>> result.status, result.n_passes < 20
    ('converged', True)
    """

    first_size: int | None = None
    screen_after: int = 0
    compress: str | bool = "auto"

    #: Rows proved zero leave the problem once so few are left that copying their columns is cheap, and only in long
    #: solves: the whole problem must be certified once more at the end.
    shrink_fraction = 0.1
    shrink_after = 4
    visits_all_rows = False
    #: Whether inner solves may take Newton-type steps.
    second_order = True
    #: Rounds without any progress after which a solve counts as stalled.
    patience = 10

    def __post_init__(self) -> None:
        if self.first_size is not None:
            positive_integer("first_size", self.first_size)
        positive_integer("screen_after", self.screen_after, minimum=0)
        if not isinstance(self.compress, bool) and self.compress != "auto":
            raise ValueError(f"compress must be 'auto', True or False, got {self.compress!r}.")

    @property
    def uses_kernel(self) -> bool:
        """Whether the compiled kernel may make the first proposal: it has its own ways to choose working sets."""
        return self.first_size is None and self.screen_after == 0

    def start(self, problem: Problem, B: FloatArray, rng: np.random.Generator) -> _State:
        """State at ``B`` with its non-zero rows as working set."""
        members = problem.penalty.spread(problem.penalty.nonzero(B[: problem.n_rows]))
        first = self.first_size
        if first is None:  # units of many rows are fewer at a time, and their rows more
            n_units = problem.penalty.n_units
            mean_size = problem.n_rows / max(n_units, 1)
            first = max(1, int(min(max(n_units // 100, 50), 150) / np.sqrt(max(mean_size, 1.0))))
        return _State(B, None, members, max(first, int(np.count_nonzero(members))))

    def restrict(self, problem: Problem, state: _State, rows: IndexArray) -> _State:
        """State on fewer rows."""
        return replace(state, B=state.B[rows], Z=None, members=state.members[rows[: problem.n_rows]])

    def advance(self, problem: Problem, state: _State, task: Round) -> tuple[_State, int]:
        """One round: choose the working set from the certificate, solve on it."""
        state, violators = self._choose(problem, state, task)
        units = np.flatnonzero(problem.penalty.of_units(state.members))
        everything = len(units) == len(task.candidates)
        index = problem.row_index(units)
        B_W = state.B[index]
        oracle = self.oracle(problem, units, state, task, B_W)
        goal = _inner_goal(problem, oracle, state, task, everything=everything, violators=violators)
        end = minimize(
            oracle,
            goal=goal,
            max_steps=max(task.max_steps, 1),
            guess=None if task.guess is None else task.guess[index][: len(oracle.base.B)],
            lipschitz=0.0 if violators else state.lipschitz,
            second_order=self.second_order,
        )
        B_W, steps, gap = oracle.completed(end.point.B), end.steps, end.point.gap
        if end.is_slow:
            more = min(_ACCELERATED_STEPS, task.max_steps - steps)
            B_W = _accelerated(problem.restrict(units), B_W, task, more)
            steps += more
            gap = np.inf
        B = np.zeros_like(state.B)
        B[index] = B_W
        state = replace(state, B=B, Z=None, last_gap=task.certificate.gap, inner_gap=gap, lipschitz=end.lipschitz)
        return state, steps

    def oracle(self, problem: Problem, units: IndexArray, state: _State, task: Round, B: FloatArray) -> Oracle:
        """The cheapest way to evaluate the loss on these units."""
        residual, penalty = task.certificate.residual, problem.penalty.restrict(units)
        rows = problem.penalty.rows(units)
        complete = np.count_nonzero(B) == np.count_nonzero(state.B)  # the residual is that of these rows alone
        cheaper = 2.0 * len(rows) ** 2 <= columns_cost(problem, len(rows))
        if problem.loss.is_quadratic and cheaper and complete and residual is not None and residual.descent is not None:
            return GramOracle(problem.gram(rows), penalty, B, residual.descent[rows], residual.loss)
        if self._tasks_apart(problem, rows) and cheaper and complete and residual is not None:
            return TaskGramOracle(problem, rows, penalty, B, residual)
        columns = problem.columns(rows)
        if columns is None:
            near = problem.brought_near(units)
            columns = None if near is None else near.columns(np.arange(len(rows)))
            if near is None or columns is None:
                return ProblemOracle(problem.restrict(units), B)
            problem = near
        if problem.loss.is_quadratic:  # no unpenalized rows: what they explain was taken off before
            return FactoredGramOracle(columns, penalty, B, *problem.samples.handles)
        return ColumnsOracle(columns, penalty, B, problem)

    def _tasks_apart(self, problem: Problem, rows: IndexArray) -> bool:
        """Whether the loss is squared loss with a Gram matrix for each task, and these fit into memory."""
        is_local = problem.design.patterns is not None and problem.design.is_one_block
        size = problem.samples.n_tasks * len(rows) ** 2
        return problem.loss.has_fixed_curvature and is_local and size <= _MOST_GRAM_ENTRIES

    def _choose(self, problem: Problem, state: _State, task: Round) -> tuple[_State, int]:
        """State with the next working set, and how many rows outside the last one violate the conditions.

        A few candidates are all members. Of more, members are the rows with coefficients, those of the last working set
        that could still be non-zero, and the strongest violators. Where there are none, the last working set stays as
        it is: dropping rows would make it cycle.
        """
        penalty, gap = problem.penalty, task.certificate.gap
        candidate, last = _mask(task.candidates, penalty.n_units), penalty.of_units(state.members)
        if len(task.candidates) * problem.n_rows <= _FEW_CANDIDATES * penalty.n_units:
            joined = int(np.count_nonzero(candidate & ~last))
            relative = max(state.relative / 10.0, _FINEST_RTOL)
            return replace(state, members=penalty.spread(candidate), relative=relative, cut=False), joined
        support = penalty.nonzero(state.B[: problem.n_rows]) & candidate
        possible, correlations = _possible_units(problem, state.B, task)
        violators = np.flatnonzero(possible & ~last)
        count, capacity = len(violators), max(state.capacity, 2 * int(np.count_nonzero(support)))
        if cut := count > (1.0 + _LAST_ONES) * state.capacity:
            violators = violators[np.argpartition(-correlations[violators], state.capacity)[: state.capacity]]
            capacity = 2 * state.capacity
        members = support | (last & (possible if count else candidate))
        members[violators] = True
        halved = gap <= 0.5 * state.halved_gap
        rounds = 0 if halved else state.rounds_since + 1
        if np.count_nonzero(members) > _MOST_CANDIDATES * len(task.candidates) or rounds >= _HALVING_ROUNDS:
            members = candidate
        poor = count == 0 or gap > _POOR_ROUND * state.last_gap
        state = replace(
            state,
            members=penalty.spread(members),
            capacity=capacity,
            relative=max(state.relative / 10.0, _FINEST_RTOL) if poor else _INNER_RTOL,
            halved_gap=gap if halved else state.halved_gap,
            rounds_since=rounds,
            cut=cut,
        )
        return state, count


def _accelerated(problem: Problem, B: FloatArray, task: Round, steps: int) -> FloatArray:
    """Coefficients after accelerated steps with restart, which converge where all else is slow."""
    solver = APGD(restart="gradient")
    state = solver.start(problem, B, np.random.default_rng(0))
    for _ in range(steps):
        state = solver.step_once(problem, state, task.certificate)
    return state.B


def _mask(rows: IndexArray, size: int) -> Any:
    mask = np.zeros(size, dtype=bool)
    mask[rows] = True
    return mask


def _possible_units(problem: Problem, B: FloatArray, task: Round) -> tuple[Any, FloatArray]:
    """Units that could be non-zero if the residual were that of the optimum, as a mask; and all correlations."""
    residual, candidates = task.certificate.residual, task.candidates
    if residual is None:  # the coefficients overflow
        return np.zeros(problem.penalty.n_units, dtype=bool), np.zeros(problem.penalty.n_units)
    correlations = problem.pulls(B, residual)
    return _mask(candidates[problem.penalty.candidates(correlations[candidates])], len(correlations)), correlations


def _inner_goal(
    problem: Problem, oracle: Oracle, state: _State, task: Round, *, everything: bool, violators: int
) -> Goal:
    """When an inner solve is good enough for the next certificate.

    Steps on the working set that together cost less than a round are free.
    """
    tight = (0.9 if everything else 0.3) * task.goal
    if violators == 0 and not everything and state.inner_gap <= 1.2 * tight:
        tight *= state.relative  # so accurate it was already, and yet the gap of the whole problem is too large
    design, q = problem.design, problem.samples.n_tasks
    round_cost = 2.0 * design.density * design.n_samples * design.n_features * q + _ROUND_OVERHEAD
    free_steps = 0 if state.cut else int(round_cost / oracle.step_cost)  # if cut, another round is certain
    return Goal(tight, max(tight, state.relative * task.certificate.gap), free_steps)
