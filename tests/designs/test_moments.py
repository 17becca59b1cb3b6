"""Moments of columns block by block: the same as from all samples at once, exact for constant columns."""

from __future__ import annotations

from functools import reduce
from operator import add

import numpy as np
import pytest
import scipy.sparse as sp

from groupowl.designs import as_design
from groupowl.designs.base import ColumnMoments

MAKERS = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "float32": lambda A: A.astype(np.float32),
    "csr": sp.csr_array,
    "csc": sp.csc_array,
}


def make_table(n=400, seed=0):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, 6)) * (rng.random((n, 6)) < 0.7)
    A[:, 1], A[:, 2], A[:, 3] = 2.3, 0.0, A[:, 3] + 1e6
    return A.astype(np.float32).astype(float), rng.uniform(0.1, 3.0, (n, 1))


def moments_of_blocks(X, w, cuts):
    parts = np.split(np.arange(len(w)), cuts)
    return reduce(add, (as_design(X[rows]).moments(w[rows]) for rows in parts))


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
@pytest.mark.parametrize("cuts", [[], [1], [17, 200, 399], list(range(1, 400))], ids=["one", "two", "four", "each row"])
def test_blocks_add_up(make, cuts):
    A, w = make_table()
    found = moments_of_blocks(make(A), w, cuts)
    mean = (w * A).sum(axis=0) / w.sum()
    assert found.total_weight == pytest.approx(w.sum(), rel=1e-14)
    np.testing.assert_allclose(found.mean, mean, rtol=1e-14, atol=1e-15)
    deviation = np.sqrt((w * (A - mean) ** 2).sum(axis=0))
    np.testing.assert_allclose(np.sqrt(found.squares), deviation, rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(found.norms(), np.sqrt((w * A * A).sum(axis=0)), rtol=1e-13)


@pytest.mark.parametrize("make", [np.ascontiguousarray, np.asfortranarray], ids=["C", "F"])
def test_constant_columns_are_exact(make):
    """Whatever the offset and the number of blocks, where all of the blocks know their mean exactly."""
    constants = np.array([1e8 + 0.1, -1e15, 1 / 3, 1e-300, 0.0])
    A = np.tile(constants, (1000, 1))
    w = np.random.default_rng(0).uniform(0.1, 1.0, (1000, 1))
    found = moments_of_blocks(make(A), w, np.arange(7, 1000, 7))
    np.testing.assert_array_equal(found.mean, constants)
    assert not found.squares.any()


def test_many_blocks_keep_a_small_spread_on_a_large_offset():
    A = (1e8 + np.arange(5000) % 2 * 1e-6)[:, None]
    w = np.full((5000, 1), 1 / 5000)
    found = moments_of_blocks(A, w, np.arange(1, 5000))
    spread = np.ptp(A) / 2
    assert np.sqrt(found.squares[0] / found.total_weight) == pytest.approx(spread, rel=1e-3)
    assert found.mean[0] - 1e8 == pytest.approx(spread, abs=2e-8)


def test_columns_side_by_side():
    A, w = make_table()
    whole = as_design(A).moments(w)
    parts = [as_design(A[:, columns]).moments(w) for columns in (slice(0, 2), slice(2, 6))]
    found = ColumnMoments.side_by_side(parts)
    np.testing.assert_allclose(found.mean, whole.mean, rtol=1e-14)
    np.testing.assert_allclose(found.norms(), whole.norms(), rtol=1e-14)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("weight", [1.0, 0.3])
@pytest.mark.parametrize("n_hard", [3, 20])
def test_moments_from_one_product_are_those_of_two_passes(order, dtype, weight, n_hard):
    """Columns whose means cancel are looked at twice: a constant one has exactly its value as mean."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 30)) + 0.3 * rng.standard_normal(30)
    X[:, :n_hard] += 1e6
    X[:, 1], X[:, 2], X[:, -1] = 0.1, 0.0, 0.0
    X, w = np.asarray(X, dtype=dtype, order=order), np.full((50, 1), weight)
    design = as_design(X)
    found, expected = design.compute_moments(w), design._moments_in_two_passes(w)
    np.testing.assert_allclose(found.mean, expected.mean, rtol=1e-15, atol=1e-15)
    np.testing.assert_allclose(found.squares, expected.squares, rtol=1e-13)
    np.testing.assert_array_equal(found.mean[[1, 2, -1]], X[0, [1, 2, -1]])
    assert not found.squares[[1, 2, -1]].any()
    assert design.passes.total == 0.0
