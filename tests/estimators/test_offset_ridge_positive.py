"""Offsets, ridges and signs in estimators, paths and cross-validation."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn
from sklearn.linear_model import PoissonRegressor
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score

import groupowl as go

N, D = 60, 12


def make(kind, seed=0):
    """An estimator, X, y, and an offset that matters."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N, D))
    z = X[:, 0] - 0.7 * X[:, 1]
    offset = rng.standard_normal(N)
    if kind == "squared":
        return go.GroupOWLRegressor(0.1), X, z + offset + 0.3 * rng.standard_normal(N), offset
    if kind == "tasks":
        offset = rng.standard_normal((N, 2))
        Y = np.column_stack([z, -z]) + offset + 0.3 * rng.standard_normal((N, 2))
        return go.GroupOWLRegressor(0.1), X, Y, offset
    if kind == "huber":
        return go.GroupOWLRegressor(0.1, loss="huber"), X, z + offset + 0.3 * rng.standard_normal(N), offset
    if kind == "poisson":
        return go.GroupOWLRegressor(0.1, loss="poisson"), X, rng.poisson(np.exp(0.5 * z + offset)), offset
    if kind == "two classes":
        offset *= 3.0
        y = np.where(3.0 * z + offset + rng.logistic(size=N) > 0.0, "yes", "no")
        return go.GroupOWLClassifier(0.05), X, y, offset
    if kind == "three classes":
        offset = 2.0 * rng.standard_normal((N, 3))
        y = np.argmax(np.column_stack([z, -z, 0.0 * z]) + offset + rng.gumbel(size=(N, 3)), axis=1)
        return go.GroupOWLClassifier(0.05), X, y, offset
    time = rng.exponential(size=N) * np.exp(-z - offset)
    return go.GroupOWLCox(0.05), X, np.column_stack([rng.random(N) < 0.8, time]), offset


KINDS = ["squared", "tasks", "huber", "poisson", "two classes", "three classes", "cox"]
every_kind = pytest.mark.parametrize("kind", KINDS)
CV = {"GroupOWLRegressor": go.GroupOWLRegressorCV, "GroupOWLClassifier": go.GroupOWLClassifierCV}
CV["GroupOWLCox"] = go.GroupOWLCoxCV


def searched(model, **params):
    own = {name: value for name, value in model.get_params().items() if name not in ("alpha", "warm_start")}
    return CV[type(model).__name__](**own | {"alphas": 10, "eps": 0.05, "cv": 3} | params)


@every_kind
def test_a_fit_with_an_offset_holds_and_predicts_with_one(kind, tmp_path):
    model, X, y, offset = make(kind)
    model.fit(X, y, offset=offset)
    assert model.has_offset_
    assert model.verify(X, y, offset=offset)
    assert not model.verify(X, y, offset=offset[::-1])
    with pytest.raises(ValueError, match=r"was fitted with an offset: give that of these samples, or offset=0"):
        model.predict(X)
    with pytest.raises(ValueError, match="was fitted with an offset"):
        model.verify(X, y)
    without, fitted = model.score(X, y, offset=0), model.score(X, y, offset=offset)
    assert fitted > without
    go.save(model, tmp_path / "model")
    again = go.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict(X, offset=offset), model.predict(X, offset=offset))
    with pytest.raises(ValueError, match="offset=0"):
        again.predict(X)


@every_kind
def test_a_zero_offset_is_no_offset(kind):
    model, X, y, _ = make(kind)
    plain, zero = sklearn.clone(model).fit(X, y), sklearn.clone(model).fit(X, y, offset=np.zeros(N))
    np.testing.assert_array_equal(plain.coef_, zero.coef_)
    assert plain.dual_gap_ == zero.dual_gap_
    np.testing.assert_array_equal(zero.predict(X), plain.predict(X, offset=0))
    assert not hasattr(zero, "has_offset_")


@pytest.mark.parametrize("kind", ["squared", "tasks", "huber", "poisson"])
def test_the_fit_is_the_solve_with_the_offset(kind):
    """Targets that know the offset, and the same objective."""
    model, X, y, offset = make(kind)
    model.set_params(tol=1e-9).fit(X, y, offset=offset)
    result = model.solve_result_
    if kind != "poisson":
        other = sklearn.clone(model)
        if kind == "huber":
            other.set_params(delta=model.delta_)
        other.fit(X, y - offset)
        assert abs(other.solve_result_.primal - result.primal) <= result.gap + other.solve_result_.gap
        np.testing.assert_allclose(model.predict(X, offset=offset) - offset, other.predict(X), atol=1e-4)
    else:
        np.testing.assert_allclose(np.log(model.predict(X, offset=offset)) - offset, X @ model.coef_ + model.intercept_)


