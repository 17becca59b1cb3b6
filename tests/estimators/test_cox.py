"""The Cox estimators: forms of y, strata, endpoints, predictions, scores, choices; against R."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold

import groupowl as go
from groupowl.estimators.survival import survival_array
from r_support import run_r


def make_data(seed=0, n=90, d=25):
    """X, events and times with ties, and strata."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) + 0.5
    time = np.ceil(30 * rng.exponential(np.exp(-X[:, 0] + 0.7 * X[:, 1])))
    censored = np.ceil(30 * rng.exponential(3.0, n))
    return X, time <= censored, np.minimum(time, censored), np.array(["b", "a"])[rng.integers(0, 2, n)]


def surv(event, time):
    return np.array(list(zip(event, time, strict=True)), dtype=[("cens", bool), ("days", float)])


def test_every_form_of_y_is_the_same_fit():
    X, event, time, _ = make_data()
    model = go.GroupOWLCox(0.05).fit(X, surv(event, time))
    frame = pd.DataFrame({"time": time, "event": event})
    forms = [np.column_stack([event, time]), frame, pd.DataFrame({"death": event, "t": time}), [surv(event, time)]]
    for y in forms:
        other = go.GroupOWLCox(0.05).fit(X, y)
        np.testing.assert_array_equal(np.ravel(other.coef_), model.coef_)
        assert other.verify(X, y)
    assert model.coef_.shape == (25,)
    assert model.intercept_ == 0.0


def test_several_endpoints_share_their_features():
    X, event, time, _ = make_data()
    _, other_event, other_time, _ = make_data(5)
    both = [surv(event, time), surv(other_event, other_time)]
    model = go.GroupOWLCox(ties="breslow").fit(X, both)
    columns = np.column_stack([event, time, other_event, other_time])
    np.testing.assert_array_equal(go.GroupOWLCox(ties="breslow").fit(X, columns).coef_, model.coef_)
    assert model.coef_.shape == (2, 25)
    assert np.all((model.coef_ != 0).all(axis=0) == (model.coef_ != 0).any(axis=0))
    assert model.predict(X).shape == (90, 2)
    curves = model.predict_survival_function(X, [10.0, 20.0])
    assert curves.shape == (90, 2, 2)
    scores = [
        concordance_by_loops(X @ model.coef_[k], *pair)
        for k, pair in enumerate(zip(columns.T[::2], columns.T[1::2], strict=True))
    ]
    assert model.score(X, both) == pytest.approx(np.mean(scores))
    with pytest.raises(ValueError, match="y has 1 endpoints, but GroupOWLCox was fitted with 2"):
        model.score(X, both[0])


def concordance_by_loops(risk, event, time, strata=None):
    right = total = 0.0
    for i in range(len(risk)):
        for j in range(len(risk)):
            is_later = time[j] > time[i] or (time[j] == time[i] and not event[j])
            if event[i] and is_later and (strata is None or strata[i] == strata[j]):
                total += 1.0
                right += 1.0 if risk[i] > risk[j] else 0.5 * (risk[i] == risk[j])
    return right / total


def test_score_is_concordance():
    X, event, time, strata = make_data()
    model = go.GroupOWLCox().fit(X, surv(event, time))
    assert model.score(X, surv(event, time)) == pytest.approx(concordance_by_loops(X @ model.coef_, event, time))
    within = concordance_by_loops(X @ model.coef_, event, time, strata)
    assert model.score(X, surv(event, time), strata=strata) == pytest.approx(within)
    twice = np.r_[np.full(45, 2.0), np.ones(45)]
    rows = np.r_[np.arange(90), np.arange(45)]
    repeated = model.score(X[rows], surv(event, time)[rows])
    assert model.score(X, surv(event, time), sample_weight=twice) == pytest.approx(repeated, abs=0.01)


def test_strata_have_baselines_of_their_own():
    X, event, time, strata = make_data()
    model = go.GroupOWLCox(0.05).fit(X, surv(event, time), strata=strata)
    assert model.strata_.tolist() == ["a", "b"]
    assert model.verify(X, surv(event, time), strata=strata)
    assert not model.verify(X, surv(event, time), strata=strata[::-1])
    curves = model.predict_survival_function(X, strata=strata)
    assert curves.shape == (90, len(model.event_times_))
    assert np.all(np.diff(curves, axis=1) <= 0.0)
    assert np.all((curves >= 0.0) & (curves <= 1.0))
    hazard = model.predict_cumulative_hazard_function(X[:1], [0.0, 1e9], strata=["a"])
    last = model.baseline_hazard_[model.baseline_stratum_ == 0].max()
    np.testing.assert_allclose(hazard, [[0.0, last * np.exp(X[0] @ model.coef_)]])
    with pytest.raises(ValueError, match=r"was fitted with strata.*Give those of the samples of X, strata="):
        model.predict_survival_function(X)
    with pytest.raises(ValueError, match="strata has 'c', which the fit did not see"):
        model.predict_survival_function(X[:1], strata=["c"])


