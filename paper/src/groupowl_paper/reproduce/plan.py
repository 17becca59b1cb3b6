"""What is run, in which order, and how long it may take.

The first trial of everything comes first, and setting p_1 before the others, so that results of a stopped run are thin
but complete. Then come the other trials; slow cells, whose first trial took a good part of its time limit or all of it,
come last and are repeated once at most.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ..data import DatasetEntry
from .settings import ALGORITHMS, PILOT_SECONDS, RESTARTED, Options

#: Trials of a slow cell, and the part of the time limit from which a first trial makes its cell slow.
SLOW_TRIALS = 2
SLOW_SHARE = 1.0 / 6.0
#: Seconds kept back for tables and figures.
RESERVE = 20.0
#: Seconds that a process needs to start and to load the data.
_START_SECONDS = 2.0

# Seconds of one run on the machine on which the plan was made, for data sets of the paper's size, in setting p_1:
# without screening, with it, of the default solver, and of SPGD with the paper's step.
_EXPECTED: dict[str, tuple[float, float, float, float]] = {
    "PlantGO": (0.5, 0.5, 0.2, 0.0),
    "EukaryoteGO": (5.0, 1.0, 0.4, 0.0),
    "Reuters21578": (10.0, 1.5, 1.5, 0.0),
    "CMUFaces": (90.0, 6.0, 0.5, 0.0),
    "DrivFace": (90.0, 12.0, 1.0, 0.0),
    "IndoorLoc": (3.0, 2.5, 0.5, 90.0),
    "Bibtex": (5.0, 4.0, 1.0, 90.0),
    "TMC2007-500": (3.0, 3.0, 1.0, 1.2),
    "Bookmarks": (20.0, 15.0, 3.0, 90.0),
    "ProteinVal": (0.5, 0.5, 0.3, 40.0),
    "Protein": (3.0, 2.5, 0.5, 90.0),
    "Mnist": (9.0, 9.0, 5.0, 30.0),
}
# Settings with a stronger penalty take less.
_SETTING_SHARE = {1: 1.0, 2: 0.6, 3: 0.4}
# Gradient restarts of momentum against none, both without screening.
_RESTARTED_SHARE = 0.3
_STUDY_SECONDS = {True: 17.0, False: 310.0}


@dataclass(frozen=True)
class Item:
    """One piece of work, done in one go and stored under its key.

    Attributes
    ----------
    kind : {"data", "pilot", "reference", "run", "memory", "variant", "study"}
    dataset : str
        Name of the data set; empty for the study.
    setting : int
        1 for p_1, and so on.
    algorithm : str
        Name of the algorithm, or of the variant.
    trial : int
        From 1; the seed of stochastic solvers.
    """

    kind: str
    dataset: str = ""
    setting: int = 1
    algorithm: str = "default"
    trial: int = 1

    @property
    def key(self) -> str:
        """Name of its file: stable, and without characters that file systems refuse."""
        if self.kind in ("data", "pilot"):
            return f"{self.dataset}.{self.kind}"
        if self.kind == "study":
            return self.kind
        detail = {
            "reference": "reference",
            "memory": f"memory-{self.algorithm}",
            "variant": f"variant-{self.algorithm}",
        }
        name = f"{self.dataset}.p{self.setting}.{detail.get(self.kind, self.algorithm)}"
        return f"{name}.t{self.trial}" if self.kind == "run" else name

    @property
    def cell(self) -> tuple[str, int, str]:
        """What trials are repetitions of."""
        return self.dataset, self.setting, self.algorithm

    @property
    def label(self) -> str:
        """For a line of the report on an answer."""
        answer = f"{ALGORITHMS[self.algorithm].label}, trial {self.trial}" if self.kind == "run" else self.kind
        return f"{self.dataset}, p_{self.setting}, {answer}"

    @property
    def description(self) -> str:
        """For a progress bar."""
        if self.kind == "study":
            return "Study of correlated groups"
        words = {
            "data": "reading",
            "pilot": "choosing the step",
            "reference": f"p_{self.setting}, reference",
            "memory": f"memory, {self.algorithm}",
            "variant": f"other preparation: {self.algorithm}",
        }
        label = ALGORITHMS[self.algorithm].label if self.algorithm in ALGORITHMS else self.algorithm
        return f"{self.dataset}, {words.get(self.kind, f'p_{self.setting}, {label}')}"


#: Pieces of work that one process does in turn: they share a data set.
Group = list[Item]


def first_stages(entries: Iterable[DatasetEntry], options: Options) -> list[list[Group]]:
    """Stages of the first trial, each a list of groups; a stage begins when the one before it has ended.

    Setting p_1 of every data set comes first, then the study, then the other settings.
    """
    entries = list(entries)
    weakest = [_first_setting(entry, options) for entry in entries]
    study = [[Item("study")]] if options.study else []
    others = [
        [item for setting in options.settings(entry.solver)[1:] for item in _runs_of(entry, setting, options)]
        for entry in entries
    ]
    return [stage for stage in (weakest, study, [group for group in others if group]) if stage]


def _first_setting(entry: DatasetEntry, options: Options) -> Group:
    """All that is done in setting p_1: the runs, their memory, and other preparations of the data."""
    pilot = [Item("pilot", entry.name)] if entry.solver == "spgd" else []
    variants = [Item("variant", entry.name, 1, variant) for variant in variants_of(entry)]
    return [Item("data", entry.name), *pilot, *_runs_of(entry, 1, options), *_memory_of(entry, options), *variants]


def _runs_of(entry: DatasetEntry, setting: int, options: Options) -> Group:
    reference = [Item("reference", entry.name, setting)] if options.has_reference(entry.solver) else []
    algorithms = options.algorithms(entry.solver)
    return reference + [Item("run", entry.name, setting, algorithm.name) for algorithm in algorithms]


def _memory_of(entry: DatasetEntry, options: Options) -> Group:
    """Memory of every family but those that have the same arrays as another: the paper's step, gradient restarts."""
    if options.quick and entry.solver == "spgd":
        return []
    alike = ("spgd-paper", RESTARTED.family)
    algorithms = [algorithm for algorithm in options.algorithms(entry.solver) if algorithm.family not in alike]
    if options.quick:
        algorithms = [algorithm for algorithm in algorithms if algorithm.name != "apgd-safe"]
    return [Item("memory", entry.name, 1, algorithm.name) for algorithm in algorithms]


