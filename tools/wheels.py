"""Build the wheels of all platforms on this one, and the pure wheel: python tools/wheels.py, or make wheels.

The compiler is ``zig cc`` from the package ziglang, which compiles for other systems, too. Everything is built from the
source distribution, so the source tree and the kernel compiled in it stay as they are.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
#: What zig calls the systems, by the platforms of the wheels. The C library of Linux is that of manylinux2014.
TARGETS = {
    "manylinux-2.17-x86_64": "x86_64-linux-gnu.2.17",
    "manylinux-2.17-aarch64": "aarch64-linux-gnu.2.17",
    "macosx-11.0-arm64": "aarch64-macos.11.0",
    "macosx-10.13-x86_64": "x86_64-macos.10.13",
    "win-amd64": "x86_64-windows-gnu",
}


def run(*arguments: str, **variables: str) -> None:
    """Run a module of this Python with more environment variables."""
    subprocess.run([sys.executable, "-m", *arguments], check=True, cwd=ROOT, env={**os.environ, **variables})


def build_wheel(sdist: Path, out: Path, **variables: str) -> None:
    """A wheel from the source distribution; pip's cache would return that of another platform."""
    options = ["--quiet", "--disable-pip-version-check", "--no-deps", "--no-build-isolation", "--no-cache-dir"]
    run("pip", "wheel", *options, "--wheel-dir", str(out), str(sdist), **variables)


def main() -> int:
    """Build everything and list it."""
    parser = argparse.ArgumentParser(description="Build the source distribution and the wheels of all platforms.")
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="where they go (default: dist)")
    out: Path = parser.parse_args().out.resolve()
    for old in [*out.glob("groupowl-*.whl"), *out.glob("groupowl-*.tar.gz")]:
        old.unlink()
    run("build", "--sdist", "--no-isolation", "--outdir", str(out), str(ROOT))
    (sdist,) = out.glob("groupowl-*.tar.gz")
    for platform, target in TARGETS.items():
        compiler = f"{sys.executable} -m ziglang cc -target {target} -s"
        build_wheel(sdist, out, CC=compiler, _PYTHON_HOST_PLATFORM=platform, GROUPOWL_REQUIRE_KERNEL="1")
    build_wheel(sdist, out, CC="false", GROUPOWL_REQUIRE_KERNEL="0")
    for wheel in sorted(out.glob("groupowl-*.whl")):
        print(f"{wheel.stat().st_size / 1e6:6.2f} MB  {wheel.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
