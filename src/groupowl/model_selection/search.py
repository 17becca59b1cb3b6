"""One training set, one weight sequence: the unit of work of cross-validation."""

from __future__ import annotations

import time
from dataclasses import dataclass

from .._typing import FloatArray, IndexArray
from .candidates import Fitting, Training
from .loss_scores import Score


@dataclass(frozen=True, eq=False)
class FoldTask:
    """What a fold trains on, and what scores it."""

    training: Training
    score: Score


@dataclass(frozen=True, eq=False)
class FoldResult:
    """What a fold found.

    Attributes
    ----------
    scores : ndarray of shape (n_alphas,)
    supports : list of ndarray of int
        Features with coefficients, for each alpha.
    n_short : int
        Fits that fell short of the tolerance.
    seconds : float
    """

    scores: FloatArray
    supports: list[IndexArray]
    n_short: int
    seconds: float


def run_fold(task: FoldTask, fitting: Fitting, weights: FloatArray, alphas: FloatArray, seed: int) -> FoldResult:
    """Fit the path of a fold and score it."""
    started = time.perf_counter()
    path = task.training.fit(fitting, weights, alphas, seed)
    scores = task.score(path.candidates, alphas, weights)
    supports = [candidate.support for candidate in path.candidates]
    return FoldResult(scores, supports, path.n_short, time.perf_counter() - started)
