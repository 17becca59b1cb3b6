"""Penalties whose units are several rows, through the whole core: certificates, screening and solvers."""

from dataclasses import replace

import numpy as np
import pytest

import groupowl as go
from groupowl.problem import build_problem
from groupowl.solvers import Continuation, check_settings

UNITS = {
    "pairs": np.repeat(np.arange(30), 2),
    "one to three rows": np.repeat(np.arange(30), 1 + np.arange(30) % 3),
    "scattered rows": np.random.default_rng(3).permutation(np.repeat(np.arange(30), 2)),
}
TOL = 1e-8


def make_problem(kind, loss, fit_intercept, seed=0, n=60, q=3):
    rng = np.random.default_rng(seed)
    units = UNITS[kind]
    d = len(units)
    X, B = rng.standard_normal((n, d)) + 0.3, np.zeros((d, q))
    B[:8] = rng.standard_normal((8, q))
    Z = X @ B + rng.standard_normal((n, q))
    Y = Z if loss == "squared" else np.eye(q)[Z.argmax(axis=1)]
    problem = build_problem(X, Y, np.ones(d), loss=loss, fit_intercept=fit_intercept)
    return X, Y, replace(problem, penalty=go.GroupOWL(go.weights.oscar(30), units=units))


def solve(problem, share, solver="auto", screening="safe"):
    weights = problem.lam
    settings = check_settings(solver, screening, TOL, 100_000)
    start = problem.null_coefficients()
    return Continuation(problem, settings, start).solve(weights, share * problem.lam_max(weights))


@pytest.mark.parametrize("kind", UNITS)
@pytest.mark.parametrize("loss", ["squared", "multinomial"])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_solvers_and_rules_agree(kind, loss, fit_intercept):
    _, _, problem = make_problem(kind, loss, fit_intercept)
    penalty = problem.penalty
    exact = solve(problem, 0.2, screening="none")
    for solver in ("auto", "apgd"):
        for screening in ("safe", "paper"):
            result = solve(problem, 0.2, solver, screening)
            assert result.status == "converged"
            assert abs(result.primal - exact.primal) <= result.gap + exact.gap
            selected = result.B.any(axis=1)
            units = penalty.nonzero(selected[:, None])
            np.testing.assert_array_equal(selected, penalty.spread(units))  # a unit is zero as a whole
            proved = result.screened_at >= 0
            assert proved.sum() >= 6
            assert not exact.B[proved].any()
            np.testing.assert_array_equal(result.active, np.flatnonzero(~proved))
            np.testing.assert_array_equal(result.clusters > 0, selected)


@pytest.mark.parametrize("kind", UNITS)
@pytest.mark.parametrize("share", [0.5, 0.1])
def test_the_gap_is_that_of_the_definitions(kind, share):
    """Primal and dual by hand: the dual point is feasible for units, and the gap is what it proves."""
    X, Y, problem = make_problem(kind, "squared", False)
    lam = share * problem.lam_max(problem.lam) * problem.lam
    result = solve(problem, share)

    def norms(C):
        return np.array([np.linalg.norm(C[problem.penalty.units == k]) for k in range(30)])

    def falling(values):
        return np.sort(values)[::-1]

    primal = 0.5 * np.sum((Y - X @ result.B) ** 2) + falling(norms(result.B)) @ lam
    assert primal == pytest.approx(result.primal, rel=1e-12)
    correlations = falling(norms(X.T @ result.theta))
    assert np.all(np.cumsum(correlations) <= np.cumsum(lam) * (1 + 1e-12))
    dual = np.sum(result.theta * Y) - 0.5 * np.sum(result.theta**2)
    assert primal - dual <= result.gap * (1 + 1e-6) + 1e-12 * primal


@pytest.mark.parametrize("kind", UNITS)
@pytest.mark.parametrize("loss", ["squared", "multinomial"])
def test_lam_max_of_units(kind, loss):
    _, _, problem = make_problem(kind, loss, True)
    nothing = solve(problem, 1.0)
    assert not nothing.B.any()
    assert nothing.gap == 0.0
    assert solve(problem, 0.98).B.any()


@pytest.mark.parametrize("kind", UNITS)
def test_bounds_of_units_hold_at_the_optimum(kind):
    """``u >= ||X_unit^T theta*||`` from any coefficients."""
    X, _, problem = make_problem(kind, "squared", False)
    lam = 0.3 * problem.lam_max(problem.lam) * problem.lam
    problem = problem.with_lam(lam)
    optimal = problem.certify(problem.from_input(solve(problem.with_lam(lam / lam[0]), 0.3).B, None))
    best = problem.penalty.norms(X.T @ optimal.theta)
    rng = np.random.default_rng(1)
    for scale in (0.0, 0.01, 0.1):
        B = scale * rng.standard_normal((problem.n_rows, 3))
        assert np.all(problem.upper_bounds(problem.certify(B)) >= best * (1 - 1e-6))
