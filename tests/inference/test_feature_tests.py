"""Hotelling tests of least squares: their formula, their laws, and the table of tests."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy import stats

from groupowl.inference import hotelling_tests


def make_data(n=60, d=8, q=3, *, seed=0, true=2):
    """Columns and noise are both correlated."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) @ rng.standard_normal((d, d)) + 3.0
    B = np.zeros((d, q))
    B[:true] = rng.standard_normal((true, q))
    return X, X @ B + rng.standard_normal((n, q)) @ rng.standard_normal((q, q)), B


def nested_models(X, Y, j):
    """The likelihood ratio of the models with and without a column (Wilks), as an F statistic."""

    def residuals(A):
        R = Y - A @ np.linalg.lstsq(A, Y, rcond=None)[0]
        return R.T @ R

    A = np.hstack([np.ones((len(X), 1)), X])
    m, q = len(X) - A.shape[1], Y.shape[1]
    ratio = np.linalg.det(residuals(A)) / np.linalg.det(residuals(np.delete(A, j + 1, axis=1)))
    return (1.0 - ratio) / ratio * (m - q + 1) / q, (q, m - q + 1)


@pytest.mark.parametrize("q", [1, 2, 5])
def test_p_values_are_those_of_nested_models(q):
    X, Y, _ = make_data(q=q)
    tests = hotelling_tests(X, Y)
    for j in range(X.shape[1]):
        F, freedom = nested_models(X, Y, j)
        assert tests.p_values[j] == pytest.approx(stats.f.sf(F, *freedom), rel=1e-6)


def test_one_feature_and_one_target_are_simple_regression():
    X, Y, _ = make_data(d=1, q=1, true=1)
    tests, known = hotelling_tests(X, Y[:, 0], level=0.9), stats.linregress(X[:, 0], Y[:, 0])
    assert tests.B.shape == (1, 1)
    assert tests.B[0, 0] == pytest.approx(known.slope)
    assert tests.std_errors[0, 0] == pytest.approx(known.stderr)
    assert tests.p_values[0] == pytest.approx(known.pvalue, rel=1e-6)
    margin = stats.t.ppf(0.95, 58) * known.stderr
    assert (tests.lower[0, 0], tests.upper[0, 0]) == pytest.approx((known.slope - margin, known.slope + margin))


def test_p_values_without_an_effect_are_uniform_and_intervals_cover():
    p_values, covered = [], []
    for seed in range(400):
        X, Y, B = make_data(30, 6, 3, seed=seed)
        tests = hotelling_tests(X, Y, level=0.8)
        p_values.append(tests.p_values[5])
        covered.append(tests.lower[[0, 5], 1] <= B[[0, 5], 1])
        covered[-1] &= B[[0, 5], 1] <= tests.upper[[0, 5], 1]
    assert stats.kstest(p_values, "uniform").pvalue > 0.01
    np.testing.assert_allclose(np.mean(covered, axis=0), 0.8, atol=0.06)


def test_scale_and_mixtures_change_nothing():
    X, Y, _ = make_data()
    rng = np.random.default_rng(1)
    mixing, scale = rng.standard_normal((3, 3)), 10.0 ** rng.uniform(-3, 3, 8)
    one, other = hotelling_tests(X, Y), hotelling_tests(X * scale + 1.0, Y @ mixing - 5.0)
    np.testing.assert_allclose(other.p_values, one.p_values, rtol=1e-6)
    np.testing.assert_allclose(other.B, (one.B / scale[:, None]) @ mixing, rtol=1e-6)


def test_selected_features_are_those_of_benjamini_and_hochberg():
    X, Y, _ = make_data(d=20)
    tests = hotelling_tests(X, Y, fdr=0.2)
    ranked = np.sort(tests.p_values)
    below = np.flatnonzero(ranked <= 0.2 * np.arange(1, 21) / 20)
    assert tests.selected.sum() == (below[-1] + 1 if len(below) else 0)
    np.testing.assert_array_equal(tests.support, np.flatnonzero(tests.selected))
    careful = hotelling_tests(X, Y, fdr=0.2, correction="by")
    assert np.all(careful.adjusted_p_values >= tests.adjusted_p_values)


def test_table_and_text():
    X, Y, _ = make_data()
    tests = hotelling_tests(pd.DataFrame(X, columns=list("abcdefgh")), pd.DataFrame(Y, columns=["u", "v", "w"]))
    frame = tests.to_frame()
    assert len(frame) == 24
    row = frame[(frame.feature == "b") & (frame.target == "w")].iloc[0]
    assert (row.estimate, row.lower, row.p_value) == (tests.B[1, 2], tests.lower[1, 2], tests.p_values[1])
    text = repr(tests)
    assert "Hotelling tests of least squares: 8 features, 3 targets, 51 degrees of freedom" in text
    assert sum("selected" in line for line in text.splitlines()[2:]) == tests.selected.sum()
    assert "... 10 more" in repr(hotelling_tests(*make_data(d=30)[:2]))


def test_sparse_data_are_data():
    X, Y, _ = make_data()
    np.testing.assert_array_equal(hotelling_tests(sp.csr_array(X), Y).p_values, hotelling_tests(X, Y).p_values)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"X": np.ones((9, 8))}, ValueError, r"^X and y must have one row per sample"),
        ({"X": 1.0 + np.zeros((60, 8))}, ValueError, r"^X has 8 constant columns, the first is 0"),
        ({"X": 1e200 * np.random.default_rng(0).normal(size=(60, 2))}, ValueError, r"^X has 2 columns so large that"),
        ({"X": np.arange(120.0).reshape(60, 2)}, ValueError, r"^X has columns that are combinations of others"),
        (
            {"X": np.random.default_rng(0).normal(size=(60, 57))},
            ValueError,
            r"^X has 60 samples, 57 features and 3",
        ),
        ({"fdr": 0.0}, ValueError, r"^fdr must .*got 0\.0"),
        ({"level": 95}, ValueError, r"^level must .*got 95"),
        ({"level": "high"}, TypeError, r"^level must be a number, got 'high'"),
        ({"correction": "bonferroni"}, ValueError, r"^correction must be one of 'bh', 'by'.*got 'bonferroni'"),
        ({"y": None}, ValueError, r"y"),
        (
            {"y": np.linspace(1.0, 2.0, 60) * 1e200},
            ValueError,
            r"^y is so large that its squares overflow: up to 2e\+200",
        ),
    ],
)
def test_bad_input(changes, error, message):
    X, Y, _ = make_data()
    with pytest.raises(error, match=message):
        hotelling_tests(**{"X": X, "y": Y} | changes)


@pytest.mark.parametrize("value", [2.5, 0.1, 1e6 / 3.0])
def test_a_constant_column_has_its_name(value):
    """Also where its mean is rounded."""
    X, Y, _ = make_data()
    frame = pd.DataFrame(X, columns=list("abcdefgh")).assign(c=value)
    with pytest.raises(ValueError, match=r"^X has 1 constant column, the first is 'c'"):
        hotelling_tests(frame, Y)
