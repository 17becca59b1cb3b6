"""The pages of runs in rounds: small problems against peers, and two source trees of groupowl against each other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from .cases import GROUPS
from .report import by_case, groups_of, markdown_table, names_present, reasons, run_text, text_of, verdict
from .screen import seconds_text
from .targets import (
    SLOWER,
    Record,
    Target,
    by_problem,
    duels,
    group_targets,
    loss_targets,
    ratios,
    small_targets,
    tree_ratios,
    tree_targets,
)

SMALL_TITLE = "# Small problems\n"
LOSSES_TITLE = "# Labels, counts, times until events\n"
GROUPS_TITLE = "# Groups of columns\n"
TREE_TITLE = "# groupowl against another source tree of it\n"
COMMON = """
Written by `{command}`; do not edit. The duality gap of every solution is computed from its coefficients alone, by the
same code for all; relative to the loss at zero it is at most 1e-6 (1e-9 for spectra), on paths at each of the 100
alphas. Times are medians of up to {repeats} calls{clock}, which take turns in random order. They contain the
certificates of groupowl, but neither reading data nor compiling nor first calls.
"""
PEERS_NOTE = """
- All that get along live in one process. adelie needs an older NumPy and has a process of its own, like R's glmnet,
  which measures its own CPU time, several calls together where one is short.
- Each competitor runs at the loosest tolerance found that passes. `> 30 s`: stopped, which gives a lower bound.
- Data and memory order are those of the large benchmark, at correlation 0.5. Estimators fit an intercept.
- celer's estimator for several tasks does not run with this version of scikit-learn; its steps are called one by one.
"""
LOSSES_NOTE = """
- One task without an intercept: logistic loss of labels, Poisson loss of counts, Cox's partial likelihood of times
  without ties. Data and memory order are those of the large benchmark, at correlation 0.5.
- All that get along live in one process. R's glmnet has a process of its own and measures its own CPU time, several
  calls together where one is short; it gets a short path that ends at the alpha asked for, which is its fastest way.
- Each competitor runs at the loosest tolerance found that passes. `> 20 s`: stopped, which gives a lower bound.
"""
GROUPS_NOTE = """
- The group lasso: one task, squared loss, no intercept; groups are neighboring columns, as many in each, and the norm
  of a group is not scaled. Data and memory order are those of the large benchmark.
- celer and skglm live in one process with groupowl. adelie needs an older NumPy and has a process of its own; it gets
  a short path that ends at the alpha asked for, which is its fastest way. skglm is its estimator, celer its function
  for paths.
- Each competitor runs at the loosest tolerance found that passes. `> 20 s`: stopped, which gives a lower bound.
"""
TREE_NOTE = f"""
- Each source tree has a process of its own. Ratios are the time of the other tree over that of this one: above 1, this
  one is faster. Problems below {SLOWER} are measured three times more, in new processes, and the median counts.
