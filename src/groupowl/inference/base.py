"""What selectors share: data in the manner of an estimator, a mask of features, a table and one page of text."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, clone
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_is_fitted

from .._checks import positive_integer
from .._text import printable
from .._typing import BoolArray, FloatArray
from ..categories import fitted_categories
from ..designs import Design
from ..estimators import GroupOWLClassifier, GroupOWLCox, GroupOWLRegressor
from ..estimators.base import FitData, GroupOWLBase
from ..inputs import import_pandas
from ..losses import resolve_loss

_SHOWN_IN_SUMMARY = 25
_LONGEST_NAME = 40
# Numbers with more values than these are no classes, even where all are whole: counts, scores, ages.
_MOST_NUMBERED_CLASSES = 20


class FeatureSelector(SelectorMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Base of the selectors: a subclass has a parameter ``estimator``, ``fit``, and what else it tells of features.

    ``fit`` computes into locals and ends with :meth:`_store`, so that a fit that fails leaves an earlier one as it was.

    Attributes
    ----------
    support_ : ndarray of bool of shape (n_features,)
        Selected features. Unpenalized features are not judged and never selected.
    scores_ : ndarray of shape (n_features,)
        What features were judged by, larger for stronger ones; NaN for unpenalized ones.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str
        Names of the features, where X had names.
    """

    if TYPE_CHECKING:  # what a fit stores
        support_: BoolArray
        scores_: FloatArray
        n_features_in_: int
        feature_names_in_: npt.NDArray[Any]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        return tags

    # Data -------------------------------------------------------------------------------------------

    def _data(self, X: Any, y: Any, sample_weight: Any = None, offset: Any = None) -> tuple[GroupOWLBase, FitData]:
        """The estimator to fit with, a copy of the prototype, and its data after all checks.

        Samples of weight zero are left out. What first fits decide (the delta of the Huber loss, adaptive factors) is
        not in the data yet: ``prototype._adapted(prototype._completed(data))`` adds it. The model of all samples is
        ``data.fitting.model(data.X, data.Y, prototype.weights, data.sample_weight)``.
        """
        prototype = resolve_estimator(self.estimator, y)
        data = prototype._checked_fit(X, y, sample_weight, offset=offset)
        if data.is_summarized or isinstance(data.X, Design):
            raise ValueError(
                f"X: {type(self).__name__} needs the samples in memory, as an array, a data frame or a sparse matrix."
            )
        weight = data.sample_weight
        if weight is None:
            return prototype, data
        rows = np.flatnonzero(weight.reshape(len(weight), -1).any(axis=1))
        if len(rows) < data.n_samples:
            known = {"X": data.X[rows], "Y": data.Y[rows], "sample_weight": weight[rows], "targets": data.targets[rows]}
            data = replace(data, n_samples=len(rows), **known)
        return prototype, data

    @staticmethod
    def _given_features(data: FitData) -> Any:
        """A column of each feature that was given: the first of a category, whose columns are selected as a whole."""
        coding = fitted_categories(data.labels)
        return slice(None) if coding is None else np.unique(coding.source, return_index=True)[1]

    # What was found ---------------------------------------------------------------------------------

    def _store(self, data: Any, **fitted: Any) -> Self:
        """Replace all fitted attributes at once."""
        kept = {}
        for name, value in vars(self).items():
            if name.startswith("_") or not name.endswith("_"):
                kept[name] = value
        names = ("n_features_in_", "feature_names_in_")
        labels = {name: value for name, value in data.labels.items() if name in names}
        self.__dict__ = kept | labels | fitted
        return self

    def _get_support_mask(self) -> BoolArray:
        check_is_fitted(self)
        return self.support_

    @property
    def selected_features_(self) -> Any:
        """Selected features, ascending: names where there are names, else indices."""
        check_is_fitted(self)
        return self._feature_labels()[self.support_]

    def _feature_labels(self) -> Any:
        """Names of the features, or their indices."""
        return getattr(self, "feature_names_in_", np.arange(self.n_features_in_))

    def _columns(self) -> dict[str, Any]:
        """What a table has on each feature beside its name and whether it is selected."""
        return {"score": self.scores_}

    def to_frame(self, *, sort: bool = False) -> Any:
        """What was found as a pandas data frame, one row per feature.

        Parameters
        ----------
        sort : bool, default=False
            Whether to list the largest scores first in place of the order of the columns of X.

        Returns
        -------
        pandas.DataFrame
            ``feature``, ``selected`` and what features were judged by.
        """
        check_is_fitted(self)
        pandas = import_pandas("to_frame()")
        frame = pandas.DataFrame({"feature": self._feature_labels(), "selected": self.support_, **self._columns()})
        return frame.iloc[self._strongest_first()].reset_index(drop=True) if sort else frame

    def _strongest_first(self) -> Any:
        """All features by falling score, equals in the order of the columns, unpenalized ones last."""
        return np.argsort(-np.nan_to_num(self.scores_, nan=-np.inf), kind="stable")

    def summary(self) -> None:
        """Print one page: what is promised, how many features were selected, and the strongest of them."""
        check_is_fitted(self)
        print("\n".join([type(self).__name__, *self._summary_lines(), "", *self._table_lines()]))

    def _summary_lines(self) -> list[str]:
        """What a page says between its title and its table, indented by two."""
        n_selected = np.count_nonzero(self.support_)
        return [f"  features   {n_selected} of {self.n_features_in_} selected"]

    def _table_lines(self) -> list[str]:
        """The strongest selected features with their scores."""
        order = [j for j in self._strongest_first().tolist() if self.support_[j]]
        if not order:
            return ["  No feature is selected."]
        labels = self._feature_labels()
        table = [("feature", "score")]
        for j in order[:_SHOWN_IN_SUMMARY]:
            table.append((printable(labels[j])[:_LONGEST_NAME], f"{self.scores_[j]:.4g}"))
        width = max(len(name) for name, _ in table)
        lines = [f"  {name:<{width}}  {score:>10}" for name, score in table]
        if (more := len(order) - _SHOWN_IN_SUMMARY) > 0:
            lines.append(f"  ... {more} more: to_frame(sort=True) has them all")
        return lines


