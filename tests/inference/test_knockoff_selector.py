"""Knockoffs select with few false discoveries, and by rules that treat features and knockoffs alike."""

import re
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

import groupowl as go
from groupowl.inference import KnockoffSelector, knockoff_threshold
from groupowl.inference.base import resolve_estimator
from groupowl.inference.knockoff_selector import _e_threshold, _e_values, _whitener_of_all
from groupowl.inference.pairs import PairFits, Pairs, Units

ALIKE = {"weights": "constant", "standardize": True, "tol": 1e-9}


def signals(n_samples=120, n_features=24, n_tasks=3, *, n_true=8, size=0.6, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_samples, n_features))
    B = np.zeros((n_features, n_tasks))
    B[:n_true] = size * rng.normal(size=(n_true, n_tasks))
    return X, X @ B, rng


def survival(Z, rng):
    times, ends = rng.exponential(np.exp(-Z[:, 0])), rng.exponential(2.0, len(Z))
    y = np.empty(len(Z), dtype=[("event", bool), ("time", float)])
    y["event"], y["time"] = times <= ends, np.minimum(times, ends)
    return y


# An estimator and targets from predictors, for each loss.
LOSSES = {
    "squared": (go.GroupOWLRegressor(**ALIKE), lambda Z, rng: Z + rng.normal(size=Z.shape)),
    "one task": (go.GroupOWLRegressor(**ALIKE), lambda Z, rng: Z[:, 0] + rng.normal(size=len(Z))),
    "oscar": (go.GroupOWLRegressor(**{**ALIKE, "weights": "oscar"}), lambda Z, rng: Z + rng.normal(size=Z.shape)),
    "multinomial": (go.GroupOWLClassifier(**ALIKE), lambda Z, rng: (2 * Z + rng.gumbel(size=Z.shape)).argmax(axis=1)),
    "two classes": (go.GroupOWLClassifier(**ALIKE), lambda Z, rng: 2 * Z[:, 0] + rng.logistic(size=len(Z)) > 0),
    "labels": (go.GroupOWLClassifier(**ALIKE), lambda Z, rng: (2 * Z + rng.logistic(size=Z.shape) > 0).astype(int)),
    "poisson": (go.GroupOWLRegressor(loss="poisson", **ALIKE), lambda Z, rng: rng.poisson(np.exp(0.3 * Z))),
    "huber": (go.GroupOWLRegressor(loss="huber", **ALIKE), lambda Z, rng: Z + rng.standard_t(3, size=Z.shape)),
    "cox": (go.GroupOWLCox(**ALIKE), survival),
}


# Thresholds -----------------------------------------------------------------------------------------------


def test_targets_that_overflow_and_statistics_of_another_length():
    X = np.random.default_rng(0).normal(size=(30, 4))
    with pytest.raises(ValueError, match="so large that the loss overflows"):
        KnockoffSelector().fit(X, 1e200 * X[:, 0])
    with pytest.raises(ValueError, match=r"What statistic returned must have shape \(4,\) \(n_units,\), got \(3,\)"):
        KnockoffSelector(statistic=lambda X, knockoffs, y: np.ones(3)).fit(X, X[:, 0])


@pytest.mark.parametrize("offset", [2, True, -1])
def test_an_offset_is_one_or_zero(offset):
    with pytest.raises(ValueError, match=f"offset must be 1 .* or 0, got {offset!r}"):
        knockoff_threshold([1.0, 2.0], offset=offset)


@given(
    W=st.lists(st.integers(-5, 5), min_size=1, max_size=30),
    fdr=st.sampled_from([0.05, 0.1, 0.2, 0.5]),
    offset=st.sampled_from([0, 1]),
)
def test_threshold_is_the_smallest_that_the_definition_allows(W, fdr, offset):
    values = np.array(W, dtype=float)

    def estimate(t):
        return (offset + np.sum(values <= -t)) / max(np.sum(values >= t), 1)

    allowed = [t for t in {abs(w) for w in W if w} if estimate(t) <= fdr]
    assert knockoff_threshold(values, fdr, offset=offset) == (min(allowed) if allowed else np.inf)


