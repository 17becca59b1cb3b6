"""A process that runs one competitor: answers requests with times, leaves answers in files.

Started by :mod:`benchmarks.peers.run` with the number of threads in the environment, before NumPy is imported.
The data stay loaded between requests, so only calls of the competitor are timed.
"""

from __future__ import annotations

import gc
import importlib
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


def read_data(folder: Path, order: str):
    """``X`` and ``Y`` of a folder, in the given memory order; sparse designs by columns."""
    if (folder / "X.npz").exists():
        return sp.csc_matrix(sp.load_npz(folder / "X.npz")), np.load(folder / "Y.npy")
    return np.load(folder / f"X_{order}.npy"), np.asarray(np.load(folder / "Y.npy"), order=order)


class Worker:
    """The competitor and the data it has loaded."""

    def __init__(self, adapter: Adapter, threads: int) -> None:
        self.adapter = adapter
        self.threads = threads
        self.folder: str | None = None

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """Reply to a request ``{"do": method, ...arguments}``."""
        reply: dict[str, Any] = getattr(self, request.pop("do"))(**request)
        return reply

    def import_package(self) -> dict[str, Any]:
        """Time the import, so that it is no part of the first call."""
        start = time.perf_counter()
        importlib.import_module(self.adapter.module)
        return {"times": [time.perf_counter() - start]}

    def load(self, folder: str, loss: str, weights: str, strongest: float) -> dict[str, Any]:
        """Make data and weights ready."""
        if folder != self.folder:
            self.X = self.Y = None
            self.X, self.Y = read_data(Path(folder), self.adapter.order)
            self.folder = folder
        sequence = np.load(Path(folder) / f"weights_{weights}.npy")
        self.task = Task(self.X, self.Y, loss, sequence, strongest, self.threads)
        return {}

    def solve(self, strengths: list[float], tol: float, out: str | None = None, burst: int = 1) -> dict[str, Any]:
        """Time ``burst`` calls; write the answer of the last as non-zero rows."""
        grid, times = np.array(strengths), []
        for _ in range(burst):
            gc.collect()
            start = time.perf_counter()
            answers = self.adapter.solve(self.task, grid, tol)
            times.append(time.perf_counter() - start)
        if out:
            write_answers(Path(out), answers)
        return {"times": times}

    def rehearse(self) -> dict[str, Any]:
        """A tiny fit, so that what is loaded on first use is loaded."""
        rng = np.random.default_rng(0)
        X, Y = rng.standard_normal((30, 20)), rng.standard_normal((30, 2))
        task = Task(X, Y, "squared", np.ones(20), 10.0, self.threads)
        self.adapter.solve(task, np.array([5.0]), self.adapter.tol)
        return {}

    def product(self, repeats: int = 5) -> dict[str, Any]:
        """Time ``X^T Y``, the unit of cost."""
        times = []
        for _ in range(repeats):
            start = time.perf_counter()
            self.X.T @ self.Y
            times.append(time.perf_counter() - start)
        return {"times": times}

    def memory(self, strengths: list[float], tol: float) -> dict[str, Any]:
        """Bytes that a fit needs beyond what is loaded: growth of the largest resident size, and arrays traced."""
        before = peak_memory()
        answers = self.adapter.solve(self.task, np.array(strengths), tol)
        grown = peak_memory() - before
        tracemalloc.start()
        self.adapter.solve(self.task, np.array(strengths), tol)
        traced = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        rows = max(int(np.count_nonzero(np.any(B, axis=1))) for B in answers)
        return {"resident": grown, "traced": traced, "rows": rows}

    def threads_used(self) -> dict[str, Any]:
        """Threads of every library that threadpoolctl knows, once the competitor is imported."""
        from threadpoolctl import threadpool_info

        return {"threads": sorted({(pool["user_api"], pool["num_threads"]) for pool in threadpool_info()})}


def peak_memory() -> int:
    """Largest resident size of this process so far, in bytes."""
    status = Path("/proc/self/status")
    if status.exists():  # getrusage would count the parent's peak as well
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return 1024 * int(line.split()[1])
    unit = 1 if sys.platform == "darwin" else 1024
    return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def write_answers(path: Path, answers) -> None:
    """Answers as stacked non-zero rows with their strength, feature and values."""
    which, rows, values = [], [], []
    for t, B in enumerate(answers):
        nonzero = np.flatnonzero(np.any(B, axis=1))
        which.append(np.full(len(nonzero), t))
        rows.append(nonzero)
        values.append(np.asarray(B)[nonzero])
    np.savez(path, count=len(which), which=np.concatenate(which), rows=np.concatenate(rows), values=np.vstack(values))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    serve_parent(Worker(ADAPTERS[sys.argv[2]], int(sys.argv[3])).answer)
