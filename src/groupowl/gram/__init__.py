"""Moments of (X, Y): all that a squared-loss problem needs to know of its samples.

Statistics of disjoint samples add up and can be taken off again; :meth:`SufficientStatistics.compress` and
:func:`compress_qr` turn many samples into at most ``n_features + n_tasks`` that have the same squared loss.
"""

from __future__ import annotations

from .compressed import CompressedData, Moments, compress_blocks, compress_qr
from .samples import NO_SAMPLES
from .statistics import SufficientStatistics, statistics_of_parts

__all__ = [
    "NO_SAMPLES",
    "CompressedData",
    "Moments",
    "SufficientStatistics",
    "compress_blocks",
    "compress_qr",
    "statistics_of_parts",
]
