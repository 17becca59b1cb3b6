"""Cross-validated estimators: splitters, scorers, metadata, jobs, kinds of data, bad input."""

from __future__ import annotations

import re
import time
import warnings

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import accuracy_score, make_scorer, mean_absolute_error, r2_score
from sklearn.model_selection import GroupKFold, KFold, ShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import groupowl as go
from groupowl.estimators import GroupOWLClassifier, GroupOWLClassifierCV, GroupOWLRegressor, GroupOWLRegressorCV


def regression(n=30, d=5, q=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) + 1.0
    return X, X[:, :2] @ rng.standard_normal((2, q)) + rng.standard_normal((n, q))


def classification(n=40, d=5, n_classes=3, seed=0):
    X, y = make_classification(n, d, n_informative=3, n_redundant=0, n_classes=n_classes, random_state=seed)
    return X, np.array(["ant", "bee", "cat", "dog"])[y]


DATA = {
    "regression": (GroupOWLRegressorCV, regression),
    "tall": (GroupOWLRegressorCV, lambda: regression(200)),
    "classification": (GroupOWLClassifierCV, classification),
}


# Folds --------------------------------------------------------------------------------------------------


def test_groups_stay_together():
    X, Y = regression()
    groups = np.arange(len(X)) % 6
    by_groups = GroupOWLRegressorCV(alphas=3, cv=GroupKFold(3)).fit(X, Y, groups=groups)
    by_splits = GroupOWLRegressorCV(alphas=3, cv=list(GroupKFold(3).split(X, Y, groups))).fit(X, Y)
    others = GroupOWLRegressorCV(alphas=3, cv=3).fit(X, Y)
    np.testing.assert_array_equal(by_groups.score_path_, by_splits.score_path_)
    assert not np.allclose(by_groups.score_path_, others.score_path_)


def test_iterables_and_random_splits():
    X, Y = regression()
    splitter = ShuffleSplit(3, random_state=0)
    listed, generated, given = (
        GroupOWLRegressorCV(alphas=3, cv=cv).fit(X, Y).score_path_
        for cv in (list(splitter.split(X)), splitter.split(X), splitter)
    )
    np.testing.assert_array_equal(listed, generated)
    np.testing.assert_array_equal(listed, given)


@pytest.mark.parametrize("kept", [["ant"], ["ant", "bee"]])
def test_a_class_that_a_training_set_lacks(kept):
    """Its probability is zero there, and the loss is finite, as scikit-learn computes it."""
    X, y = classification()
    train, everything = np.flatnonzero(np.isin(y, kept)), np.arange(len(y))
    model = GroupOWLClassifierCV(alphas=3, eps=0.1, cv=[(train, everything), (everything, everything)]).fit(X, y)
    named = clone(model).set_params(scoring="neg_log_loss").fit(X, y)
    assert np.isfinite(model.score_path_).all()
    assert model.score_path_[:, 0].max() < -5.0  # a sure error costs 36
    np.testing.assert_allclose(model.score_path_, named.score_path_, rtol=1e-9)


# Scoring ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["r2", "mean absolute error"])
@pytest.mark.parametrize("weighted", [False, True])
def test_scorers_of_scikit_learn(name, weighted):
    X, Y = regression()
    weight = np.random.default_rng(0).uniform(0.1, 2.0, len(X)) if weighted else None
    metric, sign = (r2_score, 1.0) if name == "r2" else (mean_absolute_error, -1.0)
    scoring = "r2" if name == "r2" else make_scorer(mean_absolute_error, greater_is_better=False)
    model = GroupOWLRegressorCV(alphas=[1.0, 0.1], cv=3, scoring=scoring).fit(X, Y, sample_weight=weight)
    for f, (train, test) in enumerate(KFold(3).split(X)):
        train_weight, test_weight = (None, None) if weight is None else (weight[train], weight[test])
        for i, alpha in enumerate(model.alphas_):
            single = GroupOWLRegressor(alpha).fit(X[train], Y[train], sample_weight=train_weight)
            score = sign * metric(Y[test], single.predict(X[test]), sample_weight=test_weight)
            assert model.score_path_[i, f] == pytest.approx(score, abs=0.05)  # folds are fitted to 1e-4 only
    assert model.best_index_ == np.argmax(model.mean_score_path_)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("scoring", ["accuracy", "roc_auc_ovr", "neg_log_loss", "f1_macro"])
