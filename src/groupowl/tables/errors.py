"""What is wrong with a file, or with the columns asked of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


class TableError(ValueError):
    """One sentence that names the file and the problem, and one that says what to do."""


class MissingTargetsError(TableError):
    """Nobody has said which columns are targets, and the format of the file does not."""


def listed(items: Iterable[object], *, shown: int = 5) -> str:
    """The first few of some items, and how many there are besides; text is quoted."""
    everything = items if isinstance(items, Sequence) else list(items)
    more = f" and {len(everything) - shown} more" if len(everything) > shown else ""
    return ", ".join(repr(item) if isinstance(item, str) else str(item) for item in everything[:shown]) + more


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """``1 column``, ``2 columns``."""
    return f"{number} {noun if number == 1 else plural or noun + 's'}"
