"""Times until events on the command line: ``--loss cox --targets EVENT,TIME``."""

from __future__ import annotations

import io
import json

import numpy as np
import pandas as pd
import pytest

import groupowl as go

ROLES = ("--targets", "died,days", "--loss", "cox")


@pytest.fixture
def frame():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 8))
    time, end = 100 * rng.exponential(np.exp(-X[:, 0])), 300 * rng.exponential(size=80)
    frame = pd.DataFrame(X, columns=[f"gene{j}" for j in range(8)])
    return frame.assign(died=(time < end).astype(int), days=np.minimum(time, end))


@pytest.fixture
def file(frame, tmp_path):
    frame.to_csv(tmp_path / "survival.csv", index=False)
    return tmp_path / "survival.csv"


@pytest.mark.parametrize("command", ["fit", "path", "cv"])
def test_fit_verify_predict(command, run, file, frame, tmp_path):
    out, options = tmp_path / "model", () if command == "fit" else ("--alphas", 10, "--eps", 0.05)
    ran = run(command, file, *ROLES, *options, "--out", out, "--json")
    assert (ran.code, ran.err) == (0, "")
    answer = json.loads(ran.out)
    name = "partial likelihood loss (held out, 5 folds)" if command == "cv" else None
    name = name or "concordance (data of the fit, not held out)"
    score = answer["scores"][name]
    assert (score["model"] < score["null_model"]) == (command == "cv")
    assert answer["targets"] == ["days"]
    estimator = go.load(out / "model")
    assert isinstance(estimator, go.GroupOWLCox if command == "fit" else go.GroupOWLCoxCV)
    assert run("verify", out, file).code == 0
    ran = run("predict", out, file)
    assert ran.err == ""
    predicted = pd.read_csv(io.StringIO(ran.out))["log hazard(days)"]
    np.testing.assert_allclose(predicted, frame.to_numpy()[:, :8] @ estimator.coef_)


def test_the_null_model_of_folds_is_scored_as_the_folds_are(run, file, frame):
    """At an alpha that selects nothing both are the same."""
    ran = run("cv", file, *ROLES, "--alphas", "1e6", "--json")
    (score,) = json.loads(ran.out)["scores"].values()
    assert score["model"] == pytest.approx(score["null_model"], rel=1e-12)


@pytest.mark.parametrize(
    ("targets", "message"),
    [
        ("days", "--loss cox needs pairs of targets, --targets EVENT,TIME with events of 0 and 1; 1 given."),
        ("gene1,days", "event must be True or False, or 1 and 0, but it has the entry"),
        ("died,gene1", "time must be positive, but its smallest entry is"),
    ],
)
def test_bad_targets(targets, message, run, file):
    ran = run("fit", file, "--targets", targets, "--loss", "cox")
    assert ran.code != 0
    assert message in ran.message
