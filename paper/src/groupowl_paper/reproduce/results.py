"""All results of a call: the records of its runs, and what is needed to read them."""

from __future__ import annotations

import os
import platform
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy

from groupowl import __version__

from ..data import DATASETS
from .agreement import Comparisons, compare
from .claims import Bounds
from .histories import common_gap
from .plan import Item
from .records import COEFFICIENTS, RunRecord
from .settings import ALGORITHMS, Algorithm, Options, families_of

#: Why runs with the paper's step were not made: nothing broke, so a call that says this has not failed.
NO_STEP = "the pilot found no step that descends"


def describe_machine() -> dict[str, Any]:
    """The machine in general terms."""
    return {
        "cores": os.cpu_count(),
        "system": platform.system(),
        "processor": platform.machine(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "groupowl": __version__,
    }


@dataclass(frozen=True, eq=False)
class Results:
    """Results by the keys of the pieces of work.

    Attributes
    ----------
    options : Options
    machine : dict
    missing : dict of str to list of str
        Data sets that were not found, with the file names looked for.
    unreadable : dict of str to str
        Data sets whose file could not be read, with the reason.
    records : dict of str to dict
        Stored results by key.
    failed : dict of str to str
        Pieces of work that raised an error, with the message.
    not_run : list of str
        Keys of pieces of work for which there was no time.
    seconds : float or None
        Time spent in all, over all calls.
    comparisons : Comparisons or None
        Of answers, where they were read without their coefficients; else they are computed.
    """

    options: Options
    machine: dict[str, Any]
    missing: dict[str, list[str]] = field(default_factory=dict)
    unreadable: dict[str, str] = field(default_factory=dict)
    records: dict[str, dict[str, Any]] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    not_run: list[str] = field(default_factory=list)
    seconds: float | None = None
    comparisons: Comparisons | None = None

    # JSON -------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it; the coefficients stay in the files of the runs."""
        values = {**vars(self), "options": asdict(self.options)}
        records = {key: _without_coefficients(record) for key, record in self.records.items()}
        comparisons = asdict(self.agreement)
        return {name: values[name] for name in self.__dataclass_fields__} | {
            "records": records,
            "comparisons": comparisons,
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Results:
        """From what :meth:`to_dict` gave."""
        options = dict(values["options"])
        for name in ("steps", "datasets"):
            options[name] = None if options[name] is None else tuple(options[name])
        comparisons = Comparisons.from_dict(values["comparisons"])
        return cls(**{**values, "options": Options(**options), "comparisons": comparisons})

    def timeless(self) -> Results:
        """The same without times and without all that depends on them, such as the gap of a run that was cut off.

        Two calls on the same data and settings agree in what is left, whether they were interrupted or not.
        """
        records = {key: _timeless(key, record) for key, record in self.records.items()}
        ended = {key for key, run in self._runs.items() if run.status in ("capped", "killed")}
        return replace(self, records=records, seconds=None, comparisons=self.agreement.without(ended))

    # Reading ----------------------------------------------------------------------------------------

    @cached_property
    def datasets(self) -> dict[str, dict[str, Any]]:
        """Descriptions of the data sets that were read, in the order of the table."""
        return {name: self.records[key] for name in DATASETS if (key := Item("data", name).key) in self.records}

    @property
    def found(self) -> list[str]:
        """Data sets whose files were there, read or not."""
        return [name for name in self.options.datasets or DATASETS if name not in self.missing]

    @property
    def broken(self) -> dict[str, str]:
        """Pieces of work that went wrong, with the message; a step that no pilot found is a result, not a failure."""
        return {key: message for key, message in self.failed.items() if message != NO_STEP}

    @property
    def n_runs(self) -> int:
        """Runs that left a record."""
        return len(self._runs)

    def names(self, *, loss: str | None = None, solver: str | None = None) -> list[str]:
        """Data sets with this loss and the paper's solver."""
        return [
            name
            for name, data in self.datasets.items()
            if loss in (None, data["loss"]) and solver in (None, data["solver"])
        ]

    def whose(self, name: str) -> str:
        """Whether a data set is the paper's, a stand-in, or only has the name of the paper's."""
        data, entry = self.datasets[name], DATASETS[name]
        sizes = [(data[size], getattr(entry, size)) for size in ("n_samples", "n_features", "n_tasks")]
        differs = any(size != known for size, known in sizes)
        if data["stands_in_for"]:
            return f"stand-in for {data['stands_in_for']}" + (", size differs from the known copy" if differs else "")
        return "named as the paper's, size differs" if differs else "the paper's"

    def families(self, name: str) -> tuple[str, ...]:
        """Families of solvers that run on a data set, beside the default solver."""
        return families_of(self.datasets[name]["solver"])

    def settings(self, name: str) -> tuple[int, ...]:
        """Settings of a data set."""
        return self.options.settings(self.datasets[name]["solver"])

    def algorithms(self, name: str) -> list[Algorithm]:
        """Algorithms that run on a data set."""
        return self.options.algorithms(self.datasets[name]["solver"])

    @cached_property
    def _runs(self) -> dict[str, RunRecord]:
        return {key: RunRecord.from_dict(record) for key, record in self.records.items() if "history" in record}

    def numbered_trials(self, name: str, setting: int, algorithm: str) -> dict[int, RunRecord]:
        """Records of a cell by the number of the trial; numbers are missing where a trial was not run."""
        items = (Item("run", name, setting, algorithm, trial) for trial in range(1, self.options.trials + 1))
        return {item.trial: self._runs[item.key] for item in items if item.key in self._runs}

    def trials(self, name: str, setting: int, algorithm: str) -> list[RunRecord]:
        """Records of a cell, one per trial that was run."""
        return list(self.numbered_trials(name, setting, algorithm).values())

    def first_trial(self, name: str, setting: int, algorithm: str) -> RunRecord | None:
        """The first trial of a cell, unless it was killed."""
        run = self._runs.get(Item("run", name, setting, algorithm).key)
        return None if run is None or run.status == "killed" else run

    def answers(self, name: str, setting: int) -> dict[Item, RunRecord]:
        """All answers to one problem, the reference first."""
        items = [Item("reference", name, setting)]
        for algorithm in self.algorithms(name):
            items += [
                Item("run", name, setting, algorithm.name, trial)
                for trial in self.numbered_trials(name, setting, algorithm.name)
            ]
        return {item: self._runs[item.key] for item in items if item.key in self._runs}

    def bounds(self, name: str, setting: int) -> Bounds:
        """Where the minimum of a setting lies."""
        return Bounds.of(self.answers(name, setting).values())

    def best_answer(self, name: str, setting: int) -> Item | None:
        """The answer with the smallest gap, usually the reference."""
        gaps = {
            item: record.gap
            for item, record in self.answers(name, setting).items()
            if record.gap is not None and np.isfinite(record.gap)
        }
        return min(gaps, key=lambda item: gaps[item]) if gaps else None

    def n_selected(self, name: str, setting: int) -> int | None:
        """Rows that are not zero at the optimum: those of the answer with the smallest gap."""
        best = self.best_answer(name, setting)
        return None if best is None else self._runs[best.key].selected

    @cached_property
    def agreement(self) -> Comparisons:
        """What answers to the same problem agree in."""
        if self.comparisons is not None:
            return self.comparisons
        found = Comparisons()
        for name in self.datasets:
            for setting in self.settings(name):
                answers, best = self.answers(name, setting), self.best_answer(name, setting)
                baselines = [f"{family}-none" for family in self.families(name)]
                found = found.joined(compare(answers, best, baselines))
        return found

    def pilot(self, name: str) -> dict[str, Any] | None:
        """What the pilot found for a stochastic set."""
        return self.records.get(Item("pilot", name).key)

    def memory(self, name: str, algorithm: str) -> dict[str, Any] | None:
        """Memory of an algorithm in setting p_1."""
        return self.records.get(Item("memory", name, 1, algorithm).key)

    @property
    def study(self) -> dict[str, Any] | None:
        """Report of the study of correlated groups."""
        record = self.records.get(Item("study").key)
        return None if record is None else record["report"]

    # Comparisons ------------------------------------------------------------------------------------

    def gap_of(self, name: str, family: str, settings: tuple[int, ...]) -> float:
        """Best gap that all runs of a family reached in some settings: where their times are compared."""
        runs = [
            record.history
            for setting in settings
            for algorithm in ALGORITHMS.values()
            if algorithm.family == family
            for record in self.trials(name, setting, algorithm.name)
            if len(record.history)
        ]
        return common_gap(runs, self.options.tol)

    def seconds_of(self, name: str, setting: int, algorithm: str, gap: float, clock: str = "cpu") -> float | None:
        """Mean time over the trials to a gap; None where a trial did not reach it."""
        times = [record.seconds_at(gap, self.options.tol, clock) for record in self.trials(name, setting, algorithm)]
        known = [seconds for seconds in times if seconds is not None]
        return float(np.mean(known)) if known and len(known) == len(times) else None

    def iterations_of(self, name: str, setting: int, algorithm: str, gap: float) -> float | None:
        """Mean iterations over the trials to a gap; None where a trial did not reach it."""
        counts = [record.iterations_at(gap, self.options.tol) for record in self.trials(name, setting, algorithm)]
        known = [count for count in counts if count is not None]
        return float(np.mean(known)) if known and len(known) == len(counts) else None

    def speed_up(
        self, name: str, family: str, settings: tuple[int, ...], algorithm: str, *, baseline: str | None = None
    ) -> float | None:
        """Time of a baseline over time of an algorithm, for some settings together.

        Each setting is compared at the common gap of the family; the baseline is the family without screening, unless
        another algorithm is named.
        """
        totals = []
        for candidate in (baseline or f"{family}-none", algorithm):
            times = [
                self.seconds_of(name, setting, candidate, self.gap_of(name, family, (setting,))) for setting in settings
            ]
            if not times or any(seconds is None for seconds in times):
                return None
            totals.append(sum(seconds for seconds in times if seconds is not None))
        return totals[0] / totals[1] if totals[1] > 0 else None

    def fewer_iterations(self, name: str, family: str, setting: int, algorithm: str) -> float | None:
        """Iterations without screening over those of an algorithm, at the common gap of the family."""
        common = self.gap_of(name, family, (setting,))
        counts = [self.iterations_of(name, setting, key, common) for key in (f"{family}-none", algorithm)]
        return counts[0] / counts[1] if counts[0] is not None and counts[1] else None


def _without_coefficients(record: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in record.items() if name not in COEFFICIENTS}


def _timeless(key: str, record: dict[str, Any]) -> dict[str, Any]:
    if "history" in record:
        return RunRecord.from_dict(record).timeless().to_dict()
    if key.partition(".p1.")[2].startswith(("memory", "variant")) and record["status"] == "capped":
        return {"status": "capped"}
    return {name: None if name in ("cpu", "peak", "held") else value for name, value in record.items()}
