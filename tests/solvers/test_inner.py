"""Inner solvers: oracles agree with the problem, directions with differences, methods with each other."""

import itertools

import numpy as np
import pytest

import groupowl as go
import groupowl.solvers.inner as inner
from groupowl.designs import DenseColumns
from groupowl.designs.sparse import SparseColumns
from groupowl.losses import MultinomialLoss, SquaredLoss
from groupowl.norm import GroupOWL
from groupowl.norm.kernels import cluster_labels, cluster_starts, owl_value, row_norms
from groupowl.problem import build_problem
from groupowl.solvers.inner import Minimization, minimize
from groupowl.solvers.inner import oracles as oracle_module
from groupowl.solvers.inner.curvature import CurvatureNewton, eliminated
from groupowl.solvers.inner.newton import ProximalNewton, newton_cost, newton_direction, pattern_of, pattern_step
from groupowl.solvers.inner.oracles import ColumnsOracle, FactoredGramOracle, Goal, GramOracle, ProblemOracle
from support import make_case

KINDS = [
    {"loss": loss, "fit_intercept": intercept, "weighted": weighted, "sparse": sparse}
    for loss, intercept, weighted, sparse in itertools.product(["squared", "multinomial"], *[[False, True]] * 3)
]


def oracles_of(problem, rows, B):
    """Every oracle that can do this problem, and what all of them must agree with."""
    restricted = problem.restrict(rows)
    penalty, (Y, w), columns = restricted.penalty, problem.samples.handles, problem.columns(rows)
    if problem.loss.is_quadratic:
        residual = restricted.residual(B)
        factored = FactoredGramOracle(columns, penalty, B, Y, w)
        gram = GramOracle(problem.gram(rows), penalty, B, residual.descent, residual.loss)
        return restricted, [ProblemOracle(restricted, B), factored, gram]
    return restricted, [ProblemOracle(restricted, B), ColumnsOracle(columns, penalty, B, problem)]


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_oracles_agree_with_the_problem(kind):
    case = make_case(60, n=30, d=20, **kind)
    problem, rng = case.problem(), np.random.default_rng(0)
    rows = np.array([2, 3, 7, 11, 15])
    start, B = (rng.standard_normal((len(problem.row_index(rows)), 3)) for _ in range(2))
    restricted, oracles = oracles_of(problem, rows, start)
    Z = restricted.predictor(B)
    for oracle in oracles:
        point = oracle.moved(oracle.base, B)
        assert point.loss == pytest.approx(restricted.loss_value(Z), rel=1e-10)
        assert point.norm == restricted.penalty_value(B)
        np.testing.assert_allclose(point.descent, restricted.descent(Z), atol=1e-9)
        assert oracle.gap(point) == pytest.approx(restricted.certify(B).gap, rel=1e-8)
        assert oracle.curvature(point, B) >= 0
        assert oracle.step_cost > 0


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("loss", ["logistic", "poisson", "huber"])
def test_few_targets_that_were_observed_are_taken_out_of_the_others(loss, fit_intercept):
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((60, 8)), rng.integers(0, 2, (60, 4)).astype(float)
    Y[rng.random(Y.shape) < 0.7] = np.nan
    Y[:2] = [[0.0], [1.0]]
    problem = build_problem(X, Y, go.weights.oscar(8), loss=loss, fit_intercept=fit_intercept)
    rows = np.array([1, 4, 6])
    start, B = (0.3 * rng.standard_normal((len(problem.row_index(rows)), 4)) for _ in range(2))
    restricted, (_, oracle) = oracles_of(problem, rows, start)
    assert len(oracle.entries) == np.count_nonzero(~np.isnan(Y)) < 0.5 * Y.size
    point = oracle.moved(oracle.base, B)
    whole, found = restricted.certify(B), oracle.gap(point)
    oracle.entries = None  # all of them, most of weight zero
    same = oracle.moved(oracle.base, B)
    np.testing.assert_allclose(point.descent, same.descent, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(point.samples[0], same.samples[0], rtol=1e-14)
    assert point.loss == pytest.approx(same.loss, rel=1e-13)
    assert found == pytest.approx(oracle.gap(same), rel=1e-11)
    assert found == pytest.approx(whole.gap, rel=1e-6)


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_columns_are_the_columns_of_the_design(kind):
    case = make_case(61, n=25, d=15, **kind)
    design, w = case.problem().design, case.problem().samples.w
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
    assert with_constant.n_columns == 4
    np.testing.assert_allclose(
        with_constant.predict(np.vstack([B[chosen], [[1.0, 2.0]]])), design.matmul(B) + np.array([0.5, 1.0]), atol=1e-12
    )
    np.testing.assert_allclose(with_constant.correlate(T)[3], 0.5 * T.sum(axis=0), atol=1e-12)


def _mask(*rows):
    mask = np.zeros((15, 1))
    mask[list(rows)] = 1.0
    return mask


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_some_columns_at_some_samples(kind):
    """Products with them are those with the entries themselves, intercept and weights included."""
    case = make_case(62, n=30, d=12, density=0.05, **kind)
    problem, rows = case.problem(), np.array([1, 4, 5, 9])
    columns = problem.columns(rows)
    assert isinstance(columns, SparseColumns if kind["sparse"] else DenseColumns)
    entries = columns.predict(np.eye(columns.n_columns))
    samples, chosen = np.array([0, 3, 4, 11, 20, 29]), np.array([0, 2, columns.n_columns - 1])
    w = np.random.default_rng(0).uniform(0.5, 2.0, (30, 1))
    np.testing.assert_allclose(columns.gram(w), entries.T @ (w * entries), atol=1e-10)
    part, block = columns.sampled(samples).chosen(chosen), entries[np.ix_(samples, chosen)]
    np.testing.assert_allclose(part.predict(np.eye(3)), block, atol=1e-12)
    np.testing.assert_allclose(part.gram(w[samples]), block.T @ (w[samples] * block), atol=1e-10)
    others = columns.sampled(samples).chosen(np.array([1, 2]))  # never the last: without the constant, if there is one
    np.testing.assert_allclose(others.predict(np.eye(2)), entries[np.ix_(samples, [1, 2])], atol=1e-12)


@pytest.mark.parametrize("order", ["C", "F"])
def test_the_gram_cache_grows_by_what_is_new(order):
    case = make_case(62, n=40, d=30, fit_intercept=True, weighted=True)
    settings = {"fit_intercept": True, "sample_weight": case.sample_weight}
    problem = build_problem(np.asarray(case.X, order=order), case.Y, case.lam, **settings)
    rng = np.random.default_rng(0)
    everything = problem.design.gram(np.arange(30), np.arange(30), problem.samples.w)
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


def point_at(oracle, B):
    """The point at some coefficients, with its gap."""
    point = oracle.moved(oracle.base, B)
    point.gap = oracle.gap(point)
    return point


def step_along_pattern(oracle, point):
    """A Newton step for the rows and clusters of the point itself."""
    return pattern_step(oracle, point, pattern_of(point.B))


def after_gradient_steps(oracle, tight, max_steps=20_000):
    """Where gradient steps alone end, and how many they are."""
    solve = Minimization(oracle, Goal(tight, tight), max_steps)
    solve.next_steps = max_steps
    solve.gradient_steps()
    return solve.point, solve.steps


@pytest.mark.parametrize("shape", ["oscar", "constant", "bh"])
@pytest.mark.parametrize("loss", ["squared", "multinomial"])
def test_every_method_reaches_the_same_minimum(loss, shape):
    problem, oracles, _, minimum = inner_problem(loss, shape=shape)
    tight = 1e-9 * problem.null_loss
    for oracle in oracles:
        solve = minimize(oracle, Goal(tight, tight), 5000)
        for done in (after_gradient_steps(oracle, tight)[0], solve.point):
            assert done.gap <= tight
            assert -1e-9 * minimum <= done.objective - minimum <= 2 * tight
            assert owl_value(row_norms(done.B), problem.lam) == pytest.approx(done.norm, rel=1e-12)


@pytest.mark.parametrize("loss", ["squared", "multinomial"])
def test_units_of_several_rows(monkeypatch, loss):
    """The penalty says what its units are: here pairs of rows, zero together, at a fixed point of the prox."""
    monkeypatch.setattr(inner, "_FIRST_STEPS", 5)
    monkeypatch.setattr(inner, "_PATIENCE", 0.0)
    models = spy(monkeypatch, "CurvatureNewton")
    problem, oracles, start, _ = inner_problem(loss, d=24, fraction=0.3)
    penalty = GroupOWL(1.5 * problem.lam[::2], units=np.repeat(np.arange(12), 2))
    if loss == "squared":
        oracle = GramOracle(oracles[2].G, penalty, start, oracles[2].base.descent, oracles[2].base.loss)
    else:
        oracle = ColumnsOracle(problem.columns(np.arange(24)), penalty, start, problem)
    tight = 1e-9 * problem.null_loss
    done = minimize(oracle, Goal(tight, tight), 5000).point
    assert done.gap <= tight
    assert bool(models) == (loss == "multinomial")
    zero = np.all(done.B == 0.0, axis=1)
    np.testing.assert_array_equal(zero[::2], zero[1::2])
    assert 0 < zero.sum() < 24
    np.testing.assert_allclose(penalty.prox(done.B + done.descent), done.B, atol=1e-3 * np.abs(done.B).max())


@pytest.mark.parametrize(("n", "d"), [(60, 25), (15, 60)])
@pytest.mark.parametrize("q", [1, 3])
@pytest.mark.parametrize("shape", ["oscar", "constant", "bh"])
def test_proximal_newton_alone_reaches_the_minimum(shape, q, n, d):
    problem, oracles, start, minimum = inner_problem("squared", shape=shape, q=q, n=n, d=d)
    tight = 1e-10 * problem.null_loss
    for oracle in oracles[1:]:
        done, steps = ProximalNewton(oracle, tight).run(point_at(oracle, start), 1000)
        assert done.gap <= tight
        assert steps < (100 if n > d else 300)
        assert done.objective - minimum <= 2 * tight


@pytest.mark.parametrize("shape", ["oscar", "constant", "bh"])
@pytest.mark.parametrize("q", [1, 3])
def test_one_step_along_the_right_pattern(shape, q):
    """It ends at the minimum with one task; with more, the gap falls as Newton steps make it fall."""
    problem, oracles, _, minimum = inner_problem("squared", shape=shape, q=q)
    loose = 1e-5 * problem.null_loss
    for oracle in oracles[1:]:
        point, _ = after_gradient_steps(oracle, loose)
        done = step_along_pattern(oracle, point)
        assert done.objective <= point.objective
        assert abs(done.gap) <= (1e-11 if q == 1 else 1e-3 * loose / problem.null_loss) * problem.null_loss
        assert done.objective - minimum <= 2e-3 * loose
        np.testing.assert_array_equal(row_norms(done.B) > 0, row_norms(point.B) > 0)
        labels = [cluster_labels(row_norms(one.B)) for one in (point, done)]
        np.testing.assert_array_equal(*labels)


@pytest.mark.parametrize("shape", ["oscar", "constant", "linear"])
def test_steps_along_the_pattern_converge_like_newton_steps(shape):
    """The error falls with its square: a handful of steps from far to rounding, clusters included."""
    problem, oracles, _, _ = inner_problem("squared", shape=shape, q=3)
    point, _ = after_gradient_steps(oracles[2], 1e-5 * problem.null_loss)
    gaps = [point.gap / problem.null_loss]
    while gaps[-1] > 1e-13 and (point := step_along_pattern(oracles[2], point)) is not None:
        gaps.append(point.gap / problem.null_loss)
    assert gaps[0] > 1e-9
    assert gaps[-1] <= 1e-10
    assert len(gaps) <= 3


@pytest.mark.parametrize(("q", "shape"), [(1, "constant"), (3, "oscar")])
def test_a_step_along_the_pattern_that_does_not_help_is_not_taken(q, shape):
    _, oracles, start, _ = inner_problem("squared", n=15, d=60, q=q, shape=shape)
    oracle = oracles[2]
    assert newton_cost(pattern_of(start)) == np.inf  # no row is non-zero
    rng = np.random.default_rng(0)
    many = point_at(oracle, rng.standard_normal(start.shape))  # more rows than samples: singular
    assert step_along_pattern(oracle, many) is None


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("shape", ["oscar", "linear", "bh"])
def test_clusters_that_would_pass_each_other_become_one(shape, seed):
    """Where merging them ends, no cluster can gain by another radius: its pull is the sum of its weights."""
    problem, oracles, _, _ = inner_problem("squared", q=1, shape=shape)
    rng = np.random.default_rng(seed)
    signs = np.sign(oracles[2].base.descent)
    best = go.solve(problem.design.X, problem.samples.Y, problem.lam, tol=1e-11).B
    near = np.where(best != 0, best * rng.uniform(0.8, 1.2, best.shape), 0.01 * signs * rng.random(best.shape))
    for oracle in oracles[1:]:
        point = point_at(oracle, near)
        done = step_along_pattern(oracle, point)
        labels = cluster_labels(np.abs(done.B[:, 0]))
        assert done.objective < point.objective
        assert 0 < labels.max() < np.count_nonzero(done.B) < np.count_nonzero(near)
        pulls = np.sign(done.B[:, 0]) * done.descent[:, 0]
        sizes = np.bincount(labels)[1:]
        weights = np.add.reduceat(problem.lam[: sizes.sum()], np.cumsum(sizes) - sizes)
        np.testing.assert_allclose(np.bincount(labels, pulls)[1:], weights, rtol=1e-8)


def test_clusters_that_would_turn_round_become_zero():
    problem, oracles, _, _ = inner_problem("squared", q=1, shape="constant", fraction=0.3)
    best = go.solve(problem.design.X, problem.samples.Y, problem.lam, tol=1e-11).B
    row, wrong = np.flatnonzero(best[:, 0] == 0)[0], best.copy()
    wrong[row] = -0.5 * np.abs(best).max() * np.sign(oracles[2].base.descent[row])  # against its pull
    done = step_along_pattern(oracles[2], point_at(oracles[2], wrong))
    assert done.B[row] == 0.0
    assert np.count_nonzero(done.B) == np.count_nonzero(best)


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("shape", ["oscar", "constant"])
def test_models_of_the_curvature_reach_the_minimum(monkeypatch, shape, sparse, fit_intercept):
    """From far away, with some of the samples; steps along which the objective falls."""
    monkeypatch.setattr(oracle_module, "_LEAST_SAMPLES", 60)
    monkeypatch.setattr(oracle_module, "_SAMPLES_PER_COLUMN", 1)
    density = 0.08 if sparse else 0.5
    case = make_case(65, n=80, d=25, q=3, loss="multinomial", shape=shape, fraction=0.1, sparse=sparse, density=density,
                     fit_intercept=fit_intercept, weighted=True)  # fmt: skip
    problem = case.problem()
    minimum = go.solve(**case.arguments(), solver="apgd", tol=1e-9).primal
    oracle = oracles_of(problem, np.arange(25), problem.null_coefficients())[1][1]
    tight = 1e-9 * problem.null_loss
    point, before = after_gradient_steps(oracle, tight, max_steps=5)
    done, steps = CurvatureNewton(oracle, Goal(tight, tight), minimize).run(point, before, 205)
    assert len(oracle.samples) < 80
    assert done.gap <= tight
    assert before + steps < 100
    assert done.objective - minimum <= 2 * tight
    assert owl_value(row_norms(done.B[:25]), problem.lam) == pytest.approx(done.norm, rel=1e-12)


def curvature_method(n=60, fraction=0.1):
    """A method for models of the curvature, and where it starts."""
    problem, oracles, _, _ = inner_problem("multinomial", n=n, fraction=fraction)
    tight = 1e-9 * problem.null_loss
    point, _ = after_gradient_steps(oracles[1], tight, max_steps=5)
    return CurvatureNewton(oracles[1], Goal(tight, tight), minimize), point


def test_samples_of_the_curvature_stand_for_all_of_them(monkeypatch):
    """On average over draws, and no column is flat because its samples were not drawn."""
    method, point = curvature_method(n=200)
    rows = np.arange(25)
    everything = method._metric(point, rows)
    monkeypatch.setattr(oracle_module, "_LEAST_SAMPLES", 40)
    monkeypatch.setattr(oracle_module, "_SAMPLES_PER_COLUMN", 1)
    make, total, draws = np.random.default_rng, np.zeros_like(everything), 200
    for seed in range(draws):
        monkeypatch.setattr(np.random, "default_rng", lambda _, seed=seed: make(seed))
        method.oracle.drawn_for = 0
        sampled = method._metric(point, rows)
        assert 20 < len(method.oracle.samples) < 60
        assert np.all(np.diagonal(sampled) >= 0.49 * np.diagonal(everything))
        total += sampled / draws
    off = ~np.eye(25, dtype=bool)
    scale = np.sqrt(np.outer(np.diagonal(everything), np.diagonal(everything)))
    assert np.abs((total - everything) / scale)[off].max() < 0.08
    assert np.abs(np.diagonal(total) / np.diagonal(everything) - 1.0).max() < 0.15


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("unpenalized", [(), (2, 7)])
def test_the_curvature_of_a_problem_is_that_of_its_columns(fit_intercept, unpenalized):
    """Where samples are elsewhere, as where they are here; any rows, the unpenalized ones among them."""
    case = make_case(66, n=70, d=12, q=3, loss="multinomial", weighted=True)
    problem = build_problem(
        case.X, case.Y, case.lam, loss="multinomial", fit_intercept=fit_intercept, sample_weight=case.sample_weight,
        standardized=True, unpenalized=np.array(unpenalized, dtype=np.intp) if unpenalized else None,
    )  # fmt: skip
    rng = np.random.default_rng(0)
    B = 0.1 * rng.standard_normal((12 + problem.unpenalized.n_rows, 3))
    far, local = oracles_of(problem, np.arange(12), B)[1]
    for rows in (np.arange(len(B)), np.r_[1, 4, np.arange(12, len(B))], np.array([0, 3])):
        expected = local.metric(local.base, rows)
        np.testing.assert_allclose(far.metric(far.base, rows), expected, rtol=1e-10, atol=1e-12)


def test_models_keep_to_their_work():
    method, point = curvature_method()
    assert method.run(point, 5, 55, work=0.0) == (point, 0)
    assert method.run(point, 5, 8)[1] == 3


def test_models_of_rare_columns():
    """Columns whose few entries were not drawn: steps must still be right, and few."""
    rng = np.random.default_rng(1)
    n, q = 6000, 3
    chances = np.r_[np.full(20, 0.05), np.full(60, 3 / n)]
    X = np.where(rng.random((n, 80)) < chances, rng.uniform(0.5, 2.0, (n, 80)), 0.0)
    Y = np.eye(q)[np.argmax(X @ rng.standard_normal((80, q)) * 2 + 0.3 * rng.gumbel(size=(n, q)), axis=1)]
    lam = 1e-3 * go.lam_max(X, Y, np.ones(80), loss="multinomial") * np.ones(80)
    problem = build_problem(X, Y, lam, loss="multinomial")
    oracle = oracles_of(problem, np.arange(80), problem.null_coefficients())[1][1]
    tight = 1e-6 * problem.null_loss
    done = minimize(oracle, Goal(tight, tight), 3000)
    assert done.point.gap <= tight
    assert done.work < 3000 * oracle.step_cost


def test_a_step_by_a_model_never_goes_uphill():
    method, point = curvature_method()
    for _ in range(10):
        before = point.objective
        rows, penalty = method._rows(point)
        point, _ = method._step(point, rows, penalty, method._metric(point, rows), 1e-3)  # promises far too much
        assert point.objective < before


@pytest.mark.parametrize("n_free", [0, 1, 3])
def test_models_eliminate_what_is_not_penalized(n_free):
    """Value and minimizer are those of the quadratic in all rows."""
    rng = np.random.default_rng(0)
    A, sigma, k = rng.standard_normal((30, 9)), 1.7, 9 - n_free
    M, descent = A.T @ A, rng.standard_normal((9, 2))
    reduced, direction, others_move, response = eliminated(M, descent, k)
    change = rng.standard_normal((k, 2))
    whole = np.vstack([change, others_move / sigma - response @ change])
    alone = np.vstack([0.0 * change, others_move / sigma])
    value, gain = (0.5 * sigma * np.vdot(move, M @ move) - np.vdot(descent, move) for move in (whole, alone))
    slope = sigma * M @ whole - descent
    np.testing.assert_allclose(slope[k:], 0.0, atol=1e-10)
    loss = 0.5 * np.vdot(direction, np.linalg.solve(reduced, direction)) / sigma
    oracle = GramOracle(sigma * reduced, GroupOWL(np.full(k, 1e-9)), np.zeros((k, 2)), direction, loss)
    moved = oracle.moved(oracle.base, change)
    np.testing.assert_allclose(moved.descent, -slope[:k], atol=1e-10)
    assert moved.loss - loss == pytest.approx(value - gain)
    best = point_at(oracle, np.linalg.solve(sigma * reduced, direction))
    assert best.loss == pytest.approx(0.0, abs=1e-10)  # a squared loss
    assert abs(best.gap) < 1e-6


def spy(monkeypatch, name):
    """Note the calls of a method that a minimization may use."""
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
        ("CurvatureNewton", "multinomial", {"_PATIENCE": 0.0, "_FIRST_STEPS": 5}),
    ],
)
def test_every_method_gets_its_turn(monkeypatch, method, loss, settings):
    along = method == "pattern_step"  # on the Gram matrix of few rows; the others on columns, of many
    shape, fraction = ("oscar", 0.1) if along else ("constant", 0.02)
    problem, oracles, _, minimum = inner_problem(loss, shape=shape, fraction=fraction)
    for name, value in settings.items():
        monkeypatch.setattr(inner, name, value)
    calls = spy(monkeypatch, method)
    tight = 1e-10 * problem.null_loss
    done = minimize(oracles[2 if along else 1], Goal(tight, tight), 5000).point
    assert calls
    assert done.gap <= tight
    assert done.objective - minimum <= 2 * tight


