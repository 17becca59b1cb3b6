"""What a fit says of its features: what is proved of each, a data frame of coefficients, one page of text."""

from __future__ import annotations

import numbers
import warnings
from collections import Counter
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from textwrap import fill
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_is_fitted

from .._checks import checked_names, position_in, truth_value
from .._html import data_table, facts_table, page_of_text, paragraph, titled
from .._text import counted, listed, printable, significant
from .._typing import BoolArray, FloatArray, IndexArray
from ..categories import coefficient_names
from ..designs import far_design
from ..inputs import coefficient_columns, exclusive_classes, import_pandas, task_names
from ..model_selection import CRITERIA
from ..model_selection.search import best_sequence, candidate_names, value_path
from ..norm.kernels import nonzero_rows
from ..solvers import solve_result as results
from .plain_models import plain_model

SELECTED = "selected"
PROVED_ZERO = "proved zero"
NOT_PROVED = "zero, not proved"
UNPENALIZED = "unpenalized"
#: Zero because the column varies by no more than rounding: nothing is proved about what it would do.
AS_CONSTANT = "treated as constant"
#: Zero because unpenalized columns explain all of the column but rounding.
AS_EXPLAINED = "explained by unpenalized"
#: Columns that the problem was solved without.
LEFT_OUT = (AS_CONSTANT, AS_EXPLAINED)
#: All that a feature can be.
STATES = (SELECTED, PROVED_ZERO, NOT_PROVED, UNPENALIZED, *LEFT_OUT)

_IN_WORDS = {NOT_PROVED: "zero but not proved"}

#: How different columns may be in size before a note says that the penalty sees that.
LARGEST_RATIO = 10.0
# Features in a table of certificates, and in the summary.
_SHOWN = 20
_SHOWN_OTHERS = 5  # than selected ones, at least, where there are as many
_SHOWN_IN_SUMMARY = 25
_LONGEST_NAME = 40
_WIDTH = 120
# Weight sequences that tie more features than the others do.
_TYING = ("linear", "bh")
# Columns of a group in a line of the certificate, and groups in the summary.
_SHOWN_MEMBERS = 4
_SHOWN_GROUPS = 10


@dataclass(frozen=True)
class FeatureStatus:
    """What is proved about one feature.

    Attributes
    ----------
    feature : str or int
        Its name, or its index where features have no names.
    state : {"selected", "proved zero", "zero, not proved", "unpenalized", "treated as constant", \
            "explained by unpenalized"}
        Selected: its coefficients are not zero. Proved zero: no solution of the problem has it. Treated as constant:
        its column varies by no more than rounding beside its mean. Explained by unpenalized: so does what unpenalized
        columns leave of it. In these two cases the problem was solved, and everything else proved, without it.
    gap : float or None
        Duality gap of the certificate that proved it zero; None for other states.
    group : str or None
        Name of its group, where there are feature groups.

    Examples
    --------
    >>> import groupowl as go
    >>> data = go.datasets.make_correlated_groups(60, 30, 2, n_informative=3, random_state=0)
    >>> status = go.GroupOWLRegressor(0.5).fit(data.X, data.Y).certificate()[7]
    >>> status.feature, status.state, status.gap is None
    (7, 'proved zero', False)
    """

    feature: Any
    state: str
    gap: float | None
    group: str | None = None


