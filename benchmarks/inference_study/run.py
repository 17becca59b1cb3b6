"""Runs of the study: kept one by one, so that a study that was stopped goes on, here or elsewhere; and reruns."""

from __future__ import annotations

import gzip
import json
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import nullcontext
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from . import shared
from .cells import CELLS, FDR, N_TRUE, QUICK, Cell, draw
from .procedures import MAX_FALSE, PROCEDURES, Procedure

#: Seeds of reruns begin here: no seed of the first runs is among them.
FRESH = 1_000_000
# Of procedures with few runs, every so many seeds: a study that is stopped early has more runs of what is judged.
_FEW_EVERY, _SLOW_EVERY = 3, 5


@dataclass(frozen=True)
class Plan:
    """How much is run.

    Attributes
    ----------
    cells : list of Cell
    n_runs, n_heavy, n_few, n_slow : int
        Runs of procedures that take one fit, or knockoffs; of those that take many; of those among these that promise
        nothing for a cell; and of those of which one run takes half a minute.
    n_fresh, n_fresh_heavy : int
        Runs with fresh seeds of what is above its promise.
    timed : int
        The seed whose runs are timed: its procedures share no work with each other. All of them have it.
    """

    cells: list[Cell]
    n_runs: int
    n_heavy: int
    n_few: int
    n_slow: int
    n_fresh: int
    n_fresh_heavy: int
    timed: int

    def count(self, procedure: Procedure, cell: Cell) -> int:
        """First runs of a procedure on a cell."""
        return len(self.seeds(procedure, cell))

    def seeds(self, procedure: Procedure, cell: Cell) -> range:
        """Their seeds."""
        if procedure.is_slow:
            return range(0, self.n_slow * _SLOW_EVERY, _SLOW_EVERY)
        if procedure.is_heavy and not procedure.judges(cell):
            return range(0, self.n_few * _FEW_EVERY, _FEW_EVERY)
        return range(self.n_heavy if procedure.is_heavy else self.n_runs)


FULL = Plan(CELLS, n_runs=200, n_heavy=50, n_few=20, n_slow=10, n_fresh=1000, n_fresh_heavy=1000, timed=15)
TEN_MINUTES = Plan(QUICK, n_runs=48, n_heavy=8, n_few=8, n_slow=0, n_fresh=100, n_fresh_heavy=20, timed=3)


class Item(NamedTuple):
    """One seed, and cells of one design, which have the same columns, with the procedures that get them."""

    seed: int
    work: tuple[tuple[Cell, tuple[str, ...]], ...]
    is_timed: bool = False


def run_item(item: Item) -> Iterator[dict[str, Any]]:
    """What each procedure selects; an error is an outcome, too."""
    for cell, names in item.work:
        data = draw(cell, item.seed)
        for procedure in reversed(PROCEDURES):
            if procedure.name not in names:
                continue
            outcome: dict[str, Any] = {"cell": cell.name, "procedure": procedure.name, "seed": item.seed}
            started = time.process_time()  # other work on the machine does not count
            try:
                with shared.alone() if item.is_timed else nullcontext():
                    selected = np.asarray(procedure.select(data), dtype=bool)
            except Exception as error:
                outcome["error"] = f"{type(error).__name__}: {error}"[:200]
            else:
                n_selected, n_false = int(selected.sum()), int((selected & ~data.is_true).sum())
                outcome |= {"selected": n_selected, "false": n_false}
                if item.is_timed:
                    outcome["seconds"] = round(time.process_time() - started, 4)
            yield outcome


def _outcomes(item: Item) -> list[dict[str, Any]]:
    """All at once, from another process."""
    return list(run_item(item))