def resolve_estimator(estimator: Any, y: Any) -> GroupOWLBase:
    """A copy of the prototype, or a group lasso on standardized columns for the kind of target that y is."""
    if estimator is None:
        kind: Any = GroupOWLRegressor
        if getattr(getattr(y, "dtype", None), "names", None):  # events and times
            kind = GroupOWLCox
        elif _are_labels(y):
            kind = GroupOWLClassifier
        return kind(weights="constant", standardize=True)
    if not isinstance(estimator, GroupOWLBase) or not hasattr(estimator, "alpha"):
        raise TypeError(
            "estimator must be a GroupOWLRegressor, GroupOWLClassifier or GroupOWLCox, whose loss and options are "
            f"used, or None, got {estimator!r}."
        )
    prototype: GroupOWLBase = clone(estimator)
    return prototype


def check_verbose(verbose: Any) -> None:
    """Refuse what is neither a truth value nor a level."""
    positive_integer("verbose", int(verbose) if isinstance(verbose, bool) else verbose, minimum=0)


def model_words(prototype: GroupOWLBase, data: FitData) -> str:
    """The estimator and the loss that data are fitted with."""
    words = f"{type(prototype).__name__}, {resolve_loss(data.fitting.loss).name} loss"
    if data.classes is not None:
        words += f", {len(data.classes)} classes"
    return words + (", with an offset" if "has_offset_" in data.labels else "")


def _are_labels(y: Any) -> bool:
    """Whether targets are classes or label indicators, some of which may be missing."""
    values = np.asarray(y)
    if values.dtype.kind == "f":
        values = np.where(np.isnan(values), 0.0, values)
    if values.dtype.kind in "iuf" and len(np.unique(values)) > _MOST_NUMBERED_CLASSES:
        return False
    try:
        with np.errstate(invalid="ignore"):  # of numbers that are no integers, but far too large
            return type_of_target(values) in ("binary", "multiclass", "multilabel-indicator")
    except (TypeError, ValueError):  # which an estimator refuses in words of its own
        return False
