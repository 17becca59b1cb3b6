"""How the rows of coefficients grow along a path."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import cycle
from typing import TYPE_CHECKING, Any

import numpy as np

from .._checks import finite_number, positive_integer
from .._kernels import cluster_starts, falling_order
from .._typing import BoolArray, FloatArray, IndexArray
from ..path import PathResult
from .style import (
    CHOSEN,
    COLOURS,
    FAINT,
    LARGEST_FONT,
    LINE_HEIGHT,
    LONGEST_NAME,
    SHORTEST_NAME,
    alpha_axis,
    axes_to_draw_on,
    lay_out,
    name_in_legend,
    number_alphas,
    say,
    shortened_names,
    size_in_points,
    widest,
)
from .support import checked_names, fitted_attribute, names_of, public_rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure
    from matplotlib.lines import Line2D
    from matplotlib.text import Text

_WIDEST_NAME = 0.4  # of the width of the axes
_OFFSET = 4.0  # points between a line and its name
_DASHES = (0, (5, 2))


@dataclass(eq=False)
class CoefficientPathDisplay:
    """Norms of the rows of coefficients along a path, against alpha.

    Large alphas are on the left. Names stand at the ends of the lines, the largest first, as far as they fit without
    touching; lines without a name are grey. Lines that end at the same height share a name and their number.
    Features that are not penalised are dashed.

    Parameters
    ----------
    alphas : ndarray of shape (n_alphas,)
        Strengths of the penalty, falling.
    norms : ndarray of shape (n_alphas, n_shown)
        Norms of the rows that are non-zero somewhere on the path, on the scale of the input; for two classes those of
        the second less the first, as in ``coef_``.
    features : ndarray of int of shape (n_shown,)
        Indices of these rows.
    feature_names : list of str
        Their names; x0, x1, ... where the data had none.
    unpenalized : ndarray of bool of shape (n_shown,)
        Which of them are not penalised.
    alpha : float or None
        Chosen alpha.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes with the picture.
    figure_ : matplotlib Figure
        Figure with the axes.
    lines_ : list of matplotlib Line2D
        One line per shown feature.
    labels_ : list of matplotlib Text
        Names at the ends of lines.

    Examples
    --------
    >>> import groupowl as go
    >>> from groupowl.plotting import CoefficientPathDisplay
    >>> data = go.datasets.make_correlated_groups(60, 40, 3, random_state=0)
    >>> path = go.group_owl_path(data.X, data.Y, alphas=10)
    >>> CoefficientPathDisplay.from_result(path).ax_.get_xscale()
    'log'
    """

    alphas: FloatArray
    norms: FloatArray
    features: IndexArray
    feature_names: list[str]
    unpenalized: BoolArray
    alpha: float | None = None
    ax_: Axes = field(init=False, repr=False)
    figure_: Figure | SubFigure = field(init=False, repr=False)
    lines_: list[Line2D] = field(init=False, repr=False)
    labels_: list[Text] = field(init=False, repr=False)

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Axes | None = None, **settings: Any) -> CoefficientPathDisplay:
        """Draw the path of a cross-validated estimator, with the alpha it chose.

        Parameters
        ----------
        estimator : fitted GroupOWLRegressorCV or GroupOWLClassifierCV
            Its ``path_`` is drawn.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.
        **settings
            Further arguments of :meth:`plot`.

        Returns
        -------
        CoefficientPathDisplay
        """
        remedy = "Use an estimator with cross-validation, or from_result with the path of group_owl_path."
        path = fitted_attribute(estimator, "path_", remedy)
        names = getattr(estimator, "feature_names_in_", None)
        return cls.from_result(path, alpha=estimator.alpha_, feature_names=names, ax=ax, **settings)

    @classmethod
    def from_result(
        cls,
        path: Any,
        *,
        alpha: float | None = None,
        feature_names: Any = None,
        ax: Axes | None = None,
        **settings: Any,
    ) -> CoefficientPathDisplay:
        """Draw a path.

        Parameters
        ----------
        path : PathResult
            What :func:`groupowl.group_owl_path` returns.
        alpha : float, default=None
            An alpha to mark.
        feature_names : list of str, default=None
            Names of all features; those of the path by default.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.
        **settings
            Further arguments of :meth:`plot`.

        Returns
        -------
        CoefficientPathDisplay
        """
        return cls.undrawn(path, alpha=alpha, feature_names=feature_names).plot(ax=ax, **settings)

    @classmethod
    def undrawn(cls, path: Any, *, alpha: float | None = None, feature_names: Any = None) -> CoefficientPathDisplay:
        """The numbers of a path, to be drawn by :meth:`plot` or by other means.

        Parameters
        ----------
        path : PathResult
            What :func:`groupowl.group_owl_path` returns.
        alpha : float, default=None
            An alpha to mark.
        feature_names : list of str, default=None
            Names of all features; those of the path by default.

        Returns
        -------
        CoefficientPathDisplay
        """
        if not isinstance(path, PathResult):
            raise TypeError(f"path must be a PathResult, got {path!r} of type {type(path).__name__}.")
        chosen = None if alpha is None else finite_number("alpha", alpha, above=0.0)
        names = feature_names if feature_names is not None else path.feature_names
        features = np.unique(np.concatenate([np.asarray(point.support, dtype=np.intp) for point in path]))
        norms = np.zeros((len(path), len(features)))
        for i, point in enumerate(path):
            norms[i, np.searchsorted(features, point.support)] = np.linalg.norm(public_rows(path, point), axis=1)
        unpenalized = np.isin(features, path.unpenalized)
        shown = names_of(features, checked_names("feature_names", names, path.n_features))
        return cls(np.asarray(path.alphas), norms, features, shown, unpenalized, chosen)

    def plot(self, ax: Axes | None = None, *, max_labels: int = 30) -> CoefficientPathDisplay:
        """Draw the lines and name as many as fit.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.
        max_labels : int, default=30
            Largest number of names.

        Returns
        -------
        CoefficientPathDisplay
            This display, with ``ax_``, ``figure_``, ``lines_`` and ``labels_``.
        """
        positive_integer("max_labels", max_labels, minimum=0)
        self.ax_ = ax = axes_to_draw_on(ax)
        self.figure_ = ax.figure
        self._draw_lines(ax)
        chosen = [] if self.alpha is None else [self.alpha]
        marks = [ax.axvline(alpha, label=f"chosen alpha = {alpha:.3g}", **CHOSEN) for alpha in chosen]
        alpha_axis(ax, [*self.alphas, *chosen])
        ax.set(title="Coefficient path", ylabel="norm of the coefficients")
        ax.set_ylim(0.0, 1.05 * float(self.norms.max(initial=0.0)) or 1.0)
        if not self.features.size:
            say(ax, "No feature is selected at any alpha.")
        self._draw_legend(ax, marks)
        self.labels_ = self._name_lines(ax, max_labels)
        return self

    def _draw_lines(self, ax: Axes) -> None:
        marker = "o" if len(self.alphas) == 1 else None
        self.lines_ = [
            ax.plot(self.alphas, self.norms[:, k], color=FAINT, linewidth=0.8, marker=marker, label=name)[0]
            for k, name in enumerate(self.feature_names)
        ]
        for k in np.flatnonzero(self.unpenalized):
            self.lines_[k].set_linestyle(_DASHES)

    def _draw_legend(self, ax: Axes, marks: list[Any]) -> None:
        """Explanations above the lines, in room that is made for them."""
        from matplotlib.lines import Line2D

        if self.unpenalized.any():
            marks = [*marks, Line2D([], [], color="0.3", linestyle=_DASHES, label="not penalised")]
        if not marks:
            return
        settings: dict[str, Any] = {"loc": "upper left", "fontsize": LARGEST_FONT, "borderaxespad": 0.3}
        for columns in dict.fromkeys([len(marks), 1]):  # side by side, or below each other where that is too wide
            legend = name_in_legend(ax, marks, ncols=columns, **settings)
            lay_out(ax)
            if widest(ax, [legend]) < 1.0:
                break
        share = (ax.bbox.y1 - legend.get_window_extent().y0) / ax.bbox.height
        ax.set_ylim(top=ax.get_ylim()[1] / max(1.0 - share, 0.5))

    def _name_lines(self, ax: Axes, max_labels: int) -> list[Text]:
        """Names of the strongest features; one that would touch another is left out, and its lines stay grey.

        Strongest where alpha was chosen, or else at the end of the path.
        """
        lay_out(ax)
        height = LINE_HEIGHT * LARGEST_FONT * ax.bbox.height / size_in_points(ax)[1]  # of a name, in pixels
        placed: list[IndexArray] = []
        heights: list[float] = []
        for lines in self.strongest_first():
            middle = float(ax.transData.transform((self.alphas[-1], self.norms[-1, lines[0]]))[1])
            if len(placed) == max_labels:
                break
            if middle - height / 2 >= ax.bbox.y0 and all(abs(middle - other) >= height for other in heights):
                placed.append(lines)
                heights.append(middle)
        for color, lines in zip(cycle(COLOURS), placed, strict=False):
            for k in lines:
                self.lines_[k].set(color=color, linewidth=1.5, zorder=2.5)
        texts = [self._place(ax, lines) for lines in placed]
        self._write_names(ax, list(zip(texts, placed, strict=True)))
        return texts

    def strongest_first(self) -> list[IndexArray]:
        """Lines that end together, in groups, by falling norm where it counts, without those that are zero there.

        Returns
        -------
        list of ndarray of int
            Positions in ``features``. What counts is the chosen alpha, or the end of the path where none is chosen.
        """
        groups = _tied(self.norms[-1])
        if self.alpha is None:
            return groups
        there = self.norms[int(np.argmin(np.abs(np.log(self.alphas / self.alpha))))]
        return sorted((lines for lines in groups if there[lines].any()), key=lambda lines: -float(there[lines].max()))

    def _place(self, ax: Axes, lines: IndexArray) -> Text:
        """A text, empty as yet, at the end of some lines that end together."""
        return ax.annotate(
            "",
            (float(self.alphas[-1]), self.norms[-1, lines[0]]),
            xytext=(_OFFSET, 0.0),
            textcoords="offset points",
            va="center",
            fontsize=LARGEST_FONT,
            parse_math=False,  # a $ in a name is a dollar
        )

    def _write_names(self, ax: Axes, placed: list[tuple[Text, IndexArray]]) -> None:
        """The first name of those that end together and the number of the others, as long as there is room for."""
        names = [self.feature_names[lines[0]] for _, lines in placed]
        texts = [text for text, _ in placed]
        for longest in range(LONGEST_NAME, SHORTEST_NAME - 1, -1):
            for (text, lines), name in zip(placed, shortened_names(names, longest), strict=True):
                text.set_text(name + (f" (+{len(lines) - 1} tied)" if len(lines) > 1 else ""))
            if widest(ax, texts) <= _WIDEST_NAME:
                break
        _make_room(ax, float(self.alphas[-1]), texts)


def _tied(norms: FloatArray) -> list[IndexArray]:
    """Non-zero norms by falling size, in groups of equal ones."""
    order = falling_order(norms)[: np.count_nonzero(norms)]
    return np.split(order, cluster_starts(-np.sort(-norms[order]))[1:]) if len(order) else []


def _make_room(ax: Axes, start: float, names: list[Text]) -> None:
    """Widen the axis to the right until names that begin at ``start`` end inside the axes."""
    share = widest(ax, names) + 3 * _OFFSET / size_in_points(ax)[0] if names else 0.0
    left, right = ax.get_xlim()
    ax.set_xlim(left, min(right, start * (start / left) ** (share / (1.0 - share))))
    number_alphas(ax, left, right)  # none below the names
