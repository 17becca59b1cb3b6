"""Results of R, which knows nothing of us."""

from __future__ import annotations

import shutil
import subprocess

import pytest


def run_r(script, folder, package):
    """Numbers that a script prints; the test is skipped where R or a package of it is missing."""
    if shutil.which("Rscript") is None:
        pytest.skip("Rscript is not on this machine")
    (folder / "script.R").write_text(f'if (!requireNamespace("{package}", quietly=TRUE)) quit(status=3)\n{script}')
    found = subprocess.run(["Rscript", "script.R"], cwd=folder, capture_output=True, text=True, check=False)
    if found.returncode == 3:
        pytest.skip(f"R has no package {package}")
    assert found.returncode == 0, found.stderr
    return [float(word) for word in found.stdout.split()]
