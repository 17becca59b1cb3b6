"""Losses: what is paid for the linear predictor, its conjugate and its curvature."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from .. import _lazy
from .._checks import lookup
from .base import Loss
from .offset import WithOffset, check_offset, nonzero_offset, with_offset

if TYPE_CHECKING:
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
    "WithOffset",
    "check_offset",
    "nonzero_offset",
    "resolve_loss",
    "survival_targets",
    "with_offset",
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

__getattr__, __dir__ = _lazy.attributes(
    __name__,
    {
        "cox": ["CoxLoss", "survival_targets"],
        "huber": ["HuberLoss"],
        "multinomial": ["MultinomialLoss"],
        "separable": ["SeparableLoss"],
        "squared": ["SquaredLoss"],
    },
    modules=_FILES,
)


class _Losses(Mapping[str, Loss]):
    """Every loss by name; its file is imported when the loss is first used."""

    def __init__(self) -> None:
        self._imported: dict[str, Loss] = {}  # to import again takes more time than a small fit can spare

    def __getitem__(self, name: str) -> Loss:
        if name not in self._imported:
            if name not in _FILES:
                raise KeyError(name)
            self._imported[name] = import_module(f".{name}", __name__).LOSS
        return self._imported[name]

    def __iter__(self) -> Iterator[str]:
        return iter(_FILES)

    def __len__(self) -> int:
        return len(_FILES)


#: Every loss by name; the contract tests run over this table.
LOSSES: Mapping[str, Loss] = _Losses()


def resolve_loss(loss: Any) -> Loss:
    """A loss from its name, or the loss itself."""
    if isinstance(loss, Loss):
        return loss
    return lookup("loss", loss, LOSSES)
