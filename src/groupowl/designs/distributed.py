"""Blocks of rows on a Dask cluster: products run where the blocks are, and only feature space comes back."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial, reduce
from operator import add
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._checks import IMPUTE, check_data_shape, check_finite, check_sample_weight, check_targets
from .._kernels import nonzero_rows
from .._typing import FloatArray, Handle, IndexArray
from ..gram import NO_SAMPLES, CompressedData, SufficientStatistics
from ..inputs import check_labels, classes_of, distinct_labels, one_hot
from .base import NO_WEIGHT, Design, LocalDesign, PassCounter, Sum
from .dense import DenseDesign, dense_storage
from .moments import ColumnMoments, block_moments
from .sparse import SparseDesign

# Partial sums are added up on the workers, so many at a time: the client receives one.
_FAN_IN = 8
# A task graph takes as long as so many floating-point operations, and as moving so many bytes.
_JOURNEY = 1e8
_JOURNEY_BYTES = 1 << 18
# Inner steps that a working set is expected to need, for the choice between moving its columns and stepping far away.
_EXPECTED_STEPS = 100


class Blocks:
    """A sample-space array, one delayed array for each block of rows; lazy until the first sum over it keeps it."""

    __slots__ = ("_local", "kept", "parts")

    def __init__(self, parts: Sequence[Any], *, kept: bool = False) -> None:
        self.parts = list(parts)
        self.kept = kept
        self._local: FloatArray | None = None

    def gathered(self) -> FloatArray:
        """The whole array in this process, moved once."""
        if self._local is None:
            self._local = np.concatenate(_computed([self], self.parts))
        return self._local


class DaskDesign(Design):
    """X in blocks of rows on a Dask cluster, dense or sparse.

    Sample-space arrays stay on the workers; coefficients, gradients and Gram matrices of working sets are all that
    travels. Blocks that a worker loses are computed again by Dask. X itself is not kept in the workers' memory unless
    it is persisted before.

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

    def __init__(self, X: Any) -> None:
        array, self.feature_names = _as_row_chunks("X", X, ndim=2)
        if array.dtype.kind not in "fiub":
            raise TypeError(f"X must hold real numbers, got a Dask array of dtype {array.dtype}. Convert it first.")
        check_data_shape(array.shape)
        blocks, sizes = _blocks_of(array)
        dtype = array.dtype if array.dtype in (np.float32, np.float64) else np.dtype(np.float64)
        self._set(blocks, sizes, int(array.shape[1]), dtype, PassCounter(), 1.0 / array.shape[1])

    def _set(self, X: Blocks, sizes: list[int], n_features: int, dtype: Any, passes: PassCounter, unit: float) -> None:
        self.X = X
        self.sizes = sizes
        self.shape = (sum(sizes), n_features)
        self.dtype = dtype
        self.passes = passes
        self.unit = unit
        self._moments: tuple[Blocks, ColumnMoments] | None = None
        self._density = 1.0

    def _like(self, X: Blocks, sizes: list[int], n_features: int) -> DaskDesign:
        other = object.__new__(DaskDesign)
        other.feature_names = None
        other._set(X, sizes, n_features, self.dtype, self.passes, self.unit)
        other._density = self._density
        return other

    @property
    def density(self) -> float:
        """Work of a product relative to one with a dense matrix, known once column norms are."""
        return self._density

    # Between the spaces -----------------------------------------------------------------------------

    def matmul(self, B: FloatArray, offset: FloatArray | None = None) -> Blocks:
        """``X B + 1 offset^T`` on the workers, to which only the non-zero rows of ``B`` travel."""
        support = np.flatnonzero(nonzero_rows(B))
        self.charge(len(support))
        shift = np.zeros(B.shape[1]) if offset is None else offset
        return self._apply(_block_product, self.X, support=support, rows=B[support], offset=shift)

    def rmatmul(self, T: Handle) -> FloatArray:
        """``X^T T``, added up on the workers."""
        return self.evaluate(T)[0]

    def evaluate(self, T: Handle, *sums: Sum) -> tuple[FloatArray, list[Any]]:
        """``X^T T`` and sums over samples in one task graph."""
        self.charge(self.n_features)
        wanted = [self._sum(_block_correlations, self.X, T), *(self._sum(function, *s) for function, *s in sums)]
        C, *values = _computed([self.X, T, *(handle for _, *s in sums for handle in s)], wanted)
        return C, values

    # Sample space -----------------------------------------------------------------------------------

    def samples(self, values: Any) -> Blocks:
        """Adopt an array: a Dask array in row chunks like those of X, or a local one, which is sent to the workers."""
        if isinstance(values, Blocks):
            return values
        array, _ = _as_row_chunks("the samples", values, ndim=2, sizes=self.sizes)
        return _blocks_of(array)[0]

    def map(self, function: Callable[..., FloatArray], *samples: Handle, **totals: Any) -> Blocks:
        """Apply a function to each block, when it is needed."""
        return self._apply(function, *samples, **totals)

    def reduce(self, function: Callable[..., Any], *samples: Handle) -> Any:
        """Sum over blocks, added up on the workers."""
        return self.reduce_all((function, *samples))[0]

    def reduce_all(self, *sums: Sum) -> list[Any]:
        """Sums over blocks in one task graph."""
        handles = [handle for _, *samples in sums for handle in samples]
        return _computed(handles, [self._sum(function, *samples) for function, *samples in sums])

    def total(self, function: Callable[..., Any], *samples: Handle) -> Any:
        """Sum over blocks that stays on the workers."""
        return self._sum(function, *samples)

    def select(self, samples: Handle, rows: IndexArray) -> Handle:
        """Not here: single samples are not taken out of blocks."""
        raise ValueError(_NO_SINGLE_SAMPLES)

    def rows(self, rows: IndexArray) -> Design:
        """Not here: single samples are not taken out of blocks."""
        raise ValueError(_NO_SINGLE_SAMPLES)

    def _apply(self, function: Callable[..., Any], *samples: Handle, **constants: Any) -> Blocks:
        from dask import delayed

        call = delayed(_apart, pure=False)
        # One task for all constants: they travel once to each worker, not once for each block.
        shared = delayed(dict, pure=False)(**constants) if constants else {}
        return Blocks([call(function, shared, *block) for block in zip(*(s.parts for s in samples), strict=True)])

    def _sum(self, function: Callable[..., Any], *samples: Handle) -> Any:
        return _tree(add, self._apply(function, *samples).parts)

    def adopt(
        self,
        Y: Any,
        sample_weight: Any,
        check: Callable[[FloatArray], FloatArray],
        total_weight: float | None = None,
    ) -> tuple[Design, Handle, Handle]:
        """Targets and weights on the workers, checked block by block."""
        Y_blocks = self._checked("Y", Y, partial(_checked_targets, check=check))
        if sample_weight is None:
            w_blocks = self._apply(_unit_weights, Y_blocks)
        else:
            w_blocks = self._checked("sample_weight", sample_weight, _checked_weights)
        counted = self._apply(_count_present, w_blocks).parts
        total, *counts = _computed([Y_blocks, w_blocks], [self._sum(np.sum, w_blocks), *counted])
        if not total > 0.0:
            raise ValueError(NO_WEIGHT)
        if total_weight is not None:
            w_blocks = self._apply(_scaled, w_blocks, factor=total_weight / total)
        if counts == self.sizes:
            return self, Y_blocks, w_blocks
        keep = [i for i, count in enumerate(counts) if count]
        sizes = [counts[i] for i in keep]
        mask = self._apply(_is_present, w_blocks)
        X, Y_kept, w_kept = (
            Blocks([chosen.parts[i] for i in keep])
            for chosen in (self._apply(_masked, handle, mask) for handle in (self.X, Y_blocks, w_blocks))
        )
        X.kept = self.X.kept
        design = self._like(X, sizes, self.n_features)
        design.unit = self.unit * design.n_samples / self.n_samples
        return design, Y_kept, w_kept

    def _checked(self, name: str, values: Any, check: Callable[..., FloatArray]) -> Blocks:
        array, _ = _as_row_chunks(name, values, ndim=None, sizes=self.sizes)
        blocks = _blocks_of(array)[0]
        numbered = Blocks(range(len(self.sizes)), kept=True)
        return self._apply(check, blocks, numbered)

    def gather(self, samples: Handle) -> FloatArray:
        """Move a sample-space array here, once."""
        return samples.gathered()

    def exported(self, samples: Handle, width: int | None = None) -> Any:
        """A dask.array."""
        import dask.array as da

        if width is None:
            width = int(_computed([samples], [self._apply(np.shape, samples).parts[0]])[0][1])
        shapes = ((size, width) for size in self.sizes)
        parts = [da.from_delayed(part, shape, np.float64) for part, shape in zip(samples.parts, shapes, strict=True)]
        return da.concatenate(parts)

    # Columns and rows -------------------------------------------------------------------------------

    def _column_moments(self, w: Handle) -> ColumnMoments:
        """Of all columns in one pass, which also looks for what is not finite."""
        if self._moments is None or self._moments[0] is not w:
            numbered = Blocks(range(len(self.sizes)), kept=True)
            self.charge(self.n_features)
            wanted = [self._sum(_block_moments, self.X, w, numbered), self._sum(_block_work, self.X)]
            moments, work = _computed([self.X, w], wanted)
            self._density = min(1.0, work / (self.n_samples * self.n_features))
            self._moments = w, moments
        return self._moments[1]

    def column_means(self, w: Handle) -> FloatArray:
        """Weighted means, from one pass that serves norms too."""
        return self._column_moments(w).means

    def column_norms(self, w: Handle, center: FloatArray | None = None) -> FloatArray:
        """Weighted norms about ``center``, from one pass that serves means too."""
        return self._column_moments(w).norms(center)

    def restrict(self, columns: IndexArray) -> DaskDesign:
        """Copies of some columns, kept on the workers."""
        return self._like(self._apply(_block_columns, self.X, columns=columns), self.sizes, len(columns))

    def largest_row(
        self, w: Handle, constant: float = 0.0, mean: FloatArray | None = None, scale: FloatArray | None = None
    ) -> float:
        """Largest over the blocks."""
        parts = self._apply(_block_largest_row, self.X, w, constant=constant, mean=mean, scale=scale).parts
        return float(_computed([self.X, w], [_tree(max, parts)])[0])

    def gram(self, left: IndexArray, right: IndexArray, w: Handle) -> FloatArray:
        """Products of columns, added up on the workers."""
        return self.gram_and_sums(left, right, w)[0]

    def gram_and_sums(
        self, left: IndexArray, right: IndexArray, w: Handle
    ) -> tuple[FloatArray, FloatArray, FloatArray, float]:
        """All in one task graph."""
        self.charge(len(left) if right is left else len(left) + len(right))
        parts = self._apply(_block_gram, self.X, w, left=left, right=None if right is left else right).parts
        products, left_sums, right_sums, total = _computed([self.X, w], [_tree(_added, parts)])[0]
        return products, left_sums, right_sums, float(total)

    def brought_near(self, columns: IndexArray, n_tasks: int) -> Design | None:
        """Columns here, where they and the targets have fewer bytes than the steps of an inner solve would move.

        A step there moves coefficients and a gradient, ``16 |W| q`` bytes, and a task graph, which takes as long as
        256 kB; a working set needs a hundred steps or so. Columns, targets and weights have ``8 n (|W| + q + 1)``.
        """
        moved_here = 8 * self.n_samples * (len(columns) + n_tasks + 1)
        moved_there = _EXPECTED_STEPS * (16 * len(columns) * n_tasks + _JOURNEY_BYTES)
        if moved_here > moved_there:
            return None
        parts = _computed([self.X], self._apply(_block_columns, self.X, columns=columns).parts)
        near = _local(sp.vstack(parts, format="csr") if sp.issparse(parts[0]) else np.concatenate(parts))
        near.passes, near.unit = self.passes, self.unit
        return near

    def compressed(self, Y: Handle, w: Handle, *, exact: bool, center: bool = False) -> CompressedData | None:
        """By sufficient statistics, added up on the workers; not exactly."""
        if exact:
            return None
        self.charge(self.n_features)
        return self.statistics(Y, w).compress(center)

    def statistics(self, Y: Handle, w: Handle) -> SufficientStatistics:
        """Sufficient statistics of all samples, in one pass."""
        return _computed([self.X, Y, w], [self._sum(_block_statistics, self.X, Y, w)])[0]

    def statistics_of_parts(self, Y: Handle, w: Handle, parts: IndexArray, n_parts: int) -> list[SufficientStatistics]:
        """All parts in one task graph; of each block the workers make statistics of every part that it has."""
        self.charge(self.n_features)
        kind = np.int8 if n_parts < 128 else np.int32
        labels = self.samples(np.asarray(parts, dtype=kind)[:, None])
        blocks = self._apply(_block_statistics_of_parts, self.X, Y, w, labels, n_parts=n_parts).parts
        found = _computed([self.X, Y, w], [_tree(_added_where_present, blocks)])[0]
        if any(part is None for part in found):
            raise ValueError(NO_SAMPLES)
        return list(found)


