"""Blocks of rows on a Dask cluster: products run where the blocks are, and only feature space comes back."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from ... import _checks as checks
from ..._text import listed
from ..._typing import FloatArray, Handle, IndexArray
from ...inputs import check_labels, classes_of, distinct_labels, one_hot
from ...norm.kernels import nonzero_rows
from ..base import ColumnMoments, Design, LocalDesign, PassCounter, Sum, is_dask
from ..dense import DenseDesign
from ..factors import NO_SAMPLES, CompressedData
from ..observed import FAR_PATTERNS, ObservedDesign
from ..sparse import SparseDesign
from ..statistics import PairwiseSum, SufficientStatistics, statistics_of_samples
from .blocks import Blocks, blocks_of, exported, fetched, row_chunks, summed

# A task graph takes as long as so many floating-point operations, and as moving so many bytes.
_JOURNEY = 1e8
_JOURNEY_BYTES = 1 << 18
# Inner steps that a working set is expected to need, for the choice between moving its columns and stepping far away.
_EXPECTED_STEPS = 100


@dataclass(frozen=True)  # no tuple, which Dask would look into
class Place:
    """Where a block is among the chunks of X, and how many rows it has."""

    number: int
    size: int


class DaskDesign(Design):
    """X in blocks of rows on a Dask cluster, dense or sparse.

    Sample-space arrays stay on the workers; coefficients, gradients and Gram matrices of working sets are all that
    travels, and columns of a working set where that is less. Blocks that a worker loses are computed again by Dask.

    X is not kept in the workers' memory unless it was persisted: Dask computes its blocks, or reads them, in every
    pass, and no more than one of them for each thread is in memory at a time. Where there is an intercept, a dual point
    depends on sums over all samples, and a certificate takes two such passes instead of one.

    A cluster that has no workers for five minutes ends the computation with a ``TimeoutError``; another time is set by
    ``dask.config.set({"groupowl.worker-timeout": "30 minutes"})``, or the environment variable
    ``DASK_GROUPOWL__WORKER_TIMEOUT``.

    Parameters
    ----------
    X : dask.array.Array or dask.dataframe.DataFrame of shape (n_samples, n_features)
        Data in chunks of rows. Chunks along columns are joined, with a warning; unknown chunk sizes are computed.

    Attributes
    ----------
    feature_names : list of str or None
        Names of the columns of a data frame.

    Examples
    --------
    >>> import dask.array as da
    >>> import groupowl as go
    >>> data = go.datasets.make_correlated_groups(60, 20, 3, random_state=0)
    >>> X = da.from_array(data.X, chunks=(20, 20))
    >>> lam = 0.5 * go.lam_max(data.X, data.Y, "oscar") * go.weights.oscar(20)
    >>> go.solve(go.DaskDesign(X), data.Y, lam).converged
    True
    """

    journey = _JOURNEY
    is_distributed = True

    def __init__(self, X: Any) -> None:
        array, names = row_chunks("X", X, checks.numeric_array)
        checks.check_data_shape(array.shape)
        if array.dtype.kind not in checks.REAL_KINDS:
            what = f"got a Dask array of dtype {array.dtype}"
            kinds = dict(getattr(X, "dtypes", {}))  # of a data frame
            others = [name for name, dtype in kinds.items() if getattr(dtype, "kind", "O") not in checks.REAL_KINDS]
            if others:
                shown = listed([f"{name!r} ({kinds[name]})" for name in others], quoted=False)
                what = f"but its columns {shown} do not"
            raise TypeError(f"X must hold real numbers, {what}. Convert it first.")
        blocks = blocks_of(array)
        if not blocks.is_fleeting:  # local arrays would travel to the workers in every pass
            blocks = blocks_of(array.persist())
        self.places = [Place(number, int(size)) for number, size in enumerate(array.chunks[0]) if size]
        self.X = blocks.chosen([place.number for place in self.places])
        self.shape = (int(array.shape[0]), int(array.shape[1]))
        self.dtype = array.dtype if array.dtype in (np.float32, np.float64) else np.dtype(np.float64)
        self.passes = PassCounter()
        self.unit = 1.0 / self.n_features
        self.feature_names = names

    def _like(self, X: Blocks, places: list[Place], n_features: int) -> DaskDesign:
        """The same with other blocks."""
        other = copy(self)
        other.X = X
        other.places = places
        other.shape = (sum(place.size for place in places), n_features)
        other.feature_names = None
        other._known_moments = None
        return other

    # Between the spaces -----------------------------------------------------------------------------

    def matmul(self, B: FloatArray, offset: FloatArray | None = None) -> Blocks:
        """``X B + 1 offset^T`` on the workers, to which only the non-zero rows of ``B`` travel."""
        support = np.flatnonzero(nonzero_rows(B))
        self.charge(len(support))
        shift = np.zeros(B.shape[1]) if offset is None else offset
        if len(support) == 0:
            return self.map(partial(constant_rows, row=shift), self._numbered)
        product = partial(block_product, support=support, rows=B[support], offset=shift)
        return Blocks(function=product, samples=(self.X,), reads_X=True)

    def evaluate(self, T: Handle, *sums: Sum) -> tuple[FloatArray, list[Any]]:
        """``X^T T`` and sums over samples in one task graph."""
        self.charge(self.n_features)
        C, *values = summed((block_correlations, self.X, T), *sums)
        return C, values

    # Sample space -----------------------------------------------------------------------------------

    def samples(self, values: Any) -> Blocks:
        """Adopt an array: a Dask array with as many rows as X, or a local one, which is sent to the workers."""
        if isinstance(values, Blocks):
            return values
        return self.map(_in_double_precision, self._row_blocks("the array of samples", values))

    def _row_blocks(self, name: str, values: Any, ndim: tuple[int, ...] = (2,), remedy: str = "") -> Blocks:
        """An array as users give it, in the blocks of X."""
        convert: Any = checks.numeric_array
        array = row_chunks(name, values, convert)[0] if is_dask(values) else convert(name, values)
        if array.dtype.kind not in checks.REAL_KINDS:
            raise TypeError(f"{name} must hold real numbers, got dtype {array.dtype}. Convert it first.")
        if array.ndim not in ndim:
            expected = " or ".join(f"{n}-dimensional" for n in ndim)
            raise ValueError(f"{name} must be {expected}, got an array of shape {array.shape}.{remedy}")
        checks.check_length(name, array.shape, self.n_samples)
        sizes = [place.size for place in self.places]
        if is_dask(values):
            return blocks_of(array.rechunk({0: tuple(sizes)}))
        return Blocks(np.split(array, np.cumsum(sizes)[:-1]))

    def map(self, function: Callable[..., FloatArray], *samples: Handle) -> Blocks:
        """Apply a function to each block, when it is needed."""
        return Blocks(function=function, samples=samples)

    def reduce(self, function: Callable[..., Any], *samples: Handle) -> Any:
        """Sum over blocks, added up on the workers."""
        return summed((function, *samples))[0]

    def reduce_all(self, *sums: Sum) -> list[Any]:
        """All in one task graph, added up on the workers."""
        return summed(*sums)

    def rows(self, *args: Any, **kwargs: Any) -> Any:
        """Not here: single samples are not taken out of blocks."""
        raise ValueError(
            "a Dask collection does not give out single samples: solver='spgd' draws batches of them, and folds of "
            "cross-validation for classes or with a scorer index them. Use solver='auto', or data in memory."
        )

    select = rows

    def adopt(
        self,
        Y: Any,
        sample_weight: Any,
        check: Any,
        total_weight: float | None = None,
        whole: str = "",
        targets: Any = np.asarray,
    ) -> tuple[Any, Any, Any]:
        """Targets and weights on the workers, checked block by block.

        One journey tells which samples count, and whether weights differ between tasks; where they do not, nothing is
        kept for each of them.
        """
        checks.check_weights_of(whole, sample_weight)
        check = partial(checked_targets, check=check, whole=whole, targets=targets)
        Y = self.map(check, self._row_blocks("Y", Y, (1, 2)), self._numbered)
        if sample_weight is None:
            w = self.map(partial(constant_rows, row=np.ones(1)), self._numbered)
        else:
            given = self._row_blocks("sample_weight", sample_weight, (1,) if whole else (1, 2), f" {checks.ENTRIES}")
            w = self.map(partial(checked_weights, whole=whole, targets=targets), given, Y, self._numbered)
        total, counts, observed, n_wanted, n_uneven, n_special = summed((partial(tally, targets=targets), Y, w))[0]
        if n_special:
            checks.check_tasks(observed[None] > 0)
            of_entries = partial(block_entry_weights, targets=targets, is_uneven=n_uneven > 0)
            w, Y = self.map(of_entries, Y, w), self.map(without_gaps, Y)
            summed((len, Y), (len, w))  # which keeps them, and lets go of what they are made of
        if not total > 0.0:
            raise ValueError(f"sample_weight {checks.NO_WEIGHT}")
        design: Design = self
        if counts != [place.size for place in self.places]:
            present = [i for i, count in enumerate(counts) if count]  # blocks without samples that count are not there
            X, Y, w = (handle.chosen(present) for handle in (self.X, Y, w))
            X = Blocks(function=block_rows, samples=(X, w), is_fleeting=True)
            design = self._like(X, [Place(self.places[i].number, counts[i]) for i in present], self.n_features)
            design.unit = self.unit * design.n_samples / self.n_samples
            design.left_out = n_wanted - design.n_samples, self.n_samples
            Y, w = (self.map(block_rows, handle, w) for handle in (Y, w))
        if total_weight is not None:
            w = self.map(partial(np.multiply, total_weight / total), w)
        return ObservedDesign(design, FAR_PATTERNS) if n_uneven else design, Y, w

    @property
    def _numbered(self) -> Blocks:
        """The place of each block, for messages about it."""
        return Blocks(list(self.places))

    def gather(self, samples: Handle) -> FloatArray:
        """Move a sample-space array here, once."""
        if samples.local is None:
            samples.local = np.concatenate(fetched(samples))
        return samples.local

    def exported(self, samples: Handle, width: int) -> Any:
        """A dask.array, which Dask computes when it is asked to."""
        chunks = tuple(place.size for place in self.places), (width,)
        return exported(self.map(_in_double_precision, samples), chunks)

    # Columns and rows -------------------------------------------------------------------------------

    def compute_moments(self, w: Handle) -> ColumnMoments:
        """In one pass, which also looks for what is not finite."""
        self.charge(self.n_features)
        moments = partial(checked_moments, n_features=self.n_features)
        found: ColumnMoments
        found, work = summed((moments, self.X, w, self._numbered))[0]
        self.density = min(1.0, work / max(1, self.n_samples * self.n_features))
        return found

    def squared_products(self, H: Handle, center: FloatArray | None = None) -> FloatArray:
        """Added up on the workers, in one pass."""
        self.charge(self.n_features)
        products = partial(block_squared_products, n_features=self.n_features, center=center)
        found: FloatArray = summed((products, self.X, H, self._numbered))[0]
        return found

    def task_sums(self, w: Handle, center: FloatArray | None = None) -> tuple[FloatArray, FloatArray]:
        """Added up on the workers, in one pass, of numbers that are centered first."""
        self.charge(self.n_features)
        sums, squares = summed((partial(block_task_sums, center=center), self.X, w))[0]
        return sums, squares

    def ranges(self) -> tuple[FloatArray, FloatArray]:
        """From one pass."""
        self.charge(self.n_features)
        lowest, highest = np.moveaxis(summed((block_ranges, self.X))[0], 1, 0)
        return lowest.min(axis=0), highest.max(axis=0)

    def restrict(self, columns: IndexArray) -> DaskDesign:
        """Copies of some columns, kept on the workers; X itself if it is there already and all are asked for."""
        if not self.X.is_fleeting and np.array_equal(columns, np.arange(self.n_features)):
            return self._like(self.X, self.places, self.n_features)
        X = Blocks(function=partial(block_columns, columns=columns), samples=(self.X,), reads_X=True)
        return self._like(X, self.places, len(columns))

    def gram(self, left: IndexArray, right: IndexArray, w: Handle) -> FloatArray:
        """Products of columns, added up on the workers."""
        return self.gram_and_sums(left, right, w)[0]

    def gram_and_sums(self, left: IndexArray, right: IndexArray, w: Handle) -> tuple[Any, ...]:
        """All in one task graph."""
        self.charge(len(left) if right is left else len(left) + len(right))
        return summed((partial(block_gram, left=left, right=right), self.X, w))[0]

    def brought_near(self, columns: IndexArray, n_tasks: int) -> Design | None:
        """Columns here, where they and the targets have fewer bytes than the steps of an inner solve would move.

        A step there moves coefficients and a gradient, ``16 |W| q`` bytes, and a task graph, which takes as long as
        256 kB; a working set needs a hundred steps or so. Columns, targets and weights have ``8 n (|W| + q + 1)``.
        """
        moved_here = 8 * self.n_samples * (len(columns) + n_tasks + 1)
        moved_there = _EXPECTED_STEPS * (16 * len(columns) * n_tasks + _JOURNEY_BYTES)
        if moved_here > moved_there:
            return None
        parts = fetched(self.map(partial(block_columns, columns=columns), self.X))
        is_sparse = any(sp.issparse(part) for part in parts)
        near = local_design(sp.vstack(parts, format="csr") if is_sparse else np.concatenate(parts))
        near.passes, near.unit = self.passes, self.unit
        return near

    def compressed(self, Y: Handle, w: Handle, *, exact: bool, center: bool = False) -> CompressedData | None:
        """By sufficient statistics, added up on the workers; not exactly."""
        return None if exact else self.statistics_of_parts(Y, w, None, 1)[0].compress(center)

    def statistics_of_parts(self, Y: Handle, w: Handle, parts: Any, n_parts: int) -> list[SufficientStatistics]:
        """All parts in one task graph; of each block the workers make statistics of every part that it has."""
        self.charge(self.n_features)
        samples = [self.X, Y, w, self._numbered]
        if parts is not None:
            samples.append(self._row_blocks("the parts", np.asarray(parts, dtype=np.int32)[:, None]))
        (found,) = summed((partial(part_statistics, n_parts=n_parts), *samples))
        if None in found:
            raise ValueError(NO_SAMPLES)
        return list(found)


_in_double_precision = partial(np.asarray, dtype=np.float64)


# Predictions and labels ---------------------------------------------------------------------------------


def row_wise(function: Callable[..., Any], array: Any, dtype: Any, width: int | None) -> Any:
    """Apply a row-wise function to a local array, or to a Dask array when it is needed.

    The result has so many columns; None means one dimension.
    """
    if not is_dask(array):
        return function(array)
    if width is None:
        return array.map_blocks(function, dtype=dtype, drop_axis=list(range(1, array.ndim)))
    return array.map_blocks(function, dtype=dtype, chunks=(array.chunks[0], (width,)))


def rows_like(values: FloatArray, array: Any) -> Any:
    """A local array in the chunks of the rows of a Dask array."""
    import dask.array as da

    return da.from_array(values, chunks=(array.chunks[0], -1))


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
    (parts,) = summed((block_labels, *map(blocks_of, arrays)))
    classes = classes_of(distinct_labels(np.concatenate(parts)))
    encode, chunks = partial(one_hot, classes=classes), (labels.chunks[0], (len(classes),))
    return classes, labels.map_blocks(encode, dtype=np.float64, new_axis=1, chunks=chunks)


def mean_weights(Y: Any, sample_weight: FloatArray, n_tasks: int) -> FloatArray:
    """Weights of samples, the means of those of the targets that were observed, for targets on a cluster."""
    weight = sample_weight if sample_weight.ndim == 2 else sample_weight[:, None]
    handles = blocks_of(Y), blocks_of(rows_like(weight, Y))
    (parts,) = summed((partial(_mean_weights, n_tasks=n_tasks), *handles))
    return np.concatenate(parts)


def _mean_weights(Y: FloatArray, w: FloatArray, n_tasks: int) -> list[FloatArray]:
    return [checks.entry_weights(Y, w, n_tasks)[1].mean(axis=1)]


# What workers do with a block of rows, each a function of local arrays -----------------------------------


def local_design(block: Any) -> LocalDesign:
    """The design of one block; sparse arrays of other packages become SciPy's."""
    block = block.to_scipy_sparse() if hasattr(block, "to_scipy_sparse") else block
    if sp.issparse(block):
        return SparseDesign(checks.sparse_array("X", block), unit=0.0)
    return DenseDesign(np.asarray(block), unit=0.0)


