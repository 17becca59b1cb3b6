"""What screening saves: accelerated proximal gradient with and without it, on one wide multi-task problem.

    python benchmarks/screening_speed.py [--repeats 3] [--seed 0] [--threads N] [--quick]

The problem: 200 samples, 20000 features (AR(0.5) columns of unit norm), 5 tasks, 20 true rows, OSCAR weights of
ratio 1, solved to a relative gap of 1e-6 at 0.6, 0.4 and 0.2 of lam_max. Each setting runs ``--repeats`` times,
all runs in random order; times are medians. Momentum restarts where rows are removed (the paper's Algorithm 1),
or also where it points against the gradient.
"""

from __future__ import annotations

import argparse
from itertools import product

import numpy as np
from threadpoolctl import threadpool_limits

import groupowl as go

FRACTIONS = (0.6, 0.4, 0.2)
RESTARTS = ("screen", "gradient")
SCREENINGS = ("none", "paper", "safe")
TOL = 1e-6
HEADLINE = (0.4, "screen")  # the setting of the last line

Setting = tuple[float, str, str]


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3, metavar="N", help="runs per setting (default: 3)")
    parser.add_argument("--seed", type=int, default=0, help="of the data and of the order of runs (default: 0)")
    parser.add_argument("--threads", type=int, default=None, metavar="N", help="limit of BLAS (default: none)")
    parser.add_argument("--quick", action="store_true", help="one run per setting, 4000 features")
    arguments = parser.parse_args()
    if arguments.repeats < 1:
        parser.error("--repeats must be at least 1")
    return arguments


def run_all(data: go.datasets.CorrelatedGroups, repeats: int, seed: int) -> dict[Setting, list[go.SolveResult]]:
    """Results of every setting, from runs in random order."""
    sequence = go.weights.oscar(data.X.shape[1])
    strongest = go.lam_max(data.X, data.Y, sequence)
    settings = list(product(FRACTIONS, RESTARTS, SCREENINGS))
    results: dict[Setting, list[go.SolveResult]] = {setting: [] for setting in settings}
    go.solve(data.X, data.Y, 0.5 * strongest * sequence, callback=lambda progress: True)  # the first call is apart
    for i in np.random.default_rng(seed).permutation(np.repeat(np.arange(len(settings)), repeats)):
        fraction, restart, screening = settings[i]
        lam = fraction * strongest * sequence
        solver = go.APGD(restart=restart)
        results[settings[i]].append(go.solve(data.X, data.Y, lam, solver=solver, screening=screening, tol=TOL))
    return results


def median_seconds(runs: list[go.SolveResult]) -> float:
    return float(np.median([run.seconds for run in runs]))


def print_table(results: dict[Setting, list[go.SolveResult]], null_loss: float) -> None:
    print(
        f"{'lam/lam_max':>11} {'restart':>9} {'screening':>9} {'seconds':>8} {'iterations':>10} {'passes':>8} "
        f"{'rows kept':>9} {'objective':>16} {'rel. gap':>8} {'time/none':>9}"
    )
    for (fraction, restart, screening), runs in results.items():
        result, seconds = runs[0], median_seconds(runs)
        ratio = seconds / median_seconds(results[fraction, restart, "none"])
        print(
            f"{fraction:11.1f} {restart:>9} {screening:>9} {seconds:8.3f} {result.n_iter:10d} {result.n_passes:8.1f} "
            f"{len(result.active):9d} {result.primal:16.9f} {result.gap / null_loss:8.1e} {ratio:9.3f}"
        )


def largest_difference(results: dict[Setting, list[go.SolveResult]]) -> float:
    """Largest relative difference of objectives between any two answers to the same problem."""
    differences = []
    for fraction in FRACTIONS:
        objectives = [run.primal for setting, runs in results.items() if setting[0] == fraction for run in runs]
        differences.append((max(objectives) - min(objectives)) / min(objectives))
    return max(differences)


def main() -> None:
    arguments = parse_arguments()
    n_features, repeats = (4000, 1) if arguments.quick else (20_000, arguments.repeats)
    data = go.datasets.make_correlated_groups(200, n_features, 5, unit_norm=True, random_state=arguments.seed)
    print(f"200 x {n_features}, 5 tasks, tol {TOL:g}, seed {arguments.seed}, median of {repeats} run(s), ", end="")
    print(f"BLAS threads: {arguments.threads or 'as installed'}")
    with threadpool_limits(arguments.threads):
        results = run_all(data, repeats, arguments.seed)
    print_table(results, null_loss=0.5 * float(np.sum(data.Y**2)))
    ratio = median_seconds(results[*HEADLINE, "safe"]) / median_seconds(results[*HEADLINE, "none"])
    print(
        f"safe/none at {HEADLINE[0]} without gradient restart: {ratio:.3f} of the time ({1 / ratio:.1f}x faster); "
        f"largest relative difference of objectives: {largest_difference(results):.1e}"
    )


if __name__ == "__main__":
    main()
