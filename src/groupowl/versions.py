"""What is installed, for bug reports."""

from __future__ import annotations

import platform
import sys
from importlib.metadata import PackageNotFoundError, version

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
    print(f"{'Python':<14}{sys.version.split()[0]} ({platform.system()} {platform.machine()})")
    for name in (*_REQUIRED, *_OPTIONAL):
        print(f"{name:<14}{_installed(name)}")


def _installed(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"
