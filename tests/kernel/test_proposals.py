"""What the kernel proposes is never believed: nonsense costs time, and no proof is wrong by it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import groupowl as go
from groupowl import kernel
from support import make_case

pytestmark = pytest.mark.skipif(not kernel.is_available(), reason=str(kernel.kernel_info()))


def nothing(proposal, rng):
    """The model without features, said to be optimal."""
    return replace(proposal, first=0 * proposal.first, row=proposal.row[:0], values=proposal.values[:0])


def noise(proposal, rng):
    """Random coefficients."""
    return replace(proposal, values=rng.standard_normal(proposal.values.shape), intercept=0 * proposal.intercept)


def huge(proposal, rng):
    """Coefficients whose squares overflow."""
    return replace(proposal, values=np.full(proposal.values.shape, 1e200))


def not_a_number(proposal, rng):
    """Coefficients that are no numbers."""
    return replace(proposal, values=np.full(proposal.values.shape, np.nan), intercept=np.nan * proposal.intercept)


def other_rows(proposal, rng):
    """The right coefficients of the wrong rows."""
    return replace(proposal, row=rng.permutation(proposal.n_rows)[proposal.row])


@pytest.mark.parametrize("fault", [nothing, noise, huge, not_a_number, other_rows])
@pytest.mark.parametrize("loss", ["squared", "multinomial"])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_a_faulty_kernel_costs_time_only(fault, loss, fit_intercept, monkeypatch):
    case = make_case(3, n=40, d=30, q=3, loss=loss)
    arguments = {"loss": loss, "fit_intercept": fit_intercept}
    lam = 0.3 * go.lam_max(case.X, case.Y, "oscar", **arguments) * go.weights.oscar(30)
    expected = go.solve(case.X, case.Y, lam, tol=1e-9, solver="apgd", screening="none", max_iter=10**6, **arguments)
    solve, rng = kernel.solve, np.random.default_rng(0)
    monkeypatch.setattr(kernel, "solve", lambda *args, **settings: fault(solve(*args, **settings), rng))
    result = go.solve(case.X, case.Y, lam, sample_weight=np.ones(40), **arguments)  # which is no whole fit
    assert result.converged
    assert expected.dual - 1e-12 <= result.primal <= expected.primal + result.gap + 1e-12
    proved_zero = np.setdiff1d(np.arange(30), result.active)
    assert not expected.B[proved_zero].any()


@pytest.mark.parametrize("fault", [nothing, noise, huge, not_a_number, other_rows])
def test_a_path_of_a_faulty_kernel_costs_time_only(fault, monkeypatch):
    case = make_case(4, n=40, d=30, q=3)
    expected = go.group_owl_path(case.X, case.Y, alphas=20, eps=0.05, tol=1e-9, solver="apgd", screening="none")
    solve, rng = kernel.solve, np.random.default_rng(0)
    monkeypatch.setattr(kernel, "solve", lambda *args, **settings: fault(solve(*args, **settings), rng))
    path = go.group_owl_path(case.X, case.Y, alphas=20, eps=0.05)
    assert set(path.statuses) == {"converged"}
    for point, other in zip(path, expected, strict=True):
        assert other.primal - other.gap - 1e-12 <= point.primal <= other.primal + point.gap + 1e-12


def test_the_compiled_kernel_is_what_solves(monkeypatch):
    """Otherwise the tests of this folder would say nothing about solves."""
    calls, solve, fit = [], kernel.solve, kernel.fit_squared
    monkeypatch.setattr(kernel, "solve", lambda *args, **settings: calls.append(1) or solve(*args, **settings))
    monkeypatch.setattr(kernel, "fit_squared", lambda *args, **settings: calls.append(2) or fit(*args, **settings))
    case = make_case(0, n=30, d=20, q=2)
    lam = 0.3 * go.lam_max(case.X, case.Y, "oscar") * go.weights.oscar(20)
    assert go.solve(case.X, case.Y, lam).converged
    assert go.solve(case.X, case.Y, lam, sample_weight=np.ones(30)).converged
    assert calls == [2, 1]
    del calls[:]
    assert go.solve(case.X, case.Y, lam, callback=lambda progress: None).converged
    assert not calls  # whoever looks at each certificate gets those of the Python solver


def test_a_solve_in_the_kernel_can_be_interrupted(monkeypatch):
    def interrupted(*args, **settings):
        raise KeyboardInterrupt

    monkeypatch.setattr(kernel, "solve", interrupted)
    monkeypatch.setattr(kernel, "fit_squared", interrupted)
    case = make_case(0, n=30, d=20, q=2)
    for weight in (None, np.ones(30)):
        with pytest.raises(KeyboardInterrupt):
            go.solve(case.X, case.Y, np.ones(20), sample_weight=weight)


def test_a_start_that_is_optimal_takes_one_step():
    """Whatever the kernel thinks of it: rows that a start has pulled apart are one cluster again."""
    case = make_case(1, n=40, d=30, q=2)
    lam = 0.3 * go.lam_max(case.X, case.Y, "linear") * go.weights.linear(30)
    first = go.solve(case.X, case.Y, lam, tol=1e-12)
    assert np.bincount(first.clusters)[1:].max() > 1
    apart = first.B * (1.0 + 1e-7 * np.arange(30))[:, None]
    again = go.solve(case.X, case.Y, lam, B_init=apart, tol=1e-4)
    assert again.converged
    np.testing.assert_array_equal(again.clusters, first.clusters)
