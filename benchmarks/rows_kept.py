"""What smaller safe regions prove: rows kept at equal gap by three bounds, and the passes that APGD needs with each.

    python benchmarks/rows_kept.py [--data DIR] [--seeds 3] [--quick] [--out FILE]

Problems are drawn from seeds; with ``--data DIR``, where DIR holds plantgo.npz, bibtex.npz and cmufaces.npz, real data
follow. Each problem is solved by APGD without screening, and where the relative gap first falls to 1e-2, 1e-3 and 1e-4
the extended rule counts the rows that it cannot prove zero: with the ball about the dual point (the bound of the
paper; for counts, which have no ball, the bound that they had before), with the midpoint ball, and with the local bound
as well, wherever that exists. Passes are those of APGD to a
relative gap of 1e-6, with the first bounds and with all of them. Losses that this version does not have are left out.
At the end, passes of the default solver on two large problems of many tasks.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import groupowl as go
from groupowl.losses import LOSSES
from groupowl.problem import Certificate, Problem, build_problem
from groupowl.screening import SAFE, Rule, extended_rule
from groupowl.solvers import check_settings
from groupowl.solvers.continuation import Continuation

GAPS = (1e-2, 1e-3, 1e-4)
TOL = 1e-6
ONE_BALL = Rule(extended_rule, two_sided=False)


@dataclass(frozen=True)
class Task:
    """One problem, with the share of lam_max and the weights that it is solved at."""

    name: str
    loss: str
    X: Any
    Y: Any
    weights: str
    share: float
    fit_intercept: bool = True

    def problem(self) -> Problem:
        sequence = getattr(go.weights, self.weights)(self.X.shape[1])
        kind = {"loss": self.loss, "fit_intercept": self.fit_intercept}
        lam = self.share * go.lam_max(self.X, self.Y, sequence, **kind) * sequence
        return build_problem(self.X, self.Y, lam, **kind)


# Problems -----------------------------------------------------------------------------------------------


def predictors(rng: np.random.Generator, n: int, d: int, q: int, correlation: float) -> tuple[Any, Any]:
    """AR(1) columns, and predictors by ten rows of coefficients, of standard deviation 1."""
    X = rng.standard_normal((n, d))
    for j in range(1, d):
        X[:, j] = correlation * X[:, j - 1] + np.sqrt(1.0 - correlation**2) * X[:, j]
    Z = X[:, :: d // 10] @ rng.standard_normal((len(range(0, d, d // 10)), q))
    return X, Z / Z.std(axis=0)


def classes(rng: np.random.Generator, Z: Any) -> Any:
    """One-hot classes, drawn from the softmax."""
    return np.eye(Z.shape[1])[np.argmax(Z + rng.gumbel(size=Z.shape), axis=1)]


def labels(rng: np.random.Generator, Z: Any) -> Any:
    return (Z + rng.logistic(size=Z.shape) > 0.0).astype(float)


def generated(seed: int) -> Iterator[Task]:
    """The kinds of problems, one of each."""
    rng = np.random.default_rng(seed)
    X, Z = predictors(rng, 200, 500, 3, 0.5)
    yield Task("200 x 500, 3 tasks", "squared", X, Z + rng.standard_normal(Z.shape), "oscar", 0.3)
    yield Task("200 x 500, 3 tasks", "huber", X, Z + rng.standard_t(2, size=Z.shape), "oscar", 0.5)
    X, Z = predictors(rng, 200, 500, 1, 0.9)
    yield Task("200 x 500, 1 task, correlation 0.9", "squared", X, Z + rng.standard_normal(Z.shape), "oscar", 0.2)
    yield Task("200 x 500, 1 label", "logistic", X, labels(rng, 2.0 * Z), "oscar", 0.3)
    X, Z = predictors(rng, 300, 500, 3, 0.5)
    yield Task("300 x 500, 3 classes", "multinomial", X, classes(rng, 3.0 * Z), "oscar", 0.3)
    yield Task("300 x 500, 3 tasks", "poisson", X, rng.poisson(np.exp(0.7 * Z)).astype(float), "oscar", 0.3)
    X, Z = predictors(rng, 500, 500, 10, 0.5)
    yield Task("500 x 500, 10 classes", "multinomial", X, classes(rng, 3.0 * Z), "oscar", 0.4)
    common = np.r_[6.0, np.zeros(9)]
    yield Task(
        "500 x 500, 10 classes, 9 of them rare", "multinomial", X, classes(rng, 3.0 * Z + common), "constant", 0.4
    )
    X, Z = predictors(rng, 1000, 500, 5, 0.5)
    yield Task("1000 x 500, 5 rare labels", "logistic", X, labels(rng, 2.0 * Z - 4.0), "constant", 0.3)
    X, Z = predictors(rng, 300, 500, 1, 0.5)
    yield Task("300 x 500, 1 task", "poisson", X, rng.poisson(np.exp(0.7 * Z)).astype(float), "oscar", 0.3)


def loaded(folder: Path, name: str) -> tuple[Any, Any]:
    """Data and targets of a file."""
    with np.load(folder / f"{name}.npz") as file:
        if "data" in file:
            parts = file["data"].astype(float), file["indices"].astype(np.int32), file["indptr"]
            X = sp.csr_array(parts, shape=tuple(file["shape"]))
        else:
            X = file["X"].astype(float)
        Y = file["Y"].astype(float) if "Y" in file else file["y"]
    return X, Y


def real(folder: Path) -> Iterator[tuple[str, Callable[[], Iterator[Task]]]]:
    """Names of files, and what makes their problems."""

    def of_labels(name: str, n: int, q: int) -> Iterator[Task]:
        X, Y = loaded(folder, name)
        X, Y = X[:n], Y[:n, :q]
        for loss in ("squared", "logistic"):
            yield Task(f"{name}, {X.shape[0]} x {X.shape[1]}, {q} labels", loss, X, Y, "oscar", 0.3)

    def faces() -> Iterator[Task]:
        X, y = loaded(folder, "cmufaces")
        X, y = X[y < 3].reshape(-1, 60, 64)[:, ::2, ::2].reshape(-1, 960) / 255.0, y[y < 3]
        yield Task("CMU faces, 468 x 960, 3 poses", "multinomial", X, np.eye(3)[y], "oscar", 0.3)

    yield "plantgo", lambda: of_labels("plantgo", 978, 12)
    yield "bibtex", lambda: of_labels("bibtex", 2000, 20)
    yield "cmufaces", faces


def many_tasks(folder: Path | None) -> Iterator[Task]:
    """Labels and counts of many tasks, at a fifth of lam_max, for the default solver."""
    sequences = ("oscar", "constant", "bh")
    if folder is not None and (folder / "bibtex.npz").exists():
        X, Y = loaded(folder, "bibtex")
        for weights in sequences:
            yield Task("bibtex, 2000 x 1836, 20 labels", "logistic", X[:2000], Y[:2000, :20], weights, 0.2)
    rng = np.random.default_rng(0)
    X, Z = predictors(rng, 2000, 5000, 50, 0.5)
    Y = rng.poisson(np.exp(0.7 * Z)).astype(float)
    for weights in sequences:
        yield Task("2000 x 5000, 50 tasks", "poisson", X, Y, weights, 0.2)


# Measurements -------------------------------------------------------------------------------------------


def certificates(problem: Problem) -> dict[float, Certificate]:
    """One of APGD at the first gap below each of the gaps."""
    found: dict[float, Certificate] = {}

    def look(progress: Any) -> bool:
        for gap in GAPS:
            if gap not in found and progress.gap <= gap * problem.loss_scale:
                found[gap] = problem.certify(problem.from_input(*progress.coefficients()))
        return len(found) == len(GAPS)

    solve(problem, None, 1e-9, look, go.APGD(check_every=1))
    return found


def solve(
    problem: Problem, rule: Rule | None, tol: float, callback: Any = None, solver: Any = "apgd"
) -> go.SolveResult:
    settings = replace(check_settings(solver, "none", tol, 20_000, callback), rule=rule)
    return Continuation(problem, settings, problem.null_coefficients()).solve(problem.lam)


def rows_kept(problem: Problem, certificate: Certificate) -> tuple[int, int, int]:
    """With one ball, with two, and with the local bound too."""
    is_curved = np.isfinite(problem.loss.curvature)
    one = problem.upper_bounds(certificate, two_sided=False) if is_curved else former_bounds(problem, certificate)
    two = problem.upper_bounds(certificate)
    three = np.minimum(two, problem.local_bounds(certificate))
    kept = [len(extended_rule(upper, problem.lam)) for upper in (one, two, three)]
    return kept[0], kept[1], kept[2]


def former_bounds(problem: Problem, certificate: Certificate) -> Any:
    """Those that counts had in the contributing guide of the first edition: no mean can be larger than U.

    ``KL(mu || mu*) <= gap / w`` and ``KL(a || b) >= (a - b)^2 / (2 max(a, b))`` give U for each entry, and
    ``sum (theta* - theta)^2 / (w U) <= 2 gap``.
    """
    Y, w = problem.samples.handles
    mu, share = np.maximum(Y - certificate.theta / w, 0.0), certificate.gap / w
    largest = w * (mu + share + np.sqrt(share * share + 2.0 * mu * share))
    squares = problem.design.squared_products(largest).max(axis=1)
    return certificate.correlations + np.sqrt(2.0 * certificate.gap * squares)


def measured(task: Task) -> tuple[list[tuple[int, int, int]], tuple[float, float], int, int]:
    """Rows kept at each gap, passes before and now, rows of the problem and of its solution."""
    problem = task.problem()
    found = certificates(problem)
    kept = [rows_kept(problem, found[gap]) for gap in GAPS if gap in found]
    runs = [solve(problem, rule, TOL) for rule in (ONE_BALL, SAFE)]
    return kept, (runs[0].n_passes, runs[1].n_passes), problem.n_rows, len(runs[1].support)


# The page -----------------------------------------------------------------------------------------------


def row(task: Task, kept: list[tuple[int, int, int]], passes: tuple[float, float], d: int, selected: int) -> str:
    cells = [" / ".join(map(str, three)) for three in kept] + ["-"] * (len(GAPS) - len(kept))
    runs = f"{passes[0]:.0f} / {passes[1]:.0f}"
    return "| " + " | ".join([task.name, task.loss, str(d), *cells, str(selected), runs]) + " |"


def passes_of_default(folder: Path | None) -> list[str]:
    """A table of the default solver's passes over the data, certificates included."""
    lines = [
        "",
        "## Passes of the default solver",
        "",
        "To the same gap, by the solver of `go.solve`, at 0.2 of lam_max.",
        "",
    ]
    lines += ["| problem | loss | weights | selected | passes | relative gap |", "|---|---|---|---|---|---|"]
    for task in many_tasks(folder):
        problem = task.problem()
        result = solve(problem, SAFE, TOL, solver="auto")
        cells = (task.name, task.loss, task.weights, str(len(result.support)), f"{result.n_passes:.1f}")
        lines.append("| " + " | ".join((*cells, f"{result.gap / problem.loss_scale:.1e}")) + " |")
        print(lines[-1], flush=True)
    return lines


