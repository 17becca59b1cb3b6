"""Arrays in chunks, perhaps compressed: HDF5 datasets and Zarr arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from ..._typing import IndexArray
from .base import Block, FileState, FolderState, Storage

#: Separates the path of a file from the name of an array inside.
INSIDE = "::"
_LISTED = 5


class ChunkedArray(Storage):
    """A two-dimensional array that is cut into chunks, each of which is read as a whole.

    Parameters
    ----------
    label : str
    opener : callable
        Makes a context in which the array can be indexed.
    state : FileState, FolderState or None
        Of the file or folder behind it; None where there is neither, so that only another shape or dtype is noticed.
    """

    reads_whole_runs = True

    def __init__(
        self, label: str, opener: Callable[[], AbstractContextManager[Any]], state: FileState | FolderState | None
    ) -> None:
        self.opener = opener
        self.state = state
        with opener() as array:
            super().__init__(label, array.shape, array.dtype, _names(array, label))
            chunks = array.chunks or (1, self.shape[1])
        self.chunks = tuple(min(max(size, 1), max(length, 1)) for size, length in zip(chunks, self.shape, strict=True))

    @property
    def least_bytes(self) -> int:
        """A chunk."""
        return self.chunks[0] * self.chunks[1] * self.entry_bytes

    @contextmanager
    def opened(self) -> Iterator[Any]:
        """The array, if it is the one that was found."""
        if self.state is not None:
            self.state.check()
        with self.opener() as array:
            if tuple(array.shape) != self.shape or array.dtype != self.raw:
                raise RuntimeError(
                    f"{self.label} changed while it was in use: from shape {self.shape} and dtype {self.raw} to "
                    f"{tuple(array.shape)} and {array.dtype}. Fit again once nothing writes to it."
                )
            yield array

    def read(self, source: Any, rows: slice, columns: IndexArray | None) -> Any:
        """Rows of the chunks that hold the columns."""
        if columns is None:
            return self._read_piece(source, rows, slice(0, self.shape[1]))
        matrix = np.empty((rows.stop - rows.start, len(columns)), dtype=self.dtype)
        step = self.chunks[1]
        for number in np.unique(columns // step):
            chunk = slice(int(number) * step, min((int(number) + 1) * step, self.shape[1]))
            here = np.flatnonzero(columns // step == number)
            matrix[:, here] = self._read_piece(source, rows, chunk)[:, columns[here] - chunk.start]
        return matrix

    def _read_piece(self, source: Any, rows: slice, columns: slice) -> Any:
        try:
            piece = np.asarray(source[rows, columns])
        except Exception as error:  # of any kind: what codecs and file systems raise
            raise RuntimeError(f"{self.place(rows)} cannot be read: {error}. Write or copy it again.") from error
        self.count(piece.nbytes)
        return piece.astype(self.dtype, copy=False)

    def cuts(self, max_bytes: int) -> IndexArray:
        """Between chunks, as far as a row of chunks fits."""
        step = self.rows_within(max_bytes)
        if step >= self.chunks[0]:
            step -= step % self.chunks[0]
        return np.append(np.arange(0, self.shape[0], step), self.shape[0])

    def blocks(self, max_bytes: int, columns: IndexArray | None = None) -> Iterator[Block]:
        """Rows of chunks where these fit; else some chunks of a row at a time, so that each is read once."""
        n, d = self.shape
        height, step = self.chunks
        if columns is not None or height * d * self.entry_bytes <= max_bytes:
            yield from self.bands(max_bytes, columns)
            return
        width = max(step, max_bytes // (height * self.entry_bytes) // step * step)
        with self.opened() as source:
            for left, right in pairwise([*range(0, d, width), d]):
                for start, stop in pairwise([*range(0, n, height), n]):
                    rows, part = slice(start, stop), slice(left, right)
                    yield Block(rows, part, self._read_piece(source, rows, part))


def _names(array: Any, label: str) -> list[str] | None:
    """Names of the columns, from the attribute ``columns``."""
    names = array.attrs.get("columns")
    if names is None:
        return None
    names = [name.decode() if isinstance(name, bytes) else str(name) for name in names]
    if len(array.shape) != 2 or len(names) != array.shape[1]:
        raise ValueError(
            f"{label}: its attribute 'columns' has {len(names)} names for an array of shape {array.shape}."
        )
    return names


# HDF5 -------------------------------------------------------------------------------------------------


def open_hdf5_dataset(dataset: Any) -> ChunkedArray:
    """A dataset that is open already; it must stay open."""
    label = f"{dataset.file.filename}{INSIDE}{dataset.name}"

    def opener() -> AbstractContextManager[Any]:
        if not dataset:
            raise RuntimeError(f"{label} was closed while it was in use. Keep the file open, or pass its path.")
        return nullcontext(dataset)

    path = Path(dataset.file.filename)
    is_read_only = dataset.file.mode == "r" and path.is_file()  # else this process itself may write what it had before
    return ChunkedArray(label, opener, FileState.of(path) if is_read_only else None)


def open_hdf5(path: Path, inside: str) -> ChunkedArray:
    """A dataset of a file, opened for each pass; without a name the only matrix in the file."""
    h5py = _import("h5py", path)
    state = FileState.of(path)
    try:
        with h5py.File(path, "r") as file:
            name = inside or _only_matrix(path, _hdf5_matrices(h5py, file))
            if name not in file or not isinstance(file[name], h5py.Dataset):
                raise _no_array(path, name, _hdf5_matrices(h5py, file))
    except OSError as error:
        raise ValueError(f"{path} is no HDF5 file that can be read: {error}. Write or copy it again.") from error
    return ChunkedArray(f"{path}{INSIDE}{name}", _Hdf5Opener(path, name), state)


class _Hdf5Opener:
    """Opens a dataset; can be sent to other processes."""

    def __init__(self, path: Path, name: str) -> None:
        self.path, self.name = path, name

    @contextmanager
    def __call__(self) -> Iterator[Any]:
        with _import("h5py", self.path).File(self.path, "r") as file:
            yield file[self.name]


def _hdf5_matrices(h5py: Any, file: Any) -> list[str]:
    found: list[str] = []
    file.visititems(lambda name, item: found.append(f"/{name}") if _is_matrix(item, h5py.Dataset) else None)
    return found


# Zarr -------------------------------------------------------------------------------------------------


def open_zarr_array(array: Any) -> ChunkedArray:
    """An array that is open already."""
    return ChunkedArray(f"Zarr array {array.store_path}", lambda: nullcontext(array), _zarr_state(array))


def _zarr_state(array: Any) -> FileState | FolderState | None:
    """Of the files behind an array, which are a folder or a zip archive; other stores have no times of change."""
    root, archive = (getattr(array.store, name, None) for name in ("root", "path"))
    if isinstance(root, Path) and root.is_dir():
        return FolderState.of(root / array.path)
    return FileState.of(archive) if isinstance(archive, Path) and archive.is_file() else None


def open_zarr(path: Path, inside: str) -> ChunkedArray:
    """An array in a folder; without a name the only matrix in it."""
    zarr = _import("zarr", path)
    try:
        node = zarr.open(str(path), mode="r")
    except Exception as error:
        raise ValueError(f"{path} is no Zarr store that can be read: {error}. Write or copy it again.") from error
    name = inside.strip("/")
    if not name and not isinstance(node, zarr.Array):
        name = _only_matrix(path, _zarr_matrices(zarr, node))
    if name and (isinstance(node, zarr.Array) or name not in node or not isinstance(node[name], zarr.Array)):
        raise _no_array(path, name, [] if isinstance(node, zarr.Array) else _zarr_matrices(zarr, node))
    label = f"{path}{INSIDE}{name}" if name else str(path)
    return ChunkedArray(label, _ZarrOpener(path, name), FolderState.of(path / name))


class _ZarrOpener:
    """Opens an array; can be sent to other processes."""

    def __init__(self, path: Path, name: str) -> None:
        self.path, self.name = path, name

    @contextmanager
    def __call__(self) -> Iterator[Any]:
        yield _import("zarr", self.path).open_array(str(self.path), mode="r", path=self.name or None)


def _zarr_matrices(zarr: Any, group: Any) -> list[str]:
    return sorted(name for name, item in group.members(max_depth=None) if _is_matrix(item, zarr.Array))


# Both -------------------------------------------------------------------------------------------------


def _is_matrix(item: Any, kind: type) -> bool:
    return isinstance(item, kind) and len(item.shape) == 2  # type: ignore[attr-defined]


def _only_matrix(path: Path, found: list[str]) -> str:
    if len(found) == 1:
        return found[0]
    if not found:
        raise ValueError(f"{path} has no two-dimensional array.")
    raise ValueError(
        f"{path} has {len(found)} two-dimensional arrays: {_listed(found)}. "
        f"Name one of them, for example '{path}{INSIDE}{found[0]}'."
    )


def _no_array(path: Path, name: str, found: list[str]) -> ValueError:
    there = f"It has {_listed(found)}" if found else "It has no two-dimensional array that could be named"
    return ValueError(f"{path} has no array {name!r}. {there}.")


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return ", ".join(repr(name) for name in names[:_LISTED]) + more


def _import(package: str, path: Path) -> Any:
    try:
        return import_module(package)
    except ModuleNotFoundError as error:
        raise ImportError(f"{path} needs {package}, which is not installed: pip install groupowl[io].") from error
