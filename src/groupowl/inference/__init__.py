"""Selection with error control: which of the selected features are real."""

from typing import TYPE_CHECKING

from .._lazy import attributes

if TYPE_CHECKING:
    from .feature_tests import FeatureTests, hotelling_tests
    from .nodewise import desparsified
    from .slope_selector import SlopeSelector

__all__ = ["FeatureTests", "SlopeSelector", "desparsified", "hotelling_tests"]

_HOMES = ("feature_tests", "nodewise", "slope_selector")

if not TYPE_CHECKING:  # a type checker would take any name for one of the package's
    __getattr__, __dir__ = attributes(__name__, dict.fromkeys(_HOMES, __all__))
