"""The procedures of the study, ours and those of others, each a function of data that returns a mask of features."""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import groupowl as go

from . import shared
from .cells import FDR, N_SAMPLES, Cell, Data, first_quantile

#: Expected number of false selections that stability selection is asked for.
MAX_FALSE = 2.0
N_PAIRS = 50
N_REPEATS = 10


@dataclass(frozen=True)
class Procedure:
    """A procedure, and what it promises.

    Attributes
    ----------
    name : str
        In tables.
    select : callable
        ``select(data)`` returns a mask of features.
    promise : str
        "rate" for a false discovery rate of at most ``FDR``, "count" for at most ``MAX_FALSE`` false selections on
        average, "" for neither.
    is_heavy : bool
        Whether one run takes many fits: fewer runs have to do, and a few where nothing is promised.
    applies : callable
        Whether a cell is one that it can be run on.
    holds : callable
        Whether a cell is one that its promise is made for.
    exists : callable
        Whether the code is there.
    is_slow : bool
        Whether one run takes half a minute.
    is_peer : bool
        Whether it is of another package, or what one would do without this one.
    """

    name: str
    select: Callable[[Data], Any]
    promise: str = "rate"
    is_heavy: bool = False
    applies: Callable[[Cell], bool] = lambda cell: cell.loss == "squared"
    holds: Callable[[Cell], bool] = lambda cell: True
    exists: Callable[[], bool] = lambda: True
    is_slow: bool = False
    is_peer: bool = False

    def judges(self, cell: Cell) -> bool:
        """Whether it promises something for a cell."""
        return bool(self.promise) and self.holds(cell)


def _has(name: str) -> Callable[[], bool]:
    """Whether this version of the package has a name in ``inference``."""
    return lambda: hasattr(go.inference, name)


def _has_package(name: str) -> Callable[[], bool]:
    return lambda: importlib.util.find_spec(name) is not None


def _estimator(data: Data) -> Any:
    """A group lasso for the targets, on columns as they are."""
    kind = go.GroupOWLClassifier if data.cell.loss == "multinomial" else go.GroupOWLRegressor
    other = {"loss": data.cell.loss} if data.cell.loss == "poisson" else {}
    return kind(weights="constant", standardize=True, **other)


# Knockoffs ------------------------------------------------------------------------------------------------


def _knockoffs(data: Data, y: Any = None, **params: Any) -> Any:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=UserWarning)  # that nothing can be selected
        selector = go.inference.KnockoffSelector(fdr=FDR, estimator=_estimator(data), random_state=data.seed, **params)
        return selector.fit(data.X, data.Y if y is None else y).support_


def knockoffs_known(data: Data) -> Any:
    return _knockoffs(data, sampler=shared.known_law(data))


def knockoffs_estimated(data: Data) -> Any:
    return _knockoffs(data, sampler=shared.estimated_law(data))


def knockoffs_fixed(data: Data) -> Any:
    return _knockoffs(data, sampler="fixed")


def knockoffs_derandomized(data: Data) -> Any:
    return _knockoffs(data, sampler=shared.known_law(data), n_repeats=N_REPEATS)


def knockoffs_per_task(data: Data) -> Any:
    """One task at a time, and all that any of them selects: what one does with software for one target."""
    masks = [_knockoffs(data, y, sampler=shared.known_law(data)) for y in data.Y.T]
    return np.any(masks, axis=0)


# Stability selection --------------------------------------------------------------------------------------


def _stability(data: Data, **params: Any) -> Any:
    selector = go.inference.StabilitySelector(
        MAX_FALSE, estimator=_estimator(data), n_pairs=N_PAIRS, random_state=data.seed, **params
    )
    with shared.paths(data):
        return selector.fit(data.X, data.Y).support_


def stability_pairs(data: Data) -> Any:
    return _stability(data)


def stability_worst_case(data: Data) -> Any:
    return _stability(data, bound="worst-case")


def stability_integrated(data: Data) -> Any:
    return _stability(data, method="integrated")


# One fit --------------------------------------------------------------------------------------------------


def chi_weights(data: Data) -> Any:
    """Chi quantiles, with the deviation of the noise, 1, known; the tasks are not whitened."""
    d, q = data.cell.d, data.cell.q
    X = data.X - data.X.mean(axis=0)
    X /= np.linalg.norm(X, axis=0)
    lam = first_quantile(d, q) * go.weights.chi(d, q, fdr=FDR)
    result = go.solve(X, data.Y - data.Y.mean(axis=0), lam)
    return result.B.any(axis=1)


