"""The pages on mathematics: names of the code that they give exist, and their numbers and theorems hold."""

from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

import groupowl as go
from groupowl.losses import LOSSES
from groupowl.norm.kernels import owl_gauge, owl_value, repeated_test, row_norms
from groupowl.screening import extended_rule, paper_rule
from pages_support import names_on, resolve
from support import make_case

DOCS = Path(__file__).parents[1] / "docs"
PAGES = sorted((DOCS / "mathematics").glob("*.rst"))
TEXTS = {page.stem: page.read_text(encoding="utf-8") for page in PAGES}
#: Losses whose dual value is a function of the dual point; tests of the others are their own.
LOSS_NAMES = [name for name, loss in LOSSES.items() if loss.is_additive]


@pytest.mark.parametrize("page", TEXTS)
def test_names_of_the_code_exist(page):
    for name in names_on(TEXTS[page]):
        resolve(name)


def test_a_name_that_does_not_exist_would_be_seen():
    assert names_on("In the code: ``groupowl.no_such_thing``.") == ["groupowl.no_such_thing"]
    with pytest.raises(ImportError):
        resolve("groupowl.no_such_thing")
    with pytest.raises(ImportError):
        resolve("groupowl.problem.Problem.no_such_method")


def test_every_page_names_its_code():
    for page in ("model", "duality", "screening", "extensions", "errata", "solver", "rounding"):
        assert len(names_on(TEXTS[page])) >= 5, page


# The errata -------------------------------------------------------------------------------------------------

X3, Y3, LAM3 = np.eye(3), np.array([10.0, 1.9, 1.9]), np.array([4.0, 3.0, 1.0])


def squared_dual(theta, Y):
    return float(np.sum(theta * Y) - 0.5 * np.sum(theta * theta))


def test_the_counterexample_is_on_the_page():
    numbers = ["Y = (10, \\; 1.9, \\; 1.9)", "\\lambda = (4, 3, 1)", "B^* = (6, 0, 0)", "(4, 1.9, 1.9)", "35.61"]
    for text in numbers:
        assert text in TEXTS["errata"], text


def test_counterexample_solution_and_certificate():
    B = go.owl_prox(Y3, LAM3)
    np.testing.assert_allclose(B, [6.0, 0.0, 0.0], atol=1e-15)
    theta = Y3 - B
    np.testing.assert_allclose(theta, [4.0, 1.9, 1.9])
    assert np.all(np.cumsum(theta) <= np.cumsum(LAM3) + 1e-14)
    primal = 0.5 * np.sum(theta**2) + go.owl_norm(B, LAM3)
    assert primal == pytest.approx(35.61, abs=1e-12)
    assert squared_dual(theta, Y3) == pytest.approx(35.61, abs=1e-12)
    assert -(np.sum(theta * Y3) + 0.5 * np.sum(theta**2)) == pytest.approx(-58.83, abs=1e-12)  # the paper's sign


def test_counterexample_keeps_three_rows_by_the_papers_rule_and_one_by_the_extended():
    bounds = np.array([4.0, 1.9, 1.9])
    assert list(paper_rule(bounds, LAM3)) == [0, 1, 2]
    assert list(extended_rule(bounds, LAM3)) == [0]
    np.testing.assert_allclose(np.r_[0.0, np.cumsum(bounds - LAM3)], [0.0, 0.0, -1.1, -0.2], atol=1e-14)


@pytest.mark.parametrize(("screening", "kept"), [("paper", [0, 1, 2]), ("safe", [0])])
def test_counterexample_through_a_whole_solve(screening, kept):
    """However small the gap becomes."""
    result = go.solve(X3, Y3, LAM3, screening=screening, tol=1e-12)
    assert result.converged
    assert list(result.active) == kept
    assert list(result.support) == [0]


def test_zero_weights_example():
    assert "keeps one row, the paper's rule three" in TEXTS["screening"]
    lam, bounds = np.array([4.0, 3.0, 0.0]), np.array([4.0, 0.5, 0.1])
    assert len(extended_rule(bounds, lam)) == 1
    assert len(paper_rule(bounds, lam)) == 3


