"""Names of a package whose modules are imported when a name is first used."""

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
        Names that are imported when they are asked for, by the module that has them; where several may have a name,
        it is looked for in their order.
    modules : iterable of str
        Modules that are attributes of the package themselves.
    """
    loadable = {*modules, *names_of}

    def get(name: str) -> Any:
        """Import what is asked for, once."""
        homes = [module for module, names in names_of.items() if name in names and name not in loadable]
        places = (import_module(f".{module}", package) for module in homes)
        found = next((place for place in places if hasattr(place, name)), None)
        if found is None and name not in loadable:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = import_module(f".{name}", package) if found is None else getattr(found, name)
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        """What there is, imported or not."""
        return sorted({*vars(sys.modules[package]), *loadable}.union(*names_of.values()))

    return get, names
