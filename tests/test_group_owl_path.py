"""The public path: its points are solutions, its ends are where they are said to be, its shapes are scikit-learn's."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import MultiTaskLasso

import groupowl as go
from groupowl.model import build_model
from groupowl.path import PathPoint, PathResult, fit_path, group_owl_path, resolve_alphas
from groupowl.solvers import check_settings
from support import make_case

KINDS = [
    {"loss": "squared"},
    {"loss": "squared", "weighted": True, "fit_intercept": True},
    {"loss": "squared", "n": 120, "d": 15, "fit_intercept": True, "weighted": True},
    {"loss": "squared", "sparse": True, "q": 1, "fit_intercept": True},
    {"loss": "multinomial", "fit_intercept": True},
    {"loss": "multinomial", "sparse": True, "weighted": True},
    {"loss": "multinomial", "q": 2, "fit_intercept": True},
]


def case_of(seed=70, **kind):
    return make_case(seed, **{"n": 40, "d": 60, **kind})


def path_of(case, X=None, y=None, **settings):
    data = {"loss": case.loss, "fit_intercept": case.fit_intercept, "sample_weight": case.sample_weight}
    X, y = (case.X if X is None else X), (case.Y if y is None else y)
    return group_owl_path(X, y, **{**data, "alphas": 8, "eps": 0.05, **settings})


def labels_of(case, names):
    return np.asarray(names)[np.argmax(case.Y, axis=1)]


# Solutions ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_every_point_is_the_certified_solution_of_its_own_problem(kind):
    """Objective from scratch, in the mean over samples, against a solve of its own in the paper's scaling."""
    case, tol = case_of(**kind), 1e-8
    path = path_of(case, tol=tol)
    total = len(case.Y) if case.sample_weight is None else case.sample_weight.sum()
    for point in path:
        lam = point.alpha * total * go.weights.oscar(path.n_features)
        alone = go.solve(**{**case.arguments(), "lam": lam}, tol=tol)
        B = point.coef(path.n_features)
        at_point = type(case)(**{**vars(case), "lam": lam}).objective(B, point.intercept) / total
        rounding = 1e-12 * at_point
        assert point.status == "converged"
        assert point.gap <= tol * path.null_loss
        assert at_point == pytest.approx(point.primal, abs=rounding)
        assert abs(at_point - alone.primal / total) <= point.gap + alone.gap / total + rounding
        assert set(np.flatnonzero(np.linalg.norm(alone.B, axis=1) > 1e-3)) <= set(point.support)


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_losses_and_deviance_are_those_of_the_coefficients(kind):
    case = case_of(**kind)
    path = path_of(case)
    without_penalty = type(case)(**{**vars(case), "lam": np.zeros(path.n_features)})
    total = len(case.Y) if case.sample_weight is None else case.sample_weight.sum()
    losses = [without_penalty.objective(point.coef(path.n_features), point.intercept) / total for point in path]
    np.testing.assert_allclose(path.losses, losses, rtol=1e-9)
    np.testing.assert_allclose(path.deviance_ratio, 1.0 - path.losses / path.null_loss, atol=1e-12)
    assert path.losses[0] == pytest.approx(path.null_loss)
    assert np.all(np.diff(path.deviance_ratio) >= 0)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_constant_weights_give_the_multi_task_lasso(fit_intercept):
    case = case_of(fit_intercept=fit_intercept)
    path = path_of(case, weights="constant", tol=1e-10, alphas=4, eps=0.2)
    for point in path:
        reference = MultiTaskLasso(point.alpha, fit_intercept=fit_intercept, tol=1e-12, max_iter=100_000)
        reference.fit(case.X, case.Y)
        np.testing.assert_allclose(path.coef_at(point.alpha), reference.coef_, atol=1e-5)
        np.testing.assert_allclose(path.intercept_at(point.alpha), reference.intercept_ * np.ones(3), atol=1e-5)


