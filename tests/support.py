"""What several test files share: problems of every kind, a conic reference, a design that guards sample space."""

from __future__ import annotations

import inspect
import os
import warnings
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression

import groupowl as go
from groupowl.designs import DenseDesign, Design
from groupowl.designs.base import PassCounter
from groupowl.solvers import SOLVERS

#: Names of all solvers; a new solver joins every test that runs over them.
SOLVER_NAMES = list(SOLVERS)
RULE_NAMES = ["safe", "paper", "none"]

#: Real data sets, beside the project or where GROUPOWL_DATA says.
REAL_FOLDER = Path(os.environ.get("GROUPOWL_DATA", Path(__file__).parents[2] / "shared" / "data"))
needs_real_folder = pytest.mark.skipif(
    not REAL_FOLDER.is_dir(), reason=f"the data sets are not on this machine: {REAL_FOLDER} does not exist"
)


#: Losses that are sums over tasks, as they are defined: functions of targets and predictors.
ENTRIES = {
    "squared": lambda Y, Z: 0.5 * (Y - Z) ** 2,
    "logistic": lambda Y, Z: np.logaddexp(0.0, Z) - Y * Z,
    "poisson": lambda Y, Z: np.exp(Z) - Y * Z,
    "huber": lambda Y, Z: np.where(np.abs(Y - Z) <= 1.345, 0.5 * (Y - Z) ** 2, 1.345 * (np.abs(Y - Z) - 0.5 * 1.345)),
}


@dataclass(frozen=True)
class Case:
    """One small problem, ready for `go.solve(**case.arguments())`."""

    X: object
    Y: np.ndarray
    lam: np.ndarray
    loss: str = "squared"
    fit_intercept: bool = False
    sample_weight: np.ndarray | None = None

    def arguments(self):
        return {
            "X": self.X,
            "Y": self.Y,
            "lam": self.lam,
            "loss": self.loss,
            "fit_intercept": self.fit_intercept,
            "sample_weight": self.sample_weight,
        }

    def problem(self):
        return go.problem.build_problem(**self.arguments())

    def objective(self, B, intercept=0.0):
        """The documented objective, from scratch in dense NumPy."""
        X = self.X.toarray() if sp.issparse(self.X) else np.asarray(self.X, dtype=float)
        Y = self.Y if self.Y.ndim == 2 else self.Y[:, None]
        w = np.ones(len(Y)) if self.sample_weight is None else self.sample_weight
        Z = X @ B + intercept
        if self.loss in ENTRIES:
            loss = w @ ENTRIES[self.loss](Y, Z).sum(axis=1)
        elif self.loss == "cox":
            terms = [term for k in range(Y.shape[1]) for term in cox_terms(Y[:, k], w, k)]
            loss = sum(mass * np.log(row @ np.exp(Z[:, k])) - mass * (share @ Z[:, k]) for mass, row, share, k in terms)
        else:
            top = Z.max(axis=1)
            loss = w @ (np.log(np.exp(Z - top[:, None]).sum(axis=1)) + top - np.sum(Y * Z, axis=1))
        norms = np.sort(np.linalg.norm(B, axis=1))[::-1]
        return float(loss + norms @ self.lam)


