"""Solutions along falling alphas, each from the one before: all of them solved, or as many as a proof needs."""

from __future__ import annotations

import math
import numbers
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from .._checks import as_float_array, check_finite, number_in, positive_integer
from .._progress import ProgressLine, current_line
from .._typing import FloatArray, IndexArray
from ..model import Model
from ..norm.kernels import cluster_labels, nonzero_rows
from ..problem import Certificate, Problem
from ..solvers import Callback, Continuation, Progress, SolveResult, SolverSettings
from ..solvers.continuation import Batch, scale_of
from .kept_points import KeptPoints
from .path_result import PathPoint, PathResult, Solution

#: A path ends where this share of the deviance is explained.
MAX_DEVIANCE = 0.999
#: More fits than anybody waits for: the number is a slip, and their grid alone might not fit into the memory.
MOST_ALPHAS = 1_000_000
# Alphas from one solve to the next where solutions in between are interpolated, at first and at most.
_FIRST_STRIDE = 4
_LONGEST_STRIDE = 16
# Coefficients of solutions that are brought to the scale of X together.
_MOST_COEFFICIENTS = 2**21
# Seconds between two copies of what a single solve has found, should the process be killed.
_KEEP_EVERY = 30.0


def resolve_alphas(alphas: Any, eps: Any, model: Model) -> FloatArray:
    """Decreasing alphas: an array, sorted, or ``alphas`` many on a logarithmic scale from the largest down."""
    fraction = number_in("eps", eps, "(0, 1)")
    if isinstance(alphas, numbers.Integral):
        count = positive_integer("alphas", alphas)
        if count > MOST_ALPHAS:
            raise ValueError(f"alphas must be at most {MOST_ALPHAS}, got {alphas!r}: each of them is a fit.")
        top = model.alpha_max or 1.0
        grid = top * np.geomspace(1.0, fraction, count)
        grid[0] = top
        return grid
    if isinstance(alphas, str) or np.ndim(alphas) == 0:
        raise TypeError(
            f"alphas must be an integer, how many, or an array of positive numbers, got {alphas!r}. "
            "Use a list for a single alpha, for example [0.1]."
        )
    return given_alphas(alphas, model)


def given_alphas(alphas: Any, model: Model) -> FloatArray:
    """Falling alphas from an array in any order, of which all must be positive."""
    values = as_float_array("alphas", alphas, ndim=(1,))
    check_finite("alphas", values, remedy="Every alpha must be a finite number.")
    if len(values) == 0:
        raise ValueError("alphas must be at least one positive number, got none.")
    if values.min() <= 0.0:
        raise ValueError(f"alphas: all must be positive, got {values.min():g} among them.")
    model.check_alphas("alphas", values)
    return np.unique(values)[::-1]


