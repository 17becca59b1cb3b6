"""Safe screening: from a certificate to rows of ``B`` that are zero in every solution.

Both rules see one upper bound ``u_j >= ||x_j^T theta*||`` per row, padded for rounding by the problem, and
the weights of the rows still alive. What they drop may be removed for good, with the smallest weights; the
reduced problem has the same minimum and the same dual optimum.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ._checks import finite_matrix, finite_vector, lookup
from ._typing import BoolArray, FloatArray, Handle, IndexArray
from .norm.kernels import kkt_rows, repeated_test
from .problem import (
    Certificate,
    Problem,
    Residual,
    build_problem,
    intercept_excess,
    options_of,
    warn_of_lost_samples,
)


class Rule(NamedTuple):
    """A way from a certificate to rows that may be non-zero.

    Attributes
    ----------
    kept : callable
        Positions that may be non-zero at the optimum, ascending, from upper bounds and weights.
    two_sided : bool
        Whether the bounds are those from both ends of the gap, or of the ball about the dual point alone.
    """

    kept: Callable[[FloatArray, FloatArray], IndexArray]
    two_sided: bool


def paper_rule(upper: FloatArray, lam: FloatArray) -> IndexArray:
    """Rows kept by the paper's rule: drop row j if ``u_j < lam_|A|``, until A no longer changes."""
    return repeated_test(upper, lam)


def extended_rule(upper: FloatArray, lam: FloatArray) -> IndexArray:
    """Rows kept by the extended rule: the largest ``u`` up to the last maximizer of a partial sum.

    With ``u`` sorted downwards, let k be the last maximizer of ``sum_{i<=k} (u_i - lam_i)``. The rows after it
    cannot pay for the weights they would take: if t of them were non-zero, optimality would ask for
    correlations that sum to at least ``lam_{k+1} + ... + lam_{k+t}``, and their bounds sum to less. The rule
    keeps a subset of what the paper's rule keeps, so it starts from there.
    """
    return kkt_rows(upper, lam)


# Local bounds are made where they should remove this part more of the units whose columns they read.
_WORTHWHILE = 0.1

#: The extended rule with the smallest bounds.
SAFE = Rule(extended_rule, two_sided=True)
#: Screening rules by their public name; "paper" is the paper's in all its parts, "none" keeps every row.
RULES: dict[str, Rule | None] = {"safe": SAFE, "paper": Rule(paper_rule, two_sided=False), "none": None}


def safe_rows(
    problem: Problem,
    certificate: Certificate,
    candidates: IndexArray,
    rule: Rule,
    *,
    local: bool = True,
    refine: bool = True,
) -> IndexArray:
    """Those of the units ``candidates`` that the rule cannot prove to be zero, ascending.

    The other units of the problem are known to be zero already, so the candidates share the largest weights. ``local``
    allows local bounds, which take a product with X: where they promise to prove enough. ``refine`` allows to find the
    norms of the columns of units.
    """
    lam = problem.lam[: len(candidates)]
    how = {"two_sided": rule.two_sided, "refine": refine}
    kept, upper = problem.kept(certificate, lambda upper: rule.kept(upper, lam), candidates, **how)
    if local and rule.two_sided and problem.loss.bend is not None and math.isfinite(problem.loss.curvature):
        promised = np.minimum(upper, problem.local_bounds(certificate, estimated=True)[candidates])
        if len(kept) - len(rule.kept(promised, lam)) >= _WORTHWHILE * problem.penalty.n_units:
            kept = rule.kept(np.minimum(upper, problem.local_bounds(certificate)[candidates]), lam)
    return candidates[kept]


