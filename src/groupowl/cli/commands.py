"""What all commands share: options in bundles, the table of commands, errors that end as one line.

Each dataclass is the part of a command line that some commands share.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import MISSING, dataclass, fields
from functools import partial, wraps
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_type_hints

import typer

from ..tables import MissingTargetsError, Reading, Roles, TableError
from .messages import Failure, tell, tell_traceback

#: Commands with an example of each.
COMMANDS: dict[Callable[..., None], str] = {}
#: What was typed after ``groupowl``.
arguments: ContextVar[tuple[str, ...]] = ContextVar("arguments", default=())


# Commands -----------------------------------------------------------------------------------------------


def command(*, example: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make the function a command of the application; ``example`` ends its help.

    Each parameter is annotated with a dataclass, which stands for one option per field. What goes wrong inside is one
    line, and a traceback only with the option ``debug``.
    """

    def register(function: Callable[..., None]) -> Callable[..., None]:
        hints = get_type_hints(function, include_extras=True)
        bundles = {name: hints[name] for name in inspect.signature(function).parameters}
        parameters = [parameter for kind in bundles.values() for parameter in _parameters(kind)]
        parameters.sort(key=lambda parameter: parameter.default is not parameter.empty)

        @wraps(function)
        def call(**options: Any) -> None:
            made = {
                name: kind(**{item.name: options[item.name] for item in fields(kind)}) for name, kind in bundles.items()
            }
            try:
                function(**made)
            except KeyboardInterrupt:
                tell("stopped; nothing was written.")
                raise SystemExit(130) from None
            except Exception as error:  # the one place where errors become a line and an exit code; bugs say they are
                if options.get("debug"):
                    tell_traceback()
                message, code = _explained(error)
                tell(message)
                raise SystemExit(code) from None

        del call.__wrapped__  # its signature is not ours: Typer wants the fields as parameters
        call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        call.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        COMMANDS[call] = example
        return call

    return register


def _parameters(bundle: Any) -> list[inspect.Parameter]:
    hints = get_type_hints(bundle, include_extras=True)
    for hint in hints.values():
        kind, option = get_args(hint)
        if kind in (bool, bool | None):  # a flag takes no value, so the help should name none
            option.metavar = ""
    return [
        inspect.Parameter(
            item.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if item.default is MISSING else item.default,
            annotation=hints[item.name],
        )
        for item in fields(bundle)
    ]


def _explained(error: Exception) -> tuple[str, int]:
    """What to say of an error, and the exit code."""
    if isinstance(error, Failure):
        return str(error), error.code
    if isinstance(error, TableError):
        return str(error), 2 if isinstance(error, MissingTargetsError) else 1
    if isinstance(error, MemoryError):
        return "there is not enough memory for these data. Use fewer columns (--drop), or a machine with more.", 1
    words = " ".join(str(error).split())
    return (
        f"unexpected {type(error).__name__}: {words}. This is a bug of groupowl: run the command again with --debug, "
        "and report what it prints.",
        1,
    )


# Options ------------------------------------------------------------------------------------------------

_data = partial(typer.Option, rich_help_panel="Data")
_model = partial(typer.Option, rich_help_panel="Model")
_output = partial(typer.Option, rich_help_panel="Output")

#: What --quiet does, for help.
QUIET = "Print nothing but errors."
#: Formats in words, for help.
FORMATS = "csv, tsv, parquet, npz, libsvm, arff, or large for matrices on disk"
_COLUMNS = "by name, position (1 first, -1 last) or pattern ('gene*'), separated by commas"
_ALPHAS = "How many alphas, or a list of them separated by commas."


#: Ways to choose alpha that need no folds, and all of them; formats of files; kinds of targets.
Criterion = Literal["aic", "bic", "ebic"]
Selection = Literal["min", "1se", "aic", "bic", "ebic"]
FormatName = Literal["csv", "tsv", "parquet", "npz", "libsvm", "arff", "large"]
Task = Literal["auto", "regression", "classification"]


