"""How well a fitted model predicts: samples that were held out, by folds or apart, or those of the fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy.special import log_softmax
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.metrics import confusion_matrix
from sklearn.model_selection import GroupShuffleSplit, ShuffleSplit, StratifiedShuffleSplit

from .._checks import entry_weights
from .._typing import FloatArray, IndexArray
from ..designs import Design
from ..estimators.survival import concordance_and_error
from ..losses import Loss
from ..model_selection.folds import Fold, resolve_scorer, takes_sample_weight
from ..model_selection.scores import (
    Confusion,
    Parts,
    Score,
    area_under_curve,
    explained_share,
    mean_of_targets,
    mean_score,
    order_score,
    scoring_name,
)
from ..model_selection.search import repeats_of
from ..norm.kernels import EPS
from ..plotting import SurvivalDisplay
from ..problem import LATER, best_constant, build_problem
from ..tables import Table
from .messages import Failure
from .outcome import named_design

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
# No order of samples needs larger differences of logarithms.
_LARGEST = 1e300


@dataclass(frozen=True, eq=False)
class Evaluation:
    """What is known of how well a model predicts.

    Attributes
    ----------
    scores : dict of str to Score
        By a name that says what was held out; the most important first.
    confusion : tuple of Confusion
        Of classes one; of labels that do not exclude each other one for each.
    notes : tuple of str
        What to know about the scores.
    """

    scores: dict[str, Score]
    confusion: tuple[Confusion, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Predicted:
    """Samples, and what both models predict for them.

    Attributes
    ----------
    table : Table
        The samples; nobody asks for their features.
    model, null : ndarray of shape (n_samples, n_targets)
        Predictors with the offset; of classes the logarithms of their probabilities, (n_samples, n_labels). Those of
        the null model are NaN where it is not known.
    parts : Parts
        Samples that are scored together.
    where : str
        What the samples are, in words.
    labels : sequence
        Of classes: all that the model or the samples have.
    """

    table: Table
    model: FloatArray
    null: FloatArray
    parts: Parts
    where: str
    labels: Sequence[Any] = ()

    @property
    def weight(self) -> FloatArray:
        """Weights of the samples."""
        return sample_weight(self.table)


def sample_weight(table: Table) -> FloatArray:
    """Weights of the samples of a table."""
    return np.ones(table.n_samples) if table.sample_weight is None else table.sample_weight


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


def survival_of(estimator: Any, X: Design, train: Table, test: Table | None) -> tuple[SurvivalDisplay, ...]:
    """Samples that were held out, or those of the fit, whose features are ``X``, by predicted risk; each target."""
    if not train.has_times:
        return ()
    held = train if test is None else test
    X = X if test is None else named_design(test.X, test.feature_names)
    given: dict[str, Any] = {"sample_weight": held.sample_weight, "offset": held.offset}
    targets = range(len(held.target_names))
    return tuple(SurvivalDisplay.undrawn(estimator, X, held.target_frame, endpoint=k, **given) for k in targets)


def evaluate(estimator: Any, X: Any, train: Table, test: Table | None, scoring: str | None = None) -> Evaluation:
    """Scores of a fit to ``train``, whose features are ``X``, on ``test``, on its folds, or on ``train`` itself.

    A search must have kept what its folds predict, which is let go here.
    """
    loss, folds = estimator._fitted_loss, vars(estimator).pop("_held_out", ())
    folded = Evaluation({})
    if folds:
        predicted = predicted_by_folds(loss, folds, train, repeats_of(estimator.cv))
        folded = scored(loss, predicted, _scores_of_choice(estimator, folds, train, predicted))
    if test is None and folds:
        return replace(folded, notes=(OPTIMISTIC,))
    notes: tuple[str, ...] = (NOT_HELD_OUT,)
    where, held = "data of the fit, not held out", train
    if test is not None:
        where, notes, held = f"held out, {test.n_samples} samples", (), test
        X = named_design(test.X, test.feature_names)
    labels = sorted({*train.classes, *held.classes})
    null = null_predictors(loss, null_constants(loss, train, labels), held)
    predicted = Predicted(held, predictors(estimator, X, held, labels), null, _whole(held), where, labels)
    asked = {} if scoring is None else _asked_score(estimator, X, train, predicted, scoring)
    found = scored(loss, predicted, asked)
    return Evaluation(found.scores | folded.scores, found.confusion, notes)


def evaluate_new(estimator: Any, X: Any, known: Table, null_model: Sequence[float] | None) -> Evaluation:
    """Scores of a fit on other samples, whose features are ``X``, beside a null model where it is known."""
    loss, where, labels = estimator._fitted_loss, f"{known.n_samples} samples", []
    if known.is_classification:
        classes = {str(label): label for label in estimator.classes_.tolist()}
        y = [classes.get(str(label), label) for label in known.y.tolist()]
        if len({type(label) for label in (*classes.values(), *y)}) > 1:  # which have no order
            raise ValueError(f"{known.source} has labels of another kind than {next(iter(classes))!r}.")
        known, labels = replace(known, y=np.array(y)), sorted({*classes.values(), *y})
    model = predictors(estimator, X, known, labels)
    null = np.full(model.shape, np.nan)
    if null_model is not None:
        constants = np.asarray(null_model, dtype=np.float64)
        if known.is_classification:
            shares = np.zeros(len(labels))
            shares[np.searchsorted(labels, estimator.classes_)] = constants
            with np.errstate(divide="ignore"):
                constants = np.log(shares)
        null = null_predictors(loss, constants, known)
    return scored(loss, Predicted(known, model, null, _whole(known), where, labels))


def _whole(table: Table) -> Parts:
    return Parts.whole(table.n_samples)


# What models predict ------------------------------------------------------------------------------------


def predictors(estimator: Any, X: Any, held: Table, labels: Sequence[Any]) -> FloatArray:
    """What a fit predicts for the samples of a table, whose features are ``X``."""
    Z = np.asarray(estimator._decision(X, held.offset), dtype=np.float64).reshape(held.n_samples, -1)
    return log_chances(Z, estimator.classes_, labels) if held.is_classification else Z


def predicted_by_folds(
    loss: Loss, folds: Sequence[tuple[Fold, FloatArray]], table: Table, repeats: int = 1
) -> Predicted:
    """Held-out predictions of the folds, and those of null models of the same folds."""
    without_features, labels = replace(table, X=table.y), table.classes
    models, nulls, numbers = [], [], []
    for number, (fold, Z) in enumerate(folds):
        train, test = without_features.rows(fold.train), without_features.rows(fold.test)
        if table.is_classification:
            models.append(log_chances(Z, labels, labels))
        else:
            models.append(Z if test.offset is None else Z + test.offset[:, None])
        nulls.append(null_predictors(loss, null_constants(loss, train, labels), test))
        numbers.append(np.full(len(fold.test), number))
    parts = Parts(np.concatenate(numbers), len(folds), repeats)
    tested = without_features.rows(np.concatenate([fold.test for fold, _ in folds]))
    times = f", {repeats} times" if repeats > 1 else ""
    where = f"held out, {len(folds) // repeats} folds{times}"
    return Predicted(tested, np.concatenate(models), np.concatenate(nulls), parts, where, labels)


def log_chances(Z: FloatArray, classes: Any, labels: Sequence[Any]) -> FloatArray:
    """Logarithms of the probabilities of all labels; minus infinity for those that the fit has not seen."""
    logs = np.full((len(Z), len(labels)), -np.inf)
    both = Z if Z.shape[1] > 1 else np.hstack([np.zeros_like(Z), Z])
    logs[:, np.searchsorted(labels, classes)] = log_softmax(both, axis=1)
    return logs


def null_constants(loss: Loss, table: Table, labels: Sequence[Any] = ()) -> FloatArray:
    """Constants of the null model for some samples, without the offset: one for each target or class."""
    if table.has_times:
        return np.zeros(table.y.shape[1])
    if not table.is_classification:
        return _null_predictor(loss, table)
    shares = np.bincount(np.searchsorted(labels, table.y), sample_weight(table), len(labels))
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(shares / shares.sum()))


def null_predictors(loss: Loss, constants: FloatArray, held: Table) -> FloatArray:
    """Predictions of the null model for some samples; for classes without the offset."""
    Z = np.broadcast_to(constants, (held.n_samples, len(constants)))
    return Z if held.offset is None or held.is_classification else Z + held.offset[:, None]


def _null_predictor(loss: Loss, table: Table) -> FloatArray:
    """The best predictor that looks at no feature, without the offset; certain where targets leave no doubt."""
    Y, w = entry_weights(table.numbers, sample_weight(table))
    w = w / (w.sum() / w.shape[1])
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
    """Intercept of the model with an offset and no feature, fitted with a feature that does not vary."""
    constant = np.ones((len(Y), 1))
    problem = build_problem(constant, Y, LATER, loss=loss, fit_intercept=True, sample_weight=weight, offset=offset)
    return problem.to_input(problem.null_coefficients())[1]


# Scores -------------------------------------------------------------------------------------------------


def scored(loss: Loss, predicted: Predicted, first: Mapping[str, Score] | None = None) -> Evaluation:
    """All scores of some predictions, after those that come first."""
    table = predicted.table
    if table.is_classification:
        scores, confusion = _class_scores(predicted)
    elif table.has_times:
        scores, confusion = {"concordance": _concordance(predicted)}, ()
    else:
        scores, confusion = _number_scores(loss, predicted)
    named = {f"{name} ({predicted.where})": score for name, score in scores.items() if not np.isnan(score.model)}
    return Evaluation({**(first or {}), **named}, confusion)


def _number_scores(loss: Loss, predicted: Predicted) -> tuple[dict[str, Score], tuple[Confusion, ...]]:
    """The mean loss, and what part of it is explained; of labels the share that is right, too, and their order."""
    table, parts, names = predicted.table, predicted.parts, predicted.table.target_names
    Y, w = entry_weights(table.numbers, predicted.weight)
    costs = mean_score(loss.errors(predicted.model, Y), loss.errors(predicted.null, Y), w, parts, names)
    scores = {loss.measure: costs}
    best = null_predictors(loss, _null_predictor(loss, table), table)
    zeros = np.zeros_like(best)
    whole = mean_score(loss.errors(best, Y), zeros, w, _whole(table), names)
    if whole.model > 0.0:
        wholes = {name: score.model for name, score in whole.targets.items()}
        scores["R2" if loss.is_quadratic else "D2"] = explained_share(costs, whole.model, wholes)
    if loss.target != "labels":
        return scores, ()
    hits, null_hits = (((Z > 0.0) == (Y > 0.5)).astype(float) for Z in (predicted.model, predicted.null))
    scores["accuracy"] = mean_score(hits, null_hits, w, parts, names, lower_is_better=False)
    w = np.broadcast_to(w, Y.shape)
    areas, confusion = {}, []
    for k, name in enumerate(names):
        measure = partial(_area, Y[:, k] > 0.5, predicted.model[:, k], w[:, k])
        areas[name] = order_score(measure, w[:, k], parts)
        pairs = (Y[:, k] > 0.5, predicted.model[:, k] > 0.0)
        matrix = confusion_matrix(*pairs, labels=[False, True], sample_weight=w[:, k]) / parts.repeats
        confusion.append(Confusion((0, 1), matrix, name))
    return scores | {"AUC": mean_of_targets(areas)}, tuple(confusion)


def _area(is_second: Any, z: FloatArray, w: FloatArray, rows: IndexArray) -> tuple[float, float]:
    return area_under_curve(is_second[rows], z[rows], w[rows])


def _class_scores(predicted: Predicted) -> tuple[dict[str, Score], tuple[Confusion, ...]]:
    """Log-loss, the share of labels that are right, of two classes the area under the curve; and which are confused."""
    labels, parts, w = predicted.labels, predicted.parts, predicted.weight
    place = np.searchsorted(labels, predicted.table.y)
    both = (predicted.model, predicted.null)
    truth = [logs[np.arange(len(logs)), place, None] for logs in both]
    loss, null_loss = (-np.clip(logs, np.log(EPS), np.log1p(-EPS)) for logs in truth)  # as scikit-learn clips them
    hits, null_hits = ((logs.argmax(axis=1) == place)[:, None].astype(float) for logs in both)
    scores = {
        "log-loss": mean_score(loss, null_loss, w[:, None], parts),
        "accuracy": mean_score(hits, null_hits, w[:, None], parts, lower_is_better=False),
    }
    if len(labels) == 2:
        odds = np.clip(predicted.model[:, 1] - predicted.model[:, 0], -_LARGEST, _LARGEST)
        scores["AUC"] = order_score(partial(_area, place == 1, odds, w), w, parts)
    matrix = confusion_matrix(place, both[0].argmax(axis=1), labels=np.arange(len(labels)), sample_weight=w)
    return scores, (Confusion(tuple(labels), matrix / parts.repeats),)


def _concordance(predicted: Predicted) -> Score:
    """How often, of two samples, the one with the earlier event has the higher predictor, for each endpoint."""
    table, w = predicted.table, predicted.weight
    pairs, scores = table.target_frame.reshape(table.n_samples, -1), {}
    for k, name in enumerate(table.target_names):

        def measure(rows: IndexArray, k: int = k) -> tuple[float, float]:
            return concordance_and_error(pairs[rows, k], predicted.model[rows, k], w[rows])

        scores[name] = order_score(measure, w, predicted.parts)
    return mean_of_targets(scores) if len(scores) > 1 else next(iter(scores.values()))


# Scores that were asked for -----------------------------------------------------------------------------


def _scores_of_choice(
    estimator: Any, folds: Sequence[tuple[Fold, FloatArray]], table: Table, predicted: Predicted
) -> dict[str, Score]:
    """What alpha was chosen by, where that is not among the scores of all models."""
    loss, best = estimator._fitted_loss, estimator.best_index_
    if estimator.scoring is None and not table.has_times:
        return {}
    name, is_error = (loss.measure, True) if estimator.scoring is None else scoring_name(estimator.scoring)
    scorer = None if estimator.scoring is None else resolve_scorer(estimator.scoring, loss.score_name)
    if scorer is None and not table.has_times:  # the score of the loss by its name
        return {}
    sign = -1.0 if is_error else 1.0
    values, nulls = sign * estimator.score_path_[best], []
    without_features = replace(table, X=table.y)
    for fold, _ in folds:
        train, test = without_features.rows(fold.train), without_features.rows(fold.test)
        if scorer is None:
            nulls.append(_added_loss(loss, train, without_features.rows(np.concatenate(fold)), test))
        else:
            nulls.append(sign * _null_score(scorer, loss, train, test))
    weight, parts = sample_weight(table), predicted.parts
    null = float(np.average(nulls, weights=[weight[fold.test].sum() for fold, _ in folds]))
    errors = (float(estimator.std_error_path_[best]), parts.error_of(values - np.array(nulls)))
    score = Score(sign * float(estimator.mean_score_path_[best]), null, *errors, is_error)
    return {f"{name} ({predicted.where})": score}


def _added_loss(loss: Loss, train: Table, whole: Table, test: Table) -> float:
    """What samples add to the loss of others, without features, as folds are scored where samples are compared."""
    unit = 1.0 / (test.n_samples if test.sample_weight is None else test.sample_weight.sum())
    losses = []
    for table in (whole, train):
        Z = np.zeros(table.y.shape) + (0.0 if table.offset is None else table.offset[:, None])
        losses.append(loss.score(Z, table.numbers, unit * sample_weight(table)[:, None]))
    return losses[1] - losses[0]


def _asked_score(estimator: Any, X: Any, train: Table, predicted: Predicted, scoring: str) -> dict[str, Score]:
    """A score of scikit-learn by its name, where it is not that of the loss."""
    loss, held = estimator._fitted_loss, predicted.table
    scorer = resolve_scorer(scoring, loss.score_name)
    if scorer is None:
        return {}
    name, is_error = scoring_name(scoring)
    sign = -1.0 if is_error else 1.0
    value = sign * float(scorer(estimator, X, _plain_targets(held), **_weight_of(scorer, held)))
    without_features = replace(train, X=train.y)
    null = sign * _null_score(scorer, loss, without_features, replace(held, X=held.y))
    return {f"{name} ({predicted.where})": Score(value, null, lower_is_better=is_error)}


def _weight_of(scorer: Any, table: Table) -> dict[str, Any]:
    has_weight = table.sample_weight is not None and takes_sample_weight(scorer)
    return {"sample_weight": table.sample_weight} if has_weight else {}


def _plain_targets(table: Table) -> Any:
    """Targets as metrics of scikit-learn take them."""
    if table.is_classification:
        return table.y
    return table.numbers[:, 0] if table.numbers.shape[1] == 1 else table.numbers


def _null_score(scorer: Any, loss: Loss, train: Table, test: Table) -> float:
    """Score of the null model by a scorer (the targets stand in for X); NaN if the scorer fails."""
    y = _plain_targets(train)
    null: Any = DummyClassifier(strategy="prior")
    if not (train.is_classification or loss.target == "labels"):
        constants = loss.predicted(_null_predictor(loss, train))
        null = DummyRegressor(strategy="constant", constant=constants if len(constants) > 1 else constants[0])
    try:
        fitted = null.fit(np.zeros((train.n_samples, 1)), y, train.sample_weight)
        return float(scorer(fitted, np.zeros((test.n_samples, 1)), _plain_targets(test), **_weight_of(scorer, test)))
    except (TypeError, ValueError):  # a metric that is not defined for it
        return float("nan")
