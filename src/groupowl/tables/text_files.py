"""Text files, compressed or not: rows of cells below a header with names, and ARFF files, which declare columns.

pyarrow reads cells between separators. Columns of fractions are recognized in the first rows and read as such, which
halves the time of a wide file; where that turns out wrong, the types of all columns are found again from all rows.
"""

from __future__ import annotations

import bz2
import codecs
import csv
import gzip
import io
import re
from array import array
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import scipy.sparse as sp

from .._text import counted
from .sheet import Sheet, is_number
from .table import TableError, own_names

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
    is_packed = path.suffix.lower() in COMPRESSIONS
    block = _BLOCK_BYTES if is_packed else min(path.stat().st_size + 1, _BLOCK_BYTES)
    read = ReadOptions(column_names=numbered, skip_rows=n_lines, block_size=block)
    parse = ParseOptions(delimiter=separator, newlines_in_values=True)
    convert = ConvertOptions(null_values=EMPTY_CELLS, strings_can_be_null=True, quoted_strings_can_be_null=False)
    table = None
    for types in (dict.fromkeys(fractions, pa.float64()) | texts, texts):
        convert.column_types = types
        with suppress(pa.ArrowInvalid), open_bytes(path) as file:  # Arrow itself refuses padding after packed data
            table = read_csv(file if is_packed else str(path), read, parse, convert)
            break  # else a column of fractions has text further down, or the file is broken
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


# ARFF files ---------------------------------------------------------------------------------------------
# Numeric attributes and nominal ones whose values are numbers are numbers; other nominal attributes are stored by the
# position of the value in the declaration, strings and dates by the order of their appearance. The reader is our own:
# SciPy's has neither sparse rows nor strings, and names no line.

_ARE_NUMBERS = {"numeric": True, "real": True, "integer": True, "string": False, "date": False}
_MARKS = ("'", '"')
_QUOTED = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\""
_NAME = re.compile(rf"@attribute\s+({_QUOTED}|[^\s{{]+)\s*(.*)", re.IGNORECASE)
# A cell of a sparse row begins with the number of its column.
_WORD = re.compile(rf"\s*((?:\d+\s+)?(?:{_QUOTED})|[^,]*?)\s*,")


@dataclass(eq=False)
class Attribute:
    """A declared column; ``codes`` are numbers of the values of a nominal one, or of those of a text seen so far."""

    name: str
    line: int
    declaration: str
    is_nominal: bool
    holds_numbers: bool
    codes: dict[str, float] = field(default_factory=dict)

    def encode(self, word: str) -> float:
        """A cell as a number: its value, or its code; NaN for a bare question mark."""
        if word == "?":
            return np.nan
        try:
            return float(word) if self.holds_numbers else self.codes[word]
        except (KeyError, ValueError):  # a text that is new, or in quotation marks
            text = _unquoted(word)
        if self.holds_numbers:
            return float(text)
        if self.is_nominal and text not in self.codes:
            raise ValueError(f"{text!r} is no value of {self.name!r}: {self.declaration[:80]}")
        return self.codes.setdefault(text, float(len(self.codes)))


def read_arff(path: Path, **unused: Any) -> Sheet:
    """An ARFF file, dense or sparse."""
    import pyarrow as pa

    with open_text(path) as file:
        lines = arff_lines(file)
        attributes, n_labels = arff_header(lines)
        values, is_sparse = arff_table(lines, attributes)
    columns = {}
    for j, attribute in enumerate(attributes):
        if not attribute.holds_numbers:
            codes = pa.array(values[:, [j]].toarray()[:, 0], pa.int32(), from_pandas=True)
            columns[j] = pa.DictionaryArray.from_arrays(codes, pa.array(attribute.codes, pa.string()))
    names = own_names(attribute.name for attribute in attributes)
    positions = tuple(range(len(names)))
    targets = positions[:n_labels] if n_labels >= 0 else positions[n_labels:]
    categorical = frozenset(j for j in positions if attributes[j].is_nominal)
    X = values if is_sparse else values.toarray()
    return Sheet(str(path), names, X, columns, suggested_targets=targets, categorical=categorical)


def arff_lines(file: io.TextIOBase) -> Iterator[tuple[int, str]]:
    """Numbered lines without comments and empty ones."""
    for number, line in enumerate(file, start=1):
        text = line.strip()
        if text and not text.startswith("%"):
            yield number, text