@pytest.mark.parametrize("standardize", [False, True])
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_nothing_is_selected_at_alpha_max_and_something_just_below(kind, standardize):
    case = case_of(**kind)
    path = path_of(case, alphas=3, standardize=standardize)
    assert path.alphas[0] == path.alpha_max
    assert (path.n_selected[0], path.dual_gaps[0], path.n_iters[0]) == (0, 0.0, 1)
    assert not path.coefs[:, :, 0].any()
    below = path_of(case, alphas=[(1 - 1e-6) * path.alpha_max], standardize=standardize)
    assert below.n_selected[0] > 0


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("loss", ["squared", "multinomial"])
def test_standardize_is_that_of_the_columns_by_hand(loss, fit_intercept):
    case = case_of(loss=loss, fit_intercept=fit_intercept)
    X = case.X * np.geomspace(0.1, 10.0, 60)
    scale = X.std(axis=0)
    implicit = path_of(case, X=X, standardize=True, tol=1e-10)
    by_hand = path_of(case, X=X / scale, tol=1e-10)
    np.testing.assert_allclose(implicit.alphas, by_hand.alphas, rtol=1e-9)
    np.testing.assert_allclose(implicit.losses, by_hand.losses, rtol=1e-6)
    np.testing.assert_array_equal(implicit.clusters[:, 3] > 0, by_hand.clusters[:, 3] > 0)
    np.testing.assert_allclose(implicit.coefs * scale[:, None], by_hand.coefs, atol=1e-4)


@pytest.mark.parametrize("loss", ["squared", "multinomial"])
def test_a_weight_of_two_is_the_sample_twice_and_zero_is_none(loss):
    case = case_of(loss=loss, fit_intercept=True)
    weight = np.random.default_rng(0).integers(0, 3, len(case.Y))
    alphas = path_of(case, sample_weight=weight).alphas
    weighted = path_of(case, sample_weight=weight, alphas=alphas, tol=1e-9)
    rows = np.repeat(np.arange(len(case.Y)), weight)
    repeated = path_of(case, X=case.X[rows], y=case.Y[rows], alphas=alphas, tol=1e-9)
    assert weighted.alpha_max == pytest.approx(repeated.alpha_max, rel=1e-12)
    for one, other in zip(weighted, repeated, strict=True):
        assert abs(one.primal - other.primal) <= one.gap + other.gap + 1e-12 * one.primal


def test_sparse_and_dense_data_give_the_same_path():
    case = case_of(sparse=True, fit_intercept=True)
    sparse, dense = path_of(case, tol=1e-9), path_of(case, X=case.X.toarray(), tol=1e-9)
    np.testing.assert_allclose(sparse.alphas, dense.alphas, rtol=1e-12)
    for one, other in zip(sparse, dense, strict=True):
        assert abs(one.primal - other.primal) <= one.gap + other.gap + 1e-12 * one.primal


def test_screening_and_solvers_do_not_change_the_path():
    case = case_of(fit_intercept=True)
    first, *others = (path_of(case, **change) for change in [{}, {"screening": "none"}, {"solver": go.APGD()}])
    for other in others:
        assert np.all(np.abs(other.losses - first.losses) <= 1e-3 * first.null_loss)
        for one, two in zip(first, other, strict=True):
            assert abs(one.primal - two.primal) <= one.gap + two.gap


def test_statistics_are_shared_along_the_path():
    case = case_of(n=400, d=30, fit_intercept=True)
    path = path_of(case, alphas=20)
    assert path.n_passes[1:].sum() <= 1.0 + 1e-9


def test_a_good_start_saves_steps():
    case = case_of(fit_intercept=True)
    alpha = path_of(case).alphas[5]
    cold = path_of(case, alphas=[alpha])
    warm = path_of(case, alphas=[alpha], coef_init=cold.coef_at(alpha))
    assert warm.n_iters[0] < cold.n_iters[0]
    assert abs(warm[0].primal - cold[0].primal) <= warm[0].gap + cold[0].gap


# Grids --------------------------------------------------------------------------------------------------


def test_the_grid_is_logarithmic_from_alpha_max_to_eps_times_it():
    path = path_of(case_of(fit_intercept=True), alphas=5, eps=0.1)
    np.testing.assert_allclose(path.alphas / path.alpha_max, np.geomspace(1.0, 0.1, 5))
    assert path.stopped_because == "end"


def test_alphas_are_sorted_downwards_and_taken_once():
    path = path_of(case_of(), alphas=[0.1, 0.3, 0.3, 0.2])
    np.testing.assert_array_equal(path.alphas, [0.3, 0.2, 0.1])
    assert path_of(case_of(), alphas=np.int64(1)).alphas.tolist() == [path.alpha_max]


