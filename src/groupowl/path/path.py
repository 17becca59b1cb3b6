"""The public path functions: from data as users give them to a coefficient path."""

from __future__ import annotations

import numbers
from dataclasses import replace
from typing import Any

import numpy as np

from .. import _checks as checks
from .._progress import progress_line
from .._threads import blas_threads
from ..categories import encoded_frame
from ..designs import Design, as_design, encode_labels_of_blocks, row_chunks
from ..inputs import encode_labels, feature_names, penalty_options, resolve_columns
from ..losses import resolve_loss
from ..model import build_model, warn_if_correlated, warn_unless_bounded
from ..problem import LATER, build_problem, warn_of_lost_samples
from ..solvers import Callback, Continuation, SolveResult, check_settings, warn_unless_converged
from ..solvers.solve_result import short_of_tolerance
from ..weights import resolve_weights
from .follower import MAX_DEVIANCE, Watch, fit_path, resolve_alphas
from .kept_points import KeptPoints, path_facts, solution_folder
from .path_result import PathResult


def group_owl_path(
    X: Any,
    y: Any = None,
    *,
    loss: Any = "squared",
    weights: Any = "oscar",
    alphas: Any = 100,
    eps: float = 1e-3,
    fit_intercept: bool = True,
    standardize: bool = False,
    sample_weight: Any = None,
    unpenalized: Any = None,
    tol: float = 1e-6,
    max_iter: int = 10_000,
    max_features: int | None = None,
    solver: Any = "auto",
    screening: str = "safe",
    coef_init: Any = None,
    random_state: Any = None,
    verbose: int = 0,
    callback: Callback | None = None,
    feature_groups: Any = None,
    group_scale: str = "size",
    penalty_factor: Any = None,
    offset: Any = None,
    ridge: float = 0.0,
    positive: Any = False,
    categories: Any = None,
    resume: Any = None,
) -> PathResult:
    """Compute a coefficient path: fits at many alphas, from the largest down, with warm starts.

    For each alpha the objective is ``(1/W) sum_i w_i f_i(x_i^T B + b0) + alpha sum_j weights_j ||B_[j],:||_2``, where
    ``B_[j],:`` is the row of ``B`` with the j-th largest norm and ``W`` is the sum of the sample weights; squared
    loss is ``1/(2 n) ||Y - X B||^2`` without sample weights. Coefficients, residuals, Gram matrices and sufficient
    statistics carry over from one alpha to the next. A grid of alphas that is made here ends early once 99.9 % of the
    deviance is explained.

    Parameters
    ----------
    X : array-like, sparse matrix, data frame, design or SufficientStatistics
        Data of shape (n_samples, n_features); float32 and float64 arrays are not copied, sparse data stay sparse. A
        matrix on disk (see :class:`groupowl.MemmapDesign`), a Dask array or data frame; or the statistics of samples,
        which stand for ``y`` and ``sample_weight`` too.
    y : array-like of shape (n_samples,) or (n_samples, n_targets)
        Targets; NaN is one that was not observed, with losses that are sums over targets. For ``loss="multinomial"``:
        labels of any kind, one-hot rows or class probabilities.
    loss : {"squared", "multinomial", "logistic", "poisson", "huber", "cox"} or Loss, default="squared"
        ``f_i``: half the squared distance to the target, or the multinomial logistic loss.
    weights : str, array-like or callable, default="oscar"
        Weight sequence: a name ("oscar", "linear", "constant" or "lasso", "bh", "chi", "chi_gauss", and
        "gaussian" for one task),
        one weight for each penalized feature, or a function ``f(n_features, n_tasks=, n_samples=)``. Samples, for
        "gaussian", "chi_gauss" and functions, are rows of X with a positive weight, each counted once.
    alphas : int or array-like, default=100
        How many, evenly spaced on a logarithmic scale from the smallest alpha that selects nothing; or positive
        numbers, which are sorted downwards and all fitted, each once: a path has one solution per alpha. At most a
        million.
    eps : float, default=1e-3
        Smallest alpha relative to the largest, strictly between 0 and 1; not used when alphas are given.
    fit_intercept : bool, default=True
        Whether to fit an intercept, which is never penalized.
    standardize : bool, default=False
        Whether to divide columns by their weighted standard deviation, implicitly; coefficients are on the scale of X.
    sample_weight : array-like of shape (n_samples,) or (n_samples, n_targets), default=None
        Non-negative weights w, of samples or of each of their targets; 2 is the same as the sample twice, 0 as no
        sample.
    unpenalized : list of str or int, or mask, default=None
        Columns that are not penalized, by name, by index or as a mask.
    tol : float, default=1e-6
        Each solve ends when its duality gap is at most ``tol`` times the loss of the model without penalized features
        less the smallest possible one.
    max_iter : int, default=10000
        Maximum number of proximal steps of each solve.
    max_features : int, default=None
        The path ends before the first alpha that selects more penalized features; that alpha is left out.
    solver : {"auto", "apgd", "spgd"} or solver object, default="auto"
        "auto" suits nearly all problems. "apgd" is Algorithm 1 of the paper, "spgd" Algorithm 2, for many samples.
    screening : {"safe", "paper", "none"}, default="safe"
        Rule that removes rows proved to be zero. The solution is the same for all three, and with ``solver="auto"`` the
        time nearly so.
    coef_init : array-like of shape (n_targets, n_features) or (n_features,), default=None
        Where the first solve starts; two classes have one row, as in the result.
    random_state : int, Generator, RandomState or None, default=None
        Seed of stochastic solvers.
    verbose : int, default=0
        1 shows a progress line with the share of the path, and of a pass over data on disk or on a cluster, that is
        done (a bar in notebooks that have tqdm or rich, and ipywidgets); 2 a line for every certificate.
    callback : callable, default=None
        Called as ``callback(progress)`` after each certificate; ``progress.alpha_index`` is the position on the path.
        If it returns True, the path ends, with the unfinished solve as its last point.
    feature_groups : array-like of shape (n_features,), or lists or dict of lists of names or indices, default=None
        Groups of columns that are selected together. The penalty applies to the Frobenius norm of their rows of ``B``.
        Give a label for each column (None for a column by itself), a list of lists of columns, or a dict from names of
        groups to lists of columns. Columns that are not named are groups of one. ``weights`` then has one weight per
        group.
    group_scale : {"size", "none", "frobenius", "orthonormal"}, default="size"
        How the penalty sees groups of two columns or more: divided by the root of their number; as they are; divided,
        as a whole, by the root of the sum of the variances of their columns, which then are not standardized one by
        one; or as uncorrelated combinations of deviation 1, so that it is on the predictions of a group. ``B`` is
        always on the scale of X.
    penalty_factor : array-like of shape (n_features,) or dict, default=None
        Factors of the penalty of each feature, or of those named: the penalty sees columns divided by their factors, so
        that order and ties of norms, clusters among them, refer to scaled columns. Factors are not rescaled. 0 means no
        penalty, and such features take none of the weights; infinity leaves a feature out.
    offset : array-like of shape (n_samples,) or (n_samples, n_targets), default=None
        Numbers that are added to the predictors, with a coefficient of one; a column for each class with
        ``loss="multinomial"``.
    ridge : float, default=0.0
        Adds ``ridge/2 ||B||_F^2`` to the objective, the same for all alphas, of the coefficients of columns as the
        penalty sees them: standardized, if so, and scaled.
    positive : bool, names or indices of features, or signs, default=False
        True: coefficients of penalized features must not be negative. Names or indices: the same for these features
        only. Signs, one for each feature or a dict with those of some: 1 for not negative, -1 for not positive, 0 for
        no constraint. Not for ``loss="multinomial"``.
    categories : list of str or int, or "auto", default=None
        Columns of a data frame that are categories, by name or index, or "auto" for all columns of text or of a
        categorical type. Each becomes a feature group of indicators, one for each level, called ``column=level``,
        scaled by "frobenius" unless ``group_scale`` is "none" or "orthonormal". Other arguments name the columns of X
        as it was given, and mean all levels of a category.
    resume : str or Path, default=None
        A folder that keeps solutions as soon as they are there. The same call after an interrupt goes on from them:
        they are certified again, and not solved again. A folder of another path (data, penalty, alphas, tol, version of
        groupowl) is refused.

    Returns
    -------
    PathResult
        The solutions with their certificates; see there for two classes.

    Warns
    -----
    ConvergenceWarning
        Once, when solves stop before the gap meets the tolerance; ``statuses`` and ``dual_gaps`` say which.
    UserWarning
        When samples without any observed target are left out, and when weights by the name "chi", "chi_gauss" or
        "gaussian" are to control false discoveries, and columns of X are
        correlated.

    Examples
    --------
    >>> import groupowl as go
    >>> data = go.datasets.make_correlated_groups(60, 200, 3, random_state=0)
    >>> path = go.group_owl_path(data.X, data.Y, alphas=20, eps=0.1)
    >>> path.coefs.shape
    (3, 200, 20)
    >>> int(path.n_selected[0]), bool(path.n_selected[-1] > 0)
    (0, True)
    """
    settings = check_settings(solver, screening, tol, max_iter, callback, random_state)
    limit = None if max_features is None else checks.positive_integer("max_features", max_features)
    with progress_line(verbose, "group_owl_path"), blas_threads(X):
        matrix, coding = encoded_frame(X, categories)
        design = as_design(matrix)
        names = feature_names(X) or design.feature_names
        n_given = design.n_features if coding is None else len(coding.names)
        free = resolve_columns("unpenalized", unpenalized, n_given, names)
        options = penalty_options(
            n_given,
            names,
            feature_groups=feature_groups,
            group_scale=group_scale,
            penalty_factor=penalty_factor,
            ridge=ridge,
            positive=positive,
        )
        if coding is not None:
            free, options, names = coding.columns_of(free), coding.widened(options, group_scale), list(coding.names)
        Y, classes = (y, None)
        if design.known_statistics is None:
            Y, classes = _targets(y, loss, design, sample_weight)
        model = build_model(
            design,
            Y,
            loss=loss,
            weights=weights,
            fit_intercept=fit_intercept,
            standardize=checks.truth_value("standardize", standardize),
            sample_weight=sample_weight,
            unpenalized=free,
            options=options,
            offset=offset,
        )
        warn_of_lost_samples(model.problem)
        warn_unless_bounded(model)
        warn_if_correlated(model, weights)
        grid = resolve_alphas(alphas, eps, model)
        start = None
        if coef_init is not None:
            coef = checks.as_float_array("coef_init", coef_init, ndim=(1, 2))
            if classes is not None and len(np.atleast_2d(coef)) + 1 == len(classes) == 2:  # the difference of both
                coef = np.concatenate([-0.5 * np.atleast_2d(coef), 0.5 * np.atleast_2d(coef)])
            start = model.start(coef)
        kept = None
        if resume is not None:
            facts = path_facts(model, settings, grid, (design, Y, sample_weight, offset))
            kept = KeptPoints(solution_folder(resume, facts))
        path = fit_path(
            model,
            grid,
            settings,
            start=start,
            max_features=limit,
            max_deviance=MAX_DEVIANCE if isinstance(alphas, numbers.Integral) else None,
            dtype=model.dtype,
            verbose=verbose,
            what="group_owl_path",
            kept=kept,
        )
    short, prefix = short_of_tolerance(path.points, len(path), "alphas")
    warn_unless_converged(short, model.problem.goal(settings.tol), settings, prefix=prefix)
    target_names = feature_names(y) if classes is None else None
    labels = {"feature_names_in_": names, "target_names_": target_names, "classes_": classes}
    labels["has_offset_"] = offset is not None
    return path.labeled(labels if coding is None else labels | {"categories_": dict(coding.levels)})


