"""Matrices on disk: every piece once, in bounded pieces, and a clear message for every file that cannot be read."""

from __future__ import annotations

import os
import shutil
import sys

import h5py
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import zarr

import groupowl as go
from groupowl.designs import DenseDesign, MemmapDesign, SparseDesign, as_design, open_matrix
from groupowl.designs.disk import open_storage
from groupowl.designs.disk.base import ChosenRows, RowBlocks
from groupowl.designs.disk.formats import FlatFile
from groupowl.designs.disk.memory import format_bytes, machine_memory, parse_memory
from storage_support import (
    STORAGES,
    column_names,
    memory_map,
    new_path,
    npy_folder,
    parquet_folder,
    sparse_folder,
    write_hdf5,
    write_npy,
    write_parquet,
    write_zarr,
)

N, D = 24, 13
SIZES = [1, 100, 700, 10**6]  # bytes of a piece: less than a row, one row, some, all


def make_table(n=N, d=D, seed=0):
    """Numbers that single precision holds exactly, half of them zero."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.5)
    return A.astype(np.float32).astype(float)


def dense(matrix):
    return (matrix.toarray() if sp.issparse(matrix) else np.asarray(matrix)).astype(float)


@pytest.fixture(params=STORAGES)
def stored(request):
    A = make_table()
    return open_storage(STORAGES[request.param](A)), A


# Reading ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("max_bytes", SIZES)
@pytest.mark.parametrize("whole_rows", [False, True])
def test_pieces_cover_the_matrix_once(stored, whole_rows, max_bytes):
    storage, A = stored
    for columns in (None, np.array([4]), np.array([11, 0, 4, 3]), np.arange(D)):
        expected = A if columns is None else A[:, columns]
        seen, found = np.zeros(expected.shape), np.zeros(expected.shape)
        for rows, part, matrix in storage.blocks(max_bytes, columns, whole_rows=whole_rows):
            assert matrix.dtype == storage.dtype
            assert sp.issparse(matrix) == storage.is_sparse
            seen[rows, part] += 1
            found[rows, part] = dense(matrix)
        assert (seen == 1).all()
        np.testing.assert_array_equal(found, expected)


def test_bands_have_all_columns_and_rows_in_order(stored):
    storage, _ = stored
    ends = [0]
    for rows, part, _ in storage.blocks(300, whole_rows=True):
        assert part == slice(0, D)
        assert rows.start == ends[-1]
        ends.append(rows.stop)
    assert ends[-1] == N
    assert len(ends) > 2


def test_rows_and_columns(stored):
    storage, A = stored
    np.testing.assert_array_equal(dense(storage.read_rows(slice(5, 20))), A[5:20])
    np.testing.assert_array_equal(dense(storage.read_rows(slice(23, 24), np.array([7, 2]))), A[23:24, [7, 2]])
    for rows in ([], [3], [20, 0, 7, 7, 8], range(N), range(N - 1, -1, -1)):
        rows = np.array(list(rows), dtype=np.intp)
        np.testing.assert_array_equal(dense(storage.take_rows(rows)), A[rows])
        np.testing.assert_array_equal(dense(storage.take_rows(rows, np.array([5, 1]))), A[rows][:, [5, 1]])
    for columns in ([0], [12, 3, 4], range(D)):
        columns = np.array(list(columns))
        np.testing.assert_array_equal(dense(storage.read_columns(columns, 500)), A[:, columns])


def test_chosen_rows_are_a_storage_of_their_own(stored):
    storage, A = stored
    rows = np.array([3, 1, 20, 20, 15, 7, 0])
    part = ChosenRows(storage, rows)
    assert part.shape == (7, D)
    found = np.zeros((7, D))
    for where, columns, matrix in part.blocks(250):
        found[where, columns] = dense(matrix)
    np.testing.assert_array_equal(found, A[rows])
    np.testing.assert_array_equal(dense(part.read_columns(np.array([6, 2]), 250)), A[rows][:, [6, 2]])


def test_bands_cut_all_rows(stored):
    storage, _ = stored
    for max_bytes in SIZES:
        cuts = storage.cuts(max_bytes)
        assert (cuts[0], cuts[-1]) == (0, N)
        assert (np.diff(cuts) > 0).all()


@pytest.mark.parametrize("kind", [kind for kind in STORAGES if "npy" in kind or "memmap" in kind])
def test_a_pass_reads_every_byte_once(kind):
    storage = open_storage(STORAGES[kind](make_table()))
    for whole_rows in (False, True):
        before = storage.counter.total
        assert sum(1 for _ in storage.blocks(400, whole_rows=whole_rows)) > 1
        assert storage.counter.total - before == storage.nbytes == N * D * storage.raw.itemsize


@pytest.mark.parametrize("kind", ["hdf5 float32 chunks", "zarr", "folder of parquet", "folder of sparse npz"])
def test_what_is_compressed_together_is_read_once(kind, monkeypatch):
    monkeypatch.setattr("groupowl.designs.disk.base._GAP_BYTES", 1)  # rows here are too short to be read alone
    storage = open_storage(STORAGES[kind](make_table()))
    rows = np.arange(0, N, 3)
    storage.take_rows(rows)
    assert storage.counter.total <= storage.nbytes


def test_scattered_rows_are_read_alone():
    """Unless what lies between them is short."""
    storage = open_storage(write_npy(np.ones((50, 1000))))
    storage.take_rows(np.array([3, 4, 6, 20, 49]))
    assert storage.counter.total == (4 + 1 + 1) * 8000


@pytest.mark.parametrize("kind", ["npy F float64", "memmap F float64"])
def test_column_major_files_read_only_the_columns_asked_for(kind):
    storage = open_storage(STORAGES[kind](make_table()))
    storage.read_columns(np.array([1, 2, 9]), 10**6)
    assert storage.counter.total == 3 * N * 8


@pytest.mark.parametrize("order", ["C", "F"])
def test_one_buffer_serves_a_pass(order):
    A = make_table(n=100)
    storage = open_storage(write_npy(A, order=order))
    addresses = {block.matrix.__array_interface__["data"][0] for block in storage.blocks(2000)}
    assert len(addresses) == 1


def test_pieces_are_no_larger_than_asked_for():
    A = make_table(n=100)
    for order in ("C", "F"):
        for dtype in (np.float32, np.int16):  # the second needs a copy in double precision, which counts
            storage = open_storage(write_npy(A, dtype, order))
            largest = max(block.matrix.size for block in storage.blocks(4000))
            assert 0.5 * 4000 <= largest * storage.entry_bytes <= 4000


@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.int64, bool, np.float16, ">f4"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_other_numbers_become_double_precision(dtype, order):
    A = np.round(3 * make_table())
    path = write_npy(np.abs(A) if np.dtype(dtype).kind in "ub" else A, dtype, order)
    storage = open_storage(path)
    assert storage.dtype == np.float64
    np.testing.assert_array_equal(dense(storage.read_rows(slice(0, N))), np.load(path).astype(float))


def test_blocks_of_a_folder_follow_the_numbers_in_their_names():
    folder = new_path()
    for number in (10, 9, 100, 1):
        np.save(folder / f"part-{number}.npy", np.full((2, 3), float(number)))
    found = open_storage(folder).read_rows(slice(0, 8))
    np.testing.assert_array_equal(found[::2, 0], [1.0, 9.0, 10.0, 100.0])


def test_blocks_of_different_precision_become_double_precision():
    folder = new_path()
    np.save(folder / "0.npy", np.ones((2, 3), dtype=np.float32))
    np.save(folder / "1.npy", np.full((2, 3), 0.1))
    storage = open_storage(folder)
    assert storage.dtype == np.float64
    assert {block.matrix.dtype for block in storage.blocks(10)} == {np.dtype(np.float64)}


def test_a_zarr_group_and_hdf5_file_with_one_matrix_need_no_name():
    A = make_table()
    path = new_path("store.zarr")
    group = zarr.open_group(str(path), mode="w")
    array = group.create_array("deep/X", shape=A.shape, dtype=A.dtype, chunks=(5, 5))
    array[:] = A
    for source in (path, f"{path}::deep/X", f"{path}::/deep/X", write_hdf5(A)):
        np.testing.assert_array_equal(open_storage(source).read_rows(slice(0, N)), A)


def test_missing_values_of_parquet_are_nan():
    path = new_path("X.parquet")
    pd.DataFrame({"a": pd.array([1, None, 3], dtype="Int64"), "b": [True, False, True]}).to_parquet(path)
    found = open_storage(path).read_rows(slice(0, 3))
    np.testing.assert_array_equal(found, [[1.0, 1.0], [np.nan, 0.0], [3.0, 1.0]])


def test_a_stored_index_of_pandas_is_no_column():
    path = new_path("X.parquet")
    pd.DataFrame({"a": [1.0, 2.0]}, index=[7, 9]).to_parquet(path)
    assert open_storage(path).shape == (2, 1)


# Names --------------------------------------------------------------------------------------------------


def test_names_of_features():
    A = make_table()
    names = column_names(A)
    path = write_hdf5(A)
    with h5py.File(path, "a") as file:
        file["group/X"].attrs["columns"] = names
    store = write_zarr(A)
    zarr.open_array(str(store), mode="r+").attrs["columns"] = names
    for source in (parquet_folder(A), path, store):
        assert MemmapDesign(source).feature_names == names
        assert open_matrix(source).feature_names == names
    part = MemmapDesign(path).restrict(np.array([3, 0]))
    assert part.feature_names == ["x3", "x0"]
    assert MemmapDesign(write_npy(A)).feature_names is None


def test_names_reach_the_path():
    A = make_table()
    y = A[:, 4] + 0.1 * np.arange(N)
    path = go.group_owl_path(MemmapDesign(parquet_folder(A)), y, alphas=3)
    assert list(path.feature_names) == column_names(A)


def test_a_wrong_number_of_names_is_refused():
    path = write_hdf5(make_table())
    with h5py.File(path, "a") as file:
        file["group/X"].attrs["columns"] = ["a", "b"]
    with pytest.raises(ValueError, match=r"attribute 'columns' has 2 names for an array of shape \(24, 13\)"):
        open_storage(path)


# Files that cannot be read ------------------------------------------------------------------------------


def truncate(path, n_bytes=10):
    os.truncate(path, path.stat().st_size - n_bytes)
    return path


def with_part(folder, name, content):
    np.save(folder / name, content)
    return folder


def two_arrays():
    path = new_path("X.npz")
    np.savez(path, X=np.ones((2, 2)), Y=np.ones(2))
    return path


def text_file(name, text="no data"):
    path = new_path(name)
    path.write_text(text)
    return path


def mixed_folder():
    return with_part(sparse_folder(make_table()), "9.npy", make_table())


def renamed_parquet():
    folder = parquet_folder(make_table())
    frame = pd.read_parquet(folder / "1.parquet").rename(columns={"x4": "y4"})
    frame.to_parquet(folder / "1.parquet")
    return folder


def parquet_with_text():
    path = new_path("X.parquet")
    pd.DataFrame({"a": [1.0], "b": ["x"]}).to_parquet(path)
    return path


def hdf5_with_two_matrices():
    path = write_hdf5(make_table())
    with h5py.File(path, "a") as file:
        file["other"] = np.ones((2, 2))
    return path


REFUSED = {
    "no such file": (lambda: new_path("none.npy"), FileNotFoundError, r"none\.npy does not exist"),
    "truncated npy": (lambda: truncate(write_npy(make_table())), ValueError, r"npy is truncated: its data need 2624"),
    "header cut off": (lambda: truncate(write_npy(make_table()), 2500), ValueError, "no array that NumPy could read"),
    "no npy": (lambda: text_file("X.npy"), ValueError, "has no array that NumPy could read"),
    "vector": (lambda: write_npy(np.ones(4)), ValueError, r"^X in .*X\.npy must be 2-dimensional .*got shape \(4,\)"),
    "no columns": (lambda: write_npy(np.ones((4, 0))), ValueError, r"is empty: its shape is \(4, 0\)"),
    "no rows": (lambda: write_npy(np.ones((0, 4))), ValueError, r"X\.npy has no rows: its shape is \(0, 4\)"),
    "complex": (lambda: write_npy(np.ones((2, 2)), complex), TypeError, "must hold real numbers, got dtype complex128"),
    "object": (lambda: write_npy(np.ones((2, 2)), object), TypeError, "must hold real numbers, got dtype object"),
    "text": (lambda: write_npy(np.array([["a"]]), "U1"), TypeError, "must hold real numbers, got dtype <U1"),
    "unknown extension": (lambda: text_file("X.json"), ValueError, r"X\.json is no matrix .*end in \.npy, .* Or give"),
    "text file": (
        lambda: text_file("X.csv.gz"),
        ValueError,
        r"X\.csv\.gz is no matrix .*end in \.npy, .* give that folder: groupowl convert \S*X\.csv\.gz --targets ",
    ),
    "folder of text": (
        lambda: text_file("part1.csv").parent,
        ValueError,
        r"part1\.csv is no matrix .* groupowl convert '\S*/\*\.csv' --targets COLUMNS --out FOLDER$",
    ),
    "name inside npy": (lambda: f"{write_npy(make_table())}::/X", ValueError, "only HDF5 files and Zarr stores have"),
    "empty folder": (new_path, ValueError, r"is an empty folder: it must hold blocks of rows \(\.npy, \.npz"),
    "stray file": (
        lambda: (folder := npy_folder(make_table()), (folder / "notes.txt").write_text(""))[0],
        ValueError,
        r"notes\.txt is no matrix or block of rows: .* Move it elsewhere",
    ),
    "unequal blocks": (
        lambda: with_part(npy_folder(make_table()), "part99.npy", np.ones((2, 5))),
        ValueError,
        r"same columns.*part8\.npy has 13 dense columns, .*part99\.npy has 5 dense columns",
    ),
    "dense and sparse": (mixed_folder, ValueError, r"all dense or all sparse: .*npz has 13 sparse .*npy has 13 dense"),
    "unequal names": (renamed_parquet, ValueError, r"column 4 is 'x4' in .*0\.parquet and 'y4' in .*1\.parquet"),
    "truncated block": (
        lambda: (folder := npy_folder(make_table()), truncate(folder / "part10.npy"))[0],
        ValueError,
        r"part10\.npy is truncated",
    ),
    "two arrays": (two_arrays, ValueError, r"must hold one array or one sparse matrix .*these arrays: 'X', 'Y'"),
    "no npz": (lambda: text_file("X.npz"), ValueError, r"is no \.npz file that can be read"),
    "text in parquet": (parquet_with_text, TypeError, "column 'b' is of type .*string"),
    "no parquet": (lambda: text_file("X.parquet"), ValueError, "is no Parquet file that can be read"),
    "no hdf5": (lambda: text_file("X.h5"), ValueError, "is no HDF5 file that can be read"),
    "two matrices": (hdf5_with_two_matrices, ValueError, r"2 two-dimensional arrays: 'group/X', 'other'\. Name one"),
    "no such dataset": (lambda: f"{write_hdf5(make_table())}::/Z", ValueError, r"no array 'Z'\. It .*: 'group/X'"),
    "hdf5 vector": (lambda: f"{write_hdf5(make_table())}::y", ValueError, r"must be 2-dimensional .*got shape \(3,\)"),
    "no zarr": (lambda: (path := new_path("X.zarr"), path.mkdir())[0], ValueError, "is no Zarr store that can be read"),
    "no such array": (lambda: f"{write_zarr(make_table())}::Z", ValueError, "has no array 'Z'"),
    "array in memory": (lambda: np.ones((2, 2)), TypeError, "got ndarray. It is in memory already: pass it as it is"),
    "list": (lambda: [[1.0]], TypeError, "must be a path, a memory map, an HDF5 dataset or a Zarr array, got list"),
    "strided map": (lambda: memory_map(make_table())[::2], ValueError, "contiguous there.*numpy.save"),
    "part of rows": (lambda: memory_map(make_table())[:, 2:5], ValueError, "part must be contiguous there"),
    "backwards map": (lambda: memory_map(make_table())[::-1], ValueError, "part must be contiguous there"),
    "copy-on-write map": (
        lambda: np.load(write_npy(make_table()), mmap_mode="c"), ValueError, "changes in mode 'c' are not in the file",
    ),
    "computed from a map": (lambda: memory_map(make_table()).copy(), ValueError, "has no file if it was computed"),
}  # fmt: skip


@pytest.mark.parametrize(("make", "kind", "message"), REFUSED.values(), ids=REFUSED)
def test_what_is_refused(make, kind, message):
    with pytest.raises(kind, match=message):
        MemmapDesign(make())


def test_a_map_whose_file_was_cut():
    """NumPy itself would crash with a bus error."""
    path = write_npy(make_table())
    array = np.load(path, mmap_mode="r")
    truncate(path)
    with pytest.raises(ValueError, match="is truncated"):
        MemmapDesign(array)


@pytest.mark.parametrize(("package", "kind"), [("h5py", "hdf5"), ("zarr", "zarr"), ("pyarrow", "parquet float32")])
def test_missing_packages_are_named(monkeypatch, package, kind):
    source = STORAGES[kind](make_table())
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=rf"needs {package}, which is not installed: pip install groupowl\[io\]"):
        MemmapDesign(source)


# Files that change --------------------------------------------------------------------------------------


def shorten(path):
    os.truncate(path, path.stat().st_size - 8)


def touch(path):
    found = path.stat()
    os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns + 1))


def part_of(folder):
    return sorted(folder.iterdir())[-1]


CHANGING = {
    "npy": (write_npy, lambda path: path),
    "hdf5": (write_hdf5, lambda path: path),
    "folder of npy": (lambda A: npy_folder(A), lambda folder: folder / "part10.npy"),
    "folder of npz": (sparse_folder, part_of),
    "folder of parquet": (parquet_folder, part_of),
}


@pytest.mark.parametrize(("write", "file"), CHANGING.values(), ids=CHANGING)
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (shorten, r"was modified while it was in use: it had \d+ bytes in 1 files, and now has \d+ bytes .* Fit again"),
        (touch, "was modified while it was in use: .* or another time of change"),
        (os.remove, "was modified while it was in use: .* now has 0 bytes in 0 files"),
    ],
    ids=["size", "time", "gone"],
)
def test_files_that_change_between_passes(write, file, change, message):
    source = write(make_table())
    storage = open_storage(source)
    list(storage.blocks(500))
    change(file(source))
    with pytest.raises(RuntimeError, match=message):
        list(storage.blocks(500))


def test_a_file_that_is_cut_in_the_middle_of_a_pass():
    path = write_npy(make_table(n=1000))
    blocks = open_storage(path).blocks(300)
    next(blocks)
    os.truncate(path, 800)
    with pytest.raises(ValueError, match=r"X\.npy is truncated"):
        list(blocks)


def zarr_in_memory(A):
    array = zarr.create_array(zarr.storage.MemoryStore(), shape=A.shape, dtype=np.float64, chunks=(7, 13))
    array[:] = A
    return array


def test_a_zarr_array_that_changes_its_shape():
    """All that can be noticed where there are no files."""
    array = zarr_in_memory(make_table())
    storage = open_storage(array)
    array.resize((30, D))
    with pytest.raises(RuntimeError, match=r"from shape \(24, 13\) and dtype float64 to \(30, 13\)"):
        list(storage.blocks(500))


def rewrite(path, inside=None):
    """The same shape with other numbers."""
    zarr.open_array(str(path), mode="r+", path=inside)[0, 0] = 99.0


def zip_of_zarr(A):
    path = new_path("X.zip")
    with zarr.storage.ZipStore(path, mode="w") as store:
        zarr.create_array(store, data=np.asarray(A), chunks=(7, 13))
    return path


def rewrite_zip(path):
    path.write_bytes(path.read_bytes() + b"more")


def write_group(A):
    path = new_path("group.zarr")
    group = zarr.open_group(str(path), mode="w")
    group.create_array("inside/X", data=np.asarray(A), chunks=(7, 13))
    group.create_array("y", data=np.zeros(3))
    return path


REWRITTEN = {
    "path": (write_zarr, lambda path: path, rewrite),
    "array": (write_zarr, lambda path: zarr.open_array(str(path), mode="r"), rewrite),
    "inside a group": (write_group, lambda path: f"{path}::inside/X", lambda path: rewrite(path, "inside/X")),
    "array of a group": (
        write_group,
        lambda path: zarr.open_group(str(path), mode="r")["inside/X"],
        lambda path: rewrite(path, "inside/X"),
    ),
    "zip": (zip_of_zarr, lambda path: zarr.open_array(zarr.storage.ZipStore(path, mode="r"), mode="r"), rewrite_zip),
    "open HDF5 dataset": (write_hdf5, lambda path: h5py.File(path, "r")["group/X"], touch),
}


@pytest.mark.parametrize("name", REWRITTEN)
def test_an_array_that_is_rewritten_between_passes(name):
    write, source, change = REWRITTEN[name]
    path = write(make_table())
    storage = open_storage(source(path))
    list(storage.blocks(500))
    list(storage.blocks(500))
    change(path)
    with pytest.raises(RuntimeError, match=r"was modified while it was in use.* Fit again"):
        list(storage.blocks(500))


def test_other_arrays_of_a_zarr_group_may_change():
    path = write_group(make_table())
    storage = open_storage(f"{path}::inside/X")
    zarr.open_array(str(path), mode="r+", path="y")[0] = 1.0
    list(storage.blocks(500))


def test_chunks_that_appear_and_go_are_noticed():
    path = write_zarr(make_table())
    storage = open_storage(path)
    next(file for file in sorted(path.rglob("*")) if file.is_file() and file.name == "0").unlink()
    with pytest.raises(
        RuntimeError, match=r"X\.zarr was modified while it was in use: it had \d+ bytes in 5 files, .* in 4 files"
    ):
        list(storage.blocks(500))


def test_damage_inside_a_parquet_file_is_told_with_its_name():
    path = new_path("X.parquet")
    pd.DataFrame(make_table()).rename(columns=str).to_parquet(path)
    content = bytearray(path.read_bytes())
    content[4:200] = bytes(196)
    path.write_bytes(content)
    storage = open_storage(path)  # its end is whole
    with pytest.raises(RuntimeError, match=r"X\.parquet cannot be read: .*\. Write or copy it again\."):
        list(storage.blocks(500))


def test_a_damaged_chunk_of_zarr():
    path = write_zarr(make_table())
    chunk = next(file for file in path.rglob("*") if file.is_file() and file.name == "0")
    chunk.write_bytes(chunk.read_bytes()[:5])
    with pytest.raises(RuntimeError, match=r"rows 0 to \d+ of .*X\.zarr cannot be read"):
        list(open_storage(path).blocks(10**6))


def test_a_dataset_that_was_closed():
    file = h5py.File(write_hdf5(make_table()), "r")
    storage = open_storage(file["group/X"])
    file.close()
    with pytest.raises(RuntimeError, match="was closed while it was in use"):
        list(storage.blocks(500))


# As X ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", STORAGES)
def test_small_matrices_are_read_into_memory(kind):
    A = make_table()
    design = as_design(STORAGES[kind](A))
    assert type(design) is (SparseDesign if "sparse" in kind or "csc" in kind else DenseDesign)
    np.testing.assert_array_equal(design.matmul(np.eye(D)), A)


@pytest.mark.parametrize("kind", STORAGES)
def test_large_matrices_stay_on_disk(kind, monkeypatch):
    monkeypatch.setattr("groupowl.designs.disk.memory.machine_memory", lambda: 8 * 4 * 1000)
    source = STORAGES[kind](make_table())
    if "npz" in kind or "parquet" in kind or "zarr" in kind or "hdf5" in kind:  # pieces of these are larger than that
        storage = open_storage(source)
        storage.least_bytes = 1
        monkeypatch.setattr("groupowl.designs.disk.open_storage", lambda _: storage)
    assert isinstance(as_design(source), MemmapDesign)
    assert not isinstance(open_matrix(source, max_memory="1MB"), MemmapDesign)


def test_maps_that_are_small_are_not_copied():
    """They are what joblib hands to its workers."""
    array = memory_map(make_table())
    assert np.shares_memory(as_design(array).X, array)
    assert type(as_design(array[::2])) is DenseDesign


def test_large_maps_that_are_not_contiguous_are_used_as_they_are(monkeypatch):
    monkeypatch.setattr("groupowl.designs.disk.memory.default_max_memory", lambda: 800)
    assert type(as_design(memory_map(make_table())[::2])) is DenseDesign


def test_nan_in_a_small_file_names_the_file():
    A = make_table()
    A[3, 5] = np.nan
    with pytest.raises(ValueError, match=r"X\.npy: X has 1 NaN or infinite entry in column 5\. "):
        as_design(write_npy(A))


def test_a_path_as_text():
    A = make_table()
    path = write_npy(A)
    np.testing.assert_array_equal(as_design(str(path)).matmul(np.eye(D)), A)
    with pytest.raises(FileNotFoundError, match=r"elsewhere\.npy does not exist"):
        go.solve(str(path.with_name("elsewhere.npy")), np.ones(N), np.ones(D))


def test_storages_by_name():
    assert isinstance(open_storage(write_npy(make_table())), FlatFile)
    assert isinstance(open_storage(npy_folder(make_table())), RowBlocks)
    folder = new_path()
    shutil.copy(write_parquet(make_table()), folder / "0.PARQUET")
    assert open_storage(folder).shape == (N, D)


# Memory -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [("200MB", 200_000_000), ("1.5 GiB", 1.5 * 2**30), ("64k", 64_000), ("10b", 10), (4096, 4096), (1e6, 10**6)],
)
def test_sizes(text, expected):
    assert parse_memory(text) == expected


@pytest.mark.parametrize("text", ["much", "-1MB", "1 PB", "", "MB", 0, -5, np.inf, "1 IB"])
def test_sizes_that_are_refused(text):
    with pytest.raises(ValueError, match="max_memory must be"):
        parse_memory(text)


@pytest.mark.parametrize("value", [True, [1], 1j])
def test_sizes_of_wrong_type(value):
    with pytest.raises(TypeError, match="max_memory must be a number of bytes, text such as '200MB' or None"):
        parse_memory(value)


def test_sizes_as_people_read_them():
    assert [format_bytes(size) for size in (12, 1500, 2.5e6, 3e9, 4e12)] == [
        "12 bytes", "1.5 kB", "2.5 MB", "3 GB", "4 TB",
    ]  # fmt: skip


def group_files(root, place, files):
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/cgroup").write_text(place)
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def test_memory_of_the_machine_respects_control_groups(tmp_path):
    physical = machine_memory(tmp_path)
    assert physical > 10**8
    new = {"sys/fs/cgroup/a/b/memory.max": "max\n", "sys/fs/cgroup/a/memory.max": "2000000\n"}
    assert machine_memory(group_files(tmp_path / "2", "0::/a/b\n", new)) == 2_000_000
    old = {"sys/fs/cgroup/memory/a/memory.limit_in_bytes": "3000000\n"}
    assert machine_memory(group_files(tmp_path / "1", "7:cpu:/a\n5:memory,x:/a\n", old)) == 3_000_000
    assert machine_memory(group_files(tmp_path / "none", "0::/a\n", {})) == physical


def test_a_quarter_of_the_machine_by_default(monkeypatch):
    monkeypatch.setattr("groupowl.designs.disk.memory.machine_memory", lambda: 4000)
    assert parse_memory(None) == 1000


def test_a_design_is_printed_in_one_line():
    path = write_npy(make_table())
    design = MemmapDesign(path, max_memory="500MB")
    n, d = design.shape
    assert repr(design) == str(design) == f"MemmapDesign({path}: {n} x {d}, max_memory=500 MB)"
    assert f"{path}: {n} x 2, " in repr(design.restrict(np.arange(2)))