def arff_header(lines: Iterator[tuple[int, str]]) -> tuple[list[Attribute], int]:
    """Attributes, up to the line ``@data``, which is consumed, and how many of them are labels.

    MEKA notes their number in the name of the relation: so many first, or last if negative.
    """
    attributes: list[Attribute] = []
    n_labels = 0
    for number, text in lines:
        keyword = text.split(maxsplit=1)[0].lower()
        if keyword == "@data":
            return attributes, n_labels
        if keyword == "@relation" and (note := re.search(r"-C\s+(-?\d+)", text)):
            n_labels = int(note.group(1))
        elif keyword == "@attribute":
            match = _NAME.fullmatch(text)
            if match is None:
                raise ValueError(f"line {number} declares an attribute without a name or a kind: {text[:80]}")
            name, kind = _unquoted(match[1]), match[2]
            is_nominal = kind.startswith("{") and kind.endswith("}")
            word = kind.split(maxsplit=1)[0].lower() if kind else ""
            if not is_nominal and word not in _ARE_NUMBERS:
                raise ValueError(f"line {number} declares an attribute of an unknown kind: {text[:80]}")
            values = dict.fromkeys(map(_unquoted, _words(kind[1:-1]))) if is_nominal else {}
            codes = {value: float(k) for k, value in enumerate(values)}
            holds_numbers = all(map(is_number, values)) if is_nominal else _ARE_NUMBERS[word]
            attributes.append(Attribute(name, number, text, is_nominal, holds_numbers, codes))
    raise ValueError("there is no line @data in it.")


def arff_table(lines: Iterable[tuple[int, str]], attributes: list[Attribute]) -> tuple[Any, bool]:
    """The rows below the header as a csr_array, and whether they were sparse in the file."""
    data, indices, indptr = array("d"), array("q"), array("q", [0])
    is_sparse = False
    for number, text in lines:
        try:
            if text.startswith("{") and not is_sparse:
                is_sparse = True
                for attribute in attributes:  # what is left out is 0, or the first nominal value
                    if attribute.holds_numbers and any(map(float, list(attribute.codes)[:1])):
                        raise ValueError("a sparse row, but what it leaves out is not 0: a nominal value is before it.")
                    if not attribute.is_nominal and not attribute.holds_numbers:
                        raise ValueError(f"a sparse row, but {attribute.name!r} is text, which cannot be left out.")
            for place, word in _row(text, len(attributes)):
                data.append(attributes[place].encode(word))
                indices.append(place)
        except ValueError as error:
            raise ValueError(f"line {number}: {error}") from None
        indptr.append(len(data))
    pieces = np.array(data), np.array(indices, dtype=np.int32), np.array(indptr, dtype=np.int32)
    table = sp.csr_array(pieces, shape=(len(indptr) - 1, len(attributes)))
    table.sum_duplicates()
    table.eliminate_zeros()
    return table, is_sparse


def _row(text: str, n_attributes: int) -> Iterable[tuple[int, str]]:
    """Places and cells of ``1,2.5`` or ``{3 1, 7 2.5}``."""
    if not text.startswith("{"):
        words = _words(text)
        if len(words) != n_attributes:
            raise ValueError(f"{len(words)} values for {n_attributes} attributes.")
        return enumerate(words)
    if not text.endswith("}"):
        raise ValueError("the row is cut off.")
    pairs = [word.split(maxsplit=1) for word in _words(text[1:-1]) if word]
    row = [(int(pair[0]), pair[1]) for pair in pairs if len(pair) == 2 and pair[0].isdecimal()]
    if len(row) < len(pairs) or any(place >= n_attributes for place, _ in row):
        raise ValueError(f"not pairs of a value and the place of one of {n_attributes} attributes.")
    return row


def _words(text: str) -> list[str]:
    """What stands between commas that are not in quotation marks."""
    if "'" not in text and '"' not in text:
        return [word.strip() for word in text.split(",")]
    return _WORD.findall(text + ",")


def _unquoted(word: str) -> str:
    is_quoted = len(word) > 1 and word[0] in _MARKS and word[-1] == word[0]
    return re.sub(r"\\(.)", r"\1", word[1:-1]) if is_quoted else word
