"""Random fits at the edges of what data may be; one seed, one fit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

WAYS = {
    "GroupOWLRegressor": 0.26,
    "GroupOWLClassifier": 0.24,
    "GroupOWLRegressorCV": 0.05,
    "GroupOWLClassifierCV": 0.05,
    "group_owl_path": 0.11,
    "solve": 0.09,
    "statistics": 0.14,
    "group_owl_path of statistics": 0.03,
    "solve of statistics": 0.03,
}


@dataclass(frozen=True)
class Case:
    """A fit: the way it is made, data as the user gives them, options, and the edges that were drawn.

    Statistics are those of ``parts``, triples (X, y, sample_weight) that are added, less those of ``removed``; ``X``,
    ``y`` and ``sample_weight`` are the samples that remain.
    """

    way: str
    X: Any
    y: Any
    sample_weight: Any
    options: dict[str, Any]
    traits: tuple[str, ...] = ()
    parts: tuple = ()
    removed: Any = None
    pick: float = 0.0  # which point of a path is judged

    @property
    def is_classification(self) -> bool:
        return "Classifier" in self.way or self.options.get("loss") == "multinomial"


class _Draws:
    """Random numbers that remember which edges they drew."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng([20261117, seed])
        self.traits: list[str] = []

    def chance(self, name: str, probability: float) -> bool:
        drawn = bool(self.rng.random() < probability)
        if drawn:
            self.traits.append(name)
        return drawn

    def power(self, low: float, high: float, size=None):
        return 10.0 ** self.rng.uniform(low, high, size=size)


def draw(seed: int) -> Case:
    """Fit number `seed`."""
    draws = _Draws(seed)
    rng = draws.rng
    way = str(rng.choice(list(WAYS), p=list(WAYS.values())))
    draws.traits.append(way)
    of_statistics = way.endswith("statistics")
    classes = "Classifier" in way or (way in ("group_owl_path", "solve") and rng.random() < 0.4)
    n = int(rng.choice([6, 10, 16, 30]) if way.endswith("CV") else rng.choice([1, 2, 3, 4, 6, 10, 16, 24, 40]))
    n = max(n, 2) if classes else n
    d = int(rng.choice([1, 2, 3, 4, 6, 9, 12]))
    X = _columns(draws, n, d)
    y = _labels(draws, X, least=3 if way.endswith("CV") else 1) if classes else _targets(draws, X)
    weight = _sample_weight(draws, n, y if classes else None)
    X, y = _storage(draws, X, y, classes)
    options = _options(draws, way, X, y, weight, classes)
    parts, removed = (), None
    if of_statistics:
        parts, removed = _parts(draws, X, y, weight)
    return Case(way, X, y, weight, options, tuple(draws.traits), parts, removed, float(rng.random()))


# Data --------------------------------------------------------------------------------------------------


def _columns(draws: _Draws, n: int, d: int):
    rng = draws.rng
    X = rng.standard_normal((n, d))
    if draws.chance("small integers", 0.15):
        X = rng.integers(-2, 3, size=(n, d)).astype(float)
    if draws.chance("correlated columns", 0.2):
        X = draws.power(-6, 0) * X + rng.standard_normal((n, 1))
    if draws.chance("sparse pattern", 0.15):
        X = X * (rng.random((n, d)) < 0.4)
    if d > 1 and draws.chance("duplicated columns", 0.15):
        X[:, -1] = X[:, 0] * rng.choice([1.0, -1.0])
    if draws.chance("column scales", 0.25):
        X = X * draws.power(-12, 12, size=d)
    elif draws.chance("common scale", 0.2):
        X = X * draws.power(-12, 12)
    if draws.chance("column shifts", 0.3):
        moved = rng.random(d) < rng.choice([0.5, 1.0])
        sizes = np.where(rng.random(d) < 0.3, 1e12, draws.power(0, 12, size=d))
        X = X + moved * sizes * rng.choice([-1.0, 1.0], size=d)
    if draws.chance("constant columns", 0.12):
        X[:, rng.integers(d)] = rng.choice([0.0, 1.0, -3.7e5, 1e12])
    if draws.chance("columns constant by rounding", 0.06):
        base = draws.power(-3, 6)
        j = rng.integers(d)
        X[:, j] = base * (1 + rng.integers(0, 3, size=n) * rng.choice([2.0**-52, 2.0**-50, 2.0**-46, 2.0**-42]))
    if draws.chance("extreme scale of X", 0.05):
        X = X * 10.0 ** rng.choice([-300, -170, -160, -150, -100, 100, 140, 150, 160])
    return X


