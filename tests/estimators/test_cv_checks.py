"""scikit-learn's own checks of the cross-validated estimators, and its tools around them."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from estimator_support import labelled_data, regression_data
from groupowl.estimators import GroupOWLClassifierCV, GroupOWLRegressorCV

CLASSES = [GroupOWLRegressorCV, GroupOWLClassifierCV]
SETTINGS = [{}, {"tol": 1e-10}]


# One check has class weights of 1000 and 1e-4: some fits ask for more than double precision, or 1000 steps, can prove.
@pytest.mark.filterwarnings("ignore:.*Stopped:sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore:.*fits of the folds stopped short:sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks([cls(**settings) for cls in CLASSES for settings in SETTINGS])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def data_for(cls):
    return regression_data() if cls is GroupOWLRegressorCV else labelled_data()


@pytest.mark.parametrize("cls", CLASSES)
def test_pickling_keeps_everything_that_was_fitted(cls):
    X, y = data_for(cls)
    model = cls(alphas=3).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    np.testing.assert_array_equal(again.score_path_, model.score_path_)
    assert vars(again).keys() == vars(model).keys()
    assert again.verify(X, y)


@pytest.mark.parametrize("cls", CLASSES)
def test_a_fitted_estimator_does_not_hold_the_data(cls):
    X, y = data_for(cls)
    tall, labels = np.tile(X, (50, 1)), np.tile(y, (50, 1) if np.ndim(y) == 2 else 50)
    assert len(pickle.dumps(cls(alphas=3, cv=2).fit(tall, labels))) < tall.nbytes / 2


@pytest.mark.parametrize("cls", CLASSES)
def test_search_and_cross_validation_around_it(cls):
    X, y = data_for(cls)
    model = cls(alphas=2, eps=0.1, cv=2)
    search = GridSearchCV(model, {"selection": ["min", "bic"]}, cv=2).fit(X, y)
    assert search.best_params_["selection"] in ("min", "bic")
    assert np.isfinite(cross_val_score(model, X, y, cv=2)).all()
    assert clone(model).get_params() == model.get_params()


@pytest.mark.parametrize("cls", CLASSES)
def test_it_is_drawn_in_notebooks(cls):
    assert cls.__name__ in cls()._repr_html_()
