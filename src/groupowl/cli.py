"""The command line: ``groupowl demo``.

Typer, Rich and Matplotlib come with the extra ``cli``. Without them this module still imports, and :func:`main`
says what to install: annotations are strings that Typer alone evaluates, and commands are collected in a
table that :func:`build_app` turns into an application.

A new command is a function under ``@_command(example=...)``. It tries its folder with :func:`_make_folder`, shows
progress with :func:`_progress_bar`, writes inside :func:`_writing`, and stops with :func:`_fail`.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn, TypeVar

from . import __version__

_missing: str | None = None
try:
    import matplotlib  # noqa: F401  (drawn with later, but missed now rather than after the work is done)
    import typer
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
    from rich.table import Table
except ImportError as error:
    _missing = (error.name or str(error)).partition(".")[0]
else:
    OutOption = Annotated[
        Path, typer.Option("--out", metavar="DIR", readable=False, help="Folder to write to; made if needed.")
    ]
    QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Print the paths of the files written, no more.")]

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from .experiments.demo import DemoReport, ProgressHook

_FIGURE_DPI = 150

Command = TypeVar("Command", bound=Callable[..., None])
_commands: dict[Callable[..., None], str] = {}  # with an example of each


def main() -> None:
    """Entry point of the command ``groupowl``."""
    if _missing is not None:
        _fail(f'the command line needs {_missing}; run: pip install "groupowl[cli]"')
    build_app()()


def build_app() -> typer.Typer:
    """The application with all its commands."""
    app = typer.Typer(name="groupowl", no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
    app.callback(epilog="Example: groupowl demo --out demo")(_groupowl)
    for function, example in _commands.items():
        app.command(epilog=f"Example: {example}")(function)
    return app


def _command(*, example: str) -> Callable[[Command], Command]:
    """Make the function a command of the application; ``example`` ends its help."""

    def register(function: Command) -> Command:
        _commands[function] = example
        return function

    return register


# What commands share ---------------------------------------------------------------------------------


def _fail(message: str) -> NoReturn:
    """One line on stderr, exit code 1."""
    print(f"groupowl: {message}", file=sys.stderr)
    raise SystemExit(1)


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    """What goes wrong while ``path`` is written is one clear line."""
    try:
        yield
    except OSError as error:
        _fail(f"cannot write to {path}: {error.strerror or error}")


def _make_folder(folder: Path) -> None:
    """Make the folder and try to write to it, before hours of work end with nowhere to put the answer."""
    with _writing(folder):
        if folder.exists() and not folder.is_dir():
            _fail(f"cannot write to {folder}: it is a file, not a folder")
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()


@contextmanager
def _progress_bar(quiet: bool) -> Iterator[ProgressHook]:
    """A hook ``(done, total, description)`` that moves a bar on stderr; the bar is gone at the end."""
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(20), MofNCompleteColumn())
    console = Console(stderr=True)
    with Progress(*columns, TimeElapsedColumn(), console=console, transient=True, disable=quiet) as bar:
        task = bar.add_task("Starting", total=None)
        yield lambda done, total, description: bar.update(
            task, completed=done, total=total, description=description, refresh=True
        )


def _save_figures(figures: dict[str, Figure], folder: Path) -> list[Path]:
    paths = [folder / name for name in figures]
    for path, figure in zip(paths, figures.values(), strict=True):
        with _writing(path):
            figure.savefig(path, dpi=_FIGURE_DPI)
    return paths


def _print_paths(paths: list[Path]) -> None:
    """One path per line, never folded, so that it can be copied and piped."""
    for path in paths:
        print(path)


# Commands --------------------------------------------------------------------------------------------


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"groupowl {__version__}")
        raise typer.Exit()


def _groupowl(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Group OWL models: sparse multi-task regression and classification with certified answers."""


@_command(example="groupowl demo --out demo")
def demo(out: OutOption = Path("demo"), quiet: QuietOption = False) -> None:
    """Solve a regression and a classification problem on built-in data, with and without safe screening.

    Prints a table of times and proved gaps, and draws the gap against time and the rows against passes.
    Takes about ten seconds.
    """
    from .experiments.demo import demo_figures, run_demo

    _make_folder(out)
    with _progress_bar(quiet) as progress:
        reports = run_demo(progress=progress)
    paths = _save_figures(demo_figures(reports), out)
    if not quiet:
        _print_reports(reports)
    _print_paths(paths)
    if not all(report.agrees for report in reports):
        _fail("answers to the same problem disagree beyond their gaps; please report this as a bug.")


def _print_reports(reports: list[DemoReport]) -> None:
    console = Console()
    for report in reports:
        console.print(_demo_table(report))
        console.print(report.agreement, highlight=False)
        console.print()
    console.print("Speed-up is against the same solver without screening.", highlight=False)
    console.print()


def _demo_table(report: DemoReport) -> Table:
    table = Table(title=report.title, title_justify="left", title_style="bold", box=SIMPLE_HEAD)
    for heading in ("solver", "screening"):
        table.add_column(heading)
    for heading in ("time\n(s)", "passes", "relative\ngap", "rows\nkept", "rows\nselected", "speed-up"):
        table.add_column(heading, justify="right")
    for row in report.rows:
        table.add_row(
            row.solver,
            row.screening,
            f"{row.seconds:.3f}",
            f"{row.passes:.0f}",
            f"{row.relative_gap:.1e}",
            str(row.rows_kept),
            str(row.rows_selected),
            f"{row.speed_up:.1f}x",
            end_section=row.screening == "safe",
        )
    return table


if __name__ == "__main__":
    main()
