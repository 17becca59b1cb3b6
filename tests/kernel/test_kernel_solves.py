"""Solves and paths of the compiled kernel, judged by the certificates of the problem."""

from __future__ import annotations

import ctypes
import signal
import threading
import time
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from kernel_support import Curvatures, Dual, Evaluate, LossEntry, data_of_statistics

import groupowl as go
from groupowl import kernel
from groupowl.norm.penalty import GroupOWL
from groupowl.problem import build_problem

pytestmark = pytest.mark.skipif(not kernel.is_available(), reason=str(kernel.kernel_info()))

TOL = 1e-6
SHAPES = ["constant", "oscar", "bh", "linear"]
LOSSES = kernel.KernelInfo.losses


def make_data(seed=0, *, n=40, d=60, q=3, loss="squared", correlation=0.5):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    for j in range(1, d):
        X[:, j] = correlation * X[:, j - 1] + np.sqrt(1 - correlation**2) * X[:, j]
    B = np.zeros((d, q))
    B[rng.choice(d, 5, replace=False)] = rng.standard_normal((5, q))
    Z = X @ B + 0.5 * rng.standard_normal((n, q))
    if loss == "poisson":
        return X, 1.0 * rng.poisson(np.exp(np.clip(0.3 * Z, -3.0, 3.0)))
    Y = {"squared": Z, "logistic": 1.0 * (Z > 0.0), "multinomial": np.eye(q)[Z.argmax(axis=1)]}[loss]
    return X, Y


def weights_for(shape, d):
    return getattr(go.weights, shape)(d)


def judge(problem, proposal, k=0):
    """Certified gap of a proposal relative to its goal."""
    B = proposal.stack()[k]
    if problem.unpenalized.n_rows:
        intercept = proposal.intercept[k] - problem.samples.center
        null = problem.null_coefficients()[problem.n_rows :]
        B = np.concatenate([B, problem.unpenalized.with_intercept(null, intercept)])
    return problem.certify(B).gap / problem.goal(TOL)


def propose(problem, data, lam, **options):
    return kernel.solve(data, lam, 0.9 * problem.goal(TOL), **options)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("fraction", [0.5, 0.2, 0.05])
@pytest.mark.parametrize("size", [(50, 20, 3), (100, 300, 1), (60, 200, 5), (30, 1, 2), (2, 5, 1), (1, 3, 2)])
def test_squared_loss(shape, fraction, size):
    n, d, q = size
    rng = np.random.default_rng(5)
    X, Y = make_data(n=n, d=d, q=q) if d >= 5 else (rng.standard_normal((n, d)), rng.standard_normal((n, q)))
    weights = weights_for(shape, d)
    lam = fraction * go.lam_max(X, Y, weights) * weights
    problem = build_problem(X, Y, lam)
    proposal = propose(problem, kernel.KernelData(X, Y), lam)
    assert proposal.status[0] == 0
    assert judge(problem, proposal) <= 1.0


def test_agrees_with_the_solver_in_numpy():
    X, Y = make_data(n=60, d=120)
    lam = 0.1 * go.lam_max(X, Y, "oscar") * go.weights.oscar(120)
    expected = go.solve(X, Y, lam, tol=1e-9)
    proposal = kernel.solve(kernel.KernelData(X, Y), lam, 1e-9 * build_problem(X, Y, lam).loss_scale)
    assert build_problem(X, Y, lam).certify(proposal.stack()[0]).primal == pytest.approx(expected.primal, rel=1e-8)
    np.testing.assert_allclose(proposal.stack()[0], expected.B, atol=1e-4)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", ["C", "F", "float32 C", "float32 F", "csc", "csc float32", "slice"])
