"""Times until events on the command line: ``--loss cox --targets EVENT,TIME``."""

from __future__ import annotations

import io
import json

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import ShuffleSplit

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
    assert "concordance (80 samples)" in ran.err
    predicted = pd.read_csv(io.StringIO(ran.out))["log hazard(days)"]
    np.testing.assert_allclose(predicted, frame.to_numpy()[:, :8] @ estimator.coef_)


def test_what_is_written_and_predicted_of_hazards(run, file, frame, tmp_path):
    """Baseline hazards step by step, curves by predicted risk in the report, and chances until given times."""
    frame.assign(relapsed=frame["died"], weeks=frame["days"] / 7).to_csv(file, index=False)
    out, model = tmp_path / "model", tmp_path / "model" / "model"
    ran = run("fit", file, "--targets", "died,days,relapsed,weeks", "--loss", "cox", "--test-size", 0.3, "--out", out)
    assert ran.code == 0
    estimator = go.load(model)
    steps = pd.read_csv(out / "baseline_hazard.csv")
    assert list(steps) == ["target", "time", "cumulative_hazard"]
    np.testing.assert_array_equal(steps["target"], np.array(["days", "weeks"])[estimator.baseline_endpoint_])
    np.testing.assert_allclose(steps["cumulative_hazard"], estimator.baseline_hazard_, rtol=1e-12)
    report = (out / "report.html").read_text(encoding="utf-8")
    assert report.count('aria-label="Survival by predicted risk: ') == 2
    ran = run("predict", out, file, "--times", "50,99.5")
    predicted = pd.read_csv(io.StringIO(ran.out))
    expected = estimator.predict_survival_function(frame.iloc[:, :8], [50.0, 99.5])
    np.testing.assert_allclose(predicted["p(weeks > 99.5)"], expected[:, 1, 1], rtol=1e-12)
    np.testing.assert_allclose(predicted["p(days > 50)"], expected[:, 0, 0], rtol=1e-12)


def test_times_that_cannot_be_predicted(run, file, frame, tmp_path):
    frame.assign(site=np.arange(80) % 2).to_csv(file, index=False)
    run("fit", file, *ROLES, "--strata", "site", "--out", tmp_path / "strata")
    assert (
        "has a baseline hazard for each stratum. In Python"
        in run("predict", tmp_path / "strata", file, "--times", 3).message
    )
    run("fit", file, "--targets", "days", "--out", tmp_path / "numbers")
    assert "--times is for models of --loss cox" in run("predict", tmp_path / "numbers", file, "--times", 3).message
    assert (
        "--times must be a positive number, got '-1'"
        in run("predict", tmp_path / "strata", file, "--times", "1,-1").message
    )


@pytest.mark.parametrize("command", ["fit", "cv"])
def test_strata(command, run, file, frame, tmp_path):
    """Samples are compared within strata, held-out ones too, as by the estimator itself."""
    site = np.array(["north", "south"])[np.arange(80) % 2]
    frame.assign(site=site).to_csv(file, index=False)
    out, options = tmp_path / "model", () if command == "fit" else ("--alphas", 10, "--eps", 0.05)
    ran = run(command, file, *ROLES, "--strata", "site", "--test-size", 0.25, *options, "--out", out, "--json")
    assert (ran.code, ran.err) == (0, "")
    scores = json.loads(ran.out)["scores"]
    if command == "cv":
        at_zero = run("cv", file, *ROLES, "--strata", "site", "--alphas", "1e6", "--json")
        for score in json.loads(at_zero.out)["scores"].values():
            assert score["model"] == pytest.approx(score["null_model"], rel=1e-12)
    estimator = go.load(out / "model")
    assert estimator.strata_.tolist() == ["north", "south"]
    assert run("verify", out, file).code == 0
    assert "site" not in run("predict", out, file).err
    held = next(ShuffleSplit(1, test_size=0.25, random_state=0).split(frame))[1]
    X, y = frame.iloc[held, :8], frame[["died", "days"]].to_numpy()[held]
    expected = estimator.score(X, y, strata=site[held])
    assert scores["concordance (held out, 20 samples)"]["model"] == pytest.approx(expected, rel=1e-12)


