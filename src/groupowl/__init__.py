"""Group OWL models: sparse multi-task regression and classification with certified answers."""

from typing import TYPE_CHECKING

from ._lazy import attributes
from .solvers import APGD, SPGD, History, Progress, SolveResult, WorkingSet, solve

if TYPE_CHECKING:
    from . import datasets, inference, weights
    from .designs import DaskDesign, MemmapDesign, SufficientStatistics
    from .estimators import (
        FeatureStatus,
        FitCertificate,
        FitSummary,
        GroupOWLClassifier,
        GroupOWLClassifierCV,
        GroupOWLCox,
        GroupOWLCoxCV,
        GroupOWLRegressor,
        GroupOWLRegressorCV,
        Verification,
    )
    from .inputs import stack_tasks
    from .kernel import KernelInfo, kernel_info
    from .losses import survival_targets
    from .norm import GroupOWL, owl_dual_norm, owl_norm, owl_prox
    from .path import PathPoint, PathResult, group_owl_path
    from .problem import lam_max
    from .screening import SafeScreener, ScreenReport
    from .solvers.many import solve_many
    from .storage import load, save
    from .versions import show_versions
    from .weights import oscar_lam

__version__ = "0.1.0.dev0"

__all__ = [
    "APGD",
    "SPGD",
    "DaskDesign",
    "FeatureStatus",
    "FitCertificate",
    "FitSummary",
    "GroupOWL",
    "GroupOWLClassifier",
    "GroupOWLClassifierCV",
    "GroupOWLCox",
    "GroupOWLCoxCV",
    "GroupOWLRegressor",
    "GroupOWLRegressorCV",
    "History",
    "KernelInfo",
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
    "inference",
    "kernel_info",
    "lam_max",
    "load",
    "oscar_lam",
    "owl_dual_norm",
    "owl_norm",
    "owl_prox",
    "save",
    "show_versions",
    "solve",
    "solve_many",
    "stack_tasks",
    "survival_targets",
    "weights",
]

# What solving needs is imported at once, so that a first call is not slower than others; other modules when a name of
# theirs is first used, so that importing the package stays cheap. Each of these imports those before it, as good as.
_HOMES = (
    "versions",
    "kernel",
    "weights",
    "inputs",
    "norm",
    "losses",
    "problem",
    "screening",
    "designs",
    "solvers.many",
    "path",
    "estimators",
    "storage",
)
# Modules that are attributes of the package themselves, imported or not.
_MODULES = ("datasets", "inference", "losses", "model", "problem", "selection", "solvers")

if not TYPE_CHECKING:  # a type checker would take any name for one of the package's
    __getattr__, __dir__ = attributes(__name__, dict.fromkeys(_HOMES, __all__), _MODULES)
