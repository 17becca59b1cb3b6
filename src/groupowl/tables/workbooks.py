"""Workbooks of Excel: one sheet of them, its first row with names, read by openpyxl, which is an extra."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress
from importlib import import_module
from itertools import zip_longest
from pathlib import Path
from typing import Any

from .._text import listed
from ..designs.disk.base import INSIDE
from .sheet import Sheet, is_number
from .table import Dialect, NumberedNames, TableError
from .text_files import EMPTY_CELLS, USUAL

# What formulas leave that have no result; pandas takes them for missing values, too.
_ERRORS = ("#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!", "#NULL!")


def read_workbook(
    path: Path, *, text_columns: Collection[str | None] = (), dialect: Dialect = USUAL, **unused: Any
) -> Sheet:
    """A sheet of a workbook: that of the dialect, or behind the mark in the path, or the first."""
    place, _, inside = str(path).partition(INSIDE)
    rows = _rows(Path(place), dialect.sheet or inside or None)
    width = max((len(row) for row in rows), default=0)
    if not rows:
        raise TableError(f"{path} has no cells in its sheet. Give another one with --sheet.")
    names: Any = NumberedNames("x", 1, width)
    if dialect.header:
        names = NumberedNames(others=tuple(_name(cell) for _, cell in zip_longest(range(width), rows[0])))
        rows = rows[1:]
    columns = {}
    for j, cells in enumerate(zip_longest(*rows)):
        is_text = names[j] in text_columns or str(j + 1) in text_columns
        columns[j] = _column(cells, is_text=is_text, dialect=dialect)
    index = None
    if names and names[0] == "" and columns:  # as data frames are written: the names of rows have none
        index = tuple("" if cell is None else str(cell) for cell in columns[0].to_pylist())
        names, columns = NumberedNames(others=names[1:]), {j - 1: columns[j] for j in columns if j}
    return Sheet(str(path), names, columns=columns, index=index, dialect=dialect)


def _rows(path: Path, wanted: str | None) -> list[Sequence[Any]]:
    """Cells of a sheet, without what is empty behind and below them."""
    try:
        openpyxl: Any = import_module("openpyxl")
    except ModuleNotFoundError as error:
        remedy = 'run: pip install "groupowl[excel]", or save it as CSV'
        raise TableError(f"{path} is a workbook of Excel, which needs openpyxl; {remedy}.") from error
    book = openpyxl.load_workbook(path, read_only=True, data_only=True)
    try:
        chosen = book[_sheet_name(path, book.sheetnames, wanted)]
        if not hasattr(chosen, "iter_rows"):
            raise TableError(f"{path}: sheet {chosen.title!r} is a chart. Give another one with --sheet.")
        if hasattr(chosen, "reset_dimensions"):  # which some programs write wrong
            chosen.reset_dimensions()
        rows = [_trimmed(row) for row in chosen.iter_rows(values_only=True)]
    finally:
        book.close()
    return [row for row in rows if row]


def _sheet_name(path: Path, names: list[str], wanted: str | None) -> str:
    """The sheet that is meant by a name, or a number that counts from 1."""
    if wanted is None or wanted in names:
        return names[0] if wanted is None else wanted
    if wanted.isdecimal() and 1 <= int(wanted) <= len(names):
        return names[int(wanted) - 1]
    raise TableError(f"{path} has no sheet {wanted!r}. Give --sheet one of {listed(names)}, or a number from 1.")


def _trimmed(row: Sequence[Any]) -> Sequence[Any]:
    """A row up to its last cell that is not empty."""
    length = len(row)
    while length and (row[length - 1] is None or row[length - 1] == ""):
        length -= 1
    return row[:length]


def _name(cell: Any) -> str:
    return "" if cell is None else str(cell).strip()


def _column(cells: Sequence[Any], *, is_text: bool, dialect: Dialect) -> Any:
    """Cells as a column: truth values, numbers, also those that are stored as text, or text."""
    import pyarrow as pa

    empty = {*EMPTY_CELLS, *_ERRORS, *dialect.na}
    present = [None if isinstance(cell, str) and cell.strip() in empty else cell for cell in cells]
    if dialect.na:  # numbers too may stand for what is missing
        present = [None if cell is not None and _words(cell) in dialect.na else cell for cell in present]
    kinds = {type(cell) for cell in present if cell is not None}
    if kinds == {bool} and not is_text:
        return pa.chunked_array([pa.array(present, pa.bool_())])
    if not is_text and kinds <= {int, float, str}:
        with suppress(ValueError):
            return pa.chunked_array([pa.array([_number(cell, dialect) for cell in present], pa.float64())])
    return pa.chunked_array([pa.array([None if cell is None else _words(cell) for cell in present], pa.string())])


def _number(cell: Any, dialect: Dialect) -> float | None:
    """The number in a cell, also one that is stored as text."""
    if isinstance(cell, str):
        plain = cell if dialect.is_usual else dialect.plain(cell)
        if not is_number(plain):  # Python would take more for a number than other readers do
            raise ValueError(f"{cell!r} is no number")
        return float(plain or "")
    return None if cell is None else float(cell)


def _words(cell: Any) -> str:
    """A cell as text; whole numbers have no fraction, as ids should have none."""
    return str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell)
