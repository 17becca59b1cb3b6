"""Bad input of estimators: a clear message that names the argument, what was given and what to do."""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.exceptions import DataConversionWarning
from sklearn.model_selection import GroupKFold

from groupowl import group_owl_path
from groupowl.estimators import (
    GroupOWLClassifier,
    GroupOWLClassifierCV,
    GroupOWLRegressor,
    GroupOWLRegressorCV,
)

RNG = np.random.default_rng(0)
X = RNG.standard_normal((12, 4))
Y = RNG.standard_normal((12, 2))
LABELS = np.arange(12) % 3
NAMED = pd.DataFrame(X, columns=["age", "sex", "dose", "site"])
BOTH = [GroupOWLRegressor, GroupOWLClassifier]


def spoiled(array, *places, value=np.nan):
    copy = array.copy()
    for place in places:
        copy[place] = value
    return copy


FOR_CLASSIFIERS = r"Labels of classes are for GroupOWLClassifier and GroupOWLClassifierCV\.$"

# For both classes: settings, changes of the data, message.
BAD_VALUES = {
    "nan in X": (
        {},
        {"X": spoiled(X, (0, 1), (3, 1), (2, 3))},
        r"X has 3 NaN or infinite entries in columns 1, 3\..*SimpleImputer",
    ),
    "inf in X": ({}, {"X": spoiled(X, (0, 2), value=np.inf)}, r"X has 1 NaN or infinite entry in column 2\."),
    "nan in a frame": (
        {},
        {"X": pd.DataFrame(spoiled(X, (0, 2)), columns=NAMED.columns)},
        r"X has 1 NaN or infinite entry in column 'dose'\. .*SimpleImputer",
    ),
    "nan in sparse X": ({}, {"X": sp.csr_array(spoiled(X, (5, 3)))}, r"X has 1 NaN or infinite entry in column 3\."),
    "nan in float32 X": ({}, {"X": spoiled(X, (5, 3)).astype(np.float32)}, r"X has 1 NaN or infinite entry"),
    "nan in sample_weight": ({}, {"sample_weight": spoiled(np.ones(12), 4)}, r"sample_weight has 1 NaN or infinite"),
    "sample_weight length": ({}, {"sample_weight": np.ones(9)}, r"X has 12 rows, sample_weight has length 9"),
    "sample_weight negative": (
        {},
        {"sample_weight": np.r_[-1.0, np.ones(11)]},
        r"sample_weight must be non-negative, but sample_weight\[0\] is -1\.0",
    ),
    "sample_weight zero": ({}, {"sample_weight": np.zeros(12)}, r"sample_weight is all zero: at least one sample"),
    "sample_weight matrix": (
        {},
        {"sample_weight": np.ones((12, 1))},
        r"sample_weight must (be 1-dimensional|have one .*, shape \(12,\), or one .*, shape \(12, 2\), got \(12, 1\))",
    ),
    "rows differ": ({}, {"X": X[:7]}, r"X and y must have one row per sample: X has 7 rows, y has 12"),
    "X flat": ({}, {"X": X[:, 0]}, r"Expected 2D array, got 1D array.*reshape"),
    "no features": ({}, {"X": X[:, :0]}, r"0 feature\(s\) .* minimum of 1 is required"),
    "no samples": ({}, {"X": X[:0]}, r"0 sample\(s\) .* minimum of 1 is required"),
    "text": (
        {},
        {"X": pd.DataFrame({"age": X[:, 0], "town": ["a"] * 12})},
        r"X must hold real numbers, but column 'town' has text \('a' in row 0\)\. Encode text .*OneHotEncoder",
    ),
    "text in an array": (
        {},
        {"X": np.array([["a", 1.0, "b"]] * 12, dtype=object)},
        r"X must hold real numbers, but columns 0, 2 have text \('a' in row 0\)",
    ),
    "lists in a frame": (
        {},
        {"X": NAMED.astype(object).assign(dose=[[1, 2]] * 12)},
        r"X must hold real numbers, but column 'dose' has entries of type list \(\[1, 2\] in row 0\)\. Every entry",
    ),
    "ragged X": (
        {},
        {"X": [[1.0, 2.0]] * 11 + [[1.0]]},
        r"X cannot be read as a rectangular array of numbers: row 10 has length 2, row 11 has 1\. All rows",
    ),
    "ragged y": ({}, {"y": [[1.0, 2.0]] * 11 + [[1.0]]}, r"y cannot be read as a rectangular array of numbers: row 10"),
    "names twice": (
        {},
        {"X": NAMED.set_axis(["age", "sex", "sex", "site"], axis=1)},
        r"X has 2 columns of the name 'sex', columns 1, 2, and names must be unique\. Rename them",
    ),
    "names twice, unpenalized": (
        {"unpenalized": ["sex"]},
        {"X": NAMED.set_axis(["age", "sex", "sex", "site"], axis=1)},
        r"X has 2 columns of the name 'sex', columns 1, 2",
    ),
    "sample_weight large": (
        {},
        {"sample_weight": np.full(12, 1e308)},
        r"sample_weight is so large that its sum overflows: its largest entry is 1e\+308\. Use smaller weights",
    ),
    "complex": ({}, {"X": X + 1j}, r"Complex data not supported"),
    "y missing": ({}, {"y": None}, r"requires y to be passed, but the target y is None"),
    "y a number": ({}, {"y": 3.0}, r"y must have one entry per sample, got 3\.0"),
    "overflow": ({}, {"X": 1e200 * X}, r"squared norm overflows.*Rescale"),
    "alpha zero": ({"alpha": 0.0}, {}, r"alpha must be a finite number above 0, got 0\.0"),
    "alpha negative": ({"alpha": -1}, {}, r"alpha must be a finite number above 0, got -1"),
    "alpha nan": ({"alpha": np.nan}, {}, r"alpha must be a finite number above 0, got nan"),
    "alpha text": ({"alpha": "best"}, {}, r"alpha must be a positive number or 'auto', got 'best'"),
    "weights name": ({"weights": "slope"}, {}, r"weights must be one of 'oscar', 'linear', .*; got 'slope'"),
    "weights length": ({"weights": [1.0, 0.5]}, {}, r"X has 4 columns, weights has length 2"),
    "weights rise": ({"weights": [1.0, 0.5, 0.7, 0.1]}, {}, r"weights must be non-increasing, but weights\[2\] = 0\.7"),
    "weights negative": ({"weights": [1.0, 0.5, 0.1, -0.1]}, {}, r"weights must be non-negative, but weights\[3\]"),
    "weights number": ({"weights": 0.5}, {}, r"got the number 0\.5\. Use .* 0\.5 \* go\.weights\.oscar"),
    "weights empty": ({"weights": []}, {}, r"X has 4 columns, weights has length 0"),
    "weights zero": ({"weights": np.zeros(4)}, {}, r"weights is all zero"),
    "solver": ({"solver": "newton"}, {}, r"solver must be one of 'auto', 'apgd'.*; got 'newton'"),
    "screening": ({"screening": True}, {}, r"screening must be one of 'safe', 'paper', 'none'; got True"),
    "max_iter": ({"max_iter": 0}, {}, r"max_iter must be at least 1, got 0"),
    "tol": ({"tol": 0.0}, {}, r"tol must be a finite number above 0, got 0\.0"),
    "random_state": ({"random_state": "x"}, {}, r"random_state must be a non-negative integer.*got 'x'"),
    "unpenalized name": (
        {"unpenalized": ["height"]},
        {"X": NAMED},
        r"unpenalized has the name 'height', which is no column of X\. Columns: 'age', 'sex', 'dose', 'site'",
    ),
    "unpenalized without names": ({"unpenalized": ["age"]}, {}, r"unpenalized has the name 'age', but X has no column"),
    "unpenalized index": ({"unpenalized": [4]}, {}, r"unpenalized has the index 4, but X has 4 columns"),
    "unpenalized everything": ({"unpenalized": [0, 1, 2, 3]}, {}, r"unpenalized has all 4 features"),
}


