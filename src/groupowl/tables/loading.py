"""From the path of a file to a table: what the command line calls."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from .builder import make_table
from .columns import find_column
from .errors import TableError, counted, listed
from .formats import read_sheet
from .names import NumberedNames
from .sheet import Sheet
from .table import Roles, Table
from .values import numbers_of, sample_ids

_NUMBERED = re.compile(r"(\D*)\d+")


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
    left, right = reading.roles.id_columns
    sheet = _read(path, reading, left)
    other = None
    if reading.targets_from is not None:
        other = read_sheet(reading.targets_from, text_columns=() if right is None else (right,))
    return make_table(sheet, reading.roles, other)


def _read(path: str | Path, reading: Reading, id_column: str | None) -> Sheet:
    return read_sheet(
        path,
        format=reading.format,
        transpose=reading.transpose,
        text_columns=() if id_column is None else (id_column,),
        first_index=reading.first_index,
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
    sheet = _read(path, reading, left)
    missing = _missing(sheet, names)
    if missing and not sheet.zeros_left_out:
        _check_missing(sheet, missing, names, names if needed is None else needed)
    column = None
    if left is not None and (left in sheet.positions or (needs_ids and sheet.index is None)):
        column = find_column("--id-column", left, sheet.names, sheet.source)
    id_name = None if column is None else sheet.names[column]
    extra = _extra(sheet, names, {*known, id_name})
    absent: Sequence[str] = () if sheet.zeros_left_out else missing
    return Features(_known_columns(sheet, names), sample_ids(sheet, column), extra, id_name, absent)


def _missing(sheet: Sheet, names: Sequence[str]) -> Sequence[str]:
    """Features that the file has not."""
    if isinstance(names, NumberedNames) and names.continues(sheet.names):
        return names.after(_n_common(sheet, names))
    return tuple(name for name in names if name not in sheet.positions)


def _extra(sheet: Sheet, names: Sequence[str], known: Collection[str | None]) -> Sequence[str]:
    """Columns that are no features and nobody knows."""
    if isinstance(sheet.names, NumberedNames) and sheet.names.continues(names):
        rest = sheet.names.after(_n_common(sheet, names))
        others = enumerate(rest.others, start=sheet.names.n_numbered)
        return replace(rest, others=tuple(name for j, name in others if name not in known and j not in sheet.auxiliary))
    ignored = {*names, *known}
    found = (name for j, name in enumerate(sheet.names) if name not in ignored and j not in sheet.auxiliary)
    return tuple(found)


def _n_common(sheet: Sheet, names: Sequence[str]) -> int:
    """Columns that the file and the model have, where both only number them."""
    assert isinstance(sheet.names, NumberedNames)
    return min(sheet.names.n_numbered, len(names))


def _check_missing(sheet: Sheet, missing: Sequence[str], names: Sequence[str], needed: Collection[str]) -> None:
    """Refuse a file without needed features, without any, or where columns may have taken each other's places."""
    are_names = sheet.names_its_columns and not _are_numbered(names)
    is_strict = not are_names or len(missing) == len(names)
    refused = missing if is_strict else [name for name in missing if name in set(needed)]
    if not refused:
        return
    also = (
        "" if are_names else ", and here names are numbers of columns: features that were not selected are needed too"
    )
    raise TableError(
        f"{sheet.source} lacks {counted(len(refused), 'column')} of the model's {len(names)} features: "
        f"{listed(refused, shown=10)}. Columns are matched by name{also}."
    )


def _are_numbered(names: Sequence[str]) -> bool:
    """Whether names count columns, as "0", "V1" or "x12" do: a column less may have given them to others."""
    if isinstance(names, NumberedNames):
        return True
    counted_names = [_NUMBERED.fullmatch(name) for name in names]
    return len({match[1] for match in counted_names if match}) == 1 and all(counted_names)


def _known_columns(sheet: Sheet, names: Sequence[str]) -> Any:
    """The features in order; those that the file leaves out are zero."""
    if isinstance(names, NumberedNames) and names.continues(sheet.names):
        places = positions = np.arange(_n_common(sheet, names))
    else:
        found = [sheet.positions.get(name, -1) for name in names]
        places = np.flatnonzero(np.asarray(found, dtype=np.intp) >= 0)
        positions = np.asarray(found, dtype=np.intp)[places]
    X = numbers_of(sheet, positions)
    if len(places) == len(names):
        return X
    if isinstance(X, np.ndarray):
        filled = np.zeros((len(X), len(names)), dtype=X.dtype, order="F")
        filled[:, places] = X
        return filled
    spread = sp.csr_array((np.ones(len(places)), (np.arange(len(places)), places)), shape=(len(places), len(names)))
    return sp.csr_array(X @ spread)
