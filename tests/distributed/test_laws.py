"""Dask collections give the answers of arrays in memory: every kind of block, loss, weight and way to solve."""

from __future__ import annotations

from dataclasses import replace

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

import groupowl as go
from dask_support import COLLECTIONS, column_chunks, computed_rows, frame, row_chunks, sparse_rows, without_warning
from groupowl.designs import DaskDesign
from groupowl.designs.dask import dask_design
from support import make_case

LOSSES = ["squared", "multinomial"]
# Inner solves on columns that are brought near, or by steps where the blocks are.
WAYS = {"near": 1_000_000, "far": 0}
N, D = 90, 14


@pytest.fixture(params=WAYS)
def way(request, monkeypatch):
    monkeypatch.setattr(dask_design, "_EXPECTED_STEPS", WAYS[request.param])
    return request.param


def case_of(seed, loss, *, exact_in_single=True, **settings):
    """A problem with samples of weight zero, whose numbers single precision holds exactly."""
    case = make_case(seed, n=N, d=D, q=3, loss=loss, weighted=True, **{"fit_intercept": True, **settings})
    weight = case.sample_weight.copy()
    weight[[0, 5, 40, *range(50, 64), N - 1]] = 0.0
    X = np.asarray(case.X).astype(np.float32).astype(np.float64) if exact_in_single else case.X
    return replace(case, X=X, sample_weight=weight)


def solve(case, X=None, Y=None, **settings):
    arguments = case.arguments() | ({} if X is None else {"X": X}) | ({} if Y is None else {"Y": Y})
    return go.solve(**arguments, **{"tol": 1e-9, **settings})


def assert_same_answer(found, expected, case):
    """The same minimum, by certificate and by the objective from scratch."""
    assert found.converged
    assert found.primal == pytest.approx(expected.primal, rel=1e-8)
    assert case.objective(found.B, found.intercept) == pytest.approx(found.primal, rel=1e-10)
    assert found.primal - expected.primal <= found.gap + 1e-12 * abs(expected.primal)
    np.testing.assert_allclose(found.B, expected.B, atol=1e-3)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", COLLECTIONS)
def test_every_kind_of_collection(kind, loss):
    case = case_of(3, loss)
    found = solve(case, COLLECTIONS[kind](case.X))
    assert_same_answer(found, solve(case), case)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("make", [computed_rows, sparse_rows])
def test_both_ways_of_inner_solves(make, loss, fit_intercept, weighted, way):
    case = case_of(4, loss, fit_intercept=fit_intercept)
    case = case if weighted else replace(case, sample_weight=None)
    found = solve(case, make(case.X), solver=go.WorkingSet(compress=False))
    assert_same_answer(found, solve(case), case)


def test_the_ways_are_different_ways(monkeypatch):
    case, ways = case_of(4, "multinomial"), {}
    for name, steps in WAYS.items():
        monkeypatch.setattr(dask_design, "_EXPECTED_STEPS", steps)
        near = []
        brought = DaskDesign.brought_near
        with monkeypatch.context() as patch:
            patch.setattr(DaskDesign, "brought_near", lambda *a, b=brought, n=near: n.append(b(*a)) or n[-1])
            solve(case, row_chunks(case.X, (30,)))
        ways[name] = [design is not None for design in near]
    assert ways["near"]
    assert ways["far"]
    assert all(ways["near"])
    assert not any(ways["far"])


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("solver", [go.WorkingSet(compress=True), go.WorkingSet(compress=False), go.APGD()])
def test_solvers(solver, loss):
    """Squared loss through sufficient statistics too, which come in one pass."""
    case = case_of(5, loss)
    found = solve(case, computed_rows(case.X), solver=solver, tol=1e-8)
    assert_same_answer(found, solve(case), case)


