"""``groupowl predict`` and ``verify``: a saved model and another file."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import typer

from .._text import counted, listed
from ..tables import Reading, TableError, load_features, load_table
from .commands import FORMATS, FormatName, Options, TalkOptions, command, option
from .messages import Failure, is_standard_output, print_paths, printing, say, tell
from .outcome import held_out_rows, named_design
from .run_folder import check_out_file, csv_text, read_run, write_file
from .terminal import Stages, print_json

# Options of a fit that verify takes over and has not itself.
_FITTED_OPTIONS = ("--drop", "--groups", "--sample-weight", "--unpenalized")


class ApplyOptions(Options):
    """A model and a file; how the file of the fit was read is known, unless an option says otherwise."""

    model: Path = typer.Argument(metavar="MODEL", help="Folder that fit, path or cv has written.")
    file: Path = typer.Argument(metavar="FILE", help="Data, in any format that fit reads.")
    transpose: bool | None = option(
        None, "", "Rows are features; as in the fit by default.", "--transpose/--no-transpose"
    )
    format: FormatName | None = option(None, "NAME", f"Format of FILE, by its suffix by default: {FORMATS}.")
    id_column: str | None = option(None, "COLUMN", "Names of samples; as in the fit by default.")

    def adapted(self, reading: Reading) -> Reading:
        """The reading of the fit with what the options change; the format is that of this file's suffix."""
        roles = reading.roles if self.id_column is None else replace(reading.roles, id_column=self.id_column)
        transpose = reading.transpose if self.transpose is None else self.transpose
        return replace(reading, roles=roles, transpose=transpose, format=self.format)


class PredictOptions(TalkOptions, ApplyOptions):
    """Where predictions go."""

    out: Path | None = option(None, "FILE", "CSV file to write; on screen by default.", "--out", "-o")
    force: bool = option(False, "", "Replace an earlier file.", "--force")


class VerifyOptions(TalkOptions, ApplyOptions):
    """Where the targets of the fit are."""

    targets: list[str] | None = option(
        None, "COLUMNS", "Columns of the targets; as in the fit by default.", "--targets", "-t"
    )
    targets_from: Path | None = option(None, "FILE", "File of the targets, if it has moved.")
    scores: bool = option(True, "", "Fit the folds of cv again, which takes as long as it did.", "--scores/--no-scores")


@command(example="groupowl predict model new.csv --out predictions.csv")
def predict(options: PredictOptions) -> None:
    """Predict the targets of new samples.

    Columns are matched by name: a missing one is an error unless the model does not select it; others are ignored and
    listed. Targets need not be there. Classes come with their probabilities. Text that a spreadsheet would run, such as
    an id that begins with =, has an apostrophe in front.
    """
    out = options.out
    if out is not None and is_standard_output(out):
        out = None
    check_out_file(out, force=options.force)
    run = read_run(options.model)
    estimator, stages = run.estimator, Stages(options.quiet)
    with stages.stage(f"Reading {options.file.name}"):
        reading, roles = options.adapted(run.reading), run.reading.roles
        others = [name for name in (roles.groups, roles.sample_weight, *roles.id_columns) if name is not None]
        used = np.flatnonzero(np.any(np.atleast_2d(estimator.coef_), axis=0)).tolist()
        features = load_features(
            options.file,
            reading,
            run.features,
            (*run.targets, *run.ignored, *others),
            needed=tuple(run.features[j] for j in used),
            needs_ids=options.id_column is not None,
        )
    columns: dict[str, Any] = {"row": range(1, features.X.shape[0] + 1)}
    if features.ids is not None:
        columns = {features.id_name or roles.id_columns[0] or "id": features.ids}
    with stages.stage("Predicting"):
        X = named_design(features.X, run.features)
        predicted = np.asarray(estimator.predict(X))
        columns |= dict(zip(run.targets, predicted.reshape(len(predicted), -1).T.tolist(), strict=True))
        if hasattr(estimator, "classes_"):
            chances = zip(estimator.classes_, estimator.predict_proba(X).T.tolist(), strict=True)
            columns |= {f"p({label})": column for label, column in chances}
        text = csv_text([columns, *zip(*columns.values(), strict=True)])
    if not (options.quiet or options.json):
        extra, absent = features.extra, features.absent
        if extra:
            verb, names = "is" if len(extra) == 1 else "are", listed(extra, shown=10)
            tell(f"{counted(len(extra), 'column')} that the model does not know {verb} ignored: {names}.")
        if absent:
            verb = "was not selected and is" if len(absent) == 1 else "were not selected and are"
            what = f"that {verb} not in the file, which changes no prediction"
            tell(f"{counted(len(absent), 'feature')} {what}: {listed(absent, shown=10)}.")
    if out is not None:
        with stages.stage("Writing"):
            write_file(out, text)
    with printing("nothing was written" if out is None else f"{out} was written"):
        if options.json:
            described = {
                "command": "predict",
                "model": options.model,
                "file": options.file,
                "n_samples": features.X.shape[0],
                "ignored_columns": features.extra,
                "absent_features": features.absent,
                "columns": list(columns),
            }
            print_json(described | ({"predictions": columns, "written": []} if out is None else {"written": [out]}))
        elif out is None:
            say(text, end="")
        elif not options.quiet:
            say(f"{counted(features.X.shape[0], 'sample')} predicted.")
            print_paths([out])


