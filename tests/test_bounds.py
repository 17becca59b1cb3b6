"""Bounds on the dual optimum: they hold from any pair of points, and the midpoint ball lies inside the other."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

import groupowl as go
from groupowl.designs import SufficientStatistics
from groupowl.norm import GroupOWL
from groupowl.norm.kernels import row_norms
from groupowl.problem import Balls, Problem, build_problem, problem_of_statistics
from groupowl.problem.bounds import UnitNorms
from groupowl.screening import RULES, SAFE, ScreenedProblem, extended_rule, safe_rows
from groupowl.solvers import check_settings
from groupowl.solvers.driver import Run
from support import Case, make_case

KINDS = [
    {"loss": loss, "fit_intercept": intercept, "weighted": weighted}
    for loss, intercept, weighted in itertools.product(["squared", "multinomial"], [False, True], [False, True])
]
kinds = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: "-".join(str(value) for value in kind.values()))


def optimum_of(problem):
    """A certificate of nearly optimal coefficients."""
    settings = check_settings("auto", "none", 1e-13, 100_000)
    run = Run(problem, settings)
    run.solve(problem.null_coefficients())
    return run.answer.B, run.answer.certificate


def pairs(problem, B, seed):
    """Certificates of poor to good coefficients, with dual points of their own and stale ones."""
    rng = np.random.default_rng(seed)
    best = None
    for size in 10.0 ** -np.arange(0, 7):
        point = B + size * (1 + row_norms(B).max()) * rng.standard_normal(B.shape)
        own = problem.certify(point)
        best = problem.certify(point, best=best)
        yield point, own
        yield point, best
        if seed % 2:  # a dual point that is better than the coefficients
            best = problem.certify(B + 0.3 * size * rng.standard_normal(B.shape), best=best)


def violations(problem, certificate, exact, near):
    """Units whose bounds do not hold; ``near`` is how far the reference may be from the dual optimum."""
    room = near * problem.penalty.lengths(problem.norms) + 1e-12 * exact.max(initial=0.0)
    upper, lower = problem.upper_bounds(certificate), problem.lower_bounds(certificate)
    local = problem.local_bounds(certificate)
    too_small = (upper < exact - room) | (local < exact - room)
    return int(np.count_nonzero(too_small) + np.count_nonzero(lower > exact + room))


@kinds
def test_bounds_hold_and_the_midpoint_ball_is_never_worse(kind):
    tighter = 0
    for seed in range(4):
        problem = make_case(seed, n=20, d=15, **kind).problem()
        B, optimal = optimum_of(problem)
        near = np.sqrt(2 * problem.loss.curvature * optimal.gap)
        for _, certificate in pairs(problem, B, seed):
            assert violations(problem, certificate, optimal.correlations, near) == 0
            one_sided = problem.upper_bounds(certificate, two_sided=False)
            both = problem.upper_bounds(certificate)
            assert np.all(both <= one_sided)
            tighter += int(np.count_nonzero(both < 0.99 * one_sided))
            if certificate.residual.balancing == 0.0:  # by itself, not only as the smaller of two
                balls = problem._balls(certificate, True)
                norms = problem._correlations(certificate)
                center, slack = balls.center(norms, problem.design.n_samples)
                midpoint = center + balls.midpoint_radius * norms.columns + slack
                assert np.all(midpoint <= one_sided * (1 + 1e-7))
    assert tighter > 100


def test_the_midpoint_ball_is_inside_for_every_distance():
    for gap, curvature in itertools.product([1e-6, 1.0, 1e3], [0.25, 1.0]):
        for distance in np.linspace(0.0, 1.0, 50) * np.sqrt(2 * curvature * gap):
            balls = Balls(gap, curvature, 0.0, 0.0, distance, 0.0, 0.0)
            assert distance / 2 + balls.midpoint_radius <= balls.radius * (1 + 1e-14)
    assert Balls(1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0).midpoint_radius == pytest.approx(np.sqrt(0.5) * np.sqrt(2.0))


def test_both_balls_are_tight():
    """One column of length 1 and one sample: the optimum is known, and on the boundary of the ball."""
    problem = build_problem(np.ones((1, 1)), np.array([[3.0]]), np.array([1.0]))
    B, optimum = np.array([[2.5]]), 1.0  # theta* = lam, B* = 2
    certificate = problem.certify(B)  # residual 0.5, which is feasible, and scaled up to 1
    upper = problem.upper_bounds(certificate)[0]
    assert certificate.correlations[0] == pytest.approx(1.0)
    assert optimum <= upper <= 0.5 * (1.0 + 0.5) + np.sqrt(certificate.gap - 0.25 * 0.25) + 1e-9


@kinds
def test_bounds_with_unpenalized_columns(kind):
    screened = 0
    for seed in range(3):
        case = make_case(seed, n=30, d=12, fraction=0.6, **kind)
        problem = build_problem(**case.arguments(), unpenalized=np.array([1, 4]))
        B, optimal = optimum_of(problem)
        near = np.sqrt(2 * problem.loss.curvature * optimal.gap)
        for _, certificate in pairs(problem, B, seed):
            assert violations(problem, certificate, optimal.correlations, near) == 0
            screened += problem.n_rows - len(safe_rows(problem, certificate, np.arange(problem.n_rows), SAFE))
    assert screened > 0


def test_bounds_where_a_gram_matrix_stands_for_the_data():
    """From statistics after a subtraction, which rounds a lot: bounds hold for the samples themselves."""
    rng = np.random.default_rng(0)
    for seed in range(5):
        X = rng.standard_normal((60, 6)) + 10.0 ** rng.uniform(0, 5)
        Y = X[:, :2] @ rng.standard_normal((2, 2)) + 10.0 ** rng.uniform(-3, 0) * rng.standard_normal((60, 2))
        whole, part = (SufficientStatistics.from_arrays(X[rows], Y[rows]) for rows in (slice(None), slice(40, None)))
        small = problem_of_statistics(whole - part, fit_intercept=True, total_weight=40.0)
        problem = build_problem(X[:40], Y[:40], np.ones(6), fit_intercept=True)
        lam = 0.1 * problem.lam_max(np.ones(6)) * np.linspace(1.0, 0.5, 6)
        small, problem = small.with_lam(lam), problem.with_lam(lam)
        B, optimal = optimum_of(problem)
        near = np.sqrt(2 * optimal.gap)
        for point, certificate in pairs(small, B, seed):
            upper = small.upper_bounds(certificate)
            assert np.all(upper >= optimal.correlations - near * problem.norms), point
            assert not small.lower_bounds(certificate).any()  # which are not known there


def test_what_overflows_bounds_nothing():
    problem = make_case(0).problem()
    with np.errstate(all="ignore"):
        certificate = problem.certify(np.full((problem.n_rows, 3), 1e200))
    assert certificate.residual is None
    assert np.all(problem.upper_bounds(certificate) == np.inf)
    assert not problem.lower_bounds(certificate).any()


@kinds
def test_dropping_rows_never_raises_the_objective(kind):
    """At the coefficients of the certificate, whose dual point may come from others."""
    dropped = 0
    for seed in range(6):
        problem = make_case(seed, n=20, d=30, fraction=0.5, **kind).problem()
        B, _ = optimum_of(problem)
        for point, certificate in pairs(problem, B, seed):
            gone = np.delete(
                np.arange(problem.n_rows), safe_rows(problem, certificate, np.arange(problem.n_rows), SAFE)
            )
            lighter = point.copy()
            lighter[gone] = 0.0
            dropped += int(np.count_nonzero(point[gone].any(axis=1)))
            assert problem.certify(lighter).primal <= certificate.primal * (1 + 1e-13)
    assert dropped > 0


def test_the_papers_rule_has_the_papers_ball():
    """The ball about the dual point alone, whatever else is known."""
    case = make_case(3, n=40, d=60, fraction=0.3)
    certificate = case.problem().certify(0.5 * go.solve(**case.arguments(), tol=1e-6).B)
    problem = case.problem()
    radius = np.sqrt(2 * certificate.gap)
    np.testing.assert_allclose(
        problem.upper_bounds(certificate, two_sided=False), certificate.correlations + radius * problem.norms, rtol=1e-9
    )
    assert not RULES["paper"].two_sided


# Local bounds -----------------------------------------------------------------------------------------------


def rare_classes(seed, n=400, d=150, q=6, fraction=0.4):
    """One class has nearly all samples: the softmax is flat at most of them."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    Z = np.zeros((n, q))
    Z[:, 0] = 8.0
    Z[:, 1:] += 5.0 * X[:, : q - 1]
    Y = np.eye(q)[np.argmax(Z + rng.gumbel(size=Z.shape), axis=1)]
    kind = {"loss": "multinomial", "fit_intercept": True}
    weights = go.weights.constant(d)
    return Case(X, Y, fraction * go.lam_max(X, Y, weights, **kind) * weights, **kind)