def test_scorers_that_ask_for_labels_or_probabilities(scoring, n_classes):
    X, y = classification(60, n_classes=n_classes)
    model = GroupOWLClassifierCV(alphas=4, eps=0.05, scoring=scoring).fit(X, y)
    assert np.isfinite(model.score_path_).all()
    if scoring == "neg_log_loss":
        default = GroupOWLClassifierCV(alphas=4, eps=0.05).fit(X, y)
        np.testing.assert_allclose(model.score_path_, default.score_path_, rtol=1e-9)


@pytest.mark.parametrize("values", [[2, 5, 7], ["x", "y", "z"]])
def test_labels_that_are_objects_are_scored_like_any(values):
    X, y = classification(60)
    labels = np.array(values)[np.unique(y, return_inverse=True)[1]]
    models = [
        GroupOWLClassifierCV(alphas=3, eps=0.1, cv=3, scoring="accuracy").fit(X, item)
        for item in (labels, labels.astype(object), pd.Series(labels, dtype=object))
    ]
    for model in models[1:]:
        np.testing.assert_array_equal(model.score_path_, models[0].score_path_)
        assert model.score(X, labels.astype(object)) == models[0].score(X, labels)
        assert model.verify(X, labels.astype(object))


def test_a_callable_gets_a_fitted_estimator_arrays_and_labels():
    X, y = classification()
    seen = []

    def scorer(estimator, X, y):
        seen.append((type(estimator), X.shape, set(y.tolist()), estimator.tol))
        return accuracy_score(y, estimator.predict(X))

    model = GroupOWLClassifierCV(alphas=3, cv=4, scoring=scorer, tol=1e-5).fit(X, y)
    named = GroupOWLClassifierCV(alphas=3, cv=4, scoring="accuracy", tol=1e-5).fit(X, y)
    np.testing.assert_array_equal(model.score_path_, named.score_path_)
    assert seen[0] == (GroupOWLClassifier, (10, 5), {"ant", "bee", "cat"}, 1e-5)


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
def test_a_scorer_gets_what_a_fit_would_have_given_it(kind):
    """Names, alpha and weights of the fit, a frame where X is one, and an estimator of its own each time."""
    X, Y = regression()
    frame, targets = kind(dict(zip("abcde", X.T, strict=True))), pd.DataFrame(Y, columns=["cost", "yield"])
    seen = []

    def scorer(estimator, X, y):
        assert isinstance(X, kind)
        seen.append(estimator)
        return r2_score(y, estimator.predict(X))

    settings = {"alphas": [0.5, 0.1], "cv": 3, "unpenalized": ["e"], "weights": ["oscar", "constant"]}
    model = GroupOWLRegressorCV(scoring=scorer, **settings).fit(frame, targets)
    assert len({id(estimator) for estimator in seen}) == len(seen) == 2 * 3 * 2
    first, last = seen[0], seen[-1]
    assert (first.alpha_, first.alpha, last.alpha_) == (0.5, 0.5, 0.1)
    assert list(first.feature_names_in_) == list("abcde")
    assert list(first.target_names_) == ["cost", "yield"]
    assert list(first.unpenalized_) == [4]
    assert "e" in first.selected_features_
    np.testing.assert_array_equal(first.weights_, model.search_results_[0]["weights"])
    np.testing.assert_array_equal(last.weights, np.ones(4))
    assert not np.array_equal(first.coef_, last.coef_)
    named = GroupOWLRegressorCV(scoring="r2", **settings).fit(frame, targets)
    np.testing.assert_array_equal(named.score_path_, model.score_path_)


def test_an_estimator_for_scorers_is_that_of_a_fit_to_the_fold():
    X, Y = regression()
    seen = []

    def scorer(estimator, X, y):
        seen.append(estimator)
        return 0.0

    GroupOWLRegressorCV(alphas=[0.2], cv=[(np.arange(20), np.arange(20, 30))], scoring=scorer).fit(X, Y)
    direct = GroupOWLRegressor(0.2).fit(X[:20], Y[:20])
    shared = {name for name in vars(seen[0]) if name.endswith("_")}
    assert shared >= {"alpha_", "coef_", "intercept_", "n_features_in_", "unpenalized_", "weights_"}
    assert shared <= vars(direct).keys()
    np.testing.assert_allclose(seen[0].coef_, direct.coef_, atol=0.05)  # folds are fitted to 1e-4 only


