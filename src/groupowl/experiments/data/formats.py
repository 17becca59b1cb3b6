"""Readers for the formats in which the data sets come: NumPy, LIBSVM, ARFF, CSV and MATLAB.

A reader returns the values as they stand in the file. What it raises is plain: the caller says which file it was
and what to do.
"""

from __future__ import annotations

import bz2
import gzip
import io
import re
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast
from zipfile import is_zipfile

import numpy as np
import scipy.sparse as sp
from scipy.io import loadmat
from sklearn.datasets import load_svmlight_file

from .table import DatasetEntry


class Raw(NamedTuple):
    """What a file holds: X is an array or a csr_array, ``targets`` a vector of classes or a matrix."""

    X: Any
    targets: Any


class Format(NamedTuple):
    """A file format: its name, what a file of it must hold, and the function that reads it."""

    name: str
    expected: str
    read: Callable[[Path, DatasetEntry], Raw]


def format_of(path: Path) -> Format:
    """Format of a file by its name, compressed or not."""
    suffix = _bare_name(path).suffix
    if suffix not in FORMATS:
        known = ", ".join(sorted(filter(None, FORMATS)))
        raise ValueError(f"{path} has the unknown suffix {suffix!r}; known are {known}, and none for LIBSVM.")
    return FORMATS[suffix]


def _bare_name(path: Path) -> Path:
    """The file's name in lower case, without the suffix of a compression."""
    name = Path(path.name.lower())
    return name.with_suffix("") if name.suffix in COMPRESSIONS else name


#: Suffixes of compressed files, and what opens them.
COMPRESSIONS: dict[str, Callable[[Path], Any]] = {".gz": gzip.open, ".bz2": bz2.open}


def _open_bytes(path: Path) -> BinaryIO:
    opener = COMPRESSIONS.get(path.suffix.lower())
    return path.open("rb") if opener is None else cast(BinaryIO, opener(path))


def _open_text(path: Path) -> io.TextIOWrapper:
    """Names may be in any encoding: what is not UTF-8 is replaced, since only the numbers matter."""
    return io.TextIOWrapper(_open_bytes(path), encoding="utf-8-sig", errors="replace")


def dense(X: Any) -> Any:
    """An array, from an array or a sparse one."""
    return X.toarray() if hasattr(X, "toarray") else X


def _listed(names: Any) -> str:
    return ", ".join(sorted(names)) or "nothing"


# NumPy --------------------------------------------------------------------------------------------------

CSR_PIECES = ("data", "indices", "indptr", "shape")


def _read_npz(path: Path, entry: DatasetEntry) -> Raw:
    if not is_zipfile(path):  # of which NumPy would say that it holds pickles
        raise ValueError("it is no archive.")
    with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
        arrays = {name: archive[name] for name in archive.files}
    target = "y" if entry.loss == "multinomial" else "Y"
    is_sparse = all(piece in arrays for piece in CSR_PIECES)
    if target not in arrays or not (is_sparse or "X" in arrays):
        raise ValueError(f"the arrays in it are {_listed(arrays)}.")
    return Raw(_csr_from_pieces(arrays) if is_sparse else arrays["X"], arrays[target])


def _csr_from_pieces(arrays: dict[str, Any]) -> Any:
    data, indices, indptr, shape = (arrays[piece] for piece in CSR_PIECES)
    matrix = sp.csr_array((data, indices.astype(np.int32), indptr.astype(np.int32)), shape=tuple(shape.tolist()))
    matrix.check_format(full_check=True)
    return matrix


# LIBSVM -------------------------------------------------------------------------------------------------


def _read_libsvm(path: Path, entry: DatasetEntry) -> Raw:
    with _open_bytes(path) as file:
        X, labels = load_svmlight_file(file)
    # Zeros are not written, so columns of zeros at the end are known from the table alone.
    X.resize(X.shape[0], max(X.shape[1], entry.n_features))
    return Raw(sp.csr_array(X), labels)


# ARFF ---------------------------------------------------------------------------------------------------

