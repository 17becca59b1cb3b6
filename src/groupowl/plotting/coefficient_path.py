"""How the rows of coefficients grow along a path."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import cycle
from typing import TYPE_CHECKING, Any

import numpy as np

from .._checks import finite_number, positive_integer
from .._typing import BoolArray, FloatArray, IndexArray
from ..norm.kernels import cluster_starts, falling_order
from ..path import PathResult
from . import style
from .support import fitted_attribute, names_of, public_rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D
    from matplotlib.text import Text

_WIDEST_NAME = 0.4  # of the width of the axes
_OFFSET = 4.0  # points between a line and its name
_DASHES = (0, (5, 2))


@dataclass(eq=False)
class CoefficientPathDisplay(style.Display):
    """Norms of the rows of coefficients along a path, against alpha.

    Large alphas are on the left. Names stand at the ends of the lines, the largest first, as far as they fit without
    touching; lines without a name are gray. Lines that end at the same height share a name and their number.
    Features that are not penalized are dashed.

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
        Which of them are not penalized.
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
        shown = names_of(features, names, path.n_features)
        return cls(np.asarray(path.alphas), norms, features, shown, np.isin(features, path.unpenalized), chosen)

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
        ax = self._begin(ax)
        marker = "o" if len(self.alphas) == 1 else None
        look: dict[str, Any] = {"color": style.FAINT, "linewidth": 0.8, "marker": marker}
        self.lines_ = [
            ax.plot(self.alphas, norms, label=name, linestyle=_DASHES if is_unpenalized else "-", **look)[0]
            for norms, name, is_unpenalized in zip(self.norms.T, self.feature_names, self.unpenalized, strict=True)
        ]
        chosen = [] if self.alpha is None else [self.alpha]
        marks = [ax.axvline(alpha, label=f"chosen alpha = {alpha:.3g}", **style.CHOSEN) for alpha in chosen]
        style.alpha_axis(ax, [*self.alphas, *chosen])
        ax.set(title="Coefficient path", ylabel="norm of the coefficients")
        ax.set_ylim(0.0, 1.05 * float(self.norms.max(initial=0.0)) or 1.0)
        if not self.features.size:
            style.say(ax, "No feature is selected at any alpha.")
        self._draw_legend(ax, marks)
        self._name_lines(ax, max_labels)
        return self

    def _draw_legend(self, ax: Axes, marks: list[Any]) -> None:
        """Explanations above the lines, in room that is made for them."""
        from matplotlib.lines import Line2D

        if self.unpenalized.any():
            marks = [*marks, Line2D([], [], color="0.3", linestyle=_DASHES, label="not penalized")]
        if not marks:
            return
        settings: dict[str, Any] = {"loc": "upper left", "fontsize": style.LARGEST_FONT, "borderaxespad": 0.3}
        for columns in dict.fromkeys([len(marks), 1]):  # side by side, or below each other where that is too wide
            legend = style.name_in_legend(ax, marks, ncols=columns, **settings)
            style.lay_out(ax)
            if style.widest(ax, [legend]) < 1.0:
                break
        share = (ax.bbox.y1 - legend.get_window_extent().y0) / ax.bbox.height
        ax.set_ylim(top=ax.get_ylim()[1] / max(1.0 - share, 0.5))

    def _name_lines(self, ax: Axes, max_labels: int) -> None:
        """Names of the strongest features; one that would touch another is left out, and its lines stay gray.

        Strongest where alpha was chosen, or else at the end of the path.
        """
        style.lay_out(ax)
        to_pixels = ax.bbox.height / style.size_in_points(ax)[1]
        height = style.LINE_HEIGHT * style.LARGEST_FONT * to_pixels  # of a name
        end = float(self.alphas[-1])
        named: list[IndexArray] = []
        heights: list[float] = []
        for lines in self.strongest_first():
            middle = float(ax.transData.transform((end, self.norms[-1, lines[0]]))[1])
            if len(named) == max_labels:
                break
            if middle - height / 2 >= ax.bbox.y0 and all(abs(middle - other) >= height for other in heights):
                named.append(lines)
                heights.append(middle)
        for color, lines in zip(cycle(style.COLORS), named, strict=False):
            for k in lines:
                self.lines_[k].set(color=color, linewidth=1.5, zorder=2.5)
        look: dict[str, Any] = {"fontsize": style.LARGEST_FONT, "parse_math": False}  # a $ in a name is a dollar
        self.labels_ = [style.text_beside(ax, "", (end, self.norms[-1, lines[0]]), _OFFSET, **look) for lines in named]
        self._write_names(ax, named)

    def _write_names(self, ax: Axes, named: list[IndexArray]) -> None:
        """The first name of lines that end together and the number of the others, as long as there is room for."""
        names = [self.feature_names[lines[0]] for lines in named]
        for longest in range(style.LONGEST_NAME, style.SHORTEST_NAME - 1, -1):
            shortened = style.shortened_names(names, longest)
            for text, lines, name in zip(self.labels_, named, shortened, strict=True):
                text.set_text(name + (f" (+{len(lines) - 1} tied)" if len(lines) > 1 else ""))
            if style.widest(ax, self.labels_) <= _WIDEST_NAME:
                break
        _make_room(ax, float(self.alphas[-1]), self.labels_)

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


def _tied(norms: FloatArray) -> list[IndexArray]:
    """Non-zero norms by falling size, in groups of equal ones."""
    order = falling_order(norms)[: np.count_nonzero(norms)]
    return np.split(order, cluster_starts(-np.sort(-norms[order]))[1:]) if len(order) else []


def _make_room(ax: Axes, start: float, names: list[Text]) -> None:
    """Widen the axis to the right until names that begin at ``start`` end inside the axes."""
    share = style.widest(ax, names) + 3 * _OFFSET / style.size_in_points(ax)[0] if names else 0.0
    left, right = ax.get_xlim()
    ax.set_xlim(left, min(right, start * (start / left) ** (share / (1.0 - share))))
    style.number_alphas(ax, left, right)  # none below the names
