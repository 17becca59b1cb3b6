"""Options in bundles: each dataclass is the part of a command line that some commands share."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from ..tables import Reading, Roles

_DATA, _MODEL, _OUTPUT = "Data", "Model", "Output"


class Criterion(StrEnum):
    """Ways to choose alpha that need no folds."""

    AIC = "aic"
    BIC = "bic"
    EBIC = "ebic"


class Selection(StrEnum):
    """Ways to choose alpha."""

    MIN = "min"
    ONE_SE = "1se"
    AIC = "aic"
    BIC = "bic"
    EBIC = "ebic"


class FormatName(StrEnum):
    """Formats of files."""

    CSV = "csv"
    TSV = "tsv"
    PARQUET = "parquet"
    NPZ = "npz"
    LIBSVM = "libsvm"
    ARFF = "arff"
    LARGE = "large"


class Task(StrEnum):
    """Kinds of targets."""

    AUTO = "auto"
    REGRESSION = "regression"
    CLASSIFICATION = "classification"


def _option(*names: str, panel: str, help: str, **more: Any) -> Any:
    return typer.Option(*names, rich_help_panel=panel, help=help, **more)


#: What --quiet does, for help.
QUIET = "Print nothing but errors."
#: Formats in words, for help.
FORMATS = "csv, tsv, parquet, npz, libsvm, arff, or large for matrices on disk"
_COLUMNS = "by name, position (1 first, -1 last) or pattern ('gene*'), separated by commas"


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
        list[str] | None,
        _option("--targets", "-t", panel=_DATA, metavar="COLUMNS", help=f"Columns to explain, {_COLUMNS}."),
    ] = None
    targets_from: Annotated[
        Path | None,
        _option("--targets-from", panel=_DATA, metavar="FILE", help="File with the targets, joined by --id-column."),
    ] = None
    id_column: Annotated[
        str | None,
        _option(
            "--id-column", panel=_DATA, metavar="COLUMN", help="Names of samples; A=B if it is B in --targets-from."
        ),
    ] = None
    transpose: Annotated[
        bool,
        _option("--transpose", panel=_DATA, help="Rows are features (named in the first column), columns samples."),
    ] = False
    task: Annotated[
        Task,
        _option(
            "--task",
            panel=_DATA,
            metavar="KIND",
            help="regression, classification, or auto: classification if the one target is text or categories.",
        ),
    ] = Task.AUTO
    groups: Annotated[
        str | None,
        _option("--groups", panel=_DATA, metavar="COLUMN", help="Samples of a group stay in the same fold."),
    ] = None
    sample_weight: Annotated[
        str | None, _option("--sample-weight", panel=_DATA, metavar="COLUMN", help="Weights of the samples.")
    ] = None
    drop: Annotated[
        list[str] | None,
        _option("--drop", panel=_DATA, metavar="COLUMNS", help="Columns to leave out, given like those of --targets."),
    ] = None
    format: Annotated[
        FormatName | None,
        _option(
            "--format", panel=_DATA, metavar="NAME", help=f"Format of FILE, if its suffix does not say it: {FORMATS}."
        ),
    ] = None

    def reading(self, unpenalized: list[str] | None = None) -> Reading:
        """How to read the file."""
        roles = Roles(
            targets=tuple(self.targets or ()),
            drop=tuple(self.drop or ()),
            unpenalized=tuple(unpenalized or ()),
            groups=self.groups,
            sample_weight=self.sample_weight,
            id_column=self.id_column,
            task=str(self.task),
        )
        other = None if self.targets_from is None else str(self.targets_from)
        return Reading(roles, None if self.format is None else str(self.format), self.transpose, other)


@dataclass(frozen=True)
class ModelOptions:
    """How any model is fitted."""

    weights: Annotated[
        str,
        _option(
            "--weights",
            "-w",
            panel=_MODEL,
            metavar="NAME",
            help="Weight sequence: oscar, linear, constant, bh, gaussian or chi; cv also takes a list.",
        ),
    ] = "oscar"
    standardize: Annotated[
        bool, _option("--standardize", panel=_MODEL, help="Penalise columns as if divided by their deviation.")
    ] = False
    unpenalized: Annotated[
        list[str] | None,
        _option(
            "--unpenalized",
            panel=_MODEL,
            metavar="COLUMNS",
            help="Features without penalty, given like columns of --targets.",
        ),
    ] = None
    test_size: Annotated[
        float | None,
        _option(
            "--test-size", panel=_MODEL, metavar="SHARE", help="Hold out this share of the samples, and score on them."
        ),
    ] = None
    seed: Annotated[int, _option("--seed", panel=_MODEL, help="Of folds, held-out samples and solvers.")] = 0
    tol: Annotated[
        float, _option("--tol", panel=_MODEL, help="Largest duality gap, relative to the loss of the null model.")
    ] = 1e-6
    max_iter: Annotated[int, _option("--max-iter", panel=_MODEL, help="Most steps of each fit.")] = 10_000


_ALPHAS = "How many alphas, or a list of them separated by commas."


@dataclass(frozen=True)
class AlphaOptions:
    """One alpha."""

    alpha: Annotated[
        str, _option("--alpha", "-a", panel=_MODEL, metavar="NUMBER", help="Strength; auto: a tenth of the largest.")
    ] = "auto"


@dataclass(frozen=True)
class PathOptions:
    """Many alphas, one of them chosen by a criterion."""

    alphas: Annotated[str, _option("--alphas", panel=_MODEL, metavar="N|LIST", help=_ALPHAS)] = "100"
    eps: Annotated[float, _option("--eps", panel=_MODEL, help="Smallest alpha relative to the largest.")] = 1e-3
    selection: Annotated[
        Criterion,
        _option(
            "--selection",
            panel=_MODEL,
            metavar="RULE",
            help="Criterion that chooses the alpha of the saved model: aic, bic or ebic.",
        ),
    ] = Criterion.EBIC


@dataclass(frozen=True)
class FoldOptions:
    """Many alphas, one of them chosen by cross-validation."""

    alphas: Annotated[str, _option("--alphas", panel=_MODEL, metavar="N|LIST", help=_ALPHAS)] = "100"
    eps: Annotated[float, _option("--eps", panel=_MODEL, help="Smallest alpha relative to the largest.")] = 1e-3
    selection: Annotated[
        Selection,
        _option(
            "--selection",
            panel=_MODEL,
            metavar="RULE",
            help="min: best score; 1se: for each weight sequence the largest alpha within one standard error of its "
            "best score; aic, bic, ebic: without folds. Of several sequences, the one with the best score is taken.",
        ),
    ] = Selection.MIN
    folds: Annotated[int, _option("--folds", panel=_MODEL, help="Folds of cross-validation, at least 2.")] = 5
    jobs: Annotated[int, _option("--jobs", "-j", panel=_MODEL, help="Folds at a time; -1: one per processor.")] = 1


@dataclass(frozen=True)
class TalkOptions:
    """How much to say, and in which language."""

    quiet: Annotated[bool, _option("--quiet", "-q", panel=_OUTPUT, help=QUIET)] = False
    json: Annotated[bool, _option("--json", panel=_OUTPUT, help="Print one JSON object, for programs.")] = False
    debug: Annotated[bool, _option("--debug", panel=_OUTPUT, help="Show the traceback of an error.")] = False


@dataclass(frozen=True)
class OutputOptions(TalkOptions):
    """Where to write."""

    out: Annotated[
        Path | None,
        _option("--out", "-o", panel=_OUTPUT, metavar="DIR", help="New folder for model, tables and report."),
    ] = None
    force: Annotated[bool, _option("--force", panel=_OUTPUT, help="Replace what an earlier run has written.")] = False
