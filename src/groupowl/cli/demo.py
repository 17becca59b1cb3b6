"""``groupowl demo``: the main job on built-in data."""

from __future__ import annotations

import io
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from .commands import command
from .messages import Failure, make_folder, print_paths, printing, writing
from .options import QUIET
from .outcome import Outcome
from .run_folder import write_file, write_report_file
from .scores import OPTIMISTIC, fold_scores
from .terminal import PlainConsole, Stages, progress_bar

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from .demo_study import DemoReport

_FIGURE_DPI = 150
# What the columns of the tables mean, and why screening hardly changes the times of the default solver.
_EXPLANATIONS = (
    "Passes: products with the data, in units of one product with all of them. Rows kept: features that are not yet "
    "proved to be zero; a feature has a row of coefficients, one for each task or class. Speed-up: against the same "
    "solver without screening.",
    "The default solver, auto, works on few rows anyway: screening gives it proofs rather than speed, and its factors "
    "are near 1, or below.",
)


@dataclass(frozen=True)
class DemoOptions:
    """Where to write, and how much to say."""

    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="DIR", readable=False, help="Folder to write to; made if needed.")
    ] = Path("demo")
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help=QUIET)] = False
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False


@command(example="groupowl demo --out demo")
def demo(options: DemoOptions) -> None:
    """Solve a regression and a classification problem on built-in data, with and without safe screening.

    Prints a table of times and proved gaps, draws the gap against time and the rows against passes, and writes the
    report of a cross-validated fit. Takes about fifteen seconds.
    """
    from .demo_study import demo_figures, run_demo

    make_folder(options.out)
    with progress_bar(options.quiet) as progress:
        reports = run_demo(progress=progress)
    outcome = _cross_validated(options)  # before anything is written
    paths = [*_save_figures(demo_figures(reports), options.out), _write_report(outcome, options.out)]
    if not options.quiet:
        with printing(f"pictures and report are in {options.out}"):
            _print_reports(reports)
            print_paths(paths)
    if not all(report.agrees for report in reports):
        raise Failure("answers to the same problem disagree beyond their gaps; please report this as a bug.")


def _cross_validated(options: DemoOptions) -> Outcome:
    """A smaller regression with folds, as ``groupowl cv`` fits a file."""
    from .demo_study import demo_table, fit_demo

    started = time.perf_counter()
    with Stages(options.quiet).stage("Cross-validating a smaller regression"):
        table = demo_table()
        estimator = fit_demo(table)
    return Outcome(
        command="cv",
        typed=("groupowl", "demo", "--out", str(options.out)),
        table=table,
        estimator=estimator,
        path=estimator.path_,
        scores=fold_scores(estimator, table),
        notes=(OPTIMISTIC,),
        seconds=time.perf_counter() - started,
    )


def _write_report(outcome: Outcome, folder: Path) -> Path:
    path = folder / "report.html"
    with writing(path):
        write_report_file(path, outcome)
    return path


def _print_reports(reports: list[DemoReport]) -> None:
    console = PlainConsole()
    for report in reports:
        console.print(_demo_table(report))
        console.print(report.agreement, highlight=False)
        console.print()
    for words in _EXPLANATIONS:
        console.print(words, highlight=False)
        console.print()


def _demo_table(report: DemoReport) -> Table:
    table = Table(title=report.title, title_justify="left", title_style="bold", box=SIMPLE_HEAD)
    for heading in ("solver", "screening"):
        table.add_column(heading)
    for heading in ("time\n(s)", "passes", "relative\ngap", "rows\nkept", "rows\nselected", "speed-up"):
        table.add_column(heading, justify="right")
    for (solver, screening), result in report.results.items():
        table.add_row(
            solver,
            screening,
            f"{result.seconds:.3f}",
            f"{result.n_passes:.0f}",
            f"{result.gap / report.null_loss:.1e}",
            str(len(result.active)),
            str(len(result.support)),
            f"{report.results[solver, 'none'].seconds / result.seconds:.1f}x",
            end_section=screening == "safe",
        )
    return table


def _save_figures(figures: dict[str, Figure], folder: Path) -> list[Path]:
    """Draw all of them, then write each whole or not at all."""
    pictures = {folder / name: _drawn(figure, name) for name, figure in figures.items()}
    for path, picture in pictures.items():
        write_file(path, picture)
    return list(pictures)


def _drawn(figure: Figure, name: str) -> bytes:
    picture = io.BytesIO()
    figure.savefig(picture, dpi=_FIGURE_DPI, format=Path(name).suffix[1:])
    return picture.getvalue()
