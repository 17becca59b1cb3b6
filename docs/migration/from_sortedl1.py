"""From sortedl1 to groupowl."""

import numpy as np
from scipy.stats import norm

import groupowl as go


def alpha_and_weights(n_features, n_samples, *, alpha=1.0, lam=None, lambda_type="bh", q=0.1, theta1=1.0, theta2=0.5):
    """``alpha`` and ``weights`` of groupowl from the parameters of ``Slope``, which has no first weight of 1."""
    if lam is not None:
        first = lam[0]
        weights = np.asarray(lam) / first
    elif lambda_type == "lasso":
        first, weights = 1.0, go.weights.constant(n_features)
    elif lambda_type == "oscar":
        first = theta1 + theta2 * (n_features - 1)
        weights = go.weights.oscar(n_features, ratio=n_features * theta2 / theta1)
    elif lambda_type == "bh":
        first = norm.isf(q / (2 * n_features))
        weights = go.weights.bh(n_features, fdr=q)
    else:
        first = norm.isf(q / (2 * n_features))
        weights = go.weights.gaussian(n_features, n_samples, fdr=q)
    return alpha * first, weights


def regressor(X, *, fit_intercept=True, standardize=False, options=None, **slope):
    """Estimator with the objective of ``Slope(loss="quadratic", **slope)``."""
    alpha, weights = alpha_and_weights(X.shape[1], X.shape[0], **slope)
    kept = {"fit_intercept": fit_intercept, "standardize": standardize, **(options or {})}
    return go.GroupOWLRegressor(alpha=alpha, weights=weights, **kept)


def classifier(X, *, fit_intercept=True, standardize=False, options=None, **slope):
    """Estimator with the objective of ``Slope(loss="logistic", **slope)``, for two classes."""
    alpha, weights = alpha_and_weights(X.shape[1], X.shape[0], **slope)
    kept = {"fit_intercept": fit_intercept, "standardize": standardize, **(options or {})}
    return go.GroupOWLClassifier(alpha=np.sqrt(2.0) * alpha, weights=weights, **kept)