def slope(data: Data) -> Any:
    """Weights ``chi_gauss`` with noise that is estimated, and whitened tasks."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=UserWarning)  # of correlated columns
        return go.inference.SlopeSelector(fdr=FDR).fit(data.X, data.Y).support_


def cross_validated(data: Data) -> Any:
    kind = go.GroupOWLClassifierCV if data.cell.loss == "multinomial" else go.GroupOWLRegressorCV
    other = {"loss": data.cell.loss} if data.cell.loss == "poisson" else {}
    model = kind(weights="constant", standardize=True, alphas=50, eps=1e-2, cv=5, **other).fit(data.X, data.Y)
    return np.atleast_2d(model.coef_).any(axis=0)


# Tests ----------------------------------------------------------------------------------------------------


def desparsified_tests(data: Data) -> Any:
    with shared.nodewise_fits():
        return go.inference.desparsified(data.X, data.Y, fdr=FDR).selected


def hotelling_tests(data: Data) -> Any:
    return go.inference.hotelling_tests(data.X, data.Y, fdr=FDR).selected


# Other packages, one task at a time: they know one target ------------------------------------------------------


def _union(data: Data, select: Callable[[Any], Any]) -> Any:
    mask = np.zeros(data.cell.d, dtype=bool)
    for y in data.Y.T:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            mask[np.asarray(select(y), dtype=np.intp)] = True
    return mask


def hidimstat_knockoffs(data: Data) -> Any:
    from hidimstat import ModelXKnockoff

    def select(y: Any) -> Any:
        found = ModelXKnockoff(random_state=data.seed)
        found.fit_importance(data.X, y)
        return np.flatnonzero(found.fdr_selection(fdr=FDR))

    return _union(data, select)


def knockpy_knockoffs(data: Data) -> Any:
    from knockpy.knockoff_filter import KnockoffFilter

    def select(y: Any) -> Any:
        np.random.seed(data.seed)  # noqa: NPY002  (it draws from there)
        found = KnockoffFilter(ksampler="gaussian", fstat="lasso", knockoff_kwargs={"method": "mvr"})
        rejections = found.forward(X=data.X, y=y, fdr=FDR, Sigma=data.cell.covariance(), mu=np.zeros(data.cell.d))
        return np.flatnonzero(rejections)

    return _union(data, select)


def ipss_selection(data: Data) -> Any:
    from ipss import ipss

    def select(y: Any) -> Any:
        np.random.seed(data.seed)  # noqa: NPY002
        found = ipss(data.X, y, selector="l1", target_fp=MAX_FALSE / data.cell.q)
        return found["selected_features"]

    return _union(data, select)


def _is_linear(cell: Cell) -> bool:
    return cell.loss == "squared"


def _has_law(cell: Cell) -> bool:
    """Whether columns are draws of a normal law, and not made orthogonal."""
    return cell.design != "orthogonal"


def _several_tasks(cell: Cell) -> bool:
    return _is_linear(cell) and _has_law(cell) and cell.q > 1


# The longest path of halves comes after those that are parts of it: the study runs the list from its end.
PROCEDURES = [
    Procedure("knockoffs, law known", knockoffs_known, applies=_has_law, exists=_has("KnockoffSelector")),
    Procedure("knockoffs, law estimated", knockoffs_estimated, applies=_has_law, exists=_has("KnockoffSelector")),
    Procedure(
        "knockoffs, fixed X",
        knockoffs_fixed,
        applies=lambda cell: _is_linear(cell) and 2 * cell.d < N_SAMPLES,
        exists=_has("KnockoffSelector"),
    ),
    Procedure(
        "knockoffs, derandomized",
        knockoffs_derandomized,
        is_heavy=True,
        applies=lambda cell: _is_linear(cell) and _has_law(cell),
        exists=_has("KnockoffSelector"),
    ),
    Procedure("stability, worst case", stability_worst_case, "count", is_heavy=True),
    Procedure("stability, r-concave", stability_pairs, "count", is_heavy=True, applies=lambda cell: True),
    Procedure(
        "stability, integrated",
        stability_integrated,
        "count",
        is_heavy=True,
        holds=lambda cell: cell.has_independent_columns and cell.noise == "independent",
    ),
    Procedure(
        "chi_gauss, whitened",
        slope,
        holds=lambda cell: cell.has_independent_columns and cell.signal == "random",
        exists=_has("SlopeSelector"),
    ),
    Procedure(
        "chi, noise known",
        chi_weights,
        holds=lambda cell: cell.design == "orthogonal" and cell.noise == "independent",
    ),
    Procedure("desparsified tests", desparsified_tests, is_heavy=True, exists=_has("desparsified")),
    Procedure(
        "Hotelling tests",
        hotelling_tests,
        applies=lambda cell: _is_linear(cell) and cell.d + cell.q < N_SAMPLES,
        exists=_has("hotelling_tests"),
    ),
    Procedure("cross-validated alpha", cross_validated, "", is_heavy=True),
    Procedure(
        "knockoffs per task, union",
        knockoffs_per_task,
        "",
        is_heavy=True,
        applies=_several_tasks,
        exists=_has("KnockoffSelector"),
        is_peer=True,
    ),
    Procedure(
        "hidimstat, one task",
        hidimstat_knockoffs,
        "",
        is_heavy=True,
        is_slow=True,
        applies=lambda cell: _is_linear(cell) and _has_law(cell) and cell.d == 200 and cell.q == 1,
        exists=_has_package("hidimstat"),
        is_peer=True,
    ),
    Procedure(
        "knockpy per task, union",
        knockpy_knockoffs,
        "",
        is_heavy=True,
        applies=lambda cell: _is_linear(cell) and cell.d == 200 and _has_law(cell),
        exists=_has_package("knockpy"),
        is_peer=True,
    ),
    Procedure(
        "ipss per task, union",
        ipss_selection,
        "",
        is_heavy=True,
        applies=lambda cell: _is_linear(cell) and cell.d == 200,
        exists=_has_package("ipss"),
        is_peer=True,
    ),
]
