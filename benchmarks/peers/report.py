"""Tables on screen, and the page with tables, plots and targets that a run leaves behind."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from .adapters import ADAPTERS, takes_part
from .cases import GROUPS, GROWTH_BASE, GROWTH_FRACTION, Problem, everything
from .growth import growth_rows
from .screen import cell_text, seconds_text
from .shares import shares_text
from .targets import Record, Target, all_targets, by_problem, cost, duels, ratios, slower_duels

PATHS = "fkv"  # groups of paths
PAGE, QUICK_PAGE = "README.md", "quick.md"
INTRODUCTION = """\
# groupowl against its peers

Written by `make bench`; do not edit. Every solution is checked in the same way: objective and duality gap of
`F(XB) + sum_i lam_i ||B_[i],:||_2` (sums over samples, no intercept) are computed from the coefficients alone, by code
that shares nothing with groupowl. Each package runs at the loosest tolerance found at which its relative gap is at most
1e-6 (1e-9 for spectra), on paths at each of the alphas. The gap is relative to the loss at zero. {times}

- *At its default*: glmnet and glmstar once more, with the tolerance that they have if nobody names one, and the gap
  that they really reach beside the time. These do not count as rivals.
- `> 30 s`: stopped. A competitor gets 60 s on a problem; those known to be slow are stopped early, which only
  understates how much slower they are; smaller alphas of a case that was stopped are not run. `(gap 1e-5)`: its
  tightest tolerance reached no better; on paths it still counts as a rival if the gap was reached at the median alpha.
- Small problems (fewer than 1e6 entries of X): all that get along live in one process. Otherwise, and for adelie, which
  needs an older NumPy, and R's glmnet, which measures its own CPU time (several calls together where one is short),
  each has a process of its own.
- Each package gets `X` in the memory order that suits it (by columns for coordinate descent, else by rows), centered
  and with columns of norm sqrt(n). adelie, glmnet, glmstar and scikit-survival get a short path that ends at the alpha
  asked for, which is their fastest way. Estimators fit an intercept. celer's estimator for several tasks does not run
  with this version of scikit-learn; its steps are called one by one.
- Cox's partial likelihood is that of times without ties. lifelines does not take part: its L1 penalty is a smooth
  approximation, which has no gap to compare.
- `groupowl in X^T Y` is its time divided by that of one product of X^T with the targets.
- groupowl is `solve` with its defaults but no limit of steps, and `groupowl.path.solve_path`, certificates included.
  apgd is Algorithm 1 without screening, apgd+paper is Algorithm 1 with the paper's rule, spgd is Algorithm 2 with
  screening.
- Settings of others: sizes, densities, correlations and strengths are theirs (libslope: correlation 0.6, 20 signals, BH
  weights, columns without entries removed; multi-task: 1000 x 1000 x 10 at 0.6 and 1000 x 3000 x 80 at 0.3); data are
  generated here. M/EEG: fields of dipoles on a half sphere at sensors around it.
