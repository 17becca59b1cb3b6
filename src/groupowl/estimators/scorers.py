"""Scores by the scorers of scikit-learn, or those of users: fitted estimators are handed to them."""

from __future__ import annotations

import inspect
import numbers
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.metrics import get_scorer

from .._typing import FloatArray, IndexArray
from ..selection import Candidate
from .base import FitData, GroupOWLBase


def resolve_scorer(scoring: Any) -> Any:
    """A scorer from its name or itself; None for the loss of the model."""
    if scoring is None:
        return None
    if isinstance(scoring, str):
        return get_scorer(scoring)
    if not callable(scoring):
        raise TypeError(
            "scoring must be None, the name of a scorer or a callable scorer(estimator, X, y), "
            f"got {scoring!r} of type {type(scoring).__name__}."
        )
    return scoring


def takes_sample_weight(scorer: Any) -> bool:
    """Whether a scorer can be called with sample weights."""
    try:
        parameters = inspect.signature(scorer).parameters.values()
    except (TypeError, ValueError):  # built-in functions may have no signature
        return False
    return any(item.name == "sample_weight" or item.kind is item.VAR_KEYWORD for item in parameters)


@dataclass(frozen=True, eq=False)
class ScorerScore:
    """Test samples and the scorer that judges predictions for them.

    Attributes
    ----------
    scorer : callable
        ``scorer(estimator, X, y, **params)``.
    estimator : GroupOWLBase
        Of one alpha; its fitted attributes are those of each candidate in turn.
    data : FitData
        All samples.
    y : ndarray
        Targets or labels of all samples.
    rows : ndarray of int
        The test samples.
    params : dict
        Of the scorer, for all samples; those with one entry per sample are cut to the test samples.
    """

    scorer: Any
    estimator: GroupOWLBase
    data: FitData
    y: Any
    rows: IndexArray
    params: dict[str, Any]

    def __call__(self, candidates: list[Candidate]) -> FloatArray:
        """A score for each candidate."""
        X, y = self.data.X[self.rows], self.y[self.rows]
        params = {name: self._cut(value) for name, value in self.params.items()}
        return np.array([self._score(candidate, X, y, params) for candidate in candidates])

    def _score(self, candidate: Candidate, X: Any, y: Any, params: dict[str, Any]) -> float:
        B = candidate.coef(self.data.n_features)
        adopt_coefficients(self.estimator, B, candidate.intercept, self.data)
        value = self.scorer(self.estimator, X, y, **params)
        if not isinstance(value, numbers.Real):
            raise ValueError(f"scoring must return a number, got {value!r} of type {type(value).__name__}.")
        return float(value)

    def _cut(self, value: Any) -> Any:
        has_samples = np.ndim(value) >= 1 and len(value) == self.data.n_samples
        return np.asarray(value)[self.rows] if has_samples else value


def adopt_coefficients(estimator: Any, B: FloatArray, intercept: FloatArray, data: FitData) -> None:
    """Make an estimator one that predicts with these coefficients."""
    if data.classes is not None:
        estimator.classes_ = data.classes
    estimator.n_features_in_ = data.n_features
    estimator.coef_, estimator.intercept_ = estimator._public_coefficients(B, intercept, data)
