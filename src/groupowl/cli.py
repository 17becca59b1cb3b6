"""The command line: ``groupowl demo`` and ``groupowl reproduce``.

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
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, TypeVar

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
    DataOption = Annotated[Path, typer.Option("--data", metavar="DIR", help="Folder with the files of the data sets.")]
    QuickOption = Annotated[bool, typer.Option("--quick", help="Five minutes: short runs, one trial.")]
    RestartOption = Annotated[bool, typer.Option("--restart", help="Forget stored results and begin anew.")]
    DatasetsOption = Annotated[
        str | None, typer.Option("--datasets", metavar="NAMES", help="Only these data sets, separated by commas.")
    ]
    TrialsOption = Annotated[int | None, typer.Option("--trials", help="Runs of each cell; 5, or 1 with --quick.")]
    CapOption = Annotated[
        float | None, typer.Option("--cap", metavar="SECONDS", help="Longest time of a run; 90, or 10 with --quick.")
    ]
    MinutesOption = Annotated[
        float | None, typer.Option("--minutes", help="Longest time in all; 120, or 5 with --quick.")
    ]
    JobsOption = Annotated[int, typer.Option("--jobs", help="Runs side by side; more than 1 disturbs their times.")]
    StudyOption = Annotated[
        bool, typer.Option("--study/--no-study", help="Whether to run the study of correlated groups.")
    ]

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from .experiments import reproduce as reproduction
    from .experiments.demo import DemoReport

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
def _progress_bar(quiet: bool) -> Iterator[Callable[..., None]]:
    """A hook ``(done, total, description)`` that moves a bar on stderr; the bar is gone at the end.

    A fourth argument, seconds, says beside it how long the rest is likely to take.
    """
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(20), MofNCompleteColumn())
    left = TextColumn("{task.fields[left]}")
    with Progress(
        *columns, TimeElapsedColumn(), left, console=Console(stderr=True), transient=True, disable=quiet
    ) as bar:
        task = bar.add_task("Starting", total=None, left="")

        def show(done: int, total: int, description: str, seconds: float | None = None) -> None:
            words = "" if seconds is None else f"about {_duration(seconds)} left"
            bar.update(task, completed=done, total=total, description=description, left=words, refresh=True)

        yield show


def _duration(seconds: float) -> str:
    """Seconds, minutes or hours in words."""
    if seconds < 90:
        return f"{seconds:.0f} seconds"
    return f"{seconds / 60:.0f} minutes" if seconds < 5400 else f"{seconds / 3600:.1f} hours"


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


@_command(example="groupowl reproduce --data downloads --out results --quick")
def reproduce(
    data: DataOption,
    out: OutOption = Path("results"),
    quick: QuickOption = False,
    restart: RestartOption = False,
    datasets: DatasetsOption = None,
    trials: TrialsOption = None,
    cap: CapOption = None,
    minutes: MinutesOption = None,
    jobs: JobsOption = 1,
    study: StudyOption = True,
    quiet: QuietOption = False,
) -> None:
    """Repeat the paper's experiments: its data sets, settings and algorithms, Figures 1 to 4, and groupowl beside them.

    Results are stored run by run: a second call continues where the first was stopped. A full run takes at most two
    hours; data sets that are not in the folder are listed and skipped.
    """
    from .experiments.reproduce import BusyError, write_outputs

    if not data.is_dir():
        state = "is a file" if data.exists() else "does not exist"
        _fail(
            f"--data must be a folder with the files of the data sets, but {str(data)!r} {state}; "
            f"docs/reproduction.md says where to download them"
        )
    try:
        campaign = _make_campaign(
            data, out, restart, lambda: _reproduce_options(quick, datasets, trials, cap, minutes, jobs, study)
        )
        _make_folder(out)
        if not quiet:
            _print_plan(campaign)
        with _writing(out), _progress_bar(quiet) as bar:
            results = campaign.run(lambda state: bar(state.done, state.total, state.description, state.seconds_left))
            bar(1, 1, "Drawing figures", 0.0)
            paths = write_outputs(results, out)
    except BusyError as error:
        _fail(str(error))
    except KeyboardInterrupt:
        print("groupowl: stopped; the same command without --restart continues from here.", file=sys.stderr)
        raise SystemExit(130) from None
    if not quiet:
        _print_sizes(results)
    _print_paths(paths)
    problem = _problem(results)
    if problem is not None:
        _fail(f"{problem}; see {paths[0]}")


def _make_campaign(
    data: Path, out: Path, restart: bool, make_options: Callable[[], reproduction.Options]
) -> reproduction.Campaign:
    """The campaign; what is wrong with its options, its data or what is stored is one line, and nothing is written."""
    from .experiments.reproduce import Campaign

    try:
        with _writing(out):
            return Campaign(data, out, make_options(), restart=restart)
    except (TypeError, ValueError) as error:
        _fail(str(error))


def _print_sizes(results: reproduction.Results) -> None:
    """Data sets that have the name of the paper's and not its size."""
    for name in results.datasets:
        if "size differs" in results.whose(name):
            print(f"{name}: {results.whose(name)}.")


def _problem(results: reproduction.Results) -> str | None:
    """Why the call has failed, in words, though there is a report."""
    from .experiments.reproduce import refuted

    if refuted(results):
        return "answers do not keep what their runs claim, please report this as a bug"
    if results.broken:
        key, message = next(iter(results.broken.items()))
        return f"failed: {len(results.broken)} pieces of work, the first of them {key} ({message.rstrip('.')})"
    if results.unreadable:
        return f"could not read the data of {', '.join(results.unreadable)}"
    if not results.n_runs:
        return f"nothing was run within the {results.options.minutes:g} minutes"
    return None


def _reproduce_options(
    quick: bool,
    datasets: str | None,
    trials: int | None,
    cap: float | None,
    minutes: float | None,
    jobs: int,
    study: bool,
) -> reproduction.Options:
    from .experiments.reproduce import Options, quick_options

    chosen: dict[str, Any] = {"trials": trials, "cap": cap, "minutes": minutes, "jobs": jobs, "study": study}
    if datasets is not None:
        chosen["datasets"] = tuple(name.strip() for name in datasets.split(",") if name.strip()) or ("",)
    if cap is not None:
        chosen["step_cap"] = min(cap, quick_options().step_cap) if quick else cap
    given = {name: value for name, value in chosen.items() if value is not None}
    return quick_options(**given) if quick else Options(**given)


def _print_plan(campaign: reproduction.Campaign) -> None:
    """What was found, what is missing, and how long it will take."""
    print(f"Data sets: {', '.join(campaign.found)}.")
    for name, files in campaign.missing.items():
        print(f"Missing, skipped: {name} (looked for {', '.join(files)}).")
    for key in campaign.repaired:
        print(f"Stored result {key} cannot be read and is done again.")
    limit = _duration(60 * campaign.options.minutes)
    print(f"Expected time: about {_duration(campaign.expected())}; never more than {limit}.")


if __name__ == "__main__":
    main()
