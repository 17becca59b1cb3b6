"""Stability selection: what halves return, what is undecided, the promise, and the same bits however it is run."""

import json

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

import groupowl as go
from groupowl._progress import CountedLine
from groupowl.inference import StabilitySelector
from groupowl.inference.stability_bounds import false_selections
from groupowl.inference.stability_halves import HalfFits, draw_pair

FITTED = (
    "support_",
    "scores_",
    "upper_scores_",
    "expected_false_",
    "undecided_",
    "frequencies_",
    "upper_frequencies_",
    "sizes_",
)


def make_data(n=80, d=40, q=2, n_true=4, seed=0, size=1.0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    B = np.zeros((d, q))
    B[:n_true] = size * rng.choice([-1.0, 1.0], (n_true, q))
    return X, X @ B + rng.standard_normal((n, q))


def selector(**params):
    return StabilitySelector(**{"n_pairs": 6, "alphas": 12, "random_state": 0, "max_false": 2.0} | params)


def assert_same(one, other):
    for name in FITTED:
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)


# Halves ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [10, 11])
def test_halves_are_disjoint_and_of_equal_size(n):
    for number in range(20):
        first, second = draw_pair(n, None, (0, number))
        assert len(first) == len(second) == n // 2
        assert len(np.union1d(first, second)) == 2 * (n // 2)


def test_every_sample_is_as_often_in_one_half_as_in_the_other():
    counts = np.zeros((2, 9))
    for number in range(3000):
        for half, rows in enumerate(draw_pair(9, None, (1, number))):
            counts[half, rows] += 1
    assert abs(counts / 3000 - 4 / 9).max() < 4 * np.sqrt(4 / 9 * 5 / 9 / 3000)


def test_halves_of_classes():
    labels = np.repeat([0, 1, 2], [10, 5, 6])
    for number in range(20):
        counts = np.array([np.bincount(labels[rows], minlength=3) for rows in draw_pair(21, labels, (0, number))])
        assert (abs(counts[0] - counts[1]) <= 1).all()
        assert (counts.sum(axis=1) == 10).all()


# What halves return ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("weights", ["constant", "oscar"])
def test_frequencies_are_those_of_paths_on_the_halves(weights):
    """Against group_owl_path on the same rows, feature by feature and alpha by alpha."""
    X, Y = make_data()
    alphas = np.geomspace(1.0, 0.2, 6)
    found = selector(
        estimator=go.GroupOWLRegressor(weights=weights), n_pairs=3, alphas=alphas, n_selected=40, max_false=40.0
    ).fit(X, Y)
    entropy = int(np.random.default_rng(0).integers(np.iinfo(np.int64).max))
    expected = np.zeros((40, 6))
    for number in range(3):
        for rows in draw_pair(80, None, (entropy, number)):
            path = go.group_owl_path(X[rows], Y[rows], weights=weights, alphas=alphas, tol=1e-9)
            entered = np.zeros(40, dtype=bool)
            for i, point in enumerate(path):
                entered[point.support] = True
                expected[entered, i] += 1
    np.testing.assert_array_equal(found.frequencies_, expected / 6)
    np.testing.assert_array_equal(found.alphas_, alphas)
    np.testing.assert_allclose(found.sizes_, found.upper_frequencies_.sum(axis=0))


def test_halves_return_no_more_than_allowed():
    X, Y = make_data(d=60)
    found = selector(n_selected=7, eps=0.01, threshold=1.0).fit(X, Y)
    assert found.n_selected_ == 7
    assert found.sizes_[-1] <= 7.0
    assert found.sizes_[-1] > 3.0
    assert (np.diff(found.frequencies_, axis=1) >= 0.0).all()
    assert (found.frequencies_ <= found.upper_frequencies_).all()


def test_alphas_are_fractions_of_what_each_half_needs():
    X, Y = make_data()
    found = selector(alphas=12, eps=0.1).fit(X, Y)
    assert len(found.alphas_) == 12
    assert found.alphas_[0] < 1.0
    assert found.alphas_[-1] == pytest.approx(0.1)
    assert_same(found, selector(alphas=12, eps=0.1).fit(X, 1000.0 * Y))


# Undecided entries ------------------------------------------------------------------------------------------


def test_loose_fits_leave_entries_undecided_and_nothing_is_lost_by_it():
    """Undecided entries count as returned for the size of the base selector, and as not returned for the selection."""
    X, Y = make_data(n=120, d=80, size=0.6)
    loose = selector(estimator=go.GroupOWLRegressor(weights="constant", tol=0.02), n_selected=12, threshold=0.8)
    loose.fit(X, Y)
    assert (loose.upper_frequencies_ > loose.frequencies_).any()
    assert loose.sizes_[-1] <= 12.0
    np.testing.assert_allclose(loose.sizes_, loose.upper_frequencies_.sum(axis=0))
    np.testing.assert_array_equal(loose.support_, loose.frequencies_[:, -1] >= loose.threshold_)
    reached = loose.upper_frequencies_[:, -1] >= loose.threshold_
    np.testing.assert_array_equal(loose.undecided_, reached & ~loose.support_)


def test_exact_selections_lie_between_both_frequencies():
    """As long as no path ends early, what exact fits select is not proved zero by loose ones."""
    X, Y = make_data(n=60, d=30, size=0.5)
    params = {"n_selected": 30, "max_false": 30.0, "alphas": np.geomspace(0.6, 0.1, 8)}
    loose = selector(estimator=go.GroupOWLRegressor(weights="oscar", tol=0.05), **params).fit(X, Y)
    exact = selector(estimator=go.GroupOWLRegressor(weights="oscar", tol=1e-9), **params).fit(X, Y)
    assert (loose.upper_frequencies_ > loose.frequencies_).any()
    assert (exact.frequencies_ <= loose.upper_frequencies_).all()
    np.testing.assert_allclose(exact.frequencies_, exact.upper_frequencies_)


@pytest.mark.parametrize("method", ["pairs", "integrated"])
def test_an_undecided_feature_is_named_and_not_selected(method, monkeypatch):
    """A feature that no half decides: zero everywhere, never proved."""
    X, Y = make_data()
    plain = HalfFits._solves

    def undecided(self, *args):
        for result in plain(self, *args):
            vars(result)["active"] = np.union1d(result.active, [39])
            yield result

    monkeypatch.setattr(HalfFits, "_solves", undecided)
    found = selector(method=method, estimator=go.GroupOWLRegressor(weights="constant"), eps=0.5).fit(X, Y)
    assert found.undecided_[39]
    assert not found.support_[39]
    assert found.support_[:4].any()
    assert found.frequencies_[39].max() == 0.0
    assert found.upper_frequencies_[39].min() == 1.0
    assert found.to_frame()["undecided"].tolist() == found.undecided_.tolist()


# The promise -------------------------------------------------------------------------------------------------


def test_bound_and_threshold_belong_together():
    X, Y = make_data()
    found = selector(n_pairs=10).fit(X, Y)
    count = round(found.threshold_ * 20)
    assert found.bound_ == false_selections("r-concave", 40, found.n_selected_, count, 10) <= 2.0
    np.testing.assert_array_equal(found.support_, found.expected_false_ <= found.bound_)
    strict = selector(n_pairs=10, bound="worst-case").fit(X, Y)
    assert strict.n_selected_ < found.n_selected_
    given = selector(n_pairs=10, n_selected=5).fit(X, Y)
    assert given.n_selected_ == 5
    assert given.threshold_ < found.threshold_
    assert selector(n_pairs=10, threshold=0.9).fit(X, Y).threshold_ == 0.9


@pytest.mark.parametrize("method", ["pairs", "integrated"])
def test_strong_features_are_found_and_few_others(method):
    n_false = []
    for seed in range(3):
        found = selector(method=method, n_pairs=12, max_false=1.0).fit(*make_data(n=120, d=60, seed=seed))
        assert found.support_[:4].all()
        n_false.append(found.support_[4:].sum())
    assert np.mean(n_false) <= 1.0


def test_pure_noise_selects_next_to_nothing():
    rng = np.random.default_rng(0)
    n_false = [
        selector(n_pairs=10, max_false=1.0).fit(rng.standard_normal((60, 50)), rng.standard_normal((60, 2))).support_
        for _ in range(6)
    ]
    assert np.sum(n_false) <= 6


def test_integrated_selection_by_its_definition():
    X, Y = make_data(size=0.5)
    found = selector(method="integrated", n_pairs=10, max_false=0.5).fit(X, Y)
    np.testing.assert_array_equal(found.support_, found.scores_ >= found.threshold_)
    np.testing.assert_array_equal(found.support_, found.expected_false_ <= 0.5 * (1 + 1e-12))
    more = selector(method="integrated", n_pairs=10, max_false=3.0).fit(X, Y)
    assert (more.support_ >= found.support_).all()


# The same bits ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_jobs", [2, 3])
def test_jobs_change_nothing(n_jobs):
    X, Y = make_data()
    assert_same(selector().fit(X, Y), selector(n_jobs=n_jobs).fit(X, Y))


def test_jobs_in_processes_change_nothing(monkeypatch):
    """Where the compiled kernel cannot do the work."""
    X, Y = make_data()
    monkeypatch.setattr(HalfFits, "asks_kernel", lambda self: False)
    assert_same(selector(n_pairs=4).fit(X, Y), selector(n_pairs=4, n_jobs=2).fit(X, Y))


def test_statistics_are_shared_and_change_nothing(monkeypatch):
    """With more samples than features both halves come from one pass; the selections are those of plain fits."""
    X, Y = make_data(n=400, d=20, size=0.2)
    seen = []
    plain = HalfFits._statistics

    def watched(self, pair):
        seen.append(plain(self, pair))
        return seen[-1]

    monkeypatch.setattr(HalfFits, "_statistics", watched)
    for n in (400, 399):
        seen.clear()
        shared = selector().fit(X[:n], Y[:n])
        assert all(half is not None for pair in seen for half in pair)
        assert {half.n_samples for pair in seen for half in pair} == {n // 2}
        monkeypatch.setattr("groupowl.inference.stability.wants_statistics", lambda *args: False)
        assert_same(shared, selector().fit(X[:n], Y[:n]))
        monkeypatch.undo()
        monkeypatch.setattr(HalfFits, "_statistics", watched)


def test_a_run_goes_on_where_it_stopped(tmp_path, monkeypatch):
    X, Y = make_data()
    whole = selector().fit(X, Y)
    folder, n_runs = tmp_path / "pairs", []
    plain = HalfFits.run

    def counted(self, pair, seed):
        if len(n_runs) == 3:
            raise KeyboardInterrupt
        n_runs.append(1)
        return plain(self, pair, seed)

    monkeypatch.setattr(HalfFits, "run", counted)
    with pytest.raises(KeyboardInterrupt):
        selector(resume=folder).fit(X, Y)
    stored = sorted(path.name for path in folder.iterdir())
    assert stored[-1] == "stability.json"
    n_stored = len(stored) - 1
    assert 1 <= n_stored <= 3
    (folder / stored[0]).write_bytes(b"half a file")
    monkeypatch.setattr(HalfFits, "run", plain)
    assert_same(whole, selector(resume=folder).fit(X, Y))
    monkeypatch.setattr(HalfFits, "run", None)  # nothing is fitted any more
    assert_same(whole, selector(resume=str(folder), verbose=0).fit(X, Y))


def test_more_pairs_are_added(tmp_path):
    X, Y = make_data()
    selector(n_pairs=4, n_selected=5, resume=tmp_path).fit(X, Y)
    assert_same(selector(n_selected=5).fit(X, Y), selector(n_selected=5, resume=tmp_path).fit(X, Y))


def test_a_size_that_changes_with_the_number_of_pairs_is_named(tmp_path):
    X, Y = make_data()
    few = selector(n_pairs=4, resume=tmp_path).fit(X, Y)
    with pytest.raises(ValueError, match=f"differs in n_selected.*or give n_selected={few.n_selected_}"):
        selector(n_pairs=60, resume=tmp_path).fit(X, Y)


def test_categories_are_selected_as_a_whole():
    pandas = pytest.importorskip("pandas")
    X, Y = make_data(d=6, n_true=1)
    kind = np.array(["a", "b", "c"])[np.random.default_rng(5).integers(3, size=len(X))]
    frame = pandas.DataFrame(X, columns=list("uvwxyz"))
    frame.insert(0, "kind", kind)
    estimator = go.GroupOWLRegressor(weights="constant", standardize=True, categories=["kind"])
    found = selector(estimator=estimator).fit(frame, Y + 6.0 * (kind == "a")[:, None])
    assert found.support_.shape == (7,)
    assert found.frequencies_.shape == (7, len(found.alphas_))
    assert found.to_frame()["feature"].tolist() == list(frame.columns)
    assert "kind" in found.selected_features_
    assert found.transform(frame).shape == (len(X), found.support_.sum())


def test_a_folder_of_another_run_is_refused(tmp_path):
    X, Y = make_data()
    selector(resume=tmp_path).fit(X, Y)
    with pytest.raises(ValueError, match="differs in the data"):
        selector(resume=tmp_path).fit(X, Y + 1e-9)
    with pytest.raises(ValueError, match="differs in n_selected"):
        selector(resume=tmp_path, n_selected=3).fit(X, Y)
    with pytest.raises(ValueError, match="differs in random_state"):
        selector(resume=tmp_path, random_state=1).fit(X, Y)
    with pytest.raises(ValueError, match="differs in the estimator, the weights"):
        selector(resume=tmp_path, estimator=go.GroupOWLRegressor(weights="oscar", standardize=True)).fit(X, Y)
    (tmp_path / "stability.json").write_text("{")
    with pytest.raises(ValueError, match="cannot be read"):
        selector(resume=tmp_path).fit(X, Y)
    facts = tmp_path / "stability.json"
    facts.write_text(json.dumps([1, 2]))
    with pytest.raises(ValueError, match="cannot be read"):
        selector(resume=tmp_path).fit(X, Y)


@pytest.mark.parametrize("loss", ["squared", "poisson", "huber"])
def test_offsets_are_those_of_the_estimator(loss):
    """At one alpha, halves return what fits of the estimator, with the offset, to the same halves select."""
    X, Z = make_data(120, 20, 2, n_true=5, size=0.5)
    rng = np.random.default_rng(1)
    offset = rng.normal(size=Z.shape)
    Y = rng.poisson(np.exp(0.7 * Z + offset)) if loss == "poisson" else Z + offset
    estimator = go.GroupOWLRegressor(0.3, loss=loss, weights="oscar", tol=1e-9)
    if loss == "huber":
        estimator.set_params(delta=1.3)
    given = {"estimator": estimator, "alphas": [0.3], "n_pairs": 4, "n_selected": 20, "threshold": 1.0}
    found = selector(**given, max_false=50.0).fit(X, Y, offset=offset)
    counts = np.zeros(20)
    entropy = int(np.random.default_rng(0).integers(np.iinfo(np.int64).max))
    for number in range(4):
        for half in draw_pair(120, None, (entropy, number)):
            counts += clone(estimator).fit(X[half], Y[half], offset=offset[half]).coef_.any(axis=0)
    np.testing.assert_array_equal(found.frequencies_[:, 0], counts / 8)
    assert 0 < counts.sum() < 8 * 20
    assert (found.frequencies_ != selector(**given, max_false=50.0).fit(X, Y).frequencies_).any()
    assert found.model_.endswith("loss, with an offset")


def test_pairs_of_another_offset_are_refused(tmp_path):
    X, Z = make_data()
    Y = np.abs(Z)
    one = selector(estimator=go.GroupOWLRegressor(loss="poisson"), resume=str(tmp_path))
    one.fit(X, Y, offset=0.1 * Z)
    assert_same(one, clone(one).fit(X, Y, offset=0.1 * Z))
    with pytest.raises(ValueError, match="the data"):
        clone(one).fit(X, Y, offset=0.2 * Z)


def test_progress(capsys):
    X, Y = make_data()
    selector(verbose=1).fit(X, Y)
    printed = capsys.readouterr()
    assert "StabilitySelector: 6 of 6 pairs" in printed.err
    assert printed.out == ""
    selector().fit(X, Y)
    assert capsys.readouterr().err == ""


def test_a_line_on_a_terminal_is_rewritten(capsys, monkeypatch):
    line = CountedLine("work", "pairs", True)
    monkeypatch.setattr(line.line, "is_rewritten", True)
    line.begin(2, 0)
    line.advance()
    line.advance()
    line.close()
    printed = capsys.readouterr().err
    assert printed.startswith("\r100 % work: 2 of 2 pairs")
    assert printed.endswith("\n")


# Kinds of data ------------------------------------------------------------------------------------------------


def test_classes_counts_and_missing_targets():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 15))
    score = 2.5 * X[:, :3]
    labels = np.array(["a", "b", "c"])[np.argmax(score + rng.gumbel(size=(120, 3)), axis=1)]
    found = selector(n_pairs=4).fit(X, labels)
    assert found.support_[:3].any()
    assert not found.support_[3:].any()
    binary = selector(n_pairs=4).fit(X, labels == "a")
    assert binary.support_[0]
    counts = rng.poisson(np.exp(X[:, [0]] + [0.0, 0.5])).astype(float)
    poisson = selector(n_pairs=4, estimator=go.GroupOWLRegressor(loss="poisson", weights="constant")).fit(X, counts)
    assert poisson.support_[0]
    Y = X[:, :2] + 0.3 * rng.standard_normal((120, 2))
    Y[rng.random(Y.shape) < 0.2] = np.nan
    missing = selector(n_pairs=4, estimator=go.GroupOWLRegressor()).fit(X, Y)
    assert missing.support_[:2].all()


