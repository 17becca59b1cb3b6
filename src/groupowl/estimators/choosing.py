"""The choice of alpha, and of the weight sequence if there are several: fit, score, choose, fit again."""

from __future__ import annotations

import numbers
import sys
import warnings
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from sklearn import get_config
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.parallel import Parallel, delayed

from .._checks import check_sample_weight
from .._typing import FloatArray, IndexArray
from ..designs import as_design
from ..model import Model
from ..path import PathFit, PathResult, resolve_alphas
from ..path.fitting import MAX_DEVIANCE, short_of_tolerance
from ..progress import progress_callback
from ..selection import (
    CRITERIA,
    FOLD_RULES,
    Candidate,
    Evidence,
    Fitting,
    Fold,
    FoldResult,
    FoldStatistics,
    FoldTask,
    Likelihood,
    LossScore,
    Score,
    StatisticsScore,
    TrainingRows,
    TrainingStatistics,
    choose,
    criterion_path,
    fold_statistics,
    mean_scores,
    relaxed_candidates,
    run_fold,
    standard_errors,
    statistics_pay,
    with_statistics,
)
from ..solvers import SolveResult, warn_unless_converged
from ..weights import resolve_weights
from .base import FitData, GroupOWLBase, Settings
from .scorers import ScorerScore, resolve_scorer, takes_sample_weight
from .splits import make_folds

# Fold scores do not need more digits than this; a looser tol is kept.
_FOLD_TOL = 1e-4
# The last fit is one of hundreds: some more digits cost next to nothing, and leave less to chance than the gap allows.
_POLISH_FACTOR = 1e-3
_POLISH_STEPS = 500


@dataclass(frozen=True, eq=False)
class _Searched:
    """What was found for one weight sequence: the path on all data, and what the choice is made from."""

    model: Model
    path: PathFit
    best_index: int
    merit: float  # of the best alpha; sequences are compared by it
    attributes: dict[str, Any]  # fitted attributes, without the underscore

    def report(self) -> dict[str, Any]:
        """What ``search_results_`` says of the sequence."""
        common = {"weights": self.model.weights, "alphas": self.path.alphas, "best_index": self.best_index}
        return common | self.attributes


@dataclass(frozen=True, eq=False)
class _Job:
    """All of a fit but the weight sequence."""

    data: FitData
    weight: FloatArray  # of the samples as the user gave it, for scores
    y: Any  # targets or labels, for scorers
    settings: Settings
    fitting: Fitting
    scorer: Any
    scorer_params: dict[str, Any]

    @property
    def fit_weight(self) -> FloatArray:
        """Weights of the samples for fits, those of classes included."""
        return self.weight if self.data.sample_weight is None else self.data.sample_weight


