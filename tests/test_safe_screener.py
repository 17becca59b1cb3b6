"""SafeScreener: certificates and safe rows for any iterate of any algorithm."""

import itertools

import numpy as np
import pytest

import groupowl as go
from groupowl.norm.kernels import row_norms
from support import make_case

KINDS = [
    {"loss": loss, "fit_intercept": intercept, "weighted": weighted}
    for loss, intercept, weighted in itertools.product(["squared", "multinomial"], [False, True], [False, True])
]


def screener_and_optimum(seed, rule="safe", **kind):
    case = make_case(seed, n=25, d=60, fraction=0.5, **kind)
    optimum = go.solve(**case.arguments(), tol=1e-12, screening="none")
    return case, optimum, go.SafeScreener(**case.arguments(), rule=rule)


def iterates(optimum, seed):
    """Bad, dense and good points: random, worse than zero, zero, near the optimum, the optimum."""
    rng = np.random.default_rng(seed)
    noise = rng.standard_normal(optimum.B.shape)
    yield 100.0 * noise, 10.0 * rng.standard_normal(optimum.intercept.shape)
    yield np.zeros_like(noise), None
    for size in (1.0, 0.1, 1e-2, 1e-4):
        yield optimum.B + size * noise, optimum.intercept + size
    yield optimum.B, optimum.intercept


@pytest.mark.parametrize("rule", ["safe", "paper"])
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_any_iterate_is_safe_and_certified(kind, rule):
    case, optimum, screener = screener_and_optimum(60, rule, **kind)
    support = set(np.flatnonzero(row_norms(optimum.B) > 1e-6 * row_norms(optimum.B).max()))
    alive = np.arange(60)
    for B, intercept in iterates(optimum, 0):
        intercept = intercept if kind["fit_intercept"] else None
        report = screener.update(B, intercept)
        assert support <= set(report.active)
        assert set(report.active) | set(report.newly_screened) == set(alive)
        alive = report.active
        np.testing.assert_array_equal(screener.active, alive)
        np.testing.assert_array_equal(screener.lam, case.lam[: len(alive)])
        B_alive = np.zeros_like(B)
        taken = np.union1d(report.active, report.newly_screened)
        B_alive[taken] = B[taken]
        if intercept is not None:
            true_objective = case.objective(B_alive, intercept)
            assert report.primal == pytest.approx(true_objective, rel=1e-10)
            assert report.gap >= true_objective - optimum.primal
        assert report.dual <= optimum.primal * (1 + 1e-12)
    assert len(alive) < 60


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_reduced_and_full_coefficients_and_given_predictors_agree(kind):
    case, optimum, first = screener_and_optimum(61, **kind)
    intercept = optimum.intercept + 0.3 if kind["fit_intercept"] else None
    reports = [first.update(optimum.B, intercept)]
    again = reports[0]
    assert len(again.active) < 60
    offset = 0.0 if intercept is None else intercept
    inner = optimum.B[first.active]
    reports.append(first.update(inner, intercept))
    reports.append(first.update(optimum.B, intercept, Z=case.X[:, first.active] @ inner + offset))
    reports.append(go.SafeScreener(**case.arguments()).update(optimum.B, intercept, Z=case.X @ optimum.B + offset))
    for report in reports[1:]:
        assert report.primal == pytest.approx(reports[0].primal, rel=1e-10)
        assert report.gap <= reports[0].gap * (1 + 1e-6) + 1e-12 * abs(report.primal)


def test_a_predictor_saves_the_product():
    case, optimum, screener = screener_and_optimum(62)
    counter = screener._problem.design.passes
    before = counter.total
    screener.update(optimum.B, Z=case.X @ optimum.B)
    with_predictor = counter.total - before
    other = go.SafeScreener(**case.arguments())
    before = other._problem.design.passes.total
    other.update(np.ones((60, 3)))
    assert with_predictor < other._problem.design.passes.total - before


def test_rows_that_were_screened_are_taken_as_zero_even_with_a_predictor():
    """A predictor of coefficients that are non-zero on screened rows would not belong to what is certified."""
    case, optimum, screener = screener_and_optimum(63)
    screener.update(optimum.B)
    gone = np.setdiff1d(np.arange(60), screener.active)
    B = optimum.B.copy()
    B[gone] = 5.0
    report = screener.update(B, Z=case.X @ B)
    assert report.primal == pytest.approx(optimum.primal, rel=1e-9)


def test_the_best_dual_point_is_kept_and_sets_only_shrink():
    _, optimum, screener = screener_and_optimum(64)
    good = screener.update(optimum.B)
    bad = screener.update(np.full((60, 3), 50.0))
    assert bad.dual >= good.dual
    assert len(bad.newly_screened) == 0
    np.testing.assert_array_equal(bad.active, good.active)


def test_given_zero_weights_the_predictor_has_a_row_per_sample():
    case = make_case(65, n=25, d=30, fit_intercept=True)
    weight = np.ones(25)
    weight[::5] = 0.0
    screener = go.SafeScreener(case.X, case.Y, case.lam, fit_intercept=True, sample_weight=weight)
    B = np.random.default_rng(0).standard_normal((30, 3))
    plain = screener.update(B, np.zeros(3))
    with_predictor = screener.update(B, np.zeros(3), Z=case.X @ B)
    assert with_predictor.primal == pytest.approx(plain.primal, rel=1e-12)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"B": np.zeros((7, 3))},
            r"B must have shape \(12, 3\) for all rows or \(12, 3\) for the active ones, got \(7, 3\)",
        ),
        ({"B": np.zeros((12, 2))}, r"got \(12, 2\)"),
        ({"B": np.full((12, 3), np.nan)}, "B has 36 NaN or infinite entries"),
        ({"B": np.zeros((12, 3)), "intercept": [1.0, 2.0, 3.0]}, "fit_intercept is False"),
        ({"B": np.zeros((12, 3)), "Z": np.zeros((3, 3))}, r"Z must have shape \(25, 3\)"),
        ({"B": np.zeros((12, 3)), "Z": np.full((25, 3), np.inf)}, "Z has 75 NaN or infinite entries"),
    ],
)
def test_bad_updates(arguments, message):
    screener = go.SafeScreener(**make_case(66).arguments())
    with pytest.raises(ValueError, match=message):
        screener.update(**arguments)
    np.testing.assert_array_equal(screener.active, np.arange(12))


def test_unknown_rule():
    with pytest.raises(ValueError, match="rule must be one of 'safe', 'paper'; got 'none'"):
        go.SafeScreener(**make_case(66).arguments(), rule="none")


def test_a_predictor_in_single_precision_is_computed_again():
    """Its rounding is not bounded by what the certificate assumes."""
    case, optimum, _ = screener_and_optimum(67)
    B = optimum.B + 1e-3
    Z = (case.X @ B).astype(np.float32)
    given = go.SafeScreener(**case.arguments()).update(B, Z=Z)
    assert given.primal == go.SafeScreener(**case.arguments()).update(B).primal
