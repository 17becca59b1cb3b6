"""Groups of features and factors of the penalty on the command line."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import groupowl as go

NAMES = ["T", "N", "M", "dose_1", "dose_2", "age", "sex", "other"]
OPTIONS = (
    *("--targets", "y1,y2", "--feature-groups", "stage=T,N,M", "--feature-groups", "dose=dose_*"),
    *("--penalty-factor", "age,sex=0", "--penalty-factor", "other=inf", "--group-scale", "frobenius"),
)


@pytest.fixture
def frame():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 8))
    Y = X[:, :3] @ rng.standard_normal((3, 2)) + rng.standard_normal((80, 2))
    return pd.DataFrame(np.hstack([X, Y]), columns=[*NAMES, "y1", "y2"])


@pytest.fixture
def file(frame, tmp_path):
    frame.to_csv(tmp_path / "patients.csv", index=False)
    return tmp_path / "patients.csv"


@pytest.mark.parametrize("command", ["fit", "path", "cv"])
def test_fit_and_verify(command, run, file, frame, tmp_path):
    out, options = tmp_path / "model", () if command == "fit" else ("--alphas", 10, "--eps", 0.05)
    ran = run(command, file, *OPTIONS, *options, "--out", out, "--json")
    assert (ran.code, ran.err) == (0, "")
    estimator = go.load(out / "model")
    assert estimator.feature_groups == {"stage": ["T", "N", "M"], "dose": ["dose_1", "dose_2"]}
    assert estimator.penalty_factor == {"age": 0.0, "sex": 0.0, "other": np.inf}
    assert estimator.group_scale == "frobenius"
    assert list(estimator.feature_groups_) == ["stage"] * 3 + ["dose"] * 2 + ["age", "sex", "other"]
    assert run("verify", out, file).code == 0
    table = pd.read_csv(out / "coefficients.csv", keep_default_na=False).set_index("feature")
    assert table.loc["(intercept)", "group"] == ""
    assert (table.loc[["T", "N", "M"], "group"] == "stage").all()
    assert (table.loc[["age", "sex"], "state"] == "unpenalized").all()
    selected = set(table.loc[["T", "N", "M"], "state"])
    assert selected == {"selected"}
    assert "stage" in (out / "report.html").read_text(encoding="utf-8")


def test_sparse_files_have_groups_by_position(run, frame, tmp_path):
    path, out = tmp_path / "data.npz", tmp_path / "model"
    X = sp.csr_array(frame[NAMES].to_numpy() * (frame[NAMES].to_numpy() > 0))
    sp.save_npz(path, X)
    targets = tmp_path / "targets.csv"
    frame[["y1", "y2"]].to_csv(targets, index=False)
    given = ("--targets-from", targets, "--feature-groups", "first=1,2", "--penalty-factor", "3=2.5")
    ran = run("fit", path, *given, "--out", out, "--json")
    assert (ran.code, ran.err) == (0, "")
    estimator = go.load(out / "model")
    assert estimator.feature_groups == {"first": [0, 1]}
    assert estimator.penalty_factor == {2: 2.5}
    assert json.loads(ran.out)["targets"] == ["y1", "y2"]


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--feature-groups", "stage", "give a name and columns"),
        ("--feature-groups", "stage=", "give a name and columns"),
        ("--feature-groups", "stage=T,y1", "'y1' in 'T,y1' is no feature"),
        ("--feature-groups", "stage=T,X9", "has no column 'X9'"),
        ("--feature-groups", "stage=T,age", "only some columns of the group 'stage' are unpenalized"),
        ("--penalty-factor", "T=-1", "a number that is not negative"),
        ("--penalty-factor", "T", "a number that is not negative"),
        ("--penalty-factor", "T=much", "a number that is not negative"),
    ],
)
def test_what_cannot_be_meant_is_refused(option, value, message, run, file):
    ran = run("fit", file, "--targets", "y1,y2", "--unpenalized", "age", option, value)
    assert ran.code == 1
    assert message in ran.err
