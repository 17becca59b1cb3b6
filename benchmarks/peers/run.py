"""The run: for each problem find every competitor's tolerance, then time all of them in turn, in random order."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from importlib.metadata import PackageNotFoundError, version
from itertools import groupby, product
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from groupowl._files import write_file
from groupowl_harness import judge

from . import cases
from .adapters import ADAPTERS, ROOT, Adapter, takes_part
from .cases import Problem, Source
from .glmnet_in_r import version as version_in_r
from .process import Failed, OverLimit, Process

MAX_ATTEMPTS = 8  # runs to find a tolerance
OVERSOLVED = 30  # a first answer this much better than asked for gets one looser try
LADDER_SHARE = 0.5  # of the limit: once the search for a tolerance took longer, it starts no other run
BASELINE_PATIENCE, QUICK_PATIENCE = 6.0, 4.0  # seconds for baselines outside of (a), for all who are slow
SPECTRA_PATIENCE = 20.0  # the aim is one second
LATE, LATE_PATIENCE = 0.8, 30.0  # share of the minutes after which baselines are left out and limits are short
OVER = 0.95  # share after which no problem is begun
COMPILE_LIMIT = 180.0
LOOSEN, LOOSEN_SECONDS = (4.0, 2.0), 0.5  # looser tolerances to try for short calls
# Calls in rounds of one random order, each round short.
REPEATS, ROUND_SECONDS, ROUND_CALLS, ROUNDS_SECONDS = 60, 0.05, 5, 1.0
LEAST_ROUNDS, LEAST_SECONDS = 3, 2.0  # of calls up to so long
AGAIN = 3  # times that problems are measured anew which another source tree solved faster
PROFILE_FACTORS = 10.0 ** np.arange(8, -5, -1.5)  # of the tolerance found, from loose to tight
PROFILE_SECONDS, QUICK_PROFILE_SECONDS, PROFILE_GAP = 8.0, 2.0, 1e-10
SHARES_SECONDS = 1.0  # of CPU time, for the shares of modules where a peer is faster


@dataclass
class Settings:
    """What the command line decides."""

    limit: float = 60.0  # seconds for one competitor on one problem
    threads: int = 1
    seed: int = 0
    quick: bool = False
    thorough: bool = False
    data: Path | None = None
    minutes: float = np.inf  # for the whole run
    against: Path | None = None  # the folder with the packages of another source tree
    repeats: int = REPEATS
    started: float = field(default_factory=time.monotonic)

    @property
    def cpu(self) -> bool:
        """Whether CPU time is measured; of several threads it would be their sum."""
        return self.threads == 1

    @property
    def over(self) -> bool:
        """Whether the minutes are nearly used up."""
        return time.monotonic() - self.started > 60.0 * OVER * self.minutes

    @property
    def late(self) -> bool:
        """Whether the run must hurry to keep its time."""
        return time.monotonic() - self.started > 60.0 * LATE * self.minutes

    def limit_of(self, adapter: Adapter, problem: Problem) -> float:
        """Seconds for one problem; those known to be slow get less, which only understates their times."""
        if self.thorough:
            return self.limit
        patience = adapter.patience
        if np.isfinite(patience) and self.quick:
            patience = QUICK_PATIENCE
        elif adapter.baseline and problem.group != "a":
            patience = BASELINE_PATIENCE
        if problem.group == "s":
            patience = min(patience, SPECTRA_PATIENCE)
        return min(self.limit, patience, LATE_PATIENCE if self.late else np.inf)

    def left_out(self, adapter: Adapter, problem: Problem) -> bool:
        """Baselines run on all of (a) and on part of the rest."""
        elsewhere = problem.group in "eg" or (problem.group in "bc" and problem.source.correlation > 0.5)
        return adapter.baseline and not self.thorough and (self.late or (elsewhere and not self.quick))


@dataclass
class Cell:
    """One competitor on one problem."""

    problem: Problem
    adapter: Adapter
    status: str = "ok"
    note: str = ""
    tol: float = np.nan
    gap: float = np.nan
    median_gap: float = np.nan  # over the strengths of a path; gap is the worst
    objective: float = np.nan
    dual: float = np.nan
    n_rows: int = 0
    times: list[float] = field(default_factory=list)
    products: list[float] = field(default_factory=list)
    tries: list[tuple[float, float, float]] = field(default_factory=list)  # tolerance, seconds, gap
    profile: list[tuple[float, float]] = field(default_factory=list)  # seconds, gap
    shares: dict[str, float] = field(default_factory=dict)  # of modules in its time, where a peer is faster

    @property
    def seconds(self) -> float:
        """Median time."""
        return float(np.median(self.times)) if self.times else np.nan

    def record(self, size: tuple[int, int, int]) -> dict[str, Any]:
        """The cell as JSON."""
        problem = self.problem
        return {
            "key": problem.key,
            "case": problem.case,
            "group": problem.group,
            "competitor": self.adapter.name,
            "fraction": problem.fraction,
            "length": problem.length if problem.fraction is None else 1,
            "weights": problem.weights,
            "loss": problem.source.loss,
            "size": size,
            "goal": problem.goal,
            "seconds": self.seconds,
            "least": min(self.times, default=np.nan),
            **{
                name: getattr(self, name)
                for name in ("status", "note", "tol", "gap", "median_gap", "objective", "dual", "n_rows")
            },
            **{name: getattr(self, name) for name in ("times", "products", "tries", "profile", "shares")},
        }


class Store:
    """Results on disk, written after every problem, so that an interrupted run keeps what it has.

    Cells of many runs live together; each has the number of its run, and ``runs`` tells when and with what that was.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.data: dict[str, Any] = {"runs": [], "cells": {}, "extras": {}}
        if path.exists():
            self.data = json.loads(path.read_text())

    def begin(self, description: dict[str, Any]) -> None:
        """A new run, to which all cells belong that are added from now on."""
        self.data["runs"].append(description)

    @property
    def run(self) -> dict[str, Any]:
        """What is known about this run."""
        found: dict[str, Any] = self.data["runs"][-1]
        return found

    def has(self, problem: Problem, adapter: Adapter) -> bool:
        """Whether this cell is finished."""
        return f"{problem.key} | {adapter.name}" in self.data["cells"]

    def forget(self, problems: list[Problem], competitors: list[str]) -> None:
        """Remove the cells of these problems and competitors, which are measured anew."""
        for problem, name in product(problems, competitors):
            self.data["cells"].pop(f"{problem.key} | {name}", None)

    def add(self, record: dict[str, Any]) -> None:
        """Keep a finished cell."""
        record = {**record, "run": len(self.data["runs"]) - 1}
        self.data["cells"][f"{record['key']} | {record['competitor']}"] = record

    def save(self) -> None:
        """Write everything; a file that is half written never replaces a whole one."""
        write_file(self.path, json.dumps(_plain(self.data), indent=1))


