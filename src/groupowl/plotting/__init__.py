"""Pictures of fits, paths and solves. Needs Matplotlib (extra ``plot``).

Displays follow scikit-learn: made by ``from_estimator`` or ``from_result``, with the numbers they draw as attributes,
drawn again by ``plot``, on axes of your own with ``ax=``.
"""

import warnings
from typing import Any

from .alphas import CoefficientPathDisplay, CrossValidationDisplay
from .coefficients import ClusterDisplay, CoefficientHeatmapDisplay
from .convergence import ConvergenceDisplay, plot_gap, plot_rows_kept
from .knockoff_statistics import KnockoffDisplay
from .risk_groups import SurvivalDisplay
from .stability_paths import StabilityDisplay
from .style import COLORS, LINE_STYLES, MARKERS, label_log_axis

__all__ = [
    "COLORS",
    "LINE_STYLES",
    "MARKERS",
    "ClusterDisplay",
    "CoefficientHeatmapDisplay",
    "CoefficientPathDisplay",
    "ConvergenceDisplay",
    "CrossValidationDisplay",
    "KnockoffDisplay",
    "StabilityDisplay",
    "SurvivalDisplay",
    "label_log_axis",
    "plot_gap",
    "plot_rows_kept",
]


def __getattr__(name: str) -> Any:
    if name == "COLOURS":
        warnings.warn("groupowl.plotting.COLOURS is now COLORS.", DeprecationWarning, stacklevel=2)
        return COLORS
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
