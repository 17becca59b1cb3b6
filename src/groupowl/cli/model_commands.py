"""Models and files: ``groupowl fit``, ``path`` and ``cv``, and ``predict`` and ``verify`` with a saved model."""

from __future__ import annotations

import os
import re
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    RepeatedKFold,
    RepeatedStratifiedKFold,
    StratifiedGroupKFold,
    StratifiedKFold,
)

from .._checks import IMPUTE, number_in, take_rows
from .._progress import progress_line
from .._resume import ABOUT, check_folder
from .._text import counted, listed
from .._typing import FloatArray
from ..categories import fitted_categories
from ..designs import Design
from ..estimators import (
    GroupOWLClassifier,
    GroupOWLClassifierCV,
    GroupOWLCox,
    GroupOWLCoxCV,
    GroupOWLRegressor,
    GroupOWLRegressorCV,
)
from ..estimators.verification import Verification
from ..inputs import task_names
from ..losses import resolve_loss
from ..model_selection import FOLD_RULES
from ..model_selection.scores import verdicts
from ..path import PathResult
from ..tables import Features, Reading, Roles, Table, TableError, check_dialect, load_features, load_table
from ..tables.loader import ADAPTIVE
from ..tables.sheet import FEATURES
from . import commands
from .commands import FitOptions, FoldOptions, GridOptions, ModelOptions, TrainOptions, command
from .evaluation import Evaluation, evaluate, evaluate_new, held_out_rows, survival_of
from .messages import Failure, is_standard_output, print_paths, printing, say, tell
from .outcome import Outcome, choice_note, count_note, data_notes, edge_note, full_model_note, named_design
from .run_folder import SavedRun, check_out, csv_text, read_run, write_file, write_outcome
from .terminal import Stages, print_evaluation, print_json, print_outcome

NOT_CONVERGED = 3

# Options of a fit that verify takes over and has not itself.
_FITTED_OPTIONS = (
    "--drop",
    "--groups",
    "--sample-weight",
    "--strata",
    "--event",
    "--ties",
    "--offset",
    "--exposure",
    "--unpenalized",
    "--feature-groups",
    "--categories",
    "--penalty-factor",
    "--positive",
)

# A path beside a single fit is for the report: it must cost next to nothing.
_PATH_ALPHAS = 30
_PATH_FLOOR = 0.05
_PATH_ENTRIES = 2_000_000
_PATH_SECONDS = 2.0
# Relative difference of alphas that were rounded on their way to the command line.
_SAME_ALPHA = 1e-5


# Commands -----------------------------------------------------------------------------------------------


@command(example="groupowl fit train.csv --targets y1,y2 --alpha auto --out model")
def fit(options: FitOptions) -> None:
    """Fit one model to a file, at one alpha.

    Writes the model, a table of coefficients and a report to a new folder, and prints a summary. Nothing is held out
    unless --test-size says so; the command cv chooses alpha.
    """
    _run("fit", options)


@command(example="groupowl path train.csv --targets y1,y2 --alphas 50 --out path")
def path(options: commands.PathOptions) -> None:
    """Fit a path of models to a file, from the largest alpha down.

    The model that is saved is the one of the alpha that --selection chooses by an information criterion, without
    folds; the report shows all of them.
    """
    _run("path", options)


@command(example="groupowl cv train.csv --targets y1,y2 --weights oscar --out model")
def cv(options: FoldOptions) -> None:
    """Fit a model to a file at the alpha that cross-validation chooses.

    Folds are shuffled with --seed, keep --groups together and have their share of each class. Of several --weights,
    the best is taken.
    """
    _run("cv", options)


