"""A design of one's own: a matrix of small integers, kept in one byte per entry.

Counts of alleles (0, 1, 2) or gray values take an eighth of the memory that double precision takes. Products convert a
block of rows at a time, so that all sums run in double precision and X is never converted as a whole.
"""

from __future__ import annotations

import numpy as np

from groupowl.designs import ColumnMoments, DenseColumns, LocalDesign

_ROWS = 1024  # that are converted at a time


class ByteDesign(LocalDesign):
    """X in bytes. What concerns samples (targets, predictors, weights) is inherited: they are arrays here."""

    def __init__(self, X, passes=None, unit=None):
        if X.dtype not in (np.int8, np.uint8):
            raise TypeError(f"X must be of type int8 or uint8, got {X.dtype}.")
        super().__init__(X, passes, unit)
        self.dtype = np.dtype(np.float64)  # that of fitted coefficients, not of storage

    def _blocks(self, columns=slice(None)):
        for start in range(0, self.n_samples, _ROWS):
            rows = slice(start, start + _ROWS)
            yield rows, self.X[rows, columns].astype(np.float64)

    # Products ---------------------------------------------------------------------------------------

    def matmul(self, B, offset=None):
        used = np.flatnonzero(B.any(axis=1))  # most rows are zero most of the time
        self.charge(len(used))  # so that n_passes is true
        Z = np.concatenate([block @ B[used] for _, block in self._blocks(used)])
        return Z if offset is None else Z + offset

    def rmatmul(self, T):
        self.charge(self.n_features)
        return sum(block.T @ T[rows] for rows, block in self._blocks())

    # Columns ----------------------------------------------------------------------------------------

    def compute_moments(self, w):
        first = self.X[0].astype(np.float64)  # about the first row, so that constant columns have exact means
        mean = first + sum(w[rows, 0] @ (block - first) for rows, block in self._blocks()) / w.sum()
        rest = sum(w[rows, 0] @ (block - mean) for rows, block in self._blocks()) / w.sum()
        squares = sum(w[rows, 0] @ (block - mean) ** 2 for rows, block in self._blocks())
        return ColumnMoments.about(w.sum(), mean, rest, squares)

    def columns(self, columns):
        """Those of a working set, in double precision: inner solves then never come back to X."""
        return DenseColumns(self.X.T[columns].astype(np.float64), self.passes, self.unit)
