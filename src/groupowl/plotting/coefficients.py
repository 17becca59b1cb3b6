"""Coefficients of the selected features as colours."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from .._checks import positive_integer
from .._typing import FloatArray, IndexArray
from .style import axes_to_draw_on, font_for, lay_out, most_lines, name_columns, name_rows, say, size_in_points
from .support import Selection, selection_of_estimator, selection_of_result

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

_COLOURS = "RdBu_r"  # red above zero, blue below: told apart with every kind of colour vision
_INCHES_PER_ROW, _INCHES_AROUND = 0.2, 1.8
_INCHES_PER_TASK, _INCHES_BESIDE, _NARROWEST, _WIDEST = 0.3, 3.4, 4.8, 12.0


@dataclass(eq=False)
class CoefficientHeatmapDisplay:
    """Coefficients of the selected features, one column per task or class; white is zero, red positive, blue negative.

    Parameters
    ----------
    features : ndarray of int of shape (n_selected,)
        Indices of the selected features: unpenalised ones, then by cluster, then by falling norm.
    feature_names : list of str
        Their names; x0, x1, ... where the data had none.
    task_names : list of str
        Names of tasks or classes.
    coefficients : ndarray of shape (n_selected, n_targets)
        Their coefficients.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes with the picture.
    figure_ : matplotlib Figure
        Figure with the axes.
    image_ : matplotlib AxesImage or None
        The picture, None when nothing is selected.
    colorbar_ : matplotlib Colorbar or None
        Scale of the colours.

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
    ax_: Axes = field(init=False, repr=False)
    figure_: Figure | SubFigure = field(init=False, repr=False)
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
    ) -> CoefficientHeatmapDisplay:
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
        return cls._of(selection_of_estimator(estimator, feature_names, task_names)).plot(ax=ax, **settings)

    @classmethod
    def from_result(
        cls,
        result: Any,
        *,
        feature_names: Any = None,
        task_names: Any = None,
        ax: Axes | None = None,
        **settings: Any,
    ) -> CoefficientHeatmapDisplay:
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
        return cls._of(selection_of_result(result, feature_names, task_names)).plot(ax=ax, **settings)

    @classmethod
    def _of(cls, selection: Selection) -> CoefficientHeatmapDisplay:
        return cls(selection.features, selection.names, selection.tasks, selection.rows)

    def plot(self, ax: Axes | None = None, *, max_features: int = 30) -> CoefficientHeatmapDisplay:
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
        self.ax_ = ax = axes_to_draw_on(ax, figsize=(width, _INCHES_AROUND + _INCHES_PER_ROW * max(shown, 5)))
        self.figure_ = ax.figure
        self.image_ = self.colorbar_ = None
        ax.set_title("Coefficients")
        if not shown:
            ax.set(xticks=[], yticks=[])
            say(ax, "No feature is selected.")
            return self
        largest = float(np.abs(self.coefficients).max())
        lay_out(ax)
        shown = min(shown, most_lines(size_in_points(ax)[1]))
        self.image_ = ax.imshow(
            self.coefficients[:shown],
            aspect="auto",
            interpolation="nearest",
            cmap=_COLOURS,
            vmin=-largest,
            vmax=largest,
        )
        self.colorbar_ = ax.figure.colorbar(self.image_, ax=ax, label="coefficient")
        if shown < len(self.features):
            ax.set_title(f"Coefficients: {shown} of {len(self.features)} features")
        lay_out(ax)
        self._name_tasks(ax)
        name_rows(ax, range(shown), self.feature_names[:shown], font_for(size_in_points(ax)[1] / shown))
        return self

    def _name_tasks(self, ax: Axes) -> None:
        """Names below the columns; of very many every second, third, ... only."""
        width = size_in_points(ax)[0]
        every = -(-len(self.task_names) // most_lines(width))
        places = range(0, len(self.task_names), every)
        name_columns(ax, places, self.task_names[::every], font_for(width / len(places)))
