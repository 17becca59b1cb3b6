"""Sufficient statistics against exact rational arithmetic: sums, parts, rounding bounds, small equivalent problems."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp

from groupowl.designs import SufficientStatistics
from groupowl.designs.factors import compress_blocks
from groupowl.norm.kernels import EPS

of = SufficientStatistics.from_arrays
N_FEATURES = 3
FIELDS = ["x_mean", "y_mean", "gram", "xy", "yy"]


def compress_qr(X, Y, sample_weight=None, center=True):
    return compress_blocks([(X, Y, sample_weight)], center)


# Data and exact references ----------------------------------------------------------------------------


def make_data(kind="plain", n=300, d=N_FEATURES, q=2, seed=0):
    """X of some kind, Y that depends on it, weights that are no powers of two."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) @ (np.eye(d) + 0.3 * rng.standard_normal((d, d)))
    if kind == "offset":
        X = 1e6 + X
    elif kind == "indicator":  # centered entries take two values: rounding errors of the sums all have one sign
        X = (rng.random((n, d)) < 0.5) * 0.7
    elif kind == "outlier":
        X[0] = 1e6
    elif kind == "sorted":
        X = np.sort(X, axis=0)
    elif kind == "float32":
        X = (X + 100).astype(np.float32)
    elif kind == "fortran":
        X = np.asfortranarray(X)
    elif kind == "sparse":
        X = sp.csr_array(X * (rng.random((n, d)) < 0.3))
    elif kind == "csc":
        X = sp.csc_array(np.where(rng.random((n, d)) < 0.5, 0.7, 0.0).astype(np.float32))
    B = rng.standard_normal((d, q))
    Y = np.asarray(X @ B) + rng.standard_normal((n, q)) + 3.0
    return X, Y, rng.uniform(0.1, 3.0, n)


KINDS = ["plain", "offset", "indicator", "outlier", "sorted", "float32", "fortran", "sparse", "csc"]
to_fractions = np.frompyfunc(lambda value: Fraction(float(value)), 1, 1)


def exact_moments(X, Y, w, center=True):
    """Total weight, means and second moments of [X, Y] as fractions."""
    Z = to_fractions(np.hstack([X.toarray() if sp.issparse(X) else X, Y]))
    w = to_fractions(w)
    total, sums, products = w.sum(), w @ Z, (w[:, None] * Z).T @ Z
    return total, sums / total, products - np.outer(sums, sums) / total if center else products


def gap(computed, exact):
    return np.abs(to_fractions(computed) - exact).astype(float)


def error_ratio(moments, exact):
    """Largest error of second moments in units of the claimed bound; infinite where the bound is 0 and not met."""
    d = len(moments.x_size)
    allowed = moments.error * np.outer(moments.x_size, np.r_[moments.x_size, moments.y_size])
    found = np.hstack([gap(moments.gram, exact[:d, :d]), gap(moments.xy, exact[:d, d:])])
    found = np.append(found, gap(moments.yy, np.diagonal(exact)[d:]))
    allowed = np.append(allowed, moments.error * moments.y_size**2)
    return largest_ratio(found, allowed)


def largest_ratio(found, allowed):
    return np.max(np.divide(found, allowed, out=np.where(found > 0, np.inf, 0.0), where=allowed > 0))


def mean_ratio(statistics, total, exact_means):
    """The same for the means, scaled by the square root of the total weight."""
    exact_x = exact_means[: statistics.n_features] - to_fractions(statistics.x_rest)
    errors = np.sqrt(float(total)) * gap(statistics.x_mean, exact_x)
    return largest_ratio(errors, statistics.error * statistics.x_size)


def assert_same(left, right):
    """Equal up to what both claim as rounding errors."""
    error = left.error + right.error
    x, y = np.maximum(left.x_size, right.x_size), np.maximum(left.y_size, right.y_size)
    assert left.n_samples == right.n_samples
    assert left.total_weight == pytest.approx(right.total_weight, rel=1e-13)
    assert np.all(np.abs(left.gram - right.gram) <= error * np.outer(x, x))
    assert np.all(np.abs(left.xy - right.xy) <= error * np.outer(x, y))
    assert np.all(np.abs(left.yy - right.yy) <= error * y**2)
    root = np.sqrt(left.total_weight)
    dx = (left.x_mean - right.x_mean) + (left.x_rest - right.x_rest)
    dy = (left.y_mean - right.y_mean) + (left.y_rest - right.y_rest)
    assert np.all(root * np.abs(dx) <= error * x)
    assert np.all(root * np.abs(dy) <= error * y)


