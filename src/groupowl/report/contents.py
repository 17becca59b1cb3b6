"""What a report is made from, and the fit that it is about as numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, overload

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._text import printable
from .._typing import FloatArray, IndexArray
from ..estimators import FitCertificate
from ..path import PathResult
from ..plotting import CoefficientPathDisplay, CrossValidationDisplay
from ..plotting.support import Selection, public_rows, selection_of_estimator, selection_of_result


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
    scores : mapping of str to (float, float)
        By the name of the score: that of the model and that of the null model.
    notes : sequence of str
        What the reader should be warned of, in words.
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

    def __post_init__(self) -> None:
        for name in ("command", "feature_names", "target_names", "notes"):
            _check_list(name, getattr(self, name))
        self._check_source()
        _check_count("feature_names", self.feature_names, {self.n_features: "features"})
        expected = {self.n_targets: "targets"} if self.classes is None else {len(self.classes): "classes", 1: "column"}
        _check_count("target_names", self.target_names, expected)
        for name, pair in self.scores.items():
            if not isinstance(pair, Iterable) or len(list(pair)) != 2:
                raise ValueError(f"scores[{name!r}] must be two numbers, (model, null model), got {pair!r}.")

    def _check_source(self) -> None:
        if self.estimator is None and self.path is None:
            raise ValueError("estimator and path are both None: a report needs a fitted estimator, a path, or both.")
        if self.estimator is not None:
            check_is_fitted(self.estimator)
        if self.path is not None and not isinstance(self.path, PathResult):
            raise TypeError(f"path must be a PathResult or None, got {type(self.path).__name__}.")
        if self.estimator is not None and self.path is not None:
            ours, theirs = self.estimator.n_features_in_, self.path.n_features
            if ours != theirs:
                raise ValueError(f"estimator has {ours} features and path has {theirs}: give a path of the same data.")

    @property
    def n_features(self) -> int:
        """Number of features."""
        return int(self.estimator.n_features_in_ if self.path is None else self.path.n_features)

    @property
    def n_targets(self) -> int:
        """Rows of ``coef_``: targets, classes from three on, 1 for two classes."""
        if self.path is not None:
            return self.path.n_targets
        return 1 if self.estimator.coef_.ndim == 1 else len(self.estimator.coef_)

    @property
    def classes(self) -> list[str] | None:
        """Names of the classes; None for a regression."""
        source = getattr(self.estimator, "classes_", None) if self.path is None else self.path.classes
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


def _check_list(argument: str, values: Any) -> None:
    if isinstance(values, str) or not isinstance(values, Iterable) or not hasattr(values, "__len__"):
        raise TypeError(f"{argument} must be a list of strings, got {values!r}. Put it in a list.")


def _check_count(argument: str, names: Sequence[str], expected: dict[int, str]) -> None:
    """One name for each of what there is; ``expected`` has the numbers that will do."""
    if len(names) not in expected:
        wanted = " or ".join(f"{count} ({what})" for count, what in expected.items())
        raise ValueError(f"{argument} must have {wanted} names, got {len(names)}.")


@dataclass(frozen=True, eq=False)
class Subject:
    """The fit of an estimator, or the last point of a path where there is no estimator.

    Attributes
    ----------
    contents : ReportContents
    names : sequence of str
        Names of all features, each in one line.
    alpha : float
        Of the fit.
    selection : Selection
        Features in the model, by cluster.
    intercept : ndarray of shape (n_columns,) or None
        None where none was fitted.
    """

    contents: ReportContents
    names: Sequence[str]
    alpha: float
    selection: Selection
    intercept: FloatArray | None

    @classmethod
    def of(cls, contents: ReportContents) -> Subject:
        """What the contents are about."""
        names = _Shown(contents.feature_names)
        columns = [shown_name(name) for name in contents.columns]
        fitted, path = contents.estimator, contents.path
        if fitted is None:
            assert path is not None
            end = path[len(path) - 1]
            public = replace(end, rows=public_rows(path, end))
            intercept = path.intercepts[:, -1].astype(np.float64) if path.fit_intercept else None
            return cls(contents, names, end.alpha, selection_of_result(public, names, columns), intercept)
        intercept = np.atleast_1d(fitted.intercept_).astype(np.float64) if fitted.fit_intercept else None
        return cls(contents, names, float(fitted.alpha_), selection_of_estimator(fitted, names, columns), intercept)

    @property
    def n_clusters(self) -> int:
        """Number of clusters of the fit."""
        return int(self.selection.clusters.max(initial=0))

    @property
    def n_unpenalized(self) -> int:
        """Number of features in the model that are not penalized."""
        return int(np.count_nonzero(self.selection.clusters == 0))

    @cached_property
    def certificate(self) -> FitCertificate | None:
        """What the fit proves; None without an estimator."""
        return None if self.contents.estimator is None else self.contents.estimator.certificate()

    @cached_property
    def along(self) -> Along | None:
        """The path; None where there is none."""
        return None if self.contents.path is None else Along.of(self)

    @cached_property
    def choice(self) -> CrossValidationDisplay | None:
        """What alpha was chosen by; None where it was given."""
        estimator = self.contents.estimator
        return CrossValidationDisplay.undrawn(estimator) if hasattr(estimator, "alphas_") else None

    @property
    def n_folds(self) -> int:
        """Number of folds; 0 where there are none."""
        return 0 if self.choice is None or self.choice.scores is None else self.choice.scores.shape[1]

    @property
    def fold_counts(self) -> IndexArray | None:
        """In how many folds each selected feature was selected; None without folds."""
        return (
            np.asarray(self.contents.estimator.selection_frequency_)[self.selection.features] if self.n_folds else None
        )


@dataclass(frozen=True, eq=False)
class Along:
    """A path with a row for each feature that is non-zero somewhere on it.

    Attributes
    ----------
    path : PathResult
    display : CoefficientPathDisplay
        Norms of the rows, their names, and which of them are not penalized.
    clusters : ndarray of int of shape (n_alphas, n_rows)
        0 where a row is zero or not penalized.
    """

    path: PathResult
    display: CoefficientPathDisplay
    clusters: IndexArray

    @classmethod
    def of(cls, subject: Subject) -> Along:
        """The path of a subject."""
        path = _with_fit(subject)
        chosen = None if subject.contents.estimator is None else subject.alpha
        display = CoefficientPathDisplay.undrawn(path, alpha=chosen, feature_names=subject.names)
        clusters = np.zeros(display.norms.shape, dtype=np.intp)
        for i, point in enumerate(path):
            clusters[i, np.searchsorted(display.features, point.support)] = point.clusters
        return cls(path, display, clusters)

    def entry_alphas(self, features: IndexArray) -> FloatArray:
        """The largest alpha of the path at which each feature is in the model; NaN where it never is."""
        found = np.full(self.path.n_features, np.nan)
        found[self.display.features] = self.display.alphas[np.argmax(self.display.norms > 0.0, axis=0)]
        return found[features]

    @property
    def nearest(self) -> int:
        """Position of the alpha that is nearest to the chosen one; the last where none is chosen."""
        if self.display.alpha is None:
            return len(self.path) - 1
        return int(np.argmin(np.abs(np.log(self.display.alphas / self.display.alpha))))


def _with_fit(subject: Subject) -> PathResult:
    """The path; where it passes through the fit it has the fit itself, which was solved to more digits."""
    path, fitted = subject.contents.path, subject.contents.estimator
    assert path is not None
    if fitted is None or subject.alpha not in path.alphas:
        return path
    i, result = int(np.flatnonzero(path.alphas == subject.alpha)[0]), fitted.solve_result_
    support = result.support
    point = replace(
        path[i],
        support=support,
        rows=result.B[support],
        intercept=result.intercept,
        clusters=result.clusters[support],
        primal=result.primal,
        gap=result.gap,
        status=result.status,
        n_selected=int(np.count_nonzero(~np.isin(support, path.unpenalized))),
    )
    return replace(path, points=(*path.points[:i], point, *path.points[i + 1 :]))


def shown_name(name: Any) -> str:
    """A name in one line; an empty one is put into words."""
    return printable(" ".join(str(name).split())) or "(empty name)"


class _Shown(Sequence[str]):
    """Names as the page shows them, each made when it is asked for."""

    def __init__(self, names: Any) -> None:
        self.names = names if isinstance(names, Sequence) else list(names)

    def __len__(self) -> int:
        return len(self.names)

    @overload
    def __getitem__(self, position: int) -> str: ...

    @overload
    def __getitem__(self, position: slice) -> list[str]: ...

    def __getitem__(self, position: Any) -> Any:
        chosen = self.names[position]
        return [shown_name(name) for name in chosen] if isinstance(position, slice) else shown_name(chosen)