def block_rows(block: Any, weight: FloatArray) -> Any:
    """Rows of positive weight."""
    present = weight.any(axis=1)
    return block if present.all() else local_design(block).X[np.flatnonzero(present)]


def block_columns(block: Any, columns: IndexArray) -> Any:
    """Some columns."""
    restricted: Any = local_design(block).restrict(columns)
    return restricted.X


def block_product(block: Any, support: IndexArray, rows: FloatArray, offset: FloatArray) -> FloatArray:
    """``X B + 1 offset^T`` from the non-zero rows of ``B``."""
    return np.asfortranarray(local_design(block).restrict(support).matmul(rows, offset))  # as checked_targets says


def constant_rows(place: Place, row: FloatArray) -> FloatArray:
    """The same row for every sample."""
    return np.asfortranarray(np.tile(row, (place.size, 1)))


def block_correlations(block: Any, T: FloatArray) -> FloatArray:
    """``X^T T``."""
    return local_design(block).rmatmul(T)


def block_squared_products(
    block: Any, H: FloatArray, place: Place, n_features: int, center: FloatArray | None
) -> FloatArray:
    """``sum_i h_ik (x_ij - center_j)^2`` of a block that is what it should be."""
    design = checked_design(block, len(H), place, n_features)
    found = design.squared_products(H, center)
    refuse_nan(design, place, found)
    return found