@pytest.mark.parametrize("shape", [(), (1,)])
def test_a_score_may_be_an_array_of_one_number(shape):
    X, Y = regression()
    model = GroupOWLRegressorCV(alphas=2, scoring=lambda estimator, X, y: np.full(shape, 7.0)).fit(X, Y)
    assert (model.score_path_ == 7.0).all()


def test_sequences_share_no_estimator_between_threads():
    """Folds are scored for several sequences at a time, each with coefficients of its own."""
    X, y = classification(60)

    def scorer(estimator, X, y):
        before = estimator.coef_.copy()
        time.sleep(0.002)
        assert np.array_equal(before, estimator.coef_)
        return accuracy_score(y, estimator.predict(X))

    model = GroupOWLClassifierCV(alphas=4, eps=0.05, cv=2, scoring=scorer, weights=["oscar", "constant", "bh"])
    one = clone(model).fit(X, y)
    with joblib.parallel_config("threading"):
        many = clone(model).set_params(n_jobs=6).fit(X, y)
    for found, expected in zip(many.search_results_, one.search_results_, strict=True):
        np.testing.assert_array_equal(found["score_path"], expected["score_path"])


def test_a_callable_without_sample_weight_is_called_without():
    X, Y = regression()
    model = GroupOWLRegressorCV(alphas=2, scoring=lambda estimator, X, y: float(len(y)))
    assert (model.fit(X, Y, sample_weight=np.full(30, 0.5)).score_path_ == 6.0).all()


def test_a_flat_target_stays_flat_for_scorers():
    X, Y = regression()
    shapes = set()

    def scorer(estimator, X, y):
        shapes.add((y.ndim, estimator.predict(X).ndim))
        return 0.0

    GroupOWLRegressorCV(alphas=2, scoring=scorer).fit(X, Y[:, 0])
    assert shapes == {(1, 1)}


# Data, jobs, progress -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["regression", "classification"])
def test_unpenalized_columns_in_folds(kind):
    estimator, make = DATA[kind]
    X, y = make()
    model = estimator(alphas=3, eps=0.2, cv=3, unpenalized=[4]).fit(X, y)
    assert model.selection_frequency_[4] == 3
    assert model.weights_.shape == (4,)
    assert 4 in model.path_[0].support
    assert model.verify(X, y)


@pytest.mark.parametrize("kind", ["regression", "tall", "classification"])
def test_sparse_data_give_the_same_scores(kind):
    estimator, make = DATA[kind]
    X, y = make()
    X = X * (np.random.default_rng(0).random(X.shape) < 0.5)
    for scoring in (None, "accuracy" if kind == "classification" else "r2"):
        model = estimator(alphas=3, eps=0.1, cv=3, scoring=scoring)
        dense, sparse = clone(model).fit(X, y), clone(model).fit(sp.csr_matrix(X), y)
        np.testing.assert_allclose(dense.score_path_, sparse.score_path_, atol=0.02)
        np.testing.assert_allclose(dense.coef_, sparse.coef_, atol=1e-3)


@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_two_jobs_give_the_answer_of_one(backend):
    """With a stochastic solver and several sequences, with statistics, with a scorer."""
    special = {"regression": {"solver": go.SPGD(), "weights": ["oscar", "constant"]}, "tall": {}}
    for kind, (estimator, make) in DATA.items():
        model = estimator(alphas=3, eps=0.1, cv=3, tol=1e-4, random_state=0)
        model.set_params(**special.get(kind, {"scoring": "accuracy"}))
        one = clone(model).fit(*make())
        with joblib.parallel_config(backend):
            two = clone(model).set_params(n_jobs=2).fit(*make())
        np.testing.assert_array_equal(one.score_path_, two.score_path_)
        np.testing.assert_array_equal(one.coef_, two.coef_)


def test_float32_stays_float32():
    X, Y = regression()
    model = GroupOWLRegressorCV(alphas=3, tol=1e-4).fit(X.astype(np.float32), Y)
    assert model.coef_.dtype == model.predict(X.astype(np.float32)).dtype == np.float32


