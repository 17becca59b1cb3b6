"""Targets that are missing in files."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import groupowl as go

N = 60
FEATURES = [f"gene{j}" for j in range(5)]
GAPS = {"a": 20, "b": 12}


@pytest.fixture
def frame():
    """Two targets with gaps, the last sample without any; the same as labels and as counts."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, 5))
    z = X[:, :1] * [1.0, -1.0] + 0.5 * rng.standard_normal((N, 2))
    missing = np.zeros((N, 2), dtype=bool)
    for k, count in enumerate(GAPS.values()):
        missing[rng.permutation(N - 1)[: count - 1], k] = True
    missing[:, 1] &= ~missing[:, 0]  # no other sample is without a target
    missing[np.flatnonzero(~missing.any(axis=1))[: GAPS["b"] - 1 - missing[:, 1].sum()], 1] = True
    missing[-1] = True
    columns = {}
    for k, name in enumerate(GAPS):
        columns[name] = z[:, k]
        columns[f"is_{name}"] = 1.0 * (z[:, k] > 0.0)
        columns[f"n_{name}"] = np.round(np.exp(z[:, k]))
        for column in (name, f"is_{name}", f"n_{name}"):
            columns[column] = np.where(missing[:, k], np.nan, columns[column])
    return pd.DataFrame(X, columns=FEATURES).assign(**columns, weight=rng.uniform(0.5, 2.0, size=N))


def targets_file(frame, path, *targets):
    """A file with some of the targets, empty or NA where they are missing."""
    part = frame[[*FEATURES, "weight", *targets]]
    if path.suffix == ".parquet":
        part.to_parquet(path)
    else:
        part.to_csv(path, index=False, na_rep="NA" if targets[0] == "a" else "")
    return path


MODELS = {
    "squared": (("a", "b"), ()),
    "huber": (("a", "b"), ("--loss", "huber")),
    "poisson": (("n_a", "n_b"), ("--loss", "poisson")),
    "logistic": (("is_a", "is_b"), ("--loss", "logistic")),
    "one target": (("a",), ()),
}


@pytest.mark.parametrize("name", MODELS)
def test_gaps_are_targets_that_were_not_observed(name, run, frame, tmp_path):
    targets, options = MODELS[name]
    file = targets_file(frame, tmp_path / "t.csv", *targets)
    roles = ("--targets", ",".join(targets), "--sample-weight", "weight", "--alpha", 0.05)
    ran = run("fit", file, *roles, *options, "--out", tmp_path / "model", "--json")
    assert ran.code == 0, ran.err
    told = json.loads(ran.out)
    n_without = int(frame[list(targets)].isna().all(axis=1).sum())
    assert told["n_samples"] == N - n_without
    expected = {} if len(targets) == 1 else {target: GAPS[target[-1]] - n_without for target in targets}
    assert told["missing_targets"] == expected
    assert any(note.startswith(f"{n_without} sample") and "left out" in note for note in told["notes"])

    kind = go.GroupOWLClassifier if name == "logistic" else go.GroupOWLRegressor
    loss = {"huber": {"loss": "huber"}, "poisson": {"loss": "poisson"}}.get(name, {})
    known = frame[frame[list(targets)].notna().any(axis=1)]
    model = kind(0.05, **loss).fit(known[FEATURES], known[list(targets)], sample_weight=known["weight"])
    saved = go.load(tmp_path / "model" / "model")
    np.testing.assert_allclose(saved.coef_, model.coef_, rtol=0.0, atol=1e-9)
    assert run("verify", tmp_path / "model", file).code == 0
    predicted = run("predict", tmp_path / "model", file)
    assert predicted.code == 0, predicted.err
    assert len(predicted.out.splitlines()) == N + 1
    assert "nan" not in predicted.out


