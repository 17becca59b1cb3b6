"""A fit checked from scratch: all that the data decide is computed again and compared with what the fit says."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from .._text import printable
from .._typing import FloatArray
from ..model import Model, relaxed_coefficients
from ..norm import kernels
from ..norm.kernels import EPS, row_norms
from ..problem import Residual, intercept_excess, published
from ..screening import SAFE, safe_rows
from ..solvers import SolveResult, WorkingSet, check_settings

#: Relative difference of two computations of the same number that does not depend on a solve.
RTOL = 1e-9
# Of scales, which are for people: deviations from statistics know fewer digits than those from samples.
_SCALE_RTOL = 1e-6
#: Relative difference of two computations of a tolerance, from the loss of the null model.
GOAL_RTOL = 1e-6
# Rounding errors of coefficients, in units of their precision, that change what is proved.
_ROUNDINGS = 4.0
# The same of sums of products of centered columns, with a factor for columns that are nearly collinear.
_GRAM_ROUNDINGS = 400.0
# Accuracy of a dual bound relative to the gap that it is to confirm.
_SHARPER = 0.1
# Relative difference of two computations of a gap by the same steps.
_GAP_RTOL = 1e-3
# Characters of a parameter's value that are shown.
_MOST_SHOWN = 60
# Relative accuracy of coefficients without penalty: least squares, and Newton's method with its ridge.
_LEAST_SQUARES_RTOL = 1e-6
_NEWTON_RTOL = 1e-4


# Names of attributes, as people say them.
_WORDS = {
    "alpha_": "alpha",
    "alpha_max": "smallest alpha that selects nothing",
    "alphas_": "alphas",
    "best_index_": "position of the chosen alpha",
    "best_score_": "best score",
    "clusters_": "clusters",
    "coef_": "coefficients",
    "criterion_path_": "values of the criterion",
    "deviance_ratio": "share of the deviance that is explained",
    "dual": "dual value",
    "dual_gap_": "duality gap",
    "dual_gaps": "duality gaps",
    "gap": "duality gap",
    "intercept_": "intercept",
    "mean_score_path_": "mean scores",
    "n_alphas": "number of alphas",
    "n_iter_": "iterations",
    "n_selected": "number of selected features",
    "null_loss": "loss of the null model",
    "path_": "path",
    "penalized_coef_": "coefficients with penalty",
    "penalized_intercept_": "intercept with penalty",
    "primal": "objective",
    "relaxed": "relaxed or not",
    "score_path_": "held-out scores",
    "screened_fraction_": "share of features proved zero",
    "search_results_": "scores of the search",
    "selection_frequency_": "selection frequencies",
    "solve_result_": "result of the solve",
    "std_error_path_": "standard errors of the scores",
    "unpenalized_": "unpenalized features",
    "weights_": "weights",
}
#: Parameters of the way to an answer, which do not say what the answer is; a callback need not be kept with a fit.
OF_THE_WAY = frozenset(
    {"callback", "max_iter", "n_jobs", "random_state", "resume", "screening", "verbose", "warm_start"}
)


@dataclass(frozen=True)
class Finding:
    """One thing that was checked, in words; or one that was not, which holds as far as is known."""

    holds: bool
    text: str
    is_checked: bool = True

    @property
    def mark(self) -> str:
        """What came of it, in brackets."""
        return "[not checked]" if not self.is_checked else "[ok]" if self.holds else "[FAILED]"


@dataclass(frozen=True, repr=False)
class Verification:
    """Result of ``verify``: true if the fit holds on the given data, false if a check failed.

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
        Largest gap that ``tol`` allows: ``tol`` times the loss of the null model less the smallest possible one.
    kkt_residual : float
        Largest distance of a row of the gradient from the penalty's subdifferential, relative to the first weight
        ``alpha weights_1``: the length of a proximal gradient step from the coefficients, divided by its step size.
    alpha : float
        Strength of the penalty that was verified.
    n_claimed_zero, n_proved_again : int
        Features that the fit says are proved zero, and how many of them this certificate alone proves zero again.
    findings : tuple of Finding
        What was checked, with ``holds`` and ``text``; where ``is_checked`` is false, what was not.
    changed_parameters : str
        Parameters that have other values than in the fit, in words; empty where there are none.

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
    changed_parameters: str = ""

    def __bool__(self) -> bool:
        return all(finding.holds for finding in self.findings)

    def __repr__(self) -> str:
        verdict = "the fit holds" if self else "the fit does NOT hold on these data"
        lines = [f"Verification: {verdict}"]
        if self.changed_parameters and not self:
            remedy = "Set them back, or fit again: all that follows is about the parameters as they are now."
            lines = ["Verification: the fit does NOT hold with its parameters, which were changed after it"]
            lines += [f"  {self.changed_parameters}. {remedy}"]
        lines += [f"  {finding.mark} {finding.text}" for finding in self.findings]
        lines.append(f"  KKT residual {self.kkt_residual:.3g} of the first weight")
        lines.append(f"  {self.n_proved_again} of the {self.n_claimed_zero} claimed zeros are proved again here")
        return "\n".join(lines)


