"""Matrices in blocks of rows on Dask: X and sample space stay on the workers."""

from __future__ import annotations

from .dask_design import DaskDesign

__all__ = ["DaskDesign"]
