"""The choice of alpha: paths on all data, fits and scores of the folds or an information criterion, and the best."""

from __future__ import annotations

import numbers
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter
from typing import Any, NamedTuple

import joblib
import numpy as np
from scipy.special import gammaln
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.parallel import Parallel, delayed

from .._checks import finite_number, lookup
from .._progress import current_line
from .._resume import ResumeFolder, described, fingerprint
from .._threads import Stop
from .._typing import FloatArray, IndexArray
from ..designs import Design, SufficientStatistics, as_design
from ..losses import resolve_loss
from ..model import Model, build_model, relaxed_coefficients
from ..norm import PLAIN, PenaltyOptions
from ..norm.kernels import EPS
from ..path import PathResult, Solution, fit_path
from ..path.follower import MAX_DEVIANCE, Follower
from ..path.kept_points import KeptPoints, path_facts, solution_folder
from ..solvers import SolverSettings
from ..solvers.continuation import compiled_data, may_ask_kernel
from ..weights import sequence_names
from .folds import (
    Fold,
    LossScore,
    Score,
    StatisticsScore,
    check_training_tasks,
    chosen_statistics,
    criteria_serve,
    make_folds,
    with_statistics,
)
from .freedom import degrees_of_freedom

#: Rules that choose from the scores of folds.
FOLD_RULES = ("min", "1se")
#: Fold scores do not need more digits than this; a looser tol is kept.
FOLD_TOL = 1e-4
# Work has seeds of its own, so that the answer does not depend on the number of jobs.
_MOST_SEEDS = np.iinfo(np.int64).max


@dataclass(frozen=True, eq=False)
class Fitting:
    """How models are fitted, whatever the samples.

    ``two_classes``: the one column of targets stands for two, whose coefficients differ by their sign. ``offset_size``:
    the largest offset that was taken off the targets.
    """

    loss: Any
    fit_intercept: bool
    standardize: bool
    unpenalized: IndexArray
    settings: SolverSettings
    relaxed: bool = False
    two_classes: bool = False
    options: PenaltyOptions = PLAIN
    offset_size: float = 0.0

    def model(self, X: Any, Y: Any, weights: Any, sample_weight: Any) -> Model:
        """The model of some samples."""
        return build_model(
            X,
            Y,
            loss=self.loss,
            weights=weights,
            fit_intercept=self.fit_intercept,
            standardize=self.standardize,
            sample_weight=sample_weight,
            unpenalized=self.unpenalized,
            two_classes=self.two_classes,
            options=self.options,
            offset_size=self.offset_size,
        )


# One fold -----------------------------------------------------------------------------------------------


class TrainingSet(NamedTuple):
    """What a fold trains on: all samples of a design or some rows of it, or their sufficient statistics alone."""

    X: Any
    Y: Any = None
    sample_weight: Any = None
    rows: Any = None

    def fit(
        self, fitting: Fitting, weights: FloatArray, alphas: FloatArray, seed: int, what: str = ""
    ) -> tuple[list[Solution], int]:
        """A solution for each alpha, and how many fits fell short of the tolerance."""
        X, Y, weight = self.X, self.Y, self.sample_weight
        if self.rows is not None:
            X, Y, weight = X.rows(self.rows), Y[self.rows], weight[self.rows]
        known = np.zeros(0)  # statistics are of numbers
        if Y is not None:
            loss = resolve_loss(fitting.loss)
            known = loss.determined(np.nanmean(loss.targets(Y), axis=0))
            Y = loss.of_tasks(Y, np.isnan(known))
            weight = weight[:, np.isnan(known)] if np.ndim(weight) == 2 else weight
            if Y.shape[1] == 0:
                nothing = Solution(np.zeros(0, dtype=np.intp), np.zeros((0, 0)), np.zeros(0))
                return [_with_known(nothing, known)] * len(alphas), 0
        model = fitting.model(X, Y, weights, weight)
        follower = Follower(model, alphas, replace(fitting.settings, rng=np.random.default_rng(seed)), what)
        solutions = follower.follow()
        if fitting.relaxed:
            solutions = relaxed_solutions(model, solutions)
        if not np.isnan(known).all():
            solutions = [_with_known(solution, known) for solution in solutions]
        return solutions, follower.n_short