def test_kinds_of_data(loss, fit_intercept, weighted, kind):
    X, Y = make_data(3, n=45, d=80, loss=loss)
    X = X + 0.5
    rng = np.random.default_rng(0)
    if "csc" in kind:
        X = sp.csc_matrix(np.where(rng.random(X.shape) < 0.4, X, 0.0))
    if "float32" in kind:
        X = X.astype(np.float32)
    if kind == "F" or kind == "float32 F":
        X = np.asfortranarray(X)
    if kind == "slice":
        X = np.asfortranarray(np.hstack([X, X]))[5:40, 7:70]
        Y = Y[5:40]
    w = rng.uniform(0.5, 2.0, len(Y)) if weighted else None
    d = X.shape[1]
    dense = (X.toarray() if sp.issparse(X) else X).astype(np.float64)
    mean = np.average(dense, axis=0, weights=w) if fit_intercept else None
    weights = go.weights.oscar(d)
    options = {"loss": loss, "fit_intercept": fit_intercept, "sample_weight": w}
    lam = 0.2 * go.lam_max(dense, Y, weights, **options) * weights
    problem = build_problem(dense, Y, lam, **options)
    data = kernel.KernelData(X, Y, loss, mean=mean, sample_weight=w, fit_intercept=fit_intercept)
    proposal = propose(problem, data, lam)
    assert proposal.status[0] == 0
    assert judge(problem, proposal) <= 1.0
    assert np.count_nonzero(proposal.stack()[0].any(axis=1)) > 0


@pytest.mark.parametrize("loss", LOSSES)
def test_implicit_scaling(loss):
    X, Y = make_data(4, loss=loss)
    X = X * 10.0 ** np.random.default_rng(1).uniform(-3, 3, X.shape[1])
    mean, scale = X.mean(axis=0), X.std(axis=0)
    standard = (X - mean) / scale
    lam = 0.2 * go.lam_max(standard, Y, "oscar", loss=loss) * go.weights.oscar(X.shape[1])
    problem = build_problem(standard, Y, lam, loss=loss)
    data = kernel.KernelData(X, Y, loss, mean=mean, scale=scale)
    proposal = propose(problem, data, lam)
    assert proposal.status[0] == 0
    assert judge(problem, proposal) <= 1.0


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("q", [1, 3])
def test_sufficient_statistics(shape, q):
    X, Y = make_data(n=100, d=50, q=q)
    weights = weights_for(shape, 50)
    lam = 0.1 * go.lam_max(X, Y, weights) * weights
    problem = build_problem(X, Y, lam)
    data = data_of_statistics(X.T @ X, X.T @ Y, float(np.sum(Y * Y)))
    proposal = propose(problem, data, lam)
    assert proposal.status[0] == 0
    assert judge(problem, proposal) <= 1.0


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("shape", ["constant", "oscar"])
@pytest.mark.parametrize("sizes", [[2] * 30, [1, 3, 2, 4] * 6])
def test_units_of_several_rows(loss, shape, sizes):
    X, Y = make_data(6, d=60, loss=loss)
    weights = weights_for(shape, len(sizes))
    problem = build_problem(X, Y, np.ones(60), loss=loss)
    problem = replace(problem, penalty=GroupOWL(weights, np.repeat(np.arange(len(sizes)), sizes)))
    lam = (0.3 if loss == "poisson" else 0.1) * problem.lam_max(weights) * weights
    problem = problem.with_lam(lam)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    data = kernel.KernelData(X, Y, loss, unit_starts=starts)
    proposal = propose(problem, data, lam)
    assert proposal.status[0] == 0
    assert judge(problem, proposal) <= 1.0
    norms = problem.penalty.norms(proposal.stack()[0])
    assert 0 < np.count_nonzero(norms) < len(sizes)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("shape", ["constant", "oscar", "bh"])
