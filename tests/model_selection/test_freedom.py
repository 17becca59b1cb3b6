"""Degrees of freedom against finite differences of the fit."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit, softmax

import groupowl as go
from groupowl.losses import CoxLoss
from groupowl.model import build_model
from groupowl.model_selection.freedom import Manifold, degrees_of_freedom
from groupowl.problem import build_problem

STEP = 1e-4
#: What predictors say of the targets, for losses whose targets may be any numbers of their range.
MEANS = {
    "squared": np.asarray,
    "multinomial": lambda Z: softmax(Z, axis=1),
    "logistic": expit,
    "poisson": np.exp,
}


def make_data(loss, q, seed):
    """The first two columns are nearly equal, so that there are clusters; targets of classes are probabilities."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((14, 7))
    X[:, 1] = X[:, 0] + 0.1 * rng.standard_normal(14)
    Z = X[:, :3] @ rng.standard_normal((3, q)) + rng.standard_normal((14, q))
    return X, Z if loss == "squared" else MEANS[loss](0.5 * Z)


def fit(X, Y, lam, **options):
    """Solution and means of the targets."""
    result = go.solve(X, Y, lam, tol=1e-12, max_iter=100_000, **options)
    Z = X @ result.B + result.intercept
    return result, MEANS[options["loss"]](Z)


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
@pytest.mark.parametrize(("loss", "q"), [("squared", 1), ("squared", 2), *((loss, 3) for loss in MEANS)])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_agrees_with_finite_differences(loss, q, seed, fit_intercept):
    X, Y = make_data(loss, q, seed)
    options = {"loss": loss, "fit_intercept": fit_intercept}
    lam = 0.1 * go.lam_max(X, Y, "oscar", **options) * go.weights.oscar(7)
    problem, B, result = problem_at(X, Y, lam, **options)
    assert degrees_of_freedom(problem, B) == pytest.approx(divergence(X, Y, lam, **options), abs=1e-3)
    assert result.clusters.max() > 1


@pytest.mark.parametrize(("ties", "q"), [("efron", 1), ("breslow", 2)])
def test_agrees_with_finite_differences_for_times(ties, q):
    """Times cannot move a little: a linear term in the predictor moves in place of the events."""
    rng = np.random.default_rng(q)
    X = make_data("squared", q, q)[0]
    Y = go.survival_targets(rng.random((14, q)) < 0.8, np.ceil(4.0 * rng.exponential(np.exp(X[:, :q]))))
    loss, w = CoxLoss(ties), np.ones((14, 1))
    lam = 0.1 * go.lam_max(X, Y, "oscar", loss=loss) * go.weights.oscar(7)
    problem = build_problem(X, Y, lam, loss=loss)
    start = go.solve(X, Y, lam, loss=loss, tol=1e-12).B
    columns = X - X.mean(axis=0)
    step = 0.8 / np.linalg.eigvalsh(loss.curvature_along(columns @ start, Y, w, columns))[-1]

    def expected(push):
        """Expected events of the solution for the loss less ``<push, Z>``, by proximal steps."""
        B = start
        for _ in range(5000):
            before, B = B, go.owl_prox(B + step * X.T @ (loss.dual_point(X @ B, Y, w) + push), step * lam)
            if np.abs(B - before).max() <= 1e-11:
                break
        return loss.observed(Y) - loss.dual_point(X @ B, Y, w)

    total = 0.0
    for i, k in np.ndindex(Y.shape):
        push = np.zeros(Y.shape)
        push[i, k] = 1e-3
        total += (expected(push)[i, k] - expected(-push)[i, k]) / 2e-3
    assert degrees_of_freedom(problem, start) == pytest.approx(total, abs=1e-3)
    assert 1.0 < total < q * np.count_nonzero(start.any(axis=1))


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
