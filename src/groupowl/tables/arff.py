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
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from .delimited import open_text
from .names import own_names
from .sheet import Sheet, is_number

Lines = Iterator[tuple[int, str]]

_NUMERIC_KINDS = {"numeric", "real", "integer"}
_TEXT_KINDS = {"string", "date"}
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


def arff_lines(file: io.TextIOBase) -> Lines:
    """Numbered lines without comments and empty ones."""
    for number, line in enumerate(file, start=1):
        text = line.strip()
        if text and not text.startswith("%"):
            yield number, text


def arff_header(lines: Lines) -> tuple[list[Attribute], int]:
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
            if not is_nominal and word not in _NUMERIC_KINDS | _TEXT_KINDS:
                raise ValueError(f"line {number} declares an attribute of an unknown kind: {text[:80]}")
            values = dict.fromkeys(map(_unquoted, _words(kind[1:-1]))) if is_nominal else {}
            codes = {value: float(k) for k, value in enumerate(values)}
            holds_numbers = all(map(is_number, values)) and word not in _TEXT_KINDS
            attributes.append(Attribute(name, number, text, is_nominal, holds_numbers, codes))
    raise ValueError("there is no line @data in it.")


def arff_table(lines: Lines, attributes: list[Attribute]) -> tuple[Any, bool]:
    """The rows below the header as a csr_array, and whether they were sparse in the file."""
    data, indices, indptr = array("d"), array("q"), array("q", [0])
    is_sparse = False
    for number, text in lines:
        try:
            if text.startswith("{") and not is_sparse:
                _check_defaults(attributes)
                is_sparse = True
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


def _check_defaults(attributes: list[Attribute]) -> None:
    """Refuse sparse rows where what they leave out is anything but 0 or the first nominal value."""
    for attribute in attributes:
        if attribute.is_nominal and attribute.holds_numbers and float(next(iter(attribute.codes))):
            raise ValueError("a sparse row, but what it leaves out is not 0: a nominal attribute lists 0 later.")
        if not attribute.is_nominal and not attribute.holds_numbers:
            raise ValueError(f"a sparse row, but {attribute.name!r} is text, of which nothing can be left out.")


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