@pytest.mark.parametrize("size", [(40, 15, 2), (50, 150, 1), (50, 150, 4)])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_paths(loss, shape, size, fit_intercept):
    n, d, q = size
    q = max(q, 2) if loss == "multinomial" else q
    X, Y = make_data(7, n=n, d=d, q=q, loss=loss)
    weights = weights_for(shape, d)
    problem = build_problem(X, Y, weights, loss=loss, fit_intercept=fit_intercept)
    lowest = (
        0.2 if loss == "poisson" else 0.05
    )  # below, more rows than samples are non-zero: some points are given back
    alphas = problem.lam_max(weights) * np.geomspace(1.0, lowest, 40)
    data = kernel.KernelData(X, Y, loss, mean=X.mean(axis=0) if fit_intercept else None, fit_intercept=fit_intercept)
    proposal = propose(problem, data, weights, alphas=alphas)
    again = propose(problem, data, np.outer(alphas, weights))  # the same weights, given in full
    for k, alpha in enumerate(alphas):
        assert proposal.status[k] == 0
        assert judge(problem.with_lam(alpha * weights), proposal, k) <= 1.0
        np.testing.assert_array_equal(proposal.stack()[k], again.stack()[k])
    assert np.count_nonzero(proposal.stack()[0].any(axis=1)) == 0
    assert np.count_nonzero(proposal.stack()[len(alphas) - 1].any(axis=1)) > 0


@pytest.mark.parametrize("loss", LOSSES)
def test_a_path_ends_with_the_loss_asked_for(loss):
    X, Y = make_data(7, loss=loss)
    weights = weights_for("oscar", X.shape[1])
    problem, data = build_problem(X, Y, weights, loss=loss), kernel.KernelData(X, Y, loss)
    alphas = problem.lam_max(weights) * np.geomspace(1.0, 0.05, 40)
    whole = propose(problem, data, weights, alphas=alphas)
    losses = [problem.loss_value(problem.predictor(whole.stack()[k])) for k in range(40)]
    part = propose(problem, data, weights, alphas=alphas, least_loss=0.5 * (losses[20] + losses[21]))
    assert part.n_run == 22
    np.testing.assert_array_equal(part.stack(), whole.stack()[:22])


def test_warm_start():
    X, Y = make_data(n=60, d=200)
    lam = 0.1 * go.lam_max(X, Y, "oscar") * go.weights.oscar(200)
    problem, data = build_problem(X, Y, lam), kernel.KernelData(X, Y)
    cold = propose(problem, data, lam)
    warm = propose(problem, data, lam, B_init=cold.stack()[0])
    assert warm.steps[0] < cold.steps[0] / 3
    assert judge(problem, warm) <= 1.0


def test_warm_start_of_units_and_intercept():
    X, Y = make_data(8, d=60, loss="multinomial")
    problem = build_problem(X, Y, np.ones(60), loss="multinomial", fit_intercept=True)
    weights = go.weights.oscar(30)
    problem = replace(problem, penalty=GroupOWL(weights, np.repeat(np.arange(30), 2)))
    lam = 0.2 * problem.lam_max(weights) * weights
    problem = problem.with_lam(lam)
    data = kernel.KernelData(
        X, Y, "multinomial", mean=X.mean(axis=0), fit_intercept=True, unit_starts=np.arange(0, 61, 2)
    )
    cold = propose(problem, data, lam)
    warm = propose(problem, data, lam, B_init=cold.stack()[0], intercept_init=cold.intercept[0])
    assert warm.steps[0] <= 5 < cold.steps[0]
    assert judge(problem, warm) <= 1.0


# A loss from outside ----------------------------------------------------------------------------------------


@Evaluate
def toy_evaluate(n, q, Z, Y, w, theta):
    Z, Y, theta = (np.ctypeslib.as_array(array, (n, q)) for array in (Z, Y, theta))
    w = np.ctypeslib.as_array(w, (n,))
    theta[:] = w[:, None] * (Y - Z)
    return 0.5 * float(np.sum(w[:, None] * (Y - Z) ** 2))


@Dual
def toy_dual(n, q, theta, scale, Y, w):
    theta, Y = (np.ctypeslib.as_array(array, (n, q)) for array in (theta, Y))
    w = np.ctypeslib.as_array(w, (n,))
    return float(np.sum(scale * theta * Y - 0.5 * (scale * theta) ** 2 / w[:, None]))


@Curvatures
def toy_curvatures(n, q, theta, Y, w, h):
    np.ctypeslib.as_array(h, (n,))[:] = np.ctypeslib.as_array(w, (n,))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("q", [1, 3])
