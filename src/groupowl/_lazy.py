"""Names of a package whose modules are imported when a name is first used."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Any


def attributes(
    package: str, names_of: Mapping[str, Iterable[str]], modules: Iterable[str] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of a package.

    Parameters
    ----------
    package : str
        Its name.
    names_of : mapping
        Names that are imported when they are asked for, by the module that has them.
    modules : iterable of str
        Modules that are attributes of the package themselves.
    """
    module_of = {name: module for module, names in names_of.items() for name in names}
    loadable = {*modules, *names_of}

    def get(name: str) -> Any:
        """Import what is asked for, once."""
        if name in module_of:
            value = getattr(import_module(f".{module_of[name]}", package), name)
        elif name in loadable:
            value = import_module(f".{name}", package)
        else:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        """What there is, imported or not."""
        return sorted({*vars(sys.modules[package]), *loadable, *module_of})

    return get, names
