"""Matrices on disk: one file per kind, all read in pieces of bounded size, never through a memory map."""

from __future__ import annotations

from .base import Block, ChosenRows, Storage
from .containers import ChunkedArray
from .folder import RowBlocks
from .memmap_design import MemmapDesign
from .memory import default_max_memory, format_bytes, parse_memory
from .npy import FlatFile
from .npz import NpzFile
from .opening import is_stored, open_storage
from .parquet import ParquetTable

__all__ = [
    "Block",
    "ChosenRows",
    "ChunkedArray",
    "FlatFile",
    "MemmapDesign",
    "NpzFile",
    "ParquetTable",
    "RowBlocks",
    "Storage",
    "default_max_memory",
    "format_bytes",
    "is_stored",
    "open_storage",
    "parse_memory",
]
