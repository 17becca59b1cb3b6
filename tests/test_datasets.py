"""The generator of data with known answers."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse as sp

from groupowl.datasets import make_correlated_groups


def test_shapes_and_types():
    data = make_correlated_groups(30, 50, 4, n_informative=10, random_state=0)
    assert data.X.shape == (30, 50)
    assert data.Y.shape == (30, 4)
    assert data.B.shape == (50, 4)
    assert data.groups.shape == (50,)
    assert data.X.dtype == data.Y.dtype == data.B.dtype == np.float64
    assert data.groups.dtype.kind == "i"


@pytest.mark.parametrize(("n", "d", "q"), [(1, 5, 2), (5, 1, 2), (5, 5, 1), (1, 1, 1)])
@pytest.mark.parametrize("task", ["regression", "classification"])
@pytest.mark.parametrize("structure", ["ar", "block"])
def test_smallest_shapes(n, d, q, task, structure):
    data = make_correlated_groups(n, d, q, task=task, structure=structure, random_state=0)
    assert data.X.shape == (n, d)
    assert data.Y.shape == (n, q)
    assert np.isfinite(data.X).all()
    assert np.isfinite(data.Y).all()


@pytest.mark.parametrize("options", [{}, {"density": 0.2}, {"task": "classification"}, {"structure": "block"}], ids=str)
def test_seeds_reproduce(options):
    def arrays(seed):
        data = make_correlated_groups(20, 30, 3, random_state=seed, **options)
        return [data.X.toarray() if sp.issparse(data.X) else data.X, data.Y, data.B, data.groups]

    for once, again in zip(arrays(3), arrays(3), strict=True):
        np.testing.assert_array_equal(once, again)
    assert not np.array_equal(arrays(3)[0], arrays(4)[0])
    assert not np.array_equal(arrays(3)[2], arrays(4)[2])


def test_the_global_random_state_is_left_alone():
    state = np.random.get_state()[1].copy()  # noqa: NPY002
    make_correlated_groups(5, 5, 2, random_state=0)
    np.testing.assert_array_equal(np.random.get_state()[1], state)  # noqa: NPY002


# Columns ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.9])
def test_ar_correlation_decays_geometrically(correlation):
    """20,000 samples put an empirical correlation within 0.03 of the true one (four deviations)."""
    X = make_correlated_groups(20_000, 6, 1, correlation=correlation, random_state=0).X
    lags = np.abs(np.subtract.outer(np.arange(6), np.arange(6)))
    np.testing.assert_allclose(np.corrcoef(X.T), correlation**lags, atol=0.03)
    np.testing.assert_allclose(X.std(axis=0), 1.0, atol=0.03)


@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.9])
def test_block_correlation_is_within_groups_only(correlation):
    X = make_correlated_groups(20_000, 7, 1, correlation=correlation, structure="block", group_size=3, random_state=1).X
    same = np.equal.outer(np.arange(7) // 3, np.arange(7) // 3)
    expected = np.where(same, correlation, 0.0)
    np.fill_diagonal(expected, 1.0)
    np.testing.assert_allclose(np.corrcoef(X.T), expected, atol=0.03)
    np.testing.assert_allclose(X.std(axis=0), 1.0, atol=0.03)


@pytest.mark.parametrize("density", [0.05, 0.5, 1.0])
def test_sparse_density(density):
    X = make_correlated_groups(200, 300, 2, density=density, random_state=0).X
    assert sp.issparse(X)
    assert X.format == "csr"
    deviation = math.sqrt(density * (1 - density) / (200 * 300))
    assert X.nnz / (200 * 300) == pytest.approx(density, abs=4 * deviation + 1e-12)


@pytest.mark.parametrize("density", [None, 0.02])
def test_unit_norm(density):
    data = make_correlated_groups(60, 200, 2, unit_norm=True, density=density, random_state=0)
    X = data.X if density is None else data.X.toarray()
    norms = np.linalg.norm(X, axis=0)
    np.testing.assert_allclose(norms[norms > 0], 1.0, rtol=1e-14)
    assert (norms > 0).mean() > 0.5


# Coefficients -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("group_size", [1, 3, 5])
def test_groups_of_neighbors_share_rows(group_size):
    data = make_correlated_groups(10, 60, 3, n_informative=15, group_size=group_size, random_state=0)
    n_groups = 15 // group_size
    assert set(data.groups) == set(range(n_groups + 1))
    for number in range(1, n_groups + 1):
        members = np.flatnonzero(data.groups == number)
        assert len(members) == group_size
        assert np.all(np.diff(members) == 1)
        assert data.B[members[0]].all()
        assert np.all(data.B[members] == data.B[members[0]])
    assert len(np.unique(data.B[data.groups > 0], axis=0)) == n_groups


def test_rows_outside_groups_are_zero_and_inside_are_not():
    data = make_correlated_groups(10, 60, 3, n_informative=12, group_size=2, random_state=0)
    np.testing.assert_array_equal(data.B.any(axis=1), data.groups > 0)
    assert np.count_nonzero(data.groups) == 12


def test_at_most_every_feature_is_informative():
    data = make_correlated_groups(10, 8, 2, n_informative=100, random_state=0)
    assert (data.groups > 0).all()


@pytest.mark.parametrize(("n_informative", "group_size"), [(0, 1), (0, 3), (2, 3), (7, 3)])
def test_never_more_informative_features_than_asked(n_informative, group_size):
    data = make_correlated_groups(10, 30, 2, n_informative=n_informative, group_size=group_size, random_state=0)
    assert np.count_nonzero(data.B.any(axis=1)) <= n_informative


# Targets ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("signal_to_noise", [0.5, 3.0, 20.0])
def test_signal_to_noise_is_the_ratio_of_deviations(signal_to_noise):
    data = make_correlated_groups(4000, 20, 3, signal_to_noise=signal_to_noise, random_state=0)
    signal = data.X @ data.B
    signal *= signal_to_noise / signal.std()
    noise = data.Y - signal
    assert noise.std() == pytest.approx(1.0, abs=0.04)
    assert abs(np.corrcoef(noise.ravel(), signal.ravel())[0, 1]) < 0.04


def test_classes_are_one_hot():
    data = make_correlated_groups(300, 20, 4, task="classification", random_state=0)
    assert set(np.unique(data.Y)) == {0.0, 1.0}
    np.testing.assert_array_equal(data.Y.sum(axis=1), 1.0)
    np.testing.assert_array_equal(np.eye(4)[data.labels], data.Y)
    assert set(data.labels) == {0, 1, 2, 3}


def test_classes_follow_the_softmax_of_the_predictor():
    """Mean of ``Y - p`` over samples is zero, also where the predictor is large: the score equations."""
    data = make_correlated_groups(20_000, 10, 3, task="classification", signal_to_noise=2.0, random_state=0)
    Z = data.X @ data.B
    Z *= 2.0 / Z.std()
    P = np.exp(Z - Z.max(axis=1, keepdims=True))
    P /= P.sum(axis=1, keepdims=True)
    np.testing.assert_allclose((data.Y - P).mean(axis=0), 0.0, atol=0.015)
    np.testing.assert_allclose((data.X.T @ (data.Y - P)) / 20_000, 0.0, atol=0.02)


# Errors -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_samples": 0}, r"^n_samples must be at least 1, got 0\."),
        ({"n_features": -2}, r"^n_features must be at least 1, got -2\."),
        ({"n_tasks": 0}, r"^n_tasks must be at least 1, got 0\."),
        ({"group_size": 0}, r"^group_size must be at least 1, got 0\."),
        ({"correlation": 1.0}, r"^correlation must lie in \[0, 1\), got 1\.0\."),
        ({"correlation": -0.1}, r"^correlation must lie in \[0, 1\), got -0\.1\."),
        ({"correlation": math.nan}, r"^correlation must lie in \[0, 1\), got nan\."),
        ({"structure": "toeplitz"}, r"^structure must be one of 'ar', 'block'; got 'toeplitz'\."),
        ({"task": "ranking"}, r"^task must be one of 'regression', 'classification'; got 'ranking'\."),
        ({"signal_to_noise": 0.0}, r"^signal_to_noise must be a finite number above 0, got 0\.0\."),
        ({"signal_to_noise": math.inf}, r"^signal_to_noise must be a finite number above 0, got inf\."),
    ],
    ids=str,
)
def test_bad_values(options, message):
    with pytest.raises(ValueError, match=message):
        make_correlated_groups(**{"n_samples": 5, "n_features": 6, "n_tasks": 2, "n_informative": 2, **options})


@pytest.mark.parametrize(
    ("options", "argument"),
    [
        ({"n_informative": -1}, "n_informative"),
        ({"group_size": 0, "structure": "block"}, "group_size"),
        ({"density": -0.5}, "density"),
        ({"density": 1.5}, "density"),
        ({"density": math.nan}, "density"),
    ],
    ids=str,
)
def test_bad_values_that_must_name_their_argument(options, argument):
    with pytest.raises(ValueError, match=rf"^{argument} must "):
        make_correlated_groups(5, 6, 2, **options)


@pytest.mark.parametrize(
    ("options", "argument"),
    [
        ({"n_samples": 2.0}, "n_samples"),
        ({"signal_to_noise": "3"}, "signal_to_noise"),
        ({"group_size": 1.5}, "group_size"),
        ({"n_informative": 2.5}, "n_informative"),
        ({"correlation": "0.5"}, "correlation"),
        ({"density": "0.5"}, "density"),
    ],
    ids=str,
)
def test_bad_types_must_name_their_argument(options, argument):
    with pytest.raises(TypeError, match=rf"^{argument} must "):
        make_correlated_groups(**{"n_samples": 5, "n_features": 6, "n_tasks": 2, **options})
