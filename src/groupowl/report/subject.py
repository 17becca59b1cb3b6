"""The fit that a report is about, and its path, as numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, overload

import numpy as np

from .._text import printable
from .._typing import FloatArray, IndexArray
from ..estimators import FitCertificate
from ..path import PathResult
from ..plotting import CoefficientPathDisplay, CrossValidationDisplay
from ..plotting.support import Selection, public_rows, selection_of_estimator, selection_of_result
from .contents import ReportContents


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
        if contents.estimator is None:
            assert contents.path is not None
            return cls(contents, names, *_end_of(contents.path, names, columns))
        fitted = contents.estimator
        intercept = np.atleast_1d(fitted.intercept_).astype(np.float64) if fitted.fit_intercept else None
        return cls(contents, names, float(fitted.alpha_), selection_of_estimator(fitted, names, columns), intercept)

    @property
    def estimator(self) -> Any:
        """The estimator or None."""
        return self.contents.estimator

    @property
    def n_clusters(self) -> int:
        """Number of clusters of the fit."""
        return int(self.selection.clusters.max(initial=0))

    @property
    def n_free(self) -> int:
        """Number of features in the model that are not penalised."""
        return int(np.count_nonzero(self.selection.clusters == 0))

    @cached_property
    def certificate(self) -> FitCertificate | None:
        """What the fit proves; None without an estimator."""
        return None if self.estimator is None else self.estimator.certificate()

    @cached_property
    def along(self) -> Along | None:
        """The path; None where there is none."""
        return None if self.contents.path is None else Along.of(self)

    @cached_property
    def choice(self) -> CrossValidationDisplay | None:
        """What alpha was chosen by; None where it was given."""
        return CrossValidationDisplay.undrawn(self.estimator) if hasattr(self.estimator, "alphas_") else None

    @property
    def n_folds(self) -> int:
        """Number of folds; 0 where there are none."""
        return 0 if self.choice is None or self.choice.scores is None else self.choice.scores.shape[1]

    @property
    def fold_counts(self) -> IndexArray | None:
        """In how many folds each selected feature was selected; None without folds."""
        return np.asarray(self.estimator.selection_frequency_)[self.selection.features] if self.n_folds else None


@dataclass(frozen=True, eq=False)
class Along:
    """A path with a row for each feature that is non-zero somewhere on it.

    Attributes
    ----------
    path : PathResult
    display : CoefficientPathDisplay
        Norms of the rows, their names, and which of them are not penalised.
    clusters : ndarray of int of shape (n_alphas, n_rows)
        0 where a row is zero or not penalised.
    """

    path: PathResult
    display: CoefficientPathDisplay
    clusters: IndexArray

    @classmethod
    def of(cls, subject: Subject) -> Along:
        """The path of a subject."""
        path = _with_fit(subject)
        chosen = None if subject.estimator is None else subject.alpha
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
    path, fitted = subject.contents.path, subject.estimator
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


def _end_of(path: PathResult, names: Sequence[str], columns: list[str]) -> tuple[float, Selection, FloatArray | None]:
    point = path[len(path) - 1]
    public = replace(point, rows=public_rows(path, point))
    intercept = path.intercepts[:, -1].astype(np.float64) if path.fit_intercept else None
    return float(point.alpha), selection_of_result(public, names, columns), intercept
