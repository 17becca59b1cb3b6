"""groupowl.selection is still there, with all its names, and says where they are now."""

from __future__ import annotations

import importlib
import sys

import numpy as np
import pytest

from groupowl.losses import Loss, SquaredLoss

FORMER = [
    "CRITERIA",
    "EBIC_GAMMA",
    "FOLD_RULES",
    "Candidate",
    "Evidence",
    "Fitting",
    "Fold",
    "FoldResult",
    "FoldStatistics",
    "FoldTask",
    "Likelihood",
    "LossScore",
    "Score",
    "StatisticsScore",
    "TrainingRows",
    "TrainingStatistics",
    "are_complements",
    "check_folds",
    "choose",
    "criterion_path",
    "fold_statistics",
    "mean_scores",
    "mean_squared_error",
    "relaxed_candidates",
    "run_fold",
    "standard_errors",
    "statistics_pay",
    "with_statistics",
]


@pytest.fixture
def selection():
    sys.modules.pop("groupowl.selection", None)
    with pytest.warns(DeprecationWarning, match=r"groupowl.selection is now groupowl.model_selection"):
        return importlib.import_module("groupowl.selection")


@pytest.mark.parametrize("name", FORMER)
def test_former_names(selection, name):
    assert hasattr(selection, name)


def test_evidence_is_what_criteria_take(selection):
    likelihood = selection.Likelihood("squared", n_samples=20.0, n_columns=3, n_penalized=10, null_loss=1.0)
    (value,) = selection.criterion_path("aic", likelihood, [selection.Evidence(0.3, 7, 4)])
    assert value == pytest.approx(likelihood.deviance(0.3) + 14.0 * 60 / 52)


def test_a_loss_without_a_likelihood_has_no_criterion(selection):
    """No other loss is taken for squared loss."""
    members = {name: value for name, value in vars(SquaredLoss).items() if not name.startswith("__")}
    unknown = type("UnknownLoss", (Loss,), members | {"name": "unknown"})()
    assert np.isfinite(selection.Likelihood(unknown, 20.0, 3, 10, 1.0).deviance(0.3))
    del members["minus_twice_log_likelihood"]
    unknown = type("UnknownLoss", (Loss,), members | {"name": "unknown"})()
    with pytest.raises(ValueError, match=r"loss='unknown' is no likelihood, .* Choose alpha by cross-validation"):
        selection.Likelihood(unknown, 20.0, 3, 10, 1.0).deviance(0.3)