@dataclass(frozen=True, eq=False, repr=False)
class FitCertificate:
    """What a fit proves about its objective and about each feature.

    Iterates over :class:`FeatureStatus`, in the order of the columns of X; an index gives one of them.

    Attributes
    ----------
    estimator : str
        Name of its class.
    alpha : float
        Strength of the penalty.
    objective : float
        Objective of the penalized fit.
    gap : float
        Proved bound on ``objective - minimum``.
    converged : bool
        Whether the gap meets the tolerance.
    features, states : ndarray of shape (n_features,)
        Names or indices, and what is proved.
    gaps : ndarray of shape (n_features,)
        Gap of the certificate that proved a feature zero; NaN for other states.
    groups : ndarray of str of shape (n_features,) or None
        Name of the group of each feature, where there are feature groups: these are selected, or proved zero, as a
        whole.
    norms : ndarray of shape (n_features,) or None
        Norms of the coefficients that the certificate is about, on the scale that the penalty sees.

    Examples
    --------
    >>> import groupowl as go
    >>> data = go.datasets.make_correlated_groups(60, 30, 2, n_informative=3, random_state=0)
    >>> certificate = go.GroupOWLRegressor(0.5).fit(data.X, data.Y).certificate()
    >>> certificate.converged, certificate[0].state
    (True, 'proved zero')
    >>> sum(status.state == "proved zero" for status in certificate)
    28
    """

    estimator: str
    alpha: float
    objective: float
    gap: float
    converged: bool
    features: Any
    states: Any
    gaps: FloatArray
    groups: Any = None
    norms: FloatArray | None = None

    def __len__(self) -> int:
        return len(self.states)

    def __getitem__(self, index: int) -> FeatureStatus:
        j = position_in("the certificate", index, len(self), "features")
        feature, gap = self.features[j], float(self.gaps[j])
        plain = feature.item() if isinstance(feature, np.generic) else feature
        group = None if self.groups is None else str(self.groups[j])
        return FeatureStatus(plain, self.states[j], None if np.isnan(gap) else gap, group)

    @property
    def counts(self) -> dict[str, int]:
        """How many features are in each state; the states of columns that are left out only where there are any."""
        found = Counter(self.states)
        return {state: found[state] for state in STATES if found[state] or state not in LEFT_OUT}

    def to_frame(self) -> Any:
        """A pandas data frame with the columns feature, group (where there are feature groups), state and gap."""
        pandas = import_pandas("FitCertificate.to_frame()")
        of_group = {} if self.groups is None else {"group": self.groups}
        return pandas.DataFrame({"feature": self.features, **of_group, "state": self.states, "gap": self.gaps})

    def counts_text(self) -> str:
        """Numbers of features by state, in words; states that do not occur are left out, but for the first two."""
        shown = {state: count for state, count in self.counts.items() if count or state in (SELECTED, PROVED_ZERO)}
        return ", ".join(f"{count} {_IN_WORDS.get(state, state)}" for state, count in shown.items())

    def _units(self) -> dict[str, list[int]]:
        """What is selected or proved zero as one, in words, with its features, that which says the state first."""
        if self.groups is None:
            return {printable(feature): [j] for j, feature in enumerate(self.features)}
        members: dict[str, list[int]] = {}
        for j, group in enumerate(self.groups.tolist()):
            members.setdefault(group, []).append(j)
        units = {}
        for group, columns in members.items():
            inside = listed([printable(self.features[j]) for j in columns], shown=_SHOWN_MEMBERS, quoted=False)
            name = printable(group) if len(columns) == 1 else f"{printable(group)}: {inside}"
            units[name] = sorted(columns, key=lambda j: STATES.index(self.states[j]))
        return units

    def __repr__(self) -> str:
        doubt = "" if self.converged else " (not converged)"
        units = self._units()
        names, first = list(units), [columns[0] for columns in units.values()]
        norms = np.zeros(len(units))
        if self.norms is not None:
            norms = np.array([np.linalg.norm(self.norms[columns]) for columns in units.values()])
        in_groups = "" if self.groups is None else f" in {counted(len(units), 'group')}"
        lines = [
            f"{self.estimator} at alpha {self.alpha:.6g}: {len(self)} features{in_groups}",
            f"  objective {self.objective:.10g}, proved within {self.gap:.3g} of the minimum{doubt}",
            f"  {self.counts_text()}",
        ]
        shown = _shown_rows([STATES.index(self.states[j]) for j in first], norms)
        width = max((len(names[k]) for k in shown), default=0)
        for k in shown:
            j = first[k]
            details = "" if np.isnan(self.gaps[j]) else f" (gap {self.gaps[j]:.2g})"
            details = f" (norm {norms[k]:.3g})" if norms[k] > 0.0 else details
            lines.append(f"    {names[k]:<{width}}  {self.states[j]}{details}")
        if (more := len(units) - len(shown)) > 0:
            lines.append(f"    ... {more} more: iterate over it, or to_frame()")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """For notebooks."""
        facts = {
            "objective": f"{self.objective:.10g}, proved within {self.gap:.3g} of the minimum",
            "converged": "yes" if self.converged else "no",
            "features": self.counts_text(),
        }
        of_group = [] if self.groups is None else ["group"]
        norms, rows = np.zeros(len(self)) if self.norms is None else self.norms, []
        for j in _shown_rows([STATES.index(state) for state in self.states], norms):
            status, norm = self[j], f"{norms[j]:.3g}" if norms[j] > 0.0 else ""
            gap = "" if status.gap is None else f"{status.gap:.2g}"
            names = [printable(status.feature), *map(printable, [status.group][: len(of_group)])]
            rows.append([*names, status.state, norm, gap])
        table = data_table(["feature", *of_group, "state", "norm", "gap of its proof"], rows, n_words=2 + len(of_group))
        more = len(self) - len(rows)
        end = [paragraph(f"... {more} more: iterate over it, or to_frame()")] if more > 0 else []
        return titled(f"{self.estimator} at alpha {self.alpha:.6g}", facts_table(facts), table, *end)