class Claim(NamedTuple):
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

    @property
    def words(self) -> str:
        """What the name means, for people who have not read the reference."""
        head, _, tail = self.name.partition(".")
        head = head.partition("[")[0] if head.partition("[")[0] in _WORDS else head
        parts = [_WORDS.get(head, head), _WORDS.get(tail, _WORDS.get(f"{tail}_", tail))]
        return ", ".join(filter(None, parts))

    def complaint(self) -> str | None:
        """How the two differ, or None where they agree."""
        claimed, found = np.asarray(self.claimed), np.asarray(self.found)
        if claimed.shape != found.shape:
            return f"{self._what()}: the fit says an array of shape {claimed.shape}, the data give {found.shape}"
        if found.dtype.kind in "biuf":
            if claimed.dtype.kind not in "biuf":
                return f"{self._what()}: the fit says {self.claimed!r}, which is not a number"
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
        values = [np.asarray(value[at]).item() for value in (claimed, found)]
        shown = [f"{value:.10g}" if isinstance(value, Real) else repr(value) for value in values]
        return f"{self._what(place)}: the fit says {shown[0]}, the data give {shown[1]}{more}"

    def _what(self, place: str = "") -> str:
        """The words, and the name for those who want to look at it."""
        name = f"{self.name}{place}"
        return name if self.words == self.name else f"{self.words} ({name})"


def scale_claim(name: str, claimed: Any, model: Model, features: Any = slice(None)) -> Claim:
    """The scale that the penalty sees, of all features or of some."""
    scale = model.problem.design.penalty_scale
    found = (np.ones(model.problem.n_rows) if scale is None else scale)[features]
    return Claim(name, claimed, found, _SCALE_RTOL * found)


def findings(claims: Iterable[Claim], what: str = "as computed again") -> list[Finding]:
    """A finding for each claim that is wrong, and one for all others."""
    checked = [(claim.words, claim.complaint()) for claim in claims]
    wrong = [Finding(False, text) for _, text in checked if text is not None]
    right = {words.partition(", ")[0] for words, text in checked if text is None}
    return [*wrong, *([Finding(True, f"{what}: {', '.join(sorted(right))}")] if right else [])]


def changed_parameters(estimator: Any) -> str:
    """Parameters that were set to something else since the fit, in words; those of a loaded model are not known."""
    then = getattr(estimator, "_parameters_of_fit", {})
    changes = []
    for name, value in estimator.get_params(deep=False).items():
        if name in then and not _are_same(then[name], value):
            changes.append(f"{name} is {_shown(value)} and was {_shown(then[name])} in the fit")
    return ", ".join(changes)


def _are_same(left: Any, right: Any) -> bool:
    if left is right:
        return True
    if isinstance(left, np.ndarray) or isinstance(right, np.ndarray):
        return np.array_equal(left, right)
    return bool(type(left) is type(right) and left == right)


def _shown(value: Any) -> str:
    text = printable(repr(value))
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}..."


def real_number(value: Any) -> float:
    """A number as a float; NaN for anything else that a changed file may hold."""
    return float(value) if isinstance(value, Real) else np.nan


