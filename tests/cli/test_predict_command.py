"""The commands predict and verify: what a saved model says about another file."""

from __future__ import annotations

import io
import json
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import dump_svmlight_file

import groupowl as go
from cli_support import columns_of, make_data, write_csv

PREDICTED = ["predicted_y1", "predicted_y2"]
ROLES = ("--targets", "y1,y2", "--groups", "house", "--sample-weight", "w", "--id-column", "id")


@pytest.fixture
def model(run, train, tmp_path):
    out = tmp_path / "model"
    assert run("fit", train, *ROLES, "--out", out, "-q").code == 0
    return out


@pytest.fixture
def new(tmp_path):
    """New samples, columns in another order, without targets."""
    columns = columns_of(make_data(seed=9))
    names = ["gene7", "id", *[name for name in columns if name.startswith("gene") and name != "gene7"]]
    return write_csv(tmp_path / "new.csv", {name: columns[name] for name in names})


def expected(model, path):
    estimator = go.load(model / "model")
    frame = pd.read_csv(path)
    return estimator.predict(frame[list(estimator.feature_names_in_)])


# predict ------------------------------------------------------------------------------------------------


def test_predictions_go_to_a_file(run, model, new, tmp_path):
    out = tmp_path / "deep" / "pred.csv"
    ran = run("predict", model, new, "--out", out)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.splitlines() == ["40 samples predicted.", str(out)]
    table = pd.read_csv(out)
    assert list(table.columns) == ["id", *PREDICTED]
    assert table["id"].tolist() == [f"s{i:02d}" for i in range(40)]
    np.testing.assert_array_equal(table[PREDICTED].to_numpy(), expected(model, new))
    assert [path.name for path in out.parent.iterdir()] == ["pred.csv"]


def test_predictions_go_to_the_screen(run, model, new):
    ran = run("predict", model, new)
    assert (ran.code, ran.err) == (0, "")
    np.testing.assert_array_equal(pd.read_csv(io.StringIO(ran.out))[PREDICTED].to_numpy(), expected(model, new))


def test_columns_of_the_fit_are_no_surprise(run, model, train):
    """Targets, groups and weights may be in the file; nothing is said about them but how well targets are predicted."""
    ran = run("predict", model, train)
    assert ran.code == 0
    assert "does not know" not in ran.err
    assert "mean squared error (40 samples)" in ran.err


def test_extra_columns_are_told(run, model, tmp_path):
    columns = columns_of(make_data(seed=9)) | {"age": range(40), "sex": ["f"] * 40}
    path = write_csv(tmp_path / "more.csv", columns)
    ran = run("predict", model, path)
    assert ran.code == 0
    assert ran.err.startswith("groupowl: The model ignores 2 columns that it does not know: 'age', 'sex'.\n")
    assert run("predict", model, path, "--quiet").err == ""
    answer = json.loads(run("predict", model, path, "--json").out)
    assert answer["ignored_columns"] == ["age", "sex"]


def renamed(path, names, folder):
    found = folder / f"renamed {path.name}"
    pd.read_csv(path).rename(columns=names).to_csv(found, index=False)
    return found


def test_features_that_are_not_selected_need_not_be_there(run, train, new, tmp_path):
    """The predictions are those of the whole file, to the last bit; one that is selected is still missed."""
    out, columns = tmp_path / "m", pd.read_csv(train).columns
    numbered = [name for name in columns if name[-1].isdecimal() and name[0] != "y"]
    names = {name: f"gene {'ABCDEFGHIJKL'[i]}" for i, name in enumerate(numbered)}  # numbers may be of other columns
    train, new = (renamed(path, names, tmp_path) for path in (train, new))
    assert run("fit", train, *ROLES, "--alpha", 1, "--out", out, "-q").code == 0
    estimator = go.load(out / "model")
    selected = list(estimator.selected_features_)
    others = [name for name in estimator.feature_names_in_ if name not in selected]
    assert selected
    assert others
    part = tmp_path / "part.csv"
    pd.read_csv(new).drop(columns=others).to_csv(part, index=False)
    ran = run("predict", out, part)
    assert (ran.code, ran.out) == (0, run("predict", out, new).out)
    assert "that the model has not selected" in ran.err
    assert "which changes no prediction: " in ran.err
    assert run("predict", out, part, "-q").err == ""
    assert json.loads(run("predict", out, part, "--json").out)["absent_features"] == others
    pd.read_csv(part).drop(columns=selected[0]).to_csv(part, index=False)
    assert f"lacks 1 column of the model's 12 features: {selected[0]!r}" in run("predict", out, part).message


