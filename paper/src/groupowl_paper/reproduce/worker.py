"""A process that serves the runs of one data set: it loads the data once, and solves what it is asked to."""

from __future__ import annotations

import gc
import time
import tracemalloc
import warnings
from collections.abc import Callable
from dataclasses import asdict, replace
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from groupowl import Progress, SolveResult, lam_max, solve
from groupowl._typing import FloatArray
from groupowl.weights import oscar
from groupowl_harness.judge import judge
from groupowl_harness.serving import serve_parent

from ..data import DATASETS, Dataset, load_dataset, read_dataset
from .histories import RunHistory
from .records import RunRecord
from .settings import ALGORITHMS, FEWEST_SNAPSHOTS, PILOT_SNAPSHOTS, make_solver, setting_lam

#: A run below this many seconds is repeated, so that its time means something.
SHORT_RUN = 0.25
REPEATS = 5
#: Wall time that a run may take, relative to its limit, which is CPU time: others may use the machine as well.
WAITING = 1.25
# Steps end at the time limit, not at a number.
_MAX_ITER = 10**9
# A pilot descends where no snapshot lies above the best one before it by more than this part of the null loss.
_RISE = 1e-6


class Server:
    """The data set that is loaded, and what can be asked about it."""

    def __init__(self) -> None:
        self._data: Dataset | None = None
        self._source: tuple[str, str] | None = None
        self._lam: dict[int, FloatArray] = {}

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """Reply to a request ``{"do": kind, "dataset": name, "path": file, ...}``."""
        request = dict(request)
        kind, name, path = request.pop("do"), request.pop("dataset", None), request.pop("path", None)
        if name is not None:
            try:
                self._load(name, path)
            except ValueError as error:
                return {"unreadable": str(error)}
        kinds: dict[str, Callable[..., dict[str, Any]]] = {
            "data": self._describe,
            "pilot": self._pilot,
            "reference": self._run,
            "run": self._run,
            "memory": self._memory,
            "variant": self._variant,
            "study": _study,
        }
        return kinds[kind](**request)

    @property
    def data(self) -> Dataset:
        """The data set that was asked for."""
        assert self._data is not None
        return self._data

    def _load(self, name: str, path: str) -> None:
        if self._source == (name, path):
            return
        self._data, self._source, self._lam = None, None, {}  # first the room, then the next
        self._data = load_dataset(DATASETS[name], path)
        self._source = (name, path)
        self._solve(1, "default", "safe", stop=lambda progress: True)  # libraries load on first use

    def lam(self, setting: int) -> FloatArray:
        """Weights of a setting."""
        if setting not in self._lam:
            self._lam[setting] = setting_lam(self.data.X, self.data.Y, self.data.tau, setting)
        return self._lam[setting]

    def _solve(
        self,
        setting: int,
        family: str,
        screening: str,
        *,
        stop: Callable[[Progress], bool],
        step: float | None = None,
        seed: int = 0,
        tol: float = 1e-6,
    ) -> SolveResult:
        data = self.data
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the status says it
            return solve(
                data.X,
                data.Y,
                self.lam(setting),
                loss=data.loss,
                solver=make_solver(family, len(data.Y), step),
                screening=screening,
                tol=tol,
                max_iter=_MAX_ITER,
                random_state=seed,
                callback=stop,
            )

    # What can be asked ------------------------------------------------------------------------------

    def _describe(self) -> dict[str, Any]:
        """Size, preparation and notes of the data set, and how strong its settings are."""
        data = self.data
        (n, d), q = data.X.shape, data.Y.shape[1]
        used = np.flatnonzero(abs(data.X).sum(axis=0))
        strongest = lam_max(data.X, data.Y, "oscar", loss=data.loss)
        return {
            "name": data.name,
            "n_samples": n,
            "n_features": d,
            "n_tasks": q,
            "zero_columns": d - len(used),
            "loss": data.loss,
            "solver": data.solver,
            "tau": data.tau,
            "preprocessing": data.preprocessing,
            "notes": list(data.notes),
            "stands_in_for": data.stands_in_for,
            "strength": float(self.lam(1)[0] / (strongest * oscar(d)[0])),
        }

    def _pilot(self, steps: list[float], seconds: float) -> dict[str, Any]:
        """The largest step of SPGD that descends in setting p_1, and what the others did."""
        tried = []
        for step in steps:
            end = time.process_time() + seconds / len(steps)
            objectives: list[float] = []
            watch = partial(_watch, objectives, end)
            self._solve(1, "spgd-paper", "none", stop=watch, step=step)
            start = objectives[0]
            descends: bool | None = _descends(objectives)
            lowered = 1.0 - min(objectives) / start if descends else None
            if not descends and len(objectives) <= FEWEST_SNAPSHOTS and max(objectives) <= start:
                descends = None  # it was cut off before it could show anything
            tried.append({"step": step, "descends": descends, "lowered": lowered, "snapshots": len(objectives) - 1})
            if descends:
                return {"step": step, "tried": tried}
        return {"step": None, "tried": tried}

    def _run(
        self,
        setting: int,
        algorithm: str,
        cap: float,
        tol: float,
        step: float | None = None,
        seed: int = 0,
        repeat: bool = True,
    ) -> dict[str, Any]:
        """A run with its verdict; short ones are repeated and the median one is kept."""
        self.lam(setting)
        gc.collect()
        runs = [self._timed(setting, algorithm, cap, tol, step, seed)]
        while repeat and len(runs) < REPEATS and (runs[0].cpu or 0.0) < SHORT_RUN:
            runs.append(self._timed(setting, algorithm, cap, tol, step, seed))
        record = sorted(runs, key=lambda run: run.cpu or 0.0)[(len(runs) - 1) // 2]
        data = self.data
        verdict = judge(data.X, data.Y, self.lam(setting), data.loss, record.rows, record.values)
        effects = _effects(data.X, record.rows, record.values, verdict.null_loss)
        return replace(record, repeats=len(runs), verdict=verdict, effects=effects).to_dict()

    def _timed(self, setting: int, algorithm: str, cap: float, tol: float, step: float | None, seed: int) -> RunRecord:
        chosen = ALGORITHMS[algorithm]
        watch = _StopWatch(cap)
        result = self._solve(setting, chosen.family, chosen.screening, stop=watch, step=step, seed=seed, tol=tol)
        cpu, wall = watch.now()
        record = _record(result, watch.times, cpu, wall)
        return record if chosen.screening == "none" else replace(record, alive_rows=result.active.tolist())

    def _memory(
        self, setting: int, algorithm: str, cap: float, tol: float, step: float | None = None
    ) -> dict[str, Any]:
        """Bytes that a run holds beyond the data: at most, and at its last certificate."""
        chosen = ALGORITHMS[algorithm]
        watch = _StopWatch(cap)
        held = [0]

        def stop(progress: Progress) -> bool:
            held[0] = tracemalloc.get_traced_memory()[0]
            return watch(progress)

        gc.collect()
        tracemalloc.start()
        try:
            result = self._solve(setting, chosen.family, chosen.screening, stop=stop, step=step, seed=1, tol=tol)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        return {"peak": peak, "held": held[0], "status": _status(result)}

    def _variant(self, variant: str, cap: float, tol: float) -> dict[str, Any]:
        """What another preparation changes: setting p_1 with the default solver."""
        assert self._source is not None
        entry = DATASETS[self._source[0]]
        raw = read_dataset(entry, self._source[1])
        X, Y = self.data.X, self.data.Y
        if "features" in variant:
            X = sp.csr_array(raw.X, dtype=np.float64) if entry.sparse else np.asarray(raw.X, dtype=np.float64)
        if "targets" in variant:
            Y = np.asarray(raw.targets, dtype=np.float64)
        lam = setting_lam(X, Y, self.data.tau, 1)
        watch = _StopWatch(cap)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            result = solve(X, Y, lam, loss=entry.loss, tol=tol, max_iter=_MAX_ITER, callback=watch)
        cpu, _ = watch.now()
        strongest = lam_max(X, Y, "oscar", loss=entry.loss)
        return {
            "strength": float(lam[0] / (strongest * oscar(X.shape[1])[0])),
            "status": _status(result),
            "selected": len(result.support),
            "passes": result.n_passes,
            "explained": float(1.0 - result.primal / result.history.primal[0]),
            "gap": float(result.gap / result.history.primal[0]),
            "cpu": cpu,
        }


def _study(quick: bool) -> dict[str, Any]:
    from ..recovery import run_recovery

    return {"report": run_recovery(quick=quick, progress=None).to_dict()}


class _StopWatch:
    """A callback that notes the time of each certificate and stops a run at its limit."""

    def __init__(self, cap: float) -> None:
        self.cap = cap
        self.times: list[tuple[float, float]] = []
        self._start = time.process_time(), time.perf_counter()

    def now(self) -> tuple[float, float]:
        """CPU and wall seconds since the start."""
        return time.process_time() - self._start[0], time.perf_counter() - self._start[1]

    def __call__(self, progress: Progress) -> bool:
        self.times.append(self.now())
        cpu, wall = self.times[-1]
        return cpu >= self.cap or wall >= WAITING * self.cap


def _watch(objectives: list[float], end: float, progress: Progress) -> bool:
    objectives.append(progress.primal)
    is_late = len(objectives) > FEWEST_SNAPSHOTS and time.process_time() >= end
    return len(objectives) > PILOT_SNAPSHOTS or is_late


def _descends(objectives: list[float]) -> bool:
    """Whether snapshots went down, and none went up again by more than a trifle."""
    values = np.array(objectives)
    if not np.isfinite(values).all() or not values[-1] < values[0]:
        return False
    return bool(np.all(values <= np.minimum.accumulate(values) + _RISE * values[0]))


def _status(result: SolveResult) -> str:
    return "capped" if result.status == "callback" else result.status


def _record(result: SolveResult, times: list[tuple[float, float]], cpu: float, wall: float) -> RunRecord:
    """The record of a solve, with its end as the last point of the history."""
    past = result.history
    null_loss = float(past.primal[0])  # runs start from zero
    whole = RunHistory(
        iteration=[*past.iteration.tolist(), result.n_iter],
        passes=[*past.passes.tolist(), result.n_passes],
        cpu=[*(t for t, _ in times), cpu],
        wall=[*(t for _, t in times), wall],
        gap=[*(past.gap / null_loss).tolist(), result.gap / null_loss],
        alive=[*past.n_active.tolist(), len(result.active)],
    )
    first = whole.first_removal
    return RunRecord(
        status=_status(result),
        cpu=cpu,
        wall=wall,
        iterations=result.n_iter,
        passes=result.n_passes,
        gap=result.gap / null_loss,
        history=whole.thinned(),
        first_removal=None if first is None else _point(whole, first),
        selected=len(result.support),
        alive=len(result.active),
        rows=result.support.tolist(),
        values=result.B[result.support].tolist(),
    )


def _effects(X: Any, rows: list[int], values: list[list[float]], null_loss: float) -> list[float]:
    """``||x_j|| ||b_j|| / sqrt(2 null_loss)`` of the non-zero rows."""
    columns = X[:, rows]
    squares = (columns**2).sum(axis=0) if sp.issparse(X) else np.sum(columns**2, axis=0)
    sizes = np.linalg.norm(np.reshape(values, (len(rows), -1)), axis=1) if rows else np.zeros(0)
    return (np.sqrt(squares) * sizes / np.sqrt(2.0 * null_loss)).tolist()


def _point(history: RunHistory, index: int) -> dict[str, Any]:
    point = asdict(history.at(np.array([index])))
    return {name: point[name][0] for name in ("iteration", "passes", "gap", "cpu")}


if __name__ == "__main__":
    serve_parent(Server().answer)
