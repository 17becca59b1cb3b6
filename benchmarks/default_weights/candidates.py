"""The weight sequences that are compared."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import groupowl as go
from groupowl.weights import LevelShares


@dataclass(frozen=True)
class FirstRanks:
    """Weights that fall linearly from 1 to ``last`` over the first ranks, as many as ``count(d, n)``, and stay there.

    OSCAR falls over all d ranks, so that its steps vanish as d grows; these do not.
    """

    count: Callable[[int, int], float]
    last: float

    def __call__(self, n_features: int, n_samples: int) -> Any:
        k = max(min(math.ceil(self.count(n_features, n_samples)), n_features), 1)
        fallen = np.minimum(np.arange(n_features) / k, 1.0)
        return 1.0 - (1.0 - self.last) * fallen


def _steep_oscar(n_features: int) -> Any:
    return go.weights.oscar(n_features, ratio=3.0)


#: By name in tables: what the estimators get.
CANDIDATES: dict[str, Any] = {
    "constant": "constant",
    "oscar": "oscar",
    "oscar, ratio 3": _steep_oscar,
    "linear": "linear",
    "bh": "bh",
    "chi": "chi",
    "chi_gauss": "chi_gauss",
    "first n ranks to 1/2": FirstRanks(lambda d, n: n, 0.5),
    "first root of d to 1/2": FirstRanks(lambda d, n: math.sqrt(d), 0.5),
    "first root of d to 0.8": FirstRanks(lambda d, n: math.sqrt(d), 0.8),
    "levels 2 %; 0.7": LevelShares((0.02,), (0.7,)),
    "levels 10 %; 0.7": LevelShares((0.1,), (0.7,)),
}
#: Choices by the scores of cross-validation, as a list of weights makes them; they need no fits of their own here.
CHOICES: dict[str, tuple[str, ...]] = {
    "CV of constant, oscar, bh": ("constant", "oscar", "bh"),
    "CV of all": tuple(CANDIDATES),
}
DEFAULT = "oscar"
