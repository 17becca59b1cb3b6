"""Collections of Dask as users give them, and waiting for a cluster. Dask itself is imported where there is one."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ._checks import numeric_array, rectangular_array, refuse_mask
from .inputs import check_labels, classes_of, distinct_labels, feature_names, one_hot

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
    names = feature_names(values) or None
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


def row_chunks(name: str, values: Any) -> tuple[Any, list[str] | None]:
    """The same for targets or weights of one or two dimensions, which may be text."""
    array, names = as_row_chunks(name, values, rectangular_array)
    if array.ndim not in (1, 2):
        raise ValueError(f"{name} must have one or two dimensions, got an array of shape {array.shape}.")
    return array, names


def row_wise(function: Callable[..., Any], array: Any, dtype: Any, width: int | None) -> Any:
    """Apply a row-wise function to a local array, or to a Dask array when it is needed.

    The result has so many columns; None means one dimension.
    """
    if not is_dask(array):
        return function(array)
    if width is None:
        return array.map_blocks(function, dtype=dtype, drop_axis=1)
    return array.map_blocks(function, dtype=dtype, chunks=(array.chunks[0], (width,)))


def encode_labels_of_blocks(y: Any, sample_weight: Any = None) -> tuple[Any, Any]:
    """Classes, sorted, and one-hot targets as a Dask array, for labels on a cluster: one pass over the labels.

    A class whose samples all have weight zero is not there.
    """
    import dask

    labels, _ = row_chunks("y", y)
    labels = labels[:, 0] if labels.ndim == 2 and labels.shape[1] == 1 else labels
    if labels.ndim != 1:
        raise ValueError(f"y must be one label per sample, got an array of shape {labels.shape}.")
    arrays = [labels]
    if sample_weight is not None:
        weight, _ = row_chunks("sample_weight", sample_weight)
        if weight.shape != labels.shape:
            raise ValueError(f"sample_weight must have shape {labels.shape}, got {weight.shape}.")
        arrays.append(weight.rechunk(labels.chunks))
    find, merge = (dask.delayed(function, pure=False) for function in (_labels_of_block, _merged_labels))
    blocks = zip(*(array.to_delayed() for array in arrays), strict=True)
    classes = classes_of(computed(merge([find(*block) for block in blocks])))
    encode, chunks = partial(one_hot, classes=classes), (labels.chunks[0], (len(classes),))
    return classes, labels.map_blocks(encode, dtype=np.float64, new_axis=1, chunks=chunks)


def _labels_of_block(labels: Any, weight: Any = None) -> Any:
    labels = check_labels(labels)
    return distinct_labels(labels if weight is None else labels[np.asarray(weight) > 0])


def _merged_labels(parts: list[Any]) -> Any:
    return distinct_labels(np.concatenate(parts))


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