def _with_known(solution: Solution, known: FloatArray) -> Solution:
    """Add the tasks whose predictor is known, and for which nothing was fitted."""
    rows, intercept, is_fitted = np.zeros((len(solution.support), len(known))), known.copy(), np.isnan(known)
    rows[:, is_fitted] = solution.rows
    intercept[is_fitted] = solution.intercept
    return Solution(solution.support, rows, intercept)


def relaxed_solutions(model: Model, solutions: Any) -> list[Solution]:
    """Each solution fitted anew to its support, each support once."""
    known: dict[bytes, Solution] = {}
    for solution in solutions:
        key = solution.support.tobytes()
        if key not in known:
            B, intercept, _ = relaxed_coefficients(model, solution.support, judge=False)
            known[key] = Solution(solution.support, B[solution.support], intercept)
    return [known[solution.support.tobytes()] for solution in solutions]


class FoldTask(NamedTuple):
    """One training set, one weight sequence: the unit of work of cross-validation."""

    training: TrainingSet
    score: Score
    weight: float  # of the samples that are scored
    fold: Fold | None = None  # None where samples are known by their statistics only


@dataclass(frozen=True, eq=False)
class FoldResult:
    """What a fold found.

    Attributes
    ----------
    scores : ndarray of shape (n_alphas,)
    supports : list of ndarray of int
        Features with coefficients, for each alpha.
    n_short : int
        Fits that fell short of the tolerance.
    solutions : list of Solution
        For each alpha, where they are to be kept.
    """

    scores: FloatArray
    supports: list[IndexArray]
    n_short: int
    solutions: list[Solution]


def run_fold(
    task: FoldTask,
    fitting: Fitting,
    weights: FloatArray,
    alphas: FloatArray,
    seed: int,
    what: str = "",
    keeps_solutions: bool = False,
) -> FoldResult:
    """Fit the path of a fold and score it; ``what`` begins lines of progress."""
    solutions, n_short = task.training.fit(fitting, weights, alphas, seed, what)
    scores = task.score(solutions, alphas, weights)
    kept = solutions if keeps_solutions else []
    return FoldResult(scores, list(map(attrgetter("support"), solutions)), n_short, kept)


def _numbered_fold(number: int, *work: Any) -> tuple[int, FoldResult]:
    """The same with its number: those that run side by side end in any order."""
    return number, run_fold(*work)


@contextmanager
def _closed_quietly(results: Any) -> Iterator[Any]:
    """Results of joblib, which warns of those that nobody waits for any more: after an interrupt that is no news."""
    try:
        yield results
    finally:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            results.close()


class KeptFolds:
    """Results of folds in a folder, a file for each; without a folder nothing is read and written.

    A file without solutions is of no use where these are to be kept.
    """

    def __init__(self, folder: ResumeFolder | None, keeps_solutions: bool = False) -> None:
        self.folder = folder
        self.keeps_solutions = keeps_solutions

    def read(self, number: int, n_alphas: int) -> FoldResult | None:
        """What is there, or None."""
        found = None if self.folder is None else self.folder.read(f"fold_{number:05d}")
        needed = {"scores", "features", "sizes", "n_short"} | (
            {"rows", "intercepts"} if self.keeps_solutions else set()
        )
        if found is None or not needed <= found.keys():
            return None
        if len(found["scores"]) != n_alphas:  # the path has ended elsewhere
            return None
        ends = np.cumsum(found["sizes"])[:-1]
        supports, solutions = np.split(found["features"].astype(np.intp), ends), []
        if self.keeps_solutions:
            solutions = list(map(Solution, supports, np.split(found["rows"], ends), found["intercepts"]))
        return FoldResult(found["scores"], supports, int(found["n_short"]), solutions)

    def write(self, number: int, result: FoldResult) -> None:
        """Keep a result."""
        if self.folder is not None:
            sizes = list(map(len, result.supports))
            features = np.concatenate(result.supports)
            kept = {"scores": result.scores, "features": features, "sizes": sizes, "n_short": result.n_short}
            if self.keeps_solutions:
                kept["rows"] = np.concatenate([solution.rows for solution in result.solutions])
                kept["intercepts"] = np.stack([solution.intercept for solution in result.solutions])
            self.folder.write(f"fold_{number:05d}", **kept)


# From the scores of folds to one alpha ------------------------------------------------------------------


