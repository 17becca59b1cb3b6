"""Pictures of stability selection: how often features are returned, along the paths and at their end."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from .._checks import lookup, positive_integer
from .._typing import BoolArray, FloatArray, IndexArray
from ..norm.kernels import falling_order
from . import style
from .alphas import _alpha_axis

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_REMEDY = "Use StabilitySelector."
_KINDS = {"paths": "_plot_paths", "frequencies": "_plot_scores"}
_LEGEND: dict[str, Any] = {"fontsize": style.LARGEST_FONT, "borderaxespad": 0.3}
_INCHES_PER_ROW = 0.22
# What lies between a frequency and the one with undecided entries counted.
_MOST_NAMES = 12  # in the legend, each with a color of its own
_UNNAMED = "0.45"
_UNDECIDED: dict[str, Any] = {"color": style.COLORS[1], "alpha": 0.45, "linewidth": 0}


@dataclass(eq=False)
class StabilityDisplay(style.Display):
    """Selection frequencies of features over random halves of the samples, with the threshold.

    ``kind="paths"`` shows the share of the halves that have selected a feature at an alpha or a larger one: selected
    features in color, others gray. ``kind="frequencies"`` shows the frequencies that decide the selection, as bars.
    Orange is what would be added if all undecided entries were selected.

    Parameters
    ----------
    alphas : ndarray of shape (n_alphas,)
        Falling.
    frequencies, upper_frequencies : ndarray of shape (n_shown, n_alphas)
        Without and with undecided entries, of the features that some half returns.
    scores, upper_scores : ndarray of shape (n_shown,)
        What features are judged by.
    features : ndarray of int of shape (n_shown,)
        Their indices.
    feature_names : list of str
        Their names; x0, x1, ... where the data had none.
    selected : ndarray of bool of shape (n_shown,)
        Which of them are selected.
    threshold : float
        Of the scores.
    is_integrated : bool
        Whether scores are integrals, and no threshold belongs to the frequencies.
    are_fractions : bool
        Whether alphas are fractions of the smallest one that selects nothing from a half.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes with the picture.
    figure_ : matplotlib Figure
        Figure with the axes.
    lines_ : list of matplotlib Line2D
        One line per feature with ``kind="paths"``.
    bars_ : matplotlib BarContainer
        With ``kind="frequencies"``.

    Examples
    --------
    >>> import groupowl as go
    >>> from groupowl.plotting import StabilityDisplay
    >>> data = go.datasets.make_correlated_groups(100, 60, 3, n_informative=4, random_state=0)
    >>> selector = go.inference.StabilitySelector(n_pairs=10, random_state=0).fit(data.X, data.Y)
    >>> display = StabilityDisplay.from_estimator(selector)
    >>> len(display.lines_) == len(display.features)
    True
    """

    alphas: FloatArray
    frequencies: FloatArray
    upper_frequencies: FloatArray
    scores: FloatArray
    upper_scores: FloatArray
    features: IndexArray
    feature_names: list[str]
    selected: BoolArray
    threshold: float
    is_integrated: bool = False
    are_fractions: bool = True
    lines_: list[Any] = field(init=False, repr=False)
    bars_: Any = field(init=False, repr=False)

    @classmethod
    def from_estimator(cls, selector: Any, *, ax: Axes | None = None, **settings: Any) -> Self:
        """Draw what a fitted selector has found.

        Parameters
        ----------
        selector : fitted StabilitySelector
            What to draw.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.
        **settings
            Further arguments of :meth:`plot`.

        Returns
        -------
        StabilityDisplay
        """
        return cls.undrawn(selector).plot(ax=ax, **settings)

    @classmethod
    def undrawn(cls, selector: Any) -> Self:
        """The numbers of a fitted selector, to be drawn by :meth:`plot` or by other means.

        Parameters
        ----------
        selector : fitted StabilitySelector
            What to draw.

        Returns
        -------
        StabilityDisplay
        """
        upper = style.fitted_attribute(selector, "upper_frequencies_", _REMEDY)
        features = np.flatnonzero((upper[:, -1] > 0.0) & ~np.isnan(selector.scores_))
        names = getattr(selector, "feature_names_in_", None)
        return cls(
            selector.alphas_,
            selector.frequencies_[features],
            upper[features],
            selector.scores_[features],
            selector.upper_scores_[features],
            features,
            style.names_of(features, names, len(upper)),
            selector.support_[features],
            float(selector.threshold_),
            selector.method == "integrated",
            np.ndim(selector.alphas) == 0,
        )

    def plot(self, ax: Axes | None = None, *, kind: str = "paths", max_features: int = 30) -> Self:
        """Draw paths, or bars.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.
        kind : {"paths", "frequencies"}, default="paths"
            What to draw.
        max_features : int, default=30
            Most bars, or names of lines.

        Returns
        -------
        StabilityDisplay
            This display, with ``ax_``, ``figure_`` and ``lines_`` or ``bars_``.
        """
        draw = getattr(self, lookup("kind", kind, _KINDS))
        draw(ax, positive_integer("max_features", max_features))
        return self

    def _plot_paths(self, ax: Axes | None, max_features: int) -> None:
        ax = self._begin(ax)
        _alpha_axis(ax, self.alphas, None)
        label = "alpha, as a share of the smallest that selects nothing" if self.are_fractions else "alpha"
        ax.set(xlabel=label, ylabel="share of the halves", ylim=(0.0, 1.05), title="Stability paths")
        marker = "o" if len(self.alphas) == 1 else None
        marks: dict[str, Any] = {}
        self.lines_ = []
        order = falling_order(self.scores)
        named = [k for k in order.tolist() if self.selected[k]][:max_features]
        colors = dict(zip(named[:_MOST_NAMES], style.line_colors(_MOST_NAMES), strict=False))
        for k in range(len(self.features)):
            look: dict[str, Any] = {"color": style.FAINT, "linewidth": 0.8}
            if self.selected[k]:
                look = {"color": colors.get(k, _UNNAMED), "linewidth": 1.6, "zorder": 2.5}
            line = ax.plot(self.alphas, self.frequencies[k], marker=marker, label=self.feature_names[k], **look)[0]
            self.lines_.append(line)
            if not np.array_equal(self.frequencies[k], self.upper_frequencies[k]):
                between = self.frequencies[k], self.upper_frequencies[k]
                marks["undecided"] = ax.fill_between(self.alphas, *between, **_UNDECIDED)
        shown = style.shortened_names([self.feature_names[k] for k in named])
        named_lines = {name: self.lines_[k] for k, name in zip(named[:_MOST_NAMES], shown, strict=False)}
        if len(named) > len(named_lines):
            named_lines[f"and {int(self.selected.sum()) - len(named_lines)} more"] = self.lines_[named[-1]]
        if not self.selected.all():
            named_lines["not selected"] = self.lines_[int(np.argmin(self.selected))]
        if not self.is_integrated:
            marks[f"threshold = {self.threshold:.3g}"] = ax.axhline(self.threshold, **style.CHOSEN)
        if not len(self.features):
            style.say(ax, "No half returns any feature.")
        if named_lines or marks:
            style.name_in_legend(ax, named_lines | marks, loc="upper left", bbox_to_anchor=(1.0, 1.0), **_LEGEND)

    def _plot_scores(self, ax: Axes | None, max_features: int) -> None:
        order = np.lexsort((-self.upper_scores, -self.scores))[:max_features]
        ax = self._begin(ax, (6.4, 1.4 + _INCHES_PER_ROW * max(len(order), 4)))
        places = np.arange(len(order))
        colors = [style.COLORS[2] if self.selected[k] else style.FAINT for k in order]
        self.bars_ = ax.barh(places, self.scores[order], color=colors)
        marks: dict[str, Any] = {}
        for label, color, is_shown in (
            ("selected", style.COLORS[2], self.selected[order].any()),
            ("not selected", style.FAINT, not self.selected[order].all()),
        ):
            if is_shown:
                marks[label] = self.bars_.patches[[*colors].index(color)]
        open_part = self.upper_scores[order] - self.scores[order]
        if (open_part > 0.0).any():
            marks["undecided"] = ax.barh(places, open_part, left=self.scores[order], **_UNDECIDED)
        marks[f"threshold = {self.threshold:.3g}"] = ax.axvline(self.threshold, **style.CHOSEN)
        what = "integral of max(2 frequency - 1, 0)³" if self.is_integrated else "share of the halves"
        ax.set(xlabel=what, ylim=(max(len(order), 1) - 0.5, -0.5), title="Stability selection")
        ax.set_xlim(left=0.0)
        if len(order):
            names = [self.feature_names[k] for k in order]
            style.name_ticks(ax, 0, places.tolist(), names, fontsize=style.LARGEST_FONT)
        else:
            ax.set_yticks([])
            style.say(ax, "No half returns any feature.")
        style.name_in_legend(ax, marks, loc="lower right", **_LEGEND)
