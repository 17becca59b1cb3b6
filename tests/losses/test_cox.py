"""The Cox loss: against its definition by loops, R's survival, and a conic solver; bounds, errors, limits."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize

import groupowl as go
from groupowl.losses import CoxLoss
from groupowl.losses import cox as module
from groupowl.problem import Problem, build_problem
from r_support import run_r
from support import conic_minimum, cox_terms, make_case, with_opaque_design

TIES = ["efron", "breslow"]
both_ties = pytest.mark.parametrize("ties", TIES)


def random_case(seed, n=None):
    """Predictor, targets with ties and strata, weights."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 16)) if n is None else n
    q = 1 + seed % 2
    event = rng.random((n, q)) < 0.7
    event[0] = True
    time = rng.integers(1, 6, (n, q)) if seed % 3 else rng.random((n, q)) + 0.1
    Y = go.survival_targets(event, time, rng.integers(0, 3, n) if seed % 4 else None)
    w = rng.uniform(0.2, 3.0, (n, 1)) if seed % 5 else np.ones((n, 1))
    return 2.0 * rng.standard_normal((n, q)), Y, w, rng


def by_loops(Z, Y, w, ties):
    terms = [term for k in range(Y.shape[1]) for term in cox_terms(Y[:, k], w[:, 0], k, ties)]
    return sum(mass * (math.log(row @ np.exp(Z[:, k])) - share @ Z[:, k]) for mass, row, share, k in terms)


def ray_value(loss, Z, Y, w, s):
    theta = loss.dual_point(Z, Y, w)
    return loss.ray_value(s * theta, Y, w, s, loss.ray_totals(theta, Y, w, Z))


@both_ties
def test_value_gradient_and_curvature_by_the_definition(ties):
    loss = CoxLoss(ties)
    for seed in range(60):
        Z, Y, w, rng = random_case(seed)
        value = loss.value(Z, Y, w)
        assert value == pytest.approx(by_loops(Z, Y, w, ties), rel=1e-12, abs=1e-12)
        theta, move, h = loss.dual_point(Z, Y, w), rng.standard_normal(Z.shape), 1e-5
        slope = (by_loops(Z + h * move, Y, w, ties) - by_loops(Z - h * move, Y, w, ties)) / (2 * h)
        assert -np.sum(theta * move) == pytest.approx(slope, abs=1e-7)
        np.testing.assert_allclose(theta.sum(axis=0), 0.0, atol=1e-12 * w.sum())
        change = (loss.dual_point(Z - h * move, Y, w) - loss.dual_point(Z + h * move, Y, w)) / (2 * h)
        np.testing.assert_allclose(loss.curved(Z, Y, w, move), change, atol=1e-7)
        assert loss.change(Z, Y, w, move) == pytest.approx(loss.value(Z + move, Y, w) - value, abs=1e-10)


@both_ties
def test_the_lifted_dual(ties):
    """Fenchel-Young at the dual point, weak duality on its ray, and the floor at its end, whatever the ties."""
    loss = CoxLoss(ties)
    for seed in range(60):
        Z, Y, w, rng = random_case(seed)
        theta, value = loss.dual_point(Z, Y, w), loss.value(Z, Y, w)
        assert value - ray_value(loss, Z, Y, w, 1.0) == pytest.approx(-np.sum(theta * Z), abs=1e-11 * (1 + abs(value)))
        floor = sum(sets.mixed_entropy(sets.risks(Z[:, k]), 0.0) for k, sets in enumerate(loss._tasks(Y, w)))
        assert floor == pytest.approx(loss.floor(Y, w), abs=1e-12)
        for s in (0.0, 0.3, 0.9, 1.0):
            dual = ray_value(loss, Z, Y, w, s)
            others = [size * rng.standard_normal(Z.shape) for size in (0.1, 1.0, 5.0)]
            assert all(loss.value(other, Y, w) + np.sum(s * theta * other) >= dual - 1e-10 for other in others)


def test_the_floor_in_closed_form():
    Y, w = go.survival_targets([1, 1, 1, 0, 1], [2, 2, 2, 3, 1]), np.ones((5, 1))
    assert CoxLoss("breslow").floor(Y, w) == pytest.approx(3 * math.log(3))
    assert CoxLoss("efron").floor(Y, w) == pytest.approx(math.log(6))


