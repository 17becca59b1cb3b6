"""Solvers and the function that runs them."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from .._checks import as_generator, finite_matrix, finite_number, finite_vector, lookup, positive_integer
from .._threads import blas_threads
from .._typing import FloatArray
from ..losses import nonzero_offset
from ..problem import Problem, build_problem, options_of, warn_of_lost_samples
from ..screening import RULES
from .apgd import APGD
from .continuation import Continuation
from .driver import Run
from .lean import lean_solve
from .settings import Callback, Solver, SolverSettings
from .solve_result import WARNINGS, History, HistoryRow, Progress, SolveResult
from .spgd import SPGD
from .working_set import WorkingSet

__all__ = [
    "APGD",
    "SOLVERS",
    "SPGD",
    "Callback",
    "Continuation",
    "History",
    "HistoryRow",
    "Progress",
    "Run",
    "SolveResult",
    "Solver",
    "SolverSettings",
    "WorkingSet",
    "check_settings",
    "lean_solve",
    "solve",
]

#: Every solver by name, with its defaults; the contract tests run over this table.
SOLVERS: dict[str, Callable[[], Solver]] = {
    "auto": WorkingSet,
    "apgd": APGD,
    "spgd": SPGD,
}


def solve(
    X: Any,
    Y: Any,
    lam: Any,
    *,
    loss: Any = "squared",
    fit_intercept: bool = False,
    sample_weight: Any = None,
    solver: Any = "auto",
    screening: str = "safe",
    tol: float = 1e-6,
    max_iter: int = 10_000,
    B_init: Any = None,
    intercept_init: Any = None,
    random_state: Any = None,
    callback: Callback | None = None,
    feature_groups: Any = None,
    group_scale: str = "size",
    penalty_factor: Any = None,
    offset: Any = None,
    ridge: float = 0.0,
    positive: Any = False,
) -> SolveResult:
    """Solve a Group OWL problem in the scaling of the paper, with a duality gap.

    Minimizes ``sum_i w_i f_i(x_i^T B + b0 + o_i) + sum_j lam_j ||B_[j],:||_2``: the loss is a sum over samples, and
    ``lam`` is the weights multiplied by alpha.

    Parameters
    ----------
    X : array-like, sparse matrix, data frame, design or SufficientStatistics
        Data of shape (n_samples, n_features); float32 and float64 arrays are not copied, sparse data stay sparse. A
        matrix on disk (see :class:`groupowl.MemmapDesign`), a Dask array or data frame; or the statistics of samples,
        with None for ``Y``.
    Y : array-like of shape (n_samples,) or (n_samples, n_tasks)
        Targets; one-hot rows or class probabilities for ``loss="multinomial"``. With losses that are sums over tasks,
        NaN is a target that was not observed.
    lam : array-like of shape (n_features,)
        Non-increasing, non-negative weights, not all zero; the row of ``B`` with the largest norm pays ``lam[0]``. The
        largest may be 1e150 times the smallest that is positive: beside a larger one it would vanish.
    loss : {"squared", "multinomial", "logistic", "poisson", "huber", "cox"} or Loss, default="squared"
        ``f_i``: half the squared distance to the target; the multinomial logistic loss of classes; the logistic loss of
        labels or probabilities, a column each; the Poisson loss of counts; the Huber loss with a delta of 1.345
        (``groupowl.losses.HuberLoss(delta)`` for others).
    fit_intercept : bool, default=False
        Whether to fit an unpenalized intercept.
    sample_weight : array-like of shape (n_samples,) or (n_samples, n_tasks), default=None
        Non-negative weights w, of samples or of each of their targets; 2 is the same as the sample twice, 0 as no
        sample. Positive ones differ by a factor of 1e150 at most.
    solver : {"auto", "apgd", "spgd"} or solver object, default="auto"
        "auto" suits nearly all problems. "apgd" is Algorithm 1 of the paper, "spgd" Algorithm 2, for many samples.
    screening : {"safe", "paper", "none"}, default="safe"
        Rule that proves rows to be zero and removes them: the extended rule with the smallest bounds, the paper's rule
        with the paper's bounds, or none. The answer is the same. "apgd" is much faster with it; "auto", which works on
        few rows anyway, takes about the same time.
    tol : float, default=1e-6
        Stop when the duality gap is at most ``tol`` times the loss of the model without features, less the smallest
        loss that any predictor has (0, but for counts and for targets that are probabilities).
    max_iter : int, default=10000
        Maximum number of proximal steps.
    B_init : array-like of shape (n_features,) or (n_features, n_tasks), default=None
        Where to start; zero by default.
    intercept_init : array-like of shape (n_tasks,), default=None
        Intercept to start from; that of the model without features by default.
    random_state : int, Generator, RandomState or None, default=None
        Seed of stochastic solvers.
    callback : callable, default=None
        Called as ``callback(progress)`` after each certificate; returning True stops the solve.
    feature_groups : array-like of shape (n_features,), or lists or dict of lists of names or indices, default=None
        Groups of columns that are selected together. The penalty applies to the Frobenius norm of their rows of ``B``.
        Give a label for each column (None for a column by itself), a list of lists of columns, or a dict from names of
        groups to lists of columns. Columns that are not named are groups of one. ``lam`` then has one weight per group.
    group_scale : {"size", "none", "frobenius", "orthonormal"}, default="size"
        How the penalty sees groups of two columns or more: divided by the root of their number; as they are; divided,
        as a whole, by the root of the sum of the variances of their columns, which then are not standardized one by
        one; or as uncorrelated combinations of deviation 1, so that it is on the predictions of a group. ``B`` is
        always on the scale of X.
    penalty_factor : array-like of shape (n_features,) or dict, default=None
        Factors of the penalty of each feature, or of those named: the penalty sees columns divided by their factors, so
        that order and ties of norms, clusters among them, refer to scaled columns. Factors are not rescaled. 0 means no
        penalty, and such features take none of the weights; infinity leaves a feature out.
    offset : array-like of shape (n_samples,) or (n_samples, n_tasks), default=None
        Numbers o that are added to the predictors, with a coefficient of one: for example the logarithms of exposures
        with ``loss="poisson"``, or what another model predicts. A column for each class with ``loss="multinomial"``.
    ridge : float, default=0.0
        Adds ``ridge/2 ||B||_F^2``, of the coefficients of columns as the penalty sees them (scaled by groups and
        factors); unpenalized features have none.
    positive : bool, names or indices of features, or signs, default=False
        True: coefficients of penalized features must not be negative. Names or indices: the same for these features
        only. Signs, one for each feature or a dict with those of some: 1 for not negative, -1 for not positive, 0 for
        no constraint. Not for ``loss="multinomial"``.

    Returns
    -------
    SolveResult
        Coefficients, certificate and history.

    Warns
    -----
    ConvergenceWarning
        When the solve stops before the gap meets the tolerance; the result says why and where.
    UserWarning
        When samples without any observed target are left out.

    Examples
    --------
    >>> import groupowl as go
    >>> data = go.datasets.make_correlated_groups(60, 200, 3, random_state=0)
    >>> lam = 0.5 * go.lam_max(data.X, data.Y, "oscar") * go.weights.oscar(200)
    >>> result = go.solve(data.X, data.Y, lam)
    >>> result.converged, bool(result.gap <= 1e-6 * 0.5 * (data.Y**2).sum())
    (True, True)
    """
    settings = check_settings(solver, screening, tol, max_iter, callback, random_state)
    with blas_threads(X):
        X, options = options_of(
            X,
            feature_groups=feature_groups,
            group_scale=group_scale,
            penalty_factor=penalty_factor,
            ridge=ridge,
            positive=positive,
        )
        offset = nonzero_offset(offset, Y)
        is_plain = options.is_plain and offset is None
        if sample_weight is None and B_init is None and intercept_init is None and is_plain:
            small = lean_solve(X, Y, lam, settings, loss=loss, fit_intercept=fit_intercept)
            if small is not None:
                return small
        problem = build_problem(
            X,
            Y,
            lam,
            loss=loss,
            fit_intercept=fit_intercept,
            sample_weight=sample_weight,
            options=options,
            offset=offset,
        )
        warn_of_lost_samples(problem)
        B = _start(problem, B_init, intercept_init)
        result = Continuation(problem, settings, B).solve(problem.lam)
    warn_unless_converged(result, problem.goal(settings.tol), settings)
    return result


def check_callback(callback: Any) -> None:
    """Refuse what cannot be called."""
    if not callable(callback):
        raise TypeError(f"callback must be callable, got {callback!r} of type {type(callback).__name__}.")


def check_settings(
    solver: Any, screening: Any, tol: Any, max_iter: Any, callback: Any = None, random_state: Any = None
) -> SolverSettings:
    """Settings from arguments as users give them."""
    if callback is not None:
        check_callback(callback)
    if isinstance(solver, str | type) or not hasattr(solver, "advance"):
        solver = lookup("solver", solver, SOLVERS)()
    return SolverSettings(
        solver,
        lookup("screening", screening, RULES),
        finite_number("tol", tol, above=0.0),
        positive_integer("max_iter", max_iter),
        callback,
        as_generator(random_state),
    )


def _start(problem: Problem, B_init: Any, intercept_init: Any) -> FloatArray:
    """Coefficients to start from, out of what the user gave."""
    if B_init is None and intercept_init is None:
        return problem.null_coefficients()
    q = problem.samples.n_tasks
    B, intercept = np.zeros((problem.n_rows, q)), None
    if B_init is not None:
        B = finite_matrix("B_init", B_init, remedy="Start from finite coefficients, or leave B_init out.")
        if B.shape != (problem.n_rows, q):
            expected = f"({problem.n_rows}, {q}) (n_features, n_tasks)"
            raise ValueError(f"B_init must have shape {expected}, got {np.shape(B_init)}.")
    if intercept_init is not None:
        if not problem.fit_intercept:
            raise ValueError("intercept_init was given but fit_intercept is False; set fit_intercept=True.")
        remedy = "Start from a finite intercept, or leave it out."
        intercept = finite_vector("intercept_init", intercept_init, q, remedy=remedy)
    return problem.start_from(B, intercept)


def warn_unless_converged(result: SolveResult, goal: float, settings: SolverSettings, *, prefix: str = "") -> None:
    """Warn the caller's caller why a solve stopped early."""
    if result.status in WARNINGS:
        from sklearn.exceptions import ConvergenceWarning  # loading scikit-learn takes longer than most solves

        reached = f"the duality gap is {result.gap:.3g}, tol={settings.tol:g} asks for {goal:.3g}"
        message = WARNINGS[result.status].format(max_iter=settings.max_iter, reached=reached)
        warnings.warn(prefix + message, ConvergenceWarning, stacklevel=3)
