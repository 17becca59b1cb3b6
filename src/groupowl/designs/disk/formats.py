"""File formats: NumPy in ``.npy`` files, memory maps and archives; HDF5 and Zarr, which have chunks; Parquet."""

from __future__ import annotations

import math
import mmap
import os
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..._checks import sparse_array
from ..._text import listed
from ..._typing import IndexArray
from .base import INSIDE, FileState, Storage, merged_cuts
from .memory import check_fits, check_sparse_shape, format_bytes

_HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
_ZIP_ERRORS = (zipfile.BadZipFile, OSError, EOFError, zlib.error)
# Bytes of a Parquet file that are decoded at a time.
_READ_BYTES = 1 << 22
# What pandas calls an index that it had to store.
_INDEX_PREFIX = "__index_level_"


def read_header(path: Path, file: Any) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, whether by columns, and dtype of an array in the format of NumPy; the file is then at its first entry."""
    try:
        return _HEADERS[np.lib.format.read_magic(file)](file)
    except (ValueError, KeyError) as error:
        what = f"{path} has no array that NumPy could read: {error}"
        raise ValueError(f"{what}. Write it again with numpy.save.") from error


# Contiguous arrays ----------------------------------------------------------------------------------------


class FlatFile(Storage):
    """A contiguous array in a file, by rows or by columns, that begins after ``offset`` bytes."""

    reads_single_rows = True

    def __init__(self, path: Path, offset: int, shape: tuple[int, ...], raw: Any, by_columns: bool) -> None:
        super().__init__(str(path), shape, raw)
        self.path = path
        self.offset = offset
        self.by_columns = by_columns
        if by_columns:
            self.least_bytes = self.entry_bytes
        self.state = FileState(path)
        self._check_size(path.stat().st_size)

    def _check_size(self, found: int) -> None:
        needed = self.offset + self.nbytes
        if found < needed:
            what = f"its data need {needed} bytes ({format_bytes(needed)}), the file has {found}"
            raise ValueError(f"{self.label} is truncated: {what}. Write or copy it again.")

    @contextmanager
    def open(self) -> Iterator[Any]:
        """The file with a buffer that all reads share."""
        with self.path.open("rb") as file:
            yield SimpleNamespace(file=file, buffer=np.empty(0, dtype=self.raw))

    def read(self, source: Any, rows: slice, columns: IndexArray | None) -> Any:
        """By rows, all columns are read, and some are taken; by columns, only those asked for are read."""
        n, d = self.shape
        height = rows.stop - rows.start
        if self.by_columns:
            wanted = np.arange(d) if columns is None else columns
            # What is contiguous: neighboring columns where all rows are wanted.
            breaks = np.flatnonzero(np.diff(wanted) != 1) + 1 if height == n else np.arange(1, len(wanted))
            spans = [(int(run[0]) * n + rows.start, len(run) * height) for run in np.split(wanted, breaks)]
            matrix = self._filled(source, spans).reshape(len(wanted), height).T
        else:
            matrix = self._filled(source, [(rows.start * d, height * d)]).reshape(height, d)
            matrix = matrix if columns is None else matrix.take(columns, axis=1)
        return matrix.astype(self.dtype, copy=False)

    def _filled(self, source: Any, spans: list[tuple[int, int]]) -> Any:
        """Entries of all spans, each given by its start and length, one after the other in the buffer."""
        total = sum(length for _, length in spans)
        if len(source.buffer) < total:
            source.buffer = np.empty(total, dtype=self.raw)
        filled = 0
        for start, length in spans:
            source.file.seek(self.offset + start * self.raw.itemsize)
            n_bytes = source.file.readinto(source.buffer[filled : filled + length])
            if n_bytes < length * self.raw.itemsize:
                self._check_size(os.fstat(source.file.fileno()).st_size)
            self.counter.total += n_bytes
            filled += length
        return source.buffer[:total]

    def block_shape(self, max_bytes: int, n_columns: int) -> tuple[int, int] | None:
        """By columns: some of them at a time, long ones in pieces."""
        if not self.by_columns:
            return None
        height = max(1, min(self.shape[0], max_bytes // self.entry_bytes))
        return height, max(1, max_bytes // (self.entry_bytes * self.shape[0]))


class NpyWriter:
    """A matrix of doubles in a ``.npy`` file that grows by rows while it is written; a context."""

    def __init__(self, path: Path, n_columns: int) -> None:
        self.path = path
        self.n_columns = n_columns
        self.n_rows = 0

    def __enter__(self) -> NpyWriter:
        self._file = self.path.open("wb")
        self._write_header()
        return self

    def write(self, X: Any) -> None:
        """Add rows."""
        self._file.write(np.ascontiguousarray(X, dtype="<f8").data)
        self.n_rows += len(X)

    def __exit__(self, *unused: object) -> None:
        with self._file:
            self._file.seek(0)
            self._write_header()  # as long as before: NumPy leaves room for the digits of the number of rows

    def _write_header(self) -> None:
        shape = {"descr": "<f8", "fortran_order": False, "shape": (self.n_rows, self.n_columns)}
        np.lib.format.write_array_header_1_0(self._file, shape)


def open_npy(path: Path) -> FlatFile:
    """The array of a ``.npy`` file."""
    with open(path, "rb") as file:
        shape, by_columns, raw = read_header(path, file)
        offset = file.tell()
    return FlatFile(path, offset, shape, raw, by_columns and len(shape) == 2 and min(shape) > 1)


def open_memmap(array: Any) -> FlatFile:
    """The part of a file that a memory map shows, if it is contiguous there."""
    if not is_flat(array):
        raise ValueError(
            f"X is a memory map that cannot be read from its file (shape {array.shape}, strides {array.strides}, mode "
            f"{array.mode!r}): it has no file if it was computed from a map, changes in mode 'c' are not in the file, "
            "and a part must be contiguous there. Pass whole rows of a row-major map or whole columns of a "
            "column-major one, opened with mode 'r', or a path; or save it with numpy.save."
        )
    whole = array
    while not isinstance(whole, mmap.mmap):
        whole = whole.base
    address = np.frombuffer(whole, dtype=np.uint8).__array_interface__["data"][0]
    start = array.offset - array.offset % mmap.ALLOCATIONGRANULARITY  # of the map in its file, as NumPy chooses it
    offset = start + array.__array_interface__["data"][0] - address
    return FlatFile(Path(array.filename), offset, array.shape, array.dtype, not array.flags.c_contiguous)


def is_flat(array: Any) -> bool:
    """Whether a memory map is one piece of its file, with all changes."""
    has_file = getattr(array, "_mmap", None) is not None and array.filename is not None
    return has_file and array.mode != "c" and (array.flags.c_contiguous or array.flags.f_contiguous)


# Archives -------------------------------------------------------------------------------------------------


class NpzFile(Storage):
    """The one matrix in a ``.npz`` file, dense, or sparse as SciPy writes it; read as a whole, so best small."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.state = FileState(path)
        n_stored = None
        try:
            headers = archive_headers(path)
            if {"format", "shape", "data"} <= set(headers):
                with np.load(path) as file:
                    shape = tuple(int(size) for size in file["shape"])
                check_sparse_shape(str(path), shape)
                n_stored, raw = math.prod(headers["data"][0]), headers["data"][1]
            else:
                if len(headers) != 1:
                    there = ", ".join(repr(name) for name in headers) or "none"
                    expected = "one array or one sparse matrix of SciPy"
                    raise ValueError(f"{path} must hold {expected}, but it has these arrays: {there}.")
                ((self.name, (shape, raw)),) = headers.items()
        except (*_ZIP_ERRORS, KeyError) as error:
            raise ValueError(f"{path} is no .npz file that can be read: {error}. Write or copy it again.") from error
        super().__init__(str(path), shape, raw, n_stored=n_stored)
        self.least_bytes = 2 * self.nbytes  # all of it, and a copy while it is converted

    def cuts(self, max_bytes: int) -> IndexArray:
        """None: the file is read as a whole anyway."""
        return np.unique([0, self.shape[0]])

    @contextmanager
    def open(self) -> Iterator[Any]:
        """The matrix."""
        try:
            if self.is_sparse:
                matrix: Any = sp.csr_array(sparse_array("X", sp.load_npz(self.path)))
            else:
                with np.load(self.path) as file:
                    matrix = file[self.name]
        except (*_ZIP_ERRORS, ValueError) as error:
            raise RuntimeError(f"{self.label} cannot be read: {error}. Write or copy it again.") from error
        self.counter.total += self.nbytes
        yield matrix.astype(self.dtype, copy=False)


