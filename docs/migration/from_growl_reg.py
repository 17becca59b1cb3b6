"""From growl-reg to groupowl."""

import numpy as np

import groupowl as go


def growl_weights(n_features, lambda_1=1.0, lambda_2=0.0, ramp_size=0.0):
    """Weights of ``GrowlRegressor``, with alpha applied: a ramp, then a constant."""
    ramp = int(np.ceil(ramp_size * n_features))
    return lambda_1 + lambda_2 * np.maximum(ramp - np.arange(n_features), 0)


def regressor(n_features, lambda_1=1.0, lambda_2=0.0, ramp_size=0.0, fit_intercept=False, **options):
    """Estimator with the objective of ``GrowlRegressor`` and of ``growl_fista(X, Y, w=growl_weights(...))``."""
    weights = growl_weights(n_features, lambda_1, lambda_2, ramp_size)
    return go.GroupOWLRegressor(alpha=1.0, weights=weights, fit_intercept=fit_intercept, **options)