def _run(name: str, options: ModelOptions) -> None:
    """Read, fit, score, write, tell."""
    check_out(options.out, force=options.force)
    check_resume(options)
    stages, started = Stages(options.quiet), time.perf_counter()
    table, reading = read_table(options, stages)
    parts = None if options.test_size is None else held_out_rows(table, options.test_size, options.seed)
    with data_of(table):
        table, fills = table.filled(reading.missing, None if parts is None else parts[0])
        X = named_design(table.X, table.feature_names)
    noticed = [*data_notes(table, X, standardized=options.standardize), *count_note(table, options.loss)]
    train, test = table, None
    if parts is not None:
        train, test = map(table.rows, parts)
        X = named_design(train.X, train.feature_names)
    estimator = make_estimator(train, options)
    with stages.stage(f"Fitting {train.n_samples} x {train.n_features}"):
        warned, converged = _fit(estimator, train, X, verbose=not options.quiet)
        path = estimator.path_ if hasattr(estimator, "path_") else _report_path(estimator)
    seconds = time.perf_counter() - started
    with stages.stage("Scoring"), data_of(table):
        evaluation = evaluate(estimator, X, train, test, options.scoring)
        survival = survival_of(estimator, X, train, test)
    criteria = vars(estimator).pop("_criteria", {})
    said = (
        *verdicts(evaluation.scores),
        *choice_note(estimator, criteria, options.out),
        *full_model_note(estimator, criteria),
    )
    outcome = Outcome(
        command=name,
        typed=("groupowl", *commands.arguments.get()),
        table=train,
        estimator=estimator,
        path=path,
        scores=evaluation.scores,
        notes=(*said, *table.notes, *noticed, *warned, *edge_note(estimator), *evaluation.notes),
        seconds=seconds,
        converged=converged,
        reading=replace(reading, first_index=table.first_index),
        test_size=options.test_size,
        seed=options.seed,
        survival=survival,
        confusion=evaluation.confusion,
        criteria=criteria,
        fills=fills,
    )
    with stages.stage("Writing"):
        written, problem = write_outcome(outcome, options.out, force=options.force)
    with printing(f"{options.out} was written" if written else "nothing was written"):
        print_outcome(outcome, written, options)
    if problem is not None:
        raise Failure(problem)
    if not converged:
        result = estimator.solve_result_
        what = f"the fit has the status {result.status!r} and a proved gap of {result.gap:.3g}"
        if result.converged:
            what = "the chosen fit meets the tolerance, but others on the path or in the folds do not (see the notes)"
        kept = "What there is was written. " if written else ""
        remedy = "Raise --max-iter or --tol, or use --standardize."
        raise Failure(f"not converged: {what}. {kept}{remedy}", NOT_CONVERGED)


# Parts of a run -----------------------------------------------------------------------------------------


def check_resume(options: TrainOptions, about: str = ABOUT) -> None:
    """Check the folder of ``--resume``: it must be new or one of ours, and outside of ``--out``."""
    if options.resume is not None and options.out is not None:
        out, resume = options.out.absolute(), options.resume.absolute()
        if resume.is_relative_to(out):
            what = f"--resume {options.resume} is in --out {options.out}, which is replaced as a whole"
            raise Failure(f"{what}. Give a folder beside it, for example --resume {options.out}_resume.", 2)
    if options.resume is not None:
        try:
            check_folder(options.resume, about)
        except ValueError as error:
            raise Failure(f"--{error}") from error


def read_table(options: TrainOptions, stages: Stages) -> tuple[Table, Reading]:
    """The data of a file with what its columns are for, and how it was read."""
    has_times = resolve_loss(options.loss).target == "times"
    if options.strata is not None and not has_times:
        remedy = "For other losses use --groups, which keeps samples together, or --unpenalized indicators."
        raise Failure(f"--strata {options.strata} is for --loss cox, whose samples are compared. {remedy}")
    if options.event is not None and not has_times:
        raise Failure(f"--event {options.event} is for --loss cox, whose targets are EVENT,TIME. Leave it out.")
    given: dict[str, Any] = {}
    for role in fields(Roles):
        value = getattr(options, role.name)
        if value is not None:
            given[role.name] = tuple(value) if isinstance(value, list) else value
    other = None if options.targets_from is None else str(options.targets_from)
    reading = Reading(
        Roles(**given),
        options.format,
        options.transpose,
        other,
        dialect=options.dialect(),
        missing=options.missing,
    )
    check_dialect(reading.dialect, [*options.files, *([] if other is None else [Path(other)])], options.format)
    with stages.stage(f"Reading {options.file.name}"):
        table = load_table(options.files, reading, max_memory=options.max_memory)
    with data_of(table):
        return table.with_times() if has_times else table.with_targets(), reading