def test_the_choice_by_held_out_likelihood():
    """What test samples add to the partial likelihood of the training samples, from fits of their own."""
    X, event, time, _ = make_data(n=60, d=8)
    y, folds = surv(event, time), list(KFold(3, shuffle=True, random_state=0).split(X))
    model = go.GroupOWLCoxCV(alphas=[0.2, 0.05], cv=folds, tol=1e-10).fit(X, y)
    loss, Y = go.losses.CoxLoss(), go.survival_targets(event, time)
    for i, (train, test) in enumerate(folds):
        for j, alpha in enumerate([0.2, 0.05]):
            fold = go.GroupOWLCox(alpha, tol=1e-10).fit(X[train], y[train])
            Z = (X @ fold.coef_)[:, None]
            whole = loss.value(Z, Y, np.ones((60, 1)))
            part = loss.value(Z[train], Y[train], np.ones((len(train), 1)))
            assert model.score_path_[j, i] == pytest.approx((part - whole) / len(test), rel=1e-3)
    assert model.verify(X, y)


def test_scorers_get_events_and_times():
    X, event, time, strata = make_data()
    seen = []

    def scorer(model, X, y):
        seen.append(y.dtype.names)
        return model.score(X, y)

    model = go.GroupOWLCoxCV(alphas=6, eps=0.05, scoring=scorer).fit(X, surv(event, time), strata=strata)
    assert set(seen) == {("event", "time", "stratum")}
    assert 0.6 < model.best_score_ < 1.0


@pytest.mark.parametrize("selection", ["1se", "aic", "bic", "ebic"])
def test_every_selection(selection):
    X, event, time, _ = make_data()
    y = survival_array([surv(event, time), surv(*make_data(5)[1:3])])
    model = go.GroupOWLCoxCV(alphas=8, eps=0.05, selection=selection).fit(X, y)
    assert 0 < model.best_index_ < 8
    assert model.verify(X, y)


@pytest.mark.parametrize(
    "options", [{}, {"relaxed": True}, {"standardize": True}, {"unpenalized": [3, 7]}, {"ties": "breslow"}]
)
def test_options_verify_and_survive_a_file(options, tmp_path):
    X, event, time, strata = make_data()
    y, weight = surv(event, time), np.random.default_rng(1).uniform(0.5, 2.0, 90)
    model = go.GroupOWLCox(**options).fit(X, y, sample_weight=weight, strata=strata)
    assert model.verify(X, y, sample_weight=weight, strata=strata)
    go.save(model, tmp_path / "model.npz")
    loaded = go.load(tmp_path / "model.npz")
    assert loaded.verify(X, y, sample_weight=weight, strata=strata)
    np.testing.assert_array_equal(
        loaded.predict_survival_function(X, strata=strata), model.predict_survival_function(X, strata=strata)
    )
    loaded.baseline_hazard_[3] *= 1.01
    assert "baseline_hazard_[3]" in repr(loaded.verify(X, y, sample_weight=weight, strata=strata))


def test_sparse_single_precision_and_search():
    X, event, time, _ = make_data()
    y = surv(event, time)
    model = go.GroupOWLCox(0.05).fit(X, y)
    np.testing.assert_allclose(go.GroupOWLCox(0.05).fit(sp.csr_array(X), y).coef_, model.coef_, atol=1e-6)
    single = go.GroupOWLCox(0.05).fit(X.astype(np.float32), y)
    assert single.coef_.dtype == np.float32
    np.testing.assert_allclose(single.coef_, model.coef_, atol=1e-3)
    search = GridSearchCV(go.GroupOWLCox(), {"alpha": [10.0, 0.1]}, cv=3).fit(X, y)
    assert search.best_params_ == {"alpha": 0.1}
    assert search.best_score_ > 0.6
    assert "fit_intercept" not in clone(model).get_params()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda event, time: np.column_stack([event, time - time.min()]), "time must be positive, but its smallest"),
        (lambda event, time: np.column_stack([time, event]), "time has only the entries 0 and 1, and event has others"),
        (lambda event, time: np.column_stack([event + 1, time]), "event must be True or False, or 1 and 0, but"),
        (lambda event, time: np.column_stack([0 * event, time]), "y has no event among the samples of positive weight"),
        (lambda event, time: np.column_stack([event, time * np.nan]), "time has 90 NaN or infinite entries"),
        (lambda event, time: time, r"y has shape \(90,\), which is not that of events and times\. Give y as a struct"),
        (lambda event, time: np.column_stack([time] * 3), r"y has shape \(90, 3\), which is not that of events"),
        (
            lambda event, time: np.array(time, dtype=[("time", float)]),
            r"y has the fields \['time'\], but must have two",
        ),
        (lambda event, time: surv(event, time)[:50], "X has 90 rows, y has 50"),
        (lambda event, time: None, "requires y to be passed"),
    ],
)
def test_bad_targets(change, message):
    X, event, time, _ = make_data()
    for estimator in (go.GroupOWLCox(), go.GroupOWLCoxCV()):
        with pytest.raises(ValueError, match=message):
            estimator.fit(X, change(event, time))


