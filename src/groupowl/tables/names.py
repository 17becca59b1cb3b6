"""Names of columns that a file only numbers: made when one is asked for, so that a million of them take no memory."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, overload

from .._typing import IndexArray

_DIGITS = re.compile(r"0|[1-9]\d*")


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

    @overload
    def __getitem__(self, position: int) -> str: ...

    @overload
    def __getitem__(self, position: slice) -> tuple[str, ...]: ...

    def __getitem__(self, position: Any) -> Any:
        if isinstance(position, slice):
            return tuple(self[j] for j in range(*position.indices(len(self))))
        j = range(len(self))[position]
        return f"{self.stem}{self.first + j}" if j < self.n_numbered else self.others[j - self.n_numbered]

    def __iter__(self) -> Iterator[str]:
        yield from (f"{self.stem}{number}" for number in range(self.first, self.first + self.n_numbered))
        yield from self.others

    def __contains__(self, name: object) -> bool:
        return self._position(name) is not None

    def __eq__(self, other: object) -> bool:
        if isinstance(other, NumberedNames):
            return self._numbering == other._numbering and self.others == other.others
        if not isinstance(other, tuple | list) or len(other) != len(self):
            return False
        return all(mine == theirs for mine, theirs in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]

    def index(self, name: Any, start: int = 0, stop: int | None = None) -> int:
        """Position of a name."""
        position = self._position(name)
        if position is None or not start <= position < (len(self) if stop is None else stop):
            raise ValueError(f"{name!r} is no column")
        return position

    def _position(self, name: object) -> int | None:
        if not isinstance(name, str):
            return None
        digits = name.removeprefix(self.stem)
        if name.startswith(self.stem) and len(digits) < 20 and _DIGITS.fullmatch(digits):
            number = int(digits) - self.first
            if 0 <= number < self.n_numbered:
                return number
        return self.n_numbered + self.others.index(name) if name in self.others else None

    @property
    def _numbering(self) -> tuple[str, int, int]:
        return self.stem, self.first, self.n_numbered

    def continues(self, other: object) -> bool:
        """Whether these and other names are numbered alike, however many there are."""
        return isinstance(other, NumberedNames) and (self.stem, self.first) == (other.stem, other.first)

    def after(self, n_first: int) -> NumberedNames:
        """All but so many of the numbered ones."""
        return NumberedNames(self.stem, self.first + n_first, self.n_numbered - n_first, self.others)


@dataclass(frozen=True, eq=False)
class _Positions(Mapping[str, int]):
    """Positions by name, found when they are asked for."""

    names: NumberedNames

    def __getitem__(self, name: str) -> int:
        position = self.names._position(name)
        if position is None:
            raise KeyError(name)
        return position

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)


def positions_of(names: Sequence[str]) -> Mapping[str, int]:
    """Positions of columns by name."""
    if isinstance(names, NumberedNames):
        return _Positions(names)
    return {name: j for j, name in enumerate(names)}


def chosen_names(names: Sequence[str], positions: IndexArray) -> Sequence[str]:
    """Names of some columns; the first so many of numbered ones are numbered again."""
    n = len(positions)
    if isinstance(names, NumberedNames) and 0 < n <= names.n_numbered and positions[0] == 0 and positions[-1] == n - 1:
        return NumberedNames(names.stem, names.first, n)
    return tuple(names[j] for j in positions.tolist())
