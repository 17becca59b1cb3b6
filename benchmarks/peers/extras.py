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
SMALL = Source("ar", n=100, d=500, q=1)
FRESH, FRESH_SMALL = 5, 10  # processes

_EASIEST = Kind("squared", False, True, False, False)  # what everyone has but for packages of one loss
FRESH_PARTS = ("import", "first", "second")
IMPORTS = ("sklearn.linear_model", "groupowl beyond it")

_IMPORT = """
import time
clock = time.{clock}
start = clock()
import sklearn.linear_model
middle = clock()
import groupowl
print(middle - start, clock() - middle)
"""


def measure(settings: Settings, competitors: list[str], root: Path, say: Callable[[str], None]) -> dict[str, Any]:
    """All extras, as they go into the results."""
    many, one = Folder(root, MANY, None), Folder(root, ONE, None)
    extras: dict[str, Any] = {"first_calls": {}}
    for name in competitors:
        if not (ADAPTERS[name].baseline or ADAPTERS[name].fixed) and ADAPTERS[name].refuse(_EASIEST) is None:
            say(f"first calls: {name}")
            extras["first_calls"][name] = _first_calls(name, many, one, settings)
    say("import and memory")
    extras["import"] = _medians(IMPORTS, [_import_seconds(settings) for _ in range(7)])
    extras["memory"] = [_memory(many, fraction, settings) for fraction in (0.5, 0.2, 0.05)]
    return extras


def measure_small(settings: Settings, competitors: list[str], root: Path, say: Callable[[str], None]) -> dict[str, Any]:
    """First and second calls of a small fit, and the import, of each source tree of groupowl in turn."""
    folder = Folder(root, SMALL, None)
    problem = Problem("x", folder.source, "oscar", 0.2)
    _, strengths = folder.prepare(problem)
    names = [name for name in ("groupowl", "before") if name in competitors]
    calls: dict[str, list[list[float]]] = {name: [] for name in names}
    imports: dict[str, list[list[float]]] = {name: [] for name in names}
    say("first calls and import")
    for turn in range(min(FRESH_SMALL, settings.repeats)):
        for name in names if turn % 2 else names[::-1]:
            calls[name].append(_fresh(name, folder, problem, strengths, settings))
            imports[name].append(_import_seconds(settings, settings.against if name == "before" else None))
    return {
        "small_calls": {name: {"problem": problem.key, **_medians(FRESH_PARTS, calls[name])} for name in names},
        "imports": {name: _medians(IMPORTS, imports[name]) for name in names},
    }


def _medians(names: tuple[str, ...], runs: list[list[float]]) -> dict[str, float]:
    return dict(zip(names, np.median(runs, axis=0).tolist(), strict=True))


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
    return {"problem": problem.key, **_medians(FRESH_PARTS, runs)}


def _fresh(name: str, folder: Folder, problem: Problem, strengths, settings: Settings) -> list[float]:
    process = Process(name, threads=settings.threads, tree=settings.against)
    call = {"do": "solve", "strengths": strengths.tolist(), "tol": ADAPTERS[name].tol, "cpu": settings.cpu}
    try:
        seconds = process.ask(COMPILE_LIMIT, do="import_package", cpu=settings.cpu)["times"]
        process.ask(COMPILE_LIMIT, **folder.request(problem))
        limit = settings.limit_of(ADAPTERS[name], problem)
        return seconds + [process.ask(limit, **call)["times"][0] for _ in range(2)]
    finally:
        process.stop()


def _import_seconds(settings: Settings, tree: Path | None = None) -> list[float]:
    """Times of importing scikit-learn's linear models, and groupowl of a source tree after them, in a new process."""
    code = _IMPORT.format(clock="process_time" if settings.cpu else "perf_counter")
    variables = environment(settings.threads, tree)
    done = subprocess.run(
        [sys.executable, "-c", code], env=variables, cwd=ROOT, check=True, capture_output=True, text=True
    )
    return [float(word) for word in done.stdout.split()]


def _memory(folder: Folder, fraction: float, settings: Settings) -> dict[str, float]:
    """Memory of a fit as a share of ``X``, the larger of two measures; the package was loaded and tried before."""
    problem = Problem("x", folder.source, "oscar", fraction)
    _, strengths = folder.prepare(problem)
    process = Process("groupowl", threads=settings.threads)
    try:
        process.ask(COMPILE_LIMIT, do="rehearse")
        process.ask(COMPILE_LIMIT, **folder.request(problem))
        request = {"strengths": strengths.tolist(), "tol": ADAPTERS["groupowl"].tol}
        measures = process.ask(2 * settings.limit, do="memory", **request)
    finally:
        process.stop()
    share = max(measures["resident"], measures["traced"]) / folder.X.nbytes
    return {"fraction": fraction, **measures, "share": share}
