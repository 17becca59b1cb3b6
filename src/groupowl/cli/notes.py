"""What looks odd about the data or the choice of alpha, and the option that helps: a sentence each, or none."""

from __future__ import annotations

import shlex
from typing import Any

import numpy as np

from .._typing import FloatArray
from ..designs import Design, StandardizedDesign, as_design, standardize
from ..estimators.fit_summary import is_at_edge
from ..tables import Table
from ..tables.errors import listed

# Columns whose standard deviations differ by more than this are hardly penalised alike.
_LARGEST_RATIO = 100.0
# Fewer whole numbers in a row may well be a measurement.
_SHORTEST_COUNT = 10


def data_notes(table: Table, *, standardized: bool) -> list[str]:
    """Notes on the features; data that stay on disk are not read for them."""
    if isinstance(table.X, Design):
        return []
    return present(_counter_note(table), None if standardized else _scale_note(table))


def present(*notes: str | None) -> list[str]:
    """The notes that there are."""
    return [note for note in notes if note is not None]


def _scale_note(table: Table) -> str | None:
    """Whether the penalty sees columns of very different sizes."""
    deviations = _penalized_deviations(table)
    varying = np.flatnonzero(deviations > 0.0)
    if len(varying) == 0:
        return None
    smallest, largest = varying[np.argmin(deviations[varying])], varying[np.argmax(deviations[varying])]
    ratio = deviations[largest] / deviations[smallest]
    if ratio <= _LARGEST_RATIO:
        return None
    names = table.feature_names
    return (
        f"Standard deviations of columns differ by a factor of {ratio:.3g} ({names[largest]!r} has the largest, "
        f"{names[smallest]!r} the smallest): --standardize makes the penalty treat them alike."
    )


def _penalized_deviations(table: Table) -> FloatArray:
    """Standard deviations as --standardize has them; zero for columns that are constant or not penalised."""
    design = as_design(table.X)
    weight = np.ones(table.n_samples) if table.sample_weight is None else table.sample_weight
    scaled = standardize(design, design.samples(weight[:, None]), center=True, scale=True)
    assert isinstance(scaled, StandardizedDesign)
    inverse = scaled.inverse_scale
    deviations = np.divide(1.0, inverse, out=np.zeros_like(inverse), where=inverse > 0.0)
    deviations[[table.feature_names.index(name) for name in table.unpenalized]] = 0.0
    return deviations


def _counter_note(table: Table) -> str | None:
    """Whether features number the samples, as rows or patients are numbered."""
    counters = _counters(table)
    if not counters:
        return None
    if len(counters) > 1:
        remedy = "leave them out with --drop" if table.ids is not None else "use --id-column for one, --drop for others"
        return f"Columns {listed(counters)} count the samples; if they name them, {remedy}."
    (name,) = counters
    option = "--id-column" if table.ids is None else "--drop"
    return f"Column {name!r} counts the samples; if it names them, use {option} {shlex.quote(name)}."


def _counters(table: Table) -> list[str]:
    """Features with the whole numbers of a run, each once, in any order; unpenalised ones are wanted as they are."""
    X, n_samples = table.X, table.n_samples
    if not isinstance(X, np.ndarray) or n_samples < _SHORTEST_COUNT:
        return []
    first = X.min(axis=0)
    likely = np.flatnonzero(X.max(axis=0) - first == n_samples - 1)
    found = [j for j in likely if np.array_equal(np.sort(X[:, j]), first[j] + np.arange(n_samples))]
    return [name for name in (table.feature_names[int(j)] for j in found) if name not in table.unpenalized]


def edge_note(estimator: Any) -> str | None:
    """Whether the chosen alpha is the last of a grid that was made from --eps."""
    if not is_at_edge(estimator):
        return None
    return f"The best alpha is the smallest one tried; --eps with a value below {estimator.eps:g} looks further."
