"""Folds from statistics are folds of data."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import groupowl as go
from groupowl.designs import as_design
from groupowl.model import build_model
from groupowl.model_selection.folds import (
    LossScore,
    StatisticsScore,
    check_folds,
    fold_statistics,
    statistics_pay,
    with_statistics,
)
from groupowl.model_selection.search import Fitting, TrainingSet
from groupowl.path import Solution, fit_path, resolve_alphas
from groupowl.solvers import WorkingSet, check_settings

N, D, Q = 120, 6, 2


def make_data(seed=0, *, sparse=False):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N, D)) * rng.uniform(0.1, 10.0, D) + rng.uniform(-5.0, 5.0, D)
    if sparse:
        X *= rng.random(X.shape) < 0.4
    Y = X[:, :2] @ rng.standard_normal((2, Q)) + rng.standard_normal((N, Q)) + 3.0
    return (sp.csr_array(X) if sparse else X), Y, rng.uniform(0.5, 2.0, N)


def make_folds(weight, n_folds=4):
    parts = np.array_split(np.random.default_rng(1).permutation(N), n_folds)
    return check_folds([(np.setdiff1d(np.arange(N), part), part) for part in parts], weight)


def make_fitting(**changed):
    settings = {
        "loss": "squared",
        "fit_intercept": True,
        "standardize": False,
        "unpenalized": np.zeros(0, dtype=np.intp),
        "settings": check_settings(WorkingSet(), "safe", 1e-8, 10_000),
    }
    return Fitting(**(settings | changed))


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("standardize", [False, True])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_fits_and_scores_from_statistics_are_those_from_data(fit_intercept, standardize, sparse):
    X, Y, weight = make_data(sparse=sparse)
    folds = make_folds(weight)
    fitting = make_fitting(fit_intercept=fit_intercept, standardize=standardize)
    model = fitting.model(X, Y, "oscar", weight)
    alphas = model.alpha_max * np.geomspace(1.0, 1e-2, 5)
    statistics, design = fold_statistics(X, Y, weight, folds), as_design(X)
    for fold, part, training in zip(folds, statistics.parts, statistics.trainings, strict=True):
        solutions, _ = TrainingSet(design, Y, weight, fold.train).fit(fitting, model.weights, alphas, 0)
        from_statistics, _ = TrainingSet(training).fit(fitting, model.weights, alphas, 0)
        for one, other in zip(solutions, from_statistics, strict=True):
            # Predictions for training samples are within sqrt(2 gap) of the best ones in mean square, for either fit.
            difference = X @ (one.coef(D) - other.coef(D)) + (one.intercept - other.intercept)
            error = np.average((difference[fold.train] ** 2).sum(axis=1), weights=weight[fold.train])
            assert np.sqrt(error) <= 2.0 * np.sqrt(2.0 * fitting.settings.tol * np.average((Y**2).sum(axis=1)))
        score, from_part = LossScore("squared", design, Y, weight, fold), StatisticsScore(part)
        arguments = solutions, alphas, model.weights
        np.testing.assert_allclose(from_part(*arguments), score(*arguments), rtol=1e-9)


def test_a_fold_that_tests_everything_but_little_is_still_exact():
    """Nearly all of the weight is subtracted; what is left is known to fewer digits, and enough of them."""
    X, Y, weight = make_data()
    folds = check_folds([(np.arange(10), np.arange(10, N)), (np.arange(10, N), np.arange(10))], weight)
    statistics = fold_statistics(X, Y, weight, folds)
    left = statistics.total - statistics.parts[0]
    np.testing.assert_allclose(left.gram, _gram(X[:10], weight[:10]), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("n_folds", [2, 3, 5])
def test_folds_train_on_the_sum_of_the_others(n_folds):
    """Nothing is subtracted: samples of one fold that are far larger than all others leave no trace in its training."""
    X, Y, weight = make_data()
    folds = make_folds(weight, n_folds)
    X[folds[1].test, 0] += 1e9
    statistics = fold_statistics(X, Y, weight, folds)
    train = folds[1].train
    alone = go.SufficientStatistics.from_arrays(X[train], Y[train], weight[train])
    np.testing.assert_allclose(statistics.trainings[1].gram, alone.gram, rtol=1e-12, atol=1e-10)
    assert statistics.trainings[1].is_reliable()
    assert not (statistics.total - statistics.parts[1]).is_reliable()


def test_folds_that_overlap_subtract():
    X, Y, weight = make_data()
    folds = make_folds(weight) + make_folds(weight, n_folds=3)
    statistics = fold_statistics(X, Y, weight, folds)
    for fold, training in zip(folds, statistics.trainings, strict=True):
        np.testing.assert_allclose(training.gram, _gram(X[fold.train], weight[fold.train]), rtol=1e-9, atol=1e-9)


def _gram(X, w):
    centered = X - np.average(X, axis=0, weights=w)
    return centered.T @ (w[:, None] * centered)


def test_overlapping_tests_have_the_same_total():
    """Repeated folds: the total is not the sum of the parts."""
    X, Y, weight = make_data()
    once, twice = make_folds(weight), make_folds(weight) + make_folds(weight, n_folds=3)
    totals = [fold_statistics(X, Y, weight, folds).total for folds in (once, twice)]
    np.testing.assert_allclose(totals[0].gram, totals[1].gram, rtol=1e-12, atol=1e-9)


def test_a_model_with_statistics_gives_the_path_of_the_data_without_passes():
    X, Y, weight = make_data()
    fitting = make_fitting(settings=check_settings(WorkingSet(), "safe", 1e-7, 10_000))
    model = build_model(X, Y, sample_weight=weight)
    folds = make_folds(weight)
    total = fold_statistics(X, Y, weight, folds).total
    known = with_statistics(build_model(X, Y, sample_weight=weight), total, False)
    alphas = resolve_alphas(20, 1e-2, model)
    wanted, found = (fit_path(item, alphas, fitting.settings, max_deviance=None).points for item in (model, known))
    for one, other in zip(wanted, found, strict=True):
        assert one.n_selected == other.n_selected
        assert other.primal == pytest.approx(one.primal, abs=2e-7 * model.problem.null_loss)
    assert len(found[0].support) == 0  # alpha_max is decided by the data
    assert 0.0 <= sum(point.n_passes for point in found) < 3.0


def test_when_statistics_pay():
    X, Y, weight = make_data()
    folds, model = make_folds(weight), build_model(X, Y, sample_weight=weight)
    assert statistics_pay(model, WorkingSet(), folds, 100)
    assert not statistics_pay(model, WorkingSet(compress=False), folds, 100)
    assert not statistics_pay(model, go.APGD(), folds, 100)  # a solver that wants the data gets them
    past = check_folds([(np.arange(60), np.arange(60, 80)), (np.arange(80), np.arange(80, N))], weight)
    assert not statistics_pay(model, WorkingSet(), past, 100)
    many = check_folds([(np.delete(np.arange(N), i), [i]) for i in range(N)], weight)
    assert not statistics_pay(model, WorkingSet(), many, 100)  # the statistics would be larger than the data
    labels = np.eye(2)[(Y[:, 0] > 3).astype(int)]
    assert not statistics_pay(build_model(X, labels, loss="multinomial"), WorkingSet(), folds, 100)


def test_scores_from_statistics_for_any_coefficients():
    """Also for solutions that were fitted to nothing."""
    X, Y, weight = make_data()
    rng = np.random.default_rng(5)
    part = go.SufficientStatistics.from_arrays(X, Y, weight)
    solution = Solution(np.array([1, 4]), rng.standard_normal((2, Q)), rng.standard_normal(Q))
    errors = (Y - X @ solution.coef(D) - solution.intercept) ** 2
    by_hand = np.average(errors.mean(axis=1), weights=weight)
    assert StatisticsScore(part)([solution], np.ones(1), np.ones(D))[0] == pytest.approx(-by_hand, rel=1e-12)


@pytest.mark.parametrize("heavy", [1e17, 1e30])
def test_a_test_sample_that_outweighs_all_others_leaves_nothing_to_subtract_from(heavy):
    """Where tests overlap; where they do not, the others are added up, and the statistics of the rest are exact."""
    X, Y, weight = make_data()
    folds = make_folds(weight)
    twice = folds + make_folds(weight, n_folds=3)
    assert fold_statistics(X, Y, weight, twice).are_reliable()
    weight[folds[1].test[0]] = heavy
    assert not fold_statistics(X, Y, weight, twice).are_reliable()
    train = folds[1].train
    training = fold_statistics(X, Y, weight, folds).trainings[1]
    np.testing.assert_allclose(training.gram, _gram(X[train], weight[train]), rtol=1e-12, atol=1e-10)
