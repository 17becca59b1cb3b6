"""Special cases that other packages solve, and what sample weights mean."""

import inspect
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import sortedl1
from sklearn.linear_model import MultiTaskLasso

import groupowl as go
from estimator_support import labelled_data, objective, regression_data
from groupowl.estimators import GroupOWLClassifier, GroupOWLRegressor
from support import REAL_FOLDER, lasso_logistic_regression, needs_real_folder

TIGHT = 1e-11
WEIGHTED_PEER = pytest.mark.skipif(
    "sample_weight" not in inspect.signature(MultiTaskLasso.fit).parameters,
    reason="this scikit-learn has neither sample weights nor sparse X for MultiTaskLasso",
)


def assert_multi_task_lasso(X, Y, *, alpha, fit_intercept, sample_weight=None, coef_atol=1e-6):
    """Objective to 1e-9 relative; coefficients too, where an error of the objective cannot hide in them."""
    ours = GroupOWLRegressor(alpha, weights="constant", fit_intercept=fit_intercept, tol=TIGHT)
    ours.fit(X, Y, sample_weight=sample_weight)
    peer = MultiTaskLasso(alpha=alpha, fit_intercept=fit_intercept, tol=1e-12, max_iter=200_000)
    peer.fit(X, Y) if sample_weight is None else peer.fit(X, Y, sample_weight=sample_weight)
    settings = {"sample_weight": sample_weight}
    d = X.shape[1]
    values = [objective(X, Y, model.coef_.T, model.intercept_, alpha, np.ones(d), **settings) for model in (ours, peer)]
    assert values[0] == pytest.approx(values[1], rel=1e-9)
    assert ours.coef_.any()
    if coef_atol is not None:
        scale = np.abs(peer.coef_).max()
        np.testing.assert_allclose(ours.coef_, peer.coef_, atol=coef_atol * scale)
        np.testing.assert_allclose(ours.intercept_, peer.intercept_, atol=10 * coef_atol * scale)
    return ours


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("shape", [(80, 20), (40, 70)])
def test_constant_weights_are_the_multi_task_lasso(fit_intercept, shape):
    """Independent columns: the support's are well conditioned."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal(shape) + 0.5
    Y = X[:, :4] @ rng.standard_normal((4, 3)) + rng.standard_normal((shape[0], 3)) + 2.0
    assert_multi_task_lasso(X, Y, alpha=0.4, fit_intercept=fit_intercept)


@WEIGHTED_PEER
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
def test_the_multi_task_lasso_with_sample_weights_and_sparse_data(fit_intercept, weighted, sparse):
    rng = np.random.default_rng(4)
    X = rng.standard_normal((60, 25)) * (rng.random((60, 25)) < 0.4)
    Y = X[:, :3] @ rng.standard_normal((3, 2)) + 0.5 * rng.standard_normal((60, 2)) + 1.0
    weight = rng.uniform(0.1, 3.0, 60) if weighted else None
    X = sp.csc_array(X) if sparse else X
    assert_multi_task_lasso(X, Y, alpha=0.05, fit_intercept=fit_intercept, sample_weight=weight)


def real_data(name):
    file = np.load(REAL_FOLDER / f"{name}.npz")
    if "data" in file:
        pieces = (file["data"].astype(float), file["indices"].astype(np.int32), file["indptr"])
        return sp.csr_array(pieces, shape=tuple(file["shape"])), file["Y"].astype(float)
    return file["X"].astype(float), file["Y"].astype(float)


@needs_real_folder
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("kind", ["sparse", "dense", "dense and weighted", "indoor"])
def test_the_multi_task_lasso_on_real_data(fit_intercept, kind):
    """The objective only: columns of real data are anything but well conditioned."""
    X, Y = real_data("indoorloc" if kind == "indoor" else "plantgo")
    if kind == "indoor":
        rows = np.random.default_rng(0).choice(len(X), 1500, replace=False)
        X, Y = np.where(X[rows] == 100, 0.0, (X[rows] + 105) / 105), (Y[rows] - Y[rows].mean(axis=0)) / 100
    elif kind != "sparse":
        X = X.toarray()
    weight = np.random.default_rng(1).uniform(0.2, 2.0, len(Y)) if "weighted" in kind else None
    if (weight is not None or sp.issparse(X)) and WEIGHTED_PEER.args[0]:
        pytest.skip(WEIGHTED_PEER.kwargs["reason"])
    scale = GroupOWLRegressor(weights="constant", fit_intercept=fit_intercept).fit(X, Y, sample_weight=weight).alpha_
    ours = assert_multi_task_lasso(
        X, Y, alpha=3 * scale, fit_intercept=fit_intercept, sample_weight=weight, coef_atol=None
    )
    assert ours.verify(X, Y, weight)


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("shape", ["oscar", "bh", "linear"])
def test_one_task_is_slope(shape, fit_intercept):
    """sortedl1 minimizes 1/(2n)||y - Xb - b0||^2 + alpha sum_i lam_i |b|_[i]."""
    rng = np.random.default_rng(6)
    X = rng.standard_normal((60, 30)) + 0.3
    y = X[:, :4] @ np.array([2.0, -1.5, 1.0, 0.5]) + 0.5 * rng.standard_normal(60) + 1.0
    weights = getattr(go.weights, shape)(30)
    ours = GroupOWLRegressor(weights=shape, fit_intercept=fit_intercept, tol=TIGHT).fit(X, y)
    peer = sortedl1.Slope(
        alpha=ours.alpha_,
        lam=weights,
        fit_intercept=fit_intercept,
        centering="none",
        scaling="none",
        tol=1e-12,
        max_iter=1_000_000,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of the peer, not ours
        peer.fit(X, y)
    coef, intercept = np.ravel(peer.coef_), np.ravel(peer.intercept_)[0] if fit_intercept else 0.0
    values = [
        objective(X, y[:, None], np.reshape(b, (-1, 1)), b0, ours.alpha_, weights)
        for b, b0 in ((ours.coef_, ours.intercept_), (coef, intercept))
    ]
    assert values[0] == pytest.approx(values[1], rel=1e-9)
    np.testing.assert_allclose(ours.coef_, coef, atol=1e-6 * np.abs(coef).max())
    assert ours.get_support().any()


def test_two_classes_are_binary_logistic():
    """Our alpha times sqrt(2) is the other's alpha; scikit-learn sums over samples."""
    X, y = labelled_data(n=80, d=10, n_classes=2)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    alpha = 0.05
    ours = GroupOWLClassifier(alpha * np.sqrt(2), weights="constant", tol=TIGHT).fit(X, y)
    peer = lasso_logistic_regression(C=1 / (alpha * len(y)), tol=1e-12, max_iter=500_000).fit(X, y)
    np.testing.assert_allclose(ours.coef_, peer.coef_, atol=1e-5)
    np.testing.assert_allclose(ours.intercept_, peer.intercept_, atol=1e-5)
    np.testing.assert_allclose(ours.predict_proba(X), peer.predict_proba(X), atol=1e-5)
    assert 0 < ours.get_support().sum() < 10


