"""The targets: what groupowl should reach, what it reached, and whether that is enough."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .adapters import ADAPTERS
from .cases import LARGE

Record = dict[str, Any]
SLOWER = 0.9  # of the other source tree's speed: below this a problem is measured again
#: Rivals everywhere: neither slow baselines, nor packages at a loose tolerance, nor groupowl itself.
PEERS = [name for name, one in ADAPTERS.items() if not (one.baseline or one.fixed) and one.package != "groupowl"]
PYTHON_PEERS = [name for name in PEERS if name != "glmnet"]
OLDER_PEERS = ("scikit-learn", "celer", "skglm", "sortedl1", "adelie")
NAMED = 3  # as many lost problems a target names; a table has all of them


@dataclass(frozen=True)
class Target:
    """One promise; ``passed`` is None where this run did not measure it, or there is nothing to promise."""

    text: str
    measured: str
    passed: bool | None


@dataclass(frozen=True)
class Duel:
    """groupowl against the best peer on one problem."""

    key: str
    best: str
    seconds: float  # of the best peer, or what it was given at least
    ratio: float  # best peer / groupowl: above 1 groupowl is faster
    least_ratio: float  # the same of the shortest times
    large: bool


def by_problem(records: Iterable[Record]) -> dict[str, dict[str, Record]]:
    """Records by problem, then by competitor."""
    table: dict[str, dict[str, Record]] = {}
    for record in records:
        table.setdefault(record["key"], {})[record["competitor"]] = record
    return table


def slower(record: Record, own: Record) -> bool:
    """Whether it was stopped, and only after longer than groupowl took: a lower bound that says something."""
    return record["status"] == "limit" and record["seconds"] > own["seconds"]


def counts(record: Record) -> bool:
    """Whether it is a rival: it reached the gap, or on a path half of the strengths did at its tightest tolerance."""
    almost = record["status"] == "short" and record["fraction"] is None
    return record["status"] == "ok" or bool(almost and record["median_gap"] <= record["goal"])


def ratios(records: Iterable[Record], competitor: str) -> list[tuple[Record, float]]:
    """Time of a competitor over that of groupowl, wherever both count in one run; a limit gives a lower bound."""
    found = []
    for row in by_problem(records).values():
        own, other = row.get("groupowl"), row.get(competitor)
        if not own or not other or own["run"] != other["run"] or own["status"] != "ok":
            continue
        if other["status"] == "ok" or slower(other, own):
            found.append((other, other["seconds"] / own["seconds"]))
    return found


def duels(records: Iterable[Record], names: Iterable[str] = PEERS) -> list[Duel]:
    """Every problem that groupowl and one of the peers solved in one run, or at which every one of them was stopped."""
    found = []
    for key, row in by_problem(records).items():
        own = row.get("groupowl")
        if not own or own["status"] != "ok":
            continue
        peers = [row[name] for name in names if name in row and row[name]["run"] == own["run"]]
        finished = [one for one in peers if counts(one)] or [one for one in peers if slower(one, own)]
        if finished:
            best = min(finished, key=lambda one: one["seconds"])
            large = own["size"][0] * own["size"][1] >= LARGE
            ratio, least = (best[name] / own[name] if name in own else np.nan for name in ("seconds", "least"))
            found.append(Duel(key, best["competitor"], best["seconds"], ratio, least, large))
    return found


def slower_duels(data: dict[str, Any]) -> list[Duel]:
    """Problems that the best peer solves faster, the worst first."""
    return sorted((duel for duel in duels(data["cells"].values()) if duel.ratio < 1.0), key=lambda duel: duel.ratio)


def all_targets(data: dict[str, Any]) -> list[Target]:
    """Every target with what the runs measured."""
    records = list(data["cells"].values())
    group = {letter: [one for one in records if one["group"] == letter] for letter in "abcdfs"}
    fits = duels(group["b"] + group["c"] + group["d"])
    return [
        *_everywhere(records),
        *_baselines([one for one in group["a"] if one["size"][1] >= 5000]),
        _faster("single fits of (b), (c), (d) with n d >= 1e6: faster than every peer", fits),
        _twice(fits),
        _faster("paths of (f) with n d >= 1e6: faster than every peer", duels(group["f"])),
        _cost(group["a"] + group["b"]),
        *_extras(data["extras"]),
        _spectra(group["s"]),
        *loss_targets(data),
        *group_targets(data),
        *small_targets(data),
    ]


def _everywhere(records: list[Record]) -> list[Target]:
    """What must hold for all groups together."""
    every, python = duels(records), [duel for duel in duels(records, PYTHON_PEERS) if duel.large]
    small = [duel for duel in every if not duel.large]
    return [
        _faster("everything with n d >= 1e6: faster than every peer", every),
        _median("the same: at least 3x faster than the best Python peer (median)", python, 3.0),
        _every("everything smaller: at least as fast as the best peer, R's glmnet included", small),
    ]


def loss_targets(data: dict[str, Any]) -> list[Target]:
    """One task with another loss than the squared one: a promise for large problems, figures for small ones."""
    group = {letter: [one for one in data["cells"].values() if one["group"] == letter] for letter in "lm"}
    small = duels(group["m"])
    values = [duel.ratio for duel in small] or [np.nan]
    span = f"median {np.median(values):.2f}x, {min(values):.2f}x to {max(values):.2f}x over {len(small)} problems"
    return [
        _faster("labels, counts and times of (l) with n d >= 1e6: faster than every peer", duels(group["l"])),
        Target("small ones (m): best peer / groupowl (reported only)", span if small else "not measured", None),
    ]


def group_targets(data: dict[str, Any]) -> list[Target]:
    """Groups of columns: faster than each peer where problems are large, and by how much."""
    found = duels([one for one in data["cells"].values() if one["group"] == "h"])
    text = "groups of columns with n d >= 1e6: at least as fast as the best peer (median; reported only)"
    values = [duel.ratio for duel in found if duel.large]
    span = f"{np.median(values):.2f}x, {min(values):.2f}x to {max(values):.2f}x" if values else "not measured"
    return [_faster("groups of columns with n d >= 1e6: faster than every peer", found), Target(text, span, None)]


def _baselines(records: list[Record]) -> list[Target]:
    found = []
    for competitor, factor in (("apgd", 50), ("apgd+paper", 10), ("growl-reg", 50)):
        pairs = ratios(records, competitor)
        stopped = [one["status"] == "limit" for one, _ in pairs]
        values = np.array([ratio for _, ratio in pairs] or [np.nan])
        median, best = np.median(values), np.median(np.where(stopped or [False], np.inf, values))
        text = f"(a) with d >= 5000: at least {factor}x faster than {competitor} (median)"
        bound = f"at least {median:.3g}x over {len(pairs)} problems, {sum(stopped)} of them stopped"
        open_question = not pairs or median < factor <= best  # the time given was too short to tell
        found.append(
            Target(text, bound if pairs else "not measured", None if open_question else bool(median >= factor))
        )
    return found


def _target(text: str, measured: str, passed: bool, known: bool) -> Target:
    return Target(text, measured, bool(passed)) if known else Target(text, "not measured", None)


def _faster(text: str, found: list[Duel]) -> Target:
    large = [duel for duel in found if duel.large]
    lost = [duel for duel in large if duel.ratio <= 1.0]
    measured = f"{len(large) - len(lost)} of {len(large)}"
    return _target(text, measured + _named(lost), not lost, bool(large))


def _named(lost: list[Duel]) -> str:
    """The worst of the problems that were lost, and how many more there are."""
    worst = sorted(lost, key=lambda duel: duel.ratio)[:NAMED]
    names = [f"{duel.key}: {duel.best} {1 / duel.ratio:.2f}x faster" for duel in worst]
    names += [f"and {len(lost) - NAMED} more"] if len(lost) > NAMED else []
    return f"; lost: {'; '.join(names)}" if lost else ""


def _twice(found: list[Duel]) -> Target:
    values = [duel.ratio for duel in found if duel.large]
    median = float(np.median(values)) if values else np.nan
    text = "the same problems: at least 2x faster than the best peer (median)"
    return _target(text, f"{median:.2f}x over {len(values)} problems", median >= 2.0, bool(values))


def _cost(records: list[Record]) -> Target:
    text = "cold fit at 500 x 10000 x 10 with fewer than 50 rows: at most 10 products X^T Y"
    mine = [one for one in records if one["competitor"] == "groupowl" and one["size"] == [500, 10_000, 10]]
    costs = [cost(one) for one in mine if one["n_rows"] < 50 and one["products"]]
    known = f"{min(costs):.1f} to {max(costs):.1f}, median {np.median(costs):.1f}" if costs else ""
    return _target(text, f"{known} over {len(costs)} problems", bool(costs) and max(costs) <= 10, bool(costs))


def cost(record: Record) -> float:
    """Time of a fit in products ``X^T Y`` that were timed beside it."""
    return record["seconds"] / float(np.median(record["products"])) if record["products"] else np.nan


def _extras(extras: dict[str, Any]) -> list[Target]:
    calls = extras.get("first_calls", {}).get("groupowl", {})
    ratio = calls["first"] / calls["second"] if "first" in calls else np.nan
    beyond = extras.get("import", {}).get("groupowl beyond it", np.nan)
    sparse = [one["share"] for one in extras.get("memory", []) if one.get("rows", 0) < 50]
    share = max(sparse, default=np.nan)
    first, known = "first call in a fresh process: at most 2x the second", bool(np.isfinite(ratio))
    return [
        _target(first, f"{ratio:.2f}x" if known else "", ratio <= 2.0, known),
        _target("import beyond scikit-learn: under 0.2 s", f"{beyond:.3f} s", beyond < 0.2, bool(np.isfinite(beyond))),
        _target(
            "peak memory of a fit at 500 x 10000 x 10 with fewer than 50 rows: under 1/4 of X",
            f"{share:.3f} of X",
            share < 0.25,
            share >= 0,
        ),
    ]


def _spectra(records: list[Record]) -> Target:
    mine = [one for one in records if one["competitor"] == "groupowl"]
    worst = max((one["seconds"] for one in mine), default=np.nan)
    reached = all(one["status"] == "ok" for one in mine)
    measured = f"slowest {worst:.3g} s" + ("" if reached else ", gap not reached everywhere")
    return _target("spectra to a relative gap of 1e-9: under one second", measured, reached and worst < 1.0, bool(mine))


# Small problems ---------------------------------------------------------------------------------------


def small_targets(data: dict[str, Any]) -> list[Target]:
    """What a run of small problems promises."""
    group = {letter: [one for one in data["cells"].values() if one["group"] == letter] for letter in "ijk"}
    fits, paths = duels(group["i"]), duels(group["k"], OLDER_PEERS)
    return [
        _median("small single fits (i): at least 3x faster than the best peer (median)", fits, 3.0),
        _every("the same: never slower than any peer", fits),
        _every(
            "small estimators (j): at least as fast as those of celer and scikit-learn",
            duels(group["j"]),
        ),
        _estimator_cost(group["i"], group["j"]),
        _every("paths (k): faster than R's glmnet in every cell (aim: 1.5x)", duels(group["k"], ["glmnet"])),
        _every("paths (k): faster than glmstar in every cell (aim: 1.5x)", duels(group["k"], ["glmstar"])),
        _median(f"paths (k): at least 3x faster than the best of {', '.join(OLDER_PEERS)} (median)", paths, 3.0),
        _first_call(data["extras"]),
    ]


def _median(text: str, found: list[Duel], factor: float) -> Target:
    values = [duel.ratio for duel in found] or [np.nan]
    least = np.median([duel.least_ratio for duel in found] or [np.nan])
    measured = f"{np.median(values):.2f}x over {len(found)} problems, {min(values):.2f}x to {max(values):.2f}x"
    return _target(f"{text}", f"{measured}; by shortest times {least:.2f}x", np.median(values) >= factor, bool(found))


def _every(text: str, found: list[Duel]) -> Target:
    lost = [duel for duel in found if duel.ratio < 1.0]
    values = [duel.ratio for duel in found] or [np.nan]
    measured = f"{len(found) - len(lost)} of {len(found)}, median {np.median(values):.2f}x, worst {min(values):.2f}x"
    return _target(text, measured + _named(lost), not lost, bool(found))


def _estimator_cost(fits: list[Record], estimators: list[Record]) -> Target:
    """What the estimator adds to ``solve`` on the same data; the intercept is part of it."""
    text = "GroupOWLRegressor.fit at 50 x 20 x 3: at most 0.25 ms longer than solve"
    own = [one for one in fits + estimators if one["competitor"] == "groupowl" and one["status"] == "ok"]
    times = {(one["group"], one["case"][3:], one["fraction"]): one["seconds"] for one in own}
    added = [
        1000 * (seconds - times["i", case, fraction])
        for (letter, case, fraction), seconds in times.items()
        if letter == "j" and case.startswith("50x20x3") and ("i", case, fraction) in times
    ]
    return _target(text, f"at most {max(added, default=np.nan):.3f} ms", max(added, default=1) <= 0.25, bool(added))


def _first_call(extras: dict[str, Any]) -> Target:
    calls = extras.get("small_calls", {}).get("groupowl", {})
    later = 1000 * (calls["first"] - calls["second"]) if "first" in calls else np.nan
    text = "first call of a small fit in a fresh process: at most 30 ms slower than the second"
    return _target(text, f"{later:.1f} ms", later <= 30.0, bool(np.isfinite(later)))


# Another source tree ----------------------------------------------------------------------------------


def tree_ratios(data: dict[str, Any]) -> dict[str, dict[str, float]]:
    """Time of the other source tree over that of this one, by group and problem; measured again, the median counts."""
    found: dict[str, dict[str, float]] = {}
    for record, ratio in ratios(data["cells"].values(), "before"):
        again = data.get("again", {}).get(record["key"])
        found.setdefault(record["group"], {})[record["key"]] = float(np.median(again)) if again else ratio
    return found


def tree_targets(data: dict[str, Any]) -> list[Target]:
    """Nothing is slower than in the other source tree."""
    groups = tree_ratios(data)
    medians = {letter: float(np.median(list(part.values()))) for letter, part in groups.items()}
    below = {key: ratio for part in groups.values() for key, ratio in part.items() if ratio < SLOWER}
    search = list(groups.get("v", {}).values())
    imports = {name: one["groupowl beyond it"] for name, one in data["extras"].get("imports", {}).items()}
    known = len(imports) == 2
    more = imports["groupowl"] - imports["before"] if known else np.nan
    return [
        _target(
            "median ratio at least 1 in every group",
            ", ".join(f"({letter}) {ratio:.2f}x" for letter, ratio in sorted(medians.items())),
            min(medians.values(), default=0.0) >= 1.0,
            bool(medians),
        ),
        _target(
            f"no problem below {SLOWER}x, measured again three times",
            "; ".join(f"{key}: {ratio:.2f}x" for key, ratio in below.items()) or "none",
            not below,
            bool(groups),
        ),
        _target(
            "cross-validation at 100 x 500 x 3, 100 alphas, 5 folds: at least 5x faster",
            ", ".join(f"{ratio:.2f}x" for ratio in search),
            min(search, default=0.0) >= 5.0,
            bool(search),
        ),
        _target(
            "import: no slower, but for 5 ms of noise",
            f"{1000 * more:+.1f} ms of {1000 * imports.get('before', np.nan):.1f} ms",
            more <= 5e-3,
            known,
        ),
    ]
