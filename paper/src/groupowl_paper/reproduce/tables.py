"""Markdown: tables, lists, and how numbers are written. What is not known is a dot."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

UNKNOWN = "·"


def table(headings: Sequence[str], rows: Iterable[Sequence[str]], *, text_columns: int = 1) -> str:
    """A table whose first columns are text, to the left, and the others numbers, to the right."""
    marks = ["---" if i < text_columns else "---:" for i in range(len(headings))]
    lines = [headings, marks, *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def bullet_list(lines: Iterable[str]) -> str:
    """One line per entry."""
    return "\n".join(f"- {line}" for line in lines)


def number(value: float | None, pattern: str = "{:.1f}") -> str:
    """A number by a pattern."""
    return UNKNOWN if value is None else pattern.format(value)


def seconds(value: float | None) -> str:
    """Seconds with three digits or so."""
    if value is None:
        return UNKNOWN
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.3g}"


def times(value: float | None) -> str:
    """A factor."""
    return UNKNOWN if value is None else f"{value:.0f}x" if value >= 100 else f"{value:.1f}x"


def gap(value: float | None) -> str:
    """A relative gap."""
    return UNKNOWN if value is None else f"{value:.1e}"


def count(value: float | None) -> str:
    """A whole number."""
    return UNKNOWN if value is None else f"{value:.0f}"


def counted(value: int, noun: str) -> str:
    """A number with its noun: "1 row", "2 rows"."""
    return f"{value} {noun}" if value == 1 else f"{value} {noun}s"


def megabytes(value: float | None) -> str:
    """Bytes as megabytes."""
    return UNKNOWN if value is None else f"{value / 1e6:.1f}"
