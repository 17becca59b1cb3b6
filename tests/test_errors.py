"""Bad input: a clear error that names the argument, what was given and what to do."""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp

import groupowl as go

X = np.random.default_rng(0).standard_normal((10, 4))
Y = np.random.default_rng(1).standard_normal((10, 2))
LAM = np.array([2.0, 1.5, 1.0, 0.5])
ONE_HOT = np.eye(2)[np.arange(10) % 2]


def spoiled(array, *places, value=np.nan):
    copy = array.copy()
    for place in places:
        copy[place] = value
    return copy


BAD_VALUES = {
    "nan in X": (
        {"X": spoiled(X, (0, 1), (3, 1), (2, 3))},
        r"X has 3 NaN or infinite entries in columns 1, 3\..*SimpleImputer",
    ),
    "inf in X": ({"X": spoiled(X, (0, 2), value=np.inf)}, r"X has 1 NaN or infinite entry in column 2\."),
    "named columns": (
        {"X": pd.DataFrame(spoiled(X, (0, 2)), columns=["age", "sex", "dose", "site"])},
        r"in column 'dose'\. .*SimpleImputer",
    ),
    "nan in sparse X": ({"X": sp.csr_array(spoiled(X, (5, 3)))}, r"X has 1 NaN or infinite entry in column 3\."),
    "task of nan": ({"Y": spoiled(Y, np.s_[:, 0])}, r"Y has no observed entry of positive weight in column 0\. Leave"),
    "infinite Y": ({"Y": np.where(Y[0, 0] == Y, np.inf, Y)}, r"Y has 1 NaN or infinite entry in column 0\. Remove or"),
    "nan in lam": ({"lam": spoiled(LAM, 2)}, r"lam has 1 NaN or infinite entry"),
    "nan in weights": ({"sample_weight": spoiled(np.ones(10), 4)}, r"sample_weight has 1 NaN or infinite entry"),
    "rows differ": ({"Y": Y[:7]}, r"X has 10 rows, Y has 7"),
    "weights too short": ({"sample_weight": np.ones(9)}, r"X has 10 rows, sample_weight has length 9"),
    "X flat": ({"X": X[:, 0]}, r"X must be 2-dimensional .* got shape \(10,\).*reshape"),
    "Y cube": (
        {"Y": np.ones((10, 2, 2))},
        r"Y must be 1-dimensional or 2-dimensional, got an array of shape \(10, 2, 2\)",
    ),
    "lam length": ({"lam": LAM[:3]}, r"X has 4 columns, lam has length 3"),
    "lam number": ({"lam": 0.1}, r"lam must be 1-dimensional.*for example 0\.1 \* go\.weights\.oscar\(n_features\)\."),
    "lam negative": ({"lam": [2.0, 1.0, 0.5, -0.1]}, r"lam must be non-negative, but lam\[3\] is .*-0\.1"),
    "lam increasing": ({"lam": [2.0, 1.0, 1.5, 0.1]}, r"lam must be non-increasing, but lam\[2\] = .*1\.5.* sort it"),
    "lam zero": ({"lam": np.zeros(4)}, r"lam is all zero"),
    "weights negative": (
        {"sample_weight": np.r_[-1.0, np.ones(9)]},
        r"sample_weight must be non-negative, but sample_weight\[0\]",
    ),
    "weights zero": ({"sample_weight": np.zeros(10)}, r"sample_weight is all zero"),
    "labels": (
        {"Y": np.arange(10) % 3, "loss": "multinomial"},
        r"at least two columns in Y, got shape \(10, 1\)\. .*one-hot",
    ),
    "not probabilities": (
        {"Y": 2 * ONE_HOT, "loss": "multinomial"},
        r"rows of Y that sum to 1, but row 0 sums to 2\. .*one-hot",
    ),
    "negative probability": (
        {"Y": np.tile([1.5, -0.5], (10, 1)), "loss": "multinomial"},
        r"Y >= 0, but its smallest entry is -0\.5",
    ),
    "loss": ({"loss": "hinge"}, r"loss must be one of 'squared', 'multinomial', .*; got 'hinge'"),
    "solver": ({"solver": "newton"}, r"solver must be one of 'auto', 'apgd'.*; got 'newton'"),
    "screening": ({"screening": True}, r"screening must be one of 'safe', 'paper', 'none'; got True"),
    "max_iter": ({"max_iter": 0}, r"max_iter must be at least 1, got 0"),
    "tol zero": ({"tol": 0.0}, r"tol must be a finite number above 0, got 0\.0"),
    "tol nan": ({"tol": np.nan}, r"tol must be a finite number above 0, got nan"),
    "no samples": ({"X": X[:0], "Y": Y[:0]}, r"X is empty: its shape is \(0, 4\)"),
    "no features": ({"X": X[:, :0], "lam": []}, r"X is empty: its shape is \(10, 0\)"),
    "no targets": ({"Y": Y[:, :0]}, r"Y is empty: its shape is \(10, 0\)"),
    "ragged": (
        {"X": [[1.0, 2.0], [1.0, 2.0], [1.0]]},
        r"X cannot be read as a rectangular array of numbers: row 1 has length 2, row 2 has 1\. All rows must",
    ),
    "named targets": (
        {"Y": pd.DataFrame(spoiled(Y, np.s_[:, 1]), columns=["cost", "yield"])},
        r"Y has no observed entry of positive weight in column 'yield'\.",
    ),
    "B_init shape": ({"B_init": np.ones((4, 3))}, r"B_init must have shape \(4, 2\) .* got \(4, 3\)"),
    "B_init nan": ({"B_init": np.full((4, 2), np.nan)}, r"B_init has 8 NaN or infinite entries"),
    "intercept without one": ({"intercept_init": [1.0, 1.0]}, r"intercept_init was given but fit_intercept is False"),
    "intercept shape": ({"intercept_init": [1.0], "fit_intercept": True}, r"intercept_init must have shape \(2,\)"),
}


