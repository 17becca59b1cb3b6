"""Random problems with everything that may be asked for at once, and the definition of what they minimize.

Missing targets or weights per entry, groups of columns, offsets, ridge, signs and factors of the penalty, each of them
at random; nothing here shares code with the package.
"""

from __future__ import annotations

import itertools
import warnings
from dataclasses import dataclass, replace

import cvxpy as cp
import numpy as np
import scipy.sparse as sp

import groupowl as go
from groupowl.inputs import penalty_options
from groupowl.problem import build_problem
from groupowl.solvers import Continuation, check_settings
from support import ENTRIES, cox_terms

LOSSES = ("squared", "huber", "logistic", "poisson", "multinomial", "cox")
#: What is switched on or off; entries are missing targets, weights per entry, or both.
FEATURES = ("entries", "groups", "offset", "ridge", "signs", "factors")
SCALES = ("size", "none", "frobenius", "orthonormal")
DELTA = 1.345


@dataclass(frozen=True)
class Combined:
    """A problem as users give it, and what it means."""

    X: np.ndarray
    Y: np.ndarray  # complete
    W: np.ndarray  # weights of the entries, zero where no target was observed
    lam: np.ndarray
    loss: str
    fit_intercept: bool
    standardized: bool
    groups: np.ndarray
    group_scale: str
    factor: np.ndarray
    offset: np.ndarray | None
    ridge: float
    signs: np.ndarray
    as_given: object
    weight_given: np.ndarray | None

    # As users give it ---------------------------------------------------------------------------------

    @property
    def data(self):
        Y = self.Y if self.loss in ("multinomial", "cox") else np.where(self.W > 0.0, self.Y, np.nan)
        return {
            "X": self.as_given,
            "Y": Y,
            "loss": self.loss,
            "fit_intercept": self.fit_intercept,
            "sample_weight": self.weight_given,
        }

    @property
    def penalty(self):
        is_alone = np.bincount(self.groups).max() == 1
        return {
            "feature_groups": None if is_alone else self.groups.tolist(),
            "group_scale": self.group_scale,
            "penalty_factor": None if np.all(self.factor == 1.0) else self.factor,
            "ridge": self.ridge,
            "positive": self.signs if self.signs.any() else False,
        }

    def arguments(self):
        return self.data | self.penalty | {"lam": self.lam, "offset": self.offset}

    def problem(self):
        """As `solve` makes it, standardized where that is drawn, which only estimators offer."""
        options = penalty_options(self.X.shape[1], None, **self.penalty)
        how = {"options": options, "offset": self.offset, "standardized": self.standardized}
        return build_problem(**self.data, lam=self.lam, **how)

    def solve(self, tol=1e-10, **how):
        if not self.standardized:
            return go.solve(**self.arguments(), tol=tol, **how)
        problem = self.problem()
        settings = check_settings(how.get("solver", "auto"), how.get("screening", "safe"), tol, 10_000)
        return Continuation(problem, settings, problem.null_coefficients()).solve(problem.lam)

    # What it means ------------------------------------------------------------------------------------

    @property
    def deviation(self):
        """Of columns within tasks, over all of them."""
        squares = np.zeros(self.X.shape[1])
        for w in self.W.T:
            squares += w @ (self.X - w @ self.X / w.sum()) ** 2
        return np.sqrt(squares / self.W.sum())

    @property
    def scale(self):
        """What the penalty multiplies coefficients with; infinite where columns are left out."""
        deviation, sizes = self.deviation, np.bincount(self.groups)[self.groups]
        scale = deviation.copy() if self.standardized else np.ones_like(deviation)
        if self.group_scale == "size":
            scale = scale * np.sqrt(sizes)
        if self.group_scale == "frobenius":
            scale = np.where(sizes > 1, np.sqrt(np.bincount(self.groups, deviation**2)[self.groups]), scale)
        return scale * self.factor

    @property
    def units(self):
        """Columns of each unit that is penalized, in the order of their first columns."""
        units = [np.flatnonzero((self.groups == k) & (self.factor > 0)) for k in np.unique(self.groups)]
        return sorted((rows for rows in units if len(rows)), key=min)

    @property
    def metrics(self):
        """Matrices whose products with the rows of each unit have the norms that the penalty sees."""
        scale = np.where(np.isfinite(self.scale), self.scale, 0.0)  # what is left out is zero
        if self.group_scale != "orthonormal":
            return [np.diag(scale[rows]) for rows in self.units]
        root = np.sqrt(self.W[:, :1] / self.W[:, 0].sum())
        constant = [np.ones((len(self.X), 1))] if self.fit_intercept or self.loss == "cox" else []
        free = root * np.hstack([*constant, self.X[:, self.factor == 0]])
        X = root * self.X
        X = X - free @ np.linalg.lstsq(free, X, rcond=None)[0] if free.shape[1] else X
        factor = np.where(np.isfinite(self.factor), self.factor, 0.0)
        return [
            factor[rows[0]] * np.linalg.qr(X[:, rows], mode="r") if len(rows) > 1 else np.diag(scale[rows])
            for rows in self.units
        ]

    def unit_norms(self, B):
        return np.array([np.linalg.norm(M @ B[rows]) for M, rows in zip(self.metrics, self.units, strict=True)])

    def objective(self, B, intercept):
        S = self.X @ B + intercept + (0.0 if self.offset is None else self.offset)
        if self.loss in ENTRIES:
            loss = np.sum(self.W * ENTRIES[self.loss](self.Y, S))
        elif self.loss == "cox":
            terms = [term for k in range(S.shape[1]) for term in cox_terms(self.Y[:, k], self.W[:, 0], k)]
            loss = sum(mass * (np.log(row @ np.exp(S[:, k])) - share @ S[:, k]) for mass, row, share, k in terms)
        else:
            top = S.max(axis=1)
            loss = self.W[:, 0] @ (np.log(np.exp(S - top[:, None]).sum(axis=1)) + top - np.sum(self.Y * S, axis=1))
        norms = self.unit_norms(B)
        return float(loss + np.sort(norms)[::-1] @ self.lam + 0.5 * self.ridge * norms @ norms)

    def conic_minimum(self):
        """The objective where a conic solver finds the minimum, and whether it was as accurate as asked for."""
        (n, d), q = self.X.shape, self.Y.shape[1]
        B, b0 = cp.Variable((d, q)), cp.Variable((1, q))
        Z = self.X @ B + (np.ones((n, 1)) @ b0 if self.fit_intercept else 0.0)
        loss = self._conic_loss(Z + (np.zeros((n, q)) if self.offset is None else self.offset))
        scale = self.scale
        pairs = zip(self.metrics, self.units, strict=True)
        norms = cp.hstack([cp.norm(cp.vec(M @ B[rows], "F")) for M, rows in pairs])
        drops = self.lam - np.append(self.lam[1:], 0.0)
        penalty = sum(drops[k] * cp.sum_largest(norms, k + 1) for k in range(len(self.lam)) if drops[k] > 0)
        ridge = 0.5 * self.ridge * cp.sum_squares(norms)
        signs = np.where(self.factor > 0, self.signs, 0.0)
        limits = [signs[j] * B[j] >= 0 for j in np.flatnonzero(signs)]
        limits += [B[j] == 0 for j in np.flatnonzero(np.isinf(scale))]
        program = cp.Problem(cp.Minimize(loss + penalty + ridge), limits)
        values = []
        for accuracy in (1e-10, 1e-9, 1e-8):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # that it fell short, which the status says, too
                try:
                    program.solve(solver=cp.CLARABEL, tol_gap_abs=accuracy, tol_gap_rel=accuracy, tol_feas=accuracy)
                except cp.error.SolverError:
                    continue
            if B.value is not None:
                at = np.where((signs[:, None] * B.value < 0.0) | np.isinf(scale)[:, None], 0.0, B.value)
                values.append(self.objective(at, b0.value if self.fit_intercept else 0.0))
            if program.status == "optimal":
                return min(values), True
        return min(values, default=np.nan), False

    def _conic_loss(self, S):
        if self.loss == "cox":
            loss = 0.0
            for k in range(S.shape[1]):
                for mass, row, share, _ in cox_terms(self.Y[:, k], self.W[:, 0], k):
                    chosen = np.flatnonzero(row)
                    loss += mass * (cp.log_sum_exp(S[chosen, k] + np.log(row[chosen])) - share @ S[:, k])
            return loss
        if self.loss == "multinomial":
            costs = cp.log_sum_exp(S, axis=1) - cp.sum(cp.multiply(self.Y, S), axis=1)
            return cp.sum(cp.multiply(self.W[:, 0], costs))
        if self.loss == "squared":
            return 0.5 * cp.sum_squares(cp.multiply(np.sqrt(self.W), self.Y - S))
        if self.loss == "huber":
            return 0.5 * cp.sum(cp.multiply(self.W, cp.huber(self.Y - S, DELTA)))
        smooth = cp.logistic(S) if self.loss == "logistic" else cp.exp(S)
        return cp.sum(cp.multiply(self.W, smooth - cp.multiply(self.Y, S)))


