"""Coefficients on the scale that the penalty sees: what they are, and where tables, files and pictures have them."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import groupowl as go
from estimator_support import labelled_data, regression_data
from groupowl.estimators.fit_summary import clusters_text, scale_text, summary_text
from groupowl.path import PathResult
from groupowl.plotting import ClusterDisplay, CoefficientHeatmapDisplay, CoefficientPathDisplay

GROUPS = {"pair": [0, 7], "triple": [3, 4, 20]}


def scaled_columns(X):
    return X / X.std(axis=0)


def survival_data():
    X, _ = regression_data(n=80, d=8, q=1)
    rng = np.random.default_rng(3)
    return X, np.column_stack([rng.random(80) < 0.7, rng.exponential(np.exp(0.5 * X[:, 0]))])


FITS = {
    "targets": (go.GroupOWLRegressor, regression_data),
    "one target": (go.GroupOWLRegressor, lambda: (regression_data()[0], regression_data()[1][:, 0])),
    "classes": (go.GroupOWLClassifier, labelled_data),
    "two classes": (go.GroupOWLClassifier, lambda: labelled_data(n_classes=2)),
    "times": (go.GroupOWLCox, survival_data),
}


@pytest.mark.parametrize("name", FITS)
def test_scaled_coefficients_are_those_of_standardized_columns(name):
    """A fit to columns that were divided by their deviations beforehand has them as they are."""
    kind, data = FITS[name]
    X, y = data()
    model, plain = kind(standardize=True, tol=1e-10).fit(X, y), kind(tol=1e-10).fit(scaled_columns(X), y)
    assert model.scaled_coef_.shape == model.coef_.shape
    np.testing.assert_allclose(model.scaled_coef_, plain.coef_, atol=1e-4 * np.abs(plain.coef_).max())
    np.testing.assert_allclose(model.scaled_coef_, model.coef_ * X.std(axis=0), rtol=1e-10)
    assert plain.scaled_coef_ is plain.coef_


SETTINGS = {
    "standardize": {"standardize": True},
    "groups": {"feature_groups": GROUPS},
    "groups as they are": {"feature_groups": GROUPS, "group_scale": "none", "standardize": True},
    "frobenius": {"feature_groups": GROUPS, "group_scale": "frobenius", "standardize": True},
    "factors": {"penalty_factor": np.linspace(0.5, 2.0, 30)},
    "adaptive": {"penalty_factor": "adaptive", "standardize": True},
    "all of it": {"feature_groups": GROUPS, "penalty_factor": {0: 2.0, 7: 2.0}, "standardize": True},
    "unpenalized": {"unpenalized": [2, 5], "standardize": True},
}


def unit_norms(model):
    """Norm of each feature, or of its group, on the scale of the penalty."""
    norms = np.linalg.norm(np.atleast_2d(model.scaled_coef_), axis=0)
    groups = getattr(model, "feature_groups_", np.arange(len(norms)).astype(str))
    return np.array([np.linalg.norm(norms[groups == group]) for group in groups])


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("kind", [go.GroupOWLRegressor, go.GroupOWLClassifier, go.GroupOWLRegressorCV])
def test_clusters_have_equal_norms_and_rank_by_them(kind, settings):
    X, y = labelled_data() if kind is go.GroupOWLClassifier else regression_data()
    X = X * 10.0 ** np.random.default_rng(0).uniform(-2, 2, X.shape[1]) if "standardize" in SETTINGS[settings] else X
    grid = {"alphas": 6, "cv": 2, "eps": 0.1} if kind is go.GroupOWLRegressorCV else {}
    model = kind(weights="linear", tol=1e-9, **grid, **SETTINGS[settings]).fit(X, y)
    norms, clusters = unit_norms(model), model.clusters_
    assert clusters.max() > 1
    largest = [norms[clusters == cluster].max() for cluster in range(1, clusters.max() + 1)]
    smallest = [norms[clusters == cluster].min() for cluster in range(1, clusters.max() + 1)]
    np.testing.assert_allclose(smallest, largest, rtol=1e-7)
    assert (np.diff(largest) < 0.0).all()
    if kind is go.GroupOWLRegressorCV:
        np.testing.assert_allclose(model.path_.scaled_coefs, model.path_.coefs * model.solve_result_.scale[:, None])
    assert model.verify(X, y)


def test_the_penalty_is_that_of_scaled_coefficients():
    """The objective is the loss and the Group OWL norm of the groups, as the scaled coefficients have them."""
    X, Y = regression_data()
    model = go.GroupOWLRegressor(0.1, tol=1e-10, **SETTINGS["all of it"]).fit(X, Y)
    loss = 0.5 * np.mean(np.sum((Y - model.predict(X)) ** 2, axis=1))
    norms = pd.Series(unit_norms(model), index=model.feature_groups_).groupby(level=0).first()
    penalty = 0.1 * np.sort(norms)[::-1] @ model.weights_
    assert loss + penalty == pytest.approx(model.solve_result_.primal, rel=1e-9)


def test_orthonormal_groups_are_per_standard_deviation_times_their_factor():
    X, Y = regression_data()
    factors = {0: 2.0, 7: 2.0}
    model = go.GroupOWLRegressor(
        0.05, feature_groups=GROUPS, group_scale="orthonormal", penalty_factor=factors, standardize=True
    ).fit(X, Y)
    expected = X.std(axis=0)
    expected[[0, 7]] *= 2.0
    np.testing.assert_allclose(model.solve_result_.scale, expected, rtol=1e-9)
    unscaled = go.GroupOWLRegressor(0.05, feature_groups=GROUPS, group_scale="orthonormal").fit(X, Y)
    inside = [0, 7, 3, 4, 20]
    np.testing.assert_allclose(unscaled.solve_result_.scale[inside], X.std(axis=0)[inside], rtol=1e-9)
    np.testing.assert_array_equal(np.delete(unscaled.solve_result_.scale, inside), 1.0)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_unpenalized_features_are_shown_per_standard_deviation(fit_intercept):
    X, Y = regression_data()
    model = go.GroupOWLRegressor(unpenalized=[2, 5], standardize=True, fit_intercept=fit_intercept).fit(X, Y)
    np.testing.assert_allclose(model.solve_result_.scale, X.std(axis=0), rtol=1e-9)
    plain = go.GroupOWLRegressor(unpenalized=[2, 5], fit_intercept=fit_intercept).fit(X, Y)
    assert plain.solve_result_.scale is None


def test_scales_of_other_data():
    """Statistics, missing targets, weights, a constant column, columns of deviation 1, single precision."""
    X, Y = regression_data()
    X[:, 4] = 3.0
    expected = X.std(axis=0)
    expected[4] = 1.0
    statistics = go.SufficientStatistics.from_arrays(X, Y)
    found = go.GroupOWLRegressor(standardize=True).fit(statistics)
    np.testing.assert_allclose(found.solve_result_.scale, expected, rtol=1e-9)
    single = go.GroupOWLRegressor(standardize=True).fit(X.astype(np.float32), Y)
    assert single.scaled_coef_.dtype == np.float32
    np.testing.assert_allclose(single.solve_result_.scale, expected, rtol=1e-5)
    weight = np.arange(40.0)
    mean = np.average(X, axis=0, weights=weight)
    deviation = np.sqrt(np.average((X - mean) ** 2, axis=0, weights=weight))
    deviation[4] = 1.0
    weighted = go.GroupOWLRegressor(standardize=True).fit(X, Y, weight)
    np.testing.assert_allclose(weighted.solve_result_.scale, deviation, rtol=1e-9)
    Y[3, 1] = np.nan
    missing = go.GroupOWLRegressor(standardize=True).fit(X, Y)
    assert missing.solve_result_.scale.shape == (30,)
    signs = np.random.default_rng(0).permuted(np.tile([[-1.0], [1.0]], (20, 5)), axis=0)
    ones = go.GroupOWLRegressor(standardize=True).fit(signs, Y[:, 0])
    np.testing.assert_allclose(ones.solve_result_.scale, 1.0, rtol=1e-12)
    assert "earlier version" not in scale_text(ones)
    even = np.tile([-1.0, 1.0], 16)[:, None] * np.ones(3)
    of_even = go.GroupOWLRegressor(standardize=True).fit(go.SufficientStatistics.from_arrays(even, Y[:32, :1]))
    np.testing.assert_array_equal(of_even.solve_result_.scale, 1.0)


def test_solves_with_groups_and_factors_have_scaled_coefficients():
    X, Y = regression_data()
    lam = 0.2 * go.lam_max(X, Y, "linear", penalty_factor={1: 3.0}) * go.weights.linear(30)
    result = go.solve(X, Y, lam, penalty_factor={1: 3.0})
    np.testing.assert_allclose(result.scaled_B[1], 3.0 * result.B[1])
    np.testing.assert_array_equal(np.delete(result.scaled_B, 1, axis=0), np.delete(result.B, 1, axis=0))
    plain = go.solve(X, Y, lam)
    assert plain.scaled_B is plain.B


# Tables ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["targets", "one target", "classes", "two classes"])
def test_frames_have_both_scales(name):
    kind, data = FITS[name]
    X, y = data()
    model = kind(standardize=True).fit(X, y)
    frame = model.coef_frame()
    scaled = frame.filter(regex="^scaled(_(?!norm)|$)").to_numpy().T
    np.testing.assert_array_equal(scaled, np.atleast_2d(model.scaled_coef_))
    np.testing.assert_allclose(frame["scaled_norm"], np.linalg.norm(scaled, axis=0))
    np.testing.assert_allclose(frame["norm"], np.linalg.norm(np.atleast_2d(model.coef_), axis=0))
    ranked = model.coef_frame(sort=True)["scaled_norm"].to_numpy()
    assert (np.diff(ranked) <= 1e-9 * ranked[0]).all()
    assert not kind().fit(X, y).coef_frame().columns.str.startswith("scaled").any()


@pytest.mark.parametrize("loss", ["squared", "multinomial"])
def test_frames_of_paths_have_both_scales(loss):
    X, y = regression_data() if loss == "squared" else labelled_data(n_classes=2)
    path = go.group_owl_path(X, y, loss=loss, alphas=5, eps=0.1, standardize=True)
    frame = path.to_frame()
    at = frame["feature"].to_numpy(), frame["alpha_index"].to_numpy()
    for prefix, coefs in {"coef": path.coefs, "scaled": path.scaled_coefs}.items():
        found = frame.filter(regex=f"^{prefix}(_(?!norm)|$)").to_numpy()
        np.testing.assert_array_equal(found, coefs[:, *at].T)
    rows = np.concatenate([point.scaled_rows for point in path])
    np.testing.assert_allclose(frame["scaled_norm"], np.linalg.norm(rows, axis=1))
    np.testing.assert_allclose(path.scaled_coefs, path.coefs * X.std(axis=0)[:, None], rtol=1e-9)
    plain = go.group_owl_path(X, y, loss=loss, alphas=5, eps=0.1)
    assert not plain.to_frame().columns.str.startswith("scaled").any()
    np.testing.assert_array_equal(plain.scaled_coefs, plain.coefs)


def table_of(text):
    """Rows of the table of features in a summary."""
    lines = text.splitlines()
    start = next(i for i, line in enumerate(lines) if line.split()[:1] == ["feature"])
    end = next((i for i in range(start, len(lines)) if not lines[i].strip()), len(lines))
    return [line.replace("scaled norm", "scaled_norm").split() for line in lines[start:end]]


@pytest.mark.parametrize("name", ["one target", "targets"])
def test_the_summary_has_both_scales_with_four_digits(name):
    kind, data = FITS[name]
    X, y = data()
    X[:, 0] *= 1e-4
    model = kind(0.02, standardize=True).fit(X, y)
    heading, *rows = table_of(summary_text(model))
    sizes = ["scaled", "coef"] if name == "one target" else ["scaled_norm", "norm"]
    assert heading == ["feature", "cluster", *sizes]
    frame = model.coef_frame().set_index("feature")
    assert any(row[0] == "0" for row in rows)
    for feature, _, *numbers in rows[:25]:
        np.testing.assert_allclose(np.array(numbers, dtype=float), frame.loc[int(feature), sizes], rtol=5e-4)
    assert "Scaled means per standard deviation, as the penalty sees it; features of one cluster" in summary_text(model)
    heading = table_of(summary_text(kind(0.02).fit(X, y)))[0]
    assert heading == ["feature", "cluster", sizes[1]]


def test_the_certificate_lists_the_strongest_first():
    X, Y = regression_data()
    X = X * np.linspace(1.0, 30.0, 30)
    model = go.GroupOWLRegressor(standardize=True).fit(X, Y)
    lines = [line.split() for line in repr(model.certificate()).splitlines() if " selected (norm" in line]
    norms = np.linalg.norm(model.scaled_coef_, axis=0)
    listed = [int(line[0]) for line in lines]
    assert len(listed) == 20 - np.count_nonzero(~model.get_support())  # the three others are shown in any case
    assert (np.diff(norms[listed]) <= 1e-9 * norms.max()).all()
    assert float(lines[0][-1].rstrip(")")) == pytest.approx(norms.max(), rel=6e-3)


def test_nothing_tied_is_a_sentence():
    X, Y = regression_data()
    words = "features, nothing is tied: all differ in size. Weights that fall faster tie more, such as"
    constant = go.GroupOWLRegressor(weights="constant").fit(X, Y)
    alone = "features, nothing is tied: constant weights treat each on its own."
    assert clusters_text(constant) == f"{constant.clusters_.max()} {alone}"
    of_array = go.GroupOWLRegressor(weights=np.ones(30)).fit(X, Y)
    assert clusters_text(of_array) == clusters_text(constant)
    untied = go.GroupOWLRegressor(1e-4, weights="oscar").fit(X, Y)
    assert clusters_text(untied) == f"{untied.clusters_.max()} {words} linear and bh."
    assert f"  clusters   {clusters_text(untied)}" in summary_text(untied)
    of_array = go.GroupOWLRegressor(1e-4, weights=untied.weights_).fit(X, Y)
    assert clusters_text(of_array) == clusters_text(untied)
    tied = go.GroupOWLRegressor(weights="linear").fit(X, Y)
    n_features, n_clusters = np.count_nonzero(tied.clusters_), tied.clusters_.max()
    assert n_clusters < n_features
    assert clusters_text(tied) == f"{n_features} features in {n_clusters} clusters"
    tied.clusters_ = np.arange(1, 31)
    assert clusters_text(tied) == f"30 {words} bh."
    grouped = go.GroupOWLRegressor(1e-3, weights="constant", feature_groups=[[0, 1], range(2, 30)]).fit(X, Y)
    assert clusters_text(grouped).startswith("2 groups, nothing is tied")
    assert clusters_text(go.GroupOWLRegressor(1e3).fit(X, Y)) == "none"


# Pictures -------------------------------------------------------------------------------------------------


def test_bars_and_heat_maps_are_on_the_scale_of_the_penalty():
    X, Y = regression_data()
    model = go.GroupOWLRegressorCV(alphas=5, cv=2, eps=0.1, weights="linear", standardize=True).fit(X, Y)
    bars = ClusterDisplay.from_estimator(model)
    norms = np.linalg.norm(model.scaled_coef_, axis=0)
    np.testing.assert_allclose(bars.norms, norms[bars.features], rtol=1e-12)
    assert bars.ax_.get_xlabel() == "norm of the coefficients, per standard deviation"
    heat = CoefficientHeatmapDisplay.from_estimator(model)
    np.testing.assert_allclose(heat.coefficients, model.scaled_coef_.T[heat.features], rtol=1e-12)
    assert heat.colorbar_.ax.get_ylabel() == "coefficient, per standard deviation"
    path = CoefficientPathDisplay.from_estimator(model)
    assert path.ax_.get_ylabel() == "norm of the coefficients, per standard deviation"
    weighted = go.GroupOWLRegressor(standardize=True, penalty_factor=np.arange(1.0, 31.0)).fit(X, Y)
    label = "norm of the coefficients, scaled as the penalty sees it"
    assert ClusterDisplay.from_estimator(weighted).ax_.get_xlabel() == label
    point = model.path_[-1]
    bars = ClusterDisplay.from_result(point)
    expected = np.linalg.norm(model.path_.scaled_coefs[:, :, -1], axis=0)
    np.testing.assert_allclose(bars.norms, expected[bars.features], rtol=1e-12)
    assert ClusterDisplay.from_result(replace(point, scale=None)).ax_.get_xlabel() == "norm of the coefficients"


# Files ----------------------------------------------------------------------------------------------------


def without_scales(folder):
    """Make a saved model what a version without scales has saved."""
    path = folder / "model.json"
    envelope = json.loads(path.read_text())

    def strip(node):
        if isinstance(node, dict):
            fields = node.get("fields", {})
            scale = fields.pop("scale", None)
            if scale is not None:
                lost.append(scale["name"])
            for part in node.values():
                strip(part)
        elif isinstance(node, list):
            for part in node:
                strip(part)

    lost = []
    strip(envelope["content"])
    path.write_text(json.dumps(envelope | {"format_version": 1}))
    with np.load(folder / "arrays.npz") as stored:
        arrays = {name: stored[name] for name in stored.files if name not in lost}
    np.savez_compressed(folder / "arrays.npz", **arrays)
    assert lost
    return folder


@pytest.mark.parametrize("kind", [go.GroupOWLRegressor, go.GroupOWLRegressorCV])
def test_scales_are_saved(kind, tmp_path):
    X, Y = regression_data()
    model = kind(standardize=True).fit(X, Y)
    again = go.load(go.save(model, tmp_path / "model"))
    np.testing.assert_array_equal(again.scaled_coef_, model.scaled_coef_)
    if kind is go.GroupOWLRegressorCV:
        np.testing.assert_array_equal(again.path_.scaled_coefs, model.path_.scaled_coefs)


@pytest.mark.parametrize("kind", [go.GroupOWLRegressor, go.GroupOWLRegressorCV])
@pytest.mark.parametrize(
    "settings",
    [
        {"feature_groups": GROUPS, "penalty_factor": {1: 3.0, 5: 4.0, 8: np.inf}, "unpenalized": [5]},
        {"penalty_factor": "adaptive"},
    ],
    ids=["groups and factors", "adaptive"],
)
def test_models_of_earlier_versions_have_the_scale_that_their_parameters_tell(kind, settings, tmp_path):
    X, Y = regression_data()
    model = kind(**settings).fit(X, Y)
    old = go.load(without_scales(go.save(model, tmp_path / "model")))
    np.testing.assert_allclose(old.scaled_coef_, model.scaled_coef_, rtol=1e-12)
    assert "scaled" in old.coef_frame().columns.str.partition("_").get_level_values(0)
    if kind is go.GroupOWLRegressorCV:
        np.testing.assert_allclose(old.path_.scaled_coefs, model.path_.scaled_coefs, rtol=1e-12)
    assert old.verify(X, Y)


@pytest.mark.parametrize("settings", [{"standardize": True}, {"feature_groups": GROUPS, "group_scale": "frobenius"}])
def test_models_of_earlier_versions_whose_scale_is_lost_say_so(settings, tmp_path):
    X, Y = regression_data()
    model = go.GroupOWLRegressor(**settings).fit(X, Y)
    old = go.load(without_scales(go.save(model, tmp_path / "model")))
    assert old.scaled_coef_ is old.coef_
    assert "An earlier version has saved this model without the scale" in summary_text(old)
    assert "earlier version" not in summary_text(model)
    assert not old.coef_frame().columns.str.startswith("scaled").any()
    assert old.verify(X, Y)


def test_a_scale_that_was_changed_is_found():
    X, Y = regression_data()
    model = go.GroupOWLRegressorCV(alphas=4, cv=2, standardize=True).fit(X, Y)
    assert model.verify(X, Y)
    result, path = model.solve_result_, model.path_
    model.solve_result_ = replace(result, scale=1.001 * result.scale)
    assert "[FAILED] result of the solve, scale (solve_result_.scale[0]): the fit says" in repr(model.verify(X, Y))
    model.solve_result_ = result
    points = [replace(point, scale=1.001 * point.scale) for point in path.points]
    model.path_ = replace(path, points=tuple(points))
    assert isinstance(model.path_, PathResult)
    assert "[FAILED] path, scale (path_.scale[0]): the fit says" in repr(model.verify(X, Y))