def variants_of(entry: DatasetEntry) -> tuple[str, ...]:
    """Other preparations whose effect is measured: those that change the problem by more than a unit."""
    if entry.not_heard is not None:
        return ("raw targets", "raw features", "raw features and targets")
    return ("raw targets",) if entry.loss == "squared" else ("raw features",) if entry.scaling == "columns" else ()


def later_stages(
    entries: Iterable[DatasetEntry], options: Options, slow: set[tuple[str, int, str]]
) -> list[list[Group]]:
    """Stages of the other trials, given the slow cells."""
    entries = list(entries)

    def trial_of(trial: int, *, of_slow: bool) -> list[Group]:
        groups = [
            [
                item
                for setting in options.settings(entry.solver)
                for algorithm in options.algorithms(entry.solver)
                if ((item := Item("run", entry.name, setting, algorithm.name, trial)).cell in slow) == of_slow
            ]
            for entry in entries
        ]
        return [group for group in groups if group]

    stages = [trial_of(trial, of_slow=False) for trial in range(2, options.trials + 1)]
    stages += [trial_of(trial, of_slow=True) for trial in range(2, min(options.trials, SLOW_TRIALS) + 1)]
    return [stage for stage in stages if stage]


def request_of(item: Item, options: Options, step: float | None = None) -> dict[str, Any]:
    """What a worker is asked; everything in it decides the result."""
    request: dict[str, Any] = {"do": item.kind}
    if item.kind == "study":
        return {**request, "quick": options.quick}
    if item.kind == "data":
        return request
    if item.kind == "pilot":
        return {**request, "steps": list(options.steps), "seconds": min(PILOT_SECONDS, 4 * options.step_cap)}
    if item.kind == "variant":
        return {**request, "variant": item.algorithm, "cap": variant_cap(options), "tol": options.tol}
    family = ALGORITHMS[item.algorithm].family
    request |= {"setting": item.setting, "algorithm": item.algorithm, "cap": options.limit(family), "tol": options.tol}
    if item.kind == "reference":
        return {**request, "tol": options.reference_tol, "repeat": False}
    if item.kind == "memory":
        return {**request, "cap": memory_cap(options)}
    return {**request, "step": step if family == "spgd-paper" else None, "seed": item.trial}


