"""One contract over all designs: the same data give the same objective, wherever they are."""

from __future__ import annotations

import dask
import numpy as np
import pytest
import scipy.sparse as sp

import groupowl as go
from dask_support import COLLECTIONS
from groupowl.designs import MemmapDesign, as_design, standardize
from storage_support import STORAGES
from support import OpaqueDesign, make_case

N, D, Q = 90, 25, 3
IN_MEMORY = {
    "array by rows": np.ascontiguousarray,
    "array by columns": np.asfortranarray,
    "single precision": lambda A: A.astype(np.float32),
    "CSR": sp.csr_array,
    "CSC in single precision": lambda A: sp.csc_array(A.astype(np.float32)),
}
KINDS = IN_MEMORY | {
    **{f"disk, {name}": lambda A, make=make: MemmapDesign(make(A)) for name, make in STORAGES.items()},
    **{f"Dask, {name}": make for name, make in COLLECTIONS.items()},
}


def make_data(loss):
    """Half of X is zero; all of it, columns far from zero too, is exact in single precision."""
    case = make_case(3, n=N, d=D, q=Q, loss=loss)
    X = np.where(np.random.default_rng(1).random((N, D)) < 0.5, 0.0, case.X)
    X[:, 4] += 20.0
    weight = np.random.default_rng(2).integers(0, 4, N) / 2.0
    y = case.Y if loss == "squared" else np.argmax(case.Y, axis=1)
    return X.astype(np.float32).astype(np.float64), y, weight


def objective(X, y, weight, loss, standardize):
    kind = go.GroupOWLRegressor if loss == "squared" else go.GroupOWLClassifier
    model = kind(0.1, standardize=standardize, tol=1e-10).fit(X, y, sample_weight=weight)
    result = model.solve_result_
    assert result.converged
    assert 0 < len(result.support) < D
    return result.primal, result.dual


@pytest.mark.parametrize("standardize", [False, True], ids=["", "standardized"])
@pytest.mark.parametrize("loss", ["squared", "multinomial"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_same_objective(kind, loss, standardize):
    """With intercept and sample weights, of which some are zero."""
    X, y, weight = make_data(loss)
    expected, _ = objective(X, y, weight, loss, standardize)
    with dask.config.set(scheduler="synchronous"):
        primal, dual = objective(KINDS[kind](X), y, weight, loss, standardize)
    assert primal == pytest.approx(expected, rel=1e-8)
    assert dual <= expected * (1 + 1e-12)  # weak duality: a bound for the same minimum


def is_slightly_above(found, exact, size):
    """Bounds may be larger by rounding of numbers of this size, never smaller."""
    return np.all(found >= exact - 1e-13 * size) and np.all(found <= exact + 1e-11 * size)


@pytest.mark.parametrize("scaled", [False, True], ids=["", "standardized"])
@pytest.mark.parametrize("centered", [False, True], ids=["", "centered"])
@pytest.mark.parametrize("kind", [*KINDS, "default methods"])
def test_squared_products_and_ranges(kind, centered, scaled):
    """What local bounds are made of, from the columns as the problem has them; on some of the columns too."""
    X, _, weight = make_data("squared")
    weight = weight + 1.0
    rng = np.random.default_rng(4)
    H = rng.random((N, 2)) * (rng.random((N, 2)) < 0.8)
    with dask.config.set(scheduler="synchronous"):
        own = OpaqueDesign.of(X) if kind == "default methods" else as_design(KINDS[kind](X))
        design = standardize(own, own.samples(weight[:, None]), center=centered, scale=scaled)
        mean, factor = np.average(X, axis=0, weights=weight), np.ones(D)
        if scaled:
            factor = 1 / np.sqrt(np.average((X - mean) ** 2, axis=0, weights=weight))
        A, whole = (X - mean if centered else X) * factor, (np.abs(X) + np.abs(mean)) * factor
        exact, size = (A * A).T @ H, (whole * whole).T @ H
        assert is_slightly_above(design.squared_products(design.samples(H)), exact, size)
        some = np.array([1, 4, 20])
        assert is_slightly_above(design.restrict(some).squared_products(design.samples(H)), exact[some], size[some])
        lowest, highest = design.ranges()
    if kind == "default methods":  # the norms are bounds
        assert np.all(lowest <= A.min(axis=0))
        assert np.all(highest >= A.max(axis=0))
    else:
        np.testing.assert_allclose([lowest, highest], [A.min(axis=0), A.max(axis=0)], atol=1e-12)
