"""Each feature of real tables in each place: the same answer as in memory, or an error that says what does."""

from __future__ import annotations

from contextlib import nullcontext
from functools import cache

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

import groupowl as go
from support import ENTRIES

N, D, Q = 48, 8, 2
GROUPS = [0, 0, 1, 1, 1, 2, 3, 4]
FACTOR = np.array([1.0, 1.0, 0.5, 0.5, 0.5, 2.0, 1.0, 1.0])
LOSSES = ("squared", "huber", "logistic", "poisson")

#: What the penalty is asked for beside its weights; data have missing targets, weights of entries or offsets besides.
FEATURES = {
    "missing": {},
    "entry weights": {},
    "groups": {"feature_groups": GROUPS},
    "frobenius": {"feature_groups": GROUPS, "group_scale": "frobenius"},
    "orthonormal": {"feature_groups": GROUPS, "group_scale": "orthonormal"},
    "offset": {},
    "ridge": {"ridge": 2.0},
    "positive": {"positive": True},
    "factors": {"penalty_factor": FACTOR},
    "free": {"penalty_factor": np.where(np.arange(D) == 5, 0.0, 1.0)},
    "left out": {"penalty_factor": np.where(np.arange(D) == 0, np.inf, 1.0)},
    "all": {
        "feature_groups": GROUPS,
        "group_scale": "frobenius",
        "ridge": 2.0,
        "positive": True,
        "penalty_factor": FACTOR,
    },
}
every_feature = pytest.mark.parametrize("feature", FEATURES)
every_loss = pytest.mark.parametrize("loss", LOSSES)


