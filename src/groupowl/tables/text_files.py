"""Text files, compressed or not: rows of cells below a header with names, and ARFF files, which declare columns.

pyarrow reads cells between separators. Columns of fractions are recognized in the first row and read as such, which
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
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import scipy.sparse as sp

from .._text import counted, listed
from .sheet import Sheet, is_number
from .table import NumberedNames, TableError

#: Suffixes of compressed files, and what opens them.
COMPRESSIONS: dict[str, Callable[[Path], Any]] = {".gz": gzip.open, ".bz2": bz2.open}
#: Cells that count as empty; in quotes they are text.
EMPTY_CELLS = ("", "?", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "-nan", "null", "NULL", "None")

_FIRST_BYTES = 1 << 16
_BLOCK_BYTES = 1 << 28  # blocks of a few rows cost more than their cells
_LONGEST_FIELD = 1 << 27
_FRACTION = re.compile(r"\s*[+-]?\d*\.\d+(?:[eE][+-]?\d+)?\s*")

_UNEVEN = "A title may be above the names, the file be cut off, or quotation marks be missing or not closed."
# What files that are no tables of text begin with.
_BEGINNINGS = {
    "UTF-16 or UTF-32 text": (b"\xff\xfe", b"\xfe\xff", b"\0\0\xfe\xff"),
    "compressed data (name it .gz)": (b"\x1f\x8b",),
    "compressed data (name it .bz2)": (b"BZh",),
    "compressed data (unpack it first)": (b"\xfd7zXZ", b"\x28\xb5\x2f\xfd", b"7z\xbc\xaf", b"Rar!"),
    "a ZIP archive or a spreadsheet": (b"PK\x03\x04", b"\xd0\xcf\x11\xe0"),
    "binary data": (b"PAR1", b"%PDF"),
    "a web page, XML or JSON": (b"<!doctype html", b"<html", b"<?xml", b'{"', b"[{"),
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
    numbered = {str(j + 1): name for j, name in enumerate(names)}
    positions = set(text_columns) - set(names)  # a name is a name, even of digits
    are_text = [number for number, name in numbered.items() if name in text_columns or number in positions]
    texts = dict.fromkeys([*are_text, "1"] if first else are_text, pa.string())
    read = ReadOptions(column_names=list(numbered), skip_rows=n_lines, block_size=_BLOCK_BYTES)
    parse = ParseOptions(delimiter=separator, newlines_in_values=True)
    convert = ConvertOptions(null_values=EMPTY_CELLS, strings_can_be_null=True, quoted_strings_can_be_null=False)
    table = None
    for types in (dict.fromkeys(fractions, pa.float64()) | texts, texts):
        convert.column_types = types
        with suppress(pa.ArrowInvalid), open_bytes(path) as file:  # Arrow itself refuses padding after packed data
            is_packed = path.suffix.lower() in COMPRESSIONS
            table = read_csv(file if is_packed else str(path), read, parse, convert)
            break  # else a column of fractions has text further down, or the file is broken
    if table is None or table.num_rows == 0 or any(map(pa.types.is_binary, set(table.schema.types))):
        raise TableError(_problem(path, separator, len(names)))
    index = tuple(cell or "" for cell in table.column(0).to_pylist()) if first else None
    columns = dict(enumerate(table.columns[first:]))
    own = NumberedNames(others=tuple(names[first:]))
    return Sheet(str(path), own, columns=columns, index=index, separator=separator)


def _check_beginning(path: Path) -> None:
    """Refuse files that are no text, by their first bytes."""
    with open_bytes(path) as file:
        head = file.read(_FIRST_BYTES)
    if not head.removeprefix(codecs.BOM_UTF8).strip():
        raise TableError(f"{path} is empty. Give a file with column names in its first line and samples below.")
    starts = head, head.lstrip().lower()
    kinds = [kind for kind, marks in _BEGINNINGS.items() if any(start.startswith(marks) for start in starts)]
    if b"\0" in head:
        kinds.append("binary data, or text in UTF-16 or UTF-32")
    if kinds:
        remedy = "Save it as CSV in UTF-8, or give its format with --format."
        raise TableError(f"{path} is {kinds[0]}, not UTF-8 text with cells between separators. {remedy}")


def _first_rows(path: Path, delimiter: str | None) -> tuple[str, list[str], int, list[str]]:
    """The separator, the names, the number of lines they take, and columns with fractions in the first row."""
    csv.field_size_limit(_LONGEST_FIELD)
    with open_text(path) as file:
        line = next((line for line in file if line.strip()), "")
        separator = delimiter or next((mark for mark in ",;\t" if mark in line), ",")
        file.seek(0)
        reader = csv.reader(file, delimiter=separator)
        names = [name.strip() for name in next(filter(None, reader))]
        n_lines = reader.line_num
        row = next(filter(None, reader), [])[: len(names)]
    return separator, names, n_lines, [str(j) for j, cell in enumerate(row, start=1) if _FRACTION.fullmatch(cell)]


def _problem(path: Path, separator: str = ",", n_columns: int = 0) -> str:
    """Why a file could not be read: a byte that is not UTF-8, or its first row with too few or too many cells."""
    with open_bytes(path) as binary:  # decoders read ahead, and do not know the line
        for number, line in enumerate(binary, start=1):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError as error:
                byte = line[error.start]
                return f"{path} is not UTF-8 text: byte 0x{byte:02x} in line {number}. Save it as UTF-8."
    with open_text(path) as file:
        for number, row in enumerate(filter(None, csv.reader(file, delimiter=separator))):
            if len(row) != n_columns:
                found = f"{counted(len(row), 'cell')}, but the header has {counted(n_columns, 'name')}"
                return f"{path}: row {number} below the header has {found}. {_UNEVEN}"
    if number == 0:
        return f"{path} has no rows below its header, or a quotation mark that is never closed. Give it samples."
    return f"{path} cannot be read as text with cells separated by {separator!r}. Check quotation marks and the format."


# ARFF files ---------------------------------------------------------------------------------------------
# Numeric attributes and nominal ones whose values are numbers are numbers; other nominal attributes are stored by the
# position of the value in the declaration, strings and dates by the order of their appearance. The reader is our own:
# SciPy's has neither sparse rows nor strings, and names no line.

_MARKS = ("'", '"')
_QUOTED = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\""
_KINDS = r"(numeric|real|integer)\b.*|(?:string|date)\b.*"
_ATTRIBUTE = re.compile(rf"@attribute\s+({_QUOTED}|[^\s{{]+)(?:\s*{{(.*)}}|\s+(?:{_KINDS}))", re.IGNORECASE)
# A cell of a sparse row begins with the number of its column.
_WORD = re.compile(rf"\s*((?:\d+\s+)?(?:{_QUOTED})|[^,]*?)\s*,")


@dataclass(eq=False)
class Attribute:
    """A declared column; ``codes`` are numbers of the values of a nominal one, or of those of a text seen so far."""

    name: str
    is_nominal: bool
    holds_numbers: bool
    codes: dict[str, float] = field(default_factory=dict)

    def encode(self, word: str) -> float:
        """A cell as a number: its value, or its code; NaN for a bare question mark."""
        if word == "?":
            return np.nan
        text = _unquoted(word) if word.startswith(_MARKS) else word
        if self.holds_numbers:
            return float(text)
        if self.is_nominal and text not in self.codes:
            raise ValueError(f"{text!r} is no value of {self.name!r}, which has {listed(list(self.codes))}.")
        return self.codes.setdefault(text, float(len(self.codes)))


def read_arff(path: Path, **unused: Any) -> Sheet:
    """An ARFF file, dense or sparse."""
    import pyarrow as pa

    attributes, n_labels, values, is_sparse = parse_arff(path)
    columns = {}
    for j, attribute in enumerate(attributes):
        if not attribute.holds_numbers:
            codes = pa.array(values[:, [j]].toarray()[:, 0], pa.int32(), from_pandas=True)
            columns[j] = pa.DictionaryArray.from_arrays(codes, pa.array(attribute.codes, pa.string()))
    names = NumberedNames(others=tuple(attribute.name for attribute in attributes))
    positions = tuple(range(len(names)))
    targets = positions[:n_labels] if n_labels >= 0 else positions[n_labels:]
    categorical = frozenset(j for j in positions if attributes[j].is_nominal)
    X = values if is_sparse else values.toarray()
    return Sheet(str(path), names, X, columns, suggested_targets=targets, categorical=categorical)


def parse_arff(path: Path, *, errors: str = "strict") -> tuple[list[Attribute], int, Any, bool]:
    """Attributes, how many of them are labels, the rows as a csr_array, and whether they are sparse in the file.

    MEKA notes the number of labels in the name of the relation: so many first, or last if negative.
    """
    attributes: list[Attribute] = []
    n_labels = 0
    with open_text(path, errors=errors) as file:
        stripped = ((number, line.strip()) for number, line in enumerate(file, start=1))
        lines = ((number, text) for number, text in stripped if text and not text.startswith("%"))
        for number, text in lines:
            keyword = text.split(maxsplit=1)[0].lower()
            if keyword == "@data":
                return attributes, n_labels, *_parse_rows(lines, attributes)
            if keyword == "@relation" and (note := re.search(r"-C\s+(-?\d+)", text)):
                n_labels = int(note[1])
            if keyword == "@attribute":
                found = _ATTRIBUTE.fullmatch(text)
                if found is None:
                    raise ValueError(f"line {number} declares no attribute with a name and a known kind: {text[:80]}")
                name, nominal, numeric = found.groups()
                values = [] if nominal is None else dict.fromkeys(map(_unquoted, _words(nominal)))
                are_numbers = bool(numeric) if nominal is None else all(map(is_number, values))
                codes = {value: float(k) for k, value in enumerate(values)}
                attributes.append(Attribute(_unquoted(name), nominal is not None, are_numbers, codes))
    raise ValueError("there is no line @data in it.")


def _parse_rows(lines: Iterator[tuple[int, str]], attributes: list[Attribute]) -> tuple[Any, bool]:
    """The rows below the header, and whether they are sparse: what they leave out is 0, or the first nominal value."""
    data, indices, indptr = array("d"), array("q"), array("q", [0])
    is_sparse = False
    for number, text in lines:
        try:
            if text.startswith("{") and not is_sparse:
                is_sparse = True
                for item in attributes:
                    first = next(iter(item.codes), "0")
                    is_zero = float(first) == 0.0 if item.holds_numbers else item.is_nominal
                    if not is_zero:
                        raise ValueError(f"a sparse row, but what it leaves out is not 0 for {item.name!r}.")
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
    pairs = [word.split(maxsplit=1) for word in _words(text[1:-1]) if word]
    row = [(int(pair[0]), pair[1]) for pair in pairs if len(pair) == 2 and pair[0].isdecimal()]
    if not text.endswith("}") or len(row) < len(pairs) or any(place >= n_attributes for place, _ in row):
        raise ValueError(f"not pairs of a value and the place of one of {n_attributes} attributes.")
    return row


def _words(text: str) -> list[str]:
    """What stands between commas that are not in quotation marks."""
    if "'" not in text and '"' not in text:
        return [word.strip() for word in text.split(",")]
    return _WORD.findall(text + ",")


def _unquoted(word: str) -> str:
    is_quoted = len(word) > 1 and word.startswith(_MARKS) and word[-1] == word[0]
    return re.sub(r"\\(.)", r"\1", word[1:-1]) if is_quoted else word
