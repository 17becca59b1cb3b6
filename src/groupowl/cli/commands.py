"""The application, and what its commands share: options in bundles, errors that end as one line.

Each class of options is the part of a command line that some commands share; a command inherits the parts it has.
"""

from __future__ import annotations

import errno
import inspect
import re
from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import replace
from difflib import get_close_matches
from functools import cache, partial, wraps
from importlib.metadata import entry_points
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Any, Literal, get_type_hints

import typer
from sklearn.metrics import get_scorer_names

from .._checks import number_in
from .._resume import has_parts
from ..designs.disk.memory import parse_memory
from ..path.follower import MOST_ALPHAS
from ..tables import Dialect, MissingTargetsError, TableError, find_files
from ..weights import resolve_weights, sequences_of
from .messages import Failure, tell, tell_traceback

#: Commands with an example of each.
COMMANDS: dict[Callable[..., None], str] = {}
#: What a system says where nothing can be written.
_REFUSED = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT)
#: What was typed after ``groupowl``.
arguments: ContextVar[tuple[str, ...]] = ContextVar("arguments", default=())


# Commands -----------------------------------------------------------------------------------------------


def command(*, example: str) -> Callable[[Callable[[Any], None]], Callable[..., None]]:
    """Make the function a command of the application; ``example`` ends its help.

    Its one parameter, ``options``, is annotated with a class of :class:`Options`.
    What goes wrong inside is one line, and a traceback only with the option ``debug``.
    """

    def register(function: Callable[[Any], None]) -> Callable[..., None]:
        kind: Any = get_type_hints(function)["options"]
        hints = get_type_hints(kind)

        @wraps(function)
        def call(**options: Any) -> None:
            try:
                function(kind(**options))
            except KeyboardInterrupt:
                tell(f"stopped; {_left(options.get('resume'))}.")
                raise SystemExit(130) from None
            except Exception as error:  # the one place where errors become a line and an exit code; bugs say they are
                if options.get("debug"):
                    tell_traceback()
                message, code = _explained(error)
                tell(message)
                raise SystemExit(code) from None

        del call.__wrapped__  # its signature is not ours: Typer wants the fields as parameters
        call.__annotations__ = hints
        parameter = partial(inspect.Parameter, kind=inspect.Parameter.KEYWORD_ONLY)
        fields = [parameter(name, default=getattr(kind, name), annotation=hint) for name, hint in hints.items()]
        call.__signature__ = inspect.Signature(fields)  # type: ignore[attr-defined]
        COMMANDS[call] = example
        return call

    return register


def _left(kept: Path | None) -> str:
    """What a command leaves that was stopped, in words."""
    if kept is None:
        return "nothing was written"
    if has_parts(kept):
        return f"what was finished is in {kept}, and the same command goes on from there"
    return f"nothing was finished yet, so nothing is in {kept}"


def _explained(error: Exception) -> tuple[str, int]:
    """What to say of an error, and the exit code."""
    if isinstance(error, Failure):
        return str(error), error.code
    if isinstance(error, TableError):
        return str(error), 2 if isinstance(error, MissingTargetsError) else 1
    if isinstance(error, MemoryError):
        return "there is not enough memory for these data. Use fewer columns (--drop), or a machine with more.", 1
    if isinstance(error, OSError) and error.errno in _REFUSED:
        where = f" to {error.filename}" if error.filename else ""
        return f"cannot write{where}: {error.strerror}. Check the rights and the free space of --out and --resume.", 1
    remedy = "This is a bug of groupowl: run the command again with --debug, and report what it prints."
    return f"unexpected {type(error).__name__}: {error}. {remedy}", 1


# Options ------------------------------------------------------------------------------------------------


def option(default: Any, metavar: str | None, help: str, *names: str, check: Any = None, **settings: Any) -> Any:
    """Declare an option; its name is that of the attribute by default. Flags have the metavar "".

    ``check`` is the interval of a number, or a function of name and value that returns what the value means; what is
    out of range is refused before any file is read.
    """

    def checked(param: typer.CallbackParam, value: Any) -> Any:
        name = param.opts[0].removeprefix("--")
        try:
            if callable(check):
                return check(name, value)
            if check is not None and value is not None:
                number_in(name, value, check)
        except ValueError as error:
            raise Failure(f"--{intervals_in_words(str(error))}", 2) from error
        return value

    return typer.Option(default, *names, metavar=metavar, help=help, callback=checked, **settings)


