"""Solutions of a model along falling alphas, stored by their non-zero rows."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Sequence as Items
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._checks import positive_integer
from .._typing import FloatArray, IndexArray
from ..model import Model
from ..screening import Rule
from ..solvers import Callback, Progress, Sequence, Solver, SolveResult

#: A path ends where this share of the deviance is explained.
MAX_DEVIANCE = 0.999


@dataclass(frozen=True, eq=False)
class PathPoint:
    """The solution at one alpha: its non-zero rows, and what is proved about it.

    Attributes
    ----------
    alpha : float
        Strength of the penalty.
    support : ndarray of int
        Features whose coefficients are not all zero, ascending; unpenalised ones are among them.
    rows : ndarray of shape (len(support), n_columns)
        Their coefficients on the scale of X as it was given: a column for each target, or for each class.
    intercept : ndarray of shape (n_columns,)
        One for each column of ``rows``; zeros without intercept.
    clusters : ndarray of int of shape (len(support),)
        Features of equal norm share a number, from 1 by falling norm; 0 for unpenalised features.
    primal, gap : float
        Objective, and the proved bound on its distance from the minimum.
    loss : float
        The part of the objective that is not penalty.
    deviance_ratio : float
        Share of the null model's loss that is explained, ``1 - loss / null_loss``; 1 where there is nothing to explain.
    n_iter : int
        Proximal steps taken.
    n_passes : float
        Products with X, in units of one product with all columns.
    seconds : float
        Time of the solve.
    status : {"converged", "max_iter", "callback", "stalled", "precision"}
        Why the solve stopped.
    n_selected : int
        Penalised features in the support.

    Examples
    --------
    >>> import groupowl as go
    >>> data = go.datasets.make_correlated_groups(60, 30, 2, n_informative=3, random_state=0)
    >>> point = go.group_owl_path(data.X, data.Y, alphas=5, eps=0.1)[2]
    >>> point.status, point.n_selected, point.rows.shape
    ('converged', 2, (2, 2))
    """

    alpha: float
    support: IndexArray
    rows: FloatArray
    intercept: FloatArray
    clusters: IndexArray
    primal: float
    gap: float
    loss: float
    deviance_ratio: float
    n_iter: int
    n_passes: float
    seconds: float
    status: str
    n_selected: int

    def coef(self, n_features: int) -> FloatArray:
        """All coefficients, dense, of shape (n_features, n_columns)."""
        least = int(self.support.max(initial=-1)) + 1
        d = positive_integer("n_features", n_features, minimum=least)
        B = np.zeros((d, self.rows.shape[1]), dtype=self.rows.dtype)
        B[self.support] = self.rows
        return B

    def __repr__(self) -> str:
        return (
            f"PathPoint(alpha {self.alpha:.4g}: {self.n_selected} features selected, "
            f"{100 * self.deviance_ratio:.1f} % of the deviance explained, gap {self.gap:.3g}, {self.status})"
        )


@dataclass(frozen=True, eq=False)
class PathFit:
    """The points of a path and why it ends: "end", "deviance", "max_features" or "callback"."""

    points: list[PathPoint]
    stopped_because: str

    @property
    def alphas(self) -> FloatArray:
        """The alphas of the points."""
        return np.array([point.alpha for point in self.points])


def fit_path(
    model: Model,
    alphas: Any,
    *,
    solver: Solver,
    rule: Rule | None,
    tol: float,
    max_iter: int,
    rng: np.random.Generator | None = None,
    start: FloatArray | None = None,
    max_features: int | None = None,
    max_deviance: float | None = MAX_DEVIANCE,
    callback: Callback | None = None,
    dtype: Any = np.float64,
) -> PathFit:
    """Solve for each alpha, from the first to the last, each from the solution before it.

    Parameters
    ----------
    model : Model
    alphas : array-like of shape (n_alphas,)
        Positive and falling.
    solver, rule : Solver, Rule or None
        Resolved already.
    tol, max_iter : float, int
        Of each solve.
    rng : Generator, default=None
        For stochastic solvers.
    start : ndarray, default=None
        Coefficients of the problem to start the first solve from; the model without features by default.
    max_features : int, default=None
        The path ends before the first alpha that selects more; that alpha is not among the points.
    max_deviance : float, default=0.999
        The path ends with the first alpha that explains at least this share of the deviance; None follows all alphas.
    callback : callable, default=None
        Called after each certificate. Returning True ends the path there: the point that is being solved is the last,
        as far as it has come.
    dtype : dtype, default=float64
        Of rows and intercepts.

    Returns
    -------
    PathFit
    """
    sequence = model.sequence(solver, tol=tol, n_solves=len(alphas), start=start)
    settings = {"rule": rule, "max_iter": max_iter, "rng": rng, "dtype": dtype}
    stops = StopRequest(callback)
    points: list[PathPoint] = []
    for alpha, result in warm_started(sequence, model.sequence_weights, alphas, stops, **settings):
        point = _point(model, alpha, result, sequence)
        if max_features is not None and point.n_selected > max_features:
            _require_points(points, point, max_features)
            return PathFit(points, "max_features")
        points.append(point)
        if max_deviance is not None and point.deviance_ratio >= max_deviance:
            return PathFit(points, "deviance")
    return PathFit(points, "callback" if stops.wanted else "end")


class StopRequest:
    """A callback that remembers that the user's asked to stop: the solve may end by itself at the same certificate."""

    def __init__(self, callback: Callback | None) -> None:
        self.callback = callback
        self.wanted = False

    def __call__(self, progress: Progress) -> bool:
        """Pass the certificate on."""
        self.wanted = self.callback is not None and bool(self.callback(progress))
        return self.wanted


