"""The page shows the numbers of the fit and every name literally, asks nothing of the network, and stays small."""

import base64
import hashlib
import re
import sys
import warnings
from dataclasses import replace
from html import unescape

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.model_selection import KFold

import groupowl as go
from estimator_support import regression_data
from groupowl._text import printable
from groupowl.estimators.fit_summary import NOT_PROVED, PROVED_ZERO
from groupowl.plotting import SurvivalDisplay
from groupowl.report import page as page_module
from groupowl.report import render_report, write_report
from groupowl.report.page import SHOWN_ROWS, cell, number
from report_support import HOSTILE, Page, classified, contents_of, cross_validated, full_path, names_of, sparse_data


@pytest.fixture(scope="module")
def model():
    return cross_validated()


@pytest.fixture(scope="module")
def page(model):
    return Page(render_report(contents_of(model, model.path_)))


# Names ---------------------------------------------------------------------------------------------------


def hostile_contents(model, names):
    """The same words in every place that takes words from outside."""
    names = [names[j % len(names)] for j in range(12)]
    return contents_of(
        model,
        model.path_,
        title=names[0],
        command=names[:3],
        facts=dict.fromkeys(names, names[1]),
        feature_names=names,
        target_names=names[2:4],
        scores=dict.fromkeys(names, (1.0, 2.0)),
        notes=names,
    )


def shape(page):
    """Tags and the attributes that are not words."""
    return [(tag, sorted(attrs), attrs.get("class"), attrs.get("id")) for tag, attrs in page.tags]


def test_hostile_names_are_words_and_nothing_else(model):
    """The page has the tags of one with plain names, and the names as they are."""
    plain = Page(render_report(hostile_contents(model, [f"name {j}" for j in range(12)])))
    hostile = Page(render_report(hostile_contents(model, HOSTILE)))
    assert shape(hostile) == shape(plain)
    for name in HOSTILE:
        assert printable(" ".join(name.split())) in hostile.text
    assert hostile.raw["script"] == plain.raw["script"]
    assert not {"\x1b", "\x07", "\u202e"} & set(render_report(hostile_contents(model, HOSTILE)))


@settings(deadline=None, max_examples=25)
@given(st.lists(st.text(max_size=12), min_size=12, max_size=12, unique=True))
def test_any_names_are_words_and_nothing_else(names):
    model = cached_model()
    plain = Page(render_report(hostile_contents(model, [f"name {j}" for j in range(12)])))
    assert shape(Page(render_report(hostile_contents(model, names)))) == shape(plain)


def cached_model(found=[]):  # noqa: B006  (one fit for all examples)
    if not found:
        found.append(cross_validated())
    return found[0]


def test_names_reach_the_scripts_as_words(model):
    data = Page(render_report(hostile_contents(model, HOSTILE))).data
    shown = [printable(" ".join(name.split())) or "(empty name)" for name in HOSTILE]
    assert [shown[j] for j in data["path"]["features"]] == data["path"]["names"]
    assert [shown[j] for j in data["table"]["features"]] == data["table"]["names"]


def test_half_characters_can_be_written(model, tmp_path):
    write_report(tmp_path / "report.html", hostile_contents(model, HOSTILE))
    assert Page((tmp_path / "report.html").read_text(encoding="utf-8")).data["path"] is not None


# Nothing from outside ------------------------------------------------------------------------------------


def test_nothing_refers_to_the_network(model):
    html = render_report(contents_of(model, model.path_))
    assert "http://" not in html
    assert "https://" not in html
    assert not re.search(r"@import|url\(|@font-face", html)
    for tag, attrs in Page(html).tags:
        for attribute in ("src", "srcset", "action", "data", "poster"):
            assert attribute not in attrs, tag
        assert attrs.get("href", "data:,") == "data:,"


def test_the_policy_allows_this_script_and_nothing_from_outside(page):
    policies = [attrs["content"] for tag, attrs in page.tags if attrs.get("http-equiv") == "Content-Security-Policy"]
    digest = base64.b64encode(hashlib.sha256(page.raw["script"].encode()).digest()).decode()
    assert len(policies) == 1
    assert "default-src 'none'" in policies[0]
    assert f"script-src 'sha256-{digest}'" in policies[0]


# Numbers -------------------------------------------------------------------------------------------------


def norms_from(path):
    """Norms and clusters of all rows, of shape (n_alphas, n_rows), from what the scripts get."""
    norms = np.zeros((len(path["alphas"]), len(path["rows"])))
    clusters = np.zeros(norms.shape, dtype=int)
    for k, (start, row, numbers) in enumerate(path["rows"]):
        norms[start : start + len(row), k] = row
        clusters[start : start + len(row), k] = numbers
    return norms, clusters


