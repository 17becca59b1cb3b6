"""The problem and its certificate: weak duality, exact bounds, intercepts, weights, rounding."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp

import groupowl as go
from groupowl.norm.kernels import owl_gauge, row_norms
from groupowl.problem import build_problem
from support import Case, conic_minimum, make_case

KINDS = [
    {"loss": loss, "fit_intercept": intercept, "weighted": weighted, "sparse": sparse}
    for loss, intercept, weighted, sparse in itertools.product(["squared", "multinomial"], *[[False, True]] * 3)
]


def kind_name(kind):
    return "-".join([kind["loss"], *(name for name in ("fit_intercept", "weighted", "sparse") if kind[name])])


@pytest.fixture(params=KINDS, ids=kind_name)
def kind(request):
    return request.param


def random_coefficients(problem, seed, scale=1.0):
    rng = np.random.default_rng(seed)
    B = scale * rng.standard_normal((problem.n_coefficients, problem.samples.n_tasks))
    B[: problem.n_rows][rng.random(problem.n_rows) < 0.5] = 0.0
    return B


def test_primal_is_the_documented_objective(kind):
    case = make_case(1, **kind)
    problem = case.problem()
    for seed in range(5):
        B = random_coefficients(problem, seed)
        assert problem.certify(B).primal == pytest.approx(case.objective(*problem.to_input(B)), rel=1e-12)


def test_weak_duality_and_a_gap_that_bounds_the_suboptimality(kind):
    """For any coefficients at all: dual <= minimum <= primal, and primal - minimum <= gap."""
    minimum = conic_minimum(seed=2, **kind)
    problem = make_case(2, **kind).problem()
    accuracy = 1e-8 * abs(minimum)
    for seed, scale in itertools.product(range(6), [1e-3, 0.1, 1.0, 30.0]):
        certificate = problem.certify(random_coefficients(problem, seed, scale))
        assert certificate.dual <= minimum + accuracy
        assert certificate.primal >= minimum - accuracy
        assert certificate.gap >= certificate.primal - minimum - accuracy
        assert certificate.gap >= certificate.primal - certificate.dual


def test_dual_point_is_feasible_and_balanced(kind):
    case = make_case(3, **kind)
    problem = case.problem()
    for seed, scale in itertools.product(range(5), [0.1, 10.0]):
        certificate = problem.certify(random_coefficients(problem, seed, scale))
        X = case.X.toarray() if sp.issparse(case.X) else case.X
        correlations = row_norms(X.T @ certificate.theta)
        assert owl_gauge(correlations, problem.lam) <= 1 + 1e-10
        np.testing.assert_allclose(correlations, certificate.correlations, atol=1e-9)
        if case.fit_intercept:
            assert np.abs(certificate.theta.sum(axis=0)).max() <= 1e-10


def test_the_better_dual_point_is_kept(kind):
    problem = make_case(4, **kind).problem()
    first = problem.certify(problem.null_coefficients())
    B = random_coefficients(problem, 0, 100.0)
    alone, joint = problem.certify(B), problem.certify(B, best=first)
    assert joint.dual == max(alone.dual, first.dual)
    assert joint.theta is first.theta or alone.dual > first.dual
    assert joint.gap <= alone.gap * (1 + 1e-12)


def test_upper_bounds_hold_at_the_optimum(kind):
    """u_j bounds the correlation of the dual optimum, from any certificate."""
    case = make_case(5, **kind)
    problem = case.problem()
    optimum = go.solve(**case.arguments(), tol=1e-12, screening="none")
    X = case.X.toarray() if sp.issparse(case.X) else case.X
    exact = row_norms(X.T @ optimum.theta)
    slack = np.sqrt(2 * problem.loss.curvature * optimum.gap) * problem.norms
    for seed, scale in itertools.product(range(5), [0.01, 0.3, 3.0]):
        upper = problem.upper_bounds(problem.certify(random_coefficients(problem, seed, scale)))
        assert np.all(exact - slack <= upper)


def test_curvature_of_the_multinomial_radius_is_needed_and_used():
    """The squared radius is 2 ell gap with ell = 1/2: half of the squared loss's."""
    problem = make_case(6, loss="multinomial").problem()
    certificate = problem.certify(random_coefficients(problem, 1))
    radius = (problem.upper_bounds(certificate, two_sided=False) - certificate.correlations) / problem.norms
    np.testing.assert_allclose(radius, np.sqrt(certificate.gap), rtol=1e-6)