def test_constant_targets_are_explained_at_once():
    path = group_owl_path(case_of().X, np.full(40, 3.0), alphas=4)
    assert (path.stopped_because, len(path), path.alpha_max) == ("deviance", 1, 0.0)
    assert path.intercepts == pytest.approx(3.0)
    assert path.deviance_ratio[0] == 1.0


# Early ends ---------------------------------------------------------------------------------------------


def test_the_path_ends_once_the_deviance_is_explained():
    case = case_of(fit_intercept=True)
    path = path_of(case, alphas=60, eps=1e-5)
    assert path.stopped_because == "deviance"
    assert len(path) < 60
    assert path.deviance_ratio[-1] >= 0.999
    assert np.all(path.deviance_ratio[:-1] < 0.999)


def test_max_features_leaves_out_the_alpha_that_exceeds_it():
    case = case_of(fit_intercept=True)
    full = path_of(case, alphas=30)
    limit = int(full.n_selected[10])  # as many are still allowed
    part = path_of(case, alphas=30, max_features=limit)
    assert part.stopped_because == "max_features"
    assert part.n_selected.max() == limit
    np.testing.assert_array_equal(part.alphas, full.alphas[: len(part)])
    assert full.n_selected[len(part)] > limit
    with pytest.raises(ValueError, match=r"max_features=1, but the first alpha, 0\.01, selects \d+ features"):
        path_of(case, alphas=[0.01], max_features=1)


def test_a_model_follows_all_alphas_where_no_deviance_ends_it():
    case = case_of(fit_intercept=True)
    model = build_model(case.X, case.Y)
    grid = resolve_alphas(30, 1e-5, model)
    settings = check_settings("auto", "safe", 1e-6, 10_000)
    whole, part = fit_path(model, grid, settings, max_deviance=None), fit_path(model, grid, settings)
    assert (whole.stopped_because, part.stopped_because) == ("end", "deviance")
    assert len(part.points) < len(whole.points) == 30
    np.testing.assert_array_equal(whole.alphas, grid)


def test_a_callback_sees_every_alpha_and_may_end_the_path():
    case, seen = case_of(fit_intercept=True), []
    path_of(case, callback=lambda progress: seen.append(progress.alpha_index))
    assert seen == sorted(seen)
    assert set(seen) == set(range(8))
    stopped = path_of(case, callback=lambda progress: progress.alpha_index == 2)
    assert (stopped.stopped_because, len(stopped)) == ("callback", 3)
    assert stopped.statuses.tolist() == ["converged", "converged", "callback"]


def test_a_callback_may_end_the_path_at_a_solution():
    """The solve ends by itself at that certificate, and the path ends with it."""
    case = case_of(fit_intercept=True)
    goal = 1e-6 * path_of(case).null_loss
    stopped = path_of(case, callback=lambda p: p.alpha_index == 2 and p.iteration > 0 and p.gap <= goal)
    assert (stopped.stopped_because, len(stopped)) == ("callback", 3)
    assert set(stopped.statuses) == {"converged"}


def test_an_interrupt_passes():
    def interrupt(progress):
        if progress.alpha_index == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        path_of(case_of(), callback=interrupt)


def test_one_warning_for_all_alphas_that_fall_short():
    with pytest.warns(ConvergenceWarning) as caught:
        path = path_of(case_of(fit_intercept=True), max_iter=2)
    short = np.flatnonzero(path.statuses == "max_iter")
    assert len(short) > 1
    assert len(caught) == 1
    message = f"{len(short)} of 8 alphas fell short of tol, the first at index {short[0]}. Stopped after max_iter=2"
    assert message in str(caught[0].message)


def test_progress_is_shown_on_request(capsys):
    path_of(case_of(), verbose=0)
    assert capsys.readouterr() == ("", "")
    path_of(case_of(), verbose=1)
    assert "group_owl_path: alpha 8 of 8, " in capsys.readouterr().err