def block_task_sums(block: Any, w: FloatArray, center: FloatArray | None) -> tuple[FloatArray, FloatArray]:
    """Sums and squares of the columns in each task."""
    return local_design(block).task_sums(w, center)


def block_ranges(block: Any) -> list[Any]:
    """Smallest and largest entries, in a list: sums of these are lists of all blocks."""
    return [local_design(block).ranges()]


def block_gram(block: Any, w: FloatArray, left: IndexArray, right: IndexArray) -> tuple[Any, ...]:
    """Products of columns, and sums to center them with."""
    return local_design(block).gram_and_sums(left, right, w)


def checked_moments(block: Any, w: FloatArray, place: Place, n_features: int) -> tuple[ColumnMoments, float]:
    """Moments of the columns of a block that is what it should be; operations of a product with it."""
    design = checked_design(block, len(w), place, n_features)
    moments = design.moments(w)
    refuse_nan(design, place, moments.squares)
    return moments, design.density * design.n_samples * design.n_features


def checked_design(block: Any, n_samples: int, place: Place, n_features: int) -> LocalDesign:
    """The design of a block that has its shape."""
    if np.shape(block) != (n_samples, n_features):
        raise ValueError(
            f"block {place.number} of X has shape {np.shape(block)}, but its chunks say {(place.size, n_features)}. "
            "Give Dask the right chunks, for example by map_blocks(..., chunks=), or let X.compute_chunk_sizes() find "
            "them."
        )
    return local_design(block)


