"""Safe screening for a solver that groupowl did not write.

    python examples/any_solver.py

PyProximal's accelerated proximal gradient solves two Group OWL problems, a multi-task regression and a multinomial
classification. Each is solved twice: on all rows of ``B``, and on the rows that ``go.SafeScreener`` does not prove to
be zero. The solver does not know about screening. It runs for a few iterations at a time, passes its iterate to the
screener, and continues with the remaining columns of X and the remaining weights:

    report = screener.update(B)        # a duality gap for B, and rows proved zero in every solution
    X[:, screener.active]              # the columns that the solver uses from now on ...
    screener.lam                       # ... and the weights of these rows, the largest ones

The script prints the time of both runs and checks that they reach the same objective. It needs pyproximal
(``pip install pyproximal``).
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
import pylops
from pyproximal import ProxOperator
from pyproximal.optimization.primal import ProximalGradient
from pyproximal.proximal import L2
from scipy.special import logsumexp, softmax

import groupowl as go

TOL = 1e-6  # on the duality gap, relative to the loss at zero
CHUNK = 25  # iterations between two updates of the screener; the momentum restarts with each chunk, in both runs
MOST_CHUNKS = 400


# What PyProximal needs: the penalty with its proximal map, the loss with its gradient ---------------------


class GroupOwlNorm(ProxOperator):
    """The Group OWL norm of a matrix with ``n_tasks`` columns, which PyProximal sees as a long vector."""

    def __init__(self, lam: np.ndarray, n_tasks: int) -> None:
        super().__init__()
        self.lam = lam
        self.shape = (len(lam), n_tasks)

    def __call__(self, x: np.ndarray) -> float:
        """Value of the norm."""
        return go.owl_norm(x.reshape(self.shape), self.lam)

    def prox(self, x: np.ndarray, tau: float) -> np.ndarray:
        """Proximal map of ``tau`` times the norm."""
        return go.owl_prox(x.reshape(self.shape), self.lam, step=tau).ravel()


class MultinomialLoss(ProxOperator):
    """``sum_i logsumexp(z_i) - <y_i, z_i>`` with ``Z = X B`` and one-hot rows ``y_i``."""

    def __init__(self, X: np.ndarray, Y: np.ndarray) -> None:
        super().__init__(hasgrad=True)
        self.X, self.Y = X, Y

    def _predictor(self, x: np.ndarray) -> np.ndarray:
        return self.X @ x.reshape(self.X.shape[1], self.Y.shape[1])

    def __call__(self, x: np.ndarray) -> float:
        """Value of the loss."""
        Z = self._predictor(x)
        return float(np.sum(logsumexp(Z, axis=1) - np.sum(self.Y * Z, axis=1)))

    def grad(self, x: np.ndarray) -> np.ndarray:
        """Gradient of the loss."""
        return (self.X.T @ (softmax(self._predictor(x), axis=1) - self.Y)).ravel()


def squared_loss(X: np.ndarray, Y: np.ndarray) -> ProxOperator:
    """``||Y - X B||^2 / 2``, which PyProximal has."""
    return L2(Op=pylops.MatrixMult(X, otherdims=(Y.shape[1],)), b=Y.ravel())


LOSSES = {"squared": squared_loss, "multinomial": MultinomialLoss}
CURVATURES = {"squared": 1.0, "multinomial": 0.5}  # largest second derivative along any direction of Z


# The problems, and the loop -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Problem:
    """Data, weights and the name of the loss."""

    X: np.ndarray
    Y: np.ndarray
    lam: np.ndarray
    loss: str

    def loss_at(self, B: np.ndarray) -> float:
        """Loss of the coefficients of all rows."""
        return float(LOSSES[self.loss](self.X, self.Y)(B.ravel()))


@dataclass(frozen=True)
class Outcome:
    """Result of a run: ``objective`` is within ``gap`` of the minimum, which is ``relative_gap`` of the null loss."""

    objective: float
    gap: float
    relative_gap: float
    rows_alive: int
    n_iterations: int
    seconds: float


def make_problem(loss: str, n_samples: int, n_features: int, n_tasks: int, fraction: float) -> Problem:
    """Correlated columns of unit norm, and OSCAR weights at a fraction of the smallest alpha that selects no row."""
    task = "regression" if loss == "squared" else "classification"
    data = go.datasets.make_correlated_groups(n_samples, n_features, n_tasks, task=task, unit_norm=True, random_state=0)
    weights = go.weights.oscar(n_features)
    return Problem(data.X, data.Y, fraction * go.lam_max(data.X, data.Y, weights, loss=loss) * weights, loss)


def longest_step(X: np.ndarray, loss: str) -> float:
    """``1 / L``: fewer columns allow longer steps. X X^T is small if there are few samples."""
    return 1.0 / (CURVATURES[loss] * float(np.linalg.eigvalsh(X @ X.T)[-1]))


def iterate(problem: Problem, X: np.ndarray, lam: np.ndarray, B: np.ndarray, step: float) -> np.ndarray:
    """A chunk of PyProximal's iterations from ``B``, on the columns X with the weights ``lam``."""
    loss, penalty = LOSSES[problem.loss](X, problem.Y), GroupOwlNorm(lam, B.shape[1])
    x = ProximalGradient(loss, penalty, x0=B.ravel(), tau=step, niter=CHUNK, acceleration="fista")
    return x.reshape(B.shape)


