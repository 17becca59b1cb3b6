"""Selection with error control: which of the selected features are real."""

from .._lazy import attributes

__all__: list[str] = []

__getattr__, __dir__ = attributes(__name__, {})
