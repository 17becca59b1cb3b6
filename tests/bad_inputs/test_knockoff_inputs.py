"""Bad inputs of knockoffs: samplers, statistics, covariances, and data."""

import numpy as np
import pytest

import groupowl as go
from bad_input_support import COUNTS, MATRICES, SAMPLE_WEIGHTS, SEEDS, SHARES, X, Y, check, rows_of
from groupowl.inference import GaussianKnockoffs, KnockoffSelector, fixed_knockoffs, knockoff_threshold

DATA = ("X", "y", "sample_weight")
KNOCKOFFS = X[::-1].copy()
NAMES = {"unknown": "best", "a number": 3, "True": True}
SAMPLERS = {"None": None, "too narrow": X[:, :3], "too short": X[:5], "nan": X * np.nan, "text": X.astype(str)}
COVARIANCES = {
    "unknown": "oracle",
    "a number": 2.0,
    "too small": np.eye(3),
    "not square": np.ones((4, 3)),
    "nan": np.full((4, 4), np.nan),
    "not symmetric": np.triu(np.ones((4, 4))),
    "singular": np.ones((4, 4)),
    "negative": -np.eye(4) + 2 * np.ones((4, 4)),
    "text": np.full((4, 4), "x"),
    "complex": np.eye(4) * 1j,
}


def _fit(**changes):
    data = {"X": X, "y": Y} | {name: changes.pop(name) for name in DATA if name in changes}
    return KnockoffSelector(**({"fdr": 0.5} | changes)).fit(**data)


CALLS = {
    "KnockoffSelector": _fit,
    "KnockoffSelector, own knockoffs": lambda **changes: _fit(**({"sampler": KNOCKOFFS} | changes)),
    "GaussianKnockoffs.of": lambda **changes: GaussianKnockoffs.of(**({"X": X} | changes)),
    "fixed_knockoffs": lambda **changes: fixed_knockoffs(**({"X": X} | changes)),
    "knockoff_threshold": lambda **changes: knockoff_threshold(**({"W": [1.0, -2.0]} | changes)),
}
TABLE = {
    "KnockoffSelector": {
        "fdr": SHARES,
        "draw_fdr": {name: value for name, value in SHARES.items() if value is not None},
        "X": MATRICES,
        "sample_weight": SAMPLE_WEIGHTS,
        "statistic": NAMES | {"None": None, "a list": ["path"]},
        "sampler": NAMES
        | {
            "None": None,
            "too narrow": X[:, :3],
            "too short": X[:5],
            "nan": np.full(X.shape, np.nan),
            "text": X.astype(str),
        },
        "covariance": COVARIANCES,
        "s": NAMES | {"None": None},
        "offset": {"two": 2, "True": True, "text": "1", "None": None},
        "n_repeats": COUNTS,
        "aggregation": NAMES | {"None": None},
        "random_state": SEEDS,
        "n_jobs": {"zero": 0, "a fraction": 1.5, "text": "all"},
        "estimator": {"text": "lasso", "a class": go.GroupOWLRegressor, "a search": go.GroupOWLRegressorCV()},
    },
    "KnockoffSelector, own knockoffs": {"n_repeats": {"two": 2}},
    "GaussianKnockoffs.of": {"X": {"nan": X * np.nan, "huge": 1e200 * X}, "covariance": COVARIANCES, "s": NAMES},
    "fixed_knockoffs": {
        "X": {"nan": X * np.nan, "huge": 1e200 * X, "wide": X.T, "copies": np.column_stack([X[:, :2], X[:, 0]])},
        "s": NAMES,
        "random_state": SEEDS,
    },
    "knockoff_threshold": {"W": {"nan": [np.nan], "text": ["x"], "a matrix": np.eye(2)}, "fdr": SHARES},
}


@pytest.mark.filterwarnings("ignore:Nothing can be selected")
@pytest.mark.parametrize("row", rows_of(CALLS, TABLE), ids=lambda row: row.id)
def test_bad_input(row):
    check(row)