def _shown_rows(ranks: list[int], norms: FloatArray) -> list[int]:
    """Rows of a table of certificates that are shown, by state and norm; some that are not selected are among them."""
    order = np.lexsort((-norms, np.array(ranks, dtype=np.intp))).tolist()
    n_first = ranks.count(0)
    n_others = min(len(ranks) - n_first, max(_SHOWN - n_first, _SHOWN_OTHERS))
    return order[: min(n_first, _SHOWN - n_others)] + order[n_first : n_first + n_others]


@dataclass(frozen=True)
class FitSummary:
    """One page about a fit: objective, proof, selected features and their clusters; a table in notebooks.

    Attributes
    ----------
    text : str
        The page.

    Examples
    --------
    >>> import groupowl as go
    >>> data = go.datasets.make_correlated_groups(60, 30, 2, n_informative=3, random_state=0)
    >>> summary = go.GroupOWLRegressor(0.5).fit(data.X, data.Y).summary_
    >>> summary.text.splitlines()[0]
    'GroupOWLRegressor'
    """

    text: str

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        """For notebooks."""
        return page_of_text(self.text)


class ReportMethods(SelectorMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Reports of a fitted estimator: selected features, summary, certificate, pictures."""

    if TYPE_CHECKING:  # what a fit stores; not in the classes with parameters, where these would be parameters
        coef_: FloatArray
        intercept_: Any  # an array, or a number where y was one-dimensional
        alpha_: float
        weights_: FloatArray
        unpenalized_: IndexArray
        penalty_factor_: FloatArray
        dual_gap_: float
        n_iter_: int
        solve_result_: results.SolveResult
        has_offset_: bool
        n_features_in_: int
        feature_names_in_: npt.NDArray[Any]
        feature_groups_: npt.NDArray[Any]
        target_names_: npt.NDArray[Any]
        categories_: dict[str, list[str]]
        penalized_coef_: FloatArray
        penalized_intercept_: Any

    # Fitted attributes that few read: a small fit takes less time than they do.

    @cached_property
    def clusters_(self) -> IndexArray:
        """Cluster of each feature."""
        return self.solve_result_.clusters

    @cached_property
    def screened_fraction_(self) -> float:
        """Fraction of the features that are proved to be zero."""
        return 1.0 - len(self.solve_result_.active) / len(self.solve_result_.B)

    def _penalized_coefficients(self) -> tuple[Any, Any]:
        """Public coefficients and intercept that the certificates are about."""
        if "penalized_coef_" in vars(self):
            return self.penalized_coef_, self.penalized_intercept_
        return self.coef_, self.intercept_

    @property
    def coef_names_(self) -> Any:
        """Names of the columns of ``coef_``, where X had names: its columns, and ``column=level`` for categories."""
        check_is_fitted(self)
        names = coefficient_names(vars(self))
        if names is None:
            raise AttributeError(f"X had no names of columns when this {type(self).__name__} was fitted.")
        return names

    def _feature_labels(self) -> Any:
        """Names of the columns of ``coef_``, or their indices."""
        known = vars(self).get("_given_names")
        return getattr(self, "coef_names_", np.arange(np.atleast_2d(self.coef_).shape[1])) if known is None else known

    def _named(self, feature_names: Any) -> Self:
        """The estimator, or a copy that knows the columns of ``coef_`` by these names."""
        check_is_fitted(self)
        if feature_names is None:
            return self
        named = copy(self)
        names = checked_names("feature_names", feature_names, np.atleast_2d(self.coef_).shape[1])
        named._given_names = np.array(names, dtype=object)
        return named

    @property
    def sparse_coef_(self) -> Any:
        """``coef_`` as a sparse array of shape (n_targets, n_features)."""
        check_is_fitted(self)
        return sp.csr_array(np.atleast_2d(self.coef_))

    @property
    def scaled_coef_(self) -> Any:
        """``coef_`` on the scale that the penalty sees, of the same shape: what clusters and ranks refer to.

        With ``standardize=True``: per standard deviation of a feature, also of those that are not penalized. Feature
        groups and factors of the penalty scale columns as well; those of groups with ``group_scale="orthonormal"``,
        which are penalized by their combinations, are per standard deviation. Where nothing was scaled it is ``coef_``,
        and so it is in models that a version without this attribute has saved, unless the parameters tell the scale.
        """
        check_is_fitted(self)
        scale = self.solve_result_.scale
        return self.coef_ if scale is None else self.coef_ * scale.astype(self.coef_.dtype)

    @property
    def selected_features_(self) -> Any:
        """Features with a coefficient that is not zero, ascending: names where there are names, else indices."""
        check_is_fitted(self)
        return self._feature_labels()[self.get_support(indices=True)]

    def get_support(self, indices: bool = False) -> BoolArray | IndexArray:
        """Features with a coefficient that is not zero, unpenalized ones included; of feature groups all columns.

        ``sklearn.feature_selection.SelectFromModel(estimator, threshold=1e-12)`` keeps the same features; its default
        threshold, the mean of the coefficients' norms, drops small ones. With ``standardize=True``, give it
        ``importance_getter="scaled_coef_"``, too: ``coef_`` is tiny for columns of large numbers. With ``categories``
        there are more columns of coefficients than of X, and it cannot be used.

        Parameters
        ----------
        indices : bool, default=False
            Whether to return indices instead of a mask.

        Returns
        -------
        ndarray
            Mask of shape (n_features,), or ascending indices. With ``categories`` they are about the columns of
            ``coef_``, which ``coef_names_`` has the names of.
        """
        check_is_fitted(self)
        mask = self._whole_groups(nonzero_rows(np.atleast_2d(self.coef_).T))
        return np.flatnonzero(mask) if truth_value("indices", indices) else mask

    def _get_support_mask(self) -> BoolArray:
        return np.asarray(self.get_support())

    def transform(self, X: Any) -> Any:
        """The selected columns of X: those with a coefficient that is not zero, unpenalized ones included.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_samples, n_features)
            Data in memory. After a fit with ``categories``, choose columns yourself.

        Returns
        -------
        array, sparse matrix or data frame of shape (n_samples, n_selected)
            See :meth:`get_feature_names_out` for the names of the columns, and ``set_output`` for the kind.
        """
        self._check_columns_of_X("transform chooses")
        if far_design(X) is not None:
            remedy = "Choose columns yourself, by get_support(indices=True)."
            raise TypeError(f"X: transform needs data in memory, got {type(X).__name__}. {remedy}")
        with warnings.catch_warnings():  # a model without features is an answer, and what follows refuses no columns
            warnings.filterwarnings("ignore", message="No features were selected")
            return super().transform(X)

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """Names of the columns that :meth:`transform` returns.

        Parameters
        ----------
        input_features : array-like of str, default=None
            Names of the features, where X had none in the fit; else they must be those of the fit.

        Returns
        -------
        ndarray of str
            Names of the selected features. After a fit with ``categories`` use ``selected_features_``.
        """
        self._check_columns_of_X("get_feature_names_out names")
        return super().get_feature_names_out(input_features)

    def _check_columns_of_X(self, what: str) -> None:
        """Refuse to choose columns of X where coefficients belong to others."""
        check_is_fitted(self)
        if "categories_" in vars(self):
            raise ValueError(
                f"{what} columns of X, but {type(self).__name__} was fitted with categories, whose levels have "
                "coefficients of their own. Choose columns yourself; selected_features_ has names of levels."
            )

    def _whole_groups(self, mask: BoolArray) -> BoolArray:
        """A mask of features with all columns of groups that it has one of: they are in the model together."""
        groups = getattr(self, "feature_groups_", None)
        return mask if groups is None else np.isin(groups, groups[mask])

    def coef_frame(self, *, sort: bool = False, feature_names: Any = None) -> Any:
        """Coefficients as a pandas data frame, one row per feature.

        Parameters
        ----------
        sort : bool, default=False
            Whether to sort the features: clusters by decreasing norm on the scale of the penalty, then unpenalized
            features, then those that are zero. Without it, and within ties, features are in the order of the columns of
            X.
        feature_names : list of str, default=None
            Names of the columns of ``coef_``, for fits that know none, such as those to a sparse matrix: the step
            before in a pipeline has them, ``pipeline[:-1].get_feature_names_out()``.

        Returns
        -------
        pandas.DataFrame
            ``feature``, ``group`` where there are feature groups, ``cluster`` (0: not selected, or unpenalized),
            ``norm`` of the coefficients, ``state`` as in :meth:`certificate`, and the coefficients: ``coef``, or
            a column ``coef_<target or class>`` for each where there are more. Where the penalty has seen another scale
            than that of X, also ``scaled_norm``, ``scaled`` or ``scaled_<target or class>``: the norm and the
            coefficients on its scale, ``scaled_coef_``.
        """
        check_is_fitted(self)
        if feature_names is not None:
            return self._named(feature_names).coef_frame(sort=sort)
        pandas = import_pandas("coef_frame()")
        coef, scaled, is_scaled = np.atleast_2d(self.coef_), np.atleast_2d(self.scaled_coef_), scale_is_known(self)
        named = task_names(vars(self))
        columns = {
            "feature": self._feature_labels(),
            **({"group": self.feature_groups_} if hasattr(self, "feature_groups_") else {}),
            "cluster": clusters_of_groups(self),
            "norm": coefficient_norms(coef),
            **({"scaled_norm": coefficient_norms(scaled)} if is_scaled else {}),
            "state": self.certificate().states,
        }
        columns |= dict(zip(coefficient_columns(len(coef), named), coef, strict=True))
        if is_scaled:
            columns |= dict(zip(coefficient_columns(len(coef), named, "scaled"), scaled, strict=True))
        frame = pandas.DataFrame(columns)
        return frame.iloc[strongest_first(self)].reset_index(drop=True) if truth_value("sort", sort) else frame

    def certificate(self, *, feature_names: Any = None) -> FitCertificate:
        """What is proved about each feature: selected, proved zero (and at which gap), or zero but not proved.

        Parameters
        ----------
        feature_names : list of str, default=None
            As for :meth:`coef_frame`.

        Returns
        -------
        FitCertificate
            Prints a table; iterates over features; ``to_frame()`` makes a data frame.
        """
        labels = self._named(feature_names)._feature_labels()
        result = self.solve_result_
        states = np.full(len(self.clusters_), NOT_PROVED, dtype=object)
        states[result.screened_at >= 0] = PROVED_ZERO
        penalized = np.atleast_2d(self._penalized_coefficients()[0])
        states[self._whole_groups(nonzero_rows(penalized.T))] = SELECTED
        states[self.unpenalized_] = UNPENALIZED
        states[result.screened_at == results.AS_CONSTANT] = AS_CONSTANT
        states[result.screened_at == results.AS_EXPLAINED] = AS_EXPLAINED
        gaps = np.full(len(states), np.nan)
        proved = np.flatnonzero(states == PROVED_ZERO)
        gaps[proved] = result.history.gap[result.screened_at[proved]]
        known = (self.alpha_, result.primal, result.gap, result.converged)
        groups = getattr(self, "feature_groups_", None)
        norms = coefficient_norms(penalized if result.scale is None else penalized * result.scale)
        return FitCertificate(type(self).__name__, *known, labels, states, gaps, groups, norms)

    @property
    def summary_(self) -> FitSummary:
        """One page about the fit, as text and, in notebooks, as tables."""
        check_is_fitted(self)
        return FitSummary(summary_text(self))

    def summary(self, *, feature_names: Any = None) -> None:
        """Print one page about the fit: objective, proof, selected features and their clusters.

        Parameters
        ----------
        feature_names : list of str, default=None
            As for :meth:`coef_frame`.
        """
        print(self._named(feature_names).summary_)

    def to_sklearn(self) -> Any:
        """A plain linear model of scikit-learn with the same coefficients, for tools that know only those.

        Returns
        -------
        LinearRegression, LogisticRegression or PoissonRegressor
            Fitted, with copies of ``coef_`` and ``intercept_``: it makes the same predictions. Squared and Huber losses
            become ``LinearRegression``, classes ``LogisticRegression`` and counts of one target ``PoissonRegressor``.

        Raises
        ------
        TypeError
            Where scikit-learn has no such model: label indicators, counts of several targets, times until events.
        ValueError
            After a fit with ``categories`` or an offset, which plain models do not know.
        """
        check_is_fitted(self)
        return plain_model(self)


def coefficient_norms(coef: Any) -> FloatArray:
    """Norm of each feature's coefficients, in double precision; a row of ``coef`` is a target."""
    return np.sqrt(np.sum(np.square(coef, dtype=np.float64), axis=0))


