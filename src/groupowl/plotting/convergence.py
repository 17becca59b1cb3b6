"""How a solve converged: its gap and the rows that screening left, against time and passes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from .._checks import finite_number, lookup
from ..solvers import SolveResult
from .curves import X_LABELS, plot_gap, plot_rows_kept
from .style import axes_to_draw_on, lay_out, new_axes, say, thin_ticks
from .support import fitted_attribute

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

_CURVES: dict[str, Callable[..., Axes]] = {"gap": plot_gap, "rows": plot_rows_kept}
_INCHES = (5.0, 3.6)  # of one panel


@dataclass(eq=False)
class ConvergenceDisplay:
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
    figure_: Figure | SubFigure = field(init=False, repr=False)

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None, **settings: Any) -> ConvergenceDisplay:
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
        result = fitted_attribute(estimator, "solve_result_", "Use an estimator of groupowl.")
        return cls.from_result({type(estimator).__name__: result}, ax=ax, **settings)

    @classmethod
    def from_result(
        cls,
        result: SolveResult | Mapping[str, SolveResult],
        *,
        relative_to: float = 1.0,
        ax: Any = None,
        **settings: Any,
    ) -> ConvergenceDisplay:
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
        results = dict(result) if isinstance(result, Mapping) else {"solve": result}
        if not results:
            raise ValueError("result is an empty mapping: there is nothing to draw.")
        for value in results.values():
            if not isinstance(value, SolveResult):
                raise TypeError(f"result must be a SolveResult or a mapping of them, got {type(value).__name__}.")
        scale = finite_number("relative_to", relative_to, above=0.0)
        return cls(results, scale).plot(ax=ax, **settings)

    def plot(
        self,
        ax: Any = None,
        *,
        x: str | Iterable[str] = ("seconds", "passes"),
        y: str | Iterable[str] = ("gap", "rows"),
    ) -> ConvergenceDisplay:
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
        columns, rows = _several("x", x, X_LABELS), _several("y", y, _CURVES)
        panels = _panels(ax, len(rows), len(columns))
        for (i, j), panel in np.ndenumerate(panels):
            relative = {"relative_to": self.relative_to} if rows[i] == "gap" else {}
            _CURVES[rows[i]](self.results, x=columns[j], ax=panel, **relative)
            if not any(len(line.get_ydata()) for line in panel.get_lines()):
                panel.set(yscale="linear", xticks=[], yticks=[])
                say(panel, "The gap is 0 from the start.")
            if len(self.results) == 1 or (i, j) != (0, 0):
                panel.get_legend().remove()  # one legend for all panels
        lay_out(panels[0, 0])
        for panel in panels.ravel():
            thin_ticks(panel)  # times have many decimals
        self.ax_ = panels if panels.size > 1 else panels[0, 0]
        self.figure_ = panels[0, 0].figure
        return self


def _several(argument: str, names: str | Iterable[str], known: Mapping[str, Any]) -> list[str]:
    """One name or several, each of them known."""
    listed = list(names) if isinstance(names, Iterable) and not isinstance(names, str) else [names]
    for name in listed or [""]:
        lookup(argument, name, known)
    return listed


def _panels(ax: Any, n_rows: int, n_columns: int) -> Any:
    """An array of axes of the given shape: new ones, those given, or parts of the one that was given."""
    shape = (n_rows, n_columns)
    if ax is None:
        return np.array(new_axes(*shape, figsize=(_INCHES[0] * n_columns, _INCHES[1] * n_rows))).reshape(shape)
    if np.ndim(ax):
        panels = np.array([axes_to_draw_on(panel) for panel in np.ravel(ax)], dtype=object)
        if panels.size != n_rows * n_columns:
            raise ValueError(f"ax must have {n_rows * n_columns} axes for x and y as they are, got {panels.size}.")
        return panels.reshape(shape)
    whole = axes_to_draw_on(ax)
    return np.array([[whole]], dtype=object) if shape == (1, 1) else _divided(whole, shape)


def _divided(whole: Axes, shape: tuple[int, int]) -> Any:
    """Panels in the place of one axes, which becomes invisible."""
    place = whole.get_subplotspec()
    if place is None:
        raise ValueError("ax has no place in a grid and cannot be divided. Use plt.subplots(), or one x and one y.")
    whole.set_axis_off()
    return place.subgridspec(*shape).subplots()
