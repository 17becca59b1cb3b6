"""A process that runs one competitor, or several in turn: answers requests with times, leaves answers in files.

Started by :mod:`benchmarks.peers.run` with the number of threads in the environment, before NumPy is imported.
The data stay loaded between requests, so only calls of the competitor are timed.
"""

from __future__ import annotations

import gc
import importlib
import random
import resource
import sys
import time
import tracemalloc
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from groupowl_harness.serving import serve_parent

from .adapters import ADAPTERS, Adapter, Task
from .shares import time_shares


def read_data(folder: Path, order: str):
    """``X`` and ``Y`` of a folder, in the given memory order; sparse designs by columns."""
    if (folder / "X.npz").exists():
        return sp.csc_matrix(sp.load_npz(folder / "X.npz")), np.load(folder / "Y.npy")
    return np.load(folder / f"X_{order}.npy"), np.asarray(np.load(folder / "Y.npy"), order=order)


class Worker:
    """The competitors and the data they have loaded; the first competitor is the one that is meant if none is named."""

    def __init__(self, adapters: list[Adapter], threads: int) -> None:
        self.adapters = {adapter.name: adapter for adapter in adapters}
        self.adapter = adapters[0]
        self.threads = threads
        self.folder: str | None = None
        self.data: dict[str, Any] = {}  # by memory order

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """Reply to a request ``{"do": method, ...arguments}``."""
        reply: dict[str, Any] = getattr(self, request.pop("do"))(**request)
        return reply

    def import_package(self, cpu: bool = False) -> dict[str, Any]:
        """Time the import, so that it is no part of the first call."""
        clock = clock_of(cpu)
        start = clock()
        importlib.import_module(self.adapter.module)
        return {"times": [clock() - start]}

    def source_tree(self) -> dict[str, Any]:
        """The folder that groupowl was imported from, and which of its kernels runs."""
        import groupowl

        info = getattr(groupowl, "kernel_info", lambda: "no compiled kernel in this version")
        return {"folder": str(Path(groupowl.__file__).parents[1]), "kernel": str(info())}

    def load(self, folder: str, loss: str, weights: str, strongest: float, group_size: int = 1) -> dict[str, Any]:
        """Make data and weights ready."""
        if folder != self.folder:
            self.data = {}
            for order in {adapter.order for adapter in self.adapters.values()}:
                self.data[order] = read_data(Path(folder), order)
            self.folder = folder
        sequence = np.load(Path(folder) / f"weights_{weights}.npy")
        common = loss, sequence, strongest, self.threads, group_size
        self.tasks = {order: Task(X, Y, *common) for order, (X, Y) in self.data.items()}
        return {}

    def _timed(self, competitor: str, call: str, grid: np.ndarray, tol: float, cpu: bool) -> tuple[float, Any]:
        """Seconds of one call, by its own clock if it has one, and the answers."""
        adapter, clock = self.adapters[competitor], clock_of(cpu)
        task, function = self.tasks[adapter.order], adapter.calls[call]
        start = clock()
        answers = function(task, grid, tol)
        seconds = clock() - start
        return getattr(answers, "seconds", seconds), answers

    def solve(
        self,
        strengths: list[float],
        tol: float,
        competitor: str | None = None,
        call: str = "solve",
        out: str | None = None,
        burst: int = 1,
        cpu: bool = False,
    ) -> dict[str, Any]:
        """Time ``burst`` calls; write the answer of the last as non-zero rows."""
        grid, times = np.array(strengths), []
        for _ in range(burst):
            gc.collect()
            seconds, answers = self._timed(competitor or self.adapter.name, call, grid, tol, cpu)
            times.append(seconds)
        if out:
            write_answers(Path(out), answers)
        return {"times": times}

    def rounds(self, strengths: list[float], calls: list[dict[str, Any]], seed: int, cpu: bool) -> dict[str, Any]:
        """Time each call as often as its ``count`` says, all of them in one random order."""
        grid = np.array(strengths)
        times: dict[str, list[float]] = {one["competitor"]: [] for one in calls}
        turns = [one for one in calls for _ in range(one["count"])]
        random.Random(seed).shuffle(turns)
        gc.collect()
        gc.disable()  # a collection takes longer than a small fit, and empties the caches
        try:
            for one in turns:
                seconds, _ = self._timed(one["competitor"], one["call"], grid, one["tol"], cpu)
                times[one["competitor"]].append(seconds)
        finally:
            gc.enable()
        return {"times": times}

    def rehearse(self) -> dict[str, Any]:
        """A tiny fit, so that what is loaded on first use is loaded."""
        rng = np.random.default_rng(0)
        X, Y = rng.standard_normal((30, 20)), rng.standard_normal((30, 2))
        task = Task(X, Y, "squared", np.ones(20), 10.0, self.threads)
        self.adapter.solve(task, np.array([5.0]), self.adapter.tol)
        return {}

    def shares(self, strengths: list[float], tol: float, call: str, seconds: float) -> dict[str, Any]:
        """Which share of the time of a call of groupowl its modules take."""
        import groupowl

        adapter, grid = ADAPTERS["groupowl"], np.array(strengths)
        task, function = self.tasks[adapter.order], adapter.calls[call]
        return {"shares": time_shares(lambda: function(task, grid, tol), Path(groupowl.__file__).parent, seconds)}

    def product(self, repeats: int = 5, cpu: bool = False) -> dict[str, Any]:
        """Time ``X^T Y``, the unit of cost."""
        (X, Y), times, clock = self.data[ADAPTERS["groupowl"].order], [], clock_of(cpu)
        for _ in range(repeats):
            start = clock()
            X.T @ Y
            times.append(clock() - start)
        return {"times": times}

    def memory(self, strengths: list[float], tol: float) -> dict[str, Any]:
        """Bytes that a fit needs beyond what is loaded: growth of the largest resident size, and arrays traced."""
        before, task = peak_memory(), self.tasks[self.adapter.order]
        answers = self.adapter.solve(task, np.array(strengths), tol)
        grown = peak_memory() - before
        tracemalloc.start()
        self.adapter.solve(task, np.array(strengths), tol)
        traced = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        rows = max(int(np.count_nonzero(np.any(B, axis=1))) for B in answers)
        return {"resident": grown, "traced": traced, "rows": rows}

    def threads_used(self) -> dict[str, Any]:
        """Threads of every library that threadpoolctl knows, once the competitor is imported."""
        from threadpoolctl import threadpool_info

        return {"threads": sorted({(pool["user_api"], pool["num_threads"]) for pool in threadpool_info()})}


def clock_of(cpu: bool):
    """CPU time of the process, or wall time: of one thread, CPU time has no waiting for other processes in it."""
    return time.process_time if cpu else time.perf_counter


def peak_memory() -> int:
    """Largest resident size of this process so far, in bytes."""
    status = Path("/proc/self/status")
    if status.exists():  # getrusage would count the parent's peak as well
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return 1024 * int(line.split()[1])
    unit = 1 if sys.platform == "darwin" else 1024
    return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def write_answers(path: Path, answers) -> None:
    """Answers as stacked non-zero rows with their number, feature and values, and strengths that were not asked for."""
    chosen = {"strengths": answers.strengths} if hasattr(answers, "strengths") else {}
    which, rows, values = [], [], []
    for t, B in enumerate(answers):
        nonzero = np.flatnonzero(np.any(B, axis=1))
        which.append(np.full(len(nonzero), t))
        rows.append(nonzero)
        values.append(np.asarray(B)[nonzero])
    parts = {"which": np.concatenate(which), "rows": np.concatenate(rows), "values": np.vstack(values)}
    np.savez(path, count=len(which), **parts, **chosen)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    serve_parent(Worker([ADAPTERS[name] for name in sys.argv[2].split(",")], int(sys.argv[3])).answer)
