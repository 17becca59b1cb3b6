"""Alpha by cross-validation or a criterion: what is computed is what one would compute by hand."""

from __future__ import annotations

from math import comb, log, pi

import numpy as np
import pytest
from scipy.linalg import null_space
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.metrics import log_loss
from sklearn.model_selection import KFold, LeaveOneOut, RepeatedKFold, StratifiedKFold, TimeSeriesSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import groupowl as go
from groupowl.estimators import GroupOWLClassifier, GroupOWLClassifierCV, GroupOWLRegressor, GroupOWLRegressorCV
from groupowl.path import group_owl_path

FOLD_TOL = "groupowl.model_selection.search.FOLD_TOL"
ESTIMATORS = {"regression": GroupOWLRegressorCV, "classification": GroupOWLClassifierCV}


@pytest.fixture(autouse=True)
def exact_folds(monkeypatch):
    """Folds at the tolerance of the estimator: their scores are then as exact as those by hand."""
    monkeypatch.setattr(FOLD_TOL, 0.0)


def regression(n=30, d=5, q=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * rng.uniform(0.3, 3.0, d) + 1.0
    return X, X[:, :2] @ rng.standard_normal((2, q)) + rng.standard_normal((n, q))


def classification(n=40, d=5, n_classes=3, seed=0):
    X, y = make_classification(n, d, n_informative=3, n_redundant=0, n_classes=n_classes, random_state=seed)
    return X, np.array(["ant", "bee", "cat", "dog"])[y]


def scores_by_hand(model, X, y, splits, score, *, sample_weight=None, **settings):
    """Fit and score every fold and alpha alone, with an estimator of one alpha."""
    single_class = GroupOWLRegressor if isinstance(model, GroupOWLRegressorCV) else GroupOWLClassifier
    scores = np.zeros((len(model.alphas_), len(splits)))
    for f, (train, test) in enumerate(splits):
        weight = None if sample_weight is None else sample_weight[train]
        for i, alpha in enumerate(model.alphas_):
            single = single_class(alpha, weights=model.weights_, tol=model.tol, **settings)
            single.fit(X[train], y[train], sample_weight=weight)
            scores[i, f] = score(single, X[test], y[test], test)
    return scores


def negative_mse(single, X, y, test):
    return -np.mean((single.predict(X) - y) ** 2)


def negative_log_loss(single, X, y, test):
    return -log_loss(y, single.predict_proba(X), labels=single.classes_)


# Scores -------------------------------------------------------------------------------------------------


def test_leave_one_out_by_hand():
    X, Y = regression(12, 4)
    model = GroupOWLRegressorCV(alphas=4, eps=0.05, cv=LeaveOneOut(), tol=1e-9).fit(X, Y)
    by_hand = scores_by_hand(model, X, Y, list(LeaveOneOut().split(X)), negative_mse)
    assert model.score_path_.shape == (4, 12)
    # Predictions are exact to the root of the gap, 3e-5 of the spread of Y.
    np.testing.assert_allclose(model.score_path_, by_hand, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(model.mean_score_path_, by_hand.mean(axis=1), rtol=1e-3)
    np.testing.assert_allclose(model.std_error_path_, by_hand.std(axis=1, ddof=1) / np.sqrt(12), rtol=1e-3)
    assert model.best_index_ == np.argmax(by_hand.mean(axis=1))


def test_log_loss_by_hand():
    X, y = classification()
    splits = list(StratifiedKFold(4).split(X, y))
    model = GroupOWLClassifierCV(alphas=3, eps=0.05, cv=4, tol=1e-9).fit(X, y)
    by_hand = scores_by_hand(model, X, y, splits, negative_log_loss)
    np.testing.assert_allclose(model.score_path_, by_hand, rtol=1e-3)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_standardization_does_not_leak(fit_intercept):
    """Standard deviations are those of the training samples: a pipeline around each fold says the same."""
    X, Y = regression()
    settings = {"fit_intercept": fit_intercept, "tol": 1e-9}
    model = GroupOWLRegressorCV(alphas=4, eps=0.05, cv=3, standardize=True, **settings).fit(X, Y)
    for f, (train, test) in enumerate(KFold(3).split(X)):
        for i, alpha in enumerate(model.alphas_):
            # Without an intercept columns are scaled, not shifted.
            pipe = make_pipeline(StandardScaler(with_mean=fit_intercept), GroupOWLRegressor(alpha, **settings))
            score = -np.mean((pipe.fit(X[train], Y[train]).predict(X[test]) - Y[test]) ** 2)
            assert model.score_path_[i, f] == pytest.approx(score, rel=1e-3)
    plain = clone(model).set_params(standardize=False, alphas=model.alphas_).fit(X, Y)
    assert not np.allclose(plain.score_path_, model.score_path_, rtol=1e-2)


def test_means_are_weighted_and_scores_use_sample_weight():
    X, Y = regression()
    weight = np.random.default_rng(3).uniform(0.1, 3.0, len(X))
    splits = list(KFold(3).split(X))
    model = GroupOWLRegressorCV(alphas=3, eps=0.05, cv=3, tol=1e-9).fit(X, Y, sample_weight=weight)

    def weighted(single, X, y, test):
        return -np.average(np.mean((single.predict(X) - y) ** 2, axis=1), weights=weight[test])

    by_hand = scores_by_hand(model, X, Y, splits, weighted, sample_weight=weight)
    np.testing.assert_allclose(model.score_path_, by_hand, rtol=1e-3)
    fold_weights = [weight[test].sum() for _, test in splits]
    np.testing.assert_allclose(model.mean_score_path_, np.average(by_hand, axis=1, weights=fold_weights), rtol=1e-3)


def test_folds_have_a_tolerance_of_their_own(monkeypatch):
    """Scores of folds at 1e-4 are near those at tol, and not the same; fits on all data are at tol."""
    X, Y = regression(25, 40)
    model = GroupOWLRegressorCV(alphas=10, eps=0.05, cv=3)
    tight = clone(model).fit(X, Y)
    monkeypatch.setattr(FOLD_TOL, 1e-4)
    loose = clone(model).fit(X, Y)
    difference = np.abs(loose.score_path_ - tight.score_path_).max()
    assert 0.0 < difference < 0.1 * np.abs(tight.score_path_).max()
    np.testing.assert_array_equal(loose.path_.dual_gaps, tight.path_.dual_gaps)


def test_relaxed_folds_are_scored_with_relaxed_coefficients():
    X, Y = regression(40, 8)
    model = GroupOWLRegressorCV(alphas=4, eps=0.1, cv=3, relaxed=True, tol=1e-9).fit(X, Y)
    by_hand = scores_by_hand(model, X, Y, list(KFold(3).split(X)), negative_mse, relaxed=True)
    np.testing.assert_allclose(model.score_path_, by_hand, rtol=1e-7)
    assert not np.allclose(model.coef_, model.penalized_coef_)
    assert model.verify(X, Y)


def test_class_weight_counts_in_fits_and_not_in_scores():
    X, y = classification(n_classes=2)
    factors = {"ant": 5.0, "bee": 0.5}
    model = GroupOWLClassifierCV(alphas=3, eps=0.05, cv=3, class_weight=factors, tol=1e-9).fit(X, y)
    splits = list(StratifiedKFold(3).split(X, y))
    by_hand = scores_by_hand(model, X, y, splits, negative_log_loss, class_weight=factors)
    np.testing.assert_allclose(model.score_path_, by_hand, rtol=1e-3)


def test_time_series_train_on_the_past():
    X, Y = regression()
    splits = list(TimeSeriesSplit(3).split(X))
    model = GroupOWLRegressorCV(alphas=3, eps=0.05, cv=TimeSeriesSplit(3), tol=1e-9).fit(X, Y)
    np.testing.assert_allclose(model.score_path_, scores_by_hand(model, X, Y, splits, negative_mse), rtol=1e-3)


def test_statistics_of_folds_change_nothing_but_the_time(monkeypatch):
    X, Y = regression(300, 6)
    calls = []
    from_arrays, from_blocks = go.SufficientStatistics.from_arrays, go.SufficientStatistics.from_blocks

    def counted(X, Y, sample_weight=None):
        calls.append(len(X))
        return from_arrays(X, Y, sample_weight)

    def counted_blocks(blocks):
        calls.append("all")
        return from_blocks(blocks)

    monkeypatch.setattr("groupowl.designs.statistics.SufficientStatistics.from_arrays", counted)
    monkeypatch.setattr("groupowl.designs.statistics.SufficientStatistics.from_blocks", counted_blocks)
    model = GroupOWLRegressorCV(alphas=10, eps=0.01, standardize=True)
    by_statistics = clone(model).fit(X, Y)
    assert calls == [60] * 5  # every sample once, and no Gram matrix of all of them
    by_data = clone(model).set_params(solver=go.WorkingSet(compress=False)).fit(X, Y)
    np.testing.assert_allclose(by_statistics.score_path_, by_data.score_path_, rtol=1e-3)
    np.testing.assert_array_equal(by_statistics.selection_frequency_, by_data.selection_frequency_)
    np.testing.assert_allclose(by_statistics.coef_, by_data.coef_, atol=1e-3)
    assert by_statistics.verify(X, Y)
    repeated = clone(model).set_params(cv=RepeatedKFold(n_splits=5, n_repeats=2, random_state=0)).fit(X, Y)
    assert repeated.score_path_.shape == (10, 10)
    named = clone(model).set_params(scoring="neg_mean_squared_error").fit(X, Y)
    np.testing.assert_allclose(named.score_path_, by_statistics.score_path_, rtol=1e-9)


# Choice -------------------------------------------------------------------------------------------------


def test_min_and_1se_choose_from_the_same_scores():
    X, Y = regression(40, 8)
    best = GroupOWLRegressorCV(alphas=15, eps=0.01).fit(X, Y)
    sparse = GroupOWLRegressorCV(alphas=15, eps=0.01, selection="1se").fit(X, Y)
    means, errors = sparse.mean_score_path_, sparse.std_error_path_
    np.testing.assert_array_equal(best.mean_score_path_, means)
    assert best.best_index_ == np.argmax(means)
    inside = means >= means.max() - errors[np.argmax(means)]
    assert sparse.alpha_ == sparse.alphas_[inside].max()
    assert sparse.alpha_ > best.alpha_


@pytest.mark.parametrize("selection", ["min", "1se"])
@pytest.mark.parametrize("kind", ["regression", "classification"])
def test_the_best_score_is_that_of_the_chosen_alpha(kind, selection):
    X, y = regression(40, 8) if kind == "regression" else classification()
    model = ESTIMATORS[kind](weights=["oscar", "linear"], alphas=8, eps=0.02, cv=3, selection=selection).fit(X, y)
    assert type(model.best_score_) is float
    assert model.best_score_ == model.mean_score_path_[model.best_index_]
    assert (model.best_score_ == model.mean_score_path_.max()) == (selection == "min")
    for found in model.search_results_:
        assert found["best_score"] == found["mean_score_path"][found["best_index"]]


def test_the_final_fit_is_that_of_one_alpha():
    X, Y = regression()
    model = GroupOWLRegressorCV(alphas=8, eps=0.02, tol=1e-10).fit(X, Y)
    single = GroupOWLRegressor(model.alpha_, tol=1e-10).fit(X, Y)
    np.testing.assert_allclose(model.coef_, single.coef_, atol=1e-4)
    np.testing.assert_allclose(model.path_.coefs[:, :, model.best_index_], model.coef_, atol=1e-4)
    assert model.alpha_ == model.alphas_[model.best_index_] == model.path_.alphas[model.best_index_]
    assert model.solve_result_.converged
    assert model.dual_gap_ <= single.dual_gap_
    assert model.verify(X, Y)


@pytest.mark.parametrize("kind", ["regression", "classification"])
def test_the_grid_is_that_of_a_path_on_all_data(kind):
    X, y = regression() if kind == "regression" else classification()
    weight = np.random.default_rng(3).uniform(0.1, 3.0, len(X))
    model = ESTIMATORS[kind](alphas=8, eps=0.02).fit(X, y, sample_weight=weight)
    loss = "squared" if kind == "regression" else "multinomial"
    path = group_owl_path(X, y, loss=loss, alphas=8, eps=0.02, sample_weight=weight)
    np.testing.assert_allclose(model.alphas_, path.alphas, rtol=1e-12)
    np.testing.assert_array_equal(model.path_.n_selected, path.n_selected)
    assert model.path_.n_selected[0] == 0


def test_alphas_of_the_user_are_all_scored_even_where_everything_is_explained():
    X, _ = regression()
    y = X[:, 0]
    model = GroupOWLRegressorCV(alphas=[1e-6, 0.1, 1e-4]).fit(X, y)
    assert model.alphas_.tolist() == [0.1, 1e-4, 1e-6]
    assert model.score_path_.shape == (3, 5)
    grid = GroupOWLRegressorCV(alphas=50, eps=1e-6).fit(X, y)  # a grid of our own ends early, and folds with it
    assert len(grid.alphas_) < 50
    assert grid.score_path_.shape == (len(grid.alphas_), 5)
    assert grid.path_.stopped_because == "deviance"


def test_selection_frequency_counts_folds():
    X, Y = regression()
    model = GroupOWLRegressorCV(alphas=5, eps=0.1, cv=3, selection="1se").fit(X, Y)
    counts = np.zeros(X.shape[1], dtype=int)
    for train, _ in KFold(3).split(X):
        counts += GroupOWLRegressor(model.alpha_).fit(X[train], Y[train]).get_support()
    np.testing.assert_array_equal(model.selection_frequency_, counts)
    assert 0 < counts.sum() < 3 * X.shape[1]


def test_several_weight_sequences_are_searched_at_once():
    X, Y = regression(40, 6)
    sequences = ["oscar", np.ones(6), lambda n_features, n_tasks, n_samples: np.linspace(1.0, 0.1, n_features)]
    model = GroupOWLRegressorCV(weights=sequences, alphas=6, eps=0.02, cv=3).fit(X, Y)
    alone = [GroupOWLRegressorCV(weights=item, alphas=6, eps=0.02, cv=3).fit(X, Y) for item in sequences]
    for found, single in zip(model.search_results_, alone, strict=True):
        np.testing.assert_allclose(found["alphas"], single.alphas_)  # each has a grid of its own
        np.testing.assert_allclose(found["score_path"], single.score_path_, rtol=1e-9)
        np.testing.assert_array_equal(found["weights"], single.weights_)
    best = max(alone, key=lambda single: single.mean_score_path_.max())
    assert len({single.mean_score_path_.max() for single in alone}) == 3
    np.testing.assert_array_equal(model.weights_, best.weights_)
    assert model.alpha_ == best.alpha_
    np.testing.assert_allclose(model.score_path_, best.score_path_, rtol=1e-9)


def test_a_list_of_numbers_is_one_sequence():
    X, Y = regression(d=3)
    model = GroupOWLRegressorCV(weights=[1.0, 0.5, 0.5], alphas=3).fit(X, Y)
    assert model.weights_.tolist() == [1.0, 0.5, 0.5]


# Information criteria -----------------------------------------------------------------------------------


def cluster_sizes(B):
    norms = np.linalg.norm(B, axis=1)
    norms = np.sort(norms[norms > 0])[::-1]
    starts = [i for i in range(len(norms)) if i == 0 or norms[i] < (1 - 1e-9) * norms[i - 1]]
    return np.diff([*starts, len(norms)])


def freedom_by_hand(X, Y, B, weight):
    """``tr(M (M + K)^-1)`` on a basis of the tangent space: radii of clusters, and what is orthogonal to each row."""
    (d, q), norms = B.shape, np.linalg.norm(B, axis=1)
    if not norms.any():
        return q
    center = weight @ X / weight.sum()
    Xc, root = X - center, np.sqrt(weight)[:, None]
    C = Xc.T @ (weight[:, None] * (Y - weight @ Y / weight.sum() - Xc @ B))
    basis, stiffness = [], []
    starts = np.flatnonzero(norms)[np.argsort(-norms[np.flatnonzero(norms)])]
    for members in np.split(starts, np.cumsum(cluster_sizes(B))[:-1]):
        radial = np.zeros((d, q))
        radial[members] = B[members] / norms[members, None]
        basis.append(radial / np.linalg.norm(radial))
        stiffness.append(0.0)
        for j in members:
            for direction in null_space(B[j][None, :]).T:
                basis.append(np.outer(np.arange(d) == j, direction))
                stiffness.append(C[j] @ B[j] / norms[j] ** 2)
    images = np.array([(root * (Xc @ T)).ravel() for T in basis])
    M = images @ images.T
    return float(np.trace(np.linalg.solve(M + np.diag(stiffness), M))) + q


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", ["aic", "bic", "ebic"])
def test_criteria_of_a_regression_by_hand(name, weighted):
    X, Y = regression(40, 6, 3)
    weight = np.random.default_rng(1).integers(0, 3, 40).astype(float) if weighted else np.ones(40)
    model = GroupOWLRegressorCV(selection=name, alphas=6, eps=0.02, tol=1e-10).fit(X, Y, sample_weight=weight)
    n, q, d = weight.sum(), 3, 6
    by_hand = []
    for i in range(6):
        B, intercept = model.path_.coefs[:, :, i].T, model.path_.intercepts[:, i]
        variance = np.sum(weight[:, None] * (Y - X @ B - intercept) ** 2) / (n * q)
        freedom = freedom_by_hand(X, Y, B, weight)
        price = {"aic": 2.0, "bic": log(n), "ebic": log(n)}[name] * freedom * n * q / (n * q - freedom - 1)
        if name == "ebic":
            price += log(comb(d, int(np.count_nonzero(B.any(axis=1)))))
        by_hand.append(n * q * (log(2 * pi * variance) + 1) + price)
    np.testing.assert_allclose(model.criterion_path_, by_hand, rtol=1e-7)
    assert model.best_index_ == np.argmin(by_hand)
    for name in ("score_path_", "best_score_", "selection_frequency_"):
        assert not hasattr(model, name)


def test_criteria_of_a_classification_by_hand():
    """With two classes nothing can turn: degrees of freedom are the clusters and the intercept."""
    X, y = classification(n_classes=2)
    model = GroupOWLClassifierCV(selection="bic", alphas=5, eps=0.05).fit(X, y)
    by_hand = []
    for alpha in model.alphas_:
        single = GroupOWLClassifier(alpha, tol=1e-9).fit(X, y)
        sizes = np.bincount(single.clusters_[single.clusters_ > 0])[1:]
        deviance = 2 * len(y) * log_loss(y, single.predict_proba(X))
        freedom, n = len(sizes) + 1, len(y)
        by_hand.append(deviance + log(n) * freedom * n / (n - freedom - 1))
    np.testing.assert_allclose(model.criterion_path_, by_hand, rtol=1e-5)


@pytest.mark.parametrize("relaxed", [False, True])
@pytest.mark.parametrize("loss", ["squared", "multinomial"])
def test_collinear_unpenalized_columns_count_once(loss, relaxed):
    """The criterion sees the rank of the unpenalized columns, beside the intercept, not their number."""
    X, y = regression(60, 6, 3) if loss == "squared" else classification(60, n_classes=3)
    estimator = GroupOWLRegressorCV if loss == "squared" else GroupOWLClassifierCV
    more = np.column_stack([X[:, 0], 2.0 * X[:, 0] - 1.0, np.ones(len(X))])  # the constant is the intercept's
    settings = {"selection": "aic", "alphas": [0.1, 0.05], "tol": 1e-10, "relaxed": relaxed}
    one = estimator(unpenalized=[0], **settings).fit(X, y)
    several = estimator(unpenalized=[0, *range(X.shape[1], X.shape[1] + 3)], **settings).fit(np.hstack([X, more]), y)
    np.testing.assert_allclose(several.criterion_path_, one.criterion_path_, atol=1e-5)


def test_a_relaxed_criterion_judges_the_relaxed_fit():
    X, Y = regression(40, 6, 1)
    y = Y[:, 0]
    model = GroupOWLRegressorCV(selection="bic", relaxed=True, alphas=5, eps=0.02).fit(X, y)
    for i, alpha in enumerate(model.alphas_):
        single = GroupOWLRegressor(alpha, relaxed=True).fit(X, y)
        deviance = 40 * (log(2 * pi * np.mean((y - single.predict(X)) ** 2)) + 1)
        freedom = single.get_support().sum() + 1
        expected = deviance + log(40) * freedom * 40 / (40 - freedom - 1)
        assert model.criterion_path_[i] == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("relaxed", [False, True])
@pytest.mark.parametrize("unpenalized", [None, [4]])
@pytest.mark.parametrize("kind", ["regression", "classification"])
def test_the_history_is_that_of_the_whole_fit(kind, unpenalized, relaxed):
    """The fit at alpha_ goes on beyond tol: what it took, proved and reached is what its history says."""
    X, y = regression(60, 40, 3) if kind == "regression" else classification(60)
    estimator = GroupOWLRegressorCV if kind == "regression" else GroupOWLClassifierCV
    model = estimator(selection="bic", alphas=6, eps=0.1, unpenalized=unpenalized, relaxed=relaxed).fit(X, y)
    result, history = model.solve_result_, model.solve_result_.history
    weight = np.ones(60)  # with which a fit is no single call of the kernel: searches go the same way
    single = model._single(model.alpha_, unpenalized=unpenalized).fit(X, y, weight).solve_result_
    assert len(history) >= len(single.history)
    assert history.iteration[-1] == result.n_iter == model.n_iter_ > single.n_iter
    assert single.history.passes[-1] <= history.passes[-1] <= result.n_passes
    assert history.seconds[-1] <= result.seconds
    assert result.gap == pytest.approx(history.gap.min(), rel=1e-6)
    assert result.gap < 0.1 * single.gap
    for column in (history.iteration, history.seconds, history.passes, -history.n_active):
        assert (np.diff(column) >= 0).all()
    assert result.screened_at.max() < len(history)
    np.testing.assert_array_equal(result.active, np.flatnonzero(result.screened_at < 0))
    assert len(result.active) <= len(single.active)
    assert not result.B[result.screened_at >= 0].any()


def test_a_criterion_needs_no_folds():
    X, Y = regression(2, 3)
    assert GroupOWLRegressorCV(selection="bic", alphas=3, cv=10).fit(X, Y).coef_.shape == (2, 3)


def test_a_refit_by_criterion_forgets_the_folds():
    X, Y = regression()
    model = GroupOWLRegressorCV(alphas=2).fit(X, Y)
    model.set_params(selection="bic").fit(X, Y)
    assert not hasattr(model, "score_path_")
    assert hasattr(model, "criterion_path_")


# Sample weights -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("selection", ["min", "1se", "bic"])
@pytest.mark.parametrize("kind", ["regression", "tall", "classification"])
def test_weight_two_is_the_sample_twice_and_zero_is_none(kind, selection):
    """With corresponding splits; the tall problem has its folds by subtraction."""
    X, y = {"regression": regression, "tall": lambda: regression(90), "classification": classification}[kind]()
    rng = np.random.default_rng(2)
    weight, part = rng.integers(0, 3, len(X)), np.arange(len(X)) % 3
    weight[:3] = 1  # every fold has samples
    Xr, yr, part_r = (np.repeat(array, weight, axis=0) for array in (X, y, part))
    estimator = GroupOWLClassifierCV if kind == "classification" else GroupOWLRegressorCV
    model = estimator(alphas=5, eps=0.05, selection=selection, tol=1e-9)

    def splits(part):
        return [(np.flatnonzero(part != f), np.flatnonzero(part == f)) for f in range(3)]

    weighted = clone(model).set_params(cv=splits(part)).fit(X, y, sample_weight=weight)
    repeated = clone(model).set_params(cv=splits(part_r)).fit(Xr, yr)
    np.testing.assert_allclose(weighted.alphas_, repeated.alphas_, rtol=1e-9)
    if selection == "bic":
        np.testing.assert_allclose(weighted.criterion_path_, repeated.criterion_path_, rtol=1e-6)
    else:
        np.testing.assert_allclose(weighted.score_path_, repeated.score_path_, rtol=1e-3)
        np.testing.assert_array_equal(weighted.selection_frequency_, repeated.selection_frequency_)
    assert weighted.best_index_ == repeated.best_index_
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=1e-3)


@pytest.mark.parametrize("cv", [None, 3])
def test_default_folds_do_not_see_samples_of_weight_zero(cv):
    X, y = classification(30)
    weight = np.ones(30)
    weight[::4] = 0.0
    model = GroupOWLClassifierCV(alphas=3, eps=0.1, cv=cv)
    weighted = clone(model).fit(X, y, sample_weight=weight)
    removed = clone(model).fit(X[weight > 0], y[weight > 0])
    np.testing.assert_allclose(weighted.score_path_, removed.score_path_, rtol=1e-6)


@pytest.mark.parametrize("kind", ["regression", "classes"])
@pytest.mark.parametrize("selection", ["min", "bic"])
def test_a_search_stopped_by_a_callback_keeps_what_its_path_has_found(kind, selection):
    """The final fit asks the callback as well, which still says stop: the chosen model is not thrown away."""
    data = go.datasets.make_correlated_groups(60, 30, 3, n_informative=3, random_state=0)
    y = data.Y if kind == "regression" else np.argmax(data.Y, axis=1) > 0
    estimator = go.GroupOWLRegressorCV if kind == "regression" else go.GroupOWLClassifierCV

    seen = []

    def stop(progress):  # from some moment on, as a limit of time does
        seen.append(progress.alpha_index)
        return max(seen) >= 6

    model = estimator(alphas=15, cv=3, selection=selection, standardize=True, callback=stop).fit(data.X, y)
    assert (model.path_.stopped_because, len(model.path_), len(model.alphas_)) == ("callback", 6, 6)
    assert model.path_.statuses.tolist() == 6 * ["converged"]
    assert model.solve_result_.status == "converged"
    at_alpha = model.path_.coefs[..., list(model.alphas_).index(model.alpha_)]
    np.testing.assert_allclose(model.coef_, at_alpha, rtol=0, atol=1e-4 * np.abs(at_alpha).max())
    assert model.coef_.any()
    assert model.verify(data.X, y)
