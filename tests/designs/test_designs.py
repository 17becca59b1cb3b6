"""The contract of a design, run over every kind of input and every standardization; then the large cases.

A new kind of matrix joins with one line in ``INPUTS``.
"""

from __future__ import annotations

import re
import tracemalloc
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from groupowl.designs import Design, MemmapDesign, as_design, scale_columns, standardize
from storage_support import STORAGES

EPS = np.finfo(float).eps
N, D = 24, 13
ZERO, CONSTANT, LARGE = 2, 5, 7  # columns of the table with these properties


def table(rng, n=N, d=D):
    """Numbers that single precision holds exactly; a zero, a constant and a large column; many zeros."""
    A = rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.5)
    A[:, 0] += 3.0
    A[:, ZERO], A[:, CONSTANT] = 0.0, 2.3
    A[:, LARGE] *= 1e3
    return A.astype(np.float32).astype(np.float64)


def inside(A, dtype, order):
    """``A`` as a strided view of a larger array."""
    n, d = A.shape
    large = np.full((2 * n, 3 * d), 99.0, dtype=dtype, order=order)
    view = large[::2, 1::3]
    view[...] = A
    return view


def read_only(X):
    for array in (X.data, X.indices, X.indptr) if sp.issparse(X) else (X,):
        array.setflags(write=False)
    return X


def shuffled_duplicates(A, kind, dtype=np.float64):
    """A compressed matrix with unsorted indices in which every value is stored as two halves."""
    halves = kind(A / 2)
    indptr = 2 * halves.indptr
    indices, data = np.repeat(halves.indices, 2), np.repeat(halves.data, 2)
    for start, stop in pairwise(indptr):
        order = np.random.default_rng(start).permutation(stop - start)
        indices[start:stop], data[start:stop] = indices[start:stop][order], data[start:stop][order]
    return kind((data.astype(dtype), indices, indptr), shape=A.shape)


def coo_duplicates(A, kind):
    rows, columns = np.nonzero(A)
    values = A[rows, columns] / 2
    return kind((np.tile(values, 2), (np.tile(rows, 2), np.tile(columns, 2))), shape=A.shape)


INPUTS = {
    "C float64": lambda A: np.ascontiguousarray(A),
    "F float64": lambda A: np.asfortranarray(A),
    "C float32": lambda A: np.ascontiguousarray(A, dtype=np.float32),
    "F float32": lambda A: np.asfortranarray(A, dtype=np.float32),
    "read-only C float64": lambda A: read_only(np.ascontiguousarray(A)),
    "read-only F float32": lambda A: read_only(np.asfortranarray(A, dtype=np.float32)),
    "slice of C float64": lambda A: inside(A, np.float64, "C"),
    "slice of F float64": lambda A: inside(A, np.float64, "F"),
    "slice of C float32": lambda A: inside(A, np.float32, "C"),
    "slice of F float32": lambda A: inside(A, np.float32, "F"),
    "backwards float32": lambda A: np.ascontiguousarray(A[::-1, ::-1], dtype=np.float32)[::-1, ::-1],
    "big-endian": lambda A: A.astype(">f8"),
    "int64": lambda A: A.astype(np.int64),
    "bool": lambda A: A > 0,
    "list": lambda A: A.tolist(),
    "data frame": lambda A: pd.DataFrame(A, columns=[f"x{j}" for j in range(A.shape[1])]),
    "csr_matrix": sp.csr_matrix,
    "csr_array": sp.csr_array,
    "csc_matrix": sp.csc_matrix,
    "csc_array": sp.csc_array,
    "csr float32": lambda A: sp.csr_array(A.astype(np.float32)),
    "csc float32": lambda A: sp.csc_array(A.astype(np.float32)),
    "csr int": lambda A: sp.csr_array(A.astype(np.int64)),
    "csc bool": lambda A: sp.csc_array(A > 0),
    "read-only csr": lambda A: read_only(sp.csr_array(A)),
    "read-only csc float32": lambda A: read_only(sp.csc_array(A.astype(np.float32))),
    "csr with 64-bit indices": lambda A: _long_indices(sp.csr_array(A)),
    "unsorted duplicates csr": lambda A: shuffled_duplicates(A, sp.csr_array),
    "unsorted duplicates csc": lambda A: shuffled_duplicates(A, sp.csc_matrix),
    "unsorted duplicates csr float32": lambda A: shuffled_duplicates(A, sp.csr_matrix, np.float32),
    "read-only unsorted duplicates csr": lambda A: read_only(shuffled_duplicates(A, sp.csr_array)),
    "duplicates coo_array": lambda A: coo_duplicates(A, sp.coo_array),
    "duplicates coo_matrix": lambda A: coo_duplicates(A, sp.coo_matrix),
    "lil": sp.lil_array,
    "bsr": sp.bsr_array,
    **{f"on disk: {kind}": lambda A, store=store: MemmapDesign(store(A)) for kind, store in STORAGES.items()},
}
WRAPPERS = {
    "plain": (False, False),
    "centered": (True, False),
    "scaled": (False, True),
    "standardized": (True, True),
}
# Inputs that reach a design in a form of their own meet every wrapper; the others become one of those.
STORED_AS_GIVEN = [kind for kind in INPUTS if kind.startswith(("C ", "F ", "slice", "cs", "unsorted"))]
CASES = [
    (kind, wrapper)
    for kind in INPUTS
    for wrapper in WRAPPERS
    if wrapper in ("plain", "standardized") or kind in STORED_AS_GIVEN
]


