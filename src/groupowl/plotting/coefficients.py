"""Pictures of the selected features: their norms by cluster, and their coefficients."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from .._checks import checked_names, positive_integer
from .._text import counted, listed
from .._typing import FloatArray, IndexArray
from ..estimators.fit_summary import clusters_of_groups, scale_is_deviation
from ..inputs import task_names as fitted_task_names
from ..norm.kernels import falling_order
from ..solvers import SolveResult
from ..solvers.solve_result import scaled_rows
from . import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_BAR_COLORS = (style.COLORS[2], style.COLORS[1])  # neighboring clusters alternate
_UNPENALIZED: dict[str, Any] = {"facecolor": "0.85", "edgecolor": "0.4", "hatch": "///"}
_BETWEEN_CLUSTERS = 0.3  # in units of a bar's pitch
_OFFSET = 3.0  # points between a bar and its text
_HEATMAP_COLORS = "RdBu_r"  # red above zero, blue below: told apart with every kind of color vision
_INCHES_PER_ROW = 0.2
_SHOWN_GROUPS = 3  # of a cluster, by name
_INCHES_PER_TASK, _INCHES_BESIDE, _NARROWEST, _WIDEST = 0.3, 3.4, 4.8, 12.0


@dataclass(frozen=True, eq=False)
class Selection:
    """The non-zero rows of coefficients: by cluster, the unpenalized ones (cluster 0) first, then by falling norm.

    Of feature groups that an estimator has selected all rows, next to each other.
    """

    features: IndexArray
    names: list[str]
    rows: FloatArray  # (n_selected, n_targets)
    clusters: IndexArray
    tasks: list[str]
    groups: list[str] | None = None
    scale: FloatArray | None = None  # (n_selected,)

    @property
    def scaled_rows(self) -> FloatArray:
        """The rows on the scale that the penalty sees."""
        return scaled_rows(self.rows, self.scale)

    def with_unpenalized_last(self) -> Selection:
        """The same with the unpenalized rows at the end."""
        order = np.argsort(self.clusters == 0, kind="stable")
        groups = None if self.groups is None else [self.groups[k] for k in order.tolist()]
        scale = None if self.scale is None else self.scale[order]
        names = [self.names[k] for k in order.tolist()]
        return Selection(self.features[order], names, self.rows[order], self.clusters[order], self.tasks, groups, scale)

    @property
    def norms(self) -> FloatArray:
        """Norms of the rows on the scale that the penalty sees."""
        return np.linalg.norm(self.scaled_rows, axis=1)


def selection_of_estimator(estimator: Any, feature_names: Any, task_names: Any) -> Selection:
    """What a fitted estimator selected."""
    style.fitted_attribute(estimator, "clusters_", "Use an estimator of groupowl.")
    rows, clusters = np.atleast_2d(estimator.coef_).T.astype(np.float64), clusters_of_groups(estimator)
    features = np.flatnonzero(rows.any(axis=1))
    groups = getattr(estimator, "feature_groups_", None)
    if groups is not None:  # whole groups are in the model, also with columns that are zero
        features = np.flatnonzero(np.isin(groups, groups[features]))
    names = style.default_names(feature_names, getattr(estimator, "coef_names_", None), groups, len(rows))
    tasks = fitted_task_names(vars(estimator))
    if task_names is None and tasks is not None:
        task_names = tasks[-rows.shape[1] :]  # two classes share a column, which is that of the second
    scale = estimator.solve_result_.scale
    scale = None if scale is None else scale[features]
    return _sorted_selection(len(rows), features, rows[features], clusters[features], names, task_names, groups, scale)


def selection_of_result(result: Any, feature_names: Any, task_names: Any, groups: Any = None) -> Selection:
    """What a solve or one point of a path selected."""
    if isinstance(result, SolveResult):
        features = result.support
        rows, clusters, count = result.B[features], result.clusters[features], len(result.B)
        scale = None if result.scale is None else result.scale[features]
    elif hasattr(result, "support") and hasattr(result, "rows"):
        features, rows, clusters = (np.asarray(value) for value in (result.support, result.rows, result.clusters))
        scale = getattr(result, "scale", None)
        count = int(features.max(initial=-1)) + 1 if feature_names is None else len(feature_names)
    else:
        wanted = "a SolveResult or a point of a path (path[i])"
        raise TypeError(f"result must be {wanted}, got {type(result).__name__}. Use from_estimator for estimators.")
    return _sorted_selection(count, features, rows, clusters, feature_names, task_names, groups, scale)


def _sorted_selection(
    n_features: int,
    features: IndexArray,
    rows: FloatArray,
    clusters: IndexArray,
    feature_names: Any,
    task_names: Any,
    groups: Any = None,
    scale: FloatArray | None = None,
) -> Selection:
    order = falling_order(np.linalg.norm(scaled_rows(rows, scale), axis=1))
    if groups is not None:  # features of a group follow each other, the group with the largest of them first
        chosen = groups[features]
        place = {group: k for k, group in reversed(list(enumerate(chosen[order].tolist())))}
        order = order[np.argsort([place[group] for group in chosen[order].tolist()], kind="stable")]
    order = order[np.argsort(clusters[order], kind="stable")]
    names = style.names_of(features[order], feature_names, n_features)
    if task_names is None:
        task_names = ["y"] if rows.shape[1] == 1 else [f"task {k}" for k in range(rows.shape[1])]
    tasks = checked_names("task_names", task_names, rows.shape[1])
    in_groups = None if groups is None else list(map(str, groups[features[order]]))
    in_order = None if scale is None else scale[order]
    named = [str(name) for name in tasks]
    return Selection(features[order], names, rows[order], clusters[order], named, in_groups, in_order)


@dataclass(eq=False)
class ClusterDisplay(style.Display):
    """Selected features by cluster, with the norms of their rows as bars.

    Norms are on the scale that the penalty sees, on which rows of one cluster have equal norm: per standard deviation
    where columns were standardized. In relaxed fits they differ. Features that are not penalized belong to no cluster;
    they come first, hatched.

    Parameters
    ----------
    features : ndarray of int of shape (n_selected,)
        Indices of the selected features: unpenalized ones, then by cluster, then by falling norm.
    feature_names : list of str
        Their names; x0, x1, ... where the data had none.
    norms : ndarray of shape (n_selected,)
        Norms of their rows, on the scale that the penalty sees.
    clusters : ndarray of int of shape (n_selected,)
        Their clusters, 1 has the largest norm; 0 for features that are not penalized.
    groups : list of str, default=None
        Names of their feature groups, which a cluster consists of; None where features are on their own.
    is_scaled : bool, default=False
        Whether norms are on another scale than that of X.
    is_per_deviation : bool, default=False
        Whether they are per standard deviation because columns were standardized, and nothing else scaled them.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes with the picture.
    figure_ : matplotlib Figure
        Figure with the axes.
    bars_ : matplotlib BarContainer
        Bars of the features that are shown.

    Examples
    --------
    >>> import groupowl as go
    >>> from groupowl.plotting import ClusterDisplay
    >>> data = go.datasets.make_correlated_groups(60, 40, 3, random_state=0)
    >>> lam = 0.5 * go.lam_max(data.X, data.Y, "oscar") * go.weights.oscar(40)
    >>> display = ClusterDisplay.from_result(go.solve(data.X, data.Y, lam))
    >>> len(display.bars_) == len(display.features)
    True
    """

    features: IndexArray
    feature_names: list[str]
    norms: FloatArray
    clusters: IndexArray
    groups: list[str] | None = None
    is_scaled: bool = False
    is_per_deviation: bool = False
    bars_: Any = field(init=False, repr=False)

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, feature_names: Any = None, ax: Axes | None = None, **settings: Any
    ) -> Self:
        """Draw what a fitted estimator selected.

        Parameters
        ----------
        estimator : fitted groupowl estimator
            Its ``coef_`` and ``clusters_`` are drawn.
        feature_names : list of str, default=None
            Names of all features; those seen in ``fit`` by default.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.
        **settings
            Further arguments of :meth:`plot`.

        Returns
        -------
        ClusterDisplay
        """
        display = cls._of(selection_of_estimator(estimator, feature_names, None))
        return replace(display, is_per_deviation=scale_is_deviation(estimator)).plot(ax=ax, **settings)

    @classmethod
    def from_result(cls, result: Any, *, feature_names: Any = None, ax: Axes | None = None, **settings: Any) -> Self:
        """Draw what a solve or one point of a path selected.

        Parameters
        ----------
        result : SolveResult or point of a PathResult
            What :func:`groupowl.solve` returns, or ``path[i]``.
        feature_names : list of str, default=None
            Names of all features.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.
        **settings
            Further arguments of :meth:`plot`.

        Returns
        -------
        ClusterDisplay
        """
        found = selection_of_result(result, feature_names, None)
        return cls._of(found).plot(ax=ax, **settings)

    @classmethod
    def _of(cls, found: Selection) -> Self:
        is_scaled = found.scale is not None
        return cls(found.features, found.names, found.norms, found.clusters, found.groups, is_scaled)

    def plot(self, ax: Axes | None = None, *, max_features: int = 30) -> Self:
        """Draw a bar per feature.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.
        max_features : int, default=30
            Largest number of bars; fewer where the axes are too small for them. The other features are counted.

        Returns
        -------
        ClusterDisplay
            This display, with ``ax_``, ``figure_`` and ``bars_``.
        """
        shown = min(positive_integer("max_features", max_features), len(self.features))
        height = 1.1 + _INCHES_PER_ROW * max(self._positions(shown)[-1:].sum() + 1.0, 5.0)
        ax = self._begin(ax, figsize=(6.4, height))
        ax.set(
            title="Selected features by cluster",
            xlabel=style.size_label("norm of the coefficients", self.is_scaled, self.is_per_deviation),
        )
        if not shown:
            self.bars_ = ax.barh([], [])
            ax.set(xlim=(0.0, 1.0), yticks=[])
            style.say(ax, "No feature is selected.")
            return self
        style.lay_out(ax)
        available = style.size_in_points(ax)[1]
        while shown > 1 and self._positions(shown)[-1] + 1.0 > style.most_lines(available):
            shown -= 1
        positions, norms, clusters = self._positions(shown), self.norms[:shown], self.clusters[:shown]
        fontsize = style.font_for(available / (positions[-1] + 1.0))
        self.bars_ = ax.barh(positions[:shown], norms)
        for bar, cluster in zip(self.bars_, clusters, strict=True):
            bar.set(**(_UNPENALIZED if cluster == 0 else {"facecolor": _BAR_COLORS[(cluster - 1) % 2]}))
        ax.set(xlim=(0.0, float(norms.max())), ylim=(positions[-1] + 0.7, -0.7))  # first bar on top
        names, rest = self.feature_names[:shown], len(self.features) - shown
        style.name_ticks(ax, 0, list(positions), [*names, *([f"{rest} more"] if rest else [])], fontsize=fontsize)
        texts = []  # at the end of the bars of each cluster, in room that is made for them
        for cluster in np.unique(clusters):
            members, total = np.flatnonzero(clusters == cluster), np.count_nonzero(self.clusters == cluster)
            name = f"cluster {cluster}" if cluster else "not penalized"
            name += f" ({total} features)" if total > len(members) else ""
            name += self._groups_of(cluster)
            texts.append((name, (float(norms[members].max()), float(positions[members].mean()))))
        if rest:
            hidden = counted(len(np.unique(self.clusters[shown:])), "cluster")
            texts.append((f"in {hidden}", (0.0, float(positions[-1]))))
        look: dict[str, Any] = {"fontsize": fontsize, "color": "0.2"}
        written = [style.text_beside(ax, text, place, _OFFSET, **look) for text, place in texts]
        share = style.widest(ax, written) + 3 * _OFFSET / style.size_in_points(ax)[0]
        ax.set_xlim(0.0, ax.get_xlim()[1] / max(1.0 - share, 0.3))
        return self

    def _groups_of(self, cluster: int) -> str:
        """The groups of a cluster, if any has more than one of its features."""
        if self.groups is None or not cluster:
            return ""
        inside = [self.groups[k] for k in np.flatnonzero(self.clusters == cluster)]
        names = list(dict.fromkeys(inside))
        return "" if len(names) == len(inside) else f": {listed(names, shown=_SHOWN_GROUPS, quoted=False)}"

    def _positions(self, shown: int) -> FloatArray:
        """Heights of the first bars from 0, a gap between clusters, and below them a line that counts the others."""
        starts = np.diff(self.clusters[:shown], prepend=self.clusters[:1]) != 0
        bars = np.arange(shown) + _BETWEEN_CLUSTERS * np.cumsum(starts)
        return bars if shown == len(self.features) else np.append(bars, bars[-1:].sum() + 1.0 + _BETWEEN_CLUSTERS)


@dataclass(eq=False)
class CoefficientHeatmapDisplay(style.Display):
    """Coefficients of the selected features, one column per task or class; white is zero, red positive, blue negative.

    They are on the scale that the penalty sees, so that features in different units can be compared: per standard
    deviation where columns were standardized.

    Parameters
    ----------
    features : ndarray of int of shape (n_selected,)
        Indices of the selected features: unpenalized ones, then by cluster, then by falling norm.
    feature_names : list of str
        Their names; x0, x1, ... where the data had none.
    task_names : list of str
        Names of tasks or classes.
    coefficients : ndarray of shape (n_selected, n_targets)
        Their coefficients, on the scale that the penalty sees.
    is_scaled : bool, default=False
        Whether that is another scale than that of X.
    is_per_deviation : bool, default=False
        Whether they are per standard deviation because columns were standardized, and nothing else scaled them.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes with the picture.
    figure_ : matplotlib Figure
        Figure with the axes.
    image_ : matplotlib AxesImage or None
        The picture, None when nothing is selected.
    colorbar_ : matplotlib Colorbar or None
        Scale of the colors.

    Examples
    --------
    >>> import groupowl as go
    >>> from groupowl.plotting import CoefficientHeatmapDisplay
    >>> data = go.datasets.make_correlated_groups(60, 40, 3, random_state=0)
    >>> lam = 0.5 * go.lam_max(data.X, data.Y, "oscar") * go.weights.oscar(40)
    >>> result = go.solve(data.X, data.Y, lam)
    >>> display = CoefficientHeatmapDisplay.from_result(result, task_names=["a", "b", "c"])
    >>> display.coefficients.shape == (len(display.features), 3)
    True
    """

    features: IndexArray
    feature_names: list[str]
    task_names: list[str]
    coefficients: FloatArray
    is_scaled: bool = False
    is_per_deviation: bool = False
    image_: Any = field(init=False, repr=False)
    colorbar_: Any = field(init=False, repr=False)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        feature_names: Any = None,
        task_names: Any = None,
        ax: Axes | None = None,
        **settings: Any,
    ) -> Self:
        """Draw the coefficients of a fitted estimator.

        Parameters
        ----------
        estimator : fitted groupowl estimator
            Its ``coef_`` is drawn; of two classes there is one column, for the second.
        feature_names : list of str, default=None
            Names of all features; those seen in ``fit`` by default.
        task_names : list of str, default=None
            Names of the columns; the classes of a classifier by default.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.
        **settings
            Further arguments of :meth:`plot`.

        Returns
        -------
        CoefficientHeatmapDisplay
        """
        display = cls._of(selection_of_estimator(estimator, feature_names, task_names))
        return replace(display, is_per_deviation=scale_is_deviation(estimator)).plot(ax=ax, **settings)

    @classmethod
    def from_result(
        cls, result: Any, *, feature_names: Any = None, task_names: Any = None, ax: Axes | None = None, **settings: Any
    ) -> Self:
        """Draw the coefficients of a solve or of one point of a path.

        Parameters
        ----------
        result : SolveResult or point of a PathResult
            What :func:`groupowl.solve` returns, or ``path[i]``.
        feature_names : list of str, default=None
            Names of all features.
        task_names : list of str, default=None
            Names of tasks or classes.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.
        **settings
            Further arguments of :meth:`plot`.

        Returns
        -------
        CoefficientHeatmapDisplay
        """
        found = selection_of_result(result, feature_names, task_names)
        return cls._of(found).plot(ax=ax, **settings)

    @classmethod
    def _of(cls, found: Selection) -> Self:
        return cls(found.features, found.names, found.tasks, found.scaled_rows, found.scale is not None)

    def plot(self, ax: Axes | None = None, *, max_features: int = 30) -> Self:
        """Draw the coefficients.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.
        max_features : int, default=30
            Largest number of rows; fewer where the axes are too small for them. The title counts the others.

        Returns
        -------
        CoefficientHeatmapDisplay
            This display, with ``ax_``, ``figure_``, ``image_`` and ``colorbar_``.
        """
        shown = min(positive_integer("max_features", max_features), len(self.features))
        width = float(np.clip(_INCHES_BESIDE + _INCHES_PER_TASK * len(self.task_names), _NARROWEST, _WIDEST))
        ax = self._begin(ax, figsize=(width, 1.8 + _INCHES_PER_ROW * max(shown, 5)))
        self.image_ = self.colorbar_ = None
        ax.set_title("Coefficients")
        if not shown:
            ax.set(xticks=[], yticks=[])
            style.say(ax, "No feature is selected.")
            return self
        largest = float(np.abs(self.coefficients).max())
        style.lay_out(ax)
        shown = min(shown, style.most_lines(style.size_in_points(ax)[1]))
        colors: dict[str, Any] = {"cmap": _HEATMAP_COLORS, "vmin": -largest, "vmax": largest}
        self.image_ = ax.imshow(self.coefficients[:shown], aspect="auto", interpolation="nearest", **colors)
        self.colorbar_ = ax.figure.colorbar(
            self.image_, ax=ax, label=style.size_label("coefficient", self.is_scaled, self.is_per_deviation)
        )
        if shown < len(self.features):
            ax.set_title(f"Coefficients: {shown} of {len(self.features)} features")
        style.lay_out(ax)
        width = style.size_in_points(ax)[0]
        every = -(-len(self.task_names) // style.most_lines(width))  # of very many tasks every second, third, ... only
        places, tasks = range(0, len(self.task_names), every), self.task_names[::every]
        fontsize = style.font_for(width / len(places))
        style.name_ticks(ax, 1, places, tasks, fontsize=fontsize)
        if style.touching(ax.get_xticklabels()):
            style.name_ticks(ax, 1, places, tasks, fontsize=fontsize, rotation=90)
        fontsize = style.font_for(style.size_in_points(ax)[1] / shown)
        style.name_ticks(ax, 0, range(shown), self.feature_names[:shown], fontsize=fontsize)
        return self
