"""The choice of alpha, and of the weight sequence if there are several: fit, score, choose, fit again."""

from __future__ import annotations

import numbers
import warnings
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import Any, Self

import numpy as np
from sklearn import get_config
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.validation import check_is_fitted

from .._checks import check_sample_weight, refuse_mask
from .._frames import column_names
from .._typing import FloatArray
from ..designs import Design
from ..gram import SufficientStatistics
from ..inputs import plain_labels
from ..model import Model, warn_unless_bounded
from ..model_selection import CRITERIA, FOLD_RULES, Fitting, Fold, FoldStatistics
from ..path import PathResult, resolve_alphas
from ..path.continuation import short_of_tolerance
from ..solvers import History, SolveResult, warn_unless_converged
from ..weights import is_list_of_sequences, resolve_weights
from .base import GroupOWLBase, Settings
from .by_criteria import search_criteria
from .by_folds import search_folds
from .fit_data import FitData
from .scorers import resolve_scorer, takes_sample_weight
from .search_verification import SearchCheck
from .searching import Job, Searched, sequence_labels
from .splits import make_folds
from .verification import FitCheck, Verification

# The last fit is one of hundreds: some more digits cost next to nothing, and leave less to chance than the gap allows.
_POLISH_FACTOR = 1e-3
_POLISH_STEPS = 500


@dataclass(frozen=True, eq=False)
class Folding:
    """Where folds come from: arguments of the splitter, or the statistics of each fold."""

    params: dict[str, Any]
    parts: list[SufficientStatistics]

    def folds(self, job: Job) -> list[Fold]:
        """The folds of the samples."""
        data = job.data
        split = np.zeros((data.n_samples, 1)) if isinstance(data.X, Design) else data.X
        return make_folds(job.estimator.cv, split, job.y, data.classes, job.weight, self.params)


