"""Matrices on disk that need not fit in memory: products stream over the file, sample space stays in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from typing import Any

import numpy as np

from ..._typing import FloatArray, Handle, IndexArray
from ...norm.kernels import nonzero_rows
from ..base import ColumnMoments, LocalDesign
from ..dense import DenseColumns
from ..factors import CompressedData, compress_blocks
from ..sparse import SPARSE_SLOWDOWN, Columns
from ..statistics import SufficientStatistics, statistics_of_parts
from . import ChosenRows, Storage, open_storage, parse_memory
from .store import Store, as_local

# Copies in double precision that centering, scaling and inner solves make of the columns of a working set.
_COLUMN_COPIES = 4
# Matrices of one number per pair of features that compression has at its worst moment, by moments and by QR.
_GRAM_COPIES, _QR_COPIES = 10, 20
# A product with more of the columns than this reads all of them, without keeping any.
_MOST_KEPT = 0.25


class MemmapDesign(LocalDesign):
    """X on disk, read in pieces: for data that do not fit in memory.

    Coefficients, targets and predictors are in memory, X is not. Products read the file in its own order into one
    buffer; the columns of working sets are read once and kept as long as there is room. Give it to solvers, paths and
    estimators in place of X.

    Parameters
    ----------
    source : str, path, numpy.memmap, h5py.Dataset or zarr.Array
        - a memory map, also one from ``numpy.load(..., mmap_mode="r")`` or a part of one that is contiguous in the
          file. The file is read, not the map, whose pages would fill the memory.
        - the path of a ``.npy``, ``.npz`` or ``.parquet`` file.
        - an HDF5 dataset or the path of a file, ``"file.h5::/name"`` where it has more than one matrix; a Zarr array
          or its path likewise. Both need ``pip install groupowl[io]``. The attribute ``columns``, where there is one,
          has the names of the features.
        - a folder of files with some rows each: ``.npy``, ``.npz`` (one dense array, or a sparse matrix as
          ``scipy.sparse.save_npz`` writes it) or ``.parquet``, all with the same columns. They are read in the natural
          order of their names, ``part2`` before ``part10``. Names that start with a dot or underscore are left out.

        Single precision stays so, all other numbers are converted to double precision piece by piece.
    max_memory : int or str, default=None
        What a fit may add to the memory of the process: bytes, or text such as ``"200MB"``. A quarter of the machine's
        memory by default. Arrays of one number per sample and task must fit: about nine of them are in use at once.

    Attributes
    ----------
    shape : tuple of int
        Samples and features.
    feature_names : list of str or None
        Names of the columns, where the source has them.
    bytes_read : int
        Bytes of X read so far.
    file_passes : float
        The same relative to all of X.

    Notes
    -----
    The first pass computes means and norms of the columns and looks for NaN. Squared loss with more samples than
    features needs one or two more, for the sufficient statistics. Otherwise each round of the solver is one pass, and
    one more when columns join the working set. ``solver="spgd"`` reads runs of rows in random order and shuffles the
    rows inside a run; it is slow where single rows are scattered over the file, as in column-major files: write those
    again by rows.

    Parquet files are read by their groups of rows, ``.npz`` files as a whole, HDF5 and Zarr by chunks: those must be
    small beside ``max_memory``.

    A file that changes its size or time of change while it is in use is an error; of a Zarr array, so is any of its
    files. Of an array in another store of Zarr, such as one in memory, only another shape or dtype is noticed.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> import groupowl as go
    >>> data = go.datasets.make_correlated_groups(500, 40, 3, random_state=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "X.npy"
    ...     np.save(path, data.X)
    ...     design = go.MemmapDesign(path, max_memory="100MB")
    ...     lam = 0.3 * go.lam_max(design, data.Y, "oscar") * go.weights.oscar(40)
    ...     result = go.solve(design, data.Y, lam)
    >>> result.status, design.shape
    ('converged', (500, 40))
    """

    X: Storage
    keeps_columns = True

    def __init__(self, source: Any, max_memory: Any = None) -> None:
        storage = open_storage(source)
        super().__init__(storage)
        if storage.is_sparse:
            self.density = min(1.0, SPARSE_SLOWDOWN * storage.density)
        self.feature_names = storage.feature_names
        self._store = Store(storage, parse_memory(max_memory))
        self._chosen: IndexArray | None = None  # columns of the storage, where these are not all

    def _view(self, store: Store, chosen: IndexArray | None) -> MemmapDesign:
        """A design on a store, with some of its columns, whose products are counted with those of this one."""
        view = copy(self)
        view.X = store.storage
        view.shape = store.storage.shape
        view.feature_names = names = store.storage.feature_names
        view._store = store
        view._chosen = chosen
        if chosen is not None:
            view.shape = (view.X.shape[0], len(chosen))
            view.feature_names = None if names is None else [names[j] for j in chosen]
        return view

    def _columns(self, columns: IndexArray) -> IndexArray:
        """Columns of the storage."""
        return columns if self._chosen is None else self._chosen[columns]

    @property
    def bytes_read(self) -> int:
        """Bytes of X read so far."""
        return self.X.bytes_read

    @property
    def file_passes(self) -> float:
        """Bytes of X read so far, relative to all of X."""
        return self.X.bytes_read / max(self.X.nbytes, 1)

    def samples(self, values: Any) -> Handle:
        """Adopt an array, if sample space of this width fits in memory."""
        array = super().samples(values)
        self._store.reserve(1 if array.ndim < 2 else array.shape[1])
        return array

    # Products ---------------------------------------------------------------------------------------

    def matmul(self, B: FloatArray, offset: FloatArray | None = None) -> Handle:
        """``X B + 1 offset^T``; with few non-zero rows of ``B``, by their columns, which are kept."""
        support = np.flatnonzero(nonzero_rows(B))
        Z = np.zeros((self.n_samples, B.shape[1]))
        if len(support):
            columns = self._columns(support)
            few = self._chosen is not None or len(support) <= _MOST_KEPT * self.n_features
            kept = bool(np.all(self._store.owner[columns] >= 0)) or (few and self._store.keep(columns))
            only_support = kept or self.X.by_columns
            B = B[support] if only_support else B
            self.charge(len(B))
            for rows, part, block in self._store.blocks(columns if only_support else self._chosen, kept=kept):
                Z[rows] += block.matmul(B[part])
        return Z if offset is None else Z + offset

    def rmatmul(self, T: Handle) -> FloatArray:
        """``X^T T``, one pass; in memory where only some columns are left, and they fit."""
        self.charge(self.n_features)
        C = np.zeros((self.n_features, T.shape[1]))
        for rows, part, block in self._own_blocks():
            C[part] += block.rmatmul(T[rows])
        return C

    def _own_blocks(self) -> Iterator[tuple[slice, slice, LocalDesign]]:
        kept = self._chosen is not None and self._store.keep(self._chosen)
        return self._store.blocks(self._chosen, kept=kept)

    def row_squares(self, mean: FloatArray | None = None, scale: FloatArray | None = None) -> FloatArray:
        """Squared norms of the rows, after centering and scaling; one pass."""
        squares = np.zeros(self.n_samples)
        for rows, part, block in self._own_blocks():
            parts = (None if each is None else each[part] for each in (mean, scale))
            squares[rows] += block.row_squares(*parts)
        return squares

    # Columns ----------------------------------------------------------------------------------------

    def moments(self, w: Handle) -> ColumnMoments:
        """Of all columns from one pass, which is kept; means and norms come from it."""
        moments = self._store.moments_for(w)
        return moments if self._chosen is None else moments.restrict(self._chosen)

    def column_means(self, w: Handle) -> FloatArray:
        return self.moments(w).mean

    def column_norms(self, w: Handle, center: FloatArray | None = None) -> FloatArray:
        return self.moments(w).norms(center)

    def restrict(self, columns: IndexArray) -> MemmapDesign:
        """The same file with these columns; they are kept in memory where they fit."""
        return self._view(self._store, self._columns(columns))

    def selected(self, columns: IndexArray, names: Sequence[str]) -> MemmapDesign:
        """A design of these columns alone: others may have gaps. ``names``, of all columns, are for messages."""
        used = self._columns(columns)
        store = Store(self.X, self._store.max_memory, used, names)
        chosen = None if np.array_equal(used, np.arange(self.X.shape[1])) else used
        return self._view(store, chosen)

    def in_memory(self) -> FloatArray:
        """All columns as an array, unchecked; for a few of them, after :meth:`restrict`."""
        columns = np.arange(self.X.shape[1]) if self._chosen is None else self._chosen
        values = self.X.read_columns(columns, self._store.buffer)
        return np.asarray(values.toarray() if self.X.is_sparse else values, dtype=np.float64)

    def columns(self, columns: IndexArray) -> Columns | None:
        """Copies of the columns, or None where those that inner solves make do not fit."""
        chosen = self._columns(columns)
        copies = int(_COLUMN_COPIES * len(chosen) * self.X.memory_bytes / self.X.shape[1] * 8 / self.dtype.itemsize)
        if not self._store.keep(chosen, copies):
            return None
        whole = self._store.gather(slice(0, self.n_samples), chosen)
        if self.X.is_sparse:
            return as_local(whole, self.passes, self.unit).columns(np.arange(len(chosen)))
        return DenseColumns(np.ascontiguousarray(whole.T, dtype=np.float64), self.passes, self.unit)

    def gram(self, left: IndexArray, right: IndexArray, w: Handle) -> FloatArray:
        """``X_left^T diag(w) X_right``, from memory where the columns fit, else in one pass."""
        self.charge(len(left) + (0 if right is left else len(right)))
        both, places = np.unique(np.concatenate([left, right]), return_inverse=True)
        own_left = places[: len(left)]
        own_right = own_left if right is left else places[len(left) :]
        columns = self._columns(both)
        G = np.zeros((len(left), len(right)))
        if G.size:
            for rows, block in self._store.bands(columns, kept=self._store.keep(columns)):
                G += block.gram(own_left, own_right, w[rows])
        return G

    # Rows -------------------------------------------------------------------------------------------

    def rows(self, rows: IndexArray) -> LocalDesign:
        """These rows: in memory if they fit, else as a view of the file."""
        unit = self.unit * len(rows) / self.n_samples
        if len(rows) * self.X.memory_bytes > self.n_samples * self._store.batch_bytes:
            store = Store(ChosenRows(self.X, rows), self._store.max_memory, self._store.used, self._store.names)
            store.n_tasks = self._store.n_tasks
            view = self._view(store, self._chosen)
            view.unit = unit
            return view
        matrix = self._store.take_rows(rows)
        return as_local(matrix if self._chosen is None else matrix[:, self._chosen], self.passes, unit)

    def shuffled(self, rng: np.random.Generator) -> IndexArray:
        """Runs of rows in random order, the rows of each run shuffled: what follows each other is read together."""
        cuts = self._store.runs
        numbers = rng.permutation(len(cuts) - 1)
        return np.concatenate([rng.permutation(np.arange(cuts[number], cuts[number + 1])) for number in numbers])

    def compressed(self, Y: Handle, w: Handle, *, exact: bool, center: bool = False) -> CompressedData | None:
        """Few samples with the same squared loss, by one pass, or two for a QR factorization; None if too large."""
        copies = _QR_COPIES if exact else _GRAM_COPIES
        if copies * 8 * self.n_features**2 > self._store.available:
            return None
        self._store.clear()

        def blocks() -> Iterator[tuple[Any, FloatArray, FloatArray]]:
            self.charge(self.n_features)
            for rows, _, matrix in self.X.bands(self._store.buffer, self._chosen):
                yield matrix, Y[rows], w[rows, 0]

        return compress_blocks(blocks, center) if exact else SufficientStatistics.from_blocks(blocks()).compress(center)

    def statistics_of_parts(self, Y: Handle, w: Handle, parts: IndexArray, n_parts: int) -> list[SufficientStatistics]:
        """One pass, whatever the number of parts."""
        self._store.clear()
        self.charge(self.n_features)
        bands = self.X.bands(self._store.buffer, self._chosen)
        return statistics_of_parts(((X, Y[rows], w[rows, 0], parts[rows]) for rows, _, X in bands), n_parts)
