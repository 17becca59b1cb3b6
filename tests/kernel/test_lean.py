"""Whole fits in one call of the kernel: what they prove is what NumPy proves, and what is unusual goes the long way."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import twin_support

import groupowl as go
from groupowl import kernel, solvers
from groupowl.problem import build_problem
from groupowl.screening import RULES, safe_rows
from groupowl.solvers import check_settings, lean_solve

pytestmark = pytest.mark.skipif(not kernel.is_available(), reason=str(kernel.kernel_info()))

ROOT = Path(__file__).parents[2]


def make_data(seed, n=40, d=30, q=2, offset=1.0, order="C"):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) + offset * rng.standard_normal(d)
    B = np.zeros((d, q))
    B[: min(4, d)] = rng.standard_normal((min(4, d), q))
    Y = X @ B + rng.standard_normal((n, q)) + offset
    return np.asarray(X, order=order), Y


def lean(X, Y, lam, *, fit_intercept=False, screening="safe", tol=1e-6, loss="squared", solver="auto", callback=None):
    settings = check_settings(solver, screening, tol, 10_000, callback)
    return lean_solve(X, Y, lam, settings, loss=loss, fit_intercept=fit_intercept)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("weights", ["constant", "oscar", "bh"])
@pytest.mark.parametrize("shape", [(40, 30, 2), (30, 90, 1), (60, 8, 3), (3, 5, 1), (7, 1, 2)], ids=str)
def test_all_that_is_proved_is_what_numpy_proves(order, fit_intercept, weights, shape):
    X, Y = make_data(0, *shape, order=order)
    lam = go.lam_max(X, Y, weights, fit_intercept=fit_intercept) * getattr(go.weights, weights)(shape[1])
    assert lean(X, Y, 1.01 * lam, fit_intercept=fit_intercept) is None  # that nothing is best is known exactly
    for fraction, tol in ((0.9, 1e-6), (0.5, 1e-4), (0.1, 1e-8)):
        settings = {"fit_intercept": fit_intercept, "tol": tol}
        result = lean(X, Y, fraction * lam, **settings)
        assert result is not None
        problem = build_problem(X, Y, fraction * lam, fit_intercept=fit_intercept)
        certificate = problem.certify(result.B)
        kept = safe_rows(problem, certificate, np.arange(shape[1]), RULES["safe"])
        kept = np.union1d(kept, result.support)
        np.testing.assert_array_equal(result.active, kept)
        np.testing.assert_array_equal(np.flatnonzero(result.screened_at < 0), kept)
        np.testing.assert_array_equal(result.clusters, problem.penalty.clusters(result.B))
        np.testing.assert_allclose(result.theta, certificate.theta, atol=1e-11 * problem.samples.norm)
        assert result.history.gap[-1] == result.gap
        assert result.history.n_nonzero[-1] == len(result.support)
        slow = go.solve(X, Y, fraction * lam, sample_weight=np.ones(len(X)), **settings)
        assert abs(result.primal - slow.primal) <= result.gap + slow.gap + 1e-14 * slow.primal
        assert result.status == slow.status == "converged"


def make_labels_or_counts(loss, seed, n=40, d=30, q=1, order="C"):
    X, Z = make_data(seed, n, d, q, order=order)
    Z -= Z.mean(axis=0)
    rng = np.random.default_rng(seed)
    Y = 1.0 * (Z + rng.logistic(size=Z.shape) > 0.0) if loss == "logistic" else 1.0 * rng.poisson(np.exp(0.3 * Z))
    return X, Y


@pytest.mark.parametrize("loss", ["logistic", "poisson"])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("weights", ["constant", "oscar"])
@pytest.mark.parametrize("shape", [(40, 30, 1), (30, 90, 1), (60, 8, 3), (12, 1, 2)], ids=str)
def test_other_losses_prove_what_numpy_proves(loss, order, fit_intercept, weights, shape):
    X, Y = make_labels_or_counts(loss, 0, *shape, order=order)
    options = {"fit_intercept": fit_intercept, "loss": loss}
    lam = go.lam_max(X, Y, weights, **options) * getattr(go.weights, weights)(shape[1])
    assert lean(X, Y, 1.01 * lam, **options) is None  # that nothing is best is known exactly
    for fraction, tol in ((0.9, 1e-6), (0.3, 1e-4)):
        result = lean(X, Y, fraction * lam, tol=tol, **options)
        assert result is not None
        problem = build_problem(X, Y, fraction * lam, **options)
        B = problem.from_input(result.B, result.intercept if fit_intercept else None)
        certificate = problem.certify(B)
        assert certificate.gap <= result.gap * (1.0 + 1e-6) + 2.0 * certificate.rounding
        upper = np.minimum(problem.upper_bounds(certificate), problem.local_bounds(certificate))
        kept = np.union1d(RULES["safe"].kept(upper, problem.lam), result.support)
        np.testing.assert_array_equal(result.active, kept)
        np.testing.assert_array_equal(np.flatnonzero(result.screened_at < 0), kept)
        np.testing.assert_array_equal(result.clusters, problem.penalty.clusters(result.B))
        np.testing.assert_allclose(result.theta, certificate.theta, atol=1e-9 * problem.samples.norm)
        slow = go.solve(X, Y, fraction * lam, sample_weight=np.ones(len(X)), tol=tol, **options)
        assert abs(result.primal - slow.primal) <= result.gap + slow.gap + 1e-14 * abs(slow.primal)
        assert result.status == slow.status == "converged"


@pytest.mark.parametrize("loss", ["logistic", "poisson"])
@pytest.mark.parametrize(
    "change", ["theta", "theta_norm", "correlations", "primal", "gap", "distance", "balancing", "squares", "largest"]
)
def test_a_wrong_number_of_other_losses_is_noticed(loss, change, monkeypatch):
    X, Y = make_labels_or_counts(loss, 1)
    options = {"fit_intercept": True, "loss": loss}
    lam = 0.3 * go.lam_max(X, Y, "oscar", **options) * go.weights.oscar(30)
    how = options | {"tol": 1e-4, "part": 0.5, "max_steps": 1000}
    found = twin_support.compared_fit(X, Y, lam, **how)
    assert found is not None
    wrong = np.multiply(getattr(found, change), 0.9)
    monkeypatch.setattr(twin_support, "compiled_fit", lambda *args, **kwargs: found._replace(**{change: wrong}))
    with pytest.raises(AssertionError, match=f"differs from its definition: {change}"):
        twin_support.compared_fit(X, Y, lam, **how)


UNUSUAL_TARGETS = {
    "a negative entry": lambda Y: Y - 1.0,
    "hardly varying, beyond certainty": lambda Y: 1.0 + 1e-9 * (Y + 1.0),
    "a gap": lambda Y: np.where(np.arange(len(Y))[:, None] == 3, np.nan, Y),
    "infinity": lambda Y: np.where(np.arange(len(Y))[:, None] == 3, np.inf, Y),
    "nothing": lambda Y: 0.0 * Y,
    "huge": lambda Y: 1e120 * Y,
}


@pytest.mark.parametrize("name", UNUSUAL_TARGETS)
@pytest.mark.parametrize("loss", ["logistic", "poisson"])
def test_unusual_targets_of_other_losses_go_the_long_way(loss, name):
    X, Y = make_labels_or_counts(loss, 2)
    lam = 0.3 * go.lam_max(X, Y, "oscar", fit_intercept=True, loss=loss) * go.weights.oscar(30)
    assert lean(X, Y, lam, fit_intercept=True, loss=loss) is not None
    with np.errstate(all="ignore"):
        assert lean(X, UNUSUAL_TARGETS[name](Y), lam, fit_intercept=True, loss=loss) is None


def test_other_estimators_fit_in_one_call(monkeypatch):
    for loss in ("logistic", "poisson"):
        X, Y = make_labels_or_counts(loss, 5)
        if loss == "logistic":
            estimator, y = go.GroupOWLClassifier(alpha=0.02, weights="oscar"), Y[:, 0].astype(int)
        else:
            estimator, y = go.GroupOWLRegressor(alpha=0.02, weights="oscar", loss="poisson"), Y[:, 0]
        with monkeypatch.context() as patch:
            patch.setattr(solvers.continuation.Continuation, "solve_all", None)  # which is the long way
            short = estimator.fit(X, y)
            coefficients, gap, primal = short.coef_, short.dual_gap_, short.solve_result_.primal
        assert short.verify(X, y)
        with monkeypatch.context() as patch:
            patch.setattr(kernel, "whole_fit", lambda *args, **how: None)
            slow = estimator.fit(X, y)
        assert abs(primal - slow.solve_result_.primal) <= gap + slow.dual_gap_
        np.testing.assert_allclose(coefficients, slow.coef_, atol=2e-3)


@pytest.mark.parametrize("change", ["norms", "rounding_norms", "theta", "correlations", "theta_norm", "primal", "gap"])
def test_a_wrong_number_is_noticed(change, monkeypatch):
    """The comparison in every test would see it."""
    X, Y = make_data(1)
    lam = 0.3 * go.lam_max(X, Y, "oscar", fit_intercept=True) * go.weights.oscar(30)
    how = {"fit_intercept": True, "tol": 1e-4, "part": 0.5, "max_steps": 1000}
    found = twin_support.compared_fit(X, Y, lam, **how)
    assert found is not None
    wrong = np.multiply(getattr(found, change), 0.9)
    monkeypatch.setattr(twin_support, "compiled_fit", lambda *args, **kwargs: found._replace(**{change: wrong}))
    with pytest.raises(AssertionError, match=f"differs from its definition: {change}"):
        twin_support.compared_fit(X, Y, lam, **how)


UNUSUAL = {
    "a gap": lambda X, Y, lam: (np.where(X[0, 0] == X, np.nan, X), Y, lam),
    "infinity": lambda X, Y, lam: (np.where(X[0, 0] == X, np.inf, X), Y, lam),
    "a zero column": lambda X, Y, lam: (X * (np.arange(X.shape[1]) > 0), Y, lam),
    "a constant column": lambda X, Y, lam: (np.where(np.arange(X.shape[1]) > 0, X, 3.0), Y, lam),
    "hardly varying": lambda X, Y, lam: (X + 1e5 * (np.arange(X.shape[1]) == 0), Y, lam),
    "huge": lambda X, Y, lam: (1e120 * X, Y, lam),
    "tiny": lambda X, Y, lam: (1e-120 * X, Y, lam),
    "squares overflow": lambda X, Y, lam: (1e200 * X, Y, lam),
    "single precision": lambda X, Y, lam: (X.astype(np.float32), Y, lam),
    "a list": lambda X, Y, lam: (X.tolist(), Y, lam),
    "a matrix": lambda X, Y, lam: (X.view(np.matrix), Y, lam),
    "no samples": lambda X, Y, lam: (X[:0], Y[:0], lam),
    "a gap in Y": lambda X, Y, lam: (X, np.where(Y[0, 0] == Y, np.nan, Y), lam),
    "constant Y": lambda X, Y, lam: (X, np.full_like(Y, 2.0), lam),
    "zero Y": lambda X, Y, lam: (X, 0.0 * Y, lam),
    "huge Y": lambda X, Y, lam: (X, 1e120 * Y, lam),
    "hardly varying Y": lambda X, Y, lam: (X, Y + 1e5, lam),
    "too few Y": lambda X, Y, lam: (X, Y[1:], lam),
    "no tasks": lambda X, Y, lam: (X, Y[:, :0], lam),
    "whole numbers": lambda X, Y, lam: (X, Y.astype(int), lam),
    "rising weights": lambda X, Y, lam: (X, Y, lam[::-1].copy()),
    "negative weights": lambda X, Y, lam: (X, Y, lam - lam.mean()),
    "weights that end": lambda X, Y, lam: (X, Y, lam * (np.arange(len(lam)) < 5)),
    "a weight missing": lambda X, Y, lam: (X, Y, lam[1:]),
    "a gap in weights": lambda X, Y, lam: (X, Y, np.where(np.arange(len(lam)) == 5, np.nan, lam)),
    "huge weights": lambda X, Y, lam: (X, Y, 1e100 * lam),
    "a list of weights": lambda X, Y, lam: (X, Y, lam.tolist()),
}


@pytest.mark.parametrize("name", UNUSUAL)
@pytest.mark.parametrize("order", ["C", "F"])
def test_what_is_unusual_goes_the_long_way(name, order):
    X, Y = make_data(2, order=order)
    lam = 0.3 * go.lam_max(X, Y, "oscar", fit_intercept=True) * go.weights.oscar(30)
    assert lean(X, Y, lam, fit_intercept=True) is not None
    with np.errstate(all="ignore"):
        changed = UNUSUAL[name](X, Y, lam)
    assert lean(*changed, fit_intercept=True) is None


ASKED = {
    "a callback": {"callback": lambda progress: None},
    "another solver": {"solver": "apgd"},
    "a size of working sets": {"solver": go.WorkingSet(first_size=10)},
    "statistics": {"solver": go.WorkingSet(compress=True)},
    "no truth value": {"fit_intercept": "yes"},
    "another loss": {"loss": "multinomial"},
}


@pytest.mark.parametrize("how", ASKED.values(), ids=ASKED.keys())
def test_what_is_asked_for_goes_the_long_way(how):
    X, Y = make_data(2)
    lam = 0.3 * go.lam_max(X, Y, "oscar") * go.weights.oscar(30)
    assert lean(X, Y, lam, **how) is None


def misaligned(X):
    """The same numbers at an address that no number begins at."""
    memory = np.zeros(X.nbytes + 1, dtype=np.uint8)
    view = np.ndarray(X.shape, np.float64, memory.data, offset=1)
    view[:] = X
    return view


def test_repeated_lines_are_not_read_beyond_their_memory():
    """An array without memory of its own for each row: what a broadcast makes."""
    rng = np.random.default_rng(0)
    for X in (np.broadcast_to(rng.standard_normal(6), (9, 6)), np.broadcast_to(rng.standard_normal((9, 1)), (9, 6))):
        data = kernel.KernelData(X, rng.standard_normal((9, 2)))
        assert data.struct.stride == 6
        np.testing.assert_array_equal(data.keep[0], X)
        assert data.keep[0].flags.c_contiguous


def test_data_in_any_layout():
    X, Y = make_data(3, n=50, d=60)
    lam = 0.1 * go.lam_max(X, Y, "oscar", fit_intercept=True) * go.weights.oscar(30)
    parts = [X[::2, ::2], X[5:30, 7:37], np.asfortranarray(X)[5:30, 7:37], X.T[:30].T[:25], X[::-1][:25, 30:]]
    parts += [X[:25, :30][::-1], X[:25, :30][:, ::-1], np.asfortranarray(X[:25, :30])[:, ::-1], misaligned(X[:25, :30])]
    for part in parts:
        for targets in (Y[: len(part)], Y[::-1][: len(part)], Y[: len(part), 0], np.asfortranarray(Y[: len(part)])):
            found = lean(part, targets, lam, fit_intercept=True)
            expected = go.solve(part, targets, lam, fit_intercept=True, solver="apgd", tol=1e-9)
            assert abs(found.primal - expected.primal) <= found.gap + expected.gap + 1e-14 * expected.primal


def test_nothing_depends_on_data_that_change_later():
    X, Y = make_data(4)
    lam = 0.3 * go.lam_max(X, Y, "oscar") * go.weights.oscar(30)
    expected, result = (go.solve(X, Y, lam, fit_intercept=True) for _ in range(2))
    kept = {name: np.array(getattr(expected, name)) for name in ("active", "clusters", "screened_at", "theta", "B")}
    X[:], Y[:] = 0.0, 1e9
    for name, value in kept.items():
        np.testing.assert_array_equal(getattr(result, name), value)


@pytest.mark.parametrize("weight", [None, np.ones(40)], ids=["short", "long"])
def test_weights_may_change_later(weight):
    """Results are made when they are read, from the weights as they were."""
    X, Y = make_data(4)
    lam = 0.3 * go.lam_max(X, Y, "oscar") * go.weights.oscar(30)
    expected, result = (go.solve(X, Y, lam, sample_weight=weight) for _ in range(2))
    (many,) = go.solve_many(X, Y, [lam], n_jobs=1)
    kept = expected.active
    assert 0 < len(kept) < 30
    lam *= 1e-3
    np.testing.assert_array_equal(result.active, kept)
    np.testing.assert_array_equal(many.active, kept)


def test_weights_in_any_layout():
    X, Y = make_data(4)
    lam = 0.3 * go.lam_max(X, Y, "linear") * go.weights.linear(30)
    for view in (np.repeat(lam, 2)[::2], lam[::-1].copy()[::-1], np.column_stack([lam, 0 * lam])[:, 0]):
        found, expected = lean(X, Y, view), go.solve(X, Y, lam)
        assert found.primal == expected.primal
        np.testing.assert_array_equal(found.B, expected.B)


@pytest.mark.parametrize("flat", [False, True])
@pytest.mark.parametrize("weights", ["oscar", "constant", go.weights.linear(30)], ids=["oscar", "constant", "an array"])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_estimators_fit_the_same_model_in_one_call(flat, weights, fit_intercept, monkeypatch):
    X, Y = make_data(5)
    y = Y[:, 0] if flat else Y
    estimator = go.GroupOWLRegressor(alpha=0.2, weights=weights, fit_intercept=fit_intercept)
    with monkeypatch.context() as patch:
        patch.setattr(solvers.continuation.Continuation, "solve_all", None)  # which is the long way
        short = go.GroupOWLRegressor(**estimator.get_params()).fit(X, y)
    monkeypatch.setattr(kernel, "whole_fit", lambda *args, **how: None)
    slow = estimator.fit(X, y)
    assert vars(short).keys() == vars(slow).keys()
    assert abs(short.solve_result_.primal - slow.solve_result_.primal) <= short.dual_gap_ + slow.dual_gap_
    np.testing.assert_allclose(short.coef_, slow.coef_, atol=2e-3)
    np.testing.assert_allclose(short.intercept_, slow.intercept_, atol=2e-2)
    assert short.coef_.shape == slow.coef_.shape
    np.testing.assert_array_equal(short.weights_, slow.weights_)
    assert short.verify(X, y)
    assert slow.verify(X, y)


def test_what_a_fit_makes_when_it_is_read_is_about_the_fit():
    """Whatever happens meanwhile to data and coefficients; and nothing keeps theta."""
    X, Y = make_data(5, q=1)
    Y = Y[:, 0]  # coefficients of one task are a view
    (read, late, other), data = (go.GroupOWLRegressor(0.2).fit(X, Y) for _ in range(3)), (X.copy(), Y.copy())
    kept = {name: np.array(getattr(read, name)) for name in ("clusters_", "screened_fraction_")}
    assert 0.0 < kept["screened_fraction_"] < 1.0
    X[:], Y[:] = 0.0, 1e9
    assert "clusters_" not in vars(late)
    again = pickle.loads(pickle.dumps(other))
    late.coef_[:] = 1.0
    for name, value in kept.items():
        np.testing.assert_array_equal(getattr(late, name), value)
        np.testing.assert_array_equal(getattr(again, name), value)
    with pytest.raises(AttributeError, match="theta is not stored"):
        _ = read.solve_result_.theta
    assert read.verify(*data)
    for name in kept:
        vars(read)[name] = 1 + np.array(kept[name])
        assert not read.verify(*data)
        del vars(read)[name]
    assert read.verify(*data)
    assert not hasattr(go.GroupOWLRegressor(), "clusters_")


@pytest.mark.usefixtures("heeds_interrupts")
def test_a_signal_ends_a_whole_fit():
    import signal
    import threading

    X, Y = make_data(6, n=300, d=800, q=8)
    lam = 1e-4 * go.lam_max(X, Y, "oscar") * go.weights.oscar(800)
    timer = threading.Timer(0.1, signal.raise_signal, [signal.SIGINT])
    with pytest.raises(KeyboardInterrupt):  # noqa: PT012
        timer.start()
        for _ in range(1000):
            kernel.whole_fit(X, Y, lam, fit_intercept=False, tol=1e-12, part=0.1, max_steps=100_000)


SCRIPT = """
import ctypes, sys
import numpy as np
import groupowl as go
from groupowl import kernel