@pytest.mark.parametrize("shape", ["oscar", "linear", "constant", "bh"])
def test_lam_max_is_exact(kind, shape):
    """Zero, with gap exactly 0 after one step, at lam_max; not zero one per cent below."""
    case = make_case(7, shape=shape, fraction=1.0, **kind)
    at = go.solve(**case.arguments())
    assert not at.B.any()
    assert (at.gap, at.n_iter, at.status) == (0.0, 1, "converged")
    below = make_case(7, shape=shape, fraction=0.99, **kind)
    assert go.solve(**below.arguments(), tol=1e-9).B.any()


def test_weight_two_is_the_sample_twice_and_weight_zero_no_sample(kind):
    case = make_case(8, **{**kind, "weighted": False})
    weight = np.random.default_rng(0).integers(0, 3, size=case.Y.shape[0]).astype(float)
    assert set(weight) == {0.0, 1.0, 2.0}
    weighted = go.solve(**{**case.arguments(), "sample_weight": weight}, tol=1e-10)
    rows = np.repeat(np.arange(len(weight)), weight.astype(int))
    repeated = go.solve(**{**case.arguments(), "X": case.X[rows], "Y": case.Y[rows]}, tol=1e-10)
    assert weighted.primal == pytest.approx(repeated.primal, rel=1e-9)
    np.testing.assert_allclose(weighted.B, repeated.B, atol=1e-5)
    np.testing.assert_allclose(weighted.intercept, repeated.intercept, atol=1e-5)


def test_columns_may_be_permuted(kind):
    case = make_case(9, **kind)
    order = np.random.default_rng(0).permutation(case.X.shape[1])
    X = case.X.toarray()[:, order] if sp.issparse(case.X) else case.X[:, order]
    straight = go.solve(**case.arguments(), tol=1e-11)
    permuted = go.solve(**{**case.arguments(), "X": X}, tol=1e-11)
    assert straight.primal == pytest.approx(permuted.primal, rel=1e-10)
    np.testing.assert_allclose(straight.B[order], permuted.B, atol=1e-5)


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_rotating_the_targets_rotates_the_coefficients(fit_intercept):
    case = make_case(10, q=3, fit_intercept=fit_intercept)
    Q, _ = np.linalg.qr(np.random.default_rng(1).standard_normal((3, 3)))
    straight = go.solve(**case.arguments(), tol=1e-12)
    rotated = go.solve(**{**case.arguments(), "Y": case.Y @ Q}, tol=1e-12)
    np.testing.assert_allclose(straight.B @ Q, rotated.B, atol=1e-5)


@pytest.mark.parametrize("offset", [0.0, 1.0, 1e6, 1e12])
def test_constant_targets_give_zero_rows_exact_intercept_and_no_gap(offset):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 8)) + 5.0
    Y = np.column_stack([np.full(30, offset), np.full(30, -3.0 * offset)])
    result = go.solve(X, Y, np.ones(8), fit_intercept=True)
    assert (result.status, result.gap, result.n_iter) == ("converged", 0.0, 1)
    assert not result.B.any()
    np.testing.assert_allclose(result.intercept, [offset, -3.0 * offset], rtol=1e-14)


def test_one_constant_target_among_others_has_zero_coefficients():
    case = make_case(11, fit_intercept=True)
    Y = case.Y.copy()
    Y[:, 1] = 1e9 / 3
    result = go.solve(**{**case.arguments(), "Y": Y}, tol=1e-9)
    assert result.B[:, 0].any()
    assert not result.B[:, 1].any()
    assert result.intercept[1] == pytest.approx(1e9 / 3, rel=1e-14)


def test_a_single_class_is_fitted_exactly():
    X = np.random.default_rng(0).standard_normal((20, 5))
    Y = np.tile([0.0, 1.0, 0.0], (20, 1))
    result = go.solve(X, Y, np.ones(5), loss="multinomial", fit_intercept=True)
    assert (result.status, result.gap) == ("converged", 0.0)
    assert not result.B.any()
    assert np.argmax(result.intercept) == 1
    assert np.isfinite(result.intercept).all()


def test_zero_loss_of_the_null_model_counts_as_converged():
    result = go.solve(np.eye(3), np.zeros((3, 2)), np.ones(3), B_init=np.ones((3, 2)))
    assert (result.status, result.gap, result.primal) == ("converged", 0.0, 0.0)


