"""Small files that claim to be large are refused before anything of that size is there: counted in bytes, not timed."""

import gzip
import io
import tracemalloc
import zipfile

import h5py
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import zarr

from groupowl.designs import as_design
from groupowl.designs.disk import memory
from groupowl.estimators import GroupOWLRegressor
from groupowl.storage import load, save
from groupowl.tables import TableError, read_sheet

GIGABYTE = 10**9


@pytest.fixture(autouse=True)
def _machine(monkeypatch):
    """Sixteen gigabytes of memory: a quarter of them is enough for 20 million columns."""
    monkeypatch.setattr(memory, "machine_memory", lambda: 16 * GIGABYTE)


@pytest.fixture
def peak():
    """Bytes that Python and NumPy have asked for since the test began."""
    tracemalloc.start()
    yield lambda: tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()


@pytest.mark.parametrize("index", ["20000001", "2147483646", "2147483647", "2147483648", "9" * 25, "9" * 6000])
@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_an_index_that_is_too_large_is_named_with_its_line(tmp_path, index, suffix, peak):
    path = tmp_path / f"X.svm{suffix}"
    text = f"1 qid:3 4:1 # 9999999999999:1\n-1 3:1 {index}:2\n1 1:1\n"
    if suffix:
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_text(text)
    with pytest.raises(TableError, match=rf"X\.svm\S*: line 2 has the index {index[:18]}.*enough for 20000000 of them"):
        read_sheet(path)
    assert peak() < 10**7


def test_a_line_that_is_no_sample_is_named_even_behind_comments(tmp_path):
    path = tmp_path / "X.svm"
    path.write_text("1 2:1 # a comment\n1 2:x\n")
    with pytest.raises(TableError, match="line 2 is not in the format"):
        read_sheet(path)


def sparse_file(path, shape, kind="csr"):
    """One entry in the last place of a matrix, as SciPy writes it; indptr of the long side is not written."""
    n, d = shape
    indptr = np.array([0, *[1] * (n if kind == "csr" else d)])
    place = (d if kind == "csr" else n) - 1
    np.savez(path, data=[1.0], indices=[place], indptr=indptr, shape=np.array(shape), format=kind.encode())
    return path


@pytest.mark.parametrize("read", [read_sheet, as_design])
@pytest.mark.parametrize("shape", [(2, 20_000_001), (2, 10**9), (2, 2**40)])
def test_a_sparse_archive_with_too_many_columns(tmp_path, read, shape, peak):
    path = sparse_file(tmp_path / "X.npz", shape)
    with pytest.raises(ValueError, match=rf"\(2, {shape[1]}\): {shape[1]} columns, .*enough for 20000000 of them"):
        read(path)
    assert peak() < 10**7


@pytest.mark.parametrize("read", [read_sheet, as_design])
def test_a_sparse_archive_with_too_many_rows(tmp_path, read, peak):
    path = sparse_file(tmp_path / "X.npz", (10**9, 2), "csc")
    with pytest.raises(ValueError, match=r"\(1000000000, 2\), and so a fit takes 72 GB in memory"):
        read(path)
    assert peak() < 10**7


def header(shape):
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": "<f8", "fortran_order": False, "shape": shape})
    return stream.getvalue()


@pytest.mark.parametrize("read", [read_sheet, as_design])
def test_headers_that_claim_more_than_there_is(tmp_path, read, peak):
    with zipfile.ZipFile(tmp_path / "X.npz", "w") as archive:
        archive.writestr("X.npy", header((10**7, 20)) + b"x" * 48)
    with pytest.raises(ValueError, match="its array 'X' should have 1600000000 bytes by its shape, but has 48"):
        read(tmp_path / "X.npz")
    (tmp_path / "X.npy").write_bytes(header((10**7, 20)) + b"x" * 48)
    with pytest.raises(ValueError, match="is truncated: its data need 1600000128 bytes"):
        read(tmp_path / "X.npy")
    assert peak() < 10**7


def zeros(path, n_bytes):
    """An archive of some kilobytes that unpacks to more."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("X.npy", "w") as member:
        member.write(header((n_bytes // 16, 2)))
        for _ in range(n_bytes // 10**6):
            member.write(bytes(10**6))
    return path


@pytest.mark.parametrize("read", [read_sheet, as_design])
def test_an_archive_that_unpacks_to_more_than_the_memory(tmp_path, read, peak, monkeypatch):
    monkeypatch.setattr(memory, "machine_memory", lambda: 10**7)
    path = zeros(tmp_path / "X.npz", 16 * 10**6)
    assert path.stat().st_size < 10**5
    with pytest.raises(ValueError, match=r"X\.npz, unpacked, takes 16 MB in memory, but this process may use 10 MB"):
        read(path)
    assert peak() < 10**7


def test_a_model_that_unpacks_to_more_than_the_memory(tmp_path, peak, monkeypatch):
    monkeypatch.setattr(memory, "machine_memory", lambda: 10**7)
    folder = save(GroupOWLRegressor(), tmp_path / "model")
    zeros(folder / "arrays.npz", 16 * 10**6)
    with pytest.raises(ValueError, match=r"is damaged: arrays\.npz cannot be read \(.* takes 16 MB in memory"):
        load(folder)
    assert peak() < 10**7


def wide_hdf5(path):
    with h5py.File(path / "X.h5", "w") as file:
        file.create_dataset("X", shape=(5, 10**12), chunks=(5, 1000), dtype="f8")
    return path / "X.h5"


def wide_zarr(path):
    zarr.create_array(str(path / "X.zarr"), shape=(5, 10**12), chunks=(5, 1000), dtype="f8")
    return path / "X.zarr"


@pytest.mark.parametrize("read", [read_sheet, as_design])
@pytest.mark.parametrize("write", [wide_hdf5, wide_zarr])
def test_arrays_of_which_nothing_is_stored(tmp_path, write, read, peak):
    path = write(tmp_path)
    with pytest.raises(
        ValueError, match=r"has the shape \(5, 1000000000000\): 1000000000000 columns, which take 200 TB"
    ):
        read(path)
    assert peak() < 10**7


def test_a_parquet_file_that_unpacks_to_more_than_the_memory(tmp_path, monkeypatch):
    path = tmp_path / "X.parquet"
    pd.DataFrame({"x": np.zeros(10**6)}).to_parquet(path)
    assert path.stat().st_size < 10**5
    monkeypatch.setattr(memory, "machine_memory", lambda: 10**6)
    with pytest.raises(
        TableError, match=r"X\.parquet: a table of shape \(1000000, 1\) takes 8 MB in memory.*groupowl convert"
    ):
        read_sheet(path)


def test_indices_that_do_not_fit_32_bits_are_not_cut_off(tmp_path):
    path = tmp_path / "X.npz"
    X = sp.csr_array(np.eye(3))
    np.savez(
        path, data=X.data, indices=X.indices.astype(np.int64) + 2**32, indptr=X.indptr, shape=X.shape, y=np.ones(3)
    )
    with pytest.raises(TableError, match="X is a damaged sparse matrix"):
        read_sheet(path)


@pytest.mark.parametrize("name", ["indices", "indptr"])
def test_sparse_archives_have_whole_indices(tmp_path, name):
    pieces = {"data": np.ones(2), "indices": np.array([0, 1]), "indptr": np.array([0, 1, 2]), "shape": np.array([2, 2])}
    np.savez(tmp_path / "X.npz", **pieces | {name: pieces[name] + 0.4})
    with pytest.raises(TableError, match=f"{name} must be integers"):
        read_sheet(tmp_path / "X.npz")
