"""The safety campaign: hunts for a row that screening removed wrongly, or a gap that promised too much.

For each seed a problem is drawn, solved to a relative gap of 1e-11 by a solver that shares no code with the package,
and then given to one of our solvers (with one of the rules, to a random tolerance) and to `SafeScreener`, which is fed
with iterates from terrible to optimal. A finding is

- *row*: the problem without the removed rows has a minimum above the reference by more than both accuracies, or, where
  the optimum is unique, a removed row has more than 1e-6 of the largest norm;
- *bound*: a bound on a correlation at the dual optimum, from a ball or local, that does not hold; dual points are those
  of the same coefficients, or stale;
- *gap*: a reported gap below the true distance to the minimum, evaluated in extended precision, or a gap of
  coefficients that have a wrong sign;
- *sign*: a primal below the dual by more than the rounding bound.

Run it as a script for the long form; it prints seeds, continues an interrupted run, and ends with the counts.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import time
import warnings
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path

import numpy as np
import reference
import twin_support
from problems import HardProblem, draw

import groupowl as go
from groupowl.losses import resolve_loss
from groupowl.solvers import SOLVERS

ACCURACY = 1e-11
REFUSALS = ("no finite optimum", "squares of the targets underflow")
REFERENCE_ROUNDING = 1e-13  # of the gap of the reference, which it computes in double precision, of the null loss
LONGEST_SECONDS = 600
RULES = ("safe", "paper")


@dataclass
class Counts:
    """What was looked at and what was found."""

    problems: int = 0
    missed_references: int = 0
    refused: int = 0
    certificates: int = 0
    bounds: int = 0
    rows_screened: dict[str, int] = field(default_factory=lambda: dict.fromkeys(RULES, 0))
    runs: dict[str, int] = field(default_factory=dict)
    findings: list[str] = field(default_factory=list)

    def add(self, other: Counts) -> None:
        self.problems += other.problems
        self.missed_references += other.missed_references
        self.refused += other.refused
        self.certificates += other.certificates
        self.bounds += other.bounds
        for rule, rows in other.rows_screened.items():
            self.rows_screened[rule] += rows
        self.runs = dict(Counter(self.runs) + Counter(other.runs))
        self.findings += other.findings


class Examination:
    """One problem and everything that is tried on it."""

    def __init__(self, seed: int, problem: HardProblem) -> None:
        self.seed = seed
        self.problem = problem
        self.data = reference.Data.of(**problem.exact())
        self.scale = max(self.data.scale(), np.finfo(float).tiny)
        self.optimum = reference.solve(self.data, ACCURACY)
        self.rng = np.random.default_rng([1, seed])
        self.counts = Counts(problems=1, missed_references=int(not self.optimum.converged))

    def run(self) -> Counts:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # solves that stop early are wanted here
            serving = [name for name in SOLVERS if name != "spgd" or np.isfinite(self._curvature)]
            self.try_solver(str(self.rng.choice(serving)), str(self.rng.choice(RULES)))
            self.try_screener(str(self.rng.choice(RULES)))
            self.try_bounds()
            self.try_kernel()
        return self.counts

    @property
    def _curvature(self) -> float:
        return resolve_loss(self.problem.arguments["loss"]).curvature

    # What is tried ------------------------------------------------------------------------------------

    def try_solver(self, solver: str, rule: str) -> None:
        tol = 10 ** self.rng.uniform(-13, -1)
        most = 3 if solver == "spgd" else 40
        start = self._bad_iterate() if self.rng.random() < 0.2 else (None, None)
        result = go.solve(
            **self.problem.arguments,
            solver=solver,
            screening=rule,
            tol=tol,
            max_iter=most,
            B_init=start[0],
            intercept_init=start[1] if self.problem.arguments["fit_intercept"] else None,
            random_state=self.seed,
        )
        name = f"{solver}/{rule}"
        self._count(name, rule, len(result.history), np.count_nonzero(result.screened_at >= 0))
        self.judge_rows(name, np.flatnonzero(result.screened_at >= 0))
        self.judge_gap(name, result.B, result.intercept, result.primal, result.dual, result.gap)

    def try_kernel(self) -> None:
        """The default solver once more, without a bad start: the compiled kernel proposes wherever it serves."""
        rng = np.random.default_rng([2, self.seed])
        tol = 10 ** rng.uniform(-10, -2)
        answered = sum(twin_support.answers.values())
        result = go.solve(**self.problem.arguments, tol=tol, max_iter=300, random_state=self.seed)
        name = "default solver, NumPy" if answered == sum(twin_support.answers.values()) else "default solver, kernel"
        self._count(name, "safe", len(result.history), np.count_nonzero(result.screened_at >= 0))
        self.judge_rows(name, np.flatnonzero(result.screened_at >= 0))
        self.judge_gap(name, result.B, result.intercept, result.primal, result.dual, result.gap)

    def try_screener(self, rule: str) -> None:
        screener = go.SafeScreener(**self.problem.arguments, rule=rule)
        name = f"SafeScreener/{rule}"
        d = self.data.X.shape[1]
        for B, intercept in self._iterates():
            active = screener.active
            alive = np.zeros_like(B)
            alive[active] = B[active]
            given = intercept if self.problem.arguments["fit_intercept"] else None
            way = self.rng.random()
            if way < 0.25:
                report = screener.update(B[active], given)
            elif way < 0.5:  # a predictor that someone else computed, for the active rows
                Z = self.problem.X @ alive + (0.0 if given is None else given)
                report = screener.update(B[active], given, Z=Z)
            elif way < 0.6:  # whatever intercept the screener takes
                screener.update(B)
                continue
            else:
                report = screener.update(B, given)
            self.judge_gap(name, alive, 0.0 if given is None else given, report.primal, report.dual, report.gap)
            self.counts.certificates += 1
        self._count(name, rule, 0, d - len(screener.active))
        self.judge_rows(name, np.delete(np.arange(d), screener.active))

    def try_bounds(self) -> None:
        """Bounds of the problem itself, for iterates in any order and dual points from any of them."""
        problem = self.problem.build()
        iterates = [*self._iterates(), *self._near_ties()]
        best = None
        with np.errstate(all="ignore"):
            for k in self.rng.permutation(len(iterates)):
                B, intercept = iterates[k]
                given = intercept + np.zeros(B.shape[1]) if self.problem.arguments["fit_intercept"] else None
                coefficients = problem.from_input(B, given)
                own = problem.certify(coefficients)
                best = problem.certify(coefficients, best=best)
                self.judge_bounds(problem, own)
                self.judge_bounds(problem, best)
                if best.residual is not None and best.residual.raw is not None:
                    self.judge_bounds(problem, with_failed_balance(problem, best))

    def _near_ties(self):
        """Coefficients whose only error is the intercept, or a multiple of the optimum: bounds are tightest there."""
        B, intercept = self.optimum.B, self.optimum.intercept
        for size in 10 ** self.rng.uniform(-4, 0.5, size=3):
            yield B, intercept + size * self.rng.standard_normal(len(intercept))
        yield B * (1 + 10 ** self.rng.uniform(-4, -1)), intercept
        yield B * (1 - 10 ** self.rng.uniform(-4, -1)), intercept

    def _count(self, name: str, rule: str, certificates: int, screened: int) -> None:
        self.counts.runs[name] = self.counts.runs.get(name, 0) + 1
        self.counts.certificates += certificates
        self.counts.rows_screened[rule] += int(screened)

    def _bad_iterate(self):
        size = 10 ** (self.rng.uniform(100, 200) if self.rng.random() < 0.02 else self.rng.uniform(-2, 3))
        shape = self.optimum.B.shape
        return self._allowed(size * self.rng.standard_normal(shape)), size * self.rng.standard_normal(shape[1])

    def _allowed(self, B):
        """Coefficients of the signs asked for, as a rule, and none of columns that are left out."""
        B = np.where(self.problem.is_out[:, None], 0.0, B)
        if self.data.shape.signs is None or self.rng.random() < 0.1:
            return B
        return self.data.shape.projected(B)

    def _iterates(self):
        """From terrible to optimal: worse than zero, zero, dense, one that is nearly optimal in some rows only."""
        B, intercept = self.optimum.B, self.optimum.intercept
        yield self._bad_iterate()
        yield np.zeros_like(B), np.zeros_like(intercept)
        for size in 10 ** np.sort(self.rng.uniform(-7, 0.5, size=4))[::-1]:
            noise = self.rng.standard_normal(B.shape) * (self.rng.random((len(B), 1)) < self.rng.choice([0.1, 1.0]))
            yield (
                self._allowed(B + size * noise * np.abs(B).max(initial=1e-3)),
                intercept + size * self.rng.standard_normal(),
            )
        yield B * self.rng.uniform(0.5, 1.5), intercept
        yield self._with_row(np.argmin, 1 + 10 ** self.rng.uniform(0.3, 1.3)), intercept
        yield self._with_row(np.argmax, 1 - 10 ** self.rng.uniform(-3, -1.3)), intercept
        yield B, intercept

    def _with_row(self, choose, factor):
        """The optimum with its weakest (argmin) or strongest (argmax) row scaled.

        Too large a weak row gives a feasible dual point that is wrong about this row alone; too small a strong row
        then a good objective with a worse dual point, so that the former stays the best: the radius is tightest so.
        """
        B = self.optimum.B.copy()
        support = np.flatnonzero(B.any(axis=1))
        if len(support):
            B[support[choose(np.linalg.norm(B[support], axis=1))]] *= factor
        return B

    # What is judged -----------------------------------------------------------------------------------

    def judge_rows(self, name: str, removed) -> None:
        """Removing rows must not raise the minimum; cheap tests first."""
        if not self.optimum.converged or not self.optimum.B[removed].any():
            return  # the reference itself lives on the rows that are left
        if len(wrong := np.intersect1d(removed, self.data.shape.free)):
            self._report("row", name, f"rows {wrong[:5]} are not penalized, and removed")
        norms = np.linalg.norm(self.optimum.B, axis=1)
        largest = norms[removed].max()
        if largest > max(1e-6 * norms.max(), self._reference_error()):
            self._report("row", name, f"a removed row has {largest / norms.max():.1e} of the largest norm")
        allowed = 2 * ACCURACY * self.scale
        lighter = self.optimum.B.copy()
        lighter[removed] = 0.0
        if self.data.objective(lighter, self.optimum.intercept) - self.optimum.primal <= allowed:
            return
        left = self.data.without(removed)
        if left.X.shape[1]:
            best = reference.solve(left, ACCURACY)
            if not best.converged:
                self.counts.missed_references += 1
                return
            lowest = best.primal
        else:
            lowest = left.null_loss()
        excess = float(lowest - self.optimum.primal)
        if excess > allowed:
            self._report("row", name, f"rows {removed[:5]} removed, minimum rises by {excess / self.scale:.2e}")

    def judge_bounds(self, problem, certificate) -> None:
        """Bounds hold at the dual optimum, which is within a radius of the residual of the reference."""
        if not self.optimum.converged or not np.isfinite(certificate.gap):
            return
        exact, lengths, sizes, theta_norm = self._optimal_correlations
        norms = problem.norms if problem.unit_norms is None else problem.unit_norms
        room = self._reference_moves(lengths) + 1e-13 * theta_norm * sizes
        if not np.isfinite(room).all():  # a reference that nothing can be compared with
            self.counts.missed_references = 1
            return
        self.counts.bounds += len(exact)
        for name, bounds in (
            ("ball", problem.upper_bounds(certificate, two_sided=False)),
            ("balls", problem.upper_bounds(certificate)),
            ("local", problem.local_bounds(certificate)),
            ("lower", -problem.lower_bounds(certificate)),
        ):
            excess = (-exact if name == "lower" else exact) - bounds - room
            excess[norms == 0.0] = 0.0  # columns that count as constant, or are free
            if not np.all(excess <= 0.0):
                j = int(np.argmax(excess))
                found = f"{bounds[j]:.6e} for {exact[j]:.6e} at row {j}, room {room[j]:.1e}, gap {certificate.gap:.1e}"
                self._report("bound", name, found)

    def _reference_moves(self, norms):
        """How far the gap of the reference lets correlations move, by the largest mean where there is no curvature.

        ``sum w KL(mu* || mu) <= gap`` bounds each ``mu*`` too. Of the Cox loss mu are expected events, whose divergence
        is at most the sum of those of the choices.
        """
        gap, data = self.optimum.gap + REFERENCE_ROUNDING * self.scale, self.data
        curvature = self._curvature
        if not np.isfinite(curvature):
            mu = data.Y - reference.over(data.residual(self.optimum.B, self.optimum.intercept), data.w)
            share = reference.over(gap, data.w)
            curvature = np.max(mu + 2 * share + np.sqrt(2 * mu * share))
        return np.sqrt(2 * curvature * gap) * norms

    @cached_property
    def _optimal_correlations(self):
        """Correlations of the residual of the reference, norms of columns and of what products add up, and its norm.

        In extended precision: a residual may be what is left of targets that are 10^12 times as large.
        """
        data, shape = self.data, self.data.shape
        theta = data.residual(self.optimum.B, self.optimum.intercept, reference.Long)
        mean = data.pooled_mean
        if data.ignores_level:  # what the accuracy of the intercept leaves; columns are centered, but for rounding
            theta = theta - data.w * (theta.sum(axis=0) / data.totals)
        theta = theta.astype(float)
        inverse = shape.inverse()
        products = inverse.T @ ((data.X - mean).T @ theta)
        columns = ((data.X - mean) @ inverse, (np.abs(data.X) + np.abs(mean)) @ abs(inverse))
        lengths = [np.sqrt(np.max(data.w.T @ part**2, axis=0))[:, None] for part in columns]
        theta_norm = np.sqrt(np.sum(reference.over(theta**2, data.w)))
        order = self.problem.unit_order(shape)
        found = []
        for values in (shape.projected(products), *lengths):
            norms = shape.norms(values)
            found.append(np.array([norms[unit] if unit >= 0 else 0.0 for unit in order]))
        return *found, theta_norm

    def _reference_error(self) -> float:
        """How far the rows of the reference can be from those of the optimum; infinite unless that is unique.

        Squared loss with well-conditioned columns on the support: strongly convex, so the gap bounds the distance.
        """
        support = np.flatnonzero(self.optimum.B.any(axis=1))
        is_shared = self.data.w.shape[1] == 1
        if self.data.loss != "squared" or not is_shared or len(support) >= len(self.data.X):
            return np.inf
        X = self.data.X[:, support]
        X = X - self.data.task_mean(X) if self.data.fit_intercept else X
        singular = np.linalg.svd(np.sqrt(self.data.w) * X, compute_uv=False)
        if singular[-1] < 1e-4 * singular[0]:
            return np.inf
        return float(4 * np.sqrt(2 * max(self.optimum.gap, 1e-14 * self.scale)) / singular[-1])

    def judge_gap(self, name: str, B, intercept, primal: float, dual: float, gap: float) -> None:
        """`gap` bounds the distance to the minimum, up to the accuracy of evaluating at B on the input scale."""
        rounding = gap - max(primal - dual, 0.0)
        if primal - dual < -rounding or not gap >= 0.0:
            self._report("sign", name, f"primal - dual = {primal - dual:.3e}, rounding {rounding:.3e}")
        B, intercept = self._as_certified(B, intercept)
        value = self.data.objective(B, intercept)
        if np.isfinite(gap) and np.any(self.data.shape.projected(B) != B):
            self._report("gap", name, f"coefficients of a wrong sign have a gap of {gap:.3e}")
        distance = float(value - self.optimum.primal)
        if not np.isfinite(distance):
            return  # an iterate that overflows is not judged; that nothing is proved from it, judge_rows sees
        judged = self.data.evaluation_error(B, intercept, value) + self._conversion_error(B, intercept)
        if "frobenius" in self.problem.traits:  # deviations of columns that hardly vary have few digits
            judged += 1e-11 * float(abs(value))
        if distance > gap + judged:
            self._report("gap", name, f"distance {distance:.3e} above gap {gap:.3e}, null loss {self.scale:.3e}")

    def _as_certified(self, B, intercept):
        """With the best coefficients of free columns, and intercept, where the squared loss takes those."""
        data, free = self.data, self.data.shape.free
        if len(free) == 0 or data.loss != "squared" or not np.isfinite(B).all():
            return B, intercept
        mean, best = data.pooled_mean, B.copy()
        best[free] = 0.0
        E = data.block(data.X - mean)
        found = reference.newton(data, E, np.zeros((E.shape[1], B.shape[1])), data.X @ best)
        best[free] = found[: len(free)]
        level = found[-1] - mean[free] @ best[free] if data.fit_intercept else intercept
        return min((B, intercept), (best, level), key=lambda pair: data.objective(*pair))

    def _conversion_error(self, B, intercept) -> float:
        """Moving the intercept from centered columns to the input scale rounds it; that is not the gap's."""
        if not self.data.fit_intercept:
            return 0.0
        data = self.data
        total = float(data.totals.max())
        moved = 4 * np.finfo(float).eps * np.max(np.abs(intercept) + np.abs(data.pooled_mean) @ np.abs(B))
        # The squared loss is flat at its intercept.
        is_flat = data.loss == "squared" and data.w.shape[1] == 1 and len(data.shape.free) == 0
        slope = 0.0 if is_flat else data.slopes(B, intercept).sum()
        bend = total
        if data.loss == "poisson":
            bend += slope + (data.w * data.Y).sum()
        return float(slope * moved + bend * moved**2)

    def _report(self, kind: str, name: str, what: str) -> None:
        self.counts.findings.append(f"seed {self.seed} {kind} {name}: {what} ({', '.join(self.problem.traits)})")


