"""Estimators of labels, counts and numbers with outliers: what they fit, choose, predict, prove and store."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_multilabel_classification
from sklearn.linear_model import HuberRegressor
from sklearn.metrics import d2_tweedie_score, log_loss, mean_poisson_deviance
from sklearn.model_selection import GridSearchCV, cross_val_score

import groupowl as go
from groupowl import GroupOWLClassifier, GroupOWLClassifierCV, GroupOWLRegressor, GroupOWLRegressorCV
from groupowl.estimators.fit_summary import summary_text
from groupowl.estimators.regressor import robust_deviations
from groupowl.losses import HuberLoss
from groupowl.plotting import CoefficientPathDisplay, CrossValidationDisplay


def make_data(kind, n=100, d=40, q=3, seed=0):
    rng = np.random.default_rng(seed)
    X, B = rng.standard_normal((n, d)), np.zeros((d, q))
    B[:4] = rng.standard_normal((4, q))
    Z = X @ B
    if kind == "labels":
        return X, (2.0 * Z + rng.logistic(size=Z.shape) > 0).astype(int)
    if kind == "poisson":
        return X, rng.poisson(np.exp(np.clip(0.5 * Z + 0.5, -4, 4)))
    Y = Z + 0.3 * rng.standard_normal(Z.shape) + 5.0
    Y[rng.random(Z.shape) < 0.1] += 40.0
    return X, Y


def single_of(kind, **settings):
    return GroupOWLClassifier(**settings) if kind == "labels" else GroupOWLRegressor(loss=kind, **settings)


def search_of(kind, **settings):
    settings = {"alphas": 10, "eps": 0.05} | settings
    return GroupOWLClassifierCV(**settings) if kind == "labels" else GroupOWLRegressorCV(loss=kind, **settings)


every_kind = pytest.mark.parametrize("kind", ["labels", "poisson", "huber"])


@every_kind
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"standardize": True, "unpenalized": [0, 9]},
        {"relaxed": True, "alpha": 0.2},
        {"fit_intercept": False},
        {"solver": "apgd", "tol": 1e-4},
    ],
    ids=str,
)
def test_a_fit_holds_before_and_after_it_is_stored(kind, settings, tmp_path):
    X, Y = make_data(kind)
    model = single_of(kind, **settings).fit(X, Y)
    assert model.verify(X, Y), model.verify(X, Y)
    again = go.load(go.save(model, tmp_path / "model"))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert again.verify(X, Y)
    model.coef_ = model.coef_ + 1e-3 * (model.coef_ != 0)
    assert not model.verify(X, Y)


@every_kind
def test_a_search_holds_and_its_path_is_drawn(kind, tmp_path):
    X, Y = make_data(kind)
    frame = pd.DataFrame(Y, columns=["a", "b", "c"])
    search = search_of(kind, selection="1se").fit(X, frame)
    assert search.verify(X, frame), search.verify(X, frame)
    assert search.path_.coefs.shape == (3, 40, len(search.alphas_))
    assert list(search.coef_frame().columns)[-3:] == ["coef_a", "coef_b", "coef_c"]
    again = go.load(go.save(search, tmp_path / "model"))
    assert again.verify(X, frame, scores=False)
    assert CoefficientPathDisplay.from_result(search.path_).norms.shape[0] == len(search.alphas_)
    label = CrossValidationDisplay.from_estimator(search).label
    words = {"labels": "log-loss", "poisson": "mean Poisson deviance", "huber": "mean Huber loss"}
    assert label == words[kind]  # errors are drawn as errors
    assert ("3 labels" if kind == "labels" else "3 targets") in summary_text(search)


@every_kind
def test_sparse_and_weighted(kind):
    X, Y = make_data(kind)
    X[np.abs(X) < 0.7] = 0.0
    weight = np.random.default_rng(1).uniform(0.2, 2.0, len(X))
    dense = single_of(kind, tol=1e-10).fit(X, Y, sample_weight=weight)
    sparse = single_of(kind, tol=1e-10).fit(sp.csr_array(X), Y, sample_weight=weight)
    np.testing.assert_allclose(sparse.coef_, dense.coef_, atol=1e-4)
    assert sparse.verify(sp.csr_array(X), Y, sample_weight=weight)


@every_kind
def test_on_dask(kind):
    array = pytest.importorskip("dask.array")
    X, Y = make_data(kind)
    far_X, far_Y = array.from_array(X, chunks=(30, 40)), array.from_array(1.0 * Y, chunks=(30, 3))
    settings = {"delta": 0.5} if kind == "huber" else {}
    here, there = single_of(kind, **settings).fit(X, Y), single_of(kind, **settings).fit(far_X, far_Y)
    np.testing.assert_allclose(there.coef_, here.coef_, atol=0.02)
    np.testing.assert_allclose(np.asarray(there.predict(far_X)), there.predict(X), rtol=1e-9)
    with pytest.raises(ValueError, match=r"works by statistics, which do not serve (classes|loss='(poisson|huber)')"):
        search_of(kind, **settings).fit(far_X, far_Y)


def test_delta_auto_needs_targets_here():
    array = pytest.importorskip("dask.array")
    X, Y = make_data("huber")
    with pytest.raises(ValueError, match=r"delta='auto' needs data in this process.*Give delta as a number"):
        GroupOWLRegressor(loss="huber").fit(array.from_array(X, chunks=(30, 40)), array.from_array(Y, chunks=(30, 3)))


# Labels ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [int, bool, float, list], ids=lambda kind: kind.__name__)
def test_label_indicators_are_fitted_jointly(kind):
    X, Y = make_data("labels")
    model = GroupOWLClassifier().fit(X, Y.tolist() if kind is list else Y.astype(kind))
    assert model.multilabel_
    np.testing.assert_array_equal(model.classes_, np.arange(3))
    assert model.coef_.shape == (3, 40)
    assert all(column.any() == (column != 0).all() for column in model.coef_.T)  # features are for all labels, or none
    scores, chances = model.decision_function(X), model.predict_proba(X)
    assert scores.shape == chances.shape == (100, 3)
    np.testing.assert_allclose(chances, 1 / (1 + np.exp(-scores)), rtol=1e-12)
    np.testing.assert_allclose(model.predict_log_proba(X), np.log(chances), rtol=1e-9)
    np.testing.assert_array_equal(model.predict(X), (scores > 0).astype(int))
    assert model.score(X, Y) == np.mean((model.predict(X) == Y).all(axis=1)) > 0.5
    same = go.solve(X, Y, 100 * model.alpha_ * model.weights_, loss="logistic", fit_intercept=True)
    np.testing.assert_allclose(model.coef_, same.B.T, atol=1e-2)


def test_the_score_of_folds_is_the_mean_log_loss_of_the_labels():
    X, Y = make_data("labels")
    folds = [(np.arange(50), np.arange(50, 100)), (np.arange(50, 100), np.arange(50))]
    search = GroupOWLClassifierCV(alphas=[0.1], cv=folds, tol=1e-10).fit(X, Y)
    for (train, test), score in zip(folds, search.score_path_[0], strict=True):
        P = GroupOWLClassifier(0.1).fit(X[train], Y[train]).predict_proba(X[test])
        expected = -np.mean([log_loss(Y[test, k], P[:, k]) for k in range(3)])
        assert score == pytest.approx(expected, rel=1e-3)
    other = GroupOWLClassifierCV(alphas=[0.1], cv=folds, scoring="f1_macro").fit(X, Y)
    assert 0.3 < other.best_score_ <= 1.0


def test_a_label_that_a_training_set_lacks_is_certain_there():
    X, Y = make_data("labels")
    Y[:, 2] = 0
    Y[:3, 2] = 1  # which the first training set does not see
    folds = [(np.arange(50, 100), np.arange(50)), (np.arange(50), np.arange(50, 100))]
    search = GroupOWLClassifierCV(alphas=5, eps=0.1, cv=folds).fit(X, Y)
    assert np.isfinite(search.score_path_).all()
    assert (
        search.score_path_[0, 0] < -3 / 50 * 36 / 3 < search.score_path_[0, 1]
    )  # three times -log(eps), over 3 labels


def test_one_column_of_labels_is_two_classes():
    X, Y = make_data("labels")
    flat = GroupOWLClassifier().fit(X, Y[:, 0])
    with pytest.warns(UserWarning, match="column-vector y"):
        column = GroupOWLClassifier().fit(X, Y[:, :1])
    np.testing.assert_array_equal(column.coef_, flat.coef_)
    assert not flat.multilabel_
    assert flat.predict_proba(X).shape == (100, 2)


@pytest.mark.parametrize("weights", ["oscar", "chi", lambda n_features, n_tasks, n_samples: go.weights.bh(n_features)])
@pytest.mark.parametrize(
    "settings", [{}, {"unpenalized": [3]}, {"fit_intercept": False}, {"standardize": True}], ids=str
)
def test_two_classes_are_what_two_columns_give(weights, settings):
    """At the same alpha, with the same weights: only the products are half as many."""
    X, Y = make_data("labels")
    y = Y[:, 0]
    model = GroupOWLClassifier(weights=weights, tol=1e-11, **settings).fit(X, y)
    path = go.group_owl_path(
        X, y, loss="multinomial", weights=weights, alphas=[model.alpha_, 0.5 * model.alpha_], tol=1e-11, **settings
    )
    np.testing.assert_allclose(model.weights_, path.weights)
    np.testing.assert_allclose(model.coef_, path.coefs[:, :, 0], atol=1e-5)
    assert model.solve_result_.primal == pytest.approx(path[0].primal, rel=1e-9)
    assert model.alpha_ == pytest.approx(0.1 * path.alpha_max)
    search = GroupOWLClassifierCV(weights=weights, alphas=path.alphas, selection="bic", tol=1e-11, **settings).fit(X, y)
    np.testing.assert_allclose(search.path_.coefs, path.coefs, atol=1e-5)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("missing", [False, True])
def test_class_weights_of_labels_are_weights_of_entries(weighted, missing, tmp_path):
    """A factor counts where a sample has the label, and for that label only."""
    X, Y = make_data("labels")
    rng, Y = np.random.default_rng(1), Y.astype(float)
    if missing:
        Y[rng.random(Y.shape) < 0.2] = np.nan
    weight = rng.uniform(0.5, 2.0, len(X)) if weighted else np.ones(len(X))
    entries = weight[:, None] * np.where(Y == 1.0, [3.0, 1.0, 0.25], 1.0)
    given = {"sample_weight": weight} if weighted else {}
    model = GroupOWLClassifier(0.02, class_weight={0: 3.0, 2: 0.25}, tol=1e-9).fit(X, Y, **given)
    by_hand = GroupOWLClassifier(0.02, tol=1e-9).fit(X, Y, sample_weight=entries)
    np.testing.assert_allclose(model.coef_, by_hand.coef_, rtol=1e-9, atol=1e-12)
    assert model.verify(X, Y, **given)
    go.save(model, tmp_path / "model")
    assert go.load(tmp_path / "model").verify(X, Y, **given)
    named = GroupOWLClassifier(0.02, class_weight={"a": 3.0, "c": 0.25}, tol=1e-9)
    named.fit(X, pd.DataFrame(Y, columns=list("abc")), **given)
    np.testing.assert_array_equal(named.coef_, model.coef_)


def test_balanced_labels_are_as_probable_as_not():
    """Without features, and whatever the weights are; the total weight of each label stays."""
    X, Y = make_data("labels")
    Y[:80, 1] = 0
    weight = np.random.default_rng(2).uniform(0.5, 2.0, Y.shape)
    model = GroupOWLClassifier(1e3, class_weight="balanced", tol=1e-12).fit(X, Y, sample_weight=weight)
    np.testing.assert_allclose(model.predict_proba(X), 0.5, atol=1e-6)
    factors = [weight[:, k].sum() / (2 * weight[Y[:, k] == v, k].sum()) for v in (0, 1) for k in range(3)]
    entries = weight * np.where(Y == 1, factors[3:], factors[:3])
    np.testing.assert_allclose(entries.sum(axis=0), weight.sum(axis=0))
    balanced = GroupOWLClassifier(0.02, class_weight="balanced", tol=1e-9).fit(X, Y, sample_weight=weight)
    by_hand = GroupOWLClassifier(0.02, tol=1e-9).fit(X, Y, sample_weight=entries)
    np.testing.assert_allclose(balanced.coef_, by_hand.coef_, rtol=1e-7, atol=1e-10)


def test_class_weights_of_labels_count_in_fits_and_not_in_scores():
    X, Y = make_data("labels")
    folds, factors = [(np.arange(60), np.arange(60, 100)), (np.arange(40, 100), np.arange(40))], {0: 20.0}
    search = GroupOWLClassifierCV(alphas=3, eps=0.1, cv=folds, class_weight=factors, tol=1e-9).fit(X, Y)
    for f, (train, test) in enumerate(folds):
        for i, alpha in enumerate(search.alphas_):
            single = GroupOWLClassifier(alpha, class_weight=factors, tol=1e-9).fit(X[train], Y[train])
            P = single.predict_proba(X[test])
            score = np.mean(np.log(np.where(Y[test] == 1, P, 1.0 - P)))
            assert search.score_path_[i, f] == pytest.approx(score, rel=2e-3)
    assert search.verify(X, Y)


@pytest.mark.parametrize(
    ("class_weight", "message"),
    [
        ({3: 2.0}, r"class_weight has the classes \[3\], which y does not have\. Classes of y: \[0, 1, 2\]"),
        ({0: 0.0}, r"class_weight\[0\] must be a finite number above 0, got 0\.0"),
        ("even", r"class_weight must be None, 'balanced' or a dict of class: weight, got 'even'"),
    ],
)
def test_bad_class_weights_of_labels(class_weight, message):
    X, Y = make_data("labels")
    with pytest.raises(ValueError, match=message):
        GroupOWLClassifier(class_weight=class_weight).fit(X, Y)


def test_verify_refuses_another_kind_of_labels():
    X, Y = make_data("labels")
    model = GroupOWLClassifier().fit(X, Y)
    with pytest.raises(ValueError, match=r"y has the classes \[0, 1\], but .* was fitted with label indicators"):
        model.verify(X, Y[:, 0])
    with pytest.raises(ValueError, match="y has 2 targets, but GroupOWLClassifier was fitted with 3"):
        model.verify(X, Y[:, :2])


def test_models_of_two_classes_of_earlier_versions_hold(tmp_path):
    """They have a column for each class, and become one with their difference."""
    X, Y = make_data("labels")
    search = GroupOWLClassifierCV(alphas=6, eps=0.1).fit(X, Y[:, 0])
    halves = np.array([-0.5, 0.5])
    old = search.solve_result_
    search.solve_result_ = go.SolveResult(**{**vars(old), "B": old.B * halves, "intercept": old.intercept * halves})
    points = [type(p)(**{**vars(p), "rows": p.rows * halves, "intercept": p.intercept * halves}) for p in search.path_]
    search.path_ = type(search.path_)(**{**vars(search.path_), "points": tuple(points), "loss": "multinomial"})
    del search.multilabel_
    again = go.load(go.save(search, tmp_path / "old"))
    assert again.verify(X, Y[:, 0]), again.verify(X, Y[:, 0])


# Counts ---------------------------------------------------------------------------------------------------


def test_counts_are_predicted_on_their_scale():
    X, Y = make_data("poisson")
    model = GroupOWLRegressor(loss="poisson").fit(X, Y)
    np.testing.assert_allclose(model.predict(X), np.exp(X @ model.coef_.T + model.intercept_), rtol=1e-12)
    weight = np.arange(1.0, 101.0)
    each = [d2_tweedie_score(Y[:, k], model.predict(X)[:, k], sample_weight=weight, power=1) for k in range(3)]
    assert model.score(X, Y, sample_weight=weight) == pytest.approx(np.mean(each))
    one = GroupOWLRegressor(loss="poisson").fit(X, Y[:, 0])
    assert one.predict(X).shape == (100,)
    assert GridSearchCV(one, {"alpha": [0.1, 0.5]}, cv=3).fit(X, Y[:, 0]).best_score_ > 0.0


def test_the_score_of_folds_is_the_deviance():
    X, Y = make_data("poisson")
    folds = [(np.arange(50), np.arange(50, 100)), (np.arange(50, 100), np.arange(50))]
    ours = GroupOWLRegressorCV(loss="poisson", alphas=[0.2], cv=folds, tol=1e-10).fit(X, Y[:, 0])
    named = GroupOWLRegressorCV(loss="poisson", alphas=[0.2], cv=folds, scoring="neg_mean_poisson_deviance")
    np.testing.assert_array_equal(named.fit(X, Y[:, 0]).score_path_[0].shape, (2,))
    for (train, test), score in zip(folds, ours.score_path_[0], strict=True):
        P = GroupOWLRegressor(0.2, loss="poisson").fit(X[train], Y[train, 0]).predict(X[test])
        assert score == pytest.approx(-mean_poisson_deviance(Y[test, 0], P), rel=1e-2)


def test_counts_that_a_training_set_lacks():
    X, Y = make_data("poisson")
    Y[:, 2] = 0
    Y[:3, 2] = 1
    folds = [(np.arange(50, 100), np.arange(50)), (np.arange(50), np.arange(50, 100))]
    search = GroupOWLRegressorCV(loss="poisson", alphas=5, eps=0.1, cv=folds).fit(X, Y)
    assert np.isfinite(search.score_path_).all()


# Outliers -------------------------------------------------------------------------------------------------


def test_outliers_do_not_move_the_fit():
    X, Y = make_data("huber", n=300, seed=2)
    clean = np.where(Y > 20, Y - 40.0, Y)
    robust, plain, ideal = (
        GroupOWLRegressor(0.05, loss=loss).fit(X, y).coef_
        for loss, y in (("huber", Y), ("squared", Y), ("huber", clean))
    )
    assert np.abs(robust - ideal).max() < 0.2 * np.abs(plain - ideal).max()


def test_delta_is_fixed_by_a_first_fit():
    X, Y = make_data("huber", n=300)
    model = GroupOWLRegressor(loss="huber").fit(X, Y)
    ratio = model.delta_ / (1.345 * 0.3)
    assert 0.9 < ratio.min() <= ratio.max() < 1.3  # outliers of 40 count for little
    scaled = GroupOWLRegressor(loss="huber").fit(X, 100.0 * Y)
    np.testing.assert_allclose(scaled.delta_, 100.0 * model.delta_, rtol=1e-3)
    other = GroupOWLRegressor(0.5, loss="huber").fit(X, Y)
    np.testing.assert_array_equal(other.delta_, model.delta_)  # whatever alpha
    search = GroupOWLRegressorCV(loss="huber", alphas=5, eps=0.1).fit(X, Y)
    np.testing.assert_array_equal(search.delta_, model.delta_)
    given = GroupOWLRegressor(model.alpha_, loss="huber", delta=model.delta_).fit(X, Y)
    np.testing.assert_allclose(given.coef_, model.coef_, atol=1e-8)
    own = GroupOWLRegressor(model.alpha_, loss=HuberLoss(model.delta_)).fit(X, Y)
    np.testing.assert_allclose(own.coef_, model.coef_, atol=1e-8)


ASKED = {
    "signs": {"positive": True},
    "a sign": {"positive": {"x5": -1}},
    "groups": {"feature_groups": {"one": ["x30", "x0", "x1"], "other": ["x2", "x35"]}},
    "orthonormal": {"feature_groups": [["x0", "x1"], ["x2", "x35"]], "group_scale": "orthonormal"},
    "factors": {"penalty_factor": {"x0": 2.0, "x5": 0.0, "x6": np.inf}},
    "all": {"feature_groups": [["x0", "x1"]], "penalty_factor": {"x5": 0.0}, "positive": ["x0"], "ridge": 0.01},
}


@pytest.mark.parametrize("asked", ASKED.values(), ids=ASKED)
def test_delta_of_selected_features_knows_what_the_penalty_is_asked(asked):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.standard_normal((120, 80))).add_prefix("x")
    Y = X.to_numpy()[:, :3] @ rng.uniform(1.0, 2.0, (3, 2)) + 0.3 * rng.standard_normal((120, 2))
    Y[:3] += 40.0
    model = GroupOWLRegressor(loss="huber", **asked).fit(X, Y)
    ratio = model.delta_ / (1.345 * 0.3)
    assert 0.7 < ratio.min() <= ratio.max() < 1.6
    assert model.verify(X, Y)


@pytest.mark.parametrize(("n", "d"), [(1000, 30), (1000, 800)], ids=["all features", "selected by halves"])
@pytest.mark.parametrize("size", [0.2, 2.0])
def test_delta_is_that_of_normal_errors(n, d, size):
    """1.345 standard deviations to 12 %, three times the error of such a median, by a strong or a weak signal.

    Residuals are neither shrunken nor chosen.
    """
    rng = np.random.default_rng(7)
    X, noise = rng.standard_normal((n, d)), rng.standard_normal((n, 3))
    Y = size * X[:, :6] @ rng.standard_normal((6, 3)) + 0.3 * noise
    delta = GroupOWLRegressor(loss="huber").fit(X, Y).delta_
    np.testing.assert_allclose(delta, 1.345 * 0.3, rtol=0.12)
    weight = rng.uniform(0.5, 2.0, n) * (rng.random(n) < 0.9)
    weighted = GroupOWLRegressor(loss="huber", fit_intercept=False).fit(X, Y, sample_weight=weight).delta_
    np.testing.assert_allclose(weighted, 1.345 * 0.3, rtol=0.15)


def test_deltas_of_few_samples():
    """There is something to fit, whatever the halves have."""
    rng = np.random.default_rng(0)
    for n in (2, 3, 5):
        X, Y = rng.standard_normal((n, 8)), rng.standard_normal((n, 2))
        model = GroupOWLRegressor(loss="huber").fit(X, Y)
        assert np.all(model.delta_ > 0.0)
        assert model.verify(X, Y)


def test_deviations_without_outliers():
    rng = np.random.default_rng(0)
    values = np.stack([2.0 * rng.standard_normal(20_000), np.zeros(20_000), rng.random(20_000) < 0.2], axis=1)
    values[:3000, 0] += 1e6
    found = robust_deviations(values, np.ones((20_000, 1)))
    assert found[0] == pytest.approx(2.0, rel=0.25)
    assert found[1] == 1.0
    assert found[2] == pytest.approx(0.2 / 0.7979, rel=0.05)
    np.testing.assert_allclose(
        robust_deviations(values[:100], np.arange(100.0)[:, None]),
        robust_deviations(np.repeat(values[:100], np.arange(100), axis=0), np.ones((4950, 1))),
    )


def test_huber_without_penalty_is_near_that_of_scikit_learn():
    X, Y = make_data("huber", n=300, d=5)
    other = HuberRegressor(epsilon=1.345, alpha=0.0).fit(X, Y[:, 0])
    model = GroupOWLRegressor(1e-6, loss="huber", delta=1.345 * other.scale_, tol=1e-9).fit(X, Y[:, 0])
    np.testing.assert_allclose(model.coef_, other.coef_, atol=1e-3)
    assert cross_val_score(model, X, Y[:, 0], cv=3).shape == (3,)


BAD = {
    "classes": ({"loss": "multinomial"}, "loss='multinomial' is for classes, not for numbers. Use GroupOWLClassifier"),
    "labels": ({"loss": "logistic"}, "loss='logistic' is for labels, not for numbers"),
    "unknown": ({"loss": "hinge"}, "loss must be one of 'squared', 'multinomial', 'logistic', 'poisson', 'huber'"),
    "useless": ({"delta": 1.0}, "delta=1.0 is for loss='huber', got loss='squared'. Leave it out"),
    "negative": ({"loss": "huber", "delta": -1.0}, "delta must be positive and finite"),
    "too many": ({"loss": "huber", "delta": [1.0, 2.0]}, "delta has 2 entries, but there are 3 targets"),
    "solver": ({"loss": "poisson", "solver": "spgd"}, "Use solver='auto' or solver='apgd'"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_parameters(name):
    settings, message = BAD[name]
    X, Y = make_data("poisson")
    with pytest.raises(ValueError, match=message.replace("[", r"\[")):
        GroupOWLRegressor(**settings).fit(X, Y)


def test_criteria_are_for_likelihoods():
    X, Y = make_data("huber")
    with pytest.raises(ValueError, match="loss='huber' is no likelihood"):
        search_of("huber", selection="bic").fit(X, Y)
    assert search_of("poisson", selection="bic").fit(*make_data("poisson")).criterion_path_.shape == (10,)


@pytest.mark.parametrize("offset", [0.0, 1e6])
@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_outliers_on_any_scale(offset, scale):
    """Fits of shifted and scaled targets are shifted and scaled fits."""
    X, Y = make_data("huber")
    plain = GroupOWLRegressor(loss="huber", unpenalized=[3]).fit(X, Y)
    model = GroupOWLRegressor(loss="huber", unpenalized=[3]).fit(X, scale * (Y + offset))
    assert model.verify(X, scale * (Y + offset))
    np.testing.assert_allclose(model.delta_ / scale, plain.delta_, rtol=1e-3)
    np.testing.assert_allclose(model.coef_ / scale, plain.coef_, atol=1e-2)


@every_kind
def test_single_precision(kind):
    X, Y = make_data(kind)
    model = single_of(kind, tol=1e-4).fit(X.astype(np.float32), Y)
    assert model.coef_.dtype == np.float32
    assert model.verify(X.astype(np.float32), Y)
    if kind != "labels":
        assert model.predict(X.astype(np.float32)).dtype == np.float32


def test_sparse_label_indicators_are_those_of_a_dense_matrix():
    """As MultiLabelBinarizer(sparse_output=True) makes them."""
    X, L = make_multilabel_classification(80, 12, n_classes=4, random_state=0)
    for estimator in (go.GroupOWLClassifier(0.02), go.GroupOWLClassifierCV(alphas=4, cv=3)):
        dense = estimator.fit(X, L).coef_.copy()
        for make in (sp.csr_matrix, sp.csc_array):
            np.testing.assert_array_equal(estimator.fit(X, make(L)).coef_, dense)
            assert estimator.score(X, make(L)) == estimator.score(X, L)
            assert estimator.verify(X, make(L))


def test_what_a_tolerance_is_relative_to_is_said_of_counts():
    """Counts have a smallest loss that is not zero."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 8))
    y = rng.poisson(np.exp(0.5 * X[:, 0] + 2.0))
    told = str(go.GroupOWLRegressor(loss="poisson").fit(X, y).verify(X, y))
    assert "at most tol * (null loss - smallest loss) = " in told
    assert "at most tol * null loss = " in str(go.GroupOWLRegressor().fit(X, y).verify(X, y))
