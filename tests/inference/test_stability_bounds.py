"""Bounds of stability selection: published figures, laws that they must hold for, and what they allow."""

import numpy as np
import pytest

from groupowl.inference.stability_bounds import (
    BOUNDS,
    CUTOFF,
    false_selections,
    integrand,
    integrated_scores,
    largest_size,
    largest_tail,
    measure_of,
    r_concave_bound,
    smallest_count,
    worst_case_bound,
)


@pytest.mark.parametrize(("count", "worst", "concave"), [(60, 12.5, 2.6), (80, 4.17, 0.43)])
def test_figures_for_1000_features(count, worst, concave):
    """50 of 1000 features from each of 50 pairs, thresholds .6 and .8."""
    assert worst_case_bound(1000, 50, count, 50) == pytest.approx(worst, rel=2e-3)
    assert r_concave_bound(1000, 50, count, 50) == pytest.approx(concave, rel=2e-2)


def random_laws(rng, n, mean, concavity, count):
    """Laws on 0..n whose power ``concavity`` is convex and whose mean is at most ``mean``, a row each."""
    slopes = np.sort(rng.exponential(size=(count, n)) ** rng.uniform(0.2, 4.0, (count, 1)), axis=1)
    shift = rng.uniform(-0.2, 1.0, (count, 1)) * slopes[:, :1]
    convex = rng.exponential(size=(count, 1)) ** 3 + np.cumsum(np.pad(slopes - shift, ((0, 0), (1, 0))), axis=1)
    places = np.arange(n + 1)
    convex = np.where(places <= rng.integers(1, n + 1, (count, 1)), np.maximum(convex, 1e-12), np.inf)
    masses = convex ** (1.0 / concavity)
    masses /= masses.sum(axis=1, keepdims=True)
    return masses[masses @ places <= mean]


@pytest.mark.parametrize("concavity", [-0.5, -0.25])
@pytest.mark.parametrize(("n", "mean"), [(6, 0.5), (10, 0.3), (10, 1.7), (25, 2.0)])
def test_no_law_has_a_larger_tail(n, mean, concavity):
    laws = random_laws(np.random.default_rng(0), n, mean, concavity, 40_000)
    assert len(laws) > 1000
    for count in range(1, n + 1):
        largest = laws[:, count:].sum(axis=1).max()
        assert largest <= largest_tail(mean, count, n, concavity) + 1e-12


@pytest.mark.parametrize("concavity", [-0.5, -0.25])
@pytest.mark.parametrize(("n", "mean", "count"), [(6, 0.5, 3), (10, 0.3, 4), (10, 1.7, 6), (25, 2.0, 15)])
def test_a_law_attains_the_largest_tail(n, mean, count, concavity):
    """Random changes of a convex function, kept where the tail grows, come near; and never beyond."""
    rng = np.random.default_rng(1)
    bound = largest_tail(mean, count, n, concavity)
    best = 0.0
    for top in range(count, n + 1):  # laws that end there, by the second differences of their power
        places = np.arange(top + 1)
        found = -np.inf
        log_slopes, log_first = np.full(top, -12.0), -2.0
        log_slopes[0] = 0.0
        for step in range(600):
            scale = 2.0 * 0.99**step
            trial = log_slopes + scale * rng.standard_normal(top) * (rng.random(top) < 0.3)
            first = log_first + scale * rng.standard_normal()
            convex = np.exp(first) + np.concatenate([[0.0], np.cumsum(np.cumsum(np.exp(trial)))])
            masses = convex ** (1.0 / concavity)
            masses /= masses.sum()
            excess = masses @ places
            # A law with a larger mean is mixed with zero, which a larger first mass stands for: not allowed here.
            value = masses[count:].sum() if excess <= mean else mean - excess
            if value >= found:
                found, log_slopes, log_first = value, trial, first
        best = max(best, found)
    assert best <= bound + 1e-12
    assert best >= 0.9 * bound


