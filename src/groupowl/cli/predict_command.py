"""``groupowl predict`` and ``verify``: a saved model and another file."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from .._text import counted, listed
from ..tables import Features, Reading, Table, TableError, load_features, load_table
from .commands import FORMATS, FormatName, TalkOptions, command
from .messages import Failure, is_standard_output, print_paths, printing, say, tell
from .outcome import held_out_rows, named_design
from .run_folder import SavedRun, check_out_file, csv_text, read_run, write_file
from .terminal import Stages, print_json


@dataclass(frozen=True)
class ApplyOptions:
    """A model and a file; how the file of the fit was read is known, unless an option says otherwise."""

    model: Annotated[Path, typer.Argument(metavar="MODEL", help="Folder that fit, path or cv has written.")]
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Data, in any format that fit reads.")]
    transpose: Annotated[
        bool | None, typer.Option("--transpose/--no-transpose", help="Rows are features; as in the fit by default.")
    ] = None
    format: Annotated[
        FormatName | None, typer.Option(metavar="NAME", help=f"Format of FILE, by its suffix by default: {FORMATS}.")
    ] = None
    id_column: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Names of samples; as in the fit by default.")
    ] = None

    def adapted(self, reading: Reading) -> Reading:
        """The reading of the fit with what the options change; the format is that of this file's suffix."""
        roles = reading.roles if self.id_column is None else replace(reading.roles, id_column=self.id_column)
        transpose = reading.transpose if self.transpose is None else self.transpose
        return replace(reading, roles=roles, transpose=transpose, format=self.format)


@dataclass(frozen=True)
class PredictOptions(TalkOptions):
    """Where predictions go."""

    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="CSV file to write; on screen by default.")
    ] = None
    force: Annotated[bool, typer.Option("--force", help="Replace an earlier file.")] = False


@dataclass(frozen=True)
class VerifyOptions:
    """Where the targets of the fit are."""

    targets: Annotated[
        list[str] | None,
        typer.Option("--targets", "-t", metavar="COLUMNS", help="Columns of the targets; as in the fit by default."),
    ] = None
    targets_from: Annotated[Path | None, typer.Option(metavar="FILE", help="File of the targets, if it has moved.")] = (
        None
    )
    scores: Annotated[
        bool, typer.Option("--scores/--no-scores", help="Fit the folds of cv again, which takes as long as it did.")
    ] = True

    def adapted(self, reading: Reading) -> Reading:
        """The reading of the fit with what the options change."""
        roles = reading.roles if not self.targets else replace(reading.roles, targets=tuple(self.targets))
        other = reading.targets_from if self.targets_from is None else str(self.targets_from)
        return replace(reading, roles=roles, targets_from=other)


# Options of a fit that verify takes over and has not itself.
_FITTED_OPTIONS = ("--drop", "--groups", "--sample-weight", "--unpenalized")


# predict ------------------------------------------------------------------------------------------------


@command(example="groupowl predict model new.csv --out predictions.csv")
def predict(apply: ApplyOptions, options: PredictOptions) -> None:
    """Predict the targets of new samples.

    Columns are matched by name: a missing one is an error unless the model does not select it; others are ignored and
    listed. Targets need not be there. Classes come with their probabilities. Text that a spreadsheet would run, such as
    an id that begins with =, has an apostrophe in front.
    """
    if options.out is not None and is_standard_output(options.out):
        options = replace(options, out=None)
    check_out_file(options.out, force=options.force)
    run = read_run(apply.model)
    stages = Stages(options.quiet)
    with stages.stage(f"Reading {apply.file.name}"):
        reading, needs_ids = apply.adapted(run.reading), apply.id_column is not None
        features = load_features(apply.file, reading, run.features, run.known, needed=run.selected, needs_ids=needs_ids)
    with stages.stage("Predicting"):
        columns = _predictions(run, features)
        text = csv_text([columns, *zip(*columns.values(), strict=True)])
    if not (options.quiet or options.json):
        for note in _notes(features):
            tell(note)
    if options.out is not None:
        with stages.stage("Writing"):
            write_file(options.out, text)
    with printing("nothing was written" if options.out is None else f"{options.out} was written"):
        if options.json:
            described = {
                "command": "predict",
                "model": apply.model,
                "file": apply.file,
                "n_samples": features.X.shape[0],
                "ignored_columns": features.extra,
                "absent_features": features.absent,
                "columns": list(columns),
            }
            answer = {"predictions": columns, "written": []} if options.out is None else {"written": [options.out]}
            print_json(described | answer)
        elif options.out is None:
            say(text, end="")
        elif not options.quiet:
            say(f"{counted(features.X.shape[0], 'sample')} predicted.")
            print_paths([options.out])


