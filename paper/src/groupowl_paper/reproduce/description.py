"""What was run: data sets and settings."""

from __future__ import annotations

from .plan import SLOW_SHARE, SLOW_TRIALS
from .results import Results
from .settings import MANY_SAMPLES, PILOT_SECONDS, RESTARTED, WARM_START
from .tables import UNKNOWN, bullet_list, number, table

LOSSES = {"squared": "regression", "multinomial": "multinomial regression"}
_PILOT_WORDS = {True: "descends", False: "does not", None: "had no time"}
ALGORITHM_WORDS = {"apgd": "APGD (batch)", "spgd": "SPGD (stochastic)"}


def data_section(results: Results) -> str:
    """The section of the report."""
    rows = []
    for name, data in results.datasets.items():
        size = f"{data['n_samples']} x {data['n_features']}, {data['n_tasks']}"
        model = f"{LOSSES[data['loss']]}, {ALGORITHM_WORDS[data['solver']]}"
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
        "The last column is alpha_1 of setting p_1, divided by the smallest one at which no feature is selected. "
        "A stand-in is reported under its own name; the paper's factor beside it was measured on another data set."
    )
    parts.append("How the data were preprocessed (the paper does not say):")
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


def settings_section(results: Results) -> str:
    """The section of the report."""
    options = results.options
    lines = [
        "Weights are OSCAR, lam_j = alpha_1 + alpha_2 (d - j), with alpha_1 = i exp(-tau) max_j ||x_j^T Y|| and "
        "alpha_2 = alpha_1 / d in setting p_i, i = 1, 2, 3. There is no intercept.",
        f"A run ends when its duality gap is at most {options.tol:g} times the loss of the null model. The SLOPE code "
        "that the paper follows divides the gap by the objective instead, which is smaller, so the same tolerance is "
        "a little stricter there.",
        f"A run is stopped at the first certificate after {options.cap:g} s"
        + (f" ({options.step_cap:g} s with the paper's step)" if options.step_cap != options.cap else "")
        + ". Times are then compared at the best gap that all runs of the comparison reached.",
        f"Warm start before screening: {WARM_START['apgd']} iterations of APGD, {WARM_START['spgd-paper']} snapshots "
        f"of SPGD with the paper's step, {WARM_START['spgd-auto']} with the automatic one.",
        f"SPGD draws mini-batches of 30 samples, 40 from {MANY_SAMPLES} samples on. With the paper's step the inner "
        "loop is as long as the mini-batch is large, as in the paper; with the automatic step it is one epoch.",
        "APGD and SPGD are the paper's algorithms with their errata corrected (step and momentum of Algorithm 1, the "
        "scale of the stochastic gradient in Algorithm 2).",
        "APGD with screening is more than APGD on fewer rows: its momentum restarts whenever rows are removed, and "
        "its steps become longer once half of the rows are removed. APGD without screening never restarts, so the "
        f"factors against it contain both effects. {RESTARTED.label}, is therefore a second baseline on batch data "
        "sets, except in quick runs: its momentum restarts whenever it points against the gradient.",
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