@both_ties
def test_the_null_loss_is_that_of_nelson_and_aalen(ties):
    Y, w = go.survival_targets([1, 0, 1, 1], [1, 2, 3, 4]), np.ones((4, 1))
    loss, null = CoxLoss(ties), np.zeros((4, 1))
    assert loss.value(null, Y, w) == pytest.approx(math.log(4) + math.log(2))
    hazard = np.array([1 / 4, 1 / 4, 1 / 4 + 1 / 2, 1 / 4 + 1 / 2 + 1])
    np.testing.assert_allclose(loss.dual_point(null, Y, w)[:, 0], [1, 0, 1, 1] - hazard)


def test_only_the_order_of_times_counts_and_strata_do_not_meet():
    rng = np.random.default_rng(0)
    event, time, strata = rng.random(30) < 0.6, rng.exponential(size=30), np.array(["b", "a", "c"] * 10)
    Z, w, loss = rng.standard_normal((30, 1)), np.ones((30, 1)), CoxLoss()
    Y = go.survival_targets(event, time)
    signed = np.where(event, time, -time)[:, None]
    assert loss.value(Z, signed, w) == loss.value(Z, Y, w) == loss.value(Z, go.survival_targets(event, time**3), w)
    apart = go.survival_targets(event, time, strata)
    parts = [strata == label for label in "abc"]
    assert loss.value(Z, apart, w) == pytest.approx(sum(loss.value(Z[part], Y[part], w[part]) for part in parts))
    far = Z + 300.0 * np.array([1.0, -1.0, 0.0] * 10)[:, None]  # no digits of one stratum are lost in another
    np.testing.assert_allclose(loss.dual_point(far, apart, w), loss.dual_point(Z, apart, w), atol=1e-12)


@both_ties
def test_weights_scale_the_loss_and_large_predictors_cost_infinitely_much(ties):
    loss = CoxLoss(ties)
    Z, Y, w, _ = random_case(6, n=12)
    assert loss.value(Z, Y, 3.0 * w) == pytest.approx(3.0 * loss.value(Z, Y, w), rel=1e-13)
    assert loss.floor(Y, 3.0 * w) == pytest.approx(3.0 * loss.floor(Y, w), rel=1e-13)
    assert loss.value(1e4 * Z, Y, w) == np.inf


@both_ties
def test_a_task_without_events_costs_nothing(ties):
    """As may happen in folds."""
    loss, Y, w = CoxLoss(ties), np.array([[-1.0], [-2.0], [-3.0]]), np.ones((3, 1))
    Z = np.arange(3.0)[:, None]
    assert loss.value(Z, Y, w) == loss.floor(Y, w) == ray_value(loss, Z, Y, w, 1.0) == 0.0
    assert not loss.dual_point(Z, Y, w).any()
    assert not loss.curvature_along(Z, Y, w, Z).any()


# Whole problems -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("q", [1, 2])
def test_a_conic_solver_finds_the_same_minimum(weighted, q):
    settings = {"seed": 7, "loss": "cox", "weighted": weighted, "q": q}
    case = make_case(**settings)
    result = go.solve(**case.arguments(), tol=1e-11)
    assert result.converged
    assert len(result.support) > 2
    reference = conic_minimum(**settings)
    assert case.objective(result.B) == pytest.approx(result.primal, abs=1e-10)
    assert abs(result.primal - reference) <= 1e-8 * max(1.0, abs(reference))
    assert result.primal - result.gap <= reference + 1e-12


@both_ties
@pytest.mark.parametrize("solver", ["auto", "apgd"])
@pytest.mark.parametrize("sparse", [False, True])
def test_every_solver_with_screening(ties, solver, sparse):
    case = make_case(3, n=40, d=60, loss="cox", weighted=True, sparse=sparse, fraction=0.4)
    arguments = {**case.arguments(), "loss": CoxLoss(ties)}
    reference = go.solve(**arguments, screening="none", tol=1e-11)
    result = go.solve(**arguments, solver=solver, tol=1e-5, max_iter=50_000)
    assert result.converged
    assert -reference.gap <= result.primal - reference.primal <= result.gap
    assert not reference.B[result.screened_at >= 0].any()
    assert len(result.active) < 60