def disagreement(case, result):
    """What a solution has that the definition or a conic solver has not, in words; and whether there was a judge."""
    own = case.objective(result.B, result.intercept)
    room = max(abs(own), 1.0)
    if not result.converged:
        return f"ends with {result.status}, gap {result.gap:.1e}", False
    if not abs(own - result.primal) <= 1e-9 * room:
        return f"the objective is {own!r}, not {result.primal!r}", False
    minimum, is_accurate = case.conic_minimum()
    if not own - minimum <= 1e-8 * room and not np.isnan(minimum):
        return f"{own - minimum:.1e} above the minimum, gap {result.gap:.1e}", True
    if is_accurate and not minimum - own <= 1e-8 * room:
        return f"{minimum - own:.1e} below the minimum, gap {result.gap:.1e}", True
    return "", is_accurate


def draw(seed, *features, **how):
    """Problem number `seed`, with these features surely and the others at random, where they go together."""
    for attempt in itertools.count():
        case = _attempt([seed, attempt], features, **how)
        if case is not None:
            return case


def _attempt(seed, features, loss=None, standardized=None, shape=None):
    """A problem, or None where coefficients without penalty have no finite optimum."""
    rng = np.random.default_rng([23, *seed, *(FEATURES.index(name) for name in features)])
    on = {name: name in features or bool(rng.random() < 0.5) for name in FEATURES}
    kinds = [name for name in LOSSES if name in _serving(features)]
    loss = loss or str(rng.choice(kinds))
    on = {name: asked and loss in _serving((name,)) for name, asked in on.items()}
    n, d = shape or (int(rng.integers(12, 31)), int(rng.integers(2, 13)))
    q = int(rng.integers(2 if loss == "multinomial" else 1, 4))
    X = rng.standard_normal((n, d)) @ (np.eye(d) + 0.5 * rng.standard_normal((d, d)) / np.sqrt(d))
    X = (X + 0.5 * rng.standard_normal(d)) * 10 ** rng.uniform(-0.5, 0.5, d)
    if is_sparse := bool(rng.random() < 0.3):
        X *= rng.random((n, d)) < 0.6
    X[:2] = rng.standard_normal((2, d))  # no column is constant
    if rng.random() < 0.2:
        X = X.astype(np.float32)
    given = X
    if is_sparse:
        given = (sp.csr_array if rng.random() < 0.5 else sp.csc_array)(X)
    X = X.astype(np.float64)
    W, weight = _weights(rng, n, q, on["entries"])
    groups = rng.integers(0, max(d // 2, 2), d) if on["groups"] else np.arange(d)
    has_entries = np.ptp(W, axis=1).any()
    by_column = has_entries or "signs" in features
    scale = str(rng.choice(SCALES[:3] if by_column else SCALES)) if on["groups"] else "size"
    factor = _factors(rng, groups, scale) if on["factors"] else np.ones(d)
    signs = np.zeros(d)
    if on["signs"] and scale != "orthonormal":
        signs = np.ones(d) if rng.random() < 0.4 else np.where(factor > 0, rng.choice([-1.0, 0.0, 1.0], d), 0.0)
    offset = None
    if on["offset"]:
        offset = 10 ** rng.uniform(-1, 0.5) * rng.standard_normal((n, q))
        offset = np.clip(offset, -3, 3) if loss == "poisson" else offset
    fit_intercept = loss != "cox" and bool(rng.random() < 0.6)
    standardized = bool(rng.random() < 0.3) if standardized is None else standardized
    ridge = float(10 ** rng.uniform(-2, 1)) if on["ridge"] else 0.0
    Y = _targets(rng, loss, X, W, 0.0 if offset is None else offset)
    weights = getattr(go.weights, rng.choice(["oscar", "linear", "constant"]))(len(np.unique(groups[factor > 0])))
    case = Combined(
        X, Y, W, weights, loss, fit_intercept, standardized, groups, scale, factor, offset, ridge, signs, given, weight
    )  # fmt: skip
    try:
        problem = case.problem()
    except ValueError as error:
        if "have no finite optimum" in str(error):
            return None
        raise
    if not problem.unpenalized.has_minimum:
        return None
    free = np.full(problem.penalty.n_units - len(weights), weights[-1])
    top = problem.lam_max(np.concatenate([weights, free]))
    return replace(case, lam=(rng.uniform(0.05, 0.9) * top or 1.0) * weights)


def _serving(features):
    """Losses that have all of these features."""
    without = {"entries": ("multinomial", "cox"), "signs": ("multinomial",)}
    return [loss for loss in LOSSES if not any(loss in without.get(name, ()) for name in features)]


def _weights(rng, n, q, on):
    """Weights of the entries, and what users give beside missing targets."""
    rows = rng.uniform(0.3, 3.0, n) if rng.random() < 0.4 else None
    W = np.ones((n, q)) if rows is None else np.repeat(rows[:, None], q, axis=1)
    if not on:
        return W, rows
    present = rng.random((n, q)) < rng.uniform(0.5, 0.95)
    if rng.random() < 0.4:  # few patterns
        present = present[rng.integers(0, 3, n)]
    present[:4] = True
    weight = rng.uniform(0.3, 3.0, (n, q)) if rng.random() < 0.5 else rows
    given = np.ones((n, q)) if weight is None else np.reshape(weight, (n, -1)) * np.ones((1, q))
    return given * present, weight


def _factors(rng, groups, scale):
    factor = rng.uniform(0.5, 2.0, len(groups))
    if rng.random() < 0.4:
        factor[groups == groups[0]] = 0.0
    if rng.random() < 0.4:
        factor[np.flatnonzero(groups != groups[0])[:1]] = np.inf
    if scale == "orthonormal":  # one for each group
        factor = factor[np.array([np.flatnonzero(groups == k)[-1] for k in groups])]
    return factor if np.any((factor > 0) & np.isfinite(factor)) else np.ones(len(groups))


def _targets(rng, loss, X, W, offset):
    """Targets that are not the same for all samples of a task."""
    (n, d), q = X.shape, W.shape[1]
    Z = X[:, rng.permutation(d)[:4]] @ rng.standard_normal((min(d, 4), q))
    Z = Z / max(np.std(Z), 1e-3) + offset
    if loss == "squared":
        return Z + rng.standard_normal((n, q)) + 1.0
    if loss == "huber":
        return Z + rng.standard_t(2, (n, q))
    if loss == "cox":
        time = np.ceil(8.0 * rng.exponential(size=(n, q)) * np.exp(-0.5 * Z))  # with ties
        is_event = rng.random((n, q)) < 0.7
        is_event[0] = True
        return go.survival_targets(is_event, time, np.arange(n) % 3 > 0)
    if loss == "multinomial":
        Y = np.eye(q)[np.argmax(Z + rng.gumbel(size=Z.shape), axis=1)]
    elif loss == "logistic":
        Y = (Z + 2.0 * rng.logistic(size=(n, q)) > 0).astype(float)
    else:
        Y = rng.poisson(np.exp(np.clip(0.5 * Z, -3, 2))).astype(float)
    size = q if loss == "multinomial" else 1
    Y[: 2 * size] = np.vstack([np.eye(q), np.eye(q)[::-1]]) if size > 1 else [[1.0], [0.0]] * np.ones((1, q))
    return Y