@contextmanager
def data_of(table: Table) -> Iterator[None]:
    """Turn a ValueError about the data into a message that says which option to type."""
    try:
        yield
    except ValueError as error:
        problem = str(error).replace(IMPUTE, FEATURES.fill)
        if problem.startswith("resume: "):  # which is not about the file
            raise Failure(f"--{problem}") from error
        raise Failure(f"{table.source}: {as_typed(problem)}") from error


# Arguments of Python as options of the command line.
_ARGUMENTS = {
    r"(Use|use) relaxed=False": r"Leave --relaxed out",
    r"relaxed=True": "--relaxed",
    r"fit_intercept=False": "--no-intercept",
    r"class_weight='balanced'": "--class-weight balanced",
    r"\bmax_memory=": "--max-memory ",
    r"\bmax_memory\b": "--max-memory",
    r"\b(unseen|group_scale|selection|scoring|loss|weights)='([^']*)'": r"--\1 \2",
    r"\b(max_iter|tol|ridge|eps|fdr|max_false)=([\d.e+-]*\d)": r"--\1 \2",
    r"Raise max_iter or tol\b": "Raise --max-iter or --tol",
    r"Give event == value for the value that stands for an event;": "Give --event CELL for the one that is an event;",
    r"The event comes first, then the time: .*": "The event comes first: --targets EVENT,TIME.",
    r"Raise (tol|fdr)\b": r"Raise --\1",
    r"\bn_repeats=(\d+)": r"--draws \1",
    r"\bdepend on random_state": "depend on --seed",
    r"\(StabilitySelector, --method stability\)": "(--method stability)",
    r"with n_selected=(\d+) of": r"with \1 of",
    r"lower n_selected, raise the threshold, or raise n_pairs": "or raise --pairs",
}


def as_typed(problem: str) -> str:
    """What is said about arguments of Python, as it can be typed."""
    for argument, option in _ARGUMENTS.items():
        problem = re.sub(argument, option, problem)
    problem = re.sub(r"--(group|max)_(scale|iter|false)\b", r"--\1-\2", problem)
    return commands.intervals_in_words(problem)


