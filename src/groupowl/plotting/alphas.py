"""Pictures against alpha: how coefficients grow along a path, and how well its models predict."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.isotonic import isotonic_regression

from .._checks import finite_number, positive_integer, truth_value
from .._text import counted, listed
from .._typing import BoolArray, FloatArray, IndexArray
from ..estimators.fit_summary import scale_is_deviation
from ..model_selection.scores import scoring_name
from ..model_selection.search import best_sequence, candidate_names, value_path
from ..norm.kernels import cluster_starts, falling_order
from ..path import PathResult
from . import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_WIDEST_NAME = 0.4  # of the width of the axes
_OFFSET = 4.0  # points between a line and its name
_LEADER = 10.0  # points of width for the thin lines to names that have moved
_DASHES = (0, (5, 2))
_LEGEND: dict[str, Any] = {"fontsize": style.LARGEST_FONT, "borderaxespad": 0.3}
_MOST_FOLDS = 20  # more lines hide the mean
_MOST_SEQUENCES = 3  # that have a color and a name of their own
_REMEDY = "Use GroupOWLRegressorCV or GroupOWLClassifierCV."


@dataclass(eq=False)
class CoefficientPathDisplay(style.Display):
    """Coefficients along a path, against alpha: their norms, or of one target, or two classes, they themselves.

    They are on the scale that the penalty sees: per standard deviation where columns were standardized. Large alphas
    are on the left. Lines that are largest at the chosen alpha, or at the end of the path where none is chosen, have
    names beside their ends, as many as there is room for; lines without a name are gray. Features of one cluster there
    share a name, a color and their number if they also end together. Features that are not penalized are dashed; the
    axis is made for the others, and may not reach as far.

    Parameters
    ----------
    alphas : ndarray of shape (n_alphas,)
        Strengths of the penalty, falling.
    norms : ndarray of shape (n_alphas, n_shown)
        Norms of the rows that are non-zero somewhere on the path, on the scale that the penalty sees; for two classes
        those of the second less the first, as in ``coef_``.
    features : ndarray of int of shape (n_shown,)
        Indices of these rows.
    feature_names : list of str
        Their names; x0, x1, ... where the data had none.
    unpenalized : ndarray of bool of shape (n_shown,)
        Which of them are not penalized.
    alpha : float or None
        Chosen alpha.
    coefficients : ndarray of shape (n_alphas, n_shown) or None
        Of one target, or two classes, the coefficients, whose sizes the norms are.
    is_scaled : bool, default=False
        Whether these are on another scale than that of X.
    is_per_deviation : bool, default=False
        Whether they are per standard deviation because columns were standardized, and nothing else scaled them.

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
    coefficients: FloatArray | None = None
    is_scaled: bool = False
    is_per_deviation: bool = False
    lines_: list[Any] = field(init=False, repr=False)
    labels_: list[Any] = field(init=False, repr=False)

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Axes | None = None, **settings: Any) -> Self:
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
        path = style.fitted_attribute(estimator, "path_", remedy)
        names = settings.pop("feature_names", None)
        display = cls.undrawn(path, alpha=estimator.alpha_, feature_names=names)
        return replace(display, is_per_deviation=scale_is_deviation(estimator)).plot(ax=ax, **settings)

    @classmethod
    def from_result(
        cls,
        path: Any,
        *,
        alpha: float | None = None,
        feature_names: Any = None,
        ax: Axes | None = None,
        **settings: Any,
    ) -> Self:
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
    def undrawn(cls, path: Any, *, alpha: float | None = None, feature_names: Any = None) -> Self:
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
        names = style.default_names(feature_names, path.feature_names, path.feature_groups, path.n_features)
        features = np.unique(np.concatenate([np.asarray(point.support, dtype=np.intp) for point in path]))
        norms = np.zeros((len(path), len(features)))
        coefficients = np.zeros_like(norms) if path.n_targets == 1 else None
        for i, point in enumerate(path):
            rows, there = style.public_rows(path, point.scaled_rows), np.searchsorted(features, point.support)
            norms[i, there] = np.linalg.norm(rows, axis=1)
            if coefficients is not None:
                coefficients[i, there] = rows[:, 0]
        shown, free = style.names_of(features, names, path.n_features), np.isin(features, path.unpenalized)
        return cls(np.asarray(path.alphas), norms, features, shown, free, chosen, coefficients, path.is_scaled)

    @property
    def values(self) -> FloatArray:
        """Values to draw, (n_alphas, n_shown): signed coefficients for one target, otherwise norms."""
        return self.norms if self.coefficients is None else self.coefficients

    @property
    def label(self) -> str:
        """What the values are."""
        what = "norm of the coefficients" if self.coefficients is None else "coefficient"
        return style.size_label(what, self.is_scaled, self.is_per_deviation)

    @property
    def limits(self) -> tuple[float, float]:
        """The smallest and the largest value for an axis, with zero: those of penalized features, if there are any."""
        values = self.values[:, ~self.unpenalized] if not self.unpenalized.all() else self.values
        low, high = float(values.min(initial=0.0)), float(values.max(initial=0.0))
        return (low, high) if low < high else (0.0, 1.0)

    def plot(self, ax: Axes | None = None, *, max_labels: int = 30) -> Self:
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
            ax.plot(self.alphas, values, label=name, linestyle=_DASHES if is_unpenalized else "-", **look)[0]
            for values, name, is_unpenalized in zip(self.values.T, self.feature_names, self.unpenalized, strict=True)
        ]
        marks: dict[str, Any] = {}
        if self.alpha is not None:
            marks[f"chosen alpha = {self.alpha:.3g}"] = ax.axvline(self.alpha, **style.CHOSEN)
        _alpha_axis(ax, self.alphas, self.alpha)
        low, high = self.limits
        room = 0.05 * (high - low)
        low, high = low - room if low < 0.0 else 0.0, high + room if high > 0.0 else 0.0
        ax.set(title="Coefficient path", ylabel=self.label, ylim=(low, high))
        if low < 0.0:
            ax.axhline(0.0, color="0.5", linewidth=0.8)
        if not self.features.size:
            style.say(ax, "No feature is selected at any alpha.")
        if self.unpenalized.any():
            from matplotlib.lines import Line2D

            free = self.values[:, self.unpenalized]
            is_beyond = ((free < low) | (free > high)).any(axis=0)
            beyond = [self.feature_names[k] for k in np.flatnonzero(self.unpenalized)[is_beyond]]
            words = listed(style.shortened_names(beyond), shown=2, quoted=False)
            name = "not penalized" + (f" ({words} beyond the axis)" if beyond else "")
            marks[name] = Line2D([], [], color="0.3", linestyle=_DASHES)
        if marks:  # explained above the lines, in room that is made for it
            legend = style.name_in_legend(ax, marks, loc="upper left", **_LEGEND)
            style.lay_out(ax)
            share = (ax.bbox.y1 - legend.get_window_extent().y0) / ax.bbox.height
            ax.set_ylim(top=low + (high - low) / max(1.0 - share, 0.5))
        self._name_lines(ax, max_labels, low, high)
        return self

    def _name_lines(self, ax: Axes, max_labels: int, low: float, high: float) -> None:
        """Names of the strongest features, as many as there is room for from ``low`` to ``high``; other lines are gray.

        Names of lines that end close to each other move apart, with a thin line to where they belong.
        """
        style.lay_out(ax)
        width, height = style.size_in_points(ax)
        bottom, top = ax.get_ylim()
        to_points = height / (top - bottom)
        between = style.LINE_HEIGHT * style.LARGEST_FONT / to_points  # names, on the scale of values
        end, ends = float(self.alphas[-1]), self.values[-1]
        groups = [lines for group in self.strongest_first() for lines in _ending_together(group, ends, between)]
        named = [lines for lines in groups if low <= ends[lines[0]] <= high]
        named = named[: min(max_labels, int((high - low) / between))]
        at = np.array([ends[lines[0]] for lines in named])
        moves = (_spread(at, between, low + between / 2, high - between / 2) - at) * to_points
        is_moved = np.abs(moves) > style.LARGEST_FONT / 2
        offset = _OFFSET + (_LEADER if is_moved.any() else 0.0)
        longest = style.longest_name(_WIDEST_NAME * width, style.LARGEST_FONT)
        names = style.shortened_names([self.feature_names[lines[0]] for lines in named], longest)
        look: dict[str, Any] = {"fontsize": style.LARGEST_FONT, "parse_math": False}  # a $ in a name is a dollar
        self.labels_ = []
        for i, (color, lines) in enumerate(zip(style.line_colors(len(named)), named, strict=True)):
            tied = f" (+{len(lines) - 1} tied)" if len(lines) > 1 else ""
            place, move = (end, float(at[i])), float(moves[i])
            self.labels_.append(style.text_beside(ax, names[i] + tied, place, offset, move, color=color, **look))
            if offset > _OFFSET:
                arrow = {"arrowstyle": "-", "color": color, "linewidth": 0.6, "shrinkA": 0.0, "shrinkB": 0.0}
                style.text_beside(ax, "", place, offset - 1.0, move, arrowprops=arrow)
            for k in lines:
                self.lines_[k].set(color=color, linewidth=1.5, zorder=2.5)
        # The axis becomes wider on the right until the names end inside the axes; no numbers stand below them.
        share = style.widest(ax, self.labels_) + (2 * _OFFSET + offset) / width if named else 0.0
        left, right = ax.get_xlim()
        ax.set_xlim(left, min(right, end * (end / left) ** (share / (1.0 - share))))
        _number_alphas(ax, left, right)

    def strongest_first(self) -> list[IndexArray]:
        """Lines of equal norm on the same side of zero, in groups, by falling norm where it counts.

        Returns
        -------
        list of ndarray of int
            Positions in ``features``, without lines that are zero where it counts: at the chosen alpha, or at the end
            of the path where none is chosen, or nothing is selected there.
        """
        i = len(self.alphas) - 1
        if self.alpha is not None:
            chosen = int(np.argmin(np.abs(np.log(self.alphas / self.alpha))))
            i = chosen if self.norms[chosen].any() else i
        norms = self.norms[i]
        order = falling_order(norms)[: np.count_nonzero(norms)]
        tied = np.split(order, cluster_starts(-np.sort(-norms[order]))[1:]) if len(order) else []
        return [lines for group in tied for lines in self._apart(group, i)]

    def _apart(self, lines: IndexArray, i: int) -> list[IndexArray]:
        """Lines of equal norm at an alpha, those on one side of zero together; features without penalty alone."""
        free = self.unpenalized[lines]
        found = [lines[free][k : k + 1] for k in range(np.count_nonzero(free))]
        is_above = np.ones(len(lines), dtype=bool) if self.coefficients is None else self.coefficients[i, lines] > 0.0
        found += [side for side in (lines[~free & is_above], lines[~free & ~is_above]) if len(side)]
        return sorted(found, key=lambda side: int(np.flatnonzero(lines == side[0])[0]))


