"""Missing targets, groups of columns, offsets, ridge, signs and factors at once, against a conic solver."""

from __future__ import annotations

import warnings
from collections import Counter

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold

import groupowl as go
from combined_support import FEATURES, LOSSES, SCALES, Combined, disagreement, draw
from groupowl.problem import build_problem

SEEDS = range(6)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("feature", FEATURES)
def test_a_conic_solver_finds_the_same_minimum(feature, seed):
    """Of each feature, with the others at random; the long form has 200 of each."""
    case = draw(seed, feature)
    assert disagreement(case, case.solve()) == ("", True)


def test_every_feature_is_drawn_with_every_other():
    """The generator is worth something: pairs of features, losses and scales all occur, and selections are mixed."""
    counts = Counter()
    for feature in FEATURES:
        for seed in range(60):
            case = draw(seed, feature)
            on = {
                "entries": bool(np.ptp(case.W, axis=1).any()),
                "groups": np.bincount(case.groups).max() > 1,
                "offset": case.offset is not None,
                "ridge": case.ridge > 0.0,
                "signs": bool(case.signs.any()),
                "factors": bool(np.any(case.factor != 1.0)),
            }
            counts.update((one, other) for one in FEATURES for other in FEATURES if on[one] and on[other])
            counts.update([case.loss, case.group_scale, f"free {bool(np.any(case.factor == 0.0))}"])
            counts.update([f"standardized {case.standardized}", f"intercept {case.fit_intercept}"])
    assert min(counts[one, other] for one in FEATURES for other in FEATURES) >= 20
    assert min(counts[name] for name in (*LOSSES, *SCALES)) >= 15
    assert min(count for name, count in counts.items() if " " in name) >= 15


@pytest.mark.parametrize("feature", FEATURES)
def test_the_judge_notices_what_is_ignored(feature):
    """A solution that forgets the feature is not the minimum: the agreement above means something."""
    noticed = 0
    for seed in range(8):
        case = draw(seed, feature, standardized=False)
        arguments = case.arguments()
        arguments |= {
            "entries": {"Y": case.Y, "sample_weight": None},
            "groups": {"feature_groups": None, "group_scale": "size"},
            "offset": {"offset": None},
            "ridge": {"ridge": 0.0},
            "signs": {"positive": False},
            "factors": {"penalty_factor": None},
        }[feature]
        if feature in ("groups", "factors"):
            arguments["lam"] = np.resize(case.lam, case.X.shape[1])
            arguments["lam"][len(case.lam) :] = case.lam[-1]
            arguments["feature_groups"] = None
            arguments["penalty_factor"] = None
        noticed += _is_noticed(case, arguments)
    assert noticed >= 3


def _is_noticed(case, arguments):
    forgetful = go.solve(**arguments, tol=1e-8)
    if np.any(np.where(case.factor > 0, case.signs, 0.0)[:, None] * forgetful.B < 0.0):
        return True
    if np.any(forgetful.B[np.isinf(case.factor)]):
        return True
    return case.objective(forgetful.B, forgetful.intercept) > case.solve().primal * (1 + 1e-7)


# What the campaign found ----------------------------------------------------------------------------------


def two_studies(**columns):
    """Samples of two studies, a task each, with columns of zeros beside others that are given."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.standard_normal((20, 2)), *columns.values()])
    Y = np.full((20, 2), np.nan)
    Y[:10, 0], Y[10:, 1] = X[:10, 0] + rng.standard_normal(10), X[10:, 0] + rng.standard_normal(10)
    return X, Y


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array, sp.csc_array])
@pytest.mark.parametrize("weight", [None, np.random.default_rng(1).uniform(0.5, 2.0, (20, 2))])
def test_constant_columns_have_no_scale_of_their_own(make, weight):
    """Rounding of sparse columns is no variation: standardizing would blow it up."""
    X, Y = two_studies(constant=np.full(20, 7.3), shifted=1e3 + np.arange(20) % 3)
    Y = Y if weight is None else np.nan_to_num(Y)
    problem = build_problem(make(X), Y, np.ones(4), fit_intercept=True, sample_weight=weight, standardized=True)
    assert problem.design.inverse_scale[2] == 0.0
    W = np.where(np.isnan(Y), 0.0, 1.0 if weight is None else weight)
    squares = sum(w @ (X - w @ X / w.sum()) ** 2 for w in W.T) / W.sum()
    np.testing.assert_allclose(problem.design.inverse_scale[[0, 1, 3]], 1.0 / np.sqrt(squares[[0, 1, 3]]), rtol=1e-10)


def test_indicators_of_studies_are_no_underflow():
    """Constant within each task, and of mean zero: nothing to refuse."""
    X, Y = two_studies(study=np.repeat([1.0, -1.0], 10))
    for fit_intercept in (True, False):
        options = {"fit_intercept": fit_intercept, "feature_groups": [0, 0, 1]}
        result = go.solve(X, Y, [1.0, 0.5], tol=1e-9, **options)
        assert result.converged
    assert not go.solve(X, Y, np.ones(3), fit_intercept=True).B[2].any()


@pytest.mark.parametrize("loss", ["squared", "huber"])
def test_missing_targets_beside_constant_ones_are_no_underflow(loss):
    """One observation per task: a constant explains all of it; stand-ins of missing entries do not count."""
    Y = np.array([[np.nan, -0.005], [-0.009, np.nan], [np.nan, np.nan]])
    offset = np.array([[1.5, -1.5], [-2.4, -4.7], [1.9, -1.3]])
    X, options = np.arange(3.0)[:, None], {"loss": loss, "fit_intercept": True, "offset": offset}
    assert go.lam_max(X, Y, [1.0], **options) == 0.0
    result = go.solve(X, Y, [1.0], **options)
    assert result.converged
    assert not result.B.any()
    np.testing.assert_allclose(result.intercept, [-0.009 + 2.4, -0.005 + 1.5], rtol=1e-12)


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_constant_groups_keep_their_scale_without_an_intercept(make):
    """The variance of a group of constants is zero, whatever rounding says."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.standard_normal((12, 2)), np.full(12, 0.1), np.full(12, 0.3)])
    Y = X.sum(axis=1, keepdims=True) + rng.standard_normal((12, 2))
    weight = rng.uniform(0.5, 2.0, (12, 2))
    for sample_weight in (None, weight[:, 0], weight):
        options = {"feature_groups": [0, 0, 1, 1], "group_scale": "frobenius"}
        top = go.lam_max(make(X), Y, [1.0, 1.0], sample_weight=sample_weight, **options)
        assert top < 1e3
        result = go.solve(make(X), Y, [0.1, 0.1], sample_weight=sample_weight, tol=1e-10, **options)
        assert result.B[2:].any()