class ScreenedProblem:
    """A problem that loses rows as they are proved zero; who solves it and how does not matter.

    Attributes
    ----------
    full : Problem
        The problem as it was.
    current : Problem
        The problem on the rows ``alive``; certificates refer to it and are valid for the full one.
    alive : ndarray of int
        Units of the full problem that the current one has; rows, where every row is a unit.
    candidates : ndarray of int
        Units of the current problem that are not proved zero, ascending.
    active : ndarray of int
        The same as units of the full problem.
    certificate : Certificate or None
        The latest one, with the best dual point so far.
    """

    def __init__(self, problem: Problem, rule: Rule | None) -> None:
        self.full = self.current = problem
        self.rule = rule
        self.alive = np.arange(problem.penalty.n_units)
        self.certificate: Certificate | None = None
        self.candidates = self.alive  # positions among the rows alive
        self._tested_gap = self._local_gap = np.inf

    @property
    def active(self) -> IndexArray:
        """Units of the full problem that are not proved zero, ascending."""
        return self.alive[self.candidates]

    def certify(
        self, B: FloatArray, Z: Handle | None = None, *, cancelled: float = 0.0, residual: Residual | None = None
    ) -> Certificate:
        """Certificate for coefficients of the current problem."""
        best = self.certificate
        self.certificate = self.current.certify(B, Z, best=best, cancelled=cancelled, residual=residual)
        return self.certificate

    def drop_zero_columns(self) -> IndexArray:
        """Remove units of zero columns, which are zero in some solution whatever their weight."""
        return self._keep(np.flatnonzero(self.current.penalty.lengths(self.current.norms) > 0))

    def test(self, *, local: bool = True) -> IndexArray:
        """Units of the full problem that the latest certificate newly proves to be zero.

        ``local`` bounds may help, and so may norms of the columns of units, which take products with X.
        """
        certificate = self.certificate
        has_bounds = local or math.isfinite(self.full.loss.curvature)  # else all of them are local
        if self.rule is None or certificate is None or not (has_bounds and certificate.gap < self._tested_gap):
            return np.zeros(0, dtype=np.intp)  # the radius has not become smaller since the last test
        self._tested_gap, refine = certificate.gap, local
        local = local and certificate.gap <= 0.5 * self._local_gap  # a product with X must find something new
        self._local_gap = certificate.gap if local else self._local_gap
        how = {"local": local, "refine": refine}
        return self._keep(safe_rows(self.current, certificate, self.candidates, self.rule, **how))

    def test_full(self, certificate: Certificate) -> IndexArray:
        """Units that a certificate of the full problem newly proves to be zero; ends the use of this object."""
        if self.rule is None or not np.isfinite(certificate.gap):
            return np.zeros(0, dtype=np.intp)
        kept = safe_rows(self.full, certificate, self.active, self.rule)
        return np.setdiff1d(self.active, kept, assume_unique=True)

    def _keep(self, candidates: IndexArray) -> IndexArray:
        proved = self.alive[np.setdiff1d(self.candidates, candidates, assume_unique=True)]
        self.candidates = candidates
        return proved

    def shrink(self, fraction: float = 0.75) -> IndexArray | None:
        """Leave the units proved zero out of the current problem if at most this fraction of them are left.

        Each time copies the columns that stay.

        Returns the rows that coefficients of the current problem keep, or None where nothing changed.
        """
        keep, problem = self.candidates, self.current
        if problem.n_rows == 0 or len(keep) > fraction * problem.penalty.n_units:
            return None
        self.current, self.alive = problem.restrict(keep), self.alive[keep]
        self.candidates = np.arange(len(keep))
        if self.certificate is not None:
            self.certificate = self.certificate.restrict(keep, problem.penalty.rows(keep))
        return problem.row_index(keep)

    def spread(self, B: FloatArray, alive: IndexArray | None = None) -> FloatArray:
        """Coefficients of the full problem from those of the rows ``alive`` (by default, the current ones)."""
        spread = np.zeros((self.full.n_coefficients, B.shape[1]))
        spread[self.full.row_index(self.alive if alive is None else alive)] = B
        return spread


_DIVERGED = "A diverged iterate proves nothing; give a finite one."


@dataclass(frozen=True, eq=False)
class ScreenReport:
    """What :meth:`SafeScreener.update` proves about the coefficients it was given.

    Attributes
    ----------
    primal, dual, gap : float
        Objective at the coefficients (rows that were not active before taken as zero), dual value, and a proved
        bound on ``primal - minimum`` of the full problem.
    active : ndarray of int
        Rows not proved zero, ascending.
    newly_screened : ndarray of int
        Rows proved zero by this update, ascending.

    Examples
    --------
    >>> import numpy as np
    >>> import groupowl as go
    >>> data = go.datasets.make_correlated_groups(60, 30, 2, n_informative=3, random_state=0)
    >>> lam = 0.9 * go.lam_max(data.X, data.Y, "oscar") * go.weights.oscar(30)
    >>> report = go.SafeScreener(data.X, data.Y, lam).update(np.zeros((30, 2)))
    >>> len(report.active) + len(report.newly_screened), report.gap >= report.primal - report.dual
    (30, True)
    """

    primal: float
    dual: float
    gap: float
    active: IndexArray
    newly_screened: IndexArray


