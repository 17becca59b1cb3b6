"""Scores by the scorers of scikit-learn, or those of users: fitted estimators are handed to them."""

from __future__ import annotations

import inspect
import numbers
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.metrics import get_scorer

from .._typing import FloatArray, IndexArray
from ..selection import Candidate
from .base import FitData, GroupOWLBase

# Names of scores that the loss of a model gives itself, classes that a fold does not have included.
_OWN_SCORES = {"squared": "neg_mean_squared_error", "multinomial": "neg_log_loss"}


def resolve_scorer(scoring: Any, loss: str | None = None) -> Any:
    """A scorer from its name or itself; None for the loss of the model."""
    is_own = isinstance(scoring, str) and loss is not None and scoring == _OWN_SCORES.get(loss)
    if scoring is None or (is_own and not get_config()["enable_metadata_routing"]):
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
        try:
            value = self.scorer(self.estimator, X, y, **params)
        except ValueError as error:
            raise ValueError(
                f"scoring={self.scorer!r} failed on a fold with {len(self.rows)} test samples: {error} "
                "Choose another scoring, or folds that have all classes."
            ) from error
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