@pytest.mark.parametrize("kind", ["regression", "classes", "two classes"])
def test_scripts_get_the_path(kind):
    fitted = cross_validated() if kind == "regression" else classified(n_classes=2 if kind == "two classes" else 3)
    path = fitted.path_
    found = Page(render_report(contents_of(None, path))).data["path"]
    norms, clusters = norms_from(found)
    expected = path.coefs[0].T if path.n_targets == 1 else np.linalg.norm(path.coefs, axis=0).T
    ever = np.flatnonzero(expected.any(axis=0))
    assert found["features"] == ever.tolist()
    np.testing.assert_allclose(norms, expected[:, ever], rtol=1e-5, atol=0.0)
    np.testing.assert_array_equal(clusters, path.clusters[ever].T)
    np.testing.assert_allclose(found["alphas"], path.alphas, rtol=1e-5)
    assert found["selected"] == path.n_selected.tolist()
    assert found["chosen"] is None
    assert found["start"] == len(path) - 1


def test_the_path_passes_through_the_fit(model):
    """At the chosen alpha the slider shows the fit of the table, not the path's, which has fewer digits."""
    found = Page(render_report(contents_of(model, model.path_))).data["path"]
    assert found["start"] == model.best_index_
    norms, clusters = norms_from(found)
    support = model.get_support(indices=True)
    at = [found["features"].index(j) for j in support]
    np.testing.assert_allclose(norms[model.best_index_, at], np.linalg.norm(model.coef_[:, support], axis=0), rtol=1e-5)
    np.testing.assert_array_equal(clusters[model.best_index_, at], model.clusters_[support])
    assert np.count_nonzero(norms[model.best_index_]) == len(support) == found["selected"][model.best_index_]
    assert found["gaps"][model.best_index_] == pytest.approx(model.dual_gap_, rel=1e-5)


def test_scripts_get_the_choice_of_alpha(model):
    found = Page(render_report(contents_of(model, model.path_))).data["choice"]
    np.testing.assert_allclose(found["values"], -model.mean_score_path_, rtol=1e-5)  # errors, and no scores
    assert (found["label"], found["lowerIsBetter"]) == ("mean squared error", True)
    np.testing.assert_allclose(found["errors"], model.std_error_path_, rtol=1e-5)
    np.testing.assert_allclose(found["folds"], -model.score_path_.T, rtol=1e-5)
    best = int(np.argmax(model.mean_score_path_))
    low = -model.mean_score_path_[best]
    np.testing.assert_allclose(found["band"], [low, low + model.std_error_path_[best]], rtol=1e-5)


def test_a_criterion_has_no_band():
    fitted = cross_validated(selection="bic")
    page = Page(render_report(contents_of(fitted, fitted.path_)))
    np.testing.assert_allclose(page.data["choice"]["values"], fitted.criterion_path_, rtol=1e-5)
    assert page.data["choice"]["errors"] is None
    assert page.data["choice"]["band"] is None
    assert page.data["choice"]["folds"] == []
    assert "which has the smallest BIC" in page.text


def test_the_table_has_the_frame_of_coefficients(model):
    """Names, clusters, norms and coefficients of the features in the model, whatever their order."""
    frame = model.coef_frame()
    frame = frame[frame["norm"] > 0]
    found = Page(render_report(contents_of(model, model.path_))).data["table"]
    order = np.argsort(found["features"])
    columns = [np.asarray(column["values"], dtype=float)[order] for column in found["columns"]]
    assert [found["names"][k] for k in order] == [f"gene {j}" for j in frame.index]
    np.testing.assert_array_equal(columns[0], frame["cluster"])
    np.testing.assert_allclose(columns[1], frame["norm"], rtol=1e-5)
    np.testing.assert_array_equal(columns[2], model.selection_frequency_[frame.index])
    first = model.path_.alphas[np.argmax(np.abs(model.path_.coefs).sum(axis=0) > 0, axis=1)]
    np.testing.assert_allclose(columns[3], first[frame.index], rtol=1e-5)
    np.testing.assert_allclose(columns[4:], frame.filter(like="coef_").to_numpy().T, rtol=1e-5)