def _long_indices(X):
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return X


def to_dense(X):
    X = X.X.read_rows(slice(0, X.n_samples)) if isinstance(X, MemmapDesign) else X
    return (X.toarray() if sp.issparse(X) else np.asarray(X)).astype(np.float64)


@dataclass
class Case:
    """A design beside what it should be: input, dense reference, and sizes of the terms that round."""

    design: Design
    base: Design
    X: Any
    A: np.ndarray  # the input as a dense array
    S: np.ndarray  # the standardized array
    size: np.ndarray  # absolute values that products add up, for error bounds
    scaled: np.ndarray  # the input times the inverse scale: rows that products really read
    w: np.ndarray

    def draw(self, shape, seed=1):
        return np.random.default_rng(seed).standard_normal(shape)


def reference_standardized(A, w, center, scale):
    """Plainly: mean and deviation by their definition; columns without variation are zero."""
    if not (center or scale):
        return A, np.zeros(A.shape[1]), np.ones(A.shape[1])
    mean = (w * A).sum(axis=0) / w.sum()
    varies = np.ptp(A, axis=0) > 0
    deviation = np.sqrt((w * (A - mean) ** 2).sum(axis=0) / w.sum())
    inverse = np.where(varies, 1 / np.where(varies & scale, deviation, 1.0), 0.0)
    shift = mean if center else np.zeros_like(mean)
    return (A - shift) * inverse, shift, inverse


@cache
def make_case(kind, wrapper, seed=0):
    rng = np.random.default_rng(seed)
    X = INPUTS[kind](table(rng))
    A = to_dense(X)
    w = rng.uniform(0.2, 3.0, (N, 1))
    base = as_design(X)
    center, scale = WRAPPERS[wrapper]
    design = standardize(base, w, center=center, scale=scale)
    S, shift, inverse = reference_standardized(A, w, center, scale)
    return Case(design, base, X, A, S, (np.abs(A) + np.abs(shift)) * inverse, A * inverse, w)


def assert_close(actual, expected, size):
    """Equal up to the rounding of sums of this size."""
    assert actual.dtype == np.float64
    assert actual.shape == expected.shape
    assert np.all(np.abs(actual - expected) <= 64 * EPS * (size + np.abs(expected)))


@pytest.fixture(autouse=True)
def _small_blocks(request, monkeypatch):
    """Contract tests run on small tables, so make blocks small too: several per product."""
    if request.cls is TestContract:
        monkeypatch.setattr("groupowl.designs.dense._BLOCK_ENTRIES", 60)
        monkeypatch.setattr("groupowl.designs.sparse._BLOCK_ENTRIES", 40)
        monkeypatch.setattr("groupowl.designs.disk.memmap_design._LARGEST_BUFFER", 400)
        monkeypatch.setattr("groupowl.designs.disk.memmap_design._GATHER_BYTES", 200)
        monkeypatch.setattr("groupowl.designs.disk.memmap_design._BATCH_SHARE", 1 << 60)


