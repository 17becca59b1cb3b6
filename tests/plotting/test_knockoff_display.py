"""Knockoff displays show the statistics of the selector and its threshold."""

import matplotlib
import numpy as np
import pytest
from sklearn.linear_model import Lasso

from groupowl.inference import KnockoffSelector
from groupowl.plotting import KnockoffDisplay

matplotlib.use("Agg")
import matplotlib.pyplot as plt


def fitted(size=1.0, fdr=0.3, **parameters):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 30))
    Y = size * X[:, :10] @ rng.normal(size=(10, 2)) + rng.normal(size=(150, 2))
    return KnockoffSelector(fdr, random_state=0, **parameters).fit(X, Y)


def legend_of(display):
    return [text.get_text() for text in display.ax_.get_legend().get_texts()]


def test_bars_are_statistics_by_falling_size():
    selector = fitted()
    display = KnockoffDisplay.from_estimator(selector)
    widths = np.array([bar.get_width() for bar in display.bars_])
    np.testing.assert_array_equal(widths, selector.scores_[display.features])
    assert np.all(np.diff(np.abs(widths)) <= 0.0)
    np.testing.assert_array_equal(np.sort(display.features), np.flatnonzero(selector.scores_))
    np.testing.assert_array_equal(display.selected, widths >= selector.threshold_)
    assert [label.get_text() for label in display.ax_.get_yticklabels()] == [f"x{j}" for j in display.features]
    assert {"selected", f"threshold = {selector.threshold_:.3g}"} <= set(legend_of(display))
    assert ("in favor of the knockoff" in legend_of(display)) == bool((widths < 0.0).any())


def test_mean_e_values_and_fewer_bars():
    selector = fitted(n_repeats=3)
    display = KnockoffDisplay.from_estimator(selector, max_features=4, feature_names=[f"gene {j}" for j in range(30)])
    assert len(display.bars_) == 4
    assert display.ax_.get_xlabel() == "mean e-value of 3 draws"
    assert "4 largest of" in display.ax_.get_title()
    assert display.feature_names[0] == f"gene {display.features[0]}"


@pytest.mark.filterwarnings("ignore:Nothing can be selected")
def test_without_a_selection():
    with pytest.warns(UserWarning, match="Nothing is selected"):
        selector, nothing = fitted(size=0.0, fdr=0.01), fitted(statistic=lambda X, C, y: np.zeros(30))
    display = KnockoffDisplay.from_estimator(selector)
    assert not any("threshold" in text for text in legend_of(display))
    display = KnockoffDisplay.from_estimator(nothing)
    assert display.bars_ is None
    assert "No feature, and no knockoff" in display.ax_.texts[0].get_text()


def test_own_axes_and_bad_input():
    selector = fitted()
    figure, ax = plt.subplots()
    assert KnockoffDisplay.from_estimator(selector, ax=ax).figure_ is figure
    with pytest.raises(TypeError, match=r"has no statistics_[.] Use KnockoffSelector"):
        KnockoffDisplay.from_estimator(Lasso().fit([[1.0]], [1.0]))
    with pytest.raises(ValueError, match="max_features"):
        KnockoffDisplay.from_estimator(selector, max_features=0)
