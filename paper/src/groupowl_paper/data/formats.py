"""Readers for the formats in which the data sets come: NumPy, LIBSVM, ARFF, CSV and MATLAB.

A reader returns the values as they stand in the file. What it raises is plain: the caller says which file it was
and what to do.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.io import loadmat

from groupowl.tables.readers import read_libsvm, read_matrix
from groupowl.tables.text_files import COMPRESSIONS, format_suffix, parse_arff, read_delimited

from .table import DatasetEntry

__all__ = ["COMPRESSIONS", "FORMATS", "Format", "Raw", "dense", "format_of"]


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
    suffix = format_suffix(path)
    if suffix not in FORMATS:
        known = ", ".join(sorted(filter(None, FORMATS)))
        raise ValueError(f"{path} has the unknown suffix {suffix!r}; known are {known}, and none for LIBSVM.")
    return FORMATS[suffix]


def dense(X: Any) -> Any:
    """An array, from an array or a sparse one."""
    return X.toarray() if hasattr(X, "toarray") else X


def _listed(names: Any) -> str:
    return ", ".join(sorted(names)) or "nothing"


# NumPy --------------------------------------------------------------------------------------------------


def _read_npz(path: Path, entry: DatasetEntry) -> Raw:
    arrays, X = read_matrix(path)
    target = "y" if entry.loss == "multinomial" else "Y"
    if target not in arrays:
        raise ValueError(f"the arrays in it are {_listed(arrays)}.")
    return Raw(X, arrays[target])


# LIBSVM -------------------------------------------------------------------------------------------------


def _read_libsvm(path: Path, entry: DatasetEntry) -> Raw:
    X, labels, _ = read_libsvm(path)
    # Zeros are not written, so columns of zeros at the end are known from the table alone.
    X.resize(X.shape[0], max(X.shape[1], entry.n_features))
    return Raw(X, labels)


# ARFF ---------------------------------------------------------------------------------------------------


def _read_arff(path: Path, entry: DatasetEntry) -> Raw:
    attributes, n_labels, table, _ = parse_arff(path, errors="replace")  # names may be in any encoding
    if others := [attribute.name for attribute in attributes if not attribute.holds_numbers]:
        raise ValueError(f"its attribute {others[0]!r} is not numeric.")
    expected = 1 if entry.loss == "multinomial" else entry.n_labels
    return _split_labels(table, n_labels or (expected if entry.labels_first else -expected))


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
    sheet = read_delimited(path, ",")
    names = [name.upper() for name in sheet.names]
    features = [j for j, name in enumerate(names) if name.startswith(CSV_FEATURES)]
    if not features or not set(CSV_TARGETS) <= set(names):
        raise ValueError(f"its first line begins with {', '.join(names[:5])[:80]!r}.")
    targets = [names.index(name) for name in CSV_TARGETS]
    return Raw(sheet.numbers(features), sheet.numbers(targets))


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
