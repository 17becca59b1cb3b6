"""The same matrix as a Dask collection of every kind, and what several tests of them count. Workers import it too."""

from __future__ import annotations

import warnings
from contextlib import contextmanager
from functools import partial

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import scipy.sparse as sp

from groupowl.designs import DaskDesign
from groupowl.designs.dask import blocks


def row_chunks(A, sizes):
    """Chunks of rows of these sizes as far as there are rows; the last one takes what is left."""
    ends = np.minimum(np.cumsum([*sizes, len(A)]), len(A))
    sizes = tuple(int(size) for size in np.diff(ends, prepend=0))
    return da.from_array(A, chunks=(sizes, A.shape[1:])) if A.ndim == 2 else da.from_array(A, chunks=(sizes,))


def computed_rows(A, sizes=(7, 40)):
    """Blocks that Dask computes at every use."""
    return row_chunks(A, sizes).map_blocks(np.array, dtype=A.dtype)


def unknown_rows(A):
    """Chunk sizes that Dask does not know, one of them 0."""
    marked = row_chunks(np.c_[A, np.ones(len(A))], (9, 30))
    padded = da.concatenate([marked, da.zeros((4, marked.shape[1]), chunks=(2, -1))])
    return padded[padded[:, -1] > 0][:, :-1]


def sparse_rows(A, kind=sp.csr_array, dtype=np.float64, sizes=(11, 50)):
    return row_chunks(np.asarray(A, dtype=dtype), sizes).map_blocks(
        partial(_stored, kind=kind), dtype=dtype, meta=sp.csr_matrix((0, 0), dtype=dtype)
    )


def _stored(block, kind):
    return kind(block)


class ForeignSparse:
    """A sparse array of another package, which SciPy can read."""

    def __init__(self, block):
        self.stored = sp.csc_array(block)
        self.shape, self.dtype, self.ndim = block.shape, block.dtype, 2

    def to_scipy_sparse(self):
        return self.stored


def duplicates(block):
    """A CSR array with unsorted indices in which every value is stored as two halves."""
    halves = sp.csr_array(block / 2)
    indices = np.concatenate([np.tile(halves.indices[a:b][::-1], 2) for a, b in _rows_of(halves)])
    data = np.concatenate([np.tile(halves.data[a:b][::-1], 2) for a, b in _rows_of(halves)])
    return sp.csr_array((data, indices, 2 * halves.indptr), shape=block.shape)


def _rows_of(X):
    return zip(X.indptr[:-1], X.indptr[1:], strict=True)


def column_chunks(A):
    return da.from_array(A, chunks=(31, -(-A.shape[1] // 2)))


def frame(A):
    names = [f"x{j}" for j in range(A.shape[1])]
    return dd.from_pandas(pd.DataFrame(A, columns=names), npartitions=3, sort=False)


#: Dask collections of a matrix; those of float32 hold other numbers unless single precision has them exactly.
COLLECTIONS = {
    "even chunks": lambda A: row_chunks(A, (len(A) // 2,)),
    "one chunk": lambda A: row_chunks(A, ()),
    "uneven and empty chunks": lambda A: row_chunks(A, (0, 1, 33, 0, 17)),
    "more chunks than are added up at once": lambda A: row_chunks(A, (1,) * 20),
    "computed at every use": computed_rows,
    "unknown chunk sizes": unknown_rows,
    "float32": lambda A: row_chunks(A.astype(np.float32), (19, 40)),
    "Fortran order": lambda A: row_chunks(A, (19, 40)).map_blocks(np.asfortranarray),
    "data frame": frame,
    "CSR": sparse_rows,
    "CSR float32": partial(sparse_rows, dtype=np.float32),
    "CSC": partial(sparse_rows, kind=sp.csc_matrix),
    "COO": partial(sparse_rows, kind=sp.coo_array),
    "CSR with duplicates": partial(sparse_rows, kind=duplicates),
    "sparse of another package": partial(sparse_rows, kind=ForeignSparse),
}


@contextmanager
def counted(monkeypatch, module, *names):
    """Calls of functions of a module while the block runs, as (rows, columns) of their first arguments."""
    calls = {name: [] for name in names}

    def wrapped(function, found):
        def call(block, *args, **kwargs):
            found.append(np.shape(block))
            return function(block, *args, **kwargs)

        return call

    with monkeypatch.context() as patch:
        for name in names:
            patch.setattr(module, name, wrapped(getattr(module, name), calls[name]))
        yield calls


@contextmanager
def counted_products(monkeypatch, n_features):
    """Products ``X^T T`` with all columns while the block runs: a list that gets an entry for each."""
    found, evaluate = [], DaskDesign.evaluate

    def call(self, T, *sums):
        if self.n_features == n_features:
            found.append(len(sums))
        return evaluate(self, T, *sums)

    with monkeypatch.context() as patch:
        patch.setattr(DaskDesign, "evaluate", call)
        yield found


@contextmanager
def counted_journeys(monkeypatch):
    """Task graphs while the block runs: a list that gets the number of tasks of each."""
    found, computed = [], blocks._computed

    def call(graph, keep, wanted):
        found.append(len(graph))
        return computed(graph, keep, wanted)

    with monkeypatch.context() as patch:
        patch.setattr(blocks, "_computed", call)
        yield found


@contextmanager
def without_warning(message):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=message)
        yield


# Blocks made on the workers -------------------------------------------------------------------------------


def random_rows(n_samples, n_features, n_blocks, *, seed=0, dtype=np.float32):
    """Uniform numbers, a block at a time, the same whenever and wherever they are computed."""
    chunks = (_shares(n_samples, n_blocks), (n_features,))
    make = partial(_random_block, seed=seed, dtype=dtype)
    return da.map_blocks(make, chunks=chunks, dtype=dtype, meta=np.empty((0, 0), dtype=dtype))


def _shares(total, parts):
    return tuple(total // parts + (i < total % parts) for i in range(parts))


def _random_block(seed, dtype, block_info=None):
    place = block_info[None]
    rng = np.random.default_rng([seed, place["chunk-location"][0]])
    return rng.random(place["chunk-shape"], dtype=dtype) - dtype(0.5)


def targets_of(X, B, loss, *, seed=1):
    """Targets of a linear model with coefficients ``B`` as a Dask array in the chunks of X."""
    make = partial(_target_block, B=B, loss=loss, seed=seed)
    return da.map_blocks(make, X, chunks=(X.chunks[0], (B.shape[1],)), dtype=np.float64, meta=np.empty((0, 0)))


def _target_block(block, B, loss, seed, block_info=None):
    rng = np.random.default_rng([seed, block_info[None]["chunk-location"][0]])
    Z = block @ B
    if loss == "squared":
        return Z + rng.standard_normal(Z.shape)
    return np.eye(B.shape[1])[np.argmax(Z + rng.gumbel(size=Z.shape), axis=1)]


def planted(n_features, n_tasks, n_rows, *, seed=2, size=4.0):
    """Coefficients of which so many rows are not zero."""
    rng = np.random.default_rng(seed)
    B = np.zeros((n_features, n_tasks))
    rows = rng.choice(n_features, n_rows, replace=False)
    B[rows] = size * rng.choice([-1.0, 1.0], (n_rows, n_tasks)) * rng.uniform(0.5, 1.0, (n_rows, n_tasks))
    return B
