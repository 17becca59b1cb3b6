"""Many strengths of one penalty on the same data."""

from __future__ import annotations

from .fitting import PathFit, PathPoint, fit_path, path_through_fit
from .group_owl import group_owl_path, resolve_alphas
from .result import PathResult
from .solving import solve_path

__all__ = [
    "PathFit",
    "PathPoint",
    "PathResult",
    "fit_path",
    "group_owl_path",
    "path_through_fit",
    "resolve_alphas",
    "solve_path",
]
