"""Selection with error control: which of the selected features are real."""

from typing import TYPE_CHECKING

from .._lazy import attributes

if TYPE_CHECKING:
    from .feature_tests import FeatureTests, hotelling_tests
    from .knockoff_selector import KnockoffSelector, knockoff_threshold
    from .knockoffs import GaussianKnockoffs, fixed_knockoffs
    from .nodewise import desparsified
    from .slope_selector import SlopeSelector
    from .stability import StabilitySelector

__all__ = [
    "FeatureTests",
    "GaussianKnockoffs",
    "KnockoffSelector",
    "SlopeSelector",
    "StabilitySelector",
    "desparsified",
    "fixed_knockoffs",
    "hotelling_tests",
    "knockoff_threshold",
]

_HOMES = ("knockoffs", "knockoff_selector", "stability", "slope_selector", "feature_tests", "nodewise")

if not TYPE_CHECKING:  # a type checker would take any name for one of the package's
    __getattr__, __dir__ = attributes(__name__, dict.fromkeys(_HOMES, __all__))
