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
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import scipy.sparse as sp

from .._text import counted, listed
from .sheet import Sheet, is_number
from .table import Dialect, NumberedNames, TableError

#: Suffixes of compressed files, and what opens them.
COMPRESSIONS: dict[str, Callable[[Path], Any]] = {".gz": gzip.open, ".bz2": bz2.open}
#: Cells that count as empty. In quotes all of them but "" are text, where a column is text.
EMPTY_CELLS = ("", "?", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "-nan", "null", "NULL", "None")

_FIRST_BYTES = 1 << 16
_BLOCK_BYTES = 1 << 28  # blocks of a few rows cost more than their cells
_LONGEST_FIELD = 1 << 27
#: A separator that stands for any number of spaces and tabs.
SPACES = " "
USUAL = Dialect()
_FRACTION = re.compile(r"\s*[+-]?\d*\.\d+(?:[eE][+-]?\d+)?\s*")

_UNEVEN = "Remove a title above the names, complete a file that was cut off, and close quotation marks."
_SAVE = "Save it as CSV in UTF-8, or give its format with --format."
_WIDE = "UTF-16 or UTF-32 text"
# What files that are no tables of text begin with, and what to do about them.
_BEGINNINGS: dict[str, tuple[Any, ...]] = {
    _WIDE: ("Use --encoding utf-16, or utf-32.", b"\xff\xfe", b"\xfe\xff", b"\0\0\xfe\xff"),
    "compressed data": ("Give it a name that ends in .gz.", b"\x1f\x8b"),
    "compressed data of bzip2": ("Give it a name that ends in .bz2.", b"BZh"),
    "compressed data of another kind": ("Unpack it first.", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd", b"7z\xbc\xaf", b"Rar!"),
    "a ZIP archive or a workbook": ("Use --format excel for a workbook of Excel, or unpack it first.", b"PK\x03\x04"),
    "a workbook of an old Excel": ("Save it as .xlsx or CSV.", b"\xd0\xcf\x11\xe0"),
    "binary data": (_SAVE, b"PAR1", b"%PDF"),
    "a web page, XML or JSON": (_SAVE, b"<!doctype html", b"<html", b"<?xml", b'{"', b"[{"),
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


def open_text(path: Path, *, encoding: str = "utf-8-sig", errors: str = "strict") -> io.TextIOWrapper:
    """The text of a file, unpacked; UTF-8, with or without a byte order mark, where nothing else is said."""
    return io.TextIOWrapper(open_bytes(path), encoding=encoding, errors=errors, newline="")


@dataclass(frozen=True)
class Head:
    """What the first lines of a file of cells say.

    Attributes
    ----------
    separator : str
    names : sequence of str
        Of the columns: those of the first line, or numbers.
    n_lines : int
        Lines that the names take.
    fractions : list of int
        Columns with fractions in the first row of cells.
    row_bytes : int
        Length of the first row of cells.
    lacks_first_name : bool
        Whether the rows have a cell more than the header, which is their name, as R writes files.
    """

    separator: str
    names: Sequence[str]
    n_lines: int
    fractions: list[int]
    row_bytes: int
    lacks_first_name: bool = False

    @property
    def own_names(self) -> NumberedNames:
        """Names of the columns, without a nameless first one, which names the rows."""
        if isinstance(self.names, NumberedNames):
            return self.names
        return NumberedNames(others=tuple(self.names[1:] if self.names_rows else self.names))

    @property
    def names_rows(self) -> bool:
        """Whether the first column has no name, and so those of the rows."""
        return self.names[0] == ""

    def texts(self, given: Collection[str | None]) -> list[int]:
        """Columns to be read as text in any case: those given, by name or position, and the names of rows."""
        positions = set(given) - set(self.names)  # a name is a name, even of digits
        found = [j for j, name in enumerate(self.names) if name in given or str(j + 1) in positions]
        return [*found, 0] if self.names_rows else found


def read_delimited(
    path: Path,
    delimiter: str | None = None,
    *,
    text_columns: Collection[str | None] = (),
    dialect: Dialect = USUAL,
    **unused: Any,
) -> Sheet:
    """A sheet from a file of cells.

    Parameters
    ----------
    path : Path
    delimiter : str or None
        What separates cells where the dialect does not say it; None is a comma, or a semicolon or tab where the first
        line has no comma.
    text_columns : collection of str
        Columns that are text whatever they look like: ids such as 007.
    dialect : Dialect
        How cells are written.
    """
    import pyarrow as pa

    head = read_head(path, delimiter, dialect)
    if head.separator == SPACES:
        return _read_aligned(path, head, head.texts(text_columns), dialect)
    texts = dict.fromkeys(head.texts(text_columns), pa.string())
    table = None
    for types in (dict.fromkeys(head.fractions, pa.float64()) | texts, texts):
        with suppress(pa.ArrowInvalid):
            table = _read_cells(path, head, dialect, types)
            break  # else a column of fractions has text further down, or the file is broken
    if table is None or table.num_rows == 0 or any(map(pa.types.is_binary, set(table.schema.types))):
        raise TableError(broken_text(path, head, dialect))
    columns = [column if j in texts else parsed_numbers(column, dialect) for j, column in enumerate(table.columns)]
    with_gaps = [j for j, column in enumerate(columns) if pa.types.is_string(column.type) and column.null_count]
    if with_gaps:  # some may be quoted words such as "NA"
        types = dict.fromkeys(with_gaps, pa.string())
        for j, column in zip(with_gaps, _read_cells(path, head, dialect, types, only_texts=True).columns, strict=True):
            columns[j] = without_gaps(column, dialect)
    return _delimited_sheet(path, head, columns, dialect)


def _read_cells(path: Path, head: Head, dialect: Dialect, types: Mapping[int, Any], *, only_texts: bool = False) -> Any:
    """The columns of a file as a table of Arrow."""
    with open_bytes(path) as file:  # Arrow itself refuses padding after packed data
        is_packed = path.suffix.lower() in COMPRESSIONS
        source = file if is_packed else str(path)
        return arrow_reader("read_csv", source, head, dialect, types, _BLOCK_BYTES, only_texts=only_texts)


def _delimited_sheet(path: Path, head: Head, columns: Sequence[Any], dialect: Dialect) -> Sheet:
    first, own = int(head.names_rows), head.own_names
    index = tuple(cell or "" for cell in columns[0].to_pylist()) if first else None
    if head.lacks_first_name and len(set(index or ())) < len(index or ()):
        what = f"{path}: rows have a cell more than the header, the first of which is no name of its row: it repeats"
        raise TableError(f"{what}. Give every column a name in the header.")
    # a separator at the end of each line makes a column without a name and without a cell
    kept = [j for j, name in enumerate(own) if name or columns[first + j].null_count < len(columns[first + j])]
    if len(kept) < len(own):
        own = NumberedNames(others=tuple(own[j] for j in kept))
    cells = {k: columns[first + j] for k, j in enumerate(kept)}
    notes = (f"The first line of {path} is taken for names; use --no-header if it is a sample.",)
    return Sheet(
        str(path),
        own,
        columns=cells,
        index=index,
        separator=head.separator,
        dialect=dialect,
        notes=notes if _may_be_sample(own) else (),
    )


def _may_be_sample(names: NumberedNames) -> bool:
    """Whether names are numbers that do not count columns."""
    given = names.others
    if len(given) < 2 or not all(name.isdecimal() for name in given):
        return False
    return given not in [tuple(str(start + j) for j in range(len(given))) for start in (0, 1)]


def arrow_reader(
    function: str,
    file: Any,
    head: Head,
    dialect: Dialect,
    types: Mapping[int, Any],
    block_bytes: int,
    *,
    only_texts: bool = False,
) -> Any:
    """What a function of ``pyarrow.csv``, ``read_csv`` or ``open_csv``, makes of a file; types by column.

    Cells that count as empty are gaps in quotes too, as numbers need it. With ``only_texts``, columns that have a type
    are all that is read, and what is in quotes is text.
    """
    from pyarrow import csv as arrow_csv

    read = arrow_csv.ReadOptions(
        column_names=[str(j) for j in range(len(head.names))],
        skip_rows=head.n_lines,
        block_size=block_bytes,
        encoding=dialect.encoding or "utf8",
    )
    parse = arrow_csv.ParseOptions(delimiter=head.separator, newlines_in_values=True)
    convert = arrow_csv.ConvertOptions(
        null_values=[*EMPTY_CELLS, *dialect.na],
        strings_can_be_null=True,
        quoted_strings_can_be_null=not only_texts,
        decimal_point=dialect.decimal,
        column_types={str(j): kind for j, kind in types.items()},
        include_columns=[str(j) for j in types] if only_texts else None,
    )
    return getattr(arrow_csv, function)(file, read, parse, convert)


def without_gaps(column: Any, dialect: Dialect) -> Any:
    """A column of text in which quoted cells are no gaps yet: empty ones are, and what the user calls missing."""
    import pyarrow as pa
    from pyarrow import compute

    is_gap = compute.is_in(column, pa.array(["", *dialect.na]))
    return compute.if_else(is_gap, None, column)


def parsed_numbers(column: Any, dialect: Dialect) -> Any:
    """Convert a column of text to numbers if all cells are numbers in the dialect; otherwise leave it."""
    import pyarrow as pa
    from pyarrow import compute

    if dialect.is_usual or not pa.types.is_string(column.type):
        return column
    are_numbers = compute.match_substring_regex(column, f"^(?:{dialect.number})$")
    if not compute.all(are_numbers, min_count=0).as_py():
        return column
    if dialect.thousands is not None:
        column = compute.replace_substring_regex(column, dialect.gap, "")
    pointed = compute.replace_substring(compute.utf8_trim_whitespace(column), dialect.decimal, ".")
    return pointed.cast("float64")


def _read_aligned(path: Path, head: Head, texts: list[int], dialect: Dialect) -> Sheet:
    """A file whose cells have any number of spaces between them; pandas knows such files, pyarrow does not."""
    import pandas
    import pyarrow as pa

    with open_bytes(path) as file:
        frame = pandas.read_csv(
            file,
            sep=r"\s+",
            header=None,
            skiprows=head.n_lines,
            na_values=[*EMPTY_CELLS, *dialect.na],
            keep_default_na=False,
            dtype=dict.fromkeys(texts, str),
            decimal=dialect.decimal,
            thousands=dialect.thousands,
            encoding=dialect.encoding or "utf-8-sig",
            low_memory=False,
        )
    if isinstance(head.names, NumberedNames):
        head = replace(head, names=NumberedNames(head.names.stem, 1, frame.shape[1]))
    if frame.shape[1] != len(head.names):
        found = f"{counted(frame.shape[1], 'cell')}, but the header has {counted(len(head.names), 'name')}"
        raise TableError(f"{path}: row 1 below the header has {found}. {_UNEVEN}")
    table = pa.Table.from_pandas(frame, preserve_index=False)
    return _delimited_sheet(path, head, table.columns, dialect)


def read_head(path: Path, delimiter: str | None, dialect: Dialect) -> Head:
    """The separator of a file, and its names; refuses files that are no text, by their first bytes."""
    _check_beginning(path, dialect)
    try:
        head = _first_rows(path, delimiter, dialect)
    except UnicodeError as error:
        raise TableError(broken_text(path, None, dialect)) from error
    if dialect.header and (numbers := [name for name in head.names if _FRACTION.fullmatch(name)]):
        # whole ones are names of nameless frames
        what = f"the first line should hold column names, but {numbers[0]!r} is a number"
        raise TableError(f"{path}: {what}. Use --no-header if it has none, or put a line with names above the data.")
    return head


def _check_beginning(path: Path, dialect: Dialect) -> None:
    """Refuse files that are no text, by their first bytes."""
    with open_bytes(path) as file:
        beginning = file.read(_FIRST_BYTES)
    if not beginning.removeprefix(codecs.BOM_UTF8).strip():
        raise TableError(f"{path} is empty. Give a file with column names in its first line and samples below.")
    starts = beginning, beginning.lstrip().lower()
    found = [kind for kind in _BEGINNINGS if any(start.startswith(_BEGINNINGS[kind][1:]) for start in starts)]
    if b"\0" in beginning:
        found.append("binary data, or text in UTF-16 or UTF-32")
    if found and not (dialect.encoding and "UTF-16" in found[0]):
        remedy = _BEGINNINGS.get(found[0], _BEGINNINGS[_WIDE])[0]
        raise TableError(f"{path} is {found[0]}, not UTF-8 text with cells between separators. {remedy}")


def _first_rows(path: Path, delimiter: str | None, dialect: Dialect) -> Head:
    csv.field_size_limit(_LONGEST_FIELD)
    likely = ";\t," if dialect.decimal == "," else ",;\t"
    fraction = re.compile(_FRACTION.pattern.replace(r"\.", re.escape(dialect.decimal)))
    with open_text(path, encoding=dialect.encoding or "utf-8-sig") as file:
        line = next((line for line in file if line.strip()), "")
        separator = dialect.sep or delimiter or next((mark for mark in likely if mark in line), likely[0])
        file.seek(0)
        lines: Iterator[str] = (" ".join(line.split()) for line in file) if separator == SPACES else file
        reader = csv.reader(lines, delimiter=separator)
        names: Sequence[str] = [name.strip() for name in next(filter(None, reader))]
        n_lines = reader.line_num
        if not dialect.header:
            line, row, n_lines, names = "", names, 0, NumberedNames("x", 1, len(names))
        else:
            line = next((line for line in lines if line.strip("\r\n")), "")
            row = next(csv.reader(chain([line], lines), delimiter=separator), [])
        is_longer = dialect.header and len(row) == len(names) + 1
        lacks_name = is_longer and (separator == SPACES or _begins_with_name(line, row))
        if lacks_name:
            names = ["", *names]
    fractions = [j for j, cell in enumerate(row[: len(names)]) if fraction.fullmatch(cell)]
    return Head(separator, names, n_lines, fractions, sum(len(cell.encode()) + 1 for cell in row), lacks_name)


def _begins_with_name(line: str, row: Sequence[str]) -> bool:
    """Whether the first cell of a row that is longer than the header is its name, and no part of a decimal comma.

    A last cell without anything comes from a separator at the end of lines.
    """
    return row[-1] != "" and (line.startswith('"') or not is_number(row[0]))


def broken_text(path: Path, head: Head | None, dialect: Dialect) -> str:
    """Why a file could not be read: a byte that is no text, or its first row with too few or too many cells."""
    encoding = dialect.encoding or "utf-8"
    if dialect.encoding is None:
        with open_bytes(path) as binary:  # decoders read ahead, and do not know the line
            for number, line in enumerate(binary, start=1):
                try:
                    line.decode(encoding)
                except UnicodeDecodeError as error:
                    byte = line[error.start]
                    what = f"{path} is not UTF-8 text: byte 0x{byte:02x} in line {number}"
                    remedy = "Use --encoding cp1252 for a file of Windows in western Europe, or save it as UTF-8."
                    return f"{what}. {remedy}"
    if head is None:
        return f"{path} is not text in {encoding}. Give its --encoding, such as utf-8, cp1252 or utf-16."
    n_columns, number = len(head.names), 0
    has_names = dialect.header and not head.lacks_first_name
    above, below = "header" if has_names else "first row", " below the header" if dialect.header else ""
    words = counted(n_columns, "name" if has_names else "cell")
    with open_text(path, encoding=encoding, errors="replace") as file:
        for number, row in enumerate(filter(None, csv.reader(file, delimiter=head.separator)), not dialect.header):
            if number and len(row) != n_columns:  # 0 is the header
                found = f"{counted(len(row), 'cell')}, but the {above} has {words}"
                marks = f"Cells are separated by {head.separator!r}: give --sep where that is wrong."
                named = " If rows begin with their names, give those a name in the header."
                hint = named if has_names and len(row) == n_columns + 1 else ""
                return f"{path}: row {number}{below} has {found}. {_UNEVEN}{hint} {marks}"
    if number == 0:
        return f"{path} has no rows below its header, or a quotation mark that is never closed. Give it samples."
    what = f"{path} cannot be read as text with cells separated by {head.separator!r}"
    return f"{what}. Check quotation marks, and give --sep or --format where that is not what separates them."


def find_cell(path: Path, head: Head, j: int, cell: str, dialect: Dialect) -> int:
    """The first row below the names that has a cell in a column."""
    with open_text(path, encoding=dialect.encoding or "utf-8-sig", errors="replace") as file:
        rows = enumerate(filter(None, csv.reader(file, delimiter=head.separator)), int(not dialect.header))
        return next((i for i, row in rows if row[j : j + 1] == [cell]), 0)


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
