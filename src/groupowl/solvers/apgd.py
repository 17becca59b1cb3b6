"""Algorithm 1 of the paper: accelerated proximal gradient (FISTA), with its errata mended.

The step is ``1 / L`` with L at least the curvature of the loss along the step; ``t_k`` appears in the momentum
only. When rows are removed, momentum starts again from the current coefficients.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from .._checks import finite_number, lookup, positive_integer
from .._typing import FloatArray, Handle, IndexArray
from ..problem import Certificate, Problem
from .driver import SteppingSolver

# When this few of the rows are left since L was last estimated, a new estimate allows longer steps.
_REESTIMATE_FRACTION = 0.5


@dataclass(frozen=True, eq=False)
class _State:
    B: FloatArray
    Z: Handle
    B_previous: FloatArray
    Z_previous: Handle
    t: float  # FISTA's momentum sequence, 1 after a restart
    momentum: float  # extrapolation that the next step starts with
    lipschitz: float
    lipschitz_rows: int  # number of rows for which lipschitz was estimated


@dataclass(frozen=True)
class APGD(SteppingSolver):
    """Accelerated proximal gradient descent (Algorithm 1).

    Parameters
    ----------
    step : "auto", "backtracking" or float, default="auto"
        "auto" uses ``1 / L`` with L from the operator norm of X, raised where a step shows it was too small.
        "backtracking" starts from the curvature along the first gradient and doubles L until the loss stays
        below its quadratic model. A number is used as it is.
    restart : {"screen", "gradient"}, default="screen"
        When momentum starts anew: whenever rows are removed, as in the paper; or also whenever it points
        against the gradient, which saves many iterations.
    screen_after : int, default=0
        Iterations before the first screening test (the paper's warm start).
    check_every : int, default=10
        Iterations between two certificates.

    Examples
    --------
    >>> import groupowl as go
    >>> data = go.datasets.make_correlated_groups(60, 200, 3, random_state=0)
    >>> lam = 0.3 * go.lam_max(data.X, data.Y, "oscar") * go.weights.oscar(200)
    >>> go.solve(data.X, data.Y, lam, solver=go.APGD(restart="gradient")).status
    'converged'
    """

    step: str | float = "auto"
    restart: str = "screen"
    screen_after: int = 0
    check_every: int = 10

    #: Momentum without gradient restart swings: objective and gap may stand above their best for thousands of steps.
    patience = 500

    def __post_init__(self) -> None:
        if isinstance(self.step, str):
            lookup("step", self.step, {"auto": None, "backtracking": None})
        else:
            finite_number("step", self.step, above=0.0)
        lookup("restart", self.restart, {"screen": None, "gradient": None})
        positive_integer("screen_after", self.screen_after, minimum=0)
        positive_integer("check_every", self.check_every)

    @property
    def steps_between_certificates(self) -> int:
        """As set."""
        return self.check_every

    def start(self, problem: Problem, B: FloatArray, rng: np.random.Generator) -> _State:
        """State at ``B``, without momentum."""
        Z = problem.predictor(B)
        if self.step == "auto":
            lipschitz = problem.lipschitz()
        elif self.step == "backtracking":
            gradient = problem.descent(Z)
            moved = problem.design.map(np.add, Z, problem.predictor(gradient))
            lipschitz = problem.move_curvature(Z, moved, gradient) / 2.0
        else:
            lipschitz = 1.0 / float(self.step)
        return _State(B, Z, B, Z, 1.0, 0.0, lipschitz or 1.0, problem.n_rows)

    def step_once(self, problem: Problem, state: _State, certificate: Certificate) -> _State:
        """One iteration: a gradient at the extrapolated point, a prox, the next momentum."""
        V, Z_V = state.B, state.Z
        if state.momentum > 0.0:  # the predictor of the extrapolated point needs no product
            V = state.B + state.momentum * (state.B - state.B_previous)
            extrapolate = partial(_extrapolate, momentum=state.momentum)
            Z_V = problem.design.map(extrapolate, state.Z, state.Z_previous)
        gradient_step = problem.descent(Z_V)
        lipschitz = state.lipschitz
        while True:
            B = problem.prox(V + gradient_step / lipschitz, 1.0 / lipschitz)
            Z = problem.predictor(B)
            needed = self._needed_lipschitz(problem, lipschitz, (V, Z_V, gradient_step), B, Z)
            if needed <= lipschitz:
                break
            lipschitz = needed
        t, momentum = 1.0, 0.0
        points_back = np.sum((V - B) * (B - state.B)) > 0.0
        if not (self.restart == "gradient" and points_back):
            t = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * state.t**2))
            momentum = (state.t - 1.0) / t
        return replace(
            state,
            B=B,
            Z=Z,
            B_previous=state.B,
            Z_previous=state.Z,
            t=t,
            momentum=momentum,
            lipschitz=lipschitz,
        )

    def _needed_lipschitz(
        self, problem: Problem, lipschitz: float, start: tuple[FloatArray, Handle, FloatArray], B: FloatArray, Z: Handle
    ) -> float:
        """``lipschitz`` if the loss at ``B`` stays below its quadratic model at the start, else a larger value.

        The start is a point, its predictor and minus the gradient there.
        """
        V, Z_V, descent = start
        if not isinstance(self.step, str):
            return lipschitz
        move = B - V
        curvature = problem.move_curvature(Z_V, Z, move)  # bounds the model's error without cancellation
        if curvature <= lipschitz or not np.isfinite(curvature):
            return lipschitz
        if self.step == "auto" and np.isfinite(problem.loss.curvature):
            return 1.05 * curvature
        rise = problem.loss_value(Z) - problem.loss_value(Z_V) + float(np.sum(descent * move))
        return lipschitz if rise <= 0.5 * lipschitz * float(np.sum(move * move)) else 2.0 * lipschitz

    def restrict(self, problem: Problem, state: _State, rows: IndexArray) -> _State:
        """State on fewer rows: no momentum, and longer steps where enough rows are gone."""
        B = state.B[rows]
        dropped_zeros = np.count_nonzero(B) == np.count_nonzero(state.B)
        Z = state.Z if dropped_zeros else problem.predictor(B)
        state = replace(state, B=B, Z=Z, B_previous=B, Z_previous=Z, t=1.0, momentum=0.0)
        if self.step == "auto" and problem.n_rows <= _REESTIMATE_FRACTION * state.lipschitz_rows:
            estimate = min(state.lipschitz, problem.lipschitz() or state.lipschitz)
            state = replace(state, lipschitz=estimate, lipschitz_rows=problem.n_rows)
        return state


def _extrapolate(Z: FloatArray, Z_previous: FloatArray, momentum: float) -> FloatArray:
    return Z + momentum * (Z - Z_previous)
