"""What a run has found, in one value for the report, the summary, the JSON object and the files.

Beside the model: how well it predicts, next to a model without features, and what looks odd about the data or the
choice of alpha.
"""

from __future__ import annotations

import platform
import shlex
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import accuracy_score, log_loss
from sklearn.model_selection import GroupShuffleSplit, ShuffleSplit, StratifiedShuffleSplit

from .. import __version__
from .._checks import entry_weights
from .._text import counted, listed
from .._typing import FloatArray, IndexArray
from ..designs import Design, StandardizedDesign, as_design, standardize
from ..estimators.fit_summary import (
    clusters_of_groups,
    clusters_text,
    coefficient_norms,
    edge_of_grid_text,
    scale_is_known,
    strongest_first,
)
from ..losses import Loss
from ..model_selection import check_folds
from ..model_selection.search import best_sequence, candidate_names, ridges_of, tunes_ridge, value_path
from ..path import PathResult
from ..plotting import SurvivalDisplay
from ..problem import LATER, best_constant, build_problem
from ..tables import Reading, Table
from ..weights import sequence_names
from .messages import Failure

Scores = dict[str, tuple[float, float]]

_VERSIONS = ("numpy", "scipy", "scikit-learn", "pyarrow")
# Names of targets or classes that are listed.
_LISTED = 8
# Columns whose standard deviations differ by more than this are hardly penalized alike.
_LARGEST_RATIO = 100.0
# What became of missing features.
_MISSING = {
    "drop": "their samples were left out",
    "mean": "filled with the mean of the column",
    "median": "filled with the median of the column",
}
# Fewer whole numbers in a row may well be a measurement.
_SHORTEST_COUNT = 10

#: What to know about the score of a cross-validated alpha.
OPTIMISTIC = (
    "The folds that give the score have chosen alpha too, so it is slightly optimistic; --test-size holds out samples "
    "that take no part in the choice."
)
#: What to know about scores without held-out samples.
NOT_HELD_OUT = (
    "No sample was held out: the scores are those of the data of the fit, and say little about new data. Use "
    "--test-size, or the command cv."
)


