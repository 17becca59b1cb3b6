"""Displays show the numbers of the fit, on the axes they are given, and every text can be read."""

import builtins
from dataclasses import replace
from itertools import combinations

import matplotlib
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError

import groupowl as go
from groupowl.estimators import GroupOWLClassifierCV, GroupOWLRegressor, GroupOWLRegressorCV
from groupowl.path import group_owl_path
from groupowl.plotting import (
    ClusterDisplay,
    CoefficientHeatmapDisplay,
    CoefficientPathDisplay,
    ConvergenceDisplay,
    CrossValidationDisplay,
)
from groupowl.plotting.style import CHOSEN, FAINT, new_axes, shortened_names

matplotlib.use("Agg")
import matplotlib.pyplot as plt

D = 24
NAMES = {
    "plain": [f"x{j}" for j in range(D)],
    "long": [f"concentration of substance number {j} in the blood (mg per litre)" for j in range(D)],
    # Each would be mathematics to Matplotlib, which could not read it; a leading _ would keep it out of legends.
    "signs": [rf"_price_{j} in $\frac_{{x}}$ or ^2 & #%" for j in range(D)],
}


def frame(names="plain", q=3, seed=0):
    data = go.datasets.make_correlated_groups(
        50, D, q, n_informative=9, group_size=3, correlation=0.95, structure="block", random_state=seed
    )
    return pd.DataFrame(data.X, columns=NAMES[names]), data.Y


@pytest.fixture(scope="module")
def paths():
    """A path for each kind of name; the third column is not penalized."""
    return {
        kind: group_owl_path(*frame(kind), alphas=20, eps=0.02, unpenalized=[NAMES[kind][2]], tol=1e-8)
        for kind in NAMES
    }


@pytest.fixture(scope="module")
def regressors():
    """Cross-validated regressors for 1, 3 and 30 tasks and every kind of name."""
    settings = {"alphas": 12, "eps": 0.02, "cv": 3, "unpenalized": [2]}
    fitted = {(kind, 3): GroupOWLRegressorCV(**settings).fit(*frame(kind)) for kind in NAMES}
    X, Y = frame()
    fitted["plain", 1] = GroupOWLRegressorCV(selection="1se", **settings).fit(X, Y[:, 0])
    fitted["long", 30] = GroupOWLRegressorCV(selection="bic", **settings).fit(*frame("long", q=30))
    return fitted


@pytest.fixture(scope="module")
def binary():
    X, Y = frame()
    y = np.where(Y[:, 0] > np.median(Y[:, 0]), "ill_$1_$", "healthy")
    return GroupOWLClassifierCV(alphas=12, eps=0.05, cv=3).fit(X, y)


@pytest.fixture(scope="module")
def solved():
    data = go.datasets.make_correlated_groups(40, 200, 3, random_state=0)
    lam = go.lam_max(data.X, data.Y, "oscar") * go.weights.oscar(200)
    return {name: go.solve(data.X, data.Y, share * lam) for name, share in {"some": 0.4, "nothing": 1.0}.items()}


def with_rows(result, count, q=3):
    """The same result with so many selected rows, of which the first ten share a cluster."""
    B = np.zeros((count, q))
    B[:, 0] = np.linspace(2.0, 1.0, count)
    B[:10, 0] = 2.0
    clusters = np.maximum(np.arange(count) - 8, 1)
    return replace(result, B=B, clusters=clusters)


# Every text can be read ---------------------------------------------------------------------------------


def texts_of(figure):
    """All texts that are drawn, those of ticks in view included."""
    axes = [*figure.axes, *(child for ax in figure.axes for child in ax.child_axes)]
    found = [text for ax in axes if ax.axison for text in (ax.title, ax.xaxis.label, ax.yaxis.label, *ax.texts)]
    for ax in axes if figure.axes else []:
        for axis in (ax.xaxis, ax.yaxis):
            low, high = sorted(axis.get_view_interval())
            ticks = [tick for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high and ax.axison]
            found += [label for tick in ticks for label in (tick.label1, tick.label2) if label.get_visible()]
        if ax.get_legend() is not None:
            found += ax.get_legend().get_texts()
    return [text for text in found if text.get_text().strip() and text.get_visible()]