@given(seed=st.integers(0, 2**32 - 1), fdr=st.sampled_from([0.1, 0.25, 0.5]))
def test_e_values_of_one_draw_select_what_knockoff_plus_does(seed, fdr):
    W = np.random.default_rng(seed).normal(1.0, 1.0, size=40)
    values = _e_values(W, fdr)
    np.testing.assert_array_equal(values >= _e_threshold(values, fdr), knockoff_threshold(W, fdr) <= W)


def test_e_values_of_false_features_sum_to_at_most_their_number():
    """With fair signs the expected sum is at most n, at any level: what Benjamini and Hochberg need of e-values."""
    rng = np.random.default_rng(0)
    for level in (0.05, 0.3):
        sums = [_e_values(rng.normal(size=30), level).sum() / 30 for _ in range(4000)]
        assert 0.2 < np.mean(sums) < 1.0 + 3 * np.std(sums) / np.sqrt(4000)


@pytest.mark.parametrize(("n_true", "draw_fdr"), [(18, None), (12, 0.1)])
def test_draws_agree_on_strong_features(n_true, draw_fdr):
    """Also where fewer are true than draws at a level below fdr must select; fewer still with a level near fdr."""
    X, Z, rng = signals(300, 60, 3, n_true=n_true, size=1.5)
    Y = Z + rng.normal(size=Z.shape)
    selector = KnockoffSelector(0.1, n_repeats=9, draw_fdr=draw_fdr, random_state=0).fit(X, Y)
    assert selector.support_[:n_true].sum() >= n_true - 3
    assert selector.support_[n_true:].sum() <= 2


@given(values=st.lists(st.integers(0, 60), min_size=1, max_size=12), fdr=st.sampled_from([0.1, 0.25, 0.5]))
def test_e_values_are_selected_by_benjamini_and_hochberg(values, fdr):
    e = np.array(values, dtype=float)
    ranks = [k for k in range(1, len(e) + 1) if np.sort(e)[-k] >= len(e) / (fdr * k)]
    selected = e >= np.sort(e)[-max(ranks)] if ranks else np.zeros(len(e), dtype=bool)
    np.testing.assert_array_equal(e >= _e_threshold(e, fdr), selected)


# Features and knockoffs are treated alike ---------------------------------------------------------------------


@pytest.mark.parametrize("statistic", ["coefficients", "path"])
@pytest.mark.parametrize("loss", LOSSES)
def test_exchanging_columns_flips_their_signs(loss, statistic):
    """W of exchanged columns changes its sign and nothing else does, up to the accuracy of the fits."""
    estimator, targets = LOSSES[loss]
    X, Z, rng = signals()
    y = targets(Z, rng)
    copies = rng.normal(size=X.shape)
    exchanged = np.array([0, 3, 10, 20])
    X_other, copies_other = X.copy(), copies.copy()
    X_other[:, exchanged], copies_other[:, exchanged] = copies[:, exchanged], X[:, exchanged]
    shared = {"estimator": estimator, "statistic": statistic, "random_state": 0}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Nothing is selected")
        W = KnockoffSelector(0.3, sampler=copies, **shared).fit(X, y).scores_
        W_other = KnockoffSelector(0.3, sampler=copies_other, **shared).fit(X_other, y).scores_
    signs = np.ones(len(W))
    signs[exchanged] = -1.0
    assert np.count_nonzero(W) >= 7
    np.testing.assert_allclose(W_other, signs * W, atol=1e-4 * np.abs(W).max())
    np.testing.assert_array_equal(W_other == 0.0, W == 0.0)


def test_a_solver_cannot_favor_features_by_their_place():
    """Knockoffs that equal their columns: whatever the fit prefers, signs are fair coins."""
    X, Z, rng = signals(n_true=24)
    Y = Z + rng.normal(size=Z.shape)

    def first_ones(A, C, y):
        return np.linalg.norm(A.T @ y, axis=1)  # always in favor of the first members

    signs = []
    for seed in range(40):
        selector = KnockoffSelector(0.9, sampler=X, statistic=first_ones, random_state=seed)
        signs.append(np.sign(selector.fit(X, Y).scores_))
    mean = np.mean(signs)
    assert abs(mean) < 4 / np.sqrt(np.size(signs))


