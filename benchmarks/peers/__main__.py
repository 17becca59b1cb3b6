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
from .adapters import ADAPTERS, ROOT
from .extras import measure
from .report import print_report, write_page
from .run import Runner, Settings, Store, now, versions
from .screen import Screen

ALL_GROUPS = ",".join(cases.GROUPS)


def make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few cells, all competitors, at most ten minutes")
    parser.add_argument("--thorough", action="store_true", help="full limit for baselines, all paths; takes hours")
    parser.add_argument("--only", default=ALL_GROUPS, type=known_groups, metavar="GROUPS", help=f"some of {ALL_GROUPS}")
    parser.add_argument("--cases", default="", metavar="TEXT", help="problems whose name has TEXT in it; see --list")
    parser.add_argument(
        "--competitors",
        default=",".join(ADAPTERS),
        type=known_competitors,
        metavar="NAMES",
        help="such as groupowl,celer",
    )
    parser.add_argument("--data", type=Path, metavar="DIR", help="folder with real data sets (.npz)")
    parser.add_argument("--limit", type=float, default=120.0, metavar="S", help="seconds for one call (default: 120)")
    parser.add_argument("--minutes", type=float, metavar="M", help="for the whole run (default: 90, quick 10)")
    parser.add_argument("--threads", type=int, default=1, metavar="N", help="of every competitor (default: 1)")
    parser.add_argument("--seed", type=int, default=0, help="of the order of runs (default: 0)")
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results", metavar="DIR")
    parser.add_argument("--resume", action="store_true", help="keep the cells that an earlier run finished")
    parser.add_argument("--report", action="store_true", help="only write the page again, from the results on disk")
    parser.add_argument("--list", action="store_true", help="print the problems and stop")
    return parser


def known_competitors(text: str) -> list[str]:
    names = text.split(",")
    unknown = [name for name in names if name not in ADAPTERS]
    if unknown:
        raise argparse.ArgumentTypeError(f"unknown competitor {unknown[0]!r}; known are {', '.join(ADAPTERS)}")
    return names


def known_groups(text: str) -> list[str]:
    groups = list(text.replace(",", "")) or list(cases.GROUPS)
    unknown = [group for group in groups if group not in cases.GROUPS]
    if unknown:
        meanings = "; ".join(f"{group}: {meaning}" for group, meaning in cases.GROUPS.items())
        raise argparse.ArgumentTypeError(f"unknown group {unknown[0]!r}; known are {meanings}")
    return groups


def chosen_problems(parser: argparse.ArgumentParser, arguments: argparse.Namespace) -> list[cases.Problem]:
    """Problems of the groups and names asked for; the parser's error where a run would have nothing to do."""
    everything = cases.problems(data=arguments.data, quick=arguments.quick, thorough=arguments.thorough)
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
    return "x" in arguments.only and not arguments.cases


def known_versions(parser: argparse.ArgumentParser, competitors: list[str]) -> dict[str, str]:
    """Versions of the competitors; the parser's error where one is not installed."""
    try:
        return versions(competitors)
    except PackageNotFoundError as error:
        parser.error(f"argument --competitors: {error.name} is not installed; `make bench` installs all of them")


def description(settings: Settings, found: dict[str, str]) -> dict[str, object]:
    """What a reader must know about a run."""
    return {
        "date": now(),
        "python": platform.python_version(),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "threads": settings.threads,
        "quick": settings.quick,
        "limit": settings.limit,
        "versions": found,
    }


def run(
    arguments: argparse.Namespace,
    problems: list[cases.Problem],
    store: Store,
    console: Console,
    found: dict[str, str],
) -> None:
    competitors = arguments.competitors
    settings = Settings(
        limit=min(arguments.limit, 30.0) if arguments.quick else arguments.limit,
        threads=arguments.threads,
        seed=arguments.seed,
        quick=arguments.quick,
        thorough=arguments.thorough,
        data=arguments.data,
        minutes=arguments.minutes or (np.inf if arguments.thorough else 10.0 if arguments.quick else 90.0),
    )
    store.data["meta"].update(description(settings, found))
    console.print(
        f"{len(problems)} problems, {len(competitors)} competitors, {settings.threads} thread(s) for everyone"
    )
    with Screen(console, len(problems) * len(competitors)) as screen:
        runner = Runner(settings, competitors, store, screen)
        try:
            runner.run(problems)
            if wants_extras(arguments):
                store.data["extras"] = measure(settings, competitors, runner.root, screen.say)
        finally:
            runner.close()
            store.save()


def main(argv: list[str] | None = None) -> None:
    parser = make_parser()
    arguments = parser.parse_args(argv)
    problems = chosen_problems(parser, arguments)
    if arguments.list:
        print("\n".join(problem.key for problem in problems))
        return
    found = {} if arguments.report else known_versions(parser, arguments.competitors)
    console = Console()
    arguments.out.mkdir(parents=True, exist_ok=True)
    store = Store(arguments.out / "results.json", arguments.resume or arguments.report)
    if not arguments.report:
        run(arguments, problems, store, console, found)
        store = Store(arguments.out / "results.json", resume=True)  # as the next reader will see it
    print_report(store.data, console)
    console.print(f"written: {write_page(store.data, arguments.out)}", highlight=False)


if __name__ == "__main__":
    main()
