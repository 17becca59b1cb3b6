"""certificate, coef_frame and summary: what a person sees of a fit."""

import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning

from estimator_support import labelled_data, regression_data
from groupowl.estimators import (
    FeatureStatus,
    GroupOWLClassifier,
    GroupOWLClassifierCV,
    GroupOWLRegressor,
    GroupOWLRegressorCV,
)
from groupowl.estimators.fit_summary import edge_of_grid_text, strongest_first, summary_text

STATES = {"selected", "proved zero", "zero, not proved", "unpenalized"}


def fitted(**settings):
    X, Y = regression_data(d=60)
    names = [f"gene{j}" for j in range(60)]
    return GroupOWLRegressor(**settings).fit(pd.DataFrame(X, columns=names), Y)


def test_the_certificate_says_of_each_feature_what_is_proved():
    model = fitted(unpenalized=["gene3"])
    certificate = model.certificate()
    result = model.solve_result_
    assert len(certificate) == 60
    assert sum(certificate.counts.values()) == 60
    for j, status in enumerate(certificate):
        assert isinstance(status, FeatureStatus)
        assert status.feature == f"gene{j}"
        nonzero = bool(model.coef_[:, j].any())
        if j == 3:
            assert status.state == "unpenalized"
        elif nonzero:
            assert status.state == "selected"
        elif result.screened_at[j] >= 0:
            assert status.state == "proved zero"
            assert status.gap == result.history.gap[result.screened_at[j]]
        else:
            assert status.state == "zero, not proved"
        assert (status.gap is None) == (status.state != "proved zero")
    assert certificate.counts["proved zero"] > 0
    assert (certificate.gap, certificate.objective) == (model.dual_gap_, result.primal)


def test_what_is_proved_zero_is_zero_at_a_far_smaller_gap():
    X, Y = regression_data(d=60)
    certificate = GroupOWLRegressor(tol=1e-3).fit(X, Y).certificate()
    alpha = GroupOWLRegressor().fit(X, Y).alpha_
    exact = GroupOWLRegressor(alpha, screening="none", tol=1e-12).fit(X, Y)
    norms = np.linalg.norm(exact.coef_, axis=0)
    proved = certificate.states == "proved zero"
    assert proved.any()
    assert norms[proved].max() <= 1e-7 * norms.max()


def test_without_screening_nothing_is_proved_zero():
    counts = fitted(screening="none").certificate().counts
    assert counts["proved zero"] == 0
    assert counts["zero, not proved"] > 0


def test_the_certificate_of_a_relaxed_fit_is_that_of_the_penalized_one():
    assert list(fitted(relaxed=True).certificate().states) == list(fitted().certificate().states)


def test_a_certificate_prints_and_becomes_a_frame():
    model = fitted()
    certificate = model.certificate()
    text = repr(certificate)
    assert text.startswith("GroupOWLRegressor at alpha")
    assert f"{certificate.counts['selected']} selected, {certificate.counts['proved zero']} proved zero" in text
    assert "40 more" in text
    assert len(text.splitlines()) < 30
    frame = certificate.to_frame()
    assert list(frame.columns) == ["feature", "state", "gap"]
    assert set(frame["state"]) <= STATES
    assert certificate[0] == next(iter(certificate))
    assert isinstance(GroupOWLRegressor().fit(*regression_data()).certificate()[4].feature, int)


def test_the_frame_has_a_row_per_feature_and_a_column_per_task():
    model = fitted()
    frame = model.coef_frame()
    assert list(frame.columns) == ["feature", "cluster", "norm", "state", "coef_0", "coef_1", "coef_2"]
    np.testing.assert_array_equal(frame["feature"], model.feature_names_in_)
    np.testing.assert_array_equal(frame[["coef_0", "coef_1", "coef_2"]].to_numpy().T, model.coef_)
    np.testing.assert_allclose(frame["norm"], np.linalg.norm(model.coef_, axis=0))
    np.testing.assert_array_equal(frame["cluster"], model.clusters_)
    np.testing.assert_array_equal(frame["state"], model.certificate().states)
    ordered = model.coef_frame(sort=True)
    assert (np.diff(ordered["norm"]) <= 1e-15).all()
    assert sorted(ordered["feature"]) == sorted(frame["feature"])
    assert list(ordered.index) == list(range(60))


