"""Stochastic proximal gradient (SPGD, Algorithm 2): against APGD, with and without screening, and its step.

    python benchmarks/stochastic.py [--data DIR] [--repeats 3] [--seed 0] [--threads N] [--quick]

Three tables. (a) Many samples, few features: passes over the data and seconds of SPGD and of APGD with gradient
restart, to the same relative gap. (b) Problems whose solutions have at most a tenth of their rows: SPGD with
screening and without. (c) With ``--data DIR``, where DIR holds mnist.npz (arrays X (60000, 780), values 0 to 255, and
y, the digits): the automatic step against fixed ones; a run that takes longer than ``--cap`` seconds is stopped.

In (a) and (b) every setting runs ``--repeats`` times, in random order; times are medians. In (c) it runs once.
All weights are OSCAR's of ratio 1.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

import groupowl as go

SOLVERS = {"APGD(restart='gradient')": go.APGD(restart="gradient"), "SPGD()": go.SPGD()}
FRACTIONS = (0.2, 0.05)
SCREENINGS = ("none", "paper", "safe")
STEPS = ("auto", 1e-8, 1e-7, 1e-6, 3e-6, 1e-5)

Key = TypeVar("Key", bound=Hashable)
Runs = dict[Key, list[go.SolveResult]]


@dataclass(frozen=True)
class SparseCase:
    """A problem at ``fraction`` of lam_max where few rows are not zero."""

    loss: str
    n_samples: int
    n_features: int
    n_tasks: int
    fraction: float
    tol: float

    def __str__(self) -> str:
        return f"{self.loss} {self.n_samples} x {self.n_features} x {self.n_tasks} at {self.fraction:g}, {self.tol:g}"


SPARSE_CASES = (
    SparseCase("multinomial", 20_000, 2000, 5, 0.2, 1e-7),
    SparseCase("squared", 20_000, 2000, 5, 0.2, 1e-7),
    SparseCase("squared", 5000, 5000, 5, 0.1, 1e-7),
)
QUICK_SPARSE_CASES = (SparseCase("multinomial", 4000, 400, 5, 0.2, 1e-7),)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=None, metavar="DIR", help="directory of mnist.npz, for (c)")
    parser.add_argument("--tables", default="abc", metavar="ABC", help="tables to make (default: abc)")
    parser.add_argument("--repeats", type=int, default=3, metavar="N", help="runs per setting of (a), (b) (default: 3)")
    parser.add_argument(
        "--cap", type=float, default=90.0, metavar="S", help="most seconds of a run of (c) (default: 90)"
    )
    parser.add_argument("--seed", type=int, default=0, help="of data, batches and the order of runs (default: 0)")
    parser.add_argument("--threads", type=int, default=None, metavar="N", help="limit of BLAS (default: none)")
    parser.add_argument("--quick", action="store_true", help="smaller data, one run per setting")
    arguments = parser.parse_args()
    if arguments.repeats < 1:
        parser.error("--repeats must be at least 1")
    if not set(arguments.tables) <= set("abc"):
        parser.error("--tables takes letters out of abc")
    return arguments


def run_in_turns(settings: list[Key], solve: Callable[[Key], go.SolveResult], repeats: int, seed: int) -> Runs[Key]:
    """Results of every setting, from runs in random order."""
    results: Runs[Key] = {setting: [] for setting in settings}
    for i in np.random.default_rng(seed).permutation(np.repeat(np.arange(len(settings)), repeats)):
        results[settings[i]].append(solve(settings[i]))
    return results


def median_seconds(runs: list[go.SolveResult]) -> float:
    return float(np.median([run.seconds for run in runs]))


def relative_difference(results: list[list[go.SolveResult]]) -> float:
    """Largest relative difference of objectives between any two answers to one problem."""
    objectives = [run.primal for runs in results for run in runs]
    return (max(objectives) - min(objectives)) / min(objectives)


# (a) --------------------------------------------------------------------------------------------------------


def compare_solvers(n_samples: int, repeats: int, seed: int) -> None:
    data = go.datasets.make_correlated_groups(n_samples, 200, 5, task="classification", random_state=seed)
    weights = go.weights.oscar(200)
    strongest = go.lam_max(data.X, data.Y, weights, loss="multinomial")

    def solve(setting: tuple[float, str]) -> go.SolveResult:
        fraction, name = setting
        lam = fraction * strongest * weights
        settings = {"loss": "multinomial", "solver": SOLVERS[name], "tol": 1e-5, "random_state": seed}
        return go.solve(data.X, data.Y, lam, **settings)

    solve((FRACTIONS[0], "SPGD()"))  # the first call is apart
    results = run_in_turns([(f, name) for f in FRACTIONS for name in SOLVERS], solve, repeats, seed)
    print(f"(a) multinomial, {n_samples} x 200, 5 classes, relative gap 1e-5")
    print(
        f"{'lam/lam_max':>11} {'solver':>24} {'seconds':>8} {'passes':>7} {'iterations':>10} "
        f"{'selected':>8} {'objective':>15} {'status':>10}"
    )
    for (fraction, name), runs in results.items():
        run = runs[0]
        print(
            f"{fraction:11.2f} {name:>24} {median_seconds(runs):8.2f} {run.n_passes:7.1f} {run.n_iter:10d} "
            f"{len(run.support):8d} {run.primal:15.6f} {run.status:>10}"
        )
    for fraction in FRACTIONS:
        apgd, spgd = (results[fraction, name] for name in SOLVERS)
        print(
            f"at {fraction:g} SPGD takes {spgd[0].n_passes / apgd[0].n_passes:.2f} of the passes and "
            f"{median_seconds(spgd) / median_seconds(apgd):.2f} of the time of APGD; "
            f"relative difference of objectives {relative_difference([apgd, spgd]):.1e}"
        )


# (b) --------------------------------------------------------------------------------------------------------


def compare_screening(case: SparseCase, repeats: int, seed: int) -> None:
    data = go.datasets.make_correlated_groups(
        case.n_samples,
        case.n_features,
        case.n_tasks,
        correlation=0.9,
        task="regression" if case.loss == "squared" else "classification",
        random_state=seed,
    )
    weights = go.weights.oscar(case.n_features)
    lam = case.fraction * go.lam_max(data.X, data.Y, weights, loss=case.loss) * weights

    def solve(screening: str) -> go.SolveResult:
        settings = {"loss": case.loss, "solver": go.SPGD(), "tol": case.tol, "random_state": seed}
        return go.solve(data.X, data.Y, lam, screening=screening, **settings)

    results = run_in_turns(list(SCREENINGS), solve, repeats, seed)
    for screening, runs in results.items():
        run, without = runs[0], results["none"]
        print(
            f"{case!s:<46} {screening:>9} {median_seconds(runs):8.2f} {run.n_passes:7.1f} {run.n_iter:6d} "
            f"{len(run.active):9d} {len(run.support):8d} {median_seconds(runs) / median_seconds(without):9.2f} "
            f"{run.n_passes / without[0].n_passes:11.2f} {relative_difference([runs, without]):11.1e}",
            flush=True,
        )


def print_screening_table(cases: tuple[SparseCase, ...], repeats: int, seed: int) -> None:
    print("(b) SPGD with and without screening")
    print(
        f"{'problem at lam/lam_max, tol':<46} {'screening':>9} {'seconds':>8} {'passes':>7} {'epochs':>6} "
        f"{'rows kept':>9} {'selected':>8} {'time/none':>9} {'passes/none':>11} {'rel. diff.':>11}"
    )
    for case in cases:
        compare_screening(case, repeats, seed)


# (c) --------------------------------------------------------------------------------------------------------


def compare_steps(directory: Path, n_samples: int, cap: float, seed: int) -> None:
    with np.load(directory / "mnist.npz") as arrays:
        X, labels = arrays["X"][:n_samples] / 255.0, arrays["y"][:n_samples].astype(int)
    Y = np.eye(10)[labels]
    weights = go.weights.oscar(X.shape[1])
    lam = 0.2 * go.lam_max(X, Y, weights, loss="multinomial") * weights
    print(f"(c) MNIST / 255, {X.shape[0]} x {X.shape[1]}, 10 classes, 0.2 of lam_max, relative gap 1e-5, cap {cap:g} s")
    print(f"{'step':>6} {'seconds':>8} {'passes':>7} {'epochs':>6} {'objective':>15} {'rel. gap':>9} {'status':>10}")
    results = {}
    for step in STEPS:
        results[step] = result = go.solve(
            X,
            Y,
            lam,
            loss="multinomial",
            solver=go.SPGD(step=step),
            tol=1e-5,
            random_state=seed,
            callback=lambda progress: progress.seconds > cap,
        )
        print(
            f"{step!s:>6} {result.seconds:8.1f} {result.n_passes:7.1f} {result.n_iter:6d} {result.primal:15.6f} "
            f"{result.gap / (len(Y) * np.log(10)):9.1e} {result.status:>10}",
            flush=True,
        )
    print_best_step({step: result for step, result in results.items() if result.converged})


def print_best_step(converged: dict[str | float, go.SolveResult]) -> None:
    fixed = {step: result.seconds for step, result in converged.items() if step != "auto"}
    if "auto" not in converged or not fixed:
        print("no ratio: the automatic step or every fixed one did not converge within the cap")
        return
    best = min(fixed, key=fixed.__getitem__)
    print(f"best fixed step {best:g}: auto takes {converged['auto'].seconds / fixed[best]:.2f} of its time")


def main() -> None:
    arguments = parse_arguments()
    warnings.simplefilter("ignore", ConvergenceWarning)  # fixed steps may diverge; the tables say so
    quick, seed = arguments.quick, arguments.seed
    repeats = 1 if quick else arguments.repeats
    print(f"median of {repeats} run(s), seed {seed}, BLAS threads: {arguments.threads or 'as installed'}")
    with threadpool_limits(arguments.threads):
        if "a" in arguments.tables:
            compare_solvers(4000 if quick else 20_000, repeats, seed)
        if "b" in arguments.tables:
            print_screening_table(QUICK_SPARSE_CASES if quick else SPARSE_CASES, repeats, seed)
        if "c" in arguments.tables and arguments.data is not None:
            compare_steps(arguments.data, 6000 if quick else 60_000, arguments.cap, seed)
        elif "c" in arguments.tables:
            print("(c) skipped: give the directory of mnist.npz as --data DIR")


if __name__ == "__main__":
    main()
