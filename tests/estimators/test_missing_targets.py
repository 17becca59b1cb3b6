"""Estimators, paths and cross-validation with targets that were not observed, and weights per entry."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.metrics import r2_score
from sklearn.model_selection import KFold, cross_val_score

import groupowl as go

N, D, Q = 60, 12, 3


def make_data(kind="numbers"):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, D)) * rng.uniform(0.5, 3.0, D) + 1.0
    B = np.zeros((D, Q))
    B[:3] = rng.standard_normal((3, Q))
    Z = (X - 1.0) @ B
    Y = Z + rng.standard_normal((N, Q)) + 2.0
    if kind == "counts":
        Y = rng.poisson(np.exp(np.clip(0.4 * Z, -2, 2))).astype(float)
    if kind == "labels":
        Y = (rng.random((N, Q)) < 1 / (1 + np.exp(-Z))).astype(float)
    return X, np.where(rng.random((N, Q)) < 0.3, np.nan, Y)


ESTIMATORS = {
    "regressor": (go.GroupOWLRegressor(), "numbers"),
    "huber": (go.GroupOWLRegressor(loss="huber"), "numbers"),
    "standardized": (go.GroupOWLRegressor(standardize=True, unpenalized=[4]), "numbers"),
    "relaxed": (go.GroupOWLRegressor(relaxed=True), "numbers"),
    "poisson": (go.GroupOWLRegressor(loss="poisson"), "counts"),
    "labels": (go.GroupOWLClassifier(), "labels"),
    "cv": (go.GroupOWLRegressorCV(alphas=5, eps=0.1, cv=3), "numbers"),
    "cv huber": (go.GroupOWLRegressorCV(alphas=5, eps=0.1, cv=3, loss="huber"), "numbers"),
    "cv poisson": (go.GroupOWLRegressorCV(alphas=5, eps=0.1, cv=3, loss="poisson"), "counts"),
    "cv labels": (go.GroupOWLClassifierCV(alphas=5, eps=0.1, cv=3), "labels"),
    "bic": (go.GroupOWLRegressorCV(alphas=5, eps=0.1, cv=3, selection="bic"), "numbers"),
}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_fits_verify_and_come_back_from_disk(name, weighted, tmp_path):
    estimator, kind = ESTIMATORS[name]
    X, Y = make_data(kind)
    weight = np.random.default_rng(1).uniform(0.5, 2.0, Y.shape) if weighted else None
    model = estimator.fit(X, Y, sample_weight=weight)
    assert model.verify(X, Y, sample_weight=weight)
    assert not model.verify(X, np.where(np.isnan(Y), 0.0, Y), sample_weight=weight)  # other data
    assert np.isfinite(model.predict(X)).all()
    go.save(model, tmp_path / "model")
    np.testing.assert_array_equal(go.load(tmp_path / "model").predict(X), model.predict(X))


def test_objective_of_the_estimator_is_a_mean_over_what_was_observed():
    """``W = (1/q) sum_ik w_ik``: the same alpha means the same as with complete targets."""
    X, Y = make_data()
    alpha, model = 0.1, go.GroupOWLRegressor(0.1, weights="constant", tol=1e-10).fit(X, Y)
    residual = np.nan_to_num(Y - model.predict(X))
    total = (~np.isnan(Y)).sum() / Q
    objective = 0.5 * np.sum(residual**2) / total + alpha * np.linalg.norm(model.coef_, axis=0).sum()
    assert model.solve_result_.primal == pytest.approx(objective, rel=1e-9)
    lam = np.full(D, alpha * total)
    assert go.solve(X, Y, lam, fit_intercept=True).primal / total == pytest.approx(objective, rel=1e-5)


def test_standardized_columns_have_one_scale_for_all_tasks():
    """``s_j^2 = sum_k a_jk^2 / sum_ik w_ik``, about the means of the tasks."""
    X, Y = make_data()
    observed = ~np.isnan(Y)
    scale = np.zeros(D)
    for k in range(Q):
        own = X[observed[:, k]]
        scale += ((own - own.mean(axis=0)) ** 2).sum(axis=0)
    scale = np.sqrt(scale / observed.sum())
    one = go.GroupOWLRegressor(0.1, standardize=True, tol=1e-10).fit(X, Y)
    other = go.GroupOWLRegressor(0.1, tol=1e-10).fit(X / scale, Y)
    np.testing.assert_allclose(one.coef_, other.coef_ / scale, atol=1e-4 * np.abs(one.coef_).max())
    assert one.solve_result_.primal == pytest.approx(other.solve_result_.primal, rel=1e-9)


def test_scores_count_what_was_observed():
    X, Y = make_data()
    model, P = go.GroupOWLRegressor(0.1).fit(X, Y), None
    P = model.predict(X)
    observed = ~np.isnan(Y)
    expected = np.mean([r2_score(Y[observed[:, k], k], P[observed[:, k], k]) for k in range(Q)])
    assert model.score(X, Y) == pytest.approx(expected, rel=1e-12)
    assert np.isfinite(cross_val_score(model, X, Y, cv=3)).all()


def test_samples_without_any_label_are_not_scored():
    """They are neither right nor wrong, with weights or without."""
    X, Y = make_data("labels")
    Y[:10] = np.nan
    model, weight = go.GroupOWLClassifier(0.1).fit(X, Y), np.linspace(1.0, 2.0, N)
    rows = ~np.isnan(Y).all(axis=1)
    assert not rows.all()
    assert model.score(X, Y) == pytest.approx(model.score(X[rows], Y[rows]))
    assert model.score(X, Y) < 1.0
    expected = model.score(X[rows], Y[rows], sample_weight=weight[rows])
    assert model.score(X, Y, sample_weight=weight) == pytest.approx(expected)
    with pytest.raises(ValueError, match="y has no observed label"):
        model.score(X[:10], Y[:10])


def test_fold_scores_are_means_over_observed_entries():
    X, Y = make_data()
    cv = KFold(4)
    search = go.GroupOWLRegressorCV(alphas=[0.3, 0.1], cv=cv).fit(X, Y)
    sizes = []
    for f, (train, test) in enumerate(cv.split(X)):
        sizes.append((~np.isnan(Y[test])).sum())
        for i, alpha in enumerate(search.alphas_):
            fold = go.GroupOWLRegressor(alpha, weights=search.weights_, tol=1e-8).fit(X[train], Y[train])
            error = np.nanmean((Y[test] - fold.predict(X[test])) ** 2)
            assert search.score_path_[i, f] == pytest.approx(-error, rel=1e-2)
    np.testing.assert_allclose(search.mean_score_path_, search.score_path_ @ sizes / np.sum(sizes), rtol=1e-12)


def test_relaxed_fits_are_least_squares_of_each_task():
    X, Y = make_data()
    model = go.GroupOWLRegressor(relaxed=True).fit(X, Y)
    support = np.flatnonzero(model.coef_.any(axis=0))
    for k in range(Q):
        rows = ~np.isnan(Y[:, k])
        A = np.column_stack([X[rows][:, support], np.ones(rows.sum())])
        expected = np.linalg.lstsq(A, Y[rows, k], rcond=None)[0]
        np.testing.assert_allclose(model.coef_[k, support], expected[:-1], rtol=1e-4, atol=1e-5)


def test_one_target_with_gaps_is_the_samples_that_have_it():
    X, Y = make_data()
    rows = ~np.isnan(Y[:, 0])
    one, other = go.GroupOWLRegressorCV(alphas=8, cv=3), go.GroupOWLRegressorCV(alphas=8, cv=3)
    one.fit(X, Y[:, 0])
    other.fit(X[rows], Y[rows, 0])
    np.testing.assert_allclose(one.coef_, other.coef_, rtol=1e-9)
    np.testing.assert_allclose(one.score_path_, other.score_path_, rtol=1e-6)


def test_paths_and_frames_take_missing_targets():
    X, Y = make_data()
    path = go.group_owl_path(X, Y, alphas=8)
    assert path.n_selected[0] == 0
    frame = pd.DataFrame(Y, columns=["a", "b", "c"])
    model = go.GroupOWLRegressor(path.alphas[4]).fit(X, frame)
    assert list(model.target_names_) == ["a", "b", "c"]
    frame["b"] = np.nan
    with pytest.raises(ValueError, match="no observed entry of positive weight in column 'b'"):
        go.GroupOWLRegressor().fit(X, frame)


def test_a_training_fold_without_any_target_of_a_task_is_refused():
    X, Y = make_data()
    Y[15:, 1] = np.nan
    with pytest.raises(ValueError, match="training samples of split 0 of cv have no observed target in column 1"):
        go.GroupOWLRegressorCV(cv=3).fit(X, Y)


# Own samples for each task ------------------------------------------------------------------------------------


def test_stacked_tasks_select_together():
    """Equal to one problem with the samples of each task, whatever holds the data."""
    rng = np.random.default_rng(0)
    Xs = [rng.standard_normal((size, 8)) for size in (30, 20, 25)]
    ys = [X[:, 0] * (k + 1) + 0.1 * rng.standard_normal(len(X)) for k, X in enumerate(Xs)]
    X, Y = go.stack_tasks(Xs, ys)
    assert np.isnan(Y).sum() == 2 * len(Y)
    model = go.GroupOWLRegressor().fit(X, Y)
    assert model.selected_features_.tolist() == [0]
    frames = [pd.DataFrame(X, columns=list("abcdefgh")) for X in Xs]
    for kind in (frames, [sp.csr_array(X) for X in Xs]):
        again = go.GroupOWLRegressor().fit(*go.stack_tasks(kind, ys))
        np.testing.assert_allclose(again.coef_, model.coef_, rtol=1e-6, atol=1e-9)


def test_balanced_tasks_have_the_same_weight():
    rng = np.random.default_rng(0)
    ys = [rng.standard_normal(5), np.r_[np.nan, rng.standard_normal(9)]]
    X, Y, weight = go.stack_tasks([rng.standard_normal((len(y), 3)) for y in ys], ys, balance=True)
    sums = [weight[~np.isnan(Y[:, k])].sum() for k in range(2)]
    assert sums == pytest.approx([7.0, 7.0])
    assert go.GroupOWLRegressor().fit(X, Y, sample_weight=weight).solve_result_.converged


def test_dicts_are_not_stacked_by_their_keys():
    with pytest.raises(TypeError, match=r"got a dict\. Use list\(Xs\.values\(\)\)"):
        go.stack_tasks({"eu": np.ones((2, 3))}, {"eu": [1.0, 2.0]})


@pytest.mark.parametrize(
    ("Xs", "ys", "message"),
    [
        ([np.ones((2, 3))], [], "one entry per task, got 1 and 0"),
        ([np.ones((2, 3)), np.ones((2, 4))], [[1, 2], [1, 2]], r"same columns for all tasks, got \[3, 4\]"),
        ([np.ones((2, 3))], [[1, 2, 3]], "must have one row per sample"),
        ([np.ones((2, 3))], [np.ones((2, 2))], r"ys\[0\] must be the targets of one task"),
        ([pd.DataFrame({"a": [1]}), pd.DataFrame({"b": [1]})], [[1], [1]], r"Xs\[1\] have other names .*: 'b'\. Keep"),
        (
            [pd.DataFrame({"a": [1], "b": [2]}), pd.DataFrame({"b": [1], "a": [2]})],
            [[1], [1]],
            r"another order than Xs\[0\]\. Use Xs\[1\]\[list\(Xs\[0\]\.columns\)\]",
        ),
        ([pd.DataFrame({"a": [1]}), np.ones((1, 1))], [[1], [1]], "Give data frames for all, or for none"),
    ],
)
def test_what_cannot_be_stacked(Xs, ys, message):
    with pytest.raises(ValueError, match=message):
        go.stack_tasks(Xs, ys)


@pytest.mark.parametrize("backend", ["numpy_nullable", "pyarrow"])
@pytest.mark.parametrize("kind", ["numbers", "labels"])
def test_missing_values_of_nullable_columns_are_missing_targets(backend, kind):
    X, Y = make_data(kind)
    estimator = go.GroupOWLRegressor(0.1) if kind == "numbers" else go.GroupOWLClassifier(0.01)
    frame = pd.DataFrame(Y, columns=["a", "b", "c"])
    nullable = frame.convert_dtypes(dtype_backend=backend)
    assert nullable.isna().sum().sum() == np.isnan(Y).sum() > 0
    given, plain = estimator.fit(X, nullable).coef_.copy(), estimator.fit(X, frame).coef_
    np.testing.assert_array_equal(given, plain)
