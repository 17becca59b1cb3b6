"""Proportional hazards with the Group OWL penalty: times until events, some of which were not seen."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from .._checks import as_float_array, check_finite, check_length, check_sample_weight, rectangular_array, refuse_mask
from .._typing import FloatArray
from ..designs import as_design
from ..designs.base import is_dask
from ..losses import CoxLoss, resolve_loss, survival_targets
from .base import FitData, SingleFit, Targets
from .cv import CrossValidatedFit
from .verification import Verification

_FORMS = (
    "Give y as a structured array with the fields event and time, as scikit-survival does, or as two columns, event "
    "and time; several endpoints as a list of such arrays, or as more pairs of columns."
)


def survival_array(y: Any, strata: Any = None) -> Any:
    """Events and times, and strata where there are, as a structured array of shape (n,) or (n, n_endpoints)."""
    if y is None or is_dask(y):
        return y
    if isinstance(y, list | tuple) and y and all(getattr(part, "dtype", np.dtype(float)).names for part in y):
        y = np.stack([_as_pair(part) for part in y], axis=1)
    refuse_mask("y", y)
    is_flat, named = True, list(getattr(y, "columns", []))
    if getattr(getattr(y, "dtype", None), "names", None):
        pair = _as_pair(y)
        event, time, is_flat = pair["event"], pair["time"], pair.ndim == 1
        if strata is None and "stratum" in y.dtype.names:
            strata = y["stratum"].reshape(len(y), -1)[:, 0]
    else:
        if named:  # columns may differ in kind
            y = np.column_stack([_without_text(name, rectangular_array("y", y[name])) for name in named])
        matrix = as_float_array("y", y, ndim=(1, 2))
        if matrix.ndim != 2 or matrix.shape[1] % 2 or not matrix.size:
            raise ValueError(f"y has shape {matrix.shape}, which is not that of events and times. {_FORMS}")
        if sorted(named) == ["event", "time"]:
            matrix = matrix[:, [named.index("event"), named.index("time")]]
        event, time, is_flat = matrix[:, ::2], matrix[:, 1::2], matrix.shape[1] == 2
    survival_targets(event, time, strata)  # which refuses what is wrong
    fields: list[Any] = [("event", bool), ("time", float)]
    if strata is not None:
        strata = np.asarray(strata)
        fields.append(("stratum", strata.dtype))
    event, time = (np.reshape(part, (len(part), -1)) for part in (event, time))
    result = np.empty(event.shape, dtype=fields)
    result["event"], result["time"] = event != 0, time
    if strata is not None:
        result["stratum"] = strata[:, None]
    return result[:, 0] if is_flat else result


def _without_text(name: Any, column: Any) -> Any:
    """A column of events or times, which text is not."""
    words = [value for value in column if isinstance(value, str)] if column.dtype.kind in "OUS" else []
    if words:
        raise TypeError(
            f"y: column {name!r} has text ({words[0]!r}). Events are True or False, and times are numbers: "
            f"give y[{name!r}] == {words[0]!r} if that stands for an event."
        )
    return column


def _as_pair(y: Any) -> Any:
    """A structured array as events and times: by these names, or the first field and the second."""
    names = y.dtype.names
    event, time = ("event", "time") if {"event", "time"} <= set(names) else (*names, *names)[:2]
    if len(names) < 2:
        raise ValueError(f"y has the fields {list(names)}, but must have two, event and time. {_FORMS}")
    result = np.empty(y.shape, dtype=[("event", float), ("time", float)])
    result["event"], result["time"] = y[event], y[time]
    return result


def concordance(y: Any, predicted: FloatArray, sample_weight: FloatArray) -> float:
    """Harrell's index: how often, of two samples, the one with the earlier event has the higher predictor.

    Pairs count where the event of the earlier is known, within strata, by the product of their weights; equal
    predictors count half. NaN where there is no pair.
    """
    return concordance_and_error(y, predicted, sample_weight)[0]


def concordance_and_error(y: Any, predicted: FloatArray, sample_weight: FloatArray) -> tuple[float, float]:
    """The same, and its standard error, from what each sample has to do with it (infinitesimal jackknife)."""
    right, total = np.zeros((2, len(y)))  # over the pairs of each sample
    stratum = np.unique(y["stratum"], return_inverse=True)[1] if "stratum" in y.dtype.names else np.zeros(len(y))
    for i in np.flatnonzero(y["event"]):
        is_later = (y["time"] > y["time"][i]) | ((y["time"] == y["time"][i]) & ~y["event"])
        is_later &= stratum == stratum[i]
        weight, others = sample_weight[i] * sample_weight[is_later], predicted[is_later]
        hits = weight * ((others < predicted[i]) + 0.5 * (others == predicted[i]))
        right[is_later] += hits
        total[is_later] += weight
        right[i] += hits.sum()
        total[i] += weight.sum()
    n_pairs = 0.5 * total.sum()
    if n_pairs == 0.0:
        return np.nan, np.nan
    index = 0.5 * right.sum() / n_pairs
    return float(index), float(np.linalg.norm(right - index * total) / n_pairs)


class SurvivalMethods(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """What survival analysis adds to :class:`~groupowl.estimators.base.GroupOWLBase`."""

    _follow_coefficients: ClassVar[tuple[str, ...]] = ("baseline_hazard_",)

    if TYPE_CHECKING:  # what a fit stores
        strata_: npt.NDArray[Any]

    @property
    def _loss(self) -> CoxLoss:
        return CoxLoss(self.ties)

    _fitted_loss = _loss

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        strata: Any = None,
        *,
        offset: Any = None,
        **params: Any,
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like, data frame, sparse matrix or design of shape (n_samples, n_features)
            Data in memory, or a matrix on disk. Not on a cluster: samples are compared with each other.
        y : structured array of shape (n_samples,), array-like or data frame of shape (n_samples, 2), or more
            Events and times: a structured array with the fields ``event`` and ``time`` (or two others in this order),
            as ``sksurv.util.Surv`` makes it; or two columns, event first, unless a data frame calls them so. Events
            are True or 1 where they were seen, False or 0 where not (censored); times are positive. Several endpoints
            are a list of such structured arrays, or ``2 n_endpoints`` columns in pairs.
        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative weights: of deaths, and of those at risk. 0 is no sample.
        strata : array-like of shape (n_samples,), default=None
            Label of the stratum of each sample: strata have baseline hazards of their own, and the same coefficients.
        offset : array-like of shape (n_samples,) or (n_samples, n_endpoints), default=None
            Numbers that are added to the linear predictors, with a coefficient of one. Predictions then need an offset,
            too: ``offset=0`` for none.
        **params : dict
            What cross-validation takes, for example ``groups``.

        Returns
        -------
        self
            The fitted estimator. A fit that fails or is interrupted leaves an earlier one as it was.
        """
        return super().fit(X, survival_array(y, strata), sample_weight, offset=offset, **params)

    def verify(
        self, X: Any, y: Any = None, sample_weight: Any = None, strata: Any = None, **params: Any
    ) -> Verification:
        """Check the fit from scratch on the data it was made from, as :meth:`GroupOWLRegressor.verify` does.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_samples, n_features)
            The data of the fit.
        y : structured array or array-like
            Events and times of the fit.
        sample_weight : array-like of shape (n_samples,), default=None
            Sample weights of the fit.
        strata : array-like of shape (n_samples,), default=None
            Strata of the fit.
        **params : dict
            What else cross-validation had, and its ``scores``.

        Returns
        -------
        Verification
            True exactly when the fit holds; printed, it says why. The baseline hazards are among what is checked.
        """
        return super().verify(X, survival_array(y, strata), sample_weight, **params)

    def _checked_fit(self, X: Any, y: Any, sample_weight: Any = None, **how: Any) -> FitData:
        checked: FitData = super()._checked_fit(X, survival_array(y), sample_weight, **how)
        return checked

    def _encode_targets(self, y: Any, names: Any, weight: Any) -> Targets:
        """Signed ranks, and the times at which there were events, by endpoint and stratum."""
        if not isinstance(y, np.ndarray):
            raise ValueError(
                "the data are on a cluster, but samples are compared with each other. Use data in memory, for example "
                "X.compute() and y.compute(), or X on disk."
            )
        pairs = y.reshape(len(y), -1)
        strata = pairs["stratum"][:, 0] if "stratum" in y.dtype.names else None
        labels, place = (None, np.zeros(len(y))) if strata is None else np.unique(strata, return_inverse=True)
        is_present = np.ones(len(y), dtype=bool) if weight is None else weight > 0.0
        rows = []
        for k in range(pairs.shape[1]):
            chosen = pairs["event"][:, k] & is_present
            if not chosen.any():
                which = "y has" if pairs.shape[1] == 1 else f"endpoint {k} of y has"
                raise ValueError(
                    f"{which} no event among the samples of positive weight, so that there is nothing to fit. Check "
                    "which value stands for an event."
                )
            found = np.unique(np.column_stack([place, pairs["time"][:, k]])[chosen], axis=0)
            rows.append(np.column_stack([np.full(len(found), k), found]))
        endpoint, stratum, times = np.concatenate(rows).T
        fitted = {
            "baseline_endpoint_": endpoint.astype(np.intp),
            "baseline_stratum_": stratum.astype(np.intp),
            "baseline_times_": np.ascontiguousarray(times),
        }
        if labels is not None:
            fitted["strata_"] = labels
        Y = survival_targets(pairs["event"], pairs["time"], strata)
        return Targets(Y, weight, y.ndim == 1, fitted, {})

    def _targets_for_scorers(self, y: Any, data: FitData) -> Any:
        """Events and times, as a structured array."""
        return y

    def _public_coefficients(self, B: FloatArray, intercept: FloatArray, data: FitData) -> tuple[Any, Any]:
        """``coef_`` in the shape and precision that users see, and zeros."""
        coef, offset = np.ascontiguousarray(B.T, dtype=data.dtype), np.zeros(B.shape[1], dtype=data.dtype)
        return (coef[0], offset[0]) if data.is_flat else (coef, offset)

    def _inner_coefficients(self, coef: Any, intercept: Any) -> tuple[FloatArray, FloatArray]:
        """``B`` and zeros from what users see."""
        B = np.atleast_2d(np.asarray(coef, dtype=np.float64)).T
        return B, np.atleast_1d(np.asarray(intercept, dtype=np.float64))

    def _attributes(self, data: FitData, *fit: Any) -> dict[str, Any]:
        """With the baseline hazards of the coefficients that predict."""
        fitted: dict[str, Any] = super()._attributes(data, *fit)
        B, loss = self._inner_coefficients(fitted["coef_"], fitted["intercept_"])[0], resolve_loss(data.fitting.loss)
        weight = np.ones(data.n_samples) if data.sample_weight is None else data.sample_weight
        rows = np.flatnonzero(weight)
        Z = np.asarray(as_design(data.X).matmul(B))[rows]
        with np.errstate(all="ignore"):
            Z = loss.shifted(Z, data.Y[rows])
            hazards = self._loss.cumulative_hazards(Z, data.targets[rows], weight[rows, None])
        return fitted | {"baseline_hazard_": hazards}

    def predict(self, X: Any, offset: Any = None) -> FloatArray:
        """Logarithms of relative hazards, ``X B``: the higher, the earlier the event.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_samples, n_features)
            Data.
        offset : array-like of shape (n_samples,) or (n_samples, n_endpoints), default=None
            Added to the linear predictors. Required if the fit had an offset; ``offset=0`` means none.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_endpoints)
            As the events of the fit were.
        """
        return self._decision(X, offset)

    def predict_cumulative_hazard_function(
        self, X: Any, times: Any = None, strata: Any = None, offset: Any = None
    ) -> FloatArray:
        """Expected numbers of events of each sample until some times, ``H_0(t) exp(x^T B)``.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_samples, n_features)
            Data.
        times : array-like of shape (n_times,), default=None
            Times; by default ``event_times_``, all at which the fit had events.
        strata : array-like of shape (n_samples,), default=None
            Strata of the samples, where the fit had strata.
        offset : array-like of shape (n_samples,) or (n_samples, n_endpoints), default=None
            Added to the linear predictors. Required if the fit had an offset; ``offset=0`` means none.

        Returns
        -------
        ndarray of shape (n_samples, n_times) or (n_samples, n_times, n_endpoints)
            Constant between the times of events, and after the last.
        """
        Z = np.asarray(self.predict(X, offset), dtype=np.float64)
        Z, is_flat = Z.reshape(len(Z), -1), Z.ndim == 1
        times = self.event_times_ if times is None else as_float_array("times", times, ndim=(1,))
        check_finite("times", times, remedy="Leave them out.")
        place = self._places_of(strata, len(Z))
        baseline = np.stack([self._baseline(k, times) for k in range(Z.shape[1])])
        hazard = np.exp(Z)[:, None, :] * baseline[:, place].transpose(1, 2, 0)
        return hazard[:, :, 0] if is_flat else hazard

    def _baseline(self, endpoint: int, times: FloatArray) -> FloatArray:
        """Cumulative hazards of a predictor of zero at some times, a row for each stratum."""
        found = np.zeros((len(getattr(self, "strata_", [0])), len(times)))
        for s in range(len(found)):
            chosen = (self.baseline_endpoint_ == endpoint) & (self.baseline_stratum_ == s)
            steps = np.concatenate([[0.0], self.baseline_hazard_[chosen]])
            found[s] = steps[np.searchsorted(self.baseline_times_[chosen], times, side="right")]
        return found

    def _survival_by_time(self, z: FloatArray, times: FloatArray, strata: Any, endpoint: int) -> Iterator[FloatArray]:
        """Survival of samples with the predictors ``z`` after each of some times, one after the other."""
        place, risks = self._places_of(strata, len(z)), np.exp(z)
        for hazards in self._baseline(endpoint, times).T:
            yield np.exp(-hazards[place] * risks)

    def predict_survival_function(
        self, X: Any, times: Any = None, strata: Any = None, offset: Any = None
    ) -> FloatArray:
        """Probabilities that the event comes later than some times, ``exp(-H_0(t) exp(x^T B))``.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_samples, n_features)
            Data.
        times : array-like of shape (n_times,), default=None
            Times; by default ``event_times_``, all at which the fit had events.
        strata : array-like of shape (n_samples,), default=None
            Strata of the samples, where the fit had strata.
        offset : array-like of shape (n_samples,) or (n_samples, n_endpoints), default=None
            Added to the linear predictors. Required if the fit had an offset; ``offset=0`` means none.

        Returns
        -------
        ndarray of shape (n_samples, n_times) or (n_samples, n_times, n_endpoints)
            From 1 downwards, in steps at the times of events.
        """
        return np.exp(-self.predict_cumulative_hazard_function(X, times, strata, offset))

    @property
    def event_times_(self) -> FloatArray:
        """All times at which the fit had events, in their order."""
        check_is_fitted(self)
        return np.unique(self.baseline_times_)

    def _places_of(self, strata: Any, n_samples: int) -> Any:
        """Positions of strata among those of the fit."""
        known = getattr(self, "strata_", None)
        if (known is None) != (strata is None):
            had = "no strata" if known is None else "strata, which have baseline hazards of their own"
            remedy = "Leave strata out." if known is None else "Give those of the samples of X, strata=."
            raise ValueError(f"{type(self).__name__} was fitted with {had}. {remedy}")
        if known is None:
            return np.zeros(n_samples, dtype=np.intp)
        labels = rectangular_array("strata", strata)
        check_length("strata", labels.shape, n_samples)
        if (is_new := ~np.isin(labels, known)).any():
            raise ValueError(f"strata has {labels[is_new][:1].tolist()[0]!r}, which the fit did not see.")
        return np.searchsorted(known, labels)

    def score(self, X: Any, y: Any, sample_weight: Any = None, strata: Any = None, offset: Any = None) -> float:
        """Harrell's concordance index, the mean over endpoints.

        Of all pairs of samples of which it is known who had the event first, the share in which that one has the
        higher predictor; equal predictors count half. 0.5 is as good as chance, 1 is perfect.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_samples, n_features)
            Data.
        y : structured array or array-like
            Events and times, as ``fit`` takes them.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights; pairs count by their product.
        strata : array-like of shape (n_samples,), default=None
            Strata, within which samples are compared.
        offset : array-like of shape (n_samples,) or (n_samples, n_endpoints), default=None
            Added to the linear predictors. Required if the fit had an offset; ``offset=0`` means none.

        Returns
        -------
        float
            NaN where there is no such pair.
        """
        Z = np.asarray(self.predict(X, offset))
        pairs = survival_array(y, strata)
        check_length("y", pairs.shape, len(Z))
        Z, pairs = Z.reshape(len(Z), -1), pairs.reshape(len(Z), -1)
        if pairs.shape != Z.shape:
            raise ValueError(
                f"y has {pairs.shape[1]} endpoints, but {type(self).__name__} was fitted with {Z.shape[1]}."
            )
        weight = check_sample_weight(sample_weight, len(Z))
        return float(np.mean([concordance(pairs[:, k], Z[:, k], weight) for k in range(Z.shape[1])]))