def test_facts_scores_notes_and_command_are_on_the_page(model):
    contents = contents_of(model, model.path_, notes=("Twelve rows were left out.",))
    text = Page(render_report(contents)).text
    assert "Samples 40" in text
    assert "mean squared error, held out 0.25 \N{EN DASH} 1.5" in text
    assert "NO BETTER" not in text  # two numbers do not say which is better
    assert "Twelve rows were left out." in text
    assert "groupowl cv 'my file.csv' --targets y1,y2" in text
    assert "model = go.GroupOWLRegressorCV( alphas=12, cv=3, eps=0.05, )" in " ".join(text.split())
    assert f"groupowl {go.__version__}" in text


def test_the_certificate_is_put_into_words(model):
    certificate = model.certificate()
    text = Page(render_report(contents_of(model, model.path_))).text
    assert f"The objective of the fit is {number(certificate.objective, 8)}. It is above" in text
    assert f"which is {number(certificate.gap, 3)}, or {number(certificate.gap / certificate.objective, 2)} of" in text
    assert "The gap meets the tolerance of 1e-6" in text
    if certificate.counts[PROVED_ZERO]:
        assert f"{certificate.counts[PROVED_ZERO]} feature" in text
    assert "every fit meets its tolerance" in text


def proof_rows(page):
    """The table of gaps and numbers of features proved zero."""
    return [(gap, int(count.replace(",", ""))) for gap, count in re.findall(r"(\S+) ([\d,]+) (?=\S)", page)]


def test_proofs_are_counted_by_gap():
    """The last row counts all features that are proved zero, the first only those of the largest gap."""
    X, Y = regression_data(1, n=60, d=200, q=2)
    fitted = go.GroupOWLRegressor(solver="apgd").fit(X, Y)
    certificate = fitted.certificate()
    gaps = certificate.gaps[certificate.states == PROVED_ZERO]
    assert len(np.unique(gaps)) > 1
    text = Page(render_report(contents_of(fitted))).text
    table = text.split("Duality gap Proved zero so far")[1].split("selected.")[0]
    rows = proof_rows(table)
    assert rows[0] == (number(gaps.max(), 3), np.count_nonzero(gaps == gaps.max()))
    assert (number(gaps.min(), 3), len(gaps)) in rows
    assert len(rows) <= 9


def test_what_is_not_proved_is_named():
    fitted = go.GroupOWLRegressor(screening="none").fit(*sparse_data())
    certificate = fitted.certificate()
    assert certificate.counts[NOT_PROVED] > 0
    text = Page(render_report(contents_of(fitted))).text
    assert f"{certificate.counts[NOT_PROVED]} features zero but not proved." in text
    assert f"Not proved: gene {np.flatnonzero(certificate.states == NOT_PROVED)[0]}" in text
    assert "Screening, which finds proofs, was switched off." in text


# Kinds of fits -------------------------------------------------------------------------------------------


def test_a_fit_that_is_not_converged_says_so():
    X, Y = regression_data(0, n=60, d=30)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = go.GroupOWLRegressor(alpha=0.01, max_iter=2).fit(X, Y)
    page = Page(render_report(contents_of(fitted)))
    assert "The fit stopped short of its tolerance (max_iter)." in page.text
    assert "The gap does not meet the tolerance" in page.text
    assert page.data["path"] is None
    assert page.data["choice"] is None


def test_nothing_selected():
    X, Y = regression_data()
    page = Page(render_report(contents_of(go.GroupOWLRegressor(alpha=1e6).fit(X, Y))))
    assert (
        "No feature is in the model for target 0, target 1 and target 2, at alpha 1e+6. All 30 are proved" in page.text
    )
    assert "No feature is selected at this alpha." in page.text
    assert page.data["table"] is None
    assert "features" not in [attrs.get("id") for _, attrs in page.tags]


def test_cross_validation_chooses_the_null_model():
    rng = np.random.default_rng(0)
    fitted = go.GroupOWLRegressorCV(alphas=10, cv=3).fit(rng.standard_normal((40, 6)), rng.standard_normal(40))
    assert fitted.dual_gap_ == 0.0
    assert fitted.certificate().counts[NOT_PROVED] == 1
    text = Page(render_report(contents_of(fitted, fitted.path_))).text
    assert "selected at this alpha. Cross-validation finds nothing better than the null model." in text
    assert "smaller one selects" not in text
    assert "The gap is 0: a smaller tolerance proves no more. Not proved: " in text


def test_nothing_selected_anywhere_on_a_path():
    X, Y = regression_data()
    path = go.group_owl_path(X, Y, alphas=[1e6, 1e5])
    found = Page(render_report(contents_of(None, path))).data
    assert found["path"]["rows"] == []
    assert found["path"]["legend"] == []
    assert found["table"] is None


