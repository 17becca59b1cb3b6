"""Pictures show the numbers of the history, and can be told apart."""

import builtins
import warnings
from dataclasses import replace

import matplotlib
import numpy as np
import pytest

import groupowl as go
from groupowl.plotting import label_log_axis, plot_gap, plot_rows_kept

matplotlib.use("Agg")
import matplotlib.pyplot as plt

PLOTS = [plot_gap, plot_rows_kept]


@pytest.fixture(scope="module")
def histories():
    data = go.datasets.make_correlated_groups(40, 300, 3, random_state=0)
    lam = 0.4 * go.lam_max(data.X, data.Y, "oscar") * go.weights.oscar(300)
    return {rule: go.solve(data.X, data.Y, lam, screening=rule) for rule in ("none", "paper", "safe")}


@pytest.mark.parametrize("plot", PLOTS)
@pytest.mark.parametrize("x", ["seconds", "passes"])
def test_a_curve_per_solve_with_labels(plot, x, histories):
    ax = plot(histories, x=x)
    assert [line.get_label() for line in ax.get_lines()] == list(histories)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == list(histories)
    assert ax.get_yscale() == "log"
    assert x in {"seconds", "passes"} & set(ax.get_xlabel().replace("(", "").replace(")", "").split())
    assert ax.get_title()
    assert ax.get_ylabel()
    for line, result in zip(ax.get_lines(), histories.values(), strict=True):
        np.testing.assert_array_equal(line.get_xdata()[:-1], getattr(result.history, x))
        assert line.get_xdata()[-1] == {"seconds": result.seconds, "passes": result.n_passes}[x]


def test_gap_is_relative(histories):
    null_loss = histories["none"].history.primal[0]
    ax = plot_gap(histories, relative_to=null_loss)
    gaps = ax.get_lines()[0].get_ydata() * null_loss
    np.testing.assert_allclose(gaps[:-1], histories["none"].history.gap)
    assert gaps[-1] == pytest.approx(histories["none"].gap)
    assert ax.get_ylabel() == "relative duality gap"
    assert plot_gap(histories).get_ylabel() == "duality gap"


def test_rows_kept_are_those_of_the_history(histories):
    ax = plot_rows_kept(histories)
    for line, result in zip(ax.get_lines(), histories.values(), strict=True):
        np.testing.assert_array_equal(line.get_ydata()[:-1], result.history.n_active)
    none, _, safe = (line.get_ydata() for line in ax.get_lines())
    assert set(none) == {300}
    assert safe[-1] == len(histories["safe"].active) < 300


@pytest.mark.parametrize("plot", PLOTS)
def test_curves_differ_without_color(plot, histories):
    many = {f"solve {i}": histories["safe"] for i in range(6)}
    lines = plot(many).get_lines()
    assert len({line.get_color() for line in lines}) == len(many)
    assert len({str(line._unscaled_dash_pattern) for line in lines}) == len(many)
    assert len({line.get_marker() for line in lines}) == len(many)


@pytest.mark.parametrize("plot", PLOTS)
def test_draws_where_it_is_told(plot, histories):
    figure, ax = plt.subplots()
    assert plot(histories, ax=ax) is ax
    assert plt.get_fignums() == [figure.number]


@pytest.mark.parametrize("plot", PLOTS)
def test_zeros_have_a_place_on_a_logarithmic_scale(plot, histories):
    """At lam_max the gap is 0 from the start, and screening may leave no row at all."""
    ended = replace(histories["safe"], gap=0.0, active=np.array([], dtype=np.intp))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ax = plot({"solve": ended})
        ax.figure.canvas.draw()
    assert ax.get_lines()[0].get_ydata().min() > 0


def visible_tick_labels(axis):
    low, high = sorted(axis.get_view_interval())
    ticks = [*axis.get_major_ticks(), *axis.get_minor_ticks()]
    return [tick.label1 for tick in ticks if low <= tick.get_loc() <= high and tick.label1.get_text()]


@pytest.mark.parametrize("plot", PLOTS)
def test_texts_do_not_overlap(plot, histories):
    """Title, axis labels and tick labels keep apart."""
    ax = plot(histories)
    ax.figure.canvas.draw()
    ticks = [*visible_tick_labels(ax.xaxis), *visible_tick_labels(ax.yaxis)]
    texts = [ax.title, ax.xaxis.label, ax.yaxis.label, *ticks]
    boxes = [text.get_window_extent() for text in texts]
    inside = ax.figure.bbox
    assert len(ticks) > 3
    for i, box in enumerate(boxes):
        assert inside.x0 <= box.x0 <= box.x1 <= inside.x1
        assert inside.y0 <= box.y0 <= box.y1 <= inside.y1
        assert not box.count_overlaps(boxes[i + 1 :]), texts[i].get_text()


@pytest.mark.parametrize("plot", PLOTS)
def test_refuses_what_it_cannot_draw(plot, histories):
    with pytest.raises(ValueError, match="x must be one of 'seconds', 'passes'; got 'hours'"):
        plot(histories, x="hours")
    with pytest.raises(ValueError, match="histories is empty"):
        plot({})
    with pytest.raises(ValueError, match="relative_to"):
        plot_gap(histories, relative_to=0.0)


@pytest.mark.parametrize("plot", PLOTS)
def test_without_matplotlib_says_what_to_install(plot, histories, monkeypatch):
    real_import = builtins.__import__

    def without_matplotlib(name, *args, **kwargs):
        if name.partition(".")[0] == "matplotlib":
            raise ImportError(f"No module named {name!r}", name=name)
        return real_import(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without_matplotlib)
    with pytest.raises(ImportError, match=r'pip install "groupowl\[plot\]"'):
        plot(histories)


@pytest.mark.parametrize("top", np.geomspace(2e-4, 2e-2, 21))
def test_labels_of_short_times_do_not_overlap(histories, top):
    """A fast solver ends after a millisecond, and its labels have many decimals."""
    result = histories["safe"]
    seconds = 0.98 * top * np.linspace(0.0, 1.0, len(result.history))
    fast = replace(result, seconds=top, history=replace(result.history, seconds=seconds))
    figure, axes = plt.subplots(figsize=(5.2, 4.6), layout="constrained")
    ax = plot_gap({"auto": fast}, x="seconds", ax=axes)
    figure.draw_without_rendering()
    low, high = ax.get_xlim()
    boxes = [t.label1.get_window_extent() for t in ax.xaxis.get_major_ticks() if low <= t.get_loc() <= high]
    plt.close(figure)
    assert len(boxes) >= 3
    for i, box in enumerate(boxes):
        assert not box.count_overlaps(boxes[i + 1 :])


@pytest.mark.parametrize("low", [1.1e-4, 1e-3, 0.013, 0.9, 40.0])
@pytest.mark.parametrize("span", [3.0, 30.0, 190.0, 500.0, 950.0, 1e3, 4e3, 1e5, 1e7])
def test_numbers_on_a_logarithmic_axis_do_not_overlap(low, span):
    """In a panel as wide as those of the demo, whatever the times were."""
    figure, ax = plt.subplots(figsize=(5.2, 4.6), layout="constrained")
    ax.set_xscale("log")
    ax.set_xlim(low, low * span)
    label_log_axis(ax.xaxis)
    figure.draw_without_rendering()
    shown = [t for t in ax.xaxis.get_major_ticks() if low <= t.get_loc() <= low * span and t.label1.get_text()]
    assert len(shown) >= 2
    boxes = [tick.label1.get_window_extent() for tick in shown]
    for i, box in enumerate(boxes):
        assert not box.count_overlaps(boxes[i + 1 :])