@dataclass(eq=False, repr=False)
class GroupOWLCox(SurvivalMethods, SingleFit):
    """Proportional hazards (Cox) regression that selects features for one or many endpoints together.

    Minimizes, over ``B`` of shape (n_features, n_endpoints),

        ``-1/W log(partial likelihood of X B) + alpha sum_j weights_j ||B_[j],:||_2``

    with ``W = sum_i w_i`` (the number of samples without sample weights), ``||B_[1],:|| >= ||B_[2],:|| >= ...``, and
    the logarithms of the partial likelihoods of all endpoints added up.

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
    ties : {"efron", "breslow"}, default="efron"
        What is done about events at the same time. Efron's method is closer to the truth; without such events both are
        the same.
    standardize : bool, default=False
        Whether the penalty sees columns divided by their weighted standard deviation; ``coef_`` is on the scale of X.
        Columns without variation get zero coefficients.
    unpenalized : list of str or int, default=None
        Columns that are always in the model and not penalized, by name or index.
    solver : {"auto", "apgd"} or solver object, default="auto"
        "auto" suits nearly all problems; see :func:`groupowl.solve`.
    screening : {"safe", "paper", "none"}, default="safe"
        Rule that removes features proved to be zero. The solution is the same for all three, and with ``solver="auto"``
        the time nearly so.
    tol : float, default=1e-6
        The fit ends when the duality gap is at most ``tol`` times the loss of the null model less the smallest possible
        one.
    max_iter : int, default=10000
        Maximum number of proximal steps.
    warm_start : bool, default=False
        Whether a fit starts from the coefficients of the previous one if shapes agree. The solution is the same within
        ``tol``.
    relaxed : bool, default=False
        Whether to fit the selected features again without penalty. Certificates are about the penalized fit, which is
        kept in ``penalized_coef_``.
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

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,) or (n_endpoints, n_features)
        Coefficients, logarithms of hazard ratios; 1-D for one endpoint. float32 where X is.
    intercept_ : ndarray of shape (n_endpoints,) or float
        Zero: a constant does not change the order of events.
    sparse_coef_ : sparse array of shape (n_endpoints, n_features)
        ``coef_`` as a sparse array.
    scaled_coef_ : ndarray
        ``coef_`` on the scale that the penalty sees: per standard deviation with ``standardize=True``.
    event_times_ : ndarray
        All times at which there were events, in their order.
    strata_ : ndarray of shape (n_strata,)
        Labels of the strata, sorted, where there are strata.
    baseline_times_, baseline_hazard_ : ndarray of shape (n_steps,)
        Breslow's estimate of the cumulative hazard of a sample whose predictor is zero: the times at which it rises,
        and how far.
    baseline_endpoint_, baseline_stratum_ : ndarray of int of shape (n_steps,)
        To which endpoint, and to which of the strata, each step belongs: steps are ordered by these, and by time.
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
    has_offset_ : bool
        True, and only there, where the fit had an offset that is not zero.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str
        Names of the features, where X had names.
    penalized_coef_, penalized_intercept_ : ndarray
        The penalized fit, with ``relaxed=True`` only.

    See Also
    --------
    GroupOWLCoxCV : The same with alpha chosen by cross-validation.
    survival_targets : Targets of this loss for :func:`groupowl.solve` and paths.

    Notes
    -----
    With sample weights and Efron's method, events at the same time count by their mean weight, as in R's survival. In
    risk sets weights are divided by their mean, so that the objective is in proportion to them.

    Examples
    --------
    >>> import numpy as np
    >>> import groupowl as go
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((100, 30))
    >>> time = rng.exponential(np.exp(-X[:, 0] + X[:, 1]))
    >>> y = np.column_stack([time < 2.0, np.minimum(time, 2.0)])
    >>> model = go.GroupOWLCox().fit(X, y)
    >>> model.predict_survival_function(X[:2], times=[0.5, 1.0]).shape, bool(model.verify(X, y))
    ((2, 2), True)
    """

    fit_intercept: ClassVar[bool] = False  # type: ignore[misc]  # no parameter here
    _: KW_ONLY
    ties: str = "efron"