# Labels -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "names", [["a", "b", "c"], [1, 5, 9], np.array(["x", "y", "z"], dtype=object), [0.0, 1.0, 2.0]], ids=str
)
def test_labels_of_any_kind_are_one_hot_rows(names):
    case = case_of(loss="multinomial", fit_intercept=True)
    one_hot, labelled = path_of(case), path_of(case, y=labels_of(case, names))
    np.testing.assert_array_equal(one_hot.coefs, labelled.coefs)
    np.testing.assert_array_equal(labelled.classes, names)
    assert one_hot.classes.tolist() == [0, 1, 2]
    assert one_hot.coefs.shape == (3, 60, len(one_hot))


def test_two_classes_have_one_row_of_coefficients():
    case = case_of(loss="multinomial", q=2, fit_intercept=True)
    path = path_of(case, y=labels_of(case, [False, True]))
    B = path[-1].coef(60)
    assert B.shape == (60, 2)
    np.testing.assert_allclose(B[:, 0], -B[:, 1], atol=1e-12)
    assert path.classes.tolist() == [False, True]
    assert (path.coefs.shape, path.intercepts.shape, path.n_targets) == ((1, 60, 8), (1, 8), 1)
    np.testing.assert_array_equal(path.coefs[0, :, -1], B[:, 1] - B[:, 0])
    np.testing.assert_array_equal(path.intercepts[0, -1], path[-1].intercept[1] - path[-1].intercept[0])
    np.testing.assert_array_equal(path.coef_at(path.alphas[-1]), path.coefs[:, :, -1])
    again = path_of(case, alphas=path.alphas[-1:], coef_init=path.coef_at(path.alphas[-1]))
    assert again.n_iters[0] < path_of(case, alphas=path.alphas[-1:]).n_iters[0]


def test_class_probabilities_and_named_columns():
    case = case_of(loss="multinomial", fit_intercept=True)
    blurred = 0.9 * case.Y + 0.1 / 3
    frame = pd.DataFrame(blurred, columns=["low", "mid", "high"])
    path = path_of(case, y=frame)
    assert path.classes.tolist() == ["low", "mid", "high"]
    assert path.null_loss > path_of(case).null_loss
    dummies = pd.get_dummies(pd.Series(labels_of(case, ["a", "b", "c"])))
    assert path_of(case, y=dummies).classes.tolist() == ["a", "b", "c"]


def test_a_class_whose_samples_have_no_weight_is_not_there():
    case = case_of(loss="multinomial", fit_intercept=True)
    labels = labels_of(case, ["a", "b", "c"])
    weight = (labels != "b").astype(float)
    path = path_of(case, y=labels, sample_weight=weight)
    kept = labels != "b"
    without = path_of(case, X=case.X[kept], y=labels[kept])
    assert path.classes.tolist() == ["a", "c"]
    np.testing.assert_allclose(path.alphas, without.alphas, rtol=1e-12)
    np.testing.assert_allclose(path.losses, without.losses, rtol=1e-4)


# Unpenalized columns ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_unpenalized_columns_are_in_from_the_start(kind):
    case = case_of(**kind)
    path = path_of(case, unpenalized=[3, 7])
    assert path.unpenalized.tolist() == [3, 7]
    assert path[0].support.tolist() == [3, 7]
    assert path[0].clusters.tolist() == [0, 0]
    assert path.n_selected[0] == 0
    assert path.losses[0] == pytest.approx(path.null_loss, rel=1e-9)
    assert path.null_loss < path_of(case).null_loss
    assert len(path.weights) == path.n_features - 2
    np.testing.assert_array_equal(path.n_selected, (path.clusters > 0).sum(axis=0))
    assert np.all(path.clusters[[3, 7]] == 0)
    without_penalty = type(case)(**{**vars(case), "lam": np.zeros(path.n_features)})
    total = len(case.Y) if case.sample_weight is None else case.sample_weight.sum()
    losses = [without_penalty.objective(point.coef(path.n_features), point.intercept) / total for point in path]
    np.testing.assert_allclose(path.losses, losses, rtol=1e-8)


def test_unpenalized_columns_do_not_count_as_features():
    case = case_of(fit_intercept=True)
    path = path_of(case, alphas=30, unpenalized=[3, 7], max_features=5)
    assert path.stopped_because == "max_features"
    assert path.n_selected.max() <= 5
    frame = pd.DataFrame(case.X, columns=[f"f{j}" for j in range(60)])
    named = path_of(case, X=frame, alphas=30, unpenalized=["f7", "f3"], max_features=5)
    np.testing.assert_array_equal(named.n_selected, path.n_selected)