def scale_is_known(estimator: Any) -> bool:
    """Whether the penalty has seen another scale than that of X, and it is known which."""
    return estimator.solve_result_.scale is not None


def scale_is_deviation(estimator: Any) -> bool:
    """Whether the penalty has seen columns per standard deviation, and nothing else has scaled them."""
    has_factors = hasattr(estimator, "feature_groups_") or estimator.penalty_factor is not None
    return scale_is_known(estimator) and bool(estimator.standardize) and not has_factors


def scale_is_lost(estimator: Any) -> bool:
    """Whether the penalty has seen another scale, and an earlier version has saved the model without it."""
    has_groups = hasattr(estimator, "feature_groups_")
    by_data = hasattr(estimator, "categories_") or (has_groups and estimator.group_scale not in ("size", "none"))
    return not scale_is_known(estimator) and bool(estimator.standardize or by_data)


def clusters_of_groups(estimator: Any) -> IndexArray:
    """The cluster of each feature, or of its group: ``clusters_`` is 0 for columns that are zero in one that is not."""
    clusters, groups = estimator.clusters_, getattr(estimator, "feature_groups_", None)
    if groups is None:
        return np.asarray(clusters)
    numbers = np.unique(groups, return_inverse=True)[1]
    largest = np.zeros(len(clusters), dtype=clusters.dtype)
    np.maximum.at(largest, numbers, clusters)
    return largest[numbers]


