"""A path for scores: what is proved to be good enough is not solved again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._kernels import nonzero_rows
from .._typing import FloatArray
from ..model import Model
from ..problem import Certificate, Problem
from ..screening import Rule
from ..solvers import Sequence
from ..solvers.sequence import scale_of

# Alphas from one solve to the next, at first and at most.
_FIRST_STRIDE = 4
_LONGEST_STRIDE = 16


@dataclass(frozen=True, eq=False)
class Step:
    """Coefficients at one alpha, and whether they are proved to the tolerance."""

    B: FloatArray
    intercept: FloatArray
    is_proved: bool


class Follower:
    """Follows falling alphas on a model.

    Only some of them are solved. On the line between two solutions coefficients are often as good as a solve would
    make them: their duality gap says so for the price of one certificate, or, for squared loss, the certificates of the
    two ends say so for the whole line. Where it is above the goal, the alpha is
    solved after all, lines become shorter, and the next solves lie closer together. Losses other than the squared one
    bend their lines: a parabola through one more solution is closer.
    """

    def __init__(self, model: Model, sequence: Sequence, goal: float, rule: Rule | None, max_iter: int) -> None:
        self.model = model
        self.sequence = sequence
        self.goal = goal
        self.settings = {"rule": rule, "max_iter": max_iter}
        self.scale = scale_of(model.problem)
        self.bends = model.problem.loss.name != "squared"

    def follow(self, alphas: FloatArray, rng: np.random.Generator) -> list[Step]:
        """A step for each alpha."""
        self.alphas, self.rng = alphas.tolist(), rng
        self.positions = [self.scale(alpha) for alpha in self.alphas]  # along lines
        self.solved: list[int] = []
        self.proofs: dict[int, tuple[Problem, Certificate]] = {}  # of steps whose lines are not all drawn yet
        self.coefficients: list[Any] = [None] * len(alphas)  # in the scale of the problem
        self.steps: list[Any] = [None] * len(alphas)
        self._solve(0)
        last, stride = 0, _FIRST_STRIDE
        while last < len(alphas) - 1:
            first, last = last, min(last + stride, len(alphas) - 1)
            self._solve(last)
            stride = min(2 * stride, _LONGEST_STRIDE) if self._fill(first, last) else max(stride // 2, 1)
            self.proofs = {last: self.proofs[last]}
        return self.steps

    def _solve(self, i: int) -> None:
        result = self.sequence.solve(self.model.sequence_weights, self.alphas[i], rng=self.rng, **self.settings)
        self.coefficients[i] = self.sequence.B
        self.solved.append(i)
        assert self.sequence.source is not None
        assert self.sequence.certificate is not None
        self.proofs[i] = self.sequence.source, self.sequence.certificate
        self.steps[i] = Step(result.B, result.intercept, result.converged)

    def _fill(self, first: int, last: int) -> bool:
        """Steps between two that are there, the middle one first; whether all of them lie on the line."""
        if last - first < 2 or self._take_all_from_line(first, last):
            return True
        middle = (first + last) // 2
        on_line = self._take_from_line(first, middle, last)
        if not on_line:
            self._solve_between(middle)
        halves = [self._fill(first, middle), self._fill(middle, last)]
        return on_line and all(halves)

    @np.errstate(all="ignore")  # what is not finite is no proof
    def _take_all_from_line(self, first: int, last: int) -> bool:
        """Take all coefficients on the line between two steps if those alone prove that their gaps allow it."""
        (problem, start), (other, end) = self.proofs[first], self.proofs[last]
        if self.bends or problem.design is not other.design:
            return False
        t = self.positions
        shares = [(t[i] - t[first]) / (t[last] - t[first]) for i in range(first + 1, last)]
        bend = problem.line_bend(start, end, self.alphas[last] / self.alphas[first])
        if not all((1.0 - s) * start.gap + s * end.gap + s * (1.0 - s) * bend <= self.goal for s in shares):
            return False
        for i in range(first + 1, last):
            self._take(i, self._between(first, i, last))
        return True

    def _take(self, i: int, B: FloatArray) -> None:
        self.coefficients[i] = B
        self.steps[i] = Step(*self.model.problem.to_input(B), True)

    @np.errstate(all="ignore")
    def _take_from_line(self, first: int, i: int, last: int) -> bool:
        """Take the coefficients on the line between two steps if their gap allows it."""
        guess = self.coefficients[i] = self._between(first, i, last)
        problem = self.sequence.small.with_lam(self.alphas[i] * self.model.sequence_weights)
        certificate = problem.certify(guess)
        if not certificate.gap <= self.goal:
            return False
        self.proofs[i] = problem, certificate
        self._take(i, guess)
        return True

    def _between(self, first: int, i: int, last: int) -> FloatArray:
        """Coefficients on the line between two steps, or on a parabola through a solution before them as well."""
        t, (start, end) = self.positions, (self.coefficients[first], self.coefficients[last])
        share = (t[i] - t[first]) / (t[last] - t[first])
        line = start + share * (end - start)
        before = max((k for k in self.solved if k < first), default=None) if self.bends else None
        if before is None:
            return line
        slopes = (end - start) / (t[last] - t[first]), (start - self.coefficients[before]) / (t[first] - t[before])
        bend = (slopes[0] - slopes[1]) * ((t[i] - t[first]) * (t[i] - t[last]) / (t[last] - t[before]))
        bend[~(nonzero_rows(start) & nonzero_rows(end))] = 0.0  # a row that begins between them has no parabola
        return line + bend

    def _solve_between(self, i: int) -> None:
        """Solve from the coefficients on the line."""
        with self.sequence.aside(self.coefficients[i]):
            self._solve(i)
