"""How much memory there is, and sizes as people write them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "KI": 2**10, "MI": 2**20, "GI": 2**30, "TI": 2**40}
# The default of max_memory is this part of the machine's memory.
_DEFAULT_SHARE = 4
# Where the machine does not tell.
_UNKNOWN_MACHINE = 8 * 2**30


def parse_memory(value: Any) -> int:
    """Bytes of ``max_memory``: a number of bytes, text such as "200MB" or "1.5 GiB", or None for the default."""
    if value is None:
        return default_max_memory()
    if isinstance(value, str):
        match = re.fullmatch(r"\s*([0-9]*\.?[0-9]+)\s*([KMGT]?I?)B?\s*", value.upper())
        if match is None or match[2] not in _UNITS:
            raise ValueError(f"max_memory must be a number of bytes or text such as '200MB' or '2GiB', got {value!r}.")
        number = float(match[1]) * _UNITS[match[2]]
    elif isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"max_memory must be a number of bytes, text such as '200MB' or None, got {value!r}.")
    else:
        number = float(value)
    if not 1 <= number < float("inf"):
        raise ValueError(f"max_memory must be a positive number of bytes, got {value!r}.")
    return int(number)


def format_bytes(size: float) -> str:
    """A size as people read it: "1.5 GB"."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} TB"


def default_max_memory() -> int:
    """A quarter of the memory that this process may use."""
    return machine_memory() // _DEFAULT_SHARE


def machine_memory(root: Path = Path("/")) -> int:
    """Memory of the machine, or less where the control group of this process has less."""
    try:
        physical = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        physical = _UNKNOWN_MACHINE
    return min([physical, *_group_limits(root)])


def _group_limits(root: Path) -> Iterator[int]:
    """Limits of the control group and of all above it, as far as they can be read; version 2, then version 1."""
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, place = line.split(":", 2)
        if controllers == "":
            folder, name = root / "sys/fs/cgroup", "memory.max"
        elif "memory" in controllers.split(","):
            folder, name = root / "sys/fs/cgroup/memory", "memory.limit_in_bytes"
        else:
            continue
        group = PurePosixPath(place.lstrip("/"))
        for inside in (group, *group.parents):
            try:
                text = (folder / inside / name).read_text().strip()
            except OSError:
                continue
            if text.isdigit():  # "max" means no limit
                yield int(text)
