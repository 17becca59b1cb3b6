"""Missing targets, groups of columns, offsets, ridge, signs and factors at once, against a conic solver."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

import groupowl as go
from combined_support import FEATURES, LOSSES, SCALES, disagreement, draw

SEEDS = range(6)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("feature", FEATURES)
def test_a_conic_solver_finds_the_same_minimum(feature, seed):
    """Of each feature, with the others at random; the long form has 200 of each."""
    case = draw(seed, feature)
    assert disagreement(case, case.solve()) == ("", True)


def test_every_feature_is_drawn_with_every_other():
    """The generator is worth something: pairs of features, losses and scales all occur, and selections are mixed."""
    counts = Counter()
    for feature in FEATURES:
        for seed in range(60):
            case = draw(seed, feature)
            on = {
                "entries": bool(np.ptp(case.W, axis=1).any()),
                "groups": np.bincount(case.groups).max() > 1,
                "offset": case.offset is not None,
                "ridge": case.ridge > 0.0,
                "signs": bool(case.signs.any()),
                "factors": bool(np.any(case.factor != 1.0)),
            }
            counts.update((one, other) for one in FEATURES for other in FEATURES if on[one] and on[other])
            counts.update([case.loss, case.group_scale, f"free {bool(np.any(case.factor == 0.0))}"])
            counts.update([f"standardized {case.standardized}", f"intercept {case.fit_intercept}"])
    assert min(counts[one, other] for one in FEATURES for other in FEATURES) >= 20
    assert min(counts[name] for name in (*LOSSES, *SCALES)) >= 15
    assert min(count for name, count in counts.items() if " " in name) >= 15


@pytest.mark.parametrize("feature", FEATURES)
def test_the_judge_notices_what_is_ignored(feature):
    """A solution that forgets the feature is not the minimum: the agreement above means something."""
    noticed = 0
    for seed in range(8):
        case = draw(seed, feature, standardized=False)
        arguments = case.arguments()
        arguments |= {
            "entries": {"Y": case.Y, "sample_weight": None},
            "groups": {"feature_groups": None, "group_scale": "size"},
            "offset": {"offset": None},
            "ridge": {"ridge": 0.0},
            "signs": {"positive": False},
            "factors": {"penalty_factor": None},
        }[feature]
        if feature in ("groups", "factors"):
            arguments["lam"] = np.resize(case.lam, case.X.shape[1])
            arguments["lam"][len(case.lam) :] = case.lam[-1]
            arguments["feature_groups"] = None
            arguments["penalty_factor"] = None
        noticed += _is_noticed(case, arguments)
    assert noticed >= 3


def _is_noticed(case, arguments):
    forgetful = go.solve(**arguments, tol=1e-8)
    if np.any(np.where(case.factor > 0, case.signs, 0.0)[:, None] * forgetful.B < 0.0):
        return True
    if np.any(forgetful.B[np.isinf(case.factor)]):
        return True
    return case.objective(forgetful.B, forgetful.intercept) > case.solve().primal * (1 + 1e-7)
