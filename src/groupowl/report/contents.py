"""What a report is made from, and the fit that it is about as numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._text import printable
from ..estimators.fit_summary import scale_is_deviation
from ..inputs import exclusive_classes, names_in_groups
from ..model_selection.scores import Confusion, Score
from ..path import PathResult
from ..plotting import CoefficientPathDisplay, CrossValidationDisplay, SurvivalDisplay
from ..plotting.coefficients import selection_of_estimator, selection_of_result
from ..plotting.style import public_rows


@dataclass(frozen=True, eq=False)
class ReportContents:
    """What a report is made from; names and numbers are shown as they are, whatever characters they have.

    Parameters
    ----------
    title : str
        Headline, such as "Group OWL regression: train.csv".
    command : sequence of str
        Command line that reproduces the run, one string per argument.
    facts : mapping of str to str
        What was fitted, in the order in which to show it: file, samples, features, weights, seconds.
    estimator : fitted groupowl estimator or None
        What was fitted. None where only a path was: the report is then about the end of the path.
    path : PathResult or None
        Fits along alphas; None for a fit at one alpha.
    feature_names : sequence of str
        Names of all features, in the order of the columns of X.
    target_names : sequence of str
        Names of the targets of a regression. Of a classification the names of all classes, in their order, or the
        one name of the column with the labels; the classes then go by their labels.
    scores : mapping of str to Score or (float, float)
        By the name of the score: that of the model and that of the null model, with standard errors and for each
        target where it is a :class:`~groupowl.model_selection.scores.Score`.
    notes : sequence of str
        What the reader should be warned of, in words.
    survival : sequence of SurvivalDisplay, default=()
        Of a Cox model: samples by predicted risk, for each target.
    confusion : sequence of Confusion, default=()
        Which classes are taken for which; one for each label where labels do not exclude each other.
    candidates : sequence of dict, default=()
        Weight sequences and ridges that were compared, each with its ``name``, ``alpha``, ``measure``, ``score``,
        ``std_error`` and whether it was ``chosen``.
    choices : sequence of dict, default=()
        Alphas that information criteria choose, each with its ``criterion``, ``alpha``, ``n_selected`` and whether it
        was ``chosen``.
    """

    title: str
    command: Sequence[str]
    facts: Mapping[str, str]
    estimator: Any
    path: PathResult | None
    feature_names: Sequence[str]
    target_names: Sequence[str]
    scores: Mapping[str, tuple[float, float]]
    notes: Sequence[str]
    survival: Sequence[SurvivalDisplay] = ()
    confusion: Sequence[Confusion] = ()
    candidates: Sequence[Mapping[str, Any]] = ()
    choices: Sequence[Mapping[str, Any]] = ()

    def __post_init__(self) -> None:
        for name in ("command", "feature_names", "target_names", "notes"):
            values = getattr(self, name)
            if isinstance(values, str) or not isinstance(values, Iterable) or not hasattr(values, "__len__"):
                raise TypeError(f"{name} must be a list of strings, got {values!r}. Put it in a list.")
        estimator, path = self.estimator, self.path
        if estimator is None and path is None:
            raise ValueError("estimator and path are both None: a report needs a fitted estimator, a path, or both.")
        if estimator is not None:
            check_is_fitted(estimator)
        if path is not None and not isinstance(path, PathResult):
            raise TypeError(f"path must be a PathResult or None, got {type(path).__name__}.")
        if estimator is not None and len(estimator.clusters_) != self.n_features:
            found = f"estimator has {len(estimator.clusters_)} features and path has {self.n_features}"
            raise ValueError(f"{found}: give a path of the same data.")
        goals = {self.n_targets: "targets"} if self.classes is None else {len(self.classes): "classes", 1: "column"}
        for name, expected in {"feature_names": {self.n_features: "features"}, "target_names": goals}.items():
            count = len(getattr(self, name))
            if count not in expected:
                wanted = " or ".join(f"{number} ({what})" for number, what in expected.items())
                raise ValueError(f"{name} must have {wanted} names, got {count}.")
        if self.survival and len(self.survival) != self.n_targets:
            raise ValueError(f"survival must have a display for each of {self.n_targets}, got {len(self.survival)}.")
        for name, pair in self.scores.items():
            if not isinstance(pair, Score) and (not isinstance(pair, Iterable) or len(list(pair)) != 2):
                raise ValueError(f"scores[{name!r}] must be two numbers, (model, null model), got {pair!r}.")

    @property
    def n_features(self) -> int:
        """Number of features."""
        return len(self.estimator.clusters_) if self.path is None else self.path.n_features

    @property
    def n_targets(self) -> int:
        """Rows of ``coef_``: targets, classes from three on, 1 for two classes."""
        return len(np.atleast_2d(self.estimator.coef_)) if self.path is None else self.path.n_targets

    @property
    def classes(self) -> list[str] | None:
        """Names of the classes; None for a regression."""
        source = exclusive_classes(vars(self.estimator)) if self.path is None else self.path.classes
        if source is None:
            return None
        given = list(self.target_names)
        return [str(label) for label in (given if len(given) == len(source) else source)]

    @property
    def columns(self) -> list[str]:
        """What the coefficients of a feature are for: targets or classes; of two classes one against the other."""
        classes = self.classes
        if classes is None:
            return [str(name) for name in self.target_names]
        return [f"{classes[1]} against {classes[0]}"] if len(classes) == 2 else classes


def shown_name(name: Any) -> str:
    """A name in one line; an empty one is put into words."""
    return printable(" ".join(str(name).split())) or "(empty name)"


class Subject:
    """The fit of an estimator, or the last point of a path where there is no estimator.

    Attributes
    ----------
    names : sequence of str
        Names of all features, as they were given, with the names of their feature groups.
    n_groups, n_free_groups, n_all_groups : int
        Feature groups in the model, without unpenalized ones, these, and all; 0 where there are none.
    alpha : float
        Of the fit.
    selection : Selection
        Features in the model, by cluster, those that are not penalized last; names are those that are shown, each in
        one line.
    intercept : ndarray of shape (n_columns,) or None
        None where none was fitted.
    n_clusters, n_unpenalized : int
        Clusters of the fit, and features in the model that are not penalized.
    has_two_scales : bool
        Whether the penalty has seen another scale than that of X, and it is known.
    is_standardized : bool
        Whether that is because columns were standardized, so that sizes can be compared; of a path alone, whether
        there is another scale.
    is_relaxed : bool
        Whether sizes are those of a relaxed fit, which differ in a cluster.
    scale_words : str
        What the scale of the penalty is.
    weights : object
        The weight sequence as it was asked for; None without an estimator.
    can_tie : bool
        Whether its weights differ.
    certificate : FitCertificate or None
        What the fit proves; None without an estimator.
    choice : CrossValidationDisplay or None
        What alpha was chosen by; None where it was given.
    n_folds : int
        0 where there are none.
    fold_counts : ndarray of shape (n_features,)
        In how many folds each feature was selected; empty without folds.
    display : CoefficientPathDisplay or None
        The path, with a row for each feature that is non-zero somewhere on it; None where there is none. Where it
        passes through the fit it has the fit itself, which was solved to more digits.
    points : PathResult
        The same path, point by point.
    nearest : int
        Position of the alpha that is nearest to the chosen one; the last where none is chosen.
    """

    def __init__(self, contents: ReportContents) -> None:
        fitted, path, given = contents.estimator, contents.path, contents.feature_names
        self.names = given if isinstance(given, Sequence) else list(given)
        source: Any = path if fitted is None else fitted
        groups = getattr(source, "feature_groups" if fitted is None else "feature_groups_", None)
        if groups is not None:
            self.names = names_in_groups(self.names, groups)
        columns = [shown_name(name) for name in contents.columns]
        if fitted is not None:
            self.alpha, intercept = float(fitted.alpha_), np.atleast_1d(fitted.intercept_)
            selection = selection_of_estimator(fitted, self.names, columns)
        elif path is not None:
            end, intercept = path[len(path) - 1], path.intercepts[:, -1]
            self.alpha = end.alpha
            selection = selection_of_result(replace(end, rows=public_rows(path, end.rows)), self.names, columns, groups)
        self.intercept = intercept if source.fit_intercept else None
        selection = selection.with_unpenalized_last()
        self.selection = replace(selection, names=[shown_name(name) for name in selection.names])
        penalized = np.flatnonzero(selection.clusters).tolist()
        self.n_groups = 0 if selection.groups is None else len({selection.groups[k] for k in penalized})
        free = np.flatnonzero(selection.clusters == 0).tolist()
        self.n_free_groups = 0 if selection.groups is None else len({selection.groups[k] for k in free})
        self.n_all_groups = 0 if groups is None else len(np.unique(groups))
        self.n_clusters = int(selection.clusters.max(initial=0))
        self.n_unpenalized = int(np.count_nonzero(selection.clusters == 0))
        self.has_two_scales = selection.scale is not None
        self.is_standardized = self.has_two_scales and (fitted is None or bool(fitted.standardize))
        self.is_relaxed = fitted is not None and bool(fitted.relaxed)
        self.scale_words = "on the scale that the penalty sees"
        if fitted is not None and scale_is_deviation(fitted):
            self.scale_words = "per standard deviation of the feature"
        self.weights = getattr(fitted, "weights", None)
        weights = source.weights if fitted is None else fitted.weights_
        self.can_tie = bool((weights[:1] != weights[-1:]).any())
        self.certificate = None if fitted is None else fitted.certificate()
        self.choice = CrossValidationDisplay.undrawn(fitted) if hasattr(fitted, "alphas_") else None
        self.n_folds = getattr(fitted, "score_path_", np.empty((0, 0))).shape[1]
        self.fold_counts = np.asarray(getattr(fitted, "selection_frequency_", ()))
        self.display: CoefficientPathDisplay | None = None
        if path is None:
            return
        chosen = None if fitted is None else self.alpha
        if chosen is not None and chosen in path.alphas:
            i, result = int(np.flatnonzero(path.alphas == chosen)[0]), fitted.solve_result_
            found = {name: getattr(result, name) for name in ("support", "intercept", "primal", "gap", "status")}
            found |= {"rows": result.B[result.support], "clusters": result.clusters[result.support]}
            found["scale"] = None if result.scale is None else result.scale[result.support]
            n_selected = int(np.count_nonzero(~np.isin(result.support, path.unpenalized)))
            point = replace(path[i], **found, n_selected=n_selected)
            path = replace(path, points=(*path.points[:i], point, *path.points[i + 1 :]))
        self.points, display = path, CoefficientPathDisplay.undrawn(path, alpha=chosen, feature_names=self.names)
        self.display = replace(display, feature_names=[shown_name(name) for name in display.feature_names])
        self.nearest = int(np.argmin(np.abs(np.log(path.alphas / (chosen or path.alphas[-1])))))
