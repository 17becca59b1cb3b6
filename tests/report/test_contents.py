"""Contents that cannot be shown are refused with the argument, the value and the remedy."""

import pytest
from sklearn.exceptions import NotFittedError

import groupowl as go
from estimator_support import regression_data
from report_support import classified, contents_of, cross_validated


@pytest.fixture(scope="module")
def model():
    return cross_validated()


@pytest.mark.parametrize(
    ("changed", "error", "message"),
    [
        ({"feature_names": ["a"]}, ValueError, r"feature_names must have 12 \(features\) names, got 1"),
        ({"feature_names": "abc"}, TypeError, r"feature_names must be a list of strings, got 'abc'\. Put it in a list"),
        ({"target_names": ["a", "b", "c"]}, ValueError, r"target_names must have 2 \(targets\) names, got 3"),
        ({"target_names": None}, TypeError, "target_names must be a list of strings, got None"),
        ({"command": "groupowl cv x.csv"}, TypeError, "command must be a list of strings"),
        ({"notes": "careful"}, TypeError, "notes must be a list of strings"),
        ({"scores": {"r2": 0.5}}, ValueError, r"scores\['r2'\] must be two numbers, \(model, null model\), got 0.5"),
        ({"scores": {"r2": (0.5,)}}, ValueError, r"scores\['r2'\] must be two numbers"),
        ({"path": 3}, TypeError, "path must be a PathResult or None, got int"),
        ({"estimator": None, "path": None}, ValueError, "estimator and path are both None"),
        ({"estimator": go.GroupOWLRegressor()}, NotFittedError, "not fitted"),
    ],
)
def test_bad_contents_are_refused(model, changed, error, message):
    with pytest.raises(error, match=message):
        contents_of(model, model.path_, **changed)


def test_a_path_of_other_data_is_refused(model):
    X, Y = regression_data(d=5)
    with pytest.raises(ValueError, match="estimator has 12 features and path has 5: give a path of the same data"):
        contents_of(model, go.group_owl_path(X, Y, alphas=2))


def test_class_names_are_counted():
    with pytest.raises(ValueError, match=r"target_names must have 3 \(classes\) or 1 \(column\) names, got 2"):
        contents_of(classified(), target_names=["a", "b"])
