"""Solvers of the small problem on a working set: functions of plain arrays behind one interface."""

from __future__ import annotations

import numpy as np

from ..._kernels import unit_norms
from ..._typing import FloatArray
from .descent import Goal, Iterate, accelerated, barzilai_borwein, first_iterate
from .manifold import polish
from .newton import LARGEST_SYSTEM, ProximalNewton, system_size
from .oracles import STEP_OVERHEAD, ColumnsOracle, GramOracle, Oracle, ProblemOracle

__all__ = ["ColumnsOracle", "Goal", "GramOracle", "Iterate", "Oracle", "ProblemOracle", "minimise"]

# Barzilai-Borwein steps before anything else is tried.
_FIRST_STEPS = 30
# Steps between two looks at whether Newton steps pay, or whether the gap still falls.
_BLOCK_STEPS = 50
# Gradient steps before quasi-Newton steps along the pattern are tried, and how many of those at a time.
_POLISH_AFTER = 80
_POLISH_STEPS = 200
# Newton steps are taken once gradient steps have cost as much as this many of them.
_NEWTON_PATIENCE = 3.0
# Gradient steps that must halve the gap, or accelerated ones take over.
_SLOW_STEPS = 1000


def minimise(
    oracle: Oracle,
    B: FloatArray,
    lam: FloatArray,
    *,
    goal: Goal,
    max_steps: int,
    rank: int,
    lipschitz: float | None = None,
) -> Iterate:
    """Minimise loss plus penalty on a working set to the goal, in at most ``max_steps`` steps.

    ``rank`` bounds the rank of the columns: with more non-zero rows than that, Newton systems are near singular.
    """
    iterate = first_iterate(oracle, B, lam, lipschitz)
    newton_allowed = isinstance(oracle, GramOracle)
    reference, since = np.inf, 0
    block, wait, pattern = _FIRST_STEPS, _POLISH_AFTER, None
    while iterate.steps < max_steps:
        left = max_steps - iterate.steps
        iterate = barzilai_borwein(oracle, iterate, lam, goal=goal, max_steps=min(block, left))
        if iterate.exhausted or goal.met(iterate.gap, iterate.steps):
            return iterate
        block = _BLOCK_STEPS
        if newton_allowed and _newton_pays(iterate, oracle, rank):
            newton_allowed = False
            assert isinstance(oracle, GramOracle)
            largest = largest_curvature(oracle.G)
            iterate = ProximalNewton(oracle, lam, goal.loose, largest).run(iterate, max_steps - iterate.steps)
            if goal.met(iterate.gap, iterate.steps):
                return iterate
        last_pattern, pattern = pattern, iterate.point.B.any(axis=1)
        if iterate.steps >= wait and np.array_equal(pattern, last_pattern):
            before = iterate.steps
            iterate = polish(oracle, iterate, lam, goal=goal, max_steps=min(_POLISH_STEPS, max_steps - before))
            if goal.met(iterate.gap, iterate.steps):
                return iterate
            wait = iterate.steps + (iterate.steps - before) // 2
        if iterate.gap <= 0.5 * reference:
            reference, since = iterate.gap, iterate.steps
        elif iterate.steps - since > _SLOW_STEPS:
            iterate.lipschitz = max(iterate.lipschitz, oracle.curvature(oracle.complete(iterate.point)))
            return accelerated(oracle, iterate, lam, goal=goal, max_steps=max_steps - iterate.steps)
    return iterate


def _newton_pays(iterate: Iterate, oracle: Oracle, rank: int) -> bool:
    """Whether the gradient steps so far cost about as much as the Newton steps that may replace the rest."""
    B = iterate.point.B
    norms = unit_norms(B)
    size = system_size(norms, B.shape[1])
    if size > LARGEST_SYSTEM or size == 0 or np.count_nonzero(norms) >= rank:
        return False
    newton = size**3 * 0.7 + 10.0 * size**2 + 10 * STEP_OVERHEAD
    return iterate.steps * oracle.step_cost(B.shape[1]) >= _NEWTON_PATIENCE * newton


def largest_curvature(G: FloatArray, steps: int = 10) -> float:
    """Largest eigenvalue of ``G``, by a few power iterations from its diagonal."""
    v = np.sqrt(np.maximum(np.diagonal(G), 0.0))
    value = 0.0
    for _ in range(steps):
        norm = float(np.linalg.norm(v))
        if norm == 0.0:
            break
        image = G @ (v / norm)
        value, v = float(np.linalg.norm(image)), image
    return value or 1.0
