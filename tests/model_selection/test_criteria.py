"""Information criteria against their formulas."""

from __future__ import annotations

from math import comb, log, pi

import numpy as np
import pytest

from groupowl.model_selection.search import Likelihood, criterion_path


def squared(n=20.0, q=3, d=10):
    return Likelihood("squared", n_samples=n, n_columns=q, n_penalized=d, null_loss=1.0)


def test_squared_deviance_is_that_of_the_normal_likelihood():
    """Minus twice the log-likelihood of normal errors at their estimated variance, term by term."""
    residuals = np.random.default_rng(0).standard_normal((20, 3))
    variance = np.mean(residuals**2)
    by_hand = np.sum(np.log(2 * pi * variance) + residuals**2 / variance)
    assert squared().deviance(np.sum(residuals**2) / 40) == pytest.approx(by_hand, rel=1e-12)


def test_multinomial_deviance_is_twice_the_total_log_loss():
    assert Likelihood("multinomial", 30.0, 4, 10, 1.0).deviance(0.5) == pytest.approx(30.0)


def test_a_perfect_fit_has_a_finite_deviance():
    assert np.isfinite(squared().deviance(0.0))


@pytest.mark.parametrize(
    ("loss", "n_columns", "expected"),
    [
        ("squared", 3, (2 * 2 + 1) + (1 * 2 + 1) + 3),  # clusters of 2 and 1 rows, three intercepts
        ("squared", 1, 2 + 1),  # one task: clusters, and an intercept
        ("multinomial", 3, (2 * 1 + 1) + (1 * 1 + 1) + 2),
        ("multinomial", 2, 2 + 1),
    ],
)
def test_a_cluster_shares_one_norm(loss, n_columns, expected):
    likelihood = Likelihood(loss, 20.0, n_columns, 10, 1.0)
    assert likelihood.shrunken_freedom(np.array([1, 2, 1]), 0, True) == expected


def test_unpenalized_features_are_free():
    """They have cluster 0 and count with every target, as intercepts do."""
    likelihood = squared(q=3)
    with_two = likelihood.shrunken_freedom(np.array([0, 1, 0]), 2, False)
    assert with_two == (1 * 2 + 1) + 2 * 3
    assert likelihood.relaxed_freedom(4, 2, True) == 3 * (4 + 2 + 1)


def test_the_prices():
    likelihood, fit = squared(n=20.0, d=10), (0.3, 7, 4)
    deviance = likelihood.deviance(0.3)
    values = {name: criterion_path(name, likelihood, [fit])[0] - deviance for name in ("aic", "bic", "ebic")}
    assert values["aic"] == pytest.approx(14.0)
    assert values["bic"] == pytest.approx(7 * log(20))
    assert values["ebic"] == pytest.approx(7 * log(20) + 2 * 0.5 * log(comb(10, 4)))
