"""`go.solve_many`: the answers of a loop over `go.solve`, each with its own proof, whatever the number of threads."""

import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import groupowl as go
from groupowl import kernel
from groupowl.solvers import many as module
from support import make_case

N_FITS = 20  # more than one thread works on at a time


def drawn(case, what):
    """Arguments that differ between fits, and those of each fit alone."""
    rng = np.random.default_rng(1)
    n = case.X.shape[0]
    if what == "sample_weight":
        weights = rng.multinomial(n, np.full(n, 1 / n), size=N_FITS).astype(float)
        return {"sample_weight": weights}, [{"sample_weight": weight} for weight in weights]
    if what == "subsamples":
        samples = [rng.integers(-n, n, size=n) for _ in range(N_FITS)]
        alone = [{"sample_weight": np.bincount(rows % n, minlength=n).astype(float)} for rows in samples]
        return {"subsamples": samples}, alone
    if what == "Y":
        targets = [case.Y[rng.permutation(n)] for _ in range(N_FITS)]
        return {"Y": targets}, [{"Y": Y} for Y in targets]
    lams = np.linspace(1.5, 0.5, N_FITS)[:, None] * case.lam
    return {"lam": lams}, [{"lam": lam} for lam in lams]


def assert_same_answers(found, alone, case):
    """Both are proved, so that objectives differ by no more than the gaps; what one has proved zero is zero there."""
    assert len(found) == len(alone)
    for result, changes in zip(found, alone, strict=True):
        expected = go.solve(**{**case.arguments(), **changes})
        assert result.converged
        assert expected.converged
        assert abs(result.primal - expected.primal) <= max(result.gap, expected.gap)
        own = replace(case, **changes)
        assert own.objective(result.B, result.intercept) == pytest.approx(result.primal, rel=1e-9)
        dropped = np.setdiff1d(np.arange(len(case.lam)), result.active)
        assert not expected.B[dropped].any()
        assert result.theta.shape[1] == case.Y.shape[1]


@pytest.mark.parametrize("what", ["sample_weight", "subsamples", "Y", "lam"])
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize(
    "kind",
    [
        {"n": 30, "d": 60},
        {"n": 60, "d": 8},
        {"n": 30, "d": 40, "sparse": True},
        {"n": 60, "d": 8, "loss": "multinomial"},
    ],
    ids=["wide", "tall", "sparse", "multinomial"],
)
def test_a_call_gives_the_answers_of_a_loop(kind, fit_intercept, what):
    case = make_case(3, q=2, fit_intercept=fit_intercept, **kind)
    changes, alone = drawn(case, what)
    assert_same_answers(go.solve_many(**{**case.arguments(), **changes}), alone, case)


def test_several_arguments_differ_together():
    case = make_case(4, n=30, d=20)
    (targets, of_target), (weights, of_weight), (lams, of_lam) = (
        drawn(case, what) for what in ("Y", "sample_weight", "lam")
    )
    alone = [{**a, **b, **c} for a, b, c in zip(of_target, of_weight, of_lam, strict=True)]
    assert_same_answers(go.solve_many(**{**case.arguments(), **targets, **weights, **lams}), alone, case)
    alone = [{**a, **c} for a, c in zip(of_target, of_lam, strict=True)]
    assert_same_answers(go.solve_many(**{**case.arguments(), **targets, **lams}), alone, case)


def test_targets_share_weights_that_leave_samples_out():
    case = make_case(5, n=40, d=10, fit_intercept=True)
    case = replace(case, sample_weight=np.arange(40.0) % 3)
    changes, alone = drawn(case, "Y")
    assert_same_answers(go.solve_many(**{**case.arguments(), **changes}), alone, case)


@pytest.mark.parametrize("what", ["sample_weight", "Y", "lam"])
@pytest.mark.parametrize("solver", ["auto", "spgd"])
def test_results_do_not_depend_on_the_number_of_threads(what, solver):
    case = make_case(6, n=40, d=10)
    changes, _ = drawn(case, what)
    settings = {**case.arguments(), **changes, "solver": solver, "tol": 1e-4, "random_state": 0}
    one, two, all_of_them = (go.solve_many(**settings, n_jobs=n_jobs) for n_jobs in (None, 2, -1))
    for result, other, last in zip(one, two, all_of_them, strict=True):
        np.testing.assert_array_equal(result.B, other.B)
        np.testing.assert_array_equal(result.B, last.B)
        assert (result.gap, result.n_iter, result.n_passes) == (other.gap, other.n_iter, other.n_passes)
        np.testing.assert_array_equal(result.screened_at, other.screened_at)


