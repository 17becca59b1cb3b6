"""A small folder of data sets in the format of the shared ones, and a worker without a process."""

from __future__ import annotations

import json
import threading

import numpy as np
import pytest
import scipy.sparse as sp

from groupowl_harness.judge import Verdict
from groupowl_paper.data import DATASETS
from groupowl_paper.reproduce import Campaign, Options
from groupowl_paper.reproduce.histories import RunHistory
from groupowl_paper.reproduce.records import RunRecord
from groupowl_paper.reproduce.worker import Server

#: Steps that suit the small data sets; the paper's would take minutes.
STEPS = (1.0, 1e-3)


def small_options(**changes):
    """Everything, but short: two trials and a loose gap."""
    defaults = {"cap": 30.0, "step_cap": 30.0, "trials": 2, "minutes": 5.0, "study": False, "tol": 1e-3, "steps": STEPS}
    return Options(**{**defaults, "reference_tol": 1e-5, **changes})


def write_folder(folder, names=("plantgo", "cmufaces", "bibtex", "protein_val"), *, easy=False):
    """Files under the names of the real ones; PlantGO is the paper's, the others are stand-ins."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        make = _easy if easy else MAKERS[name]
        arrays = make(np.random.default_rng(sum(map(ord, name))))
        np.savez(folder / f"{name}.npz", **arrays)
    return folder


def _sparse(X):
    X = sp.csr_array(X)
    return {"data": X.data, "indices": X.indices, "indptr": X.indptr, "shape": np.array(X.shape)}


def _regression(rng, n, d, n_tasks):
    X = (rng.random((n, d)) < 0.3).astype(float)
    X[:, -1] = 0.0  # a column of zeros, as in the real sets
    scores = X[:, :4] @ rng.standard_normal((4, n_tasks)) + 0.3 * rng.standard_normal((n, n_tasks))
    return {**_sparse(X), "Y": (scores > 0).astype(np.uint8)}


def _easy(rng):
    """Orthogonal columns of unequal length: every solver is done after a few steps, however tight the gap."""
    X = np.vstack([np.diag(rng.uniform(0.3, 1.0, 12)) for _ in range(5)])
    return {**_sparse(X), "Y": (rng.random((60, 12)) < 0.3).astype(np.uint8)}


def _classes(rng, X, n_classes):
    scores = 3.0 * X[:, :n_classes] @ rng.standard_normal((n_classes, n_classes))
    return np.argmax(scores + 0.5 * rng.standard_normal((len(X), n_classes)), axis=1)


def _faces(rng):
    X = rng.integers(0, 154, (60, 30)).astype(float)
    return {"X": X, "y": _classes(rng, X / 153 - 0.5, 4)}


def _protein(rng):
    X = rng.random((200, 30)) * (rng.random((200, 30)) < 0.4)
    return {**_sparse(X), "y": _classes(rng, X, 3)}


MAKERS = {
    "plantgo": lambda rng: _regression(rng, 400, 60, 12),
    "cmufaces": _faces,
    "bibtex": lambda rng: _regression(rng, 400, 40, 22),
    "protein_val": _protein,
}


class InlineWorker:
    """Answers in this process; everything passes through JSON as it would through a pipe."""

    # Threads take turns: tracemalloc must not be switched off while another thread allocates.
    turn = threading.RLock()

    def __init__(self):
        self.server = Server()
        self.stopped = 0

    def ask(self, request, limit):
        with self.turn:
            return json.loads(json.dumps(self.server.answer(json.loads(json.dumps(request)))))

    def stop(self):
        self.stopped += 1


class CannedWorker:
    """Answers at once, with numbers that depend on the request alone: for tests of everything but the numbers."""

    def ask(self, request, limit):
        kind, name = request["do"], request.get("dataset")
        salt = 1.0 + sum(map(ord, json.dumps(request, sort_keys=True))) % 97 / 100.0
        if kind == "data":
            entry = DATASETS[name]
            sizes = {"n_samples": 50, "n_features": 20, "n_tasks": 3, "zero_columns": 0, "strength": 0.1, "notes": []}
            words = ("name", "loss", "solver", "tau", "preprocessing", "stands_in_for")
            return {**sizes, **{word: getattr(entry, word) for word in words}}
        if kind == "pilot":
            return {"step": 1e-3, "tried": [{"step": 1e-3, "descends": True, "lowered": 0.1, "snapshots": 3}]}
        if kind == "memory":
            return {"peak": 2e6, "held": 1e6, "status": "converged"}
        if kind == "variant":
            return {"status": "converged", "strength": 0.1, "selected": 4, "passes": 3.0, "gap": 1e-5, "cpu": salt}
        if kind == "study":
            return Server().answer({"do": "study", "quick": request["quick"]})
        history = RunHistory([0, 10], [2.0, 4.0], [0.1, salt], [0.1, salt], [0.5, 5e-9], [20, 6])
        verdict = Verdict(10.0, 10.0 - 1e-8, 20.0)
        first = {"iteration": 0, "passes": 2.0, "gap": 0.5, "cpu": 0.1}
        return RunRecord(
            "converged", cpu=salt, wall=salt, iterations=10, passes=4.0, gap=5e-9, history=history,
            first_removal=first, selected=4, alive=6, rows=[0], values=[[salt]], verdict=verdict,
        ).to_dict()  # fmt: skip

    def stop(self):
        """Nothing runs."""


def assert_same(one, other, place="results"):
    """Equal but for rounding, which may differ between processes."""
    if isinstance(one, dict):
        assert list(one) == list(other), place
        for key in one:
            assert_same(one[key], other[key], f"{place}.{key}")
    elif isinstance(one, list):
        assert len(one) == len(other), place
        for i, (left, right) in enumerate(zip(one, other, strict=True)):
            assert_same(left, right, f"{place}[{i}]")
    elif isinstance(one, float):
        assert other == pytest.approx(one, rel=1e-6, abs=1e-12), place
    else:
        assert one == other, place


def campaign(data, out, options=None, **settings):
    return Campaign(data, out, options or small_options(), **{"make_worker": InlineWorker, **settings})