def memory_cap(options: Options) -> float:
    """Seconds for a run whose memory is measured: arrays are made early."""
    return min(options.cap, 1.0 if options.quick else 15.0)


def variant_cap(options: Options) -> float:
    """Seconds for a run on data prepared in another way."""
    return min(options.cap, 3.0 if options.quick else 20.0)


# Time ------------------------------------------------------------------------------------------------


def hard_limit(item: Item, options: Options) -> float:
    """Seconds after which a piece of work is ended from outside: beyond its cap, with time to load and to judge."""
    if item.kind == "study":
        return 60.0 * options.minutes
    caps = {"data": 30.0, "pilot": PILOT_SECONDS, "memory": memory_cap(options), "variant": variant_cap(options)}
    cap = caps.get(item.kind, options.limit(ALGORITHMS[item.algorithm].family) if item.kind not in caps else 0.0)
    return 1.25 * cap + 30.0


def expected_seconds(item: Item, options: Options, known: Mapping[tuple[str, int, str], float] | None = None) -> float:
    """Seconds that a piece of work is likely to take: what its first trial took, or a guess from the table."""
    if item.kind == "study":
        return _STUDY_SECONDS[options.quick]
    if known and item.kind == "run" and item.cell in known:
        return known[item.cell]
    guess = (options.cap, options.cap / 2, options.cap / 20, options.step_cap)
    unscreened, screened, default, paper_step = _EXPECTED.get(item.dataset, guess)
    if item.kind == "data":
        return _START_SECONDS
    if item.kind == "pilot":
        return 3.0
    algorithm = ALGORITHMS.get(item.algorithm)
    if item.kind == "variant" or algorithm is None:
        return min(2.0 * default, variant_cap(options))
    if algorithm.family == "spgd-paper":
        return min(paper_step, options.step_cap)
    seconds = default if algorithm.name == "default" else unscreened if algorithm.screening == "none" else screened
    if algorithm == RESTARTED:
        seconds = _RESTARTED_SHARE * unscreened
    cap = memory_cap(options) if item.kind == "memory" else options.cap
    factors = {"reference": 2.0, "memory": 1.5}
    return min(_SETTING_SHARE[item.setting] * factors.get(item.kind, 1.0) * seconds, cap)


class Budget:
    """Time that may be spent, over all calls that share a folder.

    Parameters
    ----------
    seconds : float
        In all.
    spent : float, default=0.0
        By earlier calls.
    clock : callable, default=time.monotonic
        Seconds that pass.
    reserve : float, default=RESERVE
        Kept back for what follows the runs.
    """

    def __init__(
        self,
        seconds: float,
        *,
        spent: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
        reserve: float = RESERVE,
    ) -> None:
        self._clock = clock
        self._end = clock() + seconds - spent - min(reserve, 0.1 * seconds)

    @property
    def left(self) -> float:
        """Seconds left for runs."""
        return self._end - self._clock()

    def allows(self, expected: float) -> bool:
        """Whether something that is likely to take this long may begin; it is ended when the time is over."""
        return self.left >= 1.3 * expected + 0.5