def near_optimum(case, gap):
    """A certificate of about this relative gap, by APGD."""
    found = []

    def stop(progress):
        found.append(progress.coefficients())
        return progress.gap <= gap * problem.loss_scale

    problem = case.problem()
    solver = go.APGD(check_every=1)
    go.solve(**case.arguments(), solver=solver, screening="none", tol=1e-12, callback=stop)
    return problem, problem.certify(problem.from_input(*found[-1]))


def test_local_bounds_prove_more_where_classes_are_rare():
    problem, certificate = near_optimum(rare_classes(0), 3e-3)
    everything = np.arange(problem.n_rows)
    ball, both = (safe_rows(problem, certificate, everything, SAFE, local=local) for local in (False, True))
    assert set(both) < set(ball)
    assert len(both) <= 0.7 * len(ball)
    upper = np.minimum(problem.upper_bounds(certificate), problem.local_bounds(certificate))
    np.testing.assert_array_equal(both, extended_rule(upper, problem.lam))


def test_local_bounds_are_made_only_where_they_pay():
    """Even classes, and a gap at which nothing, or everything, is proved without them."""
    case = make_case(2, n=60, d=40, q=3, loss="multinomial", fit_intercept=True)
    for gap in (0.5, 1e-8):
        problem, certificate = near_optimum(case, gap)
        before = problem.design.passes.total
        safe_rows(problem, certificate, np.arange(problem.n_rows), SAFE)
        assert problem.design.passes.total == before
    problem, certificate = near_optimum(rare_classes(1), 3e-3)
    before = problem.design.passes.total
    safe_rows(problem, certificate, np.arange(problem.n_rows), SAFE)
    assert problem.design.passes.total == before + 1.0


