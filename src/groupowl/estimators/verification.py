"""A fit checked from scratch: from the data and the coefficients, not from what the fit stored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .._kernels import exceeds_rounding, nonzero_rows, owl_value, unit_norms
from .._text import printable
from .._typing import FloatArray
from ..designs import as_design
from ..model import Model
from ..problem import Certificate, Problem
from ..screening import extended_rule, safe_rows
from ..selection import Candidate, mean_squared_error
from ..solvers import WorkingSet

if TYPE_CHECKING:
    from .data import FitData

# Relative difference of two computations of the same alpha.
_ALPHA_RTOL = 1e-9
# Rounding errors of coefficients, in units of their precision, that change what is proved.
_ROUNDINGS = 4.0
# Accuracy of the dual bound, relative to tol, where that of the coefficients themselves does not suffice.
_SHARPER = 0.1


@dataclass(frozen=True)
class Finding:
    """One thing that was checked, in words."""

    holds: bool
    text: str


@dataclass(frozen=True, repr=False)
class Verification:
    """Outcome of ``verify``: true exactly when the fit holds on the data given.

    Attributes
    ----------
    objective : float
        Objective of the fitted coefficients, from the data.
    claimed_objective : float
        The same as the fit says.
    gap : float
        Proved bound on ``objective - minimum``, from the data.
    goal : float
        Largest gap that ``tol`` allows: ``tol`` times the loss of the null model.
    kkt_residual : float
        Largest distance of a row of the gradient from the penalty's subdifferential, relative to the first weight
        ``alpha weights_1``: the length of a proximal gradient step from the coefficients, divided by its step size.
    alpha : float
        Strength of the penalty that was verified.
    n_claimed_zero, n_proved_again : int
        Features that the fit says are proved zero, and how many of them this certificate alone proves zero again.
    findings : tuple of Finding
        What was checked, with ``holds`` and ``text``.

    Examples
    --------
    >>> import groupowl as go
    >>> data = go.datasets.make_correlated_groups(60, 30, 2, n_informative=3, random_state=0)
    >>> model = go.GroupOWLRegressor(0.5).fit(data.X, data.Y)
    >>> verification = model.verify(data.X, data.Y)
    >>> bool(verification), verification.gap <= verification.goal
    (True, True)
    >>> bool(model.verify(data.X, data.Y + data.X[:, :1]))
    False
    """

    objective: float
    claimed_objective: float
    gap: float
    goal: float
    kkt_residual: float
    alpha: float
    n_claimed_zero: int
    n_proved_again: int
    findings: tuple[Finding, ...]

    def __bool__(self) -> bool:
        return all(finding.holds for finding in self.findings)

    def __repr__(self) -> str:
        verdict = "the fit holds" if self else "the fit does NOT hold on these data"
        lines = [f"Verification: {verdict}"]
        lines += [f"  [{'ok' if finding.holds else 'FAILED'}] {finding.text}" for finding in self.findings]
        lines.append(f"  KKT residual {self.kkt_residual:.3g} of the first weight")
        lines.append(f"  {self.n_proved_again} of the {self.n_claimed_zero} claimed zeros are proved again here")
        return "\n".join(lines)


def verify_fit(estimator: Any, data: FitData, model: Model) -> Verification:
    """Check a fitted estimator against the full problem of the data."""
    with np.errstate(all="ignore"):
        return _Check(estimator, data, model).verification()


class _Check:
    """The numbers of a verification, each computed once."""

    def __init__(self, estimator: Any, data: FitData, model: Model) -> None:
        self.estimator, self.data, self.model = estimator, data, model
        self.alpha = float(estimator.alpha_)
        self.problem: Problem = model.problem.with_lam(self.alpha * model.sequence_weights)
        self.coef, intercept = estimator._penalized_coefficients()
        self.B, self.intercept = estimator._inner_coefficients(self.coef, intercept)
        expected = (data.n_features, data.n_targets)
        if self.B.shape != expected or self.intercept.shape != expected[1:]:
            raise ValueError(
                f"coef_ has shape {np.shape(self.coef)} and intercept_ {np.shape(intercept)}, which do not belong to "
                f"{expected[0]} features and {expected[1]} targets. Fit again."
            )
        self.is_finite = bool(np.isfinite(self.B).all() and np.isfinite(self.intercept).all())
        self.coefficients = (
            self.problem.from_input(self.B, self.intercept) if self.is_finite else self.problem.null_coefficients()
        )
        self.goal = float(estimator.tol) * model.null_loss
        self.certificate = self.problem.certify(self.coefficients)
        self.allowance = self._rounding_allowance()

    def verification(self) -> Verification:
        """All numbers, and what they mean."""
        certificate = self.certificate
        objective = self._objective()
        lower = certificate.primal - certificate.gap  # of the minimum, whatever the coefficients
        if self.is_finite and not objective - lower <= self.goal + self.allowance:
            lower = max(lower, self._sharper_bound())
        gap = max(objective - lower, 0.0)
        claimed = self.estimator.solve_result_.screened_at >= 0
        claimed[self.estimator.unpenalized_] = False
        return Verification(
            objective=objective,
            claimed_objective=float(self.estimator.solve_result_.primal),
            gap=gap,
            goal=self.goal,
            kkt_residual=self._kkt_residual(),
            alpha=self.alpha,
            n_claimed_zero=int(claimed.sum()),
            n_proved_again=int(np.sum(claimed & self._proved_zero(certificate))),
            findings=(
                self._alpha_finding(),
                self._objective_finding(objective),
                self._gap_finding(gap),
                self._zeros_finding(claimed),
            ),
        )

    # Numbers ----------------------------------------------------------------------------------------

    def _objective(self) -> float:
        """The documented objective, term by term, from the data as they were given."""
        if not self.is_finite:
            return np.inf
        penalised = np.delete(np.arange(self.data.n_features), self.estimator.unpenalized_)
        loss, mean, deviation = self._summary_terms() if self.data.is_summarised else self._sample_terms()
        norms = unit_norms(self.B[penalised])
        if self.estimator.standardize:
            norms = norms * np.where(exceeds_rounding(deviation, mean), deviation, 1.0)[penalised]
        value = loss + self.alpha * owl_value(norms, self.model.weights)
        return value if np.isfinite(value) else np.inf

    def _sample_terms(self) -> tuple[float, FloatArray, FloatArray]:
        """Mean loss of the samples, and means and deviations of the columns."""
        data, loss = self.data, self.problem.loss
        design, Y, w = as_design(data.X).adopt(data.Y, data.sample_weight, loss.check_targets, 1.0)
        value = design.reduce(loss.value, design.matmul(self.B, self.intercept), Y, w)
        mean = design.column_means(w)
        return float(value), mean, design.column_norms(w, mean)

    def _summary_terms(self) -> tuple[float, FloatArray, FloatArray]:
        """The same from statistics."""
        known = self.data.X
        error = mean_squared_error(known, Candidate.of(self.B, self.intercept))
        return 0.5 * known.n_tasks * error, known.x_mean, np.sqrt(np.diagonal(known.gram) / known.total_weight)

    def _rounding_allowance(self) -> float:
        """What rounding the coefficients to their precision changes in objective and dual value."""
        residual = self.certificate.residual
        if residual is None:  # nothing is known of coefficients that overflow
            return 0.0
        unit = _ROUNDINGS * float(np.finfo(np.asarray(self.coef).dtype).eps)
        moved = unit * (residual.reach + float(np.linalg.norm(self.intercept)))
        # The loss changes with the predictor as fast as the norm of its gradient says, and a little more by curvature.
        penalty = unit * self.problem.penalty_value(self.coefficients)
        curvature = self.problem.loss.curvature
        slope = min(residual.norm, np.sqrt(2.0 * curvature * self.model.null_loss))  # of a fit it is not larger
        return float(penalty + moved * (slope + curvature * moved))

    def _sharper_bound(self) -> float:
        """A lower bound on the minimum from a solve of its own, without screening, that starts at the coefficients.

        The dual point of good coefficients may be worse than theirs: the fit may have proved more with another one.
        """
        sequence = self.model.sequence(
            WorkingSet(), tol=_SHARPER * self.estimator.tol, start=self.problem.loss.canonical(self.coefficients)
        )
        result = sequence.solve(
            self.model.sequence_weights, self.alpha, rule=None, max_iter=max(int(self.estimator.max_iter), 1)
        )
        return result.primal - result.gap

    def _kkt_residual(self) -> float:
        problem, B = self.problem, self.coefficients
        if not self.is_finite:
            return np.inf
        curvature = problem.lipschitz()
        if curvature == 0.0:
            return 0.0
        descent = problem.descent(problem.predictor(B))
        step = B - problem.prox(B + descent / curvature, 1.0 / curvature)
        return float(unit_norms(curvature * step).max(initial=0.0) / problem.lam[0])

    def _proved_zero(self, certificate: Certificate) -> Any:
        everything = np.arange(self.problem.n_rows)
        proved = np.zeros(len(everything), dtype=bool)
        if not np.isfinite(certificate.gap):  # nothing is
            return proved
        proved[:] = True
        proved[safe_rows(self.problem, certificate, everything, extended_rule)] = False
        return proved

    # Findings ---------------------------------------------------------------------------------------

    def _alpha_finding(self) -> Finding:
        if not hasattr(self.estimator, "alpha"):
            return Finding(True, f"alpha_ = {self.alpha:.6g}, as it was chosen; the choice is not checked")
        asked = self.model.resolve_alpha(self.estimator.alpha)
        holds = bool(abs(asked - self.alpha) <= _ALPHA_RTOL * abs(asked))
        if holds:
            return Finding(True, f"alpha_ = {self.alpha:.6g} is what the parameters ask for on these data")
        return Finding(False, f"alpha_ = {self.alpha:.6g}, but on these data the parameters ask for {asked:.6g}")

    def _objective_finding(self, objective: float) -> Finding:
        claimed = float(self.estimator.solve_result_.primal)
        holds = bool(abs(objective - claimed) <= self.goal + self.allowance)
        relation = "as the fit says" if holds else f"but the fit says {claimed:.10g}"
        return Finding(holds, f"objective {objective:.10g} from the data, {relation}")

    def _gap_finding(self, gap: float) -> Finding:
        holds = bool(gap <= self.goal + self.allowance)
        bound = f"tol * null loss = {self.goal:.3g}"
        if gap > self.goal:
            bound += f" and {self.allowance:.3g} for rounding"
        if holds:
            return Finding(True, f"duality gap {gap:.3g}, at most {bound}: nothing is better by more than this")
        return Finding(False, f"duality gap {gap:.3g}, above {bound}: these coefficients are not proved optimal")

    def _zeros_finding(self, claimed: Any) -> Finding:
        wrong = np.flatnonzero(claimed & nonzero_rows(self.B))
        if len(wrong) == 0:
            return Finding(True, f"the {int(claimed.sum())} features claimed proved zero have zero coefficients")
        labels: FloatArray = self.estimator._feature_labels()
        listed = ", ".join(printable(labels[j]) for j in wrong[:5])
        return Finding(False, f"{len(wrong)} features claimed proved zero have coefficients that are not: {listed}")
