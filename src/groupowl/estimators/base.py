"""What all estimators share: data as they come in, a model, a solve, and the fitted attributes they become.

A fit computes everything into locals and sets attributes in one statement, :meth:`GroupOWLBase._store`: a fit that
fails or is interrupted leaves an earlier one as it was.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import closing
from copy import copy
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import RegressorMixin, is_classifier
from sklearn.utils.validation import check_is_fitted, validate_data

from .. import _checks as checks
from .._progress import progress_line
from .._resume import ResumeFolder
from .._text import printable
from .._threads import blas_threads
from .._typing import FloatArray
from ..categories import Categories, check_unseen, find_categories, fitted_categories
from ..designs import Design, far_design, row_chunks, rows_like
from ..inputs import exclusive_classes, feature_names, penalty_options, resolve_columns
from ..losses import check_offset, resolve_loss, with_offset
from ..model import (
    Model,
    adaptive_factor,
    check_alpha,
    penalty_weights,
    relaxed_coefficients,
    warn_if_correlated,
    warn_unless_bounded,
)
from ..model_selection import Fitting
from ..norm import PenaltyOptions
from ..path import PathResult, path_through_fit
from ..path.follower import Watch
from ..path.kept_points import path_facts, solution_folder
from ..problem import warn_of_lost_samples
from ..solvers import (
    Callback,
    SolveResult,
    SolverSettings,
    check_callback,
    check_settings,
    lean_solve,
    warn_unless_converged,
)
from ..weights import PROMISING, resolve_weights, sequences_of
from .fit_summary import ReportMethods
from .verification import OF_THE_WAY, FitCheck, Verification

# The file of a folder to go on from that has the coefficients of a single fit.
_ITERATE = "fit"
_MATRIX_CHECKS: dict[str, Any] = {"accept_sparse": ("csr", "csc"), "dtype": [np.float64, np.float32]}


class Targets(NamedTuple):
    """Targets as a loss takes them, and what they say of the fit.

    Attributes
    ----------
    Y : ndarray or dask.array of shape (n_samples, n_tasks)
    sample_weight : ndarray, dask.array or None
        With the weights of classes multiplied in.
    is_flat : bool
        Whether y was one-dimensional.
    labels : dict
        Fitted attributes that say what the tasks are.
    fitting : dict
        Fields of :class:`~groupowl.model_selection.Fitting` that the targets decide.
    """

    Y: Any
    sample_weight: Any
    is_flat: bool
    labels: dict[str, Any]
    fitting: dict[str, Any]


@dataclass(frozen=True, eq=False)
class FitData:
    """Data of a fit after all checks, and how to fit them.

    Attributes
    ----------
    fitting : Fitting
        The parameters, with the columns that are not penalized.
    X : ndarray, sparse matrix or Design of shape (n_samples, n_features), or SufficientStatistics
        float32 or float64.
    Y : ndarray or dask.array of shape (n_samples, n_targets), or None
        Targets; one-hot rows for three or more classes, the second of two. Statistics have theirs. With an offset: what
        the loss makes of both.
    sample_weight : ndarray or dask.array of shape (n_samples,) or (n_samples, n_targets), or None
        With the weights of classes multiplied in.
    n_samples, n_features, n_targets : int
        Sizes of X and Y, or of the data behind statistics.
    is_flat : bool
        Whether y was one-dimensional.
    dtype : dtype
        Precision of the fitted coefficients, whatever a design keeps its entries in.
    labels : dict
        Fitted attributes that say how many features there are, and what features, targets and classes are called.
    classes : ndarray or None
        Labels of classes that exclude each other.
    is_summarized, is_distributed : bool
        Whether the samples are known by their statistics only, or are on a cluster.
    is_like_fit : bool
        Whether they are those of a fit, which they are compared with.
    targets : ndarray, dask.array or None
        The targets without the offset.
    """

    fitting: Fitting
    X: Any
    Y: Any
    sample_weight: Any
    n_samples: int
    n_features: int
    n_targets: int
    is_flat: bool
    dtype: Any
    labels: dict[str, Any]
    classes: Any
    is_summarized: bool
    is_distributed: bool
    is_like_fit: bool = False
    targets: Any = None


@dataclass(eq=False, repr=False, kw_only=True)
class GroupOWLBase(ReportMethods):
    """Base of the estimators, with the parameters of all; a subclass adds what a kind of target needs, and a ``fit``.

    A subclass has ``_loss``, ``_fitted_loss`` and the methods ``_encode_targets``, ``_public_coefficients`` and
    ``_inner_coefficients`` of :class:`~groupowl.estimators.regressor.RegressorMethods` or
    :class:`~groupowl.estimators.classifier.ClassifierMethods`.
    """

    # Whether a fit keeps what a path goes on from, the data among it, until the path is made.
    _keeps_solves = False
    # Whether a search keeps what the fits of its folds predict for the samples that they test, or all criteria.
    _keeps_details = False
    # Parameters as they were in the fit, by which verify sees that they were changed.
    _parameters_of_fit: ClassVar[dict[str, Any]] = {}
    # Fitted attributes that are computed from the coefficients, and change with their rounding.
    _follow_coefficients: ClassVar[tuple[str, ...]] = ()

    weights: Any = "oscar"
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
    feature_groups: Any = None
    group_scale: str = "size"
    penalty_factor: Any = None
    ridge: float = 0.0
    positive: Any = False
    categories: Any = None
    unseen: str = "error"
    callback: Any = None
    resume: Any = None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.multi_output = isinstance(self, RegressorMixin)
        return tags

    # Fitting ----------------------------------------------------------------------------------------

    def _fitting(self) -> Fitting:
        """How to fit, after a check of the parameters; the data decide which columns are not penalized."""
        for name in ("fit_intercept", "standardize", "relaxed", "warm_start"):
            checks.truth_value(name, getattr(self, name, False))
        check_unseen(self.unseen)
        settings = check_settings(self.solver, self.screening, self.tol, self.max_iter, None, self.random_state)
        if self.callback is not None:
            check_callback(self.callback)
        flags = (bool(self.fit_intercept), bool(self.standardize))
        return Fitting(self._loss, *flags, np.zeros(0, dtype=np.intp), settings, relaxed=bool(self.relaxed))

    def _validate_fit(
        self, X: Any, y: Any, sample_weight: Any = None, *, offset: Any = None, reset: bool = True
    ) -> FitData:
        """Check parameters and data and change nothing; ``reset=False`` requires data like those of the fit."""
        return self._adapted(self._completed(self._checked_fit(X, y, sample_weight, offset=offset, reset=reset)))

    def _checked_fit(
        self, X: Any, y: Any, sample_weight: Any = None, *, offset: Any = None, reset: bool = True
    ) -> FitData:
        """The same without what first fits to the data decide."""
        fitting, kind = self._fitting(), type(self).__name__
        checked, names, coding = self._matrix(X, reset=reset)
        is_distributed = getattr(checked, "is_distributed", False)
        statistics = getattr(checked, "known_statistics", None)
        n_samples, n_features = checked.shape
        n_given = n_features if coding is None else len(coding.names)
        labels: dict[str, Any] = {"n_features_in_": n_given}
        if names is not None:
            labels["feature_names_in_"] = names
        if coding is not None:
            labels["categories_"] = dict(coding.levels)
        targets = Targets(None, None, False, {}, {})
        if statistics is not None:
            if is_classifier(self):
                raise ValueError(f"X: {kind} needs the samples themselves, not SufficientStatistics.")
            for name, value in (("y", y), ("sample_weight", sample_weight), ("offset", offset)):
                if value is not None:
                    raise ValueError(f"SufficientStatistics know targets and weights already: leave {name} out.")
            checked, n_targets = statistics, statistics.n_tasks
            targets = targets._replace(is_flat=n_targets == 1)
        elif y is None:
            raise ValueError(f"{kind} requires y to be passed, but the target y is None. Use fit(X, y).")
        else:
            Y, named, weight = y, feature_names(y) if hasattr(y, "columns") else None, sample_weight
            if is_distributed:  # entries are checked there, block by block
                Y, named = row_chunks("y", y)
                weight = None if weight is None else row_chunks("sample_weight", weight)[0]
            else:
                Y = target_array(y, n_samples)
                weight = None if weight is None else self._checked_weight(weight, Y)
            targets = self._encode_targets(Y, named, weight)
            n_targets = targets.Y.shape[1]
        labels |= targets.labels
        if targets.fitting:
            fitting = replace(fitting, **targets.fitting)
        if not reset:
            self._check_like_fit(labels, n_targets)
        known = names if reset else getattr(self, "feature_names_in_", None)
        if self.unpenalized is not None:
            free = resolve_columns("unpenalized", self.unpenalized, n_given, known)
            fitting = replace(fitting, unpenalized=free if coding is None else coding.columns_of(free))
        options = self._options(n_given, known)
        if coding is not None:
            options = coding.widened(options, self.group_scale)
        if not options.is_plain:
            fitting = replace(fitting, unpenalized=options.with_unpenalized(fitting.unpenalized), options=options)
        if options.signs is not None and self.relaxed:
            raise ValueError(
                f"relaxed=True fits the selected features again without penalty, and so without the signs that "
                f"positive={self.positive!r} asks for. Use relaxed=False."
            )
        Y = targets.Y
        if offset is not None:
            loss = resolve_loss(fitting.loss)
            values: Any
            if is_distributed:
                values = check_offset(np.asarray(offset), loss, Y.shape)
                values = None if values is None else rows_like(values, Y)
            else:
                values = check_offset(offset, loss, Y.shape, Y)
            loss, Y, size = with_offset(loss, Y, values)
            if is_distributed and values is not None:
                Y = Y.rechunk({1: -1})  # a collection of Dask
            fitting = replace(fitting, loss=loss, offset_size=size)
            if Y is not targets.Y:  # else all offsets are zero
                labels["has_offset_"] = True
        if not reset:
            self._check_has_offset("has_offset_" in labels)
        dtype = np.dtype(np.float32 if getattr(checked, "dtype", None) == np.float32 else np.float64)
        sizes = (n_samples, n_features, n_targets)
        kinds = (statistics is not None, is_distributed)
        what = (Y, targets.sample_weight, *sizes, targets.is_flat)
        classes = exclusive_classes(labels)
        return FitData(
            fitting, checked, *what, dtype, labels, classes, *kinds, is_like_fit=not reset, targets=targets.Y
        )

    def _matrix(self, X: Any, *, reset: bool, unseen: str = "error") -> tuple[Any, Any, Categories | None]:
        """X as floats, names of its columns, and the categories among them, which are columns of 0 and 1 now."""
        coding = find_categories(X, self.categories) if reset else fitted_categories(vars(self))
        if coding is None:
            return *checked_matrix(self, X, reset=reset), None
        if not reset:
            _check_like_frame(self, X)

        def numbers(frame: Any) -> Any:
            return checked_matrix(self, frame, reset=True)[0]

        return coding.encoded(X, numbers, unseen=unseen), np.array(coding.names, dtype=object), coding

    def _options(self, n_features: int, names: Any) -> PenaltyOptions:
        """Options of the penalty other than its weights, for each column of X."""
        return penalty_options(
            n_features,
            names,
            feature_groups=self.feature_groups,
            group_scale=self.group_scale,
            penalty_factor=None if self._is_adaptive else self.penalty_factor,
            ridge=self._first_ridge,
            positive=self.positive,
        )

    @property
    def _first_ridge(self) -> Any:
        """The ridge, or the first of those to choose from."""
        return self.ridge

    @property
    def _is_adaptive(self) -> bool:
        """Whether factors of the penalty come from a first fit."""
        if not isinstance(self.penalty_factor, str):
            return False
        return checks.lookup("penalty_factor", self.penalty_factor, {"adaptive": True})

    def _adapted(self, data: FitData) -> FitData:
        """Add adaptive penalty factors from a first fit, if asked for; a fit to be verified has them already."""
        if not self._is_adaptive:
            return data
        factor = getattr(self, "penalty_factor_", None) if data.is_like_fit else None
        if factor is None:
            first_weights = sequences_of(self.weights)[0]
            model = data.fitting.model(data.X, data.Y, first_weights, data.sample_weight)
            first = self._solve(model, model.resolve_alpha("auto"), data.fitting.settings, what="first fit")
            factor = adaptive_factor(model, first.B)
        options = replace(data.fitting.options, penalty_factor=factor)
        return replace(data, fitting=replace(data.fitting, options=options))

    def _checked_weight(self, sample_weight: Any, y: Any) -> FloatArray:
        """Weights of samples, or of each of their targets."""
        n_tasks = y.shape[1] if y.ndim == 2 else 0
        weight = checks.check_sample_weight(sample_weight, len(y), n_tasks=n_tasks)
        return weight[:, 0] if weight.ndim == 2 and n_tasks == 1 else weight

    def _completed(self, data: FitData) -> FitData:
        """The data with what else they decide of the fit."""
        return data

    def _check_like_fit(self, labels: dict[str, Any], n_targets: int) -> None:
        """Refuse targets that are not of the kind that was fitted."""
        kind, classes, fitted = type(self).__name__, exclusive_classes(labels), exclusive_classes(vars(self))
        if classes is not None and not np.array_equal(classes, fitted):
            known = "label indicators" if fitted is None else fitted.tolist()
            raise ValueError(f"y has the classes {classes.tolist()}, but {kind} was fitted with {known}.")
        if n_targets != self.solve_result_.B.shape[1]:
            raise ValueError(f"y has {n_targets} targets, but {kind} was fitted with {self.solve_result_.B.shape[1]}.")

    def _check_has_offset(self, is_given: bool) -> None:
        """Refuse to go on without an offset where the fit had one, or with one where it had none."""
        had, kind = getattr(self, "has_offset_", False), type(self).__name__
        if had and not is_given:
            raise ValueError(f"{kind} was fitted with an offset: give that of these samples, or offset=0 for none.")
        if is_given and not had:
            raise ValueError(f"{kind} was fitted without an offset: leave it out.")

    def _solve(
        self,
        model: Model,
        alpha: float,
        settings: SolverSettings,
        start: FloatArray | None = None,
        *,
        what: str = "",
        callback: Callback | None = None,
        alpha_index: int = 0,
        save: Callable[[FloatArray, FloatArray], None] | None = None,
    ) -> SolveResult:
        """One solve, with a line of progress, about ``what``, if the user asked for it.

        ``save`` gets coefficients and intercept as far as they are when the solve is interrupted, and now and then
        where there is a folder to go on from.
        """
        about: dict[str, Any] = {"goal": model.problem.goal(settings.tol), "what": what or type(self).__name__}
        about["keep"] = None if self.resume is None else save
        with closing(Watch(callback, verbose=self.verbose, first_index=alpha_index, **about)) as watch:
            solves = model.continuation(replace(settings, callback=watch.if_needed), start=start)
            try:
                result = solves.solve(model.sequence_weights, alpha, dtype=model.dtype)
            except BaseException:
                if save is not None:
                    save(*model.problem.to_input(solves.B))
                raise
        if self._keeps_solves:
            self._solves = model, solves
        return result

    def _attributes(
        self, data: FitData, weights: FloatArray, result: SolveResult, alpha: float, relaxed: Any
    ) -> dict[str, Any]:
        """Fitted attributes; ``relaxed`` is what :func:`relaxed_coefficients` found, if it was asked."""
        coef, intercept = self._public_coefficients(result.B, result.intercept, data)
        fitted: dict[str, Any] = {
            "alpha_": alpha,
            "weights_": weights,
            "unpenalized_": data.fitting.unpenalized,
            "coef_": coef,
            "intercept_": intercept,
            "dual_gap_": result.gap,
            "n_iter_": result.n_iter,
            "solve_result_": result if result._theta is None else replace(result, _theta=None),  # which keeps the data
        }
        if (groups := data.fitting.options.groups_of_columns) is not None:
            fitted["feature_groups_"] = groups
        if self._is_adaptive:
            fitted["penalty_factor_"] = data.fitting.options.penalty_factor
        if relaxed is not None:
            fitted |= {"penalized_coef_": coef, "penalized_intercept_": intercept}
            fitted["coef_"], fitted["intercept_"] = self._public_coefficients(*relaxed[:2], data)
        return fitted

    def _store(
        self, data: FitData, weights: FloatArray, result: SolveResult, alpha: float, model: Any = None, **more: Any
    ) -> Self:
        """Replace all fitted attributes at once; ``more`` are those that only some estimators have.

        A relaxed fit needs the model.
        """
        relaxed = relaxed_coefficients(model, result.support) if self.relaxed else None
        fitted = self._attributes(data, weights, result, alpha, relaxed)
        if relaxed is not None and relaxed[2]:
            goal = "classes" if "classes_" in data.labels else "targets"
            what = f"without penalty the {len(result.support)} selected features fit the {goal} (almost) perfectly"
            why = "the size of the coefficients is decided by a ridge of 1e-6 of the mean curvature"
            remedy = "Raise alpha, or use relaxed=False."
            warnings.warn(f"relaxed=True: {what}, and {why}. {remedy}", UserWarning, stacklevel=3)
        kept, parameters = {}, {}
        for name, value in vars(self).items():
            if name[0] == "_":  # in microseconds, as small fits take two hundred of them
                kept[name] = value
            elif name[-1] != "_":
                parameters[name] = value
        kept["_parameters_of_fit"] = {name: value for name, value in parameters.items() if name not in OF_THE_WAY}
        self.__dict__ = parameters | kept | data.labels | fitted | more
        return self

    # What was fitted --------------------------------------------------------------------------------

    def _decision(self, X: Any, offset: Any = None) -> Any:
        """``X B + b0`` with the public coefficients, and the offset; a Dask array for data on a cluster."""
        check_is_fitted(self)
        if offset is None and getattr(self, "has_offset_", False):
            self._check_has_offset(False)
        checked = self._matrix(X, reset=False, unseen=self.unseen)[0]
        if not isinstance(checked, Design):
            return self._with_offset(checked @ self.coef_.T + self.intercept_, offset)
        coef, intercept = np.atleast_2d(self.coef_), np.atleast_1d(self.intercept_)
        Z = checked.matmul(coef.T.astype(np.float64), intercept.astype(np.float64))
        scores = checked.exported(Z, len(coef)).astype(self.coef_.dtype)
        return self._with_offset(scores[:, 0] if self.coef_.ndim == 1 else scores, offset)

    def _with_offset(self, scores: Any, offset: Any) -> Any:
        """Predictors with an offset added: a number, one for each sample or one for each predictor."""
        if offset is None:
            return scores
        width = 1 if scores.ndim == 1 else scores.shape[1]
        values = check_offset(offset, self._fitted_loss, (scores.shape[0], width))
        if values is None:
            return scores
        return scores + values.reshape(scores.shape).astype(scores.dtype)

    def verify(self, X: Any, y: Any = None, sample_weight: Any = None, *, offset: Any = None) -> Verification:
        """Check the fit from scratch on the data it was made from.

        Objective, duality gap and KKT residual are computed for the fitted coefficients on the full problem, without
        anything that the fit stored, and compared with what it says, and so are status, weights, clusters and
        ``solve_result_``. Of a relaxed fit the penalized coefficients are certified, and those that predictions use
        are fitted again. Numbers may differ by rounding, of the coefficients and of the data. ``dual_gap_`` must be the
        gap that the coefficients prove, or that the same solve proves again, or one that another solve confirms.
        How the fit came about is not checked: history, passes and seconds.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_samples, n_features)
            The data of the fit. Others of the same shape make the result false; another number of features or
            targets, other names or classes are an error.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Targets or labels of the fit.
        sample_weight : array-like of shape (n_samples,) or (n_samples, n_targets), default=None
            Sample weights of the fit.
        offset : array-like of shape (n_samples,) or (n_samples, n_targets), default=None
            Offset of the fit.

        Returns
        -------
        Verification
            True exactly when the fit holds; printed, it says why.
        """
        check_is_fitted(self)
        data = self._validate_fit(X, y, sample_weight, offset=offset, reset=False)
        model = data.fitting.model(data.X, data.Y, self.weights, data.sample_weight)
        with np.errstate(all="ignore"):
            return FitCheck(self._quiet_copy(), data, model).verification()

    def _quiet_copy(self) -> Self:
        """A copy that fits without progress, callback and resume folder."""
        quiet: Self = copy(self).set_params(verbose=0, callback=None, resume=None)
        return quiet


@dataclass(eq=False, repr=False)
class SingleFit(GroupOWLBase):
    """Parameters and ``fit`` of the estimators that take one alpha."""

    alpha: Any = "auto"
    _: KW_ONLY
    warm_start: bool = False

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, *, offset: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like, data frame, sparse matrix or design of shape (n_samples, n_features), or SufficientStatistics
            Data. float32 stays float32, sparse data stay sparse. A matrix on disk (see
            :class:`groupowl.MemmapDesign`), or a Dask array or data frame. Statistics, for regression, stand for ``y``
            and ``sample_weight`` too.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Targets; for classification one label per sample, or label indicators of 0 and 1, a column for each label.
            NaN among several targets, or among label indicators, means that a target was not observed.
        sample_weight : array-like of shape (n_samples,) or (n_samples, n_targets), default=None
            Non-negative weights, one per sample or one per target of each sample. Weight 2 has the same effect as two
            copies of the sample, weight 0 as leaving it out. Weight sequences that depend on the number of samples
            ("gaussian", "chi_gauss", functions) count rows.
        offset : array-like of shape (n_samples,) or (n_samples, n_targets), default=None
            Added to the linear predictors with coefficient one, for example the logarithm of the exposure for
            ``loss="poisson"``. Three or more classes need a column for each class. Predictions then require an offset,
            too; ``offset=0`` means none.

        Returns
        -------
        self
            The fitted estimator. A fit that fails or is interrupted leaves an earlier one as it was; the next one
            starts where it ended with ``warm_start=True``, or with the same folder ``resume``.

        Warns
        -----
        ConvergenceWarning
            When the duality gap stays above what ``tol`` allows, or coefficients of unpenalized
            columns have no finite optimum because these tell classes apart.
        UserWarning
            When samples without any observed target are left out, and when weights by the name "chi", "chi_gauss" or
            "gaussian" are to control false discoveries, and columns of X
            are correlated.
        """
        with progress_line(self.verbose, type(self).__name__), blas_threads(X):
            data = self._validate_fit(X, y, sample_weight, offset=offset)
            small = self._small_fit(data)
            if small is not None and not self.relaxed:
                return self._store(data, *small)
            settings = data.fitting.settings
            model = data.fitting.model(data.X, data.Y, self.weights, data.sample_weight)
            if small is not None:
                return self._store(data, *small, model)
            warn_of_lost_samples(model.problem)
            warn_unless_bounded(model)
            warn_if_correlated(model, self.weights)
            alpha = model.resolve_alpha(self.alpha)
            folder = None
            if self.resume is not None:
                facts = path_facts(model, settings, [alpha], (data.X, data.Y, data.sample_weight))
                folder = solution_folder(self.resume, facts)
            start = self._start(model, data, folder)
            save = partial(self._keep_iterate, folder, data.labels.get("classes_"))
            result = self._solve(model, alpha, settings, start, callback=self.callback, save=save)
            if folder is not None:
                folder.write(_ITERATE, B=result.B, intercept=result.intercept)
        warn_unless_converged(result, model.problem.goal(settings.tol), settings)
        self.__dict__.pop("_iterate", None)
        return self._store(data, model.weights, result, alpha, model)

    def _fitting(self) -> Fitting:
        check_alpha(self.alpha)
        return super()._fitting()

    def _start(self, model: Model, data: FitData, folder: ResumeFolder | None) -> FloatArray | None:
        """Where a fit starts: what the folder has, with a warm start where the last fit has ended, else None."""
        found = None if folder is None else folder.read(_ITERATE)
        if found is not None:
            return model.start(found["B"].T, found["intercept"])
        known = self._last_coefficients(data)
        return None if known is None else model.start(*known)

    def _last_coefficients(self, data: FitData) -> tuple[FloatArray, FloatArray] | None:
        """Where the last fit has ended, for a warm start, if it was of as many features and targets."""
        if not self.warm_start:
            return None
        last: Any = getattr(self, "solve_result_", None)
        known: Any = getattr(self, "_iterate", None) or (
            last and (last.B, last.intercept, getattr(self, "classes_", None))
        )
        if known is None:
            return None
        B, intercept, classes = known
        labels: Any = data.labels.get("classes_")
        if B.shape != (data.n_features, data.n_targets) or not np.array_equal(classes, labels):
            return None
        return B.T, intercept

    def _keep_iterate(self, folder: ResumeFolder | None, classes: Any, B: FloatArray, intercept: FloatArray) -> None:
        """Keep what an interrupted fit has found so far, for the next one."""
        if not np.isfinite(B).all() or not np.isfinite(intercept).all():
            return
        if folder is not None:
            folder.write(_ITERATE, B=B, intercept=intercept)
        if self.warm_start:
            self._iterate = B, intercept, classes

    def _small_fit(self, data: FitData) -> tuple[FloatArray, SolveResult, float] | None:
        """Weights, result and alpha by the short way for plain small problems, or None if it does not apply."""
        fitting, alpha = data.fitting, check_alpha(self.alpha)
        is_ordinary = isinstance(self.weights, str | np.ndarray)
        is_warm = self._last_coefficients(data) is not None
        is_watched = self.verbose or self.callback is not None or self.resume is not None
        asks_more = is_warm or is_watched or self.standardize or self._keeps_solves
        if alpha is None or not is_ordinary or asks_more or data.sample_weight is not None or len(fitting.unpenalized):
            return None
        promises = isinstance(self.weights, str) and self.weights in PROMISING  # a model can see whether it holds
        if not fitting.options.is_plain or fitting.offset_size > 0.0 or promises:
            return None
        weights = resolve_weights(
            self.weights,
            n_features=data.n_features,
            n_tasks=data.n_targets + fitting.two_classes,
            n_samples=data.n_samples,
            n_directions=resolve_loss(fitting.loss).parameters_per_feature(data.n_targets),
        )
        result = lean_solve(
            data.X,
            data.Y,
            alpha * penalty_weights(weights, two_classes=fitting.two_classes),
            fitting.settings,
            loss=fitting.loss,
            fit_intercept=fitting.fit_intercept,
            weight=1.0 / data.n_samples,
            drops_theta=True,
        )
        return None if result is None else (weights, result, float(alpha))

    def _path_through_fit(self, alphas_of: Callable[[float], FloatArray], callback: Callback) -> PathResult:
        """The path at other alphas, with the fit as one of its points; the fit must have kept its solves.

        ``alphas_of`` makes falling alphas from the smallest one that selects nothing. The solves are let go.
        """
        model, solves = self._solves
        del self._solves, self._keeps_solves
        path = path_through_fit(model, solves, self.alpha_, self.solve_result_, alphas_of(model.alpha_max), callback)
        return path.labeled(vars(self))


