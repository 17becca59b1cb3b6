"""A few samples that stand for many: data with the same squared loss as the samples they were made from."""

from __future__ import annotations

import numpy as np

from .._typing import FloatArray, Handle, IndexArray
from ..gram import CompressedData
from .base import PassCounter
from .dense import DenseDesign


class CompressedDesign(DenseDesign):
    """The small matrix R of :class:`~groupowl.gram.CompressedData`; products with it are no passes over the data."""

    def __init__(self, R: FloatArray, gram: FloatArray, passes: PassCounter) -> None:
        super().__init__(R, passes, unit=0.0)
        self.known_gram = gram

    @classmethod
    def of(cls, data: CompressedData, passes: PassCounter) -> CompressedDesign:
        """Design of compressed data; ``passes`` is that of the data they were made from."""
        return cls(data.R, data.gram, passes)

    def restrict(self, columns: IndexArray) -> CompressedDesign:
        """Copy columns, and the part of the Gram matrix that belongs to them."""
        return CompressedDesign(self.X[:, columns], self.known_gram[np.ix_(columns, columns)], self.passes)

    def gram(self, left: IndexArray, right: IndexArray, w: Handle) -> FloatArray:
        """Known already; the samples have weight 1."""
        return self.known_gram[np.ix_(left, right)]
