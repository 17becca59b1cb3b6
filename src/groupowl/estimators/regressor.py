"""Multi-task regression with the Group OWL penalty."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.metrics import d2_tweedie_score, r2_score

from .._checks import check_targets, entry_weights
from .._typing import FloatArray, IndexArray
from ..designs import as_design, row_wise
from ..inputs import feature_names
from ..losses import Loss, resolve_loss
from ..weights import sequences_of
from .base import FitData, SingleFit, Targets, target_array

# Accuracy of the fit whose residuals say how large errors are, relative to the null model.
_FIRST_TOL = 1e-4
# How often it is made, and its alpha relative to a tenth of the smallest that selects nothing.
_FIRST_FITS = 2
_NEGLIGIBLE = 1e-2
# Samples for each feature that the other half has selected.
_SAMPLES_PER_FEATURE = 3
# Median and mean of the size of a standard normal number.
_NORMAL_MEDIAN = 0.6744897501960817
_NORMAL_MEAN = 0.7978845608028654


class RegressorMethods(RegressorMixin):  # type: ignore[misc]  # scikit-learn has no types
    """What regression adds to :class:`~groupowl.estimators.base.GroupOWLBase`."""

    if TYPE_CHECKING:  # what a fit stores
        delta_: FloatArray

    @property
    def _loss(self) -> Loss:
        """The loss, with a delta of its own where it takes one and the parameter is a number."""
        loss = resolve_loss(self.loss)
        if loss.target != "numbers":
            kind = "GroupOWLCox" if loss.target == "times" else "GroupOWLClassifier"
            remedy = f"Use {kind} or {kind}CV"
            raise ValueError(f"loss={loss.name!r} is for {loss.target}, not for numbers. {remedy}.")
        is_auto = isinstance(self.delta, str) and self.delta == "auto"
        if not is_auto and not self._takes_delta(loss):
            raise ValueError(f"delta={self.delta!r} is for loss='huber', got loss={self.loss!r}. Leave it out.")
        return loss if is_auto else replace(cast(Any, loss), delta=self.delta)

    @property
    def _fitted_loss(self) -> Loss:
        """The loss with the delta of the fit, where it has one."""
        loss: Any = self._loss
        return replace(loss, delta=self.delta_) if "delta_" in vars(self) else loss

    def _takes_delta(self, loss: Loss) -> bool:
        """Whether delta is a parameter of the fit: a loss that was given as an object has its own."""
        return isinstance(self.loss, str) and loss.delta_in_deviations > 0.0

    def _completed(self, data: FitData) -> FitData:
        """The data with the scale of the errors fixed, so that all that follows is about one convex problem."""
        loss = data.fitting.loss
        if not self._takes_delta(loss) or data.is_summarized:
            return data
        if data.is_like_fit:
            loss = self._fitted_loss
        elif isinstance(self.delta, str):
            loss = replace(loss, delta=loss.delta_in_deviations * self._error_scale(data))
        loss.check_targets(np.zeros((1, data.n_targets)))
        delta = np.broadcast_to(loss.delta, data.n_targets).copy()
        return replace(data, fitting=replace(data.fitting, loss=loss), labels=data.labels | {"delta_": delta})

    def _error_scale(self, data: FitData) -> FloatArray:
        """Standard deviations of the errors, without outliers, from the residuals of first fits.

        The penalty takes off coefficients what it adds to residuals: the scale of a penalized fit is an upper bound,
        with which outliers are told in fits whose penalty is negligible.
        """
        if data.is_distributed:
            raise ValueError(
                "delta='auto' needs data in this process, and these are on a cluster. Give delta as a number, for "
                "example 1.345 times the standard deviation of the errors."
            )
        given = np.ones(data.n_samples) if data.sample_weight is None else data.sample_weight
        weight = entry_weights(data.Y, given)[1]
        result = self._selecting_fit(data, weight, robust_deviations(data.Y, weight))
        residuals = data.Y - as_design(data.X).matmul(result.B, result.intercept)
        largest = robust_deviations(residuals, weight) * self._loss_of_freedom(data, weight, len(result.support))
        scale, parts = largest, self._parts_of_first_fit(data, weight, largest)
        for _ in range(_FIRST_FITS if parts else 0):
            residuals = np.zeros(data.Y.shape)
            for features, part in parts:
                residuals += self._first_residuals(data, features, part, scale)
            scale = np.minimum(robust_deviations(residuals, weight), largest)
        return scale

    def _loss_of_freedom(self, data: FitData, weight: FloatArray, n_features: int) -> float:
        """Average ratio of errors to residuals after a least-squares fit of this many features."""
        n_samples = _count(weight)
        left = max(n_samples - n_features - data.fitting.fit_intercept, 0.1 * n_samples)
        return float(np.sqrt(n_samples / left))

    def _selecting_fit(self, data: FitData, weight: FloatArray, scale: FloatArray) -> Any:
        """At a tenth of the smallest alpha that selects nothing."""
        first = sequences_of(self.weights)[0]
        fitting = self._first_fitting(data, scale)
        model = fitting.model(data.X, data.Y, first, _of_samples(weight))
        return model.continuation(fitting.settings).solve(model.sequence_weights, model.resolve_alpha("auto"))

    def _parts_of_first_fit(
        self, data: FitData, weight: FloatArray, scale: FloatArray
    ) -> list[tuple[IndexArray, FloatArray]]:
        """Features of the least-squares refit and its sample weights: all features if there are twice as many samples.

        Else two halves: the features of each are the strongest that the other one selects, because features fit the
        samples that have selected them too well (Fan, Guo and Hao 2012).
        """
        n_samples, free = _count(weight), data.fitting.unpenalized
        if 2 * (data.n_features + 1) <= n_samples:
            return [(np.arange(data.n_features), weight)]
        is_half = np.zeros((len(weight), 1), dtype=bool)
        present = np.flatnonzero(weight.any(axis=1))
        is_half[np.random.default_rng(0).permutation(present)[: len(present) // 2]] = True
        halves, parts = [weight * is_half, weight * ~is_half], []
        if not all(half.any(axis=0).all() for half in halves):  # nothing is known of some task
            return []
        for own, other in (halves, halves[::-1]):
            result = self._selecting_fit(data, own, scale)
            most = _count(other) // _SAMPLES_PER_FEATURE
            strongest = np.argsort(-np.linalg.norm(result.B, axis=1), kind="stable")[:most]
            parts.append((np.union1d(np.intersect1d(strongest, result.support), free), other))
        return parts

    def _first_residuals(self, data: FitData, features: IndexArray, part: FloatArray, scale: FloatArray) -> FloatArray:
        """Residuals of a fit of some features to some samples, as large as errors are; zero for other samples."""
        fitting = self._first_fitting(data, scale)
        design = as_design(data.X).restrict(features)
        free = np.searchsorted(features, fitting.unpenalized)
        fitting = replace(fitting, unpenalized=free, options=fitting.options.restrict(features))
        Z = np.zeros(data.Y.shape)
        if len(features) > len(fitting.unpenalized):
            model = fitting.model(design, data.Y, "constant", _of_samples(part))
            alpha = _NEGLIGIBLE * model.resolve_alpha("auto")
            result = model.continuation(fitting.settings).solve(model.sequence_weights, alpha)
            Z = design.matmul(result.B, result.intercept)
        factor = self._loss_of_freedom(data, part, len(features))
        return np.where(part > 0.0, factor * (data.Y - Z), 0.0)

    def _first_fitting(self, data: FitData, scale: FloatArray) -> Any:
        """How first fits are made, with errors of this scale."""
        fitting = data.fitting
        settings = replace(fitting.settings, tol=_FIRST_TOL, rng=np.random.default_rng(0))
        return replace(
            fitting, loss=replace(fitting.loss, delta=fitting.loss.delta_in_deviations * scale), settings=settings
        )

    def _encode_targets(self, y: Any, names: Any, weight: Any) -> Targets:
        """Targets as a matrix."""
        labels = {} if names is None else {"target_names_": np.asarray(names, dtype=object)}
        if not isinstance(y, np.ndarray):  # on a cluster, where entries are checked later
            return Targets(y[:, None] if y.ndim == 1 else y, weight, y.ndim == 1, labels, {})
        values = y
        if y.dtype.kind == "O":
            with suppress(TypeError, ValueError):  # what holds no numbers is refused below
                values = y.astype(np.float64)
        try:
            may_miss = not resolve_loss(self._loss).needs_whole_samples
            Y = check_targets(values, len(values), argument="y", names=names, may_miss=may_miss)
        except TypeError as error:
            has_text = any(isinstance(entry, str | bytes) for entry in values.flat)  # most often the label of a class
            advice = " Labels of classes are for GroupOWLClassifier and GroupOWLClassifierCV." if has_text else ""
            raise TypeError(f"{error}{advice}") from error
        return Targets(Y, weight, np.ndim(values) == 1, labels, {})

    def _targets_for_scorers(self, y: Any, data: FitData) -> Any:
        """Targets as scorers and splitters of scikit-learn expect them."""
        return data.targets[:, 0] if data.is_flat else data.targets

    def _public_coefficients(self, B: FloatArray, intercept: FloatArray, data: FitData) -> tuple[Any, Any]:
        """``coef_`` and ``intercept_`` in the shape and precision that users see."""
        coef, offset = np.ascontiguousarray(B.T, dtype=data.dtype), intercept.astype(data.dtype)
        return (coef[0], offset[0]) if data.is_flat else (coef, offset)

    def _inner_coefficients(self, coef: Any, intercept: Any) -> tuple[FloatArray, FloatArray]:
        """``B`` and intercept from what users see."""
        B = np.atleast_2d(np.asarray(coef, dtype=np.float64)).T
        return B, np.atleast_1d(np.asarray(intercept, dtype=np.float64))

    def predict(self, X: Any, offset: Any = None) -> FloatArray:
        """Predict the targets.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_samples, n_features)
            Data.
        offset : array-like of shape (n_samples,) or (n_samples, n_targets), default=None
            Added to the linear predictors. Required if the fit had an offset; ``offset=0`` means none.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_targets)
            As the targets of the fit were, and on their scale: counts for ``loss="poisson"``.
        """
        scores = self._decision(X, offset)
        width = None if scores.ndim == 1 else scores.shape[1]
        return row_wise(resolve_loss(self.loss).predicted, scores, scores.dtype, width)

    def score(self, X: Any, y: Any, sample_weight: Any = None, offset: Any = None) -> float:
        """Coefficient of determination of the predictions, R^2; for ``loss="poisson"`` the same of the deviance, D^2.

        ``1 - sum_i w_i (y_i - p_i)^2 / sum_i w_i (y_i - mean)^2`` of each target, and the mean over targets: 1 is
        perfect, 0 as good as the mean of ``y``, and worse is negative. D^2 has Poisson deviances in place of squares,
        as in ``sklearn.linear_model.PoissonRegressor``.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_samples, n_features)
            Data.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            True targets; NaN entries are ignored.
        sample_weight : array-like of shape (n_samples,) or (n_samples, n_targets), default=None
            Weights w of the samples, or of each target; 1 by default.
        offset : array-like of shape (n_samples,) or (n_samples, n_targets), default=None
            Added to the linear predictors. Required if the fit had an offset; ``offset=0`` means none.

        Returns
        -------
        float
            At most 1.
        """
        predicted = np.asarray(self.predict(X, offset))
        values = target_array(y, len(predicted))
        weight = None if sample_weight is None else self._checked_weight(sample_weight, values)
        Y = self._encode_targets(values, feature_names(y), weight).Y
        P = predicted.reshape(len(predicted), -1)
        if Y.shape != P.shape:
            raise ValueError(f"y has {Y.shape[1]} targets, but {type(self).__name__} was fitted with {P.shape[1]}.")
        power = resolve_loss(self.loss).variance_power
        if power == 0.0 and (weight is None or weight.ndim == 1) and not np.isnan(Y).any():
            return float(r2_score(Y, P, sample_weight=weight))
        w = np.broadcast_to(entry_weights(Y, np.ones(len(Y)) if weight is None else weight)[1], Y.shape)
        scores = []
        for y, p, v in zip(Y.T, P.T, w.T, strict=True):
            rows = v > 0.0 if power == 0.0 or np.isnan(y).any() else slice(None)
            own = None if weight is None else v[rows]
            scores.append(
                r2_score(y[rows], p[rows], sample_weight=own)
                if power == 0.0
                else d2_tweedie_score(y[rows], p[rows], sample_weight=own, power=power)
            )
        return float(np.mean(scores))


def _count(weights: FloatArray) -> int:
    """Samples of positive weight; on the average over targets where their weights differ."""
    return int(np.count_nonzero(weights)) // weights.shape[1]


def _of_samples(weights: FloatArray) -> FloatArray:
    """Weights as one for each sample, where there is one column."""
    return weights[:, 0] if weights.shape[1] == 1 else weights


def robust_deviations(values: FloatArray, weights: FloatArray) -> FloatArray:
    """Standard deviation of each column from the median distance to its median, as for normal numbers.

    ``weights`` are a column for all of them or one for each; values of weight zero may be NaN.

    The mean distance stands in where more than half of the numbers are equal, and 1 where all are.
    """
    found = np.ones(values.shape[1])
    for k, (column, weight) in enumerate(zip(values.T, np.broadcast_to(weights, values.shape).T, strict=True)):
        if np.isnan(column).any():
            column, weight = column[weight > 0.0], weight[weight > 0.0]
        distances = np.abs(column - _median(column, weight))
        median, mean = _median(distances, weight), np.average(distances, weights=weight)
        if mean > 0.0:
            found[k] = median / _NORMAL_MEDIAN if median > 0.0 else mean / _NORMAL_MEAN
    return found


def _median(values: FloatArray, weight: FloatArray) -> float:
    """The smallest number with half of the weight at or below it."""
    order = np.argsort(values)
    below = np.cumsum(weight[order])
    return float(values[order[np.searchsorted(below, 0.5 * below[-1])]])


@dataclass(eq=False, repr=False)
class GroupOWLRegressor(RegressorMethods, SingleFit):
    """Linear regression for one or many targets that selects features for all of them together.

    Minimizes, over ``B`` of shape (n_features, n_targets) and the intercept ``b0``,

        ``1/(2 W) sum_i w_i ||y_i - x_i^T B - b0||^2 + alpha sum_j weights_j ||B_[j],:||_2``

    with ``W = sum_i w_i`` (the number of samples without sample weights) and ``||B_[1],:|| >= ||B_[2],:|| >= ...``.
    With ``weights="constant"`` this is ``sklearn.linear_model.MultiTaskLasso``; with one target it is SLOPE (OWL).

    Parameters
    ----------
    alpha : float or "auto", default="auto"
        Strength of the penalty. "auto" is a tenth of the smallest alpha that selects nothing on these data (1 where
        that is 0); the value used is ``alpha_``.
    weights : str, array-like of shape (n_features,) or callable, default="oscar"
        Weight sequence, not increasing: "oscar", "linear", "constant" (or "lasso"), "bh", "chi", "chi_gauss",
        "gaussian" (for one task), an array that is used as it is (one weight per penalized feature), or
        ``f(n_features, n_tasks=, n_samples=)``. Samples, for "gaussian", "chi_gauss" and functions, are rows of X with
        a positive weight, each counted once.
    fit_intercept : bool, default=True
        Whether to fit an intercept, which is never penalized.
    standardize : bool, default=False
        Whether the penalty sees columns divided by their weighted standard deviation; ``coef_`` is on the scale of X.
        Columns without variation get zero coefficients.
    unpenalized : list of str or int, default=None
        Columns that are always in the model and not penalized, by name or index.
    solver : {"auto", "apgd", "spgd"} or solver object, default="auto"
        "auto" suits nearly all problems; see :func:`groupowl.solve`.
    screening : {"safe", "paper", "none"}, default="safe"
        Rule that removes features proved to be zero. The solution is the same for all three, and with ``solver="auto"``
        the time nearly so.
    tol : float, default=1e-6
        The fit ends when the duality gap is at most ``tol`` times the loss of the null model (the intercept alone, or
        zero without one) less the smallest possible loss, which is zero for most targets.
    max_iter : int, default=10000
        Maximum number of proximal steps.
    warm_start : bool, default=False
        Whether a fit starts from the coefficients of the previous one if shapes agree. The solution is the same within
        ``tol``.
    relaxed : bool, default=False
        Whether to fit the selected features again without penalty: least squares of minimum norm. Certificates are
        about the penalized fit, which is kept in ``penalized_coef_`` and ``penalized_intercept_``.
    random_state : int, Generator, RandomState or None, default=None
        Seed of stochastic solvers.
    verbose : int, default=0
        1 shows a line of progress, with the share of a pass over data on disk or on a cluster that is done; 2 a line
        for every certificate.
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
    ridge : float, default=0.0
        Adds ``ridge/2 ||B||_F^2`` to the objective, for coefficients on the scale of the penalty (of standardized and
        scaled columns). Unpenalized features have no ridge.
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
        Called as ``callback(progress)`` after each certificate, see :class:`groupowl.Progress`; returning True
        ends the fit there. The compiled kernel is not used then.
    resume : str or Path, default=None
        A folder that keeps the coefficients of a fit that is interrupted (and every 30 seconds of a long one), from
        which the same fit goes on. A folder of another problem (data, penalty, alpha, tol, version of groupowl) is
        refused.
    loss : {"squared", "huber", "poisson"} or Loss, default="squared"
        "squared" for numbers; "huber" for numbers with outliers, whose residuals count linearly beyond ``delta``;
        "poisson" for counts and rates, with a linear model for the logarithm of the mean.
    delta : float, array-like of shape (n_targets,) or "auto", default="auto"
        For ``loss="huber"`` only: residuals above this value are treated as outliers. "auto" is 1.345 standard
        deviations of the errors of each target, estimated from the median absolute residual of preliminary fits with a
        negligible penalty. The value is stored as ``delta_`` and fixed before the model is fitted.

    Attributes
    ----------
    coef_ : ndarray of shape (n_targets, n_features) or (n_features,)
        Coefficients; 1-D if y is. float32 if X is.
    intercept_ : ndarray of shape (n_targets,) or float
        Intercept; zero without one.
    sparse_coef_ : sparse array of shape (n_targets, n_features)
        ``coef_`` as a sparse array.
    scaled_coef_ : ndarray
        ``coef_`` on the scale that the penalty sees: per standard deviation with ``standardize=True``.
    alpha_ : float
        Strength used.
    weights_ : ndarray of shape (n_penalized,)
        Weight sequence used.
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
        Proved bound on the distance of the objective from its minimum, in the units of the objective above.
    n_iter_ : int
        Proximal steps taken.
    screened_fraction_ : float
        Fraction of the features that are proved to be zero.
    solve_result_ : SolveResult
        The penalized fit, relaxed or not: coefficients in double precision, certificate and history; its ``theta`` is
        not kept.
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
    GroupOWLClassifier : The same for classes.

    Examples
    --------
    >>> import groupowl as go
    >>> data = go.datasets.make_correlated_groups(60, 200, 3, random_state=0)
    >>> model = go.GroupOWLRegressor().fit(data.X, data.Y)
    >>> model.coef_.shape, bool(model.verify(data.X, data.Y))
    ((3, 200), True)
    """

    _: KW_ONLY
    loss: Any = "squared"
    delta: Any = "auto"