@np.errstate(all="ignore")  # scores that are not finite have means that are not
def mean_scores(scores: FloatArray, fold_weights: FloatArray) -> FloatArray:
    """Mean over folds for each alpha, weighted by the weight of the test samples."""
    shares = fold_weights / fold_weights.max()
    return scores @ (shares / shares.sum())


@np.errstate(all="ignore")
def standard_errors(scores: FloatArray, repeats: int = 1) -> FloatArray:
    """Standard deviation over folds (ddof 1) divided by the root of their number; NaN for a single fold.

    Of repeated folds it is the number of one repetition that counts: repetitions share their samples.
    """
    n_alphas, n_folds = scores.shape
    if n_folds < 2:
        return np.full(n_alphas, np.nan)
    size = np.abs(scores).max(axis=1, keepdims=True)
    size[(size == 0.0) | ~np.isfinite(size)] = 1.0
    deviations = size[:, 0] * np.std(scores / size, axis=1, ddof=1)  # squares of large scores would overflow
    return deviations / np.sqrt(n_folds / repeats)


def repeats_of(cv: Any) -> int:
    """How often a splitter makes all of its folds."""
    return int(getattr(cv, "n_repeats", 1))


@np.errstate(all="ignore")
def choose(selection: str, means: FloatArray, errors: FloatArray) -> int:
    """Index of the chosen alpha; alphas fall, and of equal scores the largest alpha counts.

    "min" takes the best mean score, "1se" the largest alpha whose mean score is within one standard error of it.
    """
    if np.isnan(means).all():
        raise ValueError(
            "every mean score is NaN: scoring is not defined on the test samples of some fold. Choose another scoring, "
            "or folds that have all classes."
        )
    best = int(np.nanargmax(means))
    if selection == "min":
        return best
    if np.isnan(errors[best]):
        raise ValueError("selection='1se' needs at least two folds with test samples of positive weight.")
    return int(np.flatnonzero(means >= means[best] - errors[best])[0])


def score_report(selection: str, scores: FloatArray, means: FloatArray, repeats: int = 1) -> dict[str, Any]:
    """Scores of folds, of shape (n_alphas, n_folds), their means and errors, and the alpha that they choose."""
    errors = standard_errors(scores, repeats)
    best = choose(selection, means, errors)
    return {
        "best_index": best,
        "score_path": scores,
        "mean_score_path": means,
        "best_score": float(means[best]),
        "std_error_path": errors,
    }


# Information criteria: the likelihood of a fit against its degrees of freedom, without folds ---------------

#: Weight of the number of supports of a size in the extended criterion.
EBIC_GAMMA = 0.5


class Likelihood(NamedTuple):
    """What all fits of a data set share.

    Attributes
    ----------
    loss : str or Loss
        Which knows its ``minus_twice_log_likelihood`` and its ``parameters_per_feature``.
    n_samples : float
        Total sample weight: a weight of 2 counts as two samples.
    n_columns : int
        Targets or classes.
    n_penalized : int
        Features, or groups of them, to choose from.
    null_loss : float
        Loss without features, per unit of sample weight.
    """

    loss: Any
    n_samples: float
    n_columns: int
    n_penalized: int
    null_loss: float

    @property
    def _loss(self) -> Any:
        return resolve_loss(self.loss)

    @property
    def n_observations(self) -> float:
        """Numbers that the fits explain."""
        return self.n_samples * float(self._loss.parameters_per_feature(self.n_columns))

    def deviance(self, loss: float) -> float:
        """Minus twice the logarithm of the likelihood, of a fit with this loss per unit of sample weight."""
        return float(self._loss.minus_twice_log_likelihood(loss, EPS * self.null_loss, self.n_samples, self.n_columns))

    def relaxed_freedom(self, n_selected: int, n_free: int, fit_intercept: bool) -> int:
        """Degrees of freedom of a fit that is free on its support."""
        return int(self._loss.parameters_per_feature(self.n_columns)) * (n_selected + n_free + fit_intercept)


# By name: the price of a degree of freedom, given the number of samples, and the weight of the number of supports.
_PRICES: dict[str, Any] = {"aic": (lambda n_samples: 2.0, 0.0), "bic": (np.log, 0.0), "ebic": (np.log, EBIC_GAMMA)}
#: Names of the criteria.
CRITERIA = tuple(_PRICES)


