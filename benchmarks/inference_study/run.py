"""Runs of the study: kept one by one in a folder, so that a run that was stopped goes on; and the judge's reruns."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .cells import CELLS, FDR, QUICK, Cell, draw
from .procedures import MAX_FALSE, PROCEDURES, Procedure

#: Seeds of reruns begin here: no seed of the first runs is among them.
FRESH = 1_000_000
# Seeds of one cell that follow each other before the next cell is taken up: a run that is stopped has a bit of all.
_TOGETHER = 10


@dataclass(frozen=True)
class Plan:
    """How much is run.

    Attributes
    ----------
    cells : list of Cell
    n_runs, n_heavy : int
        Runs of procedures that take one fit, or knockoffs; and of those that take many.
    n_fresh, n_fresh_heavy : int
        Runs with fresh seeds of what is above its promise.
    takes_slow : bool
        Whether procedures take part of which one run takes half a minute.
    """

    cells: list[Cell]
    n_runs: int
    n_heavy: int
    n_fresh: int
    n_fresh_heavy: int
    takes_slow: bool = True


FULL = Plan(CELLS, n_runs=200, n_heavy=50, n_fresh=1000, n_fresh_heavy=1000)
TEN_MINUTES = Plan(QUICK, n_runs=48, n_heavy=8, n_fresh=100, n_fresh_heavy=20, takes_slow=False)


class Item(NamedTuple):
    """One draw of data, and the procedures that get it."""

    cell: Cell
    seed: int
    names: tuple[str, ...]


def run_item(item: Item) -> list[dict[str, Any]]:
    """What each procedure selects; an error is an outcome, too."""
    data, outcomes = draw(item.cell, item.seed), []
    for procedure in PROCEDURES:
        if procedure.name not in item.names:
            continue
        outcome: dict[str, Any] = {"cell": item.cell.name, "procedure": procedure.name, "seed": item.seed}
        started = time.process_time()  # other work on the machine does not count
        try:
            selected = np.asarray(procedure.select(data), dtype=bool)
        except Exception as error:
            outcome["error"] = f"{type(error).__name__}: {error}"[:200]
        else:
            n_selected, n_false = int(selected.sum()), int((selected & ~data.is_true).sum())
            outcome |= {"selected": n_selected, "false": n_false}
            outcome["power"] = round(float(selected[data.is_true].mean()), 4)
            outcome["seconds"] = round(time.process_time() - started, 4)
        outcomes.append(outcome)
    return outcomes


class Log:
    """Outcomes in a file, one a line; a line that was cut off by the end of a run is not read.

    Runs of several commits of one version may be in it, because the study takes hours: all of them are named.
    """

    def __init__(self, folder: Path, versions: dict[str, str]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.versions = _joined(folder / "versions.json", versions)
        self.path = folder / "runs.jsonl"
        self.outcomes: dict[tuple[str, str, int], dict[str, Any]] = {}
        if self.path.exists():
            for line in self.path.read_text(encoding="utf-8").splitlines():
                try:
                    outcome = json.loads(line)
                except ValueError:
                    continue
                self.outcomes[outcome["cell"], outcome["procedure"], outcome["seed"]] = outcome

    def add(self, outcomes: Iterable[dict[str, Any]]) -> None:
        """Keep what one item has found."""
        with self.path.open("a", encoding="utf-8") as file:
            for outcome in outcomes:
                file.write(json.dumps(outcome) + "\n")
                self.outcomes[outcome["cell"], outcome["procedure"], outcome["seed"]] = outcome

    def of(self, cell: Cell, procedure: Procedure, fresh: bool) -> list[dict[str, Any]]:
        """Outcomes of a procedure on a cell, of the first runs or of those with fresh seeds."""
        found = []
        for (name, by, seed), outcome in self.outcomes.items():
            if name == cell.name and by == procedure.name and (seed >= FRESH) == fresh:
                found.append(outcome)
        return found


def _joined(about: Path, versions: dict[str, str]) -> dict[str, str]:
    """Versions of all runs of a folder, commits one after the other; refused where they differ in anything else."""
    known = json.loads(about.read_text(encoding="utf-8")) if about.exists() else {}
    commits = [*known.get("commit", "").split(), *versions.get("commit", "").split()]
    joined = versions | {"commit": " ".join(dict.fromkeys(commits))} if commits else versions
    if known and known | {"commit": ""} != versions | {"commit": ""}:
        raise SystemExit(f"{about.parent} has runs of other versions; remove it, or name another folder with --work.")
    about.write_text(json.dumps(joined, indent=1), encoding="utf-8")
    return joined


class Summary(NamedTuple):
    """Means over runs with their standard errors; ``rate`` is the false discovery rate, ``count`` false selections."""

    n_runs: int
    n_errors: int
    rate: float
    rate_se: float
    count: float
    count_se: float
    power: float
    selected: float
    seconds: float
    error: str = ""

    def measured(self, promise: str) -> tuple[float, float, float]:
        """What a promise is about, its standard error, and what was promised."""
        if promise == "count":
            return self.count, self.count_se, MAX_FALSE
        return self.rate, self.rate_se, FDR

    def is_above(self, promise: str, n_errors: float) -> bool:
        """Whether the mean is above what was promised by more than so many standard errors."""
        mean, error, promised = self.measured(promise)
        return mean > promised + n_errors * error


def summarize(outcomes: list[dict[str, Any]]) -> Summary | None:
    """Means over the runs that have ended without an error; None where there is no run."""
    done = [outcome for outcome in outcomes if "error" not in outcome]
    errors = [outcome["error"] for outcome in outcomes if "error" in outcome]
    if not done:
        return Summary(0, len(errors), *(7 * [float("nan")]), error=errors[0]) if errors else None
    false = np.array([outcome["false"] for outcome in done], dtype=float)
    selected = np.array([outcome["selected"] for outcome in done], dtype=float)
    rates = false / np.maximum(selected, 1.0)
    spread = np.sqrt(max(len(done) - 1, 1) * len(done))
    return Summary(
        len(done),
        len(errors),
        float(rates.mean()),
        float(np.linalg.norm(rates - rates.mean()) / spread),
        float(false.mean()),
        float(np.linalg.norm(false - false.mean()) / spread),
        float(np.mean([outcome["power"] for outcome in done])),
        float(selected.mean()),
        float(np.median([outcome["seconds"] for outcome in done])),
        errors[0] if errors else "",
    )


# What is to be run ----------------------------------------------------------------------------------------


def first_items(plan: Plan, log: Log) -> Iterator[Item]:
    """What the plan asks for and the log does not have."""
    for start in range(0, plan.n_runs, _TOGETHER):
        for cell in plan.cells:
            for seed in range(start, min(start + _TOGETHER, plan.n_runs)):
                names = []
                for procedure in available(cell):
                    is_due = seed < (plan.n_heavy if procedure.is_heavy else plan.n_runs)
                    is_due = is_due and (plan.takes_slow or not procedure.is_slow)
                    if is_due and (cell.name, procedure.name, seed) not in log.outcomes:
                        names.append(procedure.name)
                if names:
                    yield Item(cell, seed, tuple(names))


def fresh_items(plan: Plan, log: Log) -> Iterator[Item]:
    """Runs with fresh seeds, of what was above its promise by more than two standard errors."""
    for cell in plan.cells:
        for procedure in available(cell):
            found = summarize(log.of(cell, procedure, fresh=False))
            if found is None or not found.n_runs or not procedure.judges(cell):
                continue
            if found.is_above(procedure.promise, 2.0):
                n_runs = plan.n_fresh_heavy if procedure.is_heavy else plan.n_fresh
                for seed in range(FRESH, FRESH + n_runs):
                    if (cell.name, procedure.name, seed) not in log.outcomes:
                        yield Item(cell, seed, (procedure.name,))


def available(cell: Cell) -> list[Procedure]:
    """Procedures that can be run on a cell, as far as this version and this environment have them."""
    return [procedure for procedure in PROCEDURES if procedure.applies(cell) and procedure.exists()]


def run_all(items: list[Item], log: Log, n_jobs: int, deadline: float) -> bool:
    """Run items side by side; False where the deadline came first."""
    started, n_done, told = time.time(), 0, time.time()
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[variable] = "1"  # of new processes: runs are side by side, and their times are those of one core
    with ProcessPoolExecutor(n_jobs, mp_context=get_context("spawn")) as pool:
        waiting: set[Future[list[dict[str, Any]]]] = set()
        remaining = iter(items)
        while True:
            while len(waiting) < 2 * n_jobs and time.time() < deadline:
                item = next(remaining, None)
                if item is None:
                    break
                waiting.add(pool.submit(run_item, item))
            if not waiting:
                break
            done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            for future in done:
                log.add(future.result())
                n_done += 1
            if time.time() - told > 30.0 or n_done == len(items):
                told = time.time()
                print(f"{n_done} of {len(items)} draws, {told - started:.0f} s", flush=True)
    return n_done == len(items)
