"""The Group OWL norm: array functions of unit norms, and the penalty that owns the units."""

from __future__ import annotations

from .arrays import owl_dual_norm, owl_norm, owl_prox
from .options import GROUP_SCALES, PLAIN, PenaltyOptions
from .penalty import GroupOWL

__all__ = [
    "GROUP_SCALES",
    "PLAIN",
    "GroupOWL",
    "PenaltyOptions",
    "owl_dual_norm",
    "owl_norm",
    "owl_prox",
]