@pytest.mark.parametrize(("kind", "wrapper"), CASES)
class TestContract:
    @pytest.fixture
    def case(self, kind, wrapper):
        return make_case(kind, wrapper)

    def test_shape_and_dtype(self, case):
        design = case.design
        assert design.shape == (design.n_samples, design.n_features) == (N, D)
        single = getattr(case.X, "dtype", None) == np.float32
        assert design.dtype == (np.float32 if single else np.float64)

    def test_matmul(self, case):
        for q in (1, 4):
            B = case.draw((D, q))
            assert_close(case.design.matmul(B), case.S @ B, case.size @ np.abs(B))

    def test_matmul_with_offset(self, case):
        B, offset = case.draw((D, 3)), np.array([1.0, -20.0, 0.0])
        assert_close(case.design.matmul(B, offset), case.S @ B + offset, case.size @ np.abs(B) + np.abs(offset))

    def test_matmul_with_zero_rows(self, case):
        offset = np.array([0.5, 0.0])
        for support in ([], [LARGE], [0, 4], [0, 1, 4, 6, 7], range(D - 1)):
            B = np.zeros((D, 2))
            B[list(support)] = case.draw((len(support), 2))
            assert_close(case.design.matmul(B, offset), case.S @ B + offset, case.size @ np.abs(B) + 1.0)

    def test_rmatmul(self, case):
        for q in (1, 4):
            T = case.draw((N, q))
            assert_close(case.design.rmatmul(T), case.S.T @ T, case.size.T @ np.abs(T))

    def test_products_are_adjoint(self, case):
        B, T = case.draw((D, 3)), case.draw((N, 3), seed=2)
        left, right = np.sum(case.design.matmul(B) * T), np.sum(B * case.design.rmatmul(T))
        assert left == pytest.approx(right, abs=64 * EPS * np.sum(np.abs(T) * (case.size @ np.abs(B))))

    def test_products_of_memory_in_other_orders(self, case):
        B, T = np.asfortranarray(case.draw((D, 3))), case.draw((2 * N, 6))[::2, ::2]
        read_only(B)
        assert_close(case.design.matmul(B), case.S @ B, case.size @ np.abs(B))
        assert_close(case.design.rmatmul(T), case.S.T @ T, case.size.T @ np.abs(T))

    def test_column_means(self, case):
        for w in (case.w, np.ones((N, 1)), case.w * 1e-6):
            expected = (w * case.S).sum(axis=0) / w.sum()
            assert_close(case.design.moments(w).mean, expected, (w * case.size).sum(axis=0) / w.sum())

    def test_column_norms(self, case):
        for w in (case.w, np.ones((N, 1))):
            expected = np.sqrt((w * case.S**2).sum(axis=0))
            assert_close(case.design.column_norms(w), expected, np.sqrt((w * case.size**2).sum(axis=0)))

    def test_deviations(self, case):
        mean = (case.w * case.S).sum(axis=0) / case.w.sum()
        expected = np.sqrt((case.w * (case.S - mean) ** 2).sum(axis=0) / case.w.sum())
        size = np.sqrt((case.w * (case.size + np.abs(mean)) ** 2).sum(axis=0) / case.w.sum())
        found = case.design.moments(case.w)
        assert_close(np.sqrt(found.squares / found.total_weight), expected, size)

    def test_rounding_norms_are_those_of_the_columns_that_are_read(self, case):
        norms = case.design.column_norms(case.w)
        expected = np.sqrt((case.w * case.scaled**2).sum(axis=0))
        actual = case.design.rounding_norms(norms, case.w.sum())
        np.testing.assert_allclose(actual, expected, rtol=1e-12, atol=1e-12)
        assert np.all(actual >= norms * (1 - 1e-12))

    def test_restrict(self, case):
        for columns in ([0], [9, 1, CONSTANT, LARGE], list(range(D))):
            self.check_restriction(case, columns)

    def test_restrict_to_no_column(self, case):
        self.check_restriction(case, [])

    def check_restriction(self, case, columns):
        columns = np.array(columns, dtype=np.intp)
        part, S, size = case.design.restrict(columns), case.S[:, columns], case.size[:, columns]
        assert part.shape == (N, len(columns))
        assert part.dtype == case.design.dtype
        B, T = case.draw((len(columns), 2)), case.draw((N, 2))
        assert_close(part.matmul(B), S @ B, size @ np.abs(B))
        assert_close(part.rmatmul(T), S.T @ T, size.T @ np.abs(T))
        norms = np.sqrt((case.w * S**2).sum(axis=0))
        assert_close(part.column_norms(case.w), norms, np.sqrt((case.w * size**2).sum(axis=0)))
        means = (case.w * S).sum(axis=0) / case.w.sum()
        assert_close(part.moments(case.w).mean, means, (case.w * size).sum(axis=0) / case.w.sum())

    def test_restrict_again_and_again(self, case):
        part, columns = case.design, np.arange(D)
        for keep in ([0, 2, 3, 5, 7, 8, 11], [1, 2, 4, 6], [3, 0], [1]):
            part, columns = part.restrict(np.array(keep)), columns[keep]
            T = case.draw((N, 2))
            assert_close(part.rmatmul(T), case.S[:, columns].T @ T, case.size[:, columns].T @ np.abs(T))
        assert_close(case.design.rmatmul(T), case.S.T @ T, case.size.T @ np.abs(T))  # the whole is still there

    def test_rows_and_select(self, case):
        rows = np.array([3, 20, 0, 7, 7])
        part = case.design.rows(rows)
        B, Z = case.draw((D, 2)), case.design.samples(case.draw((N, 2)))
        assert part.shape == (len(rows), D)
        assert_close(part.matmul(B), case.S[rows] @ B, case.size[rows] @ np.abs(B))
        chosen = case.design.select(Z, rows)
        np.testing.assert_array_equal(chosen, Z[rows])
        assert_close(part.rmatmul(chosen), case.S[rows].T @ Z[rows], case.size[rows].T @ np.abs(Z[rows]))
        again = part.rows(np.array([1, 4])).restrict(np.array([0, 6]))
        expected = case.S[np.ix_([20, 7], [0, 6])]
        assert_close(again.matmul(np.eye(2)), expected, case.size[np.ix_([20, 7], [0, 6])])

    def test_gram(self, case):
        for left, right in (([1, CONSTANT, 3], [0, LARGE]), ([4, 0], [0, 4]), ([], [1]), ([2], [])):
            left, right = np.array(left, dtype=np.intp), np.array(right, dtype=np.intp)
            expected = case.S[:, left].T @ (case.w * case.S[:, right])
            size = case.size[:, left].T @ (case.w * case.size[:, right])
            assert_close(case.design.gram(left, right, case.w), expected, 4 * size)

    def test_input_coefficients(self, case):
        """The model on standardized columns is this model on the input."""
        B = case.draw((D, 3))
        B_input, shift = case.design.input_coefficients(B)
        assert shift.shape == (3,)
        assert_close(case.design.matmul(B), case.A @ B_input + shift, 2 * case.size @ np.abs(B))

    def test_map_and_reduce(self, case):
        design = case.design
        Z, w = design.samples(case.draw((N, 2))), design.samples(case.w)
        product = design.map(np.multiply, Z, w)
        np.testing.assert_array_equal(product, case.w * case.draw((N, 2)))
        total = design.reduce(lambda Z, w: (w * Z).sum(axis=0), Z, w)
        np.testing.assert_allclose(total, (case.w * case.draw((N, 2))).sum(axis=0), rtol=1e-13)
        assert design.samples([[1]] * N).dtype == np.float64

    def test_passes(self, kind, wrapper):
        """A product counts the fraction of columns and rows that it reads, on one counter."""
        case = make_case.__wrapped__(kind, wrapper)  # a fresh one: nothing has been counted
        design, passes = case.design, case.design.passes

        def cost(product):
            before = passes.total
            product()
            return passes.total - before

        few, some = np.array([1, 4, 9]), np.array([0, 5, 6, 9])
        B, T = case.draw((D, 2)), case.draw((N, 2))
        B[~case.S.any(axis=0)] = 1.0
        assert passes.total == 0.0  # checks and standardization are not products
        expected = np.count_nonzero(design.input_coefficients(B)[0].any(axis=1)) / D
        assert cost(lambda: design.matmul(B)) == pytest.approx(1.0, abs=1 - expected + 1e-12)
        assert cost(lambda: design.rmatmul(T)) == pytest.approx(1.0)
        assert cost(lambda: design.restrict(few).rmatmul(T)) == pytest.approx(3 / D)
        assert cost(lambda: design.restrict(few).matmul(B[few])) == pytest.approx(3 / D)
        assert cost(lambda: design.restrict(some).restrict(np.array([1, 2])).rmatmul(T)) == pytest.approx(2 / D)
        assert cost(lambda: design.rows(few).rmatmul(T[few])) == pytest.approx(3 / N)
        assert cost(lambda: design.rows(some).rows(few[:1]).rmatmul(T[:1])) == pytest.approx(1 / N)
        assert cost(lambda: design.rows(some).restrict(few).rmatmul(T[some])) == pytest.approx(4 / N * 3 / D)
        lone = np.zeros((D, 2))
        lone[1] = 1.0
        assert 1 / D - 1e-12 <= cost(lambda: design.matmul(lone)) <= 1 + 1e-12

    def test_input_is_never_modified(self, case, kind):
        def state(X):
            if sp.issparse(X):
                stored = [np.array(value) for name, value in sorted(vars(X).items()) if isinstance(value, np.ndarray)]
                return [*stored, X.toarray()]
            return [to_dense(X) if isinstance(X, Design) else np.array(X)]

        X = INPUTS[kind](table(np.random.default_rng(0)))
        before = state(X)
        design = standardize(as_design(X), case.w, center=True, scale=True)
        T = case.draw((N, 2))
        for each in (design, as_design(X), as_design(X).restrict(np.array([0, 3])), as_design(X).rows(np.arange(5))):
            each.matmul(case.draw((each.n_features, 2)))
            each.rmatmul(T[: each.n_samples])
            each.moments(case.w[: each.n_samples])
            each.column_norms(case.w[: each.n_samples])
            each.gram(np.array([0]), np.array([1]), case.w[: each.n_samples])
        for old, new in zip(before, state(X), strict=True):
            np.testing.assert_array_equal(old, new)

    def test_constant_columns_are_exact_zeros_once_standardized(self, case, wrapper):
        if wrapper == "plain":
            return
        T, B = case.draw((N, 2)), np.zeros((D, 2))
        for column in np.flatnonzero(np.ptp(case.A, axis=0) == 0):
            assert not case.design.rmatmul(T)[column].any()
            assert case.design.column_norms(case.w)[column] == 0.0
            B[column] = 1e6
        assert not case.design.matmul(B).any()
        assert np.ptp(case.A, axis=0)[CONSTANT] == 0