def test_times_until_events_and_several_labels():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100, 12))
    time, event = rng.exponential(np.exp(-1.5 * X[:, 0])), rng.random(100) < 0.8
    y = np.array(list(zip(event, time, strict=True)), dtype=[("event", bool), ("time", float)])
    assert selector(n_pairs=4).fit(X, y).scores_.argmax() == 0
    labels = (X[:, :3] + 0.5 * rng.logistic(size=(100, 3)) > 0.0).astype(int)
    assert selector(n_pairs=4).fit(X, labels).support_.tolist() == 3 * [True] + 9 * [False]


def test_sparse_frames_and_sample_weights():
    pandas = pytest.importorskip("pandas")
    X, Y = make_data()
    X[np.random.default_rng(1).random(X.shape) < 0.5] = 0.0
    plain = selector().fit(X, Y)
    sparse = selector().fit(sp.csr_array(X), Y)
    np.testing.assert_array_equal(plain.support_, sparse.support_)
    frame = pandas.DataFrame(X, columns=[f"f{j}" for j in range(40)])
    named = selector().set_output(transform="pandas").fit(frame, Y)
    assert_same(plain, named)
    assert list(named.transform(frame).columns) == [f"f{j}" for j in np.flatnonzero(plain.support_)]
    weight = np.ones(80)
    weight[:20] = 0.0
    assert_same(selector().fit(X, Y, weight), selector().fit(X[20:], Y[20:], np.ones(60)))


