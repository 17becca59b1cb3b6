"""The covariance of the noise: given, from residuals, and in turns with a selection."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from groupowl.inference.noise import Noise, estimated_noise, given_noise, residual_noise, warn_unless_settled


def make_covariance(q, seed=0):
    A = np.random.default_rng(seed).standard_normal((q, q + 2))
    return A @ A.T


def test_roots_make_noise_white():
    noise = Noise(make_covariance(4))
    np.testing.assert_allclose(noise.root @ noise.root, noise.covariance, rtol=1e-12)
    np.testing.assert_allclose(noise.inverse_root @ noise.covariance @ noise.inverse_root, np.eye(4), atol=1e-12)
    np.testing.assert_allclose(noise.root, noise.root.T, atol=1e-14)


@pytest.mark.parametrize(
    ("given", "covariance"),
    [
        (2.0, 4.0 * np.eye(3)),
        (np.float64(2.0), 4.0 * np.eye(3)),
        ([1.0, 2.0, 3.0], np.diag([1.0, 4.0, 9.0])),
        (make_covariance(3), make_covariance(3)),
    ],
)
def test_noise_as_users_give_it(given, covariance):
    noise = given_noise(given, 3)
    np.testing.assert_allclose(noise.covariance, covariance)
    assert noise.freedom == np.inf
    assert noise.settled


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ("estimated", ValueError, r"^noise must be 'estimate', a standard deviation, .*got 'estimated'"),
        (None, ValueError, r"^noise must be 'estimate', a standard deviation, .*got None"),
        (-1.0, ValueError, r"^noise must be .*got -1\.0"),
        (np.nan, ValueError, r"^noise must be .*got nan"),
        (True, TypeError, r"^noise must be a number, got True"),
        ([1.0, 2.0], ValueError, r"shape \(3,\), or their covariance, shape \(3, 3\), got shape \(2,\)"),
        ([1.0, 0.0, 2.0], ValueError, r"^noise must be positive standard deviations"),
        ([1.0, np.nan, 2.0], ValueError, r"^noise has 1 NaN"),
        (np.triu(np.ones((3, 3))), ValueError, r"^noise must be a symmetric covariance matrix"),
        (np.ones((3, 3)), ValueError, r"^noise must be a positive definite covariance matrix"),
        (np.ones((3, 3), dtype=complex), TypeError, r"^noise must hold real numbers"),
    ],
)
def test_bad_noise(given, error, message):
    with pytest.raises(error, match=message):
        given_noise(given, 3)


def test_residual_noise_is_that_of_least_squares():
    """Whatever the columns explain, a column more than once included, and the means."""
    rng = np.random.default_rng(0)
    X, E = rng.standard_normal((50, 4)), rng.standard_normal((50, 2))
    noise = residual_noise(np.hstack([X, X[:, :1]]), 5.0 + X @ rng.standard_normal((4, 2)) + E)
    A = np.hstack([np.ones((50, 1)), X])
    R = E - A @ np.linalg.solve(A.T @ A, A.T @ E)
    np.testing.assert_allclose(noise.covariance, R.T @ R / 45, rtol=1e-10)
    assert noise.freedom == 45


def test_targets_without_noise_of_their_own():
    rng = np.random.default_rng(0)
    Y = rng.standard_normal((30, 3))
    Y[:, 2] = Y[:, 0] - Y[:, 1]
    with pytest.raises(ValueError, match=r"the noise of the targets is singular: target \d is, but for rounding"):
        residual_noise(np.zeros((30, 0)), Y).inverse_root  # noqa: B018
    with pytest.raises(ValueError, match="noise of 3 targets: too few"):
        residual_noise(np.zeros((3, 0)), Y[:3])


def make_turns(supports):
    """A selection that goes through these supports, and the last one for ever, whatever the noise."""
    left = [np.array(support, dtype=np.intp) for support in supports]
    return lambda noise: left.pop(0) if len(left) > 1 else left[0]


def test_turns_end_where_the_selection_repeats():
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((40, 60)), rng.standard_normal((40, 2))
    noise = estimated_noise(X, Y, make_turns([[1, 2], [2], [2]]))
    assert (noise.n_rounds, noise.settled, noise.freedom) == (3, True, 38.0)
    np.testing.assert_array_equal(noise.covariance, residual_noise(X[:, [2]], Y).covariance)
    nothing = estimated_noise(X, Y, make_turns([[]]))
    assert (nothing.n_rounds, nothing.settled, nothing.freedom) == (1, True, 39.0)


def test_turns_that_do_not_settle_say_so():
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((40, 60)), rng.standard_normal((40, 2))
    circle = estimated_noise(X, Y, make_turns([[1], [2], [1], [2], [1], [2]]))
    assert (circle.n_rounds, circle.settled) == (3, False)
    many = estimated_noise(X, Y, make_turns([list(range(21))]))
    assert (many.n_rounds, many.settled, many.freedom) == (1, False, 39.0)
    long = estimated_noise(X, Y, make_turns([[i] for i in range(20)]), max_rounds=5)
    assert (long.n_rounds, long.settled) == (5, False)
    for noise in (circle, many, long):
        with pytest.warns(ConvergenceWarning, match=rf"not settled after {noise.n_rounds} round.* 40 samples"):
            warn_unless_settled(noise, X.shape, stacklevel=1)


def test_many_samples_need_no_selection():
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((200, 10)), rng.standard_normal((200, 2))
    noise = estimated_noise(X, Y, make_turns([]))
    assert (noise.n_rounds, noise.freedom) == (0, 189.0)