def test_forms_of_many():
    """A stack of targets, a list of flat ones, of frames' values and of different widths, masks, lists of lists."""
    case = make_case(7, n=20, d=6, q=2)
    X, Y, lam = case.X, case.Y, case.lam
    flat = go.solve_many(X, list(Y.T), lam)
    assert [result.B.shape for result in flat] == [(6, 1)] * 2
    stacked = go.solve_many(X, np.stack([Y, 2 * Y]), lam)
    alone, expected = go.solve_many(X, [Y], lam)[0], go.solve(X, Y, lam)
    for result in (stacked[0], alone, go.solve_many(X.tolist(), Y.tolist(), [lam.tolist()] * 2)[1]):
        assert abs(result.primal - expected.primal) <= max(result.gap, expected.gap)
    assert [result.B.shape for result in go.solve_many(X, [Y, Y[:, 0]], lam)] == [(6, 2), (6, 1)]
    mask = np.arange(20) < 15
    by_mask, by_index = go.solve_many(X, Y, lam, subsamples=[mask, list(range(15))])
    np.testing.assert_array_equal(by_mask.B, by_index.B)


def test_a_start_serves_all_fits():
    case = make_case(8, n=40, d=60, fit_intercept=True)
    changes, alone = drawn(case, "sample_weight")
    whole = go.solve(**case.arguments())
    found = go.solve_many(**{**case.arguments(), **changes}, B_init=whole.B, intercept_init=whole.intercept)
    assert_same_answers(found, alone, case)


def test_statistics_have_many_weight_vectors():
    case = make_case(9, n=40, d=6)
    changes, alone = drawn(case, "lam")
    found = go.solve_many(go.SufficientStatistics.from_arrays(case.X, case.Y), None, changes["lam"], n_jobs=2)
    for result, own in zip(found, alone, strict=True):
        expected = go.solve(case.X, case.Y, **own)
        assert abs(result.primal - expected.primal) <= max(result.gap, expected.gap)


@pytest.mark.parametrize("what", ["sample_weight", "Y", "lam"])
def test_matrices_on_disk(what, tmp_path):
    case = make_case(10, n=30, d=8)
    np.save(tmp_path / "X.npy", case.X)
    design = go.MemmapDesign(tmp_path / "X.npy")
    changes, alone = drawn(case, what)
    found = go.solve_many(**{**case.arguments(), **changes, "X": design}, n_jobs=2)
    assert_same_answers(found, alone, case)


def test_fine_tolerances_are_met():
    """Below 1e-8 the rounding of a shared Gram matrix could forbid the proof."""
    case = make_case(11, n=60, d=8)
    changes, _ = drawn(case, "Y")
    found = go.solve_many(**{**case.arguments(), **changes}, tol=1e-10)
    assert all(result.converged for result in found)


def test_results_of_large_subsamples_keep_no_samples(monkeypatch):
    case = make_case(12, n=30, d=20)
    changes, _ = drawn(case, "sample_weight")
    lazy = go.solve_many(**{**case.arguments(), **changes})
    monkeypatch.setattr(module, "_MOST_ENTRIES", 100)
    made = go.solve_many(**{**case.arguments(), **changes})
    for result, other in zip(made, lazy, strict=True):
        assert not any(map(callable, vars(result).values()))
        np.testing.assert_array_equal(result.screened_at, other.screened_at)
        np.testing.assert_array_equal(result.theta, other.theta)
        assert len(result.history) == len(other.history)


def test_one_warning_for_all_fits():
    case = make_case(13, n=30, d=20)
    changes, _ = drawn(case, "Y")
    with pytest.warns(ConvergenceWarning, match="20 of 20 fits fell short of tol, the first at index 0") as caught:
        found = go.solve_many(**{**case.arguments(), **changes}, solver="apgd", max_iter=1)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert {result.status for result in found} == {"max_iter"}


# Errors -------------------------------------------------------------------------------------------------


def refused(match, **changes):
    case = make_case(0, n=20, d=6, q=2)
    with pytest.raises((ValueError, TypeError), match=match) as caught:
        go.solve_many(**{"X": case.X, "Y": case.Y, "lam": case.lam, **changes})
    return caught.value


def test_one_fit_is_refused_with_what_to_write():
    message = str(refused("there is one fit only: Y of shape"))
    assert "list(Y.T)" in message
    assert "use solve" in message


def test_different_numbers_of_fits_are_refused():
    Y, lam = np.ones((3, 20, 2)), np.ones((2, 6))
    refused("there are 3 of Y and 2 of lam. What differs between fits must be given once for each", Y=Y, lam=lam)


@pytest.mark.parametrize("name", ["Y", "sample_weight", "subsamples"])
def test_no_fits_are_refused(name):
    refused(f"{name} is empty: at least one fit is needed", **{name: []})