class Log:
    """Outcomes of this and of earlier runs.

    New ones are added to a file of a folder, one a line; a line that was cut off by the end of a run is not read. A
    packed file of the repository has those of other machines; :meth:`pack` writes it.

    The study takes hours, so that runs of several commits and machines may be together: each outcome has the number of
    its versions in ``environments``.
    """

    def __init__(self, folder: Path, versions: dict[str, str], packed: Path | None = None) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / "runs.jsonl"
        self.environments: list[dict[str, str]] = []
        self.outcomes: dict[tuple[str, str, int], dict[str, Any]] = {}
        if packed is not None and packed.exists():
            self._unpack(packed)
        if self.path.exists():
            self._read()
        self.here = self._number(versions)
        with self.path.open("a", encoding="utf-8") as file:  # of the lines that follow
            file.write("\n" + json.dumps({"versions": versions}) + "\n")

    def _number(self, versions: dict[str, str]) -> int:
        """The place of versions among all, where they are put if they are new."""
        if versions not in self.environments:
            self.environments.append(versions)
        return self.environments.index(versions)

    def _read(self) -> None:
        by = 0
        for line in self.path.read_text(encoding="utf-8").splitlines():
            try:
                found = json.loads(line)
            except ValueError:
                continue
            if "versions" in found:
                by = self._number(found["versions"])
            else:
                self._keep(found, by)

    def _keep(self, outcome: dict[str, Any], by: int) -> None:
        self.outcomes[outcome["cell"], outcome["procedure"], outcome["seed"]] = outcome | {"by": by}

    def add(self, outcomes: Iterable[dict[str, Any]]) -> None:
        """Keep what was found."""
        with self.path.open("a", encoding="utf-8") as file:
            for outcome in outcomes:
                file.write(json.dumps(outcome) + "\n")
                file.flush()
                self._keep(outcome, self.here)

    def pack(self, path: Path) -> None:
        """Write all outcomes to one small file; the same outcomes make the same file."""
        series: dict[tuple[str, str], list[dict[str, Any]]] = {}
        for key in sorted(self.outcomes):
            series.setdefault(key[:2], []).append(self.outcomes[key])
        packed = []
        for (cell, procedure), outcomes in series.items():
            columns = {name: [outcome.get(name) for outcome in outcomes] for name in _COLUMNS}
            rare = {}
            for name in _RARE:
                rare[name] = {str(outcome["seed"]): outcome[name] for outcome in outcomes if name in outcome}
            packed.append({"cell": cell, "procedure": procedure, **columns, **rare})
        text = json.dumps({"environments": self.environments, "series": packed}, separators=(",", ":"))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(text.encode(), mtime=0))

    def _unpack(self, path: Path) -> None:
        stored = json.loads(gzip.decompress(path.read_bytes()))
        self.environments += stored["environments"]
        for series in stored["series"]:
            for values in zip(*(series[name] for name in _COLUMNS), strict=True):
                outcome = {"cell": series["cell"], "procedure": series["procedure"]}
                outcome |= {name: value for name, value in zip(_COLUMNS, values, strict=True) if value is not None}
                key = str(outcome["seed"])
                outcome |= {name: series[name][key] for name in _RARE if key in series[name]}
                self._keep(outcome, outcome["by"])

    def used_environments(self) -> list[dict[str, Any]]:
        """Versions with the number of their runs, of those that have any."""
        counts = np.bincount([outcome["by"] for outcome in self.outcomes.values()], minlength=len(self.environments))
        return [
            versions | {"runs": int(count)} for versions, count in zip(self.environments, counts, strict=True) if count
        ]

    def of(self, cell: Cell, procedure: Procedure, fresh: bool) -> list[dict[str, Any]]:
        """Outcomes of a procedure on a cell, of the first runs or of those with fresh seeds."""
        found = []
        for (name, by, seed), outcome in self.outcomes.items():
            if name == cell.name and by == procedure.name and (seed >= FRESH) == fresh:
                found.append(outcome)
        return found


# What packed outcomes have each, and what few have.
_COLUMNS, _RARE = ("seed", "selected", "false", "by"), ("seconds", "error")


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
    seconds = [outcome["seconds"] for outcome in done if "seconds" in outcome]
    spread = np.sqrt(max(len(done) - 1, 1) * len(done))
    return Summary(
        len(done),
        len(errors),
        float(rates.mean()),
        float(np.linalg.norm(rates - rates.mean()) / spread),
        float(false.mean()),
        float(np.linalg.norm(false - false.mean()) / spread),
        float((selected - false).mean()) / N_TRUE,
        float(selected.mean()),
        float(np.median(seconds)) if seconds else float("nan"),
        errors[0] if errors else "",
    )


