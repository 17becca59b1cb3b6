"""Scores of candidates on the samples that were left out: negative mean squared error, negative log-loss."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from .._kernels import EPS
from .._typing import FloatArray, IndexArray
from ..designs import Design
from ..gram import SufficientStatistics
from .candidates import Candidate

# A probability of zero for the class that came true costs as much as this one.
_LEAST_PROBABILITY = EPS


class Score(Protocol):
    """Test samples that give each candidate a number; higher is better."""

    def __call__(self, candidates: list[Candidate], alphas: FloatArray, weights: FloatArray) -> FloatArray:
        """A score for each candidate, fitted at these alphas with this weight sequence."""
        ...


@dataclass(frozen=True, eq=False)
class LossScore:
    """Minus the mean loss of some samples; the design is that of all samples."""

    loss: str
    design: Design
    Y: FloatArray
    sample_weight: FloatArray
    rows: IndexArray

    @np.errstate(all="ignore")  # a score that overflows is infinite
    def __call__(self, candidates: list[Candidate], alphas: FloatArray, weights: FloatArray) -> FloatArray:
        """Score by one product with the test samples for each candidate."""
        design = self.design.rows(self.rows)
        weight = self.sample_weight[self.rows]
        Y, w = design.samples(self.Y[self.rows]), design.samples((weight / weight.sum())[:, None])
        total = _TOTALS[self.loss]
        return -np.array(
            [design.reduce(total, design.matmul(c.coef(design.n_features), c.intercept), Y, w) for c in candidates]
        )


@dataclass(frozen=True, eq=False)
class StatisticsScore:
    """Minus the mean squared error of samples that are known by their statistics."""

    part: SufficientStatistics

    @np.errstate(all="ignore")  # a score that overflows is infinite
    def __call__(self, candidates: list[Candidate], alphas: FloatArray, weights: FloatArray) -> FloatArray:
        """Score without a look at the data."""
        return -np.array([mean_squared_error(self.part, candidate) for candidate in candidates])


def mean_squared_error(part: SufficientStatistics, candidate: Candidate) -> float:
    """``sum_i w_i ||y_i - b0 - x_i B||^2 / (W q)``: a part about the means, and one for the distance of the means."""
    chosen, B = candidate.support, candidate.rows
    explained = 2.0 * part.xy[chosen] - part.gram[np.ix_(chosen, chosen)] @ B
    about_means = np.maximum(part.yy - np.einsum("jk,jk->k", explained, B), 0.0) / part.total_weight
    shift = part.y_mean - candidate.intercept - part.x_mean[chosen] @ B
    return float(np.mean(about_means + shift**2))


def _squared_errors(Z: FloatArray, Y: FloatArray, w: FloatArray) -> float:
    return float(np.sum(w * (Y - Z) ** 2)) / Y.shape[1]


def _log_losses(Z: FloatArray, Y: FloatArray, w: FloatArray) -> float:
    odds = np.exp(Z - Z.max(axis=1, keepdims=True))
    probabilities = odds / odds.sum(axis=1, keepdims=True)
    logs = np.log(np.clip(probabilities, _LEAST_PROBABILITY, 1.0 - _LEAST_PROBABILITY))
    return -float(np.sum(w * Y * logs))


# Sums over samples whose weights add up to 1.
_TOTALS: dict[str, Callable[[FloatArray, FloatArray, FloatArray], float]] = {
    "squared": _squared_errors,
    "multinomial": _log_losses,
}