def check_texts(figure):
    figure.draw_without_rendering()
    texts = texts_of(figure)
    boxes = [text.get_window_extent() for text in texts]
    page = figure.bbox
    for text, box in zip(texts, boxes, strict=True):
        is_inside = page.x0 - 1 <= box.x0 and box.x1 <= page.x1 + 1 and page.y0 - 1 <= box.y0 and box.y1 <= page.y1 + 1
        assert is_inside, f"cut off: {text.get_text()}"
    for (one, box), (other, other_box) in combinations(zip(texts, boxes, strict=True), 2):
        width = min(box.x1, other_box.x1) - max(box.x0, other_box.x0)
        height = min(box.y1, other_box.y1) - max(box.y0, other_box.y0)
        assert min(width, height) <= 1.0, f"{one.get_text()!r} touches {other.get_text()!r}"
    return texts


def small_axes():
    return plt.subplots()[1]


def roomy_axes():
    return plt.subplots(1, 2, figsize=(12, 5), layout="constrained")[1][0]


def new_figure():
    return None


PLACES = pytest.mark.parametrize("place", [new_figure, small_axes])


@pytest.mark.parametrize("place", [new_figure, small_axes, roomy_axes])
@pytest.mark.parametrize("kind", list(NAMES))
def test_path_can_be_read(paths, kind, place):
    path = paths[kind]
    display = CoefficientPathDisplay.from_result(path, alpha=path.alphas[9], ax=place())
    texts = check_texts(display.figure_)
    assert len(display.labels_) >= 3
    assert set(display.labels_) <= set(texts)
    for label in display.labels_:  # inside the axes
        assert label.get_window_extent().x1 <= display.ax_.bbox.x1


@PLACES
@pytest.mark.parametrize("fit", [("plain", 1), ("signs", 3), ("long", 30)], ids=str)
@pytest.mark.parametrize("display", [CrossValidationDisplay, ClusterDisplay, CoefficientHeatmapDisplay])
def test_fits_can_be_read(display, regressors, fit, place):
    assert len(check_texts(display.from_estimator(regressors[fit], ax=place()).figure_)) >= 4


@PLACES
@pytest.mark.parametrize("display", [ClusterDisplay, CoefficientHeatmapDisplay])
@pytest.mark.parametrize("count", [1, 12, 500])
def test_many_features_can_be_read(display, solved, count, place):
    names = [f"a feature with quite a long name, number {j}" for j in range(count)]
    shown = display.from_result(with_rows(solved["some"], count), feature_names=names, ax=place())
    texts = check_texts(shown.figure_)
    assert sum("…" in text.get_text() for text in texts) >= min(count, 12) > 0


@pytest.mark.parametrize("place", [small_axes, roomy_axes])
@pytest.mark.parametrize("result", ["some", "nothing"])
@pytest.mark.parametrize("display", [ClusterDisplay, CoefficientHeatmapDisplay])
def test_results_can_be_read(display, solved, result, place):
    texts = [text.get_text() for text in check_texts(display.from_result(solved[result], ax=place()).figure_)]
    assert ("No feature is selected." in texts) == (result == "nothing")


@pytest.mark.parametrize("place", [new_figure, roomy_axes])
@pytest.mark.parametrize("result", ["some", "nothing"])
def test_convergence_can_be_read(solved, result, place):
    solve = solved[result]
    seconds = 0.98e-3 * np.linspace(0.0, 1.0, len(solve.history))  # numbers with many decimals
    fast = replace(solve, seconds=1e-3, history=replace(solve.history, seconds=seconds))
    display = ConvergenceDisplay.from_result(fast, ax=place())
    texts = [text.get_text() for text in check_texts(display.figure_)]
    assert ("The gap is 0 from the start." in texts) == (result == "nothing")


def test_a_path_that_selects_nothing_says_so(paths):
    display = CoefficientPathDisplay.from_result(paths["plain"][:1], alpha=1.0)
    assert display.feature_names == ["x2"]  # which is not penalized
    X, Y = frame()
    display = CoefficientPathDisplay.from_result(group_owl_path(X, Y, alphas=[1e6]))
    assert display.features.size == 0
    assert "No feature is selected at any alpha." in [text.get_text() for text in check_texts(display.figure_)]


