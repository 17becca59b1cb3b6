"""The folder of a run: written whole or not at all, and read again by ``predict`` and ``verify``."""

from __future__ import annotations

import csv
import io
import json
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

import numpy as np

from .. import __version__, _files
from .._text import counted, listed
from .._typing import FloatArray
from ..designs import Design, as_design
from ..designs.disk.matrix_folder import RECORD
from ..inputs import coefficient_columns, exclusive_classes, task_names
from ..storage import load, read_settled, save
from ..tables import Dialect, Reading, Roles, Table
from ..tables.sheet import is_number
from ..tables.table import NumberedNames
from .evaluation import null_constants
from .messages import Failure, writing
from .outcome import Outcome

#: Names of the files in the folder; the model is a folder of its own.
MODEL, RUN, COEFFICIENTS, REPORT = "model", "run.json", "coefficients.csv", "report.html"
ALPHAS, UNMATCHED, BASELINE = "alphas.csv", "unmatched_ids.csv", "baseline_hazard.csv"
#: Of a selection, which has no model.
SELECTION, PICTURE = "selection.csv", "selection.svg"

# What makes spreadsheets take the rest of a cell for a formula, also in the width of East Asian letters.
_FORMULA_MARKS = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")

# Columns of the table of alphas, where there are folds or a criterion.
_SCORES = {"mean_score": "mean_score_path_", "standard_error": "std_error_path_", "criterion": "criterion_path_"}

Made = TypeVar("Made")

_KIND = "groupowl run"
# 2: names of features that are only numbered are not listed. Others are written as 1 was, for earlier versions.
_FORMAT_VERSION = 2
# Difference of two computations of a null model, relative to its targets.
_NULL_RTOL = 1e-9
# Features whose sums are kept, and the difference of two computations relative to the norm of a feature.
_MOST_SUMS = 10_000
_SUM_RTOL = 1e-6
# Rows of a table of coefficients that are text at a time.
_ROWS_AT_ONCE = 100_000


# Where to write -----------------------------------------------------------------------------------------


def check_out(
    out: Path | None, *, force: bool, kind: str = "folder", is_ours: Callable[[Path], bool] | None = None
) -> None:
    """Refuse a folder or a file that cannot be written or would be lost, before any work is done.

    ``is_ours`` tells folders that may be replaced: those of a run by default.
    """
    if out is None or (kind == "file" and _files.is_stream(out)):  # which is written to, not replaced
        return
    with writing(out):
        if out.exists() and not (out.is_dir() if kind == "folder" else out.is_file()):
            raise Failure(f"cannot write to {out}: it is no {kind}. Give the name of a new {kind}.")
        is_taken = any(out.iterdir()) if out.is_dir() else out.exists()
        if is_taken and kind == "folder" and not (is_ours or is_run_folder)(out):
            raise Failure(f"{out} holds other files, which would be lost. Give the name of a new folder.")
        if is_taken and not force:
            raise Failure(f"{out} exists. Use --force to replace it, or another name.")
        nearest = next(parent for parent in Path(os.path.realpath(out)).parents if parent.exists())
        tempfile.TemporaryFile(dir=nearest).close()


def is_matrix_folder(folder: Path) -> bool:
    """Whether ``groupowl convert`` has written the folder."""
    return (folder / RECORD).is_file()


def is_run_folder(folder: Path) -> bool:
    """Whether a run has written the folder."""
    return (folder / RUN).is_file() and ((folder / MODEL).is_dir() or (folder / SELECTION).is_file())


def write_file(path: Path, content: str | bytes) -> None:
    """Write a file whole or not at all; its folder is made."""
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        _files.write_file(path, content)


# What to write ------------------------------------------------------------------------------------------