@dataclass(eq=False, repr=False)
class GroupOWLCoxCV(SurvivalMethods, CrossValidatedFit):
    """Proportional hazards (Cox) regression whose alpha is chosen by cross-validation or an information criterion.

    Minimizes, over ``B`` of shape (n_features, n_endpoints),

        ``-1/W log(partial likelihood of X B) + alpha sum_j weights_j ||B_[j],:||_2``

    with ``W = sum_i w_i`` (the number of samples without sample weights), ``||B_[1],:|| >= ||B_[2],:|| >= ...``, and
    the logarithms of the partial likelihoods of all endpoints added up.

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
        ``split`` gets ``groups`` from ``fit``. Splits without test samples of positive weight are left out. Data that
        are sorted by time need ``cv=KFold(5, shuffle=True)``.
    selection : {"min", "1se", "aic", "bic", "ebic"}, default="min"
        "min" takes the best mean score, "1se" the largest alpha whose mean score is within one standard error of it.
        "aic", "bic" and "ebic" (gamma 0.5) take the smallest criterion on all data, without folds: then ``cv`` and
        ``scoring`` are not used, and there is no ``score_path_``.
    scoring : str, callable or None, default=None
        None means the contribution of the held-out samples to the partial log-likelihood, per held-out sample and
        endpoint (Verweij and van Houwelingen 1993). Or ``scorer(estimator, X, y)``, whose ``y`` is a structured array
        of event and time, for example ``lambda model, X, y: model.score(X, y)`` for concordance.
    n_jobs : int or None, default=None
        Number of folds (and weight sequences) that joblib runs in parallel; -1 means one per processor. With the
        compiled kernel they run in threads.
    standardize : bool, default=False
        Whether the penalty sees columns divided by their weighted standard deviation, that of the training samples in
        each fold; ``coef_`` is on the scale of X.
    unpenalized : list of str or int, default=None
        Columns that are always in the model and not penalized, by name or index.
    solver : {"auto", "apgd"} or solver object, default="auto"
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
        about the penalized fit, which is kept in ``penalized_coef_``.
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
    coef_ : ndarray of shape (n_features,) or (n_endpoints, n_features)
        Coefficients at ``alpha_``, logarithms of hazard ratios; 1-D for one endpoint. float32 where X is.
    intercept_ : ndarray of shape (n_endpoints,) or float
        Zero: a constant does not change the order of events.
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
    penalized_coef_, penalized_intercept_ : ndarray
        The penalized fit, with ``relaxed=True`` only.
    sparse_coef_ : sparse array
        ``coef_`` as a sparse array.
    scaled_coef_ : ndarray
        ``coef_`` on the scale that the penalty sees: per standard deviation with ``standardize=True``.
    event_times_ : ndarray
        All times at which there were events, in their order.
    strata_ : ndarray of shape (n_strata,)
        Labels of the strata, sorted, where there are strata.
    baseline_times_, baseline_hazard_ : ndarray of shape (n_steps,)
        Breslow's estimate of the cumulative hazard of a sample whose predictor is zero: the times at which it rises,
        and how far.
    baseline_endpoint_, baseline_stratum_ : ndarray of int of shape (n_steps,)
        To which endpoint, and to which of the strata, each step belongs: steps are ordered by these, and by time.

    See Also
    --------
    GroupOWLCox : The same with an alpha of your own.

    Examples
    --------
    >>> import numpy as np
    >>> import groupowl as go
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((100, 30))
    >>> time = rng.exponential(np.exp(-X[:, 0] + X[:, 1]))
    >>> y = np.column_stack([time < 2.0, np.minimum(time, 2.0)])
    >>> model = go.GroupOWLCoxCV(alphas=20, eps=0.05).fit(X, y)
    >>> model.score_path_.shape, model.score(X, y) > 0.7
    ((20, 5), True)
    """

    _single = GroupOWLCox
    fit_intercept: ClassVar[bool] = False  # type: ignore[misc]  # no parameter here
    _: KW_ONLY
    ties: str = "efron"
