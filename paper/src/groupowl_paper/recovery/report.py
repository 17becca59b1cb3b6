"""What the study found: scores per repetition, their means, and the report made of them."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any, NamedTuple

import numpy as np

from groupowl._typing import FloatArray

from .fitting import BASELINE
from .reading import as_markdown
from .scoring import Scores
from .simulation import Setting


class Estimate(NamedTuple):
    """A mean and its standard error."""

    mean: float
    standard_error: float


def estimate(values: FloatArray) -> Estimate:
    """Mean of independent values, with its standard error."""
    return Estimate(float(np.mean(values)), float(np.std(values, ddof=1) / np.sqrt(len(values))))


@dataclass(frozen=True)
class Cell:
    """One method at one variant and correlation: ``scores`` by repetition."""

    variant: str
    correlation: float
    method: str
    scores: tuple[Scores, ...]

    def values(self, measure: str) -> FloatArray:
        """One score, by repetition."""
        return np.array([getattr(item, measure) for item in self.scores])

    def to_dict(self) -> dict[str, Any]:
        """Scores by name, each a list over repetitions."""
        scores = {item.name: self.values(item.name).tolist() for item in fields(Scores)}
        return {"variant": self.variant, "correlation": self.correlation, "method": self.method, "scores": scores}

    @classmethod
    def from_dict(cls, saved: dict[str, Any]) -> Cell:
        """Undo :meth:`to_dict`."""
        columns = saved["scores"]
        rows = zip(*columns.values(), strict=True)
        scores = tuple(Scores(**dict(zip(columns, row, strict=True))) for row in rows)
        return cls(saved["variant"], saved["correlation"], saved["method"], scores)


@dataclass(frozen=True)
class RecoveryReport:
    """Scores of all methods on all data sets.

    Attributes
    ----------
    setting : Setting
        Sizes, noise, grid and seed.
    cells : tuple of Cell
        One per variant, correlation and method.
    """

    setting: Setting
    cells: tuple[Cell, ...]

    @property
    def variants(self) -> list[str]:
        """Variants in the order in which they ran."""
        return list(dict.fromkeys(cell.variant for cell in self.cells))

    @property
    def methods(self) -> list[str]:
        """Methods in the order in which they ran, the baseline first."""
        return list(dict.fromkeys(cell.method for cell in self.cells))

    def values(self, variant: str, correlation: float, method: str, measure: str) -> FloatArray:
        """One score, by repetition."""
        key = (variant, correlation, method)
        return next(c for c in self.cells if (c.variant, c.correlation, c.method) == key).values(measure)

    def mean(self, variant: str, correlation: float, method: str, measure: str) -> Estimate:
        """Mean over repetitions."""
        return estimate(self.values(variant, correlation, method, measure))

    def difference(self, variant: str, correlation: float, method: str, measure: str) -> Estimate:
        """Mean of a method's score less the baseline's on the same data; its error knows that the data are shared."""
        own, other = (self.values(variant, correlation, name, measure) for name in (method, BASELINE))
        return estimate(own - other)

    def to_dict(self) -> dict[str, Any]:
        """The report as JSON can hold it."""
        setting = asdict(self.setting) | {"correlations": list(self.setting.correlations)}
        return {"setting": setting, "cells": [cell.to_dict() for cell in self.cells]}

    @classmethod
    def from_dict(cls, saved: dict[str, Any]) -> RecoveryReport:
        """Undo :meth:`to_dict`."""
        setting = Setting(**saved["setting"] | {"correlations": tuple(saved["setting"]["correlations"])})
        return cls(setting, tuple(Cell.from_dict(cell) for cell in saved["cells"]))

    def markdown(self) -> str:
        """A section of a report: what was done, the numbers, and what they say."""
        return as_markdown(self)
