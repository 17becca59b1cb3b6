"""Text, numbers and tables in HTML; every text that enters a page goes through :func:`text`."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence
from decimal import ROUND_HALF_UP, Decimal, localcontext

import numpy as np

from .._text import printable
from .._typing import FloatArray

#: In place of a number where there is none.
NOTHING = "\N{EN DASH}"

_DIGITS = 4  # significant ones, of the largest number in a column
_LARGEST, _SMALLEST = 1e6, 1e-4  # numbers outside are written with an exponent
_MOST_DECIMALS = 7


def text(value: object) -> str:
    """A value as text that is shown literally, in elements and in attributes."""
    return html.escape(printable(value, keep="\n\t\u2028\u2029"), quote=True)


def number(value: float, digits: int = _DIGITS) -> str:
    """A number with so many significant digits, plain where it is neither huge nor tiny."""
    if not np.isfinite(value):
        return "not defined" if np.isnan(value) else str(value)
    size = abs(float(value))
    if size == 0.0:
        return "0"
    if not _SMALLEST <= size < _LARGEST:
        return re.sub(r"\.?0*e", "e", _written(value, f".{digits - 1}e"))
    decimals = max(digits - 1 - int(np.floor(np.log10(size))), 0)
    written = _written(value, f".{decimals}f")
    return written.rstrip("0").rstrip(".") if "." in written else written


def figure(value: float, digits: int = _DIGITS) -> str:
    """A number within a sentence, never broken at its minus."""
    return f'<span class="figure">{text(number(value, digits))}</span>'


def decimals_of(values: FloatArray) -> int:
    """Decimals for a column of numbers, the same for all; -1 where they need exponents."""
    largest = float(np.abs(values[np.isfinite(values)]).max(initial=0.0))
    if largest == 0.0:
        return 0
    if not 10.0 * _SMALLEST <= largest < _LARGEST:
        return -1
    return int(np.clip(_DIGITS - 1 - np.floor(np.log10(largest)), 0, _MOST_DECIMALS))


def fixed(value: float, decimals: int) -> str:
    """A number of a column; what would look like zero and is not is written with an exponent."""
    if not np.isfinite(value):
        return NOTHING
    if value == 0.0:
        return "0"
    if decimals < 0 or abs(value) < 0.5 * 10.0**-decimals:
        return _written(value, f".{1 if decimals >= 0 else _DIGITS - 1}e")
    return _written(value, f".{decimals}f")


def _written(value: float, form: str) -> str:
    """As scripts write it: a number half way between two is rounded up, and exponents have no leading zeros."""
    with localcontext(rounding=ROUND_HALF_UP):
        return format(Decimal(float(value)), form)


def count(n: int, noun: str, plural: str = "") -> str:
    """A number with its noun: 1 feature, 2,000 features."""
    return f"{n:,} {noun if n == 1 else plural or noun + 's'}"


def listed(items: Sequence[str], most: int) -> str:
    """Texts as one, with commas; those that are too many are counted."""
    shown = ", ".join(f'<span class="name">{text(item)}</span>' for item in items[:most])
    return shown if len(items) <= most else f"{shown} and {len(items) - most:,} more"


def table(head: Sequence[str], rows: Iterable[Sequence[str]], kind: str) -> str:
    """A table of cells that are HTML already; the first cell of a row is its heading, the others are numbers."""
    top = "".join(f'<th scope="col">{cell}</th>' for cell in head)
    body = "".join(
        f'<tr><th scope="row">{first}</th>{"".join(f"<td>{cell}</td>" for cell in others)}</tr>'
        for first, *others in rows
    )
    return f'<table class="{kind}"><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>'


def section(heading: str, name: str, *parts: str) -> str:
    """A section with its heading; nothing where it has no parts."""
    inside = "\n".join(part for part in parts if part)
    return f'<section id="{name}">\n<h2>{text(heading)}</h2>\n{inside}\n</section>' if inside else ""


def paragraph(words: str, kind: str = "") -> str:
    """A paragraph of HTML."""
    return f'<p class="{kind}">{words}</p>' if kind else f"<p>{words}</p>"
