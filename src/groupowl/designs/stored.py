"""Matrices on disk that need not fit in memory: products stream over the file, sample space stays in memory."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._checks import IMPUTE, count_message
from .._kernels import EPS, nonzero_rows
from .._typing import FloatArray, Handle, IndexArray
from ..gram import CompressedData, SufficientStatistics, compress_blocks, statistics_of_parts
from .base import LocalDesign, PassCounter
from .columns import SPARSE_SLOWDOWN, Columns, DenseColumns
from .dense import DenseDesign
from .moments import ColumnMoments, block_moments
from .sparse import SparseDesign
from .storage import ChosenRows, Storage, format_bytes, open_storage, parse_memory
from .storage.columns import ColumnCache

# A pass reads pieces of this part of max_memory, at most so many bytes.
_BUFFER_SHARE = 16
_LARGEST_BUFFER = 1 << 23
# Arrays of one number per sample and task that a fit has at its worst moment.
_SAMPLE_ARRAYS = 10
# What libraries take for themselves once they are used.
_OVERHEAD = 16_000_000
# Copies in double precision that centring, scaling and inner solves make of the columns of a working set.
_COLUMN_COPIES = 4
# Matrices of one number per pair of features that compression has at its worst moment, by moments and by QR.
_GRAM_COPIES, _QR_COPIES = 10, 20
# Gram matrices are made from bands of this part of the buffer, of which there are copies in double precision.
_GRAM_SHARE = 4
# A product with more of the columns than this reads all of them, without keeping any.
_MOST_KEPT = 0.25
# Weights for which the moments of the columns are kept.
_KEPT_MOMENTS = 2
# A selection of rows is read into memory if it takes no more than this part of what is left there.
_BATCH_SHARE = 4
# Samples that are drawn from so many runs of rows come from whole runs, read at once.
_FEW_RUNS = 2


class _Store:
    """What all views of one matrix on disk share: the storage, the memory it may use, and what is kept of it."""

    def __init__(self, storage: Storage, max_memory: int) -> None:
        self.storage = storage
        self.max_memory = max_memory
        self.buffer = max(1, min(max_memory // _BUFFER_SHARE, _LARGEST_BUFFER))
        self.n_tasks = 1
        self.forget()
        if storage.least_bytes > max_memory // 4:
            raise ValueError(
                f"max_memory={format_bytes(max_memory)} is too small for {storage.label}: the smallest piece that can "
                f"be read takes {format_bytes(storage.least_bytes)}, and more than a quarter is not left for it. "
                "Raise max_memory, or write the data in smaller pieces."
            )

    def forget(self) -> None:
        """Give up all that is kept."""
        self.cache = ColumnCache(self.storage)
        self.moments: list[tuple[FloatArray, ColumnMoments]] = []
        self.held: tuple[int, Any] | None = None

    def __getstate__(self) -> dict[str, Any]:
        kept = ("cache", "moments", "held")
        return {name: value for name, value in self.__dict__.items() if name not in kept}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.forget()

    # Memory -----------------------------------------------------------------------------------------

    def reserve(self, n_tasks: int) -> None:
        """Set memory aside for sample space, or refuse where there is not enough of it."""
        self.n_tasks = max(self.n_tasks, n_tasks)
        n = self.storage.shape[0]
        if self.sample_bytes > self.max_memory:
            raise ValueError(
                f"max_memory={format_bytes(self.max_memory)} is too small: targets, predictors and dual points of "
                f"{n} samples and {self.n_tasks} tasks take about {format_bytes(self.sample_bytes)}, whatever is left "
                "of X on disk. Raise max_memory."
            )

    @property
    def sample_bytes(self) -> int:
        """Memory for sample space."""
        return _SAMPLE_ARRAYS * 8 * self.storage.shape[0] * self.n_tasks

    @property
    def available(self) -> int:
        """Memory for columns or statistics."""
        piece = max(self.buffer, self.storage.least_bytes)
        return max(self.max_memory - 2 * piece - self.sample_bytes - _OVERHEAD, 0)

    @property
    def row_bytes(self) -> float:
        """Memory of a row, on average."""
        n, d = self.storage.shape
        return self.storage.column_bytes * d / max(n, 1)

    @property
    def batch_bytes(self) -> int:
        """Memory for a selection of rows."""
        return max(self.buffer, self.available // _BATCH_SHARE)

    def keep(self, columns: IndexArray, extra: int = 0) -> bool:
        """Have these columns in memory, with ``extra`` bytes to spare; False where they do not fit."""
        return self.cache.keep(columns, self.available - extra, self.buffer)

    # Reading ----------------------------------------------------------------------------------------

    def bands(self, columns: IndexArray | None, *, kept: bool) -> Iterator[tuple[slice, LocalDesign]]:
        """Bands of rows for Gram matrices, as designs of their own; from memory if the columns are kept there."""
        source: Any = self.cache if kept else self.storage
        for rows, _, matrix in source.bands(self.buffer // _GRAM_SHARE, columns):
            yield rows, as_local(matrix)

    def blocks(self, columns: IndexArray | None, *, kept: bool) -> Iterator[tuple[slice, slice, LocalDesign]]:
        """Pieces in the order of storage as designs of their own."""
        source: Any = self.cache if kept else self.storage
        for rows, part, matrix in source.blocks(self.buffer, columns):
            yield rows, part, as_local(matrix)

    def moments_for(self, w: FloatArray) -> ColumnMoments:
        """Means and squares of all columns, in one pass that also looks for what is not finite.

        The same weights, or multiples of them, take no second pass.
        """
        for known, moments in self.moments:
            if known is w:
                return moments
            with np.errstate(all="ignore"):
                factor = float(w[0, 0] / known[0, 0])
                is_multiple = np.all(np.abs(w - factor * known) <= 4 * EPS * w)
            if is_multiple:
                return moments.weighted(factor)
        moments = self._read_moments(w)
        self.moments = [*self.moments[1 - _KEPT_MOMENTS :], (w, moments)]
        return moments

    def _read_moments(self, w: FloatArray) -> ColumnMoments:
        parts: dict[int, ColumnMoments] = {}
        with np.errstate(all="ignore"):  # what overflows is refused by whoever uses it
            for rows, columns, block in self.blocks(None, kept=False):
                found = block_moments(block, w[rows])
                if not np.isfinite(found.squares.sum()):  # or so large that squares overflow
                    self._check_finite(rows, columns, block.X)
                known = parts.get(columns.start)
                parts[columns.start] = found if known is None else known + found
        return ColumnMoments.side_by_side([parts[start] for start in sorted(parts)])

    def _check_finite(self, rows: slice, columns: slice, matrix: Any) -> None:
        if self.storage.is_sparse:
            counts = np.bincount(matrix.indices[~np.isfinite(matrix.data)], minlength=matrix.shape[1])
        else:
            counts = np.count_nonzero(~np.isfinite(matrix), axis=0)
        if counts.any():
            bad = np.zeros(self.storage.shape[1], dtype=np.intp)
            bad[columns] = counts
            where = f"X ({self.storage.place(rows)})"
            raise ValueError(count_message(where, bad, IMPUTE, self.storage.feature_names))

    @cached_property
    def runs(self) -> IndexArray:
        """Where rows are cut into runs that are read together."""
        return self.storage.runs(self.buffer)

    def take_rows(self, rows: IndexArray) -> Any:
        """Some rows; where they come from few runs of rows, these are read whole, and the last one is kept."""
        cuts = self.runs
        numbers = np.searchsorted(cuts, rows, side="right") - 1
        wanted = np.unique(numbers)
        if len(wanted) > _FEW_RUNS:
            self.held = None
            return self.storage.take_rows(rows)
        known = -1 if self.held is None else self.held[0]
        pieces, places = [], []
        for number in sorted(wanted, key=lambda number: number != known):  # the one that is there comes first
            here = np.flatnonzero(numbers == number)
            pieces.append(self._run(int(number))[rows[here] - cuts[number]])
            places.append(here)
        if len(pieces) == 1:
            return pieces[0]
        whole = sp.vstack(pieces, format="csr") if self.storage.is_sparse else np.concatenate(pieces)
        return whole[np.argsort(np.concatenate(places))]

    def _run(self, number: int) -> Any:
        if self.held is None or self.held[0] != number:
            self.held = None  # gone before the next one comes
            start, stop = (int(cut) for cut in self.runs[number : number + 2])
            self.held = (number, self.storage.read_rows(slice(start, stop)))
        return self.held[1]


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

    A file that changes its size or time of change while it is in use is an error.

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

    def __init__(self, source: Any, max_memory: Any = None) -> None:
        self._adopt(_Store(open_storage(source), parse_memory(max_memory)), None, PassCounter(), None)

    def _adopt(self, store: _Store, chosen: IndexArray | None, passes: PassCounter, unit: float | None) -> None:
        super().__init__(store.storage, passes, unit)
        self._store = store
        self._chosen = chosen
        names = store.storage.feature_names
        if chosen is not None:
            self.shape = (self.shape[0], len(chosen))
            names = None if names is None else [names[j] for j in chosen]
        self.feature_names = names

    @classmethod
    def _view(cls, store: _Store, chosen: IndexArray | None, passes: PassCounter, unit: float) -> MemmapDesign:
        """A design on the same store, with some of its columns."""
        view = cls.__new__(cls)
        view._adopt(store, chosen, passes, unit)
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

    @property
    def density(self) -> float:
        """Stored entries, each of which takes longer than one of a dense matrix."""
        return min(1.0, SPARSE_SLOWDOWN * self.X.density) if self.X.is_sparse else 1.0

    def samples(self, values: Any) -> Handle:
        """Adopt an array, if sample space of this width fits in memory."""
        array = super().samples(values)
        self._store.reserve(1 if array.ndim < 2 else array.shape[1])
        return array

    # Products ---------------------------------------------------------------------------------------

    def matmul(self, B: FloatArray, offset: FloatArray | None = None) -> Handle:
        """``X B + 1 offset^T``; with few non-zero rows of ``B``, by their columns, which are kept."""
        support = np.flatnonzero(nonzero_rows(B))
        columns = self._columns(support)
        Z = np.zeros((self.n_samples, B.shape[1]))
        if len(support) and self._keeps(columns):
            self.charge(len(support))
            self._add_products(Z, columns, B[support], kept=True)
        elif len(support) and self.X.by_columns:  # only those are read
            self.charge(len(support))
            self._add_products(Z, columns, B[support], kept=False)
        elif len(support):
            self.charge(self.n_features)
            self._add_products(Z, self._chosen, B, kept=False)
        return Z if offset is None else Z + offset

    def _keeps(self, columns: IndexArray) -> bool:
        """Whether these columns are in memory, if need be after reading them."""
        few = self._chosen is not None or len(columns) <= _MOST_KEPT * self.n_features
        return self._store.cache.has(columns) or (few and self._store.keep(columns))

    def _add_products(self, Z: FloatArray, columns: IndexArray | None, B: FloatArray, *, kept: bool) -> None:
        for rows, part, block in self._store.blocks(columns, kept=kept):
            Z[rows] += block.matmul(B[part])

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
        """Squared norms of the rows, after centring and scaling; one pass."""
        squares = np.zeros(self.n_samples)
        for rows, part, block in self._own_blocks():
            parts = (None if each is None else each[part] for each in (mean, scale))
            squares[rows] += block.row_squares(*parts)
        return squares

    # Columns ----------------------------------------------------------------------------------------

    def column_means(self, w: Handle) -> FloatArray:
        """Weighted means, from the first pass."""
        return self._own(self._store.moments_for(w).means)

    def column_norms(self, w: Handle, center: FloatArray | None = None) -> FloatArray:
        """Weighted norms about ``center``, from the first pass."""
        moments = self._store.moments_for(w)
        if self._chosen is not None and center is not None:
            whole = np.zeros(self.X.shape[1])
            whole[self._chosen] = center
            center = whole
        return self._own(moments.norms(center))

    def _own(self, values: FloatArray) -> FloatArray:
        return values if self._chosen is None else values[self._chosen]

    def restrict(self, columns: IndexArray) -> MemmapDesign:
        """The same file with these columns; they are kept in memory where they fit."""
        return self._view(self._store, self._columns(columns), self.passes, self.unit)

    @property
    def keeps_columns(self) -> bool:
        """Copies of columns are the design's business."""
        return True

    def columns(self, columns: IndexArray) -> Columns | None:
        """Copies of the columns, or None where those that inner solves make do not fit."""
        chosen = self._columns(columns)
        copies = int(_COLUMN_COPIES * len(chosen) * self._store.storage.column_bytes * 8 / self.dtype.itemsize)
        if not self._store.keep(chosen, copies):
            return None
        if self.X.is_sparse:
            whole = as_local(self._store.cache.gather(slice(0, self.n_samples), chosen))
            whole.passes, whole.unit = self.passes, self.unit
            return whole.columns(np.arange(len(chosen)))
        At = np.empty((len(chosen), self.n_samples))
        for rows, _, matrix in self._store.cache.bands(self._store.buffer, chosen):
            At[:, rows] = matrix.T
        return DenseColumns(At, self.passes, self.unit)

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
        if len(rows) * self._store.row_bytes > self._store.batch_bytes:
            store = _Store(ChosenRows(self.X, rows), self._store.max_memory)
            store.n_tasks = self._store.n_tasks
            return self._view(store, self._chosen, self.passes, unit)
        matrix = self._store.take_rows(rows)
        return as_local(matrix if self._chosen is None else matrix[:, self._chosen], self.passes, unit)

    def shuffled(self, rng: np.random.Generator) -> IndexArray:
        """Runs of rows in random order, the rows of each run shuffled: what follows each other is read together."""
        cuts = self._store.runs
        numbers = rng.permutation(len(cuts) - 1)
        return np.concatenate([rng.permutation(np.arange(cuts[number], cuts[number + 1])) for number in numbers])

    def compressed(self, Y: Handle, w: Handle, *, exact: bool, center: bool = False) -> CompressedData | None:
        """Few samples with the same squared loss, by one pass, or two for a QR factorisation; None if too large."""
        copies = _QR_COPIES if exact else _GRAM_COPIES
        if copies * 8 * self.n_features**2 > self._store.available:
            return None
        self._store.cache.clear()

        def blocks() -> Iterator[tuple[Any, FloatArray, FloatArray]]:
            self.charge(self.n_features)
            for rows, _, matrix in self.X.bands(self._store.buffer, self._chosen):
                yield matrix, Y[rows], w[rows, 0]

        if exact:
            return compress_blocks(blocks, center=center)
        return SufficientStatistics.from_blocks(blocks()).compress(center)

    def statistics_of_parts(self, Y: Handle, w: Handle, parts: IndexArray, n_parts: int) -> list[SufficientStatistics]:
        """One pass, whatever the number of parts."""
        self._store.cache.clear()
        self.charge(self.n_features)
        bands = self.X.bands(self._store.buffer, self._chosen)
        return statistics_of_parts(((X, Y[rows], w[rows, 0], parts[rows]) for rows, _, X in bands), n_parts)


def as_local(matrix: Any, passes: PassCounter | None = None, unit: float = 0.0) -> LocalDesign:
    """The design of a matrix in memory; by itself it counts no products."""
    return SparseDesign(matrix, passes, unit) if sp.issparse(matrix) else DenseDesign(matrix, passes, unit)