def test_classes_can_be_read(binary):
    for display in (CoefficientPathDisplay, CrossValidationDisplay, ClusterDisplay, CoefficientHeatmapDisplay):
        check_texts(display.from_estimator(binary).figure_)
    heat = CoefficientHeatmapDisplay.from_estimator(binary)
    assert [label.get_text() for label in heat.ax_.get_xticklabels()] == ["ill_$1_$"]


def test_names_are_no_mathematics(paths, regressors):
    """They are drawn as they are, to a file as well."""
    path = CoefficientPathDisplay.from_result(paths["signs"])
    path.figure_.canvas.draw()
    assert all(r"\frac_{" in label.get_text() or "…" in label.get_text() for label in path.labels_)
    cluster = ClusterDisplay.from_estimator(regressors["signs", 3])
    cluster.figure_.canvas.draw()
    assert not any(label.get_parse_math() for label in [*path.labels_, *cluster.ax_.get_yticklabels()])


@given(
    names=st.lists(st.text(st.characters(codec="ascii", categories=["L", "Zs"]), min_size=1), min_size=1, unique=True),
    longest=st.integers(3, 30),
)
def test_shortened_names(names, longest):
    short = shortened_names(names, longest)
    clean = [" ".join(name.split()) for name in names]
    assert all(len(name) <= longest for name in short)
    assert all(name == full for name, full in zip(short, clean, strict=True) if len(full) <= longest)


@pytest.mark.parametrize(
    "pattern", ["{}: shared end that is long", "shared start that is long {}", "start with {} and end"]
)
def test_shortened_names_are_told_apart(pattern):
    names = [pattern.format(j) for j in range(100)]
    assert len(set(shortened_names(names, 14))) == 100


# What is drawn is what was computed ---------------------------------------------------------------------


def test_path_shows_the_norms(paths):
    path = paths["plain"]
    display = CoefficientPathDisplay.from_result(path, ax=small_axes())
    norms = np.linalg.norm(path.coefs, axis=0).T
    np.testing.assert_allclose(display.norms, norms[:, display.features], rtol=1e-12)
    assert not np.delete(norms, display.features, axis=1).any()
    for line, name, values in zip(display.lines_, display.feature_names, display.norms.T, strict=True):
        assert line.get_label() == name
        np.testing.assert_array_equal(line.get_xdata(), path.alphas)
        np.testing.assert_array_equal(line.get_ydata(), values)
    left, right = display.ax_.get_xlim()
    assert left == path.alphas[0] > path.alphas[-1] > right  # large alphas on the left, room for names on the right


def test_path_of_two_classes_shows_the_size_of_their_coefficient(binary):
    display = CoefficientPathDisplay.from_estimator(binary, ax=small_axes())
    expected = np.abs(binary.path_.coefs[0]).T
    np.testing.assert_allclose(display.norms, expected[:, display.features], rtol=1e-12)


def test_the_path_of_one_target_has_signs():
    X = np.random.default_rng(0).standard_normal((50, 6))
    y = X @ np.array([2.0, -1.0, 0.5, 0.0, 0.0, 0.0])
    path = go.group_owl_path(X, y, alphas=8)
    display = CoefficientPathDisplay.from_result(path, ax=small_axes())
    np.testing.assert_array_equal(display.values, path.coefs[0][display.features].T)
    np.testing.assert_array_equal(display.lines_[1].get_ydata(), path.coefs[0, display.features[1]])
    low, high = display.ax_.get_ylim()
    assert low < path.coefs.min() < 0.0 < path.coefs.max() < high
    assert display.ax_.get_ylabel() == "coefficient"
    scaled = go.group_owl_path(X * 3.0, y, alphas=8, standardize=True)
    display = CoefficientPathDisplay.from_result(scaled, ax=small_axes())
    np.testing.assert_array_equal(display.values, scaled.scaled_coefs[0][display.features].T)
    assert display.ax_.get_ylabel() == "coefficient, scaled as the penalty sees it"


