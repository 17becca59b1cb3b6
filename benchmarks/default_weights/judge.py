"""From runs to records, one for each data set, candidate and rule, and from these to the decision."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import numpy as np

from .candidates import CANDIDATES, CHOICES, DEFAULT
from .data import Data, Source
from .measures import stability, support_f1, togetherness, whole_groups
from .run import RULES

#: Points of explained deviance that a candidate may be behind the best, if that is more than two standard errors; and
#: that it may be behind in any case.
SMALL, LARGE = 0.5, 2.0
BLOCKS = ("real", "known groups")
#: Forms of togetherness: the first decides.
FORMS: dict[str, dict[str, bool]] = {
    "together": {},
    "together, by feature": {"by_feature": True},
    "together, unscaled": {"is_scaled": False},
    "together, by feature, unscaled": {"by_feature": True, "is_scaled": False},
}


def collect(data_sets: dict[str, tuple[Source, Data]], runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Records of all candidates and choices on the splits that every candidate was run on."""
    by_data: dict[str, dict[int, dict[str, Any]]] = defaultdict(lambda: defaultdict(dict))
    for run in runs:
        by_data[run["data"]][run["split"]][run["weights"]] = run
    records = []
    for name, (source, data) in data_sets.items():
        splits = [by for _, by in sorted(by_data[name].items()) if set(CANDIDATES) <= set(by)]
        if len(splits) < 2:
            continue
        for weights in (*CANDIDATES, *CHOICES):
            chosen = [_chosen(by, weights) for by in splits]
            for rule in RULES:
                about = {"data": name, "block": source.block, "weights": weights, "rule": rule}
                records.append(about | _record(data, chosen, rule))
    return records


def _chosen(by: dict[str, Any], weights: str) -> dict[str, Any]:
    """The run of a candidate; that of the best score of cross-validation, and the time of all, for a choice."""
    if weights in CANDIDATES:
        run: dict[str, Any] = by[weights]
        return run
    listed = [by[name] for name in CHOICES[weights]]
    best: dict[str, Any] = max(listed, key=lambda run: run["min"]["score"])
    return best | {"seconds": sum(run["seconds"] for run in listed)}


def _record(data: Data, runs: list[dict[str, Any]], rule: str) -> dict[str, Any]:
    d = data.X.shape[1]
    selections = np.zeros((len(runs), d), dtype=bool)
    for mask, run in zip(selections, runs, strict=True):
        mask[run[rule]["selected"]] = True
    has_groups = bool(np.bincount(data.groups).max() >= 2)
    record = {
        "explained": [round(1.0 - run[rule]["error"] / run["null"], 5) for run in runs],
        "stability": stability(selections),
        **{name: _together(data, selections, **form) if has_groups else None for name, form in FORMS.items()},
        "whole": _mean(whole_groups(mask, data.groups) for mask in selections) if has_groups else None,
        "f1": None if data.effects is None else _mean(support_f1(mask, data.effects) for mask in selections),
        "selected": float(selections.sum(axis=1).mean()),
        "tied": _mean(run[rule]["tied"] for run in runs),
        "seconds": _mean(run["seconds"] for run in runs),
    }
    return {name: round(value, 4) if isinstance(value, float) else value for name, value in record.items()}


def _together(data: Data, selections: Any, **form: bool) -> float | None:
    return _mean(togetherness(mask, data.groups, **form) for mask in selections)


def _mean(values: Any) -> float | None:
    """Of those that are defined."""
    found = [value for value in values if not np.isnan(value)]
    return float(np.mean(found)) if found else None


# The decision ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Estimate:
    """A mean over data sets with its standard error."""

    mean: float
    error: float

    @classmethod
    def of(cls, values: Any) -> Estimate:
        values = np.asarray(values, dtype=float)
        return cls(float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values))))


class Results:
    """Records by block, rule, candidate and data set; ``together`` names the measure of togetherness that decides."""

    def __init__(self, records: list[dict[str, Any]], together: str = "together") -> None:
        self.together = together
        self.records = {(r["data"], r["weights"], r["rule"]): r for r in records}
        self.names = {block: list(dict.fromkeys(r["data"] for r in records if r["block"] == block)) for block in BLOCKS}

    def values(self, block: str, weights: str, rule: str, measure: str) -> Any:
        """A figure of each data set of a block; NaN where there is none."""
        found = [self.records[name, weights, rule][measure] for name in self.names[block]]
        if measure == "explained":
            return np.array([100.0 * np.mean(values) for values in found])
        return np.array([np.nan if value is None else value for value in found], dtype=float)

    def best(self, block: str, rule: str) -> str:
        """The candidate with the largest mean explained deviance."""
        return max(CANDIDATES, key=lambda name: float(self.values(block, name, rule, "explained").mean()))

    def behind(self, block: str, weights: str, rule: str) -> Estimate:
        """Points of explained deviance that a candidate is behind the best one."""
        best = self.values(block, self.best(block, rule), rule, "explained")
        return Estimate.of(best - self.values(block, weights, rule, "explained"))

    def is_out(self, weights: str) -> bool:
        """Step 1 of the rule."""
        found = [self.behind(block, weights, rule) for block in BLOCKS for rule in RULES]
        return any(item.mean > LARGE or (item.mean > SMALL and item.mean > 2.0 * item.error) for item in found)

    def merits(self, weights: str, block: str) -> Any:
        """Step 2, for each data set of a block: the mean of stability and togetherness, over both rules."""
        figures = []
        for rule in RULES:
            pair = [self.values(block, weights, rule, measure) for measure in ("stability", self.together)]
            figures.append(np.nanmean(pair, axis=0))
        return np.mean(figures, axis=0)

    def merit(self, weights: str, less: str | None = None) -> Estimate:
        """The mean of both blocks, or its paired difference from another candidate."""
        parts = []
        for block in BLOCKS:
            values = self.merits(weights, block)
            parts.append(Estimate.of(values if less is None else values - self.merits(less, block)))
        errors = [part.error for part in parts]
        return Estimate(float(np.mean([part.mean for part in parts])), float(np.hypot(*errors)) / len(parts))

    def n_selected(self, weights: str) -> float:
        """Geometric mean over real data sets and rules; one more than selected, as that may be none."""
        found = [np.log1p(self.values("real", weights, rule, "selected")) for rule in RULES]
        return float(np.expm1(np.mean(found)))

    def decision(self) -> Decision:
        """What the rule says."""
        admitted = [name for name in CANDIDATES if not self.is_out(name)]
        best = max(admitted, key=lambda name: self.merit(name).mean)
        tied = [name for name in admitted if name == best or _ties(self.merit(best, less=name))]
        winner = DEFAULT if DEFAULT in tied else min(tied, key=self.n_selected)
        return Decision(admitted, best, tied, winner)


def _ties(difference: Estimate) -> bool:
    return difference.mean <= 2.0 * difference.error


@dataclass(frozen=True)
class Decision:
    """What the three steps leave: candidates that predict well enough, the best of them, those that tie, the winner."""

    admitted: list[str]
    best: str
    tied: list[str]
    winner: str
