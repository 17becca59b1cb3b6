"""What one piece of work leaves behind. Records are JSON: plain fields, and their times in fields of their own."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import Any

from groupowl_harness.judge import Verdict

from .histories import RunHistory

#: Fields of a run that grow with its answer; they stay in its own file.
COEFFICIENTS = ("rows", "values", "effects", "alive_rows")


@dataclass(frozen=True)
class RunRecord:
    """One run, and the judge's verdict on its answer.

    Attributes
    ----------
    status : str
        "converged"; "capped" at the time limit; "killed" beyond it; or another reason why the solver stopped.
    cpu, wall : float or None
        Seconds; of runs that were repeated because they are short, those of the median one.
    repeats : int
        How often the run was repeated.
    iterations : int
    passes : float
    gap : float
        Relative gap that the solver claims.
    history : RunHistory
    first_removal : dict or None
        Iteration, passes, relative gap and seconds of the certificate that proved the first row zero.
    selected, alive : int
        Rows that are not zero, and rows not proved zero.
    rows : list of int
        Non-zero rows of the answer.
    values : list of list of float
        Those rows.
    effects : list of float
        How much each of those rows moves the predictions: ``||x_j|| ||b_j|| / sqrt(2 null_loss)``, which is comparable
        with the square root of a relative gap.
    alive_rows : list of int or None
        Rows not proved zero at the end; None without screening.
    verdict : Verdict or None
    """

    status: str
    cpu: float | None = None
    wall: float | None = None
    repeats: int = 1
    iterations: int | None = None
    passes: float | None = None
    gap: float | None = None
    history: RunHistory = field(default_factory=RunHistory)
    first_removal: dict[str, Any] | None = None
    selected: int | None = None
    alive: int | None = None
    rows: list[int] = field(default_factory=list)
    values: list[list[float]] = field(default_factory=list)
    effects: list[float] = field(default_factory=list)
    alive_rows: list[int] | None = None
    verdict: Verdict | None = None

    @property
    def converged(self) -> bool:
        """Whether the gap asked for was proved."""
        return self.status == "converged"

    def seconds_at(self, gap: float, tol: float, clock: str = "cpu") -> float | None:
        """Seconds to a relative gap; the whole run where it was asked for that."""
        whole: float | None = getattr(self, clock)
        if self.converged and gap <= tol:
            return whole
        return self.history.seconds_at(gap, clock) if whole is not None else None

    def iterations_at(self, gap: float, tol: float) -> int | None:
        """Iterations to a relative gap; all of them where the run was asked for that."""
        return self.iterations if self.converged and gap <= tol else self.history.iterations_at(gap)

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> RunRecord:
        """From what :meth:`to_dict` gave."""
        verdict = values.get("verdict")
        history = RunHistory(**values.get("history", {}))
        return cls(**{**values, "history": history, "verdict": Verdict(**verdict) if verdict else None})

    def timeless(self) -> RunRecord:
        """The same without what depends on time: nothing but the status is left of a run that time ended."""
        if self.status in ("capped", "killed"):
            return RunRecord(self.status)
        history = replace(self.history, cpu=[], wall=[])
        first = None if self.first_removal is None else {**self.first_removal, "cpu": None}
        return replace(self, cpu=None, wall=None, repeats=1, history=history, first_removal=first)
