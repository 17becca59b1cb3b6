"""What a solve is asked for, and what the driver asks of a solver."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from .._typing import FloatArray, Handle, IndexArray
from ..problem import Certificate, Problem
from ..screening import Rule
from .solve_result import Progress

Callback = Callable[[Progress], Any]


class State(Protocol):
    """What a solver carries from step to step; ``Z`` is the predictor at ``B`` where it is known."""

    @property
    def B(self) -> FloatArray:
        """Current coefficients, penalized rows first."""

    @property
    def Z(self) -> Handle | None:
        """Predictor at ``B``, or None."""


@dataclass(frozen=True, eq=False)
class Round:
    """What a solver is asked for between two certificates.

    Attributes
    ----------
    certificate : Certificate
        The latest one, for the coefficients of the state.
    candidates : ndarray of int
        Units of the problem that are not proved zero; the others may be taken as zero.
    goal : float
        Gap at which the solve ends.
    max_steps : int
        Most steps to take.
    guess : ndarray or None
        Coefficients that may be better than those of the state, in the first round of a warm start. Nothing is known
        of them, not even that they are.
    """

    certificate: Certificate
    candidates: IndexArray
    goal: float
    max_steps: int
    guess: FloatArray | None = None


class Solver(Protocol):
    """What the driver asks of a solver; see :class:`groupowl.APGD` for one."""

    @property
    def screen_after(self) -> int:
        """Steps before the first screening test (the paper's warm start)."""

    @property
    def shrink_fraction(self) -> float:
        """Fraction of the rows below which those that are left are copied to a problem of their own."""

    @property
    def shrink_after(self) -> int:
        """Certificates before that is done."""

    @property
    def visits_all_rows(self) -> bool:
        """Whether steps visit all rows that are left, so that local bounds pay on the way."""

    @property
    def patience(self) -> int:
        """Certificates without any progress after which a solve counts as stalled."""

    def start(self, problem: Problem, B: FloatArray, rng: np.random.Generator) -> Any:
        """State at the coefficients ``B``; ``rng`` is for solvers that draw samples."""

    def advance(self, problem: Problem, state: Any, task: Round) -> tuple[Any, int]:
        """State at which the next certificate is due, and the steps it took."""

    def restrict(self, problem: Problem, state: Any, rows: IndexArray) -> Any:
        """State for the restricted ``problem``, which keeps these rows of the coefficients."""


@dataclass(frozen=True, eq=False)
class SolverSettings:
    """How to solve, one value from estimators and paths to the driver.

    Attributes
    ----------
    solver : Solver
    rule : Rule or None
        The screening rule.
    tol : float
        Tolerance of the duality gap, relative to what features can take off the loss.
    max_iter : int
        Most proximal steps.
    callback : callable or None
        Called after each certificate; returning True ends the solve.
    rng : Generator
        For solvers that draw samples.
    interrupted : callable or None
        Called now and then; what it raises ends the solve.
    """

    solver: Solver
    rule: Rule | None
    tol: float
    max_iter: int
    callback: Callback | None
    rng: np.random.Generator
    interrupted: Callable[[], bool] | None = None
