"""Group OWL models: sparse multi-task regression and classification with certified answers."""

from __future__ import annotations

from . import datasets, weights
from .designs import DaskDesign, MemmapDesign
from .estimators import (
    FeatureStatus,
    FitCertificate,
    GroupOWLClassifier,
    GroupOWLClassifierCV,
    GroupOWLRegressor,
    GroupOWLRegressorCV,
    Verification,
)
from .gram import SufficientStatistics
from .path import PathPoint, PathResult, group_owl_path
from .penalty import GroupOWL, owl_dual_norm, owl_norm, owl_prox
from .persistence import load, save
from .problem import lam_max
from .screening import SafeScreener, ScreenReport
from .solvers import APGD, SPGD, History, Progress, SolveResult, WorkingSet, solve
from .versions import show_versions
from .weights import oscar_lam

__version__ = "0.1.0.dev0"

__all__ = [
    "APGD",
    "SPGD",
    "DaskDesign",
    "FeatureStatus",
    "FitCertificate",
    "GroupOWL",
    "GroupOWLClassifier",
    "GroupOWLClassifierCV",
    "GroupOWLRegressor",
    "GroupOWLRegressorCV",
    "History",
    "MemmapDesign",
    "PathPoint",
    "PathResult",
    "Progress",
    "SafeScreener",
    "ScreenReport",
    "SolveResult",
    "SufficientStatistics",
    "Verification",
    "WorkingSet",
    "datasets",
    "group_owl_path",
    "lam_max",
    "load",
    "oscar_lam",
    "owl_dual_norm",
    "owl_norm",
    "owl_prox",
    "save",
    "show_versions",
    "solve",
    "weights",
]
