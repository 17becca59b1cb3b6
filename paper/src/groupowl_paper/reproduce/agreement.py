"""Whether answers to one problem agree: rows that were screened are zero elsewhere, supports and coefficients match."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .claims import ROUNDING
from .plan import Item
from .records import RunRecord
from .settings import ALGORITHMS

#: A row counts as needed where its effect is above this times the root of the relative gap of the answer: an answer
#: whose gap is g has predictions within sqrt(2 g) of the optimal ones, so that smaller effects may be left-overs.
MARGIN = 3.0


@dataclass(frozen=True)
class Screened:
    """Rows that a run screened, looked up in the best answer to the problem.

    Attributes
    ----------
    run, best : str
        Keys of the run and of the best answer.
    label : str
        The run in words.
    not_zero : int
        Screened rows that are not zero in the best answer.
    effect : float
        Largest effect of such a row on the predictions there.
    allowed : float
        What the gap of the best answer allows.
    """

    run: str
    best: str
    label: str
    not_zero: int
    effect: float
    allowed: float


@dataclass(frozen=True)
class Difference:
    """Two answers that converged: a screened one and one without screening.

    Attributes
    ----------
    run, other : str
        Their keys.
    label : str
        The first in words.
    rows : int
        Rows that are zero in one of them only.
    coefficients : float
        Largest difference of a coefficient, relative to the largest one.
    objective : float
        Difference of the judged objectives, relative to the null loss.
    """

    run: str
    other: str
    label: str
    rows: int
    coefficients: float
    objective: float


@dataclass(frozen=True)
class Comparisons:
    """All that was compared."""

    screened: list[Screened] = field(default_factory=list)
    differences: list[Difference] = field(default_factory=list)

    def joined(self, other: Comparisons) -> Comparisons:
        """Both together."""
        return Comparisons(self.screened + other.screened, self.differences + other.differences)

    def without(self, keys: Collection[str]) -> Comparisons:
        """Only what involves none of the runs."""
        return Comparisons(
            [entry for entry in self.screened if entry.run not in keys and entry.best not in keys],
            [entry for entry in self.differences if entry.run not in keys and entry.other not in keys],
        )

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Comparisons:
        """From what :func:`dataclasses.asdict` gave."""
        return cls(
            [Screened(**entry) for entry in values["screened"]],
            [Difference(**entry) for entry in values["differences"]],
        )


def compare(answers: Mapping[Item, RunRecord], best: Item | None, baselines: list[str]) -> Comparisons:
    """Compare answers to one problem.

    Parameters
    ----------
    answers : mapping of Item to RunRecord
    best : Item or None
        The answer with the smallest gap.
    baselines : list of str
        Algorithms without screening; each screened answer is compared with that of its family, and the default
        solver's with all of them.

    Returns
    -------
    Comparisons
    """
    screened = []
    if best is not None:
        screened = [
            look_up(item, run, best, answers[best]) for item, run in answers.items() if run.alive_rows is not None
        ]
    differences = []
    for item, run in answers.items():
        if item.kind != "run" or item.trial != 1 or ALGORITHMS[item.algorithm].screening == "none":
            continue
        family = ALGORITHMS[item.algorithm].family
        for other in (Item("run", item.dataset, item.setting, name) for name in baselines):
            is_pair = family in ("default", ALGORITHMS[other.algorithm].family)
            if is_pair and other in answers and run.converged and answers[other].converged:
                differences.append(difference(item, run, other, answers[other]))
    return Comparisons(screened, differences)


def look_up(item: Item, run: RunRecord, best: Item, answer: RunRecord) -> Screened:
    """The rows that a run screened, in the best answer."""
    alive = set(run.alive_rows or ())
    effects = [effect for row, effect in zip(answer.rows, answer.effects, strict=True) if row not in alive]
    allowed = MARGIN * float(np.sqrt(max(answer.gap or 0.0, 0.0)))
    return Screened(item.key, best.key, item.label, len(effects), max(effects, default=0.0), allowed)


def difference(item: Item, run: RunRecord, other: Item, answer: RunRecord) -> Difference:
    """How far two answers are from each other."""
    rows = sorted({*run.rows, *answer.rows})
    first, second = (_dense(record, rows) for record in (run, answer))
    largest = max(np.abs(first).max(initial=0.0), np.abs(second).max(initial=0.0))
    apart = float(np.abs(first - second).max(initial=0.0) / largest) if largest > 0 else 0.0
    objective = np.nan
    if run.verdict is not None and answer.verdict is not None:
        objective = abs(run.verdict.objective - answer.verdict.objective) / run.verdict.null_loss
    label = f"{item.label}, and {ALGORITHMS[other.algorithm].label}"
    rows_apart = len(set(run.rows) ^ set(answer.rows))
    return Difference(item.key, other.key, label, rows_apart, _unless_rounding(apart), _unless_rounding(objective))


def _unless_rounding(value: float) -> float:
    """Zero where rounding alone may make the difference; NaN stays."""
    return 0.0 if value < ROUNDING else float(value)


def _dense(record: RunRecord, rows: list[int]) -> Any:
    """Coefficients at the given rows, which contain the non-zero ones."""
    width = len(record.values[0]) if record.values else 1
    B = np.zeros((len(rows), width))
    if record.rows:
        B[np.searchsorted(rows, record.rows)] = record.values
    return B
