"""Many fits to one X: subsamples, targets or weight vectors, side by side in threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, replace
from itertools import chain, repeat
from typing import Any

import numpy as np

from .._checks import check_sample_weight, check_targets, rectangular_array, sample_indices, truth_value
from .._threads import Stop, blas_threads, check_jobs, count_threads, run_in_threads
from .._typing import FloatArray
from ..designs import Design, LocalDesign, as_design
from ..designs.base import PassCounter
from ..losses import Loss, resolve_loss
from ..norm import GroupOWL
from ..problem import LATER, Problem, build_problem, compressed_together, problem_of_samples, with_targets
from ..weights import check_sequence
from . import _start, check_settings, warn_unless_converged
from .continuation import GRAM_TOLERANCE, Continuation, wants_statistics
from .lean import lean_solve
from .settings import SolverSettings
from .solve_result import SolveResult, short_of_tolerance

# Fits that follow each other in one thread and share what they can: the same whatever the number of threads.
_CHUNK = 16
# Entries of X that results may keep, until all of what they say is made: that takes up to a third as long as a fit.
_MOST_ENTRIES = 2**25
_MOST_SEEDS = np.iinfo(np.int64).max


def solve_many(
    X: Any,
    Y: Any,
    lam: Any,
    *,
    loss: Any = "squared",
    fit_intercept: bool = False,
    sample_weight: Any = None,
    subsamples: Any = None,
    solver: Any = "auto",
    screening: str = "safe",
    tol: float = 1e-6,
    max_iter: int = 10_000,
    B_init: Any = None,
    intercept_init: Any = None,
    random_state: Any = None,
    n_jobs: int | None = None,
) -> list[SolveResult]:
    """Solve many problems with the same X: for the bootstrap, stability selection, knockoffs or permutation tests.

    Each is the problem that :func:`groupowl.solve` solves, and has its own certificate. At least one of ``Y``, ``lam``,
    ``sample_weight`` and ``subsamples`` holds many, one for each fit; the others are the same in all fits. X is checked
    once, fits that differ in ``Y`` or ``lam`` alone share norms and Gram matrices, and threads work side by side where
    the compiled kernel does the work. The results do not depend on their number.

    Parameters
    ----------
    X : array-like, sparse matrix, data frame, design or SufficientStatistics
        Data of shape (n_samples, n_features), as :func:`groupowl.solve` takes them.
    Y : array-like of shape (n_samples,) or (n_samples, n_tasks), or many of them
        Targets. Many are a list of arrays, or an array of shape (n_fits, n_samples, n_tasks).
    lam : array-like of shape (n_features,) or (n_fits, n_features)
        Non-increasing, non-negative weights, not all zero.
    loss : {"squared", "multinomial", "logistic", "poisson", "huber"} or Loss, default="squared"
        Loss of all fits.
    fit_intercept : bool, default=False
        Whether to fit an unpenalized intercept.
    sample_weight : array-like of shape (n_samples,) or (n_fits, n_samples), default=None
        Non-negative weights; 2 is the same as the sample twice, 0 as no sample.
    subsamples : sequence of n_fits arrays, default=None
        In place of weights: indices of samples, of which one that occurs twice counts twice, or masks.
    solver : {"auto", "apgd", "spgd"} or solver object, default="auto"
        Solver of all fits.
    screening : {"safe", "paper", "none"}, default="safe"
        Rule that proves rows to be zero and removes them.
    tol : float, default=1e-6
        Each fit stops when its duality gap is at most ``tol`` times the loss of its model without features.
    max_iter : int, default=10000
        Maximum number of proximal steps of each fit.
    B_init : array-like of shape (n_features,) or (n_features, n_tasks), default=None
        Where fits start, for example the solution for all samples. Zero by default; fits that differ in ``lam`` alone
        may start from one before.
    intercept_init : array-like of shape (n_tasks,), default=None
        Intercept to start from.
    random_state : int, Generator, RandomState or None, default=None
        Seed of stochastic solvers.
    n_jobs : int or None, default=None
        Number of threads; None means 1, or the number in joblib's context, and -1 one per processor. Where X is on disk
        or on a cluster, fits follow each other.

    Returns
    -------
    list of SolveResult
        One for each fit. What several fits share is in none of their ``n_passes`` and ``seconds``.

    Warns
    -----
    ConvergenceWarning
        Once, when fits stop before the gap meets the tolerance; each result says why and where.

    Examples
    --------
    How often is a feature selected, if half of the samples are drawn 50 times?

    >>> import numpy as np
    >>> import groupowl as go
    >>> data = go.datasets.make_correlated_groups(60, 200, 3, n_informative=3, random_state=0)
    >>> lam = 0.3 * go.lam_max(data.X, data.Y, "oscar") * go.weights.oscar(200)
    >>> rng = np.random.default_rng(0)
    >>> halves = [rng.choice(60, 30, replace=False) for _ in range(50)]
    >>> results = go.solve_many(data.X, data.Y, lam, subsamples=halves, n_jobs=2)
    >>> all(result.converged for result in results)
    True
    >>> frequency = np.mean([result.B.any(axis=1) for result in results], axis=0)
    >>> frequency.shape, bool(frequency.max() > 0.9)
    ((200,), True)
    """
    settings = check_settings(solver, screening, tol, max_iter, None, random_state)
    n_threads = count_threads(check_jobs(n_jobs))
    many = {
        "Y": _many("Y", Y, 2),
        "lam": _many("lam", lam, 1),
        "sample_weight": _many("sample_weight", sample_weight, 1),
        "subsamples": _list_of_samples(subsamples),
    }
    n_fits = _number_of_fits(many, Y, sample_weight)
    with blas_threads(X, are_taken=n_threads > 1):
        design = as_design(X)
        check = _Checks(design, resolve_loss(loss))
        lams = check.each(check.lam, "lam", lam, many["lam"])
        weights = check.each(check.weight, "sample_weight", sample_weight, many["sample_weight"])
        if many["subsamples"] is not None:
            weights = check.each(check.counts, "subsamples", None, many["subsamples"])
        fits = _Fits(
            design,
            check.loss,
            truth_value("fit_intercept", fit_intercept),
            check.each(check.targets, "Y", Y, many["Y"]),
            weights,
            lams,
            GroupOWL(lams[0]),
            (B_init, intercept_init),
            settings,
            settings.rng.integers(_MOST_SEEDS, size=n_fits).tolist(),
        )
        chunks = [range(first, min(first + _CHUNK, n_fits)) for first in range(0, n_fits, _CHUNK)]
        found = run_in_threads(fits.run, chunks, min(n_threads, len(chunks)) if _is_local(design) else 1)
    results, goals = zip(*chain.from_iterable(found), strict=True)
    short, prefix = short_of_tolerance(results, n_fits, "fits")
    warn_unless_converged(short, goals[results.index(short)], settings, prefix=prefix)
    return list(results)


@dataclass(frozen=True, eq=False)
class _Fits:
    """The fits: of targets, sample weights and OWL weights there is one for each fit, or one for all."""

    design: Design
    loss: Loss
    fit_intercept: bool
    targets: list[Any]
    weights: list[Any]
    lams: list[FloatArray]
    penalty: GroupOWL  # with the first of these
    start: tuple[Any, Any]
    settings: SolverSettings
    seeds: list[int]

    def run(self, chunk: range, stop: Stop) -> list[tuple[SolveResult, float]]:
        """Results of fits that follow each other, and the gaps that they were asked for."""
        n_entries = len(self.weights) * self.design.density * self.design.n_samples * self.design.n_features
        outcomes = {}
        for i in chunk:
            stop()
            small = self._small_fit(i)
            if small is not None:
                outcomes[i] = small, small.gap
        rest = [i for i in chunk if i not in outcomes]
        for i, solves in zip(rest, self._continuations(rest, stop), strict=True):
            stop()
            with _in_fit(i):
                result = solves.solve(_of_fit(i, self.lams))
                if len(self.weights) > 1 and n_entries > _MOST_ENTRIES:
                    _settle(result)
            outcomes[i] = result, solves.problem.goal(self.settings.tol)
        return [outcomes[i] for i in chunk]

    def _small_fit(self, i: int) -> SolveResult | None:
        """A fit of samples that count once or not at all, in one call of the kernel, or None."""
        data = self.design.plain_data() if _is_local(self.design) else None
        weight, Y = _of_fit(i, self.weights), _of_fit(i, self.targets)
        has_start = any(part is not None for part in self.start)
        if data is None or has_start or not np.all((weight == 1.0) | (weight == 0.0)):
            return None
        X, present = data.X, np.flatnonzero(weight)
        if len(present) < len(weight):
            X, Y = X[present], Y[present]
        lam = _of_fit(i, self.lams)
        return lean_solve(X, Y, lam, self.settings, loss=self.loss, fit_intercept=self.fit_intercept)

    def _continuations(self, chunk: list[int], stop: Stop) -> Iterator[Continuation]:
        """Where each fit is solved: on samples of its own, with targets of its own, or where the one before was."""
        settings = replace(self.settings, interrupted=stop)
        design = self.design
        if _is_local(design):
            design = copy(design)
            design.passes = PassCounter()  # which no other thread writes

        def continuation(i: int, problem: Problem, **known: Any) -> Continuation:
            own = replace(settings, rng=np.random.default_rng(self.seeds[i]))
            return Continuation(problem, own, _start(problem, *self.start), **known)

        if not chunk:
            return
        first = chunk[0]
        if len(self.targets) == len(self.weights) == 1:
            solves = continuation(first, self._problem(first, design), n_solves=len(chunk))
            yield from repeat(solves, len(chunk))
        elif len(self.weights) == 1 and _is_local(design):
            problems = smalls = self._with_targets(chunk, design)
            if settings.tol >= GRAM_TOLERANCE and wants_statistics(problems[0], settings.solver, len(chunk)):
                smalls = compressed_together(problems)
            for i, problem, small in zip(chunk, problems, smalls, strict=True):
                yield continuation(i, problem, small=small)
        else:
            for i in chunk:
                yield continuation(i, self._problem(i, design))

    def _problem(self, i: int, design: Design) -> Problem:
        """The problem of a fit; the weights of its penalty follow."""
        Y, weight = _of_fit(i, self.targets), _of_fit(i, self.weights)
        with _in_fit(i):
            if not _is_local(design):
                options = {"loss": self.loss, "fit_intercept": self.fit_intercept, "sample_weight": weight}
                return build_problem(design, Y, LATER, **options)
            present = np.flatnonzero(weight)
            if len(present) < len(weight):
                design, Y, weight = design.rows(present), Y[present], weight[present]
            return problem_of_samples(design, self.loss, Y, weight[:, None], self.penalty, self.fit_intercept)

    def _with_targets(self, chunk: list[int], design: Design) -> list[Problem]:
        """Problems that share all that is known of X."""
        problems = [self._problem(chunk[0], design)]
        present = np.flatnonzero(self.weights[0])
        for i in chunk[1:]:
            with _in_fit(i):
                problems.append(with_targets(problems[0], self.targets[i][present]))
        return problems


def _of_fit(i: int, values: list[Any]) -> Any:
    return values[i] if len(values) > 1 else values[0]


@contextmanager
def _in_fit(i: int) -> Iterator[None]:
    """Errors say which fit they are from."""
    try:
        yield
    except Exception as error:
        error.add_note(f"This was fit {i} of solve_many.")
        raise


def _settle(result: SolveResult) -> None:
    """Make what is made on access, so that a result does not keep the samples that it was fitted to."""
    theta = result.theta
    vars(result).update(result.__getstate__(), theta=theta)


# What users give --------------------------------------------------------------------------------------------


def _is_local(design: Design) -> bool:
    """Whether there are samples and they are in memory; those elsewhere, or statistics, are for one thread."""
    return isinstance(design, LocalDesign) and design.known_statistics is None


def _many(argument: str, values: Any, ndim: int) -> list[Any] | None:
    """The values for each fit, where there are more dimensions than these: an array, or a list of arrays."""
    if isinstance(values, list | tuple):
        if all(len(getattr(value, "shape", ())) for value in values):
            return list(values)
        values = rectangular_array(argument, values)
    return list(values) if len(getattr(values, "shape", ())) > ndim else None


def _list_of_samples(subsamples: Any) -> list[Any] | None:
    if subsamples is None or hasattr(subsamples, "__iter__"):
        return None if subsamples is None else list(subsamples)
    raise TypeError(f"subsamples must be a sequence of indices or masks, one for each fit, got {subsamples!r}.")


def _number_of_fits(many: dict[str, list[Any] | None], Y: Any, sample_weight: Any) -> int:
    lengths = {name: len(values) for name, values in many.items() if values is not None}
    if sample_weight is not None and "subsamples" in lengths:
        raise ValueError(
            "sample_weight and subsamples were both given, and both say how much samples count. Leave one of them out; "
            "weights of the samples in a subsample are sample_weight * np.bincount(indices, minlength=n_samples)."
        )
    if not lengths:
        raise ValueError(
            f"there is one fit only: Y of shape {np.shape(Y)} is one matrix of targets, and lam is one weight vector. "
            "Give a list of targets, for example list(Y.T) for one fit per column; lam or sample_weight with one row "
            "for each fit; or subsamples. For one fit use solve."
        )
    if len(set(lengths.values())) > 1:
        counts = " and ".join(f"{length} of {name}" for name, length in lengths.items())
        raise ValueError(f"there are {counts}. What differs between fits must be given once for each of them.")
    name, n_fits = next(iter(lengths.items()))
    if n_fits == 0:
        raise ValueError(f"{name} is empty: at least one fit is needed.")
    return n_fits


@dataclass(frozen=True)
class _Checks:
    """Checks of arguments, in whose messages they have their names."""

    design: Design
    loss: Loss

    def each(self, check: Callable[[str, Any], Any], name: str, one: Any, many: list[Any] | None) -> list[Any]:
        """What a check makes of the values for each fit, or of the one for all."""
        if many is None:
            return [check(name, one)]
        return [check(f"{name}[{i}]", values) for i, values in enumerate(many)]

    def lam(self, name: str, values: Any) -> FloatArray:
        return check_sequence(name, values, self.design.n_features)

    def targets(self, name: str, values: Any) -> Any:
        """Those of data elsewhere are checked there."""
        if not _is_local(self.design):
            return values
        remedy = "Remove the samples without a target, or use groupowl.solve for each fit, which takes gaps."
        return self.loss.check_targets(check_targets(values, self.design.n_samples, argument=name, remedy=remedy))

    def weight(self, name: str, values: Any) -> Any:
        if not _is_local(self.design):
            return values
        return check_sample_weight(values, self.design.n_samples, name.removeprefix("sample_weight"))

    def counts(self, name: str, values: Any) -> FloatArray:
        """How often each sample is among some indices, or in a mask."""
        remedy = "A list has one set of them for each fit: subsamples=[indices]."
        indices = sample_indices(name, values, self.design.n_samples, remedy)
        if len(indices) == 0:
            raise ValueError(f"{name} is empty: at least one sample is needed.")
        return np.bincount(indices, minlength=self.design.n_samples).astype(np.float64)