@pytest.mark.parametrize("settings", [{}, {"relaxed": True}])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_features_are_listed_as_the_penalty_ranks_them(dtype, settings):
    """Not by norms per unit, which units decide."""
    X, Y = regression_data()
    model = GroupOWLRegressor(1.0, weights="bh", standardize=True, unpenalized=[20, 5], **settings)
    model.fit((X * np.geomspace(1.0, 1e4, 30)).astype(dtype), Y)
    clusters, norms = model.clusters_, np.linalg.norm(model.coef_, axis=0)
    assert np.bincount(clusters)[1:].max() > 1
    zeros = np.flatnonzero(norms == 0.0)
    assert len(zeros) > 0
    members = [np.flatnonzero(clusters == number) for number in range(1, clusters.max() + 1)]
    ordered = model.coef_frame(sort=True)
    np.testing.assert_array_equal(ordered["feature"], np.concatenate([*members, [5, 20], zeros]))
    assert (np.diff(ordered["norm"]) > 0).any()


def test_without_another_scale_norms_fall():
    norms = fitted(weights="linear").coef_frame(sort=True)["norm"]
    assert (np.diff(norms) <= 1e-14).all()


def test_a_relaxed_fit_without_a_selected_feature_lists_it_with_the_zeros():
    model = fitted(relaxed=True)
    first = strongest_first(model)[0]
    model.coef_[:, first] = 0.0
    assert first in strongest_first(model)[np.count_nonzero(model.get_support()) :]


def test_the_summary_shows_the_first_clusters_and_cuts_off_the_last():
    X, Y = regression_data(d=60)
    model = GroupOWLRegressor(0.01, standardize=True).fit(X * np.geomspace(1.0, 1e4, 60), Y)
    table = summary_text(model).partition("  feature ")[2].splitlines()[1:]
    shown = [int(line.split()[0]) for line in table[: table.index("")] if "..." not in line]
    assert shown == strongest_first(model)[:25].tolist()
    assert len(shown) < np.count_nonzero(model.get_support())
    assert set(np.flatnonzero(model.clusters_ == 1)) <= set(shown)


def test_columns_of_coefficients_have_the_names_of_classes():
    X, y = labelled_data()
    labels = np.array(["cat", "dog", "eel"])
    assert list(GroupOWLClassifier().fit(X, labels[y]).coef_frame().columns)[4:] == [
        "coef_cat",
        "coef_dog",
        "coef_eel",
    ]
    two = GroupOWLClassifier().fit(X, labels[np.minimum(y, 1)])
    assert list(two.coef_frame().columns)[4:] == ["coef"]
    X, Y = regression_data()
    assert list(GroupOWLRegressor().fit(X, Y[:, 0]).coef_frame().columns)[4:] == ["coef"]


def test_frames_say_what_to_install(monkeypatch):
    model = fitted()
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"coef_frame\(\) needs pandas.*pip install pandas"):
        model.coef_frame()
    with pytest.raises(ImportError, match=r"to_frame.* needs pandas"):
        model.certificate().to_frame()


@pytest.mark.parametrize(
    "settings", [{}, {"unpenalized": [0]}, {"relaxed": True}, {"weights": np.linspace(1, 0.5, 60)}]
)
def test_the_summary_is_one_page(settings, capsys):
    model = fitted(**settings)
    assert model.summary() is None
    printed = capsys.readouterr().out
    assert printed == summary_text(model) + "\n"
    lines = printed.splitlines()
    assert len(lines) <= 40
    assert max(len(line) for line in lines) <= 120
    assert f"{model.certificate().counts['selected']} selected" in printed
    largest = model.coef_frame(sort=True)["feature"][0]
    assert largest in lines[9]


SCALED = "Scaled means per standard deviation, as the penalty sees it"
RELAXED = "Sizes are those of the relaxed fit; order and clusters are those of the penalized fit."