def test_exposures_are_what_they_are_elsewhere():
    """Counts with the logarithm of an exposure are rates with the exposure as weight, in scikit-learn."""
    rng = np.random.default_rng(1)
    X, exposure = rng.standard_normal((200, 4)), rng.uniform(0.5, 5.0, size=200)
    counts = rng.poisson(exposure * np.exp(0.3 * X[:, 0] - 0.2))
    ours = go.GroupOWLRegressor(1e-9, loss="poisson", weights="constant", tol=1e-12)
    ours.fit(X, counts, offset=np.log(exposure))
    theirs = PoissonRegressor(alpha=0.0, tol=1e-10, max_iter=1000).fit(X, counts / exposure, sample_weight=exposure)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-5)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-5)


@every_kind
def test_folds_have_their_part_of_the_offset(kind):
    model, X, y, offset = make(kind)
    search = searched(model, tol=1e-8).fit(X, y, offset=offset)
    assert search.verify(X, y, offset=offset)
    if kind in ("squared", "tasks"):
        other = searched(model, tol=1e-8).fit(X, y - offset)
        np.testing.assert_allclose(search.score_path_, other.score_path_, rtol=1e-6)
    plain = searched(model, tol=1e-8).fit(X, y)
    assert search.best_score_ > plain.best_score_
    with pytest.raises(ValueError, match="would predict without the offset"):
        searched(model, scoring="r2" if kind != "cox" else lambda *a: 0.0).fit(X, y, offset=offset)


def test_offsets_are_routed():
    """scikit-learn cuts offsets to folds where fit and score request them."""
    model, X, y, offset = make("poisson")
    with sklearn.config_context(enable_metadata_routing=True):
        requested = model.set_fit_request(offset=True).set_score_request(offset=True)
        scores = cross_val_score(requested, X, y, cv=KFold(3), params={"offset": offset})
        search = GridSearchCV(requested, {"alpha": [0.05, 0.1]}, cv=3).fit(X, y, offset=offset)
    for found, (train, test) in zip(scores, KFold(3).split(X), strict=True):
        part = sklearn.clone(model).fit(X[train], y[train], offset=offset[train])
        assert part.score(X[test], y[test], offset=offset[test]) == found
    assert search.best_estimator_.has_offset_


@every_kind
def test_paths_with_an_offset(kind):
    model, X, y, offset = make(kind)
    if kind == "cox":
        pytest.skip("paths of times are tested by the search")
    loss = {"two classes": "multinomial", "three classes": "multinomial"}.get(kind, getattr(model, "loss", ""))
    if kind == "two classes":
        offset = np.column_stack([np.zeros(N), offset])
    path = go.group_owl_path(X, y, loss=loss, alphas=8, eps=0.1, offset=offset)
    assert path.n_selected[0] == 0
    assert path.n_selected[-1] > 0
    assert set(path.statuses) == {"converged"}


@every_kind
@pytest.mark.parametrize("search", [False, True])
def test_ridges_and_signs_hold(kind, search, tmp_path):
    model, X, y, offset = make(kind)
    positive = kind != "three classes"
    model.set_params(ridge=0.3, positive=positive, standardize=True)
    model = searched(model) if search else model
    model.fit(X, y, offset=offset)
    assert model.verify(X, y, offset=offset)
    assert not positive or np.all(model.coef_ >= 0.0)
    plain = sklearn.clone(model).set_params(ridge=0.0, positive=False).fit(X, y, offset=offset)
    assert np.abs(plain.coef_ - model.coef_).max() > 1e-3
    go.save(model, tmp_path / "model")
    again = go.load(tmp_path / "model")
    assert (again.ridge, again.positive) == (0.3, positive)
    assert again.verify(X, y, offset=offset)


