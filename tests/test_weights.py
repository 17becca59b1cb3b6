"""Weight sequences: their contract, their formulas, and what is refused."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

import groupowl as go
from groupowl import weights
from groupowl.weights import check_sequence, resolve_weights, sequence_names, sequences_of

SIZES = [1, 2, 3, 10, 257, 5000]

SEQUENCES = {
    "oscar": lambda d: weights.oscar(d),
    "oscar ratio 0": lambda d: weights.oscar(d, ratio=0.0),
    "oscar ratio 1e6": lambda d: weights.oscar(d, ratio=1e6),
    "linear": weights.linear,
    "constant": weights.constant,
    **{f"bh {fdr}": lambda d, fdr=fdr: weights.bh(d, fdr=fdr) for fdr in (1e-12, 0.1, 0.999)},
    **{f"gaussian n={n}": lambda d, n=n: weights.gaussian(d, n) for n in (1, 2, 3, 40, 10_000)},
    **{f"gaussian n=50 fdr={fdr}": lambda d, fdr=fdr: weights.gaussian(d, 50, fdr=fdr) for fdr in (1e-6, 0.9)},
    **{f"chi_gauss q=3 n={n}": lambda d, n=n: weights.chi_gauss(d, 3, n) for n in (1, 2, 40, 10_000)},
    "chi_gauss of groups": lambda d: weights.chi_gauss(d, 2, 500, group_sizes=1 + np.arange(d) % 3),
    "two levels": lambda d: weights.levels(d, 1, 0.5),
    "three levels": lambda d: weights.levels(d, [(d + 2) // 3, d // 3], [0.5, 0.0]),
    **{f"chi q={q}": lambda d, q=q: weights.chi(d, q) for q in (1, 2, 10, 300)},
    **{f"chi q=5 fdr={fdr}": lambda d, fdr=fdr: weights.chi(d, 5, fdr=fdr) for fdr in (1e-12, 0.999)},
}


@pytest.mark.parametrize("name", SEQUENCES)
@pytest.mark.parametrize("d", SIZES)
def test_contract(name, d):
    """One finite weight per feature, the first 1, never rising, never negative."""
    sequence = SEQUENCES[name](d)
    assert sequence.shape == (d,)
    assert sequence.dtype == np.float64
    assert np.isfinite(sequence).all()
    assert sequence[0] == 1.0
    assert np.all(np.diff(sequence) <= 0.0)
    assert sequence[-1] >= 0.0
    check_sequence("weights", sequence, d)


# Formulas -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ratio", [0.0, 0.5, 1.0, 10.0])
def test_oscar_is_one_plus_ratio_times_what_is_left(ratio):
    d = 8
    raw = [1 + Fraction(ratio) * Fraction(d - i, d) for i in range(1, d + 1)]
    np.testing.assert_allclose(weights.oscar(d, ratio=ratio), [float(r / raw[0]) for r in raw], rtol=1e-15)


def test_oscar_without_ratio_is_constant():
    np.testing.assert_array_equal(weights.oscar(9, ratio=0.0), weights.constant(9))


def test_linear_falls_to_one_over_d():
    np.testing.assert_allclose(weights.linear(5), [1.0, 0.8, 0.6, 0.4, 0.2], rtol=1e-15)


def test_oscar_lam_is_the_formula_of_the_paper():
    """Exactly, on numbers that binary arithmetic holds exactly."""
    d, alpha_1, alpha_2 = 6, 0.75, 0.125
    expected = [Fraction(alpha_1) + Fraction(alpha_2) * (d - i) for i in range(1, d + 1)]
    assert [Fraction(value) for value in go.oscar_lam(d, alpha_1, alpha_2)] == expected
    np.testing.assert_array_equal(go.oscar_lam(4, 0.0, 2.0), [6.0, 4.0, 2.0, 0.0])
    np.testing.assert_array_equal(go.oscar_lam(3, 2, 0), [2.0, 2.0, 2.0])


@pytest.mark.parametrize("d", SIZES)
def test_oscar_lam_in_the_setting_of_the_paper_is_scaled_oscar(d):
    """``alpha_2 = alpha_1 / d`` is ``ratio=1`` times the first weight ``alpha_1 (1 + (d - 1)/d)``."""
    alpha_1 = 0.37
    lam = go.oscar_lam(d, alpha_1, alpha_1 / d)
    np.testing.assert_allclose(lam, alpha_1 * (2 - 1 / d) * weights.oscar(d, ratio=1.0), rtol=1e-14)


@pytest.mark.parametrize("fdr", [1e-6, 0.1, 0.7])
@pytest.mark.parametrize("d", [1, 7, 1000])
def test_bh_is_normal_quantiles(d, fdr):
    quantiles = stats.norm.isf(np.arange(1, d + 1) * fdr / (2 * d))
    np.testing.assert_allclose(weights.bh(d, fdr=fdr), quantiles / quantiles[0], rtol=1e-12)


@pytest.mark.parametrize("fdr", [1e-6, 0.1, 0.7])
@pytest.mark.parametrize("q", [1, 3, 50])
@pytest.mark.parametrize("d", [1, 7, 1000])
def test_chi_is_chi_quantiles(d, q, fdr):
    quantiles = stats.chi.isf(np.arange(1, d + 1) * fdr / d, q)
    np.testing.assert_allclose(weights.chi(d, q, fdr=fdr), quantiles / quantiles[0], rtol=1e-10)


@pytest.mark.parametrize("d", SIZES)
def test_chi_of_one_task_is_bh(d):
    np.testing.assert_allclose(weights.chi(d, 1, fdr=0.2), weights.bh(d, fdr=0.2), rtol=1e-12)


def slope_gaussian(d, n, fdr):
    """The SLOPE paper, literally: correct every quantile, then flatten after the overall minimum."""
    quantiles = [float(stats.norm.isf(i * fdr / (2 * d))) for i in range(1, d + 1)]
    corrected = [quantiles[0]]
    for i in range(2, min(d, n - 1) + 1):
        noise = math.fsum(g * g for g in corrected) / (n - i)
        corrected.append(quantiles[i - 1] * math.sqrt(1 + noise))
    lowest = int(np.argmin(corrected))
    return np.array(corrected[: lowest + 1] + [corrected[lowest]] * (d - lowest - 1))


@pytest.mark.parametrize("fdr", [0.01, 0.1, 0.5])
@pytest.mark.parametrize(("d", "n"), [(1, 5), (10, 1), (10, 2), (10, 3), (50, 20), (200, 100), (100, 5000), (300, 300)])
def test_gaussian_is_the_correction_of_slope(d, n, fdr):
    expected = slope_gaussian(d, n, fdr)
    np.testing.assert_allclose(weights.gaussian(d, n, fdr=fdr), expected / expected[0], rtol=1e-11)


def test_gaussian_is_flat_after_its_minimum_and_not_before():
    sequence = weights.gaussian(400, 150)
    lowest = int(np.argmin(sequence))
    assert 0 < lowest < 399
    assert np.all(np.diff(sequence[: lowest + 1]) < 0)
    assert np.all(sequence[lowest:] == sequence[lowest])


def slope_chi_gauss(d, q, n, fdr):
    """The formula of the docstring, literally, then flat after the overall minimum."""
    corrected = [float(stats.chi.isf(fdr / d, q))]
    for i in range(2, min(d, n - 1) + 1):
        noise = math.fsum(g * g for g in corrected) / (q * (n - i))
        corrected.append(float(stats.chi.isf(i * fdr / d, q)) * math.sqrt(1 + noise))
    lowest = int(np.argmin(corrected))
    return np.array(corrected[: lowest + 1] + [corrected[lowest]] * (d - lowest - 1))


@pytest.mark.parametrize("fdr", [0.01, 0.1, 0.5])
@pytest.mark.parametrize(
    ("d", "q", "n"), [(1, 3, 5), (10, 2, 1), (10, 5, 3), (50, 4, 20), (200, 10, 100), (300, 2, 300)]
)
def test_chi_gauss_is_the_correction_for_several_tasks(d, q, n, fdr):
    expected = slope_chi_gauss(d, q, n, fdr)
    np.testing.assert_allclose(weights.chi_gauss(d, q, n, fdr=fdr), expected / expected[0], rtol=1e-11)


@pytest.mark.parametrize("d", SIZES)
@pytest.mark.parametrize("n", [1, 2, 50, 3000])
def test_chi_gauss_of_one_task_is_gaussian(d, n):
    np.testing.assert_allclose(weights.chi_gauss(d, 1, n, fdr=0.2), weights.gaussian(d, n, fdr=0.2), rtol=1e-11)


def test_chi_gauss_tends_to_chi_for_many_samples():
    np.testing.assert_allclose(weights.chi_gauss(50, 4, 10**9), weights.chi(50, 4), rtol=1e-6)
    sizes = [1] * 25 + [4] * 25
    np.testing.assert_allclose(
        weights.chi_gauss(50, 4, 10**9, group_sizes=sizes), weights.chi(50, 4, group_sizes=sizes), rtol=1e-6
    )


def test_chi_gauss_of_groups_of_one_column_is_that_of_columns():
    """Whatever factor all of them have: it takes nothing from the noise of selected ones."""
    np.testing.assert_allclose(
        weights.chi_gauss(60, 3, 90, group_sizes=np.ones(60)), weights.chi_gauss(60, 3, 90), rtol=1e-12
    )


def test_chi_gauss_of_groups_of_two_uses_up_two_samples_each():
    """Tasks and columns of a group are degrees of freedom alike; the noise per entry is that of the tasks."""
    d, q, n, fdr = 20, 3, 200, 0.1
    corrected = [float(stats.chi.isf(fdr / d, 2 * q))]
    for i in range(2, d + 1):
        noise = math.fsum(g * g for g in corrected) / (q * (n - 2 * (i - 1) - 1))
        corrected.append(float(stats.chi.isf(i * fdr / d, 2 * q)) * math.sqrt(1 + noise))
    expected = np.minimum.accumulate(corrected)
    found = weights.chi_gauss(d, q, n, fdr=fdr, group_sizes=np.full(d, 2))
    np.testing.assert_allclose(found, expected / expected[0], rtol=1e-10)


def test_gaussian_tends_to_bh_for_many_samples():
    np.testing.assert_allclose(weights.gaussian(50, 10**9), weights.bh(50), rtol=1e-6)


# resolve_weights ----------------------------------------------------------------------------------------

SHAPE = {"n_features": 12, "n_tasks": 3, "n_samples": 40}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("oscar", weights.oscar(12)),
        ("linear", weights.linear(12)),
        ("constant", weights.constant(12)),
        ("bh", weights.bh(12)),
        ("chi", weights.chi(12, 3)),
        ("chi_gauss", weights.chi_gauss(12, 3, 40)),
    ],
)
def test_names_mean_the_functions(name, expected):
    np.testing.assert_array_equal(resolve_weights(name, **SHAPE), expected)


def test_every_public_sequence_has_its_name():
    for name in {*weights.__all__} - {"levels"}:  # which stands for several
        assert resolve_weights(name, **SHAPE | {"n_tasks": 1}).shape == (12,)


def test_gaussian_is_for_one_task_only():
    np.testing.assert_array_equal(resolve_weights("gaussian", **SHAPE | {"n_tasks": 1}), weights.gaussian(12, 40))
    with pytest.raises(ValueError, match=r"'gaussian' is for one task, and there are 3.*Use weights='chi_gauss'"):
        resolve_weights("gaussian", **SHAPE)
    resolve_weights("gaussian", **SHAPE, n_directions=1)  # two classes


def test_levels_is_a_list_to_choose_from():
    with pytest.raises(ValueError, match=r"weights='levels' stands for 9 sequences .*GroupOWLRegressorCV"):
        resolve_weights("levels", **SHAPE)
    assert len(sequences_of("levels")) == 9
    assert sequences_of(["bh", "levels"])[0] == "bh"
    for d in (1, 2, 7, 500):
        found = [resolve_weights(item, **SHAPE | {"n_features": d}) for item in sequences_of("levels")]
        assert all(1 <= len(np.unique(sequence)) <= 3 for sequence in found)
    assert len({tuple(sequence) for sequence in found}) == 9


def test_sequences_have_names_to_tell_them_apart():
    names = sequence_names(["bh", np.ones(4), go.weights.linear, "levels"])
    assert names[:4] == ["bh", "array 2", "function 3", "levels (2%; 0.9)"]
    assert len(set(names)) == 12
    assert sequence_names(np.ones(4)) == ["array 1"]


@pytest.mark.parametrize(
    ("counts", "ratios", "error", "message"),
    [
        (0, 0.5, ValueError, r"^counts must be positive and add up to at most n_features = 5, got 0\.$"),
        (6, 0.5, ValueError, r"^counts must be positive and add up to at most n_features = 5, got 6\.$"),
        ([2, 2], 0.5, ValueError, r"^counts and ratios must have one entry for each level but one"),
        ([], [], ValueError, r"^counts and ratios must have one entry for each level but one"),
        (2, 1.5, ValueError, r"^ratios must .*got 1\.5\.$"),
        ([1, 2], [0.3, 0.5], ValueError, r"^ratios must not rise, got \[0\.3, 0\.5\]\.$"),
        (1.5, 0.5, TypeError, r"^counts must be an integer, got 1\.5"),
        (2, "half", TypeError, r"^ratios must be a number, got 'half'"),
        (-1, 0.5, ValueError, r"^counts must be at least 0, got -1\.$"),
    ],
)
def test_bad_levels(counts, ratios, error, message):
    with pytest.raises(error, match=message):
        weights.levels(5, counts, ratios)


def test_an_array_is_used_as_it_is():
    sequence = np.linspace(5.0, 0.0, 12)
    np.testing.assert_array_equal(resolve_weights(sequence, **SHAPE), sequence)
    np.testing.assert_array_equal(resolve_weights(list(range(12, 0, -1)), **SHAPE), np.arange(12, 0, -1.0))


def test_a_callable_gets_the_shape_and_is_checked():
    seen = []

    def falling(n_features, *, n_tasks, n_samples):
        seen.append((n_features, n_tasks, n_samples))
        return np.arange(n_features, 0, -1.0)

    np.testing.assert_array_equal(resolve_weights(falling, **SHAPE), np.arange(12, 0, -1.0))
    assert seen == [(12, 3, 40)]
    with pytest.raises(ValueError, match=r"weights must be non-increasing"):
        resolve_weights(lambda d, n_tasks, n_samples: np.arange(d), **SHAPE)


def test_an_unknown_name_is_refused_with_the_known_ones():
    with pytest.raises(ValueError, match=r"weights must be one of .*; got 'oskar'") as error:
        resolve_weights("oskar", **SHAPE)
    assert all(repr(name) in str(error.value) for name in {*weights.__all__} - {"levels"})


# Errors -------------------------------------------------------------------------------------------------


BY_FDR = {
    "bh": lambda d, fdr: weights.bh(d, fdr=fdr),
    "chi": lambda d, fdr: weights.chi(d, 3, fdr=fdr),
    "gaussian": lambda d, fdr: weights.gaussian(d, 9, fdr=fdr),
    "chi_gauss": lambda d, fdr: weights.chi_gauss(d, 3, 9, fdr=fdr),
}


@pytest.mark.parametrize("fdr", [0.0, 1.0, -0.1, 1.5, math.inf, math.nan])
@pytest.mark.parametrize("name", BY_FDR)
def test_fdr_outside_its_range(name, fdr):
    with pytest.raises(ValueError, match=rf"^fdr must .*got {fdr!r}\.$"):
        BY_FDR[name](5, fdr)


@pytest.mark.parametrize("fdr", ["0.1", None, True])
def test_fdr_of_another_type(fdr):
    with pytest.raises(TypeError, match=rf"^fdr must be a number, got {fdr!r}"):
        weights.bh(5, fdr=fdr)


BY_SIZE = {
    "oscar": weights.oscar,
    "linear": weights.linear,
    "constant": weights.constant,
    "bh": weights.bh,
    "gaussian": lambda d: weights.gaussian(d, 10),
    "chi": lambda d: weights.chi(d, 2),
    "chi_gauss": lambda d: weights.chi_gauss(d, 2, 9),
    "levels": lambda d: weights.levels(d, 1, 0.5),
    "oscar_lam": lambda d: go.oscar_lam(d, 1.0, 1.0),
}


@pytest.mark.parametrize("name", BY_SIZE)
@pytest.mark.parametrize("d", [0, -3])
def test_n_features_below_one(name, d):
    with pytest.raises(ValueError, match=rf"^n_features must be at least 1, got {d}\.$"):
        BY_SIZE[name](d)


@pytest.mark.parametrize("name", BY_SIZE)
@pytest.mark.parametrize("d", [2.0, True])
def test_n_features_of_another_type(name, d):
    with pytest.raises(TypeError, match=rf"^n_features must be an integer, got {d!r} of type {type(d).__name__}\.$"):
        BY_SIZE[name](d)


def test_numpy_integers_are_integers():
    np.testing.assert_array_equal(weights.oscar(np.int64(4)), weights.oscar(4))


@pytest.mark.parametrize(("argument", "call"), [("n_samples", weights.gaussian), ("n_tasks", weights.chi)])
def test_second_size_below_one(argument, call):
    with pytest.raises(ValueError, match=rf"^{argument} must be at least 1, got 0\.$"):
        call(5, 0)
    with pytest.raises(TypeError, match=rf"^{argument} must be an integer, got 'a'"):
        call(5, "a")


@pytest.mark.parametrize("ratio", [-0.5, math.nan, math.inf])
def test_ratio_outside_its_range(ratio):
    with pytest.raises(ValueError, match=rf"^ratio must be a finite number of at least 0, got {ratio!r}\.$"):
        weights.oscar(5, ratio=ratio)


@pytest.mark.parametrize(
    ("alphas", "argument", "value"), [((-1.0, 1.0), "alpha_1", "-1.0"), ((1.0, math.nan), "alpha_2", "nan")]
)
def test_oscar_lam_refuses_negative_and_nan(alphas, argument, value):
    with pytest.raises(ValueError, match=rf"^{argument} must be a finite number of at least 0, got {value}\.$"):
        go.oscar_lam(3, *alphas)


def test_oscar_lam_refuses_no_penalty():
    with pytest.raises(ValueError, match="alpha_1 and alpha_2 must not both be zero"):
        go.oscar_lam(3, 0.0, 0)


@pytest.mark.parametrize(
    ("values", "error", "message"),
    [
        ([2.0, 1.0], ValueError, r"^lam must have one weight per feature: X has 3 columns, lam has length 2\."),
        ([[3.0, 2.0, 1.0]], ValueError, r"^lam must be 1-dimensional, got an array of shape \(1, 3\)\."),
        (
            np.float64(0.1),
            ValueError,
            r"^lam must be 1-dimensional, .* got the number 0\.1\. .* 0\.1 \* go\.weights\.oscar\(n_features\)\.$",
        ),
        (np.array(1.0), ValueError, r"^lam must be 1-dimensional, got an array of shape \(\)\."),
        ([3.0, 2.0, -1.5], ValueError, r"^lam must be non-negative, but lam\[2\] is -1\.5"),
        (
            [3.0, 1.0, 2.5],
            ValueError,
            r"^lam must be non-increasing, but lam\[2\] = 2\.5 exceeds lam\[1\] = 1\.0;",
        ),
        ([0.0, 0.0, 0.0], ValueError, r"^lam is all zero"),
        ([3.0, math.nan, 1.0], ValueError, r"^lam has 1 NaN or infinite entry\."),
        ([math.inf, math.inf, 1.0], ValueError, r"^lam has 2 NaN or infinite entries\."),
        (np.array([3, 2, 1], dtype=object), TypeError, r"^lam must hold real numbers, got dtype object\."),
        (["c", "b", "a"], TypeError, r"^lam must hold real numbers, got dtype <U1\."),
        ([3.0, 2.0, 1j], TypeError, r"^lam must hold real numbers, got dtype complex128\."),
        ([3.0, [2.0], 1.0], ValueError, r"^lam cannot be read as a rectangular array of numbers"),
    ],
)
def test_bad_sequences(values, error, message):
    with pytest.raises(error, match=message):
        check_sequence("lam", values, 3)


def test_sequence_may_end_in_zeros_and_have_plateaus():
    np.testing.assert_array_equal(check_sequence("lam", [1, 1, 0, 0], 4), [1.0, 1.0, 0.0, 0.0])


def test_sequence_is_not_modified():
    sequence = np.array([2.0, 1.0])
    sequence.setflags(write=False)
    np.testing.assert_array_equal(check_sequence("lam", sequence, 2), [2.0, 1.0])
