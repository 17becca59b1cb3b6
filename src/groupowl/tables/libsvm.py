"""LIBSVM files: ``label index:value ...`` per sample, zeros left out."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file

from ..designs.disk.memory import most_columns, too_many_columns
from .errors import TableError
from .opening import open_bytes

_NUMBER = rb"[+-]?(?:\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?|inf(?:inity)?|nan)"
_LINE = re.compile(
    rb"\s*(?:%s(?:,%s)*)?(?:\s+qid:\d+)?(?:\s+\d+:%s)*\s*(?:#.*)?" % (_NUMBER, _NUMBER, _NUMBER), re.IGNORECASE
)
_INDEX = re.compile(rb"\s0*(\d+):")
# Digits that are read of an index; with more it is too large for anything.
_LONGEST_INDEX = 18


class LibsvmData(NamedTuple):
    """A sparse matrix, one label (or list of labels) per row, and the index that the first column has in the file."""

    X: Any
    labels: Any
    first_index: int


def read_libsvm(path: Path, *, first_index: int | None = None, multilabel: bool = False) -> LibsvmData:
    """Read a file; without ``first_index`` columns count from 0 if there is a 0, else from 1."""
    try:
        with open_bytes(path) as file:
            X, labels = load_svmlight_file(file, zero_based=True, multilabel=multilabel)
    except (ValueError, OverflowError):  # perhaps for an index that no integer of the matrix holds
        _check_indices(path)
        raise
    if too_many_columns(X.shape[1]):  # nothing of that size is there yet
        _check_indices(path)
    has_zero = bool(len(X.indices)) and X.indices.min() == 0
    start = (0 if has_zero else 1) if first_index is None else first_index
    if start and has_zero:
        raise ValueError(f"it has the index 0, but columns count from {start}.")
    if start and X.shape[1]:  # there is no column 0
        X = sp.csr_array((X.data, X.indices - 1, X.indptr), shape=(X.shape[0], X.shape[1] - 1))
    return LibsvmData(sp.csr_array(X), labels, start)


def _check_indices(path: Path) -> None:
    """Refuse the first line whose indices imply more columns than there can be."""
    most = most_columns()
    with open_bytes(path) as file:
        for number, line in enumerate(file, start=1):
            for index in _INDEX.findall(line.partition(b"#")[0]):
                value = int(index[:_LONGEST_INDEX])
                if value > most:
                    shown = str(value) if len(index) <= _LONGEST_INDEX else f"{value}..."
                    raise TableError(
                        f"{path}: line {number} has the index {shown}, and so X has {too_many_columns(value)}."
                    )


def has_many_labels(path: Path) -> bool:
    """Whether the first sample has a list of labels, ``1,3 2:0.5``."""
    with open_bytes(path) as file:
        samples = (line.partition(b"#")[0].split(maxsplit=1) for line in file)
        first = next((words for words in samples if words), [b""])
    return b"," in first[0]


def label_columns(labels: list[Any]) -> tuple[list[int | float], Any]:
    """Labels that occur, ascending, and a 0/1 column for each."""
    known = sorted({label for row in labels for label in row})
    places = {label: k for k, label in enumerate(known)}
    Y = np.zeros((len(labels), len(known)))
    for i, row in enumerate(labels):
        Y[i, [places[label] for label in row]] = 1.0
    return [int(label) if float(label).is_integer() else label for label in known], Y


def first_bad_line(path: Path) -> int | None:
    """Number of the first line that is not in the format; None if all are."""
    with open_bytes(path) as file:
        return next(
            (number for number, line in enumerate(file, start=1) if not _LINE.fullmatch(line.rstrip(b"\r\n"))), None
        )