def test_groups_are_units():
    X, Y = make_data(d=30)
    groups = np.repeat(np.arange(10), 3)
    estimator = go.GroupOWLRegressor(weights="constant", feature_groups=groups)
    found = selector(estimator=estimator, n_selected=3).fit(X, Y)
    assert found.sizes_[-1] <= 3.0
    assert found.bound_ == false_selections("r-concave", 10, 3, round(12 * found.threshold_), 6)
    for values in (found.support_, found.scores_, found.upper_scores_):
        np.testing.assert_array_equal(values.reshape(10, 3), values.reshape(10, 3)[:, [0]].repeat(3, axis=1))
    assert found.support_[:3].all()


def test_unpenalized_features_are_not_judged():
    X, Y = make_data()
    found = selector(estimator=go.GroupOWLRegressor(weights="constant", unpenalized=[0, 7])).fit(X, Y)
    assert np.flatnonzero(np.isnan(found.scores_)).tolist() == [0, 7]
    assert not found.support_[[0, 7]].any()
    assert found.support_[1:4].any()


def test_constant_targets_select_nothing():
    X, _ = make_data()
    found = selector(estimator=go.GroupOWLRegressor()).fit(X, np.full((80, 2), 3.5))
    assert not found.support_.any()
    assert not found.upper_frequencies_.any()


