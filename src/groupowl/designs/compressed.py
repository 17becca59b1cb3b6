"""A few samples that stand for many: data with the same squared loss as the samples they were made from."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from .._kernels import divide_rows
from .._typing import FloatArray, Handle, IndexArray
from ..gram import CompressedData
from .base import PassCounter
from .dense import DenseDesign


class CompressedDesign(DenseDesign):
    """The small matrix R of :class:`~groupowl.gram.CompressedData`; products with it are no passes over the data.

    ``factors`` are those by which columns were multiplied, if there is no other design that remembers them.
    """

    rows_are_samples = False

    def __init__(
        self, R: FloatArray, gram: FloatArray, x_mean: FloatArray, factors: FloatArray, passes: PassCounter
    ) -> None:
        super().__init__(R, passes, unit=0.0)
        self.known_gram = gram
        self.x_mean = x_mean
        self.factors = factors

    @classmethod
    def of(
        cls, data: CompressedData, passes: PassCounter | None = None, factors: FloatArray | None = None
    ) -> CompressedDesign:
        """Design of compressed data; ``passes`` is that of the data they were made from."""
        factors = np.ones(len(data.gram)) if factors is None else factors
        return cls(data.R, data.gram, data.x_mean, factors, PassCounter() if passes is None else passes)

    def restrict(self, columns: IndexArray) -> CompressedDesign:
        """Copy columns, and the part of the Gram matrix that belongs to them."""
        gram = self.known_gram[np.ix_(columns, columns)]
        return CompressedDesign(self.X[:, columns], gram, self.x_mean[columns], self.factors[columns], self.passes)

    def compressed(self, Y: Handle, w: Handle, *, exact: bool, center: bool = False) -> None:
        """Nothing is to be gained: what rounding took when R was made is lost."""
        return

    def input_coefficients(self, B: FloatArray, free: FloatArray | None = None) -> tuple[FloatArray, FloatArray]:
        """Coefficients for the columns as they were given, and the shift that their means cause."""
        return self.factors[:, None] * B, -(self.x_mean @ B)

    @cached_property
    def column_centers(self) -> FloatArray | None:
        """The means of the columns as they were given."""
        return divide_rows(self.x_mean[:, None], self.factors)[:, 0] if self.x_mean.any() else None

    def own_coefficients(self, B: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Coefficients of the scaled columns, zero for those without variation."""
        return divide_rows(B, self.factors), np.zeros((0, B.shape[1]))

    def gram(self, left: IndexArray, right: IndexArray, w: Handle) -> FloatArray:
        """Known already; the samples have weight 1."""
        return self.known_gram[np.ix_(left, right)]
