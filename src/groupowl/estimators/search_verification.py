"""What a search for alpha says, checked on the data: its path, its scores, and the choice that follows from them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property, partial
from numbers import Integral
from typing import Any

import numpy as np

from .._typing import FloatArray
from ..model_selection import CRITERIA, Fold, choose, mean_scores, standard_errors
from ..path import PathFit, PathPoint, resolve_alphas
from ..path.continuation import MAX_DEVIANCE
from .by_criteria import judged
from .by_folds import FOLD_TOL
from .claims import (
    GOAL_RTOL,
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
from .searching import Searched, full_paths

# Scores of fold fits, relative to the root of their tolerance: by the same steps, and by others.
_SAME_STEPS = 0.1
_OTHER_STEPS = 8.0
# The same for information criteria, relative to their range.
_CRITERION_RTOL = {True: 1e-6, False: 0.02}

_COMMON = {"weights", "alphas", "best_index"}
_OF_FOLDS = {"score_path", "mean_score_path", "best_score", "std_error_path", "selection_frequency"}
_OF_CRITERIA = {"criterion_path"}


class SearchCheck:
    """Path, scores and choice of an estimator that has chosen alpha.

    Parameters
    ----------
    job : Job
        The fit as its parameters ask for it, on the data given; its estimator is the one whose claims are checked.
    models : list of Model
        One for each weight sequence.
    folding : Folding
        Where folds come from.
    """

    def __init__(self, job: Any, models: list[Any], folding: Any) -> None:
        self.job = job
        self.fit = job.estimator
        self.models = models
        self.folding = folding
        distances = [_distance(self.fit.weights_, model.weights) for model in models]
        self.chosen = int(np.argmin(distances))
        self.model = models[self.chosen]
        self.by_criteria = self.fit.selection in CRITERIA
        self.folds_again: list[Fold] | None = None
        self.fold_weights: FloatArray | None = None
        self.reason = ""  # why scores are not computed again
        self.searched: list[Searched] | None = None

    def findings(self, scores: bool, *, chosen_holds: bool) -> list[Finding]:
        """All that is wrong, what is right, and of the scores whether they were computed again."""
        self._make_folds(required=scores)
        if not chosen_holds:
            self.reason = self.reason or "the chosen fit does not hold"
        if scores and not self.reason:
            self.searched = self.fit._searched(self.job, self.models, self.grids, self.folding)
        path = self._path_claims()
        n_alphas = len(self.fit.path_)
        return [
            *findings(path, f"each of {n_alphas} alphas certified again"),
            *findings(self._choice_claims(), "the choice and what it follows from"),
            *self._scores_findings(),
        ]

    def _scores_findings(self) -> list[Finding]:
        """Whether scores were computed again, and if not, why."""
        if self.by_criteria and len(self.models) == 1:
            return []
        what = "the criteria of other weight sequences" if self.by_criteria else "the held-out scores"
        if self.searched is None:
            return [Finding(True, f"{what} are NOT computed again: {self.reason}")]
        how = "by the same steps" if self._is_same_way else "by other steps, so that they agree roughly only"
        return [Finding(True, f"{what} are computed again, {how}")]

    # What can be computed again -----------------------------------------------------------------------

    @cached_property
    def grids(self) -> list[FloatArray]:
        """Alphas that the parameters ask for, for each weight sequence."""
        return [resolve_alphas(self.fit.alphas, self.fit.eps, model) for model in self.models]

    def _make_folds(self, required: bool) -> None:
        if not required:
            self.reason = "scores=False"
        if self.by_criteria:
            return
        if self.folding.parts:
            self.fold_weights = np.array([part.total_weight for part in self.folding.parts])
        elif self.job.data.is_summarised:
            self.reason = "statistics of all samples have no folds; give those of each fold"
        elif isinstance(self.fit.cv, Iterator):
            self.reason = "cv is an iterator, which is used up"
        else:
            folds, others = self._split(required), self._split(required)
            if not _are_equal(folds, others):
                self.reason = "cv makes other folds each time; give it a random_state"
            elif folds:
                self.fold_weights = np.array([self.job.weight[fold.test].sum() for fold in folds])

    def _split(self, required: bool) -> list[Fold]:
        try:
            return self.folding.folds(self.job)
        except ValueError as error:
            if not required:
                return []
            raise ValueError(
                f"the samples cannot be split again by cv={self.fit.cv!r}: {error} Give verify what fit had, for "
                "example groups, or scores=False."
            ) from error

    @cached_property
    def _path_again(self) -> PathFit:
        if self.searched is not None:
            return self.searched[self.chosen].path
        return full_paths(self.job, [self.model], [self.grids[self.chosen]])[0]

    @cached_property
    def _is_same_way(self) -> bool:
        """Whether the fits on all data have taken the same steps as then."""
        steps = [point.n_iter for point in self._path_again.points]
        return steps == [point.n_iter for point in self.fit.path_.points]

    # The path -----------------------------------------------------------------------------------------

    def _path_claims(self) -> list[Claim]:
        fit, path, model = self.fit, self.fit.path_, self.model
        claims = [
            Claim("path_.alphas", path.alphas, np.asarray(fit.alphas_)),
            Claim("path_.weights", path.weights, model.weights, RTOL * model.weights),
            Claim("path_.alpha_max", path.alpha_max, model.alpha_max, alpha_allowance(model, model.alpha_max)),
            Claim("path_.null_loss", path.null_loss, model.null_loss, GOAL_RTOL * model.null_loss),
            Claim("path_.unpenalized", path.unpenalized, model.unpenalized),
            Claim("path_.n_features", path.n_features, self.job.data.n_features),
            Claim("path_.loss", path.loss, model.problem.loss.name),
            Claim("path_.fit_intercept", path.fit_intercept, bool(fit.fit_intercept)),
            *(Claim(f"path_.{name}", getattr(path, name), found) for name, found in self._labels().items()),
        ]
        damaged = [i for i, point in enumerate(path.points) if not self._is_readable(point)]
        if damaged:
            what = "coefficients of these features and targets"
            return [*claims, *(Claim(f"path_[{i}]", "damaged", what) for i in damaged)]
        return claims + self._point_claims(path.points)

    def _labels(self) -> dict[str, Any]:
        """Names of features and targets, and classes, as the fit has them elsewhere."""
        names = {"feature_names": "feature_names_in_", "target_names": "target_names_", "classes": "classes_"}
        return {name: getattr(self.fit, attribute, None) for name, attribute in names.items()}

    def _is_readable(self, point: PathPoint) -> bool:
        data, support = self.job.data, np.asarray(point.support)
        shape = (len(support), data.n_targets)
        return bool(
            support.dtype.kind in "iu"
            and (np.diff(support) > 0).all()
            and ((support >= 0) & (support < data.n_features)).all()
            and np.shape(point.clusters) == shape[:1]
            and np.shape(point.rows) == shape
            and np.shape(point.intercept) == shape[1:]
            and np.isfinite(point.rows).all()
            and np.isfinite(point.intercept).all()
            and np.isfinite(real_number(point.loss))
            and 0.0 < real_number(point.alpha) < np.inf
        )

    def _point_claims(self, points: Any) -> list[Claim]:
        """Objective, gap, loss and clusters of each point, from its coefficients and the data."""
        terms = ObjectiveOfData(self.fit, self.job.data, self.model)
        found = [self._point(i, point, terms) for i, point in enumerate(points)]
        primals, losses, ratios, gaps, allowances, between, statuses, clusters = zip(*found, strict=True)
        n_selected = [np.count_nonzero(~np.isin(point.support, self.model.unpenalized)) for point in points]
        stated = real_number(points[-1].deviance_ratio)  # which is compared with its own below
        last = stated >= MAX_DEVIANCE and isinstance(self.fit.alphas, Integral)
        null_loss = self.model.null_loss or np.inf
        return [
            Claim("path_.primal", _each(points, "primal"), primals, np.array(allowances)),
            Claim("path_.dual_gaps", _each(points, "gap"), gaps, np.array(between)),
            Claim("path_.losses", _each(points, "loss"), losses, np.array(allowances)),
            Claim("path_.deviance_ratio", _each(points, "deviance_ratio"), ratios, np.array(allowances) / null_loss),
            Claim("path_.n_selected", _each(points, "n_selected"), n_selected),
            Claim("path_.clusters", np.concatenate(_all(points, "clusters")), np.concatenate(clusters)),
            Claim("path_.statuses", _each(points, "status"), statuses),
            Claim("path_.stopped_because", self.fit.path_.stopped_because, "deviance" if last else "end"),
            *([] if last else [Claim("path_.n_alphas", len(points), len(self.grids[self.chosen]))]),
        ]

    def _point(self, i: int, point: PathPoint, terms: ObjectiveOfData) -> tuple[Any, ...]:
        """Objective, loss, its share, gap, what rounding may change in both, status and clusters."""
        d, null_loss = self.job.data.n_features, self.model.null_loss
        B = point.coef(d).astype(np.float64)
        intercept = np.asarray(point.intercept, dtype=np.float64)
        solution = Solution(terms, float(point.alpha), B, intercept, point.rows.dtype)
        again = partial(self._point_again, i)
        gap, between = solution.gap(point, again)
        ratio = 1.0 - solution.loss / null_loss if null_loss > 0.0 else 1.0
        stated = np.zeros(d, dtype=np.intp)
        stated[point.support] = point.clusters
        clusters = cluster_numbers(self.model, B, stated)[point.support]
        status = solution.status(point, float(self.fit.tol))
        return solution.objective, solution.loss, ratio, gap, solution.allowance, between, status, clusters

    def _point_again(self, i: int) -> PathPoint:
        points = self._path_again.points
        return points[min(i, len(points) - 1)]

    # The choice ---------------------------------------------------------------------------------------

    def _choice_claims(self) -> list[Claim]:
        """Each weight sequence, the choice among them, and the attributes that repeat what was chosen."""
        fit, reports = self.fit, self.fit.search_results_
        expected = sorted(_COMMON | (_OF_CRITERIA if self.by_criteria else _OF_FOLDS))
        described = Claim("search_results_", [sorted(report) for report in reports], [expected] * len(self.models))
        if described.complaint() is not None:
            return [described]
        claims = [described]
        for k, report in enumerate(reports):
            claims += self._report_claims(
                k, report, f"search_results_[{k}]." if len(reports) > 1 else "search_results_."
            )
        name, best = ("criterion_path", np.nanmin) if self.by_criteria else ("mean_score_path", np.nanmax)
        merits = [float(best(report[name])) for report in reports]
        winner = int(np.argmax(np.negative(merits) if self.by_criteria else merits))
        claims.append(Claim("the chosen weight sequence", self.chosen, winner))
        report = reports[self.chosen]
        claims += [Claim(f"{name}_", getattr(fit, f"{name}_", None), report[name]) for name in expected]
        alphas, index = np.asarray(fit.alphas_), report["best_index"]
        found = alphas[index] if index in range(len(alphas)) else np.nan
        claims.append(Claim("alpha_", fit.alpha_, found))
        return claims

    def _report_claims(self, k: int, report: dict[str, Any], prefix: str) -> list[Claim]:
        model, alphas, grid = self.models[k], np.asarray(report["alphas"]), self.grids[k][: len(report["alphas"])]
        claims = [
            Claim(f"{prefix}weights", report["weights"], model.weights, RTOL * model.weights),
            Claim(f"{prefix}alphas", alphas, grid, alpha_allowance(model, float(self.grids[k][0]))),
        ]
        return claims + (self._criterion_claims if self.by_criteria else self._score_claims)(k, report, prefix)

    def _criterion_claims(self, k: int, report: dict[str, Any], prefix: str) -> list[Claim]:
        values = np.asarray(report["criterion_path"])
        claims = [Claim(f"{prefix}best_index", report["best_index"], int(np.argmin(values)))]
        if k == self.chosen:
            if not all(self._is_readable(point) for point in self.fit.path_.points):
                return claims
            path = PathFit(list(self.fit.path_.points), self.fit.path_.stopped_because)
            again, same = judged(self.job, self.model, path), True
        elif self.searched is not None:
            again, same = self.searched[k], self._is_same_way
        else:
            return claims
        found = again.attributes["criterion_path"]
        allowance = _CRITERION_RTOL[same] * max(float(np.ptp(found)), 1.0)
        return [*claims, Claim(f"{prefix}criterion_path", values, found, allowance)]

    def _score_claims(self, k: int, report: dict[str, Any], prefix: str) -> list[Claim]:
        scores, means = np.asarray(report["score_path"]), np.asarray(report["mean_score_path"])
        n_folds = scores.shape[-1] if self.fold_weights is None else len(self.fold_weights)
        shape = Claim(f"{prefix}score_path", np.shape(scores), (len(report["alphas"]), n_folds))
        if shape.complaint() is not None or np.isnan(means).all() or means.shape != scores.shape[:1]:
            return [shape, Claim(f"{prefix}mean_score_path", means, np.nanmean(scores, axis=-1))]
        errors = standard_errors(scores)
        size = np.abs(scores).max(axis=1)
        best = choose(self.fit.selection, means, errors)
        claims = [
            Claim(f"{prefix}std_error_path", report["std_error_path"], errors, RTOL * size),
            Claim(f"{prefix}best_index", report["best_index"], best),
            Claim(f"{prefix}best_score", report["best_score"], means[best]),
        ]
        if self.fold_weights is not None:
            found = mean_scores(scores, self.fold_weights)
            claims.append(Claim(f"{prefix}mean_score_path", means, found, RTOL * size))
        if self.searched is not None:
            claims += self._scores_again(self.searched[k], report, prefix)
        return claims

    def _scores_again(self, again: Searched, report: dict[str, Any], prefix: str) -> list[Claim]:
        """Scores beside those of folds that were fitted again, which are as uncertain as their tolerance says."""
        claimed, found = np.asarray(report["score_path"]), again.attributes["score_path"]
        count = min(len(claimed), len(found))  # paths end where the deviance is explained
        share = (_SAME_STEPS if self._is_same_way else _OTHER_STEPS) * np.sqrt(max(float(self.fit.tol), FOLD_TOL))
        size = np.maximum(np.abs(found[:count]), np.abs(found[:1]))
        claims = [Claim(f"{prefix}score_path", claimed[:count], found[:count], share * size)]
        frequency = np.asarray(report["selection_frequency"])
        if self._is_same_way:
            claims.append(Claim(f"{prefix}selection_frequency", frequency, again.attributes["selection_frequency"]))
        return claims


def _distance(weights: Any, others: FloatArray) -> float:
    """Largest difference of two weight sequences; infinity where they cannot be compared."""
    given = np.asarray(weights)
    if given.shape != others.shape or given.dtype.kind not in "iuf":
        return np.inf
    distance = float(np.abs(given - others).max())
    return distance if np.isfinite(distance) else np.inf


def _are_equal(folds: list[Fold], others: list[Fold]) -> bool:
    return len(folds) == len(others) and all(
        np.array_equal(one.train, other.train) and np.array_equal(one.test, other.test)
        for one, other in zip(folds, others, strict=True)
    )


def _all(points: Any, name: str) -> list[Any]:
    return [getattr(point, name) for point in points]


def _each(points: Any, name: str) -> Any:
    return np.array(_all(points, name))
