"""Selection by weights at a known or estimated noise."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

import groupowl as go
from groupowl.inference import SlopeSelector
from groupowl.weights import first_quantile

TRUE = 10


def make_data(n=200, d=150, q=3, *, seed=0, correlation=0.8, size=1.4):
    """Ten effects in random directions, in units of noise that is correlated between targets."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    root = np.linalg.cholesky(np.full((q, q), correlation) + (1.0 - correlation) * np.eye(q)).T
    U = rng.standard_normal((TRUE, q))
    U *= size * first_quantile(d, q, 0.1) / np.sqrt(n) / np.linalg.norm(U, axis=1, keepdims=True)
    return X, (X[:, :TRUE] @ U + rng.standard_normal((n, q))) @ root


@pytest.mark.filterwarnings("ignore:SlopeSelector controls", "ignore:No features were selected")
@pytest.mark.filterwarnings("ignore:Noise and selection have not settled")
@parametrize_with_checks([SlopeSelector()])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def rates(noise, seeds):
    found, power = [], []
    for seed in seeds:
        X, Y = make_data(seed=seed)
        support = SlopeSelector(noise=noise, tol=1e-4).fit(X, Y).get_support(indices=True)
        found.append(np.mean(support >= TRUE) if len(support) else 0.0)
        power.append(np.sum(support < TRUE) / TRUE)
    return np.mean(found), np.mean(power)


def test_false_discoveries_are_as_many_as_asked_for():
    """With correlated noise; without whitening there are several times as many."""
    rate, power = rates("estimate", range(30))
    assert rate < 0.13
    assert power > 0.9
    without, _ = rates(1.0, range(30))
    assert without > 0.3


def test_the_fit_is_the_one_of_white_noise_and_columns_of_norm_one():
    X, Y = make_data(correlation=0.3)
    selector = SlopeSelector(noise=2.0, fdr=0.2, tol=1e-10).fit(X, Y)
    centered = X - X.mean(axis=0)
    norms = np.linalg.norm(centered, axis=0)
    lam = first_quantile(150, 3, 0.2) * go.weights.chi_gauss(150, 3, 200, fdr=0.2)
    result = go.solve(centered / norms, (Y - Y.mean(axis=0)) / 2.0, lam, tol=1e-10)
    np.testing.assert_allclose(selector.lam_, lam)
    np.testing.assert_array_equal(selector.get_support(indices=True), result.support)
    np.testing.assert_allclose(selector.scores_, np.linalg.norm(result.B, axis=1), atol=1e-3)
    np.testing.assert_allclose(selector.coef_, 2.0 * (result.B / norms[:, None]).T, atol=1e-4)
    assert selector.estimator_.verify(X, Y / 2.0)


def test_coefficients_predict_on_the_scale_of_the_targets():
    X, Y = make_data(size=5.0)
    selector = SlopeSelector().fit(100.0 * X, Y + 7.0)
    predicted = 100.0 * X @ selector.coef_.T + selector.intercept_
    assert np.mean((Y + 7.0 - predicted) ** 2) < 0.3 * np.mean((Y - Y.mean(axis=0)) ** 2)


@pytest.mark.parametrize("n", [200, 340])  # noise from selections, and from all features
def test_a_mixture_of_targets_gives_the_same_selection(n):
    """Noise that is white stays so when it is turned."""
    X, Y = make_data(n=n, d=100 if n == 340 else 150)
    mixing = np.random.default_rng(1).standard_normal((3, 3))
    one, other = SlopeSelector(tol=1e-9).fit(X, Y), SlopeSelector(tol=1e-9).fit(X * 3.0 - 1.0, Y @ mixing)
    assert (one.n_rounds_ == 0) == (n == 340)
    np.testing.assert_array_equal(one.support_, other.support_)
    np.testing.assert_allclose(other.scores_, one.scores_, atol=1e-3)
    np.testing.assert_allclose(other.coef_, mixing.T @ one.coef_ / 3.0, atol=1e-3)
    np.testing.assert_allclose(other.noise_covariance_, mixing.T @ one.noise_covariance_ @ mixing, rtol=1e-6)


