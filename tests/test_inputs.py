"""Names, labels and columns as users give them."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp

from groupowl.inputs import encode_labels, feature_names, resolve_columns

NAMES = ["age", "sex", "dose", "site", "batch", "year"]


# Names --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
def test_frames_have_names(kind):
    assert feature_names(kind({"age": [1.0], "sex": [0.0]})) == ["age", "sex"]


@pytest.mark.parametrize("X", [np.ones((2, 2)), [[1.0]], sp.eye_array(2), pd.DataFrame(np.ones((2, 2)))], ids=type)
def test_other_data_have_none(X):
    assert feature_names(X) is None


def test_names_are_text_or_nothing():
    assert feature_names(pd.DataFrame([[1.0, 2.0]], columns=["age", 3])) is None


# Labels -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "labels",
    [
        ["b", "a", "c", "a"],
        [5, -1, 7, -1],
        [True, False, True, False],
        [1.0, 0.0, 2.0, 0.0],
        pd.Series(["b", "a", "c", "a"]),
        pd.Categorical(["b", "a", "c", "a"]),
        pl.Series(["b", "a", "c", "a"]),
        np.array([["b"], ["a"], ["c"], ["a"]]),
    ],
    ids=lambda labels: f"{type(labels).__name__} {np.asarray(labels).dtype}",
)
def test_labels_become_one_hot_rows_of_sorted_classes(labels):
    classes, Y = encode_labels(labels)
    flat = np.asarray(labels).ravel()
    assert classes.tolist() == sorted(set(flat.tolist()))
    assert Y.dtype == np.float64
    np.testing.assert_array_equal(Y.sum(axis=1), 1.0)
    np.testing.assert_array_equal(classes[np.argmax(Y, axis=1)], flat)


@pytest.mark.parametrize(
    ("labels", "kind"),
    [([3, -1, 3], "i"), ([np.int8(3), -1, np.int64(3)], "i"), ([True, False, np.True_], "b"), (["b", "a", "b"], "O")],
    ids=str,
)
def test_objects_of_one_kind_are_labels_of_that_kind(labels, kind):
    classes, Y = encode_labels(np.array(labels, dtype=object))
    assert classes.dtype.kind == kind
    assert classes.tolist() == sorted(set(labels))
    np.testing.assert_array_equal(Y, [[0.0, 1.0], [1.0, 0.0], [0.0, 1.0]])


def test_objects_of_several_kinds_stay_objects():
    for labels in ([1, True, 0], [1, 2.5, 1], [2**70, 1, 2]):
        assert encode_labels(np.array(labels, dtype=object))[0].dtype == object


def test_a_class_without_weight_is_not_there():
    classes, Y = encode_labels(["a", "b", "c", "a"], np.array([1.0, 0.0, 2.0, 0.0]))
    assert classes.tolist() == ["a", "c"]
    np.testing.assert_array_equal(Y[[0, 2, 3]], [[1, 0], [0, 1], [1, 0]])


@pytest.mark.parametrize(
    ("labels", "weight", "kind", "message"),
    [
        (["a", "a"], None, ValueError, r"y has one class only, \['a'\]: .* at least two classes"),
        (["a", "b"], [1.0, 0.0], ValueError, r"y has one class only, \['a'\]: .* positive weight"),
        (np.ones((2, 2)), None, ValueError, r"y must be one label per sample, got an array of shape \(2, 2\)"),
        ([1.0, np.nan, np.nan], None, ValueError, "y has 2 missing labels .* Remove the samples"),
        (["a", None, "b"], None, ValueError, "y has 1 missing labels"),
        (np.array(["a", 1], dtype=object), None, TypeError, r"different kinds \(int, str\).*astype\(str\)"),
    ],
    ids=str,
)
def test_bad_labels(labels, weight, kind, message):
    with pytest.raises(kind, match=message):
        encode_labels(labels, None if weight is None else np.array(weight))


# Columns ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        (None, []),
        ([], []),
        ("dose", [2]),
        (3, [3]),
        (np.int64(3), [3]),
        (["year", "age"], [0, 5]),
        (["age", 0, -6, "age"], [0]),
        ([-1, 1], [1, 5]),
        (np.array([4, 2]), [2, 4]),
        (pd.Index(["sex", "site"]), [1, 3]),
        ([True, False, False, True, False, False], [0, 3]),
        (np.array([False] * 5 + [True]), [5]),
        ((name for name in ("sex", "age")), [0, 1]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_columns_by_name_by_index_or_as_a_mask(columns, expected):
    found = resolve_columns("unpenalized", columns, 6, NAMES)
    assert found.dtype == np.intp
    assert found.tolist() == expected


@pytest.mark.parametrize(
    ("columns", "names", "kind", "message"),
    [
        (["weight"], NAMES, ValueError, r"'weight', which is no column of X. Columns: 'age', .*'batch' and 1 more\."),
        (["age"], None, ValueError, r"the name 'age', but X has no column names\. Give X as a data frame, or an index"),
        ([6], NAMES, ValueError, "the index 6, but X has 6 columns"),
        ([-7], NAMES, ValueError, "the index -7, but X has 6 columns"),
        ([1.0], NAMES, TypeError, r"must hold names or indices of columns, got 1\.0 of type float"),
        ([1, True], NAMES, TypeError, "must hold names or indices of columns, got True of type bool"),
        ([True, False], NAMES, ValueError, "as a mask must have one entry per feature: 6, got 2"),
        (["age"], ["age", "sex", "age"], ValueError, r"'age', which 2 columns of X have: \[0, 2\]\. Rename them, or"),
        (range(6), NAMES, ValueError, "has all 6 features: at least one must be penalized"),
    ],
    ids=str,
)
def test_bad_columns(columns, names, kind, message):
    with pytest.raises(kind, match="unpenalized .*" + message):
        resolve_columns("unpenalized", columns, 6, names)