def cox_terms(y, w, task=0, ties="efron"):
    """Terms of the partial likelihood by loops: mass, weights of the risk set, shares of the deaths, task."""
    base, terms = w / w.mean(), []
    for code in np.unique(y[y > 0]):
        died = y == code
        at_risk = (np.abs(y) >= code) & (np.abs(y) // 2**32 == code // 2**32)
        n_terms = died.sum() if ties == "efron" else 1
        for place in range(n_terms):
            row = base * at_risk * np.where(died, 1.0 - place / n_terms, 1.0)
            terms.append((w[died].sum() / n_terms, row, died * w / w[died].sum(), task))
    return terms


def make_case(
    seed=0,
    *,
    n=25,
    d=12,
    q=3,
    loss="squared",
    fit_intercept=False,
    weighted=False,
    sparse=False,
    density=0.5,
    shape="oscar",
    fraction=0.3,
):
    """A random problem with correlated columns, offsets, and `fraction` of the strength that kills all rows."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) @ (np.eye(d) + 0.4 * rng.standard_normal((d, d)) / np.sqrt(d)) + 0.3
    if sparse:
        X *= rng.random((n, d)) < density
    B = np.zeros((d, q))
    B[rng.choice(d, size=min(4, d), replace=False)] = rng.standard_normal((min(4, d), q))
    Z = X @ B
    if loss in ("squared", "huber"):
        Y = Z + 0.5 * rng.standard_normal((n, q)) + 1.0
        if loss == "huber":
            Y[rng.random((n, q)) < 0.15] += 10.0
    elif loss == "logistic":
        Y = (Z + rng.logistic(size=(n, q)) > 0.0).astype(float)
        Y[:2] = [[0.0], [1.0]]  # no column is constant
    elif loss == "poisson":
        Y = 1.0 * rng.poisson(np.exp(np.clip(0.5 * Z, -5.0, 2.0)))
        Y[0] = 1.0
    elif loss == "cox":
        time = np.ceil(8.0 * rng.exponential(size=(n, q)) * np.exp(-0.5 * Z))  # with ties
        is_event = rng.random((n, q)) < 0.7
        is_event[0] = True
        Y = go.survival_targets(is_event, time, np.arange(n) % 3 > 0)
    else:
        Y = np.eye(q)[np.argmax(Z + rng.gumbel(size=Z.shape), axis=1)]
    weight = rng.uniform(0.2, 3.0, size=n) if weighted else None
    weights = {"two-level": np.r_[np.ones(d - d // 2), np.full(d // 2, 0.3)]}.get(shape)
    weights = getattr(go.weights, shape)(d) if weights is None else weights
    data = {"loss": loss, "fit_intercept": fit_intercept, "sample_weight": weight}
    X = sp.csr_array(X) if sparse else X
    return Case(X, Y, fraction * go.lam_max(X, Y, weights, **data) * weights, **data)


@cache
def conic_minimum(**settings) -> float:
    """Minimum of `make_case(**settings)` by Clarabel, an interior-point solver that knows nothing of us."""
    case = make_case(**settings)
    X = case.X.toarray() if sp.issparse(case.X) else case.X
    n, d = X.shape
    q = case.Y.shape[1]
    w = np.ones(n) if case.sample_weight is None else case.sample_weight
    B, b0 = cp.Variable((d, q)), cp.Variable((1, q))
    Z = X @ B + (np.ones((n, 1)) @ b0 if case.fit_intercept else 0.0)
    entry_weight = w[:, None] * np.ones((1, q))
    if case.loss == "squared":
        loss = 0.5 * cp.sum_squares(cp.multiply(np.sqrt(entry_weight), case.Y - Z))
    elif case.loss in ENTRIES:
        entries = {"logistic": cp.logistic, "poisson": cp.exp, "huber": lambda Z: 0.5 * cp.huber(case.Y - Z, 1.345)}
        linear = 0.0 if case.loss == "huber" else cp.multiply(case.Y, Z)
        loss = cp.sum(cp.multiply(entry_weight, entries[case.loss](Z) - linear))
    elif case.loss == "cox":
        loss = 0.0
        for k in range(q):
            for mass, row, share, _ in cox_terms(case.Y[:, k], w):
                chosen = np.flatnonzero(row)
                loss += mass * (cp.log_sum_exp(Z[chosen, k] + np.log(row[chosen])) - share @ Z[:, k])
    else:
        loss = cp.sum(cp.multiply(w, cp.log_sum_exp(Z, axis=1) - cp.sum(cp.multiply(case.Y, Z), axis=1)))
    norms = cp.norm(B, 2, axis=1)
    drops = case.lam - np.append(case.lam[1:], 0.0)
    penalty = sum(drops[k] * cp.sum_largest(norms, k + 1) for k in range(d) if drops[k] > 0)
    program = cp.Problem(cp.Minimize(loss + penalty))
    accuracy = 1e-9
    with warnings.catch_warnings():  # what is not quite as accurate as asked for is judged by the objective
        warnings.filterwarnings("ignore", "Solution may be inaccurate")
        for equilibrated in (True, False):  # which is the better depends on the machine
            limits = dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), accuracy)
            program.solve(solver=cp.CLARABEL, equilibrate_enable=equilibrated, **limits)
            if program.status == cp.OPTIMAL:
                break
    # The objective at the solver's point, evaluated from scratch: above the minimum by at most its accuracy.
    return case.objective(B.value, b0.value if case.fit_intercept else 0.0)


class OpaqueArray:
    """A sample-space array that only its design may open."""

    def __init__(self, content):
        self._content = content

    def __array__(self, *args, **kwargs):
        raise TypeError("sample-space arrays must not be gathered: only the design may open them")

    def __getattr__(self, name):
        raise TypeError(f"sample-space arrays are opaque, but {name!r} was asked for")


class OpaqueDesign(Design):
    """A dense design in two blocks of rows whose sample-space arrays cannot leave it."""

    def __init__(self, base, passes=None):
        self.base = base
        self.shape, self.dtype, self.unit = base.shape, base.dtype, base.unit
        self.passes = base.passes

    @classmethod
    def of(cls, X):
        return cls(DenseDesign(np.asarray(X, dtype=float), PassCounter()))

    def matmul(self, B, offset=None):
        return OpaqueArray(self.base.matmul(B, offset))

    def rmatmul(self, T):
        return self.base.rmatmul(T._content)

    def samples(self, values):
        return OpaqueArray(self.base.samples(values))

    def _blocks(self, samples):
        half = self.n_samples // 2
        opened = [handle._content for handle in samples]
        return [tuple(array[rows] for array in opened) for rows in (slice(0, half), slice(half, None))]

    def map(self, function, *samples):
        return OpaqueArray(np.concatenate([function(*block) for block in self._blocks(samples)]))

    def reduce(self, function, *samples):
        first, second = (function(*block) for block in self._blocks(samples))
        return first + second

    def select(self, samples, rows):
        return OpaqueArray(samples._content[rows])

    def compute_moments(self, w):
        return self.base.compute_moments(w._content)

    def restrict(self, columns):
        return OpaqueDesign(self.base.restrict(columns))

    def rows(self, rows):
        return OpaqueDesign(self.base.rows(rows))

    def gram(self, left, right, w):
        return self.base.gram(left, right, w._content)


def with_opaque_design(case):
    """The same problem on a design that guards its sample-space arrays."""
    return replace(case, X=OpaqueDesign.of(case.X))


def lasso_logistic_regression(**settings):
    """scikit-learn's: until version 1.8 the name of its penalty makes it a lasso, from then on its ratio."""
    by_name = inspect.signature(LogisticRegression).parameters["penalty"].default == "l2"
    penalty = {"penalty": "l1"} if by_name else {"l1_ratio": 1.0}
    return LogisticRegression(solver="saga", random_state=0, **penalty, **settings)