def write_outcome(outcome: Outcome, out: Path | None, *, force: bool) -> tuple[list[Path], str | None]:
    """Write everything; returns the paths, and what to say if the report failed and the rest did not."""
    if out is None:
        return [], None
    check_out(out, force=force)  # again: hours may have passed
    problem = None
    table, path, match = outcome.table, outcome.path, outcome.table.match
    with writing(out), _files.fresh_folder(Path(os.path.realpath(out))) as folder:
        save(outcome.estimator, folder / MODEL)
        _write_coefficients(folder / COEFFICIENTS, outcome)
        texts = {RUN: json.dumps(_record(outcome), indent=1) + "\n"}
        if path is not None:
            columns: dict[str, Any] = {
                "alpha": path.alphas,
                "selected": path.n_selected,
                "clusters": [int(point.clusters.max(initial=0)) for point in path],
                "deviance_explained": path.deviance_ratio,
                "gap": path.dual_gaps,
                "status": path.statuses,
            }
            fitted = outcome.estimator
            columns |= {name: getattr(fitted, found) for name, found in _SCORES.items() if hasattr(fitted, found)}
            columns |= outcome.criteria
            texts[ALPHAS] = csv_text([columns, *zip(*columns.values(), strict=True)])
        if table.has_times:
            texts[BASELINE] = csv_text(_baseline_rows(outcome))
        if match is not None and (match.only_left or match.only_right):
            left = [(table.source, name) for name in match.only_left]
            right = [(outcome.reading.targets_from, name) for name in match.only_right]
            texts[UNMATCHED] = csv_text([("file", "id"), *left, *right])
        for name, text in texts.items():
            (folder / name).write_text(text, encoding="utf-8", newline="")
        try:
            write_report_file(folder / REPORT, outcome)
        except OSError:
            raise
        except Exception as error:  # a fit of hours is not lost for a picture
            problem = f"the report could not be written ({type(error).__name__}: {error}); the other files are in {out}"
            (folder / REPORT).unlink(missing_ok=True)
        names = sorted(path.name for path in folder.iterdir())
    return [out / name for name in (MODEL, *(name for name in names if name != MODEL))], problem


def _baseline_rows(outcome: Outcome) -> Iterator[Iterable[Any]]:
    """The cumulative hazard of a sample whose predictor is zero, step by step."""
    fitted = outcome.estimator
    has_strata = hasattr(fitted, "strata_")
    yield ("target", *(("stratum",) if has_strata else ()), "time", "cumulative_hazard")
    steps = (fitted.baseline_endpoint_, fitted.baseline_stratum_, fitted.baseline_times_, fitted.baseline_hazard_)
    for endpoint, stratum, *step in zip(*(part.tolist() for part in steps), strict=True):
        label = (str(fitted.strata_[stratum]),) if has_strata else ()
        yield (outcome.table.target_names[endpoint], *label, *step)


def write_report_file(path: Path, outcome: Outcome) -> None:
    """The report of an outcome."""
    from ..report import ReportContents, write_report

    names = ("title", "facts", "estimator", "path", "scores", "notes", "survival", "confusion", "candidates", "choices")
    same: dict[str, Any] = {name: getattr(outcome, name) for name in names}
    same |= {"feature_names": outcome.names, "target_names": outcome.table.target_names}
    contents = ReportContents(command=outcome.typed, **same)
    write_report(path, contents)


