"""Estimators on data that are not in memory: on a Dask cluster, on disk, or known by their statistics only."""

from __future__ import annotations

import copy
from functools import cache

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone

import groupowl as go

N, D = 240, 20


@cache
def make_data():
    data = go.datasets.make_correlated_groups(N, D, 3, random_state=1)
    labels = np.array(["low", "mid", "top"])[np.argmax(data.Y, axis=1)]
    weight = np.random.default_rng(0).integers(0, 3, N).astype(float)
    return data.X, data.Y, labels, weight


@pytest.fixture(autouse=True)
def _here():
    """Task graphs in this process and thread."""
    with dask.config.set(scheduler="synchronous"):
        yield


def far(array, rows=70):
    return da.from_array(array, chunks=(rows, *array.shape[1:]))


def assert_same_fit(one, other, atol=1e-10):
    np.testing.assert_allclose(one.coef_, other.coef_, atol=atol)
    np.testing.assert_allclose(one.intercept_, other.intercept_, atol=atol)
    assert one.coef_.dtype == other.coef_.dtype


# Dask ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings",
    [{}, {"standardize": True}, {"unpenalized": [2, 4]}, {"fit_intercept": False}, {"relaxed": True}],
    ids=str,
)
def test_regression_on_dask(settings):
    X, Y, _, weight = make_data()
    model = go.GroupOWLRegressor(**settings, tol=1e-13)  # beyond: both are solved by other ways
    here, there = clone(model).fit(X, Y, weight), clone(model).fit(far(X), far(Y, 100), far(weight, 240))
    assert_same_fit(here, there)
    predicted = there.predict(far(X))
    assert isinstance(predicted, da.Array)
    np.testing.assert_allclose(predicted.compute(), here.predict(X), atol=1e-10)
    assert there.verify(far(X), far(Y), far(weight))
    assert there.verify(X, Y, weight)
    assert not there.verify(far(X), far(Y + 0.1 * X[:, :1]), far(weight))


def test_one_target_and_single_precision_on_dask():
    X, Y, _, _ = make_data()
    there = go.GroupOWLRegressor().fit(far(X.astype(np.float32)), far(Y[:, 0]))
    assert_same_fit(go.GroupOWLRegressor().fit(X.astype(np.float32), Y[:, 0]), there, atol=1e-6)
    assert there.predict(far(X.astype(np.float32))).shape == (N,)
    assert there.predict(far(X.astype(np.float32))).dtype == np.float32


@pytest.mark.parametrize("class_weight", [None, "balanced", {"low": 2.0}])
def test_classification_on_dask(class_weight):
    X, _, labels, weight = make_data()
    model = go.GroupOWLClassifier(class_weight=class_weight, tol=1e-12)  # beyond: both are solved by other ways
    here, there = clone(model).fit(X, labels, weight), clone(model).fit(far(X), far(labels, 90), far(weight))
    assert_same_fit(here, there)
    assert there.classes_.tolist() == ["low", "mid", "top"]
    assert there.predict(far(X)).compute().tolist() == here.predict(X).tolist()
    for method in ("predict_proba", "predict_log_proba", "decision_function"):
        computed = getattr(there, method)(far(X))
        assert computed.shape == computed.compute().shape == (N, 3)
        np.testing.assert_allclose(computed.compute(), getattr(here, method)(X), atol=1e-10)
    assert there.verify(far(X), far(labels), far(weight))


def test_class_weights_of_labels_need_them_here():
    X, Y, _, _ = make_data()
    with pytest.raises(ValueError, match=r"class_weight='balanced' of label indicators needs y in this process"):
        go.GroupOWLClassifier(class_weight="balanced").fit(far(X), far((Y > 0).astype(float)))


def test_two_classes_on_dask():
    X, _, labels, _ = make_data()
    two = labels == "low"
    model = go.GroupOWLClassifier(tol=1e-12)  # the ways differ, so that what they find agrees to the tolerance only
    here, there = clone(model).fit(X, two), model.fit(far(X), far(two))
    assert_same_fit(here, there)
    assert there.predict(far(X)).compute().tolist() == here.predict(X).tolist()
    assert there.predict_proba(far(X)).compute().shape == (N, 2)
    assert there.decision_function(far(X)).compute().shape == (N,)