def test_goals_count_steps():
    goal = Goal(tight=1.0, loose=2.0, free_steps=10)
    assert goal.met(0.5, 1)
    assert not goal.met(1.5, 9)
    assert goal.met(1.5, 10)
    assert not goal.met(2.5, 100)


def proximal_system(B, V, G, damping):
    """Matrix of a Newton step in radii of clusters and directions across, and the basis behind it."""
    norms = row_norms(B)
    rows = np.argsort(-norms, kind="stable")[: np.count_nonzero(norms)]
    directions = V[rows] / row_norms(V[rows])[:, None]
    starts = cluster_starts(norms[rows])
    m, q = directions.shape
    cluster = np.searchsorted(starts, np.arange(m), side="right") - 1
    basis = np.zeros((m, q, len(starts) + m * (q - 1)))
    stiffness = np.empty(basis.shape[2])
    for j, direction in enumerate(directions):
        across = np.linalg.svd(direction[None])[2][1:]  # an orthonormal basis of what is orthogonal to it
        basis[j, :, cluster[j]] = directions[j]
        columns = len(starts) + np.arange(j * (q - 1), (j + 1) * (q - 1))
        basis[j][:, columns] = across.T
        stiffness[columns] = damping * np.linalg.norm(V[rows[j]]) / norms[rows[j]]
    stiffness[: len(starts)] = damping * np.bincount(cluster)
    flat = basis.reshape(m * q, -1)
    K = flat.T @ np.kron(G[np.ix_(rows, rows)], np.eye(q)) @ flat + np.diag(stiffness)
    return K, flat, rows


