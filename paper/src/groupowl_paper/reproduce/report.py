"""The report: results as text that a statistician can read, with every number from the stored records."""

from __future__ import annotations

from typing import Any

from ..data import DATASETS
from .checks import checks_section
from .description import data_section, settings_section
from .iterations import iterations_section
from .must_hold import must_hold_section
from .plan import Item, variants_of
from .records import RunRecord
from .results import NO_STEP, Results
from .rows import first_rows_section, memory_section, screening_rates_section, sparsity_section
from .running_times import running_times_section
from .tables import UNKNOWN, bullet_list, count, counted, gap, number, seconds, table


def report_markdown(results: Results) -> str:
    """The whole report.

    Parameters
    ----------
    results : Results
        Of a campaign; with :meth:`Results.timeless`, the report has a dot for everything that depends on time.

    Returns
    -------
    str
        Markdown; figures are referred to by the names under which they are written.
    """
    sections = [
        _introduction(results),
        must_hold_section(results),
        data_section(results),
        settings_section(results),
        running_times_section(results),
        iterations_section(results),
        first_rows_section(results),
        screening_rates_section(results),
        sparsity_section(results),
        memory_section(results),
        _missed(results),
        checks_section(results),
        _preparation(results),
        _study(results),
        _not_run(results),
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


def _introduction(results: Results) -> str:
    machine, options = results.machine, results.options
    side_by_side = "one run at a time" if options.jobs == 1 else f"{options.jobs} runs side by side"
    runs = f"{counted(results.n_runs, 'run')} on {counted(len(results.datasets), 'data set')}"
    software = f"{machine['system']}, {machine['processor']}; Python {machine['python']}, NumPy {machine['numpy']}, "
    software += f"SciPy {machine['scipy']}"
    spent = UNKNOWN if results.seconds is None else f"{results.seconds / 60:.1f} minutes"
    mode = (
        " This is a quick run: it is meant to show that everything works, not to measure well." if options.quick else ""
    )
    return f"""# The experiments of the paper

R. Bao, Q. Lu, Y. Zhang, *Safe Screening Rules for Group OWL Models*, experimental section, repeated by
`groupowl reproduce` (groupowl {machine["groupowl"]}).{mode}

{runs} took {spent} on a machine with {counted(machine["cores"] or 1, "core")} ({software}).
Each run had one BLAS thread, with {side_by_side}. Times are CPU seconds of a whole solve, set-up included; a run
shorter than a quarter of a second is repeated five times and the median counts. A dot means: not measured."""


# Honesty ---------------------------------------------------------------------------------------------


def _missed(results: Results) -> str:
    rows = []
    for name in results.datasets:
        for setting in results.settings(name):
            for item, run in results.answers(name, setting).items():
                if not run.converged:
                    answer = item.label.removeprefix(f"{name}, p_{setting}, ")
                    rows.append([f"{name}, p_{setting}", answer, run.status, gap(run.gap), seconds(run.cpu)])
    asked = f"{results.options.tol:g}"
    if not results.n_runs:
        return "## Runs that missed the gap\n\nThere were no runs."
    if not rows:
        return f"## Runs that missed the gap\n\nNone: every run reached a relative gap of {asked}."
    headings = ["data set", "run", "status", "gap reached", "seconds"]
    return f"""## Runs that missed the gap

Asked was {asked} ({results.options.reference_tol:g} for references). Capped runs ended at the first certificate
after their time limit; killed ones did not answer well beyond it.

{table(headings, rows, text_columns=3)}"""


def _preparation(results: Results) -> str:
    rows = []
    for name in results.datasets:
        variants = [
            (variant, results.records.get(Item("variant", name, 1, variant).key))
            for variant in variants_of(DATASETS[name])
        ]
        known = [(variant, record) for variant, record in variants if record is not None]
        ours = results.first_trial(name, 1, "default")
        if not known or ours is None:
            continue
        rows.append([name, "as in this report", *_variant_cells(_as_variant(results, name, ours))])
        rows += [[name, variant, *_variant_cells(record)] for variant, record in known]
    if not rows:
        return ""
    headings = ["data set", "values", "p_1 / largest", "rows selected", "explained", "passes", "gap", "seconds"]
    return f"""## What the preparation changes

The same setting p_1 with the default solver on values as they stand in the file: targets not centered, features not
scaled. "Explained" is how much smaller than the null loss the objective is.

{table(headings, rows, text_columns=2)}"""


def _as_variant(results: Results, name: str, run: RunRecord) -> dict[str, Any]:
    explained = None if run.verdict is None else 1.0 - run.verdict.objective / run.verdict.null_loss
    values = {"strength": results.datasets[name]["strength"], "selected": run.selected, "explained": explained}
    return {**values, "passes": run.passes, "gap": run.gap, "cpu": run.cpu}


def _variant_cells(record: dict[str, Any]) -> list[str]:
    explained = record.get("explained")
    return [
        number(record.get("strength"), "{:.3f}"),
        count(record.get("selected")),
        UNKNOWN if explained is None else f"{100 * explained:.1f} %",
        number(record.get("passes")),
        gap(record.get("gap")),
        seconds(record.get("cpu")),
    ]


def _study(results: Results) -> str:
    if results.study is None:
        return ""
    from ..recovery import RecoveryReport

    study = RecoveryReport.from_dict(results.study).markdown().strip()
    return f"{study}\n\n`study_correlated_groups.png` shows this."


def _not_run(results: Results) -> str:
    parts = []
    if results.not_run:
        minutes = f"{results.options.minutes:g}"
        parts.append(
            f"Not run, because the {minutes} minutes would not have sufficed (`--minutes` allows more, and a second "
            f"call continues):\n\n{bullet_list(results.not_run)}"
        )
    if results.broken:
        failures = [f"{key}: {message}" for key, message in results.broken.items()]
        parts.append(f"Failed, and tried again by a second call:\n\n{bullet_list(failures)}")
    stepless = [key for key in results.failed if key not in results.broken]
    if stepless:
        parts.append(f"Not possible, because {NO_STEP}:\n\n{bullet_list(stepless)}")
    if results.unreadable:
        parts.append(f"Nothing was run on data sets that could not be read: {', '.join(results.unreadable)}.")
    return "\n\n".join(["## Not run", *(parts or ["Nothing: everything that was planned was run."])])
