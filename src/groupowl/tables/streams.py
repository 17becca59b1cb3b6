"""Files larger than memory, streamed into a folder: a matrix of the features, and the other columns beside it.

The folder has ``X.npy``, which solvers read in pieces (:class:`groupowl.MemmapDesign` takes the folder), the names of
its columns in ``_matrix.json``, and ``_samples.parquet`` with what is no feature: targets, ids, groups, weights, text.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np

from .._text import listed
from ..designs.disk.formats import NpyWriter
from ..designs.disk.matrix_folder import INDEX, MATRIX, SAMPLES, MatrixFolder
from .readers import FORMATS, format_name
from .sheet import Sheet
from .table import Dialect, NumberedNames, Reading, TableError
from .text_files import (
    COMPRESSIONS,
    SPACES,
    Head,
    arrow_reader,
    broken_text,
    find_cell,
    parsed_numbers,
    read_head,
    without_gaps,
)

# Bytes of a piece of text, of which Arrow reads up to 32 ahead, or of numbers; rows that are longer take more.
_BLOCK_BYTES = 1 << 20
_ROWS_OF_BLOCK = 8
_LEAST_BUFFER = 1 << 12
_BAD_CELL = re.compile(r"In CSV column #(\d+).*?invalid value '(.*?)'", re.DOTALL)

#: What is told while files are read: bytes done, bytes in all, samples so far.
Progress = Callable[[int, int, int], None]


@dataclass(frozen=True)
class Kept:
    """Columns of the files that are no features, as users name them.

    Attributes
    ----------
    targets : tuple of str
        Columns to explain.
    beside : tuple of str
        Others that are kept beside the matrix: groups, weights, and the like.
    drop : tuple of str
        Columns that are left out.
    """

    targets: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()


@dataclass(frozen=True)
class Converted:
    """Summary of a conversion: shape of the matrix, other columns and which of them are text, missing cells."""

    n_samples: int
    n_features: int
    beside: tuple[str, ...]
    texts: tuple[str, ...]
    n_missing: int


def convert(files: Sequence[Path], folder: Path, kept: Kept, reading: Reading, progress: Progress) -> Converted:
    """Stream files into a folder that exists and is empty.

    Parameters
    ----------
    files : sequence of Path
        CSV, TSV or Parquet files with the same columns, whose rows are below each other.
    folder : Path
    kept : Kept
        Columns that are no features; so is every column of text.
    reading : Reading
        How cells are written, which column has the ids, and the format where suffixes do not say it.
    progress : callable
        Called after each piece.
    """
    ids = reading.roles.id_columns[:1]
    streams = [_open(path, reading, ids) for path in files]
    first, sizes = streams[0], [path.stat().st_size for path in files]
    for stream in streams[1:]:
        _check_names(first, stream)
    plan = _plan(first, kept, ids)
    beside = tuple(first.names[j] for j in plan.beside)
    done, total, n_missing = 0, sum(sizes), 0
    with NpyWriter(folder / MATRIX, len(plan.features)) as matrix, _beside_writer(folder / SAMPLES) as samples:
        for stream, size in zip(streams, sizes, strict=True):
            for columns, n_read in stream.pieces(plan.types):
                X = _numbers(stream.path, first.names, columns, plan.features)
                n_missing += int(np.isnan(X).sum())
                matrix.write(X)
                samples(beside, [columns[j] for j in plan.beside])
                progress(done + n_read, total, matrix.n_rows)
            done += size
    if matrix.n_rows == 0:
        raise TableError(f"{files[0]} has no rows below its header. Give a file with samples.")
    names = [first.names[j] for j in plan.features]
    targets = [first.names[j] for j in plan.targets]
    MatrixFolder(names, targets).write(folder)
    texts = tuple(first.names[j] for j in plan.texts)
    return Converted(matrix.n_rows, len(names), tuple(name for name in beside if name != INDEX), texts, n_missing)


# What is what ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Plan:
    """Columns by what becomes of them, and the types in which pieces are read; texts are beside for being text."""

    features: list[int]
    beside: list[int]
    targets: list[int]
    texts: list[int]
    types: list[Any]


def _plan(stream: _Stream, kept: Kept, ids: Collection[str | None]) -> _Plan:
    import pyarrow as pa

    sheet = Sheet(str(stream.path), NumberedNames(others=tuple(stream.names)))
    named = [name for name in ids if name is not None]
    targets, drop = sheet.find_columns("--targets", kept.targets), sheet.find_columns("--drop", kept.drop)
    asked = [*sheet.find_columns("--id-column", named), *targets, *sheet.find_columns("--keep", kept.beside)]
    if both := set(asked) & set(drop):
        raise TableError(f"{listed(sorted(sheet.names[j] for j in both))} is in --drop and kept too. Name it once.")
    are_text = [j for j, kind in enumerate(stream.types) if pa.types.is_string(kind) and j not in drop]
    beside = sorted({*asked, *are_text})
    features = [j for j in range(len(stream.names)) if j not in {*beside, *drop}]
    if not features:
        what = f"{stream.path} has no column of numbers left for the matrix"
        raise TableError(f"{what}. Check --targets, --keep, --drop, and --sep and --decimal for how cells are written.")
    texts = [j for j in are_text if j not in asked and stream.names[j] != INDEX]
    return _Plan(features, beside, targets, texts, stream.types)


def _check_names(first: _Stream, other: _Stream) -> None:
    if list(first.names) == list(other.names):
        return
    lacks = [name for name in first.names if name not in set(other.names)]
    has = [name for name in other.names if name not in set(first.names)]
    parts = [f"lacks {listed(lacks)}" if lacks else "", f"has also {listed(has)}" if has else ""]
    how = " and ".join(filter(None, parts)) or "has them in another order"
    remedy = "All files must have the same columns in the same order: leave it out, or write it again."
    raise TableError(f"{other.path} does not have the columns of {first.path}: it {how}. {remedy}")


def _numbers(path: Path, names: Sequence[str], columns: Sequence[Any], features: Sequence[int]) -> Any:
    """A piece of the matrix, by rows; NaN where a cell is empty."""
    X = np.empty((len(columns[0]), len(features)))
    for k, j in enumerate(features):
        X[:, k] = columns[j].cast("float64", safe=False).to_numpy(zero_copy_only=False)
    if np.isinf(X).any():
        name = names[features[int(np.flatnonzero(np.isinf(X).any(axis=0))[0])]]
        raise TableError(f"{path} has infinite values in column {name!r}. Correct them, or use --drop {name}.")
    return X


@contextmanager
def _beside_writer(path: Path) -> Iterator[Callable[[Sequence[str], list[Any]], None]]:
    """A function that adds columns to a Parquet file, which is made if there are any."""
    import pyarrow as pa
    from pyarrow import parquet

    writers: list[Any] = []

    def write(names: Sequence[str], columns: list[Any]) -> None:
        if not columns:
            return
        table = pa.table(columns, names=list(names))
        if not writers:
            writers.append(parquet.ParquetWriter(path, table.schema))
        writers[0].write_table(table)

    try:
        yield write
    finally:
        for writer in writers:
            writer.close()


# Files ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Stream:
    """A file that is read in pieces: names and types of its columns, as its beginning shows them.

    ``pieces`` are columns of some rows in given types, and how many bytes of the file were read for them.
    """

    path: Path
    names: Sequence[str]
    types: list[Any]
    pieces: Callable[[list[Any]], Iterator[tuple[list[Any], int]]]


def _open(path: Path, reading: Reading, ids: Collection[str | None]) -> _Stream:
    name = format_name(path, reading.format)
    if name in ("csv", "tsv"):
        return _open_text(path, "\t" if name == "tsv" else None, reading.dialect, ids)
    if name == "parquet":
        return _open_parquet(path)
    known = f"{FORMATS['csv'].name}s, TSV and Parquet files are streamed"
    remedy = "The commands fit, cv and path read it as it is."
    if path.is_dir():
        remedy = f"Give the files of a folder by a pattern, such as '{path}/*.parquet'; a matrix is read as it is."
    raise TableError(f"{path} is a {FORMATS[name].name}: only {known}. {remedy}")


def _simple(kind: Any) -> Any:
    """The type in which columns are streamed: numbers, truth values or text."""
    import pyarrow as pa
    from pyarrow import types

    if types.is_boolean(kind):
        return pa.bool_()
    is_number = any(test(kind) for test in (types.is_integer, types.is_floating, types.is_decimal, types.is_null))
    return pa.float64() if is_number else pa.string()


def _open_text(path: Path, delimiter: str | None, dialect: Dialect, ids: Collection[str | None]) -> _Stream:
    import pyarrow as pa

    head = read_head(path, delimiter, dialect)
    if head.separator == SPACES:
        remedy = "Write it with one character between cells, and give that."
        raise TableError(f"{path}: --sep space is for files that fit in memory. {remedy}")
    texts = dict.fromkeys(head.texts(ids), pa.string())
    with _reader(path, head, dialect, texts) as (batches, _):
        batch = next(iter(batches), None)
    if batch is None:
        raise TableError(broken_text(path, head, dialect))
    parsed = [column if j in texts else parsed_numbers(column, dialect) for j, column in enumerate(batch.columns)]
    kinds = [_simple(column.type) for column in parsed]

    def pieces(types: list[Any]) -> Iterator[tuple[list[Any], int]]:
        # numbers with marks between thousands are read as text
        marked = dialect.thousands is not None
        read = {j: pa.string() if marked and kind == pa.float64() else kind for j, kind in enumerate(types)}
        words = {j: kind for j, kind in enumerate(types) if kind == pa.string()}
        with _reader(path, head, dialect, read) as (batches, place), _words(path, head, dialect, words) as texts:
            # both have blocks of the same bytes, and so the same rows
            for batch, quoted in zip(batches, texts, strict=bool(words)):
                columns = list(batch.columns)
                for j, kind in enumerate(types):
                    if columns[j].type != kind:
                        columns[j] = _as_numbers(path, head, j, columns[j], dialect)
                for j, column in zip(words, quoted, strict=True):
                    columns[j] = without_gaps(column, dialect)
                yield columns, place()

    names = [INDEX, *head.names[1:]] if head.names_rows else list(head.names)
    return _Stream(path, names, kinds, pieces)


@contextmanager
def _words(path: Path, head: Head, dialect: Dialect, types: Mapping[int, Any]) -> Iterator[Iterable[Sequence[Any]]]:
    """The columns of text of each piece, in which quoted words such as "NA" are text; nothing if there are none."""
    if not types:
        yield repeat(())
        return
    with _reader(path, head, dialect, types, only_texts=True) as (batches, _):
        yield (batch.columns for batch in batches)


@contextmanager
def _reader(
    path: Path, head: Head, dialect: Dialect, types: Any, *, only_texts: bool = False
) -> Iterator[tuple[Any, Callable[[], int]]]:
    """Batches of a text file, and a function that tells how many of its bytes were read."""
    import pyarrow as pa

    with path.open("rb") as raw:
        opener: Any = COMPRESSIONS.get(path.suffix.lower())
        file = raw if opener is None else opener(raw)
        try:
            block = max(_BLOCK_BYTES, _ROWS_OF_BLOCK * head.row_bytes)
            yield arrow_reader("open_csv", file, head, dialect, types, block, only_texts=only_texts), raw.tell
        except UnicodeError as error:
            raise TableError(broken_text(path, None, dialect)) from error
        except pa.ArrowInvalid as error:
            found = _BAD_CELL.search(str(error))
            words = broken_text(path, head, dialect)
            if found is not None and "invalid UTF8" not in str(error):
                words = _no_number(path, head, int(found[1]), found[2], dialect)
            raise TableError(words) from error


def _as_numbers(path: Path, head: Head, j: int, column: Any, dialect: Dialect) -> Any:
    """A piece of a column of text as numbers; refuses what is none."""
    import pyarrow as pa

    found = parsed_numbers(column, dialect)
    if pa.types.is_string(found.type):
        wrong = [cell for cell in column.to_pylist() if cell is not None and dialect.plain(cell) is None]
        raise TableError(_no_number(path, head, j, wrong[0], dialect))
    return found


def _no_number(path: Path, head: Head, j: int, cell: str, dialect: Dialect) -> str:
    """A message about a cell in a column that has begun with numbers, whose row is looked for."""
    name, row = head.names[j], find_cell(path, head, j, cell, dialect)
    what = f"{path}: column {name!r} has {cell!r} in row {row}, which is not a number, unlike its first cells"
    return f"{what}. Correct it, or leave the column out with --drop {shlex.quote(name)}."


def _open_parquet(path: Path) -> _Stream:
    import pyarrow as pa
    from pyarrow import parquet

    path.open("rb").close()  # what forbids it is told as for other files
    try:
        with parquet.ParquetFile(path, pre_buffer=False) as file:
            schema, n_rows = file.schema_arrow, file.metadata.num_rows
    except pa.ArrowException as error:
        raise TableError(f"{path} cannot be read as a Parquet file: {error}. Write or copy it again.") from error
    stored = (schema.pandas_metadata or {}).get("index_columns", [])
    names = [INDEX if stored == [name] else name for name in schema.names]
    size = path.stat().st_size

    def pieces(types: list[Any]) -> Iterator[tuple[list[Any], int]]:
        step, done = max(1, _BLOCK_BYTES // (8 * len(names))), 0
        # without buffers, all pages of a group of rows would be in memory, and not one of each column
        buffer = max(_LEAST_BUFFER, _BLOCK_BYTES // len(names))
        with parquet.ParquetFile(path, pre_buffer=False, buffer_size=buffer) as file:
            for batch in file.iter_batches(batch_size=step, use_threads=False):
                done += batch.num_rows
                try:
                    columns = [column.cast(kind, safe=False) for column, kind in zip(batch.columns, types, strict=True)]
                except pa.ArrowException as error:
                    raise TableError(f"{path} has columns that are neither numbers nor text: {error}") from error
                yield columns, size * done // max(n_rows, 1)

    kinds = [pa.string() if name == INDEX else _simple(kind) for name, kind in zip(names, schema.types, strict=True)]
    return _Stream(path, names, kinds, pieces)