# Data as users give them ----------------------------------------------------------------------------------


def checked_matrix(estimator: Any, X: Any, *, reset: bool) -> tuple[Any, Any]:
    """X as an array or sparse matrix of finite floats, and its names; the estimator stays as it is.

    Data on disk or on a cluster become designs. With ``reset=False`` features must be those of the fit.
    """
    is_ready = type(X) is np.ndarray and X.ndim == 2 and X.size > 0 and X.dtype in _MATRIX_CHECKS["dtype"]
    if reset and is_ready:
        checks.check_finite("X", X, remedy=checks.IMPUTE)
        return X, None
    if (design := far_design(X)) is not None:
        names = None if design.feature_names is None else np.asarray(design.feature_names, dtype=object)
        if not reset:
            check_same_features(estimator, design.n_features, names)
        return design, names
    # What scikit-learn converts to something else, or refuses without saying what to do.
    if X is None:
        raise TypeError("X is None. Give the data as an array of shape (n_samples, n_features).")
    if isinstance(X, list | tuple):
        X = checks.rectangular_array("X", X)
    checks.refuse_mask("X", X)
    kind = getattr(getattr(X, "dtype", None), "kind", "")
    if kind == "c":
        raise ValueError(f"X must hold real numbers, got dtype {X.dtype}. Complex data not supported.")
    given_names = checks.column_names(X) if hasattr(X, "columns") else None
    if (given_names is not None or kind in "mM") and (dates := checks.complain_of_dates("X", X)):
        raise TypeError(dates)
    if given_names is not None and (repeated := checks.repeated_columns(given_names)):
        what = f"X has {len(repeated)} columns of the name {given_names[repeated[0]]!r}"
        remedy = "Rename them, or give the data without names, for example X.to_numpy()."
        raise ValueError(f"{what}, {checks.list_columns(repeated, None)}, and names must be unique. {remedy}")
    X = checks.checked_sparse("X", X) if sp.issparse(X) else X  # before scikit-learn converts it
    scratch = copy(estimator)  # validation writes n_features_in_ and feature_names_in_ before all checks are done
    try:
        checked = validate_data(scratch, X, reset=reset, ensure_all_finite=False, **_MATRIX_CHECKS)
    except (TypeError, ValueError) as error:
        complaint = checks.complain_of_entries("X", X if given_names is not None else np.asarray(X))
        reason = printable(error, keep="\n")  # scikit-learn lists names as they are
        if isinstance(error, TypeError):
            raise TypeError(f"X: {reason}" if complaint is None else f"{complaint} ({reason})") from None
        raise ValueError(complaint or f"X: {reason}") from None
    names = getattr(scratch, "feature_names_in_", None)
    checks.check_finite("X", checked, remedy=checks.IMPUTE, names=names)
    return checked, names