class CrossValidatedFit(GroupOWLBase):
    """``fit`` of the estimators that choose alpha; a subclass names the estimator of one alpha."""

    _single: Any

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, **params: Any) -> Self:
        """Choose alpha and fit the model to all data.

        Parameters
        ----------
        X : array-like, data frame, sparse matrix or design of shape (n_samples, n_features), or statistics
            Data. float32 stays float32, sparse data stay sparse. A matrix on disk, or a Dask array or data frame
            (regression without ``scoring``, or an information criterion). A list of SufficientStatistics, one for
            each fold, needs no more: not ``y``, nor ``cv``.
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
            When fits on all data, or fits of folds, fall short of their tolerance, or the coefficients of unpenalised
            columns have no finite optimum because these tell classes apart.
        """
        self._check_selection()
        _check_jobs(self.n_jobs)
        settings = self._settings()
        job, folding = self._job(X, y, sample_weight, params, settings)
        models = self._models(job.data)
        warn_unless_bounded(models[0])
        grids = [resolve_alphas(self.alphas, self.eps, model) for model in models]
        searched = self._searched(job, models, grids, folding)
        best = max(searched, key=lambda found: found.merit)
        point, goal = best.path.points[best.best_index], settings.tol * best.model.null_loss
        result = self._final_fit(best.model, point.alpha, settings)
        short, prefix = short_of_tolerance(best.path.points, len(best.path.points), "alphas") or (result, "")
        warn_unless_converged(short, goal, settings.tol, settings.max_iter, prefix=prefix)
        chosen = self._chosen_attributes(job.data, best, searched)
        return self._store(job.data, best.model, result, point.alpha, **chosen)

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

    def verify(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, scores: bool = True, **params: Any
    ) -> Verification:
        """Check the fit from scratch on the data it was made from: the chosen one, the path, and the choice.

        As for :class:`~groupowl.GroupOWLRegressor`, and: each point of ``path_`` is certified again, means, standard
        errors and the choice must follow from the scores, and the scores are computed again, which takes as long as the
        fit. Fold fits are solved to 1e-4 of the null model's loss (``tol`` if that is larger): by the same steps they
        give the same scores, and a change of 0.1 % is found; by others, on another kind of matrix or of machine, one
        of 8 %.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_samples, n_features)
            The data of the fit; a list of statistics where the fit had one.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Targets or labels of the fit.
        sample_weight : array-like of shape (n_samples,), default=None
            Sample weights of the fit.
        scores : bool, default=True
            Whether to fit the folds again. Without, and where ``cv`` makes other folds each time, scores are only
            compared with each other, and the result says so.
        **params : dict
            What ``fit`` had, for example ``groups``.

        Returns
        -------
        Verification
            True exactly when the fit holds; printed, it says why.
        """
        check_is_fitted(self)
        self._check_selection()
        quiet = self._quiet()
        job, folding = quiet._job(X, y, sample_weight, params, self._settings(), reset=False)
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the fit has said what fell short
            search = SearchCheck(job, self._models(job.data), folding)
            chosen = FitCheck(quiet, job.data, search.model).verification()
            found = search.findings(scores, chosen_holds=bool(chosen))
        return replace(chosen, findings=(*chosen.findings, *found))

    # What a fit needs -------------------------------------------------------------------------------

    def _job(
        self, X: Any, y: Any, sample_weight: Any, params: dict[str, Any], settings: Settings, *, reset: bool = True
    ) -> tuple[Job, Folding]:
        """Everything that a search works with; with ``reset=False`` data must be like those of the fit."""
        scorer = resolve_scorer(self.scoring, self._loss)
        splitter_params, scorer_params = self._routed_params(scorer, sample_weight, params)
        X, parts = _joined_statistics(X)
        data = self._validate_fit(X, y, sample_weight) if reset else self._data_again(X, y, sample_weight)
        if reset and self.selection not in CRITERIA:
            _check_folds_possible(data, scorer, parts, self._loss, relaxed=self.relaxed)
        job = Job(
            estimator=self,
            data=data,
            given_X=data.X if column_names(X) is None else X,
            weight=_local_weights(data, sample_weight),
            y=_plain_targets(data, y),
            settings=settings,
            fitting=self._fitting(data, settings),
            scorer=scorer,
            scorer_params=scorer_params,
            labels=sequence_labels(weight_sequences(self.weights)),
        )
        return job, Folding(splitter_params, parts)

    def _searched(self, job: Job, models: list[Model], grids: list[FloatArray], folding: Folding) -> list[Searched]:
        """What each weight sequence comes to."""
        if self.selection in CRITERIA:
            return search_criteria(job, models, grids)
        if folding.parts:
            return search_folds(job, models, grids, [], FoldStatistics(job.data.X, folding.parts))
        return search_folds(job, models, grids, folding.folds(job))

    def _check_selection(self) -> None:
        if self.selection not in (*FOLD_RULES, *CRITERIA):
            known = ", ".join(repr(name) for name in (*FOLD_RULES, *CRITERIA))
            raise ValueError(f"selection must be one of {known}; got {self.selection!r}.")

    def _routed_params(
        self, scorer: Any, sample_weight: Any, params: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Arguments for the splitter and for the scorer."""
        for name, value in params.items():
            refuse_mask(name, value)
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

    # The fit ----------------------------------------------------------------------------------------

    def _final_fit(self, model: Model, alpha: float, settings: Settings) -> SolveResult:
        """The fit that the chosen alpha alone would give, and then some more digits where they are to be had."""
        what = f"{type(self).__name__}, final fit"
        result = self._solve(model, alpha, settings, what=what)
        if not result.converged:
            return result
        finer = replace(settings, tol=_POLISH_FACTOR * settings.tol, max_iter=min(_POLISH_STEPS, settings.max_iter))
        start = model.start(result.B.T, result.intercept)
        polished = self._solve(model, alpha, finer, start, what=f"{what}, more digits")
        if not polished.converged:  # so near to the solution, the first steps may be nothing but rounding
            again = self._solve(model, alpha, finer, what=f"{what}, more digits")
            polished = min(polished, again, key=lambda found: found.gap)
        if polished.gap >= result.gap or polished.B[result.screened_at >= 0].any():
            return result
        return _continued(result, polished, len(model.unpenalized))

    def _chosen_attributes(self, data: FitData, best: Searched, searched: list[Searched]) -> dict[str, Any]:
        path = PathResult.from_fit(
            best.path, best.model, feature_names=data.names, classes=data.classes, target_names=data.target_names
        )
        fitted = {"alphas_": best.path.alphas, "best_index_": best.best_index, "path_": path}
        fitted |= {f"{name}_": value for name, value in best.attributes.items()}
        return fitted | {"search_results_": [found.report() for found in searched]}


def _check_jobs(n_jobs: Any) -> None:
    """Refuse what joblib would round to a number of jobs, or fail on after hours."""
    is_whole = isinstance(n_jobs, numbers.Integral) and not isinstance(n_jobs, bool)
    if n_jobs is not None and not (is_whole and n_jobs != 0 and abs(n_jobs) < 2**31):
        kind = ValueError if is_whole else TypeError
        raise kind(f"n_jobs must be None or an integer, -1 for all processors and never 0, got {n_jobs!r}.")


def _continued(first: SolveResult, second: SolveResult, n_unpenalized: int) -> SolveResult:
    """The second of two solves of a problem, which starts where the first ends, with all that both took and proved."""
    n_before = len(first.history)
    screened_at = np.where(second.screened_at >= 0, second.screened_at + n_before, first.screened_at)
    screened_at = np.where(first.screened_at >= 0, first.screened_at, screened_at)
    columns = second.history.as_dict()
    columns["n_active"] = np.minimum(columns["n_active"], len(first.active) - n_unpenalized)  # what is proved stays so
    efforts = {"iteration": first.n_iter, "passes": first.n_passes, "seconds": first.seconds}
    columns |= {name: columns[name] + before for name, before in efforts.items()}
    joined = {name: np.concatenate([values, columns[name]]) for name, values in first.history.as_dict().items()}
    return replace(
        second,
        status=first.status,  # the second goal is nobody's but ours
        active=np.flatnonzero(screened_at < 0),
        screened_at=screened_at,
        history=History(**joined),
        **{name: getattr(first, name) + getattr(second, name) for name in ("n_iter", "n_passes", "seconds")},
    )


def weight_sequences(weights: Any) -> list[Any]:
    """The weight sequences to search: those of a list of names, arrays and functions, or the one that is given."""
    if not is_list_of_sequences(weights):
        return [weights]
    if len(weights) == 0:
        raise ValueError("weights is an empty list: give one weight sequence, or a list of at least one.")
    return list(weights)


def _joined_statistics(X: Any) -> tuple[Any, list[SufficientStatistics]]:
    """Statistics of all samples from those of the folds, and these; anything else as it is."""
    if not isinstance(X, list | tuple) or not X or not all(isinstance(part, SufficientStatistics) for part in X):
        return X, []
    if len(X) < 2:
        raise ValueError("X is a list with the statistics of one fold: cross-validation needs at least two folds.")
    return reduce(add, X), list(X)


def _check_folds_possible(data: FitData, scorer: Any, parts: Any, loss: str, *, relaxed: bool) -> None:
    """Refuse what folds would need single samples for, where there are none to be had."""
    where = "a Dask cluster" if data.is_distributed else "SufficientStatistics"
    if not (data.is_distributed or data.is_summarised):
        return
    advice = "Choose by an information criterion, for example selection='bic', or use data in memory or on disk."
    if data.is_summarised and not parts:
        raise ValueError(
            "X: folds cannot be made from the statistics of all samples. Give a list with those of each fold, "
            f"fit([first, second, ...]). {advice}"
        )
    reasons = {
        "classes": loss != "squared",
        "scoring": scorer is not None,
        "relaxed=True": relaxed,
        "unpenalized columns": len(data.unpenalized) > 0,
    }
    for reason, holds in reasons.items():
        if holds:
            raise ValueError(
                f"X: cross-validation on {where} works by statistics, which do not serve {reason}. {advice}"
            )


def _local_weights(data: FitData, sample_weight: Any) -> FloatArray:
    """Weights of the samples, ones by default; those on a cluster are brought here for the folds."""
    if data.is_summarised:
        return np.array([data.X.total_weight])
    return check_sample_weight(None if sample_weight is None else np.asarray(sample_weight), data.n_samples)


def _plain_targets(data: FitData, y: Any) -> Any:
    """Targets or labels as scorers and splitters of scikit-learn expect them."""
    if data.is_summarised or data.is_distributed:
        return None
    if data.classes is None:
        return data.Y[:, 0] if data.is_flat else data.Y
    return plain_labels(y)
