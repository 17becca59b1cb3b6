"""verify: true exactly when the fit holds on the data given."""

import pickle
import re
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from estimator_support import labelled_data, objective, regression_data
from groupowl.estimators import GroupOWLClassifier, GroupOWLRegressor, GroupOWLRegressorCV
from groupowl.estimators.verification import FitCheck

KINDS = ["regression", "flat", "classes", "two classes"]


def fit_kind(kind, **settings):
    """A fitted estimator with the data that it was fitted to; column 3 is constant."""
    if kind in ("regression", "flat"):
        X, y = regression_data(1)
        y = y[:, 0] if kind == "flat" else y
        model = GroupOWLRegressor(**settings)
    else:
        X, y = labelled_data(1, n_classes=3 if kind == "classes" else 2)
        model = GroupOWLClassifier(**settings)
    X[:, 3] = 2.5
    return model.fit(X, y), X, y


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"fit_intercept": False},
        {"standardize": True},
        {"standardize": True, "fit_intercept": False},
        {"unpenalized": [0, 5]},
        {"unpenalized": [3, 5], "standardize": True},
        {"screening": "none", "solver": "apgd"},
        {"tol": 1e-9, "weights": "bh"},
        {"tol": 1e-2},
        {"alpha": 100.0},
    ],
    ids=str,
)
def test_a_fit_holds(kind, settings):
    model, X, y = fit_kind(kind, **settings)
    check = model.verify(X, y)
    assert check, repr(check)
    assert check.gap <= check.goal
    assert check.objective == pytest.approx(model.solve_result_.primal, rel=1e-9)
    assert check.n_claimed_zero == np.sum(np.delete(model.solve_result_.screened_at, model.unpenalized_) >= 0)
    assert "the fit holds" in repr(check)
    assert "FAILED" not in repr(check)


@pytest.mark.parametrize("kind", KINDS)
def test_a_fit_with_sample_weights_holds_with_these_only(kind):
    model, X, y = fit_kind(kind)
    weight = np.random.default_rng(0).uniform(0.0, 2.0, len(X))
    weight[:2] = 0.0
    assert not model.verify(X, y, weight)
    model.fit(X, y, sample_weight=weight)
    assert model.verify(X, y, weight)
    assert model.verify(X, y, 4.0 * weight)
    assert not model.verify(X, y)


@pytest.mark.parametrize("kind", [GroupOWLRegressor, GroupOWLRegressorCV])
def test_parameters_that_were_changed_are_named_and_not_the_data(kind):
    X, y = regression_data(1)
    model = kind().fit(X, y)
    model.set_params(standardize=True, weights=np.linspace(2.0, 1.0, X.shape[1]), verbose=0, max_iter=7)
    check = model.verify(X, y)
    head, changes = repr(check).splitlines()[:2]
    assert not check
    assert head == "Verification: the fit does NOT hold with its parameters, which were changed after it"
    assert "standardize is True and was False in the fit" in changes
    assert "and was 'oscar' in the fit" in changes
    assert "verbose" not in changes
    assert "max_iter" not in changes
    model.set_params(standardize=False, weights="oscar", max_iter=10_000)
    assert model.verify(X, y).changed_parameters == ""
    assert "does NOT hold on these data" in repr(model.verify(X[::-1], y))


def test_a_parameter_whose_change_changes_nothing_leaves_a_fit_as_it_is():
    X, y = regression_data(1)
    model = GroupOWLRegressor().fit(X, y).set_params(tol=1e-5)
    check = model.verify(X, y)
    assert check
    assert "tol is 1e-05 and was 1e-06" in check.changed_parameters
    assert "changed" not in repr(check)


def test_a_fit_whose_callback_cannot_be_pickled_can_be_without_it():
    X, y = regression_data(1)
    model = GroupOWLRegressor(callback=lambda progress: False).fit(X, y).set_params(callback=None)
    assert pickle.loads(pickle.dumps(model)).verify(X, y)