def test_progress_is_printed(capsys):
    X, Y = regression()
    GroupOWLRegressorCV(alphas=3, cv=3, verbose=1).fit(X, Y)
    printed = capsys.readouterr().err
    lines = printed.splitlines()
    name = "GroupOWLRegressorCV"
    shares, lines = zip(*(line.split(" % ") for line in lines), strict=True)
    assert list(map(int, shares)) == [25, 50, 75, 100, 100]
    assert lines[0].startswith(f"{name}, all data: alpha 3 of 3, ")
    assert [line.partition(": ")[0] for line in lines[1:4]] == [f"{name}, fold {f}/3" for f in (1, 2, 3)]
    assert all(re.fullmatch(r"3 alphas, \d+\.\d s", line.partition(": ")[2]) for line in lines[1:4])
    assert lines[4].startswith(f"{name}, final fit: ")
    GroupOWLRegressorCV(alphas=3, cv=3).fit(X, Y)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("selection", ["min", "bic"])
def test_progress_says_which_weights(selection, capsys):
    X, Y = regression()
    weights = ["oscar", np.ones(5), "bh"]
    GroupOWLRegressorCV(alphas=3, cv=2, verbose=1, weights=weights, selection=selection).fit(X, Y)
    parts = [line.partition(": ")[0].split(", ", 1)[1] for line in capsys.readouterr().err.splitlines()]
    names = ["weights 1/3 (oscar)", "weights 2/3 (array 2)", "weights 3/3 (bh)"]
    expected = [f"{name}, all data" for name in names]
    if selection == "min":
        expected += [f"{name}, fold {f}/2" for name in names for f in (1, 2)]
    assert parts == [*expected, "final fit"]


@pytest.mark.parametrize("sample_weight", [1e-320, 1e300])
@pytest.mark.parametrize("kind", ["regression", "tall"])
def test_only_ratios_of_sample_weights_matter(kind, sample_weight):
    estimator, make = DATA[kind]
    X, Y = make()
    plain = estimator(alphas=3, cv=3).fit(X, Y)
    scaled = estimator(alphas=3, cv=3).fit(X, Y, sample_weight=np.full(len(X), sample_weight))
    np.testing.assert_allclose(scaled.score_path_, plain.score_path_, rtol=1e-6)


def test_a_sample_that_outweighs_all_others():
    X, Y = regression(200)
    weight = np.r_[1e20, np.ones(199)]
    model = GroupOWLRegressorCV(alphas=[0.5, 0.1], cv=3).fit(X, Y, sample_weight=weight)
    train, test = next(KFold(3).split(X))  # trains without that sample, and then nothing else is tested
    for i, alpha in enumerate(model.alphas_):
        single = GroupOWLRegressor(alpha).fit(X[train], Y[train])
        score = -np.mean((Y[test[0]] - single.predict(X[test[:1]])) ** 2)
        assert model.score_path_[i, 0] == pytest.approx(score, rel=0.05)  # folds are fitted to 1e-4 only


@pytest.mark.parametrize("kind", ["regression", "tall"])
def test_targets_whose_scores_nearly_overflow(kind):
    """Squares of the scores overflow, and no warning says so: neither the scores nor their errors do."""
    estimator, make = DATA[kind]
    X, Y = make()
    model = estimator(alphas=3, cv=3, selection="1se")
    large, plain = clone(model).fit(X, 2.0**500 * Y), clone(model).fit(X, Y)
    np.testing.assert_allclose(large.score_path_, 2.0**1000 * plain.score_path_, rtol=1e-4)
    np.testing.assert_allclose(large.std_error_path_, 2.0**1000 * plain.std_error_path_, rtol=1e-3)
    assert large.best_index_ == plain.best_index_


def test_fits_that_fall_short_are_named_once():
    X, y = classification()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        GroupOWLClassifierCV(alphas=5, cv=3, max_iter=1, tol=1e-9).fit(X, y)
    messages = [str(item.message) for item in caught if item.category is ConvergenceWarning]
    assert len(messages) == len(caught) == 2
    assert "fits of the folds stopped short" in messages[0]
    assert "alphas fell short of tol" in messages[1]
    assert all(item.filename == __file__ for item in caught)


# Metadata -----------------------------------------------------------------------------------------------


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def test_groups_are_routed_to_the_splitter(routing):
    X, Y = regression()
    groups = np.arange(len(X)) % 6
    model = GroupOWLRegressorCV(alphas=3, cv=GroupKFold(3)).fit(X, Y, groups=groups)
    by_splits = GroupOWLRegressorCV(alphas=3, cv=list(GroupKFold(3).split(X, Y, groups))).fit(X, Y)
    np.testing.assert_array_equal(model.score_path_, by_splits.score_path_)


