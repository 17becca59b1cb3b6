"""Sums of many terms: no product may lose more digits than certificates allow for, however many coefficients are tied."""

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp

import groupowl as go
from groupowl.designs import as_design
from groupowl.designs.wrapped import StandardizedDesign
from groupowl.norm.kernels import EPS, owl_value, vector_product

# What Problem allows for errors of the predictor, relative to the sizes of its terms.
ALLOWED = 8 * EPS


def tied(n_features, seed, n_samples=3):
    """Small integers, and coefficients that are all of one size, as a cluster has them: all terms have one sign."""
    rng = np.random.default_rng(seed)
    X = rng.integers(1, 4, (n_samples, n_features)).astype(np.float64)
    return X, 0.1 * (1.0 + 1e-9 * seed)


def memory_map(tmp_path, X, order):
    np.save(tmp_path / "X.npy", np.asarray(X, order=order))
    return np.load(tmp_path / "X.npy", mmap_mode="r")


STORAGES = {
    "rows": lambda X, _: X,
    "columns": lambda X, _: np.asfortranarray(X),
    "single precision": lambda X, _: X.astype(np.float32),
    "single precision by columns": lambda X, _: np.asfortranarray(X, dtype=np.float32),
    "csr": lambda X, _: sp.csr_array(X),
    "csc": lambda X, _: sp.csc_array(X),
    "csc in single precision": lambda X, _: sp.csc_array(X.astype(np.float32)),
    "rows on disk": lambda X, folder: memory_map(folder, X, "C"),
    "columns on disk": lambda X, folder: memory_map(folder, X, "F"),
}


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("n_features", [128, 129, 1000, 66_000])
def test_products_with_tied_coefficients_keep_their_digits(storage, n_features, tmp_path):
    for seed in range(4):
        X, b = tied(n_features, seed)
        Z = as_design(STORAGES[storage](X, tmp_path)).matmul(np.full((n_features, 2), b))
        for row, found in zip(X, Z, strict=True):
            exact = Fraction(b) * int(row.sum())
            assert all(abs(Fraction(value) - exact) <= ALLOWED * exact for value in found)


@pytest.mark.parametrize("n_features", [100, 1000, 66_000])
def test_shifts_of_centered_columns_keep_their_digits(n_features):
    """What is left of a predictor is that of the columns less the means, which are long sums as well."""
    X, b = tied(n_features, 1)
    design = StandardizedDesign(as_design(X), np.full(n_features, 3.0), np.ones(n_features))
    Z = design.matmul(np.full((n_features, 1), b))
    for row, found in zip(X, Z[:, 0], strict=True):
        exact = Fraction(b) * int((row - 3.0).sum())
        assert abs(Fraction(found) - exact) <= ALLOWED * Fraction(b) * int(row.sum() + 3 * n_features)


def test_products_with_several_vectors_at_once():
    rng = np.random.default_rng(0)
    a, B = rng.standard_normal(1000), rng.standard_normal((3, 1000, 4))
    np.testing.assert_allclose(vector_product(a, B), a @ B, rtol=1e-12)


@pytest.mark.parametrize("weights", ["constant", "oscar"])
def test_the_norm_of_tied_coefficients_keeps_its_digits(weights):
    for seed in range(4):
        _, b = tied(1, seed)
        lam = getattr(go.weights, weights)(66_000)
        exact = Fraction(b) * sum(map(Fraction, lam))
        assert abs(Fraction(owl_value(np.full(66_000, b), lam)) - exact) <= 8 * EPS * exact


def test_sums_of_rows_that_are_empty_or_long():
    """Long rows of a CSR array are cut; empty ones and short ones beside them stay what they are."""
    rng = np.random.default_rng(0)
    X = np.zeros((6, 1000))
    X[1], X[3, :200], X[4, 5] = rng.standard_normal(1000), 1.0, 2.0
    B = rng.standard_normal((1000, 3))
    for convert in (sp.csr_array, sp.csc_array):
        np.testing.assert_allclose(as_design(convert(X)).matmul(B), X @ B, rtol=1e-13, atol=1e-13)
