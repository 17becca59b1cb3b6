"""A fit checked from scratch: all that the data decide is computed again and compared with what the fit says."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from .._kernels import EPS, nonzero_rows, unit_norms
from .._text import printable
from .._typing import FloatArray
from ..inputs import resolve_columns
from ..model import Model
from ..relaxation import relaxed_coefficients
from ..screening import extended_rule, safe_rows
from ..solvers import SolveResult
from .claims import (
    RTOL,
    Claim,
    Finding,
    ObjectiveOfData,
    Solution,
    alpha_allowance,
    cluster_numbers,
    findings,
    real_number,
)

if TYPE_CHECKING:
    from .fit_data import FitData

# Accuracy of the dual bound, relative to tol, where that of the coefficients themselves does not suffice.
_SHARPER = 0.1
# Relative accuracy of coefficients without penalty: least squares, and Newton's method with its ridge.
_RELAXED_RTOL = {"squared": 1e-6, "multinomial": 1e-4}


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
    claimed_gap : float
        The same as the fit says, ``dual_gap_``.
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
    >>> model.dual_gap_ = 0.0
    >>> bool(model.verify(data.X, data.Y))
    False
    """

    objective: float
    claimed_objective: float
    gap: float
    claimed_gap: float
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


class FitCheck:
    """The numbers of a verification, each computed once.

    Parameters
    ----------
    estimator : GroupOWLBase
        The fitted estimator, whose claims are checked.
    data : FitData
        The data of the fit.
    model : Model
        What the parameters ask for on these data.
    """

    def __init__(self, estimator: Any, data: FitData, model: Model) -> None:
        self.estimator = estimator
        self.data = data
        self.model = model
        self.stated: SolveResult = estimator.solve_result_
        self.alpha = real_number(estimator.alpha_)
        if not 0.0 < self.alpha < np.inf:
            raise ValueError(f"alpha_ is {estimator.alpha_!r}, which is not a positive number. Fit again.")
        coef, intercept = estimator._penalized_coefficients()
        self.B, self.intercept = estimator._inner_coefficients(coef, intercept)
        expected = (data.n_features, data.n_targets)
        if self.B.shape != expected or self.intercept.shape != expected[1:]:
            raise ValueError(
                f"coef_ has shape {np.shape(coef)} and intercept_ {np.shape(intercept)}, which do not belong to "
                f"{expected[0]} features and {expected[1]} targets. Fit again."
            )
        shapes = [np.shape(value) for value in (self.stated.B, self.stated.intercept, self.stated.screened_at)]
        if shapes != [expected, expected[1:], expected[:1]]:
            raise ValueError(
                f"solve_result_ has B, intercept and screened_at of the shapes {shapes}, which do not belong to "
                f"{expected[0]} features and {expected[1]} targets. Fit again."
            )
        self.dtype = np.asarray(coef).dtype
        self.is_finite = bool(np.isfinite(self.B).all() and np.isfinite(self.intercept).all())
        self.goal = float(estimator.tol) * model.null_loss
        self.terms = ObjectiveOfData(estimator, data, model)
        if self.is_finite:
            B, offset = self.B, self.intercept
        else:  # nothing is known of them
            B, offset = np.zeros(expected), np.zeros(expected[1])
        self.solution = Solution(self.terms, self.alpha, B, offset, dtype=self.dtype)
        self.objective = self.solution.objective if self.is_finite else np.inf

    def verification(self, more: tuple[Finding, ...] = ()) -> Verification:
        """All numbers, and what they mean; ``more`` was found elsewhere."""
        lower, allowance = self.solution.lower, self.solution.allowance
        if self.is_finite and not self.objective - lower <= self.goal + allowance:
            bound = self.solution.sharper_bound(_SHARPER * self.goal, max(int(self.estimator.max_iter), 1))
            lower = max(lower, bound)
            if not self.objective - lower <= self.goal + allowance:  # the fit's own steps may know a better dual point
                lower = max(lower, self._solved_again.primal - self._solved_again.gap)
        gap = max(self.objective - lower, 0.0)
        claimed = self.stated.screened_at >= 0
        claimed[self.model.unpenalized] = False
        return Verification(
            objective=self.objective,
            claimed_objective=real_number(self.stated.primal),
            gap=gap,
            claimed_gap=real_number(self.estimator.dual_gap_),
            goal=self.goal,
            kkt_residual=self._kkt_residual(),
            alpha=self.alpha,
            n_claimed_zero=int(claimed.sum()),
            n_proved_again=int(np.sum(claimed & self._proved_zero())),
            findings=(
                self._alpha_finding(),
                self._objective_finding(),
                self._gap_finding(gap),
                self._zeros_finding(claimed),
                *findings(self._claims()),
                *more,
            ),
        )

    # Numbers ----------------------------------------------------------------------------------------

    @cached_property
    def _solved_again(self) -> SolveResult:
        """The same solve once more, by the settings of the fit."""
        solve = getattr(self.estimator, "_final_fit", self.estimator._solve)
        result: SolveResult = solve(self.model, self.alpha, self.estimator._settings())
        return result

    def _kkt_residual(self) -> float:
        problem, B = self.solution.problem, self.solution.coefficients
        if not self.is_finite:
            return np.inf
        curvature = problem.lipschitz()
        if curvature == 0.0:
            return 0.0
        descent = problem.descent(problem.predictor(B))
        step = B - problem.prox(B + descent / curvature, 1.0 / curvature)
        return float(unit_norms(curvature * step).max(initial=0.0) / problem.lam[0])

    def _proved_zero(self) -> Any:
        problem, certificate = self.solution.problem, self.solution.certificate
        everything = np.arange(problem.n_rows)
        proved = np.zeros(len(everything), dtype=bool)
        if not (self.is_finite and np.isfinite(certificate.gap)):  # nothing is
            return proved
        proved[:] = True
        proved[safe_rows(problem, certificate, everything, extended_rule)] = False
        return proved

    # Findings ---------------------------------------------------------------------------------------

    def _alpha_finding(self) -> Finding:
        if not hasattr(self.estimator, "alpha"):
            return Finding(True, f"alpha_ = {self.alpha:.6g}, as it was chosen")
        asked = self.model.resolve_alpha(self.estimator.alpha)
        allowance = alpha_allowance(self.model, asked) if isinstance(self.estimator.alpha, str) else RTOL * asked
        if abs(asked - self.alpha) <= allowance:
            return Finding(True, f"alpha_ = {self.alpha:.6g} is what the parameters ask for on these data")
        return Finding(False, f"alpha_ = {self.alpha:.6g}, but on these data the parameters ask for {asked:.6g}")

    def _objective_finding(self) -> Finding:
        claimed = real_number(self.stated.primal)
        distance = abs(self.objective - claimed)
        holds = bool(distance <= self.solution.allowance + self.solution.certificate.rounding)
        if not holds and distance <= real_number(self.stated.gap):
            # Before coefficients are rounded, or from a Gram matrix, the objective is another one, as the gap allows.
            holds = bool(abs(self._solved_again.primal - claimed) <= RTOL * abs(claimed))
        relation = "as the fit says" if holds else f"but the fit says {claimed:.10g}"
        return Finding(holds, f"objective {self.objective:.10g} from the data, {relation}")

    def _gap_finding(self, gap: float) -> Finding:
        allowance = self.solution.allowance + self.solution.certificate.rounding
        holds = bool(gap <= self.goal + allowance)
        bound = f"tol * null loss = {self.goal:.3g}"
        if gap > self.goal:
            bound += f" and {allowance:.3g} for rounding"
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

    # What else the fit says ---------------------------------------------------------------------------

    def _claims(self) -> list[Claim]:
        fit, stated, names = self.estimator, self.stated, getattr(self.estimator, "feature_names_in_", None)
        free = resolve_columns("unpenalized", fit.unpenalized, self.data.n_features, names)
        claims = [
            Claim("weights_", fit.weights_, self.model.weights, RTOL * self.model.weights),
            Claim("unpenalized_", fit.unpenalized_, free),
            *self._coefficient_claims(),
            Claim("n_iter_", fit.n_iter_, stated.n_iter),
            Claim("solve_result_.active", stated.active, np.flatnonzero(stated.screened_at < 0)),
            Claim("screened_fraction_", fit.screened_fraction_, 1.0 - len(stated.active) / self.data.n_features),
        ]
        if self.is_finite:
            claims += self._solution_claims()
        return claims

    def _solution_claims(self) -> list[Claim]:
        fit, stated, solution = self.estimator, self.stated, self.solution
        gap = real_number(fit.dual_gap_)
        clusters = cluster_numbers(self.model, stated.B, fit.clusters_)  # ties need all digits
        stated_gap = solution.gap(replace(stated, gap=fit.dual_gap_), lambda: self._solved_again)
        return [
            Claim("clusters_", fit.clusters_, clusters),
            Claim("solve_result_.clusters", stated.clusters, clusters),
            Claim("dual_gap_", fit.dual_gap_, *stated_gap),
            Claim("solve_result_.gap", stated.gap, gap),
            Claim("solve_result_.dual", stated.dual, self._nearest_dual(gap), solution.rounding),
            Claim("status", stated.status, solution.status(stated, float(fit.tol))),
        ]

    def _nearest_dual(self, gap: float) -> float:
        """The dual value nearest to the stated one that gap and objective allow: gaps contain bounds on rounding."""
        primal, dual = real_number(self.stated.primal), real_number(self.stated.dual)
        return min(max(dual, primal - gap), primal) if np.isfinite(dual) else primal - gap

    def _coefficient_claims(self) -> list[Claim]:
        """The penalised coefficients are those of the solve; a relaxed fit has others, without penalty, beside them."""
        fit, stated = self.estimator, self.stated
        is_relaxed = "penalized_coef_" in vars(fit)
        claims = self._compared("penalized_" if is_relaxed else "", stated.B, stated.intercept, 4.0 * EPS)
        if bool(fit.relaxed) != is_relaxed:
            claims.append(Claim("relaxed", bool(fit.relaxed), is_relaxed))
        elif is_relaxed:
            B, intercept, _ = relaxed_coefficients(self.model, stated.support, judge=False)
            claims += self._compared("", B, intercept, _RELAXED_RTOL[self.model.problem.loss.name])
        return claims

    def _compared(self, prefix: str, B: FloatArray, intercept: FloatArray, rtol: float) -> list[Claim]:
        """Coefficients and intercept as users see them, beside others; what is zero must be so."""
        found, offset = self.estimator._public_coefficients(B, intercept, self.data)
        names = f"{prefix}coef_", f"{prefix}intercept_"
        coef, stated = (getattr(self.estimator, name) for name in names)
        unit = rtol + 4.0 * float(np.finfo(self.dtype).eps)
        shift = np.abs(self.terms.mean) @ np.abs(B)  # the intercept takes it up
        reach = np.abs(intercept).max() + np.abs(self.model.problem.targets.center).max() + shift.max()
        sizes = np.abs(B).max() * (np.atleast_2d(found) != 0.0)
        return [
            Claim(names[0], np.atleast_2d(coef), np.atleast_2d(found), unit * sizes),
            Claim(names[1], np.atleast_1d(stated), np.atleast_1d(offset), unit * reach),
        ]
