"""CSV and TSV files: a header with names, then rows of cells, read by pyarrow.

Columns of fractions are recognised in the first rows and read as such, which halves the time of a wide file; where that
turns out wrong, the types of all columns are found again from all rows.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from .errors import TableError, counted
from .opening import is_compressed, open_bytes, open_text
from .sheet import ArrowSheet, check_names

#: Cells that count as empty; in quotes they are text.
EMPTY_CELLS = ("", "?", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "-nan", "null", "NULL", "None")

_FIRST_BYTES = 1 << 16
_SAMPLED_ROWS = 20
_LARGEST_BLOCK = 1 << 30
_UNPACKED_BLOCK = 1 << 28  # of a compressed file, whose size is not known
_LONGEST_FIELD = 1 << 27
_UNCLOSED = "unexpected end of data"  # what the csv module says of a quotation mark without its partner
_FRACTION = re.compile(r"\s*[+-]?\d*\.\d+(?:[eE][+-]?\d+)?\s*")
_MARKS = {
    b"\xff\xfe\0\0": "UTF-32",
    b"\0\0\xfe\xff": "UTF-32",
    b"\xff\xfe": "UTF-16",
    b"\xfe\xff": "UTF-16",
}
# What files that are no text begin with.
_KINDS = {
    b"PK\x03\x04": "a ZIP archive or a spreadsheet",
    b"\x1f\x8b": "compressed data (name it .gz)",
    b"BZh": "compressed data (name it .bz2)",
    b"\xfd7zXZ": "compressed data (unpack it first)",
    b"\x28\xb5\x2f\xfd": "compressed data (unpack it first)",
    b"7z\xbc\xaf": "a 7z archive (unpack it first)",
    b"Rar!": "a RAR archive (unpack it first)",
    b"\xd0\xcf\x11\xe0": "a spreadsheet of Excel (.xls)",
    b"ARROW1": "a Feather file",
    b"SQLite": "a data base",
    b"PAR1": "a Parquet file",
    b"\x89HDF": "an HDF5 file",
    b"\x93NUMPY": "a NumPy file",
    b"\x89PNG": "a picture",
    b"%PDF": "a PDF file",
}
# The same for text that has no cells.
_MARKUP = {b"<!doctype html": "a web page", b"<html": "a web page", b"<?xml": "XML", b'{"': "JSON", b"[{": "JSON"}


def read_delimited(path: Path, delimiter: str | None, *, text_columns: Collection[str] = ()) -> ArrowSheet:
    """A sheet from a file of cells.

    Parameters
    ----------
    path : Path
    delimiter : str or None
        What separates cells; None is a comma, or a semicolon or tab where the header has no comma.
    text_columns : collection of str
        Columns that are text whatever they look like: ids such as 007.
    """
    source = str(path)
    _check_beginning(path)
    try:
        names, n_lines, mark = _header(path, delimiter)
    except UnicodeDecodeError as error:
        raise TableError(_not_utf8(path)) from error
    _check_header(source, names)
    has_index = names[0] == ""
    check_names(source, names[1:] if has_index else names)
    texts = [j for j, name in enumerate(names) if _is_wanted(j, names, text_columns) or (j == 0 and has_index)]
    table = _read(path, mark, len(names), n_lines, texts)
    index = None
    if has_index:
        index = tuple("" if value is None else value for value in table.column(0).to_pylist())
        table, names = table.select(range(1, len(names))), names[1:]
    sheet = ArrowSheet(
        source=source, names=tuple(names), n_rows=table.num_rows, index=index, table=table, separator=mark
    )
    if sheet.n_rows == 0 and any("\n" in name for name in names):
        raise TableError(f"{source}: a quotation mark in its first line is never closed. Close it, or remove it.")
    sheet.check_not_empty()
    return sheet


def _is_wanted(j: int, names: list[str], wanted: Collection[str]) -> bool:
    """Whether a column is one of those named, by name or else by position from 1."""
    return names[j] in wanted or (str(j + 1) in wanted and str(j + 1) not in names)


# The header ---------------------------------------------------------------------------------------------


def _check_beginning(path: Path) -> None:
    """Refuse files that are no text, by their first bytes."""
    with open_bytes(path) as file:
        head = file.read(_FIRST_BYTES)
    if not head.removeprefix(codecs.BOM_UTF8).strip():
        raise TableError(f"{path} is empty. Give a file with column names in its first line and samples below.")
    if encoding := _beginning(head, _MARKS) or _wide_encoding(head):
        raise TableError(f"{path} is {encoding} text. Save it as UTF-8.")
    kind = _beginning(head, _KINDS)
    if kind is not None or b"\0" in head:
        found = kind or "binary data"
        raise TableError(f"{path} is no text but {found}. Give its format with --format, or save it as CSV.")
    if markup := _beginning(head.lstrip().lower(), _MARKUP):
        raise TableError(f"{path} is {markup}, which has no cells between separators. Save the table in it as CSV.")


def _beginning(head: bytes, known: Mapping[bytes, str]) -> str | None:
    """What a file is by its first bytes, where these are known."""
    return next((words for mark, words in known.items() if head.startswith(mark)), None)


def _wide_encoding(head: bytes) -> str | None:
    """The encoding of text whose characters take several bytes, all but one of them zero."""
    for width, encoding in ((4, "UTF-32"), (2, "UTF-16")):
        n_zero = sum(not any(head[k::width]) for k in range(width))
        if len(head) >= width and n_zero == width - 1:
            return encoding
    return None


def _header(path: Path, delimiter: str | None) -> tuple[list[str], int, str]:
    """Column names, the number of lines they take, and the delimiter."""
    with open_text(path) as file:
        line = next((line for line in file if line.strip()), "")
        mark = delimiter or next((mark for mark in ",;\t" if mark in line), ",")
        file.seek(0)
        reader = _cells(file, mark)
        names = next(row for row in reader if row)
        return [name.strip() for name in names], reader.line_num, mark


def _cells(file: io.TextIOBase, delimiter: str, *, strict: bool = False) -> Any:
    csv.field_size_limit(_LONGEST_FIELD)
    return csv.reader(file, delimiter=delimiter, strict=strict)


def _check_header(source: str, names: list[str]) -> None:
    """Refuse a first line of data: fractions are no names (whole numbers are, those of frames without names)."""
    fractions = [name for name in names if _is_fraction(name)]
    if fractions:
        raise TableError(
            f"{source}: the first line should hold column names, but {fractions[0]!r} is a number. "
            "Put a line with names above the data."
        )


def _is_fraction(text: str) -> bool:
    return _FRACTION.fullmatch(text) is not None


# The cells ----------------------------------------------------------------------------------------------


def _read(path: Path, mark: str, n_columns: int, n_lines: int, texts: list[int]) -> Any:
    import pyarrow as pa

    types = {str(j): pa.string() for j in texts}
    fractions = {name: pa.float64() for name in _fractions(path, mark, n_columns)}
    try:
        table = _read_arrow(path, mark, n_columns, n_lines, fractions | types)
    except pa.ArrowInvalid:
        try:
            table = _read_arrow(path, mark, n_columns, n_lines, types) if fractions else None
        except pa.ArrowInvalid:
            table = None
    if table is None or any(pa.types.is_binary(column.type) for column in table.schema):
        raise TableError(_problem(path, mark, n_columns))
    return table


def _fractions(path: Path, mark: str, n_columns: int) -> list[str]:
    """Columns that hold fractions in the first rows; where the rows are broken, the whole file will show it."""
    try:
        rows = [row for _, (_, row) in zip(range(_SAMPLED_ROWS), _numbered_rows(path, mark), strict=False)]
    except (UnicodeDecodeError, csv.Error):
        return []
    found: set[int] = set()
    for row in rows:
        found.update(
            j for j, cell in enumerate(row[:n_columns]) if "." in cell and j not in found and _is_fraction(cell)
        )
    return [str(j) for j in sorted(found)]


def _read_arrow(path: Path, mark: str, n_columns: int, n_lines: int, types: dict[str, Any]) -> Any:
    if is_compressed(path):
        with open_bytes(path) as file:
            return _arrow_table(file, mark, n_columns, n_lines, types, _UNPACKED_BLOCK)
    size = min(path.stat().st_size + 1, _LARGEST_BLOCK)  # blocks of a few rows cost more than their cells
    return _arrow_table(str(path), mark, n_columns, n_lines, types, size)


def _arrow_table(source: Any, mark: str, n_columns: int, n_lines: int, types: dict[str, Any], block: int) -> Any:
    from pyarrow import csv as arrow_csv

    return arrow_csv.read_csv(
        source,
        read_options=arrow_csv.ReadOptions(
            column_names=[str(j) for j in range(n_columns)], skip_rows=n_lines, block_size=block
        ),
        parse_options=arrow_csv.ParseOptions(delimiter=mark, newlines_in_values=True),
        convert_options=arrow_csv.ConvertOptions(
            column_types=types,
            null_values=list(EMPTY_CELLS),
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )


# What is wrong ------------------------------------------------------------------------------------------


def _problem(path: Path, mark: str, n_columns: int) -> str:
    """Why a file could not be read: its first row with too few or too many cells, or what is not UTF-8."""
    source = str(path)
    rows = _numbered_rows(path, mark, strict=True)
    number = 0
    try:
        for number, row in rows:
            if len(row) != n_columns:
                return _ragged(source, number, len(row), n_columns)
    except UnicodeDecodeError:
        return _not_utf8(path)
    except csv.Error as error:
        what = "has a quotation mark that is never closed" if _UNCLOSED in str(error) else f"cannot be read ({error})"
        return f"{source}: row {number + 1} below the header {what}. Check its quotation marks."
    if number == 0:
        return f"{source} has no rows below its header. Give a file with samples."
    return f"{source} cannot be read as text with cells separated by {mark!r}. Check quotation marks and the format."


def _numbered_rows(path: Path, mark: str, *, strict: bool = False) -> Iterator[tuple[int, list[str]]]:
    with open_text(path) as file:
        rows = (row for row in _cells(file, mark, strict=strict) if row)
        next(rows)
        yield from enumerate(rows, start=1)


def _ragged(source: str, number: int, n_cells: int, n_columns: int) -> str:
    reason = "The file may be cut off, or a cell holds a separator without quotation marks."
    if number == 1 and n_columns == 1:
        reason = "The first line may be a title or a comment. Remove what is above the line with the names."
    return (
        f"{source}: row {number} below the header has {counted(n_cells, 'cell')}, but the header has "
        f"{counted(n_columns, 'name')}. {reason}"
    )


def _not_utf8(path: Path) -> str:
    """Where the first byte is that is not UTF-8: decoders read ahead, and do not know the line."""
    with open_bytes(path) as file:
        for number, line in enumerate(file, start=1):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError as error:
                byte = line[error.start]
                return f"{path} is not UTF-8 text: byte 0x{byte:02x} in line {number}. Save it as UTF-8."
    raise AssertionError("a file that cannot be decoded has a line that cannot")
