"""Losses: what is paid for the linear predictor, its conjugate and its curvature."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from .._checks import lookup
from .base import Loss
from .cox import CoxLoss, survival_targets
from .huber import HuberLoss
from .multinomial import MultinomialLoss
from .separable import SeparableLoss
from .squared import SquaredLoss

__all__ = [
    "LOSSES",
    "CoxLoss",
    "HuberLoss",
    "Loss",
    "MultinomialLoss",
    "SeparableLoss",
    "SquaredLoss",
    "resolve_loss",
    "survival_targets",
]

# One file per loss, with the loss under the name LOSS. A new one joins by its line here.
_FILES = (
    "squared",
    "multinomial",
    "logistic",
    "poisson",
    "huber",
    "cox",
)

#: Every loss by name; the contract tests run over this table.
LOSSES: dict[str, Loss] = {loss.name: loss for loss in (import_module(f".{file}", __name__).LOSS for file in _FILES)}


def resolve_loss(loss: Any) -> Loss:
    """A loss from its name, or the loss itself."""
    if isinstance(loss, Loss):
        return loss
    return lookup("loss", loss, LOSSES)
