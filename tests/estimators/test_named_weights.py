"""Weights by name in estimators: promises that correlated columns break, and a choice among shapes."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp

import groupowl as go
from groupowl.model import build_model, largest_correlation
from groupowl.weights import PROMISING

N, D, Q = 120, 30, 3


def make_data(correlation=0.0, seed=0, d=D):
    """Columns 3 and 8 have this correlation, up to chance; all others are independent."""
    rng = np.random.default_rng(seed)
    X, Y = rng.standard_normal((N, d)), rng.standard_normal((N, Q))
    X[:, 8] = correlation * X[:, 3] + np.sqrt(1.0 - correlation**2) * X[:, 8]
    Y[:, 0] += X[:, 3]
    return X, Y


FITS = {
    "alpha": lambda X, Y, name: go.GroupOWLRegressor(0.1, weights=name).fit(X, Y),
    "auto": lambda X, Y, name: go.GroupOWLRegressor(weights=name).fit(X, Y),
    "cv": lambda X, Y, name: go.GroupOWLRegressorCV(weights=name, alphas=3, cv=2).fit(X, Y),
    "cv of several": lambda X, Y, name: go.GroupOWLRegressorCV(weights=["bh", name], alphas=3, cv=2).fit(X, Y),
    "path": lambda X, Y, name: go.group_owl_path(X, Y, weights=name, alphas=3),
    "sparse": lambda X, Y, name: go.group_owl_path(sp.csr_array(X), Y, weights=name, alphas=3),
    "statistics": lambda X, Y, name: go.group_owl_path(
        go.SufficientStatistics.from_arrays(X, Y), weights=name, alphas=3
    ),
    "classes": lambda X, Y, name: go.GroupOWLClassifier(weights=name).fit(X, Y[:, 0] > 0),
}


@pytest.mark.parametrize("name", PROMISING)
@pytest.mark.parametrize("fit", FITS)
def test_correlated_columns_break_a_promise(fit, name):
    """Said once, where the user's call is, with the largest correlation and the way out."""
    X, Y = make_data(0.8)
    Y = Y[:, :1] if name == "gaussian" else Y
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        FITS[fit](X, Y, name)
    (warning,) = caught
    size = abs(np.corrcoef(X[:, 3], X[:, 8])[0, 1])
    assert f"weights={name!r} controls" in str(warning.message)
    assert f"columns 3 and 8 have a correlation of {size:.2f}" in str(warning.message)
    assert "KnockoffSelector" in str(warning.message)
    assert warning.filename == __file__


@pytest.mark.parametrize("name", PROMISING)
@pytest.mark.parametrize("fit", FITS)
def test_independent_columns_break_none(fit, name):
    """Warnings are errors here."""
    X, Y = make_data(0.0)
    FITS[fit](X, Y[:, :1] if name == "gaussian" else Y, name)


@pytest.mark.parametrize("weights", ["bh", "oscar", go.weights.chi(D, Q), lambda d: go.weights.chi_gauss(d, Q, N)])
def test_other_weights_promise_nothing(weights):
    X, Y = make_data(0.9)
    go.GroupOWLRegressor(weights=weights).fit(X, Y)


def test_verifying_does_not_warn_again():
    X, Y = make_data(0.9)
    with pytest.warns(UserWarning, match="controls the false discovery rate only"):
        model = go.GroupOWLRegressor(weights="chi").fit(X, Y)
    assert model.verify(X, Y)


def test_chance_is_no_correlation():
    """Of 200 columns and 30 samples some pair has a correlation of more than 0.5, and no column knows of another."""
    rng = np.random.default_rng(0)
    found = []
    for _ in range(20):
        X, Y = rng.standard_normal((30, 200)), rng.standard_normal((30, 2))
        model = build_model(X, Y, weights="chi")
        found.append(largest_correlation(model)[0])
        go.group_owl_path(X, Y, weights="chi", alphas=1)
    assert min(found) > 0.5


def test_correlations_are_those_of_the_columns():
    X, Y = make_data(0.5)
    expected = np.abs(np.corrcoef(X, rowvar=False)) - np.eye(D)
    for model in (build_model(X + 50.0, Y), build_model(X * np.arange(1, D + 1), Y, standardize=True)):
        size, pair = largest_correlation(model)
        assert size == pytest.approx(expected.max(), abs=1e-9)
        assert expected[pair] == expected.max()


def test_columns_without_a_penalty_and_of_one_group_may_be_correlated():
    X, Y = make_data(0.95)
    go.GroupOWLRegressor(weights="chi", unpenalized=[3]).fit(X, Y)
    go.GroupOWLRegressor(weights="gaussian", feature_groups=[[3, 8]]).fit(X, Y[:, 0])


def test_many_columns_are_looked_at_in_part():
    """Neighbors of the columns that are drawn are among them."""
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((200, 6000)), rng.standard_normal((200, 1))
    X[:, 1::2] = 0.8 * X[:, ::2] + 0.6 * X[:, 1::2]
    size, (left, right) = largest_correlation(build_model(X, Y))
    assert size > 0.8
    assert right == left + 1


