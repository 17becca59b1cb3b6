"""What must hold: factors on batch data sets against what is asked, and why single settings stay below."""

from __future__ import annotations

from ..data import DATASETS
from .records import RunRecord
from .results import Results
from .settings import ALGORITHMS, RESTARTED
from .tables import UNKNOWN, bullet_list, gap, number, seconds, table, times

#: The paper's factors by loss and algorithm.
CLAIMS = {
    ("squared", "apgd"): (2.0, 6.0),
    ("squared", "spgd"): (1.5, 10.0),
    ("multinomial", "apgd"): (4.0, 7.0),
    ("multinomial", "spgd"): (1.2, 2.4),
}
#: How much faster than APGD without screening the default solver must be on batch data sets.
DEFAULT_FACTOR = 20.0

_HEADINGS = ("data set", "algorithm", "overall", "asked overall", "overall verdict", "smallest single", "p_1, p_2, p_3")


def must_hold_section(results: Results) -> str:
    """The section of the report."""
    names = results.names(solver="apgd")
    if not names:
        found = [name for name in results.found if DATASETS[name].solver == "apgd"]
        why = f"None of {', '.join(found)} could be used" if found else "No batch data set was found"
        return f"## What must hold\n\n{why}, so nothing can be said here."
    rows, reasons = [], []
    for name in names:
        low, _ = CLAIMS[results.datasets[name]["loss"], "apgd"]
        settings = results.settings(name)
        for algorithm, asked in (("apgd-paper", low), ("default", DEFAULT_FACTOR)):
            each = [results.speed_up(name, "apgd", (setting,), algorithm) for setting in settings]
            rows.append(_row(results, name, algorithm, asked, each))
            reasons += _reasons(results, name, algorithm, asked, dict(zip(settings, each, strict=True)))
    headings = [*_HEADINGS, "overall, against gradient restart"]
    text = f"""## What must hold

On batch data sets, the paper's rule must reach the lower end of the paper's range, and the default solver must be at
least {DEFAULT_FACTOR:g} times faster than APGD without screening. The overall factor of a data set is the total time
of APGD without screening for all its settings, divided by that of the algorithm. PASS means that the overall factor
reaches the required one; it says nothing about single settings, whose smallest factor is in the next column. The last
column has the overall factor against {RESTARTED.label}, whose momentum restarts as that of screened runs does.

{table(headings, rows, text_columns=2)}"""
    parts = [text, *_capped_note(results, names)]
    if reasons:
        parts += ["Where a single setting stays below:", bullet_list(reasons)]
    return "\n\n".join(parts)


def _row(results: Results, name: str, algorithm: str, asked: float, each: list[float | None]) -> list[str]:
    settings = results.settings(name)
    factor = results.speed_up(name, "apgd", settings, algorithm)
    known = [value for value in each if value is not None]
    verdict = UNKNOWN if factor is None else "PASS" if factor >= asked else "below"
    restarted = results.speed_up(name, "apgd", settings, algorithm, baseline=RESTARTED.name)
    singles = ", ".join(times(value) for value in each)
    label = "paper's rule" if algorithm == "apgd-paper" else "default solver"
    smallest = times(min(known)) if len(known) == len(each) else UNKNOWN
    return [name, label, times(factor), f"{asked:g}x", verdict, smallest, singles, times(restarted)]


def _capped_note(results: Results, names: list[str]) -> list[str]:
    """Which settings are compared elsewhere than at the gap asked for."""
    places = [
        f"{name} p_{setting} at {gap(common)}"
        for name in names
        for setting in results.settings(name)
        if (common := results.gap_of(name, "apgd", (setting,))) > results.options.tol
    ]
    if not places:
        return []
    return [
        "Settings in which a run was stopped by its time limit are compared at the best gap that all runs reached, "
        f"each at its own, and so they enter the overall factor: {', '.join(places)}; "
        f"the others at {results.options.tol:g}."
    ]


def _reasons(results: Results, name: str, algorithm: str, asked: float, factors: dict[int, float | None]) -> list[str]:
    """A sentence with a measurement for each setting below what is asked."""
    sentences = []
    for setting, factor in factors.items():
        plain, run = (results.first_trial(name, setting, key) for key in ("apgd-none", algorithm))
        if factor is None or factor >= asked or plain is None or run is None:
            continue
        parts = [f"{name}, p_{setting}, {ALGORITHMS[algorithm].label}: {times(factor)}."]
        common = results.gap_of(name, "apgd", (setting,))
        if common > results.options.tol:
            parts.append(
                f"Compared at a gap of {gap(common)}, the best that all runs reached before their time was over."
            )
        explain = _why_default if algorithm == "default" else _why_screening
        sentences.append(" ".join([*parts, explain(results, name, setting, run, plain)]))
    return sentences


def _why_default(results: Results, name: str, setting: int, run: RunRecord, plain: RunRecord) -> str:
    return (
        f"It took {number(run.passes)} passes and {seconds(run.cpu)} s, of which {seconds(_set_up(run))} s went by "
        f"before its first certificate; APGD took {number(plain.passes)} passes and {seconds(plain.cpu)} s."
    )


def _why_screening(results: Results, name: str, setting: int, run: RunRecord, plain: RunRecord) -> str:
    whole = f"the whole run took {number(run.passes)}, and {number(plain.passes)} without screening"
    if run.first_removal is None:
        return f"No row could be screened: {whole}."
    rate = run.history.screening_rate(results.n_selected(name, setting) or 0)
    half = next((passes for passes, share in zip(run.history.passes, rate, strict=True) if share >= 0.5), None)
    return (
        f"The first row could be screened after {number(run.first_removal['passes'])} passes, at a relative gap of "
        f"{gap(run.first_removal['gap'])}, half of the inactive rows after {number(half)}; {whole}."
    )


def _set_up(run: RunRecord) -> float | None:
    """Seconds until the first certificate."""
    return run.history.cpu[0] if run.history.cpu else None