def make_estimator(table: Table, options: TrainOptions) -> Any:
    """An estimator of one alpha, or one that chooses alpha; options go by the names of its parameters."""
    is_single, are_labels = not isinstance(options, GridOptions), resolve_loss(options.loss).target == "labels"
    if are_labels and (table.is_classification or len(table.target_names) == 1):
        remedy = "For classes, or one target of 0 and 1, leave --loss out and use --task classification."
        raise Failure(f"--loss {options.loss} is for several targets of 0 and 1. {remedy}")
    if table.is_classification and options.loss != "squared":
        remedy = "Leave it out, or use --task regression."
        raise Failure(f"--loss {options.loss} is for numbers, but the target has classes. {remedy}")
    if table.offset is not None and len(table.classes) > 2:
        given = "--offset" if options.offset is not None else "--exposure"
        what = f"{given} adds the same number to all {len(table.classes)} classes, which changes no probability"
        raise Failure(f"{what}. Leave it out; in Python, fit(X, y, offset=) takes a column for each class.")
    _check_asked(table, options)
    has_ridge = np.max(options.ridge) > 0.0
    if not is_single and options.selection not in FOLD_RULES and (has_ridge or table.positive):
        asked = "--ridge" if has_ridge else "--positive"
        remedy = "Use the command cv, with --selection min or 1se."
        raise Failure(
            f"--selection {options.selection} counts degrees of freedom, which are not known with {asked}. {remedy}"
        )
    if not is_single and options.selection not in FOLD_RULES and not resolve_loss(options.loss).is_likelihood:
        remedy = "Use the command cv, with --selection min or 1se."
        raise Failure(
            f"--selection {options.selection} needs a likelihood, which --loss {options.loss} is not. {remedy}"
        )
    kinds: Any = (GroupOWLRegressorCV, GroupOWLClassifierCV, GroupOWLCoxCV)
    if is_single:
        kinds = (GroupOWLRegressor, GroupOWLClassifier, GroupOWLCox)
    estimator = kinds[2 if table.has_times else table.is_classification or are_labels]()
    known = estimator.get_params()
    estimator.set_params(**{name: value for name, value in vars(options).items() if name in known})
    if "class_weight" in known:
        names = table.classes if table.is_classification else table.target_names
        estimator.set_params(class_weight=_class_weight(getattr(options, "class_weight", None), names))
    if "fit_intercept" in known:
        estimator.set_params(fit_intercept=not getattr(options, "no_intercept", False))
    unpenalized: list[Any] = list(table.unpenalized)
    groups: dict[str, list[Any]] = dict(table.feature_groups)
    factor: dict[Any, float] = dict(table.penalty_factor)
    if not (isinstance(table.X, np.ndarray) or table.categories):  # which has no names
        position = table.feature_names.index
        unpenalized = list(map(position, unpenalized))
        groups = {name: list(map(position, members)) for name, members in groups.items()}
        factor = {position(name): value for name, value in factor.items()}
    estimator.set_params(
        random_state=options.seed,
        unpenalized=unpenalized or None,
        feature_groups=groups or None,
        categories=list(table.categories) or None,
        penalty_factor=ADAPTIVE if options.penalty_factor == [ADAPTIVE] else factor or None,
        positive=_positive(table),
    )
    if isinstance(options, FitOptions):
        estimator._keeps_solves = table.n_samples * table.n_features <= _PATH_ENTRIES  # for the path of the report
    estimator._keeps_details = isinstance(options, GridOptions)  # for scores and notes
    if isinstance(options, FoldOptions):
        estimator.set_params(n_jobs=options.jobs)
        if options.selection in FOLD_RULES:
            estimator.set_params(cv=_make_folds(table, options))
    return estimator


def _check_asked(table: Table, options: TrainOptions) -> None:
    """Refuse what is for another kind of targets."""
    if not isinstance(options, ModelOptions):
        return
    if options.class_weight and not (table.is_classification or resolve_loss(options.loss).target == "labels"):
        remedy = "Leave it out, or use --task classification; --sample-weight COLUMN is for numbers."
        raise Failure(f"--class-weight is for classes, but the targets are numbers or times. {remedy}")
    if options.scoring is None:
        return
    if table.has_times:
        raise Failure(f"--scoring {options.scoring} is not for times; concordance is always shown. Leave it out.")
    if table.offset is not None:
        remedy = "Leave it out: the score of the loss knows the offset."
        raise Failure(f"--scoring {options.scoring} would predict without the offset. {remedy}")
    if table.missing:
        remedy = "Leave it out: the score of the loss is that of observed targets."
        raise Failure(f"--scoring {options.scoring} needs all targets, and some are missing. {remedy}")


def _class_weight(given: Sequence[str] | None, classes: Sequence[Any]) -> Any:
    """Weights of classes as estimators take them: None, "balanced", or by class."""
    texts = [part.strip() for text in given or () for part in text.split(",")]
    if not texts or texts == ["balanced"]:
        return texts[0] if texts else None
    named, weights = {str(label): label for label in classes}, {}
    for text in texts:
        name, _, number = text.rpartition("=")
        if name not in named:
            remedy = f"give CLASS=NUMBER for classes of the target, {listed(list(named))}, or balanced"
            raise Failure(f"--class-weight {text}: {remedy}.")
        try:
            weights[named[name]] = number_in("class-weight", float(number), "(0, inf)")
        except ValueError:
            raise Failure(f"--class-weight {text}: the weight must be a positive number.") from None
    return weights