def summary(results: list[tuple[list[tuple[int, int, int]], tuple[float, float]]]) -> list[str]:
    """Medians and the worst of all problems."""
    lines = []
    for k, gap in enumerate(GAPS):
        shares = [kept[k][2] / kept[k][0] for kept, _ in results if len(kept) > k and kept[k][0] > 0]
        text = f"relative gap {gap:.0e}: rows kept now, of those kept by the ball about the dual point:"
        lines.append(f"- {text} median {np.median(shares):.2f}, largest {max(shares):.2f} ({len(shares)} problems)")
    ratios = [after / before for _, (before, after) in results]
    least = f"median {np.median(ratios):.2f}, smallest {min(ratios):.2f}, largest {max(ratios):.2f}"
    return [*lines, f"- passes of APGD to a relative gap of {TOL:.0e}, now relative to before: {least}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=None, metavar="DIR", help="folder with the .npz files")
    parser.add_argument("--seeds", type=int, default=3, metavar="N", help="problems of each kind (default: 3)")
    parser.add_argument("--quick", action="store_true", help="one problem of each kind")
    parser.add_argument("--out", type=Path, default=None, metavar="FILE", help="Markdown file to write")
    arguments = parser.parse_args()
    makers = {f"seed {k}": lambda k=k: generated(k) for k in range(1 if arguments.quick else arguments.seeds)}
    notes, results = [], []
    for name, make in [] if arguments.data is None else real(arguments.data):
        if (arguments.data / f"{name}.npz").exists():
            makers[name] = make
        else:
            notes.append(f"- {name} is left out: there is no {name}.npz in the folder of data")
    if arguments.data is None:
        notes.append("- real data are left out: no folder was given (--data DIR)")
    title = "| problem | loss | rows | gap 1e-2 | gap 1e-3 | gap 1e-4 | selected | passes |"
    lines = ["# Rows kept by three bounds", "", "    python benchmarks/rows_kept.py --data DIR", ""]
    lines += [__doc__.partition("\n\n")[2].partition("\n\n")[2].strip().replace("``", "`"), ""]
    table = [title, "|---|---|---|---|---|---|---|---|"]
    missing = set()
    for make in makers.values():
        for task in make():
            if task.loss not in LOSSES:
                missing.add(task.loss)
                continue
            kept, passes, d, selected = measured(task)
            results.append((kept, passes))
            table.append(row(task, kept, passes, d, selected))
            print(table[-1], flush=True)
    notes += [f"- problems with loss {name!r} are left out: this version does not have it" for name in sorted(missing)]
    print("\n".join(summary(results)))
    lines += [*summary(results), *notes, "", "Three numbers: one ball / two balls / and the local bound.", "", *table]
    lines += passes_of_default(arguments.data)
    if arguments.out is not None:
        arguments.out.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    with np.errstate(all="ignore"):
        main()