def solve_path(
    X: Any,
    Y: Any,
    weights: Any,
    *,
    strengths: Any,
    loss: Any = "squared",
    fit_intercept: bool = False,
    sample_weight: Any = None,
    solver: Any = "auto",
    screening: str = "safe",
    tol: float = 1e-6,
    max_iter: int = 10_000,
    random_state: Any = None,
    callback: Callback | None = None,
) -> list[SolveResult]:
    """Solve with ``lam = strength * weights`` for each strength, from the largest down, warm-started.

    Parameters are those of :func:`groupowl.solve`, in its scaling: the loss is a sum over samples. Coefficients,
    residuals, the Gram matrix of working sets and, for squared loss with more samples than features, the sufficient
    statistics carry over from one strength to the next. A callback that returns True ends the path there; strengths
    that fall short of ``tol`` are named in one ConvergenceWarning.
    """
    watch = Watch(callback)
    settings = replace(
        check_settings(solver, screening, tol, max_iter, callback, random_state), callback=watch.if_needed
    )
    problem = build_problem(X, Y, LATER, loss=loss, fit_intercept=fit_intercept, sample_weight=sample_weight)
    shape = resolve_weights(
        weights,
        n_features=problem.n_rows,
        n_tasks=problem.samples.n_tasks,
        n_samples=problem.samples.count,
        n_directions=problem.loss.parameters_per_feature(problem.samples.n_tasks),
    )
    remedy = "Strengths are positive numbers, largest first, for example lam_max(...) * np.geomspace(1, 0.01, 100)."
    factors = checks.finite_vector("strengths", strengths, np.size(strengths), remedy=remedy)
    if len(factors) == 0 or factors.min() <= 0.0 or np.any(np.diff(factors) > 0):
        raise ValueError(f"strengths must be positive and must not increase, got {strengths!r}. {remedy}")
    solves = Continuation(problem, settings, problem.null_coefficients(), n_solves=len(factors))
    results: list[SolveResult] = []
    for result in solves.solve_all(shape, factors.tolist()):
        results.append(result)
        if watch.wants_stop:
            break
    short, prefix = short_of_tolerance(results, len(factors), "strengths")
    warn_unless_converged(short, problem.goal(settings.tol), settings, prefix=prefix)
    return results