# Sample weights -----------------------------------------------------------------------------------------


def small_weights(n, seed=0):
    return np.random.default_rng(seed).integers(0, 3, n)


@pytest.mark.parametrize("standardize", [False, True])
@pytest.mark.parametrize("unpenalized", [None, [2]])
@pytest.mark.parametrize("cls", [GroupOWLRegressor, GroupOWLClassifier])
def test_weights_are_repetitions(cls, standardize, unpenalized):
    """2 is the sample twice, 0 is no sample."""
    X, y = regression_data(2, n=80) if cls is GroupOWLRegressor else labelled_data(2, n=80)
    counts = small_weights(len(X))
    settings = {"standardize": standardize, "unpenalized": unpenalized, "tol": TIGHT}
    weighted = cls(**settings).fit(X, y, sample_weight=counts)
    repeated = cls(**settings).fit(np.repeat(X, counts, axis=0), np.repeat(y, counts, axis=0))
    assert weighted.alpha_ == pytest.approx(repeated.alpha_, rel=1e-9)
    assert weighted.solve_result_.primal == pytest.approx(repeated.solve_result_.primal, rel=1e-9)
    scale = np.abs(repeated.coef_).max()
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=1e-4 * scale)
    np.testing.assert_allclose(weighted.intercept_, repeated.intercept_, atol=1e-3 * scale)
    unweighted = cls(**settings).fit(X, y)
    assert np.abs(weighted.coef_ - unweighted.coef_).max() > 1e-2 * scale


@pytest.mark.parametrize("cls", [GroupOWLRegressor, GroupOWLClassifier])
def test_the_scale_of_weights_does_not_matter(cls):
    X, y = regression_data() if cls is GroupOWLRegressor else labelled_data()
    weight = np.random.default_rng(0).uniform(0.1, 2.0, len(X))
    one, other = (cls(tol=TIGHT).fit(X, y, sample_weight=factor * weight) for factor in (1.0, 1024.0))
    np.testing.assert_allclose(one.coef_, other.coef_, rtol=1e-9, atol=1e-12)


def test_balanced_classes_of_repeated_samples():
    X, y = labelled_data(2, n=80)
    counts = small_weights(len(X))
    settings = {"class_weight": "balanced", "tol": TIGHT, "alpha": 0.02}
    weighted = GroupOWLClassifier(**settings).fit(X, y, sample_weight=counts)
    repeated = GroupOWLClassifier(**settings).fit(np.repeat(X, counts, axis=0), np.repeat(y, counts))
    assert weighted.solve_result_.primal == pytest.approx(repeated.solve_result_.primal, rel=1e-9)
