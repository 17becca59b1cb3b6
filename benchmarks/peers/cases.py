"""The cases: generated problems, real data where a folder of them is given, and which of them a run takes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

import numpy as np
import scipy.sparse as sp

import groupowl as go

FRACTIONS = (0.5, 0.2, 0.05)
SIZES = ((200, 20_000, 5), (500, 10_000, 10), (2000, 500, 10), (100, 1000, 5))
SMALL_SIZES = ((50, 20, 3), (100, 500, 1), (100, 1000, 1), (100, 1000, 5))
SMALL_WEIGHTS = ("constant", "oscar", "bh")
CORRELATIONS = (0.5, 0.9)
PATH_LENGTH, PATH_EPS, SHORT_PATH_EPS = 100, 1e-2, 0.05

GROUPS = {
    "a": "multi-task regression, sorted weights",
    "b": "multi-task regression, constant weights",
    "c": "one task, sorted weights",
    "d": "multinomial",
    "e": "real data",
    "l": "one task: labels, counts and times until events",
    "m": "the same, small",
    "f": "paths of 100 alphas down to 0.01 lam_max",
    "g": "sparse designs, 1 % density",
    "s": "spectra: smooth curves, badly conditioned, relative gap 1e-9",
    "x": "first calls, import time and memory",
    "i": "small single fits",
    "j": "small fits by estimators, with intercept",
    "k": "paths of 100 alphas down to 0.05 lam_max",
    "v": "cross-validation, 100 alphas and 5 folds",
    "h": "one task, groups of neighboring columns",
}
SMALL = "ijkv"  # groups of --small
LOSSES = "lm"  # groups of --losses
COLUMN_GROUPS = "h"  # that of --groups


@dataclass(frozen=True)
class Source:
    """Where ``X`` and ``Y`` come from."""

    name: str
    loss: str = "squared"
    n: int = 0
    d: int = 0
    q: int = 0
    correlation: float = 0.5
    density: float | None = None
    group_size: int = 1

    @property
    def key(self) -> str:
        """Name of the data on disk and on screen."""
        if self.name not in ("ar", "spectra"):
            return self.name
        size = f"{self.n}x{self.d}x{self.q}"
        kind = "" if self.loss == "squared" else f"{self.loss} "
        detail = f"corr {self.correlation}" if self.density is None else "sparse"
        groups = f" groups of {self.group_size}" if self.group_size > 1 else ""
        return f"{kind}{size} {'spectra' if self.name == 'spectra' else detail}{groups}"


@dataclass(frozen=True)
class Problem:
    """One problem to solve: data, weights, and a fraction of lam_max or the whole path."""

    group: str
    source: Source
    weights: str
    fraction: float | None
    goal: float = 1e-6
    end: float = PATH_EPS  # of a path, as a fraction of lam_max

    @property
    def case(self) -> str:
        """The problem without its strength."""
        return f"{self.group}: {self.source.key} {self.weights}"

    @property
    def key(self) -> str:
        """Unique name."""
        return f"{self.case} @ {'path' if self.fraction is None else self.fraction}"

    @property
    def call(self) -> str:
        """Which call of a competitor answers it."""
        return {"j": "estimator", "v": "search"}.get(self.group, "solve")

    @property
    def one_task(self) -> bool:
        """Whether there is one response only."""
        return self.source.q == 1

    @property
    def sparse(self) -> bool:
        """Whether the design is sparse."""
        return self.source.density is not None or self.source.name in SPARSE_SETS


def profiled(problem: Problem) -> bool:
    """Whether to draw time against gap: one problem of each of (a) to (d)."""
    shown = {
        "a": ("200x20000x5 corr 0.5", "oscar"),
        "b": ("500x10000x10 corr 0.5", "constant"),
        "c": ("200x20000x1 corr 0.5", "bh"),
        "d": ("multinomial 500x10000x5 corr 0.5", "constant"),
    }
    mine = (problem.source.key, problem.weights)
    return problem.fraction in (0.1, 0.2) and shown.get(problem.group) == mine


def weight_sequence(name: str, d: int) -> np.ndarray:
    return getattr(go.weights, name)(d)


# Which problems ---------------------------------------------------------------------------------------


def problems(
    *, data: Path | None, quick: bool, thorough: bool, small: bool, losses: bool, groups: bool, against: bool
) -> list[Problem]:
    """Every problem of a run, singles before paths; a comparison with another source tree takes small ones as well."""
    if losses:
        return list(_other_losses(quick)) + list(_small_losses())
    if groups:
        return list(_column_groups(quick))
    if small:
        return list(_small(against))
    more = list(_small(against)) if against else []
    generate = _quick if quick else _full
    singles = list(generate()) + list(_other_losses(quick)) + list(_spectra(quick)) + list(_real(data, quick))
    return more + singles + [replace(one, group="f", fraction=None) for one in _path_starts(singles, quick, thorough)]


def _ar(n: int, d: int, q: int, correlation: float, **options) -> Source:
    return Source("ar", n=n, d=d, q=q, correlation=correlation, **options)


def _full() -> Iterator[Problem]:
    for (n, d, q), correlation, fraction in product(SIZES, CORRELATIONS, FRACTIONS):
        many, one = _ar(n, d, q, correlation), _ar(n, d, 1, correlation)
        yield from (Problem("a", many, weights, fraction) for weights in ("oscar", "bh", "linear"))
        yield Problem("b", many, "constant", fraction)
        yield from (Problem("c", one, weights, fraction) for weights in ("oscar", "bh"))
    classes = [_ar(500, 10_000, 5, 0.5, loss="multinomial"), _ar(5000, 500, 10, 0.5, loss="multinomial")]
    for source, weights, fraction in product(classes, ("oscar", "constant"), FRACTIONS):
        yield Problem("d", source, weights, fraction)
    sparse = [_ar(2000, 20_000, 5, 0.5, density=0.01), _ar(2000, 20_000, 5, 0.5, density=0.01, loss="multinomial")]
    for source, weights, fraction in product(sparse, ("oscar", "constant"), FRACTIONS):
        yield Problem("g", source, weights, fraction)
    for weights, fraction in product(("oscar", "bh", "constant"), FRACTIONS):
        yield Problem("g", _ar(2000, 20_000, 1, 0.5, density=0.01), weights, fraction)


def _quick() -> Iterator[Problem]:
    """One weight shape per group, one or two sizes, two strengths."""
    for fraction in (0.5, 0.1):
        yield Problem("a", _ar(200, 20_000, 5, 0.5), "oscar", fraction)
        yield Problem("a", _ar(100, 1000, 5, 0.9), "oscar", fraction)
        yield Problem("b", _ar(500, 10_000, 10, 0.5), "constant", fraction)
        yield Problem("b", _ar(100, 1000, 5, 0.9), "constant", fraction)
        yield Problem("c", _ar(200, 20_000, 1, 0.5), "bh", fraction)
        yield Problem("d", _ar(500, 10_000, 5, 0.5, loss="multinomial"), "constant", fraction)
        yield Problem("g", _ar(2000, 20_000, 5, 0.5, density=0.01), "constant", fraction)


def _small(against: bool) -> Iterator[Problem]:
    """Small problems; cross-validation, and paths that no peer can solve, only beside another source tree."""
    sources = [_ar(n, d, q, 0.5) for n, d, q in SMALL_SIZES]
    for source, weights, fraction in product(sources, SMALL_WEIGHTS, FRACTIONS):
        yield Problem("i", source, weights, fraction)
    for source, fraction in product(sources[:2], FRACTIONS):
        yield Problem("j", source, "constant", fraction)
    sources += [_ar(500, 10_000, 10, 0.5), _ar(2000, 500, 10, 0.5), _ar(300, 3000, 4, 0.5, loss="multinomial")]
    for source, weights in product(sources, SMALL_WEIGHTS):
        if against or weights == "constant" or source.q == 1:
            yield Problem("k", source, weights, None, end=SHORT_PATH_EPS)
    if against:
        for weights in ("constant", "oscar"):
            yield Problem("v", _ar(100, 500, 3, 0.5), weights, None)


def _other_losses(quick: bool) -> Iterator[Problem]:
    sizes = [(500, 10_000)] if quick else [(500, 10_000), (200, 20_000), (5000, 500)]
    for (n, d), fraction in product(sizes, (0.2,) if quick else FRACTIONS):
        yield from _of_each_loss("l", n, d, fraction)


def _small_losses() -> Iterator[Problem]:
    for (n, d), fraction in product([(100, 50), (100, 1000)], (0.5, 0.2)):
        yield from _of_each_loss("m", n, d, fraction)


def _column_groups(quick: bool) -> Iterator[Problem]:
    """Groups of equal size, so that a weight for each is the same in all packages."""
    sizes = [(500, 10_000)] if quick else [(200, 20_000), (500, 10_000), (2000, 500), (2000, 5000)]
    kinds = [*product(sizes, CORRELATIONS[:1])] + [((500, 10_000), one) for one in CORRELATIONS[1:] if not quick]
    for ((n, d), correlation), size, fraction in product(kinds, (5, 20), FRACTIONS):
        yield Problem("h", _ar(n, d, 1, correlation, group_size=size), "constant", fraction)


def _of_each_loss(group: str, n: int, d: int, fraction: float) -> Iterator[Problem]:
    """Constant weights, and sorted ones where a peer has the loss with them."""
    for loss, weights in product(("logistic", "poisson", "cox"), ("constant", "oscar")):
        if loss != "cox" or weights == "constant":
            yield Problem(group, _ar(n, d, 1, 0.5, loss=loss), weights, fraction)


def _spectra(quick: bool) -> Iterator[Problem]:
    for weights, fraction in product(("oscar",) if quick else ("constant", "oscar"), (0.01, 0.001)):
        yield Problem("s", Source("spectra", n=200, d=100, q=3), weights, fraction, goal=1e-9)


def _path_starts(singles: list[Problem], quick: bool, thorough: bool) -> list[Problem]:
    """One problem for each path: of (a) to (d), by default at correlation 0.5 only."""
    starts = {one.case: one for one in singles if one.group in "abcd"}.values()
    if quick:
        return [one for one in starts if one.group in "bc" and one.source.n <= 200]
    return [one for one in starts if thorough or one.source.correlation == CORRELATIONS[0]]


# Generated data ---------------------------------------------------------------------------------------


def load(source: Source, folder: Path | None) -> tuple[np.ndarray | sp.csr_matrix, np.ndarray]:
    """Centered (dense) data with columns of norm sqrt(n), and targets: centered responses or one-hot classes."""
    if source.name == "ar":
        X, Y = _correlated(source)
    elif source.name == "spectra":
        X, Y = _curves(source)
    else:
        assert folder is not None
        X, Y = _read(source.name, folder)
    return _standardize(X), Y if source.loss != "squared" else Y - Y.mean(axis=0)


def _correlated(source: Source):
    data = go.datasets.make_correlated_groups(
        source.n,
        source.d,
        source.q,
        n_informative=24,
        group_size=2,
        correlation=source.correlation,
        density=source.density,
        task="classification" if source.loss == "multinomial" else "regression",
        random_state=0,
    )
    targets = data.Y
    if source.loss == "logistic":
        targets = (targets > np.median(targets, axis=0)).astype(float)
    elif source.loss == "poisson":
        targets = np.random.default_rng(0).poisson(np.exp(targets / targets.std(axis=0))).astype(float)
    elif source.loss == "cox":
        rng = np.random.default_rng(0)
        times, ends = rng.exponential(np.exp(-targets / targets.std(axis=0))), rng.exponential(2.0, targets.shape)
        targets = np.where(times < ends, times, -ends)
    return data.X if source.density is None else sp.csr_matrix(data.X), targets


def _curves(source: Source):
    """Each sample mixes a few broad peaks; neighboring columns differ by little more than the noise of 1e-4."""
    rng = np.random.default_rng(0)
    grid = np.linspace(0.0, 1.0, source.d)
    centers, widths = rng.uniform(0, 1, 8), rng.uniform(0.08, 0.25, 8)
    peaks = np.exp(-0.5 * ((grid - centers[:, None]) / widths[:, None]) ** 2)
    amounts = rng.uniform(0.0, 1.0, (source.n, 8))
    X = amounts @ peaks + 1e-4 * rng.standard_normal((source.n, source.d))
    return X, amounts[:, : source.q] + 0.01 * rng.standard_normal((source.n, source.q))


def _standardize(X):
    n = X.shape[0]
    if sp.issparse(X):  # centering would make it dense
        norms = np.sqrt(np.asarray(X.multiply(X).sum(axis=0)).ravel())
        X = X[:, norms > 0]
        return sp.csr_matrix(X @ sp.diags(np.sqrt(n) / norms[norms > 0]))
    X = X - X.mean(axis=0)
    norms = np.linalg.norm(X, axis=0)
    return np.ascontiguousarray((X * (np.sqrt(n) / np.where(norms > 0, norms, 1.0)))[:, norms > 1e-10])


# Real data --------------------------------------------------------------------------------------------

REAL_SETS = {  # file: loss
    "plantgo": "squared",
    "eukaryotego": "squared",
    "indoorloc": "squared",
    "cmufaces": "multinomial",
    "reuters21578": "multinomial",
    "mnist": "multinomial",
}
SPARSE_SETS = ("plantgo", "eukaryotego", "reuters21578")


def _real(folder: Path | None, quick: bool) -> Iterator[Problem]:
    """Every real set that the folder has; the quick run takes two small ones."""
    if folder is None:
        return
    for name, loss in REAL_SETS.items():
        if not (folder / f"{name}.npz").exists() or (quick and name not in ("plantgo", "cmufaces")):
            continue
        for weights, fraction in product(("constant",) if quick else ("oscar", "constant"), FRACTIONS[: 3 - quick]):
            yield Problem("e", Source(name, loss=loss), weights, fraction)


def _read(name: str, folder: Path):
    with np.load(folder / f"{name}.npz") as file:
        if "data" in file:
            parts = (file["data"].astype(float), file["indices"].astype(np.int32), file["indptr"].astype(np.int32))
            X = sp.csr_matrix(parts, shape=tuple(file["shape"]))
        else:
            X = file["X"].astype(float)
        Y = file["Y"].astype(float) if "Y" in file else np.eye(int(file["y"].max()) + 1)[file["y"].astype(int)]
    if name == "indoorloc":
        X[X == 100] = -105.0  # "not heard" is coded as 100 dBm; just below the weakest signal is what it means
    return X, Y
