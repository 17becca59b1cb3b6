"""Readers of single formats: each makes a sheet of one file."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._checks import IMPUTE
from ..designs import MemmapDesign, open_matrix
from ..designs.disk import open_storage
from ..designs.disk.memory import check_fits
from .archives import CSR_PIECES, archive_arrays, archive_matrix, has_matrix
from .arff import ArffHeader, arff_header, arff_lines, arff_table
from .delimited import read_delimited
from .errors import TableError, listed
from .libsvm import first_bad_line, has_many_labels, label_columns, read_libsvm
from .names import NumberedNames
from .opening import open_text
from .sheets import ArrowSheet, MatrixSheet, Sheet, check_names

# Bytes of a cell of a table in memory, as numbers have.
_CELL_BYTES = 8
_NAME_ARRAYS = ("feature_names", "target_names", "ids", "format")


def read_csv(path: Path, *, text_columns: Collection[str] = (), first_index: int | None = None) -> Sheet:
    """Cells between commas, or semicolons or tabs where the header has no comma."""
    return read_delimited(path, None, text_columns=text_columns)


def read_tsv(path: Path, *, text_columns: Collection[str] = (), first_index: int | None = None) -> Sheet:
    """Cells between tabs."""
    return read_delimited(path, "\t", text_columns=text_columns)


def read_parquet(path: Path, *, text_columns: Collection[str] = (), first_index: int | None = None) -> Sheet:
    """A Parquet file; the index of a data frame names the rows."""
    from pyarrow import parquet

    with path.open("rb") as file:
        found = parquet.read_metadata(file)
        shape = (found.num_rows, found.num_columns)
        check_fits(f"a table of shape {shape}", _CELL_BYTES * shape[0] * shape[1])
        table = parquet.read_table(file)
    source = str(path)
    frame = json.loads((table.schema.metadata or {}).get(b"pandas", b"{}"))  # what pandas knows of it
    stored = [name for name in frame.get("index_columns", []) if isinstance(name, str) and name in table.column_names]
    categorical = [str(item["name"]) for item in frame.get("columns", []) if item["pandas_type"] == "categorical"]
    index = None
    if len(stored) == 1:
        index = tuple("" if value is None else str(value) for value in table.column(stored[0]).to_pylist())
    table = table.drop_columns(stored)
    notes = [f"Rows of {source} have names of several levels, {listed(stored)}, which are not used."]
    names = tuple(str(name) for name in table.column_names)
    check_names(source, names)
    return ArrowSheet(
        source=source,
        names=names,
        n_rows=table.num_rows,
        index=index,
        notes=tuple(notes if len(stored) > 1 else ()),
        table=table,
        categorical=frozenset(categorical),
    )


def read_npz(path: Path, *, text_columns: Collection[str] = (), first_index: int | None = None) -> Sheet:
    """A NumPy archive: X, or the pieces of a sparse one; y or Y; names; and vectors with an entry per sample."""
    arrays = archive_arrays(path)
    if not has_matrix(arrays):
        raise ValueError(f"the arrays in it are {', '.join(sorted(arrays)) or 'nothing'}.")
    X = archive_matrix(arrays)
    if np.ndim(X) != 2 and not sp.issparse(X):
        raise ValueError(f"X must have two dimensions, but its shape is {np.shape(X)}.")
    if X.dtype.kind not in "fiub":
        raise ValueError(f"X must hold real numbers, but its type is {X.dtype}.")
    X = X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)
    n_rows, n_columns = X.shape
    columns, unread = _beside_matrix(arrays, n_rows)
    everything: Sequence[str] = NumberedNames("x", 1, n_columns, tuple(columns))
    if "feature_names" in arrays:
        everything = (*_stored_names(arrays, "feature_names", n_columns, []), *columns)
    check_names(str(path), everything)
    cells = dict(enumerate(columns.values(), start=n_columns))
    targets = [j for j, name in enumerate(columns, start=n_columns) if name in _target_names(arrays)]
    return MatrixSheet(
        source=str(path),
        names=everything,
        n_rows=n_rows,
        index=tuple(str(item) for item in arrays["ids"].tolist()) if "ids" in arrays else None,
        suggested_targets=tuple(targets),
        auxiliary=frozenset(cells),
        notes=tuple(f"Array {name!r} of {path} is not used: it is no vector of {n_rows} samples." for name in unread),
        X=X,
        texts={j: values.tolist() for j, values in cells.items() if values.dtype.kind in "US"},
        extras={j: values for j, values in cells.items() if values.dtype.kind in "fiub"},
        categorical=frozenset(j for j, values in cells.items() if values.dtype.kind == "b"),
    )


def _stored_names(arrays: dict[str, Any], key: str, count: int, default: list[str]) -> list[str]:
    if key not in arrays:
        return default
    names = [str(name) for name in np.ravel(arrays[key]).tolist()]
    if len(names) != count:
        raise ValueError(f"{key} has {len(names)} names for {count} columns.")
    return names


def _target_names(arrays: dict[str, Any]) -> list[str]:
    if "y" in arrays:
        return ["y"]
    Y = arrays.get("Y")
    if Y is None:
        return []
    n_targets = Y.shape[1] if Y.ndim == 2 else 1
    default = ["Y"] if Y.ndim == 1 else [f"y{k + 1}" for k in range(n_targets)]
    return _stored_names(arrays, "target_names", n_targets, default)


def _beside_matrix(arrays: dict[str, Any], n_rows: int) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Columns of y or Y, and other vectors with an entry per sample, by name; and arrays of any other shape."""
    columns: dict[str, Any] = {}
    unread = []
    for name, values in arrays.items():
        if name in ("X", *CSR_PIECES, *_NAME_ARRAYS):
            continue
        if name in ("y", "Y") and (np.ndim(values) == 0 or len(values) != n_rows):
            raise ValueError(f"X has {n_rows} rows, but {name} has shape {np.shape(values)}.")
        if name in ("y", "Y") and values.dtype.kind == "c":
            raise ValueError(f"{name} must hold real numbers or labels, but its type is {values.dtype}.")
        if name == "Y" and values.ndim == 2 and "y" not in arrays:
            columns |= dict(zip(_target_names(arrays), values.T, strict=True))
        elif values.ndim == 1 and len(values) == n_rows:
            columns[name] = values
        elif name == "y" and values.ndim == 2 and values.shape[1] == 1:
            columns[name] = values[:, 0]
        else:
            unread.append(name)
    return columns, tuple(unread)