def test_a_fit_is_the_same_with_and_without_a_name():
    X, Y = make_data(0.0)
    by_name = go.GroupOWLRegressor(0.1, weights="chi_gauss").fit(X, Y)
    by_array = go.GroupOWLRegressor(0.1, weights=go.weights.chi_gauss(D, Q, N)).fit(X, Y)
    np.testing.assert_allclose(by_name.coef_, by_array.coef_, atol=1e-4)
    np.testing.assert_array_equal(by_name.weights_, by_array.weights_)


def test_gaussian_is_refused_for_several_tasks_and_classes():
    X, Y = make_data()
    for fit in (
        lambda: go.GroupOWLRegressor(0.1, weights="gaussian").fit(X, Y),
        lambda: go.GroupOWLRegressorCV(weights=["bh", "gaussian"]).fit(X, Y),
        lambda: go.group_owl_path(X, Y, weights="gaussian"),
        lambda: go.lam_max(X, Y, "gaussian"),
        lambda: go.GroupOWLClassifier(weights="gaussian").fit(X, Y.argmax(axis=1)),
    ):
        with pytest.raises(ValueError, match=r"'gaussian' is for one task.*Use weights='chi_gauss'"):
            fit()


def test_gaussian_serves_two_classes():
    """Their coefficients differ by a sign: that is one direction, in the estimator and in the path."""
    X, Y = make_data()
    model = go.GroupOWLClassifier(weights="gaussian").fit(X, Y[:, 0] > 0)
    path = go.group_owl_path(X, Y[:, 0] > 0, loss="multinomial", weights="gaussian", alphas=1)
    np.testing.assert_array_equal(model.weights_, path.weights)


@pytest.mark.parametrize("name", ["chi", "chi_gauss"])
def test_names_are_refused_for_groups(name):
    X, Y = make_data()
    with pytest.raises(ValueError, match=rf"weights='{name}' is for single features.*go\.weights\.{name}\(n_groups"):
        go.GroupOWLRegressor(weights=name, feature_groups=[[0, 1]]).fit(X, Y)


# A choice among shapes ------------------------------------------------------------------------------------

SHAPES = ["constant", "oscar", "bh", "linear"]


@pytest.mark.parametrize("selection", ["min", "1se", "bic"])
def test_all_scores_of_all_shapes_are_kept_and_shown(selection, capsys):
    X, Y = make_data()
    model = go.GroupOWLRegressorCV(weights=SHAPES, alphas=5, eps=0.1, cv=3, selection=selection).fit(X, Y)
    frame = model.search_frame()
    values = "criterion" if selection == "bic" else "mean_score"
    key = "criterion_path" if selection == "bic" else "mean_score_path"
    for name, report in zip(SHAPES, model.search_results_, strict=True):
        np.testing.assert_array_equal(frame.loc[frame.weights == name, values], report[key])
        np.testing.assert_array_equal(frame.loc[frame.weights == name, "alpha"], report["alphas"])
    (chosen,) = frame[frame.chosen].itertuples()
    assert chosen.alpha == model.alpha_
    model.summary()
    lines = capsys.readouterr().out.splitlines()
    rows = [line.split() for line in lines if line.split()[:1] and line.split()[0] in SHAPES]
    assert [row[0] for row in rows] == SHAPES
    assert [row[0] for row in rows if row[-1] == "chosen"] == [chosen.weights]
    for row, report in zip(rows, model.search_results_, strict=True):
        assert float(row[1]) == pytest.approx(report[key][report["best_index"]], rel=1e-3)


def test_one_shape_needs_no_table(capsys):
    X, Y = make_data()
    model = go.GroupOWLRegressorCV(alphas=3, cv=2).fit(X, Y)
    model.summary()
    assert "chosen" not in capsys.readouterr().out
    assert set(model.search_frame().weights) == {"oscar"}


def test_levels_are_searched():
    X, Y = make_data()
    model = go.GroupOWLRegressorCV(weights=["constant", "levels"], alphas=4, eps=0.1, cv=2).fit(X, Y)
    assert len(model.search_results_) == 10
    assert model.search_frame().weights.nunique() == 10
    assert model.verify(X, Y)
    best = max(report["mean_score_path"].max() for report in model.search_results_)
    assert model.best_score_ == best


def test_levels_have_adaptive_factors_and_classes():
    X, Y = make_data()
    model = go.GroupOWLClassifierCV(weights="levels", alphas=3, cv=2, penalty_factor="adaptive")
    assert len(model.fit(X, Y[:, 0] > 0).search_results_) == 9
    with pytest.raises(ValueError, match="'levels' stands for 9 sequences"):
        go.GroupOWLClassifier(weights="levels").fit(X, Y[:, 0] > 0)


def test_the_picture_has_a_line_for_each_shape():
    pytest.importorskip("matplotlib")

    X, Y = make_data()
    model = go.GroupOWLRegressorCV(weights=SHAPES, alphas=5, eps=0.1, cv=3).fit(X, Y)
    from groupowl.plotting import CrossValidationDisplay

    display = CrossValidationDisplay.from_estimator(model)
    named = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert len([name for name in named if name.startswith("weights: ")]) == 3
    assert display.others.keys() == {*SHAPES} - {model.search_frame().query("chosen").weights.item()}
    many = model.set_params(weights=[*SHAPES, "levels"]).fit(X, Y)
    named = [text.get_text() for text in CrossValidationDisplay.from_estimator(many).ax_.get_legend().get_texts()]
    assert named.count("other weights") == 1
