"""What the kernel proposes is never believed: nonsense costs time, and no proof is wrong by it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import groupowl as go
from groupowl import kernel
from groupowl.path import solve_path
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
@pytest.mark.parametrize("loss", go.kernel_info().losses)
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
    calls, solve, fit = [], kernel.solve, kernel.whole_fit
    monkeypatch.setattr(kernel, "solve", lambda *args, **settings: calls.append(1) or solve(*args, **settings))
    monkeypatch.setattr(kernel, "whole_fit", lambda *args, **settings: calls.append(2) or fit(*args, **settings))
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
    monkeypatch.setattr(kernel, "whole_fit", interrupted)
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


# What it is asked for ----------------------------------------------------------------------------------------

GAPS = np.where(np.random.default_rng(0).random((40, 3)) < 0.2, np.nan, 0.0)
NEIGHBORS, APART = np.arange(30) // 2, np.arange(30) % 15
#: What ``kernel_info`` says no compiled kernel knows, with arguments that ask for it; and what it does know.
LEFT_TO_NUMPY = {
    "missing targets": [{"Y": GAPS}],
    "offsets (but of squared loss)": [
        {"offset": np.linspace(-1.0, 1.0, 40), "loss": loss} for loss in ("poisson", "logistic")
    ],
    "single fits of multinomial loss (its paths are compiled)": [
        {"loss": "multinomial"},
        {"loss": "multinomial", "sample_weight": np.arange(1.0, 41.0)},
    ],
    "weights per target": [{"sample_weight": 1.0 + np.arange(120).reshape(40, 3)}],
    "ridge": [{"ridge": 0.1}],
    "signs": [{"positive": True}, {"positive": np.eye(30)[3]}],
    "unpenalized features (but on sufficient statistics)": [
        {"penalty_factor": {0: 0.0}, "solver": go.WorkingSet(compress=False)}
    ],
    "feature groups that are orthonormal or whose columns are apart": [
        {"feature_groups": NEIGHBORS, "group_scale": "orthonormal"},
        {"feature_groups": APART},
    ],
}
ALWAYS_COMPILED = [loss for loss in go.kernel_info().losses if loss != "multinomial"]
COMPILED = [
    {},
    *({"loss": loss} for loss in ALWAYS_COMPILED),
    *({"loss": loss, "sample_weight": np.arange(1.0, 41.0)} for loss in ALWAYS_COMPILED),
    {"sample_weight": np.arange(1.0, 41.0)},
    {"offset": np.linspace(-1.0, 1.0, 40)},
    {"feature_groups": NEIGHBORS, "loss": "poisson"},
    {"feature_groups": NEIGHBORS},
    {"feature_groups": NEIGHBORS, "group_scale": "frobenius"},
    {"penalty_factor": {0: 2.0, 1: np.inf}},
    {"penalty_factor": {0: 0.0}, "solver": go.WorkingSet(compress=True)},
]


def is_compiled(asked, monkeypatch):
    """Whether the compiled kernel has proposed anything for a solve with these arguments."""
    proposals = []
    for name in ("solve", "whole_fit"):
        own = getattr(kernel, name)
        monkeypatch.setattr(kernel, name, lambda *args, own=own, **given: _kept(proposals, own(*args, **given)))
    case = make_case(3, n=40, d=30, q=3)
    loss = asked.get("loss", "squared")
    Y = case.Y if loss == "squared" else make_case(3, n=40, d=30, q=3, loss=loss).Y
    arguments = {"X": case.X, "fit_intercept": True} | asked | {"Y": Y + asked.get("Y", 0.0)}
    settings = {"solver": arguments.pop("solver", "auto")}
    n_units = 15 if "feature_groups" in asked else 29 if "solver" in asked else 30
    weights = go.weights.oscar(n_units)
    lam = 0.3 * go.lam_max(**arguments, weights=weights) * weights
    assert go.solve(**arguments, **settings, lam=lam).converged
    return any(found is not None for found in proposals)


def _kept(proposals, found):
    proposals.append(found)
    return found


@pytest.mark.parametrize("name", go.kernel_info().left_to_numpy)
def test_what_is_left_to_numpy_is_not_compiled(name, monkeypatch):
    assert name in str(go.kernel_info())
    for asked in LEFT_TO_NUMPY[name]:
        assert not is_compiled(asked, monkeypatch)


@pytest.mark.parametrize("asked", COMPILED, ids=lambda asked: "+".join([asked.get("loss", ""), *asked]) or "plain")
def test_everything_else_is_compiled(asked, monkeypatch):
    assert is_compiled(asked, monkeypatch)


@pytest.mark.parametrize("loss", go.kernel_info().losses)
def test_paths_of_all_losses_are_compiled(loss, monkeypatch):
    proposals, own = [], kernel.solve
    monkeypatch.setattr(kernel, "solve", lambda *args, **given: _kept(proposals, own(*args, **given)))
    case = make_case(3, n=40, d=30, q=3, loss=loss)
    data = {"loss": loss, "fit_intercept": True}
    largest = go.lam_max(case.X, case.Y, np.ones(30), **data)
    results = solve_path(case.X, case.Y, "constant", strengths=[0.5 * largest, 0.3 * largest], **data)
    assert all(result.converged for result in results)
    assert proposals