def with_failed_balance(problem, certificate):
    """The certificate if balancing had failed: the residual is then zero, which is balanced, and far from the raw one.

    Balancing as a rule makes residuals better, so that bounds which forget about it would hold.
    """
    known, w = certificate.residual, problem.samples.w
    zeros = {name: np.zeros_like(getattr(known, name)) for name in ("theta", "products", "correlations")}
    balancing = float(np.sqrt(np.sum(reference.over(known.raw**2, w))))
    return replace(certificate, residual=replace(known, **zeros, norm=0.0, balancing=balancing))


def examine(seed: int, *, plain: bool = False) -> Counts:
    """Draw and examine one problem."""
    return Examination(seed, draw(seed, plain=plain)).run()


def examine_range(start: int, stop: int, *, plain: bool = False) -> Counts:
    """Examine the problems of a range of seeds; one that does not end is a finding as well."""
    twin_support.compare_all()
    counts = Counts()
    signal.signal(signal.SIGALRM, _too_long)
    for seed in range(start, stop):
        signal.alarm(LONGEST_SECONDS)
        try:
            counts.add(examine(seed, plain=plain))
        except TimeoutError:
            counts.add(Counts(problems=1, findings=[f"seed {seed} has not ended after {LONGEST_SECONDS} s"]))
        except Exception as error:  # a crash is a finding, and the others are still to be examined
            counts.add(_of_error(seed, error))
        finally:
            signal.alarm(0)
    return counts