def test_whitening_uses_nothing_that_exchanging_changes():
    """Of fixed-X: residuals of all columns. Of others: those of what a first fit selects."""
    X, Z, rng = signals(300, 20, 3)
    Y = (Z + rng.normal(size=Z.shape)) @ rng.normal(size=(3, 3))
    copies = rng.normal(size=X.shape)
    prototype = go.GroupOWLRegressor(**ALIKE)
    found = []
    for swap in (np.zeros(20, dtype=bool), rng.random(20) < 0.5):
        data = prototype._checked_fit(X, Y)
        units = Units.of(data)
        first, second = np.where(swap, copies, X), np.where(swap, X, copies)
        doubled = Pairs(first, second, units, swap).fit_data(data, prototype)
        fits = PairFits(doubled, prototype, units)
        fits.settle()
        found.append([_whitener_of_all(doubled), fits.whitener()])
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-8)
        errors = np.cov((Y @ one).T) - np.cov((Y @ other).T)
        np.testing.assert_allclose(errors, 0.0, atol=1e-8)


# What is selected ---------------------------------------------------------------------------------------------


def false_share(selector, n_true):
    selected = np.flatnonzero(selector.support_)
    return np.mean(selected >= n_true) if len(selected) else 0.0, np.sum(selected < n_true) / n_true


@pytest.mark.parametrize("sampler", ["gaussian", "fixed"])
def test_false_discovery_rate_and_power(sampler):
    """Forty seeded data sets of independent columns: the mean share of false features stays within three errors."""
    shares = []
    for seed in range(40):
        X, Z, rng = signals(150, 40, 2, n_true=12, size=0.35, seed=seed)
        noise = rng.normal(size=Z.shape)
        noise[:, 1] = 0.8 * noise[:, 0] + 0.6 * noise[:, 1]
        selector = KnockoffSelector(0.2, sampler=sampler, random_state=seed)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Nothing is selected")
            shares.append(false_share(selector.fit(X, Z + noise), 12))
    false, power = np.array(shares).T
    assert false.mean() < 0.2 + 3 * false.std() / np.sqrt(40)
    assert false.mean() > 0.02  # or the bound would hold by selecting nothing that could be false
    assert power.mean() > 0.7


@pytest.mark.parametrize("loss", LOSSES)
def test_every_loss_finds_strong_features(loss):
    """With the estimator that the targets ask for where it is not given."""
    _, targets = LOSSES[loss]
    estimator = LOSSES[loss][0] if loss in ("oscar", "poisson", "huber") else None
    X, Z, rng = signals(300, 40, 3, n_true=14, size=1.0, seed=3)
    selector = KnockoffSelector(0.25, estimator=estimator, random_state=0).fit(X, targets(Z, rng))
    false, power = false_share(selector, 14)
    assert power >= 0.5
    assert false <= 0.5


def test_groups_are_selected_as_a_whole():
    X, Z, rng = signals(200, 60, 2, n_true=21, size=0.7)
    labels = np.arange(60) // 3
    estimator = go.GroupOWLRegressor(feature_groups=labels, **ALIKE)
    for sampler in ("gaussian", "fixed"):
        selector = KnockoffSelector(0.2, estimator=estimator, sampler=sampler, random_state=0)
        selector.fit(X, Z + rng.normal(size=Z.shape))
        assert selector.n_units_ == 20
        assert selector.support_[:21].all()
        for name in ("support_", "scores_"):
            values = getattr(selector, name).reshape(20, 3)
            assert np.all(values == values[:, :1])