def intervals_in_words(message: str) -> str:
    """The same with words for intervals such as [2, inf)."""
    return re.sub(r"must lie in ([\[(])(\S+), (\S+)([\])])", _interval_in_words, message)


def _interval_in_words(found: re.Match[str]) -> str:
    left, low, high, right = found.groups()
    if high == "inf":
        return f"must be {'at least' if left == '[' else 'above'} {low}"
    if left + right == "[]":
        return f"must be from {low} to {high}"
    return f"must be {'at least' if left == '[' else 'above'} {low} and {'at most' if right == ']' else 'below'} {high}"


_data = partial(option, rich_help_panel="Data")
_model = partial(option, rich_help_panel="Model")
_select = partial(option, rich_help_panel="Selection")
_output = partial(option, rich_help_panel="Output")


def _positive(name: str, text: str) -> float:
    with suppress(ValueError):
        return number_in(name, float(text), "(0, inf)")
    raise ValueError(f"{name} must be a positive number, got {text!r}.")


def _alpha(name: str, text: str) -> str | float:
    return text if text == "auto" else _positive(name, text)


def _alphas(name: str, text: str) -> int | list[float]:
    """How many alphas, or which."""
    if text.strip().isdecimal():
        return int(number_in(name, int(text), f"[1, {MOST_ALPHAS}]"))
    return [_positive(name, part.strip()) for part in text.split(",")]


def _sequences(name: str, text: str) -> str | list[str]:
    """One weight sequence, or several; each is tried."""
    names = [part.strip() for part in text.split(",")]
    for sequence in sequences_of(names):
        resolve_weights(sequence, n_features=2, n_tasks=1, n_samples=2)
    return names if len(names) > 1 else names[0]


def _one_sequence(name: str, text: str) -> str:
    if "," in text or text.strip() == "levels":
        raise ValueError(f"{name} must be one sequence here, got {text!r}; cv takes several.")
    resolve_weights(text.strip(), n_features=2, n_tasks=1, n_samples=2)
    return text.strip()


def _ridges(name: str, text: str) -> float | list[float]:
    """One ridge, or several; each is tried."""
    ridges = []
    for part in text.split(","):
        try:
            ridges.append(number_in(name, float(part), "[0, inf)"))
        except ValueError:
            raise ValueError(f"{name} must be numbers that are not negative, got {part.strip()!r}.") from None
    return ridges if len(ridges) > 1 else ridges[0]


def _one_ridge(name: str, text: str) -> float | list[float]:
    if "," in text:
        raise ValueError(f"{name} must be one number here, got {text!r}; cv takes several.")
    return _ridges(name, text)


def _times(name: str, text: str | None) -> list[float] | None:
    return None if text is None else [_positive(name, part.strip()) for part in text.split(",")]


def _scoring(name: str, text: str | None) -> str | None:
    """The name of a score of scikit-learn."""
    known = get_scorer_names()
    if text is None or text in known:
        return text
    close = get_close_matches(text, known, n=3, cutoff=0.5) or ["r2", "neg_mean_absolute_error", "roc_auc"]
    raise ValueError(
        f"{name} must be the name of a score of scikit-learn, for example {', '.join(close)}; got {text!r}."
    )


def _jobs(name: str, count: int) -> int:
    if count < 1 and count != -1:
        raise ValueError(f"{name} must be at least 1, or -1 for one job per processor, got {count}.")
    return count


_MARKS = {"tab": "\t", "\\t": "\t", "space": " ", "comma": ",", "semicolon": ";", "point": ".", "dot": "."}


def _mark(name: str, text: str | None) -> str | None:
    """One character, or the word for it."""
    mark = _MARKS.get(text or "", text)
    if mark is not None and (len(mark) != 1 or mark.isalnum() or mark in '\r\n"+-'):
        raise ValueError(f"{name} must be one character, or {', '.join(_MARKS)}, got {text!r}.")
    return mark


def _encoding(name: str, text: str | None) -> str | None:
    try:
        b"a".decode(text or "utf-8")
    except (LookupError, ValueError):
        known = "such as utf-8, cp1252, latin-1, utf-16, shift_jis or gbk"
        raise ValueError(f"{name} must be an encoding of text, {known}, got {text!r}.") from None
    return text