def test_the_legend_has_the_end_of_the_path_where_nothing_is_chosen():
    X, Y = regression_data()
    fitted = go.GroupOWLRegressor(alpha=1e6).fit(X, Y)
    path = go.group_owl_path(X, Y, alphas=10)
    found = Page(render_report(contents_of(fitted, path))).data["path"]
    norms = norms_from(found)[0]
    assert found["legend"][0][0] == np.argmax(norms[-1])
    assert len(found["legend"]) == len(found["labels"]) == page_module.N_NAMED
    assert found["labels"] == [found["names"][lines[0]] for lines in found["legend"]]  # short enough as they are


def test_one_task_and_a_flat_target():
    X, Y = regression_data(q=1)
    fitted = go.GroupOWLRegressorCV(alphas=8, cv=2).fit(X, Y[:, 0])
    found = Page(render_report(contents_of(fitted, fitted.path_))).data["table"]
    kinds = [column["kind"] for column in found["columns"]]
    assert kinds == ["cluster", "number", "number", "number", "coefficient"]
    np.testing.assert_allclose(found["columns"][-1]["values"], fitted.coef_[found["features"]], rtol=1e-5)


def test_two_classes_have_one_column_of_log_odds():
    fitted = classified(n_classes=2)
    page = Page(render_report(contents_of(fitted, fitted.path_)))
    assert sum(column["kind"] == "coefficient" for column in page.data["table"]["columns"]) == 1
    assert "log-odds of beech against ash" in page.text


@pytest.mark.parametrize("names", [["tree"], ["Fraxinus", "Fagus", "Quercus"]])
def test_classes_go_by_their_labels_or_by_names_of_your_own(names):
    fitted = classified()
    page = Page(render_report(contents_of(fitted, fitted.path_, target_names=names)))
    shown = [attrs["title"] for tag, attrs in page.tags if tag == "th" and attrs.get("class") == "coefficient"]
    expected = ["ash", "beech", "oak"] if len(names) == 1 else names
    assert shown == [f"coefficient: {name}" for name in expected]
    assert f"for telling {expected[0]}, {expected[1]} and {expected[2]} apart" in page.text


def test_unpenalized_features_have_no_cluster():
    fitted = cross_validated(unpenalized=[5])
    page = Page(render_report(contents_of(fitted, fitted.path_)))
    row = page.data["table"]["features"].index(5)
    assert page.data["table"]["columns"][0]["values"][row] == 0
    assert [page.data["path"]["features"][r] for r in page.data["path"]["free"]] == [5]
    assert "of 12 features are in the model, 1 of them without penalty" in page.text


def test_a_relaxed_fit_shows_relaxed_coefficients_and_the_penalized_path():
    fitted = cross_validated(relaxed=True)
    page = Page(render_report(contents_of(fitted, fitted.path_)))
    table = page.data["table"]
    np.testing.assert_allclose(table["columns"][-1]["values"], fitted.coef_[-1, table["features"]], rtol=1e-5)
    norms = norms_from(page.data["path"])[0][fitted.best_index_]
    expected = np.linalg.norm(fitted.penalized_coef_, axis=0)
    np.testing.assert_allclose(norms, expected[page.data["path"]["features"]], rtol=1e-5)
    assert "(relaxed)" in page.text


def test_clusters_list_the_features_that_share_a_norm():
    fitted = cross_validated()
    text = Page(render_report(contents_of(fitted, fitted.path_))).text
    sizes = np.bincount(fitted.clusters_)
    several = [cluster for cluster in range(1, len(sizes)) if sizes[cluster] > 1]
    assert several
    assert "that does not say that its features are correlated" in " ".join(text.split())
    listed = text.split("Members")[1]
    for cluster in several:
        members = np.flatnonzero(fitted.clusters_ == cluster)
        assert all(f"gene {j}" in listed for j in members[:12])


def test_each_feature_alone():
    fitted = cross_validated(weights="constant")
    text = Page(render_report(contents_of(fitted))).text
    assert "3 features, nothing is tied: constant weights treat each on its own." in text


# What matters ----------------------------------------------------------------------------------------------


def lead(page):
    return re.split("What matters|Largest coefficients", page.text)[0]


