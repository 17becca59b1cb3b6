"""How long it took: times and factors by algorithm, and what was cut to keep within the time."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import median

from .description import ALGORITHM_WORDS, LOSSES
from .must_hold import CLAIMS
from .records import RunRecord
from .results import Results
from .settings import FAMILIES, RESTARTED, RULES
from .tables import UNKNOWN, bullet_list, gap, seconds, table, times


def running_times_section(results: Results) -> str:
    """The section of the report."""
    parts = [
        "## Running times (Figures 1 and 3)",
        "CPU seconds to the gap in the third column, mean over the trials in the fourth; factors are against no "
        "screening at the same gap; in rows with gradient restart, against plain APGD. `figure1_time_regression.png` "
        "and `figure3_time_multinomial.png` show the times "
        "as percentage of p_1 without screening.",
    ]
    for (loss, solver), (low, high) in CLAIMS.items():
        names = results.names(loss=loss, solver=solver)
        if not names:
            continue
        figure = 1 if loss == "squared" else 3
        parts.append(
            f"### {ALGORITHM_WORDS[solver]}, {LOSSES[loss]}: the paper claims {low:g}x to {high:g}x (Figure {figure})"
        )
        headings = ["data set", "algorithm", "gap", "trials", *RULES.values(), "default solver", "paper claims"]
        rows = [
            [*cells, f"{low:g}-{high:g}x"]
            for name in names
            for family in results.families(name)
            for setting in results.settings(name)
            for cells in _time_rows(results, name, family, setting)
        ]
        parts.append(table(headings, rows, text_columns=2))
    parts += [*_stochastic_note(results), *_slower_default(results), *_cut_trials(results)]
    ratio = _largest_wait(results)
    if ratio is not None:
        parts.append(f"Wall time was at most {ratio:.2f} times the CPU time for runs of a second or more.")
    return "\n\n".join(parts)


def _time_rows(results: Results, name: str, family: str, setting: int) -> list[list[str]]:
    """The row of a family, and below it the baseline with restarts on batch data sets."""
    rows = [_time_row(results, name, family, setting)]
    trials = results.trials(name, setting, RESTARTED.name)
    if family == "apgd" and trials:
        common = results.gap_of(name, family, (setting,))
        taken = seconds(results.seconds_of(name, setting, RESTARTED.name, common))
        factor = times(results.speed_up(name, family, (setting,), RESTARTED.name))
        cells = [f"{name}, p_{setting}", FAMILIES[RESTARTED.family], gap(common), str(len(trials))]
        rows.append([*cells, taken if taken == UNKNOWN else f"{taken} ({factor})", *[UNKNOWN] * 3])
    return rows


def _time_row(results: Results, name: str, family: str, setting: int) -> list[str]:
    common = results.gap_of(name, family, (setting,))
    trials = [len(results.trials(name, setting, f"{family}-{rule}")) for rule in RULES]
    known = [number_of for number_of in trials if number_of]
    cells = [f"{name}, p_{setting}", FAMILIES[family], gap(common) if known else UNKNOWN]
    cells.append(UNKNOWN if not known else "-".join(str(value) for value in sorted({min(known), max(known)})))
    for algorithm in (*(f"{family}-{rule}" for rule in RULES), "default"):
        taken = seconds(results.seconds_of(name, setting, algorithm, common))
        factor = times(results.speed_up(name, family, (setting,), algorithm))
        cells.append(taken if algorithm.endswith("none") or taken == UNKNOWN else f"{taken} ({factor})")
    return cells


def _stochastic_note(results: Results) -> list[str]:
    """Why screening saves SPGD less time than passes."""
    fewer, faster = [], []
    for name in results.names(solver="spgd"):
        for setting in results.settings(name):
            runs = [results.first_trial(name, setting, f"spgd-auto-{rule}") for rule in ("none", "paper")]
            factor = results.speed_up(name, "spgd-auto", (setting,), "spgd-auto-paper")
            passes = [run.passes for run in runs if run is not None and run.converged and run.passes]
            if factor is not None and len(passes) == 2:
                fewer.append(passes[0] / passes[1])
                faster.append(factor)
    if not fewer:
        return []
    return [
        f"With the automatic step, the paper's rule shortened the passes of SPGD by {times(median(fewer))} and its "
        f"time by {times(median(faster))} (medians over data sets and settings): a step on 30 or 40 samples is a few "
        "small products, and much of their cost does not fall with the number of columns."
    ]


def _slower_default(results: Results) -> list[str]:
    """Where the default solver is not the fastest: stochastic sets on which SPGD with screening took less."""
    places = []
    for name in results.names(solver="spgd"):
        for setting in results.settings(name):
            factor = results.speed_up(name, "spgd-auto", (setting,), "default", baseline="spgd-auto-paper")
            if factor is not None and factor < 1.0:
                places.append(f"{name} p_{setting} ({times(1.0 / factor)} the time)")
    if not places:
        return []
    return [
        "groupowl's default solver was slower than SPGD with the automatic step and the paper's rule on: "
        f"{', '.join(places)}."
    ]


def _cut_trials(results: Results) -> list[str]:
    cut: dict[int, list[str]] = {}
    for name in results.datasets:
        for setting in results.settings(name):
            for algorithm in results.algorithms(name):
                trials = len(results.trials(name, setting, algorithm.name))
                if 0 < trials < results.options.trials:
                    cut.setdefault(trials, []).append(f"{name} p_{setting} {algorithm.name}")
    if not cut:
        return []
    lines = [
        f"{trials} instead of {results.options.trials} trials: {', '.join(cells)}"
        for trials, cells in sorted(cut.items())
    ]
    return ["Trials were cut where runs are long, to keep within the time:", bullet_list(lines)]


def _largest_wait(results: Results) -> float | None:
    ratios = [
        record.wall / record.cpu
        for record in _all_runs(results)
        if record.cpu is not None and record.wall is not None and record.cpu >= 1.0
    ]
    return max(ratios, default=None)


def _all_runs(results: Results) -> Iterable[RunRecord]:
    for name in results.datasets:
        for setting in results.settings(name):
            yield from results.answers(name, setting).values()