def _plain(value: Any) -> Any:
    """Numbers that JSON knows: six digits for times and gaps are plenty, and no NaN."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float):
        return float(f"{value:.12g}") if np.isfinite(value) else None
    return value


class Folder:
    """Data of one source on disk for the workers, and in memory for the judge."""

    def __init__(self, root: Path, source: Source, data: Path | None) -> None:
        self.source = source
        self.path = root / source.key.replace(" ", "_")
        self.path.mkdir(exist_ok=True)
        self.X, self.Y = cases.load(source, data)
        self.size = (*self.X.shape, self.Y.shape[1])
        self.n_groups = self.size[1] // source.group_size
        self.groups = None if source.group_size == 1 else np.arange(self.size[1]) // source.group_size
        self.strongest: dict[str, float] = {}  # lam_max for each weight sequence
        np.save(self.path / "Y.npy", self.Y)
        if sp.issparse(self.X):
            sp.save_npz(self.path / "X.npz", self.X, compressed=False)
        else:
            np.save(self.path / "X_C.npy", self.X)
            np.save(self.path / "X_F.npy", np.asfortranarray(self.X))

    def prepare(self, problem: Problem) -> tuple[np.ndarray, np.ndarray]:
        """Weights, also on disk, and the strengths to solve for."""
        weights = cases.weight_sequence(problem.weights, self.n_groups)
        np.save(self.path / f"weights_{problem.weights}.npy", weights)
        strongest = judge.lam_max(self.X, self.Y, weights, self.source.loss, self.groups)
        self.strongest[problem.weights] = strongest
        if problem.fraction is not None:
            return weights, np.array([problem.fraction * strongest])
        return weights, strongest * np.geomspace(1.0, problem.end, problem.length)

    def request(self, problem: Problem) -> dict[str, Any]:
        """What a worker is asked to load."""
        strongest = self.strongest[problem.weights]
        names = {"folder": str(self.path), "loss": self.source.loss, "weights": problem.weights}
        return {"do": "load", **names, "strongest": strongest, "group_size": self.source.group_size}

    def remove(self) -> None:
        """Free the disk."""
        shutil.rmtree(self.path)


class Runner:
    """Runs problems with the competitors chosen."""

    def __init__(self, settings: Settings, competitors: list[str], store: Store, show) -> None:
        self.settings, self.store, self.show = settings, store, show
        self.adapters = [ADAPTERS[name] for name in competitors]
        self.random = random.Random(settings.seed)
        self.root = Path(tempfile.mkdtemp(prefix="groupowl-bench-"))
        self.alone, self.together = self._processes(competitors)
        self.tolerances: dict[Any, float] = {}  # what a competitor needed last time
        self.stopped: dict[tuple[str, str], tuple[float, float]] = {}  # fraction and time at which a case was stopped
        self.tiny: dict[Any, Folder] = {}

    def _processes(self, competitors: list[str]) -> tuple[dict[str, Process], dict[str, Process]]:
        """Each competitor has a process of its own; for small problems, all that get along share another one."""
        options = {"threads": self.settings.threads, "tree": self.settings.against, "folder": self.root}
        alone = {name: Process(name, **options) for name in competitors}
        shared = [one.name for one in self.adapters if not (one.own_process or one.own_environment)]
        if self.settings.against is not None or not shared:
            return alone, {}
        return alone, dict.fromkeys(shared, Process(*shared, **options))

    def process_of(self, name: str, size: tuple[int, int, int]) -> Process:
        """Where a competitor lives: what stops a large problem would stop the others with it."""
        small = size[0] * size[1] < cases.LARGE
        return self.together[name] if small and name in self.together else self.alone[name]

    def look_at_trees(self) -> None:
        """Note which kernel each source tree of groupowl runs with; another tree than the one meant is an error."""
        for name in [name for name in ("groupowl", "before") if name in self.alone]:
            found = self.alone[name].ask(COMPILE_LIMIT, do="source_tree")
            wanted = self.settings.against if name == "before" else ROOT / "src"
            if wanted is None or Path(found["folder"]) != wanted.resolve():
                raise Failed(f"{name}: imported from {found['folder']}, not from {wanted}")
            self.store.run.setdefault("kernels", {})[name] = found["kernel"]

    def close(self) -> None:
        """End the workers and remove their files."""
        self.stop()
        shutil.rmtree(self.root, ignore_errors=True)

    def stop(self) -> None:
        """End the workers; those that are asked again start anew."""
        for process in {*self.alone.values(), *self.together.values()}:
            process.stop()

    def run(self, problems: list[Problem]) -> None:
        """Solve every problem, data set by data set, as long as there is time."""
        left = 0
        for source, group in groupby(self._ordered(problems), key=lambda problem: problem.source):
            todo = [one for one in group if self._missing(one)]
            if not todo:
                continue
            folder = Folder(self.root, source, self.settings.data)
            for problem in todo:
                if self.settings.over:
                    left += 1
                    continue
                self._solve(problem, folder)
                self.store.save()
            folder.remove()
        if left:
            self.show.say(f"The time is up: {left} problems were not run; --resume continues.")

    def _ordered(self, problems: list[Problem]) -> list[Problem]:
        """Data sets and cases in random order, the strengths of a case from easy to hard, its path last."""
        sources = list(dict.fromkeys(problem.source for problem in problems))
        all_cases = list(dict.fromkeys(problem.case for problem in problems))
        self.random.shuffle(sources)
        self.random.shuffle(all_cases)
        return sorted(
            problems, key=lambda one: (sources.index(one.source), all_cases.index(one.case), -(one.fraction or 0.0))
        )

    def _missing(self, problem: Problem) -> list[Adapter]:
        """Who takes part in this problem, and has not solved it yet."""
        mine = [adapter for adapter in self.adapters if takes_part(adapter.name, problem.group)]
        return [adapter for adapter in mine if not self.store.has(problem, adapter)]

    def _solve(self, problem: Problem, folder: Folder) -> None:
        cells = self._measured(problem, folder, self._missing(problem))
        for attempt in cells:
            self.store.add(attempt.cell.record(folder.size))
            attempt.forget()
        self.show.finish(problem, [attempt.cell for attempt in cells])

    def measure_again(self, problems: list[Problem]) -> None:
        """Ratios of the two source trees on problems that the other one solved faster, in new processes each time."""
        for problem in problems:
            folder = Folder(self.root, problem.source, self.settings.data)
            for _ in range(AGAIN):
                self.stop()
                cells = {one.cell.adapter.name: one for one in self._measured(problem, folder, self.adapters)}
                ratio = cells["before"].cell.seconds / cells["groupowl"].cell.seconds
                self.store.data.setdefault("again", {}).setdefault(problem.key, []).append(ratio)
            self.store.save()
            folder.remove()

    def _measured(self, problem: Problem, folder: Folder, adapters: list[Adapter]) -> list[Attempt]:
        """Every competitor with its tolerance and its times."""
        weights, strengths = folder.prepare(problem)
        adapters = self.random.sample(adapters, len(adapters))
        cells = []
        for adapter in adapters:
            attempt = Attempt(self, Cell(problem, adapter), folder, weights, strengths)
            self.show.start(problem, adapter)
            attempt.find_tolerance()
            cells.append(attempt)
        self._in_rounds([attempt for attempt in cells if attempt.cell.times])
        for attempt in [one for one in cells if one.cell.adapter.name == "groupowl"]:
            attempt.time_product()
            if self.settings.against is None and attempt.is_beaten([one.cell for one in cells]):
                attempt.find_shares()
        if cases.profiled(problem) and self.settings.against is None:
            for attempt in [one for one in cells if not one.cell.adapter.fixed]:
                self.show.start(problem, attempt.cell.adapter)
                attempt.profile()
        return cells

    def _in_rounds(self, attempts: list[Attempt]) -> None:
        """Time short calls in turn: inside a process in one random order, the processes in another one."""
        for attempt in attempts:
            attempt.forget_search()
        while attempts := [attempt for attempt in attempts if attempt.may_join()]:
            processes = list({attempt.process: None for attempt in attempts})
            for process in self.random.sample(processes, len(processes)):
                mine = [attempt for attempt in attempts if attempt.process is process]
                join_round(process, mine, self.random.randrange(2**32))


def join_round(process: Process, attempts: list[Attempt], seed: int) -> None:
    """One round of the competitors that live in one process."""
    calls = [attempt.round_call() for attempt in attempts]
    limit = sum(attempt.limit * call["count"] for attempt, call in zip(attempts, calls, strict=True))
    strengths, cpu = attempts[0].strengths.tolist(), attempts[0].runner.settings.cpu
    try:
        attempts[0].load()
        times = process.ask(limit, do="rounds", strengths=strengths, calls=calls, seed=seed, cpu=cpu)["times"]
    except (OverLimit, Failed) as error:
        for attempt in attempts:
            attempt.cell.status, attempt.cell.note = "failed", f"in a repeated run: {error or 'over the limit'}"
        return
    for attempt in attempts:
        attempt.cell.times += times[attempt.cell.adapter.name]


class Attempt:
    """One competitor at work on one problem."""

    def __init__(self, runner: Runner, cell: Cell, folder: Folder, weights: np.ndarray, strengths: np.ndarray) -> None:
        self.runner, self.cell, self.folder = runner, cell, folder
        self.weights, self.strengths = weights, strengths
        self.process = runner.process_of(cell.adapter.name, folder.size)
        self.limit = runner.settings.limit_of(cell.adapter, cell.problem)
        self.answer = runner.root / f"{cell.adapter.name}.npz"
        self.expected = np.nan  # seconds of a call, before any was timed in rounds
        self.kind = cell.problem.kind

    # Finding the tolerance ----------------------------------------------------------------------------

    def find_tolerance(self) -> None:
        """Run with tighter and tighter tolerances until the judge is content; note what happened."""
        cell, stopped = self.cell, self.runner.stopped
        reason = cell.adapter.declines(self.kind)
        if not reason and self.runner.settings.left_out(cell.adapter, cell.problem):
            reason = "left out to save time; --thorough runs it"
        if reason:
            cell.status, cell.note = "declined", reason
            return
        earlier = stopped.get((cell.problem.case, cell.adapter.name))
        if earlier is not None:
            cell.status, cell.note, cell.times = "limit", f"not run: already stopped at {earlier[0]}", [earlier[1]]
            return
        try:
            self._warm_up()
            if cell.adapter.fixed:
                self._once()
                return
            self._ladder()
            if cell.status == "ok":
                self._loosen()
        except OverLimit as error:
            self._over_limit(self.allowed if error.cpu is None else error.cpu)
        except Failed as error:
            cell.status, cell.note = "failed", str(error)

    def _once(self) -> None:
        """One run at the default of the package, whatever gap that gives."""
        cell = self.cell
        if self._judged_run(cell.adapter.tol)[1] > cell.problem.goal:
            cell.status, cell.note = "short", f"gap {cell.gap:.1e}"

    def _over_limit(self, used: float) -> None:
        cell = self.cell
        if cell.gap <= cell.problem.goal:  # it was only one more try that took too long
            return
        if cell.tries:
            cell.note = f"reached {cell.tries[-1][2]:.1e} in {cell.tries[-1][1]:.3g} s"
        # A tighter tolerance takes at least as long as a looser one did, or as the run that was stopped.
        cell.status, cell.times = "limit", [max(used, *(seconds for _, seconds, _ in cell.tries), 0.0)]
        if cell.problem.fraction is not None:
            self.runner.stopped[cell.problem.case, cell.adapter.name] = (cell.problem.fraction, cell.seconds)

    def _ladder(self) -> None:
        cell, memory, goal = self.cell, self.runner.tolerances, self.cell.problem.goal
        key, single = ((cell.adapter.name, kind, goal) for kind in (self.kind, replace(self.kind, path=False)))
        tol = memory.get(key, memory.get(single, cell.adapter.tol * goal / 1e-6))
        spent = 0.0
        for attempt in range(MAX_ATTEMPTS):
            if spent > LADDER_SHARE * self.limit:
                raise OverLimit(0.0)  # nothing was stopped
            self.allowed = self.limit - spent
            seconds, gap = self._judged_run(tol)
            spent += seconds
            if gap <= goal:
                memory[key] = cell.tol
                if attempt or cell.adapter.exact or gap * OVERSOLVED > goal or seconds > 0.2 * self.limit:
                    return
                tol *= min(OVERSOLVED, 0.3 * goal / gap) if gap > 0.0 else OVERSOLVED  # an answer may be exact
            elif cell.gap <= goal or tol <= cell.adapter.floor:
                break  # the looser try was too loose, or there is nothing tighter
            else:
                tol = max(cell.adapter.floor, tol * min(0.3, max(1e-3, 0.5 * goal / gap)))
        if cell.gap > goal:
            cell.status, cell.note = "short", f"gap {cell.gap:.1e} at its tightest tolerance"

    def _loosen(self) -> None:
        """Look for the loosest tolerance that the judge accepts, where calls are short."""
        cell = self.cell
        loosest = cell.adapter.tol if cell.adapter.exact else np.inf
        for factor in LOOSEN:
            for _ in range(MAX_ATTEMPTS):
                if cell.tries[-1][1] > LOOSEN_SECONDS or cell.tol * factor > loosest:
                    break
                if self._judged_run(cell.tol * factor)[1] > cell.problem.goal:
                    break

    def _judged_run(self, tol: float) -> tuple[float, float]:
        """Seconds and gap with this tolerance; the cell keeps the run if it is good enough, or nothing was."""
        cell = self.cell
        times = self._call(tol, out=str(self.answer))
        verdicts = list(self._verdicts())
        gaps = [verdict.gap for verdict, _ in verdicts]
        gap, seconds = float(np.max(gaps)), float(np.median(times))
        if not np.isfinite(gap):
            raise Failed("the answer is not finite")
        cell.tries.append((tol, seconds, gap))
        first, enough = len(cell.tries) == 1, gap <= cell.problem.goal
        if first or enough or (cell.gap > cell.problem.goal and gap < cell.gap):
            cell.tol, cell.gap, cell.median_gap, cell.times = tol, gap, float(np.median(gaps)), list(times)
            last, cell.n_rows = verdicts[-1]
            cell.objective, cell.dual = last.objective, last.dual
        return seconds, gap

    def _verdicts(self) -> Iterator[tuple[judge.Verdict, int]]:
        """The verdict on each answer, and its number of non-zero rows."""
        folder = self.folder
        with np.load(self.answer) as file:
            count, which, rows, values = (file[name] for name in ("count", "which", "rows", "values"))
            strengths = file.get("strengths", self.strengths)
        if count != len(strengths):
            raise Failed(f"{count} answers for {len(strengths)} strengths")
        for t, strength in enumerate(strengths):
            mine = which == t
            lam = strength * self.weights
            found = rows[mine], values[mine]
            verdict = judge.judge(folder.X, folder.Y, lam, folder.source.loss, *found, folder.groups)
            yield verdict, int(np.count_nonzero(mine))

    def _call(self, tol: float, out: str | None = None, burst: int = 1) -> list[float]:
        self.load()
        request = {"strengths": self.strengths.tolist(), "tol": tol, "out": out, "burst": burst}
        times: list[float] = self.process.ask(self.allowed * burst, **self._what(), **request)["times"]
        return times

    def _what(self) -> dict[str, Any]:
        """What the worker is asked to do, without the data."""
        name, cpu = self.cell.adapter.name, self.runner.settings.cpu
        return {"do": "solve", "competitor": name, "call": self.kind.call, "cpu": cpu}

    def load(self) -> None:
        """Let the worker read the data, unless it has them."""
        self.process.ask(COMPILE_LIMIT, **self.folder.request(self.cell.problem))

    def _warm_up(self) -> None:
        """Let the worker import and compile on a tiny problem of the same kind; first calls are reported apart."""
        self.allowed = self.limit
        name = self.cell.adapter.name
        if self.process.worker.is_running and (name, self.kind) in self.process.warmed:
            return
        folder = self._tiny_folder()
        weights = "oscar" if self.kind.sorted_weights else "constant"
        problem = Problem("w", folder.source, weights, None if self.kind.path else 0.5)
        _, strengths = folder.prepare(problem)
        self.process.ask(COMPILE_LIMIT, **folder.request(problem))
        strengths = strengths[:: 33 if self.kind.path else 1].tolist()
        for _ in range(2):
            self.process.ask(COMPILE_LIMIT, **self._what(), strengths=strengths, tol=self.cell.adapter.tol)
        self.process.warmed.add((name, self.kind))
        pools = self.process.ask(COMPILE_LIMIT, do="threads_used")["threads"]
        self.runner.store.run.setdefault("thread pools", {})[name] = pools

    def _tiny_folder(self) -> Folder:
        kind, tiny = self.kind, self.runner.tiny
        key = (kind.loss, kind.one_task, kind.sparse, kind.grouped)
        if key not in tiny:
            q, density = (1 if kind.one_task else 3), (0.3 if kind.sparse else None)
            group_size = 4 if kind.grouped else 1
            source = Source("ar", loss=kind.loss, n=60, d=40, q=q, density=density, group_size=group_size)
            tiny[key] = Folder(self.runner.root, source, None)
        return tiny[key]

    # Timing -------------------------------------------------------------------------------------------

    def forget_search(self) -> None:
        """Start the times anew: those of the search come from caches as they happened to be."""
        if self.may_join():
            self.expected, self.cell.times = self.cell.seconds, []

    def may_join(self) -> bool:
        """Whether another round is wanted and cheap enough."""
        times, settings = self.cell.times, self.runner.settings
        if self.cell.status not in ("ok", "short") or len(times) >= settings.repeats:
            return False
        seconds = self.cell.seconds if times else self.expected
        few = len(times) < LEAST_ROUNDS and seconds < LEAST_SECONDS
        return few or sum(times) + seconds < ROUNDS_SECONDS

    def round_call(self) -> dict[str, Any]:
        """Its part in a round."""
        repeats = self.runner.settings.repeats
        most = min(ROUND_CALLS, repeats - len(self.cell.times), -(-repeats // ROUND_CALLS))
        count = int(np.clip(ROUND_SECONDS / max(self.expected, 1e-9), 1, most))
        what = {"competitor": self.cell.adapter.name, "call": self.kind.call}
        return {**what, "tol": self.cell.tol, "count": count}

    def time_product(self) -> None:
        """The unit of cost, beside the times of groupowl."""
        if self.cell.status == "ok":
            self.load()
            self.cell.products = self.process.ask(self.limit, do="product", cpu=self.runner.settings.cpu)["times"]

    def is_beaten(self, cells: list[Cell]) -> bool:
        """Whether another one reached the gap in less time."""
        rivals = [one for one in cells if one.status == "ok" and not one.adapter.fixed]
        return self.cell.status == "ok" and any(one.seconds < self.cell.seconds for one in rivals)

    def find_shares(self) -> None:
        """Where its time goes, for the table of problems that a peer solves faster."""
        self.load()
        seconds = max(SHARES_SECONDS, 2.0 * self.cell.seconds)
        request = {"strengths": self.strengths.tolist(), "tol": self.cell.tol, "call": self.kind.call}
        self.cell.shares = self.process.ask(self.limit + seconds, do="shares", seconds=seconds, **request)["shares"]

    def profile(self) -> None:
        """Seconds and gaps from loose to tight tolerances, for the plot of time against gap."""
        cell, spent = self.cell, 0.0
        budget = QUICK_PROFILE_SECONDS if self.runner.settings.quick else PROFILE_SECONDS
        cell.profile = [(seconds, gap) for _, seconds, gap in cell.tries]
        if cell.status in ("declined", "failed"):
            return
        tolerances = (cell.tol if np.isfinite(cell.tol) else cell.adapter.tol) * PROFILE_FACTORS
        for tol in tolerances[tolerances <= 1.0]:
            self.allowed = budget - spent
            try:
                times = self._call(float(tol), out=str(self.answer))
            except (OverLimit, Failed):
                return
            spent += sum(times)
            cell.profile.append((float(np.median(times)), max(verdict.gap for verdict, _ in self._verdicts())))
            if 3 * times[-1] > budget - spent or cell.profile[-1][1] < PROFILE_GAP:
                return  # tight enough, or the next might be stopped, and its worker with it

    def forget(self) -> None:
        """Remove the answer."""
        self.answer.unlink(missing_ok=True)


def versions(competitors: list[str]) -> dict[str, str]:
    """Versions of what was compared, and of what it stands on; the NumPy of an environment of its own goes with it.

    Raises :class:`PackageNotFoundError` with the competitor that is not installed.
    """
    found = {package: version(package) for package in ("numpy", "scipy", "scikit-learn")}
    for name in competitors:
        if name != "before":  # its source tree has no version of its own
            found.update(_versions_of(ADAPTERS[name]))
    return dict(sorted(found.items()))


def _versions_of(adapter: Adapter) -> dict[str, str]:
    if adapter.package == "glmnet":
        return {"glmnet": version_in_r() or "missing"}
    if adapter.own_environment is None:
        return {adapter.package: version(adapter.package)}
    command = f"from importlib.metadata import version as v; print(v({adapter.package!r}), 'with numpy', v('numpy'))"
    try:
        done = subprocess.run([adapter.python, "-c", command], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        raise PackageNotFoundError(adapter.package) from None
    return {adapter.package: done.stdout.strip()}


def now() -> str:
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())
