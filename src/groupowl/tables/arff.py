"""ARFF files: declared attributes, then dense or sparse rows.

Numeric attributes and nominal ones whose values are numbers are numbers; other nominal attributes are stored by the
position of the value in the declaration, strings and dates by the order of their appearance.
"""

from __future__ import annotations

import io
import re
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

NUMERIC_KINDS = {"numeric", "real", "integer"}
_TEXT_KINDS = {"string", "date"}

Lines = Iterator[tuple[int, str]]

_NAME = re.compile(r"@attribute\s+(?:'((?:[^'\\]|\\.)*)'|\"((?:[^\"\\]|\\.)*)\"|([^\s{]+))\s*(.*)", re.IGNORECASE)
_CELL = re.compile(r"\s*(?:'((?:[^'\\]|\\.)*)'|\"((?:[^\"\\]|\\.)*)\"|([^,]*?))\s*(,|$)")
_PAIR = re.compile(r"\s*(\d+)\s+(?:'((?:[^'\\]|\\.)*)'|\"((?:[^\"\\]|\\.)*)\"|([^,]*?))\s*(,|$)")


@dataclass(eq=False)
class Attribute:
    """A declared column; ``values`` are those of a nominal one, or those of a text that were seen so far."""

    name: str
    line: int
    declaration: str
    is_nominal: bool = False
    is_text: bool = False
    values: list[str] = field(default_factory=list)
    numbers: list[float] | None = None  # the values of a nominal attribute, where all of them are numbers

    def __post_init__(self) -> None:
        self._codes = {value: code for code, value in enumerate(self.values)}

    @property
    def holds_numbers(self) -> bool:
        """Whether cells are numbers, and not codes."""
        return not self.is_text and (not self.is_nominal or self.numbers is not None)

    def encode(self, text: str, was_quoted: bool) -> float:
        """A cell as a number: its value, or its code; NaN for ``?``."""
        if text == "?" and not was_quoted:
            return np.nan
        if self.holds_numbers:
            return float(text)
        if text not in self._codes:
            if self.is_nominal:
                raise ValueError(f"{text!r} is no value of {self.name!r}: {self.declaration[:80]}")
            self._codes[text] = len(self.values)
            self.values.append(text)
        return float(self._codes[text])


@dataclass(eq=False)
class ArffHeader:
    """What comes before the line ``@data``."""

    attributes: list[Attribute] = field(default_factory=list)
    labels: int | None = None  # MEKA's note in the name of the relation: so many first, or last if negative

    @property
    def n_attributes(self) -> int:
        """Number of columns."""
        return len(self.attributes)

    @cached_property
    def has_numbers_only(self) -> bool:
        """Whether no cell is a code."""
        return all(attribute.holds_numbers for attribute in self.attributes)


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
    name = _unescaped(match[1] or match[2]) if match[3] is None else match[3]
    kind = match[4].strip()
    if kind.startswith("{") and kind.endswith("}"):
        values = [value for value, _ in _cells(kind[1:-1])]
        return Attribute(name, number, text, is_nominal=True, values=values, numbers=_numbers(values))
    word = kind.split(maxsplit=1)[0].lower() if kind else ""
    if word not in NUMERIC_KINDS | _TEXT_KINDS:
        raise ValueError(f"line {number} declares an attribute of an unknown kind: {text[:80]}")
    return Attribute(name, number, text, is_text=word in _TEXT_KINDS)


def _numbers(values: list[str]) -> list[float] | None:
    try:
        return [float(value) for value in values]
    except ValueError:
        return None


def _cells(text: str) -> list[tuple[str, bool]]:
    """Cells between commas, and whether each was quoted."""
    if "'" not in text and '"' not in text:
        return [(cell.strip(), False) for cell in text.split(",")]
    found, end = [], 0
    while (match := _CELL.match(text, end)) is not None:
        plain = match[3]
        found.append((_unescaped(match[1] or match[2]) if plain is None else plain, plain is None))
        end = match.end()
        if match[4] != ",":
            return found
    raise ValueError("a quotation mark is not closed.")


def _unescaped(text: str | None) -> str:
    return re.sub(r"\\(.)", r"\1", text or "")


@dataclass(frozen=True, eq=False)
class ArffTable:
    """All attributes as a csr_array, and whether rows were sparse in the file."""

    values: Any
    is_sparse: bool


def arff_table(lines: Lines, header: ArffHeader) -> ArffTable:
    """The rows below the header."""
    data, indices, indptr = array("d"), array("q"), array("q", [0])
    all_places, is_sparse = list(range(header.n_attributes)), False
    for number, text in lines:
        try:
            if text.startswith("{"):
                if not is_sparse:
                    _check_defaults(header)
                is_sparse = True
                places, values = _sparse_row(text, header)
            else:
                places, values = all_places, _dense_row(text, header)
        except ValueError as error:
            raise ValueError(f"line {number}: {error}") from None
        indices.extend(places)
        data.extend(values)
        indptr.append(len(data))
    pieces = np.array(data), np.array(indices, dtype=np.int32), np.array(indptr, dtype=np.int32)
    table = sp.csr_array(pieces, shape=(len(indptr) - 1, header.n_attributes))
    table.sum_duplicates()
    table.eliminate_zeros()
    return ArffTable(table, is_sparse)


def _check_defaults(header: ArffHeader) -> None:
    """Refuse sparse rows where what they leave out is anything but 0 or the first nominal value."""
    if any(attribute.numbers and attribute.numbers[0] != 0.0 for attribute in header.attributes):
        raise ValueError("a sparse row, but what it leaves out is not 0: a nominal attribute lists 0 later.")
    texts = [attribute.name for attribute in header.attributes if attribute.is_text]
    if texts:
        raise ValueError(f"a sparse row, but attribute {texts[0]!r} is text, of which nothing can be left out.")


def _dense_row(text: str, header: ArffHeader) -> list[float]:
    cells = _cells(text)
    if len(cells) != header.n_attributes:
        raise ValueError(f"{len(cells)} values for {header.n_attributes} attributes.")
    if header.has_numbers_only:
        try:
            return [float(cell) for cell, _ in cells]
        except ValueError:  # something is missing, or wrong: see below
            pass
    return [attribute.encode(*cell) for attribute, cell in zip(header.attributes, cells, strict=True)]


def _sparse_row(text: str, header: ArffHeader) -> tuple[list[int], list[float]]:
    """Places and values of ``{3 1, 7 2.5}``."""
    if not text.endswith("}"):
        raise ValueError("the row is cut off.")
    pairs = _pairs(text[1:-1])
    if pairs is None or not all(0 <= place < header.n_attributes for place, _, _ in pairs):
        raise ValueError(f"not pairs of a value and the place of one of {header.n_attributes} attributes.")
    places = [place for place, _, _ in pairs]
    return places, [header.attributes[place].encode(value, was_quoted) for place, value, was_quoted in pairs]


def _pairs(text: str) -> list[tuple[int, str, bool]] | None:
    """Place, value and whether it was quoted; None where the text is something else."""
    if "'" not in text and '"' not in text:
        tokens = text.replace(",", " ").split()
        if len(tokens) % 2 or not all(token.isdigit() for token in tokens[::2]):
            return None
        return [(int(place), value, False) for place, value in zip(tokens[::2], tokens[1::2], strict=True)]
    found, end = [], 0
    while (match := _PAIR.match(text, end)) is not None:
        plain = match[4]
        found.append((int(match[1]), _unescaped(match[2] or match[3]) if plain is None else plain, plain is None))
        end = match.end()
        if match[5] != ",":
            return found
    return None