def read_archive(path: Path) -> dict[str, Any]:
    """All arrays of a ``.npz`` file by name; pickles are refused, and more than the memory holds before it is read."""
    archive_headers(path)
    with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
        return dict(archive)


def archive_headers(path: Path) -> dict[str, tuple[tuple[int, ...], np.dtype[Any]]]:
    """Shape and dtype of every array in the file, without reading them; refuses what they cannot be."""
    found = {}
    n_bytes = 0
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            name = member.filename.removesuffix(".npy")
            with archive.open(member) as file:
                shape, _, raw = read_header(path, file)
                claimed, stored = math.prod(shape) * raw.itemsize, member.file_size - file.tell()
            if claimed != stored and not raw.hasobject:  # pickles, which NumPy refuses
                what = f"its array {name!r} should have {claimed} bytes by its shape, but has {stored}"
                raise ValueError(f"{path} is damaged: {what}. Write or copy it again.")
            found[name] = (shape, raw)
            n_bytes += claimed
    check_fits(f"{path}, unpacked,", n_bytes)
    return found


# Arrays in chunks -----------------------------------------------------------------------------------------


class ChunkedArray(Storage):
    """A two-dimensional array that is cut into chunks, each of which is read as a whole.

    Parameters
    ----------
    label : str
    opener : callable
        Makes a context in which the array can be indexed.
    state : FileState or None
        Of the file or folder behind it; None where there is neither, so that only another shape or dtype is noticed.
    """

    def __init__(self, label: str, opener: Callable[[], AbstractContextManager[Any]], state: FileState | None) -> None:
        self.opener = opener
        self.state = state
        with opener() as array:
            names = array.attrs.get("columns")
            if names is not None:
                names = [name.decode() if isinstance(name, bytes) else str(name) for name in names]
                if len(array.shape) != 2 or len(names) != array.shape[1]:
                    found = f"{len(names)} names for an array of shape {array.shape}"
                    raise ValueError(f"{label}: its attribute 'columns' has {found}.")
            super().__init__(label, array.shape, array.dtype, names)
            chunks = array.chunks or (1, self.shape[1])
        self.chunks = tuple(min(max(size, 1), max(length, 1)) for size, length in zip(chunks, self.shape, strict=True))
        self.least_bytes = self.chunks[0] * self.chunks[1] * self.entry_bytes

    @contextmanager
    def open(self) -> Iterator[Any]:
        """The array, if it is the one that was found."""
        with self.opener() as array:
            if tuple(array.shape) != self.shape or array.dtype != self.raw:
                how = f"from shape {self.shape} and dtype {self.raw} to {tuple(array.shape)} and {array.dtype}"
                remedy = "Fit again once nothing writes to it."
                raise RuntimeError(f"{self.label} changed while it was in use: {how}. {remedy}")
            yield array

    def read(self, source: Any, rows: slice, columns: IndexArray | None) -> Any:
        """Rows of the chunks that hold the columns; each is read once if these ascend."""
        wanted = np.arange(self.shape[1]) if columns is None else columns
        is_apart = (np.diff(wanted) != 1) & (np.diff(wanted // self.chunks[1]) != 0)
        pieces = []
        for run in np.split(wanted, np.flatnonzero(is_apart) + 1):
            left, right = int(run.min()), int(run.max()) + 1
            try:
                piece = np.asarray(source[rows, left:right])
            except Exception as error:  # of any kind: what codecs and file systems raise
                raise RuntimeError(f"{self.place(rows)} cannot be read: {error}. Write or copy it again.") from error
            self.counter.total += piece.nbytes
            pieces.append(piece if np.array_equal(run, np.arange(left, right)) else piece[:, run - left])
        whole = pieces[0] if len(pieces) == 1 else np.concatenate(pieces, axis=1)
        return whole.astype(self.dtype, copy=False)

    def rows_within(self, max_bytes: int) -> int:
        """Whole chunks, as far as a row of them fits."""
        step = super().rows_within(max_bytes)
        return step - step % self.chunks[0] if step >= self.chunks[0] else step

    def block_shape(self, max_bytes: int, n_columns: int) -> tuple[int, int] | None:
        """Where a row of chunks does not fit: some chunks of it at a time, so that each is read once."""
        height, step = self.chunks
        if n_columns < self.shape[1] or height * n_columns * self.entry_bytes <= max_bytes:
            return None
        return height, max(step, max_bytes // (height * self.entry_bytes) // step * step)


def open_hdf5_dataset(dataset: Any) -> ChunkedArray:
    """A dataset that is open already; it must stay open."""
    label = f"{dataset.file.filename}{INSIDE}{dataset.name}"

    def opener() -> AbstractContextManager[Any]:
        if not dataset:
            raise RuntimeError(f"{label} was closed while it was in use. Keep the file open, or pass its path.")
        return nullcontext(dataset)

    path = Path(dataset.file.filename)
    is_read_only = dataset.file.mode == "r" and path.is_file()  # else this process itself may write what it had before
    return ChunkedArray(label, opener, FileState(path) if is_read_only else None)


def open_zarr_array(array: Any) -> ChunkedArray:
    """An array that is open already, in a folder, a zip archive, or a store whose changes cannot be noticed."""
    root, archive = (getattr(array.store, name, None) for name in ("root", "path"))
    state = None
    if isinstance(root, Path) and root.is_dir():
        state = FileState(root / array.path)
    elif isinstance(archive, Path) and archive.is_file():
        state = FileState(archive)
    return ChunkedArray(f"Zarr array {array.store_path}", lambda: nullcontext(array), state)


def open_inside(library: str, path: Path, name: str) -> ChunkedArray:
    """An array in an HDF5 file or a Zarr folder, opened for each pass; without a name the only matrix there."""
    name = name.strip("/")
    found: dict[str, Any] = {}
    _import(library, path)
    try:
        with _opened_inside(library, path, "") as root:
            if library == "h5py":
                root.visititems(found.__setitem__)
                found |= {name: root[name]} if name and name in root else {}  # also by a link
            else:
                found = dict(sorted(root.members(max_depth=None))) if hasattr(root, "members") else {"": root}
            shapes = {known: item.shape for known, item in found.items() if hasattr(item, "shape")}
    except Exception as error:  # of any kind: what codecs and file systems raise; the cause stays attached
        kind = "HDF5 file" if library == "h5py" else "Zarr store"
        raise ValueError(f"{path} is no {kind} that can be read: {error}. Write or copy it again.") from error
    if name not in shapes:
        matrices = [known for known, shape in shapes.items() if known and len(shape) == 2]
        there = f"It has {len(matrices)} two-dimensional arrays: {listed(matrices)}" if matrices else "It has none"
        if name:
            raise ValueError(f"{path} has no array {name!r}. {there}.")
        if len(matrices) != 1:
            example = f", for example '{path}{INSIDE}{matrices[0]}'" if matrices else ""
            raise ValueError(f"{path} must hold one two-dimensional array. {there}. Name one{example}.")
        (name,) = matrices
    label = f"{path}{INSIDE}{name}" if name else str(path)
    state = FileState(path / name if library == "zarr" else path)
    return ChunkedArray(label, partial(_opened_inside, library, path, name), state)


@contextmanager
def _opened_inside(library: str, path: Path, name: str) -> Iterator[Any]:
    """The array of this name in a file or store, or its root."""
    module = _import(library, path)
    with module.File(path, "r") if library == "h5py" else nullcontext(module.open(str(path), mode="r")) as root:
        yield root[name] if name else root


# Parquet --------------------------------------------------------------------------------------------------


class ParquetTable(Storage):
    """The columns of a Parquet file, all numeric; missing values become NaN."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.state = FileState(path)
        self.label = str(path)
        with self._file(ValueError, "is no Parquet file that can be read") as file:
            metadata = file.metadata
            heights = [metadata.row_group(number).num_rows for number in range(metadata.num_row_groups)]
            fields = [field for field in file.schema_arrow if not field.name.startswith(_INDEX_PREFIX)]
        types = _import("pyarrow", path).types
        for field in fields:
            if not any(kind(field.type) for kind in (types.is_floating, types.is_integer, types.is_boolean)):
                what = f"{path} must hold numbers, but column {field.name!r} is of type {field.type}"
                remedy = "Encode text or categories as numbers first, or drop the column"
                pattern = f"{path.parent}/*{path.suffix}"
                raise TypeError(f"{what}. {remedy}; the command line reads {pattern!r} as one table.")
        raw = np.float32 if all(types.is_float32(field.type) for field in fields) else np.float64
        self.groups = np.cumsum([0, *heights])
        self.names = [field.name for field in fields]
        super().__init__(str(path), (int(self.groups[-1]), len(fields)), raw, self.names)
        self.least_bytes = max([0, *heights]) * self.shape[1] * self.raw.itemsize  # the largest group of rows

    def cuts(self, max_bytes: int) -> IndexArray:
        """Groups of rows, small ones together."""
        return merged_cuts(np.unique(self.groups), self.rows_within(max_bytes))

    def open(self) -> AbstractContextManager[Any]:
        return self._file(RuntimeError, "cannot be read")

    @contextmanager
    def _file(self, kind: type[Exception], trouble: str) -> Iterator[Any]:
        """The open file; errors of Arrow come with its name, which they lack."""
        arrow = _import("pyarrow", self.path)
        parquet = _import("pyarrow.parquet", self.path)
        try:
            with parquet.ParquetFile(self.path, memory_map=False, pre_buffer=False) as file:
                yield file
        except (arrow.ArrowException, OSError) as error:
            words = " ".join(str(error).split()).rstrip(".")
            raise kind(f"{self.label} {trouble}: {words}. Write or copy it again.") from error

    def read(self, source: Any, rows: slice, columns: IndexArray | None) -> Any:
        """Rows of the groups that hold them."""
        names = self.names if columns is None else [self.names[j] for j in columns]
        matrix = np.empty((rows.stop - rows.start, len(names)), dtype=self.dtype, order="F")
        first, last = np.searchsorted(self.groups, [rows.start, rows.stop - 1], side="right") - 1
        start, stop = self.groups[[first, last + 1]]
        # Some columns at a time: Arrow takes several times the memory of what it reads.
        width = max(1, int(_READ_BYTES // max((stop - start) * self.raw.itemsize, 1)))
        for left in range(0, len(names), width):
            some = names[left : left + width]
            table = source.read_row_groups(range(first, last + 1), columns=some, use_threads=False)
            self.counter.total += int(stop - start) * len(some) * self.raw.itemsize
            for j, name in enumerate(some, left):
                matrix[:, j] = table.column(name).to_numpy()[rows.start - start : rows.stop - start]
        return matrix


def _import(package: str, path: Path) -> Any:
    try:
        return import_module(package)
    except ModuleNotFoundError as error:
        name = package.partition(".")[0]
        raise ImportError(f"{path} needs {name}, which is not installed: pip install groupowl[io].") from error