def warm_started(
    sequence: Sequence, weights: FloatArray, strengths: Any, stops: StopRequest, **settings: Any
) -> Iterator[tuple[float, SolveResult]]:
    """Each strength with its solution, until there are no more or a stop is asked for."""
    callback = None if stops.callback is None else stops
    for i, strength in enumerate(np.asarray(strengths).tolist()):
        yield strength, sequence.solve(weights, strength, alpha_index=i, callback=callback, **settings)
        if stops.wanted:
            return


def short_of_tolerance(outcomes: Items[Any], n_wanted: int, what: str) -> tuple[Any, str] | None:
    """The first outcome that falls short of the tolerance, and how a warning about all of them begins."""
    short = [i for i, outcome in enumerate(outcomes) if outcome.status not in ("converged", "callback")]
    if not short:
        return None
    prefix = f"{len(short)} of {n_wanted} {what} fell short of tol, the first at index {short[0]}. "
    return outcomes[short[0]], prefix


def _point(model: Model, alpha: float, result: SolveResult, sequence: Sequence) -> PathPoint:
    support = result.support
    loss = _loss(model, alpha, result, sequence)
    return PathPoint(
        alpha=alpha,
        support=support,
        rows=result.B[support],
        intercept=result.intercept,
        clusters=result.clusters[support],
        primal=result.primal,
        gap=result.gap,
        loss=loss,
        deviance_ratio=1.0 - loss / model.null_loss if model.null_loss > 0.0 else 1.0,
        n_iter=result.n_iter,
        n_passes=result.n_passes,
        seconds=result.seconds,
        status=result.status,
        n_selected=int(np.count_nonzero(~np.isin(support, model.unpenalized))),
    )


def _loss(model: Model, alpha: float, result: SolveResult, sequence: Sequence) -> float:
    if sequence.residual is not None:
        return sequence.residual.loss
    penalized = model.problem.with_lam(alpha * model.sequence_weights)
    return result.primal - penalized.penalty_value(sequence.B)


def _require_points(points: list[PathPoint], point: PathPoint, max_features: int) -> None:
    if not points:
        raise ValueError(
            f"max_features={max_features}, but the first alpha, {point.alpha:g}, selects {point.n_selected} features "
            "already. Begin with a larger alpha, or raise max_features."
        )