def test_the_page_begins_with_what_matters_for_what_and_how_sure(model):
    """The strongest features by name, the targets, the folds, the first score; facts come after all results."""
    contents = contents_of(model, model.path_)
    page = Page(render_report(contents))
    assert model.clusters_.tolist() == [2, 2, 2, 1, 0, 0, 3, 0, 0, 0, 0, 0]  # of the second not all names would fit
    words = lead(page)
    largest = "gene 3 has the largest coefficients, in the units of the columns, for target 0 and target 1"
    assert f"{largest}: 5 of 12 features are in" in words
    assert (model.selection_frequency_[model.get_support()] == 3).all()
    assert "All of them were selected in each of the 3 folds." in words
    assert "Mean squared error, held out: 0.25, without features 1.5." in words
    ids = [attrs["id"] for tag, attrs in page.tags if tag == "section"]
    assert ids == ["strongest", "scores", "path", "choice", "table", "clusters", "proof", "facts", "again"]


def test_sizes_are_compared_where_columns_were_standardized(model):
    """Else a unit decides which coefficient is large, and the page says how to compare them."""
    scaled = cross_validated(standardize=True, weights="constant", alphas=[0.2])
    first, second, third = (f"gene {j}" for j in scaled.coef_frame(sort=True)["feature"][:3])
    assert np.count_nonzero(scaled.clusters_) > 3
    text = Page(render_report(contents_of(scaled))).text
    assert f"{first}, {second} and {third} matter most for target 0 and target 1: " in text
    assert "per standard deviation of the feature, so that sizes can be compared" in text
    assert "not standardized" not in text
    weighted = cross_validated(penalty_factor=np.arange(1.0, 13.0))
    for fitted, scale in ((model, "in the units of the columns"), (weighted, "on the scale that the penalty sees")):
        text = Page(render_report(contents_of(fitted))).text
        assert f" the largest coefficients, {scale}, for target 0 and" in text
        assert "matter" not in text
        assert "so that sizes can be compared" not in text
        assert "Columns were not standardized: a size depends on the unit of its column. With --standardize" in text


@pytest.mark.parametrize("standardize", [True, False])
def test_the_first_sentence_is_about_a_whole_cluster(standardize):
    x = np.random.default_rng(0).standard_normal((40, 2))
    settings = {"weights": "linear", "standardize": standardize}
    fitted = go.GroupOWLRegressor(0.01, **settings).fit(x[:, [0] * 6 + [1]], 6.0 * x[:, 0] + 0.5 * x[:, 1])
    assert fitted.clusters_.tolist() == [1, 1, 1, 1, 1, 1, 2]
    words = "gene 0, gene 1, gene 2 and 3 more"
    words += ", with coefficients of equal size, matter most" if standardize else " have the largest coefficients, of "
    assert words in lead(Page(render_report(contents_of(fitted))))
    several = cross_validated(weights="linear", standardize=True)
    assert np.flatnonzero(several.clusters_ == 1).tolist() == [2, 3]
    assert "gene 2 and gene 3, with coefficients of equal norm, matter" in lead(
        Page(render_report(contents_of(several)))
    )


@pytest.mark.parametrize(
    ("clusters", "expected"),
    [
        ([1], (1, False)),
        ([1, 1], (2, True)),
        ([1, 2, 3, 4], (3, False)),
        ([1, 2, 2, 2], (1, False)),
        ([1, 1, 2, 2], (2, True)),
        ([1, 1, 1, 1, 2], (4, True)),
        ([0, 0, 0, 0], (3, False)),  # without penalty, without cluster
        ([1, 0, 0, 0], (3, False)),
    ],
)
def test_how_many_lead(clusters, expected):
    assert page_module._leading(clusters, is_relaxed=False) == expected
    assert page_module._leading(clusters, is_relaxed=True) == (min(3, len(clusters)), False)


@pytest.mark.parametrize(
    ("counts", "words"),
    [
        ([3, 3], "All of them were selected in each of the 3 folds."),
        ([3, 1, 2], "1 of the 3 was selected in each of the 3 folds, 1 in fewer than half."),
        ([2, 2], "None of the 2 were selected in each of the 3 folds."),
        ([2], "It was selected in 2 of 3 folds."),
    ],
)
def test_folds_in_words(counts, words):
    assert page_module._stability_text(np.array(counts), 3) == words


def test_one_fit_does_not_say_how_sure_it_is():
    assert "One fit does not tell how sure that is" in lead(
        Page(render_report(contents_of(go.GroupOWLRegressor().fit(*sparse_data()))))
    )