def test_lines_of_equal_size_on_both_sides_of_zero_have_names_of_their_own():
    ends = np.array([[0.0, 0.0, 0.0], [2.0, -2.0, 2.0]])
    display = CoefficientPathDisplay(
        np.array([1.0, 0.1]), np.abs(ends), np.arange(3), list("abc"), np.zeros(3, dtype=bool), coefficients=ends
    ).plot()
    assert [label.get_text() for label in display.labels_] == ["a (+1 tied)", "b"]


@pytest.mark.parametrize("is_signed", [True, False])
def test_unpenalized_lines_do_not_set_the_axis(is_signed):
    ends = np.array([[-50.0, 0.0, 0.0], [-60.0, 2.0, 1.0]])
    signed = {"coefficients": ends} if is_signed else {}
    free = np.array([True, False, False])
    display = CoefficientPathDisplay(
        np.array([1.0, 0.1]), np.abs(ends), np.arange(3), ["age", "b", "c"], free, **signed
    ).plot()
    low, high = display.ax_.get_ylim()
    assert low == 0.0
    assert 2.0 < high < 4.0
    assert [label.get_text() for label in display.labels_] == ["b", "c"]
    legend = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert legend == ["not penalized (age beyond the axis)"]


def test_no_two_names_share_a_color():
    """More names than colors: still one each, for the line and its name, and none that of the chosen alpha."""
    n_lines = 25
    norms = np.stack([np.zeros(n_lines), np.linspace(1.0, 50.0, n_lines)])
    names = [f"f{k}" for k in range(n_lines)]
    display = CoefficientPathDisplay(
        np.array([1.0, 0.1]), norms, np.arange(n_lines), names, np.zeros(n_lines, dtype=bool), 0.1
    )
    display.plot(ax=new_axes(figsize=(6.0, 9.0)))
    assert len(display.labels_) > 20
    colors = {label.get_text(): label.get_color() for label in display.labels_}
    assert len(set(colors.values())) == len(colors)
    assert CHOSEN["color"] not in colors.values()
    for line, name in zip(display.lines_, names, strict=True):
        assert line.get_color() == colors.get(name, FAINT)


def test_names_go_to_the_largest_norms_and_the_rest_is_grey(paths):
    display = CoefficientPathDisplay.from_result(paths["plain"], max_labels=3, ax=small_axes())
    order = np.argsort(-display.norms[-1], kind="stable")
    named = [label.get_text().partition(" (")[0] for label in display.labels_]
    assert len(named) == 3
    inside = [k for k in order if not display.unpenalized[k] or display.norms[-1, k] <= display.ax_.get_ylim()[1]]
    assert named[0] == display.feature_names[inside[0]]
    colored = [
        name for name, line in zip(display.feature_names, display.lines_, strict=True) if line.get_color() != FAINT
    ]
    assert set(named) <= set(colored)
    assert len(CoefficientPathDisplay.from_result(paths["plain"], max_labels=0, ax=small_axes()).labels_) == 0


def test_lines_that_end_together_share_a_name():
    norms = np.array([[0.0, 0.0, 0.0, 0.0], [2.0, 1.0, 2.0, 2.0]])
    display = CoefficientPathDisplay(
        np.array([1.0, 0.1]), norms, np.arange(4), list("abcd"), np.zeros(4, dtype=bool)
    ).plot()
    assert [label.get_text() for label in display.labels_] == ["a (+2 tied)", "b"]
    assert [display.lines_[k].get_color() == display.lines_[0].get_color() for k in range(4)] == [
        True,
        False,
        True,
        True,
    ]


def path_of(norms, alpha, **settings):
    """A display of three alphas, of which the middle one, 0.1, may be chosen."""
    names = [f"x{j}" for j in range(len(norms[0]))]
    free = np.zeros(len(names), dtype=bool)
    return CoefficientPathDisplay(
        np.array([1.0, 0.1, 0.01]), np.array(norms), np.arange(len(names)), names, free, alpha, **settings
    )


