"""What missing responses cost: fits with targets that were not observed beside fits of complete ones.

    python benchmarks/missing.py [--repeats 7] [--seed 0] [--losses squared,logistic,poisson] [--intercept] [--quick]

The problem: 2000 samples, 5000 features (AR(0.5) columns), 20 tasks, OSCAR weights, 0.2 of lam_max, relative gap 1e-6.

- complete: every target was observed
- random: each target is missing with probability 0.4
- patterns: the same, but all samples have one of ten patterns of observed tasks
- one task: 20 studies of 200 samples each, their responses as one task of 4000 samples
- studies: the same samples and responses, a task for each study (``go.stack_tasks``)

Times are those of the process, not of the clock, of one BLAS thread; settings run in turn, in random order. The gap
of each answer is that of the benchmark's judge, which has no code of groupowl. The page goes to
``benchmarks/results/missing.md``.
"""

from __future__ import annotations

import argparse
import platform
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import groupowl as go
from groupowl_harness.judge import judge, null_loss

LOSSES = ("squared", "logistic", "poisson")
FRACTION, TOL, MISSING, N_PATTERNS = 0.2, 1e-6, 0.4, 10
#: Which setting is measured against which, and how many times as long it may take.
LIMITS = {"random": ("complete", 3.0), "patterns": ("complete", 1.3), "studies": ("one task", 2.0)}
PAGE = Path(__file__).resolve().parent / "results" / "missing.md"
HEADER = ("loss", "fit", "milliseconds", "lowest", "steps", "passes", "rows", "gap", "times", "limit")


@dataclass(frozen=True)
class Setting:
    """One problem."""

    loss: str
    name: str
    X: np.ndarray
    Y: np.ndarray
    lam: np.ndarray


@dataclass(frozen=True)
class Run:
    """How long a fit took, in seconds of the process, and what came out."""

    seconds: float
    result: Any


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=7, metavar="N", help="runs per setting (default: 7)")
    parser.add_argument("--seed", type=int, default=0, help="of the data and of the order of runs (default: 0)")
    parser.add_argument("--losses", default=",".join(LOSSES), metavar="NAMES", help=f"some of {','.join(LOSSES)}")
    parser.add_argument("--intercept", action="store_true", help="fit an intercept for each task")
    parser.add_argument("--quick", action="store_true", help="a tenth of the features, and no page")
    arguments = parser.parse_args()
    arguments.losses = arguments.losses.split(",")
    unknown = [name for name in arguments.losses if name not in LOSSES]
    if unknown:
        parser.error(f"argument --losses: unknown loss {unknown[0]!r}; known are {', '.join(LOSSES)}")
    if arguments.repeats < 1:
        parser.error("argument --repeats: must be at least 1")
    return arguments


def targets(Y: np.ndarray, loss: str, rng: np.random.Generator) -> np.ndarray:
    """Responses, labels or counts."""
    if loss == "logistic":
        return (np.median(Y, axis=0) < Y).astype(float)
    if loss == "poisson":
        return rng.poisson(np.exp(Y / Y.std(axis=0))).astype(float)
    return Y


def hidden(Y: np.ndarray, missing: np.ndarray) -> np.ndarray:
    return np.where(missing, np.nan, Y)


def few_patterns(n_tasks: int, n_samples: int, rng: np.random.Generator) -> np.ndarray:
    """Which targets are missing, the same ones for all samples of one of a few kinds; no kind has none."""
    kinds = rng.random((N_PATTERNS, n_tasks)) < MISSING
    kinds[:, 0] &= ~kinds.all(axis=1)
    return kinds[rng.integers(N_PATTERNS, size=n_samples)]


def make_settings(loss: str, n_features: int, *, seed: int, intercept: bool) -> list[Setting]:
    """All settings of a loss."""
    rng, weights = np.random.default_rng(seed), go.weights.oscar(n_features)
    data = go.datasets.make_correlated_groups(2000, n_features, 20, random_state=seed)
    X, Y = data.X, targets(data.Y, loss, rng)
    problems = [
        ("complete", X, Y),
        ("random", X, hidden(Y, rng.random(Y.shape) < MISSING)),
        ("patterns", X, hidden(Y, few_patterns(20, 2000, rng))),
    ]
    data = go.datasets.make_correlated_groups(4000, n_features, 1, random_state=seed + 1)
    studies, responses = np.array_split(data.X, 20), np.array_split(targets(data.Y, loss, rng)[:, 0], 20)
    problems.append(("one task", data.X, np.concatenate(responses)[:, None]))
    problems.append(("studies", *go.stack_tasks(studies, responses)))
    settings = []
    for name, X, Y in problems:
        strongest = go.lam_max(X, Y, weights, loss=loss, fit_intercept=intercept)
        settings.append(Setting(loss, name, X, Y, FRACTION * strongest * weights))
    return settings