@pytest.mark.parametrize(("n", "d"), [(60, 25), (15, 60)])
@pytest.mark.parametrize("q", [1, 2, 4])
@pytest.mark.parametrize("shape", ["oscar", "constant"])
def test_newton_directions_solve_the_whole_system(shape, q, n, d):
    """One matrix per non-zero row gives what the system with all coefficients gives."""
    problem, oracles, _, _ = inner_problem("squared", shape=shape, q=q, n=n, d=d)
    rng, damping = np.random.default_rng(0), 2.0
    V = rng.standard_normal((d, q)) * problem.lam[0]
    V /= np.maximum(1.0, row_norms(V)[:, None])
    B = GroupOWL(0.1 * problem.lam / problem.lam[0]).prox(V, 1.0 / damping)
    image = rng.standard_normal((d, q))
    K, basis, rows = proximal_system(B, V, problem.gram(np.arange(d)), damping)
    expected = np.zeros((d, q))
    expected[rows] = (basis @ np.linalg.solve(K, -basis.T @ image[rows].ravel())).reshape(-1, q)
    for oracle in oracles[1:]:
        found = newton_direction(oracle, B, V, image, damping)
        np.testing.assert_allclose(found, expected, atol=1e-9 * np.abs(expected).max())


def test_a_guess_is_taken_where_it_is_better():
    _, oracles, start, _ = inner_problem("squared")
    good = go.solve(**make_case(63, n=60, d=25, shape="oscar", fraction=0.1).arguments()).B
    for oracle in oracles:
        assert Minimization(oracle, Goal(0.0, 0.0), 1, guess=good).point.B is good
        assert Minimization(oracle, Goal(0.0, 0.0), 1, guess=good + 100.0).point.B is start