def _targets(y: Any, loss: Any, design: Design, sample_weight: Any) -> tuple[Any, Any]:
    """Numeric targets and, for classes, their labels."""
    resolved, is_here = resolve_loss(loss), not design.is_distributed
    if is_here:
        if y is None or hasattr(y, "toarray"):
            checks.numeric_array("y", y)  # which refuses it, with the remedy
        values, names = checks.rectangular_array("y", y), feature_names(y)
    else:
        values, names = row_chunks("y", y)
    if resolved.target != "classes":
        if is_here and values.dtype.kind in "OUS":
            raise TypeError(
                f"y holds labels (dtype {values.dtype}), but loss={loss!r} needs numbers. "
                "Use loss='multinomial' for classes, or y.astype(float) for numbers stored as text."
            )
        if not is_here:
            return values, None
        may_miss = not resolved.needs_whole_samples
        return checks.check_targets(y, design.n_samples, argument="y", may_miss=may_miss), None
    if values.ndim == 2 and values.shape[1] > 1 and values.dtype.kind in "fiub":  # class probabilities
        if is_here:
            values = checks.check_targets(y, design.n_samples, argument="y")
            try:
                resolved.check_targets(values)
            except ValueError as error:
                raise ValueError(f"y: {error}") from error
        return values, np.arange(values.shape[1]) if names is None else np.asarray(names)
    if not is_here:
        return encode_labels_of_blocks(values, sample_weight)[::-1]
    if values.dtype.kind == "f" and np.any(np.isfinite(values) & (values != np.round(values))):
        raise ValueError(
            "y holds fractions, but loss='multinomial' needs labels, or class probabilities of shape "
            "(n_samples, n_classes). Use loss='squared' for a regression."
        )
    checks.check_length("y", values.shape, design.n_samples)
    weight = None if sample_weight is None else checks.check_sample_weight(sample_weight, design.n_samples)
    return encode_labels(y, weight)[::-1]