def bars_of(html):
    """Name, left end, width and value of each bar of the first picture."""
    part = html[html.index('<section id="strongest">') : html.index('<section id="scores">')]
    found = re.findall(
        r'<th scope="row"><div>(.*?)</div>.*?margin-left:([\d.]+)%;width:([\d.]+)%.*?class="size">(.*?)</td>',
        part,
        re.S,
    )
    return [(name, float(left), float(width), float(value)) for name, left, width, value in found]


def test_bars_of_one_target_have_signs_and_ranks_on_the_scale_of_the_penalty():
    X, Y = sparse_data(q=1)
    X, Y = X * np.geomspace(1e-3, 1e3, 12), Y - 5.0 * X[:, 5:6] + 4.0 * X[:, 8:9]
    fitted = go.GroupOWLRegressorCV(alphas=8, cv=2, standardize=True).fit(X, Y[:, 0])
    bars = bars_of(render_report(contents_of(fitted)))
    frame = fitted.coef_frame(sort=True)
    frame = frame[frame["cluster"] > 0][:12]
    assert [bar[0] for bar in bars] == [f"gene {j}" for j in frame["feature"]]
    values = np.array([bar[3] for bar in bars])
    np.testing.assert_allclose(values, frame["scaled"], rtol=5e-4)
    assert (values < 0.0).any()
    assert (values > 0.0).any()
    widths = 50.0 * np.abs(values) / np.abs(values).max()
    np.testing.assert_allclose([bar[2] for bar in bars], widths, atol=0.11)
    np.testing.assert_allclose([bar[1] for bar in bars], np.where(values < 0.0, 50.0 - widths, 50.0), atol=0.11)


def test_unpenalized_features_come_last_and_do_not_set_the_axis():
    """Neither of the bars, nor of the path."""
    X, Y = sparse_data(q=1)
    Y = Y + 100.0 * X[:, [11]]
    fitted = go.GroupOWLRegressorCV(alphas=8, cv=2, unpenalized=[11]).fit(X, Y[:, 0])
    html = render_report(contents_of(fitted, fitted.path_))
    bars, data = bars_of(html), Page(html).data
    assert bars[-1][0] == "gene 11"
    assert bars[-1][3] > 50.0 * max(abs(bar[3]) for bar in bars[:-1])
    assert max(bar[2] for bar in bars) == bars[-1][2]
    assert bars[0][2] == bars[-1][2]
    assert data["table"]["features"][-1] == 11
    penalized = fitted.path_.coefs[0][:11]
    assert data["path"]["low"] == pytest.approx(min(penalized.min(), 0.0), rel=1e-5)
    assert data["path"]["high"] == pytest.approx(penalized.max(), rel=1e-5)


def test_cells_say_for_which_target():
    fitted = cross_validated(standardize=True)
    html = render_report(contents_of(fitted))
    cells = re.findall(r'<td class="entry( below)?" style="--share:(\d+)%">(.*?)</td>', html)
    shown = fitted.coef_frame(sort=True)
    shown = shown[shown["scaled_norm"] > 0.0].filter(regex="^scaled_\\d").to_numpy().ravel()
    np.testing.assert_allclose([float(value) for *_, value in cells], shown, rtol=5e-4)
    assert [bool(below) for below, *_ in cells] == (shown < 0.0).tolist()
    many = cross_validated(q=11)
    assert "entry" not in render_report(contents_of(many)).split("<body>")[1].split("<script")[0]


def test_the_table_and_the_path_have_both_scales():
    X, Y = sparse_data()
    fitted = go.GroupOWLRegressorCV(alphas=8, cv=2, standardize=True).fit(X * np.geomspace(1e-3, 1e3, 12), Y)
    page = Page(render_report(contents_of(fitted, fitted.path_)))
    table, features = page.data["table"], page.data["table"]["features"]
    frame = fitted.coef_frame().loc[features]
    values = [np.array(column["values"]) for column in table["columns"]]
    np.testing.assert_allclose(values[1], frame["scaled_norm"], rtol=1e-5)
    np.testing.assert_allclose(values[2], frame["norm"], rtol=1e-5)
    np.testing.assert_allclose(values[-1], frame["coef_1"], rtol=1e-5)
    np.testing.assert_allclose(table["columns"][-1]["scaled"], frame["scaled_1"], rtol=1e-5)
    assert "scaled" in [attrs.get("id") for _, attrs in page.tags]
    norms = norms_from(page.data["path"])[0]
    expected = np.linalg.norm(fitted.path_.scaled_coefs, axis=0)[page.data["path"]["features"]].T
    np.testing.assert_allclose(norms, expected, rtol=1e-4, atol=1e-4 * expected.max())
    assert page.data["path"]["label"] == "scaled norm"
    one = go.GroupOWLRegressor(standardize=True).fit(X, Y[:, 0])
    page = Page(render_report(contents_of(one)))
    scaled = [np.array(column["values"]) for column in page.data["table"]["columns"]][1]
    np.testing.assert_allclose(scaled, one.scaled_coef_[page.data["table"]["features"]], rtol=1e-5)
    assert "scaled" not in [attrs.get("id") for _, attrs in page.tags]