def csv_text(rows: Iterable[Iterable[Any]]) -> str:
    """Rows as a CSV file has them; no spreadsheet runs a cell of theirs."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(map(_harmless, rows))
    return text.getvalue()


def _harmless(cells: Iterable[Any]) -> list[Any]:
    """Cells of a row or column: text that a spreadsheet would run is marked as text by an apostrophe."""
    harmless = []
    for cell in cells:
        may_run = isinstance(cell, str) and cell.startswith(_FORMULA_MARKS) and not is_number(cell)
        harmless.append(f"'{cell}" if may_run else cell)
    return harmless


def _write_coefficients(path: Path, outcome: Outcome) -> None:
    """The intercept, then all features, strongest first."""
    estimator = outcome.estimator
    frame = estimator.coef_frame(sort=True)
    of_intercept = {"feature": "(intercept)", "cluster": 0, "state": "intercept"}
    columns = coefficient_columns(len(np.atleast_2d(estimator.coef_)), task_names(vars(estimator)))
    of_intercept |= dict(zip(columns, np.atleast_1d(estimator.intercept_).tolist(), strict=True))
    with path.open("w", encoding="utf-8", newline="") as file:
        file.write(csv_text([frame.columns, [of_intercept.get(name, "") for name in frame.columns]]))
        for start in range(0, len(frame), _ROWS_AT_ONCE):
            rows = frame.iloc[start : start + _ROWS_AT_ONCE]
            if not hasattr(estimator, "feature_names_in_"):  # sparse data have names of their own
                names = outcome.table.feature_names
                rows = rows.assign(feature=[names[j] for j in rows["feature"].tolist()])
            rows = rows.assign(**{name: _harmless(rows[name]) for name in ("feature", "group") if name in rows})
            rows.to_csv(file, header=False, index=False, lineterminator="\n")


def _record(outcome: Outcome) -> dict[str, Any]:
    """What ``predict`` and ``verify`` need to know, and what people may want to."""
    table, names, estimator = outcome.table, outcome.table.feature_names, outcome.estimator
    named = task_names(vars(estimator))
    return {
        "kind": _KIND,
        "format_version": _FORMAT_VERSION if isinstance(names, NumberedNames) else 1,
        "groupowl_version": __version__,
        "command": list(outcome.typed),
        "file": table.source,
        "reading": asdict(outcome.reading),
        **({} if outcome.fills is None else {"fills": outcome.fills}),
        "test_size": outcome.test_size,
        "seed": outcome.seed,
        "task": table.task,
        "n_samples": table.n_samples,
        "features": asdict(names) if isinstance(names, NumberedNames) else list(names),
        "targets": list(table.target_names),
        "target_columns": _target_columns(table),
        "null_model": _null_model(table, estimator),
        "sums_of_features": _sums_of_features(table),
        "ignored": list(table.ignored),
        "coefficient_columns": coefficient_columns(len(np.atleast_2d(estimator.coef_)), named),
        "scores": {name: score.described() for name, score in outcome.scores.items()},
        "confusion": [confusion.described() for confusion in outcome.confusion],
        "candidates": outcome.candidates,
        "criteria": outcome.choices,
        "notes": list(outcome.notes),
        "facts": outcome.facts,
    }


def _target_columns(table: Table) -> list[str]:
    """Columns of the file that are the targets; those of events come before their times."""
    if not table.has_times:
        return list(table.target_names)
    events = table.ignored[len(table.ignored) - len(table.target_names) :]
    return [name for pair in zip(events, table.target_names, strict=True) for name in pair]


def _null_model(table: Table, fitted: Any) -> list[float]:
    """Predictors of the model that looks at no feature; of classes their shares, in the order of the model's."""
    constants = null_constants(fitted._fitted_loss, table, table.classes)
    if not table.is_classification:
        return [float(value) for value in constants]
    return [float(share) for share in np.exp(constants)[np.searchsorted(table.classes, fitted.classes_)]]


def _sums_of_features(table: Table) -> list[float] | None:
    """Means of numeric features with a sign and size for each sample, which tell whether a file has the same features.

    Not plain means, which all standardized data share; None for data on disk, which would be read once more.
    """
    numbers = table.without_categories()
    if isinstance(numbers.X, Design) or not numbers.n_features:
        return None
    sums: FloatArray = as_design(numbers.X).rmatmul(_factors(table.n_samples))
    return [float(value) for value in sums[:_MOST_SUMS, 0]]


def _factors(n_samples: int) -> FloatArray:
    """Of samples in sums of features: numbers without a pattern."""
    return np.cos(np.arange(1.0, n_samples + 1.0))[:, None] / n_samples