def strongest_first(estimator: Any) -> IndexArray:
    """All features as the penalty ranks them: by cluster, then unpenalized ones in the model, then those that are zero.

    Features of a group follow each other; equals keep the order of the columns. Norms of ``coef_`` would not do: the
    penalty may have seen another scale.
    """
    clusters, groups = clusters_of_groups(estimator), getattr(estimator, "feature_groups_", None)
    after_all_clusters = clusters.max(initial=0) + 1
    rank = np.where(clusters > 0, clusters, after_all_clusters)
    rank[~estimator.get_support()] = after_all_clusters + 1
    if groups is None:
        return np.argsort(rank, kind="stable")
    _, first, numbers = np.unique(groups, return_index=True, return_inverse=True)
    return np.lexsort((np.arange(len(rank)), first[numbers], rank))


def summary_text(estimator: Any) -> str:
    """The text that ``summary()`` prints: numbers of the fit, its strongest features, as many as fit a page, notes."""
    result, certificate = estimator.solve_result_, estimator.certificate()
    coef, classes = np.atleast_2d(estimator.coef_), exclusive_classes(vars(estimator))
    goal = counted(len(coef), "label" if hasattr(estimator, "classes_") else "target")
    groups = certificate.groups
    data = [
        f"{len(certificate)} features" + ("" if groups is None else f" in {len(np.unique(groups))} groups"),
        goal if classes is None else f"{len(classes)} classes",
        "with intercept" if estimator.fit_intercept else "without intercept",
        *(["standardized"] if estimator.standardize else []),
        *(["relaxed"] if estimator.relaxed else []),
    ]
    weights = f"from {estimator.weights_[0]:.4g} down to {estimator.weights_[-1]:.4g}"
    if isinstance(estimator.weights, str) and estimator.weights != "levels":
        weights = repr(estimator.weights)
    lines = [
        type(estimator).__name__,
        f"  data       {', '.join(data)}",
        f"  penalty    alpha {estimator.alpha_:.6g}, weights {weights}",
        f"  objective  {result.primal:.10g}, proved within {result.gap:.3g} of the minimum",
        f"  solve      {results.ending_text(result)}",
        f"  features   {certificate.counts_text()}",
        f"  clusters   {clusters_text(estimator)}",
        "",
        *sequence_lines(estimator),
    ]
    if groups is not None:
        there = dict.fromkeys(groups[strongest_first(estimator)][: np.count_nonzero(estimator.get_support())].tolist())
        lines.insert(-2, f"  groups     {printable(listed(list(there), shown=_SHOWN_GROUPS, quoted=False)) or 'none'}")
    n_selected = len(estimator.get_support(indices=True))
    shown = strongest_first(estimator)[: min(n_selected, _SHOWN_IN_SUMMARY)].tolist()
    if not shown:
        lines.append(f"  No feature is selected. {null_choice_text(estimator) or 'A smaller alpha selects some.'}")
    else:
        lines += aligned_lines(feature_rows(estimator, shown), n_words=1 if groups is None else 2)
    if (more := n_selected - len(shown)) > 0:
        lines.append(f"  ... {more} more: coef_frame(sort=True) has them all")
    texts = (scale_text(estimator), uneven_text(estimator), edge_of_grid_text(estimator))
    notes = [fill(text, _WIDTH, initial_indent="  ", subsequent_indent="  ") for text in texts if text]
    return "\n".join([*lines, *([""] if notes else []), *notes])