NUMERIC_KINDS = {"numeric", "real", "integer"}

_Lines = Iterator[tuple[int, str]]


@dataclass
class _ArffHeader:
    n_attributes: int = 0
    labels: int | None = None  # MEKA's note in the name of the relation: so many first, or last if negative
    zero_is_default: bool = True  # of nominal attributes, a sparse row leaves out the first value


def _read_arff(path: Path, entry: DatasetEntry) -> Raw:
    with _open_text(path) as file:
        lines = _arff_lines(file)
        header = _arff_header(lines)
        table = _arff_table(lines, header)
    expected = 1 if entry.loss == "multinomial" else entry.n_labels
    return _split_labels(table, header.labels or (expected if entry.labels_first else -expected))


def _arff_lines(file: io.TextIOWrapper) -> _Lines:
    """Numbered lines without comments and empty ones."""
    for number, line in enumerate(file, start=1):
        text = line.strip()
        if text and not text.startswith("%"):
            yield number, text


def _arff_header(lines: _Lines) -> _ArffHeader:
    """Everything up to the line ``@data``, which is consumed."""
    header = _ArffHeader()
    for number, text in lines:
        keyword = text.split(maxsplit=1)[0].lower()
        if keyword == "@data":
            return header
        if keyword == "@relation" and (note := re.search(r"-C\s+(-?\d+)", text)):
            header.labels = int(note.group(1))
        elif keyword == "@attribute":
            header.n_attributes += 1
            header.zero_is_default &= _zero_is_default(number, text)
    raise ValueError("there is no line @data in it.")


def _zero_is_default(number: int, attribute: str) -> bool:
    """Whether a sparse row that leaves the attribute out means 0; attributes must hold numbers."""
    if attribute.endswith("}"):
        values = attribute[attribute.rindex("{") + 1 : -1].split(",")
        try:
            numbers = [float(value.strip(" '\"")) for value in values]
        except ValueError:
            raise ValueError(f"line {number} declares values that are not numbers: {attribute[:80]}") from None
        return numbers[0] == 0.0
    if attribute.split()[-1].lower() not in NUMERIC_KINDS:
        raise ValueError(f"line {number} declares an attribute that is not numeric: {attribute[:80]}")
    return True


def _arff_table(lines: _Lines, header: _ArffHeader) -> Any:
    """All attributes, labels among them, as a csr_array."""
    data, indices, indptr = array("d"), array("q"), array("q", [0])
    for number, text in lines:
        try:
            places, values = _arff_row(text, header)
        except ValueError as error:
            raise ValueError(f"line {number}: {error}") from None
        indices.extend(places)
        data.extend(values)
        indptr.append(len(data))
    pieces = np.array(data), np.array(indices, dtype=np.int32), np.array(indptr, dtype=np.int32)
    table = sp.csr_array(pieces, shape=(len(indptr) - 1, header.n_attributes))
    table.sum_duplicates()
    table.eliminate_zeros()
    return table


def _arff_row(text: str, header: _ArffHeader) -> tuple[list[int], list[float]]:
    """Places and values of a row, ``{3 1, 7 2.5}`` or ``0,1,2.5``."""
    if not text.startswith("{"):
        values = [float(value) for value in text.split(",")]
        if len(values) != header.n_attributes:
            raise ValueError(f"{len(values)} values for {header.n_attributes} attributes.")
        return list(range(len(values))), values
    if not header.zero_is_default:
        raise ValueError("a sparse row, but what it leaves out is not 0: a nominal attribute lists 0 later.")
    if not text.endswith("}"):
        raise ValueError("the row is cut off.")
    tokens = text[1:-1].replace(",", " ").split()
    places = [int(token) for token in tokens[::2]]
    values = [float(token) for token in tokens[1::2]]
    if len(places) != len(values) or (places and not 0 <= min(places) <= max(places) < header.n_attributes):
        raise ValueError(f"not pairs of a value and the place of one of {header.n_attributes} attributes.")
    return places, values


