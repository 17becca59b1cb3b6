"""Large files into a matrix on disk: ``groupowl convert``."""

from __future__ import annotations

import os
import time
from pathlib import Path

from .. import _files, tables
from .._text import counted, listed
from ..designs.disk.memory import format_bytes
from ..tables import Converted, Kept, Reading, Roles, check_dialect
from .commands import ConvertOptions, command
from .messages import print_paths, printing, say, writing
from .run_folder import check_out, is_matrix_folder
from .terminal import Stages, print_json


@command(example="groupowl convert 'part-*.csv' --targets y1,y2 --out big, then groupowl cv big")
def convert(options: ConvertOptions) -> None:
    """Write large CSV, TSV or Parquet files as a matrix on disk, which the other commands read in pieces.

    Files are read in pieces too, so that they may be larger than the memory. Columns of numbers are the features;
    targets, ids, --keep and columns of text are beside the matrix, where --targets, --groups and the like of the other
    commands find them. The folder is written completely or not at all.
    """
    check_out(options.out, force=options.force, is_ours=is_matrix_folder)
    stages, started = Stages(options.quiet), time.perf_counter()
    roles = Roles(id_column=options.id_column)
    reading = Reading(roles, options.format, dialect=options.dialect())
    check_dialect(reading.dialect, options.files[:1], options.format)
    kept = Kept(*(tuple(given or ()) for given in (options.targets, options.keep, options.drop)))
    target = Path(os.path.realpath(options.out))

    def show(done: int, total: int, n_samples: int) -> None:
        stages.bar.show(f"{counted(n_samples, 'sample')}, of {format_bytes(total)}", done / max(total, 1))

    with writing(options.out), stages.stage(f"Converting {options.file.name}"), _files.fresh_folder(target) as folder:
        found = tables.convert(options.files, folder, kept, reading, show)
    with printing(f"{options.out} was written"):
        _print(found, options, time.perf_counter() - started)


def _print(found: Converted, options: ConvertOptions, seconds: float) -> None:
    """Lines for people, an object for programs, or nothing."""
    if options.json:
        described = {"command": "convert", "files": options.files, **vars(found), "seconds": seconds}
        print_json(described | {"written": [options.out]})
        return
    if options.quiet:
        return
    say(f"{counted(found.n_samples, 'sample')} x {counted(found.n_features, 'feature')} in {seconds:.1f} s.")
    if found.beside:
        say(f"Beside the matrix: {listed(found.beside, shown=10)}.")
    if found.texts:
        say(f"Text, and so no feature: {listed(found.texts, shown=10)}.")
    if found.n_missing:
        say(f"{counted(found.n_missing, 'missing value')} of features: use --missing mean or drop in a fit.")
    print_paths([options.out])
