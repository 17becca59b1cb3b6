"""What a fit says of its features: what is proved of each, a data frame of coefficients, one page of text."""

from __future__ import annotations

import numbers
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from .._checks import position_in, truth_value
from .._text import counted, listed, printable
from .._typing import BoolArray, FloatArray, IndexArray
from ..categories import coefficient_names
from ..inputs import coefficient_columns, exclusive_classes, import_pandas, task_names
from ..model_selection.search import best_sequence, candidate_names, value_path
from ..norm.kernels import nonzero_rows
from ..solvers import solve_result as results

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

# Features in a table of certificates, and in the summary.
_SHOWN = 20
_SHOWN_IN_SUMMARY = 25
_LONGEST_NAME = 40
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
    """What a fit proves: of its objective, and of each feature.

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

    def _units(self) -> dict[str, int]:
        """What is selected or proved zero as one, in words, and the feature that says which: groups with members."""
        if self.groups is None:
            return {printable(feature): j for j, feature in enumerate(self.features)}
        members: dict[str, list[int]] = {}
        for j, group in enumerate(self.groups.tolist()):
            members.setdefault(group, []).append(j)
        units = {}
        for group, columns in members.items():
            inside = listed([printable(self.features[j]) for j in columns], shown=_SHOWN_MEMBERS, quoted=False)
            name = printable(group) if len(columns) == 1 else f"{printable(group)}: {inside}"
            units[name] = min(columns, key=lambda j: STATES.index(self.states[j]))
        return units

    def __repr__(self) -> str:
        doubt = "" if self.converged else " (not converged)"
        units = self._units()
        names, first = list(units), list(units.values())
        in_groups = "" if self.groups is None else f" in {counted(len(units), 'group')}"
        lines = [
            f"{self.estimator} at alpha {self.alpha:.6g}: {len(self)} features{in_groups}",
            f"  objective {self.objective:.10g}, proved within {self.gap:.3g} of the minimum{doubt}",
            f"  {self.counts_text()}",
        ]
        shown = np.argsort([STATES.index(self.states[j]) for j in first], kind="stable")[:_SHOWN].tolist()
        width = max((len(names[k]) for k in shown), default=0)
        for k in shown:
            j = first[k]
            proof = "" if np.isnan(self.gaps[j]) else f" (gap {self.gaps[j]:.2g})"
            lines.append(f"    {names[k]:<{width}}  {self.states[j]}{proof}")
        if (more := len(units) - len(shown)) > 0:
            lines.append(f"    ... {more} more: iterate over it, or to_frame()")
        return "\n".join(lines)


class ReportMethods(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """What a fitted estimator says of its features."""

    if TYPE_CHECKING:  # what a fit stores; not in the classes with parameters, where these would be parameters
        coef_: FloatArray
        intercept_: Any  # an array, or a number where y was one-dimensional
        alpha_: float
        weights_: FloatArray
        clusters_: IndexArray
        unpenalized_: IndexArray
        penalty_factor_: FloatArray
        dual_gap_: float
        n_iter_: int
        screened_fraction_: float
        solve_result_: results.SolveResult
        has_offset_: bool
        n_features_in_: int
        feature_names_in_: npt.NDArray[Any]
        feature_groups_: npt.NDArray[Any]
        target_names_: npt.NDArray[Any]
        categories_: dict[str, list[str]]
        penalized_coef_: FloatArray
        penalized_intercept_: Any

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
        return getattr(self, "coef_names_", np.arange(np.atleast_2d(self.coef_).shape[1]))

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
        """Features with a coefficient that is not zero, unpenalized ones included; of feature groups all columns.

        ``sklearn.feature_selection.SelectFromModel(estimator, threshold=1e-12)`` keeps the same features; its default
        threshold, the mean of the coefficients' norms, drops small ones. With ``categories`` there are more columns of
        coefficients than of X, and it cannot be used.

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
        mask = self._whole_groups(nonzero_rows(np.atleast_2d(self.coef_).T))
        return np.flatnonzero(mask) if truth_value("indices", indices) else mask

    def _whole_groups(self, mask: BoolArray) -> BoolArray:
        """A mask of features with all columns of groups that it has one of: they are in the model together."""
        groups = getattr(self, "feature_groups_", None)
        return mask if groups is None else np.isin(groups, groups[mask])

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
            ``feature``, ``group`` where there are feature groups, ``cluster`` (0: not selected, or unpenalized),
            ``norm`` of the coefficients shown, ``state`` as in :meth:`certificate`, and the coefficients: ``coef``, or
            a column ``coef_<target or class>`` for each where there are more.
        """
        check_is_fitted(self)
        pandas = import_pandas("coef_frame()")
        coef = np.atleast_2d(self.coef_)
        named = task_names(vars(self))
        columns = {
            "feature": self._feature_labels(),
            **({"group": self.feature_groups_} if hasattr(self, "feature_groups_") else {}),
            "cluster": clusters_of_groups(self),
            "norm": coefficient_norms(coef),
            "state": self.certificate().states,
        }
        columns |= dict(zip(coefficient_columns(len(coef), named), coef, strict=True))
        frame = pandas.DataFrame(columns)
        return frame.iloc[strongest_first(self)].reset_index(drop=True) if truth_value("sort", sort) else frame

    def certificate(self) -> FitCertificate:
        """What is proved about each feature: selected, proved zero (and at which gap), or zero but not proved.

        Returns
        -------
        FitCertificate
            Prints a table; iterates over features; ``to_frame()`` makes a data frame.
        """
        check_is_fitted(self)
        result = self.solve_result_
        states = np.full(len(self.clusters_), NOT_PROVED, dtype=object)
        states[result.screened_at >= 0] = PROVED_ZERO
        states[self._whole_groups(nonzero_rows(np.atleast_2d(self._penalized_coefficients()[0]).T))] = SELECTED
        states[self.unpenalized_] = UNPENALIZED
        states[result.screened_at == results.AS_CONSTANT] = AS_CONSTANT
        states[result.screened_at == results.AS_EXPLAINED] = AS_EXPLAINED
        gaps = np.full(len(states), np.nan)
        proved = np.flatnonzero(states == PROVED_ZERO)
        gaps[proved] = result.history.gap[result.screened_at[proved]]
        known = (self.alpha_, result.primal, result.gap, result.converged)
        groups = getattr(self, "feature_groups_", None)
        return FitCertificate(type(self).__name__, *known, self._feature_labels(), states, gaps, groups)

    def summary(self) -> None:
        """Print one page about the fit: objective, proof, selected features and their clusters."""
        check_is_fitted(self)
        print(summary_text(self))


def coefficient_norms(coef: Any) -> FloatArray:
    """Norm of each feature's coefficients, in double precision; a row of ``coef`` is a target."""
    return np.sqrt(np.sum(np.square(coef, dtype=np.float64), axis=0))


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
        f"  clusters   {estimator.clusters_.max(initial=0)}",
        "",
        *sequence_lines(estimator),
    ]
    if groups is not None:
        there = dict.fromkeys(groups[strongest_first(estimator)][: np.count_nonzero(estimator.get_support())].tolist())
        lines.insert(-2, f"  groups     {printable(listed(list(there), shown=_SHOWN_GROUPS, quoted=False)) or 'none'}")
    n_selected, norms = len(estimator.get_support(indices=True)), coefficient_norms(coef)
    clusters = clusters_of_groups(estimator)
    shown = strongest_first(estimator)[: min(n_selected, _SHOWN_IN_SUMMARY)].tolist()
    if not shown:
        lines.append("  No feature is selected. A smaller alpha selects some.")
    table = [("feature", "" if groups is None else "group", "cluster", "norm")] if shown else []
    for j in shown:
        cluster = str(clusters[j]) if clusters[j] else "-"
        group = "" if groups is None else printable(groups[j])[:_LONGEST_NAME]
        table.append((printable(certificate.features[j])[:_LONGEST_NAME], group, cluster, f"{norms[j]:.4g}"))
    widths = [max((len(row[k]) for row in table), default=0) for k in (0, 1)]
    for name, group, cluster, norm in table:
        of_group = "" if groups is None else f"  {group:<{widths[1]}}"
        lines.append(f"  {name:<{widths[0]}}{of_group}  {cluster:>7}  {norm:>10}")
    if (more := n_selected - len(shown)) > 0:
        lines.append(f"  ... {more} more: coef_frame(sort=True) has them all")
    notes = [f"  {text}" for text in (unequal_norms_text(estimator), edge_of_grid_text(estimator)) if text]
    return "\n".join([*lines, *([""] if notes else []), *notes])