def _ending_together(lines: IndexArray, ends: FloatArray, between: float) -> list[IndexArray]:
    """Groups of lines whose ends are too close for separate labels."""
    found = []
    while len(lines):
        is_near = np.abs(ends[lines] - ends[lines[0]]) < between
        found.append(lines[is_near])
        lines = lines[~is_near]
    return found


def _spread(heights: FloatArray, between: float, low: float, high: float) -> FloatArray:
    """Heights in the same order, so far apart, from ``low`` to ``high``, that differ least from those given."""
    order = np.argsort(heights, kind="stable")
    steps, spread = between * np.arange(len(heights)), np.empty_like(heights)
    room = max(high - steps[-1:].sum(), low)
    spread[order] = steps + isotonic_regression(heights[order] - steps, y_min=low, y_max=room) if len(steps) else steps
    return spread


@dataclass(eq=False)
class CrossValidationDisplay(style.Display):
    """Score or criterion against alpha, with the alpha that was chosen.

    For cross-validation: the mean over folds with a band of one standard error on both sides, the folds as faint
    lines, and the band that the one-standard-error rule looks at, from the best mean to one standard error away from
    it. Errors are drawn as errors, lower is better; a score of which higher is better as it is. For an information
    criterion: its values. Along the top is the number of features selected on all data.

    Parameters
    ----------
    alphas : ndarray of shape (n_alphas,)
        Strengths of the penalty, falling.
    values : ndarray of shape (n_alphas,)
        Mean errors or scores, or criterion.
    label : str
        What the values are.
    alpha : float
        Chosen alpha.
    std_errors : ndarray of shape (n_alphas,) or None
        Standard errors of the means; None for a criterion.
    scores : ndarray of shape (n_alphas, n_folds) or None
        Scores of the folds; None for a criterion.
    n_selected : ndarray of int of shape (n_alphas,) or None
        Number of selected features at each alpha.
    others : dict of (ndarray, ndarray)
        Where there were several weight sequences: alphas and values of those that were not chosen, by name.
    lower_is_better : bool
        Whether the values are errors, or a criterion.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes with the picture.
    figure_ : matplotlib Figure
        Figure with the axes.
    line_ : matplotlib Line2D
        Line of the values.

    Examples
    --------
    >>> import groupowl as go
    >>> from groupowl.plotting import CrossValidationDisplay
    >>> data = go.datasets.make_correlated_groups(60, 10, 3, n_informative=4, random_state=0)
    >>> model = go.GroupOWLRegressorCV(alphas=10, cv=3, selection="1se").fit(data.X, data.Y)
    >>> CrossValidationDisplay.from_estimator(model).ax_.get_ylabel()
    'mean squared error (lower is better)'
    """

    alphas: FloatArray
    values: FloatArray
    label: str
    alpha: float
    std_errors: FloatArray | None = None
    scores: FloatArray | None = None
    n_selected: IndexArray | None = None
    others: dict[str, tuple[FloatArray, FloatArray]] = field(default_factory=dict)
    lower_is_better: bool = False
    line_: Any = field(init=False, repr=False)

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Axes | None = None, **settings: Any) -> Self:
        """Draw how a cross-validated estimator chose alpha.

        Parameters
        ----------
        estimator : fitted GroupOWLRegressorCV or GroupOWLClassifierCV
            Its ``score_path_`` or ``criterion_path_`` is drawn.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.
        **settings
            Further arguments of :meth:`plot`.

        Returns
        -------
        CrossValidationDisplay
        """
        return cls.undrawn(estimator).plot(ax=ax, **settings)

    @classmethod
    def undrawn(cls, estimator: Any) -> Self:
        """The numbers of a cross-validated estimator, to be drawn by :meth:`plot` or by other means.

        Parameters
        ----------
        estimator : fitted GroupOWLRegressorCV or GroupOWLClassifierCV
            Its ``score_path_`` or ``criterion_path_`` is read.

        Returns
        -------
        CrossValidationDisplay
        """
        alphas = np.asarray(style.fitted_attribute(estimator, "alphas_", _REMEDY))
        path = estimator.path_
        n_selected = np.asarray(path.n_selected) if len(path.alphas) == len(alphas) else None
        chosen: dict[str, Any] = {"alpha": float(estimator.alpha_), "n_selected": n_selected}
        criterion = getattr(estimator, "criterion_path_", None)
        if criterion is not None:
            chosen["others"] = _other_sequences(estimator, 1.0)
            return cls(alphas, np.asarray(criterion), estimator.selection.upper(), lower_is_better=True, **chosen)
        label, is_error = estimator._fitted_loss.measure, True
        if estimator.scoring is not None:
            label, is_error = scoring_name(estimator.scoring)
        sign = -1.0 if is_error else 1.0  # scores of errors have a minus
        chosen["others"] = _other_sequences(estimator, sign)
        folds = {"std_errors": estimator.std_error_path_, "scores": sign * estimator.score_path_}
        return cls(alphas, sign * estimator.mean_score_path_, label, lower_is_better=is_error, **folds, **chosen)

    @property
    def one_se_band(self) -> tuple[float, float] | None:
        """The best mean and what is one standard error worse, the smaller number first; None for a criterion."""
        if self.std_errors is None:
            return None
        best = int(np.nanargmin(self.values) if self.lower_is_better else np.nanargmax(self.values))
        value, error = float(self.values[best]), float(self.std_errors[best])
        return (value, value + error) if self.lower_is_better else (value - error, value)

    def plot(self, ax: Axes | None = None, *, folds: bool | None = None) -> Self:
        """Draw the values.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.
        folds : bool, default=None
            Whether to draw a line for each fold; by default when there are at most 20.

        Returns
        -------
        CrossValidationDisplay
            This display, with ``ax_``, ``figure_`` and ``line_``.
        """
        ax = self._begin(ax)
        marks: dict[str, Any] = {}
        are_few = self.scores is not None and self.scores.shape[1] <= _MOST_FOLDS
        if (are_few if folds is None else truth_value("folds", folds)) and self.scores is not None:
            marks["folds"] = ax.plot(self.alphas, self.scores, color=style.FAINT, linewidth=0.8)[0]
        look: dict[str, Any] = {"color": style.COLORS[0], "linewidth": 1.8, "marker": "o", "markersize": 2.5}
        name = "criterion" if self.std_errors is None else "mean over folds"
        (self.line_,) = ax.plot(self.alphas, self.values, zorder=3, **look)
        marks[name] = self.line_
        marks |= self._draw_others(ax)
        if self.std_errors is not None and self.one_se_band is not None:
            around = self.values - self.std_errors, self.values + self.std_errors
            look = {"color": style.COLORS[6], "alpha": 0.4, "lw": 0}
            marks["± one standard error"] = ax.fill_between(self.alphas, *around, **look)
            look = {"color": style.COLORS[1], "alpha": 0.3, "lw": 0}
            marks["within one standard error of the best"] = ax.axhspan(*self.one_se_band, **look)
        choice = f"chosen alpha = {self.alpha:.3g}"
        for count in self._counts_at([self.alpha]):
            choice += f", {counted(count, 'feature')}"
        marks[choice] = ax.axvline(self.alpha, **style.CHOSEN)
        _alpha_axis(ax, np.concatenate([self.alphas, *(alphas for alphas, _ in self.others.values())]), self.alpha)
        if self.n_selected is None or ax.figure.canvas.figure.get_layout_engine() is not None:  # else there is no room
            ax.set_title("Information criterion" if self.std_errors is None else "Cross-validation")
        ax.set_ylabel(f"{self.label} ({'lower' if self.lower_is_better else 'higher'} is better)")
        ax.margins(y=0.08)
        if self.n_selected is not None:
            counts = ax.secondary_xaxis("top")
            counts.set_xticks(ax.get_xticks(), map(str, self._counts_at(ax.get_xticks())))
            counts.minorticks_off()
            counts.set_xlabel("features selected")
        style.name_in_legend(ax, marks, loc="best", **_LEGEND)
        return self

    def _draw_others(self, ax: Axes) -> dict[str, Any]:
        """Thin lines of the weight sequences that were not chosen; many of them share a color and a name."""
        marks: dict[str, Any] = {}
        for i, (name, (alphas, values)) in enumerate(self.others.items()):
            are_few = len(self.others) <= _MOST_SEQUENCES
            color = style.COLORS[2 + i] if are_few else "0.6"
            (line,) = ax.plot(alphas, values, color=color, linewidth=1.0, linestyle=_DASHES, zorder=2)
            marks[f"weights: {name}" if are_few else "other weights"] = line
        return marks

    def _counts_at(self, alphas: Iterable[float]) -> list[int]:
        """Numbers of features selected at the alphas of the path that are nearest; none where they are not known."""
        if self.n_selected is None:
            return []
        return [int(self.n_selected[np.argmin(np.abs(np.log(self.alphas / alpha)))]) for alpha in alphas]


