"""Fitted estimators as linear models of scikit-learn, for tools that know only those."""

from __future__ import annotations

from typing import Any

import numpy as np


def plain_model(estimator: Any) -> Any:
    """A linear model of scikit-learn that predicts as a fitted estimator does, or an error that says why none does."""
    kind = type(estimator).__name__
    if "categories_" in vars(estimator):
        raise ValueError(
            f"to_sklearn: {kind} was fitted with categories, whose levels have coefficients of their own, and plain "
            "linear models take columns of numbers. Fit to indicators, for example pandas.get_dummies(X), with "
            "feature_groups."
        )
    if hasattr(estimator, "has_offset_"):
        raise ValueError(f"to_sklearn: {kind} was fitted with an offset, which plain linear models do not know.")
    model = _unfitted(estimator)
    model.n_features_in_ = estimator.n_features_in_
    if hasattr(estimator, "feature_names_in_"):
        model.feature_names_in_ = estimator.feature_names_in_.copy()
    model.coef_ = estimator.coef_.copy()
    model.intercept_ = (
        estimator.intercept_.copy() if isinstance(estimator.intercept_, np.ndarray) else estimator.intercept_
    )
    return model


def _unfitted(estimator: Any) -> Any:
    """The model with all that it needs but coefficients."""
    from sklearn import linear_model  # whose import takes a while

    intercept, kind = bool(estimator.fit_intercept), type(estimator).__name__
    loss = estimator._fitted_loss
    if loss.target == "times":
        raise TypeError(
            f"to_sklearn: scikit-learn has no model of times until events for {kind}. Its predict gives the linear "
            "predictors."
        )
    if getattr(estimator, "multilabel_", False):
        raise TypeError(
            f"to_sklearn: scikit-learn has no linear model of several labels for {kind}. The coefficients of each are "
            "rows of coef_."
        )
    if hasattr(estimator, "classes_"):
        model = linear_model.LogisticRegression(fit_intercept=intercept)
        model.classes_ = estimator.classes_.copy()
        model.n_iter_ = np.array([estimator.n_iter_])
        return model
    if loss.name != "poisson":
        return linear_model.LinearRegression(fit_intercept=intercept)
    if np.ndim(estimator.coef_) > 1:
        raise TypeError(
            f"to_sklearn: scikit-learn's PoissonRegressor has one target, and {kind} was fitted with "
            f"{len(estimator.coef_)} (a y of shape (n, 1) counts as several). Fit each target by itself, with a "
            "one-dimensional y."
        )
    # What it keeps of its loss is private: a fit to two samples makes it.
    nothing = np.zeros((2, estimator.n_features_in_))
    model = linear_model.PoissonRegressor(alpha=1.0, fit_intercept=intercept).fit(nothing, np.ones(2))
    model.n_iter_ = estimator.n_iter_
    return model
