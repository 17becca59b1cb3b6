"""Many strengths of one penalty on the same data."""

from __future__ import annotations

from .solving import solve_path

__all__ = ["solve_path"]