def cannot_hold(estimator):
    """A sample twice may be in both halves, one of weight 2 cannot."""
    reason = "halves are halves of the samples, whatever their weights"
    names = ("check_sample_weight_equivalence_on_dense_data", "check_sample_weight_equivalence_on_sparse_data")
    return dict.fromkeys(names, reason)


@parametrize_with_checks(
    [StabilitySelector(5.0, n_pairs=3, alphas=5, random_state=0)], expected_failed_checks=cannot_hold
)
def test_checks_of_scikit_learn(estimator, check):
    check(estimator)


def test_it_is_a_selector_of_scikit_learn():
    X, Y = make_data()
    pipeline = make_pipeline(selector(), go.GroupOWLRegressor()).fit(X, Y)
    assert pipeline.predict(X).shape == Y.shape
    copy = clone(selector(n_jobs=2))
    assert copy.get_params()["n_jobs"] == 2
    assert copy.fit_transform(X, Y).shape[1] == copy.get_support().sum()


def test_summary(capsys):
    X, Y = make_data()
    selector().fit(X, Y).summary()
    page = capsys.readouterr().out
    assert "expected number of false selections is at most" in page
    assert "has an r-concave distribution" in page
    selector(method="integrated").fit(X, Y).summary()
    integrated = capsys.readouterr().out
    assert "as if these were independent" in integrated
    assert "elsewhere nothing is promised" in integrated
    assert "elsewhere nothing is promised" not in page


