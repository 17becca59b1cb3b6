"""Bad inputs of the functions: solves, paths, norms, weights, screening, statistics, data sets."""

import numpy as np
import pytest
import scipy.sparse as sp

import groupowl as go
from bad_input_support import (
    COUNTS,
    FLAGS,
    LABELS,
    LAM,
    LOSSES,
    MATRICES,
    POSITIVE,
    RULES,
    SAMPLE_WEIGHTS,
    SEEDS,
    SEQUENCES,
    SHARES,
    SOLVERS,
    STARTS,
    UNPENALIZED,
    X,
    Y,
    check,
    rows_of,
    with_entry,
)

ONE_HOT = np.eye(3)[LABELS]


def _with(function, **arguments):
    return lambda **changes: function(**{**arguments, **changes})


def _updated(**changes):
    fit_intercept = changes.pop("fit_intercept", False)
    return go.SafeScreener(X, Y, LAM, fit_intercept=fit_intercept).update(**{"B": np.zeros((4, 2)), **changes})


PATH = go.group_owl_path(X, Y, alphas=[0.2, 0.1])
STATISTICS = go.SufficientStatistics.from_arrays(X, Y)

CALLS = {
    "solve": _with(go.solve, X=X, Y=Y, lam=LAM),
    "solve classes": _with(go.solve, X=X, Y=ONE_HOT, lam=LAM, loss="multinomial"),
    "solve_many": _with(go.solve_many, X=X, Y=[Y, Y], lam=LAM),
    "solve_many of samples": _with(go.solve_many, X=X, Y=Y, lam=LAM, subsamples=[[0, 1], [1, 2]]),
    "lam_max": _with(go.lam_max, X=X, Y=Y, weights="oscar"),
    "path": _with(go.group_owl_path, X=X, y=Y, alphas=3),
    "path of classes": _with(go.group_owl_path, X=X, y=LABELS, alphas=3, loss="multinomial"),
    "SafeScreener": _with(go.SafeScreener, X=X, Y=Y, lam=LAM),
    "update": _updated,
    "owl_norm": _with(go.owl_norm, B=np.ones((4, 2)), lam=LAM),
    "owl_dual_norm": _with(go.owl_dual_norm, C=np.ones((4, 2)), lam=LAM),
    "owl_prox": _with(go.owl_prox, V=np.ones((4, 2)), lam=LAM),
    "GroupOWL": go.GroupOWL,
    "oscar_lam": _with(go.oscar_lam, n_features=4, alpha_1=1.0, alpha_2=0.5),
    "weights.oscar": _with(go.weights.oscar, n_features=4),
    "weights.linear": _with(go.weights.linear, n_features=4),
    "weights.constant": _with(go.weights.constant, n_features=4),
    "weights.bh": _with(go.weights.bh, n_features=4),
    "weights.gaussian": _with(go.weights.gaussian, n_features=4, n_samples=10),
    "weights.chi": _with(go.weights.chi, n_features=4, n_tasks=2),
    "weights.chi_gauss": _with(go.weights.chi_gauss, n_features=4, n_tasks=2, n_samples=10),
    "weights.levels": _with(go.weights.levels, n_features=4, counts=2, ratios=0.5),
    "APGD": go.APGD,
    "SPGD": go.SPGD,
    "WorkingSet": go.WorkingSet,
    "path.coef_at": PATH.coef_at,
    "path.intercept_at": PATH.intercept_at,
    "path[i]": lambda **changes: PATH[changes["path"]],
    "point.coef": PATH[0].coef,
    "from_arrays": _with(go.SufficientStatistics.from_arrays, X=X, Y=Y),
    "from_blocks": go.SufficientStatistics.from_blocks,
    "statistics.restrict": STATISTICS.restrict,
    "path of statistics": _with(go.group_owl_path, X=STATISTICS, alphas=3),
    "lam_max of statistics": _with(go.lam_max, X=STATISTICS, Y=None, weights="oscar"),
    "make_correlated_groups": _with(
        go.datasets.make_correlated_groups, n_samples=20, n_features=6, n_tasks=2, n_informative=2, random_state=0
    ),
}

