"""Matrices on disk that need not fit in memory: products stream over the file, sample space stays in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..._checks import IMPUTE, count_message
from ..._typing import FloatArray, Handle, IndexArray
from ...norm.kernels import EPS, nonzero_rows
from ..base import ColumnMoments, LocalDesign, PassCounter, sum_of_pieces
from ..dense import DenseDesign
from ..factors import CompressedData
from ..sparse import SPARSE_SLOWDOWN, Columns, SparseDesign
from . import open_storage
from .base import Block, ChosenRows, FilledStorage, Storage, followed, merged_cuts, stacked
from .memory import format_bytes, parse_memory

# A pass reads pieces of this part of max_memory, at most so many bytes.
_BUFFER_SHARE = 16
_LARGEST_BUFFER = 1 << 23
# Arrays of one number per sample and task that a fit has at its worst moment.
_SAMPLE_ARRAYS = 10
# What libraries take for themselves once they are used.
_OVERHEAD = 16_000_000
# Gram matrices are made from bands of this part of the buffer, of which there are copies in double precision.
_GRAM_SHARE = 4
# A selection of rows is read into memory if it takes no more than this part of what is left there.
_BATCH_SHARE = 4
# Copies in double precision that centering, scaling and inner solves make of the columns of a working set.
_COLUMN_COPIES = 4
# Matrices of one number per pair of features that compression has at its worst moment, by moments and by QR.
_GRAM_COPIES, _QR_COPIES = 10, 20
# A product with more of the columns than this reads all of them, without keeping any.
_MOST_KEPT = 0.25
# Rows that come from so few runs of rows are taken out of whole runs.
_FEW_RUNS = 2
# Rows of kept columns that are gathered at a time: so many that a product with them costs more than its call.
_GATHER_BYTES = 1 << 20


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
    is_on_disk = True

    def __init__(self, source: Any, max_memory: Any = None) -> None:
        super().__init__(open_storage(source))
        self._max_memory = parse_memory(max_memory)
        self._buffer = max(1, min(self._max_memory // _BUFFER_SHARE, _LARGEST_BUFFER))
        self._sample_bytes = _SAMPLE_ARRAYS * 8 * self.n_samples
        if self.X.least_bytes > self._max_memory // 4:
            what = f"the smallest piece that can be read takes {format_bytes(self.X.least_bytes)}"
            remedy = "Raise max_memory, or write the data in smaller pieces."
            where = f"max_memory={format_bytes(self._max_memory)} is too small for {self.X.label}"
            raise ValueError(f"{where}: {what}, and more than a quarter is not left for it. {remedy}")
        if self.X.is_sparse:
            self.density = min(1.0, SPARSE_SLOWDOWN * self.X.density)
        self.feature_names = self.X.feature_names
        self._names: Sequence[str] | None = self.X.feature_names  # of all columns, for messages
        self._used = self._chosen = np.arange(self.n_features)  # columns that must be finite, and those of the design
        self._cache = Cache(self.X, self._buffer)

    def __repr__(self) -> str:
        n, d = self.shape
        return f"MemmapDesign({self.X.label}: {n} x {d}, max_memory={format_bytes(self._max_memory)})"

    def _view(self, storage: Storage, chosen: IndexArray) -> MemmapDesign:
        """The same with some columns or rows; products are counted together."""
        view = copy(self)
        view.X = storage
        view._chosen = chosen
        view.shape = (storage.shape[0], len(chosen))
        names = storage.feature_names
        view.feature_names = None if names is None else [names[j] for j in chosen]
        return view

    @property
    def _is_restricted(self) -> bool:
        return not np.array_equal(self._chosen, np.arange(self.X.shape[1]))

    @property
    def bytes_read(self) -> int:
        """Bytes of X read so far."""
        return int(self.X.counter.total)

    @property
    def file_passes(self) -> float:
        """Bytes of X read so far, relative to all of X."""
        return self.X.counter.total / max(self.X.nbytes, 1)

    # Memory -----------------------------------------------------------------------------------------

    def samples(self, values: Any) -> Handle:
        """Adopt an array, if sample space of this width fits in memory."""
        array = super().samples(values)
        n_bytes = _SAMPLE_ARRAYS * 8 * array.size
        if n_bytes > self._max_memory:
            what = f"targets, predictors and dual points of shape {array.shape} (samples, tasks)"
            size = f"take about {format_bytes(n_bytes)}, whatever is left of X on disk"
            limit = f"max_memory={format_bytes(self._max_memory)}"
            raise ValueError(f"{limit} is too small: {what} {size}. Raise max_memory.")
        self._sample_bytes = max(self._sample_bytes, n_bytes)
        return array

    def widest(self) -> int:
        """Number of columns that fit into half of the free memory; cached columns make room for them."""
        of_column = _SAMPLE_ARRAYS * 8 * self.n_samples
        width = max(min(self._available_bytes // 2 // of_column, super().widest()), 1)
        self._cache.clear()
        self._sample_bytes += width * of_column
        return width

    @property
    def _available_bytes(self) -> int:
        """Memory for columns or statistics."""
        piece = max(self._buffer, self.X.least_bytes)
        return max(self._max_memory - 2 * piece - self._sample_bytes - _OVERHEAD, 0)

    def _blocks(
        self, columns: IndexArray, *, keep: bool, whole_rows: bool = False
    ) -> Iterator[tuple[slice, slice, LocalDesign]]:
        """Pieces of columns of the storage as designs: from memory if they should be kept and fit there."""
        blocks: Iterable[Block] = ()
        if len(columns) and keep and self._cache.keep(columns, self._available_bytes):
            blocks = self._cache.blocks(columns)
        elif len(columns):
            max_bytes = self._buffer // _GRAM_SHARE if whole_rows else self._buffer
            blocks = followed(self.X, self.X.blocks(max_bytes, columns, whole_rows=whole_rows), len(columns))
        for rows, part, matrix in blocks:
            yield rows, part, as_local(matrix)

    # Products ---------------------------------------------------------------------------------------

    def matmul(self, B: FloatArray, offset: FloatArray | None = None) -> Handle:
        """``X B + 1 offset^T``; with few non-zero rows of ``B``, by their columns, which are kept."""
        support = np.flatnonzero(nonzero_rows(B))
        few = max(_MOST_KEPT * self.n_features, len(self._cache.columns))
        keep = self._is_restricted or len(support) <= few
        if not (keep or self.X.by_columns):  # all are read anyway
            support = np.arange(self.n_features)
        self.charge(len(support))
        B = B[support]
        blocks = self._blocks(self._chosen[support], keep=keep)
        pieces = ((rows, block.matmul(B[part])) for rows, part, block in blocks)
        Z = sum_of_pieces(pieces, (self.n_samples, B.shape[1]))
        return Z if offset is None else Z + offset

    def rmatmul(self, T: Handle) -> FloatArray:
        """``X^T T``, one pass; in memory where only some columns are left, and they fit."""
        self.charge(self.n_features)
        blocks = self._blocks(self._chosen, keep=self._is_restricted)
        pieces = ((part, block.rmatmul(T[rows])) for rows, part, block in blocks)
        return sum_of_pieces(pieces, (self.n_features, T.shape[1]))

    def gram(self, left: IndexArray, right: IndexArray, w: Handle) -> FloatArray:
        """``X_left^T diag(w) X_right``, from memory where the columns fit, else in one pass."""
        self.charge(len(left) + (0 if right is left else len(right)))
        both, places = np.unique(np.concatenate([left, right]), return_inverse=True)
        own_left = places[: len(left)]
        own_right = own_left if right is left else places[len(left) :]
        G = np.zeros((len(left), len(right)))
        for rows, _, block in self._blocks(self._chosen[both], keep=True, whole_rows=True):
            G += block.gram(own_left, own_right, w[rows])
        return G

    # Columns ----------------------------------------------------------------------------------------

    def squared_products(self, H: Handle, center: FloatArray | None = None) -> FloatArray:
        """In one pass."""
        self.charge(self.n_features)
        found = np.zeros((self.n_features, H.shape[1]))
        for rows, part, block in self._blocks(self._chosen, keep=self._is_restricted):
            found[part] += block.squared_products(H[rows], None if center is None else center[part])
        return found

    def ranges(self) -> tuple[FloatArray, FloatArray]:
        """From one pass."""
        self.charge(self.n_features)
        lowest, highest = np.full(self.n_features, np.inf), np.full(self.n_features, -np.inf)
        for _, part, block in self._blocks(self._chosen, keep=self._is_restricted):
            low, high = block.ranges()
            lowest[part], highest[part] = np.minimum(lowest[part], low), np.maximum(highest[part], high)
        return lowest, highest

    @np.errstate(all="ignore")  # what overflows is refused by whoever uses it
    def moments(self, w: Handle) -> ColumnMoments:
        """From one pass over all columns of the storage, which also looks for what is not finite.

        The same weights, or multiples of them, take no second pass.
        """
        known, moments = self._cache.moments or (w, None)
        factor = float(w[0, 0] / known[0, 0])
        if moments is None or not np.allclose(w, factor * known, rtol=4 * EPS, atol=0.0):
            factor = 1.0
            moments = self._moments_of_all(w)
            self._cache.moments = w, moments
        return moments.weighted(factor).restrict(self._chosen)

    def _moments_of_all(self, w: FloatArray) -> ColumnMoments:
        parts: dict[int, ColumnMoments] = {}
        for rows, columns, block in self._blocks(np.arange(self.X.shape[1]), keep=False):
            found = block.moments(w[rows])
            if not np.isfinite(found.squares.sum()):  # or so large that squares overflow
                self._check_finite(rows, columns, block.X)
            parts[columns.start] = parts[columns.start] + found if columns.start in parts else found
        return ColumnMoments.side_by_side([parts[start] for start in sorted(parts)])

    def _check_finite(self, rows: slice, columns: slice, matrix: Any) -> None:
        entries = sp.coo_array(matrix)
        bad = np.bincount(columns.start + entries.col[~np.isfinite(entries.data)], minlength=self.X.shape[1])
        bad[np.setdiff1d(np.arange(len(bad)), self._used)] = 0
        if bad.any():
            raise ValueError(count_message(f"X ({self.X.place(rows)})", bad, IMPUTE, self._names))

    def restrict(self, columns: IndexArray) -> MemmapDesign:
        """The same file with these columns; they are kept in memory where they fit."""
        return self._view(self.X, self._chosen[columns])

    def selected(self, columns: IndexArray, names: Sequence[str]) -> MemmapDesign:
        """A design of these columns alone: others may have gaps. ``names``, of all columns, are for messages."""
        view = self.restrict(columns)
        view._used = view._chosen
        view._names = names
        view._cache = Cache(self.X, self._buffer)  # of moments where others may be NaN
        return view

    def filled(self, fills: FloatArray) -> MemmapDesign:
        """The same with a number for each column in place of NaN."""
        of_storage = np.full(self.X.shape[1], np.nan)
        of_storage[self._chosen] = fills
        view = self._view(FilledStorage(self.X, of_storage), self._chosen)
        view._cache = Cache(view.X, self._buffer)
        return view

    def in_memory(self) -> FloatArray:
        """All columns as an array, unchecked; for a few of them, after :meth:`restrict`."""
        values = self.X.read_columns(self._chosen, self._buffer)
        return np.asarray(values.toarray() if self.X.is_sparse else values, dtype=np.float64)

    def whole_columns(self) -> Iterator[FloatArray]:
        """The columns as arrays, unchecked, as many at a time as fit into a part of the memory that is left."""
        at_once = max(1, self._available_bytes // (_COLUMN_COPIES * 8 * self.n_samples))
        for first in range(0, self.n_features, at_once):
            yield self.restrict(np.arange(first, min(first + at_once, self.n_features))).in_memory()

    def columns(self, columns: IndexArray) -> Columns | None:
        """Copies of the columns, or None where those that inner solves make do not fit."""
        chosen = self._chosen[columns]
        column_bytes = self.X.memory_bytes / self.X.shape[1] * 8 / self.dtype.itemsize
        if not self._cache.keep(chosen, self._available_bytes - _COLUMN_COPIES * len(chosen) * column_bytes):
            return None
        kept: Any = as_local(self._cache.matrix, self.passes, self.unit)
        return kept.columns(np.searchsorted(self._cache.columns, chosen))

    # Rows -------------------------------------------------------------------------------------------

    def rows(self, rows: IndexArray) -> LocalDesign:
        """These rows: in memory if they fit, else as a view of the file."""
        unit = self.unit * len(rows) / self.n_samples
        most_bytes = max(self._buffer, self._available_bytes // _BATCH_SHARE)
        if len(rows) * self.X.memory_bytes > self.n_samples * most_bytes:
            view = self._view(ChosenRows(self.X, rows), self._chosen)
            view.unit = unit
            view._cache = Cache(view.X, self._buffer)
            return view
        matrix = self._cache.take_rows(rows)
        return as_local(matrix[:, self._chosen] if self._is_restricted else matrix, self.passes, unit)

    def shuffled(self, rng: np.random.Generator) -> IndexArray:
        """Runs of rows in random order, the rows of each run shuffled."""
        return self._cache.shuffled(rng)

    # Statistics -------------------------------------------------------------------------------------

    def compressed(self, Y: Handle, w: Handle, *, exact: bool, center: bool = False) -> CompressedData | None:
        """Few samples with the same squared loss, by one pass; None if too large."""
        copies = _QR_COPIES if exact else _GRAM_COPIES
        if copies * 8 * self.n_features**2 > self._available_bytes:
            return None
        return super().compressed(Y, w, exact=exact, center=center)

    def bands(self) -> Iterator[tuple[slice, Any]]:
        """As many rows as the buffer holds; columns that are kept make room for them."""
        self._cache.clear()
        self.charge(self.n_features)
        blocks = self.X.blocks(self._buffer, self._chosen, whole_rows=True)
        for rows, _, matrix in followed(self.X, blocks, self.n_features):
            yield rows, matrix


def as_local(matrix: Any, passes: PassCounter | None = None, unit: float = 0.0) -> LocalDesign:
    """The design of a matrix in memory; by itself it counts no products."""
    return SparseDesign(matrix, passes, unit) if sp.issparse(matrix) else DenseDesign(matrix, passes, unit)


# What stays in memory between passes -----------------------------------------------------------------


class Cache:
    """Moments of the columns, the columns of working sets, and the rows around those that were asked for last.

    Designs of the same storage share it. In another process it is empty again.

    Parameters
    ----------
    storage : Storage
    max_bytes : int
        Of a piece that is read at once.

    Attributes
    ----------
    moments : tuple of ndarray and ColumnMoments, or None
        Sample weights, and the moments of all columns for them.
    columns : ndarray
        Columns that are here, ascending.
    matrix : ndarray or csr_array, or None
        All rows of them, in the precision that they have on disk.
    nbytes : float
        Memory of the matrix.
    """

    def __init__(self, storage: Storage, max_bytes: int) -> None:
        self.storage = storage
        self.max_bytes = max_bytes
        self.moments: tuple[FloatArray, ColumnMoments] | None = None
        self.runs: dict[int, Any] = {}  # of rows, by number
        self.clear()

    def __reduce__(self) -> Any:
        return Cache, (self.storage, self.max_bytes)

    # Columns ----------------------------------------------------------------------------------------

    def clear(self) -> None:
        """Give up the columns."""
        self.columns: IndexArray = np.zeros(0, dtype=np.intp)
        self.matrix: Any = None
        self.nbytes = 0.0

    def keep(self, columns: IndexArray, room: float) -> bool:
        """Cache these columns, beside others if ``room`` bytes hold both; False if they alone do not fit.

        Where some are missing, all are read: that is one pass, as for those that are missing.
        """
        column_bytes = self.storage.memory_bytes / self.storage.shape[1]
        wanted = np.unique(columns)
        new = np.setdiff1d(wanted, self.columns, assume_unique=True)
        fits_beside = self.nbytes + len(new) * column_bytes <= room
        if not fits_beside and len(wanted) * column_bytes > room:
            return False
        if len(new) or not fits_beside:
            together = np.union1d(wanted, self.columns) if fits_beside else wanted
            self.clear()  # before others take its place
            self.matrix = self.storage.read_columns(together, self.max_bytes)
            self.columns = together
            self.nbytes = self.matrix.size * self.storage.memory_bytes / max(self.storage.n_stored, 1)
        return True

    def blocks(self, columns: IndexArray) -> Iterator[Block]:
        """Columns that are here, some rows at a time."""
        n_samples, places = self.storage.shape[0], np.searchsorted(self.columns, columns)
        row_bytes = len(columns) * self.storage.dtype.itemsize
        step = max(1, min(self.max_bytes, _GATHER_BYTES) // row_bytes)
        for start in range(0, n_samples, step):
            rows = slice(start, min(start + step, n_samples))
            yield Block(rows, slice(0, len(columns)), self.matrix[rows][:, places])

    # Rows -------------------------------------------------------------------------------------------

    @cached_property
    def cuts(self) -> IndexArray:
        """Where rows are cut into runs that are read together."""
        return merged_cuts(self.storage.cuts(self.max_bytes), self.storage.rows_within(self.max_bytes))

    def shuffled(self, rng: np.random.Generator) -> IndexArray:
        """Runs of rows in random order, the rows of each run shuffled: what follows each other is read together."""
        runs = [np.arange(start, stop) for start, stop in pairwise(self.cuts)]
        return np.concatenate([rng.permutation(runs[number]) for number in rng.permutation(len(runs))])

    def take_rows(self, rows: IndexArray) -> Any:
        """Some rows; where they come from few runs of rows, these are read whole, and stay for the next time."""
        numbers = np.searchsorted(self.cuts, rows, side="right") - 1
        wanted = np.unique(numbers).tolist()
        if len(wanted) > _FEW_RUNS:
            return self.storage.take_rows(rows)
        self.runs = {number: run for number, run in self.runs.items() if number in wanted}
        pieces = []
        for number in wanted:
            if number not in self.runs:
                start, stop = self.cuts[number : number + 2].tolist()
                self.runs[number] = self.storage.read_rows(slice(start, stop))
            pieces.append(self.runs[number][rows[numbers == number] - self.cuts[number]])
        order = np.argsort(numbers, kind="stable")
        return stacked(pieces)[np.argsort(order)]