def test_sample_weight_is_routed_to_scorers_that_request_it(routing):
    X, Y = regression()
    weight = np.random.default_rng(0).uniform(0.1, 2.0, len(X))
    without, with_weight = (
        GroupOWLRegressorCV(alphas=3, scoring=make_scorer(r2_score).set_score_request(sample_weight=wanted))
        .fit(X, Y, sample_weight=weight)
        .score_path_
        for wanted in (False, True)
    )
    assert not np.allclose(without, with_weight)
    with sklearn.config_context(enable_metadata_routing=False):
        plain = GroupOWLRegressorCV(alphas=3, scoring="r2").fit(X, Y, sample_weight=weight)
    np.testing.assert_array_equal(with_weight, plain.score_path_)


def test_the_default_score_needs_no_request(routing):
    X, Y = regression()
    weight = np.random.default_rng(0).uniform(0.1, 2.0, len(X))
    routed = GroupOWLRegressorCV(alphas=3).fit(X, Y, sample_weight=weight)
    with sklearn.config_context(enable_metadata_routing=False):
        plain = GroupOWLRegressorCV(alphas=3).fit(X, Y, sample_weight=weight)
    np.testing.assert_array_equal(routed.score_path_, plain.score_path_)


def test_metadata_pass_through_a_pipeline(routing):
    X, Y = regression()
    groups, weight = np.arange(len(X)) % 6, np.random.default_rng(0).uniform(0.1, 2.0, len(X))
    model = GroupOWLRegressorCV(alphas=3, cv=GroupKFold(3)).set_fit_request(sample_weight=True)
    pipe = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), model)
    pipe.fit(X, Y, groups=groups, sample_weight=weight)
    alone = clone(model).fit(StandardScaler().fit_transform(X), Y, groups=groups, sample_weight=weight)
    np.testing.assert_array_equal(pipe[-1].score_path_, alone.score_path_)


# Bad input ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"cv": 31}, ValueError, "has 30 samples of positive weight, but 31 folds need at least 31. Use fewer"),
        ({"cv": 1}, ValueError, "cv must be at least 2 folds, got 1"),
        ({"cv": "five"}, TypeError, "cv must be None, a number of folds"),
        ({"cv": 2.5}, TypeError, "cv must be None, a number of folds"),
        ({"cv": []}, ValueError, "no samples to score"),
        ({"cv": GroupKFold(3)}, ValueError, "groups"),
        ({"selection": "best"}, ValueError, "selection must be one of 'min', '1se', 'aic', 'bic', 'ebic'; got 'best'"),
        ({"scoring": "speed"}, ValueError, "speed"),
        ({"scoring": 3}, TypeError, "scoring must be None, the name of a scorer or a callable"),
        (
            {"scoring": r2_score},
            ValueError,
            r"scoring=r2_score is a function of targets and predictions.*Use sklearn.metrics.make_scorer\(r2_score\)",
        ),
        ({"scoring": len}, TypeError, r"scoring=<built-in function len> failed on a fold.*a scorer\(estimator, X, y\)"),
        ({"scoring": lambda estimator: 1.0}, TypeError, r"scoring=.* failed on a fold with 6 test samples: .*argument"),
        (
            {"scoring": lambda estimator, X, y: np.ones(2)},
            ValueError,
            r"scoring must return a number, got array\(\[1\., 1\.\]\) of type ndarray",
        ),
        ({"scoring": lambda estimator, X, y: "good"}, ValueError, "scoring must return a number, got 'good'"),
        ({"scoring": lambda estimator, X, y: np.nan}, ValueError, "every mean score is NaN"),
        ({"alphas": 0}, ValueError, "alphas must be at least 1"),
        ({"alphas": [0.1, -1.0]}, ValueError, "alphas: all must be positive, got -1 among them"),
        ({"alphas": "many"}, TypeError, "alphas must be an integer"),
        ({"eps": 2.0}, ValueError, "eps must lie in"),
        ({"tol": 0.0}, ValueError, "tol must be"),
        ({"weights": []}, ValueError, "weights is an empty list"),
        ({"weights": ["oscar", "oskar"]}, ValueError, "weights must be one of"),
        ({"unpenalized": ["age"]}, ValueError, "age"),
        ({"relaxed": "yes"}, TypeError, "relaxed must be True or False"),
    ],
)
def test_bad_settings_are_refused_and_an_earlier_fit_stays(settings, error, message):
    X, Y = regression()
    model = GroupOWLRegressorCV(alphas=2).fit(X, Y)
    before = {name: value for name, value in vars(model).items() if name.endswith("_")}
    with pytest.raises(error, match=message):
        model.set_params(**settings).fit(X[:, ::-1], Y)
    after = {name: value for name, value in vars(model).items() if name.endswith("_")}
    assert before.keys() == after.keys()
    assert all(before[name] is after[name] for name in before)


