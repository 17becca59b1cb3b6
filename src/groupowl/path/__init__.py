"""Many strengths of one penalty on the same data."""

from __future__ import annotations

from .continuation import PathFit, PathPoint, fit_path
from .path import group_owl_path, resolve_alphas
from .path_result import PathResult
from .solving import solve_path

__all__ = ["PathFit", "PathPoint", "PathResult", "fit_path", "group_owl_path", "resolve_alphas", "solve_path"]
