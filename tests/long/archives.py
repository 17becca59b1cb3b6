"""Look into what ``make wheels`` has built: the right files, hashes, tags and libraries, and nothing else.

The source distribution has nothing that is not under version control. Each wheel has the modules of the source
distribution and a RECORD that is true. All but the pure one have a library for the machine that their tag names, which
was compiled from these sources.

    python tests/long/archives.py [FOLDER]
"""

from __future__ import annotations

import base64
import hashlib
import importlib.util
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
#: Ends of platform tags: name of the library, its first bytes, and where in it the machine is, as bytes.
PLATFORMS = {
    "linux_x86_64": ("_kernel.native.so", b"\x7fELF", 18, b"\x3e\x00"),
    "_2_17_x86_64": ("_kernel.native.so", b"\x7fELF", 18, b"\x3e\x00"),
    "_2_17_aarch64": ("_kernel.native.so", b"\x7fELF", 18, b"\xb7\x00"),
    "_11_0_arm64": ("_kernel.native.dylib", b"\xcf\xfa\xed\xfe", 4, b"\x0c\x00\x00\x01"),
    "_10_13_x86_64": ("_kernel.native.dylib", b"\xcf\xfa\xed\xfe", 4, b"\x07\x00\x00\x01"),
    "win_amd64": ("_kernel.native.dll", b"MZ", None, b"PE\x00\x00\x64\x86"),
}
NEEDED = ["any", "_2_17_x86_64", "_2_17_aarch64", "_11_0_arm64", "_10_13_x86_64", "win_amd64"]
METADATA = {"METADATA", "WHEEL", "RECORD", "entry_points.txt", "licenses/LICENSE"}


def main() -> int:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "dist")
    sdists, wheels = sorted(folder.glob("*.tar.gz")), sorted(folder.glob("*.whl"))
    if len(sdists) != 1:
        sys.exit(f"{folder} must hold one source distribution, but has {len(sdists)}.")
    names = names_of_sdist(sdists[0])
    found = complaints_about_sdist(names, tracked_files())
    found += [f"no wheel for {end}" for end in NEEDED if not any(wheel.stem.endswith(end) for wheel in wheels)]
    for wheel in wheels:
        found += [f"{wheel.name}: {complaint}" for complaint in complaints_about_wheel(wheel, names)]
    for complaint in found:
        print(complaint, file=sys.stderr)
    print(f"{len(wheels)} wheels and a source distribution of {len(names)} files: {len(found)} complaints")
    return int(bool(found))


def names_of_sdist(path: Path) -> set[str]:
    """Files in it, without the name of its one folder."""
    with tarfile.open(path) as archive:
        return {member.name.partition("/")[2] for member in archive.getmembers() if member.isfile()}


def tracked_files() -> set[str] | None:
    """Files under version control, or None where that cannot be known."""
    try:
        listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        print("without git, the source distribution is not compared with what is under version control")
        return None
    return set(listed.stdout.splitlines())


def complaints_about_sdist(names: set[str], tracked: set[str] | None) -> list[str]:
    """What is in the source distribution and should not, and the other way round."""
    strays = [] if tracked is None else sorted(names - tracked - {"PKG-INFO"})
    found = [f"source distribution: {len(strays)} stray files, the first is {strays[0]}"] if strays else []
    needed = {
        "pyproject.toml",
        "hatch_build.py",
        "LICENSE",
        "README.md",
        "native/groupowl.h",
        "src/groupowl/__init__.py",
    }
    return found + [f"source distribution: no {name}" for name in sorted(needed - names)]


def complaints_about_wheel(path: Path, sources: set[str]) -> list[str]:
    """What is wrong with a wheel."""
    platform = path.stem.rsplit("-", 1)[1]
    with zipfile.ZipFile(path) as archive:
        contents = {name: archive.read(name) for name in archive.namelist()}
    dist_info = "-".join(path.name.split("-")[:2]) + ".dist-info/"
    expected = {name.removeprefix("src/") for name in sources if re.match(r"src/groupowl(/|_command\.py$)", name)}
    expected |= {dist_info + name for name in METADATA}
    found = []
    if platform != "any":
        (kind,) = [kind for end, kind in PLATFORMS.items() if platform.endswith(end)] or [None]
        if kind is None:
            return [f"unknown platform {platform}"]
        expected.add(f"groupowl/{kind[0]}")
        found += complaints_about_library(contents.get(f"groupowl/{kind[0]}", b""), kind)
    found += [f"stray file {name}" for name in sorted(contents.keys() - expected)]
    found += [f"no file {name}" for name in sorted(expected - contents.keys())]
    found += complaints_about_record(contents, dist_info + "RECORD")
    tags = re.findall(r"^Tag: (\S+)", contents.get(dist_info + "WHEEL", b"").decode(), flags=re.MULTILINE)
    return found if tags == [f"py3-none-{platform}"] else [*found, f"WHEEL has tags {tags}"]


def complaints_about_library(library: bytes, kind: tuple[str, bytes, int | None, bytes]) -> list[str]:
    """Whether it is a library of the system and machine, compiled from these sources."""
    name, start, place, machine = kind
    is_right = library[place : place + len(machine)] == machine if place is not None else machine in library[:1024]
    found = [] if library.startswith(start) and is_right else [f"{name} is for another machine"]
    return found if source_stamp() in library else [*found, f"{name} was compiled from other sources"]


def source_stamp() -> bytes:
    """What the build writes into the library."""
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.source_stamp().encode()


def complaints_about_record(contents: dict[str, bytes], name: str) -> list[str]:
    """RECORD lists every file, with its hash and size."""
    listed = dict(line.split(",", 1) for line in contents.get(name, b"").decode().splitlines())
    found = [f"RECORD lists {other}, which is not there" for other in sorted(listed.keys() - contents.keys())]
    for file, data in contents.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        if listed.get(file) != ("," if file == name else f"sha256={digest},{len(data)}"):
            found.append(f"RECORD is wrong about {file}")
    return found


if __name__ == "__main__":
    sys.exit(main())
