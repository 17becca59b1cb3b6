"""Fitted attributes: shapes, meanings, precision, names; labels and class weights; warm starts; fits that fail."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning, NotFittedError

import groupowl as go
from estimator_support import fitted_state, labelled_data, objective, regression_data, same_state
from groupowl.estimators import GroupOWLClassifier, GroupOWLRegressor
from groupowl.model import build_model

TIGHT = 1e-10


# Shapes and meanings ------------------------------------------------------------------------------------


def test_shapes_follow_the_targets():
    X, Y = regression_data()
    many, flat, column = (GroupOWLRegressor().fit(X, y) for y in (Y, Y[:, 0], Y[:, :1]))
    assert many.coef_.shape == (3, 30)
    assert many.intercept_.shape == (3,)
    assert flat.coef_.shape == (30,)
    assert np.ndim(flat.intercept_) == 0
    assert column.coef_.shape == (1, 30)
    assert column.intercept_.shape == (1,)
    assert many.predict(X).shape == Y.shape
    assert flat.predict(X).shape == (40,)
    assert column.predict(X).shape == (40, 1)
    np.testing.assert_array_equal(flat.coef_, column.coef_[0])
    np.testing.assert_allclose(many.predict(X), X @ many.coef_.T + many.intercept_, rtol=1e-12)


def test_the_objective_is_the_documented_one():
    X, Y = regression_data()
    weight = np.random.default_rng(5).uniform(0.1, 3.0, len(X))
    model = GroupOWLRegressor(weights="linear", tol=TIGHT).fit(X, Y, sample_weight=weight)
    value = objective(X, Y, model.coef_.T, model.intercept_, model.alpha_, go.weights.linear(30), sample_weight=weight)
    assert model.solve_result_.primal == pytest.approx(value, rel=1e-12)
    assert model.dual_gap_ == model.solve_result_.gap
    np.testing.assert_array_equal(model.weights_, go.weights.linear(30))


def test_the_objective_of_the_classifier_is_the_documented_one():
    X, y = labelled_data()
    model = GroupOWLClassifier(weights="bh").fit(X, y)
    value = objective(
        X, np.eye(3)[y], model.coef_.T, model.intercept_, model.alpha_, go.weights.bh(30), loss="multinomial"
    )
    assert model.solve_result_.primal == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(model.coef_.sum(axis=0), 0.0, atol=1e-12)


@pytest.mark.parametrize("cls", [GroupOWLRegressor, GroupOWLClassifier])
def test_automatic_alpha_is_a_tenth_of_alpha_max(cls):
    X, y = regression_data() if cls is GroupOWLRegressor else labelled_data()
    model = cls().fit(X, y)
    Y = y if cls is GroupOWLRegressor else np.eye(3)[y]
    alpha_max = build_model(X, Y, loss=model._loss).alpha_max
    assert model.alpha_ == pytest.approx(0.1 * alpha_max, rel=1e-12)
    assert model.alpha == "auto"
    assert 0 < model.get_support().sum() < 30


def test_automatic_alpha_where_nothing_can_be_selected():
    X, _ = regression_data()
    model = GroupOWLRegressor().fit(X, np.full(len(X), 3.25))
    assert model.alpha_ == 1.0
    assert model.intercept_ == pytest.approx(3.25, rel=1e-15)
    assert not model.coef_.any()
    assert model.verify(X, np.full(len(X), 3.25))


@pytest.mark.parametrize("standardize", [False, True])
@pytest.mark.parametrize("cls", [GroupOWLRegressor, GroupOWLClassifier])
def test_from_alpha_max_up_nothing_is_selected(cls, standardize):
    X, y = regression_data() if cls is GroupOWLRegressor else labelled_data()
    top = 10 * cls(standardize=standardize).fit(X, y).alpha_
    for alpha in (top * (1 + 1e-12), 5 * top):
        model = cls(alpha, standardize=standardize).fit(X, y)
        assert not model.coef_.any()
        assert (model.dual_gap_, model.n_iter_) == (0.0, 1)
        assert len(model.selected_features_) == 0
        assert model.verify(X, y)
    # Just below, zero is about (1e-3)^2 of the null loss above the minimum: too much for this tol.
    assert cls(top * (1 - 1e-3), standardize=standardize, tol=1e-8).fit(X, y).coef_.any()


def test_clusters_selected_features_and_screening():
    X, Y = regression_data()
    model = GroupOWLRegressor(tol=TIGHT).fit(X, Y)
    support = np.flatnonzero(np.any(model.coef_ != 0, axis=0))
    np.testing.assert_array_equal(model.get_support(indices=True), support)
    np.testing.assert_array_equal(model.selected_features_, support)
    np.testing.assert_array_equal(model.clusters_ > 0, model.get_support())
    norms = np.linalg.norm(model.coef_, axis=0)
    for label in range(1, model.clusters_.max() + 1):
        members = norms[model.clusters_ == label]
        assert np.ptp(members) <= 1e-8 * members.max()
    assert model.screened_fraction_ == pytest.approx(1 - len(model.solve_result_.active) / 30)
    assert model.screened_fraction_ > 0
    assert sp.issparse(model.sparse_coef_)
    np.testing.assert_array_equal(model.sparse_coef_.toarray(), model.coef_)


def test_nothing_is_fitted_before_fit():
    model = GroupOWLRegressor()
    assert not hasattr(model, "selected_features_")
    assert not hasattr(model, "sparse_coef_")
    for call in (model.get_support, model.certificate, model.summary, model.coef_frame):
        with pytest.raises(NotFittedError):
            call()
    with pytest.raises(NotFittedError):
        model.verify([[1.0]], [1.0])


def test_standardized_columns_do_not_depend_on_units():
    X, Y = regression_data()
    factors = np.random.default_rng(0).uniform(0.01, 100.0, 30)
    one = GroupOWLRegressor(standardize=True, tol=TIGHT).fit(X, Y)
    other = GroupOWLRegressor(standardize=True, tol=TIGHT).fit(X * factors, Y)
    np.testing.assert_allclose(other.coef_ * factors, one.coef_, atol=1e-5 * np.abs(one.coef_).max())
    assert other.solve_result_.primal == pytest.approx(one.solve_result_.primal, rel=1e-9)


# Unpenalized columns ------------------------------------------------------------------------------------


@pytest.mark.parametrize("cls", [GroupOWLRegressor, GroupOWLClassifier])
def test_unpenalized_columns_by_name_and_index(cls):
    X, y = regression_data() if cls is GroupOWLRegressor else labelled_data()
    frame = pd.DataFrame(X, columns=[f"gene{j}" for j in range(30)])
    named = cls(unpenalized=["gene2", "gene7"], tol=1e-8).fit(frame, y)
    indexed = cls(unpenalized=[7, 2], tol=1e-8).fit(X, y)
    method = "predict" if cls is GroupOWLRegressor else "decision_function"
    fits = [np.asarray(getattr(model, method)(data)) for model, data in ((named, frame), (indexed, X))]
    if cls is GroupOWLClassifier:  # a softmax does not see what all classes share
        fits = [scores - scores.mean(axis=1, keepdims=True) for scores in fits]
    np.testing.assert_allclose(*fits, atol=1e-6 * np.abs(fits[1]).max())  # frames are stored by columns
    np.testing.assert_array_equal(named.unpenalized_, [2, 7])
    assert len(named.weights_) == 28
    assert named.get_support()[[2, 7]].all()
    assert not named.clusters_[[2, 7]].any()
    assert named.verify(frame, y)


@pytest.mark.parametrize("cls", [GroupOWLRegressor, GroupOWLClassifier])
def test_at_a_large_alpha_the_unpenalized_columns_are_fitted_alone(cls):
    """The gradient of the loss vanishes in their coefficients."""
    X, y = regression_data() if cls is GroupOWLRegressor else labelled_data()
    model = cls(1e3, unpenalized=[0, 4]).fit(X, y)
    np.testing.assert_array_equal(model.get_support(indices=True), [0, 4])
    residual = y - model.predict(X) if cls is GroupOWLRegressor else np.eye(3)[y] - model.predict_proba(X)
    np.testing.assert_allclose(X[:, [0, 4]].T @ residual / len(X), 0.0, atol=1e-6)
    np.testing.assert_allclose(residual.mean(axis=0), 0.0, atol=1e-6)


# Precision and kinds of data ----------------------------------------------------------------------------


@pytest.mark.parametrize("cls", [GroupOWLRegressor, GroupOWLClassifier])
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array, sp.csc_matrix])
def test_single_precision_is_kept(cls, kind):
    X, y = regression_data() if cls is GroupOWLRegressor else labelled_data()
    small = kind(X.astype(np.float32))
    model = cls().fit(small, y)
    assert model.coef_.dtype == model.intercept_.dtype == np.float32
    output = model.predict(small) if cls is GroupOWLRegressor else model.predict_proba(small)
    assert output.dtype == np.float32
    assert model.solve_result_.converged
    assert model.verify(small, y)
    wide = cls().fit(X, y)
    assert wide.coef_.dtype == np.float64
    # Both minima are within tol of the same number, up to the rounding of X.
    assert model.solve_result_.primal == pytest.approx(wide.solve_result_.primal, rel=1e-5)


@pytest.mark.parametrize("cls", [GroupOWLRegressor, GroupOWLClassifier])
@pytest.mark.parametrize("make", [sp.csr_array, sp.csc_array, sp.csr_matrix])
def test_sparse_data_give_the_same(cls, make):
    X, y = regression_data() if cls is GroupOWLRegressor else labelled_data()
    X = np.where(np.random.default_rng(0).random(X.shape) < 0.4, X, 0.0)
    dense = cls(tol=TIGHT, standardize=True).fit(X, y)
    sparse = cls(tol=TIGHT, standardize=True).fit(make(X), y)
    assert sparse.solve_result_.primal == pytest.approx(dense.solve_result_.primal, rel=1e-9)
    np.testing.assert_allclose(sparse.coef_, dense.coef_, atol=1e-5)
    method = "predict" if cls is GroupOWLRegressor else "predict_proba"
    np.testing.assert_allclose(getattr(sparse, method)(make(X)), getattr(dense, method)(X), atol=1e-4)
    assert sparse.verify(make(X), y)


NAMES = [f"gene {j}" for j in range(30)]


@pytest.mark.parametrize("make", [lambda X: pd.DataFrame(X, columns=NAMES), lambda X: pl.DataFrame(X, schema=NAMES)])
@pytest.mark.parametrize("cls", [GroupOWLRegressor, GroupOWLClassifier])
def test_frames_keep_their_names(cls, make):
    X, y = regression_data() if cls is GroupOWLRegressor else labelled_data()
    frame = make(X)
    model = cls().fit(frame, y)
    plain = cls().fit(X, y)
    np.testing.assert_allclose(model.coef_, plain.coef_, rtol=1e-8)  # frames are stored by columns
    np.testing.assert_array_equal(model.feature_names_in_, NAMES)
    np.testing.assert_array_equal(model.selected_features_, np.array(NAMES)[model.get_support()])
    np.testing.assert_allclose(model.predict(frame), plain.predict(X), rtol=1e-8)
    assert model.verify(frame, y)
    model.fit(X, y)
    assert not hasattr(model, "feature_names_in_")


def test_targets_as_series_and_frames():
    X, Y = regression_data()
    expected = GroupOWLRegressor().fit(X, Y).coef_
    for targets in (pd.DataFrame(Y), pl.DataFrame(Y), Y.tolist(), Y.astype(object)):
        np.testing.assert_allclose(GroupOWLRegressor().fit(X, targets).coef_, expected, rtol=1e-8)
    flat = GroupOWLRegressor().fit(X, pd.Series(Y[:, 0]))
    assert flat.coef_.shape == (30,)


# Classes ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "labels",
    [
        np.array(["cat", "dog", "eel"]),
        np.array(["cat", "dog", "eel"], dtype=object),
        np.array([3, 5, 9], dtype=object),
        np.array([-3, 5, 100]),
        np.array([1.0, 2.0, 3.0]),
    ],
    ids=["text", "objects", "integer objects", "integers", "floats"],
)
def test_any_labels(labels):
    X, y = labelled_data()
    plain = GroupOWLClassifier().fit(X, y)
    model = GroupOWLClassifier().fit(X, labels[y])
    np.testing.assert_array_equal(model.classes_, labels)
    np.testing.assert_array_equal(model.coef_, plain.coef_)
    np.testing.assert_array_equal(model.predict(X), labels[plain.predict(X)])
    assert model.score(X, labels[y]) == plain.score(X, y) > 0.5


@pytest.mark.parametrize("labels", [np.array([False, True]), np.array(["no", "yes"]), np.array([0, 1])])
def test_two_classes_have_one_row(labels):
    X, y = labelled_data(n_classes=2)
    model = GroupOWLClassifier().fit(X, labels[y])
    B, b0 = model.solve_result_.B, model.solve_result_.intercept
    assert model.coef_.shape == (1, 30)
    assert model.intercept_.shape == (1,)
    np.testing.assert_array_equal(model.coef_, B.T)
    np.testing.assert_array_equal(model.intercept_, b0)
    scores = model.decision_function(X)
    assert scores.shape == (60,)
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], 1 / (1 + np.exp(-scores)), rtol=1e-12)
    np.testing.assert_array_equal(model.predict(X), labels[(scores > 0).astype(int)])
    np.testing.assert_array_equal(model.predict(X), labels[model.predict_proba(X).argmax(axis=1)])


def test_probabilities_are_the_softmax_of_all_classes():
    X, y = labelled_data()
    model = GroupOWLClassifier().fit(X, y)
    Z = X @ model.solve_result_.B + model.solve_result_.intercept
    np.testing.assert_allclose(model.decision_function(X), Z, rtol=1e-9, atol=1e-12)
    P = np.exp(Z) / np.exp(Z).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.predict_proba(X), P, rtol=1e-10)
    np.testing.assert_allclose(model.predict_log_proba(X), np.log(P), rtol=1e-9)
    far = model.predict_log_proba(1e6 * X)
    assert np.isfinite(far).all()
    np.testing.assert_array_equal(model.predict(X), P.argmax(axis=1))


def test_class_weights_are_sample_weights():
    X, y = labelled_data()
    given = GroupOWLClassifier(class_weight={0: 3.0, 2: 0.5}, alpha=0.02, tol=TIGHT).fit(X, y)
    weight = np.array([3.0, 1.0, 0.5])[y]
    by_sample = GroupOWLClassifier(alpha=0.02, tol=TIGHT).fit(X, y, sample_weight=weight)
    np.testing.assert_array_equal(given.coef_, by_sample.coef_)
    assert given.verify(X, y)


def test_balanced_classes_have_equal_weight_with_sample_weights_too():
    X, y = labelled_data()
    weight = np.random.default_rng(0).uniform(0.0, 2.0, len(y))
    balanced = GroupOWLClassifier(class_weight="balanced", alpha=1e3).fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(balanced.predict_proba(X[:1]), 1 / 3, rtol=1e-9)  # the null model
    totals = np.bincount(y, weights=weight)
    factors = weight.sum() / (3 * totals)
    by_hand = GroupOWLClassifier(alpha=0.02).fit(X, y, sample_weight=weight * factors[y])
    named = GroupOWLClassifier(alpha=0.02, class_weight="balanced").fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(named.coef_, by_hand.coef_, rtol=1e-9)


def test_a_class_without_weight_is_not_there():
    X, y = labelled_data()
    model = GroupOWLClassifier(alpha=0.02).fit(X, y, sample_weight=(y != 1).astype(float))
    np.testing.assert_array_equal(model.classes_, [0, 2])
    without = GroupOWLClassifier(alpha=0.02).fit(X[y != 1], y[y != 1])
    np.testing.assert_allclose(model.coef_, without.coef_, atol=1e-12)


# Warm starts, warnings, progress ------------------------------------------------------------------------


@pytest.mark.parametrize("cls", [GroupOWLRegressor, GroupOWLClassifier])
def test_a_warm_start_changes_the_work_and_not_the_answer(cls):
    X, y = regression_data() if cls is GroupOWLRegressor else labelled_data()
    cold = cls(tol=TIGHT).fit(X, y)
    warm = cls(tol=TIGHT, warm_start=True).fit(X, y)
    warm.fit(X, y)
    assert warm.n_iter_ < cold.n_iter_
    assert warm.solve_result_.primal == pytest.approx(cold.solve_result_.primal, rel=1e-9)
    warm.set_params(alpha=0.5 * cold.alpha_).fit(X, y)
    again = cls(0.5 * cold.alpha_, tol=TIGHT).fit(X, y)
    assert warm.solve_result_.primal == pytest.approx(again.solve_result_.primal, rel=1e-9)
    np.testing.assert_allclose(warm.coef_, again.coef_, atol=1e-4)
    assert warm.verify(X, y)


def test_a_warm_start_from_other_data_is_forgotten():
    X, Y = regression_data()
    model = GroupOWLRegressor(warm_start=True).fit(X, Y)
    for changed_X, changed_Y in ((X[:, :20], Y), (X, Y[:, :2]), (X, Y[:, 0])):
        model.fit(X, Y).fit(changed_X, changed_Y)
        np.testing.assert_array_equal(model.coef_, GroupOWLRegressor().fit(changed_X, changed_Y).coef_)
    X, y = labelled_data()
    classifier = GroupOWLClassifier(warm_start=True).fit(X, y).fit(X, y + 7)
    np.testing.assert_array_equal(classifier.coef_, GroupOWLClassifier().fit(X, y + 7).coef_)


def test_one_warning_says_the_gap_and_what_to_change():
    X, Y = regression_data()
    with pytest.warns(ConvergenceWarning) as caught:
        model = GroupOWLRegressor(max_iter=1, tol=1e-12).fit(X, Y)
    assert len(caught) == 1
    text = str(caught[0].message)
    assert f"{model.dual_gap_:.3g}" in text
    assert "max_iter=1" in text
    assert "Raise max_iter or tol" in text
    assert caught[0].filename == __file__
    assert not model.solve_result_.converged
    assert not model.verify(X, Y)


@pytest.mark.parametrize("verbose", [1, 2, True])
def test_progress_is_printed_on_request(verbose, capsys):
    X, Y = regression_data()
    GroupOWLRegressor().fit(X, Y)
    assert capsys.readouterr() == ("", "")
    GroupOWLRegressor(verbose=verbose).fit(X, Y)
    printed = "".join(capsys.readouterr())
    assert "GroupOWLRegressor" in printed
    assert "gap" in printed


@pytest.mark.parametrize("solver", ["apgd", "spgd", go.APGD(check_every=5), go.WorkingSet()])
@pytest.mark.parametrize("screening", ["safe", "none"])
def test_every_solver_fits(solver, screening):
    X, Y = regression_data()
    model = GroupOWLRegressor(solver=solver, screening=screening, random_state=0, tol=1e-5).fit(X, Y)
    expected = GroupOWLRegressor(tol=1e-8).fit(X, Y)
    null_loss = 0.5 * np.sum((Y - Y.mean(axis=0)) ** 2) / len(Y)
    assert abs(model.solve_result_.primal - expected.solve_result_.primal) <= 1.01e-5 * null_loss
    assert model.verify(X, Y)
    assert (model.screened_fraction_ == 0) == (screening == "none")


# Fits that fail -----------------------------------------------------------------------------------------


class Interrupted:
    """A solver whose user loses patience after some rounds."""

    def __init__(self, rounds):
        self.rounds, self.inner = rounds, go.APGD()

    def __getattr__(self, name):
        return getattr(go.APGD(), name)

    def advance(self, *args):
        self.rounds -= 1
        if self.rounds < 0:
            raise KeyboardInterrupt
        return self.inner.advance(*args)


def failing_fits(X, y):
    frame = pd.DataFrame(X[:, :5], columns=list("abcde"))
    bad = X.copy()
    bad[0, 0] = np.nan
    return [
        ({}, (bad, y), ValueError),
        ({}, (X[:, :5], y[:-1]), ValueError),
        ({"unpenalized": ["z"]}, (frame, y), ValueError),
        ({"alpha": -1.0}, (frame, y), ValueError),
        ({"weights": "nothing"}, (frame, y), ValueError),
        ({"solver": Interrupted(0)}, (frame, y), KeyboardInterrupt),
        ({"solver": Interrupted(3), "tol": 1e-12}, (frame, y), KeyboardInterrupt),
    ]


@pytest.mark.parametrize("case", range(7))
@pytest.mark.parametrize("cls", [GroupOWLRegressor, GroupOWLClassifier])
def test_a_failed_fit_leaves_the_earlier_one(cls, case):
    X, y = regression_data() if cls is GroupOWLRegressor else labelled_data()
    settings, arguments, error = failing_fits(X, y)[case]
    names = [f"f{j}" for j in range(X.shape[1])]
    model = cls(relaxed=cls is GroupOWLRegressor).fit(pd.DataFrame(X, columns=names), y)
    model.set_params(**settings)
    before = fitted_state(model)
    with pytest.raises(error):
        model.fit(*arguments)
    assert same_state(before, fitted_state(model))
    assert model.n_features_in_ == 30


def test_an_interrupt_from_the_progress_line_changes_nothing(monkeypatch):
    X, Y = regression_data()
    model = GroupOWLRegressor().fit(X, Y).set_params(verbose=1)
    before = fitted_state(model)

    def interrupt(line):
        raise KeyboardInterrupt

    monkeypatch.setattr("groupowl.path.follower.Watch.close", interrupt)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X[:, :7], Y)
    assert same_state(before, fitted_state(model))


def test_a_warning_turned_into_an_error_changes_nothing():
    X, Y = regression_data()
    model = GroupOWLRegressor().fit(X, Y)
    model.set_params(max_iter=1, tol=1e-12)
    before = fitted_state(model)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ConvergenceWarning):
            model.fit(X, Y)
    assert same_state(before, fitted_state(model))


def test_a_refit_leaves_nothing_of_the_last_one():
    X, Y = regression_data()
    model = GroupOWLRegressor(relaxed=True).fit(X, Y)
    assert hasattr(model, "penalized_coef_")
    model.set_params(relaxed=False).fit(X, Y)
    assert not hasattr(model, "penalized_coef_")
    assert not hasattr(model, "penalized_intercept_")