_NO_SINGLE_SAMPLES = (
    "a Dask collection does not give out single samples: solver='spgd' draws batches of them, and folds of "
    "cross-validation for classes or with a scorer index them. Use solver='auto', or data in memory."
)


# Task graphs --------------------------------------------------------------------------------------------


def _apart(function: Callable[..., Any], constants: dict[str, Any], *block: Any) -> Any:
    with np.errstate(all="ignore"):  # non-finite values are looked for, not warned about
        return function(*block, **constants)


def _tree(combine: Callable[[Any, Any], Any], parts: list[Any]) -> Any:
    """All parts combined, a few at a time, so that no worker and not the client sees all of them."""
    from dask import delayed

    call = delayed(_combined, pure=False)
    while len(parts) > 1:
        parts = [call(combine, parts[i : i + _FAN_IN]) for i in range(0, len(parts), _FAN_IN)]
    return parts[0]


def _combined(combine: Callable[[Any, Any], Any], parts: list[Any]) -> Any:
    return reduce(combine, parts)


def _computed(handles: Sequence[Handle], wanted: Sequence[Any]) -> list[Any]:
    """Values of delayed objects in one task graph, which also keeps the handles that were lazy until now."""
    import dask

    lazy = {id(handle): handle for handle in handles if not handle.kept}.values()
    with _clear_errors():
        if not lazy:
            return list(dask.compute(*wanted))
        parts = [part for handle in lazy for part in handle.parts]
        started = dask.persist(*parts, *wanted)
        values = list(dask.compute(*started[len(parts) :]))
        kept = iter(started)
        for handle in lazy:
            handle.parts, handle.kept = [next(kept) for _ in handle.parts], True
    return values