def test_a_loss_joins_by_an_entry(weighted, q):
    X, Y = make_data(9, q=q)
    w = np.random.default_rng(0).uniform(0.5, 2.0, len(Y)) if weighted else None
    lam = 0.2 * go.lam_max(X, Y, "oscar", sample_weight=w) * go.weights.oscar(X.shape[1])
    problem = build_problem(X, Y, lam, sample_weight=w)
    loss = LossEntry(0, toy_evaluate, toy_dual, curvatures=toy_curvatures)
    data = kernel.KernelData(X, Y, ctypes.addressof(loss), sample_weight=w)
    proposal = propose(problem, data, lam)
    assert proposal.status[0] == 0
    assert judge(problem, proposal) <= 1.0


# Limits ------------------------------------------------------------------------------------------------------


def hard_problem():
    """Nearly collinear columns, which gradient steps cannot tell apart."""
    rng = np.random.default_rng(0)
    t = np.linspace(0.0, 1.0, 100)
    X = np.exp(-((t[None, :] - rng.random((200, 1))) ** 2) / 0.1) @ np.eye(100)
    Y = X @ rng.standard_normal((100, 3)) + 0.01 * rng.standard_normal((200, 3))
    lam = 1e-4 * go.lam_max(X, Y, "oscar") * go.weights.oscar(100)
    return X, Y, lam


def test_hard_problems_are_given_back():
    X, Y, lam = hard_problem()
    problem = build_problem(X, Y, lam)
    proposal = kernel.solve(kernel.KernelData(X, Y), lam, 1e-12 * problem.loss_scale, max_steps=10**6)
    assert kernel.STATUSES[proposal.status[0]] == "gave_up"
    assert problem.certify(proposal.stack()[0]).primal < problem.null_loss


@pytest.mark.parametrize("max_steps", [1, 7])
def test_max_steps(max_steps):
    X, Y, lam = hard_problem()
    proposal = kernel.solve(kernel.KernelData(X, Y), lam, 0.0, max_steps=max_steps)
    assert kernel.STATUSES[proposal.status[0]] == "max_steps"
    assert max_steps <= proposal.steps[0] <= max_steps + 5


@pytest.mark.parametrize("loss", LOSSES)
def test_little_memory(loss, monkeypatch):
    """A working set that does not fit ends the solve; one that fits without its Gram matrix does not."""
    X, Y = make_data(n=30, d=90, loss=loss)
    lam = 0.05 * go.lam_max(X, Y, "oscar", loss=loss) * go.weights.oscar(90)
    problem, data = build_problem(X, Y, lam, loss=loss), kernel.KernelData(X, Y, loss)
    monkeypatch.setattr(kernel, "_MOST_BYTES", 8 * 30 * 5)
    proposal = propose(problem, data, lam)
    assert kernel.STATUSES[proposal.status[0]] == "no_room"
    assert np.count_nonzero(proposal.stack()[0].any(axis=1)) <= 5
    monkeypatch.setattr(kernel, "_MOST_BYTES", 8 * 30 * 90)
    proposal = propose(problem, data, lam)
    assert proposal.status[0] == 0
    assert judge(problem, proposal) <= 1.0


def long_path():
    X, Y = make_data(n=150, d=1200, q=6, correlation=0.95)
    weights = go.weights.bh(1200)
    return kernel.KernelData(X, Y), weights, go.lam_max(X, Y, weights) * np.geomspace(1.0, 0.01, 100)


def test_interrupt():
    data, weights, alphas = long_path()
    calls = []

    def ask():
        calls.append(time.process_time())
        return len(calls) == 2

    proposal = kernel.solve(data, weights, 1e-9, alphas=alphas, interrupted=ask)
    assert len(calls) == 2
    assert np.diff(calls).min() >= 0.045
    names = [kernel.STATUSES[status] for status in proposal.status]
    assert names.count("interrupted") == 1
    assert names[-1] == "not_run"
    assert proposal.n_run == names.index("interrupted") + 1


def test_exceptions_of_the_callback_are_raised():
    data, weights, alphas = long_path()

    def ask():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        kernel.solve(data, weights, 1e-9, alphas=alphas, interrupted=ask)