def test_class_weights_are_part_of_the_fit():
    X, y = labelled_data()
    model = GroupOWLClassifier(class_weight={0: 5.0}).fit(X, y)
    assert model.verify(X, y)
    model.class_weight = None
    assert not model.verify(X, y)


# What makes it false ------------------------------------------------------------------------------------


def changed(model, name, change):
    value = np.array(getattr(model, name), copy=True)
    setattr(model, name, change(value))


def scaled(factor):
    return lambda value: factor * value


def with_entry(j, size):
    def change(coef):
        np.atleast_2d(coef)[0, j] += size  # of one class: the softmax does not see all of them together
        return coef

    return change


def without_largest(coef):
    rows = np.atleast_2d(coef)
    rows[:, np.argmax(np.linalg.norm(rows, axis=0))] = 0.0
    return coef


def swapped(X):
    return X[:, ::-1]


CHANGES = {
    "longer coefficients": lambda model, X, y: (changed(model, "coef_", scaled(1.1)), X, y),
    "zero coefficients": lambda model, X, y: (changed(model, "coef_", scaled(0.0)), X, y),
    "a feature dropped": lambda model, X, y: (changed(model, "coef_", without_largest), X, y),
    "a constant column": lambda model, X, y: (changed(model, "coef_", with_entry(3, 0.1)), X, y),
    "an unpenalized column": lambda model, X, y: (changed(model, "coef_", with_entry(5, 0.1)), X, y),
    "coefficients that are no numbers": lambda model, X, y: (changed(model, "coef_", scaled(np.nan)), X, y),
    "another intercept": lambda model, X, y: (
        changed(model, "intercept_", lambda b: b + 0.2 * np.arange(1, np.size(b) + 1).reshape(np.shape(b))),
        X,
        y,
    ),
    "another alpha": lambda model, X, y: (changed(model, "alpha_", scaled(1.02)), X, y),
    "another weight sequence": lambda model, X, y: (changed(model, "weights_", lambda w: np.ones_like(w)), X, y),
    "swapped columns": lambda model, X, y: (None, swapped(X), y),
    "other targets": lambda model, X, y: (None, X, np.roll(y, 1, axis=0)),
    "a value of X": lambda model, X, y: (None, X + 0.5 * np.eye(*X.shape), y),
    "other units": lambda model, X, y: (None, 2.0 * X, y),
    "fewer samples": lambda model, X, y: (None, X[:-5], y[:-5]),
}


@pytest.mark.parametrize("settings", [{"unpenalized": [5]}, {"unpenalized": [5], "standardize": True}], ids=str)
@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("kind", KINDS)
def test_every_change_is_seen(kind, name, settings):
    model, X, y = fit_kind(kind, **settings)
    _, X, y = CHANGES[name](model, X, y)
    check = model.verify(X, y)
    assert not check
    assert "NOT hold" in repr(check)
    assert "FAILED" in repr(check)


@pytest.mark.parametrize("alpha", ["auto", 0.1])
def test_parameters_changed_after_the_fit(alpha):
    model, X, y = fit_kind("regression", alpha=alpha)
    assert model.verify(X, y)
    model.set_params(alpha=0.17)
    check = model.verify(X, y)
    assert not check
    assert "the parameters ask for 0.17" in repr(check)
    model.set_params(alpha=alpha, standardize=True)
    assert not model.verify(X, y)


def test_a_fit_cut_short_does_not_hold():
    X, y = regression_data(1)
    with pytest.warns(ConvergenceWarning):
        model = GroupOWLRegressor(max_iter=2).fit(X, y)
    check = model.verify(X, y)
    assert not check
    assert check.gap > check.goal
    assert "not proved optimal" in repr(check)


def is_proved(check):
    """Whether the gap is what the tolerance asks for, whatever else the fit says."""
    return next(finding for finding in check.findings if finding.text.startswith("duality gap")).holds