# Beyond the contract ------------------------------------------------------------------------------------


def test_no_standardization_is_the_design_itself():
    design = as_design(np.eye(3))
    assert standardize(design, np.ones((3, 1)), center=False, scale=False) is design
    assert as_design(design) is design


@pytest.mark.parametrize("kind", ["C float64", "F float32", "read-only C float64", "slice of C float32", "data frame"])
def test_dense_input_is_not_copied(kind):
    X = INPUTS[kind](table(np.random.default_rng(0)))
    assert np.shares_memory(as_design(X).X, np.asarray(X))


@pytest.mark.parametrize("kind", ["csr_matrix", "csc_array", "csr float32"])
def test_sparse_input_is_not_copied(kind):
    X = INPUTS[kind](table(np.random.default_rng(0)))
    assert np.shares_memory(as_design(X).X.data, X.data)


def test_restriction_owns_its_columns():
    """A copy: later changes of the input do not reach it."""
    X = np.random.default_rng(0).standard_normal((6, 5))
    for data in (X, np.asfortranarray(X), sp.csr_array(X), sp.csc_array(X)):
        part = as_design(data).restrict(np.array([1, 3]))
        stored = part.X.data if sp.issparse(data) else part.X
        assert not np.shares_memory(stored, data.data if sp.issparse(data) else data)


