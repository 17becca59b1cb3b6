"""Sums of many terms: no product loses more digits than certificates allow for, however many terms are equal."""

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp

import groupowl as go
from groupowl import kernel
from groupowl.designs import as_design
from groupowl.designs.wrapped import StandardizedDesign
from groupowl.norm.kernels import EPS, owl_value, vector_product
from groupowl.problem import build_problem
from groupowl.solvers.continuation import twin_looks

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


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("n_samples", [1000, 20_000, 200_000])
def test_correlations_with_equal_residuals_keep_their_digits(storage, n_samples, tmp_path):
    """Sums over samples: what they lose stays below what sums of the objective may lose, however many samples."""
    X, value = tied(6, 1, n_samples)
    design = as_design(STORAGES[storage](X, tmp_path))
    for n_tasks in (1, 3):
        C = design.rmatmul(np.full((n_samples, n_tasks), value))
        for column, found in zip(X.T, C, strict=True):
            exact = Fraction(value) * int(column.sum())
            assert all(abs(Fraction(entry) - exact) <= 64 * EPS * exact for entry in found)


@pytest.mark.skipif(not kernel.is_available(), reason=str(kernel.kernel_info()))
@pytest.mark.parametrize("more", [0, 1])
def test_the_compiled_certificate_is_asked_about_few_samples_only(more, monkeypatch):
    """Its sums over samples are not cut into pieces."""
    X = np.random.default_rng(0).standard_normal((kernel.MOST_CERTIFIED_SAMPLES + more, 3))
    Y, lam = X[:, :1], 10.0 * go.weights.oscar(3)
    looks = twin_looks(build_problem(X, Y, lam), kernel.KernelData(X, Y), lam[None], np.ones((1, 3, 1)))
    assert (looks is None) == bool(more)
    asked = []
    monkeypatch.setattr("groupowl.kernel.whole_fit", lambda *_, **__: asked.append(True))
    go.solve(X, Y, lam)
    assert len(asked) == 1 - more


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