@both_ties
def test_lam_max_is_tight(ties):
    case = make_case(1, loss="cox", weighted=True)
    weights = go.weights.oscar(12)
    top = go.lam_max(case.X, case.Y, weights, loss=CoxLoss(ties), sample_weight=case.sample_weight)
    arguments = {**case.arguments(), "loss": CoxLoss(ties)}
    null = go.solve(**{**arguments, "lam": top * weights})
    assert (len(null.support), null.gap) == (0, 0.0)
    assert len(go.solve(**{**arguments, "lam": 0.999 * top * weights}).support) > 0


def worst_excess(n_problems, sizes=(1e-4, 1e-2, 1e-1, 0.5)):
    """Largest correlation of dual optima relative to its upper bound, from near and far coefficients and stale points.

    And the largest dual value that is claimed, relative to the minimum.
    """
    worst, claimed = 0.0, -np.inf
    for seed in range(n_problems):
        rng = np.random.default_rng(seed)
        case = make_case(seed, n=20, d=8, q=1 + seed % 2, loss="cox", weighted=bool(seed % 3), fraction=0.5)
        problem = build_problem(**{**case.arguments(), "loss": CoxLoss(TIES[seed % 2])})
        best = go.solve(**{**case.arguments(), "loss": CoxLoss(TIES[seed % 2])}, tol=1e-12, screening="none")
        start = problem.from_input(best.B, None)
        optimum = problem.certify(start)
        for size in sizes:
            fresh = problem.certify(start + size * rng.standard_normal(start.shape))
            stale = problem.certify(start + 2 * size * rng.standard_normal(start.shape), best=fresh)
            for certificate in (fresh, stale):
                bounds = problem.upper_bounds(certificate)
                worst = max(worst, float(np.max((optimum.residual.correlations - 1e-5) / bounds)))
                claimed = max(claimed, (certificate.primal - certificate.gap - best.primal) / abs(best.primal))
    return worst, claimed


def test_bounds_hold_the_dual_optimum():
    worst, claimed = worst_excess(40)
    assert 0.5 < worst <= 1.0
    assert claimed <= 1e-9


MIXED = module.RiskSets.mixed_entropy
PLANTED = {
    "no mixing": ("mixed_entropy", lambda sets, risks, s: MIXED(sets, risks, 1.0)),
    "mixing in the wrong proportion": ("mixed_entropy", lambda sets, risks, s: MIXED(sets, risks, 1.01 * s)),
}


def largest_claim(n_cases=10):
    """What dual values on rays exceed the minimum of ``F(Z) + s <theta, Z>`` by, which no dual value can."""
    loss, worst = CoxLoss(), -np.inf
    for seed in range(n_cases):
        Z, Y, w, _ = random_case(seed, n=10)
        Z, s = 0.1 * Z, 0.5
        theta = loss.dual_point(Z, Y, w)

        def lagrangian(z, Y=Y, w=w, point=s * theta):
            value, slope = loss.value_and_dual_point(z.reshape(Y.shape), Y, w)
            return value + z @ point.ravel(), (point - slope).ravel()

        found = minimize(lagrangian, Z.ravel(), jac=True, options={"gtol": 1e-9})
        worst = max(worst, ray_value(loss, Z, Y, w, s) - found.fun)
    return worst


def test_dual_values_are_below_the_minimum():
    assert largest_claim() <= 1e-9


@pytest.mark.parametrize("error", PLANTED)
def test_planted_errors_are_caught(error, monkeypatch):
    monkeypatch.setattr(module.RiskSets, *PLANTED[error])
    assert largest_claim() > 1e-6


def test_a_missing_spread_is_caught(monkeypatch):
    monkeypatch.setattr(CoxLoss, "spread", lambda self, theta, raw, Y, w: np.zeros(Y.shape))
    assert worst_excess(20)[0] > 1.0


def test_local_bounds_do_not_need_centered_columns():
    """The loss does not see a constant, and columns are centered without an intercept."""
    case = make_case(5, n=40, d=30, loss="cox", fraction=0.5)
    shifted = replace(case, X=case.X + 100.0)
    here, there = (go.solve(**each.arguments(), tol=1e-8) for each in (case, shifted))
    assert abs(here.primal - there.primal) <= here.gap + there.gap
    assert len(there.active) <= len(here.active) + 1
    assert not there.intercept.any()


