"""Data in blocks of rows on Dask, where X and sample space stay; and targets and labels as users give them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ...inputs import check_labels, classes_of, distinct_labels, one_hot
from ..base import is_dask
from .blocks import blocks_of, row_chunks, summed
from .dask_design import DaskDesign

__all__ = ["DaskDesign", "encode_labels_of_blocks", "row_chunks", "row_wise"]


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
    (parts,) = summed((_labels_of_block, *map(blocks_of, arrays)))
    classes = classes_of(distinct_labels(np.concatenate(parts)))
    encode, chunks = partial(one_hot, classes=classes), (labels.chunks[0], (len(classes),))
    return classes, labels.map_blocks(encode, dtype=np.float64, new_axis=1, chunks=chunks)


def _labels_of_block(labels: Any, weight: Any = None) -> list[Any]:
    """The different labels, in a list: sums of these are lists of all blocks."""
    labels = check_labels(labels)
    return [distinct_labels(labels if weight is None else labels[np.asarray(weight) > 0])]