def _memory(name: str, text: str | None) -> str | None:
    if text is not None:
        try:
            parse_memory(text)
        except ValueError as error:
            raise ValueError(str(error).replace("max_memory", name)) from None
    return text


def _words(name: str, text: str | None) -> tuple[str, ...] | None:
    return None if text is None else tuple(part.strip() for part in text.split(","))


class Options(SimpleNamespace):
    """Base of the options of a command: an attribute of the class is an option, of an instance its value."""


#: Ways to choose alpha that need no folds, and all of them; formats of files; kinds of targets.
Criterion = Literal["aic", "bic", "ebic"]
Selection = Literal["min", "1se", "aic", "bic", "ebic"]
FormatName = Literal["csv", "tsv", "excel", "parquet", "npz", "libsvm", "arff", "large"]
Task = Literal["auto", "regression", "classification"]
GroupScale = Literal["size", "none", "frobenius", "orthonormal"]
Unseen = Literal["error", "zero"]
Missing = Literal["drop", "mean", "median"]
SelectMethod = Literal["knockoffs", "stability"]
SamplerName = Literal["gaussian", "fixed"]
Ties = Literal["efron", "breslow"]
LossName = Literal["squared", "huber", "poisson", "logistic", "cox"]

#: Formats in words, for help.
FORMATS = "csv, tsv, excel, parquet, npz, libsvm, arff, or large for matrices on disk"
_COLUMNS = "by name, position (1 first, -1 last) or pattern ('gene*'), separated by commas"
#: Of NumPy's legacy generator, which makes folds.
LARGEST_SEED = 2**32 - 1
_UNSEEN = "How to predict levels of --categories that were not in the training data"
_SEQUENCES = (
    "Weight sequence: oscar, linear, constant (lasso), bh, chi, chi_gauss, gaussian; cv also takes a list, or levels."
)
_RIDGE = "Adds ridge/2 times the squares of the coefficients that the penalty sees."
_MAX_MEMORY = "For matrices on disk: memory that work may add, such as 500MB; by default a quarter of the machine's."
_weights = partial(_model, "oscar", "NAME", _SEQUENCES, "--weights", "-w")


class TalkOptions(Options):
    """How much to say, and in which language."""

    quiet: bool = _output(False, "", "Print nothing but errors.", "--quiet", "-q")
    json: bool = _output(False, "", "Print one JSON object, for programs.", "--json")
    debug: bool = _output(False, "", "Show the traceback of an error.", "--debug")


def _found_files(given: list[Path]) -> list[Path]:
    """Files that are named, or match a pattern."""
    try:
        return find_files(given)
    except TableError as error:
        raise Failure(str(error)) from error


class CellOptions(Options):
    """Files, and how cells are written in text files and workbooks."""

    sep: str | None = _data(
        None, "MARK", "What stands between cells: a character, tab, or space for any spaces.", check=_mark
    )
    decimal: str | None = _data(None, "MARK", "What stands before fractions: a point, or a comma.", check=_mark)
    thousands: str | None = _data(None, "MARK", "What stands between thousands, such as , . or space.", check=_mark)
    encoding: str | None = _data(None, "NAME", "Of text: utf-8 by default, cp1252, utf-16, ...", check=_encoding)
    na: str | None = _data(
        None, "WORDS", "Cells that are missing values beside NA, ? and empty ones, separated by commas.", check=_words
    )
    no_header: bool | None = _data(
        None, "", "The first line is a sample: columns are x1, x2, ...", "--no-header/--header"
    )
    sheet: str | None = _data(None, "NAME", "Sheet of an Excel workbook, by name or number; the first by default.")

    @property
    def file(self) -> Path:
        """The file, or words for several."""
        first, *others = self.files
        return Path(f"{first} and {len(others)} more") if others else first

    def dialect(self, otherwise: Dialect | None = None) -> Dialect:
        """What was typed, and otherwise something else."""
        given = {name: getattr(self, name) for name in ("sep", "decimal", "thousands", "encoding", "na", "sheet")}
        given["header"] = None if self.no_header is None else not self.no_header
        return replace(otherwise or Dialect(), **{name: value for name, value in given.items() if value is not None})


