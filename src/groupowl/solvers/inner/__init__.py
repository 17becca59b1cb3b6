"""Solvers of the small problem on a working set: functions of plain arrays behind one interface.

Gradient steps of Barzilai-Borwein length come first. Once they have found the non-zero rows, a Newton step for these
rows and their clusters ends most solves for squared loss in Gram form. Where it does not, second-order methods take
turns with gradient steps: the proximal point method for squared loss, models of the curvature for other losses, each
model a problem of the first kind. Accelerated gradient steps are the last resort.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._kernels import nonzero_rows
from ..._typing import FloatArray
from .curvature import CurvatureNewton, curvature_cost
from .descent import Goal, Iterate, accelerated, barzilai_borwein, first_iterate
from .newton import ProximalNewton, newton_cost, pattern_step
from .oracles import ColumnsOracle, GramOracle, Oracle, ProblemOracle, as_quadratic, columns_cost

__all__ = ["ColumnsOracle", "Goal", "GramOracle", "Iterate", "Oracle", "ProblemOracle", "columns_cost", "minimise"]

# Gradient steps before anything else is tried, and between two looks at whether something else pays.
_FIRST_STEPS = 30
_BLOCK_STEPS = 20
# The same where single Newton steps along the pattern are cheap, and between two such steps that help.
_SHORT_BLOCK = 10
_SHORTEST_BLOCK = 3
# The first of them waits until gradient steps have cost this many times as much; after one in vain, twice as much.
_PATTERN_PATIENCE = 0.5
# A second-order method that leaves more than this of the gap waits twice as long before its next try.
_WORTH_IT = 0.5
# Proximal Newton steps that a solve is likely to take: where rows may form clusters, many until it has found them.
_FEW_NEWTON_STEPS = 2.5
_MANY_NEWTON_STEPS = 150.0
# A try that fell short is repeated once gradient steps have cost this many times more.
_NEWTON_RETRY = 4.0
# Steps by models of the curvature wait until gradient steps have cost as much as this many of them.
_CURVATURE_PATIENCE = 1.0
# A try that helped little waits longer, and minimises its models with so many times the effort.
_EFFORT_RISE = 4.0
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

    Starts from ``guess`` where that is better than ``B``. Newton systems may cost ``newton_limit`` operations.
    """
    minimisation = _Minimisation(oracle, lam, goal, max_steps, second_order, newton_limit)
    return minimisation.run(first_iterate(oracle, B, lam, lipschitz, guess))


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
        self.second_order = second_order
        self.newton_limit = newton_limit
        self.quadratic = as_quadratic(oracle)
        self.gram = oracle if isinstance(oracle, GramOracle) and second_order else None
        self.block = _FIRST_STEPS if self.gram is None else _SHORT_BLOCK
        self.pattern_patience = _PATTERN_PATIENCE
        self.pattern_from = 0  # steps at the last Newton step along the pattern
        self.newton_patience = 1.0
        self.curvature_patience = _CURVATURE_PATIENCE
        self.effort = 1.0
        self.curvature_from = 0  # steps at the end of the last steps by models
        self.pattern: Any = ()  # non-zero rows at the last look

    def run(self, iterate: Iterate) -> Iterate:
        """Steps from the iterate until the goal is met or no steps are left."""
        reference, since = np.inf, 0
        while iterate.steps < self.max_steps:
            size = min(self.block, self.max_steps - iterate.steps)
            iterate = barzilai_borwein(self.oracle, iterate, self.lam, goal=self.goal, max_steps=size)
            if self._done(iterate):
                break
            iterate = self._pattern_step(iterate)
            if self._done(iterate):
                break
            iterate = self._second_order_steps(iterate) if self.second_order else iterate
            if self._done(iterate):
                break
            if iterate.gap <= 0.5 * reference:
                reference, since = iterate.gap, iterate.steps
            elif iterate.steps - since > _SLOW_STEPS:
                iterate = self._accelerated(iterate)
                if self._done(iterate):
                    break
                reference, since = iterate.gap, iterate.steps
        return iterate

    def _done(self, iterate: Iterate) -> bool:
        return iterate.exhausted or self.goal.met(iterate.gap, iterate.steps)

    def _pattern_step(self, iterate: Iterate) -> Iterate:
        """A Newton step along the pattern if it is cheap, and the length of the next block."""
        if self.gram is None:
            self.block = _BLOCK_STEPS
            return iterate
        again, self.block = self.block == _SHORTEST_BLOCK, _SHORT_BLOCK
        stands = self._rows_stand(iterate)
        if iterate.steps >= self.max_steps or not (again or (stands and self._pattern_step_pays(iterate))):
            return iterate
        self.pattern_from = iterate.steps
        trial = pattern_step(self.gram, iterate, self.lam)
        if trial is None or trial.gap > _WORTH_IT * iterate.gap:
            self.pattern_patience *= 2.0
        else:
            self.block = _SHORTEST_BLOCK
        return iterate if trial is None else trial

    def _pattern_step_pays(self, iterate: Iterate) -> bool:
        """Whether gradient steps since the last one have cost enough."""
        steps = iterate.steps - self.pattern_from
        price = self.pattern_patience * newton_cost(iterate.point.B)
        return steps * self.oracle.step_cost(iterate.point.B.shape[1]) >= price

    def _second_order_steps(self, iterate: Iterate) -> Iterate:
        """One try of the second-order method of this loss, if it is its turn."""
        left = self.max_steps - iterate.steps
        if left <= 0:
            return iterate
        if self.quadratic is not None:
            met = iterate.gap <= self.goal.loose  # what follows are free gradient steps
            if met or not self._proximal_newton_pays(iterate):
                return iterate
            self.newton_patience *= _NEWTON_RETRY
            return ProximalNewton(self.quadratic, self.lam, self.goal.loose).run(iterate, left)
        if not isinstance(self.oracle, ColumnsOracle) or not self._curvature_pays(iterate):
            return iterate
        gap = iterate.gap
        iterate = CurvatureNewton(self.oracle, self.lam, self.goal, minimise, self.effort).run(iterate, left)
        if iterate.gap > _WORTH_IT * gap:
            self.curvature_patience *= 2.0
            self.effort *= _EFFORT_RISE
        self.curvature_from = iterate.steps
        return iterate

    def _curvature_pays(self, iterate: Iterate) -> bool:
        """Whether gradient steps since the last try have cost as much as a few steps by models."""
        steps, q = iterate.steps - self.curvature_from, iterate.point.B.shape[1]
        price = self.curvature_patience * curvature_cost(self.oracle, iterate.point.B)
        return steps * self.oracle.step_cost(q) >= price

    def _proximal_newton_pays(self, iterate: Iterate) -> bool:
        """Whether gradient steps have cost a tenth of what Newton steps are likely to cost."""
        if iterate.steps < _FIRST_STEPS or (cost := newton_cost(iterate.point.B)) > self.newton_limit:
            return False
        steps = _FEW_NEWTON_STEPS if self.lam[0] == self.lam[-1] else _MANY_NEWTON_STEPS
        return self._gradient_steps_cost(iterate) >= 0.1 * self.newton_patience * steps * cost

    def _rows_stand(self, iterate: Iterate) -> bool:
        """Whether the non-zero rows are those of the last look."""
        last, self.pattern = self.pattern, nonzero_rows(iterate.point.B)
        return np.array_equal(self.pattern, last)

    def _gradient_steps_cost(self, iterate: Iterate) -> float:
        return iterate.steps * self.oracle.step_cost(iterate.point.B.shape[1])

    def _accelerated(self, iterate: Iterate) -> Iterate:
        direction = self.oracle.complete(iterate.point)
        iterate.lipschitz = max(iterate.lipschitz, self.oracle.curvature(direction))
        iterate.recent.clear()
        steps = min(_ACCELERATED_STEPS, self.max_steps - iterate.steps)
        return accelerated(self.oracle, iterate, self.lam, goal=self.goal, max_steps=steps)
