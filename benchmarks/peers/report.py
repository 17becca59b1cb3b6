"""Tables on screen, and the page with tables, plots and targets that a run leaves behind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from .adapters import ADAPTERS
from .cases import GROUPS
from .screen import cell_text, seconds_text
from .targets import Record, Target, all_targets, by_problem, cost, ratios

INTRODUCTION = """\
# groupowl against its peers

Written by `make bench`; do not edit. Every solution is checked in the same way: objective and duality gap of
`F(XB) + sum_i lam_i ||B_[i],:||_2` (sums over samples, no intercept) are computed from the coefficients alone. Each
package runs at the loosest tolerance found at which its relative gap is at most 1e-6 (1e-9 for spectra), on paths at
each of the 100 alphas. The gap is relative to the loss at zero.

- Times are medians of repeated calls (up to seven if they are short). The packages run in turn, in random order.
  Times do not include reading data, compiling and first calls; first calls have a separate table.
- `> 30 s`: stopped. Packages known to be slow are stopped early, which only understates how much slower they are;
  smaller alphas of a case that was stopped are not run. `(gap 1e-5)`: its tightest tolerance reached no better;
  on paths it still counts as a rival if the gap was reached at the median alpha.
- Each package gets `X` in the memory order that suits it (by columns for coordinate descent, else by rows), centered
  and with columns of norm sqrt(n). adelie gets a short path that ends at the alpha asked for, which is its fastest way.
- `groupowl in X^T Y` is its time divided by that of one product of X^T with the targets.
- groupowl is `solve` with its defaults but no limit of steps, and `groupowl.path.solve_path`. apgd is
  Algorithm 1 without screening, apgd+paper is Algorithm 1 with the paper's rule, spgd is Algorithm 2 with screening.
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
    return "" if record is None else cell_text(record["status"], record["seconds"], record["gap"])


def verdict(passed: bool | None) -> str:
    return {True: "pass", False: "FAIL", None: "-"}[passed]


# Page -------------------------------------------------------------------------------------------------


def write_page(data: dict[str, Any], folder: Path) -> Path:
    """``README.md`` and the plots it shows."""
    plots = draw(data, folder)
    parts = [INTRODUCTION, run_text(data), _summary(data)]
    parts += [f"![{title}]({name})\n" for name, title in plots]
    for letter, records in groups_of(data).items():
        parts += [f"## ({letter}) {GROUPS[letter]}\n", _times(letter, records), _gaps(letter, records)]
    parts += [reasons(data), _first_calls(data), _targets(data)]
    page = folder / "README.md"
    page.write_text("\n".join(part for part in parts if part))
    return page


def markdown_table(header: list[str], rows: list[list[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def run_text(data: dict[str, Any]) -> str:
    meta = data["meta"]
    versions = ", ".join(f"{name} {number}" for name, number in meta["versions"].items())
    kind = "Run" if meta.get("small") else "Quick run" if meta["quick"] else "Full run"
    pools = {number for found in meta.get("thread pools", {}).values() for _, number in found}
    checked = f" (found in the workers: {', '.join(map(str, sorted(pools)))})" if pools else ""
    threads = f"threads for everyone: {meta['threads']}{checked}"
    limit = f"limit of a call: {meta['limit']:g} s"
    missing = meta.get("not run", [])
    left = f" The time was up before {len(missing)} problems: {', '.join(missing)}." if missing else ""
    where = f"Python {meta['python']}, {meta['machine']}"
    kernels = "".join(f" Kernel of {name}: {text}." for name, text in meta.get("kernels", {}).items())
    absent = "".join(f" {name} is left out: {reason}." for name, reason in meta.get("left out", {}).items())
    note = f" {meta['note']}" if meta.get("note") else ""
    return f"{kind} of {meta['date']}: {where}, {threads}, {limit}. {versions}.{kernels}{absent}{left}{note}\n"


def _summary(data: dict[str, Any]) -> str:
    """Median ratios of times, for each group and competitor."""
    rows = []
    for letter, records in groups_of(data).items():
        for name in names_present(records):
            found = ratios(records, name)
            if name == "groupowl" or not found:
                continue
            values = [ratio for _, ratio in found]
            stopped = sum(one["status"] == "limit" for one, _ in found)
            span = f"{min(values):.2g} to {max(values):.2g}"
            rows.append([f"({letter})", name, f"{np.median(values):.3g}", span, str(len(values)), str(stopped)])
    header = ["group", "competitor", "time / groupowl, median", "range", "problems", "of these stopped"]
    note = "Above 1: groupowl is faster. Stopped ones count with the time they were given, if that says anything."
    return f"## Times relative to groupowl\n\n{note}\n\n" + markdown_table(header, rows)


def _times(letter: str, records: list[Record]) -> str:
    names = names_present(records)
    header = ["problem", "rows", *names] + ([] if letter == "f" else ["groupowl in X^T Y"])
    rows = []
    for key, row in sorted(by_problem(records).items(), key=by_case):
        own = row.get("groupowl")
        texts = [_bold_best(row, name) for name in names]
        units = [] if letter == "f" else [f"{cost(own):.1f}" if own and own["products"] else "-"]
        rows.append([key[3:], str(own["n_rows"]) if own else "", *texts, *units])
    return markdown_table(header, rows)


def _bold_best(row: dict[str, Record], name: str) -> str:
    good = [one["seconds"] for one in row.values() if one["status"] == "ok"]
    text = text_of(row.get(name))
    best = name in row and row[name]["status"] == "ok" and row[name]["seconds"] == min(good)
    return f"**{text}**" if best else text


def _gaps(letter: str, records: list[Record]) -> str:
    """Gaps really reached; for paths the worst and the median."""
    names = names_present(records)
    rows = []
    for key, row in sorted(by_problem(records).items(), key=by_case):
        rows.append([key[3:], *(_gap(row.get(name), letter == "f") for name in names)])
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


def _targets(data: dict[str, Any]) -> str:
    rows = [[one.text, one.measured, verdict(one.passed)] for one in all_targets(data)]
    return "## Targets\n\n" + markdown_table(["target", "measured", "verdict"], rows)


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
            if name != "groupowl" and values:
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
