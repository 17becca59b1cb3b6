"""The cases: generated problems, real data where a folder of them is given, and which of them a run takes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

import numpy as np
import scipy.sparse as sp

import groupowl as go

from .adapters import Kind

FRACTIONS = (0.5, 0.2, 0.05)
SIZES = ((200, 20_000, 5), (500, 10_000, 10), (2000, 500, 10), (100, 1000, 5))
SMALL_SIZES = ((50, 20, 3), (100, 500, 1), (100, 1000, 1), (100, 1000, 5))
SMALL_WEIGHTS = ("constant", "oscar", "bh")
CORRELATIONS = (0.5, 0.9)
PATH_LENGTH, PATH_EPS, SHORT_PATH_EPS = 100, 1e-2, 0.05
LARGE = 1_000_000  # entries of X
# The paper on libslope (arXiv 2511.02430): size, density and strengths; correlation 0.6, 20 signals.
SLOPE_SETTINGS = ((200, 20_000, None), (200, 200_000, 0.001), (200_000, 200, None))
SLOPE_FRACTIONS = (0.5, 0.1, 0.02)
# How cost grows: one of these changes at a time.
GROWTH_BASE, GROWTH_FRACTION = (500, 5000, 5), 0.2
GROWTH = {
    "n": (250, 500, 1000, 2000, 4000),
    "d": (1250, 2500, 5000, 10_000, 20_000),
    "q": (2, 5, 10, 20, 40),
}
GROWTH_FRACTIONS, GROWTH_LENGTHS = (0.5, 0.3, 0.2, 0.1, 0.05, 0.03), (10, 20, 50, 100)

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
    "n": "settings of the libslope paper",
    "p": "multi-task settings of skglm and celer, and inverse problems of M/EEG",
    "t": "growth of cost, one size at a time",
}
#: What a run can be asked for by name: groups that belong together.
PARTS = {
    "small": "ijkv",
    "losses": "lm",
    "groups": "h",
    "slope": "n",
    "multitask": "p",
    "growth": "t",
    "large": "abcdgs",
    "paths": "f",
    "real": "e",
    "calls": "x",
}


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
    n_signals: int = 24  # in pairs of neighbors, if there are 24

    @property
    def key(self) -> str:
        """Name of the data on disk and on screen."""
        if self.name in REAL_SETS:
            return self.name
        size = f"{self.n}x{self.d}x{self.q}"
        kind = "" if self.loss == "squared" else f"{self.loss} "
        detail = f"corr {self.correlation}" if self.density is None else "sparse"
        groups = f" groups of {self.group_size}" if self.group_size > 1 else ""
        return f"{kind}{size} {detail if self.name == 'ar' else self.name}{groups}"


@dataclass(frozen=True)
class Problem:
    """One problem to solve: data, weights, and a fraction of lam_max or the whole path."""

    group: str
    source: Source
    weights: str
    fraction: float | None
    goal: float = 1e-6
    end: float = PATH_EPS  # of a path, as a fraction of lam_max
    length: int = PATH_LENGTH

    @property
    def case(self) -> str:
        """The problem without its strength."""
        return f"{self.group}: {self.source.key} {self.weights}"

    @property
    def key(self) -> str:
        """Unique name."""
        path = "path" if self.length == PATH_LENGTH else f"path of {self.length}"
        return f"{self.case} @ {path if self.fraction is None else self.fraction}"

    @property
    def call(self) -> str:
        """Which call of a competitor answers it."""
        return {"j": "estimator", "v": "search"}.get(self.group, "solve")

    @property
    def kind(self) -> Kind:
        """What decides whether a competitor can take part."""
        source, is_sorted = self.source, self.weights != "constant"
        is_path, grouped = self.fraction is None, source.group_size > 1
        return Kind(source.loss, is_sorted, source.q == 1, self.sparse, is_path, self.call, grouped)

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


def problems(*, data: Path | None, quick: bool, thorough: bool, against: bool) -> list[Problem]:
    """Every problem of a run, small ones first and paths last; real data as far as the folder has them."""
    there = [name for name in REAL_SETS if data is not None and (data / f"{name}.npz").exists()]
    singles = list(_quick() if quick else _full()) + list(_spectra(quick)) + list(_real(there, quick))
    paths = [replace(one, group="f", fraction=None) for one in _path_starts(singles, quick, thorough)]
    others = [*_small(quick, against), *_other_losses(quick), *_small_losses(quick), *_column_groups(quick)]
    if not against:
        others += [*_slope(quick), *_published(quick), *(() if quick else _growth())]
    return others + singles + paths


def everything(quick: bool) -> list[Problem]:
    """All problems that the page is about, with those of real data that nobody may have here."""
    generated = problems(data=None, quick=quick, thorough=False, against=False)
    return [*generated, *_real(list(REAL_SETS), quick)]


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


def _small(quick: bool, against: bool) -> Iterator[Problem]:
    """Small problems; cross-validation, and paths that no peer can solve, only beside another source tree."""
    sources = [_ar(n, d, q, 0.5) for n, d, q in (SMALL_SIZES[1:2] if quick else SMALL_SIZES)]
    for source, weights, fraction in product(sources, SMALL_WEIGHTS, FRACTIONS[1:2] if quick else FRACTIONS):
        yield Problem("i", source, weights, fraction)
    for source, fraction in product(sources[:2], FRACTIONS[1:2] if quick else FRACTIONS):
        yield Problem("j", source, "constant", fraction)
    if not quick:
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


def _small_losses(quick: bool) -> Iterator[Problem]:
    for (n, d), fraction in product([(100, 50)] if quick else [(100, 50), (100, 1000)], (0.5, 0.2)[quick:]):
        yield from _of_each_loss("m", n, d, fraction)


def _column_groups(quick: bool) -> Iterator[Problem]:
    """Groups of equal size, so that a weight for each is the same in all packages."""
    sizes = [(500, 10_000)] if quick else [(200, 20_000), (500, 10_000), (2000, 500), (2000, 5000)]
    kinds = [*product(sizes, CORRELATIONS[:1])] + [((500, 10_000), one) for one in CORRELATIONS[1:] if not quick]
    for ((n, d), correlation), size, fraction in product(kinds, (5, 20)[quick:], FRACTIONS[: 3 - 2 * quick]):
        yield Problem("h", _ar(n, d, 1, correlation, group_size=size), "constant", fraction)


def _slope(quick: bool) -> Iterator[Problem]:
    """Single fits and paths of the paper on libslope, with its weights."""
    for n, d, density in SLOPE_SETTINGS[:1] if quick else SLOPE_SETTINGS:
        source = _ar(n, d, 1, 0.6, density=density, n_signals=20)
        for fraction in SLOPE_FRACTIONS[1:2] if quick else SLOPE_FRACTIONS:
            yield Problem("n", source, "bh", fraction)
        if not quick:
            yield Problem("n", source, "bh", None, end=SLOPE_FRACTIONS[-1])


def _published(quick: bool) -> Iterator[Problem]:
    """Sizes and correlations that skglm's and celer's authors compare multi-task lassos at, and M/EEG."""
    inverse = [Source("meeg", n=300, d=7500, q=100), Source("meeg", n=360, d=22_494, q=20)]
    simulated = [_ar(1000, 1000, 10, 0.6, n_signals=20), _ar(1000, 3000, 80, 0.3, n_signals=2)]
    for source, fraction in product(inverse[:1] if quick else inverse + simulated, FRACTIONS[: 3 - 2 * quick]):
        yield Problem("p", source, "constant", fraction)


def _growth() -> Iterator[Problem]:
    """One of the sizes, the strength or the number of alphas changes at a time."""
    sizes = dict.fromkeys([GROWTH_BASE])
    for place, values in enumerate(GROWTH.values()):
        sizes |= dict.fromkeys((*GROWTH_BASE[:place], value, *GROWTH_BASE[place + 1 :]) for value in values)
    for size in sizes:
        yield Problem("t", _ar(*size, 0.5), "constant", GROWTH_FRACTION)
    base = _ar(*GROWTH_BASE, 0.5)
    for fraction in GROWTH_FRACTIONS:
        if fraction != GROWTH_FRACTION:
            yield Problem("t", base, "constant", fraction)
    for length in GROWTH_LENGTHS:
        yield Problem("t", base, "constant", None, end=SHORT_PATH_EPS, length=length)


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
    elif source.name == "meeg":
        X, Y = _dipoles(source)
    else:
        assert folder is not None
        X, Y = _read(source.name, folder)
    return _standardize(X), Y if source.loss != "squared" else Y - Y.mean(axis=0)


def _correlated(source: Source):
    data = go.datasets.make_correlated_groups(
        source.n,
        source.d,
        source.q,
        n_informative=source.n_signals,
        group_size=2 if source.n_signals == 24 else 1,
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


def _dipoles(source: Source):
    """Fields of many dipoles on a half sphere at few sensors around it; neighbors look nearly the same."""
    rng = np.random.default_rng(0)
    sensors, sources = (_half_sphere(rng, count, radius) for count, radius in ((source.n, 1.0), (source.d, 0.8)))
    moments = rng.standard_normal((source.d, 3))
    moments /= np.linalg.norm(moments, axis=1)[:, None]
    distances = np.sqrt(np.maximum(1.64 - 2.0 * sensors @ sources.T, 1e-12))
    X = (sensors @ moments.T - np.sum(sources * moments, axis=1)) / distances**3
    times, active = np.linspace(0.0, 1.0, source.q), rng.choice(source.d, 5, replace=False)
    peaks, rates = rng.uniform(0.2, 0.8, (5, 1)), rng.uniform(5.0, 15.0, (5, 1))
    courses = np.exp(-(((times - peaks) / 0.1) ** 2)) * np.sin(2.0 * np.pi * rates * (times - peaks) + 1.0)
    signal = (X[:, active] / np.linalg.norm(X[:, active], axis=0)) @ courses
    return X, signal + signal.std() / 2.0 * rng.standard_normal(signal.shape)


def _half_sphere(rng: np.random.Generator, count: int, radius: float) -> np.ndarray:
    points = rng.standard_normal((count, 3))
    points[:, 2] = np.abs(points[:, 2])
    return radius * points / np.linalg.norm(points, axis=1)[:, None]


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

REAL_SETS = {  # file: loss; those of the paper, or what stands in for them
    "plantgo": "squared",
    "eukaryotego": "squared",
    "indoorloc": "squared",
    "bibtex": "squared",  # for Bookmarks
    "cmufaces": "multinomial",  # for DrivFace
    "protein_val": "multinomial",  # a part of it
    "reuters21578": "multinomial",
    "mnist": "multinomial",
}
SPARSE_SETS = ("plantgo", "eukaryotego", "reuters21578", "bibtex")


def _real(names: list[str], quick: bool) -> Iterator[Problem]:
    """Fits of these real sets; the quick run takes two small ones."""
    for name in names:
        if quick and name not in ("plantgo", "cmufaces"):
            continue
        for weights, fraction in product(("constant",) if quick else ("oscar", "constant"), FRACTIONS[: 3 - quick]):
            yield Problem("e", Source(name, loss=REAL_SETS[name]), weights, fraction)


def _read(name: str, folder: Path):
    with np.load(folder / f"{name}.npz") as file:
        if "data" in file:
            parts = (file["data"].astype(float), file["indices"].astype(np.int32), file["indptr"].astype(np.int32))
            X = sp.csr_matrix(parts, shape=tuple(file["shape"]))
            X = X if name in SPARSE_SETS else X.toarray()
        else:
            X = file["X"].astype(float)
        Y = file["Y"].astype(float) if "Y" in file else np.eye(int(file["y"].max()) + 1)[file["y"].astype(int)]
    if name == "indoorloc":
        X[X == 100] = -105.0  # "not heard" is coded as 100 dBm; just below the weakest signal is what it means
    return X, Y[:, :20] if name == "bibtex" else Y  # as many labels as the paper takes of Bookmarks