@pytest.mark.parametrize("unpenalized", [None, [5, 7]])
def test_paths_agree_with_exact_ones(unpenalized):
    case = make_case(6, n=60, d=50, loss="cox")
    settings = {"loss": "cox", "alphas": 5, "eps": 0.1, "unpenalized": unpenalized, "weights": "bh"}
    settings["fit_intercept"] = False
    exact = go.group_owl_path(case.X, case.Y, **settings, screening="none", tol=1e-10)
    path = go.group_owl_path(case.X, case.Y, **settings, tol=1e-6)
    assert path.n_selected[-1] > 5
    for ours, other in zip(path, exact, strict=True):
        assert -other.gap <= ours.primal - other.primal <= ours.gap
    assert np.all(np.diff(path.deviance_ratio) > 0)


def test_the_screener_for_other_solvers():
    case = make_case(3, n=40, d=60, loss="cox", fraction=0.4)
    best = go.solve(**case.arguments(), tol=1e-10, screening="none")
    report = go.SafeScreener(**case.arguments()).update(best.B)
    assert report.primal == pytest.approx(best.primal)
    assert set(best.support) <= set(report.active)
    assert len(report.active) < 60


# Where it is served ---------------------------------------------------------------------------------------


def test_on_disk(tmp_path):
    """Rows of X may come from a file: the samples themselves are in this process."""
    case = make_case(4, n=40, d=30, loss="cox")
    np.save(tmp_path / "X.npy", case.X)
    here, there = (go.solve(**{**case.arguments(), "X": X}) for X in (case.X, go.MemmapDesign(tmp_path / "X.npy")))
    assert abs(here.primal - there.primal) <= here.gap + there.gap


def test_elsewhere_an_error_says_what_serves():
    case = make_case(4, loss="cox")
    message = r"loss='cox' compares samples with each other and needs all of them in this process\. Give X as an array"
    with pytest.raises(ValueError, match=message):
        go.solve(**with_opaque_design(case).arguments())
    with pytest.raises(ValueError, match=r"solver='spgd' needs .* loss='cox' has none\. Use solver='auto' or"):
        go.solve(**case.arguments(), solver="spgd")
    with pytest.raises(ValueError, match=r"loss='cox' does not change with a constant.*use fit_intercept=False"):
        go.solve(**replace(case, fit_intercept=True).arguments())
    statistics = go.SufficientStatistics.from_arrays(case.X, np.ones(25))
    with pytest.raises(ValueError, match="SufficientStatistics serve loss='squared' only"):
        go.solve(statistics, None, case.lam, loss="cox")


def test_on_dask_an_error_says_what_serves():
    array = pytest.importorskip("dask.array")
    case = make_case(4, loss="cox")
    with pytest.raises(ValueError, match=r"X\.compute\(\) makes an array of a collection of Dask"):
        go.solve(**{**case.arguments(), "X": array.from_array(case.X, chunks=(13, 12))})


@pytest.mark.parametrize(
    ("event", "time", "strata", "message"),
    [
        ([1, 0], [1.0, 0.0], None, r"^time must be positive, but its smallest entry is 0\. Remove"),
        ([1, 2], [1.0, 2.0], None, r"^event must be True or False, or 1 and 0, but it has the entry 2\. Give"),
        ([1, 0], [1.0, np.nan], None, r"^time has 1 NaN or infinite entry\. Remove the samples without a time"),
        ([1, 0, 1], [1.0, 2.0], None, r"^event and time must have the same shape, got \(3, 1\) and \(2, 1\)"),
        ([1, 0], [1.0, 2.0], [1], r"strata must have one row per sample"),
        ([1, 0], [1.0, 2.0], [1.0, np.nan], r"^strata has 1 NaN or infinite entry"),
    ],
)
def test_bad_targets(event, time, strata, message):
    with pytest.raises(ValueError, match=message):
        go.survival_targets(event, time, strata)


