"""Multinomial classification with the Group OWL penalty."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.special import log_expit, log_softmax
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from .._checks import check_sample_weight, check_tasks, check_weight_range, entry_weights, finite_number
from .._typing import FloatArray
from ..designs import encode_labels_of_blocks, row_wise
from ..inputs import check_labels, encode_labels, label_indicators, plain_labels
from ..losses import Loss, resolve_loss
from .base import FitData, SingleFit, Targets, target_array


class ClassifierMethods(ClassifierMixin):  # type: ignore[misc]  # scikit-learn has no types
    """What classification adds to :class:`~groupowl.estimators.base.GroupOWLBase`."""

    _loss: ClassVar[str] = "multinomial"
    if TYPE_CHECKING:  # what a fit stores
        classes_: npt.NDArray[Any]
        multilabel_: bool

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags

    def _checked_fit(self, X: Any, y: Any, sample_weight: Any = None, **how: Any) -> FitData:
        checked: FitData = super()._checked_fit(X, _dense(y), sample_weight, **how)
        return checked

    def _encode_targets(self, y: Any, names: Any, weight: Any) -> Targets:
        """Indicators of labels, one-hot rows for classes, or one column, that of the second class, for two."""
        if y.ndim == 2 and y.shape[1] > 1:
            return self._encode_indicators(y, names, weight)
        is_here = isinstance(y, np.ndarray)  # and not on a cluster
        if is_here:
            labels = plain_labels(column_or_1d(y, warn=True) if y.ndim == 2 and y.shape[1] == 1 else y)
            classes, Y = encode_labels(labels, weight)
            try:
                check_classification_targets(labels)
            except ValueError as error:
                raise ValueError(f"y must hold labels of classes: {error}") from error
        else:
            classes, Y = encode_labels_of_blocks(y, weight)
        factors = class_factors(self.class_weight, classes, Y, weight)
        if factors is not None:
            with np.errstate(over="ignore"):
                weight = (Y @ factors) * (1.0 if weight is None else weight)
            if is_here:
                check_weight_range("sample_weight times class_weight", weight)
        fitted = {"classes_": classes, "multilabel_": False}
        if len(classes) == 2:
            return Targets(Y[:, 1:], weight, True, fitted, {"loss": "logistic", "two_classes": True})
        return Targets(Y, weight, True, fitted, {})

    def _targets_for_scorers(self, y: Any, data: FitData) -> Any:
        """Labels as scorers and splitters of scikit-learn expect them."""
        return plain_labels(_dense(y))

    @property
    def _fitted_loss(self) -> Loss:
        return resolve_loss("logistic" if self._is_multilabel or len(self.classes_) == 2 else "multinomial")

    def _encode_indicators(self, y: Any, names: Any, weight: Any) -> Targets:
        """A column of 0 and 1 for each label; labels do not exclude each other."""
        fitted: dict[str, Any] = {"classes_": np.arange(y.shape[1]), "multilabel_": True}
        if names is not None:
            fitted["target_names_"] = np.asarray(names, dtype=object)
        if isinstance(y, np.ndarray):
            Y = label_indicators(y)
            check_tasks(~np.isnan(Y), argument="y", names=names)
            filled, w = entry_weights(Y, np.ones(len(Y)) if weight is None else weight)
            try:
                resolve_loss("logistic").check_means((w * filled).sum(axis=0) / np.broadcast_to(w, Y.shape).sum(axis=0))
            except ValueError as error:
                raise ValueError(f"y: {error}") from None
            if self.class_weight is not None:
                factors = label_factors(self.class_weight, filled, w, names)
                with np.errstate(over="ignore"):
                    weight = w * np.where(filled > 0.0, factors[1], factors[0])
                check_weight_range("sample_weight times class_weight", weight)
        elif self.class_weight is not None:
            raise ValueError(
                f"class_weight={self.class_weight!r} of label indicators needs y in this process, and y is on a "
                "cluster. Use class_weight=None, or data in memory."
            )
        else:
            Y = y.map_blocks(label_indicators, dtype=np.float64)
        return Targets(Y, weight, False, fitted, {"loss": "logistic"})

    def _public_coefficients(self, B: FloatArray, intercept: FloatArray, data: FitData) -> tuple[Any, Any]:
        """``coef_`` and ``intercept_`` in the shape and precision that users see."""
        return np.ascontiguousarray(B.T, dtype=data.dtype), intercept.astype(data.dtype)

    def _inner_coefficients(self, coef: Any, intercept: Any) -> tuple[FloatArray, FloatArray]:
        """``B`` and intercept from what users see."""
        return np.asarray(coef, dtype=np.float64).T, np.asarray(intercept, dtype=np.float64)

    def decision_function(self, X: Any, offset: Any = None) -> FloatArray:
        """Linear predictors.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_samples, n_features)
            Data.
        offset : array-like of shape (n_samples,) or (n_samples, n_targets), default=None
            Added to the linear predictors. Required if the fit had an offset; ``offset=0`` means none.

        Returns
        -------
        ndarray of shape (n_samples, n_classes), or (n_samples,) for two classes
            Unnormalized logarithms of the probabilities; for two classes the logarithm of the odds of the second, for
            label indicators that of each label.
        """
        scores = self._decision(X, offset)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: Any, offset: Any = None) -> Any:
        """Predict the most probable class, or all labels that are more probable than not.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_samples, n_features)
            Data.
        offset : array-like of shape (n_samples,) or (n_samples, n_targets), default=None
            Added to the linear predictors. Required if the fit had an offset; ``offset=0`` means none.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_labels)
            Labels; 0 and 1 where the fit had label indicators.
        """
        scores = self._decision(X, offset)
        if self._is_multilabel:
            return row_wise(_more_probable_than_not, scores, np.intp, len(self.classes_))
        return row_wise(partial(_most_probable, classes=self.classes_), scores, self.classes_.dtype, None)

    def predict_log_proba(self, X: Any, offset: Any = None) -> FloatArray:
        """Logarithms of the probabilities of classes or labels.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_samples, n_features)
            Data.
        offset : array-like of shape (n_samples,) or (n_samples, n_targets), default=None
            Added to the linear predictors. Required if the fit had an offset; ``offset=0`` means none.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            In the order of ``classes_``.
        """
        scores = self._decision(X, offset)
        logs = log_expit if self._is_multilabel else _log_probabilities
        return row_wise(logs, scores, scores.dtype, len(self.classes_))

    @property
    def _is_multilabel(self) -> bool:
        return getattr(self, "multilabel_", False)  # which earlier versions have not stored

    def predict_proba(self, X: Any, offset: Any = None) -> FloatArray:
        """Probabilities of the classes, or of each label.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_samples, n_features)
            Data.
        offset : array-like of shape (n_samples,) or (n_samples, n_targets), default=None
            Added to the linear predictors. Required if the fit had an offset; ``offset=0`` means none.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            In the order of ``classes_``; rows sum to 1. Where the fit had label indicators, one column for each label
            with the probability that a sample has it, as in ``sklearn.multiclass.OneVsRestClassifier``.
        """
        return np.exp(self.predict_log_proba(X, offset))

    def score(self, X: Any, y: Any, sample_weight: Any = None, offset: Any = None) -> float:
        """Accuracy: the fraction of the samples whose class, or all of whose labels, are predicted.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_samples, n_features)
            Data.
        y : array-like of shape (n_samples,) or (n_samples, n_labels)
            True labels; label indicators that are NaN do not count.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples, which then make up the fraction.
        offset : array-like of shape (n_samples,) or (n_samples, n_targets), default=None
            Added to the linear predictors. Required if the fit had an offset; ``offset=0`` means none.

        Returns
        -------
        float
            Between 0 and 1.
        """
        predicted = np.asarray(self.predict(X, offset))
        labels = target_array(_dense(y), len(predicted))
        weight = None if sample_weight is None else check_sample_weight(sample_weight, len(predicted))
        if self._is_multilabel:
            labels = label_indicators(labels)
            if labels.shape == predicted.shape and (missing := np.isnan(labels)).any():
                present = ~missing.all(axis=1)  # samples without any label say nothing
                if not present.any():
                    raise ValueError("y has no observed label: there is nothing to score.")
                labels, predicted = np.where(missing, predicted, labels)[present], predicted[present]
                weight = None if weight is None else weight[present]
        else:
            labels = check_labels(labels)
        try:
            return float(accuracy_score(labels, predicted, sample_weight=weight))
        except (TypeError, ValueError) as error:
            raise ValueError(f"y cannot be compared with the classes of the fit: {error}") from error


def _dense(y: Any) -> Any:
    """Targets as they are, but for a sparse matrix of label indicators, as MultiLabelBinarizer makes it."""
    is_matrix_of_labels = sp.issparse(y) and np.isin(cast(Any, y).data, (0, 1)).all()
    return cast(Any, y).toarray(order="C") if is_matrix_of_labels else y


def _most_probable(scores: FloatArray, classes: Any) -> Any:
    return classes[scores.argmax(axis=1) if scores.shape[1] > 1 else (scores[:, 0] > 0).astype(np.intp)]


def _more_probable_than_not(scores: FloatArray) -> Any:
    return (scores > 0).astype(np.intp)


def _log_probabilities(scores: FloatArray) -> FloatArray:
    """Two classes have one score, the logarithm of the odds of the second."""
    return log_softmax(scores if scores.shape[1] > 1 else np.hstack([np.zeros_like(scores), scores]), axis=1)


def class_factors(class_weight: Any, classes: Any, Y: FloatArray, weight: FloatArray | None) -> FloatArray | None:
    """Factor of the sample weights for each class; None where all are 1.

    "balanced" gives every class the same total weight and leaves the sum over all samples as it is.
    """
    if class_weight is None:
        return None
    if isinstance(class_weight, str) and class_weight == "balanced":
        totals = np.asarray(Y.sum(axis=0) if weight is None else weight @ Y)
        return totals.sum() / (len(classes) * totals)
    return _factors_of(class_weight, classes.tolist())


def label_factors(class_weight: Any, Y: FloatArray, w: FloatArray, names: Any) -> FloatArray:
    """Factors of the weights of entries, of shape (2, n_labels): where a label is absent, and where it is present.

    A dict has factors of samples that have a label, by its index, or by its name where columns have names. "balanced"
    makes both totals of a label equal and leaves their sum as it is.
    """
    if isinstance(class_weight, str) and class_weight == "balanced":
        present = (w * Y).sum(axis=0)
        totals = np.stack([np.broadcast_to(w, Y.shape).sum(axis=0) - present, present])
        return totals.sum(axis=0) / (2.0 * totals)
    named = names is not None and isinstance(class_weight, Mapping) and any(label in names for label in class_weight)
    present = _factors_of(class_weight, list(names) if named else list(range(Y.shape[1])))
    return np.stack([np.ones_like(present), present])


def _factors_of(class_weight: Any, known: list[Any]) -> FloatArray:
    """Factors of all classes or labels from the dict of some of them."""
    if not isinstance(class_weight, Mapping):
        raise ValueError(f"class_weight must be None, 'balanced' or a dict of class: weight, got {class_weight!r}.")
    if unknown := [label for label in class_weight if label not in known]:
        raise ValueError(f"class_weight has the classes {unknown!r}, which y does not have. Classes of y: {known!r}.")
    factors = [finite_number(f"class_weight[{label!r}]", class_weight.get(label, 1.0), above=0.0) for label in known]
    return np.array(factors)


@dataclass(eq=False, repr=False)
class GroupOWLClassifier(ClassifierMethods, SingleFit):
    """Multinomial logistic regression that selects features for all classes together.

    Minimizes, over ``B`` of shape (n_features, n_classes) and the intercept ``b0``,

        ``1/W sum_i w_i [log sum_k exp(z_ik) - z_{i,y_i}] + alpha sum_j weights_j ||B_[j],:||_2``

    with ``z_i = x_i^T B + b0``, ``W = sum_i w_i`` and ``||B_[1],:|| >= ||B_[2],:|| >= ...``. All classes have a column
    and rows of ``B`` have mean zero. With two classes ``coef_`` is the difference of the two columns, whose penalty is
    ``alpha / sqrt(2)`` per ``|coef|``: ``alpha * sqrt(2)`` gives binary logistic SLOPE at ``alpha``.

    If ``y`` is a matrix of 0 and 1, labels do not exclude each other: ``B`` has a column for each label, and the loss
    of a sample is ``sum_k [log(1 + exp(z_ik)) - y_ik z_ik]``.

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
        Whether a fit starts from the coefficients of the last one, where shapes and classes agree. The answer is the
        same to ``tol``.
    relaxed : bool, default=False
        Whether to fit the selected features again without penalty (with a ridge of 1e-6 of the mean curvature, and a
        warning where it decides). Certificates are about the penalized fit, which is kept in ``penalized_coef_`` and
        ``penalized_intercept_``.
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
        Called as ``callback(progress)`` after each certificate, see :class:`groupowl.Progress`; returning True
        ends the fit there. The compiled kernel is not used then.
    resume : str or Path, default=None
        A folder that keeps the coefficients of a fit that is interrupted (and every 30 seconds of a long one), from
        which the same fit goes on. A folder of another problem (data, penalty, alpha, tol, version of groupowl) is
        refused.
    class_weight : dict, "balanced" or None, default=None
        Factors of the sample weights by class, 1 for classes that are not in the dict. "balanced" gives every class the
        same total weight. For label indicators, factors of the weights of samples that have a label, by its index or
        name, in the loss of this label; "balanced" gives samples with and without a label the same total weight.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels, sorted; ``arange(n_labels)`` for label indicators.
    multilabel_ : bool
        Whether ``y`` was a matrix of label indicators.
    coef_ : ndarray of shape (n_classes, n_features), or (1, n_features) for two classes
        Coefficients; float32 where X is.
    intercept_ : ndarray of shape (n_classes,) or (1,)
        Intercept; zero without one.
    sparse_coef_ : sparse array
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
        The penalized fit, relaxed or not: coefficients, one column for two classes, in double precision, certificate
        and history; its ``theta`` is not kept.
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
    GroupOWLRegressor : The same for numbers.

    Examples
    --------
    >>> import groupowl as go
    >>> data = go.datasets.make_correlated_groups(60, 200, 3, random_state=0)
    >>> labels = data.Y.argmax(axis=1)
    >>> model = go.GroupOWLClassifier().fit(data.X, labels)
    >>> model.coef_.shape, bool(model.verify(data.X, labels))
    ((3, 200), True)
    """

    _: KW_ONLY
    class_weight: Any = None
