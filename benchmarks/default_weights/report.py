"""The page of the study."""

from __future__ import annotations

from typing import Any


def write(*_: Any, **__: Any) -> None:
    """To be written: the rule and the runs come first."""


def render(*_: Any) -> None:
    """To be written, too."""