def _other_sequences(estimator: Any, sign: float) -> dict[str, tuple[FloatArray, FloatArray]]:
    """Alphas and values, with this sign, of the weight sequences that were not chosen, by name."""
    reports = estimator.search_results_
    best, others = best_sequence(reports), {}
    for k, report in enumerate(reports):
        if k != best:
            name = candidate_names(estimator)[k]
            others[name] = np.asarray(report["alphas"]), sign * np.asarray(value_path(report))
    return others


def _alpha_axis(ax: Axes, alphas: FloatArray, chosen: float | None) -> None:
    """A logarithmic axis with the largest alpha on the left."""
    shown = alphas if chosen is None else np.append(alphas, chosen)
    largest, smallest = float(shown.max()), float(shown.min())
    if largest < 1.05 * smallest:  # one alpha only
        largest, smallest = 1.5 * largest, smallest / 1.5
    ax.set(xscale="log", xlim=(largest, smallest), xlabel="alpha")
    ax.minorticks_off()
    _number_alphas(ax, largest, smallest)


def _number_alphas(ax: Axes, largest: float, smallest: float) -> None:
    """As many round numbers between two alphas as fit below the axes as they are."""
    from matplotlib.ticker import FuncFormatter, LogLocator

    style.lay_out(ax)
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, position: f"{value:g}"))
    for subs, most in ((range(1, 10), 100), ((1.0, 2.0, 5.0), 100), ((1.0, 3.0), 100), ((1.0,), 100), ((1.0,), 4)):
        numbers = LogLocator(subs=subs, numticks=most).tick_values(smallest, largest)
        ax.set_xticks([number for number in numbers if smallest <= number <= largest])
        if not style.touching(ax.get_xticklabels()):
            return