def _positive(table: Table) -> Any:
    """The argument ``positive`` of estimators: for all features, by name, or by number if X has no names."""
    if len(table.positive) + len(table.unpenalized) == table.n_features:
        return True
    if not table.positive or isinstance(table.X, np.ndarray) or table.categories:
        return list(table.positive) or False
    signs = np.zeros(table.n_features)
    signs[[table.feature_names.index(name) for name in table.positive]] = 1.0
    return signs


def _make_folds(table: Table, options: FoldOptions) -> Any:
    """Shuffled folds; groups stay together, every fold has its share of each class."""
    folds, seed, repeats = options.folds, options.seed, options.repeats
    present = slice(None) if table.sample_weight is None else table.sample_weight > 0.0
    what, count = "samples", len(table.y[present])
    if table.groups is not None:
        what, count = "groups", len(np.unique(table.groups[present]))
    elif table.is_classification:
        labels, numbers = np.unique(table.y[present], return_counts=True)
        rarest = int(np.argmin(numbers))
        what, count = f"samples of class {labels[rarest].item()!r}", int(numbers[rarest])
    if count < folds:
        found = f"there {'is' if count == 1 else 'are'} {count}"
        has_criteria = resolve_loss(options.loss).is_likelihood and not (np.max(options.ridge) > 0.0 or table.positive)
        remedy = "Use fewer folds, or --selection bic, which needs none." if has_criteria else "Use fewer folds."
        raise Failure(f"--folds {folds} needs at least {folds} {what}, but {found}. {remedy}")
    if table.groups is not None and repeats > 1:
        what = f"--repeats {repeats} makes other folds each time, but those of --groups are always the same"
        raise Failure(f"{what}. Leave one of the two out.")
    if table.groups is not None:
        return (StratifiedGroupKFold if table.is_classification else GroupKFold)(folds)
    if repeats > 1:
        kind = RepeatedStratifiedKFold if table.is_classification else RepeatedKFold
        return kind(n_splits=folds, n_repeats=repeats, random_state=seed)
    return (StratifiedKFold if table.is_classification else KFold)(folds, shuffle=True, random_state=seed)


def _fit(estimator: Any, table: Table, X: Design, *, verbose: bool) -> tuple[list[str], bool]:
    """Fit; returns what it has warned of, and whether all of it converged."""
    groups = {} if getattr(estimator, "cv", None) is None else {"groups": table.groups}
    estimator.set_params(verbose=int(verbose))
    with data_of(table), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        estimator.fit(X, table.target_frame, sample_weight=table.sample_weight, offset=table.offset, **groups)
    estimator.set_params(verbose=0, resume=None)
    notes = dict.fromkeys(as_typed(" ".join(str(item.message).split())) for item in caught)
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

    path: PathResult = estimator._path_through_fit(alphas_of, lambda progress: time.monotonic() > deadline)
    return None if path.stopped_because == "callback" else path


# A saved model and another file -------------------------------------------------------------------------


def _adapted(reading: Reading, options: commands.ApplyOptions) -> Reading:
    """The reading of the fit with what the options change; the format is that of this file's suffix."""
    roles = reading.roles if options.id_column is None else replace(reading.roles, id_column=options.id_column)
    transpose = reading.transpose if options.transpose is None else options.transpose
    missing = getattr(options, "missing", None) or reading.missing
    dialect = options.dialect(reading.dialect.of_file(options.files[0]))
    return replace(reading, roles=roles, transpose=transpose, format=options.format, dialect=dialect, missing=missing)


def _survival_columns(
    estimator: Any, X: Design, offset: FloatArray | None, targets: Sequence[str], options: Any
) -> dict[str, Any]:
    """Probabilities of having no event until some times, for each target."""
    if not hasattr(estimator, "baseline_times_"):
        raise Failure(f"--times is for models of --loss cox, and {options.model} is none. Leave it out.")
    if hasattr(estimator, "strata_"):
        remedy = "In Python, groupowl.load and predict_survival_function(X, times, strata) predict it."
        raise Failure(f"--times: {options.model} has a baseline hazard for each stratum. {remedy}")
    survival = estimator.predict_survival_function(X, options.times, offset=offset)
    survival = survival.reshape(X.shape[0], len(options.times), -1)
    named = [(k, t, f"p({name} > {time:g})") for k, name in enumerate(targets) for t, time in enumerate(options.times)]
    return {name: survival[:, t, k].tolist() for k, t, name in named}