def criterion_path(name: str, likelihood: Likelihood, fits: Iterable[tuple[float, float, int]]) -> FloatArray:
    """The criterion of each fit, from its loss, degrees of freedom and number of selected features; lower is better.

    The price of a degree of freedom rises as those of the data are used up, by the factor of Hurvich and Tsai (1989;
    McQuarrie and Tsai 1998 for the Bayesian one): without it the best fit is often the one that leaves no errors.
    """
    price, gamma = lookup("selection", name, _PRICES)
    d, n_observations = likelihood.n_penalized, likelihood.n_observations
    values = []
    for loss, freedom, k in fits:
        n_supports = gammaln(d + 1) - gammaln(k + 1) - gammaln(d - k + 1)  # logarithm of d choose k
        scarcity = n_observations / max(n_observations - freedom - 1.0, 1.0)
        penalty = price(likelihood.n_samples) * freedom * scarcity + 2.0 * gamma * n_supports
        values.append(likelihood.deviance(loss) + penalty)
    return np.array(values)


# The search -------------------------------------------------------------------------------------------


def tunes_ridge(estimator: Any) -> bool:
    """Whether an estimator has several ridges to choose from, or a list of one."""
    return isinstance(estimator.ridge, list | tuple | np.ndarray)


def ridges_of(estimator: Any) -> list[float]:
    """All ridges that an estimator is to choose from."""
    given = list(np.ravel(estimator.ridge)) if tunes_ridge(estimator) else [estimator.ridge]
    if not given:
        raise ValueError("ridge is an empty list: give a number, or a list of at least one.")
    return [finite_number("ridge", ridge, at_least=0.0) for ridge in given]


def candidate_names(estimator: Any) -> list[str]:
    """Names of the candidates of the search: weight sequences, ridges, or pairs of them, in order."""
    names = sequence_names(estimator.weights)
    if not tunes_ridge(estimator):
        return names
    ridges = [f"ridge {ridge:g}" for ridge in ridges_of(estimator)]
    return ridges if len(names) == 1 else [f"{name}, {ridge}" for name in names for ridge in ridges]


def _without_unfinished(path: PathResult) -> PathResult:
    """A path without the solution at which a callback has stopped it half-way, which is not to be chosen."""
    if len(path) < 2 or path.points[-1].status != "callback":
        return path
    return replace(path[:-1], stopped_because="callback")


class Choice(NamedTuple):
    """What was found for one weight sequence and ridge: the path on all data, and what the choice is made from.

    ``held_out``, where it is to be kept: each fold, and what its fit at the chosen alpha predicts for the samples that
    it tests. ``criteria``, where one of them decides: all information criteria along the path, by name.
    """

    model: Model
    path: PathResult
    report: dict[str, Any]  # fitted attributes, without the underscore
    held_out: tuple[tuple[Fold, FloatArray], ...] = ()
    criteria: dict[str, FloatArray] = {}  # noqa: RUF012  # which nobody changes


def merit(report: dict[str, Any]) -> float:
    """What weight sequences and ridges are compared by."""
    if "criterion_path" in report:
        return -float(np.min(report["criterion_path"]))
    return float(np.nanmax(report["mean_score_path"]))


def value_path(report: dict[str, Any]) -> FloatArray:
    """The criterion at each alpha where it decides, else the mean score."""
    values: FloatArray = report["criterion_path" if "criterion_path" in report else "mean_score_path"]
    return values


def best_sequence(reports: list[dict[str, Any]]) -> int:
    """Position of the weight sequence, with its ridge, that is taken."""
    return int(np.argmax(list(map(merit, reports))))


