"""The judge: what an answer is worth on the full problem, from its coefficients alone."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._typing import FloatArray
from ...problem import build_problem
from .records import RunRecord, Verdict

#: Differences below this, relative to the null loss, are rounding.
ROUNDING = 1e-11


def judge(X: Any, Y: FloatArray, lam: FloatArray, loss: str, rows: list[int], values: Any) -> Verdict:
    """Objective and dual value of the full problem, recomputed from the non-zero rows of an answer.

    Parameters
    ----------
    X : ndarray or sparse array of shape (n_samples, n_features)
    Y : ndarray of shape (n_samples, n_tasks)
    lam : ndarray of shape (n_features,)
    loss : {"squared", "multinomial"}
    rows : list of int
        Non-zero rows.
    values : array-like of shape (len(rows), n_tasks)
        Their coefficients.

    Returns
    -------
    Verdict
        The dual value belongs to the residual of the answer, scaled into the dual ball: a lower bound of the
        minimum, whatever the answer.
    """
    problem = build_problem(X, Y, lam, loss=loss)
    B = np.zeros((X.shape[1], Y.shape[1]))
    B[rows] = np.reshape(values, (len(rows), Y.shape[1]))
    certificate = problem.certify(B)
    return Verdict(certificate.primal, certificate.dual, problem.null_loss)


@dataclass(frozen=True)
class Bounds:
    """Where the minimum of one problem lies, by the judge's verdicts on all answers to it."""

    lower: float
    upper: float

    @classmethod
    def of(cls, records: Iterable[RunRecord]) -> Bounds:
        """Largest dual value and smallest objective of the answers."""
        verdicts = [record.verdict for record in records if record.verdict is not None]
        lower = max((verdict.dual for verdict in verdicts), default=-np.inf)
        return cls(lower, min((verdict.objective for verdict in verdicts), default=np.inf))


def judged_gap(record: RunRecord, bounds: Bounds) -> float | None:
    """Distance of a judged objective from the best lower bound of the minimum, relative to the null loss."""
    if record.verdict is None:
        return None
    return max(record.verdict.objective - bounds.lower, 0.0) / record.verdict.null_loss


def complaint(record: RunRecord, bounds: Bounds, tol: float) -> str | None:
    """What the judge holds against a run: a claim that its answer does not keep; None where all is well."""
    if record.verdict is None or record.gap is None:
        return None
    null_loss = record.verdict.null_loss
    above = (record.verdict.objective - bounds.upper) / null_loss
    if above > record.gap + ROUNDING:
        return f"claims a relative gap of {record.gap:.2e}, but another answer is better by {above:.2e}"
    if record.verdict.objective < bounds.lower - ROUNDING * null_loss:
        return f"its objective lies {(bounds.lower - record.verdict.objective) / null_loss:.2e} below a lower bound"
    if record.converged and record.gap > tol * (1 + 1e-9):
        return f"counts as converged with a relative gap of {record.gap:.2e}, above {tol:.0e}"
    return None
