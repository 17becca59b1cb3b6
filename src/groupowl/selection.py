"""The former name of :mod:`groupowl.model_selection`."""

from __future__ import annotations

import warnings

from .model_selection import *  # noqa: F403
from .model_selection import __all__ as __all__

warnings.warn(
    "groupowl.selection is now groupowl.model_selection, and will be removed. Import from there.",
    DeprecationWarning,
    stacklevel=2,
)
