"""The default solver: hard cases, few passes, sufficient statistics, guards."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

import groupowl as go
import groupowl.solvers.inner as inner
from groupowl import kernel
from groupowl.solvers.continuation import compression_pays
from groupowl.solvers.settings import Round
from support import OpaqueDesign, make_case

SHAPES = ["constant", "oscar", "linear", "bh"]


def spectra(seed=0, n=200, d=100, q=3):
    """Smooth curves plus noise of 1e-4: nearly collinear columns."""
    rng = np.random.default_rng(seed)
    grid = np.linspace(0, 1, d)
    centers, widths = rng.random(12), 0.05 + 0.15 * rng.random(12)
    bumps = np.exp(-((grid - centers[:, None]) ** 2) / (2 * widths[:, None] ** 2))
    X = rng.random((n, 12)) @ bumps + 1e-4 * rng.standard_normal((n, d))
    B = np.zeros((d, q))
    B[rng.choice(d, 6, replace=False)] = rng.standard_normal((6, q))
    Z = X @ B
    return X - X.mean(axis=0), Z + 0.01 * Z.std() * rng.standard_normal(Z.shape) - Z.mean(axis=0)


def solve(X, Y, shape, fraction, loss="squared", **settings):
    lam = fraction * go.lam_max(X, Y, shape, loss=loss) * getattr(go.weights, shape)(X.shape[1])
    return go.solve(X, Y, lam, loss=loss, **settings), lam


def judge(X, Y, lam, B, loss="squared"):
    """Gap of the answer relative to the null loss, from scratch."""
    Z = X @ B
    norms = np.sort(np.linalg.norm(B, axis=1))[::-1]
    if loss == "squared":
        T, null = Y - Z, 0.5 * np.sum(Y**2)
        value = 0.5 * np.sum(T**2)
    else:
        shifted = Z - Z.max(axis=1, keepdims=True)
        logs = np.log(np.exp(shifted).sum(axis=1))
        T, null = Y - np.exp(shifted - logs[:, None]), len(Y) * np.log(Y.shape[1])
        value = np.sum(logs - np.sum(Y * shifted, axis=1))
    pulls = np.sort(np.linalg.norm(X.T @ T, axis=1))[::-1]
    gauge = np.max(np.cumsum(pulls) / np.cumsum(lam))
    if loss == "squared":
        s = np.clip(np.sum(T * Y) / np.sum(T**2), -1 / gauge, 1 / gauge)
        dual = s * np.sum(T * Y) - 0.5 * s**2 * np.sum(T**2)
    else:
        P = np.maximum(Y - T / max(1.0, gauge), 1e-300)
        dual = -np.sum(P * np.log(P))
    return (value + norms @ lam - dual) / null


# Hard cases -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fraction", [0.01, 0.001])
@pytest.mark.parametrize("shape", ["constant", "oscar"])
@pytest.mark.parametrize("seed", [0, 1])
def test_nearly_collinear_columns(seed, shape, fraction):
    X, Y = spectra(seed)
    result, lam = solve(X, Y, shape, fraction, tol=1e-9)
    assert result.converged
    assert judge(X, Y, lam, result.B) <= 1e-9


def autoregressive(rng, n, d, correlation):
    X = rng.standard_normal((n, d))
    for j in range(1, d):
        X[:, j] = correlation * X[:, j - 1] + np.sqrt(1 - correlation**2) * X[:, j]
    return X


def hard_problem(kind):
    rng = np.random.default_rng(0)
    if kind == "correlation 0.99":
        X = autoregressive(rng, 60, 200, 0.99)
    elif kind == "duplicated columns":
        X = np.repeat(rng.standard_normal((60, 40)), 5, axis=1)
    elif kind == "columns of very different scale":
        X = rng.standard_normal((60, 120)) * 10 ** rng.uniform(-3, 3, 120)
    elif kind == "more rows than samples":
        X = autoregressive(rng, 30, 300, 0.9)
    else:
        X = rng.standard_normal((50, 100))
    Z = (X / np.linalg.norm(X, axis=0))[:, :12] @ rng.standard_normal((12, 3)) * np.sqrt(len(X))
    return X, Z


HARD = [
    ("correlation 0.99", 0.1),
    ("duplicated columns", 0.05),
    ("columns of very different scale", 0.05),
    ("more rows than samples", 0.02),
    ("weak penalty", 1e-4),
]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("loss", ["squared", "multinomial"])
@pytest.mark.parametrize(("kind", "fraction"), HARD)
def test_hard_cases_converge(kind, fraction, loss, shape):
    X, Z = hard_problem(kind)
    rng = np.random.default_rng(1)
    Y = Z + 0.3 * rng.standard_normal(Z.shape)
    if loss == "multinomial":
        Y = np.eye(3)[np.argmax(Z + rng.gumbel(size=Z.shape), axis=1)]
    result, lam = solve(X, Y, shape, fraction, loss, max_iter=100_000)
    assert result.converged
    assert judge(X, Y, lam, result.B, loss) <= 1.0001e-6


def test_more_rows_than_samples_is_really_dense():
    X, Z = hard_problem("more rows than samples")
    result, _ = solve(X, Z, "oscar", 0.02)
    assert len(result.support) > len(X)


def test_too_few_steps_say_what_was_reached():
    X, Y = spectra()
    with pytest.warns(ConvergenceWarning, match="max_iter=7"):
        result, lam = solve(X, Y, "oscar", 0.001, max_iter=7)
    assert (result.status, result.n_iter) == ("max_iter", 7)
    assert result.primal - go.solve(X, Y, lam, tol=1e-9).primal <= result.gap


def test_nothing_can_make_it_run_for_ever():
    """A tolerance out of reach on collinear data ends with a reason."""
    X, Y = spectra()
    with pytest.warns(ConvergenceWarning):
        result, _ = solve(X, Y, "oscar", 0.001, tol=1e-16)
    assert result.status in ("stalled", "precision", "max_iter")


# Passes, memory, history ------------------------------------------------------------------------------


def test_few_passes_on_a_sparse_solution():
    data = go.datasets.make_correlated_groups(200, 4000, 5, random_state=0)
    result, _ = solve(data.X, data.Y, "oscar", 0.4)
    assert result.converged
    assert result.n_passes < 8
    plain, _ = solve(data.X, data.Y, "oscar", 0.4, solver="apgd", screening="none")
    assert result.n_passes < 0.1 * plain.n_passes


def correlated_problem(n, d, correlation, q):
    """Columns that each resemble the last, and targets of every thirtieth."""
    rng = np.random.default_rng(0)
    X = autoregressive(rng, n, d, correlation)
    return X, X[:, ::30] @ rng.standard_normal((-(-d // 30), q)) + rng.standard_normal((n, q))


@pytest.mark.parametrize(("shape", "q"), [("constant", 1), ("constant", 5), ("bh", 1), ("oscar", 1)])
def test_a_weak_penalty_on_correlated_columns(shape, q):
    """Gradient steps visit more rows than samples on the way; Newton steps must still get their turn."""
    X, Y = correlated_problem(100, 600, 0.95, q)
    result, lam = solve(X, Y, shape, 1e-4)
    assert result.converged
    assert judge(X, Y, lam, result.B) <= 1.0001e-6


@pytest.mark.parametrize("seed", [39, 40, 41])
def test_few_columns_of_very_different_scale(seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((150, 8)) * 10 ** rng.uniform(-4, 4, 8)
    Y = X @ rng.standard_normal((8, 2)) / abs(X).max() + rng.standard_normal((150, 2)) + 100
    result, _ = solve(X, Y, "constant", 1e-4)
    assert result.converged


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_the_memory_order_does_not_matter(order, dtype, fit_intercept):
    case = make_case(11, n=60, d=90, fraction=0.05)
    X = np.asarray(case.X, dtype=dtype, order=order)
    settings = {"fit_intercept": fit_intercept, "tol": 1e-8}
    result = go.solve(X, case.Y, case.lam, **settings)
    reference = go.solve(X, case.Y, case.lam, solver="apgd", **settings)
    assert result.converged
    assert abs(result.primal - reference.primal) <= result.gap + reference.gap


@pytest.mark.parametrize("solver", ["auto", "apgd"])
def test_a_start_worse_than_zero_is_dropped(solver):
    X, Y = correlated_problem(40, 60, 0.9, 2)
    far = 1e6 * np.random.default_rng(0).standard_normal((60, 2))
    result, lam = solve(X, Y, "oscar", 0.1, solver=solver, B_init=far)
    assert result.converged
    assert abs(result.primal - go.solve(X, Y, lam).primal) <= 2e-6 * result.history.primal[1]


@pytest.mark.parametrize("loss", ["squared", "multinomial"])
def test_accelerated_steps_take_over_where_all_else_is_slow(monkeypatch, loss):
    X, Z = hard_problem("correlation 0.99")
    Y = np.eye(3)[np.argmax(Z, axis=1)] if loss == "multinomial" else Z
    monkeypatch.setattr(inner, "_SLOW_STEPS", 0)
    monkeypatch.setattr(kernel, "is_available", lambda: False)  # it would solve some of them
    calls, step = [], go.APGD.step_once
    monkeypatch.setattr(go.APGD, "step_once", lambda *args: calls.append(1) or step(*args))
    result, lam = solve(X, Y, "oscar", 0.02, loss)
    assert calls
    assert result.n_iter > len(calls)
    assert result.converged
    assert judge(X, Y, lam, result.B, loss) <= 1.0001e-6
    with pytest.warns(ConvergenceWarning, match="max_iter=60"):
        assert solve(X, Y, "oscar", 0.02, loss, max_iter=60)[0].n_iter == 60


def test_no_more_steps_than_asked_for():
    X, Y = spectra()
    for max_iter in (1, 31, 45, 63, 150):
        with pytest.warns(ConvergenceWarning):
            result, _ = solve(X, Y, "constant", 0.001, tol=1e-13, max_iter=max_iter)
        assert result.n_iter <= max_iter


def test_violators_join_the_working_set(monkeypatch):
    """A small first set grows by the rows that violate the conditions, never to all rows at once."""
    sizes = []
    original = go.WorkingSet.advance

    def advance(self, problem, state, task):
        state, steps = original(self, problem, state, task)
        sizes.append(int(state.members.sum()))
        return state, steps

    monkeypatch.setattr(go.WorkingSet, "advance", advance)
    data = go.datasets.make_correlated_groups(200, 4000, 5, random_state=0)
    result, _ = solve(data.X, data.Y, "oscar", 0.2, solver=go.WorkingSet(first_size=4))
    assert result.converged
    assert sizes[0] == 4 < len(result.support) <= sizes[-1]
    assert max(sizes) < 20 * len(result.support) < 4000


@pytest.mark.parametrize(("halvings_missed", "rows"), [(1, 4), (4, 60)])
def test_rounds_without_headway_take_all_candidates(halvings_missed, rows):
    """Then the method cannot cycle."""
    problem = make_case(12, n=40, d=60, fraction=0.5).problem()
    solver = go.WorkingSet(first_size=4)
    certificate = problem.certify(problem.null_coefficients())
    task = Round(certificate, np.arange(60), goal=0.0, max_steps=1)
    state = solver.start(problem, problem.null_coefficients(), np.random.default_rng(0))
    state = replace(state, halved_gap=certificate.gap, rounds_since=halvings_missed)
    assert np.count_nonzero(solver._choose(problem, state, task)[0].members) == rows


@pytest.mark.parametrize(("first_size", "joined", "cut"), [(5, 5, True), (6, 8, False), (8, 8, False)])
def test_the_last_violators_join_together(first_size, joined, cut):
    """Of eight, where there is room for six of them; another round for two would cost more."""
    problem = make_case(12, n=40, d=60, fraction=0.5).problem()
    start = problem.null_coefficients()
    task = Round(problem.certify(start), np.arange(60), goal=0.0, max_steps=1)
    solver = go.WorkingSet(first_size=first_size)
    state, violators = solver._choose(problem, solver.start(problem, start, np.random.default_rng(0)), task)
    assert (violators, np.count_nonzero(state.members), state.cut) == (8, joined, cut)


def test_a_set_of_most_candidates_takes_the_rest():
    problem = make_case(12, n=40, d=60, fraction=0.5).problem()
    task = Round(problem.certify(problem.null_coefficients()), np.arange(0, 60, 2), goal=0.0, max_steps=1)
    state = go.WorkingSet().start(problem, problem.null_coefficients(), np.random.default_rng(0))
    state = replace(state, B=np.vstack([np.tile([[1.0], [0.0]], (19, 3)), np.zeros((22, 3))]))  # 19 of 30 candidates
    members = go.WorkingSet()._choose(problem, state, task)[0].members
    np.testing.assert_array_equal(np.flatnonzero(members), task.candidates)


def test_long_solves_leave_proved_rows_behind(monkeypatch):
    restricted = []
    original = go.WorkingSet.restrict
    monkeypatch.setattr(
        go.WorkingSet, "restrict", lambda *args: restricted.append(args[1].n_rows) or original(*args), raising=True
    )
    data = go.datasets.make_correlated_groups(60, 5000, 3, random_state=1)
    result, _ = solve(data.X, data.Y, "oscar", 0.2, solver=go.WorkingSet(first_size=1), tol=1e-9)
    assert result.converged
    assert restricted
    assert max(restricted) <= 500


def test_history_has_one_row_per_round_and_counts_inner_steps():
    case = make_case(3, n=30, d=200)
    result = go.solve(**case.arguments())
    assert len(result.history) < 15
    assert result.history.iteration[-1] == result.n_iter >= len(result.history) - 1


def test_a_warm_start_saves_rounds():
    data = go.datasets.make_correlated_groups(100, 1000, 3, random_state=0)
    near, lam = solve(data.X, data.Y, "oscar", 0.2)
    cold = go.solve(data.X, data.Y, 0.95 * lam)
    warm = go.solve(data.X, data.Y, 0.95 * lam, B_init=near.B)
    assert warm.converged
    assert warm.n_iter <= cold.n_iter
    assert abs(warm.primal - cold.primal) <= warm.gap + cold.gap


def test_few_columns_are_copied():
    """Beyond X itself: the working set, and survivors once they are few; the kernel keeps what it works with."""
    import tracemalloc

    data = go.datasets.make_correlated_groups(200, 5000, 5, random_state=0)
    lam = 0.5 * go.lam_max(data.X, data.Y, "oscar") * go.weights.oscar(5000)
    vars(kernel._memory).pop("kept", None)  # of solves before
    go.solve(data.X, data.Y, lam)
    assert not kernel.is_available() or len(kernel._memory.kept) < data.X.nbytes / 4
    tracemalloc.start()
    result = go.solve(data.X, data.Y, lam)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(result.support) < 50
    assert peak < data.X.nbytes / 4


# Sufficient statistics --------------------------------------------------------------------------------

TALL = [
    {"fit_intercept": intercept, "weighted": weighted, "sparse": sparse}
    for intercept, weighted, sparse in itertools.product([False, True], repeat=3)
]


@pytest.mark.parametrize("tol", [1e-6, 1e-10])
@pytest.mark.parametrize("kind", TALL, ids=str)
def test_tall_problems_need_one_pass(kind, tol):
    case = make_case(5, n=300, d=20, fraction=0.1, **kind)
    arguments = case.arguments()
    small = go.solve(**arguments, tol=tol, solver=go.WorkingSet(compress=True))
    plain = go.solve(**arguments, tol=tol, solver=go.WorkingSet(compress=False))
    assert small.converged
    assert small.n_passes == pytest.approx(1.0)
    assert plain.n_passes > 1.5
    assert abs(small.primal - plain.primal) <= small.gap + plain.gap
    assert case.objective(small.B, small.intercept) == pytest.approx(small.primal, rel=1e-9)
    assert small.theta.shape == (300, 3)


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("kind", TALL, ids=str)
def test_a_compressed_problem_certifies_the_original(kind, exact):
    """Its gap bounds the distance to the minimum of the original problem, at any coefficients."""
    case = make_case(6, n=80, d=15, **kind)
    problem = case.problem()
    small = problem.compressed(exact=exact)
    minimum = go.solve(**case.arguments(), tol=1e-12, solver=go.WorkingSet(compress=False)).primal
    rng = np.random.default_rng(0)
    for scale in (0.0, 1e-2, 1.0, 30.0):
        B = scale * rng.standard_normal((15, 3))
        certificate, reference = small.certify(B), problem.certify(B)
        assert certificate.primal == pytest.approx(reference.primal, rel=1e-9)
        assert reference.primal - minimum <= certificate.gap
        assert np.all(small.upper_bounds(certificate) >= 0)


def test_rounding_of_the_gram_matrix_is_allowed_for():
    """With large coefficients that cancel, the Gram matrix has fewer digits than the data, and says so."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100, 10))
    X[:, 1] = X[:, 0] + 1e-7 * rng.standard_normal(100)
    Y = X[:, :3] @ rng.standard_normal((3, 2))
    problem = go.problem.build_problem(X, Y, 0.1 * go.weights.constant(10))
    B = np.zeros((10, 2))
    B[0], B[1] = 1e4, -1e4
    small = problem.compressed(exact=False)
    error = abs(small.certify(B).primal - problem.certify(B).primal)
    assert error <= small.certify(B).rounding
    assert small.certify(B).rounding > 100 * problem.certify(B).rounding