@pytest.mark.parametrize("name", BAD_VALUES)
@pytest.mark.parametrize("cls", BOTH)
def test_bad_values(cls, name):
    settings, changes, message = BAD_VALUES[name]
    data = {"X": X, "y": Y if cls is GroupOWLRegressor else LABELS, **changes}
    with pytest.raises(ValueError, match=f"(?s){message}"):
        cls(**settings).fit(**data)


BAD_TYPES = {
    "max_iter": ({"max_iter": 10.5}, {}, r"max_iter must be an integer, got 10\.5 of type float"),
    "tol": ({"tol": "small"}, {}, r"tol must be a number, got 'small' of type str"),
    "alpha": ({"alpha": [0.1]}, {}, r"alpha must be a positive number or 'auto', got \[0\.1\] of type list"),
    "alpha None": ({"alpha": None}, {}, r"alpha must be a positive number or 'auto', got None of type NoneType"),
    "fit_intercept": ({"fit_intercept": "no"}, {}, r"fit_intercept must be True or False, got 'no'"),
    "standardize": ({"standardize": 1}, {}, r"standardize must be True or False, got 1"),
    "relaxed": ({"relaxed": "yes"}, {}, r"relaxed must be True or False, got 'yes'"),
    "warm_start": ({"warm_start": None}, {}, r"warm_start must be True or False, got None"),
    "verbose": ({"verbose": "loud"}, {}, r"verbose must be an integer, got 'loud'"),
    "unpenalized": ({"unpenalized": [1.5]}, {}, r"unpenalized must hold names or indices of columns, got 1\.5"),
    "X missing": ({}, {"X": None}, r"X is None\. Give the data as an array of shape \(n_samples, n_features\)"),
    "dates": (
        {},
        {"X": NAMED.assign(day=pd.date_range("2020", periods=12), time=pd.to_timedelta(np.arange(12), "D"))},
        r"X must hold real numbers, but columns 'day', 'time' have dates \(datetime64\[\w+\]\)\. Turn dates",
    ),
    "nothing but dates": (
        {},
        {"X": pd.DataFrame({"day": pd.date_range("2020", periods=12)})},
        r"X must hold real numbers, but column 'day' has dates",
    ),
    "periods": (
        {},
        {"X": NAMED.assign(day=pd.period_range("2020", periods=12))},
        r"X must hold real numbers, but column 'day' has dates \(Period\('2020-01-01', 'D'\) in row 0\)\. Turn dates",
    ),
    "dates in polars": (
        {},
        {"X": pl.DataFrame({"age": X[:, 0], "day": [datetime.date(2020, 1, 1)] * 12})},
        r"X must hold real numbers, but column 'day' has dates \(Date\)",
    ),
    "an array of dates": (
        {},
        {"X": np.full((12, 2), np.datetime64("2020-01-01"))},
        r"X must hold real numbers, got dtype datetime64\[D\]\. Turn dates into numbers first",
    ),
    "weights to choose from": (
        {"weights": ["bh", "oscar"]},
        {},
        r"weights must be one weight sequence here, got a list of 2 that begins with 'bh'\. "
        r"A list to choose from needs the estimators with CV at the end: GroupOWLRegressorCV",
    ),
    "weights to choose from, other kinds": (
        {"weights": (np.ones(4), "bh", np.ones)},
        {},
        r"weights must be one weight sequence here, got a list of 3 that begins with an entry of type ndarray\. ",
    ),
    "sparse y": ({}, {"y": sp.csr_array(Y)}, r"y must be a dense array, got a sparse matrix"),
}


