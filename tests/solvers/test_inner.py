"""Inner solvers: oracles agree with the problem, directions with differences, methods with each other."""

import itertools

import numpy as np
import pytest

import groupowl as go
import groupowl.solvers.inner as inner
from groupowl._kernels import cluster_labels, owl_value, unit_norms
from groupowl.losses import MultinomialLoss, SquaredLoss
from groupowl.problem import build_problem
from groupowl.solvers.inner import ColumnsOracle, Goal, GramOracle, ProblemOracle, minimise
from groupowl.solvers.inner.descent import accelerated, barzilai_borwein, first_iterate
from groupowl.solvers.inner.manifold import _Pattern, polish
from groupowl.solvers.inner.newton import (
    ProximalNewton,
    _prox,
    cluster_starts,
    newton_direction,
    pattern_step,
    tangents,
)
from groupowl.solvers.inner.pattern_newton import _Frame, _hessian, pattern_newton
from support import make_case

KINDS = [
    {"loss": loss, "fit_intercept": intercept, "weighted": weighted, "sparse": sparse}
    for loss, intercept, weighted, sparse in itertools.product(["squared", "multinomial"], *[[False, True]] * 3)
]


def oracles_of(problem, rows, B):
    """Every oracle that can do this problem, and what all of them must agree with."""
    restricted = problem.restrict(rows)
    oracles = [ProblemOracle(restricted)]
    targets = problem.targets
    oracles.append(
        ColumnsOracle(problem.columns(rows), problem.loss, targets.Y, targets.w, balanced=problem.n_free > 0)
    )
    if problem.loss.name == "squared":
        residual = restricted.residual(B)
        oracles.append(GramOracle(problem.gram(rows), B, residual.descent, residual.loss, float(residual.totals[0])))
    return restricted, oracles


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_oracles_agree_with_the_problem(kind):
    case = make_case(60, n=30, d=20, **kind)
    problem, rng = case.problem(), np.random.default_rng(0)
    rows = np.array([2, 3, 7, 11, 15])
    start, B = (rng.standard_normal((len(problem.row_index(rows)), 3)) for _ in range(2))
    restricted, oracles = oracles_of(problem, rows, start)
    Z = restricted.predictor(B)
    for oracle in oracles:
        first = oracle.start(start)
        point = oracle.trial(first, B, B - start)
        assert point.loss == pytest.approx(restricted.loss_value(Z), rel=1e-10)
        np.testing.assert_allclose(oracle.complete(point), restricted.descent(Z), atol=1e-9)
        penalty = restricted.penalty_value(B)
        assert oracle.gap(point, penalty, restricted.lam) == pytest.approx(restricted.certify(B).gap, rel=1e-8)
        assert oracle.curvature(B) >= 0
        assert oracle.step_cost(3) > 0
        np.testing.assert_allclose(oracle.scales()[:5], 1 / restricted.norms, rtol=1e-9)


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_columns_are_the_columns_of_the_design(kind):
    case = make_case(61, n=25, d=15, **kind)
    design, w = case.problem().design, case.problem().targets.w
    rng = np.random.default_rng(0)
    chosen = np.array([1, 4, 9])
    columns = design.columns(chosen)
    B, T = np.zeros((15, 2)), rng.standard_normal((25, 2))
    B[chosen] = rng.standard_normal((3, 2))
    np.testing.assert_allclose(columns.predict(B[chosen]), design.matmul(B), atol=1e-12)
    np.testing.assert_allclose(columns.correlate(T), design.rmatmul(T)[chosen], atol=1e-12)
    np.testing.assert_allclose(columns.norms(w), design.column_norms(w)[chosen], rtol=1e-10)
    np.testing.assert_allclose(
        columns.dense(np.array([0, 2])).T @ B[[1, 9]], design.matmul(B * _mask(1, 9)), atol=1e-12
    )
    with_constant = columns.with_constant(0.5)
    assert with_constant.n_columns in (3, 4)
    np.testing.assert_allclose(
        with_constant.predict(np.vstack([B[chosen], [[1.0, 2.0]]])), design.matmul(B) + np.array([0.5, 1.0]), atol=1e-12
    )
    np.testing.assert_allclose(with_constant.correlate(T)[3], 0.5 * T.sum(axis=0), atol=1e-12)


