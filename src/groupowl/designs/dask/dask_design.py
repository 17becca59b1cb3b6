"""Blocks of rows on a Dask cluster: products run where the blocks are, and only feature space comes back."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..._checks import NO_WEIGHT, REAL_KINDS, check_data_shape, numeric_array
from ..._dask import as_row_chunks, is_dask
from ..._kernels import nonzero_rows
from ..._typing import FloatArray, Handle, IndexArray
from ...gram import NO_SAMPLES, CompressedData, SufficientStatistics
from ..base import Design, PassCounter, Sum
from ..moments import ColumnMoments
from . import tasks
from .blocks import Blocks, Total, fetched, graph_of, summed
from .chunked import blocks_of, present_blocks, what_else
from .tasks import Place

# A task graph takes as long as so many floating-point operations, and as moving so many bytes.
_JOURNEY = 1e8
_JOURNEY_BYTES = 1 << 18
# Inner steps that a working set is expected to need, for the choice between moving its columns and stepping far away.
_EXPECTED_STEPS = 100


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

    def __init__(self, X: Any) -> None:
        array, names = as_row_chunks("X", X)
        check_data_shape(array.shape)
        if array.dtype.kind not in REAL_KINDS:
            raise TypeError(f"X must hold real numbers, {what_else(X, array)}. Convert it first.")
        dtype = array.dtype if array.dtype in (np.float32, np.float64) else np.dtype(np.float64)
        blocks, places = present_blocks(array)
        self._set(blocks, places, int(array.shape[1]), dtype, PassCounter(), 1.0 / array.shape[1])
        self.feature_names = names

    def _set(
        self, X: Blocks, places: list[Place], n_features: int, dtype: Any, passes: PassCounter, unit: float
    ) -> None:
        self.X = X
        self.places = places
        self.shape = (sum(place.size for place in places), n_features)
        self.dtype = dtype
        self.passes = passes
        self.unit = unit
        self._moments: tuple[Blocks, ColumnMoments] | None = None
        self._density = 1.0

    def _like(self, X: Blocks, places: list[Place], n_features: int) -> DaskDesign:
        other = object.__new__(DaskDesign)
        other._set(X, places, n_features, self.dtype, self.passes, self.unit)
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
        if len(support) == 0:
            return self.map(tasks.constant_rows, self._numbered, row=shift)
        constants = {"support": support, "rows": B[support], "offset": shift}
        return Blocks(function=tasks.block_product, samples=(self.X,), constants=constants, reads_X=True)

    def rmatmul(self, T: Handle) -> FloatArray:
        """``X^T T``, added up on the workers."""
        return self.evaluate(T)[0]

    def evaluate(self, T: Handle, *sums: Sum) -> tuple[FloatArray, list[Any]]:
        """``X^T T`` and sums over samples in one task graph."""
        self.charge(self.n_features)
        C, *values = summed((tasks.block_correlations, self.X, T), *sums)
        return C, values

    # Sample space -----------------------------------------------------------------------------------

    def samples(self, values: Any) -> Blocks:
        """Adopt an array: a Dask array with as many rows as X, or a local one, which is sent to the workers."""
        if isinstance(values, Blocks):
            return values
        return self.map(tasks.in_double_precision, self._row_blocks("the array of samples", values))

    def _row_blocks(self, name: str, values: Any, ndim: tuple[int, ...] = (2,)) -> Blocks:
        """An array as users give it, in the blocks of X."""
        array: Any = as_row_chunks(name, values)[0] if is_dask(values) else numeric_array(name, values)
        if array.dtype.kind not in REAL_KINDS:
            raise TypeError(f"{name} must hold real numbers, got dtype {array.dtype}. Convert it first.")
        if array.ndim not in ndim:
            expected = " or ".join(f"{n}-dimensional" for n in ndim)
            raise ValueError(f"{name} must be {expected}, got an array of shape {array.shape}.")
        if array.shape[0] != self.n_samples:
            raise ValueError(
                f"X and {name} must have one row per sample: X has {self.n_samples} rows, {name} has {array.shape[0]} "
                f"(shape {array.shape})."
            )
        sizes = [place.size for place in self.places]
        if is_dask(values):
            return blocks_of(array.rechunk({0: tuple(sizes)}))
        return Blocks(np.split(array, np.cumsum(sizes)[:-1]))

    def map(self, function: Callable[..., FloatArray], *samples: Handle, **totals: Any) -> Blocks:
        """Apply a function to each block, when it is needed."""
        return Blocks(function=function, samples=samples, constants=totals)

    def reduce(self, function: Callable[..., Any], *samples: Handle) -> Any:
        """Sum over blocks, added up on the workers."""
        return summed((function, *samples))[0]

    def reduce_all(self, *sums: Sum) -> list[Any]:
        """Sums over blocks in one task graph."""
        return summed(*sums)

    def total(self, function: Callable[..., Any], *samples: Handle) -> Total:
        """Sum over blocks that stays on the workers."""
        return Total(function, samples)

    def select(self, samples: Handle, rows: IndexArray) -> Handle:
        """Not here: single samples are not taken out of blocks."""
        raise ValueError(_NO_SINGLE_SAMPLES)

    def rows(self, rows: IndexArray) -> Design:
        """Not here: single samples are not taken out of blocks."""
        raise ValueError(_NO_SINGLE_SAMPLES)

    def adopt(
        self,
        Y: Any,
        sample_weight: Any,
        check: Callable[[FloatArray], FloatArray],
        total_weight: float | None = None,
    ) -> tuple[Design, Handle, Handle]:
        """Targets and weights on the workers, checked block by block."""
        Y = self.map(partial(tasks.checked_targets, check=check), self._row_blocks("Y", Y, (1, 2)), self._numbered)
        if sample_weight is None:
            w = self.map(tasks.unit_weights, Y)
        else:
            w = self.map(tasks.checked_weights, self._row_blocks("sample_weight", sample_weight, (1,)), self._numbered)
        total, counts, _ = summed((np.sum, w), (tasks.count_present, w), (tasks.widths, Y))
        if not total > 0.0:
            raise ValueError(NO_WEIGHT)
        design = self
        if counts != [place.size for place in self.places]:
            design, Y, w = self._without_absent(counts, Y, w)
        if total_weight is not None:
            w = self.map(tasks.scaled, w, factor=total_weight / total)
        return design, Y, w

    def _without_absent(self, counts: list[int], Y: Blocks, w: Blocks) -> tuple[DaskDesign, Blocks, Blocks]:
        """Samples of positive weight, so many in each block; blocks without any are not there."""
        blocks = [i for i, count in enumerate(counts) if count]
        X, Y, w = (handle.chosen(blocks) for handle in (self.X, Y, w))
        present = self.map(tasks.is_present, w)
        X = Blocks(function=tasks.block_rows, samples=(X, present), is_fleeting=True)
        design = self._like(X, [Place(self.places[i].number, counts[i]) for i in blocks], self.n_features)
        design.unit = self.unit * design.n_samples / self.n_samples
        return design, self.map(tasks.masked, Y, present), self.map(tasks.masked, w, present)

    @property
    def _numbered(self) -> Blocks:
        """The place of each block, for messages about it."""
        return Blocks(list(self.places))

    def gather(self, samples: Handle) -> FloatArray:
        """Move a sample-space array here, once."""
        if samples.local is None:
            samples.local = np.concatenate(fetched(samples))
        return samples.local

    def exported(self, samples: Handle, width: int | None = None) -> Any:
        """A dask.array, which Dask computes when it is asked to if the width is known."""
        import dask.array as da

        if width is None:
            width = summed((tasks.widths, samples))[0][0]
        graph, parts = graph_of(self.map(tasks.in_double_precision, samples))
        chunks = tuple(place.size for place in self.places), (width,)
        return da.Array(graph, parts[0][0], chunks, dtype=np.float64)

    # Columns and rows -------------------------------------------------------------------------------

    def _column_moments(self, w: Handle) -> ColumnMoments:
        """Of all columns in one pass, which also looks for what is not finite."""
        if self._moments is None or self._moments[0] is not w:
            self.charge(self.n_features)
            moments = partial(tasks.checked_moments, n_features=self.n_features)
            found, work = summed((moments, self.X, w, self._numbered), (tasks.block_work, self.X))
            self._density = min(1.0, work / max(1, self.n_samples * self.n_features))
            self._moments = w, found
        return self._moments[1]

    def column_means(self, w: Handle) -> FloatArray:
        """Weighted means, from one pass that serves norms too."""
        return self._column_moments(w).mean

    def column_norms(self, w: Handle, center: FloatArray | None = None) -> FloatArray:
        """Weighted norms about ``center``, from one pass that serves means too."""
        return self._column_moments(w).norms(center)

    def restrict(self, columns: IndexArray) -> DaskDesign:
        """Copies of some columns, kept on the workers; X itself if it is there already and all are asked for."""
        if not self.X.is_fleeting and np.array_equal(columns, np.arange(self.n_features)):
            return self._like(self.X, self.places, self.n_features)
        X = Blocks(function=tasks.block_columns, samples=(self.X,), constants={"columns": columns}, reads_X=True)
        return self._like(X, self.places, len(columns))

    def largest_row(
        self, w: Handle, constant: float = 0.0, mean: FloatArray | None = None, scale: FloatArray | None = None
    ) -> float:
        """Largest over the blocks."""
        largest = partial(tasks.block_largest_row, constant=constant, mean=mean, scale=scale)
        return float(max(summed((largest, self.X, w))[0]))

    def gram(self, left: IndexArray, right: IndexArray, w: Handle) -> FloatArray:
        """Products of columns, added up on the workers."""
        return self.gram_and_sums(left, right, w)[0]

    def gram_and_sums(
        self, left: IndexArray, right: IndexArray, w: Handle
    ) -> tuple[FloatArray, FloatArray, FloatArray, float]:
        """All in one task graph."""
        self.charge(len(left) if right is left else len(left) + len(right))
        product = partial(tasks.block_gram, left=left, right=None if right is left else right)
        products, left_sums, right_sums, total = summed((product, self.X, w))[0]
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
        parts = fetched(self.map(tasks.block_columns, self.X, columns=columns))
        is_sparse = any(sp.issparse(part) for part in parts)
        near = tasks.local_design(sp.vstack(parts, format="csr") if is_sparse else np.concatenate(parts))
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
        return summed((tasks.block_statistics, self.X, Y, w))[0]

    def statistics_of_parts(self, Y: Handle, w: Handle, parts: IndexArray, n_parts: int) -> list[SufficientStatistics]:
        """All parts in one task graph; of each block the workers make statistics of every part that it has."""
        self.charge(self.n_features)
        kind = np.int8 if n_parts < 128 else np.int32  # one byte per sample travels to the workers
        labels = self._row_blocks("the parts", np.asarray(parts, dtype=kind)[:, None])
        of_parts = partial(tasks.block_statistics_of_parts, n_parts=n_parts)
        found = summed((of_parts, self.X, Y, w, labels))[0].content
        if any(part is None for part in found):
            raise ValueError(NO_SAMPLES)
        return list(found)


_NO_SINGLE_SAMPLES = (
    "a Dask collection does not give out single samples: solver='spgd' draws batches of them, and folds of "
    "cross-validation for classes or with a scorer index them. Use solver='auto', or data in memory."
)
