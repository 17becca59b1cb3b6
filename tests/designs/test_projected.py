"""Designs with unpenalized columns projected out, against the dense matrix that they stand for."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from groupowl.designs import as_design, project_out, standardize

N, D = 30, 9
FREE = np.array([1, 4, 6])  # 6 is twice 1: the basis has rank 2
DEPENDENT = 7  # penalized, but in the span of the unpenalized ones

KINDS = {
    "dense": np.asfortranarray,
    "float32": lambda X: X.astype(np.float32),
    "csr": sp.csr_array,
    "csc": sp.csc_array,
}


def make_matrix():
    rng = np.random.default_rng(0)
    X = np.round(rng.standard_normal((N, D)) * (rng.random((N, D)) < 0.7) * 64) / 64  # single precision holds it
    X[:, 6] = 2.0 * X[:, 1]
    X[:, DEPENDENT] = X[:, 1] - X[:, 4]
    return X, rng.uniform(0.2, 2.0, (N, 1))


def make_pair(kind, center):
    """The design, and the dense matrix that it must equal, both by the definition."""
    X, w = make_matrix()
    design = project_out(standardize(as_design(KINDS[kind](X)), w, center=center, scale=False), FREE, w)
    A = X - (w * X).sum(axis=0) / w.sum() if center else X
    root = np.sqrt(w)
    expected = A - A[:, FREE] @ np.linalg.lstsq(root * A[:, FREE], root * A, rcond=1e-10)[0]
    expected[:, [*FREE, DEPENDENT]] = 0.0
    return design, expected, w


every_pair = pytest.mark.parametrize(("kind", "center"), [(kind, center) for kind in KINDS for center in (False, True)])


@every_pair
def test_products_are_those_of_the_projected_matrix(kind, center):
    design, A, w = make_pair(kind, center)
    rng = np.random.default_rng(1)
    B, T = rng.standard_normal((D, 2)), rng.standard_normal((N, 2))
    np.testing.assert_allclose(design.matmul(B), A @ B, atol=1e-12)
    np.testing.assert_allclose(design.matmul(B, np.array([1.0, 2.0])), A @ B + [1.0, 2.0], atol=1e-12)
    np.testing.assert_allclose(design.rmatmul(T), A.T @ T, atol=1e-12)
    assert np.vdot(design.matmul(B), T) == pytest.approx(np.vdot(B, design.rmatmul(T)), rel=1e-12)
    np.testing.assert_allclose(design.column_norms(w), np.sqrt((w * A * A).sum(axis=0)), atol=1e-12)


@every_pair
def test_columns_in_the_span_are_exact_zeros(kind, center):
    design, _, w = make_pair(kind, center)
    gone = [*FREE, DEPENDENT]
    assert not design.column_norms(w)[gone].any()
    assert not design.rmatmul(np.random.default_rng(2).standard_normal((N, 2)))[gone].any()
    B = np.zeros((D, 1))
    B[gone] = 5.0
    assert not design.matmul(B).any()


@every_pair
def test_basis_is_orthonormal_and_has_the_rank_of_the_columns(kind, center):
    design, A, w = make_pair(kind, center)
    Q = design.basis.Q
    assert design.basis.rank == 2
    np.testing.assert_allclose(Q.T @ (w * Q), np.eye(2), atol=1e-14)
    np.testing.assert_allclose(Q.T @ (w * A), 0.0, atol=1e-12)
    if center:
        np.testing.assert_allclose(w.T @ Q, 0.0, atol=1e-12)


@every_pair
def test_parts_are_parts_of_the_projected_matrix(kind, center):
    design, A, w = make_pair(kind, center)
    columns, rows, B = np.array([0, 2, 7, 8]), np.array([3, 5, 20]), np.random.default_rng(3).standard_normal((D, 2))
    np.testing.assert_allclose(design.restrict(columns).matmul(B[columns]), A[:, columns] @ B[columns], atol=1e-12)
    np.testing.assert_allclose(design.rows(rows).matmul(B), A[rows] @ B, atol=1e-12)
    np.testing.assert_allclose(design.columns(columns).predict(B[columns]), A[:, columns] @ B[columns], atol=1e-12)
    other = np.array([2, 3])
    np.testing.assert_allclose(design.gram(columns, other, w), A[:, columns].T @ (w * A[:, other]), atol=1e-12)


@every_pair
def test_coefficients_survive_the_way_there_and_back(kind, center):
    """Predictions from coefficients for X as given equal those of the design plus the basis."""
    design, _, _ = make_pair(kind, center)
    X, _ = make_matrix()
    B = np.random.default_rng(4).standard_normal((D, 2))
    own, (on_basis, bound) = design.own_coefficients(B), design.basis_coefficients(B)
    assert np.linalg.norm(on_basis) <= bound
    back, shift = design.input_coefficients(own, on_basis)
    Z = design.matmul(own) + design.basis.Q @ on_basis
    np.testing.assert_allclose(Z, X @ back + shift, atol=1e-11)
    difference = Z - X @ B  # equal up to the constant that centering takes off
    np.testing.assert_allclose(difference, np.broadcast_to(difference[0], difference.shape), atol=1e-11)


@pytest.mark.parametrize("center", [False, True])
def test_compressed_data_have_the_loss_of_the_samples(center):
    design, A, w = make_pair("dense", center)
    Q = design.basis.Q
    rng = np.random.default_rng(5)
    Y = rng.standard_normal((N, 2))
    Y -= (w * Y).sum(axis=0) / w.sum() if center else 0.0
    Y -= Q @ (Q.T @ (w * Y))
    data = design.compressed(Y, w, exact=False)
    B = rng.standard_normal((D, 2))
    assert np.sum((data.T - data.R @ B) ** 2) == pytest.approx(np.sum(w * (Y - A @ B) ** 2), rel=1e-12)
    np.testing.assert_allclose(data.R.T @ data.R, A.T @ (w * A), atol=1e-12)


def test_nearly_dependent_columns_keep_their_norms():
    """A column that is unpenalized up to 1e-6: what is left of it is small, known, and not zero."""
    X, w = make_matrix()
    X[:, 0] = X[:, 1] + 1e-6 * X[:, 0]
    design = project_out(as_design(X), FREE[:2], w)
    root = np.sqrt(w)
    rest = X[:, 0] - X[:, FREE[:2]] @ np.linalg.lstsq(root * X[:, FREE[:2]], root[:, 0] * X[:, 0], rcond=None)[0]
    assert design.column_norms(w)[0] == pytest.approx(np.sqrt(w[:, 0] @ rest**2), rel=1e-6)


@every_pair
def test_norms_in_other_weights(kind, center):
    """The basis is orthonormal in its own weights only; norms in others are right all the same."""
    design, A, _ = make_pair(kind, center)
    other = np.random.default_rng(6).uniform(0.1, 3.0, (N, 1))
    np.testing.assert_allclose(design.column_norms(other), np.sqrt((other * A * A).sum(axis=0)), atol=1e-10)


@every_pair
def test_squared_products_and_ranges(kind, center):
    """Of the columns with the basis projected out: never too small, and larger by rounding alone."""
    design, A, _ = make_pair(kind, center)
    H = np.random.default_rng(8).uniform(0.0, 3.0, (N, 3))
    found, exact = design.squared_products(H), (A * A).T @ H
    assert np.all(found >= exact - 1e-14 * exact.max())
    np.testing.assert_allclose(found, exact, atol=1e-10 * exact.max())
    lowest, highest = design.ranges()
    assert np.all(lowest <= A.min(axis=0) + 1e-12)
    assert np.all(highest >= A.max(axis=0) - 1e-12)
    with pytest.raises(NotImplementedError, match="about zero only"):
        design.squared_products(H, np.ones(D))
