"""Relaxed fits: the selected features without penalty."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LinearRegression, LogisticRegression

import groupowl.model as model_module
from estimator_support import labelled_data, regression_data
from groupowl.estimators import GroupOWLClassifier, GroupOWLRegressor
from groupowl.model import build_model, relaxed_coefficients


@pytest.mark.parametrize("standardize", [False, True])
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_regression_is_least_squares_on_the_support(standardize, fit_intercept, weighted):
    X, Y = regression_data(n=80)
    weight = np.random.default_rng(0).uniform(0.1, 2.0, 80) if weighted else None
    model = GroupOWLRegressor(0.5, relaxed=True, standardize=standardize, fit_intercept=fit_intercept)
    model.fit(X, Y, sample_weight=weight)
    plain = GroupOWLRegressor(0.5, standardize=standardize, fit_intercept=fit_intercept).fit(X, Y, sample_weight=weight)
    support = plain.get_support()
    assert 0 < support.sum() < 30
    np.testing.assert_array_equal(model.get_support(), support)
    np.testing.assert_array_equal(model.penalized_coef_, plain.coef_)
    np.testing.assert_array_equal(model.penalized_intercept_, plain.intercept_)
    peer = LinearRegression(fit_intercept=fit_intercept).fit(X[:, support], Y, sample_weight=weight)
    np.testing.assert_allclose(model.coef_[:, support], peer.coef_, atol=1e-9)
    np.testing.assert_allclose(model.intercept_, peer.intercept_, atol=1e-8)


@pytest.mark.parametrize("through_gram", [False, True])
def test_collinear_columns_get_the_solution_of_minimum_norm(through_gram, monkeypatch):
    X, Y = regression_data(n=40, d=10)
    X = np.hstack([X, X])
    if through_gram:
        monkeypatch.setattr(model_module, "_MOST_ENTRIES", 0)
    model = build_model(X, Y, loss="squared")
    B, intercept, _ = relaxed_coefficients(model, np.arange(20))
    centered = X - X.mean(axis=0)
    expected = np.linalg.pinv(centered) @ (Y - Y.mean(axis=0))
    np.testing.assert_allclose(B, expected, atol=1e-8)
    np.testing.assert_allclose(intercept, Y.mean(axis=0) - X.mean(axis=0) @ expected, atol=1e-7)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("sparse", [False, True])
def test_classification_is_logistic_regression_on_the_support(n_classes, sparse):
    X, y = labelled_data(n=300, d=12, n_classes=n_classes)
    X = np.where(np.abs(X) > 1.0, X, 0.0)
    data = sp.csr_array(X) if sparse else X
    model = GroupOWLClassifier(0.05, relaxed=True).fit(data, y)
    support = model.get_support()
    assert 0 < support.sum() < 12
    np.testing.assert_array_equal(support, GroupOWLClassifier(0.05).fit(data, y).get_support())
    peer = LogisticRegression(C=np.inf, tol=1e-10, max_iter=10_000).fit(X[:, support], y)
    # The ridge is 1e-6 of the curvature: coefficients differ by about that.
    np.testing.assert_allclose(model.predict_proba(data), peer.predict_proba(X[:, support]), atol=1e-4)
    assert model.verify(data, y)


def test_the_gradient_of_the_relaxed_fit_is_that_of_the_ridge():
    X, y = labelled_data(n=300, d=12)
    model = build_model(X, np.eye(3)[y], loss="multinomial")
    support = np.array([0, 2, 5])
    B, intercept, decides = relaxed_coefficients(model, support)
    assert not decides
    Z = X @ B + intercept
    P = np.exp(Z) / np.exp(Z).sum(axis=1, keepdims=True)
    gradient = (X - X.mean(axis=0)).T @ (P - np.eye(3)[y]) / len(y)
    null = np.bincount(y) / len(y)
    curvature = np.mean(null * (1 - null)) * (X[:, support].var(axis=0)).mean()
    np.testing.assert_allclose(gradient[support], -1e-6 * curvature * B[support], atol=1e-9 * curvature)
    np.testing.assert_allclose((P - np.eye(3)[y]).mean(axis=0), 0.0, atol=1e-9)
    assert not np.delete(B, support, axis=0).any()


def test_separated_classes_warn_that_the_ridge_decides():
    X, y = labelled_data(n=60, d=12, n_classes=2)
    X[:, 0] = np.where(y == 1, 2.0, -2.0) + 0.1 * X[:, 0]
    with pytest.warns(UserWarning, match="decided by a ridge .* Raise alpha, or use relaxed=False") as caught:
        model = GroupOWLClassifier(0.05, relaxed=True).fit(X, y)
    assert caught[0].filename == __file__
    assert np.isfinite(model.coef_).all()
    assert model.score(X, y) == 1.0


@pytest.mark.parametrize("cls", [GroupOWLRegressor, GroupOWLClassifier])
def test_nothing_selected_is_the_null_model(cls):
    X, y = regression_data() if cls is GroupOWLRegressor else labelled_data()
    model = cls(1e3, relaxed=True).fit(X, y)
    assert not model.coef_.any()
    np.testing.assert_allclose(model.intercept_, model.penalized_intercept_, atol=1e-12)


@pytest.mark.parametrize("cls", [GroupOWLRegressor, GroupOWLClassifier])
@pytest.mark.parametrize("standardize", [False, True])
def test_unpenalized_columns_are_fitted_with_the_others(cls, standardize):
    """The gradient vanishes on the support and on the unpenalized columns, up to the ridge."""
    X, y = regression_data(n=200) if cls is GroupOWLRegressor else labelled_data(n=300, d=12)
    model = cls(0.5 if cls is GroupOWLRegressor else 0.1, relaxed=True, unpenalized=[1], standardize=standardize)
    model.fit(X, y)
    support = model.get_support()
    assert support[1]
    assert 1 < support.sum() < X.shape[1]
    residual = y - model.predict(X) if cls is GroupOWLRegressor else np.eye(3)[y] - model.predict_proba(X)
    np.testing.assert_allclose(X[:, support].T @ residual / len(X), 0.0, atol=1e-4)
    assert model.verify(X, y)
