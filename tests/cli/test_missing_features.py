"""Missing features: samples are left out or cells filled in, the same way in every command."""

import json

import numpy as np
import pandas as pd
import pytest

import groupowl as go
from cli_support import columns_of, make_data, write_csv

TARGETS = ("--targets", "y1,y2", "--id-column", "id", "--drop", "house,w")


@pytest.fixture
def gaps(tmp_path):
    """A file whose columns gene0 and gene3 have gaps, and the frame in it."""
    frame = pd.DataFrame(columns_of(make_data()))
    frame.loc[[1, 5, 7], "gene0"] = np.nan
    frame.loc[[5, 9], "gene3"] = np.nan
    path = tmp_path / "gaps.csv"
    frame.to_csv(path, index=False)
    return path, frame


def coefficients(folder):
    return go.load(folder / "model").coef_


@pytest.mark.parametrize("how", ["drop", "mean", "median"])
def test_a_fit_is_that_of_the_filled_table(run, gaps, tmp_path, how):
    path, frame = gaps
    genes = [name for name in frame if name.startswith("gene")]
    clean = frame.dropna() if how == "drop" else frame.fillna(frame[genes].agg(how).to_dict())
    clean.to_csv(tmp_path / "clean.csv", index=False)
    assert run("fit", tmp_path / "clean.csv", *TARGETS, "-o", tmp_path / "expected", "-q").code == 0
    found = run("fit", path, *TARGETS, "--missing", how, "-o", tmp_path / "model")
    assert found.code == 0, found
    np.testing.assert_allclose(coefficients(tmp_path / "model"), coefficients(tmp_path / "expected"), rtol=1e-10)
    words = (
        "4 samples of 40 have missing features and are left out" if how == "drop" else f"with the {how} of the column"
    )
    record = json.loads((tmp_path / "model" / "run.json").read_text())
    assert any(words in note and "'gene0' (3), 'gene3' (2)" in note for note in record["notes"])
    assert run("verify", tmp_path / "model", path).code == 0


def test_held_out_samples_have_no_say_in_what_is_filled_in(run, gaps, tmp_path):
    path, frame = gaps
    options = (*TARGETS, "--missing", "mean", "--test-size", "0.5", "-q")
    assert run("fit", path, *options, "-o", tmp_path / "model").code == 0
    record = json.loads((tmp_path / "model" / "run.json").read_text())
    fills = dict(zip(record["features"], record["fills"], strict=True))
    rows = np.random.RandomState(0).permutation(40)[20:]  # as ShuffleSplit does
    assert fills["gene0"] == pytest.approx(frame.loc[rows, "gene0"].mean())
    assert fills["gene0"] != pytest.approx(frame["gene0"].mean())
    assert run("verify", tmp_path / "model", path).code == 0


@pytest.fixture
def model(run, gaps, tmp_path):
    """A function that fits a sparse model; returns its folder and names of selected and other features."""

    def fit(*options):
        folder = tmp_path / "model"
        found = run("fit", gaps[0], *TARGETS, "--alpha", "0.5", "-o", folder, "-q", *options)
        assert found.code == 0, found
        fitted = go.load(folder / "model")
        support, names = fitted.get_support(), fitted.feature_names_in_
        assert 0 < support.sum() < len(names)
        return folder, names[support], names[~support]

    return fit


def predictions(run, *arguments):
    found = run("predict", *arguments, "-q")
    assert found.code == 0, found
    header, *lines = found.out.splitlines()
    assert header == "id,predicted_y1,predicted_y2"
    return {line.split(",")[0]: [float(cell) for cell in line.split(",")[1:]] for line in lines}


def test_predictions_fill_with_what_the_fit_has_found(run, model, gaps, tmp_path):
    folder, selected, _ = model("--missing", "median")
    path, frame = gaps
    new = frame.head(3).drop(columns=["y1", "y2"])
    whole = new.assign(**{selected[0]: frame[selected[0]].median()})
    new.assign(**{selected[0]: np.nan}).to_csv(tmp_path / "new.csv", index=False)
    whole.fillna(frame[selected].median().to_dict()).to_csv(tmp_path / "whole.csv", index=False)
    expected = predictions(run, folder, tmp_path / "whole.csv")
    assert predictions(run, folder, tmp_path / "new.csv") == expected
    path = tmp_path / "new.csv"
    left = run("predict", folder, path, "--missing", "drop")
    assert "no sample has all features" in left.message


def test_gaps_and_words_in_columns_that_were_not_selected_stop_nothing(run, model, train, tmp_path):
    folder, _, others = model("--missing", "drop")
    frame = pd.read_csv(train)
    expected = predictions(run, folder, train)
    frame[others[0]] = np.nan
    frame[others[1]] = "unknown"
    frame[others[2]] = np.inf
    frame.to_csv(tmp_path / "new.csv", index=False)
    assert predictions(run, folder, tmp_path / "new.csv") == expected