def test_weights_and_subsamples_are_refused():
    refused("sample_weight and subsamples were both given", sample_weight=np.ones(20), subsamples=[[0, 1]])


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"subsamples": [[0, 1], [0, 20]]}, r"subsamples\[1\] has indices from 0 to 20, but there are 20 samples"),
        ({"subsamples": [[]]}, r"subsamples\[0\] is empty"),
        ({"subsamples": np.arange(20)}, r"subsamples\[0\] must be indices .* subsamples=\[indices\]"),
        (
            {"subsamples": [[0.5]]},
            r"subsamples\[0\] must be indices or a mask, got an array of shape \(1,\) and dtype float64",
        ),
        ({"subsamples": [np.zeros(20, dtype=bool)]}, r"subsamples\[0\] is empty"),
        ({"sample_weight": np.zeros((2, 20))}, r"sample_weight\[0\] is all zero"),
        ({"sample_weight": np.ones((2, 19))}, r"sample_weight\[0\] must have one weight per sample"),
        ({"sample_weight": -np.ones((2, 20))}, r"sample_weight\[0\] must be non-negative"),
        ({"lam": [np.ones(6), np.arange(6.0)]}, r"lam\[1\] must be non-increasing"),
        ({"lam": [[1.0], [1.0, 2.0]]}, "lam cannot be read as a rectangular array"),
        ({"Y": [np.ones(20), np.ones(19)]}, r"X and Y\[1\] must have one row per sample"),
        ({"Y": [np.ones(20), np.full(20, np.nan)]}, r"Y\[1\] has 20 NaN or infinite entries"),
        ({"Y": np.ones((2, 20, 1)), "n_jobs": 0}, "n_jobs must be None or an integer"),
        ({"Y": np.ones((2, 20, 1)), "n_jobs": 1.5}, "n_jobs must be None or an integer"),
    ],
)
def test_errors_name_what_is_wrong(changes, match):
    refused(match, **changes)


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_errors_of_a_fit_say_which(n_jobs):
    Y = np.ones((20, 20, 1))
    Y[17] *= 1e200
    error = refused("so large", Y=Y, n_jobs=n_jobs)
    assert "This was fit 17 of solve_many." in error.__notes__


# Interrupts ---------------------------------------------------------------------------------------------


def test_an_error_ends_all_threads(monkeypatch):
    case = make_case(14, n=30, d=20)
    others, solve = threading.Event(), module.Continuation.solve

    def watched(self, lam):
        if lam[0] == 1.0:
            others.wait()
            raise ZeroDivisionError
        others.set()
        while True:  # as a long solve does
            self.settings.interrupted()
            time.sleep(0.001)

    monkeypatch.setattr(module, "lean_solve", lambda *args, **options: None)
    monkeypatch.setattr(module.Continuation, "solve", watched)
    before = threading.active_count()
    lams = np.linspace(1.0, 2.0, 40)[:, None] * np.ones(20)
    with pytest.raises(ZeroDivisionError):
        go.solve_many(case.X, case.Y, lams, n_jobs=2)
    assert threading.active_count() == before
    monkeypatch.setattr(module.Continuation, "solve", solve)
    assert len(go.solve_many(case.X, case.Y, lams, n_jobs=2)) == 40


PROGRAM = """
import signal, threading, numpy as np, groupowl as go
signal.signal(signal.SIGINT, signal.default_int_handler)  # which shells switch off for what runs in the background
data = go.datasets.make_correlated_groups(200, 400, 5, random_state=0)
lam = 0.01 * go.lam_max(data.X, data.Y, "oscar") * go.weights.oscar(400)
rng = np.random.default_rng(0)
halves = [rng.choice(200, 100, replace=False) for _ in range(3000)]
print("ready", flush=True)
try:
    go.solve_many(data.X, data.Y, lam, subsamples=halves, n_jobs=2)
except KeyboardInterrupt:
    print("interrupted", threading.active_count(), flush=True)
"""


@pytest.mark.skipif(os.name == "nt", reason="signals are sent to groups of processes there")
def test_an_interrupt_reaches_the_user_and_leaves_no_threads():
    with subprocess.Popen([sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "ready\n"
        time.sleep(1.0)
        process.send_signal(signal.SIGINT)
        printed, _ = process.communicate(timeout=60)
    assert printed == "interrupted 1\n"
    assert process.returncode == 0


@pytest.mark.skipif(not kernel.is_available(), reason=str(kernel.kernel_info()))
def test_a_faulty_kernel_costs_time_only(monkeypatch):
    solve, rng = kernel.solve, np.random.default_rng(0)
    monkeypatch.setattr(module, "lean_solve", lambda *args, **options: None)

    def noise(*args, **settings):
        found = solve(*args, **settings)
        return replace(found, values=rng.standard_normal(found.values.shape))

    case = make_case(15, n=30, d=20)
    changes, alone = drawn(case, "sample_weight")
    with monkeypatch.context() as patch:
        patch.setattr(kernel, "solve", noise)
        found = go.solve_many(**{**case.arguments(), **changes})
    assert_same_answers(found, alone, case)
