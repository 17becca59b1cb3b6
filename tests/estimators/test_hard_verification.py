"""Verification and relaxed fits where numbers are large: wrong fits are refused, right ones hold, nothing crashes."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import groupowl as go

DATA = go.datasets.make_correlated_groups(80, 30, 3, random_state=0)
LABELS = np.array(["a", "b", "c"])[np.digitize(DATA.Y[:, 0], np.quantile(DATA.Y[:, 0], [0.33, 0.66]))]
CASES = {go.GroupOWLRegressor: DATA.Y, go.GroupOWLClassifier: LABELS}


@pytest.mark.parametrize("factor", [0.5, 0.99, 1.5])
@pytest.mark.parametrize(("offset", "dtype"), [(1e6, float), (1e7, float), (2e3, np.float32), (1e2, np.float32)])
@pytest.mark.parametrize("kind", CASES)
def test_offsets_do_not_hide_wrong_coefficients(kind, offset, dtype, factor):
    X = (DATA.X + offset).astype(dtype)
    model = kind(tol=1e-5).fit(X, CASES[kind])
    assert model.verify(X, CASES[kind])
    model.coef_ = model.coef_ * factor
    assert not model.verify(X, CASES[kind])


@pytest.mark.parametrize("factor", [1e160, 1e200, np.inf])
@pytest.mark.parametrize("unpenalized", [None, [1]])
@pytest.mark.parametrize("kind", CASES)
def test_coefficients_that_overflow_are_wrong(kind, unpenalized, factor):
    model = kind(unpenalized=unpenalized).fit(DATA.X, CASES[kind])
    with np.errstate(all="ignore"):
        model.coef_ = np.where(model.coef_ == 0.0, 0.0, model.coef_ * factor)
    assert not model.verify(DATA.X, CASES[kind])


def test_a_gap_above_the_goal_is_not_said_to_be_below_it():
    with pytest.warns(ConvergenceWarning):
        model = go.GroupOWLRegressor(tol=1e-17).fit(DATA.X, DATA.Y)
    verification = model.verify(DATA.X, DATA.Y)
    assert verification.gap > verification.goal
    assert not verification or "for rounding" in repr(verification)


def test_a_fit_that_fell_short_is_not_polished():
    with pytest.warns(ConvergenceWarning):
        model = go.GroupOWLRegressorCV(alphas=[0.02, 0.01], max_iter=3, cv=3).fit(DATA.X, DATA.Y)
    assert model.solve_result_.status == "max_iter"
    assert model.n_iter_ <= 3
    assert model.dual_gap_ == model.solve_result_.history.gap[-1]
