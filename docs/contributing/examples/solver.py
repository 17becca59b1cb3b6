"""A solver of one's own: proximal gradient steps of a fixed length (ISTA).

It has no code for screening, certificates and stopping. The loop around it removes rows, and then asks for the state on
the remaining rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from groupowl.solvers.driver import SteppingSolver


@dataclass(frozen=True, eq=False)
class State:
    """Whatever a solver wants to remember; the loop reads ``B`` and ``Z``."""

    B: np.ndarray
    Z: Any  # the predictor at B belongs to the design: it may be elsewhere, so only the problem opens it
    lipschitz: float


@dataclass(frozen=True)
class ISTA(SteppingSolver):
    """``B <- prox(B + descent / L)``, certified after every ten steps."""

    screen_after: int = 0
    steps_between_certificates: int = 10

    def start(self, problem, B, rng):
        return State(B, problem.predictor(B), 1.05 * problem.lipschitz() or 1.0)

    def step_once(self, problem, state, certificate):
        step = 1.0 / state.lipschitz
        B = problem.prox(state.B + step * problem.descent(state.Z), step)
        return replace(state, B=B, Z=problem.predictor(B))

    def restrict(self, problem, state, rows):
        B = state.B[rows]
        return State(B, problem.predictor(B), min(state.lipschitz, 1.05 * problem.lipschitz() or np.inf))