class SolutionCheck:
    """Coefficients at one alpha, on the scale of the input and finite, and what the data say of them.

    ``dtype`` is the precision that they were rounded to; ``residual`` is what they leave unexplained on the data, where
    that is known already.
    """

    def __init__(
        self,
        model: Model,
        alpha: float,
        B: FloatArray,
        intercept: FloatArray,
        dtype: Any,
        residual: Residual | None = None,
    ) -> None:
        self.model = model
        self.alpha = alpha
        self.dtype = dtype
        self.problem = problem = model.problem.with_lam(alpha * model.sequence_weights)
        self.coefficients = problem.from_input(B, intercept)
        self.certificate = problem.certify(self.coefficients, residual=residual)
        self.lower = self.certificate.primal - self.certificate.gap  # of the minimum, whatever the coefficients
        excess, self._excess_rounding = intercept_excess(problem, self.coefficients, B, intercept)
        value = self.certificate.primal + excess
        self.objective = value if np.isfinite(value) else np.inf
        self.loss = self.objective - problem.penalty_value(self.coefficients)
        self.shift = float(np.linalg.norm(intercept) + np.linalg.norm(offsets(model, B.T)))

    def clusters(self, B: FloatArray, stated: Any) -> Any:
        """Cluster numbers of coefficients; where rounding decides which norms are equal, the stated ones."""
        problem = self.problem
        rows, labels = problem.from_input(B.astype(np.float64), None)[: problem.n_rows], np.asarray(stated)
        norms = np.where(kernels.nonzero_rows(B), problem.penalty.spread(problem.penalty.norms(rows)), 0.0)
        is_like = labels.shape == norms.shape and labels.dtype.kind in "iu"
        if B.dtype != np.float64 and is_like and np.array_equal(labels > 0, norms > 0.0):
            # Norms that fall from cluster to cluster and are equal within, up to their rounding.
            members = [norms[labels == number] for number in range(1, int(labels.max(initial=0)) + 1)]
            largest = np.array([part.max(initial=0.0) for part in members])
            smallest = np.array([part.min(initial=np.inf) for part in members])
            smallest *= 1.0 + 8.0 * float(np.finfo(B.dtype).eps)
            if all(map(len, members)) and np.all(largest <= smallest) and np.all(largest[1:] <= smallest[:-1]):
                return stated
        for change in (1e-5, -1e-5):
            found = kernels.cluster_labels(norms, kernels.CLUSTER_RTOL * (1.0 + change))
            if np.array_equal(found, stated):
                return found
        return kernels.cluster_labels(norms)

    @cached_property
    def allowance(self) -> float:
        """Bound on the rounding errors of objective and dual value.

        Coefficients are rounded to their precision, and the Gram matrix that may have stood for the data has errors of
        its own.
        """
        problem, residual = self.problem, self.certificate.residual
        if residual is None:  # nothing is known of coefficients that overflow
            return 0.0
        # Near a solution the loss changes with the square of what rounding moves; certificates know the rest.
        moved = _ROUNDINGS * float(np.finfo(self.dtype).eps) * (residual.reach + self.shift)
        public = published(problem, self.coefficients, self.certificate, self.dtype)
        rounded = (
            abs(public.excess)
            + public.rounding
            + self._excess_rounding
            + problem.curvature_at(self.coefficients) * moved**2
        )
        if problem.is_compressible or problem.has_moments_of_patterns:
            size = problem.samples.norm + float(problem.norms @ row_norms(self.coefficients[: problem.n_rows]))
            rounded += _GRAM_ROUNDINGS * (problem.n_rows + 8) * EPS * size * size
        return float(rounded + 4.0 * self.certificate.rounding)

    def room(self, stated: Any, again: Callable[[], Any]) -> float:
        """Tolerance of the comparison between the objective and the stated one.

        Where a Gram matrix stood for the data the objective is another one, as the stated gap allows: that of the same
        solve once more, ``again``.
        """
        claimed = real_number(stated.primal)
        distance = abs(self.objective - claimed)
        is_within_gap = self.allowance < distance <= real_number(stated.gap)
        if is_within_gap and abs(again().primal - claimed) <= RTOL * abs(claimed):
            return distance + self.allowance
        return self.allowance

    def gap(self, stated: Any, again: Callable[[], Any], tol: float) -> tuple[float, float]:
        """The gap that a fit can have stated, as near to what it has as that may be, and what may be between them.

        The dual point of the coefficients themselves proves one gap. A fit may have had a better one: then the same
        solve by the same steps, ``again``, has it too. If those steps differ, on another machine or with data in
        another form, anything is right that a solve of its own confirms; and so is a larger gap, which says less, up to
        the one at which a solve to this ``tol`` ends.
        """
        claimed, allowance = real_number(stated.gap), self.allowance
        own = max(self.objective - self.lower, 0.0)
        if abs(claimed - own) <= _GAP_RTOL * own + allowance:
            return own, _GAP_RTOL * own + allowance
        if not claimed >= 0.0:
            return own, 0.0
        other = again()
        largest = max(own, other.gap)
        if other.n_iter == stated.n_iter and abs(other.primal - real_number(stated.primal)) <= allowance:
            # Data that were prepared in another order of summation move the dual point, but not beyond these two.
            nearest = min(max(claimed, min(own, other.gap)), largest)
            return nearest, _GAP_RTOL * nearest + allowance
        if not claimed < largest:
            return largest, max(_GAP_RTOL * largest + allowance, self.problem.goal(tol) - largest)
        proved = self.objective - max(self.lower, other.primal - other.gap)
        if proved > claimed + allowance:
            proved = min(proved, self.objective - self.sharper_bound(_SHARPER * claimed))
        return max(proved, claimed), allowance

    def sharper_bound(self, goal: float, max_iter: int = 10_000) -> float:
        """A lower bound on the minimum from a solve of its own, without screening, that starts at the coefficients.

        The dual point of good coefficients may be worse than theirs: the fit may have proved more with another one.
        """
        scale = self.problem.loss_scale
        tol = max(goal / scale, EPS) if scale > 0.0 else EPS
        start = self.problem.loss.canonical(self.coefficients)
        settings = check_settings(WorkingSet(), "none", tol, max_iter)
        result = self.model.continuation(settings, start=start).solve(self.model.sequence_weights, self.alpha)
        return result.primal - result.gap

    def kkt_residual(self) -> float:
        """Length of a proximal gradient step, divided by its step size and by the first weight."""
        problem, B = self.problem, self.coefficients
        small = None
        if problem.design.keeps_columns and problem.is_compressible:  # each product with X would be a pass over a file
            small = problem.compressed(exact=False)
        curvature = (small or problem).lipschitz()
        if curvature == 0.0:
            return 0.0
        descent = problem.descent(problem.predictor(B))
        step = B - problem.prox(B + descent / curvature, 1.0 / curvature)
        return float(row_norms(curvature * step).max(initial=0.0) / problem.lam[0])

    def status(self, stated: Any, tol: float) -> str:
        """The status that the stated gap allows."""
        goal = self.problem.goal(tol)
        gap = real_number(stated.gap)
        if stated.status == "converged":  # which a null model without loss counts as
            return "converged" if gap <= goal * (1.0 + GOAL_RTOL) or goal == 0.0 else "not converged"
        known = stated.status in ("max_iter", "callback", "stalled", "precision")
        return str(stated.status) if known and not gap < goal * (1.0 - GOAL_RTOL) else "converged"


