"""Products and moments by patterns of observed targets: the same numbers as without patterns."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from groupowl.designs import as_design
from groupowl.designs.observed import (
    ObservedDesign,
    Patterns,
    TaskGramCache,
    find_patterns,
    moments_of_tasks,
    norms_of_tasks,
    standardize_tasks,
)

N, D, Q = 90, 7, 4


def make_weights(kind):
    rng = np.random.default_rng(1)
    if kind == "stacked":
        W = np.eye(Q)[np.repeat(np.arange(Q), [20, 30, 25, 15])]
    elif kind == "patterns":
        masks = np.array([[1, 1, 0, 0], [0, 0, 0, 1], [0, 1, 0, 0], [0, 0, 1, 0]], dtype=float)
        W = masks[rng.integers(0, 4, N)]
    else:
        W = (rng.random((N, Q)) < 0.6).astype(float)
        W[0] = 1.0
    return W if kind != "uneven" else W * rng.uniform(0.2, 2.0, W.shape)


def make_data(kind):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, D)) + 10.0 * rng.standard_normal(D)
    X[:, 2] = 5.0
    W = make_weights(kind) * np.random.default_rng(2).uniform(0.5, 2.0, (N, 1))
    return X, W


KINDS = ("stacked", "patterns", "random")


@pytest.mark.parametrize("form", [np.array, np.asfortranarray, sp.csr_array, sp.csc_array])
@pytest.mark.parametrize("kind", KINDS)
def test_products_are_those_of_the_whole_matrix(kind, form):
    X, W = make_data(kind)
    patterns = find_patterns(W)
    assert bool(patterns.groups) == (kind != "random")
    design, rng = ObservedDesign(as_design(form(X)), patterns), np.random.default_rng(3)
    B, offset, T = rng.standard_normal((D, Q)), rng.standard_normal(Q), W * rng.standard_normal((N, Q))
    observed = W > 0.0
    np.testing.assert_allclose(design.predictor(B, offset)[observed], (X @ B + offset)[observed], rtol=1e-12)
    np.testing.assert_allclose(design.matmul(B, offset), X @ B + offset, rtol=1e-12)
    np.testing.assert_allclose(design.rmatmul(T), X.T @ T, rtol=1e-11, atol=1e-10)
    complete = rng.standard_normal((N, Q))  # not zero where nothing was observed
    np.testing.assert_allclose(design.rmatmul(complete), X.T @ complete, rtol=1e-11, atol=1e-10)
    assert np.sum(W * design.predictor(B) * T) == pytest.approx(np.sum(B * design.rmatmul(W * T)), rel=1e-11)


@pytest.mark.parametrize("form", [np.array, np.asfortranarray, sp.csr_array])
@pytest.mark.parametrize("kind", [*KINDS, "uneven", "alike"])
def test_squares_are_those_of_the_whole_matrix(kind, form):
    """By parts, once for all tasks of a pattern, task by task, and where targets are not missing."""
    X, W = make_data("random" if kind == "alike" else kind)
    if kind == "alike":  # two patterns for more tasks, most of them observed: not worth a copy
        W = np.array([[1, 1, 1, 1], [1, 1, 1, 0]], dtype=float)[np.random.default_rng(1).integers(0, 2, N)]
    design = ObservedDesign(as_design(form(X)), find_patterns(W))
    assert (len(design.parts) > 0) == (kind in ("stacked", "patterns"))
    complete, center = np.random.default_rng(4).uniform(0.5, 1.0, (N, Q)), np.arange(D) / 3.0
    for H in (W, W * complete, complete):
        np.testing.assert_allclose(design.squared_products(H), (X**2).T @ H, rtol=1e-12)
        np.testing.assert_allclose(design.squared_products(H, center), ((X - center) ** 2).T @ H, rtol=1e-11)
    found, exact = norms_of_tasks(design, W, center=False), moments_of_tasks(design, W).norms(N, center=False)
    for one, other in zip(found, exact, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)
    assert np.all(found[0] >= np.sqrt((X**2).T @ W))


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_moments_are_those_of_each_task(kind, center):
    X, W = make_data(kind)
    design = standardize_tasks(ObservedDesign(as_design(X), find_patterns(W)), W, center=center, scale=True)
    moments = design.task_moments
    means = np.stack([np.average(X, axis=0, weights=w) for w in W.T], axis=1)
    squares = np.stack([w @ (X - mean) ** 2 for w, mean in zip(W.T, means.T, strict=True)], axis=1)
    deviation = np.sqrt(squares.sum(axis=1) / W.sum())
    varies = np.arange(D) != 2
    np.testing.assert_allclose(1.0 / design.inverse_scale[varies], deviation[varies], rtol=1e-10)
    assert design.inverse_scale[2] == 0.0
    scaled = (X - center * np.average(X, axis=0, weights=W.sum(axis=1))) * design.inverse_scale
    np.testing.assert_allclose(moments.sums, scaled.T @ W, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(moments.squares, (scaled**2).T @ W, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(moments.about_means[varies], (squares / deviation[:, None] ** 2)[varies], rtol=1e-9)
    own, whole = moments.norms(N, center=center)
    exact = squares if center else (X**2).T @ W
    assert np.all(own >= design.inverse_scale[:, None] * np.sqrt(exact) * (1 - 1e-13))
    assert np.all(whole >= own.max(axis=1) * (1 - 1e-6))


@pytest.mark.parametrize("form", [np.array, sp.csr_array])
@pytest.mark.parametrize("kind", [*KINDS, "uneven"])
def test_gram_matrices_are_those_of_the_tasks(kind, form):
    """Blocks that grow, by patterns where samples have one weight for their tasks, and where not."""
    X, W = make_data(kind)
    cache = TaskGramCache(ObservedDesign(as_design(form(X)), find_patterns(W)), W)
    expected = np.stack([X.T @ (w[:, None] * X) for w in W.T])
    for columns in (np.array([1, 4]), np.array([0, 4, 5]), np.arange(D)):
        np.testing.assert_allclose(cache.block(columns), expected[:, columns[:, None], columns], rtol=1e-10, atol=1e-9)


def test_rows_and_columns_of_observed_designs():
    X, W = make_data("stacked")
    design = ObservedDesign(as_design(X), find_patterns(W))
    T = W * np.random.default_rng(0).standard_normal(W.shape)
    chosen = np.array([0, 3, 6])
    np.testing.assert_allclose(design.restrict(chosen).rmatmul(T), X[:, chosen].T @ T, rtol=1e-11)
    rows = np.arange(5, 60)
    part = design.rows(rows)
    assert isinstance(part.patterns, Patterns)
    np.testing.assert_allclose(part.rmatmul(T[rows]), X[rows].T @ T[rows], rtol=1e-11)


@pytest.mark.parametrize("n_tasks", [1, 7, 64, 65, 200])
def test_patterns_are_the_different_rows(n_tasks):
    rng = np.random.default_rng(n_tasks)
    masks = np.unique(rng.random((5, n_tasks)) < 0.6, axis=0)
    of_sample = rng.permutation(np.repeat(np.arange(len(masks)), 20))
    groups = find_patterns(masks[of_sample].astype(float)).groups
    assert len(groups) == (len(masks) if len(masks) > 1 else 0)
    for group in groups:
        rows = np.arange(len(of_sample))[group.rows]
        assert len(set(of_sample[rows])) == 1
        assert np.count_nonzero(of_sample == of_sample[rows[0]]) == len(rows)
        np.testing.assert_array_equal(group.tasks, np.flatnonzero(masks[of_sample[rows[0]]]))


def test_too_many_patterns_are_no_use():
    rng = np.random.default_rng(0)
    assert not find_patterns((rng.random((100, 30)) < 0.5).astype(float)).groups
    assert not find_patterns(np.ones((20, 3))).groups