@pytest.mark.usefixtures("heeds_interrupts")
def test_a_signal_ends_a_solve():
    """Where nobody asks to be asked, too: Python handles signals only when C calls it."""
    data, weights, alphas = long_path()
    for delay in (0.05, 0.12, 0.2):
        timer = threading.Timer(delay, signal.raise_signal, [signal.SIGINT])
        with pytest.raises(KeyboardInterrupt):  # noqa: PT012
            timer.start()
            for _ in range(100):
                kernel.solve(data, weights, 1e-9, alphas=alphas)


def test_a_solve_within_a_callback():
    data, weights, alphas = long_path()
    X, Y = make_data()
    lam = 0.1 * go.lam_max(X, Y, "oscar") * go.weights.oscar(X.shape[1])
    alone = kernel.solve(data, weights, 1e-9, alphas=alphas[:55])
    inner = []

    def ask():
        inner.append(kernel.solve(kernel.KernelData(X, Y), lam, 1e-6).values)
        return False

    found = kernel.solve(data, weights, 1e-9, alphas=alphas[:55], interrupted=ask)
    np.testing.assert_array_equal(found.values, alone.values)
    assert len(inner) > 0
    for values in inner:
        np.testing.assert_array_equal(values, inner[0])


def test_threads_do_not_disturb_each_other():
    problems = []
    for seed in range(4):
        X, Y = make_data(seed, n=60, d=150)
        weights = go.weights.oscar(150)
        problems.append((kernel.KernelData(X, Y), weights, go.lam_max(X, Y, weights) * np.geomspace(1.0, 0.1, 20)))

    def run(data, weights, alphas):
        return kernel.solve(data, weights, 1e-6, alphas=alphas).values

    expected = [run(*problem) for problem in problems]
    found = [None] * 8

    def work(slot):
        for _ in range(5):
            found[slot] = run(*problems[slot % 4])

    threads = [threading.Thread(target=work, args=(slot,)) for slot in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for slot in range(8):
        np.testing.assert_array_equal(found[slot], expected[slot % 4])


# Hostile data ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [1e-60, 1e-8, 1e8, 1e60])
def test_scales(scale):
    X, Y = make_data(10)
    lam = 0.2 * go.lam_max(X, Y, "oscar") * go.weights.oscar(X.shape[1])
    proposal = kernel.solve(kernel.KernelData(scale * X, Y), scale * lam, 1e-6 * np.sum(Y * Y))
    problem = build_problem(scale * X, Y, scale * lam)
    assert proposal.status[0] == 0
    assert problem.certify(proposal.stack()[0]).gap <= 1e-6 * np.sum(Y * Y)


def test_degenerate_data():
    X, Y = make_data(11, d=40)
    X[:, 3] = 0.0
    X[:, 5] = X[:, 4]
    X[:, 6] = -X[:, 4]
    X[:, 7] = 1.0
    for lam in (np.ones(40), np.linspace(2.0, 0.0, 40), np.repeat([3.0, 1.0, 0.0, 0.0], 10)):
        problem = build_problem(X, Y, lam)
        proposal = propose(problem, kernel.KernelData(X, Y), lam)
        assert not proposal.stack()[0][3].any()
        if proposal.status[0] == 0:
            assert judge(problem, proposal) <= 1.0


def test_nothing_to_explain():
    X, _ = make_data(12)
    proposal = kernel.solve(kernel.KernelData(X, np.zeros((len(X), 2))), np.ones(X.shape[1]), 0.0)
    assert proposal.status[0] == 0
    assert len(proposal.row) == 0


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_numbers_that_are_not_finite_end_a_solve(bad):
    for where in "XY":
        X, Y = make_data(13)
        (X if where == "X" else Y)[2, 1] = bad
        proposal = kernel.solve(kernel.KernelData(X, Y), np.ones(X.shape[1]), 1e-6)
        assert proposal.status[0] != 0 or not np.isfinite(proposal.gap[0])


# The loader --------------------------------------------------------------------------------------------------


def test_info():
    info = kernel.kernel_info()
    assert info.name == "compiled"
    assert info.compiler in str(info)
    assert info.reason == ""
