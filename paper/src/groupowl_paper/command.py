"""``groupowl reproduce``: the paper's experiments."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from groupowl.cli.commands import Options, command, option
from groupowl.cli.messages import Failure, make_folder, print_paths, printing, say, tell, writing
from groupowl.cli.terminal import progress_bar

if TYPE_CHECKING:
    from . import reproduce as reproduction


class ReproduceOptions(Options):
    """What to repeat, for how long, and where."""

    data: Path = option(..., "DIR", "Folder with the files of the data sets.", "--data")
    out: Path = option(Path("results"), "DIR", "Folder to write to; made if needed.", "--out", readable=False)
    quick: bool = option(False, "", "Five minutes: short runs, one trial.", "--quick")
    restart: bool = option(False, "", "Forget stored results and begin anew.", "--restart")
    datasets: str | None = option(None, "NAMES", "Only these data sets, separated by commas.", "--datasets")
    trials: int | None = option(None, None, "Runs of each cell; 5, or 1 with --quick.", "--trials")
    cap: float | None = option(None, "SECONDS", "Longest time of a run; 90, or 10 with --quick.", "--cap")
    minutes: float | None = option(None, None, "Longest time in all; 120, or 5 with --quick.", "--minutes")
    jobs: int = option(1, None, "Runs side by side; more than 1 disturbs their times.", "--jobs")
    study: bool = option(True, "", "Whether to run the study of correlated groups.", "--study/--no-study")
    quiet: bool = option(False, "", "Print nothing but errors.", "--quiet", "-q")
    debug: bool = option(False, "", "Show the traceback of an error.", "--debug")


@command(example="groupowl reproduce --data downloads --out results --quick")
def reproduce(options: ReproduceOptions) -> None:
    """Repeat the paper's experiments: its data sets, settings and algorithms, Figures 1 to 4, and groupowl beside them.

    Results are stored run by run: a second call continues where the first was stopped. A full run takes at most two
    hours; data sets that are not in the folder are listed and skipped.
    """
    from .reproduce import BusyError, write_outputs

    data, out, quiet = options.data, options.out, options.quiet
    if not data.is_dir():
        state = "is a file" if data.exists() else "does not exist"
        raise Failure(
            f"--data must be a folder with the files of the data sets, but {str(data)!r} {state}; "
            f"docs/measured/reproduction.md says where to download them"
        )
    try:
        campaign = _make_campaign(options)
        make_folder(out)
        if not quiet:
            with printing():
                _print_plan(campaign)
        with writing(out), progress_bar(quiet) as bar:
            results = campaign.run(
                lambda state: bar(state.done, state.total, state.description, _left(state.seconds_left))
            )
            bar(1, 1, "Drawing figures", _left(0.0))
            paths = write_outputs(results, out)
    except BusyError as error:
        raise Failure(str(error)) from error
    except KeyboardInterrupt:
        tell("stopped; the same command without --restart continues from here.")
        raise SystemExit(130) from None
    if not quiet:
        with printing(f"the results are in {out}"):
            _print_sizes(results)
            print_paths(paths)
    problem = _problem(results)
    if problem is not None:
        raise Failure(f"{problem}; see {paths[0]}")


def _make_campaign(options: ReproduceOptions) -> reproduction.Campaign:
    """The campaign; what is wrong with its options, its data or what is stored is one line, and nothing is written."""
    from .reproduce import Campaign

    try:
        with writing(options.out):
            return Campaign(options.data, options.out, _campaign_options(options), restart=options.restart)
    except (TypeError, ValueError) as error:
        is_option = str(error).partition(" ")[0] in vars(options)
        raise Failure(f"{'--' if is_option else ''}{error}") from error


def _print_sizes(results: reproduction.Results) -> None:
    """Data sets that have the name of the paper's and not its size."""
    for name in results.datasets:
        if "size differs" in results.whose(name):
            say(f"{name}: {results.whose(name)}.")


def _problem(results: reproduction.Results) -> str | None:
    """Why the call has failed, in words, though there is a report."""
    from .reproduce import refuted

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


def _campaign_options(options: ReproduceOptions) -> reproduction.Options:
    from .reproduce import Options, quick_options

    quick, datasets, cap = options.quick, options.datasets, options.cap
    chosen: dict[str, Any] = {name: getattr(options, name) for name in ("trials", "cap", "minutes", "jobs", "study")}
    if datasets is not None:
        chosen["datasets"] = tuple(name.strip() for name in datasets.split(",") if name.strip()) or ("",)
    if cap is not None:
        chosen["step_cap"] = min(cap, quick_options().step_cap) if quick else cap
    given = {name: value for name, value in chosen.items() if value is not None}
    return quick_options(**given) if quick else Options(**given)


def _print_plan(campaign: reproduction.Campaign) -> None:
    """What was found, what is missing, and how long it will take."""
    say(f"Data sets: {', '.join(campaign.found)}.")
    for name, files in campaign.missing.items():
        say(f"Missing, skipped: {name} (looked for {', '.join(files)}).")
    for key in campaign.repaired:
        say(f"Stored result {key} cannot be read and is done again.")
    limit = duration(60 * campaign.options.minutes)
    say(f"Expected time: about {duration(campaign.expected())}; never more than {limit}.")


def _left(seconds: float) -> str:
    """How long the rest is likely to take."""
    return f"about {duration(seconds)} left"


def duration(seconds: float) -> str:
    """Seconds, minutes or hours in words."""
    if seconds < 90:
        return f"{seconds:.0f} seconds"
    return f"{seconds / 60:.0f} minutes" if seconds < 5400 else f"{seconds / 3600:.1f} hours"