@pytest.mark.parametrize("screening", ["none", "paper", "safe"])
def test_screening(screening):
    case = case_of(6, "multinomial", fraction=0.5)
    found, expected = (solve(case, X, screening=screening) for X in (computed_rows(case.X), case.X))
    assert_same_answer(found, expected, case)
    np.testing.assert_array_equal(found.active, expected.active)
    assert (len(found.active) < D) == (screening != "none")


@pytest.mark.parametrize("loss", LOSSES)
def test_targets_and_weights_as_collections(loss):
    """Targets in other chunks than those of X, arrays or frames, and local ones."""
    case = case_of(7, loss)
    expected = solve(case)
    X = row_chunks(case.X, (25, 40))
    for Y in (row_chunks(case.Y, (3, 60)), frame(case.Y), case.Y.tolist(), pd.DataFrame(case.Y)):
        assert_same_answer(solve(case, X, Y), expected, case)
    for weight in (row_chunks(case.sample_weight, (50,)), dd.from_pandas(pd.Series(case.sample_weight), npartitions=2)):
        assert_same_answer(solve(replace(case, sample_weight=weight), X), expected, case)


def test_one_target():
    case = case_of(8, "squared")
    one = replace(case, Y=case.Y[:, 0])
    expected = solve(one)
    for Y in (one.Y, row_chunks(one.Y, (60,)), dd.from_pandas(pd.Series(one.Y), npartitions=2)):
        found = solve(one, row_chunks(case.X, (25, 40)), Y)
        assert found.B.shape == (D, 1)
        assert found.primal == pytest.approx(expected.primal, rel=1e-8)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_lam_max(loss, fit_intercept):
    case = case_of(9, loss, fit_intercept=fit_intercept)
    settings = {"loss": loss, "fit_intercept": fit_intercept, "sample_weight": case.sample_weight}
    expected = go.lam_max(case.X, case.Y, "oscar", **settings)
    for X in (computed_rows(case.X), sparse_rows(case.X)):
        found = go.lam_max(X, case.Y, "oscar", **settings)
        assert found == pytest.approx(expected, rel=1e-12)
        lam = found * go.weights.oscar(D)
        result = solve(replace(case, lam=lam), X)
        assert not result.B.any()
        assert result.gap == 0.0


PATHS = {
    "plain": {},
    "standardized": {"standardize": True},
    "unpenalized": {"unpenalized": [2, 9]},
    "unpenalized, standardized, no intercept": {"unpenalized": [2, 9], "standardize": True, "fit_intercept": False},
}


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("settings", PATHS)
def test_paths(settings, loss, way):
    case = case_of(10, loss)
    arguments = {
        "loss": loss, "alphas": 4, "eps": 0.1, "sample_weight": case.sample_weight, "tol": 1e-8, **PATHS[settings]
    }  # fmt: skip
    expected = go.group_owl_path(case.X, case.Y, **arguments)
    found = go.group_owl_path(computed_rows(case.X), case.Y, **arguments)
    np.testing.assert_allclose(found.alphas, expected.alphas, rtol=1e-10)
    for k, alpha in enumerate(expected.alphas):
        weights = expected.weights
        scaled = weighted_objective(case, alpha, weights, arguments)
        assert scaled(found, k) == pytest.approx(scaled(expected, k), rel=1e-8)
    np.testing.assert_allclose(found.coefs, expected.coefs, atol=1e-3)


def weighted_objective(case, alpha, weights, arguments):
    """The documented objective of a point of a path, from scratch."""
    free = np.isin(np.arange(D), arguments.get("unpenalized", []))
    w = case.sample_weight / case.sample_weight.sum()
    mean = w @ case.X
    scale = np.sqrt(w @ (case.X - mean) ** 2) if arguments.get("standardize") else np.ones(D)
    model = replace(case, sample_weight=w, lam=np.zeros(D))

    def value(path, k):
        B = path.coefs[:, :, k].T
        norms = np.sort(np.linalg.norm(B * scale[:, None], axis=1)[~free])[::-1]
        return model.objective(B, path.intercepts[:, k]) + alpha * float(norms @ weights)

    return value


