"""Running the command line in a test, files to give it, and a stand-in for the report where that is not there."""

import sys
import types
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

import groupowl as go
from groupowl import cli


@dataclass(frozen=True)
class ReportContents:
    """As :mod:`groupowl.report` has it."""

    title: str
    command: tuple
    facts: Any
    estimator: Any
    path: Any
    feature_names: Any
    target_names: Any
    scores: Any
    notes: Any
    survival: Any = ()


def write_report(path, contents):
    Path(path).write_text(f"<html><title>{contents.title}</title>{contents.scores}</html>", encoding="utf-8")


def install_report():
    """Put the stand-in where the module would be, if it is not there."""
    if "groupowl.report" in sys.modules or find_spec("groupowl.report") is not None:
        return
    module = types.ModuleType("groupowl.report")
    module.ReportContents, module.write_report = ReportContents, write_report
    sys.modules["groupowl.report"] = go.report = module


#: A program that is the command line, for tests that need a process of their own.
PROGRAM = "import cli_support; cli_support.install_report(); from groupowl.cli import main; main()"


@dataclass(frozen=True)
class Ran:
    """What a command has printed, and its exit code."""

    code: int
    out: str
    err: str = field(repr=True)

    @property
    def message(self):
        """The one message of a command that failed."""
        assert self.out == ""
        (line,) = self.err.splitlines()
        assert line.startswith("groupowl: ")
        assert "Traceback" not in line
        assert "unexpected" not in line, line
        return line.removeprefix("groupowl: ")


def without_progress(monkeypatch):
    """No lines of progress beside messages, however slow the machine is."""
    from groupowl.cli.terminal import Stages

    monkeypatch.setattr(Stages.__init__, "__kwdefaults__", {"patience": 3600.0})


def run_main(capsys, monkeypatch, *arguments):
    """The command line as the shell calls it, in this process."""
    monkeypatch.setattr(sys, "argv", ["groupowl", *map(str, arguments)])
    monkeypatch.setenv("COLUMNS", "100")
    capsys.readouterr()
    try:
        cli.main()
    except SystemExit as stopped:
        code = stopped.code
    printed = capsys.readouterr()
    return Ran(code, printed.out, printed.err)


# Data ---------------------------------------------------------------------------------------------------

N, D, Q = 40, 12, 2


def make_data(seed=0, n=N, d=D, q=Q):
    return go.datasets.make_correlated_groups(n, d, q, n_informative=4, group_size=2, random_state=seed)


def columns_of(data, names=None):
    """Columns of a file by name: ids, groups, weights, features, targets."""
    n, d = data.X.shape
    rng = np.random.default_rng(1)
    columns = {"id": [f"s{i:02d}" for i in range(n)], "house": [f"h{i % 5}" for i in range(n)]}
    columns["w"] = rng.integers(1, 4, n).tolist()
    columns |= {name: data.X[:, j].tolist() for j, name in enumerate(names or [f"gene{j}" for j in range(d)])}
    return columns | {f"y{k + 1}": data.Y[:, k].tolist() for k in range(data.Y.shape[1])}


def write_csv(path, columns, separator=","):
    rows = [list(columns), *zip(*columns.values(), strict=True)]
    path.write_text("\n".join(separator.join(map(str, row)) for row in rows) + "\n", encoding="utf-8")
    return path
