"""The choice of alpha by cross-validation: folds are fitted and scored."""

from __future__ import annotations

import sys
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.parallel import Parallel, delayed

from .._typing import FloatArray, IndexArray
from ..designs import as_design
from ..model import Model
from ..model_selection import (
    Fitting,
    Fold,
    FoldResult,
    FoldStatistics,
    FoldTask,
    LossScore,
    Score,
    StatisticsScore,
    TrainingRows,
    TrainingStatistics,
    are_complements,
    choose,
    fold_statistics,
    mean_scores,
    run_fold,
    standard_errors,
    statistics_pay,
    with_statistics,
)
from ..path import PathFit
from .scorers import ScorerScore
from .searching import Job, Searched, full_paths

#: Fold scores do not need more digits than this; a looser tol is kept.
FOLD_TOL = 1e-4


def search_folds(
    job: Job,
    models: list[Model],
    grids: list[FloatArray],
    folds: list[Fold],
    statistics: FoldStatistics | None = None,
) -> list[Searched]:
    """Fit and score all folds with each weight sequence, and choose an alpha for each.

    Folds that are known by their statistics only are given as such.
    """
    fold_weights = np.array([job.weight[fold.test].sum() for fold in folds])
    if statistics is None:
        statistics = _statistics(job, models[0], folds, len(grids[0]))
    else:
        fold_weights = np.array([part.total_weight for part in statistics.parts])
    if statistics is not None:
        models = [with_statistics(model, statistics.total, job.fitting.standardize) for model in models]
    paths = full_paths(job, models, grids)
    tasks = _tasks(job, folds, statistics)
    fitting = replace(job.fitting, tol=max(job.fitting.tol, FOLD_TOL))
    seeds = iter(job.seeds(len(models) * len(tasks)))
    results = Parallel(n_jobs=job.estimator.n_jobs)(
        delayed(_run_fold)(task, fitting, model.weights, path.alphas, next(seeds), _label(job, i, f, len(tasks)))
        for i, (model, path) in enumerate(zip(models, paths, strict=True))
        for f, task in enumerate(tasks)
    )
    _warn_of_short_folds(results, fitting)
    return [
        _searched(job, model, path, results[i * len(tasks) : (i + 1) * len(tasks)], fold_weights)
        for i, (model, path) in enumerate(zip(models, paths, strict=True))
    ]


def _searched(job: Job, model: Model, path: PathFit, results: list[FoldResult], fold_weights: FloatArray) -> Searched:
    scores = np.stack([result.scores for result in results], axis=1)
    means, errors = mean_scores(scores, fold_weights), standard_errors(scores)
    best = choose(job.estimator.selection, means, errors)
    frequency = _selection_frequency([result.supports[best] for result in results], model)
    attributes = {
        "score_path": scores,
        "mean_score_path": means,
        "best_score": float(means[best]),
        "std_error_path": errors,
        "selection_frequency": frequency,
    }
    return Searched(model, path, best, float(np.nanmax(means)), attributes)


def _selection_frequency(supports: list[IndexArray], model: Model) -> IndexArray:
    return np.bincount(np.concatenate(supports), minlength=model.problem.n_rows)


def _tasks(job: Job, folds: list[Fold], statistics: FoldStatistics | None) -> list[FoldTask]:
    if statistics is None:
        design = as_design(job.data.X)
        trainings: list[Any] = [TrainingRows(design, job.data.Y, job.fit_weight, fold.train) for fold in folds]
    else:
        trainings = [TrainingStatistics(training) for training in statistics.trainings or []]
    scores: list[Score]
    if job.scorer is not None:
        scores = [ScorerScore.of(job, fold.test) for fold in folds]
    elif statistics is None:
        scores = [LossScore(job.fitting.loss, design, job.data.Y, job.weight, fold.test) for fold in folds]
    else:
        scores = [StatisticsScore(part) for part in statistics.parts]
    return [FoldTask(training, score) for training, score in zip(trainings, scores, strict=True)]


def _statistics(job: Job, model: Model, folds: list[Fold], n_alphas: int) -> FoldStatistics | None:
    """Statistics of all folds where they pay; a relaxed fit needs columns that rounding has not touched."""
    data = job.data
    forced = data.is_distributed
    if not forced and (job.fitting.relaxed or not statistics_pay(model, job.settings.solver, folds, n_alphas)):
        return None
    if forced and not are_complements(folds, int(np.count_nonzero(job.weight))):
        raise ValueError(
            "cv must train each fold on all samples that it does not test, as KFold does: on a Dask cluster the "
            "statistics of what is left are those of all samples less those of the fold."
        )
    weight = job.weight / job.weight.max()  # only ratios count, and products of the largest weights may overflow
    found = fold_statistics(data.X, data.Y, weight, folds)
    if found.are_reliable():
        return found
    if forced:
        raise ValueError(
            "the statistics of some folds are lost in the rounding of those of all samples: the sizes of the samples "
            "are too different. Rescale X and y, shuffle the samples, or use data in memory."
        )
    return None


def _label(job: Job, sequence: int, fold: int, n_folds: int) -> str:
    """What to print when a fold is done; nothing by default."""
    return job.what(sequence, f"fold {fold + 1}/{n_folds}") if job.estimator.verbose else ""


def _run_fold(
    task: FoldTask, fitting: Fitting, weights: FloatArray, alphas: FloatArray, seed: int, label: str
) -> FoldResult:
    result = run_fold(task, fitting, weights, alphas, seed)
    if label:
        print(f"{label}: {len(alphas)} alphas, {result.seconds:.1f} s", file=sys.stderr, flush=True)
    return result


def _warn_of_short_folds(results: list[FoldResult], fitting: Fitting) -> None:
    n_short = sum(result.n_short for result in results)
    if n_short:
        n_fits = sum(len(result.scores) for result in results)
        warnings.warn(
            f"{n_short} of {n_fits} fits of the folds stopped short of their tolerance, {fitting.tol:g} of the null "
            f"model's loss: their scores may be off. Raise max_iter={fitting.max_iter}, or rescale the columns of X.",
            ConvergenceWarning,
            stacklevel=5,
        )