def test_json_has_the_predictions_or_their_file(run, model, new, tmp_path):
    ran = run("predict", model, new, "--json")
    assert (ran.code, ran.err) == (0, "")
    answer = json.loads(ran.out)
    assert answer["predictions"]["predicted_y2"] == expected(model, new)[:, 1].tolist()
    assert (answer["n_samples"], answer["written"]) == (40, [])
    answer = json.loads(run("predict", model, new, "--json", "--out", tmp_path / "p.csv").out)
    assert answer["written"] == [str(tmp_path / "p.csv")]
    assert "predictions" not in answer


def test_an_earlier_file_is_replaced_by_force(run, model, new, tmp_path):
    out = tmp_path / "pred.csv"
    out.write_text("old")
    assert run("predict", model, new, "--out", out).code == 1
    assert out.read_text() == "old"
    ran = run("predict", model, new, "--out", out, "--force", "-q")
    assert (ran.code, ran.out, ran.err) == (0, "", "")
    assert out.read_text().startswith("id,predicted_y1,predicted_y2\n")


@pytest.mark.parametrize(("given", "name"), [("house", "house"), ("2", "house"), ("id", "id")])
def test_ids_may_be_another_column(run, model, train, given, name):
    """By name or position, under its own name."""
    table = pd.read_csv(io.StringIO(run("predict", model, train, "--id-column", given).out))
    assert list(table.columns) == [name, *PREDICTED]
    assert table[name].tolist() == pd.read_csv(train)[name].tolist()


def test_rows_without_ids_are_numbered(run, train, new, tmp_path):
    out = tmp_path / "m"
    assert run("fit", train, "--targets", "y1", "--drop", "id,house,w,y2", "--out", out, "-q").code == 0
    table = pd.read_csv(io.StringIO(run("predict", out, new, "-q").out))
    assert list(table.columns) == ["row", "predicted_y1"]
    assert table["row"].tolist() == list(range(1, 41))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_classes_come_with_probabilities(run, tmp_path, n_classes):
    data = go.datasets.make_correlated_groups(
        60, 6, n_classes, n_informative=3, task="classification", signal_to_noise=3.0, random_state=1
    )
    columns = {f"g{j}": data.X[:, j].tolist() for j in range(6)}
    columns["kind"] = [("elm", "fir", "oak")[k] for k in data.labels]
    path, out = write_csv(tmp_path / "t.csv", columns), tmp_path / "m"
    assert run("fit", path, "--targets", "kind", "--out", out, "-q").code == 0
    table = pd.read_csv(io.StringIO(run("predict", out, path).out))
    kinds = ["elm", "fir", "oak"][:n_classes]
    assert list(table.columns) == ["row", "predicted_kind", *[f"p({kind})" for kind in kinds]]
    chances = table[[f"p({kind})" for kind in kinds]].to_numpy()
    np.testing.assert_allclose(chances.sum(axis=1), 1.0)
    assert table["predicted_kind"].tolist() == [kinds[k] for k in chances.argmax(axis=1)]
    assert np.mean(table["predicted_kind"] == columns["kind"]) > 0.6
    assert run("verify", out, path).code == 0


def test_a_model_of_another_format(run, train, tmp_path):
    """Fitted to CSV, applied to Parquet and to an archive: names count, not formats."""
    out = tmp_path / "m"
    assert run("fit", train, *ROLES, "--out", out, "-q").code == 0
    frame = pd.read_csv(train)
    frame.to_parquet(tmp_path / "t.parquet", index=False)
    genes = [f"gene{j}" for j in range(12)]
    np.savez(tmp_path / "t.npz", X=frame[genes].to_numpy(), feature_names=genes)
    answers = [
        json.loads(run("predict", out, path, "--json").out)
        for path in (train, tmp_path / "t.parquet", tmp_path / "t.npz")
    ]
    assert answers[0]["predictions"] == answers[1]["predictions"]
    assert answers[0]["predictions"]["predicted_y1"] == answers[2]["predictions"]["predicted_y1"]