def test_standardized_columns_have_mean_zero_and_deviation_one():
    case = make_case("csr float32", "standardized")
    varies = case.S.any(axis=0)
    np.testing.assert_allclose(case.design.moments(case.w).mean, 0.0, rtol=0, atol=1e-14)
    deviations = case.design.column_norms(case.w) / np.sqrt(case.w.sum())
    np.testing.assert_allclose(deviations, varies.astype(float), rtol=1e-13)


def test_scaling_alone_divides_by_the_deviation_about_the_mean():
    X, w = np.array([[10.0], [12.0]]), np.ones((2, 1))
    design = standardize(as_design(X), w, center=False, scale=True)
    np.testing.assert_allclose(design.matmul(np.eye(1)), [[10.0], [12.0]], rtol=1e-15)
    tripled = standardize(as_design(3 * X), w, center=False, scale=True)
    np.testing.assert_allclose(tripled.matmul(np.eye(1)), X, rtol=1e-15)


CONSTANTS = [1e8 + 0.1, -1e15, 1 / 3, 1e-5, 0.1, 12345.678, 1e-300, 0.0]
WEIGHTS = {
    "ones": lambda rng, n: np.ones((n, 1)),
    "1/n": lambda rng, n: np.full((n, 1), 1 / n),
    "0.1": lambda rng, n: np.full((n, 1), 0.1),
    "random": lambda rng, n: rng.uniform(0.1, 1.0, (n, 1)),
    "6 orders": lambda rng, n: 10.0 ** rng.uniform(-3, 3, (n, 1)),
}
STORAGE = {
    "C float64": np.ascontiguousarray,
    "F float64": np.asfortranarray,
    "C float32": lambda A: A.astype(np.float32),
    "csr": sp.csr_array,
    "csc": sp.csc_array,
    "csc float32": lambda A: sp.csc_array(A.astype(np.float32)),
}


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("storage", STORAGE)
@pytest.mark.parametrize("n", [3, 1001, 100_000])
def test_constant_columns_vanish_whatever_their_offset(n, storage, weights):
    rng = np.random.default_rng(n)
    A = np.tile(CONSTANTS, (n, 1))
    A[:, -1] = np.arange(n) % 2  # one column that varies
    w = WEIGHTS[weights](rng, n)
    design = standardize(as_design(STORAGE[storage](A)), w, center=True, scale=True)
    B = np.ones((len(CONSTANTS), 1))
    B[-1] = 0.0
    assert not design.column_norms(w)[:-1].any()
    assert not design.matmul(B).any()
    assert not design.rmatmul(rng.standard_normal((n, 1)))[:-1].any()
    assert design.column_norms(w)[-1] == pytest.approx(np.sqrt(w.sum()), rel=1e-10)