# The result ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("q", [1, 3])
def test_shapes_keep_three_dimensions(q):
    case = case_of(q=q, fit_intercept=True)
    path = path_of(case, y=case.Y[:, 0] if q == 1 else case.Y)
    assert path.coefs.shape == (q, 60, 8)
    assert path.intercepts.shape == (q, 8)
    assert path.clusters.shape == (60, 8)
    assert path.coef_at(path.alphas[2]).shape == (q, 60)
    assert path.intercept_at(path.alphas[2]).shape == (q,)
    assert path[2].coef(60).shape == (60, q)
    per_alpha = ["alphas", "dual_gaps", "n_iters", "n_passes", "n_selected", "deviance_ratio", "seconds", "statuses"]
    assert {getattr(path, name).shape for name in per_alpha} == {(8,)}


def test_clusters_are_rows_of_equal_norm():
    case = case_of(n=60, d=20, fit_intercept=True)
    path = path_of(case, weights="oscar")
    norms = np.linalg.norm(path.coefs, axis=0)
    np.testing.assert_array_equal(path.clusters > 0, norms > 0)
    np.testing.assert_array_equal((path.clusters > 0).sum(axis=0), path.n_selected)
    for i in range(len(path)):
        for label in range(1, path.clusters[:, i].max() + 1):
            members = norms[path.clusters[:, i] == label, i]
            assert np.ptp(members) <= 1e-8 * members.max()
    assert np.any(path.clusters.max(axis=0) < path.n_selected)  # some features share a cluster


def test_interpolation_is_exact_on_the_grid_and_linear_between():
    path = path_of(case_of(fit_intercept=True))
    for i, alpha in enumerate(path.alphas):
        np.testing.assert_array_equal(path.coef_at(alpha), path.coefs[:, :, i])
        np.testing.assert_array_equal(path.intercept_at(alpha), path.intercepts[:, i])
    left, right = path.alphas[3], path.alphas[4]
    between = path.coef_at(0.25 * left + 0.75 * right)
    np.testing.assert_allclose(between, 0.25 * path.coefs[:, :, 3] + 0.75 * path.coefs[:, :, 4], atol=1e-12)
    intercept = path.intercept_at(0.25 * left + 0.75 * right)
    np.testing.assert_allclose(intercept, 0.25 * path.intercepts[:, 3] + 0.75 * path.intercepts[:, 4], atol=1e-12)


def test_interpolation_is_near_the_solution():
    """Nearer than either neighbor: what the line between two solutions is for."""
    case = case_of(fit_intercept=True)
    path = path_of(case, tol=1e-10)
    middle = np.sqrt(path.alphas[4] * path.alphas[5])
    solution = path_of(case, alphas=[middle], tol=1e-10).coefs[:, :, 0]
    distances = [np.linalg.norm(coef - solution) for coef in (path.coefs[:, :, 4], path.coefs[:, :, 5])]
    assert np.linalg.norm(path.coef_at(middle) - solution) < 0.5 * min(distances)


def test_alphas_outside_the_path_are_refused():
    path = path_of(case_of(), alphas=[0.1, 0.2])
    for alpha in (0.099, 0.201):
        with pytest.raises(ValueError, match=rf"alpha must lie in the range of the path, \[0\.1, 0\.2\], got {alpha}"):
            path.coef_at(alpha)
    with pytest.raises(TypeError, match="alpha must be a number"):
        path.intercept_at("auto")


def test_indexing():
    path = path_of(case_of())
    assert isinstance(path[2], PathPoint)
    assert path[-1] is path.points[-1]
    assert [point.alpha for point in path] == path.alphas.tolist()
    part = path[2:5]
    assert isinstance(part, PathResult)
    np.testing.assert_array_equal(part.alphas, path.alphas[2:5])
    np.testing.assert_array_equal(part.coefs, path.coefs[:, :, 2:5])
    assert part.alpha_max == path.alpha_max
    for empty in (slice(5, 5), slice(None, None, -1)):
        with pytest.raises(ValueError, match="at least one alpha and a positive step"):
            path[empty]
    assert path[np.int64(1)] is path.points[1]
    for index in (8, -9):
        with pytest.raises(IndexError, match=rf"the path has 8 alphas: .* integer from -8 to 7, got {index}\."):
            path[index]
    with pytest.raises(TypeError, match=r"the path has 8 alphas: an index must be an integer from -8 to 7, got 0\.1"):
        path[0.1]
    stopped = path_of(case_of(), callback=lambda progress: progress.alpha_index == 2)
    assert (stopped[1:].stopped_because, stopped[:2].stopped_because) == ("callback", "end")


