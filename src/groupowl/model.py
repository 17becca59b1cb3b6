"""Data, loss and weight sequence in the scaling of paths and estimators: a model is all of a fit but alpha.

The objective is ``(1/W) sum_i w_i f_i(x_i^T B + b0) + alpha sum_j weights_j ||B_[j],:||_2`` with ``W = sum_i w_i``.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ._checks import finite_matrix, finite_number, finite_vector
from ._typing import FloatArray, IndexArray
from .designs import SufficientStatistics, as_design
from .problem import LATER, Problem, Residual, build_problem
from .solvers import Sequence, Solver
from .weights import check_strengths, resolve_weights

# "auto" is this fraction of the smallest alpha that selects nothing.
_AUTO_FRACTION = 0.1
_SHOWN = 5


@dataclass(frozen=True, eq=False)
class Model:
    """Everything but alpha.

    Attributes
    ----------
    problem : Problem
        Data and loss; the sample weights sum to 1.
    weights : ndarray of shape (n_penalized,)
        Weight sequence of the penalised features.
    unpenalized : ndarray of int
        Columns that are not penalised.
    """

    problem: Problem
    weights: FloatArray
    unpenalized: IndexArray

    @cached_property
    def sequence_weights(self) -> FloatArray:
        """The weights with one more for each unpenalised column, whose row of the problem is zero and pays nothing."""
        return np.concatenate([self.weights, np.full(len(self.unpenalized), self.weights[-1])])

    @cached_property
    def null_residual(self) -> Residual:
        """What the model without features leaves unexplained: a pass over the data."""
        return self.problem.residual(self.problem.null_coefficients())

    @property
    def known_residual(self) -> Residual | None:
        """:attr:`null_residual` if it was needed already."""
        return vars(self).get("null_residual")

    @cached_property
    def alpha_max(self) -> float:
        """Smallest alpha that selects nothing."""
        return self.problem.lam_max(self.sequence_weights, self.null_residual)

    @property
    def dtype(self) -> Any:
        """Precision of the coefficients that users get: that of X."""
        return np.dtype(np.float32 if self.problem.design.dtype == np.float32 else np.float64)

    @property
    def null_loss(self) -> float:
        """Loss of the model without penalised features."""
        return self.problem.null_loss

    def resolve_alpha(self, alpha: Any) -> float:
        """A number as it is; "auto" is a tenth of :attr:`alpha_max`, or 1 where that is 0."""
        if isinstance(alpha, str):
            if alpha != "auto":
                raise ValueError(f"alpha must be a positive number or 'auto', got {alpha!r}.")
            return _AUTO_FRACTION * self.alpha_max or 1.0
        strength = finite_number("alpha", alpha, above=0.0)
        self.check_alphas("alpha", np.array([strength]))
        return strength

    def check_alphas(self, argument: str, alphas: FloatArray) -> None:
        """Refuse alphas that make penalties with which nothing can be proved."""
        for alpha in (alphas.max(), alphas.min()):
            with np.errstate(all="ignore"):
                strengths = alpha * self.weights[self.weights > 0.0]
            check_strengths(f"{argument} * weights", strengths)

    def alpha_grid(self, count: int, eps: float) -> FloatArray:
        """So many alphas from :attr:`alpha_max` down to ``eps`` times it, evenly spaced on a logarithmic scale."""
        top = self.alpha_max or 1.0
        grid = top * np.geomspace(1.0, eps, count)
        grid[0] = top
        return grid

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
        return problem.loss.canonical(problem.from_input(coef.T, intercept))

    def sequence(self, solver: Solver, *, tol: float, n_solves: int = 1, start: FloatArray | None = None) -> Sequence:
        """Solves that follow each other; each takes :attr:`sequence_weights` and an alpha."""
        first = self.problem.null_coefficients() if start is None else start
        known = self.known_residual if start is None else None
        return Sequence(self.problem, solver, first, tol=tol, n_solves=n_solves, residual=known)


def warn_unless_bounded(model: Model) -> None:
    """Warn the caller's caller of unpenalised columns whose coefficients have no finite optimum."""
    if model.problem.unpenalized.has_minimum:
        return
    columns = ", ".join(str(j) for j in model.unpenalized[:_SHOWN]) + ", ..." * (len(model.unpenalized) > _SHOWN)
    warnings.warn(
        f"The coefficients of the unpenalized columns (indices {columns}) have no finite optimum, or one that rounding "
        "hides: they tell the classes of some samples apart (almost) without an error. They have grown until the "
        "loss fell by no more than rounding, and their size means nothing else. Penalize such columns, merge rare "
        "categories, or leave them out.",
        ConvergenceWarning,
        stacklevel=3,
    )


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
) -> Model:
    """Check data and make the model; ``Y`` is numeric (one-hot for classes), ``unpenalized`` indices of columns."""
    data = X if isinstance(X, SufficientStatistics) else as_design(X)
    free = np.zeros(0, dtype=np.intp) if unpenalized is None else unpenalized
    problem = build_problem(
        data,
        Y,
        LATER,
        loss=loss,
        fit_intercept=fit_intercept,
        sample_weight=sample_weight,
        standardized=standardize,
        unpenalized=free,
        total_weight=1.0,
    )
    sequence = resolve_weights(
        weights,
        n_features=problem.n_rows - len(free),
        n_tasks=problem.samples.n_tasks,
        n_samples=problem.samples.count,
    )
    return Model(problem, sequence, free)
