"""What a fit says of its solutions, compared with the same numbers from the data."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np

from .._kernels import (
    CLUSTER_RTOL,
    CONSTANT_RTOL,
    EPS,
    cluster_labels,
    exceeds_rounding,
    owl_gauge,
    owl_value,
    unit_norms,
)
from .._typing import FloatArray
from ..compression import is_compressible
from ..designs import as_design, column_deviations
from ..model import Model
from ..model_selection import Candidate, mean_squared_error
from ..problem import Certificate, Problem
from ..solvers import WorkingSet

#: Relative difference of two computations of the same number that does not depend on a solve.
RTOL = 1e-9
# Rounding errors of coefficients, in units of their precision, that change what is proved.
_ROUNDINGS = 4.0
# Bounds on the rounding of Gram matrices are so much larger than that is, where columns are nearly collinear.
_GRAM_CAUTION = 100.0
# Accuracy of a dual bound relative to the gap that it is to confirm.
_SHARPER = 0.1
# Relative difference of two computations of a gap by the same steps.
_GAP_RTOL = 1e-3
#: Relative difference of two computations of a tolerance, from the loss of the null model.
GOAL_RTOL = 1e-6


@dataclass(frozen=True)
class Finding:
    """One thing that was checked, in words."""

    holds: bool
    text: str


@dataclass(frozen=True, eq=False)
class Claim:
    """A number or an array of the fit, and the same from the data.

    Attributes
    ----------
    name : str
        What it is called in the fit.
    claimed, found : number, str or array-like
        As the fit says, and from the data.
    allowance : float or ndarray, default=0.0
        Difference that rounding, or the accuracy that was asked for, allows.
    """

    name: str
    claimed: Any
    found: Any
    allowance: Any = 0.0

    def complaint(self) -> str | None:
        """How the two differ, or None where they agree."""
        claimed, found = np.asarray(self.claimed), np.asarray(self.found)
        if claimed.shape != found.shape:
            return f"{self.name} has shape {claimed.shape}, but {found.shape} from the data"
        if found.dtype.kind in "biuf":
            if claimed.dtype.kind not in "biuf":
                return f"{self.name} is {self.claimed!r}, which is not a number"
            claimed, found = claimed.astype(np.float64), found.astype(np.float64)
            with np.errstate(all="ignore"):
                agree = np.abs(claimed - found) <= self.allowance
            agree |= (claimed == found) | (np.isnan(claimed) & np.isnan(found))
        else:
            agree = claimed == found
        if np.all(agree):
            return None
        wrong = np.argwhere(~np.atleast_1d(agree))
        at = tuple(wrong[0]) if claimed.ndim else ()
        place = f"[{', '.join(map(str, at))}]" if at else ""
        more = f" ({len(wrong)} entries differ)" if len(wrong) > 1 else ""
        return f"{self.name}{place} is {_shown(claimed[at])}, but {_shown(found[at])} from the data{more}"


def findings(claims: Iterable[Claim], what: str = "as computed again") -> list[Finding]:
    """A finding for each claim that is wrong, and one for all others."""
    checked = [(claim.name, claim.complaint()) for claim in claims]
    wrong = [Finding(False, text) for _, text in checked if text is not None]
    right = dict.fromkeys(name.partition(".")[0] for name, text in checked if text is None)
    return [*wrong, *([Finding(True, f"{what}: {', '.join(right)}")] if right else [])]


def _shown(value: Any) -> str:
    return f"{value:.10g}" if isinstance(value, Real) else repr(value.item() if hasattr(value, "item") else value)


def real_number(value: Any) -> float:
    """A number as a float; NaN for anything else that a changed file may hold."""
    return float(value) if isinstance(value, Real) else np.nan


class ObjectiveOfData:
    """The documented objective, term by term, from the data as they were given.

    Parameters
    ----------
    estimator : GroupOWLBase
        Its ``standardize`` counts.
    data : FitData
        The data of the fit.
    model : Model
        What the parameters ask for on these data.
    """

    def __init__(self, estimator: Any, data: Any, model: Model) -> None:
        self.data = data
        self.model = model
        self.penalised = np.delete(np.arange(data.n_features), model.unpenalized)
        if data.is_summarised:
            self.mean = data.X.x_mean
            deviation = np.sqrt(np.diagonal(data.X.gram) / data.X.total_weight)
        else:
            loss = model.problem.loss
            adopted = as_design(data.X).adopt(data.Y, data.sample_weight, loss.check_targets, 1.0)
            self.design, self.Y, self.w = adopted
            self.mean = self.design.column_means(self.w)
            deviation = column_deviations(self.design, self.w, self.mean)
        is_scaled = exceeds_rounding(deviation, self.mean) & bool(estimator.standardize)
        self.scale = np.where(is_scaled, deviation, 1.0)[self.penalised]

    def loss(self, B: FloatArray, intercept: FloatArray) -> float:
        """Mean loss of the samples."""
        if self.data.is_summarised:
            error = mean_squared_error(self.data.X, Candidate.of(B, intercept))
            return 0.5 * self.data.n_targets * error
        Z = self.design.matmul(B, intercept)
        return float(self.design.reduce(self.model.problem.loss.value, Z, self.Y, self.w))

    def penalty(self, alpha: float, B: FloatArray) -> float:
        """The Group OWL norm, in the scale that is penalised."""
        return alpha * owl_value(unit_norms(B[self.penalised]) * self.scale, self.model.weights)


class Solution:
    """Coefficients at one alpha, on the scale of the input, and what the data say of them.

    Parameters
    ----------
    terms : ObjectiveOfData
        The data.
    alpha : float
        Strength of the penalty.
    B, intercept : ndarray
        The coefficients; finite.
    dtype : dtype
        Precision that they were rounded to.
    """

    def __init__(self, terms: ObjectiveOfData, alpha: float, B: FloatArray, intercept: FloatArray, dtype: Any) -> None:
        self.model = terms.model
        self.alpha = alpha
        offset = np.abs(terms.mean) @ np.abs(B)  # of the columns, which the unpenalised ones have no other norm for
        self.shift = float(np.linalg.norm(intercept) + np.linalg.norm(offset))
        self.problem: Problem = self.model.problem.with_lam(alpha * self.model.sequence_weights)
        self.coefficients = self.problem.from_input(B, intercept)
        self.certificate: Certificate = self.problem.certify(self.coefficients)
        self.lower = self.certificate.primal - self.certificate.gap  # of the minimum, whatever the coefficients
        self.dtype = dtype
        self.unit = _ROUNDINGS * float(np.finfo(dtype).eps)
        self.loss = terms.loss(B, intercept)
        value = self.loss + terms.penalty(alpha, B)
        self.objective = value if np.isfinite(value) else np.inf

    @cached_property
    def allowance(self) -> float:
        """What rounding changes in objective and dual value.

        Coefficients are rounded to their precision, targets that vary by no more than rounding count as constant, and
        the Gram matrix that may have stood for the data has errors of its own.
        """
        problem, residual = self.problem, self.certificate.residual
        if residual is None:  # nothing is known of coefficients that overflow
            return 0.0
        moved = self.unit * (residual.reach + self.shift) + self._taken_as_constant()
        # The loss changes with the predictor as fast as the norm of its gradient says, and a little more by curvature.
        penalty = self.unit * problem.penalty_value(self.coefficients)
        curvature = problem.loss.curvature
        slope = min(residual.norm, np.sqrt(2.0 * curvature * self.model.null_loss))  # of a fit it is not larger
        cancelling = self.unit * residual.cancelling
        products = 2.0 * problem.product_error * residual.reach**2  # where statistics stand for the data
        public = problem.published(self.coefficients, self.certificate, self.dtype)
        rounded = abs(public.excess) + public.rounding
        loss = moved * (slope + curvature * moved) + cancelling + products + self._gram_rounding
        return float(penalty + loss + rounded)

    def _taken_as_constant(self) -> float:
        """Size of targets that vary by no more than rounding of their means: the problem has zeros for them."""
        targets = self.problem.targets
        present = self.problem.design.reduce(_squares, targets.Y) > 0.0
        return CONSTANT_RTOL * float(np.linalg.norm(np.where(present, 0.0, targets.center)))

    @cached_property
    def _gram_rounding(self) -> float:
        """What rounding changes in an objective that was computed from the Gram matrix of the centered columns."""
        problem = self.problem
        if not is_compressible(problem):
            return 0.0
        size = problem.targets.norm + float(problem.norms @ unit_norms(self.coefficients[: problem.n_rows]))
        return 4.0 * (problem.n_rows + 8) * EPS * size * size

    @property
    def rounding(self) -> float:
        """The most that a fit can have added to the difference of objective and dual value for rounding errors."""
        return 4.0 * self.certificate.rounding + self.allowance + _GRAM_CAUTION * self._gram_rounding

    def gap(self, stated: Any, again: Callable[[], Any]) -> tuple[float, float]:
        """The gap that a fit can have stated, as near to what it has as that may be, and what may be between them.

        The dual point of the coefficients themselves proves one gap. A fit may have had a better one: then the same
        solve by the same steps, ``again``, has it too. If those steps differ, on another machine or with data in
        another form, anything is right that a solve of its own confirms.
        """
        claimed, allowance = real_number(stated.gap), self.allowance
        own = max(self.objective - self.lower, 0.0)
        if abs(claimed - own) <= _GAP_RTOL * own + allowance:
            return own, _GAP_RTOL * own + allowance
        if claimed < 0.0:
            return own, 0.0
        other = again()
        if other.n_iter == stated.n_iter and abs(other.primal - real_number(stated.primal)) <= allowance:
            return other.gap, _GAP_RTOL * other.gap + allowance
        largest = max(own, other.gap)
        if not claimed < largest:
            return largest, _GAP_RTOL * largest + self.rounding
        proved = self.objective - max(self.lower, other.primal - other.gap)
        if proved > claimed + allowance:
            proved = min(proved, self.objective - self.sharper_bound(_SHARPER * claimed))
        return max(proved, claimed), allowance

    def sharper_bound(self, goal: float, max_iter: int = 10_000) -> float:
        """A lower bound on the minimum from a solve of its own, without screening, that starts at the coefficients.

        The dual point of good coefficients may be worse than theirs: the fit may have proved more with another one.
        """
        tol = max(goal / self.model.null_loss, EPS) if self.model.null_loss > 0.0 else EPS
        start = self.problem.loss.canonical(self.coefficients)
        sequence = self.model.sequence(WorkingSet(), tol=tol, start=start)
        result = sequence.solve(self.model.sequence_weights, self.alpha, rule=None, max_iter=max_iter)
        return result.primal - result.gap

    def status(self, stated: Any, tol: float) -> str:
        """The status that the stated gap allows."""
        goal = tol * self.model.null_loss
        gap = real_number(stated.gap)
        if stated.status == "converged":  # which a null model without loss counts as
            return "converged" if gap <= goal * (1.0 + GOAL_RTOL) or goal == 0.0 else "not converged"
        known = stated.status in ("max_iter", "callback", "stalled", "precision")
        return str(stated.status) if known and not gap < goal * (1.0 - GOAL_RTOL) else "converged"


def cluster_numbers(model: Model, B: FloatArray, stated: Any) -> Any:
    """Numbers of the clusters of coefficients; where rounding decides what is equal, as they are stated."""
    norms = unit_norms(model.problem.from_input(B.astype(np.float64), None)[: model.problem.n_rows])
    if B.dtype != np.float64 and _could_be_clusters(norms, np.asarray(stated), 8.0 * float(np.finfo(B.dtype).eps)):
        return stated
    for change in (1e-5, -1e-5):
        labels = cluster_labels(norms, CLUSTER_RTOL * (1.0 + change))
        if np.array_equal(labels, stated):
            return labels
    return cluster_labels(norms)


def _could_be_clusters(norms: FloatArray, labels: Any, rtol: float) -> bool:
    """Whether labels are those of falling norms which are equal within a cluster, up to a rounding of the norms."""
    if labels.shape != norms.shape or labels.dtype.kind not in "iu" or not np.array_equal(labels > 0, norms > 0.0):
        return False
    clusters = [norms[labels == number] for number in range(1, int(labels.max(initial=0)) + 1)]
    if any(len(members) == 0 for members in clusters):
        return False
    largest = np.array([members.max() for members in clusters])
    smallest = np.array([members.min() for members in clusters])
    are_equal = np.all(largest <= (1.0 + rtol) * smallest)
    return bool(are_equal and np.all(largest[1:] <= (1.0 + rtol) * smallest[:-1]))


def alpha_allowance(model: Model, alpha: float) -> float:
    """Difference of two computations of an alpha that may be a share of the smallest one that selects nothing."""
    problem = model.problem
    rounding = 16 * EPS * np.sqrt(problem.design.n_samples) * model.null_residual.norm * problem.rounding_norms
    return RTOL * abs(alpha) + owl_gauge(rounding, model.sequence_weights)


def _squares(Y: FloatArray) -> FloatArray:
    return np.einsum("ik,ik->k", Y, Y)
