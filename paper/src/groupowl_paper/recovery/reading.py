"""The report in words: every sentence about the outcome is computed from the numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import stdtr

from .fitting import BASELINE, METHODS
from .simulation import GROUP_SIZE, VARIANTS

if TYPE_CHECKING:
    from .report import RecoveryReport

BETTER, WORSE, SAME = "better", "worse", "no difference beyond two standard errors"
#: Fewer repetitions than this are no ground for conclusions.
ENOUGH = 10


@dataclass(frozen=True)
class Measure:
    """A score as it appears in tables and sentences; ``sign`` is 1 where higher is better, else -1."""

    name: str
    title: str
    sign: int = 1
    digits: int = 2


#: What the study is about, in the order of the panels of the figure.
PANELS = (
    Measure("support_f1", "support F1"),
    Measure("cluster_index", "cluster recovery (ARI)"),
    Measure("excess_error", "excess test error / noise", sign=-1, digits=3),
)
_BEST_F1 = Measure("best_f1", "support F1, best of the path")
#: What helps to understand it.
DETAILS = (
    Measure("groups_whole", "groups selected whole"),
    Measure("cluster_index_all", "ARI, false selections included"),
    _BEST_F1,
    Measure("best_cluster_index", "ARI, best of the path"),
)
_N_SELECTED = Measure("n_selected", "features selected", digits=0)


def as_markdown(report: RecoveryReport) -> str:
    """The whole section."""
    parts = ["## Groups of correlated features: Group OWL against the L2,1 norm", _description(report)]
    for variant in report.variants:
        parts += [f"### Numbers: {VARIANTS[variant].title}", _table(report, variant)]
    return "\n\n".join([*parts, "### Reading", *_reading(report)]) + "\n"


# What was done ------------------------------------------------------------------------------------------


def _description(report: RecoveryReport) -> str:
    s = report.setting
    return f"""\
The claim: with correlated features, Group OWL finds the groups better than the L2,1 norm.

- **Data.** Simulated regressions with {s.n_tasks} tasks, {s.n_samples} samples and {s.n_features} features in groups of
  {GROUP_SIZE}, {s.n_active_groups} of them active. Correlation {_listed(_numbers(s.correlations))} within groups, none
  between them; signal and noise in the ratio {s.signal_to_noise:g} (standard deviations); {s.n_repetitions} data sets
  each (seed {s.seed}). Kinds of truth: {"; ".join(VARIANTS[name].title for name in report.variants)}.
- **Methods.** All get the same data and are tuned in the same way: {s.n_alphas} alphas, from the smallest that
  selects no feature down to {s.smallest_fraction:g} of it; the best has the smallest squared error on a validation
  set of the same size. There is no other tuning:
  OSCAR has the paper's ratio 1 (L2,1 is ratio 0, linear weights the limit of large ratios), BH and chi level 0.1.
  Group OWL is solved by `solve_path`, L2,1 by scikit-learn, to a relative duality gap of {s.tol:g}.
- **Support F1** of the selected features.
- **Cluster recovery**: adjusted Rand index (ARI) of the rows of equal norm (to a relative 1e-9, as in `clusters`) and
  the true groups, over active features; features not selected are clusters of their own. 1 is perfect, 0 is chance.