def test_strata_without_times_are_refused(run, file):
    message = run("fit", file, "--targets", "days", "--strata", "died").message
    assert "--strata died is for --loss cox, whose samples are compared. For other losses use --groups" in message


def test_the_null_model_of_folds_is_scored_as_the_folds_are(run, file, frame):
    """At an alpha that selects nothing both are the same."""
    ran = run("cv", file, *ROLES, "--alphas", "1e6", "--json")
    scores = json.loads(ran.out)["scores"]
    assert list(scores) == ["partial likelihood loss (held out, 5 folds)", "concordance (held out, 5 folds)"]
    for score in scores.values():
        assert score["model"] == pytest.approx(score["null_model"], rel=1e-12)


@pytest.mark.parametrize(
    ("targets", "message"),
    [
        ("days", "--loss cox needs pairs of targets, --targets EVENT,TIME with events of 0 and 1; 1 given."),
        ("gene1,days", "event must be True or False, or 1 and 0, but it has the entry"),
        ("died,gene1", "time must be positive, but its smallest entry is"),
        ("days,died", "they have changed places. The event comes first: --targets EVENT,TIME."),
    ],
)
def test_bad_targets(targets, message, run, file):
    ran = run("fit", file, "--targets", targets, "--loss", "cox")
    assert ran.code != 0
    assert message in ran.message


@pytest.mark.parametrize(("yes", "no", "typed"), [(2, 1, "2"), (2.0, 1.0, "2"), ("dead", "alive", "dead")])
def test_any_cell_can_stand_for_an_event(yes, no, typed, run, file, frame, tmp_path):
    """As in R's data sets, whose events are 2; predictions and checks read the file in the same way."""
    usual = run("fit", file, *ROLES, "--out", tmp_path / "usual")
    assert usual.code == 0
    frame.assign(died=np.where(frame["died"] == 1, yes, no)).to_csv(file, index=False)
    assert run("fit", file, *ROLES).code != 0
    assert run("fit", file, *ROLES, "--event", typed, "--out", tmp_path / "coded").code == 0
    coefs = [go.load(tmp_path / name / "model").coef_ for name in ("usual", "coded")]
    np.testing.assert_array_equal(*coefs)
    assert run("verify", tmp_path / "coded", file).code == 0
    assert "concordance (80 samples)" in run("predict", tmp_path / "coded", file).err


def test_an_event_that_no_cell_has_is_refused(run, file, frame):
    frame.assign(died=np.where(frame["died"] == 1, "dead", "alive")).to_csv(file, index=False)
    message = run("fit", file, *ROLES, "--event", "died").message
    assert "--event died: no cell of column 'died' is that; it has 'alive', 'dead'" in message
    assert "with --loss cox, --event CELL says which cell" in run("fit", file, *ROLES).message
    assert "--event 1 is for --loss cox" in run("fit", file, "--targets", "days", "--event", "1").message
    single = ("--targets", "days", "--drop", "died", "--loss", "cox", "--event", "1")
    assert "--event is for pairs of targets" in run("fit", file, *single).message


def test_ties_are_an_option(run, file, frame, tmp_path):
    frame.assign(days=np.ceil(frame["days"] / 40)).to_csv(file, index=False)
    for ties in ("efron", "breslow"):
        assert run("fit", file, *ROLES, "--ties", ties, "--out", tmp_path / ties).code == 0
    found, other = (go.load(tmp_path / name / "model") for name in ("efron", "breslow"))
    assert (found.ties, other.ties) == ("efron", "breslow")
    assert np.abs(found.coef_ - other.coef_).max() > 1e-6