@pytest.mark.parametrize("loss", ["squared", "multinomial"])
@pytest.mark.parametrize("offset", [1e2, 1e4, 1e6])
def test_columns_far_from_zero_do_not_matter_with_an_intercept(loss, offset):
    """Centering is exact: moving columns changes the intercept only."""
    case = make_case(12, loss=loss, fit_intercept=True)
    shift = offset * np.random.default_rng(0).standard_normal(case.X.shape[1])
    near = go.solve(**case.arguments(), tol=1e-8)
    far = go.solve(**{**case.arguments(), "X": case.X + shift}, tol=1e-8)
    assert far.converged
    assert far.n_iter <= 2 * near.n_iter
    assert abs(far.primal - near.primal) <= near.gap + far.gap + 1e-15 * offset**2
    np.testing.assert_allclose(far.intercept, near.intercept - shift @ far.B, atol=1e-4 * offset)


@pytest.mark.parametrize("log_ratio", [3, 5, 7])
def test_gap_covers_rounding_when_the_residual_is_tiny(log_ratio):
    """||Y|| / ||residual|| large: the dual value cancels, and the slack must cover it."""
    rng = np.random.default_rng(log_ratio)
    worst = -np.inf
    for _ in range(200):
        X = rng.standard_normal((15, 4))
        Y = X @ rng.standard_normal((4, 2)) * 10.0**log_ratio + rng.standard_normal((15, 2))
        problem = build_problem(X, Y, np.full(4, 1e-3))
        B = np.linalg.lstsq(X, Y, rcond=None)[0]
        certificate = problem.certify(B)
        # The same difference in extended precision.
        T = np.longdouble(Y) - np.longdouble(X) @ np.longdouble(B)
        theta = np.longdouble(certificate.theta)
        exact = 0.5 * np.sum(T * T) + problem.penalty_value(B) - np.sum(theta * Y) + 0.5 * np.sum(theta * theta)
        worst = max(worst, float(exact - certificate.gap))
    assert worst <= 0.0


def test_restricting_to_rows_that_hold_the_support_keeps_the_minimum(kind):
    """Theorem 1: without rows that are zero at the optimum, with the largest weights, nothing changes."""
    case = make_case(13, **kind)
    full = go.solve(**case.arguments(), tol=1e-11, screening="none")
    support = full.support
    assert 0 < len(support) < case.X.shape[1]
    X = case.X.toarray() if sp.issparse(case.X) else case.X
    reduced = Case(X[:, support], case.Y, case.lam[: len(support)], case.loss, case.fit_intercept, case.sample_weight)
    small = go.solve(**reduced.arguments(), tol=1e-11)
    assert small.primal == pytest.approx(full.primal, rel=1e-9)


def test_lipschitz_is_close_to_the_operator_norm():
    for seed in range(5):
        problem = make_case(seed, n=40, d=30, weighted=True).problem()
        X = np.sqrt(problem.samples.w) * problem.design.X
        exact = np.linalg.norm(X, 2) ** 2
        assert 0.97 * exact <= problem.lipschitz() <= 1.05 * exact


def test_standardized_problem_is_the_problem_on_scaled_columns():
    case = make_case(14, fit_intercept=True, weighted=True)
    w = case.sample_weight
    mean = w @ case.X / w.sum()
    scale = np.sqrt(w @ (case.X - mean) ** 2 / w.sum())
    implicit = build_problem(**case.arguments(), standardized=True)
    explicit = build_problem(**{**case.arguments(), "X": (case.X - mean) / scale})
    B = random_coefficients(explicit, 0)
    assert implicit.certify(B).primal == pytest.approx(explicit.certify(B).primal, rel=1e-12)
    np.testing.assert_allclose(implicit.norms, explicit.norms, rtol=1e-12)
    np.testing.assert_allclose(implicit.to_input(B)[0], B / scale[:, None], rtol=1e-12)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind["loss"] == "squared"], ids=kind_name)
def test_certificates_of_many_alphas_at_once(kind):
    """Residuals of several coefficients are those of each, for two products with X in all."""
    problem = make_case(17, **kind).problem()
    several = [random_coefficients(problem, seed, 0.3) for seed in range(4)]
    alone = [problem.residual(B) for B in several]
    before = problem.design.passes.total
    together = problem.residuals(np.stack(several))
    assert problem.design.passes.total - before <= 2.0 + 1e-9
    for B, one, other in zip(several, alone, together, strict=True):
        first, second = (problem.certify(B, residual=residual) for residual in (one, other))
        assert second.gap == pytest.approx(first.gap, rel=1e-9)
        assert second.primal == pytest.approx(first.primal, rel=1e-12)
        np.testing.assert_allclose(second.correlations, first.correlations, rtol=1e-9, atol=1e-12)


