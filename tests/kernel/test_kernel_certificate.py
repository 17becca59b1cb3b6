"""The compiled certificate against the one of the problem, which is the definition."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import kernel_support
import numpy as np
import pytest
import scipy.sparse as sp

import groupowl as go
from groupowl import kernel
from groupowl.norm.penalty import GroupOWL
from groupowl.problem import build_problem
from support import make_case

pytestmark = pytest.mark.skipif(not kernel.is_available(), reason=str(kernel.kernel_info()))


def coefficients(rng, X, Y, lam, **options):
    """From far away to optimal."""
    d, q = X.shape[1], Y.shape[1]
    yield np.zeros((d, q))
    yield rng.standard_normal((d, q))
    yield np.where(rng.random((d, 1)) < 0.2, 1e-3 * rng.standard_normal((d, q)), 0.0)
    for tol in (1e-2, 1e-6, 1e-10):
        yield go.solve(X, Y, lam, tol=tol, **options).B


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("kind", ["C", "F", "csc"])
def test_agrees_with_the_definition(seed, weighted, fit_intercept, kind):
    rng = np.random.default_rng(seed)
    n, d, q = (int(rng.integers(low, high)) for low, high in ((5, 60), (1, 90), (1, 5)))
    X = rng.standard_normal((n, d)) * 10.0 ** rng.uniform(-1, 1, d) + rng.uniform(-2, 2, d)
    Y = 10.0 ** rng.uniform(-3, 3) * rng.standard_normal((n, q)) + 1.0
    w = rng.uniform(0.2, 3.0, n) if weighted else None
    shape = [go.weights.constant, go.weights.oscar, go.weights.linear][seed % 3](d)
    options = {"fit_intercept": fit_intercept, "sample_weight": w}
    lam = 0.2 * go.lam_max(X, Y, shape, **options) * shape
    problem = build_problem(X, Y, lam, **options)
    given = {"C": X, "F": np.asfortranarray(X), "csc": sp.csc_matrix(X)}[kind]
    data = kernel.KernelData(
        given, problem.samples.Y, mean=problem.design.mean, sample_weight=w, fit_intercept=fit_intercept
    )
    for B in coefficients(rng, X, Y, lam, **options):
        compare(problem, data, lam, B)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize(("n", "d"), [(3, 5), (255, 258), (257, 6), (515, 3)])
@pytest.mark.parametrize("q", range(1, 10))
def test_products_of_any_shape(q, n, d, order):
    """Few tasks are multiplied in pieces of lines and columns, which may end anywhere; rows of zeros are left out."""
    rng = np.random.default_rng(q)
    X, Y = np.asarray(rng.standard_normal((n, d)), order=order), rng.standard_normal((n, q))
    problem, data = build_problem(X, Y, np.ones(d)), kernel.KernelData(X, Y)
    for share in (0.1, 0.5, 1.0):
        B = rng.standard_normal((d, q))
        B[rng.random((d, q)) > share] = 0.0
        compare(problem, data, np.ones(d), B)


def test_units_of_several_rows():
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((30, 12)), rng.standard_normal((30, 2))
    sizes = np.array([2, 1, 3, 6])
    penalty = GroupOWL(np.array([4.0, 3.0, 2.0, 1.0]), np.repeat(np.arange(4), sizes))
    problem = replace(build_problem(X, Y, np.ones(12)), penalty=penalty)
    data = kernel.KernelData(X, Y, unit_starts=np.concatenate([[0], np.cumsum(sizes)]))
    for B in (np.zeros((12, 2)), rng.standard_normal((12, 2)), problem.prox(rng.standard_normal((12, 2)), 0.3)):
        compare(problem, data, penalty.lam, B)


def test_a_path_at_once():
    rng = np.random.default_rng(3)
    X, Y = rng.standard_normal((40, 70)), rng.standard_normal((40, 2))
    weights = go.weights.oscar(70)
    problem, data = build_problem(X, Y, weights), kernel.KernelData(X, Y)
    alphas = problem.lam_max(weights) * np.geomspace(1.0, 0.05, 12)
    proposal = kernel.solve(data, weights, problem.goal(1e-6), alphas=alphas)
    certifier = kernel_support.Certifier(data, problem.norms, problem.rounding_norms, problem.samples.norm)
    found = certifier.certify_path(weights, alphas, proposal)
    for k, alpha in enumerate(alphas):
        single = certifier.certify(alpha * weights, proposal.stack()[k])
        assert found.gap[k] == pytest.approx(single.gap, rel=1e-9, abs=1e-13 * problem.null_loss)
        assert found.primal[k] == pytest.approx(single.primal, rel=1e-13)
        np.testing.assert_allclose(found.correlations[k], single.correlations, rtol=1e-10, atol=1e-12)
        certificate = problem.with_lam(alpha * weights).certify(proposal.stack()[k])
        assert found.gap[k] == pytest.approx(certificate.gap, rel=1e-9, abs=1e-13 * problem.null_loss)


@pytest.mark.parametrize("loss", ["logistic", "poisson"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("kind", ["C", "F", "csc"])
def test_other_losses_agree_with_the_definition(loss, weighted, fit_intercept, kind):
    for seed in range(4):
        case = make_case(seed, n=20 + 10 * seed, d=12 + 30 * (seed % 2), q=2 + seed % 2, loss=loss, weighted=weighted)
        options = {"loss": loss, "fit_intercept": fit_intercept, "sample_weight": case.sample_weight}
        d, rng = case.X.shape[1], np.random.default_rng(seed)
        lam = 0.2 * go.lam_max(case.X, case.Y, "oscar", **options) * go.weights.oscar(d)
        problem = build_problem(case.X, case.Y, lam, **options)
        given = {"C": case.X, "F": np.asfortranarray(case.X), "csc": sp.csc_matrix(case.X)}[kind]
        data = kernel.KernelData(
            given, problem.samples.Y, loss, mean=problem.design.mean, sample_weight=case.sample_weight,
            fit_intercept=fit_intercept,
        )  # fmt: skip
        for B in coefficients(rng, case.X, case.Y, lam, **options):
            rows = 0.1 * B if loss == "poisson" and not problem.certify(problem.from_input(B, None)).gap < 1e3 else B
            if rows.any():  # that nothing is selected is left to the definition
                compare(problem, data, lam, problem.from_input(rows, rng.standard_normal(rows.shape[1])))


def test_a_dual_point_that_cannot_be_balanced_proves_nothing(monkeypatch):
    """What is left of its sums is found, and counts: here for weights beyond all digits."""
    case = make_case(0, n=20, d=6, q=1, loss="poisson")
    w = np.r_[1e30, np.full(19, 1e-30)]
    problem = build_problem(case.X, case.Y, np.ones(6), loss="poisson", fit_intercept=True, sample_weight=w)
    data = kernel.KernelData(case.X, case.Y, "poisson", mean=problem.design.mean, sample_weight=w, fit_intercept=True)
    certifier = kernel_support.Certifier(data, problem.norms, problem.rounding_norms, problem.samples.norm)
    rows = np.full((6, 1), 1e-3)
    found = certifier.certify(np.ones(6), rows, np.zeros(1))
    left = problem.unpenalized.constant_value * abs(float(np.sum(found.theta)))
    assert found.imbalance >= 0.5 * left
    assert found.dual_error >= 0.5 * abs(found.scale) * left * found.reach


def compare(problem, data, lam, B):
    expected = problem.certify(B)
    residual, block, n_rows = expected.residual, problem.unpenalized, problem.n_rows
    certifier = kernel_support.Certifier(data, problem.norms, problem.rounding_norms, problem.samples.norm)
    found = certifier.certify(lam, B[:n_rows], block.intercept(B[n_rows:]) if block.n_rows else None)
    assert found.cancelling == pytest.approx(residual.cancelling, rel=1e-11)
    assert found.balancing == pytest.approx(residual.balancing, rel=1e-9, abs=1e-13 * residual.reach)
    assert found.imbalance <= 1e-13 * (residual.norm + problem.samples.norm)
    if block.n_rows:
        np.testing.assert_allclose(found.raw, residual.raw, rtol=1e-9, atol=1e-13 * residual.reach)
    size = problem.null_loss + expected.primal
    assert found.loss == pytest.approx(residual.loss, rel=1e-12, abs=1e-14 * size)
    assert found.primal == pytest.approx(expected.primal, rel=1e-12, abs=1e-14 * size)
    assert found.dual == pytest.approx(expected.dual, rel=1e-10, abs=1e-13 * size)
    assert found.gap == pytest.approx(expected.gap, rel=1e-9, abs=1e-13 * size)
    left = residual.reach * (residual.imbalance + found.imbalance)  # rounding, which differs
    assert found.rounding == pytest.approx(expected.rounding, rel=1e-9, abs=1e-28 * size + left)
    assert found.reach == pytest.approx(residual.reach, rel=1e-12)
    assert found.norm == pytest.approx(residual.norm, rel=1e-11)
    slack = 1e-13 * residual.reach * problem.rounding_norms.max()
    np.testing.assert_allclose(found.correlations, residual.correlations, rtol=1e-10, atol=slack)
    np.testing.assert_allclose(abs(found.scale) * found.correlations, expected.correlations, rtol=1e-9, atol=slack)
    np.testing.assert_allclose(found.theta, residual.theta, rtol=1e-9, atol=1e-13 * residual.reach)
    np.testing.assert_allclose(found.products, residual.products, rtol=1e-9, atol=slack)


@pytest.mark.parametrize("shape", [(1, 60_000), (60_000, 1)])
@pytest.mark.parametrize("weights", ["constant", "oscar"])
def test_long_sums_keep_their_digits(shape, weights):
    """Sums of tied coefficients, or of equal samples, lose no more digits than the certificate allows for."""
    n, d = shape
    X = np.random.default_rng(0).integers(1, 4, shape).astype(float)
    Y, B = np.full((n, 1), 0.3), np.full((d, 1), 0.1)
    lam = 0.7 * getattr(go.weights, weights)(d)
    residuals = (Fraction(0.3) - Fraction(0.1) * int(row.sum()) for row in X)
    exact = sum(r * r for r in residuals) / 2 + Fraction(0.1) * sum(map(Fraction, lam))
    problem, data = build_problem(X, Y, lam), kernel.KernelData(X, Y)
    certifier = kernel_support.Certifier(data, problem.norms, problem.rounding_norms, problem.samples.norm)
    for certificate in (certifier.certify(lam, B), problem.certify(B)):
        assert abs(Fraction(certificate.primal) - exact) <= certificate.rounding
