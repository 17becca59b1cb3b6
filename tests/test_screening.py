"""The safe rules: what they keep, that they are safe, and where the paper is wrong about them."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp

import groupowl as go
from groupowl.norm.kernels import row_norms
from groupowl.problem import build_problem
from groupowl.screening import RULES, extended_rule, paper_rule, safe_rows
from support import make_case

SHAPES = ["oscar", "linear", "constant", "bh", "two-level"]
DATA = [
    {"loss": loss, "fit_intercept": intercept}
    for loss, intercept in itertools.product(["squared", "multinomial"], [False, True])
]


def paper_loop(upper, lam):
    """The screening loop of Algorithm 1 as it is printed."""
    A = set(range(len(upper)))
    while True:
        kept = {j for j in A if not upper[j] < lam[len(A) - 1]}
        if kept == A:
            return np.array(sorted(A), dtype=int)
        A = kept


def exhaustive_extended_rule(upper, lam):
    """Smallest top-k such that no t further rows could pay their weights, for every t."""
    order = np.argsort(-upper, kind="stable")
    u, m = upper[order], len(upper)
    for k in range(m + 1):
        if all(u[k : k + t].sum() < lam[k : k + t].sum() for t in range(1, m - k + 1)):
            return np.sort(order[:k])
    raise AssertionError("k = m always passes")


def bounds_and_weights(seed):
    """Upper bounds and weights on a coarse grid of multiples of 1/8, so that sums are exact and ties are common."""
    rng = np.random.default_rng(seed)
    m = int(rng.integers(1, 30))
    upper = rng.integers(0, 40, size=m) / 8
    lam = np.sort(rng.integers(0, 40, size=m) / 8)[::-1].copy()
    lam[0] = max(lam[0], 0.125)
    return upper, lam


@pytest.mark.parametrize("seed", range(300))
def test_rules_on_exact_numbers(seed):
    """Closed form = literal loop; extended rule = its definition up to one rounding guard; subset of the paper's."""
    upper, lam = bounds_and_weights(seed)
    paper, extended = paper_rule(upper, lam), extended_rule(upper, lam)
    np.testing.assert_array_equal(paper, paper_loop(upper, lam))
    np.testing.assert_array_equal(extended, exhaustive_extended_rule(upper, lam))
    assert set(extended) <= set(paper)


def test_constant_weights_make_the_rules_equal():
    rng = np.random.default_rng(0)
    for _ in range(100):
        upper = rng.uniform(0, 2, size=20)
        np.testing.assert_array_equal(paper_rule(upper, np.ones(20)), extended_rule(upper, np.ones(20)))


def test_the_extended_rule_screens_where_the_last_weight_is_zero():
    upper, lam = np.array([4.0, 0.5, 0.1]), np.array([4.0, 3.0, 0.0])
    assert list(paper_rule(upper, lam)) == [0, 1, 2]
    assert list(extended_rule(upper, lam)) == [0]


def test_counterexample_to_the_papers_identification_theorem():
    """Gap 0, two inactive rows, and the paper's rule keeps all three for ever; the extended rule keeps one."""
    X, Y, lam = np.eye(3), np.array([10.0, 1.9, 1.9]), np.array([4.0, 3.0, 1.0])
    result = go.solve(X, Y, lam, tol=1e-12, screening="none")
    np.testing.assert_allclose(result.B[:, 0], [6.0, 0.0, 0.0], atol=1e-9)
    problem = build_problem(X, Y, lam)
    certificate = problem.certify(np.array([[6.0], [0.0], [0.0]]))
    assert certificate.gap <= 1e-10
    everything = np.arange(3)
    assert len(safe_rows(problem, certificate, everything, RULES["paper"])) == 3
    assert list(safe_rows(problem, certificate, everything, RULES["safe"])) == [0]
    assert len(go.solve(X, Y, lam, screening="paper").active) == 3
    assert list(go.solve(X, Y, lam, screening="safe").active) == [0]


def replay(case, seed):
    """Certificates at points between a random start and the optimum: gaps from large to tiny."""
    problem = case.problem()
    optimum = go.solve(**case.arguments(), tol=1e-12, screening="none")
    B_star = problem.from_input(optimum.B, optimum.intercept)
    rng = np.random.default_rng(seed)
    direction = rng.standard_normal(B_star.shape) * (1 + row_norms(B_star).max())
    for size in 10.0 ** -np.arange(0, 8):
        yield problem, optimum, problem.certify(B_star + size * direction)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("data", DATA, ids=lambda data: "-".join(str(value) for value in data.values()))
def test_no_active_row_is_ever_dropped(data, shape):
    """Safety: from any point, at any gap, both rules keep every row of the support."""
    screened = 0
    for seed, fraction in itertools.product(range(3), [0.6, 0.2, 0.05]):
        case = make_case(seed, n=20, d=30, shape=shape, fraction=fraction, **data)
        for problem, optimum, certificate in replay(case, seed):
            active = np.flatnonzero(row_norms(optimum.B) > 1e-6 * row_norms(optimum.B).max(initial=0))
            candidates = np.arange(problem.n_rows)
            paper, extended = (safe_rows(problem, certificate, candidates, RULES[name]) for name in ("paper", "safe"))
            assert set(active) <= set(extended) <= set(paper)
            screened += problem.n_rows - len(extended)
    assert screened > 0  # the rules really ran


@pytest.mark.parametrize("data", DATA, ids=lambda data: "-".join(str(value) for value in data.values()))
def test_dropping_screened_rows_never_raises_the_objective(data):
    """Proposition 3, at the very point whose certificate screened them."""
    dropped_nonzero = 0
    for seed, size in itertools.product(range(4), [1e-2, 1e-3, 1e-4]):
        case = make_case(seed, n=20, d=30, fraction=0.5, **data)
        problem, rng = case.problem(), np.random.default_rng(seed)
        optimum = go.solve(**case.arguments(), tol=1e-10, screening="none")
        B = problem.from_input(optimum.B, optimum.intercept)
        B += size * rng.standard_normal(B.shape)
        certificate = problem.certify(B)
        keep = safe_rows(problem, certificate, np.arange(problem.n_rows), RULES["safe"])
        lighter = B.copy()
        lighter[np.delete(np.arange(problem.n_rows), keep)] = 0.0
        dropped_nonzero += problem.n_rows - len(keep)
        assert problem.certify(lighter).primal <= certificate.primal * (1 + 1e-14)
    assert dropped_nonzero > 0


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("data", DATA, ids=lambda data: "-".join(str(value) for value in data.values()))
def test_correlations_at_the_optimum(data, shape):
    """F2 and F4: active rows have correlations between lam_|A| and lam_1 that sum to their weights."""
    case = make_case(3, n=20, d=30, shape=shape, **data)
    problem = case.problem()
    result = go.solve(**case.arguments(), tol=1e-13 if data["loss"] == "squared" else 1e-12)
    X = case.X.toarray() if sp.issparse(case.X) else case.X
    g = row_norms(X.T @ result.theta)
    size = len(result.support)
    slack = 1e-5 * case.lam[0]
    assert size > 0
    assert np.all(g[result.support] >= case.lam[size - 1] - slack)
    assert np.all(g[result.support] <= case.lam[0] + slack)
    assert g[result.support].sum() == pytest.approx(case.lam[:size].sum(), rel=1e-5)
    inactive = np.delete(np.arange(problem.n_rows), result.support)
    assert np.all(g[inactive] <= case.lam[min(size, problem.n_rows - 1)] + slack)
