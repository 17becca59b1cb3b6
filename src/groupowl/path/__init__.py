"""Many alphas on the same data: warm starts, proved interpolation, coefficient paths."""

from __future__ import annotations

from .follower import fit_path, path_through_fit, resolve_alphas
from .path import group_owl_path, solve_path
from .path_result import PathPoint, PathResult, Solution

#: Former name of what :func:`fit_path` returns.
PathFit = PathResult

__all__ = [
    "PathFit",
    "PathPoint",
    "PathResult",
    "Solution",
    "fit_path",
    "group_owl_path",
    "path_through_fit",
    "resolve_alphas",
    "solve_path",
]