class DataOptions(CellOptions):
    """A file, what its columns are for, and how any model is fitted."""

    files: list[Path] = typer.Argument(
        metavar="FILE...",
        help="Data: CSV, TSV, Excel, Parquet, NPZ, LIBSVM or ARFF (text may be .gz or .bz2); .npy, HDF5, Zarr, a "
        "folder of blocks or one of convert, which may exceed the memory. Of several files, or a pattern such as "
        "'part-*.csv', the rows are put below each other.",
        callback=_found_files,
    )
    targets: list[str] | None = _data(None, "COLUMNS", f"Columns to explain, {_COLUMNS}.", "--targets", "-t")
    targets_from: Path | None = _data(None, "FILE", "File with the targets, joined by --id-column.")
    id_column: str | None = _data(None, "COLUMN", "Names of samples; A=B if it is B in --targets-from.")
    transpose: bool = _data(False, "", "Rows are features (named in the first column), columns samples.", "--transpose")
    task: Task = _data(
        "auto", "KIND", "regression, classification, or auto: classification if the one target is text or categories."
    )
    groups: str | None = _data(None, "COLUMN", "Samples of a group stay in the same fold.")
    sample_weight: str | None = _data(None, "COLUMN", "Weights of the samples.")
    strata: str | None = _data(None, "COLUMN", "For --loss cox: samples are compared within their stratum only.")
    event: str | None = _data(
        None, "CELL", "For --loss cox: the cell of EVENT that stands for an event, such as 2 or dead; 1 by default."
    )
    offset: str | None = _data(None, "COLUMN", "Numbers that are added to the predictors, with a coefficient of one.")
    exposure: str | None = _data(
        None, "COLUMN", "The same by their logarithms, for --loss poisson: counts per exposure."
    )
    drop: list[str] | None = _data(None, "COLUMNS", "Columns to leave out, given like those of --targets.")
    format: FormatName | None = _data(None, "NAME", f"Format of FILE, if its suffix does not say it: {FORMATS}.")
    max_memory: str | None = _data(None, "SIZE", _MAX_MEMORY, check=_memory)
    missing: Missing | None = _data(
        None,
        "WHAT",
        "What to do about missing features: drop leaves samples out, mean and median fill them in, here and in "
        "predictions. They are refused by default.",
    )
    loss: LossName = _model(
        "squared",
        "NAME",
        "For targets that are numbers: squared, huber (with outliers) or poisson (counts); logistic: several targets "
        "of 0 and 1; cox: pairs of targets, EVENT,TIME with events of 0 and 1. Classes use the multinomial loss.",
    )
    ties: Ties = _model("efron", "NAME", "For --loss cox: events at the same time, efron or breslow.")
    weights: str = _weights(check=_one_sequence)
    standardize: bool = _model(
        False, "", "Penalize columns as if divided by their standard deviation.", "--standardize"
    )
    unpenalized: list[str] | None = _model(None, "COLUMNS", "Features without penalty, given like those of --targets.")
    feature_groups: list[str] | None = _model(
        None, "NAME=COLUMNS", "Features that are in or out together, columns given like those of --targets; repeat it."
    )
    categories: list[str] | None = _model(
        None,
        "COLUMNS",
        "Features of which each level becomes a column, in or out together, given like those of --targets; auto for "
        "all that are text.",
    )
    unseen: Unseen = _model("error", "WHAT", f"{_UNSEEN}: error, or zero for no effect.")
    group_scale: GroupScale = _model(
        "size",
        "NAME",
        "Groups in the penalty: size (over its root), none, frobenius (over the total deviation), or orthonormal.",
    )
    penalty_factor: list[str] | None = _model(
        None,
        "COLUMNS=NUMBER",
        "Factor of the penalty of features: 0 for none, inf to leave them out; repeat it. Or adaptive: by a first fit.",
    )
    ridge: str = _model("0", "NUMBER", f"{_RIDGE} cv also takes a list.", check=_one_ridge)
    positive: list[str] | None = _model(
        None, "COLUMNS", "Features whose coefficients must not be negative, given like those of --targets; '*' for all."
    )
    seed: int = _model(0, None, "Seed of folds, held-out samples and solvers.", check=f"[0, {LARGEST_SEED}]")
    tol: float = _model(
        1e-6, None, "Largest duality gap, relative to what features can take off the loss.", check="(0, inf)"
    )
    max_iter: int = _model(10_000, None, "Maximum number of steps of each fit.", check="[1, inf)")


