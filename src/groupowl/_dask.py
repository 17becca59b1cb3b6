"""Collections of Dask as users give them. Dask itself is imported where there is one."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from ._checks import numeric_array, refuse_mask


def is_dask(values: Any) -> bool:
    """Whether this is a collection of Dask."""
    return hasattr(values, "__dask_graph__") and type(values).__module__.startswith(("dask.", "dask_expr."))


def as_row_chunks(name: str, values: Any) -> tuple[Any, list[str] | None]:
    """A Dask array of known shape in chunks of rows, and the names of its columns, if it has any."""
    import dask.array as da

    names: list[str] | None = None
    if is_dask(values) and not isinstance(values, da.Array):
        if not hasattr(type(values), "to_dask_array"):
            kind = f"{type(values).__module__.partition('.')[0]} {type(values).__name__}"
            raise TypeError(f"{name} must be a Dask array or data frame, got a {kind}. Convert it first.")
        columns = list(getattr(values, "columns", []))
        names = columns if columns and all(isinstance(column, str) for column in columns) else None
        values = values.to_dask_array(lengths=True)
    elif not is_dask(values):
        values = da.from_array(numeric_array(name, values), chunks=-1)
    refuse_mask(name, values._meta)
    if any(np.isnan(length) for length in values.shape):
        values = values.compute_chunk_sizes()
    if any(len(chunks) > 1 for chunks in values.chunks[1:]):
        warnings.warn(
            f"{name} has {len(values.chunks[1])} chunks along its columns. They are joined, which moves its "
            f"{values.nbytes / 1e6:.3g} MB between workers in every pass: rechunk it once, with "
            f"{name} = {name}.rechunk({{0: 'auto', 1: -1}}).persist().",
            UserWarning,
            stacklevel=2,
        )
        values = values.rechunk(dict.fromkeys(range(1, values.ndim), -1))
    return values, names
