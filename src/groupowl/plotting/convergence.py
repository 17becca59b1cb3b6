"""How solves converged: their gaps and the rows that screening left, against time and passes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from .._checks import finite_number, lookup
from .._typing import FloatArray
from ..solvers import SolveResult
from . import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Solves = SolveResult | Mapping[str, SolveResult]
Names = str | Iterable[str]

# Curves often coincide: later ones are thinner, so that the earlier ones show behind them.
_WIDEST, _THINNEST = 3.2, 1.4
_INCHES = (5.0, 3.6)  # of one panel
_POINTS_PER_NUMBER = 45.0  # along the horizontal axis: very short times have many decimals
# Horizontal axes: what they show, and where a result has the number at the end of the solve.
_X = {"seconds": ("time (seconds)", "seconds"), "passes": ("passes over the data", "n_passes")}


def plot_gap(
    histories: Mapping[str, SolveResult], *, x: str = "seconds", relative_to: float = 1.0, ax: Axes | None = None
) -> Axes:
    """Duality gap against time or passes, on a logarithmic scale.

    Parameters
    ----------
    histories : mapping of str to SolveResult
        Solves by the name that the legend shows.
    x : {"seconds", "passes"}, default="seconds"
        Horizontal axis.
    relative_to : float, default=1.0
        Number that gaps are divided by; the loss of the model without features makes them comparable with ``tol``.
    ax : matplotlib Axes, default=None
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import groupowl as go
    >>> from groupowl.plotting import plot_gap
    >>> data = go.datasets.make_correlated_groups(60, 200, 3, random_state=0)
    >>> lam = 0.5 * go.lam_max(data.X, data.Y, "oscar") * go.weights.oscar(200)
    >>> plot_gap({"safe": go.solve(data.X, data.Y, lam)}, x="passes").get_yscale()
    'log'
    """
    scale = finite_number("relative_to", relative_to, above=0.0)
    curves, ax = _curves(histories, x), style.axes_to_draw_on(ax)
    for result, places, look in curves:
        gaps = np.append(result.history.gap, result.gap) / scale
        positive = gaps > 0  # a gap of exactly 0 has no place on a logarithmic scale
        ax.plot(places[positive], gaps[positive], **look)
    return _finish(ax, x, "Duality gap", "duality gap" if scale == 1.0 else "relative duality gap")


def plot_rows_kept(histories: Mapping[str, SolveResult], *, x: str = "passes", ax: Axes | None = None) -> Axes:
    """Number of rows of ``B`` not yet proved zero against passes or time, on a logarithmic scale.

    Parameters
    ----------
    histories : mapping of str to SolveResult
        Solves by the name that the legend shows.
    x : {"passes", "seconds"}, default="passes"
        Horizontal axis.
    ax : matplotlib Axes, default=None
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import groupowl as go
    >>> from groupowl.plotting import plot_rows_kept
    >>> data = go.datasets.make_correlated_groups(60, 30, 2, n_informative=3, random_state=0)
    >>> lam = 0.3 * go.lam_max(data.X, data.Y, "oscar") * go.weights.oscar(30)
    >>> solves = {rule: go.solve(data.X, data.Y, lam, screening=rule) for rule in ("safe", "none")}
    >>> ax = plot_rows_kept(solves)
    >>> ax.get_yscale()
    'log'
    """
    curves, ax = _curves(histories, x), style.axes_to_draw_on(ax)
    for result, places, look in curves:
        unpenalized = np.count_nonzero(result.clusters[result.support] == 0)  # active, and not counted by the history
        rows = np.append(result.history.n_active, len(result.active) - unpenalized)
        rows = np.maximum(rows, 1)  # no row left is drawn at 1, the lower end of the axis
        ax.step(places, rows, where="post", **look)
    _finish(ax, x, "Rows not yet proved zero", "rows kept")
    smallest = min(float(np.min(line.get_ydata())) for line in ax.get_lines())
    decade = 10.0 ** np.floor(np.log10(smallest))
    ax.set_ylim(bottom=max(step * decade for step in (1, 2, 5) if step * decade <= smallest))  # ends at a label
    style.label_log_axis(ax.yaxis)
    return ax


def _curves(histories: Mapping[str, SolveResult], x: str) -> list[tuple[SolveResult, FloatArray, dict[str, Any]]]:
    """Solves, where their certificates and their ends lie on the horizontal axis, and how their curves look.

    Color, dashes, width and marker all differ, for print and for color-blind readers.
    """
    _, total = lookup("x", x, _X)
    solves = _solves("histories", histories)
    widths = np.linspace(_WIDEST, _THINNEST, len(solves)) if len(solves) > 1 else [_THINNEST]
    curves = []
    for i, (name, result) in enumerate(solves.items()):
        look = {
            "label": name,
            "color": style.COLORS[i % len(style.COLORS)],
            "linestyle": style.LINE_STYLES[i % len(style.LINE_STYLES)],
            "linewidth": float(widths[i]),
            "marker": style.MARKERS[i % len(style.MARKERS)],
            "markersize": 3.0 + float(widths[i]),
            "markevery": [-1],
        }
        curves.append((result, np.append(getattr(result.history, x), getattr(result, total)), look))
    return curves


def _solves(argument: str, given: Any) -> dict[str, SolveResult]:
    """Solves by name."""
    solves = dict(given) if isinstance(given, Mapping) else {"solve": given}
    if not solves:
        raise ValueError(f"{argument} is empty: there is nothing to draw.")
    for value in solves.values():
        if not isinstance(value, SolveResult):
            raise TypeError(f"{argument} must be a SolveResult or a mapping of them, got {type(value).__name__}.")
    return solves


def _finish(ax: Axes, x: str, title: str, y_label: str) -> Axes:
    ax.locator_params(axis="x", nbins=int(np.clip(style.size_in_points(ax)[0] / _POINTS_PER_NUMBER, 2, 5)))
    ax.set(yscale="log", title=title, xlabel=_X[x][0], ylabel=y_label)
    ax.grid(visible=True, which="major", color="0.9")
    ax.set_axisbelow(True)
    named = {str(line.get_label()): line for line in ax.get_lines()}
    lines = {label: line for label, line in named.items() if not label.startswith("_child")}  # which have no label
    style.name_in_legend(ax, lines, handlelength=4.0)
    return ax


_CURVES: dict[str, Callable[..., Axes]] = {"gap": plot_gap, "rows": plot_rows_kept}


@dataclass(eq=False)
class ConvergenceDisplay(style.Display):
    """Duality gap and rows not yet proved zero, against time and passes over the data, for one or more solves.

    Parameters
    ----------
    results : dict of str to SolveResult
        Solves by the name that the legend shows.
    relative_to : float, default=1.0
        Number that gaps are divided by; the loss of the model without features makes them comparable with ``tol``.

    Attributes
    ----------
    ax_ : matplotlib Axes or ndarray of them
        Axes with the curves, of shape (number of y, number of x), or one where only one was asked for.
    figure_ : matplotlib Figure
        Figure with the axes.

    Examples
    --------
    >>> import groupowl as go
    >>> from groupowl.plotting import ConvergenceDisplay
    >>> data = go.datasets.make_correlated_groups(60, 200, 3, random_state=0)
    >>> lam = 0.5 * go.lam_max(data.X, data.Y, "oscar") * go.weights.oscar(200)
    >>> result = go.solve(data.X, data.Y, lam)
    >>> ConvergenceDisplay.from_result(result).ax_.shape
    (2, 2)
    >>> ConvergenceDisplay.from_result(result, x="passes", y="gap").ax_.get_yscale()
    'log'
    """

    results: dict[str, SolveResult]
    relative_to: float = 1.0
    ax_: Any = field(init=False, repr=False)

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None, **settings: Any) -> Self:
        """Draw the solve of a fitted estimator.

        Parameters
        ----------
        estimator : fitted groupowl estimator
            Its ``solve_result_`` is drawn.
        ax : matplotlib Axes or array of them, default=None
            As for :meth:`plot`.
        **settings
            Further arguments of :meth:`from_result`.

        Returns
        -------
        ConvergenceDisplay
        """
        result = style.fitted_attribute(estimator, "solve_result_", "Use an estimator of groupowl.")
        return cls.from_result({type(estimator).__name__: result}, ax=ax, **settings)

    @classmethod
    def from_result(cls, result: Solves, *, relative_to: float = 1.0, ax: Any = None, **settings: Any) -> Self:
        """Draw one solve, or several of them by name.

        Parameters
        ----------
        result : SolveResult or mapping of str to SolveResult
            What :func:`groupowl.solve` returns.
        relative_to : float, default=1.0
            Number that gaps are divided by.
        ax : matplotlib Axes or array of them, default=None
            As for :meth:`plot`.
        **settings
            Further arguments of :meth:`plot`.

        Returns
        -------
        ConvergenceDisplay
        """
        scale = finite_number("relative_to", relative_to, above=0.0)
        return cls(_solves("result", result), scale).plot(ax=ax, **settings)

    def plot(self, ax: Any = None, *, x: Names = ("seconds", "passes"), y: Names = ("gap", "rows")) -> Self:
        """Draw a panel for each pair of ``y`` and ``x``.

        Parameters
        ----------
        ax : matplotlib Axes or array of them, default=None
            Where to draw; a new figure by default. One Axes is divided into panels.
        x : {"seconds", "passes"} or several of them, default=("seconds", "passes")
            Horizontal axes.
        y : {"gap", "rows"} or several of them, default=("gap", "rows")
            What to draw.

        Returns
        -------
        ConvergenceDisplay
            This display, with ``ax_`` and ``figure_``.
        """
        columns, rows = _several("x", x, _X), _several("y", y, _CURVES)
        panels = _panels(ax, len(rows), len(columns))
        for (i, j), panel in np.ndenumerate(panels):
            relative = {"relative_to": self.relative_to} if rows[i] == "gap" else {}
            _CURVES[rows[i]](self.results, x=columns[j], ax=panel, **relative)
            if not any(len(line.get_ydata()) for line in panel.get_lines()):
                panel.set(yscale="linear", xticks=[], yticks=[])
                style.say(panel, "The gap is 0 from the start.")
            if len(self.results) == 1 or (i, j) != (0, 0):
                panel.get_legend().remove()  # one legend for all panels
        self.ax_ = panels if panels.size > 1 else panels[0, 0]
        self.figure_ = panels[0, 0].figure
        return self


def _several(argument: str, names: Names, known: Mapping[str, Any]) -> list[str]:
    """One name or several, each of them known."""
    listed = list(names) if isinstance(names, Iterable) and not isinstance(names, str) else [names]
    for name in listed or [""]:
        lookup(argument, name, known)
    return listed


def _panels(ax: Any, n_rows: int, n_columns: int) -> Any:
    """An array of axes of the given shape: new ones, those given, or parts of the one that was given."""
    size = n_rows * n_columns
    if ax is None:
        ax = style.new_axes(n_rows, n_columns, figsize=(_INCHES[0] * n_columns, _INCHES[1] * n_rows))
    panels = np.array([style.axes_to_draw_on(panel) for panel in np.ravel(ax)], dtype=object)
    if np.ndim(ax) == 0 and size > 1:
        place = ax.get_subplotspec()
        if place is None:
            raise ValueError("ax has no place in a grid and cannot be divided. Use plt.subplots(), or one x and one y.")
        ax.set_axis_off()
        panels = place.subgridspec(n_rows, n_columns).subplots()
    if panels.size != size:
        raise ValueError(f"ax must have {size} axes for x and y as they are, got {panels.size}.")
    return panels.reshape(n_rows, n_columns)