def test_names_and_ties_are_those_at_the_chosen_alpha():
    """Also of lines that end near others, at zero or behind them; what is equal at the end only is not tied."""
    norms = [[0.0] * 5, [0.0, 5.0, 5.0, 1.0, 2.0], [9.0, 6.0, 3.0, 3.0, 0.0]]
    display = path_of(norms, 0.1).plot()
    assert [label.get_text() for label in display.labels_] == ["x1", "x2", "x4", "x3"]
    assert display.lines_[0].get_color() == FAINT
    norms[-1][2] = 6.0
    assert path_of(norms, 0.1).plot().labels_[0].get_text() == "x1 (+1 tied)"
    few = path_of(norms, 0.1).plot(max_labels=1)
    assert [line.get_color() != FAINT for line in few.lines_] == [False, True, True, False, False]
    assert path_of(norms, None).plot().labels_[0].get_text() == "x0"
    norms[1] = [0.0] * 5  # nothing is selected at the chosen alpha
    assert path_of(norms, 0.1).plot().labels_[0].get_text() == "x0"


def test_names_of_lines_that_end_together_move_apart():
    ends = [1.0, 1.01, 1.02, 1.03, 0.0]
    display = path_of([[0.0] * 5, [4.0, 5.0, 6.0, 7.0, 3.0], ends], 0.1).plot()
    check_texts(display.figure_)
    heights = {label.get_text(): label.get_window_extent().y0 for label in display.labels_}
    assert sorted(heights, key=heights.get) == ["x4", "x0", "x1", "x2", "x3"]
    assert [label.get_text() for label in display.labels_] == ["x3", "x2", "x1", "x0", "x4"]


def test_features_without_penalty_are_not_tied():
    display = replace(path_of([[0.0] * 3, [2.0] * 3, [2.0] * 3], 0.1), unpenalized=np.array([False, True, False]))
    assert [group.tolist() for group in display.strongest_first()] == [[0, 2], [1]]


def test_unpenalized_features_stand_out(paths, regressors):
    path = CoefficientPathDisplay.from_result(paths["plain"], ax=small_axes())
    dashed = [line.get_label() for line in path.lines_ if line.is_dashed()]
    assert dashed == ["x2"]
    is_beyond = path.norms[:, path.unpenalized].max() > path.norms[:, ~path.unpenalized].max()
    name = "not penalized (x2 beyond the axis)" if is_beyond else "not penalized"
    assert name in [text.get_text() for text in path.ax_.get_legend().get_texts()]
    cluster = ClusterDisplay.from_estimator(regressors["plain", 3], ax=small_axes())
    assert cluster.feature_names[0] == "x2"
    assert [bool(bar.get_hatch()) for bar in cluster.bars_] == [True] + [False] * (len(cluster.bars_) - 1)


@pytest.mark.parametrize("display", [CoefficientPathDisplay, CrossValidationDisplay])
@pytest.mark.parametrize("fit", [("plain", 1), ("plain", 3), ("long", 30)], ids=str)
def test_the_chosen_alpha_is_marked(display, regressors, fit):
    shown = display.from_estimator(regressors[fit])
    alpha = regressors[fit].alpha_
    assert shown.alpha == alpha
    vertical = [
        line for line in shown.ax_.get_lines() if len(set(line.get_xdata())) == 1 and len(line.get_xdata()) == 2
    ]
    assert [line.get_xdata()[0] for line in vertical] == [alpha]
    assert any(f"{alpha:.3g}" in text.get_text() for text in shown.ax_.get_legend().get_texts())


@pytest.mark.parametrize("fit", [("plain", 1), ("plain", 3)], ids=str)
def test_cross_validation_shows_the_scores(regressors, fit):
    model = regressors[fit]
    display = CrossValidationDisplay.from_estimator(model, ax=small_axes())
    np.testing.assert_array_equal(display.line_.get_xdata(), model.alphas_)
    np.testing.assert_array_equal(display.line_.get_ydata(), -model.mean_score_path_)  # errors, and no scores
    assert display.ax_.get_ylabel() == "mean squared error (lower is better)"
    folds = [line.get_ydata() for line in display.ax_.get_lines() if line.get_color() == FAINT]
    np.testing.assert_array_equal(np.transpose(folds), -model.score_path_)
    band = display.ax_.collections[0].get_paths()[0].vertices
    edges = np.concatenate([-model.mean_score_path_ + sign * model.std_error_path_ for sign in (-1, 1)])
    assert set(np.round(edges, 9)) <= set(np.round(band[:, 1], 9))
    assert (
        CrossValidationDisplay.from_estimator(model, folds=False, ax=small_axes()).ax_.get_lines()[0].get_color()
        != FAINT
    )
    low, high = display.one_se_band
    assert low == -model.mean_score_path_.max()
    if model.selection == "1se":  # the largest alpha in the band
        assert model.alpha_ == model.alphas_[-model.mean_score_path_ <= high].max()


