"""ARFF files: declared attributes, then dense or sparse rows.

Numeric attributes and nominal ones whose values are numbers are numbers; other nominal attributes are stored by the
position of the value in the declaration, strings and dates by the order of their appearance. The reader is our own:
SciPy's has neither sparse rows nor strings, and names no line.
"""

from __future__ import annotations

import io
import re
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from .delimited import open_text
from .names import check_names, own_names
from .sheet import Sheet

Lines = Iterator[tuple[int, str]]

_NUMERIC_KINDS = {"numeric", "real", "integer"}
_TEXT_KINDS = {"string", "date"}
_QUOTED = r"'((?:[^'\\]|\\.)*)'|\"((?:[^\"\\]|\\.)*)\""
_NAME = re.compile(rf"@attribute\s+(?:{_QUOTED}|([^\s{{]+))\s*(.*)", re.IGNORECASE)
_CELL = re.compile(rf"\s*()(?:{_QUOTED}|([^,]*?))\s*(,|$)")
_PAIR = re.compile(rf"\s*(\d+)\s+(?:{_QUOTED}|([^,]*?))\s*(,|$)")


@dataclass(eq=False)
class Attribute:
    """A declared column; ``codes`` are numbers of the values of a nominal one, or of those of a text seen so far."""

    name: str
    line: int
    declaration: str
    is_nominal: bool = False
    is_text: bool = False
    codes: dict[str, float] = field(default_factory=dict)

    @cached_property
    def holds_numbers(self) -> bool:
        """Whether cells are numbers, and not codes."""
        try:
            np.array(list(self.codes), dtype=np.float64)
        except ValueError:
            return False
        return not self.is_text

    def encode(self, text: str | None) -> float:
        """A cell as a number: its value, or its code; NaN for None."""
        if text is None:
            return np.nan
        if self.holds_numbers:
            return float(text)
        if self.is_nominal and text not in self.codes:
            raise ValueError(f"{text!r} is no value of {self.name!r}: {self.declaration[:80]}")
        return self.codes.setdefault(text, float(len(self.codes)))


@dataclass(eq=False)
class ArffHeader:
    """What comes before the line ``@data``."""

    attributes: list[Attribute] = field(default_factory=list)
    labels: int | None = None  # MEKA's note in the name of the relation: so many first, or last if negative


class ArffTable(NamedTuple):
    """All attributes as a csr_array, and whether rows were sparse in the file."""

    values: Any
    is_sparse: bool


def read_arff(path: Path, **unused: Any) -> Sheet:
    """An ARFF file, dense or sparse."""
    import pyarrow as pa

    with open_text(path) as file:
        lines = arff_lines(file)
        header = arff_header(lines)
        values, is_sparse = arff_table(lines, header)
    attributes, count = header.attributes, header.labels or 0
    names = own_names(attribute.name for attribute in attributes)
    check_names(str(path), names, "attribute")
    columns = {}
    for j, attribute in enumerate(attributes):
        if not attribute.holds_numbers:
            codes = pa.array(values[:, [j]].toarray()[:, 0], pa.int32(), from_pandas=True)
            columns[j] = pa.DictionaryArray.from_arrays(codes, pa.array(attribute.codes, pa.string()))
    positions = tuple(range(len(attributes)))
    return Sheet(
        str(path),
        names,
        values.shape[0],
        X=values if is_sparse else values.toarray(),
        columns=columns,
        suggested_targets=positions[:count] if count >= 0 else positions[count:],
        categorical=frozenset(j for j, attribute in enumerate(attributes) if attribute.is_nominal),
        names_its_columns=True,
    )


def arff_lines(file: io.TextIOBase) -> Lines:
    """Numbered lines without comments and empty ones."""
    for number, line in enumerate(file, start=1):
        text = line.strip()
        if text and not text.startswith("%"):
            yield number, text


def arff_header(lines: Lines) -> ArffHeader:
    """Everything up to the line ``@data``, which is consumed."""
    header = ArffHeader()
    for number, text in lines:
        keyword = text.split(maxsplit=1)[0].lower()
        if keyword == "@data":
            return header
        if keyword == "@relation" and (note := re.search(r"-C\s+(-?\d+)", text)):
            header.labels = int(note.group(1))
        elif keyword == "@attribute":
            header.attributes.append(_attribute(number, text))
    raise ValueError("there is no line @data in it.")