def test_the_residual_as_dual_point_removes_a_row_that_is_needed():
    X, Y, lam = np.array([[1.0, 0.8], [0.0, 0.6]]), np.array([6.0, -8.0]), np.ones(2)
    result = go.solve(X, Y, lam, tol=1e-13)
    np.testing.assert_allclose(result.B[:, 0], [35 / 3, -25 / 3], rtol=1e-6)
    assert squared_dual(Y, Y) == 0.5 * Y @ Y == 50.0
    bounds = np.abs(X.T @ Y)  # with a radius of zero
    np.testing.assert_allclose(bounds, [6.0, 0.0], atol=1e-14)
    assert list(paper_rule(bounds, lam)) == [0]
    assert go.owl_dual_norm(X.T @ Y, lam) == pytest.approx(6.0)
    assert squared_dual(Y / 6, Y) == pytest.approx(275 / 18)
    gap = 50 - 275 / 18
    assert gap == pytest.approx(625 / 18)
    right = go.SafeScreener(X, Y, lam).update(np.zeros((2, 1)))
    assert right.gap == pytest.approx(gap)
    assert list(right.active) == [0, 1]
    assert abs(X[:, 1] @ Y) / 6 + np.sqrt(2 * gap) == pytest.approx(25 / 3)


def printed_algorithm_1(x, y, lam, steps):
    """Objectives of the algorithm as it is printed, one feature and one sample."""
    b = extrapolated = 0.0
    t, objectives = 1.0, []
    for _ in range(steps):
        v = extrapolated - t * x * (x * extrapolated - y)
        b_next = np.sign(v) * max(abs(v) - t * lam, 0.0)
        t_next = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * t * t))
        extrapolated = b_next + (t - 1.0) / t_next * (b_next - b)
        b, t = b_next, t_next
        objectives.append(0.5 * (y - x * b) ** 2 + lam * abs(b))
    return objectives


def test_algorithm_1_as_printed_diverges():
    objectives = printed_algorithm_1(0.5, 2.0, 0.1, 40)
    assert objectives[9] == pytest.approx(0.38, abs=1e-3)
    assert objectives[-1] > 1e30
    ours = go.solve([[0.5]], [2.0], [0.1], solver="apgd", tol=1e-12)
    assert ours.primal == pytest.approx(0.38, abs=1e-12)
    assert ours.B[0, 0] == pytest.approx(3.6)


def test_algorithm_2_as_printed_is_biased():
    x, B, B_moved, n = np.ones(2), 0.0, 1.0, 2

    def gradient_at(b):
        return x * (x * b)  # one entry per sample, targets are zero

    change = gradient_at(B_moved) - gradient_at(B)
    printed, right = change / 1 + gradient_at(B).sum(), n * change / 1 + gradient_at(B).sum()
    assert gradient_at(B_moved).sum() == 2.0
    assert list(printed) == [1.0, 1.0]
    assert right.mean() == 2.0
    problem = go.problem.build_problem(np.ones((2, 1)), np.zeros(2), [1.0])
    theta = problem.dual_point(problem.predictor(np.zeros((1, 1))))
    ours = [problem.batch_descent_change(np.array([i]), np.ones((1, 1)), theta)[0, 0] for i in range(2)]
    assert np.mean(ours) == -2.0


def test_curvature_of_the_multinomial_loss():
    rng = np.random.default_rng(0)
    largest = [np.linalg.eigvalsh(np.diag(p) - np.outer(p, p))[-1] for p in rng.dirichlet(np.ones(4) * 0.3, 500)]
    assert max(largest) <= 0.5 + 1e-15 == LOSSES["multinomial"].curvature + 1e-15
    p = np.array([0.5, 0.5, 0.0])
    assert np.linalg.eigvalsh(np.diag(p) - np.outer(p, p))[-1] == pytest.approx(0.5)