class TrainOptions(TalkOptions, DataOptions):
    """A file, a model, and where to write."""

    out: Path | None = _output(None, "DIR", "New folder for model, tables and report.", "--out", "-o")
    force: bool = _output(False, "", "Replace what an earlier run has written.", "--force")
    resume: Path | None = _output(
        None, "DIR", "Folder that keeps what is finished: after an interrupt, the same command goes on from there."
    )


class ModelOptions(TrainOptions):
    """A model that predicts."""

    no_intercept: bool = _model(False, "", "Fit no intercept.", "--no-intercept")
    relaxed: bool = _model(False, "", "Fit the selected features again, without penalty.", "--relaxed")
    class_weight: list[str] | None = _model(
        None, "CLASS=NUMBER", "Weights of the samples of classes, or balanced: the same for all classes; repeat it."
    )
    scoring: str | None = _model(
        None, "NAME", "A score of scikit-learn to show, such as r2 or roc_auc; cv chooses alpha by it.", check=_scoring
    )

    test_size: float | None = _model(
        None, "SHARE", "Hold out this share of the samples, and score on them.", check="(0, 1)"
    )


class FitOptions(ModelOptions):
    """One alpha."""

    alpha: str = _model(
        "auto", "NUMBER", "Strength of the penalty; auto: a tenth of the largest.", "--alpha", "-a", check=_alpha
    )


class GridOptions(ModelOptions):
    """Many alphas."""

    alphas: str = _model("100", "N|LIST", "How many alphas, or a list of them separated by commas.", check=_alphas)
    eps: float = _model(1e-3, None, "Smallest alpha relative to the largest.", check="(0, 1)")


class PathOptions(GridOptions):
    """One alpha is chosen by a criterion."""

    selection: Criterion = _model(
        "ebic", "RULE", "Criterion that chooses the alpha of the saved model: aic, bic or ebic."
    )


class FoldOptions(GridOptions):
    """One alpha is chosen by cross-validation."""

    selection: Selection = _model(
        "min",
        "RULE",
        "min: best score; 1se: for each weight sequence the largest alpha within one standard error of its best score; "
        "aic, bic, ebic: without folds. Of several sequences, the one with the best score is taken.",
    )
    weights: str = _weights(check=_sequences)
    ridge: str = _model("0", "NUMBER|LIST", f"{_RIDGE} Of a list, the one with the best score is taken.", check=_ridges)
    folds: int = _model(5, None, "Folds of cross-validation, at least 2.", check="[2, inf)")
    repeats: int = _model(1, None, "How often all folds are made, each time others.", check="[1, inf)")
    jobs: int = _model(1, None, "Folds at a time; -1: one per processor.", "--jobs", "-j", check=_jobs)


class SelectOptions(TrainOptions):
    """How features are selected, and what bounds the false ones among them."""

    method: SelectMethod = _select(
        "knockoffs", "NAME", "knockoffs: bound the share of false features; stability: bound their number."
    )
    fdr: float | None = _select(
        None, "SHARE", "For knockoffs: largest expected share of false features, 0.1 by default.", check="(0, 1)"
    )
    sampler: SamplerName | None = _select(
        None,
        "NAME",
        "For knockoffs: gaussian (the default), for features with a normal law; or fixed, for targets with normal "
        "errors and twice as many samples as features.",
    )
    draws: int | None = _select(
        None,
        "N",
        "For knockoffs: draws that are combined, against chance; 1 by default.",
        check="[1, inf)",
    )
    max_false: float | None = _select(
        None, "NUMBER", "For stability: largest expected number of false features, 1 by default.", check="(0, inf)"
    )
    pairs: int | None = _select(
        None, "N", "For stability: random splits of the samples into halves, 50 by default.", check="[1, inf)"
    )
    weights: str = _model("constant", "NAME", _SEQUENCES, "--weights", "-w", check=_one_sequence)
    standardize: bool = _model(
        True, "", "Penalize columns as if divided by their standard deviation.", "--standardize/--no-standardize"
    )
    # What other commands have and this one refuses, with a word on what to do.
    groups: str | None = _data(None, "COLUMN", "", hidden=True)
    seed: int = _select(0, None, "Of knockoffs and halves.", check=f"[0, {LARGEST_SEED}]")
    out: Path | None = _output(None, "DIR", "New folder for table, picture and report.", "--out", "-o")
    jobs: int = _select(1, None, "Draws or pairs at a time; -1: one per processor.", "--jobs", "-j", check=_jobs)