# What is to be run ----------------------------------------------------------------------------------------


def first_items(plan: Plan, log: Log) -> Iterator[Item]:
    """What the plan asks for and the log does not have: seed by seed, so that all cells are equally far at any time."""
    for seed in range(max(plan.n_runs, plan.n_heavy, plan.n_few * _FEW_EVERY, plan.n_slow * _SLOW_EVERY)):
        yield from _items(plan, log, seed, lambda cell, procedure: seed in plan.seeds(procedure, cell))  # noqa: B023


def fresh_items(plan: Plan, log: Log) -> Iterator[Item]:
    """Runs with fresh seeds of what was above its promise by more than two standard errors, all first runs done."""
    counts: dict[tuple[str, str], int] = {}
    for cell in plan.cells:
        for procedure in available(cell):
            found = summarize(log.of(cell, procedure, fresh=False))
            if found is None or not found.n_runs or not procedure.judges(cell):
                continue
            is_done = found.n_runs + found.n_errors >= plan.count(procedure, cell)
            if is_done and found.is_above(procedure.promise, 2.0):
                counts[cell.name, procedure.name] = plan.n_fresh_heavy if procedure.is_heavy else plan.n_fresh
    for seed in range(max(counts.values(), default=0)):
        yield from _items(
            plan,
            log,
            FRESH + seed,
            lambda cell, procedure: seed < counts.get((cell.name, procedure.name), 0),  # noqa: B023
        )


def _items(plan: Plan, log: Log, seed: int, is_due: Callable[[Cell, Procedure], bool]) -> Iterator[Item]:
    """What is due of a seed and not in the log, an item for each design."""
    designs: dict[tuple[int, str], list[tuple[Cell, tuple[str, ...]]]] = {}
    for cell in plan.cells:
        names = []
        for procedure in available(cell):
            if is_due(cell, procedure) and (cell.name, procedure.name, seed) not in log.outcomes:
                names.append(procedure.name)
        if names:
            designs.setdefault((cell.d, cell.design), []).append((cell, tuple(names)))
    for work in designs.values():
        yield Item(seed, tuple(work), seed == plan.timed)


def available(cell: Cell) -> list[Procedure]:
    """Procedures that can be run on a cell, as far as this version and this environment have them."""
    return [procedure for procedure in PROCEDURES if procedure.applies(cell) and procedure.exists()]


def run_all(items: list[Item], log: Log, n_jobs: int, deadline: float) -> bool:
    """Run items, side by side where there are several jobs; False where the deadline came first."""
    started, n_done, told = time.time(), 0, time.time()
    for outcomes in _in_turn(items, deadline) if n_jobs == 1 else _side_by_side(items, n_jobs, deadline):
        log.add(outcomes)
        n_done += 1
        if time.time() - told > 30.0 or n_done == len(items):
            told = time.time()
            print(f"{n_done} of {len(items)} draws, {told - started:.0f} s", flush=True)
    return n_done == len(items)


def _in_turn(items: list[Item], deadline: float) -> Iterator[Iterator[dict[str, Any]]]:
    """Outcomes of items as they come: what is stopped in the middle of an item has kept its beginning."""
    for item in items:
        if time.time() >= deadline:
            return
        yield run_item(item)


def _side_by_side(items: list[Item], n_jobs: int, deadline: float) -> Iterator[list[dict[str, Any]]]:
    with ProcessPoolExecutor(n_jobs, mp_context=get_context("spawn")) as pool:
        waiting: set[Future[list[dict[str, Any]]]] = set()
        remaining = iter(items)
        while True:
            while len(waiting) < 2 * n_jobs and time.time() < deadline:
                item = next(remaining, None)
                if item is None:
                    break
                waiting.add(pool.submit(_outcomes, item))
            if not waiting:
                return
            done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            yield from (future.result() for future in done)
