"""How cost grows: slopes of the time on a log scale, of groupowl and of every peer, one size at a time."""

from __future__ import annotations

from typing import Any

import numpy as np

from .cases import GROWTH, GROWTH_BASE, GROWTH_FRACTION
from .screen import seconds_text
from .targets import PEERS, Record, by_problem

LEAST_POINTS = 3  # for a slope
NAMES = {"n": "samples", "d": "features", "q": "tasks"}


def growth_rows(data: dict[str, Any]) -> list[list[str]]:
    """What grows, its range, and the slopes of groupowl, of the best peer and of the others."""
    rows = []
    for name, points in series(data).items():
        slopes = {peer: slope for peer in ("groupowl", *PEERS) if (slope := slope_of(points, peer))}
        if "groupowl" not in slopes:
            continue
        peers = sorted((one for one in slopes if one != "groupowl"), key=lambda one: _last(points, one))
        texts = [f"{one} {_slope_text(slopes[one])}" for one in peers]
        span = f"{points[0][0]:g} to {points[-1][0]:g}"
        rows.append([name, span, _slope_text(slopes["groupowl"]), texts[0] if texts else "", ", ".join(texts[1:])])
    return rows


def series(data: dict[str, Any]) -> dict[str, list[tuple[float, dict[str, Record]]]]:
    """For each thing that grows, its values in ascending order with the records of all competitors."""
    rows = [row for row in by_problem(data["cells"].values()).values() if _own(row) and _own(row)["group"] == "t"]
    found: dict[str, list[tuple[float, dict[str, Record]]]] = {}
    for place, letter in enumerate(GROWTH):
        found[NAMES[letter]] = [(_own(row)["size"][place], row) for row in rows if _differs_at_most(_own(row), place)]
    at_base = [row for row in rows if tuple(_own(row)["size"]) == GROWTH_BASE]
    found["selected features"] = [(_own(row)["n_rows"], row) for row in at_base if _own(row)["fraction"] is not None]
    found["alphas"] = [(_own(row)["length"], row) for row in at_base if _own(row)["fraction"] is None]
    return {name: sorted(points, key=lambda point: point[0]) for name, points in found.items()}


def slope_of(points: list[tuple[float, dict[str, Record]]], name: str) -> tuple[float, float] | None:
    """Slope and the time at the largest size, or None where there are too few points."""
    mine = [(size, row[name]["seconds"]) for size, row in points if row.get(name, {}).get("status") == "ok"]
    if len({size for size, _ in mine}) < LEAST_POINTS:
        return None
    sizes, seconds = np.log(mine).T
    return float(np.polyfit(sizes, seconds, 1)[0]), float(mine[-1][1])


def _own(row: dict[str, Record]) -> Record:
    return row.get("groupowl", {})


def _differs_at_most(record: Record, place: int) -> bool:
    """Whether it is the base but for one size."""
    others = [i for i in range(3) if i != place]
    same = all(record["size"][i] == GROWTH_BASE[i] for i in others)
    return same and record["fraction"] == GROWTH_FRACTION


def _last(points: list[tuple[float, dict[str, Record]]], name: str) -> float:
    """Time at the largest size of all; infinite for those who did not get there."""
    record = points[-1][1].get(name, {})
    return record["seconds"] if record.get("status") == "ok" else np.inf


def _slope_text(slope: tuple[float, float]) -> str:
    return f"{slope[0]:.2f} ({seconds_text(slope[1])})"
