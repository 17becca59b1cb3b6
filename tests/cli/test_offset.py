"""Offsets, exposures, ridges and signs on the command line."""

from __future__ import annotations

import io
import json

import numpy as np
import pandas as pd
import pytest

import groupowl as go

N = 80


@pytest.fixture
def frame():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, 6))
    frame = pd.DataFrame(X, columns=[f"gene{j}" for j in range(6)])
    years, base = rng.uniform(0.5, 4.0, size=N), 2.0 * rng.standard_normal(N)
    z = X[:, 0] - X[:, 1]
    return frame.assign(
        years=years,
        base=base,
        count=rng.poisson(years * np.exp(0.5 * z)),
        size=z + base + 0.3 * rng.standard_normal(N),
        grade=np.where(2.0 * z + base + rng.logistic(size=N) > 0.0, "high", "Low"),
        died=1,
        days=rng.exponential(size=N) * np.exp(-z - base),
    )


@pytest.fixture
def file(frame, tmp_path):
    frame.to_csv(tmp_path / "cohort.csv", index=False)
    return tmp_path / "cohort.csv"


#: Targets, other options, the columns left out, and the offset that the estimator must have had.
MODELS = {
    "poisson": (("--targets", "count", "--loss", "poisson", "--exposure", "years"), lambda f: np.log(f["years"])),
    "squared": (("--targets", "size", "--offset", "base"), lambda f: f["base"]),
    "both": (
        ("--targets", "size", "--offset", "base", "--exposure", "years"),
        lambda f: f["base"] + np.log(f["years"]),
    ),
    "classes": (("--targets", "grade", "--offset", "base"), lambda f: f["base"]),
    "cox": (("--targets", "died,days", "--loss", "cox", "--offset", "base"), lambda f: f["base"]),
}


@pytest.mark.parametrize("command", ["fit", "cv"])
@pytest.mark.parametrize("name", MODELS)
def test_fit_verify_predict(command, name, run, file, frame, tmp_path):
    roles, offset = MODELS[name]
    used = {part for option in roles for part in option.split(",")}
    others = [column for column in frame.columns[6:] if column not in used]
    options = ("--drop", ",".join(others), "--ridge", 0.01)
    if command == "cv":
        options += ("--alphas", 8, "--eps", 0.1, "--folds", 3)
    out = tmp_path / "model"
    ran = run(command, file, *roles, *options, "--out", out, "--json")
    assert (ran.code, ran.err) == (0, "")
    estimator = go.load(out / "model")
    assert estimator.has_offset_
    assert estimator.ridge == 0.01
    assert estimator.n_features_in_ == 6
    assert run("verify", out, file).code == 0
    predicted = pd.read_csv(io.StringIO(run("predict", out, file).out))
    X = frame.iloc[:, :6]
    expected = estimator.predict(X, offset=offset(frame).to_numpy())
    target = {"cox": "days", "classes": "grade", "poisson": "count"}.get(name, "size")
    column = "log hazard(days)" if name == "cox" else f"predicted_{target}"
    if name == "classes":
        assert predicted[column].tolist() == expected.tolist()
    else:
        np.testing.assert_allclose(predicted[column], expected.ravel())
    scores = json.loads(ran.out)["scores"]
    assert all(np.isfinite([score["model"], score["null_model"]]).all() for score in scores.values())


def test_the_null_model_has_the_offset(run, file):
    """At an alpha that selects nothing the model is the null model, offset and all."""
    roles = ("--targets", "count", "--loss", "poisson", "--exposure", "years", "--drop", "base,size,grade,died,days")
    answer = run("fit", file, *roles, "--alpha", 1e6, "--json")
    score = json.loads(answer.out)["scores"]["mean Poisson deviance (data of the fit, not held out)"]
    assert score["model"] == pytest.approx(score["null_model"])


