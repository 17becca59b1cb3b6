"""Knockoffs can be exchanged with their columns: as a law of the joint covariance, and of Gram matrices."""

import numpy as np
import pytest
from scipy.optimize import minimize

from groupowl.inference import GaussianKnockoffs, fixed_knockoffs
from groupowl.inference.knockoffs import equicorrelated, minimum_variance

KINDS = ["mvr", "equicorrelated"]
GROUPS = {"columns": None, "groups": [0, 1, 1, 0, 2, 2, 2, 3]}


def random_covariance(d, seed=0, *, condition=0.1):
    A = np.random.default_rng(seed).normal(size=(d, d))
    return A @ A.T / d + condition * np.eye(d)


def correlations(V):
    size = np.sqrt(np.diag(V))
    return V / np.outer(size, size)


def reconstructability(s, R):
    """The trace of the inverse of the joint covariance of columns and knockoffs, by definition."""
    S = np.diag(s)
    return np.trace(np.linalg.inv(np.block([[R, R - S], [R - S, R]])))


def is_block_diagonal(S, labels):
    return not np.any(S[np.not_equal.outer(labels, labels)])


# How far knockoffs are from their columns -------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_mvr_is_the_minimum_that_brute_force_finds(seed):
    R = correlations(random_covariance(6, seed))
    s = minimum_variance(R)

    def objective(log_s):
        inner = 2 * R - np.diag(np.exp(log_s))
        return reconstructability(np.exp(log_s), R) if np.linalg.eigvalsh(inner)[0] > 0 else np.inf

    options = {"maxiter": 20_000, "maxfev": 20_000, "xatol": 1e-9, "fatol": 1e-10}
    brute = minimize(objective, np.log(equicorrelated(R)), method="Nelder-Mead", options=options)
    assert reconstructability(s, R) == pytest.approx(brute.fun, rel=1e-4)
    assert reconstructability(s, R) < reconstructability(equicorrelated(R), R)


def test_mvr_is_stationary_across_blocks_of_coordinates():
    """More coordinates than a block of updates has: ``1 / s_j^2 = ((2 R - diag(s))^{-2})_jj`` for all of them."""
    R = correlations(random_covariance(150, 1))
    s = minimum_variance(R)
    inverse = np.linalg.inv(2 * R - np.diag(s))
    np.testing.assert_allclose(s**2 * np.sum(inverse**2, axis=0), 1.0, rtol=0.02)


def test_independent_columns_have_knockoffs_that_share_nothing_with_them():
    np.testing.assert_allclose(minimum_variance(np.eye(5)), 1.0, rtol=1e-3)
    np.testing.assert_allclose(equicorrelated(np.eye(5)), 1.0, rtol=2e-3)


# The law of normal knockoffs ----------------------------------------------------------------------------------


@pytest.mark.parametrize("without", [None, np.array([1, 2])], ids=["all", "without"])
@pytest.mark.parametrize("groups", GROUPS.values(), ids=GROUPS)
@pytest.mark.parametrize("s", KINDS)
def test_joint_covariance_stays_when_columns_are_exchanged(s, groups, without):
    """What the shift and the noise imply is ``[[V, V - S], [V - S, V]]``, with S block diagonal, and no more."""
    V = random_covariance(8)
    law = GaussianKnockoffs.of(np.zeros((3, 8)), covariance=V, s=s, groups=groups, without=without)
    across = V @ (np.eye(8) - law.shift)
    own = (np.eye(8) - law.shift).T @ across + law.root @ law.root.T
    np.testing.assert_allclose(across, V - law.S, atol=1e-12)
    np.testing.assert_allclose(own, V, atol=1e-12)
    joint = np.block([[V, V - law.S], [V - law.S, V]])
    assert np.linalg.eigvalsh(joint)[0] > -1e-12
    assert is_block_diagonal(law.S, np.arange(8) if groups is None else np.array(groups))
    judged = np.setdiff1d(np.arange(8), [] if without is None else without)
    assert np.linalg.eigvalsh(law.S[np.ix_(judged, judged)])[0] > 1e-3  # knockoffs are not their columns
    assert not np.any(np.delete(law.S, judged, axis=0))