# Python ----------------------------------------------------------------------------------------------------

MODELS = [
    go.GroupOWLRegressor(),
    go.GroupOWLRegressor(
        0.5, weights=np.linspace(1.0, 0.5, 11), feature_groups={'a\'s "b"': [0, 1]}, group_scale="none"
    ),
    go.GroupOWLRegressorCV(alphas=4, cv=KFold(3, shuffle=True, random_state=1), standardize=True, relaxed=True),
    go.GroupOWLRegressorCV(alphas=[0.1, np.float64(0.2)], cv=2, weights=["oscar", "linear"], unpenalized=(3,)),
    go.GroupOWLRegressor(
        solver=go.APGD(restart="gradient"), penalty_factor={1: 2.0, 2: np.inf}, max_iter=np.int64(50_000)
    ),
]


@pytest.mark.parametrize("number", range(len(MODELS)))
def test_the_python_on_the_page_runs_as_it_stands(number):
    """It makes a model with the same parameters, which a fit turns into the same coefficients."""
    X, Y = sparse_data()
    fitted = clone(MODELS[number]).fit(X, Y)
    html = render_report(contents_of(fitted))
    code = unescape(re.search(r"fits it:</p>\n<pre><code>(.*?)</code>", html, re.S)[1])
    made = {}
    exec(code, made)
    assert type(made["model"]) is type(fitted)
    np.testing.assert_array_equal(made["model"].fit(X, Y).coef_, fitted.coef_)
    given, again = fitted.get_params(), made["model"].get_params()
    assert {name for name in given if repr(given[name]) != repr(again[name])} <= {"alphas", "max_iter"}  # plain numbers


@pytest.mark.parametrize("weights", [lambda d, **sizes: np.ones(d), np.linspace(1.0, 0.5, 1000)], ids=["f", "long"])
def test_what_is_no_short_python_is_not_on_the_page(weights):
    d = 12 if callable(weights) else 1000
    fitted = go.GroupOWLRegressor(weights=weights).fit(*regression_data(d=d))
    text = Page(render_report(contents_of(fitted))).text
    assert "a GroupOWLRegressor with parameters that are too long to be shown, or are functions." in " ".join(
        text.split()
    )
    assert "import groupowl" not in text


# Sizes ---------------------------------------------------------------------------------------------------


def test_three_thousand_features_and_a_hundred_alphas_stay_small():
    html = render_report(contents_of(None, full_path()))
    page = Page(html)
    assert len(html.encode()) < 4e6
    assert page.data["path"]["omitted"] == 0
    assert len(page.data["table"]["names"]) == 3000
    assert page.names.count("tr") < SHOWN_ROWS + 65
    assert f"ends after {SHOWN_ROWS} of 3,000 rows" in page.text


def test_features_that_are_never_in_the_model_are_not_in_the_file():
    X, Y = regression_data(d=300)
    path = go.group_owl_path(X, Y, alphas=5, eps=0.5)
    found = Page(render_report(contents_of(None, path))).data["path"]
    ever = np.unique(np.concatenate([point.support for point in path]))
    assert found["features"] == ever.tolist()
    assert 0 < len(ever) < 100


def test_rows_beyond_the_room_are_the_smallest_and_are_counted(monkeypatch):
    path = full_path(200, 10)
    monkeypatch.setattr(page_module, "_MOST_NORMS", 300)
    contents = contents_of(None, path[:6])
    found = Page(render_report(contents)).data["path"]
    norms = np.linalg.norm(path[:6].coefs, axis=0).max(axis=1)
    assert found["omitted"] > 0
    assert found["omitted"] + len(found["rows"]) == np.count_nonzero(norms)
    assert sum(len(row) for _, row, _ in found["rows"]) <= 300
    left_out = np.setdiff1d(np.flatnonzero(norms), found["features"])
    assert norms[left_out].max() <= norms[found["features"]].min()
    assert found["selected"] == path[:6].n_selected.tolist()