def solve(problem: Problem, *, shrink: bool) -> Outcome:
    """Run PyProximal until the gap is small; with ``shrink`` the rows that are proved zero are removed."""
    started = time.perf_counter()
    screener = go.SafeScreener(problem.X, problem.Y, problem.lam, loss=problem.loss)
    n_features, n_tasks = problem.X.shape[1], problem.Y.shape[1]
    rows = np.arange(n_features)  # the rows of B that the solver has
    X, lam, B = problem.X, problem.lam, np.zeros((n_features, n_tasks))
    null_loss = problem.loss_at(B)
    step, n_iterations = longest_step(X, problem.loss), 0
    for _ in range(MOST_CHUNKS):
        report = screener.update(B)  # takes coefficients of all rows as well as of the active ones
        if shrink and len(report.active) < len(rows):
            B, rows = B[np.searchsorted(rows, report.active)], report.active
            X, lam = problem.X[:, rows], screener.lam
            step = longest_step(X, problem.loss)
        if report.gap <= TOL * null_loss:
            break
        B = iterate(problem, X, lam, B, step)
        n_iterations += CHUNK
    else:
        raise RuntimeError(f"no convergence in {n_iterations} iterations: the gap is {report.gap:.3g}")
    seconds = time.perf_counter() - started
    answer = np.zeros((n_features, n_tasks))
    answer[report.active] = B[np.searchsorted(rows, report.active)]  # what the gap is for: zero if that is proved
    # Computed on all rows with all weights, so that it does not depend on screening.
    objective = problem.loss_at(answer) + go.owl_norm(answer, problem.lam)
    return Outcome(objective, report.gap, report.gap / null_loss, len(rows), n_iterations, seconds)


# The comparison -------------------------------------------------------------------------------------------


def print_comparison(problem: Problem, without: Outcome, screened: Outcome) -> None:
    """Both runs, how many times faster the second was, and whether the objectives agree."""
    (n_samples, n_features), n_tasks = problem.X.shape, problem.Y.shape[1]
    print(f"{problem.loss} loss, {n_samples} samples, {n_features} features, {n_tasks} tasks")
    print(f"  {'':<18} {'seconds':>8} {'iterations':>10} {'rows alive':>10} {'objective':>15} {'rel. gap':>9}")
    for name, run in (("without screening", without), ("with screening", screened)):
        print(
            f"  {name:<18} {run.seconds:8.2f} {run.n_iterations:10d} {run.rows_alive:10d} "
            f"{run.objective:15.9f} {run.relative_gap:9.1e}"
        )
    difference = abs(screened.objective - without.objective)
    agree = "agree within the gaps" if difference <= screened.gap + without.gap else "DISAGREE"
    print(
        f"  {without.seconds / screened.seconds:.1f} times faster; objectives {agree} (difference {difference:.1e})\n"
    )


def main(scale: float = 1.0) -> dict[str, dict[str, Outcome]]:
    """Compare both runs for both losses; ``scale`` shrinks the data. Returns outcomes by loss and kind of run."""
    sizes = {"squared": (100, 4000, 3, 0.5), "multinomial": (150, 1500, 3, 0.4)}
    outcomes = {}
    for loss, (n_samples, n_features, n_tasks, fraction) in sizes.items():
        problem = make_problem(loss, round(scale * n_samples), round(scale * n_features), n_tasks, fraction)
        without, screened = solve(problem, shrink=False), solve(problem, shrink=True)
        print_comparison(problem, without, screened)
        outcomes[loss] = {"without": without, "screened": screened}
    return outcomes


if __name__ == "__main__":
    main()
