"""Text from data as people see it: what would steer a terminal, or turn the direction of writing, is spelled."""

from __future__ import annotations

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


def listed(items: Iterable[object], *, shown: int = 5) -> str:
    """The first few of some items, and how many there are besides; text is quoted."""
    everything = items if isinstance(items, Sequence) else list(items)
    more = f" and {len(everything) - shown} more" if len(everything) > shown else ""
    return ", ".join(repr(item) if isinstance(item, str) else str(item) for item in everything[:shown]) + more