def sequence_lines(estimator: Any) -> list[str]:
    """A table of the weight sequences, and ridges, that there were to choose from; nothing where there was one."""
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


def unequal_norms_text(estimator: Any) -> str:
    """Why norms in the table neither fall nor are equal in a cluster, where the penalty has seen others."""
    has_groups = hasattr(estimator, "feature_groups_")
    if not estimator.clusters_.any() or not (estimator.standardize or estimator.relaxed or has_groups):
        return ""
    if has_groups:
        shown = "of single features" + (" in the relaxed fit" if estimator.relaxed else "")
        ranked = "norms of whole groups in the scale of the penalty"
        return f"Norms are {shown}; the order is that of clusters, by {ranked}, equal in each."
    shown, ranked = ("of the relaxed fit", "penalized norm") if estimator.relaxed else ("per unit of a feature", "norm")
    scale = " per standard deviation" if estimator.standardize else ""
    return f"Norms are {shown}; the order is that of clusters, by {ranked}{scale}, equal in each."


def edge_of_grid_text(estimator: Any, advice: str = "an eps below {:g} would look further") -> str:
    """That a longer grid would go on, where alpha is the last of one of our own that nothing has cut; empty else."""
    made = getattr(estimator, "alphas", None)
    if not isinstance(made, numbers.Integral) or made == 1 or estimator.path_.alpha_max == 0.0:
        return ""
    at_end = estimator.best_index_ == len(estimator.alphas_) - 1 and estimator.path_.stopped_because == "end"
    return f"The best alpha is the smallest one tried; {advice.format(estimator.eps)}." if at_end else ""
