"""The report: results as text that a statistician can read, with every number from the stored records."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import median
from typing import Any

from ..data import DATASETS
from .checks import checks_section
from .iterations import iterations_section
from .judge import judged_gap
from .must_hold import CLAIMS, must_hold_section
from .plan import SLOW_SHARE, SLOW_TRIALS, Item, variants_of
from .records import RunRecord
from .results import NO_STEP, Results
from .settings import FAMILIES, MANY_SAMPLES, PILOT_SECONDS, RESTARTED, RULES, WARM_START
from .tables import UNKNOWN, bullet_list, count, counted, gap, megabytes, number, seconds, table, times

_LOSSES = {"squared": "regression", "multinomial": "multinomial regression"}
_PILOT_WORDS = {True: "descends", False: "does not", None: "had no time"}
_ALGORITHM_WORDS = {"apgd": "APGD (batch)", "spgd": "SPGD (stochastic)"}


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
        _data(results),
        _settings(results),
        _running_times(results),
        iterations_section(results),
        _first_rows(results),
        _screening_rates(results),
        _sparsity(results),
        _memory(results),
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


# Data and settings -----------------------------------------------------------------------------------


def _data(results: Results) -> str:
    rows = []
    for name, data in results.datasets.items():
        size = f"{data['n_samples']} x {data['n_features']}, {data['n_tasks']}"
        model = f"{_LOSSES[data['loss']]}, {_ALGORITHM_WORDS[data['solver']]}"
        rows.append([name, results.whose(name), size, model, f"{data['tau']:g}", number(data["strength"], "{:.3f}")])
    headings = [
        "data set",
        "whose",
        "samples x features, tasks or classes",
        "model and algorithm",
        "tau",
        "p_1 / largest",
    ]
    parts = ["## Data", table(headings, rows, text_columns=4)]
    parts.append(
        "The last column is the strength of setting p_1 relative to the smallest one at which nothing is selected. "
        "A stand-in is reported under its own name; the paper's factor beside it was measured on another data set."
    )
    parts.append("How the values were prepared, which the paper does not say:")
    parts.append(bullet_list(f"{name}: {data['preprocessing']}" for name, data in results.datasets.items()))
    notes = [
        note if note.startswith(name) else f"{name}: {note}"
        for name, data in results.datasets.items()
        for note in data["notes"]
    ]
    if notes:
        parts += ["What differs from the paper:", bullet_list(notes)]
    if results.missing:
        missing = [f"{name}: looked for {', '.join(files)}" for name, files in results.missing.items()]
        parts += ["Not in the folder, and skipped:", bullet_list(missing)]
    if results.unreadable:
        parts += ["Could not be read, and skipped:", bullet_list(results.unreadable.values())]
    return "\n\n".join(parts)


def _settings(results: Results) -> str:
    options = results.options
    lines = [
        "Weights are OSCAR, lam_j = alpha_1 + alpha_2 (d - j), with alpha_1 = i exp(-tau) max_j ||x_j^T Y|| and "
        "alpha_2 = alpha_1 / d in setting p_i, i = 1, 2, 3. There is no intercept.",
        f"A run ends when its duality gap is at most {options.tol:g} times the loss of the model without features. The "
        "SLOPE code that the paper follows divides the gap by the objective instead, which is smaller, so the same "
        "number asks for a little more there.",
        f"A run is stopped at the first certificate after {options.cap:g} s"
        + (f" ({options.step_cap:g} s with the paper's step)" if options.step_cap != options.cap else "")
        + ". Times are then compared at the best gap that all runs of the comparison reached.",
        f"Warm start before screening: {WARM_START['apgd']} iterations of APGD, {WARM_START['spgd-paper']} snapshots "
        f"of SPGD with the paper's step, {WARM_START['spgd-auto']} with the automatic one.",
        f"SPGD draws mini-batches of 30 samples, 40 from {MANY_SAMPLES} samples on. With the paper's step the inner "
        "loop is as long as the mini-batch is large, as in the paper; with the automatic step it is one epoch.",
        "APGD and SPGD are the paper's algorithms with their errata mended (step and momentum of Algorithm 1, the "
        "scale of the stochastic gradient in Algorithm 2).",
        "APGD with screening is more than APGD on fewer rows: its momentum starts anew whenever rows leave, and its "
        "steps become longer once half of the rows are gone. APGD without screening never restarts, so the factors "
        f"against it mix both. {RESTARTED.label}, is therefore a second baseline on batch data sets, but for quick "
        "runs: there momentum starts anew whenever it points against the gradient.",
        f"Trials: {options.trials}, with the seed of SPGD equal to "
        f"the number of the trial. Cells whose first trial took more than {SLOW_SHARE * options.cap:.3g} s "
        f"have at most {SLOW_TRIALS}.",
    ]
    return "\n\n".join(["## Settings", bullet_list(lines), *_pilots(results)])


def _pilots(results: Results) -> list[str]:
    names = [name for name in results.names(solver="spgd") if results.pilot(name)]
    if not names:
        return []
    rows = []
    for name in names:
        pilot = results.pilot(name) or {}
        tried = ", ".join(f"{trial['step']:.0e} {_PILOT_WORDS[trial['descends']]}" for trial in pilot["tried"])
        rows.append([name, tried, UNKNOWN if pilot["step"] is None else f"{pilot['step']:.0e}"])
    allowed = min(PILOT_SECONDS, 4 * results.options.step_cap)
    steps = f"{min(results.options.steps):.0e} to {max(results.options.steps):.0e}"
    text = (
        f"The paper's step is the largest of {steps} that descends in a pilot of {allowed:g} s in all, "
        "in setting p_1 without screening:"
    )
    return [text, table(["data set", "steps tried", "step"], rows, text_columns=2)]


# Running times ---------------------------------------------------------------------------------------


def _running_times(results: Results) -> str:
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
            f"### {_ALGORITHM_WORDS[solver]}, {_LOSSES[loss]}: the paper claims {low:g}x to {high:g}x (Figure {figure})"
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
    parts += [*_stochastic_note(results), *_cut_trials(results)]
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


# Rows -----------------------------------------------------------------------------------------------


def _first_rows(results: Results) -> str:
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


def _screening_rates(results: Results) -> str:
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


def _sparsity(results: Results) -> str:
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


def _memory(results: Results) -> str:
    rows = []
    for name in results.datasets:
        for algorithm in results.algorithms(name):
            record = results.memory(name, algorithm.name)
            if record is not None:
                cells = [megabytes(record.get("peak")), megabytes(record.get("held"))]
                rows.append([name, algorithm.label, *cells, "stopped early" if record["status"] == "capped" else ""])
    if not rows:
        return ""
    headings = ["data set", "algorithm", "peak (MB)", "held at the last certificate (MB)", ""]
    return f"""## Memory