# Numbers as text -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (0.0, "0"), (1.0, "1"), (-0.5, "-0.5"), (0.12345678, "0.1235"), (12345.678, "12346"), (999999.0, "999999"),
        (1e6, "1e+6"), (1.5e-7, "1.5e-7"), (0.0001, "0.0001"), (100.0, "100"), (np.nan, "not defined"),
    ],
)  # fmt: skip
def test_numbers_in_sentences(value, written):
    assert number(value) == written


@given(st.floats(-1e9, 1e9).filter(lambda value: abs(value) > 1e-12))
def test_numbers_keep_four_digits(value):
    assert float(number(value)) == pytest.approx(value, rel=6e-4)


@given(st.floats(-1e12, 1e12))
def test_numbers_of_tables_have_four_significant_digits(value):
    """As many for small ones as for large ones, and nothing but zero looks like zero."""
    written = cell(value)
    assert float(written) == pytest.approx(value, rel=5.01e-4, abs=0.0)
    digits = written.partition("e")[0].replace("-", "").replace(".", "").lstrip("0")
    assert len(digits) == 4 or value == 0.0 or abs(value) >= 1e4
    assert cell(np.nan) == page_module.NOTHING


# Files ---------------------------------------------------------------------------------------------------


def test_a_report_is_written_whole_or_not_at_all(model, tmp_path, monkeypatch):
    contents = contents_of(model, model.path_)
    target = tmp_path / "report.html"
    target.write_text("the old one")

    def fail(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("groupowl._files.os.replace", fail)
        with pytest.raises(KeyboardInterrupt):
            write_report(target, contents)
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]
    assert target.read_text() == "the old one"
    write_report(str(target), contents)
    assert target.read_text(encoding="utf-8") == render_report(contents)
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


def test_bad_places_are_refused(model, tmp_path):
    contents = contents_of(model, model.path_)
    with pytest.raises(IsADirectoryError, match=r"is a folder\. Add a name such as report\.html"):
        write_report(tmp_path, contents)
    with pytest.raises(FileNotFoundError):
        write_report(tmp_path / "nowhere" / "report.html", contents)
    with pytest.raises(TypeError, match="contents must be ReportContents, got dict"):
        write_report(tmp_path / "report.html", {})


def test_a_report_without_jinja_says_what_to_install(model, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(ImportError, match=r'a report needs jinja2, .* run: pip install "groupowl\[cli\]"'):
        write_report(tmp_path / "report.html", contents_of(model, model.path_))
    assert list(tmp_path.iterdir()) == []


def test_a_report_does_not_depend_on_when_it_is_made(model):
    contents = contents_of(model, model.path_)
    assert render_report(contents) == render_report(contents)


def test_names_need_not_be_lists(model):
    names = names_of(12)
    assert render_report(contents_of(model, model.path_, feature_names=np.array(names))) == render_report(
        contents_of(model, model.path_, feature_names=tuple(names))
    )


# Times until events --------------------------------------------------------------------------------------


def survival_contents(**changed):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 5))
    times = rng.exponential(np.exp(-X[:, :2]))
    y = np.stack([np.ones((60, 2)), times], axis=2).reshape(60, 4)
    model = go.GroupOWLCox().fit(X, y)
    displays = [SurvivalDisplay.undrawn(model, X, y, endpoint=k) for k in range(2)]
    return displays, contents_of(model, survival=displays, **changed)


def test_survival_curves():
    """A staircase for each group and kind of curve, and a row for each group."""
    displays, contents = survival_contents(target_names=["death", "<b>relapse</b>"])
    text = render_report(contents)
    part = text[text.index('<section id="survival">') : text.index('<section id="table">')]
    assert part.count("<path") == 2 * 2 * 3
    assert "&lt;b&gt;relapse&lt;/b&gt;" in part
    assert "<b>" not in part
    for display in displays:
        assert f"{display.concordance:.4g}" in part
        for group in display.groups:
            assert f"<td>{number(group.medians[0])}</td><td>{number(group.medians[1])}</td>" in part
    first = displays[0].groups[0]
    line = re.search(r'<path class="line line0" d="([^"]*)"', part)[1]
    heights = [float(step) for step in re.findall(r"V([0-9.]+)", line)]
    np.testing.assert_allclose(heights, 260 * (1 - first.observed[1:]), atol=0.06)
    assert "logarithms of hazard ratios" in text


def test_survival_of_other_targets():
    displays, contents = survival_contents()
    with pytest.raises(ValueError, match="survival must have a display for each of 2, got 1"):
        replace(contents, survival=displays[:1])
