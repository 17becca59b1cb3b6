"""Groups of columns with equal weights in the compiled kernel: block coordinate descent, and what solves leave out.

Also products with sparse columns of working sets, which are never made.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

import groupowl as go
from groupowl import kernel
from groupowl.norm.penalty import GroupOWL
from groupowl.problem import build_problem
from groupowl.solvers import continuation

pytestmark = pytest.mark.skipif(not kernel.is_available(), reason=str(kernel.kernel_info()))

TOL = 1e-6


def make_groups(sizes, *, n=70, q=1, seed=0, correlation=0.6):
    """Neighboring columns alike, three groups that matter, and where groups begin."""
    rng, d = np.random.default_rng(seed), sum(sizes)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    X = rng.standard_normal((n, d))
    for j in range(1, d):
        X[:, j] = correlation * X[:, j - 1] + np.sqrt(1.0 - correlation**2) * X[:, j]
    B = np.zeros((d, q))
    for unit in rng.choice(len(sizes), 3, replace=False):
        B[starts[unit] : starts[unit + 1]] = rng.standard_normal((sizes[unit], q))
    return X, X @ B + rng.standard_normal((n, q)), starts


def grouped(X, Y, starts, weights, fraction, **options):
    """The problem of groups with these weights, times a fraction of those that select nothing."""
    problem = build_problem(X, Y, np.ones(X.shape[1]), **options)
    units = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    problem = replace(problem, penalty=GroupOWL(weights, units))
    return problem.with_lam(fraction * problem.lam_max(weights) * weights)


def gap_of(problem, proposal):
    """The certified gap relative to the goal."""
    assert proposal.status[0] == kernel.CONVERGED
    return problem.certify(proposal.stack()[0]).gap / problem.goal(TOL)


def asked(problem, X, Y, starts, **options):
    data = kernel.KernelData(X, Y, unit_starts=starts)
    return kernel.solve(data, problem.lam, 0.9 * problem.goal(TOL), **options)


SIZES = {"five": [5] * 30, "mixed": [1] * 20 + [40] + [2, 7] * 6 + [1], "wide": [40] * 4, "too large": [3] * 10 + [150]}


@pytest.mark.parametrize("order", ["C", "F", "float32", "sparse"])
@pytest.mark.parametrize("q", [1, 3])
@pytest.mark.parametrize("fraction", [0.5, 0.05])
@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)
def test_reaches_the_goal(sizes, fraction, q, order):
    X, Y, starts = make_groups(sizes, q=q)
    X = X.astype(np.float32) if order == "float32" else X
    given = np.asfortranarray(X) if order == "F" else sp.csc_matrix(X) if order == "sparse" else X
    problem = grouped(X.astype(np.float64), Y, starts, np.ones(len(sizes)), fraction)
    assert gap_of(problem, asked(problem, given, Y, starts)) <= 1.0


@pytest.mark.parametrize("q", [1, 3])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_agrees_with_the_solver_in_numpy(q, fit_intercept):
    X, Y, starts = make_groups([4, 9, 1] * 12, q=q, seed=1)
    labels = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    w = np.random.default_rng(2).uniform(0.2, 3.0, len(X))
    options = {"feature_groups": labels, "fit_intercept": fit_intercept, "sample_weight": w}
    lam = np.full(len(starts) - 1, 0.1 * go.lam_max(X, Y, "constant", **options))
    compiled = go.solve(X, Y, lam, tol=1e-10, **options)
    in_numpy = go.solve(X, Y, lam, tol=1e-10, solver=go.WorkingSet(first_size=5), **options)
    assert compiled.converged
    assert in_numpy.converged
    assert abs(compiled.primal - in_numpy.primal) <= max(compiled.gap, in_numpy.gap)
    np.testing.assert_allclose(compiled.B, in_numpy.B, atol=1e-4)
    assert np.array_equal(compiled.support, in_numpy.support)


def hostile(kind, rng):
    """Groups whose columns have no full rank, or that say the same."""
    X, Y, starts = make_groups([6] * 25, n=50, seed=3)
    if kind == "collinear":
        X[:, 1::6] = X[:, ::6]
        X[:, 2::6] = X[:, 3::6] - 2.0 * X[:, 4::6]
    elif kind == "nearly collinear":
        X[:, 1::6] = X[:, ::6] + 1e-9 * rng.standard_normal((50, 25))
    elif kind == "zero columns":
        X[:, 2::6] = 0.0
        X[:, 12:24] = 0.0
    elif kind == "the same groups":
        X[:, 6:60] = np.tile(X[:, :6], 9)
    elif kind == "one sample":
        X, Y = X[:1], Y[:1]
    elif kind == "large and small":
        X = X * 10.0 ** np.repeat(rng.uniform(-4, 4, 25), 6)
    return X, Y, starts


@pytest.mark.parametrize("fraction", [0.5, 0.1])
@pytest.mark.parametrize(
    "kind", ["collinear", "nearly collinear", "zero columns", "the same groups", "one sample", "large and small"]
)
def test_groups_may_be_anything(kind, fraction):
    X, Y, starts = hostile(kind, np.random.default_rng(0))
    problem = grouped(X, Y, starts, np.ones(25), fraction)
    assert gap_of(problem, asked(problem, X, Y, starts)) <= 1.0


def test_needs_fewer_steps_than_gradient_steps():
    """Weights that differ by nearly nothing are those of gradient steps."""
    X, Y, starts = make_groups([10] * 20, n=60, seed=4, correlation=0.9)
    equal = grouped(X, Y, starts, np.ones(20), 0.02)
    nearly = replace(equal, penalty=equal.penalty.with_lam(equal.lam * np.linspace(1.0, 1.0 - 1e-13, 20)))
    by_blocks, by_gradients = (asked(problem, X, Y, starts) for problem in (equal, nearly))
    assert 2 * by_blocks.steps[0] < by_gradients.steps[0]
    difference = np.subtract(*(equal.certify(found.stack()[0]).primal for found in (by_blocks, by_gradients)))
    assert abs(difference) <= equal.goal(TOL)


@pytest.mark.parametrize("q", [1, 3])
def test_units_that_leave_take_what_is_known_of_them(q):
    """Start and solution together are more than the working set has room for: units go, and others move up."""
    rng = np.random.default_rng(1)
    sizes, useless = [20] * 40 + [3, 5, 4, 2] * 100, 800
    X, _, starts = make_groups(sizes, n=400, seed=5)
    X[:, :useless] *= 0.1
    B = rng.standard_normal((len(X[0]), q)) * (rng.random((len(X[0]), 1)) < 0.3)
    Y = X[:, useless:] @ B[useless:] + rng.standard_normal((400, q))
    problem = grouped(X, Y, starts, np.ones(len(sizes)), 0.1)
    from_zero = asked(problem, X, Y, starts)
    rows = from_zero.stack()[0].any(axis=1)
    assert not rows[:useless].any()
    B[:useless], B[useless:] = rng.standard_normal((useless, q)), 0.0
    capacity = useless + int(0.8 * rows.sum())
    found = asked(problem, X, Y, starts, B_init=B, capacity=capacity)
    assert gap_of(problem, found) <= 1.0
    np.testing.assert_array_equal(found.stack()[0].any(axis=1), rows)  # of which 0.8 fit in beside the start
    assert found.steps[0] <= 2 * from_zero.steps[0]


def test_paths_back_and_forth_reach_the_goal():
    X, Y, starts = make_groups([7, 2, 12] * 15, n=80, seed=5)
    problem = grouped(X, Y, starts, np.ones(45), 1.0)
    alphas = np.array([0.02, 0.6, 0.05, 0.8, 0.03, 0.3])
    proposal = kernel.solve(
        kernel.KernelData(X, Y, unit_starts=starts), problem.lam, 0.9 * problem.goal(TOL), alphas=alphas
    )
    assert proposal.n_run == len(alphas)
    for alpha, B in zip(alphas, proposal.stack(), strict=True):
        assert problem.with_lam(alpha * problem.lam).certify(B).gap <= problem.goal(TOL)


@pytest.mark.parametrize("size", [1, 5])
def test_products_that_are_known_are_not_made_again(size):
    X, Y, starts = make_groups([size] * 60, seed=6)
    problem = grouped(X, Y, starts, np.ones(60), 0.2)
    plain = asked(problem, X, Y, starts)
    known = asked(problem, X, Y, starts, products_init=X.T @ Y)
    assert known.passes[0] == pytest.approx(plain.passes[0] - 1.0)
    np.testing.assert_array_equal(known.stack(), plain.stack())
    unchecked = asked(problem, X, Y, starts, products_init=X.T @ Y, unchecked=True)
    assert unchecked.passes[0] <= plain.passes[0] - 2.0
    assert gap_of(problem, unchecked) <= 1.0


@pytest.mark.parametrize("q", [1, 3])
@pytest.mark.parametrize("size", [1, 5])
def test_paths_without_last_looks_look_before_the_next_solve(size, q):
    X, Y, starts = make_groups([size] * 60, n=150, q=q, seed=6)
    problem = grouped(X, Y, starts, np.ones(60), 0.1)
    found = asked(problem, X, Y, starts, alphas=np.array([4.0, 2.0, 1.0, 1.0, 1.0, 1.0]), unchecked=True)
    assert set(found.status) == {kernel.CONVERGED}
    assert problem.certify(found.stack()[-1]).gap <= problem.goal(TOL)
    assert np.all(found.passes >= 1.0)


def workspace(sizes, n_samples):
    """Bytes that the kernel wants for units of these sizes if the working set may have all rows."""
    X, starts = np.zeros((n_samples, sum(sizes))), np.concatenate([[0], np.cumsum(sizes)])
    data = kernel.KernelData(X, np.zeros((n_samples, 1)), unit_starts=starts)
    task = kernel._Task(capacity=sum(sizes), gram_capacity=4 * n_samples)
    return kernel._library().go_workspace(data.struct, task)


def test_eigenvectors_have_no_more_memory_than_columns_may_have():
    few, many = ([workspace([size] * (count // size), 4) for size in (1, 100)] for count in (2_000, 400_000))
    assert few[1] - few[0] > 8 * 90 * 2_000
    assert many[1] - many[0] < kernel._MOST_BYTES


def test_many_rows_are_solved_without_eigenvectors():
    rng = np.random.default_rng(7)
    X, starts = rng.standard_normal((6, 128 * 2200)), np.arange(0, 128 * 2200 + 1, 128)
    Y = X[:, :128] @ rng.standard_normal((128, 1)) + rng.standard_normal((6, 1))
    problem = grouped(X, Y, starts, np.ones(2200), 0.5)
    assert gap_of(problem, asked(problem, X, Y, starts)) <= 1.0


@pytest.fixture
def calls(monkeypatch):
    """Arguments of all calls of the kernel; all data count as large. With `compress=True` small fits make them."""
    made, solve = [], kernel.solve

    def recorded(*arguments, **options):
        made.append(options)
        return solve(*arguments, **options)

    monkeypatch.setattr(kernel, "solve", recorded)
    monkeypatch.setattr(continuation, "_MOST_PRODUCTS", 0)
    return made


@pytest.mark.parametrize("groups", [None, [[3 * k, 3 * k + 1, 3 * k + 2] for k in range(30)]], ids=["rows", "groups"])
def test_a_solve_goes_on_from_the_certificate_that_fell_short(calls, monkeypatch, groups):
    X, Y, _ = make_groups([3] * 30, q=2, seed=7)
    lam = np.full(90 if groups is None else 30, 0.05 * go.lam_max(X, Y, "constant", feature_groups=groups))
    loose = replace(build_problem(X, Y, np.ones(90)), penalty=GroupOWL(np.ones(90)))
    monkeypatch.setattr(continuation, "KERNEL_GOAL", 1e4)  # far from what is to be proved
    result = go.solve(X, Y, lam, tol=TOL, feature_groups=groups, solver=go.WorkingSet(compress=True))
    assert result.converged
    assert result.gap <= loose.goal(TOL)
    assert len(calls) > 1
    assert [options["products_init"] is not None for options in calls[1:]] == [True] * (len(calls) - 1)
    assert all(options["unchecked"] for options in calls)


def test_a_solve_has_one_product_less(calls, monkeypatch):
    """Each round looks at all columns once, and the certificate is the last look."""
    X, Y, _ = make_groups([3] * 30, seed=8)
    lam = np.full(90, 0.3 * go.lam_max(X, Y, "constant"))
    result = go.solve(X, Y, lam, solver=go.WorkingSet(compress=True))
    solve = kernel.solve
    monkeypatch.setattr(kernel, "solve", lambda *data, **options: solve(*data, **(options | {"unchecked": False})))
    checked = go.solve(X, Y, lam, solver=go.WorkingSet(compress=True))
    assert result.n_passes <= checked.n_passes - 0.99
    np.testing.assert_array_equal(result.B, checked.B)


def sparse_problem(shape="constant", *, q=2, weighted=False, centered=True, units=None, mean=0.0):
    """So sparse that the columns of working sets are never made; the problem, and data of a matrix that is given."""
    rng = np.random.default_rng(9)
    X = sp.random(150, 400, density=0.04, format="csc", random_state=rng, data_rvs=rng.standard_normal)
    X.data += mean
    dense, Y = X.toarray(), rng.standard_normal((150, q))
    Y[:, 0] += dense[:, :8].sum(axis=1)
    options = {"sample_weight": rng.uniform(0.2, 3.0, 150) if weighted else None, "fit_intercept": centered}
    problem = build_problem(dense, Y, np.ones(400), standardized=centered, **options)
    moments = {"mean": problem.design.mean, "scale": problem.design.deviation} if centered else {}
    starts = None if units is None else np.arange(0, 401, units)
    if units is not None:
        problem = replace(problem, penalty=GroupOWL(np.ones(400 // units), np.arange(400) // units))
    weights = getattr(go.weights, shape)(400 // (units or 1))
    problem = problem.with_lam(0.1 * problem.lam_max(weights) * weights)
    return problem, X, lambda given: kernel.KernelData(given, Y, **options, **moments, unit_starts=starts)


@pytest.mark.parametrize("shape", ["constant", "oscar"])
@pytest.mark.parametrize("q", [1, 3])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("centered", [False, True])
def test_sparse_columns_are_those_of_the_dense_matrix(shape, q, weighted, centered):
    """With means, scales and weights of samples."""
    problem, X, data = sparse_problem(shape, q=q, weighted=weighted, centered=centered)
    found = []
    for given in (X, X.toarray()):
        found.append(kernel.solve(data(given), problem.lam, 0.9 * problem.goal(TOL)))
        assert gap_of(problem, found[-1]) <= 1.0
    np.testing.assert_allclose(found[0].stack()[0], found[1].stack()[0], atol=1e-3)


@pytest.mark.parametrize("max_steps", [0, 1, 5, 20, 10_000])
@pytest.mark.parametrize("units", [None, 1, 4])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("centered", [False, True])
@pytest.mark.parametrize("order", ["C", "sparse"])
def test_the_gap_that_it_reports_is_the_true_one(order, centered, weighted, units, max_steps):
    """Wherever it stops, from a start far away, with columns whose means are not small."""
    problem, X, data = sparse_problem(weighted=weighted, centered=centered, units=units, mean=3.0)
    start = np.zeros((400, 2))
    start[:40] = np.random.default_rng(3).standard_normal((40, 2))
    given = X if order == "sparse" else X.toarray()
    found = kernel.solve(data(given), problem.lam, 0.9 * problem.goal(TOL), B_init=start, max_steps=max_steps)
    assert found.steps[0] <= max_steps
    if max_steps == 0:
        np.testing.assert_array_equal(found.stack()[0], start)
    certificate = problem.certify(found.stack()[0])
    room = 10.0 * certificate.rounding
    assert found.gap[0] == pytest.approx(certificate.gap - certificate.rounding, rel=1e-10, abs=room)
