"""Text columns as categories on the command line: fit, report, predict and verify."""

from __future__ import annotations

import json
import re

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import groupowl as go

OPTIONS = ("--targets", "y1,y2", "--id-column", "id", "--categories", "sex,batch", "--unpenalized", "sex")
CODED = ["age", "sex=f", "sex=m", "dose", "batch=1", "batch=2", "batch=3"]


@pytest.fixture
def frame():
    rng = np.random.default_rng(0)
    n = 80
    frame = pd.DataFrame({"id": [f"p{i}" for i in range(n)], "age": rng.standard_normal(n)})
    frame["sex"], frame["dose"], frame["batch"] = rng.choice(["f", "m"], n), rng.random(n), rng.integers(1, 4, n)
    effect = frame["batch"].map({1: 1.0, 2: -1.0, 3: 0.0})
    frame["y1"] = frame["age"] + effect + 0.3 * rng.standard_normal(n)
    frame["y2"] = (frame["sex"] == "m") - effect + 0.3 * rng.standard_normal(n)
    return frame


@pytest.fixture
def file(frame, tmp_path):
    frame.to_csv(tmp_path / "patients.csv", index=False)
    return tmp_path / "patients.csv"


@pytest.fixture
def model(run, file, tmp_path):
    assert run("fit", file, *OPTIONS, "--quiet", "--out", tmp_path / "model").code == 0
    return tmp_path / "model"


@pytest.mark.parametrize("command", ["fit", "path", "cv"])
def test_fit_and_verify(command, run, file, frame, tmp_path):
    out, options = tmp_path / "model", () if command == "fit" else ("--alphas", 8, "--eps", 0.05)
    ran = run(command, file, *OPTIONS, *options, "--test-size", 0.2, "--out", out, "--json")
    assert (ran.code, ran.err) == (0, "")
    selected = json.loads(ran.out)["selected"]
    assert {(item["feature"], item["group"]) for item in selected} >= {("batch=1", "batch"), ("sex=m", "sex")}
    estimator = go.load(out / "model")
    assert estimator.categories == ["sex", "batch"]
    assert estimator.unpenalized == ["sex"]
    assert estimator.categories_ == {"sex": ["f", "m"], "batch": ["1", "2", "3"]}
    assert estimator.feature_names_in_.tolist() == ["age", "sex", "dose", "batch"]
    assert estimator.predict(frame[["age", "sex", "dose", "batch"]]).shape == (80, 2)
    table = pd.read_csv(out / "coefficients.csv", keep_default_na=False).set_index("feature")
    assert set(table.index) == {"(intercept)", *CODED}
    assert (table.loc[["batch=1", "batch=2", "batch=3"], "group"] == "batch").all()
    report = (out / "report.html").read_text(encoding="utf-8")
    assert "sex (2 levels), batch (3 levels)" in report
    assert re.search(r"of 7 features \([234] of 4 groups\)\s+are in the model", report)
    assert "4, 7 with the levels of categories" in report
    assert "batch (" in report
    assert run("verify", out, file).code == 0
    if (out / "alphas.csv").exists():
        assert len(pd.read_csv(out / "alphas.csv")) > 1


def test_the_screen_shows_groups(run, file):
    ran = run("fit", file, *OPTIONS)
    assert ran.code == 0
    assert "group" in ran.out
    assert "batch=1" in ran.out


def test_predictions_are_those_of_python(run, model, frame, tmp_path):
    """Levels are matched by their text: 1 in one file is 1.0 in another."""
    new = frame.drop(columns=["y1", "y2"]).head(7)
    expected = go.load(model / "model").predict(new[["age", "sex", "dose", "batch"]])
    for k, other in enumerate((new, new.assign(batch=new["batch"].astype(float)), new[[*reversed(list(new))]])):
        other.to_csv(tmp_path / f"{k}.csv", index=False)
        ran = run("predict", model, tmp_path / f"{k}.csv", "--out", tmp_path / f"p{k}.csv")
        assert ran.code == 0, ran.err
        np.testing.assert_allclose(pd.read_csv(tmp_path / f"p{k}.csv")[["predicted_y1", "predicted_y2"]], expected)


@pytest.mark.parametrize("level", ["9", ""])
def test_unseen_levels(level, run, model, frame, tmp_path):
    new = frame.drop(columns=["y1", "y2"]).head(4).astype({"batch": object})
    new.loc[2, "batch"] = level
    new.to_csv(tmp_path / "new.csv", index=False)
    message = run("predict", model, tmp_path / "new.csv").message
    assert "column 'batch' has levels that the fit has not seen, in 1 sample" in message
    assert "--unseen zero" in message
    ran = run("predict", model, tmp_path / "new.csv", "--unseen", "zero", "--out", tmp_path / "p.csv")
    assert ran.code == 0, ran.err
    estimator = go.load(model / "model")
    coef = dict(zip(estimator.coef_names_, estimator.coef_.T, strict=True))
    row = new.iloc[2]
    expected = estimator.intercept_ + row["age"] * coef["age"] + row["dose"] * coef["dose"] + coef[f"sex={row['sex']}"]
    predicted = pd.read_csv(tmp_path / "p.csv")[["predicted_y1", "predicted_y2"]].to_numpy()
    np.testing.assert_allclose(predicted[2], expected)


