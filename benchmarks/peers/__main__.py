"""Command line of the peer benchmark: ``python -m benchmarks.peers --help``."""

from __future__ import annotations

import argparse
import os
import platform
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import numpy as np
from rich.console import Console

from . import cases
from .adapters import ADAPTERS, RIVALS, ROOT
from .extras import measure, measure_small
from .report import print_report, write_page
from .run import REPEATS_IN_ROUNDS, Runner, Settings, Store, now, versions
from .screen import Screen
from .small import write_groups_page, write_losses_page, write_small_page, write_tree_page
from .targets import SLOWER, all_targets, group_targets, loss_targets, small_targets, tree_ratios, tree_targets

ALL_GROUPS = ",".join(cases.GROUPS)
NO_R = "there is no R with the package glmnet here (Debian: apt-get install r-base-core r-cran-glmnet)"
SMALL_LIMIT, LOSSES_LIMIT, SMALL_MINUTES = 60.0, 20.0, 15.0


def make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few cells, all competitors, at most ten minutes")
    parser.add_argument("--small", action="store_true", help="small fits and paths, in at most 15 minutes")
    parser.add_argument("--losses", action="store_true", help="labels, counts and times, in at most 15 minutes")
    parser.add_argument("--groups", action="store_true", help="groups of columns, in at most 15 minutes")
    parser.add_argument(
        "--against", type=source_tree, metavar="FOLDER", help="compare with groupowl in another clone, FOLDER/src"
    )
    parser.add_argument("--thorough", action="store_true", help="full limit for baselines, all paths; takes hours")
    parser.add_argument("--only", default=ALL_GROUPS, type=known_groups, metavar="GROUPS", help=f"some of {ALL_GROUPS}")
    parser.add_argument("--cases", default="", metavar="TEXT", help="problems whose name has TEXT in it; see --list")
    parser.add_argument(
        "--competitors",
        type=known_competitors,
        metavar="NAMES",
        help="such as groupowl,celer",
    )
    parser.add_argument("--data", type=Path, metavar="DIR", help="folder with real data sets (.npz)")
    parser.add_argument("--limit", type=float, default=120.0, metavar="S", help="seconds for one call (default: 120)")
    parser.add_argument("--minutes", type=float, metavar="M", help="for the whole run (default: 90, quick 10)")
    parser.add_argument(
        "--repeats",
        type=int,
        default=REPEATS_IN_ROUNDS,
        metavar="N",
        help="timings in a small or comparing run (default: 60)",
    )
    parser.add_argument("--threads", type=int, default=1, metavar="N", help="of every competitor (default: 1)")
    parser.add_argument("--seed", type=int, default=0, help="of the order of runs (default: 0)")
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results", metavar="DIR")
    parser.add_argument("--resume", action="store_true", help="keep the cells that an earlier run finished")
    parser.add_argument("--report", action="store_true", help="only write the page again, from the results on disk")
    parser.add_argument("--list", action="store_true", help="print the problems and stop")
    parser.add_argument("--note", metavar="TEXT", help="what a reader of the page must know about this run")
    return parser


def known_competitors(text: str) -> list[str]:
    names = text.split(",")
    unknown = [name for name in names if name not in ADAPTERS]
    if unknown:
        raise argparse.ArgumentTypeError(f"unknown competitor {unknown[0]!r}; known are {', '.join(ADAPTERS)}")
    return names


def source_tree(text: str) -> Path:
    folder = Path(text).resolve() / "src"
    if not (folder / "groupowl" / "__init__.py").exists():
        raise argparse.ArgumentTypeError(f"{text!r} has no src/groupowl")
    return folder


def default_competitors(arguments: argparse.Namespace) -> list[str]:
    """Who takes part if nobody is named."""
    if arguments.against is not None:
        return ["groupowl", "before"]
    if arguments.small or arguments.losses or arguments.groups:
        groups = cases.LOSSES if arguments.losses else cases.COLUMN_GROUPS if arguments.groups else cases.SMALL
        return list(dict.fromkeys(name for group in groups for name in RIVALS[group]))
    return [name for name, adapter in ADAPTERS.items() if adapter.default]


def known_groups(text: str) -> list[str]:
    groups = list(text.replace(",", "")) or list(cases.GROUPS)
    unknown = [group for group in groups if group not in cases.GROUPS]
    if unknown:
        meanings = "; ".join(f"{group}: {meaning}" for group, meaning in cases.GROUPS.items())
        raise argparse.ArgumentTypeError(f"unknown group {unknown[0]!r}; known are {meanings}")
    return groups


def chosen_problems(parser: argparse.ArgumentParser, arguments: argparse.Namespace) -> list[cases.Problem]:
    """Problems of the groups and names asked for; the parser's error where a run would have nothing to do."""
    everything = cases.problems(
        data=arguments.data,
        quick=arguments.quick,
        thorough=arguments.thorough,
        small=arguments.small,
        losses=arguments.losses,
        groups=arguments.groups,
        against=arguments.against is not None,
    )
    offered = [one for one in everything if one.group in arguments.only]
    chosen = [one for one in offered if arguments.cases in one.key]
    if chosen or wants_extras(arguments) or arguments.report:
        return chosen
    groups = ",".join(arguments.only)
    if not offered:
        hint = "; its data come from --data DIR" if "e" in arguments.only else ""
        parser.error(f"argument --only: there is no problem in {groups}{hint}")
    data = ", ".join(dict.fromkeys(one.source.key for one in offered))
    parser.error(
        f"argument --cases: {arguments.cases!r} is in no name of a problem in {groups}; their data are {data}; "
        f"--list prints the names"
    )


