"""Desparsified estimates: laws, uniform p-values, coverage."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from sklearn.linear_model import Lasso

from groupowl.inference import desparsified, hotelling_tests
from groupowl.inference.feature_tests import standardized
from groupowl.inference.nodewise import node_residuals
from groupowl.inference.noise import checked_data

TRUE = 4


def make_data(n=100, d=150, q=2, *, seed=0, rho=0.5, size=1.0):
    """Columns that are correlated with their neighbors, and noise that is correlated between targets."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    for j in range(1, d):
        X[:, j] = rho * X[:, j - 1] + np.sqrt(1.0 - rho**2) * X[:, j]
    B = np.zeros((d, q))
    B[rng.choice(d, TRUE, replace=False)] = size * rng.standard_normal((TRUE, q))
    root = np.linalg.cholesky(np.full((q, q), 0.7) + 0.3 * np.eye(q)).T
    return X, X @ B + rng.standard_normal((n, q)) @ root, B


def test_residuals_of_columns_are_those_of_the_lasso():
    """Optimal: no other column has more in common with them than the penalty, and those in the fit exactly as much."""
    X, Y, _ = make_data(60, 40)
    X, _ = standardized(checked_data("a test", X, Y))
    Z, cosines = node_residuals(X, 1, 1e-10)
    norms, chance = np.linalg.norm(Z, axis=0), np.sqrt(2.0 * np.log(40) / 60)
    common = np.abs(Z.T @ X)
    np.fill_diagonal(common, 0.0)
    np.testing.assert_allclose(common.max(axis=1), cosines * norms, rtol=1e-9)
    # The penalty of the second round is that of the residuals of the first, which are not smaller.
    first = np.array([np.linalg.norm(_lasso_residual(X, j, chance)) for j in range(40)])
    assert np.all(common.max(axis=1) <= first * chance * (1.0 + 1e-6))
    fitted = norms < 1.0 - 1e-6
    assert fitted.sum() > 20
    np.testing.assert_allclose(common.max(axis=1)[fitted], (first * chance)[fitted], rtol=1e-5)


def _lasso_residual(X, j, strength):
    others = np.delete(X, j, axis=1)
    model = Lasso(strength / len(X), fit_intercept=False, tol=1e-12, max_iter=100_000).fit(others, X[:, j])
    return X[:, j] - others @ model.coef_


def test_p_values_are_uniform_and_intervals_cover():
    """Also where there are more features than samples; a fit without a correction would cover nothing."""
    p_values, covered, of_effects = [], [], []
    for seed in range(8):
        X, Y, B = make_data(seed=seed)
        tests = desparsified(X, Y, tol=1e-4)
        null = ~B.any(axis=1)
        p_values.extend(tests.p_values[null])
        inside = (tests.lower <= B) & (tests.upper >= B)
        covered.append(inside[null].mean())
        of_effects.append(inside[~null].mean())
    assert stats.kstest(p_values, "uniform").statistic < 0.05
    assert 0.03 < np.mean(np.array(p_values) < 0.05) < 0.07
    assert 0.93 < np.mean(covered) < 0.97
    assert 0.88 < np.mean(of_effects) <= 0.99


def test_effects_are_found_and_few_others():
    found, false = [], []
    for seed in range(4):
        X, Y, B = make_data(seed=seed, size=2.0)
        support = desparsified(X, Y, tol=1e-4).support
        is_true = B[support].any(axis=1)
        found.append(is_true.sum() / TRUE)
        false.append(np.mean(~is_true) if len(support) else 0.0)
    assert np.mean(found) > 0.9
    assert np.mean(false) < 0.2


def test_many_samples_give_least_squares():
    """The correction of the correction vanishes; both are nearly the same, and so are their tests."""
    X, Y, _ = make_data(3000, 10)
    ours, known = desparsified(X, Y), hotelling_tests(X, Y)
    np.testing.assert_allclose(ours.B, known.B, atol=3.0 * known.std_errors.max())
    np.testing.assert_allclose(ours.std_errors, known.std_errors, rtol=0.15)


def test_scale_and_mixtures_change_nothing():
    X, Y, _ = make_data(60, 80)
    rng = np.random.default_rng(1)
    mixing, scale = rng.standard_normal((2, 2)), 10.0 ** rng.uniform(-2, 2, 80)
    one, other = desparsified(X, Y, tol=1e-9), desparsified(X * scale + 1.0, Y @ mixing - 5.0, tol=1e-9)
    np.testing.assert_allclose(other.p_values, one.p_values, rtol=1e-3)
    np.testing.assert_allclose(other.std_errors * scale[:, None] / np.sqrt(np.diagonal(other.noise_covariance)),
                               one.std_errors / np.sqrt(np.diagonal(one.noise_covariance)), rtol=1e-4)  # fmt: skip


def test_results_do_not_depend_on_threads():
    X, Y, _ = make_data(50, 150)
    one, two = desparsified(X, Y), desparsified(X, Y, n_jobs=2)
    np.testing.assert_array_equal(one.p_values, two.p_values)
    np.testing.assert_array_equal(one.B, two.B)


def test_an_estimated_covariance_is_allowed_for():
    X, Y, _ = make_data(40, 60)
    F, chi2 = desparsified(X, Y), desparsified(X, Y, test="chi2")
    np.testing.assert_array_equal(F.statistics, chi2.statistics)
    np.testing.assert_allclose(chi2.p_values, stats.chi2.sf(F.statistics, 2), rtol=1e-9)
    m = F.freedom
    np.testing.assert_allclose(F.p_values, stats.f.sf(F.statistics * (m - 1) / (2 * m), 2, m - 1), rtol=1e-9)
    assert np.all(F.p_values >= chi2.p_values)
    known = desparsified(X, Y, noise=F.noise_covariance)
    np.testing.assert_allclose(known.p_values, chi2.p_values, rtol=1e-6)
    assert "noise given" in repr(known)


def test_one_feature_is_simple_regression():
    X, Y, _ = make_data(30, 5)
    ours, known = desparsified(X[:, :1], Y), hotelling_tests(X[:, :1], Y)
    np.testing.assert_allclose(ours.B, known.B, rtol=1e-9)
    np.testing.assert_allclose(ours.std_errors, known.std_errors, rtol=0.2)


def test_copies_are_named():
    X, Y, _ = make_data(60, 40)
    X[:, 30] = 2.0 * X[:, 7]
    with pytest.warns(UserWarning, match=r"2 columns of X can hardly be told apart .* (7 from 30|30 from 7)"):
        desparsified(X, Y)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"fdr": 1.0}, ValueError, r"^fdr must .*got 1\.0"),
        ({"level": 0.0}, ValueError, r"^level must .*got 0\.0"),
        ({"test": "t"}, ValueError, r"^test must be one of 'f', 'chi2'.*got 't'"),
        ({"correction": None}, ValueError, r"^correction must be one of 'bh', 'by'"),
        ({"noise": "none"}, ValueError, r"^noise must be 'estimate'"),
        ({"n_jobs": 0}, ValueError, r"^n_jobs must"),
        ({"tol": 0.0}, ValueError, r"^tol must"),
        ({"y": np.zeros((20, 2))}, ValueError, r"^X and y must have one row per sample"),
        ({"X": np.zeros((40, 3))}, ValueError, r"^X has 3 constant columns, the first is 0"),
    ],
)
def test_bad_input(changes, error, message):
    X, Y, _ = make_data(40, 10)
    with pytest.raises(error, match=message):
        desparsified(**{"X": X, "y": Y} | changes)