TARGETS = {
    "None": None,
    "nan": np.full(np.shape(Y), np.nan),
    "infinite": with_entry(Y, -np.inf),
    "too few rows": Y[:7],
    "a cube": Y[:, :, None],
    "no columns": Y[:, :0],
    "complex": Y + 1j,
    "complex numbers in a column": Y[:, 0] + 1j,
    "text": np.full(12, "a"),
    "dates": np.full(12, np.datetime64("2020-01-01")),
    "sparse": sp.csr_array(Y),
    "a number": 3.0,
    "ragged": [[1.0, 2.0], [1.0]],
    "huge": 1e200 * Y,
}
CLASSES = {
    "negative": with_entry(ONE_HOT, -1.0),
    "no probabilities": 2 * ONE_HOT,
    "one column": 0.5 * ONE_HOT[:, :1],
    "complex": ONE_HOT + 1j,
    "nan": with_entry(ONE_HOT, np.nan),
}
LABEL_VALUES = {
    "complex": LABELS + 1j,
    "fractions": LABELS + 0.5,
    "one class": np.zeros(12, dtype=int),
    "None among them": [None, *LABELS[1:]],
    "nan among them": [np.nan, *LABELS[1:]],
    "mixed kinds": np.array(["a", *LABELS[1:].tolist()], dtype=object),
    "too few": LABELS[:5],
    "None": None,
    "a cube": np.zeros((12, 2, 2)),
    "lists": np.array([[1, 2], None] * 6, dtype=object),
}
COMMON = {
    "X": MATRICES,
    "sample_weight": SAMPLE_WEIGHTS,
    "loss": LOSSES,
    "fit_intercept": FLAGS,
}
SOLVING = {
    "solver": SOLVERS,
    "screening": RULES,
    "tol": POSITIVE,
    "max_iter": COUNTS | {"None": None},
    "random_state": SEEDS,
    "callback": {"a number": 3, "text": "print"},
}
COEFFICIENTS = {
    "nan": with_entry(np.ones((4, 2)), np.nan),
    "infinite": with_entry(np.ones((4, 2)), np.inf),
    "None": None,
    "text": "zeros",
    "complex": np.ones((4, 2)) * 1j,
    "a cube": np.ones((4, 2, 2)),
    "too few rows": np.ones((3, 2)),
    "sparse": sp.csr_array(np.ones((4, 2))),
    "dates": np.full((4, 2), np.datetime64("2020-01-01")),
}
LEVELS = SHARES
NON_NEGATIVE = {what: value for what, value in POSITIVE.items() if what != "zero"}
ALPHAS = COUNTS | {
    "too many": 10**12,
    "an empty list": [],
    "nan": [0.1, np.nan],
    "a negative one": [0.1, -0.1],
    "a zero": [0.0, 0.1],
    "two columns": [[0.1, 0.2]],
    "texts": ["0.1"],
    "a fraction": 0.1,
    "None": None,
    "a list": ["auto"],
}