def wants_extras(arguments: argparse.Namespace) -> bool:
    """Whether to measure what does not belong to a problem."""
    return "x" in arguments.only and not (arguments.cases or arguments.losses or arguments.groups)


def known_versions(parser: argparse.ArgumentParser, competitors: list[str]) -> dict[str, str]:
    """Versions of the competitors; the parser's error where one is not installed."""
    try:
        return versions(competitors)
    except PackageNotFoundError as error:
        parser.error(f"argument --competitors: {error.name} is not installed; `make bench` installs all of them")


def description(settings: Settings, found: dict[str, str]) -> dict[str, object]:
    """What a reader must know about a run."""
    missing = {"glmnet": NO_R} if found.get("glmnet") == "missing" else {}
    return {
        "small": settings.small,
        "cpu": settings.cpu,
        "repeats": settings.repeats,
        "left out": missing,
        "date": now(),
        "python": platform.python_version(),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "threads": settings.threads,
        "quick": settings.quick,
        "limit": settings.limit,
        "versions": {name: number for name, number in found.items() if name not in missing},
    }


def run(
    arguments: argparse.Namespace,
    problems: list[cases.Problem],
    store: Store,
    console: Console,
    found: dict[str, str],
) -> None:
    competitors = arguments.competitors
    settings = make_settings(arguments)
    store.data["meta"].update(description(settings, found))
    for name, reason in store.data["meta"]["left out"].items():
        console.print(f"{name} is left out: {reason}")
        competitors.remove(name)
    console.print(
        f"{len(problems)} problems, {len(competitors)} competitors, {settings.threads} thread(s) for everyone"
    )
    with Screen(console, len(problems) * len(competitors)) as screen:
        runner = Runner(settings, competitors, store, screen)
        try:
            runner.look_at_trees()
            runner.run(problems)
            if settings.against is not None:
                below = {
                    key for part in tree_ratios(store.data).values() for key, ratio in part.items() if ratio < SLOWER
                }
                runner.measure_again([problem for problem in problems if problem.key in below])
            if wants_extras(arguments):
                measured = measure_small if settings.in_rounds else measure
                store.data["extras"] = measured(settings, competitors, runner.root, screen.say)
        finally:
            runner.close()
            store.save()


def make_settings(arguments: argparse.Namespace) -> Settings:
    most = {"limit": np.inf, "minutes": 90.0}
    if arguments.quick:
        most = {"limit": 30.0, "minutes": 10.0}
    elif arguments.losses or arguments.groups:
        most = {"limit": LOSSES_LIMIT, "minutes": SMALL_MINUTES}
    elif arguments.small:
        most = {"limit": SMALL_LIMIT, "minutes": SMALL_MINUTES}
    elif arguments.thorough:
        most["minutes"] = np.inf
    return Settings(
        limit=min(arguments.limit, most["limit"]),
        threads=arguments.threads,
        seed=arguments.seed,
        quick=arguments.quick,
        thorough=arguments.thorough,
        data=arguments.data,
        minutes=arguments.minutes or most["minutes"],
        small=arguments.small or arguments.losses or arguments.groups,
        against=arguments.against,
        repeats=arguments.repeats,
    )


def main(argv: list[str] | None = None) -> None:
    parser = make_parser()
    arguments = parser.parse_args(argv)
    arguments.competitors = arguments.competitors or default_competitors(arguments)
    if ("before" in arguments.competitors) != (arguments.against is not None):
        parser.error("argument --competitors: 'before' is the groupowl of --against FOLDER, and they go together")
    problems = chosen_problems(parser, arguments)
    if arguments.list:
        print("\n".join(problem.key for problem in problems))
        return
    name, targets, write = "results", all_targets, write_page
    if arguments.against is not None:
        name, targets, write = "against", tree_targets, write_tree_page
    elif arguments.losses:
        name, targets, write = "losses", loss_targets, write_losses_page
    elif arguments.groups:
        name, targets, write = "groups", group_targets, write_groups_page
    elif arguments.small:
        name, targets, write = "small", small_targets, write_small_page
    found = {} if arguments.report else known_versions(parser, arguments.competitors)
    console = Console()
    arguments.out.mkdir(parents=True, exist_ok=True)
    path = arguments.out / f"{name}.json"
    store = Store(path, arguments.resume or arguments.report)
    if not arguments.report:
        run(arguments, problems, store, console, found)
        store = Store(path, resume=True)  # as the next reader will see it
    if arguments.note is not None:
        store.data["meta"]["note"] = arguments.note
        store.save()
    print_report(store.data, console, targets(store.data))
    console.print(f"written: {write(store.data, arguments.out)}", highlight=False)


if __name__ == "__main__":
    main()
