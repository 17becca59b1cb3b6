"""Group OWL models: sparse multi-task regression and classification with certified answers."""

from __future__ import annotations

from . import datasets, weights
from .gram import SufficientStatistics
from .penalty import GroupOWL, owl_dual_norm, owl_norm, owl_prox
from .problem import lam_max
from .screening import SafeScreener, ScreenReport
from .solvers import APGD, SPGD, History, Progress, SolveResult, WorkingSet, solve
from .weights import oscar_lam

__version__ = "0.1.0.dev0"

__all__ = [
    "APGD",
    "SPGD",
    "GroupOWL",
    "History",
    "Progress",
    "SafeScreener",
    "ScreenReport",
    "SolveResult",
    "SufficientStatistics",
    "WorkingSet",
    "datasets",
    "lam_max",
    "oscar_lam",
    "owl_dual_norm",
    "owl_norm",
    "owl_prox",
    "solve",
    "weights",
]
