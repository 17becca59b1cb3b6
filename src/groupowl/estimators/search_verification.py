"""What a search for alpha says, checked on the data: its path, its scores, and the choice that follows from them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import fields, replace
from functools import cached_property, partial
from itertools import islice, repeat
from numbers import Integral
from typing import Any

import numpy as np

from .._progress import current_line
from .._typing import FloatArray
from ..model_selection import CRITERIA, Choice, Search
from ..model_selection.search import FOLD_TOL, best_sequence, mean_scores, repeats_of, score_report, tunes_ridge
from ..path import PathPoint, PathResult
from ..path.follower import MAX_DEVIANCE
from ..problem import Residual
from .verification import (
    GOAL_RTOL,
    RTOL,
    Claim,
    Finding,
    SolutionCheck,
    alpha_allowance,
    findings,
    real_number,
    scale_claim,
)

# Scores of fold fits, relative to the root of their tolerance: by the same steps, and by others.
_SAME_STEPS = 0.1
_OTHER_STEPS = 16.0
# The same for information criteria, relative to their range.
_CRITERION_RTOL = {True: 1e-6, False: 0.02}
# What the scores of folds say of each weight sequence.
_OF_FOLDS = ("score_path", "mean_score_path", "best_score", "std_error_path", "selection_frequency")
# Numbers of the points of a path, and names that they have in the path where these are others.
_OF_POINTS = ("primal", "gap", "loss", "deviance_ratio", "n_selected", "clusters", "status")
_IN_PATHS = {"gap": "dual_gaps", "loss": "losses", "status": "statuses"}

# Of all the work, where the search is made again, as progress shows it.
_SHARE_OF_SEARCH = 0.8


def _part_of_line(begin: float, end: float) -> AbstractContextManager[None]:
    """What follows is a part of the work of the call, which may have a line of progress."""
    line = current_line()
    return nullcontext() if line is None else line.part(begin, end)


class SearchCheck:
    """Path, scores and choice of an estimator that has chosen alpha.

    ``search`` is the fit as its parameters ask for it, on the data given; its estimator is the one whose claims are
    checked.
    """

    def __init__(self, search: Search) -> None:
        self.search = search
        self.fit = search.estimator
        given = [Claim("weights_", self.fit.weights_, model.weights, RTOL * model.weights) for model in search.models]
        of_ridge = [ridge == getattr(self.fit, "ridge_", ridge) for ridge in search.ridges]
        self.chosen = next((k for k, claim in enumerate(given) if of_ridge[k] and claim.complaint() is None), 0)
        self.model = search.models[self.chosen]
        self.by_criteria = self.fit.selection in CRITERIA
        self.fold_weights: FloatArray | None = None
        self.again: list[Choice] | None = None  # the same search once more
        self.is_damaged = False

    def findings(self, scores: bool, *, chosen_holds: bool) -> list[Finding]:
        """Findings about path, scores and choice, including whether the scores were computed again."""
        reason = self._reason_against_folds(required=scores)
        if not chosen_holds:
            reason = reason or "the chosen fit does not hold"
        share = 0.0 if reason else _SHARE_OF_SEARCH
        with _part_of_line(0.0, share):
            self.again = None if reason else self.search.run()
        with _part_of_line(share, 1.0):
            path_claims = self._path_claims()
        found = [
            *findings(path_claims, f"each of {len(self.fit.path_)} alphas certified again"),
            *findings(self._choice_claims(), "the choice and what it follows from"),
        ]
        if self.by_criteria and len(self.search.models) == 1:
            return found
        what = "the criteria of other weight sequences" if self.by_criteria else "the held-out scores"
        how = f"NOT computed again: {reason}"
        if self.again is not None:
            how = "computed again, by the same steps"
            if not self._is_same_way:
                how = "computed again, by other steps, so that they agree roughly only"
            if not self._is_comparable:
                how = "NOT compared: other steps may select other features, and relaxed coefficients jump with them"
        return [*found, Finding(True, f"{what} are {how}", is_checked=not how.startswith("NOT"))]

    # What can be computed again -----------------------------------------------------------------------

    def _reason_against_folds(self, required: bool) -> str:
        """Why scores cannot be computed again, or are not to be; empty otherwise. Folds have weights from here on."""
        reason = "" if required else "scores=False"
        if self.by_criteria:
            return reason
        if self.search.parts:
            self.fold_weights = np.array([part.total_weight for part in self.search.parts])
            return reason
        if self.search.data.is_summarized:
            return "statistics of all samples have no folds; give those of each fold"
        if isinstance(self.fit.cv, Iterator):
            return "cv is an iterator, which is used up"
        try:
            folds, others = self.search.folds(), self.search.folds()
        except ValueError as error:
            if not required:
                return reason
            remedy = "Give verify what fit had, for example groups, or scores=False."
            raise ValueError(f"the samples cannot be split again by cv={self.fit.cv!r}: {error} {remedy}") from error
        parts = ([part for fold in made for part in (fold.train, fold.test)] for made in (folds, others))
        if len(folds) != len(others) or not all(map(np.array_equal, *parts)):
            return "cv makes other folds each time; give it a random_state"
        self.fold_weights = np.array([self.search.weight[fold.test].sum() for fold in folds])
        return reason

    @cached_property
    def _path_again(self) -> PathResult:
        if self.again is not None:
            return self.again[self.chosen].path
        grid, ridge = self.search.grids[self.chosen], self.search.ridges[self.chosen]
        return replace(self.search, models=[self.model], grids=[grid], ridges=[ridge]).paths()[0]

    @cached_property
    def _is_same_way(self) -> bool:
        """Whether the fits on all data, and so those of the folds, have taken the same steps as then."""
        again, path = self._path_again, self.fit.path_
        return np.array_equal(again.n_iters, path.n_iters) and np.allclose(again.losses, path.losses, rtol=1e-8)

    @property
    def _is_comparable(self) -> bool:
        """Whether scores were computed again, in a way that leads to nearly the same numbers."""
        return self.again is not None and (self._is_same_way or not self.fit.relaxed)

    # The path -----------------------------------------------------------------------------------------

    def _path_claims(self) -> list[Claim]:
        """The path, beside one whose points are what their coefficients and the data make of them."""
        fit, path, model, grid = self.fit, self.fit.path_, self.model, self.search.grids[self.chosen]
        # The last ratio is compared with its own below.
        is_cut = real_number(path.points[-1].deviance_ratio) >= MAX_DEVIANCE and isinstance(fit.alphas, Integral)
        is_stopped = path.stopped_because == "callback"  # by the user, which is nothing that data could tell
        reason = "callback" if is_stopped else "deviance" if is_cut else "end"
        empty = PathResult.of(model, (), reason).labeled(vars(fit))
        allowances: dict[str, Any] = {
            "weights": RTOL * model.weights,
            "alpha_max": alpha_allowance(model, model.alpha_max),
            "null_loss": GOAL_RTOL * model.problem.null_loss,
        }
        claims = [
            Claim("path_.alphas", path.alphas, np.asarray(fit.alphas_)),
            Claim("path_.n_alphas", len(path), len(path) if is_cut or is_stopped else len(grid)),
        ]
        for name in (field.name for field in fields(PathResult) if field.name != "points"):
            claims.append(Claim(f"path_.{name}", getattr(path, name), getattr(empty, name), allowances.get(name, 0.0)))
        certified, line = [], current_line()
        for i, solution in enumerate(self._solutions()):
            try:
                if solution is None:
                    raise ValueError("the solution is damaged")
                certified.append(self._certified(i, path.points[i], *solution))
            except (IndexError, TypeError, ValueError):
                claims.append(Claim(f"path_[{i}]", "damaged", "coefficients of these features and targets"))
            if line is not None:
                line.show(f"alpha {i + 1}/{len(path)} certified", (i + 1) / len(path))
        self.is_damaged = len(certified) < len(path)
        if self.is_damaged:
            return claims
        points, rooms, gap_rooms = zip(*certified, strict=True)
        room = np.array(rooms)
        allowances = {"primal": room, "loss": room, "gap": np.array(gap_rooms)}
        allowances["deviance_ratio"] = room / (model.problem.loss_scale or np.inf)
        for name in _OF_POINTS:
            stated, found = (np.hstack([getattr(point, name) for point in group]) for group in (path.points, points))
            claims.append(Claim(f"path_.{_IN_PATHS.get(name, name)}", stated, found, allowances.get(name, 0.0)))
        if path.is_scaled:  # which earlier versions have not stored
            features = np.concatenate([point.support for point in path])
            claims.append(scale_claim("path_.scale", np.hstack([point.scale for point in path]), model, features))
        return claims

    def _solutions(self) -> Iterator[tuple[FloatArray, FloatArray, Residual | None] | None]:
        """Coefficients of each point, with what they leave unexplained where several share a pass over the data.

        None for damaged points.
        """
        problem, d = self.model.problem, self.search.data.n_features
        n_together = problem.design.widest() // problem.samples.n_tasks if problem.may_share_products else 1
        rest = iter(self.fit.path_.points)
        while points := list(islice(rest, max(n_together, 1))):
            solutions = [_finite_solution(point, d) for point in points]
            sound = [solution for solution in solutions if solution is not None]
            shapes, q = {(B.shape, intercept.shape) for B, intercept in sound}, problem.samples.n_tasks
            known: Iterator[Residual | None] = repeat(None)
            if len(sound) > 1 and shapes == {((d, q), (q,))}:
                known = iter(problem.residuals(np.stack([problem.from_input(*solution) for solution in sound])))
            for solution in solutions:
                yield None if solution is None else (*solution, next(known))

    def _certified(
        self, i: int, point: PathPoint, B: FloatArray, intercept: FloatArray, residual: Residual | None
    ) -> tuple[PathPoint, float, float]:
        """A point as its coefficients and the data make it, and what rounding changes in its objective and its gap."""
        model, d, alpha, tol = self.model, self.search.data.n_features, float(point.alpha), float(self.fit.tol)
        stated = np.zeros(d, dtype=np.intp)
        stated[point.support] = point.clusters
        if not 0.0 < alpha < np.inf:
            raise ValueError("alpha is no positive number")
        check = SolutionCheck(model, alpha, B, intercept, point.rows.dtype, residual)
        again = partial(self._point_again, i)
        gap, gap_room = check.gap(point, again, tol)
        room = check.allowance
        if abs(check.objective - real_number(point.primal)) > room and np.array_equal(again().rows, point.rows):
            room = check.room(point, again)
        certified = replace(
            point,
            primal=check.objective,
            gap=gap,
            loss=check.loss,
            deviance_ratio=model.problem.explained(check.loss),
            n_selected=int(np.count_nonzero(~np.isin(point.support, model.unpenalized))),
            clusters=check.clusters(B, stated)[point.support],
            status=check.status(point, tol),
        )
        return certified, room, gap_room

    def _point_again(self, i: int) -> PathPoint:
        point = self._path_again.points[min(i, len(self._path_again) - 1)]
        return point if self._is_same_way else replace(point, n_iter=-1)  # as many other steps are not the same

    # The choice ---------------------------------------------------------------------------------------

    def _choice_claims(self) -> list[Claim]:
        """Each weight sequence, the choice among them, and the attributes that repeat what was chosen."""
        fit, reports, models = self.fit, self.fit.search_results_, self.search.models
        expected = sorted({"weights", "alphas", "best_index", *(["criterion_path"] if self.by_criteria else _OF_FOLDS)})
        expected += ["ridge"] if tunes_ridge(fit) else []
        expected = sorted(expected)
        described = Claim("search_results_", [sorted(report) for report in reports], [expected] * len(models))
        if described.complaint() is not None:
            return [described]
        claims = [described]
        for k, (report, model, grid) in enumerate(zip(reports, models, self.search.grids, strict=True)):
            found, allowances = (self._criterion if self.by_criteria else self._scores)(k, report)
            found |= {"weights": model.weights, "alphas": grid[: len(report["alphas"])]}
            allowances |= {"weights": RTOL * model.weights, "alphas": alpha_allowance(model, float(grid[0]))}
            found |= {"ridge": self.search.ridges[k]} if "ridge" in report else {}
            prefix = f"search_results_[{k}]." if len(reports) > 1 else "search_results_."
            for name, value in found.items():
                claims.append(Claim(f"{prefix}{name}", report[name], value, allowances.get(name, 0.0)))
        report, alphas = reports[self.chosen], np.asarray(fit.alphas_)
        alpha = alphas[report["best_index"]] if report["best_index"] in range(len(alphas)) else np.nan
        return [
            *claims,
            Claim("the chosen weight sequence", self.chosen, best_sequence(reports)),
            *(Claim(f"{name}_", getattr(fit, f"{name}_", None), report[name]) for name in expected),
            Claim("alpha_", fit.alpha_, alpha),
        ]

    def _criterion(self, k: int, report: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Expected values of the criterion for a weight sequence, and their tolerance."""
        found = {"best_index": int(np.argmin(report["criterion_path"]))}
        if k == self.chosen and not self.is_damaged:
            again, is_same = self.search.criterion_report(self.model, self.fit.path_), True
        elif k != self.chosen and self.again is not None and self._is_comparable:
            again, is_same = self.again[k].report, self._is_same_way
        else:
            return found, {}
        values = again["criterion_path"]
        room = _CRITERION_RTOL[is_same] * max(float(np.ptp(values)), 1.0)
        return found | {"criterion_path": values}, {"criterion_path": room}

    def _scores(self, k: int, report: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Expected scores of a weight sequence with all that follows from them, and their tolerances."""
        scores, means = np.asarray(report["score_path"]), np.asarray(report["mean_score_path"])
        shape = (len(report["alphas"]), scores.shape[-1] if self.fold_weights is None else len(self.fold_weights))
        if scores.shape != shape or np.isnan(means).all() or means.shape != shape[:1]:
            return {"score_path": np.full(shape, np.nan), "mean_score_path": np.full(shape[0], np.nan)}, {}
        found = score_report(self.fit.selection, scores, means, repeats_of(self.fit.cv))
        room = RTOL * np.abs(scores).max(axis=1)
        allowances: dict[str, Any] = {"std_error_path": room, "mean_score_path": room}
        if self.fold_weights is not None:
            found["mean_score_path"] = mean_scores(scores, self.fold_weights)
        if self.again is not None and self._is_comparable:  # fold fits are as uncertain as their tolerance says
            again = self.again[k].report
            count = min(len(scores), len(again["score_path"]))  # paths end where the deviance is explained
            known = found["score_path"] = np.concatenate([again["score_path"][:count], scores[count:]])
            share = (_SAME_STEPS if self._is_same_way else _OTHER_STEPS) * np.sqrt(max(float(self.fit.tol), FOLD_TOL))
            allowances["score_path"] = share * np.maximum(np.abs(known), np.abs(known[:1]))
            if self._is_same_way:
                found["selection_frequency"] = again["selection_frequency"]
        return found, allowances


def _finite_solution(point: PathPoint, n_features: int) -> tuple[FloatArray, FloatArray] | None:
    """Coefficients and intercept of a point as a file has them; None where they are damaged."""
    try:
        B, intercept = point.coef(n_features).astype(np.float64), np.asarray(point.intercept, dtype=np.float64)
    except (IndexError, TypeError, ValueError):
        return None
    return (B, intercept) if np.isfinite(B).all() and np.isfinite(intercept).all() else None