@pytest.mark.parametrize("weights", ["linear", "constant"])
@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"standardize": True}, f"{SCALED}; features of one cluster have equal norms there."),
        ({"relaxed": True}, RELAXED),
        ({"standardize": True, "relaxed": True}, f"{SCALED}. {RELAXED}"),
        ({}, ""),
    ],
)
def test_the_summary_says_what_sizes_are(settings, words, weights):
    """Those as the penalty sees them fall and are equal in a cluster, but for relaxed fits; others need words."""
    X, Y = regression_data()
    X = X * np.linspace(1.0, 3.0, X.shape[1])
    model = GroupOWLRegressor(weights=weights, **settings).fit(X, Y)
    sizes = np.bincount(model.clusters_)[1:]
    assert (sizes.max() > 1) == (weights == "linear")
    members = model.clusters_ == np.argmax(sizes) + 1
    norms = np.linalg.norm(model.coef_[:, members], axis=0)
    assert np.allclose(norms, norms[0]) == (not settings or weights == "constant")
    frame = model.coef_frame(sort=True)
    assert (np.diff(frame["norm"]) <= 1e-9).all() == (not settings)
    scaled = frame["scaled_norm" if "standardize" in settings else "norm"]
    assert (np.diff(scaled) <= 1e-9).all() == ("relaxed" not in settings)
    text = summary_text(model)
    assert " ".join(text.split()).endswith(words)
    assert ("Scaled means" in text, "Sizes are" in text) == ("standardize" in settings, "relaxed" in settings)
    assert max(len(line) for line in text.splitlines()) <= 120


@pytest.mark.parametrize("settings", [{"standardize": True}, {"relaxed": True}])
def test_sizes_of_unpenalized_features_alone_need_no_words_on_clusters(settings):
    X, Y = regression_data()
    text = summary_text(GroupOWLRegressor(1e3, unpenalized=[2], **settings).fit(X, Y))
    assert "Sizes are" not in text
    assert "of one cluster" not in text
    assert (f"{SCALED}." in text) == ("standardize" in settings)


def test_the_summary_says_why_the_solve_ended():
    with pytest.warns(ConvergenceWarning):
        text = summary_text(fitted(solver="apgd", max_iter=1))
    assert "  solve      stopped at max_iter after 1 step, " in text
    assert "  solve      converged after " in summary_text(fitted())


def test_the_summary_of_nothing_and_of_long_names(capsys):
    X, Y = regression_data()
    GroupOWLRegressor(1e3).fit(X, Y).summary()
    assert "No feature is selected" in capsys.readouterr().out
    frame = pd.DataFrame(X, columns=[f"{'long ' * 30}{j}" for j in range(30)])
    GroupOWLRegressor().fit(frame, Y).summary()
    assert max(len(line) for line in capsys.readouterr().out.splitlines()) <= 120


AT_THE_EDGE = "The best alpha is the smallest one tried; an eps below 0.5 would look further."


@pytest.mark.parametrize("selection", ["min", "aic"])
@pytest.mark.parametrize("kind", [GroupOWLRegressorCV, GroupOWLClassifierCV])
def test_the_summary_says_that_the_best_alpha_is_the_last_of_the_grid(kind, selection):
    """So short a grid ends long before the best alpha of data with so much signal."""
    X, y = (regression_data if kind is GroupOWLRegressorCV else labelled_data)(n=200, d=10)
    model = kind(alphas=np.int64(4), eps=0.5, selection=selection).fit(X, y)
    assert model.alpha_ == model.alphas_[-1]
    assert edge_of_grid_text(model) == AT_THE_EDGE
    assert summary_text(model).splitlines()[-1] == f"  {AT_THE_EDGE}"


# Settings, and whether the last alpha is chosen nevertheless.
NOT_AT_THE_EDGE = {
    "longer grid": ({"alphas": 30, "eps": 1e-4}, False),
    "alphas of the user": ({"alphas": [0.5, 0.1]}, True),
    "one alpha, which eps does not move": ({"alphas": 1}, True),
}


@pytest.mark.parametrize("name", NOT_AT_THE_EDGE)
def test_the_summary_does_not_ask_for_a_longer_grid(name):
    settings, is_last = NOT_AT_THE_EDGE[name]
    model = GroupOWLRegressorCV(**settings).fit(*regression_data(n=200, d=10))
    assert (model.best_index_ == len(model.alphas_) - 1) == is_last
    assert edge_of_grid_text(model) == ""
    assert "smallest one tried" not in summary_text(model)


