"""Scores by the scorers of scikit-learn, or those of users: fitted estimators are handed to them."""

from __future__ import annotations

import inspect
import numbers
from contextlib import suppress
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.metrics import get_scorer

from .._frames import take_rows
from .._typing import FloatArray, IndexArray
from ..designs import Design
from ..model_selection import Candidate
from .base import GroupOWLBase
from .fit_data import FitData
from .searching import Job

# Names of scores that the loss of a model gives itself, classes that a fold does not have included.
_OWN_SCORES = {"squared": "neg_mean_squared_error", "multinomial": "neg_log_loss"}
# How the first argument of a metric is called.
_TARGET_NAMES = ("y_true", "y", "labels_true")


def resolve_scorer(scoring: Any, loss: str | None = None) -> Any:
    """A scorer from its name or itself; None for the loss of the model."""
    is_own = isinstance(scoring, str) and loss is not None and scoring == _OWN_SCORES.get(loss)
    if scoring is None or (is_own and not get_config()["enable_metadata_routing"]):
        return None
    if isinstance(scoring, str):
        try:
            return get_scorer(scoring)
        except ValueError as error:
            raise ValueError(f"scoring={scoring!r}: {error}") from error
    if not callable(scoring):
        raise TypeError(
            "scoring must be None, the name of a scorer or a callable scorer(estimator, X, y), "
            f"got {scoring!r} of type {type(scoring).__name__}."
        )
    if _is_metric(scoring):
        name = getattr(scoring, "__name__", repr(scoring))
        raise ValueError(
            f"scoring={name} is a function of targets and predictions, but scoring must be callable as "
            f"scorer(estimator, X, y). Use sklearn.metrics.make_scorer({name}), or the name of a scorer."
        )
    return scoring


def _is_metric(scoring: Any) -> bool:
    """Whether a callable compares targets with predictions, which scorers make themselves."""
    parameters = _parameters(scoring)
    return bool(parameters) and parameters[0].name in _TARGET_NAMES


def takes_sample_weight(scorer: Any) -> bool:
    """Whether a scorer can be called with sample weights."""
    return any(item.name == "sample_weight" or item.kind is item.VAR_KEYWORD for item in _parameters(scorer))


def _parameters(function: Any) -> list[inspect.Parameter]:
    try:
        return list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # built-in functions may have no signature
        return []


@dataclass(frozen=True, eq=False)
class ScorerScore:
    """Test samples and the scorer that judges predictions for them.

    Attributes
    ----------
    scorer : callable
        ``scorer(estimator, X, y, **params)``.
    estimator : GroupOWLBase
        Of one alpha; each candidate is given to the scorer as a fitted copy of it.
    data : FitData
        All samples.
    given_X : array, sparse matrix, data frame or Design
        The same X as scorers get it, with names where it has names.
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
    given_X: Any
    y: Any
    rows: IndexArray
    params: dict[str, Any]

    @classmethod
    def of(cls, job: Job, rows: IndexArray) -> ScorerScore:
        """The scores of a job on some of its samples."""
        single = job.estimator._single
        wanted = single().get_params()
        estimator = single(**{name: value for name, value in job.estimator.get_params().items() if name in wanted})
        return cls(job.scorer, estimator, job.data, job.given_X, job.y, rows, job.scorer_params)

    def __call__(self, candidates: list[Candidate], alphas: FloatArray, weights: FloatArray) -> FloatArray:
        """A score for each candidate."""
        X = self.given_X.rows(self.rows) if isinstance(self.given_X, Design) else take_rows(self.given_X, self.rows)
        y = self.y[self.rows]
        params = {name: self._cut(value) for name, value in self.params.items()}
        fitted = (self._fitted(*item, weights) for item in zip(candidates, alphas.tolist(), strict=True))
        return np.array([self._score(estimator, X, y, params) for estimator in fitted])

    def _fitted(self, candidate: Candidate, alpha: float, weights: FloatArray) -> GroupOWLBase:
        """An estimator that predicts as the candidate does, with what a fit stores of it, but certificates."""
        estimator, data = copy(self.estimator), self.data
        estimator.set_params(alpha=alpha, weights=weights)
        coef, intercept = estimator._public_coefficients(candidate.coef(data.n_features), candidate.intercept, data)
        known = {
            "n_features_in_": data.n_features,
            "alpha_": alpha,
            "weights_": weights,
            "unpenalized_": data.unpenalized,
            "coef_": coef,
            "intercept_": intercept,
            "feature_names_in_": data.names,
            "target_names_": data.target_names,
            "classes_": data.classes,
        }
        estimator.__dict__.update({name: value for name, value in known.items() if value is not None})
        return estimator

    def _score(self, estimator: GroupOWLBase, X: Any, y: Any, params: dict[str, Any]) -> float:
        try:
            value = self.scorer(estimator, X, y, **params)
        except (TypeError, ValueError) as error:
            kind = TypeError if isinstance(error, TypeError) else ValueError
            raise kind(
                f"scoring={self.scorer!r} failed on a fold with {len(self.rows)} test samples: "
                f"{str(error).rstrip('.')}. Choose another scoring, a scorer(estimator, X, y), or folds that have all "
                "classes."
            ) from error
        if hasattr(value, "item"):  # arrays of one number
            with suppress(ValueError):
                value = value.item()
        if not isinstance(value, numbers.Real):
            raise ValueError(f"scoring must return a number, got {value!r} of type {type(value).__name__}.")
        return float(value)

    def _cut(self, value: Any) -> Any:
        has_samples = np.ndim(value) >= 1 and len(value) == self.data.n_samples
        return np.asarray(value)[self.rows] if has_samples else value
