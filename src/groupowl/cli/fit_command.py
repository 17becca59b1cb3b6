"""``groupowl fit``, ``path`` and ``cv``: from a file to a model, its tables and its report."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GroupKFold, KFold, StratifiedGroupKFold, StratifiedKFold

from .._checks import IMPUTE
from .._text import listed
from .._typing import FloatArray
from ..designs import Design
from ..estimators import GroupOWLClassifier, GroupOWLClassifierCV, GroupOWLRegressor, GroupOWLRegressorCV
from ..path import PathResult
from ..path.follower import MOST_ALPHAS
from ..solvers import Progress
from ..tables import Table, load_table
from ..weights import resolve_weights
from .commands import (
    AlphaOptions,
    DataOptions,
    FoldOptions,
    ModelOptions,
    OutputOptions,
    PathOptions,
    arguments,
    command,
)
from .messages import Failure, printing
from .outcome import Outcome, data_notes, edge_note, held_out_rows, named_design, present, scores_of
from .run_folder import check_out, write_outcome
from .terminal import Stages, print_outcome

NOT_CONVERGED = 3

# A path beside a single fit is for the report: it must cost next to nothing.
_PATH_ALPHAS = 30
_PATH_FLOOR = 0.05
_PATH_ENTRIES = 2_000_000
_PATH_SECONDS = 2.0

_LARGEST_SEED = 2**32 - 1  # of NumPy's legacy generator, which scikit-learn's folds use


# Commands -----------------------------------------------------------------------------------------------


@command(example="groupowl fit train.csv --targets y1,y2 --alpha auto --out model")
def fit(data: DataOptions, model: ModelOptions, strength: AlphaOptions, output: OutputOptions) -> None:
    """Fit one model to a file, at one alpha.

    Writes the model, a table of coefficients and a report to a new folder, and prints a summary. Nothing is held out
    unless --test-size says so; the command cv chooses alpha.
    """
    alpha = "auto" if strength.alpha == "auto" else _positive("--alpha", strength.alpha)
    settings = {"alpha": alpha, "weights": _parse_weights(model.weights, many=False)}
    _run("fit", data, model, output, lambda table: settings)


@command(example="groupowl path train.csv --targets y1,y2 --alphas 50 --out path")
def path(data: DataOptions, model: ModelOptions, strengths: PathOptions, output: OutputOptions) -> None:
    """Fit a path of models to a file, from the largest alpha down.

    The model that is saved is the one of the alpha that --selection chooses by an information criterion, without
    folds; the report shows all of them.
    """
    settings = _search_settings(strengths) | {"weights": _parse_weights(model.weights, many=False)}
    _run("path", data, model, output, lambda table: settings)


@command(example="groupowl cv train.csv --targets y1,y2 --weights oscar --out model")
def cv(data: DataOptions, model: ModelOptions, choice: FoldOptions, output: OutputOptions) -> None:
    """Fit a model to a file at the alpha that cross-validation chooses.

    Folds are shuffled with --seed, keep --groups together and have their share of each class. Of several --weights,
    the best is taken.
    """
    settings = _search_settings(choice) | {"weights": _parse_weights(model.weights, many=True), "n_jobs": choice.jobs}
    _check_least("--folds", choice.folds, 2)
    if choice.jobs < 1 and choice.jobs != -1:
        raise Failure(f"--jobs must be at least 1, or -1 for one job per processor, got {choice.jobs}.", 2)
    _run("cv", data, model, output, lambda table: settings | {"cv": _make_folds(table, choice, model.seed)})


def _run(
    command: str,
    data: DataOptions,
    model: ModelOptions,
    output: OutputOptions,
    settings_of: Callable[[Table], dict[str, Any]],
) -> None:
    """Read, fit, score, write, tell; ``settings_of`` has the parameters of the estimator that the command decides."""
    _check_options(model)
    check_out(output.out, force=output.force)
    reading = data.reading(model.unpenalized)
    stages, started = Stages(output.quiet), time.perf_counter()
    with stages.stage(f"Reading {data.file.name}"):
        table = load_table(data.file, reading)
    with _data_of(table):
        X = named_design(table.X, table.feature_names)
    noticed = data_notes(table, X, standardized=model.standardize)
    train, test = _parts(table, model)
    if test is not None:
        X = named_design(train.X, train.feature_names)
    estimator = _make_estimator(train, model, settings_of(train))
    with stages.stage(f"Fitting {train.n_samples} x {train.n_features}"):
        warned, converged = _fit(estimator, train, X, verbose=not output.quiet)
        path = estimator.path_ if hasattr(estimator, "path_") else _report_path(estimator)
    seconds = time.perf_counter() - started
    with stages.stage("Scoring"):
        scores, note = scores_of(estimator, X, train, test)
    outcome = Outcome(
        command=command,
        typed=("groupowl", *arguments.get()),
        table=train,
        estimator=estimator,
        path=path,
        scores=scores,
        notes=(*table.notes, *noticed, *warned, *present(edge_note(estimator), note)),
        seconds=seconds,
        converged=converged,
        reading=replace(reading, first_index=table.first_index),
        test_size=model.test_size,
        seed=model.seed,
    )
    with stages.stage("Writing"):
        written, problem = write_outcome(outcome, output.out, force=output.force)
    with printing(f"{output.out} was written" if written else "nothing was written"):
        print_outcome(outcome, written, output)
    if problem is not None:
        raise Failure(problem)
    if not outcome.converged:
        raise Failure(_not_converged(outcome, bool(written)), NOT_CONVERGED)


# Parts of a run -----------------------------------------------------------------------------------------


@contextmanager
def _data_of(table: Table) -> Iterator[None]:
    """A ValueError is about the data: what is wrong with them, and what can be typed about it."""
    try:
        yield
    except ValueError as error:
        problem = str(error).replace(IMPUTE, "Remove those samples, fill them in, or leave columns out with --drop.")
        raise Failure(f"{table.source}: {problem}") from error


def _parts(table: Table, model: ModelOptions) -> tuple[Table, Table | None]:
    """What is fitted, and what is held out."""
    if model.test_size is None:
        return table, None
    if table.is_classification and table.groups is None:
        _check_classes(table)
    try:
        train, test = held_out_rows(table, model.test_size, model.seed)
    except ValueError as error:
        problem = " ".join(str(error).split()).rstrip(".")
        raise Failure(f"--test-size {model.test_size:g} is no good here: {problem}. Use another share.") from error
    return table.rows(train), table.rows(test)


def _check_classes(table: Table) -> None:
    """Refuse classes of one sample, which cannot be in both parts."""
    labels, numbers = np.unique(table.y, return_counts=True)
    single = labels[numbers == 1].tolist()
    if single:
        raise Failure(
            f"--test-size needs at least two samples of each class, but {listed(single)} "
            f"{'has' if len(single) == 1 else 'have'} one. Remove those samples, or leave --test-size out."
        )


def _make_estimator(table: Table, model: ModelOptions, settings: dict[str, Any]) -> Any:
    """An estimator of one alpha, or one that chooses alpha."""
    is_single = "alpha" in settings
    kind: Any
    if table.is_classification:
        kind = GroupOWLClassifier if is_single else GroupOWLClassifierCV
    else:
        kind = GroupOWLRegressor if is_single else GroupOWLRegressorCV
    unpenalized: list[Any] = list(table.unpenalized)
    if not isinstance(table.X, np.ndarray):  # which has no names
        unpenalized = [table.feature_names.index(name) for name in unpenalized]
    estimator = kind(
        standardize=model.standardize,
        unpenalized=unpenalized or None,
        tol=model.tol,
        max_iter=model.max_iter,
        random_state=model.seed,
        **settings,
    )
    if is_single and table.n_samples * table.n_features <= _PATH_ENTRIES:
        estimator._keeps_solves = True  # for the path of the report
    return estimator


def _make_folds(table: Table, choice: FoldOptions, seed: int) -> Any:
    """Shuffled folds; groups stay together, every fold has its share of each class. None where a criterion chooses."""
    if choice.selection not in ("min", "1se"):
        return None
    _check_folds(table, choice.folds)
    if table.groups is not None:
        return (StratifiedGroupKFold if table.is_classification else GroupKFold)(choice.folds)
    kind = StratifiedKFold if table.is_classification else KFold
    return kind(choice.folds, shuffle=True, random_state=seed)


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


def _fit(estimator: Any, table: Table, X: Design, *, verbose: bool) -> tuple[list[str], bool]:
    """Fit; returns what it has warned of, and whether all of it converged."""
    groups = {} if table.groups is None or getattr(estimator, "cv", None) is None else {"groups": table.groups}
    is_alone = getattr(estimator, "n_jobs", None) in (None, 1)  # lines of other processes would stand between ours
    estimator.set_params(verbose=int(verbose and is_alone))
    with _data_of(table), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        estimator.fit(X, table.target_frame, sample_weight=table.sample_weight, **groups)
    estimator.set_params(verbose=0)
    notes = dict.fromkeys(" ".join(str(item.message).split()) for item in caught)
    short = any(issubclass(item.category, ConvergenceWarning) for item in caught)
    return list(notes), not short and estimator.solve_result_.converged


def _report_path(estimator: Any) -> PathResult | None:
    """Fits at larger alphas, and a little below, for the report of a single fit; None where that is not cheap."""
    if not estimator._keeps_solves:
        return None
    deadline = time.monotonic() + _PATH_SECONDS

    def alphas_of(alpha_max: float) -> FloatArray:
        largest = max(alpha_max, estimator.alpha_)
        return np.geomspace(largest, min(_PATH_FLOOR * largest, estimator.alpha_), _PATH_ALPHAS)

    def is_late(progress: Progress) -> bool:
        return time.monotonic() > deadline

    path: PathResult = estimator._path_through_fit(alphas_of, is_late)
    return None if path.stopped_because == "callback" else path


def _not_converged(outcome: Outcome, written: bool) -> str:
    result = outcome.estimator.solve_result_
    what = f"the fit has the status {result.status!r} and a proved gap of {result.gap:.3g}"
    if result.converged:
        what = "the chosen fit meets the tolerance, but others on the path or in the folds do not (see the notes)"
    return (
        f"not converged: {what}. "
        f"{'What there is was written. ' if written else ''}Raise --max-iter or --tol, or use --standardize."
    )


# Options ------------------------------------------------------------------------------------------------


def _search_settings(options: PathOptions | FoldOptions) -> dict[str, Any]:
    """Parameters of estimators that choose alpha: how many alphas, or which, and by what rule."""
    parts = [part.strip() for part in options.alphas.split(",")]
    alphas: int | list[float]
    if len(parts) == 1 and parts[0].isdecimal():
        alphas = int(parts[0])
        _check_least("--alphas", alphas, 1)
        if alphas > MOST_ALPHAS:
            raise Failure(f"--alphas must be at most {MOST_ALPHAS}, got {parts[0]}: each of them is a fit.", 2)
    else:
        alphas = [_positive("--alphas", part) for part in parts]
    if not 0.0 < options.eps < 1.0:
        raise Failure(f"--eps must lie strictly between 0 and 1, got {options.eps:g}.", 2)
    return {"alphas": alphas, "eps": options.eps, "selection": options.selection}


def _parse_weights(text: str, *, many: bool) -> Any:
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


def _check_options(model: ModelOptions) -> None:
    """Refuse numbers out of range before any file is read."""
    _positive("--tol", str(model.tol))
    _check_least("--seed", model.seed, 0)
    if model.seed > _LARGEST_SEED:
        raise Failure(f"--seed must be at most {_LARGEST_SEED}, got {model.seed}.", 2)
    _check_least("--max-iter", model.max_iter, 1)
    if model.test_size is not None and not 0.0 < model.test_size < 1.0:
        raise Failure(f"--test-size must lie strictly between 0 and 1, got {model.test_size:g}.", 2)


def _check_least(option: str, value: int, least: int) -> None:
    if value < least:
        raise Failure(f"{option} must be at least {least}, got {value}.", 2)


def _positive(option: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value > 0.0):
        raise Failure(f"{option} must be a positive number, got {text!r}.", 2)
    return value