def test_a_grid_that_ends_where_all_is_explained_needs_no_smaller_alpha():
    X, _ = regression_data(d=5)
    model = GroupOWLRegressorCV(alphas=40, eps=1e-6).fit(X, X[:, 0])
    assert model.path_.stopped_because == "deviance"
    assert model.best_index_ == len(model.alphas_) - 1
    assert edge_of_grid_text(model) == ""


@pytest.mark.parametrize(
    ("selection", "words"),
    [
        ("min", "Cross-validation finds nothing better than the null model."),
        ("1se", "Cross-validation finds nothing better than the null model by more than one standard error."),
        ("bic", "By BIC nothing is better than the null model."),
    ],
)
def test_the_summary_of_a_null_model_that_was_chosen(selection, words):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((40, 6)), rng.standard_normal(40)
    model = GroupOWLRegressorCV(alphas=10, cv=3, selection=selection).fit(X, y)
    assert f"  No feature is selected. {words}\n" in summary_text(model) + "\n"
    only = GroupOWLRegressorCV(alphas=[1e3, 1e2], cv=3, selection=selection).fit(X, y)
    assert "No feature is selected. A smaller alpha selects some." in summary_text(only)


def test_a_single_alpha_has_no_grid():
    assert edge_of_grid_text(fitted()) == ""


def test_the_end_of_the_grid_is_told_of_a_model_without_features_too():
    """Folds may select, and predict better, at an alpha where nothing is selected on all data."""
    X, Y = regression_data(n=200, d=10)
    largest = GroupOWLRegressorCV(alphas=2).fit(X, Y).alphas_[0]
    model = GroupOWLRegressorCV(alphas=[2.0 * largest, (1 + 1e-9) * largest]).fit(X, Y)
    model.alphas = 2  # as if the grid were its own, where rounding decides what is selected so near its start
    text = summary_text(model)
    assert "No feature is selected" in text
    assert "smallest one tried" in text


def test_fits_without_names_can_be_given_some():
    X, Y = regression_data(d=60)
    model = GroupOWLRegressor().fit(X, Y)
    names = [f"word{j}" for j in range(60)]
    frame = model.coef_frame(sort=True, feature_names=names)
    assert frame.feature.tolist() == [f"word{j}" for j in model.coef_frame(sort=True).feature]
    assert [status.feature for status in model.certificate(feature_names=iter(names))] == names
    assert not hasattr(model, "coef_names_")
    for report in (model.coef_frame, model.certificate, model.summary):
        with pytest.raises(ValueError, match=r"feature_names must have one name for each of the 60, got 2 names"):
            report(feature_names=names[:2])
        with pytest.raises(TypeError, match="feature_names must be a list of names, got 'word'"):
            report(feature_names="word")


def test_the_summary_prints_the_names_that_it_is_given(capsys):
    X, Y = regression_data(d=60)
    model = GroupOWLRegressor().fit(X, Y)
    model.summary(feature_names=[f"word{j}" for j in range(60)])
    printed = capsys.readouterr().out
    assert all(f"  word{j} " in printed for j in strongest_first(model)[:5])


def test_certificates_show_zeros_beside_many_selected_features():
    X, Y = regression_data(d=60)
    model = GroupOWLRegressor("auto", weights="constant").set_params(alpha=0.02).fit(X, Y)
    counts = model.certificate().counts
    assert counts["selected"] > 20
    assert counts["proved zero"] > 5
    text, html = repr(model.certificate()), model.certificate()._repr_html_()
    assert text.count("selected (norm") == 15
    assert text.count("proved zero (gap") == 5
    assert html.count(">selected<") == 15
    assert html.count(">proved zero<") == 5


def test_the_summary_of_a_search_warns_of_columns_of_different_size():
    X, Y = regression_data(d=60)
    sizes = np.ones(60)
    sizes[3] = 2e4
    for settings, is_told in (({}, True), ({"standardize": True}, False), ({"penalty_factor": sizes}, False)):
        model = GroupOWLRegressorCV(alphas=4, cv=3, **settings).fit(X * sizes, Y)
        assert ("Sizes of columns differ by a factor of" in summary_text(model)) == is_told
    assert "Sizes of columns" not in summary_text(GroupOWLRegressorCV(alphas=4, cv=3).fit(X, Y))
