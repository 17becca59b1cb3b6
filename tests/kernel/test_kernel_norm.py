"""The compiled functions of the norm against their NumPy twins, on random and hostile inputs."""

from __future__ import annotations

import kernel_support
import numpy as np
import pytest

from groupowl import kernel
from groupowl.norm import kernels
from groupowl.norm.penalty import GroupOWL

pytestmark = pytest.mark.skipif(not kernel.is_available(), reason=str(kernel.kernel_info()))

SIZES = [1, 2, 3, 7, 16, 17, 40, 300, 2500]


def weight_sequences(rng, n):
    yield np.ones(n)
    yield np.linspace(1.0, 0.5, n)
    yield np.linspace(1.0, 0.0, n) if n > 1 else np.ones(1)  # ends at zero
    yield -np.sort(-rng.exponential(size=n))
    yield -np.sort(-rng.integers(1, 4, n).astype(float))  # plateaus
    yield np.concatenate([np.ones(1), np.zeros(n - 1)])


def norm_vectors(rng, n):
    yield rng.exponential(size=n)
    yield np.zeros(n)
    yield np.ones(n)
    yield rng.integers(0, 3, n).astype(float)  # ties and zeros
    yield np.arange(n, dtype=float)
    yield np.arange(n, 0.0, -1.0)
    yield 1e-150 * rng.exponential(size=n)
    yield 1e150 * rng.exponential(size=n)
    yield 10.0 ** rng.uniform(-12, 12, n)


def inputs():
    rng = np.random.default_rng(0)
    for n in SIZES:
        for lam in weight_sequences(rng, n):
            for norms in norm_vectors(rng, n):
                yield norms, lam


def test_value():
    for norms, lam in inputs():
        found = kernel_support.owl_value(norms, lam)
        assert found == pytest.approx(kernels.owl_value(norms, lam), rel=1e-13, abs=1e-300)


def test_gauge():
    for norms, lam in inputs():
        found = kernel_support.owl_gauge(norms, lam)
        assert found == pytest.approx(kernels.owl_gauge(norms, lam), rel=1e-14, abs=1e-300)


def test_gauge_without_weights_is_infinite():
    assert kernel_support.owl_gauge(np.ones(3), np.zeros(3)) == np.inf
    assert kernel_support.owl_gauge(np.zeros(3), np.zeros(3)) == 0.0


@pytest.mark.parametrize("step", [1.0, 1e-3, 0.7, 1e6])
def test_prox(step):
    for norms, lam in inputs():
        scale = norms.max() or 1.0
        weights = lam * scale / 3.0
        shrunk, value = kernel_support.prox_and_value(norms, weights, step)
        expected, expected_value = kernels.prox_and_value(norms, weights, step)
        np.testing.assert_allclose(shrunk, expected, rtol=1e-12, atol=1e-13 * scale)
        assert value == pytest.approx(expected_value, rel=1e-11, abs=1e-12 * scale**2)
        assert np.all(shrunk >= 0.0)


def test_possible_units():
    for norms, lam in inputs():
        weights = lam * (norms.max() or 1.0) / 2.0
        found, expected = kernel_support.kkt_rows(norms, weights), kernels.kkt_rows(norms, weights)
        sums = np.concatenate([[0.0], np.cumsum(-np.sort(-norms) - weights)])
        assert sums[len(found)] == pytest.approx(sums[len(expected)], abs=1e-12 * (norms.sum() + weights.sum()))
        assert np.delete(norms, found).max(initial=0.0) <= norms[found].min(initial=np.inf)


def test_unit_norms():
    rng = np.random.default_rng(1)
    for q in (1, 2, 5):
        B = rng.standard_normal((12, q))
        np.testing.assert_allclose(kernel_support.unit_norms(B), kernels.row_norms(B), rtol=1e-15)
        sizes = np.array([2, 1, 4, 5])
        penalty = GroupOWL(np.ones(4), np.repeat(np.arange(4), sizes))
        starts = np.concatenate([[0], np.cumsum(sizes)])
        np.testing.assert_allclose(kernel_support.unit_norms(B, starts), penalty.norms(B), rtol=1e-14)