@pytest.mark.parametrize("sampler", ["gaussian", "fixed"])
def test_unpenalized_features_are_in_the_fit_and_not_judged(sampler):
    """A confounder that explains the target and other columns: these are null given it."""
    rng = np.random.default_rng(0)
    hidden = rng.normal(size=300)
    X = rng.normal(size=(300, 30))
    X[:, 10:] += hidden[:, None]
    X[:, 0] = hidden
    y = 5 * hidden + X[:, 1:8] @ np.ones(7) + rng.normal(size=300)
    estimator = go.GroupOWLRegressor(unpenalized=[0], **ALIKE)
    selector = KnockoffSelector(0.3, estimator=estimator, sampler=sampler, random_state=0).fit(X, y)
    assert np.isnan(selector.scores_[0])
    assert not selector.support_[0]
    assert selector.n_units_ == 29
    assert selector.support_[1:8].all()


def test_samples_of_weight_zero_are_not_there():
    X, Z, rng = signals()
    y = Z + rng.normal(size=Z.shape)
    weight = rng.uniform(0.5, 2.0, len(X))
    weight[::7] = 0.0
    kept = weight > 0.0
    for sampler in ("gaussian", "fixed"):
        one = KnockoffSelector(0.3, sampler=sampler, random_state=0).fit(X, y, weight)
        other = KnockoffSelector(0.3, sampler=sampler, random_state=0).fit(X[kept], y[kept], weight[kept])
        np.testing.assert_array_equal(one.scores_, other.scores_)


def test_missing_targets_are_left_out():
    X, Z, rng = signals(300, 24, n_true=10, size=1.0)
    Y = Z + rng.normal(size=Z.shape)
    Y[rng.random(Y.shape) < 0.2] = np.nan
    assert KnockoffSelector(0.25, random_state=0).fit(X, Y).support_[:10].sum() >= 7
    with pytest.raises(ValueError, match="sampler='fixed' needs all targets"):
        KnockoffSelector(0.25, sampler="fixed").fit(X, Y)


def test_more_features_than_samples():
    X, Z, rng = signals(80, 200, 3, n_true=10, size=1.5)
    selector = KnockoffSelector(0.25, random_state=1).fit(X, Z + rng.normal(size=Z.shape))
    assert selector.support_[:10].sum() >= 7


@pytest.mark.filterwarnings("ignore:Nothing is selected")
def test_extreme_data():
    """Few samples, columns that are constant or copies, targets without errors, or that determine each other."""
    X, Z, rng = signals()
    for n_samples in (1, 2, 3):
        assert not KnockoffSelector(random_state=0).fit(X[:n_samples], Z[:n_samples]).support_.any()
    exact = KnockoffSelector(0.3, random_state=0).fit(X, Z)
    assert exact.support_[:8].sum() >= 6
    assert np.abs(exact.scores_).max() < 100.0
    odd = X.copy()
    odd[:, 9], odd[:, 10] = 5.0, odd[:, 0]
    Y = Z + rng.normal(size=Z.shape)
    selector = KnockoffSelector(0.3, random_state=0).fit(odd, np.column_stack([Y, Y[:, 0] + Y[:, 1]]))
    assert selector.scores_[9] == 0.0
    assert not KnockoffSelector(0.3, random_state=0).fit(np.zeros((120, 24)), Y).scores_.any()
    assert not KnockoffSelector(0.3, random_state=0).fit(X, np.full(120, 0.5)).scores_.any()


def test_results_are_the_same_for_all_numbers_of_jobs():
    X, Z, rng = signals(150, 24, n_true=12, size=1.0)
    Y = Z + rng.normal(size=Z.shape)
    fits = [KnockoffSelector(0.3, n_repeats=5, n_jobs=n, random_state=7).fit(X, Y) for n in (None, 2, -1)]
    for fit in fits:
        np.testing.assert_array_equal(fit.statistics_, fits[0].statistics_)
    assert fits[0].statistics_.shape == (5, 24)
    assert fits[0].support_[:12].sum() >= 9
    np.testing.assert_array_equal(fits[0].support_, fits[0].scores_ >= fits[0].threshold_)
    others = KnockoffSelector(0.3, n_repeats=5, random_state=8).fit(X, Y)
    assert not np.array_equal(others.statistics_, fits[0].statistics_)


