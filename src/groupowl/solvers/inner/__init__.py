"""Solvers of the small problem on a working set: functions of plain arrays behind one interface.

Gradient steps of Barzilai-Borwein length come first. Once they have found the non-zero rows, a Newton step for these
rows and their clusters ends most solves for squared loss in Gram form. Where it does not, second-order methods take
turns with gradient steps: the proximal point method for squared loss, models of the curvature for other losses, each
model a problem of the first kind. Accelerated gradient steps are the last resort.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._typing import FloatArray
from ...norm.kernels import nonzero_rows
from .curvature import CurvatureNewton
from .descent import Goal, Iterate, accelerated, barzilai_borwein, first_iterate
from .newton import ProximalNewton, newton_cost, pattern_step
from .oracles import (
    ColumnsOracle,
    CurvedOracle,
    GramOracle,
    Oracle,
    ProblemOracle,
    QuadraticOracle,
    as_curved,
    as_quadratic,
    columns_cost,
)

__all__ = ["ColumnsOracle", "Goal", "GramOracle", "Iterate", "Oracle", "ProblemOracle", "columns_cost", "minimise"]

# Gradient steps before anything else is tried, and between two looks at whether something else pays.
_FIRST_STEPS = 30
_BLOCK_STEPS = 20
# The same where single Newton steps along the pattern are cheap, and between two such steps that help.
_SHORT_BLOCK = 10
_SHORTEST_BLOCK = 3
# Rows that may have changed before such a step, as a part of the non-zero ones.
_FEW_CHANGED = 0.2
# A method that leaves more than this of the gap did not help.
_WORTH_IT = 0.5
# How long methods wait for their turn, as multiples of their price that gradient steps must have cost, and by how much
# longer after a try in vain. Proximal Newton steps need many where rows may form clusters, until they are found.
_PATTERN_PATIENCE = 0.5
_CURVATURE_PATIENCE = 1.0
_NEWTON_PATIENCE = 1.0
_CLUSTER_NEWTON_PATIENCE = 15.0
_PATTERN_RISE = 2.0
_RISE = 4.0
# Operations for models of the curvature until the gap must have halved, relative to what they waited for.
_CURVATURE_WORK = 30.0
# Gradient steps that must halve the gap, or accelerated ones take over for a while.
_SLOW_STEPS = 1000
_ACCELERATED_STEPS = 500


def minimise(
    oracle: Oracle,
    B: FloatArray,
    lam: FloatArray,
    *,
    goal: Goal,
    max_steps: int,
    guess: FloatArray | None = None,
    lipschitz: float | None = None,
    second_order: bool = True,
    newton_limit: float = np.inf,
) -> Iterate:
    """Minimise loss plus penalty on a working set to the goal, in at most ``max_steps`` steps.

    Starts from ``guess`` where that is better than ``B``. A Newton system may cost ``newton_limit`` operations.
    """
    minimisation = _Minimisation(oracle, lam, goal, max_steps, second_order, newton_limit)
    return minimisation.run(first_iterate(oracle, B, lam, lipschitz, guess))


@dataclass
class _Turn:
    """When the next try of a method comes: once gradient steps have cost ``patience`` times its price."""

    patience: float
    rise: float
    since: int = 0  # steps at the end of the last try
    in_vain: int = 0  # tries that did not help

    @property
    def effort(self) -> float:
        """What the next try may cost relative to the first."""
        return self.rise**self.in_vain

    def comes(self, steps: int, step_cost: float, price: float) -> bool:
        """Whether gradient steps since the last try have cost enough."""
        return (steps - self.since) * step_cost >= self.patience * self.effort * price

    def over(self, iterate: Iterate, *, helped: bool) -> None:
        """A try has ended."""
        self.since = iterate.steps
        self.in_vain += not helped


class _Minimisation:
    """One inner solve: gradient steps, and whose turn it is in between."""

    def __init__(
        self,
        oracle: Oracle,
        lam: FloatArray,
        goal: Goal,
        max_steps: int,
        second_order: bool,
        newton_limit: float,
    ) -> None:
        self.oracle = oracle
        self.lam = lam
        self.goal = goal
        self.max_steps = max_steps
        self.newton_limit = newton_limit
        self.work = 0.0
        self.pattern: Any = ()  # non-zero rows at the last look
        self.gram = oracle if isinstance(oracle, GramOracle) and second_order else None
        self.quadratic = as_quadratic(oracle) if second_order else None
        self.curved = as_curved(oracle) if second_order else None
        self.block = _FIRST_STEPS if self.gram is None else _SHORT_BLOCK
        clusters = len(lam) > 0 and lam[0] != lam[-1]
        self.pattern_turn = _Turn(_PATTERN_PATIENCE, _PATTERN_RISE)
        self.newton_turn = _Turn(_CLUSTER_NEWTON_PATIENCE if clusters else _NEWTON_PATIENCE, _RISE)
        self.curvature_turn = _Turn(_CURVATURE_PATIENCE, _RISE)

    def run(self, iterate: Iterate) -> Iterate:
        """Steps from the iterate until the goal is met or no steps are left."""
        self.step_cost = self.oracle.step_cost(iterate.point.B.shape[1])
        if iterate.warm and self.gram is not None:  # a Newton step along its pattern may be all that is needed
            self.block, self.pattern = _SHORTEST_BLOCK, nonzero_rows(iterate.point.B)
        reference, since = np.inf, 0
        while iterate.steps < self.max_steps:
            for method in (self._gradient_steps, self._pattern_step, self._second_order_steps):
                iterate = method(iterate)
                if self._done(iterate):
                    return self._with_work(iterate)
            if iterate.gap <= 0.5 * reference:
                reference, since = iterate.gap, iterate.steps
            elif iterate.steps - since > _SLOW_STEPS:
                iterate = self._accelerated(iterate)
                if self._done(iterate):
                    break
                reference, since = iterate.gap, iterate.steps
        return self._with_work(iterate)

    def _done(self, iterate: Iterate) -> bool:
        return iterate.exhausted or iterate.steps >= self.max_steps or self.goal.met(iterate.gap, iterate.steps)

    def _with_work(self, iterate: Iterate) -> Iterate:
        iterate.work = self.work
        return iterate

    def _gradient_steps(self, iterate: Iterate) -> Iterate:
        before, size = iterate.steps, min(self.block, self.max_steps - iterate.steps)
        iterate = barzilai_borwein(self.oracle, iterate, self.lam, goal=self.goal, max_steps=size)
        self.work += (iterate.steps - before) * self.step_cost
        return iterate

    def _pattern_step(self, iterate: Iterate) -> Iterate:
        """A Newton step along the pattern if it is cheap, and the length of the next block."""
        if self.gram is None:
            self.block = _BLOCK_STEPS
            return iterate
        again, self.block = self.block == _SHORTEST_BLOCK, _SHORT_BLOCK
        changed = self._rows_changed(iterate)
        price = newton_cost(iterate.point.B)
        turn_comes = changed == 0.0 and self.pattern_turn.comes(iterate.steps, self.step_cost, price)
        due = turn_comes or (again and changed <= _FEW_CHANGED)
        if not due or price > self.newton_limit or np.isinf(price):
            return iterate
        trial = pattern_step(self.gram, iterate, self.lam)
        self.work += price
        helped = trial is not None and trial.gap <= _WORTH_IT * iterate.gap
        iterate = iterate if trial is None else trial
        self.pattern_turn.over(iterate, helped=helped)
        if helped:
            self.block = _SHORTEST_BLOCK
        return iterate

    def _second_order_steps(self, iterate: Iterate) -> Iterate:
        """One try of the second-order method of this loss, if it is its turn."""
        if iterate.gap <= self.goal.loose or iterate.steps < _FIRST_STEPS:  # free gradient steps, or the first
            return iterate
        if self.quadratic is not None:
            return self._proximal_newton(self.quadratic, iterate)
        return iterate if self.curved is None else self._curvature_steps(self.curved, iterate)

    def _proximal_newton(self, oracle: QuadraticOracle, iterate: Iterate) -> Iterate:
        price, before = newton_cost(iterate.point.B), iterate.steps
        if price > self.newton_limit or not self.newton_turn.comes(before, self.step_cost, price):
            return iterate
        iterate = ProximalNewton(oracle, self.lam, self.goal.loose).run(iterate, self.max_steps - before)
        self.work += (iterate.steps - before) * price
        self.newton_turn.over(iterate, helped=False)
        return iterate

    def _curvature_steps(self, oracle: CurvedOracle, iterate: Iterate) -> Iterate:
        turn, before, gap = self.curvature_turn, iterate.steps, iterate.gap
        method = CurvatureNewton(oracle, self.lam, self.goal, minimise, iterate.point.B.shape[1], turn.effort)
        if not turn.comes(before, self.step_cost, method.price(iterate.point)):
            return iterate
        work = _CURVATURE_WORK * (before - turn.since) * self.step_cost
        iterate = method.run(iterate, self.max_steps - before, work)
        turn.over(iterate, helped=iterate.gap <= _WORTH_IT * gap)
        return iterate

    def _rows_changed(self, iterate: Iterate) -> float:
        """Rows that became zero or non-zero since the last look, relative to the non-zero ones; infinity at first."""
        last, self.pattern = self.pattern, nonzero_rows(iterate.point.B)
        if len(last) == 0:
            return np.inf
        return int(np.count_nonzero(self.pattern != last)) / max(int(np.count_nonzero(self.pattern)), 1)

    def _accelerated(self, iterate: Iterate) -> Iterate:
        direction = self.oracle.complete(iterate.point)
        iterate.lipschitz = max(iterate.lipschitz, self.oracle.curvature(iterate.point, direction))
        iterate.recent.clear()
        before, steps = iterate.steps, min(_ACCELERATED_STEPS, self.max_steps - iterate.steps)
        iterate = accelerated(self.oracle, iterate, self.lam, goal=self.goal, max_steps=steps)
        self.work += (iterate.steps - before) * self.step_cost
        return iterate