def _mask(*rows):
    mask = np.zeros((15, 1))
    mask[list(rows)] = 1.0
    return mask


@pytest.mark.parametrize("order", ["C", "F"])
def test_the_gram_cache_grows_by_what_is_new(order):
    case = make_case(62, n=40, d=30, fit_intercept=True, weighted=True)
    settings = {"fit_intercept": True, "sample_weight": case.sample_weight}
    problem = build_problem(np.asarray(case.X, order=order), case.Y, case.lam, **settings)
    rng = np.random.default_rng(0)
    everything = problem.design.gram(np.arange(30), np.arange(30), problem.targets.w)
    before = problem.design.passes.total
    for size in (3, 10, 4, 25, 30):
        rows = rng.choice(30, size, replace=False)
        np.testing.assert_allclose(problem.gram(rows), everything[np.ix_(rows, rows)], atol=1e-10)
    spent = problem.design.passes.total
    problem.gram(problem.gram_cache.known[:7])
    assert problem.design.passes.total == spent > before
    restricted = problem.restrict(np.array([5, 9, 20]))
    np.testing.assert_allclose(restricted.gram(np.array([2, 0])), everything[np.ix_([20, 5], [20, 5])], atol=1e-10)
    assert problem.with_lam(2 * problem.lam).gram_cache is problem.gram_cache


# Methods ----------------------------------------------------------------------------------------------


def inner_problem(loss, seed=63, shape="oscar", q=3, n=60, d=25, fraction=0.1):
    case = make_case(seed, n=n, d=d, q=q, loss=loss, shape=shape, fraction=fraction)
    problem = case.problem()
    minimum = go.solve(**case.arguments(), solver="apgd", tol=1e-11 if n > d else 1e-9).primal
    start = problem.null_coefficients()
    _, oracles = oracles_of(problem, np.arange(d), start)
    return problem, oracles, start, minimum


@pytest.mark.parametrize("shape", ["oscar", "constant", "bh"])
@pytest.mark.parametrize("loss", ["squared", "multinomial"])
def test_every_method_reaches_the_same_minimum(loss, shape):
    problem, oracles, start, minimum = inner_problem(loss, shape=shape)
    tight = 1e-9 * problem.null_loss
    goal = Goal(tight, tight)
    for oracle in oracles:
        for method in (barzilai_borwein, accelerated):
            iterate = first_iterate(oracle, start, problem.lam)
            done = method(oracle, iterate, problem.lam, goal=goal, max_steps=20_000)
            assert done.gap <= tight
            assert -1e-9 * minimum <= done.objective - minimum <= 2 * tight
        done = minimise(oracle, start, problem.lam, goal=goal, max_steps=5000, rank=60)
        assert done.gap <= tight
        assert owl_value(unit_norms(done.point.B), problem.lam) == pytest.approx(done.penalty, rel=1e-12)


@pytest.mark.parametrize(("n", "d"), [(60, 25), (15, 60)])
@pytest.mark.parametrize("q", [1, 3])
@pytest.mark.parametrize("shape", ["oscar", "constant", "bh"])
def test_proximal_newton_alone_reaches_the_minimum(shape, q, n, d):
    problem, oracles, start, minimum = inner_problem("squared", shape=shape, q=q, n=n, d=d)
    tight = 1e-10 * problem.null_loss
    for oracle in oracles[1:]:
        iterate = first_iterate(oracle, start, problem.lam)
        done = ProximalNewton(oracle, problem.lam, tight).run(iterate, 1000)
        assert done.gap <= tight
        assert done.steps < (100 if n > d else 300)
        assert done.objective - minimum <= 2 * tight


@pytest.mark.parametrize("shape", ["oscar", "constant", "bh"])
@pytest.mark.parametrize("q", [1, 3])
def test_one_step_along_the_right_pattern(shape, q):
    """It ends at the minimum with one task; with more, the gap falls as Newton steps make it fall."""
    problem, oracles, start, minimum = inner_problem("squared", shape=shape, q=q)
    loose = 1e-5 * problem.null_loss
    for oracle in oracles[1:]:
        iterate = first_iterate(oracle, start, problem.lam)
        iterate = barzilai_borwein(oracle, iterate, problem.lam, goal=Goal(loose, loose), max_steps=5000)
        done = pattern_step(oracle, iterate, problem.lam)
        assert done.objective <= iterate.objective
        assert done.steps == iterate.steps + 1
        assert abs(done.gap) <= (1e-11 if q == 1 else 1e-3 * loose / problem.null_loss) * problem.null_loss
        assert done.objective - minimum <= 2e-3 * loose
        np.testing.assert_array_equal(unit_norms(done.point.B) > 0, unit_norms(iterate.point.B) > 0)
        labels = [cluster_labels(unit_norms(one.point.B)) for one in (iterate, done)]
        np.testing.assert_array_equal(*labels)