def test_cross_validation_shows_a_criterion(regressors):
    model = regressors["long", 30]
    display = CrossValidationDisplay.from_estimator(model, ax=small_axes())
    np.testing.assert_array_equal(display.line_.get_ydata(), model.criterion_path_)
    assert display.ax_.get_ylabel() == "BIC (lower is better)"
    assert display.scores is None
    assert display.one_se_band is None


@pytest.mark.parametrize(
    ("fit", "title"), [(("plain", 3), "Cross-validation"), (("long", 30), "Information criterion")]
)
def test_cross_validation_has_a_title_where_there_is_room_above_the_numbers(regressors, fit, title):
    display = CrossValidationDisplay.from_estimator(regressors[fit])
    check_texts(display.figure_)
    assert display.ax_.get_title() == title
    assert display.plot(ax=small_axes()).ax_.get_title() == ""


def test_numbers_of_features_are_along_the_top(regressors):
    model = regressors["plain", 3]
    display = CrossValidationDisplay.from_estimator(model, ax=small_axes())
    (top,) = display.ax_.child_axes
    counts = [int(label.get_text()) for label in top.get_xticklabels()]
    nearest = [int(np.argmin(np.abs(np.log(model.alphas_ / tick)))) for tick in top.get_xticks()]
    assert len(counts) >= 3
    assert counts == [int(model.path_.n_selected[i]) for i in nearest]


@pytest.mark.parametrize("fit", [("plain", 1), ("plain", 3), ("long", 30)], ids=str)
def test_clusters_show_the_norms(regressors, fit):
    model = regressors[fit]
    display = ClusterDisplay.from_estimator(model, ax=small_axes())
    assert sorted(display.features) == sorted(model.get_support(indices=True))
    norms = np.linalg.norm(np.atleast_2d(model.coef_), axis=0)
    np.testing.assert_allclose(display.norms, norms[display.features], rtol=1e-14)
    np.testing.assert_array_equal(display.clusters, model.clusters_[display.features])
    assert np.all(np.diff(display.clusters) >= 0)
    np.testing.assert_array_equal([bar.get_width() for bar in display.bars_], display.norms[: len(display.bars_)])
    assert len(display.ax_.get_yticklabels()) == len(display.features)


def test_what_is_not_shown_is_counted(solved):
    result = with_rows(solved["some"], 500)
    cluster = ClusterDisplay.from_result(result, max_features=12, ax=small_axes())
    labels = [label.get_text() for label in cluster.ax_.get_yticklabels()]
    assert (len(cluster.bars_), labels[-1]) == (12, "488 more")
    assert "in 488 clusters" in [text.get_text() for text in cluster.ax_.texts]
    assert "cluster 1 (10 features)" in [
        text.get_text() for text in ClusterDisplay.from_result(result, max_features=5, ax=small_axes()).ax_.texts
    ]
    heat = CoefficientHeatmapDisplay.from_result(result, max_features=12, ax=small_axes())
    assert heat.ax_.get_title() == "Coefficients: 12 of 500 features"
    assert heat.image_.get_array().shape == (12, 3)
    assert cluster.features.size == heat.features.size == 500


@pytest.mark.parametrize("fit", [("plain", 1), ("plain", 3), ("long", 30)], ids=str)
def test_heat_map_shows_the_coefficients(regressors, fit):
    model = regressors[fit]
    display = CoefficientHeatmapDisplay.from_estimator(model, ax=small_axes())
    expected = np.atleast_2d(model.coef_).T[display.features]
    np.testing.assert_array_equal(display.coefficients, expected)
    np.testing.assert_array_equal(display.image_.get_array(), expected[: len(display.image_.get_array())])
    low, high = display.image_.get_clim()
    assert -low == high == np.abs(expected).max()  # zero is in the middle of the colors


