"""Bad inputs of what is saved, opened, drawn and reported; files must be named."""

import tempfile
from pathlib import Path

import matplotlib
import numpy as np
import pytest

import groupowl as go
import groupowl.plotting as gp
from bad_input_support import COUNTS, NAMED, POSITIVE, X, Y, check, rows_of
from groupowl.report import write_report

matplotlib.use("Agg")

ESTIMATOR = go.GroupOWLRegressor(0.1).fit(NAMED, Y)
CHOOSER = go.GroupOWLRegressorCV(alphas=3, cv=3).fit(X, Y)
RESULT = go.solve(X, Y, np.array([2.0, 1.5, 1.0, 0.5]))
PATH = go.group_owl_path(X, Y, alphas=[0.2, 0.1])
UNFITTED = go.GroupOWLRegressor()
FOLDER = tempfile.TemporaryDirectory()
ON_DISK = Path(FOLDER.name) / "X.npy"
np.save(ON_DISK, X)

NO_FITS = {"None": None, "text": "model", "a number": 3, "not fitted": UNFITTED}
NO_RESULTS = {"None": None, "text": "result", "a number": 3, "an empty dictionary": {}}
NAMES = {"too few": ["a"], "a number": 3, "text": "abcd", "too many": list("abcde")}
AXES = {"text": "left", "a number": 3}

CALLS = {
    "save": lambda **changes: go.save(**{"obj": ESTIMATOR, "folder": "nowhere/else", **changes}),
    "statistics.load": go.SufficientStatistics.load,
    "statistics.save": go.SufficientStatistics.from_arrays(X, Y).save,
    "MemmapDesign": lambda **changes: go.MemmapDesign(**{"source": ON_DISK, **changes}),
    "DaskDesign": go.DaskDesign,
    "from_dask": lambda **changes: go.SufficientStatistics.from_dask(**{"X": X, "Y": Y, **changes}),
    "load": go.load,
    "ClusterDisplay.from_estimator": gp.ClusterDisplay.from_estimator,
    "ClusterDisplay.from_estimator of one": lambda **changes: gp.ClusterDisplay.from_estimator(ESTIMATOR, **changes),
    "ClusterDisplay.from_result": gp.ClusterDisplay.from_result,
    "CoefficientHeatmapDisplay.from_estimator": gp.CoefficientHeatmapDisplay.from_estimator,
    "CoefficientHeatmapDisplay.from_estimator of one": lambda **changes: gp.CoefficientHeatmapDisplay.from_estimator(
        ESTIMATOR, **changes
    ),
    "CoefficientHeatmapDisplay.from_result": gp.CoefficientHeatmapDisplay.from_result,
    "CoefficientPathDisplay.from_estimator": gp.CoefficientPathDisplay.from_estimator,
    "CoefficientPathDisplay.from_result": gp.CoefficientPathDisplay.from_result,
    "CoefficientPathDisplay.from_result of one": lambda **changes: gp.CoefficientPathDisplay.from_result(
        PATH, **changes
    ),
    "ConvergenceDisplay.from_estimator": gp.ConvergenceDisplay.from_estimator,
    "ConvergenceDisplay.from_result": gp.ConvergenceDisplay.from_result,
    "ConvergenceDisplay.from_result of one": lambda **changes: gp.ConvergenceDisplay.from_result(RESULT, **changes),
    "CrossValidationDisplay.from_estimator": gp.CrossValidationDisplay.from_estimator,
    "CrossValidationDisplay.from_estimator of one": lambda **changes: gp.CrossValidationDisplay.from_estimator(
        CHOOSER, **changes
    ),
    "plot_gap": lambda **changes: gp.plot_gap(**{"histories": {"a": RESULT}, **changes}),
    "plot_rows_kept": lambda **changes: gp.plot_rows_kept(**{"histories": {"a": RESULT}, **changes}),
    "predict before fit": lambda **changes: UNFITTED.predict(X),
    "score before fit": lambda **changes: UNFITTED.score(X, Y),
    "verify before fit": lambda **changes: UNFITTED.verify(X, Y),
    "summary before fit": lambda **changes: UNFITTED.summary(),
    "certificate before fit": lambda **changes: UNFITTED.certificate(),
    "coef_frame before fit": lambda **changes: UNFITTED.coef_frame(),
    "get_support before fit": lambda **changes: UNFITTED.get_support(),
    "selected_features_ before fit": lambda **changes: UNFITTED.selected_features_,
    "write_report": lambda **changes: write_report(**{"path": "nowhere/else.html", "contents": None, **changes}),
}

