"""Estimators that choose alpha, and the weight sequence if there are several, by cross-validation or a criterion."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

from .classifier import ClassifierMethods, GroupOWLClassifier
from .cv_base import CrossValidatedFit
from .regressor import GroupOWLRegressor, RegressorMethods


@dataclass(eq=False, repr=False)
class GroupOWLRegressorCV(RegressorMethods, CrossValidatedFit):
    """Multi-task regression whose alpha is chosen by cross-validation or an information criterion.

    The model is that of :class:`~groupowl.GroupOWLRegressor`: it minimizes, over ``B`` of shape
    (n_features, n_targets) and the intercept ``b0``,

        ``1/(2 W) sum_i w_i ||y_i - x_i^T B - b0||^2 + alpha sum_j weights_j ||B_[j],:||_2``

    with ``W = sum_i w_i`` and ``||B_[1],:|| >= ||B_[2],:|| >= ...``.

    Parameters
    ----------
    weights : str, array-like of shape (n_features,), callable, or list of these, default="oscar"
        Weight sequence, not increasing: "oscar", "linear", "constant", "bh", "gaussian", "chi", an array that is used
        as it is (one weight per penalized feature), or ``f(n_features, n_tasks=, n_samples=)``. Samples, for
        "gaussian" and functions, are rows of X with a positive weight, however large that is; folds use the sequence of
        all data. Of a list of sequences, each with an alpha grid of its own, the one with the best score (or criterion)
        is taken.
    alphas : int or array-like, default=100
        How many, evenly spaced on a logarithmic scale from the smallest alpha that selects nothing on all data; this
        grid ends early where 99.9 % of the deviance is explained. Or positive numbers, which are all fitted.
    eps : float, default=1e-3
        Smallest alpha relative to the largest, strictly between 0 and 1; not used when alphas are given.
    cv : int, splitter, iterable of (train, test) or None, default=None
        Folds: None is 5, or without a warning one for each sample of positive weight where there are fewer than 5; a
        number is so many, and an error where there are fewer samples. Both are consecutive. A splitter with a method
        ``split`` gets ``groups`` from ``fit``. Splits without test samples of positive weight are left out.
    selection : {"min", "1se", "aic", "bic", "ebic"}, default="min"
        "min" takes the best mean score, "1se" the largest alpha whose mean score is within one standard error of it.
        "aic", "bic" and "ebic" (gamma 0.5) take the smallest criterion on all data, without folds: then ``cv`` and
        ``scoring`` are not used, and there is no ``score_path_``.
    scoring : str, callable or None, default=None
        None is the negative mean squared error, over samples and targets. Or the name of a scorer of scikit-learn, or
        ``scorer(estimator, X, y)``, which also gets ``sample_weight`` where it takes it and weights are given. Higher
        is better. The estimator is one of a single alpha with all that a fit to the fold stores, but certificates.
    n_jobs : int or None, default=None
        Folds (and weight sequences) to work on at a time, by joblib; -1 is one for each processor.
    fit_intercept : bool, default=True
        Whether to fit an intercept, which is never penalized.
    standardize : bool, default=False
        Whether the penalty sees columns divided by their weighted standard deviation, that of the training samples in
        each fold; ``coef_`` is on the scale of X.
    unpenalized : list of str or int, default=None
        Columns that are always in the model and not penalized, by name or index.
    solver : {"auto", "apgd", "spgd"} or solver object, default="auto"
        "auto" is for everyone; see :func:`groupowl.solve`.
    screening : {"safe", "paper", "none"}, default="safe"
        Rule that removes features proved to be zero. The answer is the same, and with "auto" nearly the time, too.
    tol : float, default=1e-6
        Fits on all data end when the duality gap is at most ``tol`` times the loss of the null model; those of folds at
        ``max(tol, 1e-4)``.
    max_iter : int, default=10000
        Most proximal steps of each fit.
    relaxed : bool, default=False
        Whether to fit the selected features again without penalty, in the folds that are scored too. Certificates are
        about the penalized fit, which is kept in ``penalized_coef_`` and ``penalized_intercept_``.
    random_state : int, Generator, RandomState or None, default=None
        Seed of stochastic solvers.
    verbose : int, default=0
        1 prints lines of progress, 2 a line for every certificate of the fits on all data.

    Attributes
    ----------
    alpha_ : float
        The chosen alpha.
    weights_ : ndarray of shape (n_penalized,)
        The chosen weight sequence.
    alphas_ : ndarray of shape (n_alphas,)
        Alphas of the chosen sequence, falling.
    best_index_ : int
        Position of ``alpha_`` in ``alphas_``.
    score_path_ : ndarray of shape (n_alphas, n_folds)
        Scores of the folds. This attribute and the next four exist only where there are folds.
    mean_score_path_ : ndarray of shape (n_alphas,)
        Their means, weighted by the sample weights of the test samples.
    best_score_ : float
        Mean held-out score at ``alpha_``, ``mean_score_path_[best_index_]``; a little too good, as it has chosen.
    std_error_path_ : ndarray of shape (n_alphas,)
        Standard deviation over folds (ddof 1) divided by the root of their number; NaN for one fold.
    selection_frequency_ : ndarray of int of shape (n_features,)
        In how many folds each feature was selected at ``alpha_``.
    criterion_path_ : ndarray of shape (n_alphas,)
        The information criterion, only where it decides.
    path_ : PathResult
        Fits of the chosen sequence on all data, one for each of ``alphas_``, without relaxation.
    search_results_ : list of dict
        For each weight sequence, in their order: "weights", "alphas", "best_index", and all that is above from
        ``score_path_`` to ``criterion_path_``, by names without underscore.
    coef_ : ndarray of shape (n_targets, n_features) or (n_features,)
        Coefficients at ``alpha_``, fitted to all data; 1-D when y was. float32 where X is.
    intercept_ : ndarray of shape (n_targets,) or float
        Intercept; zero when none is fitted.
    sparse_coef_ : sparse array
        ``coef_`` as a sparse array.
    clusters_ : ndarray of int of shape (n_features,)
        Features whose coefficients have the same norm, in the scale that the penalty sees, share a number, from 1 by
        falling norm; 0 for features that are not selected or not penalized.
    selected_features_ : ndarray
        Names (or indices) of the features with non-zero coefficients.
    unpenalized_ : ndarray of int
        Columns that are not penalized.
    dual_gap_ : float
        Proved bound on the distance of the objective at ``alpha_`` from its minimum.
    n_iter_ : int
        Proximal steps of the fit at ``alpha_``.
    screened_fraction_ : float
        Fraction of the features that are proved to be zero.
    solve_result_ : SolveResult
        The penalized fit at ``alpha_``, relaxed or not: coefficients in double precision, certificate and history. That
        fit goes on beyond ``tol`` for some more digits; both parts count in ``n_iter_`` and are in the history.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str
        Names of the features, where X had names.
    target_names_ : ndarray of str
        Names of the targets, where y was a data frame.
    penalized_coef_, penalized_intercept_ : ndarray
        The penalized fit, with ``relaxed=True`` only.

    See Also
    --------
    GroupOWLRegressor : The same with an alpha of your own.
    GroupOWLClassifierCV : The same for classes.

    Notes
    -----
    One grid of alphas is made from all data and followed in every fold, each fit from the one before; whatever is
    learned from data, such as standard deviations, is learned from the training samples.
    Where there are many more samples than features, one pass over the data makes the statistics of all folds, and those
    of training sets come from them by subtraction.

    Degrees of freedom of the criteria: a cluster of m features counts ``m (q - 1) + 1`` for q targets;
    intercepts and directions of the unpenalized features (their rank) count q each, and so do selected features of a
    relaxed fit.
    Errors are normal with one variance for all targets, estimated from the residuals of each fit.

    Examples
    --------
    >>> import groupowl as go
    >>> data = go.datasets.make_correlated_groups(60, 40, 3, random_state=0)
    >>> model = go.GroupOWLRegressorCV(alphas=20, eps=0.05, selection="1se").fit(data.X, data.Y)
    >>> model.score_path_.shape, bool(model.verify(data.X, data.Y))
    ((20, 5), True)
    """

    _single = GroupOWLRegressor


@dataclass(eq=False, repr=False)
class GroupOWLClassifierCV(ClassifierMethods, CrossValidatedFit):
    """Multinomial classification whose alpha is chosen by cross-validation or an information criterion.

    The model is that of :class:`~groupowl.GroupOWLClassifier`: it minimizes, over ``B`` of shape
    (n_features, n_classes) and the intercept ``b0``,

        ``1/W sum_i w_i [log sum_k exp(z_ik) - z_{i,y_i}] + alpha sum_j weights_j ||B_[j],:||_2``

    with ``z_i = x_i^T B + b0``, ``W = sum_i w_i`` and ``||B_[1],:|| >= ||B_[2],:|| >= ...``.

    Parameters
    ----------
    weights : str, array-like of shape (n_features,), callable, or list of these, default="oscar"
        Weight sequence, not increasing: "oscar", "linear", "constant", "bh", "gaussian", "chi", an array that is used
        as it is (one weight per penalized feature), or ``f(n_features, n_tasks=, n_samples=)``. Samples, for
        "gaussian" and functions, are rows of X with a positive weight, however large that is; folds use the sequence of
        all data. Of a list of sequences, each with an alpha grid of its own, the one with the best score (or criterion)
        is taken.
    alphas : int or array-like, default=100
        How many, evenly spaced on a logarithmic scale from the smallest alpha that selects nothing on all data; this
        grid ends early where 99.9 % of the deviance is explained. Or positive numbers, which are all fitted.
    eps : float, default=1e-3
        Smallest alpha relative to the largest, strictly between 0 and 1; not used when alphas are given.
    cv : int, splitter, iterable of (train, test) or None, default=None
        Folds: None is 5, or without a warning as many as the rarest class has samples of positive weight where
        those are fewer; a number is so many, and an error where a class has fewer. Both are stratified by class. A
        splitter with a method ``split`` gets ``groups`` from ``fit``. Splits without test samples of positive weight
        are left out.
    selection : {"min", "1se", "aic", "bic", "ebic"}, default="min"
        "min" takes the best mean score, "1se" the largest alpha whose mean score is within one standard error of it.
        "aic", "bic" and "ebic" (gamma 0.5) take the smallest criterion on all data, without folds: then ``cv`` and
        ``scoring`` are not used, and there is no ``score_path_``.
    scoring : str, callable or None, default=None
        None is the negative log-loss, the mean over samples. Or the name of a scorer of scikit-learn, or
        ``scorer(estimator, X, y)``, which also gets ``sample_weight`` where it takes it and weights are given. Higher
        is better. The estimator is one of a single alpha with all that a fit to the fold stores, but certificates.
    n_jobs : int or None, default=None
        Folds (and weight sequences) to work on at a time, by joblib; -1 is one for each processor.
    fit_intercept : bool, default=True
        Whether to fit an intercept, which is never penalized.
    standardize : bool, default=False
        Whether the penalty sees columns divided by their weighted standard deviation, that of the training samples in
        each fold; ``coef_`` is on the scale of X.
    unpenalized : list of str or int, default=None
        Columns that are always in the model and not penalized, by name or index.
    solver : {"auto", "apgd", "spgd"} or solver object, default="auto"
        "auto" is for everyone; see :func:`groupowl.solve`.
    screening : {"safe", "paper", "none"}, default="safe"
        Rule that removes features proved to be zero. The answer is the same, and with "auto" nearly the time, too.
    tol : float, default=1e-6
        Fits on all data end when the duality gap is at most ``tol`` times the loss of the null model; those of folds at
        ``max(tol, 1e-4)``.
    max_iter : int, default=10000
        Most proximal steps of each fit.
    relaxed : bool, default=False
        Whether to fit the selected features again without penalty, in the folds that are scored too. Certificates are
        about the penalized fit, which is kept in ``penalized_coef_`` and ``penalized_intercept_``.
    random_state : int, Generator, RandomState or None, default=None
        Seed of stochastic solvers.
    verbose : int, default=0
        1 prints lines of progress, 2 a line for every certificate of the fits on all data.
    class_weight : dict, "balanced" or None, default=None
        Factors of the sample weights by class, 1 for classes that are not in the dict. "balanced" gives every class the
        same total weight on all data. They count in fits, not in scores.

    Attributes
    ----------
    alpha_ : float
        The chosen alpha.
    weights_ : ndarray of shape (n_penalized,)
        The chosen weight sequence.
    alphas_ : ndarray of shape (n_alphas,)
        Alphas of the chosen sequence, falling.
    best_index_ : int
        Position of ``alpha_`` in ``alphas_``.
    score_path_ : ndarray of shape (n_alphas, n_folds)
        Scores of the folds. This attribute and the next four exist only where there are folds.
    mean_score_path_ : ndarray of shape (n_alphas,)
        Their means, weighted by the sample weights of the test samples.
    best_score_ : float
        Mean held-out score at ``alpha_``, ``mean_score_path_[best_index_]``; a little too good, as it has chosen.
    std_error_path_ : ndarray of shape (n_alphas,)
        Standard deviation over folds (ddof 1) divided by the root of their number; NaN for one fold.
    selection_frequency_ : ndarray of int of shape (n_features,)
        In how many folds each feature was selected at ``alpha_``.
    criterion_path_ : ndarray of shape (n_alphas,)
        The information criterion, only where it decides.
    path_ : PathResult
        Fits of the chosen sequence on all data, one for each of ``alphas_``, without relaxation.
    search_results_ : list of dict
        For each weight sequence, in their order: "weights", "alphas", "best_index", and all that is above from
        ``score_path_`` to ``criterion_path_``, by names without underscore.
    classes_ : ndarray of shape (n_classes,)
        Labels, sorted.
    coef_ : ndarray of shape (n_classes, n_features), or (1, n_features) for two classes
        Coefficients at ``alpha_``, fitted to all data; float32 where X is.
    intercept_ : ndarray of shape (n_classes,) or (1,)
        Intercept; zero when none is fitted.
    sparse_coef_ : sparse array
        ``coef_`` as a sparse array.
    clusters_ : ndarray of int of shape (n_features,)
        Features whose coefficients have the same norm, in the scale that the penalty sees, share a number, from 1 by
        falling norm; 0 for features that are not selected or not penalized.
    selected_features_ : ndarray
        Names (or indices) of the features with non-zero coefficients.
    unpenalized_ : ndarray of int
        Columns that are not penalized.
    dual_gap_ : float
        Proved bound on the distance of the objective at ``alpha_`` from its minimum.
    n_iter_ : int
        Proximal steps of the fit at ``alpha_``.
    screened_fraction_ : float
        Fraction of the features that are proved to be zero.
    solve_result_ : SolveResult
        The penalized fit at ``alpha_``, relaxed or not: coefficients in double precision, certificate and history. That
        fit goes on beyond ``tol`` for some more digits; both parts count in ``n_iter_`` and are in the history.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str
        Names of the features, where X had names.
    penalized_coef_, penalized_intercept_ : ndarray
        The penalized fit, with ``relaxed=True`` only.

    See Also
    --------
    GroupOWLClassifier : The same with an alpha of your own.
    GroupOWLRegressorCV : The same for numbers.

    Notes
    -----
    One grid of alphas is made from all data and followed in every fold, each fit from the one before; whatever is
    learned from data, such as standard deviations, is learned from the training samples.
    A class that a training set does not have gets probability zero there; the log-loss takes probabilities below
    2.2e-16 as 2.2e-16, so that it is finite.

    Degrees of freedom of the criteria: a cluster of m features counts ``m (q - 1) + 1`` for q = n_classes - 1;
    intercepts and directions of the unpenalized features (their rank) count q each, and so do selected features of a
    relaxed fit.
    The likelihood is that of the sample weights of the fit, class weights included.

    Examples
    --------
    >>> import groupowl as go
    >>> data = go.datasets.make_correlated_groups(60, 40, 3, task="classification", random_state=0)
    >>> labels = data.Y.argmax(axis=1)
    >>> model = go.GroupOWLClassifierCV(alphas=20, eps=0.05).fit(data.X, labels)
    >>> model.score_path_.shape, bool(model.verify(data.X, labels))
    ((20, 5), True)
    """

    _single = GroupOWLClassifier
    _: KW_ONLY
    class_weight: Any = None
