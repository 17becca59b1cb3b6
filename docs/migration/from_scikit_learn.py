"""From scikit-learn to groupowl."""

import numpy as np

import groupowl as go


def multi_task_lasso(alpha=1.0, *, fit_intercept=True, tol=1e-4, max_iter=10_000, **options):
    """Estimator with the objective and the accuracy of ``MultiTaskLasso``, or of ``Lasso`` where y is 1-D."""
    kept = {"fit_intercept": fit_intercept, "max_iter": max_iter, **options}
    return go.GroupOWLRegressor(alpha=alpha, weights="constant", tol=2.0 * tol, **kept)


def multi_task_elastic_net(alpha=1.0, *, l1_ratio=0.5, **options):
    """Estimator with the objective and the accuracy of ``MultiTaskElasticNet``, or of ``ElasticNet`` where y is 1-D."""
    return multi_task_lasso(alpha * l1_ratio, ridge=alpha * (1.0 - l1_ratio), **options)


def multi_task_lasso_cv(*, eps=1e-3, alphas=100, cv=None, fit_intercept=True, tol=1e-4, n_jobs=None, **options):
    """Estimator that chooses among the models of ``MultiTaskLassoCV``."""
    kept = {"fit_intercept": fit_intercept, "n_jobs": n_jobs, **options}
    return go.GroupOWLRegressorCV(weights="constant", eps=eps, alphas=alphas, cv=cv, tol=2.0 * tol, **kept)


def logistic_regression(n_samples, C=1.0, *, fit_intercept=True, **options):
    """Estimator with the objective of ``LogisticRegression(C=C, l1_ratio=1)``, for two classes."""
    alpha = np.sqrt(2.0) / (C * n_samples)
    return go.GroupOWLClassifier(alpha=alpha, weights="constant", fit_intercept=fit_intercept, **options)
