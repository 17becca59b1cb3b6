"""Categories of data frames: encoded by hand they give the same fit, and predictions know their levels."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.base import clone

import groupowl as go
from groupowl.categories import Categories, coefficient_names, find_categories
from groupowl.inputs import penalty_options
from groupowl.model import build_model
from groupowl.plotting import ClusterDisplay, CoefficientHeatmapDisplay, CoefficientPathDisplay

N = 90
LEVELS = {"sex": ["f", "m"], "site": ["1", "2", "3", "4"]}
CODED = ["a", "sex=f", "sex=m", "b", "site=1", "site=2", "site=3", "site=4", "c"]


def make_frame(seed=0, n=N):
    """Numbers between categories of text and of integers, of which one matters."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.standard_normal((n, 3)), columns=["a", "b", "c"])
    frame.insert(1, "sex", rng.choice(["m", "f"], n))
    frame.insert(3, "site", rng.choice([4, 1, 3, 2], n, p=[0.5, 0.3, 0.15, 0.05]))
    return frame


def make_targets(frame, seed=1):
    effect = frame["site"].map({1: 1.0, 2: -1.0, 3: 0.5, 4: 0.0}).to_numpy(dtype=float)
    Z = np.column_stack([frame["a"].to_numpy() + effect, -effect])
    return Z + 0.3 * np.random.default_rng(seed).standard_normal(Z.shape)


def by_hand(frame):
    """The same columns, encoded here."""
    indicators = {f"{name}={level}": frame[name].astype(str) == level for name in LEVELS for level in LEVELS[name]}
    return pd.DataFrame(dict(frame) | indicators)[CODED].astype(float)


@pytest.fixture
def frame():
    return make_frame()


@pytest.fixture
def Y(frame):
    return make_targets(frame)


# Encoded as by hand ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", ["size", "none", "orthonormal"])
def test_a_fit_is_that_of_indicators_in_groups(scale, frame, Y):
    """Alone, categories are scaled by "frobenius" for "size", and as asked for otherwise."""
    groups = {name: [f"{name}={level}" for level in LEVELS[name]] for name in LEVELS}
    model = go.GroupOWLRegressor(categories=["site", "sex"], group_scale=scale).fit(frame, Y)
    X, own = by_hand(frame), "frobenius" if scale == "size" else scale
    expected = go.GroupOWLRegressor(feature_groups=groups, group_scale=own).fit(X, Y)
    np.testing.assert_allclose(model.coef_, expected.coef_, atol=1e-12)  # in another order in memory
    np.testing.assert_allclose(model.predict(frame), expected.predict(X), atol=1e-12)
    assert model.coef_names_.tolist() == expected.coef_names_.tolist() == CODED
    assert model.feature_groups_.tolist() == ["a", "sex", "sex", "b", *["site"] * 4, "c"]
    assert (model.n_features_in_, model.feature_names_in_.tolist()) == (5, list(frame))
    assert model.categories_ == LEVELS
    assert len(model.weights_) == 5
    assert model.verify(frame, Y)
    assert not model.verify(frame.assign(site=frame["site"].to_numpy()[::-1]), Y)


def test_coefficients_of_levels_sum_to_zero(frame, Y):
    """All levels are kept, and the norm chooses among what the intercept leaves open."""
    model = go.GroupOWLRegressor(0.05, categories=["sex", "site"], tol=1e-12).fit(frame, Y)
    assert model.get_support()[4:8].all()
    np.testing.assert_allclose(model.coef_[:, 4:8].sum(axis=1), 0.0, atol=1e-6)


def test_other_arguments_name_columns_of_the_frame(frame, Y):
    """A category means all of its levels; in a group with others, the group has the scale that was asked for."""
    model = go.GroupOWLRegressor(
        categories="auto",
        feature_groups={"who": ["a", "sex"]},
        penalty_factor={"sex": 2.0, "site": 0.0},
        positive=["sex"],
    ).fit(frame.astype({"site": str}), Y)
    assert model.feature_groups_.tolist() == ["who"] * 3 + ["b", *["site"] * 4, "c"]
    assert model.unpenalized_.tolist() == [4, 5, 6, 7]
    assert (model.coef_[:, 1:3] >= 0.0).all()
    given = go.GroupOWLRegressor(
        feature_groups={"who": ["a", "sex=f", "sex=m"]},
        penalty_factor={"sex=f": 2.0, "sex=m": 2.0} | {f"site={level}": 0.0 for level in LEVELS["site"]},
        positive=["sex=f", "sex=m"],
    ).fit(by_hand(frame), Y)
    np.testing.assert_allclose(model.coef_, given.coef_, atol=1e-8)


