"""What alpha is chosen by: scores on the samples that were left out, or information criteria on all of them."""

from __future__ import annotations

import inspect
import numbers
from collections.abc import Iterable
from contextlib import suppress
from copy import copy
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy.special import gammaln
from sklearn import get_config
from sklearn.metrics import get_scorer

from .._checks import lookup
from .._frames import take_rows
from .._typing import FloatArray, IndexArray
from ..designs import Design, SufficientStatistics
from ..losses import resolve_loss
from ..norm.kernels import EPS
from ..path import Solution

#: Rules that choose from the scores of folds.
FOLD_RULES = ("min", "1se")
# How the first argument of a metric is called.
_TARGET_NAMES = ("y_true", "y", "labels_true")


class Score(Protocol):
    """Test samples that give each solution a number; higher is better."""

    def __call__(self, solutions: list[Solution], alphas: FloatArray, weights: FloatArray) -> FloatArray:
        """A score for each solution, fitted at these alphas with this weight sequence."""


@dataclass(frozen=True, eq=False)
class LossScore:
    """The score of the loss itself on some samples; the design is that of all samples.

    The metrics of scikit-learn give the same numbers, but need the samples in memory and take 2 to 100 times as long.
    """

    loss: Any
    design: Design
    Y: FloatArray
    sample_weight: FloatArray
    rows: IndexArray

    @np.errstate(all="ignore")  # a score that overflows is infinite
    def __call__(self, solutions: list[Solution], alphas: FloatArray, weights: FloatArray) -> FloatArray:
        """Score by one product with the test samples for each solution."""
        loss = resolve_loss(self.loss)
        design = self.design.rows(self.rows)
        weight = self.sample_weight[self.rows]
        Y, w = design.samples(self.Y[self.rows]), design.samples((weight / weight.sum())[:, None])
        scores = np.empty(len(solutions))
        for i, solution in enumerate(solutions):
            Z = design.matmul(solution.coef(design.n_features), solution.intercept)
            scores[i] = design.reduce(loss.score, Z, Y, w)
        return scores


@dataclass(frozen=True, eq=False)
class StatisticsScore:
    """Minus the mean squared error of samples that are known by their statistics."""

    part: SufficientStatistics

    @np.errstate(all="ignore")  # a score that overflows is infinite
    def __call__(self, solutions: list[Solution], alphas: FloatArray, weights: FloatArray) -> FloatArray:
        """Score without a look at the data."""
        return -np.array([mean_squared_error(self.part, solution) for solution in solutions])


def mean_squared_error(part: SufficientStatistics, solution: Solution) -> float:
    """``sum_i w_i ||y_i - b0 - x_i B||^2 / (W q)``: a part about the means, and one for the distance of the means."""
    chosen, B = solution.support, solution.rows
    explained = 2.0 * part.xy[chosen] - part.gram[np.ix_(chosen, chosen)] @ B
    about_means = np.maximum(part.yy - np.einsum("jk,jk->k", explained, B), 0.0) / part.total_weight
    shift = part.y_mean - solution.intercept - part.x_mean[chosen] @ B
    return float(np.mean(about_means + shift**2))


@dataclass(frozen=True, eq=False)
class ScorerScore:
    """Test samples and a scorer of scikit-learn, or of users, that judges predictions for them.

    Attributes
    ----------
    scorer : callable
        ``scorer(estimator, X, y, **params)``.
    estimator : GroupOWLBase
        Of one alpha; each solution is given to the scorer as a fitted copy of it.
    data : FitData
        All samples.
    given_X : array, sparse matrix, data frame or Design
        The same X as scorers get it, with names where it has names.
    y : ndarray
        Targets or labels of all samples.
    params : dict
        Of the scorer, for all samples; those with one entry per sample are cut to the test samples.
    rows : ndarray of int
        The test samples.
    """

    scorer: Any
    estimator: Any
    data: Any
    given_X: Any
    y: Any
    params: dict[str, Any]
    rows: IndexArray

    def __call__(self, solutions: list[Solution], alphas: FloatArray, weights: FloatArray) -> FloatArray:
        """A score for each solution."""
        X = self.given_X.rows(self.rows) if isinstance(self.given_X, Design) else take_rows(self.given_X, self.rows)
        y = self.y[self.rows]
        params = dict(self.params)
        for name, value in params.items():
            if np.ndim(value) >= 1 and len(value) == self.data.n_samples:
                params[name] = np.asarray(value)[self.rows]
        fitted = (self._fitted(*item, weights) for item in zip(solutions, alphas.tolist(), strict=True))
        return np.array([self._score(estimator, X, y, params) for estimator in fitted])

    def _fitted(self, solution: Solution, alpha: float, weights: FloatArray) -> Any:
        """An estimator that predicts as the solution does, with what a fit stores of it, but certificates."""
        estimator, data = copy(self.estimator), self.data
        estimator.set_params(alpha=alpha, weights=weights)
        B = solution.coef(data.n_features)
        coef, intercept = estimator._public_coefficients(B, solution.intercept, data)
        known = {
            "alpha_": alpha,
            "weights_": weights,
            "unpenalized_": data.unpenalized,
            "coef_": coef,
            "intercept_": intercept,
        }
        vars(estimator).update(known | data.labels())
        return estimator

    def _score(self, estimator: Any, X: Any, y: Any, params: dict[str, Any]) -> float:
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


# From the scores of folds to one alpha ------------------------------------------------------------------


@np.errstate(all="ignore")  # scores that are not finite have means that are not
def mean_scores(scores: FloatArray, fold_weights: FloatArray) -> FloatArray:
    """Mean over folds for each alpha, weighted by the weight of the test samples."""
    shares = fold_weights / fold_weights.max()
    return scores @ (shares / shares.sum())


@np.errstate(all="ignore")
def standard_errors(scores: FloatArray) -> FloatArray:
    """Standard deviation over folds (ddof 1) divided by the root of their number; NaN for a single fold."""
    n_alphas, n_folds = scores.shape
    if n_folds < 2:
        return np.full(n_alphas, np.nan)
    size = np.abs(scores).max(axis=1, keepdims=True)
    size[(size == 0.0) | ~np.isfinite(size)] = 1.0
    deviations = size[:, 0] * np.std(scores / size, axis=1, ddof=1)  # squares of large scores would overflow
    return deviations / np.sqrt(n_folds)


@np.errstate(all="ignore")
def choose(selection: str, means: FloatArray, errors: FloatArray) -> int:
    """Index of the chosen alpha; alphas fall, and of equal scores the largest alpha counts.

    "min" takes the best mean score, "1se" the largest alpha whose mean score is within one standard error of it.
    """
    if np.isnan(means).all():
        raise ValueError(
            "every mean score is NaN: scoring is not defined on the test samples of some fold. Choose another scoring, "
            "or folds that have all classes."
        )
    best = int(np.nanargmax(means))
    if selection == "min":
        return best
    if np.isnan(errors[best]):
        raise ValueError("selection='1se' needs at least two folds with test samples of positive weight.")
    return int(np.flatnonzero(means >= means[best] - errors[best])[0])


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
