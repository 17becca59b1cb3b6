"""Problems from statistics alone: the same answers as from the data."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import groupowl as go
from groupowl.model import Model, build_model
from groupowl.problem import build_problem, problem_of_statistics
from groupowl.solvers import check_settings
from groupowl.solvers.continuation import Continuation

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


# Missing targets: samples of each pattern are replaced by few --------------------------------------------------


def draw_patterns(seed, *, fit_intercept=True, standardized=False, n_samples=400, n_features=6, **options):
    """A problem whose targets have three patterns, in random order, with weights of samples."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_samples, n_features)) * rng.uniform(0.1, 10.0, n_features) + 3.0
    X[:, 1] = X[:, 0] + 1e-6 * X[:, 1]  # nearly dependent
    Y = X[:, :3] @ rng.standard_normal((3, 4)) + rng.standard_normal((n_samples, 4)) + 5.0
    missing = np.array([[0, 0, 0, 0], [1, 1, 0, 0], [0, 0, 1, 1]], dtype=bool)
    Y[missing[rng.integers(3, size=n_samples)]] = np.nan
    weight = rng.uniform(0.5, 2.0, n_samples)
    weights = go.weights.oscar(n_features)
    how = {"fit_intercept": fit_intercept, "sample_weight": weight}
    lam = 0.1 * go.lam_max(X, Y, weights, **how) * weights
    return build_problem(X, Y, lam, standardized=standardized, **how, **options), rng


@pytest.mark.parametrize("standardized", [False, True])
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_few_samples_of_each_pattern_have_the_same_certificates(seed, fit_intercept, standardized):
    """Values are those of the data up to the stated error, and what is proved of them is proved of the data."""
    problem, rng = draw_patterns(seed, fit_intercept=fit_intercept, standardized=standardized)
    small = problem.compressed_by_pattern()
    assert small.design.n_samples <= 3 * 8 < problem.design.n_samples
    assert 0.0 < small.product_error < 1e-11
    best = Continuation(problem, check_settings("auto", "safe", 1e-10, 10_000), problem.null_coefficients())
    best.solve(problem.lam)
    optimal = problem.certify(best.B)
    for size in (1.0, 1e-2, 1e-5, 0.0):
        B = best.B + size * rng.standard_normal(best.B.shape) * np.abs(best.B).max()
        whole, few = problem.certify(B), small.certify(B)
        room = whole.rounding + few.rounding
        assert abs(whole.primal - few.primal) <= room
        assert abs(whole.dual - few.dual) <= room + 1e-9 * abs(whole.dual)
        assert few.gap >= whole.primal - optimal.primal - optimal.rounding
        assert np.all(few.correlations >= whole.correlations * (1.0 - 1e-9))
        assert np.all(small.upper_bounds(few) >= problem.lower_bounds(optimal))


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_paths_on_few_samples_of_each_pattern_are_those_of_all(fit_intercept):
    problem, _ = draw_patterns(7, fit_intercept=fit_intercept)
    settings = check_settings("auto", "safe", 1e-7, 10_000)
    slow = replace(settings, solver=replace(settings.solver, compress=False))
    fast, whole = (Continuation(problem, own, problem.null_coefficients(), n_solves=5) for own in (settings, slow))
    assert fast.small is not problem
    assert whole.small is problem
    for alpha in (8.0, 4.0, 1.0, 0.3):
        one, other = fast.solve(problem.lam, alpha), whole.solve(problem.lam, alpha)
        assert one.converged
        assert abs(one.primal - other.primal) <= one.gap + other.gap
        goal = problem.with_lam(alpha * problem.lam)
        again = goal.certify(goal.from_input(one.B, one.intercept if fit_intercept else None))
        assert again.gap <= problem.goal(1e-7) * 1.01


def test_where_patterns_are_not_compressed():
    """Weights that differ between tasks, too few samples, more digits than moments have, or a solver that will not."""
    problem, rng = draw_patterns(0)
    settings = check_settings("auto", "safe", 1e-6, 10_000)
    assert Continuation(problem, settings, problem.null_coefficients()).small is not problem
    finer = replace(settings, tol=1e-9)
    assert Continuation(problem, finer, problem.null_coefficients()).small is problem
    few, _ = draw_patterns(0, n_samples=40)
    assert few.compressed_by_pattern() is None
    X, Y = rng.standard_normal((300, 4)), rng.standard_normal((300, 2))
    Y[:100, 0] = np.nan
    uneven = build_problem(X, Y, np.ones(4), sample_weight=rng.uniform(0.5, 1.0, (300, 2)))
    assert uneven.compressed_by_pattern() is None
    huber = build_problem(X, Y, np.ones(4), loss="huber")
    assert not huber.has_moments_of_patterns


def test_fits_on_few_samples_of_each_pattern_verify():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((500, 5))
    Y = X[:, :2] @ rng.standard_normal((2, 3)) + rng.standard_normal((500, 3))
    Y[:200, 0], Y[350:, 2] = np.nan, np.nan
    for model in (go.GroupOWLRegressor(0.05), go.GroupOWLRegressorCV(alphas=8, cv=3, standardize=True)):
        verification = model.fit(X, Y).verify(X, Y)
        assert verification, str(verification)
    exact = go.GroupOWLRegressor(0.05, tol=1e-10).fit(X, Y)
    np.testing.assert_allclose(go.GroupOWLRegressor(0.05).fit(X, Y).coef_, exact.coef_, atol=1e-4)
