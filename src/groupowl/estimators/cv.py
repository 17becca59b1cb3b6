"""Estimators that choose alpha, and the weight sequence if there are several: fit, score, choose, fit again."""

from __future__ import annotations

import warnings
from copy import copy
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial, reduce
from operator import add, attrgetter
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn import get_config
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.validation import check_is_fitted

from .._checks import check_sample_weight, column_names, entry_weights, lookup, refuse_mask
from .._progress import progress_line
from .._threads import blas_threads, check_jobs
from .._typing import FloatArray, IndexArray
from ..designs import is_summary, mean_weights
from ..inputs import import_pandas
from ..losses import resolve_loss
from ..model import Model, warn_if_correlated, warn_unless_bounded
from ..model_selection import CRITERIA, FOLD_RULES, Search
from ..model_selection.folds import criteria_serve, resolve_scorer, scorer_scores, takes_sample_weight
from ..model_selection.search import best_sequence, ridges_of, tunes_ridge
from ..path import PathPoint, PathResult, resolve_alphas
from ..problem import warn_of_lost_samples
from ..solvers import Callback, SolveResult, SolverSettings, warn_unless_converged
from ..solvers.solve_result import short_of_tolerance
from ..weights import sequence_names, sequences_of
from .base import FitData, GroupOWLBase
from .classifier import ClassifierMethods, GroupOWLClassifier
from .regressor import GroupOWLRegressor, RegressorMethods
from .search_verification import SearchCheck
from .verification import FitCheck, Verification

# The last fit is one of hundreds: some more digits cost next to nothing, and leave less to chance than the gap allows.
_FINER = 1e-6
_FINER_STEPS = 1000
# Columns of the frame of a search, by what reports call them.
_FRAME_COLUMNS = {"mean_score_path": "mean_score", "std_error_path": "std_error", "criterion_path": "criterion"}


class SearchAttributes:
    """Fitted attributes of a search; declared here because annotations beside the parameters would be parameters."""

    if TYPE_CHECKING:
        alphas_: FloatArray
        best_index_: int
        best_score_: float
        criterion_path_: FloatArray
        mean_score_path_: FloatArray
        score_path_: FloatArray
        std_error_path_: FloatArray
        selection_frequency_: IndexArray
        search_results_: list[dict[str, Any]]
        path_: PathResult


