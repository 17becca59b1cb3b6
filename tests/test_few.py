"""Kernels of few units give what those of many units give; both obey the laws in ``testkernels.py``."""

from __future__ import annotations

import numpy as np
import pytest

from groupowl.norm import few, kernels
from groupowl.norm.few import FEW
from groupowl.norm.kernels import EPS


def cases(count=200):
    """Norms and weights with ties, zeros, constant weights and a tail without weights; lam may be longer."""
    for seed in range(count):
        rng = np.random.default_rng(seed)
        d = int(rng.integers(1, FEW + 1))
        norms = rng.choice([np.abs(rng.standard_normal(d)), rng.integers(0, 4, d) / 3.0])
        lam = -np.sort(-rng.choice([rng.uniform(0.01, 1.0, d + 3), rng.integers(1, 3, d + 3) / 2.0]))
        if seed % 5 == 0:
            lam[max(1, d // 2) :] = 0.0
        yield norms, lam


@pytest.fixture
def both(monkeypatch):
    """A function of the kernels' name and arguments that gives the answers of loops and of arrays."""

    def answers(name, *arguments):
        by_loops = getattr(kernels, name)(*arguments)
        with monkeypatch.context() as patched:
            patched.setattr(kernels, "FEW", -1)
            patched.setattr(few, "FEW_TO_SHRINK", -1)
            patched.setattr(few, "FEW_TO_POOL", -1)
            return by_loops, getattr(kernels, name)(*arguments)

    return answers


def test_values_and_gauges_agree(both):
    for norms, lam in cases():
        few, many = both("owl_value", norms, lam)
        assert few == pytest.approx(many, rel=8 * EPS * len(norms))
        few, many = both("owl_gauge", norms, lam[: len(norms)])
        assert few == pytest.approx(many, rel=4 * EPS)


def test_prox_agrees_and_ties_are_exact(both):
    for norms, lam in cases():
        (few, value), (many, value_of_many) = both("prox_and_value", norms, lam, 0.7)
        np.testing.assert_allclose(few, many, rtol=1e-13, atol=4 * EPS)
        assert value == pytest.approx(value_of_many, rel=1e-12, abs=1e-14)
        clusters = kernels.cluster_labels(few)
        assert all(len(np.unique(few[clusters == label])) == 1 for label in np.unique(clusters))


def test_rows_that_may_pull_and_labels_agree(both):
    for norms, lam in cases():
        np.testing.assert_array_equal(*both("kkt_rows", norms, lam))
        np.testing.assert_array_equal(*both("cluster_labels", norms))
        np.testing.assert_array_equal(*both("nonzero_rows", norms[:, None]))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_not_finite_proves_nothing(both, bad):
    norms, lam = np.array([0.1, bad, 0.05]), np.array([1.0, 0.9, 0.8])
    assert kernels.owl_gauge(norms, lam) == np.inf
    assert 1 in kernels.kkt_rows(norms, lam)
    assert kernels.owl_gauge(np.zeros(0), np.zeros(0)) == 0.0
    assert len(kernels.kkt_rows(np.zeros(0), np.zeros(0))) == 0
