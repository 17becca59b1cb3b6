"""Problems from statistics alone: the same answers as from the data."""

from __future__ import annotations

import numpy as np
import pytest

import groupowl as go
from groupowl.model import Model, build_model
from groupowl.problem import problem_of_statistics
from groupowl.solvers import check_settings

TOL = 1e-9


def make_data():
    """Tall data with an offset, columns of different scale, a constant column and uneven sample weights."""
    rng = np.random.default_rng(0)
    data = go.datasets.make_correlated_groups(300, 20, 3, random_state=0)
    X = data.X * rng.uniform(0.1, 10.0, 20) + 5.0 * rng.normal(size=20)
    X[:, 7] = 3.0
    return X, data.Y + 4.0, rng.uniform(0.0, 2.0, 300)


def solve(model, alpha):
    return model.continuation(check_settings("auto", "safe", TOL, 1000)).solve(model.sequence_weights, alpha)


@pytest.mark.parametrize("standardize", [False, True])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_statistics_give_the_answers_of_the_data(fit_intercept, standardize):
    X, Y, weight = make_data()
    settings = {"fit_intercept": fit_intercept}
    model = build_model(X, Y, standardize=standardize, sample_weight=weight, **settings)
    statistics = go.SufficientStatistics.from_arrays(X, Y, weight)
    problem = problem_of_statistics(statistics, standardized=standardize, **settings)
    known = Model(problem, model.weights, model.unpenalized)
    assert known.alpha_max == pytest.approx(model.alpha_max, rel=1e-11)
    assert known.problem.null_loss == pytest.approx(model.problem.null_loss, rel=1e-12)
    expected, found = (solve(each, 0.1 * model.alpha_max) for each in (model, known))
    assert expected.converged
    assert found.converged
    assert found.primal == pytest.approx(expected.primal, abs=2 * TOL * model.problem.null_loss)
    np.testing.assert_allclose(found.B, expected.B, atol=1e-6 * np.abs(expected.B).max())
    np.testing.assert_allclose(found.intercept, expected.intercept, atol=1e-6 * np.abs(Y).max())


def test_rounding_of_statistics_is_not_forgotten():
    """A tolerance below the rounding of the statistics is refused, not claimed."""
    X, Y, weight = make_data()
    statistics = go.SufficientStatistics.from_arrays(X, Y, weight)
    problem = problem_of_statistics(statistics, fit_intercept=True)
    model = Model(problem, go.weights.oscar(20), np.zeros(0, dtype=np.intp))
    solves = model.continuation(check_settings("auto", "none", 1e-12, 1000))
    result = solves.solve(model.sequence_weights, 0.1 * model.alpha_max)
    assert result.status == "precision"
    assert result.gap > 1e-12 * model.problem.null_loss


@pytest.mark.parametrize("column", ["X", "Y"])
def test_subtraction_of_much_larger_samples_is_not_trusted(column):
    """What is left after 1e8 was taken off carries the rounding of 1e8: the gap says so, and the minimum is inside."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 3))
    Y = X[:, :1] + 0.1 * rng.standard_normal((60, 1))
    removed = np.arange(40, 60)
    (X if column == "X" else Y)[removed] += 1e8
    statistics = go.SufficientStatistics.from_arrays
    left = statistics(X, Y) - statistics(X[removed], Y[removed])
    assert not left.is_reliable()
    assert statistics(X[:40], Y[:40]).is_reliable()
    model = build_model(X[:40], Y[:40])
    alpha = 0.01 * model.alpha_max
    expected = solve(model, alpha)
    known = Model(problem_of_statistics(left, fit_intercept=True), model.weights, model.unpenalized)
    null = known.problem.certify(known.problem.null_coefficients())
    assert abs(null.primal - model.problem.null_loss) <= null.rounding
    found = solve(known, alpha)
    assert found.primal - found.gap <= expected.primal
    assert not expected.B[found.screened_at >= 0].any()
