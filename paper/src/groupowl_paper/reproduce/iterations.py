"""Iterations and passes: whether screening saves any, and what a factor consists of."""

from __future__ import annotations

from .results import Results
from .settings import FAMILIES, RESTARTED, RULES
from .tables import count, number, table, times


def iterations_section(results: Results) -> str:
    """The section of the report."""
    rows, held, checked = [], 0, 0
    for name in results.datasets:
        for family in results.families(name):
            for setting in results.settings(name):
                runs = [results.first_trial(name, setting, f"{family}-{rule}") for rule in RULES]
                counts = [run.iterations if run and run.converged else None for run in runs]
                passes = [run.passes if run and run.converged else None for run in runs]
                if all(value is None for value in counts):
                    continue
                for value in counts[1:]:
                    if value is not None and counts[0] is not None:
                        checked += 1
                        held += value <= counts[0]
                rows.append([f"{name}, p_{setting}", FAMILIES[family], *map(count, counts), *map(number, passes)])
    headings = ["data set", "algorithm", *(f"iterations, {rule}" for rule in RULES.values())]
    headings += [f"passes, {rule}" for rule in RULES.values()]
    parts = [
        f"""## Iterations and passes

The paper claims that screening needs at most as many iterations. That does not follow from its argument, so it is
checked on the first trial of runs that reached the gap. {_claim(held, checked)}
Iterations of APGD are counted to the next certificate, every 10th; those of SPGD are snapshots. A pass is a product
with all columns of X, and screening makes passes shorter."""
    ]
    if rows:
        parts.append(table(headings, rows, text_columns=2))
    return "\n\n".join([*parts, *_factors(results)])


def _claim(held: int, checked: int) -> str:
    if checked == 0:
        return "There was no pair of runs to compare."
    if held == checked:
        return f"It held in all comparisons ({checked})."
    return f"It held in {held} of {checked} comparisons, so it is not true in general."


def _factors(results: Results) -> list[str]:
    """Factors on batch data sets, split into fewer and cheaper iterations."""
    algorithms = {"apgd-paper": "paper's rule", "apgd-safe": "extended rule", RESTARTED.name: "gradient restart"}
    rows = []
    for name in results.names(solver="apgd"):
        for setting in results.settings(name):
            cells = [_split(results, name, setting, algorithm) for algorithm in algorithms]
            against = results.speed_up(name, "apgd", (setting,), "apgd-paper", baseline=RESTARTED.name)
            rows.append([f"{name}, p_{setting}", *cells, times(against)])
    if not rows:
        return []
    headings = ["data set", *algorithms.values(), "paper's rule against gradient restart"]
    return [
        "Factors of APGD against plain APGD without screening, as (fewer iterations) x (cheaper iterations), at equal "
        "gaps. Only the second is due to fewer rows alone: when rows leave, momentum starts anew and steps may become "
        "longer, which plain APGD never gets. Gradient restart without screening shows what restarts are worth by "
        "themselves; the last column compares the paper's rule with it.",
        table(headings, rows),
    ]


def _split(results: Results, name: str, setting: int, algorithm: str) -> str:
    factor = results.speed_up(name, "apgd", (setting,), algorithm)
    fewer = results.fewer_iterations(name, "apgd", setting, algorithm)
    if factor is None or not fewer:
        return times(factor)
    return f"{times(factor)} = {fewer:.2g} x {factor / fewer:.2g}"