- **Excess test error**: squared error of the predicted signal on {s.n_test} new samples, divided by the noise variance.
- **Groups selected whole**: share of the active groups with all active members selected; 1 if everything is selected.
- **ARI, false selections included**: over all features that are active or selected.
- **Best of the path**: the largest value at any alpha, which needs the true coefficients to be found. The
  largest of many ARIs that scatter around 0 is above 0, so a small one says little."""


def _table(report: RecoveryReport, variant: str) -> str:
    measures = (*PANELS, *DETAILS, _N_SELECTED)
    lines = [_row("correlation", "weights", *(measure.title for measure in measures))]
    lines.append(_row("---:", "---", *("---:" for _ in measures)))
    for correlation, method in product(report.setting.correlations, report.methods):
        cells = (_cell(report, variant, correlation, method, measure) for measure in measures)
        lines.append(_row(f"{correlation:g}", METHODS[method], *cells))
    return "\n".join([*lines, "", "Mean ± standard error."])


def _row(*cells: str) -> str:
    return "| " + " | ".join(cells) + " |"


def _cell(report: RecoveryReport, variant: str, correlation: float, method: str, measure: Measure) -> str:
    mean, error = report.mean(variant, correlation, method, measure.name)
    return f"{_rounded(mean, measure)} ± {_rounded(error, measure)}"


def _rounded(value: float, measure: Measure) -> str:
    return f"{round(value, measure.digits) + 0.0:.{measure.digits}f}"  # adding 0 turns -0.0 into 0.0


# What it says -------------------------------------------------------------------------------------------


def outcome(report: RecoveryReport, variant: str, correlation: float, method: str, measure: Measure) -> str:
    """Whether a method beats the baseline by more than two standard errors of their paired difference."""
    mean, error = report.difference(variant, correlation, method, measure.name)
    if abs(mean) <= 2.0 * error:
        return SAME
    return BETTER if measure.sign * mean > 0 else WORSE


def _reading(report: RecoveryReport) -> list[str]:
    measures = (*PANELS, *DETAILS)
    n = report.setting.n_repetitions
    by_chance = 2.0 * stdtr(n - 1, -2.0)  # of Student's t beyond 2 on either side
    parts = [
        "Group OWL is compared with L2,1 on the same data. A difference counts when it exceeds two standard errors; "
        f"where there is none in truth, about {by_chance:.0%} of the comparisons find one by chance.",
        "\n".join(f"- **{measure.title}**: {_verdict(report, measure)}" for measure in PANELS),
        *(_paragraph(report, measure) for measure in PANELS),
        f"**With the best alpha of each path** in place of the tuned one, support F1: {_verdict(report, _BEST_F1)}",
        _ties(report),
        _grid_ends(report),
        _overall(report, (*measures, _N_SELECTED)),
        _signs(report, measures),
    ]
    if n < ENOUGH:
        parts.insert(0, f"**{n} data sets each are too few for conclusions**: this run shows that everything works.")
    return parts


def _verdict(report: RecoveryReport, measure: Measure) -> str:
    """For or against the claim, by the number of comparisons."""
    cases = product(report.variants, report.setting.correlations, _candidates(report))
    counts = Counter(outcome(report, variant, c, method, measure) for variant, c, method in cases)
    total = counts.total()
    if counts[SAME] == total:
        return f"{SAME} in any of {total} comparisons."
    return (
        f"{_direction(counts[BETTER], counts[WORSE], total)}. Of {total} comparisons, Group OWL is better in "
        f"{counts[BETTER]} and worse in {counts[WORSE]}; in {counts[SAME]} there is {SAME}."
    )


def _direction(better: int, worse: int, total: int) -> str:
    if total in (better, worse):
        return f"the claim {'holds' if better else 'fails'} throughout"
    if 2 * max(better, worse) > total:
        return f"the claim {'holds' if better > worse else 'fails'} in most cases"
    if better == worse:
        return "undecided, as often better as worse"
    return f"undecided, more often {BETTER if better > worse else WORSE} than {WORSE if better > worse else BETTER}"


def _paragraph(report: RecoveryReport, measure: Measure) -> str:
    """One measure in words: each weight sequence in each variant."""
    lines = [f"{measure.title[0].upper()}{measure.title[1:]}, against L2,1:", ""]
    for variant in report.variants:
        phrases = (f"{METHODS[m]} {_phrase(report, variant, m, measure)}" for m in _candidates(report))
        lines.append(f"- {VARIANTS[variant].title}: {'; '.join(phrases)}.")
    return "\n".join(lines)


def _phrase(report: RecoveryReport, variant: str, method: str, measure: Measure) -> str:
    """Outcomes of one method, with the correlations at which they occur."""
    correlations = report.setting.correlations
    outcomes = [outcome(report, variant, correlation, method, measure) for correlation in correlations]
    if len(set(outcomes)) == 1:
        return f"{outcomes[0]} at every correlation" if outcomes[0] != SAME else f"{SAME} anywhere"
    places = {name: [c for c, o in zip(correlations, outcomes, strict=True) if o == name] for name in (WORSE, BETTER)}
    found = [f"{name} at {_listed(_numbers(where))}" for name, where in places.items() if where]
    return ", ".join(found) + (", elsewhere no difference" if SAME in outcomes else "")


def _overall(report: RecoveryReport, measures: tuple[Measure, ...]) -> str:
    """How large the differences are."""
    lines = [_row("weights", *(measure.title for measure in measures)), _row("---", *("---:" for _ in measures))]
    for method in report.methods:
        means = (np.mean([c.values(m.name) for c in report.cells if c.method == method]) for m in measures)
        cells = (_rounded(float(mean), m) for m, mean in zip(measures, means, strict=True))
        lines.append(_row(METHODS[method], *cells))
    active = " and ".join(f"{_n_active(report, variant)} ({VARIANTS[variant].title})" for variant in report.variants)
    return "\n".join([f"Means over all truths and correlations; active are {active} features.", "", *lines])


def _n_active(report: RecoveryReport, variant: str) -> int:
    return report.setting.n_active_groups * int(np.count_nonzero(VARIANTS[variant].sizes))


def _signs(report: RecoveryReport, measures: tuple[Measure, ...]) -> str:
    """All outcomes at a glance."""
    lines = [_row("truth", "weights", *(measure.title for measure in measures))]
    lines.append(_row("---", "---", *("---" for _ in measures)))
    for variant, method in product(report.variants, _candidates(report)):
        signs = (_sign_row(report, variant, method, measure) for measure in measures)
        lines.append(_row(VARIANTS[variant].title, METHODS[method], *signs))
    intro = (
        f"All comparisons, from correlation {_listed(_numbers(report.setting.correlations))} in this order: "
        f"+ better than L2,1, - worse, = {SAME}."
    )
    return "\n".join([intro, "", *lines])


def _sign_row(report: RecoveryReport, variant: str, method: str, measure: Measure) -> str:
    outcomes = (outcome(report, variant, c, method, measure) for c in report.setting.correlations)
    return " ".join({BETTER: "+", WORSE: "-", SAME: "="}[found] for found in outcomes)


def _ties(report: RecoveryReport) -> str:
    """How far the best clusters are from the truth, since a few right ties beat a method that has none."""
    means = {
        (variant, c, method): report.mean(variant, c, method, "cluster_index").mean
        for variant, c, method in product(report.variants, report.setting.correlations, report.methods)
    }
    baseline = max(mean for (_, _, method), mean in means.items() if method == BASELINE)
    variant, correlation, method = best = max((key for key in means if key[2] != BASELINE), key=means.__getitem__)
    strict = report.mean(variant, correlation, method, "cluster_index_all").mean
    return (
        f"**Clusters.** L2,1 has no means to make norms equal (its highest mean ARI is {baseline:.2f}), so a few right "
        f"ties beat it; how near the ARI comes to 1 matters more. The highest mean of Group OWL is {means[best]:.2f} "
        f"({METHODS[method]} weights, {VARIANTS[variant].title}, correlation {correlation:g}), and {strict:.2f} there "
        "with false selections included. Group OWL ties norms of rows, not rows: clusters may join groups."
    )


def _grid_ends(report: RecoveryReport) -> str:
    """Whether the grid was long enough for every method."""
    flags = {m: [c.values("at_end").sum() for c in report.cells if c.method == m] for m in report.methods}
    fits = len(report.variants) * len(report.setting.correlations) * report.setting.n_repetitions
    counts = ", ".join(f"{METHODS[method]} {sum(values):.0f}" for method, values in flags.items())
    return f"**Tuning.** Of {fits} fits per method, these chose the weakest penalty of the grid: {counts}."


def _candidates(report: RecoveryReport) -> list[str]:
    return [method for method in report.methods if method != BASELINE]


def _numbers(values: Iterable[float]) -> list[str]:
    return [f"{value:g}" for value in values]


def _listed(words: list[str]) -> str:
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))
