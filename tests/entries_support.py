"""Problems with missing targets and weights per entry, and what they mean: own samples for every task."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import cvxpy as cp
import numpy as np

import groupowl as go
from support import ENTRIES

LOSSES = tuple(ENTRIES)
KINDS = ("missing", "stacked", "weights")
DELTA = 1.345


@dataclass(frozen=True)
class EntryCase:
    """A problem as users give it, and the weights of the entries, zero for those that are missing."""

    X: np.ndarray
    Y: np.ndarray  # complete
    W: np.ndarray
    lam: np.ndarray
    loss: str
    fit_intercept: bool
    has_weights: bool

    def arguments(self, lam=None):
        return {
            "X": self.X,
            "Y": np.where(self.W > 0.0, self.Y, np.nan),
            "lam": self.lam if lam is None else lam,
            "loss": self.loss,
            "fit_intercept": self.fit_intercept,
            "sample_weight": self.W if self.has_weights else None,
        }

    def problem(self):
        return go.problem.build_problem(**self.arguments())

    def tasks(self):
        """Data, targets and weights of the samples of each task, apart from the others."""
        for k in range(self.Y.shape[1]):
            rows = self.W[:, k] > 0.0
            yield self.X[rows], self.Y[rows, k], self.W[rows, k]

    def objective(self, B, intercept):
        """The objective, task by task."""
        norms = np.sort(np.linalg.norm(B, axis=1))[::-1]
        value = float(norms @ self.lam)
        for k, (X, y, w) in enumerate(self.tasks()):
            value += float(w @ ENTRIES[self.loss](y, X @ B[:, k] + intercept[k]))
        return value

    def conic_minimum(self):
        """The minimum by a solver that shares no code with ours."""
        q = self.Y.shape[1]
        B = cp.Variable((self.X.shape[1], q))
        intercept = cp.Variable(q) if self.fit_intercept else np.zeros(q)
        objective = _owl_norm(B, self.lam)
        for k, (X, y, w) in enumerate(self.tasks()):
            objective += cp.sum(cp.multiply(w, _conic_loss(self.loss, y, X @ B[:, k] + intercept[k])))
        problem = cp.Problem(cp.Minimize(objective))
        problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-9, tol_gap_rel=1e-9, tol_feas=1e-9)
        return float(problem.value)


def _owl_norm(B, lam):
    norms, falls = cp.norm(B, 2, axis=1), lam - np.append(lam[1:], 0.0)
    return sum(fall * cp.sum_largest(norms, k + 1) for k, fall in enumerate(falls) if fall > 0.0)


def _conic_loss(loss, y, z):
    if loss == "squared":
        return 0.5 * cp.square(y - z)
    if loss == "huber":
        return 0.5 * cp.huber(y - z, DELTA)
    return (cp.logistic(z) if loss == "logistic" else cp.exp(z)) - cp.multiply(y, z)


@cache
def draw_case(loss, kind, seed):
    """A random small problem; columns have scales and means of their own, and so have studies."""
    rng = np.random.default_rng([seed, LOSSES.index(loss), KINDS.index(kind)])
    n, d, q = int(rng.integers(16, 40)), int(rng.integers(3, 12)), int(rng.integers(2, 5))
    X = rng.standard_normal((n, d)) * 10.0 ** rng.uniform(-1, 1, d) + rng.uniform(-3, 3, d)
    W = (rng.random((n, q)) < rng.uniform(0.4, 0.95)).astype(float)
    W[:4] = 1.0
    if kind == "stacked":
        task = np.sort(np.concatenate([np.repeat(np.arange(q), 3), rng.integers(0, q, n - 3 * q)]))
        W = np.eye(q)[task]
        X += rng.standard_normal((q, d))[task]
    if kind == "weights":
        W *= rng.uniform(0.1, 3.0, W.shape)
    Y = _targets(rng, loss, X, W)
    fit_intercept = bool(rng.random() < 0.7)
    shape = [go.weights.oscar, go.weights.linear, go.weights.constant][rng.integers(3)](d)
    case = EntryCase(X, Y, W, shape, loss, fit_intercept, kind == "weights")
    arguments = case.arguments()
    arguments.pop("lam")
    largest = go.lam_max(weights=shape, **arguments)
    return EntryCase(X, Y, W, largest * rng.uniform(0.05, 0.9) * shape, loss, fit_intercept, kind == "weights")


def _targets(rng, loss, X, W):
    """Targets that are not the same for all samples of a task."""
    d, q = X.shape[1], W.shape[1]
    B = rng.standard_normal((d, q)) * (rng.random(d) < 0.5)[:, None]
    Z = ((X - X.mean(axis=0)) / X.std(axis=0)) @ B
    if loss in ("squared", "huber"):
        return Z + rng.standard_normal(Z.shape) + rng.uniform(-5, 5, q)
    Y = (
        rng.poisson(np.exp(np.clip(0.5 * Z, -2, 2)))
        if loss == "poisson"
        else rng.random(Z.shape) < 1 / (1 + np.exp(-Z))
    )
    Y = Y.astype(float)
    for k in range(q):
        first, second = np.flatnonzero(W[:, k])[:2]
        Y[first, k], Y[second, k] = 1.0, 0.0
    return Y