@pytest.mark.parametrize("name", BAD_TYPES)
@pytest.mark.parametrize("cls", BOTH)
def test_bad_types(cls, name):
    settings, changes, message = BAD_TYPES[name]
    data = {"X": X, "y": Y if cls is GroupOWLRegressor else LABELS, **changes}
    with pytest.raises(TypeError, match=message):
        cls(**settings).fit(**data)


@pytest.mark.parametrize(
    ("y", "error", "message"),
    [
        (spoiled(Y, (0, 0), value=np.inf), ValueError, r"y has 1 NaN or infinite entry in column 0\."),
        (
            pd.DataFrame(spoiled(Y, (0, 1), value=np.inf), columns=["cost", "yield"]),
            ValueError,
            r"y has 1 NaN or infinite entry in column 'yield'\.",
        ),
        (np.ones((12, 2, 2)), ValueError, r"y must be 1-dimensional or 2-dimensional, got an array of shape"),
        (Y[:, :0], ValueError, r"y is empty: its shape is \(12, 0\)"),
        (np.array(["a"] * 12), TypeError, rf"y must hold real numbers, got dtype <U1\. .*{FOR_CLASSIFIERS}"),
        (
            np.array(["a", 1] * 6, dtype=object),
            TypeError,
            rf"y must hold real numbers, got dtype object\. Encode text .*{FOR_CLASSIFIERS}",
        ),
        (
            pd.DataFrame({"cost": Y[:, 0], "kind": "a"}),
            TypeError,
            rf"y must hold real numbers, but column 1 has text .*{FOR_CLASSIFIERS}",
        ),
        ([b"a"] * 12, TypeError, FOR_CLASSIFIERS),
        (
            [datetime.date(2020, 1, 1)] * 12,
            TypeError,
            r"y must hold real numbers, got dtype object\. [^.]*\.astype\(float\)\.$",
        ),
        (1e200 * Y, ValueError, r"so large that the loss overflows"),
    ],
)
def test_bad_targets(y, error, message):
    with pytest.raises(error, match=message):
        GroupOWLRegressor().fit(X, y)


