"""MemmapDesign: the answers of the same data in memory, few passes over the file, and bounded memory.

The contract of a design runs over every storage in test_designs.py.
"""

from __future__ import annotations

import json
import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
import zarr

import groupowl as go
from groupowl.designs import DenseDesign, MemmapDesign, as_design, standardize
from groupowl.problem import build_problem
from storage_support import STORAGES, npy_folder, parquet_folder, sparse_folder, write_npy, write_zarr
from support import make_case

N, D, Q = 90, 20, 3
WEIGHTS = np.random.default_rng(9).uniform(0.5, 2.0, N)
LARGE_FIT = Path(__file__).parents[1] / "long" / "large_file.py"


@pytest.fixture(autouse=True)
def _small_blocks(request, monkeypatch):
    """Several pieces per pass, although the tables are small."""
    if "real_sizes" not in request.keywords:
        monkeypatch.setattr("groupowl.designs.disk.memmap_design._LARGEST_BUFFER", 3000)
        monkeypatch.setattr("groupowl.designs.disk.memmap_design._GATHER_BYTES", 1000)
        monkeypatch.setattr("groupowl.designs.disk.memmap_design._BATCH_SHARE", 1 << 60)


def make_data(loss="squared", sparse=False):
    case = make_case(0, n=N, d=D, q=Q, loss=loss)
    X = case.X.copy()
    X[:, 7], X[:, 3] = 2.3, 40.0 + X[:, 3]
    if sparse:
        X *= np.random.default_rng(1).random(X.shape) < 0.5
    return X.astype(np.float32).astype(float), case.Y


# The same answers ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("weight", [None, WEIGHTS], ids=["unweighted", "weighted"])
@pytest.mark.parametrize("loss", ["squared", "multinomial"])
@pytest.mark.parametrize("kind", STORAGES)
def test_the_same_objective_as_in_memory(kind, loss, weight):
    X, Y = make_data(loss)
    settings = {"loss": loss, "fit_intercept": True, "sample_weight": weight}
    design = MemmapDesign(STORAGES[kind](X))
    top = go.lam_max(X, Y, "oscar", **settings)
    assert go.lam_max(design, Y, "oscar", **settings) == pytest.approx(top, rel=1e-10)
    lam = 0.2 * top * go.weights.oscar(D)
    expected, found = (go.solve(data, Y, lam, tol=1e-10, **settings) for data in (X, design))
    assert found.converged
    assert 0 < len(found.support) < D
    assert found.primal == pytest.approx(expected.primal, rel=1e-8)
    np.testing.assert_array_equal(found.support, expected.support)