def test_kinds_of_data():
    X, Y = make_data()
    dense = SlopeSelector().fit(X, Y)
    np.testing.assert_array_equal(SlopeSelector().fit(sp.csr_array(X), Y).support_, dense.support_)
    np.testing.assert_array_equal(SlopeSelector().fit(X.astype(np.float32), Y).support_, dense.support_)
    named = SlopeSelector().fit(pd.DataFrame(X).add_prefix("g"), pd.DataFrame(Y, columns=["a", "b", "c"]))
    assert named.selected_features_.tolist() == [f"g{j}" for j in dense.get_support(indices=True)]
    assert named.to_frame().columns.tolist() == ["feature", "selected", "score", "coef_a", "coef_b", "coef_c"]
    flat, column = SlopeSelector().fit(X, Y[:, 0]), SlopeSelector().fit(X, Y[:, :1])
    assert (flat.coef_.shape, column.coef_.shape) == ((150,), (1, 150))
    assert isinstance(flat.intercept_, float)
    np.testing.assert_array_equal(flat.coef_, column.coef_[0])


def test_it_selects_in_a_pipeline_and_survives_pickling():
    X, Y = make_data()
    pipeline = make_pipeline(SlopeSelector(), go.GroupOWLRegressor(0.01)).fit(X, Y)
    assert pipeline[-1].n_features_in_ == pipeline[0].support_.sum()
    again = pickle.loads(pickle.dumps(pipeline[0]))
    np.testing.assert_array_equal(again.transform(X), pipeline[0].transform(X))


def test_summary_and_table(capsys):
    X, Y = make_data()
    selector = SlopeSelector().fit(X, Y)
    selector.summary()
    text = capsys.readouterr().out
    assert f"features   {selector.support_.sum()} of 150 selected" in text
    assert "10% of them false on average, if columns are independent" in text
    frame = selector.to_frame(sort=True)
    assert frame.score.is_monotonic_decreasing
    assert frame.selected.sum() == selector.support_.sum()
    empty = SlopeSelector(noise=1e6).fit(X, Y)
    empty.summary()
    assert "No feature is selected." in capsys.readouterr().out
    with pytest.raises(NotFittedError):
        SlopeSelector().summary()


def test_correlated_columns_are_named():
    X, Y = make_data()
    X[:, 40] = X[:, 20] + 0.3 * X[:, 40]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        SlopeSelector().fit(X, Y)
    (warning,) = caught
    assert "SlopeSelector controls the false discovery rate only" in str(warning.message)
    assert "columns 20 and 40 have a correlation of 0.9" in str(warning.message)
    assert "KnockoffSelector" in str(warning.message)
    assert warning.filename == __file__


def test_orthogonal_columns_have_weights_of_their_own():
    X, Y = make_data()
    selector = SlopeSelector(weights="chi", noise=1.0).fit(X, Y)
    np.testing.assert_allclose(selector.lam_, first_quantile(150, 3, 0.1) * go.weights.chi(150, 3))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"fdr": 0.0}, r"^fdr must .*got 0\.0"),
        ({"fdr": 1.5}, r"^fdr must .*got 1\.5"),
        ({"weights": "gaussian"}, r"^weights must be one of 'chi_gauss', 'chi'.*got 'gaussian'"),
        ({"noise": "known"}, r"^noise must be 'estimate'.*got 'known'"),
        ({"noise": [1.0, 2.0]}, r"^noise must be a standard deviation for each of 3 targets"),
        ({"max_rounds": 0}, r"^max_rounds must be at least 1, got 0"),
        ({"tol": -1.0}, r"^tol must .*got -1\.0"),
    ],
)
def test_bad_settings(settings, message):
    X, Y = make_data(40, 20)
    with pytest.raises(ValueError, match=message):
        SlopeSelector(**settings).fit(X, Y)


def test_bad_data():
    X, Y = make_data(40, 20)
    missing = Y.copy()
    missing[3, 1] = np.nan
    with pytest.raises(ValueError, match=r"^y has 1 NaN.*all targets must be observed"):
        SlopeSelector().fit(X, missing)
    with pytest.raises(ValueError, match="X: SlopeSelector needs the samples in memory"):
        SlopeSelector().fit(go.SufficientStatistics.from_arrays(X, Y), None)
    with pytest.raises(ValueError, match="the noise of the targets is singular"):
        SlopeSelector().fit(X, np.hstack([Y, Y[:, :1]]))
    with pytest.raises(ValueError, match="one row per sample"):
        SlopeSelector().fit(X, Y[:-1])


def test_a_fit_that_fails_leaves_an_earlier_one():
    X, Y = make_data(60, 20)
    selector = SlopeSelector().fit(X, Y)
    support = selector.support_
    with pytest.raises(ValueError, match="fdr"):
        selector.set_params(fdr=2.0).fit(X[:, :5], Y)
    assert selector.support_ is support