class CrossValidatedFit(GroupOWLBase):
    """``fit`` of the estimators that choose alpha; a subclass names the estimator of one alpha."""

    _single: Any

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **params: Any) -> Self:
        """Choose alpha and fit the model to all data.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_samples, n_features)
            Data. float32 stays float32, sparse data stay sparse.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Targets, or one label per sample for classification.
        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative weights, in fits and in scores; 2 is the same as the sample twice (in the same fold), 0 as no
            sample.
        **params : dict
            ``groups``, for splitters that keep groups of samples together. With scikit-learn's metadata routing
            enabled: whatever splitter and scorer request.

        Returns
        -------
        self
            The fitted estimator. A fit that fails or is interrupted leaves an earlier one as it was.

        Warns
        -----
        ConvergenceWarning
            When fits on all data, or fits of folds, fall short of their tolerance.
        """
        self._check_selection()
        settings, scorer = self._settings(), resolve_scorer(self.scoring, self._loss)
        splitter_params, scorer_params = self._routed_params(scorer, sample_weight, params)
        data = self._validate_fit(X, y, sample_weight)
        weight = check_sample_weight(sample_weight, data.n_samples)
        labels = _plain_targets(data, y)
        job = _Job(data, weight, labels, settings, self._fitting(data, settings), scorer, scorer_params)
        models = self._models(data)
        grids = [resolve_alphas(self.alphas, self.eps, model) for model in models]
        if self.selection in CRITERIA:
            searched = self._search_criterion(job, models, grids)
        else:
            folds = make_folds(self.cv, data.X, labels, data.classes, weight, splitter_params)
            searched = self._search_folds(job, models, grids, folds)
        best = max(searched, key=lambda found: found.merit)
        point, goal = best.path.points[best.best_index], settings.tol * best.model.null_loss
        result = self._final_fit(best.model, point.alpha, settings)
        short, prefix = short_of_tolerance(best.path.points, len(best.path.points), "alphas") or (result, "")
        warn_unless_converged(short, goal, settings.tol, settings.max_iter, prefix=prefix)
        return self._store(data, best.model, result, point.alpha, **self._chosen_attributes(data, best, searched))

    def get_metadata_routing(self) -> MetadataRouter:
        """Which metadata go where: sample weights to this estimator, others to splitter and scorer.

        Returns
        -------
        MetadataRouter
        """
        router = MetadataRouter(owner=type(self).__name__).add_self_request(self)
        router.add(splitter=self.cv, method_mapping=MethodMapping().add(caller="fit", callee="split"))
        if self.scoring is not None:
            scorer = resolve_scorer(self.scoring)
            router.add(scorer=scorer, method_mapping=MethodMapping().add(caller="fit", callee="score"))
        return router

    # What a fit needs -------------------------------------------------------------------------------

    def _check_selection(self) -> None:
        if self.selection not in (*FOLD_RULES, *CRITERIA):
            known = ", ".join(repr(name) for name in (*FOLD_RULES, *CRITERIA))
            raise ValueError(f"selection must be one of {known}; got {self.selection!r}.")

    def _routed_params(
        self, scorer: Any, sample_weight: Any, params: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Arguments for the splitter and for the scorer."""
        if get_config()["enable_metadata_routing"]:
            routed = process_routing(self, "fit", sample_weight=sample_weight, **params)
            return dict(routed.splitter.split), {} if scorer is None else dict(routed.scorer.score)
        if unknown := sorted(set(params) - {"groups"}):
            raise TypeError(
                f"fit() got the unknown argument {unknown[0]!r}: besides X, y and sample_weight it takes groups. "
                "Others need sklearn.set_config(enable_metadata_routing=True)."
            )
        has_weight = sample_weight is not None and scorer is not None and takes_sample_weight(scorer)
        return params, {"sample_weight": sample_weight} if has_weight else {}

    def _fitting(self, data: FitData, settings: Settings) -> Fitting:
        return Fitting(
            loss=self._loss,
            fit_intercept=bool(self.fit_intercept),
            standardize=bool(self.standardize),
            unpenalized=data.unpenalized,
            solver=settings.solver,
            rule=settings.rule,
            tol=settings.tol,
            max_iter=settings.max_iter,
            relaxed=bool(self.relaxed),
        )

    def _models(self, data: FitData) -> list[Model]:
        """The model of all data for each weight sequence."""
        first, *others = weight_sequences(self.weights)
        model = self._build_model(data, first)
        sizes = {
            "n_features": len(model.weights),
            "n_tasks": model.problem.targets.n_tasks,
            "n_samples": model.problem.design.n_samples,
        }
        return [model, *(replace(model, weights=resolve_weights(spec, **sizes)) for spec in others)]

    def _full_paths(self, job: _Job, models: list[Model], grids: list[FloatArray]) -> list[PathFit]:
        """The path of each model on all data; a grid of our own ends where the deviance is explained."""
        max_deviance = MAX_DEVIANCE if isinstance(self.alphas, numbers.Integral) else None
        arguments = [
            (job.fitting, model, grid, seed, max_deviance, self.verbose, type(self).__name__)
            for model, grid, seed in zip(models, grids, _seeds(job, len(models)), strict=True)
        ]
        if len(arguments) == 1:
            return [_full_path(*arguments[0])]
        return list(Parallel(n_jobs=self.n_jobs)(delayed(_full_path)(*item) for item in arguments))

    # Folds ------------------------------------------------------------------------------------------

    def _search_folds(
        self, job: _Job, models: list[Model], grids: list[FloatArray], folds: list[Fold]
    ) -> list[_Searched]:
        statistics = _statistics(job, models[0], folds, len(grids[0]))
        if statistics is not None:
            models = [with_statistics(model, statistics.total, job.fitting.standardize) for model in models]
        paths = self._full_paths(job, models, grids)
        tasks = self._tasks(job, folds, statistics)
        fitting = replace(job.fitting, tol=max(job.fitting.tol, _FOLD_TOL))
        seeds = iter(_seeds(job, len(models) * len(tasks)))
        results = Parallel(n_jobs=self.n_jobs)(
            delayed(_run_fold)(task, fitting, model.weights, path.alphas, next(seeds), label)
            for model, path in zip(models, paths, strict=True)
            for task, label in zip(tasks, self._labels(len(tasks)), strict=True)
        )
        _warn_of_short_folds(results, fitting)
        fold_weights = np.array([job.weight[fold.test].sum() for fold in folds])
        return [
            self._searched(model, path, results[i * len(folds) : (i + 1) * len(folds)], fold_weights)
            for i, (model, path) in enumerate(zip(models, paths, strict=True))
        ]

    def _searched(self, model: Model, path: PathFit, results: list[FoldResult], fold_weights: FloatArray) -> _Searched:
        scores = np.stack([result.scores for result in results], axis=1)
        means, errors = mean_scores(scores, fold_weights), standard_errors(scores)
        best = choose(self.selection, means, errors)
        frequency = _selection_frequency([result.supports[best] for result in results], model)
        attributes = {
            "score_path": scores,
            "mean_score_path": means,
            "std_error_path": errors,
            "selection_frequency": frequency,
        }
        return _Searched(model, path, best, float(np.nanmax(means)), attributes)

    def _tasks(self, job: _Job, folds: list[Fold], statistics: FoldStatistics | None) -> list[FoldTask]:
        if statistics is None:
            design = as_design(job.data.X)
            trainings: list[Any] = [TrainingRows(design, job.data.Y, job.fit_weight, fold.train) for fold in folds]
        else:
            trainings = [TrainingStatistics(statistics.total, part) for part in statistics.parts]
        scores: list[Score]
        if job.scorer is not None:
            scores = [self._scorer_score(job, fold) for fold in folds]
        elif statistics is None:
            scores = [LossScore(job.fitting.loss, design, job.data.Y, job.weight, fold.test) for fold in folds]
        else:
            scores = [StatisticsScore(part) for part in statistics.parts]
        return [FoldTask(training, score) for training, score in zip(trainings, scores, strict=True)]

    def _scorer_score(self, job: _Job, fold: Fold) -> ScorerScore:
        names = self._single().get_params()
        single = self._single(**{name: value for name, value in self.get_params().items() if name in names})
        return ScorerScore(job.scorer, single, job.data, job.y, fold.test, job.scorer_params)

    def _labels(self, n_folds: int) -> list[str]:
        """What to print when a fold is done; nothing by default."""
        return [f"{type(self).__name__}: fold {i + 1} of {n_folds}" if self.verbose else "" for i in range(n_folds)]

    # Criteria ---------------------------------------------------------------------------------------

    def _search_criterion(self, job: _Job, models: list[Model], grids: list[FloatArray]) -> list[_Searched]:
        paths = self._full_paths(job, models, grids)
        return [self._judged(job, model, path) for model, path in zip(models, paths, strict=True)]

    def _judged(self, job: _Job, model: Model, path: PathFit) -> _Searched:
        likelihood = Likelihood(
            loss=job.fitting.loss,
            n_samples=float(job.weight.sum()),
            n_columns=job.data.Y.shape[1],
            n_penalized=len(model.weights),
            null_loss=model.null_loss,
        )
        values = criterion_path(self.selection, likelihood, _evidence(job.fitting, model, path, likelihood))
        best = int(np.argmin(values))
        return _Searched(model, path, best, -float(values[best]), {"criterion_path": values})

    # The fit ----------------------------------------------------------------------------------------

    def _final_fit(self, model: Model, alpha: float, settings: Settings) -> SolveResult:
        """The fit that the chosen alpha alone would give, and then some more digits where they are to be had."""
        result = self._solve(model, alpha, settings)
        if not result.converged:
            return result
        finer = replace(settings, tol=_POLISH_FACTOR * settings.tol, max_iter=min(_POLISH_STEPS, settings.max_iter))
        polished = self._solve(model, alpha, finer, model.start(result.B.T, result.intercept))
        if polished.gap >= result.gap or polished.B[result.screened_at >= 0].any():
            return result
        return replace(
            result,  # whose history and proofs of zeros stay
            **{name: getattr(polished, name) for name in ("B", "intercept", "primal", "dual", "gap", "clusters")},
            **{name: getattr(result, name) + getattr(polished, name) for name in ("n_iter", "n_passes", "seconds")},
        )

    def _chosen_attributes(self, data: FitData, best: _Searched, searched: list[_Searched]) -> dict[str, Any]:
        path = PathResult.from_fit(
            best.path, best.model, feature_names=data.names, classes=data.classes, target_names=data.target_names
        )
        fitted = {"alphas_": best.path.alphas, "best_index_": best.best_index, "path_": path}
        fitted |= {f"{name}_": value for name, value in best.attributes.items()}
        return fitted | {"search_results_": [found.report() for found in searched]}


def weight_sequences(weights: Any) -> list[Any]:
    """The weight sequences to search: those of a list of names, arrays and functions, or the one that is given."""
    if not isinstance(weights, list | tuple):
        return [weights]
    if len(weights) == 0:
        raise ValueError("weights is an empty list: give one weight sequence, or a list of at least one.")
    return [weights] if isinstance(weights[0], numbers.Real) else list(weights)


def _plain_targets(data: FitData, y: Any) -> Any:
    """Targets or labels as scorers and splitters of scikit-learn expect them."""
    if data.classes is None:
        return data.Y[:, 0] if data.is_flat else data.Y
    labels = np.asarray(y)
    return labels[:, 0] if labels.ndim == 2 else labels


def _seeds(job: _Job, count: int) -> list[int]:
    """Seeds for stochastic solvers: the answer does not depend on the number of jobs."""
    return [int(seed) for seed in job.settings.rng.integers(np.iinfo(np.int64).max, size=count)]


def _statistics(job: _Job, model: Model, folds: list[Fold], n_alphas: int) -> FoldStatistics | None:
    """Statistics of all folds where they pay; a relaxed fit needs columns that rounding has not touched."""
    if job.fitting.relaxed or not statistics_pay(model, job.settings.solver, folds, n_alphas):
        return None
    found = fold_statistics(job.data.X, job.data.Y, job.weight, folds)
    return found if all((found.total - part).is_reliable() for part in found.parts) else None


def _full_path(
    fitting: Fitting, model: Model, alphas: FloatArray, seed: int, max_deviance: float | None, verbose: int, what: str
) -> PathFit:
    line = progress_callback(verbose, goal=fitting.tol * model.null_loss, what=what, n_alphas=len(alphas))
    try:
        return fitting.path(model, alphas, seed=seed, max_deviance=max_deviance, callback=line)
    finally:
        if line is not None:
            line.close()


def _run_fold(
    task: FoldTask, fitting: Fitting, weights: FloatArray, alphas: FloatArray, seed: int, label: str
) -> FoldResult:
    result = run_fold(task, fitting, weights, alphas, seed)
    if label:
        print(f"{label}, {len(alphas)} alphas, {result.seconds:.1f} s", file=sys.stderr, flush=True)
    return result


def _warn_of_short_folds(results: list[FoldResult], fitting: Fitting) -> None:
    n_short = sum(result.n_short for result in results)
    if n_short:
        n_fits = sum(len(result.scores) for result in results)
        warnings.warn(
            f"{n_short} of {n_fits} fits of the folds stopped short of their tolerance, {fitting.tol:g} of the null "
            f"model's loss: their scores may be off. Raise max_iter={fitting.max_iter}, or rescale the columns of X.",
            ConvergenceWarning,
            stacklevel=4,
        )


def _selection_frequency(supports: list[IndexArray], model: Model) -> IndexArray:
    return np.bincount(np.concatenate(supports), minlength=model.problem.n_rows)


def _evidence(fitting: Fitting, model: Model, path: PathFit, likelihood: Likelihood) -> list[Evidence]:
    """What the criterion sees of each point; a relaxed fit is judged as it is, free on its support."""
    free = (len(model.unpenalized), fitting.fit_intercept)
    if not fitting.relaxed:
        return [
            Evidence(point.loss, likelihood.shrunken_freedom(point.clusters, *free), point.n_selected)
            for point in path.points
        ]
    fitted = [Candidate(point.support, point.rows, point.intercept) for point in path.points]
    problem, losses = model.problem, {}
    for candidate in relaxed_candidates(model, fitted):
        key = candidate.support.tobytes()
        if key not in losses:
            B = problem.from_input(candidate.coef(problem.n_rows), candidate.intercept)
            losses[key] = problem.loss_value(problem.predictor(B))
    return [
        Evidence(losses[point.support.tobytes()], likelihood.relaxed_freedom(point.n_selected, *free), point.n_selected)
        for point in path.points
    ]
