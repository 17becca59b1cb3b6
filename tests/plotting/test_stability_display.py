"""Stability displays show the numbers of the selector, the threshold, and what is undecided."""

import matplotlib
import numpy as np
import pytest

import groupowl as go
from groupowl.inference import StabilitySelector
from groupowl.plotting import StabilityDisplay

matplotlib.use("Agg")
import matplotlib.pyplot as plt


def fitted(method="pairs", tol=1e-9, **params):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 30))
    Y = X[:, :3] @ rng.standard_normal((3, 2)) + rng.standard_normal((80, 2))
    estimator = go.GroupOWLRegressor(weights="constant", tol=tol)
    given = {"max_false": 2.0, "n_pairs": 6, "alphas": 8, "random_state": 0} | params
    return StabilitySelector(estimator=estimator, method=method, **given).fit(X, Y)


def legend_of(display):
    return [text.get_text() for text in display.ax_.get_legend().get_texts()]


def test_paths():
    selector = fitted()
    display = StabilityDisplay.from_estimator(selector)
    assert display.ax_.get_xscale() == "log"
    left, right = display.ax_.get_xlim()
    assert left > right
    for line, j in zip(display.lines_, display.features, strict=True):
        np.testing.assert_array_equal(line.get_ydata(), selector.frequencies_[j])
        np.testing.assert_array_equal(line.get_xdata(), selector.alphas_)
    np.testing.assert_array_equal(display.features[display.selected], np.flatnonzero(selector.support_))
    assert f"threshold = {selector.threshold_:.3g}" in legend_of(display)
    assert "undecided" not in legend_of(display)
    assert {f"x{j}" for j in np.flatnonzero(selector.support_)} <= set(legend_of(display))


def test_frequencies():
    selector = fitted()
    display = StabilityDisplay.from_estimator(selector, kind="frequencies", max_features=5)
    widths = [bar.get_width() for bar in display.bars_]
    np.testing.assert_allclose(widths, np.sort(selector.scores_)[::-1][:5])
    assert "selected" in legend_of(display)


@pytest.mark.parametrize("kind", ["paths", "frequencies"])
def test_undecided_entries_are_shown(kind):
    selector = fitted(tol=0.05, n_selected=20, max_false=20.0)
    assert (selector.upper_frequencies_ > selector.frequencies_).any()
    assert "undecided" in legend_of(StabilityDisplay.from_estimator(selector, kind=kind))


@pytest.mark.parametrize("kind", ["paths", "frequencies"])
def test_integrals(kind):
    selector = fitted("integrated")
    display = StabilityDisplay.from_estimator(selector, kind=kind)
    has_threshold = any("threshold" in text for text in legend_of(display))
    assert has_threshold == (kind == "frequencies")


@pytest.mark.parametrize("kind", ["paths", "frequencies"])
def test_nothing_to_show_is_said(kind):
    selector = fitted(alphas=[1e6])
    display = StabilityDisplay.from_estimator(selector, kind=kind)
    assert "No half returns any feature." in [text.get_text() for text in display.ax_.texts]


def test_axes_of_ones_own_and_bad_input():
    selector = fitted()
    _, ax = plt.subplots()
    assert StabilityDisplay.from_estimator(selector, ax=ax).ax_ is ax
    with pytest.raises(ValueError, match="kind must be one of 'paths', 'frequencies'"):
        StabilityDisplay.from_estimator(selector, kind="bars")
    with pytest.raises(TypeError, match=r"has no upper_frequencies_\. Use StabilitySelector"):
        StabilityDisplay.from_estimator(go.GroupOWLRegressor().fit(np.eye(4), np.arange(4.0)))