# The formulas -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(20))
def test_norm_and_dual_norm(seed):
    """The norm by parts, Hölder's inequality, and the matrix at which it is tight."""
    rng = np.random.default_rng(seed)
    d, q = rng.integers(1, 8), rng.integers(1, 4)
    lam = np.sort(rng.random(d) * (rng.random(d) < 0.8) + np.eye(d)[0])[::-1]
    C, B = rng.standard_normal((2, d, q))
    falling = np.append(-np.sort(-row_norms(B)), 0.0)
    sums = np.cumsum(lam)
    assert go.owl_norm(B, lam) == pytest.approx((falling[:-1] - falling[1:]) @ sums)
    assert np.sum(C * B) <= go.owl_norm(B, lam) * go.owl_dual_norm(C, lam) * (1 + 1e-12)
    order = np.argsort(-row_norms(C))
    k = int(np.argmax(np.cumsum(row_norms(C)[order]) / sums)) + 1
    tight = np.zeros_like(C)
    tight[order[:k]] = C[order[:k]] / row_norms(C)[order[:k], None] / sums[k - 1]
    assert go.owl_norm(tight, lam) == pytest.approx(1.0)
    assert np.sum(C * tight) == pytest.approx(go.owl_dual_norm(C, lam))


def cases(seeds=4):
    """Small problems of all losses, with and without intercept and weights, and their solutions."""
    for loss in LOSS_NAMES:
        for seed in range(seeds):
            shape = ["oscar", "linear", "two-level", "bh"][seed % 4]
            options = {"fit_intercept": seed % 2 == 1, "weighted": seed % 4 > 1, "shape": shape, "fraction": 0.7}
            case = make_case(seed, loss=loss, n=60, **options)
            yield pytest.param(case, id=f"{loss}-{seed}")


CASES = list(cases())
#: Where there is a ball; tests of the losses have the bounds of the others.
ROUND = [item for item in CASES if np.isfinite(item.values[0].problem().loss.curvature)]


def rough_iterates(case, rng, count=12):
    """Coefficients of a problem from far to near its solution."""
    problem = case.problem()
    solution = go.solve(**case.arguments(), screening="none", tol=1e-11)
    optimum = problem.from_input(solution.B, solution.intercept if case.fit_intercept else None)
    for size in np.geomspace(1.0, 1e-5, count):
        yield (
            problem,
            solution,
            optimum + size * rng.standard_normal(optimum.shape) * (rng.random(len(optimum)) < 0.7)[:, None],
        )


@pytest.mark.parametrize("case", CASES)
def test_facts_on_subgradients(case):
    """The four facts, at a solution of a small gap, with the tolerance that the gap allows."""
    result = go.solve(**case.arguments(), screening="none", tol=1e-13)
    problem = case.problem()
    B = problem.from_input(result.B, result.intercept if case.fit_intercept else None)
    g = problem.certify(B).correlations
    slack = np.sqrt(2 * problem.loss.curvature * result.gap) * problem.norms.max() * len(g) + 1e-9
    m, sums = len(result.support), np.r_[0.0, np.cumsum(case.lam)]
    assert m > 0
    for k in (1, 2, 3):
        assert max(sum(chosen) for chosen in combinations(g, k)) <= sums[k] + slack
    assert g[result.support].sum() == pytest.approx(sums[m], abs=slack)
    assert g[result.support].min() >= case.lam[m - 1] - slack
    outside = np.delete(g, result.support)
    if len(outside):
        assert outside.max() <= case.lam[m] + slack


