"""Dask collections as users give them: arrays and data frames in chunks of rows, and labels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ..._checks import REAL_KINDS, rectangular_array
from ..._dask import as_row_chunks, is_dask
from ...inputs import check_labels, classes_of, distinct_labels, feature_names, one_hot
from .blocks import Blocks, Recipe, persisted, summed
from .tasks import Place


def row_chunks(name: str, values: Any) -> tuple[Any, list[str] | None]:
    """A Dask array of one or two dimensions and known shape, and the names of its columns, if it has any."""
    import dask.array as da

    names = None
    if not is_dask(values):
        names = feature_names(values)
        values = da.from_array(rectangular_array(name, values), chunks=-1)
    array, far_names = as_row_chunks(name, values)
    if array.ndim not in (1, 2):
        raise ValueError(f"{name} must have one or two dimensions, got an array of shape {array.shape}.")
    return array, far_names or names


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
    blocks = [blocks_of(array) for array in arrays]
    classes = classes_of(summed((_block_classes, *blocks))[0].labels)
    encode, chunks = partial(one_hot, classes=classes), (labels.chunks[0], (len(classes),))
    return classes, labels.map_blocks(encode, dtype=np.float64, new_axis=1, chunks=chunks)


@dataclass(frozen=True)
class _Distinct:
    """Labels that occur."""

    labels: Any

    def __add__(self, other: _Distinct) -> _Distinct:
        return _Distinct(distinct_labels(np.concatenate([self.labels, other.labels])))


def _block_classes(labels: Any, weight: Any = None) -> _Distinct:
    labels = check_labels(labels)
    return _Distinct(distinct_labels(labels if weight is None else labels[np.asarray(weight) > 0]))


def what_else(X: Any, array: Any) -> str:
    """What a collection has instead of numbers, for a message."""
    kinds = dict(getattr(X, "dtypes", {}))
    others = [f"{name!r} ({dtype})" for name, dtype in kinds.items() if getattr(dtype, "kind", "O") not in REAL_KINDS]
    if not others:
        return f"got a Dask array of dtype {array.dtype}"
    more = f" and {len(others) - 5} more" if len(others) > 5 else ""
    return f"but its columns {', '.join(others[:5])}{more} do not"


def blocks_of(array: Any) -> Blocks:
    """An array in chunks of rows; where every block is made from nothing but a few tasks of its own, as recipes."""
    import dask
    from dask.core import flatten

    graph = dict(array.__dask_graph__())
    if all(map(_is_of_dask, graph.values())):
        (array,) = dask.optimize(array)  # which forgets arrays that are on the workers
        graph = dict(array.__dask_graph__())
    keys = list(flatten(array.__dask_keys__()))
    if all(_is_task(node) or type(node).__name__ == "Alias" for node in graph.values()):  # no data to carry along
        recipes = [_recipe(graph, key) for key in keys]
        if sum(len(recipe.graph) for recipe in recipes) <= len(graph):  # no task of several blocks
            return Blocks(list(recipes))
    return Blocks(keys, graph)


def _recipe(graph: dict[Any, Any], key: Any) -> Recipe:
    """The part of a task graph that a block needs."""
    from dask.core import get_dependencies

    needed, new = {}, [key]
    while new:
        name = new.pop()
        if name not in needed:
            needed[name] = graph[name]
            new += get_dependencies(graph, name)
    return Recipe(needed, key)


def present_blocks(array: Any) -> tuple[Blocks, list[Place]]:
    """Blocks of an array in chunks of rows, without empty ones, and their places."""
    places = [Place(number, int(size)) for number, size in enumerate(array.chunks[0]) if size]
    blocks = blocks_of(array).chosen([place.number for place in places])
    blocks.is_fleeting = not blocks.graph or any(map(_is_task, blocks.graph.values()))
    # Where local arrays were made a Dask array, they would travel to the workers in every pass.
    return blocks if blocks.is_fleeting else persisted(blocks), places


def _is_task(node: Any) -> bool:
    """Whether something is to be computed: not where arrays were persisted, or local from the beginning."""
    if isinstance(node, tuple):
        return bool(node) and callable(node[0])
    return _is_of_dask(node) and type(node).__name__ not in ("DataNode", "Alias")


def _is_of_dask(node: Any) -> bool:
    """Whether a node of a graph is a task or data, and not something that a cluster has."""
    return isinstance(node, tuple) or type(node).__module__.startswith("dask.")
