"""A whole path: what the solutions are, how they came about, and what lies between them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import numpy.typing as npt
from scipy.special import expit, softmax

from .._checks import column_names, finite_number, position_in, positive_integer
from .._html import data_table, paragraph, titled
from .._text import counted, listed
from .._typing import FloatArray, IndexArray
from ..categories import Categories, check_unseen, coefficient_names
from ..designs import as_design
from ..inputs import coefficient_columns, exclusive_classes, feature_names, import_pandas
from ..losses import Loss, check_offset, resolve_loss
from ..model import Model
from ..norm.kernels import nonzero_rows, row_norms
from ..solvers.solve_result import OnAccess, scaled_rows

# Columns and rows of the table that a path is printed as.
_COLUMNS = ("alpha", "selected", "clusters", "deviance", "gap", "status")
_COLUMNS_WITH_GROUPS = ("alpha", "selected", "groups", "clusters", "deviance", "gap", "status")
_SHOWN = 8

REASONS = {
    "end": "all alphas solved",
    "deviance": "ended early: the deviance is explained",
    "max_features": "ended early: the next alpha selects more than max_features",
    "callback": "ended early by the callback",
}


@dataclass(frozen=True, eq=False)
class Solution:
    """Coefficients at one alpha by their non-zero rows, on the scale of X as it was given.

    Attributes
    ----------
    support : ndarray of int
        Features whose coefficients are not all zero, ascending.
    rows : ndarray of shape (len(support), n_columns)
        Their coefficients: a column for each target, or for each class.
    intercept : ndarray of shape (n_columns,)
        Zeros without intercept.
    """

    support: IndexArray
    rows: FloatArray
    intercept: FloatArray

    @classmethod
    def of(cls, B: FloatArray, intercept: FloatArray) -> Solution:
        """The non-zero rows of a matrix."""
        support = np.flatnonzero(nonzero_rows(B))
        return Solution(support, B[support], intercept)

    @classmethod
    def several(cls, features: IndexArray, stack: FloatArray, intercepts: FloatArray) -> list[Solution]:
        """Solutions from coefficients of some features, ascending, of shape (n_solutions, n_features, n_columns)."""
        n_solutions, n_features, n_columns = stack.shape
        at = np.flatnonzero(nonzero_rows(stack.reshape(-1, n_columns)))
        ends = np.searchsorted(at, n_features * np.arange(1, n_solutions)).tolist()
        supports, rows = features[at % max(n_features, 1)], stack.reshape(-1, n_columns)[at]
        solutions = []
        for start, end, intercept in zip([0, *ends], [*ends, len(at)], intercepts, strict=True):
            solutions.append(Solution(supports[start:end], rows[start:end], intercept))
        return solutions

    def coef(self, n_features: int) -> FloatArray:
        """All coefficients, dense, of shape (n_features, n_columns)."""
        least = int(self.support.max(initial=-1)) + 1
        d = positive_integer("n_features", n_features, minimum=least)
        B = np.zeros((d, self.rows.shape[1]), dtype=self.rows.dtype)
        B[self.support] = self.rows
        return B


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class PathPoint(Solution):
    """The solution at one alpha: its non-zero rows, and what is proved about it.

    Attributes
    ----------
    alpha : float
        Strength of the penalty.
    support : ndarray of int
        Features whose coefficients are not all zero, ascending; unpenalized ones are among them.
    rows : ndarray of shape (len(support), n_columns)
        Their coefficients on the scale of X as it was given: a column for each target, or for each class.
    intercept : ndarray of shape (n_columns,)
        One for each column of ``rows``; zeros without intercept.
    clusters : ndarray of int of shape (len(support),)
        Features of equal norm share a number, from 1 by falling norm; 0 for unpenalized features.
    primal, gap : float
        Objective, and the proved bound on its distance from the minimum.
    loss : float
        The part of the objective that is not penalty.
    deviance_ratio : float
        Share of the null model's loss that is explained, ``1 - loss / null_loss`` where the smallest possible loss is
        0 (it is taken off both); 1 where there is nothing to explain.
    n_iter : int
        Proximal steps taken.
    n_passes : float
        Products with X, in units of one product with all columns.
    seconds : float
        Time of the solve.
    status : {"converged", "max_iter", "callback", "stalled", "precision"}
        Why the solve stopped.
    n_selected : int
        Penalized features in the support.
    scale : ndarray of shape (len(support),) or None
        What rows are multiplied with to be on the scale that the penalty sees: see :attr:`scaled_rows`. None where
        that is the scale of X, and in paths that an earlier version has saved.

    Examples
    --------
    >>> import groupowl as go
    >>> data = go.datasets.make_correlated_groups(60, 30, 2, n_informative=3, random_state=0)
    >>> point = go.group_owl_path(data.X, data.Y, alphas=5, eps=0.1)[2]
    >>> point.status, point.n_selected, point.rows.shape
    ('converged', 2, (2, 2))
    """

    alpha: float
    clusters: OnAccess[IndexArray] = OnAccess()
    primal: float
    gap: float
    loss: float
    deviance_ratio: float
    n_iter: int
    n_passes: float
    seconds: float
    status: str
    n_selected: int
    scale: FloatArray | None = None

    @property
    def scaled_rows(self) -> FloatArray:
        """``rows`` on the scale that the penalty sees, on which features of one cluster have equal norms."""
        return scaled_rows(self.rows, self.scale)

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"clusters": self.clusters}

    def __repr__(self) -> str:
        return (
            f"PathPoint(alpha {self.alpha:.4g}: {self.n_selected} features selected, "
            f"{100 * self.deviance_ratio:.1f} % of the deviance explained, gap {self.gap:.3g}, {self.status})"
        )


class _PerPoint(property):
    """A property that is an array, as type checkers are to know."""

    if TYPE_CHECKING:

        def __get__(  # type: ignore[override]  # of the class itself nobody asks
            self, instance: Any, owner: type | None = None, /
        ) -> npt.NDArray[Any]: ...


def _per_point(name: str, doc: str) -> _PerPoint:
    """A property of a path that has one entry for each of its points."""
    entry = attrgetter(name)
    return _PerPoint(lambda path: np.array(list(map(entry, path.points))), doc=doc)


@dataclass(frozen=True, eq=False, repr=False)
class PathResult:
    """Coefficient path: solutions at decreasing alphas, with their certificates.

    The objective is ``(1/W) sum_i w_i f_i(x_i^T B + b0) + alpha sum_j weights_j ||B_[j],:||_2``.

    Only supports and their rows are stored; ``coefs`` and ``clusters`` are dense arrays that are made on access.
    ``path[i]`` is one :class:`~groupowl.PathPoint`, ``path[i:j]`` a shorter path, ``len(path)`` the number of
    alphas.

    **Targets and classes.** Arrays have a row for each target of a regression and for each of three or more classes.
    Two classes have one row, as ``coef_`` of the classifier: the second class less the first. Points have a column for
    every target and class; those of a classifier with two classes have the one row only.

    Attributes
    ----------
    points : tuple of PathPoint
        One per alpha, the largest alpha first.
    weights : ndarray of shape (n_penalized,)
        Weight sequence, largest first.
    n_features : int
        Columns of X.
    loss : str
        Name of the loss.
    fit_intercept : bool
        Whether there is an intercept.
    alpha_max : float
        Smallest alpha that selects nothing.
    null_loss : float
        Loss of the model without penalized features; tolerances are relative to it, less the smallest possible loss.
    stopped_because : {"end", "deviance", "max_features", "callback"}
        Why there are no more alphas: there were none; the deviance is explained; the next alpha selects more than
        ``max_features`` and is not part of the path; the callback asked for it.
    unpenalized : ndarray of int
        Features without penalty.
    feature_names : ndarray of str or None
        Names of the columns of X, where it had names.
    classes : ndarray or None
        Labels of the classes, sorted; None for a regression.
    target_names : ndarray of str or None
        Names of the columns of y, where it was a frame.
    feature_groups : ndarray of str or None
        Name of the group of each feature, where there are feature groups.
    categories : dict of str to list of str, or None
        Levels of the columns of X that were categories; features are then the columns that these have become.
    has_offset : bool
        Whether there was an offset, which predictions then need too.

    Examples
    --------
    >>> import groupowl as go
    >>> data = go.datasets.make_correlated_groups(60, 30, 2, n_informative=3, random_state=0)
    >>> path = go.group_owl_path(data.X, data.Y, alphas=5, eps=0.1)
    >>> len(path), path.coefs.shape
    (5, (2, 30, 5))
    >>> path.n_selected.tolist()
    [0, 2, 2, 2, 6]
    """

    points: tuple[PathPoint, ...]
    weights: FloatArray
    n_features: int
    loss: str
    fit_intercept: bool
    alpha_max: float
    null_loss: float
    stopped_because: str
    unpenalized: IndexArray
    feature_names: Any = None
    classes: Any = None
    target_names: Any = None
    feature_groups: Any = None
    categories: Any = None
    has_offset: bool = False

    @classmethod
    def of(cls, model: Model, points: Iterable[PathPoint], stopped_because: str) -> PathResult:
        """Solutions of a model; names follow by :meth:`labeled`."""
        kind = (model.problem.loss.name, bool(model.problem.fit_intercept))
        known = (model.weights, model.problem.n_rows, *kind, model.alpha_max, model.problem.null_loss)
        groups = model.options.groups_of_columns
        return cls(tuple(points), *known, stopped_because, model.unpenalized, feature_groups=groups)

    def labeled(self, labels: Mapping[str, Any]) -> PathResult:
        """The same path with names of its features and targets, or classes, where an estimator would have them."""
        features, targets = coefficient_names(labels), labels.get("target_names_")
        return replace(
            self,
            feature_names=None if features is None else np.asarray(features, dtype=str),
            target_names=None if targets is None else np.asarray(targets, dtype=str),
            classes=exclusive_classes(labels),
            categories=labels.get("categories_"),
            has_offset=bool(labels.get("has_offset_", False)),
        )

    # Points -----------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.points)

    def __iter__(self) -> Iterator[PathPoint]:
        return iter(self.points)

    @overload
    def __getitem__(self, index: int) -> PathPoint: ...

    @overload
    def __getitem__(self, index: slice) -> PathResult: ...

    def __getitem__(self, index: int | slice) -> PathPoint | PathResult:
        if not isinstance(index, slice):
            return self.points[position_in("the path", index, len(self), "alphas")]
        points = self.points[index]
        if not points or (index.step or 1) < 0:
            raise ValueError(f"a part of a path needs at least one alpha and a positive step, got {index}.")
        is_end = points[-1] is self.points[-1]
        return replace(self, points=points, stopped_because=self.stopped_because if is_end else "end")

    # Numbers per alpha ------------------------------------------------------------------------------

    alphas = _per_point("alpha", "Alphas that were solved, falling, of shape (n_alphas,).")
    dual_gaps = _per_point("gap", "Proved bounds on objective minus minimum.")
    n_iters = _per_point("n_iter", "Proximal steps taken.")
    n_passes = _per_point("n_passes", "Products with X, in units of one product with all columns.")
    n_selected = _per_point("n_selected", "Penalized features that are not zero.")
    losses = _per_point("loss", "Values of the loss, without penalty.")
    deviance_ratio = _per_point("deviance_ratio", "Shares of the null model's loss that are explained.")
    seconds = _per_point("seconds", "Wall times of the solves.")
    statuses = _per_point("status", 'Why each solve stopped: "converged", or what came before that.')

    # Coefficients -----------------------------------------------------------------------------------

    @property
    def n_targets(self) -> int:
        """Rows of ``coefs``: targets, classes from three on, 1 for two classes."""
        return 1 if self._is_binary else len(self.points[0].intercept)

    @property
    def coefs(self) -> FloatArray:
        """Coefficients on the scale of X, of shape (n_targets, n_features, n_alphas)."""
        return self._dense([point.rows for point in self.points])

    @property
    def scaled_coefs(self) -> FloatArray:
        """Coefficients on the scale that the penalty sees, per standard deviation where columns were standardized.

        Of the same shape as ``coefs``, and equal to it where nothing was scaled. Ranks and clusters refer to these.
        """
        return self._dense([point.scaled_rows for point in self.points])

    def _dense(self, rows: list[FloatArray]) -> FloatArray:
        """Coefficients of all features from those of the supports."""
        coefs = np.zeros((self.n_targets, self.n_features, len(self)), dtype=rows[0].dtype)
        for i, (point, some) in enumerate(zip(self.points, rows, strict=True)):
            coefs[:, point.support, i] = self._as_public(some)
        return coefs

    @property
    def is_scaled(self) -> bool:
        """Whether ``scaled_coefs`` differ from ``coefs``."""
        return self.points[0].scale is not None

    @property
    def intercepts(self) -> FloatArray:
        """Intercepts, of shape (n_targets, n_alphas); zeros when none was fitted."""
        return np.stack([self._intercept(point) for point in self.points], axis=1)

    @property
    def clusters(self) -> IndexArray:
        """Cluster of each feature, of shape (n_features, n_alphas).

        Rows of equal norm, in the scale that is penalized, share a number, from 1 by falling norm; 0 for features that
        are zero or unpenalized. With feature groups it is the number of their group: groups of equal norm share one.
        """
        clusters = np.zeros((self.n_features, len(self)), dtype=np.intp)
        for i, point in enumerate(self.points):
            clusters[point.support, i] = point.clusters
        return clusters

    def coef_at(self, alpha: float) -> FloatArray:
        """Coefficients at any alpha between the smallest and the largest of the path.

        Parameters
        ----------
        alpha : float
            Within the range of ``alphas``.

        Returns
        -------
        ndarray of shape (n_targets, n_features)
            The solution itself where ``alpha`` is one of ``alphas``; in between the two neighbors are interpolated
            linearly, which is near the solution there and certified by nothing.
        """
        return self._at(alpha, lambda point: self._as_public(point.coef(self.n_features)))

    def intercept_at(self, alpha: float) -> FloatArray:
        """Intercepts at any alpha between the smallest and the largest of the path, of shape (n_targets,).

        Parameters
        ----------
        alpha : float
            Within the range of ``alphas``.

        Returns
        -------
        ndarray of shape (n_targets,)
            As for :meth:`coef_at`.
        """
        return self._at(alpha, self._intercept)

    # Predictions ------------------------------------------------------------------------------------

    def predict(self, X: Any, alpha: float, offset: Any = None, *, unseen: str = "error") -> Any:
        """Predict with the solution at any alpha between the smallest and the largest of the path.

        Parameters
        ----------
        X : array-like, data frame, sparse matrix or design of shape (n_samples, n_features)
            New samples, with the columns of the data of the path; where these had categories, a data frame as that was,
            or with a column for each level, as in ``feature_names``.
        alpha : float
            Within the range of ``alphas``; in between, coefficients are those of :meth:`coef_at`.
        offset : array-like of shape (n_samples,) or (n_samples, n_targets), default=None
            Added to the linear predictors. Required if the path had an offset; ``offset=0`` means none.
        unseen : {"error", "zero"}, default="error"
            What becomes of levels of categories that the data of the path had not: an error, or no effect.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_targets)
            Targets on their own scale (counts for ``loss="poisson"``, logarithms of relative hazards for
            ``loss="cox"``), flat for one target; or the most probable class; or 0 and 1 for each label of
            ``loss="logistic"``.

        Examples
        --------
        >>> import groupowl as go
        >>> data = go.datasets.make_correlated_groups(60, 30, 2, n_informative=3, random_state=0)
        >>> path = go.group_owl_path(data.X, data.Y, alphas=5, eps=0.1)
        >>> path.predict(data.X[:3], alpha=path.alphas[2]).shape
        (3, 2)
        """
        Z = self._predictor(X, alpha, offset, unseen)
        if self.classes is not None:
            return self.classes[(Z[:, 0] > 0.0).astype(np.intp) if Z.shape[1] == 1 else Z.argmax(axis=1)]
        loss = resolve_loss(self.loss)
        predicted: Any = (Z > 0.0).astype(np.intp) if loss.target == "labels" else loss.predicted(Z)
        return predicted[:, 0] if predicted.shape[1] == 1 else predicted

    def predict_proba(self, X: Any, alpha: float, offset: Any = None, *, unseen: str = "error") -> FloatArray:
        """Probabilities of classes, or of labels, at any alpha between the smallest and the largest of the path.

        Parameters
        ----------
        X : array-like, data frame, sparse matrix or design of shape (n_samples, n_features)
            New samples, as for :meth:`predict`.
        alpha : float
            Within the range of ``alphas``.
        offset : array-like of shape (n_samples,) or (n_samples, n_targets), default=None
            Added to the linear predictors. Required if the path had an offset; ``offset=0`` means none.
        unseen : {"error", "zero"}, default="error"
            As for :meth:`predict`.

        Returns
        -------
        ndarray of shape (n_samples, n_classes) or (n_samples, n_labels)
            Of classes, in the order of ``classes``; rows sum to 1. Of labels, which do not exclude each other, the
            probability of each.
        """
        is_of_labels = resolve_loss(self.loss).target == "labels"
        if self.classes is None and not is_of_labels:
            raise ValueError(f"predict_proba is for classes, and this path has the loss {self.loss!r}. Use predict.")
        Z = self._predictor(X, alpha, offset, unseen)
        if self.classes is None:
            return np.asarray(expit(Z))
        both = Z if Z.shape[1] > 1 else np.hstack([np.zeros_like(Z), Z])
        return np.asarray(softmax(both, axis=1))

    def _predictor(self, X: Any, alpha: float, offset: Any, unseen: str) -> FloatArray:
        """``X B + b0``, with the offset, of shape (n_samples, n_targets)."""
        if self.has_offset and offset is None:
            raise ValueError("the path was fitted with an offset: give that of these samples, or offset=0 for none.")
        coef, intercept = self.coef_at(alpha), self.intercept_at(alpha)
        X = self._with_levels(X, unseen)
        design, names = as_design(X), feature_names(X)
        if design.n_features != self.n_features:
            levels = ", levels of categories among them" if self.feature_names is not None else ""
            what = f"X has {design.n_features} columns, but the path has {self.n_features} features{levels}"
            raise ValueError(f"{what}. Give the columns of its data.")
        if names is not None and self.feature_names is not None and list(names) != self.feature_names.tolist():
            raise ValueError("the columns of X differ from the features of the path in their names or their order.")
        Z = design.exported(design.matmul(coef.T.astype(np.float64), intercept.astype(np.float64)), len(coef))
        shift = check_offset(offset, self._loss_of_predictors, (design.n_samples, len(coef)))
        return np.asarray(Z if shift is None else Z + shift)

    def _with_levels(self, X: Any, unseen: str) -> Any:
        """The frame of the path's data as a matrix with a column for each level; what has these already as it is."""
        check_unseen(unseen)
        names = column_names(X)
        if self.categories is None or names is None or not set(self.categories) & set(names):
            return X
        coding = Categories.behind(self.feature_names.tolist(), self.categories)
        if list(names) != list(coding.names):
            raise ValueError(
                f"the columns of X have not the names, or not the order, of those of the path: {listed(coding.names)}."
            )
        return coding.matrix(X, unseen=unseen)

    @property
    def _loss_of_predictors(self) -> Loss:
        """The loss of so many predictors as there are: two classes have one."""
        return resolve_loss("logistic" if self._is_binary else self.loss)

    def _at(self, alpha: Any, value: Callable[[PathPoint], FloatArray]) -> FloatArray:
        """A value at one of the alphas, or on the line between its values on both sides."""
        wanted, alphas = finite_number("alpha", alpha), self.alphas
        if not alphas[-1] <= wanted <= alphas[0]:
            raise ValueError(
                f"alpha must lie in the range of the path, [{alphas[-1]:g}, {alphas[0]:g}], got {alpha!r}. "
                "Give group_owl_path other alphas to go further."
            )
        i = int(np.searchsorted(-alphas, -wanted))  # the first that is not larger
        if alphas[i] == wanted:
            return value(self.points[i]).copy()
        share = float((alphas[i - 1] - wanted) / (alphas[i - 1] - alphas[i]))
        between: FloatArray = (1.0 - share) * value(self.points[i - 1]) + share * value(self.points[i])
        return between

    @property
    def _is_binary(self) -> bool:
        return self.classes is not None and len(self.classes) == 2

    def _as_public(self, rows: FloatArray) -> FloatArray:
        """Rows with a column per target or class as (n_targets, n_rows); two classes become one difference."""
        return (rows[:, 1:] - rows[:, :1]).T if self._is_binary and rows.shape[1] == 2 else rows.T

    def _intercept(self, point: PathPoint) -> FloatArray:
        return self._as_public(point.intercept[None])[:, 0]

    # For people -------------------------------------------------------------------------------------

    def to_frame(self) -> Any:
        """A pandas data frame with one row for each alpha and each feature that is not zero there.

        Returns
        -------
        DataFrame
            Columns ``alpha_index``, ``alpha``, ``feature`` (its name, or index), ``group`` where there are feature
            groups, ``cluster``, ``norm`` (over all targets or classes) and the coefficients: ``coef`` for one target or
            two classes, else a column ``coef_<target or class>`` for each. Where the penalty has seen another scale
            than that of X, also ``scaled_norm``, ``scaled`` or ``scaled_<target or class>``: the same on its scale.
        """
        pandas = import_pandas("PathResult.to_frame()")
        counts = [len(point.support) for point in self.points]
        support = np.concatenate([point.support for point in self.points])
        rows = np.concatenate([point.rows for point in self.points])
        columns = {
            "alpha_index": np.repeat(np.arange(len(self)), counts),
            "alpha": np.repeat(self.alphas, counts),
            "feature": support if self.feature_names is None else self.feature_names[support],
            **({} if self.feature_groups is None else {"group": self.feature_groups[support]}),
            "cluster": np.concatenate([point.clusters for point in self.points]),
        }
        scaled = np.concatenate([point.scaled_rows for point in self.points]) if self.is_scaled else None
        named = self.classes if self.classes is not None else self.target_names
        columns["norm"] = row_norms(rows)
        if scaled is not None:
            columns["scaled_norm"] = row_norms(scaled)
        columns |= dict(zip(coefficient_columns(self.n_targets, named), self._as_public(rows), strict=True))
        if scaled is not None:
            names = coefficient_columns(self.n_targets, named, "scaled")
            columns |= dict(zip(names, self._as_public(scaled), strict=True))
        return pandas.DataFrame(columns)

    def n_units(self, point: PathPoint) -> int:
        """Penalized features in the model at a point of the path, or groups of them where there are groups."""
        penalized = point.support[point.clusters > 0]
        return len(penalized if self.feature_groups is None else np.unique(self.feature_groups[penalized]))

    @property
    def _columns(self) -> tuple[str, ...]:
        return _COLUMNS if self.feature_groups is None else _COLUMNS_WITH_GROUPS

    def _title(self) -> str:
        """What all of the path has in common."""
        goal = "1 target" if self.n_targets == 1 else f"{self.n_targets} targets"
        goal = goal if self.classes is None else f"{len(self.classes)} classes"
        first, last = self.points[0].alpha, self.points[-1].alpha
        groups = "" if self.feature_groups is None else f" in {counted(len(np.unique(self.feature_groups)), 'group')}"
        return (
            f"PathResult: {len(self)} alphas from {first:.4g} to {last:.4g}, {self.loss} loss, "
            f"{self.n_features} features{groups}, {goal}"
        )

    def _rows(self) -> list[list[str]]:
        """A table of some of the points, for people: their positions, and what :attr:`_columns` names."""
        rows = []
        for i in np.unique(np.linspace(0, len(self) - 1, min(len(self), _SHOWN)).round().astype(int)):
            point = self.points[i]
            share, clusters = f"{100 * point.deviance_ratio:.1f}%", str(point.clusters.max(initial=0))
            groups = [] if self.feature_groups is None else [str(self.n_units(point))]
            numbers = [f"{point.alpha:.4g}", str(point.n_selected), *groups, clusters, share, f"{point.gap:.1e}"]
            rows.append([str(i), *numbers, point.status])
        return rows

    def __repr__(self) -> str:
        lines = [self._title()]
        for row in [["", *self._columns], *self._rows()]:
            cells = map(str.rjust, row[:-1], (5, 12, *[10] * (len(row) - 3)))
            lines.append(f"{''.join(cells)}  {row[-1]}")
        return "\n".join([*lines, REASONS[self.stopped_because]])

    def _repr_html_(self) -> str:
        """For notebooks."""
        table = data_table(["", *self._columns], self._rows(), n_words=0)
        return titled(self._title(), table, paragraph(f"{REASONS[self.stopped_because]}."))