@pytest.mark.parametrize("name", BAD_VALUES)
def test_bad_values(name):
    changes, message = BAD_VALUES[name]
    with pytest.raises(ValueError, match=message):
        go.solve(**{"X": X, "Y": Y, "lam": LAM, **changes})


BAD_TYPES = {
    "object X": (
        {"X": np.array([["a", 1], ["b", 2]], dtype=object)},
        r"X must hold real numbers, but column 0 has text \('a' in row 0\)\. Encode text",
    ),
    "text Y": ({"Y": np.array(["a"] * 10)}, r"Y must hold real numbers, got dtype"),
    "complex X": ({"X": X + 1j}, r"X must hold real numbers, got dtype complex128"),
    "complex sparse": (
        {"X": sp.csr_array(X + 1j)},
        r"X must hold real numbers, got a sparse matrix of dtype complex128",
    ),
    "object lam": ({"lam": [None] * 4}, r"lam must hold real numbers"),
    "max_iter": ({"max_iter": 10.5}, r"max_iter must be an integer, got 10\.5 of type float"),
    "tol": ({"tol": "small"}, r"tol must be a number, got 'small' of type str"),
    "callback": ({"callback": 3}, r"callback must be callable, got 3"),
    "dates": (
        {"X": np.full((10, 4), np.datetime64("2020-01-01"))},
        r"X must hold real numbers, got dtype datetime64\[D\]\. Turn dates into numbers first",
    ),
    "dates in a frame": (
        {"X": pd.DataFrame({"a": X[:, 0], "day": pd.date_range("2020", periods=10)})},
        r"X must hold real numbers, but column 'day' has dates \(datetime64\[\w+\]\)\. Turn dates",
    ),
    "dates in polars": (
        {"X": pl.DataFrame({"a": X[:, 0], "day": [datetime.date(2020, 1, 1)] * 10})},
        r"X must hold real numbers, but column 'day' has dates \(Date\)\. Turn dates",
    ),
    "numbers as objects": (
        {"X": X.astype(object)},
        r"X must hold real numbers, got dtype object\. .*become real ones by \.astype\(float\)",
    ),
}


@pytest.mark.parametrize("name", BAD_TYPES)
def test_bad_types(name):
    changes, message = BAD_TYPES[name]
    with pytest.raises(TypeError, match=message):
        go.solve(**{"X": X, "Y": Y, "lam": LAM, **changes})


def test_unknown_weights_are_refused_with_the_known_ones():
    with pytest.raises(ValueError, match=r"weights must be one of 'oscar', 'linear', 'constant', .*; got 'slope'"):
        go.lam_max(X, Y, "slope")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"X": 1e200 * X},
            r"X has 4 columns so large that their squared norm overflows, the first is column 0\. Rescale",
        ),
        ({"X": 1e200 * X, "fit_intercept": True}, "squared norm overflows"),
        ({"Y": 1e200 * Y}, r"The targets \(y or Y\) or sample_weight are so large that the loss overflows"),
        (
            {"sample_weight": np.full(10, 1e308)},
            r"sample_weight is so large that its sum overflows: its largest entry is 1e\+308\. Use smaller weights",
        ),
    ],
)
def test_data_that_overflow_are_refused_without_warnings(changes, message):
    with pytest.raises(ValueError, match=message):
        go.solve(**{"X": X, "Y": Y, "lam": LAM, **changes})


@pytest.mark.parametrize("size", [1e120, 1e150, 1e200, 1e300])
@pytest.mark.parametrize("loss", ["squared", "multinomial"])
def test_an_overflowing_iterate_proves_nothing(size, loss):
    """Correlations that overflow must not look like rows below their weights."""
    targets = Y if loss == "squared" else ONE_HOT
    screener = go.SafeScreener(X, targets, LAM, loss=loss)
    before = screener.update(np.zeros((4, 2)))
    report = screener.update(np.full((4, 2), size))
    assert len(report.newly_screened) == 0
    assert report.dual >= before.dual
    assert not report.gap < before.gap


def test_settings_given_as_classes_or_of_the_wrong_kind():
    with pytest.raises(ValueError, match="solver must be one of 'auto', 'apgd', 'spgd'; got <class"):
        go.solve(X, Y, LAM, solver=go.APGD)
    with pytest.raises(ValueError, match="loss must be one of"):
        go.solve(X, Y, LAM, loss=type(go.losses.SquaredLoss()))
    with pytest.raises(TypeError, match="fit_intercept must be True or False, got 'no'"):
        go.solve(X, Y, LAM, fit_intercept="no")
    with pytest.raises(TypeError, match="lam must be an array of numbers, got None"):
        go.solve(X, Y, None)
    with pytest.raises(TypeError, match="Y must be a dense array, got a sparse matrix"):
        go.solve(X, sp.csr_array(Y), LAM)
    with pytest.raises(TypeError, match="X is a masked array"):
        go.solve(np.ma.masked_invalid(X), Y, LAM)