def sequence_lines(estimator: Any) -> list[str]:
    """Table of the candidate weight sequences and ridges; no lines if there was only one."""
    reports = getattr(estimator, "search_results_", [])
    if len(reports) < 2:
        return []
    by_criterion, best = "criterion_path" in reports[0], best_sequence(reports)
    kind = "choice" if "ridge" in reports[0] else "weights"
    table = [(kind, estimator.selection if by_criterion else "score", "std. error", "alpha")]
    for name, report in zip(candidate_names(estimator), reports, strict=True):
        at = report["best_index"]
        error = "-" if by_criterion else f"{report['std_error_path'][at]:.2g}"
        value = f"{value_path(report)[at]:.4g}"
        table.append((printable(name)[:_LONGEST_NAME], value, error, f"{report['alphas'][at]:.4g}"))
    width = max(len(row[0]) for row in table)
    lines = [f"  {name:<{width}}  {value:>10}  {error:>10}  {alpha:>10}" for name, value, error, alpha in table]
    lines[best + 1] += "  chosen"
    return [*lines, ""]


def feature_rows(estimator: Any, features: list[int]) -> list[list[str]]:
    """A table of some features for people, a row of headings first: names, groups, clusters, sizes.

    Sizes are coefficients of one target or of two classes, and norms of several; on the scale of the penalty first,
    where that is another than that of X.
    """
    coef, clusters = np.atleast_2d(estimator.coef_), clusters_of_groups(estimator)
    groups, names = getattr(estimator, "feature_groups_", None), estimator._feature_labels()
    sizes = {"coef" if len(coef) == 1 else "norm": coef}
    if scale_is_known(estimator):
        sizes = {"scaled" if len(coef) == 1 else "scaled norm": np.atleast_2d(estimator.scaled_coef_)} | sizes
    rows = [["feature", *([] if groups is None else ["group"]), "cluster", *sizes]]
    for j in features:
        words = [names[j]] if groups is None else [names[j], groups[j]]
        cluster = str(clusters[j]) if clusters[j] else "-"
        columns = [values[:, j] for values in sizes.values()]
        numbers = [float(column[0] if len(coef) == 1 else coefficient_norms(column)) for column in columns]
        rows.append([printable(word) for word in words] + [cluster] + [significant(value) for value in numbers])
    return rows


