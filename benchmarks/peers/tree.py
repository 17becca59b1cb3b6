"""The page that compares two source trees of groupowl."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from .cases import GROUPS
from .report import by_case, groups_of, markdown_table, run_text, small_calls, targets_table, text_of, times_text
from .targets import SLOWER, Record, by_problem, tree_ratios, tree_targets

INTRODUCTION = f"""\
# groupowl against another source tree of it

Written by `make bench BENCH_ARGS="--against FOLDER"`; do not edit. {{times}}

- Each source tree has a process of its own. Ratios are the time of the other tree over that of this one: above 1, this
  one is faster. Problems below {SLOWER} are measured three times more, in new processes, and the median counts.
"""


def write_tree_page(data: dict[str, Any], folder: Path) -> Path:
    """``against.md``: targets, ratios of each group, what is slower, and all times."""
    rows = []
    for letter, found in tree_ratios(data).items():
        values = list(found.values())
        span = f"{min(values):.2f} to {max(values):.2f}"
        below = [f"{key[3:]}: {ratio:.2f}" for key, ratio in found.items() if ratio < SLOWER]
        rows.append(
            [f"({letter}) {GROUPS[letter]}", f"{np.median(values):.2f}", span, str(len(values)), "; ".join(below)]
        )
    parts = [
        INTRODUCTION.format(times=times_text(data)),
        run_text(data),
        targets_table(tree_targets(data)),
        "## Ratios\n",
        markdown_table(["group", "median", "range", "problems", f"below {SLOWER}"], rows),
        _again(data),
    ]
    for letter, records in groups_of(data).items():
        parts += [f"## {GROUPS[letter].capitalize()}\n", _times(records)]
    page = folder / "against.md"
    page.write_text("\n".join(part.strip("\n") + "\n" for part in [*parts, small_calls(data)] if part))
    return page


def _times(records: list[Record]) -> str:
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
