"""Degrees of freedom against finite differences of the fit."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import softmax

import groupowl as go
from groupowl.model import build_model
from groupowl.model_selection.freedom import Manifold, degrees_of_freedom
from groupowl.problem import build_problem

STEP = 1e-4


def make_data(loss, q, seed):
    """The first two columns are nearly equal, so that there are clusters; targets of classes are probabilities."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((14, 7))
    X[:, 1] = X[:, 0] + 0.1 * rng.standard_normal(14)
    Z = X[:, :3] @ rng.standard_normal((3, q)) + rng.standard_normal((14, q))
    return X, Z if loss == "squared" else softmax(0.5 * Z, axis=1)


def fit(X, Y, lam, **options):
    """Solution and means of the targets."""
    result = go.solve(X, Y, lam, tol=1e-12, max_iter=100_000, **options)
    Z = X @ result.B + result.intercept
    return result, Z if options["loss"] == "squared" else softmax(Z, axis=1)


def divergence(X, Y, lam, **options):
    """Trace of the derivative of the means in the targets, which stay probabilities where they are."""
    moves = np.eye(Y.shape[1])
    if options["loss"] == "multinomial":
        moves = np.linalg.svd(moves - 1.0 / len(moves))[0].T[:-1]
    total = 0.0
    for i in range(len(Y)):
        for move in moves:
            ends = []
            for sign in (1.0, -1.0):
                other = Y.copy()
                other[i] += sign * STEP * move
                ends.append(fit(X, other, lam, **options)[1][i])
            total += (ends[0] - ends[1]) @ move / (2.0 * STEP)
    return total


def problem_at(X, Y, lam, **options):
    problem = build_problem(X, Y, lam, **options)
    result = fit(X, Y, lam, **options)[0]
    intercept = result.intercept if options["fit_intercept"] else None
    return problem, problem.from_input(result.B, intercept), result


@pytest.mark.filterwarnings("ignore:Stopped at the limit of the arithmetic")
@pytest.mark.parametrize(("loss", "q"), [("squared", 1), ("squared", 2), ("squared", 3), ("multinomial", 3)])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_agrees_with_finite_differences(loss, q, seed, fit_intercept):
    X, Y = make_data(loss, q, seed)
    options = {"loss": loss, "fit_intercept": fit_intercept}
    lam = 0.1 * go.lam_max(X, Y, "oscar", **options) * go.weights.oscar(7)
    problem, B, result = problem_at(X, Y, lam, **options)
    assert degrees_of_freedom(problem, B) == pytest.approx(divergence(X, Y, lam, **options), abs=1e-3)
    assert result.clusters.max() > 1


@pytest.mark.parametrize("q", [1, 3])
def test_unpenalized_columns_are_free(q):
    X, Y = make_data("squared", q, 0)
    estimator = go.GroupOWLRegressor(alpha=0.1, unpenalized=[5, 6], tol=1e-12)
    total = 0.0
    for i, k in np.ndindex(Y.shape):
        ends = []
        for sign in (1.0, -1.0):
            other = Y.copy()
            other[i, k] += sign * STEP
            ends.append(estimator.fit(X, other).predict(X).reshape(Y.shape)[i, k])
        total += (ends[0] - ends[1]) / (2.0 * STEP)
    estimator.fit(X, Y)
    model = build_model(X, Y, unpenalized=np.array([5, 6]))
    B = model.problem.from_input(np.atleast_2d(estimator.coef_).T, np.atleast_1d(estimator.intercept_))
    assert degrees_of_freedom(model.problem, B) == pytest.approx(total, abs=1e-3)


@pytest.mark.parametrize("seed", range(3))
def test_three_ways_to_the_same_number(seed):
    X, Y = make_data("squared", 3, seed)
    lam = 0.1 * go.lam_max(X, Y, "oscar") * go.weights.oscar(7)
    problem, B, _ = problem_at(X, Y, lam, loss="squared", fit_intercept=False)
    manifold = Manifold.at(problem, B)
    by_rows = manifold.hold_by_rows()
    assert manifold.hold() == pytest.approx(by_rows, rel=1e-8)
    assert manifold.estimated_hold() == pytest.approx(by_rows, rel=0.25)  # from a few random directions
    assert 0.0 < by_rows < manifold.dimension(3)


@pytest.mark.parametrize("loss", ["squared", "multinomial"])
def test_large_systems_are_estimated(loss, monkeypatch):
    X, Y = make_data(loss, 3, 0)
    options = {"loss": loss, "fit_intercept": True}
    lam = 0.1 * go.lam_max(X, Y, "oscar", **options) * go.weights.oscar(7)
    problem, B, _ = problem_at(X, Y, lam, **options)
    exact = degrees_of_freedom(problem, B)
    monkeypatch.setattr("groupowl.model_selection.freedom._LARGEST_SYSTEM", 1)
    assert degrees_of_freedom(problem, B) == pytest.approx(exact, rel=0.15)


@pytest.mark.parametrize("loss", ["squared", "multinomial"])
def test_the_null_model_has_intercepts(loss):
    X, Y = make_data(loss, 3, 0)
    problem = build_problem(X, Y, np.ones(7), loss=loss, fit_intercept=True)
    assert degrees_of_freedom(problem, problem.null_coefficients()) == pytest.approx(3 - (loss == "multinomial"))


def test_columns_that_are_equal():
    """The curvature of the loss is singular, that of the fit is not."""
    X, Y = make_data("squared", 3, 0)
    X[:, 1] = X[:, 0]
    lam = 0.1 * go.lam_max(X, Y, "oscar") * go.weights.oscar(7)
    problem, B, _ = problem_at(X, Y, lam, loss="squared", fit_intercept=False)
    options = {"loss": "squared", "fit_intercept": False}
    assert degrees_of_freedom(problem, B) == pytest.approx(divergence(X, Y, lam, **options), abs=1e-3)