"""


def write_small_page(data: dict[str, Any], folder: Path) -> Path:
    """``small.md``: targets, what misses them, and all times."""
    parts = [SMALL_TITLE, _common(data, "--small"), PEERS_NOTE, run_text(data), _targets(small_targets(data))]
    parts += [_missed(data)]
    for letter, records in groups_of(data).items():
        parts += [f"## {GROUPS[letter].capitalize()}\n", _times(records)]
    return _written([*parts, _first_calls(data), reasons(data)], folder / "small.md")


def write_losses_page(data: dict[str, Any], folder: Path) -> Path:
    """``losses.md``: targets, ratios by loss and peer, and all times."""
    parts = [LOSSES_TITLE, _common(data, "--losses"), LOSSES_NOTE, run_text(data), _targets(loss_targets(data))]
    parts += [_by_loss(data)]
    for letter, records in groups_of(data).items():
        parts += [f"## {GROUPS[letter].capitalize()}\n", _times(records)]
    return _written([*parts, reasons(data)], folder / "losses.md")


def write_groups_page(data: dict[str, Any], folder: Path) -> Path:
    """``groups.md``: targets, ratios by peer, and all times."""
    parts = [GROUPS_TITLE, _common(data, "--groups"), GROUPS_NOTE, run_text(data), _targets(group_targets(data))]
    parts += [_by_loss(data)]
    for letter, records in groups_of(data).items():
        parts += [f"## {GROUPS[letter].capitalize()}\n", _times(records)]
    return _written([*parts, reasons(data)], folder / "groups.md")


def _by_loss(data: dict[str, Any]) -> str:
    """Time of each peer over that of groupowl, by loss."""
    rows = []
    for letter, records in groups_of(data).items():
        for loss in dict.fromkeys(one["loss"] for one in records):
            mine = [one for one in records if one["loss"] == loss]
            for name in names_present(mine):
                values = [ratio for _, ratio in ratios(mine, name)]
                if values and name != "groupowl":
                    span = f"{min(values):.2f} to {max(values):.2f}"
                    rows.append([f"({letter}) {loss}", name, f"{np.median(values):.2f}", span, str(len(values))])
    header = ["loss", "peer", "its time / groupowl, median", "range", "problems"]
    return "## Ratios by loss\n\n" + markdown_table(header, rows)


def write_tree_page(data: dict[str, Any], folder: Path) -> Path:
    """``against.md``: targets, ratios of each group, what is slower, and all times."""
    targets = tree_targets(data)
    parts = [TREE_TITLE, _common(data, "--against FOLDER"), TREE_NOTE, run_text(data), _targets(targets)]
    rows = []
    for letter, found in tree_ratios(data).items():
        values = list(found.values())
        span = f"{min(values):.2f} to {max(values):.2f}"
        below = [f"{key[3:]}: {ratio:.2f}" for key, ratio in found.items() if ratio < SLOWER]
        rows.append(
            [f"({letter}) {GROUPS[letter]}", f"{np.median(values):.2f}", span, str(len(values)), "; ".join(below)]
        )
    parts += [
        "## Ratios\n",
        markdown_table(["group", "median", "range", "problems", f"below {SLOWER}"], rows),
        _again(data),
    ]
    for letter, records in groups_of(data).items():
        parts += [f"## {GROUPS[letter].capitalize()}\n", _tree_times(records)]
    return _written([*parts, _first_calls(data)], folder / "against.md")


def _written(parts: list[str], page: Path) -> Path:
    page.write_text("\n".join(part.strip("\n") + "\n" for part in parts if part))
    return page


def _common(data: dict[str, Any], option: str) -> str:
    meta = data["meta"]
    clock = " in CPU time" if meta["cpu"] else ""
    return COMMON.format(command=f'make bench BENCH_ARGS="{option}"', repeats=meta["repeats"], clock=clock)


def _targets(found: list[Target]) -> str:
    rows = [[one.text, one.measured, verdict(one.passed)] for one in found]
    return "## Targets\n\n" + markdown_table(["target", "measured", "verdict"], rows)


def _missed(data: dict[str, Any]) -> str:
    """Problems at which a peer is faster, and those below what the median should be."""
    rows = []
    for letter, wanted in (("i", 3.0), ("j", 1.0), ("k", 3.0)):
        records = groups_of(data).get(letter, [])
        for duel in duels(records):
            goal = 1.5 if duel.best in ("glmnet", "glmstar") else wanted
            if duel.ratio < goal:
                rows.append([duel.key, duel.best, f"{duel.ratio:.2f}", f"{duel.least_ratio:.2f}", f"{goal:g}"])
    header = ["problem", "best peer", "its time / groupowl", "by shortest times", "aim"]
    return "## Problems that miss their aim\n\n" + (markdown_table(header, sorted(rows)) if rows else "None.\n")


def _times(records: list[Record]) -> str:
    """Medians, and the ratio to the best peer by medians and by shortest times."""
    names = names_present(records)
    found = {duel.key: duel for duel in duels(records)}
    rows = []
    for key, row in sorted(by_problem(records).items(), key=by_case):
        duel = found.get(key)
        best = [f"{duel.ratio:.2f}", f"{duel.least_ratio:.2f}", duel.best] if duel else ["", "", ""]
        rows.append([key[3:], *(text_of(row.get(name)) for name in names), *best])
    return markdown_table(["problem", *names, "best peer / groupowl", "by shortest times", "best peer"], rows)


def _tree_times(records: list[Record]) -> str:
    rows = []
    for key, row in sorted(by_problem(records).items(), key=by_case):
        if not {"groupowl", "before"} <= row.keys():
            continue
        own, before = row["groupowl"], row["before"]
        both = ["", ""]
        if own["seconds"] and before["seconds"]:
            both = [f"{before[name] / own[name]:.2f}" for name in ("seconds", "least")]
        rows.append([key[3:], text_of(own), text_of(before), *both])
    return markdown_table(["problem", "groupowl", "before", "before / groupowl", "by shortest times"], rows)


def _again(data: dict[str, Any]) -> str:
    rows = [[key, *(f"{ratio:.2f}" for ratio in values)] for key, values in data.get("again", {}).items()]
    return "Measured again:\n\n" + markdown_table(["problem", "first", "second", "third"], rows) if rows else ""


def _first_calls(data: dict[str, Any]) -> str:
    calls, imports = data["extras"].get("first_calls", {}), data["extras"].get("imports", {})
    if not calls:
        return ""
    rows = []
    for name, one in calls.items():
        parts = [seconds_text(one[part]) for part in ("first", "second")]
        rows.append([name, one["problem"][3:], *parts, seconds_text(imports[name]["groupowl beyond it"])])
    header = ["", "problem", "first call", "second call", "import, scikit-learn already loaded"]
    return "## First calls, in fresh processes\n\n" + markdown_table(header, rows)
