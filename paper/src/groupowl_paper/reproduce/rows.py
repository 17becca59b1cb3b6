"""What screening did to the rows: when the first left, how many in the end, sparsity and memory."""

from __future__ import annotations

from .results import Results
from .settings import FAMILIES
from .tables import UNKNOWN, count, gap, megabytes, number, seconds, table, times


def first_rows_section(results: Results) -> str:
    """The section of the report."""
    rows = []
    for name in results.datasets:
        for family in results.families(name):
            for setting in results.settings(name):
                run = results.first_trial(name, setting, f"{family}-paper")
                plain = results.first_trial(name, setting, f"{family}-none")
                if run is None or plain is None or run.passes is None:
                    continue
                first = run.first_removal
                cells = [f"{name}, p_{setting}", FAMILIES[family]]
                cells += (
                    [UNKNOWN] * 3
                    if first is None
                    else [number(first["passes"]), gap(first["gap"]), seconds(first["cpu"])]
                )
                rows.append([*cells, number(run.passes), number(plain.passes)])
    headings = [
        "data set",
        "algorithm",
        "passes before",
        "gap there",
        "seconds before",
        "passes in all",
        "without screening",
    ]
    return f"""## Before the first row leaves

Screening cannot help before the gap is small enough to prove something. With the paper's rule, the first row was
proved zero after these passes (columns of zeros are left out from the start and do not count; a dot: no row was
proved zero):

{table(headings, rows, text_columns=2)}"""


def screening_rates_section(results: Results) -> str:
    """The section of the report."""
    rows = []
    for name in results.datasets:
        selected = results.n_selected(name, 1)
        if selected is None:
            continue
        for algorithm in results.algorithms(name):
            run = results.first_trial(name, 1, algorithm.name)
            if run is None or algorithm.screening == "none" or run.passes is None:
                continue
            rate = run.history.screening_rate(selected)
            rows.append(
                [name, algorithm.label, count(selected), number(100 * rate[-1] if len(rate) else None, "{:.1f} %")]
            )
    headings = ["data set", "algorithm", "rows selected", "screened in the end"]
    return f"""## Screening rate (Figures 2 and 4)

`figure2_screening_regression.png` and `figure4_screening_multinomial.png` show, in setting p_1, the rows screened over
the rows that are zero at the optimum, against iterations and against time. Zero at the optimum are the rows that the
reference solution (default solver, relative gap {results.options.reference_tol:g}) leaves at zero, or the answer with
the smallest gap where there is no reference; columns of zeros count neither way.

{table(headings, rows, text_columns=2)}"""


def sparsity_section(results: Results) -> str:
    """The section of the report."""
    rows = []
    for name, data in results.datasets.items():
        for family in results.families(name):
            for setting in results.settings(name):
                selected = results.n_selected(name, setting)
                if selected is None:
                    continue
                share = f"{100 * selected / data['n_features']:.2f} %"
                factors = [
                    times(results.speed_up(name, family, (setting,), algorithm))
                    for algorithm in (f"{family}-paper", f"{family}-safe", "default")
                ]
                rows.append([f"{name}, p_{setting}", FAMILIES[family], count(selected), share, *factors])
    headings = ["data set", "algorithm", "rows selected", "of all", "paper's rule", "extended rule", "default solver"]
    return f"""## Speed-up against sparsity

`speedup_against_sparsity.png` shows the same.

{table(headings, rows, text_columns=2)}"""


def memory_section(results: Results) -> str:
    """The section of the report."""
    rows = []
    for name in results.datasets:
        for algorithm in results.algorithms(name):
            record = results.memory(name, algorithm.name)
            if record is not None:
                cells = [megabytes(record.get("peak")), megabytes(record.get("held"))]
                rows.append([name, algorithm.label, *cells, "stopped early" if record["status"] == "capped" else ""])
    if not rows:
        return ""
    headings = ["data set", "algorithm", "peak (MB)", "held at the last certificate (MB)", "remark"]
    return f"""## Memory

Beyond the data, in setting p_1, as Python's `tracemalloc` sees it, in runs of their own. Screening lowers what is held
once rows have left; the peak comes before. A run marked "stopped early" met its time limit, which says little about
its peak, reached in the first iterations.

{table(headings, rows, text_columns=2)}"""