class SafeScreener:
    """Safe screening for any solver: takes iterates, returns certificates and the rows that are proved zero.

    Any point is a valid iterate: a warm start, coefficients that are not sparse, points worse than zero. A row once
    proved zero stays so, and the best dual point seen is kept.

    Parameters
    ----------
    X, Y, lam : array-like
        Data, targets and weights as for :func:`solve`.
    loss : {"squared", "multinomial", "logistic", "poisson", "huber", "cox"} or Loss, default="squared"
        Loss, summed over samples.
    fit_intercept : bool, default=False
        Whether the model has an unpenalized intercept.
    sample_weight : array-like of shape (n_samples,) or (n_samples, n_tasks), default=None
        Non-negative weights of the samples, or of each of their targets.
    rule : {"safe", "paper"}, default="safe"
        The extended rule with the smaller bounds, or the paper's rule with the paper's.
    feature_groups, group_scale, penalty_factor : optional
        Groups and scales of columns as for :func:`solve`; ``lam`` then has one weight per group.
    offset : array-like of shape (n_samples,) or (n_samples, n_tasks), default=None
        Numbers that are added to the predictors, with a coefficient of one; ``Z`` of :meth:`update` is without it.
    ridge, positive : optional
        A ridge and signs of coefficients as for :func:`solve`; coefficients of a wrong sign prove nothing.

    Attributes
    ----------
    active : ndarray of int
        Rows still alive, as indices of the original columns, ascending; unpenalized ones always are, those of columns
        that are constant (with an intercept) or left out never.
    lam : ndarray of shape (len(active),)
        The weights that they share: the largest ones, one for each row or group that is alive and penalized.

    Examples
    --------
    >>> import numpy as np, groupowl as go
    >>> data = go.datasets.make_correlated_groups(60, 200, 3, random_state=0)
    >>> lam = 0.5 * go.lam_max(data.X, data.Y, "oscar") * go.weights.oscar(200)
    >>> screener = go.SafeScreener(data.X, data.Y, lam)
    >>> report = screener.update(np.zeros((200, 3)))       # from a poor iterate little is proved
    >>> B = go.solve(data.X, data.Y, lam, screening="none").B
    >>> report = screener.update(B[screener.active])
    >>> len(screener.active) < 50, len(screener.lam) == len(screener.active)
    (True, True)
    """

    def __init__(
        self,
        X: Any,
        Y: Any,
        lam: Any,
        *,
        loss: Any = "squared",
        fit_intercept: bool = False,
        sample_weight: Any = None,
        rule: str = "safe",
        feature_groups: Any = None,
        group_scale: str = "size",
        penalty_factor: Any = None,
        offset: Any = None,
        ridge: float = 0.0,
        positive: Any = False,
    ) -> None:
        resolved = lookup("rule", rule, {name: entry for name, entry in RULES.items() if entry is not None})
        X, options = options_of(
            X,
            feature_groups=feature_groups,
            group_scale=group_scale,
            penalty_factor=penalty_factor,
            ridge=ridge,
            positive=positive,
        )
        self._problem = build_problem(
            X,
            Y,
            lam,
            loss=loss,
            fit_intercept=fit_intercept,
            sample_weight=sample_weight,
            options=options,
            offset=offset,
        )
        warn_of_lost_samples(self._problem)
        self._screened = ScreenedProblem(self._problem, resolved)
        self._screened.drop_zero_columns()
        # Columns of a group that are constant, or left out: their coefficients would not count in what is proved.
        self._zero = self._problem.design.zero_columns(self._problem.norms)
        self._given = Y, sample_weight

    @property
    def active(self) -> IndexArray:
        """Rows still alive, ascending."""
        rows, basis = self._rows_of(self._screened.active), self._problem.unpenalized.basis
        return rows if basis is None else np.union1d(rows, basis.columns)

    @property
    def lam(self) -> FloatArray:
        """The weights that the rows alive share."""
        return self._problem.lam[: len(self._screened.candidates)]

    def update(self, B: Any, intercept: Any = None, *, Z: Any = None) -> ScreenReport:
        """Certify coefficients and drop the rows that this proves to be zero.

        Parameters
        ----------
        B : array-like of shape (n_features, n_tasks) or (len(active), n_tasks)
            Coefficients for all rows or for the rows ``active``; rows that are not active are taken as zero. Where the
            loss is squared, those of unpenalized columns are taken as the best ones.
        intercept : array-like of shape (n_tasks,), default=None
            By default the optimal one for the squared loss, and for the multinomial that of the null model for centered
            columns; what is proved holds for any.
        Z : array-like of shape (n_samples, n_tasks), default=None
            ``X B + intercept``, if it is known in double precision (anything less is computed again); saves a product
            with X. It is trusted to belong to the active rows of ``B``.

        Returns
        -------
        ScreenReport
        """
        given, foreign = self._rows(B)
        offset = self._intercept(intercept)
        with np.errstate(all="ignore"):
            coefficients = self._problem.from_input(given, offset)
            predictor, cancelled = None, 0.0
            known = None if Z is None else self._checked_predictor(Z)
            if self._problem.design.patterns is not None:
                coefficients = self._with_best_block(coefficients, offset)
                known = None  # where tasks have their own means, a predictor alone does not tell the intercept
            is_whole = not foreign and self._problem.unpenalized.rank == 0
            if known is not None and is_whole and np.asarray(Z).dtype == np.float64:
                predictor, mean, taken = self._problem.adopt_predictor(self._problem.design.samples(known))
                rows, block = np.split(coefficients, [self._problem.n_rows])
                coefficients = np.concatenate([rows, self._problem.unpenalized.with_intercept(block, mean)])
                cancelled = float(np.linalg.norm(taken)) * np.sqrt(self._problem.samples.total_weight)
            alive = coefficients[self._problem.row_index(self._screened.alive)]
            certificate = self._screened.certify(alive, predictor, cancelled=cancelled)
            proved = self._screened.test()
            self._screened.shrink()
            excess, rounding = intercept_excess(self._problem, coefficients, given, offset)
        return ScreenReport(
            primal=certificate.primal + excess,
            dual=certificate.dual,
            gap=certificate.gap + excess + rounding,
            active=self.active,
            newly_screened=self._rows_of(proved),
        )

    def _rows_of(self, units: IndexArray) -> IndexArray:
        """Rows of units, but for those that are zero in any case."""
        rows = self._problem.penalty.rows(units)
        return rows[~self._zero[rows]]

    def _with_best_block(self, coefficients: FloatArray, offset: FloatArray | None) -> FloatArray:
        """Coefficients with the optimal intercept where none was given, and one product tells it."""
        problem = self._problem
        if offset is not None or not (problem.unpenalized.n_rows and problem.loss.has_fixed_curvature):
            return coefficients
        rows, block = np.split(coefficients, [problem.n_rows])
        return np.concatenate([rows, problem.unpenalized.polished(block, problem.predictor(coefficients))])

    def _rows(self, B: Any) -> tuple[FloatArray, bool]:
        """All rows of the coefficients, and whether rows that are not active had to be set to zero."""
        d, q = self._problem.n_rows, self._problem.samples.n_tasks
        matrix = finite_matrix("B", B, remedy=_DIVERGED)
        active = self.active
        if matrix.shape[1] != q or matrix.shape[0] not in (d, len(active)):
            raise ValueError(
                f"B must have shape ({d}, {q}) for all rows or ({len(active)}, {q}) for the active ones, "
                f"got {np.shape(B)}."
            )
        rows = np.zeros((d, q))
        rows[active] = matrix[active] if len(matrix) == d else matrix
        return rows, bool(np.count_nonzero(rows) < np.count_nonzero(matrix))

    def _intercept(self, intercept: Any) -> FloatArray | None:
        if intercept is None:
            return None
        if not self._problem.fit_intercept:
            raise ValueError("intercept was given but fit_intercept is False; set fit_intercept=True.")
        return finite_vector("intercept", intercept, self._problem.samples.n_tasks, remedy=_DIVERGED)

    @cached_property
    def _counts(self) -> BoolArray | None:
        """Which of the samples given have a target and a weight; None if X knows its targets."""
        Y, sample_weight = self._given
        if Y is None:
            return None
        counts = ~np.isnan(np.asarray(Y, dtype=np.float64).reshape(len(Y), -1))
        if sample_weight is not None:
            counts = counts & (np.asarray(sample_weight).reshape(len(counts), -1) > 0.0)
        return np.asarray(counts.any(axis=1))

    def _checked_predictor(self, Z: Any) -> FloatArray:
        """The predictor of the samples that the problem has; those that count for nothing it has not."""
        matrix = finite_matrix("Z", Z, remedy=_DIVERGED)
        counts = self._counts
        expected = (self._problem.design.n_samples if counts is None else len(counts), self._problem.samples.n_tasks)
        if matrix.shape != expected:
            raise ValueError(f"Z must have shape {expected} (n_samples, n_tasks), got {np.shape(Z)}.")
        return matrix if counts is None else matrix[counts]
