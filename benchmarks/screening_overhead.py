"""What screening costs where it saves nothing: problems and steps in which no row can be removed.

    python benchmarks/screening_overhead.py [--repeats 15] [--seed 0] [--threads N] [--quick]

Weak penalties keep solutions dense (or the gap too wide to prove anything). Each case takes a fixed number of
steps with and without screening, so that both do the same work. The rules take turns within a round, in random
order; the ratio is the median over rounds of the time with screening against the time without in the same round.
The script checks that every row is kept, and ends with the worst ratio.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from dataclasses import dataclass

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

import groupowl as go

SCREENINGS = ("none", "paper", "safe")
TARGET = 1.10


@dataclass(frozen=True)
class Case:
    """A problem at ``fraction`` of lam_max, and the steps to take."""

    loss: str
    n_samples: int
    n_features: int
    n_tasks: int
    fraction: float
    steps: int

    def __str__(self) -> str:
        shape = f"{self.n_samples} x {self.n_features} x {self.n_tasks}"
        return f"{self.loss:<12}{shape:>16} at {self.fraction:<6g}"


CASES = (
    Case("squared", 500, 1000, 5, 0.001, 200),
    Case("squared", 500, 1000, 5, 0.02, 200),
    Case("squared", 2000, 400, 5, 0.02, 200),
    Case("squared", 200, 100, 1, 0.001, 200),
    Case("squared", 200, 20_000, 5, 0.001, 50),
    Case("multinomial", 500, 1000, 5, 0.001, 100),
    Case("multinomial", 2000, 200, 5, 0.01, 100),
)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=15, metavar="N", help="rounds per case (default: 15)")
    parser.add_argument("--seed", type=int, default=0, help="of the data and of the order of runs (default: 0)")
    parser.add_argument("--threads", type=int, default=None, metavar="N", help="limit of BLAS (default: none)")
    parser.add_argument("--quick", action="store_true", help="5 rounds per case")
    arguments = parser.parse_args()
    if arguments.repeats < 1:
        parser.error("--repeats must be at least 1")
    return arguments


def run_case(case: Case, repeats: int, seed: int) -> dict[str, list[go.SolveResult]]:
    """Results by rule, one per round; the round before the first is not counted."""
    data = go.datasets.make_correlated_groups(
        case.n_samples,
        case.n_features,
        case.n_tasks,
        n_informative=case.n_features,
        task="regression" if case.loss == "squared" else "classification",
        random_state=seed,
    )
    settings = {"loss": case.loss, "fit_intercept": True}
    sequence = go.weights.oscar(case.n_features)
    lam = case.fraction * go.lam_max(data.X, data.Y, sequence, **settings) * sequence
    rng = np.random.default_rng(seed)
    results: dict[str, list[go.SolveResult]] = {screening: [] for screening in SCREENINGS}
    for _ in range(repeats + 1):
        for screening in rng.permutation(SCREENINGS):
            # A tolerance out of reach: max_iter decides when to stop.
            result = go.solve(
                data.X,
                data.Y,
                lam,
                solver=go.APGD(),
                screening=str(screening),
                tol=1e-14,
                max_iter=case.steps,
                **settings,
            )
            results[screening].append(result)
    return {screening: runs[1:] for screening, runs in results.items()}


def median_ratio(runs: list[go.SolveResult], without: list[go.SolveResult]) -> float:
    return float(np.median([run.seconds / other.seconds for run, other in zip(runs, without, strict=True)]))


def print_case(case: Case, results: dict[str, list[go.SolveResult]]) -> None:
    without = results["none"]
    for screening, runs in results.items():
        kept = f"{min(len(run.active) for run in runs)} of {case.n_features}"
        print(
            f"{case!s:<39} {screening:>9} {runs[0].n_iter:6d} {runs[0].n_passes:7.1f} {kept:>15} "
            f"{len(runs[0].support):9d} {np.median([run.seconds for run in runs]):8.4f} "
            f"{median_ratio(runs, without):9.3f}",
            flush=True,
        )


def does_the_same_work(case: Case, results: dict[str, list[go.SolveResult]]) -> bool:
    """Whether all runs took the same steps and passes and kept every row."""
    work = {(run.n_iter, run.n_passes, len(run.active)) for runs in results.values() for run in runs}
    return work == {(case.steps, results["none"][0].n_passes, case.n_features)}


def main() -> None:
    arguments = parse_arguments()
    warnings.simplefilter("ignore", ConvergenceWarning)  # runs stop at max_iter on purpose
    repeats = 5 if arguments.quick else arguments.repeats
    print(f"{repeats} rounds, seed {arguments.seed}, BLAS threads: {arguments.threads or 'as installed'}")
    print(
        f"{'case':<39} {'screening':>9} {'steps':>6} {'passes':>7} {'rows kept':>15} {'selected':>9} "
        f"{'seconds':>8} {'time/none':>9}"
    )
    ratios, same_work = [], True
    with threadpool_limits(arguments.threads):
        for case in CASES:
            results = run_case(case, repeats, arguments.seed)
            print_case(case, results)
            ratios += [median_ratio(runs, results["none"]) for runs in results.values()]
            same_work &= does_the_same_work(case, results)
    print(f"all rows kept, same steps and passes in every case: {'yes' if same_work else 'NO'}")
    print(
        f"worst ratio: {max(ratios):.3f}, {'within' if max(ratios) <= TARGET else 'ABOVE'} the target of {TARGET:.2f}"
    )
    sys.exit(0 if same_work else 1)


if __name__ == "__main__":
    main()
