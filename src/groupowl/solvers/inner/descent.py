"""First-order methods on a working set: Barzilai-Borwein steps, and accelerated ones where those make no headway."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

import numpy as np

from ..._typing import FloatArray
from ...norm.kernels import EPS, TINY, prox_and_value, row_norms
from .oracles import Oracle, Point, penalty_of

# Steps between two computations of the inner gap.
_CHECK_EVERY = 10
# Before the first of them: steps at which the gap is computed as well, and where the start may be near the solution.
_EARLY_CHECKS = frozenset({5})
_WARM_CHECKS = frozenset({1, 3, 5})
# Armijo's constant, and how many past objectives a step may compare itself with.
_DECREASE = 5e-5
_MEMORY = 3
# Lengths of the blocks in which the two Barzilai-Borwein steps alternate, before and after this many steps.
_LONG_BLOCKS_AFTER = 200
_LONG_BLOCK = 4
# Curvatures below this fraction of the largest one seen are not trusted.
_CURVATURE_RANGE = 1e-4
_MOST_DOUBLINGS = 60


@dataclass(eq=False)
class Iterate:
    """Where an inner method stands: the point, its penalty, the gap on the working set, steps taken so far."""

    point: Point
    penalty: float
    lipschitz: float
    gap: float = np.inf
    steps: int = 0
    exhausted: bool = False  # steps no longer change the coefficients
    recent: deque[float] = field(default_factory=lambda: deque(maxlen=_MEMORY))  # past objectives
    largest: float = 0.0  # largest curvature seen
    warm: bool = False  # the start had coefficients: their pattern may be that of the solution
    work: float = 0.0  # operations of the minimisation that ended here

    @property
    def objective(self) -> float:
        """Objective on the working set."""
        return self.point.loss + self.penalty


@dataclass(frozen=True)
class Goal:
    """When an inner solve may stop: at the gap ``tight``; at ``loose`` once ``free_steps`` were taken.

    Steps that cost less than a round of the outer loop are taken anyway: they may save one.
    """

    tight: float
    loose: float
    free_steps: int = 0

    def met(self, gap: float, steps: int) -> bool:
        """Whether this gap after so many steps is good enough."""
        return gap <= self.tight or (gap <= self.loose and steps >= self.free_steps)


def prox_step(B: FloatArray, direction: FloatArray, lipschitz: float, lam: FloatArray) -> tuple[FloatArray, float]:
    """``prox_{J/L}(B + direction/L)`` and its penalty; rows after the first ``len(lam)`` are not penalised."""
    V = direction * (1.0 / lipschitz)
    V += B
    rows = len(lam)
    norms = row_norms(V[:rows])
    factors, penalty = prox_and_value(norms, lam, 1.0 / lipschitz)
    factors /= np.maximum(norms, TINY)
    V[:rows] *= factors[:, None]
    return V, penalty


def barzilai_borwein(oracle: Oracle, iterate: Iterate, lam: FloatArray, *, goal: Goal, max_steps: int) -> Iterate:
    """Proximal gradient steps of Barzilai-Borwein length with a non-monotone line search (SpaRSA).

    Stops when the gap on the working set meets the goal, checked every few steps, or after ``max_steps``.
    """
    point, lipschitz = iterate.point, iterate.lipschitz
    recent = iterate.recent
    if not recent:
        recent.append(iterate.objective)
    last = iterate.steps + max_steps
    early = _WARM_CHECKS if iterate.warm else _EARLY_CHECKS
    for step in range(iterate.steps + 1, last + 1):
        direction = oracle.complete(point)
        reference = max(recent)
        for _ in range(_MOST_DOUBLINGS):
            B, penalty = prox_step(point.B, direction, lipschitz, lam)
            move = B - point.B
            square = float(np.vdot(move, move))
            trial = oracle.trial(point, B, move)
            objective = trial.loss + penalty
            if objective <= reference - _DECREASE * lipschitz * square + 4 * EPS * abs(reference):
                break
            lipschitz *= 2.0
        else:
            iterate.exhausted = True
            return iterate
        change = direction - oracle.complete(trial)
        point = iterate.point = trial
        iterate.steps, iterate.penalty, iterate.lipschitz = step, penalty, lipschitz
        recent.append(objective)
        iterate.exhausted = square == 0.0
        if iterate.exhausted or step % _CHECK_EVERY == 0 or step == last or step in early:
            iterate.gap = oracle.gap(point, penalty, lam)
            if iterate.exhausted or goal.met(iterate.gap, iterate.steps):
                return iterate
        iterate.largest = max(iterate.largest, lipschitz)
        lipschitz = _next_curvature(step, move, change, square, lipschitz)
        lipschitz = iterate.lipschitz = max(lipschitz, _CURVATURE_RANGE * iterate.largest)
    return iterate


def _next_curvature(step: int, move: FloatArray, change: FloatArray, square: float, fallback: float) -> float:
    """One of the two Barzilai-Borwein curvatures of the last move, in alternating blocks."""
    product = float(np.vdot(move, change))
    if product <= 0.0:
        return fallback
    block = step if step <= _LONG_BLOCKS_AFTER else step // _LONG_BLOCK
    if block % 2:
        return product / square
    return float(np.vdot(change, change)) / product


def accelerated(oracle: Oracle, iterate: Iterate, lam: FloatArray, *, goal: Goal, max_steps: int) -> Iterate:
    """FISTA with restart where momentum points uphill; steps shorten where the quadratic model fails."""
    point = extrapolated = iterate.point
    lipschitz, t = iterate.lipschitz, 1.0
    for step in range(1, max_steps + 1):
        direction = oracle.complete(extrapolated)
        for _ in range(_MOST_DOUBLINGS):
            B, penalty = prox_step(extrapolated.B, direction, lipschitz, lam)
            move = B - extrapolated.B
            trial = oracle.trial(extrapolated, B, move)
            model = 0.5 * lipschitz * float(np.vdot(move, move)) - float(np.vdot(direction, move))
            if trial.loss - extrapolated.loss <= model + 4 * EPS * abs(extrapolated.loss):
                break
            lipschitz *= 2.0
        else:
            iterate.exhausted = True
            return iterate
        iterate.steps += 1
        advance = B - point.B
        uphill = float(np.vdot(move, advance)) < 0.0
        t_next = 1.0 if uphill else 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * t * t))
        momentum = 0.0 if uphill else (t - 1.0) / t_next
        point, t = trial, t_next
        iterate.point, iterate.penalty, iterate.lipschitz = point, penalty, lipschitz
        if step % _CHECK_EVERY == 0 or step == max_steps:
            iterate.gap = oracle.gap(point, penalty, lam)
            if goal.met(iterate.gap, iterate.steps):
                return iterate
        extrapolated = point
        if momentum > 0.0:
            oracle.complete(point)
            extrapolated = oracle.trial(point, B + momentum * advance, momentum * advance)
    return iterate


def first_iterate(
    oracle: Oracle,
    B: FloatArray,
    lam: FloatArray,
    lipschitz: float | None = None,
    guess: FloatArray | None = None,
) -> Iterate:
    """Where an inner method starts: at ``B``, or the guess if that has a lower objective.

    The curvature along the gradient is the first estimate for a step.
    """
    point, penalty = oracle.start(B), penalty_of(B, lam)
    if guess is not None:
        other, price = oracle.trial(point, guess, guess - B), penalty_of(guess, lam)
        if other.loss + price < point.loss + penalty:
            point, penalty = other, price
    if lipschitz is None:
        lipschitz = oracle.curvature(point, oracle.complete(point)) or 1.0
    return Iterate(point, penalty, lipschitz, warm=penalty > 0.0)