@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize(("n_units", "n_pairs"), [(30, 10), (1000, 50)])
def test_bounds_fall_with_the_threshold_and_rise_with_the_size(bound, n_units, n_pairs):
    sizes = [1, 2, n_units // 10, n_units // 4]
    counts = range(n_pairs + 1, 2 * n_pairs + 1, max(n_pairs // 10, 1))
    values = np.array([[false_selections(bound, n_units, q, count, n_pairs) for count in counts] for q in sizes])
    assert (np.diff(values, axis=1) <= 1e-12).all()
    assert (np.diff(values, axis=0) >= -1e-12).all()
    assert (values <= n_units).all()


def test_half_of_the_halves_say_nothing_in_the_worst_case():
    assert worst_case_bound(30, 1, 10, 10) == np.inf
    assert false_selections("worst-case", 30, 1, 10, 10) == 30


def test_the_concave_bound_is_never_worse():
    for q in (1, 10, 50, 200):
        for count in range(51, 101, 7):
            assert r_concave_bound(1000, q, count, 50) <= worst_case_bound(1000, q, count, 50)


@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize("max_false", [0.3, 1.0, 4.0])
def test_what_a_bound_allows_is_the_most(bound, max_false):
    n_units, n_pairs = 200, 20
    count = smallest_count(bound, n_units, 6, n_pairs, max_false)
    assert false_selections(bound, n_units, 6, count, n_pairs) <= max_false
    assert count == n_pairs + 1 or false_selections(bound, n_units, 6, count - 1, n_pairs) > max_false
    size = largest_size(bound, n_units, 30, n_pairs, max_false)
    assert false_selections(bound, n_units, size, 30, n_pairs) <= max_false
    assert false_selections(bound, n_units, size + 1, 30, n_pairs) > max_false


def test_what_no_threshold_allows():
    assert smallest_count("worst-case", 100, 90, 10, 1.0) is None
    assert largest_size("worst-case", 100, 12, 10, 1e-4) == 0


def test_worst_case_holds_by_simulation():
    """Units that halves return independently, with probability theta: the bound is far above what happens."""
    rng, n_units, n_selected, n_pairs, count = np.random.default_rng(0), 400, 40, 10, 14
    returned = rng.random((300, n_units, n_pairs, 2)) < n_selected / n_units
    found = (returned.sum(axis=(2, 3)) >= count).sum(axis=1).mean()
    assert found <= r_concave_bound(n_units, n_selected, count, n_pairs)
    # Law of the theorem's proof: a unit is in both halves of all pairs, or in none.
    theta = n_selected / n_units
    extreme = n_units * theta**2
    assert extreme <= worst_case_bound(n_units, n_selected, 2 * n_pairs, n_pairs) * (1 + 1e-12)


@pytest.mark.parametrize("n_pairs", [3, 10])
def test_integrand_is_a_third_moment(n_pairs):
    """Of the share of pairs that return a unit twice, by the binomial law."""
    from scipy.stats import binom

    counts = np.arange(n_pairs + 1)
    for q in (0.0, 3.0, 20.0):
        moment = binom.pmf(counts, n_pairs, (q / 50) ** 2) @ (counts / n_pairs) ** 3
        assert integrand(50, q, n_pairs) == pytest.approx(50 * moment, rel=1e-12, abs=1e-15)


def test_integrals():
    alphas = np.geomspace(1.0, 0.1, 11)
    measure = measure_of(alphas, np.zeros(11))
    assert measure.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(measure, measure[0])
    values = np.linspace(0.0, 0.4, 11)
    cut = measure_of(alphas, values)
    assert 0.0 < values @ cut <= CUTOFF < values @ measure
    frequencies = np.array([[0.0] * 11, [0.5] * 11, [0.75] * 11, [1.0] * 11])
    np.testing.assert_allclose(integrated_scores(frequencies, measure), [0.0, 0.0, 0.125, 1.0])
