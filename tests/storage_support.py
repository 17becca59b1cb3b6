"""The same matrix in every kind of storage on disk, for tests that run over all of them."""

from __future__ import annotations

import tempfile
from itertools import count, pairwise
from pathlib import Path

import h5py
import numpy as np
import pandas as pd
import scipy.sparse as sp
import zarr

_FOLDER = tempfile.TemporaryDirectory(prefix="groupowl-tests-")
_NUMBERS = count()


def new_path(name=""):
    """A path that nothing has yet, in a folder that is removed at the end."""
    folder = Path(_FOLDER.name) / str(next(_NUMBERS))
    folder.mkdir()
    return folder / name if name else folder


def write_npy(A, dtype=np.float64, order="C"):
    path = new_path("X.npy")
    np.save(path, np.asarray(A, dtype=dtype, order=order))
    return path


def memory_map(A, dtype=np.float64, order="C"):
    return np.load(write_npy(A, dtype, order), mmap_mode="r")


def part_of_a_map(A, dtype=np.float64, order="C"):
    """Some rows of a map by rows, or columns of a map by columns, that starts inside a file."""
    path = new_path("X.bin")
    path.write_bytes(b"x" * 4099)
    shape = (len(A) + 5, A.shape[1]) if order == "C" else (len(A), A.shape[1] + 5)
    whole = np.memmap(path, dtype=dtype, mode="r+", offset=4099, shape=shape, order=order)
    part = (slice(3, 3 + len(A)), slice(None)) if order == "C" else (slice(None), slice(3, 3 + A.shape[1]))
    whole[...] = 99.0
    whole[part] = A
    whole.flush()
    return np.memmap(path, dtype=dtype, mode="r", offset=4099, shape=shape, order=order)[part]


def write_hdf5(A, dtype=np.float64, **settings):
    path = new_path("X.h5")
    with h5py.File(path, "w") as file:
        file.create_dataset("group/X", data=np.asarray(A, dtype=dtype), **settings)
        file.create_dataset("y", data=np.zeros(3))
    return path


def hdf5_dataset(A):
    return h5py.File(write_hdf5(A, chunks=(5, 4)), "r")["group/X"]


def write_zarr(A, dtype=np.float64, chunks=(7, 13)):
    path = new_path("X.zarr")
    array = zarr.create_array(str(path), shape=A.shape, dtype=dtype, chunks=chunks)
    array[:] = np.asarray(A, dtype=dtype)
    return path


def row_parts(A, cuts=(0, 7, 7, 18)):
    return [A[start:stop] for start, stop in pairwise([*cuts, len(A)])]


def npy_folder(A, dtype=np.float64, order="C"):
    folder = new_path()
    for number, part in enumerate(row_parts(A), start=8):  # 10 comes after 9
        np.save(folder / f"part{number}.npy", np.asarray(part, dtype=dtype, order=order))
    (folder / "_notes.txt").write_text("not a block")
    return folder


def sparse_folder(A, dtype=np.float64, kind=sp.csr_array):
    folder = new_path()
    for number, part in enumerate(row_parts(A)):
        sp.save_npz(folder / f"{number}.npz", kind(part.astype(dtype)))
    return folder


def dense_npz_folder(A):
    folder = new_path()
    for number, part in enumerate(row_parts(A, (0, 10))):
        np.savez_compressed(folder / f"{number}.npz", X=part)
    return folder


def column_names(A):
    return [f"x{j}" for j in range(A.shape[1])]


def write_parquet(A, dtype=np.float64, path=None, **settings):
    path = new_path("X.parquet") if path is None else path
    frame = pd.DataFrame(A.astype(dtype), columns=column_names(A))
    frame.to_parquet(path, **{"row_group_size": 4, **settings})
    return path


def parquet_folder(A, dtype=np.float64):
    folder = new_path()
    for number, part in enumerate(row_parts(A, (0, 11))):
        write_parquet(part, dtype, folder / f"{number}.parquet")
    return folder


#: Sources for a MemmapDesign by what they are, made from a dense array.
STORAGES = {
    "npy C float64": write_npy,
    "npy F float64": lambda A: write_npy(A, order="F"),
    "npy C float32": lambda A: write_npy(A, np.float32),
    "npy F float32": lambda A: write_npy(A, np.float32, "F"),
    "npy big-endian": lambda A: write_npy(A, ">f8"),
    "memmap C float32": lambda A: memory_map(A, np.float32),
    "memmap F float64": lambda A: memory_map(A, order="F"),
    "part of memmap C float64": part_of_a_map,
    "part of memmap F float32": lambda A: part_of_a_map(A, np.float32, "F"),
    "hdf5": lambda A: write_hdf5(A),
    "hdf5 float32 chunks": lambda A: f"{write_hdf5(A, np.float32, chunks=(5, 4), compression='gzip')}::/group/X",
    "hdf5 dataset": hdf5_dataset,
    "zarr": write_zarr,
    "zarr float32 tall chunks": lambda A: zarr.open_array(str(write_zarr(A, np.float32, (24, 3))), mode="r"),
    "folder of npy": npy_folder,
    "folder of npy F float32": lambda A: npy_folder(A, np.float32, "F"),
    "folder of sparse npz": sparse_folder,
    "folder of csc float32 npz": lambda A: sparse_folder(A, np.float32, sp.csc_array),
    "folder of dense npz": dense_npz_folder,
    "folder of parquet": parquet_folder,
    "parquet float32": lambda A: write_parquet(A, np.float32),
}