def test_names_of_dask_frames():
    X, Y, _, _ = make_data()
    names = [f"gene {j}" for j in range(D)]
    frame = dd.from_pandas(pd.DataFrame(X, columns=names), npartitions=3)
    targets = dd.from_pandas(pd.DataFrame(Y, columns=["a", "b", "c"]), npartitions=2)
    there = go.GroupOWLRegressor(unpenalized=["gene 3"], tol=1e-13).fit(frame, targets)
    assert there.feature_names_in_.tolist() == names
    assert there.target_names_.tolist() == ["a", "b", "c"]
    assert "gene 3" in there.selected_features_
    assert_same_fit(go.GroupOWLRegressor(unpenalized=[3], tol=1e-13).fit(X, Y), there)
    with pytest.raises(ValueError, match="feature names of X should match"):
        there.predict(frame[names[::-1]])
    path = go.group_owl_path(frame, targets, alphas=3, eps=0.5)
    assert list(path.feature_names) == names


def test_cross_validation_on_dask_by_statistics(monkeypatch):
    """The same scores and the same choice, from one pass for all folds."""
    from groupowl.designs import DaskDesign

    X, Y, _, weight = make_data()
    made = []
    original = DaskDesign.statistics_of_parts
    monkeypatch.setattr(
        DaskDesign, "statistics_of_parts", lambda self, *args: made.append(args[-1]) or original(self, *args)
    )
    model = go.GroupOWLRegressorCV(alphas=15, eps=0.01)
    here, there = clone(model).fit(X, Y, weight), clone(model).fit(far(X), far(Y), far(weight))
    assert made == [5]
    assert here.best_index_ == there.best_index_
    np.testing.assert_allclose(there.score_path_, here.score_path_, rtol=1e-3)  # folds are solved to 1e-4
    assert_same_fit(here, there, atol=1e-8)


def test_criteria_on_dask():
    X, Y, labels, _ = make_data()
    model = go.GroupOWLRegressorCV(alphas=8, eps=0.05, selection="bic")
    assert_same_fit(clone(model).fit(X, Y), clone(model).fit(far(X), far(Y)), atol=1e-8)
    chosen = go.GroupOWLClassifierCV(alphas=4, eps=0.2, selection="bic").fit(far(X), far(labels))
    assert chosen.verify(far(X), far(labels))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda X, Y, labels: go.GroupOWLClassifierCV().fit(X, labels), "do not serve classes"),
        (lambda X, Y, labels: go.GroupOWLRegressorCV(scoring="r2").fit(X, Y), "do not serve scoring"),
        (lambda X, Y, labels: go.GroupOWLRegressorCV(relaxed=True).fit(X, Y), "do not serve relaxed"),
        (lambda X, Y, labels: go.GroupOWLRegressorCV(unpenalized=[0]).fit(X, Y), "do not serve unpenalized"),
        (
            lambda X, Y, labels: go.GroupOWLRegressorCV(cv=[(np.arange(50), np.arange(60, 90))]).fit(X, Y),
            "train each fold on all samples",
        ),
        (lambda X, Y, labels: go.GroupOWLRegressor(solver="spgd").fit(X, Y), "solver='spgd'"),
        (lambda X, Y, labels: go.GroupOWLRegressor().fit(X, Y[:100]), "X has 240 rows"),
        (lambda X, Y, labels: go.GroupOWLRegressor().fit(X, Y).predict(X[:, :5]), "X has 5 features"),
        (lambda X, Y, labels: go.GroupOWLClassifier().fit(X, labels[:0].rechunk(1)), "one class|no samples|empty"),
        (lambda X, Y, labels: go.GroupOWLClassifier().fit(X, da.ones(240, chunks=80)), "one class only"),
        (lambda X, Y, labels: go.GroupOWLRegressor().fit(X, None), "y"),
    ],
)
def test_what_dask_cannot_do_is_said(make, message):
    X, Y, labels, _ = make_data()
    with pytest.raises((ValueError, TypeError), match=message):
        make(far(X), far(Y), far(labels))


# On disk ------------------------------------------------------------------------------------------------


@pytest.fixture
def stored(tmp_path):
    path = tmp_path / "X.npy"
    np.save(path, make_data()[0])
    return path


@pytest.mark.parametrize(
    "model",
    [
        go.GroupOWLRegressor(standardize=True),
        go.GroupOWLRegressor(relaxed=True, unpenalized=[1]),
        go.GroupOWLRegressorCV(alphas=6, eps=0.1),
        go.GroupOWLRegressorCV(alphas=6, eps=0.1, scoring="r2"),
    ],
    ids=str,
)
def test_regression_on_disk(stored, model):
    X, Y, _, weight = make_data()
    design = go.MemmapDesign(stored, max_memory="20MB")
    here, there = clone(model).fit(X, Y, weight), clone(model).fit(design, Y, weight)
    assert_same_fit(here, there, atol=1e-8)
    np.testing.assert_allclose(there.predict(design), here.predict(X), atol=1e-8)
    assert there.verify(design, Y, weight)
    if "alphas" in model.get_params():
        np.testing.assert_allclose(there.score_path_, here.score_path_, rtol=1e-3)