@pytest.mark.parametrize("alphas", [1, 2, 9, 40])
def test_a_path_prints_as_a_short_table(alphas):
    path = path_of(case_of(fit_intercept=True), alphas=alphas, eps=0.5)
    lines = repr(path).splitlines()
    assert len(lines) == min(alphas, 8) + 3
    assert lines[0].startswith(f"PathResult: {alphas} alphas from ")
    assert lines[2].split()[0] == "0"
    assert lines[-2].split()[0] == str(alphas - 1)
    assert lines[-1] == "all alphas solved"
    assert max(map(len, lines)) <= 100
    assert "features selected" in repr(path[0])


def test_frames_list_the_features_that_are_not_zero():
    case = case_of(fit_intercept=True)
    names = [f"gene {j}" for j in range(60)]
    y = pd.DataFrame(case.Y, columns=["mass", "size", "age"])
    path = path_of(case, X=pd.DataFrame(case.X, columns=names), y=y)
    frame = path.to_frame()
    assert list(frame.columns) == [
        "alpha_index",
        "alpha",
        "feature",
        "cluster",
        "norm",
        "coef_mass",
        "coef_size",
        "coef_age",
    ]
    assert len(frame) == path.n_selected.sum()
    last = frame[frame.alpha_index == 7].set_index("feature")
    coef = path.coefs[:, :, 7]
    for name, row in last.iterrows():
        j = names.index(name)
        np.testing.assert_array_equal(row[["coef_mass", "coef_size", "coef_age"]].astype(float), coef[:, j])
        assert row["norm"] == pytest.approx(np.linalg.norm(coef[:, j]))
        assert row["cluster"] == path.clusters[j, 7]
    assert (last["alpha"] == path.alphas[7]).all()


@pytest.mark.parametrize(
    ("q", "columns"), [(2, ["coef"]), (3, ["coef_a", "coef_b", "coef_c"])], ids=["two classes", "three classes"]
)
def test_columns_of_frames_are_classes(q, columns):
    case = case_of(loss="multinomial", q=q, fit_intercept=True)
    frame = path_of(case, y=labels_of(case, ["a", "b", "c"])).to_frame()
    assert list(frame.columns[5:]) == columns
    assert frame["feature"].dtype.kind == "i"


def test_a_path_without_features_has_an_empty_frame():
    frame = path_of(case_of(), alphas=1).to_frame()
    assert len(frame) == 0
    assert list(frame.columns[-3:]) == ["coef_0", "coef_1", "coef_2"]


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
def test_names_come_from_frames(kind):
    case = case_of()
    frame = kind({f"f{j}": case.X[:, j] for j in range(60)})
    path = path_of(case, X=frame)
    assert path.feature_names.tolist() == [f"f{j}" for j in range(60)]
    np.testing.assert_allclose(path.coefs, path_of(case).coefs, atol=1e-10)  # only the order of sums differs
    assert path_of(case).feature_names is None


@pytest.mark.parametrize("sparse", [False, True])
def test_single_precision_is_kept(sparse):
    case = case_of(fit_intercept=True)
    X = case.X.astype(np.float32)
    path = path_of(case, X=sp.csr_array(X) if sparse else X, tol=1e-5)
    assert {path.coefs.dtype, path.intercepts.dtype, path[3].rows.dtype, path.coef_at(path.alpha_max * 0.5).dtype} == {
        np.dtype(np.float32)
    }
    assert path.dual_gaps.dtype == np.float64


def test_a_path_can_be_pickled():
    path = path_of(case_of(loss="multinomial", fit_intercept=True))
    again = pickle.loads(pickle.dumps(path))
    np.testing.assert_array_equal(path.coefs, again.coefs)
    assert repr(path) == repr(again)


# Bad input ----------------------------------------------------------------------------------------------