TABLE = {
    "save": {
        "obj": {"None": None, "a function": len, "a frame": NAMED, "text": "model", "a class": go.GroupOWLRegressor},
        "folder": {"None": None, "a number": 3, "empty": ""},
    },
    "load": {"folder": {"None": None, "a number": 3, "empty": ""}},
    "statistics.load": {"path": {"None": None, "a number": 3}},
    "statistics.save": {"path": {"None": None, "a number": 3}},
    "MemmapDesign": {
        "source": {
            "None": None,
            "a number": 3,
            "a frame": NAMED,
            "complex": X + 1j,
            "flat": X[:, 0],
            "text": X.astype(str),
        },
        "max_memory": {"zero": 0, "negative": -1, "text": "much", "nan": np.nan, "a list": [1]},
    },
    "DaskDesign": {"X": {"None": None, "a number": 3, "text": "abc"}},
    "from_dask": {"X": {"None": None, "text": "abc"}, "Y": {"None": None, "too few rows": Y[:7]}},
    "ClusterDisplay.from_estimator": {"estimator": NO_FITS},
    "ClusterDisplay.from_estimator of one": {"feature_names": NAMES, "ax": AXES, "max_features": COUNTS},
    "ClusterDisplay.from_result": {"result": NO_RESULTS},
    "CoefficientHeatmapDisplay.from_estimator": {"estimator": NO_FITS},
    "CoefficientHeatmapDisplay.from_estimator of one": {
        "feature_names": NAMES,
        "task_names": NAMES,
        "ax": AXES,
        "max_features": COUNTS,
    },
    "CoefficientHeatmapDisplay.from_result": {"result": NO_RESULTS},
    "CoefficientPathDisplay.from_estimator": {"estimator": NO_FITS},
    "CoefficientPathDisplay.from_result": {"path": NO_RESULTS},
    "CoefficientPathDisplay.from_result of one": {
        "alpha": POSITIVE | {"None": "x"},
        "feature_names": NAMES,
        "ax": AXES,
        "max_labels": {what: count for what, count in COUNTS.items() if what != "zero"},
    },
    "ConvergenceDisplay.from_estimator": {"estimator": NO_FITS},
    "ConvergenceDisplay.from_result": {"result": NO_RESULTS},
    "ConvergenceDisplay.from_result of one": {
        "relative_to": POSITIVE,
        "ax": AXES,
        "x": {"unknown": "hours", "a number": 3, "nothing": ()},
        "y": {"unknown": "loss", "a number": 3, "nothing": ()},
    },
    "CrossValidationDisplay.from_estimator": {"estimator": NO_FITS | {"of one alpha": ESTIMATOR}},
    "CrossValidationDisplay.from_estimator of one": {"ax": AXES, "folds": {"text": "x", "a number": 1}},
    "plot_gap": {"histories": NO_RESULTS, "x": {"unknown": "hours"}, "relative_to": POSITIVE, "ax": AXES},
    "plot_rows_kept": {"histories": NO_RESULTS, "x": {"unknown": "hours"}, "ax": AXES},
    "write_report": {"contents": {"None": None, "an estimator": ESTIMATOR}},
}

TABLE |= {name: {"estimator": {"not fitted": UNFITTED}} for name in CALLS if name.endswith("before fit")}

ROWS = rows_of(CALLS, TABLE)


def test_rows_differ():
    assert len({row.id for row in ROWS}) == len(ROWS) > 150


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_bad_input(row, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    check(row)
    assert list(tmp_path.iterdir()) == []