def test_points_of_a_path_are_results_too(paths):
    path = paths["plain"]
    point = path[12]
    cluster = ClusterDisplay.from_result(point, feature_names=path.feature_names, ax=small_axes())
    assert sorted(cluster.features) == sorted(point.support)
    heat = CoefficientHeatmapDisplay.from_result(point, task_names=["a", "b", "c"], ax=small_axes())
    np.testing.assert_array_equal(heat.coefficients, point.coef(D)[heat.features])
    assert heat.task_names == ["a", "b", "c"]
    assert heat.feature_names == [f"x{j}" for j in heat.features]


def test_convergence_shows_the_history(regressors, solved):
    result = solved["some"]
    display = ConvergenceDisplay.from_result({"_first $": result, "second": result}, relative_to=2.0)
    assert display.ax_.shape == (2, 2)
    for j, x in enumerate(("seconds", "passes")):
        gap, rows = (display.ax_[i, j].get_lines()[0] for i in range(2))
        np.testing.assert_array_equal(gap.get_ydata()[:-1], result.history.gap / 2.0)
        np.testing.assert_array_equal(rows.get_ydata()[:-1], result.history.n_active)
        np.testing.assert_array_equal(gap.get_xdata()[:-1], getattr(result.history, x))
    assert [text.get_text() for text in display.ax_[0, 0].get_legend().get_texts()] == ["_first $", "second"]
    assert [ax.get_legend() for ax in display.ax_.ravel()[1:]] == [None] * 3
    model = regressors["plain", 3]
    assert ConvergenceDisplay.from_estimator(model).results == {"GroupOWLRegressorCV": model.solve_result_}


def test_rows_kept_never_grow(regressors):
    """Unpenalized rows are active, and no row that screening could remove."""
    model = regressors["plain", 3]
    display = ConvergenceDisplay.from_estimator(model, x="passes", y="rows")
    rows = display.ax_.get_lines()[0].get_ydata()
    assert rows[0] == D - 1
    assert rows[-1] == len(model.solve_result_.active) - 1
    assert np.all(np.diff(rows) <= 0)


# Where it is drawn --------------------------------------------------------------------------------------


def makers(paths, regressors, solved):
    model = regressors["plain", 3]
    return {
        "path": lambda ax: CoefficientPathDisplay.from_result(paths["plain"], ax=ax),
        "cross-validation": lambda ax: CrossValidationDisplay.from_estimator(model, ax=ax),
        "clusters": lambda ax: ClusterDisplay.from_estimator(model, ax=ax),
        "heat map": lambda ax: CoefficientHeatmapDisplay.from_estimator(model, ax=ax),
        "convergence": lambda ax: ConvergenceDisplay.from_result(solved["some"], ax=ax, x="passes", y="gap"),
    }


@pytest.mark.parametrize("name", ["path", "cross-validation", "clusters", "heat map", "convergence"])
def test_draws_where_it_is_told(name, paths, regressors, solved):
    make = makers(paths, regressors, solved)[name]
    figure, axes = plt.subplots(1, 2, figsize=(12, 5))
    display = make(axes[1])
    assert display.ax_ is axes[1]
    assert display.figure_ is figure
    assert plt.get_fignums() == [figure.number]
    assert not axes[0].has_data()
    assert display.plot is not None
    with pytest.raises(TypeError, match=r"ax must be a Matplotlib Axes, got Figure"):
        make(figure)


@pytest.mark.parametrize("name", ["path", "cross-validation", "clusters", "heat map", "convergence"])
def test_can_be_drawn_again(name, paths, regressors, solved):
    display = makers(paths, regressors, solved)[name](None)
    first = display.figure_
    assert display.plot() is display
    assert display.figure_ is not first


def test_draws_in_a_subfigure(paths):
    figure = plt.figure(figsize=(12, 5), layout="constrained")
    left, _ = figure.subfigures(1, 2)
    display = CoefficientPathDisplay.from_result(paths["long"], ax=left.subplots())
    assert display.figure_ is left
    check_texts(figure)