def test_sparse_data_frames_and_functions_of_your_own():
    pandas = pytest.importorskip("pandas")
    X, Z, rng = signals()
    Y = Z + rng.normal(size=Z.shape)
    plain = KnockoffSelector(0.3, random_state=0).fit(X, Y)
    names = [f"gene {j}" for j in range(24)]
    named = KnockoffSelector(0.3, random_state=0).fit(pandas.DataFrame(X, columns=names), Y)
    sparse = KnockoffSelector(0.3, random_state=0).fit(sp.csr_array(X), Y)
    np.testing.assert_array_equal(named.scores_, plain.scores_)
    np.testing.assert_array_equal(sparse.scores_, plain.scores_)
    assert list(named.selected_features_) == [name for name, is_in in zip(names, named.support_, strict=True) if is_in]
    frame = named.to_frame(sort=True)
    assert list(frame.columns) == ["feature", "selected", "W"]
    assert frame["W"].is_monotonic_decreasing
    seen = []

    def sampler(X, rng):
        seen.append(X.shape)
        return rng.permuted(X, axis=0)

    own = KnockoffSelector(0.3, sampler=sampler, n_repeats=2, random_state=0).fit(X, Y)
    assert seen == [X.shape] * 2
    assert list(own.to_frame().columns) == ["feature", "selected", "e_value", "mean_W"]


def test_summary_says_what_is_promised(capsys):
    X, Z, rng = signals(size=1.5)
    Y = Z + rng.normal(size=Z.shape)
    KnockoffSelector(0.3, random_state=0).fit(X, Y).summary()
    text = capsys.readouterr().out
    assert "promise    The false discovery rate" in text
    assert "is at most 0.3, approximately" in text
    assert (
        "assumes    Samples of the features are independent and follow a normal distribution with a covariance as"
        in text
    )
    assert "of 24 selected" in text
    KnockoffSelector(0.3, random_state=0, verbose=1, n_repeats=2).fit(X, Y)
    assert "KnockoffSelector: 2 of 2 draws" in capsys.readouterr().err
    KnockoffSelector(0.3, random_state=0, n_repeats=2).fit(X, Y)
    assert capsys.readouterr().err == ""


def test_pipelines_and_clones():
    X, Z, rng = signals(size=1.5)
    Y = Z + rng.normal(size=Z.shape)
    selector = KnockoffSelector(0.3, random_state=0)
    pipeline = make_pipeline(selector, go.GroupOWLRegressor()).fit(X, Y)
    assert pipeline[-1].n_features_in_ == np.count_nonzero(selector.support_)
    assert clone(selector).fdr == 0.3
    assert "statistics_" not in vars(clone(selector))


@pytest.mark.filterwarnings("ignore:Nothing is selected")
@pytest.mark.parametrize("kind", [int, float])
@pytest.mark.parametrize(
    ("n_values", "model"),
    [
        (21, "GroupOWLRegressor, squared loss"),
        (20, "GroupOWLClassifier, multinomial loss, 20 classes"),
    ],
)
def test_numbers_with_many_values_are_no_classes(capsys, kind, n_values, model):
    """Whole numbers too, as measurements often are; the page names what was fitted."""
    X = np.random.default_rng(0).normal(size=(84, 4))
    selector = KnockoffSelector(0.4, random_state=0).fit(X, np.arange(84).astype(kind) % n_values)
    assert selector.model_ == model
    selector.summary()
    assert f"model      {model}\n" in capsys.readouterr().out


def test_text_of_many_classes_are_classes():
    names = np.array([f"kind {i}" for i in range(30)])
    assert isinstance(resolve_estimator(None, np.repeat(names, 3)), go.GroupOWLClassifier)


@pytest.mark.filterwarnings("ignore:Nothing is selected")
def test_no_model_is_named_with_a_statistic_of_your_own():
    X = np.random.default_rng(0).normal(size=(30, 4))
    selector = KnockoffSelector(statistic=lambda X, knockoffs, y: np.ones(4), random_state=0).fit(X, X[:, 0])
    assert selector.model_ == "a statistic of your own"