def read_libsvm_sheet(path: Path, *, text_columns: Collection[str] = (), first_index: int | None = None) -> Sheet:
    """A LIBSVM file: columns are named by their index, samples have a label or a list of labels."""
    multilabel = has_many_labels(path)
    try:
        X, labels, start = read_libsvm(path, first_index=first_index, multilabel=multilabel)
    except TableError:
        raise
    except ValueError as error:
        number = first_bad_line(path)
        raise ValueError(str(error) if number is None else f"line {number} is not in the format") from error
    if multilabel:
        known, Y = label_columns(labels)
        targets = {f"label {label}": column for label, column in zip(known, Y.T, strict=True)}
    else:
        targets = {"label": labels}
    n_columns = X.shape[1]
    positions = range(n_columns, n_columns + len(targets))
    return MatrixSheet(
        source=str(path),
        names=NumberedNames("", start, n_columns, tuple(targets)),
        n_rows=X.shape[0],
        suggested_targets=tuple(positions),
        auxiliary=frozenset(positions),
        zeros_left_out=True,
        first_index=start,
        X=X,
        extras=dict(zip(positions, targets.values(), strict=True)),
    )


def read_arff(path: Path, *, text_columns: Collection[str] = (), first_index: int | None = None) -> Sheet:
    """An ARFF file, dense or sparse."""
    with open_text(path) as file:
        lines = arff_lines(file)
        header = arff_header(lines)
        table = arff_table(lines, header)
    names = tuple(attribute.name for attribute in header.attributes)
    check_names(str(path), names, "attribute")
    return MatrixSheet(
        source=str(path),
        names=names,
        n_rows=table.values.shape[0],
        suggested_targets=_noted_targets(header),
        names_its_columns=True,
        X=table.values if table.is_sparse else table.values.toarray(),
        texts={
            j: _decoded(table.values[:, [j]].toarray()[:, 0], attribute.values)
            for j, attribute in enumerate(header.attributes)
            if not attribute.holds_numbers
        },
        categorical=frozenset(j for j, attribute in enumerate(header.attributes) if attribute.is_nominal),
    )


def _noted_targets(header: ArffHeader) -> tuple[int, ...]:
    """Labels that MEKA's note in the name of the relation counts: the first ones, or the last if negative."""
    count = header.labels
    if not count:
        return ()
    everything = range(header.n_attributes)
    return tuple(everything[:count] if count > 0 else everything[count:])


def _decoded(codes: Any, values: list[str]) -> list[str | None]:
    return [None if code != code else values[int(code)] for code in codes.tolist()]


def read_large(path: Path, *, text_columns: Collection[str] = (), first_index: int | None = None) -> Sheet:
    """A matrix that stays on disk, opened by :func:`groupowl.designs.open_matrix`; targets are in another file."""
    try:
        X = open_matrix(path)
    except (OSError, TypeError, ValueError, ImportError) as error:
        if IMPUTE not in str(error):
            raise TableError(str(error)) from error
        X = _with_gaps(path)
    shown: Sequence[str] = NumberedNames("x", 1, X.shape[1])
    if X.feature_names is not None:
        shown = tuple(str(name) for name in X.feature_names)
    check_names(str(path), shown)
    small: Any = X
    matrix = X if isinstance(X, MemmapDesign) else small.X
    return MatrixSheet(source=str(path), names=shown, n_rows=X.shape[0], X=matrix)


def _with_gaps(path: Path) -> Any:
    """The same matrix unchecked: columns that are used are checked by name, and others may have gaps."""
    storage = open_storage(path)
    return SimpleNamespace(
        X=storage.read_rows(slice(0, storage.shape[0])), shape=storage.shape, feature_names=storage.feature_names
    )
