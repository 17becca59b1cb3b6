"""One alpha from the scores of folds."""

from __future__ import annotations

import numpy as np
import pytest

from groupowl.model_selection.search import choose, mean_scores, standard_errors


def test_means_are_weighted_by_the_test_weight_of_the_folds():
    scores = np.array([[1.0, 4.0], [2.0, 2.0]])
    np.testing.assert_allclose(mean_scores(scores, np.array([3.0, 1.0])), [1.75, 2.0])


def test_standard_error_is_that_of_a_mean_of_folds():
    scores = np.random.default_rng(0).standard_normal((4, 5))
    by_hand = np.sqrt(((scores - scores.mean(axis=1, keepdims=True)) ** 2).sum(axis=1) / 4 / 5)
    np.testing.assert_allclose(standard_errors(scores), by_hand)


@pytest.mark.parametrize("size", [1e-300, 1e300])
def test_scores_of_any_size_have_means_and_standard_errors(size):
    """Their squares leave the range of floating-point numbers, what is asked for does not."""
    scores = np.random.default_rng(0).standard_normal((4, 5))
    np.testing.assert_allclose(standard_errors(size * scores), size * standard_errors(scores), rtol=1e-12)
    weights = np.arange(1.0, 6.0)
    expected = size * mean_scores(scores, weights)
    np.testing.assert_allclose(mean_scores(size * scores, 1e300 * weights), expected, rtol=1e-12)


def test_infinite_scores_pass_without_a_warning():
    scores = np.array([[-np.inf, -1.0, -2.0], [-1.0, -1.0, -2.0], [0.0, 0.0, 0.0]])
    means, errors = mean_scores(scores, np.ones(3)), standard_errors(scores)
    assert means[0] == -np.inf
    assert errors[2] == 0.0
    assert choose("min", means, errors) == 2
    assert choose("1se", means[:2], errors[:2]) == 1


def test_one_fold_has_no_standard_error():
    assert np.isnan(standard_errors(np.ones((3, 1)))).all()


def test_min_takes_the_best_score_and_of_equals_the_largest_alpha():
    assert choose("min", np.array([0.0, 2.0, 1.0, 2.0]), np.ones(4)) == 1


def test_1se_takes_the_largest_alpha_within_the_band():
    """Alphas fall: the band of the best score reaches back to index 2, not forward to index 5."""
    means = np.array([-3.0, -2.0, -1.4, -1.2, -1.0, -1.1])
    errors = np.array([9.0, 9.0, 9.0, 9.0, 0.5, 9.0])  # only that of the best alpha counts
    assert choose("1se", means, errors) == 2
    assert choose("1se", means, errors / 10.0) == 4  # 0.05: the best alpha alone


def test_1se_includes_the_edge_of_the_band():
    assert choose("1se", np.array([-1.5, -1.0]), np.array([0.0, 0.5])) == 0


def test_alphas_without_a_score_are_never_chosen():
    assert choose("min", np.array([np.nan, -1.0, -2.0]), np.zeros(3)) == 1
    assert choose("1se", np.array([np.nan, -1.0, -0.5]), np.full(3, 0.6)) == 1


def test_no_score_at_all_is_an_error():
    with pytest.raises(ValueError, match="every mean score is NaN"):
        choose("min", np.full(2, np.nan), np.zeros(2))


def test_1se_needs_two_folds():
    with pytest.raises(ValueError, match="at least two folds"):
        choose("1se", np.array([-1.0]), np.array([np.nan]))