# Reading it again ---------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class SavedRun:
    """A model and how its data were read.

    Attributes
    ----------
    estimator : estimator
    reading : Reading
    features : sequence of str
        Names of the features, in order.
    targets : tuple of str
    ignored : tuple of str
        Columns of the file of the fit that were not used.
    test_size : float or None
    seed : int
    fills : list or None
        What stands in for missing cells of each feature.
    has_record : bool
        Whether a run has written the folder, and not :func:`groupowl.save` alone.
    file : str
        The file of the fit.
    target_columns : tuple of str
        Columns of targets, pairs of events and times among them.
    task : str
    null_model : list of float or None
        What a model that looks at no feature predicts: a predictor for each target, or the shares of classes.
    n_samples : int or None
        Of the fit, without those held out.
    sums_of_features : list of float or None
        Of the first numeric features of the fit.
    """

    estimator: Any
    reading: Reading
    features: tuple[str, ...] | NumberedNames
    targets: tuple[str, ...]
    ignored: tuple[str, ...] = ()
    test_size: float | None = None
    seed: int = 0
    fills: Any = None
    has_record: bool = True
    file: str = ""
    target_columns: tuple[str, ...] = ()
    task: str = ""
    null_model: Any = None
    n_samples: int | None = None
    sums_of_features: Any = None

    def difference(self, table: Table) -> str:
        """How other data differ from those of the fit, in words; empty where no difference is known."""
        if self.n_samples is not None and self.n_samples != table.n_samples:
            return f"it has {counted(table.n_samples, 'sample')}, the fit had {self.n_samples}"
        return self._difference_of_targets(table) or self._difference_of_features(table)

    def _difference_of_targets(self, table: Table) -> str:
        fitted = self.estimator
        if self.null_model is None or (table.is_classification and not np.array_equal(table.classes, fitted.classes_)):
            return ""
        found, stated = np.array(_null_model(table, fitted)), np.array(self.null_model)
        largest = 1.0 if table.is_classification else max(1.0, float(np.nanmax(np.abs(table.numbers))))
        is_same = np.isclose(found, stated, rtol=_NULL_RTOL, atol=_NULL_RTOL * largest)
        if is_same.all():
            return ""
        names = [f"the share of class {label!r}" for label in table.classes]
        names = names or [f"the constant nearest to target {name!r}" for name in self.targets]
        k = int(np.argmin(is_same))
        return f"{names[k]} is {found[k]:.6g}, and was {stated[k]:.6g} in the fit"

    def _difference_of_features(self, table: Table) -> str:
        found = None if self.sums_of_features is None else _sums_of_features(table)
        if found is None or len(found) != len(self.sums_of_features):
            return ""
        numbers = table.without_categories()
        every = np.full((table.n_samples, 1), 1.0 / table.n_samples)
        sizes = as_design(numbers.X).column_norms(every)[: len(found)]
        largest = np.maximum(sizes, np.abs(self.sums_of_features))
        differ = np.flatnonzero(~(np.abs(np.subtract(found, self.sums_of_features)) <= _SUM_RTOL * largest))
        if not len(differ):
            return ""
        names = listed([numbers.feature_names[j] for j in differ.tolist()])
        return f"its features have other values than in the fit, or its samples another order: {names}"


def read_run(folder: Path) -> SavedRun:
    """Read the folder of a run, or one of :func:`groupowl.save`."""
    run: SavedRun = read_settled(folder, _read_run)
    return run


def _read_run(folder: Path) -> SavedRun:
    if not folder.is_dir():
        state = "is a file" if folder.exists() else "does not exist"
        raise Failure(f"{folder} {state}. Give the folder that fit, path or cv has written.")
    is_run = is_run_folder(folder)
    if is_matrix_folder(folder):
        raise Failure(f"{folder} holds the data of groupowl convert, and no model. Fit one to it: groupowl cv {folder}")
    if (folder / SELECTION).is_file():
        raise Failure(f"{folder} holds a selection of features, and no model. Fit one to them: groupowl fit or cv.")
    try:
        estimator = load(folder / MODEL if is_run else folder)
    except (OSError, ValueError) as error:
        raise Failure(str(error)) from error
    kind = type(estimator).__name__
    if not hasattr(estimator, "get_params"):
        raise Failure(f"{folder} holds a {kind}, and no model. Save an estimator; in Python, a path predicts itself.")
    if not hasattr(estimator, "coef_"):
        raise Failure(f"{folder} holds a {kind} that is not fitted. Fit it, and save it again.")
    if not is_run:
        return _without_record(estimator)
    try:
        return _from_record(json.loads((folder / RUN).read_text(encoding="utf-8")), folder, estimator)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise Failure(f"{folder / RUN} is damaged ({type(error).__name__}: {error}). Fit the model again.") from error


