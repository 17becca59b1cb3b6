"""Command line of the peer benchmark: ``python -m benchmarks.peers --help``."""

from __future__ import annotations

import argparse
import os
import platform
from functools import partial
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import numpy as np
from rich.console import Console

from . import cases
from .adapters import ADAPTERS, ROOT, takes_part
from .extras import measure, measure_small
from .report import PAGE, QUICK_PAGE, print_report, write_page
from .run import REPEATS, Runner, Settings, Store, now, versions
from .screen import Screen
from .targets import SLOWER, all_targets, tree_ratios, tree_targets
from .tree import write_tree_page

NO_R = "there is no R with the package glmnet here (Debian: apt-get install r-base-core r-cran-glmnet)"
LIMIT, QUICK_LIMIT, MINUTES, QUICK_MINUTES = 60.0, 20.0, 60.0, 10.0


def make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few cells, all competitors, at most ten minutes")
    parser.add_argument(
        "--part",
        default="".join(cases.GROUPS),
        type=known_groups,
        metavar="NAMES",
        help=f"some of {','.join(cases.PARTS)}, or letters of groups (default: all)",
    )
    parser.add_argument(
        "--against", type=source_tree, metavar="FOLDER", help="compare with groupowl in another clone, FOLDER/src"
    )
    parser.add_argument("--thorough", action="store_true", help="full limit for baselines, all paths; takes hours")
    parser.add_argument("--cases", default="", metavar="TEXT", help="problems whose name has TEXT in it; see --list")
    parser.add_argument(
        "--competitors",
        type=known_competitors,
        metavar="NAMES",
        help="such as groupowl,celer",
    )
    parser.add_argument("--data", type=Path, metavar="DIR", help="folder with real data sets (.npz)")
    parser.add_argument(
        "--limit",
        type=float,
        default=LIMIT,
        metavar="S",
        help="for a competitor on a problem (default: 60)",
    )
    parser.add_argument("--minutes", type=float, metavar="M", help="for the whole run (default: 60, quick 10)")
    parser.add_argument(
        "--repeats", type=int, default=REPEATS, metavar="N", help=f"timings of a short call (default: {REPEATS})"
    )
    parser.add_argument("--threads", type=int, default=1, metavar="N", help="of every competitor (default: 1)")
    parser.add_argument("--seed", type=int, default=0, help="of the order of runs (default: 0)")
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results", metavar="DIR")
    parser.add_argument("--resume", action="store_true", help="keep the cells that earlier runs finished")
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
    wanted = [name for name in ADAPTERS if any(takes_part(name, group) for group in arguments.part)]
    return [name for name in wanted if name != "before"]


def known_groups(text: str) -> list[str]:
    """Letters of groups, out of names of parts and letters."""
    found: list[str] = []
    for name in text.split(","):
        letters = cases.PARTS.get(name, name)
        unknown = [letter for letter in letters if letter not in cases.GROUPS]
        if unknown:
            meanings = "; ".join(f"{group}: {meaning}" for group, meaning in cases.GROUPS.items())
            raise argparse.ArgumentTypeError(
                f"unknown part {name!r}; known are {', '.join(cases.PARTS)}, and groups {meanings}"
            )
        found += letters
    return found


def chosen_problems(parser: argparse.ArgumentParser, arguments: argparse.Namespace) -> list[cases.Problem]:
    """Problems of the groups and names asked for; the parser's error where a run would have nothing to do."""
    everything = cases.problems(
        data=arguments.data,
        quick=arguments.quick,
        thorough=arguments.thorough,
        against=arguments.against is not None,
    )
    offered = [one for one in everything if one.group in arguments.part]
    chosen = [one for one in offered if arguments.cases in one.key]
    if chosen or wants_extras(arguments) or arguments.report:
        return chosen
    groups = ",".join(arguments.part)
    if not offered:
        hint = "; its data come from --data DIR" if "e" in arguments.part else ""
        parser.error(f"argument --part: there is no problem in {groups}{hint}")
    data = ", ".join(dict.fromkeys(one.source.key for one in offered))
    parser.error(
        f"argument --cases: {arguments.cases!r} is in no name of a problem in {groups}; their data are {data}; "
        f"--list prints the names"
    )


def wants_extras(arguments: argparse.Namespace) -> bool:
    """Whether to measure what does not belong to a problem."""
    return "x" in arguments.part and not arguments.cases


def known_versions(parser: argparse.ArgumentParser, competitors: list[str]) -> dict[str, str]:
    """Versions of the competitors; the parser's error where one is not installed."""
    try:
        return versions(competitors)
    except PackageNotFoundError as error:
        parser.error(f"argument --competitors: {error.name} is not installed; `make bench` installs all of them")


def description(settings: Settings, competitors: list[str], found: dict[str, str]) -> dict[str, object]:
    """What a reader must know about a run."""
    without_r = found.get("glmnet") == "missing"
    missing = {name: NO_R for name in competitors if without_r and ADAPTERS[name].package == "glmnet"}
    return {
        "cpu": settings.cpu,
        "repeats": settings.repeats,
        "left out": missing,
        "date": now(),
        "python": platform.python_version(),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "threads": settings.threads,
        "limit": settings.limit,
        "versions": {name: number for name, number in found.items() if number != "missing"},
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
    store.begin(description(settings, competitors, found))
    for name, reason in store.run["left out"].items():
        console.print(f"{name} is left out: {reason}")
    competitors = [name for name in competitors if name not in store.run["left out"]]
    if arguments.note is not None:
        store.run["note"] = arguments.note
    if not arguments.resume:
        store.forget(problems, competitors)
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
            if wants_extras(arguments) and not settings.over:
                store.data["extras"] |= measure_small(settings, competitors, runner.root, screen.say)
                if settings.against is None:
                    store.data["extras"] |= measure(settings, competitors, runner.root, screen.say)
        finally:
            runner.close()
            store.save()


def make_settings(arguments: argparse.Namespace) -> Settings:
    return Settings(
        limit=min(arguments.limit, QUICK_LIMIT if arguments.quick else np.inf),
        threads=arguments.threads,
        seed=arguments.seed,
        quick=arguments.quick,
        thorough=arguments.thorough,
        data=arguments.data,
        minutes=arguments.minutes or (QUICK_MINUTES if arguments.quick else MINUTES),
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
    page = QUICK_PAGE if arguments.quick else PAGE
    name, targets, write = "quick" if arguments.quick else "results", all_targets, partial(write_page, page=page)
    if arguments.against is not None:
        name, targets, write = "against", tree_targets, write_tree_page
    found = {} if arguments.report else known_versions(parser, arguments.competitors)
    console = Console()
    arguments.out.mkdir(parents=True, exist_ok=True)
    path = arguments.out / f"{name}.json"
    if not arguments.report:
        run(arguments, problems, Store(path), console, found)
    data = Store(path).data  # as the next reader will see it
    print_report(data, console, targets(data))
    console.print(f"written: {write(data, arguments.out)}", highlight=False)


if __name__ == "__main__":
    main()