Beyond the data, in setting p_1, as Python's `tracemalloc` sees it, in runs of their own. Screening lowers what is held
once rows have left; the peak comes before. A run marked "stopped early" met its time limit, which says little about
its peak, reached in the first iterations.

{table(headings, rows, text_columns=2)}"""


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

The same setting p_1 with the default solver on values as they stand in the file: targets not centred, features not
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

    return RecoveryReport.from_dict(results.study).markdown().strip()


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


def results_csv(results: Results) -> str:
    """One line per run, with a heading."""
    headings = (
        "data_set,stands_in_for,whose,loss,setting,algorithm,family,screening,trial,step,status,cpu_seconds,wall_seconds,"
        "iterations,passes,relative_gap,judged_relative_gap,objective,rows_selected,rows_alive,passes_before_first_row"
    )
    lines = [headings]
    for name, data in results.datasets.items():
        step = (results.pilot(name) or {}).get("step")
        for setting in results.settings(name):
            bounds = results.bounds(name, setting)
            for algorithm in results.algorithms(name):
                for trial, run in results.numbered_trials(name, setting, algorithm.name).items():
                    cells = [
                        name,
                        data["stands_in_for"],
                        f'"{results.whose(name)}"',  # may hold a comma
                        data["loss"],
                        f"p_{setting}",
                        algorithm.name,
                        algorithm.family,
                    ]
                    cells += [
                        algorithm.screening,
                        trial,
                        step if algorithm.family == "spgd-paper" else None,
                        run.status,
                    ]
                    cells += [run.cpu, run.wall, run.iterations, run.passes, run.gap, judged_gap(run, bounds)]
                    cells += [run.verdict.objective if run.verdict else None, run.selected, run.alive]
                    cells += [run.first_removal["passes"] if run.first_removal else None]
                    lines.append(",".join("" if cell is None else str(cell) for cell in cells))
    return "\n".join(lines) + "\n"
