"""Collections of Dask as users give them, and waiting for a cluster. Dask itself is imported where there is one."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from ._checks import numeric_array, refuse_mask

# How long a cluster may be without workers, and where Dask's configuration says otherwise.
_PATIENCE = "300 s"
_PATIENCE_KEY = "groupowl.worker-timeout"
# Seconds between two looks at the workers of a cluster that computes.
_LOOK_EVERY = 1.0
# Seconds for the way of a result to this process; its worker may be lost meanwhile.
_FETCH_WITHIN = 600.0


def is_dask(values: Any) -> bool:
    """Whether this is a collection of Dask."""
    return hasattr(values, "__dask_graph__") and type(values).__module__.startswith(("dask.", "dask_expr."))


def as_row_chunks(
    name: str, values: Any, convert: Callable[[str, Any], Any] = numeric_array
) -> tuple[Any, list[str] | None]:
    """A Dask array of known shape in chunks of rows, and the names of its columns, if it has any.

    Local data are converted to an array first.
    """
    import dask.array as da

    is_frame = hasattr(type(values), "to_dask_array")
    if is_dask(values) and not is_frame and not isinstance(values, da.Array):
        kind = f"{type(values).__module__.partition('.')[0]} {type(values).__name__}"
        raise TypeError(f"{name} must be a Dask array or data frame, got a {kind}. Convert it first.")
    columns = list(getattr(values, "columns", []))
    names = columns if columns and all(isinstance(column, str) for column in columns) else None
    if not is_dask(values):
        values = da.from_array(convert(name, values), chunks=-1)
    elif is_frame:
        await_workers()
        values = values.to_dask_array(lengths=True)
    refuse_mask(name, values._meta)
    if any(np.isnan(length) for length in values.shape):
        await_workers()
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


# Clusters -----------------------------------------------------------------------------------------------


def computed(collection: Any) -> Any:
    """The value of a collection; a cluster that is left without workers ends in an error, not in waiting."""
    import dask

    client = _client()
    if client is None:
        return dask.compute(collection)[0]
    from distributed import wait

    future = client.compute(collection)

    def value(seconds: float) -> Any:
        wait(future, timeout=seconds)
        return future.result(timeout=_FETCH_WITHIN)

    try:
        return _watched(client, value, lambda: future.status == "error")
    finally:
        future.release()  # now, not when Python finds that nobody has it


def await_workers() -> None:
    """Wait for the first worker, where a cluster would compute."""
    client = _client()
    if client is not None and not client.scheduler_info()["workers"]:
        _watched(client, lambda seconds: client.wait_for_workers(1, timeout=seconds))


def _client() -> Any:
    """The client of the cluster on which Dask would compute now; None where it would compute in this process."""
    from dask.base import get_scheduler

    owner = getattr(get_scheduler(), "__self__", None)
    return owner if type(owner).__module__.startswith("distributed.") else None


def _watched(client: Any, wait: Callable[[float], Any], has_failed: Callable[[], bool] = lambda: False) -> Any:
    """What waiting returns, for as long as there are workers and some time longer."""
    patience = _patience()
    last_seen = time.monotonic()
    while True:
        try:
            return wait(max(min(_LOOK_EVERY, patience), 1e-3))
        except TimeoutError:
            if has_failed():  # an error of the computation itself
                raise
            if client.scheduler_info()["workers"]:
                last_seen = time.monotonic()
            elif time.monotonic() - last_seen >= patience:
                raise TimeoutError(
                    f"the Dask cluster {client.scheduler.address} has 0 workers, and none came within {patience:g} "
                    "seconds. Start workers; or wait longer for them: dask.config.set({"
                    f"{_PATIENCE_KEY!r}: '30 minutes'}})."
                ) from None


def _patience() -> float:
    """Seconds that Dask's configuration allows."""
    import dask
    from dask.utils import parse_timedelta

    value = dask.config.get(_PATIENCE_KEY, _PATIENCE)
    try:
        seconds = float(parse_timedelta(value))
    except (TypeError, ValueError, KeyError) as error:
        raise ValueError(f"Dask's setting {_PATIENCE_KEY!r} must be a time such as '300 s', got {value!r}.") from error
    if not seconds >= 0.0:
        raise ValueError(f"Dask's setting {_PATIENCE_KEY!r} must not be negative, got {value!r}.")
    return seconds
