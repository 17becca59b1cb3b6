"""Compiles the kernel in native/ when a wheel is built; without a C compiler the package is pure Python."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ImportError:  # run as a program, by make
    BuildHookInterface = object

ROOT = Path(__file__).parent
SOURCES = ROOT / "native"
# Never -ffast-math: it would flush denormal numbers to zero in the whole process of whoever loads the library.
FLAGS = ["-O3", "-std=c99", "-shared", "-fvisibility=hidden"]
PLATFORM = os.environ.get("_PYTHON_HOST_PLATFORM", sysconfig.get_platform())


def source_stamp() -> str:
    """Hash of the sources; the loader computes the same where it finds them."""
    digest = hashlib.sha256()
    for path in sorted([*SOURCES.glob("*.c"), *SOURCES.glob("*.h")]):
        digest.update(path.name.encode() + b"\0" + path.read_bytes().replace(b"\r\n", b"\n"))
    return digest.hexdigest()[:16]


def library_name() -> str:
    """What the library is called beside the package; with a dot more than a module, which it is not."""
    return "_kernel.native" + {"win": ".dll", "mac": ".dylib"}.get(PLATFORM[:3], ".so")


def compile_kernel(target: Path) -> None:
    """Compile the library in a folder of its own and move it to its place: a failed compile leaves nothing behind."""
    names = [name for name in ("cc", "gcc", "clang") if shutil.which(name)]
    compiler = os.environ.get("CC", names[0] if names else "cc").split()
    flags = FLAGS if PLATFORM.startswith("win") else [*FLAGS, "-fPIC"]
    sources = [str(path) for path in sorted(SOURCES.glob("*.c"))]
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / target.name
        command = [*compiler, *flags, f'-DGO_STAMP="{source_stamp()}"', "-o", str(library), *sources, "-lm"]
        subprocess.run(command, check=True, capture_output=True, text=True)
        staged = target.with_suffix(".new")
        shutil.copyfile(library, staged)
        staged.replace(target)  # a process that has loaded the old one keeps it: writing into it would end that process


class KernelHook(BuildHookInterface):
    """Adds the compiled library to wheels, which are then of one platform and all versions of Python."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, or say why not."""
        target = ROOT / "src" / "groupowl" / library_name()
        target.unlink(missing_ok=True)  # one from before would hide that this compile failed
        try:
            compile_kernel(target)
        except (OSError, subprocess.CalledProcessError) as error:
            if os.environ.get("GROUPOWL_REQUIRE_KERNEL") == "1":
                raise
            reason = getattr(error, "stderr", "") or error
            self.app.display_warning(f"The compiled kernel is left out, NumPy does its work: {reason}")
            return
        build_data["artifacts"].append(f"/src/groupowl/{target.name}")
        build_data["pure_python"] = False
        tag = PLATFORM.replace("-", "_").replace(".", "_")
        build_data["tag"] = f"py3-none-{tag}"


def main() -> int:
    """Compile for the editable install; a missing compiler is no error unless one is required."""
    target = ROOT / "src" / "groupowl" / library_name()
    try:
        compile_kernel(target)
    except (OSError, subprocess.CalledProcessError) as error:
        target.unlink(missing_ok=True)
        print(f"no compiled kernel: {getattr(error, 'stderr', '') or error}", file=sys.stderr)
        return int(os.environ.get("GROUPOWL_REQUIRE_KERNEL") == "1")
    return 0


if __name__ == "__main__":
    sys.exit(main())
