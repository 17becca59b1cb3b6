"""The curvature of a loss on a working set as one matrix for all tasks, from all samples or from some of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

from ..._typing import FloatArray, IndexArray
from ...problem import Problem

if TYPE_CHECKING:
    from .oracles import ColumnsOracle, Point

# Samples behind a metric: at least so many, and so many times the number of columns.
_LEAST_SAMPLES = 2000
_SAMPLES_PER_COLUMN = 8
# Its diagonal is at least this part of what all samples gave when some were drawn.
_LEAST_SHARE = 0.5


class Metric(Protocol):
    """The matrix ``X_W^T diag(h) X_W`` on a working set, ``h`` the mean curvature over the tasks of each sample."""

    def at(self, point: Point, rows: IndexArray) -> FloatArray | None:
        """Its block of these rows at a point, to be overwritten; None where no sample has any curvature left."""
        ...

    def work(self, size: int) -> float:
        """Floating-point operations of a block of so many rows."""
        ...


class ProblemMetric:
    """From all samples, where they are."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem

    def at(self, point: Point, rows: IndexArray) -> FloatArray | None:
        """All rows of the problem have a product each."""
        return self.problem.curvature_gram(point.samples, rows)

    def work(self, size: int) -> float:
        """A Gram matrix, and the journey."""
        design = self.problem.design
        return 2.0 * design.density * design.n_samples * size**2 + 2.0 * design.journey


class SampledMetric:
    """From a sample of the samples, by curvature, where there are many.

    Its diagonal is at least what all of them would give, or nearly: no column is taken for flat because its entries
    were not drawn.
    """

    def __init__(self, oracle: ColumnsOracle) -> None:
        self.oracle = oracle
        self.drawn_for = 0  # rows for which samples were drawn

    def work(self, size: int) -> float:
        """Of the samples that would be drawn."""
        columns = self.oracle.columns
        share = min(1.0, _sample_count(size) / len(self.oracle.Y))
        return share * columns.gram_work * (size / columns.n_columns) ** 2

    def at(self, point: Point, rows: IndexArray) -> FloatArray | None:
        """Samples are drawn anew when the rows have doubled."""
        oracle = self.oracle
        h = oracle.loss.curvatures(point.samples, oracle.Y, oracle.w)
        if not 0.0 < float(h.sum()) < np.inf:
            return None
        if len(rows) > 2 * self.drawn_for:
            self._draw_samples(h, len(rows))
        columns = self.columns if len(rows) == len(point.B) else self.columns.chosen(rows)
        M = columns.gram(columns, h[self.samples] * self.factors)
        M[np.diag_indices(len(M))] = np.maximum(np.diagonal(M), float(h.sum()) * self.least[rows])
        return M

    def _draw_samples(self, h: FloatArray, size: int) -> None:
        """Samples of large curvature first, and the inverse of their chances; all where there are few."""
        n, count = len(h), _sample_count(size)
        self.samples, self.factors, self.columns = np.arange(n), np.ones((n, 1)), self.oracle.columns
        self.drawn_for, self.least = size, np.zeros(self.oracle.columns.n_columns)
        if count < n:
            chances = np.minimum(1.0, 0.5 * count * (h / h.sum() + 1.0 / n))
            self.samples = np.flatnonzero(np.random.default_rng(0).random(n) < chances[:, 0])
            self.factors = 1.0 / chances[self.samples]
            self.columns = self.oracle.columns.sampled(self.samples)
            self.least = _LEAST_SHARE * self.oracle.columns.norms(h) ** 2 / float(h.sum())


def _sample_count(size: int) -> int:
    return max(_LEAST_SAMPLES, _SAMPLES_PER_COLUMN * size)