def test_widened_options_have_a_scale_for_each_group(frame):
    options = penalty_options(5, list(frame), feature_groups={"who": ["a", "sex"]})
    widened = find_categories(frame, ["sex", "site"]).widened(options, "size")
    assert widened.group_names == ("who", "b", "site", "c")
    assert widened.group_scale == ("size", "frobenius", "frobenius", "frobenius")  # groups of one have none
    assert widened.feature_groups.tolist() == [0, 0, 0, 1, 2, 2, 2, 2, 3]


def test_a_column_of_the_frame_by_index(frame, Y):
    model = go.GroupOWLRegressor(categories=[1, -2], unpenalized=[1]).fit(frame, Y)
    assert model.categories_ == LEVELS
    assert model.unpenalized_.tolist() == [1, 2]


@pytest.mark.parametrize("loss", ["squared", "logistic", "multinomial"])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_unpenalized_categories_are_collinear_with_the_intercept(loss, fit_intercept, frame, Y):
    """Levels of two categories add up to ones twice: the optimum is that of one level less, to the certified gap."""
    noisy = Y[:, 0] + 2.0 * np.random.default_rng(5).standard_normal(N)
    y = {"squared": Y, "logistic": noisy > 0, "multinomial": np.digitize(noisy, [-0.7, 0.7])}[loss]
    frame = frame.assign(site=np.where(frame["site"] == 2, 1, frame["site"]))  # a rare level would tell classes apart
    kind = go.GroupOWLRegressor if loss == "squared" else go.GroupOWLClassifier
    shared = {"alpha": 0.05, "tol": 1e-9, "fit_intercept": fit_intercept}
    model = kind(categories=["sex", "site"], unpenalized=["sex", "site"], **shared).fit(frame, y)
    reduced = by_hand(frame).drop(columns=["site=2", "site=4"])
    expected = kind(unpenalized=["sex=f", "sex=m", "site=1", "site=3"], **shared).fit(reduced, y)
    assert model.verify(frame, y)
    assert model.solve_result_.primal == pytest.approx(expected.solve_result_.primal, rel=1e-8)
    predict = model.predict if loss == "squared" else model.predict_proba
    known = expected.predict if loss == "squared" else expected.predict_proba
    np.testing.assert_allclose(predict(frame), known(reduced), atol=2e-4)


def test_cross_validation_knows_all_levels_in_every_fold(frame, Y):
    """A level that only test samples of a fold have is a column of zeros there, and no error."""
    frame = frame.assign(rare=["once", *["often"] * (N - 1)])
    for scoring in (None, "r2"):
        model = go.GroupOWLRegressorCV(categories=["sex", "site", "rare"], alphas=8, cv=3, scoring=scoring)
        model.fit(frame, Y)
        assert model.verify(frame, Y)
        assert model.path_.feature_names.tolist() == [*CODED, "rare=often", "rare=once"]
        assert len(model.selection_frequency_) == len(CODED) + 2


def test_cox_models_have_categories(frame):
    rng = np.random.default_rng(3)
    times = rng.exponential(np.exp(-frame["a"] - (frame["sex"] == "m")))
    y = np.column_stack([rng.random(N) < 0.8, times])
    model = go.GroupOWLCox(categories=["sex"]).fit(frame, y)
    assert model.coef_names_.tolist()[1:3] == ["sex=f", "sex=m"]
    assert model.coef_[2] > 0 > model.coef_[1]
    assert model.verify(frame, y)


def test_paths(frame, Y):
    path = go.group_owl_path(frame, Y, categories=["sex", "site"], alphas=6, unpenalized=["sex"])
    assert path.feature_names.tolist() == CODED
    assert path.feature_groups.tolist() == ["a", "sex", "sex", "b", *["site"] * 4, "c"]
    model = build_model(
        by_hand(frame),
        Y,
        unpenalized=np.array([1, 2]),
        options=find_categories(frame, ["sex", "site"]).widened(penalty_options(5, list(frame)), "size"),
    )
    assert path.alpha_max == pytest.approx(model.alpha_max)
    for point in path:  # a group is in or out as a whole
        inside = np.isin(np.arange(4, 8), point.support)
        assert inside.all() or not inside.any()


