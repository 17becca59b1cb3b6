"""Random problems that are hard for safe screening; one seed, one problem."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import scipy.sparse as sp
from scipy.special import expit

import groupowl as go
from groupowl.losses import CoxLoss

LOSSES = ("squared", "multinomial", "logistic", "poisson", "huber", "cox")


@dataclass(frozen=True)
class HardProblem:
    """Arguments of `go.solve`, those that references have otherwise, and the traits that were drawn, for reports."""

    arguments: dict
    traits: tuple[str, ...]
    own: dict = field(default_factory=dict)

    @property
    def X(self):
        return self.arguments["X"]

    def exact(self):
        """The same problem in double precision and dense, for references."""
        X = self.X.toarray() if sp.issparse(self.X) else self.X
        return {**self.arguments, "X": X.astype(np.float64), **self.own}


def draw(seed: int) -> HardProblem:
    """Problem number `seed`."""
    rng = np.random.default_rng([20261115, seed])
    traits: list[str] = []

    def chance(name: str, probability: float) -> bool:
        drawn = bool(rng.random() < probability)
        if drawn:
            traits.append(name)
        return drawn

    if chance("barely active row", 0.08):
        return _barely_active(rng, tuple(traits))
    loss = str(rng.choice(LOSSES, p=[0.25, 0.2, 0.13, 0.13, 0.13, 0.16]))
    traits.append(loss)
    n = int(rng.choice([1, 2, 3, 5, 8, 13, 20]))
    d = int(rng.choice([1, 2, 3, 5, 8, 13, 20, 40]))
    if chance("many features", 0.001):
        d = int(10 ** rng.uniform(2.5, 5))
    q = int(rng.choice([2, 2, 3, 5])) if loss == "multinomial" else int(rng.choice([1, 2, 3, 5]))
    X = _columns(rng, n, d, chance)
    Y = _targets(rng, X, q, loss, chance)
    arguments = {
        "loss": loss,
        "fit_intercept": loss != "cox" and chance("intercept", 0.5),
        "sample_weight": 10.0 ** rng.uniform(-3, 3, size=n) if chance("sample weights", 0.2) else None,
    }
    if arguments["sample_weight"] is not None and n > 1 and chance("zero sample weights", 0.2):
        arguments["sample_weight"][rng.integers(n)] = 0.0
    own = {}
    if loss == "cox":
        arguments["loss"], Y, own = _survival(rng, Y, arguments["sample_weight"], chance)
    if loss in ("logistic", "poisson"):
        Y = _undetermined(Y, arguments["sample_weight"], rng)
    if chance("float32", 0.2):
        X = X.astype(np.float32)
    if chance("sparse", 0.3):
        X = (sp.csr_array if rng.random() < 0.5 else sp.csc_array)(X)
    weights = _weights(rng, d, chance)
    strength = go.lam_max(X, Y, weights, **arguments) or 1.0
    fraction = 10 ** rng.uniform(-2.0, 0.0)
    if chance("at lam_max", 0.02):
        fraction = 1.0
    elif chance("tiny penalty", 0.05):  # with a nearly exact fit the residual is then far below the targets
        fraction = 10 ** rng.uniform(-9.0, -2.0)
    return HardProblem({"X": X, "Y": Y, "lam": fraction * strength * weights, **arguments}, tuple(traits), own)


def _barely_active(rng, traits):
    """Two classes at even odds and orthogonal columns, one row just above its threshold: the radius is tight here."""
    n, d = int(rng.choice([4, 8, 16])), 3
    X = np.linalg.qr(rng.standard_normal((n, d)))[0]
    signal = X @ np.diag([1.0, 10 ** rng.uniform(-1.5, -0.3), 0.0]) @ np.ones(d)
    excess = 0.2 * signal / np.abs(signal).max()
    Y = 0.5 + np.column_stack([excess, -excess])
    second = np.linalg.norm(X.T @ (Y - 0.5), axis=1)[1]
    lam = np.full(d, second * (1 - 10 ** rng.uniform(-2, -0.5)))
    arguments = {"X": X, "Y": Y, "lam": lam, "loss": "multinomial", "fit_intercept": False, "sample_weight": None}
    return HardProblem(arguments, traits)


def _columns(rng, n, d, chance):
    X = rng.standard_normal((n, d))
    if chance("small integers", 0.2):
        X = rng.integers(-2, 3, size=(n, d)).astype(float)
    if d > 1 and chance("duplicated columns", 0.15):
        X[:, rng.integers(d, size=d // 2)] = X[:, rng.integers(d, size=d // 2)]
    if d > 1 and chance("near duplicates", 0.15):
        pick = rng.integers(d, size=d // 2)
        X[:, rng.integers(d, size=d // 2)] = X[:, pick] + 10 ** rng.uniform(-9, -2) * rng.standard_normal((n, d // 2))
    if chance("columns of very different size", 0.15):
        X *= 10.0 ** rng.uniform(-3, 3, size=d)
    if chance("zero columns", 0.1):
        X[:, rng.random(d) < 0.3] = 0.0
    if chance("columns far from zero", 0.1):
        X += 10 ** rng.uniform(0, 4) * rng.standard_normal(d)
    if chance("mostly zeros", 0.15):
        X *= rng.random((n, d)) < 0.4
    return X


def _targets(rng, X, q, loss, chance):
    n, d = X.shape
    B = rng.standard_normal((d, q)) * (rng.random((d, 1)) < min(1.0, 4.0 / d))
    Z = X @ B
    Z /= max(np.abs(Z).max(), 1e-12)
    if loss == "cox":
        size = 10 ** rng.uniform(1, 2) if chance("large predictors", 0.1) else 10 ** rng.uniform(-1, 0.7)
        return rng.exponential(size=(n, q)) * np.exp(-size * Z)
    if loss == "poisson":
        size = 10 ** rng.uniform(-1, 1)
        if chance("large counts", 0.1):
            size *= 1e3
        rates = size * np.exp(10 ** rng.uniform(-1, 0.3) * Z)
        return rates if chance("exact rates", 0.1) else rng.poisson(rates).astype(float)
    if loss == "logistic":
        size = 10 ** rng.uniform(1, 3) if chance("large predictors", 0.1) else 3.0
        P = expit(size * Z + rng.normal())
        return P if chance("soft targets", 0.3) else (rng.random(Z.shape) < P).astype(float)
    if loss in ("squared", "huber"):
        Y = (
            Z + 10 ** rng.uniform(-8, 0.5) * rng.standard_normal((n, q))
            if chance("nearly exact fit", 0.15)
            else (Z + rng.standard_normal((n, q)))
        )
        if loss == "huber" and chance("outliers", 0.5):
            Y = Y + 10 ** rng.uniform(0, 3) * rng.standard_normal((n, q)) * (rng.random((n, q)) < 0.2)
        if chance("integer targets", 0.1):
            Y = np.round(2 * Y)
        if chance("target offset", 0.15):
            Y = Y + 10 ** rng.uniform(0, 8 if loss == "squared" else 3)
        return Y * 10 ** rng.uniform(-2, 2 if loss == "squared" else 0.5)  # beyond, Huber's loss is hardly curved
    if chance("soft targets", 0.3):
        P = np.exp(10 ** rng.uniform(-2, 0.5) * (Z + 0.3 * rng.standard_normal(Z.shape)))
        return P / P.sum(axis=1, keepdims=True)
    size = 10 ** rng.uniform(1, 4) if chance("large predictors", 0.1) else 3.0
    return np.eye(q)[np.argmax(size * Z + rng.gumbel(size=Z.shape), axis=1)]


def _survival(rng, time, weight, chance):
    """The loss, targets for it, and what references have instead: events, times, strata and ties as they are."""
    n, q = time.shape
    if chance("ties", 0.5):
        ranks = np.argsort(np.argsort(time, axis=0), axis=0) + 1.0
        time = np.ceil(rng.integers(1, 6) * ranks / n)
    event = rng.random((n, q)) < rng.choice([0.2, 0.6, 1.0])
    counts = np.ones(n) if weight is None else weight
    event[int(np.argmax(counts))] = True
    strata = rng.integers(0, 3, size=n) if chance("strata", 0.3) else np.zeros(n, dtype=int)
    ties = "efron" if chance("Efron", 0.5) else "breslow"
    own = {"Y": event.astype(float), "loss": "cox", "survival": (time, strata, ties)}
    return CoxLoss(ties), go.survival_targets(event, time, strata), own


def _undetermined(Y, weight, rng):
    """Targets none of whose columns leaves nothing to fit, by the samples that count."""
    counts = np.ones(len(Y), dtype=bool) if weight is None else weight > 0
    constant = np.ptp(Y[counts], axis=0) == 0.0
    Y = Y.copy()
    Y[:, constant] = rng.uniform(0.1, 0.9, size=(len(Y), int(constant.sum())))
    return Y


def _weights(rng, d, chance):
    shape = rng.choice(["oscar", "linear", "constant", "bh", "plateaus", "zeros", "steps"])
    if shape == "oscar":
        return go.weights.oscar(d, ratio=10 ** rng.uniform(-2, 2))
    if shape in ("linear", "constant", "bh"):
        return getattr(go.weights, shape)(d)
    levels = np.sort(rng.random(d))[::-1] + 1e-3
    if shape == "plateaus":
        levels = np.round(4 * levels) / 4 + 0.25
    if shape == "zeros" and chance("zero weights", 1.0):
        levels[1 + rng.integers(d) :] = 0.0
    return levels / levels[0]
