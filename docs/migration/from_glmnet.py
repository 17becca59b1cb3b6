"""From glmnet (R) to groupowl."""

import numpy as np

import groupowl as go


def converted(lambda_, alpha=1.0, penalty_factor=None):
    """``alpha``, ``ridge`` and ``penalty_factor`` of groupowl from the ``lambda``, ``alpha`` and factors of glmnet."""
    kept = {"alpha": lambda_ * alpha, "ridge": lambda_ * (1.0 - alpha), "penalty_factor": None}
    if penalty_factor is None:
        return kept
    factors = np.array(penalty_factor, dtype=float)
    excluded = np.isinf(factors)
    factors[excluded] = 1.0  # glmnet leaves these columns out, and counts them all the same
    factors /= factors.mean()
    size = factors[factors > 0].max()
    if alpha < 1.0 and np.ptp(factors[factors > 0]) > 0:
        raise ValueError("penalty_factor: with alpha < 1 only one positive number, and zeros, have a counterpart.")
    factors[excluded] = np.inf
    return {"alpha": size * kept["alpha"], "ridge": size * kept["ridge"], "penalty_factor": factors / size}


def mgaussian(lambda_, *, alpha=1.0, intercept=True, standardize=True, penalty_factor=None, **options):
    """Estimator with the objective of ``glmnet(x, y, family="mgaussian", lambda=lambda_, alpha=alpha)``."""
    kept = converted(lambda_, alpha, penalty_factor) | {"fit_intercept": intercept, "standardize": standardize}
    return go.GroupOWLRegressor(weights="constant", **kept, **options)


def grouped_multinomial(lambda_, *, alpha=1.0, intercept=True, standardize=True, penalty_factor=None, **options):
    """Estimator with the objective of ``glmnet(..., family="multinomial", type.multinomial="grouped")``."""
    kept = converted(lambda_, alpha, penalty_factor) | {"fit_intercept": intercept, "standardize": standardize}
    return go.GroupOWLClassifier(weights="constant", **kept, **options)


def standardized_response(Y, sample_weight=None):
    """Targets as ``standardize.response=TRUE`` makes them, and the deviations by which to multiply coefficients."""
    Y = np.asarray(Y, dtype=float)
    mean = np.average(Y, axis=0, weights=sample_weight)
    deviation = np.sqrt(np.average((Y - mean) ** 2, axis=0, weights=sample_weight))
    return Y / deviation, deviation
