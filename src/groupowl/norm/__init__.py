"""The Group OWL norm: array functions of unit norms, and the penalty that owns the units."""

from __future__ import annotations

from .options import GROUP_SCALES, PLAIN, PenaltyOptions
from .penalty import GroupOWL, owl_dual_norm, owl_norm, owl_prox

__all__ = [
    "GROUP_SCALES",
    "PLAIN",
    "GroupOWL",
    "PenaltyOptions",
    "owl_dual_norm",
    "owl_norm",
    "owl_prox",
]