def test_null_model_and_scores_are_those_of_observed_targets(run, frame, tmp_path):
    file = targets_file(frame, tmp_path / "t.csv", "a", "b")
    roles = ("--targets", "a,b", "--sample-weight", "weight", "--alpha", 0.05)
    told = json.loads(run("fit", file, *roles, "--out", tmp_path / "model", "--json").out)
    model, known = go.load(tmp_path / "model" / "model"), frame[frame[["a", "b"]].notna().any(axis=1)]
    Y, w = known[["a", "b"]].to_numpy(), known["weight"].to_numpy()[:, None]
    w = np.where(np.isnan(Y), 0.0, w)

    def mean_square(Z):
        return float(np.nansum(w * (Y - Z) ** 2) / w.sum())

    (scores,) = [pair for name, pair in told["scores"].items() if name.startswith("mean squared error")]
    means = np.nansum(w * Y, axis=0) / w.sum(axis=0)
    assert scores["model"] == pytest.approx(mean_square(model.predict(known[FEATURES])), rel=1e-12)
    assert scores["null_model"] == pytest.approx(mean_square(means), rel=1e-12)


@pytest.mark.parametrize("command", ["cv", "path"])
def test_searches_say_what_is_missing(command, run, frame, tmp_path, reports):
    file = targets_file(frame, tmp_path / "t.parquet", "a", "b")
    options = ("--drop", "weight", "--alphas", 8, *(("--test-size", 0.3) if command == "cv" else ()))
    ran = run(command, file, "--targets", "a,b", *options, "--out", tmp_path / "model")
    assert ran.code == 0, ran.err
    (contents,) = reports
    assert "Missing targets" in ran.out
    if command == "path":
        assert contents.facts["Missing targets"] == "a (19), b (11)"
    assert run("verify", tmp_path / "model", file).code == 0


def test_shares_of_folds_are_the_targets_that_they_hold_out(run, frame, tmp_path):
    """The null model of the folds is scored on what the model is scored on."""
    file = targets_file(frame, tmp_path / "t.csv", "a", "b")
    arguments = ("cv", file, "--targets", "a,b", "--drop", "weight", "--alphas", 5, "--out", tmp_path / "model")
    told = json.loads(run(*arguments, "--json").out)
    (scores,) = [pair for name, pair in told["scores"].items() if name.startswith("mean squared error")]
    known = frame[frame[["a", "b"]].notna().any(axis=1)]
    Y, model, errors, counts = known[["a", "b"]].to_numpy(), go.load(tmp_path / "model" / "model"), 0.0, 0
    for train, test in model.cv.split(Y):
        errors += np.nansum((Y[test] - np.nanmean(Y[train], axis=0)) ** 2)
        counts += np.isfinite(Y[test]).sum()
    assert scores["null_model"] == pytest.approx(errors / counts, rel=1e-12)
    assert scores["model"] == pytest.approx(-model.best_score_, rel=1e-12)


def test_what_cannot_miss_is_refused_and_says_why(run, frame, tmp_path):
    frame["kind"] = np.where(frame["a"].isna(), None, np.where(frame["a"] > 0.0, "up", "down"))
    file = targets_file(frame, tmp_path / "classes.csv", "kind")
    message = run("fit", file, "--targets", "kind", "--out", tmp_path / "model").message
    assert "target 'kind' has 20 missing values" in message
    assert "without a class says nothing" in message
    frame["days"] = frame["n_a"] + 1.0
    file = targets_file(frame, tmp_path / "times.csv", "is_a", "days")
    message = run("fit", file, "--targets", "is_a,days", "--loss", "cox", "--out", tmp_path / "model").message
    assert "is_a (20), days (20)" in message
    assert "at risk" in message
    file = targets_file(frame.assign(b=np.nan), tmp_path / "empty.csv", "a", "b")
    message = run("fit", file, "--targets", "a,b", "--out", tmp_path / "model").message
    assert "no observed entry of positive weight in column 'b'" in message
    message = run("fit", file, "--targets", "b", "--drop", "a", "--out", tmp_path / "model").message
    assert "no sample has a target" in message
    assert not (tmp_path / "model").exists()