def test_sparse_files(run, tmp_path):
    """A new file may lack the columns that are zero in it."""
    data = make_data()
    X = np.where(np.abs(data.X) > 0.7, data.X, 0.0)
    X[:5, 8:] = 0.0
    whole, part, out = tmp_path / "t.svm", tmp_path / "part.svm", tmp_path / "m"
    dump_svmlight_file(X, data.Y[:, 0], str(whole), zero_based=True)
    dump_svmlight_file(X[:5, :8], np.zeros(5), str(part), zero_based=True)
    assert run("fit", whole, "--out", out, "-q").code == 0
    answers = [json.loads(run("predict", out, path, "--json").out) for path in (whole, part)]
    predicted = [answer["predictions"]["predicted_label"] for answer in answers]
    np.testing.assert_allclose(predicted[1], predicted[0][:5], rtol=1e-12)
    assert run("verify", out, whole).code == 0


def test_genes_by_samples(run, tmp_path):
    data = make_data()
    samples = [f"s{i}" for i in range(40)]
    genes = pd.DataFrame(data.X.T, index=[f"gene{j}" for j in range(12)], columns=samples)
    genes.to_csv(tmp_path / "genes.csv", index_label="gene")
    answers = pd.DataFrame(data.Y, columns=["y1", "y2"]).assign(sample=samples)[3:]
    answers.to_csv(tmp_path / "answers.csv", index=False)
    out = tmp_path / "m"
    arguments = ("--transpose", "--targets-from", tmp_path / "answers.csv", "--id-column", "sample")
    ran = run("fit", tmp_path / "genes.csv", *arguments, "--out", out, "--json")
    answer = json.loads(ran.out)
    assert (answer["n_samples"], answer["n_features"]) == (37, 12)
    assert "3 ids of" in answer["notes"][0]
    assert (out / "unmatched_ids.csv").read_text().splitlines()[1:] == [
        f"{tmp_path / 'genes.csv'},{name}" for name in ("s0", "s1", "s2")
    ]
    expected = go.GroupOWLRegressor().fit(data.X[3:], data.Y[3:])
    np.testing.assert_allclose(go.load(out / "model").coef_, expected.coef_, rtol=1e-9)
    table = pd.read_csv(io.StringIO(run("predict", out, tmp_path / "genes.csv").out))
    assert table["sample"].tolist() == samples
    assert run("verify", out, tmp_path / "genes.csv").code == 0


# verify -------------------------------------------------------------------------------------------------


def test_the_data_of_the_fit_hold(run, model, train):
    ran = run("verify", model, train)
    assert (ran.code, ran.err) == (0, "")
    frame = pd.read_csv(train)
    estimator = go.load(model / "model")
    X = frame[list(estimator.feature_names_in_)]
    assert ran.out.rstrip("\n") == repr(estimator.verify(X, frame[["y1", "y2"]], sample_weight=frame["w"]))


@pytest.mark.parametrize("command", ["fit", "path", "cv"])
def test_every_command_writes_what_holds(run, train, tmp_path, command):
    out = tmp_path / "m"
    more = [] if command == "fit" else ["--alphas", 6]
    arguments = ["--targets", "y1", "--drop", "id,house,y2", "--sample-weight", "w", "--test-size", 0.2, *more]
    assert run(command, train, *arguments, "--out", out, "-q").code == 0
    ran = run("verify", out, train, "--json")
    assert ran.code == 0
    answer = json.loads(ran.out)
    assert answer["holds"] is True
    assert answer["gap"] <= answer["goal"]


def test_other_data_do_not_hold(run, model, tmp_path):
    """The same names, other numbers: exit code 1, and the page says why."""
    path = write_csv(tmp_path / "other.csv", columns_of(make_data(seed=5)))
    ran = run("verify", model, path)
    assert ran.code == 1
    assert "the fit does NOT hold on these data" in ran.out
    assert ran.err == f"groupowl: the fit in {model} does not hold on {path}.\n"
    answer = json.loads(run("verify", model, path, "--json").out)
    assert answer["holds"] is False
    assert any(not finding["holds"] for finding in answer["findings"])
    assert run("verify", model, path, "--quiet").out == ""