def test_a_step_along_the_pattern_that_does_not_help_is_not_taken():
    problem, oracles, start, _ = inner_problem("squared", n=15, d=60, q=1)
    oracle = oracles[2]
    assert pattern_step(oracle, first_iterate(oracle, start, problem.lam), problem.lam) is None  # no row is non-zero
    rng = np.random.default_rng(0)
    many = first_iterate(oracle, rng.standard_normal(start.shape), problem.lam)  # more rows than samples: singular
    assert pattern_step(oracle, many, problem.lam) is None


def test_clusters_that_would_turn_round_become_zero():
    problem, oracles, _, _ = inner_problem("squared", q=1, shape="constant", fraction=0.3)
    best = go.solve(problem.design.X, problem.targets.Y, problem.lam, tol=1e-11).B
    row, wrong = np.flatnonzero(best[:, 0] == 0)[0], best.copy()
    wrong[row] = -0.5 * np.abs(best).max() * np.sign(oracles[2].base.descent[row])  # against its pull
    done = pattern_step(oracles[2], first_iterate(oracles[2], wrong, problem.lam), problem.lam)
    assert done.point.B[row] == 0.0
    assert np.count_nonzero(done.point.B) == np.count_nonzero(best)


@pytest.mark.parametrize("method", ["newton", "quasi-newton"])
@pytest.mark.parametrize("shape", ["oscar", "constant"])
@pytest.mark.parametrize("q", [2, 3])
def test_methods_along_the_pattern_take_over_from_gradient_steps(method, shape, q):
    problem, oracles, start, minimum = inner_problem("multinomial", shape=shape, q=q)
    oracle = oracles[1]
    loose, tight = 1e-4 * problem.null_loss, 1e-10 * problem.null_loss
    iterate = first_iterate(oracle, start, problem.lam)
    iterate = barzilai_borwein(oracle, iterate, problem.lam, goal=Goal(loose, loose), max_steps=5000)
    before, steps = iterate.objective, iterate.steps
    run = pattern_newton if method == "newton" else polish
    done = run(oracle, iterate, problem.lam, goal=Goal(tight, tight), max_steps=5000)
    assert done.objective <= before
    assert done.steps > steps
    assert done.gap <= 1e-3 * loose
    assert done.objective - minimum <= 1e-3 * loose


def spy(monkeypatch, name):
    """Note the calls of a method that a minimisation may use."""
    calls, original = [], getattr(inner, name)

    def noted(*args, **kwargs):
        calls.append(name)
        return original(*args, **kwargs)

    monkeypatch.setattr(inner, name, noted)
    return calls


@pytest.mark.parametrize(
    ("method", "loss", "settings"),
    [
        ("pattern_step", "squared", {}),
        ("ProximalNewton", "squared", {}),
        ("pattern_newton", "multinomial", {"_NEWTON_PATIENCE": 0.0}),
        ("polish", "multinomial", {"_POLISH_AFTER": 0.0, "_NEWTON_PATIENCE": np.inf, "pattern_newton_cost": np.inf}),
        ("accelerated", "multinomial", {"_SLOW_STEPS": 0, "_FIRST_STEPS": 1, "_BLOCK_STEPS": 1}),
    ],
)
def test_every_method_gets_its_turn(monkeypatch, method, loss, settings):
    along = method == "pattern_step"  # on the Gram matrix of few rows; the others on columns, of many
    shape, fraction = ("oscar", 0.1) if along else ("constant", 0.02)
    problem, oracles, start, minimum = inner_problem(loss, shape=shape, fraction=fraction)
    for name, value in settings.items():
        replacement = (lambda *args: np.inf) if callable(getattr(inner, name)) else value
        monkeypatch.setattr(inner, name, replacement)
    calls = spy(monkeypatch, method)
    tight = 1e-10 * problem.null_loss
    done = minimise(oracles[2 if along else 1], start, problem.lam, goal=Goal(tight, tight), max_steps=5000, rank=60)
    assert calls
    assert done.gap <= tight
    assert done.objective - minimum <= 2 * tight