rng = np.random.default_rng(0)
X, Y = rng.standard_normal((40, 30)), rng.standard_normal((40, 3))
lam = 0.3 * go.lam_max(X, Y, "oscar") * go.weights.oscar(30)
assert go.kernel_info().name == "compiled", go.kernel_info()
kind = ctypes.c_int.in_dll(ctypes.CDLL(kernel.kernel_info().path), "nonsense_kind")
calls, fit = [], kernel.whole_fit
kernel.whole_fit = lambda *args, **how: calls.append(fit(*args, **how)) or calls[-1]
for fit_intercept in (False, True):
    arguments = {"fit_intercept": fit_intercept, "max_iter": 10**6}
    expected = go.solve(X, Y, lam, tol=1e-10, solver="apgd", screening="none", **arguments)
    for kind.value in range(5):
        del calls[:]
        result = go.solve(X, Y, lam, **arguments)
        assert calls == [None], calls
        assert result.converged
        assert expected.dual - 1e-12 <= result.primal <= expected.primal + result.gap + 1e-12
        assert not expected.B[np.setdiff1d(np.arange(30), result.active)].any()
print("right")
"""


@pytest.mark.skipif("GROUPOWL_KERNEL_LIBRARY" in os.environ, reason="another build of the kernel is tested")
def test_a_solver_that_returns_nonsense_costs_time_only(tmp_path):
    """The certificate of a whole fit is computed from the coefficients alone, whatever found them."""
    sys.path.insert(0, str(ROOT))
    from hatch_build import source_stamp

    sources = [path for path in sorted((ROOT / "native").glob("*.c")) if path.name != "solve.c"]
    library = tmp_path / "nonsense.so"
    command = [os.environ.get("CC", "cc"), "-O1", "-std=c99", "-shared", "-fPIC", f"-I{ROOT / 'native'}", "-w"]
    command += [
        f'-DGO_STAMP="{source_stamp()}"',
        "-o",
        library,
        *sources,
        Path(__file__).with_name("nonsense.c"),
        "-lm",
    ]
    subprocess.run(command, check=True)
    environment = dict(os.environ, GROUPOWL_KERNEL_LIBRARY=str(library))
    done = subprocess.run([sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=False)
    assert done.stdout == "right\n", done.stderr


@pytest.mark.parametrize("change", ["theta_norm", "primal", "dual", "gap", "rounding", "theta", "correlations"])
def test_a_wrong_certificate_of_a_path_is_noticed(change, monkeypatch):
    """The comparison in every test would see it."""
    X, Y = make_data(7)
    looks = twin_support.compiled_looks

    def wrong_looks(*args):
        found = looks(*args)
        residual, certificate = found[-1]
        wrong = np.multiply(getattr(certificate, change), 0.9)
        return [*found[:-1], (residual, replace(certificate, **{change: wrong}))]

    assert len(go.group_owl_path(X, Y, alphas=8)) == 8
    monkeypatch.setattr(twin_support, "compiled_looks", wrong_looks)
    names = {"theta": "dual point", "correlations": "correlations of the dual point"}
    with pytest.raises(AssertionError, match=f"differs from its definition: {names.get(change, change)}"):
        go.group_owl_path(X, Y, alphas=8)


@pytest.mark.parametrize(
    "options", [{}, {"standardize": True}, {"fit_intercept": False}, {"sample_weight": "some"}], ids=str
)
@pytest.mark.parametrize("shape", [(40, 30, 2), (20, 60, 1), (200, 12, 3)], ids=str)
def test_paths_by_compiled_certificates_are_those_by_numpy(options, shape, monkeypatch):
    X, Y = make_data(8, *shape)
    if "sample_weight" in options:
        options = {"sample_weight": np.random.default_rng(0).uniform(0.5, 2.0, len(X))}
    compiled = go.group_owl_path(X, Y, alphas=20, eps=0.02, **options)
    monkeypatch.setattr(solvers.continuation, "twin_looks", lambda *args: None)
    expected = go.group_owl_path(X, Y, alphas=20, eps=0.02, **options)
    for one, other in zip(compiled, expected, strict=True):
        assert one.status == other.status == "converged"
        assert abs(one.primal - other.primal) <= one.gap + other.gap + 1e-14 * other.primal
        np.testing.assert_array_equal(one.support, other.support)
        np.testing.assert_allclose(one.rows, other.rows, rtol=1e-9, atol=1e-12)
