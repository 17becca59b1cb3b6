"""Which features share a cluster, and how large they are."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from .._checks import positive_integer
from .._typing import FloatArray, IndexArray
from .style import COLOURS, axes_to_draw_on, font_for, lay_out, most_lines, name_rows, say, size_in_points, widest
from .support import Selection, selection_of_estimator, selection_of_result

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

_COLOURS = (COLOURS[2], COLOURS[1])  # neighbouring clusters alternate
_UNPENALIZED: dict[str, Any] = {"facecolor": "0.85", "edgecolor": "0.4", "hatch": "///"}
_BETWEEN_CLUSTERS = 0.3  # in units of a bar's pitch
_INCHES_PER_BAR, _INCHES_AROUND = 0.2, 1.1
_OFFSET = 3.0  # points between a bar and its text


@dataclass(eq=False)
class ClusterDisplay:
    """Selected features by cluster, with the norms of their rows as bars.

    Rows of one cluster have equal norm in the scale in which the model was solved; on the scale of the input they
    differ where columns were standardised, and in relaxed fits. Features that are not penalised belong to no cluster;
    they come first, hatched.

    Parameters
    ----------
    features : ndarray of int of shape (n_selected,)
        Indices of the selected features: unpenalised ones, then by cluster, then by falling norm.
    feature_names : list of str
        Their names; x0, x1, ... where the data had none.
    norms : ndarray of shape (n_selected,)
        Norms of their rows.
    clusters : ndarray of int of shape (n_selected,)
        Their clusters, 1 has the largest norm; 0 for features that are not penalised.

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
    ax_: Axes = field(init=False, repr=False)
    figure_: Figure | SubFigure = field(init=False, repr=False)
    bars_: Any = field(init=False, repr=False)

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, feature_names: Any = None, ax: Axes | None = None, **settings: Any
    ) -> ClusterDisplay:
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
        return cls._of(selection_of_estimator(estimator, feature_names, None)).plot(ax=ax, **settings)

    @classmethod
    def from_result(
        cls, result: Any, *, feature_names: Any = None, ax: Axes | None = None, **settings: Any
    ) -> ClusterDisplay:
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
        return cls._of(selection_of_result(result, feature_names, None)).plot(ax=ax, **settings)

    @classmethod
    def _of(cls, selection: Selection) -> ClusterDisplay:
        return cls(selection.features, selection.names, selection.norms, selection.clusters)

    def plot(self, ax: Axes | None = None, *, max_features: int = 30) -> ClusterDisplay:
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
        height = _INCHES_AROUND + _INCHES_PER_BAR * max(self._positions(shown)[-1:].sum() + 1.0, 5.0)
        self.ax_ = ax = axes_to_draw_on(ax, figsize=(6.4, height))
        self.figure_ = ax.figure
        ax.set(title="Selected features by cluster", xlabel="norm of the coefficients")
        if not shown:
            self.bars_ = ax.barh([], [])
            ax.set(xlim=(0.0, 1.0), yticks=[])
            say(ax, "No feature is selected.")
            return self
        lay_out(ax)
        available = size_in_points(ax)[1]
        while shown > 1 and self._positions(shown)[-1] + 1.0 > most_lines(available):
            shown -= 1
        self._draw_bars(ax, shown, available)
        return self

    def _positions(self, shown: int) -> FloatArray:
        """Heights of the first bars from 0, a gap between clusters, and below them a line that counts the others."""
        starts = np.diff(self.clusters[:shown], prepend=self.clusters[:1]) != 0
        bars = np.arange(shown) + _BETWEEN_CLUSTERS * np.cumsum(starts)
        return bars if shown == len(self.features) else np.append(bars, bars[-1:].sum() + 1.0 + _BETWEEN_CLUSTERS)

    def _draw_bars(self, ax: Axes, shown: int, height: float) -> None:
        positions = self._positions(shown)
        fontsize = font_for(height / (positions[-1] + 1.0))
        self.bars_ = ax.barh(positions[:shown], self.norms[:shown])
        ax.set_ylim(positions[-1] + 0.5 + 0.2, -0.5 - 0.2)  # first bar on top
        ax.set_xlim(0.0, float(self.norms[:shown].max()))
        rest = len(self.features) - shown
        names = [*self.feature_names[:shown], *([f"{rest} more"] if rest else [])]
        for bar, cluster in zip(self.bars_, self.clusters[:shown], strict=True):
            bar.set(**(_UNPENALIZED if cluster == 0 else {"facecolor": _COLOURS[(cluster - 1) % 2]}))
        name_rows(ax, list(positions), names, fontsize)
        self._name_clusters(ax, positions, shown, fontsize)

    def _name_clusters(self, ax: Axes, positions: FloatArray, shown: int, fontsize: float) -> None:
        """A text at the end of the bars of each cluster, in room that is made for it."""
        texts = []
        for cluster in np.unique(self.clusters[:shown]):
            members = np.flatnonzero(self.clusters[:shown] == cluster)
            place = (float(self.norms[members].max()), float(positions[members].mean()))
            name = f"cluster {cluster}" if cluster else "not penalised"
            total = int(np.sum(self.clusters == cluster))
            name += f" ({total} features)" if total > len(members) else ""
            texts.append(_beside(ax, name, place, fontsize))
        if shown < len(self.features):
            hidden = len(np.unique(self.clusters[shown:]))
            texts.append(_beside(ax, f"in {hidden} cluster{'s' if hidden > 1 else ''}", (0.0, positions[-1]), fontsize))
        share = widest(ax, texts) + 3 * _OFFSET / size_in_points(ax)[0]
        ax.set_xlim(0.0, ax.get_xlim()[1] / max(1.0 - share, 0.3))


def _beside(ax: Axes, text: str, place: tuple[float, float], fontsize: float) -> Any:
    return ax.annotate(
        text, place, xytext=(_OFFSET, 0.0), textcoords="offset points", va="center", fontsize=fontsize, color="0.2"
    )
