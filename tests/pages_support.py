"""What tests of pages share: names of the code that a page gives, and what they stand for."""

from __future__ import annotations

import importlib
import re


def names_on(text):
    """Dotted names of the package in double backquotes."""
    return re.findall(r"``(groupowl\.[\w.]+)``", text)


def resolve(name):
    """What a dotted name stands for: modules as far as there are any, then attributes."""
    parts = name.split(".")
    found = importlib.import_module(parts[0])
    for k, part in enumerate(parts[1:], 1):
        if not hasattr(found, part):
            importlib.import_module(".".join(parts[: k + 1]))
        found = getattr(found, part)
    return found