def test_events_in_words_are_refused_by_the_name_of_their_column():
    X, event, time, _ = make_data()
    y = pd.DataFrame({"status": np.where(event, "dead", "alive"), "months": time})
    with pytest.raises(TypeError, match=r"y: column 'status' has text \('(dead|alive)'\)\. Events are True or False"):
        go.GroupOWLCox().fit(X, y)


def test_a_training_set_without_an_event_says_what_to_do():
    """All events among the samples that one fold leaves out, as where samples are sorted."""
    X, _, time, _ = make_data()
    event = np.arange(90) < 10
    with pytest.raises(ValueError, match=r"training samples of split 0 of cv have no event\. Use .* shuffle=True"):
        go.GroupOWLCoxCV().fit(X, surv(event, time))
    two = np.column_stack([event, time, ~event, time])
    with pytest.raises(ValueError, match=r"training samples of split 0 of cv have no event in column 0 of y\. Use"):
        go.GroupOWLCoxCV().fit(X, two)
    model = go.GroupOWLCoxCV(alphas=3, eps=0.3, cv=KFold(5, shuffle=True, random_state=0)).fit(X, surv(event, time))
    assert np.isfinite(model.score_path_).all()


def test_other_bad_arguments():
    X, event, time, strata = make_data()
    y = surv(event, time)
    with pytest.raises(ValueError, match=r"ties must be one of 'efron', 'breslow'; got 'exact'"):
        go.GroupOWLCox(ties="exact").fit(X, y)
    with pytest.raises(ValueError, match="strata must have one row per sample"):
        go.GroupOWLCox().fit(X, y, strata=strata[:5])
    with pytest.raises(
        ValueError, match=r"loss='cox' is for times, not for numbers\. Use GroupOWLCox or GroupOWLCoxCV"
    ):
        go.GroupOWLRegressor(loss="cox").fit(X, time)
    array = pytest.importorskip("dask.array")
    with pytest.raises(ValueError, match="the data are on a cluster, but samples are compared with each other"):
        go.GroupOWLCox().fit(
            array.from_array(X, chunks=30), array.from_array(np.column_stack([event, time]), chunks=30)
        )


# R --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ties", ["efron", "breslow"])
def test_without_penalty_it_is_coxph_of_r(ties, tmp_path):
    X, event, time, strata = make_data(d=3)
    np.savetxt(tmp_path / "data.txt", np.column_stack([event, time, strata == "a", X]))
    script = f"""
    library(survival)
    d <- read.table("data.txt", col.names=c("event", "time", "s", "x1", "x2", "x3"))
    fit <- coxph(Surv(time, event) ~ x1 + x2 + x3 + strata(s), d, ties="{ties}", control=coxph.control(eps=1e-12))
    cat(format(c(coef(fit), concordance(fit)$concordance), digits=17))
    """
    *coef, concordance = run_r(script, tmp_path, "survival")
    y = surv(event, time)
    model = go.GroupOWLCox(1e-9, ties=ties, tol=1e-10).fit(X, y, strata=strata)
    np.testing.assert_allclose(model.coef_, coef, atol=1e-5)
    assert model.score(X, y, strata=strata) == pytest.approx(concordance, abs=1e-9)


def test_the_baseline_hazard_is_that_of_r(tmp_path):
    X, event, time, _ = make_data(d=2)
    np.savetxt(tmp_path / "data.txt", np.column_stack([event, time, X]))
    script = """
    library(survival)
    d <- read.table("data.txt", col.names=c("event", "time", "x1", "x2"))
    fit <- coxph(Surv(time, event) ~ x1 + x2, d, ties="breslow", control=coxph.control(eps=1e-12))
    found <- basehaz(fit, centered=FALSE)
    cat(format(c(found$time, found$hazard), digits=17))
    """
    times, hazards = np.split(np.array(run_r(script, tmp_path, "survival")), 2)
    model = go.GroupOWLCox(1e-9, ties="breslow", tol=1e-10).fit(X, surv(event, time))
    found = model.predict_cumulative_hazard_function(np.zeros((1, 2)), times)
    np.testing.assert_allclose(found[0], hazards, rtol=1e-5)


def test_constant_weights_are_the_lasso_of_glmnet(tmp_path):
    X, event, time, _ = make_data()
    np.savetxt(tmp_path / "data.txt", np.column_stack([event, time, X]))
    script = """
    suppressMessages(library(glmnet))
    d <- as.matrix(read.table("data.txt"))
    y <- survival::Surv(d[, 2], d[, 1])
    fit <- glmnet(d[, -(1:2)], y, family="cox", lambda=c(0.2, 0.1, 0.05), standardize=FALSE, thresh=1e-14)
    cat(format(as.numeric(coef(fit)[, 3]), digits=17))
    """
    coef = run_r(script, tmp_path, "glmnet")
    model = go.GroupOWLCox(0.05, weights="constant", ties="breslow", tol=1e-12).fit(X, surv(event, time))
    np.testing.assert_allclose(model.coef_, coef, atol=1e-5)
    assert 3 < np.count_nonzero(model.coef_) < 25
