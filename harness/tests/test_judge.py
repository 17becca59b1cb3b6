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
    Y = X[:, :2] @ rng.standard_normal((2, 3)) if loss == "squared" else np.eye(3)[rng.integers(0, 3, 40)]
    return X, Y, go.oscar_lam(15, 4.0 if loss == "squared" else 1.5, 0.1)


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


@LOSSES
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


@LOSSES
@pytest.mark.parametrize("value", [np.nan, np.inf, 1e308])
def test_an_answer_that_overflows_is_not_finite(loss, value):
    X, Y, lam = problem(loss)
    assert not judge(X, Y, lam, loss, [0, 1], [[value, -value, value]] * 2).is_finite


@pytest.mark.parametrize("changed", [{"objective": np.nan}, {"dual": -np.inf}, {"null_loss": 0.0}])
def test_numbers_that_cannot_be_compared(changed):
    numbers = {"objective": 1.0, "dual": 0.9, "null_loss": 2.0}
    assert Verdict(**numbers).is_finite
    assert not Verdict(**{**numbers, **changed}).is_finite
