"""Random problems that are hard for safe screening; one seed, one problem."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import scipy.sparse as sp
from reference import Shape
from scipy.special import expit

import groupowl as go
from groupowl.inputs import penalty_options
from groupowl.losses import CoxLoss
from groupowl.norm import PLAIN
from groupowl.problem import LATER, build_problem

#: Arguments that change the penalty.
DEFAULTS = {"feature_groups": None, "group_scale": "size", "penalty_factor": None, "ridge": 0.0, "positive": False}
PENALTY = tuple(DEFAULTS)
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

    @property
    def dense(self):
        return (self.X.toarray() if sp.issparse(self.X) else self.X).astype(np.float64)

    @property
    def asked(self):
        """Arguments that change the penalty."""
        return {name: self.arguments[name] for name in PENALTY if name in self.arguments}

    def exact(self):
        """The same problem in double precision and dense, for references."""
        others = {name: value for name, value in self.arguments.items() if name not in PENALTY}
        shape = self.shape() if self.asked else None
        return {**others, "X": self.dense, "shape": shape, **self.own}

    def build(self):
        """The problem as `go.solve` makes it."""
        others = {name: value for name, value in self.arguments.items() if name not in PENALTY}
        asked = DEFAULTS | self.asked
        options = penalty_options(self.X.shape[1], None, **asked) if self.asked else PLAIN
        return build_problem(**others, options=options)

    @property
    def factor(self):
        factor = self.arguments.get("penalty_factor")
        return np.ones(self.X.shape[1]) if factor is None else factor

    @property
    def groups(self):
        groups = self.arguments.get("feature_groups")
        return np.arange(self.X.shape[1]) if groups is None else np.asarray(groups)

    @property
    def is_out(self):
        """Columns that are left out."""
        return np.isinf(self.factor)

    def shape(self):
        """What the penalty sees, from definitions."""
        X, factor, groups = self.dense, self.factor, self.groups
        labels = np.where(factor > 0, groups, -1)
        units = np.where(labels >= 0, np.unique(labels, return_inverse=True)[1] - (labels < 0).any(), -1)
        sizes, kind = np.bincount(groups)[groups], self.arguments.get("group_scale", "size")
        W = weights_of_entries(self.arguments)
        scale = factor.copy()
        if kind == "size":
            scale = scale * np.sqrt(sizes)
        if kind == "frobenius":
            squares = sum(w @ (X - w @ X / w.sum()) ** 2 for w in W.T) / W.sum()
            rounding = 1e-26 * (W.sum(axis=1) @ X**2) / W.sum()
            whole = np.sqrt(np.bincount(groups, np.where(squares > rounding, squares, 0.0))[groups])
            scale = np.where((sizes > 1) & (whole > 0), whole, 1.0) * factor
        metric = np.diag(np.where(np.isfinite(scale) & (scale > 0), scale, 0.0))
        if kind == "orthonormal":
            for unit in range(units.max() + 1):
                rows = np.flatnonzero(units == unit)
                if len(rows) > 1 and np.isfinite(factor[rows[0]]):
                    metric[np.ix_(rows, rows)] = factor[rows[0]] * self._triangle(X[:, rows], W[:, :1])
        signs = self.arguments.get("positive", False)
        signs = None if signs is False else signs
        return Shape(metric, units, self.arguments.get("ridge", 0.0), signs)

    def _triangle(self, X, w):
        """R of the columns, of mean zero where an intercept takes it up, and without what free columns explain."""
        root = np.sqrt(w / w.sum())
        is_centered = self.arguments["fit_intercept"] or "survival" in self.own
        free = np.hstack([np.ones((len(X), int(is_centered))), self.dense[:, self.factor == 0]])
        left = root * X
        if free.shape[1]:
            for _ in range(2):
                left = left - root * free @ np.linalg.lstsq(root * free, left, rcond=None)[0]
        R = np.zeros((X.shape[1], X.shape[1]))
        found = np.linalg.qr(left, mode="r")
        R[: len(found)] = found
        return R

    def unit_order(self, shape):
        """Numbers of the units of a shape in the order of the package: by first column, those that are free alone."""
        labels = np.where(shape.units >= 0, shape.units, -2 - np.arange(len(shape.units)))
        _, first = np.unique(labels, return_index=True)
        return [int(shape.units[j]) for j in np.sort(first)]


def draw(seed: int, *, plain: bool = False) -> HardProblem:
    """Problem number `seed`; a plain one has none of what else real tables have, which half of the others do."""
    rng, extra = np.random.default_rng([20261115, seed]), np.random.default_rng([20261118, seed])
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
    more = {}
    if d <= 40 and _chance(extra, 0.5) and not plain:
        Y, more = _more(extra, X, Y, loss, arguments, own, traits)
        arguments |= more
    groups = arguments.get("feature_groups")
    labels = np.arange(d) if groups is None else np.asarray(groups)
    factor = arguments.get("penalty_factor")
    penalized = np.ones(d, dtype=bool) if factor is None else factor > 0
    weights = _weights(rng, len(np.unique(labels[penalized])), chance)
    strength = go.lam_max(X, Y, weights, **arguments) or 1.0
    fraction = 10 ** rng.uniform(-2.0, 0.0)
    if chance("at lam_max", 0.02):
        fraction = 1.0
    elif chance("tiny penalty", 0.05):  # with a nearly exact fit the residual is then far below the targets
        fraction = 10 ** rng.uniform(-9.0, -2.0)
    return HardProblem({"X": X, "Y": Y, "lam": fraction * strength * weights, **arguments}, tuple(traits), own)


def _chance(rng, probability):
    return bool(rng.random() < probability)


def _more(rng, X, Y, loss, arguments, own, traits):
    """Targets with missing entries, and arguments for what else real tables have, each at random where it applies."""
    n, d = X.shape
    q, more = own["Y"].shape[1] if "Y" in own else Y.shape[1], {}
    weight = arguments["sample_weight"]
    if loss not in ("multinomial", "cox") and _chance(rng, 0.4):
        traits.append("missing targets")
        Y = _with_missing(rng, Y, weight, loss)
        if _chance(rng, 0.3):
            traits.append("entry weights")
            rows = np.ones(n) if weight is None else weight
            more["sample_weight"] = rows[:, None] * 10.0 ** rng.uniform(-1, 1, Y.shape)
            weight = more["sample_weight"]
    has_entries = "missing targets" in traits
    if d > 1 and _chance(rng, 0.4):
        traits.append("groups")
        more["feature_groups"] = rng.integers(0, max(d // 2, 1), d).tolist()
        kinds = ["size", "none", "frobenius"]
        more["group_scale"] = str(rng.choice(kinds if has_entries else [*kinds, "orthonormal"]))
        traits.append(more["group_scale"])
    if _chance(rng, 0.4):
        traits.append("offset")
        size = 10 ** rng.uniform(-2, 0.3 if loss == "poisson" else 1)
        more["offset"] = size * rng.standard_normal((n, q))
        if loss not in ("multinomial",) and _chance(rng, 0.3):
            more["offset"] = more["offset"][:, 0]
    if _chance(rng, 0.4):
        traits.append("ridge")
        squares = (X.toarray() if sp.issparse(X) else X).astype(float) ** 2
        more["ridge"] = float(10 ** rng.uniform(-5, 1) * (squares.sum(axis=0).max() or 1.0))
    if _chance(rng, 0.4):
        traits.append("factors")
        more["penalty_factor"] = _some_factors(rng, d, more, loss, n)
    if loss != "multinomial" and more.get("group_scale") != "orthonormal" and _chance(rng, 0.4):
        traits.append("signs")
        factor = more.get("penalty_factor", np.ones(d))
        is_all = _chance(rng, 0.4)
        more["positive"] = np.ones(d) if is_all else np.where(factor > 0, rng.choice([-1.0, 0.0, 1.0], d), 0.0)
        if not more["positive"].any():
            del more["positive"]
    return Y, _possible(X, Y, arguments, more)


def _possible(X, Y, arguments, more):
    """Without free columns that have no finite optimum, and orthonormal groups whose rank is a matter of opinion."""
    if more.get("group_scale") == "orthonormal":
        problem = HardProblem({"X": X, "Y": Y, **arguments, **more}, ())
        if not _has_clear_rank(problem):
            more["group_scale"] = "size"
    if np.any(more.get("penalty_factor", 1.0) == 0.0):
        try:
            is_finite = HardProblem({"X": X, "Y": Y, "lam": LATER, **arguments, **more}, ()).build()
            is_finite = is_finite.unpenalized.has_minimum
        except ValueError as error:
            if "no finite optimum" not in str(error):
                raise
            is_finite = False
        if not is_finite:
            more["penalty_factor"] = np.where(more["penalty_factor"] == 0.0, 1.0, more["penalty_factor"])
    return more


def _has_clear_rank(problem):
    X, groups, W = problem.dense, problem.groups, weights_of_entries(problem.arguments)
    for k in np.unique(groups):
        rows = np.flatnonzero(groups == k)
        R = problem._triangle(X[:, rows], W[:, :1])
        norms = np.linalg.norm(R, axis=0)
        sizes = np.sqrt(W[:, 0] @ X[:, rows] ** 2 / W[:, 0].sum())
        if np.any((norms < 1e-3 * sizes) & (sizes > 0)):
            return False
        singular = np.linalg.svd(R / np.where(norms > 0, norms, 1.0), compute_uv=False)
        ratios = singular / max(singular.max(), 1e-300)
        if np.any((ratios < 1e-2) & (ratios > 1e-13)):
            return False
    return True


def _with_missing(rng, Y, weight, loss):
    """Some targets missing, whole samples among them, but no whole task."""
    n, q = Y.shape
    missing = rng.random((n, q)) < rng.uniform(0.05, 0.6)
    if _chance(rng, 0.3):  # few patterns
        missing = missing[rng.integers(0, min(n, 2), n)]
    counts = np.flatnonzero(np.ones(n) if weight is None else weight > 0)
    missing[rng.choice(counts, q), np.arange(q)] = False
    Y = np.where(missing, np.nan, Y)
    if loss in ("logistic", "poisson"):
        for k in range(q):
            seen = counts[~missing[counts, k]]
            if np.ptp(Y[seen, k]) == 0.0:
                Y[~missing[:, k], k] = rng.uniform(0.1, 0.9, np.count_nonzero(~missing[:, k]))
    return Y


def _some_factors(rng, d, more, loss, n):
    groups = np.asarray(more.get("feature_groups", np.arange(d)))
    factor = 10.0 ** rng.uniform(-1, 1, d)
    if loss not in ("multinomial", "cox") and n >= 5 and _chance(rng, 0.4):
        chosen = groups == rng.choice(groups)
        if chosen.sum() <= 2:
            factor[chosen] = 0.0
    if _chance(rng, 0.3):
        factor[rng.integers(d)] = np.inf
    if more.get("group_scale") == "orthonormal":  # which has one for each group
        factor = factor[np.array([np.flatnonzero(groups == k)[0] for k in groups])]
    factor[np.isin(groups, groups[factor == 0.0])] = 0.0
    return factor if np.any((factor > 0) & np.isfinite(factor)) else np.ones(d)


def weights_of_entries(arguments):
    """Weights of all entries, zero for missing ones; of samples for losses that need whole ones."""
    Y, weight = np.asarray(arguments["Y"], dtype=float), arguments["sample_weight"]
    W = np.ones((len(Y), 1)) if weight is None else np.reshape(weight, (len(Y), -1))
    return W * ~np.isnan(Y) if np.isnan(Y).any() or W.shape[1] > 1 else W


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
