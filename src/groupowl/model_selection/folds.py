"""Which samples train and which test: splits of any kind, checked."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._checks import rectangular_array
from .._typing import FloatArray, IndexArray


@dataclass(frozen=True, eq=False)
class Fold:
    """Indices of the samples of positive weight that a model is fitted to, and of those it is scored on."""

    train: IndexArray
    test: IndexArray


def check_folds(splits: Iterable[Any], sample_weight: FloatArray) -> list[Fold]:
    """Folds from pairs of indices or masks; samples of weight zero, and folds that test no others, are not there."""
    found = [_check_fold(i, split, sample_weight) for i, split in enumerate(splits)]
    folds = [fold for fold in found if len(fold.test)]
    if not folds:
        raise ValueError(
            "cv yields no samples to score: at least one split needs a test sample of positive weight. "
            "If cv is a generator, it may be used up; give a list of splits instead."
        )
    return folds


def are_complements(folds: Iterable[Fold], n_samples: int) -> bool:
    """Whether each fold trains on exactly those of so many samples that it does not test."""
    return all(len(fold.train) + len(fold.test) == n_samples and _are_disjoint(fold) for fold in folds)


def are_partition(folds: list[Fold], n_samples: int) -> bool:
    """Whether each of so many samples is tested exactly once."""
    tested = np.concatenate([fold.test for fold in folds])
    return len(tested) == n_samples == len(np.unique(tested))


def _are_disjoint(fold: Fold) -> bool:
    both = np.concatenate([fold.train, fold.test])
    return len(np.unique(both)) == len(both)


def _check_fold(i: int, split: Any, sample_weight: FloatArray) -> Fold:
    try:
        train, test = split
    except (TypeError, ValueError) as error:
        raise ValueError(f"cv must yield pairs (train, test) of indices, but split {i} is {split!r}.") from error
    present = [_check_indices(i, name, part, sample_weight) for name, part in (("train", train), ("test", test))]
    if len(present[0]) == 0:
        raise ValueError(
            f"split {i} of cv has no training samples of positive weight. Use fewer folds, or a splitter that keeps "
            "samples of positive weight in every training set."
        )
    return Fold(*present)


def _check_indices(i: int, name: str, part: Any, sample_weight: FloatArray) -> IndexArray:
    n_samples, indices = len(sample_weight), rectangular_array(f"the {name} part of split {i} of cv", part)
    if indices.dtype == bool and indices.shape == (n_samples,):
        indices = np.flatnonzero(indices)
    if indices.size == 0:
        return np.zeros(0, dtype=np.intp)
    if indices.ndim != 1 or indices.dtype.kind not in "iu":
        raise ValueError(
            f"the {name} samples of split {i} of cv must be indices or a mask, got an array of shape {indices.shape} "
            f"and dtype {indices.dtype}."
        )
    if indices.min() < -n_samples or indices.max() >= n_samples:
        raise ValueError(
            f"the {name} samples of split {i} of cv run from {indices.min()} to {indices.max()}, but there are "
            f"{n_samples} samples. The splits must have been made for the X and y of this fit."
        )
    return np.asarray(indices[sample_weight[indices] > 0.0] % n_samples, dtype=np.intp)