def test_signs(run, file, tmp_path):
    drop = ("--drop", "years,base,count,grade,died,days", "--targets", "size", "--alpha", 0.01)
    for asked, expected in ((("--positive", "gene1"), ["gene1"]), (("--positive", "*"), True)):
        out = tmp_path / f"model-{expected}"
        assert run("fit", file, *drop, *asked, "--out", out).code == 0
        estimator = go.load(out / "model")
        assert estimator.positive == expected
        assert estimator.coef_.ravel()[1] == 0.0
        assert run("verify", out, file).code == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--exposure", "base"), "which has no logarithm"),
        (("--offset", "nothing"), "has no column 'nothing'"),
        (("--offset", "grade"), "offset is 'Low' in"),
        (("--offset", "size"), "A column is one thing only"),
        (("--ridge", "-1"), "--ridge"),
        (("--positive", "size"), "--positive size has no feature with a penalty"),
    ],
)
def test_refusals(options, message, run, file):
    drop = () if "grade" in options else ("--drop", "grade")
    ran = run("fit", file, "--targets", "size", *drop, *options)
    assert ran.code != 0
    assert message in ran.message


def test_predictions_need_the_offset(run, file, frame, tmp_path):
    out = tmp_path / "model"
    drop = ("--drop", "years,count,grade,died,days")
    assert run("fit", file, "--targets", "size", "--offset", "base", *drop, "--out", out).code == 0
    frame.drop(columns="base").to_csv(tmp_path / "new.csv", index=False)
    assert "--offset: " in run("predict", out, tmp_path / "new.csv").message


def test_cv_chooses_from_a_list_of_ridges(run, file, tmp_path):
    roles = ("--targets", "size", "--drop", "years,base,count,grade,died,days")
    ran = run("cv", file, *roles, "--ridge", "0, 10", "--alphas", 5, "--out", tmp_path / "model", "--json")
    assert ran.code == 0, ran.err
    model = go.load(tmp_path / "model" / "model")
    assert model.ridge == [0.0, 10.0]
    assert json.loads(ran.out)["ridge"] == model.ridge_ == 0.0
    assert run("verify", tmp_path / "model", file).code == 0
    shown = run("cv", file, *roles, "--ridge", "0,10", "--alphas", 5, "--out", tmp_path / "again").out
    assert "0 (chosen from 0, 10)" in (tmp_path / "again" / "report.html").read_text(encoding="utf-8")
    assert "Selected" in shown
    assert (
        "--ridge must be numbers that are not negative, got '-1'" in run("cv", file, *roles, "--ridge", "1,-1").message
    )
    assert run("fit", file, *roles, "--ridge", "1,2").code == 2


@pytest.mark.parametrize("option", [("--ridge", "0.1"), ("--positive", "gene0")])
def test_criteria_are_refused_by_what_can_be_typed(option, run, file):
    roles = ("--targets", "size", "--drop", "years,base,count,grade,died,days")
    message = run("path", file, *roles, *option).message
    assert f"--selection ebic counts degrees of freedom, which are not known with {option[0]}" in message
    assert "Use the command cv, with --selection min or 1se." in message


def test_the_report_says_what_the_fit_took_of_each_sample(run, file, frame, tmp_path):
    frame.assign(w=1.0).to_csv(file, index=False)
    roles = ("--targets", "count", "--drop", "size,grade,died,days")
    more = ("--exposure", "years", "--offset", "base", "--sample-weight", "w")
    for given, call in (
        ((), "model.fit(X, y)"),
        (more[:2], "model.fit(X, y, offset=log(exposure))"),
        (more, "model.fit(X, y, sample_weight=weights, offset=offset + log(exposure))"),
    ):
        plain = () if given else ("--drop", "w")
        out = tmp_path / str(len(given))
        assert run("fit", file, *roles, *plain, "--loss", "poisson", *given, "--out", out).code == 0
        assert f"<code>{call}</code> fits it" in (out / "report.html").read_text(encoding="utf-8")


def test_adaptive_factors_are_an_option(run, file, tmp_path):
    roles = ("--targets", "size", "--drop", "years,base,count,grade,died,days")
    out = tmp_path / "adaptive"
    assert run("fit", file, *roles, "--penalty-factor", "adaptive", "--out", out).code == 0
    model = go.load(out / "model")
    assert model.penalty_factor == "adaptive"
    assert len(np.unique(model.penalty_factor_)) > 1
    assert run("verify", out, file).code == 0
    both = run("fit", file, *roles, "--penalty-factor", "adaptive", "--penalty-factor", "gene1=2").message
    assert "or adaptive alone" in both
