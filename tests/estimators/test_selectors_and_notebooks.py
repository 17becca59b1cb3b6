"""Estimators select columns, become plain linear models, and show tables in notebooks."""

from __future__ import annotations

from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.feature_selection import SelectFromModel, SelectorMixin
from sklearn.linear_model import LinearRegression, LogisticRegression, PoissonRegressor, Ridge
from sklearn.pipeline import make_pipeline

import groupowl as go
from groupowl._html import page_of_text

DATA = go.datasets.make_correlated_groups(80, 30, 3, n_informative=5, random_state=0)
FRAME = pd.DataFrame(DATA.X, columns=[f"<x{j}>" for j in range(30)])
LABELS = (DATA.Y[:, 0] > 0).astype(int) + (DATA.Y[:, 1] > 0)
COUNTS = np.random.default_rng(0).poisson(np.exp(0.4 * DATA.X[:, 0]))


# Selectors -----------------------------------------------------------------------------------------------


def test_the_selected_columns_are_the_transform():
    model = go.GroupOWLRegressor(0.5).fit(FRAME, DATA.Y)
    support = model.get_support()
    assert isinstance(model, SelectorMixin)
    assert 0 < support.sum() < 30
    np.testing.assert_array_equal(model.transform(FRAME), DATA.X[:, support])
    assert model.get_feature_names_out().tolist() == model.selected_features_.tolist()
    frame = model.set_output(transform="pandas").transform(FRAME)
    pd.testing.assert_frame_equal(frame, FRAME.loc[:, support])
    plain = go.GroupOWLRegressor(0.5).fit(DATA.X, DATA.Y)
    sparse = plain.transform(sp.csr_array(DATA.X))
    np.testing.assert_array_equal(sparse.toarray(), DATA.X[:, support])
    assert plain.inverse_transform(plain.transform(DATA.X)).shape == DATA.X.shape


def test_estimators_are_steps_of_a_pipeline():
    pipeline = make_pipeline(go.GroupOWLRegressor(0.5), Ridge()).fit(DATA.X, DATA.Y)
    assert pipeline[-1].coef_.shape == (3, pipeline[0].get_support().sum())


def test_select_from_model_needs_a_threshold():
    """Its own drops features that the model selects, as the guide says."""
    model = go.GroupOWLRegressor(0.3).fit(DATA.X, DATA.Y)
    ours = model.get_support()
    selector = SelectFromModel(clone(model), threshold=1e-12).fit(DATA.X, DATA.Y)
    np.testing.assert_array_equal(selector.get_support(), ours)
    assert SelectFromModel(clone(model)).fit(DATA.X, DATA.Y).get_support().sum() < ours.sum()


def test_what_transform_refuses(tmp_path):
    frame = FRAME.assign(kind=np.where(LABELS > 0, "a", "b"))
    model = go.GroupOWLRegressor(0.1, categories="auto").fit(frame, DATA.Y)
    with pytest.raises(
        ValueError, match=r"get_feature_names_out names columns of X, but .* was fitted with categories"
    ):
        model.get_feature_names_out()
    assert model.selected_features_.tolist() == model.coef_names_[model.get_support()].tolist()
    with pytest.raises(ValueError, match=r"transform chooses columns of X, but .* was fitted with categories"):
        model.transform(frame)
    np.save(tmp_path / "X.npy", DATA.X)
    model = go.GroupOWLRegressor(0.1).fit(DATA.X, DATA.Y)
    with pytest.raises(TypeError, match="transform needs data in memory, got MemmapDesign"):
        model.transform(go.MemmapDesign(tmp_path / "X.npy"))


# Plain models --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("y", [DATA.Y, DATA.Y[:, 0], DATA.Y[:, :1]], ids=["several", "one", "column"])
@pytest.mark.parametrize("loss", ["squared", "huber"])
def test_regressions_are_linear_ones(y, loss):
    model = go.GroupOWLRegressor(0.1, loss=loss).fit(FRAME, y)
    plain = model.to_sklearn()
    assert type(plain) is LinearRegression
    np.testing.assert_array_equal(plain.predict(FRAME), model.predict(FRAME))
    assert plain.feature_names_in_.tolist() == list(FRAME.columns)
    plain.coef_[...] = 0.0
    assert model.coef_.any()


@pytest.mark.parametrize("labels", [LABELS, LABELS > 0, np.where(LABELS > 0, "yes", "no")])
def test_classes_are_logistic_regressions(labels):
    model = go.GroupOWLClassifierCV(alphas=5, cv=3).fit(DATA.X, labels)
    plain = model.to_sklearn()
    assert type(plain) is LogisticRegression
    np.testing.assert_allclose(plain.predict_proba(DATA.X), model.predict_proba(DATA.X), atol=1e-14)
    np.testing.assert_array_equal(plain.predict(DATA.X), model.predict(DATA.X))


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_counts_are_a_poisson_regression(fit_intercept):
    model = go.GroupOWLRegressor(0.01, loss="poisson", fit_intercept=fit_intercept).fit(DATA.X, COUNTS)
    plain = model.to_sklearn()
    assert type(plain) is PoissonRegressor
    np.testing.assert_allclose(plain.predict(DATA.X), model.predict(DATA.X), rtol=1e-14)


