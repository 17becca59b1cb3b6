"""What all estimators share: data as they come in, a model, a solve, and the fitted attributes they become.

A fit computes everything into locals and sets attributes in one statement, :meth:`GroupOWLBase._store`: a fit that
fails or is interrupted leaves an earlier one as it was.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from copy import copy
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, is_classifier
from sklearn.utils.validation import check_is_fitted

from .._checks import positive_sample_weight, truth_value
from .._typing import BoolArray, FloatArray, IndexArray
from ..designs import Design, is_summary, row_chunks
from ..inputs import feature_names, resolve_columns
from ..model import Model, relaxed_coefficients, warn_unless_bounded
from ..model_selection import Fitting
from ..norm.kernels import nonzero_rows
from ..path import PathResult, path_through_fit
from ..progress import shown_progress
from ..solvers import (
    Callback,
    Continuation,
    SolveResult,
    SolverSettings,
    check_settings,
    warn_unless_converged,
)
from .fit_data import FitData, checked_matrix, summarized_data, target_array
from .fit_summary import FitCertificate, coefficient_frame, summary_text
from .verification import FitCheck, Verification


class GroupOWLBase(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Base of the estimators; a subclass adds what a kind of target needs, and a ``fit``.

    A subclass has ``_loss`` and the methods ``_encode_targets``, ``_public_coefficients`` and
    ``_inner_coefficients`` of :class:`~groupowl.estimators.regressor.RegressorMethods` or
    :class:`~groupowl.estimators.classifier.ClassifierMethods`.
    """

    _loss: ClassVar[str]
    # Whether a fit keeps what a path goes on from, the data among it, until the path is made.
    _keeps_solves = False
    _solves: tuple[Model, Continuation]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    # Fitting ----------------------------------------------------------------------------------------

    def _fitting(self) -> Fitting:
        """How to fit, after a check of the parameters that do not depend on data."""
        for name in ("fit_intercept", "standardize", "relaxed", "warm_start"):
            truth_value(name, getattr(self, name, False))
        return Fitting(
            loss=self._loss,
            fit_intercept=bool(self.fit_intercept),
            standardize=bool(self.standardize),
            unpenalized=np.zeros(0, dtype=np.intp),  # until the columns are known
            settings=check_settings(
                self.solver, self.screening, self.tol, self.max_iter, random_state=self.random_state
            ),
            relaxed=bool(self.relaxed),
        )

    def _validate_fit(self, X: Any, y: Any, sample_weight: Any = None, *, reset: bool = True) -> FitData:
        """Check the data of a fit and change nothing; with ``reset=False`` they must be like those of the fit."""
        if is_summary(X):
            if is_classifier(self):
                raise ValueError(f"X: {type(self).__name__} needs the samples themselves, not SufficientStatistics.")
            return summarized_data(self, X, y, sample_weight, reset=reset)
        checked, names = checked_matrix(self, X, reset=reset)
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None. Use fit(X, y).")
        n_samples, n_features = checked.shape
        is_distributed = getattr(checked, "is_distributed", False)  # of a design; arrays are here
        weight = sample_weight
        if is_distributed:  # whose entries are checked there, block by block
            array, named = row_chunks("y", y)
            if weight is not None:
                weight = row_chunks("sample_weight", weight)[0]
            Y, classes, is_flat, weight = self._encode_distributed_targets(array, weight)
        else:
            named = feature_names(y)
            if weight is not None:
                weight = positive_sample_weight(weight, n_samples)
            Y, classes, is_flat, weight = self._encode_targets(target_array(y, n_samples), named, weight)
        columns = resolve_columns("unpenalized", self.unpenalized, n_features, names) if reset else self.unpenalized_
        return FitData(
            checked,
            Y,
            n_samples,
            n_features,
            n_targets=Y.shape[1],
            sample_weight=weight,
            unpenalized=columns,
            is_flat=is_flat,
            dtype=np.dtype(np.float32 if checked.dtype == np.float32 else np.float64),
            names=names,
            target_names=None if named is None or classes is not None else np.asarray(named, dtype=object),
            classes=classes,
            is_distributed=is_distributed,
        )

    def _build_model(self, data: FitData) -> Model:
        """Everything of the fit but alpha."""
        fitting = replace(self._fitting(), unpenalized=data.unpenalized)
        return fitting.model(data.X, data.Y, self.weights, data.sample_weight)

    def _solve(
        self,
        model: Model,
        alpha: float,
        settings: SolverSettings,
        start: FloatArray | None = None,
        *,
        what: str = "",
    ) -> SolveResult:
        """One solve, with a line of progress, about ``what``, if the user asked for it."""
        goal = model.problem.goal(settings.tol)
        with shown_progress(self.verbose, goal=goal, what=what or type(self).__name__) as line:
            solves = model.continuation(replace(settings, callback=line), start=start)
            result = solves.solve(model.sequence_weights, alpha, dtype=model.dtype)
        if self._keeps_solves:
            self._solves = model, solves
        return result

    def _store(self, data: FitData, model: Model, result: SolveResult, alpha: float, **more: Any) -> Self:
        """Replace all fitted attributes at once; ``more`` are those that only some estimators have."""
        coef, intercept = self._public_coefficients(result.B, result.intercept, data)
        fitted: dict[str, Any] = {
            "alpha_": alpha,
            "weights_": model.weights,
            "unpenalized_": model.unpenalized,
            "coef_": coef,
            "intercept_": intercept,
            "clusters_": result.clusters,
            "dual_gap_": result.gap,
            "n_iter_": result.n_iter,
            "screened_fraction_": 1.0 - len(result.active) / data.n_features,
            "solve_result_": replace(result, _theta=None),  # which would keep the data in memory
        }
        if self.relaxed:
            B, offset, ridge_decides = relaxed_coefficients(model, result.support)
            if ridge_decides:
                warnings.warn(
                    f"relaxed=True: without penalty the {len(result.support)} selected features fit the classes "
                    "(almost) perfectly, and the size of the coefficients is decided by a ridge of 1e-6 of the mean "
                    "curvature. Raise alpha, or use relaxed=False.",
                    UserWarning,
                    stacklevel=3,
                )
            fitted |= {"penalized_coef_": coef, "penalized_intercept_": intercept}
            fitted["coef_"], fitted["intercept_"] = self._public_coefficients(B, offset, data)
        kept = {name: value for name, value in vars(self).items() if name.startswith("_") or not name.endswith("_")}
        self.__dict__ = kept | data.labels() | fitted | more
        return self

    # What was fitted --------------------------------------------------------------------------------

    def _penalized_coefficients(self) -> tuple[Any, Any]:
        """Public coefficients and intercept that the certificates are about."""
        if "penalized_coef_" in vars(self):
            return self.penalized_coef_, self.penalized_intercept_
        return self.coef_, self.intercept_

    def _decision(self, X: Any) -> Any:
        """``X B + b0`` with the public coefficients; a Dask array for data on a cluster."""
        check_is_fitted(self)
        checked = checked_matrix(self, X, reset=False)[0]
        if not isinstance(checked, Design):
            return checked @ self.coef_.T + self.intercept_
        coef, intercept = np.atleast_2d(self.coef_), np.atleast_1d(self.intercept_)
        Z = checked.matmul(coef.T.astype(np.float64), intercept.astype(np.float64))
        scores = checked.exported(Z, len(coef)).astype(self.coef_.dtype)
        return scores[:, 0] if self.coef_.ndim == 1 else scores

    def _feature_labels(self) -> Any:
        """Names of the features, or their indices."""
        return getattr(self, "feature_names_in_", np.arange(self.n_features_in_))

    @property
    def sparse_coef_(self) -> Any:
        """``coef_`` as a sparse array of shape (n_targets, n_features)."""
        check_is_fitted(self)
        return sp.csr_array(np.atleast_2d(self.coef_))

    @property
    def selected_features_(self) -> Any:
        """Features with a coefficient that is not zero, ascending: names where there are names, else indices."""
        check_is_fitted(self)
        return self._feature_labels()[self.get_support(indices=True)]

    def get_support(self, indices: bool = False) -> BoolArray | IndexArray:
        """Features with a coefficient that is not zero, unpenalized ones included.

        ``sklearn.feature_selection.SelectFromModel(estimator, threshold=1e-12)`` keeps the same features; its default
        threshold, the mean of the coefficients' norms, drops small ones.

        Parameters
        ----------
        indices : bool, default=False
            Whether to return indices in place of a mask.

        Returns
        -------
        ndarray
            Mask of shape (n_features,), or ascending indices.
        """
        check_is_fitted(self)
        mask = nonzero_rows(np.atleast_2d(self.coef_).T)
        return np.flatnonzero(mask) if truth_value("indices", indices) else mask

    def coef_frame(self, *, sort: bool = False) -> Any:
        """Coefficients as a pandas data frame, one row per feature.

        Parameters
        ----------
        sort : bool, default=False
            Whether to list the strongest first in place of the order of the columns of X: by cluster, which is by
            falling norm in the scale that the penalty sees, then unpenalized features, then those that are zero; equals
            in the order of the columns.

        Returns
        -------
        pandas.DataFrame
            ``feature``, ``cluster`` (0: not selected, or unpenalized), ``norm`` of the coefficients shown, ``state``
            as in :meth:`certificate`, and the coefficients: ``coef``, or a column ``coef_<target or class>`` for
            each where there are more.
        """
        check_is_fitted(self)
        return coefficient_frame(self, sort=truth_value("sort", sort))

    def certificate(self) -> FitCertificate:
        """What is proved about each feature: selected, proved zero (and at which gap), or zero but not proved.

        Returns
        -------
        FitCertificate
            Prints a table; iterates over features; ``to_frame()`` makes a data frame.
        """
        check_is_fitted(self)
        return FitCertificate.of(self)

    def verify(self, X: Any, y: Any = None, sample_weight: Any = None) -> Verification:
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
        sample_weight : array-like of shape (n_samples,), default=None
            Sample weights of the fit.

        Returns
        -------
        Verification
            True exactly when the fit holds; printed, it says why.
        """
        check_is_fitted(self)
        data = self._data_again(X, y, sample_weight)
        with np.errstate(all="ignore"):
            return FitCheck(copy(self).set_params(verbose=0), data, self._build_model(data)).verification()

    def _data_again(self, X: Any, y: Any, sample_weight: Any) -> FitData:
        """Data that can be those of the fit."""
        data = self._validate_fit(X, y, sample_weight, reset=False)
        if data.classes is not None and not np.array_equal(data.classes, self.classes_):
            raise ValueError(
                f"y has the classes {data.classes.tolist()}, but {type(self).__name__} was fitted with "
                f"{self.classes_.tolist()}."
            )
        if data.n_targets != self.solve_result_.B.shape[1]:
            raise ValueError(
                f"y has {data.n_targets} targets, but {type(self).__name__} was fitted with "
                f"{self.solve_result_.B.shape[1]}."
            )
        return data

    def summary(self) -> None:
        """Print one page about the fit: objective, proof, selected features and their clusters."""
        check_is_fitted(self)
        print(summary_text(self))


class SingleFit(GroupOWLBase):
    """``fit`` of the estimators that take one alpha."""

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like, data frame, sparse matrix or design of shape (n_samples, n_features), or SufficientStatistics
            Data. float32 stays float32, sparse data stay sparse. A matrix on disk (see
            :class:`groupowl.MemmapDesign`), or a Dask array or data frame. Statistics, for regression, stand for ``y``
            and ``sample_weight`` too.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Targets, or one label per sample for classification.
        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative weights; 2 is the same as the sample twice, 0 as no sample. Weight sequences that depend on the
            number of samples ("gaussian", functions) count rows.

        Returns
        -------
        self
            The fitted estimator. A fit that fails or is interrupted leaves an earlier one as it was.

        Warns
        -----
        ConvergenceWarning
            When the duality gap stays above ``tol`` times the loss of the null model, or coefficients of unpenalized
            columns have no finite optimum because these tell classes apart.
        """
        settings = self._fitting().settings
        data = self._validate_fit(X, y, sample_weight)
        model = self._build_model(data)
        warn_unless_bounded(model)
        alpha = model.resolve_alpha(self.alpha)
        result = self._solve(model, alpha, settings, self._start(data, model))
        warn_unless_converged(result, model.problem.goal(settings.tol), settings)
        return self._store(data, model, result, alpha)

    def _path_through_fit(self, alphas_of: Callable[[float], FloatArray], callback: Callback) -> PathResult:
        """The path at other alphas, with the fit as one of its points; the fit must have kept its solves.

        ``alphas_of`` makes falling alphas from the smallest one that selects nothing. The solves are let go.
        """
        model, solves = self._solves
        del self._solves, self._keeps_solves
        solves.settings = replace(solves.settings, callback=callback)
        alphas = alphas_of(model.alpha_max)
        path = path_through_fit(model, solves, self.alpha_, self.solve_result_, alphas, model.dtype)
        names = (getattr(self, name, None) for name in ("feature_names_in_", "target_names_", "classes_"))
        return path.labeled(*names)

    def _start(self, data: FitData, model: Model) -> FloatArray | None:
        """Coefficients of the last fit, if the user wants them and they belong to data like these."""
        last = getattr(self, "solve_result_", None)
        if not self.warm_start or last is None or last.B.shape != (data.n_features, data.n_targets):
            return None
        if data.classes is not None and not np.array_equal(data.classes, self.classes_):
            return None
        return model.start(last.B.T, last.intercept)
