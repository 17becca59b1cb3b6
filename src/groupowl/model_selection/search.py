"""The choice of alpha: paths on all data, fits and scores of the folds or an information criterion, and the best."""

from __future__ import annotations

import numbers
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.parallel import Parallel, delayed

from .._typing import FloatArray, IndexArray
from ..designs import Design, SufficientStatistics, as_design
from ..losses import resolve_loss
from ..model import Model, build_model, relaxed_coefficients
from ..path import PathResult, Solution, fit_path
from ..path.follower import MAX_DEVIANCE, Follower
from ..solvers import SolverSettings
from ..weights import is_list_of_sequences
from .criteria import CRITERIA, Likelihood, criterion_path
from .folds import Fold, FoldStatistics, are_complements, fold_statistics, make_folds, statistics_pay, with_statistics

#: Rules that choose from the scores of folds.
FOLD_RULES = ("min", "1se")
#: Fold scores do not need more digits than this; a looser tol is kept.
FOLD_TOL = 1e-4
# Work has seeds of its own, so that the answer does not depend on the number of jobs.
_MOST_SEEDS = np.iinfo(np.int64).max
# Predictor of a class that a training set does not have: the softmax is exactly zero, in single precision too.
_ABSENT = -1e30

#: Scores for solutions, at these alphas, with this weight sequence, on some test samples; higher is better.
Score = Callable[[list[Solution], FloatArray, FloatArray], FloatArray]


@dataclass(frozen=True, eq=False)
class Fitting:
    """How models are fitted, whatever the samples."""

    loss: Any
    fit_intercept: bool
    standardize: bool
    unpenalized: IndexArray
    settings: SolverSettings
    relaxed: bool = False

    def model(self, X: Any, Y: Any, weights: Any, sample_weight: Any) -> Model:
        """The model of some samples."""
        return build_model(
            X,
            Y,
            loss=self.loss,
            weights=weights,
            fit_intercept=self.fit_intercept,
            standardize=self.standardize,
            sample_weight=sample_weight,
            unpenalized=self.unpenalized,
        )


# One fold -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class TrainingSet:
    """What a fold trains on: all samples of a design or some rows of it, or their sufficient statistics alone."""

    X: Any
    Y: Any = None
    sample_weight: Any = None
    rows: Any = None

    def fit(self, fitting: Fitting, weights: FloatArray, alphas: FloatArray, seed: int) -> tuple[list[Solution], int]:
        """A solution for each alpha, and how many fits fell short of the tolerance."""
        X, Y, weight = self.X, self.Y, self.sample_weight
        if self.rows is not None:
            X, Y, weight = X.rows(self.rows), Y[self.rows], weight[self.rows]
        is_present = None
        if resolve_loss(fitting.loss).has_classes and not Y.any(axis=0).all():
            is_present = Y.any(axis=0)
            Y = Y[:, is_present]
            if Y.shape[1] == 1:
                nothing = Solution(np.zeros(0, dtype=np.intp), np.zeros((0, 1)), np.zeros(1))
                return [_with_classes(nothing, is_present)] * len(alphas), 0
        model = fitting.model(X, Y, weights, weight)
        follower = Follower(model, alphas, replace(fitting.settings, rng=np.random.default_rng(seed)))
        solutions = follower.follow()
        if fitting.relaxed:
            solutions = relaxed_solutions(model, solutions)
        if is_present is not None:
            solutions = [_with_classes(solution, is_present) for solution in solutions]
        return solutions, follower.n_short


def _with_classes(solution: Solution, is_present: Any) -> Solution:
    """The same among all classes; those that are not there have probability zero."""
    rows = np.zeros((len(solution.support), len(is_present)))
    rows[:, is_present] = solution.rows
    intercept = np.full(len(is_present), _ABSENT)
    intercept[is_present] = solution.intercept
    return Solution(solution.support, rows, intercept)


def relaxed_solutions(model: Model, solutions: Any) -> list[Solution]:
    """Each solution fitted anew to its support, each support once."""
    known: dict[bytes, Solution] = {}
    for solution in solutions:
        key = solution.support.tobytes()
        if key not in known:
            B, intercept, _ = relaxed_coefficients(model, solution.support, judge=False)
            known[key] = Solution(solution.support, B[solution.support], intercept)
    return [known[solution.support.tobytes()] for solution in solutions]