BAD = {
    "alphas zero": ({"alphas": 0}, ValueError, "alphas must be at least 1, got 0"),
    "alphas true": ({"alphas": True}, TypeError, "alphas must be an integer, got True"),
    "alphas number": ({"alphas": 0.1}, TypeError, r"alphas must be an integer, how many, or an array.*\[0\.1\]"),
    "alphas text": ({"alphas": "auto"}, TypeError, "alphas must be an integer, how many, or an array"),
    "alphas empty": ({"alphas": []}, ValueError, "alphas must be at least one positive number, got none"),
    "alphas with zero": ({"alphas": [0.1, 0]}, ValueError, "alphas: all must be positive, got 0 among them"),
    "alphas negative": ({"alphas": [1.0, -0.5]}, ValueError, r"alphas: all must be positive, got -0\.5 among them"),
    "alphas nan": ({"alphas": [1.0, np.nan]}, ValueError, "alphas has 1 NaN or infinite entry"),
    "alphas matrix": ({"alphas": np.ones((2, 2))}, ValueError, "alphas must be 1-dimensional"),
    "eps": ({"eps": 1.0}, ValueError, r"eps must lie in \(0, 1\), got 1\.0"),
    "tol": ({"tol": 0.0}, ValueError, "tol must be a finite number above 0"),
    "max_iter": ({"max_iter": 0}, ValueError, "max_iter must be at least 1"),
    "max_features": ({"max_features": 0}, ValueError, "max_features must be at least 1, got 0"),
    "callback": ({"callback": 5}, TypeError, "callback must be callable, got 5"),
    "verbose": ({"verbose": -1}, ValueError, "verbose must be at least 0, got -1"),
    "loss": ({"loss": "hinge"}, ValueError, "loss must be one of 'squared', 'multinomial', .*got 'hinge'"),
    "weights": ({"weights": np.ones(59)}, ValueError, "X has 60 columns, weights has length 59"),
    "coef_init": ({"coef_init": np.ones((60, 3))}, ValueError, r"coef_init must have shape \(3, 60\)"),
    "unpenalized": ({"unpenalized": ["age"]}, ValueError, "unpenalized has the name 'age', but X has no column names"),
    "text": ({"y": np.array(["a", "b"] * 20)}, TypeError, "y holds labels .*loss='squared' needs numbers.*multinomial"),
    "no X": ({"X": None}, TypeError, "X must be an array of numbers, got None"),
    "no y": ({"y": None}, TypeError, "y must be an array of numbers, got None"),
    "ragged y": ({"y": [[1.0, 2.0]] * 39 + [[1.0]]}, ValueError, "y cannot be read as a rectangular array"),
    "dates": (
        {"X": pd.DataFrame({"age": np.ones(40), "day": pd.date_range("2020", periods=40)})},
        TypeError,
        "X must hold real numbers, but column 'day' has dates",
    ),
    "a name twice": (
        {"X": pd.DataFrame(np.ones((40, 3)), columns=["a", "b", "a"]), "unpenalized": ["a"]},
        ValueError,
        r"unpenalized has the name 'a', which 2 columns of X have: \[0, 2\]",
    ),
    "sample_weight": ({"sample_weight": np.full(40, 1e308)}, ValueError, "sample_weight is so large that its sum"),
    "short y": ({"y": np.ones(39)}, ValueError, "X has 40 rows, y has 39"),
    "short labels": (
        {"y": ["a", "b"] * 19, "loss": "multinomial", "sample_weight": np.ones(40)},
        ValueError,
        "X has 40 rows, y has 38",
    ),
    "fractions": ({"y": np.linspace(0, 1, 40), "loss": "multinomial"}, ValueError, "y holds fractions"),
    "one class": ({"y": ["a"] * 40, "loss": "multinomial"}, ValueError, "y has one class only"),
    "text rows": ({"y": [["a", "b"]] * 40, "loss": "multinomial"}, ValueError, "y must be one label per sample"),
    "sparse y": ({"y": sp.eye_array(40).tocsr(), "loss": "multinomial"}, TypeError, "y must be a dense array"),
    "not probabilities": ({"y": np.ones((40, 2)), "loss": "multinomial"}, ValueError, "rows of Y that sum to 1"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input(name):
    changes, kind, message = BAD[name]
    case = case_of()
    with pytest.raises(kind, match=message):
        group_owl_path(**{"X": case.X, "y": case.Y, "alphas": 3, **changes})


def test_alphas_that_are_given_are_all_fitted():
    """Only a grid of our own ends where the deviance is explained."""
    data = go.datasets.make_correlated_groups(20, 40, 2, random_state=0)
    top = group_owl_path(data.X, data.Y, alphas=1).alpha_max
    alphas = top * np.geomspace(1.0, 1e-6, 8)
    path = group_owl_path(data.X, data.Y, alphas=alphas, tol=1e-4)
    assert len(path) == 8
    assert path.deviance_ratio[-2] > 0.999
    assert len(group_owl_path(data.X, data.Y, alphas=8, eps=1e-6, tol=1e-4)) < 8


# Predictions --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["squared", "poisson", "huber"])
def test_points_predict_as_estimators_do(loss):
    """At alphas of the path and between them; offsets are added, and one target is flat."""
    rng = np.random.default_rng(0)
    X, offset = rng.standard_normal((50, 6)), 0.1 * rng.standard_normal(50)
    Y = rng.poisson(np.exp(0.3 * X[:, :2])).astype(float)
    for y in (Y, Y[:, 0]):
        path = go.group_owl_path(X, y, loss=loss, alphas=6, eps=0.05, tol=1e-10, offset=offset)
        delta = {} if loss != "huber" else {"delta": 1.345}
        alpha = float(path.alphas[3])
        model = go.GroupOWLRegressor(alpha, loss=loss, tol=1e-10, **delta).fit(X, y, offset=offset)
        expected = model.predict(X[:7], offset=offset[:7])
        found = path.predict(X[:7], alpha=alpha, offset=offset[:7])
        assert found.shape == expected.shape
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
    between = 0.5 * (path.alphas[2] + path.alphas[3])
    Z = X @ path.coef_at(between)[0] + path.intercept_at(between)
    expected = np.exp(Z) if loss == "poisson" else Z
    np.testing.assert_allclose(path.predict(X, between, offset=0), expected, rtol=1e-12)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_points_predict_classes(n_classes):
    data = go.datasets.make_correlated_groups(60, 8, n_classes, task="classification", n_informative=4, random_state=0)
    labels = np.array(["elm", "fir", "oak"])[data.labels]
    path = go.group_owl_path(data.X, labels, loss="multinomial", alphas=6, eps=0.05, tol=1e-10)
    model = go.GroupOWLClassifier(path.alphas[4], tol=1e-10).fit(data.X, labels)
    np.testing.assert_array_equal(path.predict(data.X, path.alphas[4]), model.predict(data.X))
    chances = path.predict_proba(data.X, path.alphas[4])
    np.testing.assert_allclose(chances, model.predict_proba(data.X), atol=1e-4)
    np.testing.assert_allclose(chances.sum(axis=1), 1.0)


def test_points_predict_labels_and_hazards():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 5))
    Y = (X[:, :2] + rng.standard_normal((60, 2)) > 0).astype(float)
    path = go.group_owl_path(X, Y, loss="logistic", alphas=5, eps=0.05)
    chances = path.predict_proba(X, path.alphas[-1])
    np.testing.assert_array_equal(path.predict(X, path.alphas[-1]), (chances > 0.5).astype(int))
    assert 0.0 < chances.min() < chances.max() < 1.0
    y = np.column_stack([np.ones(60), rng.exponential(np.exp(-X[:, 0]))])
    model = go.GroupOWLCoxCV(alphas=5, eps=0.1, cv=3).fit(X, y)
    hazards = model.path_.predict(X, model.alphas_[3])
    np.testing.assert_allclose(hazards, X @ model.path_.coef_at(model.alphas_[3])[0], rtol=1e-12)


def test_what_points_cannot_predict():
    data = go.datasets.make_correlated_groups(40, 6, 2, n_informative=2, random_state=0)
    path = go.group_owl_path(data.X, data.Y, alphas=4, eps=0.1)
    with pytest.raises(ValueError, match="X has 5 columns, but the path has 6 features"):
        path.predict(data.X[:, :5], path.alphas[1])
    with pytest.raises(ValueError, match="alpha must lie in the range of the path"):
        path.predict(data.X, 10.0 * path.alphas[0])
    with pytest.raises(ValueError, match="predict_proba is for classes, and this path has the loss 'squared'"):
        path.predict_proba(data.X, path.alphas[1])