@dataclass(frozen=True)
class DataOptions:
    """A file and what its columns are for."""

    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="Data: CSV, TSV, Parquet, NPZ, LIBSVM or ARFF (text may be .gz or .bz2); .npy, HDF5, Zarr or a folder "
            "of blocks, which may exceed the memory.",
        ),
    ]
    targets: Annotated[
        list[str] | None, _data("--targets", "-t", metavar="COLUMNS", help=f"Columns to explain, {_COLUMNS}.")
    ] = None
    targets_from: Annotated[
        Path | None, _data(metavar="FILE", help="File with the targets, joined by --id-column.")
    ] = None
    id_column: Annotated[
        str | None, _data(metavar="COLUMN", help="Names of samples; A=B if it is B in --targets-from.")
    ] = None
    transpose: Annotated[
        bool, _data("--transpose", help="Rows are features (named in the first column), columns samples.")
    ] = False
    task: Annotated[
        Task,
        _data(
            metavar="KIND",
            help="regression, classification, or auto: classification if the one target is text or categories.",
        ),
    ] = "auto"
    groups: Annotated[str | None, _data(metavar="COLUMN", help="Samples of a group stay in the same fold.")] = None
    sample_weight: Annotated[str | None, _data(metavar="COLUMN", help="Weights of the samples.")] = None
    drop: Annotated[
        list[str] | None, _data(metavar="COLUMNS", help="Columns to leave out, given like those of --targets.")
    ] = None
    format: Annotated[
        FormatName | None, _data(metavar="NAME", help=f"Format of FILE, if its suffix does not say it: {FORMATS}.")
    ] = None

    def reading(self, unpenalized: list[str] | None) -> Reading:
        """How to read the file."""
        roles = Roles(
            targets=tuple(self.targets or ()),
            drop=tuple(self.drop or ()),
            unpenalized=tuple(unpenalized or ()),
            groups=self.groups,
            sample_weight=self.sample_weight,
            id_column=self.id_column,
            task=self.task,
        )
        other = None if self.targets_from is None else str(self.targets_from)
        return Reading(roles, self.format, self.transpose, other)


@dataclass(frozen=True)
class ModelOptions:
    """How any model is fitted."""

    weights: Annotated[
        str,
        _model(
            "--weights",
            "-w",
            metavar="NAME",
            help="Weight sequence: oscar, linear, constant, bh, gaussian or chi; cv also takes a list.",
        ),
    ] = "oscar"
    standardize: Annotated[bool, _model("--standardize", help="Penalize columns as if divided by their deviation.")] = (
        False
    )
    unpenalized: Annotated[
        list[str] | None,
        _model("--unpenalized", metavar="COLUMNS", help="Features without penalty, given like columns of --targets."),
    ] = None
    test_size: Annotated[
        float | None, _model(metavar="SHARE", help="Hold out this share of the samples, and score on them.")
    ] = None
    seed: Annotated[int, _model(help="Of folds, held-out samples and solvers.")] = 0
    tol: Annotated[float, _model(help="Largest duality gap, relative to the loss of the null model.")] = 1e-6
    max_iter: Annotated[int, _model(help="Most steps of each fit.")] = 10_000


@dataclass(frozen=True)
class AlphaOptions:
    """One alpha."""

    alpha: Annotated[str, _model("--alpha", "-a", metavar="NUMBER", help="Strength; auto: a tenth of the largest.")] = (
        "auto"
    )


@dataclass(frozen=True)
class PathOptions:
    """Many alphas, one of them chosen by a criterion."""

    alphas: Annotated[str, _model(metavar="N|LIST", help=_ALPHAS)] = "100"
    eps: Annotated[float, _model(help="Smallest alpha relative to the largest.")] = 1e-3
    selection: Annotated[
        Criterion, _model(metavar="RULE", help="Criterion that chooses the alpha of the saved model: aic, bic or ebic.")
    ] = "ebic"


@dataclass(frozen=True)
class FoldOptions:
    """Many alphas, one of them chosen by cross-validation."""

    alphas: Annotated[str, _model(metavar="N|LIST", help=_ALPHAS)] = "100"
    eps: Annotated[float, _model(help="Smallest alpha relative to the largest.")] = 1e-3
    selection: Annotated[
        Selection,
        _model(
            metavar="RULE",
            help="min: best score; 1se: for each weight sequence the largest alpha within one standard error of its "
            "best score; aic, bic, ebic: without folds. Of several sequences, the one with the best score is taken.",
        ),
    ] = "min"
    folds: Annotated[int, _model(help="Folds of cross-validation, at least 2.")] = 5
    jobs: Annotated[int, _model("--jobs", "-j", help="Folds at a time; -1: one per processor.")] = 1


@dataclass(frozen=True)
class TalkOptions:
    """How much to say, and in which language."""

    quiet: Annotated[bool, _output("--quiet", "-q", help=QUIET)] = False
    json: Annotated[bool, _output("--json", help="Print one JSON object, for programs.")] = False
    debug: Annotated[bool, _output("--debug", help="Show the traceback of an error.")] = False


@dataclass(frozen=True)
class OutputOptions(TalkOptions):
    """Where to write."""

    out: Annotated[
        Path | None, _output("--out", "-o", metavar="DIR", help="New folder for model, tables and report.")
    ] = None
    force: Annotated[bool, _output("--force", help="Replace what an earlier run has written.")] = False