@pytest.mark.parametrize("case", ROUND)
def test_radius_bounds_and_both_rules(case):
    rng = np.random.default_rng(5)
    tested = 0
    for problem, solution, B in rough_iterates(case, rng):
        optimal = problem.certify(problem.from_input(solution.B, solution.intercept if case.fit_intercept else None))
        certificate = problem.certify(B)
        distance = np.sqrt(np.sum((certificate.theta - optimal.theta) ** 2 / problem.samples.w))
        near = np.sqrt(2 * problem.loss.curvature * optimal.gap)  # how far the reference may be from the optimum
        assert distance <= np.sqrt(2 * problem.loss.curvature * certificate.gap) + near
        upper = problem.upper_bounds(certificate)
        assert np.all(optimal.correlations <= upper + near * problem.norms)
        kept_by_paper, kept = paper_rule(upper, case.lam), extended_rule(upper, case.lam)
        assert set(solution.support) <= set(kept) <= set(kept_by_paper)
        again = extended_rule(upper[kept], case.lam[: len(kept)])
        assert len(again) == len(kept)
        tested += len(case.lam) - len(kept)
    assert tested > 0


@pytest.mark.parametrize("case", ROUND)
def test_dropping_rows_never_raises_the_objective(case):
    """Theorem 5, for rows that are far from zero when they are removed."""
    rng, dropped = np.random.default_rng(6), 0
    for problem, _, B in rough_iterates(case, rng):
        certificate = problem.certify(B)
        for rule in (paper_rule, extended_rule):
            kept = rule(problem.upper_bounds(certificate), case.lam)
            gone = np.setdiff1d(np.arange(problem.n_rows), kept)
            without = B.copy()
            without[gone] = 0.0
            dropped += int(np.count_nonzero(B[gone].any(axis=1)))
            assert problem.certify(without).primal <= certificate.primal * (1 + 1e-13)
    assert dropped > 0


def test_finite_identification_by_the_extended_rule():
    """Theorem 3: where its condition holds, the extended rule keeps the support alone."""
    zeros = 0
    for seed in range(8):
        case = make_case(seed, d=20, shape="linear", fraction=0.7)
        result = go.solve(**case.arguments(), tol=1e-12)
        g = -np.sort(-np.delete(case.problem().certify(result.B).correlations, result.support))
        margin = np.cumsum(case.lam[len(result.support) :]) - np.cumsum(g)
        if margin.min(initial=np.inf) > 1e-4:
            assert list(result.active) == list(result.support)
            zeros += len(g)
    assert zeros > 20


@pytest.mark.parametrize("seed", range(30))
def test_closed_form_of_the_papers_rule(seed):
    rng = np.random.default_rng(seed)
    lam = -np.sort(-rng.integers(0, 5, 9) / 2.0)
    upper = rng.integers(0, 6, 9) / 2.0
    alive = np.arange(9)
    while len(alive) and (upper[alive] < lam[len(alive) - 1]).any():
        alive = alive[upper[alive] >= lam[len(alive) - 1]]
    falling = -np.sort(-upper)
    size = max([k for k in range(1, 10) if falling[k - 1] >= lam[k - 1]], default=0)
    assert len(alive) == size
    assert list(repeated_test(upper, lam)) == list(alive)


@pytest.mark.parametrize("loss", LOSS_NAMES)
def test_the_gap_has_two_parts(loss):
    case = make_case(3, loss=loss, weighted=True)
    problem, rng = case.problem(), np.random.default_rng(0)
    B = rng.standard_normal((problem.n_rows, problem.samples.n_tasks))
    certificate = problem.certify(B)
    Y, w, Z = problem.samples.Y, problem.samples.w, problem.predictor(B)
    theta = certificate.theta
    first = problem.loss.value(Z, Y, w) - problem.loss.dual_value(theta, Y, w) + np.sum(theta * Z)
    second = owl_value(row_norms(B), case.lam) - np.sum((case.X.T @ theta) * B)
    assert min(first, second) >= 0
    assert first + second == pytest.approx(certificate.primal - certificate.dual)
    residual = problem.loss.dual_point(Z, Y, w)
    assert first >= np.sum((theta - residual) ** 2 / w) / (2 * problem.loss.curvature) * (1 - 1e-12)