"""


GROWTH_NOTE = """\
Slopes of log(time) against log(size), by least squares: 1 is linear. One size changes at a time, from {base} at
{fraction} of lam_max with equal weights; a path goes down to 0.05 lam_max, and *selected features* come with smaller
alphas. In parentheses the time at the largest size that a competitor solved. The best peer is the fastest one there.
"""


# Screen -----------------------------------------------------------------------------------------------


def print_report(data: dict[str, Any], console: Console, targets: list[Target]) -> None:
    """One table for each group, and the targets."""
    for letter, records in groups_of(data).items():
        names = names_present(records)
        table = Table(title=f"({letter}) {GROUPS[letter]}", title_justify="left")
        for column in ("problem", *names):
            table.add_column(column, justify="left" if column == "problem" else "right")
        for key, row in sorted(by_problem(records).items(), key=by_case):
            table.add_row(key, *(text_of(row.get(name)) for name in names))
        console.print(table)
    table = Table("target", "measured", "", title="Targets", title_justify="left")
    for target in targets:
        table.add_row(target.text, target.measured, verdict(target.passed))
    console.print(table)


def groups_of(data: dict[str, Any]) -> dict[str, list[Record]]:
    """Records of each group that has any."""
    records = list(data["cells"].values())
    found = {letter: [one for one in records if one["group"] == letter] for letter in GROUPS}
    return {letter: part for letter, part in found.items() if part}


def names_present(records: list[Record]) -> list[str]:
    """Competitors that did not decline everything."""
    active = {one["competitor"] for one in records if one["status"] != "declined"}
    return [name for name in ADAPTERS if name in active]


def by_case(item: tuple[str, dict[str, Record]]) -> tuple[str, float]:
    """Order of problems in a table: by case, strong penalties first."""
    record = next(iter(item[1].values()))
    return record["case"], -(record["fraction"] or 0.0)


def text_of(record: Record | None) -> str:
    """Time of a cell; with the gap where that is not what was asked for."""
    if record is None:
        return ""
    fixed = ADAPTERS[record["competitor"]].fixed and record["status"] == "ok"
    return cell_text("short" if fixed else record["status"], record["seconds"], record["gap"])


def verdict(passed: bool | None) -> str:
    return {True: "pass", False: "FAIL", None: "-"}[passed]


# Page -------------------------------------------------------------------------------------------------


def write_page(data: dict[str, Any], folder: Path, page: str = PAGE) -> Path:
    """The page and the plots it shows; a quick run has none."""
    plots = draw(data, folder) if page == PAGE else []
    parts = [INTRODUCTION.format(times=times_text(data)), run_text(data), targets_table(all_targets(data))]
    parts += [slower_text(data), not_run_text(data, page == QUICK_PAGE), _summary(data), _defaults(data)]
    parts += [_growth(data)]
    parts += [f"![{title}]({name})\n" for name, title in plots]
    for letter, records in groups_of(data).items():
        parts += [f"## ({letter}) {GROUPS[letter]}\n", _times(letter, records), _gaps(letter, records)]
    parts += [reasons(data), _first_calls(data), small_calls(data)]
    path = folder / page
    path.write_text("\n".join(part for part in parts if part))
    return path


def markdown_table(header: list[str], rows: list[list[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def times_text(data: dict[str, Any]) -> str:
    """How times were measured; a run of several threads, or of an earlier edition, says so itself."""
    repeats = max(one["repeats"] for one in data["runs"])
    return (
        f"Times are medians of up to {repeats} calls in CPU time, which take turns in random order. They contain the\n"
        "certificates of groupowl, but neither reading data nor compiling nor first calls, which have tables of their "
        "own."
    )


def run_text(data: dict[str, Any]) -> str:
    """When and with what the cells were measured; runs of which nothing is left are not named."""
    used: dict[int, list[Record]] = {}
    for one in data["cells"].values():
        used.setdefault(one["run"], []).append(one)
    rows = []
    for number, records in sorted(used.items()):
        one = data["runs"][number]
        groups = "".join(sorted({record["group"] for record in records}))
        clock = "CPU" if one["cpu"] else "wall"
        words = [f"{name} {version}" for name, version in one["versions"].items()]
        words += [f"kernel of {name}: {text}" for name, text in one.get("kernels", {}).items()]
        words += [f"{name} left out: {reason}" for name, reason in one["left out"].items()]
        pools = {count for found in one.get("thread pools", {}).values() for _, count in found}
        threads = f"{one['threads']}" + (f" (found: {', '.join(map(str, sorted(pools)))})" if pools else "")
        row = [one["date"], groups, str(len(records)), f"{clock}, up to {one['repeats']}", threads]
        where = f"Python {one['python']}, {one['machine']}"
        rows.append([*row, f"{one['limit']:g} s", where, ", ".join(words), one.get("note", "")])
    header = ["run", "groups", "cells", "clock, calls", "threads", "limit", "where", "versions", "note"]
    return "## Runs\n\n" + markdown_table(header, rows)


def targets_table(found: list[Target]) -> str:
    rows = [[one.text, one.measured, verdict(one.passed)] for one in found]
    return "## Targets\n\n" + markdown_table(["target", "measured", "verdict"], rows)


def slower_text(data: dict[str, Any]) -> str:
    """Every problem at which a peer is faster, and those that groupowl did not solve."""
    cells, rows = data["cells"], []
    for duel in slower_duels(data):
        own, best = (cells[f"{duel.key} | {name}"] for name in ("groupowl", duel.best))
        sizes = [f"{duel.ratio:.2f}", f"{duel.least_ratio:.2f}", "large" if duel.large else "small"]
        date, shares = data["runs"][own["run"]]["date"], shares_text(own.get("shares"))
        rows.append([duel.key, text_of(own), text_of(best), duel.best, *sizes, shares, date])
    for one in cells.values():
        if one["competitor"] == "groupowl" and one["status"] != "ok":
            rows.append([one["key"], text_of(one), "", "", "", "", one["status"], "", data["runs"][one["run"]]["date"]])
    header = ["problem", "groupowl", "best peer", "which", "its time / groupowl", "by shortest times", "size"]
    header += ["where its time goes (modules of groupowl)", "run"]
    count = f"{len(rows)} of {len(by_problem(cells.values()))} problems.\n\n"
    return "## Where groupowl is slower\n\n" + (count + markdown_table(header, rows) if rows else "Nowhere.\n")


def not_run_text(data: dict[str, Any], quick: bool) -> str:
    """Problems of which there is no result, and competitors that are missing where groupowl is not."""
    known, rows = by_problem(data["cells"].values()), []
    for letter, title in GROUPS.items():
        problems = [one for one in everything(quick) if one.group == letter]
        absent = [one for one in problems if "groupowl" not in known.get(one.key, {})]
        there = [one for one in problems if one not in absent]
        missing = [f"{name} ({count})" for name in ADAPTERS if (count := _missing(name, there, known))]
        if absent or missing:
            share = f"{len(absent)} of {len(problems)}"
            rows.append([f"({letter}) {title}", share, _listed(absent), ", ".join(missing)])
    header = ["group", "not run", "which", "competitors that did not run (on how many others)"]
    return "## What was not run\n\n" + (markdown_table(header, rows) if rows else "Nothing.\n")


def _missing(name: str, problems: list[Problem], known: dict[str, dict[str, Record]]) -> int:
    """On how many problems a competitor could have taken part, and did not."""
    adapter = ADAPTERS[name]
    able = [one for one in problems if takes_part(name, one.group) and adapter.declines(one.kind) is None]
    return 0 if name == "before" else sum(name not in known[one.key] for one in able)


def _listed(problems: list[Problem]) -> str:
    """Names of problems, the strengths of a case together."""
    strengths: dict[str, list[str]] = {}
    for one in problems:
        strengths.setdefault(one.case[3:], []).append(one.key.partition(" @ ")[2])
    return "; ".join(f"{case} @ {', '.join(found)}" for case, found in strengths.items())


def _defaults(data: dict[str, Any]) -> str:
    """What packages give at their default tolerance: gaps really reached, and what the promised gap costs."""
    rows = []
    for letter, records in groups_of(data).items():
        for name in [name for name in names_present(records) if ADAPTERS[name].fixed]:
            pairs = _beside_itself(records, name)
            if pairs:
                gaps, factors = [gap for gap, _ in pairs], [factor for _, factor in pairs if factor is not None]
                cost_of = f"{np.median(factors):.2f}" if factors else ""
                rows.append(
                    [f"({letter})", name, f"{np.median(gaps):.0e}", f"{max(gaps):.0e}", cost_of, str(len(pairs))]
                )
    header = ["group", "competitor", "gap reached, median", "worst", "time at gap 1e-6 / at its default", "problems"]
    return "## At their default tolerance\n\n" + markdown_table(header, rows) if rows else ""


def _growth(data: dict[str, Any]) -> str:
    rows = growth_rows(data)
    if not rows:
        return ""
    base = " x ".join(map(str, GROWTH_BASE))
    header = ["what grows", "range", "groupowl", "best peer", "others"]
    note = GROWTH_NOTE.format(base=base, fraction=GROWTH_FRACTION)
    return f"## Growth of cost\n\n{note}\n" + markdown_table(header, rows)


def _beside_itself(records: list[Record], name: str) -> list[tuple[float, float | None]]:
    """Gap at the default and, where the promised gap was reached, the factor of time for it."""
    found = []
    for row in by_problem(records).values():
        one, other = row.get(name), row.get(name.partition(" at its default")[0])
        if one and one["status"] in ("ok", "short") and one["seconds"]:
            reached = other is not None and other["status"] == "ok"
            found.append((one["gap"], other["seconds"] / one["seconds"] if reached else None))
    return found


def _summary(data: dict[str, Any]) -> str:
    """Median ratios of times, for each group, loss and competitor."""
    rows = []
    for label, records in _by_loss(data):
        for name in names_present(records):
            found = ratios(records, name)
            if name == "groupowl" or ADAPTERS[name].fixed or not found:
                continue
            values = [ratio for _, ratio in found]
            stopped = sum(one["status"] == "limit" for one, _ in found)
            span = f"{min(values):.2g} to {max(values):.2g}"
            rows.append([label, name, f"{np.median(values):.3g}", span, str(len(values)), str(stopped)])
    header = ["group", "competitor", "time / groupowl, median", "range", "problems", "of these stopped"]
    note = "Above 1: groupowl is faster. Stopped ones count with the time they were given, if that says anything."
    return f"## Times relative to groupowl\n\n{note}\n\n" + markdown_table(header, rows)


def _by_loss(data: dict[str, Any]) -> Iterator[tuple[str, list[Record]]]:
    """Groups, apart by loss where one has several."""
    for letter, records in groups_of(data).items():
        losses = list(dict.fromkeys(one["loss"] for one in records))
        for loss in losses:
            label = f"({letter})" + (f" {loss}" if len(losses) > 1 else "")
            yield label, [one for one in records if one["loss"] == loss]


def _times(letter: str, records: list[Record]) -> str:
    """Medians, the ratio to the best peer by medians and by shortest times, and for single fits the unit of cost."""
    names, found = names_present(records), {duel.key: duel for duel in duels(records)}
    header = ["problem", "rows", *names, "best peer / groupowl", "by shortest times", "best peer"]
    rows = []
    for key, row in sorted(by_problem(records).items(), key=by_case):
        own, duel = row.get("groupowl"), found.get(key)
        texts = [_bold_best(row, name) for name in names]
        best = [f"{duel.ratio:.2f}", f"{duel.least_ratio:.2f}", duel.best] if duel else ["", "", ""]
        units = [] if letter in PATHS else [f"{cost(own):.1f}" if own and own["products"] else "-"]
        rows.append([key[3:], str(own["n_rows"]) if own else "", *texts, *best, *units])
    return markdown_table(header + ([] if letter in PATHS else ["groupowl in X^T Y"]), rows)


def _bold_best(row: dict[str, Record], name: str) -> str:
    good = {one: record["seconds"] for one, record in row.items() if record["status"] == "ok"}
    rivals = [seconds for one, seconds in good.items() if not ADAPTERS[one].fixed]
    best = name in good and not ADAPTERS[name].fixed and good[name] == min(rivals)
    return f"**{text_of(row[name])}**" if best else text_of(row.get(name))


def _gaps(letter: str, records: list[Record]) -> str:
    """Gaps really reached; for paths the worst and the median."""
    names = names_present(records)
    rows = []
    for key, row in sorted(by_problem(records).items(), key=by_case):
        rows.append([key[3:], *(_gap(row.get(name), letter in PATHS) for name in names)])
    table = markdown_table(["problem", *names], rows)
    return f"<details><summary>Gaps reached</summary>\n\n{table}\n</details>\n"


def _gap(record: Record | None, path: bool) -> str:
    if record is None or record["gap"] is None:
        return ""
    return f"{record['gap']:.0e}" + (f", median {record['median_gap']:.0e}" if path else "")


def reasons(data: dict[str, Any]) -> str:
    """Who declined what, and what went wrong."""
    notes: dict[tuple[str, str, str], int] = {}
    for one in data["cells"].values():
        if one["status"] in ("declined", "failed", "short"):
            note = one["note"] if one["status"] != "short" else "gap not reached at its tightest tolerance"
            place = (one["competitor"], f"({one['group']})", f"{one['status']}: {note}")
            notes[place] = notes.get(place, 0) + 1
    rows = [[*place, str(count)] for place, count in sorted(notes.items())]
    return "## Who did not take part, and why\n\n" + markdown_table(["competitor", "group", "reason", "problems"], rows)


def _first_calls(data: dict[str, Any]) -> str:
    extras, rows = data["extras"], []
    for name, one in extras.get("first_calls", {}).items():
        times = [seconds_text(one[part]) if part in one else one["error"] for part in ("import", "first", "second")]
        rows.append([name, one["problem"][3:], *times])
    if not rows:
        return ""
    text = "## First calls\n\nIn a fresh process; compiling counts as part of the first call.\n\n"
    text += markdown_table(["competitor", "problem", "import", "first call", "second call"], rows)
    memory = ", ".join(f"{one['share']:.3f} of X at {one['fraction']}" for one in extras["memory"])
    base, beyond = extras["import"].values()
    text += f"\nImport: scikit-learn's linear models {base:.3f} s, groupowl beyond them {beyond:.3f} s. "
    return text + f"Peak memory of a groupowl fit beyond X at 500 x 10000 x 10, OSCAR: {memory}.\n"


def small_calls(data: dict[str, Any]) -> str:
    """First and second calls of a small fit in fresh processes."""
    calls, imports = data["extras"].get("small_calls", {}), data["extras"].get("imports", {})
    rows = []
    for name, one in calls.items():
        parts = [seconds_text(one[part]) for part in ("first", "second")]
        rows.append([name, one["problem"][3:], *parts, seconds_text(imports[name]["groupowl beyond it"])])
    header = ["", "problem", "first call", "second call", "import, scikit-learn already loaded"]
    return "## First calls of a small fit, in fresh processes\n\n" + markdown_table(header, rows) if rows else ""


# Plots ------------------------------------------------------------------------------------------------


def draw(data: dict[str, Any], folder: Path) -> list[tuple[str, str]]:
    """Plots as files; their names and titles."""
    import matplotlib

    matplotlib.use("Agg")
    colors = dict(zip(ADAPTERS, matplotlib.colormaps["tab20"].colors, strict=False)) | {"groupowl": "black"}
    drawn = [
        ("time_against_gap.png", "Time against gap", _draw_profiles),
        ("ratios.png", "Ratios of times", _draw_ratios),
    ]
    return [(name, title) for name, title, function in drawn if function(data, folder / name, colors)]


def _draw_profiles(data: dict[str, Any], path: Path, colors: dict[str, Any]) -> bool:
    import matplotlib.pyplot as plt

    shown = by_problem(one for one in data["cells"].values() if one["profile"])
    if not shown:
        return False
    columns = min(2, len(shown))
    lines = -(-len(shown) // columns)
    figure, axes = plt.subplots(lines, columns, figsize=(7 * columns, 4 * lines), squeeze=False, layout="constrained")
    for axis in axes.flat[len(shown) :]:
        axis.remove()
    for axis, (key, row) in zip(axes.flat, sorted(shown.items()), strict=False):
        for name in (name for name in ADAPTERS if name in row):
            seconds, gaps = _staircase(row[name]["profile"])
            axis.step(gaps, seconds, where="post", marker=".", label=name, color=colors[name])
        axis.set(xscale="log", yscale="log", xlabel="relative duality gap", ylabel="seconds", title=key)
        axis.set_xlim(1.0, 1e-10)
        axis.legend(fontsize=7, loc="upper left", bbox_to_anchor=(1.0, 1.0))  # beside the curves, not on them
        axis.grid(alpha=0.3)
    figure.savefig(path, dpi=110)
    plt.close(figure)
    return True


def _staircase(points: list[tuple[float, float]]) -> tuple[np.ndarray, np.ndarray]:
    """Least time for each gap that was reached, from loose to tight."""
    ordered = sorted(points, key=lambda point: -point[1])
    seconds = np.array([seconds for seconds, _ in ordered])
    return np.minimum.accumulate(seconds[::-1])[::-1], np.maximum([gap for _, gap in ordered], 1e-16)


def _draw_ratios(data: dict[str, Any], path: Path, colors: dict[str, Any]) -> bool:
    import matplotlib.pyplot as plt

    bars = []
    for letter, records in groups_of(data).items():
        for name in names_present(records):
            values = [ratio for _, ratio in ratios(records, name)]
            if name != "groupowl" and not ADAPTERS[name].fixed and values:
                bars.append((f"({letter}) {name}", values, colors[name]))
    if not bars:
        return False
    figure, axis = plt.subplots(figsize=(8, 1 + 0.28 * len(bars)))
    for place, (_, values, color) in enumerate(bars):
        median = np.median(values)
        axis.barh(place, median - 1.0, left=1.0, color=color, alpha=0.6)
        axis.plot(values, np.full(len(values), place), "|", color="black", markersize=6, alpha=0.5)
    axis.set_yticks(range(len(bars)), [label for label, _, _ in bars], fontsize=8)
    axis.invert_yaxis()
    axis.axvline(1.0, color="black", linewidth=1)
    axis.set(
        xscale="log", xlabel="time / time of groupowl (bar: median, marks: problems; right of 1: groupowl is faster)"
    )
    axis.grid(axis="x", alpha=0.3)
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    plt.close(figure)
    return True
