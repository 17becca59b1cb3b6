"""Selection with error control: which of the selected features are real."""

from typing import TYPE_CHECKING

from .._lazy import attributes

if TYPE_CHECKING:
    from .stability import StabilitySelector

__all__ = ["StabilitySelector"]

_HOMES = ("stability",)

if not TYPE_CHECKING:  # a type checker would take any name for one of the package's
    __getattr__, __dir__ = attributes(__name__, dict.fromkeys(_HOMES, __all__))