def test_a_ridge_of_two_classes_is_that_of_two_columns():
    """As for alpha: one column with half the ridge is two columns whose rows sum to zero."""
    model, X, y, _ = make("two classes")
    model.set_params(ridge=0.2, tol=1e-11).fit(X, y)
    path = go.group_owl_path(X, y, loss="multinomial", alphas=[model.alpha], ridge=0.2, tol=1e-11)
    np.testing.assert_allclose(path.coefs[0, :, 0], model.coef_[0], atol=1e-5)


def test_a_ridge_is_that_of_standardized_columns():
    """The coefficients that the penalty sees: rescaling a column changes nothing but its coefficient."""
    model, X, y, _ = make("squared")
    factors = np.geomspace(0.1, 10.0, D)
    model.set_params(ridge=0.5, standardize=True, tol=1e-12)
    one, other = sklearn.clone(model).fit(X, y), sklearn.clone(model).fit(X * factors, y)
    np.testing.assert_allclose(one.coef_, other.coef_ * factors, atol=1e-8)
    assert one.solve_result_.primal == pytest.approx(other.solve_result_.primal)


def test_with_constant_weights_a_ridge_is_the_elastic_net():
    from sklearn.linear_model import MultiTaskElasticNet

    _, X, Y, _ = make("tasks")
    ours = go.GroupOWLRegressor(0.05, weights="constant", ridge=0.1, tol=1e-12).fit(X, Y)
    theirs = MultiTaskElasticNet(alpha=0.15, l1_ratio=0.05 / 0.15, tol=1e-12, max_iter=100_000).fit(X, Y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-7)


def test_signs_by_name():
    pandas = pytest.importorskip("pandas")
    model, X, y, _ = make("squared")
    frame = pandas.DataFrame(X, columns=[f"x{j}" for j in range(D)])
    one = sklearn.clone(model).set_params(positive=["x1"], alpha=0.01).fit(frame, y)
    assert one.coef_[1] == 0.0
    assert one.coef_.min() < 0.0
    other = sklearn.clone(model).set_params(positive={"x0": -1, "x1": 0}, alpha=0.01).fit(frame, y)
    assert (other.coef_[0], other.coef_[1] < 0.0) == (0.0, True)
    assert one.verify(frame, y)


@pytest.mark.parametrize("asked", [{"ridge": 0.1}, {"positive": True}])
def test_criteria_say_what_they_do_not_know(asked):
    model, X, y, _ = make("squared")
    with pytest.raises(ValueError, match="counts degrees of freedom, which are not known with"):
        searched(model, selection="bic", **asked).fit(X, y)


def test_what_cannot_be_together_is_refused():
    model, X, y, offset = make("squared")
    with pytest.raises(ValueError, match=r"relaxed=True fits the selected features again .* Use relaxed=False"):
        model.set_params(relaxed=True, positive=True).fit(X, y)
    with pytest.raises(ValueError, match="offset must have shape"):
        make("squared")[0].fit(X, y, offset=np.ones((N, 2)))
    classifier, X, y, _ = make("three classes")
    with pytest.raises(ValueError, match="adds the same to all classes"):
        classifier.fit(X, y, offset=offset)


def test_a_relaxed_fit_with_offset_and_ridge():
    model, X, y, offset = make("poisson")
    model.set_params(relaxed=True, ridge=0.1).fit(X, y, offset=offset)
    assert model.verify(X, y, offset=offset)


def test_paths_with_an_offset_predict_with_one(tmp_path):
    rng = np.random.default_rng(0)
    X, Y, offset = rng.standard_normal((60, 6)), rng.poisson(2.0, (60, 2)), rng.standard_normal((60, 2))
    path = go.group_owl_path(X, Y, loss="poisson", offset=offset, alphas=4)
    go.save(path, tmp_path / "path")
    model = go.GroupOWLRegressorCV(loss="poisson", alphas=4).fit(X, Y, offset=offset)
    for given in (path, go.load(tmp_path / "path"), model.path_, path[1:]):
        with pytest.raises(
            ValueError, match="the path was fitted with an offset: give that of these samples, or offset=0"
        ):
            given.predict(X, given.alphas[-1])
        without = given.predict(X, given.alphas[-1], offset=0)
        np.testing.assert_allclose(given.predict(X, given.alphas[-1], offset=offset), without * np.exp(offset))
    assert model.verify(X, Y, offset=offset)
    assert not go.group_owl_path(X, Y, alphas=3).has_offset