def test_goals_count_steps():
    goal = Goal(tight=1.0, loose=2.0, free_steps=10)
    assert goal.met(0.5, 1)
    assert not goal.met(1.5, 9)
    assert goal.met(1.5, 10)
    assert not goal.met(2.5, 100)


def proximal_system(prox, G, damping):
    """Matrix of a Newton step in radii of clusters and directions across, and the basis behind it."""
    directions = prox.V[prox.rows] / prox.V_norms[prox.rows, None]
    starts = cluster_starts(prox.B_norms[prox.rows])
    m, q = directions.shape
    cluster = np.searchsorted(starts, np.arange(m), side="right") - 1
    basis = np.zeros((m, q, len(starts) + m * (q - 1)))
    stiffness = np.empty(basis.shape[2])
    for j, across in enumerate(tangents(directions)):
        basis[j, :, cluster[j]] = directions[j]
        columns = len(starts) + np.arange(j * (q - 1), (j + 1) * (q - 1))
        basis[j][:, columns] = across.T
        stiffness[columns] = damping * prox.V_norms[prox.rows[j]] / prox.B_norms[prox.rows[j]]
    stiffness[: len(starts)] = damping * np.bincount(cluster)
    flat = basis.reshape(m * q, -1)
    K = flat.T @ np.kron(G[np.ix_(prox.rows, prox.rows)], np.eye(q)) @ flat + np.diag(stiffness)
    return K, flat


@pytest.mark.parametrize(("n", "d"), [(60, 25), (15, 60)])
@pytest.mark.parametrize("q", [1, 2, 4])
@pytest.mark.parametrize("shape", ["oscar", "constant"])
def test_newton_directions_solve_the_whole_system(shape, q, n, d):
    """One matrix per non-zero row gives what the system with all coefficients gives."""
    problem, oracles, _, _ = inner_problem("squared", shape=shape, q=q, n=n, d=d)
    rng, damping = np.random.default_rng(0), 2.0
    prox = _prox(rng.standard_normal((d, q)) * problem.lam[0], damping, problem.lam)
    prox = _prox(prox.V / np.maximum(1.0, prox.V_norms[:, None]), damping, 0.1 * problem.lam / problem.lam[0])
    image = rng.standard_normal((len(prox.rows), q))
    K, basis = proximal_system(prox, problem.gram(np.arange(d)), damping)
    expected = (basis @ np.linalg.solve(K, -basis.T @ image.ravel())).reshape(-1, q)
    for oracle in oracles[1:]:
        found = newton_direction(oracle, prox, image, damping)
        np.testing.assert_allclose(found, expected, atol=1e-9 * np.abs(expected).max())


def test_a_guess_is_taken_where_it_is_better():
    problem, oracles, start, _ = inner_problem("squared")
    good = go.solve(**make_case(63, n=60, d=25, shape="oscar", fraction=0.1).arguments()).B
    for oracle in oracles:
        assert first_iterate(oracle, start, problem.lam, guess=good).point.B is good
        assert first_iterate(oracle, start, problem.lam, guess=good + 100.0).point.B is start


# Derivatives ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("q", [1, 2, 5])
def test_tangents_are_orthonormal_complements(q):
    V = np.random.default_rng(0).standard_normal((7, q))
    V /= np.linalg.norm(V, axis=1, keepdims=True)
    T = tangents(V)
    assert T.shape == (7, q - 1, q)
    np.testing.assert_allclose(
        np.einsum("jtk,jsk->jts", T, T), np.broadcast_to(np.eye(q - 1), (7, q - 1, q - 1)), atol=1e-14
    )
    np.testing.assert_allclose(np.einsum("jtk,jk->jt", T, V), 0.0, atol=1e-14)


@pytest.mark.parametrize("loss", [SquaredLoss(), MultinomialLoss()], ids=lambda loss: loss.name)
def test_the_hessian_is_the_derivative_of_the_dual_point(loss):
    rng = np.random.default_rng(0)
    Z, w = rng.standard_normal((6, 3)), rng.uniform(0.5, 2.0, (6, 1))
    Y = np.eye(3)[rng.integers(0, 3, 6)]
    H = loss.hessian(loss.dual_point(Z, Y, w), Y, w)
    step = 1e-6
    for k in range(3):
        move = step * np.eye(3)[k]
        change = loss.dual_point(Z - move, Y, w) - loss.dual_point(Z + move, Y, w)
        np.testing.assert_allclose(H[:, k], change / (2 * step), atol=1e-8)


