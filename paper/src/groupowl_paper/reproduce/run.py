"""The whole experiment: finds the data, does what is not stored yet, and returns all results."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from groupowl_harness.process import WorkerError

from ..data import FoundDataset, find_datasets
from .locks import Lock
from .messages import without_folders
from .plan import (
    SLOW_SHARE,
    Budget,
    Group,
    Item,
    expected_seconds,
    first_stages,
    hard_limit,
    later_stages,
    request_of,
)
from .process import ProcessWorker, Worker
from .results import NO_STEP, Results, describe_machine
from .settings import ALGORITHMS, Options
from .store import Store, data_fingerprint, fingerprint, refuse_difference


@dataclass(frozen=True)
class State:
    """How far a call is: what a progress bar shows.

    Attributes
    ----------
    done, total : int
        Pieces of work.
    description : str
        What is being done.
    seconds_left : float
        Time that the rest is likely to take.
    """

    done: int
    total: int
    description: str
    seconds_left: float


ProgressHook = Callable[[State], None]


class Campaign:
    """One call of the experiment on a folder of data and a folder of results.

    Parameters
    ----------
    data : Path
        Folder with the files of the data sets.
    out : Path
        Folder for results; those of earlier calls are taken over.
    options : Options
    restart : bool, default=False
        Whether to forget stored results.
    make_worker : callable, default=ProcessWorker
        Makes whoever does the work.
    clock : callable, default=time.monotonic
        Time that counts against the budget.

    Raises
    ------
    ValueError
        If ``data`` is no folder or holds none of the data sets, or if stored results were made from something else.
    """

    def __init__(
        self,
        data: Path,
        out: Path,
        options: Options,
        *,
        restart: bool = False,
        make_worker: Callable[[], Worker] = ProcessWorker,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.options = options
        self.clock = clock
        self._started = clock()
        self.store = Store(out / "runs")
        self._make_worker = make_worker
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._workers: list[Worker] = []
        self._results: dict[str, dict[str, Any]] = {}
        self._elapsed: dict[str, float] = {}
        self._failed: dict[str, str] = {}
        self._unreadable: dict[str, str] = {}
        self._not_run: list[str] = []
        self._find(data)
        self._out_lock = Lock(out)
        if restart and self.store.folder.is_dir():
            with self._out_lock.held():
                self.store.clear()
        self.repaired = self._take_over()
        self._budget = Budget(60.0 * options.minutes, spent=self.spent + clock() - self._started, clock=clock)

    # Before ---------------------------------------------------------------------------------------------

    def _find(self, data: Path) -> None:
        self._folder = data
        found, missing = find_datasets(data)
        wanted = self.options.datasets
        self.found = {item.entry.name: item for item in found if wanted is None or item.entry.name in wanted}
        self.missing = {
            item.entry.name: list(item.looked_for) for item in missing if wanted is None or item.entry.name in wanted
        }
        if not self.found:
            asked = "any data set" if wanted is None else " or ".join(wanted)
            raise ValueError(
                f"--data has no file of {asked}: nothing to run in {str(data)!r}. "
                f"docs/measured/reproduction.md says where to download the files and how they are named."
            )
        self._hashes = {name: self._hash(item) for name, item in self.found.items()}

    def _hash(self, found: FoundDataset) -> str:
        try:
            return data_fingerprint(found)
        except OSError as error:
            reason = error.strerror or str(error)
            self._unreadable[found.entry.name] = f"{found.path.name!r} cannot be read: {reason}."
            return "unreadable"

    @property
    def entries(self) -> list[Any]:
        """Entries of the data sets that were found."""
        return [item.entry for item in self.found.values()]

    def _take_over(self) -> list[str]:
        """Read stored results in the order of the plan, since later ones depend on earlier ones; keys to do again."""
        spoiled = []
        for stages in (self._first_stages, self._later_stages):
            for item in [item for stage in stages() for group in stage for item in group]:
                if not self._is_possible(item):
                    continue
                envelope = self.store.read(item)
                if envelope is not None:
                    refuse_difference(item, envelope["made_from"], self._fingerprint(item))
                    self._keep(item, envelope["result"], envelope["elapsed"])
                elif self.store.path(item).exists():
                    spoiled.append(item.key)
        return spoiled

    def _is_possible(self, item: Item) -> bool:
        """Whether the step is known, for items that need one."""
        needs_step = item.kind == "run" and ALGORITHMS[item.algorithm].family == "spgd-paper"
        return not needs_step or self._step(item) is not None

    def _step(self, item: Item) -> float | None:
        step: float | None = self._results.get(Item("pilot", item.dataset).key, {}).get("step")
        return step

    def _first_stages(self) -> list[list[Group]]:
        return first_stages(self.entries, self.options)

    def _later_stages(self) -> list[list[Group]]:
        return later_stages(self.entries, self.options, self._slow_cells())

    def _slow_cells(self) -> set[tuple[str, int, str]]:
        """Cells whose first trial took a good part of its time limit, or all of it."""
        return {item.cell for item in self._first_runs() if item.key in self._results and self._was_slow(item)}

    def _was_slow(self, item: Item) -> bool:
        result = self._results[item.key]
        limit = self.options.limit(ALGORITHMS[item.algorithm].family)
        return result["status"] in ("capped", "killed") or result["cpu"] > SLOW_SHARE * limit

    def _first_runs(self) -> list[Item]:
        stages = self._first_stages()
        return [item for stage in stages for group in stage for item in group if item.kind == "run"]

    def _fingerprint(self, item: Item) -> dict[str, Any]:
        return fingerprint(self._request(item), self._hashes.get(item.dataset))

    def _request(self, item: Item) -> dict[str, Any]:
        return request_of(item, self.options, self._step(item))

    # Time -----------------------------------------------------------------------------------------------

    def expected(self) -> float:
        """Seconds that the rest is likely to take, within the budget."""
        later = later_stages(self.entries, self.options, self._slow_cells() | self._likely_slow())
        stages = [*self._first_stages(), *later]
        rest = [item for stage in stages for group in stage for item in group if item.key not in self._results]
        seconds = sum(self._expected(item) for item in rest) + 1.5 * sum(len(stage) for stage in stages if rest)
        return min(seconds / self.options.jobs, max(self._budget.left, 0.0))

    def _likely_slow(self) -> set[tuple[str, int, str]]:
        """Cells not run yet that are likely to be slow."""
        return {
            item.cell
            for item in self._first_runs()
            if item.key not in self._results
            and self._expected(item) > SLOW_SHARE * self.options.limit(ALGORITHMS[item.algorithm].family)
        }

    def _expected(self, item: Item) -> float:
        first = Item("run", item.dataset, item.setting, item.algorithm)
        known = {first.cell: self._elapsed[first.key]} if first.key in self._elapsed else {}
        return expected_seconds(item, self.options, known)

    @property
    def spent(self) -> float:
        """Seconds that stored results took, with as many of them side by side as this call has."""
        return sum(self._elapsed.values()) / self.options.jobs

    # The work -------------------------------------------------------------------------------------------

    def run(self, progress: ProgressHook | None = None) -> Results:
        """Do what is not stored, as far as the time allows, and return all results.

        Parameters
        ----------
        progress : callable, default=None
            Called with a :class:`State` before each piece of work.

        Returns
        -------
        Results

        Raises
        ------
        BusyError
            If another call works on the same folder.
        """
        self._progress = progress
        spent_before = self.spent
        with self._out_lock.held():
            try:
                for stage in self._first_stages():
                    self._do_stage(stage)
                for stage in self._later_stages():
                    self._do_stage(stage)
            finally:
                self._stop_workers()
        return Results(
            options=self.options,
            machine=describe_machine(),
            missing=self.missing,
            unreadable=self._unreadable,
            records=self._in_order(),
            failed=self._failed,
            not_run=self._not_run,
            seconds=spent_before + self.clock() - self._started,
        )

    def _in_order(self) -> dict[str, dict[str, Any]]:
        """Results in the order of the plan, whatever the order in which they came."""
        stages = [*self._first_stages(), *self._later_stages()]
        keys = [item.key for stage in stages for group in stage for item in group]
        return {key: self._results[key] for key in keys if key in self._results}

    def _do_stage(self, stage: Iterable[Group]) -> None:
        groups = [rest for group in stage if (rest := [item for item in group if item.key not in self._results])]
        if self.options.jobs == 1:
            for group in groups:
                self._do_group(group)
            return
        with ThreadPoolExecutor(self.options.jobs) as pool:
            futures = [pool.submit(self._do_group, group) for group in groups]
            try:
                done, _ = wait(futures, return_when=FIRST_EXCEPTION)
                for future in done:
                    future.result()
            except BaseException:
                self._stopped.set()
                for future in futures:
                    future.cancel()
                self._stop_workers()
                raise

    def _do_group(self, group: Group) -> None:
        """The items of one data set, in one process."""
        worker = self._make_worker()
        with self._lock:
            self._workers.append(worker)
        try:
            for item in group:
                if self._stopped.is_set():
                    return
                self._do(item, worker)
        finally:
            with self._lock:
                self._workers.remove(worker)
            worker.stop()

    def _stop_workers(self) -> None:
        with self._lock:
            workers = list(self._workers)
        for worker in workers:
            worker.stop()

    def _do(self, item: Item, worker: Worker) -> None:
        if item.dataset in self._unreadable:
            return
        if not self._budget.allows(self._expected(item)):
            self._not_run.append(item.key)
            return
        if not self._is_possible(item):
            self._fail(item, NO_STEP)
            return
        self._tell(item)
        limit = min(hard_limit(item, self.options), self._budget.left)
        started = self.clock()
        try:
            reply = worker.ask(self._request(item) | self._source(item), limit)
        except WorkerError as error:
            if self._stopped.is_set():
                return
            if not error.late:
                self._fail(item, str(error))
                return
            if limit < hard_limit(item, self.options):  # the time of all was over, not its own
                self._not_run.append(item.key)
                return
            if item.kind not in ("run", "reference"):
                self._fail(item, str(error))
                return
            reply = {"status": "killed"} | _EMPTY_RUN
        self._file(item, reply, self.clock() - started)

    def _source(self, item: Item) -> dict[str, Any]:
        found: FoundDataset | None = self.found.get(item.dataset)
        return {} if found is None else {"dataset": item.dataset, "path": str(found.path)}

    def _file(self, item: Item, reply: dict[str, Any], elapsed: float) -> None:
        if "unreadable" in reply:
            self._unreadable[item.dataset] = self._without_folder(reply["unreadable"])
        elif "error" in reply:
            self._fail(item, reply["error"])
        else:
            made_from = self._fingerprint(item)
            with self._lock:
                self.store.write(item, made_from, reply, elapsed)
                self._keep(item, reply, elapsed)

    def _keep(self, item: Item, result: dict[str, Any], elapsed: float) -> None:
        self._results[item.key], self._elapsed[item.key] = result, elapsed

    def _fail(self, item: Item, message: str) -> None:
        self._failed[item.key] = self._without_folder(message)

    def _without_folder(self, message: str) -> str:
        """A message for the report, which others may read: with names of files, not with where they lie."""
        return without_folders(message, self._folder)

    def _tell(self, item: Item) -> None:
        if self._progress is None:
            return
        stages = [*self._first_stages(), *self._later_stages()]
        total = sum(len(group) for stage in stages for group in stage)
        done = len(self._results) + len(self._failed) + len(self._not_run)
        self._progress(State(done, total, item.description, self.expected()))


_EMPTY_RUN: dict[str, Any] = {"history": {}}