def test_classification_on_disk(stored):
    X, _, labels, _ = make_data()
    design = go.MemmapDesign(stored, max_memory="20MB")
    model = go.GroupOWLClassifierCV(alphas=4, eps=0.2)
    here, there = clone(model).fit(X, labels), clone(model).fit(design, labels)
    assert_same_fit(here, there, atol=1e-7)
    assert there.predict(design).tolist() == here.predict(X).tolist()


def test_a_path_on_disk_is_verified_in_few_passes(stored):
    _, Y, _, _ = make_data()
    model = go.GroupOWLRegressorCV(alphas=40, eps=0.05).fit(go.MemmapDesign(stored, max_memory="100MB"), Y)
    design = go.MemmapDesign(stored, max_memory="100MB")
    assert model.verify(design, Y, scores=False)
    assert design.file_passes < 15
    wrong = copy.deepcopy(model)
    point = wrong.path_.points[-1]
    object.__setattr__(point, "rows", 1.001 * point.rows)
    assert not wrong.verify(design, Y, scores=False)


@pytest.mark.parametrize("alpha", [None, -1.0, "best"])
def test_alpha_is_checked_before_the_data_are_read(stored, alpha):
    _, Y, _, _ = make_data()
    design = go.MemmapDesign(stored, max_memory="20MB")
    with pytest.raises((TypeError, ValueError), match="alpha must be"):
        go.GroupOWLRegressor(alpha).fit(design, Y)
    assert design.bytes_read == 0


def test_a_path_is_data(stored):
    X, Y, _, _ = make_data()
    assert_same_fit(go.GroupOWLRegressor().fit(X, Y), go.GroupOWLRegressor().fit(str(stored), Y))
    assert_same_fit(go.GroupOWLRegressor().fit(X, Y), go.GroupOWLRegressor().fit(np.load(stored, mmap_mode="r"), Y))
    with pytest.raises(FileNotFoundError, match="does not exist"):
        go.GroupOWLRegressor().fit(stored.with_name("none.npy"), Y)


# Statistics ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("settings", [{}, {"standardize": True}, {"fit_intercept": False}], ids=str)
def test_a_fit_from_statistics(settings):
    X, Y, _, weight = make_data()
    known = go.SufficientStatistics.from_arrays(X, Y, weight)
    model = go.GroupOWLRegressor(**settings)
    here, there = clone(model).fit(X, Y, weight), clone(model).fit(known)
    assert_same_fit(here, there)
    assert there.verify(known)
    assert there.verify(X, Y, weight)
    assert not clone(model).set_params(alpha=0.2).fit(known).verify(go.SufficientStatistics.from_arrays(X, Y))


def test_paths_and_solves_from_statistics():
    X, Y, _, weight = make_data()
    known = go.SufficientStatistics.from_arrays(X, Y, weight)
    here, there = go.group_owl_path(X, Y, sample_weight=weight, alphas=6), go.group_owl_path(known, alphas=6)
    np.testing.assert_allclose(there.alphas, here.alphas, rtol=1e-9)
    np.testing.assert_allclose(there.coefs, here.coefs, atol=1e-6)
    lam = 0.3 * go.lam_max(X, Y, "oscar", sample_weight=weight) * go.weights.oscar(D)
    one, other = go.solve(X, Y, lam, sample_weight=weight), go.solve(known, None, lam)
    assert abs(one.primal - other.primal) <= one.gap + other.gap
    with pytest.warns(UserWarning, match="columns 17 and 18 have a correlation of"):
        counting = go.group_owl_path(known, weights="chi_gauss", alphas=2)  # which depends on the number of samples
    n_samples = int(np.count_nonzero(weight))
    np.testing.assert_allclose(counting.weights, go.weights.chi_gauss(D, Y.shape[1], n_samples))


@pytest.mark.parametrize("weights", ["oscar", "chi_gauss"])  # which counts samples
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_the_largest_strength_from_statistics(fit_intercept, weights):
    X, Y, _, weight = make_data()
    statistics = go.SufficientStatistics.from_arrays(X, Y, weight)
    known = {"oscar": go.weights.oscar(D), "chi_gauss": go.weights.chi_gauss(D, Y.shape[1], np.count_nonzero(weight))}
    expected = go.lam_max(X, Y, known[weights], fit_intercept=fit_intercept, sample_weight=weight)
    assert go.lam_max(statistics, None, weights, fit_intercept=fit_intercept) == pytest.approx(expected, rel=1e-12)
    with pytest.raises(ValueError, match="leave the targets, y or Y, out"):
        go.lam_max(statistics, Y, weights)


