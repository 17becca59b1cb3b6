"""One short adapter for each competitor: what it declines and why, and how it is called.

Every adapter answers the judge's problem, ``F(XB) + sum_i lam_i ||B_[i],:||_2`` with sums over samples and no
intercept, in the scaling of its package: most divide the loss by n, adelie and skein-glm by n
times the number of responses. Estimators fit an intercept, which changes nothing: data of squared loss are centered.
``tol`` is the package's own tolerance; where that is absolute, the adapter makes it relative to the problem.
Packages are imported in the worker that needs them, never here.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
GLMNET_DEFAULT = 1e-7  # thresh of glmnet and of glmstar
Answers = Iterable[np.ndarray]  # coefficients (features, tasks), one for each strength
_GLMNET = ("glmnet", "glmnet at its default", "glmstar", "glmstar at its default")
_MANY_TASKS = ("groupowl", "scikit-learn", "celer", "skglm", "adelie", *_GLMNET)
_ONE_TASK = ("groupowl", "sortedl1", "scikit-learn", "celer", "skglm", *_GLMNET)
_OTHER_LOSSES = (*_ONE_TASK, "scikit-survival")
#: Who takes part in groups that not everyone is asked to; groupowl of another source tree may join everywhere.
RIVALS = {
    "h": ("groupowl", "celer", "skglm", "adelie"),
    "i": _ONE_TASK,
    "j": ("groupowl", "scikit-learn", "celer", "glmstar"),
    "k": (*_ONE_TASK, "adelie"),
    "l": _OTHER_LOSSES,
    "m": _OTHER_LOSSES,
    "n": ("groupowl", "sortedl1"),
    "p": _MANY_TASKS,
    "t": _MANY_TASKS,
    "v": ("groupowl",),
}


@dataclass(frozen=True)
class Task:
    """What an adapter gets: data in its favourite memory order, loss, weights, lam_max and the number of threads."""

    X: Any
    Y: np.ndarray
    loss: str
    weights: np.ndarray
    strongest: float
    threads: int
    group_size: int = 1  # columns that form a group, one after the other

    @property
    def groups(self) -> np.ndarray:
        """The group of each column."""
        return np.arange(self.X.shape[1]) // self.group_size

    @property
    def n(self) -> int:
        """Number of samples."""
        return self.X.shape[0]

    @property
    def shape(self) -> tuple[int, int]:
        """Of the coefficients."""
        return self.X.shape[1], self.Y.shape[1]


@dataclass(frozen=True)
class Kind:
    """What decides whether a competitor can take part."""

    loss: str
    sorted_weights: bool
    one_task: bool
    sparse: bool
    path: bool
    call: str = "solve"
    grouped: bool = False


@dataclass(frozen=True)
class Adapter:
    """How to call one competitor.

    ``solve(task, strengths, tol)`` answers one strength or a path of them, ``others`` has other calls (an estimator, a
    cross-validation) by name; ``refuse`` gives the reason to decline;
    ``tol`` is where the search for the tolerance starts, ``floor`` where it ends. ``exact`` says that the tolerance
    is the judge's gap, so looser ones are not tried. ``patience`` limits the seconds for one call of those known to be
    slow, ``baseline`` marks other ways to solve sorted problems, which need not run everywhere. ``fixed`` says that
    ``tol`` is the default of the package, which runs with it alone, whatever gap that gives. ``own_environment``
    is a folder of the project with the interpreter of a package that does not get along with the others.
    """

    name: str
    package: str
    module: str
    solve: Callable[[Task, np.ndarray, float], Answers]
    refuse: Callable[[Kind], str | None]
    tol: float
    floor: float = 1e-15
    order: str = "F"
    exact: bool = False
    fixed: bool = False
    baseline: bool = False
    patience: float = np.inf
    own_environment: str | None = None
    own_process: bool = False  # it cannot share one with others
    knows_groups: bool = False  # of columns
    others: Mapping[str, Callable[[Task, np.ndarray, float], Answers]] = field(default_factory=dict)

    @property
    def calls(self) -> dict[str, Callable[[Task, np.ndarray, float], Answers]]:
        """What it can be asked to do."""
        return {"solve": self.solve, **self.others}

    def declines(self, kind: Kind) -> str | None:
        """The reason why it does not take part, or None."""
        if kind.grouped and not self.knows_groups:
            return "no groups of columns"
        return self.refuse(kind) if kind.call in self.calls else f"no {kind.call} here"

    @property
    def python(self) -> Path:
        """The interpreter that has the package."""
        return Path(sys.executable) if self.own_environment is None else ROOT / self.own_environment / "bin" / "python"


# groupowl ---------------------------------------------------------------------------------------------


def _groupowl(**options):
    def solve(task: Task, strengths: np.ndarray, tol: float) -> Answers:
        import groupowl as go

        common = {"loss": task.loss, "tol": tol, **options}
        if task.group_size > 1:
            common |= {"feature_groups": task.groups, "group_scale": "none"}
        if len(strengths) == 1:
            lam = strengths[0] * task.weights
            return [go.solve(task.X, task.Y, lam, max_iter=10**7, **common).B]
        return [result.B for result in _groupowl_path(task, strengths, common)]

    return solve


def _groupowl_path(task: Task, strengths: np.ndarray, common: dict[str, Any]):
    from groupowl.path import solve_path

    return solve_path(task.X, task.Y, task.weights, strengths=strengths, max_iter=10**7, **common)


def _groupowl_estimator(task: Task, strengths: np.ndarray, tol: float) -> Answers:
    from groupowl import GroupOWLRegressor

    model = GroupOWLRegressor(alpha=strengths[0] / task.n, weights=task.weights, tol=tol, max_iter=10**7)
    return [_coefficients(model.fit(task.X, _targets(task)), task)]


class Chosen(list):
    """An answer for a strength that the competitor chose itself."""

    def __init__(self, answers: Answers, strength: float) -> None:
        super().__init__(answers)
        self.strengths = [strength]


def _groupowl_search(task: Task, strengths: np.ndarray, tol: float) -> Answers:
    from groupowl import GroupOWLRegressorCV

    model = GroupOWLRegressorCV(weights=task.weights, alphas=len(strengths), cv=5, tol=tol, max_iter=10**7)
    model.fit(task.X, _targets(task))
    return Chosen([_coefficients(model, task)], model.alpha_ * task.n)


def _targets(task: Task) -> np.ndarray:
    """Targets as estimators want them: one of them is a vector."""
    return task.Y[:, 0] if task.Y.shape[1] == 1 else task.Y


def _coefficients(model: Any, task: Task) -> np.ndarray:
    return model.coef_.reshape(-1, task.X.shape[1]).T


def _singles_only(kind: Kind) -> str | None:
    return "baseline for single fits" if kind.path else None


# Group OWL --------------------------------------------------------------------------------------------


def _growl(task: Task, strengths: np.ndarray, tol: float) -> Answers:
    from growl.fista_solver import growl_fista

    lam = strengths[0] * task.weights
    B, _ = growl_fista(task.X, task.Y, w=lam / task.n, tol=tol, max_iter=10**7, check_type="relative_cost")
    return [B]


def _growl_refuses(kind: Kind) -> str | None:
    if kind.loss != "squared":
        return "squared loss only"
    if kind.sparse:
        return "no sparse X"
    return "no paths" if kind.path else None


# One task, sorted weights -----------------------------------------------------------------------------


def _sortedl1(task: Task, strengths: np.ndarray, tol: float) -> Answers:
    from sortedl1 import Slope

    loss = {"squared": "quadratic"}.get(task.loss, task.loss)
    model = Slope(
        loss=loss, lam=task.weights, fit_intercept=False, centering="none", scaling="none", tol=tol, max_iter=10**6
    )
    y, alphas = task.Y[:, 0], strengths / task.n
    if len(alphas) == 1:
        model.alpha = alphas[0]
        return [model.fit(task.X, y).coef_.reshape(-1, 1)]
    path = model.path(task.X, y, alphas=alphas, tol_dev_change=0.0, tol_dev_ratio=1.0, max_clusters=10**9)
    return [path.coefs[:, :, t] for t in range(path.coefs.shape[2])]


def _sortedl1_refuses(kind: Kind) -> str | None:
    if kind.loss == "multinomial":
        return "its multinomial penalty is elementwise"
    if kind.loss == "cox":
        return "no Cox loss"
    return None if kind.one_task else "one response only"


# Constant weights -------------------------------------------------------------------------------------


def _constant_squared(kind: Kind) -> str | None:
    if kind.sorted_weights:
        return "constant weights only"
    if kind.loss in ("poisson", "cox"):
        return "no such loss with this penalty"
    return None if kind.loss == "squared" else "no row-grouped multinomial, or not run"


def _constant_or_labels(kind: Kind) -> str | None:
    """Squared loss, or the logistic loss of one label."""
    return None if kind.loss == "logistic" and not kind.sorted_weights else _constant_squared(kind)


def _signs(task: Task) -> np.ndarray:
    """Labels of -1 and 1."""
    return 2.0 * task.Y[:, 0] - 1.0


def _constant(kind: Kind) -> str | None:
    return "constant weights only" if kind.sorted_weights else None


def _sklearn(task: Task, strengths: np.ndarray, tol: float) -> Answers:
    from sklearn.linear_model import Lasso, LogisticRegression, MultiTaskLasso, enet_path

    if task.loss == "logistic":
        options = {"l1_ratio": 1.0, "solver": "liblinear", "fit_intercept": False, "max_iter": 10**6}
        return [LogisticRegression(C=1.0 / s, tol=tol, **options).fit(task.X, _signs(task)).coef_.T for s in strengths]
    y = task.Y[:, 0] if task.Y.shape[1] == 1 else task.Y
    alphas = strengths / task.n
    if len(alphas) == 1:
        estimator = Lasso if y.ndim == 1 else MultiTaskLasso
        model = estimator(alpha=alphas[0], fit_intercept=False, tol=tol, max_iter=10**6, copy_X=False)
        return [model.fit(task.X, y).coef_.reshape(-1, task.X.shape[1]).T]
    _, coefs, _ = enet_path(task.X, y, l1_ratio=1.0, alphas=alphas, tol=tol, max_iter=10**6, copy_X=False)
    return np.moveaxis(coefs.reshape(-1, task.X.shape[1], len(alphas)), 2, 0).swapaxes(1, 2)


def _sklearn_estimator(task: Task, strengths: np.ndarray, tol: float) -> Answers:
    from sklearn.linear_model import Lasso, MultiTaskLasso

    return _fitted(Lasso, MultiTaskLasso, task, strengths, tol=tol, max_iter=10**6)


def _celer_estimator(task: Task, strengths: np.ndarray, tol: float) -> Answers:
    from celer import Lasso
    from sklearn.utils import check_array

    if task.Y.shape[1] == 1:
        return _fitted(Lasso, None, task, strengths, tol=tol, max_iter=1000, max_epochs=10**6)
    # Its MultiTaskLasso.fit needs scikit-learn 1.6 or older; these are its steps, without the rest of an estimator.
    X, Y = (check_array(array, order="F", copy=True) for array in (task.X, task.Y))
    X -= X.mean(axis=0)
    Y -= Y.mean(axis=0)
    return _celer(replace(task, X=X, Y=Y), strengths, tol)


def _fitted(one: Any, many: Any, task: Task, strengths: np.ndarray, **options: Any) -> Answers:
    estimator = one if task.Y.shape[1] == 1 else many
    model = estimator(alpha=strengths[0] / task.n, fit_intercept=True, **options)
    return [_coefficients(model.fit(task.X, _targets(task)), task)]


def _celer(task: Task, strengths: np.ndarray, tol: float) -> Answers:
    from celer.homotopy import celer_path, mtl_path

    alphas = strengths / task.n
    limits = {"tol": tol, "max_iter": 1000, "max_epochs": 10**6}
    if task.group_size > 1:
        path = {"groups": task.group_size, "alphas": alphas, "prune": True}
        coefs = celer_path(task.X, task.Y[:, 0], "grouplasso", **path, **limits)[1]
        return [coefs[:, [t]] for t in range(len(alphas))]
    if task.loss == "logistic":
        coefs = celer_path(task.X, _signs(task), "logreg", alphas=strengths, **limits)[1]
        return [coefs[:, [t]] for t in range(len(strengths))]
    if task.Y.shape[1] == 1:
        coefs = celer_path(task.X, task.Y[:, 0], "lasso", alphas=alphas, prune=True, **limits)[1]
        return [coefs[:, [t]] for t in range(len(alphas))]
    coefs = mtl_path(task.X, task.Y, alphas=alphas, **limits)[1]
    return [coefs[:, :, t].T for t in range(len(alphas))]


def _celer_refuses(kind: Kind) -> str | None:
    return _constant_or_labels(kind) or ("multi-task: no sparse X" if kind.sparse and not kind.one_task else None)


def _skglm(task: Task, strengths: np.ndarray, tol: float) -> Answers:
    from skglm import Lasso, MultiTaskLasso

    alphas = strengths / task.n
    if task.loss != "squared":
        return _skglm_other(task, alphas, tol)
    if task.group_size > 1:
        return _skglm_groups(task, alphas, tol)
    y = task.Y[:, 0] if task.Y.shape[1] == 1 else task.Y
    estimator = Lasso if y.ndim == 1 else MultiTaskLasso
    # Its tolerance is the largest violation of the optimality conditions, whose size is that of alpha.
    model = estimator(alpha=alphas[0], tol=tol * alphas[0], fit_intercept=False, max_iter=1000, max_epochs=10**6)
    if len(alphas) == 1:
        return [model.fit(task.X, y).coef_.reshape(-1, task.X.shape[1]).T]
    coefs = model.path(task.X, y, alphas)[1]
    coefs = coefs.reshape(-1, task.X.shape[1], len(alphas))
    return [coefs[:, :, t].T for t in range(len(alphas))]


def _skglm_other(task: Task, alphas: np.ndarray, tol: float) -> Answers:
    from skglm import GeneralizedLinearEstimator
    from skglm.datafits import Cox, Logistic, Poisson
    from skglm.penalties import L1
    from skglm.solvers import ProxNewton

    if task.loss == "cox":  # as its estimator does, which takes Efron's ties whatever it is asked for
        y, datafit = np.asfortranarray(np.column_stack([np.abs(task.Y), task.Y > 0.0])), Cox()
        datafit.initialize(task.X, y)
        solver = ProxNewton(tol=tol * alphas[0], fit_intercept=False, max_iter=1000)
        return [solver.solve(task.X, y, datafit, L1(alpha))[0].reshape(-1, 1) for alpha in alphas]
    y, datafit = (_signs(task), Logistic()) if task.loss == "logistic" else (task.Y[:, 0], Poisson())
    limits = {"fit_intercept": False, "max_iter": 1000}
    solvers = (ProxNewton(tol=tol * alpha, **limits) for alpha in alphas)
    return [
        GeneralizedLinearEstimator(datafit, L1(alpha), solver).fit(task.X, y).coef_.reshape(-1, 1)
        for alpha, solver in zip(alphas, solvers, strict=True)
    ]


def _skglm_groups(task: Task, alphas: np.ndarray, tol: float) -> Answers:
    from skglm import GroupLasso

    limits = {"fit_intercept": False, "max_iter": 1000, "max_epochs": 10**6}
    models = (GroupLasso(groups=task.group_size, alpha=alpha, tol=tol * alpha, **limits) for alpha in alphas)
    return [model.fit(task.X, task.Y[:, 0]).coef_.reshape(-1, 1) for model in models]


def _skglm_refuses(kind: Kind) -> str | None:
    if kind.sorted_weights and kind.one_task:
        return "its SLOPE penalty (FISTA only, no paths) is not run"
    if kind.loss in ("logistic", "poisson", "cox") and kind.one_task:
        return None
    return _constant_squared(kind)


def _adelie(task: Task, strengths: np.ndarray, tol: float) -> Answers:
    import adelie as ad

    (d, q), threads = task.shape, task.threads
    X = ad.matrix.sparse(task.X, n_threads=threads) if hasattr(task.X, "tocsc") else task.X
    if task.loss == "multinomial":
        glm = ad.glm.multinomial(task.Y)
    else:
        glm = ad.glm.gaussian(task.Y[:, 0]) if q == 1 else ad.glm.multigaussian(task.Y)
    options = {"tol": tol, "irls_tol": tol, "n_threads": threads, "intercept": False, "early_exit": False}
    path = _halving(task.strongest, strengths[0]) if len(strengths) == 1 else strengths
    path = path / (task.n * q)
    if task.group_size > 1:
        options["groups"] = np.arange(0, d, task.group_size)
    penalty = np.ones(d // task.group_size)
    state = ad.grpnet(X, glm, penalty=penalty, lmda_path=path, progress_bar=False, max_iters=10**8, **options)
    if len(state.lmdas) != len(path):
        raise RuntimeError(f"solved {len(state.lmdas)} of {len(path)} strengths")
    return [state.betas[t].toarray().reshape(d, q) for t in range(len(path) - len(strengths), len(path))]


def _halving(strongest: float, strength: float) -> np.ndarray:
    """A short path that ends at ``strength``: adelie and glmnet screen along it, a single fit takes them longer."""
    steps = max(1, int(np.ceil(np.log2(strongest / strength) - 0.01)))
    return np.geomspace(strongest, strength, steps + 1)[1:]


def _skein(task: Task, strengths: np.ndarray, tol: float) -> Answers:
    import skein_glm as sk

    lambdas = strengths / (task.n * task.Y.shape[1])
    common = {"lambdas": lambdas, "fit_intercept": False, "max_iter": 10**6, "tol": tol}
    if task.loss == "multinomial":
        model = sk.MultinomialLassoPathClassifier(max_outer=10**5, outer_tol=tol, **common)
        coefs = model.fit(task.X, np.argmax(task.Y, axis=1)).coefs_
    else:
        # Never parallel=True: it answers with NaN.
        coefs = sk.MultiTaskLassoPathRegressor(**common).fit(task.X, task.Y).coefs_
    return [coef.T for coef in coefs]


def _glmstar(task: Task, strengths: np.ndarray, tol: float) -> Answers:
    """The path itself, or the end of a short one: its own single fits take longer."""
    path = _halving(task.strongest, strengths[0]) if len(strengths) == 1 else strengths
    return _glmstar_path(task, path, tol, intercept=False)[-len(strengths) :]


def _glmstar_estimator(task: Task, strengths: np.ndarray, tol: float) -> Answers:
    return _glmstar_path(task, _halving(task.strongest, strengths[0]), tol, intercept=True)[-1:]


def _glmstar_path(task: Task, strengths: np.ndarray, tol: float, *, intercept: bool) -> np.ndarray:
    import glmnet
    from glmnet.paths.fastnet import FastNetControl

    control = FastNetControl(thresh=tol, maxit=10**8, fdev=0.0, devmax=1.0)
    options = {"lambda_values": strengths / task.n, "standardize": False, "control": control}
    if task.loss != "cox":  # which has no intercept
        options["fit_intercept"] = intercept
    if task.loss == "multinomial":
        model = glmnet.MultiClassNet(grouped=True, **options).fit(task.X, np.argmax(task.Y, axis=1))
    elif task.loss == "cox":
        model = glmnet.CoxNet(**options).fit(task.X, _survival(task))
    else:
        one = {"squared": "GaussNet", "logistic": "LogNet", "poisson": "FishNet"}[task.loss]
        estimator = getattr(glmnet, one if task.Y.shape[1] == 1 else "MultiGaussNet")
        model = estimator(**options).fit(task.X, _targets(task))
    if len(model.coefs_) != len(strengths):
        raise RuntimeError(f"solved {len(model.coefs_)} of {len(strengths)} strengths")
    return model.coefs_.reshape(len(strengths), *task.shape)


def _survival(task: Task) -> Any:
    """Times and whether the event was seen, as a table."""
    import pandas as pd

    return pd.DataFrame({"event": np.abs(task.Y[:, 0]), "status": (task.Y[:, 0] > 0.0).astype(int)})


def _glmnet(task: Task, strengths: np.ndarray, tol: float) -> Answers:
    from .glmnet_in_r import solve

    path = _halving(task.strongest, strengths[0]) if len(strengths) == 1 else strengths
    return solve(task.X, task.Y, task.loss, path / task.n, tol, wanted=len(strengths))


def _scikit_survival(task: Task, strengths: np.ndarray, tol: float) -> Answers:
    from sksurv.linear_model import CoxnetSurvivalAnalysis
    from sksurv.util import Surv

    path = _halving(task.strongest, strengths[0]) if len(strengths) == 1 else strengths
    y = Surv.from_arrays(task.Y[:, 0] > 0.0, np.abs(task.Y[:, 0]))
    model = CoxnetSurvivalAnalysis(alphas=path / task.n, l1_ratio=1.0, normalize=False, tol=tol, max_iter=10**8)
    coefs = model.fit(task.X, y).coef_
    if coefs.shape[1] != len(path):
        raise RuntimeError(f"solved {coefs.shape[1]} of {len(path)} strengths")
    return [coefs[:, [t]] for t in range(len(path) - len(strengths), len(path))]


def _cox_only(kind: Kind) -> str | None:
    if kind.loss != "cox":
        return "Cox loss only"
    return "no sparse X" if kind.sparse else _constant(kind)


# The list ---------------------------------------------------------------------------------------------


def _never(kind: Kind) -> None:
    return None


_OWN = {
    "package": "groupowl",
    "module": "groupowl",
    "tol": 0.99e-6,
    "order": "C",
    "exact": True,
    "knows_groups": True,
}
_OWN_CALLS = {"estimator": _groupowl_estimator, "search": _groupowl_search}
_SLOW = {"baseline": True, "order": "C"}


def _own(name: str, patience: float, **options) -> Adapter:
    """Another solver of groupowl."""
    return Adapter(name, solve=_groupowl(**options), refuse=_singles_only, patience=patience, **(_OWN | _SLOW))


def _at_its_default(adapter: Adapter) -> Adapter:
    """The same package with the tolerance that it has if nobody names one, and the gap that this gives."""
    return replace(adapter, name=f"{adapter.name} at its default", tol=GLMNET_DEFAULT, fixed=True, others={})


_GLMNET_IN_R = Adapter("glmnet", "glmnet", "numpy", _glmnet, _constant, tol=1e-14, floor=1e-22, own_process=True)
_GLMSTAR = Adapter(
    "glmstar",
    "glmstar",
    "glmnet",
    _glmstar,
    _constant,
    tol=1e-14,
    floor=1e-22,
    others={"estimator": _glmstar_estimator},
)
_LIST = (
    Adapter("groupowl", solve=_groupowl(), refuse=_never, others=_OWN_CALLS, **_OWN),
    Adapter("before", solve=_groupowl(), refuse=_never, others=_OWN_CALLS, own_process=True, **_OWN),
    _own("apgd", 20.0, solver="apgd", screening="none"),
    _own("apgd+paper", 12.0, solver="apgd", screening="paper"),
    _own("spgd", 8.0, solver="spgd", random_state=0),
    Adapter("growl-reg", "growl-reg", "growl", _growl, _growl_refuses, tol=1e-13, patience=15.0, **_SLOW),
    Adapter("sortedl1", "sortedl1", "sortedl1", _sortedl1, _sortedl1_refuses, tol=1e-6),
    Adapter(
        "scikit-learn",
        "scikit-learn",
        "sklearn.linear_model",
        _sklearn,
        _constant_or_labels,
        tol=4.5e-7,
        others={"estimator": _sklearn_estimator},
    ),
    Adapter(
        "celer",
        "celer",
        "celer",
        _celer,
        _celer_refuses,
        tol=4.5e-7,
        others={"estimator": _celer_estimator},
        knows_groups=True,
    ),
    Adapter("skglm", "skglm", "skglm", _skglm, _skglm_refuses, tol=3e-5, knows_groups=True),
    Adapter(
        "adelie",
        "adelie",
        "adelie",
        _adelie,
        _constant,
        tol=3e-13,
        floor=1e-20,
        own_environment=".venv-bench-adelie",
        knows_groups=True,
    ),
    _GLMNET_IN_R,
    _at_its_default(_GLMNET_IN_R),
    _GLMSTAR,
    _at_its_default(_GLMSTAR),
    Adapter(
        "scikit-survival", "scikit-survival", "sksurv.linear_model", _scikit_survival, _cox_only, tol=1e-9, floor=1e-16
    ),
    Adapter("skein-glm", "skein-glm", "skein_glm", _skein, _constant, tol=1e-6, order="C", patience=20.0),
)
ADAPTERS = {adapter.name: adapter for adapter in _LIST}


def takes_part(name: str, group: str) -> bool:
    """Whether a competitor is one of those that a group of problems compares."""
    if name == "before":
        return True
    return name in RIVALS.get(group, ADAPTERS)