def test_equicorrelated_groups_have_the_formula():
    """``S = gamma blockdiag(V_gg)`` with ``gamma = min(1, 2 lambda_min(D^{-1/2} V D^{-1/2}))``."""
    V, labels = random_covariance(8), np.array(GROUPS["groups"])
    D = np.where(np.equal.outer(labels, labels), V, 0.0)
    values, vectors = np.linalg.eigh(D)
    root = (vectors / np.sqrt(values)) @ vectors.T
    gamma = min(1.0, 2 * np.linalg.eigvalsh(root @ V @ root)[0])
    law = GaussianKnockoffs.of(np.zeros((3, 8)), covariance=V, s="equicorrelated", groups=labels)
    np.testing.assert_allclose(law.S, 0.999 * gamma * D, atol=1e-10)


def test_draws_have_the_law():
    """Second moments of many draws, within five standard errors, and columns that have none stay."""
    V, n = random_covariance(4), 40_000
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 4)) @ np.linalg.cholesky(V).T + 3.0
    law = GaussianKnockoffs.of(X, covariance=V, without=np.array([2]))
    copies = law(X, rng)
    np.testing.assert_array_equal(copies[:, 2], X[:, 2])
    wanted = np.block([[V, V - law.S], [V - law.S, V]])
    found = np.cov(np.column_stack([X, copies]).T)
    errors = np.sqrt((wanted**2 + np.outer(np.diag(wanted), np.diag(wanted))) / n)
    assert np.all(np.abs(found - wanted) < 5 * errors)
    assert np.abs(copies.mean(axis=0) - X.mean(axis=0)).max() < 0.05


@pytest.mark.parametrize("n_samples", [40, 400], ids=["wide", "tall"])
@pytest.mark.parametrize("covariance", [None, "ledoit-wolf"])
def test_estimated_law_is_positive_definite_in_any_units(covariance, n_samples):
    """Also with more features than samples; a change of units changes knockoffs accordingly."""
    X = np.random.default_rng(0).normal(size=(n_samples, 60))
    units = np.geomspace(1e-3, 1e3, 60)
    law = GaussianKnockoffs.of(X, covariance=covariance)
    scaled = GaussianKnockoffs.of(X * units, covariance=covariance)
    assert np.linalg.eigvalsh(law.covariance)[0] > 0
    np.testing.assert_allclose(scaled.S, law.S * np.outer(units, units), rtol=1e-6)


def test_graphical_lasso_has_a_sparse_inverse():
    V = 0.6 ** np.abs(np.subtract.outer(np.arange(5), np.arange(5)))  # neighbors only are partially correlated
    X = np.random.default_rng(0).normal(size=(500, 5)) @ np.linalg.cholesky(V).T
    partial = np.linalg.inv(GaussianKnockoffs.of(X, covariance="graphical-lasso").covariance)
    assert np.abs(partial[0, 2:]).max() < 0.1 * abs(partial[0, 1])


def test_constant_columns_are_their_own_knockoffs():
    X = np.random.default_rng(0).normal(size=(30, 4))
    X[:, 1] = 5.0
    copies = GaussianKnockoffs.of(X)(X, np.random.default_rng(0))
    np.testing.assert_array_equal(copies[:, 1], 5.0)
    assert np.abs(copies - X)[:, [0, 2, 3]].min(axis=0).max() > 0.0


