"""Models of one training set along the alphas: fitted, with all classes, ready to be scored."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from .._kernels import nonzero_rows
from .._typing import FloatArray, IndexArray
from ..compression import problem_of_statistics
from ..designs import Design
from ..gram import SufficientStatistics
from ..model import Model, build_model
from ..path import PathFit, fit_path
from ..relaxation import relaxed_coefficients
from ..screening import Rule
from ..solvers import Callback, Solver
from .following import Follower

#: Predictor of a class that a training set does not have: the softmax is exactly zero, in single precision too.
ABSENT = -1e30


@dataclass(frozen=True, eq=False)
class Fitting:
    """How models are fitted, whatever the samples; solver and rule are resolved."""

    loss: str
    fit_intercept: bool
    standardize: bool
    unpenalized: IndexArray
    solver: Solver
    rule: Rule | None
    tol: float
    max_iter: int
    relaxed: bool = False

    def model(self, X: Any, Y: FloatArray, weights: Any, sample_weight: FloatArray) -> Model:
        """The model of some samples."""
        return build_model(
            X,
            Y,
            loss=self.loss,
            weights=weights,
            fit_intercept=self.fit_intercept,
            standardize=self.standardize,
            sample_weight=sample_weight,
            unpenalized=self.unpenalized,
        )

    def path(
        self,
        model: Model,
        alphas: FloatArray,
        *,
        seed: int,
        max_deviance: float | None = None,
        callback: Callback | None = None,
    ) -> PathFit:
        """The path of a model, every alpha solved; all alphas unless a deviance ends it."""
        return fit_path(
            model,
            alphas,
            solver=self.solver,
            rule=self.rule,
            tol=self.tol,
            max_iter=self.max_iter,
            rng=np.random.default_rng(seed),
            max_deviance=max_deviance,
            callback=callback,
        )


@dataclass(frozen=True, eq=False)
class Candidate:
    """Coefficients to be scored: non-zero rows and intercept on the scale of the input."""

    support: IndexArray
    rows: FloatArray
    intercept: FloatArray

    @classmethod
    def of(cls, B: FloatArray, intercept: FloatArray) -> Candidate:
        """The non-zero rows of a matrix."""
        support = np.flatnonzero(nonzero_rows(B))
        return cls(support, B[support], intercept)

    def coef(self, n_features: int) -> FloatArray:
        """All coefficients, of shape (n_features, n_columns)."""
        B = np.zeros((n_features, self.rows.shape[1]))
        B[self.support] = self.rows
        return B

    def with_classes(self, present: IndexArray, n_classes: int) -> Candidate:
        """The same among more classes; those that are not ``present`` have probability zero."""
        rows = np.zeros((len(self.support), n_classes))
        intercept = np.full(n_classes, ABSENT)
        rows[:, present], intercept[present] = self.rows, self.intercept
        return replace(self, rows=rows, intercept=intercept)


def relaxed_candidates(model: Model, candidates: list[Candidate]) -> list[Candidate]:
    """Each candidate fitted anew to its support, each support once."""
    known: dict[bytes, Candidate] = {}
    for candidate in candidates:
        key = candidate.support.tobytes()
        if key not in known:
            B, intercept, _ = relaxed_coefficients(model, candidate.support, judge=False)
            known[key] = Candidate(candidate.support, B[candidate.support], intercept)
    return [known[candidate.support.tobytes()] for candidate in candidates]


@dataclass(frozen=True, eq=False)
class TrainedPath:
    """Candidates for all alphas, and how many of their fits fell short of the tolerance."""

    candidates: list[Candidate]
    n_short: int


class Training(Protocol):
    """A training set."""

    def fit(self, fitting: Fitting, weights: FloatArray, alphas: FloatArray, seed: int) -> TrainedPath:
        """Fit a model for each alpha."""
        ...


@dataclass(frozen=True, eq=False)
class TrainingRows:
    """Some samples of a data set; the design is that of all samples."""

    design: Design
    Y: FloatArray
    sample_weight: FloatArray
    rows: IndexArray

    def fit(self, fitting: Fitting, weights: FloatArray, alphas: FloatArray, seed: int) -> TrainedPath:
        """Fit a model for each alpha, with the classes that these samples have."""
        Y, weight = self.Y[self.rows], self.sample_weight[self.rows]
        if fitting.loss != "multinomial":
            return _fit(fitting, fitting.model(self.design.rows(self.rows), Y, weights, weight), alphas, seed)
        present = np.flatnonzero(Y.any(axis=0))
        if len(present) == 1:
            nothing = Candidate(np.zeros(0, dtype=np.intp), np.zeros((0, 1)), np.zeros(1))
            path = TrainedPath([nothing] * len(alphas), 0)
        else:
            model = fitting.model(self.design.rows(self.rows), Y[:, present], weights, weight)
            path = _fit(fitting, model, alphas, seed)
        if len(present) == Y.shape[1]:
            return path
        return replace(path, candidates=[item.with_classes(present, Y.shape[1]) for item in path.candidates])


@dataclass(frozen=True, eq=False)
class TrainingStatistics:
    """Samples that are known by their statistics, for squared loss."""

    statistics: SufficientStatistics

    def fit(self, fitting: Fitting, weights: FloatArray, alphas: FloatArray, seed: int) -> TrainedPath:
        """Fit a model for each alpha without a look at the data."""
        problem = problem_of_statistics(
            self.statistics, fit_intercept=fitting.fit_intercept, standardized=fitting.standardize
        )
        return _fit(fitting, Model(problem, weights, fitting.unpenalized), alphas, seed)


def _fit(fitting: Fitting, model: Model, alphas: FloatArray, seed: int) -> TrainedPath:
    sequence = model.sequence(fitting.solver, tol=fitting.tol, n_solves=len(alphas))
    follower = Follower(model, sequence, fitting.tol * model.null_loss, fitting.rule, fitting.max_iter)
    steps = follower.follow(alphas, np.random.default_rng(seed))
    candidates = [Candidate.of(step.B, step.intercept) for step in steps]
    if fitting.relaxed:
        candidates = relaxed_candidates(model, candidates)
    return TrainedPath(candidates, sum(not step.is_proved for step in steps))
