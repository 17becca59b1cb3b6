"""Work that procedures and cells have in common, done once for all of them; what is selected stays the same.

Cells of a design have the same columns in a draw, and so the same estimated law of these and the same fits of columns
to each other. Distances of knockoffs follow from the covariance alone, where it is known. Kinds of stability selection
follow the same paths of the same halves, some further than others.

Seconds of a procedure that found its work done say nothing: :func:`alone` switches all of it off.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from functools import cache, lru_cache
from hashlib import blake2b
from typing import Any
from unittest.mock import patch

import numpy as np

from groupowl.inference import GaussianKnockoffs, nodewise, stability
from groupowl.inference.stability_halves import Entries, PairOfEntries

from .cells import Cell, Data

_switch = {"is_on": True}


@contextmanager
def alone() -> Iterator[None]:
    """Every procedure does all of its work."""
    _switch["is_on"] = False
    try:
        yield
    finally:
        _switch["is_on"] = True


# Laws of columns ------------------------------------------------------------------------------------------


def known_law(data: Data) -> Any:
    """Knockoffs for the covariance that columns were drawn with; the mean is that of the columns."""
    if not _switch["is_on"]:
        return GaussianKnockoffs.of(data.X, covariance=data.cell.covariance())
    return replace(_law_of(data.cell.d, data.cell.design), mean=data.X.mean(axis=0))


@cache
def _law_of(d: int, design: str) -> Any:
    cell = Cell(d, 1, design)
    V = cell.covariance()
    return GaussianKnockoffs.of(np.vstack([np.eye(d), -np.eye(d)]), covariance=V)


def estimated_law(data: Data) -> Any:
    """Knockoffs for an estimated covariance."""
    if not _switch["is_on"]:
        return GaussianKnockoffs.of(data.X)
    return _estimated_laws(_Columns(data.X))


class _Columns:
    """An array that a cache can tell from others by what is in it."""

    def __init__(self, X: Any) -> None:
        self.X = X
        self.digest = blake2b(np.ascontiguousarray(X)).digest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Columns) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)


@lru_cache(maxsize=1)
def _estimated_laws(columns: _Columns) -> Any:
    return GaussianKnockoffs.of(columns.X)


# Fits of columns to each other ------------------------------------------------------------------------------

_node_residuals = nodewise.node_residuals


@lru_cache(maxsize=1)
def _known_residuals(columns: _Columns, n_threads: int, tol: float) -> Any:
    return _node_residuals(columns.X, n_threads, tol)


def nodewise_fits() -> AbstractContextManager[Any]:
    """While it lasts, the last columns that were fitted to each other are not fitted again."""

    def residuals(X: Any, n_threads: int, tol: float) -> Any:
        if not _switch["is_on"]:
            return _node_residuals(X, n_threads, tol)
        Z, cosines = _known_residuals(_Columns(X), n_threads, tol)
        return Z.copy(order="F"), cosines.copy()

    return patch.object(nodewise, "node_residuals", residuals)


# Paths of halves ------------------------------------------------------------------------------------------

_run_pairs = stability.run_pairs
# The last paths: whose they are, how many features they may have, and what they found.
_paths: list[tuple[Any, int, list[PairOfEntries]]] = []


def paths(data: Data) -> AbstractContextManager[Any]:
    """While it lasts, paths of the same data that are long enough are cut off where shorter ones would have ended."""

    def run_pairs(fits: Any, labels: Any, n_pairs: int, entropy: int, **others: Any) -> list[PairOfEntries]:
        def follow() -> list[PairOfEntries]:
            return _run_pairs(fits, labels, n_pairs, entropy, **others)

        if not _switch["is_on"]:
            return follow()
        whose = (data.cell, data.seed, n_pairs, entropy, tuple(fits.alphas))
        return _cut_paths(whose, fits.most, len(fits.alphas), follow)

    return patch.object(stability, "run_pairs", run_pairs)


def _cut_paths(whose: Any, most: int, n_alphas: int, follow: Callable[[], list[PairOfEntries]]) -> list[PairOfEntries]:
    if not _paths or _paths[0][0] != whose or _paths[0][1] < most:
        _paths[:] = [(whose, most, follow())]
    return [(cut(first, most, n_alphas), cut(second, most, n_alphas)) for first, second in _paths[0][2]]


def cut(entries: Entries, most: int, n_alphas: int) -> Entries:
    """What a path has found before it had more than ``most`` candidates, of features that are units of their own."""
    n_candidates = np.cumsum(np.bincount(entries.candidate_at, minlength=n_alphas))[:n_alphas]
    n_used = min(entries.n_used, int(np.searchsorted(n_candidates, most, side="right")))
    is_there = entries.candidate_at < n_used
    selected_at = entries.selected_at[is_there]
    return Entries(
        entries.features[is_there],
        entries.candidate_at[is_there],
        np.where(selected_at < n_used, selected_at, n_alphas),
        n_used,
        entries.n_short if n_used == entries.n_used else 0,
    )