def aligned_lines(rows: list[list[str]], *, n_words: int) -> list[str]:
    """Lines of a table: columns of words, cut where they are long, to the left, columns of numbers to the right."""
    cut = [[cell[:_LONGEST_NAME] for cell in row[:n_words]] + row[n_words:] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cut, strict=True)]
    lines = []
    for row in cut:
        cells = list(map(str.ljust, row[:n_words], widths)) + list(map(str.rjust, row[n_words:], widths[n_words:]))
        lines.append("  " + "  ".join(cells))
    return lines


def clusters_text(estimator: Any) -> str:
    """How many features, or groups, are in how many clusters; or that none are tied, and which weights tie more."""
    clusters, groups = clusters_of_groups(estimator), getattr(estimator, "feature_groups_", None)
    inside = np.flatnonzero(clusters)
    n_units = len(inside if groups is None else np.unique(groups[inside]))
    count = counted(n_units, "feature" if groups is None else "group")
    can_tie = bool((estimator.weights_[:1] != estimator.weights_[-1:]).any())
    return ties_text(count, n_units, int(clusters.max(initial=0)), estimator.weights, can_tie=can_tie)


def ties_text(count: str, n_units: int, n_clusters: int, weights: Any, *, can_tie: bool) -> str:
    """How many features or groups (``count``, in words) are in how many clusters, and what to do if none are tied."""
    if n_units < 2:
        return count if n_units else "none"
    if n_clusters < n_units:
        return f"{count} in {counted(n_clusters, 'cluster')}"
    if not can_tie:
        return f"{count}, nothing is tied: constant weights treat each on its own."
    given = weights if isinstance(weights, str) else ""
    names = " and ".join(name for name in _TYING if name != given)
    return f"{count}, nothing is tied: all differ in size. Weights that fall faster tie more, such as {names}."


