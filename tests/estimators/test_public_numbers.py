"""Gaps and proofs speak of the numbers that users get, and of nothing that rounding has hidden."""

from __future__ import annotations

import warnings
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

import groupowl as go

RNG = np.random.default_rng(0)
X = RNG.standard_normal((30, 3))
Y = X @ [1.0, 0.5, 0.0] + 0.1 * RNG.standard_normal(30)


def exact(values):
    return [Fraction(float(value)) for value in np.asarray(values).ravel()]


def excess_of_the_intercept(model, X, y):
    """Exactly what the mean squared loss falls by when the public intercept is replaced by the best one."""
    coef, intercept = exact(model.coef_), Fraction(float(model.intercept_))
    residuals = [
        target - sum(a * b for a, b in zip(exact(row), coef, strict=True)) - intercept
        for row, target in zip(X, exact(y), strict=True)
    ]
    mean = sum(residuals) / len(residuals)
    return float(mean * mean / 2)


def fit_quietly(model, *data):
    """A fit that may say that the tolerance cannot be proved."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(*data)


@pytest.mark.parametrize("standardize", [False, True])
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("shift", [0.0, 1e6, 1e9, 1e12])
def test_the_gap_allows_for_the_rounding_of_the_intercept(shift, kind, standardize):
    data = X + shift
    model = fit_quietly(go.GroupOWLRegressor(0.05, tol=1e-10, standardize=standardize), kind(data), Y)
    assert excess_of_the_intercept(model, data, Y) <= model.dual_gap_
    if shift <= 1e6:
        assert model.solve_result_.converged


@pytest.mark.parametrize("shift", [1e3, 1e8])
@pytest.mark.parametrize("alpha", [0.05, 1e3], ids=["features", "no features"])
def test_single_precision_is_in_the_gap(alpha, shift):
    """Near 1e8 single precision has steps of 8: no intercept is near the mean."""
    single, y = X.astype(np.float32), Y + shift + 0.3
    model = fit_quietly(go.GroupOWLRegressor(alpha), single, y)
    assert model.intercept_.dtype == np.float32
    excess = excess_of_the_intercept(model, single, y)
    assert excess <= model.dual_gap_
    assert model.solve_result_.converged == (shift == 1e3)
    path = go.group_owl_path(single, y, alphas=[alpha, alpha / 2]) if shift == 1e3 else None
    assert path is None or np.all(path.dual_gaps <= 1e-6 * np.var(y))


def test_status_is_precision_where_rounding_takes_more_than_the_tolerance():
    with pytest.warns(ConvergenceWarning, match="limit of the arithmetic.*double precision"):
        model = go.GroupOWLRegressor(0.05).fit(X.astype(np.float32), Y + 1e8 + 0.3)
    assert model.solve_result_.status == "precision"
    assert model.dual_gap_ > 1e-3


def test_single_precision_classes_are_proved_to_many_digits():
    """Coefficients of a good fit may be rounded: the objective changes by the square of it."""
    labels = (Y > 0.0).astype(int)
    model = go.GroupOWLClassifier(0.01, tol=1e-9).fit(X.astype(np.float32), labels)
    assert model.solve_result_.converged
    assert model.verify(X.astype(np.float32), labels)


@pytest.mark.parametrize("shift", [0.0, 1e9])
def test_rounded_coefficients_of_unpenalized_columns_are_in_the_gap(shift):
    """The loss without penalty is smallest where residuals are orthogonal to what is not penalized."""
    data, y = X.copy(), Y + shift
    data[:, 1] *= 1e3
    model = fit_quietly(go.GroupOWLRegressor(0.05, unpenalized=[1]), data.astype(np.float32), y)
    rows = data.astype(np.float32).astype(np.longdouble)
    residuals = y - rows @ model.coef_.astype(np.longdouble) - np.longdouble(model.intercept_)
    block = np.column_stack([np.ones(30), rows[:, 1].astype(float)])
    found = np.linalg.lstsq(block, residuals.astype(float), rcond=None)[0]
    assert 0.5 * np.mean((block @ found) ** 2) <= 1.001 * model.dual_gap_


# Columns that are left out -------------------------------------------------------------------------------


def states_of(model):
    return model.certificate().states.tolist()


@pytest.mark.parametrize("estimator", [go.GroupOWLRegressor(0.01), go.GroupOWLRegressorCV(alphas=5, cv=2)])
@pytest.mark.parametrize("standardize", [False, True])
def test_columns_that_vary_by_rounding_are_treated_as_constant(estimator, standardize):
    """Nothing is proved about them: they vary with the target. Constant columns are proved zero."""
    data = np.column_stack([X[:, 0], 1e12 + 1e-3 * np.round(Y), np.full(30, 0.1)])
    model = estimator.set_params(standardize=standardize).fit(data, Y)
    assert np.std(data[:, 1]) > 0.0
    assert states_of(model) == ["selected", "treated as constant", "proved zero"]
    assert "1 treated as constant" in repr(model.certificate())
    assert 1 in model.solve_result_.active
    assert model.screened_fraction_ == pytest.approx(1 / 3)


def test_columns_in_the_span_of_unpenalized_ones_are_said_to_be_explained():
    data = np.column_stack([X, 0.1 * X[:, 1] + 1.0, np.full(30, 2.0)])
    model = go.GroupOWLRegressor(0.01, unpenalized=[1]).fit(data, Y)
    assert states_of(model) == ["selected", "unpenalized", "proved zero", "explained by unpenalized", "proved zero"]
    assert model.verify(data, Y)


# Magnitudes ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array, sp.csc_array], ids=["dense", "csr", "csc"])
@pytest.mark.parametrize("settings", [{}, {"standardize": True}, {"fit_intercept": False}], ids=str)
@pytest.mark.parametrize("scale", [1e-150, 1e-160, 1e-170, 1e-300])
def test_columns_whose_squares_underflow_are_refused(scale, settings, kind):
    data = X * [1.0, scale, 1.0]
    for estimator, y in [(go.GroupOWLRegressor(0.01, **settings), Y), (go.GroupOWLClassifier(0.01, **settings), Y > 0)]:
        with pytest.raises(ValueError, match=r"X has columns so small .* underflows, the first is column 1\. Rescale"):
            estimator.fit(kind(data), y)


@pytest.mark.parametrize("settings", [{}, {"standardize": True}, {"fit_intercept": False}], ids=str)
@pytest.mark.parametrize("scale", [1e-150, 1e-160, 1e-170, 1e-300])
def test_targets_whose_squares_underflow_are_refused(scale, settings):
    with pytest.raises(ValueError, match=r"Y is so small.*underflow.*Rescale"):
        go.GroupOWLRegressor(0.01 * scale, **settings).fit(X, scale * Y)


def test_columns_and_targets_whose_products_underflow_are_refused():
    with pytest.raises(ValueError, match=r"X and Y are so small that their products underflow.*Rescale"):
        go.GroupOWLRegressor().fit(1e-90 * X, 1e-90 * np.column_stack([Y, Y]))


@pytest.mark.parametrize("scale", [1e-160, 1e-170, 1e-300])
def test_statistics_whose_squares_underflow_are_refused(scale):
    statistics = go.SufficientStatistics
    for settings in ({}, {"standardize": True}, {"fit_intercept": False}):
        model = go.GroupOWLRegressor(0.01, **settings)
        for data in (X * [1.0, scale, 1.0], sp.csr_array(X * [1.0, scale, 1.0])):
            with pytest.raises(ValueError, match=r"^Column 1 of X is so small that its squares underflow"):
                model.fit(statistics.from_arrays(data[:20], Y[:20]) + statistics.from_arrays(data[20:], Y[20:]))
        with pytest.raises(ValueError, match="Y is so small"):
            model.fit(statistics.from_arrays(X, scale * Y))
        with pytest.raises(ValueError, match=r"so small that its squares underflow.* or sample_weight"):
            model.fit(statistics.from_arrays(X, Y, np.full(30, 1e-300)))


@pytest.mark.parametrize("scale", [1e-130, 1e-60, 1e60, 1e130])
def test_small_and_large_columns_are_scaled_exactly(scale):
    """Powers of two change no digit."""
    scale = 2.0 ** np.round(np.log2(scale))
    plain = go.GroupOWLRegressor(0.05, standardize=True).fit(X, Y)
    scaled = go.GroupOWLRegressor(0.05, standardize=True).fit(scale * X, Y)
    np.testing.assert_array_equal(plain.coef_, scaled.coef_ * scale)
    assert scaled.dual_gap_ == plain.dual_gap_


def test_columns_of_zeros_are_no_underflow():
    model = go.GroupOWLRegressor(0.05).fit(np.column_stack([X, np.zeros(30)]), Y)
    assert states_of(model)[3] == "proved zero"


# Statistics ------------------------------------------------------------------------------------------------


def test_deviations_lost_in_a_subtraction_are_refused():
    data, y = np.tile(X[:, :2], (2, 1)), np.tile(Y, 2)
    data[:30, 0] += 1e8
    statistics = go.SufficientStatistics
    left = statistics.from_arrays(data, y) - statistics.from_arrays(data[:30], y[:30])
    assert not left.is_reliable()
    with pytest.raises(
        ValueError, match=r"standardize=True needs the standard deviation .* column 0: .* Fit the samples"
    ):
        go.GroupOWLRegressor(0.1, standardize=True).fit(left)
    honest = fit_quietly(go.GroupOWLRegressor(0.1), left)  # without deviations the gap knows
    assert not honest.solve_result_.converged
    assert "proved zero" not in states_of(honest)


@pytest.mark.parametrize("offset", [1e2, 1e3, 1e5, 1e9])
def test_sparse_columns_with_an_offset_are_proved_or_refused(offset):
    """Statistics of sparse data are about zero: the deviation of a column far from it is lost."""
    data = sp.csr_array(X + offset * np.eye(3)[0])
    from_data = go.GroupOWLRegressor(0.05, standardize=True).fit(data, Y)
    statistics = go.SufficientStatistics.from_arrays(data, Y)
    model = go.GroupOWLRegressor(0.05, standardize=True)
    if offset >= 1e5:
        with pytest.raises(ValueError, match="take a large offset off sparse columns"):
            model.fit(statistics)
        return
    fit_quietly(model, statistics)
    minimum = from_data.solve_result_.primal - from_data.dual_gap_
    assert model.solve_result_.primal - minimum <= model.dual_gap_ + 1e-12
    assert model.solve_result_.primal >= minimum - model.dual_gap_


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_magnitudes_at_the_upper_end_are_refused_without_a_warning(fit_intercept):
    """Products overflow before squares of single columns do."""
    model = go.GroupOWLRegressor(fit_intercept=fit_intercept)
    for data, y in [(1e90 * X, 1e90 * Y), (1e150 * X, Y), (X, 1e153 * Y)]:
        with pytest.raises(ValueError, match=r"so large that (their|the loss).* overflows?"):
            model.fit(data, y)
        with pytest.raises(ValueError, match="so large that sums of squares overflow"):
            model.fit(go.SufficientStatistics.from_arrays(data + 1e-3 * data[0], y))


@pytest.mark.parametrize("sparse", [False, True])
def test_unpenalized_columns_are_not_too_large_for_their_own_squares(sparse):
    data = X * [1.0, 1e160, 1.0]
    with pytest.raises(ValueError, match=r"X has 1 columns so large .* the first is column 1"):
        go.GroupOWLRegressor(unpenalized=[1], fit_intercept=False).fit(sp.csr_array(data) if sparse else data, Y)


def test_coefficients_beyond_single_precision_are_refused():
    with pytest.raises(ValueError, match=r"single precision holds. Give X in double precision \(float64\), or resc"):
        go.GroupOWLRegressor().fit(X.astype(np.float32), 1e50 * Y)


def test_unpenalized_columns_may_be_treated_as_constant_too():
    data = np.column_stack([X[:, 0], 1e12 + 1e-3 * np.round(Y)])
    model = go.GroupOWLRegressor(0.01, unpenalized=[1]).fit(data, Y)
    assert states_of(model) == ["selected", "treated as constant"]
    assert model.coef_[1] == 0.0


@pytest.mark.parametrize("from_statistics", [False, True])
def test_targets_that_vary_by_rounding_hide_which_features_explain_them(from_statistics):
    y = 0.3 + 2.0**-54 * np.round(Y)
    assert np.std(y) > 0.0
    model = go.GroupOWLRegressor(1e-20)
    data = (go.SufficientStatistics.from_arrays(X, y),) if from_statistics else (X, y)
    model.fit(*data)
    assert states_of(model) == ["zero, not proved"] * 3
    assert excess_of_the_intercept(model, X, y) + 0.5 * np.var(y) <= model.dual_gap_
    constant = go.GroupOWLRegressor(1e-20).fit(X, np.full(30, 0.3))
    assert states_of(constant) == ["proved zero"] * 3


def test_sparse_data_may_have_unpenalized_columns_only():
    data = sp.csr_array(np.column_stack([X[:, 0], X[:, 0]]))
    model = go.GroupOWLRegressor(0.1, unpenalized=[0], standardize=True).fit(data, Y)
    assert states_of(model) == ["unpenalized", "explained by unpenalized"]


@pytest.mark.parametrize("offset", [1e2, 1e3])
def test_reliable_statistics_are_standardized_to_the_default_tolerance(offset):
    """The error of a deviation counts once: sparse data with an offset, and a part with larger columns taken off."""
    statistics = go.SufficientStatistics
    sparse = statistics.from_arrays(sp.csr_array(X + offset * np.eye(3)[0]), Y)
    part = statistics.from_arrays(X[::-1] * [offset, 1.0, 1.0], Y)
    for known in (sparse, (statistics.from_arrays(X, Y) + part) - part):
        assert known.is_reliable()
        model = go.GroupOWLRegressor(0.05, standardize=True).fit(known)
        assert model.solve_result_.converged
        assert model.verify(known)


@pytest.mark.parametrize("screening", ["safe", "paper", "none"])
def test_columns_lost_in_a_subtraction_are_no_columns_of_zeros(screening):
    """Nothing is left of their variation but rounding: they are not proved zero, and the gap knows."""
    large = np.vstack([X, X * [1e9, 1.0, 1.0]])
    statistics = go.SufficientStatistics
    part = statistics.from_arrays(large[30:], Y)
    left = statistics.from_arrays(large, np.tile(Y, 2)) - part
    assert np.diagonal(left.gram)[0] <= left.error * left.x_size[0] ** 2
    model = fit_quietly(go.GroupOWLRegressor(0.05, screening=screening), left)
    assert states_of(model)[0] != "proved zero"
    from_data = go.GroupOWLRegressor(0.05).fit(X, Y)
    minimum = from_data.solve_result_.primal
    assert model.solve_result_.primal - minimum <= model.dual_gap_
    assert minimum >= model.solve_result_.primal - model.dual_gap_
