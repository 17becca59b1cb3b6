"""Badly conditioned classification: images, the default solver against plain Barzilai-Borwein steps.

    python benchmarks/images.py --data DIR [--repeats 3] [--threads N] [--quick]

Both solve the same working sets to a relative gap of 1e-6. The plain one takes gradient steps only and evaluates value
and gradient of the loss one after the other, sample by sample; the default one evaluates them together, task by task,
and takes Newton-type steps where they pay. Data: CMU faces (three poses) and the first 10000 images of MNIST, from the
files ``cmufaces.npz`` and ``mnist.npz`` in DIR; a missing file is skipped.
"""

from __future__ import annotations

import argparse
from itertools import product
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

import groupowl as go
from groupowl.solvers.inner.oracles import ProblemOracle

FRACTIONS = (0.2, 0.05)
SHAPES = ("constant", "oscar")


class PlainSteps(go.WorkingSet):
    """Working sets with gradient steps only, on a loss that is evaluated twice."""

    second_order = False

    def oracle(self, problem, rows, state, task, B):
        """The restricted problem itself."""
        return ProblemOracle(problem.restrict(rows), B)


SOLVERS = {"default": go.WorkingSet(), "plain": PlainSteps()}


def load(folder: Path, name: str) -> tuple[np.ndarray, np.ndarray] | None:
    file = folder / f"{name}.npz"
    if not file.exists():
        print(f"{name}: skipped, {file.name} is not in the folder")
        return None
    archive = np.load(file)
    X, y = archive["X"], archive["y"]
    keep = y < 3 if name == "cmufaces" else np.arange(len(y)) < 10_000
    X, y = X[keep].astype(float), y[keep]
    return X / X.max(), (y[:, None] == np.unique(y)).astype(float)


def compare(name: str, X: np.ndarray, Y: np.ndarray, repeats: int, fractions: tuple[float, ...]) -> list[float]:
    ratios = []
    for shape, fraction in product(SHAPES, fractions):
        weights = getattr(go.weights, shape)(X.shape[1])
        lam = fraction * go.lam_max(X, Y, weights, loss="multinomial") * weights
        runs: dict[str, list[go.SolveResult]] = {key: [] for key in SOLVERS}
        for key in np.random.default_rng(0).permutation(list(SOLVERS) * repeats):
            result = go.solve(X, Y, lam, loss="multinomial", solver=SOLVERS[key], max_iter=100_000)
            assert result.converged
            runs[key].append(result)
        seconds = {key: float(np.median([run.seconds for run in many])) for key, many in runs.items()}
        ratios.append(seconds["plain"] / seconds["default"])
        steps = {key: many[0].n_iter for key, many in runs.items()}
        print(
            f"{name:9s} {shape:9s} {fraction:5g} lam_max: {len(runs['default'][0].support):4d} rows, "
            f"default {seconds['default']:7.3f} s ({steps['default']} steps), "
            f"plain {seconds['plain']:7.3f} s ({steps['plain']} steps), ratio {ratios[-1]:.1f}",
            flush=True,
        )
    return ratios


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, metavar="DIR", help="folder with the .npz files")
    parser.add_argument("--repeats", type=int, default=3, metavar="N", help="runs per setting (default: 3)")
    parser.add_argument("--threads", type=int, default=None, metavar="N", help="limit of BLAS (default: none)")
    parser.add_argument("--quick", action="store_true", help="one run per setting, the stronger penalty only")
    arguments = parser.parse_args()
    repeats, fractions = (1, FRACTIONS[:1]) if arguments.quick else (arguments.repeats, FRACTIONS)
    with threadpool_limits(arguments.threads):
        for name in ("cmufaces", "mnist"):
            data = load(arguments.data, name)
            if data is not None:
                ratios = compare(name, *data, repeats, fractions)
                print(f"{name}: median ratio {np.median(ratios):.1f}, {min(ratios):.1f} to {max(ratios):.1f}")


if __name__ == "__main__":
    main()
