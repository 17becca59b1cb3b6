"""From a file to a sheet: which reader it needs, by its suffix or by the format that the user names."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import is_zipfile

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file
from sklearn.preprocessing import MultiLabelBinarizer

from .._checks import IMPUTE, sparse_array
from .._text import listed
from ..designs import open_matrix
from ..designs.disk import open_storage
from ..designs.disk.base import INSIDE
from ..designs.disk.memory import check_fits, check_sparse_shape, most_columns, too_many_columns
from ..designs.disk.npy import read_archive
from .arff import read_arff
from .delimited import format_suffix, open_bytes, read_delimited
from .names import NumberedNames, check_names, own_names
from .sheet import Sheet
from .table import TableError

# Bytes of a cell of a table in memory, as numbers have.
_CELL_BYTES = 8


def read_sheet(
    path: str | Path,
    *,
    format: str | None = None,
    transpose: bool = False,
    text_columns: Collection[str | None] = (),
    first_index: int | None = None,
) -> Sheet:
    """Read a file.

    Parameters
    ----------
    path : str or Path
        The file; its suffix says the format. Text files may be compressed (``.gz``, ``.bz2``). Of several arrays in
        an HDF5 file or a Zarr store, ``file.h5::name`` is one.
    format : str, default=None
        Name of a format, whatever the suffix; a key of :data:`FORMATS`.
    transpose : bool, default=False
        Whether rows are features, named in the first column, and columns are samples.
    text_columns : collection of str
        Columns of a text file that are no numbers even if they look like them.
    first_index : int, default=None
        Number of the first column in a LIBSVM file; found out by default.

    Returns
    -------
    Sheet
        All columns by name.

    Raises
    ------
    TableError
        If the file cannot be read; the message says where and what to do.
    """
    path = Path(path)
    form = _format(path, format)
    try:
        sheet = form.read(path, text_columns=text_columns, first_index=first_index)
    except (TableError, MemoryError):
        raise
    except Exception as error:  # libraries raise anything on a broken file; the cause stays attached
        if isinstance(error, OSError) and error.errno is not None:  # of the system, and not about the content
            problem = f"cannot be opened: {error.strerror}. Check the path and its permissions."
        else:
            words = " ".join(str(error).split()).rstrip(".") or type(error).__name__
            expected = f"Expected: {form.expected}. Check the file and its format."
            problem = f"cannot be read as a {form.name}: {words}. {expected}"
        raise TableError(f"{path} {problem}") from error
    if sheet.n_rows == 0 or not sheet.names:
        what = "has no rows below its header" if sheet.names else "has no columns"
        raise TableError(f"{path} {what}. Give a file with samples.")
    return sheet.transposed() if transpose else sheet


def _format(path: Path, name: str | None) -> Format:
    """The format of a file that can be read: the one that is named, or that of its suffix."""
    place = Path(str(path).partition(INSIDE)[0])  # behind the mark is the name of an array inside of it
    if not path.exists() and (format_suffix(place) in _MATRICES or place.is_dir()):
        path = place
    if name is not None and name not in FORMATS:
        raise TableError(f"format must be one of {', '.join(FORMATS)}; got {name!r}.")
    if not path.exists():
        raise TableError(f"{path} does not exist. Check the path.")
    suffix = format_suffix(path)
    if name is None:
        name = next((key for key, form in FORMATS.items() if suffix in form.suffixes), None)
        name = "large" if path.is_dir() else name
    if name is None:
        known = ", ".join(suffix for form in FORMATS.values() for suffix in form.suffixes)
        raise TableError(
            f"{path}: the suffix {suffix!r} says no format. Known are {known}; or give the format with --format."
        )
    if path.is_dir() and name != "large":
        raise TableError(f"{path} is a folder, not a {FORMATS[name].name}. Give a file.")
    if not (path.is_file() or path.is_dir()):  # it could be read once only, or never end
        raise TableError(f"{path} is no file but a pipe or a device. Save the data to a file, and give that.")
    return FORMATS[name]


# Parquet ------------------------------------------------------------------------------------------------


def _read_parquet(path: Path, **unused: Any) -> Sheet:
    """A Parquet file; the index of a data frame names the rows."""
    from pyarrow import parquet

    with path.open("rb") as file:
        found = parquet.read_metadata(file)
        shape = (found.num_rows, found.num_columns)
        check_fits(f"a table of shape {shape}", _CELL_BYTES * shape[0] * shape[1])
        table = parquet.read_table(file)
    source = str(path)
    frame = table.schema.pandas_metadata or {}
    stored = [name for name in frame.get("index_columns", []) if isinstance(name, str) and name in table.column_names]
    categorical = {str(item["name"]) for item in frame.get("columns", []) if item["pandas_type"] == "categorical"}
    index = None
    if len(stored) == 1:
        index = tuple("" if value is None else str(value) for value in table.column(stored[0]).to_pylist())
    table = table.drop_columns(stored)
    note = f"Rows of {source} have names of several levels, {listed(stored)}, which are not used."
    names = own_names(table.column_names)
    check_names(source, names)
    return Sheet(
        source,
        names,
        table.num_rows,
        columns=dict(enumerate(table.columns)),
        index=index,
        categorical=frozenset(j for j, name in enumerate(names) if name in categorical),
        names_its_columns=True,
        notes=(note,) if len(stored) > 1 else (),
    )


# NumPy archives -----------------------------------------------------------------------------------------

_CSR_PIECES = ("data", "indices", "indptr", "shape")


def archive_arrays(path: Path) -> dict[str, Any]:
    """All arrays of an archive; pickles are refused."""
    if not is_zipfile(path):  # of which NumPy would say that it holds pickles
        raise ValueError("it is no archive.")
    return read_archive(path)


def has_matrix(arrays: dict[str, Any]) -> bool:
    """Whether there is an X among the arrays, or the pieces of a sparse one."""
    return "X" in arrays or all(piece in arrays for piece in _CSR_PIECES)


def archive_matrix(arrays: dict[str, Any]) -> Any:
    """X, or the sparse matrix that the pieces make."""
    if not all(piece in arrays for piece in _CSR_PIECES):
        return arrays["X"]
    data, indices, indptr, shape = (arrays[piece] for piece in _CSR_PIECES)
    if shape.shape != (2,) or shape.dtype.kind not in "iu":
        raise ValueError(f"shape must be two integers, but it is {shape.tolist()!r}")
    for name, pieces in (("indices", indices), ("indptr", indptr)):
        if pieces.dtype.kind not in "iu":
            raise ValueError(f"{name} must be integers, but their type is {pieces.dtype}")
    check_sparse_shape("X", tuple(shape.tolist()))
    is_csc = "format" in arrays and arrays["format"].tolist() in ("csc", b"csc")
    kind = sp.csc_array if is_csc else sp.csr_array
    return sp.csr_array(sparse_array("X", kind((data, indices, indptr), shape=tuple(shape.tolist()))))


def _read_npz(path: Path, **unused: Any) -> Sheet:
    """A NumPy archive: X, or the pieces of a sparse one; y or Y; names; and vectors with an entry per sample."""
    arrays = archive_arrays(path)
    if not has_matrix(arrays):
        raise ValueError(f"the arrays in it are {', '.join(sorted(arrays)) or 'nothing'}.")
    X = archive_matrix(arrays)
    if X.ndim != 2:
        raise ValueError(f"X must have two dimensions, but its shape is {X.shape}.")
    if X.dtype.kind not in "fiub":
        raise ValueError(f"X must hold real numbers, but its type is {X.dtype}.")
    n_rows, n_columns = X.shape
    found, targets = _arrays_beside(arrays, n_rows)
    vectors = {name: values for name, values in found.items() if values.shape == (n_rows,)}
    names = NumberedNames("x", 1, n_columns, tuple(vectors))
    if "feature_names" in arrays:
        names = own_names([*_stored_names(arrays, "feature_names", n_columns), *vectors])
    check_names(str(path), names)
    note = "Array {!r} of {} is not used: it is no vector of {} samples."
    return Sheet(
        str(path),
        names,
        n_rows,
        X=X if X.dtype in (np.float32, np.float64) else X.astype(np.float64),
        columns={names.index(name): _arrow_column(values) for name, values in vectors.items()},
        index=tuple(str(item) for item in arrays["ids"].tolist()) if "ids" in arrays else None,
        suggested_targets=tuple(names.index(name) for name in targets if name in vectors),
        categorical=frozenset(names.index(name) for name, values in vectors.items() if values.dtype.kind == "b"),
        notes=tuple(note.format(name, path, n_rows) for name in found if name not in vectors),
    )


def _arrays_beside(arrays: dict[str, Any], n_rows: int) -> tuple[dict[str, Any], list[str]]:
    """Arrays that are neither X nor names, Y as vectors, and the names of those that are targets."""
    targets = ["y" if "y" in arrays else "Y"]
    found = {}
    for name, values in arrays.items():
        if name in ("y", "Y") and values.shape[:1] != (n_rows,):
            raise ValueError(f"X has {n_rows} rows, but {name} has shape {values.shape}.")
        if name in ("y", "Y") and values.dtype.kind == "c":
            raise ValueError(f"{name} must hold real numbers or labels, but its type is {values.dtype}.")
        if name == "y" and values.shape == (n_rows, 1):
            found[name] = values[:, 0]
        elif name == "Y" and targets == ["Y"] and values.ndim == 2:
            targets = [f"y{k + 1}" for k in range(values.shape[1])]
            if "target_names" in arrays:
                targets = _stored_names(arrays, "target_names", values.shape[1])
            found |= dict(zip(targets, values.T, strict=True))
        elif name not in ("X", *_CSR_PIECES, "feature_names", "target_names", "ids", "format"):
            found[name] = values
    return found, targets


def _stored_names(arrays: dict[str, Any], key: str, count: int) -> list[str]:
    names = [str(name) for name in np.ravel(arrays[key]).tolist()]
    if len(names) != count:
        raise ValueError(f"{key} has {len(names)} names for {count} columns.")
    return names


def _arrow_column(values: Any) -> Any:
    """A vector as a column: doubles, integers or text."""
    import pyarrow as pa

    kind = values.dtype.kind
    return pa.chunked_array([values if kind in "iu" else values.astype(np.float64 if kind in "fb" else str)])


# LIBSVM files -------------------------------------------------------------------------------------------

_NUMBER = rb"[+-]?(?:\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?|inf(?:inity)?|nan)"
_LINE = re.compile(
    rb"\s*(?:%s(?:,%s)*)?(?:\s+qid:\d+)?(?:\s+\d+:%s)*\s*(?:#.*)?" % (_NUMBER, _NUMBER, _NUMBER), re.IGNORECASE
)
_INDEX = re.compile(rb"\s0*(\d+):")
# Digits that are read of an index; with more it is too large for anything.
_LONGEST_INDEX = 18


def read_libsvm(path: Path, *, first_index: int | None = None, multilabel: bool = False) -> tuple[Any, Any, int]:
    """A sparse matrix, one label (or list of labels) per row, and the index that the first column has in the file.

    Without ``first_index`` columns count from 0 if there is a 0, else from 1.
    """
    try:
        with open_bytes(path) as file:
            X, labels = load_svmlight_file(file, zero_based=True, multilabel=multilabel)
    except (ValueError, OverflowError):  # perhaps for an index that no integer of the matrix holds
        _check_indices(path)
        raise
    if too_many_columns(X.shape[1]):  # nothing of that size is there yet
        _check_indices(path)
    has_zero = bool(len(X.indices)) and X.indices.min() == 0
    start = (0 if has_zero else 1) if first_index is None else first_index
    if start and has_zero:
        raise ValueError(f"it has the index 0, but columns count from {start}.")
    if start and X.shape[1]:  # there is no column 0
        X = sp.csr_array((X.data, X.indices - 1, X.indptr), shape=(X.shape[0], X.shape[1] - 1))
    return sp.csr_array(X), labels, start


def _check_indices(path: Path) -> None:
    """Refuse the first line whose indices imply more columns than there can be."""
    most = most_columns()
    for number, line in _numbered_lines(path):
        for index in _INDEX.findall(line.partition(b"#")[0]):
            value = int(index[:_LONGEST_INDEX])
            if value > most:
                shown = str(value) if len(index) <= _LONGEST_INDEX else f"{value}..."
                raise TableError(
                    f"{path}: line {number} has the index {shown}, and so X has {too_many_columns(value)}."
                )


def _numbered_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    with open_bytes(path) as file:
        yield from enumerate(file, start=1)


def _read_svm(path: Path, *, first_index: int | None, **unused: Any) -> Sheet:
    """A LIBSVM file: columns are named by their index, samples have a label or a list of labels, ``1,3 2:0.5``."""
    samples = (line.partition(b"#")[0].split(maxsplit=1) for _, line in _numbered_lines(path))
    multilabel = b"," in next((words for words in samples if words), [b""])[0]
    try:
        X, labels, start = read_libsvm(path, first_index=first_index, multilabel=multilabel)
    except TableError:
        raise
    except ValueError as error:
        broken = (number for number, line in _numbered_lines(path) if not _LINE.fullmatch(line.rstrip(b"\r\n")))
        number = next(broken, None)
        raise ValueError(str(error) if number is None else f"line {number} is not in the format") from error
    targets = {"label": labels}
    if multilabel:
        coder = MultiLabelBinarizer().fit(labels)
        words = [f"label {int(label) if float(label).is_integer() else label}" for label in coder.classes_]
        targets = dict(zip(words, coder.transform(labels).T, strict=True))
    names = NumberedNames("", start, X.shape[1], tuple(targets))
    places = tuple(range(X.shape[1], len(names)))
    columns = {j: _arrow_column(values) for j, values in zip(places, targets.values(), strict=True)}
    return Sheet(str(path), names, X.shape[0], X=X, columns=columns, suggested_targets=places, zeros_left_out=True)


# Matrices on disk ---------------------------------------------------------------------------------------


def _read_large(path: Path, **unused: Any) -> Sheet:
    """A matrix that stays on disk, opened by :func:`groupowl.designs.open_matrix`; targets are in another file."""
    try:
        storage = open_storage(path)
        design: Any = open_matrix(storage)
        X = design if design.is_on_disk else design.X
    except (OSError, TypeError, ValueError, ImportError) as error:
        if IMPUTE not in str(error):
            raise TableError(str(error)) from error
        X = storage.read_rows(slice(0, storage.shape[0]))  # columns that are not used may have gaps
    names = NumberedNames("x", 1, X.shape[1])
    if storage.feature_names is not None:
        names = own_names(str(name) for name in storage.feature_names)
    check_names(str(path), names)
    return Sheet(str(path), names, X.shape[0], X=X)


# All formats --------------------------------------------------------------------------------------------


_MATRICES = (".npy", ".h5", ".hdf5", ".zarr")
_read_tsv = partial(read_delimited, delimiter="\t")


class Format(NamedTuple):
    """A file format: its name, what a file of it must hold, its suffixes, and the function that reads it."""

    name: str
    expected: str
    suffixes: tuple[str, ...]
    read: Callable[..., Sheet]


#: Formats by the name that ``--format`` takes.
FORMATS: dict[str, Format] = {
    "csv": Format("CSV file", "column names in the first line, then a line per sample", (".csv",), read_delimited),
    "tsv": Format("TSV file", "column names in the first line, cells between tabs", (".tsv", ".tab"), _read_tsv),
    "parquet": Format("Parquet file", "a column per feature", (".parquet", ".pq"), _read_parquet),
    "npz": Format(
        "NumPy archive", "X, or data, indices, indptr and shape of a sparse X; and y or Y", (".npz",), _read_npz
    ),
    "libsvm": Format(
        "LIBSVM file", "a line 'label index:value ...' per sample", (".libsvm", ".svm", ".svmlight"), _read_svm
    ),
    "arff": Format("ARFF file", "lines @attribute, then @data and a row per sample", (".arff",), read_arff),
    "large": Format("matrix on disk", "a matrix in .npy, HDF5, Zarr or a folder of blocks", _MATRICES, _read_large),
}