def test_bad_codes():
    with pytest.raises(ValueError, match=r"needs times that are positive.*Y has a zero\. groupowl\.survival_targets"):
        go.solve(np.eye(2), [1.0, 0.0], [1.0, 1.0], loss="cox")
    with pytest.raises(ValueError, match=r"needs an event in each column of Y.*column 0 has none\. Leave it out"):
        go.solve(np.eye(2), [-1.0, -2.0], [1.0, 1.0], loss="cox")
    with pytest.raises(
        ValueError, match=r"needs times below 2\^32, but the largest is 1\.7e\+12: larger numbers stand"
    ):
        go.solve(np.eye(2), [1.7e12, 1.6e12 + 1.0], [1.0, 1.0], loss="cox")
    with pytest.raises(ValueError, match=r"^ties must be one of 'efron', 'breslow'; got 'exact'\.$"):
        CoxLoss("exact")


# Bounds ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["cox", "poisson"])
def test_bounds_that_take_passes_wait_until_somebody_asks(loss, monkeypatch):
    """Losses without a global curvature have local bounds alone; one test serves all that is read."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((80, 40))
    Y = go.survival_targets(rng.random(80) < 0.7, rng.exponential(np.exp(-X[:, 0]))) if loss == "cox" else None
    Y = rng.poisson(np.exp(0.5 * X[:, :1])).astype(float) if Y is None else Y
    lam = 0.4 * go.lam_max(X, Y, "oscar", loss=loss) * go.weights.oscar(40)
    calls, local_bounds = [], Problem.local_bounds
    monkeypatch.setattr(Problem, "local_bounds", lambda *args, **how: calls.append(1) or local_bounds(*args, **how))
    weights = np.ones(80)  # with them small problems of either loss go the long way
    result = go.solve(X, Y, lam, loss=loss, sample_weight=weights)
    assert result.converged
    assert not calls
    assert 0 < len(result.support) <= len(result.active) < 40
    assert np.isin(result.support, result.active).all()
    np.testing.assert_array_equal(np.flatnonzero(result.screened_at < 0), result.active)
    assert (result.screened_at[result.screened_at >= 0] == len(result.history) - 1).all()
    assert len(calls) == 1
    exact = go.solve(X, Y, lam, loss=loss, tol=1e-10)
    assert not exact.B[result.screened_at >= 0].any()


def test_what_is_kept_of_the_last_predictor_is_that_of_no_other():
    """Values come with the risks of their own predictor, which may change in place."""
    Z, Y, w, rng = random_case(7, n=12)
    loss = CoxLoss()
    for _ in range(3):
        expected = by_loops(Z, Y, w, "efron")
        for _ in range(2):
            assert loss.value(Z, Y, w) == pytest.approx(expected)
            assert loss.value_and_dual_point(Z.copy(), Y, w)[0] == pytest.approx(expected)
        Z += rng.standard_normal(Z.shape)


# R --------------------------------------------------------------------------------------------------------


@both_ties
@pytest.mark.parametrize("weighted", [False, True])
def test_the_partial_likelihood_of_r(ties, weighted, tmp_path):
    """Log-likelihood and martingale residuals at given coefficients, with ties, strata and case weights."""
    rng = np.random.default_rng(3)
    n = 40
    event, time, strata = rng.random(n) < 0.7, rng.integers(1, 12, n), rng.integers(0, 2, n)
    x, w = rng.standard_normal(n), rng.uniform(0.3, 2.0, n) if weighted else np.ones(n)
    np.savetxt(tmp_path / "data.txt", np.column_stack([event, time, strata, x, w]))
    script = f"""
    library(survival)
    d <- read.table("data.txt", col.names=c("event", "time", "s", "x", "w"))
    fit <- coxph(Surv(time, event) ~ x + strata(s), d, weights=w, ties="{ties}", init=0.7,
                 control=coxph.control(iter.max=0))
    cat(format(c(fit$loglik[1], residuals(fit, "martingale")), digits=17))
    """
    likelihood, *residuals = run_r(script, tmp_path, "survival")
    loss, Y = CoxLoss(ties), go.survival_targets(event, time, strata)
    Z, w = 0.7 * x[:, None], w[:, None]
    constant = np.log(w.mean()) * np.sum(w[event])  # R does not divide weights by their mean
    assert loss.value(Z, Y, w) + constant == pytest.approx(-likelihood, rel=1e-12)
    np.testing.assert_allclose(loss.dual_point(Z, Y, w)[:, 0] / w[:, 0], residuals, atol=1e-12)
