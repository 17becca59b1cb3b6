"""How well a model predicts samples that it has not seen, beside a model without features."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.parallel import Parallel, delayed

from .._kernels import EPS
from .._typing import FloatArray, IndexArray
from ..designs import Design
from ..model_selection import Fold, check_folds
from ..tables import Table
from .estimating import single_estimator

Scores = dict[str, tuple[float, float]]

# Digits of fits that only say which class is the most probable.
_ACCURACY_TOL = 1e-4

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


def fold_scores(estimator: Any, table: Table) -> Scores:
    """Mean score of the folds at the chosen alpha, beside that of a model without features in the same folds."""
    weight = _weights(table)
    folds = check_folds(estimator.cv.split(np.zeros((table.n_samples, 1)), table.y, table.groups), weight)
    where = f"held out, {len(folds)} folds"
    model = -float(estimator.mean_score_path_[estimator.best_index_])
    shares = np.array([weight[fold.test].sum() for fold in folds])
    null = float(np.average([_null_loss(table, fold, weight) for fold in folds], weights=shares))
    if table.is_classification:
        scores = {f"log-loss ({where})": (model, null)}
        if not isinstance(table.X, Design):  # what is on disk is not read again for this
            scores |= {f"accuracy ({where})": _fold_accuracy(estimator, table, folds)}
        return scores
    variance = _variance(table.y, weight)
    scores = {f"mean squared error ({where})": (model, null)}
    if variance > 0.0:
        scores |= {f"R2 ({where})": (1.0 - model / variance, 1.0 - null / variance)}
    return scores


def _fold_accuracy(estimator: Any, table: Table, folds: list[Fold]) -> tuple[float, float]:
    """Accuracy over the folds: fits of the cross-validation are not kept, but those at one alpha cost little."""
    wanted = single_estimator(table).get_params()
    settings = {name: value for name, value in estimator.get_params().items() if name in wanted}
    settings |= {"alpha": estimator.alpha_, "weights": estimator.weights_, "tol": max(estimator.tol, _ACCURACY_TOL)}
    hits = Parallel(n_jobs=estimator.n_jobs)(delayed(_hits)(table, fold, settings) for fold in folds)
    shares = [_weights(table)[fold.test].sum() for fold in folds]
    model, null = np.average(hits, axis=0, weights=shares)
    return float(model), float(null)


def _hits(table: Table, fold: Fold, settings: dict[str, Any]) -> tuple[float, float]:
    """Share of the test samples that a fit to the training samples gets right, and that their commonest class does."""
    train, test = table.rows(fold.train), table.rows(fold.test)
    classes = np.unique(train.y)
    commonest = classes[np.argmax(_class_shares(train.y, _weights(train), classes))]
    guesses = commonest if len(classes) == 1 else _fitted(train, settings).predict(test.frame)
    return _accuracy(test, guesses), _accuracy(test, commonest)


def _fitted(table: Table, settings: dict[str, Any]) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the cross-validation has told of its own
        return single_estimator(table, **settings).fit(
            table.frame, table.target_frame, sample_weight=table.sample_weight
        )


def held_out_scores(estimator: Any, train: Table, test: Table) -> Scores:
    """Scores on samples that were held out."""
    return _scores(estimator, train, test, f"held out, {test.n_samples} samples")


def training_scores(estimator: Any, table: Table) -> Scores:
    """Scores on the data of the fit."""
    return _scores(estimator, table, table, "data of the fit, not held out")


def _scores(estimator: Any, train: Table, test: Table, where: str) -> Scores:
    X, weight = test.frame, _weights(test)
    if test.is_classification:
        return _class_scores(estimator, train, test, where)
    mean = np.average(train.y, axis=0, weights=_weights(train))
    errors = [_squared_error(test.y, predicted, weight) for predicted in (estimator.predict(X), mean)]
    variance = _variance(test.y, weight)
    scores: Scores = {f"mean squared error ({where})": (errors[0], errors[1])}
    if variance > 0.0:
        scores |= {f"R2 ({where})": (1.0 - errors[0] / variance, 1.0 - errors[1] / variance)}
    return scores


def _class_scores(estimator: Any, train: Table, test: Table, where: str) -> Scores:
    X, weight, classes = test.frame, _weights(test), estimator.classes_
    shares = _class_shares(train.y, _weights(train), classes)
    truth = test.y[:, None] == classes
    losses = [_log_loss(truth, chances, weight) for chances in (estimator.predict_proba(X), shares[None])]
    guesses = estimator.predict(X), classes[np.argmax(shares)]
    hits = [_accuracy(test, guess) for guess in guesses]
    return {f"log-loss ({where})": (losses[0], losses[1]), f"accuracy ({where})": (hits[0], hits[1])}


def _null_loss(table: Table, fold: Fold, weight: FloatArray) -> float:
    """Loss of the test samples for the mean, or the shares of classes, of the training samples."""
    train, test = fold.train, fold.test
    if table.is_classification:
        classes = np.array(table.classes)
        truth = table.y[test][:, None] == classes
        return _log_loss(truth, _class_shares(table.y[train], weight[train], classes)[None], weight[test])
    mean = np.average(table.y[train], axis=0, weights=weight[train])
    return _squared_error(table.y[test], mean, weight[test])


def _accuracy(table: Table, guesses: Any) -> float:
    return float(np.average(table.y == guesses, weights=_weights(table)))


def _weights(table: Table) -> FloatArray:
    return np.ones(table.n_samples) if table.sample_weight is None else table.sample_weight


def _squared_error(Y: FloatArray, predicted: FloatArray, weight: FloatArray) -> float:
    return float(np.average(np.mean((Y - predicted) ** 2, axis=1), weights=weight))


def _variance(Y: FloatArray, weight: FloatArray) -> float:
    """Variance about the mean, averaged over targets."""
    return _squared_error(Y, np.average(Y, axis=0, weights=weight), weight)


def _class_shares(labels: Any, weight: FloatArray, classes: Any) -> FloatArray:
    totals = weight @ (labels[:, None] == classes)
    return totals / totals.sum()


def _log_loss(truth: Any, chances: FloatArray, weight: FloatArray) -> float:
    """Mean of minus the logarithm of the probability of what came true, as the folds of the estimators count it."""
    logs = np.log(np.clip(chances, EPS, 1.0 - EPS))
    return -float(np.average(np.sum(truth * logs, axis=1), weights=weight))


def held_out_rows(table: Table, test_size: float, seed: int) -> tuple[IndexArray, IndexArray]:
    """Rows to fit and rows to hold out: whole groups where there are groups, every class in both parts."""
    from sklearn.model_selection import GroupShuffleSplit, ShuffleSplit, StratifiedShuffleSplit

    kind = GroupShuffleSplit if table.groups is not None else ShuffleSplit
    if table.is_classification and table.groups is None:
        kind = StratifiedShuffleSplit
    splitter = kind(n_splits=1, test_size=test_size, random_state=seed)
    train, test = next(splitter.split(np.zeros((table.n_samples, 1)), table.y, table.groups))
    return np.sort(train), np.sort(test)