@pytest.mark.parametrize("storage", ["C float64", "F float64", "csr", "csc"])
@pytest.mark.parametrize("n", [1000, 1002, 5000])
def test_a_small_spread_on_a_large_offset_is_not_constant(n, storage):
    """Variation a thousand times above rounding is kept, with its deviation right."""
    A = (1e6 + np.arange(n) % 2 * 1e-6)[:, None]
    w = np.full((n, 1), 1 / n)
    design = standardize(as_design(STORAGE[storage](A)), w, center=True, scale=True)
    spread = np.ptp(A) / 2  # what the stored numbers really have
    assert 1 / design.input_coefficients(np.ones((1, 1)))[0].item() == pytest.approx(spread, rel=1e-3, abs=0)


# Single precision ---------------------------------------------------------------------------------------

FLOAT32 = {
    "C": lambda A: np.ascontiguousarray(A, dtype=np.float32),
    "F": lambda A: np.asfortranarray(A, dtype=np.float32),
    "slice": lambda A: inside(A, np.float32, "C"),
    "csr": lambda A: sp.csr_array(A.astype(np.float32)),
    "csc": lambda A: sp.csc_array(A.astype(np.float32)),
}


@pytest.mark.parametrize("storage", FLOAT32)
def test_float32_products_are_as_accurate_as_double(storage):
    """With blocks as long as they really are; the reference is double precision on the same numbers."""
    rng = np.random.default_rng(0)
    X = FLOAT32[storage](rng.standard_normal((700, 500)) + 5.0)
    A, design = to_dense(X), as_design(X)
    for support in (500, 150, 20):
        B = np.zeros((500, 2))
        B[rng.choice(500, support, replace=False)] = rng.standard_normal((support, 2))
        assert_close(design.matmul(B), A @ B, np.abs(A) @ np.abs(B))
    T = rng.standard_normal((700, 2))
    assert_close(design.rmatmul(T), A.T @ T, np.abs(A).T @ np.abs(T))
    left, right = A[:, :9], A[:, 5:20]
    gram = design.gram(np.arange(9), np.arange(5, 20), np.ones((700, 1)))
    assert_close(gram, left.T @ right, np.abs(left).T @ np.abs(right))


