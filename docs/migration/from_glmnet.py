"""From glmnet (R) to groupowl."""

import numpy as np

import groupowl as go


def converted_alpha(lambda_, penalty_factor=None):
    """``alpha`` and the unpenalized columns, from ``lambda`` and a ``penalty.factor`` of zeros and equal numbers."""
    if penalty_factor is None:
        return lambda_, None
    factors = np.asarray(penalty_factor, dtype=float)
    positive = factors[factors > 0]
    if len(positive) == 0 or np.ptp(positive) > 0:
        raise ValueError("penalty_factor: only one positive number, and zeros, have a counterpart in groupowl.")
    # glmnet divides the factors by their mean: those that are left are larger than 1.
    return lambda_ * len(factors) / len(positive), np.flatnonzero(factors == 0).tolist()


def mgaussian(lambda_, *, intercept=True, standardize=True, penalty_factor=None, **options):
    """Estimator with the objective of ``glmnet(x, y, family="mgaussian", lambda=lambda_)``."""
    alpha, unpenalized = converted_alpha(lambda_, penalty_factor)
    kept = {"fit_intercept": intercept, "standardize": standardize, "unpenalized": unpenalized, **options}
    return go.GroupOWLRegressor(alpha=alpha, weights="constant", **kept)


def grouped_multinomial(lambda_, *, intercept=True, standardize=True, penalty_factor=None, **options):
    """Estimator with the objective of ``glmnet(..., family="multinomial", type.multinomial="grouped")``."""
    alpha, unpenalized = converted_alpha(lambda_, penalty_factor)
    kept = {"fit_intercept": intercept, "standardize": standardize, "unpenalized": unpenalized, **options}
    return go.GroupOWLClassifier(alpha=alpha, weights="constant", **kept)


def standardized_response(Y, sample_weight=None):
    """Targets as ``standardize.response=TRUE`` makes them, and the deviations by which to multiply coefficients."""
    Y = np.asarray(Y, dtype=float)
    mean = np.average(Y, axis=0, weights=sample_weight)
    deviation = np.sqrt(np.average((Y - mean) ** 2, axis=0, weights=sample_weight))
    return Y / deviation, deviation
