"""``groupowl fit``, ``path`` and ``cv``: from a file to a model, its tables and its report."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from ..tables import Table, load_table
from ..tables.errors import listed
from .commands import arguments, command
from .estimating import (
    Warned,
    check_eps,
    check_least,
    check_options,
    choosing_estimator,
    common_settings,
    fit_estimator,
    make_splitter,
    parse_alpha,
    parse_alphas,
    parse_weights,
    quick_path,
    single_estimator,
)
from .messages import Failure, printing
from .notes import data_notes, edge_note, present
from .options import AlphaOptions, DataOptions, FoldOptions, ModelOptions, OutputOptions, PathOptions
from .outcome import Outcome
from .run_folder import check_out, write_outcome
from .scores import NOT_HELD_OUT, OPTIMISTIC, fold_scores, held_out_rows, held_out_scores, training_scores
from .summary import print_outcome
from .terminal import Stages

NOT_CONVERGED = 3

# Fits a table, verbosely or not; what it has warned of, and the path.
_Fit = Callable[[Table, bool], tuple[Any, Warned, Any]]


@command(example="groupowl fit train.csv --targets y1,y2 --alpha auto --out model")
def fit(data: DataOptions, model: ModelOptions, strength: AlphaOptions, output: OutputOptions) -> None:
    """Fit one model to a file, at one alpha.

    Writes the model, a table of coefficients and a report to a new folder, and prints a summary. Nothing is held out
    unless --test-size says so; the command cv chooses alpha.
    """
    alpha, weights = parse_alpha(strength.alpha), parse_weights(model.weights, many=False)

    def run(table: Table, verbose: bool) -> tuple[Any, Warned, Any]:
        settings = common_settings(table, model, weights)
        estimator = single_estimator(table, alpha=alpha, **settings)
        warned = fit_estimator(estimator, table, verbose=verbose)
        return estimator, warned, quick_path(estimator, table, settings)

    _run("fit", data, model, output, run)


@command(example="groupowl path train.csv --targets y1,y2 --alphas 50 --out path")
def path(data: DataOptions, model: ModelOptions, strengths: PathOptions, output: OutputOptions) -> None:
    """Fit a path of models to a file, from the largest alpha down.

    The model that is saved is the one of the alpha that --selection chooses by an information criterion, without
    folds; the report shows all of them.
    """
    alphas, weights = parse_alphas(strengths.alphas), parse_weights(model.weights, many=False)
    chosen = {"alphas": alphas, "eps": check_eps(strengths.eps), "selection": str(strengths.selection)}

    def run(table: Table, verbose: bool) -> tuple[Any, Warned, Any]:
        estimator = choosing_estimator(table, **chosen, **common_settings(table, model, weights))
        warned = fit_estimator(estimator, table, verbose=verbose)
        return estimator, warned, estimator.path_

    _run("path", data, model, output, run)


@command(example="groupowl cv train.csv --targets y1,y2 --weights oscar --out model")
def cv(data: DataOptions, model: ModelOptions, choice: FoldOptions, output: OutputOptions) -> None:
    """Fit a model to a file at the alpha that cross-validation chooses.

    Folds are shuffled with --seed, keep --groups together and have their share of each class. Of several --weights,
    the best is taken.
    """
    alphas, weights = parse_alphas(choice.alphas), parse_weights(model.weights, many=True)
    chosen = {"alphas": alphas, "eps": check_eps(choice.eps), "selection": str(choice.selection)}
    check_least("--folds", choice.folds, 2)
    if choice.jobs < 1 and choice.jobs != -1:
        raise Failure(f"--jobs must be at least 1, or -1 for one job per processor, got {choice.jobs}.", 2)

    def run(table: Table, verbose: bool) -> tuple[Any, Warned, Any]:
        is_folded = choice.selection in ("min", "1se")
        estimator = choosing_estimator(
            table,
            cv=make_splitter(table, choice.folds, model.seed) if is_folded else None,
            n_jobs=choice.jobs,
            **chosen,
            **common_settings(table, model, weights),
        )
        groups = {} if table.groups is None or not is_folded else {"groups": table.groups}
        # Lines that other processes print would stand between ours.
        warned = fit_estimator(estimator, table, verbose=verbose and choice.jobs == 1, **groups)
        return estimator, warned, estimator.path_

    _run("cv", data, model, output, run)


def _run(command: str, data: DataOptions, model: ModelOptions, output: OutputOptions, fit_table: _Fit) -> None:
    """Read, fit, score, write, tell."""
    check_options(model)
    check_out(output.out, force=output.force)
    reading = data.reading(model.unpenalized)
    stages, started = Stages(output.quiet), time.perf_counter()
    with stages.stage(f"Reading {data.file.name}"):
        table = load_table(data.file, reading)
    noticed = data_notes(table, standardized=model.standardize)
    train, test = _parts(table, model)
    with stages.stage(f"Fitting {train.n_samples} x {train.n_features}"):
        estimator, warned, path = fit_table(train, not output.quiet)
    seconds = time.perf_counter() - started
    with stages.stage("Scoring"):
        scores, note = _scores(estimator, train, test)
    outcome = Outcome(
        command=command,
        typed=("groupowl", *arguments.get()),
        table=train,
        estimator=estimator,
        path=path,
        scores=scores,
        notes=(*table.notes, *noticed, *warned.notes, *present(edge_note(estimator), note)),
        seconds=seconds,
        converged=warned.converged,
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
    single = [label for label, number in zip(labels.tolist(), numbers, strict=True) if number == 1]
    if single:
        raise Failure(
            f"--test-size needs at least two samples of each class, but {listed(single)} "
            f"{'has' if len(single) == 1 else 'have'} one. Remove those samples, or leave --test-size out."
        )


def _scores(estimator: Any, train: Table, test: Table | None) -> tuple[Any, str | None]:
    """Scores, and what to know about them."""
    has_folds = hasattr(estimator, "score_path_")
    scores = fold_scores(estimator, train) if has_folds else {}
    if test is not None:
        return held_out_scores(estimator, train, test) | scores, None
    return (scores, OPTIMISTIC) if has_folds else (training_scores(estimator, train), NOT_HELD_OUT)


def _not_converged(outcome: Outcome, written: bool) -> str:
    result = outcome.estimator.solve_result_
    what = f"the fit has the status {result.status!r} and a proved gap of {result.gap:.3g}"
    if result.converged:
        what = "the chosen fit meets the tolerance, but others on the path or in the folds do not (see the notes)"
    return (
        f"not converged: {what}. "
        f"{'What there is was written. ' if written else ''}Raise --max-iter or --tol, or use --standardize."
    )