def test_best_scale_of_squared_loss():
    case = make_case(1, weighted=True)
    problem = case.problem()
    Y, w = problem.samples.Y, problem.samples.w
    residual = problem.residual(0.1 * np.ones((problem.n_rows, 3)))
    limit = 1.0 / owl_gauge(residual.correlations, case.lam)
    best = problem.loss.ray_scale(residual.totals, limit)
    values = [problem.loss.dual_value(s * residual.theta, Y, w) for s in np.linspace(-limit, limit, 1001)]
    assert problem.loss.dual_value(best * residual.theta, Y, w) >= max(values) - 1e-12


def test_balanced_probabilities():
    """What the page says of transport: a distribution for every sample, and the totals that there are."""
    rng = np.random.default_rng(0)
    loss, w = LOSSES["multinomial"], rng.uniform(0.1, 3.0, (20, 1))
    Y, P = np.eye(4)[rng.integers(0, 4, 20)], rng.dirichlet(np.ones(4), 20)
    theta = w * (Y - P)
    balanced = Y - loss.balance(theta, Y, w, loss.balance_totals(theta, Y, w)) / w
    assert balanced.min() >= -1e-15
    np.testing.assert_allclose(balanced.sum(axis=1), 1.0)
    np.testing.assert_allclose((w * balanced).sum(axis=0), (w * Y).sum(axis=0))


def test_strength_that_selects_nothing():
    case = make_case(2, loss="multinomial", fit_intercept=True, weighted=True)
    w, weights = case.sample_weight[:, None], go.weights.oscar(case.X.shape[1])
    frequencies = (w * case.Y).sum(axis=0) / w.sum()
    null = go.owl_dual_norm(case.X.T @ (w * (case.Y - frequencies)), weights)
    options = {"loss": "multinomial", "fit_intercept": True, "sample_weight": case.sample_weight}
    assert go.lam_max(case.X, case.Y, weights, **options) == pytest.approx(null, rel=1e-12)


def test_two_classes_are_binary_logistic():
    """Rows (-b/2, b/2) pay lam |b| / sqrt(2)."""
    case = make_case(4, loss="multinomial", q=2)
    result = go.solve(**case.arguments(), tol=1e-10)
    beta = result.B[:, 1] - result.B[:, 0]
    np.testing.assert_allclose(result.B.sum(axis=1), 0.0, atol=1e-12)
    signs = 2 * case.Y[:, 1] - 1
    logistic = np.sum(np.log1p(np.exp(-signs * (case.X @ beta)))) + go.owl_norm(beta, case.lam / np.sqrt(2))
    assert logistic == pytest.approx(result.primal, rel=1e-12)


@pytest.mark.parametrize("case", ROUND)
def test_formula_of_the_computed_gap(case):
    """The bound of the page on rounding, term by term."""
    problem, rng = case.problem(), np.random.default_rng(0)
    B = problem.null_coefficients() + 0.1 * rng.standard_normal((problem.n_coefficients, problem.samples.n_tasks))
    certificate = problem.certify(B)
    residual, eps = certificate.residual, 2.0**-52
    kappa = problem.loss.cancelling_size(problem.predictor(B), problem.samples.w)
    rho = problem.samples.norm + problem.reach(B)
    sums = 64 * eps * (abs(certificate.primal) + abs(certificate.dual))
    rest = 8 * eps * ((certificate.theta_norm + residual.norm) * rho + kappa)
    expected = max(certificate.primal - certificate.dual, 0.0) + sums + rest
    assert certificate.gap == pytest.approx(expected, rel=1e-14)
    assert certificate.rounding == pytest.approx(sums + rest, rel=1e-12)
    slack = 8 * eps * np.sqrt(len(case.Y)) * certificate.theta_norm * problem.rounding_norms
    bounds = certificate.correlations + problem.norms * np.sqrt(2 * problem.loss.curvature * certificate.gap) + slack
    np.testing.assert_allclose(problem.upper_bounds(certificate, two_sided=False), bounds, rtol=1e-14)


# Groups, gaps, offset, ridge, signs --------------------------------------------------------------------------


