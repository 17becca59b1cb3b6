"""A whole path: what the solutions are, how they came about, and what lies between them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, overload

import numpy as np

from .._checks import finite_number, position_in
from .._kernels import unit_norms
from .._typing import FloatArray, IndexArray
from ..inputs import coefficient_columns, import_pandas
from ..model import Model
from .continuation import PathFit, PathPoint

# Rows of the table that a path is printed as.
_SHOWN = 8

REASONS = {
    "end": "all alphas solved",
    "deviance": "ended early: the deviance is explained",
    "max_features": "ended early: the next alpha selects more than max_features",
    "callback": "ended early by the callback",
}


@dataclass(frozen=True, eq=False, repr=False)
class PathResult:
    """Solutions along falling alphas, of ``(1/W) sum_i w_i f_i(x_i^T B + b0) + alpha sum_j weights_j ||B_[j],:||_2``.

    Only supports and their rows are stored; ``coefs`` and ``clusters`` are dense arrays that are made on access.
    ``path[i]`` is one :class:`~groupowl.PathPoint`, ``path[i:j]`` a shorter path, ``len(path)`` the number of
    alphas.

    **Targets and classes.** Arrays have a row for each target of a regression and for each of three or more classes.
    Two classes have one row, as ``coef_`` of the classifier: the second class less the first. The points keep a
    column for every class.

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
        Loss of the model without penalised features; tolerances are relative to it.
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

    @classmethod
    def from_fit(
        cls, fit: PathFit, model: Model, *, feature_names: Any = None, classes: Any = None, target_names: Any = None
    ) -> PathResult:
        """The path that a fit has found for a model."""
        problem = model.problem
        return cls(
            points=tuple(fit.points),
            weights=model.weights,
            n_features=problem.n_rows,
            loss=problem.loss.name,
            fit_intercept=bool(problem.fit_intercept),
            alpha_max=model.alpha_max,
            null_loss=model.null_loss,
            stopped_because=fit.stopped_because,
            unpenalized=model.unpenalized,
            feature_names=_text_array(feature_names),
            classes=classes,
            target_names=_text_array(target_names),
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

    def _per_point(self, name: str) -> Any:
        return np.array([getattr(point, name) for point in self.points])

    @property
    def alphas(self) -> FloatArray:
        """Alphas that were solved, falling, of shape (n_alphas,)."""
        return self._per_point("alpha")

    @property
    def dual_gaps(self) -> FloatArray:
        """Proved bounds on objective minus minimum."""
        return self._per_point("gap")

    @property
    def n_iters(self) -> IndexArray:
        """Proximal steps taken."""
        return self._per_point("n_iter")

    @property
    def n_passes(self) -> FloatArray:
        """Products with X, in units of one product with all columns."""
        return self._per_point("n_passes")

    @property
    def n_selected(self) -> IndexArray:
        """Penalised features that are not zero."""
        return self._per_point("n_selected")

    @property
    def losses(self) -> FloatArray:
        """Values of the loss, without penalty."""
        return self._per_point("loss")

    @property
    def deviance_ratio(self) -> FloatArray:
        """Shares of the null model's loss that are explained."""
        return self._per_point("deviance_ratio")

    @property
    def seconds(self) -> FloatArray:
        """Wall times of the solves."""
        return self._per_point("seconds")

    @property
    def statuses(self) -> Any:
        """Why each solve stopped: "converged", or what came before that."""
        return self._per_point("status")

    # Coefficients -----------------------------------------------------------------------------------

    @property
    def n_targets(self) -> int:
        """Rows of ``coefs``: targets, classes from three on, 1 for two classes."""
        return 1 if self._is_binary else len(self.points[0].intercept)

    @property
    def coefs(self) -> FloatArray:
        """Coefficients on the scale of X, of shape (n_targets, n_features, n_alphas)."""
        first = self._as_public(self.points[0].rows)
        coefs = np.zeros((self.n_targets, self.n_features, len(self)), dtype=first.dtype)
        for i, point in enumerate(self.points):
            coefs[:, point.support, i] = self._as_public(point.rows)
        return coefs

    @property
    def intercepts(self) -> FloatArray:
        """Intercepts, of shape (n_targets, n_alphas); zeros when none was fitted."""
        return np.stack([self._intercept(point) for point in self.points], axis=1)

    @property
    def clusters(self) -> IndexArray:
        """Cluster of each feature, of shape (n_features, n_alphas).

        Rows of equal norm, in the scale that is penalised, share a number, from 1 by falling norm; 0 for features that
        are zero or unpenalised.
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
            The solution itself where ``alpha`` is one of ``alphas``; in between the two neighbours are interpolated
            linearly, which is near the solution there and certified by nothing.
        """
        parts = [(share, self._as_public(point.coef(self.n_features))) for share, point in self._neighbours(alpha)]
        return _mix(parts)

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
        return _mix([(share, self._intercept(point)) for share, point in self._neighbours(alpha)])

    def _neighbours(self, alpha: Any) -> list[tuple[float, PathPoint]]:
        """The point at ``alpha``, or those on both sides with their shares."""
        wanted, alphas = finite_number("alpha", alpha), self.alphas
        if not alphas[-1] <= wanted <= alphas[0]:
            raise ValueError(
                f"alpha must lie in the range of the path, [{alphas[-1]:g}, {alphas[0]:g}], got {alpha!r}. "
                "Give group_owl_path other alphas to go further."
            )
        i = int(np.searchsorted(-alphas, -wanted))  # the first that is not larger
        if alphas[i] == wanted:
            return [(1.0, self.points[i])]
        share = float((alphas[i - 1] - wanted) / (alphas[i - 1] - alphas[i]))
        return [(1.0 - share, self.points[i - 1]), (share, self.points[i])]

    @property
    def _is_binary(self) -> bool:
        return self.classes is not None and len(self.classes) == 2

    def _as_public(self, rows: FloatArray) -> FloatArray:
        """Rows with a column per target or class as (n_targets, n_rows); two classes become one difference."""
        return (rows[:, 1:] - rows[:, :1]).T if self._is_binary else rows.T

    def _intercept(self, point: PathPoint) -> FloatArray:
        return self._as_public(point.intercept[None])[:, 0]

    # For people -------------------------------------------------------------------------------------

    def to_frame(self) -> Any:
        """A pandas data frame with one row for each alpha and each feature that is not zero there.

        Returns
        -------
        DataFrame
            Columns ``alpha_index``, ``alpha``, ``feature`` (its name, or index), ``cluster``, ``norm`` (over all
            targets or classes) and the coefficients: ``coef`` for one target or two classes, else a column
            ``coef_<target or class>`` for each.
        """
        pandas = import_pandas("PathResult.to_frame()")
        counts = [len(point.support) for point in self.points]
        support = np.concatenate([point.support for point in self.points])
        rows = np.concatenate([point.rows for point in self.points])
        columns = {
            "alpha_index": np.repeat(np.arange(len(self)), counts),
            "alpha": np.repeat(self.alphas, counts),
            "feature": support if self.feature_names is None else self.feature_names[support],
            "cluster": np.concatenate([point.clusters for point in self.points]),
            "norm": unit_norms(rows),
        }
        named = self.classes if self.classes is not None else self.target_names
        names = coefficient_columns(self.n_targets, named)
        return pandas.DataFrame(columns | dict(zip(names, self._as_public(rows), strict=True)))

    def __repr__(self) -> str:
        alphas, n = self.alphas, len(self)
        goal = "1 target" if self.n_targets == 1 else f"{self.n_targets} targets"
        goal = goal if self.classes is None else f"{len(self.classes)} classes"
        lines = [
            f"PathResult: {n} alphas from {alphas[0]:.4g} to {alphas[-1]:.4g}, {self.loss} loss, "
            f"{self.n_features} features, {goal}",
            f"{'':>5}{'alpha':>12}{'selected':>10}{'clusters':>10}{'deviance':>10}{'gap':>10}  status",
        ]
        for i in np.unique(np.linspace(0, n - 1, min(n, _SHOWN)).round().astype(int)):
            point = self.points[i]
            lines.append(
                f"{i:>5}{point.alpha:>12.4g}{point.n_selected:>10}{point.clusters.max(initial=0):>10}"
                f"{100 * point.deviance_ratio:>9.1f}%{point.gap:>10.1e}  {point.status}"
            )
        return "\n".join([*lines, REASONS[self.stopped_because]])


def _mix(parts: list[tuple[float, FloatArray]]) -> FloatArray:
    """Sum of arrays by their shares; a single one as it is."""
    if len(parts) == 1:
        return parts[0][1].copy()
    (share, one), (other_share, other) = parts
    mixed: FloatArray = share * one + other_share * other
    return mixed


def _text_array(names: Any) -> Any:
    return None if names is None else np.asarray(names, dtype=str)
