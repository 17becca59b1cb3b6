"""Runs of the study, kept one by one in a file, so that a study that was stopped goes on."""

from __future__ import annotations

import json
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import groupowl as go
from groupowl.model_selection.search import choose

from .candidates import CANDIDATES
from .data import Absent, Data, Source
from .measures import deviance, n_tied, null_predictor

#: Alphas of each path, and the smallest relative to the largest; rules that choose one of them.
N_ALPHAS, EPS = 25, 0.02
RULES = ("min", "1se")


class Log:
    """The runs in a folder."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.file = folder / "runs.jsonl"
        text = self.file.read_text(encoding="utf-8") if self.file.exists() else ""
        whole = text[: text.rfind("\n") + 1]  # a line that was cut off is written again
        self.file.write_text(whole, encoding="utf-8")
        self.runs: list[dict[str, Any]] = [json.loads(line) for line in whole.splitlines()]
        self._done = {_key(run) for run in self.runs}

    def has(self, run: dict[str, Any]) -> bool:
        return _key(run) in self._done

    def add(self, run: dict[str, Any]) -> None:
        with self.file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(run) + "\n")
        self.runs.append(run)
        self._done.add(_key(run))


def _key(run: dict[str, Any]) -> tuple[str, int, str]:
    return run["data"], run["split"], run["weights"]


def load_all(sources: list[Source]) -> tuple[dict[str, tuple[Source, Data]], list[str]]:
    """Data sets that are there, and a line for each of those that are not."""
    found, absent = {}, []
    for source in sources:
        try:
            found[source.name] = source, source.load()
        except Absent as reason:
            absent.append(f"{source.name} is left out: {reason}")
    return found, absent


def run_all(data_sets: dict[str, tuple[Source, Data]], n_splits: int, log: Log, deadline: float) -> bool:
    """All candidates on all data sets, a split at a time; whether nothing is left when the time is over."""
    for number in range(n_splits):
        for name, (_, data) in data_sets.items():
            for weights in CANDIDATES:
                about = {"data": name, "split": number, "weights": weights}
                if log.has(about):
                    continue
                if time.process_time() > deadline:
                    return False
                log.add(about | run_one(data, number, weights))
        print(f"split {number + 1} of {n_splits}: {time.process_time():.0f} s of processor time", flush=True)
    return True


def run_one(data: Data, number: int, weights: str) -> dict[str, Any]:
    """Fit a candidate to the training samples of a split; errors are those of its test samples."""
    train, test = data.split(number)
    estimator = go.GroupOWLClassifierCV if data.is_classified else go.GroupOWLRegressorCV
    model = estimator(weights=CANDIDATES[weights], standardize=True, alphas=N_ALPHAS, eps=EPS)
    started = time.process_time()  # other work on the machine does not count
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=UserWarning)  # classes with fewer samples than folds
        model.fit(data.X[train], data.y[train])
    seconds = time.process_time() - started
    is_labeled = data.is_classified and data.y.ndim == 2
    kind = {"is_labeled": is_labeled, "classes": np.unique(data.y) if data.is_classified and not is_labeled else None}
    constant = np.tile(null_predictor(data.y[train], **kind), (len(test), 1))
    run: dict[str, Any] = {"seconds": seconds, "null": deviance(constant, data.y[test], **kind)}
    for rule in RULES:
        at = choose(rule, model.mean_score_path_, model.std_error_path_)
        point = model.path_[at]
        run[rule] = {
            "score": float(model.mean_score_path_[at]),
            "error": deviance(predictor(point, data.X[test]), data.y[test], **kind),
            "selected": point.support.tolist(),
            "tied": n_tied(point.clusters),
        }
    return run


def predictor(point: Any, X: Any) -> Any:
    """The linear predictor of a point of a path, a column for each target or class; one for two classes."""
    return X[:, point.support] @ point.rows + point.intercept