@contextmanager
def _clear_errors() -> Iterator[None]:
    """What a lost cluster raises, as one error that says how to go on."""
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Sending large graph")
            yield
    except Exception as error:
        if _is_loss_of_cluster(error):
            raise ConnectionError(
                "the Dask cluster was lost in the middle of the computation "
                f"({type(error).__name__}: {error}). Start another one and continue from the last coefficients: a "
                "callback gets them by progress.coefficients(), solve(..., B_init=) takes them."
            ) from error
        raise


def _is_loss_of_cluster(error: Exception) -> bool:
    if not type(error).__module__.startswith(("distributed", "asyncio", "concurrent", "builtins", "tornado")):
        return False
    lost = (
        "CommClosedError",
        "CancelledError",
        "FutureCancelledError",
        "KilledWorker",
        "TimeoutError",
        "ClosedClientError",
    )
    return type(error).__name__ in lost or (
        isinstance(error, RuntimeError | OSError | ValueError)
        and any(hint in str(error) for hint in ("cluster", "Cluster", "scheduler", "Client", "comm", "Timed out"))
        and type(error).__module__ != "builtins"
    )


# Blocks, on the workers ---------------------------------------------------------------------------------


def _local(block: Any) -> LocalDesign:
    """The design of one block."""
    if sp.issparse(block):
        content: Any = block
        stored = sp.csr_array(content)
        return SparseDesign(stored if stored.dtype.kind == "f" else stored.astype(np.float64), unit=0.0)
    return DenseDesign(dense_storage(np.asarray(block)), unit=0.0)