@pytest.mark.parametrize("scale", SCALES)
def test_the_screener_certifies_what_it_was_given(scale):
    """Coefficients of constant or left-out columns of groups, and of collinear ones, are not forgotten in the gap."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.standard_normal((15, 4)), np.full(15, 2.0)])
    X = np.column_stack([X, X[:, 0] + X[:, 1] + 1.0])
    y = X[:, 0] + rng.standard_normal(15)
    factor = np.array([1.0, 1.0, 1.0, 1.0 if scale == "orthonormal" else np.inf, 1.0, 1.0])
    options = {"feature_groups": [0, 0, 1, 1, 1, 0], "group_scale": scale, "penalty_factor": factor}
    lam = np.array([1.0, 0.5])
    arguments = {"X": X, "Y": y, "lam": lam, "fit_intercept": True} | options
    best = go.solve(**arguments, tol=1e-11)
    screener = go.SafeScreener(**arguments)
    assert 4 not in screener.active
    assert (3 in screener.active) == (scale == "orthonormal")
    case = Combined(
        X, y[:, None], np.ones((15, 1)), lam, "squared", True, False, np.array(options["feature_groups"]), scale,
        factor, None, 0.0, np.zeros(6), X, None,
    )  # fmt: skip
    for size in (10.0, 1.0, 1e-2):
        active = screener.active
        B = np.zeros((6, 1))
        B[active] = best.B[active] + size * rng.standard_normal((len(active), 1))
        intercept = rng.standard_normal(1)
        report = screener.update(B[active], intercept)
        assert report.primal == pytest.approx(case.objective(B, intercept), rel=1e-9)
        assert case.objective(B, intercept) - best.primal <= report.gap * (1 + 1e-12)


# Edges ----------------------------------------------------------------------------------------------------


def small():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 6))
    return X, X[:, :2] @ np.array([[1.0, 0.5], [-0.7, 1.0]]) + 0.3 * rng.standard_normal((30, 2))


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("scale", SCALES)
def test_groups_of_zeros_and_with_constants(scale, fit_intercept):
    X, Y = small()
    options = {"feature_groups": [0, 0, 1, 2, 3, 4], "group_scale": scale, "fit_intercept": fit_intercept}
    zeros, constant = X.copy(), X.copy()
    zeros[:, :2], constant[:, 1] = 0.0, 3.0
    without = go.solve(zeros, Y, np.ones(5), **options, tol=1e-9)
    assert without.converged
    assert not without.B[:2].any()
    result = go.solve(constant, Y, np.ones(5), **options, tol=1e-9)
    assert result.converged
    assert result.B[0].all()
    assert result.B[1].all() != fit_intercept  # which takes its place
    fit = go.GroupOWLRegressor(0.1, standardize=True, **options).fit(constant, Y)
    assert fit.verify(constant, Y)


@pytest.mark.parametrize("loss", ["squared", "huber", "logistic", "poisson"])
def test_a_ridge_at_lam_max_has_no_false_gap_of_zero(loss):
    """Zero is the optimum from lam_max up, whatever the ridge, and just below it is not, and not claimed to be."""
    X, Y = small()
    Y = {"logistic": (Y > 0.0).astype(float), "poisson": np.floor(np.exp(np.clip(Y, -1.0, 1.0)))}.get(loss, Y)
    given = {"loss": loss, "fit_intercept": True, "ridge": 1.0}
    weights = go.weights.oscar(6)
    top = go.lam_max(X, Y, weights, **given)
    for factor in (1.0, 1.5):
        result = go.solve(X, Y, factor * top * weights, **given)
        assert not result.B.any()
        assert result.gap <= (1e-12 * result.primal if loss == "huber" else 0.0)  # whose constant is searched for
    below = go.solve(X, Y, 0.999 * top * weights, **given, tol=1e-12)
    assert below.B.any()
    null = go.SafeScreener(X, Y, 0.999 * top * weights, **given).update(np.zeros((6, 2)), below.intercept)
    assert null.gap >= null.primal - below.primal > 0.0


@pytest.mark.parametrize("loss", ["squared", "huber", "logistic", "poisson"])
def test_free_columns_that_are_zero_in_a_task(loss):
    """Whose coefficient in that task is anything: no system is singular."""
    X, Y = small()
    X[:15, 5] = 0.0
    Y = {"logistic": (Y > 0.0).astype(float), "poisson": np.floor(np.exp(np.clip(Y, -1.0, 1.0)))}.get(loss, Y)
    Y[15:, 0], Y[:15, 1] = np.nan, np.nan
    for fit_intercept in (False, True):
        result = go.solve(
            X, Y, np.full(5, 0.5), loss=loss, fit_intercept=fit_intercept, penalty_factor=[1, 1, 1, 1, 1, 0], tol=1e-8
        )
        assert result.converged
        assert np.isfinite(result.B).all()


def test_the_smallest_problems_there_are():
    X, Y = small()
    options = {"ridge": 0.1, "positive": True, "feature_groups": [0, 0, 1, 1, 2, 2]}
    assert go.solve(X[:1], Y[:1], np.ones(3), offset=[0.3], **options).converged
    apart = np.array([[1.0, np.nan], [np.nan, 2.0]])
    assert go.solve(X[:2], apart, np.ones(3), offset=[0.3, 0.2], fit_intercept=True, **options).converged
    one = go.solve(X[:, :1], Y, [1.0], offset=np.ones(30), fit_intercept=True, penalty_factor=[2.0], ridge=0.1)
    assert one.converged


@pytest.mark.parametrize("size", [1e6, 1e12])
def test_a_huge_offset_is_no_false_proof(size):
    """What rounding takes off targets less an offset is in the gap, with an intercept and without."""
    X, Y = small()
    rng = np.random.default_rng(1)
    offset = size * rng.standard_normal((30, 2))
    exact = (Y + offset).astype(np.longdouble) - offset
    for fit_intercept in (False, True):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # that rounding is all that is left
            result = go.solve(X, Y + offset, np.ones(6), offset=offset, fit_intercept=fit_intercept)
        best = go.solve(X, np.asarray(exact, dtype=float), np.ones(6), fit_intercept=fit_intercept, tol=1e-10)
        assert result.primal - result.gap <= best.primal


@pytest.mark.parametrize("offset", [-700.0, -50.0, 50.0, 700.0])
def test_intercepts_take_up_any_offset_of_counts(offset):
    X, Y = small()
    counts = np.floor(np.exp(np.clip(Y, -1.0, 1.0)))
    near = go.solve(X, counts, np.ones(6), loss="poisson", fit_intercept=True, tol=1e-9)
    far = go.solve(X, counts, np.ones(6), loss="poisson", fit_intercept=True, tol=1e-9, offset=np.full(30, offset))
    np.testing.assert_allclose(far.B, near.B, atol=1e-4)
    np.testing.assert_allclose(far.intercept + offset, near.intercept, atol=1e-4)


def test_folds_in_which_nothing_was_observed():
    """A fold without any target to test has no score; one without a task to learn from is refused by name."""
    X, Y = small()
    none = Y.copy()
    none[:10] = np.nan
    search = go.GroupOWLRegressorCV(cv=KFold(3), alphas=4, eps=0.1).fit(X, none)
    assert search.score_path_.shape == (4, 2)
    assert search.verify(X, none)
    some = Y.copy()
    some[:20, 1] = np.nan
    with pytest.raises(ValueError, match="training samples of split 2 of cv have no observed target in column 1"):
        go.GroupOWLRegressorCV(cv=KFold(3), alphas=4).fit(X, some)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"feature_groups": [0, 0, 1, 2, 3, 4], "penalty_factor": [0, 1, 1, 1, 1, 1]},
            "only some columns of the group",
        ),
        ({"penalty_factor": [np.inf] * 6}, "at least one must be penalized"),
        ({"penalty_factor": [0.0] * 6}, "at least one must be penalized"),
    ],
)
def test_penalties_of_nothing_are_refused(options, message):
    X, Y = small()
    with pytest.raises(ValueError, match=message):
        go.solve(X, Y, np.ones(6), **options)