@dataclass(frozen=True, eq=False)
class LossScore:
    """The score of the loss itself on some samples; the design is that of all samples.

    The metrics of scikit-learn give the same numbers, but need the samples in memory and take 2 to 100 times as long.
    """

    loss: Any
    design: Design
    Y: FloatArray
    sample_weight: FloatArray
    rows: IndexArray

    @np.errstate(all="ignore")  # a score that overflows is infinite
    def __call__(self, solutions: list[Solution], alphas: FloatArray, weights: FloatArray) -> FloatArray:
        """Score by one product with the test samples for each solution."""
        loss = resolve_loss(self.loss)
        design = self.design.rows(self.rows)
        weight = self.sample_weight[self.rows]
        Y, w = design.samples(self.Y[self.rows]), design.samples((weight / weight.sum())[:, None])
        scores = np.empty(len(solutions))
        for i, solution in enumerate(solutions):
            Z = design.matmul(solution.coef(design.n_features), solution.intercept)
            scores[i] = design.reduce(loss.score, Z, Y, w)
        return scores


@dataclass(frozen=True, eq=False)
class StatisticsScore:
    """Minus the mean squared error of samples that are known by their statistics."""

    part: SufficientStatistics

    @np.errstate(all="ignore")  # a score that overflows is infinite
    def __call__(self, solutions: list[Solution], alphas: FloatArray, weights: FloatArray) -> FloatArray:
        """Score without a look at the data."""
        return -np.array([mean_squared_error(self.part, solution) for solution in solutions])


def mean_squared_error(part: SufficientStatistics, solution: Solution) -> float:
    """``sum_i w_i ||y_i - b0 - x_i B||^2 / (W q)``: a part about the means, and one for the distance of the means."""
    chosen, B = solution.support, solution.rows
    explained = 2.0 * part.xy[chosen] - part.gram[np.ix_(chosen, chosen)] @ B
    about_means = np.maximum(part.yy - np.einsum("jk,jk->k", explained, B), 0.0) / part.total_weight
    shift = part.y_mean - solution.intercept - part.x_mean[chosen] @ B
    return float(np.mean(about_means + shift**2))


@dataclass(frozen=True, eq=False)
class FoldTask:
    """One training set, one weight sequence: the unit of work of cross-validation."""

    training: TrainingSet
    score: Score


@dataclass(frozen=True, eq=False)
class FoldResult:
    """What a fold found.

    Attributes
    ----------
    scores : ndarray of shape (n_alphas,)
    supports : list of ndarray of int
        Features with coefficients, for each alpha.
    n_short : int
        Fits that fell short of the tolerance.
    """

    scores: FloatArray
    supports: list[IndexArray]
    n_short: int


def run_fold(
    task: FoldTask, fitting: Fitting, weights: FloatArray, alphas: FloatArray, seed: int, what: str = ""
) -> FoldResult:
    """Fit the path of a fold and score it; ``what`` is printed with the time it took."""
    started = time.perf_counter()
    solutions, n_short = task.training.fit(fitting, weights, alphas, seed)
    scores = task.score(solutions, alphas, weights)
    if what:
        print(f"{what}: {len(alphas)} alphas, {time.perf_counter() - started:.1f} s", file=sys.stderr, flush=True)
    return FoldResult(scores, list(map(attrgetter("support"), solutions)), n_short)


# From the scores of folds to one alpha ------------------------------------------------------------------


@np.errstate(all="ignore")  # scores that are not finite have means that are not
def mean_scores(scores: FloatArray, fold_weights: FloatArray) -> FloatArray:
    """Mean over folds for each alpha, weighted by the weight of the test samples."""
    shares = fold_weights / fold_weights.max()
    return scores @ (shares / shares.sum())


@np.errstate(all="ignore")
def standard_errors(scores: FloatArray) -> FloatArray:
    """Standard deviation over folds (ddof 1) divided by the root of their number; NaN for a single fold."""
    n_alphas, n_folds = scores.shape
    if n_folds < 2:
        return np.full(n_alphas, np.nan)
    size = np.abs(scores).max(axis=1, keepdims=True)
    size[(size == 0.0) | ~np.isfinite(size)] = 1.0
    deviations = size[:, 0] * np.std(scores / size, axis=1, ddof=1)  # squares of large scores would overflow
    return deviations / np.sqrt(n_folds)


@np.errstate(all="ignore")
def choose(selection: str, means: FloatArray, errors: FloatArray) -> int:
    """Index of the chosen alpha; alphas fall, and of equal scores the largest alpha counts.

    "min" takes the best mean score, "1se" the largest alpha whose mean score is within one standard error of it.
    """
    if np.isnan(means).all():
        raise ValueError(
            "every mean score is NaN: scoring is not defined on the test samples of some fold. Choose another scoring, "
            "or folds that have all classes."
        )
    best = int(np.nanargmax(means))
    if selection == "min":
        return best
    if np.isnan(errors[best]):
        raise ValueError("selection='1se' needs at least two folds with test samples of positive weight.")
    return int(np.flatnonzero(means >= means[best] - errors[best])[0])