def _predictions(run: SavedRun, features: Features) -> dict[str, list[Any]]:
    """Columns of the answer: ids, then targets, or the class and the probability of each."""
    estimator, X = run.estimator, named_design(features.X, run.features)
    name = features.id_name or run.reading.roles.id_columns[0] or "id"
    columns: dict[str, list[Any]] = (
        {"row": list(range(1, X.shape[0] + 1))} if features.ids is None else {name: list(features.ids)}
    )
    predicted = np.asarray(estimator.predict(X))
    if hasattr(estimator, "classes_"):
        columns[run.targets[0]] = predicted.tolist()
        chances = estimator.predict_proba(X)
        columns |= {f"p({label})": column for label, column in zip(estimator.classes_, chances.T.tolist(), strict=True)}
        return columns
    return columns | dict(zip(run.targets, predicted.reshape(len(predicted), -1).T.tolist(), strict=True))


def _notes(features: Features) -> list[str]:
    """Columns of the file that play no part, and features that it has not."""
    notes = []
    if features.extra:
        verb, names = "is" if len(features.extra) == 1 else "are", listed(features.extra, shown=10)
        notes.append(f"{counted(len(features.extra), 'column')} that the model does not know {verb} ignored: {names}.")
    if features.absent:
        verb = "was not selected and is" if len(features.absent) == 1 else "were not selected and are"
        notes.append(
            f"{counted(len(features.absent), 'feature')} that {verb} not in the file, which changes no prediction: "
            f"{listed(features.absent, shown=10)}."
        )
    return notes


# verify -------------------------------------------------------------------------------------------------


@command(example="groupowl verify model train.csv")
def verify(apply: ApplyOptions, data: VerifyOptions, talk: TalkOptions) -> None:
    """Check a model against its data: all that the fit says is computed again from the file.

    Objective, duality gap, status, weights, clusters and coefficients, and of path and cv every alpha, the scores and
    the choice. The file is read as in the fit, samples that were held out are left out again. Exit code 1 if the fit
    does not hold.
    """
    run = read_run(apply.model)
    reading = data.adapted(apply.adapted(run.reading))
    if not run.has_record and not reading.roles.targets and reading.targets_from is None:
        reading = replace(reading, roles=replace(reading.roles, targets=run.targets))
    stages = Stages(talk.quiet)
    with stages.stage(f"Reading {apply.file.name}"):
        table = _load_as_fitted(apply, reading)
    if run.test_size is not None:
        table = table.rows(held_out_rows(table, run.test_size, run.seed)[0])
    _check_features(run, table)
    search: dict[str, Any] = {}
    if hasattr(run.estimator, "search_results_"):
        search = {"scores": data.scores} | ({} if table.groups is None else {"groups": table.groups})
    with stages.stage("Verifying"):
        try:
            answer = run.estimator.verify(
                named_design(table.X, run.features), table.target_frame, sample_weight=table.sample_weight, **search
            )
        except ValueError as error:
            raise Failure(f"{apply.file} does not fit the model: {error}") from error
    with printing():
        if talk.json:
            print_json({"command": "verify", "holds": bool(answer), **asdict(answer)})
        elif not talk.quiet:
            say(answer)
    if not answer:
        raise Failure(f"the fit in {apply.model} does not hold on {apply.file}.")


def _load_as_fitted(apply: ApplyOptions, reading: Reading) -> Table:
    """The table; a message about options that nobody has typed here says whose they are."""
    try:
        return load_table(apply.file, reading)
    except TableError as error:
        if not any(option in str(error) for option in _FITTED_OPTIONS):
            raise
        raise TableError(
            f"{error} (The file is read with the options of the fit, as {apply.model} has them; give the file of the "
            "fit.)"
        ) from error


def _check_features(run: SavedRun, table: Table) -> None:
    if table.feature_names == run.features:
        return
    missing = [name for name in run.features if name not in set(table.feature_names)]
    extra = [name for name in table.feature_names if name not in set(run.features)]
    found = [f"lacks {listed(missing)}" if missing else "", f"has also {listed(extra)}" if extra else ""]
    how = " and ".join(part for part in found if part) or "has them in another order"
    raise TableError(f"{table.source} has not the features of the fit: it {how}. Give the file of the fit.")