class Watch:
    """The callback of solves: tells how far they have come, passes certificates on, and remembers a wish to stop.

    A solve may end by itself at the certificate at which the user's callback asks to stop.

    Parameters
    ----------
    callback : callable, default=None
        The user's.
    verbose : int, default=0
        0 is silent, 1 and more are for :class:`~groupowl._progress.ProgressLine`: the line of the public call that this
        is for, or one of its own.
    goal : float
        Gap at which each solve ends.
    what : str, default=""
        What is being fitted, the beginning of every line.
    n_alphas : int, default=1
        Solves to come.
    first_index : int, default=0
        Position on a path of the first of them, as the user's callback is to see it.
    keep : callable, default=None
        Gets coefficients and intercept now and then, to keep them.
    """

    def __init__(
        self,
        callback: Callback | None = None,
        *,
        verbose: int = 0,
        goal: float = 0,
        what: str = "",
        n_alphas: int = 1,
        first_index: int = 0,
        keep: Callable[[FloatArray, FloatArray], None] | None = None,
    ) -> None:
        shared = current_line() if verbose else None
        self.line = shared or ProgressLine(verbose, what)
        self.is_own = shared is None
        self.callback = callback
        self.sees_rounds = callback is not None  # where only lines are printed, the compiled kernel may solve
        self.goal = goal
        self.what = f"{what}: " if what else ""
        self.n_alphas = n_alphas
        self.first_index = first_index
        self.keep = keep
        self.wants_stop = False
        self._kept = time.monotonic()
        self._solve = -1, np.inf, np.inf  # position of the alpha that is being solved, its first and its smallest gap

    def __call__(self, progress: Progress) -> bool:
        """Take a certificate, print it unless the last line is too recent; True ends the solve."""
        if self.line.level:
            where, index = "", progress.alpha_index
            is_proved = progress.iteration > 0 and progress.gap <= self.goal
            share = (index + (1.0 if is_proved else self._share_of_solve(progress))) / self.n_alphas
            if self.n_alphas > 1:
                where = f"alpha {index + 1} of {self.n_alphas}, "
            self.line.show(
                f"{self.what}{where}{progress.n_nonzero} selected, gap {progress.gap:.1e} (goal {self.goal:.1e})",
                share,
            )
            if is_proved and index >= self.n_alphas - 1:
                self.line.end()
        if self.keep is not None and time.monotonic() - self._kept >= _KEEP_EVERY:
            self.keep(*progress.coefficients())
            self._kept = time.monotonic()
        if self.callback is not None:
            if self.first_index:
                progress = replace(progress, alpha_index=self.first_index + progress.alpha_index)
            self.wants_stop = bool(self.callback(progress))
        return self.wants_stop

    def _share_of_solve(self, progress: Progress) -> float:
        """How far the gap has come from its first value to the goal, in orders of magnitude, as solvers converge."""
        index, first, least = self._solve
        if index != progress.alpha_index:
            first = least = progress.gap
        least = min(least, progress.gap)
        self._solve = progress.alpha_index, first, least
        if not 0.0 < self.goal < first < np.inf:
            return 0.0
        return min(math.log(first / least) / math.log(first / self.goal), 1.0) if least > 0.0 else 1.0

    @property
    def if_needed(self) -> Watch | None:
        """The watch as a callback, or None if there is nothing to print or keep and no callback of the user."""
        return self if self.line.level or self.callback is not None or self.keep is not None else None

    def close(self) -> None:
        """Print the last line if it is pending, and end it."""
        if self.is_own:
            self.line.close()
        else:
            self.line.end()


def fit_path(
    model: Model,
    alphas: Any,
    settings: SolverSettings,
    *,
    start: FloatArray | None = None,
    max_features: float | None = None,
    max_deviance: float | None = MAX_DEVIANCE,
    dtype: Any = np.float64,
    verbose: int = 0,
    what: str = "",
    solves: Continuation | None = None,
    kept: KeptPoints | None = None,
) -> PathResult:
    """Solve for each alpha, from the first to the last, each from the solution before it.

    Parameters
    ----------
    model : Model
    alphas : array-like of shape (n_alphas,)
        Positive and falling.
    settings : SolverSettings
        Of each solve. A callback that returns True ends the path there: the point that is being solved is the last, as
        far as it has come.
    start : ndarray, default=None
        Coefficients of the problem to start the first solve from; the model without features by default.
    max_features : int, default=None
        The path ends before the first alpha that selects more; that alpha is not among the points.
    max_deviance : float, default=0.999
        The path ends with the first alpha that explains at least this share of the deviance; None follows all alphas.
    dtype : dtype, default=float64
        Of rows and intercepts.
    verbose, what : int and str
        What to print of the progress, and what each line begins with.
    solves : Continuation, default=None
        What the path goes on from, in place of ``start``.
    kept : KeptPoints, default=None
        Solutions that an earlier run has found, which are certified again, and where those of this one are kept.

    Returns
    -------
    PathResult
    """
    points: list[PathPoint] = []
    goal, reason = model.problem.goal(settings.tol), "end"
    with closing(Watch(settings.callback, verbose=verbose, goal=goal, what=what, n_alphas=len(alphas))) as watch:
        solves = solves or model.continuation(settings, n_solves=len(alphas), start=start)
        solves.settings = replace(settings, callback=watch.if_needed)
        solves.least_loss = -np.inf
        if max_deviance is not None:
            solves.least_loss = model.problem.null_loss - max_deviance * model.problem.loss_scale
        alphas = np.asarray(alphas).tolist()
        known = None if kept is None else kept.read
        found = solves.solve_all(model.sequence_weights, alphas, dtype=dtype, known=known)
        for i, (alpha, result) in enumerate(zip(alphas, found, strict=False)):
            if kept is not None and result.converged:
                kept.write(i, solves.B, result)
            point = _point(model, alpha, result, solves)
            if max_features is not None and point.n_selected > max_features:
                if not points:
                    raise ValueError(
                        f"max_features={max_features}, but the first alpha, {alpha:g}, selects {point.n_selected} "
                        "features already. Begin with a larger alpha, or raise max_features."
                    )
                reason = "max_features"
                break
            points.append(point)
            if max_deviance is not None and point.deviance_ratio >= max_deviance:
                reason = "deviance"
                break
            if watch.wants_stop:
                reason = "callback"
                break
    return PathResult.of(model, points, reason)


