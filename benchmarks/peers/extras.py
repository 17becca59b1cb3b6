"""What is measured beside the cells: first calls in fresh processes, the import of groupowl, and its memory."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from .adapters import ADAPTERS, ROOT, Kind
from .cases import Problem, Source
from .process import Failed, OverLimit, Process, environment
from .run import COMPILE_LIMIT, Folder, Settings

MANY = Source("ar", n=500, d=10_000, q=10)
ONE = Source("ar", n=500, d=10_000, q=1)
FRESH = 5  # processes

_IMPORT = """
import time
start = time.perf_counter()
import sklearn.linear_model
middle = time.perf_counter()
import groupowl
print(middle - start, time.perf_counter() - middle)
"""


def measure(settings: Settings, competitors: list[str], root: Path, say: Callable[[str], None]) -> dict[str, Any]:
    """All extras, as they go into the results."""
    many, one = Folder(root, MANY, None), Folder(root, ONE, None)
    extras: dict[str, Any] = {"first_calls": {}}
    for name in competitors:
        if not ADAPTERS[name].baseline:
            say(f"first calls: {name}")
            extras["first_calls"][name] = _first_calls(name, many, one, settings)
    say("import and memory")
    extras["import"] = _import_seconds(settings.threads)
    extras["memory"] = [_memory(many, fraction, settings) for fraction in (0.5, 0.2, 0.05)]
    return extras


def _first_calls(name: str, many: Folder, one: Folder, settings: Settings) -> dict[str, Any]:
    """Import, first and second call in fresh processes, on the first kind of problem that the competitor takes."""
    for folder, weights in ((many, "oscar"), (one, "oscar"), (many, "constant")):
        if not ADAPTERS[name].refuse(Kind("squared", weights != "constant", folder.size[2] == 1, False, False)):
            break
    problem = Problem("x", folder.source, weights, 0.5)
    _, strengths = folder.prepare(problem)
    runs = []
    for _ in range(FRESH if name == "groupowl" else 1 if settings.quick else 2):
        try:
            runs.append(_fresh(name, folder, problem, strengths, settings))
        except (OverLimit, Failed) as error:
            return {"problem": problem.key, "error": str(error) or "over the limit"}
    seconds = np.median(runs, axis=0).tolist()
    return {"problem": problem.key, **dict(zip(("import", "first", "second"), seconds, strict=True))}


def _fresh(name: str, folder: Folder, problem: Problem, strengths, settings: Settings) -> list[float]:
    process = Process(name, settings.threads)
    call = {"do": "solve", "strengths": strengths.tolist(), "tol": ADAPTERS[name].tol}
    try:
        seconds = process.ask(COMPILE_LIMIT, do="import_package")["times"]
        process.ask(COMPILE_LIMIT, **folder.request(problem))
        limit = settings.limit_of(ADAPTERS[name], problem)
        return seconds + [process.ask(limit, **call)["times"][0] for _ in range(2)]
    finally:
        process.stop()


def _import_seconds(threads: int) -> dict[str, float]:
    """Median times of importing scikit-learn's linear models, and groupowl after them."""
    command = [sys.executable, "-c", _IMPORT]
    runs = []
    for _ in range(7):
        done = subprocess.run(command, env=environment(threads), cwd=ROOT, check=True, capture_output=True, text=True)
        runs.append([float(word) for word in done.stdout.split()])
    base, beyond = np.median(runs, axis=0)
    return {"sklearn.linear_model": float(base), "groupowl beyond it": float(beyond)}


def _memory(folder: Folder, fraction: float, settings: Settings) -> dict[str, float]:
    """Memory of a fit as a share of ``X``, the larger of two measures; the package was loaded and tried before."""
    problem = Problem("x", folder.source, "oscar", fraction)
    _, strengths = folder.prepare(problem)
    process = Process("groupowl", settings.threads)
    try:
        process.ask(COMPILE_LIMIT, do="rehearse")
        process.ask(COMPILE_LIMIT, **folder.request(problem))
        request = {"strengths": strengths.tolist(), "tol": ADAPTERS["groupowl"].tol}
        measures = process.ask(2 * settings.limit, do="memory", **request)
    finally:
        process.stop()
    share = max(measures["resident"], measures["traced"]) / folder.X.nbytes
    return {"fraction": fraction, **measures, "share": share}
