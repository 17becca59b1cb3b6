"""From a file to a sheet: which reader it needs, by its suffix or by the format that the user names."""

from __future__ import annotations

import difflib
import glob
import shlex
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file
from sklearn.preprocessing import MultiLabelBinarizer

from .._checks import IMPUTE, sparse_array
from .._text import listed
from ..designs import open_matrix
from ..designs.disk import natural_order, open_storage
from ..designs.disk.base import INSIDE
from ..designs.disk.formats import read_archive
from ..designs.disk.matrix_folder import INDEX, SAMPLES, MatrixFolder
from ..designs.disk.memory import check_fits, check_sparse_shape, too_many_columns
from .sheet import Sheet, stacked_sheets
from .table import WORKBOOKS, Dialect, NumberedNames, TableError
from .text_files import USUAL, format_suffix, open_bytes, read_arff, read_delimited
from .workbooks import read_workbook

# Bytes of a cell of a table in memory, as numbers have.
_CELL_BYTES = 8


def read_sheet(
    path: str | Path,
    *,
    format: str | None = None,
    transpose: bool = False,
    text_columns: Collection[str | None] = (),
    first_index: int | None = None,
    dialect: Dialect = USUAL,
    max_memory: str | None = None,
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
    dialect : Dialect
        How cells of text files and workbooks are written.
    max_memory : str, default=None
        What work with a matrix on disk may add to the memory of the process; other formats are in memory as a whole.

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
    form = FORMATS[format_name(path, format)]
    if max_memory is not None and form.read is not _read_large:
        remedy = "Leave it out, or make such a matrix: by groupowl convert from CSV and Parquet files, else in Python."
        raise TableError(f"--max-memory is for matrices on disk, and {path} is a {form.name}. {remedy}")
    if form.options == _TEXT:
        _check_memory(path, "its text", path.stat().st_size)
    try:
        how: dict[str, Any] = {"text_columns": text_columns, "first_index": first_index, "dialect": dialect}
        sheet = form.read(path, **how, **({} if max_memory is None else {"max_memory": max_memory}))
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
    if not sheet.names or sheet.n_rows == 0:
        what = "has no rows below its header" if sheet.names else "has no columns"
        raise TableError(f"{path} {what}. Give a file with samples.")
    return sheet.transposed() if transpose else sheet


def format_name(path: Path, name: str | None) -> str:
    """The format of a file that can be read: the one that is named, or that of its suffix."""
    place = Path(str(path).partition(INSIDE)[0])  # behind the mark is the name of an array or sheet inside of it
    if not path.exists() and (format_suffix(place) in (*_MATRICES, *WORKBOOKS) or place.is_dir()):
        path = place
    if name is not None and name not in FORMATS:
        raise TableError(f"format must be one of {', '.join(FORMATS)}; got {name!r}.")
    if not path.exists():
        raise TableError(f"{path} does not exist. Check the path.{_likely(path)}")
    suffix = format_suffix(path)
    if name is None:
        name = "large" if path.is_dir() else _FORMAT_OF.get(suffix)
    if name is None:
        known = f"Known are {', '.join(_FORMAT_OF)}; or give the format with --format."
        remedy = next((words for words, suffixes in _SAVED_BY.items() if suffix in suffixes), known)
        raise TableError(f"{path}: the suffix {suffix!r} says no format that can be read. {remedy}")
    if path.is_dir() and name != "large":
        raise TableError(f"{path} is a folder, not a {FORMATS[name].name}. Give a file.")
    if not (path.is_file() or path.is_dir()):  # it could be read once only, or never end
        raise TableError(f"{path} is no file but a pipe or a device. Save the data to a file, and give that.")
    return name


def find_files(given: Iterable[str | Path]) -> list[Path]:
    """Files by name or pattern (``part-*.csv``), those of a pattern in the natural order of their names.

    What exists is what it is called, whatever else its name could mean.
    """
    found: list[Path] = []
    for text in map(str, given):
        is_pattern = any(mark in text for mark in "*?[") and not Path(text).exists()
        matches = sorted(map(Path, glob.glob(text)), key=natural_order) if is_pattern else [Path(text)]
        if not matches:
            raise TableError(f"no file matches {text!r}. Check the pattern, and whether files end as it does.")
        found += [path for path in matches if path not in found]
    return found


def read_sheets(paths: Sequence[Path], **options: Any) -> Sheet:
    """The sheet of one file, or of the rows of several below each other; options as for :func:`read_sheet`."""
    if len(paths) == 1:
        return read_sheet(paths[0], **options)
    if options.get("transpose"):
        raise TableError(f"--transpose is for one file, and {len(paths)} are given. Give one.")
    sheets = [read_sheet(path, **options) for path in paths]
    for sheet in sheets:
        if sheet.X is not None:
            known = "CSV, TSV, Parquet and Excel files"
            remedy = "Of matrices, give the folder with all blocks."
            raise TableError(f"{sheet.source}: several files are read only if they are {known}. {remedy}")
    return stacked_sheets(sheets)


def check_dialect(dialect: Dialect, paths: Iterable[Path], format: str | None) -> None:
    """Refuse options about cells that apply to none of the files; the format is that of the first."""
    forms = [FORMATS[format_name(path, None if k else format)] for k, path in enumerate(paths)]
    known = {name for form in forms for name in form.options}
    for name, value in vars(dialect).items():
        if value != getattr(USUAL, name) and name not in known:
            option = "--no-header" if name == "header" else f"--{name}"
            kinds = "Excel workbooks" if name == "sheet" else "text files"
            raise TableError(f"{option} is for {kinds}, and the data are a {forms[0].name}. Leave it out.")


def _likely(path: Path) -> str:
    """A file beside that was perhaps meant."""
    folder = path.parent
    names = [each.name for each in folder.iterdir()] if folder.is_dir() else []
    close = difflib.get_close_matches(path.name, names, n=1, cutoff=0.7)
    return f" Did you mean {folder / close[0]}?" if close else ""


def _check_memory(path: Path, what: str, n_bytes: int) -> None:
    """Refuse what this process has no memory for, with the command that streams it to the disk."""
    try:
        check_fits(what, n_bytes)
    except ValueError as error:
        folder = shlex.quote(path.name.partition(".")[0] or "matrix")
        command = f"groupowl convert {shlex.quote(str(path))} --targets COLUMNS --out {folder}"
        raise TableError(f"{path}: {error} Write it as a matrix on disk, and use that: {command}") from error


# Parquet ------------------------------------------------------------------------------------------------


def _read_parquet(path: Path, **unused: Any) -> Sheet:
    """A Parquet file; the index of a data frame names the rows."""
    from pyarrow import parquet

    path.open("rb").close()  # what forbids it is told as for other files
    # Arrow's dataset reader may still be busy with a file of Python in other threads when it returns, and crash then.
    with parquet.ParquetFile(path, pre_buffer=False) as file:
        shape = (file.metadata.num_rows, file.metadata.num_columns)
        _check_memory(path, f"a table of shape {shape}", _CELL_BYTES * shape[0] * shape[1])
        table = file.read()
    frame = table.schema.pandas_metadata or {}
    stored = [name for name in frame.get("index_columns", []) if isinstance(name, str) and name in table.column_names]
    categorical = {str(item["name"]) for item in frame.get("columns", []) if item["pandas_type"] == "categorical"}
    index = None
    notes: tuple[str, ...] = ()
    if len(stored) == 1:
        index = tuple("" if value is None else str(value) for value in table.column(stored[0]).to_pylist())
    elif stored:
        notes = (f"Rows of {path} have names of several levels, {listed(stored)}, which are not used.",)
    table = table.drop_columns(stored)
    names, columns = NumberedNames(others=tuple(table.column_names)), dict(enumerate(table.columns))
    positions = frozenset(j for j, name in enumerate(names) if name in categorical)
    return Sheet(str(path), names, columns=columns, index=index, categorical=positions, notes=notes)


# NumPy archives -----------------------------------------------------------------------------------------

_CSR_PIECES = ("data", "indices", "indptr", "shape")
# Arrays with a meaning of their own, which are no vectors beside X.
_PARTS = ("X", *_CSR_PIECES, "feature_names", "target_names", "ids", "format")


def read_matrix(path: Path) -> tuple[dict[str, Any], Any]:
    """Read all arrays of an archive and find its X, dense or sparse in parts; pickles are refused."""
    arrays = read_archive(path)
    if not arrays.keys() >= set(_CSR_PIECES):
        if "X" not in arrays:
            raise ValueError(f"the arrays in it are {', '.join(sorted(arrays)) or 'nothing'}.")
        return arrays, arrays["X"]
    data, *places = (arrays[piece] for piece in _CSR_PIECES)
    for name, values in zip(_CSR_PIECES[1:], places, strict=True):
        if values.dtype.kind not in "iu" or (name == "shape" and values.shape != (2,)):
            raise ValueError(f"{name} must be integers, two for a shape, but it has {values.dtype} {values.shape}.")
    shape = tuple(arrays["shape"].tolist())
    check_sparse_shape("X", shape)
    is_csc = "format" in arrays and arrays["format"].tolist() in ("csc", b"csc")
    kind = sp.csc_array if is_csc else sp.csr_array
    return arrays, sp.csr_array(sparse_array("X", kind((data, *places[:2]), shape=shape)))


def _read_npz(path: Path, **unused: Any) -> Sheet:
    """A NumPy archive: X, or the pieces of a sparse one; y or Y; names; and vectors with an entry per sample."""
    arrays, X = read_matrix(path)
    if X.ndim != 2 or X.dtype.kind not in "fiub":
        raise ValueError(f"X must be a matrix of real numbers, but its shape is {X.shape} and its type {X.dtype}.")
    if X.dtype not in (np.float32, np.float64):
        X = X.astype(np.float64)
    n_rows, n_columns = X.shape
    target = "y" if "y" in arrays else "Y"
    targets = [target]
    vectors: dict[str, Any] = {}
    notes = []
    for name in [name for name in arrays if name not in _PARTS]:
        values = arrays[name]
        if name == target and (values.shape[:1] != (n_rows,) or values.dtype.kind == "c"):
            found = f"its shape is {values.shape} and its type {values.dtype}"
            raise ValueError(f"{name} must have real numbers or labels for the {n_rows} rows of X, but {found}.")
        if name == target == "Y" and values.ndim == 2:
            numbered = NumberedNames("y", 1, values.shape[1])
            targets = _stored_names(arrays, "target_names", len(numbered)) or list(numbered)
            vectors |= dict(zip(targets, values.T, strict=True))
        elif values.shape == (n_rows,) or (name == target and values.shape == (n_rows, 1)):
            vectors[name] = values.reshape(n_rows)
        else:
            notes.append(f"Array {name!r} of {path} is not used: it is no vector of {n_rows} samples.")
    index = tuple(str(item) for item in arrays["ids"].tolist()) if "ids" in arrays else None
    names = _stored_names(arrays, "feature_names", n_columns) or NumberedNames("x", 1, n_columns)
    return _sheet(path, names, X, vectors, targets, index=index, notes=tuple(notes))


def _sheet(path: Path, names: Any, X: Any, vectors: dict[str, Any], targets: Collection[str], **others: Any) -> Sheet:
    """A sheet of a matrix, its columns named by a list or numbered, and of vectors beside it, some of them targets."""
    numbered = names if isinstance(names, NumberedNames) else NumberedNames(others=tuple(names))
    together = replace(numbered, others=(*numbered.others, *vectors))
    places = dict(zip(vectors, range(X.shape[1], len(together)), strict=True))
    columns = {places[name]: _arrow_column(values) for name, values in vectors.items()}
    suggested = tuple(places[name] for name in targets if name in vectors)
    categorical = frozenset(places[name] for name, values in vectors.items() if values.dtype.kind == "b")
    return Sheet(str(path), together, X, columns, suggested_targets=suggested, categorical=categorical, **others)


def _stored_names(arrays: dict[str, Any], key: str, count: int) -> list[str]:
    """Names that the archive has for so many columns; nothing where it has none."""
    names = [str(name) for name in np.ravel(arrays[key]).tolist()] if key in arrays else []
    if key in arrays and len(names) != count:
        raise ValueError(f"{key} has {len(names)} names for {count} columns.")
    return names


def _arrow_column(values: Any) -> Any:
    """A vector as a column: doubles, integers or text."""
    import pyarrow as pa

    kind = values.dtype.kind
    return pa.chunked_array([values if kind in "iu" else values.astype(np.float64 if kind in "fb" else str)])


# LIBSVM files -------------------------------------------------------------------------------------------

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
        _check_lines(path)
        raise
    if too_many_columns(X.shape[1]):  # nothing of that size is there yet
        _check_lines(path)
    has_zero = bool(X.indices.min(initial=1) == 0)
    start = int(not has_zero) if first_index is None else first_index
    if start and has_zero:
        raise ValueError(f"it has the index 0, but columns count from {start}.")
    if start and X.shape[1]:  # there is no column 0
        X = sp.csr_array((X.data, X.indices - 1, X.indptr), shape=(X.shape[0], X.shape[1] - 1))
    return sp.csr_array(X), labels, start


def _check_lines(path: Path) -> None:
    """Refuse the first line that is not in the format, or whose indices imply more columns than there can be."""
    with open_bytes(path) as file:
        for number, line in enumerate(file, start=1):
            words = [word.split(b":") for word in line.partition(b"#")[0].replace(b"qid:", b"0:").split()]
            labels = words.pop(0)[0].split(b",") if words and len(words[0]) == 1 else []
            try:
                for text in (*labels, *(value for _, value in words)):
                    float(text)
                largest = max((int(index[:_LONGEST_INDEX]) for index, _ in words), default=0)
            except ValueError:
                raise ValueError(f"line {number} is not in the format") from None
            if trouble := too_many_columns(largest):
                raise TableError(f"{path}: line {number} has the index {largest}, and so X has {trouble}.")


def _read_svm(path: Path, *, first_index: int | None, **unused: Any) -> Sheet:
    """A LIBSVM file: columns are named by their index, samples have a label or a list of labels, ``1,3 2:0.5``."""
    with open_bytes(path) as file:
        samples = (line.partition(b"#")[0].split(maxsplit=1) for line in file)
        multilabel = b"," in next((words for words in samples if words), [b""])[0]
    X, labels, start = read_libsvm(path, first_index=first_index, multilabel=multilabel)
    targets = {"label": labels}
    if multilabel:
        coder = MultiLabelBinarizer().fit(labels)
        words = [f"label {int(label) if float(label).is_integer() else label}" for label in coder.classes_]
        targets = dict(zip(words, coder.transform(labels).T, strict=True))
    names = NumberedNames("", start, X.shape[1])
    return _sheet(path, names, X, targets, targets.keys(), zeros_left_out=True)


# Matrices on disk ---------------------------------------------------------------------------------------


def _read_large(path: Path, max_memory: str | None = None, **unused: Any) -> Sheet:
    """A matrix that stays on disk, opened by :func:`groupowl.designs.open_matrix`.

    Targets are in another file, or beside the matrix in a folder that ``groupowl convert`` has made.
    """
    try:
        storage = open_storage(path)
        design: Any = open_matrix(storage, max_memory)
        X = design if design.is_on_disk else design.X
    except (OSError, TypeError, ValueError, ImportError) as error:
        if IMPUTE not in str(error):
            problem = str(error).replace("max_memory=", "--max-memory ").replace("max_memory", "--max-memory")
            raise TableError(problem) from error
        X = storage.read_rows(slice(0, storage.shape[0]))  # columns that are not used may have gaps
    names = NumberedNames("x", 1, X.shape[1]) if storage.feature_names is None else map(str, storage.feature_names)
    record = MatrixFolder.read(path)
    sheet = _sheet(path, names, X, {}, ())
    return sheet if record is None or not (path / SAMPLES).exists() else _with_samples(sheet, path, record)


def _with_samples(sheet: Sheet, folder: Path, record: MatrixFolder) -> Sheet:
    """The sheet of a matrix with the columns that a folder has beside it."""
    beside = _read_parquet(folder / SAMPLES)
    if beside.n_rows != sheet.n_rows:
        found = f"{sheet.n_rows} rows, but {SAMPLES} beside it has {beside.n_rows}"
        raise TableError(f"{folder}: the matrix has {found}. Make the folder again with groupowl convert.")
    places = [j for j, name in enumerate(beside.names) if name != INDEX]
    names = replace(sheet.names, others=(*sheet.names.others, *(beside.names[j] for j in places)))
    columns = {len(sheet.names) + k: beside.columns[j] for k, j in enumerate(places)}
    index = beside.ids(beside.names.index(INDEX)) if INDEX in beside.names else None
    targets = tuple(names.index(name) for name in record.targets)
    return replace(sheet, names=names, columns=columns, index=index, suggested_targets=targets)


# All formats --------------------------------------------------------------------------------------------


_MATRICES = (".npy", ".h5", ".hdf5", ".zarr")
_TEXT = ("sep", "decimal", "thousands", "encoding", "na", "header")
_SHEET = ("decimal", "thousands", "na", "header", "sheet")
_read_tsv = partial(read_delimited, delimiter="\t")


# What to do about files of other programs.
_SAVED_BY = {
    "Save it as .xlsx or CSV.": (".xls", ".ods", ".numbers"),
    "In Python, pandas reads it, and to_parquet saves it as Parquet.": (
        ".sav",
        ".dta",
        ".sas7bdat",
        ".feather",
        ".json",
    ),
    "In R, write.csv(data, 'data.csv', row.names = FALSE) saves it as CSV.": (".rds", ".rdata", ".rda"),
    "Unpack it first.": (".zip", ".xz", ".zst", ".tar", ".7z"),
}


class Format(NamedTuple):
    """A file format: its name, what a file of it must hold, its suffixes, the function that reads it, its options."""

    name: str
    expected: str
    suffixes: tuple[str, ...]
    read: Callable[..., Sheet]
    #: Fields of the dialect that mean something in it.
    options: tuple[str, ...] = ()


#: Formats by the name that ``--format`` takes.
FORMATS: dict[str, Format] = {
    "csv": Format(
        "CSV file",
        "column names in the first line, then a line per sample",
        (".csv", ".txt", ".dat", ".data"),
        read_delimited,
        _TEXT,
    ),
    "tsv": Format("TSV file", "column names in the first line, cells between tabs", (".tsv", ".tab"), _read_tsv, _TEXT),
    "excel": Format(
        "workbook of Excel", "column names in the first row, then a row per sample", WORKBOOKS, read_workbook, _SHEET
    ),
    "parquet": Format("Parquet file", "a column per feature", (".parquet", ".pq"), _read_parquet),
    "npz": Format("NumPy archive", "X, or data, indices, indptr, shape; and y or Y", (".npz",), _read_npz),
    "libsvm": Format("LIBSVM file", "lines 'label index:value ...'", (".libsvm", ".svm", ".svmlight"), _read_svm),
    "arff": Format("ARFF file", "lines @attribute, then @data and a row per sample", (".arff",), read_arff),
    "large": Format("matrix on disk", "a matrix in .npy, HDF5, Zarr or a folder of blocks", _MATRICES, _read_large),
}
_FORMAT_OF = {suffix: name for name, form in FORMATS.items() for suffix in form.suffixes}