def _at_alpha(estimator: Any, options: commands.PredictOptions) -> tuple[Any, list[str]]:
    """The model at another alpha of its path, and what to know about it."""
    if options.alpha is None:
        return estimator, []
    if not hasattr(estimator, "path_"):
        what = f"--alpha: {options.model} holds one fit, at alpha {estimator.alpha_:.6g}, and no path"
        raise Failure(f"{what}. Give a folder of the command path or cv, or fit again at that alpha.")
    alphas = estimator.path_.alphas
    nearest = float(alphas[np.argmin(np.abs(np.log(alphas / options.alpha)))])
    alpha = nearest if abs(options.alpha / nearest - 1.0) < _SAME_ALPHA else options.alpha
    if not alphas[-1] <= alpha <= alphas[0]:
        what = f"--alpha {options.alpha:g} is outside of the path of {options.model}"
        remedy = f"Give a number from {alphas[-1]:.6g} to {alphas[0]:.6g}; alphas.csv lists those that were fitted."
        raise Failure(f"{what}. {remedy}")
    if alpha == estimator.alpha_:
        return estimator, []
    if options.times is not None:
        what = f"--times needs the baseline hazard, which is that of alpha {estimator.alpha_:.6g}"
        raise Failure(f"{what}. Leave --alpha or --times out, or fit again at that alpha.")
    notes = []
    if estimator.relaxed:
        notes.append(f"Alpha {alpha:.6g} of the path is a penalized fit: only the chosen one is relaxed.")
    if alpha != nearest:
        notes.append(f"Alpha {alpha:.6g} was not fitted: coefficients are those between its neighbors on the path.")
    return estimator._at_alpha(alpha), notes


@command(example="groupowl predict model new.csv --out predictions.csv")
def predict(options: commands.PredictOptions) -> None:
    """Predict the targets of new samples, and score the predictions where the file has the targets.

    Columns are matched by name: a missing one is an error unless the model does not select it; others are ignored and
    listed. Targets need not be there. Predictions are in columns called predicted_TARGET; classes come with their
    probabilities, times until events as logarithms of relative hazards, and with --times as chances of having no event
    until then. Text that a spreadsheet would run, such as an id that begins with =, has an apostrophe in front.
    """
    out = None if options.out is None or is_standard_output(options.out) else options.out
    check_out(out, force=options.force, kind="file")
    run, stages = read_run(options.model), Stages(options.quiet)
    estimator, notes = _at_alpha(run.estimator, options)
    if options.unseen is not None:
        estimator.set_params(unseen=options.unseen)
    with stages.stage(f"Reading {options.file.name}"):
        features = _features_of(run, estimator, options)
    n_samples = features.X.shape[0]
    with stages.stage("Predicting"):
        X = named_design(features.X, run.features)
        try:
            columns = _predicted_columns(run, estimator, X, features, options)
        except ValueError as error:
            if fitted_categories(vars(estimator)) is None:
                raise
            raise Failure(f"{options.file}: {as_typed(str(error))}") from error
        text = csv_text([columns, *zip(*columns.values(), strict=True)])
        scores = _scores_of_new(run, estimator, X, features, options)
    if features.extra:
        found = counted(len(features.extra), "column")
        notes.append(f"The model ignores {found} that it does not know: {listed(features.extra, shown=10)}.")
    if features.absent:
        found = f"{counted(len(features.absent), 'feature')} that the model has not selected"
        notes.append(f"The file lacks {found}, which changes no prediction: {listed(features.absent, shown=10)}.")
    if features.rows is not None:
        gone = np.setdiff1d(np.arange(n_samples + features.n_left_out), features.rows) + 1
        found = f"{counted(len(gone), 'sample')} that lack features of the model"
        notes.append(f"Left out: {found} (row {listed(gone.tolist(), shown=10)}).")
    if not (options.quiet or options.json):
        for note in notes:
            tell(note)
    if out is not None:
        with stages.stage("Writing"):
            write_file(out, text)
    with printing("nothing was written" if out is None else f"{out} was written"):
        if options.json:
            described = {"command": "predict", "model": options.model, "file": options.file, "n_samples": n_samples}
            described |= {"alpha": estimator.alpha_, "notes": [*verdicts(scores.scores), *notes, *scores.notes]}
            described |= {"ignored_columns": features.extra, "absent_features": features.absent}
            described |= {"columns": list(columns)} | ({"predictions": columns} if out is None else {})
            described |= {"scores": {name: score.described() for name, score in scores.scores.items()}}
            described |= {"confusion": [confusion.described() for confusion in scores.confusion]}
            print_json(described | {"written": [] if out is None else [out]})
        elif out is None:
            say(text, end="")
        elif not options.quiet:
            say(f"{counted(n_samples, 'sample')} predicted.")
            print_paths([out])
            print_evaluation(scores)
    if out is None and not (options.quiet or options.json):  # where predictions are on stdout
        print_evaluation(scores, on_stderr=True)


