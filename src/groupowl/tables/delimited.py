"""Text files, compressed or not: a header with names, then rows of cells, read by pyarrow.

Columns of fractions are recognized in the first rows and read as such, which halves the time of a wide file; where that
turns out wrong, the types of all columns are found again from all rows.
"""

from __future__ import annotations

import bz2
import codecs
import csv
import gzip
import io
import re
from collections.abc import Callable, Collection
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

from .._text import counted
from .names import TableError, own_names
from .sheet import Sheet

#: Suffixes of compressed files, and what opens them.
COMPRESSIONS: dict[str, Callable[[Path], Any]] = {".gz": gzip.open, ".bz2": bz2.open}
#: Cells that count as empty; in quotes they are text.
EMPTY_CELLS = ("", "?", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "-nan", "null", "NULL", "None")

_FIRST_BYTES = 1 << 16
_SAMPLED_ROWS = 20
_BLOCK_BYTES = 1 << 28  # blocks of a few rows cost more than their cells
_LONGEST_FIELD = 1 << 27
_UNCLOSED = "unexpected end of data"  # what the csv module says of a quotation mark without its partner
_FRACTION = re.compile(r"\s*[+-]?\d*\.\d+(?:[eE][+-]?\d+)?\s*")

_ENCODED = "{} is {} text. Save it as UTF-8."
_BINARY = "{} is no text but {}. Give its format with --format, or save it as CSV."
_MARKUP = "{} is {}, which has no cells between separators. Save the table in it as CSV."
# What files that are no tables of text begin with, and what they are.
_BEGINNINGS: dict[str, tuple[str, tuple[bytes, ...]]] = {
    "UTF-32": (_ENCODED, (b"\xff\xfe\0\0", b"\0\0\xfe\xff")),
    "UTF-16": (_ENCODED, (b"\xff\xfe", b"\xfe\xff")),
    "a ZIP archive or a spreadsheet": (_BINARY, (b"PK\x03\x04",)),
    "compressed data (name it .gz)": (_BINARY, (b"\x1f\x8b",)),
    "compressed data (name it .bz2)": (_BINARY, (b"BZh",)),
    "compressed data (unpack it first)": (_BINARY, (b"\xfd7zXZ", b"\x28\xb5\x2f\xfd")),
    "a 7z archive (unpack it first)": (_BINARY, (b"7z\xbc\xaf",)),
    "a RAR archive (unpack it first)": (_BINARY, (b"Rar!",)),
    "a spreadsheet of Excel (.xls)": (_BINARY, (b"\xd0\xcf\x11\xe0",)),
    "a Feather file": (_BINARY, (b"ARROW1",)),
    "a data base": (_BINARY, (b"SQLite",)),
    "a Parquet file": (_BINARY, (b"PAR1",)),
    "an HDF5 file": (_BINARY, (b"\x89HDF",)),
    "a NumPy file": (_BINARY, (b"\x93NUMPY",)),
    "a picture": (_BINARY, (b"\x89PNG",)),
    "a PDF file": (_BINARY, (b"%PDF",)),
    "a web page": (_MARKUP, (b"<!doctype html", b"<html")),
    "XML": (_MARKUP, (b"<?xml",)),
    "JSON": (_MARKUP, (b'{"', b"[{")),
}


def format_suffix(path: Path) -> str:
    """The suffix in lower case that says the format, not the compression."""
    name = Path(path.name.lower())
    return (name.with_suffix("") if name.suffix in COMPRESSIONS else name).suffix


def open_bytes(path: Path) -> BinaryIO:
    """The bytes of a file, unpacked."""
    opener = COMPRESSIONS.get(path.suffix.lower())
    file: BinaryIO = path.open("rb") if opener is None else opener(path)
    return file


def open_text(path: Path, *, errors: str = "strict") -> io.TextIOWrapper:
    """The text of a file, unpacked; UTF-8, with or without a byte order mark."""
    return io.TextIOWrapper(open_bytes(path), encoding="utf-8-sig", errors=errors, newline="")


