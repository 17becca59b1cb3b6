"""What a search for alpha says, checked on the data: its path, its scores, and the choice that follows from them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property, partial
from numbers import Integral
from typing import Any

import numpy as np

from .._typing import FloatArray
from ..model import Model
from ..model_selection import CRITERIA, Choice, Fold, Search
from ..model_selection.criteria import choose, mean_scores, standard_errors
from ..model_selection.search import FOLD_TOL
from ..path import PathPoint, PathResult, resolve_alphas
from ..path.follower import MAX_DEVIANCE
from .verification import (
    GOAL_RTOL,
    RTOL,
    Claim,
    Finding,
    ObjectiveOfData,
    SolutionCheck,
    alpha_allowance,
    cluster_numbers,
    findings,
    real_number,
)

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
    search : Search
        The fit as its parameters ask for it, on the data given; its estimator is the one whose claims are checked.
    models : list of Model
        One for each weight sequence.
    """

    def __init__(self, search: Search, models: list[Model]) -> None:
        self.search = search
        self.fit = search.estimator
        self.models = models
        self.chosen = int(np.argmin([_distance(self.fit.weights_, model.weights) for model in models]))
        self.model = models[self.chosen]
        self.grids = [resolve_alphas(self.fit.alphas, self.fit.eps, model) for model in models]
        self.by_criteria = self.fit.selection in CRITERIA
        self.fold_weights: FloatArray | None = None
        self.again: list[Choice] | None = None  # the same search once more

    def findings(self, scores: bool, *, chosen_holds: bool) -> list[Finding]:
        """All that is wrong, what is right, and of the scores whether they were computed again."""
        reason = self._reason_against_folds(required=scores)
        if not chosen_holds:
            reason = reason or "the chosen fit does not hold"
        if not reason:
            self.again = self.search.run(self.models, self.grids)
        found = [
            *findings(self._path_claims(), f"each of {len(self.fit.path_)} alphas certified again"),
            *findings(self._choice_claims(), "the choice and what it follows from"),
        ]
        if self.by_criteria and len(self.models) == 1:
            return found
        what = "the criteria of other weight sequences" if self.by_criteria else "the held-out scores"
        if self.again is None:
            return [*found, Finding(True, f"{what} are NOT computed again: {reason}")]
        how = "by the same steps" if self._is_same_way else "by other steps, so that they agree roughly only"
        return [*found, Finding(True, f"{what} are computed again, {how}")]

    # What can be computed again -----------------------------------------------------------------------

    def _reason_against_folds(self, required: bool) -> str:
        """Why scores cannot be computed again, or are not to be; empty otherwise. Folds have weights from here on."""
        reason = "" if required else "scores=False"
        if self.by_criteria:
            return reason
        if self.search.parts:
            self.fold_weights = np.array([part.total_weight for part in self.search.parts])
        elif self.search.data.is_summarized:
            return "statistics of all samples have no folds; give those of each fold"
        elif isinstance(self.fit.cv, Iterator):
            return "cv is an iterator, which is used up"
        else:
            try:
                folds, others = self.search.folds(), self.search.folds()
            except ValueError as error:
                if not required:
                    return reason
                raise ValueError(
                    f"the samples cannot be split again by cv={self.fit.cv!r}: {error} Give verify what fit had, for "
                    "example groups, or scores=False."
                ) from error
            if not _are_equal(folds, others):
                return "cv makes other folds each time; give it a random_state"
            self.fold_weights = np.array([self.search.weight[fold.test].sum() for fold in folds])
        return reason

    @cached_property
    def _path_again(self) -> PathResult:
        if self.again is not None:
            return self.again[self.chosen].path
        return self.search.paths([self.model], [self.grids[self.chosen]])[0]

    def _point_again(self, i: int) -> PathPoint:
        return self._path_again.points[min(i, len(self._path_again) - 1)]

    @cached_property
    def _is_same_way(self) -> bool:
        """Whether the fits on all data have taken the same steps as then."""
        return np.array_equal(self._path_again.n_iters, self.fit.path_.n_iters)

    # The path -----------------------------------------------------------------------------------------

    def _path_claims(self) -> list[Claim]:
        fit, path, model = self.fit, self.fit.path_, self.model
        claims = [
            Claim("path_.alphas", path.alphas, np.asarray(fit.alphas_)),
            Claim("path_.weights", path.weights, model.weights, RTOL * model.weights),
            Claim("path_.alpha_max", path.alpha_max, model.alpha_max, alpha_allowance(model, model.alpha_max)),
            Claim("path_.null_loss", path.null_loss, model.null_loss, GOAL_RTOL * model.null_loss),
            Claim("path_.unpenalized", path.unpenalized, model.unpenalized),
            Claim("path_.n_features", path.n_features, self.search.data.n_features),
            Claim("path_.loss", path.loss, model.problem.loss.name),
            Claim("path_.fit_intercept", path.fit_intercept, bool(fit.fit_intercept)),
            Claim("path_.feature_names", path.feature_names, getattr(fit, "feature_names_in_", None)),
            Claim("path_.target_names", path.target_names, getattr(fit, "target_names_", None)),
            Claim("path_.classes", path.classes, getattr(fit, "classes_", None)),
        ]
        if damaged := [i for i, point in enumerate(path.points) if not self._is_readable(point)]:
            what = "coefficients of these features and targets"
            return [*claims, *(Claim(f"path_[{i}]", "damaged", what) for i in damaged)]
        return claims + self._point_claims()

    def _is_readable(self, point: PathPoint) -> bool:
        d, q = self.search.data.n_features, self.search.data.n_targets
        support = np.asarray(point.support)
        shapes = (np.shape(point.clusters), np.shape(point.rows), np.shape(point.intercept))
        return bool(
            support.dtype.kind in "iu"
            and (np.diff(support) > 0).all()
            and ((support >= 0) & (support < d)).all()
            and shapes == ((len(support),), (len(support), q), (q,))
            and np.isfinite(point.rows).all()
            and np.isfinite(point.intercept).all()
            and np.isfinite(real_number(point.loss))
            and 0.0 < real_number(point.alpha) < np.inf
        )

    def _point_claims(self) -> list[Claim]:
        """Objective, gap, loss and clusters of each point, from its coefficients and the data."""
        path, d = self.fit.path_, self.search.data.n_features
        terms = ObjectiveOfData(self.search.data, self.model, bool(self.fit.standardize))
        checks, gaps, clusters = [], [], []
        for i, point in enumerate(path.points):
            B = point.coef(d).astype(np.float64)
            offset = np.asarray(point.intercept, dtype=np.float64)
            check = SolutionCheck(terms, float(point.alpha), B, offset, point.rows.dtype)
            checks.append(check)
            gaps.append(check.gap(point, partial(self._point_again, i)))
            stated = np.zeros(d, dtype=np.intp)
            stated[point.support] = point.clusters
            clusters.append(cluster_numbers(self.model, B, stated)[point.support])
        losses, scale = np.array([check.loss for check in checks]), self.model.problem.loss_scale
        ratios = np.array([self.model.problem.explained(loss) for loss in losses])
        statuses = [check.status(point, float(self.fit.tol)) for check, point in zip(checks, path.points, strict=True)]
        n_selected = [np.count_nonzero(~np.isin(point.support, self.model.unpenalized)) for point in path.points]
        allowance = np.array([check.allowance for check in checks])
        # The last ratio is compared with its own above.
        is_cut = real_number(path.points[-1].deviance_ratio) >= MAX_DEVIANCE and isinstance(self.fit.alphas, Integral)
        primals = np.array([point.primal for point in path.points])
        found_clusters = np.concatenate(clusters)
        return [
            Claim("path_.primal", primals, [check.objective for check in checks], allowance),
            Claim("path_.dual_gaps", path.dual_gaps, [gap for gap, _ in gaps], np.array([room for _, room in gaps])),
            Claim("path_.losses", path.losses, losses, allowance),
            Claim("path_.deviance_ratio", path.deviance_ratio, ratios, allowance / (scale or np.inf)),
            Claim("path_.n_selected", path.n_selected, n_selected),
            Claim("path_.clusters", np.concatenate([point.clusters for point in path.points]), found_clusters),
            Claim("path_.statuses", path.statuses, statuses),
            Claim("path_.stopped_because", path.stopped_because, "deviance" if is_cut else "end"),
            *([] if is_cut else [Claim("path_.n_alphas", len(path), len(self.grids[self.chosen]))]),
        ]

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
            prefix = f"search_results_[{k}]." if len(reports) > 1 else "search_results_."
            model, grid = self.models[k], self.grids[k]
            alphas = np.asarray(report["alphas"])
            claims += [
                Claim(f"{prefix}weights", report["weights"], model.weights, RTOL * model.weights),
                Claim(f"{prefix}alphas", alphas, grid[: len(alphas)], alpha_allowance(model, float(grid[0]))),
                *(self._criterion_claims if self.by_criteria else self._score_claims)(k, report, prefix),
            ]
        name, sign = ("criterion_path", -1.0) if self.by_criteria else ("mean_score_path", 1.0)
        winner = int(np.argmax([np.nanmax(sign * np.asarray(report[name])) for report in reports]))
        report, alphas = reports[self.chosen], np.asarray(fit.alphas_)
        alpha = alphas[report["best_index"]] if report["best_index"] in range(len(alphas)) else np.nan
        return [
            *claims,
            Claim("the chosen weight sequence", self.chosen, winner),
            *(Claim(f"{name}_", getattr(fit, f"{name}_", None), report[name]) for name in expected),
            Claim("alpha_", fit.alpha_, alpha),
        ]

    def _criterion_claims(self, k: int, report: dict[str, Any], prefix: str) -> list[Claim]:
        values = np.asarray(report["criterion_path"])
        claims = [Claim(f"{prefix}best_index", report["best_index"], int(np.argmin(values)))]
        if k == self.chosen:
            if not all(self._is_readable(point) for point in self.fit.path_.points):
                return claims
            again, is_same = self.search.choose_by_criterion(self.model, self.fit.path_), True
        elif self.again is not None:
            again, is_same = self.again[k], self._is_same_way
        else:
            return claims
        found = again.report["criterion_path"]
        allowance = _CRITERION_RTOL[is_same] * max(float(np.ptp(found)), 1.0)
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
        if self.again is None:
            return claims
        # Folds that were fitted again are as uncertain as their tolerance says.
        again = self.again[k].report
        count = min(len(scores), len(again["score_path"]))  # paths end where the deviance is explained
        found = again["score_path"][:count]
        share = (_SAME_STEPS if self._is_same_way else _OTHER_STEPS) * np.sqrt(max(float(self.fit.tol), FOLD_TOL))
        size = np.maximum(np.abs(found), np.abs(found[:1]))
        claims.append(Claim(f"{prefix}score_path", scores[:count], found, share * size))
        if self._is_same_way:
            frequency = np.asarray(report["selection_frequency"])
            claims.append(Claim(f"{prefix}selection_frequency", frequency, again["selection_frequency"]))
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
