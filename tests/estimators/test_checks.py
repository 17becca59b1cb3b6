"""scikit-learn's own checks, and its tools around our estimators."""

import pickle
import warnings

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_selection import SelectFromModel
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import groupowl as go
from estimator_support import labelled_data, regression_data
from groupowl.estimators import GroupOWLClassifier, GroupOWLRegressor

CLASSES = [GroupOWLRegressor, GroupOWLClassifier]
SETTINGS = [{}, {"tol": 1e-10}]


@parametrize_with_checks([cls(**settings) for cls in CLASSES for settings in SETTINGS])
def test_scikit_learn_checks(estimator, check):
    with warnings.catch_warnings():
        if check.func.__name__ == "check_class_weight_classifiers":
            # Class weights of 1000 and 1e-4: at tol=1e-10 this asks for more than double precision can prove.
            warnings.simplefilter("ignore", ConvergenceWarning)
        check(estimator)


def data_for(cls):
    return regression_data() if cls is GroupOWLRegressor else labelled_data()


@pytest.mark.parametrize("name", ["Regressor", "Classifier", "RegressorCV", "ClassifierCV"])
def test_an_unknown_parameter_is_refused_in_the_name_of_the_estimator(name):
    with pytest.raises(TypeError, match=rf"^GroupOWL{name}\.__init__"):
        getattr(go, f"GroupOWL{name}")(penalty=1.0)


@pytest.mark.parametrize("cls", CLASSES)
def test_pickling_keeps_everything_that_was_fitted(cls):
    X, y = data_for(cls)
    model = cls(relaxed=cls is GroupOWLRegressor).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert vars(again).keys() == vars(model).keys()
    assert again.verify(X, y)
    assert repr(again.certificate()) == repr(model.certificate())


@pytest.mark.parametrize("cls", CLASSES)
def test_a_fitted_estimator_does_not_hold_the_data(cls):
    X, y = data_for(cls)
    wide = np.hstack([X, np.zeros((len(X), 5000))])
    assert len(pickle.dumps(cls().fit(wide, y))) < wide.nbytes / 2
    with pytest.raises(AttributeError, match="theta"):
        cls().fit(X, y).solve_result_.theta  # noqa: B018


@pytest.mark.parametrize("cls", CLASSES)
def test_a_clone_is_not_fitted_and_fits_the_same(cls):
    X, y = data_for(cls)
    model = cls(alpha=0.1, weights="bh").fit(X, y)
    copy = clone(model)
    assert not hasattr(copy, "coef_")
    np.testing.assert_array_equal(copy.fit(X, y).coef_, model.coef_)


@pytest.mark.parametrize("cls", CLASSES)
def test_grid_search_in_a_pipeline(cls):
    X, y = data_for(cls)
    name = cls.__name__.lower()
    pipeline = make_pipeline(StandardScaler(), cls())
    grid = {f"{name}__alpha": [1e3, 0.05], f"{name}__weights": ["oscar", "constant"]}
    search = GridSearchCV(pipeline, grid, cv=3).fit(X, y)
    assert search.best_params_[f"{name}__alpha"] == 0.05  # the other one selects nothing
    assert search.best_estimator_.predict(X).shape == y.shape


@pytest.mark.parametrize("cls", CLASSES)
def test_cross_validation_in_two_processes_gives_the_same(cls):
    X, y = data_for(cls)
    model = cls(alpha=0.05)
    scores = cross_val_score(model, X, y, cv=3, n_jobs=2)
    np.testing.assert_allclose(scores, cross_val_score(model, X, y, cv=3), rtol=1e-9)


@pytest.mark.parametrize("cls", CLASSES)
def test_sample_weights_are_routed(cls):
    X, y = data_for(cls)
    weight = np.random.default_rng(0).uniform(0.0, 2.0, len(X))
    with sklearn.config_context(enable_metadata_routing=True):
        model = cls(alpha=0.05).set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        scaler = StandardScaler().set_fit_request(sample_weight=True)
        search = GridSearchCV(model, {"alpha": [0.05]}, cv=3).fit(X, y, sample_weight=weight)
        pipeline = make_pipeline(scaler, model).fit(X, y, sample_weight=weight)
    direct = cls(alpha=0.05).fit(X, y, sample_weight=weight)
    np.testing.assert_array_equal(search.best_estimator_.coef_, direct.coef_)
    assert not np.array_equal(cls(alpha=0.05).fit(X, y).coef_, direct.coef_)
    assert pipeline[-1].verify(pipeline[0].transform(X), y, weight)


@pytest.mark.parametrize("cls", CLASSES)
def test_select_from_model_keeps_the_support(cls):
    """With its default threshold, the mean, it drops small coefficients; 1e-12 keeps what is not zero."""
    X, y = data_for(cls)
    selector = SelectFromModel(cls(), threshold=1e-12).fit(X, y)
    support = selector.estimator_.get_support()
    assert 0 < support.sum() < X.shape[1]
    np.testing.assert_array_equal(selector.get_support(), support)
    by_default = SelectFromModel(cls()).fit(X, y).get_support()
    assert by_default.sum() < support.sum()


@pytest.mark.parametrize("cls", CLASSES)
def test_a_notebook_shows_the_estimator(cls):
    model = cls(alpha=0.25)
    assert "alpha" in repr(model)
    assert cls.__name__ in model._repr_html_()
    X, y = data_for(cls)
    assert cls.__name__ in model.fit(X, y)._repr_html_()