def test_data_of_another_size_are_not_those_of_the_fit(run, model, tmp_path):
    """The page begins with that, in words; details are for programs."""
    path = write_csv(tmp_path / "other.csv", columns_of(make_data(seed=5, n=29)))
    ran = run("verify", model, path)
    lines = ran.out.splitlines()
    assert ran.code == 1
    assert lines[0] == f"{path} is not the data of the fit: it has 29 samples, the fit had 40."
    assert len(lines) <= 5
    assert "[ok]" not in ran.out
    assert "[not checked] all else" in ran.out
    assert re.search(r"\w_\b", ran.out.replace(str(path), "")) is None  # no attribute of Python
    answer = json.loads(run("verify", model, path, "--json").out)
    assert any(finding["text"].startswith("duality gap (dual_gap_)") for finding in answer["findings"])


def test_other_targets_are_not_those_of_the_fit(run, model, train, tmp_path):
    """Numbers, with their constants, and classes, with their shares."""
    columns = columns_of(make_data())
    columns["y2"] = [value + 1.0 for value in columns["y2"]]
    first = run("verify", model, write_csv(tmp_path / "other.csv", columns)).out.splitlines()[0]
    assert re.search(r"is not the data of the fit: the constant nearest to target 'y2' is [\d.-]+, and was", first)
    columns["y1"] = ["a", "b"] * 20
    labels, options = write_csv(tmp_path / "labels.csv", columns), ("--drop", "id,house,y2", "-q")
    assert run("fit", labels, "--targets", "y1", *options, "--out", tmp_path / "classes").code == 0
    columns["y1"] = ["a", "b", "b", "b"] * 10
    ran = run("verify", tmp_path / "classes", write_csv(labels, columns))
    assert "labels.csv is not the data of the fit: the share of class 'a' is 0.25, and was 0.5 in the fit" in ran.out


@pytest.mark.parametrize("kind", ["fit", "cv"])
def test_other_features_are_not_those_of_the_fit(run, train, tmp_path, kind):
    """Of the same size, with the same targets: the page names the features, and no attribute of Python."""
    out = tmp_path / "m"
    assert run(kind, train, "--targets", "y1,y2", "--drop", "id,house", "-q", "--out", out).code == 0
    columns = columns_of(make_data())
    feature = next(name for name in columns if name not in ("id", "house", "y1", "y2", "w"))
    columns[feature] = list(columns[feature])[::-1]  # the same values in another order: mean and deviation are the same
    path = write_csv(tmp_path / "other.csv", columns)
    ran = run("verify", out, path)
    assert ran.code == 1
    why = "its features have other values than in the fit, or its samples another order"
    assert ran.out.splitlines()[0] == f"{path} is not the data of the fit: {why}: {feature!r}."
    assert len(ran.out.splitlines()) <= 5
    assert re.search(r"\w_\b", ran.out.replace(str(path), "")) is None
    assert run("verify", out, train).code == 0


def test_a_changed_model_is_not_blamed_on_the_file(run, model, train):
    """The file is that of the fit: what is wrong is said of the model."""
    estimator = go.load(model / "model")
    estimator.coef_ = estimator.coef_ * 1.01
    go.save(estimator, model / "model")
    ran = run("verify", model, train)
    assert "is not the data of the fit" not in ran.out
    assert "[FAILED] coefficients (coef_[" in ran.out


def test_a_changed_coefficient_does_not_hold(run, model, train):
    estimator = go.load(model / "model")
    estimator.coef_ = estimator.coef_ * 1.01
    go.save(estimator, model / "model")
    assert run("verify", model, train).code == 1


def edited_json(folder, name, value):
    """Change a fitted attribute in the text of a saved model."""
    file = folder / "model" / "model.json"
    envelope = json.loads(file.read_text())
    envelope["content"]["fitted"][name] = value
    file.write_text(json.dumps(envelope))


def edited_array(folder, name, change):
    """Change an array of a saved model."""
    place = json.loads((folder / "model" / "model.json").read_text())["content"]["fitted"][name]["name"]
    file = folder / "model" / "arrays.npz"
    with np.load(file) as stored:
        arrays = dict(stored)
    arrays[place] = change(arrays[place])
    np.savez_compressed(file, **arrays)


def test_a_changed_file_of_a_model_is_named(run, model, train):
    assert run("verify", model, train).code == 0
    edited_json(model, "dual_gap_", 1e-30)
    ran = run("verify", model, train)
    assert ran.code == 1
    assert "[FAILED] duality gap (dual_gap_): the fit says 1e-30, the data give" in ran.out
    answer = json.loads(run("verify", model, train, "--json").out)
    assert answer["claimed_gap"] == 1e-30
    assert any(not item["holds"] and item["text"].startswith("duality gap (dual_gap_)") for item in answer["findings"])