@dataclass(frozen=True, eq=False)
class Search:
    """Data, models and grids of a search for alpha, whether folds or a criterion decide.

    Attributes
    ----------
    estimator : GroupOWLBase
        Whose parameters say what to search; it stays as it is.
    data : FitData
        The samples.
    weight : ndarray of shape (n_samples,)
        Of the samples as the user gave it, for scores; the mean over targets where some were not observed.
    y : ndarray
        Targets or labels, for splitters.
    fitting : Fitting
        Of the fits on all data.
    models, grids : list
        The model of all data for each weight sequence and ridge, and its alphas.
    ridges : list of float
        The ridge of each model.
    score : callable or None
        Gives test samples and solutions scores; None is the score of the loss.
    splitter_params : dict
        Arguments of the splitter.
    parts : list of SufficientStatistics
        Of each fold, where they were given in place of samples.
    of_entries : ndarray of shape (n_samples,) or (n_samples, n_targets)
        Weights as the user gave them.
    """

    estimator: Any
    data: Any
    weight: FloatArray
    y: Any
    fitting: Fitting
    models: list[Model]
    grids: list[FloatArray]
    ridges: list[float]
    score: Any
    splitter_params: dict[str, Any]
    parts: list[SufficientStatistics]
    of_entries: FloatArray

    def fitting_of(self, i: int) -> Fitting:
        """How a model is fitted, with its ridge."""
        return replace(self.fitting, options=replace(self.fitting.options, ridge=self.ridges[i]))

    def run(self, resume: Any = None) -> list[Choice]:
        """Fit the path of each weight sequence and ridge on all data, and choose an alpha for each.

        ``resume`` is a folder that keeps what is finished.
        """
        models = self.models
        if self.estimator.selection in CRITERIA:
            choices = []
            for model, path in zip(models, self.paths(self._folder(resume), share=1.0), strict=True):
                criteria = self.criteria(model, path)
                by_criterion = self.criterion_report(model, path, criteria)
                choices.append(Choice(model, path, by_criterion, criteria=criteria))
            return choices
        folds = [] if self.parts else self.folds()
        tasks, total = self._fold_tasks(folds)
        folder = self._folder(resume, folds)
        if total is not None:
            models = [with_statistics(model, total, self.fitting.standardize) for model in models]
        share = 1.0 / (1 + len(tasks))  # of the paths on all data in all that is to be done
        paths = replace(self, models=models).paths(folder, share=share)
        settings, stop = self.fitting.settings, Stop()
        of_folds = replace(settings, tol=max(settings.tol, FOLD_TOL), interrupted=stop)
        work, names, keeps = [], [], self.estimator._keeps_details
        for i, (model, path) in enumerate(zip(models, paths, strict=True)):
            alphas = self.grids[i][: len(path.points)]
            fitting = replace(self.fitting_of(i), settings=of_folds)
            for f, task in enumerate(tasks):
                what = self._what(i, f"fold {f + 1}/{len(tasks)}") if self.estimator.verbose else ""
                seed = int(settings.rng.integers(_MOST_SEEDS))
                work.append((task, fitting, model.weights, alphas, seed, what, keeps))
                names.append(what)
        in_kernel = may_ask_kernel(settings) and compiled_data(models[0].problem) is not None
        prefer = "threads" if in_kernel and self.score is None else None  # scorers of scikit-learn's are Python
        try:
            results = self._run_folds(work, names, KeptFolds(folder, keeps), prefer, share)
        except BaseException:
            stop.is_over = True  # for folds that run in threads
            raise
        if n_short := sum(map(attrgetter("n_short"), results)):
            n_fits = sum(len(result.scores) for result in results)
            warnings.warn(
                f"{n_short} of {n_fits} fits of the folds stopped short of their tolerance, "
                f"{of_folds.tol:g} of the null model's loss: their scores may be off. "
                f"Raise max_iter={settings.max_iter}, or rescale the columns of X.",
                ConvergenceWarning,
                stacklevel=3,
            )
        choices, fold_weights = [], np.array(list(map(attrgetter("weight"), tasks)))
        held_out: tuple[tuple[Fold, FloatArray], ...] = ()
        for i, (model, path) in enumerate(zip(models, paths, strict=True)):
            of_model = results[i * len(tasks) : (i + 1) * len(tasks)]
            scores = np.stack(list(map(attrgetter("scores"), of_model)), axis=1)
            report: dict[str, Any] = {"weights": model.weights, "alphas": self.grids[i][: len(path.points)]}
            report |= {"ridge": self.ridges[i]} if tunes_ridge(self.estimator) else {}
            means = mean_scores(scores, fold_weights)
            report |= score_report(self.estimator.selection, scores, means, repeats_of(self.estimator.cv))
            frequency = np.zeros(model.problem.n_rows, dtype=np.intp)
            for result in of_model:
                frequency[result.supports[report["best_index"]]] += 1
            if keeps:
                chosen = [result.solutions[report["best_index"]] for result in of_model]
                held_out = self._held_out(tasks, chosen)
            choices.append(Choice(model, path, report | {"selection_frequency": frequency}, held_out))
        return choices

    def _held_out(self, tasks: list[FoldTask], solutions: list[Solution]) -> tuple[tuple[Fold, FloatArray], ...]:
        """Each fold with the predictors of its solution for the samples that it tests, without the offset."""
        design, found = as_design(self.data.X), []
        for task, solution in zip(tasks, solutions, strict=True):
            assert task.fold is not None
            Z = design.rows(task.fold.test).matmul(solution.coef(design.n_features), solution.intercept)
            found.append((task.fold, np.asarray(Z)))
        return tuple(found)

    def _run_folds(
        self, work: list[Any], names: list[str], kept: KeptFolds, prefer: str | None, share: float
    ) -> list[FoldResult]:
        """Results of all folds, in their order; those that are kept already are not fitted again."""
        n_folds, line = len(work), current_line()
        found = {number: kept.read(number, len(alphas)) for number, (_, _, _, alphas, *_) in enumerate(work)}
        missing = [number for number, result in found.items() if result is None]
        n_done = n_folds - len(missing)

        def advance() -> None:
            if line is not None:
                line.stretch(*(share + (1.0 - share) * (n_done + part) / n_folds for part in (0.0, 1.0)))

        advance()
        # scikit-learn's twins of these set filters of warnings in every thread, which are those of the whole process.
        run, later = (joblib.Parallel, joblib.delayed) if prefer == "threads" else (Parallel, delayed)
        jobs = (later(_numbered_fold)(number, *work[number]) for number in missing)
        parallel = run(n_jobs=self.estimator.n_jobs, prefer=prefer, return_as="generator_unordered")
        with _closed_quietly(parallel(jobs)) as results:
            for number, result in results:
                kept.write(number, result)
                found[number] = result
                if line is not None:
                    line.show(f"{names[number]}: {len(result.scores)} alphas", 1.0)
                    line.end()
                n_done += 1
                advance()
        return [result for result in found.values() if result is not None]

    def _folder(self, resume: Any, folds: list[Fold] | None = None) -> ResumeFolder | None:
        """The folder that keeps what is finished, unless it has something of another search."""
        if resume is None:
            return None
        data, estimator = self.data, self.estimator
        facts = path_facts(
            self.models[0],
            self.fitting.settings,
            np.concatenate(self.grids),
            (data.X, data.Y, data.sample_weight),
        )
        facts["the weights"] = fingerprint(*(model.weights for model in self.models))
        facts["ridge"] = list(map(float, self.ridges))
        facts["the folds"] = "none"
        if folds is not None:
            facts["the folds"] = described(folds or self.parts)
            facts["relaxed"] = str(self.fitting.relaxed)
            facts["scoring"] = described(estimator.scoring)
            facts["the weights of the samples in scores"] = fingerprint(self.of_entries)
        return solution_folder(resume, facts)

    def folds(self) -> list[Fold]:
        """The folds of the samples."""
        data = self.data
        split = np.zeros((data.n_samples, 1)) if isinstance(data.X, Design) else data.X
        has_criteria = criteria_serve(self.fitting)
        of_samples = self.y, data.classes, self.weight, self.splitter_params
        return make_folds(self.estimator.cv, split, *of_samples, has_criteria=has_criteria)

    def paths(self, folder: ResumeFolder | None = None, *, share: float = 1.0) -> list[PathResult]:
        """The path of each model on all data; a grid of our own ends where the deviance is explained.

        They are a ``share`` of all that is to be done; a folder keeps their solutions.
        """
        estimator, settings, line = self.estimator, self.fitting.settings, current_line()
        max_deviance = MAX_DEVIANCE if isinstance(estimator.alphas, numbers.Integral) else None
        n_models = len(self.models)
        n_jobs = estimator.n_jobs if n_models > 1 else 1
        is_alone = n_jobs in (None, 1)  # lines of other processes would stand between ours
        shared = {"max_deviance": max_deviance, "verbose": estimator.verbose if is_alone else 0}
        work = []
        for i, (model, grid) in enumerate(zip(self.models, self.grids, strict=True)):
            rng = np.random.default_rng(int(settings.rng.integers(_MOST_SEEDS)))
            own = replace(settings, rng=rng, callback=estimator.callback)
            what = self._what(i, "all data") if estimator.verbose else ""
            kept = None if folder is None else KeptPoints(folder, f"path_{i:03d}_alpha")
            work.append(delayed(fit_path)(model, grid, own, what=what, kept=kept, **shared))

        def begin(i: int) -> None:
            if line is not None:
                line.stretch(share * i / n_models, share * (i + 1) / n_models)

        paths: list[PathResult] = []
        begin(0)
        for path in Parallel(n_jobs=n_jobs, return_as="generator")(work):
            paths.append(_without_unfinished(path))
            if line is not None and not is_alone:
                line.show(f"{self._what(len(paths) - 1, 'all data')}: {len(path)} alphas", 1.0)
                line.end()
            begin(len(paths))
        return paths

    def criterion_report(
        self, model: Model, path: PathResult, criteria: dict[str, FloatArray] | None = None
    ) -> dict[str, Any]:
        """The alpha of the smallest criterion, from all of them where they are known."""
        values = (criteria or self.criteria(model, path))[self.estimator.selection]
        best = int(np.argmin(values))
        return {"weights": model.weights, "alphas": path.alphas, "best_index": best, "criterion_path": values}

    def criteria(self, model: Model, path: PathResult) -> dict[str, FloatArray]:
        """All criteria of the fits of a path, by name; a relaxed fit is judged as it is, free on its support."""
        problem = model.problem
        small = model.small or problem
        sizes = (float(self.weight.sum()), self.data.n_targets, len(model.weights))
        likelihood = Likelihood(problem.loss, *sizes, model.problem.null_loss)
        losses: dict[bytes, float] = {}  # of relaxed fits, each support once
        fits: list[tuple[float, float, int]] = []
        freedom: float
        for point in path.points:
            if self.fitting.relaxed:
                key = point.support.tobytes()
                if key not in losses:
                    B = problem.from_input(*relaxed_coefficients(model, point.support, judge=False)[:2])
                    losses[key] = problem.loss_value(problem.predictor(B))
                loss = losses[key]
                freedom = likelihood.relaxed_freedom(
                    point.n_selected, problem.unpenalized.rank, self.fitting.fit_intercept
                )
            else:
                B = problem.from_input(point.coef(self.data.n_features), point.intercept)
                loss, freedom = point.loss, degrees_of_freedom(small, B)
            fits.append((loss, freedom, model.n_units(point.support)))
        return {name: criterion_path(name, likelihood, fits) for name in CRITERIA}

    def _fold_tasks(self, folds: list[Fold]) -> tuple[list[FoldTask], SufficientStatistics | None]:
        """Training set and score of each fold, and the statistics of all samples if they are used."""
        data = self.data
        statistics = chosen_statistics(self, folds)
        tasks = []
        if statistics is None:
            design, loss = as_design(data.X), resolve_loss(self.fitting.loss)
            weight = self.of_entries if data.sample_weight is None else data.sample_weight  # with that of classes
            for i, fold in enumerate(folds):
                check_training_tasks(i, data, loss, weight, fold)
                score = LossScore(loss, design, data.Y, self.of_entries, fold)
                training = TrainingSet(design, data.Y, weight, fold.train)
                tasks.append(FoldTask(training, score, self.weight[fold.test].sum()))
        else:
            for left, part in zip(statistics.trainings or [], statistics.parts, strict=True):
                tasks.append(FoldTask(TrainingSet(left), StatisticsScore(part), part.total_weight))
        for i, fold in enumerate(folds):
            tasks[i] = tasks[i]._replace(fold=fold)
            if self.score is not None:
                tasks[i] = tasks[i]._replace(score=partial(self.score, fold.test))
        total = None if statistics is None else statistics.total
        return tasks, total

    def _what(self, sequence: int, part: str) -> str:
        """The beginning of a line of progress: estimator, weights and ridge if there are several, part of the work."""
        name, names = type(self.estimator).__name__, candidate_names(self.estimator)
        if len(names) == 1:
            return f"{name}, {part}"
        kind = "candidate" if tunes_ridge(self.estimator) else "weights"
        return f"{name}, {kind} {sequence + 1}/{len(names)} ({names[sequence]}), {part}"