def _split_labels(table: Any, count: int) -> Raw:
    """The first ``count`` columns as labels, or the last ones for a negative number."""
    if not abs(count) < table.shape[1]:
        raise ValueError(f"it has {table.shape[1]} attributes, and {abs(count)} of them should be labels.")
    if count > 0:
        return Raw(table[:, count:], table[:, :count].toarray())
    return Raw(table[:, :count], table[:, count:].toarray())


# CSV ----------------------------------------------------------------------------------------------------

CSV_FEATURES = "WAP"
CSV_TARGETS = ("LATITUDE", "LONGITUDE")


def _read_csv(path: Path, entry: DatasetEntry) -> Raw:
    """The layout of UJIIndoorLoc: columns are found by their names in the first line."""
    with _open_text(path) as file:
        names = [name.strip(' "\r\n').upper() for name in file.readline().split(",")]
        rows = [line for line in file if line.strip()]
    features = [j for j, name in enumerate(names) if name.startswith(CSV_FEATURES)]
    if not features or not set(CSV_TARGETS) <= set(names):
        raise ValueError(f"its first line begins with {', '.join(names[:5])[:80]!r}.")
    if not rows:
        raise ValueError("there are no rows in it.")
    values = np.loadtxt(rows, delimiter=",", quotechar='"', ndmin=2)
    return Raw(values[:, features], values[:, [names.index(name) for name in CSV_TARGETS]])


# MATLAB -------------------------------------------------------------------------------------------------

#: Names of features and targets: Deng Cai's, those of a PRTools data set, and plain ones.
MATLAB_PAIRS = (("fea", "gnd"), ("data", "nlab"), ("X", "y"), ("X", "Y"))


def _read_matlab(path: Path, entry: DatasetEntry) -> Raw:
    variables = _matlab_variables(path)
    pair = next((pair for pair in MATLAB_PAIRS if variables.keys() >= set(pair)), None)
    if pair is None:
        raise ValueError(f"the variables in it are {_listed(variables)}.")
    X, targets = variables[pair[0]], dense(variables[pair[1]])
    is_sparse = sp.issparse(X)
    X = sp.csr_array(X) if is_sparse else X
    if "trainIdx" in variables:
        rows = variables["trainIdx"].ravel().astype(np.intp) - 1  # MATLAB counts from 1
        if rows.min(initial=0) < 0:
            raise ValueError("trainIdx holds a row number below 1.")
        X, targets = X[rows], targets.reshape(X.shape[0], -1)[rows]
    return Raw(X, targets)


def _matlab_variables(path: Path) -> dict[str, Any]:
    """Variables by name, and the fields of single structures beside them."""
    try:
        variables = loadmat(str(path))
    except NotImplementedError as error:
        raise ValueError("it is in version 7.3; save it from MATLAB with the option -v7.") from error
    found = {name: value for name, value in variables.items() if not name.startswith("__")}
    for value in list(found.values()):
        fields = getattr(value, "dtype", np.dtype(float)).names
        if fields and value.size == 1:
            found |= {field: value.flat[0][field] for field in fields}
    return found


_NPZ = Format(
    "NumPy archive", "X, or data, indices, indptr and shape of a sparse X; and Y, or y for classes", _read_npz
)
_LIBSVM = Format("LIBSVM file", "a line 'label index:value ...' per sample", _read_libsvm)
_ARFF = Format("ARFF file", "numeric or 0/1 attributes, labels among them, then dense or sparse rows", _read_arff)
_CSV = Format("CSV file", "a first line with columns WAP001, WAP002, ..., LATITUDE and LONGITUDE", _read_csv)
_MATLAB = Format("MATLAB file", "variables fea and gnd, X and y, or a structure with data and nlab", _read_matlab)

#: Formats by suffix. LIBSVM's own files have no suffix, or one that names a part.
FORMATS: dict[str, Format] = {
    ".npz": _NPZ,
    ".arff": _ARFF,
    ".csv": _CSV,
    ".mat": _MATLAB,
    **dict.fromkeys(("", ".txt", ".svm", ".libsvm", ".tr", ".val", ".scale"), _LIBSVM),
}
