"""Data, loss and weight sequence in the scaling of paths and estimators: a model is all of a fit but alpha.

The objective is ``(1/W) sum_i w_i f_i(x_i^T B + b0) + alpha sum_j weights_j ||B_[j],:||_2`` with ``W = sum_i w_i``.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np
from scipy.linalg import pinvh
from scipy.sparse.linalg import LinearOperator, cg
from scipy.special import stdtrit
from sklearn.exceptions import ConvergenceWarning

from ._checks import finite_matrix, finite_number, finite_vector
from ._typing import FloatArray, IndexArray
from .designs.sparse import Columns
from .norm import PLAIN, PenaltyOptions
from .norm.kernels import EPS
from .problem import LATER, Problem, Residual, build_problem, damped_newton
from .solvers import Continuation, SolverSettings
from .weights import PROMISING, check_strengths, resolve_weights, sequences_of

# "auto" is this fraction of the smallest alpha that selects nothing.
AUTO_FRACTION = 0.1
_SHOWN = 5
# Largest factor of the penalty that a first fit gives.
_LARGEST_FACTOR = 100.0
# Ridge of the multinomial fit, relative to the mean curvature of the null model.
_RIDGE = 1e-6
# The ridge decides where a tenth of it moves the predictors by more than this, relatively.
_DECIDES_RTOL = 1e-2
# More entries than this are not copied to a dense matrix; the Gram matrix of the columns does, less exactly.
_MOST_ENTRIES = 1 << 24
_NEWTON_STEPS = 100
# Ridge relative to the largest curvature; directions that are flat do not move.
_FLAT_RTOL = 1e-12
# Larger Newton systems are not formed, nor those that cost more operations; conjugate gradients do.
_LARGEST_SYSTEM = 2000
_MOST_WORK = 4e9
# Squared Newton decrement, relative to the loss, at which the minimum is reached.
_DECREMENT_RTOL = 1e-15
# Weights by name that know nothing of groups, and how to give them for groups.
_OF_SINGLE_FEATURES = {
    "chi": "chi(n_groups, n_tasks, group_sizes=...)",
    "chi_gauss": "chi_gauss(n_groups, n_tasks, n_samples, group_sizes=...)",
}
# Correlations that no promise suffers from, probability that chance alone makes one larger than it should, and products
# that may be spent on a look at them: some 50 ms.
_HARMLESS = 0.2
_CHANCE = 0.01
_CORRELATION_WORK = 5e8


def penalty_weights(weights: FloatArray, *, two_classes: bool) -> FloatArray:
    """Weights as the problem has them, where one task may stand for two classes."""
    return weights / np.sqrt(2.0) if two_classes else weights


@dataclass(frozen=True, eq=False)
class Model:
    """Everything but alpha.

    Attributes
    ----------
    problem : Problem
        Data and loss; the sample weights sum to 1.
    weights : ndarray of shape (n_penalized,)
        Weight sequence of the penalized features, or groups of them.
    unpenalized : ndarray of int
        Columns that are not penalized.
    small : Problem or None
        The same problem on sufficient statistics that are known already, so that no solve has to make them.
    two_classes : bool
        Whether the one task stands for two classes. With a column each their coefficients would be plus and minus half
        of those here, and the norm of the two is that of the difference over the root of 2: so are the weights, that
        alpha means the same for two classes as for more.
    options : PenaltyOptions
        What else is asked of the penalty.
    """

    problem: Problem
    weights: FloatArray
    unpenalized: IndexArray
    small: Problem | None = None
    two_classes: bool = False
    options: PenaltyOptions = PLAIN

    @cached_property
    def sequence_weights(self) -> FloatArray:
        """The weights, with one more for each unpenalized column, whose row in the penalized problem is zero."""
        weights = np.concatenate([self.weights, np.full(len(self.unpenalized), self.weights[-1])])
        return penalty_weights(weights, two_classes=self.two_classes)

    def with_weights(self, weights: Any) -> Model:
        """The same data with another weight sequence: a name, an array or a function."""
        samples = self.problem.samples
        if isinstance(weights, str) and weights in _OF_SINGLE_FEATURES and not self.problem.penalty.rows_are_units:
            raise ValueError(
                f"weights={weights!r} is for single features: groups have more degrees of freedom. Give "
                f"go.weights.{_OF_SINGLE_FEATURES[weights]}, and go.weights.chi_factors as penalty_factor."
            )
        sequence = resolve_weights(
            weights,
            n_features=self.problem.penalty.n_units - len(self.unpenalized),
            n_tasks=samples.n_tasks + self.two_classes,
            n_samples=samples.count,
            n_directions=self.problem.loss.parameters_per_feature(samples.n_tasks),
            per="feature" if self.problem.penalty.rows_are_units else "group of features",
        )
        return Model(self.problem, sequence, self.unpenalized, two_classes=self.two_classes, options=self.options)

    @cached_property
    def null_residual(self) -> Residual:
        """Residual of the model without features, computed in one pass over the data."""
        return self.problem.residual(self.problem.null_coefficients())

    @cached_property
    def alpha_max(self) -> float:
        """Smallest alpha that selects nothing."""
        return self.problem.lam_max(self.sequence_weights, self.null_residual)

    def n_units(self, support: IndexArray) -> int:
        """Penalized features, or groups of them, that a support has."""
        penalized, units = np.setdiff1d(support, self.unpenalized), self.problem.penalty.units
        return len(penalized if units is None else np.unique(units[penalized]))

    @property
    def dtype(self) -> Any:
        """Precision of the coefficients that users get: that of X."""
        return np.dtype(np.float32 if self.problem.design.dtype == np.float32 else np.float64)

    def resolve_alpha(self, alpha: Any) -> float:
        """A number as it is; "auto" is a tenth of :attr:`alpha_max`, or 1 where that is 0."""
        strength = check_alpha(alpha)
        if strength is None:
            return AUTO_FRACTION * self.alpha_max or 1.0
        self.check_alphas("alpha", np.array([strength]))
        return strength

    def check_alphas(self, argument: str, alphas: FloatArray) -> None:
        """Refuse alphas that make penalties with which nothing can be proved."""
        for alpha in (alphas.max(), alphas.min()):
            with np.errstate(all="ignore"):
                strengths = alpha * self.weights[self.weights > 0.0]
            check_strengths(f"{argument} * weights", strengths)

    def start(self, coef_init: Any, intercept_init: Any = None) -> FloatArray:
        """Coefficients of the problem to start from; ``coef_init`` is (n_targets, n_features) or (n_features,)."""
        problem, q = self.problem, self.problem.samples.n_tasks
        expected = (q, problem.n_rows)
        coef = finite_matrix("coef_init", np.atleast_2d(coef_init), remedy="Start from finite coefficients, or None.")
        if coef.shape != expected:
            raise ValueError(
                f"coef_init must have shape {expected} (n_targets, n_features), got {np.shape(coef_init)}."
            )
        intercept = None
        if intercept_init is not None and problem.fit_intercept:
            intercept = finite_vector("intercept_init", intercept_init, q, remedy="Start from a finite intercept.")
        return problem.start_from(coef.T, intercept)

    def continuation(
        self, settings: SolverSettings, *, n_solves: int = 1, start: FloatArray | None = None
    ) -> Continuation:
        """Solves that follow each other; each takes :attr:`sequence_weights` and an alpha."""
        known = None
        if start is None:
            start = self.problem.null_coefficients()
            known = vars(self).get("null_residual")  # if it was needed already
        return Continuation(self.problem, settings, start, n_solves=n_solves, residual=known, small=self.small)


def check_alpha(alpha: Any) -> float | None:
    """A positive number as a float, None for "auto"; anything else is refused, which takes no data."""
    expected = "alpha must be a positive number or 'auto'"
    if isinstance(alpha, str):
        if alpha != "auto":
            raise ValueError(f"{expected}, got {alpha!r}.")
        return None
    if type(alpha) is not float and (isinstance(alpha, bool) or not isinstance(alpha, Real)):
        raise TypeError(f"{expected}, got {alpha!r} of type {type(alpha).__name__}.")
    return finite_number("alpha", alpha, above=0.0)


def warn_unless_bounded(model: Model) -> None:
    """Warn the caller's caller of unpenalized columns whose coefficients have no finite optimum."""
    if model.problem.unpenalized.has_minimum:
        return
    columns = ", ".join(str(j) for j in model.unpenalized[:_SHOWN]) + ", ..." * (len(model.unpenalized) > _SHOWN)
    warnings.warn(
        f"The coefficients of the unpenalized columns (indices {columns}) have no finite optimum, or one that rounding "
        "hides: these columns separate the classes of some samples (almost) without an error. The coefficients grew "
        "until the loss stopped decreasing, and their size has no meaning. Penalize such columns, merge rare "
        "categories, or leave them out.",
        ConvergenceWarning,
        stacklevel=3,
    )