def test_panels_of_convergence(solved):
    result = solved["some"]
    _, axes = plt.subplots(1, 2)
    display = ConvergenceDisplay.from_result(result, y="rows", ax=axes)
    assert list(display.ax_.ravel()) == list(axes)
    _, whole = plt.subplots()
    display = ConvergenceDisplay.from_result(result, ax=whole)
    assert display.ax_.shape == (2, 2)
    assert not whole.axison
    with pytest.raises(ValueError, match="ax must have 4 axes"):
        ConvergenceDisplay.from_result(result, ax=axes)
    with pytest.raises(ValueError, match="ax has no place in a grid"):
        ConvergenceDisplay.from_result(result, ax=plt.figure().add_axes((0, 0, 1, 1)))
    with pytest.raises(ValueError, match=r"y must be one of 'gap', 'rows'; got 'loss'"):
        ConvergenceDisplay.from_result(result, y="loss")


@pytest.mark.parametrize("name", ["path", "cross-validation", "clusters", "heat map", "convergence"])
def test_without_matplotlib_says_what_to_install(name, paths, regressors, solved, monkeypatch):
    make = makers(paths, regressors, solved)[name]
    real_import = builtins.__import__

    def without_matplotlib(module, *args, **kwargs):
        if module.partition(".")[0] == "matplotlib":
            raise ImportError(f"No module named {module!r}", name=module)
        return real_import(module, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without_matplotlib)
    with pytest.raises(ImportError, match=r'pip install "groupowl\[plot\]"'):
        make(None)


def test_refuses_what_it_cannot_draw(regressors, solved, paths):
    plain = GroupOWLRegressor().fit(*frame())
    with pytest.raises(TypeError, match=r"GroupOWLRegressor has no path_\. Use an estimator with cross-validation"):
        CoefficientPathDisplay.from_estimator(plain)
    with pytest.raises(TypeError, match=r"GroupOWLRegressor has no alphas_\. Use GroupOWLRegressorCV"):
        CrossValidationDisplay.from_estimator(plain)
    with pytest.raises(TypeError, match="result must be a SolveResult or a point of a path"):
        ClusterDisplay.from_result(plain)
    with pytest.raises(TypeError, match="result must be a SolveResult or a mapping of them, got GroupOWLRegressor"):
        ConvergenceDisplay.from_result(plain)
    with pytest.raises(ValueError, match="feature_names must have one name for each of the 200, got 2 names"):
        ClusterDisplay.from_result(solved["some"], feature_names=["a", "b"])
    with pytest.raises(ValueError, match="task_names must have one name for each of the 3, got 1"):
        CoefficientHeatmapDisplay.from_result(solved["some"], task_names=["a"])
    with pytest.raises(TypeError, match="task_names must be a list of names, got 'abc'"):
        CoefficientHeatmapDisplay.from_result(solved["some"], task_names="abc")
    with pytest.raises(ValueError, match="max_features must be at least 1, got 0"):
        ClusterDisplay.from_result(solved["some"], max_features=0)
    with pytest.raises(ValueError, match="alpha must be a finite number above 0, got -1"):
        CoefficientPathDisplay.from_result(paths["plain"], alpha=-1)


@pytest.mark.parametrize(
    "display",
    [CoefficientPathDisplay, CrossValidationDisplay, ClusterDisplay, CoefficientHeatmapDisplay, ConvergenceDisplay],
)
def test_an_estimator_must_be_fitted(display):
    with pytest.raises(NotFittedError):
        display.from_estimator(GroupOWLRegressorCV())


def test_chains_of_ties_are_one_group():
    """Each norm is tied with the next, the first and the last are not; the middle one comes last in the array."""
    norms = np.array([1.0, 1.0 - 1.8e-9, 1.0 - 0.9e-9, 0.0, 0.5])
    names, penalized = [f"x{j}" for j in range(5)], np.zeros(5, dtype=bool)
    display = CoefficientPathDisplay(np.ones(1), norms[None], np.arange(5), names, penalized)
    assert [group.tolist() for group in display.strongest_first()] == [[0, 1, 2], [4]]


def test_the_former_name_of_the_colors():
    from groupowl import plotting

    with pytest.warns(DeprecationWarning, match="COLOURS is now COLORS"):
        assert plotting.COLOURS is plotting.COLORS
    assert not hasattr(plotting, "COLOUR")