@dataclass(eq=False, repr=False, kw_only=True)
class CrossValidatedFit(SearchAttributes, GroupOWLBase):
    """Parameters and ``fit`` of the estimators that choose alpha; a subclass names the estimator of one alpha."""

    _single: ClassVar[Any]
    alphas: Any = 100
    eps: float = 1e-3
    cv: Any = None
    selection: str = "min"
    scoring: Any = None
    n_jobs: int | None = None

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, *, offset: Any = None, **params: Any) -> Self:
        """Choose alpha and fit the model to all data.

        Parameters
        ----------
        X : array-like, data frame, sparse matrix or design of shape (n_samples, n_features), or statistics
            Data. float32 stays float32, sparse data stay sparse. A matrix on disk, or a Dask array or data frame
            (regression without ``scoring``, or an information criterion). A list of SufficientStatistics, one for
            each fold, needs no more: not ``y``, nor ``cv``.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Targets, or one label per sample for classification. NaN among several targets, or among label indicators,
            means that a target was not observed.
        sample_weight : array-like of shape (n_samples,) or (n_samples, n_targets), default=None
            Non-negative weights, of samples or of each of their targets, in fits and in scores; 2 is the same as the
            sample twice (in the same fold), 0 as no sample.
        offset : array-like of shape (n_samples,) or (n_samples, n_targets), default=None
            Added to the linear predictors with coefficient one, for example the logarithm of the exposure for
            ``loss="poisson"``. Three or more classes need a column for each class. Predictions then require an offset,
            too; ``offset=0`` means none. Folds have theirs; ``scoring`` cannot be given.
        **params : dict
            ``groups``, for splitters that keep groups of samples together. With scikit-learn's metadata routing
            enabled: whatever splitter and scorer request.

        Returns
        -------
        self
            The fitted estimator. A fit that fails or is interrupted leaves an earlier one as it was; with a folder
            ``resume`` the same call goes on from what was finished.

        Warns
        -----
        ConvergenceWarning
            When fits on all data, or fits of folds, fall short of their tolerance, or the coefficients of unpenalized
            columns have no finite optimum because these tell classes apart.
        UserWarning
            When samples without any observed target are left out, and when weights by the name "chi", "chi_gauss" or
            "gaussian" are to control false discoveries, and columns of X
            are correlated; an alpha that is chosen by its score controls nothing in any case.
        """
        taken = self.n_jobs not in (None, 1)
        with progress_line(self.verbose, type(self).__name__), blas_threads(X, are_taken=taken):
            search = self._search(X, y, sample_weight, params, offset=offset)
            warn_of_lost_samples(search.models[0].problem)
            warn_unless_bounded(search.models[0])
            warn_if_correlated(search.models[0], self.weights)
            choices = search.run(self.resume)
            reports = list(map(attrgetter("report"), choices))
            best = best_sequence(reports)
            model, path, report, held_out, criteria = choices[best]
            settings, point = search.fitting.settings, path.points[report["best_index"]]
            alpha, data = point.alpha, replace(search.data, fitting=search.fitting_of(best))
            result = self._final_fit(model, alpha, settings, self.callback, report["best_index"])
            if result.status == "callback":
                result = self._better(result, model, point, settings)
        short, prefix = short_of_tolerance(path.points, len(path.points), "alphas")
        warn_unless_converged(short if prefix else result, model.problem.goal(settings.tol), settings, prefix=prefix)
        fitted = {"path_": path.labeled(data.labels), "search_results_": reports}
        is_as_given = not self.standardize and self.penalty_factor is None
        fitted["_ratio_of_columns"] = _ratio(model.problem.norms) if is_as_given else 1.0
        fitted |= {"_held_out": held_out, "_criteria": criteria} if self._keeps_details else {}
        for name, value in report.items():
            fitted[f"{name}_"] = value
        return self._store(data, model.weights, result, alpha, model, **fitted)

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
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        scores: bool = True,
        offset: Any = None,
        **params: Any,
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
        sample_weight : array-like of shape (n_samples,) or (n_samples, n_targets), default=None
            Sample weights of the fit.
        scores : bool, default=True
            Whether to fit the folds again. Without, and where ``cv`` makes other folds each time, scores are only
            compared with each other, and the result says so.
        offset : array-like of shape (n_samples,) or (n_samples, n_targets), default=None
            Offset of the fit.
        **params : dict
            What ``fit`` had, for example ``groups``.

        Returns
        -------
        Verification
            True exactly when the fit holds; printed, it says why.
        """
        check_is_fitted(self)
        quiet = self._quiet_copy()
        search = quiet._search(X, y, sample_weight, params, offset=offset, reset=False)
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the fit has said what fell short
            check = SearchCheck(search)
            data = replace(search.data, fitting=search.fitting_of(check.chosen))
            chosen = FitCheck(quiet, data, check.model).verification()
            found = check.findings(scores, chosen_holds=bool(chosen))
        return replace(chosen, findings=(*chosen.findings, *found))

    def search_frame(self) -> Any:
        """All scores of the search as a pandas data frame, one row for each weight sequence, ridge and alpha.

        Returns
        -------
        pandas.DataFrame
            ``weights`` (the name of the sequence), ``ridge`` where there is a list of them, ``alpha``, ``mean_score``
            and ``std_error``, or ``criterion``, and ``chosen``, which is true in one row.
        """
        check_is_fitted(self)
        pandas = import_pandas("search_frame()")
        parts, best, names = [], best_sequence(self.search_results_), sequence_names(self.weights)
        n_ridges = len(ridges_of(self))
        for k, report in enumerate(self.search_results_):
            of_ridge = {"ridge": report["ridge"]} if "ridge" in report else {}
            columns = {"weights": names[k // n_ridges], **of_ridge, "alpha": report["alphas"]}
            for key, column in _FRAME_COLUMNS.items():
                if key in report:
                    columns[column] = report[key]
            chosen = np.zeros(len(report["alphas"]), dtype=bool)
            chosen[report["best_index"]] = k == best
            parts.append(pandas.DataFrame(columns | {"chosen": chosen}))
        return pandas.concat(parts, ignore_index=True)

    def _at_alpha(self, alpha: float) -> Self:
        """The same estimator with the coefficients of another point of its path, without certificates."""
        other, path = copy(self), self.path_
        other.coef_ = np.reshape(path.coef_at(alpha), self.coef_.shape).astype(self.coef_.dtype)
        intercept = path.intercept_at(alpha).astype(self.coef_.dtype)
        other.intercept_ = intercept if np.ndim(self.intercept_) else intercept[0]
        other.alpha_ = float(alpha)
        return other

    # What a fit needs -------------------------------------------------------------------------------

    def _search(
        self, X: Any, y: Any, sample_weight: Any, params: dict[str, Any], *, offset: Any = None, reset: bool = True
    ) -> Search:
        """Check the data and set up the search; ``reset=False`` requires data like those of the fit."""
        lookup("selection", self.selection, dict.fromkeys((*FOLD_RULES, *CRITERIA)))
        check_jobs(self.n_jobs)
        scorer = None if self.scoring is None else resolve_scorer(self.scoring, resolve_loss(self._loss).score_name)
        splitter_params, scorer_params = self._routed_params(scorer, sample_weight, params)
        parts = []
        if isinstance(X, list | tuple) and X and all(map(is_summary, X)):
            if len(X) < 2:
                raise ValueError(
                    "X is a list with the statistics of one fold: cross-validation needs at least two folds."
                )
            parts, X = list(X), reduce(add, X)
        data = self._validate_fit(X, y, sample_weight, offset=offset, reset=reset)
        self._check_choice(data, scorer)
        if reset and self.selection not in CRITERIA and (data.is_distributed or data.is_summarized):
            _check_folds_possible(data, scorer, parts)
        if data.is_summarized:
            weight = np.array([data.X.total_weight])
        else:  # those on a cluster are brought here for the folds
            given = None if sample_weight is None else np.asarray(sample_weight)
            weight = check_sample_weight(given, data.n_samples, n_tasks=data.n_targets)
        of_entries = weight
        if isinstance(data.Y, np.ndarray):
            weight = entry_weights(data.Y, weight, data.n_targets)[1].mean(axis=1)
        targets = self._targets_for_scorers(y, data) if isinstance(data.Y, np.ndarray) else None
        score = None
        if scorer is not None:
            given_X, wanted = data.X if column_names(X) is None else X, self._single().get_params()
            single = self._single(**{name: value for name, value in self.get_params().items() if name in wanted})
            score = partial(scorer_scores, scorer, single, data, given_X, targets, scorer_params)
        sequences = sequences_of(self.weights)
        if len(sequences) == 0:
            raise ValueError("weights is an empty list: give one weight sequence, or a list of at least one.")
        ridges, firsts = ridges_of(self), []
        for ridge in ridges:
            fitting = replace(data.fitting, options=replace(data.fitting.options, ridge=ridge))
            firsts.append(fitting.model(data.X, data.Y, sequences[0], data.sample_weight))
        if data.is_distributed:
            design = firsts[0].problem.design
            if reset and self.selection not in CRITERIA and design.patterns is not None:
                raise _cannot_fold(data, "targets that are missing, or weights for each of them")
            if design.patterns is not None or design.left_out[0]:
                weight = mean_weights(data.Y, weight, data.n_targets)
        models = firsts + [first.with_weights(sequence) for sequence in sequences[1:] for first in firsts]
        grids = list(map(partial(resolve_alphas, self.alphas, self.eps), models))
        of_models = models, grids, ridges * len(sequences)
        return Search(self, data, weight, targets, data.fitting, *of_models, score, splitter_params, parts, of_entries)

    @property
    def _first_ridge(self) -> Any:
        return ridges_of(self)[0]

    def _check_choice(self, data: FitData, scorer: Any) -> None:
        """Refuse ways to choose alpha that do not support the options of the fit."""
        if scorer is not None and "has_offset_" in data.labels:
            raise ValueError(
                f"scoring={self.scoring!r} would predict without the offset. Leave scoring out: the score of the loss "
                "knows it."
            )
        if self.selection in CRITERIA and tunes_ridge(self):
            raise ValueError(
                f"ridge={self.ridge!r} is a list to choose from, and selection={self.selection!r} cannot compare "
                "ridges. Choose by cross-validation, selection='min' or '1se', or give one number."
            )
        options = data.fitting.options
        if self.selection in CRITERIA and not self.relaxed and (options.ridge > 0.0 or options.signs is not None):
            asked = f"ridge={self.ridge!r}" if options.ridge > 0.0 else f"positive={self.positive!r}"
            raise ValueError(
                f"selection={self.selection!r} counts degrees of freedom, which are not known with {asked}. Choose by "
                "cross-validation, selection='min' or '1se'."
            )

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

    def _final_fit(
        self, model: Model, alpha: float, settings: SolverSettings, callback: Callback | None = None, index: int = 0
    ) -> SolveResult:
        """Fit at the chosen alpha, to a smaller gap than ``tol`` asks for where that is possible."""
        about: dict[str, Any] = {
            "what": f"{type(self).__name__}, final fit",
            "callback": callback,
            "alpha_index": index,
        }
        finer = replace(settings, tol=_FINER * settings.tol, max_iter=min(_FINER_STEPS, settings.max_iter))
        result = self._solve(model, alpha, finer, **about)
        if result.gap <= model.problem.goal(settings.tol):
            return replace(result, status="converged")  # the finer goal is nobody's but ours
        if result.status == "callback":
            return result
        return self._solve(model, alpha, settings, model.start(result.B.T, result.intercept), **about)

    def _better(self, stopped: SolveResult, model: Model, point: PathPoint, settings: SolverSettings) -> SolveResult:
        """The last fit as far as the callback let it come, or what the path has found at its alpha."""
        start = model.start(point.coef(model.problem.n_rows).T, point.intercept)
        found = self._solve(model, point.alpha, settings, start, callback=lambda _: True)
        best = min(found, stopped, key=attrgetter("gap"))
        return replace(best, status="converged") if best.gap <= model.problem.goal(settings.tol) else best


def _ratio(norms: FloatArray) -> float:
    """How many times as large the largest column is as the smallest one that is not constant."""
    positive = norms[norms > 0.0]
    return float(positive.max() / positive.min()) if len(positive) else 1.0


def _check_folds_possible(data: FitData, scorer: Any, parts: Any) -> None:
    """Refuse folds where the data have no single samples, such as sufficient statistics."""
    if data.is_summarized and not parts:
        raise ValueError(
            "X: folds cannot be made from the statistics of all samples. Give a list with those of each fold, "
            f"fit([first, second, ...]). {_instead_of_folds(data)}"
        )
    loss = resolve_loss(data.fitting.loss)
    reasons = {
        "classes": "classes_" in data.labels,
        f"loss={loss.name!r}": not loss.is_quadratic,
        "scoring": scorer is not None,
        "relaxed=True": data.fitting.relaxed,
        "unpenalized columns": len(data.fitting.unpenalized) > 0,
    }
    for reason, holds in reasons.items():
        if holds:
            raise _cannot_fold(data, reason)


def _cannot_fold(data: FitData, reason: str) -> ValueError:
    """That statistics do not serve something, and what does."""
    where = "a Dask cluster" if data.is_distributed else "SufficientStatistics"
    served = f"X: cross-validation on {where} works by statistics, which do not serve {reason}."
    return ValueError(f"{served} {_instead_of_folds(data)}")


def _instead_of_folds(data: FitData) -> str:
    """What serves where folds do not."""
    if not criteria_serve(data.fitting):
        return "Use data in memory or on disk, or choose alpha yourself."
    return "Choose by an information criterion, for example selection='bic', or use data in memory or on disk."


@dataclass(eq=False, repr=False)
class GroupOWLRegressorCV(RegressorMethods, CrossValidatedFit):
    """Multi-task regression whose alpha is chosen by cross-validation or an information criterion.

    The model is that of :class:`~groupowl.GroupOWLRegressor`: it minimizes, over ``B`` of shape
    (n_features, n_targets) and the intercept ``b0``,

        ``1/(2 W) sum_i w_i ||y_i - x_i^T B - b0||^2 + alpha sum_j weights_j ||B_[j],:||_2``

    with ``W = sum_i w_i`` and ``||B_[1],:|| >= ||B_[2],:|| >= ...``.

    Parameters
    ----------
    weights : str, array-like of shape (n_features,), callable, or list of these, default="oscar"
        Weight sequence, not increasing: "oscar", "linear", "constant" (or "lasso"), "bh", "chi", "chi_gauss",
        "gaussian" (for one task), an array that is used as it is (one weight per penalized feature), or
        ``f(n_features, n_tasks=, n_samples=)``. Samples, for "gaussian", "chi_gauss" and functions, are rows of X with
        a positive weight, each counted once; folds use the sequence of all data. Of a list of sequences, each
        with an alpha grid of its own, the one with the best score (or criterion) is taken. "levels" stands for a list
        of sequences of two and three levels, see :func:`groupowl.weights.levels`.
    alphas : int or array-like, default=100
        How many, evenly spaced on a logarithmic scale from the smallest alpha that selects nothing on all data; this
        grid ends early where 99.9 % of the deviance is explained. Or positive numbers, which are all fitted.
    eps : float, default=1e-3
        Smallest alpha relative to the largest, strictly between 0 and 1; not used when alphas are given.
    cv : int, splitter, iterable of (train, test) or None, default=None
        Folds. None means 5 folds, or leave-one-out if fewer than 5 samples have a positive weight. A number of folds
        must not exceed the number of samples. In both cases folds are consecutive samples. A splitter with a method
        ``split`` gets ``groups`` from ``fit``. Splits without test samples of positive weight are left out.
    selection : {"min", "1se", "aic", "bic", "ebic"}, default="min"
        "min" takes the best mean score, "1se" the largest alpha whose mean score is within one standard error of it.
        "aic", "bic" and "ebic" (gamma 0.5) take the smallest criterion on all data, without folds: then ``cv`` and
        ``scoring`` are not used, and there is no ``score_path_``.
    scoring : str, callable or None, default=None
        None means the negative mean squared error over samples and targets, the negative mean loss for "huber", and the
        negative mean deviance for "poisson". Or the name of a scorer of scikit-learn, or ``scorer(estimator, X, y)``,
        which also gets ``sample_weight`` where it takes it and weights are given. Higher is better. The estimator that
        it gets has a single alpha and all attributes of a fit to the fold, except certificates.
    n_jobs : int or None, default=None
        Number of folds (and weight sequences) that joblib runs in parallel; -1 means one per processor. With the
        compiled kernel they run in threads.
    fit_intercept : bool, default=True
        Whether to fit an intercept, which is never penalized.
    standardize : bool, default=False
        Whether the penalty sees columns divided by their weighted standard deviation, that of the training samples in
        each fold; ``coef_`` is on the scale of X.
    unpenalized : list of str or int, default=None
        Columns that are always in the model and not penalized, by name or index.
    solver : {"auto", "apgd", "spgd"} or solver object, default="auto"
        "auto" suits nearly all problems; see :func:`groupowl.solve`.
    screening : {"safe", "paper", "none"}, default="safe"
        Rule that removes features proved to be zero. The solution is the same for all three, and with ``solver="auto"``
        the time nearly so.
    tol : float, default=1e-6
        Fits on all data end when the duality gap is at most ``tol`` times the loss of the null model less the smallest
        possible one; those of folds at ``max(tol, 1e-4)``.
    max_iter : int, default=10000
        Maximum number of proximal steps of each fit.
    relaxed : bool, default=False
        Whether to fit the selected features again without penalty, in the folds that are scored too. Certificates are
        about the penalized fit, which is kept in ``penalized_coef_`` and ``penalized_intercept_``.
    random_state : int, Generator, RandomState or None, default=None
        Seed of stochastic solvers.
    verbose : int, default=0
        1 shows lines of progress with the share of all work that is done, and of a pass over data on disk or on a
        cluster; 2 a line for every certificate of the fits on all data.
    feature_groups : array-like of shape (n_features,), or lists or dict of lists of names or indices, default=None
        Groups of columns that are selected together, for all targets: a label for each column (None for a column by
        itself), a list of lists of columns, or a dict from names of groups to lists of columns. Columns that are not
        listed are groups of one. ``weights`` then has one weight per group.
    group_scale : {"size", "none", "frobenius", "orthonormal"}, default="size"
        Scaling of groups of two or more columns for the penalty. "size": divide by the square root of the number of
        columns. "none": do not scale. "frobenius": divide the group by the square root of the sum of the variances of
        its columns, which are then not standardized one by one. "orthonormal": replace the columns by uncorrelated
        combinations with standard deviation 1, so that the penalty applies to the predictions of the group. ``coef_``
        is always on the scale of X.
    penalty_factor : array-like of shape (n_features,), dict or "adaptive", default=None
        Factors of the penalty, one for each feature, or a dict with those of some features. The penalty applies to
        columns divided by their factors, so the order of norms, their ties and the clusters refer to scaled columns.
        Factors are not rescaled. 0 means no penalty, and such features use none of the weights; infinity leaves a
        feature out. "adaptive" computes factors from a first fit without factors, at a tenth of the smallest alpha that
        selects nothing: the largest norm divided by the norm of the feature (or of its group) on the scale of the
        penalty, but at most 100.
    ridge : float or list of float, default=0.0
        Adds ``ridge/2 ||B||_F^2`` to the objective, for coefficients on the scale of the penalty (of standardized and
        scaled columns). Unpenalized features have no ridge. From a list of numbers, each with its own path, the one
        with the best score is chosen and stored as ``ridge_``; this needs cross-validation, not an information
        criterion.
    positive : bool, names or indices of features, or signs, default=False
        True: coefficients of penalized features must not be negative. Names or indices: the same for these features
        only. Signs, one for each feature or a dict with those of some: 1 for not negative, -1 for not positive, 0 for
        no constraint.
    categories : list of str or int, or "auto", default=None
        Columns of a data frame to treat as categories, by name or index, or "auto" for all columns of text or of a
        categorical type. Each becomes a feature group of columns of 0 and 1, one for each level that occurs, called
        ``column=level``. They are selected together, with ``group_scale="frobenius"`` unless "none" or "orthonormal" is
        given. In other parameters, the name of a category means all its levels. ``coef_``, ``clusters_`` and other
        attributes with an entry per feature have one per level.
    unseen : {"error", "zero"}, default="error"
        What to do in predictions with missing categories and with levels that were not in the training data: raise an
        error, or predict as if the column had no effect.
    callback : callable, default=None
        Called as ``callback(progress)`` after each certificate of the fits on all data, with their position
        ``progress.alpha_index`` on the path; returning True ends the path there. The final fit
        asks as well; where it is stopped, the solution of the path stays.
    resume : str or Path, default=None
        A folder that keeps solutions on all data, and scores of folds, as soon as they are there. The same fit after an
        interrupt goes on from them: solutions are certified again. A folder of another problem (data, penalty, alphas,
        tol, folds, version of groupowl) is refused.
    loss : {"squared", "huber", "poisson"} or Loss, default="squared"
        "squared" for numbers; "huber" for numbers with outliers, whose residuals count linearly beyond ``delta``;
        "poisson" for counts and rates, with a linear model for the logarithm of the mean.
    delta : float, array-like of shape (n_targets,) or "auto", default="auto"
        For ``loss="huber"`` only: residuals above this value are treated as outliers. "auto" is 1.345 standard
        deviations of the errors of each target, estimated from the median absolute residual of preliminary fits with a
        negligible penalty. The value is stored as ``delta_``, the same in all folds.

    Attributes
    ----------
    alpha_ : float
        The chosen alpha.
    weights_ : ndarray of shape (n_penalized,)
        The chosen weight sequence.
    alphas_ : ndarray of shape (n_alphas,)
        Alphas of the chosen sequence, falling.
    best_index_ : int
        Position of ``alpha_`` in ``alphas_``.
    score_path_ : ndarray of shape (n_alphas, n_folds)
        Scores of the folds. This attribute and the next four exist only where there are folds.
    mean_score_path_ : ndarray of shape (n_alphas,)
        Their means, weighted by the sample weights of the test samples.
    best_score_ : float
        Mean held-out score at ``alpha_``, ``mean_score_path_[best_index_]``; slightly optimistic, because alpha was
        chosen by it.
    std_error_path_ : ndarray of shape (n_alphas,)
        Standard error of the mean over folds (ddof 1); NaN for one fold. With a splitter that has ``n_repeats``, the
        repetitions share their samples, so the number of folds of one repetition counts.
    selection_frequency_ : ndarray of int of shape (n_features,)
        In how many folds each feature was selected at ``alpha_``.
    criterion_path_ : ndarray of shape (n_alphas,)
        The information criterion, only where it decides.
    path_ : PathResult
        Fits of the chosen sequence on all data, one for each of ``alphas_``, without relaxation.
    search_results_ : list of dict
        For each weight sequence, in their order: "weights", "alphas", "best_index", and all that is above from
        ``score_path_`` to ``criterion_path_``, by names without underscore.
    coef_ : ndarray of shape (n_targets, n_features) or (n_features,)
        Coefficients at ``alpha_``, fitted to all data; 1-D when y was. float32 where X is.
    intercept_ : ndarray of shape (n_targets,) or float
        Intercept; zero without one.
    sparse_coef_ : sparse array
        ``coef_`` as a sparse array.
    scaled_coef_ : ndarray
        ``coef_`` on the scale that the penalty sees: per standard deviation with ``standardize=True``.
    clusters_ : ndarray of int of shape (n_features,)
        Cluster of each feature. Features whose coefficients have the same norm on the scale of the penalty share a
        number; cluster 1 has the largest norm. 0 is for features that are not selected or not penalized. Feature groups
        have one number each: those of equal norm share it.
    selected_features_ : ndarray
        Names (or indices) of the features with non-zero coefficients.
    unpenalized_ : ndarray of int
        Columns that are not penalized.
    feature_groups_ : ndarray of str of shape (n_features,)
        Name of the group of each feature; only with ``feature_groups`` or ``categories``.
    categories_ : dict of str to list of str
        Levels of each category, as text; only with ``categories``.
    coef_names_ : ndarray of str of shape (n_features,)
        Names of the columns of ``coef_`` if X had names: columns of X and levels of categories.
    penalty_factor_ : ndarray of shape (n_features,)
        Factors that the first fit gave; only with ``penalty_factor="adaptive"``.
    dual_gap_ : float
        Proved bound on the distance of the objective at ``alpha_`` from its minimum.
    n_iter_ : int
        Proximal steps of the fit at ``alpha_``.
    screened_fraction_ : float
        Fraction of the features that are proved to be zero.
    solve_result_ : SolveResult
        The penalized fit at ``alpha_``, relaxed or not: coefficients in double precision, certificate and history. That
        fit is solved to some more digits than ``tol`` asks for, where 1000 steps reach them.
    delta_ : ndarray of shape (n_targets,)
        Of ``loss="huber"``: the residual from which on a sample is an outlier.
    has_offset_ : bool
        True, and only there, where the fit had an offset that is not zero.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str
        Names of the features, where X had names.
    target_names_ : ndarray of str
        Names of the targets, where y was a data frame.
    penalized_coef_, penalized_intercept_ : ndarray
        The penalized fit, with ``relaxed=True`` only.

    See Also
    --------
    GroupOWLRegressor : The same with an alpha of your own.
    GroupOWLClassifierCV : The same for classes.

    Notes
    -----
    One grid of alphas is made from all data and followed in every fold, each fit from the one before; whatever is
    learned from data, such as standard deviations, is learned from the training samples.
    Where there are many more samples than features, one pass over the data makes the statistics of all folds, and those
    of training sets come from them by subtraction.

    Degrees of freedom of the criteria are those by which predictions follow the targets: at most ``m (q - 1) + 1`` for
    a cluster of m features, with q targets;
    intercepts and directions of the unpenalized features (their rank) count q each, and so do selected features of a
    relaxed fit.
    Errors are normal with one variance for all targets, estimated from the residuals of each fit.

    Examples
    --------
    >>> import groupowl as go
    >>> data = go.datasets.make_correlated_groups(60, 40, 3, random_state=0)
    >>> model = go.GroupOWLRegressorCV(alphas=20, eps=0.05, selection="1se").fit(data.X, data.Y)
    >>> model.score_path_.shape, bool(model.verify(data.X, data.Y))
    ((20, 5), True)
    """

    _single = GroupOWLRegressor
    _: KW_ONLY
    loss: Any = "squared"
    delta: Any = "auto"


@dataclass(eq=False, repr=False)
class GroupOWLClassifierCV(ClassifierMethods, CrossValidatedFit):
    """Multinomial classification whose alpha is chosen by cross-validation or an information criterion.

    The model is that of :class:`~groupowl.GroupOWLClassifier`: it minimizes, over ``B`` of shape
    (n_features, n_classes) and the intercept ``b0``,

        ``1/W sum_i w_i [log sum_k exp(z_ik) - z_{i,y_i}] + alpha sum_j weights_j ||B_[j],:||_2``

    with ``z_i = x_i^T B + b0``, ``W = sum_i w_i`` and ``||B_[1],:|| >= ||B_[2],:|| >= ...``.

    Parameters
    ----------
    weights : str, array-like of shape (n_features,), callable, or list of these, default="oscar"
        Weight sequence, not increasing: "oscar", "linear", "constant" (or "lasso"), "bh", "chi", "chi_gauss",
        "gaussian" (for one task), an array that is used as it is (one weight per penalized feature), or
        ``f(n_features, n_tasks=, n_samples=)``. Samples, for "gaussian", "chi_gauss" and functions, are rows of X with
        a positive weight, each counted once; folds use the sequence of all data. Of a list of sequences, each
        with an alpha grid of its own, the one with the best score (or criterion) is taken. "levels" stands for a list
        of sequences of two and three levels, see :func:`groupowl.weights.levels`.
    alphas : int or array-like, default=100
        How many, evenly spaced on a logarithmic scale from the smallest alpha that selects nothing on all data; this
        grid ends early where 99.9 % of the deviance is explained. Or positive numbers, which are all fitted.
    eps : float, default=1e-3
        Smallest alpha relative to the largest, strictly between 0 and 1; not used when alphas are given.
    cv : int, splitter, iterable of (train, test) or None, default=None
        Folds. None means 5, or as many as the rarest class has samples of positive weight if those are fewer. A
        number of folds must not exceed the number of samples of any class. In both cases folds are stratified by
        class, or consecutive samples for label indicators. A splitter with a method ``split`` gets ``groups`` from
        ``fit``. Splits without test samples of positive weight are left out.
    selection : {"min", "1se", "aic", "bic", "ebic"}, default="min"
        "min" takes the best mean score, "1se" the largest alpha whose mean score is within one standard error of it.
        "aic", "bic" and "ebic" (gamma 0.5) take the smallest criterion on all data, without folds: then ``cv`` and
        ``scoring`` are not used, and there is no ``score_path_``.
    scoring : str, callable or None, default=None
        None means the negative log-loss, averaged over samples (and labels). Or the name of a scorer of scikit-learn,
        or ``scorer(estimator, X, y)``, which also gets ``sample_weight`` where it takes it and weights are given.
        Higher is better. The estimator that it gets has a single alpha and all attributes of a fit to the fold, except
        certificates.
    n_jobs : int or None, default=None
        Number of folds (and weight sequences) that joblib runs in parallel; -1 means one per processor. With the
        compiled kernel they run in threads.
    fit_intercept : bool, default=True
        Whether to fit an intercept, which is never penalized.
    standardize : bool, default=False
        Whether the penalty sees columns divided by their weighted standard deviation, that of the training samples in
        each fold; ``coef_`` is on the scale of X.
    unpenalized : list of str or int, default=None
        Columns that are always in the model and not penalized, by name or index.
    solver : {"auto", "apgd", "spgd"} or solver object, default="auto"
        "auto" suits nearly all problems; see :func:`groupowl.solve`.
    screening : {"safe", "paper", "none"}, default="safe"
        Rule that removes features proved to be zero. The solution is the same for all three, and with ``solver="auto"``
        the time nearly so.
    tol : float, default=1e-6
        Fits on all data end when the duality gap is at most ``tol`` times the loss of the null model less the smallest
        possible one; those of folds at ``max(tol, 1e-4)``.
    max_iter : int, default=10000
        Maximum number of proximal steps of each fit.
    relaxed : bool, default=False
        Whether to fit the selected features again without penalty, in the folds that are scored too. Certificates are
        about the penalized fit, which is kept in ``penalized_coef_`` and ``penalized_intercept_``.
    random_state : int, Generator, RandomState or None, default=None
        Seed of stochastic solvers.
    verbose : int, default=0
        1 shows lines of progress with the share of all work that is done, and of a pass over data on disk or on a
        cluster; 2 a line for every certificate of the fits on all data.
    feature_groups : array-like of shape (n_features,), or lists or dict of lists of names or indices, default=None
        Groups of columns that are selected together, for all targets: a label for each column (None for a column by
        itself), a list of lists of columns, or a dict from names of groups to lists of columns. Columns that are not
        listed are groups of one. ``weights`` then has one weight per group.
    group_scale : {"size", "none", "frobenius", "orthonormal"}, default="size"
        Scaling of groups of two or more columns for the penalty. "size": divide by the square root of the number of
        columns. "none": do not scale. "frobenius": divide the group by the square root of the sum of the variances of
        its columns, which are then not standardized one by one. "orthonormal": replace the columns by uncorrelated
        combinations with standard deviation 1, so that the penalty applies to the predictions of the group. ``coef_``
        is always on the scale of X.
    penalty_factor : array-like of shape (n_features,), dict or "adaptive", default=None
        Factors of the penalty, one for each feature, or a dict with those of some features. The penalty applies to
        columns divided by their factors, so the order of norms, their ties and the clusters refer to scaled columns.
        Factors are not rescaled. 0 means no penalty, and such features use none of the weights; infinity leaves a
        feature out. "adaptive" computes factors from a first fit without factors, at a tenth of the smallest alpha that
        selects nothing: the largest norm divided by the norm of the feature (or of its group) on the scale of the
        penalty, but at most 100.
    ridge : float or list of float, default=0.0
        Adds ``ridge/2 ||B||_F^2`` to the objective, for coefficients on the scale of the penalty (of standardized and
        scaled columns). Unpenalized features have no ridge. From a list of numbers, each with its own path, the one
        with the best score is chosen and stored as ``ridge_``; this needs cross-validation, not an information
        criterion.
    positive : bool, names or indices of features, or signs, default=False
        True: coefficients of penalized features must not be negative. Names or indices: the same for these features
        only. Signs, one for each feature or a dict with those of some: 1 for not negative, -1 for not positive, 0 for
        no constraint. Not for three classes or more, whose coefficients count by their differences.
    categories : list of str or int, or "auto", default=None
        Columns of a data frame to treat as categories, by name or index, or "auto" for all columns of text or of a
        categorical type. Each becomes a feature group of columns of 0 and 1, one for each level that occurs, called
        ``column=level``. They are selected together, with ``group_scale="frobenius"`` unless "none" or "orthonormal" is
        given. In other parameters, the name of a category means all its levels. ``coef_``, ``clusters_`` and other
        attributes with an entry per feature have one per level.
    unseen : {"error", "zero"}, default="error"
        What to do in predictions with missing categories and with levels that were not in the training data: raise an
        error, or predict as if the column had no effect.
    callback : callable, default=None
        Called as ``callback(progress)`` after each certificate of the fits on all data, with their position
        ``progress.alpha_index`` on the path; returning True ends the path there. The final fit
        asks as well; where it is stopped, the solution of the path stays.
    resume : str or Path, default=None
        A folder that keeps solutions on all data, and scores of folds, as soon as they are there. The same fit after an
        interrupt goes on from them: solutions are certified again. A folder of another problem (data, penalty, alphas,
        tol, folds, version of groupowl) is refused.
    class_weight : dict, "balanced" or None, default=None
        Factors of the sample weights by class, 1 for classes that are not in the dict. "balanced" gives every class the
        same total weight on all data. For label indicators, factors of the weights of samples that have a label, by its
        index or name, in the loss of this label; "balanced" gives samples with and without a label the same total
        weight. They count in fits, not in scores.

    Attributes
    ----------
    alpha_ : float
        The chosen alpha.
    weights_ : ndarray of shape (n_penalized,)
        The chosen weight sequence.
    alphas_ : ndarray of shape (n_alphas,)
        Alphas of the chosen sequence, falling.
    best_index_ : int
        Position of ``alpha_`` in ``alphas_``.
    score_path_ : ndarray of shape (n_alphas, n_folds)
        Scores of the folds. This attribute and the next four exist only where there are folds.
    mean_score_path_ : ndarray of shape (n_alphas,)
        Their means, weighted by the sample weights of the test samples.
    best_score_ : float
        Mean held-out score at ``alpha_``, ``mean_score_path_[best_index_]``; slightly optimistic, because alpha was
        chosen by it.
    std_error_path_ : ndarray of shape (n_alphas,)
        Standard error of the mean over folds (ddof 1); NaN for one fold. With a splitter that has ``n_repeats``, the
        repetitions share their samples, so the number of folds of one repetition counts.
    selection_frequency_ : ndarray of int of shape (n_features,)
        In how many folds each feature was selected at ``alpha_``.
    criterion_path_ : ndarray of shape (n_alphas,)
        The information criterion, only where it decides.
    path_ : PathResult
        Fits of the chosen sequence on all data, one for each of ``alphas_``, without relaxation.
    search_results_ : list of dict
        For each weight sequence, in their order: "weights", "alphas", "best_index", and all that is above from
        ``score_path_`` to ``criterion_path_``, by names without underscore.
    classes_ : ndarray of shape (n_classes,)
        Labels, sorted; ``arange(n_labels)`` for label indicators.
    multilabel_ : bool
        Whether ``y`` was a matrix of label indicators.
    coef_ : ndarray of shape (n_classes, n_features), or (1, n_features) for two classes
        Coefficients at ``alpha_``, fitted to all data; float32 where X is.
    intercept_ : ndarray of shape (n_classes,) or (1,)
        Intercept; zero without one.
    sparse_coef_ : sparse array
        ``coef_`` as a sparse array.
    scaled_coef_ : ndarray
        ``coef_`` on the scale that the penalty sees: per standard deviation with ``standardize=True``.
    clusters_ : ndarray of int of shape (n_features,)
        Cluster of each feature. Features whose coefficients have the same norm on the scale of the penalty share a
        number; cluster 1 has the largest norm. 0 is for features that are not selected or not penalized. Feature groups
        have one number each: those of equal norm share it.
    selected_features_ : ndarray
        Names (or indices) of the features with non-zero coefficients.
    unpenalized_ : ndarray of int
        Columns that are not penalized.
    feature_groups_ : ndarray of str of shape (n_features,)
        Name of the group of each feature; only with ``feature_groups`` or ``categories``.
    categories_ : dict of str to list of str
        Levels of each category, as text; only with ``categories``.
    coef_names_ : ndarray of str of shape (n_features,)
        Names of the columns of ``coef_`` if X had names: columns of X and levels of categories.
    penalty_factor_ : ndarray of shape (n_features,)
        Factors that the first fit gave; only with ``penalty_factor="adaptive"``.
    dual_gap_ : float
        Proved bound on the distance of the objective at ``alpha_`` from its minimum.
    n_iter_ : int
        Proximal steps of the fit at ``alpha_``.
    screened_fraction_ : float
        Fraction of the features that are proved to be zero.
    solve_result_ : SolveResult
        The penalized fit at ``alpha_``, relaxed or not: coefficients in double precision, certificate and history. That
        fit is solved to some more digits than ``tol`` asks for, where 1000 steps reach them.
    has_offset_ : bool
        True, and only there, where the fit had an offset that is not zero.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str
        Names of the features, where X had names.
    target_names_ : ndarray of str
        Names of the labels, where y was a data frame of label indicators.
    penalized_coef_, penalized_intercept_ : ndarray
        The penalized fit, with ``relaxed=True`` only.

    See Also
    --------
    GroupOWLClassifier : The same with an alpha of your own.
    GroupOWLRegressorCV : The same for numbers.

    Notes
    -----
    One grid of alphas is made from all data and followed in every fold, each fit from the one before; whatever is
    learned from data, such as standard deviations, is learned from the training samples.
    A class that a training set does not have gets probability zero there; the log-loss takes probabilities below
    2.2e-16 as 2.2e-16, so that it is finite.

    Degrees of freedom of the criteria are those by which predictions follow the targets: at most ``m (q - 1) + 1`` for
    a cluster of m features, with q = n_classes - 1;
    intercepts and directions of the unpenalized features (their rank) count q each, and so do selected features of a
    relaxed fit.
    The likelihood is that of the sample weights of the fit, class weights included.

    Examples
    --------
    >>> import groupowl as go
    >>> data = go.datasets.make_correlated_groups(60, 40, 3, task="classification", random_state=0)
    >>> labels = data.Y.argmax(axis=1)
    >>> model = go.GroupOWLClassifierCV(alphas=20, eps=0.05).fit(data.X, labels)
    >>> model.score_path_.shape, bool(model.verify(data.X, labels))
    ((20, 5), True)
    """

    _single = GroupOWLClassifier
    _: KW_ONLY
    class_weight: Any = None