def warn_if_correlated(model: Model, weights: Any) -> None:
    """Warn the caller's caller that weights given by a name that promises control of false discoveries do not keep it.

    They do so for nearly orthogonal columns only. A correlation counts if it is at least 0.2 and no chance: of
    independent columns, one pair in all has as large a one in a hundred data sets. Where all correlations would take
    longer than the fit, those of some columns, drawn with a fixed seed, and of their neighbors are looked at.
    """
    promising = [name for name in sequences_of(weights) if isinstance(name, str) and name in PROMISING]
    if not promising:
        return
    complaint = complain_of_correlation(model, f"weights={promising[0]!r}")
    if complaint:
        remedy = f"If the shape is all you want, give it as an array, go.weights.{promising[0]}(...)."
        warnings.warn(f"{complaint} {remedy}", UserWarning, stacklevel=3)


def complain_of_correlation(model: Model, what: str) -> str:
    """Why the columns of a model do not let something control false discoveries; empty where they do."""
    size, (left, right) = largest_correlation(model)
    if size < _correlation_limit(model):
        return ""
    return (
        f"{what} controls the false discovery rate only where columns of X are nearly uncorrelated: columns {left} and "
        f"{right} have a correlation of {size:.2f}, and features without an effect will be selected beside correlated "
        "ones that have one. For control use knockoffs (groupowl.inference.KnockoffSelector)."
    )