def test_weights_of_units_inside_the_norm_are_no_isotonic_regression():
    """The example of the page: the unit that is larger by the order of the norm is the one that becomes zero."""
    for text in ("\\omega\n= (0.3, 3)", "\\lambda = (1, 1)", "V = (10, 1.1)", "(9.7, 0)", "3.3 against 3"):
        assert " ".join(text.split()) in " ".join(TEXTS["extensions"].split()), text
    omega, V = np.array([0.3, 3.0]), np.array([10.0, 1.1])
    grid = np.stack(np.meshgrid(np.linspace(0, 12, 1201), np.linspace(0, 2, 201), indexing="ij"), axis=-1)
    values = 0.5 * np.sum((grid - V) ** 2, axis=-1) + np.sum(omega * grid, axis=-1)  # equal weights: any order
    np.testing.assert_allclose(grid[np.unravel_index(values.argmin(), values.shape)], [9.7, 0.0], atol=1e-9)
    assert list(np.argsort(omega * V)) == [0, 1]


@pytest.mark.parametrize("seed", range(10))
def test_spectral_norms_bound_units_and_are_attained(seed):
    rng = np.random.default_rng(seed)
    X, w, units = rng.standard_normal((12, 5)), rng.uniform(0.2, 2.0, 12), np.array([0, 1, 0, 1, 1])
    asked = {"group_scale": "none", "penalty_factor": None, "ridge": 0.0, "positive": False}
    design, options = go.problem.options_of(X, feature_groups=units, **asked)
    Y = rng.standard_normal((12, 3))
    problem = go.problem.build_problem(design, Y, np.ones(2), sample_weight=w, options=options)
    for g in range(2):
        A = np.sqrt(w)[:, None] * X[:, units == g]
        norm = np.linalg.norm(A, 2)
        assert problem.unit_norms[g] == pytest.approx(norm, rel=1e-12)
        assert norm <= problem.unit_norms[g] <= np.linalg.norm(A)
        for left in (rng.standard_normal((12, 3)), np.outer(np.linalg.svd(A)[0][:, 0], rng.standard_normal(3))):
            moved = np.linalg.norm(X[:, units == g].T @ (np.sqrt(w)[:, None] * left))
            assert moved <= norm * np.linalg.norm(left) * (1 + 1e-12)
        assert moved == pytest.approx(norm * np.linalg.norm(left))


@pytest.mark.parametrize("seed", range(10))
def test_bounds_with_weights_of_entries(seed):
    """Of the ellipsoid, of the ball that the code takes, and the norms that it has."""
    rng = np.random.default_rng(seed)
    W = rng.uniform(0.1, 3.0, (15, 4)) * (rng.random((15, 4)) < 0.7) + 1e-3 * np.eye(15, 4)
    x, M, rho = rng.standard_normal(15), rng.standard_normal((15, 4)), rng.uniform(0.1, 3.0)
    means = (W * x[:, None]).sum(axis=0) / W.sum(axis=0)
    a = np.sqrt(np.sum(W * (x[:, None] - means) ** 2, axis=0))
    Y = np.where(W > 0, rng.standard_normal((15, 4)), np.nan)
    problem = go.problem.build_problem(x[:, None], Y, [1.0], fit_intercept=True, sample_weight=W)
    assert problem.norms[0] == pytest.approx(a.max(), rel=1e-10)
    C = np.sum((x[:, None] - means) * M, axis=0)
    ellipsoid = np.linalg.norm(C) ** 2 + 2 * rho * np.linalg.norm(a * C) + rho**2 * a.max() ** 2
    assert ellipsoid <= (np.linalg.norm(C) + rho * a.max()) ** 2 * (1 + 1e-12)
    directions = [W * (x[:, None] - means) * (C / np.maximum(a, 1e-9)), W * (x[:, None] - means) * np.sign(C)]
    for step in [*rng.standard_normal((20, 15, 4)) * np.sqrt(W), *directions]:
        norm = np.sqrt(np.sum(step**2 / np.where(W > 0, W, 1.0)))
        moved = C + np.sum((x[:, None] - means) * step, axis=0) * rho / norm
        assert moved @ moved <= ellipsoid * (1 + 1e-12)