# Offsets --------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:Nothing is selected")
@pytest.mark.parametrize("loss", ["squared", "multinomial", "two classes", "labels", "poisson", "huber", "cox"])
def test_offsets_are_those_of_the_estimator(loss):
    """Statistics are differences of norms of a fit of the estimator, with the offset, to features and knockoffs."""
    X, Z, rng = signals()
    estimator, targets = LOSSES[loss]
    y = targets(Z, rng)
    shape = len(X) if loss in ("two classes", "cox") else Z.shape
    offset, copies = rng.normal(size=shape), rng.normal(size=X.shape)
    prototype = clone(estimator).set_params(alpha=0.05)
    selector = KnockoffSelector(0.3, estimator=prototype, sampler=copies, random_state=0)
    coef = np.atleast_2d(clone(prototype).fit(np.hstack([X, copies]), y, offset=offset).coef_)
    norms = np.linalg.norm(coef * np.hstack([X, copies]).std(axis=0), axis=0)
    W = selector.fit(X, y, offset=offset).scores_
    np.testing.assert_allclose(W, norms[:24] - norms[24:], atol=1e-4 * norms.max())
    assert np.count_nonzero(W) >= 7
    assert np.abs(W - selector.fit(X, y).scores_).max() > 0.01 * norms.max()
    assert selector.model_ == selector.fit(X, y, offset=0.0).model_
    assert selector.fit(X, y, offset=offset).model_ == f"{selector.fit(X, y).model_}, with an offset"


@pytest.mark.parametrize("sampler", ["gaussian", "fixed"])
def test_an_offset_is_taken_off_targets_of_the_squared_loss(sampler):
    X, Z, rng = signals()
    Y, offset = Z + rng.normal(size=Z.shape), 3.0 * rng.normal(size=Z.shape)
    selector = KnockoffSelector(0.3, estimator=go.GroupOWLRegressor(**ALIKE), sampler=sampler, random_state=0)
    expected = selector.fit(X, Y).scores_
    found = selector.fit(X, Y + offset, offset=offset).scores_
    np.testing.assert_allclose(found, expected, atol=1e-5 * np.abs(expected).max())


def test_offsets_that_do_not_go():
    X, Z, _ = signals()
    own = KnockoffSelector(statistic=lambda X, copies, y: X[0] - copies[0])
    with pytest.raises(ValueError, match="offset is not passed to a statistic of your own"):
        own.fit(X, Z, offset=np.ones(len(X)))
    with pytest.raises(ValueError, match="sample_weight is not passed to a statistic of your own"):
        own.fit(X, Z, np.ones(len(X)))
    with pytest.raises(ValueError, match="offset"):
        KnockoffSelector().fit(X, Z, offset=np.ones(len(X) - 1))


@pytest.mark.parametrize(("verbose", "error"), [("much", TypeError), (-1, ValueError)])
def test_a_wrong_level_of_progress_is_refused(verbose, error):
    X, Z, _ = signals()
    with pytest.raises(error, match="verbose"):
        KnockoffSelector(verbose=verbose).fit(X, Z)


# What is wrong ------------------------------------------------------------------------------------------------


def test_too_few_features_are_said_to_be_too_few():
    X, Z, rng = signals(n_features=12)
    Y = Z + rng.normal(size=Z.shape)
    with pytest.warns(UserWarning, match="Nothing is selected: at fdr=0.05") as warned:
        selector = KnockoffSelector(0.05, random_state=0).fit(X, Y)
    assert [str(one.message) for one in warned] == [selector.note_]  # one text, so that it is not told twice
    assert not selector.support_.any()
    assert selector.threshold_ == np.inf
    assert "select at least 20 features (1/fdr) or none" in selector.note_
    with pytest.warns(UserWarning, match="at least 20 features"):
        KnockoffSelector(0.05, n_repeats=2, random_state=0).fit(X, Y)


def own_statistics(W):
    """A selector whose statistics are W: the exchange of columns, which changes signs, is undone."""
    W = np.asarray(W)

    def statistic(X, knockoffs, y):
        return np.where(X[0] == MARKS[: len(W)], W, -W)

    return statistic