TABLE = {
    "solve": COMMON
    | SOLVING
    | {
        "Y": TARGETS,
        "lam": SEQUENCES | {"a name": "oscar", "None": None},
        "B_init": STARTS,
        "intercept_init": {"without an intercept": [1.0, 1.0]},
    },
    "solve classes": {"Y": CLASSES},
    "solve_many": COMMON
    | {name: values for name, values in SOLVING.items() if name != "callback"}
    | {
        "Y": {what: [Y, values] for what, values in TARGETS.items()} | {"an empty list": [], "one": Y},
        "lam": SEQUENCES | {"a name": "oscar", "None": None, "an empty stack": np.ones((0, 4))},
        "B_init": STARTS,
        "intercept_init": {"without an intercept": [1.0, 1.0]},
        "n_jobs": {"a fraction": 1.5, "text": "2", "zero": 0, "True": True, "a list": [1]},
        "subsamples": {"three": [[0], [1], [2]]},
    },
    "solve_many of samples": {
        "sample_weight": {"given too": np.ones(12)},
        "subsamples": {
            "an empty list": [],
            "too large": [[0], [12]],
            "too small": [[0], [-13]],
            "no samples": [[0], []],
            "fractions": [[0.5]],
            "a matrix": [np.zeros((2, 2), dtype=int)],
            "a short mask": [np.ones(3, dtype=bool)],
            "texts": [["a"]],
            "one set of indices": np.arange(12),
            "a number": 3,
            "text": "halves",
            "ragged": [[0, [1, 2]]],
        },
    },
    "lam_max": {
        "Y": TARGETS,
        "weights": SEQUENCES | {"an unknown name": "slope", "None": None, "a list of names": ["bh", "chi"]},
        "loss": LOSSES,
        "fit_intercept": FLAGS,
        "sample_weight": SAMPLE_WEIGHTS,
    },
    "path": COMMON
    | SOLVING
    | {
        "y": TARGETS,
        "weights": SEQUENCES | {"an unknown name": "slope", "None": None, "a list of names": ["bh", "chi"]},
        "alphas": ALPHAS,
        "eps": SHARES,
        "standardize": FLAGS,
        "unpenalized": UNPENALIZED,
        "max_features": COUNTS,
        "coef_init": STARTS,
        "verbose": {"text": "loud", "negative": -1, "a fraction": 1.5, "None": None},
    },
    "path of classes": {"y": LABEL_VALUES | {f"probabilities, {what}": Y for what, Y in CLASSES.items()}},
    "SafeScreener": {"Y": TARGETS, "lam": SEQUENCES, "rule": RULES, "loss": LOSSES, "fit_intercept": FLAGS},
    "update": {
        "fit_intercept": FLAGS,
        "B": COEFFICIENTS,
        "intercept": {"without an intercept": [1.0, 1.0]},
        "Z": {"nan": with_entry(Y, np.nan), "too few rows": Y[:7], "text": "XB", "complex": Y + 1j},
    },
    "owl_norm": {"B": COEFFICIENTS, "lam": SEQUENCES},
    "owl_dual_norm": {"C": COEFFICIENTS, "lam": SEQUENCES},
    "owl_prox": {"V": COEFFICIENTS, "lam": SEQUENCES, "step": POSITIVE},
    "GroupOWL": {"lam": {what: lam for what, lam in SEQUENCES.items() if not what.startswith("too ")} | {"None": None}},
    "oscar_lam": {"n_features": COUNTS, "alpha_1": NON_NEGATIVE, "alpha_2": NON_NEGATIVE},
    "weights.oscar": {"n_features": COUNTS, "ratio": NON_NEGATIVE},
    "weights.linear": {"n_features": COUNTS},
    "weights.constant": {"n_features": COUNTS},
    "weights.bh": {"n_features": COUNTS, "fdr": LEVELS},
    "weights.gaussian": {"n_features": COUNTS, "n_samples": COUNTS, "fdr": LEVELS},
    "weights.chi": {"n_features": COUNTS, "n_tasks": COUNTS, "fdr": LEVELS},
    "weights.chi_gauss": {"n_features": COUNTS, "n_tasks": COUNTS, "n_samples": COUNTS, "fdr": LEVELS},
    "weights.levels": {
        "n_features": COUNTS,
        "counts": COUNTS | {"too many": 5, "two for one ratio": [1, 2]},
        "ratios": {"above 1": 1.5, "negative": -0.5, "nan": np.nan, "text": "half", "None": None},
    },
    "APGD": {
        "step": POSITIVE,
        "restart": {"unknown": "never ever", "None": None, "a number": 1},
        "screen_after": {"negative": -1, "a fraction": 1.5, "text": "x"},
        "check_every": COUNTS,
    },
    "SPGD": {
        "batch_size": COUNTS,
        "inner_steps": COUNTS,
        "step": POSITIVE,
        "screen_after": {"negative": -1, "a fraction": 1.5, "text": "x"},
    },
    "WorkingSet": {
        "first_size": COUNTS,
        "screen_after": {"negative": -1, "a fraction": 1.5, "text": "x"},
        "compress": {"text": "yes", "a number": 2, "None": None},
    },
    "path.coef_at": {"alpha": POSITIVE},
    "path.intercept_at": {"alpha": POSITIVE},
    "path[i]": {"path": {"too large": 2, "too small": -3, "text": "first", "a fraction": 0.5, "None": None}},
    "point.coef": {"n_features": {"text": "x", "a fraction": 2.5, "negative": -1}},
    "from_arrays": {"X": MATRICES, "Y": TARGETS, "sample_weight": SAMPLE_WEIGHTS},
    "from_blocks": {"blocks": {"a number": 3, "None": None, "no pairs": [1, 2], "text": "ab"}},
    "statistics.restrict": {"columns": {"too large": [9], "text": ["a"], "fractions": [0.5], "two rows": [[0, 1]]}},
    "path of statistics": {"y": {"given": Y}, "sample_weight": {"given": np.ones(12)}},
    "lam_max of statistics": {
        "Y": {"given": Y},
        "sample_weight": {"given": np.ones(12)},
        "loss": {"classes": "multinomial"},
    },
    "make_correlated_groups": {
        "n_samples": COUNTS,
        "n_features": COUNTS,
        "n_tasks": COUNTS,
        "n_informative": {"negative": -1, "a fraction": 1.5, "text": "x"},
        "group_size": COUNTS,
        "correlation": {"negative": -0.1, "one": 1.0, "nan": np.nan, "text": "x", "None": None},
        "structure": {"unknown": "block party", "None": None},
        "task": {"unknown": "guess", "None": None},
        "signal_to_noise": POSITIVE,
        "unit_norm": FLAGS,
        "density": {"negative": -0.1, "large": 1.5, "nan": np.nan, "text": "x", "True": True},
        "random_state": SEEDS,
    },
}

ROWS = rows_of(CALLS, TABLE)


def test_rows_differ():
    assert len({row.id for row in ROWS}) == len(ROWS) > 750


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_bad_input(row):
    check(row)