@dataclass(frozen=True, eq=False)
class Outcome:
    """A fitted model and everything that is said about it.

    Attributes
    ----------
    command : {"fit", "path", "cv"}
    typed : tuple of str
        The command line.
    table : Table
        Data of the fit, without samples that were held out.
    estimator : estimator
        Fitted.
    path : PathResult or None
        Fits at many alphas.
    scores : mapping of str to (float, float)
        Score of the model and of the null model, by a name that says what was held out.
    notes : tuple of str
        Sentences that the user should read.
    seconds : float
        From reading to the end of the fit.
    converged : bool
        Whether all fits met their tolerance.
    reading : Reading or None
        How the file was read.
    test_size : float or None
        Share of the samples that were held out.
    seed : int
    survival : tuple of SurvivalDisplay
        Of times until events: samples by predicted risk, held out or of the fit, for each target.
    fills : list or None
        What stands in for missing cells of each feature.
    """

    command: str
    typed: tuple[str, ...]
    table: Table
    estimator: Any
    path: PathResult | None
    scores: Mapping[str, tuple[float, float]]
    notes: tuple[str, ...]
    seconds: float
    converged: bool = True
    reading: Reading = field(default_factory=Reading)
    test_size: float | None = None
    seed: int = 0
    survival: tuple[SurvivalDisplay, ...] = ()
    fills: list[Any] | None = None

    @property
    def title(self) -> str:
        """What was done, in one line."""
        kind = "Cox regression" if self.table.has_times else self.table.task
        return f"Group OWL {kind}: {self.table.source}"

    @property
    def names(self) -> Sequence[str]:
        """Names of the columns of the coefficients: features, and levels of categories."""
        has_levels = hasattr(self.estimator, "categories_")
        return self.estimator.coef_names_.tolist() if has_levels else self.table.feature_names

    @property
    def features(self) -> list[int]:
        """Positions of the features in the model, strongest first on the scale of the penalty."""
        n_selected = np.count_nonzero(self.estimator.get_support())
        return strongest_first(self.estimator)[:n_selected].tolist()

    @property
    def is_hopeless(self) -> bool:
        """Whether no feature is selected at any alpha: the targets, or all features, are constant."""
        return self.path is not None and self.path.alpha_max == 0.0

    @property
    def weights_name(self) -> str:
        """The weight sequence; of several, the one that was chosen."""
        given, names = self.estimator.weights, sequence_names(self.estimator.weights)
        if len(names) == 1:
            return names[0]
        chosen = names[best_sequence(self.estimator.search_results_) // len(ridges_of(self.estimator))]
        return f"{chosen} (chosen from {given if isinstance(given, str) else ', '.join(given)})"

    @property
    def ridge_text(self) -> str:
        """The ridge, if there is one; of several, the one that was chosen."""
        ridges = ridges_of(self.estimator)
        if len(ridges) > 1:
            return f"{self.estimator.ridge_:g} (chosen from {', '.join(f'{ridge:g}' for ridge in ridges)})"
        return f"{ridges[0]:g}" if ridges[0] > 0.0 else ""

    @property
    def weights_scores(self) -> str:
        """How good the best alpha of each weight sequence and ridge is, where there are several."""
        names = candidate_names(self.estimator)
        if len(names) == 1:
            return ""
        parts = []
        for name, report in zip(names, self.estimator.search_results_, strict=True):
            parts.append(f"{name} {value_path(report)[report['best_index']]:.4g}")
        return ", ".join(parts)

    @property
    def facts(self) -> dict[str, str]:
        """What was fitted, in words."""
        table, estimator, result = self.table, self.estimator, self.estimator.solve_result_
        loss = estimator._fitted_loss
        options = {
            "Missing targets": _missing_text(table),
            "Missing features": _MISSING.get(self.reading.missing or "", ""),
            "Sample weights": self.reading.roles.sample_weight,
            "Groups": self.reading.roles.groups,
            "Strata": self.reading.roles.strata,
            "Offset": self.reading.roles.offset,
            "Exposure": self.reading.roles.exposure,
            "Ridge": self.ridge_text,
            "Not negative": listed(table.positive, shown=_LISTED, quoted=False) if table.positive else "",
            "Loss": "" if table.is_classification or loss.is_quadratic else loss.name,
            "Unpenalized": ", ".join(table.unpenalized),
            "Categories": ", ".join(
                f"{name} ({counted(len(levels), 'level')})"
                for name, levels in getattr(estimator, "categories_", {}).items()
            ),
            "Feature groups": "; ".join(f"{name}: {listed(part)}" for name, part in table.feature_groups.items()),
            "Penalty factors": ", ".join(f"{name} {value:g}" for name, value in table.penalty_factor.items()),
            "Targets from": self.reading.targets_from,
        }
        goal = listed(table.classes or table.target_names, shown=_LISTED, quoted=False)
        if table.is_classification:
            goal = f"{table.target_names[0]}, {len(table.classes)} classes: {goal}"
        rule = getattr(estimator, "selection", None)
        if hasattr(estimator, "score_path_"):
            rule = f"{estimator.score_path_.shape[1]} folds, rule {rule}"
        if rule is not None:
            choice = f"chosen of {len(estimator.alphas_)} by {rule}"
        elif estimator.alpha != "auto":
            choice = "given"
        else:
            choice = "any: no feature explains the targets" if self.is_hopeless else "a tenth of the largest"
        compared = self.weights_scores
        versions = [f"groupowl {__version__}", f"Python {platform.python_version()}"]
        return {
            "File": table.source,
            "Samples": str(table.n_samples) + ("" if self.test_size is None else ", without those held out"),
            "Features": str(table.n_features)
            + (f", {len(self.names)} with the levels of categories" if table.categories else ""),
            "Targets": goal,
            **{name: value for name, value in options.items() if value},
            "Weights": self.weights_name,
            **({f"Scores of {'choices' if tunes_ridge(estimator) else 'weights'}": compared} if compared else {}),
            "Alpha": f"{estimator.alpha_:.6g} ({choice})",
            "Standardized": "yes" if estimator.standardize else "no",
            "Selected features": clusters_text(estimator),
            "Objective": f"{result.primal:.10g}, proved within {result.gap:.3g} of the minimum",
            "Converged": "yes" if self.converged else f"no: {result.status}",
            "Seed": str(self.seed),
            "Seconds": f"{self.seconds:.1f}",
            "Versions": ", ".join([*versions, *(f"{name} {version(name)}" for name in _VERSIONS)]),
        }

    def described(self) -> dict[str, Any]:
        """The outcome as plain values, for programs."""
        table, estimator, result = self.table, self.estimator, self.estimator.solve_result_
        selected = [self._described_feature(j) for j in self.features]
        return {
            "command": self.command,
            "file": table.source,
            **{name: getattr(table, name) for name in ("task", "n_samples", "n_features")},
            "targets": table.target_names,
            "missing_targets": table.missing,
            "classes": table.classes,
            "weights": self.weights_name,
            "alpha": estimator.alpha_,
            "ridge": _chosen_ridge(estimator),
            "objective": result.primal,
            "gap": result.gap,
            "converged": self.converged,
            "n_selected": len(selected),
            "selected": selected,
            "scores": {name: {"model": pair[0], "null_model": pair[1]} for name, pair in self.scores.items()},
            "notes": self.notes,
            "seconds": self.seconds,
        }

    def _described_feature(self, j: int) -> dict[str, Any]:
        """A feature of the model: names, cluster, norm, and for one target the coefficient; also as penalized."""
        estimator, groups = self.estimator, getattr(self.estimator, "feature_groups_", None)
        sizes = {"": np.atleast_2d(estimator.coef_)[:, j]}
        if scale_is_known(estimator):
            sizes["scaled_"] = np.atleast_2d(estimator.scaled_coef_)[:, j]
        described: dict[str, Any] = {"feature": self.names[j]} | ({} if groups is None else {"group": str(groups[j])})
        described["cluster"] = clusters_of_groups(estimator)[j]
        for prefix, values in sizes.items():
            described[f"{prefix}norm"] = float(coefficient_norms(values))
            if len(values) == 1:
                described[prefix.rstrip("_") or "coef"] = float(values[0])
        return described


def _missing_text(table: Table) -> str:
    """How many samples have not each target, where some have not."""
    parts = [f"{name} ({count})" for name, count in table.missing.items()]
    return listed(parts, shown=_LISTED, quoted=False) if parts else ""


def named_design(X: Any, names: Sequence[str]) -> Any:
    """The design of a matrix, with the names of its columns beside it; sparse data and those on disk keep their own.

    Data frames, of files with categories, are themselves.
    """
    if hasattr(X, "columns") and not isinstance(X, Design):  # a data frame
        return X
    design = as_design(X)
    if isinstance(X, np.ndarray):
        design.feature_names = list(names)
    return design


# Scores -------------------------------------------------------------------------------------------------


def held_out_rows(table: Table, test_size: float, seed: int) -> tuple[IndexArray, IndexArray]:
    """Rows to fit and rows to hold out: whole groups where there are groups, every class in both parts."""
    kind = GroupShuffleSplit if table.groups is not None else ShuffleSplit
    if table.is_classification and table.groups is None:
        kind = StratifiedShuffleSplit
    splitter = kind(n_splits=1, test_size=test_size, random_state=seed)
    try:
        train, test = next(splitter.split(np.zeros((table.n_samples, 1)), table.y, table.groups))
    except ValueError as error:
        problem = " ".join(str(error).split()).rstrip(".")
        remedy = "Use another share, or leave --test-size out."
        raise Failure(f"--test-size {test_size:g} cannot be used here: {problem}. {remedy}") from error
    return np.sort(train), np.sort(test)


def scores_of(estimator: Any, X: Design, train: Table, test: Table | None) -> tuple[Scores, list[str]]:
    """Scores of a fit to ``train``, whose features are ``X``, and what to know about them."""
    folded = fold_scores(estimator, X, train) if hasattr(estimator, "score_path_") else {}
    if test is None and folded:
        return folded, [OPTIMISTIC]
    where, notes, held = "data of the fit, not held out", [NOT_HELD_OUT], train
    if test is not None:
        where, notes, held = f"held out, {test.n_samples} samples", [], test
        X = named_design(test.X, test.feature_names)
    if train.has_times:
        concordance = estimator.score(X, held.target_frame, held.sample_weight, offset=held.offset)
        return {f"concordance ({where})": (concordance, 0.5)} | folded, notes
    if not train.is_classification:
        loss = estimator._fitted_loss
        Z = np.asarray(estimator._decision(X, held.offset)).reshape(held.n_samples, -1)
        model, null = _measured_loss(loss, Z, held), _null_loss(loss, train, held)
        return _named_scores(held, model, null, where, loss) | folded, notes
    labels = sorted({*train.classes, *held.classes})
    model = _measured(estimator, X, held, labels, {"offset": held.offset})
    null = _measured(_null_model(train), held.y, held, labels)
    return _named_scores(held, model, null, where) | folded, notes


def survival_of(estimator: Any, X: Design, train: Table, test: Table | None) -> tuple[SurvivalDisplay, ...]:
    """Samples that were held out, or those of the fit, whose features are ``X``, by predicted risk; each target."""
    if not train.has_times:
        return ()
    held = train if test is None else test
    X = X if test is None else named_design(test.X, test.feature_names)
    given: dict[str, Any] = {"sample_weight": held.sample_weight, "offset": held.offset}
    targets = range(len(held.target_names))
    return tuple(SurvivalDisplay.undrawn(estimator, X, held.target_frame, endpoint=k, **given) for k in targets)


def fold_scores(estimator: Any, X: Design, table: Table) -> Scores:
    """Mean scores of the folds at the chosen alpha, beside those of a model without features in the same folds."""
    weight = np.ones(table.n_samples) if table.sample_weight is None else table.sample_weight
    folds = check_folds(estimator.cv.split(np.zeros((table.n_samples, 1)), table.y, table.groups), weight)
    without_features, found, loss = replace(table, X=table.y), [], estimator._fitted_loss
    for fold in folds:
        train, test = without_features.rows(fold.train), without_features.rows(fold.test)
        if table.is_classification:
            found.append(_measured(_null_model(train), test.y, test, table.classes))
        elif table.has_times:
            found.append(_added_loss(loss, train, without_features.rows(np.concatenate(fold)), test))
        else:
            found.append(_null_loss(loss, train, test))
    if not (table.is_classification or table.has_times):  # folds count by the targets that they hold out
        weight = entry_weights(table.numbers, weight)[1].mean(axis=1)
    shares = [weight[fold.test].sum() for fold in folds]
    null = {name: np.average([scores[name] for scores in found], weights=shares) for name in found[0]}
    model = {next(iter(null)): -estimator.mean_score_path_[estimator.best_index_]}
    # what is on disk is not read again for this, and scorers know no offset
    if "accuracy" in null and table.offset is None and not isinstance(table.X, Design):
        chosen = {"alphas": [estimator.alpha_], "weights": estimator.weights_, "ridge": _chosen_ridge(estimator)}
        again = clone(estimator).set_params(**chosen, scoring="accuracy")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the cross-validation has told of its own
            again.fit(X, table.y, sample_weight=table.sample_weight, groups=table.groups)
        model["accuracy"] = again.best_score_
    return _named_scores(table, model, null, f"held out, {len(folds)} folds", loss)


def _chosen_ridge(estimator: Any) -> float:
    return float(getattr(estimator, "ridge_", estimator.ridge))


def _null_model(table: Table) -> Any:
    """The shares of classes; it looks at no feature, so the targets stand for X, and at no offset."""
    return DummyClassifier(strategy="prior").fit(table.y, table.y, table.sample_weight)


def _samples(table: Table) -> tuple[FloatArray, FloatArray]:
    """Targets that are numbers, and their weights: 0 for those that are missing, which sum to 1 for a task on average.

    One column where weights of all tasks are the same.
    """
    weight = np.ones(table.n_samples) if table.sample_weight is None else table.sample_weight
    Y, w = entry_weights(table.numbers, weight)
    return Y, w / (w.sum() / w.shape[1])


def _null_predictor(loss: Loss, table: Table) -> FloatArray:
    """The best predictor that looks at no feature, without the offset; certain where targets leave no doubt."""
    Y, w = _samples(table)
    totals = np.broadcast_to(w, Y.shape).sum(axis=0)
    means = (w * Y).sum(axis=0) / np.where(totals > 0.0, totals, 1.0)
    known, best = loss.determined(means), loss.null_intercept(means)
    if table.offset is not None:
        best, is_open = known.copy(), np.isnan(known)
        if is_open.any():
            weight = w[:, 0] if w.shape[1] == 1 else w[:, is_open]
            best[is_open] = null_constant(loss, Y[:, is_open], weight, table.offset)
    elif np.isnan(best).any():
        best = best_constant(loss, means, lambda total: total(Y, w))
    return np.where(np.isnan(known), best, known)


def null_constant(loss: Loss, Y: FloatArray, weight: FloatArray, offset: FloatArray) -> FloatArray:
    """The intercept of a model that has nothing else but an offset: that of a problem without a feature that varies."""
    constant = np.ones((len(Y), 1))
    problem = build_problem(constant, Y, LATER, loss=loss, fit_intercept=True, sample_weight=weight, offset=offset)
    return problem.to_input(problem.null_coefficients())[1]


def _null_loss(loss: Loss, train: Table, test: Table) -> dict[str, float]:
    """Mean loss of samples by the best predictor of others that looks at no feature."""
    Z = np.broadcast_to(_null_predictor(loss, train), test.numbers.shape)
    return _measured_loss(loss, Z if test.offset is None else Z + test.offset[:, None], test)


def _measured_loss(loss: Loss, Z: FloatArray, table: Table) -> dict[str, float]:
    """Mean loss of the samples of a table whose targets are numbers."""
    Y, w = _samples(table)
    return {loss.measure: -loss.score(Z, Y, w)}


def _added_loss(loss: Loss, train: Table, whole: Table, test: Table) -> dict[str, float]:
    """What samples add to the loss of others, without features, as folds are scored where samples are compared."""
    unit = 1.0 / (test.n_samples if test.sample_weight is None else test.sample_weight.sum())
    losses = []
    for table in (whole, train):
        weight = np.ones(table.n_samples) if table.sample_weight is None else table.sample_weight
        Z = np.zeros(table.y.shape) + (0.0 if table.offset is None else table.offset[:, None])
        losses.append(loss.score(Z, table.numbers, unit * weight[:, None]))
    return {loss.measure: losses[1] - losses[0]}


def _measured(model: Any, X: Any, table: Table, labels: Any, added: Any = None) -> dict[str, float]:
    """Log-loss of the samples of a table with classes, and the share of labels that are right.

    ``labels`` are all classes, those that the model has not seen among them; ``added`` is the offset, by its name,
    where the model takes one.
    """
    predicted, weight = model.predict(X, **added or {}), table.sample_weight
    chances = np.zeros((table.n_samples, len(labels)))
    chances[:, np.searchsorted(labels, model.classes_)] = model.predict_proba(X, **added or {})
    loss = log_loss(table.y, chances, sample_weight=weight, labels=labels)
    return {"log-loss": loss, "accuracy": accuracy_score(table.y, predicted, sample_weight=weight)}


def _named_scores(
    table: Table, model: dict[str, float], null: dict[str, float], where: str, loss: Loss | None = None
) -> Scores:
    """Scores of the model beside those of the null model, and what part of the loss of numbers is explained."""
    scores = {f"{name} ({where})": (float(model[name]), float(null[name])) for name in model}
    if loss is not None and not (table.is_classification or table.has_times):
        ((own, null_loss),) = scores.values()
        (whole,) = _null_loss(loss, table, table).values()
        if whole > 0.0:
            name = "R2" if loss.is_quadratic else "D2"
            scores[f"{name} ({where})"] = (1.0 - own / whole, 1.0 - null_loss / whole)
    return scores


# Notes --------------------------------------------------------------------------------------------------


def data_notes(table: Table, X: Design, *, standardized: bool) -> list[str]:
    """Notes on the features ``X`` of a table, with the option that helps; data on disk are not read for them."""
    if isinstance(table.X, Design):
        return []
    if table.categories:
        table = table.without_categories()
        if table.n_features == 0:
            return []
        X = as_design(table.X)
    notes = []
    counters = _counters(table)
    if counters:
        remedy = f"use {'--id-column' if table.ids is None else '--drop'} {shlex.quote(counters[0])}"
        rest = f", and --drop for {listed(counters[1:])}" if counters[1:] else ""
        notes.append(f"Samples are counted by {listed(counters)}; if that names them, {remedy}{rest}.")
    if not standardized:
        # Whether the penalty sees columns of very different sizes; constant and unpenalized ones do not count.
        weight = np.ones(table.n_samples) if table.sample_weight is None else table.sample_weight
        scaled = standardize(X, X.samples(weight[:, None]), center=True, scale=True)
        assert isinstance(scaled, StandardizedDesign)
        inverse, names = scaled.inverse_scale.copy(), table.feature_names
        inverse[[names.index(name) for name in table.unpenalized]] = 0.0
        smallest = int(np.argmax(inverse))
        largest = int(np.argmin(np.where(inverse > 0.0, inverse, np.inf)))
        if inverse[smallest] > _LARGEST_RATIO * inverse[largest] > 0.0:
            ratio = f"a factor of {inverse[smallest] / inverse[largest]:.3g}"
            which = f"{names[largest]!r} has the largest, {names[smallest]!r} the smallest"
            remedy = "--standardize makes the penalty treat them alike"
            notes.append(f"Standard deviations of columns differ by {ratio} ({which}): {remedy}.")
    return notes


def _counters(table: Table) -> list[str]:
    """Features that have the whole numbers of a run, each once, as rows or patients are numbered.

    Those without penalty are wanted as they are.
    """
    X, n_samples = table.X, table.n_samples
    if not isinstance(X, np.ndarray) or n_samples < _SHORTEST_COUNT:
        return []
    first = X.min(axis=0)
    likely = np.flatnonzero(X.max(axis=0) - first == n_samples - 1).tolist()
    found = [j for j in likely if np.array_equal(np.sort(X[:, j]), first[j] + np.arange(n_samples))]
    return [table.feature_names[j] for j in found if table.feature_names[j] not in table.unpenalized]


def edge_note(estimator: Any) -> list[str]:
    """Whether the chosen alpha is the last of a grid that was made from --eps."""
    note = edge_of_grid_text(estimator, "--eps with a value below {:g} looks further")
    return [note] if note else []
