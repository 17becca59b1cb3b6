"""The short form of the safety campaign, and proof that it would notice an unsafe rule."""

import hypothesis.strategies as st
import pytest
from campaign import RULES, examine, examine_range
from hypothesis import given, settings
from mutations import COX_MUTATIONS, MUTATIONS, TABLE_MUTATIONS
from problems import draw

CHUNKS, SIZE = 10, 90


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_short_campaign(chunk):
    counts = examine_range(chunk * SIZE, (chunk + 1) * SIZE)
    assert counts.findings == []
    assert counts.problems == SIZE
    assert counts.missed_references <= 0.08 * SIZE  # losses that are nearly flat, tiny penalties
    for rule in RULES:
        assert counts.rows_screened[rule] > SIZE  # the rules really ran


def test_a_problem_without_a_solution_is_refused_and_no_finding():
    counts = examine_range(5021500, 5021501)  # a label that is constant where weights are positive
    assert counts.refused == 1
    assert counts.findings == []


def test_probabilities_whose_squares_vanish_are_refused_and_stand_ins_of_missing_targets_are_not():
    assert examine_range(10030895, 10030896).refused == 1  # labels with probabilities of 1e-157
    for seed in (10007716, 10050400):  # one observed target per task, which the intercept explains
        counts = examine_range(seed, seed + 1)
        assert (counts.refused, counts.findings) == (0, [])


def test_a_null_model_that_is_rounded_is_no_proof_of_its_own():
    """Huber's, of one sample: its loss is the square of rounding, and the minimum is zero."""
    for seed in (5026640, 5035350):
        assert examine(seed).findings == []


def test_local_bounds_know_that_tasks_have_other_centers():
    """Squares of columns are about one center for all tasks, what balancing changes was measured about those of each.

    A residual whose balance has failed shows it: an active row would have been removed.
    """
    assert examine(10056390).findings == []


def test_comparisons_allow_for_their_own_rounding():
    """Of the gap of the reference, of norms that are far larger than those of columns, and of sums of a dual point."""
    for seed in (20012551, 20015548, 20042290):
        assert examine_range(seed, seed + 1, plain=True).findings == []


def test_certificates_of_predictors_whose_means_overflow_are_compared():
    for seed in (10034799, 10049334):
        assert examine_range(seed, seed + 1).findings == []


@settings(max_examples=40, deadline=None, derandomize=True, database=None)
@given(seed=st.integers(10**6, 2**31))
def test_any_hard_problem_is_safe(seed):
    assert examine(seed).findings == []


@pytest.mark.parametrize("name", MUTATIONS)
def test_campaign_finds_planted_errors(name):
    """Within the seeds of the short run, at the first finding."""
    with MUTATIONS[name]():
        assert any(examine(seed).findings for seed in range(CHUNKS * SIZE))


@pytest.mark.parametrize("name", COX_MUTATIONS)
def test_campaign_finds_planted_errors_in_the_cox_loss(name):
    """Within the same seeds, plain ones, those of other losses left out."""
    seeds = [seed for seed in range(CHUNKS * SIZE) if "cox" in draw(seed).traits]
    with COX_MUTATIONS[name]():
        assert any(examine(seed, plain=True).findings for seed in seeds)


@pytest.mark.parametrize("name", TABLE_MUTATIONS)
def test_campaign_finds_planted_errors_in_what_tables_have(name):
    """Missing targets, groups, offsets, ridge and signs, within the same seeds."""
    mutation, trait = TABLE_MUTATIONS[name]
    with mutation():
        assert any(examine(seed).findings for seed in range(CHUNKS * SIZE) if trait in draw(seed).traits)