MARKS = np.arange(1.0, 13.0)


@pytest.mark.filterwarnings("ignore:Nothing is selected")
@pytest.mark.parametrize(
    ("offset", "W", "sentences"),
    [
        (
            1,
            [5, 4, 3, -2, 1, 0],
            [
                "at least 4 features (1/fdr) or none",
                "4 of 6 statistics W are positive and 1 negative",
                "the largest 5, 4, 3",
                "the nearest threshold is 3, which 3 reach",
                "rate of 0.33",
            ],
        ),
        (1, [-1, -2, 0, 0, 0, 0], ["0 of 6 statistics W are positive and 2 negative, the largest 0, 0, 0."]),
        (0, [-5, 4, 3, -2, 1, 0], ["no threshold of W keeps the promise at fdr=0.25", "which 2 reach", "rate of 0.5"]),
    ],
)
def test_a_selection_of_nothing_has_a_reason(capsys, offset, W, sentences):
    X = np.vstack([MARKS[: len(W)], np.random.default_rng(0).normal(size=(29, len(W)))])
    parameters = {"statistic": own_statistics(W), "offset": offset, "random_state": 0}
    selector = KnockoffSelector(0.25, **parameters, sampler=lambda X, rng: X + 0.5).fit(X, X[:, 0])
    np.testing.assert_array_equal(selector.scores_, W)
    selector.summary()
    page = " ".join(capsys.readouterr().out.split())
    advice = [
        "depend on random_state",
        "Try a larger fdr, or stability selection (StabilitySelector, --method stability)",
    ]
    for sentence in (*sentences, *advice, "No feature is selected.", "threshold none holds the promise"):
        assert sentence in page
    given = KnockoffSelector(0.25, **parameters, sampler=X + 0.5).fit(X, X[:, 0])
    assert "Nothing is selected" in given.note_
    assert "random_state" not in given.note_


def test_the_reason_of_several_draws_and_of_a_selection():
    """The nearest e-values tell the fdr that would have selected; and there is no reason where something is."""
    X, Z, rng = signals()
    Y = Z + rng.normal(size=Z.shape)
    parameters = {"n_repeats": 3, "draw_fdr": 0.2, "random_state": 0}
    nothing = KnockoffSelector(0.05, **parameters)
    with pytest.warns(UserWarning, match="Nothing is selected"):
        nothing.fit(X, Y)
    rate, n_reach = re.search(r"which (\d+) reach, with .* rate of (\S+)\. ", nothing.note_).group(2, 1)
    assert "the largest mean e-values of 3 draws are" in nothing.note_
    found = KnockoffSelector(float(rate) + 0.005, **parameters).fit(X, Y)
    assert np.count_nonzero(found.support_) == int(n_reach)
    assert found.note_ == ""


