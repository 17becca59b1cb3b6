"""From the path of a file to a table, or to the features of new samples: what the command line calls."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._text import counted, listed
from .._typing import IndexArray
from .builder import make_table
from .names import find_column
from .readers import read_sheet
from .sheet import Sheet
from .table import Roles, Table, TableError

_COUNTED = re.compile(r"(\D*)\d+")


@dataclass(frozen=True)
class Reading:
    """How files are read, whatever their names.

    Attributes
    ----------
    roles : Roles
        What columns are for.
    format : str or None
        Name of a format, whatever the suffix.
    transpose : bool
        Whether rows of the file are features.
    targets_from : str or None
        Path of the file with the targets, if it is another one.
    first_index : int or None
        Number of the first column in a LIBSVM file.
    """

    roles: Roles = field(default_factory=Roles)
    format: str | None = None
    transpose: bool = False
    targets_from: str | None = None
    first_index: int | None = None


def load_table(path: str | Path, reading: Reading) -> Table:
    """Read the file of the features, and that of the targets if there is one, and check everything."""
    sheet = _read(path, reading)
    other = None
    if reading.targets_from is not None:
        other = read_sheet(reading.targets_from, text_columns=reading.roles.id_columns[1:])
    return make_table(sheet, reading.roles, other)


def _read(path: str | Path, reading: Reading) -> Sheet:
    ids = reading.roles.id_columns[:1]
    return read_sheet(
        path, format=reading.format, transpose=reading.transpose, text_columns=ids, first_index=reading.first_index
    )


@dataclass(frozen=True, eq=False)
class Features:
    """Features of new samples, in the order of a model.

    Attributes
    ----------
    X : ndarray or csr_array
    ids : tuple of str or None
    extra : sequence of str
        Columns of the file that the model does not know.
    id_name : str or None
        Name of the column with the ids; None where the rows themselves have names, or none.
    absent : sequence of str
        Features that are not needed and not in the file; zeros stand in for them.
    """

    X: Any
    ids: tuple[str, ...] | None
    extra: Sequence[str]
    id_name: str | None = None
    absent: Sequence[str] = ()


def load_features(
    path: str | Path,
    reading: Reading,
    names: Sequence[str],
    known: Sequence[str] = (),
    *,
    needed: Collection[str] | None = None,
    needs_ids: bool = False,
) -> Features:
    """Read the columns that a model needs, by name.

    Parameters
    ----------
    path : str or Path
    reading : Reading
        As for the fit; targets, groups and weights need not be there.
    names : sequence of str
        Features of the model.
    known : sequence of str
        Other columns of the fit, which are not worth a mention.
    needed : collection of str, default=None
        Features that a file which names its columns must have; all by default.
    needs_ids : bool, default=False
        Whether to refuse a file without the column of ids.
    """
    left = reading.roles.id_columns[0]
    sheet = _read(path, reading)
    positions = sheet.names.positions_of(names)
    absent = [] if sheet.zeros_left_out else np.flatnonzero(positions < 0).tolist()
    missing = tuple(names[k] for k in absent)
    if missing:
        _check_missing(sheet, missing, names, set(names if needed is None else needed))
    column = None
    if left is not None and (left in sheet.names or (needs_ids and sheet.index is None)):
        column = find_column("--id-column", left, sheet.names, sheet.source)
    id_name = None if column is None else sheet.names[column]
    is_extra = np.ones(len(sheet.names), dtype=bool)
    is_extra[positions[positions >= 0]] = False
    is_extra[sheet.auxiliary.start :] = False
    found = (sheet.names[j] for j in np.flatnonzero(is_extra).tolist())
    others = {*known, id_name}
    extra = tuple(name for name in found if name not in others)
    return Features(_in_order(sheet, positions), sheet.ids(column), extra, id_name, missing)


def _check_missing(sheet: Sheet, missing: Sequence[str], names: Sequence[str], needed: set[str]) -> None:
    """Refuse a file without needed features, without any, or where columns may have taken each other's places."""
    are_names = sheet.names_its_columns and not _are_counted(names)
    refused: Sequence[str] = missing
    if are_names and len(missing) < len(names):
        refused = [name for name in missing if name in needed]
    if not refused:
        return
    also = ", and here names are numbers of columns: features that were not selected are needed too"
    raise TableError(
        f"{sheet.source} lacks {counted(len(refused), 'column')} of the model's {len(names)} features: "
        f"{listed(refused, shown=10)}. Columns are matched by name{'' if are_names else also}."
    )


def _are_counted(names: Sequence[str]) -> bool:
    """Whether names count columns, as "0", "V1" or "x12" do: a column less may have given them to others."""
    stems = {match and match[1] for match in map(_COUNTED.fullmatch, names)}
    return len(stems) == 1 and None not in stems


def _in_order(sheet: Sheet, positions: IndexArray) -> Any:
    """Columns of a file in the order of a model; those that the file leaves out are zero."""
    is_there = positions >= 0
    if is_there.all():
        return sheet.numbers(positions)
    places = np.flatnonzero(is_there)
    X = sheet.numbers(positions[places])
    if isinstance(X, np.ndarray):
        filled = np.zeros((len(X), len(positions)), dtype=X.dtype, order="F")
        filled[:, places] = X
        return filled
    return sp.csr_array((X.data, places[X.indices], X.indptr), shape=(X.shape[0], len(positions)))