def peak_memory(function):
    """Bytes allocated by NumPy and Python at the worst moment of a call."""
    tracemalloc.start()
    try:
        function()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def products(design, rng):
    n, d = design.shape
    few, half = np.zeros((d, 2)), np.zeros((d, 2))
    few[:: d // 50], half[::3] = 1.0, 1.0
    return {
        "full matmul": lambda: design.matmul(np.ones((d, 2))),
        "matmul with few rows": lambda: design.matmul(few),
        "matmul with a third of the rows": lambda: design.matmul(half),
        "rmatmul": lambda: design.rmatmul(np.ones((n, 2))),
    }


PRODUCTS = ["full matmul", "matmul with few rows", "matmul with a third of the rows", "rmatmul"]


@pytest.mark.parametrize("product", PRODUCTS)
@pytest.mark.parametrize("storage", ["C", "F", "slice"])
def test_float32_arrays_are_never_copied_to_double(storage, product):
    rng = np.random.default_rng(0)
    design = as_design(FLOAT32[storage](rng.standard_normal((2000, 1500))))
    assert peak_memory(products(design, rng)[product]) < 8 * 2000 * 1500 / 3


@pytest.mark.parametrize("storage", ["C", "F"])
def test_float32_statistics_do_not_copy_to_double(storage):
    rng = np.random.default_rng(0)
    X, w = FLOAT32[storage](rng.standard_normal((2000, 1500))), np.ones((2000, 1))
    assert peak_memory(lambda: standardize(as_design(X), w, center=True, scale=True)) < 8 * 2000 * 1500 / 3


@pytest.mark.parametrize("product", ["full matmul", "matmul with few rows", "rmatmul"])
@pytest.mark.parametrize("storage", ["csr", "csc"])
def test_float32_sparse_is_never_copied_to_double(storage, product, monkeypatch):
    """Below a half of what the double-precision copy (values and indices) would take."""
    monkeypatch.setattr("groupowl.designs.sparse._BLOCK_ENTRIES", 1 << 16)  # small beside these data
    monkeypatch.setattr("groupowl.designs.sparse._COPIED_ENTRIES", 1 << 16)
    rng = np.random.default_rng(0)
    n, d, nnz = 4_000, 2_000, 800_000
    X = sp.coo_array((np.ones(nnz, dtype=np.float32), (rng.integers(n, size=nnz), rng.integers(d, size=nnz))), (n, d))
    X = X.asformat(storage)
    design = as_design(X)
    assert peak_memory(products(design, rng)[product]) < 12 * X.nnz / 2


@pytest.mark.parametrize("copied", [True, False])
def test_few_columns_of_rows_come_from_a_copy_by_columns(copied, monkeypatch):
    """One copy, where it is small; what is computed does not depend on it, what is charged does."""
    monkeypatch.setattr("groupowl.designs.sparse._COPIED_ENTRIES", 10**6 if copied else 0)
    rng = np.random.default_rng(0)
    dense = rng.standard_normal((40, 60)) * (rng.random((40, 60)) < 0.2)
    design, few, columns = as_design(sp.csr_array(dense)), np.zeros((60, 2)), np.array([3, 7, 50])
    few[columns] = rng.standard_normal((3, 2))
    np.testing.assert_allclose(design.matmul(few), dense @ few, atol=1e-12)
    assert design.passes.total == pytest.approx(3 / 60 if copied else 1.0)
    np.testing.assert_allclose(design.columns(columns).predict(few[columns]), dense @ few, atol=1e-12)
    gram = design.gram(columns, columns, np.ones((40, 1)))
    np.testing.assert_allclose(gram, dense[:, columns].T @ dense[:, columns], atol=1e-12)
    assert (design._columns_first.format == "csc") == copied
    many = rng.standard_normal((60, 2))
    np.testing.assert_allclose(design.matmul(many), dense @ many, atol=1e-12)


# Scale --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("storage", ["csr", "csc"])
def test_a_hundred_thousand_by_a_million_is_never_densified(storage):
    """Everything a fit does once, on a million non-zeros; a dense copy would take 800 gigabytes."""
    rng = np.random.default_rng(0)
    n, d, nnz = 100_000, 1_000_000, 1_000_000
    rows, columns = rng.integers(n, size=nnz), rng.integers(d, size=nnz)
    X = sp.coo_array((rng.standard_normal(nnz), (rows, columns)), shape=(n, d)).asformat(storage)
    w = np.full((n, 1), 1 / n)
    B = np.zeros((d, 2))
    B[::10_000] = 1.0
    chosen = np.arange(0, d, 10_000)
    results = {}

    def run():
        design = standardize(as_design(X), w, center=True, scale=True)
        results["norms"] = design.column_norms(w)
        results["Z"] = design.matmul(B)
        results["C"] = design.rmatmul(results["Z"])
        part = design.restrict(chosen)
        results["part"] = part.matmul(B[chosen])
        results["inverse"] = design.input_coefficients(np.ones((d, 1)))[0][:, 0]

    assert peak_memory(run) < 300e6
    occurs = np.bincount(X.tocoo().col, minlength=d) > 0
    np.testing.assert_allclose(results["norms"], occurs.astype(float), rtol=1e-10)
    np.testing.assert_allclose(results["part"], results["Z"], rtol=0, atol=1e-9)
    S = X[:, chosen].toarray()
    S = (S - S.mean(axis=0)) * results["inverse"][chosen]
    np.testing.assert_allclose(results["Z"], S @ B[chosen], rtol=0, atol=1e-9)
    np.testing.assert_allclose(results["C"][chosen], S.T @ results["Z"], rtol=1e-7, atol=1e-6)


# Errors of as_design ------------------------------------------------------------------------------------


def spoiled(*entries):
    X = np.ones((5, 8))
    for i, j, value in entries:
        X[i, j] = value
    return X


MAKERS = {
    "C": np.asarray,
    "F": np.asfortranarray,
    "float32": lambda X: X.astype(np.float32),
    "csr": sp.csr_array,
    "csc": sp.csc_matrix,
    "coo": sp.coo_array,
}


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
@pytest.mark.parametrize(
    ("entries", "found"),
    [
        ([(0, 3, np.nan)], "1 NaN or infinite entry in column 3"),
        ([(0, 3, np.inf), (4, 3, -np.inf), (2, 1, np.nan)], "3 NaN or infinite entries in columns 1, 3"),
        ([(1, j, np.nan) for j in range(7)], "7 NaN or infinite entries in columns 0, 1, 2, 3, 4 and 2 more"),
    ],
    ids=["one", "three", "many"],
)
def test_nan_and_infinity_are_counted_and_located(make, entries, found, monkeypatch):
    monkeypatch.setattr("groupowl.designs.dense._BLOCK_ENTRIES", 8)  # several blocks, to add up over
    with pytest.raises(ValueError, match=rf"^X has {found}\. .*SimpleImputer"):
        as_design(make(spoiled(*entries)))


def test_nan_in_a_data_frame_is_named():
    frame = pd.DataFrame({"age": [1.0, np.nan], "height": [1.0, 2.0], "weight": [np.inf, np.nan]})
    with pytest.raises(ValueError, match=r"^X has 3 NaN or infinite entries in columns 'age', 'weight'\. .*SimpleImp"):
        as_design(frame)


def test_numbers_whose_sum_overflows_are_accepted():
    """The quick test adds everything up; an infinite sum alone does not condemn finite numbers."""
    X = np.full((4, 3), 1.7e308)
    assert as_design(X).shape == (4, 3)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.ones(4), r"^X must be 2-dimensional .*got shape \(4,\)\. Use X\.reshape\(-1, 1\)"),
        (np.ones((2, 2, 2)), r"^X must be 2-dimensional .*got shape \(2, 2, 2\)\.$"),
        (np.float64(3.0), r"^X must be 2-dimensional .*got shape \(\)\.$"),
        (sp.coo_array(np.ones(4)), r"^X must be 2-dimensional .*got shape \(4,\)\."),
        (np.ones((0, 3)), r"^X is empty: its shape is \(0, 3\)"),
        (np.ones((3, 0)), r"^X is empty: its shape is \(3, 0\)"),
        (sp.csr_array((0, 3)), r"^X is empty: its shape is \(0, 3\)"),
        ([[1.0, 2.0], [3.0]], r"^X cannot be read as a rectangular array of numbers"),
    ],
)
def test_shapes_that_are_refused(X, message):
    with pytest.raises(ValueError, match=message):
        as_design(X)