def test_local_bounds_are_made_once_for_each_halving_of_the_gap(monkeypatch):
    gaps, original = [], Problem.local_bounds

    def counted(self, certificate, *, estimated=False):
        if not estimated:
            gaps.append(certificate.gap)
        return original(self, certificate, estimated=estimated)

    monkeypatch.setattr(Problem, "local_bounds", counted)
    result = go.solve(**rare_classes(2).arguments(), solver=go.APGD(check_every=1), tol=1e-7)
    assert len(result.history) > 2 * len(gaps) > 0
    assert all(later <= 0.5 * earlier for earlier, later in itertools.pairwise(gaps))


def test_a_loss_without_local_bounds_knows_nothing_of_them():
    problem = make_case(0).problem()
    certificate = problem.certify(problem.null_coefficients())
    assert np.all(problem.local_bounds(certificate) == np.inf)


@pytest.mark.parametrize("seed", range(4))
def test_local_bounds_of_units_of_several_rows(seed):
    problem = make_case(seed, n=30, d=12, loss="multinomial", fit_intercept=True, weighted=True).problem()
    units = np.array([0, 0, 4, 1, 2, 2, 3, 3, 0, 3, 3, 4])
    penalty = GroupOWL(problem.lam[:5] * 1.5, units)
    norms = UnitNorms(problem.design, problem.samples.w, penalty, problem.norms, problem.rounding_norms)
    problem = replace(problem, penalty=penalty, unit_bounds=norms)
    B, optimal = optimum_of(problem)
    near = np.sqrt(2 * problem.loss.curvature * optimal.gap)
    for _, certificate in pairs(problem, B, seed):
        assert violations(problem, certificate, optimal.correlations, near) == 0


def test_rows_that_would_cost_too_much_stay(monkeypatch):
    """Dropping rows by local bounds may raise the objective: then they are not claimed to be zero."""
    case = make_case(5, n=40, d=20, loss="multinomial", fit_intercept=True)
    start = go.solve(**case.arguments(), tol=1e-9)
    row = start.support[-1]

    def all_but_one(problem, certificate, candidates, rule, *, local=True):
        return candidates[candidates != row]

    monkeypatch.setattr("groupowl.screening.safe_rows", all_but_one)
    monkeypatch.setattr(ScreenedProblem, "test", lambda self, **options: np.zeros(0, dtype=np.intp))
    result = go.solve(**case.arguments(), tol=1e-9)
    assert result.converged
    assert row in result.support
    assert row in result.active
