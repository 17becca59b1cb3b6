"""How much memory there is, and sizes as people write them."""

from __future__ import annotations

import os
import re
from pathlib import Path, PurePosixPath
from typing import Any

_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "KI": 2**10, "MI": 2**20, "GI": 2**30, "TI": 2**40}
# The default of max_memory is this part of the machine's memory.
_DEFAULT_SHARE = 4
# Where the machine does not tell.
_UNKNOWN_MACHINE = 8 * 2**30
# What a fit keeps for a column at least, whatever is stored of it: coefficients, weights, norms and their order.
_COLUMN_BYTES = 200
# The same for a sample: targets, predictors, dual points.
_SAMPLE_BYTES = 72
# Indices of sparse matrices are 32-bit integers.
_MOST_COLUMNS = 2**31 - 2


def parse_memory(value: Any) -> int:
    """Bytes of ``max_memory``: a number of bytes, text such as "200MB" or "1.5 GiB", or None for the default."""
    if value is None:
        return default_max_memory()
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise TypeError(f"max_memory must be a number of bytes, text such as '200MB' or None, got {value!r}.")
    match = re.fullmatch(r"\s*([0-9]*\.?[0-9]+(?:E\+?[0-9]+)?)\s*([KMGT]?I?)B?\s*", str(value).upper())
    size = float(match[1]) * _UNITS.get(match[2], 0) if match else 0.0
    if not 1 <= size < float("inf"):
        expected = "a positive number of bytes, or text such as '200MB' or '2GiB'"
        raise ValueError(f"max_memory must be {expected}, got {value!r}.")
    return int(size)


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


def too_many_columns(n_columns: int) -> str | None:
    """Why a matrix with so many columns cannot be fitted, in words; None where it may be."""
    most = min(default_max_memory() // _COLUMN_BYTES, _MOST_COLUMNS)  # if all of them were zero
    if n_columns <= most:
        return None
    return (
        f"{n_columns} columns, which take {format_bytes(n_columns * _COLUMN_BYTES)} at least, but columns may take "
        f"{format_bytes(default_max_memory())} here, a quarter of the memory, enough for {most} of them. Number or "
        "hash the features into fewer columns"
    )


def check_sparse_shape(what: str, shape: tuple[int, ...]) -> None:
    """Refuse a sparse matrix whose shape alone, not its entries, needs more memory than there is."""
    if trouble := too_many_columns(shape[-1]):
        raise ValueError(f"{what} has the shape {shape}: {trouble}.")
    check_fits(f"{what} has the shape {shape}, and so a fit", _SAMPLE_BYTES * shape[0])


def check_fits(what: str, n_bytes: int) -> None:
    """Refuse to read what this process has no memory for, before any of it is read."""
    limit = machine_memory()
    if n_bytes > limit:
        size = f"{format_bytes(n_bytes)} in memory"
        raise ValueError(f"{what} takes {size}, but this process may use {format_bytes(limit)}.")


def machine_memory(root: Path = Path("/")) -> int:
    """Memory of the machine, or less where the control group of this process, or one above it, has less."""
    try:
        limits = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    except (AttributeError, ValueError, OSError):
        limits = [_UNKNOWN_MACHINE]
    for line in _read(root / "proc/self/cgroup").splitlines():
        _, controllers, place = line.split(":", 2)
        if controllers == "":  # version 2, else version 1
            folder, name = root / "sys/fs/cgroup", "memory.max"
        elif "memory" in controllers.split(","):
            folder, name = root / "sys/fs/cgroup/memory", "memory.limit_in_bytes"
        else:
            continue
        group = PurePosixPath(place.lstrip("/"))
        texts = [_read(folder / inside / name).strip() for inside in (group, *group.parents)]
        limits += [int(text) for text in texts if text.isdigit()]  # "max" means no limit
    return min(limits)


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