@pytest.mark.filterwarnings("ignore:Nothing is selected")
def test_the_promise_is_approximate_where_the_covariance_is_estimated(capsys):
    X, Z, _ = signals()
    for parameters, is_approximate in [
        ({}, True),
        ({"covariance": "graphical-lasso"}, True),
        ({"covariance": np.eye(24)}, False),
        ({"sampler": "fixed"}, False),
    ]:
        KnockoffSelector(0.3, random_state=0, **parameters).fit(X, Z + X[:, 8:11]).summary()
        words = "is at most 0.3, approximately: the covariance of the features is estimated."
        assert (words in capsys.readouterr().out) == is_approximate


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"fdr": 0.0}, ValueError, "fdr must"),
        ({"fdr": 1.0}, ValueError, "fdr must"),
        ({"fdr": "low"}, TypeError, "fdr"),
        ({"statistic": "lcd"}, ValueError, "statistic.*'lcd'"),
        ({"sampler": "deep"}, ValueError, "sampler.*'deep'"),
        ({"sampler": np.zeros((3, 3))}, ValueError, r"sampler must have the shape of X.*\(120, 24\), got \(3, 3\)"),
        ({"sampler": np.full((120, 24), np.nan)}, ValueError, "sampler has 2880 NaN"),
        ({"sampler": lambda X, rng: X[:, :2]}, ValueError, "that sampler returned must have the shape"),
        ({"statistic": lambda X, C, y: X[0, :3]}, ValueError, "What statistic returned"),
        ({"covariance": "shrunk"}, ValueError, "covariance.*'shrunk'"),
        ({"s": "sdp"}, ValueError, "s must be.*'sdp'"),
        ({"offset": 2}, ValueError, "offset must be 1"),
        ({"offset": True}, ValueError, "offset must be 1"),
        ({"offset": 0, "n_repeats": 3}, ValueError, "offset=0 has no e-values"),
        ({"n_repeats": 0}, ValueError, "n_repeats"),
        ({"draw_fdr": 2.0}, ValueError, "draw_fdr"),
        ({"n_repeats": 2, "sampler": np.zeros((120, 24))}, ValueError, "one array of knockoffs"),
        ({"aggregation": "median"}, ValueError, "aggregation.*'median'"),
        ({"n_jobs": 0}, ValueError, "n_jobs"),
        ({"random_state": "seed"}, ValueError, "random_state"),
        ({"estimator": "lasso"}, TypeError, "estimator must be a GroupOWLRegressor"),
        ({"estimator": go.GroupOWLRegressorCV()}, TypeError, "estimator must be a GroupOWLRegressor"),
        ({"estimator": go.GroupOWLRegressor("best")}, ValueError, "alpha.*'best'"),
        ({"estimator": go.GroupOWLRegressor(weights=np.ones(24))}, ValueError, "weights .* 48 numbers.* got 24"),
        ({"estimator": go.GroupOWLRegressor(unpenalized=range(24))}, ValueError, "unpenalized has all 24"),
        ({"estimator": go.GroupOWLRegressor(loss="poisson"), "sampler": "fixed"}, ValueError, "for the squared loss"),
    ],
)
def test_wrong_parameters(parameters, error, message):
    X, Z, rng = signals()
    y = rng.poisson(np.exp(0.3 * Z)) if "loss" in str(parameters) else Z + rng.normal(size=Z.shape)
    with pytest.raises(error, match=message):
        KnockoffSelector(**parameters).fit(X, y)


def test_wrong_data():
    X, Z, _ = signals()
    with pytest.raises(ValueError, match="y is None"):
        KnockoffSelector().fit(X)
    with pytest.raises(ValueError, match="X has 1 NaN"):
        KnockoffSelector().fit(np.where(np.arange(24) + np.arange(120)[:, None] == 0, np.nan, X), Z)
    with pytest.raises(ValueError, match="samples in memory"):
        KnockoffSelector().fit(go.SufficientStatistics.from_arrays(X, Z))
    with pytest.raises(ValueError, match="Fixed-X knockoffs of 24 features need at least 49 samples, got 40"):
        KnockoffSelector(sampler="fixed").fit(X[:40], Z[:40])
    with pytest.raises(ValueError, match="sample_weight is not passed"):
        KnockoffSelector(statistic=lambda X, C, y: X[0]).fit(X, Z, np.ones(120))


def test_a_fit_that_fails_leaves_the_one_before():
    X, Z, rng = signals(size=1.5)
    selector = KnockoffSelector(0.3, random_state=0).fit(X, Z + rng.normal(size=Z.shape))
    before = dict(vars(selector))
    with pytest.raises(ValueError, match="X has"):
        selector.fit(np.full_like(X, np.nan), Z)
    assert vars(selector) == before


def cannot_hold(estimator):
    """Knockoffs are drawn for each row: a row of weight two has one, and the same row twice has two."""
    reason = "rows have random knockoffs"
    return {f"check_sample_weight_equivalence_on_{kind}_data": reason for kind in ("dense", "sparse")}


@pytest.mark.filterwarnings("ignore:Nothing is selected")
@pytest.mark.filterwarnings("ignore:No features were selected")
@parametrize_with_checks([KnockoffSelector(0.5)], expected_failed_checks=cannot_hold)
def test_conventions_of_scikit_learn(estimator, check):
    check(estimator)
