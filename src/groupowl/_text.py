"""Text from data as people see it: what would steer a terminal, or turn the direction of writing, is spelled."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable, Sequence

# Categories of characters that are not seen: controls, formats such as bidirectional ones, surrogates, separators.
_UNSEEN = ("Cc", "Cf", "Cs", "Zl", "Zp")
# Joiners within words of many scripts, which steer nothing.
_JOINERS = "\u200c\u200d"


def printable(value: object, *, keep: str = "") -> str:
    r"""``str(value)`` with control characters, but those to keep, as escapes such as ``\x1b``."""
    shown = str(value)
    return shown if shown.isprintable() else "".join(_spelled(sign, keep + _JOINERS) for sign in shown)


def _spelled(sign: str, keep: str) -> str:
    return ascii(sign)[1:-1] if sign not in keep and unicodedata.category(sign) in _UNSEEN else sign


def listed(items: Iterable[object], *, shown: int = 5, quoted: bool = True) -> str:
    """The first few of some items, and how many there are besides; text is quoted unless it is asked for plain."""
    everything = items if isinstance(items, Sequence) else list(items)
    more = f" and {len(everything) - shown} more" if len(everything) > shown else ""
    words = (repr(item) if quoted and isinstance(item, str) else str(item) for item in everything[:shown])
    return ", ".join(words) + more


def significant(value: float, digits: int = 4) -> str:
    """Format a number with ``digits`` significant digits, trailing zeros included; exponents for huge and tiny ones."""
    size = abs(float(value))
    if size == 0.0 or not math.isfinite(size):
        return "0" if size == 0.0 else str(float(value))
    power = int(f"{size:.{digits - 1}e}".partition("e")[2])  # after rounding: 9.9996 has that of 10
    if not -4 <= power < 6:
        return f"{value:.{digits - 1}e}"
    return f"{value:.{max(digits - 1 - power, 0)}f}"


def counted(number: int, noun: str) -> str:
    """``1 column``, ``2 columns``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