def _check_like_frame(estimator: Any, X: Any) -> None:
    """Refuse what is no frame, or has other columns than that of the fit."""
    if checks.column_names(X) is None or not hasattr(X, "__len__"):
        kind = type(estimator).__name__
        raise TypeError(f"X must be a data frame, as {kind} was fitted with categories, got {type(X).__name__}.")
    try:
        validate_data(copy(estimator), X, reset=False, skip_check_array=True)
    except ValueError as error:
        raise ValueError(f"X: {printable(error, keep=chr(10))}") from None


def check_same_features(estimator: Any, n_features: int, names: Any) -> None:
    """Refuse features that are not those of the fit, as scikit-learn does for arrays and frames."""
    kind = type(estimator).__name__
    if n_features != estimator.n_features_in_:
        expected = f"{kind} is expecting {estimator.n_features_in_} features as input"
        raise ValueError(f"X has {n_features} features, but {expected}.")
    fitted = getattr(estimator, "feature_names_in_", None)
    if names is None or fitted is None or np.array_equal(names, fitted):
        return
    unseen = [repr(name) for name in names if name not in set(fitted)]
    what = f"it has {', '.join(unseen[:5])}, which the fit did not see" if unseen else "they are in another order"
    raise ValueError(f"The feature names of X should match those that {kind} was fitted with, but {what}.")


def target_array(y: Any, n_samples: int) -> Any:
    """Targets or labels as an array with one row per sample."""
    values = checks.rectangular_array("y", y)
    if values.ndim == 0:
        raise ValueError(f"y must have one entry per sample, got {y!r}.")
    checks.check_length("y", values.shape, n_samples)
    return values
