"""Curves of solves: how the gap closes, and how screening removes rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from .._checks import finite_number, lookup
from .._typing import FloatArray
from ..solvers import SolveResult
from .style import COLOURS, LINE_STYLES, MARKERS, axes_to_draw_on, label_log_axis, name_in_legend

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Curves often coincide: later ones are thinner, so that the earlier ones show behind them.
_WIDEST, _THINNEST = 3.2, 1.4

X_LABELS = {"seconds": "time (seconds)", "passes": "passes over the data"}
_X_TOTALS = {"seconds": "seconds", "passes": "n_passes"}


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
    ax = _prepare(histories, x, ax)
    for style, (name, result) in zip(_styles(len(histories)), histories.items(), strict=True):
        gaps = np.append(result.history.gap, result.gap) / scale
        positive = gaps > 0  # a gap of exactly 0 has no place on a logarithmic scale
        ax.plot(_positions(result, x)[positive], gaps[positive], label=name, **style)
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
    ax = _prepare(histories, x, ax)
    for style, (name, result) in zip(_styles(len(histories)), histories.items(), strict=True):
        unpenalized = np.count_nonzero(result.clusters[result.support] == 0)  # active, and not counted by the history
        rows = np.append(result.history.n_active, len(result.active) - unpenalized)
        rows = np.maximum(rows, 1)  # no row left is drawn at 1, the lower end of the axis
        ax.step(_positions(result, x), rows, where="post", label=name, **style)
    _finish(ax, x, "Rows not yet proved zero", "rows kept")
    smallest = min(float(np.min(line.get_ydata())) for line in ax.get_lines())
    decade = 10.0 ** np.floor(np.log10(smallest))
    ax.set_ylim(bottom=max(step * decade for step in (1, 2, 5) if step * decade <= smallest))  # ends at a label
    label_log_axis(ax.yaxis)
    return ax


def _prepare(histories: Mapping[str, SolveResult], x: str, ax: Axes | None) -> Axes:
    """Axes to draw on, after a check of the arguments."""
    lookup("x", x, X_LABELS)
    if not isinstance(histories, Mapping) or not all(isinstance(item, SolveResult) for item in histories.values()):
        raise TypeError(f"histories must be a mapping of str to SolveResult, got {type(histories).__name__}.")
    if not histories:
        raise ValueError("histories is empty: there is nothing to draw.")
    return axes_to_draw_on(ax)


def _positions(result: SolveResult, x: str) -> FloatArray:
    """Where the certificates of the history lie on the horizontal axis, and the end of the solve."""
    return np.append(getattr(result.history, x), getattr(result, _X_TOTALS[x]))


def _styles(count: int) -> list[dict[str, Any]]:
    """One style per curve; colour, dashes, width and marker all differ, for print and for colour-blind readers."""
    widths = np.linspace(_WIDEST, _THINNEST, count) if count > 1 else [_THINNEST]
    return [
        {
            "color": COLOURS[i % len(COLOURS)],
            "linestyle": LINE_STYLES[i % len(LINE_STYLES)],
            "linewidth": float(width),
            "marker": MARKERS[i % len(MARKERS)],
            "markersize": 3.0 + float(width),
            "markevery": [-1],
        }
        for i, width in enumerate(widths)
    ]


def _finish(ax: Axes, x: str, title: str, y_label: str) -> Axes:
    ax.set_yscale("log")
    ax.locator_params(axis="x", nbins=5)  # labels of very short times are long
    ax.set(title=title, xlabel=X_LABELS[x], ylabel=y_label)
    ax.grid(visible=True, which="major", color="0.9")
    ax.set_axisbelow(True)
    name_in_legend(ax, ax.get_lines(), handlelength=4.0)
    return ax