def path_through_fit(
    model: Model, solves: Continuation, alpha: float, result: SolveResult, alphas: FloatArray, callback: Callback
) -> PathResult:
    """The path at falling ``alphas`` around a fit, which ``solves`` has just ended with and which becomes a point.

    Smaller alphas start from the fit, larger ones from the model without features.
    """
    fitted = _point(model, alpha, result, solves)
    solves.expect(len(alphas))
    settings = replace(solves.settings, callback=callback)
    go_on: dict[str, Any] = {"max_deviance": None, "dtype": model.dtype, "solves": solves}
    with solves.aside(model.problem.null_coefficients()):
        path = fit_path(model, alphas[alphas > alpha], settings, **go_on)
    path = replace(path, points=(*path.points, fitted))
    if path.stopped_because == "callback":
        return path
    smaller = fit_path(model, alphas[alphas < alpha], settings, **go_on)
    return replace(smaller, points=path.points + smaller.points)


def _point(model: Model, alpha: float, result: SolveResult, solves: Continuation) -> PathPoint:
    loss = solves.loss
    if loss is None:
        penalized = model.problem.with_lam(alpha * model.sequence_weights)
        loss = result.primal - penalized.penalty_value(solves.B)
    support, penalty = result.support, model.problem.penalty
    unit_norms = penalty.spread(penalty.norms(solves.B[: model.problem.n_rows]))[support]
    n_selected = len(support)
    if len(model.unpenalized):
        n_selected = int(np.count_nonzero(~np.isin(support, model.unpenalized)))
    return PathPoint(
        alpha=alpha,
        support=support,
        rows=result.B[support],
        intercept=result.intercept,
        clusters=partial(cluster_labels, unit_norms),
        primal=result.primal,
        gap=result.gap,
        loss=loss,
        deviance_ratio=model.problem.explained(loss),
        n_iter=result.n_iter,
        n_passes=result.n_passes,
        seconds=result.seconds,
        status=result.status,
        n_selected=n_selected,
        scale=None if result.scale is None else result.scale[support],
    )


