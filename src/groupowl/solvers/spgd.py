"""Algorithm 2 of the paper: stochastic proximal gradient with variance reduction (prox-SVRG), errata mended.

One step is one outer iteration: from the coefficients and the full gradient at a snapshot, many cheap proximal steps
along unbiased estimates of the gradient, each from a few samples. The paper's printed estimate mixes a mean over the
batch with a sum over all samples; here the batch is scaled up, so that its mean is the gradient.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from .._checks import finite_number, lookup, positive_integer
from .._typing import FloatArray, Handle, IndexArray
from ..designs import Design
from ..problem import Certificate, Problem
from .driver import SteppingSolver

# Once a step was too long, the automatic step doubles only after this many snapshots that lower the objective, and
# after twice as many each time that doubling turns out too much.
_GOOD_SNAPSHOTS = 5
# A batch is at most this fraction of the samples, so that there are inner steps to speak of.
_LARGEST_BATCH = 0.1
# Changes of the objective below this, relatively, are rounding and tell nothing.
_CHANGE_RTOL = 1e-13


@dataclass(frozen=True, eq=False)
class _State:
    B: FloatArray
    Z: Handle
    rng: np.random.Generator
    step: float
    good: int = 0  # snapshots in a row that lowered the objective
    patience: int = 1  # good snapshots before the step doubles; 1 until a step was too long
    just_doubled: bool = False
    descent: FloatArray | None = None  # known at B, when rows were removed after the certificate


@dataclass(frozen=True)
class SPGD(SteppingSolver):
    """Stochastic proximal gradient descent with variance reduction (Algorithm 2), for many samples.

    Parameters
    ----------
    batch_size : int, default=50
        Samples in a batch, at most a tenth of all; batches are drawn without replacement and cover the data in
        random order.
    inner_steps : int, default=None
        Proximal steps between two snapshots; by default one epoch, as many as cover all samples once.
    step : "auto" or float, default="auto"
        "auto" starts at half the inverse of the expected smoothness of a batch and doubles with every snapshot that
        lowers the objective, until one raises it; from then on after five in a row. A rise is undone and halves
        it. A number is used as it is, as in the paper.
    screen_after : int, default=0
        Snapshots before the first screening test (the paper's warm start).

    Examples
    --------
    >>> import groupowl as go
    >>> data = go.datasets.make_correlated_groups(
    ...     2000, 50, 3, task="classification", random_state=0
    ... )
    >>> lam = 0.2 * go.lam_max(data.X, data.Y, "oscar", loss="multinomial") * go.weights.oscar(50)
    >>> settings = {"loss": "multinomial", "tol": 1e-4, "random_state": 0}
    >>> go.solve(data.X, data.Y, lam, solver=go.SPGD(), **settings).status
    'converged'
    """

    batch_size: int = 50
    inner_steps: int | None = None
    step: str | float = "auto"
    screen_after: int = 0

    def __post_init__(self) -> None:
        positive_integer("batch_size", self.batch_size)
        if self.inner_steps is not None:
            positive_integer("inner_steps", self.inner_steps)
        if isinstance(self.step, str):
            lookup("step", self.step, {"auto": None})
        else:
            finite_number("step", self.step, above=0.0)
        positive_integer("screen_after", self.screen_after, minimum=0)

    def start(self, problem: Problem, B: FloatArray, rng: np.random.Generator) -> _State:
        """State at the snapshot ``B``."""
        if not np.isfinite(problem.loss.curvature):
            raise ValueError(
                f"solver='spgd' needs a loss with a bound on its curvature, and loss={problem.loss.name!r} has none. "
                "Use solver='auto' or solver='apgd'."
            )
        if isinstance(self.step, str):
            step = 0.5 / (problem.batch_lipschitz(self._batch_size(problem.design.n_samples)) or 1.0)
        else:
            step = float(self.step)
        return _State(B, problem.predictor(B), rng, step)

    def _batch_size(self, n: int) -> int:
        return min(self.batch_size, max(1, int(_LARGEST_BATCH * n)))

    def step_once(self, problem: Problem, state: _State, certificate: Certificate) -> _State:
        """One outer iteration: the inner steps from the snapshot, then the next snapshot and its step."""
        descent = state.descent
        if descent is None and certificate.residual is not None:
            descent = certificate.residual.descent
        if descent is None:
            descent = problem.descent(state.Z)
        B, theta = state.B, problem.dual_point(state.Z)
        for rows in self._batches(problem.design, state.rng):
            direction = descent + problem.batch_descent_change(rows, B, theta)
            B = problem.prox(B + state.step * direction, state.step)
        Z = problem.predictor(B)
        after = replace(state, B=B, Z=Z, descent=None)
        if not isinstance(self.step, str):
            return after
        rise = problem.loss_value(Z) + problem.penalty_value(B) - certificate.primal
        rounding = _CHANGE_RTOL * certificate.primal
        if not rise <= rounding:  # too long a step, or divergence: back to the snapshot
            failed_again = state.just_doubled and state.patience > 1
            patience = 2 * state.patience if failed_again else max(state.patience, _GOOD_SNAPSHOTS)
            return replace(state, step=0.5 * state.step, good=0, patience=patience, just_doubled=False)
        if rise >= -rounding:
            return after
        if state.good + 1 < state.patience:
            return replace(after, good=state.good + 1, just_doubled=False)
        return replace(after, step=2.0 * state.step, good=0, just_doubled=True)

    def _batches(self, design: Design, rng: np.random.Generator) -> Iterator[IndexArray]:
        """Batches without replacement; the samples are shuffled anew whenever all were used."""
        n, size = design.n_samples, self._batch_size(design.n_samples)
        starts = range(0, n, size)
        left = len(starts) if self.inner_steps is None else self.inner_steps
        while left > 0:
            order = design.shuffled(rng)
            for start in starts[:left]:
                yield np.sort(order[start : start + size])  # sorted: memory is read in order
            left -= len(starts)

    def restrict(self, problem: Problem, state: _State, rows: IndexArray) -> _State:
        """State on fewer rows."""
        B = state.B[rows]
        if np.count_nonzero(B) == np.count_nonzero(state.B):
            descent = None if state.descent is None else state.descent[rows]
            return replace(state, B=B, descent=descent)
        Z = problem.predictor(B)
        return replace(state, B=B, Z=Z, descent=problem.descent(Z))
