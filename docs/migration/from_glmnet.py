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


def gaussian(lambda_, y=None, *, alpha=1.0, intercept=True, standardize=True, penalty_factor=None, **options):
    """Estimator with the objective of ``glmnet(x, y, lambda=lambda_)``; ``y`` is needed with ``alpha < 1`` only."""
    kept = converted(lambda_, alpha, penalty_factor) | {"fit_intercept": intercept, "standardize": standardize}
    if alpha < 1.0:  # for one response, glmnet divides the ridge by the standard deviation of y
        kept["ridge"] /= np.std(y) if intercept else np.sqrt(np.mean(np.square(y)))
    return go.GroupOWLRegressor(weights="constant", **kept, **options)


def mgaussian(lambda_, *, alpha=1.0, intercept=True, standardize=True, penalty_factor=None, **options):
    """Estimator with the objective of ``glmnet(x, y, family="mgaussian", lambda=lambda_, alpha=alpha)``."""
    kept = converted(lambda_, alpha, penalty_factor) | {"fit_intercept": intercept, "standardize": standardize}
    return go.GroupOWLRegressor(weights="constant", **kept, **options)


def binomial(lambda_, *, alpha=1.0, intercept=True, standardize=True, penalty_factor=None, **options):
    """Estimator with the objective of ``glmnet(x, y, family="binomial", lambda=lambda_, alpha=alpha)``."""
    kept = converted(lambda_, alpha, penalty_factor) | {"fit_intercept": intercept, "standardize": standardize}
    kept["alpha"] *= np.sqrt(2.0)  # the penalty of groupowl is on both columns of B, of which coef_ is the difference
    kept["ridge"] *= 2.0
    return go.GroupOWLClassifier(weights="constant", **kept, **options)


def grouped_multinomial(lambda_, *, alpha=1.0, intercept=True, standardize=True, penalty_factor=None, **options):
    """Estimator with the objective of ``glmnet(..., family="multinomial", type.multinomial="grouped")``."""
    kept = converted(lambda_, alpha, penalty_factor) | {"fit_intercept": intercept, "standardize": standardize}
    return go.GroupOWLClassifier(weights="constant", **kept, **options)


def poisson(lambda_, *, alpha=1.0, intercept=True, standardize=True, penalty_factor=None, **options):
    """Estimator with the objective of ``glmnet(x, y, family="poisson", lambda=lambda_, alpha=alpha)``."""
    kept = converted(lambda_, alpha, penalty_factor) | {"fit_intercept": intercept, "standardize": standardize}
    return go.GroupOWLRegressor(weights="constant", loss="poisson", **kept, **options)


def cox(lambda_, *, alpha=1.0, standardize=True, penalty_factor=None, **options):
    """Estimator with the objective of ``glmnet(x, y, family="cox", lambda=lambda_, alpha=alpha)``."""
    kept = converted(lambda_, alpha, penalty_factor) | {"standardize": standardize}
    return go.GroupOWLCox(weights="constant", ties="breslow", **kept, **options)


def standardized_response(Y, sample_weight=None):
    """Targets as ``standardize.response=TRUE`` makes them, and the deviations by which to multiply coefficients."""
    Y = np.asarray(Y, dtype=float)
    mean = np.average(Y, axis=0, weights=sample_weight)
    deviation = np.sqrt(np.average((Y - mean) ** 2, axis=0, weights=sample_weight))
    return Y / deviation, deviation
