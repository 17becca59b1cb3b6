"""What is installed, for bug reports."""

import platform
import sys
from importlib.metadata import PackageNotFoundError, version

from .kernel import kernel_info

_REQUIRED = ("groupowl", "numpy", "scipy", "scikit-learn")
_OPTIONAL = ("matplotlib", "pandas", "polars", "typer", "rich", "joblib", "threadpoolctl")


def show_versions() -> None:
    """Print the versions of Python, groupowl and what it uses, for bug reports.

    Examples
    --------
    >>> import groupowl as go
    >>> go.show_versions()  # doctest: +ELLIPSIS
    Python...
    """
    for name, found in (installed_versions() | {"kernel": str(kernel_info())}).items():
        print(f"{name:<14}{found}")


def installed_versions() -> dict[str, str]:
    """Versions of Python, groupowl and what it uses, by name."""
    python = f"{sys.version.split()[0]} ({platform.system()} {platform.machine()})"
    return {"Python": python} | {name: installed_version(name) for name in (*_REQUIRED, *_OPTIONAL)}


def installed_version(name: str) -> str:
    """Version of a package, or that it is not installed."""
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"
