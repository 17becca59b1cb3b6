"""Estimators from options, and their fit: what is wrong is one sentence, what is doubtful is a note."""

from __future__ import annotations

import math
import time
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GroupKFold, KFold, StratifiedGroupKFold, StratifiedKFold

from .._checks import IMPUTE
from ..estimators import GroupOWLClassifier, GroupOWLClassifierCV, GroupOWLRegressor, GroupOWLRegressorCV
from ..path import PathResult, group_owl_path
from ..path.continuation import MOST_ALPHAS
from ..solvers import Progress
from ..tables import Table
from ..weights import resolve_weights
from .messages import Failure
from .options import ModelOptions

# A path beside a single fit is for the report: it must cost next to nothing.
_PATH_ALPHAS = 30
_PATH_FLOOR = 0.05
_PATH_ENTRIES = 2_000_000
_PATH_SECONDS = 2.0

_LARGEST_SEED = 2**32 - 1  # of NumPy's legacy generator, which scikit-learn's folds use


# Options ------------------------------------------------------------------------------------------------


def parse_alpha(text: str) -> float | str:
    """A positive number, or "auto"."""
    return text if text == "auto" else _positive("--alpha", text)


def parse_alphas(text: str) -> Any:
    """A whole number says how many; anything else is a list of positive numbers."""
    parts = [part.strip() for part in text.split(",")]
    if len(parts) == 1 and parts[0].isdecimal():
        check_least("--alphas", int(parts[0]), 1)
        if int(parts[0]) > MOST_ALPHAS:
            raise Failure(f"--alphas must be at most {MOST_ALPHAS}, got {parts[0]}: each of them is a fit.", 2)
        return int(parts[0])
    return [_positive("--alphas", part) for part in parts]


def parse_weights(text: str, *, many: bool) -> Any:
    """Names of weight sequences; one of them where a list is of no use."""
    names = [name.strip() for name in text.split(",")]
    for name in names:
        try:
            resolve_weights(name, n_features=2, n_tasks=1, n_samples=2)
        except ValueError as error:
            raise Failure(f"--{error}", 2) from error
    if len(names) > 1 and not many:
        raise Failure(f"--weights must be one sequence here, got {text!r}; the command cv chooses from several.", 2)
    return names if len(names) > 1 else names[0]


def _positive(option: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value > 0.0):
        raise Failure(f"{option} must be a positive number, got {text!r}.", 2)
    return value


def check_options(model: ModelOptions) -> None:
    """Refuse numbers out of range before any file is read."""
    _positive("--tol", str(model.tol))
    check_least("--seed", model.seed, 0)
    if model.seed > _LARGEST_SEED:
        raise Failure(f"--seed must be at most {_LARGEST_SEED}, got {model.seed}.", 2)
    check_least("--max-iter", model.max_iter, 1)
    if model.test_size is not None and not 0.0 < model.test_size < 1.0:
        raise Failure(f"--test-size must lie strictly between 0 and 1, got {model.test_size:g}.", 2)


def check_least(option: str, value: int, least: int) -> None:
    """Refuse a number that is too small."""
    if value < least:
        raise Failure(f"{option} must be at least {least}, got {value}.", 2)


def check_eps(eps: float) -> float:
    """A share strictly between 0 and 1."""
    if not 0.0 < eps < 1.0:
        raise Failure(f"--eps must lie strictly between 0 and 1, got {eps:g}.", 2)
    return eps


# Estimators ---------------------------------------------------------------------------------------------


def common_settings(table: Table, model: ModelOptions, weights: Any) -> dict[str, Any]:
    """Parameters of any estimator."""
    names = table.unpenalized
    positions = [table.feature_names.index(name) for name in names]
    return {
        "weights": weights,
        "standardize": model.standardize,
        "unpenalized": (list(names) if isinstance(table.X, np.ndarray) else positions) if names else None,
        "tol": model.tol,
        "max_iter": model.max_iter,
        "random_state": model.seed,
    }


def single_estimator(table: Table, **settings: Any) -> Any:
    """An estimator of one alpha."""
    return (GroupOWLClassifier if table.is_classification else GroupOWLRegressor)(**settings)


def choosing_estimator(table: Table, **settings: Any) -> Any:
    """An estimator that chooses alpha."""
    return (GroupOWLClassifierCV if table.is_classification else GroupOWLRegressorCV)(**settings)


def make_splitter(table: Table, folds: int, seed: int) -> Any:
    """Shuffled folds; groups stay together, every fold has its share of each class."""
    _check_folds(table, folds)
    if table.groups is not None:
        return StratifiedGroupKFold(folds) if table.is_classification else GroupKFold(folds)
    kind = StratifiedKFold if table.is_classification else KFold
    return kind(folds, shuffle=True, random_state=seed)


def _check_folds(table: Table, folds: int) -> None:
    weight = table.sample_weight
    present = np.ones(table.n_samples, dtype=bool) if weight is None else weight > 0.0
    counts = {"samples": int(present.sum())}
    if table.groups is not None:
        counts["groups"] = len(np.unique(table.groups[present]))
    elif table.is_classification:
        labels, numbers = np.unique(table.y[present], return_counts=True)
        rarest = int(np.argmin(numbers))
        counts[f"samples of class {labels[rarest].item()!r}"] = int(numbers[rarest])
    for what, count in counts.items():
        if count < folds:
            raise Failure(
                f"--folds {folds} needs at least {folds} {what}, but there {'is' if count == 1 else 'are'} {count}. "
                "Use fewer folds, or --selection bic, which needs none."
            )


# The fit ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Warned:
    """What a fit has warned of: sentences, and whether all of it converged."""

    notes: tuple[str, ...]
    converged: bool


def fit_estimator(estimator: Any, table: Table, *, verbose: bool, **params: Any) -> Warned:
    """Fit; warnings become notes, and a ValueError about the data a failure."""
    estimator.set_params(verbose=int(verbose))
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            estimator.fit(table.frame, table.target_frame, sample_weight=table.sample_weight, **params)
    except ValueError as error:
        problem = str(error).replace(IMPUTE, "Remove those samples, fill them in, or leave columns out with --drop.")
        raise Failure(f"{table.source}: {problem}") from error
    finally:
        estimator.set_params(verbose=0)
    notes = dict.fromkeys(" ".join(str(item.message).split()) for item in caught)
    short = any(issubclass(item.category, ConvergenceWarning) for item in caught)
    return Warned(tuple(notes), not short and estimator.solve_result_.converged)


def quick_path(estimator: Any, table: Table, settings: dict[str, Any]) -> PathResult | None:
    """Fits at larger alphas, and a little below, for the report of a single fit; None where that is not cheap."""
    if table.n_samples * table.n_features > _PATH_ENTRIES:
        return None
    deadline = time.monotonic() + _PATH_SECONDS

    def is_late(progress: Progress) -> bool:
        return time.monotonic() > deadline

    loss = "multinomial" if table.is_classification else "squared"
    shared = settings | {"loss": loss, "sample_weight": table.sample_weight, "callback": is_late}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the fit has told of its own
        first = group_owl_path(table.frame, table.target_frame, alphas=1, **shared)
        largest = max(first.alpha_max, estimator.alpha_)
        smallest = min(_PATH_FLOOR * largest, estimator.alpha_)
        alphas = [*np.geomspace(largest, smallest, _PATH_ALPHAS), estimator.alpha_]
        path = group_owl_path(table.frame, table.target_frame, alphas=alphas, **shared)
    return None if path.stopped_because == "callback" else path