@pytest.mark.parametrize("loss", ["squared", "multinomial"])
@pytest.mark.parametrize("kind", STORAGES)
def test_the_same_path_as_in_memory(kind, loss):
    """With standardization, weights and unpenalized columns, on all of which the first passes decide."""
    X, Y = make_data(loss)
    y = Y if loss == "squared" else np.argmax(Y, axis=1)
    settings = {"loss": loss, "standardize": True, "sample_weight": WEIGHTS, "alphas": 5, "eps": 0.05, "tol": 1e-9}
    for unpenalized in (None, [2, 11]):
        paths = [
            go.group_owl_path(data, y, unpenalized=unpenalized, **settings)
            for data in (X, MemmapDesign(STORAGES[kind](X)))
        ]
        expected, found = paths
        np.testing.assert_allclose(found.alphas, expected.alphas, rtol=1e-9)
        np.testing.assert_array_equal(found.n_selected, expected.n_selected)
        np.testing.assert_allclose(found.deviance_ratio, expected.deviance_ratio, rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(found.coefs, expected.coefs, rtol=0, atol=1e-4 * np.abs(expected.coefs).max())


@pytest.mark.parametrize("solver", ["auto", "apgd", "spgd"])
@pytest.mark.parametrize("loss", ["squared", "multinomial"])
@pytest.mark.parametrize("kind", ["npy C float32", "npy F float64", "folder of sparse npz", "zarr float32 tall chunks"])
def test_every_solver(kind, loss, solver):
    X, Y = make_data(loss)
    settings = {"loss": loss, "fit_intercept": True}
    lam = 0.3 * go.lam_max(X, Y, "oscar", **settings) * go.weights.oscar(D)
    expected = go.solve(X, Y, lam, tol=1e-8, **settings)
    found = go.solve(MemmapDesign(STORAGES[kind](X)), Y, lam, solver=solver, tol=1e-5, random_state=0, **settings)
    assert found.converged
    assert found.primal == pytest.approx(expected.primal, rel=1e-5)


def test_samples_of_weight_zero_are_not_there():
    X, Y = make_data()
    X[5] = np.nan  # of weight zero
    weight = WEIGHTS * (np.arange(N) % 5 > 0)
    lam = 0.2 * go.lam_max(X[weight > 0], Y[weight > 0], "oscar") * go.weights.oscar(D)
    expected = go.solve(X[weight > 0], Y[weight > 0], lam, sample_weight=weight[weight > 0], tol=1e-10)
    for source in (write_npy(X), write_npy(X, order="F"), npy_folder(X)):
        found = go.solve(MemmapDesign(source), Y, lam, sample_weight=weight, tol=1e-10)
        assert found.primal == pytest.approx(expected.primal, rel=1e-8)


def test_the_screener_takes_it():
    X, Y = make_data()
    lam = 0.3 * go.lam_max(X, Y, "oscar") * go.weights.oscar(D)
    B = go.solve(X, Y, lam).B
    reports = [go.SafeScreener(data, Y, lam).update(B) for data in (X, MemmapDesign(write_npy(X)))]
    np.testing.assert_array_equal(reports[0].active, reports[1].active)


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize("kind", ["npy C float32", "npy F float64", "folder of npy", "folder of sparse npz"])
def test_compression_reads_blocks(kind, center, exact):
    X, Y = make_data(sparse=True)
    w = WEIGHTS[:, None]
    expected = DenseDesign(X).compressed(Y, w, exact=exact, center=center)
    design = MemmapDesign(STORAGES[kind](X))
    found = design.compressed(Y, w, exact=exact, center=center)
    scale = np.linalg.norm(expected.R)
    np.testing.assert_allclose(found.R.T @ found.R, expected.R.T @ expected.R, rtol=0, atol=1e-13 * scale**2)
    np.testing.assert_allclose(found.R.T @ found.T, expected.R.T @ expected.T, rtol=0, atol=1e-11 * scale)
    np.testing.assert_allclose(found.x_mean, expected.x_mean, rtol=0, atol=1e-13 * np.abs(X).max())
    if "npy" in kind:
        assert design.file_passes == 1


# Passes over the file -----------------------------------------------------------------------------------


def test_squared_loss_with_many_samples_takes_three_passes():
    """Moments, the statistics, nothing for the solve itself; and one for lam_max."""
    X, Y = make_data()
    for fit_intercept in (False, True):
        settings = {"fit_intercept": fit_intercept}
        lam = 0.2 * go.lam_max(X, Y, "oscar", **settings) * go.weights.oscar(D)
        design = MemmapDesign(write_npy(X))
        assert go.solve(design, Y, lam, **settings).converged
        assert design.file_passes == pytest.approx(2.0)
        design = MemmapDesign(write_npy(X))
        go.lam_max(design, Y, "oscar", **settings)
        assert design.file_passes == pytest.approx(2.0)
        go.solve(design, Y, lam, **settings)
        assert design.file_passes == pytest.approx(3.0)  # the moments are known


@pytest.mark.real_sizes
def test_paths_take_one_pass_more_and_cross_validation_a_few():
    """For the largest alpha, whose certificate is that of the first point; for the last digits of the chosen fit."""
    X, Y = make_data()
    design = MemmapDesign(write_npy(X))
    assert len(go.group_owl_path(design, Y, alphas=8)) > 1
    assert design.file_passes == pytest.approx(3.0)
    design = MemmapDesign(write_npy(X))
    model = go.GroupOWLRegressorCV(alphas=8).fit(design, Y)
    assert model.path_.alpha_max == model.alphas_[0]
    assert design.file_passes <= 7.0 + 1e-9


def test_weights_that_differ_by_a_factor_share_the_first_pass():
    X, _ = make_data()
    design, reference = MemmapDesign(write_npy(X)), DenseDesign(X)
    w = WEIGHTS[:, None]
    for weights in (w, w / w.sum(), 3.0 * w):
        found, expected = design.moments(weights), reference.moments(weights)
        np.testing.assert_allclose(found.mean, expected.mean, rtol=1e-13)
        np.testing.assert_allclose(np.sqrt(found.squares), np.sqrt(expected.squares), rtol=1e-13)
    assert design.file_passes == pytest.approx(1.0)
    other = w * np.where(np.arange(N) == 4, 1.0 + 1e-12, 1.0)[:, None]
    design.moments(other)
    assert design.file_passes == pytest.approx(2.0)


def make_sparse_classes(n, d=200):
    data = go.datasets.make_correlated_groups(n, d, 3, task="classification", random_state=0)
    lam = 0.2 * go.lam_max(data.X, data.Y, "oscar", loss="multinomial") * go.weights.oscar(d)
    return data, lam


@pytest.mark.real_sizes
def test_multinomial_takes_few_products_with_all_of_x(monkeypatch):
    products = []
    original = MemmapDesign.rmatmul
    monkeypatch.setattr(
        MemmapDesign, "rmatmul", lambda self, T: (products.append(self.n_features), original(self, T))[1]
    )
    data, lam = make_sparse_classes(4000)
    design = MemmapDesign(write_npy(data.X, np.float32))
    result = go.solve(design, data.Y, lam, loss="multinomial", fit_intercept=True)
    assert result.converged
    assert 0 < len(result.support) < 50
    full = products.count(200)
    assert 2 <= full <= 40
    rounds = len(result.history.gap)
    # One pass for the moments, one per round, and one whenever columns join the working set.
    assert full <= design.file_passes <= 1 + full + rounds


def test_columns_of_the_working_set_are_read_once():
    X, _ = make_data()
    design = MemmapDesign(write_npy(X))
    B = np.zeros((D, 2))
    B[[1, 4, 9]] = 1.0
    for _ in range(3):
        np.testing.assert_allclose(design.matmul(B), X @ B, rtol=0, atol=1e-12 * np.abs(X).max())
    columns = design.columns(np.array([9, 1]))
    np.testing.assert_array_equal(columns.At, X[:, [9, 1]].T)
    design.gram(np.array([1, 4]), np.array([9]), np.ones((N, 1)))
    design.restrict(np.array([4, 1])).rmatmul(np.ones((N, 1)))
    assert design.file_passes == pytest.approx(1.0)
    assert design.passes.total == pytest.approx((3 * 3 + 3 + 2) / D)  # products are counted all the same
    design.columns(np.array([1, 2]))
    assert design.file_passes == pytest.approx(2.0)


def test_column_major_files_are_read_by_the_columns_that_count():
    X, _ = make_data()
    design = MemmapDesign(write_npy(X, order="F"), max_memory=20_000)  # no room for columns
    B = np.zeros((D, 2))
    B[[1, 4, 9]] = 1.0
    np.testing.assert_allclose(design.matmul(B), X @ B, rtol=0, atol=1e-12 * np.abs(X).max())
    assert design.file_passes == pytest.approx(3 / D)
    assert design.passes.total == pytest.approx(3 / D)


def test_a_product_with_nothing_reads_nothing():
    design = MemmapDesign(write_npy(make_data()[0]))
    np.testing.assert_array_equal(design.matmul(np.zeros((D, 2)), np.array([1.0, 2.0])), np.tile([1.0, 2.0], (N, 1)))
    assert design.bytes_read == 0


# Where columns do not fit -------------------------------------------------------------------------------


def small_memory(monkeypatch, columns, copies=0):
    """Room for so many columns, and for copies in double precision."""
    room = columns * N * 8 + 4 * 8 * N * copies
    monkeypatch.setattr("groupowl.designs.disk.memmap_design.MemmapDesign._available_bytes", room)


@pytest.mark.parametrize("kind", ["npy C float64", "npy F float64", "folder of npy", "hdf5"])
def test_columns_that_do_not_fit_are_streamed(kind, monkeypatch):
    X, _ = make_data()
    small_memory(monkeypatch, 4)
    design = MemmapDesign(STORAGES[kind](X))
    w, size = WEIGHTS[:, None], np.abs(X).max()
    many = np.arange(1, 12)
    assert design.columns(many) is None
    expected = X[:, many].T @ (w * X[:, many])
    np.testing.assert_allclose(design.gram(many, many, w), expected, rtol=0, atol=1e-12 * N * size**2)
    T = np.random.default_rng(0).standard_normal((N, 2))
    part = design.restrict(many)
    np.testing.assert_allclose(part.rmatmul(T), X[:, many].T @ T, rtol=0, atol=1e-12 * N * size)
    np.testing.assert_allclose(part.matmul(np.eye(11)), X[:, many], rtol=0, atol=1e-12 * size)
    assert design._cache.nbytes == 0


def test_columns_that_were_kept_make_room(monkeypatch):
    X, _ = make_data()
    small_memory(monkeypatch, 4)
    design = MemmapDesign(write_npy(X))
    for columns, kept in (([0, 1], [0, 1]), ([5, 1, 2], [0, 1, 2, 5]), ([7, 1], [1, 7]), ([2, 3, 4, 5], [2, 3, 4, 5])):
        part = design.restrict(np.array(columns))
        np.testing.assert_array_equal(part.matmul(np.eye(len(columns))), X[:, columns])
        np.testing.assert_array_equal(design._cache.columns, kept)
        assert design._cache.nbytes <= 4 * N * 8


@pytest.mark.parametrize("loss", ["squared", "multinomial"])
@pytest.mark.parametrize(("columns", "copies"), [(0, 0), (3, 0), (D, 0), (D, 8)])
def test_fits_in_little_memory(loss, columns, copies, monkeypatch):
    """From nothing that fits to everything: slower, and the same answer."""
    X, Y = make_data(loss)
    settings = {"loss": loss, "fit_intercept": True}
    lam = 0.2 * go.lam_max(X, Y, "oscar", **settings) * go.weights.oscar(D)
    expected = go.solve(X, Y, lam, tol=1e-9, **settings)
    small_memory(monkeypatch, columns, copies)
    found = go.solve(MemmapDesign(write_npy(X)), Y, lam, tol=1e-9, **settings)
    assert found.converged
    assert found.primal == pytest.approx(expected.primal, rel=1e-8)


def test_sparse_columns_are_kept_sparse():
    design = MemmapDesign(sparse_folder(make_data(sparse=True)[0]))
    design.restrict(np.arange(5)).rmatmul(np.ones((N, 1)))
    assert sp.issparse(design._cache.matrix)


def test_statistics_that_do_not_fit_are_not_made(monkeypatch):
    X, Y = make_data()
    design = MemmapDesign(write_npy(X))
    assert design.compressed(Y, np.ones((N, 1)), exact=False) is not None
    small_memory(monkeypatch, 1)
    assert design.compressed(Y, np.ones((N, 1)), exact=False) is None


def test_targets_that_do_not_fit_are_refused():
    X, Y = make_data()
    with pytest.raises(ValueError, match=r"^max_memory=15 kB is too small: targets, .* of shape \(90, 3\) .* take"):
        go.solve(MemmapDesign(write_npy(X), max_memory="15kB"), Y, np.ones(D))


@pytest.mark.parametrize(
    ("source", "max_memory"), [(write_npy, 500), (npy_folder, 500), (lambda A: sparse_folder(A), 2000)]
)
def test_pieces_that_do_not_fit_are_refused(source, max_memory):
    with pytest.raises(ValueError, match=r"the smallest piece that can be read takes .* Raise max_memory, or write"):
        MemmapDesign(source(make_data()[0]), max_memory=max_memory)


# Rows ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["npy C float64", "npy F float32", "folder of npy", "folder of sparse npz", "hdf5"])
def test_shuffled_rows_come_in_runs(kind):
    X, _ = make_data()
    design = standardize(MemmapDesign(STORAGES[kind](X)), np.ones((N, 1)), center=True, scale=False)
    order = design.shuffled(np.random.default_rng(0))
    np.testing.assert_array_equal(np.sort(order), np.arange(N))
    cuts = design.base._cache.cuts
    numbers = np.searchsorted(cuts, order, side="right") - 1
    changes = np.count_nonzero(np.diff(numbers))
    assert len(cuts) > 2
    assert changes == len(cuts) - 2  # every run once
    assert (np.diff(order) != 1).any()  # and shuffled inside
    firsts = {int(design.shuffled(np.random.default_rng(seed))[0] // cuts[1]) > 0 for seed in range(20)}
    assert firsts == {False, True}  # not always the same run first
    assert not np.array_equal(order, design.shuffled(np.random.default_rng(1)))


def test_rows_in_memory_are_shuffled_as_ever():
    np.testing.assert_array_equal(
        as_design(np.ones((9, 2))).shuffled(np.random.default_rng(3)), np.random.default_rng(3).permutation(9)
    )


@pytest.mark.parametrize("kind", ["npy C float64", "folder of npy", "hdf5", "parquet float32", "folder of sparse npz"])
def test_an_epoch_of_batches_is_about_one_pass(kind):
    X, _ = make_data()
    design = MemmapDesign(STORAGES[kind](X))
    order = design.shuffled(np.random.default_rng(0))
    for start in range(0, N, 7):
        rows = np.sort(order[start : start + 7])
        np.testing.assert_array_equal(design.rows(rows).matmul(np.eye(D)), X[rows])
    assert design.file_passes <= 1.01


def test_rows_from_anywhere_are_read_one_by_one():
    X, _ = make_data()
    design = MemmapDesign(write_npy(X))
    rows = np.array([80, 2, 41, 2, 17])
    np.testing.assert_array_equal(design.rows(rows).matmul(np.eye(D)), X[rows])
    restricted = design.restrict(np.array([3, 1]))
    np.testing.assert_array_equal(restricted.rows(rows).matmul(np.eye(2)), X[np.ix_(rows, [3, 1])])


def test_many_rows_stay_on_disk():
    X, _ = make_data()
    rows = np.random.default_rng(0).permutation(N)[:70]
    part = MemmapDesign(write_npy(X)).restrict(np.array([5, 0, 2])).rows(rows)
    assert isinstance(part, MemmapDesign)
    expected = X[np.ix_(rows, [5, 0, 2])]
    np.testing.assert_array_equal(part.matmul(np.eye(3)), expected)
    T = np.ones((70, 1))
    np.testing.assert_allclose(part.rmatmul(T)[:, 0], expected.sum(axis=0), rtol=1e-12)
    again = part.rows(np.arange(10, 60))
    np.testing.assert_array_equal(again.matmul(np.eye(3)), expected[10:60])


@pytest.mark.real_sizes
def test_spgd_reads_about_two_passes_per_epoch():
    """One for the batches, one for the snapshot; the first step needs a few for the constants."""
    data, lam = make_sparse_classes(4000, d=50)
    design = MemmapDesign(write_npy(data.X), max_memory="8MB")  # a buffer of a third of the data
    result = go.solve(design, data.Y, lam, loss="multinomial", solver="spgd", tol=1e-3, random_state=0)
    assert result.converged
    assert design.file_passes <= 12 + 3.5 * result.n_iter


# NaN, changes, processes --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "place"),
    [
        (write_npy, r"rows \d+ to \d+ of .*X\.npy"),
        (lambda A: write_npy(A, order="F"), r"rows 0 to 89 of .*X\.npy"),
        (npy_folder, r"rows \d+ to \d+ of .*part11\.npy"),
        (lambda A: sparse_folder(A), r"rows \d+ to \d+ of .*3\.npz"),
    ],
    ids=["C", "F", "folder", "sparse"],
)
def test_nan_is_found_in_the_first_pass(source, place):
    X, Y = make_data()
    X[50, 4], X[50, 6], X[51, 6] = np.nan, np.inf, np.nan
    design = MemmapDesign(source(X))
    with pytest.raises(ValueError, match=rf"^X \({place}\) has \d NaN or infinite entr.* in columns? 4.*SimpleImputer"):
        go.solve(design, Y, np.ones(D))
    assert design.file_passes <= 1.0


def test_nan_is_named_by_the_column():
    X, Y = make_data()
    X[3, 4] = np.nan
    with pytest.raises(ValueError, match=r"0\.parquet\) has 1 NaN or infinite entry in column 'x4'"):
        build_problem(MemmapDesign(parquet_folder(X)), Y, np.ones(D))


def test_numbers_whose_squares_overflow_are_told_from_infinity():
    X, Y = make_data()
    X[3, 4] = 1e200
    with pytest.raises(ValueError, match="X has 1 columns so large that their squared norm overflows"):
        build_problem(MemmapDesign(write_npy(X)), Y, np.ones(D))


def test_a_file_that_changes_during_a_fit():
    X, Y = make_data("multinomial")
    path = write_npy(X)
    lam = 0.1 * go.lam_max(X, Y, "oscar", loss="multinomial") * go.weights.oscar(D)

    def grow(progress):
        with open(path, "ab") as file:
            file.write(b"x")

    with pytest.raises(
        RuntimeError, match=r"X\.npy was modified while it was in use: it had 14528 bytes .* now has 14529 bytes"
    ):
        go.solve(MemmapDesign(path), Y, lam, loss="multinomial", callback=grow)


def test_a_zarr_array_that_is_rewritten_during_a_fit():
    X, Y = make_data("multinomial")
    path = write_zarr(X)
    lam = 0.1 * go.lam_max(X, Y, "oscar", loss="multinomial") * go.weights.oscar(D)

    def rewrite(progress):
        zarr.open_array(str(path), mode="r+")[:] = X[::-1]

    with pytest.raises(
        RuntimeError, match=r"X\.zarr was modified while it was in use: .* another time of change\. Fit again"
    ):
        go.solve(MemmapDesign(path), Y, lam, loss="multinomial", callback=rewrite)


@pytest.mark.parametrize("kind", sorted(set(STORAGES) - {"hdf5 dataset", "zarr float32 tall chunks"}))
def test_designs_can_be_sent_to_other_processes(kind):
    X, _ = make_data()
    design = MemmapDesign(STORAGES[kind](X))
    design.moments(np.ones((N, 1)))
    copy = pickle.loads(pickle.dumps(design))
    assert len(pickle.dumps(design)) < 5000
    np.testing.assert_array_equal(copy.matmul(np.eye(D)), X)


def test_the_first_pass_is_not_disturbed_by_another():
    """Two passes at a time have a buffer each."""
    X, _ = make_data()
    design = MemmapDesign(write_npy(X))
    for rows, _, block in design._blocks(np.arange(D), keep=False):
        design.rmatmul(np.ones((N, 1)))
        np.testing.assert_array_equal(block.X, X[rows])


# Memory -------------------------------------------------------------------------------------------------


@pytest.mark.real_sizes
@pytest.mark.skipif(sys.platform != "linux", reason="the peak of the resident size is read from /proc")
def test_a_gigabyte_is_fitted_in_two_hundred_megabytes(tmp_path):
    free = shutil.disk_usage(tmp_path).free
    if free < 3e9:
        pytest.skip(f"needs 3 GB on disk, {free / 1e9:.1f} GB are free")
    command = [sys.executable, LARGE_FIT, "--folder", tmp_path, "--gigabytes", "1", "--max-memory", "200MB"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    run = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert run.returncode == 0, run.stderr
    reports = [json.loads(line) for line in run.stdout.splitlines()]
    assert {report["loss"] for report in reports} == {"squared", "multinomial"}
    for report in reports:
        assert report["status"] == "converged"
        assert report["bytes"] >= 1e9
        assert report["peak"] < 200e6, report
        assert report["file_passes"] <= 8, report
    assert list(tmp_path.iterdir()) == []