@pytest.mark.parametrize("name", ["weights_", "clusters_", "coef_"])
def test_a_changed_array_of_a_model_is_named(run, model, train, name):
    edited_array(model, name, lambda array: array + array.astype(bool))
    ran = run("verify", model, train)
    assert ran.code == 1
    assert re.search(rf"\[FAILED\] [a-z ]+ \({name}", ran.out)


def test_changed_scores_of_cv(run, train, tmp_path):
    """Groups are those of the fit; without the scores the folds are not fitted again."""
    out = tmp_path / "m"
    assert run("cv", train, *ROLES, "--alphas", 5, "--folds", 3, "--out", out, "-q").code == 0
    ran = run("verify", out, train)
    assert (ran.code, ran.err) == (0, "")
    assert "held-out scores are computed again" in ran.out
    assert (
        "[not checked] the held-out scores are NOT computed again: scores=False"
        in run("verify", out, train, "--no-scores").out
    )
    edited_array(out, "score_path_", lambda scores: 0.99 * scores)
    ran = run("verify", out, train)
    assert ran.code == 1
    assert "[FAILED] held-out scores (score_path_[" in ran.out
    assert run("verify", out, train, "--no-scores").code == 1


def test_folders_of_save_alone(run, train, tmp_path, new):
    """Models from Python: targets by the names they were fitted with, or by option."""
    frame = pd.read_csv(train)
    genes = [f"gene{j}" for j in range(12)]
    folder = tmp_path / "saved"
    go.save(go.GroupOWLRegressor().fit(frame[genes], frame[["y1", "y2"]]), folder)
    assert run("predict", folder, new, "-q").code == 0
    slim = write_csv(tmp_path / "slim.csv", {name: frame[name] for name in [*genes, "y1", "y2"]})
    assert run("verify", folder, slim).code == 0
    other = write_csv(
        tmp_path / "renamed.csv", {**{name: frame[name] for name in genes}, "u": frame["y1"], "v": frame["y2"]}
    )
    assert run("verify", folder, other).code == 1
    assert run("verify", folder, other, "--targets", "u,v").code == 0


def test_a_file_of_targets_that_has_moved(run, tmp_path):
    columns = columns_of(make_data())
    data = write_csv(tmp_path / "x.csv", {name: columns[name] for name in columns if name[0] in "ig"})
    answers = write_csv(tmp_path / "y.csv", {name: columns[name] for name in ("id", "y1")})
    out = tmp_path / "m"
    assert run("fit", data, "--targets-from", answers, "--id-column", "id", "--out", out, "-q").code == 0
    assert run("verify", out, data).code == 0
    answers.rename(tmp_path / "z.csv")
    assert "y.csv does not exist" in run("verify", out, data).message
    assert run("verify", out, data, "--targets-from", tmp_path / "z.csv").code == 0


def test_targets_that_are_not_those_of_the_model(run, tmp_path):
    data = make_data()
    frame = pd.DataFrame(data.X, columns=[f"x{j}" for j in range(12)]).assign(y1=data.Y[:, 0], y2=data.Y[:, 1])
    frame.to_csv(tmp_path / "t.csv", index=False)
    assert run("fit", tmp_path / "t.csv", "-t", "y1,y2", "--out", tmp_path / "m", "-q").code == 0
    record = tmp_path / "m" / "run.json"
    record.write_text(record.read_text().replace('"y1"', '"q1"'))
    ran = run("predict", tmp_path / "m", tmp_path / "t.csv")
    assert ran.code == 1
    assert "run.json is damaged" in ran.err
    assert "its targets are not those of the model" in ran.err


def test_columns_of_the_targets_file_that_are_not_used_are_named(run, tmp_path):
    data = make_data()
    pd.DataFrame(data.X).add_prefix("x").to_csv(tmp_path / "X.csv", index=False)
    pd.DataFrame(data.Y, columns=["y1", "y2"]).to_csv(tmp_path / "Y.csv", index=False)
    ran = run(
        "fit", tmp_path / "X.csv", "--targets-from", tmp_path / "Y.csv", "-t", "y2", "--out", tmp_path / "m", "--json"
    )
    assert any(note.startswith("Not used: 'y1' of ") for note in json.loads(ran.out)["notes"])
