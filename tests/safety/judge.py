"""A judge of fits in extended precision that knows data and public numbers only, and shares no code with the package.

The documented objective is evaluated at the public coefficients from exact predictors: all products and sums of data
and coefficients are done in whole numbers. The judge then looks for a better point by itself, and bounds the minimum
from below by a dual point of its own. Both of its bounds are statements about the data as they were given:

- *refuted*: an explicit point is better than the public one by more than the claimed gap;
- *confirmed*: the dual bound leaves no room for such a point;
- *undecided*: neither, which is counted, so that a judge that cannot judge is noticed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from judge_exact import EPS, Exact, Long, short
from judge_problem import JudgeProblem, Question
from judge_search import Search
from scipy.optimize import linprog

# A column may be left out where rounding may be all that is left of it: its standard deviation relative to its mean, or
# what unpenalized columns do not explain of it relative to its norm.
LEFT_OUT_RTOL = 1e-13
# No double is smaller: a gap below it is 0.
SMALLEST = Long(np.nextafter(0.0, 1.0))


@dataclass(frozen=True)
class Claim:
    """Public coefficients (d, q), intercept (q,), gap, and rows said to be proved zero.

    ``left_out`` are columns of which the fit says that it treats them as constant, or as explained by unpenalized ones:
    then it speaks of the problem without them.
    """

    B: np.ndarray
    intercept: np.ndarray
    gap: float
    zero: tuple[int, ...] = ()
    left_out: tuple[int, ...] = ()


@dataclass(frozen=True)
class Verdict:
    """``gap`` and ``zeros`` are "confirmed", "refuted" or "undecided"; the numbers are in units of the objective.

    They are in extended precision, whose range is larger.
    """

    gap: str
    zeros: str
    excess: Long  # of the public point above the best point found
    claimed: Long
    objective: Long
    best: Long
    own_gap: Long
    nonzero: bool  # whether the best point has a nonzero penalized row
    note: str = ""


def judge(question: Question, claim: Claim) -> Verdict:
    """Judge the gap and the zeros of a fit."""
    numbers = [np.ravel(claim.B), np.ravel(claim.intercept)]
    if np.isnan(claim.gap) or not all(np.isfinite(np.asarray(part, dtype=Long)).all() for part in numbers):
        nan = Long(np.nan)
        return Verdict("refuted", "confirmed", nan, Long(claim.gap), nan, nan, nan, False, "not a number")
    with np.errstate(all="ignore"):
        return _Judgement(question, claim).verdict()


def may_be_left_out(question: Question):
    """Columns that vary by so little, or that unpenalized columns explain so well, that rounding may be all of it."""
    explained = np.zeros(question.X.shape[1], dtype=bool)
    for j in (None, *question.unpenalized):  # of an unpenalized column: by the others
        others = tuple(k for k in question.unpenalized if k != j)
        problem = JudgeProblem.of(replace(question, unpenalized=others))
        found = np.array(problem.penalized, dtype=int)[problem.unexplained <= LEFT_OUT_RTOL]
        explained[found if j is None else found[found == j]] = True
    there = question.w > 0
    w, X = question.w[there].astype(Long), Exact.of(question.X[there])
    moved = (X - X[:1]).long()
    change = w @ moved / w.sum()
    deviation = np.sqrt(w @ (moved - change) ** 2 / w.sum())
    return explained | (deviation <= LEFT_OUT_RTOL * np.abs(X[0].long() + change))


class _Judgement:
    def __init__(self, question: Question, claim: Claim) -> None:
        self.question, self.claim = question, claim
        self.problem = JudgeProblem.of(question, claim.left_out)

    def verdict(self) -> Verdict:
        claim, problem = self.claim, self.problem
        wrong = self._wrongly_left_out()
        public = problem.documented(claim.B, claim.intercept)
        start = problem.inner(claim.B, claim.intercept)
        search = Search(problem, start, public, Long(claim.gap), bool(claim.zero)).run()
        best, lower = search.upper, search.lower
        # Also the rounding of the gap itself to a double.
        error = 64 * EPS * (abs(public) + abs(best)) + 1e-15 * Long(claim.gap)
        excess = public - best
        if excess > Long(claim.gap) + error + SMALLEST:
            gap = "refuted"
        elif public - lower <= Long(claim.gap) + error + problem.bound_error + SMALLEST:
            gap = "confirmed"
        else:
            gap = "undecided"
        zeros, note = self._judge_zeros(search)
        if wrong:
            zeros, note = "refuted", f"columns {wrong} are left out, but are more than rounding"
        nonzero = bool(search.B.any())
        return Verdict(gap, zeros, excess, Long(claim.gap), public, best, best - lower, nonzero, note)

    def _wrongly_left_out(self) -> list[int]:
        if not self.claim.left_out:
            return []
        may_be = may_be_left_out(self.question)
        return [j for j in self.claim.left_out if not may_be[j]]

    def _judge_zeros(self, search: Search) -> tuple[str, str]:
        """Without the rows that are said to be zero the minimum must not rise."""
        problem, claimed = self.problem, list(self.claim.zero)
        if np.any(np.asarray(self.claim.B)[claimed]):
            return "refuted", "a row proved zero is not zero"
        rows = [k for k, j in enumerate(problem.penalized) if j in set(claimed)]
        if not rows or not search.B[rows].any():
            return "confirmed", ""  # the best point itself lives on the other rows
        left = problem.without(rows)
        keep = np.delete(np.arange(len(problem.penalized)), rows)
        restricted = Search(left, (search.B[keep], search.C), np.inf, Long(0)).run()
        error = 64 * EPS * abs(search.upper) + problem.bound_error
        if restricted.lower > search.upper + error:
            rise = short(restricted.lower - search.upper)
            named = [problem.penalized[k] for k in rows if search.B[k].any()]
            return "refuted", f"columns {named} are not zero: without them the minimum rises by {rise}"
        if restricted.upper <= search.upper + max(Long(self.claim.gap), search.upper - search.lower) + error:
            return "confirmed", ""
        return "undecided", ""


def is_separated(question: Question) -> bool | None:
    """Whether intercept and unpenalized columns tell classes of some samples apart without an error.

    Then their coefficients have no finite optimum. None where the linear program does not tell clearly.
    """
    equal = replace(question, w=(question.w > 0).astype(float))  # weights change the basis, not the answer
    problem = JudgeProblem.of(equal)
    Q = problem.Q.astype(float)
    Q = Q / np.abs(Q).max(axis=0, initial=1e-300)
    labels = np.argmax(problem.Y, axis=1)
    n, K = problem.Y.shape
    margins = np.zeros((n, K, Q.shape[1], K))
    for i in range(n):
        for k in range(K):
            margins[i, k, :, labels[i]] += Q[i]
            margins[i, k, :, k] -= Q[i]
    others = np.arange(K) != labels[:, None]
    rows = margins[others].reshape(-1, Q.shape[1] * K)
    both = np.vstack([-rows, rows])
    bounds = np.concatenate([np.zeros(len(rows)), np.ones(len(rows))])
    program = linprog(-rows.sum(axis=0), A_ub=both, b_ub=bounds, bounds=(None, None), method="highs")
    if program.status != 0 or 1e-7 < -program.fun < 0.5:
        return None
    return bool(-program.fun >= 0.5)