def read_delimited(
    path: Path, delimiter: str | None = None, *, text_columns: Collection[str | None] = (), **unused: Any
) -> Sheet:
    """A sheet from a file of cells.

    Parameters
    ----------
    path : Path
    delimiter : str or None
        What separates cells; None is a comma, or a semicolon or tab where the header has no comma.
    text_columns : collection of str
        Columns that are text whatever they look like: ids such as 007.
    """
    import pyarrow as pa
    from pyarrow.csv import ConvertOptions, ParseOptions, ReadOptions, read_csv

    _check_beginning(path)
    try:
        separator, names, n_lines, fractions = _first_rows(path, delimiter)
    except UnicodeDecodeError as error:
        raise TableError(_problem(path)) from error
    if numbers := [name for name in names if _FRACTION.fullmatch(name)]:  # whole ones are names of nameless frames
        what = f"the first line should hold column names, but {numbers[0]!r} is a number"
        raise TableError(f"{path}: {what}. Put a line with names above the data.")
    first = 1 if names[0] == "" else 0  # a nameless first column names the rows
    wanted = {j for j, name in enumerate(names) if name in text_columns}
    wanted |= {j for j in range(len(names)) if str(j + 1) in text_columns and str(j + 1) not in names}
    texts = {str(j): pa.string() for j in (*wanted, *range(first))}
    numbered = [str(j) for j in range(len(names))]
    read = ReadOptions(column_names=numbered, skip_rows=n_lines, block_size=_BLOCK_BYTES)
    parse = ParseOptions(delimiter=separator, newlines_in_values=True)
    convert = ConvertOptions(null_values=EMPTY_CELLS, strings_can_be_null=True, quoted_strings_can_be_null=False)
    table = None
    for types in (dict.fromkeys(fractions, pa.float64()) | texts, texts):
        convert.column_types = types
        with suppress(pa.ArrowInvalid), open_bytes(path) as file:  # a column of fractions may have text further down
            table = read_csv(file, read, parse, convert)
            break
    if table is None or table.num_rows == 0 or any(map(pa.types.is_binary, set(table.schema.types))):
        raise TableError(_problem(path, separator, len(names)))
    index = tuple(cell or "" for cell in table.column(0).to_pylist()) if first else None
    columns = dict(enumerate(table.columns[first:]))
    return Sheet(str(path), own_names(names[first:]), columns=columns, index=index, separator=separator)


def _check_beginning(path: Path) -> None:
    """Refuse files that are no text, by their first bytes."""
    with open_bytes(path) as file:
        head = file.read(_FIRST_BYTES)
    if not head.removeprefix(codecs.BOM_UTF8).strip():
        raise TableError(f"{path} is empty. Give a file with column names in its first line and samples below.")
    text = head.lstrip().lower()
    for kind, (sentence, marks) in _BEGINNINGS.items():
        if (text if sentence is _MARKUP else head).startswith(marks):
            raise TableError(sentence.format(path, kind))
    for width, encoding in ((4, "UTF-32"), (2, "UTF-16")):  # all but one of the bytes of a character are zero
        if len(head) >= width and sum(not any(head[k::width]) for k in range(width)) == width - 1:
            raise TableError(_ENCODED.format(path, encoding))
    if b"\0" in head:
        raise TableError(_BINARY.format(path, "binary data"))


def _rows(file: io.TextIOBase, separator: str, *, strict: bool = False) -> Any:
    csv.field_size_limit(_LONGEST_FIELD)
    return csv.reader(file, delimiter=separator, strict=strict)


def _first_rows(path: Path, delimiter: str | None) -> tuple[str, list[str], int, list[str]]:
    """The separator, the names, the number of lines they take, and columns with fractions in the first rows."""
    with open_text(path) as file:
        line = next((line for line in file if line.strip()), "")
        separator = delimiter or next((mark for mark in ",;\t" if mark in line), ",")
        file.seek(0)
        reader = _rows(file, separator)
        names = [name.strip() for name in next(row for row in reader if row)]
        n_lines = reader.line_num
        fractions: set[int] = set()
        with suppress(csv.Error):  # which the whole file will show
            for row in islice(filter(None, reader), _SAMPLED_ROWS):
                cells = {j: cell for j, cell in enumerate(row[: len(names)]) if "." in cell and j not in fractions}
                fractions |= {j for j, cell in cells.items() if _FRACTION.fullmatch(cell)}
    return separator, names, n_lines, [str(j) for j in sorted(fractions)]


def _problem(path: Path, separator: str = ",", n_columns: int = 0) -> str:
    """Why a file could not be read: a byte that is not UTF-8, or its first row with too few or too many cells."""
    with open_bytes(path) as binary:  # decoders read ahead, and do not know the line
        for number, line in enumerate(binary, start=1):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError as error:
                byte = line[error.start]
                return f"{path} is not UTF-8 text: byte 0x{byte:02x} in line {number}. Save it as UTF-8."
    number = -1
    try:
        with open_text(path) as file:
            for number, row in enumerate(filter(None, _rows(file, separator, strict=True))):
                if len(row) != n_columns:
                    reason = "The file may be cut off, or a cell holds a separator without quotation marks."
                    if number == n_columns == 1:
                        reason = "The first line may be a title or a comment: remove what is above the names."
                    found = f"{counted(len(row), 'cell')}, but the header has {counted(n_columns, 'name')}"
                    return f"{path}: row {number} below the header has {found}. {reason}"
    except csv.Error as error:
        what = "has a quotation mark that is never closed" if _UNCLOSED in str(error) else f"cannot be read ({error})"
        where = "its first line" if number < 0 else f"row {number + 1} below the header"
        return f"{path}: {where} {what}. Check its quotation marks."
    if number == 0:
        return f"{path} has no rows below its header. Give a file with samples."
    return f"{path} cannot be read as text with cells separated by {separator!r}. Check quotation marks and the format."