def test_1se_with_one_split_is_refused():
    X, Y = regression()
    with pytest.raises(ValueError, match="at least two folds"):
        GroupOWLRegressorCV(alphas=2, cv=[(np.arange(20), np.arange(20, 30))], selection="1se").fit(X, Y)


def test_fewer_samples_than_folds():
    """By default each sample of positive weight is a fold; a number of folds is taken at its word."""
    X, Y = regression(12, 3)
    assert GroupOWLRegressorCV(alphas=2).fit(X[:4], Y[:4]).score_path_.shape == (2, 4)
    weight = np.r_[np.ones(3), np.zeros(9)]
    assert GroupOWLRegressorCV(alphas=2).fit(X, Y, sample_weight=weight).score_path_.shape == (2, 3)
    with pytest.raises(ValueError, match=r"has 4 samples of positive weight, but 5 folds need at least 5\. Use fewer"):
        GroupOWLRegressorCV(alphas=2, cv=5).fit(X[:4], Y[:4])


def test_a_class_with_fewer_samples_than_folds():
    X, y = classification(33, n_classes=2)
    y[:3] = "cat"
    with pytest.raises(ValueError, match="class 'cat' has 3 samples of positive weight, but 4 folds need"):
        GroupOWLClassifierCV(alphas=2, cv=4).fit(X, y)
    assert GroupOWLClassifierCV(alphas=2).fit(X, y).score_path_.shape == (2, 3)  # by default there are fewer folds
    y[1:3] = "ant"
    with pytest.raises(ValueError, match="class 'cat' has 1 sample of positive weight"):
        GroupOWLClassifierCV(alphas=2).fit(X, y)
    assert np.isfinite(GroupOWLClassifierCV(alphas=2, cv=KFold(3)).fit(X, y).score_path_).all()


def test_one_class_and_one_sample():
    X, _ = classification()
    with pytest.raises(ValueError, match="one class"):
        GroupOWLClassifierCV().fit(X, np.zeros(len(X)))
    with pytest.raises(ValueError, match=r"n_samples = 1\) has 1 sample .* 2 folds need at least 2\. .* criterion"):
        GroupOWLRegressorCV().fit(X[:1], [1.0])


def test_training_sets_without_weight_are_refused():
    X, Y = regression()
    with pytest.raises(ValueError, match="no training samples of positive weight"):
        GroupOWLRegressorCV(alphas=2, cv=KFold(2)).fit(X, Y, sample_weight=np.arange(30) < 15)


def test_unknown_metadata_are_refused():
    X, Y = regression()
    with pytest.raises(TypeError, match="unknown argument 'batch'"):
        GroupOWLRegressorCV(alphas=2).fit(X, Y, batch=np.ones(len(X)))


@pytest.mark.parametrize("cv", [None, 3, [(range(40), range(40, 60))]])
def test_groups_need_a_splitter_that_keeps_them(cv):
    data = go.datasets.make_correlated_groups(60, 10, 2, random_state=0)
    with pytest.raises(ValueError, match=r"does not keep groups together.*GroupKFold"):
        go.GroupOWLRegressorCV(alphas=3, cv=cv).fit(data.X, data.Y, groups=np.arange(60) % 4)


def test_criteria_count_samples_and_not_class_weights():
    data = go.datasets.make_correlated_groups(60, 10, 3, task="classification", random_state=0)
    labels = data.Y.argmax(axis=1)
    chosen = [
        go.GroupOWLClassifierCV(alphas=10, eps=0.05, selection="bic", class_weight=dict.fromkeys(range(3), size))
        .fit(data.X, labels)
        .criterion_path_
        for size in (1e-3, 1.0, 100.0)
    ]
    np.testing.assert_allclose(chosen[0], chosen[1], rtol=1e-6)
    np.testing.assert_allclose(chosen[2], chosen[1], rtol=1e-6)
