"""Names of columns, of which a million that a file only numbers take no memory, and how users choose from them."""

from __future__ import annotations

import difflib
import operator
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Any

import numpy as np

from .._text import counted, listed
from .._typing import IndexArray

_PATTERN_MARKS = re.compile(r"[*?\[]")
_POSITION = re.compile(r"[+-]?\d+")
_LONGEST_NUMBER = 19  # digits that are read of a name


class TableError(ValueError):
    """One sentence that names the file and the problem, and one that says what to do."""


@dataclass(frozen=True, eq=False)
class NumberedNames(Sequence[str]):
    """``x1, x2, ...`` for so many columns, then some that have names of their own.

    Attributes
    ----------
    stem : str
        What stands before the number.
    first : int
        Number of the first column.
    n_numbered : int
        Columns that are numbered.
    others : tuple of str
        Names of the columns after those.
    """

    stem: str
    first: int
    n_numbered: int
    others: tuple[str, ...] = ()

    def __len__(self) -> int:
        return self.n_numbered + len(self.others)

    def __getitem__(self, position: Any) -> Any:
        if isinstance(position, slice):
            return tuple(self[j] for j in range(*position.indices(len(self))))
        j = range(len(self))[position]
        return f"{self.stem}{self.first + j}" if j < self.n_numbered else self.others[j - self.n_numbered]

    def __iter__(self) -> Iterator[str]:
        yield from (f"{self.stem}{number}" for number in range(self.first, self.first + self.n_numbered))
        yield from self.others

    def __contains__(self, name: object) -> bool:
        return self.find(name) >= 0

    def __eq__(self, other: object) -> bool:
        if isinstance(other, NumberedNames) and self.continues(other) and self.n_numbered == other.n_numbered:
            return self.others == other.others
        return isinstance(other, Sequence) and len(self) == len(other) and all(map(operator.eq, self, other))

    def index(self, name: Any, *bounds: Any) -> int:
        """Position of a name, which must be there."""
        if name not in self:
            raise ValueError(f"{name!r} is no column")
        return self.find(name)

    def find(self, name: object) -> int:
        """Position of a name, or -1."""
        digits = str(name).removeprefix(self.stem)
        is_numbered = len(digits) <= _LONGEST_NUMBER and digits.isdecimal()
        j = int(digits) - self.first if is_numbered else -1
        return j if 0 <= j < self.n_numbered and self[j] == name else self._positions.get(name, -1)

    @cached_property
    def _positions(self) -> dict[object, int]:
        return {name: j for j, name in enumerate(self.others, start=self.n_numbered)}

    def continues(self, other: object) -> bool:
        """Whether these and other names are numbered alike, however many there are."""
        return isinstance(other, NumberedNames) and (self.stem, self.first) == (other.stem, other.first)

    def chosen(self, positions: IndexArray) -> Sequence[str]:
        """Names of some columns; the first so many of numbered ones are numbered again."""
        n = len(positions)
        if 0 < n <= self.n_numbered and positions[0] == 0 and positions[-1] == n - 1:
            return NumberedNames(self.stem, self.first, n)
        names = self if self.n_numbered else self.others
        return tuple(names[j] for j in positions.tolist())

    def positions_of(self, names: Sequence[str]) -> IndexArray:
        """Positions of some names, -1 for those that are not there."""
        if isinstance(names, NumberedNames) and self.continues(names) and not names.others:
            positions = np.arange(len(names))
            return np.where(positions < self.n_numbered, positions, -1)
        return np.array([self.find(name) for name in names], dtype=np.intp)


def own_names(names: Iterable[str]) -> NumberedNames:
    """Names of which none is only a number of its column."""
    return NumberedNames("", 1, 0, tuple(names))


# Columns as users name them -----------------------------------------------------------------------------


def find_columns(option: str, given: Iterable[str], names: NumberedNames, source: str) -> list[int]:
    """Positions of columns, in the order in which they are named, each once.

    Parameters
    ----------
    option : str
        What the user calls them, for messages.
    given : iterable of str
        Names, positions (1 is the first column, -1 the last) or patterns (``gene*``), separated by commas. What is the
        name of a column is that column, whatever else it could mean.
    names : NumberedNames
        Of all columns.
    source : str
        The file, for messages.
    """
    found: dict[int, None] = {}
    for text in given:
        for part in [text] if text in names else map(str.strip, text.split(",")):
            found |= dict.fromkeys(_matches(option, part, names, source))
    return list(found)


def find_column(option: str, given: str, names: NumberedNames, source: str) -> int:
    """Position of the one column that is named."""
    found = find_columns(option, [given], names, source)
    if len(found) != 1:
        shown = listed(names[j] for j in found)
        raise TableError(f"{option} must be one column of {source}, but {given!r} names {len(found)}: {shown}.")
    return found[0]


def _matches(option: str, part: str, names: NumberedNames, source: str) -> list[int]:
    """Positions of what one word names: a name, a position, or a pattern."""
    count = len(names)
    if part in names:
        return [names.index(part)]
    if _POSITION.fullmatch(part):
        number = int(part)
        if number == 0 or not -count <= number <= count:
            raise TableError(
                f"{option} has the position {number}, but {source} has {counted(count, 'column')}. "
                "Positions count from 1; -1 is the last column."
            )
        return [number - 1 if number > 0 else count + number]
    is_pattern = _PATTERN_MARKS.search(part) is not None
    if is_pattern and (found := [j for j, name in enumerate(names) if fnmatchcase(name, part)]):
        return found
    if not part:
        raise TableError(f"{option} has an empty name. Separate names by single commas.")
    what = "has no column that matches" if is_pattern else "has no column"
    close = difflib.get_close_matches(part, names.others, n=3, cutoff=0.7)  # numbers are all alike
    hint = f"Did you mean {' or '.join(repr(name) for name in close)}?" if close else f"Columns: {listed(names)}."
    raise TableError(f"{option}: {source} {what} {part!r}. {hint}")
