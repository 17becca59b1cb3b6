"""Bad inputs of the estimators: their parameters, their data, and what is asked of a fit."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.metrics import r2_score
from sklearn.model_selection import KFold

import groupowl as go
from bad_input_support import (
    COUNTS,
    FLAGS,
    LABELS,
    MATRICES,
    NAMED,
    POSITIVE,
    RULES,
    SAMPLE_WEIGHTS,
    SEEDS,
    SEQUENCES,
    SHARES,
    SOLVERS,
    UNPENALIZED,
    Row,
    X,
    Y,
    check,
    rows_of,
    with_entry,
)

DATA = ("X", "y", "sample_weight", "groups")


def _fitting(kind, y, **settings):
    """A fit; data are arguments of ``fit``, all others parameters of the estimator."""

    def call(**changes):
        data = {"X": X, "y": y} | {name: changes.pop(name) for name in DATA if name in changes}
        return kind(**{**settings, **changes}).fit(**data)

    return call


REGRESSOR = go.GroupOWLRegressor(0.1).fit(X, Y)
NAMED_REGRESSOR = go.GroupOWLRegressor(0.1).fit(NAMED, Y[:, 0])
CLASSIFIER = go.GroupOWLClassifier(0.01).fit(X, LABELS)

CALLS = {
    "GroupOWLRegressor": _fitting(go.GroupOWLRegressor, Y),
    "GroupOWLClassifier": _fitting(go.GroupOWLClassifier, LABELS),
    "GroupOWLRegressorCV": _fitting(go.GroupOWLRegressorCV, Y, alphas=3),
    "GroupOWLClassifierCV": _fitting(go.GroupOWLClassifierCV, LABELS, alphas=3),
    "regressor.predict": REGRESSOR.predict,
    "named regressor.predict": NAMED_REGRESSOR.predict,
    "classifier.predict": CLASSIFIER.predict,
    "classifier.predict_proba": CLASSIFIER.predict_proba,
    "regressor.score": lambda **changes: REGRESSOR.score(**{"X": X, "y": Y, **changes}),
    "classifier.score": lambda **changes: CLASSIFIER.score(**{"X": X, "y": LABELS, **changes}),
    "regressor.verify": lambda **changes: REGRESSOR.verify(**{"X": X, "y": Y, **changes}),
    "classifier.verify": lambda **changes: CLASSIFIER.verify(**{"X": X, "y": LABELS, **changes}),
    "coef_frame": REGRESSOR.coef_frame,
    "get_support": REGRESSOR.get_support,
}

TARGETS = {
    "None": None,
    "nan": np.full(np.shape(Y), np.nan),
    "infinite": with_entry(Y, np.inf),
    "too few rows": Y[:7],
    "a cube": Y[:, :, None],
    "no columns": Y[:, :0],
    "complex": Y + 1j,
    "text": np.full(12, "a"),
    "dates": np.full(12, np.datetime64("2020-01-01")),
    "a number": 3.0,
    "ragged": [[1.0, 2.0]] * 11 + [[1.0]],
    "huge": 1e200 * Y,
    "a frame of text": pd.DataFrame({"a": ["u"] * 12}),
}
LABEL_VALUES = {
    "complex": LABELS + 1j,
    "complex objects": (LABELS + 1j).astype(object),
    "fractions": LABELS + 0.5,
    "one class": np.zeros(12, dtype=int),
    "None among them": np.array([None, *LABELS[1:]], dtype=object),
    "nan among them": [np.nan, *LABELS[1:]],
    "mixed kinds": np.array(["a", *LABELS[1:].tolist()], dtype=object),
    "too few": LABELS[:5],
    "None": None,
    "two columns": np.zeros((12, 2)),
}
WEIGHTS = SEQUENCES | {"an unknown name": "slope", "None": None, "a number as text": "0.5"}
SETTINGS = {
    "weights": WEIGHTS,
    "fit_intercept": FLAGS,
    "standardize": FLAGS,
    "relaxed": FLAGS,
    "unpenalized": UNPENALIZED,
    "solver": SOLVERS,
    "screening": RULES,
    "tol": POSITIVE,
    "max_iter": COUNTS | {"None": None},
    "random_state": SEEDS,
    "verbose": {"text": "loud", "negative": -1, "a fraction": 1.5, "None": None},
}
SINGLE = {"alpha": POSITIVE | {"a word": "best", "overflows": 1e308, "vanishes": 5e-324}, "warm_start": FLAGS}
CHOOSING = {
    "alphas": COUNTS
    | {
        "a list": ["0.1"],
        "an empty list": [],
        "nan": [0.1, np.nan],
        "a negative one": [0.1, -0.1],
        "two columns": [[0.1, 0.2]],
        "a fraction": 0.1,
        "overflows": [1e308],
    },
    "eps": SHARES,
    "cv": {
        "one": 1,
        "zero": 0,
        "negative": -5,
        "True": True,
        "a fraction": 2.5,
        "text": "5",
        "more than samples": 13,
        "no pairs": [1, 2, 3],
        "no splits": [],
        "indices too large": [([0, 1], [99])],
        "text for indices": [(["a"], ["b"])],
        "no training samples": [([], [0])],
        "a class": KFold,
    },
    "selection": {"unknown": "best", "None": None, "a list": ["min"], "a number": 1},
    "scoring": {"unknown": "loudness", "a number": 3, "a list": ["r2"]},
    "n_jobs": {"a fraction": 1.5, "text": "2", "zero": 0, "True": True, "a list": [1], "nan": np.nan},
    "groups": {"without a splitter": LABELS},
}
CLASS_WEIGHTS = {
    "unknown": "fair",
    "a number": 2.0,
    "an unknown class": {9: 1.0},
    "negative": {0: -1.0},
    "zero": {0: 0.0},
    "nan": {0: np.nan},
    "text": {0: "heavy"},
    "a list": [1.0, 2.0, 3.0],
}
NEW = {what: value for what, value in MATRICES.items() if "frame" not in what and what not in ("huge", "no rows")} | {
    "too few columns": X[:, :3],
    "too many columns": np.c_[X, X],
}

TABLE = {
    "GroupOWLRegressor": {"X": MATRICES, "y": TARGETS, "sample_weight": SAMPLE_WEIGHTS, **SETTINGS, **SINGLE},
    "GroupOWLClassifier": {
        "X": MATRICES,
        "y": LABEL_VALUES,
        "sample_weight": SAMPLE_WEIGHTS,
        "class_weight": CLASS_WEIGHTS,
        "alpha": {"a word": "best", "zero": 0.0},
        "standardize": FLAGS,
    },
    "GroupOWLRegressorCV": {
        "X": {"nan": MATRICES["nan"], "complex": MATRICES["complex"]},
        "y": {"complex": TARGETS["complex"], "nan": TARGETS["nan"], "None": None},
        "sample_weight": SAMPLE_WEIGHTS,
        **SETTINGS,
        **CHOOSING,
    },
    "GroupOWLClassifierCV": {"y": LABEL_VALUES, "class_weight": CLASS_WEIGHTS, **CHOOSING},
    "regressor.predict": {"X": NEW},
    "named regressor.predict": {
        "X": {
            "other names": NAMED.rename(columns={"age": "height"}),
            "another order": NAMED[["sex", "age", "dose", "site"]],
            "a column less": NAMED.drop(columns="age"),
        }
    },
    "classifier.predict": {"X": NEW},
    "classifier.predict_proba": {"X": {"None": None, "too few columns": X[:, :3]}},
    "regressor.score": {
        "X": {"None": None, "too few columns": X[:, :3]},
        "y": {what: y for what, y in TARGETS.items() if what != "huge"} | {"one target": Y[:, 0]},
        "sample_weight": SAMPLE_WEIGHTS,
    },
    "classifier.score": {"X": {"too few columns": X[:, :3]}, "y": {"too few": LABELS[:5], "None": None}},
    "regressor.verify": {"X": {"None": None, "too few columns": X[:, :3]}, "y": TARGETS | {"one target": Y[:, 0]}},
    "classifier.verify": {"y": {"other classes": LABELS + 1, "too few": LABELS[:5], "None": None}},
    "coef_frame": {"sort": FLAGS},
    "get_support": {"indices": FLAGS},
}

STATISTICS = go.SufficientStatistics.from_arrays(X, Y)
ONE = {"X": X[:1], "y": Y[:1]}
MORE = [
    Row("statistics for classes", lambda: go.GroupOWLClassifier().fit(STATISTICS), "X"),
    Row("statistics and targets", lambda: go.GroupOWLRegressor().fit(STATISTICS, Y), "y"),
    Row("statistics and weights", lambda: go.GroupOWLRegressor().fit(STATISTICS, sample_weight=[1.0]), "sample_weight"),
    Row("statistics without folds", lambda: go.GroupOWLRegressorCV().fit(STATISTICS), "X"),
    Row("statistics of one fold", lambda: go.GroupOWLRegressorCV().fit([STATISTICS]), "X"),
    Row("statistics and scoring", lambda: go.GroupOWLRegressorCV(scoring="r2").fit([STATISTICS] * 2), "scoring"),
    Row("statistics and unpenalized", lambda: go.GroupOWLRegressor(unpenalized=[0]).fit(STATISTICS), "unpenalized"),
    Row("one sample for folds", lambda: go.GroupOWLRegressorCV().fit(**ONE), "X"),
    Row("a class of one sample", lambda: go.GroupOWLClassifierCV().fit(X, [0] * 11 + [1]), "y"),
    Row("more folds than a class has", lambda: go.GroupOWLClassifierCV(cv=5).fit(X, LABELS), "y"),
    Row("a metric for a scorer", lambda: go.GroupOWLRegressorCV(scoring=r2_score).fit(X, Y), "scoring"),
    Row("a scorer of text", lambda: go.GroupOWLRegressorCV(scoring=lambda e, X, y: "good").fit(X, Y), "scoring"),
    Row("an unknown argument of fit", lambda: go.GroupOWLRegressorCV().fit(X, Y, color=3), "color"),
    Row("weights of text", lambda: go.GroupOWLRegressor(weights=lambda d: ["a"] * d).fit(X, Y), "weights"),
    Row("weights of another length", lambda: go.GroupOWLRegressor(weights=lambda d: np.ones(9)).fit(X, Y), "weights"),
    Row("a list of weights", lambda: go.GroupOWLRegressor(weights=["bh", "chi"]).fit(X, Y), "weights"),
    Row("an empty list of weights", lambda: go.GroupOWLRegressorCV(weights=[]).fit(X, Y), "weights"),
    Row("names twice", lambda: go.GroupOWLRegressor().fit(NAMED.set_axis(list("abba"), axis=1), Y), "X"),
    Row("mixed names", lambda: go.GroupOWLRegressor().fit(NAMED.set_axis(["a", 1, "b", 2], axis=1), Y), "X"),
    Row("sparse targets", lambda: go.GroupOWLRegressor().fit(X, sp.csr_array(Y)), "y"),
    Row("labels for a regression", lambda: go.GroupOWLRegressor().fit(X, list("abcabcabcabc")), "y"),
]
ROWS = [*rows_of(CALLS, TABLE), *MORE]


def test_rows_differ():
    assert len({row.id for row in ROWS}) == len(ROWS) > 450


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_bad_input(row):
    check(row)
