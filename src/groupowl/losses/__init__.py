"""Losses: what is paid for the linear predictor, its conjugate and its curvature."""

from __future__ import annotations

from typing import Any

from .._checks import lookup
from .base import Loss
from .multinomial import MultinomialLoss
from .squared import SquaredLoss

__all__ = ["LOSSES", "Loss", "MultinomialLoss", "SquaredLoss", "resolve_loss"]

#: Every loss by name; the contract tests run over this table.
LOSSES: dict[str, Loss] = {"squared": SquaredLoss(), "multinomial": MultinomialLoss()}


def resolve_loss(loss: Any) -> Loss:
    """A loss from its name, or the loss itself."""
    if not isinstance(loss, str | type) and isinstance(loss, Loss):
        return loss
    return lookup("loss", loss, LOSSES)
