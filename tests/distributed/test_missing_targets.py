"""Missing targets and weights of entries on Dask: the answers of arrays in memory, and what is refused."""

from __future__ import annotations

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

import groupowl as go
from dask_support import computed_rows, row_chunks, sparse_rows
from groupowl.designs.dask import dask_design

N, D, Q = 90, 14, 3
LOSSES = ["squared", "huber", "logistic", "poisson"]
# What is beside the weights, or in their place.
OPTIONS = {
    "plain": {},
    "standardized": {"standardize": True},
    "unpenalized": {"unpenalized": [2, 9], "fit_intercept": False},
    "groups": {"feature_groups": [[0, 1, 2], [3, 4]], "ridge": 0.1},
    "offset, positive": {"offset": np.linspace(-0.5, 0.5, N), "positive": True},
}


def case(loss, *, seed=0, blocks=True):
    """Data whose targets are missing here and there, and all of them of sample 5 and, with blocks, of 40 to 59."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N, D)) + 1.0
    B = np.zeros((D, Q))
    B[:4] = rng.standard_normal((4, Q))
    Z = X @ B
    Y = Z + rng.standard_normal(Z.shape)
    if loss == "logistic":
        Y = (rng.random(Z.shape) < 1.0 / (1.0 + np.exp(-Z))).astype(float)
    elif loss == "poisson":
        Y = rng.poisson(np.exp(0.3 * Z - 1.0)).astype(float)
    missing = rng.random(Y.shape) < 0.3
    missing[5] = True
    if blocks:
        missing[40:60] = True
    return X, np.where(missing, np.nan, Y), rng.uniform(0.5, 2.0, Y.shape)


def in_blocks(Y):
    return row_chunks(Y, (25, 15, 20))


@pytest.fixture(params=[1_000_000, 0], ids=["near", "far"])
def way(request, monkeypatch):
    monkeypatch.setattr(dask_design, "_EXPECTED_STEPS", request.param)
    return request.param


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("loss", LOSSES)
def test_solves_are_those_of_arrays(loss, fit_intercept, weighted):
    X, Y, W = case(loss)
    settings = {"loss": loss, "fit_intercept": fit_intercept, "sample_weight": W if weighted else None}
    alpha_max = go.lam_max(X, Y, "oscar", **settings)
    lam = 0.3 * alpha_max * go.weights.oscar(D)
    expected = go.solve(X, Y, lam, tol=1e-9, **settings)
    for make in (computed_rows, sparse_rows):
        found = go.solve(make(X), in_blocks(Y), lam, tol=1e-9, **settings)
        assert found.converged
        assert found.primal == pytest.approx(expected.primal, rel=1e-8)
        np.testing.assert_allclose(found.B, expected.B, atol=1e-3)
        assert go.lam_max(make(X), Y, "oscar", **settings) == pytest.approx(alpha_max, rel=1e-12)


@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("loss", LOSSES)
def test_paths_are_those_of_arrays(loss, name, way):
    X, Y, W = case(loss, seed=1, blocks=name == "plain")
    settings = {"loss": loss, "alphas": 2, "eps": 0.3, "tol": 1e-8, "sample_weight": W} | OPTIONS[name]
    expected = go.group_owl_path(X, Y, **settings)
    found = go.group_owl_path(computed_rows(X), in_blocks(Y), **settings)
    np.testing.assert_allclose(found.alphas, expected.alphas, rtol=1e-10)
    np.testing.assert_allclose(found.coefs, expected.coefs, atol=1e-3)


def test_a_screener_of_a_collection():
    X, Y, W = case("squared", seed=2)
    lam = 0.5 * go.lam_max(X, Y, "oscar", sample_weight=W) * go.weights.oscar(D)
    B = go.solve(X, Y, lam, sample_weight=W).B
    here = go.SafeScreener(X, Y, lam, sample_weight=W).update(B)
    there = go.SafeScreener(computed_rows(X), in_blocks(Y), lam, sample_weight=in_blocks(W)).update(B)
    assert len(here.active) < D
    np.testing.assert_array_equal(there.active, here.active)
    assert there.primal == pytest.approx(here.primal, rel=1e-12)


@pytest.mark.parametrize("loss", LOSSES)
def test_estimators_fit_verify_and_come_back_from_disk(loss, tmp_path):
    X, Y, _ = case(loss)
    kind = go.GroupOWLClassifier if loss == "logistic" else go.GroupOWLRegressor
    how = {"squared": {}, "logistic": {}, "poisson": {"loss": "poisson"}, "huber": {"loss": "huber", "delta": 1.0}}
    expected = kind(tol=1e-8, **how[loss]).fit(X, Y)
    found = kind(tol=1e-8, **how[loss]).fit(computed_rows(X), in_blocks(Y))
    np.testing.assert_allclose(found.coef_, expected.coef_, atol=1e-3)
    assert found.verify(computed_rows(X), in_blocks(Y))
    go.save(found, tmp_path / "model")
    assert go.load(tmp_path / "model").verify(X, Y)
    assert not np.isnan(found.predict(computed_rows(X)).compute()).any()
    assert found.score(computed_rows(X), in_blocks(Y)) == pytest.approx(expected.score(X, Y), abs=1e-3)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("loss", ["squared", "logistic", "poisson"])
def test_criteria_count_what_was_observed(loss, weighted):
    X, Y, W = case(loss)
    kind = go.GroupOWLClassifierCV if loss == "logistic" else go.GroupOWLRegressorCV
    search = kind(selection="bic", alphas=4, tol=1e-10, **({"loss": loss} if loss == "poisson" else {}))
    weight = W if weighted else None
    expected = search.fit(X, Y, sample_weight=weight).criterion_path_
    found = search.fit(computed_rows(X), in_blocks(Y), sample_weight=weight).criterion_path_
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_folds_of_one_target_are_of_the_samples_that_have_it():
    X, Y, _ = case("squared")
    search = go.GroupOWLRegressorCV(alphas=4, cv=3)
    with pytest.warns(UserWarning, match="of 90 samples have no observed target"):
        expected = search.fit(X, Y[:, 0]).score_path_
    with pytest.warns(UserWarning, match="of 90 samples have no observed target"):
        found = search.fit(computed_rows(X), row_chunks(Y[:, 0], (50,))).score_path_
    np.testing.assert_allclose(found, expected, rtol=1e-3)


@pytest.mark.parametrize("given", ["Y", "sample_weight"])
def test_folds_of_several_targets_are_refused(given):
    X, Y, W = case("squared", blocks=False)
    Y, weight = (Y, None) if given == "Y" else (np.nan_to_num(Y), W)
    with pytest.raises(ValueError, match=r"do not serve targets that are missing.*selection='bic', or use data in mem"):
        go.GroupOWLRegressorCV(alphas=4).fit(computed_rows(X), Y, sample_weight=weight)
    with pytest.raises(ValueError, match=r"do not serve targets.*\. Use data in memory or on disk, or choose alpha"):
        go.GroupOWLRegressorCV(alphas=4, ridge=1.0).fit(computed_rows(X), Y, sample_weight=weight)


def test_samples_without_any_target_are_told():
    """Those of weight zero are not; as arrays and as frames."""
    X, Y, _ = case("squared")
    weight = np.ones(N)
    weight[5] = 0.0
    n_lost = int(np.isnan(Y).all(axis=1).sum()) - 1
    frame = dd.from_pandas(pd.DataFrame(Y, columns=list("abc")), npartitions=2)
    for targets in (Y, in_blocks(Y), frame):
        with pytest.warns(UserWarning, match=f"^{n_lost} of 90 samples have no observed target and are left out"):
            go.solve(computed_rows(X), targets, np.ones(D), sample_weight=weight)


def test_weights_that_are_the_same_for_all_targets_take_the_same_way():
    X, Y, W = case("squared", blocks=False)
    Y, lam = np.nan_to_num(Y), np.full(D, 20.0)
    expected = go.solve(computed_rows(X), Y, lam, sample_weight=W[:, 0])
    same = go.solve(computed_rows(X), Y, lam, sample_weight=np.repeat(W[:, :1], Q, axis=1))
    np.testing.assert_array_equal(same.B, expected.B)
    assert same.gap == expected.gap


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"Y": (slice(None), 1, np.nan)}, r"no observed entry of positive weight in column 1\. Leave such targets out"),
        ({"Y": (31, 0, np.inf)}, r"Y in block 1 has 1 .*infinite.*NaN stands for a target that was not observed"),
        ({"X": (31, 4, np.nan)}, "X in block 1 has 1 NaN or infinite entry in column 4"),
        ({"W": (31, 1, -1.0)}, "sample_weight in block 1 must be non-negative"),
    ],
)
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_what_is_refused(change, message, fit_intercept):
    X, Y, W = case("squared", blocks=False)
    arrays = {"X": X, "Y": Y, "W": W}
    for name, (i, k, value) in change.items():
        arrays[name][i, k] = value
    weight = W if "W" in change else None
    with pytest.raises(ValueError, match=message):
        go.solve(computed_rows(X), Y, np.ones(D), sample_weight=weight, fit_intercept=fit_intercept)


def test_weights_of_another_shape_are_refused():
    X, Y, W = case("squared", blocks=False)
    with pytest.raises(ValueError, match=r"one weight per sample, shape \(43,\), or one for each of its targets"):
        go.solve(computed_rows(X), Y, np.ones(D), sample_weight=W[:, :2])


def test_classes_need_all_of_them():
    X, _, W = case("squared")
    Y = np.eye(Q)[np.arange(N) % Q]
    with pytest.raises(ValueError, match=r"sample_weight must have one weight per sample, got \(90, 3\): loss='multi"):
        go.solve(computed_rows(X), Y, np.ones(D), loss="multinomial", sample_weight=W)
    Y[3, 1] = np.nan
    with pytest.raises(ValueError, match=r"Y in block 0 has 1 NaN.*needs all targets of a sample"):
        go.solve(computed_rows(X), da.from_array(Y, chunks=(30, -1)), np.ones(D), loss="multinomial")


def test_statistics_need_all_of_them():
    X, Y, _ = case("squared")
    with pytest.raises(ValueError, match=r"Y in block 0 has .*sufficient statistics are those of whole samples"):
        go.SufficientStatistics.from_dask(computed_rows(X), in_blocks(Y))