def test_large_offsets():
    """Gram matrices of raw columns lose digits by centering; the certificate is of the data themselves."""
    case = case_of(11, "squared", exact_in_single=False)
    case = replace(case, X=case.X + 1e4)
    found = solve(case, computed_rows(case.X), solver=go.WorkingSet(compress=False))
    assert found.converged
    assert found.primal == pytest.approx(solve(case).primal, rel=1e-8)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_the_dual_point_is_an_array_on_the_workers(loss, fit_intercept):
    """Feasible, of the dual value that was reported, one row per sample of positive weight."""
    case = case_of(12, loss, fit_intercept=fit_intercept)
    result = solve(case, computed_rows(case.X))
    assert isinstance(result.theta, da.Array)
    present = case.sample_weight > 0
    assert result.theta.shape == (present.sum(), 3)
    theta = result.theta.compute()
    X, Y, w = case.X[present], case.Y[present], case.sample_weight[present, None]
    assert theta.shape == (present.sum(), 3)
    assert go.owl_dual_norm(X.T @ theta, case.lam) <= 1 + 1e-9
    if fit_intercept:
        np.testing.assert_allclose(theta.sum(axis=0), 0.0, atol=1e-10)
    P = Y - theta / w
    dual = np.sum(theta * Y) - 0.5 * np.sum(theta**2 / w) if loss == "squared" else -np.sum(w * P * np.log(P))
    assert dual == pytest.approx(result.dual, rel=1e-10)


def test_feature_names():
    case = case_of(13, "squared")
    assert DaskDesign(frame(case.X)).feature_names == [f"x{j}" for j in range(D)]
    assert DaskDesign(row_chunks(case.X, (10,))).feature_names is None
    numbered = dd.from_pandas(pd.DataFrame(case.X), npartitions=2)
    assert DaskDesign(numbered).feature_names is None


def test_chunks_along_columns_are_joined():
    case = case_of(14, "squared")
    with pytest.warns(UserWarning, match=r"2 chunks along its columns.*moves its 0\.0101 MB between workers"):
        design = DaskDesign(column_chunks(case.X))
    assert_same_answer(solve(case, design), solve(case), case)
    with without_warning("X has 2 chunks"):
        found = solve(case, column_chunks(case.X))
    assert_same_answer(found, solve(case), case)


@pytest.mark.parametrize("loss", LOSSES)
def test_threads_without_a_cluster(loss):
    case = case_of(15, loss)
    with dask.config.set(scheduler="threads", num_workers=3):
        found = solve(case, computed_rows(case.X, (5,) * 15))
    assert_same_answer(found, solve(case), case)


def test_warm_start_and_callback():
    case = case_of(16, "multinomial")
    seen = []
    first = solve(case, computed_rows(case.X), callback=lambda p: seen.append(p.coefficients()) or len(seen) == 1)
    assert first.status == "callback"
    B, intercept = seen[-1]
    found = solve(case, computed_rows(case.X), B_init=B, intercept_init=intercept)
    assert_same_answer(found, solve(case), case)


def test_a_screener_of_a_collection():
    """Certificates and rows proved zero, as of the array."""
    case = case_of(17, "squared", fraction=0.5)
    B = solve(case, tol=1e-6).B
    settings = {"fit_intercept": True, "sample_weight": case.sample_weight}
    found = go.SafeScreener(computed_rows(case.X), case.Y, case.lam, **settings)
    expected = go.SafeScreener(case.X, case.Y, case.lam, **settings)
    for matrix in (np.zeros_like(B), B):
        report, wanted = found.update(matrix), expected.update(matrix)
        assert report.gap == pytest.approx(wanted.gap, rel=1e-6)
        np.testing.assert_array_equal(report.active, wanted.active)
    assert len(found.active) < D
    Z = case.X @ B
    assert found.update(B, Z=Z).primal == pytest.approx(expected.update(B, Z=Z).primal, rel=1e-12)
