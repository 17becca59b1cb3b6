"""What cross-validation costs, in units of one path on the same data.

(a) 5 folds with 100 alphas against one path, at equal tolerance and with the default tolerance of folds.
(b) Many more samples than features: folds by subtraction of statistics against folds that read the data.

Run as ``python benchmarks/cross_validation.py``; ``--quick`` for small data. Ratios are of times within one run, the
first call apart, the median of several runs in turns.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from unittest import mock

import numpy as np
from threadpoolctl import threadpool_limits

import groupowl as go
from groupowl.designs.base import PassCounter
from groupowl.estimators import GroupOWLRegressorCV
from groupowl.path import group_owl_path

N_ALPHAS = 100
#: Most that cross-validation may take, in units of a path: at equal tolerance, and by default.
EQUAL_TARGET, DEFAULT_TARGET = 4.0, 2.5


@dataclass(frozen=True)
class Case:
    """Size of a regression."""

    n_samples: int
    n_features: int
    n_tasks: int

    def data(self, seed: int) -> tuple[Any, Any]:
        """X and Y with correlated groups of columns."""
        made = go.datasets.make_correlated_groups(self.n_samples, self.n_features, self.n_tasks, random_state=seed)
        return made.X, made.Y

    def __str__(self) -> str:
        return f"{self.n_samples} x {self.n_features} x {self.n_tasks}"


PATH_CASES, QUICK_PATH_CASES = (Case(2000, 500, 10), Case(400, 2000, 5)), (Case(300, 60, 3),)
TALL_CASES, QUICK_TALL_CASES = (Case(20_000, 200, 5), Case(100_000, 100, 3)), (Case(3000, 30, 2),)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3, metavar="N", help="runs per setting (default: 3)")
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="n_jobs of cross-validation (default: 2)")
    parser.add_argument("--threads", type=int, default=1, metavar="N", help="limit of BLAS here (default: 1)")
    parser.add_argument("--seed", type=int, default=0, help="of the data (default: 0)")
    parser.add_argument("--quick", action="store_true", help="small data, one run per setting")
    arguments = parser.parse_args()
    if arguments.repeats < 1:
        parser.error("--repeats must be at least 1")
    return arguments


def run_in_turns(calls: dict[str, Callable[[], Any]], repeats: int) -> dict[str, tuple[float, Any]]:
    """Median seconds and last answer of each call, the calls taking turns."""
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    answers = {}
    for _ in range(repeats):
        for name, call in calls.items():
            started = time.perf_counter()
            answers[name] = call()
            seconds[name].append(time.perf_counter() - started)
    return {name: (float(np.median(seconds[name])), answers[name]) for name in calls}


# (a) --------------------------------------------------------------------------------------------------------


def compare_with_path(case: Case, repeats: int, jobs: int, seed: int) -> None:
    X, Y = case.data(seed)
    model = GroupOWLRegressorCV(alphas=N_ALPHAS, n_jobs=jobs)
    GroupOWLRegressorCV(alphas=2, n_jobs=jobs).fit(X[:50], Y[:50])  # starts the workers
    calls = {
        "one path, tol 1e-6": lambda: group_owl_path(X, Y, alphas=N_ALPHAS),
        "folds at 1e-4": lambda: model.fit(X, Y),
        "one path, tol 1e-4": lambda: group_owl_path(X, Y, alphas=N_ALPHAS, tol=1e-4),
        "all at 1e-4": lambda: GroupOWLRegressorCV(alphas=N_ALPHAS, n_jobs=jobs, tol=1e-4).fit(X, Y),
    }
    results = run_in_turns(calls, repeats)
    print(f"{case!s}, {jobs} jobs")
    for name, (seconds, _) in results.items():
        print(f"  {name:<20} {seconds:8.2f} s")
    for cross, path, target in (
        ("folds at 1e-4", "one path, tol 1e-6", DEFAULT_TARGET),
        ("all at 1e-4", "one path, tol 1e-4", EQUAL_TARGET),
    ):
        ratio = results[cross][0] / results[path][0]
        verdict = "within" if ratio <= target else "ABOVE"
        print(f"  {cross} takes {ratio:.2f} times {path}: {verdict} the target of {target:g}", flush=True)


# (b) --------------------------------------------------------------------------------------------------------


def passes_of(call: Callable[[], Any]) -> tuple[Any, float]:
    """Answer and passes over all data, products and Gram matrices, by share of the rows; not those for statistics."""
    counters: list[PassCounter] = []
    original = PassCounter.__init__

    def remembering(self: PassCounter, total: float = 0.0) -> None:
        original(self, total)
        counters.append(self)

    with mock.patch.object(PassCounter, "__init__", remembering):
        answer = call()
    return answer, sum(counter.total for counter in counters)


def compare_folds(case: Case, repeats: int, seed: int) -> None:
    """Folds by subtraction against folds that are compressed one by one, and against folds that use products."""
    X, Y = case.data(seed)
    plain = "groupowl.model_selection.folds.statistics_pay"

    def fit(solver: Any, by_subtraction: bool) -> GroupOWLRegressorCV:
        model = GroupOWLRegressorCV(alphas=N_ALPHAS, solver=solver)
        if by_subtraction:
            return model.fit(X, Y)
        with mock.patch(plain, return_value=False):
            return model.fit(X, Y)

    calls = {
        "by subtraction": lambda: fit("auto", True),
        "a Gram matrix each": lambda: fit("auto", False),
        "products with X": lambda: fit(go.WorkingSet(compress=False), False),
    }
    passes = {name: passes_of(call)[1] for name, call in calls.items()}  # the first call, apart
    passes["by subtraction"] += 1.0  # for the statistics
    results = run_in_turns(calls, repeats)
    print(f"{case!s}, one job: {case.n_samples / case.n_features:g} samples per feature")
    fastest, reference = results["by subtraction"]
    for name, (seconds, answer) in results.items():
        scores = np.abs(answer.score_path_ - reference.score_path_).max() / np.abs(reference.score_path_).max()
        print(
            f"  {name:<20} {seconds:8.2f} s {seconds / fastest:6.2f} x {passes[name]:9.1f} passes; "
            f"alpha {answer.alpha_:.6g}, scores differ by {scores:.1e}, "
            f"coefficients by {np.abs(answer.coef_ - reference.coef_).max():.1e}",
            flush=True,
        )


def main() -> None:
    arguments = parse_arguments()
    quick = arguments.quick
    repeats = 1 if quick else arguments.repeats
    print(f"median of {repeats} run(s), seed {arguments.seed}, BLAS threads {arguments.threads}")
    with threadpool_limits(arguments.threads):
        print("(a) cross-validation against one path")
        for case in QUICK_PATH_CASES if quick else PATH_CASES:
            compare_with_path(case, repeats, arguments.jobs, arguments.seed)
        print("(b) folds by subtraction")
        for case in QUICK_TALL_CASES if quick else TALL_CASES:
            compare_folds(case, repeats, arguments.seed)


if __name__ == "__main__":
    main()