def solve(setting: Setting, *, intercept: bool) -> Run:
    start = time.process_time()
    result = go.solve(setting.X, setting.Y, setting.lam, loss=setting.loss, fit_intercept=intercept, tol=TOL)
    return Run(time.process_time() - start, result)


def run_all(settings: list[Setting], repeats: int, *, seed: int, intercept: bool) -> dict[str, list[Run]]:
    """All settings in turn, in random order; the first call of each is apart."""
    runs: dict[str, list[Run]] = {setting.name: [] for setting in settings}
    rng = np.random.default_rng(seed)
    for turn in range(repeats + 1):
        for i in rng.permutation(len(settings)):
            run = solve(settings[i], intercept=intercept)
            if turn:
                runs[settings[i].name].append(run)
    return runs


def judged_gap(setting: Setting, result: Any, *, intercept: bool) -> float:
    """Relative gap of an answer by the judge; who knows no intercept: then the fit's own."""
    if intercept:
        return float(result.gap) / null_loss(setting.Y, setting.loss)
    rows = np.flatnonzero(result.B.any(axis=1))
    return judge(setting.X, setting.Y, setting.lam, setting.loss, rows, result.B[rows]).gap


def table_of(settings: list[Setting], runs: dict[str, list[Run]], *, intercept: bool) -> list[tuple[str, ...]]:
    """A line for each setting; ratios are those of the medians."""
    medians = {name: float(np.median([run.seconds for run in some])) for name, some in runs.items()}
    lines = []
    for setting in settings:
        some, name = runs[setting.name], setting.name
        result, (base, limit) = some[0].result, LIMITS.get(name, (name, 1.0))
        lines.append(
            (
                setting.loss,
                name,
                f"{1e3 * medians[name]:.0f}",
                f"{1e3 * min(run.seconds for run in some):.0f}",
                str(result.n_iter),
                f"{result.n_passes:.1f}",
                str(np.count_nonzero(result.B.any(axis=1))),
                f"{judged_gap(setting, result, intercept=intercept):.1e}",
                f"{medians[name] / medians[base]:.2f}",
                f"{limit:g}" if name in LIMITS else "",
            )
        )
    return lines


def write_page(lines: list[tuple[str, ...]], arguments: argparse.Namespace) -> None:
    """The table as a page."""
    rows = [HEADER, ("---",) * len(HEADER), *lines]
    text = [
        "# What missing responses cost",
        "",
        "Written by `python benchmarks/missing.py`, whose first lines say what was measured; do not edit. `times` is",
        "the median time relative to that of the complete problem, or of one task for the studies.",
        "",
        *(f"| {' | '.join(row)} |" for row in rows),
        "",
        f"Seed {arguments.seed}, {arguments.repeats} runs each, one BLAS thread; Python {platform.python_version()},"
        f" {platform.machine()}, groupowl {go.__version__}. Other programs ran on the machine at the same time.",
        "",
    ]
    PAGE.write_text("\n".join(text), encoding="utf-8")


def main() -> None:
    arguments = parse_arguments()
    n_features = 500 if arguments.quick else 5000
    lines, widths = [], [max(len(word), 12) for word in HEADER]
    print(" ".join(word.rjust(width) for word, width in zip(HEADER, widths, strict=True)))
    with threadpool_limits(1):
        for loss in arguments.losses:
            settings = make_settings(loss, n_features, seed=arguments.seed, intercept=arguments.intercept)
            runs = run_all(settings, arguments.repeats, seed=arguments.seed, intercept=arguments.intercept)
            new = table_of(settings, runs, intercept=arguments.intercept)
            for line in new:
                print(" ".join(word.rjust(width) for word, width in zip(line, widths, strict=True)), flush=True)
            lines += new
    if not arguments.quick and not arguments.intercept:
        write_page(lines, arguments)
        print(f"written: {PAGE}")


if __name__ == "__main__":
    main()
