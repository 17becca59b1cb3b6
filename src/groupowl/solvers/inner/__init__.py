"""Solvers of the small problem on a working set.

Gradient steps of Barzilai-Borwein length come first. Once they have found the non-zero rows, a Newton step for these
rows and their clusters ends most solves for squared loss in Gram form. Where it does not, second-order methods take
turns with gradient steps: the proximal point method for squared loss, models of the curvature for other losses, each
model a problem of the first kind.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from itertools import cycle
from typing import Any

import numpy as np

from ..._typing import FloatArray
from ...norm.kernels import EPS, nonzero_rows
from .curvature import CurvatureNewton
from .newton import ProximalNewton, newton_cost, pattern_of, pattern_step
from .oracles import Goal, GramOracle, Oracle, Point

# Differences of objectives below this, relatively, are rounding.
_NOISE = 64 * EPS
# Gradient steps before anything else is tried, and between two looks at whether something else pays.
_FIRST_STEPS = 30
_MORE_STEPS = 20
# The same where single Newton steps along the pattern are cheap, and between two such steps that help.
_FEW_STEPS = 10
_FEWEST_STEPS = 3
# Rows that may have changed before such a step, as a part of the non-zero ones.
_FEW_CHANGED = 0.2
# A method that leaves more than this of the gap did not help.
_WORTH_IT = 0.5
# How long methods wait for their turn, as multiples of their price that gradient steps must have cost, and by how much
# longer after a try in vain. Proximal Newton steps need many where rows may form clusters, until they are found.
_PATTERN_PATIENCE = 0.5
_PATIENCE = 1.0
_CLUSTER_NEWTON_PATIENCE = 15.0
_PATTERN_RISE = 2.0
_RISE = 4.0
# Operations for models of the curvature until the gap must have halved, relative to what they waited for.
_MODEL_WORK = 30.0
# Steps that must halve the gap, or the solve ends.
_SLOW_STEPS = 1000

# Steps between two computations of the inner gap.
_CHECK_EVERY = 10
# Before the first of them: steps at which the gap is computed as well, and where the start may be near the solution.
_EARLY_CHECKS = frozenset({5})
_WARM_CHECKS = frozenset({1, 3, 5})
# Armijo's constant, and how many past objectives a step may compare itself with.
_DECREASE = 5e-5
_MEMORY = 3
# Steps in a row with the same of the two Barzilai-Borwein lengths: one at first, more after this many steps.
_LONG_TURNS_AFTER = 200
_LONG_TURN = 4
# Curvatures below this fraction of the largest one seen are not trusted.
_CURVATURE_RANGE = 1e-4
_MOST_DOUBLINGS = 60


@dataclass
class _Turn:
    """When the next try of a method comes: once gradient steps have cost ``patience`` times its price."""

    patience: float
    rise: float  # of the effort, after a try in vain
    effort: float = 1.0  # what the next try may cost relative to the first
    since: int = 0  # steps at the end of the last try


def minimize(oracle: Oracle, goal: Goal, max_steps: int, **settings: Any) -> Minimization:
    """Minimize loss plus penalty on a working set to the goal, in at most ``max_steps`` steps.

    The settings are those of :class:`Minimization`.
    """
    solve = Minimization(oracle, goal, max_steps, **settings)
    halved_gap, halved_at = np.inf, 0
    for method in cycle([solve.gradient_steps, solve.pattern_turn, solve.second_order_turn]):
        method()
        if solve.point.gap <= 0.5 * halved_gap:
            halved_gap, halved_at = solve.point.gap, solve.steps
        solve.is_slow = solve.steps - halved_at > _SLOW_STEPS
        if goal.met(solve.point.gap, solve.steps) or solve.exhausted or solve.is_slow or solve.steps >= max_steps:
            break
    return solve


@dataclass(eq=False)
class Minimization:
    """One inner solve: where it stands, gradient steps, and whose turn it is in between.

    Parameters
    ----------
    oracle : Oracle
        Loss and penalty on the working set.
    goal : Goal
        When to stop.
    max_steps : int
        Most steps to take.
    guess : ndarray, default=None
        Start there, and not at the base of the oracle, where it has a lower objective.
    lipschitz : float, default=0.0
        Curvature for the next step; by default the first one takes that along the gradient.
    second_order : bool, default=True
        Whether Newton-type steps may be taken.
    newton_limit : float, default=inf
        Most operations of a Newton system.
    """

    oracle: Oracle
    goal: Goal
    max_steps: int
    guess: FloatArray | None = None
    lipschitz: float = 0.0
    second_order: bool = True
    newton_limit: float = np.inf

    steps: int = 0
    work: float = 0.0  # floating-point operations of these steps
    exhausted: bool = False  # steps no longer change the coefficients
    largest: float = 0.0  # largest curvature seen
    nonzero: Any = None  # rows that were not zero at the last look
    is_slow: bool = False  # the gap has not halved for long

    def __post_init__(self) -> None:
        oracle = self.oracle
        self.point = oracle.base
        if self.guess is not None:
            other = oracle.moved(self.point, self.guess)
            self.point = other if other.objective < self.point.objective else self.point
        self.lipschitz = self.lipschitz or oracle.curvature(self.point, self.point.descent) or 1.0
        self.recent = deque([self.point.objective], maxlen=_MEMORY)  # past objectives

        lam, rows_are_units = oracle.penalty.lam, oracle.penalty.rows_are_units
        has_clusters = len(lam) > 0 and lam[0] != lam[-1]
        is_free = rows_are_units and oracle.penalty.signs is None  # patterns know of nothing else
        self.gram = oracle if self.second_order and is_free and isinstance(oracle, GramOracle) else None
        self.has_pattern = self.gram is not None and len(self.gram.G) > 0
        self.pattern = _Turn(_PATTERN_PATIENCE, _PATTERN_RISE)
        self.newton = _Turn(_CLUSTER_NEWTON_PATIENCE if has_clusters else _PATIENCE, _RISE)
        self.models = _Turn(_PATIENCE, _RISE)
        is_warm = self.point.norm > 0.0
        self.early_checks = _WARM_CHECKS if is_warm else _EARLY_CHECKS
        self.next_steps = _FEW_STEPS if self.has_pattern else _FIRST_STEPS
        if is_warm and self.has_pattern:  # a Newton step along the pattern may be all that is needed
            self.next_steps = _FEWEST_STEPS
            self.nonzero = nonzero_rows(self.point.B)

    def gradient_steps(self) -> None:
        """Proximal gradient steps of Barzilai-Borwein length with a non-monotone line search (SpaRSA).

        Ends when the gap meets the goal, checked every few steps, or after ``next_steps``.
        """
        oracle, shrink, n_penalized = self.oracle, self.oracle.penalty.shrink, self.oracle.n_penalized
        B, loss, descent, lipschitz = self.point.B, self.point.loss, self.point.descent, self.lipschitz
        last = min(self.steps + self.next_steps, self.max_steps)
        for step in range(self.steps + 1, last + 1):
            reference = max(self.recent)
            for _ in range(_MOST_DOUBLINGS):
                V = descent * (1.0 / lipschitz)
                V += B
                norm = shrink(V[:n_penalized], 1.0 / lipschitz)
                move = V - B
                square = float(np.vdot(move, move))
                trial_loss, samples = oracle.trial(V, move, loss, descent)
                objective = trial_loss + norm
                if objective <= reference - _DECREASE * lipschitz * square + 4 * EPS * abs(reference):
                    break
                if objective <= reference + _NOISE * abs(reference):  # rounding: gradients tell what objectives cannot
                    change = oracle.change(samples, descent)
                    if float(np.vdot(move, change)) <= lipschitz * square:
                        break
                lipschitz *= 2.0
            else:
                self.exhausted = True
                self.point = oracle.moved(self.point, B)
                self.point.gap = oracle.gap(self.point)
                return
            change = oracle.change(samples, descent)
            B, loss, descent = V, trial_loss, descent - change
            self.recent.append(objective)
            self.largest = max(self.largest, lipschitz)
            self.exhausted = square == 0.0
            if self.exhausted or step % _CHECK_EVERY == 0 or step == last or step in self.early_checks:
                self.point = Point(B, loss, norm, descent, samples)
                self.point.gap = oracle.gap(self.point)
                self.work += (step - self.steps) * oracle.step_cost
                self.steps, self.lipschitz = step, lipschitz
                if self.exhausted or self.goal.met(self.point.gap, step):
                    return
            product = float(np.vdot(move, change))
            if product > 0.0:  # one of the two Barzilai-Borwein curvatures in turn
                turn = step if step <= _LONG_TURNS_AFTER else step // _LONG_TURN
                lipschitz = product / square if turn % 2 else float(np.vdot(change, change)) / product
            lipschitz = max(lipschitz, _CURVATURE_RANGE * self.largest)
        self.lipschitz = lipschitz

    def pattern_turn(self) -> None:
        """A Newton step along the pattern where that is cheap, and how many gradient steps come next."""
        if self.gram is None or not self.has_pattern:
            self.next_steps = _MORE_STEPS
            return
        again = self.next_steps == _FEWEST_STEPS
        self.next_steps = _FEW_STEPS
        last, self.nonzero = self.nonzero, nonzero_rows(self.point.B)
        if last is None:
            return
        changed = int(np.count_nonzero(self.nonzero != last))
        if changed > (_FEW_CHANGED * np.count_nonzero(self.nonzero) if again else 0.0):
            return
        pattern = pattern_of(self.point.B)
        price = newton_cost(pattern)
        if not price < self.newton_limit or not (again or self._comes(self.pattern, price)):
            return
        end = pattern_step(self.gram, self.point, pattern)
        helped = end is not None and end.gap <= _WORTH_IT * self.point.gap
        if helped:
            self.next_steps = _FEWEST_STEPS
        self.work += price
        self._try_over(self.pattern, end or self.point, int(end is not None), helped=helped)

    def second_order_turn(self) -> None:
        """One try of the second-order method of this loss, where its turn has come."""
        if self.point.gap <= self.goal.loose or self.steps < _FIRST_STEPS:  # free gradient steps, or the first
            return
        if self.gram is not None:
            price = newton_cost(pattern_of(self.point.B))
            if price < self.newton_limit and self._comes(self.newton, price):
                end, steps = ProximalNewton(self.gram, self.goal.loose).run(self.point, self.max_steps - self.steps)
                self.work += steps * price
                self._try_over(self.newton, end, steps, helped=False)
        elif self.second_order and self.oracle.has_metric:
            turn = self.models
            method = CurvatureNewton(self.oracle, self.goal, minimize, turn.effort)
            if self._comes(turn, method.price(self.point)):
                work = _MODEL_WORK * (self.steps - turn.since) * self.oracle.step_cost
                end, steps = method.run(self.point, self.steps, self.max_steps, work)
                self._try_over(turn, end, steps, helped=end.gap <= _WORTH_IT * self.point.gap)

    def _comes(self, turn: _Turn, price: float) -> bool:
        """Whether gradient steps since the last try have cost enough for another one."""
        spent = (self.steps - turn.since) * self.oracle.step_cost
        return spent >= turn.patience * turn.effort * price

    def _try_over(self, turn: _Turn, end: Point, steps: int, *, helped: bool) -> None:
        """Go to where a try has ended; the next one waits longer if it did not help."""
        if end is not self.point:
            self.point = end
            self.recent = deque([end.objective], maxlen=_MEMORY)
        self.steps += steps
        turn.since = self.steps
        if not helped:
            turn.effort *= turn.rise
