"""Checks from outside: what the judge and the other answers say about each answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from .agreement import Difference
from .claims import complaint, judged_gap
from .results import Results
from .tables import bullet_list, counted

Entry = TypeVar("Entry")


def refuted(results: Results) -> list[str]:
    """Claims of runs that do not hold, in sentences: gaps by the judge, and screened rows by the best answer."""
    found = []
    for name in results.datasets:
        for setting in results.settings(name):
            bounds, selected = results.bounds(name, setting), results.n_selected(name, setting)
            for item, run in results.answers(name, setting).items():
                tol = results.options.reference_tol if item.kind == "reference" else results.options.tol
                problem = complaint(run, bounds, tol)
                if problem:
                    found.append(f"{item.label}: {problem}")
                if selected is not None and run.alive is not None and run.alive < selected:
                    found.append(
                        f"{item.label}: only {run.alive} rows were not screened, but {selected} are not zero in the "
                        f"best answer: the screening rate is above 1"
                    )
    for entry in results.agreement.screened:
        if not entry.effect <= entry.allowed:
            found.append(
                f"{entry.label}: screened rows that are not zero in {entry.best} ({entry.not_zero}), with an effect of "
                f"up to {entry.effect:.1e} on the predictions where its gap leaves room for {entry.allowed:.1e}"
            )
    return found


def checks_section(results: Results) -> str:
    """The section of the report."""
    found, judged = refuted(results), 0
    distances: list[tuple[float, str]] = []
    for name in results.datasets:
        for setting in results.settings(name):
            bounds = results.bounds(name, setting)
            for item, run in results.answers(name, setting).items():
                distance = judged_gap(run, bounds)
                judged += distance is not None
                if run.converged and distance is not None and np.isfinite(distance):
                    tol = results.options.reference_tol if item.kind == "reference" else results.options.tol
                    distances.append((distance / tol, f"{distance:.1e} of {tol:g} allowed ({item.label})"))
    lines = [
        f"Judged from coefficients alone, by objective and dual value of the full problem, recomputed: "
        f"{counted(judged, 'answer')}."
    ]
    if distances:
        lines.append(
            "Of the answers that count as converged, the one farthest from the best lower bound, relative to what "
            f"was asked, is at {max(distances)[1]}."
        )
    lines += [*_screened_lines(results), *_difference_lines(results)]
    lines.append(
        f"PROBLEMS: {counted(len(found), 'claim')} of runs found false."
        if found
        else "Every answer keeps what its run claims."
        if judged
        else "No answer was there to be judged."
    )
    return "\n\n".join(["## Checks from outside", bullet_list([*lines, *found])])


def _screened_lines(results: Results) -> list[str]:
    entries = results.agreement.screened
    if not entries:
        return []
    worst = max(entries, key=lambda entry: entry.effect)
    text = f"Rows screened by {counted(len(entries), 'run')} were looked up in the best answer to the problem: "
    if worst.not_zero == 0:
        return [text + "all of them are zero there."]
    needed = sum(not entry.effect <= entry.allowed for entry in entries)
    return [
        f"{text}runs that screened a row which is not zero there beyond what the gap allows: {needed}. The largest "
        f"effect of a screened row on the predictions is {worst.effect:.1e}, {worst.allowed:.1e} allowed "
        f"({worst.label})."
    ]


def _difference_lines(results: Results) -> list[str]:
    """The largest differences between screened answers and those without screening, the default solver's apart."""
    lines = []
    entries = results.agreement.differences
    for who, is_default in (("the same algorithm with and without screening", False), ("the default solver", True)):
        chosen = [entry for entry in entries if (".default." in entry.run) == is_default]
        if not chosen:
            continue
        against = " and of algorithms without screening" if is_default else ""
        measures: list[tuple[Callable[[Difference], float], str]] = [
            (lambda entry: entry.objective, "in the objective by {:.1e} of the null loss"),
            (lambda entry: entry.coefficients, "in a coefficient by {:.1e} of the largest"),
            (lambda entry: entry.rows, "in the support by {:.0f} rows"),
        ]
        parts = []
        for measure, pattern in measures:
            worst = _largest(chosen, measure)
            parts.append(f"{pattern.format(measure(worst))}" + (f" ({worst.label})" if measure(worst) > 0 else ""))
        lines.append(f"Converged answers of {who}{against} differ by at most: {'; '.join(parts)}.")
    return lines


def _largest(entries: Sequence[Entry], measure: Callable[[Entry], float]) -> Entry:
    """The entry with the largest measure; what is not a number counts as largest."""
    return max(entries, key=lambda entry: np.nan_to_num(measure(entry), nan=np.inf))