def test_a_proof_beyond_the_gram_matrix_uses_the_data():
    """Where the Gram matrix cannot prove the tolerance, a QR factorization follows."""
    X, Y = spectra()
    lam = 1e-3 * go.lam_max(X, Y, "constant") * go.weights.constant(100)
    result = go.solve(X, Y, lam, tol=2e-8, solver=go.WorkingSet(compress=True))
    assert result.converged
    assert judge(X, Y, lam, result.B) <= 2e-8


def test_compression_is_chosen_by_its_price():
    few, many = make_case(1, n=200, d=20, q=3).problem(), make_case(1, n=400, d=300, q=1).problem()
    assert compression_pays(few)
    assert not compression_pays(many)
    assert compression_pays(many, n_solves=100)
    assert not compression_pays(make_case(1, n=20, d=30).problem())
    assert not compression_pays(make_case(1, n=200, d=20, loss="multinomial").problem())


def test_nothing_is_selected_at_lam_max_of_a_tall_problem():
    case = make_case(2, n=200, d=10, fit_intercept=True)
    weights = go.weights.oscar(10)
    top = go.lam_max(case.X, case.Y, weights, fit_intercept=True)
    at = go.solve(case.X, case.Y, top * weights, fit_intercept=True)
    below = go.solve(case.X, case.Y, 0.999 * top * weights, fit_intercept=True)
    assert (len(at.support), at.gap, at.n_iter) == (0, 0.0, 1)
    assert len(below.support) > 0


