"""Ridges to choose from in cross-validation."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.base import clone

import groupowl as go

RIDGES = [0.0, 0.05, 1.0]
SETTINGS = {"alphas": 8, "eps": 0.02, "cv": 3}


@pytest.fixture(scope="module")
def data():
    """Many small effects of correlated columns, for which a ridge is right."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 20)) + 2.0 * rng.standard_normal((40, 1))
    Y = X @ (0.2 + 0.05 * rng.standard_normal((20, 2))) + 2.0 * rng.standard_normal((40, 2))
    return X, Y


@pytest.fixture(scope="module")
def search(data):
    return go.GroupOWLRegressorCV(weights=["oscar", "constant"], ridge=RIDGES, **SETTINGS).fit(*data)


def test_a_list_is_as_good_as_searches_one_by_one(search, data):
    X, Y = data
    apart = []
    for weights in ("oscar", "constant"):
        for ridge in RIDGES:
            apart.append(go.GroupOWLRegressorCV(weights=weights, ridge=ridge, **SETTINGS).fit(X, Y))
    assert len(search.search_results_) == len(apart) == 6
    for report, own in zip(search.search_results_, apart, strict=True):
        np.testing.assert_allclose(report["score_path"], own.score_path_, rtol=1e-9)
        np.testing.assert_array_equal(report["alphas"], own.alphas_)
        assert report["ridge"] == own.ridge
        assert not hasattr(own, "ridge_")
    best = apart[int(np.argmax([own.best_score_ for own in apart]))]
    assert search.ridge_ == best.ridge
    assert search.ridge_ > 0.0  # or the rest says nothing
    np.testing.assert_array_equal(search.weights_, best.weights_)
    np.testing.assert_allclose(search.coef_, best.coef_, rtol=0.0, atol=1e-7)
    single = go.GroupOWLRegressor(search.alpha_, weights=search.weights_, ridge=search.ridge_, tol=1e-10).fit(X, Y)
    np.testing.assert_allclose(search.coef_, single.coef_, rtol=0.0, atol=1e-4)


def test_it_is_verified_saved_and_shown(search, data, tmp_path, capsys):
    X, Y = data
    assert search.verify(X, Y)
    go.save(search, tmp_path / "model")
    other = go.load(tmp_path / "model")
    assert other.ridge == RIDGES
    assert other.ridge_ == search.ridge_
    assert other.verify(X, Y)
    other.ridge_ = 0.5
    assert not other.verify(X, Y)
    frame = search.search_frame()
    chosen = frame[frame["chosen"]]
    assert len(chosen) == 1
    assert chosen["ridge"].item() == search.ridge_
    assert sorted(set(frame["ridge"])) == RIDGES
    search.summary()
    assert f"oscar, ridge {search.ridge_:g}" in capsys.readouterr().out
    assert clone(search).ridge == RIDGES


@pytest.mark.parametrize("kind", ["labels", "two classes", "cox"])
def test_other_estimators_take_a_list(kind, data):
    X, Y = data
    classifier = go.GroupOWLClassifierCV(ridge=(0.0, 0.1), **SETTINGS)
    if kind == "cox":
        y = np.array([(True, t) for t in np.exp(0.1 * Y[:, 0])], dtype=[("event", bool), ("time", float)])
        model = go.GroupOWLCoxCV(ridge=(0.0, 0.1), **SETTINGS).fit(X, y)
    else:
        y = 1 * (Y > 0.0) if kind == "labels" else np.where(Y[:, 0] > 0.0, "up", "down")
        model = classifier.fit(X, y)
    assert model.ridge_ in (0.0, 0.1)
    assert model.verify(X, y)


def test_a_ridge_of_zero_in_a_list_takes_the_same_way(data):
    plain = go.GroupOWLRegressorCV(**SETTINGS).fit(*data)
    listed = go.GroupOWLRegressorCV(ridge=[0.0], **SETTINGS).fit(*data)
    np.testing.assert_array_equal(plain.coef_, listed.coef_)
    np.testing.assert_array_equal(plain.score_path_, listed.score_path_)
    assert listed.ridge_ == 0.0


def test_statistics_of_folds_take_a_list():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((400, 5))
    Y = X[:, :2] + rng.standard_normal((400, 2))
    parts = [go.SufficientStatistics.from_arrays(X[k::4], Y[k::4]) for k in range(4)]
    model = go.GroupOWLRegressorCV(ridge=[0.0, 0.5], alphas=5).fit(parts)
    assert len(model.search_results_) == 2
    assert model.ridge_ == 0.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"ridge": []}, "empty list"),
        ({"ridge": [0.1, -1.0]}, "ridge must be"),
        ({"ridge": [0.1, "a"]}, "ridge must be"),
        ({"ridge": [0.0, 0.1], "selection": "bic"}, "cannot compare ridges"),
    ],
)
def test_what_is_refused(arguments, message, data):
    with pytest.raises((TypeError, ValueError), match=message):
        go.GroupOWLRegressorCV(**arguments).fit(*data)
    with warnings.catch_warnings(), pytest.raises((TypeError, ValueError), match="ridge"):
        go.GroupOWLRegressor(ridge=[0.0, 0.1]).fit(*data)