def patterned(rng, q):
    """Coefficients with a cluster of three, a cluster of two, single rows and a zero row."""
    B = rng.standard_normal((8, q))
    B /= np.linalg.norm(B, axis=1, keepdims=True)
    return B * np.array([3.0, 3.0, 3.0, 2.5, 2.0, 2.0, 1.0, 0.0])[:, None]


@pytest.mark.parametrize("q", [2, 3])
def test_the_hessian_in_a_frame_is_that_of_the_loss(q):
    """Along any move that keeps the pattern to first order."""
    case = make_case(64, n=40, d=8, q=q, loss="multinomial", fit_intercept=True)
    problem, rng = case.problem(), np.random.default_rng(1)
    _, oracles = oracles_of(problem, np.arange(8), problem.null_coefficients())
    oracle = oracles[1]
    B = np.vstack([patterned(rng, q), rng.standard_normal((1, q))])
    frame = _Frame(B, problem.lam)
    assert list(frame.sizes) == [3, 1, 2, 1]
    point = oracle.start(B)
    K = _hessian(oracle, point.samples, frame)
    assert len(K) == frame.size(q) == 4 + 7 * (q - 1) + q
    np.testing.assert_allclose(K, K.T, atol=1e-9)
    x, step = rng.standard_normal(len(K)), 1e-5
    straight = np.zeros_like(B)
    straight[frame.order] = np.repeat(x[:4], frame.sizes)[:, None] * frame.directions
    straight[frame.order] += np.einsum("jt,jtk->jk", x[4 : 4 + 7 * (q - 1)].reshape(7, q - 1), frame.tangents)
    straight[8] = x[4 + 7 * (q - 1) :]
    np.testing.assert_allclose(frame.project(straight[frame.rows])[4:], x[4:], atol=1e-12)
    change = oracle.start(B - step * straight).descent - oracle.start(B + step * straight).descent
    assert x @ K @ x == pytest.approx(np.sum(change * straight) / (2 * step), rel=1e-5)


@pytest.mark.parametrize("q", [1, 3])
def test_the_gradient_in_pattern_coordinates(q):
    rng = np.random.default_rng(2)
    B = np.vstack([patterned(rng, q), rng.standard_normal((1, q))])
    lam = np.linspace(2.0, 1.0, 8)
    pattern = _Pattern(B, lam, rng.uniform(0.5, 2.0, 9))
    target = rng.standard_normal(B.shape)

    def value(x):
        rows, _, norms = pattern.coefficients(x)
        return 0.5 * np.sum((pattern.spread(rows) - target) ** 2) + pattern.penalty(x, norms)

    rows, directions, norms = pattern.coefficients(pattern.start)
    np.testing.assert_allclose(pattern.spread(rows), B, atol=1e-12)
    assert pattern.penalty(pattern.start, norms) == pytest.approx(owl_value(unit_norms(B[:8]), lam))
    gradient = pattern.gradient(pattern.start, target - B, directions, norms)
    for i in range(len(gradient)):
        move = np.zeros_like(gradient)
        move[i] = 1e-6
        slope = (value(pattern.start + move) - value(pattern.start - move)) / 2e-6
        assert gradient[i] == pytest.approx(slope, abs=1e-6)


@pytest.mark.parametrize("loss", [SquaredLoss(), MultinomialLoss()], ids=lambda loss: loss.name)
def test_value_and_dual_point_at_once(loss):
    rng = np.random.default_rng(0)
    Z, w = 5 * rng.standard_normal((9, 4)), rng.uniform(0.5, 2.0, (9, 1))
    Y = np.eye(4)[rng.integers(0, 4, 9)]
    value, theta = loss.value_and_dual_point(np.asfortranarray(Z), np.asfortranarray(Y), w)
    assert value == pytest.approx(loss.value(Z, Y, w), rel=1e-13)
    np.testing.assert_allclose(theta, loss.dual_point(Z, Y, w), atol=1e-14)