@pytest.mark.parametrize("kind", ["regression", "classes"])
def test_the_tolerance_decides(kind):
    """The same coefficients hold to twice their distance from the minimum and not to half of it."""
    model, X, y = fit_kind(kind, tol=1e-3)
    best, _, _ = fit_kind(kind, tol=1e-12)
    excess = model.solve_result_.primal - best.solve_result_.primal
    null_loss = model.verify(X, y).goal / model.tol
    model.tol = 2.0 * excess / null_loss
    assert is_proved(model.verify(X, y))
    model.tol = 0.5 * excess / null_loss
    assert not is_proved(model.verify(X, y))


def test_false_claims_of_the_fit_are_seen():
    """Good coefficients, but the stored result says something else."""
    model, X, y = fit_kind("regression")
    honest = model.solve_result_
    model.solve_result_ = replace(honest, primal=1.001 * honest.primal)
    assert not model.verify(X, y)
    claims = honest.screened_at.copy()
    claims[honest.support[0]] = 0
    model.solve_result_ = replace(honest, screened_at=claims)
    check = model.verify(X, y)
    assert not check
    assert f"coefficients that are not: {honest.support[0]}" in repr(check)
    model.solve_result_ = honest
    assert model.verify(X, y)


@pytest.mark.parametrize("kind", ["regression", "classes"])
@pytest.mark.parametrize("tol", [1e-4, 1e-6])
def test_the_verdict_is_the_distance_from_the_minimum(kind, tol):
    """Coefficients moved by any amount: proved where their objective is within the goal of the minimum."""
    model, X, y = fit_kind(kind, tol=tol)
    best, _, _ = fit_kind(kind, tol=1e-12)
    loss = "squared" if kind == "regression" else "multinomial"
    Y = y if kind == "regression" else np.eye(3)[y]
    rng = np.random.default_rng(0)
    coef, support = model.coef_.copy(), model.get_support()
    verdicts = set()
    for size in np.geomspace(1e-7, 0.3, 16):
        model.coef_ = coef + size * np.abs(coef).max() * support * rng.standard_normal(coef.shape)
        if loss == "multinomial":
            model.coef_ -= model.coef_.mean(axis=0)
        value = objective(X, Y, model.coef_.T, model.intercept_, model.alpha_, model.weights_, loss=loss)
        check = model.verify(X, y)
        excess = value - best.solve_result_.primal
        assert check.objective == pytest.approx(value, rel=1e-10)
        assert check.gap >= excess - 1e-11 * abs(value)
        if not 0.8 < excess / check.goal < 1.0:  # where the accuracy of the dual bound does not decide
            assert is_proved(check) == (excess <= check.goal), (size, excess, repr(check))
            verdicts.add(is_proved(check))
    assert verdicts == {True, False}


def test_a_poor_dual_point_is_no_reason_to_refuse():
    """Coefficients within tol of the minimum whose own dual point proves far less."""
    model, X, y = fit_kind("regression", tol=1e-4)
    direction = np.random.default_rng(0).standard_normal(model.coef_.shape) * model.get_support()
    model.coef_ = model.coef_ + 2e-3 * direction * np.abs(model.coef_).max()
    data = model._validate_fit(X, y, reset=False)
    check = FitCheck(model, data, data.fitting.model(data.X, data.Y, model.weights, None))
    assert check.certificate.gap > check.goal
    assert is_proved(model.verify(X, y))


# Relaxed fits, single precision, sparse data, frames ----------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["coef_", "intercept_", "penalized_coef_", "penalized_intercept_"])
def test_of_a_relaxed_fit_both_kinds_of_coefficients_are_verified(kind, name):
    """Those that predictions use, too."""
    model, X, y = fit_kind(kind, relaxed=True, alpha=0.2)
    assert model.verify(X, y)
    shift = 1e-3 * np.arange(1, np.size(getattr(model, name)) + 1).reshape(np.shape(getattr(model, name)))
    changed(model, name, lambda value: value * (1.0 + shift))
    check = model.verify(X, y)
    assert not check
    assert re.search(rf"\[FAILED\] [a-z ]+ \({name}", repr(check))