@pytest.mark.parametrize("loss", ["squared", "logistic", "poisson"])
def test_dual_with_offset_ridge_and_signs(loss):
    """No scaling, no gap at the optimum, and coefficients that are a proximal map of the dual optimum."""
    case, rng = make_case(3, loss=loss), np.random.default_rng(3)
    offset, mu = rng.standard_normal(case.Y.shape), 0.7
    signs = rng.choice([-1.0, 0.0, 1.0], size=case.X.shape[1])
    result = go.solve(**case.arguments(), offset=offset, ridge=mu, positive=signs, tol=1e-13)
    B, w = result.B, np.ones((len(case.Y), 1))
    base, penalty = LOSSES[loss], go.GroupOWL(case.lam, signs=signs)
    theta = base.dual_point(case.X @ B + offset, case.Y, w)
    C = case.X.T @ theta
    near = go.owl_prox(np.where(signs[:, None] * C < 0, 0.0, C), case.lam)
    dual = base.dual_value(theta, case.Y, w) - np.sum(theta * offset) - np.sum(near**2) / (2 * mu)
    primal = base.value(case.X @ B + offset, case.Y, w) + penalty.value(B) + 0.5 * mu * np.sum(B**2)
    assert result.primal == pytest.approx(primal, rel=1e-12)
    assert primal - dual == pytest.approx(0.0, abs=1e-9 * abs(primal))
    np.testing.assert_allclose(near / mu, B, atol=1e-6 * np.abs(B).max())
    assert np.any(near)


@pytest.mark.parametrize("seed", range(20))
def test_the_shortest_completion_of_augmented_data(seed):
    """From ``C`` to the dual ball, as far as the proximal map says; what residuals of the ridge give is longer."""
    rng = np.random.default_rng(seed)
    lam, mu = np.sort(rng.uniform(0.1, 2.0, 6))[::-1], 0.4
    C, B = 2.0 * rng.standard_normal((2, 6, 3))
    shortest = -go.owl_prox(C, lam) / np.sqrt(mu)
    assert go.owl_dual_norm(C + np.sqrt(mu) * shortest, lam) <= 1 + 1e-12
    assert go.GroupOWL(lam, ridge=mu).conjugate(C)[0] == pytest.approx(0.5 * np.sum(shortest**2))
    scale = 1.0 / go.owl_dual_norm(C - mu * B, lam)
    value = go.GroupOWL(lam, ridge=mu).conjugate(scale * C)[0]
    assert value <= 0.5 * mu * scale**2 * np.sum(B**2) * (1 + 1e-12)


@pytest.mark.parametrize("seed", range(20))
def test_projections_onto_the_cones(seed):
    rng = np.random.default_rng(seed)
    signs, lam = rng.choice([-1.0, 0.0, 1.0], size=5), np.sort(rng.uniform(0.1, 2.0, 5))[::-1]
    penalty = go.GroupOWL(lam, signs=signs)
    V, other = 3.0 * rng.standard_normal((2, 5, 2))
    P = penalty.projected(V)
    for B in map(penalty.projected, rng.standard_normal((10, 5, 2))):
        assert np.sum((V - P) * B) <= 1e-12
        assert np.sum(V * B) <= penalty.dual_norm(V) * penalty.value(B) * (1 + 1e-12)
    assert np.sum((V - P) * P) == pytest.approx(0.0, abs=1e-12)
    assert np.all(penalty.correlations(V + other) <= penalty.correlations(V) + penalty.correlations(other) + 1e-12)
    at = penalty.prox(V)
    np.testing.assert_array_equal(at, go.owl_prox(P, lam))
    value = 0.5 * np.sum((at - V) ** 2) + penalty.value(at)
    for size in (1e-3, 1e-1, 1.0):
        B = penalty.projected(at + size * rng.standard_normal((5, 2)))
        assert 0.5 * np.sum((B - V) ** 2) + penalty.value(B) >= value - 1e-12
