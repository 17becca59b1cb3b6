"""Pictures of knockoffs: the statistics of features beside the threshold."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from .._checks import positive_integer
from .._typing import BoolArray, FloatArray, IndexArray
from . import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_REMEDY = "Use KnockoffSelector."
_INCHES_PER_ROW = 0.22
# Selected features, others in favor of which statistics are, and those whose knockoffs they favor.
_KINDS = {"selected": style.COLORS[2], "not selected": style.FAINT, "in favor of the knockoff": style.COLORS[1]}
_MIRRORED: dict[str, Any] = style.CHOSEN | {"linewidth": 0.9, "linestyle": ":"}


@dataclass(eq=False)
class KnockoffDisplay(style.Display):
    """Knockoff statistics of the features, with the selection threshold.

    Bars to the right are in favor of features, bars to the left in favor of knockoffs: these tell how many false
    features lie beyond the threshold, whose mirror image is dotted. With several draws bars are mean e-values.

    Parameters
    ----------
    scores : ndarray of shape (n_shown,)
        Statistics W, or means of e-values, that are not zero, from the largest size down.
    features : ndarray of int of shape (n_shown,)
        Indices of the features.
    feature_names : list of str
        Their names; x0, x1, ... where the data had none.
    selected : ndarray of bool of shape (n_shown,)
        Which of them are selected.
    threshold : float
        Of the scores; infinity where nothing is selected.
    n_judged : int
        Features that were judged, those of statistic zero among them.
    score_name : str
        What scores are.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes with the picture.
    figure_ : matplotlib Figure
        Figure with the axes.
    bars_ : matplotlib BarContainer or None
        One bar for each feature that is shown; None where there is none.

    Examples
    --------
    >>> import groupowl as go
    >>> from groupowl.plotting import KnockoffDisplay
    >>> data = go.datasets.make_correlated_groups(200, 60, 3, n_informative=12, random_state=0)
    >>> selector = go.inference.KnockoffSelector(0.3, random_state=0).fit(data.X, data.Y)
    >>> display = KnockoffDisplay.from_estimator(selector)
    >>> len(display.bars_) == min(len(display.features), 30)
    True
    """

    scores: FloatArray
    features: IndexArray
    feature_names: list[str]
    selected: BoolArray
    threshold: float
    n_judged: int
    score_name: str = "W"
    bars_: Any = field(init=False, repr=False)

    @classmethod
    def from_estimator(
        cls, selector: Any, *, feature_names: Any = None, ax: Axes | None = None, **settings: Any
    ) -> Self:
        """Draw what a fitted selector has found.

        Parameters
        ----------
        selector : fitted KnockoffSelector
            What to draw.
        feature_names : list of str, default=None
            Names of all features; those seen in ``fit`` by default.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.
        **settings
            Further arguments of :meth:`plot`.

        Returns
        -------
        KnockoffDisplay
        """
        statistics = style.fitted_attribute(selector, "statistics_", _REMEDY)
        scores = np.nan_to_num(selector.scores_)
        W = np.abs(np.nan_to_num(statistics.mean(axis=0)))
        order = np.lexsort((-W, -np.abs(scores)))  # many e-values are equal
        features = order[: np.count_nonzero(scores)]
        names = getattr(selector, "feature_names_in_", None) if feature_names is None else feature_names
        return cls(
            scores[features],
            features,
            style.names_of(features, names, len(scores)),
            selector.support_[features],
            float(selector.threshold_),
            int(np.count_nonzero(~np.isnan(selector.scores_))),
            "statistic W" if len(statistics) == 1 else f"mean e-value of {len(statistics)} draws",
        ).plot(ax=ax, **settings)

    def plot(self, ax: Axes | None = None, *, max_features: int = 30) -> Self:
        """Draw the bars.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.
        max_features : int, default=30
            Most bars, the largest; the title counts the others.

        Returns
        -------
        KnockoffDisplay
            This display, with ``ax_``, ``figure_`` and ``bars_``.
        """
        shown = min(positive_integer("max_features", max_features), len(self.features))
        ax = self._begin(ax, (6.4, 1.6 + _INCHES_PER_ROW * max(shown, 4)))
        self.bars_ = None
        ax.set(title=self._title(shown), xlabel=self.score_name, ylim=(max(shown, 1) - 0.5, -0.5))
        marks: dict[str, Any] = {}
        if shown:
            marks = self._draw_bars(ax, shown)
        else:
            ax.set_yticks([])
            style.say(ax, "No feature, and no knockoff, is selected by the fit.")
        ax.axvline(0.0, color="0.3", linewidth=0.8)
        if np.isfinite(self.threshold):
            marks[f"threshold = {self.threshold:.3g}"] = ax.axvline(self.threshold, **style.CHOSEN)
            if (self.scores < 0.0).any():
                ax.axvline(-self.threshold, **_MIRRORED)
        if marks:
            style.name_in_legend(ax, marks, loc="lower right", fontsize=style.LARGEST_FONT, borderaxespad=0.3)
        return self

    def _draw_bars(self, ax: Axes, shown: int) -> dict[str, Any]:
        """Bars of the largest scores, and one of each kind for the legend."""
        scores = self.scores[:shown]
        kinds = []
        for score, is_selected in zip(scores.tolist(), self.selected.tolist(), strict=False):
            kind = "selected" if is_selected else "not selected"
            kinds.append(kind if score > 0.0 else "in favor of the knockoff")
        self.bars_ = ax.barh(range(shown), scores, color=[_KINDS[kind] for kind in kinds])
        style.name_ticks(ax, 0, range(shown), self.feature_names[:shown], fontsize=style.LARGEST_FONT)
        return {kind: self.bars_.patches[kinds.index(kind)] for kind in _KINDS if kind in kinds}

    def _title(self, shown: int) -> str:
        rest = f", {shown} largest of {len(self.features)} not zero" if shown < len(self.features) else ""
        return f"Knockoffs: {self.n_judged} features{rest}"