@pytest.mark.parametrize("kind", KINDS)
def test_single_precision(kind):
    model, X, y = fit_kind(kind)
    small = X.astype(np.float32)
    model.fit(small, y)
    assert model.coef_.dtype == np.float32
    assert model.verify(small, y)
    assert model.verify(small.astype(np.float64), y)
    model.coef_ = 1.05 * model.coef_
    assert not model.verify(small, y)


@pytest.mark.parametrize("kind", KINDS)
def test_sparse_data(kind):
    model, X, y = fit_kind(kind, standardize=True)
    sparse = sp.csc_array(np.where(np.abs(X) > 1.0, X, 0.0))
    assert not model.verify(sparse, y)
    model.fit(sparse, y)
    assert model.verify(sparse, y)
    assert model.verify(sparse.toarray(), y)


def test_large_offsets():
    X, y = regression_data(1)
    X, y = X + 1e4, y + 1e6
    model = GroupOWLRegressor().fit(X, y)
    assert model.verify(X, y)
    model.intercept_ = model.intercept_ + 0.5
    assert not model.verify(X, y)


def test_data_that_cannot_be_those_of_the_fit_are_an_error():
    model, X, y = fit_kind("regression")
    with pytest.raises(ValueError, match="X has 29 features, but GroupOWLRegressor is expecting 30"):
        model.verify(X[:, 1:], y)
    with pytest.raises(ValueError, match="y has 2 targets, but GroupOWLRegressor was fitted with 3"):
        model.verify(X, y[:, :2])
    model.coef_ = model.coef_[:, :5]
    with pytest.raises(ValueError, match=r"coef_ has shape \(3, 5\).* Fit again"):
        model.verify(X, y)
    classifier, X, y = fit_kind("classes")
    with pytest.raises(ValueError, match=r"y has the classes \[1, 2, 3\], but .* was fitted with \[0, 1, 2\]"):
        classifier.verify(X, y + 1)
    frame = pd.DataFrame(X, columns=[f"f{j}" for j in range(30)])
    classifier.fit(frame, y)
    with pytest.raises(ValueError, match="feature names"):
        classifier.verify(frame[frame.columns[::-1]], y)


def test_a_verification_is_frozen_and_changes_nothing():
    model, X, y = fit_kind("regression")
    before = dict(vars(model))
    check = model.verify(X, y)
    assert all(vars(model)[name] is value for name, value in before.items())
    assert vars(model).keys() == before.keys()
    with pytest.raises(FrozenInstanceError):
        check.gap = 0.0


@pytest.mark.parametrize("loss", ["regression", "classes"])
def test_the_kkt_residual_vanishes_at_the_solution_only(loss):
    """It is bounded by sqrt(2 L gap), relative to the first weight, and falls with the tolerance."""
    loose, X, y = fit_kind(loss, tol=1e-3)
    tight, _, _ = fit_kind(loss, tol=1e-12)
    checks = [model.verify(X, y) for model in (loose, tight)]
    assert checks[1].kkt_residual < 1e-2 * checks[0].kkt_residual
    design = X - X.mean(axis=0)
    largest = np.linalg.norm(design, 2) ** 2 / len(X) * (1.0 if loss == "regression" else 0.5)
    intercept = np.max(np.sum(design**2, axis=0)) / len(X)  # its column is as long as the longest
    for check, model in zip(checks, (loose, tight), strict=True):
        bound = np.sqrt(2 * 1.05 * max(largest, intercept) * check.gap) / model.alpha_
        assert check.kkt_residual <= bound


def test_all_zeros_proved_by_the_fit_are_proved_again():
    model, X, y = fit_kind("regression", tol=1e-10)
    check = model.verify(X, y)
    assert check.n_claimed_zero == check.n_proved_again > 0