@pytest.mark.parametrize(
    ("X", "what"),
    [
        (np.ones((2, 2), dtype=object), "got dtype object. Encode text as numbers"),
        (np.ones((2, 2), dtype=complex), "got dtype complex128."),
        (np.array([["a", "b"]]), "but columns 0, 1 have text ('a' in row 0). Encode text"),
        (pd.DataFrame({"a": [1.0, 2.0], "b": ["x", "y"]}), "but column 'b' has text ('x' in row 0). Encode text"),
        (np.array([["2020-01-01"]], dtype="datetime64[D]"), "got dtype datetime64[D]. Turn dates into numbers"),
        (sp.csr_array(np.ones((2, 2), dtype=complex)), "got a sparse matrix of dtype complex128."),
    ],
    ids=["object", "complex", "text", "mixed frame", "dates", "sparse complex"],
)
def test_types_that_are_refused(X, what):
    with pytest.raises(TypeError, match=rf"^X must hold real numbers, {re.escape(what)}"):
        as_design(X)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("n", [2048, 2049, 4500])
def test_columns_of_long_arrays(n, order, dtype):
    X = np.asarray(np.random.default_rng(0).standard_normal((n, 7)), dtype=dtype, order=order)
    columns = as_design(X).columns(np.array([1, 4, 6]))
    assert columns.At.dtype == np.float64
    assert columns.At.flags.c_contiguous
    np.testing.assert_array_equal(columns.At.T, X[:, [1, 4, 6]].astype(np.float64))


def test_columns_that_are_scaled_by_ones_are_the_design():
    X, w = np.random.default_rng(0).standard_normal((20, 4)), np.linspace(0.5, 1.0, 20)[:, None]
    design = as_design(X)
    assert scale_columns(design, np.ones(4)) is design
    factors = np.array([1.0, 0.5, 0.0, 2.0])
    scaled = scale_columns(design, factors)
    np.testing.assert_allclose(scaled.matmul(np.eye(4)), X * factors, rtol=1e-15)
    np.testing.assert_allclose(scaled.column_norms(w), factors * np.sqrt(w.T @ X**2)[0], rtol=1e-14)
