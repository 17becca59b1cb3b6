"""Splits of any kind become folds of samples that are there."""

from __future__ import annotations

import numpy as np
import pytest

import groupowl as go
from groupowl.model_selection import check_folds
from groupowl.model_selection.folds import are_complements, are_partition

ONES = np.ones(4)


def test_masks_and_negative_indices_are_indices():
    (fold,) = check_folds([(np.array([True, True, False, False]), [-1])], ONES)
    assert fold.train.tolist() == [0, 1]
    assert fold.test.tolist() == [3]


def test_samples_of_weight_zero_and_folds_that_test_no_others_are_not_there():
    weight = np.array([1.0, 0.0, 2.0, 1.0])
    folds = check_folds([([0, 1], [2, 3]), ([0, 2, 3], [1])], weight)
    assert [(fold.train.tolist(), fold.test.tolist()) for fold in folds] == [([0], [2, 3])]


@pytest.mark.parametrize(
    ("splits", "message"),
    [
        ([], "no samples to score"),
        ([([0, 1], [])], "no samples to score"),
        ([([], [0])], "split 0 of cv has no training samples"),
        ([([0, 1], [2]), ([0], [4])], "test part of split 1 of cv has indices from 4 to 4, but there are 4 samples"),
        ([([0.5], [1])], "must be indices or a mask"),
        ([3], "pairs"),
    ],
)
def test_splits_that_make_no_sense_are_refused(splits, message):
    with pytest.raises(ValueError, match=message):
        check_folds(splits, ONES)


def test_complements_and_partitions():
    halves = check_folds([([0, 1], [2, 3]), ([2, 3], [0, 1])], ONES)
    assert are_complements(halves, 4)
    assert are_partition(halves, 4)
    repeated = check_folds([([0, 1], [2, 3]), ([0, 2], [1, 3])], ONES)
    assert are_complements(repeated, 4)
    assert not are_partition(repeated, 4)
    past = check_folds([([0], [1]), ([0, 1], [2])], ONES)
    assert not are_complements(past, 4)
    leaking = check_folds([([0, 1, 2], [2])], ONES)
    assert not are_complements(leaking, 4)


@pytest.mark.parametrize(
    ("settings", "has_criteria"),
    [({}, True), ({"loss": "huber", "delta": 1.0}, False), ({"ridge": 0.1}, False), ({"positive": True}, False)],
)
def test_messages_advise_a_criterion_only_where_there_is_one(settings, has_criteria):
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match=r"10 folds need at least 10\. Use fewer folds") as caught:
        go.GroupOWLRegressorCV(cv=10, **settings).fit(rng.standard_normal((6, 3)), rng.standard_normal(6))
    assert ("selection='bic'" in str(caught.value)) == has_criteria