def test_gaps_in_selected_columns_are_refused_or_left_out(run, model, train, tmp_path, gaps):
    folder, selected, _ = model("--drop", "gene0,gene3")
    frame = pd.read_csv(train)
    expected = predictions(run, folder, train)
    frame.loc[[0, 4], selected[0]] = np.nan
    frame.to_csv(tmp_path / "new.csv", index=False)
    refused = run("predict", folder, tmp_path / "new.csv").message
    assert "has 2 missing values in 1 feature column" in refused
    assert "Use --missing drop to leave those samples out" in refused
    found = run("predict", folder, tmp_path / "new.csv", "--missing", "drop", "-o", tmp_path / "out.csv")
    assert "Left out: 2 samples that lack features of the model (row 1, 5)." in found.err
    del expected["s00"], expected["s04"]
    assert predictions(run, folder, tmp_path / "new.csv", "--missing", "drop") == expected
    without_ids = run("predict", folder, write_csv(tmp_path / "n.csv", frame.drop(columns="id").to_dict("list")),
                      "--missing", "drop", "-q").out  # fmt: skip
    assert [line.split(",")[0] for line in without_ids.splitlines()[:4]] == ["row", "2", "3", "4"]


def test_categories_get_their_most_frequent_level(run, tmp_path):
    columns = columns_of(make_data())
    columns["house"] = ["h1" if i % 3 else "h2" for i in range(40)]
    whole = write_csv(tmp_path / "whole.csv", columns)
    columns["house"][1] = "NA"
    gaps = write_csv(tmp_path / "gaps.csv", columns)
    options = ("--targets", "y1,y2", "--id-column", "id", "--drop", "w", "--categories", "house", "-q")
    assert run("fit", whole, *options, "-o", tmp_path / "expected").code == 0
    assert "--missing drop" in run("fit", gaps, *options).message
    assert run("fit", gaps, *options, "--missing", "mean", "-o", tmp_path / "model").code == 0
    np.testing.assert_array_equal(coefficients(tmp_path / "model"), coefficients(tmp_path / "expected"))
    assert run("verify", tmp_path / "model", gaps, "-q").code == 0
    assert predictions(run, tmp_path / "model", gaps) == predictions(run, tmp_path / "expected", whole)


def test_sparse_data_are_filled_as_dense_ones(run, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 4)).round(3)
    X[rng.random(X.shape) < 0.4] = 0.0
    y = X @ [1.0, 2.0, 0.0, 0.0] + 0.1 * rng.normal(size=30)
    X[3, 0] = X[8, 0] = X[5, 1] = np.nan
    lines = [f"{y[i]} " + " ".join(f"{j + 1}:{v}" for j, v in enumerate(X[i]) if v != 0) for i in range(30)]
    (tmp_path / "t.svm").write_text("\n".join(lines) + "\n")
    filled = np.where(np.isnan(X), np.nanmean(X, axis=0), X)
    frame = pd.DataFrame(filled, columns=list("abcd")).assign(y=y)
    frame.to_csv(tmp_path / "t.csv", index=False)
    assert "--missing mean or median" in run("fit", tmp_path / "t.svm").message
    assert run("fit", tmp_path / "t.svm", "--missing", "mean", "-q", "-o", tmp_path / "a", "--tol", "1e-10").code == 0
    assert run("fit", tmp_path / "t.csv", "-t", "y", "-q", "-o", tmp_path / "b", "--tol", "1e-10").code == 0
    np.testing.assert_allclose(coefficients(tmp_path / "a"), coefficients(tmp_path / "b"), atol=1e-4)
    dropped = run("fit", tmp_path / "t.svm", "--missing", "drop", "--json")
    assert json.loads(dropped.out)["n_samples"] == 27


def test_select_knows_gaps_too(run, gaps, tmp_path):
    found = run("select", gaps[0], *TARGETS, "--method", "stability", "--pairs", "2", "--missing", "mean", "--json")
    assert found.code == 0
    assert any("are filled with the mean" in note for note in json.loads(found.out)["notes"])


def test_columns_without_any_value_are_named_with_what_to_type(run, gaps, tmp_path):
    frame = gaps[1].assign(gene5=np.nan)
    frame.to_csv(tmp_path / "t.csv", index=False)
    for how in ("drop", "mean"):
        message = run("fit", tmp_path / "t.csv", *TARGETS, "--missing", how).message
        assert "no sample has a value of 'gene5'. Leave columns out with --drop gene5." in message


def test_a_record_with_other_fills_is_damaged(run, model, train):
    folder, *_ = model("--missing", "mean")
    record = json.loads((folder / "run.json").read_text())
    for fills in (record["fills"][:-1], [None] * 12, "mean"):
        (folder / "run.json").write_text(json.dumps(record | {"fills": fills}))
        assert "is damaged" in run("predict", folder, train).message