def alpha_allowance(model: Model, alpha: float) -> float:
    """Rounding tolerance of an alpha that is a fraction of the smallest alpha that selects nothing."""
    problem = model.problem
    rounding = 16 * EPS * np.sqrt(problem.design.n_samples) * model.null_residual.norm * problem.rounding_norms
    return RTOL * abs(alpha) + kernels.owl_gauge(problem.penalty.lengths(rounding), model.sequence_weights)


def offsets(model: Model, coef: FloatArray) -> FloatArray:
    """Contribution of the column means to the predictor of each target, in absolute values."""
    centers = model.problem.design.mean
    return np.zeros(1) if centers is None else np.abs(coef) @ np.abs(centers)


class FitCheck(SolutionCheck):
    """The coefficients of a fitted estimator, and all else that it says.

    ``model`` is what its parameters ask for on the data.
    """

    def __init__(self, estimator: Any, data: Any, model: Model) -> None:
        self.estimator = estimator
        self.data = data
        self.stated: SolveResult = estimator.solve_result_
        alpha = real_number(estimator.alpha_)
        if not 0.0 < alpha < np.inf:
            raise ValueError(f"alpha_ is {estimator.alpha_!r}, which is not a positive number. Fit again.")
        coef, intercept = estimator._penalized_coefficients()
        B, offset = estimator._inner_coefficients(coef, intercept)
        d, q = data.n_features, data.n_targets
        shapes = {"B": (d, q), "intercept": (q,), "screened_at": (d,)}
        parts = {f"solve_result_.{name}": (getattr(self.stated, name), shape) for name, shape in shapes.items()}
        for name, (value, shape) in {"coef_": (B.T, (q, d)), "intercept_": (offset, (q,)), **parts}.items():
            if np.shape(value) != shape:
                found = f"{name} has shape {np.shape(value)}"
                raise ValueError(f"{found}, which does not belong to {d} features and {q} targets. Fit again.")
        self.is_nonzero = kernels.nonzero_rows(B)
        self.is_finite = bool(np.isfinite(B).all() and np.isfinite(offset).all())
        if not self.is_finite:  # nothing is known of them
            B, offset = np.zeros((d, q)), np.zeros(q)
        super().__init__(model, alpha, B, offset, np.asarray(coef).dtype)
        self.goal = model.problem.goal(float(estimator.tol))

    def verification(self) -> Verification:
        """All numbers, and what they mean."""
        is_claimed_zero = self.stated.screened_at >= 0
        is_claimed_zero[self.model.unpenalized] = False
        objective = gap = residual = np.inf
        n_proved_again = 0
        found = [Finding(False, "coef_ and intercept_ are not finite, and nothing is known of them")]
        if self.is_finite:
            objective, gap, residual = self.objective, self._gap(), self.kkt_residual()
            found = [*self._findings(gap, is_claimed_zero), *findings(self._claims())]
            if np.isfinite(self.certificate.gap):
                penalty = self.problem.penalty
                kept = safe_rows(self.problem, self.certificate, np.arange(penalty.n_units), SAFE)
                n_proved_again = int(is_claimed_zero.sum() - is_claimed_zero[penalty.rows(kept)].sum())
        return Verification(
            objective=objective,
            claimed_objective=real_number(self.stated.primal),
            gap=gap,
            claimed_gap=real_number(self.estimator.dual_gap_),
            goal=self.goal,
            kkt_residual=residual,
            alpha=self.alpha,
            n_claimed_zero=int(is_claimed_zero.sum()),
            n_proved_again=n_proved_again,
            findings=tuple(found),
            changed_parameters=changed_parameters(self.estimator),
        )

    def _gap(self) -> float:
        """Duality gap of the coefficients, from a better dual point if their own does not reach the goal."""
        lower, reached = self.lower, self.goal + self.allowance
        if not self.objective - lower <= reached:
            lower = max(lower, self.sharper_bound(_SHARPER * self.goal, max(int(self.estimator.max_iter), 1)))
        if not self.objective - lower <= reached:  # the fit's own steps may know a better dual point
            lower = max(lower, self._solved_again.primal - self._solved_again.gap)
        return max(self.objective - lower, 0.0)

    @cached_property
    def _solved_again(self) -> SolveResult:
        """The same solve once more, by the settings of the fit."""
        solve = getattr(self.estimator, "_final_fit", self.estimator._solve)
        result: SolveResult = solve(self.model, self.alpha, self.estimator._fitting().settings)
        return result

    @property
    def _scale_in_words(self) -> str:
        """What the tolerance is relative to."""
        return "null loss" if self.model.problem.samples.floor == 0.0 else "(null loss - smallest loss)"

    def _findings(self, gap: float, is_claimed_zero: Any) -> list[Finding]:
        """Strength, objective, gap and proved zeros, in words."""
        fit, model, claimed = self.estimator, self.model, real_number(self.stated.primal)
        found = []
        if hasattr(fit, "alpha"):  # others have chosen theirs
            asked = model.resolve_alpha(fit.alpha)
            room = alpha_allowance(model, asked) if isinstance(fit.alpha, str) else RTOL * asked
            text = f"alpha_ = {self.alpha:.6g}; on these data the parameters ask for {asked:.6g}"
            found.append(Finding(abs(asked - self.alpha) <= room, text))
        room = self.allowance
        holds = bool(abs(self.objective - claimed) <= self.room(self.stated, lambda: self._solved_again))
        found.append(Finding(holds, f"objective {self.objective:.10g} from the data; the fit says {claimed:.10g}"))
        holds, bound = gap <= self.goal + room, f"tol * {self._scale_in_words} = {self.goal:.3g}"
        if gap > self.goal:
            bound += f" and {room:.3g} for rounding"
        text = f"above {bound}: these coefficients are not proved optimal"
        if holds:
            text = f"at most {bound}: nothing is better by more than this"
        found.append(Finding(holds, f"duality gap {gap:.3g}, {text}"))
        wrong = np.flatnonzero(is_claimed_zero & self.is_nonzero)
        text = f"the {int(is_claimed_zero.sum())} features claimed proved zero have zero coefficients"
        if len(wrong):
            listed = ", ".join(printable(label) for label in fit._feature_labels()[wrong[:5]])
            text = f"{len(wrong)} features claimed proved zero have coefficients that are not: {listed}"
        return [*found, Finding(len(wrong) == 0, text)]

    def _claims(self) -> list[Claim]:
        """All attributes of the fit, beside what a fit with its solve stores on these data."""
        fit, stated = self.estimator, self.stated
        gap, room = self.gap(replace(stated, gap=fit.dual_gap_), lambda: self._solved_again, float(fit.tol))
        clusters = self.clusters(stated.B, fit.clusters_)  # ties need all digits
        sure = replace(stated, gap=gap, clusters=clusters, active=np.flatnonzero(stated.screened_at < 0))
        # The dual value nearest to the stated one that gap and objective allow: gaps contain bounds on rounding.
        stated_gap, primal, dual = map(real_number, (fit.dual_gap_, stated.primal, stated.dual))
        nearest = min(max(dual, primal - stated_gap), primal) if np.isfinite(dual) else primal - stated_gap
        claims = [
            Claim("clusters_", fit.clusters_, clusters),
            Claim("screened_fraction_", fit.screened_fraction_, 1.0 - len(sure.active) / len(sure.B)),
            Claim("relaxed", "penalized_coef_" in vars(fit), bool(fit.relaxed)),
            Claim("solve_result_.active", stated.active, sure.active),
            Claim("solve_result_.clusters", stated.clusters, clusters),
            Claim("solve_result_.gap", stated.gap, stated_gap),
            Claim("solve_result_.dual", stated.dual, nearest, self.allowance),
            Claim("status", stated.status, self.status(stated, float(fit.tol))),
        ]
        if stated.scale is not None:  # which earlier versions have not stored
            claims.append(scale_claim("solve_result_.scale", stated.scale, self.model))
        relaxed = relaxed_coefficients(self.model, sure.support, judge=False) if fit.relaxed else None
        found = fit._attributes(self.data, self.model.weights, sure, self.alpha, relaxed)
        allowances = {"weights_": RTOL * self.model.weights, "dual_gap_": room}
        relaxed_rtol = _LEAST_SQUARES_RTOL if self.model.problem.loss.is_quadratic else _NEWTON_RTOL
        for prefix, rtol in {"": relaxed_rtol if fit.relaxed else 4.0 * EPS, "penalized_": 4.0 * EPS}.items():
            if f"{prefix}coef_" in found:
                coef, intercept = found[f"{prefix}coef_"], found[f"{prefix}intercept_"]
                unit = rtol + 4.0 * float(np.finfo(self.dtype).eps)
                shift = offsets(self.model, np.atleast_2d(coef)).max()  # the intercept takes it up
                reach = np.abs(intercept).max() + np.abs(self.model.problem.samples.center).max() + shift
                allowances[f"{prefix}coef_"] = unit * np.abs(coef).max() * (coef != 0.0)  # what is zero must be so
                allowances[f"{prefix}intercept_"] = unit * reach
        for name in fit._follow_coefficients:
            allowances[name] = 1e-6 * np.abs(found[name])
        for name, value in found.items():
            if name not in ("alpha_", "solve_result_"):
                claims.append(Claim(name, getattr(fit, name, None), value, allowances.get(name, 0.0)))
        return claims