@command(example="groupowl verify model train.csv")
def verify(options: VerifyOptions) -> None:
    """Check a model against its data: all that the fit says is computed again from the file.

    Objective, duality gap, status, weights, clusters and coefficients, and of path and cv every alpha, the scores and
    the choice. The file is read as in the fit, samples that were held out are left out again. Exit code 1 if the fit
    does not hold.
    """
    run = read_run(options.model)
    reading, stages = options.adapted(run.reading), Stages(options.quiet)
    if options.targets_from is not None:
        reading = replace(reading, targets_from=str(options.targets_from))
    is_unknown = not run.has_record and not reading.roles.targets and reading.targets_from is None
    targets = options.targets or (run.targets if is_unknown else reading.roles.targets)
    reading = replace(reading, roles=replace(reading.roles, targets=tuple(targets)))
    with stages.stage(f"Reading {options.file.name}"):
        try:
            table = load_table(options.file, reading)
        except TableError as error:
            if not any(name in str(error) for name in _FITTED_OPTIONS):
                raise
            raise TableError(  # about options that nobody has typed here
                f"{error} (The file is read with the options of the fit, as {options.model} has them; give the file of "
                "the fit.)"
            ) from error
    if run.test_size is not None:
        table = table.rows(held_out_rows(table, run.test_size, run.seed)[0])
    if table.feature_names != run.features:
        known, there = set(run.features), set(table.feature_names)
        missing = [name for name in run.features if name not in there]
        extra = [name for name in table.feature_names if name not in known]
        found = [f"lacks {listed(missing)}" if missing else "", f"has also {listed(extra)}" if extra else ""]
        how = " and ".join(filter(None, found)) or "has them in another order"
        raise TableError(f"{table.source} has not the features of the fit: it {how}. Give the file of the fit.")
    search: dict[str, Any] = {}
    if hasattr(run.estimator, "search_results_"):
        search = {"scores": options.scores} | ({} if table.groups is None else {"groups": table.groups})
    with stages.stage("Verifying"):
        try:
            X = named_design(table.X, run.features)
            answer = run.estimator.verify(X, table.target_frame, sample_weight=table.sample_weight, **search)
        except ValueError as error:
            raise Failure(f"{options.file} does not fit the model: {error}") from error
    with printing():
        if options.json:
            print_json({"command": "verify", "holds": bool(answer), **asdict(answer)})
        elif not options.quiet:
            say(answer)
    if not answer:
        raise Failure(f"the fit in {options.model} does not hold on {options.file}.")