def _features_of(run: SavedRun, estimator: Any, options: commands.PredictOptions) -> Features:
    """The features that a model needs, and the targets where the file has them."""
    roles, coding = run.reading.roles, fitted_categories(vars(estimator))
    others = [name for name in (*roles.of_samples.values(), *roles.id_columns) if name is not None]
    support = estimator.get_support(indices=True)
    support = support if coding is None else np.unique(coding.source[support])
    needed = tuple(run.features[j] for j in support.tolist())
    reading, known = _adapted(run.reading, options), (*run.targets, *run.ignored, *others)
    how: Any = {"needed": needed, "needs_ids": options.id_column is not None}
    how |= {"categories": {} if coding is None else coding.levels}
    how |= {"targets": run.target_columns, "task": run.task, "has_times": hasattr(estimator, "baseline_times_")}
    how["max_memory"] = options.max_memory
    how["fills"] = None if options.missing == "drop" else run.fills
    return load_features(options.files, reading, run.features, known, **how)


def _predicted_columns(
    run: SavedRun, estimator: Any, X: Any, features: Features, options: commands.PredictOptions
) -> dict[str, Any]:
    """Columns of the file of predictions by name: ids or numbers of rows, predictions, probabilities."""
    n_samples = features.X.shape[0]
    rows = np.arange(n_samples) if features.rows is None else features.rows
    columns: dict[str, Any] = {"row": (rows + 1).tolist()}
    if features.ids is not None:
        columns = {features.id_name or run.reading.roles.id_columns[0] or "id": features.ids}
    predicted = np.asarray(estimator.predict(X, offset=features.offset)).reshape(n_samples, -1)
    is_hazard = hasattr(estimator, "baseline_times_")
    names = [f"log hazard({name})" if is_hazard else f"predicted_{name}" for name in run.targets]
    columns |= dict(zip(names, predicted.T.tolist(), strict=True))
    if options.times is not None:
        columns |= _survival_columns(estimator, X, features.offset, run.targets, options)
    if hasattr(estimator, "classes_"):
        chances = estimator.predict_proba(X, offset=features.offset).T.tolist()
        named = zip(task_names(vars(estimator)), chances, strict=True)
        columns |= {f"p({label})": column for label, column in named}
    return columns


