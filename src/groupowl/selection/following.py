"""A path for scores: what is proved to be good enough is not solved again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from .._typing import FloatArray
from ..model import Model
from ..screening import Rule
from ..solvers import Sequence

# After guesses that failed in a row, so many alphas are solved before the next guess.
_LONGEST_WAIT = 16


@dataclass(frozen=True, eq=False)
class Step:
    """Coefficients at one alpha, and whether they are proved to the tolerance."""

    B: FloatArray
    intercept: FloatArray
    is_proved: bool


class Follower:
    """Follows falling alphas on a model.

    The line through the last two solutions is often as good as the next one: its duality gap says so for the price of
    one certificate. Where the gap is above the goal, the alpha is solved.
    """

    def __init__(self, model: Model, sequence: Sequence, goal: float, rule: Rule | None, max_iter: int) -> None:
        self.model = model
        self.sequence = sequence
        self.goal = goal
        self.settings = {"rule": rule, "max_iter": max_iter}
        self._misses = self._wait = 0

    def follow(self, alphas: FloatArray, rng: np.random.Generator) -> Iterator[Step]:
        """A step for each alpha."""
        for alpha in alphas.tolist():
            guess = self._proved_guess(alpha)
            if guess is not None:
                yield Step(*self.model.problem.to_input(guess), True)
                continue
            result = self.sequence.solve(self.model.sequence_weights, alpha, rng=rng, **self.settings)
            yield Step(result.B, result.intercept, result.converged)

    @np.errstate(all="ignore")  # a gap that is not finite is no proof
    def _proved_guess(self, alpha: float) -> FloatArray | None:
        sequence = self.sequence
        guess = sequence.line.at(alpha) if self._wait == 0 else None
        self._wait = max(self._wait - 1, 0)
        if guess is None:
            return None
        problem = sequence.small.with_lam(alpha * self.model.sequence_weights)
        certificate = problem.certify(guess)
        if not certificate.gap <= self.goal:
            self._misses += 1
            self._wait = min(2**self._misses, _LONGEST_WAIT)
            return None
        self._misses = 0
        sequence.B, sequence.residual, sequence.source = guess, certificate.residual, problem
        sequence.line.add(alpha, guess)
        return guess