@cache
def make(loss, feature):
    """X, targets, weights and offset."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, D)) * np.where(np.arange(D) == 5, 3.0, 1.0)
    offset = 0.5 * rng.standard_normal((N, Q)) if feature in ("offset", "all") else None
    Z = X[:, :2] @ np.array([[1.0, 0.5], [-0.7, 1.0]]) + (0.0 if offset is None else offset)
    Y = Z + 0.3 * rng.standard_normal((N, Q))
    if loss == "logistic":
        Y = (Z + rng.logistic(size=(N, Q)) > 0.0).astype(float)
    if loss == "poisson":
        Y = rng.poisson(np.exp(0.5 * Z)).astype(float)
    Y[(rng.random((N, Q)) < 0.25) & (feature in ("missing", "all"))] = np.nan
    weight = rng.uniform(0.5, 2.0, (N, Q)) if feature == "entry weights" else None
    return X, Y, weight, offset


@cache
def solved(loss, feature):
    """Arguments of `solve`, and its answer in memory."""
    X, Y, weight, offset = make(loss, feature)
    given = {"Y": Y, "loss": loss, "fit_intercept": True, "sample_weight": weight, "offset": offset}
    given |= FEATURES[feature]
    n_units = 5 if "feature_groups" in given else D - (feature == "free")
    weights = go.weights.oscar(n_units)
    given["lam"] = 0.3 * go.lam_max(X, weights=weights, **given) * weights
    return X, given, go.solve(X, **given, tol=1e-10)


def agrees(result, best, rtol=1e-9):
    assert result.converged
    assert abs(result.primal - best.primal) <= result.gap + best.gap + rtol * abs(best.primal)


def on_disk(X, folder):
    np.save(folder / "X.npy", X)
    return go.MemmapDesign(folder / "X.npy")


HERE = {
    "by columns": np.asfortranarray,
    "sparse by rows": sp.csr_array,
    "sparse by columns": sp.csc_array,
    "single precision": lambda X: X.astype(np.float32),
}


@every_feature
@every_loss
def test_kinds_of_data(loss, feature, tmp_path):
    X, given, best = solved(loss, feature)
    for name, kind in HERE.items():
        agrees(go.solve(kind(X), **given), best, 1e-6 if name == "single precision" else 1e-9)
    refusal = pytest.raises(ValueError, match=r"'orthonormal' needs X in memory.*Use 'size' or 'frobenius'")
    with refusal if feature == "orthonormal" else nullcontext():
        agrees(go.solve(on_disk(X, tmp_path), **given), best)


#: What a cluster refuses, and what it says.
FAR = {"orthonormal": "Use 'size' or 'frobenius' for data on disk or on a cluster"}


@every_feature
@every_loss
def test_a_cluster(loss, feature):
    da, dask = pytest.importorskip("dask.array"), pytest.importorskip("dask")
    X, given, best = solved(loss, feature)
    present = [name for name in ("Y", "sample_weight") if given[name] is not None]
    far = {name: da.from_array(given[name], chunks=(17, -1)) for name in present}
    answer = pytest.raises(ValueError, match=FAR[feature]) if feature in FAR else nullcontext()
    with dask.config.set(scheduler="synchronous"), answer:
        agrees(go.solve(da.from_array(X, chunks=(17, -1)), **given | far), best)


@pytest.mark.parametrize("kind", ["far", "one per sample", "zero"])
def test_offsets_on_a_cluster(kind):
    """Arrays of Dask, one for each sample, and none, in fits, searches, checks and predictions."""
    da, dask = pytest.importorskip("dask.array"), pytest.importorskip("dask")
    X, Y, _, offset = make("squared", "offset")
    offset = {"far": offset, "one per sample": offset[:, 0], "zero": np.zeros(N)}[kind]
    given = da.from_array(offset, chunks=(10, -1)) if kind == "far" else offset
    far = [da.from_array(part, chunks=(17, -1)) for part in (X, Y)]
    with dask.config.set(scheduler="synchronous"):
        for model in (go.GroupOWLRegressor(0.1, tol=1e-9), go.GroupOWLRegressorCV(alphas=4, eps=0.1, cv=3, tol=1e-9)):
            here = clone(model).fit(X, Y, offset=offset)
            model.fit(*far, offset=given)
            assert model.verify(*far, offset=given)
            np.testing.assert_allclose(model.coef_, here.coef_, atol=1e-4)
            expected = here.predict(X, offset=offset)
            np.testing.assert_allclose(np.asarray(model.predict(far[0], offset=offset)), expected, atol=1e-3)
        with pytest.raises(ValueError, match="offset has 48 NaN or infinite entries"):
            go.solve(*far, np.ones(D), offset=np.full(N, np.nan))


@every_feature
@every_loss
def test_solvers_and_screener(loss, feature):
    X, given, best = solved(loss, feature)
    for solver in ("apgd", "spgd"):
        if solver == "apgd" or loss != "poisson":
            agrees(go.solve(X, **given, solver=solver, tol=1e-4, max_iter=20_000, random_state=0), best)
    for Z in (None, X @ best.B + best.intercept):
        screener = go.SafeScreener(X, **given)
        report = screener.update(best.B, best.intercept, Z=Z)
        assert report.primal == pytest.approx(best.primal, rel=1e-10)
        assert report.gap <= 1e-7 * abs(best.primal)
        assert set(best.support) <= set(report.active)


@every_feature
@every_loss
def test_paths_are_the_solves(loss, feature):
    X, given, best = solved(loss, feature)
    given = dict(given)
    weight, lam, Y = given["sample_weight"], given.pop("lam"), given.pop("Y")
    total = np.count_nonzero(~np.isnan(Y)) / Q if weight is None else weight.sum() / Q
    given["ridge"] = given.get("ridge", 0.0) / total
    path = go.group_owl_path(X, Y, alphas=[lam[0] / total], weights=lam / lam[0], tol=1e-9, **given)
    assert path[0].primal * total == pytest.approx(best.primal, rel=1e-8)


def estimator(loss, feature, kind):
    """An estimator of this kind, and what it says where it cannot be."""
    params = dict(FEATURES[feature])
    if "ridge" in params:
        params["ridge"] /= N
    search = kind in ("cv", "bic")
    if loss == "logistic":
        cls = go.GroupOWLClassifierCV if search else go.GroupOWLClassifier
    else:
        cls, params["loss"] = go.GroupOWLRegressorCV if search else go.GroupOWLRegressor, loss
    params |= {"alphas": 4, "eps": 0.1, "cv": 3} if search else {}
    own = {"bic": {"selection": "bic"}, "relaxed": {"relaxed": True}, "standardized": {"standardize": True}}
    params |= own.get(kind, {})
    refusal = None
    if kind == "bic":
        for name in ("positive", "ridge"):
            refusal = f"counts degrees of freedom, which are not known with {name}" if name in params else refusal
        refusal = refusal or ("is no likelihood" if loss == "huber" else None)
    if kind == "relaxed" and "positive" in params:
        refusal = "without the signs that positive=True asks for. Use relaxed=False"
    return cls(**params), refusal


@pytest.mark.parametrize("kind", ["fit", "cv", "bic", "relaxed", "standardized"])
@every_feature
@every_loss
def test_estimators_verify_and_come_back_from_disk(loss, feature, kind, tmp_path):
    model, refusal = estimator(loss, feature, kind)
    X, Y, weight, offset = make(loss, feature)
    data = {"sample_weight": weight, "offset": offset}
    if refusal is not None:
        with pytest.raises(ValueError, match=refusal):
            model.fit(X, Y, **data)
        return
    model.fit(X, Y, **data)
    assert model.verify(X, Y, **data)
    go.save(model, tmp_path / "model")
    again = go.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict(X, offset=offset), model.predict(X, offset=offset))
    assert again.verify(X, Y, **data)
    assert not again.verify(X[::-1], Y, **data)


# What is switched off, or holds anyway --------------------------------------------------------------------

OFF = {
    "feature_groups": {"feature_groups": [[3], [1]]},
    "ridge": {"ridge": 0.0},
    "positive": {"positive": np.zeros(D)},
    "penalty_factor": {"penalty_factor": np.ones(D)},
}


@pytest.mark.parametrize("off", [*OFF, "offset", "everything"])
@every_loss
def test_what_is_switched_off_changes_no_bit(loss, off):
    """In paths, fits and searches: groups of one, a ridge of zero, no signs, factors of one and a zero offset."""
    X, Y, _, _ = make(loss, "groups")
    params = (
        {name: value for part in OFF.values() for name, value in part.items()}
        if off == "everything"
        else OFF.get(off, {})
    )
    offset = np.zeros(N) if off in ("offset", "everything") else None
    how = {"loss": loss, "alphas": 4, "eps": 0.1}
    paths = [go.group_owl_path(X, Y, **how), go.group_owl_path(X, Y, **how, **params, offset=offset)]
    np.testing.assert_array_equal(paths[0].coefs, paths[1].coefs)
    np.testing.assert_array_equal(paths[0].dual_gaps, paths[1].dual_gaps)
    for kind in ("fit", "cv"):
        plain = estimator(loss, "missing", kind)[0].fit(X, Y)
        same = estimator(loss, "missing", kind)[0].set_params(**params).fit(X, Y, offset=offset)
        np.testing.assert_array_equal(plain.coef_, same.coef_)
        assert plain.dual_gap_ == same.dual_gap_
        if kind == "cv":
            np.testing.assert_array_equal(plain.score_path_, same.score_path_)


@every_loss
def test_signs_that_hold_anyway_change_nothing(loss):
    """To the certified gap, in paths, fits and searches: X is turned so that the free optimum has no negative entry."""
    X, Y, _, _ = make(loss, "groups")
    y = Y[:, 0]
    free = go.group_owl_path(X, y, loss=loss, alphas=4, eps=0.1, tol=1e-9)
    turned = X * np.where(free[-1].coef(D)[:, 0] < 0.0, -1.0, 1.0)
    paths = [go.group_owl_path(turned, y, loss=loss, alphas=free.alphas, tol=1e-9, positive=p) for p in (False, True)]
    assert not any((point.rows < 0.0).any() for point in paths[1])
    held = [(one, other) for one, other in zip(*paths, strict=True) if not (one.rows < 0.0).any()]
    assert len(held) > 2
    for one, other in held:
        assert abs(one.primal - other.primal) <= one.gap + other.gap
    for kind in ("fit", "cv"):
        params = {
            "tol": 1e-9,
            "alpha" if kind == "fit" else "alphas": free.alphas[-1] if kind == "fit" else free.alphas,
        }
        fits = []
        for positive in (False, True):
            model = estimator(loss, "missing", kind)[0].set_params(**params, positive=positive)
            model = model.set_params(delta=1.0) if loss == "huber" else model  # which would be estimated
            fits.append(model.fit(turned, y).solve_result_)
        if fits[0].B.min() >= 0.0:
            assert abs(fits[0].primal - fits[1].primal) <= fits[0].gap + fits[1].gap


@every_loss
def test_missing_targets_are_own_designs(loss):
    """Objectives of solves, paths and fits are those of a design for each task, to 1e-10."""
    X, Y, _, _ = make(loss, "missing")
    seen = ~np.isnan(Y)
    total = seen.sum() / Q

    def objective(B, intercept, lam):
        value = np.sort(np.linalg.norm(B, axis=1))[::-1] @ lam
        for k in range(Q):
            rows = seen[:, k]
            value += ENTRIES[loss](Y[rows, k], X[rows] @ B[:, k] + intercept[k]).sum()
        return value

    _, given, best = solved(loss, "missing")
    assert best.primal == pytest.approx(objective(best.B, best.intercept, given["lam"]), rel=1e-10)
    path = go.group_owl_path(X, Y, loss=loss, alphas=4, eps=0.1)
    for k, alpha in enumerate(path.alphas):
        lam = total * alpha * go.weights.oscar(D)
        expected = objective(path.coefs[:, :, k].T, path.intercepts[:, k], lam) / total
        assert path[k].primal == pytest.approx(expected, rel=1e-10)
    for kind in ("fit", "cv") if loss != "huber" else ():  # whose delta is estimated
        result = (model := estimator(loss, "missing", kind)[0].fit(X, Y)).solve_result_
        expected = objective(result.B, result.intercept, total * model.alpha_ * model.weights_) / total
        assert result.primal == pytest.approx(expected, rel=1e-10)
