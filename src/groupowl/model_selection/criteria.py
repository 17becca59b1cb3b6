"""Scorers of scikit-learn or of users for samples that were left out, and information criteria for all samples."""

from __future__ import annotations

import inspect
import numbers
from collections.abc import Iterable
from contextlib import suppress
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import gammaln
from sklearn import get_config
from sklearn.metrics import get_scorer

from .._checks import lookup
from .._frames import take_rows
from .._typing import FloatArray, IndexArray
from ..designs import Design
from ..losses import resolve_loss
from ..norm.kernels import EPS
from ..path import Solution

# How the first argument of a metric is called.
_TARGET_NAMES = ("y_true", "y", "labels_true")


def scorer_scores(
    scorer: Any,
    estimator: Any,
    data: Any,
    X: Any,
    y: Any,
    params: dict[str, Any],
    rows: IndexArray,
    solutions: list[Solution],
    alphas: FloatArray,
    weights: FloatArray,
) -> FloatArray:
    """What a scorer of scikit-learn, or of users, says of each solution.

    Parameters
    ----------
    scorer : callable
        ``scorer(estimator, X, y, **params)``.
    estimator : GroupOWLBase
        Of one alpha; each solution is given to the scorer as a fitted copy of it, without certificates.
    data : FitData
        All samples.
    X : array, sparse matrix, data frame or Design
        The same samples as scorers get them, with names where there are names.
    y : ndarray
        Targets or labels of all samples.
    params : dict
        Of the scorer, for all samples; those with one entry per sample are cut to the test samples.
    rows : ndarray of int
        The test samples.
    solutions, alphas, weights : list and ndarray
        Solutions, fitted at these alphas with this weight sequence.
    """
    X, y, n = X.rows(rows) if isinstance(X, Design) else take_rows(X, rows), y[rows], data.n_samples
    own = {name: np.ndim(value) >= 1 and len(value) == n for name, value in params.items()}
    params = {name: np.asarray(value)[rows] if own[name] else value for name, value in params.items()}
    scores = []
    for solution, alpha in zip(solutions, alphas.tolist(), strict=True):
        fitted = copy(estimator).set_params(alpha=alpha, weights=weights)
        vars(fitted).update(data.labels(), alpha_=alpha, weights_=weights, unpenalized_=data.unpenalized)
        B = solution.coef(data.n_features)
        fitted.coef_, fitted.intercept_ = fitted._public_coefficients(B, solution.intercept, data)
        try:
            value = scorer(fitted, X, y, **params)
        except (TypeError, ValueError) as error:
            kind = TypeError if isinstance(error, TypeError) else ValueError
            raise kind(
                f"scoring={scorer!r} failed on a fold with {len(rows)} test samples: {str(error).rstrip('.')}. "
                "Choose another scoring, a scorer(estimator, X, y), or folds that have all classes."
            ) from error
        if hasattr(value, "item"):  # arrays of one number
            with suppress(ValueError):
                value = value.item()
        if not isinstance(value, numbers.Real):
            raise ValueError(f"scoring must return a number, got {value!r} of type {type(value).__name__}.")
        scores.append(float(value))
    return np.array(scores)


def resolve_scorer(scoring: Any, own: str = "") -> Any:
    """A scorer from its name or itself; None for the score of the loss, whose name is ``own``.

    The loss of a model also knows what to do with classes that a fold does not have.
    """
    is_own = isinstance(scoring, str) and scoring == own
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
    parameters = _parameters(scoring)
    if parameters and parameters[0].name in _TARGET_NAMES:
        name = getattr(scoring, "__name__", repr(scoring))
        raise ValueError(
            f"scoring={name} is a function of targets and predictions, but scoring must be callable as "
            f"scorer(estimator, X, y). Use sklearn.metrics.make_scorer({name}), or the name of a scorer."
        )
    return scoring


def takes_sample_weight(scorer: Any) -> bool:
    """Whether a scorer can be called with sample weights."""
    return any(item.name == "sample_weight" or item.kind is item.VAR_KEYWORD for item in _parameters(scorer))


def _parameters(function: Any) -> list[inspect.Parameter]:
    try:
        return list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # built-in functions may have no signature
        return []


# Information criteria: the likelihood of a fit against its degrees of freedom, without folds ---------------

#: Weight of the number of supports of a size in the extended criterion.
EBIC_GAMMA = 0.5


@dataclass(frozen=True)
class Likelihood:
    """What all fits of a data set share.

    Attributes
    ----------
    loss : str or Loss
        Which knows its ``minus_twice_log_likelihood`` and its ``parameters_per_feature``.
    n_samples : float
        Total sample weight: a weight of 2 counts as two samples.
    n_columns : int
        Targets or classes.
    n_penalized : int
        Features to choose from.
    null_loss : float
        Loss without features, per unit of sample weight.
    """

    loss: Any
    n_samples: float
    n_columns: int
    n_penalized: int
    null_loss: float

    @property
    def _loss(self) -> Any:
        return resolve_loss(self.loss)

    def deviance(self, loss: float) -> float:
        """Minus twice the logarithm of the likelihood, of a fit with this loss per unit of sample weight."""
        return float(self._loss.minus_twice_log_likelihood(loss, EPS * self.null_loss, self.n_samples, self.n_columns))

    def shrunken_freedom(self, clusters: IndexArray, n_free: int, fit_intercept: bool) -> int:
        """Degrees of freedom of a penalized fit: the rows of a cluster share their norm.

        A cluster of m rows has ``m (q - 1) + 1``; intercepts and unpenalized features are free. ``n_free`` is the rank
        of the latter, beside the intercept: collinear columns have as many parameters as directions.
        """
        q = self._loss.parameters_per_feature(self.n_columns)
        sizes = np.bincount(clusters[clusters > 0])[1:]
        return int(np.sum(sizes[sizes > 0] * (q - 1) + 1)) + q * (n_free + fit_intercept)

    def relaxed_freedom(self, n_selected: int, n_free: int, fit_intercept: bool) -> int:
        """Degrees of freedom of a fit that is free on its support."""
        return int(self._loss.parameters_per_feature(self.n_columns)) * (n_selected + n_free + fit_intercept)


# By name: the price of a degree of freedom, given the number of samples, and the weight of the number of supports.
_PRICES: dict[str, Any] = {"aic": (lambda n_samples: 2.0, 0.0), "bic": (np.log, 0.0), "ebic": (np.log, EBIC_GAMMA)}
#: Names of the criteria.
CRITERIA = tuple(_PRICES)


def criterion_path(name: str, likelihood: Likelihood, fits: Iterable[tuple[float, float, int]]) -> FloatArray:
    """The criterion of each fit, from its loss, degrees of freedom and number of selected features; lower is better."""
    price, gamma = lookup("selection", name, _PRICES)
    d = likelihood.n_penalized
    values = []
    for loss, freedom, k in fits:
        n_supports = gammaln(d + 1) - gammaln(k + 1) - gammaln(d - k + 1)  # logarithm of d choose k
        penalty = price(likelihood.n_samples) * freedom + 2.0 * gamma * n_supports
        values.append(likelihood.deviance(loss) + penalty)
    return np.array(values)