@pytest.mark.parametrize("saved", [False, True])
def test_paths_predict_from_the_frame(frame, Y, saved, tmp_path):
    """As from the columns that it becomes; and so do those of estimators, also from disk."""
    path = go.group_owl_path(frame, Y, categories=["sex", "site"], alphas=4)
    model = go.GroupOWLRegressorCV(categories=["sex", "site"], alphas=4, cv=3).fit(frame, Y)
    if saved:
        path, model = go.load(go.save(path, tmp_path / "path")), go.load(go.save(model, tmp_path / "model"))
    coded = pd.DataFrame(by_hand(frame), columns=CODED)
    for found in (path, model.path_):
        assert found.categories == LEVELS
        alpha = found.alphas[-1]
        expected = by_hand(frame) @ found.coef_at(alpha).T + found.intercept_at(alpha)
        np.testing.assert_allclose(found.predict(frame, alpha), expected, rtol=1e-12)
        np.testing.assert_allclose(found.predict(pl.from_pandas(frame), alpha), expected, rtol=1e-12)
        np.testing.assert_allclose(found.predict(coded, alpha), expected, rtol=1e-12)
        np.testing.assert_allclose(found.predict(by_hand(frame), alpha), expected, rtol=1e-12)
        new = frame.assign(sex="x")
        with pytest.raises(ValueError, match=r"column 'sex' has levels that the fit has not seen.*'x'"):
            found.predict(new, alpha)
        without = coded.assign(**{"sex=f": 0.0, "sex=m": 0.0})
        np.testing.assert_array_equal(found.predict(new, alpha, unseen="zero"), found.predict(without, alpha))
        with pytest.raises(ValueError, match="not the names, or not the order, of those of the path: 'a', 'sex'"):
            found.predict(frame.drop(columns="c"), alpha)
        with pytest.raises(ValueError, match="unseen"):
            found.predict(frame, alpha, unseen="ignore")


def test_paths_of_classes_predict_from_the_frame(frame, Y):
    labels = np.where(Y[:, 0] > 0.0, "yes", "no")
    path = go.group_owl_path(frame, labels, loss="multinomial", categories=["sex", "site"], alphas=4)
    both = path.predict_proba(frame, path.alphas[-1])
    np.testing.assert_allclose(both, path.predict_proba(by_hand(frame), path.alphas[-1]), rtol=1e-12)
    np.testing.assert_array_equal(path.predict(frame, path.alphas[-1]), np.array(["no", "yes"])[both.argmax(axis=1)])


def test_names_of_columns_follow_from_those_of_levels():
    """Also where names have equality signs of their own."""
    levels = {"a": ["b=c", "d"], "a=b": ["x", "y"], "z": ["1"]}
    coding = Categories(("n=1", "a", "m", "a=b", "z", "=="), levels)
    assert Categories.behind(coding.coded_names, levels).names == coding.names


@pytest.mark.parametrize(
    "levels", [{"sex": ["m", "f"]}, {"sex": ["f", "m", "x"]}, {"other": ["f", "m"]}, {"sex": "fm"}, ["sex"], {}]
)
def test_damaged_levels_of_paths_are_refused(levels, frame, Y, tmp_path):
    folder = go.save(go.group_owl_path(frame, Y, categories=["sex", "site"], alphas=3), tmp_path / "path")
    file = folder / "model.json"
    tree = json.loads(file.read_text())
    fields = next(part for part in tree["content"].values() if isinstance(part, dict) and "categories" in part)
    assert fields["categories"] == LEVELS
    fields["categories"] = levels
    file.write_text(json.dumps(tree))
    with pytest.raises(ValueError, match="is damaged"):
        go.load(folder)


def test_tables_of_paths_count_groups(frame, Y):
    path = go.group_owl_path(frame, Y, categories=["sex", "site"], alphas=4)
    lines = repr(path).splitlines()
    assert "9 features in 5 groups, 2 targets" in lines[0]
    assert lines[1].split()[:4] == ["alpha", "selected", "groups", "clusters"]
    last = path[-1]
    names = set(path.feature_groups[last.support])
    assert lines[5].split()[2:4] == [str(last.n_selected), str(len(names))]
    assert path.n_units(last) == len(names) < last.n_selected
    assert ">groups</th>" in path._repr_html_()
    plain = go.group_owl_path(frame[["a", "b", "c"]], Y, alphas=3)
    assert "groups" not in repr(plain)
    assert plain.n_units(plain[-1]) == plain[-1].n_selected


