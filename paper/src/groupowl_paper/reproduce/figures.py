"""Figures 1 to 4 of the paper, and the speed-up against sparsity."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from groupowl.plotting import COLORS, LINE_STYLES, MARKERS, label_log_axis

from .results import Results
from .settings import ALGORITHMS, DEFAULT, FAMILIES, RULES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Every figure that there may be, by its name without suffix.
FIGURE_NAMES = (
    "figure1_time_regression",
    "figure2_screening_regression",
    "figure3_time_multinomial",
    "figure4_screening_multinomial",
    "speedup_against_sparsity",
    "study_correlated_groups",
)
_MODELS = {"squared": "Group OWL regression", "multinomial": "Multinomial Group OWL regression"}
_COLUMNS = 4
# One color per rule, the same in all figures; hatches for print.
_RULE_STYLES: dict[str, dict[str, Any]] = {
    "none": {"facecolor": COLORS[0], "hatch": ""},
    "paper": {"facecolor": COLORS[1], "hatch": "//"},
    "safe": {"facecolor": COLORS[2], "hatch": ".."},
    "default": {"facecolor": COLORS[4], "hatch": "xx"},
}
# Curves often coincide: the rules of one family have one kind of line each, and the second is drawn thin on the first.
_CURVES: dict[str, dict[str, Any]] = {
    "apgd-paper": {"color": COLORS[1], "linestyle": "-", "linewidth": 3.4, "marker": MARKERS[0]},
    "apgd-safe": {"color": COLORS[2], "linestyle": "--", "linewidth": 1.6, "marker": MARKERS[1]},
    "spgd-auto-paper": {"color": COLORS[1], "linestyle": "-", "linewidth": 3.4, "marker": MARKERS[2]},
    "spgd-auto-safe": {"color": COLORS[2], "linestyle": "--", "linewidth": 1.6, "marker": MARKERS[3]},
    "spgd-paper-paper": {"color": COLORS[3], "linestyle": "-", "linewidth": 3.4, "marker": MARKERS[4]},
    "spgd-paper-safe": {"color": COLORS[0], "linestyle": ":", "linewidth": 1.6, "marker": MARKERS[5]},
    "default": {"color": COLORS[4], "linestyle": "-.", "linewidth": 1.6, "marker": MARKERS[6]},
}


def result_figures(results: Results) -> dict[str, Figure]:
    """Figures by their name without suffix.

    Parameters
    ----------
    results : Results

    Returns
    -------
    dict of str to matplotlib Figure
        Not known to pyplot, so nothing stays open. A figure without any panel is left out.
    """
    drawn = (
        _time_figure(results, "squared", 1),
        _screening_figure(results, "squared", 2),
        _time_figure(results, "multinomial", 3),
        _screening_figure(results, "multinomial", 4),
        _sparsity_figure(results),
        _study_figure(results),
    )
    return {name: figure for name, figure in zip(FIGURE_NAMES, drawn, strict=True) if figure is not None}


def _batch_first(results: Results, loss: str) -> list[str]:
    """Data sets with this loss, those for APGD before those for SPGD."""
    return [*results.names(loss=loss, solver="apgd"), *results.names(loss=loss, solver="spgd")]


# Figures 1 and 3 -------------------------------------------------------------------------------------


def _time_figure(results: Results, loss: str, figure_number: int) -> Figure | None:
    """A panel per data set and family: time in percent of p_1 without screening."""
    panels = [(name, family) for name in _batch_first(results, loss) for family in results.families(name)]
    panels = [panel for panel in panels if _percentages(results, *panel)]
    if not panels:
        return None
    figure, axes = _grid(len(panels), height=3.1)
    for ax, (name, family) in zip(axes, panels, strict=True):
        _draw_times(ax, results, name, family)
    figure.suptitle(f"Figure {figure_number}: running time, {_MODELS[loss]}")
    handles = [_patch(**style) for style in _RULE_STYLES.values()]
    figure.legend(
        handles, [*RULES.values(), FAMILIES["default"]], loc="outside lower center", ncols=4 if len(panels) > 2 else 2
    )
    return figure


def _percentages(results: Results, name: str, family: str) -> dict[tuple[str, int], float]:
    """Percent of the time of p_1 without screening, by rule and setting, at the gap that all runs reached."""
    settings = results.settings(name)
    common = results.gap_of(name, family, settings)
    whole = results.seconds_of(name, 1, f"{family}-none", common)
    if not whole:
        return {}
    keys = {rule: f"{family}-{rule}" for rule in RULES} | {"default": DEFAULT.name}
    taken = {
        (rule, setting): results.seconds_of(name, setting, algorithm, common)
        for rule, algorithm in keys.items()
        for setting in settings
    }
    return {place: 100.0 * value / whole for place, value in taken.items() if value is not None}


def _draw_times(ax: Axes, results: Results, name: str, family: str) -> None:
    percent = _percentages(results, name, family)
    settings = results.settings(name)
    rules = [rule for rule in _RULE_STYLES if any(rule == place for place, _ in percent)]
    width = 0.8 / len(rules)
    lowest = min(percent.values())
    decade = 10.0 ** np.floor(np.log10(0.7 * lowest))
    floor = max(step * decade for step in (1, 2, 5) if step * decade <= 0.7 * lowest)  # the axis ends at a label
    for k, rule in enumerate(rules):
        for i, setting in enumerate(settings):
            value = percent.get((rule, setting))
            if value is None:
                continue
            x = i + (k - (len(rules) - 1) / 2) * width
            ax.bar(x, value - floor, width, bottom=floor, edgecolor="white", linewidth=0.6, **_RULE_STYLES[rule])
            label = f"{value:.0f}" if value >= 9.5 else f"{value:.1f}" if value >= 0.95 else f"{value:.1g}"
            ax.annotate(label, (x, value), (0, 1), textcoords="offset points", ha="center", fontsize=6.5)
    ax.set_yscale("log")
    ax.set_ylim(floor, 2.2 * max(percent.values()))
    ax.set_xlim(-0.6, len(settings) - 0.4)
    label_log_axis(ax.yaxis)
    common = results.gap_of(name, family, settings)
    at = "" if common <= results.options.tol else f"\nto a gap of {common:.0e}"
    ax.set_title(f"{name}, {FAMILIES[family]}{at}", fontsize=9)
    ax.set_xticks(range(len(settings)), [f"$p_{setting}$" for setting in settings])
    ax.set_ylabel("CPU time (% of $p_1$)")
    ax.grid(visible=True, axis="y", color="0.9")
    ax.set_axisbelow(True)


def _patch(**style: Any) -> Any:
    from matplotlib.patches import Patch

    return Patch(edgecolor="white", **style)


# Figures 2 and 4 -------------------------------------------------------------------------------------


def _screening_figure(results: Results, loss: str, figure_number: int) -> Figure | None:
    """Two panels per data set: the rate against iterations, and against time."""
    from matplotlib.figure import Figure

    names = [name for name in _batch_first(results, loss) if _rates(results, name)]
    if not names:
        return None
    figure = Figure(figsize=(3.3 * max(len(names), 2) + 0.4, 6.4), layout="constrained")
    axes = figure.subplots(2, len(names), squeeze=False, sharey=True)
    handles: dict[str, Any] = {}
    for column, name in zip(axes.T, names, strict=True):
        for ax, x, label in zip(column, ("iteration", "cpu"), ("iteration", "CPU time (seconds)"), strict=True):
            _draw_rates(ax, results, name, x, handles)
            ax.set_xlabel(label)
            ax.set_ylabel("screened (% of inactive)" if name == names[0] else "")
        column[0].set_title(name, fontsize=10)
    figure.suptitle(f"Figure {figure_number}: screening rate in setting $p_1$, {_MODELS[loss]}")
    ordered = [label for label in (ALGORITHMS[name].label for name in _CURVES) if label in handles]
    columns = min(len(ordered), 3 if len(names) > 2 else 2)
    figure.legend(
        [handles[label] for label in ordered], ordered, loc="outside lower center", ncols=columns, handlelength=4.0
    )
    return figure


def _rates(results: Results, name: str) -> dict[str, tuple[Any, Any]]:
    """History and screening rate in percent of the first trial of every screened algorithm."""
    selected = results.n_selected(name, 1)
    found = {}
    for algorithm in results.algorithms(name):
        trials = results.trials(name, 1, algorithm.name)
        if selected is not None and algorithm.screening != "none" and trials and trials[0].history.cpu:
            found[algorithm.name] = (trials[0].history, 100.0 * trials[0].history.screening_rate(selected))
    return found


def _draw_rates(ax: Axes, results: Results, name: str, x: str, handles: dict[str, Any]) -> None:
    from matplotlib.ticker import LogLocator

    rates = _rates(results, name)
    for algorithm, style in _CURVES.items():
        if algorithm not in rates:
            continue
        history, rate = rates[algorithm]
        places = np.array(getattr(history, x), dtype=float)
        if x == "iteration":
            places = np.maximum(places, 1.0)  # the start has no place on a logarithmic scale
        (line,) = ax.step(places, rate, where="post", markersize=5.0, markevery=[-1], **style)
        handles[ALGORITHMS[algorithm].label] = line
    ax.set_xscale("log")
    label_log_axis(ax.xaxis)
    low, high = ax.get_xlim()
    if high > 50 * low:  # panels are narrow
        ax.xaxis.set_major_locator(LogLocator(subs=(1.0,)))
    tops = [float(rate.max(initial=0.0)) for _, rate in rates.values()]
    ax.set_ylim(-4, max(104.0, 1.04 * max((top for top in tops if np.isfinite(top)), default=0.0)))  # more is a bug
    ax.grid(visible=True, color="0.9")
    ax.set_axisbelow(True)


# Others ----------------------------------------------------------------------------------------------


def _sparsity_figure(results: Results) -> Figure | None:
    """Speed-up over the share of rows selected: the paper's rule, and the default solver."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.6, 4.6), layout="constrained")
    axes = figure.subplots(1, 2)
    drawn = False
    for ax, chosen, title in zip(axes, ("paper", "default"), ("Paper's rule", "Default solver"), strict=True):
        for i, name in enumerate(results.datasets):
            family = results.families(name)[-1]
            points = _sparsity_points(results, name, family, chosen)
            if points:
                drawn = True
                shares, factors = zip(*points, strict=True)
                style = {"color": COLORS[i % len(COLORS)], "linestyle": LINE_STYLES[i % len(LINE_STYLES)]}
                # Colors and markers come round after seven; the second time they are paired otherwise.
                style["marker"] = MARKERS[(i + 3 * (i // len(COLORS))) % len(MARKERS)]
                style["markerfacecolor"] = style["color"] if family == "apgd" else "white"
                ax.plot(shares, factors, label=f"{name}, {FAMILIES[family]}", linewidth=1.4, **style)
        ax.set(xscale="log", yscale="log", title=title, xlabel="rows selected (% of all)")
        ax.set_ylabel("speed-up against no screening" if chosen == "paper" else "")
        for axis in (ax.xaxis, ax.yaxis):
            label_log_axis(axis)
        ax.axhline(1.0, color="0.6", linewidth=0.8, zorder=0)
        ax.grid(visible=True, color="0.9")
        ax.set_axisbelow(True)
    if not drawn:
        return None
    figure.suptitle("Speed-up against sparsity")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, handlelength=4.0, fontsize=9)
    return figure


def _sparsity_points(results: Results, name: str, family: str, chosen: str) -> list[tuple[float, float]]:
    algorithm = DEFAULT.name if chosen == "default" else f"{family}-{chosen}"
    points = []
    for setting in results.settings(name):
        selected, factor = results.n_selected(name, setting), results.speed_up(name, family, (setting,), algorithm)
        if selected and factor is not None:
            points.append((100.0 * selected / results.datasets[name]["n_features"], factor))
    return points


def _study_figure(results: Results) -> Figure | None:
    if results.study is None:
        return None
    from ..recovery import RecoveryReport, recovery_figure

    return recovery_figure(RecoveryReport.from_dict(results.study))


def _grid(count: int, *, height: float) -> tuple[Figure, list[Axes]]:
    """Panels in rows of at most four; places that are left over stay empty."""
    from matplotlib.figure import Figure

    columns = min(count, _COLUMNS)
    rows = -(-count // columns)
    figure = Figure(figsize=(max(3.3 * columns, 5.2), height * rows + 0.8), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for ax in axes[count:]:
        ax.set_axis_off()
    return figure, list(axes[:count])