def score_report(selection: str, scores: FloatArray, means: FloatArray) -> dict[str, Any]:
    """Scores of folds, of shape (n_alphas, n_folds), their means and errors, and the alpha that they choose."""
    errors = standard_errors(scores)
    best = choose(selection, means, errors)
    return {
        "best_index": best,
        "score_path": scores,
        "mean_score_path": means,
        "best_score": float(means[best]),
        "std_error_path": errors,
    }


class Choice(NamedTuple):
    """What was found for one weight sequence: the path on all data, and what the choice is made from."""

    model: Model
    path: PathResult
    report: dict[str, Any]  # fitted attributes, without the underscore


def merit(report: dict[str, Any]) -> float:
    """What weight sequences are compared by."""
    if "criterion_path" in report:
        return -float(np.min(report["criterion_path"]))
    return float(np.nanmax(report["mean_score_path"]))


@dataclass(frozen=True, eq=False)
class Search:
    """All that a search for alpha works with, whatever decides.

    Attributes
    ----------
    estimator : GroupOWLBase
        Whose parameters say what to search; it stays as it is.
    data : FitData
        The samples.
    weight : ndarray of shape (n_samples,)
        Of the samples as the user gave it, for scores.
    y : ndarray
        Targets or labels, for splitters.
    fitting : Fitting
        Of the fits on all data.
    models, grids : list
        The model of all data for each weight sequence, and its alphas.
    score : callable or None
        Gives test samples and solutions scores; None is the score of the loss.
    splitter_params : dict
        Arguments of the splitter.
    parts : list of SufficientStatistics
        Of each fold, where they were given in place of samples.
    """

    estimator: Any
    data: Any
    weight: FloatArray
    y: Any
    fitting: Fitting
    models: list[Model]
    grids: list[FloatArray]
    score: Any
    splitter_params: dict[str, Any]
    parts: list[SufficientStatistics]

    def run(self) -> list[Choice]:
        """Fit the path of each weight sequence on all data, and choose an alpha for each."""
        models = self.models
        if self.estimator.selection in CRITERIA:
            return [Choice(*item, self.criterion_report(*item)) for item in zip(models, self.paths(), strict=True)]
        tasks, fold_weights, total = self._fold_tasks()
        if total is not None:
            models = [with_statistics(model, total, self.fitting.standardize) for model in models]
        paths = replace(self, models=models).paths()
        settings = self.fitting.settings
        fitting = replace(self.fitting, settings=replace(settings, tol=max(settings.tol, FOLD_TOL)))
        work = []
        for i, (model, path) in enumerate(zip(models, paths, strict=True)):
            for f, task in enumerate(tasks):
                what = self._what(i, f"fold {f + 1}/{len(tasks)}") if self.estimator.verbose else ""
                seed = int(settings.rng.integers(_MOST_SEEDS))
                work.append(delayed(run_fold)(task, fitting, model.weights, self.grids[i][: len(path)], seed, what))
        results = Parallel(n_jobs=self.estimator.n_jobs)(work)
        if n_short := sum(map(attrgetter("n_short"), results)):
            n_fits = sum(len(result.scores) for result in results)
            warnings.warn(
                f"{n_short} of {n_fits} fits of the folds stopped short of their tolerance, "
                f"{fitting.settings.tol:g} of the null model's loss: their scores may be off. "
                f"Raise max_iter={settings.max_iter}, or rescale the columns of X.",
                ConvergenceWarning,
                stacklevel=3,
            )
        choices = []
        for i, (model, path) in enumerate(zip(models, paths, strict=True)):
            of_model = results[i * len(tasks) : (i + 1) * len(tasks)]
            scores = np.stack(list(map(attrgetter("scores"), of_model)), axis=1)
            report = {"weights": model.weights, "alphas": self.grids[i][: len(path)]}
            report |= score_report(self.estimator.selection, scores, mean_scores(scores, fold_weights))
            frequency = np.zeros(model.problem.n_rows, dtype=np.intp)
            for result in of_model:
                frequency[result.supports[report["best_index"]]] += 1
            choices.append(Choice(model, path, report | {"selection_frequency": frequency}))
        return choices

    def folds(self) -> list[Fold]:
        """The folds of the samples."""
        data = self.data
        split = np.zeros((data.n_samples, 1)) if isinstance(data.X, Design) else data.X
        return make_folds(self.estimator.cv, split, self.y, data.classes, self.weight, self.splitter_params)

    def paths(self) -> list[PathResult]:
        """The path of each model on all data; a grid of our own ends where the deviance is explained."""
        estimator, settings = self.estimator, self.fitting.settings
        max_deviance = MAX_DEVIANCE if isinstance(estimator.alphas, numbers.Integral) else None
        shared = {"max_deviance": max_deviance, "verbose": estimator.verbose}
        work = []
        for i, (model, grid) in enumerate(zip(self.models, self.grids, strict=True)):
            own = replace(settings, rng=np.random.default_rng(int(settings.rng.integers(_MOST_SEEDS))))
            what = self._what(i, "all data") if estimator.verbose else ""
            work.append(delayed(fit_path)(model, grid, own, what=what, **shared))
        return list(Parallel(n_jobs=estimator.n_jobs if len(self.models) > 1 else 1)(work))

    def criterion_report(self, model: Model, path: PathResult) -> dict[str, Any]:
        """The alpha of the smallest criterion; a relaxed fit is judged as it is, free on its support."""
        problem = model.problem
        likelihood = Likelihood(
            loss=problem.loss,
            n_samples=float(self.weight.sum()),
            n_columns=self.data.n_targets,
            n_penalized=len(model.weights),
            null_loss=model.null_loss,
        )
        free = (problem.unpenalized.rank, self.fitting.fit_intercept)
        losses: dict[bytes, float] = {}  # of relaxed fits, each support once
        fits = []
        for point in path.points:
            loss, freedom = point.loss, likelihood.shrunken_freedom(point.clusters, *free)
            if self.fitting.relaxed:
                key = point.support.tobytes()
                if key not in losses:
                    B = problem.from_input(*relaxed_coefficients(model, point.support, judge=False)[:2])
                    losses[key] = problem.loss_value(problem.predictor(B))
                loss, freedom = losses[key], likelihood.relaxed_freedom(point.n_selected, *free)
            fits.append((loss, freedom, point.n_selected))
        values = criterion_path(self.estimator.selection, likelihood, fits)
        best = int(np.argmin(values))
        return {"weights": model.weights, "alphas": path.alphas, "best_index": best, "criterion_path": values}

    def _fold_tasks(self) -> tuple[list[FoldTask], FloatArray, SufficientStatistics | None]:
        """What each fold trains on and what scores it, its weight, and the statistics of all samples if they serve."""
        data, fitting = self.data, self.fitting
        if self.parts:
            statistics: FoldStatistics | None = FoldStatistics(data.X, self.parts)
            folds = []
            fold_weights = [part.total_weight for part in self.parts]
        else:
            folds = self.folds()
            statistics = self._statistics(folds)
            fold_weights = [self.weight[fold.test].sum() for fold in folds]
        scores: list[Score]
        if statistics is None:
            design = as_design(data.X)
            fit_weight = self.weight if data.sample_weight is None else data.sample_weight  # with that of classes
            trainings = [TrainingSet(design, data.Y, fit_weight, fold.train) for fold in folds]
            scores = [LossScore(fitting.loss, design, data.Y, self.weight, fold.test) for fold in folds]
        else:
            trainings = [TrainingSet(training) for training in statistics.trainings or []]
            scores = [StatisticsScore(part) for part in statistics.parts]
        if self.score is not None:
            scores = [partial(self.score, fold.test) for fold in folds]
        total = None if statistics is None else statistics.total
        return list(map(FoldTask, trainings, scores)), np.array(fold_weights), total

    def _statistics(self, folds: list[Fold]) -> FoldStatistics | None:
        """Statistics of all folds, or None where they do not pay or are not reliable; on a cluster they must do."""
        data, fitting = self.data, self.fitting
        if data.is_distributed:
            if not are_complements(folds, int(np.count_nonzero(self.weight))):
                raise ValueError(
                    "cv must train each fold on all samples that it does not test, as KFold does: on a Dask cluster "
                    "the statistics of what is left are those of all samples less those of the fold."
                )
        elif fitting.relaxed or not statistics_pay(self.models[0], fitting.settings.solver, folds, len(self.grids[0])):
            return None  # a relaxed fit needs columns that rounding has not touched
        weight = self.weight / self.weight.max()  # only ratios count, and products of the largest weights may overflow
        statistics = fold_statistics(data.X, data.Y, weight, folds)
        if statistics.are_reliable():
            return statistics
        if data.is_distributed:
            raise ValueError(
                "the statistics of some folds are lost in the rounding of those of all samples: the sizes of the "
                "samples are too different. Rescale X and y, shuffle the samples, or use data in memory."
            )
        return None

    def _what(self, sequence: int, part: str) -> str:
        """The beginning of a line of progress: estimator, weight sequence if there are several, part of the work."""
        name, weights = type(self.estimator).__name__, self.estimator.weights
        if not is_list_of_sequences(weights) or len(weights) == 1:
            return f"{name}, {part}"
        known = f" ({weights[sequence]})" if isinstance(weights[sequence], str) else ""
        return f"{name}, weights {sequence + 1}/{len(weights)}{known}, {part}"