class Follower:
    """Computes a path for scores, and interpolates solutions where the gap proves them good enough.

    Only some alphas are solved. On the line between two solutions coefficients are often as good as a solve would
    make them: their duality gap says so for the price of one certificate, or, for quadratic losses, the certificates
    of the two ends say so for the whole line. Where the gap is above the goal, the alpha is solved after all, lines
    become shorter, and the next solves lie closer together. Other losses bend their lines: a parabola through one more
    solution is closer.

    Attributes
    ----------
    solved : list of int
        Alphas that were solved.
    n_short : int
        How many of these fell short of the tolerance.
    """

    def __init__(self, model: Model, alphas: FloatArray, settings: SolverSettings, what: str = "") -> None:
        self.model = model
        self.what = what  # for lines of progress
        self.alphas = alphas.tolist()
        self.solves = model.continuation(settings, n_solves=len(alphas))
        self.goal = model.problem.goal(settings.tol)
        self.is_straight = model.problem.loss.is_quadratic
        self.positions = np.array(list(map(scale_of(model.problem), self.alphas)))  # along lines
        self.solved: list[int] = []
        self.n_short = 0
        self.proofs: dict[int, tuple[Problem, Certificate]] = {}  # of alphas whose lines are not all drawn yet
        self.coefficients: list[Any] = [None] * len(alphas)  # in the scale of the problem; None on a line

    def follow(self) -> list[Solution]:
        """A solution for each alpha."""
        if self.solves.kernel_data() is not None:
            self._follow_proposals()
        else:
            self._follow_solves()
        return self._solutions()

    def _follow_solves(self) -> None:
        """Solve for one alpha after the other, as far apart as the last lines allow."""
        self._solve(0)
        last, stride = 0, _FIRST_STRIDE
        while last < len(self.alphas) - 1:
            first, last = last, min(last + stride, len(self.alphas) - 1)
            self._solve(last)
            stride = min(2 * stride, _LONGEST_STRIDE) if self._fill(first, last) else max(stride // 2, 1)
            self.proofs = {last: self.proofs[last]}

    def _solve(self, i: int) -> None:
        result = self.solves.solve(self.model.sequence_weights, self.alphas[i])
        assert self.solves.source is not None
        assert self.solves.certificate is not None
        self.coefficients[i] = self.solves.B
        self.proofs[i] = self.solves.source, self.solves.certificate
        self._add_solved(i)
        self.n_short += not result.converged

    def _add_solved(self, i: int) -> None:
        self.solved.append(i)
        line = current_line() if self.what else None
        if line is not None:
            reached, n_alphas = max(self.solved) + 1, len(self.alphas)
            line.show(f"{self.what}: alpha {reached} of {n_alphas}", reached / n_alphas)

    def _follow_proposals(self) -> None:
        """The same in rounds over the whole path: one call of the compiled kernel serves many alphas."""
        last = len(self.alphas) - 1
        self._solve_all([*range(0, last, _FIRST_STRIDE), last])
        lines = list(pairwise(self.solved))
        while bent := {(first + last) // 2: (first, last) for first, last in lines if not self._draws(first, last)}:
            for i, (first, last) in bent.items():
                self.coefficients[i] = self._between(first, i, last)
            if missed := self._unproved(list(bent)):
                with self.solves.aside(self.coefficients[bent[missed[0]][0]]):
                    self._solve_all(missed)
            lines = [line for i, (first, last) in bent.items() for line in ((first, i), (i, last))]

    @np.errstate(all="ignore")  # what is not finite is no proof
    def _solve_all(self, indices: list[int]) -> None:
        """Solve for some alphas in falling order, each from the one before."""
        weights, alphas = self.model.sequence_weights, [self.alphas[i] for i in indices]
        for i, proposal in zip(indices, self.solves.proposals(weights, alphas), strict=True):
            if proposal is None or not self._keeps(i, proposal.batch, proposal.place):
                self._solve(i)
            else:
                self.solves.B = proposal.B
                self._add_solved(i)

    @np.errstate(all="ignore")
    def _unproved(self, indices: list[int]) -> list[int]:
        """Alphas whose coefficients have too large a gap."""
        lams = np.multiply.outer([self.alphas[i] for i in indices], self.model.sequence_weights)
        stack = np.stack([self.coefficients[i] for i in indices])
        batch = Batch(self.solves.small, self.solves.problem, stack, self.solves.looks(lams, stack))
        return [i for k, i in enumerate(indices) if not self._keeps(i, batch, k)]

    def _keeps(self, i: int, batch: Batch, k: int) -> bool:
        """Keep coefficients of a batch as the solution for an alpha, if their gap is small enough."""
        B, (residual, certificate) = batch.stack[k], batch.looks[k]
        problem = batch.problem.with_lam(self.alphas[i] * self.model.sequence_weights)
        certificate = certificate or problem.certify(B, residual=residual)
        if not certificate.gap <= self.goal:
            return False
        self.coefficients[i] = B
        self.proofs[i] = problem, certificate
        return True

    def _draws(self, first: int, last: int) -> bool:
        """Whether the line between two solutions stands for those between them: they prove it, or there are none."""
        return last - first == 1 or self._proves_line(first, last)

    def _fill(self, first: int, last: int) -> bool:
        """Solutions between two that are there, the middle one first; whether all of them lie on the line."""
        if self._draws(first, last):
            return True
        middle = (first + last) // 2
        B = self.coefficients[middle] = self._between(first, middle, last)
        missed = self._unproved([middle])
        if missed:
            with self.solves.aside(B):
                self._solve(middle)
        halves = [self._fill(first, middle), self._fill(middle, last)]
        return not missed and all(halves)

    @np.errstate(all="ignore")
    def _proves_line(self, first: int, last: int) -> bool:
        """Whether two solutions alone prove that all coefficients on the line between them meet the goal."""
        (problem, start), (other, end) = self.proofs[first], self.proofs[last]
        if not self.is_straight or problem.design is not other.design:
            return False
        t = self.positions
        shares = (t[first + 1 : last] - t[first]) / (t[last] - t[first])
        bend = problem.interpolation_excess(start, end, self.alphas[last] / self.alphas[first])
        gaps = (1.0 - shares) * start.gap + shares * end.gap + shares * (1.0 - shares) * bend
        return bool(np.all(gaps <= self.goal))

    def _solutions(self) -> list[Solution]:
        """One solution for each alpha: solved ones, and those interpolated between them."""
        known = [i for i, B in enumerate(self.coefficients) if B is not None]
        size = max(1, _MOST_COEFFICIENTS // self.coefficients[known[0]].size)
        solutions = []
        for k in range(0, len(known), size):
            part = known[k : k + size + 1]  # with the first of the next part, where lines end
            solutions += self._drawn(np.array(part), min(part[-1] + (k + size >= len(known)), len(self.alphas)))
        return solutions

    @np.errstate(all="ignore")
    def _drawn(self, known: IndexArray, end: int) -> list[Solution]:
        """Solutions from the first known index up to ``end``, interpolated between the known ones."""
        t = self.positions[known[0] : end]
        first = np.searchsorted(known, np.arange(known[0], end), side="right") - 1
        last = np.minimum(first + 1, len(known) - 1)
        begins, ends = self.positions[known[first]], self.positions[known[last]]
        shares = np.where(first < last, (t - begins) / (ends - begins), 0.0)[:, None]
        B, intercepts = self.model.problem.all_to_input(np.stack([self.coefficients[i] for i in known]))
        rows = np.flatnonzero(nonzero_rows(B.transpose(1, 0, 2).reshape(B.shape[1], -1)))
        B = B[:, rows]
        B = B[first] + shares[:, :, None] * (B[last] - B[first])
        return Solution.several(rows, B, intercepts[first] + shares * (intercepts[last] - intercepts[first]))

    @np.errstate(all="ignore")
    def _between(self, first: int, i: int, last: int) -> FloatArray:
        """Coefficients on the line between two solutions, or on a parabola through one before them as well."""
        t, (start, end) = self.positions, (self.coefficients[first], self.coefficients[last])
        line: FloatArray = start + (t[i] - t[first]) / (t[last] - t[first]) * (end - start)
        before = None if self.is_straight else max((k for k in self.solved if k < first), default=None)
        if before is None:
            return line
        slopes = (end - start) / (t[last] - t[first]), (start - self.coefficients[before]) / (t[first] - t[before])
        bend = (slopes[0] - slopes[1]) * ((t[i] - t[first]) * (t[i] - t[last]) / (t[last] - t[before]))
        bend[~(nonzero_rows(start) & nonzero_rows(end))] = 0.0  # a row that begins between them has no parabola
        problem, curve = self.model.problem, line + bend
        curve[: problem.n_rows] = problem.penalty.projected(curve[: problem.n_rows])  # lines keep signs, parabolas not
        return curve