def refuse_nan(design: LocalDesign, place: Place, found: FloatArray) -> None:
    """Say which entries of a block are not finite, where sums that were found of it are not."""
    if not np.isfinite(found.sum()):
        checks.check_finite(f"X in block {place.number}", design.X, remedy=checks.IMPUTE)


def part_statistics(block: Any, Y: Any, w: Any, place: Place, labels: Any = None, *, n_parts: int) -> tuple[Any, ...]:
    """Sufficient statistics of each part, by the labels of the samples; None where it has no samples."""
    X, found = local_design(block).X, []
    for part in range(n_parts):
        rows = slice(None) if labels is None else np.flatnonzero(labels[:, 0] == part)
        own = list(statistics_of_samples(f" in block {place.number}", X[rows], Y[rows], w[rows, 0]))
        found.append(PairwiseSum(own).total() if own else None)
    return tuple(found)


def checked_targets(
    block: Any, place: Place, check: Callable[[FloatArray], FloatArray], whole: str, targets: Callable[..., Any]
) -> FloatArray:
    """Targets that pass the checks of the loss, NaN where they may be missing and are; messages name the block."""
    where, may_miss = f" in block {place.number}", not whole
    remedy = f"Remove the samples without a target{f': {whole}' if whole else ''}."
    Y = checks.check_targets(block, place.size, where, may_miss=may_miss, remedy=remedy, needs_entry=False)
    missing = np.isnan(targets(Y))
    try:
        Y = np.array(check(without_gaps(Y)), order="F")  # by tasks: sums over tasks are then sums of long vectors
    except ValueError as error:
        raise ValueError(f"{error} (Y{where})") from error
    if missing.any():
        Y[:, : missing.shape[1]][missing] = np.nan
    return Y