@pytest.mark.parametrize(
    ("fit", "error", "match"),
    [
        (lambda: go.GroupOWLRegressor(loss="poisson").fit(DATA.X, COUNTS[:, None]), TypeError, "has one target"),
        (lambda: go.GroupOWLClassifier().fit(DATA.X, (DATA.Y > 0).astype(int)), TypeError, "several labels"),
        (lambda: go.GroupOWLCox().fit(DATA.X, np.c_[LABELS > 0, COUNTS + 1.0]), TypeError, "times until events"),
        (lambda: go.GroupOWLRegressor().fit(DATA.X, DATA.Y, offset=DATA.Y[:, 0]), ValueError, "with an offset"),
        (
            lambda: go.GroupOWLRegressor(categories="auto").fit(FRAME.assign(k=LABELS.astype(str)), DATA.Y),
            ValueError,
            "with categories",
        ),
    ],
)
def test_what_has_no_plain_model(fit, error, match):
    with pytest.raises(error, match=f"to_sklearn: .*{match}"):
        fit().to_sklearn()


# Notebooks -----------------------------------------------------------------------------------------------


class Page(HTMLParser):
    """Cells of tables, other text, and whether every element is closed."""

    def __init__(self, html):
        super().__init__()
        self.open, self.rows, self.text, self.n_tables = [], [], [], 0
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.n_tables += tag == "table"
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open[-1] in ("td", "th"):
            self.rows[-1][-1] += data
        else:
            self.text.append(data)


def test_results_are_tables():
    result = go.GroupOWLRegressor(0.3).fit(FRAME, DATA.Y).solve_result_
    page = Page(result._repr_html_())
    facts = dict(page.rows)
    assert page.text == ["SolveResult: converged"]
    assert f"proved within {result.gap:.3g}" in facts["objective"]
    assert facts["rows of B"].startswith(f"{len(result.support)} of 30 selected")


def test_certificates_are_tables():
    certificate = go.GroupOWLRegressor(0.3).fit(FRAME, DATA.Y).certificate()
    page = Page(certificate._repr_html_())
    assert ["feature", "state", "norm", "gap of its proof"] in page.rows
    assert page.n_tables == 2
    assert page.rows[4][0].startswith("<x")  # a name, and no element
    assert page.text[-1] == "... 10 more: iterate over it, or to_frame()"
    grouped = go.GroupOWLRegressor(0.3, feature_groups=[[0, 1], [2, 3]]).fit(FRAME, DATA.Y).certificate()
    assert ["feature", "group", "state", "norm", "gap of its proof"] in Page(grouped._repr_html_()).rows


def test_paths_are_tables():
    path = go.group_owl_path(FRAME, DATA.Y, alphas=20)
    page = Page(path._repr_html_())
    assert page.rows[0] == ["", "alpha", "selected", "clusters", "deviance", "gap", "status"]
    assert len(page.rows) == 9
    assert page.rows[-1][0] == str(len(path) - 1)
    assert page.text[0] == repr(path).splitlines()[0]


def test_summaries_are_pages(capsys):
    model = go.GroupOWLRegressorCV(alphas=10, cv=3, weights=["oscar", "lasso"]).fit(FRAME, DATA.Y)
    model.summary()
    assert capsys.readouterr().out == f"{model.summary_}\n"
    assert repr(model.summary_) == model.summary_.text
    page = Page(model.summary_._repr_html_())
    assert page.text[0] == "GroupOWLRegressorCV"
    assert page.n_tables == 3
    assert page.rows[0][0] == "data"
    names = [row[0] for row in page.rows]
    assert set(model.selected_features_[:5]) <= set(names)
    assert "lasso" in names
    assert sum(row[-1] == "chosen" for row in page.rows) == 1


def test_pages_of_text_escape_and_keep_sentences():
    page = Page(page_of_text("A <title>\n  name  a & b\n\n  x  y  z\n  1  2  3\n  ... more\n\n  A note."))
    assert page.rows == [["name", "a & b"], ["x", "y", "z"], ["1", "2", "3"]]
    assert page.text == ["A <title>", "... more", "A note."]


def test_unfitted_estimators_have_no_summary():
    assert not hasattr(go.GroupOWLRegressor(), "summary_")


# Weights -------------------------------------------------------------------------------------------------


def test_the_lasso_has_constant_weights():
    lasso, constant = (go.GroupOWLRegressor(0.3, weights=name).fit(DATA.X, DATA.Y) for name in ("lasso", "constant"))
    np.testing.assert_array_equal(lasso.coef_, constant.coef_)
    path = go.group_owl_path(DATA.X, DATA.Y, weights="lasso", alphas=3)
    np.testing.assert_array_equal(path.weights, np.ones(30))
    assert go.lam_max(DATA.X, DATA.Y, "lasso") == go.lam_max(DATA.X, DATA.Y, "constant")
