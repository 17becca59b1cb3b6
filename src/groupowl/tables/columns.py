"""Columns as users name them: by name, by position from 1, or by a pattern."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase

from .errors import TableError, counted, listed
from .names import NumberedNames, positions_of

_PATTERN_MARKS = re.compile(r"[*?\[]")
_POSITION = re.compile(r"[+-]?\d+")


def find_columns(option: str, given: Iterable[str], names: Sequence[str], source: str) -> list[int]:
    """Positions of columns, in the order in which they are named, each once.

    Parameters
    ----------
    option : str
        What the user calls them, for messages.
    given : iterable of str
        Names, positions (1 is the first column, -1 the last) or patterns (``gene*``), separated by commas. What is the
        name of a column is that column, whatever else it could mean.
    names : sequence of str
        Of all columns.
    source : str
        The file, for messages.
    """
    positions = positions_of(names)
    found: dict[int, None] = {}
    for text in given:
        parts = [text] if text in positions else [part.strip() for part in text.split(",")]
        for part in parts:
            found |= dict.fromkeys(_matches(option, part, names, positions, source))
    return list(found)


def find_column(option: str, given: str, names: Sequence[str], source: str) -> int:
    """Position of the one column that is named."""
    found = find_columns(option, [given], names, source)
    if len(found) != 1:
        shown = listed(names[j] for j in found)
        raise TableError(f"{option} must be one column of {source}, but {given!r} names {len(found)}: {shown}.")
    return found[0]


def _matches(option: str, part: str, names: Sequence[str], positions: Mapping[str, int], source: str) -> list[int]:
    if part in positions:
        return [positions[part]]
    if _POSITION.fullmatch(part):
        return [_position(option, int(part), len(names), source)]
    if _PATTERN_MARKS.search(part):
        found = [j for j, name in enumerate(names) if fnmatchcase(name, part)]
        if found:
            return found
    raise TableError(_unknown(option, part, names, source))


def _position(option: str, number: int, count: int, source: str) -> int:
    if number == 0 or not -count <= number <= count:
        raise TableError(
            f"{option} has the position {number}, but {source} has {counted(count, 'column')}. "
            "Positions count from 1; -1 is the last column."
        )
    return number - 1 if number > 0 else count + number


def _unknown(option: str, part: str, names: Sequence[str], source: str) -> str:
    if not part:
        return f"{option} has an empty name. Separate names by single commas."
    what = "has no column that matches" if _PATTERN_MARKS.search(part) else "has no column"
    spelled = names.others if isinstance(names, NumberedNames) else names  # numbers are all alike
    close = difflib.get_close_matches(part, spelled, n=3, cutoff=0.7)
    hint = f"Did you mean {' or '.join(repr(name) for name in close)}?" if close else f"Columns: {listed(names)}."
    return f"{option}: {source} {what} {part!r}. {hint}"
