"""A study of the paper's claim that Group OWL finds groups of correlated features better than the L2,1 norm.

Multi-task regressions are simulated whose features come in correlated groups, a few of them active. Group OWL with
four weight sequences and scikit-learn's multi-task lasso see the same data and are tuned alike. What counts is the
support, the groups as clusters of rows of equal norm, and the error of prediction; :meth:`RecoveryReport.markdown`
says in words which way the numbers fell.
"""

from .figure import recovery_figure
from .report import RecoveryReport
from .simulation import VARIANTS, Setting, Simulation, simulate
from .study import run_recovery

__all__ = ["VARIANTS", "RecoveryReport", "Setting", "Simulation", "recovery_figure", "run_recovery", "simulate"]