@pytest.fixture
def short_blocks(monkeypatch):
    """Blocks so short that small data have many."""
    monkeypatch.setattr("groupowl.designs.statistics._DENSE_ROWS", 64)
    monkeypatch.setattr("groupowl.designs.statistics._SPARSE_ROWS", 50)
    monkeypatch.setattr("groupowl.designs.factors._QR_ENTRIES", 100)


# The rounding bound -----------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [2, 40, 1024, 2100])
@pytest.mark.parametrize("kind", KINDS)
def test_errors_stay_below_half_of_the_bound(kind, n):
    X, Y, w = make_data(kind, n)
    statistics = of(X, Y, w)
    total, means, exact = exact_moments(X, Y, w)
    assert error_ratio(statistics.moments(), exact) <= 0.5
    assert mean_ratio(statistics, total, means) <= 0.5
    assert statistics.total_weight == pytest.approx(float(total), rel=4 * EPS)
    np.testing.assert_allclose(statistics.x_mean, means[:N_FEATURES].astype(float), rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(statistics.gram, statistics.gram.T)


@pytest.mark.parametrize("kind", KINDS)
def test_merging_many_blocks_keeps_the_bound(kind, short_blocks):
    X, Y, w = make_data(kind, 800)
    statistics = of(X, Y, w)
    total, means, exact = exact_moments(X, Y, w)
    assert error_ratio(statistics.moments(), exact) <= 0.5
    assert mean_ratio(statistics, total, means) <= 0.5


@pytest.mark.parametrize("kind", KINDS)
def test_moments_about_zero_keep_the_bound(kind):
    X, Y, w = make_data(kind, 400)
    assert error_ratio(of(X, Y, w).moments(center=False), exact_moments(X, Y, w, center=False)[2]) <= 0.5


def test_the_bound_of_dense_data_speaks_of_centered_columns():
    """So a large offset costs nothing; uncentered sums miss the bound by orders of magnitude."""
    X, Y, w = make_data("offset", 1500)
    statistics = of(X, Y, w)
    np.testing.assert_allclose(statistics.x_size**2, np.diagonal(statistics.gram), rtol=1e-12)
    assert statistics.error < 1e-12
    means = w @ X / w.sum()
    naive = (w[:, None] * X).T @ X - w.sum() * np.outer(means, means)
    assert error_ratio(replace(statistics.moments(), gram=naive), exact_moments(X, Y, w)[2]) > 1e3


def test_rounded_means_alone_would_spoil_a_merge(short_blocks):
    """Without what rounding takes off the means, merging misses the bound: the test of merging can fail."""
    X, Y, w = make_data("offset", 1500)
    parts = [of(X[rows], Y[rows], w[rows]) for rows in (slice(0, 700), slice(700, None))]
    rounded = [replace(part, x_rest=0 * part.x_rest, x_mean=part.x_mean.astype(np.float32) * 1.0) for part in parts]
    exact = exact_moments(X, Y, w)[2]
    assert error_ratio((parts[0] + parts[1]).moments(), exact) <= 0.5
    assert error_ratio((rounded[0] + rounded[1]).moments(), exact) > 1e3


@pytest.mark.parametrize("kind", ["plain", "sparse"])
def test_targets_with_a_large_offset_keep_the_bound(kind):
    """A rounded mean is then far from the mean, and the products about it need their correction."""
    X, Y, w = make_data(kind, 200)
    Y = 1e12 + Y
    statistics = of(X, Y, w)
    np.testing.assert_allclose(statistics.y_size**2, statistics.yy, rtol=1e-6)
    assert error_ratio(statistics.moments(), exact_moments(X, Y, w)[2]) <= 0.5


def test_sparse_data_state_their_cancellation():
    X, Y, w = make_data("sparse", 500)
    shifted = sp.csr_array(X.toarray() + 1e4)
    statistics = of(shifted, Y, w)
    assert np.all(statistics.x_size > 1e3 * np.sqrt(np.diagonal(statistics.gram)))
    assert error_ratio(statistics.moments(), exact_moments(shifted, Y, w)[2]) <= 0.5


# Sums and parts ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("kind", KINDS)
def test_any_split_into_blocks_gives_the_same(kind, seed):
    X, Y, w = make_data(kind, 200)
    X = X.tocsr() if sp.issparse(X) else X
    rng = np.random.default_rng(seed)
    cuts = np.unique(np.r_[0, rng.choice(200, size=rng.integers(1, 9)), 200])
    order = rng.permutation(len(cuts) - 1)
    rows = [slice(cuts[k], cuts[k + 1]) for k in order]
    assert_same(SufficientStatistics.from_blocks((X[r], Y[r], w[r]) for r in rows), of(X, Y, w))


def test_blocks_may_be_of_any_kind_and_empty():
    X, Y, _ = make_data(n=90)
    blocks = [
        (X[:30], Y[:30]),
        (X[:0], Y[:0]),
        [sp.coo_array(X[30:60]), Y[30:60], np.ones(30)],
        (X[:5], Y[:5], np.zeros(5)),
        (np.asfortranarray(X[60:]), Y[60:].tolist()),
    ]
    assert_same(SufficientStatistics.from_blocks(blocks), of(X, Y))


def test_addition_commutes_and_associates():
    X, Y, w = make_data("offset", 100)
    a, b, c = (of(X[rows], Y[rows], w[rows]) for rows in (slice(0, 10), slice(10, 60), slice(60, 100)))
    for field in [*FIELDS, "x_rest", "y_rest", "x_size", "y_size", "error"]:
        np.testing.assert_array_equal(getattr(a + b, field), getattr(b + a, field))
    assert_same((a + b) + c, a + (b + c))


@pytest.mark.parametrize("kind", KINDS)
def test_subtraction_undoes_addition(kind):
    X, Y, w = make_data(kind, 120)
    X = X.tocsr() if sp.issparse(X) else X
    a, b = of(X[:40], Y[:40], w[:40]), of(X[40:], Y[40:], w[40:])
    assert_same((a + b) - b, a)
    assert_same((a + b) - a, b)


@pytest.mark.parametrize("n_left", [1, 3, 320])
@pytest.mark.parametrize("kind", KINDS)
def test_a_fold_by_subtraction_keeps_its_bound(kind, n_left):
    """The rest against exact arithmetic; sizes stay those of all samples, so the bound grows against what is left."""
    X, Y, w = make_data(kind, 400)
    X = X.tocsr() if sp.issparse(X) else X
    whole, fold = of(X, Y, w), of(X[n_left:], Y[n_left:], w[n_left:])
    rest = whole - fold
    total, means, exact = exact_moments(X[:n_left], Y[:n_left], w[:n_left])
    assert error_ratio(rest, exact) <= 0.5  # not of moments(): what counts as constant there is a matter of the rest
    assert mean_ratio(rest, total, means) <= 0.5
    assert_same(rest, of(X[:n_left], Y[:n_left], w[:n_left]))
    np.testing.assert_array_equal(rest.x_size, whole.x_size)
    assert rest.error > whole.error
    assert np.diagonal(rest.gram).min() >= 0
    assert rest.yy.min() >= 0


def test_restriction_commutes_with_sums():
    X, Y, w = make_data(d=5, n=80)
    columns = [4, 0, 2]
    whole = of(X, Y, w)
    assert_same(whole.restrict(columns), of(X[:, columns], Y, w))
    assert_same(whole.restrict([True, False, False, True, False]), of(X[:, [0, 3]], Y, w))
    part = of(X[:30], Y[:30], w[:30])
    assert_same((whole - part).restrict(columns), whole.restrict(columns) - part.restrict(columns))
    assert whole.restrict([]).gram.shape == (0, 0)


# Weights, zeros, precision, memory --------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["plain", "sparse"])
def test_weights_repeat_and_remove_samples(kind):
    X, Y, _ = make_data(kind, 60)
    X = X.tocsr() if sp.issparse(X) else X
    counts = np.random.default_rng(1).integers(0, 3, 60)
    rows = np.repeat(np.arange(60), counts)
    weighted, repeated = of(X, Y, counts), of(X[rows], Y[rows])
    assert weighted.n_samples == np.count_nonzero(counts)
    assert_same(replace(weighted, n_samples=len(rows)), repeated)
    present = np.flatnonzero(counts)
    dropped = of(X[present], Y[present], counts[present])
    for field in FIELDS:
        np.testing.assert_array_equal(getattr(weighted, field), getattr(dropped, field))


@pytest.mark.parametrize("sparse", [False, True])
def test_constant_columns_are_exact_zeros(sparse, short_blocks):
    X, Y, w = make_data(n=300, d=4)
    X[:, 1], X[:, 2], Y[:, 0] = 0.1, 0.0, -1e5 / 3
    statistics = of(sp.csr_array(X) if sparse else X, Y, w)
    for values in (statistics.gram[[1, 2]], statistics.xy[[1, 2]], statistics.xy[:, 0], statistics.x_size[[1, 2]]):
        assert not values.any()
    assert statistics.yy[0] == 0
    assert statistics.yy[1] > 0
    np.testing.assert_array_equal(statistics.x_mean[[1, 2]], [0.1, 0.0])


def test_columns_that_vary_by_rounding_count_as_constant():
    X, Y, w = make_data(n=50)
    X[:, 1] = 7.0
    X[::2, 1] = np.nextafter(7.0, 8.0)
    moments = of(X, Y, w).moments()
    assert not moments.gram[1].any()
    assert not moments.xy[1].any()
    assert moments.x_size[1] == 0
    for small in (of(X, Y, w).compress(), compress_qr(X, Y, w)):
        assert not small.R[:, 1].any()
    assert of(X, Y, w).moments(center=False).gram[1, 1] == pytest.approx(49 * w.sum())


def test_float32_is_added_in_double_precision():
    X, Y, w = make_data("float32", 2100)
    for field in FIELDS:
        np.testing.assert_array_equal(getattr(of(X, Y, w), field), getattr(of(X.astype(float), Y, w), field))


def test_one_target_is_one_task_and_one_sample_has_no_variation():
    X, Y, _ = make_data(n=20)
    np.testing.assert_array_equal(of(X, Y[:, 0]).xy, of(X, Y[:, :1]).xy)
    single = of(X[:1], Y[:1])
    assert not single.gram.any()
    assert not single.yy.any()
    np.testing.assert_array_equal(single.x_mean, X[0])


def test_user_arrays_are_not_changed():
    X, Y, w = make_data(n=50)
    pointers = np.r_[0, 3, np.full(48, 4), 5]  # the first row holds one place twice
    duplicated = sp.csr_array((np.ones(5), np.array([2, 0, 2, 1, 2]), pointers), shape=(50, 3))
    before = duplicated.toarray()
    for array in (X, Y, w):
        array.flags.writeable = False
    for kind in (duplicated, duplicated.tocoo(), X):
        of(kind, Y, w).compress()
        compress_qr(kind, Y, w)
    np.testing.assert_array_equal(duplicated.indices, [2, 0, 2, 1, 2])
    assert_same(of(duplicated, Y, w), of(sp.csr_array(before), Y, w))


@pytest.mark.parametrize(("reduce", "limit"), [(of, 6e6), (compress_qr, 15e6)])
@pytest.mark.parametrize("kind", ["float32", "sparse"])
def test_memory_is_bounded(reduce, limit, kind):
    """Neither a double-precision nor a dense copy of all of X, 32 MB each."""
    n, d = 100_000, 40
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d), dtype=np.float32)
    if kind == "sparse":
        entries = rng.integers(n * d, size=n * d // 100)
        X = sp.coo_array((np.ones(len(entries)), (entries // d, entries % d)), shape=(n, d)).tocsr()
    Y = rng.standard_normal(n)
    tracemalloc.start()
    reduce(X, Y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < limit


# The small equivalent problem -------------------------------------------------------------------------


def make_awkward(kind, seed=0):
    n, d = {"one sample": (1, 4), "two samples": (2, 4), "wide": (6, 15)}.get(kind, (150, 6))
    X, Y, w = make_data("offset" if kind == "offset" else "plain", n, d, seed=seed)
    if kind == "duplicated":
        X[:, 4], X[:, 5] = X[:, 0], -2.5 * X[:, 1]
    elif kind == "zero columns":
        X[:, [1, 3]] = 0.0, 5.0
    elif kind == "all zero":
        X[:] = 0.0
    elif kind == "exact fit":
        Y = X @ np.ones((d, 2))
    elif kind == "constant target":
        Y[:, 1] = 2.0
    elif kind == "scales":
        X *= 10.0 ** np.arange(-60, 60, 20)
    elif kind == "sparse":
        X = sp.csr_array(X * (np.abs(X) > 1))
    elif kind == "float32":
        X = X.astype(np.float32)
    return X, Y, w


AWKWARD = [
    "plain", "offset", "one sample", "two samples", "wide", "duplicated", "zero columns", "all zero", "exact fit",
    "constant target", "scales", "sparse", "float32",
]  # fmt: skip


def moments_of(small):
    """What (R, T) has for moments, in exact arithmetic on its rounded entries."""
    return exact_moments(small.R, small.T, np.ones(len(small.R)), center=False)[2]


def compression_ratio(small, exact, error):
    d = small.R.shape[1]
    exact = exact.astype(float)
    products = {"gram": exact[:d, :d], "xy": exact[:d, d:], "yy": np.diagonal(exact)[d:]}
    moments = SimpleNamespace(**products, x_size=small.x_size, y_size=small.y_size, error=error)
    return error_ratio(moments, moments_of(small))


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("kind", AWKWARD)
def test_cholesky_form_has_the_moments_of_the_data(kind, center):
    X, Y, w = make_awkward(kind)
    small = of(X, Y, w).compress(center)
    d = X.shape[1]
    assert small.R.shape == (d + 1, d)
    assert not small.R[d].any()
    assert compression_ratio(small, exact_moments(X, Y, w, center)[2], small.error) <= 1.0
    assert small.error < 1e-12


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("kind", AWKWARD)
def test_qr_form_has_the_moments_of_the_data(kind, center, short_blocks):
    """A backward error of some roundings in each column changes the moments by twice as much."""
    X, Y, w = make_awkward(kind)
    small = compress_qr(X, Y, w, center)
    d = X.shape[1]
    assert small.error == 0.0
    assert small.R.shape == (d + 2, d)
    assert not np.tril(small.R, -1).any()
    assert compression_ratio(small, exact_moments(X, Y, w, center)[2], 50 * EPS) <= 1.0


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("kind", AWKWARD)
def test_both_forms_keep_the_objective(kind, center):
    """1/2 sum w |y - x B|^2, the intercept chosen best, up to the bound that the errors of the moments imply."""
    X, Y, w = make_awkward(kind)
    B = np.random.default_rng(3).standard_normal((X.shape[1], 2))
    residuals = Y - X @ B - (w @ (Y - X @ B) / w.sum() if center else 0.0)
    objective = 0.5 * np.sum(w[:, None] * residuals**2)
    for small in (of(X, Y, w).compress(center), compress_qr(X, Y, w, center)):
        reach = np.sum((small.x_size @ np.abs(B) + small.y_size) ** 2)
        slack = w @ np.sum((np.abs(X) @ np.abs(B) + np.abs(Y)) ** 2, axis=1) if kind == "offset" else reach
        allowed = 0.5 * small.error * reach + 200 * EPS * np.sqrt(slack * reach) + 1e3 * EPS**2 * slack
        assert abs(0.5 * np.sum((small.T - small.R @ B) ** 2) - objective) <= allowed


def test_compressed_data_know_what_they_came_from():
    X, Y, w = make_data(n=50)
    w[:5] = 0.0
    for small in (of(X, Y, w).compress(), compress_qr(X, Y, w)):
        np.testing.assert_allclose(small.x_mean, w @ X / w.sum())
        np.testing.assert_allclose(small.y_mean, w @ Y / w.sum())
        np.testing.assert_allclose(small.x_size, np.linalg.norm(small.R, axis=0))
    for small in (of(X, Y, w).compress(center=False), compress_qr(X, Y, w, center=False)):
        assert not small.x_mean.any()
        assert not small.y_mean.any()


def test_compressing_some_columns():
    X, Y, w = make_data(n=50, d=6)
    some, alone = of(X, Y, w).compress(columns=[5, 1]), of(X[:, [5, 1]], Y, w).compress()
    np.testing.assert_allclose(some.R, alone.R, rtol=1e-10)
    np.testing.assert_allclose(some.T, alone.T, rtol=1e-10)
    np.testing.assert_allclose(some.x_mean, alone.x_mean)
    assert of(X, Y, w).compress(columns=[]).R.shape == (1, 0)


def test_many_columns_go_through_several_blocks_of_the_substitution():
    X, Y, w = make_data(n=400, d=200)
    small = of(X, Y, w).compress()
    X, Y = X - w @ X / w.sum(), Y - w @ Y / w.sum()
    np.testing.assert_allclose(small.R.T @ small.T, (w[:, None] * X).T @ Y, atol=1e-11 * w.sum())
    np.testing.assert_allclose(np.sum(small.T**2, axis=0), w @ Y**2, rtol=1e-12)


def test_a_fold_left_by_subtraction_is_compressed_within_its_bound():
    X, Y, w = make_data("indicator", 300, d=5)
    X[200:, 3] = 0.7  # constant in what is left: nothing but rounding remains of it
    small = (of(X, Y, w) - of(X[:200], Y[:200], w[:200])).compress()
    assert compression_ratio(small, exact_moments(X[200:], Y[200:], w[200:])[2], small.error) <= 1.0


def nearly_dependent(seed=0):
    X, Y, w = make_data(n=200, d=4, seed=seed)
    X[:, 3] = X[:, 0] + 1e-10 * X[:, 3]
    return X, Y, w


def exact_objective(X, Y, w, B):
    moments = exact_moments(X, Y, w)[2]
    D = np.vstack([to_fractions(-B), np.eye(B.shape[1], dtype=int) * Fraction(1)])
    return 0.5 * float(np.trace(D.T @ moments @ D))


def test_qr_form_keeps_what_nearly_dependent_columns_tell():
    """Large opposite coefficients: right to the rounding of X in QR form; the Gram form's bound does not promise it."""
    X, Y, w = nearly_dependent()
    B = np.zeros((4, 2))
    B[0], B[3] = 1e3, -1e3
    objective = exact_objective(X, Y, w, B)
    by_qr, by_cholesky = compress_qr(X, Y, w), of(X, Y, w).compress()
    assert 0.5 * np.sum((by_qr.T - by_qr.R @ B) ** 2) == pytest.approx(objective, rel=2e-12)
    error = abs(0.5 * np.sum((by_cholesky.T - by_cholesky.R @ B) ** 2) - objective)
    bound = 0.5 * by_cholesky.error * np.sum((by_cholesky.x_size @ np.abs(B) + by_cholesky.y_size) ** 2)
    assert 1e-10 * objective < error <= bound


def test_qr_form_keeps_small_singular_values():
    X, Y, w = nearly_dependent()
    centered = np.sqrt(w)[:, None] * (X - w @ X / w.sum())
    expected = np.linalg.svd(centered, compute_uv=False)
    assert expected[-1] < 1e-9 * expected[0]
    np.testing.assert_allclose(np.linalg.svd(compress_qr(X, Y, w).R, compute_uv=False), expected, rtol=1e-4)
    assert np.linalg.svd(of(X, Y, w).compress().R, compute_uv=False)[-1] > 10 * expected[-1]


@pytest.mark.parametrize("kind", ["offset", "sparse", "fortran", "float32"])
def test_qr_of_blocks_is_qr_of_all(kind, monkeypatch):
    X, Y, w = make_data(kind, 300)
    w[100:140] = 0.0
    whole = compress_qr(X, Y, w)
    monkeypatch.setattr("groupowl.designs.factors._QR_ENTRIES", 150)
    blocks = compress_qr(X, Y, w)
    signs = np.sign(np.diagonal(whole.R)) * np.sign(np.diagonal(blocks.R))
    np.testing.assert_allclose(blocks.R[:3] * signs[:, None], whole.R[:3], atol=1e-13 * whole.x_size.max())
    np.testing.assert_allclose(
        blocks.R.T @ blocks.R, whole.R.T @ whole.R, rtol=1e-12, atol=1e-13 * whole.x_size.max() ** 2
    )


# What is refused --------------------------------------------------------------------------------------


X_OK, Y_OK = np.arange(12.0).reshape(6, 2) % 5, np.arange(6.0)
BROKEN_X = np.where(X_OK == 2.0, np.nan, X_OK)


@pytest.mark.parametrize("reduce", [of, compress_qr])
@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((X_OK[0], Y_OK), ValueError, r"X must be 2-dimensional \(n_samples, n_features\), got shape \(2,\)"),
        ((X_OK[:, :0], Y_OK), ValueError, r"X is empty: its shape is \(6, 0\)"),
        ((X_OK, Y_OK[:5]), ValueError, r"X has 6 rows, Y has 5 \(shape \(5,\)\)"),
        ((X_OK, np.zeros((6, 0))), ValueError, r"Y is empty: its shape is \(6, 0\)"),
        ((BROKEN_X, Y_OK), ValueError, "X has 2 NaN or infinite entries in columns 0, 1"),
        ((sp.csr_array(BROKEN_X), Y_OK), ValueError, "X has 2 NaN or infinite entries in columns 0, 1"),
        ((X_OK, np.where(Y_OK == 3, np.inf, Y_OK)), ValueError, "Y has 1 NaN or infinite entry"),
        ((X_OK, Y_OK, np.ones(5)), ValueError, "X has 6 rows, sample_weight has length 5"),
        ((X_OK, Y_OK, np.r_[1.0, -2.0, np.ones(4)]), ValueError, r"sample_weight\[1\] is .*-2"),
        ((X_OK, Y_OK, np.r_[np.nan, np.ones(5)]), ValueError, "sample_weight has 1 NaN"),
        ((X_OK, Y_OK, np.zeros(6)), ValueError, "no sample of positive weight"),
        ((X_OK[:0], Y_OK[:0]), ValueError, "no sample of positive weight"),
        ((1e200 * X_OK, Y_OK), ValueError, "overflow"),
        ((X_OK, 1e200 * Y_OK), ValueError, "overflow"),
        ((sp.csr_array(X_OK * 1j), Y_OK), TypeError, "X must hold real numbers"),
        ((X_OK.astype(str), Y_OK), TypeError, "X must hold real numbers"),
        ((X_OK, sp.csr_array(X_OK)), TypeError, "Y must be a dense array"),
    ],
)
def test_bad_data_are_refused(reduce, arguments, error, message):
    with pytest.raises(error, match=message):
        reduce(*arguments)


def test_a_bad_block_is_named():
    with pytest.raises(ValueError, match="X of block 1 has 2 NaN"):
        SufficientStatistics.from_blocks([(X_OK, Y_OK), (BROKEN_X, Y_OK)])
    with pytest.raises(ValueError, match="X and Y of block 1 must have one row per sample: X has 6 rows, Y has 5"):
        SufficientStatistics.from_blocks([(X_OK, Y_OK), (X_OK, Y_OK[:5])])
    with pytest.raises(ValueError, match=r"sample_weight of block 0 must be non-negative, but sample_weight\[2\] is"):
        SufficientStatistics.from_blocks([(X_OK, Y_OK, np.where(Y_OK == 2, -1.0, 1.0))])
    with pytest.raises(
        TypeError, match=r"blocks must hold \(X, Y\) or \(X, Y, sample_weight\), but block 0 is of type nd"
    ):
        SufficientStatistics.from_blocks([X_OK])
    with pytest.raises(ValueError, match="no sample of positive weight"):
        SufficientStatistics.from_blocks([])
    with pytest.raises(ValueError, match="same columns: one has 2 features and 1 tasks, the other 1 and 1"):
        SufficientStatistics.from_blocks([(X_OK, Y_OK), (X_OK[:, :1], Y_OK)])


def test_only_a_part_can_be_taken_off():
    whole, part = of(X_OK, Y_OK), of(X_OK[:4], Y_OK[:4])
    with pytest.raises(ValueError, match="cannot take 6 samples of weight 6 off 4 samples of weight 4"):
        part - whole
    with pytest.raises(ValueError, match="at least one sample"):
        whole - whole
    with pytest.raises(ValueError, match="at least one sample"):
        whole - of(X_OK[:4], Y_OK[:4], np.full(4, 9.0))
    with pytest.raises(ValueError, match="not those of a part"):
        whole - of(100 * X_OK[:4], Y_OK[:4])
    with pytest.raises(ValueError, match="not those of a part"):
        whole - of(X_OK[:4], 100 * Y_OK[:4])
    with pytest.raises(TypeError):
        whole - 1
    with pytest.raises(TypeError):
        whole + 1


def test_moments_of_no_data_are_refused():
    indefinite = replace(of(X_OK, Y_OK), gram=np.array([[1.0, 2.0], [2.0, 1.0]]))
    with pytest.raises(ValueError, match="not those of any samples"):
        indefinite.compress()
    too_correlated = replace(of(X_OK, Y_OK), xy=np.full((2, 1), 1e3))
    with pytest.raises(ValueError, match="not those of any samples"):
        too_correlated.compress()


def test_statistics_are_printed_in_one_line():
    statistics = SufficientStatistics.from_arrays(np.eye(4, 3), np.ones((4, 2)), np.full(4, 0.5))
    expected = "SufficientStatistics(4 samples, 3 features, 2 tasks, total weight 2)"
    assert repr(statistics) == str(statistics) == expected