class ApplyOptions(CellOptions):
    """A model and a file; how the file of the fit was read is known, unless an option says otherwise."""

    model: Path = typer.Argument(metavar="MODEL", help="Folder that fit, path or cv has written.")
    files: list[Path] = typer.Argument(
        metavar="FILE...", help="Data, in any format that fit reads.", callback=_found_files
    )
    transpose: bool | None = option(
        None, "", "Rows are features; as in the fit by default.", "--transpose/--no-transpose"
    )
    format: FormatName | None = option(None, "NAME", f"Format of FILE, by its suffix by default: {FORMATS}.")
    id_column: str | None = option(None, "COLUMN", "Names of samples; as in the fit by default.")
    max_memory: str | None = option(None, "SIZE", _MAX_MEMORY, check=_memory)


class PredictOptions(TalkOptions, ApplyOptions):
    """What is predicted, and where it goes."""

    alpha: float | None = option(
        None, "NUMBER", "Of a model of path or cv: another alpha of its path; alphas.csv lists them.", check="(0, inf)"
    )

    times: str | None = option(
        None, "LIST", "Of a model of --loss cox: the chance of having no event until each of these times.", check=_times
    )
    missing: Literal["drop"] | None = option(
        None, "WHAT", "drop: leave out samples that lack features of the model; as in the fit by default."
    )
    unseen: Unseen | None = option(None, "WHAT", f"{_UNSEEN}: error or zero; as in the fit by default.")
    out: Path | None = option(None, "FILE", "CSV file to write; on screen by default.", "--out", "-o")
    force: bool = option(False, "", "Replace an earlier file.", "--force")


class VerifyOptions(TalkOptions, ApplyOptions):
    """Where the targets of the fit are."""

    targets: list[str] | None = option(
        None, "COLUMNS", "Columns of the targets; as in the fit by default.", "--targets", "-t"
    )
    targets_from: Path | None = option(None, "FILE", "File of the targets, if it has moved.")
    scores: bool = option(True, "", "Fit the folds of cv again; this takes as long as cv.", "--scores/--no-scores")


class ConvertOptions(TalkOptions, CellOptions):
    """Large files, what in them is no feature, and where to write."""

    files: list[Path] = typer.Argument(
        metavar="FILE...",
        help="CSV, TSV or Parquet files with the same columns, or a pattern such as 'part-*.csv'.",
        callback=_found_files,
    )
    targets: list[str] | None = _data(None, "COLUMNS", f"Columns to explain, {_COLUMNS}.", "--targets", "-t")
    id_column: str | None = _data(None, "COLUMN", "Names of samples.")
    keep: list[str] | None = _data(
        None,
        "COLUMNS",
        "Other columns that are no features, such as groups or weights, given like those of --targets.",
    )
    drop: list[str] | None = _data(None, "COLUMNS", "Columns to leave out, given like those of --targets.")
    format: FormatName | None = _data(None, "NAME", "csv, tsv or parquet, if suffixes do not say it.")
    out: Path = typer.Option(..., "--out", "-o", metavar="DIR", help="New folder.", rich_help_panel="Output")
    force: bool = _output(False, "", "Replace what an earlier run has written.", "--force")


# The application ----------------------------------------------------------------------------------------


class _AnyOptions(Options):
    """Whatever was typed."""

    given: list[str] | None = typer.Argument(None, hidden=True)


@command(example="groupowl reproduce --data downloads --out results --quick")
def reproduce(options: _AnyOptions) -> None:
    """Repeat the paper's experiments, once they are installed: pip install ./harness ./paper in a clone of groupowl."""
    remedy = "in a clone of groupowl run: pip install ./harness ./paper"
    raise Failure(f"the paper's experiments are a project of their own, which is not installed; {remedy}")