def _of_error(seed: int, error: Exception) -> Counts:
    """A problem that was refused as it should be, without a solution or with targets that are too small; or a crash.

    That targets of 1e-157 are refused is right, whatever the loss; their squares are none.
    """
    if isinstance(error, ValueError) and any(words in str(error) for words in REFUSALS):
        return Counts(problems=1, refused=1)
    return Counts(problems=1, findings=[f"seed {seed} crashed: {error!r}"])


def _too_long(*_: object) -> None:
    raise TimeoutError


# The long form ----------------------------------------------------------------------------------------


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problems", type=int, default=100_000)
    parser.add_argument("--first", type=int, default=0, help="first seed")
    parser.add_argument("--plain", action="store_true", help="problems without groups, ridges, gaps and the like only")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--chunk", type=int, default=250, help="problems between two saved states")
    parser.add_argument("--out", type=Path, default=Path("results/safety.json"))
    options = parser.parse_args()
    options.out.parent.mkdir(parents=True, exist_ok=True)
    done = json.loads(options.out.read_text()) if options.out.exists() else {}
    settings = {"chunk": options.chunk, "version": go.__version__, "plain": options.plain}
    if done and done.pop("settings", None) != settings:
        parser.error(f"{options.out} is of another version, kind or chunk size; remove it or choose another --out.")
    chunks = range(options.first, options.first + options.problems, options.chunk)
    todo = [start for start in chunks if str(start) not in done]
    print(f"{len(chunks) * options.chunk} problems from seed {options.first}; {len(done)} chunks are done already.")
    began = time.perf_counter()
    with ProcessPoolExecutor(options.workers) as pool:
        submit = partial(pool.submit, examine_range, plain=options.plain)
        futures = {submit(start, start + options.chunk): start for start in todo}
        for number, future in enumerate(as_completed(futures), start=1):
            start = futures[future]
            done[str(start)] = asdict(future.result())
            temporary = options.out.with_suffix(".tmp")
            temporary.write_text(json.dumps({**done, "settings": settings}))
            temporary.replace(options.out)
            left = (time.perf_counter() - began) / number * (len(todo) - number)
            print(f"seeds {start}..{start + options.chunk - 1} done, {left / 60:.0f} min left", flush=True)
            for finding in done[str(start)]["findings"]:
                print("  ", finding, flush=True)
    total = Counts()
    for start in chunks:
        total.add(Counts(**done[str(start)]))
    print(json.dumps({**asdict(total), "findings": len(total.findings)}, indent=2))
    for finding in total.findings:
        print(finding)
    return 1 if total.findings or total.missed_references > 0.05 * total.problems else 0


if __name__ == "__main__":
    sys.exit(main())