@pytest.mark.parametrize(
    ("y", "error", "message"),
    [
        (np.zeros(12), ValueError, r"y has one class only, \[0\.0\]: classification needs at least two classes"),
        (np.full(12, "a"), ValueError, r"y has one class only, \['a'\]"),
        (Y[:, 0], ValueError, r"Unknown label type: continuous"),
        (2 * np.eye(3)[LABELS], ValueError, r"a matrix of 0 and 1 with a column for each label, but it has 2\.0"),
        (np.eye(4)[LABELS], ValueError, r"column 3 of the labels is 0 for every sample of positive weight"),
        (1 - np.eye(4, dtype=int)[LABELS], ValueError, r"column 3 of the labels is 1 .* Leave the column out"),
        (np.array([None] + ["a", "b"] * 5 + ["a"]), ValueError, r"y has 1 missing labels .* Remove the samples"),
        (np.r_[np.nan, np.arange(11) % 2], ValueError, r"y has 1 missing labels"),
        (np.array(["a", 1] * 6, dtype=object), TypeError, r"y mixes labels of different kinds \(int, str\)"),
    ],
)
def test_bad_labels(y, error, message):
    with pytest.raises(error, match=message):
        GroupOWLClassifier().fit(X, y)


def test_one_class_of_positive_weight():
    with pytest.raises(ValueError, match=r"y has one class only, .* samples of positive weight"):
        GroupOWLClassifier().fit(X, LABELS, sample_weight=(LABELS == 1).astype(float))


@pytest.mark.parametrize(
    ("class_weight", "message"),
    [
        ({0: 1.0, 7: 2.0}, r"class_weight has the classes \[7\], which y does not have\. Classes of y: \[0, 1, 2\]"),
        ({0: -1.0}, r"class_weight\[0\] must be a finite number above 0, got -1\.0"),
        ("even", r"class_weight must be None, 'balanced' or a dict of class: weight, got 'even'"),
        ([1.0, 2.0, 3.0], r"class_weight must be None, 'balanced' or a dict"),
    ],
)
def test_bad_class_weights(class_weight, message):
    with pytest.raises(ValueError, match=message):
        GroupOWLClassifier(class_weight=class_weight).fit(X, LABELS)


def test_class_weights_that_overflow_with_sample_weights():
    with pytest.raises(ValueError, match=r"sample_weight times class_weight is so large that its sum overflows"):
        GroupOWLClassifier(class_weight={0: 1e200}).fit(X, LABELS, sample_weight=np.full(12, 1e150))


def test_a_column_of_labels_is_one_label_per_sample_with_a_warning():
    with pytest.warns(DataConversionWarning, match="column-vector"):
        column = GroupOWLClassifier().fit(X, LABELS[:, None])
    np.testing.assert_array_equal(column.coef_, GroupOWLClassifier().fit(X, LABELS).coef_)