def test_whole_numbers_with_many_values_are_no_classes(capsys):
    """Fitted as numbers, and the page says so."""
    X, Y = make_data()
    y = np.round(10.0 * Y[:, 0])
    assert len(np.unique(y)) > 20
    found = StabilitySelector(n_pairs=3, random_state=0).fit(X, y)
    asked = StabilitySelector(
        n_pairs=3, random_state=0, estimator=go.GroupOWLRegressor(weights="constant", standardize=True)
    ).fit(X, y)
    np.testing.assert_array_equal(found.frequencies_, asked.frequencies_)
    found.summary()
    assert "model      GroupOWLRegressor, squared loss\n" in capsys.readouterr().out


# Bad input ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"max_false": 0}, "max_false must be a finite number above 0"),
        ({"max_false": np.nan}, "max_false must be a finite number"),
        ({"method": "max"}, "method must be one of 'pairs', 'integrated'"),
        ({"bound": "unimodal"}, "bound must be one of 'r-concave', 'worst-case'"),
        ({"threshold": 0.5}, r"threshold must lie in \(0.5, 1\]"),
        ({"threshold": 0.7, "method": "integrated"}, "threshold=0.7 is for method='pairs'"),
        ({"n_selected": 0}, "n_selected must be at least 1"),
        ({"n_pairs": 0}, "n_pairs must be at least 1"),
        ({"n_pairs": 2, "method": "integrated"}, "n_pairs must be at least 3"),
        ({"alphas": 0}, "alphas must be at least 1"),
        ({"alphas": [0.1, -1.0]}, "alphas: all must be positive, got -1 among them"),
        ({"alphas": []}, "alphas must be at least one positive number"),
        ({"eps": 1.0}, "eps must lie in"),
        ({"n_jobs": 0}, "n_jobs must be None or an integer"),
        ({"random_state": -1}, "random_state must be a non-negative integer"),
        ({"verbose": -1}, "verbose must be at least 0"),
        ({"resume": "folder", "random_state": None}, "resume needs the same splits each time"),
        ({"resume": ""}, "resume is empty"),
        ({"max_false": 0.01, "n_selected": 30}, "max_false=0.01 cannot be promised: with n_selected=30 of 40 features"),
        ({"estimator": go.GroupOWLRegressor(screening="none")}, "screening='none' proves nothing"),
        ({"estimator": go.GroupOWLRegressor(penalty_factor="adaptive")}, "penalty_factor='adaptive' makes factors"),
    ],
)
def test_bad_parameters(params, message):
    X, Y = make_data()
    with pytest.raises(ValueError, match=message):
        selector(**params).fit(X, Y)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"max_false": "1"}, "max_false must be a number"),
        ({"n_pairs": 2.5}, "n_pairs must be an integer"),
        ({"alphas": "auto"}, "alphas must be an integer"),
        ({"resume": 3}, "resume must be a str or a Path"),
        ({"estimator": "lasso"}, "estimator must be a GroupOWLRegressor"),
    ],
)
def test_parameters_of_wrong_types(params, message):
    X, Y = make_data()
    with pytest.raises(TypeError, match=message):
        selector(**params).fit(X, Y)


def test_too_few_samples():
    X, Y = make_data()
    with pytest.raises(ValueError, match="X has 3 samples, but two halves need at least 4"):
        selector().fit(X[:3], Y[:3])


def test_a_fit_that_fails_leaves_the_one_before():
    X, Y = make_data()
    found = selector().fit(X, Y)
    support = found.support_
    with pytest.raises(ValueError, match="method"):
        found.set_params(method="?").fit(X, Y)
    assert found.support_ is support


def test_short_fits_warn():
    X, Y = make_data()
    estimator = go.GroupOWLRegressor(weights="constant", max_iter=1, solver="apgd")
    with pytest.warns(Warning, match="fits stopped short of their tolerance"):
        selector(n_pairs=3, estimator=estimator).fit(X, Y)
