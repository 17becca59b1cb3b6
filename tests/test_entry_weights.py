"""Missing targets and weights per entry: own samples for every task, certified and screened as everything else."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

import groupowl as go
from entries_support import KINDS, LOSSES, draw_case
from groupowl.norm.kernels import owl_gauge
from groupowl.problem import build_problem
from groupowl.problem.bounds import Products

SEEDS = range(3)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("loss", LOSSES)
def test_agrees_with_a_conic_solver(loss, kind, seed):
    case = draw_case(loss, kind, seed)
    result = go.solve(**case.arguments(), tol=1e-10)
    reference = case.conic_minimum()
    assert result.converged
    assert result.primal == pytest.approx(reference, rel=1e-8, abs=1e-8)
    assert result.primal == pytest.approx(case.objective(result.B, result.intercept), rel=1e-10)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("loss", LOSSES)
def test_objective_is_that_of_own_designs(loss, kind):
    """At any coefficients, not only at solutions."""
    case = draw_case(loss, kind, 5)
    rng = np.random.default_rng(0)
    screener = go.SafeScreener(**case.arguments())
    for _ in range(3):
        B = 0.1 * rng.standard_normal((case.X.shape[1], case.Y.shape[1])) / case.X.std(axis=0)[:, None]
        intercept = rng.standard_normal(case.Y.shape[1]) if case.fit_intercept else None
        B = B[screener.active]
        whole = np.zeros((case.X.shape[1], case.Y.shape[1]))
        whole[screener.active] = B
        report = screener.update(whole, intercept)
        expected = case.objective(whole, np.zeros(case.Y.shape[1]) if intercept is None else intercept)
        assert report.primal == pytest.approx(expected, rel=1e-10)
        assert report.dual <= case.objective(np.zeros_like(whole), np.zeros(case.Y.shape[1])) * (1 + 1e-12) + 1e-9


@pytest.mark.parametrize("kind", KINDS)
def test_lam_max_is_the_gauge_of_the_gradients_of_the_tasks(kind):
    case = draw_case("squared", kind, 1)
    products = []
    for X, y, w in case.tasks():
        residual = y - np.average(y, weights=w) if case.fit_intercept else y
        products.append((X - np.average(X, axis=0, weights=w) * case.fit_intercept).T @ (w * residual))
    shape = case.lam / case.lam[0]
    arguments = case.arguments()
    arguments.pop("lam")
    expected = owl_gauge(np.linalg.norm(np.column_stack(products), axis=1), shape)
    assert go.lam_max(weights=shape, **arguments) == pytest.approx(expected, rel=1e-11)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("loss", LOSSES)
def test_nothing_is_selected_at_lam_max_and_something_below(loss, kind):
    case = draw_case(loss, kind, 2)
    arguments = case.arguments()
    shape = case.lam / case.lam[0]
    arguments.pop("lam")
    largest = go.lam_max(weights=shape, **arguments)
    at = go.solve(lam=largest * shape, **arguments)
    assert not at.B.any()
    assert at.gap <= (1e-12 * at.primal if loss == "huber" else 0.0)  # whose constant is searched for
    assert go.solve(lam=0.98 * largest * shape, **arguments, tol=1e-12).B.any()


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("loss", LOSSES)
def test_bounds_hold_for_the_dual_optimum(loss, kind, seed):
    """Correlations at the optimum are below every upper bound, and no row that is not zero is screened."""
    case = draw_case(loss, kind, 10 + seed)
    problem = case.problem()
    best = go.solve(**case.arguments(), tol=1e-11, screening="none")
    optimal = problem.certify(problem.from_input(best.B, best.intercept if case.fit_intercept else None))
    # What is known of the optimum: it is within this of the dual point.
    radius = np.sqrt(2.0 * problem.curvature_at(problem.from_input(best.B, best.intercept)) * optimal.gap)
    correlations = optimal.correlations - radius * problem.norms
    rng = np.random.default_rng(seed)
    for size in (1.0, 0.1, 1e-2, 1e-4):
        moved = best.B * (1.0 + size * rng.standard_normal(best.B.shape))
        certificate = problem.certify(problem.from_input(moved, best.intercept if case.fit_intercept else None))
        assert certificate.gap >= certificate.primal - best.primal
        upper = problem.upper_bounds(certificate)
        assert np.all(upper >= correlations)
        one_sided = problem.upper_bounds(certificate, two_sided=False)
        assert np.all(upper <= one_sided * (1 + 1e-12)) or not np.isfinite(problem.loss.curvature)
    screener = go.SafeScreener(**case.arguments())
    report = screener.update(best.B, best.intercept if case.fit_intercept else None)
    screened = np.setdiff1d(np.arange(len(best.B)), report.active)
    assert np.linalg.norm(best.B[screened], axis=1).max(initial=0.0) <= 1e-5 * np.abs(best.B).max(initial=1.0)


@pytest.mark.parametrize("options", [{}, {"feature_groups": np.arange(12) // 3}, {"positive": True}, {"ridge": 0.5}])
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_ellipsoids_are_inside_the_balls_and_have_the_optimum(loss, options):
    """Never worse than the simple bound, better where tasks differ in weight, and never below the optimum."""
    rng = np.random.default_rng(5)
    X = rng.standard_normal((60, 12))
    Y = X[:, :3] @ rng.standard_normal((3, 4)) + rng.standard_normal((60, 4))
    Y = 1.0 * (Y > 0.0) if loss == "logistic" else Y
    weight = rng.uniform(0.5, 1.0, Y.shape) * [1.0, 0.3, 0.03, 0.003]
    weight[rng.random(Y.shape) < 0.3] = 0.0
    n_units = len(np.unique(options.get("feature_groups", np.arange(12))))
    weights = go.weights.oscar(n_units)
    given = {"loss": loss, "fit_intercept": True, "sample_weight": weight, **options}
    lam = 0.3 * go.lam_max(X, Y, weights, **given) * weights
    best = go.solve(X, Y, lam, **given, tol=1e-12, screening="none")
    screener = go.SafeScreener(X, Y, lam, **given)
    problem = screener._problem
    optimal = problem.certify(problem.from_input(best.B, best.intercept))
    least = problem.lower_bounds(optimal)
    ratios = []
    for size in (1.0, 0.1, 1e-3):
        moved = np.abs(best.B * (1.0 + size * rng.standard_normal(best.B.shape)))
        moved = moved if "positive" in options else moved * np.sign(best.B)
        other = problem.certify(problem.from_input(0.5 * moved, best.intercept))
        start = problem.from_input(moved, best.intercept)
        for best_known in (None, other):  # whose dual point may be kept
            certificate = problem.certify(start, best=best_known)
            for two_sided in (True, False):
                upper = problem.upper_bounds(certificate, two_sided=two_sided)
                simple = replace(problem, task_norms=None).upper_bounds(certificate, two_sided=two_sided)
                assert np.all(upper >= least)
                assert np.all(upper <= simple)
                ratios.append(upper / simple)
            few = np.array([1, 3])
            smaller = certificate.restrict(few, problem.penalty.rows(few))
            np.testing.assert_array_equal(
                problem.restrict(few).upper_bounds(smaller), problem.upper_bounds(certificate)[few]
            )
    assert np.min(ratios) < 0.98


def test_ellipsoid_is_the_formula():
    """``u^2 = ||C||^2 + 2 rho ||(a_k C_k)_k|| + rho^2 max a_k^2``, and close to the farthest point of the ellipsoid."""
    rng = np.random.default_rng(0)
    C, a, rho = rng.standard_normal((7, 3)), rng.uniform(0.01, 1.0, (7, 3)), 0.7
    penalty = go.GroupOWL(np.ones(7))
    found = Products(C, C, a, penalty).moved(C, rho)
    square = (C**2).sum(axis=1) + 2 * rho * np.sqrt(((a * C) ** 2).sum(axis=1)) + rho**2 * (a**2).max(axis=1)
    np.testing.assert_allclose(found, np.sqrt(square), rtol=1e-14)
    directions = rng.standard_normal((20000, 3))
    directions /= np.linalg.norm(directions, axis=1)[:, None]
    farthest = np.linalg.norm(C + rho * a * directions[:, None], axis=2).max(axis=0)
    assert np.all(farthest <= found)
    assert np.all(found <= np.linalg.norm(C, axis=1) + rho * a.max(axis=1) + 1e-14)


@pytest.mark.parametrize("solver", ["apgd", go.SPGD(batch_size=8)])
@pytest.mark.parametrize("kind", KINDS)
def test_every_solver_finds_the_minimum(kind, solver):
    case = draw_case("squared", kind, 3)
    best = go.solve(**case.arguments(), tol=1e-10)
    other = go.solve(**case.arguments(), tol=1e-5, solver=solver, max_iter=100_000, random_state=0)
    assert other.converged
    assert abs(other.primal - best.primal) <= best.gap + other.gap


@pytest.mark.parametrize("kind", KINDS)
def test_kinds_of_data_agree(kind, tmp_path):
    """Dense by rows and by columns, sparse, on disk: the same problem."""
    case = draw_case("squared", kind, 4)
    best = go.solve(**case.arguments(), tol=1e-10)
    path = tmp_path / "X.npy"
    np.save(path, case.X)
    others = [np.asfortranarray(case.X), sp.csr_array(case.X), sp.csc_array(case.X), go.MemmapDesign(path)]
    for X in others:
        found = go.solve(**(case.arguments() | {"X": X}), tol=1e-10)
        assert found.converged
        assert abs(found.primal - best.primal) <= 1e-10 * max(abs(best.primal), 1.0) + best.gap + found.gap


def test_single_precision_is_proved():
    case = draw_case("squared", "missing", 6)
    result = go.solve(**(case.arguments() | {"X": case.X.astype(np.float32)}), tol=1e-5)
    exact = go.solve(**(case.arguments() | {"X": case.X.astype(np.float32).astype(float)}), tol=1e-12)
    assert result.primal - exact.primal <= result.gap


def test_equal_weights_take_the_same_way():
    """Weights that are the same for all tasks are weights of samples, bit for bit; ones are none."""
    data = go.datasets.make_correlated_groups(40, 30, 3, random_state=0)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, 40)
    lam = 0.3 * go.lam_max(data.X, data.Y, "oscar") * go.weights.oscar(30)
    for one, other in ((weight, np.repeat(weight[:, None], 3, axis=1)), (np.ones(40), np.ones((40, 3)))):
        found = [go.solve(data.X, data.Y, lam, sample_weight=w, fit_intercept=True) for w in (one, other)]
        assert np.array_equal(found[0].B, found[1].B)
        assert found[0].gap == found[1].gap


def test_samples_without_any_target_are_not_there():
    data = go.datasets.make_correlated_groups(40, 30, 3, random_state=0)
    lam = 0.3 * go.lam_max(data.X, data.Y, "oscar") * go.weights.oscar(30)
    Y = data.Y.copy()
    Y[::4] = np.nan
    present = ~np.isnan(Y[:, 0])
    some, all_of_them = go.solve(data.X[present], Y[present], lam), go.solve(data.X, Y, lam)
    assert np.array_equal(some.B, all_of_them.B)
    one = go.solve(data.X, Y[:, 0], lam, fit_intercept=True)
    expected = go.solve(data.X[present], Y[present, 0], lam, fit_intercept=True).primal
    assert one.primal == pytest.approx(expected, rel=1e-13)  # by the compiled kernel, or not


def _fits(X, Y, sample_weight):
    weights = go.weights.oscar(X.shape[1])
    yield lambda: go.solve(X, Y, weights, sample_weight=sample_weight)
    yield lambda: go.SafeScreener(X, Y, weights, sample_weight=sample_weight)
    yield lambda: go.group_owl_path(X, Y, alphas=3, sample_weight=sample_weight)
    yield lambda: go.GroupOWLRegressor().fit(X, Y, sample_weight=sample_weight)
    yield lambda: go.GroupOWLRegressorCV(alphas=3, cv=2).fit(X, Y, sample_weight=sample_weight)


def test_samples_without_any_target_are_told():
    """By one warning, with their number; samples that the user has left out are no news."""
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((30, 4)), rng.standard_normal((30, 3))
    Y[3], Y[7, 1:], Y[11] = np.nan, np.nan, np.nan
    for fit in _fits(X, Y, None):
        with pytest.warns(UserWarning, match="^2 of 30 samples have no observed target and are left out") as caught:
            fit()
        assert len(caught) == 1
    without, entries = np.ones(30), np.ones((30, 3))
    without[[3, 11]], entries[3], entries[7, 0] = 0.0, 0.0, 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for fit in _fits(X, Y, without):
            fit()
        model = go.GroupOWLRegressor(0.1).fit(X[without > 0.0], Y[without > 0.0])
        assert model.verify(X[without > 0.0], Y[without > 0.0])
    for fit in _fits(X, Y, entries):  # sample 7 has weights, but no target where it has one
        with pytest.warns(UserWarning, match="^2 of 30 samples"):
            fit()


def test_what_is_at_missing_entries_does_not_matter():
    """Targets that nobody has seen have no weight, whatever number stands for them."""
    case = draw_case("squared", "weights", 7)
    filled = case.arguments() | {"Y": np.where(case.W > 0.0, case.Y, 1e3)}
    assert go.solve(**filled, tol=1e-10).primal == pytest.approx(
        go.solve(**case.arguments(), tol=1e-10).primal, rel=1e-9
    )


def test_columns_that_differ_between_tasks_alone_are_explained_by_the_intercepts():
    """An indicator of the study has no variation within any study."""
    rng = np.random.default_rng(0)
    X, Y = go.stack_tasks([rng.standard_normal((15, 4)), rng.standard_normal((10, 4))], [np.ones(15), np.ones(10)])
    X[:, 3] = np.repeat([7.0, -2.0], [15, 10])
    Y[~np.isnan(Y)] = X[:, 0] + X[:, 3] + 0.1 * rng.standard_normal(25)
    problem = build_problem(X, Y, np.ones(4), fit_intercept=True)
    assert problem.norms[3] == 0.0
    assert problem.norms[:3].min() > 0.0
    result = go.solve(X, Y, np.full(4, 0.1), fit_intercept=True)
    assert result.converged
    assert not result.B[3].any()
    assert result.B[0].all()


def test_large_offsets_of_targets_cost_no_digits():
    """Targets are centered in each task: a gap of 1e-10 is proved beside means of 1e6."""
    case = draw_case("squared", "missing", 8)
    arguments = case.arguments() | {"fit_intercept": True}
    near, far = (go.solve(**(arguments | {"Y": arguments["Y"] + shift}), tol=1e-9) for shift in (0.0, 1e6))
    assert far.converged
    assert far.primal == pytest.approx(near.primal, rel=1e-8)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"Y": np.column_stack([np.ones(6), np.full(6, np.nan)])}, "no observed entry of positive weight in column 1"),
        ({"sample_weight": np.ones((6, 3))}, r"shape \(6, 2\), got \(6, 3\)"),
        ({"sample_weight": np.column_stack([np.ones(6), np.zeros(6)])}, "of positive weight in column 1"),
        ({"Y": np.column_stack([np.ones(6), np.full(6, np.inf)])}, "6 NaN or infinite entries in columns? 1"),
        ({"loss": "multinomial", "Y": np.array([[np.nan, 1.0]] + 5 * [[0.0, 1.0]])}, "classes exclude each other"),
        ({"loss": "multinomial", "Y": np.eye(2)[[0, 1] * 3], "sample_weight": np.ones((6, 2))}, "exclude each other"),
        ({"loss": "cox", "Y": np.array([[np.nan], [1], [2], [3], [4], [5]]), "fit_intercept": False}, "need a time"),
    ],
)
def test_what_is_refused(change, message):
    rng = np.random.default_rng(0)
    arguments = {"X": rng.standard_normal((6, 3)), "Y": rng.standard_normal((6, 2)), "lam": np.ones(3)}
    with pytest.raises(ValueError, match=message):
        go.solve(**(arguments | {"fit_intercept": True} | change))


@pytest.mark.parametrize("form", [np.ascontiguousarray, np.asfortranarray, lambda X: X[:, ::2], np.float32])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("options", [{}, {"fit_intercept": False}, {"penalty_factor": "first free"}])
def test_features_that_are_not_finite_are_found_by_the_norms_of_tasks(form, value, options):
    """No look at each entry is needed where norms of the columns of each task are made; the message is the same."""
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((20, 8)), rng.standard_normal((20, 3))
    Y[rng.random(Y.shape) < 0.3] = np.nan
    X[7, 4] = value
    data = form(X)
    factor = np.r_[0.0, np.ones(data.shape[1] - 1)] if options else None
    settings = {"penalty_factor": factor} if "penalty_factor" in options else options
    with pytest.raises(
        ValueError, match="X has 1 NaN or infinite entr.* in column 2" if data.shape[1] == 4 else "column 4"
    ):
        go.lam_max(data, Y, np.ones(data.shape[1] - (settings.get("penalty_factor") is not None)), **settings)
    with pytest.raises(ValueError, match="columns so large that their squared norm overflows"):
        go.lam_max(np.full((20, 2), 1e200), Y, np.ones(2))