def _scores_of_new(
    run: SavedRun, estimator: Any, X: Any, features: Features, options: commands.PredictOptions
) -> Evaluation:
    """Scores of the samples whose targets are in the file."""
    if features.known is None or features.known_rows is None:
        return Evaluation({}, notes=features.notes)
    rows = features.known_rows
    if len(rows) < features.X.shape[0]:
        part = X.rows(rows) if isinstance(X, Design) else take_rows(X, rows)
        X = named_design(part, run.features) if isinstance(X, Design) else part
    notes: tuple[str, ...] = ()
    if run.file and os.path.realpath(run.file) == os.path.realpath(features.known.source):
        notes = ("This is the file of the fit: the scores say little about new data.",)
    try:
        found = evaluate_new(estimator, X, features.known, run.null_model)
    except ValueError as error:
        return Evaluation({}, notes=(f"Targets are not scored: {error}",))
    return replace(found, notes=notes)


@command(example="groupowl verify model train.csv")
def verify(options: commands.VerifyOptions) -> None:
    """Check a model against its data: all that the fit says is computed again from the file.

    Objective, duality gap, status, weights, clusters and coefficients, and of path and cv every alpha, the scores and
    the choice. The file is read as in the fit, samples that were held out are left out again. Exit code 1 if the fit
    does not hold.
    """
    run = read_run(options.model)
    reading, stages = _adapted(run.reading, options), Stages(options.quiet)
    if options.targets_from is not None:
        reading = replace(reading, targets_from=str(options.targets_from))
    is_unknown = not run.has_record and not reading.roles.targets and reading.targets_from is None
    targets = options.targets or (run.targets if is_unknown else reading.roles.targets)
    reading = replace(reading, roles=replace(reading.roles, targets=tuple(targets)))
    with stages.stage(f"Reading {options.file.name}"):
        try:
            table = load_table(options.files, reading, max_memory=options.max_memory)
            has_times = hasattr(run.estimator, "baseline_times_")
            table = table.with_times() if has_times else table.with_targets()
            if run.fills is not None:
                table = table.with_fills(run.fills)
        except TableError as error:
            if not any(name in str(error) for name in _FITTED_OPTIONS):
                raise
            whose = f"The file is read with the options of the fit, as {options.model} has them"
            raise TableError(f"{error} ({whose}; give the file of the fit.)") from error
    if run.test_size is not None:
        table = table.rows(held_out_rows(table, run.test_size, run.seed)[0])
    if table.feature_names != run.features:
        known, there = set(run.features), set(table.feature_names)
        missing = [name for name in run.features if name not in there]
        extra = [name for name in table.feature_names if name not in known]
        found = [f"lacks {listed(missing)}" if missing else "", f"has also {listed(extra)}" if extra else ""]
        how = " and ".join(filter(None, found)) or "has them in another order"
        raise TableError(f"{table.source} does not have the features of the fit: it {how}. Give the file of the fit.")
    is_search = hasattr(run.estimator, "search_results_")
    search = {"scores": options.scores, "groups": table.groups} if is_search else {}
    with stages.stage("Verifying"):
        try:
            X = named_design(table.X, run.features)
            given = {"sample_weight": table.sample_weight, "offset": table.offset, **search}
            with progress_line(int(not options.quiet), "verifying"):
                answer = run.estimator.verify(X, table.target_frame, **given)
        except ValueError as error:
            raise Failure(f"{options.file} does not fit the model: {error}") from error
    with printing():
        if options.json:
            print_json({"command": "verify", "holds": bool(answer), **asdict(answer)})
        elif not options.quiet:
            say(_verification_page(answer, table.source, "" if answer else run.difference(table)))
    if not answer:
        raise Failure(f"the fit in {options.model} does not hold on {options.file}.")


def _verification_page(answer: Verification, source: str, difference: str) -> str:
    """The page about a verification; for other data than those of the fit it is short, because all else follows."""
    if not difference:
        return str(answer)
    lines = [
        f"{source} is not the data of the fit: {difference}.",
        "Verification: the fit does NOT hold on these data",
        f"  objective {answer.objective:.10g} from the data; the fit says {answer.claimed_objective:.10g}",
        f"  duality gap {answer.gap:.3g}; the tolerance of the fit allows {answer.goal:.3g}",
        "  [not checked] all else that the fit says; --json has every detail",
    ]
    return "\n".join(lines)