def largest_correlation(model: Model) -> tuple[float, tuple[int, int]]:
    """Largest absolute correlation of penalized columns of different units that were looked at, and which two."""
    problem = model.problem
    columns = np.setdiff1d(np.arange(problem.n_rows), model.unpenalized)
    most = int(np.sqrt(_CORRELATION_WORK / max(problem.samples.count, 1)))
    if len(columns) > max(most, 2):
        drawn = np.random.default_rng(0).choice(len(columns) - 1, max(most // 2, 1), replace=False)
        columns = columns[np.union1d(drawn, drawn + 1)]
    # Not by the problem, which would keep them: a fit is the same with and without this look.
    gram = problem.design.gram(columns, columns, problem.design.map(_mean_of_tasks, problem.samples.w))
    norms = np.sqrt(np.diagonal(gram))
    norms[norms == 0.0] = np.inf
    correlations = np.abs(gram / norms / norms[:, None])
    units = columns if problem.penalty.units is None else problem.penalty.units[columns]
    correlations[units == units[:, None]] = 0.0
    i, j = sorted(divmod(int(np.argmax(correlations)), len(columns)))
    return float(correlations[i, j]), (int(columns[i]), int(columns[j]))


def _mean_of_tasks(w: FloatArray) -> FloatArray:
    return w.mean(axis=1, keepdims=True)


def _correlation_limit(model: Model) -> float:
    """Correlation that is too large to be harmless, and to be chance."""
    freedom, n_pairs = model.problem.samples.count - 2.0, 0.5 * model.problem.n_rows * (model.problem.n_rows - 1.0)
    if freedom < 1.0:
        return np.inf
    t = float(stdtrit(freedom, 1.0 - 0.5 * _CHANCE / max(n_pairs, 1.0)))
    return max(_HARMLESS, t / np.sqrt(freedom + t * t))


def build_model(
    X: Any,
    Y: Any,
    *,
    loss: Any = "squared",
    weights: Any = "oscar",
    fit_intercept: bool = True,
    standardize: bool = False,
    sample_weight: Any = None,
    unpenalized: IndexArray | None = None,
    two_classes: bool = False,
    options: PenaltyOptions = PLAIN,
    offset: Any = None,
    offset_size: float = 0.0,
) -> Model:
    """Check data and make the model; ``Y`` is numeric (one-hot for classes), ``unpenalized`` indices of columns."""
    free = options.with_unpenalized(unpenalized)
    if two_classes and options.ridge > 0.0:  # that of plus and minus half of the coefficients is half of theirs
        options = replace(options, ridge=0.5 * options.ridge)
    problem = build_problem(
        X,
        Y,
        LATER,
        loss=loss,
        fit_intercept=fit_intercept,
        sample_weight=sample_weight,
        standardized=standardize,
        unpenalized=free,
        total_weight=1.0,
        options=options,
        offset=offset,
        offset_size=offset_size,
    )
    return Model(problem, np.zeros(0), free, two_classes=two_classes, options=options).with_weights(weights)


def adaptive_factor(model: Model, B: FloatArray) -> FloatArray:
    """Factors of the penalty from a first fit: the largest norm over that of each feature or group, at most 100.

    Norms are those that the penalty sees; what the first fit has left out gets the largest factor, and features without
    penalty stay so.
    """
    problem = model.problem
    rows = problem.from_input(B.astype(np.float64), None)[: problem.n_rows]
    norms = problem.penalty.spread(problem.penalty.norms(rows))
    largest = float(norms.max(initial=0.0)) or 1.0
    factor = largest / np.maximum(norms, largest / _LARGEST_FACTOR)
    factor[model.unpenalized] = 0.0
    return factor


# Coefficients of the selected features without the penalty -------------------------------------------------


def relaxed_coefficients(
    model: Model, support: IndexArray, *, judge: bool = True
) -> tuple[FloatArray, FloatArray, bool]:
    """Fit the features of the support without penalty.

    Squared loss: least squares, of minimum norm where columns are collinear. Multinomial: Newton's method with a ridge
    of 1e-6 of the mean curvature, because separated classes have no finite solution.

    Parameters
    ----------
    model : Model
        Data and loss.
    support : ndarray of int
        Features to fit; unpenalized ones are always fitted.
    judge : bool, default=True
        Whether to find out if the ridge decides, which takes another fit.

    Returns
    -------
    B : ndarray of shape (n_features, n_targets)
        Coefficients on the scale of the input.
    intercept : ndarray of shape (n_targets,)
        Zeros where the model has none.
    ridge_decides : bool
        Whether the coefficients depend on the ridge: without it there is no finite solution, or hardly one.
    """
    problem = model.problem
    rows = np.setdiff1d(support, model.unpenalized)
    with np.errstate(all="ignore"):
        if problem.loss.is_quadratic:
            coefficients = problem.null_coefficients()
            if len(rows):
                coefficients[rows] = _least_squares(problem, rows)
            return *problem.to_input(coefficients), False
        coefficients, ridge_decides = _RidgedFit(problem, rows).solve(judge)
        return *problem.to_input(coefficients), ridge_decides


def _least_squares(problem: Problem, rows: IndexArray) -> FloatArray:
    """Minimum-norm least squares on the columns of some rows."""
    columns = problem.columns(rows)
    if columns is None or problem.design.n_samples * len(rows) > _MOST_ENTRIES:
        correlations = problem.descent(problem.predictor(problem.null_coefficients()))[rows]
        return np.asarray(pinvh(problem.gram(rows), rtol=len(rows) * EPS) @ correlations, dtype=np.float64)
    root = np.sqrt(problem.samples.w)
    A = columns.dense(np.arange(len(rows))).T * root
    solution: FloatArray = np.linalg.lstsq(A, root * problem.samples.Y, rcond=None)[0]
    return solution


class _RidgedFit:
    """A loss plus a small ridge on some rows; the unpenalized block pays none."""

    def __init__(self, problem: Problem, rows: IndexArray) -> None:
        columns = problem.columns(rows)
        if columns is None:
            raise NotImplementedError("relaxed=True needs the samples in this process. Fit with relaxed=False.")
        self.problem = problem
        self.loss = problem.loss
        self.rows = np.concatenate([rows, np.arange(problem.n_rows, problem.n_coefficients)])
        self.columns: Columns = columns
        self.samples = problem.samples.Y, problem.samples.w
        self.is_ridged = np.arange(len(self.rows)) < len(rows)

    def solve(self, judge: bool) -> tuple[FloatArray, bool]:
        """Coefficients of the whole problem, and whether the ridge decides them, if that is to be judged."""
        coefficients = self.problem.null_coefficients()
        if len(self.rows) == self.problem.unpenalized.n_rows:
            return coefficients, False
        start = coefficients[self.rows]
        ridge = _RIDGE * float(np.mean(self._diagonal(self.columns.predict(start))[self.is_ridged]))
        V = self._minimum(start, ridge)
        coefficients[self.rows] = V
        if not judge:
            return coefficients, False
        freer = self._minimum(V, 0.1 * ridge)
        moved = np.linalg.norm(self.columns.predict(freer - V))
        return coefficients, bool(moved > _DECIDES_RTOL * np.linalg.norm(self.columns.predict(V)))

    def _diagonal(self, Z: FloatArray) -> FloatArray:
        """Second derivative along each row, mean over tasks."""
        theta = self.loss.dual_point(Z, *self.samples)
        return self.columns.norms(self.loss.curvatures(theta, *self.samples)) ** 2

    def _minimum(self, V: FloatArray, ridge_size: float) -> FloatArray:
        """Newton's method from V."""
        ridge = np.where(self.is_ridged, ridge_size, 0.0)[:, None]

        def newton_step(V: FloatArray) -> tuple[FloatArray, float, float] | None:
            Z = self.columns.predict(V)
            descent = self.columns.correlate(self.loss.dual_point(Z, *self.samples)) - ridge * V
            is_small = descent.size <= _LARGEST_SYSTEM and float(descent.size) ** 2 * len(Z) <= _MOST_WORK
            step = (self._direct_solution if is_small else self._iterative_solution)(Z, descent, ridge)
            decrement = float(np.vdot(descent, step))
            value = self.loss.value(Z, *self.samples) + 0.5 * float(np.sum(ridge * V * V))
            return (step, decrement, 1.0) if decrement > _DECREMENT_RTOL * value else None

        def change(V: FloatArray, step: FloatArray) -> float:
            of_loss = self.loss.change(self.columns.predict(V), *self.samples, self.columns.predict(step))
            return of_loss + float(np.sum(ridge * step * (V + 0.5 * step)))

        return self.loss.canonical(damped_newton(V, newton_step, change, np.add, _NEWTON_STEPS))

    @cached_property
    def _dense(self) -> FloatArray:
        return np.ascontiguousarray(self.columns.dense(np.arange(len(self.rows))).T)

    def _direct_solution(self, Z: FloatArray, descent: FloatArray, ridge: FloatArray) -> FloatArray:
        """From the Hessian itself, with a trace of a ridge in its flat directions."""
        H = self.loss.curvature_along(Z, *self.samples, self._dense)
        shift = np.repeat(ridge[:, 0], descent.shape[1]) + _FLAT_RTOL * float(np.diagonal(H).max(initial=0.0))
        H[np.diag_indices(len(H))] += np.where(shift > 0.0, shift, 1.0)
        solution = np.asarray(np.linalg.solve(H, descent.ravel()), dtype=np.float64)
        return self.loss.canonical(solution.reshape(descent.shape))

    def _iterative_solution(self, Z: FloatArray, descent: FloatArray, ridge: FloatArray) -> FloatArray:
        """Conjugate gradients: the softmax does not see the mean over classes, so the Hessian is singular."""

        def product(v: FloatArray) -> FloatArray:
            D = v.reshape(descent.shape)
            change = self.loss.curved(Z, *self.samples, self.columns.predict(D))
            return (self.columns.correlate(change) + ridge * D).ravel()

        diagonal = np.repeat(self._diagonal(Z)[:, None] + ridge, descent.shape[1], axis=1).ravel()
        diagonal[diagonal == 0.0] = 1.0
        shape = (descent.size, descent.size)
        hessian = LinearOperator(shape, matvec=product, dtype=np.float64)
        scaling = LinearOperator(shape, matvec=lambda v: v / diagonal, dtype=np.float64)
        move, _ = cg(hessian, descent.ravel(), rtol=1e-6, maxiter=10 * descent.size, M=scaling)
        solution: FloatArray = move.reshape(descent.shape)
        return solution
