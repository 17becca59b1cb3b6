"""Two sheets joined row by row: by ids, or by their order where there are none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .._typing import IndexArray
from .errors import TableError, counted, listed


@dataclass(frozen=True, eq=False)
class Match:
    """Rows of two files that belong together.

    Attributes
    ----------
    left, right : ndarray of int
        Rows of the data and of the targets, in the order of the data.
    only_left, only_right : tuple of str
        Ids that are in one of the files only.
    in_order : bool
        Whether rows belong together by their order, for lack of ids.
    """

    left: IndexArray
    right: IndexArray
    only_left: tuple[str, ...] = ()
    only_right: tuple[str, ...] = ()
    in_order: bool = False

    @property
    def is_complete(self) -> bool:
        """Whether every id has a partner."""
        return not self.only_left and not self.only_right


def match_rows(left: Sequence[str], right: Sequence[str], sources: tuple[str, str]) -> Match:
    """Rows with equal ids; ids that occur twice, and files without a common one, are refused."""
    for ids, source in zip((left, right), sources, strict=True):
        _check_ids(ids, source)
    places = {name: i for i, name in enumerate(right)}
    known = set(left)
    rows = [i for i, name in enumerate(left) if name in places]
    if not rows:
        raise TableError(
            f"no id of {sources[0]} is in {sources[1]}: the first has {listed(left, shown=3)}, the second "
            f"{listed(right, shown=3)}. Check --id-column, or --transpose if samples are columns."
        )
    return Match(
        np.array(rows, dtype=np.intp),
        np.array([places[left[i]] for i in rows], dtype=np.intp),
        tuple(name for name in left if name not in places),
        tuple(name for name in right if name not in known),
    )


def match_order(n_left: int, n_right: int, sources: tuple[str, str]) -> Match:
    """Rows in the order of the files, which must have equally many."""
    if n_left != n_right:
        raise TableError(
            f"{sources[0]} has {counted(n_left, 'sample')}, but {sources[1]} has {n_right}. Without --id-column they "
            "are joined in order; name the column that has the ids of the samples in both."
        )
    rows = np.arange(n_left)
    return Match(rows, rows, in_order=True)


def _check_ids(ids: Sequence[str], source: str) -> None:
    empty = [i + 1 for i, name in enumerate(ids) if not name]
    if empty:
        raise TableError(
            f"{source}: {counted(len(empty), 'sample')} without an id (row {listed(empty)}). Give every sample one."
        )
    seen: set[str] = set()
    twice = [name for name in ids if name in seen or seen.add(name)]  # type: ignore[func-returns-value]
    if twice:
        raise TableError(
            f"{source}: {counted(len(set(twice)), 'id')} more than once: {listed(dict.fromkeys(twice))}. "
            "Give every sample an id of its own."
        )