# Gram matrices of fixed-X knockoffs ---------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("without", [None, np.array([1, 2])], ids=["all", "without"])
@pytest.mark.parametrize("groups", GROUPS.values(), ids=GROUPS)
@pytest.mark.parametrize("s", KINDS)
def test_gram_matrix_stays_when_columns_are_exchanged(s, groups, without, weighted):
    """``X~^T X~ = X^T X``, ``X^T X~ = X^T X - S``, and the same products with the constant and unjudged columns."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(19, 8)) @ np.linalg.cholesky(random_covariance(8)).T + 2.0
    w = rng.uniform(0.5, 2.0, 19) if weighted else np.ones(19)
    copies = fixed_knockoffs(
        X, s=s, groups=groups, without=without, sample_weight=w if weighted else None, random_state=0
    )
    judged = np.setdiff1d(np.arange(8), [] if without is None else without)
    block = np.column_stack([np.ones(19), np.delete(X, judged, axis=1)])
    W = np.diag(w)
    first, second = X[:, judged], copies[:, judged]
    np.testing.assert_allclose(second.T @ W @ second, first.T @ W @ first, atol=1e-9)
    np.testing.assert_allclose(block.T @ W @ second, block.T @ W @ first, atol=1e-9)
    S = first.T @ W @ first - first.T @ W @ second
    labels = (np.arange(8) if groups is None else np.array(groups))[judged]
    assert np.abs(S[np.not_equal.outer(labels, labels)]).max(initial=0.0) < 1e-9
    assert np.linalg.eigvalsh(0.5 * (S + S.T))[0] > 1e-4
    np.testing.assert_array_equal(np.delete(copies, judged, axis=1), np.delete(X, judged, axis=1))


def test_without_intercept_one_sample_less_is_enough():
    X = np.random.default_rng(0).normal(size=(8, 4))
    copies = fixed_knockoffs(X, fit_intercept=False, random_state=0)
    np.testing.assert_allclose(copies.T @ copies, X.T @ X, atol=1e-10)
    with pytest.raises(ValueError, match=r"need at least 9 samples, got 8.*sampler='gaussian'"):
        fixed_knockoffs(X)


# What is wrong ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("covariance", "message"),
    [
        (np.eye(3), r"covariance must have shape \(4, 4\)"),
        (np.triu(np.ones((4, 4))), "covariance must be symmetric"),
        (np.ones((4, 4)), "positive definite, but the smallest eigenvalue"),
        (np.full((4, 4), np.nan), "covariance has 16 NaN"),
        ("oracle", "covariance"),
        (np.diag([1.0, 1.0, -1.0, 1.0]), r"covariance\[2, 2\] must be the variance of column 2, .*got -1"),
    ],
)
def test_wrong_covariances(covariance, message):
    with pytest.raises(ValueError, match=message):
        GaussianKnockoffs.of(np.zeros((5, 4)), covariance=covariance)


def test_a_column_that_varies_has_a_variance():
    X = np.random.default_rng(0).normal(size=(10, 2))
    with pytest.raises(ValueError, match=r"covariance\[1, 1\] must be the variance of column 1, .*got 0"):
        GaussianKnockoffs.of(X, covariance=np.diag([1.0, 0.0]))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sample_weight": [1.0, 2.0]}, "sample_weight must have one weight per sample"),
        ({"sample_weight": [0.0, *[1.0] * 9]}, r"sample_weight must be positive, but sample_weight\[0\] is 0"),
        ({"groups": [0]}, r"groups must have shape \(2,\), a label for each feature, got \(1,\)"),
    ],
)
def test_wrong_weights_and_groups(changes, message):
    X = np.random.default_rng(0).normal(size=(10, 2))
    with pytest.raises(ValueError, match=message):
        fixed_knockoffs(X, **changes)


def test_knockoffs_are_called_with_samples_of_the_law():
    X = np.random.default_rng(0).normal(size=(10, 2))
    knockoffs = GaussianKnockoffs.of(X)
    with pytest.raises(ValueError, match="X must have 2 columns, as the samples of the law had, got 1"):
        knockoffs(X[:, :1], np.random.default_rng(0))
    np.testing.assert_array_equal(knockoffs(X, 3), knockoffs(X, np.random.default_rng(3)))


def test_columns_that_determine_each_other_have_no_fixed_knockoffs():
    X = np.random.default_rng(0).normal(size=(30, 3))
    with pytest.raises(ValueError, match="determine each other"):
        fixed_knockoffs(np.column_stack([X, X[:, 0]]))
    with pytest.raises(ValueError, match="Column 3 of X is constant"):
        fixed_knockoffs(np.column_stack([X, np.ones(30)]))
    with pytest.raises(ValueError, match="equicorrelated"):
        fixed_knockoffs(X, s="sdp")