def test_folds_from_statistics():
    """Collected apart, for example on several days: one statistics for each fold is all that is needed."""
    X, Y, _, _ = make_data()
    tests = [np.arange(N)[i::4] for i in range(4)]
    splits = [(np.setdiff1d(np.arange(N), test), test) for test in tests]
    here = go.GroupOWLRegressorCV(alphas=10, eps=0.05, cv=splits).fit(X, Y)
    there = go.GroupOWLRegressorCV(alphas=10, eps=0.05).fit([
        go.SufficientStatistics.from_arrays(X[test], Y[test]) for test in tests
    ])  # fmt: skip
    np.testing.assert_allclose(there.score_path_, here.score_path_, rtol=1e-3)
    assert_same_fit(here, there, atol=1e-8)
    total = go.SufficientStatistics.from_arrays(X, Y)
    chosen = go.GroupOWLRegressorCV(alphas=8, eps=0.05, selection="aic").fit(total)
    assert_same_fit(go.GroupOWLRegressorCV(alphas=8, eps=0.05, selection="aic").fit(X, Y), chosen, atol=1e-8)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda known: go.GroupOWLRegressorCV().fit(known), r"fit\(\[first, second"),
        (lambda known: go.GroupOWLRegressorCV().fit([known]), "at least two folds"),
        (lambda known: go.GroupOWLClassifier().fit(known), "needs the samples themselves"),
        (lambda known: go.GroupOWLRegressor().fit(known, np.zeros(3)), "leave y out"),
        (lambda known: go.GroupOWLRegressor(unpenalized=[0]).fit(known), "unpenalized columns need the samples"),
        (lambda known: go.group_owl_path(known, loss="multinomial"), "loss='squared' only"),
        (lambda known: go.solve(known, None, np.ones(3)), "lam"),
        (lambda known: go.solve(known, None, np.ones(D), sample_weight=np.ones(4)), "leave sample_weight out"),
    ],
)
def test_what_statistics_cannot_do_is_said(make, message):
    X, Y, _, _ = make_data()
    with pytest.raises(ValueError, match=message):
        make(go.SufficientStatistics.from_arrays(X, Y))


@pytest.mark.parametrize("sparse", [False, True])
def test_statistics_of_dask_collections(sparse):
    X, Y, _, weight = make_data()
    weight = np.where(np.arange(N) < 80, 0.0, weight)  # a block without samples
    there = far(X).map_blocks(sp.csr_array) if sparse else far(X)
    known, collected = (
        go.SufficientStatistics.from_arrays(X, Y, weight),
        go.SufficientStatistics.from_dask(there, far(Y, 100), weight),
    )
    assert collected.n_samples == known.n_samples
    for name in ("x_mean", "y_mean", "gram", "xy", "yy", "total_weight"):
        np.testing.assert_allclose(getattr(collected, name), getattr(known, name), rtol=1e-10, atol=1e-10)
    frame = dd.from_pandas(pd.DataFrame(X, columns=[f"x{j}" for j in range(D)]), npartitions=3)
    np.testing.assert_allclose(
        go.SufficientStatistics.from_dask(frame, Y).xy, go.SufficientStatistics.from_arrays(X, Y).xy
    )
    with pytest.raises(ValueError, match=r"X has 240 rows, Y has 50 \(shape"):
        go.SufficientStatistics.from_dask(there, Y[:50])
    with pytest.raises(ValueError, match="at least one sample must have a positive weight"):
        go.SufficientStatistics.from_dask(there, Y, np.zeros(N))
    Y = Y.copy()
    Y[75] = np.nan
    with pytest.raises(ValueError, match="Y in block 1"):
        go.SufficientStatistics.from_dask(there, Y)


def test_statistics_on_file(tmp_path):
    X, Y, _, weight = make_data()
    known = go.SufficientStatistics.from_arrays(X, Y, weight)
    known.save(tmp_path / "day1")
    again = go.SufficientStatistics.load(tmp_path / "day1.npz")
    for name in vars(known):
        np.testing.assert_array_equal(getattr(again, name), getattr(known, name))
    assert (again + known).n_samples == 2 * known.n_samples
    assert [path.name for path in tmp_path.iterdir()] == ["day1.npz"]
    content = (tmp_path / "day1.npz").read_bytes()
    (tmp_path / "cut.npz").write_bytes(content[: len(content) // 2])
    np.savez(tmp_path / "other.npz", a=np.zeros(3))
    for name in ("cut", "other"):
        with pytest.raises(ValueError, match="not a complete file of SufficientStatistics"):
            go.SufficientStatistics.load(tmp_path / name)
    with pytest.raises(FileNotFoundError):
        go.SufficientStatistics.load(tmp_path / "none")
