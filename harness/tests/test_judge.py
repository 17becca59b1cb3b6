"""The judge: objective and lower bound of any answer, from outside."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp

import groupowl as go
from groupowl_harness.judge import Verdict, judge, lam_max


def problem(loss):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((40, 15))
    targets = {
        "squared": X[:, :2] @ rng.standard_normal((2, 3)),
        "multinomial": np.eye(3)[rng.integers(0, 3, 40)],
        "logistic": rng.integers(0, 2, (40, 3)).astype(float),
        "poisson": rng.poisson(1.5, (40, 3)).astype(float),
        "cox": (rng.permutation(40)[:, None] + 1.0) * rng.choice([1.0, -1.0], (40, 1)),
    }
    return X, targets[loss], go.oscar_lam(15, 4.0 if loss == "squared" else 1.5, 0.1)


every_loss = pytest.mark.parametrize("loss", ["squared", "multinomial", "logistic", "poisson", "cox"])
LOSSES = pytest.mark.parametrize("loss", ["squared", "multinomial"])


def test_it_shares_no_code_with_groupowl():
    code = (
        "import sys, groupowl_harness.judge, groupowl_harness.process, groupowl_harness.serving\n"
        "print([name for name in sys.modules if name.partition('.')[0] == 'groupowl'])"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"


@LOSSES
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array, sp.csc_matrix])
def test_it_computes_what_the_formulas_say(loss, kind):
    X, Y, lam = problem(loss)
    rng = np.random.default_rng(4)
    rows, values = [2, 5, 11], rng.standard_normal((3, 3))
    verdict = judge(kind(X), Y, lam, loss, rows, values.tolist())
    Z = X[:, rows] @ values
    norms = np.sort(np.linalg.norm(values, axis=1))[::-1]
    if loss == "squared":
        value, null, residual = 0.5 * np.sum((Y - Z) ** 2), 0.5 * np.sum(Y**2), Y - Z
    else:
        log_sums = np.log(np.exp(Z).sum(axis=1))
        value, null = np.sum(log_sums - np.sum(Y * Z, axis=1)), 40 * np.log(3)
        residual = Y - np.exp(Z - log_sums[:, None])
    gauge = np.max(np.cumsum(np.sort(np.linalg.norm(X.T @ residual, axis=1))[::-1]) / np.cumsum(lam))
    if loss == "squared":
        scale = min(np.sum(residual * Y) / np.sum(residual**2), 1.0 / gauge)
        dual = scale * np.sum(residual * Y) - 0.5 * scale**2 * np.sum(residual**2)
    else:
        P = Y - residual / max(1.0, gauge)
        dual = -np.sum(np.where(P > 0, P * np.log(np.maximum(P, 1e-300)), 0.0))
    assert verdict.objective == pytest.approx(value + norms @ lam[:3], rel=1e-12)
    assert verdict.null_loss == pytest.approx(null, rel=1e-12)
    assert verdict.dual == pytest.approx(dual, rel=1e-10)
    assert verdict.gap == pytest.approx((verdict.objective - verdict.dual) / null, rel=1e-12)


@pytest.mark.parametrize("loss", ["logistic", "poisson"])
def test_the_formulas_of_labels_and_counts(loss):
    X, Y, lam = problem(loss)
    values = np.random.default_rng(4).standard_normal((3, 3))
    verdict, Z = judge(X, Y, lam, loss, [2, 5, 11], values), X[:, [2, 5, 11]] @ values
    norms = np.sort(np.linalg.norm(values, axis=1))[::-1]
    means = np.exp(Z) if loss == "poisson" else np.exp(Z) / (1 + np.exp(Z))
    gauge = np.max(np.cumsum(np.sort(np.linalg.norm(X.T @ (Y - means), axis=1))[::-1]) / np.cumsum(lam))
    P = Y - (Y - means) / max(1.0, gauge)
    if loss == "poisson":
        value, dual = np.sum(np.exp(Z) - Y * Z), np.sum(P - P * np.log(P))
        null = Y.size - np.sum(Y - np.where(Y > 0, Y * np.log(np.maximum(Y, 1.0)), 0.0))
    else:
        value, null = np.sum(np.log1p(np.exp(Z)) - Y * Z), Y.size * np.log(2.0)
        dual = -np.sum(P * np.log(P) + (1 - P) * np.log(1 - P))
    assert verdict.objective == pytest.approx(value + norms @ lam[:3], rel=1e-12)
    assert verdict.null_loss == pytest.approx(null, rel=1e-12)
    assert verdict.dual == pytest.approx(dual, rel=1e-10)


def test_the_formulas_of_times():
    """Each death is a choice among those at risk, by a softmax; the dual mixes it with the one who died."""
    X, Y, lam = problem("cox")
    values = 0.5 * np.random.default_rng(4).standard_normal((3, 1))
    verdict, z, y = judge(X, Y, lam, "cox", [2, 5, 11], values), (X[:, [2, 5, 11]] @ values)[:, 0], Y[:, 0]
    deaths = np.flatnonzero(y > 0)
    P = np.array([(np.abs(y) >= y[i]) * np.exp(z) for i in deaths])
    sums = P.sum(axis=1)
    P /= sums[:, None]
    residual = (y > 0) - P.sum(axis=0)
    gauge = np.max(np.cumsum(np.sort(np.abs(X.T @ residual))[::-1]) / np.cumsum(lam))
    assert gauge > 1.0
    mixed = P / gauge + (1.0 - 1.0 / gauge) * np.eye(40)[deaths]
    norms = np.sort(np.abs(values[:, 0]))[::-1]
    assert verdict.objective == pytest.approx(np.sum(np.log(sums) - z[deaths]) + norms @ lam[:3], rel=1e-12)
    assert verdict.null_loss == pytest.approx(sum(np.log(np.sum(np.abs(y) >= y[i])) for i in deaths), rel=1e-12)
    assert verdict.dual == pytest.approx(-np.sum(mixed * np.log(np.where(mixed > 0, mixed, 1.0))), rel=1e-10)
    with pytest.raises(ValueError, match="one task without ties"):
        judge(X, np.ones((40, 1)), lam, "cox", [], [])


@every_loss
def test_a_minimum_is_found_to_be_one(loss):
    """And so is zero at the strength from which on it is the minimum, and not below."""
    X, Y, lam = problem(loss)
    result = go.solve(X, Y, lam, loss=loss, tol=1e-10)
    verdict = judge(X, Y, lam, loss, result.support, result.B[result.support])
    assert -1e-14 <= verdict.gap <= 1e-9
    assert verdict.objective == pytest.approx(result.primal, rel=1e-12)
    strongest = lam_max(X, Y, lam, loss)
    assert judge(X, Y, strongest * lam, loss, [], []).gap == pytest.approx(0.0, abs=1e-14)
    assert judge(X, Y, 0.9 * strongest * lam, loss, [], []).gap > 1e-4


@pytest.mark.parametrize("loss", ["squared", "logistic", "poisson"])
def test_targets_that_were_not_observed_have_no_part(loss):
    """The loss is that of the samples of each task, and so is the residual."""
    X, Y, lam = problem(loss)
    rng = np.random.default_rng(5)
    Y = np.where(rng.random(Y.shape) < 0.4, np.nan, Y)
    values, rows = 0.3 * rng.standard_normal((3, 3)), [2, 5, 11]
    verdict, alone = judge(X, Y, lam, loss, rows, values), []
    for k in range(3):
        there = ~np.isnan(Y[:, k])
        alone.append(judge(X[there], Y[there][:, [k]], 1e-9 * lam, loss, rows, values[:, [k]]))
    penalty = np.sort(np.linalg.norm(values, axis=1))[::-1] @ lam[:3]
    assert verdict.objective - penalty == pytest.approx(sum(one.objective for one in alone), rel=1e-7)
    assert verdict.null_loss == pytest.approx(sum(one.null_loss for one in alone), rel=1e-12)
    result = go.solve(X, Y, lam, loss=loss, tol=1e-10)
    verdict = judge(X, Y, lam, loss, result.support, result.B[result.support])
    assert -1e-14 <= verdict.gap <= 1e-9
    strongest = lam_max(X, Y, lam, loss)
    assert judge(X, Y, strongest * lam, loss, [], []).gap == pytest.approx(0.0, abs=1e-14)
    assert judge(X, Y, 0.9 * strongest * lam, loss, [], []).gap > 1e-4


@every_loss
def test_groups_of_features(loss):
    X, Y, _ = problem(loss)
    groups = np.array([0, 0, 1, 1, 1, 2, 3, 0, 4, 4, 2, 4, 5, 5, 1])
    lam = (4.0 if loss == "squared" else 1.5) * np.ones(6)
    result = go.solve(X, Y, lam, loss=loss, feature_groups=groups, group_scale="none", tol=1e-10)
    rows = np.flatnonzero(result.B.any(axis=1))
    verdict = judge(X, Y, lam, loss, rows, result.B[rows], groups)
    assert -1e-14 <= verdict.gap <= 1e-9
    assert verdict.objective == pytest.approx(result.primal, rel=1e-12)
    norms = np.sort([np.linalg.norm(result.B[groups == g]) for g in range(6)])[::-1]
    alone = judge(X, Y, lam, loss, rows, result.B[rows], np.zeros(15, dtype=int))  # one group of all
    assert verdict.objective - alone.objective == pytest.approx(norms @ lam - lam[0] * np.linalg.norm(result.B))
    strongest = lam_max(X, Y, lam, loss, groups)
    assert judge(X, Y, strongest * lam, loss, [], [], groups).gap == pytest.approx(0.0, abs=1e-14)
    assert judge(X, Y, 0.9 * strongest * lam, loss, [], [], groups).gap > 1e-4


@every_loss
def test_groups_of_one_are_rows(loss):
    X, Y, lam = problem(loss)
    rows, values = [2, 5, 11], 0.3 * np.random.default_rng(4).standard_normal((3, Y.shape[1]))
    one, other = (judge(X, Y, lam, loss, rows, values, groups) for groups in (None, np.arange(15)))
    assert other.objective == pytest.approx(one.objective, rel=1e-14)
    assert other.dual == pytest.approx(one.dual, rel=1e-13)


@every_loss
@pytest.mark.parametrize("value", [np.nan, np.inf, 1e308])
def test_an_answer_that_overflows_is_not_finite(loss, value):
    X, Y, lam = problem(loss)
    assert not judge(X, Y, lam, loss, [0, 1], [[value, -value, value][: Y.shape[1]]] * 2).is_finite


@pytest.mark.parametrize("changed", [{"objective": np.nan}, {"dual": -np.inf}, {"null_loss": 0.0}])
def test_numbers_that_cannot_be_compared(changed):
    numbers = {"objective": 1.0, "dual": 0.9, "null_loss": 2.0}
    assert Verdict(**numbers).is_finite
    assert not Verdict(**{**numbers, **changed}).is_finite
