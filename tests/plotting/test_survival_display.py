"""Survival by predicted risk: Kaplan and Meier by hand, means of predicted curves, groups, and what is drawn."""

import matplotlib
import numpy as np
import pytest

import groupowl as go
from groupowl.plotting import SurvivalDisplay
from groupowl.plotting.risk_groups import kaplan_meier

matplotlib.use("Agg")
import matplotlib.pyplot as plt


def make_data(q=1, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((90, 6))
    times = np.ceil(20 * rng.exponential(np.exp(-X[:, :q] - X[:, [1]])))
    ends = np.ceil(40 * rng.exponential(size=(90, 1)))
    pairs = np.stack([times <= ends, np.minimum(times, ends)], axis=2)
    return X, pairs.reshape(90, 2 * q), np.array(["a", "b", "c"] * 30)


def by_hand(time, event, weight, at):
    """The product over the times of events until then."""
    share = 1.0
    for moment in np.unique(time[event & (time <= at)]):
        share *= 1.0 - weight[event & (time == moment)].sum() / weight[time >= moment].sum()
    return share


@pytest.mark.parametrize("seed", range(5))
def test_kaplan_and_meier(seed):
    rng = np.random.default_rng(seed)
    time, event, weight = rng.integers(1, 9, 30) * 1.0, rng.random(30) < 0.6, rng.uniform(0.1, 2.0, 30)
    at = np.array([0.0, 0.5, 1.0, 3.0, 7.5, 8.0, 20.0])
    expected = [by_hand(time, event, weight, moment) for moment in at]
    np.testing.assert_allclose(kaplan_meier(time, event, weight, at), expected, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("has_strata", [False, True])
@pytest.mark.parametrize(("q", "endpoint"), [(1, 0), (2, 1)])
def test_groups_are_samples_by_risk(q, endpoint, has_strata):
    X, y, labels = make_data(q)
    strata = labels if has_strata else None
    weight = np.random.default_rng(1).uniform(0.5, 2.0, 90)
    weight[:4] = 0.0
    model = go.GroupOWLCox().fit(X, y, sample_weight=weight, strata=strata)
    display = SurvivalDisplay.undrawn(model, X, y, sample_weight=weight, strata=strata, endpoint=endpoint)
    z = model.predict(X).reshape(90, -1)[:, endpoint]
    assert [group.name for group in display.groups] == ["low", "middle", "high"]
    assert sum(group.n_samples for group in display.groups) == 86
    order, start = 4 + np.argsort(z[4:]), 0
    for group in display.groups:
        chosen = order[start : start + group.n_samples]
        start += group.n_samples
        assert 27 <= group.n_samples <= 30
        event, time = y[chosen, 2 * endpoint] == 1, y[chosen, 2 * endpoint + 1]
        assert group.n_events == event.sum()
        np.testing.assert_allclose(group.observed, kaplan_meier(time, event, weight[chosen], group.times))
        parts = None if strata is None else strata[chosen]
        curves = model.predict_survival_function(X[chosen], group.times, parts).reshape(len(chosen), -1, q)
        expected = np.average(curves[:, :, endpoint], axis=0, weights=weight[chosen])
        np.testing.assert_allclose(group.predicted, expected, rtol=1e-10)
        observed, _ = group.medians
        is_reached = group.observed <= 0.5
        assert np.isnan(observed) if not is_reached.any() else observed == group.times[is_reached][0]
    if q == 1:
        assert display.concordance == model.score(X, y, weight, strata)


def test_a_model_that_tells_nothing_has_one_group():
    X, y, _ = make_data()
    display = SurvivalDisplay.undrawn(go.GroupOWLCox(alpha=1e6).fit(X, y), X, y)
    (group,) = display.groups
    assert (group.name, group.n_samples, display.concordance) == ("all", 90, 0.5)


def test_what_is_drawn():
    X, y, _ = make_data()
    model = go.GroupOWLCoxCV(alphas=5, eps=0.1).fit(X, y)
    ax = plt.subplots()[1]
    display = SurvivalDisplay.from_estimator(model, X, y, ax=ax, n_groups=2)
    assert display.ax_ is ax
    assert len(display.lines_) == 2
    for line, group in zip(display.lines_, display.groups, strict=True):
        np.testing.assert_array_equal(line.get_data(), (group.times, group.observed))
    names = [text.get_text() for text in ax.get_legend().get_texts()]
    assert names[1].startswith("high risk: 45 samples, ")


def test_what_cannot_be_drawn():
    X, y, labels = make_data()
    model = go.GroupOWLCox().fit(X, y)
    with pytest.raises(TypeError, match=r"GroupOWLRegressor has no baseline_times_\. Use GroupOWLCox or GroupOWLCoxCV"):
        SurvivalDisplay.undrawn(go.GroupOWLRegressor().fit(X, y[:, 1]), X, y)
    with pytest.raises(ValueError, match=r"endpoint must be between 0 and 0, got 1"):
        SurvivalDisplay.undrawn(model, X, y, endpoint=1)
    with pytest.raises(ValueError, match=r"n_groups must be"):
        SurvivalDisplay.undrawn(model, X, y, n_groups=0)
    with pytest.raises(ValueError, match=r"was fitted with no strata\. Leave strata out"):
        SurvivalDisplay.undrawn(model, X, y, strata=labels)