def _signal(draws: _Draws, X, q: int):
    """Combinations of a few columns, whatever their scales and shifts."""
    rng = draws.rng
    with np.errstate(all="ignore"):
        spread = np.abs(X - X.mean(axis=0)).max(axis=0)
        columns = (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    chosen = rng.random((X.shape[1], 1)) < 0.5
    return np.nan_to_num(columns) @ (chosen * rng.standard_normal((X.shape[1], q)))


def _targets(draws: _Draws, X):
    rng = draws.rng
    q = int(rng.choice([1, 1, 1, 2, 3, 5, 8, 20]))
    if q == 20:
        draws.traits.append("20 tasks")
    Y = _signal(draws, X, q) + draws.power(-4, 0.5) * rng.standard_normal((len(X), q))
    if draws.chance("target scale", 0.2):
        Y = Y * draws.power(-12, 12)
    if draws.chance("target shifts", 0.25):
        Y = Y + rng.choice([1e12, 1e8, -1e10, 1.0]) * rng.standard_normal(q)
    if draws.chance("constant target", 0.03):
        Y[:, rng.integers(q)] = rng.choice([0.0, 5.5, 1e12])
    if draws.chance("extreme scale of y", 0.04):
        Y = Y * 10.0 ** rng.choice([-300, -170, -160, -150, -100, 100, 140, 150, 160])
    return Y[:, 0] if q == 1 and rng.random() < 0.7 else Y


def _labels(draws: _Draws, X, least: int):
    """Labels; the first classes occur so often at least: one class alone is refused, and so is one without folds."""
    rng = draws.rng
    n = len(X)
    K = int(min(rng.choice([2, 2, 2, 3, 4, 6, 20]), n if least == 1 else n // least))
    signal = _signal(draws, X, K)
    if not draws.chance("separable classes", 0.35):
        signal = signal + draws.power(-1, 1) * rng.standard_normal((n, K))
    labels = signal.argmax(axis=1)
    certain = np.repeat(np.arange(2 if least == 1 else K), least)
    labels[rng.permutation(n)[: len(certain)]] = certain
    return labels


def _sample_weight(draws: _Draws, n: int, labels):
    rng = draws.rng
    if not draws.chance("sample weights", 0.45):
        return None
    w = rng.integers(1, 4, size=n).astype(float) if rng.random() < 0.3 else rng.uniform(0.5, 2.0, size=n)
    if draws.chance("tiny and huge weights", 0.45):
        w = draws.power(-12, 12, size=n) if rng.random() < 0.4 else draws.power(-5, 3, size=n)
    if n > 2 and draws.chance("zero weights", 0.3):
        w[rng.random(n) < 0.3] = 0.0
    if draws.chance("common weight scale", 0.1):
        w = w * 10.0 ** rng.choice([-300, -160, -20, 20, 100, 150])
    there = np.flatnonzero(w > 0)
    if len(there) == 0 or (labels is not None and len(np.unique(labels[there])) < 2):
        w = np.where(w > 0, w, w.max() or 1.0)
    return w


def _storage(draws: _Draws, X, y, classes: bool):
    if draws.chance("float32", 0.15):
        with np.errstate(all="ignore"):
            single = X.astype(np.float32)
        if np.isfinite(single).all():
            X = single
            if not classes and draws.rng.random() < 0.5 and np.abs(y).max() < 1e37:
                y = y.astype(np.float32)
        else:
            draws.traits.remove("float32")
    if draws.chance("sparse", 0.2):
        X = (sp.csr_array if draws.rng.random() < 0.5 else sp.csc_array)(X)
    return X, y


# Options -----------------------------------------------------------------------------------------------


def _options(draws: _Draws, way: str, X, y, weight, classes: bool) -> dict[str, Any]:
    rng = draws.rng
    d = X.shape[1]
    # Few steps: a fit that stops early makes a claim as well.
    options: dict[str, Any] = {"fit_intercept": not draws.chance("no intercept", 0.25), "max_iter": 1000}
    free: list[int] = []
    if not way.startswith("solve"):
        options["standardize"] = draws.chance("standardize", 0.4)
        if not way.endswith("statistics") and d > 1 and draws.chance("unpenalized columns", 0.35):
            free = sorted(rng.choice(d, size=int(rng.integers(1, min(d, 4))), replace=False).tolist())
            options["unpenalized"] = free
    weights = _weights(draws, d - len(free))
    alpha = _alpha(draws, way, X, y, weight, options, weights, classes)
    if way.startswith("solve"):
        options["lam"] = alpha * weights
    elif way.startswith("group_owl_path") or way.endswith("CV"):
        options["alphas"] = 4 if isinstance(alpha, str) else [alpha, alpha / 3, alpha / 10]
        options["weights"] = weights
    else:
        options["alpha"], options["weights"] = alpha, weights
    if way.endswith("CV"):
        options["cv"] = 2 if rng.random() < 0.5 else 3
    if classes and way in ("group_owl_path", "solve"):
        options["loss"] = "multinomial"
    if draws.chance("tight tolerance", 0.15):
        options["tol"] = draws.power(-14, -9)
    elif draws.chance("loose tolerance", 0.1):
        options["tol"] = draws.power(-5, -1)
    if draws.chance("other solver", 0.12):
        options["solver"] = str(rng.choice(["apgd", "spgd"]))
        options["max_iter"] = 300 if options["solver"] == "apgd" else 20
        options["random_state"] = 0
    if draws.chance("other screening", 0.12):
        options["screening"] = str(rng.choice(["paper", "none"]))
    if "Classifier" in way and draws.chance("class weights", 0.15):  # powers of two: their products are exact
        options["class_weight"] = {label: 2.0 ** int(rng.integers(-20, 21)) for label in np.unique(y).tolist()}
    return options


def _weights(draws: _Draws, count: int):
    rng = draws.rng
    kind = rng.choice(["constant", "linear", "oscar", "random", "zero tail"], p=[0.2, 0.2, 0.3, 0.2, 0.1])
    if kind == "constant":
        return np.ones(count)
    if kind == "linear":
        return np.arange(count, 0, -1.0) / count
    if kind == "oscar":
        return (1 + np.arange(count, 0, -1.0) / count) / (1 + 1.0)
    sequence = np.sort(rng.uniform(0.05, 1.0, size=count))[::-1]
    if kind == "zero tail":
        draws.traits.append("zero weights at the end")
        sequence[1 + count // 2 :] = 0.0
    return sequence


def _alpha(draws: _Draws, way: str, X, y, weight, options, weights, classes: bool):
    """A share of the smallest alpha that selects nothing, roughly; the package's own default at times."""
    rng = draws.rng
    if not way.startswith("solve") and rng.random() < 0.3:
        return "auto"
    if rng.random() < 0.08:
        return 1.0
    largest = _largest_alpha(X, y, weight, options, weights, classes, sums=way.startswith("solve"))
    share = draws.power(-3, -0.02)
    if draws.chance("alpha that selects nothing", 0.06):
        share = 1.01
    elif draws.chance("tiny alpha", 0.05):
        share = draws.power(-9, -3)
    alpha = float(share * largest)
    return alpha if 1e-300 < alpha < 1e300 else 1.0


def _largest_alpha(X, y, weight, options, weights, classes: bool, sums: bool) -> float:
    X = (X.toarray() if sp.issparse(X) else X).astype(np.longdouble)
    Y = np.eye(int(y.max()) + 1)[y] if classes else y.reshape(len(y), -1).astype(np.longdouble)
    w = np.ones(len(X), dtype=np.longdouble) if weight is None else weight.astype(np.longdouble)
    total = w.sum()
    mean = w @ X / total
    spread = np.sqrt(w @ (X - mean) ** 2 / total)
    if options["fit_intercept"]:
        X, Y = X - mean, Y - w @ Y / total
    elif classes:
        Y = Y - 1.0 / Y.shape[1]
    if options.get("standardize"):
        X = X / np.where(spread > 0, spread, 1)
    X = np.delete(X, options.get("unpenalized", []), axis=1)
    norms = np.sort(np.sqrt(np.sum((X.T @ (w[:, None] * Y)) ** 2, axis=1)))[::-1]
    return float(np.max(np.cumsum(norms) / np.cumsum(weights)) / (1 if sums else total))


# Statistics --------------------------------------------------------------------------------------------


def _parts(draws: _Draws, X, y, weight):
    """The samples in parts that are added, and samples that were there and are taken off again."""
    rng = draws.rng
    n = X.shape[0]
    w = np.ones(n) if weight is None else weight
    X = X.tocsr() if sp.issparse(X) else X
    parts = [(X, y, weight)]
    there = np.flatnonzero(w > 0)
    if len(there) > 1 and draws.chance("statistics added", 0.5):
        cut = int(rng.integers(1, len(there)))
        parts = [(X[rows], y[rows], None if weight is None else w[rows]) for rows in (there[:cut], there[cut:])]
    if not draws.chance("statistics subtracted", 0.6):
        return tuple(parts), None
    m = int(rng.integers(1, 8))
    dense = X.toarray() if sp.issparse(X) else X
    taken = dense[rng.integers(n, size=m)] * (1 + 0.3 * rng.standard_normal((m, dense.shape[1])))
    targets = np.asarray(y)[rng.integers(n, size=m)] * (1 + 0.3 * rng.standard_normal((m, *np.shape(y)[1:])))
    if draws.chance("large samples subtracted", 0.5):
        larger = rng.random(taken.shape[1]) < rng.choice([0.3, 1.0])
        larger[rng.integers(taken.shape[1])] = True
        taken[:, larger] *= rng.choice([draws.power(2, 9), 1e8])
    if draws.chance("large targets subtracted", 0.15):
        targets = targets * draws.power(2, 9)
    taken = (sp.csr_array(taken) if sp.issparse(X) else taken).astype(dense.dtype)
    taken_weight = None if weight is None else rng.choice(w[there], size=m)
    return tuple(parts), (taken, targets.astype(np.asarray(y).dtype), taken_weight)


# Fits that once carried a false proof --------------------------------------------------------------------


def known_cases() -> dict[str, Case]:
    """The false proofs that were found by hand, each as it was found."""
    rng = np.random.default_rng(7)
    X = rng.standard_normal((5, 2))
    y = X[:, 0] + 0.3 * rng.standard_normal(5)
    part = rng.standard_normal((3, 2)) * 1e8
    part_y = rng.standard_normal(3)
    offset = sp.csr_array(X + np.array([1e8, 0.0]))
    wide = rng.standard_normal((30, 4))
    signal = wide[:, 0] + 0.1 * rng.standard_normal(30)
    statistics: dict[str, Any] = {"alpha": 0.1, "standardize": True}
    separated = Case(
        "GroupOWLClassifier",
        np.array([[0.2, 0.9], [-0.7, 0.2], [0.1, 1.4], [0.1, 0.1]]),
        np.array([1, 1, 1, 0]),
        np.array([1e-3, 0.1, 1e-5, 1e3]),
        {"alpha": 1.0, "unpenalized": [0]},
    )
    return {
        "null model with unpenalized columns": separated,
        "statistics subtracted": Case(
            "statistics", X, y, None, statistics, parts=((X, y, None),), removed=(part, part_y, None)
        ),
        "statistics of sparse data with an offset": Case(
            "statistics", offset, y, None, statistics, parts=((offset, y, None),)
        ),
        "underflow of X": Case("GroupOWLRegressor", wide * 1e-170, signal, None, {"alpha": 0.1, "standardize": True}),
        "underflow of y": Case(
            "GroupOWLRegressor", wide, signal * 1e-170, None, {"alpha": 1e-171, "standardize": True}
        ),
        "target constant by rounding": Case(
            "GroupOWLRegressor", wide, 1e3 * (1 + rng.integers(0, 3, 30) * 2.0**-52), None, {"alpha": 1e-14}
        ),
        "target of statistics constant by rounding": Case(
            "statistics",
            wide,
            steps := 1e3 * (1 + (wide[:, 0] > 0) * 2.0**-52),
            None,
            {"alpha": 1e-14},
            parts=((wide, steps, None),),
        ),
        "rounded intercept": Case("GroupOWLRegressor", wide + 1e12, signal, None, {"alpha": 0.1}),
        "rounded unpenalized coefficients": Case(
            "GroupOWLRegressor", wide + 1e12, signal, None, {"alpha": 0.1, "unpenalized": [0]}
        ),
        "rounded to float32": Case(
            "GroupOWLRegressor", wide.astype(np.float32), (signal + 1e8).astype(np.float64), None, {"alpha": 0.1}
        ),
        "constant by rounding": Case(
            "GroupOWLRegressor",
            np.column_stack([1e3 * (1 + rng.integers(0, 3, 30) * 2.0**-50), wide]),
            signal,
            None,
            {"alpha": 1e-3, "standardize": True},
        ),
    }
