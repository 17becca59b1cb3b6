"""What runs claim of their answers, against the judge's verdicts on all answers to the same problem."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from groupowl_harness.judge import Verdict

from .records import RunRecord

#: Differences below this, relative to the null loss, are rounding.
ROUNDING = 1e-11
#: What a judged gap may exceed the gap asked for by, relative to it: the judge's dual point is its own.
SLACK = 0.01


@dataclass(frozen=True)
class Bounds:
    """Where the minimum of one problem lies, by the judge's verdicts on all answers to it."""

    lower: float
    upper: float

    @classmethod
    def of(cls, records: Iterable[RunRecord]) -> Bounds:
        """Largest dual value and smallest objective of the answers."""
        verdicts = [record.verdict for record in records if record.verdict is not None and record.verdict.is_finite]
        lower = max((verdict.dual for verdict in verdicts), default=-np.inf)
        return cls(lower, min((verdict.objective for verdict in verdicts), default=np.inf))


def judged_gap(record: RunRecord, bounds: Bounds) -> float | None:
    """Distance of a judged objective from the best lower bound of the minimum, relative to the null loss.

    None without a verdict, and not a number where the verdict is not finite.
    """
    if record.verdict is None:
        return None
    if not record.verdict.is_finite:
        return np.nan
    return max(record.verdict.objective - bounds.lower, 0.0) / record.verdict.null_loss


def complaint(record: RunRecord, bounds: Bounds, tol: float) -> str | None:
    """What the judge holds against a run: a claim that its answer does not keep; None where all is well.

    A run claims something if it counts as converged or states a finite gap. Conditions are written so that a number
    that is none (NaN) fails them.
    """
    claims_gap = record.gap is not None and bool(np.isfinite(record.gap))
    if not record.converged and not claims_gap:
        return None
    if record.verdict is None:
        return "counts as converged, but its answer was not judged" if record.converged else None
    if not record.verdict.is_finite:
        return "claims a gap, but the objective or the dual value of its answer is not finite"
    if record.gap is None or not claims_gap:
        return "counts as converged without a finite gap"
    return _false_gap(record.gap, record.verdict, bounds) or _false_end(record, bounds, tol)


def _false_gap(claimed: float, verdict: Verdict, bounds: Bounds) -> str | None:
    """A claimed gap that another answer refutes."""
    above = (verdict.objective - bounds.upper) / verdict.null_loss
    if not above <= claimed + ROUNDING:
        return f"claims a relative gap of {claimed:.2e}, but another answer is better by {above:.2e}"
    if not verdict.objective >= bounds.lower - ROUNDING * verdict.null_loss:
        return f"its objective lies {(bounds.lower - verdict.objective) / verdict.null_loss:.2e} below a lower bound"
    return None


def _false_end(record: RunRecord, bounds: Bounds, tol: float) -> str | None:
    """A run that counts as converged above the gap asked for, by its own number or by the judge's."""
    judged = judged_gap(record, bounds)
    if not record.converged or record.gap is None or judged is None:
        return None
    if not record.gap <= tol * (1 + 1e-9):
        return f"counts as converged with a relative gap of {record.gap:.2e}, above {tol:.0e}"
    if not judged <= (1 + SLACK) * tol + ROUNDING:
        return f"counts as converged, but its relative gap is judged {judged:.2e}, above {tol:.0e}"
    return None