def test_designs_without_local_samples_are_not_compressed():
    case = make_case(7, n=200, d=10)
    result = go.solve(**{**case.arguments(), "X": OpaqueDesign.of(case.X)}, solver=go.WorkingSet(compress=True))
    assert result.converged
    assert result.n_passes > 1.5


# Settings ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("first_size", [1, 5, 1000])
@pytest.mark.parametrize("loss", ["squared", "multinomial"])
def test_any_first_size_reaches_the_minimum(loss, first_size):
    case = make_case(8, n=40, d=150, loss=loss, fit_intercept=True, fraction=0.1)
    reference = go.solve(**case.arguments(), tol=1e-9, solver="apgd")
    result = go.solve(**case.arguments(), tol=1e-9, solver=go.WorkingSet(first_size=first_size))
    assert result.converged
    assert abs(result.primal - reference.primal) <= result.gap + reference.gap


@pytest.mark.parametrize("loss", ["squared", "multinomial"])
def test_sparse_columns_stay_sparse(loss):
    rng = np.random.default_rng(0)
    X = sp.csr_array(rng.random((300, 400)) * (rng.random((300, 400)) < 0.03))
    Y = X[:, :5] @ rng.standard_normal((5, 3))
    if loss == "multinomial":
        Y = np.eye(3)[np.argmax(Y + 0.1 * rng.standard_normal(Y.shape), axis=1)]
    data = {"loss": loss, "fit_intercept": True}
    lam = 0.1 * go.lam_max(X, Y, "oscar", **data) * go.weights.oscar(400)
    result = go.solve(X, Y, lam, tol=1e-8, **data)
    dense = go.solve(X.toarray(), Y, lam, tol=1e-8, **data)
    assert result.converged
    assert abs(result.primal - dense.primal) <= result.gap + dense.gap


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"first_size": 0}, "first_size must be at least 1, got 0"),
        ({"screen_after": -1}, "screen_after must be at least 0, got -1"),
        ({"compress": "yes"}, "compress must be 'auto', True or False, got 'yes'"),
    ],
)
def test_bad_settings_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        go.WorkingSet(**settings)
