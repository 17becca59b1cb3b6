"""Build groupowl, install what was built into clean environments, and try it there.

Four environments, each made anew: one with the wheel, one with the source distribution, one with the wheel that has no
compiled kernel, and one with the lowest versions of the required packages that ``pyproject.toml`` allows, where a part
of the tests runs as well. Of several wheels, as ``make wheels`` leaves them, pip takes the one for this platform.
Packages come from wherever pip gets them on this machine. ``make test-install`` runs all of it.

    python tests/long/installation.py [--dist FOLDER] [--only wheel sdist pure lowest] [--keep FOLDER]
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
import tomllib
import venv
from pathlib import Path

ROOT = Path(__file__).parents[2]
KINDS = ["wheel", "sdist", "pure", "lowest"]

# What a user would try first. It runs outside the clone, so that only what was installed can be imported.
SMOKE = """
import sys
import groupowl as go

assert "site-packages" in go.__file__, go.__file__
data = go.datasets.make_correlated_groups(60, 80, 3, random_state=0)
model = go.GroupOWLRegressor().fit(data.X, data.Y)
assert model.verify(data.X, data.Y), "the fit does not hold"
lam = 0.3 * go.lam_max(data.X, data.Y, "oscar") * go.weights.oscar(80)
result = go.solve(data.X, data.Y, lam)
assert result.converged and len(result.active) < 80
info = go.kernel_info()
assert info.name == (sys.argv[1:] or [info.name])[0], info
assert info.name == "compiled" or "without a C compiler" in info.reason, info
go.show_versions()
"""

# Tests that need the required packages and little else; the others need extras, some of which ask for newer packages.
QUICK_TESTS = [
    "tests/test_kernels.py",
    "tests/test_penalty.py",
    "tests/test_weights.py",
    "tests/test_problem.py",
    "tests/test_screening.py",
    "tests/test_safe_screener.py",
    "tests/losses",
    "tests/solvers/test_apgd.py",
    "tests/solvers/test_solve.py",
    "tests/solvers/test_working_set.py",
    "tests/estimators/test_checks.py",
    "tests/estimators/test_fitting.py",
    "tests/estimators/test_special_cases.py",
]
# Not the newest of all of them. scikit-learn 1.6 hands a generator of checks to pytest, which warns of it from version
# 9 on, and asks frames for their names by a protocol that polars has deprecated in version 1.40.
TEST_PACKAGES = ["clarabel", "cvxpy", "hypothesis", "pandas", "polars<1.40", "pytest<9", "sortedl1"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--dist", type=Path, default=None, help="take the archives in this folder, build none")
    parser.add_argument("--only", choices=KINDS, nargs="+", default=KINDS)
    parser.add_argument("--keep", type=Path, default=None, help="work in this folder and leave it there")
    options = parser.parse_args()
    if options.keep is not None:
        options.keep.mkdir(parents=True, exist_ok=True)
        return run(options.keep.resolve(), options.dist, options.only)
    with tempfile.TemporaryDirectory() as folder:
        return run(Path(folder), options.dist, options.only)


def run(folder: Path, dist: Path | None, kinds: list[str]) -> int:
    dist = build(folder) if dist is None else dist.resolve()
    for kind in kinds:
        started = time.perf_counter()
        python = environment(folder / kind)
        try_installed(python, choose_archive(python, dist, kind, folder), folder, lowest=kind == "lowest")
        print(f"{kind}: installed and works ({time.perf_counter() - started:.0f} s)", flush=True)
    return 0


def build(folder: Path) -> Path:
    """Source distribution, the wheel that is built from it, and the one that is built without a compiler."""
    python = environment(folder / "builder")
    call(python, "-m", "pip", "install", "--quiet", "build")
    for compiler in ({"CC": "false", "GROUPOWL_REQUIRE_KERNEL": "0"}, {}):  # last what else could be the pure one, too
        call(python, "-m", "build", "--outdir", str(folder / "dist"), str(ROOT), **compiler)
    return folder / "dist"


def choose_archive(python: Path, dist: Path, kind: str, folder: Path) -> Path:
    """What to install: the source distribution, the pure wheel, or the wheel that pip prefers on this platform."""
    if kind in ("sdist", "pure"):
        return only_file(dist, "*.tar.gz" if kind == "sdist" else "*-none-any.whl")
    chosen = folder / f"chosen-{kind}"
    source = ["--no-index", "--no-deps", "--only-binary", ":all:", "--pre", "--find-links", str(dist)]
    call(python, "-m", "pip", "download", "--quiet", *source, "--dest", str(chosen), "groupowl")
    return only_file(chosen, "*.whl")


def only_file(folder: Path, pattern: str) -> Path:
    found = sorted(folder.glob(pattern))
    if len(found) != 1:
        sys.exit(f"{folder} must hold one file {pattern}, but has {len(found)}: {[path.name for path in found]}.")
    return found[0]


def environment(folder: Path) -> Path:
    """Python of a new environment."""
    venv.create(folder, clear=True, with_pip=True)
    return folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def try_installed(python: Path, archive: Path, folder: Path, *, lowest: bool) -> None:
    """Install, then import, fit, verify and run the command line; with the lowest versions, a part of the tests."""
    requirements = [*lowest_versions(), *TEST_PACKAGES] if lowest else []
    call(python, "-m", "pip", "install", "--quiet", f"{archive}[cli,plot]", *requirements)
    elsewhere = folder / f"work-{python.parents[1].name}"
    elsewhere.mkdir(exist_ok=True)
    kernel = []  # of a source distribution it depends on the compilers here
    if archive.suffix == ".whl":
        kernel = ["numpy" if archive.name.endswith("-none-any.whl") else "compiled"]
    call(python, "-W", "error", "-c", SMOKE, *kernel, cwd=elsewhere)
    command = python.with_name("groupowl.exe" if os.name == "nt" else "groupowl")
    expected = f"groupowl {declared_version()}"
    printed = call(command, "--version", cwd=elsewhere, capture=True)
    if printed.strip() != expected:
        sys.exit(f"groupowl --version prints {printed.strip()!r}, not {expected!r}.")
    call(command, "demo", "--out", str(elsewhere / "demo"), cwd=elsewhere)
    if not list((elsewhere / "demo").glob("*.png")):
        sys.exit(f"groupowl demo left no picture in {elsewhere / 'demo'}.")
    if lowest:
        call(python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *QUICK_TESTS, cwd=ROOT)


def lowest_versions() -> list[str]:
    """Required packages pinned to the release that their lower bound names."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    bounds = [re.fullmatch(r"([\w.-]+)>=(\d+\.\d+)", requirement) for requirement in project["dependencies"]]
    if not all(bounds):
        sys.exit(f"dependencies in pyproject.toml must have the form name>=1.2, got {project['dependencies']}.")
    return [f"{bound[1]}=={bound[2]}.*" for bound in bounds if bound]


def declared_version() -> str:
    """The version, from the one place where it is."""
    text = (ROOT / "src" / "groupowl" / "__init__.py").read_text(encoding="utf-8")
    found = re.search(r'^__version__ = "([^"]+)"$', text, flags=re.MULTILINE)
    if found is None:
        sys.exit("src/groupowl/__init__.py has no line __version__ = ...")
    return found[1]


def call(program: Path, *arguments: str, cwd: Path | None = None, capture: bool = False, **variables: str) -> str:
    """Run a program, or end with its exit code; nothing of this process's path reaches it."""
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    result = subprocess.run(
        [str(program), *arguments],
        cwd=cwd,
        env={**kept, **variables},
        text=True,
        stdout=subprocess.PIPE if capture else None,
    )
    if result.returncode:
        print(f"failed: {program.name} {' '.join(arguments[:4])}", file=sys.stderr, flush=True)
        sys.exit(result.returncode)
    return result.stdout or ""


if __name__ == "__main__":
    sys.exit(main())
