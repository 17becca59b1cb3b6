"""The choice of alpha: paths on all data, fits and scores of the folds or an information criterion, and the best."""

from __future__ import annotations

import numbers
import sys
import time
import warnings
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.parallel import Parallel, delayed

from .._typing import FloatArray, IndexArray
from ..designs import Design, SufficientStatistics, as_design
from ..losses import resolve_loss
from ..model import Model, build_model, relaxed_coefficients
from ..path import PathResult, Solution, fit_path
from ..path.follower import MAX_DEVIANCE, Follower
from ..progress import shown_progress
from ..solvers import SolverSettings
from ..weights import is_list_of_sequences
from .criteria import (
    CRITERIA,
    Likelihood,
    LossScore,
    Score,
    StatisticsScore,
    choose,
    criterion_path,
    mean_scores,
    standard_errors,
)
from .folds import Fold, FoldStatistics, are_complements, fold_statistics, make_folds, statistics_pay, with_statistics

#: Fold scores do not need more digits than this; a looser tol is kept.
FOLD_TOL = 1e-4
# Work has seeds of its own, so that the answer does not depend on the number of jobs.
_MOST_SEEDS = np.iinfo(np.int64).max
# Predictor of a class that a training set does not have: the softmax is exactly zero, in single precision too.
_ABSENT = -1e30


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

    def path(
        self,
        model: Model,
        alphas: FloatArray,
        *,
        seed: int,
        max_deviance: float | None = None,
        verbose: int = 0,
        what: str = "",
    ) -> PathResult:
        """The path of a model, every alpha solved; all alphas unless a deviance ends it."""
        goal = model.problem.goal(self.settings.tol)
        with shown_progress(verbose, goal=goal, what=what, n_alphas=len(alphas)) as line:
            settings = replace(self.settings, callback=line, rng=np.random.default_rng(seed))
            return fit_path(model, alphas, settings, max_deviance=max_deviance)


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
        if resolve_loss(fitting.loss).has_classes and not Y.any(axis=0).all():
            present, n_classes = np.flatnonzero(Y.any(axis=0)), Y.shape[1]
            nothing = Solution(np.zeros(0, dtype=np.intp), np.zeros((0, 1)), np.zeros(1))
            solutions, n_short = [nothing] * len(alphas), 0
            if len(present) > 1:
                solutions, n_short = TrainingSet(X, Y[:, present], weight).fit(fitting, weights, alphas, seed)
            return [_with_classes(solution, present, n_classes) for solution in solutions], n_short
        model = fitting.model(X, Y, weights, weight)
        follower = Follower(model, alphas, replace(fitting.settings, rng=np.random.default_rng(seed)))
        solutions = follower.follow()
        if fitting.relaxed:
            solutions = relaxed_solutions(model, solutions)
        return solutions, follower.n_short


def _with_classes(solution: Solution, present: IndexArray, n_classes: int) -> Solution:
    """The same among more classes; those that are not ``present`` have probability zero."""
    rows = np.zeros((len(solution.support), n_classes))
    intercept = np.full(n_classes, _ABSENT)
    rows[:, present] = solution.rows
    intercept[present] = solution.intercept
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
    return FoldResult(scores, [solution.support for solution in solutions], n_short)


