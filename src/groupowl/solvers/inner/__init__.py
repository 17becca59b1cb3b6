"""Solvers of the small problem on a working set.

Gradient steps of Barzilai-Borwein length come first. Where they do not end a solve, a second-order method takes turns
with them: the proximal point method for squared loss in Gram form, models of the curvature otherwise, each model a
problem of the first kind.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from itertools import cycle
from typing import Any

import numpy as np

from ..._typing import FloatArray
from ...norm.kernels import EPS
from .curvature import CurvatureNewton
from .newton import ProximalNewton, newton_cost, pattern_of
from .oracles import Goal, GramOracle, Oracle, Point

# Differences of objectives below this, relatively, are rounding.
_NOISE = 64 * EPS
# Gradient steps before anything else is tried, and between two looks at whether something else pays.
_FIRST_STEPS = 30
_MORE_STEPS = 20
# A method that leaves more than this of the gap did not help.
_WORTH_IT = 0.5
# How long a method waits for its turn, as a multiple of its price that gradient steps must have cost, and by how much
# longer after a try in vain. For squared loss many steps are needed where rows may form clusters, until they are found.
_PATIENCE = 1.0
_CLUSTER_PATIENCE = 15.0
_RISE = 4.0
# Steps that must halve the gap, or the solve ends.
_SLOW_STEPS = 1000

# Steps between two computations of the inner gap.
_CHECK_EVERY = 10
# And a first look at it: the start may be near the solution.
_EARLY_CHECK = 5
# Armijo's constant, and how many past objectives a step may compare itself with.
_DECREASE = 5e-5
_MEMORY = 3
# Curvatures below this fraction of the largest one seen are not trusted.
_CURVATURE_RANGE = 1e-4
_MOST_DOUBLINGS = 60


def minimize(oracle: Oracle, goal: Goal, max_steps: int, **settings: Any) -> Minimization:
    """Minimize loss plus penalty on a working set to the goal, in at most ``max_steps`` steps.

    The settings are those of :class:`Minimization`.
    """
    solve = Minimization(oracle, goal, max_steps, **settings)
    halved_gap, halved_at = np.inf, 0
    for method in cycle([solve.gradient_steps, solve.second_order_turn]):
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
    """

    oracle: Oracle
    goal: Goal
    max_steps: int
    guess: FloatArray | None = None

    steps: int = 0
    exhausted: bool = False  # steps no longer change the coefficients
    largest: float = 0.0  # largest curvature seen
    is_slow: bool = False  # the gap has not halved for long

    def __post_init__(self) -> None:
        oracle = self.oracle
        self.point = oracle.base
        if self.guess is not None:
            other = oracle.moved(self.point, self.guess)
            self.point = other if other.objective < self.point.objective else self.point
        self.lipschitz = oracle.curvature(self.point, self.point.descent) or 1.0  # for the next step
        self.recent = deque([self.point.objective], maxlen=_MEMORY)  # past objectives

        lam = oracle.penalty.lam
        has_clusters = len(lam) > 0 and lam[0] != lam[-1]
        self.patience = _CLUSTER_PATIENCE if oracle.is_quadratic and has_clusters else _PATIENCE
        self.effort = 1.0  # how long the next try of the second-order method waits relative to the first
        self.tried_at = 0  # steps at the end of the last one
        self.next_steps = _FIRST_STEPS

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
            if self.exhausted or step % _CHECK_EVERY == 0 or step in (_EARLY_CHECK, last):
                self.point = Point(B, loss, norm, descent, samples)
                self.point.gap = oracle.gap(self.point)
                self.steps, self.lipschitz = step, lipschitz
                if self.exhausted or self.goal.met(self.point.gap, step):
                    return
            product = float(np.vdot(move, change))
            if product > 0.0:  # one of the two Barzilai-Borwein curvatures in turn
                lipschitz = product / square if step % 2 else float(np.vdot(change, change)) / product
            lipschitz = max(lipschitz, _CURVATURE_RANGE * self.largest)
        self.lipschitz = lipschitz

    def second_order_turn(self) -> None:
        """One try of the second-order method of this loss, where its turn has come."""
        self.next_steps = _MORE_STEPS
        if self.point.gap <= self.goal.loose:  # free gradient steps
            return
        oracle = self.oracle
        affordable = (self.steps - self.tried_at) * oracle.step_cost / (self.patience * self.effort)
        if isinstance(oracle, GramOracle):
            price = newton_cost(pattern_of(self.point.B)) if oracle.penalty.sizes is None else np.inf
            if price > affordable:
                return
            end, steps = ProximalNewton(oracle, self.goal.loose).run(self.point, self.max_steps - self.steps)
        else:
            method = CurvatureNewton(oracle, self.goal, minimize)
            if method.price(self.point) > affordable:
                return
            end, steps = method.run(self.point, self.steps, self.max_steps)
        if end.gap > _WORTH_IT * self.point.gap:
            self.effort *= _RISE
        if end is not self.point:
            self.point = end
            self.recent = deque([end.objective], maxlen=_MEMORY)
        self.steps += steps
        self.tried_at = self.steps
