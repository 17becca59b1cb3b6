"""Classes that a training set does not have."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import log_loss

from groupowl.designs import as_design
from groupowl.model_selection.folds import Fold, LossScore
from groupowl.model_selection.search import Fitting, TrainingSet
from groupowl.path import Solution, fit_path
from groupowl.solvers import WorkingSet, check_settings

FITTING = Fitting(
    "multinomial", True, False, np.zeros(0, dtype=np.intp), check_settings(WorkingSet(), "safe", 1e-6, 10_000)
)


# All samples are tested, and none trains.
WHOLE = Fold(np.zeros(0, dtype=np.intp), np.arange(30))


def make_data(n=30, d=4):
    rng = np.random.default_rng(0)
    labels = np.arange(n) % 3
    return rng.standard_normal((n, d)) + labels[:, None], np.eye(3)[labels], labels


@pytest.mark.parametrize("kept", [(0, 1), (0, 2), (2,)])
def test_an_absent_class_has_probability_zero_and_a_finite_loss(kept):
    X, Y, labels = make_data()
    rows, design, weight = np.flatnonzero(np.isin(labels, kept)), as_design(X), np.ones(len(X))
    solutions, _ = TrainingSet(design, Y, weight, rows).fit(FITTING, np.ones(X.shape[1]), np.array([0.2, 0.02]), 0)
    for solution in solutions:
        Z = X @ solution.coef(X.shape[1]) + solution.intercept
        P = np.exp(Z - Z.max(axis=1, keepdims=True))
        P /= P.sum(axis=1, keepdims=True)
        assert (P[:, np.setdiff1d(np.arange(3), kept)] == 0.0).all()
        np.testing.assert_allclose(P[:, kept].sum(axis=1), 1.0)
        score = LossScore("multinomial", design, Y, weight, WHOLE)([solution], np.ones(1), np.ones(4))[0]
        assert score == pytest.approx(-log_loss(labels, P, labels=[0, 1, 2]), rel=1e-10)
        assert np.isfinite(score)


def test_the_fit_of_the_other_classes_is_theirs_alone():
    """Dropping the class from the data first gives the same coefficients."""
    X, Y, labels = make_data()
    rows, weights, alphas = np.flatnonzero(labels != 1), np.ones(X.shape[1]), np.array([0.1])
    (found,), _ = TrainingSet(as_design(X), Y, np.ones(len(X)), rows).fit(FITTING, weights, alphas, 0)
    model = FITTING.model(X[rows], Y[np.ix_(rows, [0, 2])], weights, np.ones(len(rows)))
    (alone,) = fit_path(model, alphas, FITTING.settings, max_deviance=None).points
    np.testing.assert_array_equal(found.rows[:, [0, 2]], alone.rows)
    assert not found.rows[:, 1].any()


def test_log_loss_is_clipped_as_scikit_learn_does():
    X, Y, labels = make_data()
    sure = Solution(np.arange(4), 1e4 * np.random.default_rng(1).standard_normal((4, 3)), np.zeros(3))
    Z = X @ sure.rows
    P = np.exp(Z - Z.max(axis=1, keepdims=True))
    P /= P.sum(axis=1, keepdims=True)
    weight = np.random.default_rng(2).uniform(0.1, 2.0, len(X))
    score = LossScore("multinomial", as_design(X), Y, weight, WHOLE)([sure], np.ones(1), np.ones(4))[0]
    assert score == pytest.approx(-log_loss(labels, P, sample_weight=weight), rel=1e-10)