@dataclass(frozen=True, eq=False)
class Choice:
    """What was found for one weight sequence: the path on all data, and what the choice is made from."""

    model: Model
    path: PathResult
    best_index: int
    merit: float  # of the best alpha; sequences are compared by it
    report: dict[str, Any]  # fitted attributes, without the underscore


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
    score : callable or None
        Makes the score of some test samples; None is the score of the loss.
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
    score: Any
    splitter_params: dict[str, Any]
    parts: list[SufficientStatistics]

    def run(self, models: list[Model], grids: list[FloatArray]) -> list[Choice]:
        """Fit the path of each weight sequence on all data, and choose an alpha for each."""
        if self.estimator.selection in CRITERIA:
            paths = self.paths(models, grids)
            return [self.choose_by_criterion(*item) for item in zip(models, paths, strict=True)]
        tasks, fold_weights, total = self._fold_tasks(models[0], len(grids[0]))
        if total is not None:
            models = [with_statistics(model, total, self.fitting.standardize) for model in models]
        paths = self.paths(models, grids)
        settings = self.fitting.settings
        fitting = replace(self.fitting, settings=replace(settings, tol=max(settings.tol, FOLD_TOL)))
        work = []
        for i, (model, path) in enumerate(zip(models, paths, strict=True)):
            for f, task in enumerate(tasks):
                what = self._what(i, f"fold {f + 1}/{len(tasks)}") if self.estimator.verbose else ""
                seed = int(fitting.settings.rng.integers(_MOST_SEEDS))
                work.append(delayed(run_fold)(task, fitting, model.weights, path.alphas, seed, what))
        results = Parallel(n_jobs=self.estimator.n_jobs)(work)
        if n_short := sum(map(attrgetter("n_short"), results)):
            n_fits = sum(len(result.scores) for result in results)
            warnings.warn(
                f"{n_short} of {n_fits} fits of the folds stopped short of their tolerance, "
                f"{fitting.settings.tol:g} of the null model's loss: their scores may be off. "
                f"Raise max_iter={fitting.settings.max_iter}, or rescale the columns of X.",
                ConvergenceWarning,
                stacklevel=3,
            )
        found = []
        for i, (model, path) in enumerate(zip(models, paths, strict=True)):
            of_model = results[i * len(tasks) : (i + 1) * len(tasks)]
            found.append(self._choose_by_scores(model, path, of_model, fold_weights))
        return found

    def folds(self) -> list[Fold]:
        """The folds of the samples."""
        data = self.data
        split = np.zeros((data.n_samples, 1)) if isinstance(data.X, Design) else data.X
        return make_folds(self.estimator.cv, split, self.y, data.classes, self.weight, self.splitter_params)

    def paths(self, models: list[Model], grids: list[FloatArray]) -> list[PathResult]:
        """The path of each model on all data; a grid of our own ends where the deviance is explained."""
        estimator = self.estimator
        max_deviance = MAX_DEVIANCE if isinstance(estimator.alphas, numbers.Integral) else None
        shared = {"max_deviance": max_deviance, "verbose": estimator.verbose}
        work = []
        for i, (model, grid) in enumerate(zip(models, grids, strict=True)):
            seed = int(self.fitting.settings.rng.integers(_MOST_SEEDS))
            what = self._what(i, "all data") if estimator.verbose else ""
            work.append(delayed(self.fitting.path)(model, grid, seed=seed, what=what, **shared))
        return list(Parallel(n_jobs=estimator.n_jobs if len(models) > 1 else 1)(work))

    def choose_by_criterion(self, model: Model, path: PathResult) -> Choice:
        """The alpha of the smallest criterion; a relaxed fit is judged as it is, free on its support."""
        likelihood = Likelihood(
            loss=model.problem.loss,
            n_samples=float(self.weight.sum()),
            n_columns=self.data.n_targets,
            n_penalized=len(model.weights),
            null_loss=model.null_loss,
        )
        free = (model.problem.unpenalized.rank, self.fitting.fit_intercept)
        points = path.points
        if self.fitting.relaxed:
            solutions = relaxed_solutions(model, points)
            losses = {}
            for key, solution in {id(solution): solution for solution in solutions}.items():  # each support once
                B = model.problem.from_input(solution.coef(model.problem.n_rows), solution.intercept)
                losses[key] = model.problem.loss_value(model.problem.predictor(B))
            freedoms = [likelihood.relaxed_freedom(point.n_selected, *free) for point in points]
            fits = zip([losses[id(solution)] for solution in solutions], freedoms, path.n_selected, strict=True)
        else:
            freedoms = [likelihood.shrunken_freedom(point.clusters, *free) for point in points]
            fits = zip(path.losses, freedoms, path.n_selected, strict=True)
        values = criterion_path(self.estimator.selection, likelihood, fits)
        best = int(np.argmin(values))
        report = {"weights": model.weights, "alphas": path.alphas, "best_index": best, "criterion_path": values}
        return Choice(model, path, best, -float(values[best]), report)

    def _choose_by_scores(
        self, model: Model, path: PathResult, results: list[FoldResult], fold_weights: FloatArray
    ) -> Choice:
        scores = np.stack([result.scores for result in results], axis=1)
        means, errors = mean_scores(scores, fold_weights), standard_errors(scores)
        best = choose(self.estimator.selection, means, errors)
        selected = np.concatenate([result.supports[best] for result in results])
        report = {
            "weights": model.weights,
            "alphas": path.alphas,
            "best_index": best,
            "score_path": scores,
            "mean_score_path": means,
            "best_score": float(means[best]),
            "std_error_path": errors,
            "selection_frequency": np.bincount(selected, minlength=model.problem.n_rows),
        }
        return Choice(model, path, best, float(np.nanmax(means)), report)

    def _fold_tasks(
        self, model: Model, n_alphas: int
    ) -> tuple[list[FoldTask], FloatArray, SufficientStatistics | None]:
        """What each fold trains on and what scores it, its weight, and the statistics of all samples if they serve."""
        data = self.data
        folds = [] if self.parts else self.folds()
        statistics = None
        if self.parts:
            statistics = FoldStatistics(data.X, self.parts)
        elif data.is_distributed or (  # a relaxed fit needs columns that rounding has not touched
            not self.fitting.relaxed and statistics_pay(model, self.fitting.settings.solver, folds, n_alphas)
        ):
            statistics = self._statistics(folds)
        scores: list[Score]
        if statistics is None:
            design = as_design(data.X)
            fit_weight = self.weight if data.sample_weight is None else data.sample_weight  # with that of classes
            trainings = [TrainingSet(design, data.Y, fit_weight, fold.train) for fold in folds]
            scores = [LossScore(self.fitting.loss, design, data.Y, self.weight, fold.test) for fold in folds]
        else:
            trainings = [TrainingSet(training) for training in statistics.trainings or []]
            scores = [StatisticsScore(part) for part in statistics.parts]
        if self.score is not None:
            scores = [self.score(fold.test) for fold in folds]
        if self.parts:
            fold_weights = np.array([part.total_weight for part in self.parts])
        else:
            fold_weights = np.array([self.weight[fold.test].sum() for fold in folds])
        total = None if statistics is None else statistics.total
        return list(map(FoldTask, trainings, scores)), fold_weights, total

    def _statistics(self, folds: list[Fold]) -> FoldStatistics | None:
        """Statistics of all folds, or None where they are not reliable; on a cluster nothing else will do."""
        data = self.data
        if data.is_distributed and not are_complements(folds, int(np.count_nonzero(self.weight))):
            raise ValueError(
                "cv must train each fold on all samples that it does not test, as KFold does: on a Dask cluster the "
                "statistics of what is left are those of all samples less those of the fold."
            )
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
