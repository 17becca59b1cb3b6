"""Missing targets, groups of columns, offsets, ridge, signs and factors at once, against a conic solver."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import scipy.sparse as sp

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