def test_held_out_samples_may_have_levels_of_their_own(run, file, frame):
    frame["batch"] = [f"b{i}" for i in range(len(frame))]
    frame.to_csv(file, index=False)
    options = (*OPTIONS, "--test-size", 0.2)
    message = run("fit", file, *options).message
    assert "column 'batch' has levels that the fit has not seen, in 16 samples" in message
    assert "--unseen zero" in message
    assert run("fit", file, *options, "--unseen", "zero").code == 0


def test_columns_that_are_not_selected_may_be_missing(run, file, frame, tmp_path):
    frame["noise"] = np.random.default_rng(1).choice(["u", "v"], len(frame))
    frame.to_csv(file, index=False)
    out = tmp_path / "model"
    given = ("--targets", "y1,y2", "--id-column", "id", "--categories", "auto", "--drop", "batch", "--alpha", 0.4)
    assert run("fit", file, *given, "--quiet", "--out", out).code == 0
    estimator = go.load(out / "model")
    assert list(estimator.categories_) == ["sex", "noise"]
    assert "noise=u" not in estimator.selected_features_
    frame.drop(columns="noise").to_csv(tmp_path / "new.csv", index=False)
    ran = run("predict", out, tmp_path / "new.csv", "--out", tmp_path / "p.csv")
    assert ran.code == 0, ran.err
    assert "lacks 1 feature that the model has not selected" in ran.err + ran.out
    expected = estimator.predict(frame[list(estimator.feature_names_in_)])
    np.testing.assert_allclose(pd.read_csv(tmp_path / "p.csv")[["predicted_y1", "predicted_y2"]], expected)


def test_classes_and_times_have_categories(run, file, frame, tmp_path):
    frame["event"], frame["time"] = 1, np.exp(frame["y1"])
    frame["kind"] = np.where(frame["y2"] > 0, "yes", "no")
    frame.to_csv(file, index=False)
    shared = ("--id-column", "id", "--categories", "sex,batch", "--drop", "y1,y2", "--quiet")
    for k, given in enumerate((("-t", "kind", "--drop", "event,time"), ("-t", "event,time", "--drop", "kind"))):
        loss = ("--loss", "cox") if k else ()
        out = tmp_path / f"model{k}"
        ran = run("fit", file, *given, *shared, *loss, "--out", out)
        assert ran.code == 0, ran.err
        assert run("verify", out, file).code == 0
        assert run("predict", out, file, "--out", tmp_path / f"p{k}.csv").code == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--categories", "sexx"), "has no column 'sexx'. Did you mean 'sex'?"),
        (("--categories", "sex,y1"), "'y1' in 'sex,y1' is no feature"),
        (("--categories", "batch"), "of column 'sex' (column 3), which is not a number"),
        ((), "use --categories if it has levels"),
    ],
)
def test_bad_categories(options, message, run, file):
    assert message in run("fit", file, "--targets", "y1,y2", "--id-column", "id", *options).message


AUTO = ("--targets", "y1,y2", "--categories", "auto")


def test_auto_takes_no_names_of_samples(run, file, frame):
    """Text with more levels than half the samples is refused, unless it is named; at half it is a category."""
    message = run("fit", file, *AUTO).message
    assert "--categories auto: column 'id' has 80 levels in 80 samples" in message
    for option in ("--id-column id", "--drop id", "--categories id,..."):
        assert option in message
    assert run("fit", file, "--targets", "y1,y2", "--categories", "id,sex", "--quiet").code == 0
    for n_levels, code in ((41, 1), (40, 0)):
        frame["id"] = [f"p{i % n_levels}" for i in range(80)]
        frame.to_csv(file, index=False)
        assert run("fit", file, *AUTO, "--quiet").code == code


def test_auto_takes_no_numbers_with_a_slip(run, file, frame):
    """A column with one word among numbers is refused as it is without auto, up to one cell in ten."""
    frame["dose"] = frame["dose"].round(1).astype(object)  # few levels
    frame.loc[60:, "dose"] = None  # what is missing counts neither way
    for n_words, code in ((1, 1), (6, 1), (7, 0)):
        frame.loc[20 : 19 + n_words, "dose"] = "abc"
        frame.to_csv(file, index=False)
        assert run("fit", file, *AUTO, "--drop", "id", "--missing", "mean", "--quiet").code == code
    frame.loc[21:, "dose"] = 0.5
    frame.to_csv(file, index=False)
    plain = run("fit", file, "--targets", "y1,y2", "--drop", "id,sex").message
    message = run("fit", file, *AUTO, "--drop", "id").message
    assert message.startswith(plain)
    assert "'abc' in row 21 (below the header) of column 'dose' (column 4), which is not a number" in message
    assert "--categories NAME takes it as it is" in message
    named = ("--categories", "dose,sex", "--drop", "id")
    assert run("fit", file, "--targets", "y1,y2", *named, "--quiet").code == 0


def test_missing_levels_are_refused(run, file, frame):
    frame.loc[4, "sex"] = None
    frame.to_csv(file, index=False)
    message = run("fit", file, *OPTIONS).message
    assert "category 'sex' has 1 missing value (row 5)" in message
    assert "a level of its own" in message


def test_sparse_files_have_no_categories(run, frame, tmp_path):
    sp.save_npz(tmp_path / "data.npz", sp.csr_array(np.eye(80)[:, :6]))
    frame[["y1", "y2"]].to_csv(tmp_path / "targets.csv", index=False)
    message = run("fit", tmp_path / "data.npz", "--targets-from", tmp_path / "targets.csv", "--categories", "2").message
    assert "categories need a table in memory" in message