SOFT = {
    "constant": lambda x: np.tile([0.3, 0.7], (len(x), 1)),
    "nearly constant": lambda x: np.array([0.3, 0.7]) + 1e-5 * x[:, None] * [1.0, -1.0],
    "logistic in one feature": lambda x: np.column_stack([1 / (1 + np.exp(-2 * x)), 1 / (1 + np.exp(2 * x))]),
}


@pytest.mark.parametrize("kind", SOFT)
@pytest.mark.parametrize("unpenalized", [None, [0]])
def test_class_probabilities_that_a_model_can_reach(kind, unpenalized):
    """The loss has a floor above zero, which features, penalized or not, may reach with finite coefficients."""
    X = np.random.default_rng(0).standard_normal((40, 8)) / 2
    path = go.group_owl_path(X, SOFT[kind](X[:, 0]), loss="multinomial", alphas=[0.1, 0.01], unpenalized=unpenalized)
    assert set(path.statuses) == {"converged"}
    assert np.all((path.deviance_ratio >= -1e-9) & (path.deviance_ratio <= 1.0))


def test_tolerances_are_relative_to_what_can_be_explained():
    """Class probabilities have an entropy that no model explains: it counts neither for the goal nor as deviance."""
    rng = np.random.default_rng(0)
    P = 0.5 + 0.05 * np.tanh(rng.standard_normal((30, 1))) * [[1.0, -1.0]]
    problem = build_problem(rng.standard_normal((30, 4)), P, np.ones(4), loss="multinomial", fit_intercept=True)
    entropy = -np.sum(P * np.log(P))
    frequencies = P.mean(axis=0)
    scale = -30 * np.sum(frequencies * np.log(frequencies)) - entropy
    assert scale < 0.01 * problem.null_loss
    assert problem.goal(0.1) == pytest.approx(0.1 * scale, rel=1e-9)
    assert problem.explained(entropy) == pytest.approx(1.0)
    assert problem.explained(problem.null_loss) == 0.0


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_targets_that_leave_nothing_to_explain(fit_intercept):
    """The same probabilities for every sample: what rounding leaves of the scale is no goal."""
    row = np.full(3, 1.0 / 3.0) if not fit_intercept else np.array([0.1, 0.2, 0.7])
    X = np.random.default_rng(1).standard_normal((20, 5))
    arguments = {"X": X, "Y": np.tile(row, (20, 1)), "loss": "multinomial", "fit_intercept": fit_intercept}
    assert build_problem(lam=np.ones(5), **arguments).loss_scale == 0.0
    result = go.solve(lam=np.ones(5), **arguments)
    assert result.converged
    assert not result.B.any()


# Dual points that cannot be balanced -------------------------------------------------------------------


def counts_and_their_minimum():
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((12, 3)), rng.poisson(3.0, size=(12, 2)).astype(float)
    lam = 0.2 * go.lam_max(X, Y, "oscar", loss="poisson", fit_intercept=True) * go.weights.oscar(3)
    options = {"loss": "poisson", "fit_intercept": True}
    return build_problem(X, Y, lam, **options), go.solve(X, Y, lam, tol=1e-10, **options).primal


@pytest.mark.parametrize("intercept", [-50.0, -400.0, -1e4])
def test_means_that_vanish_prove_nothing_false(intercept):
    """From means of zero there is no factor that makes them add up to the targets."""
    problem, minimum = counts_and_their_minimum()
    certificate = problem.certify(problem.from_input(np.zeros((3, 2)), np.array([intercept, 0.5])))
    assert certificate.dual <= minimum + 1e-8
    assert certificate.primal - minimum <= certificate.gap < np.inf  # and something is proved
    assert np.abs(certificate.theta.sum(axis=0)).max() <= 1e-10


def test_a_loss_that_fails_to_balance_proves_nothing(monkeypatch):
    problem, _ = counts_and_their_minimum()
    monkeypatch.setattr(type(problem.loss), "balance", lambda self, theta, Y, w, totals: theta)
    certificate = problem.certify(problem.from_input(np.zeros((3, 2)), np.array([-1.0, 0.5])))
    assert certificate.gap == np.inf
