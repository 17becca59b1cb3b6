"""The choice of alpha, and of the weight sequence if there are several: fit, score, choose, fit again."""

from __future__ import annotations

import numbers
import warnings
from copy import copy
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial, reduce
from operator import add, attrgetter
from typing import Any, ClassVar, Self

import numpy as np
from sklearn import get_config
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.validation import check_is_fitted

from .._checks import check_sample_weight, lookup, refuse_mask
from .._frames import column_names
from ..designs import SufficientStatistics
from ..inputs import plain_labels
from ..model import Model, warn_unless_bounded
from ..model_selection import CRITERIA, FOLD_RULES, Search
from ..model_selection.folds import resolve_scorer, scorer_scores, takes_sample_weight
from ..model_selection.search import merit
from ..path import resolve_alphas
from ..path.follower import short_of_tolerance
from ..solvers import History, SolveResult, SolverSettings, warn_unless_converged
from ..weights import is_list_of_sequences, resolve_weights
from .base import FitData, GroupOWLBase
from .search_verification import SearchCheck
from .verification import FitCheck, Verification

# The last fit is one of hundreds: some more digits cost next to nothing, and leave less to chance than the gap allows.
_POLISH_FACTOR = 1e-3
_POLISH_STEPS = 500


@dataclass(eq=False, repr=False)
class CrossValidatedFit(GroupOWLBase):
    """Parameters and ``fit`` of the estimators that choose alpha; a subclass names the estimator of one alpha."""

    _single: ClassVar[Any]
    _own_score: ClassVar[str]
    _: KW_ONLY
    weights: Any = "oscar"
    alphas: Any = 100
    eps: float = 1e-3
    cv: Any = None
    selection: str = "min"
    scoring: Any = None
    n_jobs: int | None = None
    fit_intercept: bool = True
    standardize: bool = False
    unpenalized: Any = None
    solver: Any = "auto"
    screening: str = "safe"
    tol: float = 1e-6
    max_iter: int = 10_000
    relaxed: bool = False
    random_state: Any = None
    verbose: int = 0

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
            When fits on all data, or fits of folds, fall short of their tolerance, or the coefficients of unpenalized
            columns have no finite optimum because these tell classes apart.
        """
        search = self._search(X, y, sample_weight, params)
        warn_unless_bounded(search.models[0])
        choices = search.run()
        reports = list(map(attrgetter("report"), choices))
        model, path, report = choices[int(np.argmax(list(map(merit, reports))))]
        settings, data, alpha = search.fitting.settings, search.data, path.points[report["best_index"]].alpha
        result = self._final_fit(model, alpha, settings)
        short, prefix = short_of_tolerance(path.points, len(path.points), "alphas")
        warn_unless_converged(short if prefix else result, model.problem.goal(settings.tol), settings, prefix=prefix)
        fitted = {"path_": path.labeled(data.labels), "search_results_": reports}
        for name, value in report.items():
            fitted[f"{name}_"] = value
        return self._store(data, model, result, alpha, **fitted)

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
        give the same scores, and a change of 0.1 % is found; by others, on another kind of matrix or of machine, or
        with the compiled kernel in only one of the two, one of 16 %, and none of the scores of relaxed fits, which jump
        with the features selected.

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
        quiet = copy(self).set_params(verbose=0)
        search = quiet._search(X, y, sample_weight, params, reset=False)
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the fit has said what fell short
            check = SearchCheck(search)
            chosen = FitCheck(quiet, search.data, check.model).verification()
            found = check.findings(scores, chosen_holds=bool(chosen))
        return replace(chosen, findings=(*chosen.findings, *found))

    # What a fit needs -------------------------------------------------------------------------------

    def _search(self, X: Any, y: Any, sample_weight: Any, params: dict[str, Any], *, reset: bool = True) -> Search:
        """Everything that a search works with; with ``reset=False`` data must be like those of the fit."""
        lookup("selection", self.selection, dict.fromkeys((*FOLD_RULES, *CRITERIA)))
        n_jobs: Any = self.n_jobs  # which joblib would round, or fail on after hours
        is_whole = isinstance(n_jobs, numbers.Integral) and not isinstance(n_jobs, bool)
        if n_jobs is not None and not (is_whole and n_jobs != 0 and abs(n_jobs) < 2**31):
            kind = ValueError if is_whole else TypeError
            raise kind(f"n_jobs must be None or an integer, -1 for all processors and never 0, got {n_jobs!r}.")
        self._fitting()
        scorer = None if self.scoring is None else resolve_scorer(self.scoring, self._own_score)
        splitter_params, scorer_params = self._routed_params(scorer, sample_weight, params)
        parts = []
        if isinstance(X, list | tuple) and X and all(isinstance(part, SufficientStatistics) for part in X):
            if len(X) < 2:
                raise ValueError(
                    "X is a list with the statistics of one fold: cross-validation needs at least two folds."
                )
            parts, X = list(X), reduce(add, X)
        data = self._validate_fit(X, y, sample_weight, reset=reset)
        if reset and self.selection not in CRITERIA and (data.is_distributed or data.is_summarized):
            _check_folds_possible(data, scorer, parts, relaxed=self.relaxed)
        targets = None  # as scorers and splitters of scikit-learn expect them
        if data.is_summarized:
            weight = np.array([data.X.total_weight])
        else:  # those on a cluster are brought here for the folds
            weight = check_sample_weight(None if sample_weight is None else np.asarray(sample_weight), data.n_samples)
            if not data.is_distributed:
                targets = data.Y[:, 0] if data.is_flat else data.Y
                targets = targets if data.classes is None else plain_labels(y)
        score = None
        if scorer is not None:
            given_X, wanted = data.X if column_names(X) is None else X, self._single().get_params()
            single = self._single(**{name: value for name, value in self.get_params().items() if name in wanted})
            score = partial(scorer_scores, scorer, single, data, given_X, targets, scorer_params)
        fitting = self._fitting(data.unpenalized)
        sequences = self.weights if is_list_of_sequences(self.weights) else [self.weights]
        if len(sequences) == 0:
            raise ValueError("weights is an empty list: give one weight sequence, or a list of at least one.")
        model = fitting.model(data.X, data.Y, sequences[0], data.sample_weight)
        models, (n_samples, n_features) = [model], (model.problem.design.n_samples, len(model.weights))
        for other in sequences[1:]:
            weights = resolve_weights(other, n_features=n_features, n_tasks=data.n_targets, n_samples=n_samples)
            models.append(replace(model, weights=weights))
        grids = []
        for model in models:
            grids.append(resolve_alphas(self.alphas, self.eps, model))
        return Search(self, data, weight, targets, fitting, models, grids, score, splitter_params, parts)

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

    def _final_fit(self, model: Model, alpha: float, settings: SolverSettings) -> SolveResult:
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
            polished = min(polished, again, key=attrgetter("gap"))
        if polished.gap >= result.gap or polished.B[result.screened_at >= 0].any():
            return result
        return _continued(result, polished, len(model.unpenalized))


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


def _check_folds_possible(data: FitData, scorer: Any, parts: Any, *, relaxed: bool) -> None:
    """Refuse what folds would need single samples for, where there are none to be had."""
    where = "a Dask cluster" if data.is_distributed else "SufficientStatistics"
    advice = "Choose by an information criterion, for example selection='bic', or use data in memory or on disk."
    if data.is_summarized and not parts:
        raise ValueError(
            "X: folds cannot be made from the statistics of all samples. Give a list with those of each fold, "
            f"fit([first, second, ...]). {advice}"
        )
    reasons = {
        "classes": data.classes is not None,
        "scoring": scorer is not None,
        "relaxed=True": relaxed,
        "unpenalized columns": len(data.unpenalized) > 0,
    }
    for reason, holds in reasons.items():
        if holds:
            raise ValueError(
                f"X: cross-validation on {where} works by statistics, which do not serve {reason}. {advice}"
            )