def without_gaps(Y: FloatArray) -> FloatArray:
    """Targets with zeros for those not observed."""
    return np.asfortranarray(np.where(np.isnan(Y), 0.0, Y))


def checked_weights(block: Any, Y: FloatArray, place: Place, whole: str, targets: Callable[..., Any]) -> FloatArray:
    """Weights of samples, as a column, or of entries; messages name the block."""
    n_tasks, where = 0 if whole else targets(Y).shape[1], f" in block {place.number}"
    w = checks.check_sample_weight(block, place.size, where, needs_weight=False, n_tasks=n_tasks)
    return w[:, None] if w.ndim == 1 else np.asfortranarray(w)


def block_entry_weights(Y: FloatArray, w: FloatArray, targets: Callable[..., Any], is_uneven: bool) -> FloatArray:
    """Weights that are zero where a target is missing, as a column where they are the same for all tasks."""
    w = np.where(np.isnan(targets(Y)), 0.0, w)
    return np.asfortranarray(w if is_uneven else w[:, :1])


def tally(Y: FloatArray, w: FloatArray, targets: Callable[..., Any]) -> tuple[Any, ...]:
    """What the targets and weights of a block add up to.

    The sum of the weights, the mean over tasks; samples that count, in a list; entries of each task that do; samples
    of positive weight, whatever was observed; samples whose weights differ between tasks; and whether targets are
    missing, or weights given for each of them.
    """
    n_wanted = int(np.count_nonzero(w.any(axis=1)))
    is_special = w.shape[1] > 1 or bool(np.isnan(Y).any())
    if is_special:
        w = block_entry_weights(Y, w, targets, is_uneven=True)
    observed = np.count_nonzero(w, axis=0) * np.ones(targets(Y).shape[1])
    n_uneven = int(np.count_nonzero((w != w[:, :1]).any(axis=1)))
    counts = [int(np.count_nonzero(w.any(axis=1)))]
    return float(w.sum()) / w.shape[1], counts, observed, n_wanted, n_uneven, int(is_special)


def block_labels(labels: Any, weight: Any = None) -> list[Any]:
    """The different labels, in a list: sums of these are lists of all blocks."""
    labels = check_labels(labels)
    return [distinct_labels(labels if weight is None else labels[np.asarray(weight) > 0])]