def test_many_levels_are_sparse():
    """The matrix is sparse where indicators would be nearly all of it, and the fit the same."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.standard_normal(300), "who": rng.integers(0, 60, 300)})
    y = frame["a"] + frame["who"] % 3
    coding = find_categories(frame, ["who"])
    X = coding.encoded(frame, np.asarray)
    assert sp.issparse(X)
    dense = pd.DataFrame(X.toarray(), columns=coding.coded_names)
    np.testing.assert_array_equal(dense.iloc[:, 1:].sum(axis=1), 1.0)
    np.testing.assert_array_equal(dense["a"], frame["a"])
    model = go.GroupOWLRegressor(0.01, categories=["who"], tol=1e-10).fit(frame, y)
    groups = [coding.coded_names[1:]]
    expected = go.GroupOWLRegressor(0.01, feature_groups=groups, group_scale="frobenius", tol=1e-10).fit(dense, y)
    np.testing.assert_allclose(model.predict(frame), expected.predict(dense), atol=1e-4)


def test_float32_stays_float32(frame, Y):
    frame = frame.astype({"a": np.float32, "b": np.float32, "c": np.float32})
    model = go.GroupOWLRegressor(categories=["sex", "site"], tol=1e-4).fit(frame, Y)
    assert model.coef_.dtype == np.float32
    assert model.verify(frame, Y)


# Levels -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("column", "levels"),
    [
        (pd.Series([10, 9, 10, 1]), ["1", "9", "10"]),
        (pd.Series([10.0, 9.0, 2.5, 1.0]), ["1", "2.5", "9", "10"]),
        (pd.Series([True, False, True, True]), ["False", "True"]),
        (pd.Series(["b", "a", "b", "c"]), ["a", "b", "c"]),
        (pd.Series(["b", 1, "b", 2], dtype=object), ["1", "2", "b"]),
        (pd.Series(pd.Categorical(["b", "a", "b", "c"], categories=["z", "c", "b", "a"])), ["c", "b", "a"]),
        (pl.Series(["b", "a", "b", "c"], dtype=pl.Enum(["z", "c", "b", "a"])), ["c", "b", "a"]),
        (pl.Series(["b", "a", "b", "c"], dtype=pl.Categorical), ["a", "b", "c"]),
    ],
    ids=["integers", "floats", "truth", "text", "mixed", "pandas categorical", "polars Enum", "polars Categorical"],
)
def test_levels_are_those_that_occur(column, levels):
    """In the order that the type declares, or sorted: numbers as numbers."""
    kind = pl.DataFrame if isinstance(column, pl.Series) else pd.DataFrame
    assert find_categories(kind({"x": column}), ["x"]).levels == {"x": levels}


def test_auto_means_text_and_categorical_types(frame):
    frame = frame.assign(grade=pd.Categorical(frame["site"]), flag=frame["a"] > 0)
    assert list(find_categories(frame, "auto").levels) == ["sex", "grade"]
    polars = pl.from_pandas(frame.astype({"grade": str})).with_columns(pl.col("grade").cast(pl.Categorical))
    assert list(find_categories(polars, "auto").levels) == ["sex", "grade"]
    assert find_categories(frame[["a", "b"]], "auto") is None


def test_no_category_found_is_a_plain_fit(frame, Y):
    numbers = frame[["a", "b", "c"]]
    model = go.GroupOWLRegressor(categories="auto").fit(numbers, Y)
    assert not hasattr(model, "categories_")
    np.testing.assert_array_equal(model.coef_, go.GroupOWLRegressor().fit(numbers, Y).coef_)


def test_predictions_go_by_levels_and_not_by_their_order(frame, Y):
    """Whatever the type of a column is: text, another order of categories, a part of them, floats, polars."""
    model = go.GroupOWLRegressor(categories=["sex", "site"]).fit(frame, Y)
    expected = model.predict(frame)
    others = [
        frame.assign(sex=pd.Categorical(frame["sex"], categories=["x", "m", "f"]), site=frame["site"].astype(float)),
        frame.assign(site=frame["site"].astype(str)),
        pl.from_pandas(frame),
    ]
    for other in others:
        np.testing.assert_array_equal(model.predict(other), expected)
    np.testing.assert_array_equal(model.predict(frame[frame["site"] == 3]), expected[frame["site"] == 3])


@pytest.mark.parametrize("level", [7, None, np.nan])
def test_unseen_levels_are_an_error_or_zero(level, frame, Y):
    model = go.GroupOWLRegressor(categories=["sex", "site"]).fit(frame, Y)
    new = frame.astype({"site": object})
    new.loc[[3, 5], "site"] = level
    shown = "'7'" if level == 7 else r"'\(missing\)'"
    message = rf"column 'site' has levels that the fit has not seen, in 2 samples: {shown}\. .* unseen='zero'"
    with pytest.raises(ValueError, match=message):
        model.predict(new)
    model.set_params(unseen="zero")
    predicted, known = model.predict(new), model.predict(frame)
    effect = model.coef_[:, 4:8] @ (frame["site"].to_numpy()[3] == np.arange(1, 5))
    np.testing.assert_allclose(predicted[3], known[3] - effect)
    np.testing.assert_array_equal(np.delete(predicted, [3, 5], axis=0), np.delete(known, [3, 5], axis=0))
    with pytest.raises(ValueError, match="has not seen"):  # data of a fit have no such levels
        model.verify(new, Y)


# Stored models and words --------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [go.GroupOWLRegressor, go.GroupOWLRegressorCV])
def test_saved_models_know_their_levels(kind, frame, Y, tmp_path):
    given = {} if kind is go.GroupOWLRegressor else {"alphas": 5, "cv": 3}
    model = kind(categories=["sex", "site"], unpenalized=["sex"], unseen="zero", **given).fit(frame, Y)
    again = go.load(go.save(model, tmp_path / "model"))
    assert again.categories_ == LEVELS
    assert (again.categories, again.unseen) == (["sex", "site"], "zero")
    np.testing.assert_array_equal(again.predict(frame), model.predict(frame))
    assert again.verify(frame, Y)
    assert clone(again).categories == ["sex", "site"]


@pytest.mark.parametrize(
    "levels",
    [
        {"sex": ["f"]},
        {"sex": ["f", "f"]},
        {"sex": ["f", 1]},
        {"sex": "fm"},
        {"other": ["f", "m"]},
        ["sex"],
        {"sex": []},
    ],
)
def test_damaged_levels_are_refused(levels, frame, Y, tmp_path):
    folder = go.save(go.GroupOWLRegressor(categories=["sex"]).fit(frame, Y), tmp_path / "model")
    tree = json.loads((folder / "model.json").read_text())
    tree["content"]["fitted"]["categories_"] = levels
    (folder / "model.json").write_text(json.dumps(tree))
    with pytest.raises(ValueError, match="is damaged"):
        go.load(folder)


def test_models_with_columns_that_others_explain_can_be_loaded(tmp_path):
    """Such columns have a mark of their own where others have the moment of their proof."""
    X = np.random.default_rng(0).standard_normal((40, 4))
    X[:, 1] = 2.0 * X[:, 0]
    model = go.GroupOWLRegressor(unpenalized=[0, 1]).fit(X, X[:, 2])
    again = go.load(go.save(model, tmp_path / "model"))
    np.testing.assert_array_equal(again.solve_result_.screened_at, model.solve_result_.screened_at)


def test_whole_groups_are_selected(frame, Y):
    """Also with columns that are zero: those that must not be negative, or are constant."""
    frame = frame.assign(constant=1.0)
    model = go.GroupOWLRegressor(
        0.02, categories=["sex", "site"], positive=True, feature_groups={"pair": ["b", "constant"]}
    ).fit(frame, Y[:, 0])
    assert np.any(model.coef_[4:8] == 0.0)
    assert np.any(model.coef_[4:8] > 0.0)
    assert model.get_support()[4:8].all()
    groups, mask = model.feature_groups_, model.get_support()
    assert all(len(set(mask[groups == group])) == 1 for group in groups)
    table = model.coef_frame().set_index("feature")
    assert (table.loc[CODED[4:8], "state"] == "selected").all()
    assert len(set(table.loc[CODED[4:8], "cluster"])) == 1
    assert set(CODED[4:8]) <= set(model.selected_features_)


def test_words_name_groups_and_their_members(frame, Y, capsys):
    model = go.GroupOWLRegressor(categories=["sex", "site"], feature_groups={"pair": ["b", "c"]}).fit(frame, Y)
    certificate = model.certificate()
    assert "9 features in 4 groups" in repr(certificate)
    assert "site: site=1, site=2, site=3, site=4  selected" in repr(certificate)
    assert "pair: b, c" in repr(certificate)
    assert certificate[4].group == "site"
    assert certificate.to_frame()["group"].tolist() == model.feature_groups_.tolist()
    model.summary()
    printed = capsys.readouterr().out
    assert "9 features in 4 groups" in printed
    assert "groups     site, a" in printed or "groups     a, site" in printed
    assert "site=4   site" in printed
    assert go.GroupOWLRegressor().fit(by_hand(frame), Y).certificate().groups is None


def test_pictures_name_groups(frame, Y):
    model = go.GroupOWLRegressorCV(categories=["sex", "site"], feature_groups={"pair": ["b", "c"]}, alphas=5, cv=3).fit(
        frame, Y
    )
    bars = ClusterDisplay.from_estimator(model)
    assert set(bars.feature_names) <= {*CODED, "b (pair)", "c (pair)"}
    assert {"b (pair)", "site=1"} <= set(bars.feature_names)
    places = [k for k, group in enumerate(bars.groups) if group == "site"]
    assert places == list(range(places[0], places[0] + 4))
    assert any("site" in text.get_text() for text in bars.ax_.texts)
    assert "b (pair)" in CoefficientHeatmapDisplay.from_estimator(model).feature_names
    assert {"b (pair)", "site=1"} <= set(CoefficientPathDisplay.from_estimator(model).feature_names)


# What cannot be meant -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "categories", "error", "message"),
    [
        (lambda frame: frame, ["sexx"], ValueError, "categories has the name 'sexx', which is no column of X"),
        (lambda frame: frame, [9], ValueError, "categories has the index 9"),
        (lambda frame: frame, [1.5], TypeError, "categories must hold names or indices"),
        (lambda frame: frame[["a", "b"]].to_numpy(), ["sex"], TypeError, "needs X as a data frame"),
        (lambda frame: sp.csr_array(frame[["a", "b"]].to_numpy()), "auto", TypeError, "needs X as a data frame"),
        (lambda frame: frame.assign(sex=[None, *["m"] * (N - 1)]), ["sex"], ValueError, r"1 missing value \(row 0\)"),
        (lambda frame: frame.assign(**{"sex=m": 1.0}), ["sex"], ValueError, "'sex=m' would be the name of 2 columns"),
        (lambda frame: frame.iloc[:0], ["sex"], ValueError, "has no samples"),
        (lambda frame: frame, ["site"], ValueError, "column 'sex'"),  # which is still text
        (lambda frame: frame.assign(a=np.inf), ["sex"], ValueError, "'a'"),
    ],
)
def test_bad_categories(change, categories, error, message, frame, Y):
    for fit in (
        lambda X: go.GroupOWLRegressor(categories=categories).fit(X, Y[: X.shape[0]]),
        lambda X: go.group_owl_path(X, Y[: X.shape[0]], categories=categories, alphas=3),
    ):
        with pytest.raises((error, TypeError), match=message):
            fit(change(frame))


def test_frames_on_a_cluster_have_no_categories(frame, Y):
    dataframe = pytest.importorskip("dask.dataframe")
    with pytest.raises(TypeError, match="needs X as a data frame of pandas or polars in memory"):
        go.GroupOWLRegressor(categories=["sex"]).fit(dataframe.from_pandas(frame, npartitions=2), Y)


def test_names_of_columns_are_text(frame, Y):
    with pytest.raises(TypeError, match="text for names"):
        go.GroupOWLRegressor(categories=["sex"]).fit(frame.set_axis(["a", "sex", 1, 2, 3], axis=1), Y)


def test_bad_ways_to_treat_unseen_levels(frame, Y):
    with pytest.raises(ValueError, match="unseen must be one of"):
        go.GroupOWLRegressor(categories=["sex"], unseen="ignore").fit(frame, Y)


def test_predictions_need_the_same_columns(frame, Y):
    model = go.GroupOWLRegressor(categories=["sex", "site"]).fit(frame, Y)
    with pytest.raises(TypeError, match="X must be a data frame, as GroupOWLRegressor was fitted with categories"):
        model.predict(by_hand(frame).to_numpy())
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame.rename(columns={"sex": "gender"}))
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame[["sex", "a", "b", "site", "c"]])


def test_a_refused_fit_leaves_the_last_one(frame, Y):
    model = go.GroupOWLRegressor(categories=["sex", "site"]).fit(frame, Y)
    expected = model.predict(frame)
    with pytest.raises(ValueError, match="missing value"):
        model.fit(frame.assign(sex=None), Y)
    np.testing.assert_array_equal(model.predict(frame), expected)


def test_names_of_coefficients_without_names(Y):
    model = go.GroupOWLRegressor().fit(np.random.default_rng(0).standard_normal((N, 3)), Y)
    assert coefficient_names(vars(model)) is None
    assert not hasattr(model, "coef_names_")
