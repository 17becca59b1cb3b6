"""The page of the study, from its records."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from . import __doc__ as rule
from .candidates import CANDIDATES, CHOICES, DEFAULT
from .data import GROUP_SIZE, N_ACTIVE, N_TRAIN, SAME, Data, Source
from .judge import BLOCKS, FORMS, Decision, Estimate, Results, collect
from .run import EPS, N_ALPHAS, RULES, Log

#: Files of results and page.
STORED, PAGE = "default_weights.json", "default_weights.md"
_MANY = 300  # features that are many
# Candidates that tables of single data sets show, beside the best.
_SHOWN = ("constant", "oscar", "linear", "bh", "chi")


def write(
    out: Path,
    data_sets: dict[str, tuple[Source, Data]],
    log: Log,
    *,
    absent: list[str],
    versions: dict[str, str],
) -> None:
    """Store the records with versions, and write the page."""
    records = collect(data_sets, log.runs)
    about = {
        "versions": versions,
        "absent": absent,
        "seconds": round(sum(run["seconds"] for run in log.runs)),
        "data": {name: _described(source, data) for name, (source, data) in data_sets.items()},
        "records": records,
    }
    out.mkdir(parents=True, exist_ok=True)
    (out / STORED).write_text(_one_record_a_line(about), encoding="utf-8")
    render(out)


def _one_record_a_line(about: dict[str, Any]) -> str:
    records = ",\n  ".join(json.dumps(record, ensure_ascii=False) for record in about["records"])
    rest = json.dumps({name: part for name, part in about.items() if name != "records"}, indent=1, ensure_ascii=False)
    return rest.removesuffix("\n}") + ',\n "records": [\n  ' + records + "\n ]\n}\n"


def _described(source: Source, data: Data) -> dict[str, Any]:
    if data.is_classified:
        is_labeled = data.y.ndim == 2
        targets = f"{data.y.shape[1]} labels" if is_labeled else f"{len(np.unique(data.y))} classes"
    else:
        q = 1 if data.y.ndim == 1 else data.y.shape[1]
        targets = "1 number" if q == 1 else f"{q} numbers"
    sizes = np.bincount(data.groups)
    n_samples = len(data.X) if data.effects is None else N_TRAIN
    return {
        "block": source.block,
        "shape": [n_samples, data.X.shape[1]],
        "targets": targets,
        "grouped": int(sizes[sizes >= 2].sum()),
    }


def render(out: Path) -> None:
    """Write the page of stored records."""
    (out / PAGE).write_text(page(stored_results(out)), encoding="utf-8")


def stored_results(out: Path) -> dict[str, Any]:
    """What the page shows."""
    about: dict[str, Any] = json.loads((out / STORED).read_text(encoding="utf-8"))
    return about


# The page -------------------------------------------------------------------------------------------------


def page(about: dict[str, Any]) -> str:
    """The page of measurements."""
    results = Results(about["records"])
    decision = results.decision()
    shown = tuple(dict.fromkeys((*_SHOWN, decision.best, decision.winner, next(iter(CHOICES)))))
    lines = ["# Default weights", "", "    python -m benchmarks.default_weights --data DIR", ""]
    lines += [
        *_outcome(results, decision),
        *_doubt(about, decision),
        "",
        *_description(about, results),
        "",
        *_rule(),
        "",
    ]
    for block in BLOCKS:
        lines += [f"## {_title(block)}", "", *_summary(results, block), ""]
    lines += ["## What to choose", "", *_advice(about, results), ""]
    lines += ["## The decision", "", *_merits(results, decision), "", *_forms(about), ""]
    lines += ["## Where the default is bad", "", *_bad_cells(results, decision.winner), ""]
    lines += ["## Data set by data set", "", *_by_data_set(about, results, shown), ""]
    if about["absent"]:
        lines += ["## Left out", "", *(f"- {line}" for line in about["absent"]), ""]
    lines += ["## Versions", "", *(f"- {name} {version}" for name, version in about["versions"].items())]
    return "\n".join(lines) + "\n"


def _title(block: str) -> str:
    return {"real": "Real data", "known groups": "Known groups"}[block]


def _outcome(results: Results, decision: Decision) -> list[str]:
    """What the rule decided, in sentences."""
    out = [name for name in CANDIDATES if name not in decision.admitted]
    others = [f"`{name}`" for name in decision.tied if name != decision.best]
    ahead = results.merit(decision.best, less=DEFAULT)
    verdict = "stays" if decision.winner == DEFAULT else "becomes"
    lines = [
        f"**`{decision.winner}` {verdict} the default.** By the rule below, which was written before the first run:",
        "",
        f"- Out for prediction: {_listed(out) if out else 'none'}.",
        f"- Of the others, `{decision.best}` selects best, by stability and whole groups; "
        + (f"{', '.join(others)} {'ties' if len(others) == 1 else 'tie'} with it." if others else "none ties with it."),
    ]
    if decision.best != DEFAULT:
        lines.append(
            f"- The figure of `{decision.best}` is {ahead.mean:.3f} ± {ahead.error:.3f} above that of `{DEFAULT}`."
        )
    if len(decision.tied) > 1 and decision.winner != DEFAULT:
        counts = ", ".join(f"`{name}` {results.n_selected(name):.1f}" for name in decision.tied)
        lines.append(f"- The tie is decided by the number of features selected: {counts}. It is a tie all the same.")
    return lines


def _doubt(about: dict[str, Any], decision: Decision) -> list[str]:
    """How far the winner is behind in prediction, and whether the decision depends on how togetherness is measured."""
    results = Results(about["records"])
    behind = results.behind("real", decision.winner, "min")
    lines = [
        f"- On real data `{decision.winner}` is {behind.mean:.2f} ± {behind.error:.2f} points of explained deviance "
        f"behind `{results.best('real', 'min')}` (min)."
    ]
    others = {Results(about["records"], together=form).decision().winner for form in FORMS} - {decision.winner}
    if not others:
        return lines
    found = " or ".join(f"`{name}`" for name in sorted(others))
    narrow = f"- It is a narrow decision: with other forms of one measure it is {found}, see [below](#the-decision)."
    return [*lines, narrow]


def _forms(about: dict[str, Any]) -> list[str]:
    """What the rule decides with other forms of togetherness."""
    lines = [
        "Togetherness has two faults, seen only at a first look at the results of two splits. By chance it is below 0, "
        "although step 2 says 0: a group counts only once one of its members is selected. And it has no bound below, "
        "so that data sets of which nearly all features are selected weigh most. Means over features, not groups, "
        "are 0 by chance; without division by 1 less chance it is bounded. The rule is followed as it was coded before "
        "the first run, since a correction made in sight of results cannot decide. This is what others would say:",
        "",
        "| togetherness | best | ties with it | default |",
        "|---|---|---|---|",
    ]
    for form in FORMS:
        decision = Results(about["records"], together=form).decision()
        others = [name for name in decision.tied if name != decision.best]
        name = form.removeprefix("together").removeprefix(", ") or "as the rule has it"
        cells = [name, decision.best, "; ".join(others) or "none", decision.winner]
        lines.append("| " + " | ".join(cells) + " |")
    found = {Results(about["records"], together=form).decision().winner for form in FORMS}
    if len(found) > 1:
        lines += [
            "",
            "**The decision depends on the form**: it is not robust. A study on other data, with a form that is fixed "
            "before, has to settle it.",
        ]
    return lines


def _listed(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _description(about: dict[str, Any], results: Results) -> list[str]:
    n_real, n_known = (len(results.names[block]) for block in BLOCKS)
    n_splits = [len(record["explained"]) for record in about["records"]]
    splits = f"{min(n_splits)}" if min(n_splits) == max(n_splits) else f"{min(n_splits)} to {max(n_splits)}"
    return [
        "## What was measured",
        "",
        f"- **Data.** {n_real} real data sets, of which one third is for testing, in {splits} random splits; and "
        f"{n_known} simulated settings with groups of {GROUP_SIZE} features, {N_ACTIVE} of them with effects, in "
        f"{splits} fresh training sets of {N_TRAIN} samples. Large real sets are subsampled. All runs took "
        f"{about['seconds'] / 60:.0f} minutes of processor time. Two data sets of ISLP (Caravan, Fund) were left out "
        "after trial fits with `oscar` and `bh` that selected nothing, and sizes were cut to save time, before results "
        "were compared.",
        f"- **Fits.** `standardize=True`, {N_ALPHAS} alphas from the largest down to {EPS:g} of it, five folds. `min` "
        "takes the alpha of the best score, `1se` the largest within one standard error of it.",
        "- **Explained deviance**: 1 less the test error (squared error or log-loss) over that of the null model, in "
        "percent. *Behind* is how many points a candidate is behind the one with the best mean.",
        "- **Stability**: Nogueira's measure of the features selected in the splits, 1 for always the same, 0 for "
        "chance.",
        "- **Togetherness**: do selected features have the others of their group with them? 1 for whole groups, 0 for "
        f"chance. Groups of real data are features all of whose correlations are at least {SAME:g} in size. *Whole* "
        "is the share of groups that are selected whole, of those of which something is selected; it is 1 where "
        "everything is selected.",
        "- **Tied**: share of the selected features whose norm another feature has too.",
        "- **Standard errors** of means over data sets (±) take data sets as units. Splits of one data set overlap, so "
        "that the scatter over them says less than it seems.",
        "- **Candidates.** `first n ranks to 1/2` falls linearly from 1 to 1/2 over as many ranks as there are "
        "samples, `first root of d` over the root of the number of features, and then stays: their steps do not "
        "vanish, or not as fast, as d grows. `levels 2 %; 0.7` is 1 for 2 % of the features and 0.7 for the rest. "
        "`CV of ...` takes the sequence with the best score of cross-validation.",
    ]


def _rule() -> list[str]:
    text = (rule or "").partition("\n\n")[2].replace("``", "`")
    return ["## The rule", "", *text.strip().splitlines()]


def _summary(results: Results, block: str) -> list[str]:
    """Means over the data sets of a block."""
    heads = ["weights", "behind, min", "behind, 1se", "stability", "togetherness", "whole"]
    heads += ["F1"] if block == "known groups" else []
    heads += ["features, min", "features, 1se", "tied", "time"]
    best = " and ".join(f"`{results.best(block, rule)}` ({rule})" for rule in RULES)
    lines = [
        f"Means over {len(results.names[block])} data sets. The largest explained deviance has {best}. From stability "
        "to whole or F1, and tied: means of both rules. Features: geometric means. Time: geometric mean of the ratios "
        "to `oscar`.",
        "",
        "| " + " | ".join(heads) + " |",
        "|---" + "|---:" * (len(heads) - 1) + "|",
    ]
    for name in (*CANDIDATES, *CHOICES):
        behind = [results.behind(block, name, rule) for rule in RULES]
        cells = [f"{item.mean:.2f} ± {item.error:.2f}" for item in behind]
        measures = ["stability", "together", "whole", *(["f1"] if block == "known groups" else [])]
        cells += [f"{_both(results, block, name, measure):.3f}" for measure in measures]
        for rule_name in RULES:
            counts = results.values(block, name, rule_name, "selected")
            cells.append(f"{np.expm1(np.mean(np.log1p(counts))):.1f}")
        cells += [f"{100 * _share_tied(results, block, name):.0f} %", f"{_time(results, block, name):.2f}"]
        lines.append("| " + " | ".join([name, *cells]) + " |")
    return lines


def _both(results: Results, block: str, name: str, measure: str) -> float:
    return float(np.nanmean([results.values(block, name, rule, measure) for rule in RULES]))


def _share_tied(results: Results, block: str, name: str) -> float:
    shares = []
    for rule_name in RULES:
        selected = results.values(block, name, rule_name, "selected")
        shares.append(results.values(block, name, rule_name, "tied") / np.where(selected > 0, selected, np.nan))
    return float(np.nanmean(shares))


def _time(results: Results, block: str, name: str) -> float:
    ratios = results.values(block, name, "min", "seconds") / results.values(block, DEFAULT, "min", "seconds")
    return float(np.exp(np.mean(np.log(ratios))))


def _merits(results: Results, decision: Decision) -> list[str]:
    """Step 2 of the rule."""
    lines = [
        "The mean of stability and togetherness over both rules and both blocks, and its paired difference from "
        f"`{decision.best}`. Candidates that are out for prediction, and choices by cross-validation, are shown too.",
        "",
        "| weights | figure | behind the best | verdict |",
        "|---|---:|---:|---|",
    ]
    for name in sorted((*CANDIDATES, *CHOICES), key=lambda name: -results.merit(name).mean):
        behind = results.merit(decision.best, less=name)
        figure = f"{results.merit(name).mean:.3f}"
        difference = "" if name == decision.best else f"{behind.mean:.3f} ± {behind.error:.3f}"
        lines.append(f"| {name} | {figure} | {difference} | {_verdict(name, decision)} |")
    return lines


def _verdict(name: str, decision: Decision) -> str:
    if name == decision.winner:
        return "**default**"
    if name in CHOICES:
        return "not one sequence"
    if name not in decision.admitted:
        return "out for prediction"
    return "ties" if name in decision.tied else ""


def _advice(about: dict[str, Any], results: Results) -> list[str]:
    """What a user reads off, by the number of features; the border was drawn after the results were seen."""
    lines = [
        f"Real data with fewer than {_MANY} features, and with more. Explained deviance is that of `min`; the other "
        "figures are means of both rules.",
        "",
        "| features | weights | explained deviance | beside `oscar` | stability | whole groups | selected | tied |",
        "|---|---|---:|---:|---:|---:|---:|---:|",
    ]
    names = results.names["real"]
    is_large = np.array([about["data"][name]["shape"][1] >= _MANY for name in names])
    for title, kept in ((f"fewer than {_MANY}", ~is_large), (f"{_MANY} or more", is_large)):
        for weights in ("constant", "oscar", "chi", "bh", "first root of d to 0.8", "linear"):
            explained = results.values("real", weights, "min", "explained")[kept]
            beside = Estimate.of(explained - results.values("real", "oscar", "min", "explained")[kept])
            cells = [
                f"{explained.mean():.1f}",
                "" if weights == "oscar" else f"{beside.mean:+.2f} ± {beside.error:.2f}",
            ]
            for measure in ("stability", "whole"):
                figures = [results.values("real", weights, rule_name, measure)[kept] for rule_name in RULES]
                cells.append(f"{np.nanmean(figures):.2f}")
            counts = [
                sum(results.values("real", weights, rule_name, measure)[kept].sum() for rule_name in RULES)
                for measure in ("selected", "tied")
            ]
            cells += [f"{counts[0] / (len(RULES) * kept.sum()):.0f}", f"{100.0 * counts[1] / counts[0]:.0f} %"]
            lines.append("| " + " | ".join([f"{title} ({kept.sum()} data sets)", weights, *cells]) + " |")
    return [
        *lines,
        "",
        f"The border of {_MANY} was drawn after the results were seen, and NCI60 alone makes much of the difference "
        "above it.",
        "",
        "- With few features the choice hardly matters for prediction. `oscar` keeps more groups whole than `chi` and "
        "`bh`, and its selection is less stable.",
        "- With many features try `bh` or `chi` first: `oscar` falls by next to nothing among the first ranks there.",
        "- `linear` selects most features; it predicts best where many weak ones matter (protein, Reuters).",
        "- `constant` selects fewest features, and seldom whole groups.",
        "- If you do not know, let cross-validation choose from `constant`, `oscar` and `bh`: it takes three times as "
        "long, and its prediction is near that of the best single sequence in both tables above.",
    ]


def _bad_cells(results: Results, winner: str) -> list[str]:
    """Data sets on which the default predicts worse than another candidate by more than a point."""
    lines = []
    for block in BLOCKS:
        for name in results.names[block]:
            for rule_name in RULES:
                found = {
                    other: 100.0 * np.asarray(results.records[name, other, rule_name]["explained"])
                    for other in CANDIDATES
                }
                best = max(found, key=lambda other: float(found[other].mean()))
                difference = found[best] - found[winner]
                error = float(difference.std(ddof=1) / np.sqrt(len(difference)))
                if difference.mean() > 1.0 and difference.mean() > 2.0 * error:
                    gap = f"{difference.mean():.1f} ± {error:.1f}"
                    values = f"{found[winner].mean():.1f} | {found[best].mean():.1f}"
                    lines.append(f"| {name} | {rule_name} | {values} | {best} | {gap} |")
    if not lines:
        return [f"On no data set is `{winner}` behind the best of all by more than a point and two standard errors."]
    head = [
        f"Where `{winner}` is behind the best candidate of that data set by more than a point and two standard errors "
        "over splits (the best of twelve is a little lucky):",
        "",
        "| data | alpha | default | best | which | points behind |",
        "|---|---|---:|---:|---|---:|",
    ]
    return [*head, *lines]


def _by_data_set(about: dict[str, Any], results: Results, shown: tuple[str, ...]) -> list[str]:
    lines = []
    for title, measure, rules in (
        ("Explained deviance in percent, min", "explained", ("min",)),
        ("Explained deviance in percent, 1se", "explained", ("1se",)),
        ("Stability, mean of both rules", "stability", RULES),
        ("Togetherness, mean of both rules", "together", RULES),
        ("Features selected (and tied), min", "selected", ("min",)),
        ("Features selected (and tied), 1se", "selected", ("1se",)),
    ):
        heads = ["data", "samples x features", "targets", *shown]
        lines += ["", f"### {title}", "", "| " + " | ".join(heads) + " |", "|---" * 3 + "|---:" * len(shown) + "|"]
        for name, described in about["data"].items():
            if name not in results.names[described["block"]] or (measure == "together" and not described["grouped"]):
                continue
            cells = []
            for weights in shown:
                cells.append(_cell([results.records[name, weights, rule_name] for rule_name in rules], measure))
            size = " x ".join(map(str, described["shape"]))
            lines.append("| " + " | ".join([name, size, described["targets"], *cells]) + " |")
    return lines[1:]


def _cell(records: list[dict[str, Any]], measure: str) -> str:
    if measure == "explained":
        return f"{100.0 * np.mean(records[0]['explained']):.1f}"
    if measure == "selected":
        return f"{records[0]['selected']:.0f} ({records[0]['tied']:.0f})"
    return f"{np.mean([record[measure] for record in records]):.2f}"