def _attribute(number: int, text: str) -> Attribute:
    match = _NAME.fullmatch(text)
    if match is None:
        raise ValueError(f"line {number} declares an attribute without a name or a kind: {text[:80]}")
    single, double, plain, kind = match.groups()
    name = _unescaped(single or double) if plain is None else plain
    if kind.startswith("{") and kind.endswith("}"):
        values = dict.fromkeys("?" if value is None else value for value in _cells(kind[1:-1]))
        return Attribute(name, number, text, is_nominal=True, codes={v: float(k) for k, v in enumerate(values)})
    word = kind.split(maxsplit=1)[0].lower() if kind else ""
    if word not in _NUMERIC_KINDS | _TEXT_KINDS:
        raise ValueError(f"line {number} declares an attribute of an unknown kind: {text[:80]}")
    return Attribute(name, number, text, is_text=word in _TEXT_KINDS)


def arff_table(lines: Lines, header: ArffHeader) -> ArffTable:
    """The rows below the header."""
    data, indices, indptr = array("d"), array("q"), array("q", [0])
    attributes = header.attributes
    is_sparse = False
    for number, text in lines:
        try:
            if text.startswith("{") and not is_sparse:
                _check_defaults(attributes)
                is_sparse = True
            for place, cell in _row(text, len(attributes)):
                data.append(attributes[place].encode(cell))
                indices.append(place)
        except ValueError as error:
            raise ValueError(f"line {number}: {error}") from None
        indptr.append(len(data))
    pieces = np.array(data), np.array(indices, dtype=np.int32), np.array(indptr, dtype=np.int32)
    table = sp.csr_array(pieces, shape=(len(indptr) - 1, len(attributes)))
    table.sum_duplicates()
    table.eliminate_zeros()
    return ArffTable(table, is_sparse)


def _check_defaults(attributes: list[Attribute]) -> None:
    """Refuse sparse rows where what they leave out is anything but 0 or the first nominal value."""
    numbers = [attribute for attribute in attributes if attribute.is_nominal and attribute.holds_numbers]
    if any(float(next(iter(attribute.codes))) for attribute in numbers):
        raise ValueError("a sparse row, but what it leaves out is not 0: a nominal attribute lists 0 later.")
    texts = [attribute.name for attribute in attributes if attribute.is_text]
    if texts:
        raise ValueError(f"a sparse row, but attribute {texts[0]!r} is text, of which nothing can be left out.")


def _row(text: str, n_attributes: int) -> Iterable[tuple[int, str | None]]:
    """Places and cells of ``1,2.5`` or ``{3 1, 7 2.5}``."""
    if not text.startswith("{"):
        cells = _cells(text)
        if len(cells) != n_attributes:
            raise ValueError(f"{len(cells)} values for {n_attributes} attributes.")
        return enumerate(cells)
    if not text.endswith("}"):
        raise ValueError("the row is cut off.")
    problem = f"not pairs of a value and the place of one of {n_attributes} attributes."
    tokens = text[1:-1].replace(",", " ").split()
    if "'" in text or '"' in text:
        pairs = _scan(_PAIR, text[1:-1], problem)
    elif len(tokens) % 2 == 0:
        pairs = [(place, _cell(value)) for place, value in zip(tokens[::2], tokens[1::2], strict=True)]
    else:
        raise ValueError(problem)
    if not all(place.isdecimal() and int(place) < n_attributes for place, _ in pairs):
        raise ValueError(problem)
    return [(int(place), cell) for place, cell in pairs]


def _cells(text: str) -> list[str | None]:
    """Cells between commas."""
    if "'" not in text and '"' not in text:
        return [_cell(word.strip()) for word in text.split(",")]
    return [cell for _, cell in _scan(_CELL, text, "a quotation mark is not closed.")]


def _scan(pattern: re.Pattern[str], text: str, problem: str) -> list[tuple[str, str | None]]:
    """Places and cells of all that stands between commas, some of it quoted."""
    found, end = [], 0
    while (match := pattern.match(text, end)) is not None:
        place, single, double, plain, comma = match.groups()
        found.append((place, _unescaped(single or double) if plain is None else _cell(plain)))
        end = match.end()
        if not comma:
            return found
    raise ValueError(problem)


def _cell(word: str) -> str | None:
    """A word without quotation marks; a question mark is a gap."""
    return None if word == "?" else word


def _unescaped(text: str | None) -> str:
    return re.sub(r"\\(.)", r"\1", text or "")
