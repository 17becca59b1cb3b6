"""The study as a picture."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from groupowl.plotting import COLORS, LINE_STYLES, MARKERS

from .fitting import BASELINE, METHODS
from .reading import PANELS, Measure
from .report import RecoveryReport
from .simulation import VARIANTS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_DODGE = 0.07  # between methods, so that error bars do not hide each other


def recovery_figure(report: RecoveryReport) -> Figure:
    """Support F1, cluster recovery and test error over correlation, a row of panels per variant.

    Parameters
    ----------
    report : RecoveryReport
        What :func:`run_recovery` returned.

    Returns
    -------
    matplotlib Figure
        Not known to pyplot, so nothing stays open.
    """
    from matplotlib.figure import Figure

    n_rows = len(report.variants)
    figure = Figure(figsize=(12.0, 3.4 * n_rows + 0.6), layout="constrained")
    panels = figure.subplots(n_rows, len(PANELS), squeeze=False, sharex=True, sharey="col")
    for row, variant in zip(panels, report.variants, strict=True):
        for ax, measure in zip(row, PANELS, strict=True):
            _draw(ax, report, variant, measure)
    for ax in panels[0]:  # shared along columns, so after everything is drawn
        ax.set_ylim(bottom=min(0.0, ax.get_ylim()[0]))
    figure.suptitle("Groups of correlated features: Group OWL against L2,1 (bars: one standard error)")
    handles, labels = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), handlelength=4.0)
    return figure


def _draw(ax: Axes, report: RecoveryReport, variant: str, measure: Measure) -> None:
    """One panel; correlations are evenly spaced, since 0.95 and 0.99 would be one point on their scale."""
    correlations = report.setting.correlations
    places = np.arange(len(correlations))
    for i, method in enumerate(report.methods):
        means, errors = zip(*(report.mean(variant, c, method, measure.name) for c in correlations), strict=True)
        shift = _DODGE * (i - (len(report.methods) - 1) / 2)
        style = {"color": COLORS[i], "linestyle": LINE_STYLES[i], "marker": MARKERS[i]}
        ax.errorbar(places + shift, means, yerr=errors, label=_label(method), capsize=2.0, markersize=5.0, **style)
    ax.set_xticks(places, [f"{correlation:g}" for correlation in correlations])
    ax.tick_params(labelbottom=True)
    ax.set(xlabel="correlation within groups", ylabel=_axis_label(measure), title=VARIANTS[variant].title)
    ax.grid(visible=True, color="0.9")
    ax.set_axisbelow(True)


def _label(method: str) -> str:
    return METHODS[method] if method == BASELINE else f"Group OWL, {METHODS[method]}"


def _axis_label(measure: Measure) -> str:
    return f"{measure.title}\n({'higher' if measure.sign > 0 else 'lower'} is better)"