# Derivatives ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", [SquaredLoss(), MultinomialLoss()], ids=lambda loss: loss.name)
def test_curvatures_are_mean_derivatives_of_the_dual_point(loss):
    rng = np.random.default_rng(0)
    Z, w = rng.standard_normal((6, 3)), rng.uniform(0.5, 2.0, (6, 1))
    Y = np.eye(3)[rng.integers(0, 3, 6)]
    step, mean = 1e-6, np.zeros((6, 1))
    for k in range(3):
        move = step * np.eye(3)[k]
        change = loss.dual_point(Z - move, Y, w) - loss.dual_point(Z + move, Y, w)
        mean[:, 0] += change[:, k] / (2 * step) / 3
    np.testing.assert_allclose(loss.curvatures(loss.dual_point(Z, Y, w), Y, w), mean, atol=1e-8)


@pytest.mark.parametrize("loss", [SquaredLoss(), MultinomialLoss()], ids=lambda loss: loss.name)
def test_value_and_dual_point_at_once(loss):
    rng = np.random.default_rng(0)
    Z, w = 5 * rng.standard_normal((9, 4)), rng.uniform(0.5, 2.0, (9, 1))
    Y = np.eye(4)[rng.integers(0, 4, 9)]
    value, theta = loss.value_and_dual_point(np.asfortranarray(Z), np.asfortranarray(Y), w)
    assert value == pytest.approx(loss.value(Z, Y, w), rel=1e-13)
    np.testing.assert_allclose(theta, loss.dual_point(Z, Y, w), atol=1e-14)