def _from_record(record: dict[str, Any], folder: Path, estimator: Any) -> SavedRun:
    """What a run has written, if all of it is about the model beside it."""
    kind, version = record["kind"], record.get("format_version")
    if kind != _KIND or type(version) is not int or version < 1:
        raise ValueError(f"its kind is {kind!r}, its format {version!r}")
    if version > _FORMAT_VERSION:
        raise Failure(f"{folder} was written by groupowl {record['groupowl_version']}. Update groupowl to read it.")
    features, reading = record["features"], record["reading"]
    stored = {name: record[name] for name in ("targets", "ignored", "test_size", "seed")}
    later = (
        "file",
        "target_columns",
        "task",
        "null_model",
        "fills",
        "n_samples",
        "sums_of_features",
    )  # which earlier versions have not, or not all
    stored |= {name: record[name] for name in later if name in record}
    parts = {"roles": _made(Roles, reading["roles"]), "dialect": _made(Dialect, reading.get("dialect", {}))}
    reading = _made(Reading, {**reading, **parts})
    names = features if isinstance(features, list) else _made(NumberedNames, features)
    run = _made(SavedRun, {**stored, "estimator": estimator, "reading": reading, "features": names})
    if isinstance(run.features, NumberedNames) and min(run.features.first, run.features.n_numbered) < 0:
        raise ValueError(f"features must be a list of names or their numbering, got {features!r}")
    _check_fills(run)
    is_class = exclusive_classes(vars(estimator)) is not None
    n_targets = 1 if is_class else len(np.atleast_2d(estimator.coef_))
    for what, count, fitted in (
        ("features", estimator.n_features_in_, getattr(estimator, "feature_names_in_", run.features)),
        ("targets", n_targets, getattr(estimator, "target_names_", run.targets)),
    ):
        names = getattr(run, what)
        if len(names) != count:
            raise ValueError(f"it has {len(names)} {what}, but the model has {count}")
        if names is not fitted and not np.array_equal(names, fitted):
            raise ValueError(f"its {what} are not those of the model")
    sums = run.sums_of_features
    if sums is not None and not (isinstance(sums, tuple) and all(type(value) is float for value in sums)):
        raise ValueError(f"its sums_of_features must be numbers, got {sums!r}")
    n_constants = len(estimator.classes_) if is_class else n_targets
    if run.null_model is not None:
        constants = run.null_model if isinstance(run.null_model, tuple) else ()
        if len(constants) != n_constants or not all(type(value) is float for value in constants):
            raise ValueError(f"its null_model must be {n_constants} numbers, got {run.null_model!r}")
    if not 0 <= run.seed < 2**32 or not (run.test_size is None or 0.0 < run.test_size < 1.0):
        raise ValueError(f"the samples that were held out are unknown: test_size {run.test_size!r}, seed {run.seed!r}")
    return run


def _check_fills(run: SavedRun) -> None:
    """Check the fills for missing cells: each is a finite number or a level."""
    if run.fills is None:
        return
    if not isinstance(run.fills, tuple) or len(run.fills) != len(run.features):
        raise ValueError("it does not have one fill for each feature")
    for fill in run.fills:
        if not isinstance(fill, str | int | float) or (isinstance(fill, float) and not np.isfinite(fill)):
            raise ValueError(f"a fill is {fill!r}")


def _made(kind: type[Made], values: dict[str, Any]) -> Made:
    """A dataclass whose values are of the types that it declares: those of a file may be anything."""
    made = kind(**{name: tuple(value) if isinstance(value, list) else value for name, value in values.items()})
    for name, hint in get_type_hints(kind).items():
        if not _fits(value := getattr(made, name), hint):
            raise ValueError(f"{name} is {value!r}")
    return made


def _fits(value: Any, hint: Any) -> bool:
    if get_origin(hint) is tuple:
        return isinstance(value, tuple) and all(isinstance(item, str) for item in value)
    if get_args(hint):
        return any(_fits(value, option) for option in get_args(hint))
    return hint is Any or type(value) is hint  # exactly: truth values are no whole numbers here


def _without_record(estimator: Any) -> SavedRun:
    """A model of :func:`groupowl.save`, whose columns may have no names."""
    names: tuple[str, ...] | NumberedNames = NumberedNames("x", 1, estimator.n_features_in_)
    if hasattr(estimator, "feature_names_in_"):
        names = tuple(map(str, estimator.feature_names_in_))
    n_targets = len(np.atleast_2d(estimator.coef_))
    targets = ["y"] if n_targets == 1 else [f"y{k + 1}" for k in range(n_targets)]
    is_class = exclusive_classes(vars(estimator)) is not None
    targets = ["class"] if is_class else getattr(estimator, "target_names_", targets)
    return SavedRun(estimator, Reading(), names, tuple(map(str, targets)), has_record=False)
