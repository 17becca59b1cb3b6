"""What is wrong with a file, or with the columns asked of it."""

from __future__ import annotations


class TableError(ValueError):
    """One sentence that names the file and the problem, and one that says what to do."""


class MissingTargetsError(TableError):
    """Nobody has said which columns are targets, and the format of the file does not."""


def listed(items: object, *, shown: int = 5) -> str:
    """The first few of some items, and how many there are besides; text is quoted."""
    everything = [repr(item) if isinstance(item, str) else str(item) for item in items]  # type: ignore[attr-defined]
    more = f" and {len(everything) - shown} more" if len(everything) > shown else ""
    return ", ".join(everything[:shown]) + more


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """``1 column``, ``2 columns``."""
    return f"{number} {noun if number == 1 else plural or noun + 's'}"