def build_app() -> typer.Typer:
    """The application with all its commands."""
    from . import convert_command, demo, model_commands, select_command

    app = typer.Typer(name="groupowl", add_completion=False, pretty_exceptions_enable=False)
    app.callback(epilog="Example: groupowl cv train.csv --targets y1,y2 --out model")(_groupowl)
    paper: Callable[..., None] = reproduce
    for point in entry_points(group="groupowl.commands", name="reproduce"):
        with suppress(ImportError):  # a project that is only half installed
            paper = point.load()
    fits = (model_commands.fit, model_commands.path, model_commands.cv)  # from data to a report first
    others = (model_commands.predict, model_commands.verify, select_command.select)
    for function in (*fits, *others, convert_command.convert, demo.demo, paper):
        paragraphs = inspect.cleandoc(function.__doc__ or "").split("\n\n")
        app.command(
            help="\n\n".join(" ".join(part.split()) for part in paragraphs),  # to be folded by whoever prints them
            epilog=f"Example: {COMMANDS[function]}",
            context_settings={"ignore_unknown_options": function is reproduce},
        )(function)
    return app


@cache
def _application() -> Any:
    """The same, made for running: once, because typer looks at each option of each command for that."""
    return typer.main.get_command(build_app())


def run(given: list[str]) -> int:
    """Do what was typed; returns the exit code. A command line that cannot be understood is one line."""
    arguments.set(tuple(given))
    try:
        outcome = _application()(given or ["--help"], prog_name="groupowl", standalone_mode=False)
    except SystemExit as stopped:
        if isinstance(stopped.__context__, BrokenPipeError):  # of the help, which somebody has read enough of
            return 0
        raise
    except Exception as error:
        if not hasattr(error, "format_message"):  # no mistake on the command line, so a bug before any command
            raise
        message = _mistake(error, given)
        where = getattr(getattr(error, "ctx", None), "command_path", "groupowl")
        tell(f"{message}{'' if message[-1:] in '.?!' else '.'} See: {where} --help")
        return int(getattr(error, "exit_code", 2))
    if not given:
        return 2
    return outcome if isinstance(outcome, int) else 0


# What users of glmnet type, with or without a value, and what that is here.
_CLASSES = "classes need no --loss: a target of text has them, one of numbers with --task classification"
_FAMILIES = {
    "binomial": _CLASSES,
    "multinomial": _CLASSES,
    "gaussian": "use --loss squared, which is the default",
    "mgaussian": "use --loss squared, which is the default, and several --targets",
    "poisson": "use --loss poisson",
    "cox": "use --loss cox and --targets EVENT,TIME",
}
_OF_GLMNET = {
    "--lambda": {"": "the strength of the penalty is --alpha in fit, --alphas in path and cv"},
    "--nlambda": {"": "use --alphas in path and cv"},
    "--nfolds": {"": "use --folds in cv"},
    "--relax": {"": "use --relaxed"},
    "--family": {**_FAMILIES, "": "use --loss; classes are recognized by the target, or by --task classification"},
    "--loss": _FAMILIES,
    "--selection": {"lambda.min": "use --selection min", "lambda.1se": "use --selection 1se"},
}


def _mistake(error: Any, given: list[str]) -> str:
    """Message about a wrong command line, with the equivalent of glmnet's option names."""
    option = getattr(error, "option_name", None) or next(iter(getattr(getattr(error, "param", None), "opts", ())), "")
    value = _typed_value(option, given)
    known = _OF_GLMNET.get(option, {})
    if remedy := known.get(value, known.get("")):
        return f"{f'{option} {value}' if value in known else option} is not known here: {remedy}"
    message = str(error.format_message()).strip().replace("Value error, ", "")
    return re.sub(r"Input should be a valid (\w+), unable to parse.*", rf"{value!r} is not a valid \1", message)


def _typed_value(option: str, given: list[str]) -> str:
    """What stands behind an option on the command line; empty for nothing."""
    for word, following in zip(given, [*given[1:], ""], strict=True):
        if word == option:
            return "" if following.startswith("-") else following
        if word.startswith(f"{option}="):
            return word.partition("=")[2]
    return ""


# For the help alone: the version is told before any of this is loaded.
_VERSION = typer.Option("--version", help="Show the version and exit.")


def _groupowl(version: Annotated[bool, _VERSION] = False) -> None:
    """Group OWL models: sparse multi-task regression and classification with certified answers."""