def _block_columns(block: Any, columns: IndexArray) -> Any:
    restricted: Any = _local(block).restrict(columns)
    return restricted.X


def _block_product(block: Any, support: IndexArray, rows: FloatArray, offset: FloatArray) -> FloatArray:
    return _local(block).restrict(support).matmul(rows, offset)


def _block_correlations(block: Any, T: FloatArray) -> FloatArray:
    return _local(block).rmatmul(T)


def _block_gram(block: Any, w: FloatArray, left: IndexArray, right: IndexArray | None) -> tuple[Any, ...]:
    return _local(block).gram_and_sums(left, left if right is None else right, w)


def _added(first: tuple[Any, ...], second: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(a + b for a, b in zip(first, second, strict=True))


def _block_largest_row(block: Any, w: FloatArray, **arguments: Any) -> float:
    return _local(block).largest_row(w, **arguments)


def _block_work(block: Any) -> float:
    design = _local(block)
    return design.density * design.n_samples * design.n_features


def _block_moments(block: Any, w: FloatArray, number: int) -> ColumnMoments:
    moments = block_moments(_local(block), w)
    if not np.isfinite(moments.squares.sum()):
        check_finite(f"X in block {number}", _local(block).X, remedy=IMPUTE)
    return moments


def _block_statistics(block: Any, Y: FloatArray, w: FloatArray) -> SufficientStatistics:
    return SufficientStatistics.from_arrays(_local(block).X, Y, w[:, 0])


def _block_statistics_of_parts(block: Any, Y: FloatArray, w: FloatArray, labels: Any, n_parts: int) -> list[Any]:
    X, found = _local(block).X, []
    for part in range(n_parts):
        rows = np.flatnonzero(labels[:, 0] == part)
        found.append(SufficientStatistics.from_arrays(X[rows], Y[rows], w[rows, 0]) if len(rows) else None)
    return found


def _added_where_present(first: list[Any], second: list[Any]) -> list[Any]:
    return [b if a is None else a if b is None else a + b for a, b in zip(first, second, strict=True)]


def _checked_targets(block: Any, number: int, check: Callable[[FloatArray], FloatArray]) -> FloatArray:
    where = f" in block {number}"
    Y = check_targets(block, len(block), where)
    try:
        return check(Y)
    except ValueError as error:
        raise ValueError(f"{error} (Y{where})") from error


def _checked_weights(block: Any, number: int) -> FloatArray:
    return check_sample_weight(block, len(block), f" in block {number}")[:, None]


def _unit_weights(Y: FloatArray) -> FloatArray:
    return np.ones((len(Y), 1))


def _scaled(values: FloatArray, factor: float) -> FloatArray:
    return factor * values


def _is_present(w: FloatArray) -> Any:
    return w[:, 0] > 0.0


def _count_present(w: FloatArray) -> int:
    return int(np.count_nonzero(w))


def _masked(block: Any, mask: Any) -> Any:
    return block if mask.all() else block[np.flatnonzero(mask)]


# Collections as users give them -------------------------------------------------------------------------


def is_dask(values: Any) -> bool:
    """Whether this is a collection of Dask."""
    return hasattr(values, "__dask_graph__") and type(values).__module__.startswith(("dask.", "dask_expr."))


def _as_row_chunks(
    name: str, values: Any, *, ndim: int | None, sizes: list[int] | None = None
) -> tuple[Any, list[str] | None]:
    """A Dask array in chunks of rows, of these sizes if they are given, and the names of its columns, if it has any."""
    import dask.array as da

    names: list[str] | None = None
    if is_dask(values) and not isinstance(values, da.Array):
        if not hasattr(values, "to_dask_array"):
            raise TypeError(f"{name} must be a Dask array or data frame, got {type(values).__name__}.")
        columns = list(getattr(values, "columns", []))
        names = columns if columns and all(isinstance(column, str) for column in columns) else None
        values = values.to_dask_array(lengths=True)
    elif not isinstance(values, da.Array):
        values = da.from_array(np.asarray(values), chunks=-1)
    if np.isnan(values.shape[0]) if values.ndim else False:
        values = values.compute_chunk_sizes()
    if ndim is not None and values.ndim != ndim:
        raise ValueError(f"{name} must have {ndim} dimensions, got a Dask array of shape {values.shape}.")
    if values.ndim == 2 and len(values.chunks[1]) > 1:
        warnings.warn(
            f"{name} has {len(values.chunks[1])} chunks along its columns. They are joined, which moves its "
            f"{_megabytes(values)} between workers in every pass: rechunk it once with "
            f"{name}.rechunk({{0: 'auto', 1: -1}}).persist().",
            UserWarning,
            stacklevel=2,
        )
        values = values.rechunk({1: -1})
    if sizes is not None:
        if values.shape[0] != sum(sizes):
            raise ValueError(
                f"X and {name} must have one row per sample: X has {sum(sizes)} rows, {name} has {values.shape[0]} "
                f"(shape {values.shape})."
            )
        values = values.rechunk({0: tuple(sizes)})
    return values, names


def row_wise(function: Callable[..., Any], array: Any, dtype: Any, width: int | None) -> Any:
    """Apply a row-wise function to a local array, or to a Dask array when it is needed.

    The result has so many columns; None means one dimension.
    """
    if not is_dask(array):
        return function(array)
    if width is None:
        return array.map_blocks(function, dtype=dtype, drop_axis=1)
    return array.map_blocks(function, dtype=dtype, chunks=(array.chunks[0], (width,)))


def row_chunks(name: str, values: Any) -> tuple[Any, list[str] | None]:
    """A Dask array of one or two dimensions with known sizes, and the names of its columns, if it has any."""
    array, names = _as_row_chunks(name, values, ndim=None)
    if array.ndim not in (1, 2):
        raise ValueError(f"{name} must have one or two dimensions, got a Dask array of shape {array.shape}.")
    return array, names


def encode_labels_of_blocks(y: Any, sample_weight: Any = None) -> tuple[Any, Any]:
    """Classes, sorted, and one-hot targets as a Dask array, for labels on a cluster: one pass over the labels.

    A class whose samples all have weight zero is not there.
    """
    labels, _ = row_chunks("y", y)
    labels = labels[:, 0] if labels.ndim == 2 and labels.shape[1] == 1 else labels
    if labels.ndim != 1:
        raise ValueError(f"y must be one label per sample, got a Dask array of shape {labels.shape}.")
    blocks, sizes = _blocks_of(labels)
    weights = Blocks([None] * len(sizes), kept=True)
    if sample_weight is not None:
        weights = _blocks_of(_as_row_chunks("sample_weight", sample_weight, ndim=1, sizes=sizes)[0])[0]
    classes = classes_of(_computed([], [_tree(_united, _mapped(_block_classes, blocks, weights))])[0])
    encode = partial(one_hot, classes=classes)
    chunks = labels.chunks[0], (len(classes),)
    return classes, labels.map_blocks(encode, dtype=np.float64, new_axis=1, chunks=chunks)


def _mapped(function: Callable[..., Any], *handles: Blocks) -> list[Any]:
    from dask import delayed

    call = delayed(function, pure=False)
    return [call(*block) for block in zip(*(handle.parts for handle in handles), strict=True)]


def _block_classes(labels: Any, weight: Any) -> Any:
    present = check_labels(labels)
    return distinct_labels(present if weight is None else present[np.asarray(weight) > 0])


def _united(first: Any, second: Any) -> Any:
    return distinct_labels(np.concatenate([first, second]))


def _megabytes(array: Any) -> str:
    return f"{array.nbytes / 1e6:.0f} MB"


def _blocks_of(array: Any) -> tuple[Blocks, list[int]]:
    """Delayed blocks of an array in chunks of rows, without empty ones, and their numbers of rows."""
    parts = array.to_delayed().ravel()
    present = [(part, int(size)) for part, size in zip(parts, array.chunks[0], strict=True) if size]
    if not present:
        raise ValueError("X has no samples: all its chunks are empty.")
    return Blocks([part for part, _ in present], kept=True), [size for _, size in present]
