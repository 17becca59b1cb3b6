"""The Group OWL norm: array functions of unit norms, and the penalty that owns the units."""

from __future__ import annotations

from .penalty import GroupOWL, owl_dual_norm, owl_norm, owl_prox

__all__ = ["GroupOWL", "owl_dual_norm", "owl_norm", "owl_prox"]
