"""What runs of the studies depend on."""

from __future__ import annotations

import platform
import subprocess
from importlib import metadata
from pathlib import Path

import groupowl as go


def versions(packages: tuple[str, ...]) -> dict[str, str]:
    """The source, Python and these packages, as far as they are installed."""
    found = {"groupowl": go.__version__, "Python": platform.python_version()}
    asked = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=Path(__file__).parent, capture_output=True, text=True, check=False
    )
    if asked.returncode == 0:
        found["commit"] = asked.stdout.strip()
    for name in packages:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found
