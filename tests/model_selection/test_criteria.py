"""Information criteria against their formulas."""

from __future__ import annotations

from math import comb, log, pi

import numpy as np
import pytest

import groupowl as go
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


def test_a_relaxed_fit_is_free_on_its_support():
    assert squared(q=3).relaxed_freedom(4, 2, True) == 3 * (4 + 2 + 1)


def test_the_prices():
    likelihood, fit = squared(n=20.0, d=10), (0.3, 7, 4)
    deviance = likelihood.deviance(0.3)
    values = {name: criterion_path(name, likelihood, [fit])[0] - deviance for name in ("aic", "bic", "ebic")}
    scarcity = 60 / (60 - 7 - 1)  # 20 samples of 3 tasks
    assert values["aic"] == pytest.approx(2 * 7 * scarcity)
    assert values["bic"] == pytest.approx(7 * log(20) * scarcity)
    assert values["ebic"] == pytest.approx(7 * log(20) * scarcity + 2 * 0.5 * log(comb(10, 4)))


@pytest.mark.parametrize("selection", ["aic", "bic", "ebic"])
@pytest.mark.parametrize("q", [1, 3])
def test_a_fit_that_leaves_no_errors_is_not_the_best(selection, q):
    """With more features than samples, the end of the path explains everything."""
    data = go.datasets.make_correlated_groups(60, 200, q, random_state=0)
    model = go.GroupOWLRegressorCV(alphas=30, eps=1e-2, selection=selection).fit(data.X, data.Y)
    assert model.path_[-1].deviance_ratio > 0.96
    assert model.path_[model.best_index_].deviance_ratio < 0.95