@pytest.mark.parametrize("cls", BOTH)
def test_data_unlike_those_of_the_fit(cls):
    y = Y if cls is GroupOWLRegressor else LABELS
    model = cls().fit(NAMED, y)
    methods = ["predict"] if cls is GroupOWLRegressor else ["predict", "predict_proba", "decision_function"]
    for method in methods:
        call = getattr(model, method)
        with pytest.raises(ValueError, match=r"(?s)feature names.*unseen at fit time.*height"):
            call(NAMED.rename(columns={"age": "height"}))
        with pytest.raises(ValueError, match=r"(?s)feature names.*same order"):
            call(NAMED[["sex", "age", "dose", "site"]])
    with pytest.raises(ValueError, match=r"X has 3 features, but GroupOWL\w+ is expecting 4 features"):
        cls().fit(X, y).predict(X[:, :3])
    with pytest.raises(ValueError, match=r"X has 1 NaN or infinite entry in column 'sex'\. .*SimpleImputer"):
        model.predict(NAMED.assign(sex=spoiled(X[:, 1], 3)))
    with pytest.raises(TypeError, match=r"column 'sex' has dates"):
        model.predict(NAMED.assign(sex=pd.date_range("2020", periods=12)))
    with pytest.raises(TypeError, match=r"X is None\. Give the data"):
        model.predict(None)


# Masks --------------------------------------------------------------------------------------------------


def hidden(values):
    """Some entries masked; without the mask they would count."""
    return np.ma.array(values, mask=np.arange(np.size(values)).reshape(np.shape(values)) % 5 == 3)


@pytest.mark.parametrize("cls", [*BOTH, GroupOWLRegressorCV, GroupOWLClassifierCV])
@pytest.mark.parametrize("mask", [hidden, np.ma.array], ids=["some masked", "none masked"])
def test_masks_are_refused_everywhere(cls, mask):
    y = Y if "Regressor" in cls.__name__ else LABELS
    settings = {"alphas": 2, "cv": 2} if cls.__name__.endswith("CV") else {}
    data = {"X": X, "y": y, "sample_weight": np.ones(12)}
    fitted = cls(**settings).fit(**data)
    for call in (cls(**settings).fit, fitted.score, fitted.verify):
        for name, values in data.items():
            with pytest.raises(TypeError, match=rf"^{name} is a masked array, and masks are not supported; fill it"):
                call(**{**data, name: mask(values)})
    for method in {"predict", "predict_proba", "predict_log_proba", "decision_function"} & set(dir(cls)):
        with pytest.raises(TypeError, match=r"^X is a masked array"):
            getattr(fitted, method)(mask(X))
    with pytest.raises(TypeError, match=r"^unpenalized is a masked array"):
        cls(unpenalized=mask(np.arange(4) < 2), **settings).fit(X, y)


def test_masks_are_refused_in_lists_groups_folds_and_labels_of_paths():
    with pytest.raises(TypeError, match=r"^X is a masked array"):
        GroupOWLRegressor().fit(list(hidden(X)), Y)
    with pytest.raises(TypeError, match=r"^y is a masked array"):
        GroupOWLRegressor().fit(X, list(hidden(Y)))
    groups = np.arange(12) % 4
    with pytest.raises(TypeError, match=r"^groups is a masked array"):
        GroupOWLRegressorCV(alphas=2, cv=GroupKFold(2)).fit(X, Y, groups=hidden(groups))
    with pytest.raises(TypeError, match=r"^the test part of split 0 of cv is a masked array"):
        GroupOWLRegressorCV(alphas=2, cv=[(np.arange(6), hidden(np.arange(6, 12)))]).fit(X, Y)
    with pytest.raises(TypeError, match=r"^y is a masked array"):
        group_owl_path(X, hidden(LABELS), alphas=2, loss="multinomial")


def test_names_in_errors_have_no_control_characters():
    """scikit-learn lists the names of columns that are new, as they are."""
    X = np.random.default_rng(0).standard_normal((20, 2))
    model = GroupOWLRegressor().fit(pd.DataFrame(X, columns=["a", "b"]), X[:, 0])
    with pytest.raises(ValueError, match=r"feature names[\s\S]*z\\x1b\[1m") as caught:
        model.predict(pd.DataFrame(X, columns=["a", "z\x1b[1m"]))
    assert "\x1b" not in str(caught.value)


def test_bytes_are_no_folds():
    X = np.random.default_rng(0).standard_normal((20, 2))
    with pytest.raises(TypeError, match=r"cv must be None, a number of folds.*got b'x'"):
        GroupOWLRegressorCV(cv=b"x").fit(X, X[:, 0])