def null_choice_text(estimator: Any) -> str:
    """Note that the null model was chosen by folds or a criterion; empty if another model was."""
    if not hasattr(estimator, "alphas_") or estimator.clusters_.any() or not estimator.path_.n_selected.any():
        return ""
    if estimator.solve_result_.status == "callback":
        return ""
    if estimator.selection in CRITERIA:
        return f"By {estimator.selection.upper()} nothing is better than the null model."
    margin = " by more than one standard error" if estimator.selection == "1se" else ""
    return f"Cross-validation finds nothing better than the null model{margin}."


def scale_text(estimator: Any) -> str:
    """Note on the scale of the coefficients in a table, if the penalty acts on another scale; otherwise empty."""
    has_clusters, has_groups = bool(estimator.clusters_.any()), hasattr(estimator, "feature_groups_")
    sentences = []
    if scale_is_lost(estimator) and has_clusters:
        sentences.append(
            "An earlier version has saved this model without the scale that the penalty saw. Sizes are per unit of a "
            "feature; the order is that of clusters, which are equal on the other scale. Fit again to see both."
        )
    if scale_is_known(estimator) and estimator.get_support().any():
        scale = "on the scale that the penalty sees"
        if scale_is_deviation(estimator):
            scale = "per standard deviation, as the penalty sees it"
        what = "whole groups" if has_groups else "features"
        equal = f"; {what} of one cluster have equal norms there" if has_clusters and not estimator.relaxed else ""
        sentences.append(f"Scaled means {scale}{equal}.")
    if estimator.relaxed and has_clusters:
        sentences.append("Sizes are those of the relaxed fit; order and clusters are those of the penalized fit.")
    return " ".join(sentences)


def uneven_text(estimator: Any) -> str:
    """Note that columns of very different size are penalized as they are; otherwise empty, as after loading."""
    ratio = getattr(estimator, "_ratio_of_columns", 1.0)
    if ratio < LARGEST_RATIO:
        return ""
    return (
        f"Sizes of columns differ by a factor of {ratio:.3g}, and features in small columns need large coefficients, "
        "which are penalized most: standardize=True treats columns alike."
    )


def edge_of_grid_text(estimator: Any, advice: str = "an eps below {:g} would look further") -> str:
    """Note that alpha is the last of the default grid, and a longer one may do better; otherwise empty."""
    made = getattr(estimator, "alphas", None)
    if not isinstance(made, numbers.Integral) or made == 1 or estimator.path_.alpha_max == 0.0:
        return ""
    at_end = estimator.best_index_ == len(estimator.alphas_) - 1 and estimator.path_.stopped_because == "end"
    return f"The best alpha is the smallest one tried; {advice.format(estimator.eps)}." if at_end else ""
